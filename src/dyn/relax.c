#include "dyn/relax.h"

#include "aten/infer.h"
#include "aten/ops.h"
#include "dyn/numbers.h"
#include "dyn/range.h"

#define ANOTHER_CAPTURE "another capture at other sizes would settle it"

typedef struct Scope {                  /* sizes of the inputs that are really dynamic */
    Dims     *dims;
    Bindings *bind;
    VEC(Dim)  syms;
} Scope;

static void add_symbol(void *user, Dim sym)
{
    Scope *s = user;
    for (size_t i = 0; i < s->syms.n; i++)
        if (s->syms.at[i] == sym)
            return;
    VEC_PUSH(p2o_dims_arena(s->dims), &s->syms, sym);
}

static Scope input_symbols(const Program *p, Bindings *b)
{
    Scope s = { .dims = p->dims, .bind = b };
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Type *t = &p->main->inputs.at[i]->type;
        for (int k = 0; k < t->shape.rank; k++)
            p2o_dim_symbols(p2o_resolve(b, t->shape.at[k]), add_symbol, &s);
        if (t->kind == TY_INT && t->value)
            p2o_dim_symbols(p2o_resolve(b, t->value), add_symbol, &s);
    }
    return s;
}

static bool needs_relaxing(const Program *p, const Bindings *b)
{
    if (p2o_ncapture(b) > 1)
        return true;
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Var *v = p->main->inputs.at[i];
        for (int k = 0; k < v->type.shape.rank; k++)
            if (p2o_dim_is_int(v->recorded.shape.at[k], NULL) && !p2o_dim_is_int(v->type.shape.at[k], NULL))
                return true;
    }
    return false;
}

static void relax_item(Bindings *b, const Call *c, Arg *x)
{
    int64_t v, hints[MAX_CAPTURES];
    if (x->kind != ARG_INT || !p2o_dim_is_int(x->i, &v) || v < 1 || v == INT64_MAX)
        return;
    for (int k = 0; k < p2o_ncapture(b); k++)
        hints[k] = v;
    x->i = p2o_soft(b, hints, c->target, c->loc);
}

static void relax_body(Bindings *b, Body *body);

static bool is_reshape(const Call *c)
{
    return same(c->target, "aten::view") || same(c->target, "aten::reshape") || same(c->target, "aten::_unsafe_view");
}

/* A -1 beside open sizes is open too: what comes after may say what it is, and so what they are. */
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
        open = hole >= 0 && hole < made.rank && p2o_hint_at(b, made.at[hole], k, &hints[k]) && hints[k] > 0;
    if (!open)
        return;
    list->items[hole].i = p2o_soft(b, hints, c->target, c->loc);
    p2o_set_hole(b, list->items[hole].i);
}

static void open_holes(Bindings *b, const Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        if (is_reshape(c) && c->nargs > 1 && c->args[1].kind == ARG_LIST && c->outs[0])
            open_hole(b, c, &c->args[1]);
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                open_holes(b, c->args[k].body);
    }
}

/* 0 is left alone: it rarely is a size. */
static void relax_call(Bindings *b, Call *c)
{
    for (int i = 0; i < c->nargs; i++) {
        const SchemaArg *a = &c->schema->args[i];
        Arg             *x = &c->args[i];
        if (x->kind == ARG_BODY)
            relax_body(b, x->body);
        if (a->base != SB_SYMINT && !p2o_op_counts(c->op, a->name))
            continue;
        if (x->kind == ARG_LIST)
            for (uint32_t k = 0; k < x->n; k++)
                relax_item(b, c, &x->items[k]);
        else
            relax_item(b, c, x);
    }
}

static void relax_body(Bindings *b, Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++)
        relax_call(b, body->calls.at[i]);
}

static bool is_pad(const Call *c)
{
    Str target = str_of(c->target);
    return (same(c->target, "aten::pad") || same(c->target, "aten::constant_pad_nd") ||
            p2o_str_starts(target, "aten::reflection_pad") || p2o_str_starts(target, "aten::replication_pad")) &&
           c->nargs > 1 && c->args[1].kind == ARG_LIST;
}

/* What is lacking to a multiple may be the same in all captures and yet follow a size. */
static void relax_pads(Bindings *b, Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        Call *c = body->calls.at[i];
        if (is_pad(c))
            relax_call(b, c);
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                relax_pads(b, c->args[k].body);
    }
}

