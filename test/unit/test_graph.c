/* Graphs: building, use lists, editing, the invariants that p2o_graph_check sees, the text form. */
#include "check.h"
#include "onnx/graph.h"
#include "onnx/graph_text.h"
#include "onnx/onnx_ops.h"

static Arena *arena;
static Diags *diags;
static Dims  *dims;

static Graph *fresh_graph(Graph *parent) { return p2o_graph_new(arena, diags, dims, 20, parent); }

static Shape shape_of(int rank, const Dim *at)
{
    return (Shape){ rank, p2o_shape_copy(arena, (Shape){ rank, at }, 0) };
}

static Value *float_input(Graph *g, const char *name)
{
    Dim at[] = { p2o_dim_sym(dims, "b"), p2o_dim_int(dims, 4) };
    return p2o_graph_input(g, name, DT_F32, shape_of(2, at));
}

static Value *one(Graph *g, OnnxOp op, int nin, Value **in)
{
    return p2o_graph_node(g, op, nin, in, 0, NULL, 1, 0)->out[0];
}

static Value *apply1(Graph *g, OnnxOp op, Value *x) { return one(g, op, 1, &x); }
static Value *apply2(Graph *g, OnnxOp op, Value *x,
                     Value *y) { return one(g, op, 2, (Value *[]){ x, y }); }

static bool complains(const Graph *g, const char *about)
{
    const char *wrong = p2o_graph_check(g);
    if (!wrong || !strstr(wrong, about))
        printf("  check says: %s\n", wrong ? wrong : "nothing");
    return wrong && strstr(wrong, about);
}

static void check_building(void)
{
    Graph *g = fresh_graph(NULL);
    Value *x = float_input(g, "x"), *y = apply2(g, ONNX_Add, x, x), *z = apply1(g, ONNX_Relu, y);
    CHECK(x->def == NULL && x->graph == g && x->id == 0);
    CHECK(x->uses.n == 2 && x->uses.at[0] == y->def && x->uses.at[1] == y->def);
    CHECK(y->uses.n == 1 && y->uses.at[0] == z->def && y->out_index == 0);
    CHECK(y->dtype == DT_F32 && p2o_shape_same(y->shape, x->shape));
    CHECK(g->first == y->def && g->last == z->def && g->first->next == g->last);
    CHECK(g->nvalue == 3 && p2o_graph_root(g) == g);
    CHECK(!p2o_value_is_output(z));
    p2o_graph_output(g, z);
    CHECK(p2o_value_is_output(z) && !p2o_value_is_output(y));
    p2o_graph_output(g, z);                             /* twice: through an Identity */
    CHECK(g->outputs.n == 2 && g->outputs.at[1] != z && g->outputs.at[1]->def->op == ONNX_Identity);
    p2o_graph_meta(g, "k", "v");
    CHECK(g->meta.n == 2 && same(g->meta.at[0], "k") && same(g->meta.at[1], "v"));
    CHECK(p2o_graph_check(g) == NULL);
}

static void check_contents(void)
{
    Graph  *g = fresh_graph(NULL);
    int64_t v[300] = { 5, -1, 7 }, c = 0;
    int32_t w[2] = { -3, 9 };
    Value  *few = p2o_graph_init(g, NULL, p2o_tensor_ints(arena, 1, v, 3));
    CHECK(few->nints == 3 && p2o_dim_is_int(few->ints[1], &c) && c == -1);
    Value *scalar = p2o_graph_init(g, NULL, p2o_tensor_ints(arena, 0, v, 1));
    CHECK(scalar->nints == 1 && scalar->shape.rank == 0 && p2o_dim_is_int(scalar->ints[0], &c) &&
          c == 5);
    CHECK(p2o_graph_init(g, NULL, p2o_tensor_ints(arena, 1, v, 256))->nints == 256);
    CHECK(p2o_graph_init(g, NULL, p2o_tensor_ints(arena, 1, v, 257))->ints == NULL);
    Value *none = p2o_graph_init(g, NULL, p2o_tensor_ints(arena, 1, v, 0));
    CHECK(none->ints != NULL && none->nints == 0);
    CHECK(p2o_graph_init(g, NULL, p2o_tensor_make(arena, DT_I64, 2, (int64_t[]){ 1, 2 },
                                                  v))->ints == NULL);
    Value *narrow = p2o_graph_init(g, NULL, p2o_tensor_make(arena, DT_I32, 1, (int64_t[]){ 2 }, w));
    CHECK(narrow->nints == 2 && p2o_dim_is_int(narrow->ints[0], &c) && c == -3);
    CHECK(p2o_graph_init(g, NULL, p2o_tensor_scalar(arena, DT_F32, 1, 0, true))->ints == NULL);

    /* a stored vector that cannot be read has no contents */
    Tensor  lost = *few->tensor;
    Storage cut = *lost.storage;
    cut.nbytes = 8;
    cut.source = p2o_source_memory(arena, v, 8);
    lost.storage = &cut;
    CHECK(p2o_graph_init(g, NULL, &lost)->ints == NULL);
}

