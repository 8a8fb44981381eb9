/* Where a guard holds is found by trying: one size is changed while the others stay as captured,
 * and all are changed together.  Guards that hold ever again (divisibility, sizes that differ)
 * are found first, for the others need hold only where these do: of seq % 4 == 0 and seq // (seq
 * // 4) == 4 the first says all. */
#include "dyn/trial.h"

#include "base/vec.h"
#include "dyn/range.h"

static bool has_min_or_max(Dim d) { return p2o_dim_has(d, DIM_MIN) || p2o_dim_has(d, DIM_MAX); }

/* a <= b of a guard that compares by order. */
bool p2o_guard_order(const Program *p, const Guard *g, Dim *a, Dim *b)
{
    GuardRelation r = p2o_guard_relation(g);
    if (r < GUARD_LT || r > GUARD_GE)
        return false;
    bool greater = r == GUARD_GT || r == GUARD_GE;
    *a = p2o_guard_dim(g, p->dims, greater);
    *b = p2o_guard_dim(g, p->dims, !greater);
    if (*a && (r == GUARD_LT || r == GUARD_GT))
        *a = p2o_dim_add(p->dims, *a, p2o_dim_int(p->dims, 1));
    return *a && *b;
}

/* That a size be 2 or more, that strides look so (which the mins and maxes are about), that two
 * sizes differ: none of it is a need of the model. */
bool p2o_guard_need(const Program *p, const Guard *g, Need *n)
{
    int64_t least;
    *n = (Need){ .kind = NEED_LE, .origin = NEED_OF_GUARD };
    if (p2o_guard_order(p, g, &n->a, &n->b))
        return !p2o_dim_is_int(n->a, &least) || least > LEAST_CAPTURED;
    if (p2o_guard_relation(g) != GUARD_EQ)
        return false;
    n->kind = NEED_EQ;
    n->a = p2o_guard_dim(g, p->dims, 0);
    n->b = p2o_guard_dim(g, p->dims, 1);
    return n->a && n->b && !has_min_or_max(n->a) && !has_min_or_max(n->b);
}

const Dim *p2o_guard_sizes(const Program *p, Bindings *b, const Guard *g)
{
    Dim *at = NEW_N(p->arena, Dim, p2o_guard_nsize(g) + 1);
    for (size_t i = 0; i < p2o_guard_nsize(g); i++)
        at[i] = p2o_resolve(b, p2o_guard_size(g, i));
    return at;
}

const char *p2o_guard_by(const Program *p, const Guard *g)
{
    return p2o_printf(p->arena, "the capture's guard %s", p2o_guard_source(g));
}

/* A guard at sizes that are tried. */
typedef struct Trial Trial;
typedef VEC(Trial *) Trials;

struct Trial {
    Program      *prog;
    Bindings     *bind;
    const Trials *all;          /* of the program */
    Guard        *guard;
    const Dim    *sizes;        /* of the guard, as they are now */
    VEC(Dim)      syms;         /* that remain in them */
    int64_t      *at;           /* of each symbol: what is tried */
    int64_t      *captured;
    bool          condition;    /* it holds ever again: others are asked only where it does */
    bool          all_known;    /* it is asked only where all ranges are kept */
};

static bool pinned_value(const Program *p, Dim sym, int64_t *v)
{
    for (size_t i = 0; i < p->declared.n; i++)
        if (p->declared.at[i].dim == sym && p->declared.at[i].lo == p->declared.at[i].hi) {
            *v = p->declared.at[i].lo;
            return true;
        }
    return false;
}

static void add_tried(void *user, Dim sym)
{
    Trial  *t = user;
    int64_t v;
    for (size_t i = 0; i < t->syms.n; i++)
        if (t->syms.at[i] == sym)
            return;
    if (!pinned_value(t->prog, sym, &v))
        VEC_PUSH(t->prog->arena, &t->syms, sym);
}

static bool tried_value(void *user, Dim sym, int64_t *v)
{
    const Trial *t = user;
    for (size_t i = 0; i < t->syms.n; i++)
        if (t->syms.at[i] == sym) {
            *v = t->at[i];
            return true;
        }
    return pinned_value(t->prog, sym, v) || p2o_hint_at(t->bind, sym, 0, v);
}

