/* Comparison, choice, logic and bits.
 *
 * Comparisons cast both sides to their promoted type, as PyTorch does.  The bitwise operators of
 * ONNX take integers since opset 18; on bools they are the logical ones. */
#include "aten/lower.h"

#include <math.h>

static Value *compare_with(Lower *lo, const Call *c, OnnxOp op)
{
    DType t = PROMOTE(c, "self", "other");
    if (t == DT_BOOL && op != ONNX_Equal)               /* no order of bools in ONNX */
        t = DT_I32;
    return emit(lo, op, tensor_as(lo, c, "self", t), tensor_as(lo, c, "other", t));
}

static Value *lower_eq(Lower *lo, const Call *c) { return compare_with(lo, c, ONNX_Equal); }
static Value *lower_ne(Lower *lo, const Call *c) { return emit(lo, ONNX_Not, lower_eq(lo, c)); }
static Value *lower_lt(Lower *lo, const Call *c) { return compare_with(lo, c, ONNX_Less); }
static Value *lower_le(Lower *lo, const Call *c) { return compare_with(lo, c, ONNX_LessOrEqual); }
static Value *lower_gt(Lower *lo, const Call *c) { return compare_with(lo, c, ONNX_Greater); }
static Value *lower_ge(Lower *lo, const Call *c)
{
    return compare_with(lo, c, ONNX_GreaterOrEqual);
}

/* |self - other| <= atol + |rtol * other|, of what is finite; equal infinities are close. */
static Value *close_pairs(Lower *lo, const Call *c)
{
    DType  t = wide_of(float_of(PROMOTE(c, "self", "other")));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    Value *close = emit(lo, ONNX_Equal, x, y);
    if (bool_arg(c, "equal_nan"))
        close = emit(lo, ONNX_Or, close,
                     emit(lo, ONNX_And, emit(lo, ONNX_IsNaN, x), emit(lo, ONNX_IsNaN, y)));
    double rtol = float_arg(c, "rtol"), atol = float_arg(c, "atol");
    if (rtol == 0 && atol == 0)
        return close;
    Value *error = emit(lo, ONNX_Abs, emit(lo, ONNX_Sub, x, y));
    Value *allowed = plus_num(lo, times_num(lo, emit(lo, ONNX_Abs, y), rtol), atol);
    Value *near = emit(lo, ONNX_And, emit(lo, ONNX_Less, error, num(lo, t, (double)INFINITY)),
                       emit(lo, ONNX_LessOrEqual, error, allowed));
    return emit(lo, ONNX_Or, close, near);
}

/* A bool of rank 0; what has no elements is all true. */
static Value *all_true(Lower *lo, Value *x)
{
    int64_t axes[MAX_RANK];
    if (rank(x) == 0)
        return x;
    for (int i = 0; i < rank(x); i++)
        axes[i] = i;
    Value *wrong = cast(lo, emit(lo, ONNX_Not, x), DT_I64);
    wrong = reduce(lo, ONNX_ReduceSum, wrong, axes, rank(x), false);
    return emit(lo, ONNX_Not, cast(lo, wrong, DT_BOOL));
}

static void shape_allclose(Infer *in, const Call *c)
{
    broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "other"));
    set_bool(in, c, 0);
}

static Value *lower_allclose(Lower *lo, const Call *c) { return all_true(lo, close_pairs(lo, c)); }

static void shape_equal(Infer *in, const Call *c)
{
    Shape x = shape_arg(c, "self"), y = shape_arg(c, "other");
    for (int i = 0; x.rank == y.rank && i < x.rank; i++)
        if (p2o_dim_eq(in->dims, x.at[i], y.at[i]) == CANNOT_TELL)
            rule_unsupported(in, "shapes that may or may not be equal");
    set_bool(in, c, 0);
}

static Value *lower_equal(Lower *lo, const Call *c)
{
    Shape x = shape_arg(c, "self"), y = shape_arg(c, "other");
    bool  same_shape = x.rank == y.rank;
    for (int i = 0; same_shape && i < x.rank; i++)
        same_shape = p2o_dim_eq(lo->dims, x.at[i], y.at[i]) == YES;
    return same_shape ? all_true(lo, lower_eq(lo, c)) : num(lo, DT_BOOL, 0);
}

