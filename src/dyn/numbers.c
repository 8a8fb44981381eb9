#include "dyn/numbers.h"

#include "aten/schema.h"

typedef struct Alike {
    Dim         sym;
    const Call *first;
    size_t      n;
} Alike;

typedef struct Numbers {
    const Program *prog;
    Bindings      *bind;
    VEC(Alike)     sizes;
} Numbers;

static void add_fixed_size(Numbers *w, Dim sym)
{
    for (size_t i = 0; i < w->sizes.n; i++)
        if (w->sizes.at[i].sym == sym)
            return;
    VEC_PUSH(w->prog->arena, &w->sizes, (Alike){ .sym = sym });
}

static bool was_in_all(Bindings *b, Dim sym, double v)
{
    int64_t hint;
    for (int k = 0; k < p2o_ncapture(b); k++)
        if (!p2o_hint_at(b, sym, k, &hint) || (double)hint != v)
            return false;
    return true;
}

static void note_number(Numbers *w, const Call *c, double v)
{
    for (size_t i = 0; i < w->sizes.n; i++) {
        Alike *x = &w->sizes.at[i];
        if (!was_in_all(w->bind, x->sym, v))
            continue;
        x->first = x->first ? x->first : c;
        x->n++;
    }
}

static bool number_in(const Arg *x, double *v)
{
    int64_t i;
    if (x->kind == ARG_INT && p2o_dim_is_int(x->i, &i)) {
        *v = (double)i;
        return true;
    }
    *v = x->kind == ARG_FLOAT ? x->f : 0;
    return x->kind == ARG_FLOAT;
}

static void look_for_numbers(Numbers *w, const Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        for (int k = 0; k < c->nargs; k++) {
            const SchemaArg *a = &c->schema->args[k];
            double           v, usual;
            if (c->args[k].kind == ARG_BODY)
                look_for_numbers(w, c->args[k].body);
            if ((a->base != SB_TENSOR && a->base != SB_SCALAR) || !number_in(&c->args[k], &v))
                continue;
            if (!a->has_default || !number_in(&a->dflt, &usual) || v != usual)
                note_number(w, c, v);
        }
    }
}

void p2o_warn_numbers(const Program *p, Bindings *b)
{
    Numbers w = { .prog = p, .bind = b };
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Var *v = p->main->inputs.at[i];
        for (int k = 0; k < v->type.shape.rank; k++) {
            Dim d = p2o_resolve(b, v->type.shape.at[k]);
            if (p2o_dim_is_int(v->recorded.shape.at[k], NULL) && p2o_dim_is_sym(d))
                add_fixed_size(&w, d);
        }
    }
    if (w.sizes.n)
        look_for_numbers(&w, p->main);
    for (size_t i = 0; i < w.sizes.n; i++) {
        const Alike *x = &w.sizes.at[i];
        int64_t      hint = 0;
        p2o_hint_at(b, x->sym, 0, &hint);
        if (!x->n)
            continue;
        const char *more = x->n > 1 ? p2o_printf(p->arena, " (and in %zu more places)", x->n - 1) : "";
        p2o_diag_advise(p->diags, DIAG_WARN, x->first->loc, "if it follows the size, give a second capture at another",
                        "%s: the number %lld stays one; %s was %lld at capture too%s", x->first->target, (long long)hint,
                        p2o_dim_name(x->sym), (long long)hint, more);
    }
}
