#include "dyn/settle.h"

#include <math.h>

#include "aten/infer.h"
#include "aten/vmap.h"
#include "base/num.h"
#include "dyn/allowed.h"
#include "dyn/constant.h"
#include "dyn/demand.h"
#include "dyn/float.h"
#include "dyn/held.h"
#include "dyn/present.h"
#include "dyn/range.h"
#include "dyn/seen.h"
#include "dyn/site.h"

enum {
    BITS_PRESENT = 4,                   /* of another tensor's size, and which of them */
    ENOUGH_MOVED = 4                    /* bits by which sizes moved: what stayed the same then is a
                                         * number, if the line may have it at all */
};

typedef struct Settling {
    const Lineup *lineup;
    Program      *prog;
    Bindings     *bind;
    Sites         sites;
    VEC(Dim)      symbols;              /* of the inputs: what is really dynamic */
    Bases         bases;
    PresentSizes  present;
    Map           fixed;                /* sizes of weights and inputs that never change */
    Map           places;               /* Call * -> which of the program's calls, from 1 */
    Map           readings;             /* values -> Readings * */
    VEC(Readings *) all;
    bool          read;                 /* over the present symbols */
    bool          too_many;             /* symbols: some are not looked at */
    Allowed       allowed;
    Solved       *solved;               /* what sizes were taken for that a demand tells: the
                                         * last; readings have to agree where they hold only */
    double        moved;                /* Evidence.moved */
    double        axis[NPROBE];         /* of the site that is weighed */
    size_t        errors;
} Settling;

static void add_input_symbol(void *user, Dim sym)
{
    Settling *s = user;
    for (size_t i = 0; i < s->symbols.n; i++)
        if (s->symbols.at[i] == sym)
            return;
    VEC_PUSH(s->prog->arena, &s->symbols, sym);
}

static void find_symbols(Settling *s)
{
    memset(&s->symbols, 0, sizeof s->symbols);  /* earlier readings keep the earlier list */
    for (size_t i = 0; i < s->prog->main->inputs.n; i++) {
        const Type *t = &s->prog->main->inputs.at[i]->type;
        for (int k = 0; k < t->shape.rank; k++)
            p2o_dim_symbols(p2o_resolve(s->bind, t->shape.at[k]), add_input_symbol, s);
        if (t->kind == TY_INT && t->value)
            p2o_dim_symbols(p2o_resolve(s->bind, t->value), add_input_symbol, s);
    }
    p2o_bases_start(&s->bases, s->bind, s->symbols.at, s->symbols.n);
    for (size_t i = 0; i < s->symbols.n; i++)
        s->too_many |= !p2o_bases_add(&s->bases, s->bind, s->symbols.at[i]);
}

/* An axis that the capture fixed is dynamic now, or there are several captures. */
static bool has_sites(const Program *p, const Bindings *b)
{
    if (p2o_nfit(b) > 1)
        return true;
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Var *v = p->main->inputs.at[i];
        for (int k = 0; k < v->type.shape.rank; k++)
            if (p2o_dim_is_int(v->recorded.shape.at[k], NULL) &&
                !p2o_dim_is_int(v->type.shape.at[k], NULL))
                return true;
    }
    return false;
}

static Readings *readings_of(Settling *s, const Site *x)
{
    struct Key { double at[MAX_CAPTURES]; bool whole; } *key = NEW(s->prog->arena, struct Key);
    key->whole = x->whole;
    for (int k = 0; k < p2o_ncapture(s->bind); k++)
        key->at[k] = x->at[k];
    void **slot = p2o_map_slot(&s->readings, (Str){ (const char *)key, sizeof *key });
    if (!*slot) {
        Readings *r = NEW(s->prog->arena, Readings);
        r->whole = x->whole;
        memcpy(r->want, key->at, sizeof r->want);
        VEC_PUSH(s->prog->arena, &s->all, r);
        *slot = r;
    }
    return *slot;
}

/* Once for all sites: the values are known from the start. */
static void read_all(Settling *s)
{
    if (s->read)
        return;
    s->read = true;
    find_symbols(s);
    for (size_t i = 0; i < s->sites.list.n; i++) {
        Readings *r = readings_of(s, s->sites.list.at[i]);
        r->n = 0;
        r->refuted = 0;
    }
    p2o_readings(s->prog->arena, &s->bases, s->all.at, s->all.n);
}

