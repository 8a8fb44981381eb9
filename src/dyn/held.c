#include "dyn/held.h"

#include <math.h>

#include "dyn/large.h"
#include "dyn/range.h"

/* Where sizes were taken by evidence, and the program then needs what does not hold even at sizes
 * that everything divides, another expression was meant; but for what told the sizes. */
static bool holds_at_large_sizes(const Found *f)
{
    bool taken = false;
    for (size_t i = 0; i < p2o_bind_nevent(f->bind); i++) {
        const BindEvent *e = p2o_bind_event(f->bind, i);
        bool             fixes = e->why == BIND_RULE && p2o_role(f->bind, e->sym) >= ROLE_FILE &&
                                 !p2o_dim_is_sym(e->to);
        if (taken && fixes) {
            p2o_diag(f->prog->diags, DIAG_NOT_DYNAMIC, e->loc,
                     "%s: sizes taken by evidence would need %s = %s", e->by,
                     p2o_dim_name(e->sym), p2o_dim_text(f->prog->dims, e->to));
            return false;
        }
        taken |= e->why == BIND_EVIDENCE && !p2o_dim_is_int(e->to, NULL);
    }
    for (size_t i = 0; taken && i < p2o_nneed(f->bind); i++) {
        const Need *n = p2o_need_at(f->bind, i);
        Dim         x = p2o_resolve(f->bind, n->a), y = p2o_resolve(f->bind, n->b);
        LargeSizes  at = { .symbols = f->symbols, .n = f->nsymbol };
        for (; n->kind == NEED_EQ && at.turn < 4; at.turn++) {
            if (p2o_large_same(f->prog->dims, &at, x, y) ||
                (f->solved && p2o_solved_has(f->solved, x, y)))
                continue;
            p2o_diag(f->prog->diags, DIAG_NOT_DYNAMIC, n->loc,
                     "%s: sizes taken by evidence would need %s = %s", n->by,
                     p2o_dim_text(f->prog->dims, x), p2o_dim_text(f->prog->dims, y));
            return false;
        }
    }
    return true;
}

typedef struct Unbounded {
    const Found *found;
    bool         all;
} Unbounded;

static void note_bounded(void *user, Dim sym)
{
    Unbounded *u = user;
    int64_t    lo, hi;
    p2o_range_needed(u->found->prog, u->found->bind, sym, &lo, &hi);
    u->all &= hi == NO_UPPER;
}

/* 9 - n is no size of a tensor where nothing bounds n. */
static bool is_negative_at_large(const Found *f, Dim d)
{
    LargeSizes at = { .symbols = f->symbols, .n = f->nsymbol };
    Unbounded  u = { f, true };
    int64_t    v;
    if (p2o_dim_is_int(d, NULL) || !p2o_large_eval(f->prog->dims, &at, d, &v) || v >= 0)
        return false;
    p2o_dim_symbols(d, note_bounded, &u);
    return u.all;
}

static bool sizes_stay_positive(const Found *f)
{
    for (size_t i = 0; i < f->prog->main->calls.n; i++) {
        const Call *c = f->prog->main->calls.at[i];
        for (int k = 0; k < c->nouts; k++)
            for (int j = 0; c->outs[k] && j < c->outs[k]->type.shape.rank; j++) {
                Dim d = p2o_resolve(f->bind, c->outs[k]->type.shape.at[j]);
                if (!is_negative_at_large(f, d))
                    continue;
                p2o_diag_advise(f->prog->diags, DIAG_NOT_DYNAMIC, c->loc,
                                p2o_unsettled_advice(f->prog),
                                "%s: a size would be %s, which is negative at large sizes",
                                c->target, p2o_dim_text(f->prog->dims, d));
                return false;
            }
    }
    return true;
}

