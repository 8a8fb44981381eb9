/* Each graph is gone through twice: first its ports and initializers, whose fields come after the
 * nodes in every writer's order, then its nodes. */
#include "onnx/onnx_model.h"

#include "base/num.h"
#include "onnx/onnx_ops.h"
#include "onnx/onnx_proto.h"

enum { MOST_NESTED = 32, MOST_DECODED = 1 << 16 };

typedef struct Loader {
    ProtoWalk  proto;
    OnnxModel *model;
    bool       reported;                /* the diagnostic is out already */
} Loader;

static void spoil_with(Loader *l, const char *what, const char *name)
{
    p2o_proto_spoil(&l->proto, p2o_printf(l->model->arena, what, name));
}

static bool is_text_field(const PbField *f, uint32_t number)
{
    return f->number == number && f->wire == PB_BYTES;
}

typedef struct Numbers {
    VEC(int64_t) at;
} Numbers;

/* A repeated integer, packed or not. */
static void read_integers(Loader *l, const PbReader *r, const PbField *f, Numbers *out)
{
    Arena *a = l->model->arena;
    if (f->wire == PB_VARINT) {
        VEC_PUSH(a, &out->at, (int64_t)f->value);
        return;
    }
    PbReader in = p2o_proto_enter(&l->proto, r, f);
    while (pb_more(&in))
        VEC_PUSH(a, &out->at, (int64_t)pb_varint(&in));
    p2o_proto_leave(&l->proto, &in);
}

typedef struct Stored {                 /* where a tensor's elements are */
    uint32_t field;                     /* the last that holds any; 0: none */
    int      nfield;                    /* how many there were */
    uint64_t at, nbytes;
    bool     external;
    const char *location;
    int64_t  offset, length;            /* -1: to the end */
} Stored;

static Source *data_file(Loader *l, const char *location)
{
    OnnxModel  *m = l->model;
    void      **slot = p2o_map_slot(&m->sources, str_of(location));
    const char *path = p2o_source_path(m->source), *slash = path ? strrchr(path, '/') : NULL;
    if (*slot)
        return *slot;
    if (!path || location[0] == '/' || strstr(location, "..") || !*location) {
        spoil_with(l, path ? "weights lie outside of the model's folder: %s"
                   : "weights lie in %s, which a model without a path cannot reach", location);
        return NULL;
    }
    int folder = slash ? (int)(slash - path + 1) : 0;
    *slot = p2o_source_open(m->diags, p2o_printf(m->arena, "%.*s%s", folder, path, location));
    if (!*slot) {
        l->reported = true;
        p2o_proto_spoil(&l->proto, "its weights cannot be read");
    }
    return *slot;
}

static Tensor *view_of(Loader *l, const Tensor *type, Source *s, uint64_t at, uint64_t nbytes)
{
    Arena   *a = l->model->arena;
    Storage *storage = NEW(a, Storage);
    Tensor  *t = NEW(a, Tensor);
    int64_t *strides = NEW_N(a, int64_t, (size_t)type->rank + 1), step = 1;
    *storage = (Storage){ .source = s, .offset = at, .nbytes = nbytes };
    *t = *type;
    t->storage = storage;
    for (int i = type->rank - 1; i >= 0; i--) {
        strides[i] = step;
        if (nbytes)                     /* else one size is 0 and the others may be anything */
            step *= type->sizes[i];
    }
    t->strides = strides;
    return t;
}

/* Numbers that the file keeps as varints: integers, or the bits of small floats. */
static Tensor *decoded(Loader *l, const Tensor *type, uint64_t nelem, const Stored *st)
{
    size_t   item = p2o_dtype_bytes(type->dtype);
    uint8_t *bytes = p2o_alloc(l->model->arena, (size_t)nelem * item + 1);
    PbReader r = pb_reader(l->model->source, st->at, st->nbytes);
    for (uint64_t i = 0; i < nelem; i++) {
        uint64_t v = pb_varint(&r);
        for (size_t k = 0; k < item; k++)
            bytes[i * item + k] = (uint8_t)(v >> 8 * k);
    }
    if (r.failed || pb_more(&r))
        p2o_proto_spoil(&l->proto, "a tensor has another number of elements than its shape says");
    return p2o_tensor_make(l->model->arena, type->dtype, type->rank, type->sizes, bytes);
}