/* What earlier rounds found is kept for as long as the symbols stay the same. */
static void look_again(Settling *s)
{
    find_symbols(s);
    size_t n = s->symbols.n;
    if (s->present.nsymbol != n || !s->present.symbols ||
        memcmp(s->present.symbols, s->symbols.at, n * sizeof *s->symbols.at)) {
        p2o_present_start(&s->present, s->prog, s->bind, s->symbols.at, n);
        p2o_allowed_start(&s->allowed, s->prog->arena, s->bind, s->symbols.at, n);
    }
    p2o_present_find(&s->present);
    p2o_allowed_find(&s->allowed);
    if (s->solved)
        p2o_allowed_find(&s->solved->allowed);
}

/* Of a call that is not in the program's own list, what was made in it is not known to come
 * before. */
static size_t place_of(const Settling *s, const Call *c)
{
    void *at = p2o_map_get(&s->places, (Str){ (const char *)&c, sizeof c });
    return at ? (size_t)(uintptr_t)at - 1 : 0;
}

static void find_places(Settling *s)
{
    const Body *b = s->prog->main;
    const Call **key = NEW_N(s->prog->arena, const Call *, b->calls.n + 1);
    s->places = (Map){ .arena = s->prog->arena };
    for (size_t i = 0; i < b->calls.n; i++) {
        key[i] = b->calls.at[i];
        *p2o_map_slot(&s->places, (Str){ (const char *)&key[i], sizeof *key }) =
            (void *)(uintptr_t)(i + 1);
    }
}

static const Present *present_as(const Settling *s, const Site *x)
{
    int64_t first;
    return x->whole && p2o_whole(x->at[0], &first) ? p2o_present_as(&s->present, first) : NULL;
}

static void add_own_sizes(const Settling *s, Bases *b, const Arg *x)
{
    for (int i = 0; x->kind == ARG_VAR && i < x->var->type.shape.rank; i++) {
        Dim d = p2o_resolve(s->bind, x->var->type.shape.at[i]);
        if (d && !p2o_dim_is_int(d, NULL) && !p2o_dim_is_sym(d) && !p2o_has_soft(s->bind, d))
            p2o_bases_add(b, s->bind, d);
    }
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        add_own_sizes(s, b, &x->items[i]);
}

static const Readings *where_solved(const Settling *s, const Readings *r)
{
    return s->solved ? p2o_readings_at(s->prog->arena, r, &s->solved->probes) : r;
}

/* Readings over the inputs' sizes, and over those of the call's own tensors that are made of
 * them. */
static const Readings *own_readings(Settling *s, const Site *x)
{
    Bases b;
    read_all(s);
    const Readings *shared = readings_of(s, x);
    p2o_bases_start(&b, s->bind, s->symbols.at, s->symbols.n);
    for (int i = 0; i < x->call->nargs && x->whole; i++)
        add_own_sizes(s, &b, &x->call->args[i]);
    int            nown = b.n;
    const Present *p = present_as(s, x);
    if (!nown && !p)
        return where_solved(s, shared);
    for (size_t i = 0; i < s->symbols.n; i++)
        p2o_bases_add(&b, s->bind, s->symbols.at[i]);
    Bases    *own = NEW(s->prog->arena, Bases);
    Readings *r = NEW(s->prog->arena, Readings);
    *own = b;
    *r = *shared;
    if (nown)
        p2o_readings_own(s->prog->arena, own, nown, r);
    for (size_t i = 0; p && i < p->list.n && p->list.at[i].made < place_of(s, x->call); i++)
        p2o_readings_plain(s->prog->arena, p->list.at[i].as,
                           BITS_PRESENT + log2((double)s->present.n), r);
    return where_solved(s, r);
}

static bool waits_for_sizes(const Settling *s, const Arg *x)
{
    bool open = false;
    for (int k = 0; x->kind == ARG_VAR && k < x->var->type.shape.rank; k++)
        open |= p2o_has_soft(s->bind, x->var->type.shape.at[k]);
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n && !open; i++)
        open = waits_for_sizes(s, &x->items[i]);
    return open;
}

