/* Special functions: those that need more than one ONNX operator to be exact enough.
 *
 * log1p and its like are accurate near 0, where 1 + x loses the digits of x.  The others are
 * computed in f32, from polynomials fitted to the function with a relative error below 1e-6 and
 * from asymptotic series; f64 would need others and is refused, but for the error function's
 * relatives. */
#include "aten/lower.h"
#include "onnx/f64.h"

#include <math.h>

#define ROOT_2  1.41421356237309504880
#define PI      3.14159265358979323846
#define LOG_PI  1.14472988584940017414
#define HALF_LOG_2PI 0.91893853320467274178
#define INF     ((double)INFINITY)

static Value *wide_self(Lower *lo, const Call *c)
{
    return tensor_as(lo, c, "self", wide_of(out_dtype(c, 0)));
}

static Value *lower_log1p(Lower *lo, const Call *c)
{
    return cast(lo, log1p_of(lo, wide_self(lo, c)), out_dtype(c, 0));
}

static Value *lower_expm1(Lower *lo, const Call *c)
{
    return cast(lo, expm1_of(lo, wide_self(lo, c)), out_dtype(c, 0));
}

/* x * log(y), 0 where x is unless y is NaN. */
static Value *times_log(Lower *lo, const Call *c, Value *log_of(Lower *, Value *), double log_zero)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *y = tensor_as(lo, c, "other", t);
    Value *at_zero =
        emit(lo, ONNX_And, emit(lo, ONNX_Equal, x, num(lo, t, 0)), emit(lo, ONNX_Equal, y, y));
    y = log_of(lo, choose(lo, at_zero, num(lo, t, log_zero), y));
    return cast(lo, emit(lo, ONNX_Mul, x, y), out_dtype(c, 0));
}

static Value *log_of_value(Lower *lo, Value *x) { return emit(lo, ONNX_Log, x); }
static Value *lower_xlogy(Lower *lo, const Call *c) { return times_log(lo, c, log_of_value, 1); }
static Value *lower_xlog1py(Lower *lo, const Call *c) { return times_log(lo, c, log1p_of, 0); }

/* -x log(x) */
static Value *lower_entr(Lower *lo, const Call *c)
{
    Value *x = wide_self(lo, c), *zero = num(lo, x->dtype, 0);
    Value *y = emit(lo, ONNX_Neg, emit(lo, ONNX_Mul, x, emit(lo, ONNX_Log, x)));
    y = choose(lo, emit(lo, ONNX_Less, x, zero), num(lo, x->dtype, -INF), y);
    return cast(lo, choose(lo, emit(lo, ONNX_Equal, x, zero), zero, y), out_dtype(c, 0));
}

/* PyTorch calls the one tensor self, or x. */
static const char *tensor_name(const Call *c)
{
    return p2o_schema_find(c->schema, "self") >= 0 ? "self" : "x";
}

/* What is computed in f32 for all types but f64. */
static void shape_special(Infer *in, const Call *c)
{
    Type x = type_arg(c, tensor_name(c));
    if (x.dtype == DT_F64)
        rule_unsupported(in, "float64");
    set_out(in, c, 0, float_of(x.dtype), x.shape);
}

typedef Value *FloatFn(Lower *lo, Value *x);

/* Those of x alone that know f64 too. */
static Value *special_wide(Lower *lo, const Call *c, FloatFn *fn)
{
    DType t = out_dtype(c, 0) == DT_F64 ? DT_F64 : DT_F32;
    return cast(lo, fn(lo, tensor_as(lo, c, tensor_name(c), t)), out_dtype(c, 0));
}

static Value *special(Lower *lo, const Call *c, FloatFn *fn)
{
    return cast(lo, fn(lo, tensor_as(lo, c, tensor_name(c), DT_F32)), out_dtype(c, 0));
}

static Value *less_than(Lower *lo, Value *x, double f)
{
    return emit(lo, ONNX_Less, x, num(lo, x->dtype, f));
}
static Value *square_of(Lower *lo, Value *x) { return emit(lo, ONNX_Mul, x, x); }

