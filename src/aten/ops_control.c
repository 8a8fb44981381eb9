/* Control flow: operators whose arguments are bodies.
 *
 * A body is typed by its operands and lowered into a graph of its own.  It sees the values around
 * it, so operands that stay the same need no input: only what goes round a loop has one.  Sizes
 * that a branch or a round may change are symbols known at run time.  Operators that merely run
 * their body are gone: its calls stand in their place (aten/functional.c). */
#include "aten/lower.h"

static Body *body_arg(const Call *c, const char *name) { return p2o_call_arg(c, name)->body; }
static Type  type_returned(const Body *b, int i) { return p2o_arg_type(&b->outputs.at[i]); }

/* Types of operand lists, one after the other. */
typedef struct Operands {
    Type *at;
    int   n;
} Operands;

static void add_operands(Infer *in, Operands *o, const Call *c, const char *list)
{
    int   more = list_len(c, list);
    Type *at = NEW_N(in->arena, Type, (size_t)(o->n + more) + 1);
    for (int i = 0; i < o->n; i++)
        at[i] = o->at[i];
    for (int i = 0; i < more; i++)
        at[o->n + i] = type_item(c, list, i);
    *o = (Operands){ at, o->n + more };
}

static bool must_take(Infer *in, const Body *b, int ninput, int noutput)
{
    if (b->inputs.n == (size_t)ninput && b->outputs.n == (size_t)noutput)
        return true;
    rule_fail(in, "'%s' takes %zu values and returns %zu, expected %d and %d", b->name, b->inputs.n,
              b->outputs.n, ninput, noutput);
    return false;
}

/* Sizes in two places that a value may come from.  Those still open are taken to be equal where the
 * captures say so. */
static bool is_same_size(Infer *in, const Call *c, Dim a, Dim b)
{
    int64_t x, y;
    if (p2o_dim_eq(in->dims, p2o_resolve(in->bind, a), p2o_resolve(in->bind, b)) == YES)
        return true;
    if (!has_open(in, a) && !has_open(in, b))
        return false;
    for (int k = 0; k < p2o_ncapture(in->bind); k++)
        if (!p2o_hint_at(in->bind, a, k, &x) || !p2o_hint_at(in->bind, b, k, &y) || x != y)
            return false;
    return must_equal(in, c, a, b, "sizes");
}

static bool must_be_alike(Infer *in, Type a, Type b, const char *what, int i)
{
    if (a.kind == b.kind &&
        (a.kind != TY_TENSOR || (a.dtype == b.dtype && a.shape.rank == b.shape.rank)))
        return true;
    if (a.kind != TY_TENSOR || b.kind != TY_TENSOR)
        rule_unsupported(in, "%s %d is of two kinds", what, i);
    else
        rule_unsupported(in, "%s %d is %s of rank %d or %s of rank %d", what, i,
                         p2o_dtype_text(a.dtype), a.shape.rank, p2o_dtype_text(b.dtype),
                         b.shape.rank);
    return false;
}

static void set_number(Infer *in, const Call *c, int i, TypeKind kind, Dim value)
{
    if (kind == TY_INT)
        set_int(in, c, i, value);
    else if (kind == TY_FLOAT)
        set_float(in, c, i);
    else if (kind == TY_BOOL)
        set_bool(in, c, i);
}

/* What one branch or the other gives. */
static void set_either(Infer *in, const Call *c, int i, Type a, Type b)
{
    if (!c->outs[i] || !must_be_alike(in, a, b, "result", i))
        return;
    if (a.kind != TY_TENSOR) {
        set_number(in, c, i, a.kind,
                   a.kind == TY_INT && is_same_size(in, c, a.value, b.value) ? a.value : NULL);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, a.shape, 0);
    for (int k = 0; k < a.shape.rank; k++)
        if (!is_same_size(in, c, a.shape.at[k], b.shape.at[k]))
            at[k] = data_dim(in, c, i, k);
    set_out(in, c, i, a.dtype, (Shape){ a.shape.rank, at });
}

