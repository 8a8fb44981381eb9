/* The metadata entry `pt2onnx.dims`: {"symbols": {name: {min, max, captured}}, "outputs": {name: [size]},
 * "guards": [...]}, sizes as expressions of the symbols. */
#include "format/json.h"
#include "report.h"

typedef struct DimsJson {
    Program  *prog;
    Bindings *bind;
    Buf       out;
    Map       seen;             /* symbols written */
} DimsJson;

static void put_quoted(Buf *b, const char *s) { p2o_json_quote(b, str_of(s)); }

/* The capture's bounds for a symbol, under whatever name it has now. */
static void put_symbol(void *user, Dim sym)
{
    DimsJson *j = user;
    int64_t   lo, hi, hint;
    void    **slot = p2o_map_slot(&j->seen, str_of(p2o_dim_name(sym)));
    if (*slot)
        return;
    *slot = j;
    p2o_puts(&j->out, j->seen.n > 1 ? "," : "");
    put_quoted(&j->out, p2o_dim_name(sym));
    p2o_dim_range(j->prog->dims, sym, &lo, &hi);
    for (size_t i = 0; i < j->prog->ranges.n; i++) {
        const ProgramRange *r = &j->prog->ranges.at[i];
        if (r->dim && p2o_resolve(j->bind, r->dim) == sym) {
            lo = r->lo > lo ? r->lo : lo;
            hi = r->hi < hi ? r->hi : hi;
        }
    }
    p2o_putf(&j->out, ":{\"min\":%lld", (long long)lo);
    if (hi != NO_UPPER)
        p2o_putf(&j->out, ",\"max\":%lld", (long long)hi);
    if (p2o_dim_hint(j->prog->dims, sym, &hint))
        p2o_putf(&j->out, ",\"captured\":%lld", (long long)hint);
    p2o_puts(&j->out, "}");
}

static void put_shape(DimsJson *j, const char *name, Shape s, bool first)
{
    p2o_puts(&j->out, first ? "" : ",");
    put_quoted(&j->out, name);
    p2o_puts(&j->out, ":[");
    for (int i = 0; i < s.rank; i++) {
        p2o_puts(&j->out, i ? "," : "");
        put_quoted(&j->out, p2o_dim_text(j->prog->dims, s.at[i]));
    }
    p2o_puts(&j->out, "]");
}

const char *p2o_dims_json(Program *p, Bindings *b, const Graph *g)
{
    DimsJson j = { .prog = p, .bind = b, .out = { .arena = p->arena }, .seen = { .arena = p->arena } };
    p2o_puts(&j.out, "{\"symbols\":{");
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Type *t = &p->main->inputs.at[i]->type;
        for (int k = 0; k < t->shape.rank; k++)
            p2o_dim_symbols(t->shape.at[k], put_symbol, &j);
        if (t->kind == TY_INT)
            p2o_dim_symbols(t->value, put_symbol, &j);
    }
    p2o_puts(&j.out, "},\"outputs\":{");
    for (size_t i = 0; i < g->outputs.n; i++)
        put_shape(&j, g->outputs.at[i]->name, g->outputs.at[i]->shape, i == 0);
    p2o_puts(&j.out, "},\"guards\":[");
    for (size_t i = 0; i < p->guards.n; i++) {
        p2o_puts(&j.out, i ? "," : "");
        put_quoted(&j.out, p->guards.at[i]);
    }
    p2o_puts(&j.out, "]}");
    return j.out.at;
}
