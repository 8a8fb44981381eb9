/* ONNX's Loop for lowerings that iterate: a recurrence, a series, elimination column by column. */
#include "aten/lower.h"

#include <assert.h>

Rounds open_rounds(Lower *lo, const char *name)
{
    Rounds r = { .outer = lo->b };
    r.body = p2o_graph_new(lo->arena, lo->diags, lo->dims, lo->opset, lo->b->graph);
    r.body->name = name;
    r.round = p2o_graph_input(r.body, NULL, DT_I64, (Shape){ 0 });
    p2o_graph_input(r.body, NULL, DT_BOOL, (Shape){ 0 });
    lo->b = p2o_builder_new(r.body, lo->b);
    return r;
}

Value *round_state(Rounds *r, Value *first)
{
    assert((size_t)r->nstate < COUNT_OF(r->first));
    r->first[r->nstate++] = first;
    return p2o_graph_input(r->body, NULL, first->dtype, first->shape);
}

void close_rounds(Lower *lo, Rounds *r, Value *count, Value *start, Value *go_on,
                  Value *const *next, Value **out)
{
    Value *in[2 + COUNT_OF(r->first)] = { count, start };
    p2o_graph_output(r->body, go_on ? go_on : r->body->inputs.at[1]);
    for (int i = 0; i < r->nstate; i++) {
        p2o_graph_output(r->body, next[i]);
        in[2 + i] = r->first[i];
    }
    lo->b = r->outer;
    if (go_on && !start)
        in[1] = p2o_build_scalar(lo->b, DT_BOOL, 1);
    p2o_build_many(lo->b, ONNX_Loop, ATTRS(attr_graph("body", r->body)), 2 + r->nstate, in,
                   r->nstate, out);
}

Value *any_true(Lower *lo, Value *x)
{
    int64_t axes[MAX_RANK];
    for (int i = 0; i < rank(x); i++)
        axes[i] = i;
    return rank(x) ? reduce_any(lo, x, axes, rank(x), false) : x;
}
