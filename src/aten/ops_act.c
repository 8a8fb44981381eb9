/* Activations and softmax.
 *
 * ONNX Runtime's kernels of most activations know no f64: there they are written out. */
#include "aten/lower.h"

#include <math.h>

/* PyTorch's kernels of these take floats only. */
static void shape_float_only(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (!is_float(x.dtype) && !is_complex(x.dtype))
        rule_fail(in, "%s of %s", c->target + strlen("aten::"), p2o_dtype_torch(x.dtype));
    else
        p2o_rule_same(in, c);
}

/* ONNX Runtime's Relu knows no int64. */
static Value *lower_relu(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (is_float(x->dtype))
        return emit(lo, ONNX_Relu, x);
    return emit(lo, ONNX_Max, x, num(lo, x->dtype, 0));
}

static Value *lower_relu6(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return emit(lo, ONNX_Clip, x, num(lo, x->dtype, 0), num(lo, x->dtype, 6));
}

static Value *lower_hardtanh(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return emit(lo, ONNX_Clip, x, number_arg(lo, c, "min_val", x->dtype),
                number_arg(lo, c, "max_val", x->dtype));
}

/* x, or slope times it where it is negative. */
static Value *bent(Lower *lo, Value *x, Value *slope)
{
    return choose(lo, emit(lo, ONNX_Less, x, num(lo, x->dtype, 0)), emit(lo, ONNX_Mul, x, slope),
                  x);
}

static Value *leaky_relu(Lower *lo, Value *x, double slope)
{
    if (x->dtype == DT_F64)
        return bent(lo, x, num(lo, DT_F64, slope));
    return emit_with(lo, ONNX_LeakyRelu, ATTRS(attr_float("alpha", slope)), x);
}

static Value *lower_leaky_relu(Lower *lo, const Call *c)
{
    double slope;
    if (!fixed_number(lo, c, "negative_slope", &slope))
        return NULL;
    return leaky_relu(lo, tensor_arg(lo, c, "self"), slope);
}

/* The slope is drawn in training only; else it is the middle. */
static void shape_rrelu(Infer *in, const Call *c)
{
    if (bool_arg(c, "training"))
        rule_unsupported(in, "training: call model.eval() before the capture");
    shape_float_only(in, c);
    if (nouts(c) == 2)
        set_out(in, c, 1, type_arg(c, "noise").dtype, shape_arg(c, "noise"));
}

static Value *lower_rrelu(Lower *lo, const Call *c)
{
    double low, high;
    if (!fixed_number(lo, c, "lower", &low) || !fixed_number(lo, c, "upper", &high))
        return NULL;
    return leaky_relu(lo, tensor_arg(lo, c, "self"), (low + high) / 2);
}

static void lower_rrelu_with_noise(Lower *lo, const Call *c, Value **out)
{
    out[0] = lower_rrelu(lo, c);
    out[1] = tensor_arg(lo, c, "noise");
}

/* One weight for all, or one for each channel: dim 1. */
static void shape_prelu(Infer *in, const Call *c)
{
    Shape x = shape_arg(c, "self"), w = shape_arg(c, "weight");
    if (w.rank > 1) {
        rule_fail(in, "weight: rank %d, expected 0 or 1", w.rank);
        return;
    }
    if (w.rank == 1 && !dim_is(w.at[0], 1) &&
        !must_equal(in, c, w.at[0], x.rank > 1 ? x.at[1] : int_dim(in, 1), "channels"))
        return;
    shape_float_only(in, c);
}

static Value *prelu_by(Lower *lo, Value *x, Value *w)
{
    return x->dtype == DT_F64 ? bent(lo, x, w) : emit(lo, ONNX_PRelu, x, w);
}

static Value *lower_prelu(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *w = tensor_as(lo, c, "weight", x->dtype);
    int64_t axes[MAX_RANK];
    if (rank(x) == 0 && rank(w) == 1)
        return prelu_by(lo, x, squeeze(lo, w, 0));
    if (rank(x) > 2 && rank(w) == 1 && !is_size(w, 0, 1)) {
        for (int i = 2; i < rank(x); i++)
            axes[i - 2] = i - 1;
        w = emit(lo, ONNX_Unsqueeze, w, ints_const(lo, axes, (size_t)rank(x) - 2));
    }
    return prelu_by(lo, x, w);
}

/* The weight has the rank of self. */
static void shape_prelu_kernel(Infer *in, const Call *c)
{
    broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "weight"));
    shape_float_only(in, c);
}

