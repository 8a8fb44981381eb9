#include "dyn/soften.h"

#include "aten/ops.h"
#include "aten/schema.h"
#include "dyn/source.h"

typedef struct Soften {
    const Program *prog;
    Bindings      *bind;
    bool           computed;
    Map            counts;      /* line, operator, number -> how often calls of that line have it */
} Soften;

/* Sizes, and what counts; how a window moves is neither. */
static bool is_size_arg(const Call *c, int k)
{
    static const char *const windows[] = { "stride", "padding", "dilation", "groups", "output_padding", "step" };
    const SchemaArg *a = &c->schema->args[k];
    for (size_t i = 0; i < COUNT_OF(windows); i++)
        if (same(a->name, windows[i]))
            return false;
    return a->base == SB_SYMINT || p2o_op_counts(c->op, a->name);
}

bool p2o_is_reshape(const Call *c)
{
    return same(c->target, "aten::view") || same(c->target, "aten::reshape") || same(c->target, "aten::_unsafe_view");
}

bool p2o_is_pad(const Call *c)
{
    Str target = str_of(c->target);
    return (same(c->target, "aten::pad") || same(c->target, "aten::constant_pad_nd") ||
            p2o_str_starts(target, "aten::reflection_pad") || p2o_str_starts(target, "aten::replication_pad")) &&
           c->nargs > 1 && c->args[1].kind == ARG_LIST;
}

/* 0 is left alone: it rarely is a size. */
static bool is_literal(const Arg *x, int64_t *v)
{
    return x->kind == ARG_INT && p2o_dim_is_int(x->i, v) && *v >= 1 && *v != INT64_MAX;
}

typedef void LiteralFn(Soften *s, Call *c, Arg *x, int64_t v);

static void each_literal(Soften *s, Body *body, LiteralFn *fn)
{
    int64_t v;
    for (size_t i = 0; i < body->calls.n; i++) {
        Call *c = body->calls.at[i];
        for (int k = 0; k < c->nargs; k++) {
            Arg *x = &c->args[k];
            if (x->kind == ARG_BODY)
                each_literal(s, x->body, fn);
            if (!is_size_arg(c, k))
                continue;
            if (is_literal(x, &v))
                fn(s, c, x, v);
            for (uint32_t l = 0; x->kind == ARG_LIST && l < x->n; l++)
                if (is_literal(&x->items[l], &v))
                    fn(s, c, &x->items[l], v);
        }
    }
}

/* A number as a pointer.  x[1:4] and x[1] look alike. */
static void **count_slot(Soften *s, const Call *c, int64_t v)
{
    bool subscript = same(c->target, "aten::slice.Tensor") || same(c->target, "aten::select.int");
    const char *key = p2o_printf(s->prog->arena, "%u %s %lld", c->loc, subscript ? "[]" : c->target, (long long)v);
    return p2o_map_slot(&s->counts, str_of(key));
}

static void count_literal(Soften *s, Call *c, Arg *x, int64_t v)
{
    void **slot = count_slot(s, c, v);
    (void)x;
    *slot = (void *)((uintptr_t)*slot + 1);
}

/* Its line has the number as often as the line's calls of the operator. */
static bool is_written(Soften *s, const Call *c, int64_t v)
{
    const Place *at = p2o_place_at(s->prog->diags, c->loc);
    return p2o_source_known(at) && (uintptr_t)p2o_source_items(at, c->target, (double)v) >= (uintptr_t)*count_slot(s, c, v);
}

bool p2o_is_computed(const Program *p, const Call *c, int64_t literal)
{
    const Place *at = p2o_place_at(p->diags, c->loc);
    return !p2o_is_reshape(c) && p2o_source_shows(at, c->target) && !p2o_source_spells(at, (double)literal) && !at->library &&
           !p2o_source_has_attribute(at, c->target);
}

static void soften_literal(Soften *s, Call *c, Arg *x, int64_t v)
{
    int64_t hints[MAX_CAPTURES];
    bool    kept = s->computed && !p2o_is_pad(c) && !p2o_is_computed(s->prog, c, v);
    if (kept || is_written(s, c, v))
        return;
    for (int k = 0; k < p2o_ncapture(s->bind); k++)
        hints[k] = v;
    x->i = p2o_soft(s->bind, hints, c->target, c->loc);
}

void p2o_soften(Program *p, Bindings *b, bool computed)
{
    Soften s = { .prog = p, .bind = b, .computed = computed, .counts = { .arena = p->arena } };
    each_literal(&s, p->main, count_literal);
    each_literal(&s, p->main, soften_literal);
}

static void soften_hole(Bindings *b, const Call *c, const Arg *list)
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

void p2o_soften_holes(Bindings *b, const Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        if (p2o_is_reshape(c) && c->nargs > 1 && c->args[1].kind == ARG_LIST && c->outs[0])
            soften_hole(b, c, &c->args[1]);
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                p2o_soften_holes(b, c->args[k].body);
    }
}
