/* Elementary functions of one tensor; integers and bool become f32 where the result is no whole
 * number. */
#include "aten/lower.h"

#include <float.h>
#include <math.h>

static const double LN_2 = 0.69314718055994530942, LN_10 = 2.30258509299404568402,
                    PI = 3.14159265358979323846;

/* Rounding leaves integers alone. */
static Value *rounded(Lower *lo, const Call *c, OnnxOp op)
{
    Value *x = tensor_arg(lo, c, "self");
    return is_float(x->dtype) ? emit(lo, op, x) : x;
}

static Value *lower_floor(Lower *lo, const Call *c) { return rounded(lo, c, ONNX_Floor); }
static Value *lower_ceil(Lower *lo, const Call *c) { return rounded(lo, c, ONNX_Ceil); }
static Value *lower_round(Lower *lo, const Call *c) { return rounded(lo, c, ONNX_Round); }

static Value *towards_zero(Lower *lo, Value *x)
{
    Value *below = emit(lo, ONNX_Less, x, num(lo, x->dtype, 0));
    return choose(lo, below, emit(lo, ONNX_Ceil, x), emit(lo, ONNX_Floor, x));
}

static Value *lower_trunc(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return is_float(x->dtype) ? towards_zero(lo, x) : x;
}

static Value *lower_frac(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (!is_float(x->dtype))
        return unsupported(lo, c, "the fraction of integers");
    return emit(lo, ONNX_Sub, x, towards_zero(lo, x));
}

/* round(x * 10^decimals) / 10^decimals, with the power of ten whole. */
static Value *lower_round_decimals(Lower *lo, const Call *c)
{
    int64_t decimals = int_arg(c, "decimals");
    DType   t = out_dtype(c, 0);
    Value  *x = tensor_as(lo, c, "self", wide_of(t));
    if (!is_float(t))
        return decimals == 0 ? x : unsupported(lo, c, "decimals of integers");
    if (decimals == 0)
        return emit(lo, ONNX_Round, tensor_arg(lo, c, "self"));
    double ten_power = 1;
    for (double i = fabs((double)decimals); i > 0 && ten_power < DBL_MAX; i--)
        ten_power *= 10;
    Value *ten = num(lo, x->dtype, ten_power);
    OnnxOp there = decimals > 0 ? ONNX_Mul : ONNX_Div, back = decimals > 0 ? ONNX_Div : ONNX_Mul;
    x = emit(lo, ONNX_Round, emit(lo, there, x, ten));
    return cast(lo, emit(lo, back, x, ten), t);
}

static Value *lower_sign(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return x->dtype == DT_BOOL ? x : emit(lo, ONNX_Sign, x);
}

static Value *lower_itself(Lower *lo, const Call *c) { return tensor_arg(lo, c, "self"); }

/* The argument of a function that takes several steps. */
static Value *float_self(Lower *lo, const Call *c)
{
    return tensor_as(lo, c, "self", wide_of(out_dtype(c, 0)));
}

static Value *lower_rsqrt(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Reciprocal,
                emit(lo, ONNX_Sqrt, tensor_as(lo, c, "self", out_dtype(c, 0))));
}

static Value *lower_exp2(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return emit(lo, ONNX_Pow, num(lo, t, 2), tensor_as(lo, c, "self", t));
}

static Value *log_to_base(Lower *lo, const Call *c, double log_base)
{
    Value *y = emit(lo, ONNX_Log, float_self(lo, c));
    return cast(lo, emit(lo, ONNX_Div, y, num(lo, y->dtype, log_base)), out_dtype(c, 0));
}

static Value *lower_log2(Lower *lo, const Call *c) { return log_to_base(lo, c, LN_2); }
static Value *lower_log10(Lower *lo, const Call *c) { return log_to_base(lo, c, LN_10); }

static Value *lower_deg2rad(Lower *lo, const Call *c)
{
    return times_num(lo, tensor_as(lo, c, "self", out_dtype(c, 0)), PI / 180);
}

static Value *lower_rad2deg(Lower *lo, const Call *c)
{
    return times_num(lo, tensor_as(lo, c, "self", out_dtype(c, 0)), 180 / PI);
}

/* sin(pi x) / (pi x), 1 at 0 */
static Value *lower_sinc(Lower *lo, const Call *c)
{
    Value *x = times_num(lo, float_self(lo, c), PI);
    Value *y = emit(lo, ONNX_Div, emit(lo, ONNX_Sin, x), x);
    Value *at_zero = emit(lo, ONNX_Equal, x, num(lo, x->dtype, 0));
    return cast(lo, choose(lo, at_zero, num(lo, x->dtype, 1), y), out_dtype(c, 0));
}

/* log(x / (1 - x)), x kept within [eps, 1 - eps] when that is given */
static Value *lower_logit(Lower *lo, const Call *c)
{
    Value *x = float_self(lo, c);
    DType  t = x->dtype;
    if (has_arg(c, "eps")) {
        double eps = float_arg(c, "eps");
        x = emit(lo, ONNX_Clip, x, num(lo, t, eps), num(lo, t, 1 - eps));
    }
    Value *odds = emit(lo, ONNX_Div, x, emit(lo, ONNX_Sub, num(lo, t, 1), x));
    return cast(lo, emit(lo, ONNX_Log, odds), out_dtype(c, 0));
}

/* The largest finite number. */
static double largest(DType t)
{
    switch (t) {
    case DT_F16: return 65504;
    case DT_BF16: return 0x1.FEp127;
    case DT_F64: return DBL_MAX;
    default: return (double)FLT_MAX;
    }
}

