/* A model that was read, written again: every field goes over as it is, in its order, but for names
 * of values, types of values, and where weights lie.
 *
 * Fields that are not rewritten are copied as bytes from the source, whatever they are.  What is
 * new (the prelude) comes first in the graph.  As with a new model, the same walk measures and
 * then writes. */
#include "onnx/onnx_write_parts.h"

static void copy_bytes(ModelWriter *w, Source *s, uint64_t at, uint64_t n)
{
    if (!w->pb.sink) {
        w->pb.nbytes += n;
        return;
    }
    uint8_t buf[65536];
    while (n > 0 && !w->failed && !p2o_sink_failed(w->pb.sink)) {
        size_t k = n < sizeof buf ? (size_t)n : sizeof buf;
        if (!p2o_source_read(s, at, buf, k)) {
            p2o_diag(w->diags, DIAG_IO, 0, "the model cannot be read any more");
            w->failed = w->pb.is_short = true;
            return;
        }
        p2o_sink_write(w->pb.sink, buf, k);
        at += k;
        n -= k;
    }
}

typedef struct FieldWalk {              /* the fields of a message, each with the bytes it takes */
    PbReader r;
    PbField  f;
    uint64_t from;
} FieldWalk;

static FieldWalk walk_of(PbReader r) { return (FieldWalk){ .r = r }; }

static bool next_field(FieldWalk *k)
{
    k->from = k->r.at;
    return pb_next(&k->r, &k->f);
}

static void copy_field(ModelWriter *w, const FieldWalk *k)
{
    copy_bytes(w, k->r.source, k->from, k->r.at - k->from);
}

static PbReader inside(const FieldWalk *k) { return pb_inside(&k->r, &k->f); }

static const char *entry_text(ModelWriter *w, const FieldWalk *k)
{
    ProtoWalk p = { .arena = w->arena };
    return p2o_proto_text(&p, &k->r, &k->f);
}

static void note_nameless(void *user, Dim sym)
{
    bool *found = user;
    *found |= p2o_str_starts(str_of(p2o_dim_name(sym)), DATA_STEM);
}

/* Of a size that only the data decides: they are told by their names. */
static bool is_nameless(Dim d)
{
    bool found = false;
    p2o_dim_symbols(d, note_nameless, &found);
    return found;
}

/* One dim: a number, a name, or nothing.  In a body a symbol may stand for another number in each
 * iteration: there only a name that the file had stays. */
static void put_axis(ModelWriter *w, const Graph *g, Dim d, const char *was)
{
    OnnxModel  *m = g->file->model;
    int64_t     v;
    const char *name = p2o_onnx_dim_name(m, d);
    if (p2o_dim_is_int(d, &v))
        p2o_pb_int(&w->pb, DIM_VALUE, v);
    else if (*was && ((name && same(name, was)) || is_nameless(d)))
        p2o_pb_text(&w->pb, DIM_PARAM, was);
    else if (!g->parent && !is_nameless(d))
        p2o_pb_text(&w->pb, DIM_PARAM, name ? name : p2o_graph_dim(w->root, d));
}

static void put_dim_again(ModelWriter *w, const Graph *g, Dim d, PbReader r)
{
    FieldWalk   k = walk_of(r);
    const char *was = "";
    while (next_field(&k))
        if (k.f.number == DIM_PARAM)
            was = entry_text(w, &k);
    put_axis(w, g, d, was);
    for (k = walk_of(r); next_field(&k);)
        if (k.f.number != DIM_VALUE && k.f.number != DIM_PARAM)
            copy_field(w, &k);
}

static void put_shape_again(ModelWriter *w, const Graph *g, Shape s, PbReader r)
{
    FieldWalk k = walk_of(r);
    int       i = 0;
    PbMark    m = p2o_pb_begin(&w->pb, TENSOR_SHAPE);
    while (next_field(&k)) {
        if (k.f.number != SHAPE_DIM || i >= s.rank) {
            copy_field(w, &k);
            continue;
        }
        PbMark d = p2o_pb_begin(&w->pb, SHAPE_DIM);
        put_dim_again(w, g, s.at[i++], inside(&k));
        p2o_pb_end(&w->pb, d);
    }
    for (; i < s.rank; i++) {
        PbMark d = p2o_pb_begin(&w->pb, SHAPE_DIM);
        put_axis(w, g, s.at[i], "");
        p2o_pb_end(&w->pb, d);
    }
    p2o_pb_end(&w->pb, m);
}

/* A tensor's type with the sizes it has now; a shape that the file left out is not added to
 * bodies. */
