/* quantized_decomposed (PyTorch's pt2e), and products of integers. */
#include "aten/quant.h"

#include <float.h>

static void shape_quantize(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (!must_be_float(in, c, "input") || !must_have_range(in, c) ||
        !must_be_one(in, c, "scale") || !must_be_one(in, c, "zero_point"))
        return;
    set_out(in, c, 0, dtype_arg(c, "dtype", DT_NONE), x.shape);
}

static void shape_dequantize(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (!must_be_ints(in, c, "input", dtype_arg(c, "dtype", DT_NONE)) ||
        !must_be_one(in, c, "scale") || !must_be_one(in, c, "zero_point"))
        return;
    set_out(in, c, 0, dtype_arg(c, "out_dtype", DT_F32), x.shape);
}

static void shape_quantize_channels(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (must_be_float(in, c, "input") && must_have_range(in, c) &&
        must_be_channels(in, c, x.shape, "scales", "zero_points"))
        set_out(in, c, 0, dtype_arg(c, "dtype", DT_NONE), x.shape);
}

static void shape_dequantize_channels(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (must_be_ints(in, c, "input", dtype_arg(c, "dtype", DT_NONE)) &&
        must_be_channels(in, c, x.shape, "scales", "zero_points"))
        set_out(in, c, 0, dtype_arg(c, "out_dtype", DT_F32), x.shape);
}

/* One scale and one zero for all.  What files record of them follows no run. */
static void shape_choose(Infer *in, const Call *c)
{
    Dim one = int_dim(in, 1);
    if (!must_be_float(in, c, "input") || !must_have_range(in, c))
        return;
    set_out(in, c, 0, DT_F64, (Shape){ 1, &one });
    set_out(in, c, 1, DT_I64, (Shape){ 1, &one });
}

static void shape_choose_tokens(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (!must_be_float(in, c, "input"))
        return;
    if (x.shape.rank == 0 || dtype_arg(c, "dtype", DT_I8) != DT_I8) {
        rule_unsupported(in, "%s of rank %d",
                         p2o_dtype_torch(dtype_arg(c, "dtype", DT_I8)), x.shape.rank);
        return;
    }
    Shape s = with_last(in, x.shape, int_dim(in, 1));
    DType t = x.dtype == DT_F16 ? DT_F32 : x.dtype;
    set_out(in, c, 0, t, s);
    set_out(in, c, 1, t, s);
}

static void shape_choose_tokens_asymmetric(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (!must_be_float(in, c, "input"))
        return;
    if (x.shape.rank == 0) {
        rule_fail(in, "a number has no tokens");
        return;
    }
    Shape s = with_last(in, x.shape, int_dim(in, 1));
    set_out(in, c, 0, DT_F64, s);
    set_out(in, c, 1, DT_I64, s);
}

/* One scale and zero for each token, in any shape that broadcasts. */
static void shape_tokens(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    bool back = names_arg(c, "output_dtype");
    if (!must_expand(in, c, shape_arg(c, "scales"), x.shape, "scales") ||
        !must_expand(in, c, shape_arg(c, "zero_points"), x.shape, "zero points"))
        return;
    set_out(in, c, 0, dtype_arg(c, back ? "output_dtype" : "dtype", DT_F32), x.shape);
}

/* Matrices whose rows are cut into groups of a fixed size. */
static void shape_groups(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "input");
    int64_t n, size = int_arg(c, "group_size");
    bool    back = names_arg(c, "output_dtype");
    if (!must_rank(in, c, "input", 2) ||
        !const_dim(in, dim_at(x.shape, -1), "the size of a row", &n))
        return;
    if (size > n && dim_is(dim_at(shape_arg(c, "scales"), -1), 1))
        size = n;
    if (size < 1 || n % size != 0)
        rule_fail(in, "%lld columns in groups of %lld", (long long)n, (long long)size);
    else
        set_out(in, c, 0, dtype_arg(c, back ? "output_dtype" : "dtype", DT_F32), x.shape);
}

static void shape_convert(Infer *in, const Call *c)
{
    set_out(in, c, 0, dtype_arg(c, "dtype", DT_F32), shape_arg(c, "input"));
}

