/* Floor division and remainder: brought to normal form, then interned as opaque atoms.
 *
 * A pending operation is whole + factor*(a // b), or the same with %.  Each step rewrites it into
 * an equal one or leaves it alone, and any change starts over; so what is interned is what no step
 * changes, and building it again from its operands gives it back.  A step that drops the divisor
 * first sees that it is never 0. */
#include "base/num.h"
#include "ir/dim_node.h"

enum { MAX_REWRITES = 200 };    /* far above what terminates; a stop, not a measure */

typedef struct Pending {
    DimKind kind;               /* DIM_FLOORDIV or DIM_MOD */
    Dim     whole, factor, a, b;
} Pending;

typedef enum Step { KEPT, CHANGED, DONE } Step;     /* DONE: whole is all */

static void add_to_whole(Dims *t, Pending *x, Dim d)
{
    x->whole = p2o_dim_add(t, x->whole, p2o_dim_mul(t, x->factor, d));
}

static Dim scaled(Dims *t, Dim d, int64_t k) { return p2o_dim_mul(t, p2o_dim_int(t, k), d); }

/* a//b = (-a)//(-b), a%b = -((-a)%(-b)): a divisor is not negative where that can be seen, else
 * its leading term is not. */
static Step orient_divisor(Dims *t, Pending *x)
{
    Range r = bounds_of(x->b);
    if (r.lo >= 0 || (r.hi > 0 && x->b->part[0].coef > 0))
        return KEPT;
    x->a = p2o_dim_neg(t, x->a);
    x->b = p2o_dim_neg(t, x->b);
    if (x->kind == DIM_MOD)
        x->factor = p2o_dim_neg(t, x->factor);
    return CHANGED;
}

/* What of coefficient k stays below a divisor c; *quotient gets what does not.  Constants stay in
 * [0, c), so that (h - 1)//2 + 1 and (h + 1)//2 are one. */
static int64_t keep_below(DimKind kind, int64_t k, int64_t c, bool is_constant, int64_t *quotient)
{
    if (is_constant) {
        *quotient = floor_div(k, c);
        return floor_mod(k, c);
    }
    *quotient = k / c;
    if (kind == DIM_FLOORDIV)
        return k % c;
    int64_t m = floor_mod(k, c);        /* the nearest to 0: -s % 8 rather than 7*s % 8 */
    return m > c - m ? m - c : m;
}

static Step split_multiples(Dims *t, Pending *x)
{
    int64_t c;
    Poly    quotient, rest;
    if (!p2o_dim_is_int(x->b, &c))
        return KEPT;
    quotient.n = rest.n = 0;
    for (int i = 0; i < x->a->nterm; i++) {
        Part    p = x->a->part[i];
        int64_t q, r = keep_below(x->kind, p.coef, c, p.mono->natom == 0, &q);
        if (q)
            quotient.at[quotient.n++] = (Part){ q, p.mono };
        if (r)
            rest.at[rest.n++] = (Part){ r, p.mono };
    }
    Dim a = p2o_dim_intern(t, &rest);
    if (a == x->a)
        return KEPT;
    if (x->kind == DIM_FLOORDIV)
        add_to_whole(t, x, p2o_dim_intern(t, &quotient));
    x->a = a;
    return CHANGED;
}

/* (g*y + k)//(g*c) = (y + k//g)//c, and % = g*((y + k//g) % c) + k%g */
static Step divide_by_gcd(Dims *t, Pending *x)
{
    int64_t c, k = 0, g;
    Poly    y;
    if (!p2o_dim_is_int(x->b, &c))
        return KEPT;
    y.n = 0;
    g = c;
    for (int i = 0; i < x->a->nterm; i++) {
        Part p = x->a->part[i];
        if (p.mono->natom == 0) {
            k = p.coef;
        } else {
            g = p2o_gcd(g, p.coef);
            y.at[y.n++] = p;
        }
    }
    if (g <= 1)
        return KEPT;
    for (int i = 0; i < y.n; i++)
        y.at[i].coef /= g;
    if (x->kind == DIM_MOD) {
        add_to_whole(t, x, p2o_dim_int(t, floor_mod(k, g)));
        x->factor = scaled(t, x->factor, g);
    }
    x->a = p2o_dim_add(t, p2o_dim_intern(t, &y), p2o_dim_int(t, floor_div(k, g)));
    x->b = p2o_dim_int(t, c / g);
    return CHANGED;
}

