/* Which numbers of a model may be sizes.
 *
 * A constant counts where an operator takes it as sizes, or where it goes into such a vector unchanged, through
 * Concat, Unsqueeze and their like; this is followed from the users back.  The numbers of arithmetic stay: H // 2
 * is H // 2 at every size. */
#include "aten/ops.h"
#include "dyn/onnx_sizes.h"
#include "onnx/onnx_ops.h"

enum { MOST_SIZES = 64 };               /* in one vector; Pad has two for each axis */

/* Inputs that hold sizes, as a set of bits. */
static unsigned size_inputs(OnnxOp op)
{
    switch (op) {
    case ONNX_Reshape: case ONNX_Expand: case ONNX_Tile: case ONNX_Pad: case ONNX_TopK: case ONNX_OneHot:
    case ONNX_CenterCropPad: case ONNX_Col2Im: case ONNX_AffineGrid: return 1u << 1;
    case ONNX_ConstantOfShape: case ONNX_Loop: return 1u << 0;
    case ONNX_Slice: return 1u << 1 | 1u << 2;
    case ONNX_Range: return 1u << 0 | 1u << 1;
    case ONNX_MaxUnpool: return 1u << 2;
    case ONNX_Resize: return 1u << 3;
    default: return 0;
    }
}

/* Inputs whose numbers are in the result as they are. */
static unsigned passed_inputs(const Node *n)
{
    switch (n->op) {
    case ONNX_Concat: return n->nin >= 32 ? 0 : (1u << n->nin) - 1;
    case ONNX_Unsqueeze: case ONNX_Squeeze: case ONNX_Reshape: case ONNX_Cast: case ONNX_Identity: case ONNX_Gather:
        return 1u << 0;
    default: return 0;
    }
}

static void mark_bodies(bool *sizes, const Node *n);

static void mark_graph(bool *sizes, const Graph *g)
{
    for (const Node *n = g->last; n; n = n->prev) {
        unsigned in = size_inputs(n->op);
        if (n->nout && sizes[n->out[0]->id])
            in |= passed_inputs(n);
        for (int i = 0; i < n->nin && i < 32; i++)
            if (in >> i & 1 && n->in[i])
                sizes[n->in[i]->id] = true;
        mark_bodies(sizes, n);
    }
}

static void mark_bodies(bool *sizes, const Node *n)
{
    for (int i = 0; i < n->nattr; i++)
        if (n->attrs[i].kind == ATTR_GRAPH)
            mark_graph(sizes, n->attrs[i].graph);
}

/* Contents of an initializer or of a Constant that has not been typed yet. */
static const Value *constant_sizes(Graph *g, Value *v)
{
    if (v->def && v->def->op == ONNX_Constant)
        p2o_onnx_infer(g, v->def);
    bool constant = !v->def ? v->tensor != NULL : v->def->op == ONNX_Constant;
    return constant && v->ints && v->nints <= MOST_SIZES ? v : NULL;
}

/* 0 and less mean something else, and what no tensor has means "to the end". */
static bool may_be_size(Dim d)
{
    int64_t v;
    return p2o_dim_is_int(d, &v) && v > 0 && v < INT32_MAX;
}

static void add_slot(NodeCall *k, Node *n, int i, const Value *was, Arg *items, uint32_t *nitem)
{
    Arena   *a = k->of->prog->arena;
    SizeSlot slot = { .input = i, .now = p2o_graph_value(n->graph), .was = was,
                      .item = NEW_N(a, int, was->nints + 1) };
    slot.now->name = was->name;
    slot.now->dtype = was->dtype;
    slot.now->shape = was->shape;
    slot.now->ints = was->ints;
    slot.now->nints = was->nints;
    for (size_t e = 0; e < was->nints; e++) {
        slot.item[e] = may_be_size(was->ints[e]) ? (int)*nitem : -1;
        if (slot.item[e] >= 0)
            items[(*nitem)++] = arg_int(was->ints[e]);
    }
    n->in[i] = slot.now;
    VEC_PUSH(a, &k->slots, slot);
}

