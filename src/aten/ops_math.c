/* Arithmetic on two or three tensors, elementwise with PyTorch's type promotion.
 *
 * Everything is computed in the result's type, as PyTorch does; what needs several steps computes
 * the half types in f32.  ONNX divides integers towards zero and its Mod without fmod has the
 * divisor's sign; for floats it has fmod alone. */
#include "aten/lower.h"

#include <math.h>

static bool is_number_one(const Arg *x)
{
    double f;
    return p2o_number_is_const(x, &f) && f == 1;
}

static bool never_has_sign(DType t)
{
    return t == DT_U8 || t == DT_U16 || t == DT_U32 || t == DT_U64;
}

/* y times the argument `alpha`, in y's type. */
static Value *scaled_by(Lower *lo, const Call *c, const char *alpha, Value *y)
{
    if (is_number_one(p2o_call_arg(c, alpha)))
        return y;
    return emit(lo, y->dtype == DT_BOOL ? ONNX_And : ONNX_Mul, y,
                number_arg(lo, c, alpha, y->dtype));
}

static void refuse_bool(Infer *in, const Call *c, const char *what)
{
    if (type_arg(c, "self").dtype == DT_BOOL || type_arg(c, "other").dtype == DT_BOOL)
        rule_fail(in, "%s of bool", what);
    else
        p2o_rule_binary(in, c);
}

static void shape_sub(Infer *in, const Call *c) { refuse_bool(in, c, "subtraction"); }

/* self + alpha * other; bool adds as logical or. */
static Value *lower_add(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return emit(lo, t == DT_BOOL ? ONNX_Or : ONNX_Add, x, scaled_by(lo, c, "alpha", y));
}

static Value *lower_sub(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return emit(lo, ONNX_Sub, x, scaled_by(lo, c, "alpha", y));
}

static Value *lower_rsub(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return emit(lo, ONNX_Sub, y, scaled_by(lo, c, "alpha", x));
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

/* PyTorch has no whole division of bools. */
static void shape_whole_div(Infer *in, const Call *c)
{
    p2o_rule_binary(in, c);
    if (c->outs[0] && c->outs[0]->type.dtype == DT_BOOL)
        rule_fail(in, "division of bool by bool");
}

static void shape_div_mode(Infer *in, const Call *c)
{
    const char *mode = str_arg(c, "rounding_mode");
    if (!mode)
        p2o_rule_binary_float(in, c);
    else if (same(mode, "floor") || same(mode, "trunc"))
        shape_whole_div(in, c);
    else
        rule_fail(in, "rounding_mode '%s'", mode);
}

/* Whether y's sign and remainder m's differ; y may be known. */
static Value *signs_differ(Lower *lo, const Call *c, Value *m, Value *y)
{
    double f;
    if (p2o_number_is_const(p2o_call_arg(c, "other"), &f))
        return emit(lo, f < 0 ? ONNX_Greater : ONNX_Less, m, num(lo, m->dtype, 0));
    return emit(lo, ONNX_Less, emit(lo, ONNX_Mul, m, emit(lo, ONNX_Sign, y)), num(lo, m->dtype, 0));
}

static Value *fmod_of(Lower *lo, Value *x, Value *y)
{
    return emit_with(lo, ONNX_Mod, ATTRS(attr_int("fmod", 1)), x, y);
}

/* A divisor by which the rounded quotient reaches a whole number only where the exact one does. */
static bool divides_exactly(double f) { return f == floor(f) && fabs(f) <= 2048; }

/* Python's //.  x / y may round up to a whole number that the exact quotient does not reach, so
 * the remainder is taken off first: then the quotient is whole but for rounding. */
static Value *floor_quotient(Lower *lo, const Call *c, Value *x, Value *y)
{
    DType  t = x->dtype;
    double f;
    bool   is_number = p2o_number_is_const(p2o_call_arg(c, "other"), &f);
    if (never_has_sign(t) || (is_number && f == 0))
        return emit(lo, ONNX_Div, x, y);
    if (!is_float(t))
        return emit(lo, ONNX_Div, emit(lo, ONNX_Sub, x, emit(lo, ONNX_Mod, x, y)), y);
    if (is_number && divides_exactly(f))
        return emit(lo, ONNX_Floor, emit(lo, ONNX_Div, x, y));
    Value *m = fmod_of(lo, x, y);
    Value *q = emit(lo, ONNX_Div, emit(lo, ONNX_Sub, x, m), y);
    q = emit(lo, ONNX_Round, emit(lo, ONNX_Sub, q, cast(lo, signs_differ(lo, c, m, y), t)));
    if (is_number)
        return q;
    return choose(lo, emit(lo, ONNX_Equal, y, num(lo, t, 0)), emit(lo, ONNX_Div, x, y), q);
}

static Value *trunc_quotient(Lower *lo, Value *x, Value *y)
{
    Value *q = emit(lo, ONNX_Div, x, y);
    if (!is_float(q->dtype))
        return q;
    Value *below = emit(lo, ONNX_Less, q, num(lo, q->dtype, 0));
    return choose(lo, below, emit(lo, ONNX_Ceil, q), emit(lo, ONNX_Floor, q));
}

static Value *lower_div_mode(Lower *lo, const Call *c)
{
    const char *mode = str_arg(c, "rounding_mode");
    if (!mode)
        return lower_div(lo, c);
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    Value *q = same(mode, "floor") ? floor_quotient(lo, c, x, y) : trunc_quotient(lo, x, y);
    return cast(lo, q, out_dtype(c, 0));
}

static Value *lower_floor_divide(Lower *lo, const Call *c)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return cast(lo, floor_quotient(lo, c, x, y), out_dtype(c, 0));
}

