/* A Transpose of a Transpose is one; a Transpose that moves nothing is none. */
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

bool p2o_opt_transpose(Node *n)
{
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