/* For z >= 0: t = 1 / (1 + z / 2) and log(erfcx(z) / t), where erfcx(z) = exp(z^2) erfc(z). */
static Value *log_erfcx(Lower *lo, Value *z, Value **t)
{
    static const double coef[] = {
        0.168763775, -0.81333858, 1.47328031, -1.12112522, 0.271366257,
        -0.183971005, 0.0963889688, 0.374124978, 1.00002265, -1.26551222,
    };
    *t = emit(lo, ONNX_Reciprocal, plus_num(lo, times_num(lo, z, 0.5), 1));
    return polynomial(lo, *t, coef, COUNT_OF(coef));
}

/* exp(-z^2) of f64, the square in two parts: its rounding would count z^2 times over. */
static Value *exp_minus_square(Lower *lo, Value *z)
{
    Value *wide = times_num(lo, z, 0x1p27 + 1);
    Value *high = emit(lo, ONNX_Sub, wide, emit(lo, ONNX_Sub, wide, z));
    Value *low = emit(lo, ONNX_Mul, emit(lo, ONNX_Sub, z, high), emit(lo, ONNX_Add, z, high));
    Value *y = emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, square_of(lo, high)));
    y = emit(lo, ONNX_Mul, y, emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, low)));
    return choose(lo, less_than(lo, z, 40), y,
                  emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, square_of(lo, z))));
}

/* Accurate in the tail, where 1 - erf(x) has no digits left. */
static Value *erfc_of(Lower *lo, Value *x)
{
    Value *z = emit(lo, ONNX_Abs, x), *t, *y;
    if (x->dtype == DT_F64) {
        y = emit(lo, ONNX_Mul, exp_minus_square(lo, z), p2o_f64_erfcx(lo->b, z));
    } else {
        Value *p = log_erfcx(lo, z, &t);
        y = emit(lo, ONNX_Mul, t, emit(lo, ONNX_Exp, emit(lo, ONNX_Sub, p, square_of(lo, z))));
    }
    return choose(lo, less_than(lo, x, 0), emit(lo, ONNX_Sub, num(lo, x->dtype, 2), y), y);
}

static Value *erfcx_of(Lower *lo, Value *x)
{
    Value *z = emit(lo, ONNX_Abs, x), *t, *y;
    if (x->dtype == DT_F64) {
        y = p2o_f64_erfcx(lo->b, z);
    } else {
        Value *p = log_erfcx(lo, z, &t);
        y = emit(lo, ONNX_Mul, t, emit(lo, ONNX_Exp, p));
    }
    Value *mirrored = emit(lo, ONNX_Sub, times_num(lo, emit(lo, ONNX_Exp, square_of(lo, z)), 2), y);
    return choose(lo, less_than(lo, x, 0), mirrored, y);
}

/* erfc(-x / sqrt 2) / 2 */
static Value *ndtr_of(Lower *lo, Value *x)
{
    return times_num(lo, erfc_of(lo, times_num(lo, x, -1 / ROOT_2)), 0.5);
}

/* Below -1 through the logarithm of erfcx, else log(1 - erfc(x / sqrt 2) / 2). */
static Value *log_ndtr_of(Lower *lo, Value *x)
{
    Value *z = times_num(lo, x, -1 / ROOT_2), *size = emit(lo, ONNX_Abs, z), *t, *tail;
    if (x->dtype == DT_F64) {
        tail = emit(lo, ONNX_Log, times_num(lo, p2o_f64_erfcx(lo->b, size), 0.5));
    } else {
        Value *p = log_erfcx(lo, size, &t);
        tail = emit(lo, ONNX_Add, p, emit(lo, ONNX_Log, times_num(lo, t, 0.5)));
    }
    tail = emit(lo, ONNX_Sub, tail, square_of(lo, z));
    Value *upper = times_num(lo, erfc_of(lo, times_num(lo, x, 1 / ROOT_2)), -0.5);
    return choose(lo, less_than(lo, x, -1), tail, log1p_of(lo, upper));
}