static bool must_decide(Infer *in, Type t)
{
    int64_t n;
    if (t.dtype != DT_BOOL)
        rule_fail(in, "the condition is %s, expected bool", p2o_dtype_text(t.dtype));
    else if (p2o_dim_is_int(shape_nelem(in->dims, t.shape), &n) && n != 1)
        rule_fail(in, "the condition has %lld elements, expected 1", (long long)n);
    return !in->failed;
}

static void shape_cond(Infer *in, const Call *c)
{
    const Body *yes = body_arg(c, "true_fn"), *no = body_arg(c, "false_fn");
    Operands    given = { 0 };
    add_operands(in, &given, c, "operands");
    if (!must_decide(in, type_arg(c, "pred")) || !must_take(in, yes, given.n, c->nouts) ||
        !must_take(in, no, given.n, c->nouts) || !infer_body(in, yes, given.at) ||
        !infer_body(in, no, given.at))
        return;
    for (int i = 0; i < c->nouts; i++)
        set_either(in, c, i, type_returned(yes, i), type_returned(no, i));
}

/* The next round's type of a carried value, given what this round's body returns: sizes that change
 * become symbols.  true: one did. */
static bool widen(Infer *in, const Call *c, const Var *input, Type back, Type *t)
{
    bool widened = false;
    for (int k = 0; t->kind == TY_TENSOR && k < t->shape.rank; k++) {
        Dim size = t->shape.at[k];
        if (is_same_size(in, c, size, back.shape.at[k]))
            continue;
        Dim any = round_dim(in, input, k);
        widened |= any != size;
        t->shape = with_dim(in, t->shape, k, any);
    }
    return widened;
}

/* Types under which every round's body is right.  false after a diagnostic. */
static bool settle_rounds(Infer *in, const Call *c, const Body *b, Type *types, int ncarried)
{
    bool changed = true;
    for (int i = 0; i < ncarried; i++) {
        if (types[i].kind == TY_INT)
            types[i].value = round_int(in, b->inputs.at[i]);
        if (types[i].kind == TY_TENSOR || types[i].kind == TY_INT)
            continue;
        rule_unsupported(in, "carried value %d is neither a tensor nor an int", i);
        return false;
    }
    while (changed) {                       /* each time a size more is a symbol: it ends */
        changed = false;
        if (!infer_body(in, b, types))
            return false;
        for (int i = 0; i < ncarried; i++) {
            if (!must_be_alike(in, types[i], type_returned(b, i), "carried value", i))
                return false;
            changed |= widen(in, c, b->inputs.at[i], type_returned(b, i), &types[i]);
        }
        if (in->failed)
            return false;
    }
    return true;
}

/* A size that no round changes is what it was before.  One that does may be anything. */
static void set_carried(Infer *in, const Call *c, int i, Type start, Type t)
{
    if (t.kind == TY_INT) {
        set_int(in, c, i, NULL);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, start.shape, 0);
    for (int k = 0; k < start.shape.rank; k++) {
        if (is_same_size(in, c, start.shape.at[k], t.shape.at[k]))
            continue;
        Dim later = p2o_resolve(in->bind, t.shape.at[k]);
        if (!p2o_dim_is_sym(later))
            rule_unsupported(in, "axis %d of carried value %d is %s at first, later %s", k, i,
                             p2o_dim_text(in->dims, start.shape.at[k]),
                             p2o_dim_text(in->dims, later));
        at[k] = data_dim(in, c, i, k);
    }
    set_out(in, c, i, start.dtype, (Shape){ start.shape.rank, at });
}

