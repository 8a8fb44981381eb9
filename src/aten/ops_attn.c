/* Attention. */
#include "aten/lower.h"

#include <math.h>

static void shape_sdpa(Infer *in, const Call *c)
{
    Type q = type_arg(c, "query"), k = type_arg(c, "key"), v = type_arg(c, "value");
    int  nq = q.shape.rank;
    if (nq < 2 || k.shape.rank < 2 || v.shape.rank < 2) {
        rule_fail(in, "ranks %d, %d and %d", nq, k.shape.rank, v.shape.rank);
        return;
    }
    if (float_arg(c, "dropout_p") != 0) {
        rule_unsupported(in, "dropout: call model.eval() before the capture");
        return;
    }
    if (!must_equal(in, c, dim_at(q.shape, -1), dim_at(k.shape, -1), "head sizes") ||
        !must_equal(in, c, dim_at(k.shape, -2), dim_at(v.shape, -2), "key and value lengths"))
        return;
    Shape lead = slice_shape(q.shape, 0, nq - 2);
    if (!bool_arg(c, "enable_gqa")) {
        lead = broadcast(in, c, lead, slice_shape(k.shape, 0, k.shape.rank - 2));
        lead = broadcast(in, c, lead, slice_shape(v.shape, 0, v.shape.rank - 2));
    } else if (nq < 3 || k.shape.rank != nq || v.shape.rank != nq) {
        rule_fail(in, "enable_gqa with ranks %d, %d and %d", nq, k.shape.rank, v.shape.rank);
        return;
    }
    Shape out = insert_dim(in, lead, lead.rank, dim_at(q.shape, -2));
    if (has_arg(c, "attn_mask"))
        broadcast(in, c, insert_dim(in, out, out.rank, dim_at(k.shape, -2)), shape_arg(c, "attn_mask"));
    set_out(in, c, 0, q.dtype, insert_dim(in, out, out.rank, dim_at(v.shape, -1)));
}

/* Each key head serves a run of query heads: [b, h, s, e] -> [b, h, 1, s, e] -> [b, h, n, s, e]
 * -> [b, h n, s, e]. */
static Value *repeat_heads(Lower *lo, Value *x, Dim heads)
{
    int   at = rank(x) - 3;
    Dim   times = p2o_dim_exact_div(lo->dims, heads, size_at(x, at));
    if (!times)
        times = p2o_dim_floordiv(lo->dims, heads, size_at(x, at));
    if (dim_is(times, 1))
        return x;
    Dim *wide = p2o_shape_copy(lo->arena, x->shape, 1), *joined = p2o_shape_copy(lo->arena, x->shape, 0);
    joined[at] = heads;
    for (int i = rank(x); i > at + 1; i--)
        wide[i] = wide[i - 1];
    wide[at + 1] = times;
    Shape to = { rank(x), joined };
    return reshape(lo, expand(lo, unsqueeze(lo, x, at + 1), (Shape){ rank(x) + 1, wide }), to);
}

/* 1 / sqrt(E) unless given. */
static Value *attention_scale(Lower *lo, const Call *c, const Value *q)
{
    int64_t e;
    if (has_arg(c, "scale"))
        return num(lo, q->dtype, float_arg(c, "scale"));
    if (p2o_dim_is_int(size_at(q, -1), &e))
        return num(lo, q->dtype, 1 / sqrt((double)e));
    Value *size = cast(lo, dim_scalar(lo, size_at(q, -1)), DT_F32);
    return cast(lo, emit(lo, ONNX_Reciprocal, emit(lo, ONNX_Sqrt, size)), q->dtype);
}

static Value *positions(Lower *lo, Dim n)
{
    return emit(lo, ONNX_Range, p2o_build_int(lo->b, 0), dim_scalar(lo, n), p2o_build_int(lo->b, 1));
}

/* Query i sees keys 0 .. i. */
static Value *causal_mask(Lower *lo, Dim nq, Dim nk)
{
    return emit(lo, ONNX_GreaterOrEqual, unsqueeze(lo, positions(lo, nq), 1),
                unsqueeze(lo, positions(lo, nk), 0));
}

/* softmax(q k' * scale + mask) v.  A row whose keys are all masked gives 0, not NaN. */
static Value *lower_sdpa(Lower *lo, const Call *c)
{
    Value *q = tensor_arg(lo, c, "query"), *k = tensor_arg(lo, c, "key"), *v = tensor_arg(lo, c, "value");
    Value *mask = tensor_arg(lo, c, "attn_mask");
    DType  t = q->dtype;

    if (bool_arg(c, "enable_gqa")) {
        k = repeat_heads(lo, k, size_at(q, -3));
        v = repeat_heads(lo, v, size_at(q, -3));
    }
    if (bool_arg(c, "is_causal")) {
        if (mask)
            return unsupported(lo, c, "attn_mask and is_causal together");
        mask = causal_mask(lo, size_at(q, -2), size_at(k, -2));
    }
    q = emit(lo, ONNX_Mul, q, attention_scale(lo, c, q));
    Value *scores = emit(lo, ONNX_MatMul, q, swap_last_two(lo, k));
    if (mask && mask->dtype == DT_BOOL)
        mask = emit(lo, ONNX_Where, mask, num(lo, t, 0), num(lo, t, -INFINITY));
    if (mask)
        scores = emit(lo, ONNX_Add, scores, cast(lo, mask, t));
    Value *p = emit_with(lo, ONNX_Softmax, ATTRS(attr_int("axis", -1)), scores);
    if (mask && !bool_arg(c, "is_causal")) {
        const int64_t last = -1;
        Value *top = reduce(lo, ONNX_ReduceMax, scores, &last, 1, true);
        p = emit(lo, ONNX_Where, emit(lo, ONNX_Equal, top, num(lo, t, -INFINITY)), num(lo, t, 0), p);
    }
    return emit(lo, ONNX_MatMul, p, v);
}

const AtenOp p2o_ops_attn[] = {
    { "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
      shape_sdpa, .lower = lower_sdpa },
    { 0 },
};