static void check_inputs_and_attrs(void)
{
    Graph *g = fresh_graph(NULL);
    Value *x = float_input(g, "x");
    Value *hi = p2o_graph_init(g, NULL, p2o_tensor_scalar(arena, DT_F32, 6, 0, true));
    Value *in[] = { x, NULL, hi, NULL };
    Attr   attrs[] = { attr_int("axis", -1), attr_str("mode", "linear") };
    Node  *clip = p2o_graph_node(g, ONNX_Clip, 3, in, 0, NULL, 1, 0);
    CHECK(clip->nin == 3 && clip->in[1] == NULL && clip->out[0]->dtype == DT_F32);
    in[1] = in[0];
    CHECK(clip->in[1] == NULL);                         /* copied */
    in[1] = NULL;
    in[2] = NULL;
    CHECK(p2o_graph_node(g, ONNX_Clip, 3, in, 0, NULL, 1, 0)->nin == 1);
    Node *soft = p2o_graph_node(g, ONNX_Softmax, 1, in, 2, attrs, 1, 0);
    CHECK(p2o_node_int(soft, "axis", 5) == -1 && p2o_node_int(soft, "none", 5) == 5);
    CHECK(p2o_node_int(soft, "mode", 5) == 5);          /* of another kind */
    CHECK(same(p2o_node_attr(soft, "mode")->s, "linear") && !p2o_node_attr(soft, "axes"));
    CHECK(p2o_graph_check(g) == NULL);
}

/* A wrong lowering is reported once, not again for what is built on it. */
static void check_poison(void)
{
    Graph *g = fresh_graph(NULL);
    Value *x = float_input(g, "x"), *i = p2o_graph_input(g, "i", DT_I64, (Shape){ 0 });
    size_t before = p2o_diags_errors(diags);
    Value *bad = apply2(g, ONNX_Add, x, i);
    CHECK(bad->dtype == DT_NONE && p2o_diags_errors(diags) == before + 1);
    const Diag *d = p2o_diags_at(diags, p2o_diags_count(diags) - 1);
    CHECK(d->kind == DIAG_INTERNAL);
    CHECK(strstr(d->text, "Add") && strstr(d->text, "f32[b, 4]") && strstr(d->text, "i64[]"));
    CHECK(apply1(g, ONNX_Relu, bad)->dtype == DT_NONE && p2o_diags_errors(diags) == before + 1);
    CHECK(p2o_graph_node(g, ONNX_Relu, 1, &x, 0, NULL, 2, 0)->out[1]->dtype == DT_NONE);
    CHECK(p2o_diags_errors(diags) == before + 2);
    CHECK(p2o_graph_check(g) == NULL);
}

static void check_editing(void)
{
    Graph *g = fresh_graph(NULL);
    Value *x = float_input(g, "x"), *a = apply1(g, ONNX_Relu, x), *b = apply1(g, ONNX_Tanh, x);
    Value *sum = apply2(g, ONNX_Add, a, a), *mix = apply2(g, ONNX_Mul, b, a);
    p2o_graph_output(g, a);
    p2o_graph_output(g, sum);
    p2o_graph_output(g, mix);
    p2o_value_replace(a, b);
    CHECK(a->uses.n == 0 && b->uses.n == 4 && !p2o_value_is_output(a) && p2o_value_is_output(b));
    CHECK(sum->def->in[0] == b && sum->def->in[1] == b && mix->def->in[1] == b);
    CHECK(p2o_graph_check(g) == NULL);
    p2o_value_replace(b, b);
    CHECK(b->uses.n == 4 && p2o_graph_check(g) == NULL);
    CHECK(g->first == a->def);
    p2o_node_remove(a->def);                            /* the first */
    CHECK(g->first == b->def && b->def->prev == NULL && x->uses.n == 1 &&
          p2o_graph_check(g) == NULL);
    Value *y = apply1(g, ONNX_Exp, x), *z = apply1(g, ONNX_Exp, y);
    p2o_value_replace(mix, sum);
    p2o_node_remove(mix->def);                          /* in the middle */
    CHECK(sum->def->next == y->def && y->def->prev == sum->def && b->uses.n == 2);
    p2o_node_remove(z->def);                            /* the last */
    p2o_node_remove(y->def);
    CHECK(g->last == sum->def && g->last->next == NULL && x->uses.n == 1);
    CHECK(g->outputs.n == 3 && g->outputs.at[2] == sum && p2o_graph_check(g) == NULL);
}

