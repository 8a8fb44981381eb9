/* Dim -> ONNX: the one place where a size becomes nodes.
 *
 * Each Dim is computed at most once per graph, from the cheapest thing that carries it: a constant,
 * an axis of a value already there, else arithmetic on its parts.  Reshape and Expand use 0 (copy),
 * -1 and 1 before any of that.  ONNX Runtime cannot infer a -1 beside a size of 0, so -1 is used
 * only where the other sizes cannot be 0. */
#include "aten/lower.h"

#include <assert.h>

typedef struct Carrier {
    Value *whole;               /* int64[1] with the size, or NULL until asked for */
    Value *scalar;              /* int64[] with the size, or NULL */
    Value *of;                  /* a value with this size at `axis` */
    int    axis;
} Carrier;

static Str dim_key(Lower *lo, Dim d)
{
    Dim *key = NEW(lo->arena, Dim);
    *key = d;
    return (Str){ (const char *)key, sizeof *key };
}

static Carrier *find_carrier(const Builder *b, Str key)
{
    for (; b; b = b->parent) {
        Carrier *c = p2o_map_get(&b->dims, key);
        if (c)
            return c;
    }
    return NULL;
}

static Carrier *add_carrier(Lower *lo, Str key, Carrier c)
{
    Carrier *kept = NEW(lo->arena, Carrier);
    *kept = c;
    map_put(&lo->b->dims, key, kept);
    return kept;
}

void carries_dims(Lower *lo, Value *v)
{
    for (int i = 0; i < v->shape.rank; i++) {
        Dim d = v->shape.at[i];
        if (p2o_dim_is_int(d, NULL))
            continue;
        Str key = dim_key(lo, d);
        if (!find_carrier(lo->b, key))
            add_carrier(lo, key, (Carrier){ .of = v, .axis = i });
    }
}

void carries_int(Lower *lo, Value *scalar, Dim d)
{
    Str key = dim_key(lo, d);
    if (!p2o_dim_is_int(d, NULL) && !find_carrier(lo->b, key))
        add_carrier(lo, key, (Carrier){ .scalar = scalar });
}

static bool never_negative(Lower *lo, Dim d)
{
    int64_t low, high;
    p2o_dim_range(lo->dims, d, &low, &high);
    return low >= 0;
}

bool never_zero(Lower *lo, Dim d)
{
    int64_t low, high;
    p2o_dim_range(lo->dims, d, &low, &high);
    return low > 0 || high < 0;
}

/* ONNX's Div truncates; Mod with fmod=0 has the sign of the divisor, as Python's. */
static Value *floor_divide(Lower *lo, Dim a, Dim b)
{
    Value *x = dim_value(lo, a), *y = dim_value(lo, b);
    if (!never_negative(lo, a) || !never_negative(lo, b))
        x = emit(lo, ONNX_Sub, x, emit(lo, ONNX_Mod, x, y));
    return emit(lo, ONNX_Div, x, y);
}

static Value *as_count(Lower *lo, Value *truths) { return cast(lo, truths, DT_I64); }

/* floor(sqrt(n)), less 1 where the double of n or its root was rounded up: past 2^52. */
static Value *root_value(Lower *lo, Value *n)
{
    Value *r = cast(lo, emit(lo, ONNX_Floor, emit(lo, ONNX_Sqrt, cast(lo, n, DT_F64))), DT_I64);
    Value *over = emit(lo, ONNX_Greater, emit(lo, ONNX_Mul, r, r), n);
    return emit(lo, ONNX_Sub, r, as_count(lo, over));
}

static Value *powers_of_two(Lower *lo)
{
    int64_t power[63];
    for (size_t i = 0; i < COUNT_OF(power); i++)
        power[i] = (int64_t)1 << i;
    return ints_const(lo, power, COUNT_OF(power));
}

