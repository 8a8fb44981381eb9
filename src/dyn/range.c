#include "dyn/range.h"

#include "base/vec.h"
#include "dyn/trial.h"

typedef struct OneSym {
    Dim     sym;
    int     n;
    int64_t value;
} OneSym;

static void note_sym(void *user, Dim sym)
{
    OneSym *o = user;
    o->n += sym != o->sym;
    o->sym = sym;
}

static bool one_value(void *user, Dim sym, int64_t *v)
{
    const OneSym *o = user;
    *v = o->value;
    return sym == o->sym;
}

/* The need as things stand: a and b of the result are NULL where they are no sizes. */
static Need need_now(Bindings *b, const Need *n)
{
    Need now = *n;
    now.a = p2o_resolve(b, n->a);
    now.b = p2o_resolve(b, n->b);
    return now;
}

/* YES or NO where sym alone decides and is v. */
static Answer holds_at(const Program *p, Bindings *b, const Need *n, Dim sym, int64_t v)
{
    OneSym  o = { .sym = sym, .value = v };
    int64_t x, y;
    if (n->kind == NEED_GUARD)
        return p2o_guard_holds(n->guard, p->dims, p2o_guard_sizes(p, b, n->guard), one_value, &o);
    if (!n->a || !n->b || !p2o_dim_eval(p->dims, n->a, one_value, &o, &x) ||
        !p2o_dim_eval(p->dims, n->b, one_value, &o, &y))
        return CANNOT_TELL;
    return n->kind == NEED_LE ? (x <= y ? YES : NO) : (x == y ? YES : NO);
}

typedef struct InInputs {
    const Program *prog;
    bool           all;
} InInputs;

static void note_sought(void *user, Dim sym)
{
    OneSym *o = user;
    o->n += sym == o->sym;
}

static void find_in_inputs(void *user, Dim sym)
{
    InInputs *x = user;
    OneSym    sought = { .sym = sym };
    for (size_t i = 0; i < x->prog->main->inputs.n; i++) {
        const Type *t = &x->prog->main->inputs.at[i]->recorded;
        for (int k = 0; k < t->shape.rank; k++)
            p2o_dim_symbols(t->shape.at[k], note_sought, &sought);
        if (t->value)
            p2o_dim_symbols(t->value, note_sought, &sought);
    }
    x->all &= sought.n > 0;
}

/* Ranges of what the data decide were taken at the captured sizes. */
static bool is_of_inputs(const Program *p, Dim d)
{
    InInputs x = { p, true };
    p2o_dim_symbols(d, find_in_inputs, &x);
    return x.all;
}

typedef VEC(Guard *) Guards;            /* NULL: not understood */

static Guards parse_guards(const Program *p)
{
    Guards all = { 0 };
    for (size_t i = 0; i < p->guards.n; i++)
        VEC_PUSH(p->arena, &all, p2o_guard_parse(p, p->guards.at[i]));
    return all;
}

/* A least size that follows from guards that need nothing, needs nothing itself. */
static bool is_artefact(const Program *p, Bindings *b, const Guards *guards, const ProgramRange *r)
{
    OneSym  two = { .value = LEAST_CAPTURED };
    int64_t at_two;
    bool    artefact = false;
    p2o_dim_symbols(r->dim, note_sym, &two);
    if (r->lo <= LEAST_CAPTURED)
        return true;
    if (!p2o_dim_is_sym(r->dim))                /* s14 + s27 is 4 where both are 2 */
        return p2o_dim_eval(p->dims, r->dim, one_value, &two, &at_two) ? r->lo <= at_two
                                                                       : two.n > 1;
    for (size_t i = 0; i < guards->n; i++) {
        Need n, order = { .kind = NEED_LE };
        if (!guards->at[i] || !p2o_guard_order(p, guards->at[i], &order.a, &order.b) ||
            holds_at(p, b, &order, r->dim, r->lo - 1) != NO)
            continue;
        if (p2o_guard_need(p, guards->at[i], &n))
            return false;
        artefact = true;
    }
    return artefact;
}

