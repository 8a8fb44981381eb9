/* Rewrites and constant folding on graphs that no lowering makes at once. */
#include "check.h"
#include "onnx/build.h"
#include "onnx/graph_text.h"
#include "opt/opt.h"

static Arena *arena;
static Diags *diags;
static Dims  *dims;

static Builder *start(int opset)
{
    return p2o_builder_new(p2o_graph_new(arena, diags, dims, opset, NULL), NULL);
}

/* "b, 4": a name or a number for each size. */
static Value *input(Builder *b, const char *name, DType t, const char *sizes)
{
    Dim at[MAX_RANK];
    int rank = 0;
    Str rest = str_of(sizes);
    while (rest.n) {
        Str     one = p2o_str_trim(p2o_str_cut(rest, ',', &rest));
        int64_t n = one.p[0] - '0';
        at[rank++] =
            n >= 0 && n <= 9 ? p2o_dim_int(dims, n) : p2o_dim_sym(dims, p2o_str_dup(arena, one));
    }
    return p2o_graph_input(b->graph, name, t,
                           (Shape){ rank, p2o_shape_copy(arena, (Shape){ rank, at }, 0) });
}

static Value *make(Builder *b, OnnxOp op, int nattr, const Attr *attrs, int nin, Value **in)
{
    return p2o_graph_node(b->graph, op, nin, in, nattr, attrs, 1, 0)->out[0];
}

#define NODE(b, op, ...)                                                                           \
    make(b, op, 0, NULL, (int)COUNT_OF(((Value *[]){ __VA_ARGS__ })), (Value *[]){ __VA_ARGS__ })

static Value *cast_node(Builder *b, Value *x, DType t)
{
    Attr to = attr_int("to", p2o_dtype_onnx(t));
    return make(b, ONNX_Cast, 1, &to, 1, &x);
}

static Value *transpose_node(Builder *b, Value *x, const int64_t *perm)
{
    Attr attr = attr_ints("perm", perm, (size_t)x->shape.rank);
    return make(b, ONNX_Transpose, 1, &attr, 1, &x);
}

static Value *ints(Builder *b, int n, const int64_t *v) { return p2o_build_ints(b, v, (size_t)n); }
#define INTS(b, ...)                                                                               \
    ints(b, (int)COUNT_OF(((int64_t[]){ __VA_ARGS__ })), (int64_t[]){ __VA_ARGS__ })

static bool becomes(Builder *b, Value *out, const char *text)
{
    p2o_graph_output(b->graph, out);
    p2o_opt(b->graph);
    const char *got = p2o_graph_text(b->graph, false), *wrong = p2o_graph_check(b->graph);
    if (wrong || !same(got, text))
        printf("  becomes\n%s%s\n", got, wrong ? wrong : "");
    return !wrong && same(got, text);
}

