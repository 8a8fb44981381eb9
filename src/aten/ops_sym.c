/* Numbers of the program: sizes, the arithmetic on them and on what item() gives, and the checks
 * that captures leave behind.
 *
 * An int is a Dim wherever Dims can say it; nodes for it come into being where it is used.  What
 * they cannot say, and every float and bool, is a scalar of the graph: floats are computed in
 * float64, as Python does.  What nothing but an assertion uses is dropped with it. */
#include "aten/lower.h"

static void shape_sym_size(Infer *in, const Call *c)
{
    Shape s = shape_arg(c, "self");
    int   dim;
    if (must_wrap(in, int_arg(c, "dim"), s.rank, &dim))
        set_int(in, c, 0, s.at[dim]);
}

/* A fact about memory that no result carries. */
static void shape_sym_offset(Infer *in, const Call *c) { set_int(in, c, 0, NULL); }

static void shape_sym_numel(Infer *in, const Call *c)
{
    set_int(in, c, 0, shape_nelem(in->dims, shape_arg(c, "self")));
}

static Type number_type(const Call *c, int i) { return p2o_arg_type(&c->args[i]); }

static bool are_ints(const Call *c)
{
    return number_type(c, 0).kind == TY_INT && number_type(c, 1).kind == TY_INT;
}

static bool has_float(const Call *c)
{
    for (int i = 0; i < c->nargs; i++)
        if (number_type(c, i).kind == TY_FLOAT)
            return true;
    return false;
}

typedef Dim DimBinaryFn(Dims *t, Dim a, Dim b);

/* A bool counts as an int. */
static void number_binary(Infer *in, const Call *c, DimBinaryFn *op)
{
    if (has_float(c))
        set_float(in, c, 0);
    else
        set_int(in, c, 0,
                are_ints(c) ? op(in->dims, number_type(c, 0).value, number_type(c, 1).value)
                            : NULL);
}

static void shape_number_add(Infer *in, const Call *c) { number_binary(in, c, p2o_dim_add); }
static void shape_number_sub(Infer *in, const Call *c) { number_binary(in, c, p2o_dim_sub); }
static void shape_number_mul(Infer *in, const Call *c) { number_binary(in, c, p2o_dim_mul); }
static void shape_number_floordiv(Infer *in, const Call *c)
{
    number_binary(in, c, p2o_dim_floordiv);
}
static void shape_number_mod(Infer *in, const Call *c) { number_binary(in, c, p2o_dim_mod); }
static void shape_number_min(Infer *in, const Call *c) { number_binary(in, c, p2o_dim_min); }
static void shape_number_max(Infer *in, const Call *c) { number_binary(in, c, p2o_dim_max); }

/* base ** e for a base that is a power of two, and an e that is never negative. */
static Dim power_of_two(Dims *t, Dim base, Dim e)
{
    int64_t n, low, high;
    int     bits = 0;
    if (!p2o_dim_is_int(base, &n) || n < 2 || n & (n - 1))
        return NULL;
    while (n >> bits > 1)
        bits++;
    p2o_dim_range(t, e, &low, &high);
    return low < 0 ? NULL : p2o_dim_fn(t, FN_POW2, 0, p2o_dim_mul(t, e, p2o_dim_int(t, bits)));
}

/* Python's power of ints is a float when the exponent is negative. */
static void shape_number_pow(Infer *in, const Call *c)
{
    int64_t e = 0;
    Dim     a = number_type(c, 0).value, b = number_type(c, 1).value;
    bool    fixed = are_ints(c) && p2o_dim_is_int(b, &e);
    if (has_float(c) || e < 0)
        set_float(in, c, 0);
    else if (fixed)
        set_int(in, c, 0, p2o_dim_pow(in->dims, a, e));
    else
        set_int(in, c, 0, are_ints(c) ? power_of_two(in->dims, a, b) : NULL);
}

static Dim shift_left(Dims *t, Dim a, Dim b)
{
    return p2o_dim_mul(t, a, p2o_dim_fn(t, FN_POW2, 0, b));
}
static Dim shift_right(Dims *t, Dim a, Dim b)
{
    return p2o_dim_floordiv(t, a, p2o_dim_fn(t, FN_POW2, 0, b));
}

