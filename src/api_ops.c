/* Values are numbers into a table of the call's own, so a wrong one is found and not followed; a
 * call that is over says so.  Memory may run out below the user's function, whose frames no jump
 * may cross: each entry has a setjmp of its own, and the jump goes on when the function has
 * returned. */
#include "api_ops.h"

#include "aten/lower.h"
#include "base/io.h"
#include "base/num.h"
#include "onnx/onnx_ops.h"

typedef struct Registered {
    p2o_lower_fn *fn;
    void         *user;
    bool         *busy;                 /* while it runs, the handle takes no other calls */
} Registered;

struct p2o_call {
    Lower      *lo;                     /* NULL: it is over */
    const Call *call;
    Value     **out;
    VEC(Value *) values;                /* handed out; value n is at n - 1 */
    bool        out_of_memory;
};

typedef p2o_status CallStep(p2o_call *k, void *arg);

static p2o_status in_call(p2o_call *k, CallStep *step, void *arg)
{
    if (!k || !k->lo)
        return P2O_ERR_MISUSE;
    if (k->out_of_memory)
        return P2O_ERR_NOMEM;
    jmp_buf *guard = p2o_arena_guard(k->lo->arena), outer;
    memcpy(&outer, guard, sizeof outer);
    p2o_status s = P2O_ERR_NOMEM;
    if (setjmp(*guard))
        k->out_of_memory = true;
    else
        s = step(k, arg);
    memcpy(guard, &outer, sizeof outer);
    return k->out_of_memory ? P2O_ERR_NOMEM : s;
}

static p2o_status call_misuse(p2o_call *k, const char *what)
{
    unsupported(k->lo, k->call, "its callback: %s", what);
    return P2O_ERR_MISUSE;
}

static p2o_value hand_out(p2o_call *k, Value *v)
{
    if (!v)
        return 0;
    for (size_t i = 0; i < k->values.n; i++)
        if (k->values.at[i] == v)
            return (p2o_value)(i + 1);
    VEC_PUSH(k->lo->arena, &k->values, v);
    return (p2o_value)k->values.n;
}

static Value *value_of(const p2o_call *k, p2o_value v)
{
    return v && v <= k->values.n ? k->values.at[v - 1] : NULL;
}

size_t p2o_call_narguments(const p2o_call *k)
{
    return k && k->lo ? (size_t)p2o_custom_nargs(k->call) : 0;
}

size_t p2o_call_nresults(const p2o_call *k)
{
    return k && k->lo ? (size_t)k->call->nouts : 0;
}

static void describe_number(p2o_call *k, const Arg *x, p2o_argument *out)
{
    Type t = p2o_arg_type(x);
    out->kind = t.kind == TY_INT ? P2O_ARG_INT : P2O_ARG_FLOAT;
    if (t.kind == TY_INT && p2o_dim_is_int(t.value, &out->i))
        out->f = (double)out->i;
    else
        out->value = hand_out(k, p2o_arg_value(k->lo, x, t.kind == TY_INT ? DT_I64 : DT_F32));
}

static void describe(p2o_call *k, const Arg *x, p2o_argument *out)
{
    switch (x->kind) {
    case ARG_VAR:
        if (x->var->type.kind != TY_TENSOR) {
            describe_number(k, x, out);
            break;
        }
        out->kind = P2O_ARG_TENSOR;
        out->value = hand_out(k, p2o_arg_value(k->lo, x, x->var->type.dtype));
        break;
    case ARG_INT: describe_number(k, x, out); break;
    case ARG_FLOAT: out->kind = P2O_ARG_FLOAT; out->f = x->f; break;
    case ARG_BOOL: out->kind = P2O_ARG_BOOL; out->i = x->b; break;
    case ARG_STR:
    case ARG_DEVICE: out->kind = P2O_ARG_STRING; out->s = x->s; break;
    case ARG_DTYPE: out->kind = P2O_ARG_STRING; out->s = p2o_dtype_torch(x->dtype); break;
    case ARG_LIST: out->kind = P2O_ARG_LIST; out->n = x->n; break;
    default: out->kind = P2O_ARG_NONE; break;
    }
}

