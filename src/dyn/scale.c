#include "dyn/scale.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"

/* Bits. */
enum {
    MOST_TOLD = 40,             /* that a number tells which is compared to one part in 2**40 */
    BITS_CUT = 5,               /* more than an operator: mostly a branch */
    BITS_EXP = 1,               /* more than another function */
    BITS_TWO = 4,               /* that two captures have to tell more: they have one change only */
    BITS_NO_FRACTION = 8,       /* more, of floats that are all whole: Python would have ints */
};

enum { FEWEST_CUT = 2 };                /* captures that min or max cut off */

static const double told = 1e-12;       /* 2**-MOST_TOLD: floats are computed in another order than
                                         * Python's */

/* What is looked for: a function of the values, in some captures. */
typedef struct Wanted {
    Products     *t;
    Arena        *arena;
    const Bases  *bases;
    const double *want;         /* in all captures */
    const Keys   *keys;
    int           k[MAX_CAPTURES], n;   /* the captures */
    int           ntold;        /* with checks, which come after them: what is found holds there,
                                 * too, and so they tell as much of how the values change */
    double        v[MAX_CAPTURES];      /* of those captures */
    double        size;         /* the largest of them */
    double        off;          /* how far one may be from what Python had, as a share of `size` */
    bool          log;          /* the logarithm of the values */
    bool          exp;          /* e to the values: sums of logarithms are products */
    ExprOp        cut;          /* EXPR_MIN, EXPR_MAX, or EXPR_SIZE: none */
    double        cut_at;
    double        more;         /* bits */
    ScaleFn      *fn;
    void         *user;
} Wanted;

/* How much a number tells: of p/q, and of its root, p and q; of others all that is compared. */
static double bits_of_fraction(double x)
{
    enum { MOST_STEPS = 24 };
    const double most = 1 << 30;        /* of p*q: beyond, fractions come near any number */
    double       p = 1, q = 0, before_p = 0, before_q = 1, rest = x;
    for (int i = 0; i < MOST_STEPS && isfinite(rest); i++) {
        double whole = floor(rest), next_p = whole * p + before_p, next_q = whole * q + before_q;
        if (next_p * next_q > most)
            break;
        before_p = p, before_q = q, p = next_p, q = next_q;
        if (fabs(p / q - x) <= told * x)
            return fmin(log2(p) + log2(q) + (p > 1 && q > 1), MOST_TOLD);
        rest = 1 / (rest - whole);
    }
    return MOST_TOLD;
}

static double bits_told(double x)
{
    x = fabs(x);
    if (!isfinite(x) || x == 0)
        return 0;
    return fmin(bits_of_fraction(x), bits_of_fraction(x * x));
}

/* The shortest decimal number within reach.  A whole number of at most 13 digits times or divided
 * by a power of ten is the double that Python reads, and no locale has a say: where that power is a
 * double itself. */
static double shortened(double v, double room)
{
    static const double tens[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
                                   1e22 };
    int exponent = v == 0 || !isfinite(v) ? 0 : (int)floor(log10(fabs(v)));
    for (int digits = 1; digits <= 13; digits++) {
        int k = digits - 1 - exponent;
        if (abs(k) >= (int)COUNT_OF(tens))
            continue;
        double ten = tens[abs(k)], x = k >= 0 ? round(v * ten) / ten : round(v / ten) * ten;
        if (fabs(x - v) <= room)
            return x;
    }
    return v;
}

static double bits_of_factor(double c) { return c == 1 ? 0 : BITS_OP + p2o_number_bits(c); }

static bool gives_want(const Wanted *g, const Expr *e)
{
    double v;
    for (int k = 0; k < g->bases->ncapture; k++)
        if (!p2o_expr_eval(g->bases, e, k, &v) || fabs(v - g->want[k]) > told * fabs(g->want[k]))
            return false;
    return true;
}

/* It is cut off in so many captures that another function would have shown there, too. */
static bool is_cut(const Wanted *g, const Expr *e)
{
    double v;
    int    n = 0;
    for (int k = 0; k < g->bases->ncapture; k++)
        n += p2o_expr_eval(g->bases, e, k, &v) &&
             (g->cut == EXPR_MIN ? v > g->cut_at : v < g->cut_at) &&
             fabs(v - g->cut_at) > told * fabs(g->cut_at);
    return n >= FEWEST_CUT;
}