static Answer try_guard(Trial *t)
{
    return p2o_guard_holds(t->guard, t->prog->dims, t->sizes, tried_value, t);
}

/* CANNOT_TELL where another condition excludes the sizes. */
static Answer try_under_conditions(Trial *t)
{
    enum { MOST_CONDITIONS = 16 };      /* more of them say little more, and each costs time */
    int n = 0;
    for (size_t i = 0; i < t->all->n && n < MOST_CONDITIONS; i++) {
        const Trial *c = t->all->at[i];
        if (!c->condition || c == t)
            continue;
        n++;
        if (p2o_guard_holds(c->guard, t->prog->dims, c->sizes, tried_value, t) == NO)
            return CANNOT_TELL;
    }
    return try_guard(t);
}

static Answer try_size(Trial *t, size_t k, int64_t v)
{
    int64_t before = t->at[k];
    t->at[k] = v;
    Answer a = try_under_conditions(t);
    t->at[k] = before;
    return a;
}

static Trial *new_trial(Program *p, Bindings *b, const Trials *all, Guard *g)
{
    Trial *t = NEW(p->arena, Trial);
    *t = (Trial){ .prog = p, .bind = b, .all = all, .guard = g, .sizes = p2o_guard_sizes(p, b, g) };
    for (size_t i = 0; i < p2o_guard_nsize(g); i++)
        if (t->sizes[i])
            p2o_dim_symbols(t->sizes[i], add_tried, t);
    t->at = NEW_N(p->arena, int64_t, t->syms.n + 1);
    t->captured = NEW_N(p->arena, int64_t, t->syms.n + 1);
    return t;
}

static void back_to_captured(Trial *t) { memcpy(t->at, t->captured, t->syms.n * sizeof *t->at); }

/* The sizes of the capture; where it does not tell them, any at which the guard holds. */
static Answer try_captured(Trial *t)
{
    enum { LARGEST_GUESS = 300 };
    const int64_t largest = (int64_t)1 << 40;   /* no tensor's size; its multiples have 64 bits */
    bool          known = true;
    for (size_t i = 0; i < t->syms.n; i++) {
        known &= p2o_hint_at(t->bind, t->syms.at[i], 0, &t->captured[i]);
        if (t->captured[i] < 0 || t->captured[i] > largest)
            return CANNOT_TELL;
    }
    for (int64_t guess = LEAST_CAPTURED; !known && guess <= LARGEST_GUESS; guess++) {
        for (size_t i = 0; i < t->syms.n; i++)
            t->at[i] = t->captured[i] = guess;
        known = try_guard(t) == YES;
    }
    back_to_captured(t);
    return try_guard(t);
}

/* Captures at other sizes were lined up with this one although the guard does not hold there: what
 * it speaks of was found out by comparing them. */
static bool is_disproved(Trial *t)
{
    bool disproved = false;
    for (int k = 1; k < p2o_ncapture(t->bind); k++) {
        bool known = true;
        for (size_t i = 0; i < t->syms.n; i++)
            known &= p2o_hint_at(t->bind, t->syms.at[i], k, &t->at[i]);
        disproved |= known && try_guard(t) == NO;
    }
    back_to_captured(t);
    return disproved;
}

typedef struct SizeTry {
    int64_t size;
    Answer  holds;
} SizeTry;
typedef VEC(SizeTry) SizeTries;

static void add_try(const Trial *t, SizeTries *s, int64_t lo, int64_t hi, int64_t v)
{
    if (v < lo || v > hi)
        return;
    VEC_PUSH(t->prog->arena, s, (SizeTry){ .size = v });
    size_t i = s->n - 1;
    for (; i > 0 && s->at[i - 1].size > v; i--)
        s->at[i] = s->at[i - 1];
    s->at[i] = (SizeTry){ .size = v };
}

/* A spread of sizes in ascending order: all small ones and all near the captured one, so that every
 * remainder up to WINDOW is met; then powers of two and their neighbours, multiples of the
 * captured size, and sizes that have its remainders by all small numbers and by powers of two. */