typedef struct Asked {
    size_t        i, item;
    bool          inside;
    p2o_argument *out;
} Asked;

static p2o_status step_argument(p2o_call *k, void *arg)
{
    const Asked *q = arg;
    p2o_argument x = { 0 };
    size_t       n = q->out->size < sizeof x ? q->out->size : sizeof x;
    if (q->i >= p2o_call_narguments(k) || n < sizeof x.size)
        return call_misuse(k, "an argument that the call does not have");
    const Arg *a = &k->call->args[q->i];
    if (q->inside && (a->kind != ARG_LIST || q->item >= a->n))
        return call_misuse(k, "an item that the argument does not have");
    x.name = k->call->schema->args[q->i].name;
    describe(k, q->inside ? &a->items[q->item] : a, &x);
    x.size = q->out->size;
    memcpy(q->out, &x, n);
    return x.kind == P2O_ARG_TENSOR && !x.value ? P2O_ERR_UNSUPPORTED : P2O_OK;
}

p2o_status p2o_call_argument(p2o_call *k, size_t i, p2o_argument *out)
{
    return in_call(k, step_argument, &(Asked){ .i = i, .out = out });
}

p2o_status p2o_call_item(p2o_call *k, size_t i, size_t item, p2o_argument *out)
{
    return in_call(k, step_argument, &(Asked){ .i = i, .item = item, .inside = true, .out = out });
}

typedef struct AskedType {
    p2o_value  v;
    p2o_type  *out;
    bool       result;
} AskedType;

static p2o_status step_type(p2o_call *k, void *arg)
{
    const AskedType *q = arg;
    const Value     *v = q->result ? NULL : value_of(k, q->v);
    p2o_type         x = { 0 };
    size_t           n = q->out->size < sizeof x ? q->out->size : sizeof x;
    if ((q->result ? q->v >= (size_t)k->call->nouts : !v) || n < sizeof x.size)
        return call_misuse(k, "the type of a value that there is not");
    Shape    s = q->result ? out_shape(k->call, (int)q->v) : v->shape;
    int64_t *sizes = NEW_N(k->lo->arena, int64_t, (size_t)s.rank + 1);
    for (int i = 0; i < s.rank; i++)
        if (!p2o_dim_is_int(s.at[i], &sizes[i]))
            sizes[i] = -1;
    x = (p2o_type){ .size = q->out->size,
                    .dtype = p2o_dtype_torch(q->result ? out_dtype(k->call, (int)q->v) : v->dtype),
                    .rank = s.rank, .sizes = sizes };
    memcpy(q->out, &x, n);
    return P2O_OK;
}

p2o_status p2o_value_type(p2o_call *k, p2o_value v, p2o_type *out)
{
    return in_call(k, step_type, &(AskedType){ .v = v, .out = out });
}

p2o_status p2o_result_type(p2o_call *k, size_t i, p2o_type *out)
{
    AskedType q = { .v = i < UINT32_MAX ? (p2o_value)i : UINT32_MAX, .out = out, .result = true };
    return in_call(k, step_type, &q);
}

static const float *as_floats(Arena *a, const double *f, size_t n)
{
    float *out = NEW_N(a, float, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)f[i];
    return out;
}

/* What the caller points at is copied: it may be gone when the model is written. */
static bool take_attribute(p2o_call *k, const p2o_attribute *x, Attr *out)
{
    Arena       *a = k->lo->arena;
    const char **strs = NEW_N(a, const char *, x->n + 1);
    if (!x->name || (x->n && x->kind == P2O_ATTR_INTS && !x->ints) ||
        (x->n && x->kind == P2O_ATTR_FLOATS && !x->floats) ||
        (x->n && x->kind == P2O_ATTR_STRINGS && !x->strings) ||
        (x->kind == P2O_ATTR_STRING && !x->s))
        return false;
    *out = (Attr){ .name = p2o_str_dup(a, str_of(x->name)), .n = x->n };
    switch (x->kind) {
    case P2O_ATTR_INT: out->kind = ATTR_INT; out->i = x->i; return true;
    case P2O_ATTR_FLOAT: out->kind = ATTR_FLOAT; out->f = (float)x->f; return true;
    case P2O_ATTR_STRING:
        out->kind = ATTR_STR;
        out->s = p2o_str_dup(a, str_of(x->s));
        return true;
    case P2O_ATTR_INTS: {
        int64_t *ints = NEW_N(a, int64_t, x->n + 1);
        if (x->n)
            memcpy(ints, x->ints, x->n * sizeof *ints);
        out->kind = ATTR_INTS;
        out->ints = ints;
        return true;
    }
    case P2O_ATTR_FLOATS:
        out->kind = ATTR_FLOATS;
        out->floats = as_floats(a, x->floats, x->n);
        return true;
    case P2O_ATTR_STRINGS:
        for (size_t i = 0; i < x->n; i++)
            strs[i] = p2o_str_dup(a, str_of(x->strings[i] ? x->strings[i] : ""));
        out->kind = ATTR_STRS;
        out->strs = strs;
        return true;
    }
    return false;
}