static Value *lower_prelu_kernel(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return prelu_by(lo, x, tensor_as(lo, c, "weight", x->dtype));
}

/* scale * x, or scale * alpha * (exp(input_scale * x) - 1) where x is negative. */
static Value *scaled_elu(Lower *lo, Value *x, double alpha, double scale, double input_scale)
{
    Value *z = times_num(lo, x, input_scale), *y;
    if (x->dtype == DT_F64)
        y = times_num(lo, expm1_of(lo, z), alpha);
    else if (input_scale == 1 && scale != 1)
        return emit_with(lo, ONNX_Selu,
                         ATTRS(attr_float("alpha", alpha), attr_float("gamma", scale)), x);
    else
        y = emit_with(lo, ONNX_Elu, ATTRS(attr_float("alpha", alpha)), z);
    if (input_scale == 1 && x->dtype != DT_F64)
        return y;
    return times_num(lo, choose(lo, emit(lo, ONNX_Greater, x, num(lo, x->dtype, 0)), x, y), scale);
}

static Value *lower_elu(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    double alpha, scale, input_scale;
    if (!fixed_number(lo, c, "alpha", &alpha) || !fixed_number(lo, c, "scale", &scale) ||
        !fixed_number(lo, c, "input_scale", &input_scale))
        return NULL;
    return scaled_elu(lo, x, alpha, scale, input_scale);
}

static Value *lower_selu(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (x->dtype == DT_F64)
        return scaled_elu(lo, x, 1.6732632423543772848, 1.0507009873554804934, 1);
    return emit(lo, ONNX_Selu, x);
}

/* ONNX's Celu is for f32 alone. */
static Value *lower_celu(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    double alpha;
    if (!fixed_number(lo, c, "alpha", &alpha))
        return NULL;
    if (x->dtype == DT_F32 && alpha != 1)
        return emit_with(lo, ONNX_Celu, ATTRS(attr_float("alpha", alpha)), x);
    return scaled_elu(lo, x, alpha, 1, 1 / alpha);
}

static Value *lower_gelu(Lower *lo, const Call *c)
{
    const char *approximate = str_arg(c, "approximate");
    bool        by_tanh = same(approximate, "tanh");
    if (!by_tanh && !same(approximate, "none"))
        return unsupported(lo, c, "approximate '%s'", approximate);
    return gelu_of(lo, tensor_arg(lo, c, "self"), by_tanh);
}

static Value *lower_silu(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return emit(lo, ONNX_Mul, x, emit(lo, ONNX_Sigmoid, x));
}

static Value *lower_mish(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (lo->opset >= 18 && x->dtype != DT_F64)
        return emit(lo, ONNX_Mish, x);
    return emit(lo, ONNX_Mul, x, emit(lo, ONNX_Tanh, softplus_of(lo, x)));
}

/* x / 6 + 1/2 within [0, 1] */
static Value *hard_sigmoid(Lower *lo, Value *x)
{
    if (x->dtype == DT_F64)
        return emit(lo, ONNX_Clip, plus_num(lo, times_num(lo, x, 1.0 / 6), 0.5), num(lo, DT_F64, 0),
                    num(lo, DT_F64, 1));
    return emit_with(lo, ONNX_HardSigmoid,
                     ATTRS(attr_float("alpha", 1.0 / 6), attr_float("beta", 0.5)), x);
}

static Value *lower_hardsigmoid(Lower *lo, const Call *c)
{
    return hard_sigmoid(lo, tensor_arg(lo, c, "self"));
}

static Value *lower_hardswish(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return x->dtype == DT_F64 ? emit(lo, ONNX_Mul, x, hard_sigmoid(lo, x))
                              : emit(lo, ONNX_HardSwish, x);
}

/* 0 within lambd of 0.  ONNX's Shrink would make NaN 0 too. */
static Value *lower_hardshrink(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Value *small =
        emit(lo, ONNX_LessOrEqual, emit(lo, ONNX_Abs, x), number_arg(lo, c, "lambd", x->dtype));
    return choose(lo, small, num(lo, x->dtype, 0), x);
}

static Value *lower_softshrink(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *most = number_arg(lo, c, "lambd", x->dtype);
    double lambd;
    Value *least = p2o_number_is_const(p2o_call_arg(c, "lambd"), &lambd) ? num(lo, x->dtype, -lambd)
                                                                        : emit(lo, ONNX_Neg, most);
    return emit(lo, ONNX_Sub, x, emit(lo, ONNX_Clip, x, least, most));
}