/* The atoms of m that are never 0. */
static const Mono *nonzero_part(Dims *t, const Mono *m)
{
    Dim atom[DIM_MAX_DEGREE];
    int power[DIM_MAX_DEGREE], n = 0;
    for (int i = 0; i < m->natom; i++) {
        if (!p2o_dim_never_zero(m->atom[i]))
            continue;
        atom[n] = m->atom[i];
        power[n++] = m->power[i];
    }
    return p2o_mono_intern(t, n, atom, power);
}

static Dim divide_parts(Dims *t, Dim d, int64_t g, const Mono *m)
{
    Poly p;
    p.n = 0;
    for (int i = 0; i < d->nterm; i++)
        p.at[p.n++] = (Part){ d->part[i].coef / g, p2o_mono_div(t, d->part[i].mono, m) };
    return p2o_dim_intern(t, &p);
}

/* (g*y)//(g*z) = y//z and (g*y)%(g*z) = g*(y%z), where g is never 0. */
static Step cancel_common(Dims *t, Pending *x)
{
    int64_t g = 0;
    if (x->b->kind == DIM_INT)
        return KEPT;
    const Mono *m = p2o_mono_common(t, x->a->nterm, x->a->part, NULL);
    m = p2o_mono_common(t, x->b->nterm, x->b->part, x->a->nterm ? m : NULL);
    m = nonzero_part(t, m);
    for (int i = 0; i < x->a->nterm; i++)
        g = p2o_gcd(g, x->a->part[i].coef);
    for (int i = 0; i < x->b->nterm; i++)
        g = p2o_gcd(g, x->b->part[i].coef);
    if (g < 1 || (g == 1 && m->natom == 0))
        return KEPT;
    x->a = divide_parts(t, x->a, g, m);
    x->b = divide_parts(t, x->b, g, m);
    if (x->kind == DIM_MOD) {
        Poly p = { .n = 1, .at = { { g, m } } };
        x->factor = p2o_dim_mul(t, x->factor, p2o_dim_intern(t, &p));
    }
    return CHANGED;
}

static Step decide_by_range(Dims *t, Pending *x)
{
    int64_t c, q = 0;
    Range   r = bounds_of(x->a);
    if (p2o_dim_is_int(x->b, &c)) {
        if (!p2o_range_quotient(r, c, &q))
            return KEPT;
    } else if (r.lo < 0 || p2o_dim_lt(t, x->a, x->b) != YES) {
        return KEPT;
    }
    if (x->kind == DIM_FLOORDIV)
        add_to_whole(t, x, p2o_dim_int(t, q));
    else
        add_to_whole(t, x, p2o_dim_sub(t, x->a, scaled(t, x->b, q)));
    return DONE;
}

/* a = q*b + r with a shorter r. */
static Step divide_out(Dims *t, Pending *x)
{
    Dim q, r;
    if (x->b->kind == DIM_INT || !p2o_dim_never_zero(x->b))
        return KEPT;
    if (x->a->nterm == 0)
        return DONE;
    if (!p2o_dim_divide(t, x->a, x->b, &q, &r) || r->nterm >= x->a->nterm) {
        q = p2o_dim_exact_div(t, p2o_dim_without_mod(t, x->a), x->b);
        if (!q)                             /* n + -n % 8 is 8 times (n + 7)//8 */
            return KEPT;
        r = p2o_dim_int(t, 0);
    }
    if (x->kind == DIM_FLOORDIV)
        add_to_whole(t, x, q);
    x->a = r;
    return CHANGED;
}

/* (-y)//b = -((y - 1)//b) - 1 for b > 0: rounding up is written like rounding down. */
static Step orient_dividend(Dims *t, Pending *x)
{
    if (x->kind != DIM_FLOORDIV || !x->a->nterm || x->a->part[0].coef > 0 || bounds_of(x->b).lo < 1)
        return KEPT;
    Dim one = p2o_dim_int(t, 1);
    x->whole = p2o_dim_sub(t, x->whole, x->factor);
    x->factor = p2o_dim_neg(t, x->factor);
    x->a = p2o_dim_sub(t, p2o_dim_neg(t, x->a), one);
    return CHANGED;
}