static bool call_waits(const Settling *s, const Call *c)
{
    for (int k = 0; k < c->nargs; k++)
        if (waits_for_sizes(s, &c->args[k]))
            return true;
    return false;
}

static bool is_settled(const Settling *s, const Site *x)
{
    return x->open && p2o_is_bound(s->bind, x->open);
}

static void bind_site(Settling *s, Site *x, Dim to)
{
    if (x->negative)
        to = p2o_dim_neg(s->prog->dims, to);
    to = p2o_resolve(s->bind, to);
    p2o_bind(s->bind, x->open, to);
    p2o_bind_log(s->bind, BIND_EVIDENCE, x->open, to,
                 p2o_verdict_because(s->prog->arena, &x->verdict), x->call->loc);
    x->done = true;
}

/* By how much sizes differ from those of the first capture, over all captures. */
static double bits_moved(const Settling *s)
{
    double bits = 0;
    for (int k = 1; k < p2o_ncapture(s->bind); k++) {
        double most = 0;
        for (size_t i = 0; i < s->symbols.n; i++) {
            int64_t first, v;
            if (p2o_hint_at(s->bind, s->symbols.at[i], 0, &first) &&
                p2o_hint_at(s->bind, s->symbols.at[i], k, &v))
                most = fmax(most, fabs((double)(v - first)));
        }
        bits += log2(1 + most);
    }
    return bits;
}

static void add_fixed(Settling *s, int64_t size)
{
    int64_t *key = NEW(s->prog->arena, int64_t);
    *key = size;
    if (size > 1)
        *p2o_map_slot(&s->fixed, (Str){ (const char *)key, sizeof *key }) = s;
}

/* Constants that forward() made are no part of the model. */
static const bool *find_made(const Settling *s)
{
    bool *made = NEW_N(s->prog->arena, bool, (size_t)s->prog->nvar + 1);
    for (size_t i = 0; i < s->lineup->calls.n; i++) {
        const Call *c = s->lineup->calls.at[i].call;
        if (c->op && c->op->lifts && c->nargs && c->args[0].kind == ARG_VAR)
            made[c->args[0].var->id] = true;
    }
    return made;
}

static void find_fixed(Settling *s)
{
    const bool *made = find_made(s);
    s->fixed = (Map){ .arena = s->prog->arena };
    for (size_t i = 0; i < s->prog->weights.n; i++) {
        const Var    *v = s->prog->weights.at[i];
        const Tensor *t = made[v->id] ? NULL : v->tensor;
        for (int k = 0; t && k < t->rank; k++)
            add_fixed(s, t->sizes[k]);
    }
    for (size_t i = 0; i < s->prog->main->inputs.n; i++) {
        Shape   shape = s->prog->main->inputs.at[i]->type.shape;
        int64_t size;
        for (int k = 0; k < shape.rank; k++)
            if (p2o_dim_is_int(shape.at[k], &size))
                add_fixed(s, size);
    }
}

/* Bits of a whole number that the line spells or the model has as a size; INFINITY: neither. */
static double bits_if_known(const Settling *s, const Evidence *e, double number)
{
    enum { SPELLED = 3, SIZE = 6 };     /* a place in the line; one of the model's fixed sizes */
    int64_t size = fabs(number) < 1e9 ? (int64_t)number : 0;
    if (p2o_spelled_times(e->line, number) > 0)
        return SPELLED;
    if ((double)size != number)
        return INFINITY;
    return p2o_map_get(&s->fixed, (Str){ (const char *)&size, sizeof size }) ? SIZE : INFINITY;
}

/* sqrt(8) where the line has an 8 or the model is 8 wide: a number that is known by itself,
 * whatever sizes were 8 in the captures too.  0: it is not. */
static double bits_known(const Settling *s, const Site *x, const Evidence *e)
{
    double within[NWITHIN], of[NWITHIN], v = fabs(x->at[0]);
    if (x->role != NUMBER_FACTOR || v == 0)
        return 0;
    double best = bits_if_known(s, e, v);
    for (int i = x->whole ? 0 : p2o_number_within(v, within, of); i-- > 0;)
        best = fmin(best, of[i] + bits_if_known(s, e, within[i]));
    return isfinite(best) ? best : 0;
}