/* How many powers of two are not above n. */
static Value *bit_length_value(Lower *lo, Value *n, bool is_natural)
{
    if (!is_natural)
        n = emit(lo, ONNX_Abs, n);
    Value *counts = as_count(lo, emit(lo, ONNX_GreaterOrEqual, n, powers_of_two(lo)));
    return emit_with(lo, ONNX_ReduceSum, ATTRS(attr_int("keepdims", 1)), counts, INTS(lo, 0));
}

/* Cast cuts toward zero, and Round takes halves to even. */
static Value *rounded_value(Lower *lo, Value *n, OnnxOp join, double factor, OnnxOp round)
{
    Value *x = emit(lo, join, cast(lo, n, DT_F64), num(lo, DT_F64, factor));
    return cast(lo, round ? emit(lo, round, x) : x, DT_I64);
}

static Value *fn_value(Lower *lo, Dim d)
{
    double factor;
    DimFn  fn = p2o_dim_fn_of(d, &factor);
    Dim    a = p2o_dim_operand(d, 0);
    Value *n = dim_value(lo, a);
    switch (fn) {
    case FN_ISQRT: return root_value(lo, n);
    case FN_BIT_LENGTH: return bit_length_value(lo, n, never_negative(lo, a));
    case FN_POW2:
        return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", 0)), powers_of_two(lo), n);
    case FN_TRUNC: return rounded_value(lo, n, ONNX_Mul, factor, ONNX_NONE);
    case FN_FLOOR: return rounded_value(lo, n, ONNX_Mul, factor, ONNX_Floor);
    case FN_CEIL: return rounded_value(lo, n, ONNX_Mul, factor, ONNX_Ceil);
    case FN_ROUND: return rounded_value(lo, n, ONNX_Mul, factor, ONNX_Round);
    case FN_TRUNC_OVER: return rounded_value(lo, n, ONNX_Div, factor, ONNX_NONE);
    case FN_FLOOR_OVER: return rounded_value(lo, n, ONNX_Div, factor, ONNX_Floor);
    case FN_CEIL_OVER: return rounded_value(lo, n, ONNX_Div, factor, ONNX_Ceil);
    case FN_ROUND_OVER: return rounded_value(lo, n, ONNX_Div, factor, ONNX_Round);
    }
    return n;
}

static Value *term_value(Lower *lo, const DimTerm *t, int64_t coef)
{
    Value *v = NULL;
    for (int i = 0; i < t->natom; i++) {
        Value *atom = dim_value(lo, t->atom[i]);
        for (int k = 0; k < t->power[i]; k++)
            v = v ? emit(lo, ONNX_Mul, v, atom) : atom;
    }
    if (!v)
        return INTS(lo, coef);
    return coef == 1 ? v : emit(lo, ONNX_Mul, v, INTS(lo, coef));
}

/* Positive terms first, so that no Neg is needed where one of them is there. */
static Value *sum_value(Lower *lo, Dim d)
{
    Value *v = NULL;
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int i = 0; i < p2o_dim_nterm(d); i++) {
            const DimTerm *t = p2o_dim_term(d, i);
            if ((t->coef > 0) != (sign > 0))
                continue;
            if (!v)
                v = term_value(lo, t, t->coef);
            else
                v = emit(lo, sign > 0 ? ONNX_Add : ONNX_Sub, v, term_value(lo, t, sign * t->coef));
        }
    }
    return v;
}

/* d = times * sym + plus */
static bool is_linear_in(Dim d, Dim sym, int64_t *times, int64_t *plus)
{
    *times = *plus = 0;
    for (int i = 0; i < p2o_dim_nterm(d); i++) {
        const DimTerm *t = p2o_dim_term(d, i);
        if (t->natom == 0)
            *plus = t->coef;
        else if (t->natom == 1 && t->atom[0] == sym && t->power[0] == 1)
            *times = t->coef;
        else
            return false;
    }
    return *times != 0;
}

/* A symbol from a size that is linear in it: an input's axis may be 2*s or s + 1 and no other be
 * s. */
