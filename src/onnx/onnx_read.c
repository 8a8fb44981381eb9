/* Graphs inside attributes are not descended into but put on a list, so nesting costs no stack, and
 * each byte of the file is looked at once at most. */
#include "onnx/onnx_read.h"

#include <stdlib.h>

#include "base/num.h"
#include "base/vec.h"
#include "onnx/onnx_proto.h"

typedef struct Body {
    PbReader reader;
    uint32_t node_field;                /* graphs and functions number their nodes differently */
} Body;

typedef struct OnnxWalk {
    ProtoWalk proto;
    Arena   *arena;
    OnnxFile file;
    bool     has_graph;
    Map      op_index;                  /* "domain\nname" -> index + 1 in ops */
    Map      init_names;                /* of the outermost graph */
    VEC(OnnxImport)  imports;
    VEC(OnnxPort)    inputs, outputs;
    VEC(OnnxMeta)    meta;
    VEC(OnnxOpCount) ops;
    VEC(Body)        todo;
} OnnxWalk;

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
        p2o_proto_spoil(&w->proto, "an initializer has a negative size");
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
            p2o_proto_leave(&w->proto, &packed);
        } else if (f.number == TENSOR_DIMS) {
            times_dim(w, &t, f.value);
        } else if (f.number == TENSOR_TYPE) {
            t.dtype = f.value > 1000 ? DT_NONE : p2o_dtype_from_onnx((long)f.value);
        } else if (f.number == TENSOR_NAME) {
            t.name = p2o_proto_text(&w->proto, &r, &f);
        } else if (f.number == TENSOR_RAW) {
            length = (int64_t)f.nbytes;
        } else if (f.number == TENSOR_EXTERNAL) {
            OnnxMeta entry = p2o_proto_pair(&w->proto, p2o_proto_enter(&w->proto, &r, &f));
            if (same(entry.key, "length") && !p2o_parse_i64(str_of(entry.value), &length))
                p2o_proto_spoil(&w->proto, "external data has a length that is no number");
        } else if (f.number == TENSOR_LOCATION) {
            t.external = f.value == 1;
        }
    }
    p2o_proto_leave(&w->proto, &r);
    t.nelem = t.empty ? 0 : t.nelem;
    if (length >= 0)
        t.nbytes = (uint64_t)length;
    else if ((t.overflow && !t.empty) || !mul_u64(t.nelem, p2o_dtype_bytes(t.dtype), &t.nbytes))
        p2o_proto_spoil(&w->proto, "an initializer's size overflows");
    return t;
}

static void count_init(OnnxWalk *w, const TensorFacts *t)
{
    OnnxFile *o = &w->file;
    o->ninit++;
    o->nexternal += t->external;
    if (!add_u64(o->init_bytes, t->nbytes, &o->init_bytes) ||
        (t->external && !add_u64(o->external_bytes, t->nbytes, &o->external_bytes)))
        p2o_proto_spoil(&w->proto, "the initializers' sizes overflow");
}

/* Values and indices count as one initializer, under the values' name. */
static TensorFacts read_sparse(OnnxWalk *w, PbReader r)
{
    TensorFacts t = { .name = "" };
    PbField     f;
    while (pb_next(&r, &f)) {
        if (f.number != SPARSE_VALUES && f.number != SPARSE_INDICES)
            continue;
        TensorFacts part = read_tensor(w, p2o_proto_enter(&w->proto, &r, &f));
        t.name = f.number == SPARSE_VALUES ? part.name : t.name;
        t.external |= part.external;
        if (!add_u64(t.nbytes, part.nbytes, &t.nbytes))
            p2o_proto_spoil(&w->proto, "an initializer's size overflows");
    }
    p2o_proto_leave(&w->proto, &r);
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
        if (f.number == A_GRAPH || f.number == A_GRAPHS) {
            push_body(w, p2o_proto_enter(&w->proto, &r, &f), GRAPH_NODE);
            w->file.nbody++;
        }
    p2o_proto_leave(&w->proto, &r);
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
        if (f.number == NODE_OP)
            name = p2o_proto_text(&w->proto, &r, &f);
        else if (f.number == NODE_DOMAIN)
            domain = p2o_proto_text(&w->proto, &r, &f);
        else if (f.number == NODE_ATTR)
            find_bodies(w, p2o_proto_enter(&w->proto, &r, &f));
    }
    p2o_proto_leave(&w->proto, &r);
    if (!*name)
        p2o_proto_spoil(&w->proto, "a node has no operator");
    count_op(w, domain, name);
}