static void shape_int_product(Infer *in, const Call *c)
{
    Shape x = shape_arg(c, "self"), w = shape_arg(c, "mat2");
    if (must_rank(in, c, "self", 2) && must_rank(in, c, "mat2", 2) &&
        must_equal(in, c, x.at[1], w.at[0], "columns and rows"))
        set_out(in, c, 0, DT_I32, with_last(in, x, w.at[1]));
}

/* x [m, k] and w [n, k], scales [n]. */
static void shape_packed_product(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape w = shape_arg(c, "mat2");
    if (must_rank(in, c, "self", 2) && must_rank(in, c, "mat2", 2) &&
        must_be_ints(in, c, "mat2", DT_I8) &&
        must_equal(in, c, x.shape.at[1], w.at[1], "columns") &&
        must_equal(in, c, dim_at(shape_arg(c, "scales"), 0), w.at[0], "scales"))
        set_out(in, c, 0, x.dtype, with_last(in, x.shape, w.at[0]));
}

static Value *lower_quantize(Lower *lo, const Call *c)
{
    Grid g = { .axis = -1, .dtype = out_dtype(c, 0) };
    if (!bounds(lo, c, g.dtype, &g))
        return NULL;
    g.scale = number_or_tensor(lo, c, "scale", DT_F64, DT_F32);
    g.zero = number_or_tensor(lo, c, "zero_point", DT_I64, g.dtype);
    return quantized(lo, tensor_as(lo, c, "input", DT_F32), &g);
}

static Value *lower_dequantize(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *q = tensor_arg(lo, c, "input");
    Grid   g = { .axis = -1, .dtype = q->dtype,
                 .scale = number_or_tensor(lo, c, "scale", DT_F64, DT_F32),
                 .zero = number_or_tensor(lo, c, "zero_point", DT_I64, q->dtype) };
    bool   exact = t == DT_F32 || (wide_of(t) == DT_F32 && is_8_bits(q->dtype));
    Value *y = exact ? dequantized(lo, q, &g) : NULL;
    if (y)
        return cast(lo, y, t);
    Real d = step(lo, ONNX_Sub, real_of(lo, q, t), real_of(lo, g.zero, t));
    Value *by = cast(lo, g.scale, d.at->dtype);         /* a number: it does not change the type */
    return value_of(lo, real_like(lo, emit(lo, ONNX_Mul, d.at, by), t));
}

static Value *lower_quantize_channels(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "input", DT_F32);
    Grid   g = channels_of(lo, c, "scales", "zero_points", rank(x));
    g.dtype = out_dtype(c, 0);
    return bounds(lo, c, g.dtype, &g) ? quantized(lo, x, &g) : NULL;
}

static Value *lower_dequantize_channels(Lower *lo, const Call *c)
{
    Value *q = tensor_arg(lo, c, "input");
    Grid   g = channels_of(lo, c, "scales", "zero_points", rank(q));
    g.dtype = q->dtype;
    return cast(lo, dequantized_by_types(lo, q, &g), out_dtype(c, 0));
}

/* round(x / scale + zero), cut, in the types that the operands have. */
static Value *quantized_by_types(Lower *lo, const Call *c, Value *x, Value *scale, Value *zero)
{
    Grid g;
    Real by = inverse(lo, real_of(lo, scale, scale->dtype));
    Real q = step(lo, ONNX_Mul, real_of(lo, x, x->dtype), by);
    q = exact(lo, ONNX_Round, step(lo, ONNX_Add, q, real_of(lo, zero, zero->dtype)));
    if (!bounds(lo, c, out_dtype(c, 0), &g))
        return NULL;
    return cast(lo, within(lo, q.at, g.min, g.max), out_dtype(c, 0));
}

static Value *lower_quantize_tokens(Lower *lo, const Call *c)
{
    return quantized_by_types(lo, c, tensor_arg(lo, c, "input"), tensor_arg(lo, c, "scales"),
                              tensor_arg(lo, c, "zero_points"));
}

static Value *lower_dequantize_tokens(Lower *lo, const Call *c)
{
    Value *y = product_of_difference(lo, tensor_arg(lo, c, "input"),
                                     tensor_arg(lo, c, "zero_points"),
                                     tensor_arg(lo, c, "scales"));
    return cast(lo, y, out_dtype(c, 0));
}