static Value *make_if(Graph *g, Value *c, Graph *yes, Graph *no)
{
    Attr attrs[] = { attr_graph("then_branch", yes), attr_graph("else_branch", no) };
    return p2o_graph_node(g, ONNX_If, 1, &c, 2, attrs, 1, 0)->out[0];
}

static void check_bodies(void)
{
    Graph *g = fresh_graph(NULL), *yes = fresh_graph(g), *no = fresh_graph(g),
          *deep = fresh_graph(yes);
    Value *x = float_input(g, "x"), *c = p2o_graph_input(g, "c", DT_BOOL, (Shape){ 0 });
    Graph *deep_no = fresh_graph(yes);
    p2o_graph_output(deep, apply1(deep, ONNX_Relu, x));
    p2o_graph_output(deep_no, apply1(deep_no, ONNX_Tanh, x));
    p2o_graph_output(yes, make_if(yes, c, deep, deep_no));
    p2o_graph_output(no, x);                            /* through an Identity */
    Value *y = make_if(g, c, yes, no);
    CHECK(no->first->op == ONNX_Identity && no->outputs.at[0]->graph == no);
    CHECK(x->uses.n == 3 && c->uses.n == 2 && y->dtype == DT_F32);
    CHECK(p2o_graph_root(deep) == g && p2o_graph_encloses(g, deep) &&
          p2o_graph_encloses(deep, deep));
    CHECK(!p2o_graph_encloses(deep, g) && !p2o_graph_encloses(no, deep));
    CHECK(g->nvalue == 7 && deep->nvalue == 0);         /* ids are the outermost graph's */
    CHECK(p2o_graph_check(g) == NULL);
    Value *other = apply1(g, ONNX_Exp, x);
    CHECK(p2o_graph_check(g) == NULL);
    p2o_value_replace(x, other);                        /* now used before it is defined */
    CHECK(complains(g, "before its definition"));
    p2o_value_replace(other, x);
    CHECK(p2o_graph_check(g) == NULL);
    p2o_node_remove(y->def);                            /* with all its bodies */
    CHECK(x->uses.n == 1 && c->uses.n == 0 && p2o_graph_check(g) == NULL);
}

static void check_invariants(void)
{
    Graph *g = fresh_graph(NULL), *other = fresh_graph(NULL);
    Value *x = float_input(g, "x"), *y = apply1(g, ONNX_Relu, x), *z = apply1(g, ONNX_Relu, y);
    Value *alien = float_input(other, "alien");
    p2o_graph_output(g, z);
    CHECK(p2o_graph_check(g) == NULL);

    y->def->in[0] = NULL;
    CHECK(complains(g, "1 uses listed, 0 found"));
    y->def->in[0] = alien;
    CHECK(complains(g, "before its definition"));
    y->def->in[0] = z;
    CHECK(complains(g, "before its definition"));
    y->def->in[0] = x;

    x->uses.at[0] = z->def;
    CHECK(complains(g, "that is none"));
    x->uses.at[0] = y->def;

    y->name = "x";
    CHECK(complains(g, "taken twice"));
    y->name = NULL;

    z->def->prev = NULL;
    CHECK(complains(g, "not linked"));
    z->def->prev = y->def;
    y->out_index = 1;
    CHECK(complains(g, "another definition"));
    y->out_index = 0;
    g->outputs.at[0] = alien;
    CHECK(complains(g, "output alien"));
    g->outputs.at[0] = z;
    CHECK(p2o_graph_check(g) == NULL);
}

/* The bodies of one If may use a name each; a body may not reuse one from around it. */
static void check_names(void)
{
    Graph *g = fresh_graph(NULL), *yes = fresh_graph(g), *no = fresh_graph(g);
    Value *x = float_input(g, "x"), *c = p2o_graph_input(g, "c", DT_BOOL, (Shape){ 0 });
    Value *a = apply1(yes, ONNX_Relu, x), *b = apply1(no, ONNX_Exp, x);
    a->name = b->name = "r";
    p2o_graph_output(yes, a);
    p2o_graph_output(no, b);
    make_if(g, c, yes, no);
    CHECK(p2o_graph_check(g) == NULL);
    b->name = "x";
    CHECK(complains(g, "name x"));
}

