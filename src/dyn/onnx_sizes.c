#include "dyn/onnx_sizes.h"

#include "aten/lower.h"
#include "dyn/declare.h"
#include "dyn/settle.h"
#include "onnx/fold.h"
#include "onnx/onnx_ops.h"

Program *p2o_onnx_program(OnnxModel *m)
{
    Program *p = p2o_program_new(m->diags, m->dims);
    Graph   *g = m->graph;
    p->unsettled = "make that axis dynamic where the model is exported, or export it at larger "
                   "sizes that its own numbers do not come near, or leave the axis as it is";
    for (size_t i = 0; i < g->inputs.n; i++) {
        const Value *v = g->inputs.at[i];
        Var         *x = p2o_var_fresh(p, p->main, v->name);
        x->recorded = (Type){ .kind = v->dtype ? TY_TENSOR : TY_FLOAT, .dtype = v->dtype,
                              .shape = v->shape };
        VEC_PUSH(p->arena, &p->main->inputs, x);
        VEC_PUSH(p->arena, &p->inputs, (InputSpec){ .name = v->name, .var = x });
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        VEC_PUSH(p->arena, &p->outputs,
                 (OutputSpec){ .kind = OUT_USER, .name = g->outputs.at[i]->name });
    return p;
}

bool p2o_onnx_has_shape(const OnnxModel *m, Str input)
{
    for (size_t i = 0; i < m->graph->inputs.n; i++) {
        const Value *v = m->graph->inputs.at[i];
        if (!str_is(input, v->name) || v->dtype != DT_NONE)
            continue;
        p2o_diag_advise(m->diags, DIAG_UNSUPPORTED, 0,
                        "write its rank and sizes into the file first",
                        "the file does not say what shape input '%s' has", v->name);
        return false;
    }
    return true;
}

/* What rules ask, answered by the Infer that runs. */
typedef struct Asker {
    OnnxSizes hooks;            /* first */
    Infer    *in;
    NodeCall *now;
} Asker;

static Asker *asker(const OnnxSizes *s) { return (Asker *)(uintptr_t)s; }

static bool ask_equal(const OnnxSizes *s, Dim a, Dim b, const char *what)
{
    Asker *x = asker(s);
    return a && b && must_equal(x->in, &x->now->call, a, b, what) && !x->in->failed;
}

static bool ask_broadcast(const OnnxSizes *s, Shape a, Shape b, Shape *out)
{
    Asker *x = asker(s);
    *out = broadcast(x->in, &x->now->call, a, b);
    return !x->in->failed;
}

static bool ask_reshape(const OnnxSizes *s, Shape from, Shape to, Shape *out)
{
    Asker *x = asker(s);
    return reshaped(x->in, &x->now->call, from, to, out) && !x->in->failed;
}

/* Bounds that no tensor has mean its end. */
static Dim inside_bound(Dim d)
{
    int64_t v;
    return p2o_dim_is_int(d, &v) && (v >= INT32_MAX || v <= -INT32_MAX) ? NULL : d;
}

static Dim stuck_place(Asker *x, Dim d)
{
    d = p2o_resolve(x->in->bind, d);
    if (!p2o_dim_is_int(d, NULL) && harden(x->in, d))
        VEC_PUSH(x->in->arena, &x->now->of->stuck, d);
    return p2o_resolve(x->in->bind, d);
}

static bool ask_slice(const OnnxSizes *s, Dim start, Dim end, Dim size, Dim *from, Dim *to)
{
    Asker  *x = asker(s);
    int64_t v;
    if (p2o_dim_is_int(start, &v) && v >= INT32_MAX)
        start = size;
    if (p2o_dim_is_int(end, &v) && v <= -INT32_MAX)
        end = p2o_dim_int(x->in->dims, 0);
    if (p2o_dim_is_int(size, NULL) && !dim_is(start, 0)) {      /* a place in something fixed */
        start = stuck_place(x, start);
        end = stuck_place(x, end);
    }
    slice_bounds(x->in, inside_bound(start), inside_bound(end), size, from, to);
    return !x->in->failed;
}

static bool ask_alike(const OnnxSizes *s, Dim a, Dim b)
{
    Asker  *x = asker(s);
    int64_t va, vb;
    a = p2o_resolve(x->in->bind, a);
    b = p2o_resolve(x->in->bind, b);
    if (p2o_dim_eq(x->in->dims, a, b) == YES)
        return true;
    return p2o_hint_at(x->in->bind, a, 0, &va) && p2o_hint_at(x->in->bind, b, 0, &vb) && va == vb;
}

static Dim data_symbol_of(Infer *in)
{
    Dim sym = p2o_dim_fresh(in->dims, DATA_STEM);
    p2o_set_role(in->bind, sym, ROLE_DATA);
    return sym;
}

static Dim ask_fresh(const OnnxSizes *s)
{
    Asker    *x = asker(s);
    NodeCall *k = x->now;
    if (k->nfresh == k->fresh.n)
        VEC_PUSH(x->in->arena, &k->fresh, data_symbol_of(x->in));
    return p2o_resolve(x->in->bind, k->fresh.at[k->nfresh++]);
}

typedef struct Freed {
    const OnnxSettling *of;
    Dim                 first;  /* symbol found; NULL: none */
} Freed;

static void note_freed(void *user, Dim sym)
{
    Freed *f = user;
    for (size_t i = 0; i < f->of->freed.n && !f->first; i++)
        if (f->of->freed.at[i] == sym)
            f->first = sym;
}

/* A symbol that was a number and that the value's shape or contents depend on. */
static Dim freed_in(const OnnxSettling *s, const Value *v)
{
    Freed f = { .of = s };
    for (int i = 0; v && v->dtype && i < v->shape.rank; i++)
        p2o_dim_symbols(v->shape.at[i], note_freed, &f);
    for (size_t i = 0; v && v->ints && i < v->nints; i++)
        p2o_dim_symbols(v->ints[i], note_freed, &f);
    return f.first;
}

static Dim freed_input(const NodeCall *k)
{
    const Node *n = k->file->node;
    Dim         sym = NULL;
    bool        hidden = k->file->hides_bodies;
    for (int i = 0; i < n->nin && !sym; i++)
        sym = freed_in(k->of, n->in[i]);
    for (int i = 0; i < n->nattr; i++)
        hidden |= n->op == ONNX_NONE && n->attrs[i].kind == ATTR_GRAPH;
    return sym || !hidden || !k->of->freed.n ? sym : k->of->freed.at[0];
}

static const char *input_types(Infer *in, const Node *n)
{
    Buf b = { .arena = in->arena };
    for (int i = 0; i < n->nin; i++) {
        const Value *v = n->in[i];
        p2o_puts(&b, i ? ", " : "");
        if (!v || !v->dtype || v->is_sequence)
            p2o_puts(&b, !v ? "none" : v->is_sequence ? "a sequence" : "unknown");
        else
            p2o_putf(&b, "%s[%s]", p2o_dtype_text(v->dtype), p2o_shape_text(in->dims, v->shape));
    }
    return b.at ? b.at : "";
}

static void refuse_freed(Infer *in, const NodeCall *k, Dim sym, const char *why)
{
    int64_t hint = 0;
    p2o_dim_hint(in->dims, sym, &hint);
    p2o_diag_advise(in->diags, DIAG_NOT_DYNAMIC, 0,
                    p2o_printf(in->arena, "leave %s at %lld", p2o_dim_name(sym), (long long)hint),
                    "%s can't be dynamic: %s %s", p2o_dim_name(sym), k->call.target, why);
    in->failed = true;
}

/* What the file says of the results, looked up once. */
static void take_stated(Infer *in, NodeCall *k)
{
    Node *n = k->file->node;
    if (!k->stated) {
        k->stated = NEW_N(in->arena, Value, (size_t)n->nout + 1);
        for (int i = 0; i < n->nout; i++) {
            Value *v = &k->stated[i];
            if (!n->out[i]->name ||
                !p2o_onnx_stated(n->graph->file, n->out[i]->name, &v->dtype, &v->shape))
                v->dtype = DT_NONE;
        }
    }
}

/* A node that no rule types: its results are what the file says, unless that may have changed. */
static bool fall_back(Infer *in, NodeCall *k)
{
    Node *n = k->file->node;
    Dim   sym = freed_input(k);
    if (sym && n->op == ONNX_NONE) {
        refuse_freed(in, k, sym, "has results whose shapes at other sizes are not known");
        return false;
    }
    if (sym) {
        refuse_freed(in, k, sym, p2o_printf(in->arena, "does not take (%s)", input_types(in, n)));
        return false;
    }
    take_stated(in, k);
    for (int i = 0; i < n->nout; i++) {
        n->out[i]->dtype = k->stated[i].dtype;
        n->out[i]->shape = k->stated[i].dtype ? k->stated[i].shape : (Shape){ 0 };
        n->out[i]->ints = NULL;
        n->out[i]->is_sequence = false;
    }
    return true;
}

static Shape resolved(Infer *in, Shape s)
{
    Dim *at = p2o_shape_copy(in->arena, s, 0);
    for (int i = 0; i < s.rank; i++)
        at[i] = p2o_dim_assume(in->dims, p2o_resolve(in->bind, at[i]), 1);
    return (Shape){ s.rank, at };
}

static void resolve_value(Infer *in, Value *v)
{
    if (v->dtype && v->shape.rank >= 0)
        v->shape = resolved(in, v->shape);
    if (!v->ints)
        return;
    Dim *at = NEW_N(in->arena, Dim, v->nints + 1);
    for (size_t i = 0; i < v->nints; i++)
        at[i] = p2o_resolve(in->bind, v->ints[i]);
    v->ints = at;
}

/* TY_FLOAT stands for what is no tensor, or not known: nothing is asked of it. */
static Type type_of(const Value *v)
{
    bool tensor = v->dtype && !v->is_sequence && v->shape.rank >= 0;
    return tensor ? (Type){ .kind = TY_TENSOR, .dtype = v->dtype, .shape = v->shape }
           : (Type){ .kind = TY_FLOAT };
}

/* The proof that the rules are right about this model: at its old sizes they give what the file
 * says. */
static void check_stated(Infer *in, NodeCall *k)
{
    Node *n = k->file->node;
    if (!k->of->freed.n)
        return;
    take_stated(in, k);
    for (int i = 0; i < n->nout; i++) {
        const Value *file = &k->stated[i], *v = n->out[i];
        if (!file->dtype || !v->dtype || v->is_sequence)
            continue;
        bool agrees = file->dtype == v->dtype && file->shape.rank == v->shape.rank;
        for (int d = 0; agrees && d < v->shape.rank; d++) {
            int64_t have, want;
            agrees = !p2o_dim_is_int(file->shape.at[d], &want) ||
                     !p2o_hint_at(in->bind, v->shape.at[d], 0, &have) || have == want;
        }
        if (!agrees) {
            rule_fail(in, "'%s' is %s[%s] by its inputs, but the file says %s[%s]",
                      v->name ? v->name : "", p2o_dtype_text(v->dtype),
                      p2o_shape_text(in->dims, v->shape),
                      p2o_dtype_text(file->dtype), p2o_shape_text(in->dims, file->shape));
            return;
        }
    }
}

static size_t slot_count(const SizeSlot *slot)
{
    return slot->form ? (size_t)slot->form->of->rank : slot->was->nints;
}

static Dim slot_was(const OnnxSettling *s, const SizeSlot *slot, size_t i)
{
    return slot->form ? p2o_dim_int(s->prog->dims, slot->form->of->sizes[i]) : slot->was->ints[i];
}

/* What the sizes are now, as far as is known. */
static Dim *slot_sizes(const OnnxSettling *s, const NodeCall *k, const SizeSlot *slot)
{
    size_t n = slot_count(slot);
    Dim   *at = NEW_N(s->prog->arena, Dim, n + 1);
    for (size_t i = 0; i < n; i++)
        at[i] = slot->item[i] < 0
                    ? slot_was(s, slot, i)
                    : p2o_resolve(s->bind, k->call.args[1].items[slot->item[i]].i);
    return at;
}

static bool slot_is_open(const OnnxSettling *s, const NodeCall *k, const SizeSlot *slot)
{
    const Dim *at = slot_sizes(s, k, slot);
    for (size_t i = 0; i < slot_count(slot); i++)
        if (!p2o_dim_is_int(at[i], NULL))
            return true;
    return false;
}

static void load_inputs(NodeCall *k)
{
    OnnxSettling *s = k->of;
    Node         *n = k->file->node;
    for (int i = 0; i < n->nin; i++) {
        Value *v = n->in[i];
        if (v && v->dtype && !v->def && v->graph == s->model->graph && v->id < s->nvar &&
            s->vars[v->id])
            v->shape = s->vars[v->id]->type.shape;
    }
    for (size_t i = 0; i < k->slots.n; i++) {
        SizeSlot *slot = &k->slots.at[i];
        Dim      *at = slot_sizes(s, k, slot);
        for (size_t e = 0; e < slot_count(slot); e++) {
            Dim d = slot->item[e] >= 0 ? k->call.args[1].items[slot->item[e]].i : NULL;
            if (d && !slot->open[e] && p2o_dim_is_sym(d))
                slot->open[e] = d;
        }
        if (slot->form)
            slot->now->shape = (Shape){ slot->form->of->rank, at };
        else
            slot->now->ints = at;
    }
}

static void run_body(Infer *in, NodeCall *k, int which, const Graph *g)
{
    const Body *b = k->call.args[2 + which].body;
    Type       *types = NEW_N(in->arena, Type, g->inputs.n + 1);
    for (size_t i = 0; i < g->inputs.n; i++)
        types[i] = type_of(g->inputs.at[i]);
    infer_body(in, b, types);
    Asker *x = asker(k->of->hooks);
    x->in = in;
    x->now = k;
}

static void enter_value(Value *to, const Value *from)
{
    to->dtype = from ? from->dtype : DT_NONE;
    to->shape = from ? from->shape : (Shape){ 0 };
    to->is_sequence = from && from->is_sequence;
    to->ints = NULL;
}

/* Inputs that go round: as they start, but for sizes that the body changes. */
static void enter_carried(Infer *in, NodeCall *k, const Graph *body, int first, int n, int from)
{
    for (int i = 0; i < n; i++) {
        Value *v = body->inputs.at[first + i];
        enter_value(v, k->file->node->in[from + i]);
        Dim *at = p2o_shape_copy(in->arena, v->shape, 0);
        for (int d = 0; k->carried && v->dtype && d < v->shape.rank; d++)
            at[d] = k->carried[i * MAX_RANK + d] ? k->carried[i * MAX_RANK + d] : at[d];
        v->shape.at = at;
    }
}

/* Whether each comes back as it went in; a size that does not is open from then on. */
static bool carried_settle(Infer *in, NodeCall *k, const Graph *body, int first, int n, int back)
{
    bool settled = true;
    if (!k->carried)
        k->carried = NEW_N(in->arena, Dim, (size_t)n * MAX_RANK + 1);
    for (int i = 0; i < n; i++) {
        const Value *v = body->inputs.at[first + i], *out = body->outputs.at[back + i];
        if (!v->dtype || !out->dtype || v->shape.rank != out->shape.rank)
            continue;
        for (int d = 0; d < v->shape.rank; d++) {
            Dim *open = &k->carried[i * MAX_RANK + d];
            if (*open || ask_alike(k->of->hooks, v->shape.at[d], out->shape.at[d]))
                continue;
            *open = data_symbol_of(in);
            settled = false;
        }
    }
    return settled;
}

static void type_loop(Infer *in, NodeCall *k)
{
    Node  *n = k->file->node;
    Graph *body = k->call.args[2].kind == ARG_BODY ? n->attrs[0].graph : NULL;
    for (int i = 0; i < n->nattr; i++)
        if (n->attrs[i].kind == ATTR_GRAPH)
            body = n->attrs[i].graph;
    bool loop = n->op == ONNX_Loop;
    int  nscan = loop ? 0 : (int)p2o_node_int(n, "num_scan_inputs", 0);
    int  from = loop ? 2 : 0, carried = n->nin - from - nscan, back = loop ? 1 : 0;
    if (!body || k->call.args[2].kind != ARG_BODY || nscan < 0 || carried < 0 ||
        body->inputs.n != (size_t)n->nin || body->outputs.n < (size_t)(carried + back))
        return;
    for (int i = 0; i < nscan; i++) {
        const Value *x = n->in[carried + i];
        Value       *v = body->inputs.at[carried + i];
        int          axis;
        enter_value(v, x);
        if (x && x->dtype &&
            p2o_wrap_dim(p2o_node_int(n, "scan_input_axes", 0), x->shape.rank, false, &axis))
            v->shape = without_dim(in, x->shape, axis);
        const Attr *axes = p2o_node_attr(n, "scan_input_axes");
        if (axes && axes->kind == ATTR_INTS && x && x->dtype && (size_t)i < axes->n &&
            p2o_wrap_dim(axes->ints[i], x->shape.rank, false, &axis))
            v->shape = without_dim(in, x->shape, axis);
    }
    do {
        enter_carried(in, k, body, from, carried, from);
        run_body(in, k, 0, body);
    } while (!in->failed && !carried_settle(in, k, body, from, carried, back));
}

static void type_bodies(Infer *in, NodeCall *k)
{
    Node *n = k->file->node;
    if (n->op == ONNX_Loop || n->op == ONNX_Scan)
        type_loop(in, k);
    if (n->op != ONNX_If)
        return;
    int which = 0;
    for (int i = 0; i < n->nattr && !in->failed; i++)
        if (n->attrs[i].kind == ATTR_GRAPH && 2 + which < k->call.nargs)
            run_body(in, k, which++, n->attrs[i].graph);
}

/* A constant, also one that only shows in contents that are all numbers; NULL: not known. */
static const Tensor *constant_of(Arena *a, const Value *v)
{
    if (v->tensor || !v->ints || v->dtype != DT_I64)
        return v->tensor;
    int64_t *at = NEW_N(a, int64_t, v->nints + 1);
    for (size_t i = 0; i < v->nints; i++)
        if (!p2o_dim_is_int(v->ints[i], &at[i]))
            return NULL;
    return p2o_tensor_ints(a, v->shape.rank, at, v->nints);
}

/* Equal of vectors of integers, as the test for -1 in sizes that Expand is given. */
static const Tensor *compared_ints(Arena *a, const Value *x, const Value *y)
{
    size_t  n = x->nints > y->nints ? x->nints : y->nints;
    int64_t size = (int64_t)n;
    if (!x->ints || !y->ints || (x->nints != n && x->nints != 1) ||
        (y->nints != n && y->nints != 1))
        return NULL;
    uint8_t *bytes = p2o_alloc(a, n + 1);
    for (size_t i = 0; i < n; i++)
        bytes[i] = x->ints[x->nints == 1 ? 0 : i] == y->ints[y->nints == 1 ? 0 : i];
    int64_t *sizes = NEW(a, int64_t);
    *sizes = size;
    return p2o_tensor_make(a, DT_BOOL, x->shape.rank > 0 || y->shape.rank > 0, sizes, bytes);
}

/* Exporters leave arithmetic on constants in the file: pads that are put together from pieces. */
static void fold_node(Node *n)
{
    Arena *a = n->graph->arena;
    Value *y = n->nout == 1 ? n->out[0] : NULL;
    if (!y || !n->nin || n->op == ONNX_Constant)
        return;
    Node copy = *n;
    copy.in = NEW_N(a, Value *, (size_t)n->nin + 1);
    y->tensor = NULL;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i])
            continue;
        copy.in[i] = NEW(a, Value);
        *copy.in[i] = *n->in[i];
        copy.in[i]->tensor = constant_of(a, n->in[i]);
        if (!copy.in[i]->tensor)
            return;
    }
    y->tensor = n->op == ONNX_Equal ? compared_ints(a, copy.in[0], copy.in[1]) : p2o_fold(&copy);
    if (y->tensor && !y->ints)
        p2o_onnx_type_constant(n->graph, y, y->tensor);
}