/* Python's %: the divisor's sign. */
static Value *lower_remainder(Lower *lo, const Call *c)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    if (!is_float(t))
        return emit(lo, ONNX_Mod, x, y);
    Value *m = fmod_of(lo, x, y);
    m = choose(lo, signs_differ(lo, c, m, y), emit(lo, ONNX_Add, m, y), m);
    return cast(lo, m, out_dtype(c, 0));
}

static Value *lower_fmod(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return fmod_of(lo, x, y);
}

static void shape_pow(Infer *in, const Call *c)
{
    double e;
    p2o_rule_binary(in, c);
    DType t = c->outs[0] ? c->outs[0]->type.dtype : DT_NONE;
    if (t == DT_BOOL)
        rule_fail(in, "power of bool by bool");
    else if (is_int(t) && p2o_number_is_const(p2o_call_arg(c, "exponent"), &e) && e < 0)
        rule_fail(in, "an integer to a negative integer power");
}

/* By repeated squaring: wraps around as PyTorch's does. */
static Value *whole_power(Lower *lo, Value *x, int64_t e)
{
    Value *y = NULL;
    for (;; x = emit(lo, ONNX_Mul, x, x)) {
        if (e & 1)
            y = y ? emit(lo, ONNX_Mul, y, x) : x;
        e >>= 1;
        if (!e)
            return y;
    }
}

/* ONNX Runtime knows squares and cubes; other exponents that have an operator of their own get
 * it. */
static Value *constant_power(Lower *lo, const Call *c, Value *x, double e)
{
    DType t = x->dtype;
    if (e == 0)
        return full(lo, out_shape(c, 0), t, 1);
    if (e == 1)
        return x;
    if (is_int(t))
        return whole_power(lo, x, (int64_t)e);
    if (e == -1)
        return emit(lo, ONNX_Reciprocal, x);
    if (e == 0.5)
        return emit(lo, ONNX_Sqrt, x);
    if (e == -0.5)
        return emit(lo, ONNX_Reciprocal, emit(lo, ONNX_Sqrt, x));
    return emit(lo, ONNX_Pow, x, num(lo, t, e));
}

