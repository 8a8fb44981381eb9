#include "dyn/lineup.h"

typedef struct Aligning {
    Lineup   *l;
    Bindings *bind;
    int       k;                /* the capture that is lined up with the first */
    bool      check;            /* it is only held against the first, which may compute sizes that
                                 * it has as numbers */
    Var     **to_first;         /* its Vars, by id, to those of the first */
    bool     *gone;             /* of the first's Vars, by id: what makes them is not in
                                 * capture k */
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
    if (first && other)
        a->to_first[other->id] = first;
}

static void keep_recorded(const Aligning *a, Var *first, Type other)
{
    if (!first->also)
        first->also = NEW_N(first_of(a)->arena, Type, (size_t)a->l->n);
    ((Type *)(uintptr_t)first->also)[a->k - 1] = other;
}

/* The value that stands for v in capture k. */
static const Var *stand_in(const Aligning *a, const Var *v)
{
    while (v && a->gone[v->id])
        v = v->def->args[0].var;
    return v;
}

static bool was_put_in(const Aligning *a, const Var *v)
{
    for (size_t i = 0; i < a->l->put_in.n; i++)
        if (a->l->put_in.at[i] == v)
            return true;
    return false;
}

static bool has_numbers(const Call *c)
{
    for (int i = 1; i < c->nargs; i++)
        if (c->args[i].kind == ARG_INT || c->args[i].kind == ARG_LIST)
            return true;
    return false;
}

/* v is x after calls that the first capture lacked.  Copies that capture k lacks do nothing at any
 * size. */
static bool is_put_in_after(const Aligning *a, const Var *v, const Var *x)
{
    while (x && a->gone[x->id] && !has_numbers(x->def))
        x = x->def->args[0].var;
    while (v && v != x && was_put_in(a, v))
        v = v->def->args[0].var;
    return v == x;
}

static bool is_same_value(const Aligning *a, const Var *x, const Var *y)
{
    const Var *first = a->to_first[y->id];
    return first && (stand_in(a, x) == stand_in(a, first) || is_put_in_after(a, first, x));
}

/* What capture k has there, where a call was put in for it. */
static void take_put_in(const Aligning *a, Arg *x, const Arg *y)
{
    for (uint32_t i = 0; x->kind == ARG_LIST && y->kind == ARG_LIST && i < x->n && i < y->n; i++)
        take_put_in(a, &x->items[i], &y->items[i]);
    if (x->kind != ARG_VAR || y->kind != ARG_VAR)
        return;
    Var *first = a->to_first[y->var->id];
    if (first && first != x->var && stand_in(a, x->var) != stand_in(a, first) &&
        is_put_in_after(a, first, x->var))
        x->var = first;
}

static bool can_be_idle(const Call *c)
{
    return c->op->idle && c->nouts == 1 && c->outs[0] && c->nargs > 0 && c->args[0].kind == ARG_VAR;
}

/* Names of one thing: which of them PyTorch takes depends on strides, and those on sizes of 1. */
static bool is_same_target(const Call *c, const Call *d)
{
    return same(c->target, d->target) || (c->op->reshapes && d->op->reshapes);
}

static bool fits(const Aligning *a, const Call *c, const Call *d, bool strict);

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

/* `strict`: settings are equal too. */
static bool arg_fits(const Aligning *a, NumberRole role, const Arg *x, const Arg *y, bool strict)
{
    bool number = role != NUMBER_SETTING || !strict;
    if (may_be_number(a, x, y) || (a->check && role == NUMBER_PLACE && is_whole_axis(x, y)))
        return true;
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case ARG_VAR: return is_same_value(a, x->var, y->var);
    case ARG_INT:
        return x->i == y->i ||
               (number && p2o_dim_is_int(x->i, NULL) && p2o_dim_is_int(y->i, NULL));
    case ARG_FLOAT: return number || x->f == y->f || (x->f != x->f && y->f != y->f);
    case ARG_BOOL: return x->b == y->b;
    case ARG_DTYPE: return x->dtype == y->dtype;
    case ARG_COMPLEX: return x->re_im[0] == y->re_im[0] && x->re_im[1] == y->re_im[1];
    case ARG_LIST:
        for (uint32_t i = 0; x->n == y->n && i < x->n; i++)
            if (!arg_fits(a, role, &x->items[i], &y->items[i], strict))
                return false;
        return x->n == y->n;
    case ARG_NONE:
    case ARG_BODY: return true;
    default: return same(x->s ? x->s : "", y->s ? y->s : "");
    }
}

