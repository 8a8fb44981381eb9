#include "dyn/lineup.h"

#include "dyn/chain.h"

/* A call that the captures before lack, as it did nothing there. */
typedef struct PutIn {
    LinedCall     line;
    struct PutIn *next;         /* one that comes after the same */
} PutIn;

typedef struct Aligning {
    Lineup     *l;
    Bindings   *bind;
    int         k;              /* the capture that is lined up with the first */
    bool        check;          /* it is only held against the first, which may compute sizes that
                                 * it has as numbers */
    bool       *done;           /* of captures: lined up before */
    Var       **to_first;       /* its Vars, by id, to those of the first; NULL: not met yet */
    const Var **means;          /* of the first's Vars, by id: which of the first's Vars that
                                 * capture k has it is there.  NULL: not met yet */
    size_t     *row_of;         /* of calls that can be idle, by their result's id */
    const Var **after;          /* of what calls give that were put in for this capture, by id:
                                 * what was there before and they come after */
    const Body *body;           /* that is lined up */
    bool        symbolic;       /* sizes of the first's inputs: numbers can't be put in */
    const bool *only_expanded, *other_expanded;         /* by id */
    PutIn     **puts, **last;   /* by the id of what they come after */
    bool        has_puts;
} Aligning;

static Arg copy_arg(Lineup *l, const Arg *x);

static Program *first_of(const Aligning *a) { return a->l->p[0]; }
static Program *other_of(const Aligning *a) { return a->l->p[a->k]; }

/* A size is 1 in one of them, and another in the other. */
static bool one_against_more(const Program *p, const Program *q)
{
    int64_t v, w;
    for (size_t i = 0; i < p->main->inputs.n && i < q->main->inputs.n; i++) {
        Shape s = p->main->inputs.at[i]->recorded.shape, t = q->main->inputs.at[i]->recorded.shape;
        for (int k = 0; k < s.rank && k < t.rank; k++)
            if (p2o_dim_is_int(s.at[k], &v) && p2o_dim_is_int(t.at[k], &w) && v != w &&
                (v == 1 || w == 1))
                return true;
    }
    return false;
}

static bool part_ways(const Aligning *a, Loc loc, const char *what)
{
    const Program *p = first_of(a), *q = other_of(a);
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, loc,
                    one_against_more(p, q)
                        ? "at a size of 1 PyTorch may record another program: take captures at 2 "
                          "and more"
                        : "capture the same model in the same mode; a Python `if` on a size makes "
                          "two models",
                    "captures %d and %d part ways: %s", p->capture, q->capture, what);
    return false;
}

static const char *place_text(const Program *p, const Call *c)
{
    const Place *at = p2o_place_at(p->diags, c->loc);
    return at && at->file ? p2o_printf(p->arena, "%s (%s:%u)", c->target, at->file, at->line)
                          : c->target;
}

static bool differs_in(const Aligning *a, const Call *c, const Call *d, const char *how)
{
    return part_ways(a, c->loc, p2o_printf(first_of(a)->arena, "%s %s %s",
                                           place_text(first_of(a), c), how,
                                           place_text(other_of(a), d)));
}

static void pair_vars(const Aligning *a, Var *first, const Var *other)
{
    if (!first || !other)
        return;
    a->to_first[other->id] = first;
    a->means[first->id] = first;
}

static void keep_recorded(const Aligning *a, Var *first, Type other)
{
    if (!first->also)
        first->also = NEW_N(first_of(a)->arena, Type, (size_t)a->l->n);
    ((Type *)(uintptr_t)first->also)[a->k - 1] = other;
}

/* What makes v may do nothing at other sizes. */
static Call *idle_def(const Var *v)
{
    Call *c = v->def;
    if (!c || !c->op || !c->op->idle || c->nouts != 1 || !c->outs[0] || !c->nargs ||
        c->args[0].kind != ARG_VAR)
        return NULL;
    for (int i = 1; i < c->nargs; i++)
        if (c->args[i].kind == ARG_VAR && c->args[i].var->recorded.kind <= TY_TENSOR)
            return NULL;
    Type in = c->args[0].var->recorded, out = c->outs[0]->recorded;
    bool known = in.kind == TY_TENSOR && out.kind == TY_TENSOR;
    return known && (in.shape.rank != out.shape.rank || in.dtype != out.dtype) ? NULL : c;
}

static bool can_be_idle(const Call *c)
{
    return c->nouts == 1 && c->outs[0] && idle_def(c->outs[0]) == c;
}