/* The tensor over its bytes; NULL where they cannot be viewed, which is no error. */
static Tensor *stored_tensor(Loader *l, const Tensor *type, const Stored *st)
{
    uint64_t nelem, nbytes, item = p2o_dtype_bytes(type->dtype);
    Source  *s = l->model->source;
    uint64_t at = st->at, have = st->nbytes;
    if (!item)
        return NULL;
    if (!p2o_tensor_nelem(type, &nelem) || !mul_u64(nelem, item, &nbytes)) {
        p2o_proto_spoil(&l->proto, "a tensor's size overflows");
        return NULL;
    }
    if (st->external) {
        s = data_file(l, st->location);
        if (!s || st->offset < 0)
            return NULL;
        at = (uint64_t)st->offset;
        have = st->length >= 0 ? (uint64_t)st->length : nbytes;
        if (have > p2o_source_size(s) || at > p2o_source_size(s) - have) {
            spoil_with(l, "weights lie past the end of %s", st->location);
            return NULL;
        }
    } else if (st->nfield > 1) {
        return NULL;                    /* not packed: legal, and not looked at */
    } else if (st->field == TENSOR_INT64S || st->field == TENSOR_INT32S ||
               st->field == TENSOR_UINT64S) {
        return nelem <= MOST_DECODED ? decoded(l, type, nelem, st) : NULL;
    } else if ((st->field == TENSOR_FLOATS && type->dtype != DT_F32) ||
               (st->field == TENSOR_DOUBLES && type->dtype != DT_F64)) {
        return NULL;
    }
    if (have != nbytes) {
        p2o_proto_spoil(&l->proto, "a tensor has another number of bytes than its shape says");
        return NULL;
    }
    return view_of(l, type, s, at, nbytes);
}

static void read_external(Loader *l, PbReader r, Stored *st)
{
    OnnxMeta entry = p2o_proto_pair(&l->proto, r);
    bool     ok = true;
    if (same(entry.key, "location"))
        st->location = entry.value;
    else if (same(entry.key, "offset"))
        ok = p2o_parse_i64(str_of(entry.value), &st->offset) && st->offset >= 0;
    else if (same(entry.key, "length"))
        ok = p2o_parse_i64(str_of(entry.value), &st->length) && st->length >= 0;
    if (!ok)
        p2o_proto_spoil(&l->proto, "external data has an offset or a length that is no number");
}

/* *type has the dtype and sizes, whatever the bytes. */
static Tensor *load_tensor(Loader *l, PbReader r, const char **name, Tensor *type)
{
    Numbers dims = { 0 };
    Stored  st = { .length = -1, .location = "" };
    PbField f;
    *type = (Tensor){ 0 };
    *name = "";
    while (pb_next(&r, &f)) {
        switch (f.number) {
        case TENSOR_DIMS: read_integers(l, &r, &f, &dims); break;
        case TENSOR_TYPE:
            type->dtype = f.value > 1000 ? DT_NONE : p2o_dtype_from_onnx((long)f.value);
            break;
        case TENSOR_NAME: *name = p2o_proto_text(&l->proto, &r, &f); break;
        case TENSOR_EXTERNAL: read_external(l, p2o_proto_enter(&l->proto, &r, &f), &st); break;
        case TENSOR_LOCATION: st.external = f.value == LOCATION_EXTERNAL; break;
        case TENSOR_RAW: case TENSOR_FLOATS: case TENSOR_DOUBLES: case TENSOR_INT32S:
        case TENSOR_INT64S: case TENSOR_UINT64S:
            st.nfield += f.wire == PB_BYTES ? 1 : 2;
            st.field = f.number;
            st.at = f.at;
            st.nbytes = f.nbytes;
            break;
        }
    }
    p2o_proto_leave(&l->proto, &r);
    if (dims.at.n > MAX_RANK)
        p2o_proto_spoil(&l->proto, "a tensor has too many axes");
    for (size_t i = 0; i < dims.at.n; i++)
        if (dims.at.at[i] < 0)
            p2o_proto_spoil(&l->proto, "a tensor has a negative size");
    type->rank = (int)dims.at.n;
    type->sizes = dims.at.at;
    if (l->proto.bad)
        return NULL;
    Tensor     *t = stored_tensor(l, type, &st);
    const char *why;
    if (t && !p2o_tensor_check(t, &why))
        p2o_proto_spoil(&l->proto, why);
    return l->proto.bad ? NULL : t;
}