/* A negative power of an integer is 0 unless its base is 1 or -1. */
static Value *lower_pow(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t);
    double e;
    if (p2o_number_is_const(p2o_call_arg(c, "exponent"), &e))
        return constant_power(lo, c, x, e);
    Value *y = tensor_as(lo, c, "exponent", t);
    if (!is_int(t) || never_has_sign(t))
        return emit(lo, ONNX_Pow, x, y);
    Value *unit = emit(lo, ONNX_Equal, emit(lo, ONNX_Abs, x), num(lo, t, 1));
    Value *whole = emit(lo, ONNX_GreaterOrEqual, y, num(lo, t, 0));
    return choose(lo, emit(lo, ONNX_Or, whole, unit), emit(lo, ONNX_Pow, x, emit(lo, ONNX_Abs, y)),
                  num(lo, t, 0));
}

/* Always in f64. */
static void shape_float_power(Infer *in, const Call *c)
{
    set_out(in, c, 0, DT_F64, broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "exponent")));
}

static Value *lower_float_power(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Pow, tensor_as(lo, c, "self", DT_F64),
                tensor_as(lo, c, "exponent", DT_F64));
}

static void shape_square(Infer *in, const Call *c)
{
    DType t = type_arg(c, "self").dtype;
    set_out(in, c, 0, t == DT_BOOL ? DT_I64 : t, shape_arg(c, "self"));
}

static Value *lower_square(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    return emit(lo, ONNX_Mul, x, x);
}

static Value *lower_hypot(Lower *lo, const Call *c)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return cast(lo, hypot_of(lo, x, y), out_dtype(c, 0));
}

/* max(x, y) + log(1 + base^-|x - y|) / log(base); the difference of equal infinities is 0 here. */
static Value *log_add_exp(Lower *lo, const Call *c, double log_base)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    Value *d = choose(lo, emit(lo, ONNX_Equal, x, y), num(lo, t, 0), emit(lo, ONNX_Sub, x, y));
    d = times_num(lo, emit(lo, ONNX_Neg, emit(lo, ONNX_Abs, d)), log_base);
    d = times_num(lo, softplus_of(lo, d), 1 / log_base);
    return cast(lo, emit(lo, ONNX_Add, emit(lo, ONNX_Max, x, y), d), out_dtype(c, 0));
}

static Value *lower_logaddexp(Lower *lo, const Call *c) { return log_add_exp(lo, c, 1); }
static Value *lower_logaddexp2(Lower *lo, const Call *c)
{
    return log_add_exp(lo, c, 0.69314718055994530942);
}

static Value *lower_signbit(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (x->dtype == DT_BOOL || never_has_sign(x->dtype))
        return full(lo, out_shape(c, 0), DT_BOOL, 0);
    return sign_bit(lo, x);
}

static Value *lower_copysign(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = emit(lo, ONNX_Abs, tensor_as(lo, c, "self", t));
    double f;
    if (p2o_number_is_const(p2o_call_arg(c, "other"), &f))
        return signbit(f) ? emit(lo, ONNX_Neg, x) : x;
    Value *y = tensor_as(lo, c, "other", t);
    return choose(lo, sign_bit(lo, y), emit(lo, ONNX_Neg, x), x);
}

static Value *lower_atan2(Lower *lo, const Call *c)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return cast(lo, atan2_of(lo, x, y), out_dtype(c, 0));
}

/* self * 2.0^other, of which the power is a float. */
static void shape_ldexp(Infer *in, const Call *c)
{
    Type      power = type_arg(c, "other");
    Promotion p = { 0 };
    power.dtype = float_of(power.dtype);
    promote_type(&p, type_arg(c, "self"));
    promote_type(&p, power);
    set_out(in, c, 0, promoted(&p), broadcast(in, c, shape_arg(c, "self"), power.shape));
}