/* Names of one thing: which of them PyTorch takes depends on strides, and those on sizes of 1. */
static bool is_same_target(const Call *c, const Call *d)
{
    return same(c->target, d->target) || (c->op->reshapes && d->op->reshapes);
}

static Var *meet(Aligning *a, Var *v, const Var *w);

static bool is_number_var(const Arg *x)
{
    return x->kind == ARG_VAR && x->var->recorded.kind > TY_TENSOR;
}

/* From None, or 0; to None, or past all sizes. */
static bool is_whole_axis(const Arg *x, const Arg *y)
{
    const Arg *number = x->kind == ARG_NONE ? y : x;
    int64_t    v;
    return (x->kind == ARG_NONE || y->kind == ARG_NONE) && number->kind == ARG_INT &&
           p2o_dim_is_int(number->i, &v) && (v == 0 || v == INT64_MAX);
}

/* A size that the first computes is a number in a check. */
static bool may_be_number(const Aligning *a, const Arg *x, const Arg *y)
{
    bool number = y->kind == ARG_INT || y->kind == ARG_FLOAT || y->kind == ARG_BOOL;
    bool computed = is_number_var(x) || (x->kind == ARG_INT && !p2o_dim_is_int(x->i, NULL));
    return a->check && number && computed;
}

/* One value: where calls were put in for capture k, the first takes what they give. */
static bool is_same_value(Aligning *a, Arg *x, const Var *w)
{
    Var *v = meet(a, x->var, w);
    if (v)
        x->var = v;
    return v;
}

/* `equal`: the numbers of both are the same. */
static bool arg_fits(Aligning *a, NumberRole role, Arg *x, const Arg *y, bool equal)
{
    if (may_be_number(a, x, y) || (a->check && role == NUMBER_PLACE && is_whole_axis(x, y)))
        return true;
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case ARG_VAR: return is_same_value(a, x, y->var);
    case ARG_INT:
        return x->i == y->i ||
               (!equal && p2o_dim_is_int(x->i, NULL) && p2o_dim_is_int(y->i, NULL));
    case ARG_FLOAT: return !equal || x->f == y->f || (x->f != x->f && y->f != y->f);
    case ARG_BOOL: return x->b == y->b;
    case ARG_DTYPE: return x->dtype == y->dtype;
    case ARG_COMPLEX: return x->re_im[0] == y->re_im[0] && x->re_im[1] == y->re_im[1];
    case ARG_LIST:
        for (uint32_t i = 0; x->n == y->n && i < x->n; i++)
            if (!arg_fits(a, role, &x->items[i], &y->items[i], equal))
                return false;
        return x->n == y->n;
    case ARG_NONE:
    case ARG_BODY: return true;
    default: return same(x->s ? x->s : "", y->s ? y->s : "");
    }
}

static void note_uses(bool *only, const Arg *x, bool expands)
{
    if (x->kind == ARG_VAR)
        only[x->var->id] &= expands;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        note_uses(only, &x->items[i], false);
}

/* Of the program's Vars, by id: nothing but calls that expand them takes them. */
static const bool *find_only_expanded(const Program *p)
{
    bool *only = NEW_N(p->arena, bool, (size_t)p->nvar + 1);
    memset(only, true, p->nvar);
    for (size_t i = 0; i < p->main->calls.n; i++) {
        const Call *c = p->main->calls.at[i];
        for (int k = 0; k < c->nargs; k++)
            note_uses(only, &c->args[k], k == 0 && c->op && c->op->expands);
    }
    for (size_t i = 0; i < p->outputs.n; i++)
        note_uses(only, &p->outputs.at[i].value, false);
    return only;
}

/* PyTorch drops leading sizes of 1 ahead of an expand, as in x[:m] = y at m = 1.  With or without
 * them the expand gives the same. */
static bool drops_ones(const Aligning *a, const Call *c, const Call *d)
{
    return c->op->reshapes && d->op->reshapes && c->nouts == 1 && c->outs[0] && d->outs[0] &&
           c->nargs > 1 && c->args[1].kind == ARG_LIST && d->args[1].kind == ARG_LIST &&
           c->args[1].n != d->args[1].n && a->only_expanded[c->outs[0]->id] &&
           a->other_expanded[d->outs[0]->id];
}

/* Texts of calls that give nothing, what asserts say, have sizes in them. */
static bool is_said_only(const Call *c, const SchemaArg *a)
{
    return a->base == SB_STR && !c->nouts;
}

/* From argument `from` on.  `strict`: what is no size by its type is the same in both, an axis
 * say. */