static Value *solved(Lower *lo, Dim sym)
{
    int64_t times, plus;
    for (const Builder *b = lo->b; b; b = b->parent) {
        for (size_t i = 0; i < b->dims.n; i++) {
            Dim d;
            memcpy(&d, b->dims.at[i].key.p, sizeof d);
            if (!is_linear_in(d, sym, &times, &plus))
                continue;
            Value *v = dim_value(lo, d);
            if (plus)
                v = emit(lo, ONNX_Sub, v, INTS(lo, plus));
            return times == 1 ? v : emit(lo, ONNX_Div, v, INTS(lo, times));
        }
    }
    p2o_diag(lo->diags, DIAG_INTERNAL, lo->b->loc, "nothing carries the size %s at run time",
             p2o_dim_name(sym));
    lo->failed = true;
    return INTS(lo, 0);
}

/* Shape arithmetic does not see through these nodes. */
static Value *knows_size(Lower *lo, Value *v, Dim d)
{
    Dim *at = NEW(lo->arena, Dim);
    *at = d;
    v->ints = at;
    v->nints = 1;
    return v;
}

static Value *computed(Lower *lo, Dim d)
{
    switch (p2o_dim_kind(d)) {
    case DIM_INT: {
        int64_t n = 0;
        p2o_dim_is_int(d, &n);
        return INTS(lo, n);
    }
    case DIM_SYM: return solved(lo, d);
    case DIM_FLOORDIV: return floor_divide(lo, p2o_dim_operand(d, 0), p2o_dim_operand(d, 1));
    case DIM_MOD:
        return emit(lo, ONNX_Mod, dim_value(lo, p2o_dim_operand(d, 0)),
                    dim_value(lo, p2o_dim_operand(d, 1)));
    case DIM_MIN:
    case DIM_MAX:
        return emit(lo, p2o_dim_kind(d) == DIM_MIN ? ONNX_Min : ONNX_Max,
                    dim_value(lo, p2o_dim_operand(d, 0)), dim_value(lo, p2o_dim_operand(d, 1)));
    case DIM_FN: return knows_size(lo, fn_value(lo, d), d);
    case DIM_SUM: break;
    }
    return sum_value(lo, d);
}

static Value *carried(Lower *lo, const Carrier *c)
{
    if (c->scalar)
        return emit(lo, ONNX_Unsqueeze, c->scalar, INTS(lo, 0));
    if (lo->opset < 15)                     /* Shape gives all of them */
        return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", 0)), emit(lo, ONNX_Shape, c->of),
                         INTS(lo, c->axis));
    return emit_with(lo, ONNX_Shape,
                     ATTRS(attr_int("start", c->axis), attr_int("end", c->axis + 1)), c->of);
}

Value *dim_value(Lower *lo, Dim d)
{
    assert(d);
    int64_t n;
    if (p2o_dim_is_int(d, &n))
        return INTS(lo, n);
    Str      key = dim_key(lo, d);
    Carrier *c = find_carrier(lo->b, key);
    if (c && c->whole)
        return c->whole;
    Value *v = c ? carried(lo, c) : computed(lo, d);
    Carrier *own = p2o_map_get(&lo->b->dims, key);       /* what a body computes stays in it */
    if (!own)
        own = add_carrier(lo, key, c ? *c : (Carrier){ 0 });
    own->whole = v;
    return v;
}

Value *dim_scalar(Lower *lo, Dim d)
{
    int64_t n;
    if (p2o_dim_is_int(d, &n))
        return p2o_build_int(lo->b, n);
    const Carrier *c = find_carrier(lo->b, dim_key(lo, d));
    if (c && c->scalar)
        return c->scalar;
    return emit(lo, ONNX_Squeeze, dim_value(lo, d), INTS(lo, 0));
}

