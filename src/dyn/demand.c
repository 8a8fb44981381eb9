#include "dyn/demand.h"

#include <string.h>

#include "dyn/large.h"

enum {
    FEWEST_SOLVED = 16,                 /* probes: a need that fewer meet pins sizes */
    FEWEST_SEEN = 3,                    /* values of the unknown; powers of two, which are split
                                         * evenly by chance, do not count */
    MOST_STEPS = 256,                   /* up to where each next value has to be more */
    MOST_DOUBLED = 16,                  /* and from there on, around powers of two */
};

/* Demands are asked at sizes of the inputs beside a value of the unknown. */
typedef struct Asking {
    Bindings       *bind;
    const Unknowns *of;
    int64_t         unknown;
    int             capture;            /* whose sizes the others are; -1: those of a probe */
    const Dim      *symbols;
    size_t          n;
    const int64_t  *sizes;
} Asking;

static bool value_asked(void *user, Dim sym, int64_t *v)
{
    const Asking *x = user;
    for (int i = 0; i < x->of->n; i++)
        if (x->of->at[i] == sym) {
            *v = x->unknown;
            return true;
        }
    if (x->capture >= 0)
        return p2o_hint_at(x->bind, sym, x->capture, v);
    for (size_t i = 0; i < x->n; i++)
        if (x->symbols[i] == sym) {
            *v = x->sizes[i];
            return *v > 0;
        }
    return false;
}

/* By how much the sides differ. */
static bool gap_of(const Asking *x, Dim a, Dim b, int64_t *gap)
{
    Dims   *t = p2o_bindings_dims(x->bind);
    void   *user = (void *)(uintptr_t)x;
    int64_t v, w;
    return p2o_dim_eval(t, a, value_asked, user, &v) && p2o_dim_eval(t, b, value_asked, user, &w) &&
           !__builtin_sub_overflow(v, w, gap);
}

typedef struct Gathering {
    Bindings *bind;
    Unknowns *of;
    bool      ok;
} Gathering;

static bool was_like(Bindings *b, Dim x, Dim y)
{
    int64_t v, w;
    for (int k = 0; k < p2o_ncapture(b); k++)
        if (!p2o_hint_at(b, x, k, &v) || !p2o_hint_at(b, y, k, &w) || v != w)
            return false;
    return true;
}

/* A -1 follows from what stands beside it: it is no unknown, even where it was like one. */
static void note_unknown(void *user, Dim sym)
{
    Gathering *g = user;
    Unknowns  *u = g->of;
    SymRole    role = p2o_role(g->bind, sym);
    g->ok &= role != ROLE_DATA && !(role == ROLE_SOFT && p2o_is_hole(g->bind, sym));
    if (role != ROLE_SOFT)
        return;
    for (int i = 0; i < u->n; i++)
        if (u->at[i] == sym)
            return;
    g->ok &= u->n < MAX_UNKNOWNS && (!u->n || was_like(g->bind, sym, u->at[0]));
    if (g->ok)
        u->at[u->n++] = sym;
}

static bool gather_unknowns(Bindings *b, Dim x, Dim y, Unknowns *of)
{
    Gathering g = { .bind = b, .of = of, .ok = x && y };
    of->n = 0;
    if (g.ok)
        p2o_dim_symbols(x, note_unknown, &g);
    if (g.ok)
        p2o_dim_symbols(y, note_unknown, &g);
    return g.ok && of->n;
}