static bool args_fit(Aligning *a, Call *c, const Call *d, int from, bool strict)
{
    for (int i = from; i < c->nargs; i++) {
        const SchemaArg *arg = &c->schema->args[i];
        NumberRole       role = p2o_op_role(c->op, arg);
        bool             equal = strict && role == NUMBER_SETTING && arg->base != SB_SYMINT;
        bool             ones = c->args[i].kind == ARG_LIST && drops_ones(a, c, d);
        if (!is_said_only(c, arg) && !ones &&
            !arg_fits(a, role, &c->args[i], &d->args[i], equal))
            return false;
    }
    return true;
}

static bool is_same_kind(const Call *c, const Call *d)
{
    if (!is_same_target(c, d) || c->nargs != d->nargs || c->nouts != d->nouts)
        return false;
    for (int i = 0; i < c->nouts; i++)
        if (!c->outs[i] != !d->outs[i])
            return false;
    return true;
}

static bool is_other_line(const Aligning *a, const Call *c, const Call *d)
{
    const Place *at = p2o_place_at(first_of(a)->diags, c->loc);
    const Place *to = p2o_place_at(first_of(a)->diags, d->loc);
    return at && to && at->text && to->text && !same(at->text, to->text);
}

/* Whether two calls that can be idle are one.  Lines that are known say so; settings that could be
 * sizes, such as a step, rarely differ. */
static int cost_as_one(void *user, const Call *c, const Call *d)
{
    enum { OTHER_PLACE = 2, OTHER_SETTING = 1 };
    Aligning *a = user;
    bool      elsewhere = c->loc != d->loc;
    if ((elsewhere && is_other_line(a, c, d)) || !is_same_kind(c, d) ||
        !args_fit(a, (Call *)(uintptr_t)c, d, 1, true))
        return -1;
    int cost = elsewhere ? OTHER_PLACE : 0;
    for (int i = 1; i < c->nargs; i++)
        if (p2o_op_role(c->op, &c->schema->args[i]) == NUMBER_SETTING &&
            c->args[i].kind == ARG_INT && c->args[i].i != d->args[i].i)
            cost += OTHER_SETTING;
    return cost;
}

static Type with_leading_ones(const Aligning *a, Type t, uint32_t rank)
{
    Dim *at = NEW_N(first_of(a)->arena, Dim, (size_t)rank + 1);
    int  more = (int)rank - t.shape.rank;
    if (t.kind != TY_TENSOR || more <= 0)
        return t;
    for (int i = 0; i < (int)rank; i++)
        at[i] = i < more ? p2o_dim_int(first_of(a)->dims, 1) : t.shape.at[i - more];
    t.shape = (Shape){ (int)rank, at };
    return t;
}