static Dim common_bits(Dims *t, Dim a, Dim b)
{
    int64_t mask;
    if (p2o_dim_is_int(a, &mask))
        return p2o_dim_and(t, b, mask);
    return p2o_dim_is_int(b, &mask) ? p2o_dim_and(t, a, mask) : NULL;
}

static Dim joined_bits(Dims *t, Dim a, Dim b)
{
    return p2o_dim_sub(t, p2o_dim_add(t, a, b), common_bits(t, a, b));
}

/* Nothing but Dims says these. */
static void number_bits(Infer *in, const Call *c, DimBinaryFn *op, const char *limit)
{
    Dim d = are_ints(c) ? op(in->dims, number_type(c, 0).value, number_type(c, 1).value) : NULL;
    if (d)
        set_int(in, c, 0, d);
    else
        rule_unsupported(in, "%s", limit);
}

static void shape_sym_sum(Infer *in, const Call *c)
{
    Dim sum = int_dim(in, 0);
    for (int i = 0; i < list_len(c, "args"); i++)
        sum = p2o_dim_add(in->dims, sum, dim_item(c, "args", i));
    set_int(in, c, 0, sum);
}

static void shape_lshift(Infer *in, const Call *c)
{
    number_bits(in, c, shift_left, "a shift by too many bits");
}
static void shape_rshift(Infer *in, const Call *c)
{
    number_bits(in, c, shift_right, "a shift by too many bits");
}

static void shape_float_number(Infer *in, const Call *c) { set_float(in, c, 0); }
static void shape_bool_number(Infer *in, const Call *c) { set_bool(in, c, 0); }

static void shape_number_neg(Infer *in, const Call *c)
{
    Type a = number_type(c, 0);
    if (a.kind == TY_FLOAT)
        set_float(in, c, 0);
    else
        set_int(in, c, 0, a.kind == TY_INT ? p2o_dim_neg(in->dims, a.value) : NULL);
}

static void shape_number_pos(Infer *in, const Call *c)
{
    Type a = number_type(c, 0);
    if (a.kind == TY_FLOAT)
        set_float(in, c, 0);
    else
        set_int(in, c, 0, a.value);
}

static const Call *made_by(const Arg *x, const char *target)
{
    const Call *d = x->kind == ARG_VAR ? x->var->def : NULL;
    return d && same(d->target, target) ? d : NULL;
}

/* The size that a number is, as an int or as a float. */
static Dim whole_number(const Arg *x)
{
    const Call *d = made_by(x, "torch::sym_float");
    return d ? whole_number(&d->args[0]) : p2o_arg_type(x).kind == TY_INT ? p2o_arg_dim(x) : NULL;
}

/* A float that is rounded once: one operation on a size.  What the file says of more of them may be
 * another float, for its expressions are simplified as if floats were exact. */
static DimReal real_number(const Arg *x)
{
    const Call *d;
    double      f;
    if ((d = made_by(x, "_operator::mul")) != NULL)
        for (int i = 0; i < 2; i++)
            if (p2o_number_is_const(&d->args[i], &f))
                return (DimReal){ REAL_TIMES, f, whole_number(&d->args[1 - i]) };
    if ((d = made_by(x, "_operator::truediv")) != NULL && p2o_number_is_const(&d->args[1], &f))
        return (DimReal){ REAL_OVER, f, whole_number(&d->args[0]) };
    if ((d = made_by(x, "_operator::pow")) != NULL && p2o_number_is_const(&d->args[1], &f) &&
        f == 0.5)
        return (DimReal){ REAL_SQRT, 0, whole_number(&d->args[0]) };
    if ((d = made_by(x, "torch::_sym_sqrt")) != NULL)
        return (DimReal){ REAL_SQRT, 0, whole_number(&d->args[0]) };
    if ((d = made_by(x, "torch::_sym_log2")) != NULL)
        return (DimReal){ REAL_LOG2, 0, whole_number(&d->args[0]) };
    return (DimReal){ REAL_TIMES, 1, whole_number(x) };
}