static void read_graph_field(OnnxWalk *w, const PbReader *r, const PbField *f, bool outermost)
{
    if (f->number == GRAPH_INIT || f->number == GRAPH_SPARSE) {
        PbReader    in = p2o_proto_enter(&w->proto, r, f);
        TensorFacts t = f->number == GRAPH_INIT ? read_tensor(w, in) : read_sparse(w, in);
        count_init(w, &t);
        if (outermost)
            map_put(&w->init_names, str_of(t.name), w);
    } else if (outermost && f->number == GRAPH_NAME) {
        w->file.graph_name = p2o_proto_text(&w->proto, r, f);
    } else if (outermost && f->number == GRAPH_INPUT) {
        VEC_PUSH(w->arena, &w->inputs, p2o_proto_port(&w->proto, p2o_proto_enter(&w->proto, r, f)));
    } else if (outermost && f->number == GRAPH_OUTPUT) {
        VEC_PUSH(w->arena, &w->outputs,
                 p2o_proto_port(&w->proto, p2o_proto_enter(&w->proto, r, f)));
    }
}

static void read_body(OnnxWalk *w, Body b, bool outermost)
{
    PbField f;
    while (!w->proto.bad && pb_next(&b.reader, &f)) {
        if (f.number == b.node_field)
            read_node(w, p2o_proto_enter(&w->proto, &b.reader, &f));
        else if (b.node_field == GRAPH_NODE)
            read_graph_field(w, &b.reader, &f, outermost);
    }
    p2o_proto_leave(&w->proto, &b.reader);
}

static void read_model_field(OnnxWalk *w, const PbReader *r, const PbField *f)
{
    switch (f->number) {
    case MODEL_IR_VERSION:
        w->file.ir_version = (int64_t)f->value;
        break;
    case MODEL_PRODUCER:
        w->file.producer = p2o_proto_text(&w->proto, r, f);
        break;
    case MODEL_PRODUCER_VERSION:
        w->file.producer_version = p2o_proto_text(&w->proto, r, f);
        break;
    case MODEL_OPSET:
        VEC_PUSH(w->arena, &w->imports,
                 p2o_proto_import(&w->proto, p2o_proto_enter(&w->proto, r, f)));
        break;
    case MODEL_METADATA:
        VEC_PUSH(w->arena, &w->meta, p2o_proto_pair(&w->proto, p2o_proto_enter(&w->proto, r, f)));
        break;
    case MODEL_GRAPH:
        if (w->has_graph)
            p2o_proto_spoil(&w->proto, "two graphs");
        w->has_graph = true;
        read_body(w, (Body){ .reader = p2o_proto_enter(&w->proto, r, f), .node_field = GRAPH_NODE },
                  true);
        break;
    case MODEL_FUNCTION:
        push_body(w, p2o_proto_enter(&w->proto, r, f), FUNCTION_NODE);
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

    w->proto.arena = w->arena = w->op_index.arena = w->init_names.arena = a;
    w->file.producer = w->file.producer_version = w->file.graph_name = "";
    while (!w->proto.bad && pb_next(&r, &f))
        read_model_field(w, &r, &f);
    p2o_proto_leave(&w->proto, &r);
    for (size_t i = 0; !w->proto.bad && i < w->todo.n; i++)
        read_body(w, w->todo.at[i], false);
    if (!w->has_graph)
        p2o_proto_spoil(&w->proto, "no graph in it");
    if (w->proto.bad) {
        p2o_diag(d, DIAG_BAD_FILE, 0, "not a readable onnx model: %s", w->proto.why);
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
