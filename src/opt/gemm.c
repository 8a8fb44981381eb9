/* Products of matrices: Transpose goes into Gemm's flags, a bias into its third input.
 *
 * Only floats have a Gemm kernel.  An inner size that may be 0 stays a MatMul: not every runtime
 * fills the result of such a Gemm. */
#include "opt/opt.h"

static bool is_matrix(const Value *v)
{
    return v->shape.rank == 2 && (v->dtype == DT_F32 || v->dtype == DT_F64 || v->dtype == DT_F16);
}

static bool is_matrix_product(const Node *n)
{
    int64_t inner;
    return n->op == ONNX_MatMul && is_matrix(n->in[0]) && is_matrix(n->in[1]) &&
           p2o_dim_is_int(n->in[1]->shape.at[0], &inner) && inner > 0;
}

static bool is_product_without_bias(const Node *n)
{
    return is_matrix_product(n) || (n->op == ONNX_Gemm && n->nin == 2);
}

/* A Transpose of a matrix is taken in, the flag that stands for it turned over. */
static bool take_in(Value **v, int64_t *flag)
{
    const Node *t = made_by(*v, ONNX_Transpose);
    if (!t)
        return false;
    *v = t->in[0];
    *flag = !*flag;
    return true;
}

static int64_t flag_of(const Node *n, const char *name)
{
    return n->op == ONNX_Gemm ? p2o_node_int(n, name, 0) : 0;
}

static float factor_of(const Node *n, const char *name)
{
    const Attr *a = n->op == ONNX_Gemm ? p2o_node_attr(n, name) : NULL;
    return a ? a->f : 1;
}

static bool become_gemm(Node *n, Value *a, Value *b, Value *c, const Node *like)
{
    Attr    attrs[4];
    int     nattr = 0;
    int64_t flip_a = flag_of(like, "transA"), flip_b = flag_of(like, "transB");
    float   alpha = factor_of(like, "alpha");
    float   beta = like->nin > 2 ? factor_of(like, "beta") : 1;
    take_in(&a, &flip_a);
    take_in(&b, &flip_b);
    if (alpha != 1)
        attrs[nattr++] = attr_float("alpha", alpha);
    if (beta != 1)
        attrs[nattr++] = attr_float("beta", beta);
    if (flip_a)
        attrs[nattr++] = attr_int("transA", 1);
    if (flip_b)
        attrs[nattr++] = attr_int("transB", 1);
    return p2o_node_become(n, ONNX_Gemm, 3, (Value *[]){ a, b, c }, nattr, attrs);
}

/* Adding c leaves the product's sizes as they are. */
static bool is_bias(const Value *c, const Value *product)
{
    int lead = 2 - c->shape.rank;
    for (int i = 0; lead >= 0 && i < c->shape.rank; i++)
        if (!dim_is(c->shape.at[i], 1) && c->shape.at[i] != product->shape.at[lead + i])
            return false;
    return lead >= 0;
}

bool p2o_opt_gemm(Node *n)
{
    bool product = n->op == ONNX_Gemm || is_matrix_product(n);
    if (product && (made_by(n->in[0], ONNX_Transpose) || made_by(n->in[1], ONNX_Transpose)))
        return become_gemm(n, n->in[0], n->in[1], n->nin > 2 ? n->in[2] : NULL, n);
    for (int i = 0; n->op == ONNX_Add && i < 2; i++) {
        const Value *v = n->in[i];
        if (v->def && v->uses.n == 1 && !p2o_value_is_output(v) && v->graph == n->graph &&
            is_product_without_bias(v->def) && is_bias(n->in[1 - i], v))
            return become_gemm(n, v->def->in[0], v->def->in[1], n->in[1 - i], v->def);
    }
    return false;
}
