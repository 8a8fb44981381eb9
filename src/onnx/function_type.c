/* A function's results by the rules of its nodes, as if these stood in the caller's place.
 *
 * What no rule tells (an operator without a row, a function of a function that goes too deep) stays
 * unknown, and so does all that follows from it: no claim is made then. */
#include "onnx/function.h"
#include "onnx/onnx_ops.h"

/* Functions that call functions grow with the power of their depth. */
enum { MOST_DEEP = 8, MOST_TYPED = 20000 };

typedef struct Typing {
    Graph *graph;
    int    left;                        /* nodes that may still be made */
} Typing;

typedef struct Scope {                  /* of one call */
    const OnnxFunction *fn;
    Map                 values;         /* name -> Value *; absent: unknown, or not given */
    Map                 absent;         /* inputs that the call does not give */
    int                 nattr;
    const Attr         *attrs;
} Scope;

static const Attr *given_attr(const Scope *s, const char *name)
{
    for (int i = 0; i < s->nattr; i++)
        if (same(s->attrs[i].name, name))
            return &s->attrs[i];
    const FunctionAttr *f = p2o_function_attr(s->fn, name);
    return f && f->has_default ? &f->dflt : NULL;
}

/* The node's attributes, references replaced; one that the call does not give is left out. */
static int attrs_of(const Scope *s, const FunctionNode *n, Attr *out)
{
    int k = 0;
    for (int i = 0; i < n->nattr; i++) {
        const NodeAttr *a = &n->attrs[i];
        const Attr     *v = a->ref ? given_attr(s, a->ref) : &a->value;
        if (!v)
            continue;
        out[k] = *v;
        out[k++].name = a->value.name;
    }
    return k;
}

/* false: one of them is not known. */
static bool inputs_of(const Scope *s, const FunctionNode *n, Value **in)
{
    for (int i = 0; i < n->nin; i++) {
        in[i] = *n->in[i] ? p2o_map_get(&s->values, str_of(n->in[i])) : NULL;
        if (!in[i] && *n->in[i] && !p2o_map_get(&s->absent, str_of(n->in[i])))
            return false;
    }
    return true;
}

static bool type_call(Typing *t, const OnnxFunction *f, int nin, Value *const *in, int nattr,
                      const Attr *attrs, Value **out, int depth);

/* out[i] stays NULL where it is not known; false: a rule was not satisfied. */
static bool type_node(Typing *t, const Scope *s, const FunctionNode *n, Value **out, int depth)
{
    Arena  *a = t->graph->arena;
    Value **in = NEW_N(a, Value *, (size_t)n->nin + 1);
    Attr   *attrs = NEW_N(a, Attr, (size_t)n->nattr + 1);
    OnnxOp  op = *n->domain ? ONNX_NONE : p2o_onnx_find(str_of(n->op));
    if (--t->left < 0 || !inputs_of(s, n, in))
        return true;
    int nattr = attrs_of(s, n, attrs);
    if (n->calls)
        return depth == MOST_DEEP || 
               type_call(t, n->calls, n->nin, in, nattr, attrs, out, depth + 1);
    if (op == ONNX_NONE)
        return true;
    Node *made = p2o_graph_append(t->graph, op, n->nin, in, nattr, attrs, n->nout);
    if (!p2o_onnx_infer(t->graph, made))
        return false;
    for (int i = 0; i < n->nout; i++)
        out[i] = made->out[i];
    return true;
}

static bool type_call(Typing *t, const OnnxFunction *f, int nin, Value *const *in, int nattr,
                      const Attr *attrs, Value **out, int depth)
{
    Arena *a = t->graph->arena;
    Scope  s = { .fn = f, .values = { .arena = a }, .absent = { .arena = a }, .nattr = nattr,
                 .attrs = attrs };
    for (int i = 0; i < f->nin; i++) {
        bool given = i < nin && in[i];
        map_put(given ? &s.values : &s.absent, str_of(f->in[i]), given ? (void *)in[i] : t);
    }
    for (int i = 0; i < f->nnode; i++) {
        const FunctionNode *n = &f->nodes[i];
        Value             **made = NEW_N(a, Value *, (size_t)n->nout + 1);
        if (!type_node(t, &s, n, made, depth))
            return false;
        for (int k = 0; k < n->nout; k++)
            if (*n->out[k] && made[k])
                map_put(&s.values, str_of(n->out[k]), made[k]);
    }
    for (int i = 0; i < f->nout; i++)
        out[i] = p2o_map_get(&s.values, str_of(f->out[i]));
    return true;
}

bool p2o_function_type(Graph *scratch, const OnnxFunction *f, int nin, Value *const *in, int nattr,
                       const Attr *attrs, Value **out)
{
    Typing t = { .graph = scratch, .left = MOST_TYPED };
    return type_call(&t, f, nin, in, nattr, attrs, out, 0);
}

static const char *misfit_of(const OnnxFunction *f, int opset)
{
    int older = f->opset < opset ? f->opset : opset;
    for (int i = 0; i < f->nnode && f->opset != opset; i++) {
        const FunctionNode *n = &f->nodes[i];
        OnnxOp              op = *n->domain ? ONNX_NONE : p2o_onnx_find(str_of(n->op));
        if (!*n->domain && (op == ONNX_NONE || p2o_onnx_info(op)->since > older))
            return n->op;
    }
    return NULL;
}

const OnnxFunction *p2o_function_misfit(Arena *a, const OnnxFunction *f, int opset, const char **op)
{
    VEC(const OnnxFunction *) todo = { 0 };
    Map seen = { .arena = a };
    VEC_PUSH(a, &todo, f);
    for (size_t i = 0; i < todo.n; i++) {
        const OnnxFunction *x = todo.at[i];
        const char         *key = p2o_printf(a, "%s\n%s", x->domain, x->name);
        void              **slot = p2o_map_slot(&seen, str_of(key));
        if (*slot)
            continue;
        *slot = (void *)(uintptr_t)x;
        *op = misfit_of(x, opset);
        if (*op)
            return x;
        for (int k = 0; k < x->nnode; k++)
            if (x->nodes[k].calls)
                VEC_PUSH(a, &todo, x->nodes[k].calls);
    }
    return NULL;
}