bool p2o_onnx_is_constant(const OnnxSettling *s, const Value *v)
{
    return !v || (!v->def && v->tensor) || (v->def && v->id < s->nvar && s->constant[v->id]);
}

/* Sizes that come from constants alone are numbers, also where they were not followed. */
static bool follows_constants(Infer *in, NodeCall *k)
{
    OnnxSettling *s = k->of;
    Node         *n = k->file->node;
    bool          fixed = true;
    for (int i = 0; i < n->nattr; i++)
        fixed &= n->attrs[i].kind != ATTR_GRAPH;
    for (int i = 0; i < n->nin; i++)
        fixed &= (n->in[i] && n->in[i]->id >= s->nvar) ||       /* a slot */
                 p2o_onnx_is_constant(s, n->in[i]);
    for (int i = 0; i < n->nin && i < 32; i++) {
        const Value *v = n->in[i];
        if (fixed || !v || !(p2o_onnx_inputs(n, ONNX_SIZES) >> i & 1) || v->ints ||
            v->id >= s->nvar || !p2o_onnx_is_constant(s, v))
            continue;
        refuse_freed(in, k, s->freed.at[0],
                     "takes sizes that are computed from constants in a way that is not followed");
        return false;
    }
    for (size_t i = 0; i < k->slots.n; i++)
        fixed &= !slot_is_open(s, k, &k->slots.at[i]);
    if (fixed && k->nfresh) {
        take_stated(in, k);
        for (int i = 0; i < n->nout; i++) {
            if (!k->stated[i].dtype || !p2o_shape_is_const(k->stated[i].shape)) {
                refuse_freed(in, k, s->freed.at[0],
                             "is computed from constants in a way that is not followed");
                return false;
            }
            n->out[i]->shape = k->stated[i].shape;
        }
    }
    for (int i = 0; i < n->nout; i++)
        s->constant[n->out[i]->id] = fixed;
    return true;
}