static Arg size_list(NodeCall *k, const bool *sizes, Node *n)
{
    unsigned in = size_inputs(n->op);
    uint32_t nitem = 0;
    if (n->op != ONNX_NONE && n->nout && sizes[n->out[0]->id])
        in |= passed_inputs(n);
    Arg *items = in ? NEW_N(k->of->prog->arena, Arg, 4 * MOST_SIZES) : NULL;
    for (int i = 0; i < k->file->nin && i < 32; i++) {
        Value       *v = n->in[i];
        const Value *was = v && in >> i & 1 ? constant_sizes(n->graph, v) : NULL;
        if (was && nitem + was->nints <= 4 * MOST_SIZES)
            add_slot(k, n, i, was, items, &nitem);
    }
    return arg_list(items, nitem);
}

static Var *var_of(OnnxSettling *s, Body *b, const Value *v)
{
    Var **slot = &s->vars[v->id];
    if (!*slot)
        *slot = p2o_var_fresh(s->prog, b, v->name ? v->name : "unused");
    return *slot;
}

static Arg value_list(OnnxSettling *s, const Node *n)
{
    Arg     *items = NEW_N(s->prog->arena, Arg, (size_t)n->nin + 1);
    uint32_t count = 0;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && n->in[i]->id < s->nvar && s->vars[n->in[i]->id])
            items[count++] = arg_var(s->vars[n->in[i]->id]);
    return arg_list(items, count);
}

static void add_calls(OnnxSettling *s, const bool *sizes, Body *b, Graph *g);

/* If, Loop and Scan are gone into; other bodies are left as they are. */
static void add_bodies(OnnxSettling *s, const bool *sizes, NodeCall *k, const Node *n)
{
    int at = 2;
    for (int i = 0; i < n->nattr && at < k->call.nargs; i++) {
        if (n->attrs[i].kind != ATTR_GRAPH)
            continue;
        Body *inner = p2o_body_new(s->prog, n->attrs[i].name);
        for (size_t v = 0; v < n->attrs[i].graph->inputs.n; v++)
            VEC_PUSH(s->prog->arena, &inner->inputs, var_of(s, inner, n->attrs[i].graph->inputs.at[v]));
        k->call.args[at++] = (Arg){ .kind = ARG_BODY, .body = inner };
        add_calls(s, sizes, inner, n->attrs[i].graph);
    }
}

static const char *node_label(const OnnxSettling *s, const OnnxNode *x)
{
    const Node *n = x->node;
    const char *name = n->name && *n->name ? n->name : n->nout && n->out[0]->name ? n->out[0]->name : "";
    return p2o_printf(s->prog->arena, "%s%s%s '%s'", x->domain, *x->domain ? "." : "", x->op, name);
}

static void add_call(OnnxSettling *s, const bool *sizes, Body *b, const OnnxNode *x)
{
    Arena    *a = s->prog->arena;
    Node     *n = x->node;
    NodeCall *k = NEW(a, NodeCall);
    *k = (NodeCall){ .of = s, .file = x };
    k->call = (Call){ .target = node_label(s, x), .op = s->row, .schema = s->schema, .nargs = s->schema->nargs,
                      .args = NEW_N(a, Arg, (size_t)s->schema->nargs), .nouts = n->nout,
                      .outs = NEW_N(a, Var *, (size_t)n->nout + 1) };
    k->call.args[0] = value_list(s, n);
    k->call.args[1] = size_list(k, sizes, n);
    if (n->op == ONNX_If || n->op == ONNX_Loop || n->op == ONNX_Scan)
        add_bodies(s, sizes, k, n);
    for (int i = 0; i < n->nout; i++) {
        k->call.outs[i] = var_of(s, b, n->out[i]);
        k->call.outs[i]->def = &k->call;
    }
    VEC_PUSH(a, &b->calls, &k->call);
    VEC_PUSH(a, &s->calls, k);
}

static void add_calls(OnnxSettling *s, const bool *sizes, Body *b, Graph *g)
{
    for (size_t i = 0; i < g->file->nodes.n; i++)
        add_call(s, sizes, b, &g->file->nodes.at[i]);
}

void p2o_onnx_calls(OnnxSettling *s)
{
    Graph *g = s->model->graph;
    bool  *sizes = NEW_N(s->prog->arena, bool, (size_t)g->nvalue + 1);
    mark_graph(sizes, g);
    add_calls(s, sizes, s->prog->main, g);
}