static SizeTries spread_of(const Trial *t, int64_t captured, int64_t lo, int64_t hi)
{
    enum { WINDOW = 128, LARGEST_POWER = 30, HIGHLY_COMPOSITE = 720720 };
    SizeTries s = { 0 };
    int64_t   from = captured > WINDOW ? captured - WINDOW : 0;
    int64_t   small = from < WINDOW ? from : WINDOW;
    for (int64_t v = 0; v < small; v++)
        add_try(t, &s, lo, hi, v);
    for (int64_t v = from; v <= captured + WINDOW; v++)
        add_try(t, &s, lo, hi, v);
    for (int k = 1; k <= LARGEST_POWER; k++) {
        int64_t power = (int64_t)1 << k;
        add_try(t, &s, lo, hi, power - 1);
        add_try(t, &s, lo, hi, power);
        add_try(t, &s, lo, hi, power + 1);
        add_try(t, &s, lo, hi, captured + power);
        add_try(t, &s, lo, hi, captured * k);
        add_try(t, &s, lo, hi, captured + (int64_t)k * HIGHLY_COMPOSITE);
    }
    return s;
}

/* Where a guard holds as one size changes. */
typedef struct Extent {
    int64_t lo, hi;             /* around the captured size */
    int64_t least, most;        /* that was to be tried; NO_UPPER: without end */
    bool    everywhere;
    bool    below, above;       /* it holds beyond lo, beyond hi too */
    bool    recurs;             /* at sizes without end, though not at all */
} Extent;

/* Between a size where it holds and one where it does not: the last where it does. */
static int64_t last_holding(Trial *t, size_t k, int64_t holds, int64_t fails)
{
    while (holds - fails > 1 || fails - holds > 1) {
        int64_t middle = holds + (fails - holds) / 2;
        if (try_size(t, k, middle) == NO)
            fails = middle;
        else
            holds = middle;
    }
    return holds;
}

/* Around the captured size: from the last below to the first above where it does not hold. */
static void find_interval(Trial *t, size_t k, const SizeTries *s, Extent *e)
{
    e->lo = e->least;
    e->hi = e->most;
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].holds != NO)
            continue;
        e->everywhere = false;
        if (s->at[i].size < t->captured[k])
            e->lo = s->at[i].size + 1;
        else if (e->hi == e->most)
            e->hi = s->at[i].size - 1;
    }
    if (e->lo > e->least)
        e->lo = last_holding(t, k, t->captured[k], e->lo - 1);
    if (e->hi < e->most)
        e->hi = last_holding(t, k, t->captured[k], e->hi + 1);
}

/* A size far above where it holds, or one as far again many times as the next above. */
static bool seems_endless(Trial *t, size_t k, int64_t next, int64_t last)
{
    enum { FAR = 4, MANY = 64, MORE = 1001 };
    int64_t captured = t->captured[k], period = next - captured;
    if (last > FAR * captured + MANY)
        return true;
    return try_size(t, k, captured + MANY * period) == YES &&
           try_size(t, k, captured + MORE * period) == YES;
}

/* What was not seen does not excuse a guard that must hold; 0 and 1 do. */
static void tried_range(Trial *t, size_t k, int64_t *lo, int64_t *hi)
{
    int64_t seen = p2o_range_seen(t->prog, t->bind, t->syms.at[k]);
    if (seen > LEAST_CAPTURED && !t->all_known)
        seen = LEAST_CAPTURED;
    p2o_range_needed(t->prog, t->bind, t->syms.at[k], lo, hi);
    *lo = seen > *lo ? seen : *lo;
    *lo = *lo < 0 ? 0 : *lo;            /* an int that is no size is tried where sizes are */
}

static Extent extent_in(Trial *t, size_t k)
{
    Extent  e = { .everywhere = true };
    int64_t next = 0, last = 0;
    tried_range(t, k, &e.least, &e.most);
    SizeTries s = spread_of(t, t->captured[k], e.least, e.most);
    for (size_t i = 0; i < s.n; i++)
        s.at[i].holds = try_size(t, k, s.at[i].size);
    find_interval(t, k, &s, &e);
    for (size_t i = 0; i < s.n; i++) {
        if (s.at[i].holds != YES || (s.at[i].size >= e.lo && s.at[i].size <= e.hi))
            continue;
        if (s.at[i].size < e.lo) {
            e.below = true;
            continue;
        }
        next = e.above ? next : s.at[i].size;
        last = s.at[i].size;
        e.above = true;
    }
    e.recurs = e.above && seems_endless(t, k, next, last);
    return e;
}