static Dim summed_of(const OnnxSettling *s, const Value *v)
{
    return v && v->id < s->nvar ? s->summed[v->id] : NULL;
}

/* How many elements each of the node's results is a sum of; NULL: not many, or not a dynamic
 * number. */
static Dim summed_by(Infer *in, const NodeCall *k)
{
    const OnnxSettling *s = k->of;
    const Node         *n = k->file->node;
    const Value        *x = n->nin ? n->in[0] : NULL, *y = n->nout ? n->out[0] : NULL;
    Dim                 count = NULL;
    switch (n->op) {
    case ONNX_ReduceSum: case ONNX_ReduceSumSquare: case ONNX_ReduceL1: case ONNX_ReduceMean: {
        Dim all = shape_nelem(in->dims, x->shape), left = shape_nelem(in->dims, y->shape);
        count = all && left ? p2o_dim_exact_div(in->dims, all, left) : NULL;
        break;
    }
    case ONNX_MatMul: count = x->shape.rank ? x->shape.at[x->shape.rank - 1] : NULL; break;
    case ONNX_Add: case ONNX_Sub: case ONNX_Mul: case ONNX_Div: case ONNX_Neg: case ONNX_Abs:
    case ONNX_Cast: case ONNX_Reshape: case ONNX_Squeeze: case ONNX_Unsqueeze: case ONNX_Transpose:
    case ONNX_Identity: case ONNX_Flatten:
        for (int i = 0; i < n->nin && !count; i++)
            count = summed_of(s, n->in[i]);
        return count;
    default: break;
    }
    Freed f = { .of = s };
    if (count)
        p2o_dim_symbols(count, note_freed, &f);
    return f.first ? count : NULL;
}

