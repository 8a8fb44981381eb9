/* Building and editing graphs.
 *
 * A use list holds a node once for each input slot that names the value, bodies included; graph
 * outputs are not uses.  Editing costs what it touches: lists are searched from their end, where a
 * pass that walks backwards finds its entry at once. */
#include "onnx/graph.h"

#include <assert.h>

#include "onnx/onnx_ops.h"

const char *p2o_graph_dim(const Graph *g, Dim d)
{
    for (size_t i = 0; i < g->dim_names.n; i++)
        if (g->dim_names.at[i].dim == d)
            return g->dim_names.at[i].name;
    return p2o_dim_text(g->dims, d);
}

Graph *p2o_graph_new(Arena *a, Diags *d, Dims *t, int opset, Graph *parent)
{
    Graph *g = NEW(a, Graph);
    g->arena = a;
    g->diags = d;
    g->dims = t;
    g->opset = opset;
    g->parent = parent;
    return g;
}

const Graph *p2o_graph_root(const Graph *g)
{
    while (g->parent)
        g = g->parent;
    return g;
}

bool p2o_graph_has_own(const Graph *g)
{
    bool own = false;
    for (const Node *n = g->first; n && !own; n = n->next) {
        own = n->own && n->own->version && !n->own->function;
        for (int i = 0; i < n->nattr && !own; i++)
            own = n->attrs[i].kind == ATTR_GRAPH && p2o_graph_has_own(n->attrs[i].graph);
    }
    return own;
}

bool p2o_graph_encloses(const Graph *outer, const Graph *g)
{
    while (g && g != outer)
        g = g->parent;
    return g != NULL;
}

Value *p2o_graph_value(Graph *g)
{
    Graph *root = g;
    while (root->parent)
        root = root->parent;
    Value *v = NEW(g->arena, Value);
    v->graph = g;
    v->id = root->nvalue++;
    return v;
}

Value *p2o_graph_input(Graph *g, const char *name, DType t, Shape s)
{
    Value *v = p2o_graph_value(g);
    v->name = name;
    v->dtype = t;
    v->shape = (Shape){ s.rank, p2o_shape_copy(g->arena, s, 0) };
    VEC_PUSH(g->arena, &g->inputs, v);
    return v;
}

Value *p2o_graph_init(Graph *g, const char *name, const Tensor *t)
{
    Value *v = p2o_graph_value(g);
    v->name = name;
    v->tensor = t;
    p2o_onnx_type_constant(g, v, t);
    VEC_PUSH(g->arena, &g->inits, v);
    return v;
}

static const char *value_type_text(Graph *g, const Value *v)
{
    if (!v)
        return "none";
    if (v->shape.rank < 0)
        return p2o_printf(g->arena, "sequence of %s", p2o_dtype_text(v->dtype));
    return p2o_printf(g->arena, "%s%s[%s]", v->is_sequence ? "sequence of " : "",
                      p2o_dtype_text(v->dtype), p2o_shape_text(g->dims, v->shape));
}

static void report_ill_typed(Graph *g, const Node *n)
{
    Buf b = { .arena = g->arena };
    p2o_puts(&b, "(");
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i] && n->in[i]->dtype == DT_NONE)
            return;                     /* reported where it was made */
        p2o_putf(&b, "%s%s", i ? ", " : "", value_type_text(g, n->in[i]));
    }
    p2o_puts(&b, ")");
    p2o_diag(g->diags, DIAG_INTERNAL, n->loc, "ONNX %s (opset %d) does not take %s with %d outputs",
             p2o_onnx_info(n->op)->name, g->opset, b.at, n->nout);
}

static void set_form(Graph *g, Node *n, OnnxOp op, int nin, Value *const *in, int nattr,
                     const Attr *attrs)
{
    while (nin > 0 && !in[nin - 1])
        nin--;                          /* absent inputs at the end are not written */
    n->op = op;
    n->nin = nin;
    n->in = NEW_N(g->arena, Value *, (size_t)nin + 1);
    for (int i = 0; i < nin; i++)
        n->in[i] = in[i];
    n->nattr = nattr;
    n->attrs = NEW_N(g->arena, Attr, (size_t)nattr + 1);
    for (int i = 0; i < nattr; i++)
        n->attrs[i] = attrs[i];
}

static void add_uses(Graph *g, Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            VEC_PUSH(g->arena, &n->in[i]->uses, n);
}

static void link_last(Graph *g, Node *n)
{
    n->prev = g->last;
    if (g->last)
        g->last->next = n;
    else
        g->first = n;
    g->last = n;
}