/* Costs grow with the graph, not with its square: this many would not finish otherwise. */
static void check_long(void)
{
    enum { LENGTH = 200000 };
    Graph *g = fresh_graph(NULL);
    Value *x = float_input(g, "x"), *bias = float_input(g, "bias"), *v = x;
    for (int i = 0; i < LENGTH; i++)
        v = apply2(g, ONNX_Add, v, bias);
    CHECK(bias->uses.n == LENGTH && p2o_graph_check(g) == NULL);
    for (Node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        p2o_node_remove(n);
    }
    CHECK(bias->uses.n == 0 && !g->first && !g->last && p2o_graph_check(g) == NULL);
}

static bool prints(const Graph *g, bool with_types, const char *want)
{
    const char *got = p2o_graph_text(g, with_types);
    if (!same(got, want))
        printf("--- got\n%s--- not\n%s---\n", got, want);
    return same(got, want);
}

static void check_text(void)
{
    Graph  *g = fresh_graph(NULL);
    Dim     at[] = { p2o_dim_sym(dims, "b"), p2o_dim_int(dims, 4), p2o_dim_int(dims, 8) };
    Value  *x = p2o_graph_input(g, "x", DT_F32, shape_of(3, at));
    float  *zeros = NEW_N(arena, float, 128);
    int64_t perm[] = { 1, 0 }, to[] = { 0, -1 };
    Value  *w = p2o_graph_init(g, "w", p2o_tensor_make(arena, DT_F32, 2, (int64_t[]){ 16, 8 },
                                                       zeros));
    Attr    attr = attr_ints("perm", perm, 2);
    Value  *wt = p2o_graph_node(g, ONNX_Transpose, 1, &w, 1, &attr, 1, 0)->out[0];
    Value  *y = apply2(g, ONNX_MatMul, x, wt);
    y->name = "y";
    Value *flat = apply2(g, ONNX_Reshape, y,
                         p2o_graph_init(g, NULL, p2o_tensor_ints(arena, 1, to, 2)));
    Value *k = p2o_graph_init(g, NULL, p2o_tensor_make(arena, DT_F32, 1, (int64_t[]){ 64 }, zeros));
    Value *sum = apply2(g, ONNX_Add, flat, k), *again = apply2(g, ONNX_Mul, sum, k);
    Value *in[] = { again, NULL,
                    p2o_graph_init(g, NULL, p2o_tensor_scalar(arena, DT_F32, 2.5, 0, true)) };
    p2o_graph_output(g, y);
    p2o_graph_output(g, one(g, ONNX_Clip, 3, in));
    CHECK(prints(g, false, "%0 = Transpose(w, perm=[1, 0])\n"
                           "y = MatMul(x, %0)\n"
                           "%1 = Reshape(y, [0, -1])\n"
                           "%2 = const f32[64]\n"
                           "%3 = Add(%1, %2)\n"
                           "%4 = Mul(%3, %2)\n"
                           "%5 = Clip(%4, _, 2.5:f32)\n"
                           "return y, %5\n"));
    CHECK(prints(g, true, "%0 = Transpose(w, perm=[1, 0])          # f32[8, 16]\n"
                          "y = MatMul(x, %0)                       # f32[b, 4, 16]\n"
                          "%1 = Reshape(y, [0, -1])                # f32[b, 64]\n"
                          "%2 = const f32[64]\n"
                          "%3 = Add(%1, %2)                        # f32[b, 64]\n"
                          "%4 = Mul(%3, %2)                        # f32[b, 64]\n"
                          "%5 = Clip(%4, _, 2.5:f32)               # f32[b, 64]\n"
                          "return y, %5\n"));
}