static Evidence evidence_of(Settling *s, const Site *x)
{
    Evidence e = p2o_site_evidence(&s->sites, x);
    Dim      axis = x->role == NUMBER_PLACE && !x->negative ? e.own : NULL;
    int64_t  v;
    e.allowed = s->solved ? s->solved->allowed.at : s->allowed.at;
    e.moved = s->moved;
    e.known = bits_known(s, x, &e);
    if (e.spelled == SPELLED_SHARED)
        e.spelled = s->moved >= ENOUGH_MOVED ? SPELLED_YES : SPELLED_NO;
    for (int i = 0; axis && i < NPROBE; i++) {
        bool known = s->solved ? p2o_probe_at(s->prog->dims, &s->solved->probes, axis, i, &v)
                               : p2o_probe(s->prog->dims, s->symbols.at, s->symbols.n, axis, i,
                                           &v);
        s->axis[i] = known ? (double)v : NAN;
    }
    e.axis = axis ? s->axis : NULL;
    return e;
}

/* The axis of an input that has the size; false: none, or it is not the only one of that input. */
static bool only_axis_of(const Settling *s, Dim d, const Var **input, int *axis)
{
    int n = 0;
    for (size_t i = 0; i < s->prog->main->inputs.n && !n; i++) {
        *input = s->prog->main->inputs.at[i];
        for (int k = 0; k < (*input)->type.shape.rank; k++) {
            bool has = p2o_resolve(s->bind, (*input)->type.shape.at[k]) == d;
            *axis = has ? k : *axis;
            n += has;
        }
    }
    return n == 1;
}

/* The same axis of two inputs, which nobody named and no capture tells apart (ids and their mask),
 * may each be what a site follows: they are taken as one size, and that is said. */
static bool take_as_one(Settling *s, const Site *x, const Reading *a, const Reading *b)
{
    const Var *first, *second;
    int        i = 0, j = 0;
    int64_t    v, w;
    if (!a || !b || a->expr->op != EXPR_SIZE || b->expr->op != EXPR_SIZE)
        return false;
    Dim  one = a->of->dim[a->expr->base], other = b->of->dim[b->expr->base];
    bool alike = p2o_dim_is_sym(one) && p2o_dim_is_sym(other) &&
                 p2o_role(s->bind, one) == ROLE_FILE &&
                 p2o_role(s->bind, other) == ROLE_FILE && only_axis_of(s, one, &first, &i) &&
                 only_axis_of(s, other, &second, &j) && first != second && i == j;
    for (int k = 0; k < p2o_ncapture(s->bind) && alike; k++)
        alike = p2o_hint_at(s->bind, one, k, &v) && p2o_hint_at(s->bind, other, k, &w) && v == w;
    if (!alike)
        return false;
    p2o_bind(s->bind, other, one);
    s->read = false;
    p2o_diag_advise(s->prog->diags, DIAG_NOTE, x->call->loc,
                    "name them with --input to keep them apart",
                    "%s and %s were equal in every capture: they are taken as one size",
                    p2o_dim_name(one), p2o_dim_name(other));
    return true;
}

/* A slice of the whole axis in all captures: x[k : n - k] at sizes where k is 0, perhaps. */
static bool cuts_nothing(const Evidence *e, Dim end)
{
    return e->role == NUMBER_PLACE && end && end == e->own && e->moved < ENOUGH_MOVED;
}

/* One that needs nothing is what was meant, whatever it costs, before others that need squares. */
static bool has_idle_reading(Settling *s, const Site *x, const Demand *d, const Unknowns *of)
{
    const Readings *r = own_readings(s, x);
    for (int i = 0; i < r->n; i++)
        if (p2o_demand_is_idle(s->bind, d, of, s->symbols.at, s->symbols.n,
                               p2o_expr_dim(r->list[i].of, r->list[i].expr)))
            return true;
    return false;
}

static Site *site_of(const Settling *s, Dim open)
{
    for (size_t i = 0; i < s->sites.list.n; i++)
        if (s->sites.list.at[i]->open == open)
            return s->sites.list.at[i];
    return NULL;
}

/* It solves the demand at all probes. */
static bool solves(const Settling *s, const Reading *r)
{
    for (int i = 0; i < NPROBE; i++)
        if (s->solved->unknown[i] && r->at[i] != (double)s->solved->unknown[i])
            return false;
    return true;
}

