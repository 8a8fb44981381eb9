/* An Expand that changes nothing; Expand and ConstantOfShape whose reader broadcasts anyway.
 *
 * The reader keeps its sizes without them where every size of its result is also that of an input
 * that stays: what was expanded has 1 there, or the same. */
#include "opt/opt.h"

static bool broadcasts(OnnxOp op)
{
    switch (op) {
    case ONNX_Add: case ONNX_And: case ONNX_BitShift: case ONNX_BitwiseAnd: case ONNX_BitwiseOr:
    case ONNX_BitwiseXor: case ONNX_Div: case ONNX_Equal: case ONNX_Greater:
    case ONNX_GreaterOrEqual: case ONNX_Less: case ONNX_LessOrEqual: case ONNX_Max: case ONNX_Min:
    case ONNX_Mod: case ONNX_Mul: case ONNX_Or: case ONNX_Pow: case ONNX_Sub: case ONNX_Where:
    case ONNX_Xor: return true;
    default: return false;
    }
}

/* Some input has size d at this axis of the result, counted from the end. */
static bool is_carried(Value *const *in, int nin, int from_end, Dim d)
{
    for (int i = 0; i < nin; i++) {
        Shape s = in[i]->shape;
        if (s.rank >= from_end && s.at[s.rank - from_end] == d)
            return true;
    }
    return false;
}

static bool keeps_sizes(const Node *n, Value *const *in)
{
    Shape out = n->out[0]->shape;
    for (int k = 1; k <= out.rank; k++)
        if (!is_carried(in, n->nin, k, out.at[out.rank - k]))
            return false;
    return true;
}

/* The number that n fills its result with, for n's graph. */
static Value *filling(const Node *n)
{
    const Attr *value = p2o_node_attr(n, "value");
    if (!value)
        return p2o_graph_init(n->graph, NULL,
                              p2o_tensor_scalar(n->graph->arena, DT_F32, 0, 0, true));
    Tensor *number = NEW(n->graph->arena, Tensor);
    *number = *value->tensor;
    number->rank = 0;
    return p2o_graph_init(n->graph, NULL, number);
}

static bool read_unexpanded(Node *n, int i)
{
    const Node *e = made_by(n->in[i], ONNX_Expand), *fill = made_by(n->in[i], ONNX_ConstantOfShape);
    Value       scalar = { 0 };
    if (!e && !fill)
        return false;
    Value **in = NEW_N(n->graph->arena, Value *, (size_t)n->nin);
    for (int k = 0; k < n->nin; k++)
        in[k] = n->in[k];
    in[i] = e ? e->in[0] : &scalar;
    if (!keeps_sizes(n, in))
        return false;
    if (fill)
        in[i] = filling(fill);
    return p2o_node_become(n, n->op, n->nin, in, n->nattr, n->attrs);
}

bool p2o_opt_expand(Node *n)
{
    if (n->op == ONNX_Expand && p2o_shape_same(n->in[0]->shape, n->out[0]->shape))
        return p2o_opt_replace(n->out[0], n->in[0]);
    for (int i = 0; broadcasts(n->op) && i < n->nin; i++)
        if (read_unexpanded(n, i))
            return true;
    return false;
}
