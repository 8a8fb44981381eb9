/* The table of kernels, and what the builder makes of types that have none. */
#include "check.h"
#include "onnx/build.h"
#include "onnx/graph_text.h"
#include "onnx/kernels.h"
#include "onnx/onnx_ops.h"

static Arena *arena;
static Diags *diags;
static Dims  *dims;

static Builder *fresh_builder(int opset)
{
    return p2o_builder_new(p2o_graph_new(arena, diags, dims, opset, NULL), NULL);
}

static Value *vector_input(Builder *b, const char *name, DType t)
{
    Dim at[] = { p2o_dim_sym(dims, "n") };
    return p2o_graph_input(b->graph, name, t,
                           (Shape){ 1, p2o_shape_copy(arena, (Shape){ 1, at }, 0) });
}

static bool reads(Builder *b, Value *out, const char *text)
{
    p2o_graph_output(b->graph, out);
    const char *got = p2o_graph_text(b->graph, false);
    if (!same(got, text))
        printf("  reads\n%s", got);
    return same(got, text) && !p2o_graph_check(b->graph);
}

static void check_table(void)
{
    static const struct {
        OnnxOp      op;
        const char *in;
        int         since;
    } rows[] = {
#define KERNEL(op, in, since, ...) { ONNX_##op, in, since },
#define KERNEL_REDUCING            KERNEL
#include "onnx/kernels.def"
#undef KERNEL_REDUCING
#undef KERNEL
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool again = i && rows[i].op == rows[i - 1].op;
        CHECK(i == 0 || rows[i].op >= rows[i - 1].op);
        CHECK(!again || !same(rows[i].in, rows[i - 1].in) || rows[i].since > rows[i - 1].since);
        CHECK(strspn(rows[i].in, "T-") == strlen(rows[i].in));
        CHECK(p2o_onnx_info(rows[i].op)->max_in < 0 ||
              (int)strlen(rows[i].in) <= p2o_onnx_info(rows[i].op)->max_in);
    }
}

/* The type in which `op` takes its input i of type t. */
static DType computes_in(OnnxOp op, int opset, int i, DType t, const char *reduction)
{
    Value  v = { .dtype = t };
    Value *in[10] = { NULL };
    Attr   attr = attr_str("reduction", reduction ? reduction : "none");
    Node   n = { .op = op, .in = in, .nin = 10, .attrs = &attr, .nattr = reduction != NULL,
                 .graph = fresh_builder(opset)->graph };
    in[i] = &v;
    return p2o_kernel_type(&n, i);
}

static bool exists(OnnxOp op, int opset)
{
    return p2o_kernel_exists(&(Node){ .op = op, .graph = fresh_builder(opset)->graph });
}

static void check_types(void)
{
    CHECK(computes_in(ONNX_Add, 20, 1, DT_F32, NULL) == DT_F32);
    CHECK(computes_in(ONNX_Add, 20, 1, DT_I8, NULL) == DT_I32);
    CHECK(computes_in(ONNX_Add, 20, 0, DT_U32, NULL) == DT_I64);
    CHECK(computes_in(ONNX_Add, 20, 0, DT_BF16, NULL) == DT_F32);
    CHECK(computes_in(ONNX_Add, 20, 0, DT_F16, NULL) == DT_F16);
    CHECK(computes_in(ONNX_Concat, 20, 0, DT_BF16, NULL) == DT_BF16);   /* no row */
    CHECK(computes_in(ONNX_Where, 20, 0, DT_BOOL, NULL) == DT_BOOL);    /* the condition */
    CHECK(computes_in(ONNX_Where, 20, 2, DT_BOOL, NULL) == DT_U8);
    CHECK(computes_in(ONNX_Max, 20, 9, DT_I16, NULL) == DT_I32);        /* the last of many */
    CHECK(computes_in(ONNX_Relu, 20, 0, DT_I64, NULL) == DT_NONE);
    CHECK(computes_in(ONNX_Erf, 20, 0, DT_F64, NULL) == DT_NONE);
    CHECK(computes_in(ONNX_Gemm, 20, 0, DT_I32, NULL) == DT_NONE);
    CHECK(computes_in(ONNX_Pow, 20, 1, DT_BF16, NULL) == DT_F32);
    CHECK(computes_in(ONNX_ReduceMax, 18, 0, DT_BOOL, NULL) == DT_U8);
    CHECK(computes_in(ONNX_ReduceMax, 20, 0, DT_BOOL, NULL) == DT_BOOL);
    CHECK(computes_in(ONNX_ScatterND, 20, 2, DT_F16, "none") == DT_F16);
    CHECK(computes_in(ONNX_ScatterND, 20, 2, DT_F16, "add") == DT_F32);
    CHECK(computes_in(ONNX_ScatterND, 20, 1, DT_I64, "add") == DT_I64);
    CHECK(computes_in(ONNX_ScatterElements, 20, 0, DT_BOOL, "max") == DT_I32);
    CHECK(exists(ONNX_RoiAlign, 21) && !exists(ONNX_RoiAlign, 22));
    CHECK(!exists(ONNX_RandomNormal, 23) && exists(ONNX_RandomNormal, 20));
    CHECK(exists(ONNX_Add, 23) && exists(ONNX_Concat, 17));
}