static void put_tensor_type_again(ModelWriter *w, const Graph *g, const Value *v, PbReader r)
{
    FieldWalk k = walk_of(r);
    bool      has_shape = false;
    PbMark    m = p2o_pb_begin(&w->pb, TYPE_TENSOR);
    while (next_field(&k)) {
        if (k.f.number != TENSOR_SHAPE) {
            copy_field(w, &k);
            continue;
        }
        has_shape = true;
        put_shape_again(w, g, v->shape, inside(&k));
    }
    if (!has_shape && !g->parent)
        put_shape_again(w, g, v->shape, (PbReader){ 0 });
    p2o_pb_end(&w->pb, m);
}

static void put_type_again(ModelWriter *w, const Graph *g, const Value *v, PbReader r)
{
    FieldWalk k = walk_of(r);
    PbMark    m = p2o_pb_begin(&w->pb, INFO_TYPE);
    while (next_field(&k)) {
        if (k.f.number == TYPE_TENSOR && !v->is_sequence) {
            put_tensor_type_again(w, g, v, inside(&k));
        } else if (k.f.number == TYPE_SEQUENCE && v->is_sequence) {
            PbMark seq = p2o_pb_begin(&w->pb, TYPE_SEQUENCE);
            PbMark elem = p2o_pb_begin(&w->pb, SEQUENCE_ELEM);
            p2o_put_tensor_type(w, v, false);
            p2o_pb_end(&w->pb, elem);
            p2o_pb_end(&w->pb, seq);
        } else {
            copy_field(w, &k);
        }
    }
    p2o_pb_end(&w->pb, m);
}

static bool has_same_type(const OnnxBody *b, const char *name, const Value *v)
{
    const OnnxPort *port = p2o_map_get(&b->infos, str_of(name));
    return port && port->dtype == v->dtype && (port->rank < 0 || port->rank == v->shape.rank);
}

/* What the file says of a value's type, brought up to date.  Where the type is not known any more,
 * an entry that may be wrong now is left out. */
static void put_info_again(ModelWriter *w, const Graph *g, const FieldWalk *at)
{
    OnnxBody   *b = g->file;
    FieldWalk   k = walk_of(inside(at));
    const char *name = "";
    while (next_field(&k))
        if (k.f.number == INFO_NAME)
            name = entry_text(w, &k);
    const Value *v = p2o_map_get(&b->values, str_of(name));
    bool         known = v && v->dtype != DT_NONE && (v->is_sequence || has_same_type(b, name, v));
    if (v && !known && at->f.number == GRAPH_VALUE_INFO && v->dtype != DT_NONE)
        return;                         /* the file contradicts itself here */
    PbMark m = p2o_pb_begin(&w->pb, at->f.number);
    for (k = walk_of(inside(at)); next_field(&k);) {
        if (k.f.number == INFO_NAME && v)
            p2o_pb_text(&w->pb, INFO_NAME, v->name);
        else if (k.f.number == INFO_TYPE && known)
            put_type_again(w, g, v, inside(&k));
        else
            copy_field(w, &k);
    }
    p2o_pb_end(&w->pb, m);
}

bool p2o_copy_is_outside(const ModelWriter *w, const Tensor *x)
{
    return x->storage->source && x->storage->source != w->root->file->model->source;
}

/* Only a tensor whose bytes go elsewhere is taken apart. */
static void put_init_again(ModelWriter *w, const Graph *g, const FieldWalk *at)
{
    FieldWalk   k = walk_of(inside(at));
    const char *name = "";
    while (next_field(&k))
        if (k.f.number == TENSOR_NAME)
            name = entry_text(w, &k);
    const Value  *v = p2o_map_get(&g->file->values, str_of(name));
    const Tensor *x = v ? v->tensor : NULL;
    uint64_t      nelem = 0;
    bool          outside = x && p2o_copy_is_outside(w, x), renamed = v && !same(v->name, name);
    bool          large = x && p2o_tensor_nelem(x, &nelem) &&
                          nelem * p2o_dtype_bytes(x->dtype) >= EXTERNAL_LEAST;
    bool          stays = !outside && !(large && w->spill);
    PbMark        m = p2o_pb_begin(&w->pb, at->f.number);
    for (k = walk_of(inside(at)); next_field(&k);) {
        bool elements = (k.f.number >= TENSOR_FLOATS && k.f.number <= TENSOR_INT64S) ||
                        k.f.number == TENSOR_RAW || k.f.number == TENSOR_DOUBLES ||
                        k.f.number == TENSOR_UINT64S || k.f.number == TENSOR_EXTERNAL ||
                        k.f.number == TENSOR_LOCATION;
        if (k.f.number == TENSOR_NAME && renamed)
            p2o_pb_text(&w->pb, TENSOR_NAME, v->name);
        else if (stays || !elements)
            copy_field(w, &k);
    }
    if (!stays)
        p2o_put_elements(w, x, name, large && (w->spill || w->aside), outside && w->link);
    p2o_pb_end(&w->pb, m);
}