static void lengthen(const Aligning *a, Arg *x, uint32_t n)
{
    Arg *items = NEW_N(first_of(a)->arena, Arg, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        items[i] = i < n - x->n ? arg_int(p2o_dim_int(first_of(a)->dims, 1))
                                : x->items[i - (n - x->n)];
    *x = arg_list(items, n);
}

/* Both get as many sizes as the longer; the other capture's call is a copy then. */
static const Call *with_dropped_ones(const Aligning *a, Call *c, const Call *d)
{
    uint32_t n = c->args[1].n > d->args[1].n ? c->args[1].n : d->args[1].n;
    Call    *copy = NEW(first_of(a)->arena, Call);
    *copy = *d;
    copy->args = NEW_N(first_of(a)->arena, Arg, (size_t)d->nargs);
    memcpy(copy->args, d->args, (size_t)d->nargs * sizeof *d->args);
    lengthen(a, &c->args[1], n);
    lengthen(a, &copy->args[1], n);
    c->outs[0]->recorded = with_leading_ones(a, c->outs[0]->recorded, n);
    for (int k = 1; k < a->l->n && c->outs[0]->also; k++)
        if (a->done[k])
            ((Type *)(uintptr_t)c->outs[0]->also)[k - 1] =
                with_leading_ones(a, c->outs[0]->also[k - 1], n);
    return copy;
}

/* What is said to be equal once types are known. */
static void note_claims(Aligning *a, const Call *c, const Arg *x, const Arg *y)
{
    int64_t v;
    for (uint32_t i = 0; x->kind == ARG_LIST && y->kind == ARG_LIST && i < x->n && i < y->n; i++)
        note_claims(a, c, &x->items[i], &y->items[i]);
    bool symbolic = x->kind == ARG_VAR || (x->kind == ARG_INT && !p2o_dim_is_int(x->i, NULL));
    if (y->kind != ARG_INT || !symbolic || !p2o_dim_is_int(y->i, &v))
        return;
    Claim claim = { c, x, a->k, v };
    VEC_PUSH(first_of(a)->arena, &a->l->claims, claim);
}

static bool line_up_body(Aligning *a, Body *x, const Body *y, size_t *row);

static bool line_up_bodies(Aligning *a, Call *c, const Call *d, size_t *row)
{
    for (int i = 0; i < c->nargs; i++)
        if (c->args[i].kind == ARG_BODY && !line_up_body(a, c->args[i].body, d->args[i].body, row))
            return false;
    return true;
}

/* Both are one call, and what they work on is one. */
static void pair_calls(Aligning *a, Call *c, const Call *d, size_t row)
{
    bool ones = drops_ones(a, c, d);
    for (int i = 0; i < c->nargs && a->check; i++)
        note_claims(a, c, &c->args[i], &d->args[i]);
    if (ones)
        d = with_dropped_ones(a, c, d);
    a->l->calls.at[row].of[a->k] = d;
    for (int i = 0; i < c->nouts; i++) {
        if (!c->outs[i])
            continue;
        Type t = d->outs[i]->recorded;
        pair_vars(a, c->outs[i], d->outs[i]);
        keep_recorded(a, c->outs[i], ones ? with_leading_ones(a, t, c->args[1].n) : t);
    }
}

static void leave_out(Aligning *a, Call *c)
{
    const Var *v = c->args[0].var;
    a->means[c->outs[0]->id] = a->means[v->id];
    keep_recorded(a, c->outs[0], p2o_recorded_at(v, a->k));
}

/* A size that the first capture has as a symbol: numbers of other captures can't stand there. */
static bool is_symbolic(const Program *p)
{
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        Shape s = p->main->inputs.at[i]->recorded.shape;
        for (int k = 0; k < s.rank; k++)
            if (!p2o_dim_is_int(s.at[k], NULL))
                return true;
    }
    return false;
}

static void add_put(Aligning *a, const Var *from, Call *c, const Call *d)
{
    PutIn     *put = NEW(first_of(a)->arena, PutIn);
    const Var *after = a->after[from->id] ? a->after[from->id] : from;
    put->line.call = c;
    put->line.of[a->k] = d;
    *(a->last[after->id] ? &a->last[after->id]->next : &a->puts[after->id]) = put;
    a->last[after->id] = put;
    a->after[c->outs[0]->id] = after;
    a->has_puts = true;
}

/* A copy of a call of capture k takes part from here on. */
static Var *put_in(Aligning *a, Var *from, const Call *d)
{
    Program *p = first_of(a);
    if (a->body != p->main || a->symbolic)
        return NULL;
    for (int i = 1; i < d->nargs; i++)
        if (d->args[i].kind == ARG_VAR)
            return NULL;
    Call *c = NEW(p->arena, Call);
    *c = *d;
    c->args = NEW_N(p->arena, Arg, (size_t)d->nargs);
    for (int i = 0; i < d->nargs; i++)
        c->args[i] = copy_arg(a->l, &d->args[i]);
    c->args[0].var = from;
    c->outs = NEW(p->arena, Var *);
    Var *out = c->outs[0] = p2o_var_fresh(p, p->main, d->outs[0]->name);
    out->def = c;
    out->recorded = from->recorded;
    for (int k = 1; k < a->l->n; k++) {
        Aligning before = { .l = a->l, .k = k };
        if (a->done[k])
            keep_recorded(&before, out, p2o_recorded_at(from, k));
    }
    keep_recorded(a, out, d->outs[0]->recorded);
    add_put(a, from, c, d);
    pair_vars(a, out, d->outs[0]);
    return out;
}

/* `now` is v after calls that were put in for this capture: they do nothing in those before. */
static bool is_put_in_after(const Aligning *a, const Var *now, const Var *v)
{
    while (now != v && a->after[now->id])
        now = now->def->args[0].var;
    return now == v;
}

/* Goes from v, after the calls of both chains, to what they give; NULL: some can't be put in. */
static Var *take_chain(Aligning *a, const Chains *x, Var *v)
{
    for (size_t i = 0; i < x->nstep && v; i++) {
        Call       *c = x->steps[i].c;
        const Call *d = x->steps[i].d;
        if (c)
            c->args[0].var = v;
        if (c && d)
            pair_calls(a, c, d, a->row_of[c->outs[0]->id]);
        else if (c)
            leave_out(a, c);
        else if (!p2o_has_numbers(d))
            a->to_first[d->outs[0]->id] = (Var *)(uintptr_t)a->means[v->id];
        else
            v = put_in(a, v, d);
        v = c ? c->outs[0] : v;
    }
    return v;
}

