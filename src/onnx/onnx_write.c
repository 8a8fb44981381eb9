/* One function a message of onnx.proto3, walked twice: once to measure, once to write.
 *
 * Where a weight goes depends only on its size, its source and the options, and its offset in the
 * data file on the weights before it, so both passes place it alike.  The data file takes its name
 * before the model does: a model never points at data that is not there. */
#define _GNU_SOURCE
#include "onnx/onnx_write.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "onnx/onnx_ops.h"
#include "onnx/onnx_write_parts.h"

enum { PAGE = 4096, CACHE_LINE = 64 };

static const uint64_t LARGE_WEIGHT = 1 << 20, AUTO_LIMIT = 1900000000, MESSAGE_LIMIT = INT32_MAX;

static const char *value_name(const ModelWriter *w, const Value *v)
{
    return v->name ? v->name : w->names[v->id];
}

static uint64_t tensor_nbytes(const Tensor *x)
{
    uint64_t n = 0;
    p2o_tensor_nelem(x, &n);
    return n * p2o_dtype_bytes(x->dtype);           /* cannot overflow: the tensor was checked */
}

/* Eight-bit floats came with opset 19; the scale type comes after the opsets we write. */
static bool has_onnx_type(DType t, int opset)
{
    int code = p2o_dtype_onnx(t), since = t == DT_F8E8M0 ? 24 : code >= 17 && code <= 20 ? 19 : 0;
    return code != 0 && opset >= since;
}

static bool check_value(ModelWriter *w, const Value *v)
{
    const char *why;
    const char *name = value_name(w, v);
    if (!has_onnx_type(v->dtype, w->root->opset)) {
        p2o_diag(w->diags, DIAG_UNSUPPORTED, v->def ? v->def->loc : 0,
                 "%s is %s, which opset %d lacks", name, p2o_dtype_torch(v->dtype), w->root->opset);
        return false;
    }
    const Tensor *t = v->initial ? v->initial : v->tensor;
    if (t && !p2o_tensor_check(t, &why)) {
        p2o_diag(w->diags, DIAG_BAD_FILE, 0, "weight %s cannot be written: %s", name, why);
        return false;
    }
    return true;
}

static bool check_values(ModelWriter *w, const Graph *g)
{
    bool ok = true;
    for (size_t i = 0; i < g->inputs.n; i++)
        ok &= check_value(w, g->inputs.at[i]);
    for (size_t i = 0; i < g->inits.n; i++)
        ok &= check_value(w, g->inits.at[i]);
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH)
                ok &= check_values(w, n->attrs[i].graph);
    for (size_t i = 0; i < g->outputs.n && ok; i++)      /* else they only echo a weight or input */
        ok = check_value(w, g->outputs.at[i]);
    return ok;
}

typedef void ValueFn(ModelWriter *w, Map *taken, const Value *v);

/* Every value of the graph and its bodies, in order of definition. */
static void each_value(ModelWriter *w, Map *taken, const Graph *g, ValueFn *fn)
{
    for (size_t i = 0; i < g->inputs.n; i++)
        fn(w, taken, g->inputs.at[i]);
    for (size_t i = 0; i < g->inits.n; i++)
        fn(w, taken, g->inits.at[i]);
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH)
                each_value(w, taken, n->attrs[i].graph, fn);
        for (int i = 0; i < n->nout; i++)
            fn(w, taken, n->out[i]);
    }
}

static void take_name(ModelWriter *w, Map *taken, const Value *v)
{
    if (v->name) {
        w->names[v->id] = v->name;
        map_put(taken, str_of(v->name), w);
    }
}

static void give_name(ModelWriter *w, Map *taken, const Value *v)
{
    while (!w->names[v->id]) {
        const char *name = p2o_printf(w->arena, "v%llu", (unsigned long long)w->next_name++);
        if (!p2o_map_get(taken, str_of(name)))
            w->names[v->id] = name;
    }
}

static void name_values(ModelWriter *w)
{
    Map taken = { .arena = w->arena };
    w->names = NEW_N(w->arena, const char *, (size_t)w->root->nvalue + 1);
    each_value(w, &taken, w->root, take_name);
    each_value(w, &taken, w->root, give_name);
}

