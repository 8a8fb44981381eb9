#include "onnx/build.h"

#include <assert.h>

#include "onnx/f64.h"
#include "onnx/fold.h"
#include "onnx/kernels.h"
#include "onnx/onnx_ops.h"

Builder *p2o_builder_new(Graph *g, Builder *parent)
{
    Builder *b = NEW(g->arena, Builder);
    *b = (Builder){ .graph = g, .parent = parent, .shared = { .arena = g->arena },
                    .consts = { .arena = g->arena }, .dims = { .arena = g->arena } };
    if (parent) {
        b->names = parent->names;
        b->loc = parent->loc;
        b->module = parent->module;
    } else {
        b->names = NEW(g->arena, Map);
        b->names->arena = g->arena;
    }
    return b;
}

static bool put_attr(Buf *key, const Attr *a)
{
    p2o_put(key, a->name, strlen(a->name) + 1);
    switch (a->kind) {
    case ATTR_INT: p2o_put(key, &a->i, sizeof a->i); return true;
    case ATTR_FLOAT: p2o_put(key, &a->f, sizeof a->f); return true;
    case ATTR_STR: p2o_put(key, a->s, strlen(a->s) + 1); return true;
    case ATTR_INTS: p2o_put(key, a->ints, a->n * sizeof *a->ints); break;
    case ATTR_FLOATS: p2o_put(key, a->floats, a->n * sizeof *a->floats); break;
    case ATTR_STRS:
        for (size_t i = 0; i < a->n; i++)
            p2o_put(key, a->strs[i], strlen(a->strs[i]) + 1);
        break;
    case ATTR_TENSOR:
    case ATTR_GRAPH: return false;
    }
    p2o_put(key, &a->n, sizeof a->n);
    return true;
}

static bool is_random(OnnxOp op)
{
    switch (op) {
    case ONNX_RandomNormal: case ONNX_RandomNormalLike: case ONNX_RandomUniform:
    case ONNX_RandomUniformLike:
    case ONNX_Bernoulli:
    case ONNX_Multinomial:
    case ONNX_Dropout: return true;
    default: return false;
    }
}

/* The key under which equal nodes meet; false: this one is never shared. */
static bool node_key(Buf *key, OnnxOp op, int nattr, const Attr *attrs, int nin, Value *const *in,
                     int nout)
{
    if (is_random(op))
        return false;
    p2o_put(key, &op, sizeof op);
    p2o_put(key, &nout, sizeof nout);
    p2o_put(key, &nin, sizeof nin);
    p2o_put(key, in, (size_t)nin * sizeof *in);
    for (int i = 0; i < nattr; i++)
        if (!put_attr(key, &attrs[i]))
            return false;
    return true;
}

static Node *find_shared(const Builder *b, Str key)
{
    for (; b; b = b->parent) {
        Node *n = p2o_map_get(&b->shared, key);
        if (n)
            return n;
    }
    return NULL;
}

/* module path and operator, numbered when it comes again: names are unique in the model. */
static const char *node_name(Builder *b, const Node *of)
{
    Arena      *a = b->graph->arena;
    const char *stem = p2o_node_operator(of).name;
    if (b->module)
        stem = p2o_printf(a, "%s/%s", b->module, stem);
    void    **slot = p2o_map_slot(b->names, str_of(stem));
    uintptr_t n = (uintptr_t)*slot;
    *slot = (void *)(n + 1);
    return n ? p2o_printf(a, "%s_%zu", stem, (size_t)n) : stem;
}

/* The contents that shape arithmetic knows, as a constant. */
static Value *known_contents(Builder *b, const Value *v)
{
    int64_t *ints = NEW_N(b->graph->arena, int64_t, v->nints + 1);
    if (!v->ints || v->dtype != DT_I64 || v->shape.rank > 1)
        return NULL;
    for (size_t i = 0; i < v->nints; i++)
        if (!p2o_dim_is_int(v->ints[i], &ints[i]))
            return NULL;
    return v->shape.rank ? p2o_build_ints(b, ints, v->nints) : p2o_build_int(b, ints[0]);
}

static Value *folded(Builder *b, const Node *n)
{
    if (n->nout != 1 || n->out[0]->dtype == DT_NONE)
        return NULL;
    Value *v = known_contents(b, n->out[0]);
    if (v)
        return v;
    const Tensor *constant = p2o_fold(n);
    return constant ? p2o_build_const(b, constant) : NULL;
}

static Value *recast(Builder *b, Value *x, DType t)
{
    Attr to = attr_int("to", p2o_dtype_onnx(t));
    return x->dtype == t ? x : p2o_build(b, ONNX_Cast, 1, &to, 1, &x);
}

static void report_no_kernel(Builder *b, const Node *n, DType t)
{
    const char *of = t ? p2o_printf(b->graph->arena, " of %s", p2o_dtype_torch(t)) : "";
    p2o_diag(b->graph->diags, DIAG_UNSUPPORTED, b->loc,
             "ONNX Runtime has no kernel for %s%s at opset %d", p2o_onnx_info(n->op)->name, of,
             b->graph->opset);
}