static bool is_even_split(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

static bool was_much(Bindings *b, Dim unknown)
{
    int64_t v, w;
    int     kinds = 0;
    for (int k = 0; k < p2o_ncapture(b); k++) {
        bool is_new = p2o_hint_at(b, unknown, k, &v) && !is_even_split(v);
        for (int i = 0; i < k && is_new; i++)
            is_new = p2o_hint_at(b, unknown, i, &w) && v != w;
        kinds += is_new;
    }
    return kinds >= FEWEST_SEEN;
}

/* The gap at v + 1 is more than at v, or less, as `sign` says; 0 on entry: either. */
static bool steps_on(Asking *x, Dim a, Dim b, int64_t v, int *sign)
{
    int64_t at, next;
    x->unknown = v;
    if (!gap_of(x, a, b, &at))
        return false;
    x->unknown = v + 1;
    if (!gap_of(x, a, b, &next) || next == at)
        return false;
    int now = next > at ? 1 : -1;
    bool same = !*sign || *sign == now;
    *sign = now;
    return same;
}

/* At the sizes of every capture: one value of the unknown at most closes the gap. */
static bool has_one_solution(Bindings *b, Dim x, Dim y, const Unknowns *of)
{
    for (int k = 0; k < p2o_ncapture(b); k++) {
        Asking at = { .bind = b, .of = of, .capture = k };
        int    sign = 0;
        for (int64_t v = 1; v < MOST_STEPS; v++)
            if (!steps_on(&at, x, y, v, &sign))
                return false;
        for (int i = 1; i < MOST_DOUBLED; i++)
            if (!steps_on(&at, x, y, (int64_t)1 << i, &sign))
                return false;
    }
    return true;
}

const Demand *p2o_demand_on(Bindings *b, Dim open, Unknowns *of)
{
    for (size_t i = 0; i < p2o_ndemand(b); i++) {
        const Demand *d = p2o_demand_at(b, i);
        Dim           x = p2o_resolve(b, d->a), y = p2o_resolve(b, d->b);
        bool          has = false;
        if (!gather_unknowns(b, x, y, of))
            continue;
        for (int k = 0; k < of->n; k++)
            has |= of->at[k] == open;
        if (has && was_much(b, open) && has_one_solution(b, x, y, of))
            return d;
    }
    return NULL;
}

typedef struct Replacing {
    const Unknowns *of;
    Dim             by;
} Replacing;

static Dim for_unknown(void *user, Dim sym)
{
    const Replacing *r = user;
    for (int i = 0; i < r->of->n; i++)
        if (r->of->at[i] == sym)
            return r->by;
    return sym;
}

bool p2o_demand_is_idle(Bindings *b, const Demand *d, const Unknowns *of, const Dim *symbols,
                        size_t n, Dim x)
{
    enum { TURNS = 4 };
    Dims      *t = p2o_bindings_dims(b);
    Replacing  r = { of, x };
    LargeSizes at = { .symbols = symbols, .n = n };
    Dim        left = x ? p2o_dim_subst(t, p2o_resolve(b, d->a), for_unknown, &r) : NULL;
    Dim        right = x ? p2o_dim_subst(t, p2o_resolve(b, d->b), for_unknown, &r) : NULL;
    for (; left && right && at.turn < TURNS; at.turn++)
        if (!p2o_large_same(t, &at, left, right))
            return false;
    return left && right;
}

bool p2o_solved_has(const Solved *s, Dim x, Dim y)
{
    Dims   *t = p2o_bindings_dims(s->bind);
    int64_t v, w;
    for (int i = 0; i < NPROBE; i++)
        if (s->unknown[i] && (!p2o_probe_at(t, &s->probes, x, i, &v) ||
                              !p2o_probe_at(t, &s->probes, y, i, &w) || v != w))
            return false;
    return true;
}

/* Demands before this one hold where its solution moved a size. */
static bool earlier_hold(const Solved *s, int i)
{
    Dims   *t = p2o_bindings_dims(s->bind);
    int64_t v, w;
    for (const Solved *x = s->before; x; x = x->before)
        if (!p2o_probe_at(t, &s->probes, p2o_resolve(s->bind, x->demand->a), i, &v) ||
            !p2o_probe_at(t, &s->probes, p2o_resolve(s->bind, x->demand->b), i, &w) || v != w)
            return false;
    return true;
}

typedef struct Solving {
    Asking   at;
    Dim      a, b;              /* the demand as it is now */
    int64_t *size;              /* the one that is sought */
} Solving;

static int sign_at(Solving *x, int64_t size, bool *known)
{
    int64_t gap = 0;
    *x->size = size;
    *known = gap_of(&x->at, x->a, x->b, &gap);
    return gap > 0 ? 1 : gap < 0 ? -1 : 0;
}

/* The size at which the demand holds, sought by halving; 0: there is none. */
static int64_t size_for(Solving *x, int64_t unknown)
{
    enum { MOST = 1 << 30 };
    bool    known;
    int64_t lo = 1, hi = 1;
    x->at.unknown = unknown;
    int first = sign_at(x, lo, &known), last = first;
    while (known && first && last == first && hi < MOST) {
        lo = hi;
        hi *= 2;
        last = sign_at(x, hi, &known);
    }
    while (known && last && hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        int     now = sign_at(x, mid, &known);
        if (now == first) {
            lo = mid;
        } else {
            hi = mid;
            last = now;
        }
    }
    return known && !(first && last) ? hi : 0;
}

/* At probe i, by moving size number k: the unknown is what that size usually is there, or, where
 * that is out of its range, the probe's number. */
static bool solve_probe(Solved *s, const Solved *before, size_t k, int i, int64_t *sizes)
{
    Dims    *t = p2o_bindings_dims(s->bind);
    Dim      sym = s->probes.symbols[k];
    Solving  x = { .at = { .bind = s->bind, .of = &s->of, .capture = -1, .sizes = sizes,
                           .symbols = s->probes.symbols, .n = s->probes.n },
                   .a = p2o_resolve(s->bind, s->demand->a),
                   .b = p2o_resolve(s->bind, s->demand->b), .size = &sizes[k] };
    int64_t lo, hi, usual;
    p2o_dim_range(t, sym, &lo, &hi);
    for (size_t j = 0; j < s->probes.n; j++)
        if (before)
            sizes[j] = before->probes.at[j][i];
        else if (!p2o_probe(t, s->probes.symbols, s->probes.n, s->probes.symbols[j], i, &sizes[j]))
            return false;
    usual = sizes[k];
    for (int turn = 0; turn < 2; turn++) {
        s->unknown[i] = turn ? i + 1 : usual;
        int64_t size = s->unknown[i] > 0 ? size_for(&x, s->unknown[i]) : 0;
        sizes[k] = size;
        if (size >= lo && size > 0 && size <= hi)
            return true;
    }
    return false;
}

/* How many probes there are where size number k is moved. */
static int solve_by(Solved *s, size_t k, int64_t *sizes)
{
    int n = 0;
    for (int i = 0; i < NPROBE; i++) {
        bool solved = solve_probe(s, s->before, k, i, sizes);
        for (size_t j = 0; j < s->probes.n; j++)
            s->probes.at[j][i] = solved ? sizes[j] : 0;
        solved = solved && earlier_hold(s, i);
        for (size_t j = 0; j < s->probes.n && !solved; j++)
            s->probes.at[j][i] = 0;
        s->unknown[i] = solved ? s->unknown[i] : 0;
        n += solved;
    }
    return n;
}

typedef struct Occurring {
    Dim  sym;
    bool found;
} Occurring;

static void note_occurring(void *user, Dim sym)
{
    Occurring *o = user;
    o->found |= sym == o->sym;
}

static bool stands_in(Bindings *b, const Demand *d, Dim sym)
{
    Occurring o = { .sym = sym };
    p2o_dim_symbols(p2o_resolve(b, d->a), note_occurring, &o);
    p2o_dim_symbols(p2o_resolve(b, d->b), note_occurring, &o);
    return o.found;
}

Solved *p2o_demand_solve(Arena *a, Bindings *b, const Demand *d, const Unknowns *of,
                         const Dim *symbols, size_t n, const Solved *before)
{
    Solved  *s = NEW(a, Solved);
    int64_t *sizes = NEW_N(a, int64_t, n + 1);
    int      found = 0;
    *s = (Solved){ .bind = b, .demand = d, .of = *of, .before = before,
                   .probes = { .symbols = symbols, .n = n } };
    s->probes.at = (int64_t (*)[NPROBE])(void *)NEW_N(a, int64_t, n * NPROBE + 1);
    if (before && (before->probes.n != n ||
                   memcmp(before->probes.symbols, symbols, n * sizeof *symbols)))
        return NULL;                            /* sizes were bound since: their probes are no
                                                 * more */
    for (size_t k = 0; k < n && found < FEWEST_SOLVED; k++)
        found = stands_in(b, d, symbols[k]) ? solve_by(s, k, sizes) : 0;
    if (found < FEWEST_SOLVED)
        return NULL;
    p2o_allowed_start(&s->allowed, a, b, symbols, n);
    s->allowed.moved = &s->probes;
    return s;
}