/* erfinv(u) given w = -log(1 - u^2), which the caller knows more exactly than u near 1. */
static Value *erfinv_by(Lower *lo, Value *u, Value *w)
{
    static const double middle[] = {                    /* erfinv(u) / u, in w - 2.5 */
        2.85347898e-08, 3.43727059e-07, -3.52885955e-06, -4.39678125e-06, 0.000218602194,
        -0.00125370752, -0.00417770774, 0.246640726, 1.50140942,
    };
    static const double tail[] = {                      /* erfinv(u), in sqrt(w) - 3 */
        8.6439422e-08, -2.56851993e-06, 3.26129165e-05, -0.000234684216, 0.00107997369,
        -0.00339704076, 0.00685655915, 1.00265068, 2.83280107,
    };
    Value *near =
        emit(lo, ONNX_Mul, u, polynomial(lo, plus_num(lo, w, -2.5), middle, COUNT_OF(middle)));
    Value *s = plus_num(lo, emit(lo, ONNX_Sqrt, w), -3);
    Value *far =
        emit(lo, ONNX_Mul, emit(lo, ONNX_Sign, u), polynomial(lo, s, tail, COUNT_OF(tail)));
    return choose(lo, less_than(lo, w, 5), near, far);
}

static Value *erfinv_of(Lower *lo, Value *x)
{
    Value *one = num(lo, DT_F32, 1);
    Value *rest = emit(lo, ONNX_Mul, emit(lo, ONNX_Sub, one, x), emit(lo, ONNX_Add, one, x));
    return erfinv_by(lo, x, emit(lo, ONNX_Neg, emit(lo, ONNX_Log, rest)));
}

/* sqrt 2 * erfinv(2 x - 1); 1 - (2 x - 1)^2 = 4 x (1 - x) */
static Value *ndtri_of(Lower *lo, Value *x)
{
    Value *rest =
        emit(lo, ONNX_Mul, times_num(lo, x, 4), emit(lo, ONNX_Sub, num(lo, DT_F32, 1), x));
    Value *w = emit(lo, ONNX_Neg, emit(lo, ONNX_Log, rest));
    Value *u = plus_num(lo, times_num(lo, x, 2), -1);
    return times_num(lo, erfinv_by(lo, u, w), ROOT_2);
}

/* For x >= 0.  Below 3: (y - 1) (y - 2) R(y) with y in [1, 3), so that it is exactly 0 at 1 and 2;
 * log(gamma(x)) = log(gamma(x + 1)) - log(x).  From 3 on Stirling's series. */
static Value *log_gamma_above(Lower *lo, Value *x)
{
    static const double r[] = {
        /* R(y), in y - 2 */
        7.8170023e-05,  -0.00015897199, 0.000130650028, -0.000318977319,
        0.000944277245, -0.00214871957, 0.00499156971,  -0.0123766379,
        0.0329656243,   -0.10031769,    0.422784326,
    };
    static const double stirling[] = { -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12 };
    Value *unit = less_than(lo, x, 1), *zero = num(lo, DT_F32, 0), *log = emit(lo, ONNX_Log, x);
    Value *u = choose(lo, unit, plus_num(lo, x, -1), plus_num(lo, x, -2));
    Value *low = emit(lo, ONNX_Mul, emit(lo, ONNX_Mul, u, choose(lo, unit, x, plus_num(lo, x, -1))),
                      polynomial(lo, u, r, COUNT_OF(r)));
    low = emit(lo, ONNX_Sub, low, choose(lo, unit, log, zero));
    Value *q = emit(lo, ONNX_Reciprocal, x);
    Value *series =
        emit(lo, ONNX_Mul, q, polynomial(lo, square_of(lo, q), stirling, COUNT_OF(stirling)));
    Value *high = emit(lo, ONNX_Mul, plus_num(lo, x, -0.5), plus_num(lo, log, -1));
    high = emit(lo, ONNX_Add, high, plus_num(lo, series, HALF_LOG_2PI - 0.5));
    return choose(lo, less_than(lo, x, 3), low, high);
}

