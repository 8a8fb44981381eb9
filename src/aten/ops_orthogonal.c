/* Orthogonal polynomials of degree n at x: Chebyshev's four kinds, plain and shifted from [-1, 1]
 * to [0, 1], Hermite's two, Laguerre's and Legendre's.
 *
 * All follow a recurrence over the degree, run for all elements at once in the type of the result
 * until the highest degree is there; each element stops at its own.  It is PyTorch's own, so that
 * overflow comes where it does there.  Chebyshev's have closed forms inside (-1, 1), taken for high
 * degrees, and at the ends. */
#include "aten/lower.h"

#include <math.h>

typedef enum Family { CHEBYSHEV, HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE } Family;

/* Inside (-1, 1), with t = acos(x): which Chebyshev kind. */
typedef enum Kind {
    KIND_NONE,
    KIND_T,                     /* cos(n t) */
    KIND_U,                     /* sin((n + 1) t) / sin(t) */
    KIND_V,                     /* cos((n + 1/2) t) / cos(t / 2) */
    KIND_W,                     /* sin((n + 1/2) t) / sin(t / 2) */
} Kind;

typedef struct Polynomial {
    Family family;
    bool   shifted;             /* in 2 x - 1 */
    double slope, offset;       /* degree 1 is slope * x + offset */
    Kind   kind;
    int    high;                /* above this degree the closed form inside */
    bool   has_ends;            /* (1 + at_one n) at 1 and (-1)^n (1 + at_minus_one n) at -1 */
    int    at_one, at_minus_one;
} Polynomial;

static void shape_polynomial(Infer *in, const Call *c)
{
    set_out(in, c, 0, float_of(PROMOTE(c, "x", "n")),
            broadcast(in, c, shape_arg(c, "x"), shape_arg(c, "n")));
}

/* Degree k + 1 from q of degree k and p of degree k - 1. */
static Value *next_degree(Lower *lo, Family family, Value *x, Value *k, Value *q, Value *p)
{
    if (family == CHEBYSHEV)                            /* 2 x q - p */
        return emit(lo, ONNX_Sub, emit(lo, ONNX_Mul, emit(lo, ONNX_Add, x, x), q), p);
    Value *kp = emit(lo, ONNX_Mul, k, p), *factor;
    if (family == HERMITE_H) {                          /* 2 x q - 2 k p */
        factor = emit(lo, ONNX_Add, x, x);
        kp = emit(lo, ONNX_Add, kp, kp);
    } else if (family == HERMITE_HE) {                  /* x q - k p */
        factor = x;
    } else if (family == LAGUERRE) {                    /* ((2 k + 1 - x) q - k p) / (k + 1) */
        factor = emit(lo, ONNX_Add, emit(lo, ONNX_Add, k, k),
                      emit(lo, ONNX_Sub, num(lo, x->dtype, 1), x));
    } else {                                            /* ((2 k + 1) x q - k p) / (k + 1) */
        factor = emit(lo, ONNX_Mul, plus_num(lo, emit(lo, ONNX_Add, k, k), 1), x);
    }
    Value *r = emit(lo, ONNX_Sub, emit(lo, ONNX_Mul, factor, q), kp);
    return family < LAGUERRE ? r : emit(lo, ONNX_Div, r, plus_num(lo, k, 1));
}

/* Elements of degree 0 and 1 are there at the start.  A NaN stays one: no need to go on for it. */
static Value *by_recurrence(Lower *lo, const Polynomial *f, Value *x, Value *n, Shape s)
{
    DType  t = x->dtype;
    Value *first = plus_num(lo, times_num(lo, x, f->slope), f->offset), *out[2];
    Value *start = any_true(lo, emit(lo, ONNX_Greater, n, num(lo, t, 1)));
    Value *one = full(lo, s, t, 1);
    first = choose(lo, emit(lo, ONNX_Equal, n, num(lo, t, 0)), one, first);
    Rounds r = open_rounds(lo, "degree");
    Value *q = round_state(&r, first), *p = round_state(&r, one);
    Value *k = plus_num(lo, cast(lo, r.round, t), 1), *more = emit(lo, ONNX_Less, k, n);
    Value *next = choose(lo, more, next_degree(lo, f->family, x, k, q, p), q);
    Value *left = emit(lo, ONNX_And, emit(lo, ONNX_Less, plus_num(lo, k, 1), n),
                       emit(lo, ONNX_Equal, next, next));
    left = any_true(lo, left);
    close_rounds(lo, &r, NULL, start, left, (Value *[]){ next, choose(lo, more, q, p) }, out);
    return out[0];
}