static bool mentions(const Arg *x, const Var *v)
{
    bool found = x->kind == ARG_VAR && x->var == v;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n && !found; i++)
        found = mentions(&x->items[i], v);
    return found;
}

static bool is_only_expanded(const Program *p, const Var *v)
{
    for (size_t i = 0; i < p->main->calls.n; i++) {
        const Call *c = p->main->calls.at[i];
        for (int k = 0; k < c->nargs; k++)
            if (mentions(&c->args[k], v) && !(k == 0 && same(c->target, "aten::expand")))
                return false;
    }
    for (size_t i = 0; i < p->outputs.n; i++)
        if (mentions(&p->outputs.at[i].value, v))
            return false;
    return true;
}

/* PyTorch drops leading sizes of 1 ahead of an expand, as in x[:m] = y at m = 1.  With or without
 * them the expand gives the same. */
static bool drops_ones(const Aligning *a, const Call *c, const Call *d)
{
    return c->op->reshapes && d->op->reshapes && c->nouts == 1 && c->outs[0] && d->outs[0] &&
           c->nargs > 1 && c->args[1].kind == ARG_LIST && d->args[1].kind == ARG_LIST &&
           c->args[1].n != d->args[1].n &&
           is_only_expanded(first_of(a), c->outs[0]) && is_only_expanded(other_of(a), d->outs[0]);
}

