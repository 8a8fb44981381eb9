#include "dyn/plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "dyn/grammar.h"

/* Large, middling and small sizes to choose from; neighbours differ in their remainders of 2, 3, 4,
 * 5, 7 and 8.  What is large in one capture is small in another, for each pair of symbols. */
static const int64_t pool[PLAN_CAPTURES][8] = { { 97, 110, 89, 127, 101, 83, 122, 106 },
                                                { 40, 51, 34, 61, 46, 37, 58, 67 },
                                                { 9, 8, 11, 14, 13, 12, 10, 15 } };
enum {                                  /* among the checks */
    APART = PLAN_CHECKS - 2,            /* so many in which every symbol has a row of its own */
    EQUAL = APART,                      /* all symbols are equal: some models treat squares apart */
    SMALLEST,                           /* 2, or the least that a range allows */
};

/* One row for each check but the last.  Those of the second are powers of two and squares. */
static const int64_t checks[PLAN_CHECKS - 1][8] = {
    { 3, 2, 3, 2, 2, 3, 2, 3 },
    { 16, 64, 16, 64, 16, 64, 16, 64 },
    { 20, 30, 100, 50, 25, 60, 90, 80 },
    { 5, 6, 7, 4, 6, 5, 7, 4 },
    { 199, 170, 227, 253, 181, 218, 239, 206 },
    { 18, 23, 31, 17, 22, 35, 26, 29 },
    { 29, 47, 75, 55, 71, 78, 93, 31 },
};

/* Inside a range that lacks the size: as far from its ends as the remainder says. */
static int64_t inside(Dims *t, Dim sym, int64_t v)
{
    int64_t lo, hi;
    p2o_dim_range(t, sym, &lo, &hi);
    lo = lo < 1 ? 1 : lo;
    if (v >= lo && v <= hi)
        return v;
    if (hi == NO_UPPER)
        return lo > NO_UPPER - v ? lo : lo + v;         /* a bound that no size reaches */
    int64_t span = hi - lo + 1;
    return span < 1 ? lo : v > hi ? hi - v % (span < 12 ? span : span / 3) : lo + v % span;
}

/* One of the eight sizes of a row: any, but the same every time. */
static int64_t pick(const int64_t *row, int turn, int symbol, int k)
{
    uint32_t x = (uint32_t)turn * 2654435761u + (uint32_t)symbol * 40503u + (uint32_t)k * 69069u;
    return row[(x ^ x >> 15) >> 7 & 7];
}

/* The sizes of one symbol. */
static void choose(Dims *t, const Dim *symbols, int i, int turn, Plan *p)
{
    for (int k = 0; k < PLAN_CAPTURES; k++)
        p->captures[k][i] = inside(t, symbols[i],
                                   pick(pool[(k + i) % PLAN_CAPTURES], turn, i, k));
    for (int k = 0; k < APART; k++)
        p->checks[k][i] = inside(t, symbols[i], pick(checks[(k + i) % APART], turn, i, 8 + k));
}

static int64_t least_of(Dims *t, Dim sym)
{
    int64_t lo, hi;
    p2o_dim_range(t, sym, &lo, &hi);
    return lo < 1 ? 1 : lo;
}

static void choose_shared(Dims *t, const Dim *symbols, int n, int turn, Plan *p)
{
    for (int i = 0; i < n; i++) {
        int64_t least = least_of(t, symbols[i]);
        p->checks[EQUAL][i] = inside(t, symbols[i], checks[EQUAL][turn % 8]);
        p->checks[SMALLEST][i] = least == 1 ? inside(t, symbols[i], 2) : least;
    }
}

/* All sizes that may be 1 are; then some, by a bit of their number, and the others, for each bit:
 * of any two one is 1 where the other is not.  The rest are as the captures had them, each symbol
 * from another capture: what is seen there beside what these sizes showed is due to the 1, or to
 * sizes that met for the first time. */