Value *count_value(Lower *lo, Dim d, DType t)
{
    int64_t n;
    if (p2o_dim_is_int(d, &n))
        return num(lo, t, (double)n);
    return cast(lo, dim_scalar(lo, d), t);
}

Value *range_of(Lower *lo, Dim n, int64_t step)
{
    Dim    end = p2o_dim_mul(lo->dims, n, p2o_dim_int(lo->dims, step));
    Value *v = emit(lo, ONNX_Range, p2o_build_int(lo->b, 0), dim_scalar(lo, end),
                    p2o_build_int(lo->b, step));
    if (p2o_dim_is_int(n, NULL))
        return v;
    Dim *at = NEW(lo->arena, Dim);  /* known here even where the arithmetic is not seen through */
    *at = n;
    v->shape = (Shape){ 1, at };
    return v;
}

/* One vector out of parts, runs of numbers joined. */
static Value *vector(Lower *lo, const Dim *parts, int n)
{
    VEC(Value *) v = { 0 };
    for (int i = 0; i < n;) {
        int64_t run[MAX_RANK];
        size_t  nrun = 0;
        while (i < n && nrun < MAX_RANK && p2o_dim_is_int(parts[i], &run[nrun])) {
            nrun++;
            i++;
        }
        if (nrun)
            VEC_PUSH(lo->arena, &v, ints_const(lo, run, nrun));
        else
            VEC_PUSH(lo->arena, &v, dim_value(lo, parts[i++]));
    }
    if (v.n == 0)
        return ints_const(lo, NULL, 0);
    return concat(lo, 0, v.at, (int)v.n);
}

static bool is_shape_of(Shape s, const Value *v) { return p2o_shape_same(s, v->shape); }

Value *shape_value(Lower *lo, Shape s)
{
    int symbolic = 0;
    for (int i = 0; i < s.rank; i++)
        symbolic += !p2o_dim_is_int(s.at[i], NULL);
    if (symbolic > 1) {                     /* all of it may be the shape of something */
        const Carrier *c = find_carrier(lo->b, dim_key(lo, s.at[0]));
        if (c && c->of && is_shape_of(s, c->of))
            return emit(lo, ONNX_Shape, c->of);
    }
    return vector(lo, s.at, s.rank);
}

/* Shapes that differ only in where their ones are. */
static Value *move_ones(Lower *lo, Value *x, Shape to)
{
    int64_t drop[MAX_RANK], add[MAX_RANK];
    size_t  ndrop = 0, nadd = 0;
    int     i = 0, k = 0;
    while (i < rank(x) || k < to.rank) {
        if (i < rank(x) && k < to.rank && x->shape.at[i] == to.at[k]) {
            i++;
            k++;
        } else if (i < rank(x) && dim_is(x->shape.at[i], 1)) {
            drop[ndrop++] = i++;
        } else if (k < to.rank && dim_is(to.at[k], 1)) {
            add[nadd++] = k++;
        } else {
            return NULL;
        }
    }
    if (ndrop)
        x = emit(lo, ONNX_Squeeze, x, ints_const(lo, drop, ndrop));
    return nadd ? emit(lo, ONNX_Unsqueeze, x, ints_const(lo, add, nadd)) : x;
}

/* All leading dims joined and all others joined: Flatten does that at size 0 too. */
static Value *flatten_at(Lower *lo, Value *x, Shape to)
{
    for (int k = 0; to.rank == 2 && k <= rank(x); k++)
        if (p2o_shape_product(lo->dims, x->shape, 0, k) == to.at[0] &&
            p2o_shape_product(lo->dims, x->shape, k, rank(x)) == to.at[1])
            return emit_with(lo, ONNX_Flatten, ATTRS(attr_int("axis", k)), x);
    return NULL;
}

static bool others_never_zero(Lower *lo, Shape s, int but)
{
    for (int i = 0; i < s.rank; i++)
        if (i != but && !never_zero(lo, s.at[i]))
            return false;
    return true;
}