/* Sizes that change together, each in its own steps. */
static bool holds_together(Trial *t)
{
    enum { ROUNDS = 64 };
    bool all = true;
    for (int64_t round = 0; all && round < ROUNDS; round++) {
        for (size_t i = 0; i < t->syms.n; i++) {
            int64_t lo, hi, span = 2 * t->captured[i] + 7;
            tried_range(t, i, &lo, &hi);
            int64_t step = round * (int64_t)(2 * i + 3) % span;
            t->at[i] = step > hi - lo ? hi : lo + step;
        }
        all = try_under_conditions(t) != NO;
    }
    back_to_captured(t);
    return all;
}

static bool holds_everywhere(Trial *t)
{
    bool all = true;
    for (size_t k = 0; all && k < t->syms.n; k++)
        all = extent_in(t, k).everywhere;
    return all && (t->syms.n < 2 || holds_together(t));
}

typedef struct Sought {
    Dim  sym;
    bool found;
} Sought;

static void seek_sym(void *user, Dim sym)
{
    Sought *s = user;
    s->found |= s->sym == sym;
}

/* "axis 1 of 'x' (seq)", the first that the size is in. */
static const char *axis_text(const Program *p, Bindings *b, Dim sym)
{
    for (size_t i = 0; i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        for (int k = 0; v && k < v->type.shape.rank; k++) {
            Sought s = { .sym = sym };
            p2o_dim_symbols(p2o_resolve(b, v->type.shape.at[k]), seek_sym, &s);
            if (s.found)
                return p2o_printf(p->arena, "axis %d of '%s' (%s)", k, p->inputs.at[i].name,
                                  p2o_dim_name(sym));
        }
    }
    return p2o_dim_name(sym);
}

#define FIX_IT "give the size a number (--dim NAME=N, or N in place of the name), or captures of " \
               "fixed sizes: pt2onnx a.pt2 b.pt2 out.onnx"

bool p2o_refuse_sizes(const Program *p, Bindings *b, Dim sym, int64_t lo, int64_t hi,
                      const char *why)
{
    Buf only = { .arena = p->arena };
    p2o_putf(&only, "%lld", (long long)lo);
    if (lo != hi)
        p2o_putf(&only, " to %lld", (long long)hi);
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0, FIX_IT,
                    "%s can't be dynamic: the model was captured for sizes of %s only: %s",
                    axis_text(p, b, sym), only.at, why);
    return false;
}

static bool refuse_unknown(const Program *p, Bindings *b, Dim sym, const char *guard)
{
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0, FIX_IT,
                    "%s can't be dynamic: the capture's guard %s is not understood, and where it "
                    "does not hold the model may be another", axis_text(p, b, sym), guard);
    return false;
}

/* What PyTorch says of every dynamic size: that no size is 0 or 1, and that strides look so. */
static bool is_of_unseen(const Guard *g)
{
    GuardRelation r = p2o_guard_relation(g);
    double        number = 0;
    bool          left = p2o_guard_number(g, 0, &number);
    bool          right = !left && p2o_guard_number(g, 1, &number);
    if (r == GUARD_EQ)
        return !left && !right && p2o_guard_has_max(g);
    if (r == GUARD_NE)
        return left || right ? number == 0 || number == 1 : p2o_guard_has_max(g);
    bool strict = r == GUARD_LT || r == GUARD_GT;
    bool below = left ? r == GUARD_LT || r == GUARD_LE : right && (r == GUARD_GT || r == GUARD_GE);
    return below && number <= LEAST_CAPTURED - strict;
}

/* One side is a number: the guard says what it was in the capture. */
static bool fixes_number(const Guard *g)
{
    double v;
    return p2o_guard_relation(g) == GUARD_EQ &&
           (p2o_guard_number(g, 0, &v) || p2o_guard_number(g, 1, &v));
}

