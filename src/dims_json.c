/* The metadata entry `pt2onnx.dims`: {"symbols": {name: {min, max, captured}}, "outputs": {name:
 * [size]}, "names": {name: size}, "needs": [...], "guards": [...]}: sizes are expressions of the
 * symbols, names those that the user gave to expressions, needs what operators and the capture
 * demand of the symbols, as Python with its modules math and operator, guards the capture's own
 * words. */
#include "dyn/range.h"
#include "format/json.h"
#include "report.h"

typedef struct DimsJson {
    Program  *prog;
    Bindings *bind;
    Buf       out;
    Map       seen;             /* symbols written */
} DimsJson;

static void put_quoted(Buf *b, const char *s) { p2o_json_quote(b, str_of(s)); }

/* min and max are what the operators need, and what the capture saw: not 0 and 1, where PyTorch's
 * dynamic sizes start. */
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
    p2o_range_of(j->prog, j->bind, sym, &lo, &hi);
    const char *sep = ":{";
    if (lo > 0) {
        p2o_putf(&j->out, "%s\"min\":%lld", sep, (long long)lo);
        sep = ",";
    }
    if (hi != NO_UPPER) {
        p2o_putf(&j->out, "%s\"max\":%lld", sep, (long long)hi);
        sep = ",";
    }
    if (p2o_dim_hint(j->prog->dims, sym, &hint)) {
        p2o_putf(&j->out, "%s\"captured\":%lld", sep, (long long)hint);
        sep = ",";
    }
    p2o_puts(&j->out, *sep == ':' ? ":{}" : "}");
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
    DimsJson j = {
        .prog = p, .bind = b, .out = { .arena = p->arena }, .seen = { .arena = p->arena }
    };
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
    p2o_puts(&j.out, "},\"names\":{");
    for (size_t i = 0; i < g->dim_names.n; i++) {
        p2o_puts(&j.out, i ? "," : "");
        put_quoted(&j.out, g->dim_names.at[i].name);
        p2o_puts(&j.out, ":");
        put_quoted(&j.out, p2o_dim_text(p->dims, g->dim_names.at[i].dim));
    }
    p2o_puts(&j.out, "},\"needs\":[");
    Map needs = { .arena = p->arena };
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const char *text = p2o_range_need(p, b, p2o_need_at(b, i));
        if (!text || p2o_map_get(&needs, str_of(text)))
            continue;
        p2o_puts(&j.out, needs.n ? "," : "");
        *p2o_map_slot(&needs, str_of(text)) = &j;
        put_quoted(&j.out, text);
    }
    p2o_puts(&j.out, "],\"guards\":[");
    for (size_t i = 0; i < p->guards.n; i++) {
        p2o_puts(&j.out, i ? "," : "");
        put_quoted(&j.out, p->guards.at[i]);
    }
    p2o_puts(&j.out, "]}");
    return j.out.at;
}

static void put_ports(Buf *b, const Graph *g, Value *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const Value *x = v[i];
        p2o_puts(b, i ? ",{\"name\":" : "{\"name\":");
        put_quoted(b, x->name);
        p2o_putf(b, ",\"dtype\":\"%s\",\"dims\":[", p2o_dtype_torch(x->dtype));
        for (int k = 0; k < x->shape.rank; k++) {
            int64_t size;
            p2o_puts(b, k ? "," : "");
            if (p2o_dim_is_int(x->shape.at[k], &size))
                p2o_putf(b, "%lld", (long long)size);
            else
                put_quoted(b, p2o_graph_dim(g, x->shape.at[k]));
        }
        p2o_puts(b, "]}");
    }
}

const char *p2o_state_json(const Graph *g)
{
    Buf         out = { .arena = g->arena }, *b = &out;
    const char *sep = "";
    p2o_puts(b, "{");
    for (size_t i = 0; i < g->inputs.n; i++) {
        if (!g->inputs.at[i]->next)
            continue;
        p2o_puts(b, sep);
        put_quoted(b, g->inputs.at[i]->name);
        p2o_puts(b, ":");
        put_quoted(b, g->inputs.at[i]->next);
        sep = ",";
    }
    p2o_puts(b, "}");
    return *sep ? out.at : NULL;
}

const char *p2o_signature_json(Program *p, Bindings *b, const Graph *g)
{
    Buf    out = { .arena = p->arena };
    size_t nodes = 0;
    for (const Node *x = g->first; x; x = x->next)
        nodes++;
    p2o_puts(&out, "{\"inputs\":[");
    put_ports(&out, g, g->inputs.at, g->inputs.n);
    p2o_puts(&out, "],\"outputs\":[");
    put_ports(&out, g, g->outputs.at, g->outputs.n);
    const char *state = p2o_state_json(g);
    p2o_putf(&out, "],\"state\":%s,\"nodes\":%zu,\"opset\":%d,\"dims\":%s}", state ? state : "{}",
             nodes, g->opset, p2o_dims_json(p, b, g));
    return out.at;
}