void p2o_put_entry(ModelWriter *w, uint32_t field, const char *key, const char *value)
{
    PbMark m = p2o_pb_begin(&w->pb, field);
    p2o_pb_text(&w->pb, ENTRY_KEY, key);
    p2o_pb_text(&w->pb, ENTRY_VALUE, value);
    p2o_pb_end(&w->pb, m);
}

static void put_external(ModelWriter *w, const char *location, uint64_t offset, uint64_t nbytes)
{
    char text[24];
    p2o_put_entry(w, TENSOR_EXTERNAL, "location", location);
    snprintf(text, sizeof text, "%llu", (unsigned long long)offset);
    p2o_put_entry(w, TENSOR_EXTERNAL, "offset", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)nbytes);
    p2o_put_entry(w, TENSOR_EXTERNAL, "length", text);
    p2o_pb_int(&w->pb, TENSOR_LOCATION, LOCATION_EXTERNAL);
}

typedef struct Stream {
    Sink    *sink;
    uint64_t nbytes;
} Stream;

static bool stream_run(void *user, const void *p, size_t n)
{
    Stream *s = user;
    p2o_sink_write(s->sink, p, n);
    s->nbytes += n;
    return !p2o_sink_failed(s->sink);
}

static void stream_tensor(ModelWriter *w, const Tensor *x, const char *name, Sink *s)
{
    Stream to = { .sink = s };
    if (w->failed || (p2o_tensor_stream(x, stream_run, &to) && to.nbytes == tensor_nbytes(x)))
        return;
    w->failed = w->pb.is_short = true;
    if (!p2o_sink_failed(s))            /* else the sink says why */
        p2o_diag(w->diags, DIAG_IO, 0, "weight %s cannot be read from the input", name);
}

/* Bytes that ONNX Runtime can map as they are. */
static bool is_linkable(const ModelWriter *w, const Tensor *x)
{
    const Storage *s = x->storage;
    return w->link && s->source && p2o_source_path(s->source) && p2o_tensor_is_contiguous(x) &&
           (!s->big_endian || p2o_dtype_bytes(x->dtype) == 1);
}

static void put_side_tensor(ModelWriter *w, const Tensor *x, const char *name, uint64_t nbytes)
{
    uint64_t align = nbytes >= LARGE_WEIGHT ? PAGE : CACHE_LINE;
    uint64_t offset = (w->data_end + align - 1) / align * align;
    put_external(w, w->data_name, offset, nbytes);
    if (w->data) {
        p2o_sink_pad(w->data, offset - w->data_end);
        stream_tensor(w, x, name, w->data);
    }
    w->data_end = offset + nbytes;
}

static void put_inline_tensor(ModelWriter *w, const Tensor *x, const char *name, uint64_t nbytes)
{
    p2o_pb_large(&w->pb, TENSOR_RAW, nbytes);
    if (w->pb.sink)
        stream_tensor(w, x, name, w->pb.sink);
}

void p2o_put_elements(ModelWriter *w, const Tensor *x, const char *name, bool aside, bool linked)
{
    uint64_t nbytes = tensor_nbytes(x);
    if (linked) {
        const char *at = p2o_map_get(&w->archives, str_of(p2o_source_path(x->storage->source)));
        put_external(w, at, x->storage->offset + x->offset * p2o_dtype_bytes(x->dtype), nbytes);
    } else if (aside) {
        put_side_tensor(w, x, name, nbytes);
    } else {
        put_inline_tensor(w, x, name, nbytes);
    }
}

/* name is NULL in an attribute, whose tensor stays inline. */
void p2o_put_tensor(ModelWriter *w, uint32_t field, const Tensor *x, const char *name)
{
    uint64_t nbytes = tensor_nbytes(x);
    bool     outside = name && nbytes >= EXTERNAL_LEAST;
    PbMark   m = p2o_pb_begin(&w->pb, field);
    p2o_pb_packed_ints(&w->pb, TENSOR_DIMS, x->sizes, (size_t)x->rank);
    p2o_pb_int(&w->pb, TENSOR_TYPE, p2o_dtype_onnx(x->dtype));
    if (name)
        p2o_pb_text(&w->pb, TENSOR_NAME, name);
    p2o_put_elements(w, x, name ? name : "of an attribute", outside && w->spill,
                     outside && is_linkable(w, x));
    p2o_pb_end(&w->pb, m);
}

