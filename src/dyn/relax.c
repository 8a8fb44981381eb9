#include "dyn/relax.h"

#include "aten/infer.h"
#include "aten/ops.h"
#include "dyn/numbers.h"
#include "dyn/range.h"
#include "dyn/search.h"
#include "dyn/soften.h"
#include "dyn/source.h"

#define FOUND_BY_SEARCH "found by search"
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

typedef struct Settling {
    Program  *prog;
    Bindings *bind;
    Scope     scope;
    Map       calls;            /* open sizes, by name -> Call */
    VEC(Dim)  present;          /* sizes of tensors all over the program */
    Map       seen;
    Map       fixed;            /* sizes of weights */
    bool      failed;
} Settling;

static void **seen_slot(Settling *s, Dim d) { return p2o_map_slot(&s->seen, str_of(p2o_dim_text(s->prog->dims, d))); }

static void index_present(Settling *s, const Var *v)
{
    for (int k = 0; v && k < v->type.shape.rank; k++) {
        Dim d = p2o_resolve(s->bind, v->type.shape.at[k]);
        if (!d || p2o_dim_is_int(d, NULL) || p2o_has_soft(s->bind, d))
            continue;
        if (*seen_slot(s, d))
            continue;
        VEC_PUSH(s->prog->arena, &s->present, d);
        *seen_slot(s, d) = s;
        for (size_t i = 0; i < p2o_nneed(s->bind); i++) {               /* equal wherever the model works */
            const Need *n = p2o_need_at(s->bind, i);
            if (n->kind == NEED_EQ && (p2o_resolve(s->bind, n->a) == d || p2o_resolve(s->bind, n->b) == d))
                *seen_slot(s, p2o_resolve(s->bind, n->a)) = *seen_slot(s, p2o_resolve(s->bind, n->b)) = s;
        }
    }
}

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
    for (size_t i = 0; i < b->calls.n; i++) {
        for (int k = 0; k < b->calls.at[i]->nargs; k++)
            index_arg(s, b->calls.at[i], &b->calls.at[i]->args[k]);
        for (int k = 0; k < b->calls.at[i]->nouts; k++)
            index_present(s, b->calls.at[i]->outs[k]);
    }
}

static Str size_key(const int64_t *v) { return (Str){ (const char *)v, sizeof *v }; }

/* The literal is a size of a weight. */
static bool is_fixed_size(const Settling *s, int64_t literal) { return p2o_map_get(&s->fixed, size_key(&literal)) != NULL; }

/* Or half of one, or the like: head_dim // 2. */
static bool is_near_fixed(const Settling *s, int64_t v)
{
    bool small = v < INT64_MAX / 4;
    return (small && (is_fixed_size(s, 2 * v) || is_fixed_size(s, 4 * v) || is_fixed_size(s, v + 1))) || is_fixed_size(s, v - 1) ||
           (v % 2 == 0 && is_fixed_size(s, v / 2));
}

static void index_weights(Settling *s)
{
    for (size_t i = 0; i < s->prog->weights.n; i++) {
        Shape shape = s->prog->weights.at[i]->type.shape;
        for (int k = 0; k < shape.rank; k++) {
            int64_t *v = NEW(s->prog->arena, int64_t);
            if (p2o_dim_is_int(shape.at[k], v))
                *p2o_map_slot(&s->fixed, size_key(v)) = s->prog;
        }
    }
}

/* Goes through the program once, so that each open size finds its call at once. */
static Settling new_settling(Program *p, Bindings *b)
{
    Settling s = { .prog = p, .bind = b, .scope = input_symbols(p, b), .calls = { .arena = p->arena },
                   .seen = { .arena = p->arena }, .fixed = { .arena = p->arena } };
    index_weights(&s);
    index_body(&s, p->main);
    return s;
}

/* The call that an open size stands in; NULL: none. */
static const Call *call_with(const Settling *s, Dim sym) { return p2o_map_get(&s->calls, str_of(p2o_dim_name(sym))); }

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

