/* Printing a graph.  A statement is built whole before it is put out, since large constants that it
 * or its bodies use need lines of their own above it. */
#include "onnx/graph_text.h"

#include "base/num.h"
#include "onnx/onnx_ops.h"

enum { SMALL = 8, TYPE_COLUMN = 40, INDENT = 4 };

typedef struct Printer {
    Buf       out;
    Dims     *dims;
    uint32_t *number;                   /* by value id; 0: none yet, else number + 1 */
    uint32_t  count;
    bool      with_types;
} Printer;

static void put_graph(Printer *p, Buf *to, const Graph *g, int depth);

static void put_indent(Buf *b, int depth)
{
    for (int i = 0; i < depth * INDENT; i++)
        p2o_puts(b, " ");
}

static void put_type_text(const Printer *p, Buf *b, const Value *v)
{
    p2o_putf(b, "%s%s", v->is_sequence ? "sequence of " : "", p2o_dtype_text(v->dtype));
    if (v->shape.rank >= 0)
        p2o_putf(b, "[%s]", p2o_shape_text(p->dims, v->shape));
}

static void put_element(Buf *b, const Tensor *x, uint64_t i)
{
    char    text[32];
    int64_t k;
    double  f;
    if (x->dtype == DT_BOOL && p2o_tensor_get_i64(x, i, &k))
        p2o_puts(b, k ? "true" : "false");
    else if (is_int(x->dtype) && p2o_tensor_get_i64(x, i, &k))
        p2o_putf(b, "%lld", (long long)k);
    else if (x->dtype == DT_F64 && p2o_tensor_get_f64(x, i, &f))
        p2o_puts(b, p2o_format_f64(text, f));
    else if (p2o_tensor_get_f64(x, i, &f))
        p2o_puts(b, p2o_format_f32(text, (float)f));
    else
        p2o_puts(b, "?");
}

/* Elements in row-major order; a bracket opens where an axis begins anew. */
static void put_elements(Buf *b, const Tensor *x, uint64_t nelem)
{
    for (uint64_t i = 0; i < nelem; i++) {
        uint64_t span = 1;
        int      opens = 0;
        for (int k = x->rank - 1; k >= 0 && i % (span *= (uint64_t)x->sizes[k]) == 0; k--)
            opens++;
        for (int k = 0; i && k < opens; k++)
            p2o_puts(b, "]");
        p2o_puts(b, i ? ", " : "");
        for (int k = 0; k < opens; k++)
            p2o_puts(b, "[");
        put_element(b, x, i);
    }
    for (int k = 0; k < x->rank; k++)
        p2o_puts(b, "]");
}

static bool is_small(const Tensor *x)
{
    uint64_t n;
    return p2o_tensor_nelem(x, &n) && n <= SMALL;
}

static void put_tensor_type(Buf *b, const Tensor *x)
{
    p2o_putf(b, "%s[", p2o_dtype_text(x->dtype));
    for (int i = 0; i < x->rank; i++)
        p2o_putf(b, "%s%lld", i ? ", " : "", (long long)x->sizes[i]);
    p2o_puts(b, "]");
}

static void put_small(Buf *b, const Tensor *x)
{
    uint64_t n = 0;
    p2o_tensor_nelem(x, &n);
    if (n == 0 && x->rank > 1) {
        p2o_puts(b, "[]:");
        put_tensor_type(b, x);
        return;
    }
    if (n == 0)
        p2o_puts(b, "[]");
    else
        put_elements(b, x, n);
    if (x->dtype != DT_I64 && (x->dtype != DT_BOOL || n == 0))
        p2o_putf(b, ":%s", p2o_dtype_text(x->dtype));
}

static void put_number(Printer *p, Buf *b, const Value *v)
{
    uint32_t *k = &p->number[v->id];
    if (!*k)
        *k = ++p->count;
    p2o_putf(b, "%%%u", (unsigned)(*k - 1));
}

static void put_value(Printer *p, Buf *b, const Value *v)
{
    if (!v) {
        p2o_puts(b, "_");
    } else if (v->name) {
        p2o_puts(b, v->name);
    } else if (v->tensor && is_small(v->tensor)) {
        put_small(b, v->tensor);
    } else {
        if (v->tensor && !p->number[v->id]) {
            Buf line = { .arena = p->out.arena };
            put_number(p, &line, v);
            p2o_puts(&line, " = const ");
            put_tensor_type(&line, v->tensor);
            p2o_putf(&p->out, "%s\n", line.at);
        }
        put_number(p, b, v);
    }
}

/* A number that reads as a float: 1 becomes 1.0. */
static void put_float(Buf *b, float f)
{
    char text[32];
    p2o_format_f32(text, f);
    p2o_puts(b, text);
    if (!strpbrk(text, ".en"))          /* exponents, inf and nan show it already */
        p2o_puts(b, ".0");
}