/* An expression of what is looked for, said as one of the values themselves.  `own` bits are those
 * of its numbers, `changes` those that say how the values change.  A number that nobody writes may
 * hide what did not change between two captures. */
static void say_scale(const Wanted *g, const Expr *e, double bits, double own, double changes)
{
    if (g->n < 3 && own > DEAREST)
        return;
    bits += own + g->more;
    if (g->log) {
        e = p2o_expr_of(g->arena, EXPR_EXP, e, NULL);
        bits += BITS_OP + BITS_EXP;
    }
    if (g->exp) {
        e = p2o_expr_of(g->arena, EXPR_LOG, e, NULL);
        bits += BITS_OP + BITS_EXP;
    }
    if (g->cut != EXPR_SIZE) {
        double at = p2o_number_bits(g->cut_at);
        if (!is_cut(g, e))
            return;
        e = p2o_expr_of(g->arena, g->cut, e, p2o_expr_number(g->arena, g->cut_at));
        bits += BITS_OP + BITS_CUT + at;
        own += at;
    }
    if (gives_want(g, e))
        g->fn(g->user, e, bits, own + fmax(changes - (g->n < 3 ? BITS_TWO : 0), 0));
}

static const Expr *times_number(const Wanted *g, double c, const Expr *x)
{
    if (c == 1)
        return x;
    const Expr *number = p2o_expr_number(g->arena, c);
    if (x->op == EXPR_QUOTIENT && p2o_expr_is_number(x->a) && x->a->number == 1)
        return p2o_expr_of(g->arena, EXPR_QUOTIENT, number, x->b);
    return p2o_expr_of(g->arena, EXPR_MUL, number, x);
}

/* What the first value tells more than its factor, then how the values change, to the inverse of a
 * power; no more than the sizes do. */
static double told_by_ratios(const Wanted *g, const Product *p, double power, double own)
{
    double bits = fmax(bits_told(g->v[0]) - own, 0);
    for (int i = 1; i < g->ntold; i++)
        bits += bits_told(pow(fabs(g->v[i] / g->v[0]), 1 / power));
    return fmin(bits, p2o_product_held(g->t, p));
}

static void try_scaled(const Wanted *g, const Keyed *x, double power, double bits)
{
    const Product *p = p2o_product_at(g->t, x->product);
    double         sum = 0, first = g->v[0] / p2o_product_value(g->t, p, power, g->k[0]);
    for (int i = 0; i < g->n; i++) {
        double c = g->v[i] / p2o_product_value(g->t, p, power, g->k[i]);
        if (!(fabs(c - first) <= 4 * g->off * fabs(first)))
            return;
        sum += c;
    }
    double c = shortened(sum / g->n, g->off / 64 * fabs(first));
    double own = bits_of_factor(c);
    say_scale(g, times_number(g, c, p2o_product_expr(g->t, p, power)), p->bits + bits, own,
              told_by_ratios(g, p, power, own));
}

/* How far the values are apart, to the first of these differences if `share`. */
static double told_by_differences(const Wanted *g, const Product *p, bool share)
{
    double bits = 0, first = g->v[1] - g->v[0];
    for (int i = share ? 2 : 1; i < g->ntold; i++) {
        double d = g->v[i] - g->v[0], least = share ? fmin(fabs(d), fabs(first)) : fabs(d);
        double most = log2(least / (g->off * g->size));
        bits += most > 0 ? fmin(most, bits_told(share ? d / first : d)) : 0;
    }
    return fmin(bits, p2o_product_held(g->t, p));
}