/* The size along which an amount of padding stands, and the amount on the other side; NULL: it is none. */
static Dim padded_size(const Settling *s, const Call *c, Dim sym, Dim *other)
{
    if (!c || !p2o_is_pad(c) || c->args[0].kind != ARG_VAR)
        return NULL;
    const Arg *pads = &c->args[1];
    Shape      shape = c->args[0].var->type.shape;
    for (uint32_t i = 0; (i | 1) < pads->n && (int)i / 2 < shape.rank; i++) {
        if (pads->items[i].i != sym)
            continue;
        *other = pads->items[i ^ 1].i;
        return p2o_resolve(s->bind, shape.at[shape.rank - 1 - (int)i / 2]);
    }
    return NULL;
}

static Search search_for(const Settling *s, const Call *c, Dim sym, const Scope *bases, size_t nlocal)
{
    Dim other, padded = padded_size(s, c, sym, &other);
    return (Search){ .dims = s->prog->dims, .bind = s->bind, .at = c ? p2o_place_at(s->prog->diags, c->loc) : NULL, .target = c ? c->target : "",
                     .sizes = bases->syms.at, .n = bases->syms.n, .nlocal = nlocal,
                     .present = s->present.at, .npresent = s->present.n,
                     .padded = padded && !p2o_dim_is_int(padded, NULL) ? padded : NULL };
}

static Found search_expression(const Settling *s, const Call *c, Dim sym)
{
    size_t nlocal;
    Scope  bases = bases_for(s, c, &nlocal);
    Search x = search_for(s, c, sym, &bases, nlocal);
    return p2o_search(&x, sym);
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

/* The axis of an input that has the size; false: none, or it is not the only one of that input. */
static bool axis_of(const Settling *s, Dim d, const Var **input, int *axis)
{
    int n = 0;
    for (size_t i = 0; i < s->prog->main->inputs.n && !n; i++) {
        *input = s->prog->main->inputs.at[i];
        for (int k = 0; k < (*input)->type.shape.rank; k++)
            if (p2o_resolve(s->bind, (*input)->type.shape.at[k]) == d) {
                *axis = k;
                n++;
            }
    }
    return n == 1;
}

/* The same axis of two inputs, which nobody named and no capture tells apart: ids and their mask. */
static bool are_one_input(const Settling *s, Dim x, Dim y)
{
    const Var *first, *second;
    int        i, j;
    int64_t    v, w;
    bool       alike = p2o_dim_is_sym(x) && p2o_dim_is_sym(y) && p2o_role(s->bind, x) == ROLE_FILE &&
                 p2o_role(s->bind, y) == ROLE_FILE && axis_of(s, x, &first, &i) && axis_of(s, y, &second, &j) &&
                 first != second && i == j;
    for (int k = 0; k < p2o_ncapture(s->bind) && alike; k++)
        alike = p2o_hint_at(s->bind, x, k, &v) && p2o_hint_at(s->bind, y, k, &w) && v == w;
    return alike;
}

static void take_as_one(Settling *s, Dim x, Dim y, const Call *c)
{
    p2o_bind(s->bind, y, x);
    p2o_diag_advise(s->prog->diags, DIAG_NOTE, c ? c->loc : 0, "name them with --input to keep them apart",
                    "%s and %s were equal in every capture: they are taken as one size", p2o_dim_name(x), p2o_dim_name(y));
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
    if (f.n == 2 && are_one_input(s, f.first, f.second))
        take_as_one(s, f.first, f.second, c);
    else if (f.n != 1)
        return;
    p2o_bind(s->bind, sym, p2o_resolve(s->bind, f.first));
    p2o_bind_log(s->bind, sym, f.first, FOUND_BY_SEARCH ": the one expression that fits every capture", c ? c->loc : 0);
}

/* Pads that people write as numbers are mostly equal on both sides; what fills up to a multiple stands on
 * one, or is halved. */
static bool is_multiple(int64_t c, bool halved) { return (c & (c - 1)) == 0 || (!halved && (c % 2 == 0 || c == 7)); }

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
    Dim     other, size = padded_size(s, call_with(s, sym), sym, &other);
    int64_t beside;
    if (!size || p2o_dim_is_int(size, NULL) || !p2o_hint_at(s->bind, other, 0, &beside) ||
        (beside && (literal - beside > 1 || beside - literal > 1)))
        return NULL;
    for (int64_t to = 2; to <= LARGEST; to++)
        if (is_multiple(to, beside != 0) && fills_up(s, size, literal + beside, to))
            return size;
    return NULL;
}

