/* Field numbers are those of onnx.proto3.  Graphs inside attributes are not descended into but put
 * on a list, so nesting costs no stack, and each byte of the file is looked at once at most. */
#include "onnx/onnx_read.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/vec.h"
#include "format/pb.h"

enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7,
       MODEL_OPSET_IMPORT = 8, MODEL_METADATA = 14, MODEL_FUNCTION = 25 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12,
       GRAPH_SPARSE_INITIALIZER = 15 };
enum { FUNCTION_NODE = 7 };
enum { NODE_OP_TYPE = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum { ATTR_FIELD_GRAPH = 6, ATTR_FIELD_GRAPHS = 11 };
enum { TENSOR_DIMS = 1, TENSOR_DATA_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW_DATA = 9,
       TENSOR_EXTERNAL_DATA = 13, TENSOR_DATA_LOCATION = 14 };
enum { SPARSE_VALUES = 1, SPARSE_INDICES = 2 };

typedef struct Body {
    PbReader reader;
    uint32_t node_field;                /* graphs and functions number their nodes differently */
} Body;

typedef struct OnnxWalk {
    Arena   *arena;
    OnnxFile file;
    bool     bad;
    bool     has_graph;
    const char *why;
    Map      op_index;                  /* "domain\nname" -> index + 1 in ops */
    Map      init_names;                /* of the outermost graph */
    VEC(OnnxImport)  imports;
    VEC(OnnxPort)    inputs, outputs;
    VEC(OnnxMeta)    meta;
    VEC(OnnxOpCount) ops;
    VEC(Body)        todo;
} OnnxWalk;

static void spoil(OnnxWalk *w, const char *why)
{
    if (!w->why)
        w->why = why;
    w->bad = true;
}

/* The field's text; control characters would reach a terminal. */
static const char *field_text(OnnxWalk *w, const PbReader *r, const PbField *f)
{
    if (f->wire != PB_BYTES || f->nbytes > SIZE_MAX - 1) {
        spoil(w, "a text field is not text");
        return "";
    }
    char *z = p2o_alloc(w->arena, (size_t)f->nbytes + 1);
    if (!p2o_source_read(r->source, f->at, z, (size_t)f->nbytes)) {
        spoil(w, "unreadable");
        return "";
    }
    for (size_t i = 0; i < f->nbytes; i++)
        if ((unsigned char)z[i] < 0x20 || z[i] == 0x7F)
            z[i] = '?';
    return z;
}

static PbReader enter(OnnxWalk *w, const PbReader *r, const PbField *f)
{
    if (f->wire != PB_BYTES)
        spoil(w, "a message field holds a number");
    return pb_inside(r, f);
}

static void leave(OnnxWalk *w, const PbReader *r)
{
    if (r->failed)
        spoil(w, "malformed or cut off protobuf");
}

/* A message of two texts, as StringStringEntryProto is. */
static OnnxMeta read_pair(OnnxWalk *w, PbReader r)
{
    OnnxMeta m = { "", "" };
    PbField  f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            m.key = field_text(w, &r, &f);
        else if (f.number == 2)
            m.value = field_text(w, &r, &f);
    }
    leave(w, &r);
    return m;
}

static OnnxImport read_import(OnnxWalk *w, PbReader r)
{
    OnnxImport m = { "", 0 };
    PbField    f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            m.domain = field_text(w, &r, &f);
        else if (f.number == 2)
            m.version = (int64_t)f.value;
    }
    leave(w, &r);
    return m;
}

static void read_dim(OnnxWalk *w, PbReader r, int64_t *size, const char **name)
{
    PbField f;
    *size = -1;
    *name = "";
    while (pb_next(&r, &f)) {
        if (f.number == 1) {
            *size = (int64_t)f.value < 0 ? -1 : (int64_t)f.value;
            *name = "";
        } else if (f.number == 2) {
            *size = -1;
            *name = field_text(w, &r, &f);
        }
    }
    leave(w, &r);
}