static void note_sums(Infer *in, const NodeCall *k)
{
    const Node *n = k->file->node;
    Dim         count = k->of->freed.n ? summed_by(in, k) : NULL;
    for (int i = 0; i < n->nout; i++)
        k->of->summed[n->out[i]->id] = count;
}

static void rule_node(Infer *in, const Call *c)
{
    NodeCall *k = (NodeCall *)(uintptr_t)c;
    Node     *n = k->file->node;
    Asker    *x = asker(k->of->hooks);
    load_inputs(k);
    x->in = in;
    x->now = k;
    type_bodies(in, k);
    k->nfresh = 0;
    if (in->failed)
        return;
    bool typed = n->op != ONNX_NONE && p2o_onnx_infer(n->graph, n);
    if (in->failed || (!typed && !fall_back(in, k)))
        return;
    if (typed)
        fold_node(n);
    if (typed && k->of->freed.n && !follows_constants(in, k))
        return;
    note_sums(in, k);
    for (int i = 0; i < n->nout; i++) {
        resolve_value(in, n->out[i]);
        c->outs[i]->type = type_of(n->out[i]);
    }
    check_stated(in, k);
}

static void share_hooks(Graph *g, const OnnxSizes *hooks)
{
    g->sizes = hooks;
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH)
                share_hooks(n->attrs[i].graph, hooks);
}