/* A value that the graph defines under this name. */
static Value *define_value(Loader *l, OnnxBody *b, const char *name)
{
    void **slot = p2o_map_slot(&b->values, str_of(name));
    if (*slot || !*name) {
        spoil_with(l, *name ? "'%s' is defined twice" : "a value has no name%s", name);
        return *slot ? *slot : p2o_graph_value(b->graph);
    }
    Value *v = p2o_graph_value(b->graph);
    v->name = name;
    *slot = v;
    map_put(&l->model->taken, str_of(name), v);
    return v;
}

static void type_from_sizes(Graph *g, Value *v, const Tensor *type)
{
    Dim *at = NEW_N(g->arena, Dim, (size_t)type->rank + 1);
    for (int i = 0; i < type->rank; i++)
        at[i] = p2o_dim_int(g->dims, type->sizes[i]);
    v->dtype = type->dtype;
    v->shape = (Shape){ type->rank, at };
}

/* An initializer that is listed as an input too is a default that the caller may replace, since IR
 * 4: what it holds is then not known. */
static void load_init(Loader *l, OnnxBody *b, PbReader r, const Map *inputs)
{
    const char *name;
    Tensor      type, *t = load_tensor(l, r, &name, &type);
    if (l->proto.bad)
        return;
    Value *v = define_value(l, b, name);
    VEC_PUSH(b->graph->arena, &b->graph->inits, v);
    bool fixed = l->model->ir_version < 4 || !p2o_map_get(inputs, str_of(name));
    v->tensor = fixed ? t : NULL;
    if (v->tensor)
        p2o_onnx_type_constant(b->graph, v, v->tensor);
    else
        type_from_sizes(b->graph, v, &type);
}

static void load_sparse(Loader *l, OnnxBody *b, PbReader r)
{
    const char *name = "", *ignored;
    Tensor      type = { 0 }, part;
    Numbers     dims = { 0 };
    PbField     f;
    while (pb_next(&r, &f)) {
        if (f.number == SPARSE_DIMS)
            read_integers(l, &r, &f, &dims);
        else if (f.number == SPARSE_VALUES || f.number == SPARSE_INDICES)
            load_tensor(l, p2o_proto_enter(&l->proto, &r, &f),
                        f.number == SPARSE_VALUES ? &name : &ignored, &part);
        if (f.number == SPARSE_VALUES)
            type.dtype = part.dtype;
    }
    p2o_proto_leave(&l->proto, &r);
    if (dims.at.n > MAX_RANK)
        p2o_proto_spoil(&l->proto, "a tensor has too many axes");
    if (l->proto.bad)
        return;
    type.rank = (int)dims.at.n;
    type.sizes = dims.at.at;
    Value *v = define_value(l, b, name);
    type_from_sizes(b->graph, v, &type);
}

typedef struct KnownSymbols {
    const OnnxModel *model;
    bool             all;
} KnownSymbols;

static void check_known(void *user, Dim sym)
{
    KnownSymbols *k = user;
    k->all &= p2o_map_get(&k->model->params, str_of(p2o_dim_name(sym))) != NULL;
}