/* Names of sizes matter at the model's own ports.  In a body a symbol may stand for another number
 * in each iteration, so it is left open. */
static void put_shape_proto(ModelWriter *w, Shape s, bool named)
{
    PbMark m = p2o_pb_begin(&w->pb, TENSOR_SHAPE);
    for (int i = 0; i < s.rank; i++) {
        PbMark  d = p2o_pb_begin(&w->pb, SHAPE_DIM);
        int64_t v;
        if (p2o_dim_is_int(s.at[i], &v))
            p2o_pb_int(&w->pb, DIM_VALUE, v);
        else if (named)
            p2o_pb_text(&w->pb, DIM_PARAM, p2o_graph_dim(w->root, s.at[i]));
        p2o_pb_end(&w->pb, d);
    }
    p2o_pb_end(&w->pb, m);
}

void p2o_put_tensor_type(ModelWriter *w, const Value *v, bool named)
{
    PbMark m = p2o_pb_begin(&w->pb, TYPE_TENSOR);
    p2o_pb_int(&w->pb, TENSOR_ELEM, p2o_dtype_onnx(v->dtype));
    if (v->shape.rank >= 0)
        put_shape_proto(w, v->shape, named);
    p2o_pb_end(&w->pb, m);
}

static void put_port(ModelWriter *w, uint32_t field, const Value *v, bool named)
{
    PbMark info = p2o_pb_begin(&w->pb, field);
    p2o_pb_text(&w->pb, INFO_NAME, value_name(w, v));
    PbMark type = p2o_pb_begin(&w->pb, INFO_TYPE);
    if (v->is_sequence) {
        PbMark seq = p2o_pb_begin(&w->pb, TYPE_SEQUENCE);
        PbMark elem = p2o_pb_begin(&w->pb, SEQUENCE_ELEM);
        p2o_put_tensor_type(w, v, false);
        p2o_pb_end(&w->pb, elem);
        p2o_pb_end(&w->pb, seq);
    } else {
        p2o_put_tensor_type(w, v, named);
    }
    p2o_pb_end(&w->pb, type);
    p2o_pb_end(&w->pb, info);
}

static void put_graph_proto(ModelWriter *w, uint32_t field, const Graph *g);

static void put_attr_value(ModelWriter *w, const Attr *a)
{
    switch (a->kind) {
    case ATTR_INT:    p2o_pb_int(&w->pb, A_INT, a->i); break;
    case ATTR_FLOAT:  p2o_pb_float(&w->pb, A_FLOAT, a->f); break;
    case ATTR_STR:    p2o_pb_text(&w->pb, A_STRING, a->s); break;
    case ATTR_INTS:   p2o_pb_packed_ints(&w->pb, A_INTS, a->ints, a->n); break;
    case ATTR_FLOATS: p2o_pb_packed_floats(&w->pb, A_FLOATS, a->floats, a->n); break;
    case ATTR_TENSOR: p2o_put_tensor(w, A_TENSOR, a->tensor, NULL); break;
    case ATTR_GRAPH:  put_graph_proto(w, A_GRAPH, a->graph); break;
    case ATTR_STRS:
        for (size_t i = 0; i < a->n; i++)
            p2o_pb_text(&w->pb, A_STRINGS, a->strs[i]);
        break;
    }
}