/* With several captures a literal that is the same in all of them is one, if every size varies. */
static bool all_vary(const Program *p, Bindings *b)
{
    Scope s = input_symbols(p, b);
    for (size_t i = 0; i < s.syms.n; i++) {
        int64_t first, v;
        bool    varies = !p2o_hint_at(b, s.syms.at[i], 0, &first);
        for (int k = 1; k < p2o_ncapture(b); k++)
            varies |= !p2o_hint_at(b, s.syms.at[i], k, &v) || v != first;
        if (!varies)
            return false;
    }
    return true;
}

static void relax_program(Program *p, Bindings *b)
{
    if (p2o_ncapture(b) == 1 || !all_vary(p, b))
        relax_body(b, p->main);
    relax_pads(b, p->main);
}

typedef struct Settling {
    Program  *prog;
    Bindings *bind;
    Scope     scope;
    Map       calls;            /* open sizes, by name -> Call */
    bool      failed;
} Settling;

static void index_body(Settling *s, const Body *b);

static void index_arg(Settling *s, const Call *c, const Arg *x)
{
    if (x->kind == ARG_INT && p2o_dim_is_sym(x->i)) {
        void **first = p2o_map_slot(&s->calls, str_of(p2o_dim_name(x->i)));
        if (!*first)
            *first = (void *)(uintptr_t)c;
    }
    else if (x->kind == ARG_BODY)
        index_body(s, x->body);
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        index_arg(s, c, &x->items[i]);
}

static void index_body(Settling *s, const Body *b)
{
    for (size_t i = 0; i < b->calls.n; i++)
        for (int k = 0; k < b->calls.at[i]->nargs; k++)
            index_arg(s, b->calls.at[i], &b->calls.at[i]->args[k]);
}

/* Goes through the program once, so that each open size finds its call at once. */
static Settling new_settling(Program *p, Bindings *b)
{
    Settling s = { .prog = p, .bind = b, .scope = input_symbols(p, b), .calls = { .arena = p->arena } };
    index_body(&s, p->main);
    return s;
}

/* The call that an open size stands in; NULL: none. */
static const Call *call_with(const Settling *s, Dim sym) { return p2o_map_get(&s->calls, str_of(p2o_dim_name(sym))); }

static bool gives(const Settling *s, Dim expr, Dim sym)
{
    int64_t x, y;
    for (int k = 0; k < p2o_ncapture(s->bind); k++)
        if (!p2o_hint_at(s->bind, expr, k, &x) || !p2o_hint_at(s->bind, sym, k, &y) || x != y)
            return false;
    return true;
}

typedef struct Found {
    Dim first;
    int n;
} Found;

static void consider(const Settling *s, Dim expr, Dim sym, Found *f)
{
    if (!expr || p2o_dim_is_int(expr, NULL) || !gives(s, expr, sym))
        return;
    if (f->first && p2o_dim_eq(s->prog->dims, expr, f->first) == YES)
        return;
    f->n++;
    f->first = f->first ? f->first : expr;
}

/* What the size may be made of: sizes of the call's own tensors (the first *nlocal), and the inputs'
 * symbols. */
static Scope bases_for(const Settling *s, const Call *c, size_t *nlocal)
{
    Scope bases = { .dims = s->prog->dims, .bind = s->bind };
    for (int i = 0; c && i < c->nargs; i++) {
        const Arg *x = &c->args[i];
        size_t     n = x->kind == ARG_LIST ? x->n : 1;
        for (size_t k = 0; k < n; k++) {
            const Arg *item = x->kind == ARG_LIST ? &x->items[k] : x;
            if (item->kind != ARG_VAR)
                continue;
            Shape shape = item->var->type.shape;
            for (int d = 0; d < shape.rank; d++) {
                Dim size = p2o_resolve(s->bind, shape.at[d]);
                if (size && !p2o_dim_is_int(size, NULL) && !p2o_has_soft(s->bind, size))
                    add_symbol(&bases, size);
            }
        }
    }
    *nlocal = bases.syms.n;
    for (size_t i = 0; i < s->scope.syms.n; i++)
        add_symbol(&bases, s->scope.syms.at[i]);
    return bases;
}

/* Pads that people write as numbers are mostly equal on both sides; what fills up to a multiple stands on
 * one, or is halved. */
static bool is_multiple(int64_t c, bool halved) { return (c & (c - 1)) == 0 || (!halved && (c % 2 == 0 || c == 7)); }