/* What all sites that stand for the unknown are taken for; NULL: they do not agree, or the
 * captures do not say. */
static Dim read_unknown(Settling *s, const Unknowns *of)
{
    Dim to = NULL;
    for (int i = 0; i < of->n; i++) {
        Site *x = site_of(s, of->at[i]);
        if (!x || x->negative || !x->whole)
            return NULL;
        Evidence        e = evidence_of(s, x);
        const Readings *r = own_readings(s, x);
        x->verdict = p2o_weigh(&e, r);
        if (x->verdict.kind != VERDICT_SIZE || !solves(s, x->verdict.best) ||
            !p2o_readings_suffice(&x->verdict, r))
            return NULL;
        Dim d = p2o_expr_dim(x->verdict.best->of, x->verdict.best->expr);
        if (!d || (to && d != to))
            return NULL;
        to = d;
    }
    return to;
}

/* Takes all open sizes that a demand tells for the one that solves it; false: none, or it does not
 * say. */
static bool take_demanded(Settling *s, const Site *x)
{
    Unknowns      of;
    const Demand *d = p2o_demand_on(s->bind, x->open, &of);
    if (!d || has_idle_reading(s, x, d, &of))
        return false;
    Solved *before = s->solved;
    s->solved = p2o_demand_solve(s->prog->arena, s->bind, d, &of, s->symbols.at, s->symbols.n,
                                 before);
    if (s->solved)
        p2o_allowed_find(&s->solved->allowed);
    Dim to = s->solved ? read_unknown(s, &of) : NULL;
    if (!to)
        s->solved = before;
    for (int i = 0; to && i < of.n; i++)
        bind_site(s, site_of(s, of.at[i]), to);
    if (to)                                     /* whatever the operator makes of it from now on */
        p2o_need(s->bind, (Need){ NEED_EQ, p2o_resolve(s->bind, d->a), p2o_resolve(s->bind, d->b),
                                  d->by, d->loc });
    return to != NULL;
}

/* Takes what the captures say of an open site; false: they do not say. */
static bool take_verdict(Settling *s, Site *x, bool numbers)
{
    if (take_demanded(s, x))
        return true;
    Evidence e = evidence_of(s, x);
    int64_t  number;
    x->verdict = p2o_weigh(&e, own_readings(s, x));
    if (x->verdict.kind == VERDICT_NUMBER && numbers && p2o_whole(x->at[0], &number)) {
        bind_site(s, x, p2o_dim_int(s->prog->dims, number));
        return true;
    }
    Dim to = x->verdict.kind == VERDICT_SIZE
                 ? p2o_expr_dim(x->verdict.best->of, x->verdict.best->expr)
                 : NULL;
    if (cuts_nothing(&e, to))
        return false;
    if (to)
        bind_site(s, x, to);
    return to || (x->differs && take_as_one(s, x, x->verdict.best, x->verdict.rival));
}

/* Sizes that differ between captures first: they say what numbers stand beside.  Then numbers that
 * their lines spell, where no rule made them sizes; then all. */
typedef enum Turn { TURN_DIFFERENT, TURN_SPELLED, TURN_ALL } Turn;

static bool settle_open(Settling *s, Turn turn)
{
    size_t before;
    do {
        if (!p2o_infer(s->prog, s->bind))
            return false;
        before = p2o_bindings_count(s->bind);
        look_again(s);
        for (int waiting = 0; waiting < 2 && p2o_bindings_count(s->bind) == before; waiting++) {
            for (size_t i = 0; i < s->sites.list.n; i++) {
                Site *x = s->sites.list.at[i];
                bool  due = x->differs || turn == TURN_ALL ||
                            (turn == TURN_SPELLED && x->spelled == SPELLED_YES);
                if (!x->open || is_settled(s, x) || !due || (!waiting && call_waits(s, x->call)))
                    continue;
                if (take_verdict(s, x, turn != TURN_DIFFERENT) && waiting)
                    break;                      /* one that waited, perhaps for itself, may free
                                                 * the others */
            }
        }
    } while (p2o_bindings_count(s->bind) != before);
    return true;
}