/* a / b of sizes: doubles of sizes reach no whole number that the quotient does not. */
static Dim rounded_quotient(Dims *t, DimFn how, Dim a, Dim b)
{
    int64_t low_a, low_b, high;
    p2o_dim_range(t, a, &low_a, &high);
    p2o_dim_range(t, b, &low_b, &high);
    if (how == FN_CEIL)
        return p2o_dim_ceildiv(t, a, b);
    bool down = how == FN_FLOOR || (how == FN_TRUNC && low_a >= 0 && low_b >= 0);
    return down ? p2o_dim_floordiv(t, a, b) : NULL;
}

/* Rounding any other float gives an int that is known at run time. */
static void number_to_int(Infer *in, const Call *c, DimFn how)
{
    const Arg  *x = &c->args[0];
    const Call *d = made_by(x, "_operator::truediv");
    Dim         a = d ? whole_number(&d->args[0]) : NULL, b = d ? whole_number(&d->args[1]) : NULL;
    if (a && b && !p2o_dim_is_int(b, NULL))
        set_int(in, c, 0, rounded_quotient(in->dims, how, a, b));
    else
        set_int(in, c, 0, p2o_dim_rounded(in->dims, how, real_number(x)));
}

static void shape_trunc(Infer *in, const Call *c) { number_to_int(in, c, FN_TRUNC); }
static void shape_floor(Infer *in, const Call *c) { number_to_int(in, c, FN_FLOOR); }
static void shape_ceil(Infer *in, const Call *c) { number_to_int(in, c, FN_CEIL); }

static void shape_round(Infer *in, const Call *c)
{
    if (has_arg(c, "ndigits"))
        rule_unsupported(in, "ndigits");
    else
        number_to_int(in, c, FN_ROUND);
}

static void number_logic(Infer *in, const Call *c, DimBinaryFn *op)
{
    for (int i = 0; i < c->nargs; i++)
        if (number_type(c, i).kind != TY_BOOL) {
            number_bits(in, c, op, "bits of two numbers that are not known");
            return;
        }
    set_bool(in, c, 0);
}

static void shape_and(Infer *in, const Call *c) { number_logic(in, c, common_bits); }
static void shape_or(Infer *in, const Call *c) { number_logic(in, c, joined_bits); }

static void shape_not(Infer *in, const Call *c)
{
    if (number_type(c, 0).kind == TY_BOOL)
        set_bool(in, c, 0);
    else
        rule_unsupported(in, "bits of numbers");
}

static void shape_ite(Infer *in, const Call *c)
{
    Type t = type_arg(c, "t"), f = type_arg(c, "f");
    if (t.kind == TY_FLOAT || f.kind == TY_FLOAT)
        set_float(in, c, 0);
    else if (t.kind == TY_BOOL && f.kind == TY_BOOL)
        set_bool(in, c, 0);
    else
        set_int(in, c, 0, t.kind == TY_INT && t.value == f.value ? t.value : NULL);
}

/* A size that Dims can say needs no nodes here. */
static bool is_said_by_dims(const Call *c)
{
    const Type *t = &c->outs[0]->type;
    return t->kind == TY_INT && !p2o_dim_is_sym(t->value);
}

/* The type in which a call on numbers is computed. */
static DType number_dtype(const Call *c)
{
    return has_float(c) || c->outs[0]->type.kind == TY_FLOAT ? DT_F64 : DT_I64;
}

static Value *operand(Lower *lo, const Call *c, int i, DType t)
{
    return p2o_arg_value(lo, &c->args[i], t);
}

static Value *binary_node(Lower *lo, const Call *c, OnnxOp op)
{
    if (is_said_by_dims(c))
        return NULL;
    DType t = number_dtype(c);
    return emit(lo, op, operand(lo, c, 0, t), operand(lo, c, 1, t));
}