/* An expression of names that the file has elsewhere is one; any other text only stands for
 * itself. */
static Dim named_dim(OnnxModel *m, const char *text)
{
    void **slot = p2o_map_slot(&m->params, str_of(text));
    if (*slot)
        return ((DimName *)*slot)->dim;
    const char  *error = NULL;
    KnownSymbols k = { .model = m, .all = true };
    DimName     *n = NEW(m->arena, DimName);
    n->name = text;
    if (p2o_dim_name_ok(str_of(text))) {
        n->dim = p2o_dim_sym(m->dims, text);
    } else {
        n->dim = p2o_dim_parse(m->dims, str_of(text), &error);
        if (n->dim)
            p2o_dim_symbols(n->dim, check_known, &k);
        if (!n->dim || !k.all || p2o_dim_is_int(n->dim, NULL))
            n->dim = p2o_dim_fresh(m->dims, "dim");
    }
    *p2o_map_slot(&m->params, str_of(text)) = n;
    return n->dim;
}

const char *p2o_onnx_dim_name(const OnnxModel *m, Dim d)
{
    for (size_t i = 0; i < m->params.n; i++) {
        const DimName *n = m->params.at[i].value;
        if (n && n->dim == d)
            return n->name;
    }
    return NULL;
}

static Shape stated_shape(OnnxModel *m, const OnnxPort *port, bool is_input)
{
    Dim *at = NEW_N(m->arena, Dim, (size_t)port->rank + 1);
    for (int i = 0; i < port->rank; i++) {
        if (port->sizes[i] >= 0)
            at[i] = p2o_dim_int(m->dims, port->sizes[i]);
        else if (*port->dims[i])
            at[i] = named_dim(m, port->dims[i]);
        else                            /* not said: another size wherever it stands */
            at[i] = p2o_dim_fresh(m->dims, !is_input ? DATA_STEM
                                           : p2o_printf(m->arena, "%s_%d", port->name, i));
    }
    return (Shape){ port->rank, at };
}

bool p2o_onnx_stated(OnnxBody *b, const char *name, DType *t, Shape *s)
{
    const OnnxPort *port = p2o_map_get(&b->infos, str_of(name));
    if (!port || !same(port->kind, "tensor") || port->dtype == DT_NONE || port->rank < 0 ||
        port->rank > MAX_RANK)
        return false;
    *t = port->dtype;
    *s = stated_shape(b->model, port, false);
    return true;
}

static OnnxPort *load_port(Loader *l, OnnxBody *b, PbReader r)
{
    OnnxPort *port = NEW(l->model->arena, OnnxPort);
    *port = p2o_proto_port(&l->proto, r);
    if (port->rank > MAX_RANK)
        p2o_proto_spoil(&l->proto, "a shape has too many axes");
    if (!l->proto.bad)
        map_put(&b->infos, str_of(port->name), port);
    return port;
}

static void load_ports(Loader *l, OnnxBody *b, PbReader r)
{
    Graph              *g = b->graph;
    Map                 names = { .arena = g->arena };
    VEC(OnnxPort *)     inputs = { 0 };
    PbReader            again = r;
    PbField             f;
    while (!l->proto.bad && pb_next(&r, &f)) {
        if (f.number == GRAPH_INPUT) {
            OnnxPort *port = load_port(l, b, p2o_proto_enter(&l->proto, &r, &f));
            VEC_PUSH(g->arena, &inputs, port);
            map_put(&names, str_of(port->name), port);
        } else if (f.number == GRAPH_OUTPUT || f.number == GRAPH_VALUE_INFO) {
            load_port(l, b, p2o_proto_enter(&l->proto, &r, &f));
        } else if (f.number == GRAPH_NAME) {
            g->name = p2o_proto_text(&l->proto, &r, &f);
        }
    }
    p2o_proto_leave(&l->proto, &r);
    while (!l->proto.bad && pb_next(&again, &f)) {
        if (f.number == GRAPH_INIT)
            load_init(l, b, p2o_proto_enter(&l->proto, &again, &f), &names);
        else if (f.number == GRAPH_SPARSE)
            load_sparse(l, b, p2o_proto_enter(&l->proto, &again, &f));
    }
    for (size_t i = 0; i < inputs.n && !l->proto.bad; i++) {
        OnnxPort *port = inputs.at[i];
        if (p2o_map_get(&b->values, str_of(port->name)))
            continue;
        Value *v = define_value(l, b, port->name);
        VEC_PUSH(g->arena, &g->inputs, v);
        if (same(port->kind, "tensor") && port->rank >= 0) {
            v->dtype = port->dtype;
            v->shape = stated_shape(l->model, port, !g->parent);
        }
    }
}