/* No range, but what is left of a size that a number was computed from. */
static bool holds_at_few(const Trial *t, size_t k, const Extent *e)
{
    enum { WIDE = 4 };
    return !e->everywhere && !e->recurs && e->hi < e->most && e->hi < WIDE * t->captured[k];
}

/* The guard stays in its own words, unless it became a need when they were collected. */
static void need_guard(Trial *t, NeedOrigin origin)
{
    Need n;
    if (!p2o_guard_need(t->prog, t->guard, &n))
        p2o_need(t->bind, (Need){ .kind = NEED_GUARD, .by = p2o_guard_by(t->prog, t->guard),
                                  .origin = origin, .guard = t->guard });
}

static void need_extent(Trial *t, const Extent *e, NeedOrigin origin)
{
    const char *by = p2o_guard_by(t->prog, t->guard);
    Dim         sym = t->syms.at[0];
    Dim         lo = p2o_dim_int(t->prog->dims, e->lo), hi = p2o_dim_int(t->prog->dims, e->hi);
    if (e->lo > e->least)
        p2o_need(t->bind, (Need){ NEED_LE, lo, sym, by, 0, .origin = origin });
    if (e->hi < e->most)
        p2o_need(t->bind, (Need){ NEED_LE, sym, hi, by, 0, .origin = NEED_OF_GUARD });
    p2o_guard_settle(t->guard);
}

/* Divisibility, sizes that differ: it fails here and there, and holds at larger sizes again, or
 * fails only where two sizes meet.  seq != 2 is one too, though 2 is the least size; sizes that
 * were not seen are a range. */
static bool is_condition(Trial *t)
{
    bool different = p2o_guard_relation(t->guard) == GUARD_NE, everywhere = true, found = false;
    for (size_t k = 0; k < t->syms.n; k++) {
        Extent e = extent_in(t, k);
        bool   smaller = e.below || (e.least > 0 && try_size(t, k, e.least - 1) == YES);
        if (fixes_number(t->guard) && holds_at_few(t, k, &e))
            return false;
        everywhere &= e.everywhere;
        found |= e.recurs || (different && e.above) ||
                 (different && e.lo > e.least && smaller && !is_of_unseen(t->guard));
    }
    return found || (everywhere && t->syms.n > 1 && !holds_together(t));
}

/* Of guards that are no conditions.  false after a diagnostic. */
static bool judge_trial(Trial *t)
{
    NeedOrigin origin = is_of_unseen(t->guard) ? NEED_UNSEEN : NEED_OF_GUARD;
    bool       everywhere = true;
    for (size_t k = 0; k < t->syms.n; k++) {
        Extent e = extent_in(t, k);
        if (fixes_number(t->guard) && holds_at_few(t, k, &e))
            return p2o_refuse_sizes(t->prog, t->bind, t->syms.at[k], e.lo, e.hi,
                                    p2o_printf(t->prog->arena, "Python computed a number from the "
                                               "size and went on with it, as %s says",
                                               p2o_guard_by(t->prog, t->guard)));
        everywhere &= e.everywhere;
        if (t->syms.n == 1 && !e.everywhere)
            need_extent(t, &e, e.hi < e.most ? NEED_OF_GUARD : origin);
    }
    if (everywhere && (t->syms.n < 2 || holds_together(t)))
        p2o_guard_settle(t->guard);
    else if (t->syms.n > 1)
        need_guard(t, origin);
    return true;
}

static void see_dynamic(void *user, Dim size)
{
    Trial *t = user;
    p2o_dim_symbols(p2o_resolve(t->bind, size), add_tried, t);
}