/* The caller's struct as this version knows it; false: it is none. */
static bool take_struct(void *into, size_t known, const void *from)
{
    size_t n;
    memcpy(&n, from, sizeof n);
    if (n < sizeof n)
        return false;
    memcpy(into, from, n < known ? n : known);
    return true;
}

typedef struct Emitting {
    const p2o_node *node;
    p2o_value      *out;
} Emitting;

/* Of a domain of the user's: its results are the call's. */
static p2o_status emit_own(p2o_call *k, const p2o_node *n, Value **in, const Attr *attrs,
                           p2o_value *out)
{
    Arena        *a = k->lo->arena;
    OnnxOperator *op = NEW(a, OnnxOperator);
    if (n->noutput != (size_t)k->call->nouts)
        return call_misuse(k, "a node of your own domain has the results of the call, all of them");
    *op = (OnnxOperator){ .domain = p2o_str_dup(a, str_of(n->domain)),
                          .name = p2o_str_dup(a, str_of(n->op)), .version = 1 };
    op->function = p2o_custom_function(k->call, op->domain, op->name);
    if (op->function && !p2o_custom_fits(k->lo, k->call, op->function))
        return P2O_ERR_UNSUPPORTED;
    Node *made = p2o_build_own(k->lo->b, op, (int)n->nattribute, attrs, (int)n->ninput, in,
                               (int)n->noutput);
    for (size_t i = 0; i < n->noutput; i++) {
        made->out[i]->dtype = out_dtype(k->call, (int)i);
        made->out[i]->shape = out_shape(k->call, (int)i);
        out[i] = hand_out(k, made->out[i]);
    }
    return P2O_OK;
}

/* Whether the rule takes it, before it is made: what it does not take is the callback's mistake. */
static bool is_well_typed(p2o_call *k, OnnxOp op, const p2o_node *n, Value **in, const Attr *attrs)
{
    Graph *g = k->lo->b->graph;
    Node  *trial = p2o_graph_append(g, op, (int)n->ninput, in, (int)n->nattribute, attrs,
                                    (int)n->noutput);
    bool   ok = p2o_onnx_infer(g, trial);
    for (size_t i = 0; ok && i < n->noutput; i++)
        ok = trial->out[i]->dtype != DT_NONE && !trial->out[i]->is_sequence;
    p2o_node_remove(trial);
    return ok;
}

static p2o_status emit_known(p2o_call *k, const p2o_node *n, Value **in, const Attr *attrs,
                             p2o_value *out)
{
    OnnxOp  op = p2o_onnx_find(str_of(n->op));
    Value **made = NEW_N(k->lo->arena, Value *, n->noutput + 1);
    if (op == ONNX_NONE || op == ONNX_If || op == ONNX_Loop || op == ONNX_Scan)
        return call_misuse(k, p2o_printf(k->lo->arena, "ONNX %s is not known here", n->op));
    if (!is_well_typed(k, op, n, in, attrs))
        return call_misuse(k, p2o_printf(k->lo->arena, "ONNX %s (opset %d) does not take these "
                                         "inputs and attributes", n->op, k->lo->opset));
    p2o_build_many(k->lo->b, op, (int)n->nattribute, attrs, (int)n->ninput, in, (int)n->noutput,
                   made);
    for (size_t i = 0; i < n->noutput; i++) {
        if (made[i]->dtype == DT_NONE) {        /* no kernel: which was said */
            k->lo->failed = true;
            return P2O_ERR_UNSUPPORTED;
        }
        out[i] = hand_out(k, made[i]);
    }
    return P2O_OK;
}