static void check_wider(void)
{
    Builder *b = fresh_builder(20);
    Value   *c = vector_input(b, "c", DT_BOOL), *x = vector_input(b, "x", DT_BOOL);
    Value   *in[] = { c, x, c };
    CHECK(reads(b, p2o_build(b, ONNX_Where, 0, NULL, 3, in),
                "%0 = Cast(x, to=2)\n"
                "%1 = Cast(c, to=2)\n"
                "%2 = Where(c, %0, %1)\n"
                "%3 = Cast(%2, to=9)\n"
                "return %3\n"));

    b = fresh_builder(20);
    Value *y[] = { vector_input(b, "x", DT_BF16), vector_input(b, "y", DT_BF16) };
    CHECK(reads(b, p2o_build(b, ONNX_Less, 0, NULL, 2, y),
                "%0 = Cast(x, to=1)\n"
                "%1 = Cast(y, to=1)\n"
                "%2 = Less(%0, %1)\n"
                "return %2\n"));

    b = fresh_builder(20);
    Value *top[2], *k[] = { vector_input(b, "x", DT_I16), p2o_build_ints(b, (int64_t[]){ 1 }, 1) };
    p2o_build_many(b, ONNX_TopK, 0, NULL, 2, k, 2, top);
    CHECK(top[0]->dtype == DT_I16 && top[1]->dtype == DT_I64);
    CHECK(top[0]->def->op == ONNX_Cast && top[1]->def->op == ONNX_TopK);
    CHECK(p2o_diags_errors(diags) == 0);
}

static void check_refusals(void)
{
    Builder *b = fresh_builder(20);
    Value   *x = vector_input(b, "x", DT_I64);
    Value   *y = p2o_build(b, ONNX_Relu, 0, NULL, 1, &x);
    CHECK(y->dtype == DT_I64 && p2o_diags_errors(diags) == 1);
    const Diag *d = p2o_diags_at(diags, p2o_diags_count(diags) - 1);
    CHECK(d->kind == DIAG_UNSUPPORTED);
    CHECK(same(d->text, "ONNX Runtime has no kernel for Relu of int64 at opset 20"));

    b = fresh_builder(22);
    Attr shape = attr_ints("shape", (int64_t[]){ 2 }, 1);
    p2o_build(b, ONNX_RandomNormal, 1, &shape, 0, NULL);
    d = p2o_diags_at(diags, p2o_diags_count(diags) - 1);
    CHECK(same(d->text, "ONNX Runtime has no kernel for RandomNormal at opset 22"));

    size_t errors = p2o_diags_errors(diags);
    b = fresh_builder(20);
    x = vector_input(b, "x", DT_I8);
    Value *sequence = p2o_build(b, ONNX_SplitToSequence, 0, NULL, 1, &x);  /* cannot be cast back */
    CHECK(sequence->is_sequence && p2o_diags_errors(diags) == errors + 1);
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    diags = p2o_diags_new(arena, NULL, NULL);
    dims = p2o_dims_new(arena);
    check_table();
    check_types();
    check_wider();
    check_refusals();
    p2o_arena_free(arena);
    return check_report();
}