/* A base with a small number: x + c, c*x, x//c, ceil(x/c). */
static void search_with_number(const Settling *s, const Scope *bases, Dim sym, Found *f)
{
    enum { LARGEST = 8 };
    Dims *t = s->prog->dims;
    for (size_t i = 0; i < bases->syms.n; i++) {
        for (int64_t c = -LARGEST; c <= LARGEST; c++) {
            Dim x = bases->syms.at[i], number = p2o_dim_int(t, c);
            consider(s, p2o_dim_add(t, x, number), sym, f);
            if (c < 2)
                continue;
            consider(s, p2o_dim_mul(t, x, number), sym, f);
            consider(s, p2o_dim_floordiv(t, x, number), sym, f);
            consider(s, p2o_dim_ceildiv(t, x, number), sym, f);
        }
    }
}

static void search_pairs(const Settling *s, const Scope *bases, Dim sym, Found *f)
{
    Dims *t = s->prog->dims;
    for (size_t i = 0; i < bases->syms.n; i++) {
        for (size_t k = 0; k < bases->syms.n; k++) {
            Dim x = bases->syms.at[i], y = bases->syms.at[k];
            if (k < i) {
                consider(s, p2o_dim_add(t, x, y), sym, f);
                consider(s, p2o_dim_min(t, x, y), sym, f);
                consider(s, p2o_dim_max(t, x, y), sym, f);
            }
            if (k <= i)
                consider(s, p2o_dim_mul(t, x, y), sym, f);
            if (k != i) {
                consider(s, p2o_dim_sub(t, x, y), sym, f);
                consider(s, p2o_dim_floordiv(t, x, y), sym, f);
            }
        }
    }
}

/* Filled up to a multiple, or cut to one. */
static void search_multiples(const Settling *s, const Scope *bases, Dim sym, Found *f)
{
    enum { LARGEST = 128 };
    Dims *t = s->prog->dims;
    for (size_t i = 0; i < bases->syms.n; i++) {
        for (int64_t c = 2; c <= LARGEST; c++) {
            Dim x = bases->syms.at[i], number = p2o_dim_int(t, c);
            if (!is_multiple(c, false))
                continue;
            consider(s, p2o_dim_mul(t, number, p2o_dim_ceildiv(t, x, number)), sym, f);
            consider(s, p2o_dim_mul(t, number, p2o_dim_floordiv(t, x, number)), sym, f);
        }
    }
}

/* How much is lacking to a multiple, and what is over: (-x) % c and x % c; `likely`: of multiples that people use. */
static void search_remainders(const Settling *s, const Scope *bases, Dim sym, bool likely, Found *f)
{
    enum { LARGEST = 128 };
    Dims *t = s->prog->dims;
    for (size_t i = 0; i < bases->syms.n; i++) {
        for (int64_t c = 2; c <= LARGEST; c++) {
            Dim x = bases->syms.at[i], number = p2o_dim_int(t, c);
            if (is_multiple(c, false) != likely)
                continue;
            consider(s, p2o_dim_mod(t, p2o_dim_neg(t, x), number), sym, f);
            consider(s, p2o_dim_mod(t, x, number), sym, f);
        }
    }
}

/* One off, or half or twice, the size of a tensor at hand: as likely as a size itself. */
static bool is_near_local(const Settling *s, const Scope *bases, size_t nlocal, Dim sym)
{
    Dims *t = s->prog->dims;
    Found f = { 0 };
    Dim   one = p2o_dim_int(t, 1), two = p2o_dim_int(t, 2);
    for (size_t i = 0; i < nlocal; i++) {
        Dim x = bases->syms.at[i];
        consider(s, p2o_dim_add(t, x, one), sym, &f);
        consider(s, p2o_dim_sub(t, x, one), sym, &f);
        consider(s, p2o_dim_mul(t, x, two), sym, &f);
        consider(s, p2o_dim_floordiv(t, x, two), sym, &f);
        consider(s, p2o_dim_ceildiv(t, x, two), sym, &f);
    }
    return f.n > 0;
}

/* A size that is there already, if it is the only one and nothing near is as likely; else exactly one of
 * all other expressions must fit. */
static Found search_expression(const Settling *s, const Call *c, Dim sym)
{
    size_t nlocal;
    Scope  bases = bases_for(s, c, &nlocal);
    Found  f = { 0 };
    for (size_t i = 0; i < bases.syms.n; i++)
        consider(s, bases.syms.at[i], sym, &f);
    if (f.n == 1 && !is_near_local(s, &bases, nlocal, sym))
        return f;
    search_with_number(s, &bases, sym, &f);
    search_pairs(s, &bases, sym, &f);
    search_multiples(s, &bases, sym, &f);
    search_remainders(s, &bases, sym, true, &f);
    if (!f.n)
        search_remainders(s, &bases, sym, false, &f);
    return f;
}