static p2o_status step_emit(p2o_call *k, void *arg)
{
    enum { MOST_PORTS = 1024 };
    const Emitting *e = arg;
    p2o_node        n = { 0 };
    if (!take_struct(&n, sizeof n, e->node) || !n.op || !n.noutput || n.noutput > MOST_PORTS ||
        n.ninput > MOST_PORTS || n.nattribute > MOST_PORTS || (n.ninput && !n.inputs) ||
        (n.nattribute && !n.attributes))
        return call_misuse(k, "a node without an operator or outputs");
    Arena  *a = k->lo->arena;
    Value **in = NEW_N(a, Value *, n.ninput + 1);
    Attr   *attrs = NEW_N(a, Attr, n.nattribute + 1);
    for (size_t i = 0; i < n.ninput; i++) {
        in[i] = value_of(k, n.inputs[i]);
        if (!in[i] && n.inputs[i])
            return call_misuse(k, "an input that is no value of this call");
    }
    const char *at = (const char *)n.attributes;
    for (size_t i = 0; i < n.nattribute; i++, at += n.attributes->size) {
        p2o_attribute x = { 0 };
        if (!take_struct(&x, sizeof x, at) || !take_attribute(k, &x, &attrs[i]))
            return call_misuse(k, "an attribute without a name or a value");
    }
    bool own = n.domain && *n.domain && !same(n.domain, "ai.onnx");
    return (own ? emit_own : emit_known)(k, &n, in, attrs, e->out);
}

p2o_status p2o_emit(p2o_call *k, const p2o_node *n, p2o_value *outputs)
{
    return n && outputs ? in_call(k, step_emit, &(Emitting){ n, outputs }) : P2O_ERR_MISUSE;
}

typedef struct GivenConstant {
    const char    *dtype;
    int            rank;
    const int64_t *sizes;
    const void    *data;
    size_t         nbytes;
    p2o_value     *out;
} GivenConstant;

static p2o_status step_constant(p2o_call *k, void *arg)
{
    const GivenConstant *x = arg;
    Arena   *a = k->lo->arena;
    DType    t = x->dtype ? p2o_dtype_from_torch(str_of(x->dtype)) : DT_NONE;
    uint64_t n = 1, nbytes = 0;
    bool     ok = x->out && p2o_dtype_onnx(t) && !is_complex(t) && x->rank >= 0 &&
              x->rank <= MAX_RANK && (x->sizes || !x->rank) && (x->data || !x->nbytes);
    for (int i = 0; ok && i < x->rank; i++)
        ok = x->sizes[i] >= 0 && mul_u64(n, (uint64_t)x->sizes[i], &n);
    if (!ok || !mul_u64(n, p2o_dtype_bytes(t), &nbytes) || nbytes != x->nbytes)
        return call_misuse(k, "a constant whose type, sizes and bytes do not fit");
    void *copy = p2o_alloc(a, x->nbytes + 1);
    if (x->nbytes)
        memcpy(copy, x->data, x->nbytes);
    const Tensor *made = p2o_tensor_make(a, t, x->rank, x->sizes, copy);
    *x->out = hand_out(k, p2o_build_const(k->lo->b, made));
    return P2O_OK;
}

p2o_status p2o_constant(p2o_call *k, const char *dtype, int rank, const int64_t *sizes,
                        const void *data, size_t nbytes, p2o_value *out)
{
    return in_call(k, step_constant, &(GivenConstant){ dtype, rank, sizes, data, nbytes, out });
}

typedef struct GivenResult {
    size_t    i;
    p2o_value v;
} GivenResult;

/* A size that the nodes' rules give has to be the result's at every size; one that is known at run
 * time only is taken on trust, as the data decides it. */
static bool is_the_size(Dims *t, Dim by_nodes, Dim of_result)
{
    int64_t captured;
    Answer  same_size = p2o_dim_eq(t, by_nodes, of_result);
    return same_size == YES || (same_size == CANNOT_TELL && !p2o_dim_hint(t, by_nodes, &captured));
}