static void shape_where(Infer *in, const Call *c)
{
    Shape s = broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "other"));
    set_out(in, c, 0, PROMOTE(c, "self", "other"), broadcast(in, c, s, shape_arg(c, "condition")));
}

static Value *lower_where(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return choose(lo, tensor_as(lo, c, "condition", DT_BOOL), tensor_as(lo, c, "self", t),
                  tensor_as(lo, c, "other", t));
}

/* Any number but 0 is true. */
static Value *logical(Lower *lo, const Call *c, OnnxOp op)
{
    return emit(lo, op, tensor_as(lo, c, "self", DT_BOOL), tensor_as(lo, c, "other", DT_BOOL));
}

static Value *lower_logical_and(Lower *lo, const Call *c) { return logical(lo, c, ONNX_And); }
static Value *lower_logical_or(Lower *lo, const Call *c) { return logical(lo, c, ONNX_Or); }
static Value *lower_logical_xor(Lower *lo, const Call *c) { return logical(lo, c, ONNX_Xor); }

static Value *lower_logical_not(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Not, tensor_as(lo, c, "self", DT_BOOL));
}

static void shape_bits(Infer *in, const Call *c)
{
    p2o_rule_binary(in, c);
    DType t = c->outs[0] ? c->outs[0]->type.dtype : DT_I64;
    if (!in->failed && !is_int(t) && t != DT_BOOL)
        rule_fail(in, "bits of %s", p2o_dtype_torch(t));
}

static Value *bitwise(Lower *lo, const Call *c, OnnxOp bits, OnnxOp bools)
{
    DType t = out_dtype(c, 0);
    if (t != DT_BOOL && lo->opset < 18)
        return unsupported(lo, c, "bits of integers before opset 18");
    return emit(lo, t == DT_BOOL ? bools : bits, tensor_as(lo, c, "self", t),
                tensor_as(lo, c, "other", t));
}

static Value *lower_bitwise_and(Lower *lo, const Call *c)
{
    return bitwise(lo, c, ONNX_BitwiseAnd, ONNX_And);
}
static Value *lower_bitwise_or(Lower *lo, const Call *c)
{
    return bitwise(lo, c, ONNX_BitwiseOr, ONNX_Or);
}
static Value *lower_bitwise_xor(Lower *lo, const Call *c)
{
    return bitwise(lo, c, ONNX_BitwiseXor, ONNX_Xor);
}

/* -1 - x, in the two's complement of any width. */
static Value *bits_flipped(Lower *lo, Value *x)
{
    if (lo->opset >= 18)
        return emit(lo, ONNX_BitwiseNot, x);
    return emit(lo, ONNX_Sub,
                p2o_build_const(lo->b, p2o_tensor_scalar(lo->arena, x->dtype, 0, -1, false)), x);
}

static Value *lower_bitwise_not(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return x->dtype == DT_BOOL ? emit(lo, ONNX_Not, x) : bits_flipped(lo, x);
}

static void shape_shift(Infer *in, const Call *c)
{
    p2o_rule_binary(in, c);
    DType t = c->outs[0] ? c->outs[0]->type.dtype : DT_I64;
    if (!in->failed && !is_int(t))
        rule_fail(in, "shift of %s", p2o_dtype_torch(t));
}

static DType unsigned_of(DType t)
{
    switch (t) {
    case DT_I8: return DT_U8;
    case DT_I16: return DT_U16;
    case DT_I32: return DT_U32;
    case DT_I64: return DT_U64;
    default: return t;
    }
}

/* ONNX shifts unsigned types only, by less than their width. */
static Value *shifted_bits(Lower *lo, const char *direction, Value *x, Value *by)
{
    DType t = x->dtype, u = unsigned_of(t);
    return cast(lo,
                emit_with(lo, ONNX_BitShift, ATTRS(attr_str("direction", direction)),
                          cast(lo, x, u), cast(lo, by, u)),
                t);
}

