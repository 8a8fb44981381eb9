/* Chains of operators that only rename the axes: the last one alone decides the shape.
 *
 * A target of 0 copies a size of the value just before, so such a Reshape may skip only what has
 * the same size there; a size computed at run time may turn out 0 and must be known not to be. */
#include "opt/opt.h"

static bool keeps_order(const Node *n)
{
    return n->op == ONNX_Reshape || n->op == ONNX_Flatten || n->op == ONNX_Squeeze ||
           n->op == ONNX_Unsqueeze;
}

static bool is_never_zero(const Node *n, Dim d)
{
    int64_t low, high;
    p2o_dim_range(n->graph->dims, d, &low, &high);
    return low > 0 || high < 0;
}

/* n means the same when it reads x instead of its input. */
static bool can_skip_to(const Node *n, const Value *x)
{
    const Value *middle = n->in[0], *target = n->in[1];
    if (n->op != ONNX_Reshape || !target->ints)
        return false;
    for (size_t i = 0; i < target->nints; i++) {
        bool copies = p2o_node_int(n, "allowzero", 0) == 0 && !is_never_zero(n, target->ints[i]);
        if (copies && (!dim_is(target->ints[i], 0) || (int)i >= x->shape.rank ||
                       x->shape.at[i] != middle->shape.at[i]))
            return false;
    }
    return true;
}

bool p2o_opt_reshape(Node *n)
{
    if (!keeps_order(n))
        return false;
    Value *skip = NULL;
    for (const Node *m = n; m && keeps_order(m); m = m->in[0]->def) {
        Value *x = m->in[0];
        if (p2o_shape_same(x->shape, n->out[0]->shape) && p2o_opt_replace(n->out[0], x))
            return true;
        if (m != n && can_skip_to(n, x))
            skip = x;
    }
    if (!skip)
        return false;
    return p2o_node_become(n, n->op, n->nin, (Value *[]){ skip, n->in[1] }, n->nattr, n->attrs);
}