static void choose_ones(Dims *t, const Dim *symbols, int n, Plan *p)
{
    p->nones = 0;
    for (int k = 0; k < PLAN_ONES; k++) {
        int64_t *sizes = p->ones[p->nones];
        int      count = 0, may = 0;
        for (int i = 0; i < n; i++) {
            bool is_free = least_of(t, symbols[i]) == 1;
            bool one = is_free && (!k || (may >> (k - 1) / 2 & 1) == (k - 1) % 2);
            may += is_free;
            count += one;
            sizes[i] = one ? 1 : p->captures[(k + i) % PLAN_CAPTURES][i];
        }
        p->nones += count && (!k || count < may);
    }
}

typedef struct PlannedExpr {            /* an expression's values in the captures, and elsewhere */
    double captured[PLAN_CAPTURES], probe, bits;
} PlannedExpr;

typedef struct Counting {
    Arena           *arena;
    const Bases     *bases;
    VEC(PlannedExpr) list;
} Counting;

enum { CHEAP = 14 };                    /* bits of an expression that people write */

static void note_expr(void *user, const Expr *e, double bits, const double *values)
{
    Counting   *c = user;
    PlannedExpr s = { .bits = bits };
    double      v;
    if (bits > CHEAP)
        return;
    for (int i = PLAN_CAPTURES; i < c->bases->npoint; i++)
        s.probe += p2o_expr_eval(c->bases, e, i, &v) ? v * sqrt(i) : 0;     /* roots: no two sums
                                                                             * agree by chance */
    for (int k = 0; k < PLAN_CAPTURES; k++)
        s.captured[k] = values[k];
    VEC_PUSH(c->arena, &c->list, s);
}

static int by_values(const void *x, const void *y)
{
    const PlannedExpr *a = x, *b = y;
    for (int k = 0; k < PLAN_CAPTURES; k++)
        if (a->captured[k] != b->captured[k])
            return a->captured[k] < b->captured[k] ? -1 : 1;
    if (a->probe != b->probe)
        return a->probe < b->probe ? -1 : 1;
    return (a->bits > b->bits) - (a->bits < b->bits);   /* whatever order a library's qsort has */
}

/* The cheaper, the likelier. */
static size_t weight_of(double bits) { return (size_t)1 << (int)(CHEAP - fmin(bits, CHEAP)); }

static bool is_number_to(const PlannedExpr *s)
{
    return s->captured[0] == s->captured[1] && s->captured[1] == s->captured[2];
}

/* Pairs of neighbours that the captures do not tell apart and another size does; and what looks
 * like a number. */
static size_t confusions(Dims *t, const Dim *symbols, int n, const Plan *p)
{
    Arena    *a = p2o_dims_arena(t);
    ArenaMark mark = p2o_arena_mark(a);
    Counting  c = { .arena = a };
    Bindings *bind = p2o_bindings_new(t, PLAN_CAPTURES);
    Bases    *b = NEW(a, Bases);
    size_t    count = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < PLAN_CAPTURES; k++)
            p2o_set_hint_at(bind, symbols[i], k, p->captures[k][i]);
    c.bases = b;
    p2o_bases_start(b, bind, symbols, (size_t)n);
    for (int i = 0; i < n; i++)
        p2o_bases_add(b, bind, symbols[i]);
    p2o_enumerate_own(b, n, note_expr, &c);
    qsort(c.list.at, c.list.n, sizeof *c.list.at, by_values);
    for (size_t i = 0; i < c.list.n; i++)
        count += is_number_to(&c.list.at[i]) ? weight_of(c.list.at[i].bits) : 0;
    for (size_t i = 1; i < c.list.n; i++) {
        const PlannedExpr *x = &c.list.at[i - 1], *y = &c.list.at[i];
        bool               alike = true;
        for (int k = 0; k < PLAN_CAPTURES; k++)
            alike &= x->captured[k] == y->captured[k];
        count += alike && x->probe != y->probe ? weight_of(fmax(x->bits, y->bits)) : 0;
    }
    p2o_arena_rewind(a, mark);
    return count;
}

/* Size number k of a symbol, captures first. */
static int64_t planned_size(const Plan *p, int k, int symbol)
{
    return k < PLAN_CAPTURES ? p->captures[k][symbol] : p->checks[k - PLAN_CAPTURES][symbol];
}