static void shape_while_loop(Infer *in, const Call *c)
{
    const Body *cond = body_arg(c, "cond_fn"), *body = body_arg(c, "body_fn");
    int         n = list_len(c, "carried_inputs");
    Operands    given = { 0 };
    add_operands(in, &given, c, "carried_inputs");
    add_operands(in, &given, c, "additional_inputs");
    if (!must_take(in, cond, given.n, 1) || !must_take(in, body, given.n, n) || c->nouts != n ||
        !settle_rounds(in, c, body, given.at, n) || !infer_body(in, cond, given.at))
        return;
    for (int i = 0; must_decide(in, type_returned(cond, 0)) && i < n; i++)
        set_carried(in, c, i, type_item(c, "carried_inputs", i), given.at[i]);
}

/* Operators that go along the first axis of some operands. */
typedef struct Scanning {
    const char *body, *init, *along, *rest;     /* arguments; init may be NULL */
} Scanning;

static const Scanning scan_args = { "combine_fn", "init", "xs", "additional_inputs" };
static const Scanning map_args = { "f", NULL, "xs", "pos_args" };

static int ncarried(const Call *c, const Scanning *s) { return s->init ? list_len(c, s->init) : 0; }

/* All operands that are gone along have the same length. */
static bool take_slices(Infer *in, const Call *c, const Scanning *s, Type *at, Dim *length)
{
    for (int i = 0; i < list_len(c, s->along); i++) {
        if (at[i].kind != TY_TENSOR || at[i].shape.rank == 0) {
            rule_fail(in, "operand %d has no axis to go along", i);
            return false;
        }
        if (i && !must_equal(in, c, *length, at[i].shape.at[0], "lengths"))
            return false;
        *length = i ? *length : at[i].shape.at[0];
        at[i].shape = without_dim(in, at[i].shape, 0);
    }
    if (*length)
        return true;
    rule_fail(in, "nothing to go along");
    return false;
}

static void shape_scanning(Infer *in, const Call *c, const Scanning *s)
{
    const Body *body = body_arg(c, s->body);
    int         n = ncarried(c, s);
    Dim         length = NULL;
    Operands    given = { 0 };
    if (s->init)
        add_operands(in, &given, c, s->init);
    add_operands(in, &given, c, s->along);
    add_operands(in, &given, c, s->rest);
    if (!take_slices(in, c, s, given.at + n, &length) || c->nouts < n ||
        !must_take(in, body, given.n, c->nouts) || !infer_body(in, body, given.at))
        return;
    for (int i = 0; i < c->nouts; i++) {
        Type t = type_returned(body, i);
        if (t.kind != TY_TENSOR || (i < n && given.at[i].kind != TY_TENSOR)) {
            rule_unsupported(in, "result %d is no tensor", i);
            return;
        }
        if (i >= n) {
            set_out(in, c, i, t.dtype, insert_dim(in, t.shape, 0, length));
            continue;
        }
        if (!must_be_alike(in, given.at[i], t, "carried value", i))
            return;
        for (int k = 0; k < t.shape.rank; k++)
            if (!must_equal(in, c, given.at[i].shape.at[k], t.shape.at[k], "carried sizes"))
                return;
        set_out(in, c, i, t.dtype, given.at[i].shape);
    }
}

static void shape_scan(Infer *in, const Call *c) { shape_scanning(in, c, &scan_args); }
static void shape_map(Infer *in, const Call *c) { shape_scanning(in, c, &map_args); }

/* A graph inside the one being filled. */
static Builder *inner_builder(Lower *lo, const Body *b)
{
    Graph *g = p2o_graph_new(lo->arena, lo->diags, lo->dims, lo->opset, lo->b->graph);
    g->name = b->name;
    return p2o_builder_new(g, lo->b);
}

/* Inputs and constants are no results of a body: ONNX Runtime wants a node. */
static void give_back(Lower *lo, Graph *g, Value *v)
{
    if (!v->def)
        v = p2o_graph_node(g, ONNX_Identity, 1, &v, 0, NULL, 1, lo->b->loc)->out[0];
    p2o_graph_output(g, v);
}