static Value *find_value(const Graph *g, const char *name)
{
    for (; g; g = g->parent) {
        Value *v = p2o_map_get(&g->file->values, str_of(name));
        if (v)
            return v;
    }
    return NULL;
}

static Graph *load_graph(Loader *l, PbReader r, Graph *parent, int depth);

static const char *load_string(Loader *l, const PbReader *r, const PbField *f)
{
    ProtoWalk loose = { .arena = l->proto.arena };          /* contents, not a name */
    const char *s = p2o_proto_text(&loose, r, f);
    if (loose.bad)
        p2o_proto_spoil(&l->proto, loose.why);
    return s;
}

static void load_floats(Loader *l, const PbReader *r, const PbField *f, Attr *a, size_t *cap)
{
    PbReader in = f->wire == PB_BYTES ? p2o_proto_enter(&l->proto, r, f) : (PbReader){ 0 };
    bool     one = f->wire == PB_FIXED32;
    while (one || pb_more(&in)) {
        uint32_t bits = one ? (uint32_t)f->value : (uint32_t)pb_fixed(&in, 4);
        float    v;
        memcpy(&v, &bits, sizeof v);
        if (a->n == *cap) {
            size_t more = *cap ? *cap * 2 : 8;
            a->floats = p2o_grow(l->model->arena, (void *)(uintptr_t)a->floats, *cap * sizeof v,
                                 more * sizeof v);
            *cap = more;
        }
        ((float *)(uintptr_t)a->floats)[a->n++] = v;
        if (one)
            return;
    }
    p2o_proto_leave(&l->proto, &in);
}