static Value *lower_number_add(Lower *lo, const Call *c) { return binary_node(lo, c, ONNX_Add); }
static Value *lower_number_sub(Lower *lo, const Call *c) { return binary_node(lo, c, ONNX_Sub); }
static Value *lower_number_mul(Lower *lo, const Call *c) { return binary_node(lo, c, ONNX_Mul); }
static Value *lower_number_pow(Lower *lo, const Call *c) { return binary_node(lo, c, ONNX_Pow); }
static Value *lower_number_min(Lower *lo, const Call *c) { return binary_node(lo, c, ONNX_Min); }
static Value *lower_number_max(Lower *lo, const Call *c) { return binary_node(lo, c, ONNX_Max); }

static Value *lower_truediv(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Div, operand(lo, c, 0, DT_F64), operand(lo, c, 1, DT_F64));
}

/* Python's remainder has the sign of y; ONNX's of floats that of x: taken twice, it is y's. */
static Value *remainder_of(Lower *lo, Value *x, Value *y)
{
    if (x->dtype == DT_I64)
        return emit(lo, ONNX_Mod, x, y);
    Value *r = emit_with(lo, ONNX_Mod, ATTRS(attr_int("fmod", 1)), x, y);
    return emit_with(lo, ONNX_Mod, ATTRS(attr_int("fmod", 1)), emit(lo, ONNX_Add, r, y), y);
}

static Value *lower_number_mod(Lower *lo, const Call *c)
{
    if (is_said_by_dims(c))
        return NULL;
    DType t = number_dtype(c);
    return remainder_of(lo, operand(lo, c, 0, t), operand(lo, c, 1, t));
}

static Value *lower_number_floordiv(Lower *lo, const Call *c)
{
    if (is_said_by_dims(c))
        return NULL;
    DType  t = number_dtype(c);
    Value *x = operand(lo, c, 0, t), *y = operand(lo, c, 1, t);
    if (t == DT_F64)
        return emit(lo, ONNX_Floor, emit(lo, ONNX_Div, x, y));
    return emit(lo, ONNX_Div, emit(lo, ONNX_Sub, x, remainder_of(lo, x, y)), y);
}

static Value *unary_node(Lower *lo, const Call *c, OnnxOp op)
{
    if (is_said_by_dims(c))
        return NULL;
    return emit(lo, op, operand(lo, c, 0, number_dtype(c)));
}

static Value *lower_number_neg(Lower *lo, const Call *c) { return unary_node(lo, c, ONNX_Neg); }
static Value *lower_sym_sqrt(Lower *lo, const Call *c) { return unary_node(lo, c, ONNX_Sqrt); }

/* log2(x) = log(x) / log(2) */
static Value *lower_sym_log2(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Div, unary_node(lo, c, ONNX_Log), num(lo, DT_F64, 0.69314718055994530942));
}

static Value *lower_sym_float(Lower *lo, const Call *c) { return operand(lo, c, 0, DT_F64); }

static Value *lower_number_pos(Lower *lo, const Call *c)
{
    return is_said_by_dims(c) ? NULL : operand(lo, c, 0, number_dtype(c));
}

static Value *rounded_number(Lower *lo, const Call *c, OnnxOp op)
{
    if (is_said_by_dims(c))
        return NULL;
    Value *x = operand(lo, c, 0, has_float(c) ? DT_F64 : DT_I64);
    return cast(lo, has_float(c) && op ? emit(lo, op, x) : x, DT_I64);
}

/* Cast cuts toward zero. */
static Value *lower_sym_int(Lower *lo, const Call *c) { return rounded_number(lo, c, ONNX_NONE); }
static Value *lower_math_floor(Lower *lo, const Call *c)
{
    return rounded_number(lo, c, ONNX_Floor);
}
static Value *lower_math_ceil(Lower *lo, const Call *c) { return rounded_number(lo, c, ONNX_Ceil); }
static Value *lower_round(Lower *lo, const Call *c) { return rounded_number(lo, c, ONNX_Round); }

typedef Answer DimAskFn(Dims *t, Dim a, Dim b);

/* What holds or fails for all sizes is a constant. */
static bool is_settled(Lower *lo, const Call *c, DimAskFn *ask, int left, bool *holds)
{
    if (!are_ints(c))
        return false;
    Answer a = ask(lo->dims, number_type(c, left).value, number_type(c, 1 - left).value);
    *holds = a == YES;
    return a != CANNOT_TELL;
}