/* By the width or more, or by less than 0, leaves nothing. */
static Value *lower_shift_left(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    int    width = (int)p2o_dtype_bytes(t) * 8;
    Value *x = tensor_as(lo, c, "self", t), *by = tensor_as(lo, c, "other", t);
    double f;
    if (p2o_number_is_const(p2o_call_arg(c, "other"), &f))
        return f < 0 || f >= width ? full(lo, out_shape(c, 0), t, 0)
                                   : shifted_bits(lo, "LEFT", x, by);
    Value *last = num(lo, t, width - 1), *zero = num(lo, t, 0);
    Value *inside = emit(lo, ONNX_LessOrEqual, by, last);
    if (unsigned_of(t) != t)
        inside = emit(lo, ONNX_And, inside, emit(lo, ONNX_GreaterOrEqual, by, zero));
    return choose(lo, inside, shifted_bits(lo, "LEFT", x, choose(lo, inside, by, zero)), zero);
}

/* The sign moves in from the left; by the width or more, or by less than 0, it is all that stays. A
 * negative x shifts as its complement. */
static Value *lower_shift_right(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    int    width = (int)p2o_dtype_bytes(t) * 8;
    Value *x = tensor_as(lo, c, "self", t), *by = tensor_as(lo, c, "other", t);
    Value *zero = num(lo, t, 0), *last = num(lo, t, width - 1);
    double f;
    if (unsigned_of(t) == t) {
        if (p2o_number_is_const(p2o_call_arg(c, "other"), &f) && f >= 0 && f < width)
            return shifted_bits(lo, "RIGHT", x, by);
        Value *inside = emit(lo, ONNX_LessOrEqual, by, last);
        return choose(lo, inside, shifted_bits(lo, "RIGHT", x, choose(lo, inside, by, zero)), zero);
    }
    if (p2o_number_is_const(p2o_call_arg(c, "other"), &f)) {
        by = f < 0 || f >= width ? last : by;
    } else {
        Value *inside = emit(lo, ONNX_And, emit(lo, ONNX_LessOrEqual, by, last),
                             emit(lo, ONNX_GreaterOrEqual, by, zero));
        by = choose(lo, inside, by, last);
    }
    Value *below = emit(lo, ONNX_Less, x, zero);
    Value *y = shifted_bits(lo, "RIGHT", choose(lo, below, bits_flipped(lo, x), x), by);
    return choose(lo, below, bits_flipped(lo, y), y);
}

/* What only floats can be. */
static Value *never(Lower *lo, const Call *c) { return full(lo, out_shape(c, 0), DT_BOOL, 0); }

static Value *lower_isnan(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return is_float(x->dtype) ? emit(lo, ONNX_IsNaN, x) : never(lo, c);
}

static Value *lower_isinf(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (!is_float(x->dtype))
        return never(lo, c);
    if (lo->opset < 20)                                 /* IsInf takes half types since opset 20 */
        x = cast(lo, x, wide_of(x->dtype));
    return emit(lo, ONNX_IsInf, x);
}

static Value *equals_number(Lower *lo, const Call *c, double f)
{
    Value *x = tensor_arg(lo, c, "self");
    return is_float(x->dtype) ? emit(lo, ONNX_Equal, x, num(lo, x->dtype, f)) : never(lo, c);
}

static Value *lower_isposinf(Lower *lo, const Call *c)
{
    return equals_number(lo, c, (double)INFINITY);
}
static Value *lower_isneginf(Lower *lo, const Call *c)
{
    return equals_number(lo, c, -(double)INFINITY);
}
static Value *lower_isreal(Lower *lo, const Call *c)
{
    return full(lo, out_shape(c, 0), DT_BOOL, 1);
}

/* |x| < infinity: no NaN is. */
static Value *lower_isfinite(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (!is_float(x->dtype))
        return full(lo, out_shape(c, 0), DT_BOOL, 1);
    return emit(lo, ONNX_Less, emit(lo, ONNX_Abs, x), num(lo, x->dtype, (double)INFINITY));
}

#define ROW_COMPARE(name, fn)                                                                   \
    { name ".Tensor(Tensor self, Tensor other) -> Tensor", p2o_rule_compare, .lower = fn },     \
    { name ".Scalar(Tensor self, Scalar other) -> Tensor", p2o_rule_compare, .lower = fn }
#define ROW_LOGICAL(name, fn)                                                                   \
    { name "(Tensor self, Tensor other) -> Tensor", p2o_rule_compare, .lower = fn }