/* x - round(x): sin and tan of pi times it are accurate near whole numbers. */
static Value *off_whole(Lower *lo, Value *x)
{
    return emit(lo, ONNX_Sub, x, emit(lo, ONNX_Round, x));
}

/* gamma(x) gamma(-x) = -pi / (x sin(pi x)) */
static Value *lgamma_of(Lower *lo, Value *x)
{
    Value *a = emit(lo, ONNX_Abs, x), *above = log_gamma_above(lo, a);
    Value *sine = emit(lo, ONNX_Sin, times_num(lo, off_whole(lo, a), PI));
    Value *logs =
        emit(lo, ONNX_Add, emit(lo, ONNX_Log, emit(lo, ONNX_Abs, sine)), emit(lo, ONNX_Log, a));
    Value *below = emit(lo, ONNX_Sub, num(lo, DT_F32, LOG_PI), emit(lo, ONNX_Add, logs, above));
    return choose(lo, less_than(lo, x, 0), below, above);
}

/* x, x + step, ... n of them along a new last axis. */
static Value *steps_from(Lower *lo, Value *x, double step, int n)
{
    float *v = NEW_N(lo->arena, float, (size_t)n);
    for (int i = 0; i < n; i++)
        v[i] = (float)(step * i);
    Value *steps =
        p2o_build_const(lo->b, p2o_tensor_make(lo->arena, DT_F32, 1, (const int64_t[]){ n }, v));
    return emit(lo, ONNX_Add, unsqueeze(lo, x, rank(x)), steps);
}

static Value *sum_last(Lower *lo, Value *x)
{
    return reduce(lo, ONNX_ReduceSum, x, (const int64_t[]){ rank(x) - 1 }, 1, false);
}

/* For x >= 0: the asymptotic series at x + 6, less 1/x ... 1/(x + 5). */
static Value *digamma_above(Lower *lo, Value *x)
{
    static const double series[] = { 1.0 / 252, -1.0 / 120, 1.0 / 12 };
    Value *sum = sum_last(lo, emit(lo, ONNX_Reciprocal, steps_from(lo, x, 1, 6)));
    Value *z = plus_num(lo, x, 6), *q = emit(lo, ONNX_Reciprocal, z), *q2 = square_of(lo, q);
    Value *tail = emit(lo, ONNX_Mul, q2, polynomial(lo, q2, series, COUNT_OF(series)));
    tail = emit(lo, ONNX_Add, tail, times_num(lo, q, 0.5));
    return emit(lo, ONNX_Sub, emit(lo, ONNX_Sub, emit(lo, ONNX_Log, z), tail), sum);
}

/* digamma(-a) = digamma(a) + 1/a + pi / tan(pi a), which has no value at whole a. */
static Value *digamma_of(Lower *lo, Value *x)
{
    Value *a = emit(lo, ONNX_Abs, x), *above = digamma_above(lo, a), *r = off_whole(lo, a);
    Value *cot = emit(lo, ONNX_Div, num(lo, DT_F32, PI), emit(lo, ONNX_Tan, times_num(lo, r, PI)));
    Value *below = emit(lo, ONNX_Add, emit(lo, ONNX_Add, above, emit(lo, ONNX_Reciprocal, a)), cot);
    Value *whole = emit(lo, ONNX_Equal, r, num(lo, DT_F32, 0));
    below = choose(lo, whole, num(lo, DT_F32, (double)NAN), below);
    return choose(lo, less_than(lo, x, 0), below, above);
}

/* The sum of (x + k)^-s over k >= 0, for x >= 0: eight terms, then Euler and Maclaurin's series. */
static Value *zeta_above(Lower *lo, double s, Value *x)
{
    double c3 = s * (s + 1) * (s + 2) / 720;
    const double series[] = { c3 * (s + 3) * (s + 4) / 42, -c3, s / 12 };
    Value *power = num(lo, DT_F32, -s), *z = plus_num(lo, x, 8), *q = emit(lo, ONNX_Reciprocal, z);
    Value *sum = sum_last(lo, emit(lo, ONNX_Pow, steps_from(lo, x, 1, 8), power));
    Value *tail = emit(lo, ONNX_Mul, q, polynomial(lo, square_of(lo, q), series, COUNT_OF(series)));
    tail = emit(lo, ONNX_Add, plus_num(lo, times_num(lo, z, 1 / (s - 1)), 0.5), tail);
    return emit(lo, ONNX_Add, sum, emit(lo, ONNX_Mul, emit(lo, ONNX_Pow, z, power), tail));
}