enum { PLANNED = PLAN_CAPTURES + PLAN_CHECKS };

/* Some size of the symbol, twice the divisor and more so that clamps do not hide it, has a
 * remainder from lo to hi. */
static bool has_remainder(const Plan *p, int n, int symbol, int64_t by, int64_t lo, int64_t hi)
{
    for (int k = 0; k < n; k++) {
        int64_t size = planned_size(p, k, symbol), rest = size % by;
        if (size >= 2 * by && rest >= lo && rest <= hi)
            return true;
    }
    return false;
}

/* What rounds down, up or to the nearest is told by no remainder, by a small one and by a large
 * one. */
static int hidden_rounding(const Plan *p, int symbol, int64_t by)
{
    return !has_remainder(p, PLANNED, symbol, by, 0, 0) +
           !has_remainder(p, PLANNED, symbol, by, 1, (by - 1) / 2) +
           !has_remainder(p, PLANNED, symbol, by, by / 2 + 1, by - 1);
}

/* All captures that expressions are fitted to leave the same remainder. */
static bool is_one_remainder(const Plan *p, int symbol, int64_t by)
{
    for (int k = 1; k < PLAN_CAPTURES; k++)
        if (p->captures[k][symbol] % by != p->captures[0][symbol] % by)
            return false;
    return true;
}

/* The difference of two symbols is odd and even. */
static bool differs_both_ways(const Plan *p, int i, int j)
{
    int odd = 0;
    for (int k = 0; k < PLANNED; k++)
        odd += (planned_size(p, k, i) - planned_size(p, k, j)) % 2 != 0;
    return odd > 0 && odd < PLANNED - 2;        /* the last checks have them equal */
}

/* The same size twice says nothing new. */
static size_t repeated_sizes(const Plan *p, int symbol)
{
    size_t n = 0;
    for (int k = 1; k < PLANNED; k++)
        for (int m = 0; m < k; m++)
            n += planned_size(p, k, symbol) == planned_size(p, m, symbol);
    return n;
}

/* A remainder that a symbol has nowhere hides what depends on it.  Of small divisors each remainder
 * counts, of larger ones how they round. */
static size_t hidden_remainders(const Plan *p, int n)
{
    enum { WEIGHT_FITTED = 4, WEIGHT_SMALL = 4, SMALL = 4 };
    static const int64_t by[] = { 5, 6, 7, 8, 10, 12, 14, 16, 32 };
    size_t               count = 0;
    for (int i = 0; i < n; i++) {
        count += repeated_sizes(p, i);
        for (int64_t d = 2; d <= SMALL; d++)
            for (int64_t r = 0; r < d; r++)
                count += has_remainder(p, PLANNED, i, d, r, r) ? 0 : WEIGHT_SMALL;
        for (int64_t d = 2; d <= 8; d++)
            count += is_one_remainder(p, i, d) ? WEIGHT_FITTED : 0;
        for (size_t k = 0; k < sizeof by / sizeof *by; k++)
            count += (size_t)hidden_rounding(p, i, by[k]);
        for (int j = 0; j < i; j++)
            count += differs_both_ways(p, i, j) ? 0 : 1;
    }
    return count;
}

/* The best of so many choices for symbol i; those before it are chosen. */
static void settle_symbol(Dims *t, const Dim *symbols, int i, Plan *p)
{
    enum { TURNS = 256 };
    size_t least = SIZE_MAX, confused = SIZE_MAX;
    Plan   best = *p;
    for (int turn = 0; turn < TURNS; turn++) {
        choose(t, symbols, i, turn, p);
        size_t hidden = hidden_remainders(p, i + 1);
        if (hidden > least)
            continue;
        size_t alike = confusions(t, symbols, i + 1, p);
        if (hidden == least && alike >= confused)
            continue;
        least = hidden;
        confused = alike;
        best = *p;
    }
    *p = best;
}

void p2o_plan_sizes(Dims *t, const Dim *symbols, int n, Plan *out)
{
    choose_shared(t, symbols, n, n, out);
    for (int i = 0; i < n; i++)
        settle_symbol(t, symbols, i, out);
    choose_ones(t, symbols, n, out);
}
