#include "dyn/present.h"

void p2o_present_start(PresentSizes *p, const Program *prog, Bindings *b, const Dim *symbols,
                       size_t n)
{
    *p = (PresentSizes){ .prog = prog, .bind = b, .symbols = symbols, .nsymbol = n,
                         .bases = { .arena = prog->arena } };
}

static const Bases *bases_of_size(PresentSizes *p, Dim d)
{
    Dim *key = NEW(p->prog->arena, Dim);
    *key = d;
    void **slot = p2o_map_slot(&p->bases, (Str){ (const char *)key, sizeof *key });
    if (!*slot) {
        Bases *b = NEW(p->prog->arena, Bases);
        p2o_bases_start(b, p->bind, p->symbols, p->nsymbol);
        p2o_bases_add(b, p->bind, d);
        *slot = b;
    }
    return *slot;
}

static void add_present(PresentSizes *p, Dim d, size_t made)
{
    enum { MOST = 512 };
    int64_t first;
    if (!d || p2o_dim_is_int(d, NULL) || p2o_dim_is_sym(d) || p2o_has_soft(p->bind, d) ||
        p->n == MOST || !p2o_hint_at(p->bind, d, 0, &first))
        return;
    int64_t *key = NEW(p->prog->arena, int64_t);
    *key = first;
    void **slot = p2o_map_slot(&p->by_first, (Str){ (const char *)key, sizeof *key });
    if (!*slot)
        *slot = NEW(p->prog->arena, Present);
    Present *as = *slot;
    for (size_t k = 0; k < as->list.n; k++)
        if (as->list.at[k].as->dim[0] == d)
            return;
    PresentSize size = { .as = bases_of_size(p, d), .made = made };
    if (size.as->n)
        VEC_PUSH(p->prog->arena, &as->list, size);
    p->n++;
}

/* Sizes, and how many elements there are in all and behind the first axis. */
static void add_sizes_of(PresentSizes *p, const Var *v, size_t made)
{
    Dims *t = p->prog->dims;
    Dim   all = p2o_dim_int(t, 1);
    for (int i = v ? v->type.shape.rank - 1 : -1; i >= 0; i--) {
        Dim d = p2o_resolve(p->bind, v->type.shape.at[i]);
        add_present(p, d, made);
        all = p2o_dim_mul(t, all, d);
        if (i < 2)
            add_present(p, all, made);
    }
}

void p2o_present_find(PresentSizes *p)
{
    const Body *b = p->prog->main;
    p->by_first = (Map){ .arena = p->prog->arena };
    p->n = 0;
    for (size_t i = 0; i < b->calls.n; i++)
        for (int k = 0; k < b->calls.at[i]->nouts; k++)
            add_sizes_of(p, b->calls.at[i]->outs[k], i);
}

const Present *p2o_present_as(const PresentSizes *p, int64_t first)
{
    return p2o_map_get(&p->by_first, (Str){ (const char *)&first, sizeof first });
}