static OnnxSettling *new_settling_of(OnnxModel *m, Program *p, Bindings *b)
{
    static const AtenOp row = {
        .schema = "onnx::node(Tensor?[] inputs, SymInt[] sizes, Body? first=None, "
                  "Body? second=None) -> Tensor",
        .shape = rule_node, .complex = true, .unchecked = true };
    const char   *error;
    OnnxSettling *s = NEW(p->arena, OnnxSettling);
    Asker        *x = NEW(p->arena, Asker);
    x->hooks = (OnnxSizes){ .equal = ask_equal, .broadcast = ask_broadcast, .reshape = ask_reshape,
                            .slice = ask_slice, .alike = ask_alike, .fresh = ask_fresh };
    *s = (OnnxSettling){ .model = m, .prog = p, .bind = b, .nvar = m->graph->nvalue, .row = &row,
                         .schema = p2o_schema_parse(p->arena, p->dims, row.schema, &error),
                         .hooks = &x->hooks,
                         .vars = NEW_N(p->arena, Var *, (size_t)m->graph->nvalue + 1),
                         .looked_at = { .arena = p->arena },
                         .constant = NEW_N(p->arena, bool, (size_t)m->graph->nvalue + 1),
                         .summed = NEW_N(p->arena, Dim, (size_t)m->graph->nvalue + 1) };
    for (size_t i = 0; i < m->graph->inputs.n; i++)
        s->vars[m->graph->inputs.at[i]->id] = p->main->inputs.at[i];
    return s;
}