/* All sizes in it are numbers. */
static bool judge_numbers(Trial *t)
{
    bool small = is_of_unseen(t->guard), different = p2o_guard_relation(t->guard) == GUARD_NE;
    for (size_t i = 0; i < p2o_guard_nsize(t->guard); i++) {
        int64_t v = 0;
        small |= different && p2o_dim_is_int(t->sizes[i], &v) && v < LEAST_CAPTURED;
    }
    if (try_guard(t) == YES)
        return true;
    p2o_diag_advise(t->prog->diags, small ? DIAG_WARN : DIAG_NOT_DYNAMIC, 0,
                    small ? "give a capture at these sizes with --check to be sure"
                          : "give sizes that fit",
                    "the model was captured under %s, and the sizes asked for say %s",
                    p2o_guard_by(t->prog, t->guard),
                    p2o_guard_python(t->guard, t->prog->dims, t->sizes));
    return small;
}

/* The guard that a need of p2o_range_collect came from, or a new one. */
static Guard *guard_of(const Program *p, Bindings *b, const char *text)
{
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        Guard *g = p2o_need_at(b, i)->guard;
        if (g && p2o_guard_source(g) == text)
            return g;
    }
    return p2o_guard_parse(p, text);
}

/* PyTorch fixed the size, for whatever reason: the capture has a number there, which is a size's as
 * in every fixed capture. */
static bool is_fixed_by_capture(const Trial *t)
{
    return p2o_guard_is_size(t->guard) && p2o_guard_relation(t->guard) == GUARD_EQ &&
           p2o_guard_dim(t->guard, t->prog->dims, 0) == p2o_guard_dim(t->guard, t->prog->dims, 1);
}

/* *t is NULL where nothing remains to be judged.  false after a diagnostic. */
static bool begin_trial(Program *p, Bindings *b, const Trials *all, const char *text, Trial **t)
{
    Trial  mentioned = { .prog = p, .bind = b };
    Guard *g = guard_of(p, b, text);
    *t = NULL;
    if (!g) {
        p2o_guard_mentions(p, text, see_dynamic, &mentioned);
        return !mentioned.syms.n || refuse_unknown(p, b, mentioned.syms.at[0], text);
    }
    Trial *made = new_trial(p, b, all, g);
    if (!made->syms.n)
        return judge_numbers(made);
    Answer a = try_captured(made);
    if (is_fixed_by_capture(made) || is_disproved(made))
        p2o_guard_settle(g);
    else if (a == YES)
        *t = made;
    return *t || p2o_guard_settled(g) || refuse_unknown(p, b, made->syms.at[0], text);
}

/* More sizes, then more text. */
static bool is_simpler(const Trial *a, const Trial *b)
{
    if (a->syms.n != b->syms.n)
        return a->syms.n < b->syms.n;
    return strlen(p2o_guard_source(a->guard)) < strlen(p2o_guard_source(b->guard));
}

static void sort_trials(Trials *s)
{
    for (size_t i = 1; i < s->n; i++)
        for (size_t k = i; k > 0 && is_simpler(s->at[k], s->at[k - 1]); k--) {
            Trial *t = s->at[k];
            s->at[k] = s->at[k - 1];
            s->at[k - 1] = t;
        }
}

/* Conditions that follow from the simpler ones need not be said. */
static void need_conditions(const Trials *s)
{
    for (size_t i = s->n; i-- > 0;) {
        Trial *t = s->at[i];
        if (!t->condition)
            continue;
        t->all_known = true;
        t->condition = !holds_everywhere(t);
        if (!t->condition)
            p2o_guard_settle(t->guard);
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i]->condition)
            need_guard(s->at[i], NEED_OF_GUARD);
}

bool p2o_judge_guards(Program *p, Bindings *b)
{
    Trials all = { 0 };
    bool   ok = true;
    for (size_t i = 0; i < p->guards.n; i++) {
        Trial *t;
        ok &= begin_trial(p, b, &all, p->guards.at[i], &t);
        if (t)
            VEC_PUSH(p->arena, &all, t);
    }
    sort_trials(&all);
    bool *found = NEW_N(p->arena, bool, all.n + 1);
    for (size_t i = 0; ok && i < all.n; i++)
        found[i] = is_condition(all.at[i]);
    for (size_t i = 0; i < all.n; i++)
        all.at[i]->condition = found[i];
    for (size_t i = 0; ok && i < all.n; i++)
        ok = all.at[i]->condition || judge_trial(all.at[i]);
    if (ok)
        need_conditions(&all);
    return ok;
}