/* Values of an operand list; sizes are known by their Dims. */
static void operand_values(Lower *lo, const Call *c, const char *list, Value **out)
{
    for (int i = 0; i < list_len(c, list); i++) {
        Type t = type_item(c, list, i);
        out[i] = t.kind == TY_INT || t.kind == TY_NONE
                     ? NULL
                     : p2o_arg_value(lo, &p2o_call_arg(c, list)->items[i],
                                     t.kind == TY_FLOAT ? DT_F64 : t.dtype);
    }
}

static Value *as_scalar(Lower *lo, Builder *b, Value *v)
{
    Builder *outer = lo->b;
    lo->b = b;
    v = reshape(lo, v, (Shape){ 0 });
    lo->b = outer;
    return v;
}

/* Results that somebody may use; sizes that both branches agree on need no value. */
static bool needs_value(const Call *c, const Body *yes, const Body *no, int i)
{
    Type a = type_returned(yes, i), b = type_returned(no, i);
    return c->outs[i] && !(a.kind == TY_INT && a.value == b.value);
}

static Graph *lower_branch(Lower *lo, const Call *c, const Body *b, const bool *needed)
{
    Builder *inner = inner_builder(lo, b);
    Value  **in = NEW_N(lo->arena, Value *, b->inputs.n + 1),
          **out = NEW_N(lo->arena, Value *, b->outputs.n + 1);
    operand_values(lo, c, "operands", in);
    if (!p2o_lower_body(lo, inner, b, in, out))
        return NULL;
    for (size_t i = 0; i < b->outputs.n; i++)
        if (needed[i])
            give_back(lo, inner->graph, out[i]);
    return inner->graph;
}

static void lower_cond(Lower *lo, const Call *c, Value **out)
{
    const Body *yes = body_arg(c, "true_fn"), *no = body_arg(c, "false_fn");
    bool       *needed = NEW_N(lo->arena, bool, (size_t)c->nouts + 1);
    int         n = 0;
    Value      *pred = as_scalar(lo, lo->b, tensor_arg(lo, c, "pred"));
    for (int i = 0; i < c->nouts; i++)
        n += needed[i] = needs_value(c, yes, no, i);
    if (n == 0)
        return;
    Graph *then_graph = lower_branch(lo, c, yes, needed),
          *else_graph = lower_branch(lo, c, no, needed);
    if (!then_graph || !else_graph) {
        lo->failed = true;
        return;
    }
    Value **all = NEW_N(lo->arena, Value *, (size_t)n);
    p2o_build_many(
        lo->b, ONNX_If,
        ATTRS(attr_graph("then_branch", then_graph), attr_graph("else_branch", else_graph)),
        INPUTS(pred), n, all);
    for (int i = 0, k = 0; i < c->nouts; i++)
        if (needed[i])
            out[i] = all[k++];
}

static Value *graph_input_for(Lower *lo, Graph *g, const Var *v)
{
    return p2o_graph_input(g, unique_name(lo, v->name), v->type.dtype, v->type.shape);
}

/* Whether another round follows, given its values. */
static Value *lower_test(Lower *lo, Builder *b, const Body *cond, Value *const *in)
{
    Value *test;
    return p2o_lower_body(lo, b, cond, in, &test) ? as_scalar(lo, b, test) : NULL;
}

/* The condition is computed twice: before the loop, and at the end of each round with its results.
 * In either place the body's symbols stand for other sizes than elsewhere, so each has a builder of
 * its own. */