static Value *compared(Lower *lo, const Call *c, OnnxOp op, DimAskFn *ask, int left)
{
    bool  holds;
    DType t = has_float(c) ? DT_F64 : DT_I64;
    if (is_settled(lo, c, ask, left, &holds))
        return num(lo, DT_BOOL, holds);
    return emit(lo, op, operand(lo, c, 0, t), operand(lo, c, 1, t));
}

static Value *lower_number_eq(Lower *lo, const Call *c)
{
    return compared(lo, c, ONNX_Equal, p2o_dim_eq, 0);
}
static Value *lower_number_ne(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Not, lower_number_eq(lo, c));
}
static Value *lower_number_lt(Lower *lo, const Call *c)
{
    return compared(lo, c, ONNX_Less, p2o_dim_lt, 0);
}
static Value *lower_number_gt(Lower *lo, const Call *c)
{
    return compared(lo, c, ONNX_Greater, p2o_dim_lt, 1);
}

static Value *lower_number_le(Lower *lo, const Call *c)
{
    return compared(lo, c, ONNX_LessOrEqual, p2o_dim_le, 0);
}

static Value *lower_number_ge(Lower *lo, const Call *c)
{
    return compared(lo, c, ONNX_GreaterOrEqual, p2o_dim_le, 1);
}

static Value *logic_node(Lower *lo, const Call *c, OnnxOp op)
{
    if (is_said_by_dims(c))
        return NULL;
    return emit(lo, op, operand(lo, c, 0, DT_BOOL), operand(lo, c, 1, DT_BOOL));
}

static Value *lower_number_and(Lower *lo, const Call *c) { return logic_node(lo, c, ONNX_And); }
static Value *lower_number_or(Lower *lo, const Call *c) { return logic_node(lo, c, ONNX_Or); }
static Value *lower_sym_not(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Not, operand(lo, c, 0, DT_BOOL));
}

static Value *lower_ite(Lower *lo, const Call *c)
{
    TypeKind k = c->outs[0]->type.kind;
    DType    t = k == TY_FLOAT ? DT_F64 : k == TY_BOOL ? DT_BOOL : DT_I64;
    if (is_said_by_dims(c))
        return NULL;
    return choose(lo, number_arg(lo, c, "b", DT_BOOL), number_arg(lo, c, "t", t),
                  number_arg(lo, c, "f", t));
}

#define ROW_NUMBER(name, rule, fn)                                                                 \
    {                                                                                              \
        "_operator::" name "(Scalar a, Scalar b) -> Scalar", rule, .lower = fn                     \
    }
/* What is compared is asserted, or chosen by: no number of the model. */
#define ROW_COMPARED(name, fn)                                                                     \
    {                                                                                              \
        "_operator::" name "(Scalar a, Scalar b) -> Scalar", shape_bool_number,                    \
            .lower = fn, .roles = "a:none b:none"                                                  \
    }

/* What Python asserted of sizes. */
static void shape_assert(Infer *in, const Call *c)
{
    const Call *d = c->args[0].kind == ARG_VAR ? c->args[0].var->def : NULL;
    if (!d || d->nargs != 2)
        return;
    Dim a = p2o_arg_dim(&d->args[0]), b = p2o_arg_dim(&d->args[1]), one = int_dim(in, 1);
    if (same(d->target, "_operator::le"))
        needs_le(in, a, b, "an assertion");
    else if (same(d->target, "_operator::lt"))
        needs_le(in, p2o_dim_add(in->dims, a, one), b, "an assertion");
    else if (same(d->target, "_operator::ge"))
        needs_le(in, b, a, "an assertion");
    else if (same(d->target, "_operator::gt"))
        needs_le(in, p2o_dim_add(in->dims, b, one), a, "an assertion");
    else if (same(d->target, "_operator::eq") && a && b && p2o_dim_eq(in->dims, a, b) != YES)
        needs_equal(in, a, b, "an assertion");
}