static const char *need_text(const Program *p, const Need *n)
{
    if (n->kind == NEED_GUARD)
        return n->by;
    return p2o_printf(p->arena, "%s %s %s (%s)", p2o_dim_text(p->dims, n->a),
                      n->kind == NEED_LE ? "<=" : "=", p2o_dim_text(p->dims, n->b), n->by);
}

static bool refuse_size(const Program *p, const Need *n, const char *spec, Dim sym, int64_t v)
{
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, n->loc, "give a range inside",
                    "%s: %s can't be %lld: the model needs %s", spec, p2o_dim_name(sym),
                    (long long)v, need_text(p, n));
    return false;
}

/* Both ends of a range that the user gives must work; divisibility is asked of single numbers
 * only. */
static bool check_declared(const Program *p, Bindings *b, const ProgramRange *r, bool with_place)
{
    Dim sym = p2o_resolve(b, r->dim);
    for (size_t i = 0; i < p2o_nneed(b) && p2o_dim_is_sym(sym); i++) {
        Need now = need_now(b, p2o_need_at(b, i));
        if (now.origin >= NEED_UNSEEN || (now.kind != NEED_LE && r->lo != r->hi) ||
            (now.loc != 0) != with_place)
            continue;
        if (r->lo != NO_LOWER && holds_at(p, b, &now, sym, r->lo) == NO)
            return refuse_size(p, &now, r->expr, sym, r->lo);
        if (r->hi != NO_UPPER && holds_at(p, b, &now, sym, r->hi) == NO)
            return refuse_size(p, &now, r->expr, sym, r->hi);
    }
    return true;
}

/* Of NEED_LE and NEED_EQ, for all sizes. */
static Answer need_answer(Dims *t, const Need *now)
{
    return now->kind == NEED_LE ? p2o_dim_le(t, now->a, now->b) : p2o_dim_eq(t, now->a, now->b);
}

static bool is_violated(Dims *t, const Need *now)
{
    return now->a && now->b && now->origin < NEED_UNSEEN && need_answer(t, now) == NO;
}

static bool report_violated(const Program *p, Bindings *b)
{
    bool found = false;
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        Need        now = need_now(b, n);
        if (!is_violated(p->dims, &now))
            continue;
        p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, n->loc, "give sizes that fit",
                        "the model needs %s, and the sizes asked for say %s %s %s", need_text(p, n),
                        p2o_dim_text(p->dims, now.a), n->kind == NEED_LE ? "<=" : "=",
                        p2o_dim_text(p->dims, now.b));
        found = true;
    }
    return found;
}

/* Guards first: of two needs that say the same, the one that quotes more is kept. */
bool p2o_range_collect(Program *p, Bindings *b)
{
    Guards guards = parse_guards(p);
    for (size_t i = 0; i < guards.n; i++) {
        Need n;
        if (!guards.at[i] || !p2o_guard_need(p, guards.at[i], &n))
            continue;
        n.by = p2o_guard_by(p, guards.at[i]);
        n.guard = guards.at[i];
        p2o_need(b, n);
    }
    for (size_t i = 0; i < p->ranges.n; i++) {
        const ProgramRange *r = &p->ranges.at[i];
        if (!r->dim || !is_of_inputs(p, r->dim))
            continue;
        static const char by[] = "the capture's range";
        NeedOrigin        below = is_artefact(p, b, &guards, r) ? NEED_UNSEEN : NEED_OF_RANGE;
        Dim               lo = p2o_dim_int(p->dims, r->lo), hi = p2o_dim_int(p->dims, r->hi);
        if (r->lo != NO_LOWER)
            p2o_need(b, (Need){ NEED_LE, lo, r->dim, by, 0, .origin = below });
        if (r->hi != NO_UPPER)
            p2o_need(b, (Need){ NEED_LE, r->dim, hi, by, 0, .origin = NEED_OF_RANGE });
    }
    return !report_violated(p, b);
}

