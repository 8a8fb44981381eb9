/* x/2 * (1 + erf(x / sqrt 2)), in any order of its factors, is Gelu from opset 20 on. */
#include <math.h>

#include "opt/opt.h"

/* The one element of a constant, near f as f32 has it. */
static bool is_number(const Value *v, double f)
{
    double   x;
    uint64_t n;
    return v->tensor && p2o_tensor_nelem(v->tensor, &n) && n == 1 &&
           p2o_tensor_get_f64(v->tensor, 0, &x) && fabs(x - f) <= 1e-6 * fabs(f);
}

/* The other input of a Mul or Add by the number f. */
static Value *beside(const Value *v, OnnxOp op, double f)
{
    const Node *n = made_by(v, op);
    for (int i = 0; n && i < 2; i++)
        if (is_number(n->in[i], f))
            return n->in[1 - i];
    return NULL;
}

static Value *half_of(const Value *v)
{
    const Node *div = made_by(v, ONNX_Div);
    return div && is_number(div->in[1], 2) ? div->in[0] : beside(v, ONNX_Mul, 0.5);
}

/* x, when v is 1 + erf(x / sqrt 2). */
static Value *in_erf(const Value *v)
{
    const Value *sum = beside(v, ONNX_Add, 1);
    const Node  *erf = made_by(sum, ONNX_Erf);
    if (!erf)
        return NULL;
    const Node *div = made_by(erf->in[0], ONNX_Div);
    if (div)
        return is_number(div->in[1], sqrt(2)) ? div->in[0] : NULL;
    return beside(erf->in[0], ONNX_Mul, sqrt(0.5));
}

/* a * b, or a * b / 2 when halved: x and 1 + erf, one of them halved otherwise. */
static Value *gelu_of(const Value *a, const Value *b, bool halved)
{
    Value *x = in_erf(a), *half = half_of(a), *other = half_of(b);
    if (halved)
        return x == b ? x : NULL;
    if (x)
        return other == x ? x : NULL;
    x = half ? in_erf(half) : NULL;
    return x == b ? x : NULL;
}

bool p2o_opt_gelu(Node *n)
{
    if (n->op != ONNX_Mul || n->graph->opset < 20 ||
        (n->out[0]->dtype != DT_F32 && n->out[0]->dtype != DT_F16))
        return false;
    const Value *all = half_of(n->out[0]);
    const Node  *product = all ? made_by(all, ONNX_Mul) : n;
    if (!product)
        return false;
    Value *x = gelu_of(product->in[0], product->in[1], all != NULL);
    if (!x)
        x = gelu_of(product->in[1], product->in[0], all != NULL);
    if (!x || !p2o_shape_same(x->shape, n->out[0]->shape))
        return false;
    return p2o_node_become(n, ONNX_Gelu, 1, &x, 0, NULL);
}