/* The size of the axis that a slice or select cuts; NULL: it is neither. */
static Dim cut_axis(const Settling *s, const Call *c)
{
    int64_t dim;
    bool    cuts = same(c->target, "aten::slice.Tensor") || same(c->target, "aten::select.int");
    if (!cuts || c->nargs < 2 || c->args[0].kind != ARG_VAR || c->args[1].kind != ARG_INT || !p2o_dim_is_int(c->args[1].i, &dim))
        return NULL;
    Shape shape = c->args[0].var->type.shape;
    dim += dim < 0 ? shape.rank : 0;
    return dim >= 0 && dim < shape.rank ? p2o_resolve(s->bind, shape.at[dim]) : NULL;
}

static bool computes_args(const Settling *s, const Call *c)
{
    return p2o_source_computes_args(p2o_place_at(s->prog->diags, c->loc), c->target);
}

/* What a literal that was the same in every capture may follow, if it is no number; NULL: it is one. */
static const char *doubt(const Settling *s, const Call *c, Dim sym, int64_t literal)
{
    Dim like = looks_like(s, sym, literal);
    if (like && c && p2o_place_at(s->prog->diags, c->loc) && p2o_place_at(s->prog->diags, c->loc)->library)
        like = NULL;                            /* a module's own setting */
    if (!like)
        like = filled_size(s, sym, literal);
    if (!like && c && p2o_ncapture(s->bind) > 1 && p2o_is_computed(s->prog, c, literal)) {
        size_t nlocal;
        Scope  bases = bases_for(s, c, &nlocal);
        Search x = search_for(s, c, sym, &bases, nlocal);
        like = p2o_search_same(&x, sym);
    }
    if (like)
        return p2o_dim_text(s->prog->dims, like);
    if (!c || !p2o_is_computed(s->prog, c, literal) || is_fixed_size(s, literal))
        return NULL;
    Dim axis = cut_axis(s, c);
    if (axis)                                   /* of a fixed size it is a fixed part; of another, what the line computes */
        return !p2o_dim_is_int(axis, NULL) && (p2o_ncapture(s->bind) == 1 || computes_args(s, c)) ? "a size" : NULL;
    return p2o_ncapture(s->bind) == 1 || (computes_args(s, c) && !is_near_fixed(s, literal)) ? "a size" : NULL;
}

/* A number, or the size that it was at capture?  Either would be a guess. */
static bool report_alike(Settling *s, Dim sym, int64_t literal)
{
    const Call *c = call_with(s, sym);
    const char *like = doubt(s, c, sym, literal);
    bool        several = p2o_ncapture(s->bind) > 1;
    if (!like)
        return false;
    p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, c ? c->loc : 0, several ? ANOTHER_CAPTURE : p2o_unsettled_advice(s->prog),
                    "%s: whether %lld is a number or follows %s cannot be told from %s", c ? c->target : "a call",
                    (long long)literal, like, several ? "these captures" : "one capture");
    s->failed = true;
    return true;
}

static bool has_open_sizes(const Settling *s, const Arg *x)
{
    bool open = false;
    for (int k = 0; x->kind == ARG_VAR && k < x->var->type.shape.rank; k++)
        open |= p2o_has_soft(s->bind, x->var->type.shape.at[k]);
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n && !open; i++)
        open = has_open_sizes(s, &x->items[i]);
    return open;
}

/* Once it is known what its call works on: literals ahead of it say what this one may follow. */
static void settle_literal(void *user, Dim sym)
{
    Settling   *s = user;
    int64_t     first = 0, last;
    const Call *c = call_with(s, sym);
    for (int k = 0; c && k < c->nargs; k++)
        if (has_open_sizes(s, &c->args[k]))
            return;
    if (is_same_in_all(s, sym, &first, &last) && !report_alike(s, sym, first))
        p2o_bind(s->bind, sym, p2o_dim_int(s->prog->dims, first));
}