static bool fits(const Aligning *a, const Call *c, const Call *d, bool strict)
{
    if (!is_same_target(c, d) || c->nargs != d->nargs || c->nouts != d->nouts)
        return false;
    for (int i = 0; i < c->nouts; i++)
        if (!c->outs[i] != !d->outs[i])
            return false;
    for (int i = 0; i < c->nargs; i++) {
        NumberRole role = p2o_op_role(c->op, &c->schema->args[i]);
        bool       ones = c->args[i].kind == ARG_LIST && drops_ones(a, c, d);
        if (!same(c->schema->args[i].name, "assert_msg") && !ones &&
            !arg_fits(a, role, &c->args[i], &d->args[i], strict))
            return false;
    }
    return true;
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
    for (int k = 1; k < a->k && c->outs[0]->also; k++)
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

/* Rows of bodies come after the call's own. */
static bool pair_calls(Aligning *a, Call *c, const Call *d, size_t *row)
{
    bool ones = drops_ones(a, c, d);
    for (int i = 0; i < c->nargs; i++) {
        take_put_in(a, &c->args[i], &d->args[i]);
        if (a->check)
            note_claims(a, c, &c->args[i], &d->args[i]);
    }
    if (ones)
        d = with_dropped_ones(a, c, d);
    a->l->calls.at[(*row)++].of[a->k] = d;
    for (int i = 0; i < c->nouts; i++) {
        if (!c->outs[i])
            continue;
        Type t = d->outs[i]->recorded;
        pair_vars(a, c->outs[i], d->outs[i]);
        keep_recorded(a, c->outs[i], ones ? with_leading_ones(a, t, c->args[1].n) : t);
    }
    return line_up_bodies(a, c, d, row);
}

static void leave_out(Aligning *a, Call *c, size_t *row)
{
    const Var *v = stand_in(a, c->args[0].var);
    a->gone[c->outs[0]->id] = true;
    keep_recorded(a, c->outs[0], p2o_recorded_at(v, a->k));
    (*row)++;
}

/* A copy that the first lacks. */
static bool pass_over(Aligning *a, const Call *d)
{
    if (!d || !can_be_idle(d) || !a->to_first[d->args[0].var->id])
        return false;
    if (has_numbers(d))
        return false;                           /* at other sizes it does something */
    pair_vars(a, a->to_first[d->args[0].var->id], d->outs[0]);
    return true;
}

/* A call that the captures before lack, as it did nothing there: a copy of it takes part from here
 * on. */
static bool put_in(Aligning *a, Body *x, size_t at, const Call *d, size_t *row)
{
    Program *p = first_of(a);
    Var     *from = d && can_be_idle(d) ? a->to_first[d->args[0].var->id] : NULL;
    if (!from || x != p->main)
        return false;
    for (int i = 1; i < d->nargs; i++)
        if (d->args[i].kind == ARG_VAR)
            return false;
    Call *c = NEW(p->arena, Call);
    *c = *d;
    c->args = NEW_N(p->arena, Arg, (size_t)d->nargs);
    for (int i = 0; i < d->nargs; i++)
        c->args[i] = copy_arg(a->l, &d->args[i]);
    c->args[0].var = from;
    c->outs = NEW(p->arena, Var *);
    Var *out = c->outs[0] = p2o_var_fresh(p, x, d->outs[0]->name);
    out->def = c;
    out->recorded = from->recorded;
    for (int k = 1; k < a->k; k++) {
        Aligning before = { .l = a->l, .k = k };
        keep_recorded(&before, out, p2o_recorded_at(from, k));
    }
    keep_recorded(a, out, d->outs[0]->recorded);
    pair_vars(a, out, d->outs[0]);
    VEC_PUSH(p->arena, &a->l->put_in, out);
    LinedCall line = { .call = c };
    line.of[a->k] = d;
    VEC_PUSH(p->arena, &x->calls, NULL);
    memmove(x->calls.at + at + 1, x->calls.at + at, (x->calls.n - 1 - at) * sizeof *x->calls.at);
    x->calls.at[at] = c;
    VEC_PUSH(p->arena, &a->l->calls, line);
    LinedCall *rows = a->l->calls.at;
    memmove(rows + *row + 1, rows + *row, (a->l->calls.n - 1 - *row) * sizeof *rows);
    rows[(*row)++] = line;
    return true;
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

/* The call comes a little later in the other capture. */
static bool comes_soon(const Call *c, const Body *y, size_t j)
{
    enum { SOON = 6 };
    for (size_t i = j; i < y->calls.n && i < j + SOON; i++)
        if (y->calls.at[i]->loc == c->loc && is_same_target(c, y->calls.at[i]))
            return true;
    return false;
}

static bool line_up_calls(Aligning *a, Body *x, const Body *y, size_t *row)
{
    size_t i = 0, j = 0;
    while (i < x->calls.n || j < y->calls.n) {
        Call       *c = i < x->calls.n ? x->calls.at[i] : NULL;
        const Call *d = j < y->calls.n ? y->calls.at[j] : NULL;
        bool        idle = c && can_be_idle(c);
        if (a->check && c && makes_no_tensor(c)) {
            (*row)++;
            i++;
        } else if (a->check && d && makes_no_tensor(d)) {
            j++;
        } else if (c && d && fits(a, c, d, idle)) {
            if (!pair_calls(a, c, d, row))
                return false;
            i++;
            j++;
        } else if (idle && !(d && can_be_idle(d) && comes_soon(c, y, j + 1))) {
            leave_out(a, c, row);
            i++;
        } else if (pass_over(a, d)) {
            j++;
        } else if (put_in(a, x, i, d, row)) {
            i++;
            j++;
        } else if (idle) {
            leave_out(a, c, row);
            i++;
        } else if (c && d) {
            return differs_in(a, c, d,
                              is_same_target(c, d) ? "has other arguments than" : "against");
        } else {
            const Program *p = c ? first_of(a) : other_of(a);
            return part_ways(a, c ? c->loc : d->loc,
                             p2o_printf(p->arena, "%s has no match in the other",
                                        place_text(p, c ? c : d)));
        }
    }
    return true;
}

static bool results_fit(const Aligning *a, const Arg *x, const Arg *y, size_t i)
{
    return arg_fits(a, NUMBER_SETTING, x, y, true) ||
           part_ways(a, 0, p2o_printf(first_of(a)->arena, "result %zu is another", i + 1));
}

static bool line_up_body(Aligning *a, Body *x, const Body *y, size_t *row)
{
    if (x->inputs.n != y->inputs.n || x->outputs.n != y->outputs.n)
        return part_ways(a, 0, p2o_printf(first_of(a)->arena, "body '%s' is another", x->name));
    for (size_t i = 0; i < x->inputs.n; i++)
        pair_vars(a, x->inputs.at[i], y->inputs.at[i]);
    if (!line_up_calls(a, x, y, row))
        return false;
    for (size_t i = 0; i < x->outputs.n; i++) {
        if (!results_fit(a, &x->outputs.at[i], &y->outputs.at[i], i))
            return false;
        take_put_in(a, &x->outputs.at[i], &y->outputs.at[i]);
    }
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
        take_put_in(a, &x->outputs.at[i].value, &y->outputs.at[i].value);
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

bool p2o_line_up(Lineup *l, Bindings *b)
{
    Program *p = l->p[0];
    p->main = copy_body(l, p->main);
    for (int k = 1; k < l->n; k++) {
        Aligning a = { .l = l, .bind = b, .k = k, .check = k >= p2o_nfit(b),
                       .to_first = NEW_N(p->arena, Var *, (size_t)l->p[k]->nvar + 1),
                       .gone = NEW_N(p->arena, bool,
                                     (size_t)p->nvar + l->p[k]->main->calls.n + 1) };
        if (!line_up_one(&a))
            return false;
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
    return true;
}
