#include "dyn/numbers.h"

#include <math.h>

#include "aten/ops.h"
#include "aten/schema.h"
#include "dyn/soften.h"
#include "dyn/source.h"

typedef struct Alike {                  /* numbers that may follow a size */
    const char *size;
    const Call *first;
    double      number;                 /* the first one */
    size_t      n;
} Alike;

typedef struct Numbers {
    const Program *prog;
    Bindings      *bind;
    VEC(Dim)       fixed;               /* symbols of axes that the capture fixed */
    Map            dynamic;             /* what a size that follows them was in all captures -> Dim */
    Map            numbers;             /* what other sizes were */
    VEC(Alike)     warned, open;
} Numbers;

static Str key_of(const int64_t *v) { return (Str){ (const char *)v, sizeof *v }; }

static bool is_fixed(const Numbers *w, Dim sym)
{
    for (size_t i = 0; i < w->fixed.n; i++)
        if (w->fixed.at[i] == sym)
            return true;
    return false;
}

typedef struct Follows {
    const Numbers *w;
    bool           any;
} Follows;

static void see_symbol(void *user, Dim sym)
{
    Follows *f = user;
    f->any |= is_fixed(f->w, sym);
}

static void see_type(Numbers *w, const Type *t)
{
    for (int k = 0; t->kind == TY_TENSOR && k < t->shape.rank; k++) {
        Dim     d = p2o_resolve(w->bind, t->shape.at[k]);
        Follows f = { .w = w };
        int64_t v;
        if (!d || !p2o_hint_in_all(w->bind, d, &v))
            continue;
        p2o_dim_symbols(d, see_symbol, &f);
        int64_t *own = NEW(w->prog->arena, int64_t);
        *own = v;
        void **slot = p2o_map_slot(f.any ? &w->dynamic : &w->numbers, key_of(own));
        if (!*slot)
            *slot = (void *)(uintptr_t)d;
    }
}

static void see_body(Numbers *w, const Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        for (int k = 0; k < c->nouts; k++)
            if (c->outs[k])
                see_type(w, &c->outs[k]->type);
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                see_body(w, c->args[k].body);
    }
}

/* The size that gives v as n + off, its inverse, root, inverse root, square or logarithm; a whole number is n + off. */
static Dim size_behind(const Map *sizes, double v, bool whole, int64_t off)
{
    v = fabs(v);
    const double forms[] = { v, 1 / v, v * v, 1 / (v * v), sqrt(v), exp(v) };
    for (size_t i = 0; v > 0 && isfinite(v) && i < (whole ? 1 : COUNT_OF(forms)); i++) {
        double n = round(forms[i]);
        if (!(n >= 1 && n < 1e15) || fabs(forms[i] - n) > 1e-9 * n)
            continue;
        int64_t key = (int64_t)n - off;
        Dim     d = p2o_map_get(sizes, key_of(&key));
        if (d)
            return d;
    }
    return NULL;
}

/* What two sizes that vary made together in every capture: m - n, 1/(n*m), n/m. */
static Dim pair_behind(const Numbers *w, double v)
{
    for (size_t i = 0; i < w->fixed.n; i++) {
        for (size_t k = 0; k < w->fixed.n; k++) {
            bool    fits[5] = { k != i, k < i, k < i, k < i, k != i };
            int64_t x, y;
            for (int c = 0; c < p2o_ncapture(w->bind); c++) {
                bool         known = p2o_hint_at(w->bind, w->fixed.at[i], c, &x) && p2o_hint_at(w->bind, w->fixed.at[k], c, &y);
                double       a = (double)x, b = (double)y;
                const double made[5] = { a - b, a + b, a * b, 1 / (a * b), a / b };
                for (size_t m = 0; m < COUNT_OF(made); m++)
                    fits[m] &= known && fabs(made[m] - v) <= 1e-9 * fabs(v);
            }
            if (fits[0] || fits[1] || fits[2] || fits[3] || fits[4])
                return w->fixed.at[i];
        }
    }
    return NULL;
}

typedef struct Number {
    double v;
    bool   whole;               /* an int */
    bool   option;              /* no operand: a kernel's size, a probability */
} Number;