/* false: a kind of attribute that rules never ask for; *graphs when it holds graphs. */
static bool load_attribute(Loader *l, PbReader r, Graph *g, int depth, Attr *a, bool *graphs)
{
    Numbers           ints = { 0 };
    Attr              floats = { 0 };
    size_t            cap = 0;
    VEC(const char *) strs = { 0 };
    float             number = 0;
    int64_t           whole = 0;
    const char       *text = "", *ignored;
    Tensor           *tensor = NULL, type;
    Graph            *body = NULL;
    uint64_t          kind = 0;
    PbField           f;
    a->name = "";
    while (!l->proto.bad && pb_next(&r, &f)) {
        uint32_t bits = (uint32_t)f.value;
        switch (f.number) {
        case A_NAME: a->name = p2o_proto_text(&l->proto, &r, &f); break;
        case A_FLOAT:
            memcpy(&number, &bits, sizeof number);
            kind = kind ? kind : A_KIND_FLOAT;
            break;
        case A_INT: whole = (int64_t)f.value; kind = kind ? kind : A_KIND_INT; break;
        case A_STRING: text = load_string(l, &r, &f); kind = kind ? kind : A_KIND_STRING; break;
        case A_TENSOR:
            tensor = load_tensor(l, p2o_proto_enter(&l->proto, &r, &f), &ignored, &type);
            kind = kind ? kind : A_KIND_TENSOR;
            break;
        case A_GRAPH:
            if (body)
                p2o_proto_spoil(&l->proto, "an attribute holds two graphs");
            body = load_graph(l, p2o_proto_enter(&l->proto, &r, &f), g, depth + 1);
            kind = kind ? kind : A_KIND_GRAPH;
            break;
        case A_FLOATS:
            load_floats(l, &r, &f, &floats, &cap);
            kind = kind ? kind : A_KIND_FLOATS;
            break;
        case A_INTS: read_integers(l, &r, &f, &ints); kind = kind ? kind : A_KIND_INTS; break;
        case A_STRINGS:
            VEC_PUSH(l->model->arena, &strs, load_string(l, &r, &f));
            kind = kind ? kind : A_KIND_STRINGS;
            break;
        case A_GRAPHS: *graphs = true; break;
        case A_TYPE: kind = f.value; break;
        }
    }
    p2o_proto_leave(&l->proto, &r);
    if (body && kind != A_KIND_GRAPH)
        p2o_proto_spoil(&l->proto, "an attribute holds a graph and says that it does not");
    const char *name = a->name;
    switch (kind) {
    case A_KIND_FLOAT: *a = (Attr){ .name = name, .kind = ATTR_FLOAT, .f = number }; return true;
    case A_KIND_INT: *a = attr_int(name, whole); return true;
    case A_KIND_STRING: *a = attr_str(name, text); return true;
    case A_KIND_TENSOR: *a = attr_tensor(name, tensor); return tensor != NULL;
    case A_KIND_GRAPH: *a = attr_graph(name, body); return body != NULL;
    case A_KIND_FLOATS: *a = attr_floats(name, floats.floats, floats.n); return true;
    case A_KIND_INTS: *a = attr_ints(name, ints.at.at, ints.at.n); return true;
    case A_KIND_STRINGS: *a = attr_strs(name, strs.at, strs.n); return true;
    default: return false;
    }
}

/* The attribute of an old form as the input that it is today. */
static void attribute_to_input(OnnxBody *b, Node *n, const char *name, int slot)
{
    const Attr *a = p2o_node_attr(n, name);
    if (!a || a->kind != ATTR_INTS || n->nin > slot)
        return;
    Value **in = NEW_N(b->graph->arena, Value *, (size_t)slot + 2);
    for (int i = 0; i < n->nin; i++)
        in[i] = n->in[i];
    in[slot] = p2o_graph_value(b->graph);
    in[slot]->tensor = p2o_tensor_ints(b->graph->arena, 1, a->ints, a->n);
    p2o_onnx_type_constant(b->graph, in[slot], in[slot]->tensor);
    n->in = in;
    n->nin = slot + 1;
}

static void modernise(OnnxBody *b, Node *n)
{
    int opset = b->graph->opset;
    switch (n->op) {
    case ONNX_Squeeze: case ONNX_Unsqueeze:
        if (opset < 13)
            attribute_to_input(b, n, "axes", 1);
        break;
    case ONNX_Split:
        if (opset < 13)
            attribute_to_input(b, n, "split", 1);
        break;
    case ONNX_Slice:
        if (opset < 10) {
            attribute_to_input(b, n, "starts", 1);
            attribute_to_input(b, n, "ends", 2);
            attribute_to_input(b, n, "axes", 3);
        }
        break;
    case ONNX_Pad:
        if (opset < 11)
            attribute_to_input(b, n, "pads", 1);
        break;
    default: break;
    }
}

static Value *used_value(Loader *l, Graph *g, const char *name)
{
    Value *v = *name ? find_value(g, name) : NULL;
    if (*name && !v)
        spoil_with(l, "'%s' is used before it is defined", name);
    return v;
}

/* Only for messages and as evidence: what is broken there spoils nothing. */
static void load_origin(Loader *l, PbReader r, OnnxOrigin *o)
{
    ProtoWalk loose = { .arena = l->proto.arena, .lines = true };
    OnnxMeta  entry = p2o_proto_pair(&loose, r);
    if (!loose.bad)
        p2o_origin_take(o, entry);
}