static p2o_status step_result(p2o_call *k, void *arg)
{
    const GivenResult *r = arg;
    Value             *v = value_of(k, r->v);
    if (!v || r->i >= (size_t)k->call->nouts)
        return call_misuse(k, "a result that there is not");
    DType t = out_dtype(k->call, (int)r->i);
    Shape s = out_shape(k->call, (int)r->i);
    if (v->dtype != t || v->shape.rank != s.rank)
        return call_misuse(k, p2o_printf(k->lo->arena, "result %zu is %s of rank %d, the file "
                                         "recorded %s of rank %d", r->i + 1,
                                         p2o_dtype_torch(v->dtype), v->shape.rank,
                                         p2o_dtype_torch(t), s.rank));
    for (int i = 0; i < s.rank; i++)
        if (!is_the_size(k->lo->dims, v->shape.at[i], s.at[i]))
            return call_misuse(k, p2o_printf(k->lo->arena, "result %zu has size %s on axis %d, "
                                             "which is %s", r->i + 1,
                                             p2o_dim_text(k->lo->dims, v->shape.at[i]), i,
                                             p2o_dim_text(k->lo->dims, s.at[i])));
    /* Its own value: what is known of the result must not reach what it was made of. */
    k->out[r->i] = v->def && v->graph == k->lo->b->graph ? v : emit(k->lo, ONNX_Identity, v);
    return P2O_OK;
}

p2o_status p2o_call_result(p2o_call *k, size_t i, p2o_value v)
{
    return in_call(k, step_result, &(GivenResult){ i, v });
}

static p2o_status step_refuse(p2o_call *k, void *arg)
{
    const char *const *why = arg;
    unsupported(k->lo, k->call, "%s", *why ? *why : "refused");
    return P2O_ERR_UNSUPPORTED;
}

p2o_status p2o_call_refuse(p2o_call *k, const char *why)
{
    return in_call(k, step_refuse, &why);
}

static bool run_callback(void *user, Lower *lo, const Call *c, Value **out)
{
    const Registered *r = user;
    p2o_call         *k = NEW(lo->arena, p2o_call);
    *k = (p2o_call){ .lo = lo, .call = c, .out = out };
    *r->busy = true;
    p2o_status s = r->fn(r->user, k);
    *r->busy = false;
    k->lo = NULL;
    if (k->out_of_memory)
        longjmp(*p2o_arena_guard(lo->arena), 1);
    if (lo->failed)
        return false;
    if (s != P2O_OK)
        unsupported(lo, c, "its callback failed (%d)", (int)s);
    for (int i = 0; i < c->nouts && !lo->failed; i++)
        if (!out[i])
            unsupported(lo, c, "its callback gave no result %d", i + 1);
    return !lo->failed;
}

static void add_library(Diags *d, CustomOps *x, const char *path)
{
    size_t      n = 0;
    const char *model = p2o_diags_file(d, path), *text = p2o_read_text(d, path, &n);
    if (text)
        p2o_functions_parse(d, &x->library, (Str){ text, n });
    p2o_diags_file(d, model);
}

void p2o_take_custom(Diags *d, Ops *o, bool *busy, const CustomWord *w)
{
    Arena      *a = p2o_diags_arena(d);
    CustomOps  *x = p2o_ops_custom(o);
    const char *text = p2o_str_dup(a, str_of(w->text ? w->text : "")), *wrong = NULL;
    Registered *r = NEW(a, Registered);
    *r = (Registered){ .fn = w->fn, .user = w->user, .busy = busy };
    switch (w->kind) {
    case CUSTOM_MAP: wrong = p2o_custom_map(x, o, text); break;
    case CUSTOM_LIBRARY: add_library(d, x, text); break;
    case CUSTOM_TEXT: p2o_functions_parse(d, &x->library, str_of(text)); break;
    case CUSTOM_CALL:
        wrong = w->fn ? p2o_custom_call(x, o, text, run_callback, r) : "no function";
        break;
    }
    if (wrong)
        p2o_diag(d, DIAG_MISUSE, 0, "%s", wrong);
}