static void read_port_shape(OnnxWalk *w, PbReader r, OnnxPort *port)
{
    VEC(int64_t)      sizes = { 0 };
    VEC(const char *) names = { 0 };
    PbField           f;
    while (pb_next(&r, &f)) {
        int64_t     size;
        const char *name;
        if (f.number != 1)
            continue;
        read_dim(w, enter(w, &r, &f), &size, &name);
        VEC_PUSH(w->arena, &sizes, size);
        VEC_PUSH(w->arena, &names, name);
    }
    leave(w, &r);
    if (sizes.n > 1000)                 /* far past anything a runtime accepts; keeps rank an int */
        spoil(w, "a shape has more than 1000 axes");
    port->rank = sizes.n > 1000 ? 0 : (int)sizes.n;
    port->sizes = sizes.at;
    port->dims = names.at;
}

static void read_tensor_type(OnnxWalk *w, PbReader r, OnnxPort *port)
{
    PbField f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            port->dtype = f.value > 1000 ? DT_NONE : p2o_dtype_from_onnx((long)f.value);
        else if (f.number == 2)
            read_port_shape(w, enter(w, &r, &f), port);
    }
    leave(w, &r);
}

static void read_type(OnnxWalk *w, PbReader r, OnnxPort *port)
{
    static const char *const kinds[] = { [1] = "tensor", [4] = "sequence", [5] = "map",
                                         [7] = "opaque", [8] = "sparse tensor", [9] = "optional" };
    PbField f;
    while (pb_next(&r, &f)) {
        if (f.number >= COUNT_OF(kinds) || !kinds[f.number])
            continue;
        port->kind = kinds[f.number];
        if (f.number == 1)
            read_tensor_type(w, enter(w, &r, &f), port);
    }
    leave(w, &r);
}

static OnnxPort read_port(OnnxWalk *w, PbReader r)
{
    OnnxPort port = { .name = "", .kind = "unknown", .rank = -1 };
    PbField  f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            port.name = field_text(w, &r, &f);
        else if (f.number == 2)
            read_type(w, enter(w, &r, &f), &port);
    }
    leave(w, &r);
    return port;
}

typedef struct TensorFacts {
    const char *name;
    DType       dtype;
    uint64_t    nelem, nbytes;
    bool        empty, overflow;        /* a size is 0; the product of the others does not fit */
    bool        external;
} TensorFacts;

static void times_dim(OnnxWalk *w, TensorFacts *t, uint64_t dim)
{
    if ((int64_t)dim < 0)
        spoil(w, "an initializer has a negative size");
    t->empty |= dim == 0;
    t->overflow |= !mul_u64(t->nelem, dim, &t->nelem);
}

static TensorFacts read_tensor(OnnxWalk *w, PbReader r)
{
    TensorFacts t = { .name = "", .nelem = 1 };
    int64_t     length = -1;
    PbField     f;

    while (pb_next(&r, &f)) {
        if (f.number == TENSOR_DIMS && f.wire == PB_BYTES) {
            PbReader packed = pb_inside(&r, &f);
            while (pb_more(&packed))
                times_dim(w, &t, pb_varint(&packed));
            leave(w, &packed);
        } else if (f.number == TENSOR_DIMS) {
            times_dim(w, &t, f.value);
        } else if (f.number == TENSOR_DATA_TYPE) {
            t.dtype = f.value > 1000 ? DT_NONE : p2o_dtype_from_onnx((long)f.value);
        } else if (f.number == TENSOR_NAME) {
            t.name = field_text(w, &r, &f);
        } else if (f.number == TENSOR_RAW_DATA) {
            length = (int64_t)f.nbytes;
        } else if (f.number == TENSOR_EXTERNAL_DATA) {
            OnnxMeta entry = read_pair(w, enter(w, &r, &f));
            if (same(entry.key, "length") && !p2o_parse_i64(str_of(entry.value), &length))
                spoil(w, "external data has a length that is no number");
        } else if (f.number == TENSOR_DATA_LOCATION) {
            t.external = f.value == 1;
        }
    }
    leave(w, &r);
    t.nelem = t.empty ? 0 : t.nelem;
    if (length >= 0)
        t.nbytes = (uint64_t)length;
    else if ((t.overflow && !t.empty) || !mul_u64(t.nelem, p2o_dtype_bytes(t.dtype), &t.nbytes))
        spoil(w, "an initializer's size overflows");
    return t;
}

