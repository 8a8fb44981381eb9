/* Fake quantisation: a float in, and out what its integer stands for. */
#include "aten/quant.h"

static void shape_fake(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!must_have_range(in, c) || !must_be_one(in, c, "scale") ||
        !must_be_one(in, c, "zero_point"))
        return;
    set_out(in, c, 0, x.dtype, x.shape);
    if (nouts(c) > 1)
        set_out(in, c, 1, DT_BOOL, x.shape);
}

static void shape_fake_channels(Infer *in, const Call *c)
{
    bool        own = names_arg(c, "input");
    const char *many = own ? "s" : "";
    Type        x = type_arg(c, own ? "input" : "self");
    if (!must_have_range(in, c) ||
        !must_be_channels(in, c, x.shape, *many ? "scales" : "scale",
                          *many ? "zero_points" : "zero_point"))
        return;
    set_out(in, c, 0, x.dtype, x.shape);
    if (nouts(c) > 1)
        set_out(in, c, 1, DT_BOOL, x.shape);
}

typedef struct Faked {
    Value *y, *mask;
} Faked;

/* scale and zero broadcast with x; a zero that is a float is added before rounding.  `product` is
 * the type of the last step: of a float64 channels are multiplied in float64, others in float32. */
static Faked faked(Lower *lo, const Call *c, Value *x, Value *scale, Value *zero, DType product)
{
    DType  t = x->dtype, wide = wide_of(t);
    double min = float_arg(c, "quant_min"), max = float_arg(c, "quant_max");
    bool   late = is_int(zero->dtype);
    scale = cast(lo, scale, DT_F32);
    zero = cast(lo, zero, DT_F32);
    Value *by = inverse(lo, (Real){ scale, DT_F32 }).at, *z = cast(lo, zero, wide);
    Value *q = emit(lo, ONNX_Mul, cast(lo, x, wide), cast(lo, by, wide));
    q = late ? emit(lo, ONNX_Add, emit(lo, ONNX_Round, q), z)
             : emit(lo, ONNX_Round, emit(lo, ONNX_Add, q, z));
    Value *cut = cast(lo, within(lo, q, min, max), product);
    Value *y = emit(lo, ONNX_Mul, emit(lo, ONNX_Sub, cut, cast(lo, zero, product)),
                    cast(lo, scale, product));
    Value *mask = NULL;
    if (nouts(c) > 1)
        mask = emit(lo, ONNX_And, emit(lo, ONNX_GreaterOrEqual, q, num(lo, wide, min)),
                    emit(lo, ONNX_LessOrEqual, q, num(lo, wide, max)));
    return (Faked){ cast(lo, y, t), mask };
}

/* The float64 of a call as the float32 that PyTorch makes of it. */
static Value *float_number(Lower *lo, const Call *c, const char *name)
{
    return cast(lo, number_or_tensor(lo, c, name, DT_F64, DT_F32), DT_F32);
}

static Faked faked_tensor(Lower *lo, const Call *c)
{
    Value *zero = number_or_tensor(lo, c, "zero_point", DT_I64, DT_I64);
    return faked(lo, c, tensor_arg(lo, c, "self"), float_number(lo, c, "scale"),
                 cast(lo, zero, DT_I32), DT_F32);
}

static Value *lower_fake(Lower *lo, const Call *c) { return faked_tensor(lo, c).y; }

static void lower_fake_mask(Lower *lo, const Call *c, Value **out)
{
    Faked f = faked_tensor(lo, c);
    out[0] = f.y;
    out[1] = f.mask;
}

/* Left alone where it is not enabled, which may be known at run time only. */
static void lower_fake_enabled(Lower *lo, const Call *c, Value **out)
{
    Value *on = one_number(lo, tensor_arg(lo, c, "fake_quant_enabled"));
    Faked  f = faked_tensor(lo, c);
    on = emit(lo, ONNX_Not, emit(lo, ONNX_Equal, on, num(lo, on->dtype, 0)));
    out[0] = choose(lo, on, f.y, tensor_arg(lo, c, "self"));
    out[1] = emit(lo, ONNX_Or, f.mask, emit(lo, ONNX_Not, on));
}

/* A zero that is learnt: rounded, and inside the integers' range. */
static Value *learnt_zero(Lower *lo, const Call *c, Value *zero)
{
    return cast(lo, within(lo, emit(lo, ONNX_Round, cast(lo, zero, DT_F32)),
                           float_arg(c, "quant_min"), float_arg(c, "quant_max")), DT_I32);
}

static Value *lower_fake_learnable(Lower *lo, const Call *c)
{
    Value *zero = one_number(lo, tensor_arg(lo, c, "zero_point"));
    return faked(lo, c, tensor_arg(lo, c, "self"), float_number(lo, c, "scale"),
                 learnt_zero(lo, c, zero), DT_F32).y;
}

static Faked faked_channels(Lower *lo, const Call *c, bool learnt)
{
    bool   own = names_arg(c, "input");
    Value *x = tensor_arg(lo, c, own ? "input" : "self");
    Grid   g = channels_of(lo, c, own ? "scales" : "scale", own ? "zero_points" : "zero_point",
                           rank(x));
    Value *zero = learnt ? learnt_zero(lo, c, g.zero) : own ? cast(lo, g.zero, DT_I32) : g.zero;
    return faked(lo, c, x, along(lo, g.scale, g.axis, rank(x)),
                 along(lo, zero, g.axis, rank(x)), wide_of(x->dtype));
}

static Value *lower_fake_channels(Lower *lo, const Call *c)
{
    return faked_channels(lo, c, false).y;
}

static Value *lower_fake_learnable_channels(Lower *lo, const Call *c)
{
    return faked_channels(lo, c, true).y;
}

static void lower_fake_channels_mask(Lower *lo, const Call *c, Value **out)
{
    Faked f = faked_channels(lo, c, false);
    out[0] = f.y;
    out[1] = f.mask;
}

#define QRANGE "int quant_min, int quant_max"

const AtenOp p2o_ops_fake[] = {
    { "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, " QRANGE ") -> Tensor",
      shape_fake, .lower = lower_fake },
    { "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, " QRANGE ") -> Tensor",
      shape_fake, .lower = lower_fake },
    { "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, " QRANGE ") -> (Tensor output, Tensor mask)",
      shape_fake, .lower_many = lower_fake_mask },
    { "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, " QRANGE ") -> (Tensor output, Tensor mask)",
      shape_fake, .lower_many = lower_fake_enabled },
    { "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, " QRANGE ", float grad_factor=1.) -> Tensor",
      shape_fake, .lower = lower_fake_learnable },
    { "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, " QRANGE ") -> Tensor",
      shape_fake_channels, .lower = lower_fake_channels },
    { "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, " QRANGE ") -> (Tensor output, Tensor mask)",
      shape_fake_channels, .lower_many = lower_fake_channels_mask },
    { "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, " QRANGE ", float grad_factor=1.) -> Tensor",
      shape_fake_channels, .lower = lower_fake_learnable_channels },
    { "quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, " QRANGE ") -> Tensor",
      shape_fake_channels, .lower = lower_fake_channels },
    { 0 },
};