static const char *values_text(const Settling *s, const Site *x)
{
    Buf b = { .arena = s->prog->arena };
    int n = p2o_ncapture(s->bind);
    for (int k = 0; k < (x->differs ? n : 1); k++)
        p2o_putf(&b, "%s%s%.10g", !k ? "" : k == n - 1 ? " and " : ", ", x->negative ? "-" : "",
                 x->at[k]);
    return b.at;
}

static const char *advice_for(const Settling *s, Telling t)
{
    if (s->prog->unsettled || !t.text)
        return p2o_unsettled_advice(s->prog);
    return p2o_printf(s->prog->arena,
                      "a capture at %s tells which: torch.export.save(torch.export.export(model, "
                      "example(%s)), \"more.pt2\")", t.text, t.text);
}

/* Of a number that no expression gives: one more that it has to give does not help. */
static const char no_capture_tells[] =
    "give a capture with dynamic sizes, torch.export.export(.., dynamic_shapes=..): PyTorch keeps "
    "there how it is computed; or leave that axis fixed";

static void refuse_site(Settling *s, Site *x)
{
    x->refused = true;
    const Readings *r = own_readings(s, x);
    Evidence        e = evidence_of(s, x);
    Verdict         v = p2o_weigh(&e, r);
    Telling         t = { 0 };
    if (r->n || !x->differs)
        t = p2o_telling(s->prog->arena, s->bind, s->symbols.at, s->symbols.n, r->n ? r : NULL);
    const char *what = p2o_verdict_text(s->prog->arena, &e, &v);
    const char *advice = r->n || !x->differs ? advice_for(s, t) : no_capture_tells;
    p2o_diag_capture(s->prog->diags, DIAG_NOT_DYNAMIC, x->call->loc, t.json, advice,
                     "%s: a number was %s in the capture%s: %s", x->call->target, values_text(s, x),
                     p2o_ncapture(s->bind) > 1 ? "s" : "", what);
}

/* The one before it on the same line was the same: 3 and 3 of a list. */
static bool was_refused(const Settling *s, size_t i)
{
    const Site *x = s->sites.list.at[i], *before = i ? s->sites.list.at[i - 1] : x;
    return i && before->call == x->call && before->refused &&
           !memcmp(before->at, x->at, sizeof x->at);
}

static bool has_failed(const Settling *s) { return p2o_diags_errors(s->prog->diags) != s->errors; }

/* The first few: others mostly follow from them. */
static void refuse_open(Settling *s)
{
    enum { MOST = 3 };
    int n = 0;
    for (size_t i = 0; i < s->sites.list.n && n < MOST; i++) {
        Site *x = s->sites.list.at[i];
        if (was_refused(s, i))
            continue;
        if (!x->open || is_settled(s, x) || (call_waits(s, x->call) && n))
            continue;
        refuse_site(s, x);
        n++;
    }
}

/* What stands for a -1 and nothing settled. */
static void refuse_left_open(void *user, Dim sym)
{
    Settling   *s = user;
    Loc         loc = 0;
    const char *of = p2o_soft_of(s->bind, sym, &loc);
    p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, loc, p2o_unsettled_advice(s->prog),
                    "%s: a size cannot be told from the captures", of ? of : "a call");
}

/* The first only: others mostly follow from it. */
static bool refuse_unsettled(Settling *s)
{
    if (!p2o_nunsettled(s->bind))
        return false;
    const Unsettled *u = p2o_unsettled_at(s->bind, 0);
    find_symbols(s);
    Telling t = p2o_telling(s->prog->arena, s->bind, s->symbols.at, s->symbols.n, NULL);
    p2o_diag_capture(s->prog->diags, DIAG_NOT_DYNAMIC, u->loc, t.json, advice_for(s, t),
                     "%s: which of the sizes follows %s cannot be told from %s", u->target,
                     p2o_dim_text(s->prog->dims, u->what),
                     p2o_ncapture(s->bind) > 1 ? "these captures" : "one capture");
    return true;
}

/* Any reshape has room for a 1: that the others fit beside it says nothing of it. */
static bool is_doubtful_one(const Settling *s, const Site *x)
{
    int64_t v;
    return x->call->op && x->call->op->reshapes && x->spelled != SPELLED_YES &&
           p2o_dim_is_int(p2o_resolve(s->bind, x->open), &v) && v == 1;
}