static void count_init(OnnxWalk *w, const TensorFacts *t)
{
    OnnxFile *o = &w->file;
    o->ninit++;
    o->nexternal += t->external;
    if (!add_u64(o->init_bytes, t->nbytes, &o->init_bytes) ||
        (t->external && !add_u64(o->external_bytes, t->nbytes, &o->external_bytes)))
        spoil(w, "the initializers' sizes overflow");
}

/* Values and indices count as one initializer, under the values' name. */
static TensorFacts read_sparse(OnnxWalk *w, PbReader r)
{
    TensorFacts t = { .name = "" };
    PbField     f;
    while (pb_next(&r, &f)) {
        if (f.number != SPARSE_VALUES && f.number != SPARSE_INDICES)
            continue;
        TensorFacts part = read_tensor(w, enter(w, &r, &f));
        t.name = f.number == SPARSE_VALUES ? part.name : t.name;
        t.external |= part.external;
        if (!add_u64(t.nbytes, part.nbytes, &t.nbytes))
            spoil(w, "an initializer's size overflows");
    }
    leave(w, &r);
    return t;
}

static void push_body(OnnxWalk *w, PbReader r, uint32_t node_field)
{
    VEC_PUSH(w->arena, &w->todo, (Body){ .reader = r, .node_field = node_field });
}

static void find_bodies(OnnxWalk *w, PbReader r)
{
    PbField f;
    while (pb_next(&r, &f))
        if (f.number == ATTR_FIELD_GRAPH || f.number == ATTR_FIELD_GRAPHS) {
            push_body(w, enter(w, &r, &f), GRAPH_NODE);
            w->file.nbody++;
        }
    leave(w, &r);
}

static void count_op(OnnxWalk *w, const char *domain, const char *name)
{
    if (same(domain, "ai.onnx"))
        domain = "";
    const char *key = p2o_printf(w->arena, "%s\n%s", domain, name);
    void      **slot = p2o_map_slot(&w->op_index, str_of(key));
    if (!*slot) {
        VEC_PUSH(w->arena, &w->ops, (OnnxOpCount){ .domain = domain, .name = name });
        *slot = (void *)(uintptr_t)w->ops.n;
    }
    w->ops.at[(uintptr_t)*slot - 1].n++;
    w->file.nnode++;
}

static void read_node(OnnxWalk *w, PbReader r)
{
    const char *domain = "", *name = "";
    PbField     f;
    while (pb_next(&r, &f)) {
        if (f.number == NODE_OP_TYPE)
            name = field_text(w, &r, &f);
        else if (f.number == NODE_DOMAIN)
            domain = field_text(w, &r, &f);
        else if (f.number == NODE_ATTRIBUTE)
            find_bodies(w, enter(w, &r, &f));
    }
    leave(w, &r);
    if (!*name)
        spoil(w, "a node has no operator");
    count_op(w, domain, name);
}

static void read_graph_field(OnnxWalk *w, const PbReader *r, const PbField *f, bool outermost)
{
    if (f->number == GRAPH_INITIALIZER || f->number == GRAPH_SPARSE_INITIALIZER) {
        PbReader    in = enter(w, r, f);
        TensorFacts t = f->number == GRAPH_INITIALIZER ? read_tensor(w, in) : read_sparse(w, in);
        count_init(w, &t);
        if (outermost)
            map_put(&w->init_names, str_of(t.name), w);
    } else if (outermost && f->number == GRAPH_NAME) {
        w->file.graph_name = field_text(w, r, f);
    } else if (outermost && f->number == GRAPH_INPUT) {
        VEC_PUSH(w->arena, &w->inputs, read_port(w, enter(w, r, f)));
    } else if (outermost && f->number == GRAPH_OUTPUT) {
        VEC_PUSH(w->arena, &w->outputs, read_port(w, enter(w, r, f)));
    }
}