Node *p2o_graph_append(Graph *g, OnnxOp op, int nin, Value *const *in, int nattr, const Attr *attrs,
                       int nout)
{
    Node *n = NEW(g->arena, Node);
    *n = (Node){ .nout = nout, .graph = g };
    set_form(g, n, op, nin, in, nattr, attrs);
    add_uses(g, n);
    n->out = NEW_N(g->arena, Value *, (size_t)nout + 1);
    for (int i = 0; i < nout; i++) {
        n->out[i] = p2o_graph_value(g);
        n->out[i]->def = n;
        n->out[i]->out_index = i;
    }
    link_last(g, n);
    return n;
}

Node *p2o_graph_node(Graph *g, OnnxOp op, int nin, Value *const *in, int nattr, const Attr *attrs,
                     int nout, Loc loc)
{
    Node *n = p2o_graph_append(g, op, nin, in, nattr, attrs, nout);
    n->loc = loc;
    if (!p2o_onnx_infer(g, n))
        report_ill_typed(g, n);
    return n;
}

Node *p2o_graph_own(Graph *g, const OnnxOperator *own, int nin, Value *const *in, int nattr,
                    const Attr *attrs, int nout, Loc loc)
{
    Node *n = p2o_graph_append(g, ONNX_NONE, nin, in, nattr, attrs, nout);
    n->own = own;
    n->loc = loc;
    return n;
}

OnnxOperator p2o_node_operator(const Node *n)
{
    const OnnxInfo *info = p2o_onnx_info(n->op);
    return n->own ? *n->own : (OnnxOperator){ .domain = info->domain, .name = info->name };
}

void p2o_graph_output(Graph *g, Value *v)
{
    if (v->graph != g || p2o_value_is_output(v))
        v = p2o_graph_node(g, ONNX_Identity, 1, &v, 0, NULL, 1, v->def ? v->def->loc : 0)->out[0];
    v->is_output = true;
    VEC_PUSH(g->arena, &g->outputs, v);
}

void p2o_graph_meta(Graph *g, const char *key, const char *value)
{
    VEC_PUSH(g->arena, &g->meta, key);
    VEC_PUSH(g->arena, &g->meta, value);
}

static void drop_use(Value *v, const Node *n)
{
    size_t i = v->uses.n;
    while (i > 0 && v->uses.at[i - 1] != n)
        i--;
    assert(i > 0);
    memmove(&v->uses.at[i - 1], &v->uses.at[i], (v->uses.n - i) * sizeof *v->uses.at);
    v->uses.n--;
}

/* What the inputs and bodies of this form of n use is used by n no more. */
static void drop_uses(const Node *form, const Node *n)
{
    for (int i = form->nin - 1; i >= 0; i--)
        if (form->in[i])
            drop_use(form->in[i], n);
    for (int i = 0; i < form->nattr; i++)
        if (form->attrs[i].kind == ATTR_GRAPH)
            for (const Node *m = form->attrs[i].graph->last; m; m = m->prev)
                drop_uses(m, m);
}

bool p2o_node_become(Node *n, OnnxOp op, int nin, Value *const *in, int nattr, const Attr *attrs)
{
    assert(n->nout == 1);
    Node  was = *n;
    Value type = *n->out[0];
    set_form(n->graph, n, op, nin, in, nattr, attrs);
    bool ok = p2o_onnx_infer(n->graph, n) && n->out[0]->dtype == type.dtype &&
              n->out[0]->shape.rank == type.shape.rank;
    *n->out[0] = type;
    if (!ok) {
        *n = was;
        return false;
    }
    add_uses(n->graph, n);
    drop_uses(&was, n);
    return true;
}

void p2o_node_remove(Node *n)
{
    for (int i = 0; i < n->nout; i++)
        assert(n->out[i]->uses.n == 0 && !p2o_value_is_output(n->out[i]));
    drop_uses(n, n);
    if (n->prev)
        n->prev->next = n->next;
    else
        n->graph->first = n->next;
    if (n->next)
        n->next->prev = n->prev;
    else
        n->graph->last = n->prev;
    n->prev = n->next = NULL;
}

void p2o_value_replace(Value *old, Value *with)
{
    if (old == with)
        return;
    Graph *g = old->graph;
    for (size_t i = 0; i < old->uses.n; i++) {
        Node *n = old->uses.at[i];
        int   k = 0;
        while (n->in[k] != old)
            k++;
        n->in[k] = with;
        VEC_PUSH(g->arena, &with->uses, n);
    }
    old->uses.n = 0;
    for (size_t i = 0; old->is_output && i < g->outputs.n; i++)
        if (g->outputs.at[i] == old)
            g->outputs.at[i] = with;
    with->is_output |= old->is_output;
    old->is_output = false;
}

const Attr *p2o_node_attr(const Node *n, const char *name)
{
    for (int i = 0; i < n->nattr; i++)
        if (same(n->attrs[i].name, name))
            return &n->attrs[i];
    return NULL;
}