/* value where x <= threshold, so NaN stays */
static Value *lower_threshold(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    DType  t = x->dtype;
    return choose(lo, emit(lo, ONNX_LessOrEqual, x, number_arg(lo, c, "threshold", t)),
                  number_arg(lo, c, "value", t), x);
}

/* log(1 + exp(beta x)) / beta, and x itself beyond the threshold: from 20 on there is no
 * difference. */
static Value *lower_softplus(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    double beta, threshold;
    if (!fixed_number(lo, c, "beta", &beta) || !fixed_number(lo, c, "threshold", &threshold))
        return NULL;
    Value *z = times_num(lo, x, beta), *y = softplus_of(lo, z);
    if (beta != 1)
        y = emit(lo, ONNX_Div, y, num(lo, x->dtype, beta));
    if (threshold >= 20 && beta > 0)
        return y;
    return choose(lo, emit(lo, ONNX_Greater, z, num(lo, x->dtype, threshold)), x, y);
}

/* -softplus(-x) */
static Value *lower_log_sigmoid(Lower *lo, const Call *c)
{
    Value *x = emit(lo, ONNX_Neg, tensor_arg(lo, c, "self"));
    return emit(lo, ONNX_Neg, softplus_of(lo, x));
}

static void shape_log_sigmoid_forward(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    shape_float_only(in, c);
    set_out(in, c, 1, x.dtype, x.shape);
}

/* The second result, for the backward pass, is exp(-|x|). */
static void lower_log_sigmoid_forward(Lower *lo, const Call *c, Value **out)
{
    out[0] = lower_log_sigmoid(lo, c);
    if (c->outs[1])
        out[1] =
            emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, emit(lo, ONNX_Abs, tensor_arg(lo, c, "self"))));
}

static void shape_glu(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Dim two = int_dim(in, 2), size = x.shape.at[dim];
    if (p2o_dim_eq(in->dims, p2o_dim_mod(in->dims, size, two), int_dim(in, 0)) == NO) {
        rule_fail(in, "size %s at dim %d is odd", p2o_dim_text(in->dims, size), dim);
        return;
    }
    set_out(in, c, 0, x.dtype, with_dim(in, x.shape, dim, p2o_dim_floordiv(in->dims, size, two)));
}

/* The first half times the sigmoid of the second. */
static Value *lower_glu(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *half[2];
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    if (lo->opset >= 18)
        emit_many(lo, ONNX_Split, ATTRS(attr_int("axis", dim), attr_int("num_outputs", 2)), 2, half,
                  x);
    else
        emit_many(lo, ONNX_Split, ATTRS(attr_int("axis", dim)), 2, half, x);
    return emit(lo, ONNX_Mul, half[0], emit(lo, ONNX_Sigmoid, half[1]));
}

/* The result's type is dtype when given; the input is cast before, as PyTorch does. */
static void shape_softmax(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    DType t = dtype_arg(c, "dtype", x.dtype);
    if (is_float(t) || is_complex(t))
        set_out(in, c, 0, t, x.shape);
    else
        rule_fail(in, "of %s: give a float dtype", p2o_dtype_torch(t));
}

static void shape_half_softmax(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    bool widen = bool_arg(c, "half_to_float");
    set_out(in, c, 0, widen ? DT_F32 : x.dtype, x.shape);
}

/* A 0-d softmax is that of one element. */
static Value *softmax_like(Lower *lo, const Call *c, OnnxOp op)
{
    Value *x = cast(lo, tensor_arg(lo, c, "self"), out_dtype(c, 0));
    bool   scalar = rank(x) == 0;
    int    dim;
    if (scalar)
        x = unsqueeze(lo, x, 0);
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), true, &dim);
    Value *y = emit_with(lo, op, ATTRS(attr_int("axis", dim)), x);
    return scalar ? squeeze(lo, y, 0) : y;
}

static Value *lower_softmax(Lower *lo, const Call *c) { return softmax_like(lo, c, ONNX_Softmax); }
static Value *lower_log_softmax(Lower *lo, const Call *c)
{
    return softmax_like(lo, c, ONNX_LogSoftmax);
}