/* Numbers that no rule and no search has looked at: factors, settings, pads of 0, places from the
 * end. */
static bool weigh_rest(Settling *s)
{
    enum { MOST = 3 };
    int n = 0;
    for (size_t i = 0; i < s->sites.list.n && n < MOST; i++) {
        Site *x = s->sites.list.at[i];
        if (x->done || (x->open && p2o_bind_why(s->bind, x->open) != BIND_AS_NUMBER &&
                        !is_doubtful_one(s, x)))
            continue;
        Evidence e = evidence_of(s, x);
        x->verdict = p2o_weigh(&e, own_readings(s, x));
        x->done = x->verdict.kind == VERDICT_NUMBER || was_refused(s, i);
        if (!x->done && !x->whole && x->verdict.kind == VERDICT_SIZE)
            x->done = p2o_float_calls(s->lineup->ops, s->prog, x->call, x->arg, x->verdict.best);
        if (x->done)
            continue;
        refuse_site(s, x);
        n++;
    }
    return n == 0;
}

static Found found_of(const Settling *s)
{
    return (Found){ .lineup = s->lineup, .prog = s->prog, .bind = s->bind, .sites = &s->sites,
                    .symbols = s->symbols.at, .nsymbol = s->symbols.n, .solved = s->solved };
}

/* A capture with dynamic sizes, held against others with fixed ones: sizes of 1 that they had are
 * claimed. */
static bool holds_against_checks(Settling *s)
{
    Found f = found_of(s);
    if (!p2o_literals_hold(&f) || !p2o_constants_hold(s->lineup) || !p2o_infer(s->prog, s->bind) ||
        !p2o_claims_hold(&f))
        return false;
    find_symbols(s);
    for (size_t i = 0; i < s->symbols.n; i++) {
        int64_t v, least = 2;
        bool    one = false;
        for (int k = p2o_nfit(s->bind); k < p2o_ncapture(s->bind); k++)
            if (p2o_hint_at(s->bind, s->symbols.at[i], k, &v)) {
                one |= v == 1;
                least = v < least ? v : least;
            }
        if (one)                                /* what is claimed has no gap between 0 and 2 */
            p2o_range_claim(s->prog, s->bind, s->symbols.at[i], least);
    }
    return true;
}

/* What the site was taken for, where a size might have made it; NULL: nothing to say. */
static const char *taken_text(const Settling *s, const Site *x)
{
    const Verdict *v = &x->verdict;
    if (!v->best)
        return NULL;
    return v->kind == VERDICT_SIZE ? p2o_expr_text(s->prog->arena, v->best->of, v->best->expr)
                                   : "a number";
}

/* The verdicts on numbers, for the report; those on sizes are in the log of bindings. */
static void keep_verdicts(Settling *s)
{
    for (size_t i = 0; i < s->sites.list.n; i++) {
        const Site   *x = s->sites.list.at[i];
        const char   *taken = taken_text(s, x);
        WeighedNumber w = { .loc = x->call->loc, .target = x->call->target, .taken = taken };
        if (!taken || x->role == NUMBER_SETTING || (x->open && x->verdict.kind == VERDICT_SIZE))
            continue;
        w.was = values_text(s, x);
        w.because = p2o_verdict_because(s->prog->arena, &x->verdict);
        VEC_PUSH(s->prog->arena, &s->prog->weighed, w);
    }
}

/* With several captures a number that is the same in all of them is one, if every size varies. */
static bool all_vary(Settling *s)
{
    find_symbols(s);
    for (size_t i = 0; i < s->symbols.n; i++) {
        int64_t first, v;
        bool    varies = !p2o_hint_at(s->bind, s->symbols.at[i], 0, &first);
        for (int k = 1; k < p2o_nfit(s->bind); k++)
            varies |= !p2o_hint_at(s->bind, s->symbols.at[i], k, &v) || v != first;
        if (!varies)
            return false;
    }
    return true;
}