/* What a site turned out to be, in a capture that was held out. */
static bool is_as_found(const Found *f, const Site *x, int k)
{
    int64_t v;
    double  was;
    if (x->open)
        return p2o_hint_at(f->bind, p2o_resolve(f->bind, x->open), k, &v) &&
               (double)v == (x->negative ? -x->at[k] : x->at[k]);
    if (x->verdict.kind != VERDICT_SIZE)
        return x->at[k] == x->at[0] || (isnan(x->at[k]) && isnan(x->at[0]));
    const Bases *of = x->verdict.best->of;
    Bases        at = { .n = of->n, .npoint = 1 };
    for (int i = 0; i < of->n; i++) {
        if (!p2o_hint_at(f->bind, p2o_resolve(f->bind, of->dim[i]), k, &v))
            return false;
        at.at[i][0] = (double)v;
    }
    return p2o_expr_eval(&at, x->verdict.best->expr, 0, &was) &&
           fabs(was - x->at[k]) <= 1e-9 * fabs(was);
}

/* Captures that no expression was fitted to must have had what was found. */
static bool holds_in_checks(const Found *f)
{
    for (size_t i = 0; i < f->sites->list.n; i++) {
        const Site *x = f->sites->list.at[i];
        for (int k = p2o_nfit(f->bind); k < p2o_ncapture(f->bind); k++) {
            if (is_as_found(f, x, k))
                continue;
            const char *found = x->open
                                    ? p2o_dim_text(f->prog->dims, p2o_resolve(f->bind, x->open))
                                    : "found";
            Telling t = p2o_telling_capture(f->prog->arena, f->bind, f->symbols, f->nsymbol, k);
            p2o_diag_capture(f->prog->diags, DIAG_NOT_DYNAMIC, x->call->loc, t.json,
                             p2o_printf(f->prog->arena, "a capture at %s tells more than a check",
                                        t.text),
                             "%s: capture %d, a check, has %s%.10g where %s was expected",
                             x->call->target, f->lineup->p[k]->capture, x->negative ? "-" : "",
                             x->at[k], found);
            return false;
        }
    }
    return true;
}

bool p2o_claims_hold(const Found *f)
{
    for (size_t i = 0; i < f->lineup->claims.n; i++) {
        const Claim *c = &f->lineup->claims.at[i];
        Dim          d = c->arg->kind == ARG_VAR ? c->arg->var->type.value : c->arg->i;
        int64_t      v;
        if (c->arg->kind == ARG_VAR && c->arg->var->type.kind != TY_INT)
            continue;
        if (p2o_hint_at(f->bind, p2o_resolve(f->bind, d), c->k, &v) && v == c->value)
            continue;
        p2o_diag(f->prog->diags, DIAG_NOT_DYNAMIC, c->call->loc,
                 "%s: capture %d, a check, has %lld where %s was expected",
                 c->call->target, f->lineup->p[c->k]->capture, (long long)c->value,
                 p2o_dim_text(f->prog->dims, p2o_resolve(f->bind, d)));
        return false;
    }
    return true;
}

static bool literal_of(const Arg *x, double *v)
{
    int64_t i;
    if (x->kind == ARG_INT && p2o_dim_is_int(x->i, &i))
        *v = (double)i;
    else if (x->kind == ARG_FLOAT && !isnan(x->f))
        *v = x->f;
    else
        return false;
    return true;
}

static bool same_literals(const Arg *x, const Arg *y)
{
    double v, w;
    for (uint32_t i = 0; x->kind == ARG_LIST && y->kind == ARG_LIST && i < x->n && i < y->n; i++)
        if (!same_literals(&x->items[i], &y->items[i]))
            return false;
    return !literal_of(x, &v) || !literal_of(y, &w) || v == w;
}

bool p2o_literals_hold(const Found *f)
{
    for (size_t i = 0; i < f->lineup->calls.n; i++) {
        const LinedCall *row = &f->lineup->calls.at[i];
        for (int k = 1; k < f->lineup->n; k++)
            for (int a = 0; row->of[k] && a < row->call->nargs && a < row->of[k]->nargs; a++) {
                if (same_literals(&row->call->args[a], &row->of[k]->args[a]))
                    continue;
                p2o_diag_advise(f->prog->diags, DIAG_NOT_DYNAMIC, row->call->loc,
                                "take captures at fixed sizes, as `pt2onnx plan` says",
                                "%s: capture %d, a check, has another number: it follows a size",
                                row->call->target, f->lineup->p[k]->capture);
                return false;
            }
    }
    return true;
}

bool p2o_found_holds(const Found *f)
{
    return holds_at_large_sizes(f) && sizes_stay_positive(f) && holds_in_checks(f);
}