/* For x = -a: the terms below 0 are those of r, the fraction of a, up to a; those above begin at
 * 1 - r.  A whole x <= 0 has a term 1/0. */
static Value *zeta_below(Lower *lo, int64_t s, Value *a)
{
    Value *r = emit(lo, ONNX_Sub, a, emit(lo, ONNX_Floor, a));
    Value *above = zeta_above(lo, (double)s, emit(lo, ONNX_Sub, num(lo, DT_F32, 1), r));
    Value *below = emit(lo, ONNX_Sub, zeta_above(lo, (double)s, r),
                        zeta_above(lo, (double)s, plus_num(lo, a, 1)));
    Value *y = emit(lo, s % 2 ? ONNX_Sub : ONNX_Add, above, below);
    return choose(lo, emit(lo, ONNX_Equal, r, num(lo, DT_F32, 0)), num(lo, DT_F32, INF), y);
}

static void shape_polygamma(Infer *in, const Call *c)
{
    if (int_arg(c, "n") < 0)
        rule_fail(in, "n is %lld", (long long)int_arg(c, "n"));
    else if (int_arg(c, "n") > 30)
        rule_unsupported(in, "n is %lld: its factorial overflows", (long long)int_arg(c, "n"));
    shape_special(in, c);
}

/* (-1)^(n + 1) n! zeta(n + 1, x); n = 0 is digamma */
static Value *lower_polygamma(Lower *lo, const Call *c)
{
    int64_t n = int_arg(c, "n");
    double  factor = n % 2 ? 1 : -1;
    Value  *x = tensor_as(lo, c, "self", DT_F32);
    for (int64_t i = 2; i <= n; i++)
        factor *= (double)i;
    if (n == 0)
        return cast(lo, digamma_of(lo, x), out_dtype(c, 0));
    Value *below = zeta_below(lo, n + 1, emit(lo, ONNX_Neg, x));
    Value *y = choose(lo, emit(lo, ONNX_LessOrEqual, x, num(lo, DT_F32, 0)), below,
                      zeta_above(lo, (double)n + 1, x));
    return cast(lo, times_num(lo, y, factor), out_dtype(c, 0));
}

static void shape_multigammaln(Infer *in, const Call *c)
{
    if (int_arg(c, "p") < 1)
        rule_fail(in, "p is %lld", (long long)int_arg(c, "p"));
    else if (int_arg(c, "p") > 1000)
        rule_unsupported(in, "p is %lld", (long long)int_arg(c, "p"));
    shape_special(in, c);
}

/* The sum of lgamma(x - j / 2) over j < p, and p (p - 1) / 4 * log(pi). */
static Value *lower_multigammaln(Lower *lo, const Call *c)
{
    int64_t p = int_arg(c, "p");
    Value  *x = tensor_as(lo, c, "self", DT_F32);
    x = sum_last(lo, lgamma_of(lo, steps_from(lo, x, -0.5, (int)p)));
    return cast(lo, plus_num(lo, x, (double)(p * (p - 1)) / 4 * LOG_PI), out_dtype(c, 0));
}

/* I0(a) exp(-a) and I1(a) exp(-a) for a >= 0, or without the exponential.  Below 8 a polynomial in
 * a^2, of I1 / a for the order 1; above sqrt(a) I(a) exp(-a) is one in 8 / a. */