static Value *lower_ldexp(Lower *lo, const Call *c)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *power = emit(lo, ONNX_Pow, num(lo, t, 2), tensor_as(lo, c, "other", t));
    return cast(lo, emit(lo, ONNX_Mul, tensor_as(lo, c, "self", t), power), out_dtype(c, 0));
}

/* The larger or smaller; of bools that is or, and. */
static Value *larger_or_smaller(Lower *lo, OnnxOp op, Value *x, Value *y)
{
    if (x->dtype == DT_BOOL)
        return emit(lo, op == ONNX_Max ? ONNX_Or : ONNX_And, x, y);
    return emit(lo, op, x, y);
}

static Value *extreme_pair(Lower *lo, const Call *c, OnnxOp op)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return larger_or_smaller(lo, op, x, y);
}

static Value *lower_maximum(Lower *lo, const Call *c) { return extreme_pair(lo, c, ONNX_Max); }
static Value *lower_minimum(Lower *lo, const Call *c) { return extreme_pair(lo, c, ONNX_Min); }

/* A NaN gives way to a number. */
static Value *extreme_number(Lower *lo, const Call *c, OnnxOp op)
{
    DType t = out_dtype(c, 0);
    if (!is_float(t))
        return extreme_pair(lo, c, op);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    Value *best = choose(lo, emit(lo, ONNX_IsNaN, y), x, emit(lo, op, x, y));
    return choose(lo, emit(lo, ONNX_IsNaN, x), y, best);
}

static Value *lower_fmax(Lower *lo, const Call *c) { return extreme_number(lo, c, ONNX_Max); }
static Value *lower_fmin(Lower *lo, const Call *c) { return extreme_number(lo, c, ONNX_Min); }

static bool has_bound(const Call *c, const char *name)
{
    return p2o_schema_find(c->schema, name) >= 0 && has_arg(c, name);
}

/* self and the bounds that the overload has and the call gives. */
static void shape_clamp(Infer *in, const Call *c)
{
    static const char *const bounds[] = { "min", "max" };
    Promotion p = { 0 };
    Shape     s = shape_arg(c, "self");
    promote_type(&p, type_arg(c, "self"));
    for (int i = 0; i < 2; i++) {
        if (!has_bound(c, bounds[i]))
            continue;
        promote_type(&p, type_arg(c, bounds[i]));
        s = broadcast(in, c, s, shape_arg(c, bounds[i]));
    }
    set_out(in, c, 0, promoted(&p), s);
}

static Value *lower_clamp(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t);
    Value *low = has_bound(c, "min") ? tensor_as(lo, c, "min", t) : NULL;
    Value *high = has_bound(c, "max") ? tensor_as(lo, c, "max", t) : NULL;
    if (t != DT_BOOL && (!low || rank(low) == 0) && (!high || rank(high) == 0))
        return low || high ? emit(lo, ONNX_Clip, x, low, high) : x;
    if (low)
        x = larger_or_smaller(lo, ONNX_Max, x, low);
    return high ? larger_or_smaller(lo, ONNX_Min, x, high) : x;
}

/* self and two more tensors, named by the row. */
static void shape_three(Infer *in, const Call *c, const char *a, const char *b)
{
    Shape s = broadcast(in, c, shape_arg(c, "self"), shape_arg(c, a));
    set_out(in, c, 0, PROMOTE(c, "self", a, b), broadcast(in, c, s, shape_arg(c, b)));
}

static void shape_addc(Infer *in, const Call *c) { shape_three(in, c, "tensor1", "tensor2"); }

static void shape_addcdiv(Infer *in, const Call *c)
{
    shape_addc(in, c);
    if (c->outs[0] && c->outs[0]->type.kind == TY_TENSOR && !is_float(c->outs[0]->type.dtype) &&
        !is_complex(c->outs[0]->type.dtype))
        rule_fail(in, "division of integers");
}

static Value *add_combined(Lower *lo, const Call *c, OnnxOp op)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t);
    Value *y = emit(lo, op, tensor_as(lo, c, "tensor1", t), tensor_as(lo, c, "tensor2", t));
    return cast(lo, emit(lo, ONNX_Add, x, scaled_by(lo, c, "value", y)), out_dtype(c, 0));
}