static bool collect_chains(const Aligning *a, Chains *x, Var **v, const Var **w)
{
    for (; !a->means[(*v)->id] && idle_def(*v) && x->nc < MOST_IN_CHAIN; x->nc++) {
        x->c[x->nc] = (*v)->def;
        *v = (*v)->def->args[0].var;
    }
    for (; !a->to_first[(*w)->id] && idle_def(*w) && x->nd < MOST_IN_CHAIN; x->nd++) {
        x->d[x->nd] = (*w)->def;
        *w = (*w)->def->args[0].var;
    }
    for (size_t i = 0; i < x->nc / 2; i++) {
        Call *c = x->c[i];
        x->c[i] = x->c[x->nc - 1 - i];
        x->c[x->nc - 1 - i] = c;
    }
    for (size_t i = 0; i < x->nd / 2; i++) {
        const Call *d = x->d[i];
        x->d[i] = x->d[x->nd - 1 - i];
        x->d[x->nd - 1 - i] = d;
    }
    return a->means[(*v)->id] && a->to_first[(*w)->id];
}

/* What stands for v of the first and w of capture k in the open program, v being made by calls that
 * may be idle in k, and w by others that may be idle in those before; NULL: they are not one. */
static Var *meet(Aligning *a, Var *v, const Var *w)
{
    Chains x = { .cost = cost_as_one, .user = a };
    if (!collect_chains(a, &x, &v, &w))
        return NULL;
    Var *other = a->to_first[w->id];
    if (a->means[v->id] != other) {
        if (!is_put_in_after(a, other, v))
            return NULL;
        v = other;
    }
    return p2o_align_chains(&x) ? take_chain(a, &x, v) : NULL;
}

/* Sizes and what is asserted of them: a capture with fixed sizes has none of it. */
static bool makes_no_tensor(const Call *c)
{
    for (int i = 0; i < c->nouts; i++)
        if (c->outs[i] && c->outs[i]->recorded.kind <= TY_TENSOR)
            return false;
    for (int i = 0; i < c->nargs; i++)
        if (c->args[i].kind == ARG_BODY)
            return false;
    return true;
}

/* Calls that may do nothing are looked at where something takes what they give. */
static bool is_passed_by(const Aligning *a, const Call *c)
{
    return can_be_idle(c) || (a->check && makes_no_tensor(c));
}

/* Calls [from, to) of a body, passed by; `row` is that of the first. */
typedef struct Passed {
    const Body *body;
    size_t      from, to, row;
} Passed;

/* Numbers that the data tell have calls in a capture with fixed sizes too. */
static void pair_numbers(Aligning *a, const Passed *p, const Passed *q)
{
    enum { FAR = 256 };         /* sizes that are computed between two such calls, at most */
    size_t next = p->from;
    for (size_t k = q->from; a->check && k < q->to; k++) {
        const Call *d = q->body->calls.at[k];
        bool        found = !d->nouts || !makes_no_tensor(d);
        for (size_t m = next; !found && m < p->to && m < next + FAR; m++) {
            Call *c = p->body->calls.at[m];
            found = makes_no_tensor(c) && is_same_kind(c, d) && args_fit(a, c, d, 0, false);
            if (found) {
                pair_calls(a, c, d, p->row + (m - p->from));
                next = m + 1;
                break;
            }
        }
    }
}

static bool line_up_calls(Aligning *a, Body *x, const Body *y, size_t *row)
{
    size_t i = 0, j = 0;
    for (;; i++, j++) {
        Passed p = { x, i, i, *row }, q = { y, j, j, 0 };
        for (; i < x->calls.n && is_passed_by(a, x->calls.at[i]); i++)
            (*row)++;
        while (j < y->calls.n && is_passed_by(a, y->calls.at[j]))
            j++;
        p.to = i;
        q.to = j;
        pair_numbers(a, &p, &q);
        if (i == x->calls.n || j == y->calls.n)
            break;
        Call       *c = x->calls.at[i];
        const Call *d = y->calls.at[j];
        if (!is_same_kind(c, d) || !args_fit(a, c, d, 0, false))
            return differs_in(a, c, d,
                              is_same_target(c, d) ? "has other arguments than" : "against");
        pair_calls(a, c, d, (*row)++);
        if (!line_up_bodies(a, c, d, row))
            return false;
    }
    if (i == x->calls.n && j == y->calls.n)
        return true;
    const Program *p = i < x->calls.n ? first_of(a) : other_of(a);
    const Call    *c = i < x->calls.n ? x->calls.at[i] : y->calls.at[j];
    return part_ways(a, c->loc,
                     p2o_printf(p->arena, "%s has no match in the other", place_text(p, c)));
}

