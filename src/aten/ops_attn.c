/* Attention. */
#include "aten/lower.h"

#include <math.h>

/* The variants differ in what they call the mask and which options they have. */
static const char *mask_name(const Call *c)
{
    static const char *const names[] = { "attn_mask", "attn_bias" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (p2o_schema_find(c->schema, names[i]) >= 0 && has_arg(c, names[i]))
            return names[i];
    return NULL;
}

static bool groups_heads(const Call *c)
{
    return p2o_schema_find(c->schema, "enable_gqa") >= 0 && bool_arg(c, "enable_gqa");
}

/* The result and the probabilities.  Results for a backward pass are left out. */
static bool attention_shapes(Infer *in, const Call *c, Shape *out, Shape *probs)
{
    Type q = type_arg(c, "query"), k = type_arg(c, "key"), v = type_arg(c, "value");
    int  nq = q.shape.rank;
    if (nq < 2 || k.shape.rank < 2 || v.shape.rank < 2) {
        rule_fail(in, "ranks %d, %d and %d", nq, k.shape.rank, v.shape.rank);
        return false;
    }
    if (float_arg(c, "dropout_p") != 0) {
        rule_unsupported(in, "dropout: call model.eval() before the capture");
        return false;
    }
    if (!must_equal(in, c, dim_at(q.shape, -1), dim_at(k.shape, -1), "head sizes") ||
        !must_equal(in, c, dim_at(k.shape, -2), dim_at(v.shape, -2), "key and value lengths"))
        return false;
    Shape lead = slice_shape(q.shape, 0, nq - 2);
    if (!groups_heads(c)) {
        lead = broadcast(in, c, lead, slice_shape(k.shape, 0, k.shape.rank - 2));
        lead = broadcast(in, c, lead, slice_shape(v.shape, 0, v.shape.rank - 2));
    } else if (nq < 3 || k.shape.rank != nq || v.shape.rank != nq) {
        rule_fail(in, "enable_gqa with ranks %d, %d and %d", nq, k.shape.rank, v.shape.rank);
        return false;
    }
    Shape rows = insert_dim(in, lead, lead.rank, dim_at(q.shape, -2));
    *probs = insert_dim(in, rows, rows.rank, dim_at(k.shape, -2));
    if (mask_name(c))
        *probs = broadcast(in, c, *probs, shape_arg(c, mask_name(c)));
    rows = slice_shape(*probs, 0, probs->rank - 1);
    *out = insert_dim(in, rows, rows.rank, dim_at(v.shape, -1));
    return true;
}

static void shape_sdpa(Infer *in, const Call *c)
{
    Shape out, probs;
    if (attention_shapes(in, c, &out, &probs))
        set_out(in, c, 0, type_arg(c, "query").dtype, out);
}

static void shape_sdpa_math(Infer *in, const Call *c)
{
    Shape out, probs;
    if (has_arg(c, "dropout_mask"))
        rule_unsupported(in, "a dropout_mask");
    else if (attention_shapes(in, c, &out, &probs)) {
        set_out(in, c, 0, type_arg(c, "query").dtype, out);
        set_out(in, c, 1, type_arg(c, "query").dtype, probs);
    }
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
    Dim *wide = p2o_shape_copy(lo->arena, x->shape, 1),
        *joined = p2o_shape_copy(lo->arena, x->shape, 0);
    joined[at] = heads;
    for (int i = rank(x); i > at + 1; i--)
        wide[i] = wide[i - 1];
    wide[at + 1] = times;
    Shape to = { rank(x), joined };
    return reshape(lo, expand(lo, unsqueeze(lo, x, at + 1), (Shape){ rank(x) + 1, wide }), to);
}

/* 1 / sqrt(E) unless given, perhaps as what a size makes it. */
static Value *attention_scale(Lower *lo, const Call *c, const Value *q)
{
    int64_t e;
    if (has_arg(c, "scale"))
        return number_arg(lo, c, "scale", q->dtype);
    if (p2o_dim_is_int(size_at(q, -1), &e))
        return num(lo, q->dtype, 1 / sqrt((double)e));
    Value *size = cast(lo, dim_scalar(lo, size_at(q, -1)), DT_F32);
    return cast(lo, emit(lo, ONNX_Reciprocal, emit(lo, ONNX_Sqrt, size)), q->dtype);
}

/* Query i sees keys 0 .. i. */
static Value *causal_mask(Lower *lo, Dim nq, Dim nk)
{
    return emit(lo, ONNX_GreaterOrEqual, unsqueeze(lo, iota(lo, nq), 1),
                unsqueeze(lo, iota(lo, nk), 0));
}

/* softmax(q k' * scale + mask), no mask being NULL.  A row whose keys are all masked is 0, not NaN,
 * which only a mask from outside can cause. */
static Value *attention_probs(Lower *lo, Value *q, Value *k, Value *scale, Value *mask,
                              bool may_hide_all)
{
    DType  t = q->dtype;
    Value *scores = emit(lo, ONNX_MatMul, emit(lo, ONNX_Mul, q, scale), swap_last_two(lo, k));
    if (mask && mask->dtype == DT_BOOL)
        mask = choose(lo, mask, num(lo, t, 0), num(lo, t, -INFINITY));
    if (mask)
        scores = emit(lo, ONNX_Add, scores, cast(lo, mask, t));
    Value *p = emit_with(lo, ONNX_Softmax, ATTRS(attr_int("axis", -1)), scores);
    if (!mask || !may_hide_all)
        return p;
    const int64_t last = -1;
    Value *top = reduce(lo, ONNX_ReduceMax, scores, &last, 1, true);
    return choose(lo, emit(lo, ONNX_Equal, top, num(lo, t, -INFINITY)), num(lo, t, 0), p);
}

static void lower_sdpa(Lower *lo, const Call *c, Value **out)
{
    Value *q = tensor_arg(lo, c, "query"), *k = tensor_arg(lo, c, "key"),
          *v = tensor_arg(lo, c, "value");
    Value *mask = mask_name(c) ? tensor_arg(lo, c, mask_name(c)) : NULL;
    bool   causal = bool_arg(c, "is_causal");

    if (groups_heads(c)) {
        k = repeat_heads(lo, k, size_at(q, -3));
        v = repeat_heads(lo, v, size_at(q, -3));
    }
    if (causal && mask) {
        unsupported(lo, c, "attn_mask and is_causal together");
        return;
    }
    if (causal)
        mask = causal_mask(lo, size_at(q, -2), size_at(k, -2));
    Value *p = attention_probs(lo, q, k, attention_scale(lo, c, q), mask, !causal);
    out[0] = emit(lo, ONNX_MatMul, p, v);
    if (same(c->schema->key, "aten::_scaled_dot_product_attention_math"))
        out[1] = p;
}

/* The fused layers: batch first, one weight for queries, keys and values. */
static bool must_be_heads(Infer *in, const Call *c, const char *name, const char *heads)
{
    int64_t e = int_arg(c, "embed_dim"), h = int_arg(c, heads);
    if (h < 1 || e % h) {
        rule_fail(in, "embed_dim %lld with %lld heads", (long long)e, (long long)h);
        return false;
    }
    return must_rank(in, c, name, 3) &&
           must_equal(in, c, dim_at(shape_arg(c, name), -1), int_dim(in, e), "embedding size") &&
           must_rank(in, c, "qkv_weight", 2) &&
           must_equal(in, c, shape_arg(c, "qkv_weight").at[0], int_dim(in, 3 * e),
                      "rows of qkv_weight");
}

static void shape_native_mha(Infer *in, const Call *c)
{
    Type q = type_arg(c, "query"), k = type_arg(c, "key");
    if (!must_be_heads(in, c, "query", "num_head") || !must_rank(in, c, "key", 3) ||
        !must_rank(in, c, "value", 3))
        return;
    set_out(in, c, 0, q.dtype, q.shape);
    if (!bool_arg(c, "need_weights"))
        return;
    Shape w = with_last(in, q.shape, k.shape.at[1]);
    if (!bool_arg(c, "average_attn_weights"))
        w = insert_dim(in, w, 1, int_dim(in, int_arg(c, "num_head")));
    set_out(in, c, 1, q.dtype, w);
}

/* x * transpose(w) + b with rows [from, to) of w and b. */
static Value *project(Lower *lo, Value *x, Value *w, Value *b, int64_t from, int64_t to)
{
    Dim first = p2o_dim_int(lo->dims, from), end = p2o_dim_int(lo->dims, to);
    w = slice_axis(lo, w, 0, first, end, 1);
    return emit(lo, ONNX_Add, emit(lo, ONNX_MatMul, x, swap_last_two(lo, w)),
                slice_axis(lo, b, 0, first, end, 1));
}

/* [batch, time, embed] -> [batch, heads, time, embed / heads] */
static Value *apart(Lower *lo, Value *x, int64_t heads)
{
    Dim *to = p2o_shape_copy(lo->arena, x->shape, 1);
    to[2] = p2o_dim_int(lo->dims, heads);
    to[3] = p2o_dim_exact_div(lo->dims, size_at(x, 2), to[2]);
    return swap_dims(lo, reshape(lo, x, (Shape){ 4, to }), 1, 2);
}

/* True hides: [time, time], [batch, time] of keys, or all four dims, by mask_type.  Of a mask of
 * numbers PyTorch's kernel hides all that is not 0, be it -inf or not. */
static Value *seen_mask(Lower *lo, const Call *c)
{
    Value *hidden = tensor_arg(lo, c, "mask");
    if (!hidden)
        return NULL;
    if (has_arg(c, "mask_type") && int_arg(c, "mask_type") == 1)
        hidden = unsqueeze(lo, unsqueeze(lo, hidden, 1), 1);
    return emit(lo, ONNX_Not, cast(lo, hidden, DT_BOOL));
}

static Value *fused_attention(Lower *lo, const Call *c, Value *const *qkv, int64_t heads,
                              Value **probs)
{
    int64_t e = int_arg(c, "embed_dim");
    Value  *w = tensor_arg(lo, c, "qkv_weight"), *b = tensor_arg(lo, c, "qkv_bias"), *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = apart(lo, project(lo, qkv[i], w, b, i * e, (i + 1) * e), heads);
    Value *scale = num(lo, w->dtype, 1 / sqrt((double)e / (double)heads));
    *probs = attention_probs(lo, part[0], part[1], scale, seen_mask(lo, c), false);
    Value *y =
        reshape(lo, swap_dims(lo, emit(lo, ONNX_MatMul, *probs, part[2]), 1, 2), qkv[0]->shape);
    return project(lo, y, tensor_arg(lo, c, "proj_weight"), tensor_arg(lo, c, "proj_bias"), 0, e);
}

static void lower_native_mha(Lower *lo, const Call *c, Value **out)
{
    Value        *qkv[3] = { tensor_arg(lo, c, "query"), tensor_arg(lo, c, "key"),
                             tensor_arg(lo, c, "value") };
    Value *probs;
    const int64_t heads = 1;
    out[0] = fused_attention(lo, c, qkv, int_arg(c, "num_head"), &probs);
    if (bool_arg(c, "need_weights"))
        out[1] = bool_arg(c, "average_attn_weights")
                     ? reduce(lo, ONNX_ReduceMean, probs, &heads, 1, false)
                     : probs;
}

static void shape_encoder_layer(Infer *in, const Call *c)
{
    Type x = type_arg(c, "src");
    if (must_be_heads(in, c, "src", "num_heads"))
        set_out(in, c, 0, x.dtype, x.shape);
}

static Value *layer_normed(Lower *lo, const Call *c, Value *x, const char *weight, const char *bias)
{
    return emit_with(lo, ONNX_LayerNormalization,
                     ATTRS(attr_int("axis", -1), attr_float("epsilon", float_arg(c, "eps"))), x,
                     tensor_arg(lo, c, weight), tensor_arg(lo, c, bias));
}

static Value *feed_forward(Lower *lo, const Call *c, Value *x)
{
    Value  *w = tensor_arg(lo, c, "ffn_weight_1"), *w2 = tensor_arg(lo, c, "ffn_weight_2");
    int64_t wide = 0, e = int_arg(c, "embed_dim");
    p2o_dim_is_int(size_at(w, 0), &wide);
    x = project(lo, x, w, tensor_arg(lo, c, "ffn_bias_1"), 0, wide);
    x = bool_arg(c, "use_gelu") ? gelu_of(lo, x, false) : emit(lo, ONNX_Relu, x);
    return project(lo, x, w2, tensor_arg(lo, c, "ffn_bias_2"), 0, e);
}

/* Attention and feed-forward, each added to its input, the norms before or after. */
static Value *lower_encoder_layer(Lower *lo, const Call *c)
{
    bool   first = bool_arg(c, "norm_first");
    Value *src = tensor_arg(lo, c, "src"), *probs;
    Value *x = first ? layer_normed(lo, c, src, "norm_weight_1", "norm_bias_1") : src;
    x = fused_attention(lo, c, (Value *[]){ x, x, x }, int_arg(c, "num_heads"), &probs);
    x = emit(lo, ONNX_Add, x, src);
    if (!first)
        x = layer_normed(lo, c, x, "norm_weight_1", "norm_bias_1");
    Value *y = first ? layer_normed(lo, c, x, "norm_weight_2", "norm_bias_2") : x;
    x = emit(lo, ONNX_Add, feed_forward(lo, c, y), x);
    return first ? x : layer_normed(lo, c, x, "norm_weight_2", "norm_bias_2");
}

#define QKV        "Tensor query, Tensor key, Tensor value, "
#define NO_DROPOUT "no dropout; a mask or is_causal, not both"
#define DROPOUT    "float dropout_p=0., bool is_causal=False, "
#define FLASH_RETS                                                                                 \
    "(Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, "         \
    "SymInt max_k, "
#define ONLY_FIRST "only the first result"

const AtenOp p2o_ops_attn[] = {
    { "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
      shape_sdpa, .lower_many = lower_sdpa, .varies = "scale", .limits = NO_DROPOUT,
      .batch = p2o_batch_attention },
    { "_scaled_dot_product_attention_math(" QKV "Tensor? attn_mask=None, " DROPOUT
      "Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
      shape_sdpa_math, .lower_many = lower_sdpa, .varies = "scale", .limits = NO_DROPOUT },
    { "_scaled_dot_product_flash_attention_for_cpu(" QKV DROPOUT
      "*, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
      shape_sdpa, .lower_many = lower_sdpa, .varies = "scale", .limits = ONLY_FIRST },
    { "_scaled_dot_product_flash_attention(" QKV DROPOUT
      "bool return_debug_mask=False, *, float? scale=None) -> " FLASH_RETS
      "Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
      shape_sdpa, .lower_many = lower_sdpa, .varies = "scale", .limits = ONLY_FIRST },
    { "_scaled_dot_product_efficient_attention(" QKV
      "Tensor? attn_bias, bool compute_log_sumexp, " DROPOUT
      "*, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, "
      "Tensor philox_offset)",
      shape_sdpa, .lower_many = lower_sdpa, .varies = "scale", .limits = ONLY_FIRST },
    { "_scaled_dot_product_cudnn_attention(" QKV
      "Tensor? attn_bias, bool compute_log_sumexp, " DROPOUT
      "bool return_debug_mask=False, *, float? scale=None) -> " FLASH_RETS
      "Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
      shape_sdpa, .lower_many = lower_sdpa, .varies = "scale", .limits = ONLY_FIRST },
    { "_scaled_dot_product_fused_attention_overrideable(" QKV "Tensor? attn_bias=None, " DROPOUT
      "bool return_debug_mask=False, *, float? scale=None) -> " FLASH_RETS
      "Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
      shape_sdpa, .lower_many = lower_sdpa, .varies = "scale", .limits = ONLY_FIRST },
    { "_native_multi_head_attention(" QKV
      "int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, "
      "Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
      "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
      shape_native_mha, .lower_many = lower_native_mha },
    { "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
      shape_encoder_layer, .lower = lower_encoder_layer },
    { 0 },
};