static void report_open(void *user, Dim sym)
{
    Settling   *s = user;
    int64_t     first = 0, last;
    const Call *c = call_with(s, sym);
    Found       f = search_expression(s, c, sym);
    bool        same_in_all = is_same_in_all(s, sym, &first, &last);
    if (same_in_all && s->failed)
        return;                                 /* it waits for another */
    if (same_in_all)
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, c ? c->loc : 0, p2o_unsettled_advice(s->prog),
                        "%s: whether %lld is a number or follows a size cannot be told", c ? c->target : "a call",
                        (long long)first);
    else if (f.n > 1)
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, c ? c->loc : 0, ANOTHER_CAPTURE,
                        "%s: a size was %lld and %lld in the captures; %s and %s give that, among others",
                        c ? c->target : "a call", (long long)first, (long long)last,
                        p2o_dim_text(s->prog->dims, f.first), p2o_dim_text(s->prog->dims, f.second));
    else
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, c ? c->loc : 0,
                        "write it on the line that uses it, from x.shape, or capture with dynamic_shapes",
                        "%s: a size was %lld and %lld in the captures; no simple expression of the inputs' sizes gives that",
                        c ? c->target : "a call", (long long)first, (long long)last);
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
    return p2o_hint_in_all(b, d, &v) && v == 1;
}

static bool has_dynamic_one(const Body *body, Bindings *b);

static bool is_dynamic_one(const Var *v, Bindings *b)
{
    for (int k = 0; v && k < v->type.shape.rank; k++) {
        Dim  d = p2o_resolve(b, v->type.shape.at[k]);
        bool literal = p2o_dim_is_int(d, NULL) || (p2o_dim_is_sym(d) && p2o_has_soft(b, d));
        if (!literal && was_one_in_all(b, p2o_dim_without_number(p2o_bindings_dims(b), d)))
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

static bool multiple_of_all(void *user, Dim sym, int64_t *v)
{
    enum { DIVISIBLE = 5040, MIXED = 7919 };
    int64_t *seed = user, hash = 0;
    for (const char *c = p2o_dim_name(sym); *c; c++)
        hash = (hash * 31 + *c) % MIXED;
    *v = DIVISIBLE * (1 + (hash + 1) * *seed % 97);
    return true;
}

/* Where a size was found by search, and the program then needs what does not hold even at sizes that everything divides,
 * another expression was meant. */
static bool refute_found(const Program *p, Bindings *b)
{
    bool searched = false;
    for (size_t i = 0; i < p2o_bind_nevent(b); i++) {
        const BindEvent *e = p2o_bind_event(b, i);
        if (searched && p2o_role(b, e->sym) >= ROLE_FILE && !p2o_dim_is_sym(e->to)) {
            p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, e->loc, ANOTHER_CAPTURE, "%s: sizes found by search would need %s = %s",
                            e->by, p2o_dim_name(e->sym), p2o_dim_text(p->dims, e->to));
            return false;
        }
        searched |= p2o_str_starts(str_of(e->by), FOUND_BY_SEARCH);
    }
    for (size_t i = 0; searched && i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        Dim         x = p2o_resolve(b, n->a), y = p2o_resolve(b, n->b);
        for (int64_t seed = 1, v, w; n->kind == NEED_EQ && seed <= 8; seed++) {
            if (!p2o_dim_eval(p->dims, x, multiple_of_all, &seed, &v) || !p2o_dim_eval(p->dims, y, multiple_of_all, &seed, &w) ||
                v == w)
                continue;
            p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, n->loc, ANOTHER_CAPTURE,
                            "%s: sizes found by search would need %s = %s", n->by, p2o_dim_text(p->dims, x),
                            p2o_dim_text(p->dims, y));
            return false;
        }
    }
    return true;
}

/* Found sizes make others known: after each round the types are inferred anew. */
static bool settle_sizes(Program *p, Bindings *b)
{
    if (!needs_relaxing(p, b))
        return p2o_infer(p, b);
    p2o_soften(p, b, p2o_ncapture(b) > 1 && all_vary(p, b));
    if (!p2o_infer(p, b))
        return false;
    p2o_soften_holes(b, p->main);
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
    return refute_found(p, b) && p2o_check_numbers(p, b);
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
