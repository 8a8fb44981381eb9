/* The report on sizes (--report): inputs and outputs, the symbols and where they come from, every
 * literal of a fixed capture that became symbolic, and what the model needs of the sizes. */
#include "dyn/range.h"
#include "report.h"

static void put_place(Buf *b, const Program *p, Loc loc)
{
    const Place *at = p2o_place_at(p->diags, loc);
    if (at && at->file)
        p2o_putf(b, "%s:%u%s%s", at->file, at->line, at->module ? ", " : "",
                 at->module ? at->module : "");
}

static void put_ports(Buf *b, const Graph *g, const char *kind, Value *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p2o_putf(b, "| %s | %s | %s | [%s] |\n", kind, v[i]->name, p2o_dtype_torch(v[i]->dtype),
                 p2o_shape_text(g->dims, v[i]->shape));
}

typedef struct SymbolRows {
    Buf            *out;
    const Program  *prog;
    Bindings       *bind;
    Map             seen;
} SymbolRows;

static void put_symbol_row(void *user, Dim sym)
{
    SymbolRows *r = user;
    void      **slot = p2o_map_slot(&r->seen, str_of(p2o_dim_name(sym)));
    if (*slot)
        return;
    *slot = r;
    p2o_putf(r->out, "| %s | %s | ", p2o_dim_name(sym),
             p2o_role(r->bind, sym) == ROLE_USER ? "declared" : "captured");
    for (int k = 0; k < p2o_ncapture(r->bind); k++) {
        int64_t v;
        if (p2o_hint_at(r->bind, sym, k, &v))
            p2o_putf(r->out, "%s%lld", k ? ", " : "", (long long)v);
    }
    int64_t lo, hi;
    p2o_range_of(r->prog, r->bind, sym, &lo, &hi);
    p2o_putf(r->out, lo > 0 ? " | %lld.." : " | ..", (long long)lo);
    p2o_putf(r->out, hi != NO_UPPER ? "%lld |\n" : " |\n", (long long)hi);
}

static void put_symbols(Buf *b, const Program *p, Bindings *bind)
{
    SymbolRows r = { .out = b, .prog = p, .bind = bind, .seen = { .arena = p->arena } };
    p2o_puts(b, "\n## Dynamic sizes\n\n| size | | in the captures | range |\n|---|---|---|---|\n");
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        Shape s = p->main->inputs.at[i]->type.shape;
        for (int k = 0; k < s.rank; k++)
            p2o_dim_symbols(s.at[k], put_symbol_row, &r);
    }
}

static void put_events(Buf *b, const Program *p, Bindings *bind)
{
    p2o_puts(b, "\n## Sizes that follow\n\n| was | is | in | because |\n|---|---|---|---|\n");
    for (size_t i = 0; i < p2o_bind_nevent(bind); i++) {
        const BindEvent *e = p2o_bind_event(bind, i);
        Dim              now = p2o_resolve(bind, e->to);
        Loc              loc = 0;
        const char      *of = p2o_soft_of(bind, e->sym, &loc);
        if (p2o_dim_is_int(now, NULL))
            continue;                           /* a literal that stayed one */
        p2o_puts(b, "| ");
        for (int k = 0; of && k < p2o_ncapture(bind); k++) {
            int64_t v;
            if (p2o_hint_at(bind, e->sym, k, &v))
                p2o_putf(b, "%s%lld", k ? ", " : "", (long long)v);
        }
        p2o_putf(b, "%s | %s | %s ", of ? "" : p2o_dim_name(e->sym), p2o_dim_text(p->dims, now),
                 of ? of : "an input");
        put_place(b, p, loc);
        p2o_putf(b, " | %s ", e->by);
        put_place(b, p, e->loc);
        p2o_puts(b, " |\n");
    }
}

static void put_needs(Buf *b, const Program *p, Bindings *bind)
{
    p2o_puts(b, "\n## What the model needs of them\n\n");
    for (size_t i = 0; i < p2o_nneed(bind); i++) {
        const Need *n = p2o_need_at(bind, i);
        const char *text = p2o_range_need(p, bind, n);
        if (!text)
            continue;
        p2o_putf(b, "- `%s`: %s ", text, n->by);
        put_place(b, p, n->loc);
        p2o_puts(b, "\n");
    }
}

static void put_weighed(Buf *b, const Program *p)
{
    p2o_puts(b, "\n## Numbers that might be sizes\n\n"
                "| was | taken for | in | because |\n|---|---|---|---|\n");
    for (size_t i = 0; i < p->weighed.n; i++) {
        const WeighedNumber *w = &p->weighed.at[i];
        p2o_putf(b, "| %s | %s | %s ", w->was, w->taken, w->target);
        put_place(b, p, w->loc);
        p2o_putf(b, " | %s |\n", w->because);
    }
}

const char *p2o_report_dims(Program *p, Bindings *bind, const Graph *g)
{
    Buf b = { .arena = p->arena };
    p2o_puts(&b, "# Sizes\n\n| | name | type | shape |\n|---|---|---|---|\n");
    put_ports(&b, g, "input", g->inputs.at, g->inputs.n);
    put_ports(&b, g, "output", g->outputs.at, g->outputs.n);
    put_symbols(&b, p, bind);
    put_needs(&b, p, bind);
    put_events(&b, p, bind);
    put_weighed(&b, p);
    p2o_puts(&b, "\n## Notes\n\n");
    for (size_t i = 0; i < p2o_diags_count(p->diags); i++) {
        const Diag *d = p2o_diags_at(p->diags, i);
        p2o_putf(&b, "- %s ", d->text);
        put_place(&b, p, d->loc);
        p2o_puts(&b, "\n");
    }
    for (size_t i = 0; i < p->guards.n; i++)
        p2o_putf(&b, "- the capture was guarded by `%s`\n", p->guards.at[i]);
    return b.at;
}
