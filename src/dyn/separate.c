#include "dyn/divide.h"

#include <math.h>

typedef struct Way {                    /* how two parts make the whole */
    ExprOp op, inverse;                 /* inverse: of what they make; EXPR_SIZE: nothing */
} Way;

typedef struct Halves {
    Way      way;
    unsigned axes[2];
    uint64_t ref[MAX_CAPTURES];         /* the element that both parts go through */
} Halves;

static double seen_through(const Way *w, double v)
{
    return w->inverse == EXPR_SQRT       ? v < 0 ? NAN : v * v
           : w->inverse == EXPR_QUOTIENT ? v == 0 ? NAN : 1 / v
                                         : v;
}

/* Sums go through the first element, products through the largest. */
static void choose_refs(const Tables *t, Halves *h)
{
    for (int k = 0; k < t->n; k++) {
        h->ref[k] = 0;
        for (uint64_t i = 0; i < t->at[k].n && h->way.op == EXPR_MUL; i++)
            if (fabs(t->at[k].v[i]) > fabs(t->at[k].v[h->ref[k]]))
                h->ref[k] = i;
    }
}

/* Where an element of the whole is in the part that keeps these axes. */
static uint64_t place_in(const Table *x, int rank, unsigned axes, uint64_t flat)
{
    uint64_t at = 0, stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        uint64_t size = (uint64_t)x->sizes[i];
        at += axes >> i & 1 ? flat % size * stride : 0;
        stride *= axes >> i & 1 ? size : 1;
        flat /= size;
    }
    return at;
}

/* As a part has it that goes through ref. */
static double half_value(const Tables *t, int k, const Halves *h, int half, uint64_t flat)
{
    const Table *x = &t->at[k];
    uint64_t     at = place_in(x, t->rank, h->axes[half], flat);
    return seen_through(&h->way,
                        x->v[p2o_part_element(x, t->rank, h->axes[half], at, h->ref[k])]);
}

/* At some elements of each capture; what passes is held against all of them in the end. */
static bool looks_made_of(const Tables *t, const Halves *h)
{
    enum { SOME = 97 };
    double share = t->whole ? 0 : 16 * tables_share(t);
    for (int k = 0; k < t->n; k++) {
        const Table *x = &t->at[k];
        uint64_t     step = x->n / SOME + 1;
        double       most = 0, c = seen_through(&h->way, x->v[h->ref[k]]);
        for (uint64_t i = x->n - 1; i < x->n; i -= step) {
            double v = seen_through(&h->way, x->v[i]);
            double f = half_value(t, k, h, 0, i), g = half_value(t, k, h, 1, i);
            double off = h->way.op == EXPR_MUL ? v * c - f * g : v + c - f - g;
            most = fmax(most, fmax(fabs(v), fmax(fabs(f), fabs(g))));
            double size = h->way.op == EXPR_MUL ? fabs(c) * most : most;
            if (!(fabs(off) <= share * size))
                return false;
        }
    }
    return true;
}

/* Which factor or offset of a half is its own, and which the other's, cannot be told; these are
 * tried: */
typedef enum Own {
    OWN_FIRST,                          /* of a sum: both, by the first half */
    OWN_FROM_0,                         /* none: the first element is 0 */
    OWN_LEAST,                          /* of a product: the least element is 1, if that makes the
                                         * others whole or halves, as ramps are */
    OWN_SUM,                            /* elements add up to 1: any factor is found (Element.share)
                                         */
    OWN_MOST,                           /* the largest element is 1 */
} Own;

static double offset_or_factor(const Table *x, Own own)
{
    double c = own == OWN_FROM_0 ? x->v[0] : 0;
    double most = 0;
    for (uint64_t i = 0; i < x->n && own >= OWN_LEAST; i++) {
        double v = fabs(x->v[i]);
        if (own == OWN_SUM)
            c += x->v[i];
        else if (own == OWN_MOST ? v > fabs(c) : v > 0 && (v < fabs(c) || c == 0))
            c = x->v[i];
        most = fmax(most, v);
    }
    return own >= OWN_LEAST && fabs(c) <= 1e-6 * most ? NAN : c;
}