/* Symbols that the user put where the file has a number. */
static void find_freed(OnnxSettling *s)
{
    for (size_t i = 0; i < s->prog->main->inputs.n; i++) {
        const Var *v = s->prog->main->inputs.at[i];
        for (int d = 0; d < v->type.shape.rank; d++)
            if (p2o_dim_is_int(v->recorded.shape.at[d], NULL) &&
                p2o_dim_is_sym(v->type.shape.at[d]))
                VEC_PUSH(s->prog->arena, &s->freed, v->type.shape.at[d]);
    }
}

static Dim *changed_sizes(OnnxSettling *s, const NodeCall *k, const SizeSlot *slot)
{
    bool changed = false;
    Dim *at = slot_sizes(s, k, slot);
    for (size_t i = 0; i < slot_count(slot); i++)
        changed |= at[i] != slot_was(s, slot, i);
    return changed ? at : NULL;
}

/* A Reshape copies a size that stays in its place. */
static void use_copies(OnnxSettling *s, const NodeCall *k, const SizeSlot *slot, Dim *at)
{
    const Node *n = k->file->node;
    Shape       x = n->in[0]->shape;
    if (slot->form || n->op != ONNX_Reshape || slot->input != 1 || p2o_node_int(n, "allowzero", 0))
        return;
    for (size_t e = 0; e < slot->was->nints && e < (size_t)x.rank; e++)
        if (!p2o_dim_is_int(at[e], NULL) && at[e] == x.at[e])
            at[e] = p2o_dim_int(s->prog->dims, 0);
}