/* The atom of a part that is just a multiple of one; NULL otherwise. */
static Dim lone_atom(Part p) { return p.mono->degree == 1 ? p.mono->atom[0] : NULL; }

/* (p + y//d)//c = (d*p + y)//(c*d) for constants; (y//z)//b = y//(z*b) for b > 0. */
static Step unnest_floordiv(Dims *t, Pending *x)
{
    if (x->kind != DIM_FLOORDIV || bounds_of(x->b).lo < 0)
        return KEPT;
    for (int i = 0; i < x->a->nterm; i++) {
        Dim q = lone_atom(x->a->part[i]);
        if (!q || q->kind != DIM_FLOORDIV || x->a->part[i].coef != 1)
            continue;
        Dim  y = q->operand[0], d = q->operand[1];
        bool constant = d->kind == DIM_INT && x->b->kind == DIM_INT;
        if (!constant && x->a != q)
            continue;
        Dim a = p2o_dim_add(t, p2o_dim_mul(t, p2o_dim_sub(t, x->a, q), d), y);
        Dim b = p2o_dim_mul(t, x->b, d);
        if (!a || !b)
            continue;
        x->a = a;
        x->b = b;
        return CHANGED;
    }
    return KEPT;
}

/* k*(y % d) in the dividend is k*y - k*d*(y//d), whose second term is a multiple of the divisor
 * when d is the divisor, or both are numbers and it divides k*d. */
static bool is_periodic(Dim atom, int64_t k, Dim b, int64_t *periods)
{
    int64_t product;
    Dim     d = atom->operand[1];
    *periods = k;
    if (d == b)
        return true;
    if (d->kind != DIM_INT || b->kind != DIM_INT || !mul_i64(k, d->value, &product))
        return false;
    *periods = product / b->value;
    return product % b->value == 0;
}

static Step unnest_mod(Dims *t, Pending *x)
{
    for (int i = 0; i < x->a->nterm; i++) {
        int64_t k = x->a->part[i].coef, periods;
        Dim     m = lone_atom(x->a->part[i]);
        if (!m || m->kind != DIM_MOD || !is_periodic(m, k, x->b, &periods))
            continue;
        Dim y = m->operand[0], d = m->operand[1];
        Dim a = p2o_dim_add(t, x->a, scaled(t, p2o_dim_sub(t, y, m), k));
        if (!a)
            continue;
        if (x->kind == DIM_FLOORDIV) {
            if (a->nterm >= x->a->nterm)    /* worth it only where y cancels */
                continue;
            add_to_whole(t, x, p2o_dim_neg(t, scaled(t, p2o_dim_floordiv(t, y, d), periods)));
        }
        x->a = a;
        return CHANGED;
    }
    return KEPT;
}

typedef Step StepFn(Dims *t, Pending *x);

static StepFn *const steps[] = {
    orient_divisor,  decide_by_range, split_multiples,  divide_by_gcd, cancel_common,
    divide_out,      orient_dividend, unnest_floordiv, unnest_mod,
};

static Dim settle(Dims *t, DimKind kind, Dim a, Dim b)
{
    if (!a || !b || b->nterm == 0)
        return NULL;
    Pending x = { kind, p2o_dim_int(t, 0), p2o_dim_int(t, 1), a, b };
    int     rewrites = 0;
    for (size_t i = 0; i < COUNT_OF(steps);) {
        Step s = steps[i](t, &x);
        if (!x.whole || !x.factor || !x.a || !x.b || ++rewrites > MAX_REWRITES)
            return NULL;
        if (s == DONE)
            return x.whole;
        i = s == CHANGED ? 0 : i + 1;
    }
    Dim atom = p2o_dim_opaque(t, kind, x.a, x.b);
    return atom ? p2o_dim_add(t, x.whole, p2o_dim_mul(t, x.factor, atom)) : NULL;
}

Dim p2o_dim_floordiv(Dims *t, Dim a, Dim b) { return settle(t, DIM_FLOORDIV, a, b); }
Dim p2o_dim_mod(Dims *t, Dim a, Dim b) { return settle(t, DIM_MOD, a, b); }

Dim p2o_dim_ceildiv(Dims *t, Dim a, Dim b)
{
    return a ? p2o_dim_neg(t, p2o_dim_floordiv(t, p2o_dim_neg(t, a), b)) : NULL;
}