void p2o_put_attribute(ModelWriter *w, uint32_t field, const Attr *a, const char *ref)
{
    static const int type[] = {
        [ATTR_INT] = A_KIND_INT,       [ATTR_FLOAT] = A_KIND_FLOAT,   [ATTR_STR] = A_KIND_STRING,
        [ATTR_INTS] = A_KIND_INTS,     [ATTR_FLOATS] = A_KIND_FLOATS, [ATTR_STRS] = A_KIND_STRINGS,
        [ATTR_TENSOR] = A_KIND_TENSOR, [ATTR_GRAPH] = A_KIND_GRAPH,
    };
    PbMark m = p2o_pb_begin(&w->pb, field);
    p2o_pb_text(&w->pb, A_NAME, a->name);
    if (ref)
        p2o_pb_text(&w->pb, A_REFERENCE, ref);
    else
        put_attr_value(w, a);
    p2o_pb_int(&w->pb, A_TYPE, type[a->kind]);
    p2o_pb_end(&w->pb, m);
}

void p2o_put_node(ModelWriter *w, const Node *n)
{
    OnnxOperator op = p2o_node_operator(n);
    PbMark       m = p2o_pb_begin(&w->pb, GRAPH_NODE);
    for (int i = 0; i < n->nin; i++)
        p2o_pb_text(&w->pb, NODE_INPUT, n->in[i] ? value_name(w, n->in[i]) : "");
    for (int i = 0; i < n->nout; i++)
        p2o_pb_text(&w->pb, NODE_OUTPUT, value_name(w, n->out[i]));
    if (n->name)
        p2o_pb_text(&w->pb, NODE_NAME, n->name);
    p2o_pb_text(&w->pb, NODE_OP, op.name);
    for (int i = 0; i < n->nattr; i++)
        p2o_put_attribute(w, NODE_ATTR, &n->attrs[i], NULL);
    if (op.domain[0])
        p2o_pb_text(&w->pb, NODE_DOMAIN, op.domain);
    p2o_pb_end(&w->pb, m);
}

static void put_graph_proto(ModelWriter *w, uint32_t field, const Graph *g)
{
    bool   main = !g->parent;
    PbMark m = p2o_pb_begin(&w->pb, field);
    for (const Node *n = g->first; n; n = n->next)
        p2o_put_node(w, n);
    p2o_pb_text(&w->pb, GRAPH_NAME, g->name ? g->name : main ? "main" : "body");
    for (size_t i = 0; i < g->inits.n; i++)
        p2o_put_tensor(w, GRAPH_INIT, g->inits.at[i]->tensor, value_name(w, g->inits.at[i]));
    for (size_t i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i]->initial)
            p2o_put_tensor(w, GRAPH_INIT, g->inputs.at[i]->initial, value_name(w, g->inputs.at[i]));
    for (size_t i = 0; i < g->inputs.n; i++)
        put_port(w, GRAPH_INPUT, g->inputs.at[i], main);
    for (size_t i = 0; i < g->outputs.n; i++)
        put_port(w, GRAPH_OUTPUT, g->outputs.at[i], main);
    p2o_pb_end(&w->pb, m);
}

static void find_operators(ModelOperators *o, const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next) {
        OnnxOperator op = p2o_node_operator(n);
        p2o_need_operator(o, &op);
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH)
                find_operators(o, n->attrs[i].graph);
    }
}

void p2o_put_opset(ModelWriter *w, uint32_t field, const char *domain, int64_t version)
{
    PbMark m = p2o_pb_begin(&w->pb, field);
    p2o_pb_text(&w->pb, OPSET_DOMAIN, domain);
    p2o_pb_int(&w->pb, OPSET_VERSION, version);
    p2o_pb_end(&w->pb, m);
}

/* The format version that the onnx release of each opset introduced or kept. */
static int ir_version_of(int opset)
{
    return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 11;
}

static void put_model(ModelWriter *w)
{
    const Graph   *g = w->root;
    ModelOperators used = { .domains = { .arena = w->arena }, .functions = { .arena = w->arena } };
    w->data_end = 0;
    if (g->file) {
        p2o_put_copy(w);
        return;
    }
    find_operators(&used, g);
    int ir = ir_version_of(g->opset);
    p2o_pb_int(&w->pb, MODEL_IR_VERSION, used.ir_version > ir ? used.ir_version : ir);
    p2o_pb_text(&w->pb, MODEL_PRODUCER, "pt2onnx");
    if (w->producer_version)
        p2o_pb_text(&w->pb, MODEL_PRODUCER_VERSION, w->producer_version);
    put_graph_proto(w, MODEL_GRAPH, g);
    p2o_put_opset(w, MODEL_OPSET, "", g->opset);
    for (size_t i = 0; i < used.domains.n; i++)
        p2o_put_opset(w, MODEL_OPSET, used.domains.at[i].key.p,
                      (int64_t)(intptr_t)used.domains.at[i].value);
    for (size_t i = 0; i + 1 < g->meta.n; i += 2)
        p2o_put_entry(w, MODEL_METADATA, g->meta.at[i], g->meta.at[i + 1]);
    p2o_put_functions(w, &used);
}