static void check_literals(void)
{
    Graph   *g = fresh_graph(NULL);
    int64_t  two[] = { 1, 2 }, pair[] = { 2, 1 }, none[] = { 0, 3 }, cube[] = { 2, 2, 2 };
    uint8_t  bits[8] = { 1, 0, 1, 1, 0, 0, 1, 0 };
    double   d = 0.1;
    float    f[2] = { 1, 1e30f };
    Tensor  *t[] = {
        p2o_tensor_ints(arena, 0, two, 1),
        p2o_tensor_make(arena, DT_I64, 2, two, two),
        p2o_tensor_make(arena, DT_I64, 2, pair, two),
        p2o_tensor_make(arena, DT_BOOL, 1, (int64_t[]){ 2 }, bits),
        p2o_tensor_make(arena, DT_U8, 3, cube, bits),
        p2o_tensor_make(arena, DT_F64, 0, NULL, &d),
        p2o_tensor_make(arena, DT_F32, 1, (int64_t[]){ 2 }, f),
        p2o_tensor_make(arena, DT_F32, 2, none, f),
        p2o_tensor_make(arena, DT_I64, 1, none, f),
        p2o_tensor_make(arena, DT_BOOL, 1, none, f),
        p2o_tensor_scalar(arena, DT_BF16, 0.5, 0, true),
    };
    for (size_t i = 0; i < COUNT_OF(t); i++)
        apply1(g, ONNX_Identity, p2o_graph_init(g, NULL, t[i]));
    const char *strs[] = { "a", "b\"\\\n" };
    float       fs[] = { 1, 0.25f };
    Attr        attrs[] = { attr_int("i", -3), attr_float("f", 2), attr_str("s", "q"),
                            attr_strs("ss", strs, 2),
                            attr_floats("fs", fs, 2), attr_tensor("t", t[0]),
                                attr_ints("is", two, 0) };
    Value *x = float_input(g, "x");
    p2o_graph_output(g, p2o_graph_node(g, ONNX_Relu, 1, &x, 7, attrs, 1, 0)->out[0]);
    CHECK(prints(g, false, "%0 = Identity(1)\n"
                           "%1 = Identity([[1, 2]])\n"
                           "%2 = Identity([[1], [2]])\n"
                           "%3 = Identity([true, false])\n"
                           "%4 = Identity([[[1, 0], [1, 1]], [[0, 0], [1, 0]]]:u8)\n"
                           "%5 = Identity(0.1:f64)\n"
                           "%6 = Identity([1, 1e+30]:f32)\n"
                           "%7 = Identity([]:f32[0, 3])\n"
                           "%8 = Identity([])\n"
                           "%9 = Identity([]:bool)\n"
                           "%10 = Identity(0.5:bf16)\n"
                           "%11 = Relu(x, i=-3, f=2.0, s=\"q\", ss=[\"a\", "
                           "\"b\\\"\\\\\\x0a\"], fs=[1.0, 0.25], t=1, is=[])\n"
                           "return %11\n"));
}

static void check_body_text(void)
{
    Graph *g = fresh_graph(NULL), *body = fresh_graph(g);
    Value *x = float_input(g, "x"), *n = p2o_graph_input(g, "n", DT_I64, (Shape){ 0 });
    float *zeros = NEW_N(arena, float, 4 * 4);
    p2o_graph_input(body, "i", DT_I64, (Shape){ 0 });
    Value *c = p2o_graph_input(body, "c", DT_BOOL, (Shape){ 0 }), *acc = float_input(body, NULL);
    Value *k = p2o_graph_init(g, NULL, p2o_tensor_make(arena, DT_F32, 2, (int64_t[]){ 4, 4 },
                                                       zeros));
    Value *next = apply2(body, ONNX_MatMul, acc, k);
    p2o_graph_output(body, apply1(body, ONNX_Identity, c));
    p2o_graph_output(body, next);
    Value *in[] = { n, NULL, x };
    Attr   attr = attr_graph("body", body);
    Node  *loop = p2o_graph_node(g, ONNX_Loop, 3, in, 1, &attr, 1, 0);
    p2o_graph_output(g, loop->out[0]);
    CHECK(prints(g, true, "%2 = const f32[4, 4]\n"
                          "%0 = Loop(n, _, x, body=(i, c, %1) {\n"
                          "    %3 = MatMul(%1, %2)                 # f32[b, 4]\n"
                          "    %4 = Identity(c)                    # bool[]\n"
                          "    return %4, %3\n"
                          "})                                      # f32[b, 4]\n"
                          "return %0\n"));
    CHECK(prints(g, true, p2o_graph_text(g, true)));    /* printing leaves no trace */
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    diags = p2o_diags_new(arena, NULL, NULL);
    dims = p2o_dims_new(arena);
    check_building();
    check_contents();
    check_inputs_and_attrs();
    check_poison();
    check_editing();
    check_bodies();
    check_invariants();
    check_names();
    check_long();
    check_text();
    check_literals();
    check_body_text();
    p2o_arena_free(arena);
    return check_report();
}
