/* Rules of recurrent layers, control flow and sequences.
 *
 * A body is typed before the node that holds it: its inputs are declared, its nodes have types.
 * What leaves an If or goes round a Loop has the type that joins both sides: equal dims stay,
 * others become fresh symbols. */
#include "onnx/onnx_rules.h"

bool p2o_onnx_rule_rnn(Graph *g, Node *n)
{
    const Value *x = n->in[0], *w = n->in[1], *r = n->in[2];
    bool         both = p2o_onnx_str_is(n, "direction", "forward", "bidirectional");
    int64_t      layout = p2o_node_int(n, "layout", 0), hidden;
    if (x->shape.rank != 3 || w->shape.rank != 3 || r->shape.rank != 3 || !is_real_type(x->dtype) ||
        w->dtype != x->dtype || r->dtype != x->dtype ||
        !p2o_onnx_equal(g, x->shape.at[2], w->shape.at[2], "features"))
        return false;
    hidden = p2o_node_int(n, "hidden_size", 0);
    Dim size = hidden > 0 ? p2o_dim_int(g->dims, hidden) : r->shape.at[2];
    Dim time = x->shape.at[layout ? 1 : 0], batch = x->shape.at[layout ? 0 : 1];
    Dim ways = p2o_dim_int(g->dims, both ? 2 : 1);
    if (p2o_dim_eq(g->dims, size, r->shape.at[2]) == NO ||
        p2o_dim_eq(g->dims, ways, w->shape.at[0]) == NO)
        return false;
    Dim all[4] = { time, ways, batch, size }, last[3] = { ways, batch, size };
    if (layout) {
        all[0] = batch, all[1] = time, all[2] = ways;
        last[0] = batch, last[1] = ways;
    }
    for (int i = 4; i < n->nin && i < 7; i++) {
        Shape want = i == 4 ? (Shape){ 1, &batch } : (Shape){ 3, last };
        if (n->in[i] && (i < 6 || n->op == ONNX_LSTM) &&
            !p2o_onnx_settle_shape(g, want, n->in[i]->shape, "lengths or states"))
            return false;
    }
    return p2o_onnx_set(g, n, 0, x->dtype, 4, all) && p2o_onnx_set(g, n, 1, x->dtype, 3, last) &&
           p2o_onnx_set(g, n, 2, x->dtype, 3, last);
}

static const Graph *body_of(const Node *n, const char *name)
{
    const Attr *a = p2o_node_attr(n, name);
    return a && a->kind == ATTR_GRAPH ? a->graph : NULL;
}

/* A sequence that never held a tensor takes the other's rank. */
static bool join_values(Graph *g, Node *n, int i, const Value *a, const Value *b)
{
    Shape s = a->shape.rank < 0 ? b->shape : a->shape;
    if (a->dtype != b->dtype || a->dtype == DT_NONE || a->is_sequence != b->is_sequence)
        return false;
    if (a->shape.rank >= 0 && b->shape.rank >= 0 && !p2o_onnx_join(g, a->shape, b->shape, &s))
        return false;
    n->out[i]->dtype = a->dtype;
    n->out[i]->shape = s;
    n->out[i]->is_sequence = a->is_sequence;
    return true;
}

bool p2o_onnx_rule_if(Graph *g, Node *n)
{
    const Graph *yes = body_of(n, "then_branch"), *no = body_of(n, "else_branch");
    size_t       nout = (size_t)n->nout;
    if (!yes || !no || n->in[0]->dtype != DT_BOOL || yes->inputs.n || no->inputs.n ||
        yes->outputs.n != nout || no->outputs.n != nout)
        return false;
    for (int i = 0; i < n->nout; i++)
        if (!join_values(g, n, i, yes->outputs.at[i], no->outputs.at[i]))
            return false;
    return true;
}

static bool is_always_true(const Value *v)
{
    int64_t x;
    return v->tensor && p2o_tensor_get_i64(v->tensor, 0, &x) && x != 0;
}