int64_t p2o_node_int(const Node *n, const char *name, int64_t otherwise)
{
    const Attr *a = p2o_node_attr(n, name);
    return a && a->kind == ATTR_INT ? a->i : otherwise;
}

typedef struct Check {
    Arena        *arena;
    const Value **defined;              /* by id; NULL: not yet */
    size_t       *uses;                 /* found in input slots, by id */
    uint32_t      nvalue;
    Map           names;
} Check;

static const char *label(const Value *v) { return v->name ? v->name : "(unnamed)"; }

static const char *define(Check *c, const Graph *g, const Value *v)
{
    if (v->graph != g)
        return p2o_printf(c->arena, "value %s belongs to another graph", label(v));
    if (v->id >= c->nvalue || c->defined[v->id])
        return p2o_printf(c->arena, "value %s is defined twice", label(v));
    c->defined[v->id] = v;
    if (!v->name)
        return NULL;
    void **slot = p2o_map_slot(&c->names, str_of(v->name));
    if (*slot && p2o_graph_encloses(((const Value *)*slot)->graph, g))
        return p2o_printf(c->arena, "name %s is taken twice", v->name);
    *slot = (void *)(uintptr_t)v;
    return NULL;
}

static const char *check_graph(Check *c, const Graph *g);

static const char *check_node(Check *c, const Graph *g, const Node *n)
{
    const char *op = p2o_node_operator(n).name, *wrong = NULL;
    if (n->graph != g || (n->next ? n->next->prev != n : g->last != n))
        return p2o_printf(c->arena, "%s is not linked into its graph", op);
    for (int i = 0; i < n->nin; i++) {
        const Value *v = n->in[i];
        if (!v)
            continue;
        if (v->id >= c->nvalue || c->defined[v->id] != v || !p2o_graph_encloses(v->graph, g))
            return p2o_printf(c->arena, "%s uses %s before its definition", op, label(v));
        c->uses[v->id]++;
    }
    for (int i = 0; i < n->nattr && !wrong; i++) {
        const Attr *a = &n->attrs[i];
        if (a->kind != ATTR_GRAPH)
            continue;
        if (a->graph->parent != g)
            return p2o_printf(c->arena, "a body of %s has another parent", op);
        wrong = check_graph(c, a->graph);
    }
    for (int i = 0; i < n->nout && !wrong; i++) {
        if (n->out[i]->def != n || n->out[i]->out_index != i)
            return p2o_printf(c->arena, "an output of %s names another definition", op);
        wrong = define(c, g, n->out[i]);
    }
    return wrong;
}

static const char *check_graph(Check *c, const Graph *g)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < g->inputs.n && !wrong; i++)
        wrong = define(c, g, g->inputs.at[i]);
    for (size_t i = 0; i < g->inits.n && !wrong; i++)
        wrong = define(c, g, g->inits.at[i]);
    for (const Node *n = g->first; n && !wrong; n = n->next)
        wrong = check_node(c, g, n);
    for (size_t i = 0; i < g->outputs.n && !wrong; i++) {
        const Value *v = g->outputs.at[i];
        if (v->graph != g || v->id >= c->nvalue || c->defined[v->id] != v)
            wrong = p2o_printf(c->arena, "output %s is not defined in its graph", label(v));
        else if (!v->is_output)
            wrong = p2o_printf(c->arena, "output %s is not marked as one", label(v));
    }
    return wrong;
}

static const char *check_uses(const Check *c, const Value *v)
{
    if (v->uses.n != c->uses[v->id])
        return p2o_printf(c->arena, "value %s has %zu uses listed, %zu found", label(v), v->uses.n,
                          c->uses[v->id]);
    for (size_t i = 0; i < v->uses.n; i++) {
        const Node *n = v->uses.at[i];
        int         k = 0;
        while (k < n->nin && n->in[k] != v)
            k++;
        if (k == n->nin)
            return p2o_printf(c->arena, "value %s lists a use by %s that is none", label(v),
                              p2o_node_operator(n).name);
    }
    return NULL;
}

const char *p2o_graph_check(const Graph *g)
{
    uint32_t    nvalue = p2o_graph_root(g)->nvalue;
    ArenaMark   mark = p2o_arena_mark(g->arena);
    Check       c = { .arena = g->arena, .nvalue = nvalue, .names = { .arena = g->arena } };
    c.defined = NEW_N(g->arena, const Value *, nvalue + 1);
    c.uses = NEW_N(g->arena, size_t, nvalue + 1);
    const char *wrong = check_graph(&c, g);
    for (uint32_t i = 0; i < nvalue && !wrong; i++)
        if (c.defined[i])
            wrong = check_uses(&c, c.defined[i]);
    if (!wrong)
        p2o_arena_rewind(g->arena, mark);
    return wrong;
}