static void read_body(OnnxWalk *w, Body b, bool outermost)
{
    PbField f;
    while (!w->bad && pb_next(&b.reader, &f)) {
        if (f.number == b.node_field)
            read_node(w, enter(w, &b.reader, &f));
        else if (b.node_field == GRAPH_NODE)
            read_graph_field(w, &b.reader, &f, outermost);
    }
    leave(w, &b.reader);
}

static void read_model_field(OnnxWalk *w, const PbReader *r, const PbField *f)
{
    switch (f->number) {
    case MODEL_IR_VERSION:
        w->file.ir_version = (int64_t)f->value;
        break;
    case MODEL_PRODUCER:
        w->file.producer = field_text(w, r, f);
        break;
    case MODEL_PRODUCER_VERSION:
        w->file.producer_version = field_text(w, r, f);
        break;
    case MODEL_OPSET_IMPORT:
        VEC_PUSH(w->arena, &w->imports, read_import(w, enter(w, r, f)));
        break;
    case MODEL_METADATA:
        VEC_PUSH(w->arena, &w->meta, read_pair(w, enter(w, r, f)));
        break;
    case MODEL_GRAPH:
        if (w->has_graph)
            spoil(w, "two graphs");
        w->has_graph = true;
        read_body(w, (Body){ .reader = enter(w, r, f), .node_field = GRAPH_NODE }, true);
        break;
    case MODEL_FUNCTION:
        push_body(w, enter(w, r, f), FUNCTION_NODE);
        w->file.nfunction++;
        break;
    }
}

static int commonest_first(const void *pa, const void *pb)
{
    const OnnxOpCount *a = pa, *b = pb;
    if (a->n != b->n)
        return a->n < b->n ? 1 : -1;
    int by_name = strcmp(a->name, b->name);
    return by_name ? by_name : strcmp(a->domain, b->domain);
}

/* Before IR version 4 initializers had to be listed as inputs too. */
static void drop_init_inputs(OnnxWalk *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->inputs.n; i++)
        if (!p2o_map_get(&w->init_names, str_of(w->inputs.at[i].name)))
            w->inputs.at[n++] = w->inputs.at[i];
    w->inputs.n = n;
}

const OnnxFile *p2o_onnx_read(Diags *d, Source *s)
{
    Arena    *a = p2o_diags_arena(d);
    OnnxWalk *w = NEW(a, OnnxWalk);
    PbReader  r = pb_reader(s, 0, p2o_source_size(s));
    PbField   f;

    w->arena = w->op_index.arena = w->init_names.arena = a;
    w->file.producer = w->file.producer_version = w->file.graph_name = "";
    while (!w->bad && pb_next(&r, &f))
        read_model_field(w, &r, &f);
    leave(w, &r);
    for (size_t i = 0; !w->bad && i < w->todo.n; i++)
        read_body(w, w->todo.at[i], false);
    if (!w->has_graph)
        spoil(w, "no graph in it");
    if (w->bad) {
        p2o_diag(d, DIAG_BAD_FILE, 0, "not a readable onnx model: %s", w->why);
        return NULL;
    }
    drop_init_inputs(w);
    if (w->ops.n)
        qsort(w->ops.at, w->ops.n, sizeof *w->ops.at, commonest_first);
    OnnxFile *o = &w->file;
    o->imports = w->imports.at, o->nimport = w->imports.n;
    o->inputs = w->inputs.at, o->nin = w->inputs.n;
    o->outputs = w->outputs.at, o->nout = w->outputs.n;
    o->meta = w->meta.at, o->nmeta = w->meta.n;
    o->ops = w->ops.at, o->nop = w->ops.n;
    return o;
}