/* NaN and the infinities become numbers; infinities that are not named become the largest. */
static Value *lower_nan_to_num(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *y;
    DType  t = x->dtype;
    if (!is_float(t))
        return x;
    double most = largest(t), inf = (double)INFINITY;
    y = emit(lo, ONNX_Clip, x, num(lo, t, -most), num(lo, t, most));
    if (has_arg(c, "posinf"))
        y = choose(lo, emit(lo, ONNX_Equal, x, num(lo, t, inf)), num(lo, t, float_arg(c, "posinf")),
                   y);
    if (has_arg(c, "neginf"))
        y = choose(lo, emit(lo, ONNX_Equal, x, num(lo, t, -inf)),
                   num(lo, t, float_arg(c, "neginf")), y);
    double nan = has_arg(c, "nan") ? float_arg(c, "nan") : 0;
    return choose(lo, emit(lo, ONNX_IsNaN, x), num(lo, t, nan), y);
}

/* Of a real number: 0 or pi. */
static Value *lower_angle(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t);
    Value *y = choose(lo, emit(lo, ONNX_Less, x, num(lo, t, 0)), num(lo, t, PI), num(lo, t, 0));
    return choose(lo, emit(lo, ONNX_IsNaN, x), x, y);
}

#define UNARY(name)  name "(Tensor self) -> Tensor"
#define ROW_SAME(name, op)     { UNARY(name), p2o_rule_same, .onnx = op }
#define ROW_FLOAT(name, op)    { UNARY(name), p2o_rule_float, .onnx = op }
#define ROW_SAME_FN(name, fn)  { UNARY(name), p2o_rule_same, .lower = fn }
#define ROW_FLOAT_FN(name, fn) { UNARY(name), p2o_rule_float, .lower = fn }
/* A real number is its own conjugate and real part. */
#define ROW_REAL(name)                                                                             \
    {                                                                                              \
        name "(Tensor(a) self) -> Tensor(a)", p2o_rule_same, .lower = lower_itself                 \
    }
const AtenOp p2o_ops_unary[] = {
    ROW_SAME("neg", ONNX_Neg),
    ROW_SAME("negative", ONNX_Neg),
    ROW_SAME("abs", ONNX_Abs),
    ROW_SAME("absolute", ONNX_Abs),
    ROW_SAME_FN("sign", lower_sign),
    ROW_SAME_FN("sgn", lower_sign),
    ROW_SAME_FN("floor", lower_floor),
    ROW_SAME_FN("ceil", lower_ceil),
    ROW_SAME_FN("trunc", lower_trunc),
    ROW_SAME_FN("fix", lower_trunc),
    { "frac(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_frac, .limits = "floats" },
    ROW_SAME_FN("round", lower_round),
    { "round.decimals(Tensor self, *, int decimals) -> Tensor", p2o_rule_same,
      .lower = lower_round_decimals, .limits = "floats" },
    { "special_round(Tensor self, *, int decimals=0) -> Tensor", p2o_rule_same,
      .lower = lower_round_decimals },
    ROW_REAL("positive"),
    ROW_REAL("conj"),
    ROW_REAL("_conj"),
    ROW_REAL("resolve_conj"),
    ROW_REAL("resolve_neg"),
    ROW_REAL("real"),
    ROW_SAME_FN("conj_physical", lower_itself),
    ROW_SAME_FN("_conj_physical", lower_itself),
    ROW_FLOAT_FN("angle", lower_angle),
    ROW_FLOAT("sqrt", ONNX_Sqrt),
    ROW_FLOAT_FN("rsqrt", lower_rsqrt),
    ROW_FLOAT("reciprocal", ONNX_Reciprocal),
    ROW_FLOAT("exp", ONNX_Exp),
    ROW_FLOAT_FN("exp2", lower_exp2),
    ROW_FLOAT_FN("special_exp2", lower_exp2),
    ROW_FLOAT("log", ONNX_Log),
    ROW_FLOAT_FN("log2", lower_log2),
    ROW_FLOAT_FN("log10", lower_log10),
    ROW_FLOAT("sin", ONNX_Sin),
    ROW_FLOAT("cos", ONNX_Cos),
    ROW_FLOAT("tan", ONNX_Tan),
    ROW_FLOAT("asin", ONNX_Asin),
    ROW_FLOAT("arcsin", ONNX_Asin),
    ROW_FLOAT("acos", ONNX_Acos),
    ROW_FLOAT("arccos", ONNX_Acos),
    ROW_FLOAT("atan", ONNX_Atan),
    ROW_FLOAT("arctan", ONNX_Atan),
    ROW_FLOAT("sinh", ONNX_Sinh),
    ROW_FLOAT("cosh", ONNX_Cosh),
    ROW_FLOAT("asinh", ONNX_Asinh),
    ROW_FLOAT("arcsinh", ONNX_Asinh),
    ROW_FLOAT("acosh", ONNX_Acosh),
    ROW_FLOAT("arccosh", ONNX_Acosh),
    ROW_FLOAT("atanh", ONNX_Atanh),
    ROW_FLOAT("arctanh", ONNX_Atanh),
    ROW_FLOAT_FN("deg2rad", lower_deg2rad),
    ROW_FLOAT_FN("rad2deg", lower_rad2deg),
    ROW_FLOAT_FN("sinc", lower_sinc),
    ROW_FLOAT_FN("special_sinc", lower_sinc),
    { "logit(Tensor self, float? eps=None) -> Tensor", p2o_rule_float, .lower = lower_logit },
    { "special_logit(Tensor self, float? eps=None) -> Tensor", p2o_rule_float,
      .lower = lower_logit },
    { "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
      p2o_rule_same, .lower = lower_nan_to_num },
    { 0 },
};