static void load_node(Loader *l, OnnxBody *b, PbReader r, int depth)
{
    Graph             *g = b->graph;
    VEC(Value *)       in = { 0 };
    VEC(const char *)  out = { 0 };
    VEC(Attr)          attrs = { 0 };
    OnnxNode           x = { 0 };
    OnnxOperator      *own = NEW(g->arena, OnnxOperator);
    const char        *name = NULL;
    PbField            f;
    own->domain = own->name = "";
    while (!l->proto.bad && pb_next(&r, &f)) {
        Attr a;
        switch (f.number) {
        case NODE_INPUT:
            VEC_PUSH(g->arena, &in, used_value(l, g, p2o_proto_text(&l->proto, &r, &f)));
            break;
        case NODE_OUTPUT: VEC_PUSH(g->arena, &out, p2o_proto_text(&l->proto, &r, &f)); break;
        case NODE_NAME: name = load_string(l, &r, &f); break;
        case NODE_OP: own->name = p2o_proto_text(&l->proto, &r, &f); break;
        case NODE_DOMAIN: own->domain = p2o_proto_text(&l->proto, &r, &f); break;
        case NODE_ATTR:
            if (load_attribute(l, p2o_proto_enter(&l->proto, &r, &f), g, depth, &a,
                               &x.hides_bodies))
                VEC_PUSH(g->arena, &attrs, a);
            break;
        case NODE_METADATA: load_origin(l, p2o_proto_enter(&l->proto, &r, &f), &x.origin); break;
        }
    }
    p2o_proto_leave(&l->proto, &r);
    if (x.origin.place.file.n)
        x.loc = p2o_place_add(l->model->diags, x.origin.place);
    if (!*own->name)
        p2o_proto_spoil(&l->proto, "a node has no operator");
    if (in.n > INT16_MAX || out.n > INT16_MAX)
        p2o_proto_spoil(&l->proto, "a node has too many inputs or outputs");
    if (l->proto.bad)
        return;
    if (same(own->domain, "ai.onnx"))
        own->domain = "";
    const char *key = p2o_printf(g->arena, "%s\n%s", own->domain, own->name);
    bool   is_function = p2o_map_get(&l->model->functions, str_of(key)) != NULL;
    OnnxOp op = *own->domain || is_function ? ONNX_NONE : p2o_onnx_find(str_of(own->name));
    Node  *n = x.node = p2o_graph_append(g, op, (int)in.n, in.at, (int)attrs.n, attrs.at,
                                         (int)out.n);
    n->own = op == ONNX_NONE ? own : NULL;
    x.nin = n->nin;
    n->name = name;
    for (size_t i = 0; i < out.n; i++) {
        Value *v = n->out[i];
        if (!*out.at[i])
            continue;                   /* an output that nobody wants */
        v->name = out.at[i];
        void **slot = p2o_map_slot(&b->values, str_of(v->name));
        if (*slot)
            spoil_with(l, "'%s' is defined twice", v->name);
        *slot = v;
        map_put(&l->model->taken, str_of(v->name), v);
    }
    const Attr *constant = op == ONNX_Constant ? p2o_node_attr(n, "value") : NULL;
    if (constant && constant->kind == ATTR_TENSOR && n->nout == 1)
        n->out[0]->tensor = constant->tensor;
    modernise(b, n);
    VEC_PUSH(g->arena, &b->nodes, x);
}

static void load_outputs(Loader *l, OnnxBody *b, PbReader r)
{
    PbField f;
    while (!l->proto.bad && pb_next(&r, &f)) {
        if (f.number != GRAPH_OUTPUT)
            continue;
        OnnxPort port = p2o_proto_port(&l->proto, p2o_proto_enter(&l->proto, &r, &f));
        Value   *v = used_value(l, b->graph, port.name);
        if (!v)
            spoil_with(l, "output '%s' is not computed", port.name);
        if (l->proto.bad)
            return;
        VEC_PUSH(b->graph->arena, &b->graph->outputs, v);
        v->is_output |= v->graph == b->graph;
    }
}