/* An input's axis that follows others. */
static void need_sizes(const Program *p, Bindings *b)
{
    for (size_t i = 0; i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        for (int k = 0; v && k < v->type.shape.rank; k++) {
            Dim size = p2o_resolve(b, v->type.shape.at[k]), zero = p2o_dim_int(p->dims, 0);
            if (p2o_dim_le(p->dims, zero, size) != YES)
                p2o_need(b, (Need){ .kind = NEED_LE, .a = zero, .b = size,
                                    .by = p2o_printf(p->arena, "axis %d of '%s'", k,
                                                     p->inputs.at[i].name) });
        }
    }
}

/* c*s + d >= 0 bounds s. */
static void tighten(Dims *t, Dim room, Dim sym, int64_t *lo, int64_t *hi)
{
    OneSym  zero = { .sym = sym, .value = 0 };
    int64_t c = 0, d;
    for (int i = 0; i < p2o_dim_nterm(room); i++) {
        const DimTerm *x = p2o_dim_term(room, i);
        if (x->natom > 1 || (x->natom == 1 && (x->atom[0] != sym || x->power[0] != 1)))
            return;
        c = x->natom ? x->coef : c;
    }
    if (c == 0 || !p2o_dim_eval(t, room, one_value, &zero, &d))
        return;
    int64_t q = c > 0 ? -d / c + (-d % c > 0) : d / -c;
    if (c > 0 && q > *lo)
        *lo = q;
    if (c < 0 && q < *hi)
        *hi = q;
}

/* What one need says of a size by itself. */
static void bounds_by(const Program *p, Bindings *b, const Need *n, Dim sym, int64_t *lo,
                      int64_t *hi)
{
    Need now = need_now(b, n);
    Dim  room = n->kind == NEED_LE ? p2o_dim_sub(p->dims, now.b, now.a) : NULL;
    if (room)
        tighten(p->dims, room, sym, lo, hi);
}

/* What the origins from..to say of a size. */
static void bounds_by_origins(const Program *p, Bindings *b, NeedOrigin from, NeedOrigin to,
                              Dim sym, int64_t *lo, int64_t *hi)
{
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        if (n->origin >= from && n->origin <= to)
            bounds_by(p, b, n, sym, lo, hi);
    }
}

/* The least size that was seen; NO_LOWER where nothing speaks of it. */
int64_t p2o_range_seen(const Program *p, Bindings *b, Dim sym)
{
    int64_t lo = NO_LOWER, hi = NO_UPPER;
    bounds_by_origins(p, b, NEED_UNSEEN, NEED_UNSEEN, sym, &lo, &hi);
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        int64_t     claim = NO_LOWER;
        const Need *n = p2o_need_at(b, i);
        if (n->origin == NEED_SEEN)
            bounds_by(p, b, n, sym, &claim, &hi);
        if (claim != NO_LOWER && claim < lo)
            lo = claim;
    }
    return lo;
}

void p2o_range_claim(Program *p, Bindings *b, Dim sym, int64_t least)
{
    p2o_need(b, (Need){ NEED_LE, p2o_dim_int(p->dims, least), sym, "another capture", 0,
                        .origin = NEED_SEEN });
}

void p2o_range_needed(const Program *p, Bindings *b, Dim sym, int64_t *lo, int64_t *hi)
{
    p2o_dim_range(p->dims, sym, lo, hi);
    bounds_by_origins(p, b, NEED_OF_OPERATOR, NEED_OF_GUARD, sym, lo, hi);
}

void p2o_range_of(const Program *p, Bindings *b, Dim sym, int64_t *lo, int64_t *hi)
{
    p2o_range_needed(p, b, sym, lo, hi);
    int64_t seen = p2o_range_seen(p, b, sym);
    if (seen > *lo)
        *lo = seen;
}