static Groups groups_of(Lower *lo, const Call *c, Shape x)
{
    int64_t n = 0, size = int_arg(c, "group_size");
    p2o_dim_is_int(x.at[1], &n);
    if (size > n && dim_is(dim_at(shape_arg(c, "scales"), -1), 1))
        size = n;
    Dim *at = NEW_N(lo->arena, Dim, 2);
    at[0] = p2o_dim_mul(lo->dims, x.at[0], p2o_dim_int(lo->dims, n / size));
    at[1] = p2o_dim_int(lo->dims, size);
    return (Groups){ { 2, at }, { 1, at } };
}

static Value *lower_quantize_groups(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input"), *scale = tensor_arg(lo, c, "scales");
    Value *zero = tensor_arg(lo, c, "zero_points");
    Groups to = groups_of(lo, c, x->shape);
    scale = along(lo, seen_as(lo, scale, to.each), 0, 2);
    zero = along(lo, seen_as(lo, zero, to.each), 0, 2);
    Value *q = quantized_by_types(lo, c, seen_as(lo, x, to.rows), scale, zero);
    return q ? reshape(lo, q, x->shape) : NULL;
}

static Value *lower_dequantize_groups(Lower *lo, const Call *c)
{
    Value *q = tensor_arg(lo, c, "input");
    Value *y = dequantized_groups(lo, q, tensor_arg(lo, c, "scales"),
                                  tensor_arg(lo, c, "zero_points"),
                                  groups_of(lo, c, q->shape));
    return cast(lo, y, out_dtype(c, 0));
}

static void choose_for_all(Lower *lo, const Call *c, bool symmetric, Value **out)
{
    int64_t axes[MAX_RANK];
    Value  *x = tensor_arg(lo, c, "input");
    double  min = float_arg(c, "quant_min"), max = float_arg(c, "quant_max");
    DType   t = dtype_arg(c, "dtype", DT_I8);
    for (int i = 0; i < rank(x); i++)
        axes[i] = i;
    Extremes e = extremes_of(lo, x, axes, rank(x), false);
    Real     scale = symmetric ? symmetric_scale(lo, e, min, max) : affine_scale(lo, e, min, max);
    scale = no_less(lo, (Real){ scale.at, DT_F32 }, float_arg(c, "eps"));
    scale.at = unsqueeze(lo, scale.at, 0);
    e.min.at = unsqueeze(lo, e.min.at, 0);
    out[0] = cast(lo, scale.at, DT_F64);
    out[1] = symmetric ? INTS(lo, t == DT_U8 ? 128 : 0)
                       : affine_zero(lo, (Real){ e.min.at, DT_F32 }, scale, min, max, t, DT_I64);
}

static void lower_choose(Lower *lo, const Call *c, Value **out)
{
    choose_for_all(lo, c, false, out);
}

static void lower_choose_symmetric(Lower *lo, const Call *c, Value **out)
{
    choose_for_all(lo, c, true, out);
}

static void lower_choose_tokens(Lower *lo, const Call *c, Value **out)
{
    Value  *x = emit(lo, ONNX_Abs, tensor_arg(lo, c, "input"));
    int64_t last = rank(x) - 1;
    Real    most = real_of(lo, reduce(lo, ONNX_ReduceMax, x, &last, 1, true), out_dtype(c, 0));
    most = real_like(lo, no_less(lo, most, 1e-5).at, most.t);
    out[0] = value_of(lo, step_by(lo, ONNX_Div, most, 127));
    out[1] = full(lo, out_shape(c, 1), out_dtype(c, 1), 0);
}

/* XNNPACK's: the zero is on the side where it costs less. */
static void lower_choose_tokens_asymmetric(Lower *lo, const Call *c, Value **out)
{
    enum { MIN = -128, MAX = 127 };
    Value   *x = tensor_arg(lo, c, "input");
    int64_t  last = rank(x) - 1;
    Extremes e = extremes_of(lo, x, &last, 1, true);
    Real     scale = no_less(lo, affine_scale(lo, e, MIN, MAX), (double)FLT_EPSILON);
    scale = real_like(lo, scale.at, scale.t);
    Real   low = step(lo, ONNX_Div, e.min, scale), high = step(lo, ONNX_Div, e.max, scale);
    Real   errors = step(lo, ONNX_Add, step_by(lo, ONNX_Add, low, MIN),
                         step_by(lo, ONNX_Add, high, MAX));
    Value *zero = choose(lo, emit(lo, ONNX_Greater, errors.at, num(lo, errors.at->dtype, 0)),
                         step_from(lo, ONNX_Sub, MIN, low).at,
                         step_from(lo, ONNX_Sub, MAX, high).at);
    out[0] = cast(lo, scale.at, DT_F64);
    out[1] = cast(lo, emit(lo, ONNX_Round, within(lo, zero, MIN, MAX)), DT_I64);
}