/* The types in which n's inputs have a kernel; NULL when it needs no change or there are none,
 * which is reported. */
static const DType *wider_types(Builder *b, const Node *n)
{
    DType *types = NEW_N(b->graph->arena, DType, (size_t)n->nin + 1);
    bool   changed = false;
    if (!n->nout || n->out[0]->dtype == DT_NONE)
        return NULL;                    /* ill-typed: reported when it was made */
    if (!p2o_kernel_exists(n)) {
        report_no_kernel(b, n, DT_NONE);
        return NULL;
    }
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i])
            continue;
        types[i] = p2o_kernel_type(n, i);
        changed |= types[i] != n->in[i]->dtype;
        if (types[i] == DT_NONE || (changed && n->out[0]->is_sequence)) {
            report_no_kernel(b, n, n->in[i]->dtype);
            return NULL;
        }
    }
    return changed ? types : NULL;
}

/* The same node over inputs of these types, its outputs cast back. */
static void build_wider(Builder *b, Node *n, const DType *types, Value **out)
{
    Value **in = NEW_N(b->graph->arena, Value *, (size_t)n->nin + 1);
    p2o_node_remove(n);
    for (int i = 0; i < n->nin; i++)
        in[i] = n->in[i] ? recast(b, n->in[i], types[i]) : NULL;
    p2o_build_many(b, n->op, n->nattr, n->attrs, n->nin, in, n->nout, out);
    for (int i = 0; i < n->nout; i++)
        out[i] = recast(b, out[i], n->out[i]->dtype);
}

void p2o_build_many(Builder *b, OnnxOp op, int nattr, const Attr *attrs, int nin, Value *const *in,
                    int nout, Value **out)
{
    Buf key = { .arena = b->graph->arena };
    while (nin > 0 && !in[nin - 1])
        nin--;
    bool  shareable = node_key(&key, op, nattr, attrs, nin, in, nout);
    Node *n = shareable ? find_shared(b, buf_str(&key)) : NULL;
    if (!n) {
        n = p2o_graph_node(b->graph, op, nin, in, nattr, attrs, nout, b->loc);
        Value *constant = folded(b, n);
        if (constant) {
            p2o_node_remove(n);
            out[0] = constant;
            return;
        }
        Value *composed = p2o_f64_build(b, n);
        if (composed) {
            p2o_node_remove(n);
            out[0] = composed;
            return;
        }
        const DType *types = wider_types(b, n);
        if (types) {
            build_wider(b, n, types, out);
            return;
        }
        n->name = node_name(b, n);
        if (shareable)
            map_put(&b->shared, buf_str(&key), n);
    }
    for (int i = 0; i < nout; i++)
        out[i] = n->out[i];
}

Node *p2o_build_own(Builder *b, const OnnxOperator *own, int nattr, const Attr *attrs, int nin,
                    Value *const *in, int nout)
{
    Node *n = p2o_graph_own(b->graph, own, nin, in, nattr, attrs, nout, b->loc);
    n->name = node_name(b, n);
    return n;
}

Value *p2o_build(Builder *b, OnnxOp op, int nattr, const Attr *attrs, int nin, Value *const *in)
{
    Value *out;
    p2o_build_many(b, op, nattr, attrs, nin, in, 1, &out);
    return out;
}

Value *p2o_build_const(Builder *b, const Tensor *t)
{
    uint64_t n;
    bool     ok = p2o_tensor_nelem(t, &n);
    size_t   nbytes = (size_t)n * p2o_dtype_bytes(t->dtype);
    void    *bytes = p2o_alloc(b->graph->arena, nbytes);
    ok = ok && p2o_tensor_load(t, bytes, nbytes);
    assert(ok);                                     /* constants are ours: in memory */
    (void)ok;
    Buf key = { .arena = b->graph->arena };
    p2o_put(&key, &t->dtype, sizeof t->dtype);
    p2o_put(&key, &t->rank, sizeof t->rank);
    p2o_put(&key, t->sizes, (size_t)t->rank * sizeof *t->sizes);
    p2o_put(&key, bytes, nbytes);
    for (const Builder *s = b; s; s = s->parent) {
        Value *v = p2o_map_get(&s->consts, buf_str(&key));
        if (v)
            return v;
    }
    Value *v = p2o_graph_init(b->graph, NULL, t);
    map_put(&b->consts, buf_str(&key), v);
    return v;
}

Value *p2o_build_ints(Builder *b, const int64_t *v, size_t n)
{
    return p2o_build_const(b, p2o_tensor_ints(b->graph->arena, 1, v, n));
}

Value *p2o_build_int(Builder *b, int64_t v)
{
    return p2o_build_const(b, p2o_tensor_ints(b->graph->arena, 0, &v, 1));
}

Value *p2o_build_scalar(Builder *b, DType t, double f)
{
    return p2o_build_const(b, p2o_tensor_scalar(b->graph->arena, t, f, 0, true));
}