/* The only size in a need that bounds it: "4 <= seq".  NULL where another need bounds it more;
 * *said is false where the need is none of that kind. */
static const char *bound_text(const Program *p, Bindings *b, const Need *n, bool *said)
{
    OneSym  one = { .sym = NULL };
    int64_t lo = NO_LOWER, hi = NO_UPPER, all_lo, all_hi;
    Dim     room = n->kind == NEED_LE ? p2o_dim_sub(p->dims, n->b, n->a) : NULL;
    if (room)
        p2o_dim_symbols(room, note_sym, &one);
    if (one.n == 1)
        tighten(p->dims, room, one.sym, &lo, &hi);
    *said = lo != NO_LOWER || hi != NO_UPPER;
    if (!*said)
        return NULL;
    p2o_range_needed(p, b, one.sym, &all_lo, &all_hi);
    if (hi == NO_UPPER && lo >= all_lo)
        return p2o_printf(p->arena, "%lld <= %s", (long long)lo, p2o_dim_name(one.sym));
    if (lo == NO_LOWER && hi <= all_hi)
        return p2o_printf(p->arena, "%s <= %lld", p2o_dim_name(one.sym), (long long)hi);
    return NULL;
}

const char *p2o_range_need(const Program *p, Bindings *b, const Need *n)
{
    Need now = need_now(b, n);
    bool said;
    if (n->kind == NEED_GUARD)
        return p2o_guard_settled(n->guard)
                   ? NULL
                   : p2o_guard_python(n->guard, p->dims, p2o_guard_sizes(p, b, n->guard));
    if (!now.a || !now.b || need_answer(p->dims, &now) == YES || n->origin == NEED_SEEN)
        return NULL;
    const char *text = bound_text(p, b, &now, &said);
    if (said && n->origin == NEED_UNSEEN)
        return NULL;                            /* a least size, which is said by itself */
    if (said || (n->guard && p2o_guard_settled(n->guard)))
        return text;
    return p2o_printf(p->arena, "%s %s %s", p2o_dim_python(p->dims, now.a),
                      n->kind == NEED_LE ? "<=" : "==", p2o_dim_python(p->dims, now.b));
}

/* The sizes of the inputs, each once. */
typedef struct InputSyms {
    Arena   *arena;
    VEC(Dim) all;
} InputSyms;

static void add_input_sym(void *user, Dim sym)
{
    InputSyms *s = user;
    for (size_t i = 0; i < s->all.n; i++)
        if (s->all.at[i] == sym)
            return;
    VEC_PUSH(s->arena, &s->all, sym);
}

static InputSyms input_syms(const Program *p, Bindings *b)
{
    InputSyms s = { .arena = p->arena };
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Type *t = &p->main->inputs.at[i]->type;
        for (int k = 0; k < t->shape.rank; k++)
            p2o_dim_symbols(p2o_resolve(b, t->shape.at[k]), add_input_sym, &s);
        if (t->kind == TY_INT && t->value)
            p2o_dim_symbols(p2o_resolve(b, t->value), add_input_sym, &s);
    }
    return s;
}

/* The first guard that bounds the size by so much, from below or from above. */
static const char *bounding_guard(const Program *p, Bindings *b, Dim sym, int64_t bound, bool above)
{
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        int64_t     lo = NO_LOWER, hi = NO_UPPER;
        const Need *n = p2o_need_at(b, i);
        bounds_by(p, b, n, sym, &lo, &hi);
        if ((n->origin == NEED_OF_GUARD || n->origin == NEED_UNSEEN) && (above ? hi : lo) == bound)
            return n->by;
    }
    return "the capture's guards";
}