/* 0 where everything along dim is -infinity. */
static Value *lower_safe_softmax(Lower *lo, const Call *c)
{
    Value *y = lower_softmax(lo, c), *x = cast(lo, tensor_arg(lo, c, "self"), y->dtype);
    Value *lowest = num(lo, y->dtype, -(double)INFINITY), *most = x;
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), true, &dim);
    if (rank(x))
        most = reduce(lo, ONNX_ReduceMax, x, (const int64_t[]){ dim }, 1, true);
    return choose(lo, emit(lo, ONNX_Equal, most, lowest), num(lo, y->dtype, 0), y);
}

#define TRAINING_LIMIT "training=True"

const AtenOp p2o_ops_act[] = {
    { "relu(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_relu },
    { "relu6(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_relu6 },
    { "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", p2o_rule_same,
      .lower = lower_hardtanh },
    { "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", shape_float_only,
      .lower = lower_leaky_relu,
      .batch = p2o_batch_self },
    { "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
      shape_rrelu, .lower = lower_rrelu, .limits = TRAINING_LIMIT },
    { "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
      shape_rrelu, .lower = lower_rrelu, .limits = TRAINING_LIMIT },
    { "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)",
      shape_rrelu, .lower_many = lower_rrelu_with_noise, .limits = TRAINING_LIMIT },
    { "prelu(Tensor self, Tensor weight) -> Tensor", shape_prelu, .lower = lower_prelu },
    { "_prelu_kernel(Tensor self, Tensor weight) -> Tensor", shape_prelu_kernel,
      .lower = lower_prelu_kernel },
    { "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
      shape_float_only, .lower = lower_elu,
      .batch = p2o_batch_self },
    { "selu(Tensor self) -> Tensor", shape_float_only, .lower = lower_selu,
      .batch = p2o_batch_self },
    { "celu(Tensor self, Scalar alpha=1.0) -> Tensor", shape_float_only, .lower = lower_celu,
      .batch = p2o_batch_self },
    { "gelu(Tensor self, *, str approximate='none') -> Tensor", shape_float_only,
      .lower = lower_gelu, .limits = "approximate 'none' and 'tanh'",
      .batch = p2o_batch_self },
    { "silu(Tensor self) -> Tensor", shape_float_only, .lower = lower_silu,
      .batch = p2o_batch_self },
    { "mish(Tensor self) -> Tensor", shape_float_only, .lower = lower_mish,
      .batch = p2o_batch_self },
    { "hardsigmoid(Tensor self) -> Tensor", shape_float_only, .lower = lower_hardsigmoid,
      .batch = p2o_batch_self },
    { "hardswish(Tensor self) -> Tensor", shape_float_only, .lower = lower_hardswish,
      .batch = p2o_batch_self },
    { "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", shape_float_only,
      .lower = lower_hardshrink,
      .batch = p2o_batch_self },
    { "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", shape_float_only,
      .lower = lower_softshrink,
      .batch = p2o_batch_self },
    { "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", p2o_rule_same,
      .lower = lower_threshold },
    { "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", shape_float_only,
      .lower = lower_softplus,
      .batch = p2o_batch_self },
    { "log_sigmoid(Tensor self) -> Tensor", shape_float_only, .lower = lower_log_sigmoid,
      .batch = p2o_batch_self },
    { "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
      shape_log_sigmoid_forward, .lower_many = lower_log_sigmoid_forward,
      .batch = p2o_batch_self },
    { "glu(Tensor self, int dim=-1) -> Tensor", shape_glu, .lower = lower_glu,
      .batch = p2o_batch_axes },
    { "sigmoid(Tensor self) -> Tensor", p2o_rule_float, .onnx = ONNX_Sigmoid },
    { "special_expit(Tensor self) -> Tensor", p2o_rule_float, .onnx = ONNX_Sigmoid },
    { "tanh(Tensor self) -> Tensor", p2o_rule_float, .onnx = ONNX_Tanh },
    { "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", shape_softmax,
      .lower = lower_softmax,
      .batch = p2o_batch_axes },
    { "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", shape_softmax,
      .lower = lower_softmax,
      .batch = p2o_batch_axes },
    { "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape_half_softmax,
      .lower = lower_softmax,
      .batch = p2o_batch_axes },
    { "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", shape_softmax,
      .lower = lower_safe_softmax,
      .batch = p2o_batch_axes },
    { "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", shape_softmax,
      .lower = lower_log_softmax,
      .batch = p2o_batch_axes },
    { "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
      shape_softmax, .lower = lower_log_softmax,
      .batch = p2o_batch_axes },
    { "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape_half_softmax,
      .lower = lower_log_softmax,
      .batch = p2o_batch_axes },
    { 0 },
};