/* Nothing takes what these give. */
static void line_up_unused(Aligning *a, const Body *x, const Body *y)
{
    enum { SOON = 6 };
    size_t j = 0;
    for (size_t i = 0; i < x->calls.n; i++) {
        Call *c = x->calls.at[i];
        if (!can_be_idle(c) || a->means[c->outs[0]->id])
            continue;
        const Call *d = NULL;
        for (size_t k = j, seen = 0; k < y->calls.n && !d && seen < SOON; k++) {
            const Call *other = y->calls.at[k];
            if (!can_be_idle(other) || a->to_first[other->outs[0]->id])
                continue;
            seen++;
            if (is_same_kind(c, other) && args_fit(a, c, other, 0, true)) {
                d = other;
                j = k + 1;
            }
        }
        if (d)
            pair_calls(a, c, d, a->row_of[c->outs[0]->id]);
        else
            leave_out(a, c);
    }
}

static bool line_up_body(Aligning *a, Body *x, const Body *y, size_t *row)
{
    const Body *around = a->body;
    if (x->inputs.n != y->inputs.n || x->outputs.n != y->outputs.n)
        return part_ways(a, 0, p2o_printf(first_of(a)->arena, "body '%s' is another", x->name));
    a->body = x;
    for (size_t i = 0; i < x->inputs.n; i++)
        pair_vars(a, x->inputs.at[i], y->inputs.at[i]);
    if (!line_up_calls(a, x, y, row))
        return false;
    for (size_t i = 0; i < x->outputs.n; i++)
        if (!arg_fits(a, NUMBER_SETTING, &x->outputs.at[i], &y->outputs.at[i], true))
            return part_ways(a, 0,
                             p2o_printf(first_of(a)->arena, "result %zu is another", i + 1));
    line_up_unused(a, x, y);
    a->body = around;
    return true;
}

static bool line_up_weights(const Aligning *a)
{
    const Program *x = first_of(a), *y = other_of(a);
    if (x->weights.n != y->weights.n)
        return part_ways(a, 0, "they have different numbers of weights and constants");
    for (size_t i = 0; i < x->weights.n; i++) {
        pair_vars(a, x->weights.at[i], y->weights.at[i]);
        keep_recorded(a, x->weights.at[i], y->weights.at[i]->recorded);
    }
    return true;
}

typedef struct Placing {
    Program        *prog;
    const Aligning *a;
    VEC(Call *)     calls;
    VEC(LinedCall)  rows;
} Placing;

static void place_after(Placing *w, const Var *v)
{
    for (const PutIn *p = v ? w->a->puts[v->id] : NULL; p; p = p->next) {
        VEC_PUSH(w->prog->arena, &w->calls, p->line.call);
        VEC_PUSH(w->prog->arena, &w->rows, p->line);
    }
}

/* Each right after what it works on is made, and after the rows of bodies there. */
static void place_puts(Aligning *a)
{
    Program *p = first_of(a);
    Placing  w = { .prog = p, .a = a };
    size_t   row = 0;
    for (size_t i = 0; i < p->weights.n; i++)
        place_after(&w, p->weights.at[i]);
    for (size_t i = 0; i < p->main->inputs.n; i++)
        place_after(&w, p->main->inputs.at[i]);
    for (size_t i = 0; i < p->main->calls.n; i++) {
        Call       *c = p->main->calls.at[i];
        const Call *next = i + 1 < p->main->calls.n ? p->main->calls.at[i + 1] : NULL;
        VEC_PUSH(p->arena, &w.calls, c);
        for (; row < a->l->calls.n && a->l->calls.at[row].call != next; row++)
            VEC_PUSH(p->arena, &w.rows, a->l->calls.at[row]);
        for (int k = 0; k < c->nouts; k++)
            place_after(&w, c->outs[k]);
    }
    p->main->calls.at = w.calls.at;
    p->main->calls.n = w.calls.n;
    p->main->calls.cap = w.calls.cap;
    a->l->calls.at = w.rows.at;
    a->l->calls.n = w.rows.n;
    a->l->calls.cap = w.rows.cap;
}

