/* Which numbers of a model may be sizes.
 *
 * A constant counts where an operator takes it as sizes, or where it goes into such a vector
 * unchanged, through Concat, Unsqueeze and their like; this is followed from the users back.  The
 * numbers of arithmetic stay: H // 2 is H // 2 at every size. */
#include "aten/ops.h"
#include "dyn/onnx_sizes.h"
#include "onnx/onnx_ops.h"

enum { MOST_SIZES = 64, MOST_ITEMS = 256 };     /* in one vector; in all of a node's */

unsigned p2o_onnx_inputs(const Node *n, const char *letters)
{
    unsigned bits = 0;
    for (int i = 0; i < n->nin && i < 32; i++) {
        Str word = p2o_onnx_input(n->op, i);
        for (size_t k = 0; k < word.n; k++)
            if (strchr(letters, word.p[k]))
                bits |= 1u << i;
    }
    return bits;
}

typedef enum Use {              /* of a value, by what follows */
    USE_DATA,
    USE_SIZES,                  /* its elements are sizes */
    USE_PLACES,                 /* it says which sizes, and how many: no size itself */
} Use;

static Use use_of(const uint8_t *uses, const Node *n)
{
    return n->nout ? (Use)uses[n->out[0]->id] : USE_DATA;
}

/* Inputs of this node that hold sizes. */
static unsigned size_slots(const uint8_t *uses, const Node *n)
{
    Use use = use_of(uses, n);
    return use == USE_PLACES ? 0 : p2o_onnx_inputs(n, use == USE_SIZES ? "v" : ONNX_SIZES);
}

static void mark_uses(uint8_t *uses, const Graph *g)
{
    for (const Node *n = g->last; n; n = n->prev) {
        unsigned slots = size_slots(uses, n);
        for (int i = 0; i < n->nin && i < 32; i++) {
            uint8_t *use = n->in[i] ? &uses[n->in[i]->id] : NULL;
            if (use && slots >> i & 1)
                *use = USE_SIZES;
            else if (use && use_of(uses, n) != USE_DATA && *use == USE_DATA &&
                     n->op != ONNX_Shape && n->op != ONNX_Size)
                *use = USE_PLACES;
        }
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH)
                mark_uses(uses, n->attrs[i].graph);
    }
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
static bool is_size_like(Dim d)
{
    int64_t v;
    return p2o_dim_is_int(d, &v) && v > 0 && v < INT32_MAX;
}

/* A dynamic size that was this number. */
static bool was_freed(const OnnxSettling *s, int64_t size)
{
    int64_t hint;
    for (size_t i = 0; i < s->freed.n; i++)
        if (p2o_hint_at(s->bind, s->freed.at[i], 0, &hint) && hint == size)
            return true;
    return false;
}

/* Expand to sizes that are all 1 adds axes and does nothing else, as exporters write before a
 * Tile. */
static bool only_adds_axes(const NodeCall *k, const Node *n, const Value *to)
{
    bool ones = n->op == ONNX_Expand && !was_freed(k->of, 1);
    for (size_t i = 0; i < to->nints && ones; i++)
        ones = dim_is(to->ints[i], 1);
    return ones;
}

static void add_slot(NodeCall *k, Node *n, int i, const Value *was, Arg *items, uint32_t *nitem)
{
    Arena   *a = k->of->prog->arena;
    SizeSlot slot = { .input = i, .now = p2o_graph_value(n->graph), .was = was,
                      .item = NEW_N(a, int, was->nints + 1),
                      .open = NEW_N(a, Dim, was->nints + 1) };
    slot.now->name = was->name;
    slot.now->dtype = was->dtype;
    slot.now->shape = was->shape;
    slot.now->ints = was->ints;
    slot.now->nints = was->nints;
    bool sizes = !only_adds_axes(k, n, was);
    for (size_t e = 0; e < was->nints; e++) {
        slot.item[e] = sizes && is_size_like(was->ints[e]) ? (int)*nitem : -1;
        if (slot.item[e] >= 0)
            items[(*nitem)++] = arg_int(was->ints[e]);
    }
    n->in[i] = slot.now;
    VEC_PUSH(a, &k->slots, slot);
}

/* How a constant with an axis of such a size was made; looked at once. */
static const BakedForm *baked_form(OnnxSettling *s, const Value *v)
{
    bool fits = false;
    if (!v->tensor || v->id >= s->nvar)
        return NULL;
    for (int i = 0; i < v->tensor->rank; i++)
        fits |= was_freed(s, v->tensor->sizes[i]);
    if (!fits)
        return NULL;
    const Tensor **key = NEW(s->prog->arena, const Tensor *);
    *key = v->tensor;
    Str    at = { (const char *)key, sizeof *key };
    bool   seen = p2o_map_get(&s->looked_at, at) != NULL;
    void **slot = p2o_map_slot(&s->looked_at, at);
    static const BakedForm none;
    if (!seen) {
        const BakedForm *f = p2o_onnx_form(s->prog->arena, v->tensor);
        *slot = (void *)(uintptr_t)(f ? f : &none);
    }
    return *slot == &none ? NULL : *slot;
}

/* Everywhere else a size of 1 is broadcast. */
static bool may_grow_from_one(const Node *n, int axis)
{
    int64_t joined = p2o_node_int(n, "axis", 0);
    return n->op == ONNX_LSTM || n->op == ONNX_GRU || n->op == ONNX_RNN ||
           (n->op == ONNX_Concat && joined >= 0 && axis != joined);
}