static bool is_halves(const Table *x)
{
    for (uint64_t i = 0; i < x->n; i++)
        if (!(fabs(2 * x->v[i] - round(2 * x->v[i])) <= 1e-4))
            return false;
    return true;
}

static bool is_fixed_shape(const Tables *t)
{
    for (int k = 1; k < t->n; k++)
        for (int i = 0; i < t->rank; i++)
            if (t->at[k].sizes[i] != t->at[0].sizes[i])
                return false;
    return true;
}

/* What never changes its shape has the same elements everywhere, or is not looked at. */
static bool is_same_everywhere(const Tables *t)
{
    for (int k = 1; k < t->n; k++)
        for (uint64_t i = 0; i < t->at[k].n; i++)
            if (!(fabs(t->at[k].v[i] - t->at[0].v[i]) <= 16 * tables_share(t) * t->scale))
                return false;
    return true;
}

static bool normalise(Own own, Tables *part)
{
    double scale = part->scale;
    for (int k = 0; k < part->n; k++) {
        Table *x = &part->at[k];
        double c = offset_or_factor(x, own);
        if (isnan(c))
            return false;
        for (uint64_t i = 0; i < x->n; i++)
            x->v[i] = own >= OWN_LEAST ? x->v[i] / c : x->v[i] - c;
    }
    if (!p2o_tables_index(part) || (own == OWN_LEAST && !is_halves(&part->at[0])))
        return false;
    part->scale = own >= OWN_LEAST ? part->scale : fmax(scale, part->scale);
    return !is_fixed_shape(part) || is_same_everywhere(part);
}

/* An expression of one part over the bases of the whole. */
static Term find_half(Search *s, const Halves *h, int which)
{
    static const Own product[] = { OWN_LEAST, OWN_SUM, OWN_MOST };
    static const Own sum[2][2] = { { OWN_FIRST, OWN_FROM_0 }, { OWN_FROM_0, OWN_FIRST } };
    bool             is_product = h->way.op == EXPR_MUL;
    for (size_t i = 0; i < (is_product ? COUNT_OF(product) : COUNT_OF(sum[0])); i++) {
        Own         own = is_product ? product[i] : sum[which][i];
        Tables      part;
        Element     e;
        const Expr *by[MAX_BASES];
        if (!p2o_part_cut(s, h->axes[which], h->ref, &part))
            return (Term){ 0 };
        for (int k = 0; k < part.n; k++)
            for (uint64_t j = 0; j < part.at[k].n; j++)
                part.at[k].v[j] = seen_through(&h->way, part.at[k].v[j]);
        part.rounded = !is_product || h->way.inverse != EXPR_SIZE;
        if (!p2o_tables_index(&part))
            continue;
        if (h->way.inverse != EXPR_SIZE)
            part.scale *= 2;            /* a square is off by twice the share */
        if (!normalise(own, &part) ||
            !p2o_element_find(s->arena, &part, s->symbols, s->nsymbol, &e))
            continue;
        p2o_part_bases(s->arena, s->t, &part, by);
        return (Term){ p2o_expr_over(s->arena, e.expr, by), e.bits };
    }
    return (Term){ 0 };
}

static double value_at(const Tables *t, int k, uint64_t flat, const Expr *e)
{
    double at[MAX_BASES], bases[MAX_BASES][TABLE_BLOCK], out[TABLE_BLOCK];
    p2o_tables_bases(t, k, flat, at);
    for (int i = 0; i < tables_nbase(t); i++)
        bases[i][0] = at[i];
    p2o_expr_block(e, bases, 1, out);
    return out[0];
}