static bool line_up_one(Aligning *a)
{
    const Program *x = first_of(a), *y = other_of(a);
    size_t         row = 0;
    if (!line_up_weights(a))
        return false;
    for (size_t i = 0; i < x->main->inputs.n; i++) {
        pair_vars(a, x->main->inputs.at[i], y->main->inputs.at[i]);
        keep_recorded(a, x->main->inputs.at[i], y->main->inputs.at[i]->recorded);
    }
    if (!line_up_body(a, x->main, y->main, &row))
        return false;
    if (x->outputs.n != y->outputs.n)
        return part_ways(a, 0, "they return different numbers of values");
    for (size_t i = 0; i < x->outputs.n; i++)
        arg_fits(a, NUMBER_SETTING, &first_of(a)->outputs.at[i].value, &y->outputs.at[i].value,
                 true);
    if (a->has_puts)
        place_puts(a);
    return true;
}

static Body *copy_body(Lineup *l, const Body *b);

static Arg copy_arg(Lineup *l, const Arg *x)
{
    Arg out = *x;
    if (x->kind == ARG_LIST) {
        out.items = NEW_N(l->p[0]->arena, Arg, (size_t)x->n + 1);
        for (uint32_t i = 0; i < x->n; i++)
            out.items[i] = copy_arg(l, &x->items[i]);
    } else if (x->kind == ARG_BODY) {
        out.body = copy_body(l, x->body);
    }
    return out;
}

/* Values are shared with what was read, calls and arguments are not. */
static Body *copy_body(Lineup *l, const Body *b)
{
    Program *p = l->p[0];
    Body    *out = NEW(p->arena, Body);
    *out = *b;
    out->calls.at = NEW_N(p->arena, Call *, b->calls.n + 1);
    out->calls.cap = b->calls.n + 1;
    for (size_t i = 0; i < b->calls.n; i++) {
        Call *c = NEW(p->arena, Call);
        *c = *b->calls.at[i];
        out->calls.at[i] = c;
        LinedCall row = { .call = c };
        row.of[0] = b->calls.at[i];
        VEC_PUSH(p->arena, &l->calls, row);
        c->args = NEW_N(p->arena, Arg, (size_t)c->nargs + 1);
        for (int k = 0; k < c->nargs; k++)
            c->args[k] = copy_arg(l, &b->calls.at[i]->args[k]);
        for (int k = 0; k < c->nouts; k++)
            if (c->outs[k])
                c->outs[k]->def = c;
    }
    return out;
}

static bool line_up_capture(Lineup *l, Bindings *b, int k, bool *done)
{
    Program *p = l->p[0], *q = l->p[k];
    size_t   most = (size_t)p->nvar + q->main->calls.n + 1;         /* with calls that are put in */
    Aligning a = { .l = l, .bind = b, .k = k, .check = k >= p2o_nfit(b), .done = done,
                   .to_first = NEW_N(p->arena, Var *, (size_t)q->nvar + 1),
                   .means = NEW_N(p->arena, const Var *, most),
                   .row_of = NEW_N(p->arena, size_t, most),
                   .after = NEW_N(p->arena, const Var *, most),
                   .puts = NEW_N(p->arena, PutIn *, most), .last = NEW_N(p->arena, PutIn *, most),
                   .only_expanded = find_only_expanded(p), .other_expanded = find_only_expanded(q),
                   .symbolic = is_symbolic(p) };
    for (size_t i = 0; i < l->calls.n; i++) {
        const Call *c = l->calls.at[i].call;
        if (c->nouts && c->outs[0])
            a.row_of[c->outs[0]->id] = i;
    }
    return line_up_one(&a);
}

/* Those with the most calls first: they show in which order calls stand that others lack. */
bool p2o_line_up(Lineup *l, Bindings *b)
{
    bool done[MAX_CAPTURES] = { true };
    l->p[0]->main = copy_body(l, l->p[0]->main);
    for (int n = 1; n < l->n; n++) {
        int next = 0;
        for (int k = 1; k < l->n; k++)
            if (!done[k] && (!next || l->p[k]->main->calls.n > l->p[next]->main->calls.n))
                next = k;
        if (!line_up_capture(l, b, next, done))
            return false;
        done[next] = true;
    }
    return true;
}