static void name_new(OnnxModel *m, Value *v, size_t *next)
{
    while (!v->name) {
        const char *name = p2o_printf(m->arena, "pt2onnx_size_%zu", (*next)++);
        void      **slot = p2o_map_slot(&m->taken, str_of(name));
        if (!*slot) {
            *slot = v;
            v->name = name;
        }
    }
}

static void name_prelude(OnnxModel *m, Graph *g)
{
    size_t next = 0;
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nout; i++)
            name_new(m, n->out[i], &next);
    for (size_t i = 0; i < g->inits.n; i++)
        name_new(m, g->inits.at[i], &next);
    if (g->first || g->inits.n)
        m->prelude = g;
}

enum { LEAST_OPSET = 13 };              /* whose forms the nodes that compute sizes have */

static bool needs_nodes(const SizeSlot *slot, const Dim *at)
{
    bool needs = slot->form != NULL;
    for (size_t i = 0; i < slot_count(slot); i++)
        needs |= !p2o_dim_is_int(at[i], NULL);
    return needs;
}

/* Nodes for what became of the sizes, computed from the inputs' shapes before everything else. */
static bool write_sizes(OnnxSettling *s)
{
    OnnxModel *m = s->model;
    Program   *p = s->prog;
    Graph     *g = p2o_graph_new(m->arena, m->diags, m->dims, m->graph->opset, NULL);
    Lower      lo = { .prog = p, .arena = p->arena, .dims = p->dims, .diags = p->diags,
                      .opset = g->opset, .b = p2o_builder_new(g, NULL) };
    size_t     errors = p2o_diags_errors(p->diags);
    lo.b->module = "pt2onnx";
    for (size_t i = 0; i < m->graph->inputs.n; i++) {
        Value *v = m->graph->inputs.at[i];
        if (!v->dtype)
            continue;
        v->shape = p->main->inputs.at[i]->type.shape;
        carries_dims(&lo, p2o_graph_input(g, v->name, v->dtype, v->shape));
    }
    for (size_t i = 0; i < s->calls.n; i++) {
        NodeCall *k = s->calls.at[i];
        for (size_t c = 0; c < k->slots.n; c++) {
            const SizeSlot *slot = &k->slots.at[c];
            Dim            *at = changed_sizes(s, k, slot);
            if (!at)
                continue;
            use_copies(s, k, slot, at);
            if (g->opset < LEAST_OPSET && needs_nodes(slot, at)) {
                p2o_diag_advise(m->diags, DIAG_UNSUPPORTED, 0,
                                "bring the file to a later opset first, with "
                                "onnx.version_converter",
                                "%s: its sizes can't be computed at opset %d, %d is needed",
                                k->call.target, g->opset, LEAST_OPSET);
                return false;
            }
            Shape  sizes = { (int)slot_count(slot), at };
            Value *v = slot->form             ? p2o_onnx_make(&lo, slot->form, sizes)
                       : slot->was->shape.rank ? shape_value(&lo, sizes)
                                               : dim_scalar(&lo, at[0]);
            if (slot->form)
                p2o_diag(p->diags, DIAG_NOTE, 0,
                         "%s: the constant '%s' follows the sizes now: it is taken to have been "
                         "made from them", k->call.target, slot->was->name ? slot->was->name : "");
            k->file->node->in[slot->input] = cast(&lo, v, slot->was->dtype);
        }
    }
    name_prelude(m, g);
    return p2o_diags_errors(p->diags) == errors;
}