static void put_graph_again(ModelWriter *w, uint32_t field, const Graph *g, PbReader r);

/* The node's n-th graph, counted from 0. */
static const Graph *body_at(const Node *n, int which)
{
    for (int i = 0; i < n->nattr; i++)
        if (n->attrs[i].kind == ATTR_GRAPH && which-- == 0)
            return n->attrs[i].graph;
    return NULL;
}

static void put_attr_again(ModelWriter *w, const Node *n, const FieldWalk *at, int *nbody)
{
    FieldWalk k = walk_of(inside(at));
    PbMark    m = p2o_pb_begin(&w->pb, NODE_ATTR);
    while (next_field(&k)) {
        const Graph *body = k.f.number == A_GRAPH ? body_at(n, *nbody) : NULL;
        if (body) {
            put_graph_again(w, A_GRAPH, body, inside(&k));
            ++*nbody;
        } else {
            copy_field(w, &k);
        }
    }
    p2o_pb_end(&w->pb, m);
}

static void put_node_again(ModelWriter *w, const OnnxNode *x, const FieldWalk *at)
{
    const Node *n = x->node;
    FieldWalk   k = walk_of(inside(at));
    int         nin = 0, nout = 0, nbody = 0;
    PbMark      m = p2o_pb_begin(&w->pb, GRAPH_NODE);
    while (next_field(&k)) {
        if (k.f.number == NODE_INPUT) {
            const Value *v = nin < x->nin ? n->in[nin] : NULL;
            p2o_pb_text(&w->pb, NODE_INPUT, v ? v->name : "");
            nin++;
        } else if (k.f.number == NODE_OUTPUT) {
            const Value *v = nout < n->nout ? n->out[nout] : NULL;
            p2o_pb_text(&w->pb, NODE_OUTPUT, v && v->name ? v->name : "");
            nout++;
        } else if (k.f.number == NODE_ATTR) {
            put_attr_again(w, n, &k, &nbody);
        } else {
            copy_field(w, &k);
        }
    }
    p2o_pb_end(&w->pb, m);
}

static void put_prelude(ModelWriter *w, const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        p2o_put_node(w, n);
    for (size_t i = 0; i < g->inits.n; i++)
        p2o_put_tensor(w, GRAPH_INIT, g->inits.at[i]->tensor, g->inits.at[i]->name);
}

static void put_graph_again(ModelWriter *w, uint32_t field, const Graph *g, PbReader r)
{
    OnnxBody *b = g->file;
    FieldWalk k = walk_of(r);
    size_t    next = 0;
    PbMark    m = p2o_pb_begin(&w->pb, field);
    if (!g->parent && b->model->prelude)
        put_prelude(w, b->model->prelude);
    while (next_field(&k)) {
        switch (k.f.number) {
        case GRAPH_NODE: put_node_again(w, &b->nodes.at[next++], &k); break;
        case GRAPH_INIT: put_init_again(w, g, &k); break;
        case GRAPH_INPUT: case GRAPH_OUTPUT: case GRAPH_VALUE_INFO: put_info_again(w, g, &k); break;
        default: copy_field(w, &k);
        }
    }
    p2o_pb_end(&w->pb, m);
}

/* The entry about sizes that an earlier conversion left: it is made anew. */
static bool is_ours(ModelWriter *w, const FieldWalk *at)
{
    FieldWalk k = walk_of(inside(at));
    while (next_field(&k))
        if (k.f.number == ENTRY_KEY && same(entry_text(w, &k), "pt2onnx.dims"))
            return true;
    return false;
}

void p2o_put_copy(ModelWriter *w)
{
    OnnxModel *model = w->root->file->model;
    FieldWalk  k = walk_of(pb_reader(model->source, 0, p2o_source_size(model->source)));
    while (next_field(&k)) {
        if (k.f.number == MODEL_GRAPH)
            put_graph_again(w, MODEL_GRAPH, w->root, inside(&k));
        else if (k.f.number != MODEL_METADATA || !is_ours(w, &k))
            copy_field(w, &k);
    }
    if (model->dims_json)
        p2o_put_entry(w, MODEL_METADATA, "pt2onnx.dims", model->dims_json);
}