/* v = a*g**power + c: by the captures that are farthest apart.  `unit`: a is 1 or -1. */
static void try_added(const Wanted *g, const Keyed *x, bool unit)
{
    const Product *p = p2o_product_at(g->t, x->product);
    double         at[MAX_CAPTURES] = { 0 }, room = g->off * g->size;
    int            lo = 0, hi = 0;
    for (int i = 0; i < g->n; i++) {
        at[i] = p2o_product_value(g->t, p, x->power, g->k[i]);
        lo = at[i] < at[lo] ? i : lo;
        hi = at[i] > at[hi] ? i : hi;
    }
    double span = at[hi] - at[lo], a = (g->v[hi] - g->v[lo]) / span;
    a = unit ? (a > 0 ? 1 : -1) : shortened(a, room / 16 / span);
    double c = shortened(g->v[lo] - a * at[lo], room / 16);
    for (int i = 0; i < g->n; i++)
        if (!(fabs(a * at[i] + c - g->v[i]) <= 4 * room))
            return;
    if (fabs(c) <= 4 * room || !isfinite(c) || a == 0)  /* nothing is added */
        return;
    const Expr *e = p2o_product_expr(g->t, p, x->power), *number = p2o_expr_number(g->arena, c);
    e = a == -1 ? p2o_expr_of(g->arena, EXPR_SUB, number, e)
                : p2o_expr_of(g->arena, EXPR_ADD, times_number(g, a, e), number);
    double own = bits_of_factor(c) + (a == -1 ? 0 : bits_of_factor(a));
    say_scale(g, e, p->bits + (x->power == 1 || x->power == -1 ? 0 : BITS_OP), own,
              told_by_differences(g, p, !unit));
}