/* A computed size that is 0 at run time reads as "copy": right only where the size of x is then
 * 0. */
static bool zero_copies_wrong(Lower *lo, const Value *x, Shape to, const Dim *target)
{
    for (int i = 0; i < to.rank; i++) {
        if (p2o_dim_is_int(target[i], NULL) || never_zero(lo, to.at[i]))
            continue;
        if (i >= rank(x) || !p2o_dim_exact_div(lo->dims, x->shape.at[i], to.at[i]))
            return true;
    }
    return false;
}

static Value *reshape_exactly(Lower *lo, Value *x, Value *shape)
{
    return emit_with(lo, ONNX_Reshape, ATTRS(attr_int("allowzero", 1)), x, shape);
}

Value *reshape(Lower *lo, Value *x, Shape to)
{
    if (is_shape_of(to, x))
        return x;
    Dim *target = p2o_shape_copy(lo->arena, to, 0);
    int  unknown = 0, last_unknown = -1;
    bool zero = false;                      /* a size that is 0: then 0 cannot mean copy */
    for (int i = 0; i < to.rank; i++)
        zero |= dim_is(to.at[i], 0);
    if (zero && p2o_shape_is_const(to))
        return reshape_exactly(lo, x, vector(lo, target, to.rank));
    for (int i = 0; i < to.rank; i++) {
        if (p2o_dim_is_int(to.at[i], NULL))
            continue;
        if (!zero && i < rank(x) && x->shape.at[i] == to.at[i]) {
            target[i] = p2o_dim_int(lo->dims, 0);
        } else {
            unknown++;
            last_unknown = i;
        }
    }
    if (unknown) {
        Value *y = move_ones(lo, x, to);
        if (!y && unknown == 1 && !others_never_zero(lo, to, last_unknown))
            y = flatten_at(lo, x, to);
        if (y)
            return y;
    }
    if (unknown == 1 && others_never_zero(lo, to, last_unknown))
        target[last_unknown] = p2o_dim_int(lo->dims, -1);
    if (zero)
        return reshape_exactly(lo, x, vector(lo, target, to.rank));
    if (zero_copies_wrong(lo, x, to, target))
        return reshape_exactly(lo, x, shape_value(lo, to));
    return emit(lo, ONNX_Reshape, x, vector(lo, target, to.rank));
}

/* A target of 1 keeps a size; only what grows is computed. */
Value *expand(Lower *lo, Value *x, Shape to)
{
    if (is_shape_of(to, x))
        return x;
    Dim *target = p2o_shape_copy(lo->arena, to, 0);
    int  lead = to.rank - rank(x);
    bool grows = lead > 0, keeps = false;
    for (int i = 0; i < rank(x); i++) {
        if (x->shape.at[i] != to.at[lead + i]) {
            grows = true;
        } else if (!dim_is(to.at[lead + i], 1)) {
            target[lead + i] = p2o_dim_int(lo->dims, 1);
            keeps = true;
        }
    }
    if (!grows)
        return x;
    return emit(lo, ONNX_Expand, x, keeps ? vector(lo, target, to.rank) : shape_value(lo, to));
}

Value *filled(Lower *lo, Shape s, const Tensor *scalar)
{
    if (s.rank == 0)
        return p2o_build_const(lo->b, scalar);
    Tensor  *unit = NEW(lo->arena, Tensor);
    int64_t *sizes = NEW_N(lo->arena, int64_t, 2);
    *unit = *scalar;
    unit->rank = 1;
    sizes[0] = sizes[1] = 1;
    unit->sizes = sizes;
    unit->strides = sizes + 1;
    return emit_with(lo, ONNX_ConstantOfShape, ATTRS(attr_tensor("value", unit)),
                     shape_value(lo, s));
}

Value *full(Lower *lo, Shape s, DType t, double v)
{
    return filled(lo, s, p2o_tensor_scalar(lo->arena, part_of(t), v, 0, true));
}