static Value *by_angle(Lower *lo, Kind kind, Value *x, Value *n)
{
    Value *angle = emit(lo, ONNX_Acos, x);
    double more = kind == KIND_T ? 0 : kind == KIND_U ? 1 : 0.5;
    OnnxOp op = kind == KIND_T || kind == KIND_V ? ONNX_Cos : ONNX_Sin;
    Value *y = emit(lo, op, emit(lo, ONNX_Mul, plus_num(lo, n, more), angle));
    if (kind == KIND_T)
        return y;
    angle = times_num(lo, angle, kind == KIND_U ? 1 : 0.5);
    return emit(lo, ONNX_Div, y, emit(lo, op, angle));
}

/* At 1 and -1. */
static Value *at_ends(Lower *lo, const Polynomial *f, Value *x, Value *n, Value *odd)
{
    DType  t = x->dtype;
    Value *high = plus_num(lo, times_num(lo, n, f->at_one), 1);
    Value *low = plus_num(lo, times_num(lo, n, f->at_minus_one), 1);
    low = choose(lo, odd, emit(lo, ONNX_Neg, low), low);
    return choose(lo, emit(lo, ONNX_Greater, x, num(lo, t, 0)), high, low);
}

/* The degree is a whole number, cut off; one that int64 cannot hold counts as negative, whose
 * polynomial is 0. */
static Value *lower_polynomial(Lower *lo, const Call *c, const Polynomial *f)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *zero = num(lo, t, 0), *one = num(lo, t, 1);
    Value *x = tensor_as(lo, c, "x", t), *n = tensor_as(lo, c, "n", t);
    Value *fits = emit(lo, ONNX_Less, emit(lo, ONNX_Abs, n), num(lo, t, 0x1p63));
    Value *whole = cast(lo, choose(lo, fits, n, num(lo, t, -1)), DT_I64), *closed = NULL,
          *ends = NULL, *y;
    n = cast(lo, whole, t);
    if (f->shifted)
        x = plus_num(lo, emit(lo, ONNX_Add, x, x), -1);
    Value *size = emit(lo, ONNX_Abs, x), *steps = n;
    if (f->kind) {
        closed = emit(lo, ONNX_And, emit(lo, ONNX_Less, size, one),
                      emit(lo, ONNX_Greater, n, num(lo, t, f->high)));
        steps = choose(lo, closed, zero, steps);
    }
    if (f->has_ends) {
        ends = emit(lo, ONNX_Equal, size, one);
        steps = choose(lo, ends, zero, steps);
    }
    Value *overflow = NULL;
    if (f->family == HERMITE_H || f->family == HERMITE_HE) {
        overflow = emit(lo, ONNX_Greater, n, num(lo, t, t == DT_F64 ? 512 : 128));
        steps = choose(lo, overflow, zero, steps);
    }
    y = by_recurrence(lo, f, x, steps, out_shape(c, 0));
    if (overflow)
        y = choose(lo, overflow, num(lo, t, NAN), y);
    if (closed)
        y = choose(lo, closed, by_angle(lo, f->kind, x, n), y);
    if (ends) {
        Value *odd = cast(lo, emit(lo, ONNX_Mod, whole, p2o_build_int(lo->b, 2)), DT_BOOL);
        y = choose(lo, ends, at_ends(lo, f, x, n, odd), y);
    }
    return cast(lo, choose(lo, emit(lo, ONNX_Less, n, zero), zero, y), out_dtype(c, 0));
}

