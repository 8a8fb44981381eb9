/* Arithmetic, comparison and logic, elementwise with PyTorch's type promotion. */
#include "aten/lower.h"

static bool is_number_one(const Arg *x)
{
    double f;
    return p2o_number_is_const(x, &f) && f == 1;
}

/* self + alpha * other, and the like, in the result's type; bool adds as logical or. */
static Value *add_or_sub(Lower *lo, const Call *c, OnnxOp op)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    if (!is_number_one(p2o_call_arg(c, "alpha"))) {
        if (t == DT_BOOL)
            return unsupported(lo, c, "alpha with bool tensors");
        y = emit(lo, ONNX_Mul, y, number_arg(lo, c, "alpha", t));
    }
    if (t == DT_BOOL)
        return emit(lo, ONNX_Or, x, y);
    return emit(lo, op, x, y);
}

static Value *lower_add(Lower *lo, const Call *c) { return add_or_sub(lo, c, ONNX_Add); }

static Value *lower_sub(Lower *lo, const Call *c)
{
    if (out_dtype(c, 0) == DT_BOOL)
        return unsupported(lo, c, "subtraction of bool tensors");
    return add_or_sub(lo, c, ONNX_Sub);
}

static Value *lower_mul(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return emit(lo, t == DT_BOOL ? ONNX_And : ONNX_Mul, tensor_as(lo, c, "self", t),
                tensor_as(lo, c, "other", t));
}

static Value *lower_div(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return emit(lo, ONNX_Div, tensor_as(lo, c, "self", t), tensor_as(lo, c, "other", t));
}

const AtenOp p2o_ops_math[] = {
    { "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", p2o_rule_binary,
      .lower = lower_add },
    { "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", p2o_rule_binary,
      .lower = lower_add },
    { "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", p2o_rule_binary,
      .lower = lower_sub },
    { "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", p2o_rule_binary,
      .lower = lower_sub },
    { "mul.Tensor(Tensor self, Tensor other) -> Tensor", p2o_rule_binary, .lower = lower_mul },
    { "mul.Scalar(Tensor self, Scalar other) -> Tensor", p2o_rule_binary, .lower = lower_mul },
    { "div.Tensor(Tensor self, Tensor other) -> Tensor", p2o_rule_binary_float, .lower = lower_div },
    { "div.Scalar(Tensor self, Scalar other) -> Tensor", p2o_rule_binary_float, .lower = lower_div },
    { "neg(Tensor self) -> Tensor", p2o_rule_same, .onnx = ONNX_Neg },
    { 0 },
};
