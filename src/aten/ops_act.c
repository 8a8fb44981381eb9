/* Activations and softmax. */
#include "aten/lower.h"

/* The result's type is dtype when given; the input is cast before, as PyTorch does. */
static void shape_softmax(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
        set_out(in, c, 0, dtype_arg(c, "dtype", x.dtype), x.shape);
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
static Value *lower_log_softmax(Lower *lo, const Call *c) { return softmax_like(lo, c, ONNX_LogSoftmax); }

const AtenOp p2o_ops_act[] = {
    { "relu(Tensor self) -> Tensor", p2o_rule_same, .onnx = ONNX_Relu },
    { "sigmoid(Tensor self) -> Tensor", p2o_rule_float, .onnx = ONNX_Sigmoid },
    { "tanh(Tensor self) -> Tensor", p2o_rule_float, .onnx = ONNX_Tanh },
    { "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", shape_softmax,
      .lower = lower_softmax },
    { "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape_half_softmax,
      .lower = lower_softmax },
    { "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", shape_softmax,
      .lower = lower_log_softmax },
    { "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape_half_softmax,
      .lower = lower_log_softmax },
    { 0 },
};