static bool may_follow(const NodeCall *k, const Node *n, const BakedForm *form, int d)
{
    int64_t size = form->of->sizes[d];
    return form->axes >> d & 1 && was_freed(k->of, size) && (size != 1 || may_grow_from_one(n, d));
}

static void add_shaped_slot(NodeCall *k, Node *n, int i, const BakedForm *form, Arg *items,
                            uint32_t *nitem)
{
    Arena   *a = k->of->prog->arena;
    Value   *was = n->in[i];
    SizeSlot slot = { .input = i, .now = p2o_graph_value(n->graph), .was = was, .form = form,
                      .item = NEW_N(a, int, (size_t)form->of->rank + 1),
                      .open = NEW_N(a, Dim, (size_t)form->of->rank + 1) };
    slot.now->name = was->name;
    slot.now->dtype = form->of->dtype;
    for (int d = 0; d < form->of->rank; d++) {
        slot.item[d] = may_follow(k, n, form, d) ? (int)*nitem : -1;
        if (slot.item[d] >= 0)
            items[(*nitem)++] = arg_int(p2o_dim_int(k->of->prog->dims, form->of->sizes[d]));
    }
    n->in[i] = slot.now;
    VEC_PUSH(a, &k->slots, slot);
}

static Arg size_list(NodeCall *k, const uint8_t *uses, Node *n)
{
    unsigned in = size_slots(uses, n);
    unsigned baked = use_of(uses, n) == USE_DATA ? p2o_onnx_inputs(n, "b") : 0;
    uint32_t nitem = 0;
    Arg     *items = in | baked ? NEW_N(k->of->prog->arena, Arg, MOST_ITEMS) : NULL;
    for (int i = 0; i < k->file->nin && i < 32; i++) {
        Value           *v = n->in[i];
        const Value     *was = v && in >> i & 1 ? constant_sizes(n->graph, v) : NULL;
        const BakedForm *form = v && !was && baked >> i & 1 ? baked_form(k->of, v) : NULL;
        if (was && nitem + was->nints <= MOST_ITEMS)
            add_slot(k, n, i, was, items, &nitem);
        else if (form && nitem + (uint32_t)form->of->rank <= MOST_ITEMS)
            add_shaped_slot(k, n, i, form, items, &nitem);
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

static void add_calls(OnnxSettling *s, const uint8_t *uses, Body *b, Graph *g);

/* If, Loop and Scan are gone into; other bodies are left as they are. */
static void add_bodies(OnnxSettling *s, const uint8_t *uses, NodeCall *k, const Node *n)
{
    int at = 2;
    for (int i = 0; i < n->nattr && at < k->call.nargs; i++) {
        if (n->attrs[i].kind != ATTR_GRAPH)
            continue;
        Body *inner = p2o_body_new(s->prog, n->attrs[i].name);
        for (size_t v = 0; v < n->attrs[i].graph->inputs.n; v++)
            VEC_PUSH(s->prog->arena, &inner->inputs,
                     var_of(s, inner, n->attrs[i].graph->inputs.at[v]));
        k->call.args[at++] = (Arg){ .kind = ARG_BODY, .body = inner };
        add_calls(s, uses, inner, n->attrs[i].graph);
    }
}

static const char *node_label(const OnnxSettling *s, const OnnxNode *x)
{
    const Node *n = x->node;
    const char *made = n->nout && n->out[0]->name ? n->out[0]->name : "";
    const char *name = n->name && *n->name ? n->name : made;
    OnnxOperator op = p2o_node_operator(n);
    return p2o_printf(s->prog->arena, "%s%s%s '%s'", op.domain, *op.domain ? "." : "", op.name,
                      name);
}

static void add_node_call(OnnxSettling *s, const uint8_t *uses, Body *b, const OnnxNode *x)
{
    Arena    *a = s->prog->arena;
    Node     *n = x->node;
    NodeCall *k = NEW(a, NodeCall);
    *k = (NodeCall){ .of = s, .file = x };
    k->call = (Call){ .target = node_label(s, x), .loc = x->loc, .op = s->row, .schema = s->schema,
                      .nargs = s->schema->nargs, .args = NEW_N(a, Arg, (size_t)s->schema->nargs),
                      .nouts = n->nout, .outs = NEW_N(a, Var *, (size_t)n->nout + 1) };
    k->call.args[0] = value_list(s, n);
    k->call.args[1] = size_list(k, uses, n);
    if (n->op == ONNX_If || n->op == ONNX_Loop || n->op == ONNX_Scan)
        add_bodies(s, uses, k, n);
    for (int i = 0; i < n->nout; i++) {
        k->call.outs[i] = var_of(s, b, n->out[i]);
        k->call.outs[i]->def = &k->call;
    }
    VEC_PUSH(a, &b->calls, &k->call);
    VEC_PUSH(a, &s->calls, k);
}

static void add_calls(OnnxSettling *s, const uint8_t *uses, Body *b, Graph *g)
{
    for (size_t i = 0; i < g->file->nodes.n; i++)
        add_node_call(s, uses, b, &g->file->nodes.at[i]);
}

void p2o_onnx_calls(OnnxSettling *s)
{
    Graph *g = s->model->graph;
    uint8_t *uses = NEW_N(s->prog->arena, uint8_t, (size_t)g->nvalue + 1);
    mark_uses(uses, g);
    add_calls(s, uses, s->prog->main, g);
}