static Value *lower_addcmul(Lower *lo, const Call *c) { return add_combined(lo, c, ONNX_Mul); }
static Value *lower_addcdiv(Lower *lo, const Call *c) { return add_combined(lo, c, ONNX_Div); }

/* The weight is a tensor or a number, which counts in the result's type only as a tensor. */
static void shape_lerp(Infer *in, const Call *c)
{
    Shape s = broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "end"));
    set_out(in, c, 0, type_arg(c, "self").dtype, broadcast(in, c, s, shape_arg(c, "weight")));
}

/* self + weight * (end - self), from the nearer end. */
static Value *lower_lerp(Lower *lo, const Call *c)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *end = tensor_as(lo, c, "end", t);
    Value *w = tensor_as(lo, c, "weight", t), *d = emit(lo, ONNX_Sub, end, x), *far, *near;
    double f;
    if (p2o_number_is_const(p2o_call_arg(c, "weight"), &f)) {
        near = fabs(f) < 0.5 ? emit(lo, ONNX_Add, x, times_num(lo, d, f))
                             : emit(lo, ONNX_Sub, end, times_num(lo, d, 1 - f));
        return cast(lo, near, out_dtype(c, 0));
    }
    near = emit(lo, ONNX_Add, x, emit(lo, ONNX_Mul, w, d));
    far = emit(lo, ONNX_Sub, end, emit(lo, ONNX_Mul, d, emit(lo, ONNX_Sub, num(lo, t, 1), w)));
    Value *is_near = emit(lo, ONNX_Less, emit(lo, ONNX_Abs, w), num(lo, t, 0.5));
    return cast(lo, choose(lo, is_near, near, far), out_dtype(c, 0));
}

/* 0 below, 1 above, and `values` at 0. */
static void shape_heaviside(Infer *in, const Call *c)
{
    set_out(in, c, 0, PROMOTE(c, "self", "values"),
            broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "values")));
}

static Value *lower_heaviside(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *v = tensor_as(lo, c, "values", t);
    if (t == DT_BOOL)
        return emit(lo, ONNX_Or, x, v);
    Value *zero = num(lo, t, 0);
    return choose(lo, emit(lo, ONNX_Equal, x, zero), v,
                  cast(lo, emit(lo, ONNX_Greater, x, zero), t));
}

/* Whether any element of an integer tensor is not 0. */
static Value *any_left(Lower *lo, Value *x)
{
    int64_t axes[MAX_RANK];
    Value  *left = cast(lo, cast(lo, x, DT_BOOL), DT_I64);
    for (int i = 0; i < rank(x); i++)
        axes[i] = i;
    if (rank(x))
        left = reduce(lo, ONNX_ReduceSum, left, axes, rank(x), false);
    return cast(lo, left, DT_BOOL);
}

/* Euclid's algorithm on all elements until every remainder is 0; pairs that are done keep still. */
static Value *common_divisor(Lower *lo, const Call *c, Value *x, Value *y)
{
    DType    t = x->dtype;
    Shape    s = out_shape(c, 0);
    Value   *a = expand(lo, emit(lo, ONNX_Abs, x), s), *b = expand(lo, emit(lo, ONNX_Abs, y), s);
    Graph   *g = p2o_graph_new(lo->arena, lo->diags, lo->dims, lo->opset, lo->b->graph);
    Builder *outer = lo->b;
    Value   *go_on = any_left(lo, b), *out[2];
    g->name = "gcd";
    p2o_graph_input(g, NULL, DT_I64, (Shape){ 0 });
    p2o_graph_input(g, NULL, DT_BOOL, (Shape){ 0 });
    Value *high = p2o_graph_input(g, NULL, t, s), *low = p2o_graph_input(g, NULL, t, s);
    lo->b = p2o_builder_new(g, outer);
    Value *next = choose(lo, emit(lo, ONNX_Equal, low, num(lo, t, 0)), high, low);
    Value *rest = emit(lo, ONNX_Mod, high, emit(lo, ONNX_Max, low, num(lo, t, 1)));
    p2o_graph_output(g, any_left(lo, rest));
    p2o_graph_output(g, next);
    p2o_graph_output(g, rest);
    lo->b = outer;
    emit_many(lo, ONNX_Loop, ATTRS(attr_graph("body", g)), 2, out, NULL, go_on, a, b);
    return out[0];
}