static Graph *load_graph(Loader *l, PbReader r, Graph *parent, int depth)
{
    OnnxModel *m = l->model;
    if (depth > MOST_NESTED) {
        p2o_proto_spoil(&l->proto, "graphs are nested too deep");
        return NULL;
    }
    Graph    *g = p2o_graph_new(m->arena, m->diags, m->dims, parent ? parent->opset : 1, parent);
    OnnxBody *b = NEW(m->arena, OnnxBody);
    *b = (OnnxBody){ .model = m, .graph = g, .values = { .arena = m->arena },
                     .infos = { .arena = m->arena } };
    g->file = b;
    if (!parent) {
        g->opset = m->graph->opset;
        m->graph = g;
    }
    load_ports(l, b, r);
    PbReader nodes = r;
    PbField  f;
    while (!l->proto.bad && pb_next(&nodes, &f))
        if (f.number == GRAPH_NODE)
            load_node(l, b, p2o_proto_enter(&l->proto, &nodes, &f), depth);
    p2o_proto_leave(&l->proto, &nodes);
    load_outputs(l, b, r);
    return g;
}

static void load_function(Loader *l, PbReader r)
{
    const char *name = "", *domain = "";
    PbField     f;
    while (pb_next(&r, &f)) {
        if (is_text_field(&f, FUNCTION_NAME))
            name = p2o_proto_text(&l->proto, &r, &f);
        else if (is_text_field(&f, FUNCTION_DOMAIN))
            domain = p2o_proto_text(&l->proto, &r, &f);
    }
    p2o_proto_leave(&l->proto, &r);
    map_put(&l->model->functions, str_of(p2o_printf(l->model->arena, "%s\n%s", domain, name)), l);
}

/* Everything but the graph, which needs the opset and the functions. */
static bool load_head(Loader *l, PbReader r, PbReader *graph)
{
    PbField f;
    bool    found = false;
    while (!l->proto.bad && pb_next(&r, &f)) {
        if (f.number == MODEL_IR_VERSION) {
            l->model->ir_version = (int64_t)f.value;
        } else if (f.number == MODEL_OPSET) {
            OnnxImport m = p2o_proto_import(&l->proto, p2o_proto_enter(&l->proto, &r, &f));
            if (same(m.domain, "") || same(m.domain, "ai.onnx"))
                l->model->graph->opset = m.version > 0 && m.version < 1000 ? (int)m.version : 1;
        } else if (f.number == MODEL_FUNCTION) {
            load_function(l, p2o_proto_enter(&l->proto, &r, &f));
        } else if (f.number == MODEL_GRAPH) {
            if (found)
                p2o_proto_spoil(&l->proto, "two graphs");
            *graph = p2o_proto_enter(&l->proto, &r, &f);
            found = true;
        }
    }
    p2o_proto_leave(&l->proto, &r);
    if (!found)
        p2o_proto_spoil(&l->proto, "no graph in it");
    return !l->proto.bad;
}

OnnxModel *p2o_onnx_load(Diags *d, Dims *t, Source *s)
{
    Arena     *a = p2o_diags_arena(d);
    OnnxModel *m = NEW(a, OnnxModel);
    Loader     l = { .proto = { .arena = a, .exact = true }, .model = m };
    PbReader   graph = { 0 };
    *m = (OnnxModel){ .arena = a, .diags = d, .dims = t, .source = s,
                      .graph = p2o_graph_new(a, d, t, 1, NULL) };
    m->functions.arena = m->taken.arena = m->params.arena = m->sources.arena = a;
    if (load_head(&l, pb_reader(s, 0, p2o_source_size(s)), &graph))
        load_graph(&l, graph, NULL, 0);
    if (!l.proto.bad)
        return m;
    if (!l.reported)
        p2o_diag(d, DIAG_BAD_FILE, 0, "not a readable onnx model: %s", l.proto.why);
    return NULL;
}