/* The condition never turns false when the body passes on the one it was given, or a constant. */
static bool runs_to_limit(const Node *n, const Graph *body)
{
    const Value *out = body->outputs.at[0];
    while (out->def && out->def->op == ONNX_Identity)
        out = out->def->in[0];
    return (!n->in[1] || is_always_true(n->in[1])) &&
           (is_always_true(out) || out == body->inputs.at[1]);
}

static Dim trip_count(Graph *g, const Node *n, const Graph *body)
{
    const Value *limit = n->in[0];
    int64_t      lo, hi;
    if (!limit || !limit->ints || limit->nints != 1 || !runs_to_limit(n, body))
        return p2o_onnx_fresh(g);
    p2o_dim_range(g->dims, limit->ints[0], &lo, &hi);
    return lo >= 0 ? limit->ints[0] : p2o_dim_max(g->dims, limit->ints[0], p2o_dim_int(g->dims, 0));
}

/* v's shape with `size` put in at `axis` of the result. */
static bool set_stacked(Graph *g, Node *n, int i, const Value *v, int64_t axis, Dim size)
{
    int rank = v->shape.rank + 1, where;
    if (v->is_sequence || !p2o_wrap_dim(axis, rank, false, &where) || rank > MAX_RANK)
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int k = 0, from = 0; k < rank; k++)
        at[k] = k == where ? size : v->shape.at[from++];
    return p2o_onnx_set(g, n, i, v->dtype, rank, at);
}

static bool has_loop_control(const Node *n, const Graph *body)
{
    const Value *limit = n->in[0], *cond = n->in[1];
    return (!limit || (limit->dtype == DT_I64 && limit->shape.rank <= 1)) &&
           (!cond || (cond->dtype == DT_BOOL && cond->shape.rank <= 1)) &&
           body->inputs.at[0]->dtype == DT_I64 && body->inputs.at[1]->dtype == DT_BOOL &&
           body->outputs.at[0]->dtype == DT_BOOL;
}

/* Body: (iteration, condition, carried ...) -> (condition, carried ..., scanned ...). */
bool p2o_onnx_rule_loop(Graph *g, Node *n)
{
    const Graph *body = body_of(n, "body");
    int          carried = n->nin - 2;
    if (!body || body->inputs.n != (size_t)n->nin || body->outputs.n != (size_t)n->nout + 1 ||
        carried > n->nout || !has_loop_control(n, body))
        return false;
    for (int i = 0; i < carried; i++) {
        const Value *start = n->in[2 + i], *in = body->inputs.at[2 + i];
        if (!start || in->dtype != start->dtype || in->is_sequence != start->is_sequence ||
            !join_values(g, n, i, start, body->outputs.at[1 + i]))
            return false;
    }
    Dim count = carried < n->nout ? trip_count(g, n, body) : NULL;
    for (int i = carried; i < n->nout; i++)
        if (!set_stacked(g, n, i, body->outputs.at[1 + i], 0, count))
            return false;
    return true;
}

bool p2o_onnx_rule_scan(Graph *g, Node *n)
{
    const Graph *body = body_of(n, "body");
    int64_t      nscan = p2o_node_int(n, "num_scan_inputs", 0);
    if (!body || nscan < 1 || nscan > n->nin || body->inputs.n != (size_t)n->nin ||
        body->outputs.n != (size_t)n->nout || n->nin - nscan > n->nout)
        return false;
    int states = n->nin - (int)nscan, axis;
    for (int i = 0; i < states; i++)
        if (!n->in[i] || !join_values(g, n, i, n->in[i], body->outputs.at[i]))
            return false;
    const Value *x = n->in[states];
    int64_t      along = p2o_onnx_int_at(n, "scan_input_axes", 0, 0);
    if (!x || !p2o_wrap_dim(along, x->shape.rank, false, &axis))
        return false;
    for (int i = states; i < n->nout; i++) {
        int64_t to = p2o_onnx_int_at(n, "scan_output_axes", (size_t)(i - states), 0);
        if (!set_stacked(g, n, i, body->outputs.at[i], to, x->shape.at[axis]))
            return false;
    }
    return true;
}