/* What the parts lack: a number, or an expression of sizes. */
static Term find_left(Search *s, const Halves *h, const Expr *made)
{
    const Tables *t = s->t;
    double        left[MAX_CAPTURES], room = 0, size = 0, none = h->way.op == EXPR_MUL;
    bool          minus = false, idle = true;
    for (int k = 0; k < t->n; k++) {
        double v = seen_through(&h->way, t->at[k].v[h->ref[k]]);
        double x = value_at(t, k, h->ref[k], made);
        left[k] = none != 0 ? v / x : v - x;
        double here = 2 * tables_share(t) * (none != 0 ? fabs(left[k]) : fabs(v) + fabs(x));
        if (!isfinite(left[k]))
            return (Term){ 0 };
        size = fmax(size, fabs(left[k]));
        room = fmax(room, here);
        idle &= fabs(left[k] - none) <= here + 1e-12;
    }
    if (idle)
        return (Term){ made, 0 };
    minus = left[0] < 0;
    for (int k = 0; k < t->n && minus; k++)
        left[k] = -left[k];
    Term c = p2o_fit_sizes(&s->points, left, room + 1e-13 * size);
    if (!c.expr)
        return (Term){ 0 };
    const Expr *x = none != 0 ? p2o_expr_of(s->arena, EXPR_MUL, made, c.expr)
                              : p2o_expr_of(s->arena, minus ? EXPR_SUB : EXPR_ADD, made, c.expr);
    if (none != 0 && minus)
        x = p2o_expr_of(s->arena, EXPR_SUB, p2o_expr_number(s->arena, 0), x);
    return (Term){ x, c.bits + BITS_STEP + minus };
}

static bool try_way(Search *s, Halves *h)
{
    choose_refs(s->t, h);
    if (!looks_made_of(s->t, h))
        return false;
    Term f = find_half(s, h, 0);
    Term g = f.expr ? find_half(s, h, 1) : (Term){ 0 };
    if (!f.expr || !g.expr)
        return false;
    Term   made = { p2o_expr_of(s->arena, h->way.op, f.expr, g.expr), f.bits + g.bits + BITS_STEP };
    Term   all = find_left(s, h, made.expr);
    double bits = made.bits + all.bits;
    if (!all.expr)
        return false;
    if (h->way.inverse == EXPR_SQRT) {  /* by rounding, what is 0 may be a little less */
        all.expr = p2o_expr_of(s->arena, EXPR_MAX, all.expr, p2o_expr_number(s->arena, 0));
        all.expr = p2o_expr_of(s->arena, EXPR_SQRT, all.expr, NULL);
    }
    if (h->way.inverse == EXPR_QUOTIENT)
        all.expr = p2o_expr_of(s->arena, EXPR_QUOTIENT, p2o_expr_number(s->arena, 1), all.expr);
    bits += h->way.inverse == EXPR_SIZE ? 0 : BITS_STEP;
    p2o_search_see(s, (Term){ all.expr, bits }, false);
    return s->nfound > 0;
}

/* The less of two, or the larger: what a part is where the other does not matter. */
static bool cut_extreme(Search *s, unsigned axes, bool less, Tables *out)
{
    const Tables *t = s->t;
    uint64_t      ref[MAX_CAPTURES] = { 0 };
    if (!p2o_part_cut(s, axes, ref, out))
        return false;
    for (int k = 0; k < t->n; k++) {
        Table *x = &out->at[k];
        for (uint64_t i = 0; i < t->at[k].n; i++) {
            uint64_t at = place_in(&t->at[k], t->rank, axes, i);
            x->v[at] = less ? fmax(x->v[at], t->at[k].v[i]) : fmin(x->v[at], t->at[k].v[i]);
        }
    }
    return p2o_tables_index(out);
}

/* Both parts have a say, and nothing else. */
static bool is_extreme(const Tables *t, const Tables *part, const unsigned *axes, bool less)
{
    bool says[2] = { false };
    for (int k = 0; k < t->n; k++) {
        for (uint64_t i = 0; i < t->at[k].n; i++) {
            double v[2];
            for (int half = 0; half < 2; half++)
                v[half] = part[half].at[k].v[place_in(&t->at[k], t->rank, axes[half], i)];
            if (t->at[k].v[i] != (less ? fmin(v[0], v[1]) : fmax(v[0], v[1])))
                return false;
            says[0] |= v[0] != v[1] && t->at[k].v[i] == v[0];
            says[1] |= v[0] != v[1] && t->at[k].v[i] == v[1];
        }
    }
    return says[0] && says[1];
}