static void lower_while_loop(Lower *lo, const Call *c, Value **out)
{
    const Body *cond = body_arg(c, "cond_fn"), *body = body_arg(c, "body_fn");
    int         n = list_len(c, "carried_inputs");
    Builder    *inner = inner_builder(lo, body);
    Graph      *g = inner->graph;
    Value     **start = NEW_N(lo->arena, Value *, (size_t)n + 2),
          **next = NEW_N(lo->arena, Value *, (size_t)n + 1);
    Value     **in = NEW_N(lo->arena, Value *, body->inputs.n + 1);

    if (n == 0)
        return;
    operand_values(lo, c, "additional_inputs", in + n);
    for (int i = 0; i < n; i++)
        start[2 + i] = in[i] = tensor_item(lo, c, "carried_inputs", i);
    start[1] = lower_test(lo, p2o_builder_new(lo->b->graph, lo->b), cond, in);
    p2o_graph_input(g, unique_name(lo, "round"), DT_I64, (Shape){ 0 });
    p2o_graph_input(g, unique_name(lo, "go_on"), DT_BOOL, (Shape){ 0 });
    for (int i = 0; i < n; i++)
        in[i] = graph_input_for(lo, g, body->inputs.at[i]);
    if (!start[1] || !p2o_lower_body(lo, inner, body, in, next)) {
        lo->failed = true;
        return;
    }
    for (int i = 0; i < n; i++)
        in[i] = next[i];
    Value *again = lower_test(lo, p2o_builder_new(g, lo->b), cond, in);
    if (!again)
        return;
    give_back(lo, g, again);
    for (int i = 0; i < n; i++)
        give_back(lo, g, next[i]);
    p2o_build_many(lo->b, ONNX_Loop, ATTRS(attr_graph("body", g)), n + 2, start, n, out);
}

static void lower_scanning(Lower *lo, const Call *c, const Scanning *s, Value **out)
{
    const Body *body = body_arg(c, s->body);
    int         n = ncarried(c, s), nalong = list_len(c, s->along), nin = n + nalong;
    Builder    *inner = inner_builder(lo, body);
    Value     **given = NEW_N(lo->arena, Value *, body->inputs.n + 1);
    Value     **in = NEW_N(lo->arena, Value *, body->inputs.n + 1);
    Value     **back = NEW_N(lo->arena, Value *, (size_t)c->nouts + 1);

    if (c->nouts == 0)
        return;
    if (s->init)
        operand_values(lo, c, s->init, given);
    operand_values(lo, c, s->along, given + n);
    operand_values(lo, c, s->rest, in + nin);
    for (int i = 0; i < nin; i++)
        in[i] = graph_input_for(lo, inner->graph, body->inputs.at[i]);
    if (!p2o_lower_body(lo, inner, body, in, back))
        return;
    for (int i = 0; i < c->nouts; i++)
        give_back(lo, inner->graph, back[i]);
    p2o_build_many(lo->b, ONNX_Scan,
                   ATTRS(attr_graph("body", inner->graph), attr_int("num_scan_inputs", nalong)),
                   nin, given, c->nouts, out);
}

static void lower_scan(Lower *lo, const Call *c, Value **out)
{
    lower_scanning(lo, c, &scan_args, out);
}
static void lower_map(Lower *lo, const Call *c, Value **out)
{
    lower_scanning(lo, c, &map_args, out);
}

const AtenOp p2o_ops_control[] = {
    { "higher_order::cond(any pred, Body true_fn, Body false_fn, any[] operands) -> any[]",
      shape_cond, .lower_many = lower_cond,
      .limits = "both bodies' results of one type; no writes to operands" },
    { "higher_order::while_loop(Body cond_fn, Body body_fn, any[] carried_inputs, any[] additional_inputs) -> any[]",
      shape_while_loop, .lower_many = lower_while_loop,
      .limits = "carried tensors of fixed type and rank" },
    { "higher_order::scan(Body combine_fn, any[] init, any[] xs, any[] additional_inputs) -> any[]",
      shape_scan, .lower_many = lower_scan, .limits = "carried tensors of fixed shape" },
    { "higher_order::map_impl(Body f, any[] xs, any[] pos_args) -> any[]", shape_map,
      .lower_many = lower_map },
    { "_print(str s) -> ()", p2o_rule_none, .limits = "prints nothing" },
    { 0 },
};