static bool set_sequence(Node *n, DType t, Shape s)
{
    n->out[0]->dtype = t;
    n->out[0]->shape = s;
    n->out[0]->is_sequence = true;
    return t != DT_NONE;
}

bool p2o_onnx_rule_sequence_empty(Graph *g, Node *n)
{
    (void)g;
    return set_sequence(n, p2o_onnx_dtype(n, "dtype", DT_F32), (Shape){ .rank = -1 });
}

bool p2o_onnx_rule_sequence_construct(Graph *g, Node *n)
{
    Shape s = n->in[0]->shape;
    for (int i = 1; i < n->nin; i++)
        if (!n->in[i] || n->in[i]->dtype != n->in[0]->dtype ||
            !p2o_onnx_join(g, s, n->in[i]->shape, &s))
            return false;
    return set_sequence(n, n->in[0]->dtype, s);
}

static bool is_position(const Value *v)
{
    return !v || (is_index_type(v->dtype) && v->shape.rank == 0);
}

bool p2o_onnx_rule_sequence_insert(Graph *g, Node *n)
{
    const Value *list = n->in[0], *x = n->in[1];
    Shape        s = x->shape;
    if (!list->is_sequence || x->is_sequence || list->dtype != x->dtype ||
        !is_position(input_at(n, 2)) ||
        (list->shape.rank >= 0 && !p2o_onnx_join(g, list->shape, x->shape, &s)))
        return false;
    return set_sequence(n, x->dtype, s);
}

bool p2o_onnx_rule_sequence_erase(Graph *g, Node *n)
{
    (void)g;
    return n->in[0]->is_sequence && is_position(input_at(n, 1)) &&
           set_sequence(n, n->in[0]->dtype, n->in[0]->shape);
}

bool p2o_onnx_rule_sequence_at(Graph *g, Node *n)
{
    return n->in[0]->is_sequence && is_position(n->in[1]) && set_like(g, n, 0, n->in[0]);
}

bool p2o_onnx_rule_sequence_length(Graph *g, Node *n)
{
    return n->in[0]->is_sequence && p2o_onnx_set(g, n, 0, DT_I64, 0, NULL);
}

bool p2o_onnx_rule_concat_from_sequence(Graph *g, Node *n)
{
    const Value *list = n->in[0];
    bool         stack = p2o_node_int(n, "new_axis", 0) != 0;
    int          axis;
    if (!list->is_sequence || list->shape.rank < 0 || !p2o_node_attr(n, "axis"))
        return false;
    Value tensor = { .dtype = list->dtype, .shape = list->shape };
    if (stack)
        return set_stacked(g, n, 0, &tensor, p2o_node_int(n, "axis", 0), p2o_onnx_fresh(g));
    if (!p2o_onnx_axis(n, "axis", 0, list->shape.rank, &axis))
        return false;
    Dim *at = p2o_shape_copy(g->arena, list->shape, 0);
    at[axis] = p2o_onnx_fresh(g);
    return p2o_onnx_set(g, n, 0, list->dtype, list->shape.rank, at);
}

/* Without sizes the parts have length 1, or lose the axis when keepdims is 0. */
bool p2o_onnx_rule_split_to_sequence(Graph *g, Node *n)
{
    const Value *x = n->in[0], *split = input_at(n, 1);
    int          axis, rank = 0;
    bool         keep = split || p2o_node_int(n, "keepdims", 1) != 0;
    if (!p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis) || (split && split->shape.rank > 1))
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)x->shape.rank + 1);
    for (int i = 0; i < x->shape.rank; i++)
        if (i != axis)
            at[rank++] = x->shape.at[i];
        else if (keep)
            at[rank++] = split ? p2o_onnx_fresh(g) : p2o_dim_int(g->dims, 1);
    return set_sequence(n, x->dtype, (Shape){ rank, at });
}