/* Of two elements and the two that have one's place on either side: the less of either pair is the
 * less of all four.  At some elements of each capture, before all of them are looked at. */
static bool looks_extreme(const Tables *t, const unsigned *axes, bool less)
{
    enum { SOME = 97 };
    for (int k = 0; k < t->n; k++) {
        const Table *x = &t->at[k];
        uint64_t     step = x->n / SOME + 1, other = x->n - 1;
        for (uint64_t i = 0; i < x->n; i += step, other = (other * 31 + i + 7) % x->n) {
            double v = x->v[i], w = x->v[other], corner[2];
            for (int half = 0; half < 2; half++)
                corner[half] = x->v[p2o_part_element(x, t->rank, axes[half],
                                                     place_in(x, t->rank, axes[half], i), other)];
            if (less ? fmin(v, w) != fmin(corner[0], corner[1])
                     : fmax(v, w) != fmax(corner[0], corner[1]))
                return false;
        }
    }
    return true;
}

static bool try_extreme(Search *s, const unsigned *axes, bool less)
{
    Tables part[2];
    Term   found[2];
    if (!looks_extreme(s->t, axes, less) || !cut_extreme(s, axes[0], less, &part[0]) ||
        !cut_extreme(s, axes[1], less, &part[1]) ||
        !is_extreme(s->t, part, axes, less))
        return false;
    for (int i = 0; i < 2; i++) {
        const Expr *by[MAX_BASES];
        Element     e;
        p2o_tables_symbols(&part[i], s->symbols, s->nsymbol);
        if (!p2o_element_find(s->arena, &part[i], s->symbols, s->nsymbol, &e) || e.share)
            return false;
        p2o_part_bases(s->arena, s->t, &part[i], by);
        found[i] = (Term){ p2o_expr_over(s->arena, e.expr, by), e.bits };
        if (!found[i].expr)
            return false;
    }
    p2o_search_see(s, (Term){ p2o_expr_of(s->arena, less ? EXPR_MIN : EXPR_MAX, found[0].expr,
                                          found[1].expr),
                              found[0].bits + found[1].bits + BITS_STEP + 1 }, false);
    return s->nfound > 0;
}

/* Ints are sums alone: products of theirs are forms. */
static const Way ways[] = { { EXPR_ADD, EXPR_SIZE }, { EXPR_MUL, EXPR_SIZE },
                            { EXPR_ADD, EXPR_SQRT }, { EXPR_ADD, EXPR_QUOTIENT } };

static size_t nway(const Tables *t) { return t->whole ? 1 : COUNT_OF(ways); }

/* Each division of the axes into two once: the last axis is on the first side.  False: no more. */
static bool divide_axes(const Tables *t, unsigned turn, unsigned *axes)
{
    unsigned pick = 2 * turn + 1;
    if (pick >= (1u << t->nindex) - 1)
        return false;
    axes[0] = axes[1] = 0;
    for (int i = 0; i < t->nindex; i++)
        axes[!(pick >> i & 1)] |= 1u << t->index[i];
    return true;
}

bool p2o_looks_separate(const Tables *t)
{
    Halves h;
    for (unsigned turn = 0; divide_axes(t, turn, h.axes); turn++) {
        for (size_t i = 0; i < nway(t); i++) {
            h.way = ways[i];
            choose_refs(t, &h);
            if (looks_made_of(t, &h))
                return true;
        }
    }
    return false;
}

void p2o_divide_separate(Search *s)
{
    Halves h;
    for (unsigned turn = 0; divide_axes(s->t, turn, h.axes); turn++) {
        for (size_t i = 0; i < nway(s->t) && !s->two; i++) {
            h.way = ways[i];
            if (try_way(s, &h))
                return;
        }
        if (try_extreme(s, h.axes, true) || try_extreme(s, h.axes, false))
            return;
    }
}