/* What the number may follow, by what the line shows; NULL: it is a number. */
static const char *open_size(const Numbers *w, const Call *c, Number x)
{
    const Place *at = p2o_place_at(w->prog->diags, c->loc);
    double       v = x.v;
    bool         reads = p2o_source_reads_sizes(at), written = p2o_source_spells(at, v);
    bool         own = p2o_source_has_attribute(at, c->target), shown = p2o_source_shows(at, c->target) && !own;
    if (!p2o_source_known(at) || ((own || written || at->library) && !reads) || (x.option && (written || !(reads || shown))))
        return NULL;
    Dim d = size_behind(&w->dynamic, v, x.whole, 0);
    if (!d && (written || size_behind(&w->numbers, v, x.whole, 0) || (!reads && !shown)))
        return NULL;
    d = d ? d : size_behind(&w->dynamic, x.option ? 2 * v : v, x.whole, x.option ? 0 : -1);
    d = d ? d : size_behind(&w->dynamic, v, x.whole, 1);
    bool computed = x.whole && !x.option && shown && v != 0 && p2o_ncapture(w->bind) == 1;
    if (!d && !x.option && shown && isfinite(v) && v != 0 && v != 1 && p2o_ncapture(w->bind) > 1)
        d = pair_behind(w, v);
    return d ? p2o_dim_text(w->prog->dims, d) : computed ? "a size" : NULL;
}

static void note_alike(Numbers *w, bool open, const char *size, const Call *c, double v)
{
    for (size_t i = 0; i < (open ? w->open.n : w->warned.n); i++) {
        Alike *x = open ? &w->open.at[i] : &w->warned.at[i];
        if (same(x->size, size)) {
            x->n++;
            return;
        }
    }
    Alike x = { size, c, v, 1 };
    if (open)
        VEC_PUSH(w->prog->arena, &w->open, x);
    else
        VEC_PUSH(w->prog->arena, &w->warned, x);
}

static void see_number(Numbers *w, const Call *c, Number x)
{
    int64_t     hint;
    const char *size = open_size(w, c, x);
    if (size)
        note_alike(w, true, size, c, x.v);
    for (size_t i = 0; i < w->fixed.n && !size && !x.option; i++)
        if (p2o_hint_in_all(w->bind, w->fixed.at[i], &hint) && (double)hint == x.v)
            note_alike(w, false, p2o_dim_name(w->fixed.at[i]), c, x.v);
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

/* A tensor that forward() made of numbers: torch.tensor([3, n]). */
static void see_constant(Numbers *w, const Call *c, const Tensor *t)
{
    enum { LARGEST = 64 };
    uint64_t n;
    double   v[LARGEST];
    uint8_t  raw[LARGEST * 16];
    size_t   item = p2o_dtype_bytes(t->dtype);
    if (!p2o_tensor_nelem(t, &n) || n > LARGEST || item > 16 || !p2o_tensor_load(t, raw, (size_t)n * item))
        return;
    const Tensor *dense = p2o_tensor_make(w->prog->arena, t->dtype, t->rank, t->sizes, raw);
    for (uint64_t i = 0; i < n; i++)
        if (p2o_tensor_get_f64(dense, i, &v[i]))
            see_number(w, c, (Number){ .v = v[i], .whole = v[i] == round(v[i]) });
}

/* What counts was looked at as a size, unless it is negative; an axis or a step is none; assertions decide nothing. */
static bool is_number(const Call *c, const SchemaArg *a, double v)
{
    bool asserted = c->nouts == 1 && c->outs[0] && c->outs[0]->type.kind == TY_BOOL;
    bool counted = a->base == SB_SYMINT || p2o_op_counts(c->op, a->name);
    bool place = p2o_str_starts(str_of(a->name), "dim") || same(a->name, "step") || same(a->name, "padding_idx");
    return !asserted && !(counted && v > -2) && !place;
}

/* Nobody pads by 0 on purpose: more zeros than its line has were computed, and are not 0 at other sizes. */
static void see_pads(Numbers *w, const Call *c)
{
    const Place *at = p2o_place_at(w->prog->diags, c->loc);
    int          zeros = 0;
    Dim          axis = NULL;
    double       v;
    if (!p2o_is_pad(c) || c->args[0].kind != ARG_VAR || !p2o_source_shows(at, c->target) || p2o_source_has_attribute(at, c->target) || at->library)
        return;
    Shape s = c->args[0].var->type.shape;
    for (uint32_t i = 0; i < c->args[1].n && (int)i / 2 < s.rank; i++) {
        Dim d = p2o_resolve(w->bind, s.at[s.rank - 1 - (int)i / 2]);
        if (!number_in(&c->args[1].items[i], &v) || v != 0)
            continue;
        zeros++;
        axis = p2o_dim_is_int(d, NULL) ? axis : d;
    }
    if (axis && zeros > p2o_source_items(at, c->target, 0))
        note_alike(w, true, p2o_dim_text(w->prog->dims, axis), c, 0);
}

static void see_arg(Numbers *w, const Call *c, const SchemaArg *a, const Arg *x)
{
    bool   made = same(c->target, "aten::lift_fresh_copy") || same(c->target, "aten::lift_fresh");
    double v, usual;
    if (x->kind == ARG_VAR && made && x->var->tensor)
        see_constant(w, c, x->var->tensor);
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        see_arg(w, c, a, &x->items[i]);
    if (!number_in(x, &v) || !is_number(c, a, v) || (a->has_default && number_in(&a->dflt, &usual) && v == usual))
        return;
    bool operand = a->base == SB_TENSOR || a->base == SB_SCALAR || v < -1;
    see_number(w, c, (Number){ v, x->kind == ARG_INT, !operand });
}

static void see_numbers(Numbers *w, const Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        see_pads(w, c);
        for (int k = 0; k < c->nargs; k++) {
            if (c->args[k].kind == ARG_BODY)
                see_numbers(w, c->args[k].body);
            else
                see_arg(w, c, &c->schema->args[k], &c->args[k]);
        }
    }
}

