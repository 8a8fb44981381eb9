/* A Transpose of a Transpose is one; a Transpose that moves nothing is none; an axis that Unsqueeze
 * adds before a Transpose and a Squeeze or Reshape drops after it was never needed. */
#include "opt/opt.h"

/* Where axis i of n's output comes from; without the attribute the order is reversed. */
static int64_t perm_at(const Node *n, int i)
{
    const Attr *perm = p2o_node_attr(n, "perm");
    return perm ? perm->ints[i] : n->out[0]->shape.rank - 1 - i;
}

static bool moves_nothing(const Node *n)
{
    for (int i = 0; i < n->out[0]->shape.rank; i++)
        if (perm_at(n, i) != i)
            return false;
    return true;
}

/* For each axis of an Unsqueeze's output the axis of its input, or -1. */
static bool axes_before(const Node *unsqueeze, int *from)
{
    const Value *axes = unsqueeze->in[1];
    int          rank = unsqueeze->out[0]->shape.rank, next = 0;
    for (int i = 0; i < rank; i++)
        from[i] = 0;
    for (size_t i = 0; i < axes->nints; i++) {
        int64_t v;
        int     axis;
        if (!p2o_dim_is_int(axes->ints[i], &v) || !p2o_wrap_dim(v, rank, false, &axis))
            return false;
        from[axis] = -1;
    }
    for (int i = 0; axes->ints && i < rank; i++)
        if (from[i] == 0)
            from[i] = next++;
    return axes->ints != NULL;
}

/* n drops after `t` what `u` added before: x in t's order has n's shape at once. */
static bool skip_added_axes(Node *n, const Node *t, const Node *u)
{
    const Value *x = u->in[0];
    int          from[MAX_RANK], rank = 0;
    int64_t     *perm = NEW_N(n->graph->arena, int64_t, (size_t)x->shape.rank + 1);
    if (!axes_before(u, from) || n->out[0]->shape.rank != x->shape.rank)
        return false;
    for (int i = 0; i < t->out[0]->shape.rank; i++)
        if (from[perm_at(t, i)] >= 0)
            perm[rank++] = from[perm_at(t, i)];
    for (int i = 0; i < rank; i++)
        if (n->out[0]->shape.at[i] != x->shape.at[perm[i]])
            return false;
    Attr attr = attr_ints("perm", perm, (size_t)rank);
    return p2o_node_become(n, ONNX_Transpose, 1, u->in, 1, &attr);
}

bool p2o_opt_transpose(Node *n)
{
    if (n->op == ONNX_Squeeze || n->op == ONNX_Reshape) {
        const Node *t = made_by(n->in[0], ONNX_Transpose),
                   *u = t ? made_by(t->in[0], ONNX_Unsqueeze) : NULL;
        return u && skip_added_axes(n, t, u);
    }
    if (n->op != ONNX_Transpose)
        return false;
    if (moves_nothing(n))
        return p2o_opt_replace(n->out[0], n->in[0]);
    const Node *before = made_by(n->in[0], ONNX_Transpose);
    if (!before)
        return false;
    int      rank = n->out[0]->shape.rank;
    int64_t *perm = NEW_N(n->graph->arena, int64_t, (size_t)rank + 1);
    for (int i = 0; i < rank; i++)
        perm[i] = perm_at(before, (int)perm_at(n, i));
    Attr attr = attr_ints("perm", perm, (size_t)rank);
    return p2o_node_become(n, ONNX_Transpose, 1, before->in, 1, &attr);
}