/* A number that differs where the operator takes only one. */
static bool refuse_fixed(Settling *s)
{
    bool refused = false;
    for (size_t i = 0; i < s->sites.list.n && !refused; i++) {
        Site *x = s->sites.list.at[i];
        bool  takes_one = x->schema->base == SB_INT || x->schema->base == SB_FLOAT;
        if (!x->differs || x->open || !takes_one || p2o_op_varies(x->call->op, x->schema->name))
            continue;
        refused = true;
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, x->call->loc,
                        "it follows a size, and ONNX fixes it in the file: make it a number, or "
                        "leave that axis fixed",
                        "%s: argument '%s' was %s in the captures", x->call->target,
                        x->schema->name, values_text(s, x));
    }
    return refused;
}

/* A -1 beside open sizes is open too: what comes after may say what it is. */
static void open_hole(Bindings *b, const Call *c, const Arg *list)
{
    int64_t v, hints[MAX_CAPTURES];
    Shape   made = c->outs[0]->type.shape;
    int     hole = -1;
    bool    open = false;
    for (uint32_t i = 0; i < list->n; i++) {
        const Arg *x = &list->items[i];
        if (x->kind == ARG_INT && p2o_dim_is_int(x->i, &v) && v == -1)
            hole = (int)i;
        open |= x->kind == ARG_INT && p2o_has_soft(b, x->i);
    }
    for (int k = 0; k < p2o_ncapture(b) && open; k++)
        open = hole >= 0 && hole < made.rank && p2o_hint_at(b, made.at[hole], k, &hints[k]) &&
               hints[k] > 0;
    if (!open)
        return;
    list->items[hole].i = p2o_soft(b, hints, c->target, c->loc);
    p2o_set_hole(b, list->items[hole].i);
}

static void open_holes(Bindings *b, const Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        if (c->op && c->op->reshapes && c->nargs > 1 && c->args[1].kind == ARG_LIST && c->outs[0])
            open_hole(b, c, &c->args[1]);
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                open_holes(b, c->args[k].body);
    }
}

static bool settle_sites(Settling *s)
{
    s->sites.all_vary = all_vary(s);
    s->moved = bits_moved(s);
    p2o_sites_collect(&s->sites, s->lineup);
    if (refuse_fixed(s) || !p2o_constants(s->lineup, &s->sites))
        return false;
    find_places(s);
    find_fixed(s);
    if (!p2o_infer(s->prog, s->bind))
        return false;
    open_holes(s->bind, s->prog->main);
    if (!settle_open(s, TURN_DIFFERENT) || !settle_open(s, TURN_SPELLED) || refuse_unsettled(s) ||
        !settle_open(s, TURN_ALL))
        return false;
    look_again(s);
    refuse_open(s);
    if (s->too_many)
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, 0,
                        "give sizes that are the same one name with --input",
                        "more than %d sizes are dynamic: what numbers follow them cannot be told",
                        MAX_BASES);
    if (!has_failed(s))
        p2o_each_soft(s->bind, refuse_left_open, s);
    if (has_failed(s) || refuse_unsettled(s) || !weigh_rest(s) || !p2o_infer(s->prog, s->bind))
        return false;
    find_symbols(s);
    Found f = found_of(s);
    if (!p2o_found_holds(&f))
        return false;
    keep_verdicts(s);
    p2o_claim_seen(s->prog, s->bind, s->symbols.at, s->symbols.n);
    return p2o_claims_hold(&f);
}

/* A number that the user gives for a size that the capture fixed at another. */
static bool pin_sizes(Program *p, Bindings *b)
{
    bool pinned = false;
    for (size_t i = 0; i < p->declared.n; i++) {
        const ProgramRange *r = &p->declared.at[i];
        Dim                 sym = p2o_resolve(b, r->dim);
        if (r->lo != r->hi || !p2o_dim_is_sym(sym))
            continue;
        p2o_bind(b, sym, p2o_dim_int(p->dims, r->lo));
        pinned = p->proven = true;
    }
    return !pinned || p2o_infer(p, b);
}

bool p2o_settle(const Lineup *l, Bindings *b)
{
    Program *p = l->p[0];
    Settling s = { .lineup = l, .prog = p, .bind = b, .sites = { .prog = p, .bind = b },
                   .readings = { .arena = p->arena }, .errors = p2o_diags_errors(p->diags) };
    return p2o_range_collect(p, b) &&
           (has_sites(p, b) ? settle_sites(&s) : holds_against_checks(&s)) &&
           p2o_range_check(p, b) && pin_sizes(p, b) && p2o_vmap(l->ops, p, b);
}