static Value *lower_gcd(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    return common_divisor(lo, c, x, y);
}

/* |x / gcd * y|; a gcd of 0 means that both are. */
static Value *lower_lcm(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    Value *g = emit(lo, ONNX_Max, common_divisor(lo, c, x, y), num(lo, t, 1));
    return emit(lo, ONNX_Abs, emit(lo, ONNX_Mul, emit(lo, ONNX_Div, x, g), y));
}

#define ROW_TENSOR_SCALAR(name, rule, fn, ...)                                                  \
    { name ".Tensor(Tensor self, Tensor other) -> Tensor", rule, .lower = fn,                      \
      .batch = p2o_batch_pointwise, __VA_ARGS__ },                                                 \
    { name ".Scalar(Tensor self, Scalar other) -> Tensor", rule, .lower = fn,                      \
      .batch = p2o_batch_pointwise, __VA_ARGS__ }
#define ROW_ALPHA(name, rule, fn, ...)                                                          \
    { name ".Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", rule,             \
      .lower = fn,                                                                                 \
      .batch = p2o_batch_pointwise, __VA_ARGS__ },                                                 \
    { name ".Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", rule,                \
      .lower = fn, .batch = p2o_batch_pointwise, __VA_ARGS__ }
#define ROW_DIV(name)                                                                           \
    ROW_TENSOR_SCALAR(name, p2o_rule_binary_float, lower_div, .neutral = NEUTRAL_ONE),          \
    { name ".Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",          \
      shape_div_mode, .lower = lower_div_mode,                                                     \
      .batch = p2o_batch_pointwise },                                                              \
    { name ".Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",          \
      shape_div_mode, .lower = lower_div_mode, .batch = p2o_batch_pointwise }
#define ROW_POW(name, rule, fn, ...)                                                               \
    { name ".Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", rule, .lower = fn,            \
      .batch = p2o_batch_pointwise,                                                                \
      __VA_ARGS__ },                                                                               \
        { name ".Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", rule, .lower = fn,        \
          .batch = p2o_batch_pointwise },                                                          \
    {                                                                                              \
        name ".Scalar(Scalar self, Tensor exponent) -> Tensor", rule, .lower = fn,                 \
        .batch = p2o_batch_pointwise, __VA_ARGS__                                                  \
    }
#define ROW_PAIR(name, rule, fn)                                                                \
    { name "(Tensor self, Tensor other) -> Tensor", rule, .lower = fn,                             \
      .batch = p2o_batch_pointwise }
#define ROW_CLAMP(name)                                                                         \
    { name "(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", shape_clamp,          \
      .lower = lower_clamp,                                                                        \
      .batch = p2o_batch_pointwise },                                                              \
    { name ".Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", shape_clamp,   \
      .lower = lower_clamp, .batch = p2o_batch_pointwise }
#define ROW_BOUND(name, bound)                                                                  \
    { name "(Tensor self, Scalar " bound ") -> Tensor", shape_clamp, .lower = lower_clamp,         \
      .batch = p2o_batch_pointwise },                                                              \
    { name ".Tensor(Tensor self, Tensor " bound ") -> Tensor", shape_clamp, .lower = lower_clamp,  \
      .batch = p2o_batch_pointwise }