static Value *lower_convert(Lower *lo, const Call *c)
{
    return cast(lo, tensor_arg(lo, c, "input"), out_dtype(c, 0));
}

/* Products.  Some processors' 8-bit products of MatMulInteger saturate: int32 has none of that. */
static Value *lower_int_product(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_MatMul, tensor_as(lo, c, "self", DT_I32),
                tensor_as(lo, c, "mat2", DT_I32));
}

static Value *lower_packed_product(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", DT_F32), *w = tensor_arg(lo, c, "mat2");
    Value *scale = flat(lo, tensor_as(lo, c, "scales", DT_F32));
    w = dequantize_hidden(lo, w, scale, NULL, 0, 0);
    return cast(lo, emit(lo, ONNX_MatMul, x, swap_last_two(lo, w)), out_dtype(c, 0));
}

#define QD "quantized_decomposed::"
#define QRANGE "int quant_min, int quant_max"
#define TENSOR_RANGE "Tensor quant_min, Tensor quant_max"

const AtenOp p2o_ops_quant[] = {
    { QD "quantize_per_tensor(Tensor input, float scale, int zero_point, " QRANGE ", ScalarType dtype) -> Tensor",
      shape_quantize, .lower = lower_quantize },
    { QD "quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " QRANGE ", ScalarType dtype) -> Tensor",
      shape_quantize, .lower = lower_quantize },
    { QD "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, " TENSOR_RANGE ", ScalarType dtype) -> Tensor",
      shape_quantize, .lower = lower_quantize, .limits = "a fixed range" },
    { QD "dequantize_per_tensor(Tensor input, float scale, int zero_point, " QRANGE ", ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      shape_dequantize, .lower = lower_dequantize },
    { QD "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " QRANGE ", ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      shape_dequantize, .lower = lower_dequantize },
    { QD "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, " TENSOR_RANGE ", ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      shape_dequantize, .lower = lower_dequantize },
    { QD "quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, " QRANGE ", ScalarType dtype) -> Tensor",
      shape_quantize_channels, .lower = lower_quantize_channels },
    { QD "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, " QRANGE ", ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      shape_dequantize_channels, .lower = lower_dequantize_channels },
    { QD "choose_qparams.tensor(Tensor input, " QRANGE ", float eps, ScalarType dtype) -> (Tensor, Tensor)",
      shape_choose, .lower_many = lower_choose },
    { QD "choose_qparams_symmetric.tensor(Tensor input, " QRANGE ", float eps, ScalarType dtype) -> (Tensor, Tensor)",
      shape_choose, .lower_many = lower_choose_symmetric },
    { QD "choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
      shape_choose_tokens, .lower_many = lower_choose_tokens, .unchecked = true,
      .limits = "int8" },
    { QD "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
      shape_choose_tokens_asymmetric, .lower_many = lower_choose_tokens_asymmetric },
    { QD "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
      shape_choose_tokens_asymmetric, .lower_many = lower_choose_tokens_asymmetric },
    { QD "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " QRANGE ", ScalarType dtype) -> Tensor",
      shape_tokens, .lower = lower_quantize_tokens },
    { QD "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " QRANGE ", ScalarType dtype, ScalarType output_dtype) -> Tensor",
      shape_tokens, .lower = lower_dequantize_tokens },
    { QD "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, " QRANGE ", ScalarType dtype, int group_size) -> Tensor",
      shape_groups, .lower = lower_quantize_groups },
    { QD "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, " QRANGE ", ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
      shape_groups, .lower = lower_dequantize_groups },
    { QD "convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor", shape_convert,
      .lower = lower_convert },

    { "_int_mm(Tensor self, Tensor mat2) -> Tensor", shape_int_product,
      .lower = lower_int_product },
    { "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
      shape_packed_product, .lower = lower_packed_product },
    { 0 },
};