static bool is_freed(const OnnxSettling *s, Str name)
{
    for (size_t i = 0; i < s->freed.n; i++)
        if (str_is(name, p2o_dim_name(s->freed.at[i])))
            return true;
    return false;
}

static void note_name(void *user, Dim sym)
{
    Str *name = user;
    if (str_is(*name, p2o_dim_name(sym)))
        *name = (Str){ 0 };
}

static bool names_a_size(const OnnxSettling *s, Str name)
{
    Str left = name;
    for (size_t i = 0; i < s->prog->main->inputs.n; i++) {
        Shape shape = s->prog->main->inputs.at[i]->type.shape;
        for (int d = 0; d < shape.rank; d++) {
            p2o_dim_symbols(shape.at[d], note_name, &left);
            p2o_dim_symbols(p2o_resolve(s->bind, shape.at[d]), note_name, &left);
        }
    }
    if (left.p)
        p2o_diag(s->prog->diags, DIAG_MISUSE, 0, "no size of the inputs is called '%.*s'",
                 STR_ARG(name));
    return !left.p;
}

/* A size that was a number is settled under its name before it is another number: literals follow
 * the name. */
static bool apply_pins(OnnxSettling *s, const char *const *pins, size_t npin, bool freed)
{
    bool ok = true, any = false;
    for (size_t i = 0; i < npin; i++) {
        Str value, name = p2o_str_trim(p2o_str_cut(str_of(pins[i]), '=', &value));
        if (is_freed(s, name) != freed)
            continue;
        ok &= names_a_size(s, name) && p2o_declare_range(s->prog, s->bind, str_of(pins[i]));
        any = true;
    }
    if (!freed || !any)
        return ok;
    s->freed.n = 0;             /* numbers again: what the file says of the old ones is past */
    return ok && p2o_infer(s->prog, s->bind);
}

/* One capture, whose calls may be changed as they are, those of bodies included. */
static void line_up_nodes(const OnnxSettling *s, Lineup *l)
{
    for (size_t i = 0; i < s->calls.n; i++) {
        LinedCall row = { .call = &s->calls.at[i]->call };
        row.of[0] = row.call;
        VEC_PUSH(s->prog->arena, &l->calls, row);
    }
}

bool p2o_onnx_settle(OnnxModel *m, Program *p, Bindings *b, const char *const *pins, size_t npin)
{
    OnnxSettling *s = new_settling_of(m, p, b);
    find_freed(s);
    p2o_onnx_calls(s);
    share_hooks(m->graph, s->hooks);
    Program *programs[] = { p };
    Lineup   lineup = { .p = programs, .n = 1 };
    line_up_nodes(s, &lineup);
    return apply_pins(s, pins, npin, false) && p2o_settle(&lineup, b) && p2o_onnx_weigh(s) &&
           apply_pins(s, pins, npin, true) && write_sizes(s);
}

static bool is_free(OnnxModel *m, const char *name)
{
    if (!p2o_map_get(&m->taken, str_of(name)))
        return true;
    p2o_diag(m->diags, DIAG_MISUSE, 0, "the model has a value called '%s' already", name);
    return false;
}

static bool rename_value(OnnxModel *m, Value *v, const char *name)
{
    if (!name || same(v->name, name))
        return true;
    if (!is_free(m, name))
        return false;
    map_put(&m->taken, str_of(name), v);
    v->name = name;
    return true;
}

bool p2o_onnx_rename(OnnxModel *m, const char *const *inputs, size_t nin,
                     const char *const *outputs, size_t nout)
{
    bool ok = true;
    for (size_t i = 0; i < nin && i < m->graph->inputs.n; i++)
        ok &= rename_value(m, m->graph->inputs.at[i], inputs[i]);
    for (size_t i = 0; i < nout && i < m->graph->outputs.n; i++) {
        Value *v = m->graph->outputs.at[i];
        if (!v->def && outputs[i] && !same(v->name, outputs[i])) {
            p2o_diag(m->diags, DIAG_UNSUPPORTED, 0,
                     "output '%s' is an input or a weight and keeps its name", v->name);
            ok = false;
        } else {
            ok &= rename_value(m, v, outputs[i]);
        }
    }
    return ok;
}