const AtenOp p2o_ops_math[] = {
    ROW_ALPHA("add", p2o_rule_binary, lower_add, .neutral = NEUTRAL_ZERO),
    ROW_ALPHA("sub", shape_sub, lower_sub, .neutral = NEUTRAL_ZERO),
    ROW_ALPHA("subtract", shape_sub, lower_sub, .neutral = NEUTRAL_ZERO),
    ROW_ALPHA("rsub", shape_sub, lower_rsub, .neutral = NEUTRAL_NONE),
    ROW_TENSOR_SCALAR("mul", p2o_rule_binary, lower_mul, .neutral = NEUTRAL_ONE),
    ROW_TENSOR_SCALAR("multiply", p2o_rule_binary, lower_mul, .neutral = NEUTRAL_ONE),
    ROW_DIV("div"),
    ROW_DIV("divide"),
    ROW_TENSOR_SCALAR("true_divide", p2o_rule_binary_float, lower_div, .neutral = NEUTRAL_ONE),
    ROW_PAIR("floor_divide", shape_whole_div, lower_floor_divide),
    { "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", shape_whole_div,
      .lower = lower_floor_divide,
      .batch = p2o_batch_pointwise },
    ROW_TENSOR_SCALAR("remainder", shape_whole_div, lower_remainder, .neutral = NEUTRAL_NONE),
    { "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", shape_whole_div,
      .lower = lower_remainder,
      .batch = p2o_batch_pointwise },
    ROW_TENSOR_SCALAR("fmod", shape_whole_div, lower_fmod, .neutral = NEUTRAL_NONE),
    ROW_POW("pow", shape_pow, lower_pow, .limits = "integers: exact up to 2^53"),
    ROW_POW("float_power", shape_float_power, lower_float_power, .limits = NULL),
    { "square(Tensor self) -> Tensor", shape_square, .lower = lower_square,
      .batch = p2o_batch_pointwise },
    ROW_PAIR("hypot", p2o_rule_binary, lower_hypot),
    ROW_PAIR("logaddexp", p2o_rule_binary, lower_logaddexp),
    ROW_PAIR("logaddexp2", p2o_rule_binary, lower_logaddexp2),
    { "signbit(Tensor self) -> Tensor", p2o_rule_bool, .lower = lower_signbit },
    ROW_TENSOR_SCALAR("copysign", p2o_rule_binary_float, lower_copysign, .neutral = NEUTRAL_NONE),
    ROW_PAIR("atan2", p2o_rule_binary_float, lower_atan2),
    ROW_PAIR("arctan2", p2o_rule_binary_float, lower_atan2),
    { "ldexp.Tensor(Tensor self, Tensor other) -> Tensor", shape_ldexp, .lower = lower_ldexp,
      .batch = p2o_batch_pointwise },
    ROW_PAIR("maximum", p2o_rule_binary, lower_maximum),
    ROW_PAIR("minimum", p2o_rule_binary, lower_minimum),
    ROW_PAIR("fmax", p2o_rule_binary, lower_fmax),
    ROW_PAIR("fmin", p2o_rule_binary, lower_fmin),
    ROW_CLAMP("clamp"),
    ROW_CLAMP("clip"),
    ROW_BOUND("clamp_min", "min"),
    ROW_BOUND("clamp_max", "max"),
    { "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
      shape_addc, .lower = lower_addcmul,
      .batch = p2o_batch_pointwise },
    { "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
      shape_addcdiv, .lower = lower_addcdiv,
      .batch = p2o_batch_pointwise },
    { "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", shape_lerp,
      .lower = lower_lerp,
      .batch = p2o_batch_pointwise },
    { "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", shape_lerp,
      .lower = lower_lerp,
      .batch = p2o_batch_pointwise },
    { "heaviside(Tensor self, Tensor values) -> Tensor", shape_heaviside,
      .lower = lower_heaviside,
      .batch = p2o_batch_pointwise },
    ROW_PAIR("gcd", p2o_rule_binary, lower_gcd),
    ROW_PAIR("lcm", p2o_rule_binary, lower_lcm),
    { 0 },
};