/* The dynamic size that was this literal at capture: of the call's own tensors or of the inputs. */
static Dim looks_like(const Settling *s, Dim sym, int64_t literal)
{
    size_t nlocal;
    Scope  bases = bases_for(s, call_with(s, sym), &nlocal);
    for (size_t i = 0; i < bases.syms.n; i++) {
        int64_t hint;
        bool    alike = true;
        for (int k = 0; k < p2o_ncapture(s->bind); k++)
            alike &= p2o_hint_at(s->bind, bases.syms.at[i], k, &hint) && hint == literal;
        if (alike)
            return bases.syms.at[i];
    }
    return NULL;
}

static bool is_same_in_all(const Settling *s, Dim sym, int64_t *first, int64_t *last)
{
    bool equal = p2o_hint_at(s->bind, sym, 0, first);
    *last = *first;
    for (int k = 1; k < p2o_ncapture(s->bind); k++)
        equal &= p2o_hint_at(s->bind, sym, k, last) && *last == *first;
    return equal;
}

/* Sizes that differ between captures and that one expression explains. */
static void settle_found(void *user, Dim sym)
{
    Settling *s = user;
    int64_t   first = 0, last;
    if (is_same_in_all(s, sym, &first, &last))
        return;
    const Call *c = call_with(s, sym);
    Found       f = search_expression(s, c, sym);
    if (f.n != 1)
        return;
    p2o_bind(s->bind, sym, f.first);
    p2o_bind_log(s->bind, sym, f.first, "found by search: the one expression that fits every capture", c ? c->loc : 0);
}

static bool fills_up(const Settling *s, Dim size, int64_t lacking, int64_t to)
{
    int64_t v;
    for (int k = 0; k < p2o_ncapture(s->bind); k++)
        if (!p2o_hint_at(s->bind, size, k, &v) || (v + lacking) % to != 0)
            return false;
    return lacking < to;
}

/* The size that a pad may fill up to a multiple; NULL: none. */
static Dim filled_size(const Settling *s, Dim sym, int64_t literal)
{
    enum { LARGEST = 128 };
    const Call *c = call_with(s, sym);
    if (!c || !is_pad(c) || c->args[0].kind != ARG_VAR)
        return NULL;
    const Arg *pads = &c->args[1];
    Shape      shape = c->args[0].var->type.shape;
    for (uint32_t i = 0; i + (i ^ 1) < 2 * pads->n - 1 && (int)i / 2 < shape.rank; i++) {
        int64_t other, lacking;
        if (pads->items[i].i != sym || !p2o_hint_at(s->bind, pads->items[i ^ 1].i, 0, &other))
            continue;
        Dim size = p2o_resolve(s->bind, shape.at[shape.rank - 1 - (int)i / 2]);
        lacking = literal + other;
        if (p2o_dim_is_int(size, NULL) || (other && literal - other > 1) || (other && other - literal > 1))
            return NULL;
        for (int64_t to = 2; to <= LARGEST; to++)
            if (is_multiple(to, other != 0) && fills_up(s, size, lacking, to))
                return size;
    }
    return NULL;
}

/* A number, or the size that it was at capture?  Either would be a guess. */
static bool report_alike(Settling *s, Dim sym, int64_t literal)
{
    Dim  like = looks_like(s, sym, literal);
    bool several = p2o_ncapture(s->bind) > 1;
    if (!like)
        like = filled_size(s, sym, literal);
    if (!like)
        return false;
    const Call *c = call_with(s, sym);
    p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, c ? c->loc : 0, several ? ANOTHER_CAPTURE : p2o_unsettled_advice(s->prog),
                    "%s: whether %lld is a number or follows %s cannot be told from %s", c ? c->target : "a call",
                    (long long)literal, p2o_dim_text(s->prog->dims, like), several ? "these captures" : "one capture");
    s->failed = true;
    return true;
}

static void settle_literal(void *user, Dim sym)
{
    Settling *s = user;
    int64_t   first = 0, last;
    if (is_same_in_all(s, sym, &first, &last) && !report_alike(s, sym, first))
        p2o_bind(s->bind, sym, p2o_dim_int(s->prog->dims, first));
}

