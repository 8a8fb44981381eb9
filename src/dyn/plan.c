#include "dyn/plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "dyn/grammar.h"

/* Large, middling and small sizes to choose from; neighbours differ in their remainders of 2, 3, 4,
 * 5, 7 and 8.  What is large in one capture is small in another, for each pair of symbols. */
static const int64_t pool[PLAN_CAPTURES][8] = { { 97, 110, 89, 127, 101, 83, 122, 106 },
                                                { 40, 51, 34, 61, 46, 37, 58, 67 },
                                                { 9, 7, 11, 14, 13, 6, 10, 15 } };
/* The last are those of a check in which all symbols are equal: some models do otherwise with
 * squares. */
static const int64_t checks[PLAN_CHECKS][8] = { { 3, 2, 3, 2, 2, 3, 2, 3 },
                                                { 16, 32, 64, 8, 16, 32, 64, 8 },
                                                { 20, 30, 100, 50, 24, 60, 90, 80 },
                                                { 5, 6, 7, 4, 6, 5, 7, 4 },
                                                { 29, 47, 75, 55, 71, 78, 93, 31 } };

/* Inside a range that lacks the size: as far from its ends as the remainder says. */
static int64_t inside(Dims *t, Dim sym, int64_t v)
{
    int64_t lo, hi;
    p2o_dim_range(t, sym, &lo, &hi);
    lo = lo < 1 ? 1 : lo;
    if (v >= lo && v <= hi)
        return v;
    if (hi == NO_UPPER)
        return lo + v;
    int64_t span = hi - lo + 1;
    return span < 1 ? lo : v > hi ? hi - v % (span < 12 ? span : span / 3) : lo + v % span;
}

static void choose(Dims *t, const Dim *symbols, int n, int turn, Plan *p)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < PLAN_CAPTURES; k++)
            p->captures[k][i] = inside(t, symbols[i],
                                       pool[(k + i) % PLAN_CAPTURES]
                                           [(3 * i + turn * (2 * k + 1) + k * (turn / 8)) % 8]);
        for (int k = 0; k < PLAN_CHECKS - 1; k++)
            p->checks[k][i] = inside(t, symbols[i],
                                     checks[(k + i) % (PLAN_CHECKS - 1)][(3 * i + k + turn) % 8]);
        p->checks[PLAN_CHECKS - 1][i] = inside(t, symbols[i], checks[PLAN_CHECKS - 1][turn % 8]);
    }
}

typedef struct Seen {                   /* an expression's values in the captures, and elsewhere */
    double captured[PLAN_CAPTURES], probe, bits;
} Seen;

typedef struct Counting {
    Arena       *arena;
    const Bases *bases;
    VEC(Seen)    list;
} Counting;

enum { CHEAP = 14 };                    /* bits of an expression that people write */

static void note_expr(void *user, const Expr *e, double bits, const double *values)
{
    Counting *c = user;
    Seen      s = { .bits = bits };
    double    v;
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
    const Seen *a = x, *b = y;
    for (int k = 0; k < PLAN_CAPTURES; k++)
        if (a->captured[k] != b->captured[k])
            return a->captured[k] < b->captured[k] ? -1 : 1;
    return (a->probe > b->probe) - (a->probe < b->probe);
}

/* The cheaper, the likelier. */
static size_t weight_of(double bits) { return (size_t)1 << (int)(CHEAP - fmin(bits, CHEAP)); }

static bool is_number_to(const Seen *s)
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
        const Seen *x = &c.list.at[i - 1], *y = &c.list.at[i];
        bool        alike = true;
        for (int k = 0; k < PLAN_CAPTURES; k++)
            alike &= x->captured[k] == y->captured[k];
        count += alike && x->probe != y->probe ? weight_of(fmax(x->bits, y->bits)) : 0;
    }
    p2o_arena_rewind(a, mark);
    return count;
}

static bool has_remainder(int64_t (*at)[PLAN_MOST], int n, int symbol, int64_t by,
                          int64_t remainder)
{
    for (int k = 0; k < n; k++)
        if (at[k][symbol] % by == remainder)
            return true;
    return false;
}

/* A remainder that a symbol has in no capture hides what depends on it: of small numbers each
 * counts, checks included, and of others a symbol must have more than one. */
static size_t hidden_remainders(Plan *p, int n)
{
    enum { WEIGHT = 1 << CHEAP, SMALL = 4 };
    static const int64_t by[] = { 2, 3, 4, 5, 7, 8 };
    size_t               count = 0;
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
            int64_t among = 0;
            for (int64_t r = 0; r < by[k]; r++) {
                bool captured = has_remainder(p->captures, PLAN_CAPTURES, i, by[k], r);
                among += captured;
                if (by[k] <= SMALL && !captured &&
                    !has_remainder(p->checks, PLAN_CHECKS, i, by[k], r))
                    count += WEIGHT;
            }
            count += among < 2 ? WEIGHT : 0;
        }
    }
    return count;
}

void p2o_plan_sizes(Dims *t, const Dim *symbols, int n, Plan *out)
{
    enum { TURNS = 32 };
    size_t least = SIZE_MAX;
    for (int turn = 0; turn < TURNS && n > 0; turn++) {
        Plan   p = { 0 };
        choose(t, symbols, n, turn, &p);
        size_t confused = confusions(t, symbols, n, &p) + hidden_remainders(&p, n);
        if (confused >= least)
            continue;
        least = confused;
        *out = p;
    }
}