#define CHEBYSHEV_LOWERING(fn, ...)                                                                \
    static Value *fn(Lower *lo, const Call *c)                                                     \
    {                                                                                              \
        return lower_polynomial(lo, c,                                                             \
                                &(const Polynomial){ CHEBYSHEV, .has_ends = true, __VA_ARGS__ });  \
    }
#define LOWERING(fn, ...)                                                                       \
    static Value *fn(Lower *lo, const Call *c)                                                  \
    {                                                                                           \
        return lower_polynomial(lo, c, &(const Polynomial){ __VA_ARGS__ });                     \
    }

CHEBYSHEV_LOWERING(lower_chebyshev_t, .slope = 1, .kind = KIND_T, .high = 6)
CHEBYSHEV_LOWERING(lower_chebyshev_u, .slope = 2, .kind = KIND_U, .high = 8, .at_one = 1,
                   .at_minus_one = 1)
CHEBYSHEV_LOWERING(lower_chebyshev_v, .slope = 2, .offset = -1, .kind = KIND_V, .high = 8,
                   .at_minus_one = 2)
CHEBYSHEV_LOWERING(lower_chebyshev_w, .slope = 2, .offset = 1, .kind = KIND_W, .high = 8,
                   .at_one = 2)
CHEBYSHEV_LOWERING(lower_shifted_t, .shifted = true, .slope = 1, .kind = KIND_T, .high = 6)
CHEBYSHEV_LOWERING(lower_shifted_u, .shifted = true, .slope = 2, .kind = KIND_U, .high = 6,
                   .at_one = 1, .at_minus_one = 1)
CHEBYSHEV_LOWERING(lower_shifted_v, .shifted = true, .slope = 2, .offset = -1, .kind = KIND_V,
                   .high = 6, .at_minus_one = 2)
CHEBYSHEV_LOWERING(lower_shifted_w, .shifted = true, .slope = 2, .offset = 1, .kind = KIND_W,
                   .high = 4, .at_one = 2)
LOWERING(lower_hermite_h, HERMITE_H, .slope = 2)
LOWERING(lower_hermite_he, HERMITE_HE, .slope = 1)
LOWERING(lower_laguerre_l, LAGUERRE, .slope = -1, .offset = 1)
LOWERING(lower_legendre_p, LEGENDRE, .slope = 1, .has_ends = true)

#define ROWS_POLYNOMIAL(name, fn)                                                               \
    { "special_" name "(Tensor x, Tensor n) -> Tensor", shape_polynomial, .lower = fn },        \
    { "special_" name ".x_scalar(Scalar x, Tensor n) -> Tensor", shape_polynomial, .lower = fn }, \
    { "special_" name ".n_scalar(Tensor x, Scalar n) -> Tensor", shape_polynomial, .lower = fn }

const AtenOp p2o_ops_orthogonal[] = {
    ROWS_POLYNOMIAL("chebyshev_polynomial_t", lower_chebyshev_t),
    ROWS_POLYNOMIAL("chebyshev_polynomial_u", lower_chebyshev_u),
    ROWS_POLYNOMIAL("chebyshev_polynomial_v", lower_chebyshev_v),
    ROWS_POLYNOMIAL("chebyshev_polynomial_w", lower_chebyshev_w),
    ROWS_POLYNOMIAL("shifted_chebyshev_polynomial_t", lower_shifted_t),
    ROWS_POLYNOMIAL("shifted_chebyshev_polynomial_u", lower_shifted_u),
    ROWS_POLYNOMIAL("shifted_chebyshev_polynomial_v", lower_shifted_v),
    ROWS_POLYNOMIAL("shifted_chebyshev_polynomial_w", lower_shifted_w),
    ROWS_POLYNOMIAL("hermite_polynomial_h", lower_hermite_h),
    ROWS_POLYNOMIAL("hermite_polynomial_he", lower_hermite_he),
    ROWS_POLYNOMIAL("laguerre_polynomial_l", lower_laguerre_l),
    ROWS_POLYNOMIAL("legendre_polynomial_p", lower_legendre_p),
    { 0 },
};