static void report_open(void *user, Dim sym)
{
    Settling   *s = user;
    int64_t     first = 0, last;
    const Call *c = call_with(s, sym);
    Found       f = search_expression(s, c, sym);
    is_same_in_all(s, sym, &first, &last);
    p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, c ? c->loc : 0, ANOTHER_CAPTURE,
                    "%s: a size was %lld and %lld in the captures; %s of the inputs' sizes gives that",
                    c ? c->target : "a call", (long long)first, (long long)last,
                    f.n ? "more than one expression" : "no simple expression");
    s->failed = true;
}

/* The first only: others mostly follow from it. */
static bool report_unsettled(const Program *p, const Bindings *b)
{
    bool several = p2o_ncapture(b) > 1;
    if (!p2o_nunsettled(b))
        return false;
    const Unsettled *u = p2o_unsettled_at(b, 0);
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, u->loc, several ? ANOTHER_CAPTURE : p2o_unsettled_advice(p),
                    "%s: which of the sizes follows %s cannot be told from %s", u->target, p2o_dim_text(p->dims, u->what),
                    several ? "these captures" : "one capture");
    return true;
}

static bool was_one_in_all(Bindings *b, Dim d)
{
    int64_t v;
    for (int k = 0; k < p2o_ncapture(b); k++)
        if (!p2o_hint_at(b, d, k, &v) || v != 1)
            return false;
    return true;
}

static bool has_dynamic_one(const Body *body, Bindings *b);

static bool is_dynamic_one(const Var *v, Bindings *b)
{
    for (int k = 0; v && k < v->type.shape.rank; k++) {
        Dim d = p2o_resolve(b, v->type.shape.at[k]);
        if (!p2o_dim_is_int(d, NULL) && !p2o_has_soft(b, d) && was_one_in_all(b, d))
            return true;
    }
    return false;
}

static bool calls_have_dynamic_one(const Call *c, Bindings *b)
{
    for (int k = 0; k < c->nouts; k++)
        if (is_dynamic_one(c->outs[k], b))
            return true;
    for (int k = 0; k < c->nargs; k++)
        if (c->args[k].kind == ARG_BODY && has_dynamic_one(c->args[k].body, b))
            return true;
    return false;
}

static bool has_dynamic_one(const Body *body, Bindings *b)
{
    for (size_t i = 0; i < body->inputs.n; i++)
        if (is_dynamic_one(body->inputs.at[i], b))
            return true;
    for (size_t i = 0; i < body->calls.n; i++)
        if (calls_have_dynamic_one(body->calls.at[i], b))
            return true;
    return false;
}

static void settle_one(void *user, Dim sym)
{
    Bindings   *b = user;
    Loc         loc;
    const char *of = p2o_soft_of(b, sym, &loc);
    bool        is_size = of && (same(of, "aten::view") || same(of, "aten::reshape") || same(of, "aten::expand"));
    if (is_size && was_one_in_all(b, sym))
        p2o_bind(b, sym, p2o_dim_int(p2o_bindings_dims(b), 1));
}

/* Found sizes make others known: after each round the types are inferred anew. */
static bool settle_sizes(Program *p, Bindings *b)
{
    if (!needs_relaxing(p, b))
        return p2o_infer(p, b);
    relax_program(p, b);
    if (!p2o_infer(p, b))
        return false;
    open_holes(b, p->main);
    if (!has_dynamic_one(p->main, b))
        p2o_each_soft(b, settle_one, b);        /* no size was 1: a 1 is a number */
    static SoftFn *const rounds[] = { settle_found, settle_literal, settle_found };
    for (size_t i = 0; i < COUNT_OF(rounds); i++) {
        size_t before;
        do {
            if (!p2o_infer(p, b))
                return false;
            if (rounds[i] == settle_literal && report_unsettled(p, b))
                return false;                   /* a literal there is no number yet */
            Settling s = new_settling(p, b);
            before = p2o_bindings_count(b);
            p2o_each_soft(b, rounds[i], &s);
            if (s.failed)
                return false;
        } while (p2o_bindings_count(b) != before);
    }
    Settling s = new_settling(p, b);
    p2o_each_soft(b, report_open, &s);
    if (s.failed || report_unsettled(p, b) || !p2o_infer(p, b))
        return false;
    return p2o_check_numbers(p, b);
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

bool p2o_settle(Program *p, Bindings *b)
{
    return p2o_range_collect(p, b) && settle_sizes(p, b) && p2o_range_check(p, b) && pin_sizes(p, b);
}