static Value *bessel_i(Lower *lo, Value *a, int order, bool scaled)
{
    static const double low[2][10] = {
        { 5.71607562e-17, 5.81563913e-15, 2.63418683e-12, 4.62352097e-10, 6.80049663e-08,
          6.77931381e-06, 0.000434043822, 0.0156249493, 0.250000056, 0.999999991 },
        { 2.75044388e-18, 3.50455474e-16, 1.61782268e-13, 3.31828309e-11, 5.66210597e-09,
          6.78021602e-07, 5.42545766e-05, 0.00260416268, 0.0625000052, 0.499999999 },
    };
    static const double high[2][6] = {
        { 1.18571734e-05, -3.42992417e-06, 6.603583e-05, 0.000435896731, 0.00623370231,
          0.398942277 },
        { -1.38249185e-05, 2.42228695e-06, -9.02047082e-05, -0.00072772132, -0.0187006856,
          0.398942285 },
    };
    Value *near = polynomial(lo, square_of(lo, a), low[order], 10);
    if (order == 1)
        near = emit(lo, ONNX_Mul, near, a);
    Value *far = polynomial(lo, emit(lo, ONNX_Div, num(lo, DT_F32, 8), a), high[order], 6);
    far = emit(lo, ONNX_Div, far, emit(lo, ONNX_Sqrt, a));
    if (scaled) {
        near = emit(lo, ONNX_Mul, near, emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, a)));
    } else {                    /* in two halves: exp(a) overflows earlier */
        Value *half = emit(lo, ONNX_Exp, times_num(lo, a, 0.5));
        far = emit(lo, ONNX_Mul, emit(lo, ONNX_Mul, far, half), half);
    }
    return choose(lo, less_than(lo, a, 8), near, far);
}

static Value *even_bessel(Lower *lo, Value *x, bool scaled)
{
    return bessel_i(lo, emit(lo, ONNX_Abs, x), 0, scaled);
}

static Value *odd_bessel(Lower *lo, Value *x, bool scaled)
{
    Value *a = emit(lo, ONNX_Abs, x);
    return emit(lo, ONNX_Mul, emit(lo, ONNX_Sign, x), bessel_i(lo, a, 1, scaled));
}

static Value *i0_of(Lower *lo, Value *x) { return even_bessel(lo, x, false); }
static Value *i0e_of(Lower *lo, Value *x) { return even_bessel(lo, x, true); }
static Value *i1_of(Lower *lo, Value *x) { return odd_bessel(lo, x, false); }
static Value *i1e_of(Lower *lo, Value *x) { return odd_bessel(lo, x, true); }

/* sin(x) / x, 1 at 0 */
static Value *spherical_j0_of(Lower *lo, Value *x)
{
    Value *y = emit(lo, ONNX_Div, emit(lo, ONNX_Sin, x), x);
    Value *at_infinity = emit(lo, ONNX_Equal, emit(lo, ONNX_Abs, x), num(lo, x->dtype, INF));
    y = choose(lo, at_infinity, num(lo, x->dtype, 0), y);
    return choose(lo, emit(lo, ONNX_Equal, x, num(lo, x->dtype, 0)), num(lo, x->dtype, 1), y);
}

static Value *lower_erfc(Lower *lo, const Call *c) { return special_wide(lo, c, erfc_of); }
static Value *lower_erfcx(Lower *lo, const Call *c) { return special_wide(lo, c, erfcx_of); }
static Value *lower_erfinv(Lower *lo, const Call *c) { return special(lo, c, erfinv_of); }
static Value *lower_ndtr(Lower *lo, const Call *c) { return special_wide(lo, c, ndtr_of); }
static Value *lower_log_ndtr(Lower *lo, const Call *c) { return special_wide(lo, c, log_ndtr_of); }
static Value *lower_ndtri(Lower *lo, const Call *c) { return special(lo, c, ndtri_of); }
static Value *lower_lgamma(Lower *lo, const Call *c) { return special(lo, c, lgamma_of); }
static Value *lower_digamma(Lower *lo, const Call *c) { return special(lo, c, digamma_of); }
static Value *lower_i0(Lower *lo, const Call *c) { return special(lo, c, i0_of); }
static Value *lower_i0e(Lower *lo, const Call *c) { return special(lo, c, i0e_of); }
static Value *lower_i1(Lower *lo, const Call *c) { return special(lo, c, i1_of); }
static Value *lower_i1e(Lower *lo, const Call *c) { return special(lo, c, i1e_of); }
static Value *lower_spherical_j0(Lower *lo, const Call *c)
{
    return special_wide(lo, c, spherical_j0_of);
}