static uint64_t measure(ModelWriter *w)
{
    w->pb = (PbWriter){ .arena = w->arena };
    put_model(w);
    return w->pb.nbytes;
}

static bool start_writer(ModelWriter *w, Diags *d, const Graph *g, const OnnxWriteOptions *o)
{
    *w = (ModelWriter){ .arena = p2o_diags_arena(d), .diags = d, .root = g,
                        .producer_version = o->producer_version };
    w->archives.arena = w->arena;
    if (g->file)                /* everything has its name, and was checked when it was read */
        return true;
    name_values(w);
    return check_values(w, g);
}

static bool is_too_large(Diags *d, uint64_t nbytes)
{
    if (nbytes <= MESSAGE_LIMIT)
        return false;
    p2o_diag_advise(d, DIAG_UNSUPPORTED, 0, "write to a file with external data auto or always",
                    "the model takes %llu bytes in one piece, and protobuf holds 2147483647",
                    (unsigned long long)nbytes);
    return true;
}

bool p2o_onnx_write_sink(Diags *d, const Graph *g, const OnnxWriteOptions *o, Sink *s)
{
    ModelWriter w;
    if (!start_writer(&w, d, g, o) || is_too_large(d, measure(&w))) {
        p2o_sink_abort(s);
        return false;
    }
    p2o_pb_replay(&w.pb, s);
    put_model(&w);
    if (!w.failed || p2o_sink_failed(s))
        return p2o_sink_commit(s);
    p2o_sink_abort(s);
    return false;
}

/* The folder part of a path, as realpath gives it. */
static bool real_folder(ModelWriter *w, const char *path, char *out)
{
    const char *slash = strrchr(path, '/');
    size_t      n = slash ? (size_t)(slash - path) : 0;
    const char *folder = !slash ? "." : n == 0 ? "/" : p2o_str_dup(w->arena, (Str){ path, n });
    if (realpath(folder, out))
        return true;
    p2o_diag(w->diags, DIAG_IO, 0, "cannot write to folder %s: %s", folder, strerror(errno));
    return false;
}

/* The archive's location seen from the model's folder; NULL after a diagnostic. */
static const char *locate_archive(ModelWriter *w, const char *archive, const char *model)
{
    char folder[PATH_MAX], real[PATH_MAX], old[PATH_MAX];
    if (!real_folder(w, model, folder))
        return NULL;
    if (!realpath(archive, real)) {
        p2o_diag(w->diags, DIAG_IO, 0, "cannot find %s: %s", archive, strerror(errno));
        return NULL;
    }
    size_t n = same(folder, "/") ? 0 : strlen(folder);
    if (strncmp(real, folder, n) != 0 || real[n] != '/') {
        p2o_diag_advise(w->diags, DIAG_MISUSE, 0,
                        "write the model beside the archive, or use external data always",
                        "cannot link to %s: runtimes refuse weights outside the model's folder",
                        archive);
        return NULL;
    }
    const char *data = p2o_printf(w->arena, "%s.data", model);
    if ((realpath(model, old) && same(old, real)) || (realpath(data, old) && same(old, real))) {
        p2o_diag(w->diags, DIAG_MISUSE, 0, "cannot link to %s: the output would replace it",
                 archive);
        return NULL;
    }
    return p2o_str_dup(w->arena, str_of(real + n + 1));
}