static void check_casts(void)
{
    Builder *b = start(20);
    Value   *x = input(b, "x", DT_F16, "n");
    CHECK(becomes(b, NODE(b, ONNX_Neg, cast_node(b, cast_node(b, x, DT_F32), DT_F16)),
                  "%0 = Neg(x)\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n");                 /* f16 loses what f32 holds */
    CHECK(becomes(b, cast_node(b, cast_node(b, x, DT_F16), DT_F32),
                  "%0 = Cast(x, to=10)\n%1 = Cast(%0, to=1)\nreturn %1\n"));
    b = start(20);
    x = input(b, "x", DT_I8, "n");                  /* wraps in both */
    CHECK(becomes(b, cast_node(b, cast_node(b, x, DT_I32), DT_U8),
                  "%0 = Cast(x, to=2)\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_I16, "n");                 /* a float does not wrap */
    CHECK(becomes(b, cast_node(b, cast_node(b, x, DT_F32), DT_I8),
                  "%0 = Cast(x, to=1)\n%1 = Cast(%0, to=3)\nreturn %1\n"));
    b = start(20);
    x = input(b, "x", DT_I64, "n");                 /* f64 does not hold every int64 */
    CHECK(becomes(b, cast_node(b, cast_node(b, x, DT_F64), DT_I64),
                  "%0 = Cast(x, to=11)\n%1 = Cast(%0, to=7)\nreturn %1\n"));
    b = start(20);
    x = input(b, "x", DT_U8, "n");                  /* all that is not 0 is true */
    CHECK(becomes(b, cast_node(b, cast_node(b, x, DT_BOOL), DT_U8),
                  "%0 = Cast(x, to=9)\n%1 = Cast(%0, to=2)\nreturn %1\n"));
    b = start(20);
    x = input(b, "x", DT_U32, "n");                 /* rounds once, at the end */
    CHECK(becomes(b, cast_node(b, cast_node(b, cast_node(b, x, DT_I64), DT_F64), DT_F32),
                  "%0 = Cast(x, to=1)\nreturn %0\n"));
}

static void check_outputs_keep_names(void)
{
    Builder *b = start(20);
    Value   *x = input(b, "x", DT_F32, "n"), *y = NODE(b, ONNX_Relu, x),
          *z = NODE(b, ONNX_Identity, y);
    y->name = "inner";
    z->name = "y";
    CHECK(becomes(b, z, "y = Relu(x)\nreturn y\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n");
    z = NODE(b, ONNX_Identity, x);
    z->name = "y";
    CHECK(becomes(b, z, "y = Identity(x)\nreturn y\n"));
}

static void check_transposes(void)
{
    Builder *b = start(20);
    Value   *x = input(b, "x", DT_F32, "a, b, c");
    Value   *y =
        transpose_node(b, transpose_node(b, x, (int64_t[]){ 1, 2, 0 }), (int64_t[]){ 0, 2, 1 });
    CHECK(y->shape.at[0] == x->shape.at[1] && y->shape.at[1] == x->shape.at[0]);
    CHECK(becomes(b, y, "%0 = Transpose(x, perm=[1, 0, 2])\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "a, b, c");
    y = transpose_node(b, transpose_node(b, x, (int64_t[]){ 1, 2, 0 }), (int64_t[]){ 2, 0, 1 });
    CHECK(becomes(b, NODE(b, ONNX_Relu, y), "%0 = Relu(x)\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "a, b, 3, 4");        /* an axis added, moved and dropped again */
    y = transpose_node(b, NODE(b, ONNX_Unsqueeze, x, INTS(b, 0)), (int64_t[]){ 3, 1, 2, 0, 4 });
    CHECK(becomes(b, NODE(b, ONNX_Squeeze, y, INTS(b, -2)),
                  "%0 = Transpose(x, perm=[2, 0, 1, 3])\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n, 1");              /* another axis of size 1 is dropped */
    y = transpose_node(b, NODE(b, ONNX_Unsqueeze, x, INTS(b, 0)), (int64_t[]){ 2, 0, 1 });
    CHECK(becomes(b, NODE(b, ONNX_Squeeze, y, INTS(b, 0)),
                  "%0 = Transpose(x, perm=[1, 0])\nreturn %0\n"));
}

static void check_reshapes(void)
{
    Builder *b = start(20);
    Value   *x = input(b, "x", DT_F32, "n, 4, 6");
    Value   *y = NODE(b, ONNX_Reshape, NODE(b, ONNX_Reshape, x, INTS(b, 0, 24)), INTS(b, 0, 6, 4));
    CHECK(becomes(b, y, "%0 = Reshape(x, [0, 6, 4])\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n, 4, 6");           /* 0 would copy another size */
    y = NODE(b, ONNX_Reshape, NODE(b, ONNX_Reshape, x, INTS(b, -1, 6)), INTS(b, 0, 3, 2));
    CHECK(becomes(b, y, "%0 = Reshape(x, [-1, 6])\n%1 = Reshape(%0, [0, 3, 2])\nreturn %1\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n, 4, 6");
    y = NODE(b, ONNX_Squeeze, NODE(b, ONNX_Unsqueeze, x, INTS(b, 1)), INTS(b, 1));
    CHECK(becomes(b, NODE(b, ONNX_Relu, y), "%0 = Relu(x)\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n, m");              /* m may be 0, and 0 would copy n */
    Value *m = make(b, ONNX_Shape, 1, (Attr[]){ attr_int("start", 1) }, 1, &x);
    Value *flat = NODE(b, ONNX_Reshape, x, INTS(b, -1));
    y = NODE(
        b, ONNX_Reshape, flat,
        make(b, ONNX_Concat, 1, (Attr[]){ attr_int("axis", 0) }, 2, (Value *[]){ m, INTS(b, -1) }));
    CHECK(becomes(b, y,
                  "%0 = Shape(x, start=1)\n%1 = Reshape(x, [-1])\n%2 = Concat(%0, [-1], axis=0)\n"
                  "%3 = Reshape(%1, %2)\nreturn %3\n"));
}

static void check_expands(void)
{
    Builder *b = start(20);
    Value   *x = input(b, "x", DT_F32, "n, 4"), *y = input(b, "y", DT_F32, "1, 4");
    Value   *wide = NODE(b, ONNX_Expand, y, NODE(b, ONNX_Shape, x));
    CHECK(becomes(b, NODE(b, ONNX_Add, x, wide), "%0 = Add(x, y)\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n, 4");
    y = input(b, "y", DT_F32, "1, 4");              /* nothing else has n */
    wide = NODE(b, ONNX_Expand, y, NODE(b, ONNX_Shape, x));
    CHECK(becomes(b, NODE(b, ONNX_Add, wide, y),
                  "%0 = Shape(x)\n%1 = Expand(y, %0)\n%2 = Add(%1, y)\nreturn %2\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n, 4");
    Value *zeros = NODE(b, ONNX_ConstantOfShape, NODE(b, ONNX_Shape, x));
    CHECK(becomes(b, NODE(b, ONNX_Max, x, zeros), "%0 = Max(x, 0:f32)\nreturn %0\n"));
}

static void check_gemm(void)
{
    Builder *b = start(20);
    Value   *x = input(b, "x", DT_F32, "n, 4"), *w = input(b, "w", DT_F32, "3, 4");
    Value   *c = input(b, "c", DT_F32, "3"), *t = transpose_node(b, w, (int64_t[]){ 1, 0 });
    CHECK(becomes(b, NODE(b, ONNX_Add, c, NODE(b, ONNX_MatMul, x, t)),
                  "%0 = Gemm(x, w, c, transB=1)\nreturn %0\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "n, k");              /* k may be 0 */
    w = input(b, "w", DT_F32, "k, 3");
    c = input(b, "c", DT_F32, "3");
    CHECK(becomes(b, NODE(b, ONNX_Add, NODE(b, ONNX_MatMul, x, w), c),
                  "%0 = MatMul(x, w)\n%1 = Add(%0, c)\nreturn %1\n"));
    b = start(20);
    x = input(b, "x", DT_F32, "1, 4");              /* the sum is wider than the product */
    w = input(b, "w", DT_F32, "4, 3");
    c = input(b, "c", DT_F32, "m, 3");
    CHECK(becomes(b, NODE(b, ONNX_Add, NODE(b, ONNX_MatMul, x, w), c),
                  "%0 = MatMul(x, w)\n%1 = Add(%0, c)\nreturn %1\n"));
    b = start(20);
    x = input(b, "x", DT_I32, "n, 4");              /* integers have no Gemm kernel */
    w = input(b, "w", DT_I32, "3, 4");
    t = transpose_node(b, w, (int64_t[]){ 1, 0 });
    CHECK(becomes(b, NODE(b, ONNX_MatMul, x, t),
                  "%0 = Transpose(w, perm=[1, 0])\n%1 = MatMul(x, %0)\nreturn %1\n"));
}

static Value *number(Builder *b, double f) { return p2o_build_scalar(b, DT_F32, f); }

static void check_gelu(void)
{
    for (int form = 0; form < 4; form++) {
        Builder *b = start(form == 3 ? 19 : 20);
        Value   *x = input(b, "x", DT_F32, "n"), *y;
        Value   *in = form == 1 ? NODE(b, ONNX_Mul, x, number(b, 0.70710678118654752))
                                : NODE(b, ONNX_Div, x, number(b, 1.4142135623730951));
        Value   *sum = NODE(b, ONNX_Add, NODE(b, ONNX_Erf, in), number(b, 1));
        if (form == 1)
            y = NODE(b, ONNX_Mul, x, NODE(b, ONNX_Mul, number(b, 0.5), sum));
        else if (form == 2)
            y = NODE(b, ONNX_Mul, NODE(b, ONNX_Mul, x, sum), number(b, 0.5));
        else
            y = NODE(b, ONNX_Mul, NODE(b, ONNX_Mul, x, number(b, 0.5)), sum);
        CHECK(becomes(b, y, form < 3 ? "%0 = Gelu(x)\nreturn %0\n"
                                     : "%0 = Div(x, 1.4142135:f32)\n%1 = Erf(%0)\n"
                                       "%2 = Add(%1, 1:f32)\n%3 = Mul(x, 0.5:f32)\n"
                                       "%4 = Mul(%3, %2)\nreturn %4\n"));
    }
}

static const Tensor *vector_of(const float *v, int64_t n)
{
    return p2o_tensor_make(arena, DT_F32, 1, &n, v);
}

static bool holds_floats(const Value *v, int n, const float *want)
{
    double x;
    for (int i = 0; i < n; i++)
        if (!v->tensor || !p2o_tensor_get_f64(v->tensor, (uint64_t)i, &x) || x != (double)want[i])
            return false;
    return true;
}

static void check_folding(void)
{
    static const float six[] = { 1, 2, 3, 4, 5, 6 };
    Builder *b = start(20);
    Value   *v = p2o_build_const(b, vector_of(six, 6)), *two = number(b, 2);
    Value   *m = p2o_build(b, ONNX_Reshape, 0, NULL, 2, (Value *[]){ v, INTS(b, 2, 3) });
    CHECK(m->tensor && m->shape.rank == 2 && holds_floats(m, 6, six));
    Value *t = p2o_build(b, ONNX_Transpose, 0, NULL, 1, &m);
    CHECK(t->shape.rank == 2 && holds_floats(t, 6, (float[]){ 1, 4, 2, 5, 3, 6 }));
    Value *p = p2o_build(b, ONNX_Mul, 0, NULL, 2, (Value *[]){ two, m });
    CHECK(holds_floats(p, 6, (float[]){ 2, 4, 6, 8, 10, 12 }));
    Value *sum =
        p2o_build(b, ONNX_Add, 0, NULL, 2,
                  (Value *[]){ m, p2o_build_const(b, vector_of((float[]){ 10, 20, 30 }, 3)) });
    CHECK(holds_floats(sum, 6, (float[]){ 11, 22, 33, 14, 25, 36 }));
    Value *q = p2o_build(b, ONNX_Div, 0, NULL, 2, (Value *[]){ two, number(b, 3) });
    CHECK(holds_floats(q, 1, (float[]){ 2.0f / 3.0f }));
    Value *s =
        p2o_build(b, ONNX_Slice, 0, NULL, 5,
                  (Value *[]){ m, INTS(b, -1), INTS(b, INT64_MIN), INTS(b, 1), INTS(b, -2) });
    CHECK(s->shape.rank == 2 && holds_floats(s, 4, (float[]){ 3, 1, 6, 4 }));
    Value *g = p2o_build(b, ONNX_Gather, 1, (Attr[]){ attr_int("axis", 1) }, 2,
                         (Value *[]){ m, INTS(b, 2, -3) });
    CHECK(holds_floats(g, 4, (float[]){ 3, 1, 6, 4 }));
    Value *c =
        p2o_build(b, ONNX_Concat, 1, (Attr[]){ attr_int("axis", -1) }, 2, (Value *[]){ m, g });
    CHECK(holds_floats(c, 10, (float[]){ 1, 2, 3, 3, 1, 4, 5, 6, 6, 4 }));
    Value *e = p2o_build(b, ONNX_Expand, 0, NULL, 2, (Value *[]){ s, INTS(b, 2, 2, 2) });
    CHECK(holds_floats(e, 8, (float[]){ 3, 1, 6, 4, 3, 1, 6, 4 }));
    CHECK(b->graph->first == NULL);                 /* no node was left */

    Attr to_i8 = attr_int("to", p2o_dtype_onnx(DT_I8)),
         to_bool = attr_int("to", p2o_dtype_onnx(DT_BOOL));
    Value *i = p2o_build(b, ONNX_Cast, 1, &to_i8, 1, &v);
    CHECK(i->tensor && i->dtype == DT_I8);
    Value *big = number(b, 300);
    CHECK(p2o_build(b, ONNX_Cast, 1, &to_i8, 1, &big)->def);    /* undefined: left to the runtime */
    Value *yes = p2o_build(b, ONNX_Cast, 1, &to_bool, 1, &big);
    CHECK(yes->tensor && yes->dtype == DT_BOOL);
    Value *w = p2o_graph_init(b->graph, "w", vector_of(six, 6));
    CHECK(p2o_build(b, ONNX_Transpose, 0, NULL, 1, &w)->def);   /* weights keep their names */
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    diags = p2o_diags_new(arena, NULL, NULL);
    dims = p2o_dims_new(arena);
    check_casts();
    check_outputs_keep_names();
    check_transposes();
    check_reshapes();
    check_expands();
    check_gemm();
    check_gelu();
    check_folding();
    CHECK(p2o_diags_errors(diags) == 0);
    p2o_arena_free(arena);
    return check_report();
}