static size_t first_from(const KeyedList *l, double key)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (l->at[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Captures that many products fit tell nothing. */
enum { MOST_FITTING = 2048 };

typedef struct Window {
    const Keyed *at;
    size_t       n;
} Window;

static Window fitting(const Wanted *g, KeyKind kind, double key, double room)
{
    const KeyedList *l = &g->keys->by[kind];
    if (!isfinite(key) || !isfinite(room))
        return (Window){ 0 };
    size_t from = first_from(l, key - room), n = 0;
    while (from + n < l->n && l->at[from + n].key <= key + room && n <= MOST_FITTING)
        n++;
    return (Window){ l->at + from, n <= MOST_FITTING ? n : 0 };
}

static const struct {
    double power, bits;
} scale_powers[] = {
    { 1, 0 }, { -1, 0 }, { 0.5, BITS_OP }, { -0.5, BITS_OP }, { 2, 2 }, { -2, 2 },
    { 3, 5 }, { -3, 5 }, { 1.5, 8 }, { -1.5, 8 }, { 0.25, 8 }, { -0.25, 8 }, { 0.75, 10 },
    { -0.75, 10 }, { 1.0 / 3, 9 }, { -1.0 / 3, 9 }, { 2.0 / 3, 11 }, { -2.0 / 3, 11 },
    { 0.2, 8 }, { -0.2, 8 }, { 0.1, 8 }, { -0.1, 8 }, { 0.4, 9 }, { -0.4, 9 }, { 0.3, 10 },
    { -0.3, 10 }, { 0.6, 10 }, { -0.6, 10 }, { 0.7, 11 }, { -0.7, 11 }, { 0.8, 11 },
    { -0.8, 11 },
};

static void find_scaled(const Wanted *g)
{
    size_t n = g->log || g->exp ? 2 : COUNT_OF(scale_powers);   /* times and divided by */
    for (size_t i = 0; i < n; i++) {
        double power = scale_powers[i].power, ratio = g->v[1] / g->v[0];
        double key = power == 1 ? ratio : pow(ratio, 1 / power);
        Window w = fitting(g, KEY_RATIO, key, 8 * g->off * fabs(key) * fmax(1, 1 / fabs(power)));
        for (size_t k = 0; k < w.n; k++)
            try_scaled(g, &w.at[k], power, scale_powers[i].bits);
    }
}

static void find_added(const Wanted *g)
{
    double d = g->v[1] - g->v[0], room = 8 * g->off * g->size;
    if (g->n < 3)                       /* anything may be added */
        return;
    for (int sign = 1; sign >= -1 && !g->log; sign -= 2) {
        Window w = fitting(g, KEY_DIFFERENCE, sign * d, room);
        for (size_t k = 0; k < w.n; k++)
            try_added(g, &w.at[k], true);
    }
    double share = (g->v[2] - g->v[0]) / d;
    Window w = fitting(g, KEY_SHARE, share, room / fabs(d) * fmax(1, fabs(share)));
    for (size_t k = 0; k < w.n; k++)
        try_added(g, &w.at[k], false);
}

static bool is_varied(const Wanted *g)
{
    for (int i = 1; i < g->n; i++)
        if (g->v[i] != g->v[0])
            return true;
    return false;
}

/* What is off by a share of the value is off by that in its logarithm; e to it, by what it is off
 * itself, as a share.  false: nothing is told. */
static bool set_values(Wanted *g)
{
    double least = INFINITY, most = 0;
    g->size = 0;
    for (int i = 0; i < g->ntold; i++) {
        double v = g->want[g->k[i]];
        g->v[i] = g->log ? (v > 0 ? log(v) : NAN) : g->exp ? exp(v) : v;
        if (i >= g->n)
            continue;
        g->size = fmax(g->size, fabs(g->v[i]));
        least = fmin(least, fabs(g->v[i]));
        most = fmax(most, fabs(v));
        if (!isfinite(g->v[i]) || g->v[i] == 0)
            return false;
    }
    g->off = g->log ? told / least : g->exp ? told * fmax(most, 1) : told;
    return is_varied(g) && g->off <= 1e-9;
}

/* The values as they are, their logarithms, and what they are logarithms of. */
static void find_all(Wanted *g)
{
    for (int turn = 0; turn < 3; turn++) {
        g->log = turn == 1;
        g->exp = turn == 2;
        if (!set_values(g) || (g->exp && g->n < 3))     /* a factor of these is added to those */
            continue;
        find_scaled(g);
        if (!g->exp)                    /* log(g + c) is a part already */
            find_added(g);
    }
}

static bool choose_captures(Wanted *g, unsigned mask)
{
    g->n = 0;
    for (int k = 0; k < g->bases->ncapture; k++)
        if (mask >> k & 1)
            g->k[g->n++] = k;
    g->ntold = g->n;
    for (int k = g->bases->nfit; k < g->bases->ncapture; k++)
        if (!(mask >> k & 1) && (g->cut == EXPR_SIZE || g->want[k] != g->cut_at))
            g->k[g->ntold++] = k;
    g->keys = p2o_products_keys(g->t, mask);
    return g->keys != NULL;
}

/* Captures that do not have the value `at`.  Where those to fit are fewer than it takes, as the
 * three of a plan are, the first checks make up for them: the others are held against what is
 * found. */
static unsigned captures_left(const Wanted *g, double at, int fewest)
{
    unsigned mask = 0;
    int      left = 0;
    for (int k = 0; k < g->bases->ncapture; k++) {
        bool taken = g->want[k] != at && (k < g->bases->nfit || left < fewest);
        mask |= (unsigned)taken << k;
        left += taken;
    }
    return left < fewest ? 0 : mask;
}

/* Where several captures have the same least or greatest value, and three others do not. */
static void find_cut(Wanted *g, ExprOp cut)
{
    enum { FEWEST_LEFT = 3 };
    double at = g->want[0];
    int    n = 0;
    for (int k = 1; k < g->bases->ncapture; k++)
        at = cut == EXPR_MIN ? fmax(at, g->want[k]) : fmin(at, g->want[k]);
    for (int k = 0; k < g->bases->ncapture; k++)
        n += g->want[k] == at;
    unsigned mask = n < FEWEST_CUT ? 0 : captures_left(g, at, FEWEST_LEFT);
    g->cut = cut;
    g->cut_at = at;
    if (mask && choose_captures(g, mask))
        find_all(g);
}

void p2o_scales(Products *t, Arena *a, const Bases *b, const double *want, ScaleFn *fn, void *user)
{
    Wanted g = { .t = t, .arena = a, .bases = b, .want = want, .cut = EXPR_SIZE, .fn = fn,
                 .user = user };
    bool   whole = true;
    for (int k = 0; k < b->ncapture; k++)
        whole &= want[k] == floor(want[k]);
    g.more = whole ? BITS_NO_FRACTION : 0;
    if (choose_captures(&g, (1u << b->nfit) - 1))
        find_all(&g);
    find_cut(&g, EXPR_MIN);
    find_cut(&g, EXPR_MAX);
}