static const char *and_more(const Numbers *w, const Alike *x)
{
    return x->n > 1 ? p2o_printf(w->prog->arena, " (and in %zu more places)", x->n - 1) : "";
}

static bool report_numbers(const Numbers *w)
{
    bool several = p2o_ncapture(w->bind) > 1;
    for (size_t i = 0; i < w->open.n; i++) {
        const Alike *x = &w->open.at[i];
        p2o_diag_advise(w->prog->diags, DIAG_NOT_DYNAMIC, x->first->loc, p2o_unsettled_advice(w->prog),
                        "%s: whether %g is a number or follows %s cannot be told from %s%s", x->first->target, x->number,
                        x->size, several ? "these captures" : "one capture", and_more(w, x));
    }
    for (size_t i = 0; i < w->warned.n && !w->open.n; i++) {
        const Alike *x = &w->warned.at[i];
        p2o_diag_advise(w->prog->diags, DIAG_WARN, x->first->loc, "if it follows the size, give a second capture at another",
                        "%s: the number %g stays one; %s was %g at capture too%s", x->first->target, x->number,
                        x->size, x->number, and_more(w, x));
    }
    return w->open.n == 0;
}

bool p2o_check_numbers(const Program *p, Bindings *b)
{
    Numbers w = { .prog = p, .bind = b, .dynamic = { .arena = p->arena }, .numbers = { .arena = p->arena } };
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Var *v = p->main->inputs.at[i];
        for (int k = 0; k < v->type.shape.rank; k++) {
            Dim d = p2o_resolve(b, v->type.shape.at[k]);
            if (p2o_dim_is_int(v->recorded.shape.at[k], NULL) && p2o_dim_is_sym(d) && !is_fixed(&w, d))
                VEC_PUSH(p->arena, &w.fixed, d);
        }
    }
    if (!w.fixed.n)
        return true;
    for (size_t i = 0; i < p->main->inputs.n; i++)
        see_type(&w, &p->main->inputs.at[i]->type);
    for (size_t i = 0; i < p->weights.n; i++)
        see_type(&w, &p->weights.at[i]->type);
    see_body(&w, p->main);
    see_numbers(&w, p->main);
    return report_numbers(&w);
}