const AtenOp p2o_ops_sym[] = {
    { "sym_size.int(Tensor self, int dim) -> SymInt", shape_sym_size,
      .batch = p2o_batch_size },
    { "sym_numel(Tensor self) -> SymInt", shape_sym_numel,
      .batch = p2o_batch_size },
    { "sym_storage_offset(Tensor self) -> SymInt", shape_sym_offset,
      .limits = "only as something that is asserted" },
    ROW_NUMBER("add", shape_number_add, lower_number_add),
    ROW_NUMBER("sub", shape_number_sub, lower_number_sub),
    ROW_NUMBER("mul", shape_number_mul, lower_number_mul),
    ROW_NUMBER("floordiv", shape_number_floordiv, lower_number_floordiv),
    ROW_NUMBER("mod", shape_number_mod, lower_number_mod),
    ROW_NUMBER("pow", shape_number_pow, lower_number_pow),
    ROW_NUMBER("truediv", shape_float_number, lower_truediv),
    ROW_COMPARED("eq", lower_number_eq),
    ROW_COMPARED("ne", lower_number_ne),
    ROW_COMPARED("lt", lower_number_lt),
    ROW_COMPARED("le", lower_number_le),
    ROW_COMPARED("gt", lower_number_gt),
    ROW_COMPARED("ge", lower_number_ge),
    { "_operator::and_(Scalar a, Scalar b) -> Scalar", shape_and, .lower = lower_number_and,
      .limits = "bools, or a number that is constant" },
    { "_operator::or_(Scalar a, Scalar b) -> Scalar", shape_or, .lower = lower_number_or,
      .limits = "bools, or a number that is constant" },
    { "_operator::lshift(Scalar a, Scalar b) -> Scalar", shape_lshift, .limits = "up to 62 bits" },
    { "_operator::rshift(Scalar a, Scalar b) -> Scalar", shape_rshift, .limits = "up to 62 bits" },
    { "_operator::neg(Scalar a) -> Scalar", shape_number_neg, .lower = lower_number_neg },
    { "_operator::pos(Scalar a) -> Scalar", shape_number_pos, .lower = lower_number_pos },
    { "math::trunc(Scalar x) -> Scalar", shape_trunc, .lower = lower_sym_int },
    { "math::floor(Scalar x) -> Scalar", shape_floor, .lower = lower_math_floor },
    { "math::ceil(Scalar x) -> Scalar", shape_ceil, .lower = lower_math_ceil },
    { "builtins::round(Scalar number, int? ndigits=None) -> Scalar", shape_round,
      .lower = lower_round, .limits = "no ndigits" },
    { "torch::sym_int(Scalar a) -> Scalar", shape_trunc, .lower = lower_sym_int },
    { "torch::sym_float(Scalar a) -> Scalar", shape_float_number, .lower = lower_sym_float },
    { "torch::_sym_sqrt(Scalar a) -> Scalar", shape_float_number, .lower = lower_sym_sqrt },
    { "torch::_sym_log2(Scalar a) -> Scalar", shape_float_number, .lower = lower_sym_log2 },
    { "torch::sym_min(Scalar a, Scalar b) -> Scalar", shape_number_min, .lower = lower_number_min },
    { "torch::sym_max(Scalar a, Scalar b) -> Scalar", shape_number_max, .lower = lower_number_max },
    { "torch::sym_sum(SymInt[] args) -> SymInt", shape_sym_sum },
    { "torch::sym_not(Scalar a) -> Scalar", shape_not, .lower = lower_sym_not },
    { "torch::sym_ite(Scalar b, Scalar t, Scalar f) -> Scalar", shape_ite, .lower = lower_ite },
    { "_assert_scalar(Scalar self, str assert_msg) -> ()", shape_assert },
    { "_assert_async(Tensor self) -> ()", p2o_rule_none,
      .batch = p2o_batch_nothing },
    { "_assert_async.msg(Tensor self, str assert_msg) -> ()", p2o_rule_none,
      .batch = p2o_batch_nothing },
    { "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
      p2o_rule_none, .roles = "size:none stride:none",
      .batch = p2o_batch_nothing },
    { "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", p2o_rule_none,
      .roles = "size:none min:none max:none" },
    { "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
      p2o_rule_none, .roles = "size:none min:none max:none" },
    { 0 },
};