static bool locate_archives(ModelWriter *w, const Graph *g, const char *model)
{
    for (size_t i = 0; i < g->inits.n + g->inputs.n; i++) {
        const Tensor *x = i < g->inits.n ? g->inits.at[i]->tensor
                                         : g->inputs.at[i - g->inits.n]->initial;
        if (!x || !(g->file ? p2o_copy_is_outside(w, x) : tensor_nbytes(x) >= EXTERNAL_LEAST) ||
            !is_linkable(w, x))
            continue;
        const char *archive = p2o_source_path(x->storage->source);
        void      **slot = p2o_map_slot(&w->archives, str_of(archive));
        if (!*slot)
            *slot = (void *)(uintptr_t)locate_archive(w, archive, model);
        if (!*slot)
            return false;
    }
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH && !locate_archives(w, n->attrs[i].graph, model))
                return false;
    return true;
}

/* Both files or neither: the data first, since the model names it. */
static bool commit_both(ModelWriter *w, Sink *model, const char *data_path)
{
    bool stopped = w->failed && !p2o_sink_failed(model) && !(w->data && p2o_sink_failed(w->data));
    if (stopped || p2o_sink_failed(model)) {
        p2o_sink_abort(w->data);
        if (!stopped)
            p2o_sink_commit(model);     /* says what went wrong */
        p2o_sink_abort(model);
        return false;
    }
    if (w->data && !p2o_sink_commit(w->data)) {
        p2o_sink_abort(model);
        return false;
    }
    if (p2o_sink_commit(model))
        return true;
    if (w->data)
        remove(data_path);
    return false;
}

/* Found out before a data file takes its name, which the model's would then fail to do. */
static bool is_folder(Diags *d, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    p2o_diag(d, DIAG_IO, 0, "cannot write %s: it is a folder", path);
    return true;
}

/* A data file of the model that is read would be overwritten. */
static bool replaces_weights(ModelWriter *w, const char *path)
{
    const Map  *sources = &w->root->file->model->sources;
    struct stat old, new;
    if (stat(path, &new) != 0)
        return false;
    for (size_t i = 0; i < sources->n; i++) {
        const char *from = sources->at[i].value ? p2o_source_path(sources->at[i].value) : NULL;
        if (from && stat(from, &old) == 0 && old.st_dev == new.st_dev && old.st_ino == new.st_ino) {
            p2o_diag_advise(w->diags, DIAG_MISUSE, 0, "give the output another name or folder",
                            "%s holds weights of the model that is read", path);
            return true;
        }
    }
    return false;
}

static bool write_files(ModelWriter *w, const char *path)
{
    const char *data_path = p2o_printf(w->arena, "%s.data", path);
    bool        has_data = w->data_end > 0;
    if (is_folder(w->diags, path) || (has_data && is_folder(w->diags, data_path)) ||
        (w->root->file &&
         (replaces_weights(w, path) || (has_data && replaces_weights(w, data_path)))))
        return false;
    Sink *model = p2o_sink_file(w->diags, path);
    if (!model)
        return false;
    if (has_data && !(w->data = p2o_sink_file(w->diags, data_path))) {
        p2o_sink_abort(model);
        return false;
    }
    p2o_pb_replay(&w->pb, model);
    put_model(w);
    return commit_both(w, model, data_path);
}

bool p2o_onnx_write(Diags *d, const Graph *g, const OnnxWriteOptions *o)
{
    ModelWriter w;
    const char *path = o->model_path, *slash = strrchr(path, '/');
    if (!start_writer(&w, d, g, o))
        return false;
    w.data_name = p2o_printf(w.arena, "%s.data", slash ? slash + 1 : path);
    w.spill = o->external == EXTERNAL_ALWAYS;
    w.link = o->external == EXTERNAL_LINK;
    w.aside = o->external == EXTERNAL_AUTO || w.spill;
    if (w.link && !locate_archives(&w, g, path))
        return false;
    uint64_t nbytes = measure(&w);
    if (!w.spill && o->external != EXTERNAL_NEVER && nbytes > AUTO_LIMIT) {
        w.spill = true;
        nbytes = measure(&w);
    }
    return !is_too_large(d, nbytes) && write_files(&w, path);
}