/* What a symbol of the first is in captures that are only checked. */
static void note_checked_sizes(Program *const *p, int n, Bindings *b, size_t which, int axis)
{
    Dim     sym = p2o_resolve(b, p[0]->main->inputs.at[which]->type.shape.at[axis]);
    int64_t size;
    for (int k = p2o_nfit(b); k < n && p2o_dim_is_sym(sym); k++)
        if (p2o_dim_is_int(p[k]->main->inputs.at[which]->recorded.shape.at[axis], &size))
            p2o_set_hint_at(b, sym, k, size);
}

static bool name_axis_that_differs(Program *const *p, int n, Bindings *b, const InputSpec *input,
                                   size_t which, int axis)
{
    int64_t size[MAX_CAPTURES];
    Dim    *at = (Dim *)(uintptr_t)&input->var->type.shape.at[axis];
    bool    differs = false;
    for (int k = 0; k < n; k++) {
        if (p2o_dim_is_int(p[k]->main->inputs.at[which]->recorded.shape.at[axis], &size[k])) {
            differs |= size[k] != size[0];
            continue;
        }
        if (k > 0)
            return true;
        note_checked_sizes(p, n, b, which, axis);
        return true;                            /* a symbol of the capture stays one */
    }
    if (!differs && p2o_dim_is_int(*at, NULL))
        return true;
    if (p2o_dim_is_int(*at, NULL)) {
        *at = p2o_dim_sym(p[0]->dims, p2o_printf(p[0]->arena, "%s_%d", input->name, axis));
        p2o_set_role(b, *at, ROLE_FILE);
    }
    for (int k = 0; k < n && p2o_dim_is_sym(*at); k++) {
        int64_t had;
        if (p2o_hint_at(b, *at, k, &had) && had != size[k]) {
            p2o_diag_advise(p[0]->diags, DIAG_NOT_DYNAMIC, 0, "use another name for one of them",
                            "'%s' names sizes that differ in capture %d: %lld, and %lld for "
                            "axis %d of '%s'",
                            p2o_dim_name(*at), p[k]->capture, (long long)had, (long long)size[k],
                            axis, input->name);
            return false;
        }
        p2o_set_hint_at(b, *at, k, size[k]);
    }
    return true;
}

static size_t input_index(const Program *p, const Var *v)
{
    size_t i = 0;
    while (i < p->main->inputs.n && p->main->inputs.at[i] != v)
        i++;
    return i;
}

/* An axis that the user calls past+seq is that in every capture. */
static bool is_as_declared(Program *const *p, int n, Bindings *b, const AxisExpr *x)
{
    size_t  which = input_index(p[0], x->var);
    Dim     d = x->var->type.shape.at[x->axis];
    int64_t want, have;
    for (int k = 0; k < n; k++) {
        if (!p2o_hint_at(b, d, k, &want) ||
            !p2o_dim_is_int(p[k]->main->inputs.at[which]->recorded.shape.at[x->axis], &have) ||
            want == have)
            continue;
        p2o_diag_advise(p[0]->diags, DIAG_NOT_DYNAMIC, 0, "give the axis a name of its own",
                        "axis %d of '%s' is %lld in capture %d, where %s is %lld", x->axis,
                        x->input, (long long)have, p[k]->capture, x->text, (long long)want);
        return false;
    }
    return true;
}

bool p2o_line_up_inputs(Program *const *p, int n, Bindings *b)
{
    Lineup l = { .p = p, .n = n };
    for (int k = 1; k < n; k++) {
        Aligning a = { .l = &l, .bind = b, .k = k };
        if (p[k]->main->inputs.n != p[0]->main->inputs.n)
            return part_ways(&a, 0, "they have different numbers of inputs");
        for (size_t i = 0; i < p[0]->main->inputs.n; i++) {
            const Type *x = &p[0]->main->inputs.at[i]->recorded;
            const Type *y = &p[k]->main->inputs.at[i]->recorded;
            if (x->kind != y->kind || x->dtype != y->dtype || x->shape.rank != y->shape.rank)
                return part_ways(&a, 0,
                                 p2o_printf(p[0]->arena, "input %zu has another type", i + 1));
        }
    }
    for (size_t i = 0; i < p[0]->inputs.n; i++) {
        const InputSpec *s = &p[0]->inputs.at[i];
        size_t           which = s->var ? input_index(p[0], s->var) : 0;
        for (int axis = 0; s->var && which < p[0]->main->inputs.n && axis < s->var->type.shape.rank;
             axis++)
            if (!name_axis_that_differs(p, n, b, s, which, axis))
                return false;
    }
    for (size_t i = 0; i < p[0]->axis_exprs.n; i++)
        if (!is_as_declared(p, n, b, &p[0]->axis_exprs.at[i]))
            return false;
    return true;
}
