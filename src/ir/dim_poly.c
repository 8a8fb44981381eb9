/* Sums and products of Dims: polynomials with integer coefficients over atoms.
 *
 * Monomials are ordered lexicographically, symbols before opaque atoms and each in order of
 * creation; the constant comes last.  The ring is kept pure: no rule here relates two atoms, so
 * (a + b) - b is a, whatever a and b are. */
#include "base/num.h"
#include "ir/dim_node.h"

int p2o_atom_order(Dim a, Dim b)
{
    bool opaque_a = a->kind != DIM_SYM, opaque_b = b->kind != DIM_SYM;
    if (opaque_a != opaque_b)
        return opaque_a ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

static int mono_order(const Mono *a, const Mono *b)
{
    if (a == b)
        return 0;
    for (int i = 0; i < a->natom && i < b->natom; i++) {
        if (a->atom[i] != b->atom[i])
            return p2o_atom_order(a->atom[i], b->atom[i]);
        if (a->power[i] != b->power[i])
            return a->power[i] > b->power[i] ? -1 : 1;
    }
    return a->natom > b->natom ? -1 : 1;
}

const Mono *p2o_mono_mul(Dims *t, const Mono *a, const Mono *b)
{
    Dim atom[DIM_MAX_DEGREE];
    int power[DIM_MAX_DEGREE], n = 0, i = 0, k = 0;
    if (a->natom == 0)
        return b;
    if (b->natom == 0)
        return a;
    if (a->degree + b->degree > DIM_MAX_DEGREE)
        return NULL;
    while (i < a->natom || k < b->natom) {
        int order = i == a->natom   ? 1
                    : k == b->natom ? -1
                                    : p2o_atom_order(a->atom[i], b->atom[k]);
        atom[n] = order <= 0 ? a->atom[i] : b->atom[k];
        power[n] = (order <= 0 ? a->power[i++] : 0) + (order >= 0 ? b->power[k++] : 0);
        n++;
    }
    return p2o_mono_intern(t, n, atom, power);
}

const Mono *p2o_mono_div(Dims *t, const Mono *a, const Mono *b)
{
    Dim atom[DIM_MAX_DEGREE];
    int power[DIM_MAX_DEGREE], n = 0, k = 0;
    if (b->natom == 0)
        return a;
    for (int i = 0; i < a->natom; i++) {
        int left = a->power[i];
        if (k < b->natom && b->atom[k] == a->atom[i])
            left -= b->power[k++];
        if (left < 0)
            return NULL;
        if (left > 0) {
            atom[n] = a->atom[i];
            power[n++] = left;
        }
    }
    return k == b->natom ? p2o_mono_intern(t, n, atom, power) : NULL;
}

static const Mono *mono_gcd(Dims *t, const Mono *a, const Mono *b)
{
    Dim atom[DIM_MAX_DEGREE];
    int power[DIM_MAX_DEGREE], n = 0;
    for (int i = 0, k = 0; i < a->natom && k < b->natom;) {
        int order = p2o_atom_order(a->atom[i], b->atom[k]);
        if (order == 0) {
            atom[n] = a->atom[i];
            power[n++] = a->power[i] < b->power[k] ? a->power[i] : b->power[k];
        }
        i += order <= 0;
        k += order >= 0;
    }
    return p2o_mono_intern(t, n, atom, power);
}

const Mono *p2o_mono_common(Dims *t, int n, const Part *at, const Mono *seed)
{
    const Mono *g = seed;
    for (int i = 0; i < n && (!g || g->natom); i++)
        g = g ? mono_gcd(t, g, at[i].mono) : at[i].mono;
    return g ? g : t->one;
}

bool p2o_poly_add(Dims *t, Poly *p, int n, const Part *at, int64_t k, const Mono *m)
{
    Part old[DIM_MAX_TERMS], add[DIM_MAX_TERMS];
    int  nold = p->n;
    if (k == 0)
        return true;
    t->work += (uint64_t)(nold + n);
    memcpy(old, p->at, (size_t)nold * sizeof *old);
    for (int i = 0; i < n; i++) {
        add[i].mono = p2o_mono_mul(t, at[i].mono, m);
        if (!add[i].mono || !mul_i64(at[i].coef, k, &add[i].coef))
            return false;
    }
    p->n = 0;
    for (int i = 0, j = 0; i < nold || j < n;) {
        int order = i == nold ? 1 : j == n ? -1 : mono_order(old[i].mono, add[j].mono);
        Part x = order <= 0 ? old[i] : add[j];
        if (order == 0 && !add_i64(x.coef, add[j].coef, &x.coef))
            return false;
        i += order <= 0;
        j += order >= 0;
        if (x.coef == 0)
            continue;
        if (p->n == DIM_MAX_TERMS)
            return false;
        p->at[p->n++] = x;
    }
    return true;
}

/* a + k*b */
static Dim add_multiple(Dims *t, Dim a, Dim b, int64_t k)
{
    Poly p;
    if (!a || !b)
        return NULL;
    p.n = 0;
    if (!poly_add_dim(t, &p, a, 1) || !poly_add_dim(t, &p, b, k))
        return NULL;
    return p2o_dim_intern(t, &p);
}

Dim p2o_dim_add(Dims *t, Dim a, Dim b) { return add_multiple(t, a, b, 1); }
Dim p2o_dim_sub(Dims *t, Dim a, Dim b) { return add_multiple(t, a, b, -1); }
Dim p2o_dim_neg(Dims *t, Dim a) { return add_multiple(t, p2o_dim_int(t, 0), a, -1); }

Dim p2o_dim_mul(Dims *t, Dim a, Dim b)
{
    Poly p;
    if (!a || !b)
        return NULL;
    if (a->nterm > b->nterm) {
        Dim swap = a;
        a = b;
        b = swap;
    }
    p.n = 0;
    for (int i = 0; i < a->nterm; i++)
        if (!p2o_poly_add(t, &p, b->nterm, b->part, a->part[i].coef, a->part[i].mono))
            return NULL;
    return p2o_dim_intern(t, &p);
}

Dim p2o_dim_pow(Dims *t, Dim a, int64_t e)
{
    if (!a || e < 0)
        return NULL;
    Dim r = p2o_dim_int(t, 1);
    for (;;) {
        if (e & 1)
            r = p2o_dim_mul(t, r, a);
        e >>= 1;
        if (e == 0 || !r)
            return r;
        a = p2o_dim_mul(t, a, a);
    }
}

/* x over the leading part of b; false when that does not divide. */
static bool divide_part(Dims *t, Part x, Dim b, Part *q)
{
    Part y = b->part[0];
    if ((x.coef == INT64_MIN && y.coef == -1) || x.coef % y.coef != 0)
        return false;
    *q = (Part){ x.coef / y.coef, p2o_mono_div(t, x.mono, y.mono) };
    return q->mono != NULL;
}

/* Takes q * b away from p. */
static bool take_away(Dims *t, Poly *p, Dim b, Part q)
{
    return q.coef != INT64_MIN && p2o_poly_add(t, p, b->nterm, b->part, -q.coef, q.mono);
}

static void drop_leading(Poly *p)
{
    p->n--;
    memmove(p->at, p->at + 1, (size_t)p->n * sizeof *p->at);
}

bool p2o_dim_divide(Dims *t, Dim a, Dim b, Dim *q, Dim *r)
{
    Poly left, quotient, rest;
    left.n = quotient.n = rest.n = 0;
    if (!b->nterm || !poly_add_dim(t, &left, a, 1))
        return false;
    for (int steps = 0; left.n > 0; steps++) {
        Part x;
        if (steps == 2 * DIM_MAX_TERMS)
            return false;
        if (divide_part(t, left.at[0], b, &x)) {
            if (quotient.n == DIM_MAX_TERMS || !take_away(t, &left, b, x))
                return false;
            quotient.at[quotient.n++] = x;
        } else {
            if (rest.n == DIM_MAX_TERMS)
                return false;
            rest.at[rest.n++] = left.at[0];
            drop_leading(&left);
        }
    }
    *q = p2o_dim_intern(t, &quotient);
    *r = p2o_dim_intern(t, &rest);
    return *q && *r;
}

Dim p2o_dim_exact_div(Dims *t, Dim a, Dim b)
{
    Poly left, quotient;
    if (!a || !b || !b->nterm)
        return NULL;
    left.n = quotient.n = 0;
    if (b->nterm == 1) {
        for (int i = 0; i < a->nterm; i++)
            if (!divide_part(t, a->part[i], b, &quotient.at[quotient.n++]))
                return NULL;
        return p2o_dim_intern(t, &quotient);
    }
    if (!poly_add_dim(t, &left, a, 1))
        return NULL;
    while (left.n > 0) {
        Part x;
        if (quotient.n == DIM_MAX_TERMS || !divide_part(t, left.at[0], b, &x) ||
            !take_away(t, &left, b, x))
            return NULL;
        quotient.at[quotient.n++] = x;
    }
    return p2o_dim_intern(t, &quotient);
}
