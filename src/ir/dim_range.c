/* What the ranges of symbols say about expressions: bounds and three-valued comparison.
 *
 * A bound of INT64_MIN or INT64_MAX is infinite and stays so.  Comparison bounds the difference,
 * in which equal terms have cancelled; where an interval cannot decide, an opaque atom gives way
 * to a polynomial that bounds it (x//c <= x/c, min(a, b) <= a), and more terms cancel. */
#include "base/num.h"
#include "ir/dim_node.h"

enum {
    MAX_RELAX = 4,              /* atoms given way to, one after the other */
    RELAX_TRIES = 24,           /* polynomials bounded for one question */
    RELAX_TERMS = 32,           /* longer ones are not worth it */
};

static const Range unbounded = { NO_LOWER, NO_UPPER };

static int64_t low_sum(int64_t a, int64_t b)
{
    int64_t r;
    if (a == NO_LOWER || b == NO_LOWER)
        return NO_LOWER;
    return add_i64(a, b, &r) ? r : a < 0 ? NO_LOWER : INT64_MAX;
}

static int64_t high_sum(int64_t a, int64_t b)
{
    int64_t r;
    if (a == NO_UPPER || b == NO_UPPER)
        return NO_UPPER;
    return add_i64(a, b, &r) ? r : a < 0 ? -INT64_MAX : NO_UPPER;
}