#define BITS_LIMIT "integers need opset 18"
#define ROW_BITS(name, fn)                                                                      \
    { "bitwise_" name ".Tensor(Tensor self, Tensor other) -> Tensor", shape_bits, .lower = fn,     \
      .batch = p2o_batch_pointwise,                                                                \
      .limits = BITS_LIMIT },                                                                   \
    { "bitwise_" name ".Scalar(Tensor self, Scalar other) -> Tensor", shape_bits, .lower = fn,     \
      .batch = p2o_batch_pointwise,                                                                \
      .limits = BITS_LIMIT },                                                                   \
    { "bitwise_" name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", shape_bits,        \
      .lower = fn,                                                                                 \
      .batch = p2o_batch_pointwise, .limits = BITS_LIMIT },                                        \
    { "__" name "__.Tensor(Tensor self, Tensor other) -> Tensor", shape_bits, .lower = fn,         \
      .batch = p2o_batch_pointwise,                                                                \
      .limits = BITS_LIMIT },                                                                   \
    { "__" name "__.Scalar(Tensor self, Scalar other) -> Tensor", shape_bits, .lower = fn,         \
      .batch = p2o_batch_pointwise,                                                                \
      .limits = BITS_LIMIT }
#define ROW_SHIFT(name, short, fn)                                                              \
    { name ".Tensor(Tensor self, Tensor other) -> Tensor", shape_shift, .lower = fn,               \
      .batch = p2o_batch_pointwise },                                                              \
    { name ".Tensor_Scalar(Tensor self, Scalar other) -> Tensor", shape_shift, .lower = fn,        \
      .batch = p2o_batch_pointwise },                                                              \
    { name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", shape_shift, .lower = fn,        \
      .batch = p2o_batch_pointwise },                                                              \
    { short ".Tensor(Tensor self, Tensor other) -> Tensor", shape_shift, .lower = fn,              \
      .batch = p2o_batch_pointwise },                                                              \
    { short ".Scalar(Tensor self, Scalar other) -> Tensor", shape_shift, .lower = fn,              \
      .batch = p2o_batch_pointwise }
#define ROW_TEST(name, fn) { name "(Tensor self) -> Tensor", p2o_rule_bool, .lower = fn }

const AtenOp p2o_ops_logic[] = {
    ROW_COMPARE("eq", lower_eq),
    ROW_COMPARE("ne", lower_ne),
    ROW_COMPARE("lt", lower_lt),
    ROW_COMPARE("le", lower_le),
    ROW_COMPARE("gt", lower_gt),
    ROW_COMPARE("ge", lower_ge),
    ROW_COMPARE("not_equal", lower_ne),
    ROW_COMPARE("less", lower_lt),
    ROW_COMPARE("less_equal", lower_le),
    ROW_COMPARE("greater", lower_gt),
    ROW_COMPARE("greater_equal", lower_ge),
    { "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
      p2o_rule_compare, .lower = close_pairs },
    { "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
      shape_allclose, .lower = lower_allclose },
    { "equal(Tensor self, Tensor other) -> bool", shape_equal, .lower = lower_equal,
      .limits = "shapes that may or may not be equal" },
    { "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", shape_where,
      .lower = lower_where,
      .batch = p2o_batch_pointwise },
    { "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", shape_where,
      .lower = lower_where,
      .batch = p2o_batch_pointwise },
    { "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", shape_where,
      .lower = lower_where,
      .batch = p2o_batch_pointwise },
    { "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", shape_where,
      .lower = lower_where,
      .batch = p2o_batch_pointwise },
    ROW_LOGICAL("logical_and", lower_logical_and),
    ROW_LOGICAL("logical_or", lower_logical_or),
    ROW_LOGICAL("logical_xor", lower_logical_xor),
    ROW_TEST("logical_not", lower_logical_not),
    ROW_BITS("and", lower_bitwise_and),
    ROW_BITS("or", lower_bitwise_or),
    ROW_BITS("xor", lower_bitwise_xor),
    { "bitwise_not(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_bitwise_not },
    ROW_SHIFT("bitwise_left_shift", "__lshift__", lower_shift_left),
    ROW_SHIFT("bitwise_right_shift", "__rshift__", lower_shift_right),
    ROW_TEST("isnan", lower_isnan),
    ROW_TEST("isinf", lower_isinf),
    ROW_TEST("isposinf", lower_isposinf),
    ROW_TEST("isneginf", lower_isneginf),
    ROW_TEST("isfinite", lower_isfinite),
    ROW_TEST("isreal", lower_isreal),
    { 0 },
};