/* An axis that is good at 12 and 13 is no dynamic one. */
static bool check_widths(const Program *p, Bindings *b)
{
    enum { PART = 4 };                  /* of the captured size: a narrower range is none */
    InputSyms s = input_syms(p, b);
    bool      ok = true;
    for (size_t i = 0; i < s.all.n; i++) {
        int64_t lo = NO_LOWER, hi = NO_UPPER, captured;
        Dim     sym = s.all.at[i];
        bounds_by_origins(p, b, NEED_OF_GUARD, NEED_UNSEEN, sym, &lo, &hi);
        if (lo < 0 || hi == NO_UPPER || !p2o_hint_at(b, sym, 0, &captured) ||
            hi - lo + 1 >= captured / PART + (captured % PART != 0))
            continue;
        const char *low = bounding_guard(p, b, sym, lo, false);
        const char *high = bounding_guard(p, b, sym, hi, true);
        const char *both = p2o_printf(p->arena, "%s and %s", low, high);
        ok = p2o_refuse_sizes(p, b, sym, lo, hi, same(low, high) ? low : both);
    }
    return ok;
}

/* What the capture itself says of sizes is said again: at others the file is another program's. */
static void note_capture(const Program *p, Bindings *b)
{
    Map said = { .arena = p->arena };
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        bool        of_capture = n->origin == NEED_OF_RANGE || n->origin == NEED_OF_GUARD;
        const char *text = of_capture ? p2o_range_need(p, b, n) : NULL;
        if (!text || p2o_map_get(&said, str_of(text)))
            continue;
        map_put(&said, str_of(text), &said);
        p2o_diag(p->diags, DIAG_NOTE, n->loc, "the model was captured for %s only: %s", text,
                 n->by);
    }
}

static int64_t asked_least(const Program *p, Bindings *b, Dim sym)
{
    for (size_t i = 0; i < p->declared.n; i++)
        if (p2o_resolve(b, p->declared.at[i].dim) == sym)
            return p->declared.at[i].lo;
    return NO_LOWER;
}

/* One note for all sizes whose least values were not captured, those with the same one together; a
 * warning where the user asks for them. */
static void note_unseen(const Program *p, Bindings *b)
{
    InputSyms s = input_syms(p, b);
    Map       done = { .arena = p->arena };
    Buf       out = { .arena = p->arena };
    bool      asked = false;
    for (size_t i = 0; i < s.all.n; i++) {
        int64_t least = p2o_range_seen(p, b, s.all.at[i]), lo, hi;
        p2o_range_needed(p, b, s.all.at[i], &lo, &hi);
        if (least <= lo || least < 2 || p2o_map_get(&done, str_of(p2o_dim_name(s.all.at[i]))))
            continue;
        for (size_t k = i; k < s.all.n; k++) {
            p2o_range_needed(p, b, s.all.at[k], &lo, &hi);
            if (p2o_range_seen(p, b, s.all.at[k]) != least || least <= lo)
                continue;
            int64_t want = asked_least(p, b, s.all.at[k]);
            asked |= want != NO_LOWER && want < least;
            map_put(&done, str_of(p2o_dim_name(s.all.at[k])), &done);
            p2o_putf(&out, "%s%s", out.n ? ", " : "", p2o_dim_name(s.all.at[k]));
        }
        p2o_putf(&out, ": sizes below %lld", (long long)least);
    }
    if (out.n)
        p2o_diag(p->diags, asked ? DIAG_WARN : DIAG_NOTE, 0,
                 "%s were not captured; give a capture at 1 with --check to claim them", out.at);
}

bool p2o_range_check(Program *p, Bindings *b)
{
    need_sizes(p, b);
    bool ok = !report_violated(p, b) && p2o_judge_guards(p, b) && check_widths(p, b);
    for (size_t i = 0; ok && i < p->declared.n; i++)
        ok = check_declared(p, b, &p->declared.at[i], true) &&
             check_declared(p, b, &p->declared.at[i], false);
    if (ok) {
        note_capture(p, b);
        note_unseen(p, b);
    }
    return ok;
}
