/* Minimum and maximum: a list of operands brought to normal form, then a chain of opaque atoms.
 *
 * The list stands for offset + scale * max(list).  Nested maxima are spread into it, operands that
 * never win leave it, what all operands share moves out into offset and scale; this repeats until
 * nothing changes, so that the list of an atom gives that atom again. */
#include <stdlib.h>

#include "base/num.h"
#include "ir/dim_node.h"

enum { MAX_PASSES = 16 };

typedef struct List {
    DimKind kind;               /* DIM_MIN or DIM_MAX */
    int     n;
    Dim     at[DIM_MAX_LIST];
    Dim     offset;
    int64_t scale;              /* not 0 */
} List;

static bool push_operand(List *x, Dim d)
{
    if (!d || x->n == DIM_MAX_LIST)
        return false;
    x->at[x->n++] = d;
    return true;
}

/* The one part of d that is a multiple of a minimum or maximum which can spread into a list of
 * `kind`: k*max in a max for k > 0, k*min for k < 0.  -1 when there is none, or more than one. */
static int spreading_part(DimKind kind, Dim d)
{
    int found = -1;
    for (int i = 0; i < d->nterm; i++) {
        Part p = d->part[i];
        if (p.mono->degree != 1)
            continue;
        DimKind inner = p.mono->atom[0]->kind;
        DimKind wanted = (kind == DIM_MAX) == (p.coef > 0) ? DIM_MAX : DIM_MIN;
        if (inner != wanted)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* r + k*max(max(a, b), c) gives r + k*a, r + k*b, r + k*c. */
static bool spread_operand(Dims *t, List *x, Dim d, bool *changed)
{
    int i = spreading_part(x->kind, d);
    if (i < 0)
        return push_operand(x, d);
    *changed = true;
    Dim k = p2o_dim_int(t, d->part[i].coef), at = d->part[i].mono->atom[0];
    Dim rest = p2o_dim_sub(t, d, p2o_dim_mul(t, k, at));
    for (DimKind inner = at->kind;; at = at->operand[0]) {
        bool more = at->kind == inner;
        Dim  one = more ? at->operand[1] : at;
        if (!push_operand(x, p2o_dim_add(t, rest, p2o_dim_mul(t, k, one))))
            return false;
        if (!more)
            return true;
    }
}

static bool spread_all(Dims *t, List *x, bool *changed)
{
    List out = *x;
    out.n = 0;
    for (int i = 0; i < x->n; i++)
        if (!spread_operand(t, &out, x->at[i], changed))
            return false;
    *x = out;
    return true;
}

/* Symbols first, a constant last, else as created. */
static int operand_order(const void *pa, const void *pb)
{
    Dim a = *(const Dim *)pa, b = *(const Dim *)pb;
    if ((a->kind == DIM_INT) != (b->kind == DIM_INT))
        return a->kind == DIM_INT ? 1 : -1;
    return p2o_atom_order(a, b);
}

static bool never_wins(Dims *t, DimKind kind, Dim loser, Dim winner)
{
    Answer a = kind == DIM_MAX ? p2o_dim_le(t, loser, winner) : p2o_dim_le(t, winner, loser);
    return a == YES;
}

static void drop_losers(Dims *t, List *x, bool *changed)
{
    int n = 0;
    qsort(x->at, (size_t)x->n, sizeof *x->at, operand_order);
    for (int i = 0; i < x->n; i++) {
        bool lost = false;
        for (int k = 0; k < n && !lost; k++)
            lost = never_wins(t, x->kind, x->at[i], x->at[k]);
        for (int k = i + 1; k < x->n && !lost; k++)
            lost = never_wins(t, x->kind, x->at[i], x->at[k]) &&
                   !never_wins(t, x->kind, x->at[k], x->at[i]);
        if (!lost)
            x->at[n++] = x->at[i];
    }
    *changed |= n != x->n;
    x->n = n;
}

static int64_t constant_of(Dim d)
{
    return d->nterm && !d->part[d->nterm - 1].mono->natom ? d->part[d->nterm - 1].coef : 0;
}

static bool has_part(Dim d, Part p)
{
    for (int i = 0; i < d->nterm; i++)
        if (d->part[i].mono == p.mono)
            return d->part[i].coef == p.coef;
    return false;
}

/* The terms that all operands have, and their smallest constant. */
static Dim shared_terms(Dims *t, const List *x)
{
    Poly    p;
    int64_t least = INT64_MAX;
    p.n = 0;
    for (int i = 0; i < x->at[0]->nterm; i++) {
        Part q = x->at[0]->part[i];
        bool all = q.mono->natom > 0;
        for (int k = 1; k < x->n && all; k++)
            all = has_part(x->at[k], q);
        if (all)
            p.at[p.n++] = q;
    }
    for (int k = 0; k < x->n; k++)
        if (constant_of(x->at[k]) < least)
            least = constant_of(x->at[k]);
    if (least)
        p.at[p.n++] = (Part){ least, t->one };
    return p2o_dim_intern(t, &p);
}

/* max(a + c, b + c) = max(a, b) + c.  Left alone where the difference overflows. */
static void move_shared_out(Dims *t, List *x, bool *changed)
{
    List out = *x;
    Dim  shared = shared_terms(t, x);
    if (!shared || shared->nterm == 0)
        return;
    for (int i = 0; i < x->n; i++)
        out.at[i] = p2o_dim_sub(t, x->at[i], shared);
    out.offset = p2o_dim_add(t, x->offset, p2o_dim_mul(t, p2o_dim_int(t, x->scale), shared));
    for (int i = 0; i < x->n; i++)
        if (!out.at[i])
            return;
    if (!out.offset)
        return;
    *x = out;
    *changed = true;
}

/* max(g*a, g*b) = g*max(a, b) */
static void move_factor_out(Dims *t, List *x, bool *changed)
{
    int64_t g = 0;
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < x->at[i]->nterm; k++)
            g = p2o_gcd(g, x->at[i]->part[k].coef);
    if (g <= 1 || !mul_i64(x->scale, g, &x->scale))
        return;
    for (int i = 0; i < x->n; i++)
        x->at[i] = p2o_dim_exact_div(t, x->at[i], p2o_dim_int(t, g));
    *changed = true;
}

static bool has_plus(Dim d)
{
    for (int i = 0; i < d->nterm; i++)
        if (d->part[i].coef > 0 && d->part[i].mono->natom > 0)
            return true;
    return false;
}

/* max(-a, 3 - b) = -min(a, b - 3), where all terms but constants have a minus. */
static bool flip_signs(Dims *t, List *x, bool *changed)
{
    for (int i = 0; i < x->n; i++)
        if (has_plus(x->at[i]))
            return true;
    for (int i = 0; i < x->n; i++)
        if (!(x->at[i] = p2o_dim_neg(t, x->at[i])))
            return false;
    x->kind = x->kind == DIM_MAX ? DIM_MIN : DIM_MAX;
    *changed = true;
    return mul_i64(x->scale, -1, &x->scale);
}

static bool settle_list(Dims *t, List *x)
{
    for (int pass = 0; pass < MAX_PASSES; pass++) {
        bool changed = false;
        drop_losers(t, x, &changed);
        if (x->n == 1)
            return true;
        if (!spread_all(t, x, &changed) || !flip_signs(t, x, &changed))
            return false;
        move_shared_out(t, x, &changed);
        move_factor_out(t, x, &changed);
        if (!changed)
            return true;
    }
    return false;
}

static Dim extreme_of(Dims *t, DimKind kind, int n, const Dim *list)
{
    List x = { .kind = kind, .offset = p2o_dim_int(t, 0), .scale = 1 };
    for (int i = 0; i < n; i++) {
        if (!push_operand(&x, list[i]))
            return NULL;
        /* long lists of numbers, or of the same, are short ones */
        bool changed = false;
        if (x.n == DIM_MAX_LIST)
            drop_losers(t, &x, &changed);
    }
    if (!settle_list(t, &x))
        return NULL;
    Dim atom = x.at[0];
    for (int i = 1; i < x.n && atom; i++)
        atom = p2o_dim_opaque(t, x.kind, atom, x.at[i]);
    if (!atom)
        return NULL;
    return p2o_dim_add(t, x.offset, p2o_dim_mul(t, p2o_dim_int(t, x.scale), atom));
}

Dim p2o_dim_min_of(Dims *t, int n, const Dim *list) { return extreme_of(t, DIM_MIN, n, list); }
Dim p2o_dim_max_of(Dims *t, int n, const Dim *list) { return extreme_of(t, DIM_MAX, n, list); }
Dim p2o_dim_min(Dims *t, Dim a, Dim b) { return p2o_dim_min_of(t, 2, (Dim[]){ a, b }); }
Dim p2o_dim_max(Dims *t, Dim a, Dim b) { return p2o_dim_max_of(t, 2, (Dim[]){ a, b }); }