static void put_quoted_text(Buf *b, const char *s)
{
    p2o_puts(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20)
            p2o_putf(b, "\\x%02x", c);
        else
            p2o_putf(b, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    p2o_puts(b, "\"");
}

static void put_list_item(Buf *b, const Attr *a, size_t i)
{
    if (a->kind == ATTR_INTS)
        p2o_putf(b, "%lld", (long long)a->ints[i]);
    else if (a->kind == ATTR_FLOATS)
        put_float(b, a->floats[i]);
    else
        put_quoted_text(b, a->strs[i]);
}

static void put_body(Printer *p, Buf *b, const Graph *g, int depth)
{
    if (g->inputs.n) {
        p2o_puts(b, "(");
        for (size_t i = 0; i < g->inputs.n; i++) {
            p2o_puts(b, i ? ", " : "");
            put_value(p, b, g->inputs.at[i]);
        }
        p2o_puts(b, ") ");
    }
    p2o_puts(b, "{\n");
    put_graph(p, b, g, depth + 1);
    put_indent(b, depth);
    p2o_puts(b, "}");
}

static void put_attr_text(Printer *p, Buf *b, const Attr *a, int depth)
{
    p2o_putf(b, "%s=", a->name);
    switch (a->kind) {
    case ATTR_INT:   p2o_putf(b, "%lld", (long long)a->i); return;
    case ATTR_FLOAT: put_float(b, a->f); return;
    case ATTR_STR:   put_quoted_text(b, a->s); return;
    case ATTR_GRAPH: put_body(p, b, a->graph, depth); return;
    case ATTR_TENSOR:
        if (is_small(a->tensor))
            put_small(b, a->tensor);
        else
            put_tensor_type(b, a->tensor);
        return;
    default:
        p2o_puts(b, "[");
        for (size_t i = 0; i < a->n; i++) {
            p2o_puts(b, i ? ", " : "");
            put_list_item(b, a, i);
        }
        p2o_puts(b, "]");
    }
}

static void put_types(const Printer *p, Buf *line, const Node *n)
{
    size_t width = 0;                   /* of the last line: a body has several */
    while (width < line->n && line->at[line->n - 1 - width] != '\n')
        width++;
    p2o_putf(line, "%*s# ", width + 2 > TYPE_COLUMN ? 2 : (int)(TYPE_COLUMN - width), "");
    for (int i = 0; i < n->nout; i++) {
        p2o_puts(line, i ? ", " : "");
        put_type_text(p, line, n->out[i]);
    }
}

/* Numbers are given in reading order, except that large constants come first. */
static void put_node(Printer *p, Buf *line, const Node *n, int depth)
{
    Buf in = { .arena = line->arena };
    for (int i = 0; i < n->nin; i++) {
        p2o_puts(&in, i ? ", " : "");
        put_value(p, &in, n->in[i]);
    }
    put_indent(line, depth);
    for (int i = 0; i < n->nout; i++) {
        p2o_puts(line, i ? ", " : "");
        put_value(p, line, n->out[i]);
    }
    OnnxOperator op = p2o_node_operator(n);
    p2o_putf(line, " = %s%s%s(%s", n->own ? op.domain : "", n->own && *op.domain ? "." : "",
             op.name, in.n ? in.at : "");
    for (int i = 0; i < n->nattr; i++) {
        p2o_puts(line, n->nin || i ? ", " : "");
        put_attr_text(p, line, &n->attrs[i], depth);
    }
    p2o_puts(line, ")");
    if (p->with_types)
        put_types(p, line, n);
    p2o_puts(line, "\n");
}

static void put_graph(Printer *p, Buf *to, const Graph *g, int depth)
{
    for (const Node *n = g->first; n; n = n->next) {
        Buf line = { .arena = to->arena };
        put_node(p, &line, n, depth);
        p2o_put(to, line.at, line.n);
    }
    Buf line = { .arena = to->arena };
    put_indent(&line, depth);
    p2o_puts(&line, "return ");
    for (size_t i = 0; i < g->outputs.n; i++) {
        p2o_puts(&line, i ? ", " : "");
        put_value(p, &line, g->outputs.at[i]);
    }
    p2o_putf(to, "%s\n", line.at);
}

const char *p2o_graph_text(const Graph *g, bool with_types)
{
    Printer p = { .out = { .arena = g->arena }, .dims = g->dims, .with_types = with_types };
    p.number = NEW_N(g->arena, uint32_t, (size_t)p2o_graph_root(g)->nvalue + 1);
    put_graph(&p, &p.out, g, 0);
    return p.out.at;
}