static int64_t corner(int64_t a, int64_t b)
{
    int64_t r;
    if (a == 0 || b == 0)
        return 0;
    bool infinite = a == NO_LOWER || a == NO_UPPER || b == NO_LOWER || b == NO_UPPER;
    if (!infinite && mul_i64(a, b, &r))
        return r;
    return (a < 0) == (b < 0) ? NO_UPPER : NO_LOWER;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static Range meet_range(Range a, Range b)
{
    return (Range){ larger(a.lo, b.lo), smaller(a.hi, b.hi) };
}

static Range times_range(Range a, Range b)
{
    int64_t p = corner(a.lo, b.lo), q = corner(a.lo, b.hi);
    int64_t r = corner(a.hi, b.lo), s = corner(a.hi, b.hi);
    Range   x = { smaller(smaller(p, q), smaller(r, s)), larger(larger(p, q), larger(r, s)) };
    if (x.hi == NO_LOWER)
        x.hi = -INT64_MAX;              /* a finite INT64_MAX counted as infinite: one too low */
    return x;
}

static Range range_of_mono(const Mono *m)
{
    Range product = { 1, 1 };
    for (int i = 0; i < m->natom; i++) {
        Range atom = bounds_of(m->atom[i]), power = atom;
        for (int k = 1; k < m->power[i]; k++)
            power = times_range(power, atom);
        if (m->power[i] % 2 == 0)
            power.lo = larger(power.lo, 0);
        product = i ? times_range(product, power) : power;
    }
    return product;
}

static Range range_of_parts(int n, const Part *at)
{
    Range sum = { 0, 0 };
    for (int i = 0; i < n; i++) {
        Range x = times_range(range_of_mono(at[i].mono), (Range){ at[i].coef, at[i].coef });
        sum = (Range){ low_sum(sum.lo, x.lo), high_sum(sum.hi, x.hi) };
    }
    return sum;
}

/* Term by term, and with the common factor taken out: b*s - b + 1 is b*(s - 1) + 1. */
static Range range_of_poly(Dims *t, int n, const Part *at)
{
    Range   r = range_of_parts(n, at);
    Part    rest[DIM_MAX_TERMS];
    int64_t c = 0;
    if (n && at[n - 1].mono->natom == 0)
        c = at[--n].coef;
    const Mono *g = n > 1 ? p2o_mono_common(t, n, at, NULL) : t->one;
    if (g->natom == 0)
        return r;
    for (int i = 0; i < n; i++)
        rest[i] = (Part){ at[i].coef, p2o_mono_div(t, at[i].mono, g) };
    Range product = times_range(range_of_mono(g), range_of_parts(n, rest));
    return meet_range(r, (Range){ low_sum(product.lo, c), high_sum(product.hi, c) });
}

/* A polynomial over `scale` that bounds an atom from one side. */
typedef struct Relaxed {
    Dim     poly;
    int64_t offset, scale;              /* atom against (poly + offset) / scale */
} Relaxed;

/* Bounds of `atom` from above or below; returns how many, up to 2.  *all: the bound is the worse
 * of the two (min from below), else either holds. */
static int relax_atom(Dim atom, bool above, Relaxed out[2], bool *all)
{
    Dim     a = atom->operand[0], b = atom->operand[1];
    int64_t c = b && b->kind == DIM_INT ? b->value : 0;
    *all = false;
    switch (atom->kind) {
    case DIM_MIN:
    case DIM_MAX:
        out[0] = (Relaxed){ a, 0, 1 };
        out[1] = (Relaxed){ b, 0, 1 };
        *all = above == (atom->kind == DIM_MAX);
        return 2;
    case DIM_FLOORDIV:
        if (c > 0) {
            out[0] = (Relaxed){ a, above ? 0 : 1 - c, c };
            return 1;
        }
        break;
    case DIM_FN:
        out[0] = (Relaxed){ a, 0, 1 };
        return p2o_fn_relates(atom, above, &out[0].offset);
    default:
        break;
    }
    /* x // y <= x and x % y <= x where x >= 0 and y >= 1 */
    if (!above || bounds_of(a).lo < 0 || bounds_of(b).lo < 0)
        return 0;
    out[0] = (Relaxed){ a, 0, 1 };
    return 1;
}

/* p with part i, whose monomial is rest * atom, replaced, all of it times r->scale. */
static bool replace_part(Dims *t, const Poly *p, int i, const Mono *rest, const Relaxed *r,
                         Poly *out)
{
    int64_t k = p->at[i].coef, offset;
    out->n = 0;
    return p2o_poly_add(t, out, i, p->at, r->scale, t->one) &&
           p2o_poly_add(t, out, p->n - i - 1, p->at + i + 1, r->scale, t->one) &&
           p2o_poly_add(t, out, r->poly->nterm, r->poly->part, k, rest) &&
           mul_i64(k, r->offset, &offset) &&
           p2o_poly_add(t, out, 1, &(Part){ 1, rest }, offset, t->one);
}

static int64_t low_of_poly(Dims *t, const Poly *p, int fuel, int *tries);

/* The lowest value of p, part i having given way; NO_LOWER when it cannot. */
static int64_t low_relaxed(Dims *t, const Poly *p, int i, int fuel, int *tries)
{
    const Mono *m = p->at[i].mono;
    Dim         atom = m->atom[m->natom - 1];
    const Mono *self = p2o_mono_intern(t, 1, &atom, &(int){ 1 });
    const Mono *rest = p2o_mono_div(t, m, self);
    Relaxed     by[2];
    bool        all;
    int64_t     low[2] = { NO_LOWER, NO_LOWER };
    if (m->power[m->natom - 1] != 1 || range_of_mono(rest).lo < 0)
        return NO_LOWER;
    int n = relax_atom(atom, p->at[i].coef < 0, by, &all);
    for (int k = 0; k < n; k++) {
        Poly q;
        if (!replace_part(t, p, i, rest, &by[k], &q))
            continue;
        low[k] = low_of_poly(t, &q, fuel - 1, tries);
        if (low[k] != NO_LOWER)
            low[k] = -floor_div(-low[k], by[k].scale);
    }
    return all ? smaller(low[0], low[1]) : larger(low[0], low[1]);
}

static int64_t low_of_poly(Dims *t, const Poly *p, int fuel, int *tries)
{
    int64_t low = range_of_poly(t, p->n, p->at).lo;
    --*tries;
    for (int i = p->n; i-- > 0 && fuel > 0 && *tries > 0;) {
        const Mono *m = p->at[i].mono;
        if (m->natom == 0 || !is_opaque(m->atom[m->natom - 1]))
            continue;
        int64_t relaxed = low_relaxed(t, p, i, fuel, tries);
        if (relaxed > low)
            return relaxed;
    }
    return low;
}

static bool has_opaque(int n, const Part *at)
{
    for (int i = 0; i < n; i++)
        if (at[i].mono->natom && is_opaque(at[i].mono->atom[at[i].mono->natom - 1]))
            return true;
    return false;
}

static Range bounds_of_poly(Dims *t, const Poly *p)
{
    Range r = range_of_poly(t, p->n, p->at);
    Poly  minus;
    int   tries = RELAX_TRIES;
    if (p->n < 2 || p->n > RELAX_TERMS || !has_opaque(p->n, p->at))
        return r;
    r.lo = larger(r.lo, low_of_poly(t, p, MAX_RELAX, &tries));
    minus.n = 0;
    if (!p2o_poly_add(t, &minus, p->n, p->at, -1, t->one))
        return r;
    tries = RELAX_TRIES;
    int64_t low = low_of_poly(t, &minus, MAX_RELAX, &tries);
    if (low != NO_LOWER)
        r.hi = smaller(r.hi, -low);
    return r;
}

bool p2o_range_quotient(Range r, int64_t c, int64_t *q)
{
    if (r.lo == NO_LOWER || r.hi == NO_UPPER || floor_div(r.lo, c) != floor_div(r.hi, c))
        return false;
    *q = floor_div(r.lo, c);
    return true;
}

/* Bound over a divisor that is at least 1; either may be infinite. */
static int64_t bound_over(int64_t a, int64_t b)
{
    if (a == NO_LOWER || a == NO_UPPER)
        return a;
    if (b == NO_UPPER)
        return a < 0 ? -1 : 0;
    return floor_div(a, b);
}

static Range range_of_floordiv(Range a, Range b)
{
    if (b.lo >= 0 && b.hi >= 1) {
        b.lo = larger(b.lo, 1);         /* a divisor of 0 has no meaning */
        return (Range){ bound_over(a.lo, a.lo >= 0 ? b.hi : b.lo),
                        bound_over(a.hi, a.hi >= 0 ? b.lo : b.hi) };
    }
    if (a.lo == NO_LOWER || a.hi == NO_UPPER)
        return unbounded;
    int64_t most = larger(a.hi, -a.lo); /* |a // b| <= |a| */
    return (Range){ -most, most };
}

static Range range_of_mod(Range a, Range b)
{
    Range r = { b.lo >= 0 ? 0 : b.lo == NO_LOWER ? NO_LOWER : b.lo + 1,
                b.hi <= 0 ? 0 : b.hi == NO_UPPER ? NO_UPPER : b.hi - 1 };
    if (a.lo >= 0 && b.lo >= 0)
        r.hi = smaller(r.hi, a.hi);
    return r;
}

static Range range_of_node(Dims *t, Dim d)
{
    Poly  p;
    Range a = unbounded, b = unbounded;
    if (is_opaque(d)) {
        a = bounds_of(d->operand[0]);
        b = d->operand[1] ? bounds_of(d->operand[1]) : unbounded;
    }
    switch (d->kind) {
    case DIM_INT:      return (Range){ d->value, d->value };
    case DIM_SYM:      return d->range;
    case DIM_FLOORDIV: return range_of_floordiv(a, b);
    case DIM_MOD:      return range_of_mod(a, b);
    case DIM_MIN:      return (Range){ smaller(a.lo, b.lo), smaller(a.hi, b.hi) };
    case DIM_MAX:      return (Range){ larger(a.lo, b.lo), larger(a.hi, b.hi) };
    case DIM_FN:       return p2o_fn_range(d);
    case DIM_SUM:      break;
    }
    p.n = 0;
    return poly_add_dim(t, &p, d, 1) ? bounds_of_poly(t, &p) : unbounded;
}

void p2o_dim_find_range(Dims *t, Dim d) { thaw(d)->range = range_of_node(t, d); }

void p2o_dim_range(Dims *t, Dim d, int64_t *lo, int64_t *hi)
{
    (void)t;
    Range r = d ? bounds_of(d) : unbounded;
    *lo = r.lo;
    *hi = r.hi;
}

static bool difference(Dims *t, Dim a, Dim b, Poly *p)
{
    p->n = 0;
    return poly_add_dim(t, p, a, 1) && poly_add_dim(t, p, b, -1);
}

/* a + gap <= b, for a gap of 0 or 1. */
static Answer is_below(Dims *t, Dim a, Dim b, int64_t gap)
{
    Poly p;
    if (!a || !b)
        return CANNOT_TELL;
    Range x = bounds_of(a), y = bounds_of(b);
    if (a != b && (gap == 0 ? x.hi <= y.lo : x.hi < y.lo))
        return YES;                     /* also where the difference overflows */
    if (gap == 0 ? y.hi < x.lo : a == b || y.hi <= x.lo)
        return NO;
    if (!difference(t, b, a, &p))
        return CANNOT_TELL;
    Range d = bounds_of_poly(t, &p);
    return d.lo >= gap ? YES : d.hi < gap ? NO : CANNOT_TELL;
}

Answer p2o_dim_lt(Dims *t, Dim a, Dim b) { return is_below(t, a, b, 1); }
Answer p2o_dim_le(Dims *t, Dim a, Dim b) { return is_below(t, a, b, 0); }

/* A sum of multiples of g and a constant that is none: 2*s - 2*t + 1. */
static bool misses_zero(int n, const Part *at)
{
    int64_t g = 0;
    if (n == 0 || at[n - 1].mono->natom)
        return false;
    for (int i = 0; i < n - 1; i++)
        g = p2o_gcd(g, at[i].coef);
    return g == 0 || (g > 1 && at[n - 1].coef % g != 0);
}

bool p2o_dim_never_zero(Dim d)
{
    Range r = bounds_of(d);
    return r.lo > 0 || r.hi < 0 || misses_zero(d->nterm, d->part);
}

/* Every x % y written as x - y*(x//y), which relates quotients and remainders of the same x; NULL
 * where there is none. */
static Dim without_mod(Dims *t, int n, const Part *at)
{
    Dim  sum = p2o_dim_int(t, 0);
    bool any = false;
    for (int i = 0; i < n; i++) {
        const Mono *m = at[i].mono;
        Dim         x = m->natom ? m->atom[m->natom - 1] : NULL;
        Part        part = at[i];
        if (x && x->kind == DIM_MOD && m->power[m->natom - 1] == 1) {
            any = true;
            part.mono = p2o_mono_div(t, m, x->part[0].mono);
            Dim q = p2o_dim_floordiv(t, x->operand[0], x->operand[1]);
            x = p2o_dim_sub(t, x->operand[0], p2o_dim_mul(t, x->operand[1], q));
        } else {
            x = p2o_dim_int(t, 1);
        }
        Poly one = { .n = 1, .at = { part } };
        sum = p2o_dim_add(t, sum, p2o_dim_mul(t, p2o_dim_intern(t, &one), x));
    }
    return any ? sum : NULL;
}

Dim p2o_dim_without_mod(Dims *t, Dim d)
{
    Dim other = d ? without_mod(t, d->nterm, d->part) : NULL;
    return other ? other : d;
}

static bool vanishes_without_mod(Dims *t, const Poly *p)
{
    Dim sum = without_mod(t, p->n, p->at);
    return sum && p2o_dim_is_int(sum, NULL) && sum->value == 0;
}

Answer p2o_dim_eq(Dims *t, Dim a, Dim b)
{
    Poly p;
    if (!a || !b)
        return CANNOT_TELL;
    if (a == b)
        return YES;
    Range x = bounds_of(a), y = bounds_of(b);
    if (x.hi < y.lo || y.hi < x.lo)
        return NO;
    if (!difference(t, a, b, &p))
        return CANNOT_TELL;
    Range d = bounds_of_poly(t, &p);
    if (misses_zero(p.n, p.at) || d.lo > 0 || d.hi < 0)
        return NO;
    return (d.lo == 0 && d.hi == 0) || vanishes_without_mod(t, &p) ? YES : CANNOT_TELL;
}