#define F64_LIMIT "float64"
#define ROW_EXACT(name, fn) { name "(Tensor self) -> Tensor", p2o_rule_float, .lower = fn }
#define ROW_F32(name, fn)                                                                       \
    { name "(Tensor self) -> Tensor", shape_special, .lower = fn, .limits = F64_LIMIT }
#define ROW_ARGS(name, args, rule, fn)                                                             \
    {                                                                                              \
        name args " -> Tensor", rule, .lower = fn, .limits = F64_LIMIT                             \
    }
#define ROW_XLOG(name, other_scalar, self_scalar, fn)                                           \
    { name "(Tensor self, Tensor other) -> Tensor", p2o_rule_binary_float, .lower = fn },       \
    { other_scalar "(Tensor self, Scalar other) -> Tensor", p2o_rule_binary_float, .lower = fn }, \
    { self_scalar "(Scalar self, Tensor other) -> Tensor", p2o_rule_binary_float, .lower = fn }

const AtenOp p2o_ops_special[] = {
    ROW_EXACT("expm1", lower_expm1),
    ROW_EXACT("special_expm1", lower_expm1),
    ROW_EXACT("log1p", lower_log1p),
    ROW_EXACT("special_log1p", lower_log1p),
    ROW_XLOG("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", lower_xlogy),
    ROW_XLOG("special_xlogy", "special_xlogy.other_scalar", "special_xlogy.self_scalar",
             lower_xlogy),
    ROW_XLOG("special_xlog1py", "special_xlog1py.other_scalar", "special_xlog1py.self_scalar",
             lower_xlog1py),
    ROW_EXACT("special_entr", lower_entr),
    { "erf(Tensor self) -> Tensor", p2o_rule_float, .onnx = ONNX_Erf },
    { "special_erf(Tensor self) -> Tensor", p2o_rule_float, .onnx = ONNX_Erf },
    ROW_EXACT("erfc", lower_erfc),
    ROW_EXACT("special_erfc", lower_erfc),
    ROW_EXACT("special_erfcx", lower_erfcx),
    ROW_F32("erfinv", lower_erfinv),
    ROW_F32("special_erfinv", lower_erfinv),
    ROW_EXACT("special_ndtr", lower_ndtr),
    ROW_EXACT("special_log_ndtr", lower_log_ndtr),
    ROW_F32("special_ndtri", lower_ndtri),
    ROW_F32("lgamma", lower_lgamma),
    ROW_F32("special_gammaln", lower_lgamma),
    ROW_F32("digamma", lower_digamma),
    ROW_F32("special_digamma", lower_digamma),
    ROW_F32("special_psi", lower_digamma),
    ROW_ARGS("polygamma", "(int n, Tensor self)", shape_polygamma, lower_polygamma),
    ROW_ARGS("special_polygamma", "(int n, Tensor self)", shape_polygamma, lower_polygamma),
    ROW_ARGS("mvlgamma", "(Tensor self, int p)", shape_multigammaln, lower_multigammaln),
    ROW_ARGS("special_multigammaln", "(Tensor self, int p)", shape_multigammaln,
             lower_multigammaln),
    ROW_F32("i0", lower_i0),
    ROW_F32("special_i0", lower_i0),
    ROW_F32("special_modified_bessel_i0", lower_i0),
    ROW_F32("special_i0e", lower_i0e),
    ROW_F32("special_i1", lower_i1),
    ROW_F32("special_modified_bessel_i1", lower_i1),
    ROW_F32("special_i1e", lower_i1e),
    { "special_spherical_bessel_j0(Tensor x) -> Tensor", p2o_rule_float,
      .lower = lower_spherical_j0 },
    { 0 },
};
