#include "aten/state.h"

static const Var *changed_weight(const Program *p, const OutputSpec *o, size_t *at)
{
    for (size_t i = 0; i < p->weights.n; i++) {
        const Var *v = p->weights.at[i];
        if (v->tensor && v->fqn && same(v->fqn, o->name)) {
            *at = i;
            return v;
        }
    }
    return NULL;
}

/* Another weight that lies in the same memory: it would keep the value that it had. */
static const Var *neighbour(const Program *p, const Var *v)
{
    for (size_t i = 0; i < p->weights.n; i++) {
        const Var *w = p->weights.at[i];
        if (w != v && w->tensor && v->tensor->storage && w->tensor->storage == v->tensor->storage)
            return w;
    }
    return NULL;
}

static bool make_input(Program *p, const OutputSpec *o)
{
    size_t     at;
    const Var *found = changed_weight(p, o, &at);
    if (!found) {
        p2o_diag(p->diags, DIAG_UNSUPPORTED, 0, "'%s' is changed, but has no value to start from",
                 o->name);
        return false;
    }
    const Var *other = neighbour(p, found);
    if (other || is_complex(found->tensor->dtype)) {
        p2o_diag(p->diags, DIAG_UNSUPPORTED, 0,
                 other ? "'%s' cannot become an input: '%s' is in the same memory"
                       : "'%s' cannot become an input: it is %s",
                 o->name, other ? other->fqn ? other->fqn : other->name : "complex");
        return false;
    }
    Var *v = p->weights.at[at];
    VEC_PUSH(p->arena, &p->inputs,
             ((InputSpec){ .name = v->fqn, .var = v, .initial = v->tensor }));
    VEC_PUSH(p->arena, &p->main->inputs, v);
    v->tensor = NULL;
    memmove(p->weights.at + at, p->weights.at + at + 1,
            (p->weights.n - at - 1) * sizeof *p->weights.at);
    p->weights.n--;
    return true;
}

bool p2o_keep_state(Program *p)
{
    bool ok = true;
    for (size_t i = 0; i < p->outputs.n; i++)
        if (p->outputs.at[i].kind == OUT_BUFFER)
            ok &= make_input(p, &p->outputs.at[i]);
    p->keeps_state = true;
    return ok;
}
