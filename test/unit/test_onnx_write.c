/* What the writer writes, read back by a reader of its own: fields by path, every length checked.
 *
 * A path names fields by number and, for repeated ones, index: "7.1:2.4" is field 4 of the third
 * field 1 of field 7.  Files go to a folder made for the test and removed after it. */
#define _GNU_SOURCE
#include "onnx/onnx_write.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "check.h"
#include "format/pb_write.h"

static Arena *arena;
static Diags *diags;
static Dims  *dims;
static char   folder[64];

typedef struct Bytes {
    const uint8_t *p;
    size_t         n;
} Bytes;

typedef struct Field {
    uint32_t number;
    unsigned wire;
    uint64_t value;                     /* of varints and fixed32 */
    Bytes    bytes;                     /* of length-delimited ones */
} Field;

static bool read_varint(Bytes *b, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && b->n; shift += 7) {
        uint8_t c = *b->p;
        b->p++;
        b->n--;
        *v |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80)
            return true;
    }
    return false;
}

static bool read_field(Bytes *b, Field *f)
{
    uint64_t tag;
    *f = (Field){ 0 };
    if (!read_varint(b, &tag))
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->wire = tag & 7;
    if (f->wire == 0)
        return read_varint(b, &f->value);
    if (f->wire == 5 && b->n >= 4) {
        for (int i = 0; i < 4; i++)
            f->value |= (uint64_t)b->p[i] << 8 * i;
        *b = (Bytes){ b->p + 4, b->n - 4 };
        return true;
    }
    if (f->wire != 2 || !read_varint(b, &f->value) || f->value > b->n)
        return false;
    f->bytes = (Bytes){ b->p, (size_t)f->value };
    *b = (Bytes){ b->p + f->value, b->n - (size_t)f->value };
    return true;
}

/* The index-th field of a number; reads all the message, to see that its lengths add up. */
static bool nth_field(Bytes b, uint32_t number, size_t index, Field *out)
{
    bool  found = false;
    Field f;
    while (b.n) {
        if (!read_field(&b, &f)) {
            printf("  malformed message\n");
            return false;
        }
        if (f.number == number && index-- == 0) {
            *out = f;
            found = true;
        }
    }
    return found;
}

static bool field_at(Bytes b, const char *path, Field *f)
{
    for (Str rest = str_of(path); rest.n;) {
        Str     index, number = p2o_str_cut(p2o_str_cut(rest, '.', &rest), ':', &index);
        int64_t n = 0, i = 0;
        if (!p2o_parse_i64(number, &n) || (index.n && !p2o_parse_i64(index, &i)))
            return false;
        if (!nth_field(b, (uint32_t)n, (size_t)i, f))
            return false;
        b = f->bytes;
    }
    return true;
}

static bool has_text(Bytes b, const char *path, const char *want)
{
    Field f;
    bool  ok = field_at(b, path, &f) && f.wire == 2 &&
          str_is((Str){ (const char *)f.bytes.p, f.bytes.n }, want);
    if (!ok)
        printf("  %s is not %s\n", path, want);
    return ok;
}

static bool has_int(Bytes b, const char *path, int64_t want)
{
    Field f;
    bool  ok = field_at(b, path, &f) && f.wire == 0 && f.value == (uint64_t)want;
    if (!ok)
        printf("  %s is not %lld\n", path, (long long)want);
    return ok;
}

static bool has_bytes(Bytes b, const char *path, const void *want, size_t n)
{
    Field f;
    return field_at(b, path, &f) && f.wire == 2 && f.bytes.n == n &&
           (!n || !memcmp(f.bytes.p, want, n));
}

static bool has_none(Bytes b, const char *path)
{
    Field f;
    return !field_at(b, path, &f);
}

static bool collect(void *user, const void *p, size_t n)
{
    p2o_put(user, p, n);
    return true;
}

static Bytes bytes_of(const Graph *g)
{
    Buf              *b = NEW(arena, Buf);
    OnnxWriteOptions  o = { .producer_version = "1.2.3", .external = EXTERNAL_NEVER };
    b->arena = arena;
    CHECK(p2o_onnx_write_sink(diags, g, &o, p2o_sink_callback(diags, collect, b)));
    return (Bytes){ (const uint8_t *)b->at, b->n };
}

static const char *in_folder(const char *name) { return p2o_printf(arena, "%s/%s", folder, name); }

static bool exists(const char *name) { return access(in_folder(name), F_OK) == 0; }

static Bytes load(const char *name)
{
    size_t      n = 0;
    const char *p = p2o_read_text(diags, in_folder(name), &n);
    return (Bytes){ (const uint8_t *)p, n };
}

static void put_file(const char *name, const void *p, size_t n)
{
    Sink *s = p2o_sink_file(diags, in_folder(name));
    p2o_sink_write(s, p, n);
    CHECK(p2o_sink_commit(s));
}

static Graph *new_graph(int opset,
                        Graph *parent) { return p2o_graph_new(arena, diags, dims, opset, parent); }

static Value *input_of(Graph *g, const char *name, DType t, int rank, const Dim *at)
{
    return p2o_graph_input(g, name, t,
                           (Shape){ rank, p2o_shape_copy(arena, (Shape){ rank, at }, 0) });
}

static Value *unary(Graph *g, OnnxOp op,
                    Value *x) { return p2o_graph_node(g, op, 1, &x, 0, NULL, 1, 0)->out[0]; }

static void check_wire(void)
{
    Buf      b = { .arena = arena };
    PbWriter w = { .arena = arena };
    Sink    *s = p2o_sink_callback(diags, collect, &b);
    int64_t  ints[] = { 0, -1, 300, INT64_MIN };
    float    floats[] = { 1, -2 };
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1)
            p2o_pb_replay(&w, s);
        p2o_pb_int(&w, 1, -1);
        PbMark outer = p2o_pb_begin(&w, 2), inner = p2o_pb_begin(&w, 16);
        p2o_pb_packed_ints(&w, 3, ints, 4);
        p2o_pb_packed_floats(&w, 4, floats, 2);
        p2o_pb_packed_ints(&w, 5, ints, 0);
        p2o_pb_end(&w, inner);
        PbMark empty = p2o_pb_begin(&w, 17);
        p2o_pb_end(&w, empty);
        p2o_pb_end(&w, outer);
        p2o_pb_float(&w, 5, 0.5f);
        p2o_pb_large(&w, 6, 200);
        if (pass == 1)
            p2o_sink_pad(s, 200);
        p2o_pb_text(&w, 7, "");
    }
    static const uint8_t start[] = { 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                     0x01 };
    static const uint8_t half[] = { 0x00, 0x00, 0x80, 0x3F, 0x00, 0x00, 0x00, 0xC0 };
    Bytes m = { (const uint8_t *)b.at, b.n };
    CHECK(w.nbytes == b.n && p2o_sink_offset(s) == b.n);
    CHECK(b.n > sizeof start && !memcmp(b.at, start, sizeof start));
    CHECK(has_bytes(m, "2.16.4", half, sizeof half));
    CHECK(has_bytes(m, "2.16.3", "\x00\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\xAC\x02"
                                 "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 23));
    CHECK(has_none(m, "2.16.5") && has_bytes(m, "2.17", "", 0) && has_bytes(m, "7", "", 0));
    Field f;
    CHECK(field_at(m, "5", &f) && f.wire == 5 && f.value == 0x3F000000);
    CHECK(field_at(m, "6", &f) && f.bytes.n == 200);
}

/* x[b, 2*s, 3] -> Clip -> y, with a weight, an unnamed value and metadata. */
static void check_model(void)
{
    Graph *g = new_graph(20, NULL);
    Dim    at[] = { p2o_dim_sym(dims, "b"),
                    p2o_dim_parse(dims, STR("2*s + 1"), &(const char *){ 0 }),
                    p2o_dim_int(dims, 3), p2o_dim_int(dims, 0) };
    float  v[3] = { 1, 2, 3 };
    Value *x = input_of(g, "v0", DT_F32, 4, at);
    Value *w = p2o_graph_init(g, "w", p2o_tensor_make(arena, DT_F32, 2, (int64_t[]){ 3, 1 }, v));
    Value *two[] = { x, w };
    Node  *add = p2o_graph_node(g, ONNX_Add, 2, two, 0, NULL, 1, 0);
    add->name = "net/add";
    Value *in[] = { add->out[0], NULL,
                    p2o_graph_init(g, NULL, p2o_tensor_scalar(arena, DT_F32, 6, 0, true)) };
    Value *y = p2o_graph_node(g, ONNX_Clip, 3, in, 0, NULL, 1, 0)->out[0];
    y->name = "y";
    g->name = "net";
    p2o_graph_output(g, y);
    p2o_graph_meta(g, "key", "value");
    Bytes m = bytes_of(g);
    CHECK(has_int(m, "1", 9) && has_text(m, "2", "pt2onnx") && has_text(m, "3", "1.2.3"));
    CHECK(has_text(m, "8.1", "") && has_int(m, "8.2", 20) && has_none(m, "8:1"));
    CHECK(has_text(m, "14.1", "key") && has_text(m, "14.2", "value") && has_none(m, "14:1"));
    CHECK(has_text(m, "7.2", "net") && has_text(m, "7.1.4", "Add") &&
          has_text(m, "7.1.3", "net/add"));
    CHECK(has_text(m, "7.1.1", "v0") && has_text(m, "7.1.1:1", "w"));
    CHECK(has_text(m, "7.1.2", "v2"));                  /* v0 is taken, v1 is the scalar */
    CHECK(has_text(m, "7.1:1.1", "v2") && has_text(m, "7.1:1.1:1", "") &&
          has_text(m, "7.1:1.1:2", "v1"));
    CHECK(has_none(m, "7.1:1.3") && has_none(m, "7.1:1.7") && has_none(m, "7.1:2"));
    CHECK(has_text(m, "7.5.8", "w") && has_int(m, "7.5.2", 1) &&
          has_bytes(m, "7.5.1", "\x03\x01", 2));
    CHECK(has_bytes(m, "7.5.9", v, sizeof v) && has_none(m, "7.5.13") && has_none(m, "7.5.14"));
    CHECK(has_none(m, "7.5:1.1") && has_text(m, "7.5:1.8", "v1"));
    CHECK(has_text(m, "7.11.1", "v0") && has_none(m, "7.11:1") && has_int(m, "7.11.2.1.1", 1));
    CHECK(has_text(m, "7.11.2.1.2.1.2", "b") && has_text(m, "7.11.2.1.2.1:1.2", "2*s + 1"));
    CHECK(has_int(m, "7.11.2.1.2.1:2.1", 3) && has_int(m, "7.11.2.1.2.1:3.1", 0));
    CHECK(has_text(m, "7.12.1", "y") && has_none(m, "7.12:1"));
    Bytes again = bytes_of(g);
    CHECK(again.n == m.n && !memcmp(again.p, m.p, m.n));
}

static void check_versions(void)
{
    static const int ir[] = { 8, 8, 9, 9, 10, 10, 11 };
    for (int opset = 17; opset <= 23; opset++) {
        Graph *g = new_graph(opset, NULL);
        p2o_graph_output(g, unary(g, ONNX_Relu, input_of(g, "x", DT_F32, 0, NULL)));
        Bytes m = bytes_of(g);
        CHECK(has_int(m, "1", ir[opset - 17]) && has_int(m, "8.2", opset));
        CHECK(has_text(m, "7.2", "main") && has_bytes(m, "7.11.2.1.2", "", 0));
    }
}

static void check_attributes(void)
{
    Graph      *g = new_graph(20, NULL);
    int64_t     ints[] = { 7, -1 };
    float       floats[] = { 0.5f };
    const char *strs[] = { "p", "", "q" };
    Attr        attrs[] = { attr_int("i", 0), attr_float("f", 0), attr_str("s", "x"),
                            attr_ints("is", ints, 2), attr_floats("fs", floats, 1),
                            attr_strs("ss", strs, 3),
                            attr_tensor("t", p2o_tensor_ints(arena, 1, ints, 2)),
                            attr_ints("none", ints, 0) };
    Value      *x = input_of(g, "x", DT_F32, 0, NULL);
    p2o_graph_output(g, p2o_graph_node(g, ONNX_Relu, 1, &x, 8, attrs, 1, 0)->out[0]);
    Bytes m = bytes_of(g);
    Field f;
    CHECK(has_text(m, "7.1.5.1", "i") && has_int(m, "7.1.5.3", 0) && has_int(m, "7.1.5.20", 2));
    CHECK(field_at(m, "7.1.5:1.2", &f) && f.wire == 5 && f.value == 0 &&
          has_int(m, "7.1.5:1.20", 1));
    CHECK(has_text(m, "7.1.5:2.4", "x") && has_int(m, "7.1.5:2.20", 3));
    CHECK(has_bytes(m, "7.1.5:3.8", "\x07\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11) &&
          has_int(m, "7.1.5:3.20", 7));
    CHECK(has_bytes(m, "7.1.5:4.7", "\x00\x00\x00\x3F", 4) && has_int(m, "7.1.5:4.20", 6));
    CHECK(has_text(m, "7.1.5:5.9", "p") && has_text(m, "7.1.5:5.9:1", "") &&
          has_text(m, "7.1.5:5.9:2", "q") && has_int(m, "7.1.5:5.20", 8));
    CHECK(has_bytes(m, "7.1.5:6.5.1", "\x02", 1) && has_int(m, "7.1.5:6.5.2", 7) &&
          has_none(m, "7.1.5:6.5.8") && has_int(m, "7.1.5:6.20", 4));
    CHECK(has_none(m, "7.1.5:7.8") && has_int(m, "7.1.5:7.20", 7));
}

/* A transposed weight is gathered; dtypes have their numbers and widths. */
static void check_weights(void)
{
    static const uint8_t raw[96] = { 1, 0, 1 };
    Graph *g = new_graph(20, NULL);
    size_t count = 0;
    for (int t = DT_NONE + 1; t < DT_COUNT; t++) {
        if (t == DT_C32 || t == DT_STR || t == DT_F8E8M0)
            continue;
        p2o_graph_init(g, p2o_dtype_text((DType)t),
                       p2o_tensor_make(arena, (DType)t, 2, (int64_t[]){ 2, 3 }, raw));
        count++;
    }
    int64_t v[] = { 1, 2, 3, 4, 5, 6 }, turned[] = { 1, 4, 2, 5, 3, 6 };
    Tensor *x = p2o_tensor_make(arena, DT_I64, 2, (int64_t[]){ 2, 3 }, v);
    p2o_graph_init(g, "turned", p2o_tensor_permute(arena, x, (int[]){ 1, 0 }));
    p2o_graph_init(g, "empty", p2o_tensor_make(arena, DT_F32, 2, (int64_t[]){ 0, 3 }, raw));
    Bytes  m = bytes_of(g);
    size_t k = 0;
    for (int t = DT_NONE + 1; t < DT_COUNT; t++) {
        if (t == DT_C32 || t == DT_STR || t == DT_F8E8M0)
            continue;
        const char *at = p2o_printf(arena, "7.5:%zu", k++);
        CHECK(has_text(m, p2o_printf(arena, "%s.8", at), p2o_dtype_text((DType)t)));
        CHECK(has_int(m, p2o_printf(arena, "%s.2", at), p2o_dtype_onnx((DType)t)));
        CHECK(has_bytes(m, p2o_printf(arena, "%s.9", at), raw, 6 * p2o_dtype_bytes((DType)t)));
    }
    CHECK(has_bytes(m, p2o_printf(arena, "7.5:%zu.9", count), turned, sizeof turned));
    CHECK(has_bytes(m, p2o_printf(arena, "7.5:%zu.1", count), "\x03\x02", 2));
    CHECK(has_bytes(m, p2o_printf(arena, "7.5:%zu.9", count + 1), "", 0));
    CHECK(has_bytes(m, p2o_printf(arena, "7.5:%zu.1", count + 1), "\x00\x03", 2));
}

static void check_bodies_written(void)
{
    Graph *g = new_graph(20, NULL), *body = new_graph(20, g);
    Dim    at[] = { p2o_dim_sym(dims, "n"), p2o_dim_int(dims, 4) };
    Value *n = input_of(g, "n", DT_I64, 0, NULL), *list = input_of(g, "list", DT_F32, 2, at);
    Value *x = input_of(g, "x", DT_F32, 2, at);
    list->is_sequence = true;
    input_of(body, NULL, DT_I64, 0, NULL);
    Value *c = input_of(body, NULL, DT_BOOL, 0, NULL), *acc = input_of(body, NULL, DT_F32, 2, at);
    acc->is_sequence = true;
    Value *pair[] = { acc, x };
    p2o_graph_output(body, unary(body, ONNX_Identity, c));
    p2o_graph_output(body, p2o_graph_node(body, ONNX_SequenceInsert, 2, pair, 0, NULL, 1,
                                          0)->out[0]);
    Attr   attr = attr_graph("body", body);
    Value *in[] = { n, NULL, list };
    Value *out = p2o_graph_node(g, ONNX_Loop, 3, in, 1, &attr, 1, 0)->out[0];
    p2o_graph_output(g, out);
    Value *empty = p2o_graph_node(g, ONNX_SequenceEmpty, 0, NULL, 0, NULL, 1, 0)->out[0];
    p2o_graph_output(g, empty);
    Bytes m = bytes_of(g);
    CHECK(has_int(m, "7.1.5.20", 5) && has_text(m, "7.1.5.6.2", "body"));
    CHECK(has_text(m, "7.1.1:1", ""));
    CHECK(has_text(m, "7.1.5.6.11.1", "v0") && has_int(m, "7.1.5.6.11.2.1.1", 7));
    CHECK(has_text(m, "7.1.5.6.1:1.1", "v2") && has_text(m, "7.1.5.6.1:1.1:1", "x"));
    CHECK(has_int(m, "7.1.5.6.11:2.2.4.1.1.1", 1));                     /* a sequence of f32 */
    CHECK(has_bytes(m, "7.1.5.6.11:2.2.4.1.1.2.1", "", 0));             /* no names in a body */
    CHECK(has_int(m, "7.1.5.6.11:2.2.4.1.1.2.1:1.1", 4));
    CHECK(has_none(m, "7.12:1.2.4.1.1.2") && has_int(m, "7.12:1.2.4.1.1.1", 1));
}

static bool last_error(DiagKind kind, const char *about)
{
    size_t n = p2o_diags_count(diags);
    return n && p2o_diags_at(diags, n - 1)->kind == kind &&
           strstr(p2o_diags_at(diags, n - 1)->text, about);
}

static bool refuse(void *user, const void *p, size_t n)
{
    (void)p;
    size_t *left = user;
    *left = n > *left ? 0 : *left - n;
    return *left > 0;
}

static void check_refusals(void)
{
    static const uint8_t raw[16];
    OnnxWriteOptions     never = { .external = EXTERNAL_NEVER };
    Graph               *g = new_graph(20, NULL);
    size_t               room = 20, before = p2o_diags_errors(diags);
    Value *w = p2o_graph_init(g, "w", p2o_tensor_make(arena, DT_C32, 0, NULL, raw));
    p2o_graph_output(g, unary(g, ONNX_Identity, w));
    CHECK(!p2o_onnx_write_sink(diags, g, &never, p2o_sink_callback(diags, refuse, &room)));
    CHECK(last_error(DIAG_UNSUPPORTED, "complex32") && p2o_diags_errors(diags) == before + 1);

    Graph *old = new_graph(18, NULL);                   /* eight-bit floats came with 19 */
    p2o_graph_init(old, "w", p2o_tensor_make(arena, DT_F8E5M2, 0, NULL, raw));
    CHECK(!p2o_onnx_write_sink(diags, old, &never, p2o_sink_callback(diags, refuse, &room)));
    CHECK(last_error(DIAG_UNSUPPORTED, "float8_e5m2"));

    Graph *small = new_graph(20, NULL);
    p2o_graph_output(small, unary(small, ONNX_Relu, input_of(small, "x", DT_F32, 0, NULL)));
    CHECK(!p2o_onnx_write_sink(diags, small, &never, p2o_sink_callback(diags, refuse, &room)));
    CHECK(last_error(DIAG_IO, "cannot write"));

    /* 3 GB of zeros that no one stored: too large in one piece, found without writing any */
    Graph  *big = new_graph(20, NULL);
    Storage zeros = { .nbytes = (uint64_t)3 << 30 };
    int64_t size = (int64_t)3 << 28, stride = 1;
    Tensor  t = { .storage = &zeros, .dtype = DT_F32, .rank = 1, .sizes = &size,
                  .strides = &stride };
    p2o_graph_init(big, "w", &t);
    room = SIZE_MAX;
    CHECK(!p2o_onnx_write_sink(diags, big, &never, p2o_sink_callback(diags, refuse, &room)));
    CHECK(last_error(DIAG_UNSUPPORTED, "2147483647") && room == SIZE_MAX);
    CHECK(p2o_diags_at(diags, p2o_diags_count(diags) - 1)->advice != NULL);
    never.model_path = in_folder("big.onnx");
    CHECK(!p2o_onnx_write(diags, big, &never) && !exists("big.onnx") && !exists("big.onnx.part0"));

    size = 100;                                         /* a weight past the end of its storage */
    zeros = (Storage){ .source = p2o_source_memory(arena, raw, 16), .nbytes = 16 };
    CHECK(!p2o_onnx_write_sink(diags, big, &never, p2o_sink_callback(diags, refuse, &room)));
    CHECK(last_error(DIAG_BAD_FILE, "weight w"));
}

enum { LARGE = 300000, MIDDLE = 600, LITTLE = 3 };      /* elements of f32 */

static float numbers[LARGE + 1];

static Tensor *numbers_of(int64_t n) { return p2o_tensor_make(arena, DT_F32, 1, &n, numbers); }

static Graph *weighty_graph(void)
{
    Graph *g = new_graph(20, NULL), *yes = new_graph(20, g), *no = new_graph(20, g);
    Value *c = input_of(g, "c", DT_BOOL, 0, NULL);
    p2o_graph_init(g, "little", numbers_of(LITTLE));
    p2o_graph_init(g, "middle", numbers_of(MIDDLE));
    p2o_graph_init(g, "large", numbers_of(LARGE));
    p2o_graph_init(g, "last", numbers_of(MIDDLE));
    p2o_graph_output(yes, unary(yes, ONNX_Relu, p2o_graph_init(yes, "inner", numbers_of(MIDDLE))));
    p2o_graph_output(no, unary(no, ONNX_Relu, g->inits.at[1]));
    Attr attrs[] = { attr_graph("then_branch", yes), attr_graph("else_branch", no) };
    p2o_graph_output(g, p2o_graph_node(g, ONNX_If, 1, &c, 2, attrs, 1, 0)->out[0]);
    return g;
}

static bool lies_at(Bytes m, const char *tensor, const char *file, const char *offset,
                    const char *length)
{
    const char *path[6];
    for (int i = 0; i < 3; i++) {
        path[2 * i] = p2o_printf(arena, "%s.13:%d.1", tensor, i);
        path[2 * i + 1] = p2o_printf(arena, "%s.13:%d.2", tensor, i);
    }
    return has_text(m, path[0], "location") && has_text(m, path[1], file) &&
           has_text(m, path[2], "offset") && has_text(m, path[3], offset) &&
           has_text(m, path[4], "length") && has_text(m, path[5], length) &&
           has_int(m, p2o_printf(arena, "%s.14", tensor), 1) &&
           has_none(m, p2o_printf(arena, "%s.9", tensor));
}

static void check_external(void)
{
    Graph           *g = weighty_graph();
    OnnxWriteOptions o = { .external = EXTERNAL_ALWAYS, .model_path = in_folder("m.onnx") };
    put_file("m.onnx", "old", 3);
    put_file("m.onnx.data", "old data", 8);
    CHECK(p2o_onnx_write(diags, g, &o));
    Bytes m = load("m.onnx"), data = load("m.onnx.data");
    const char *inner = "7.1.5.6.5";                    /* nodes come first, with their bodies */
    CHECK(lies_at(m, inner, "m.onnx.data", "0", "2400"));
    CHECK(has_bytes(m, "7.5.9", numbers, LITTLE * 4) && has_none(m, "7.5.13"));
    CHECK(lies_at(m, "7.5:1", "m.onnx.data", "2432", "2400"));
    CHECK(lies_at(m, "7.5:2", "m.onnx.data", "8192", "1200000"));
    CHECK(lies_at(m, "7.5:3", "m.onnx.data", "1208192", "2400"));
    CHECK(data.n == 1208192 + 2400);
    CHECK(!memcmp(data.p, numbers, 2400) && !memcmp(data.p + 2432, numbers, 2400));
    CHECK(!memcmp(data.p + 8192, numbers, 1200000) && !memcmp(data.p + 1208192, numbers, 2400));
    for (size_t i = 2400; i < 2432; i++)
        CHECK(data.p[i] == 0);
    CHECK(!exists("m.onnx.part0") && !exists("m.onnx.data.part0"));

    /* small enough for one file: AUTO and NEVER leave the data file of an earlier run alone */
    o.external = EXTERNAL_AUTO;
    CHECK(p2o_onnx_write(diags, g, &o));
    Bytes whole = load("m.onnx"), sunk = bytes_of(g);
    CHECK(has_bytes(whole, "7.5:2.9", numbers, 1200000) && has_none(whole, "7.5:2.13"));
    CHECK(whole.n == sunk.n - strlen("1.2.3") - 2 && load("m.onnx.data").n == data.n);
}

/* Whatever goes wrong, what was there before is there after, and nothing else. */
static void check_failure(void)
{
    Graph           *g = weighty_graph();
    OnnxWriteOptions o = { .external = EXTERNAL_ALWAYS, .model_path = in_folder("k.onnx") };
    put_file("k.onnx", "model", 5);
    put_file("k.onnx.data", "data", 4);
    Storage gone = { .nbytes = LARGE * 4, .source = p2o_source_open(diags, in_folder("k.onnx")) };
    Tensor  lost = *numbers_of(MIDDLE);
    lost.storage = &gone;
    gone.nbytes = 5;
    p2o_graph_init(g, "lost", &lost);
    CHECK(!p2o_onnx_write(diags, g, &o) && last_error(DIAG_BAD_FILE, "lost"));
    p2o_source_close(gone.source);
    CHECK(load("k.onnx").n == 5 && load("k.onnx.data").n == 4 && !exists("k.onnx.part0"));
    CHECK(!exists("k.onnx.data.part0"));

    o.model_path = in_folder("no/such/folder.onnx");
    CHECK(!p2o_onnx_write(diags, weighty_graph(), &o) && last_error(DIAG_IO, "cannot write"));
    o.model_path = folder;
    CHECK(!p2o_onnx_write(diags, weighty_graph(), &o) && last_error(DIAG_IO, "folder"));
    CHECK(mkdir(in_folder("d.onnx.data"), 0777) == 0);
    o.model_path = in_folder("d.onnx");
    CHECK(!p2o_onnx_write(diags, weighty_graph(), &o) && last_error(DIAG_IO, "folder") &&
          !exists("d.onnx"));
}

static bool fail_read(void *user, uint64_t offset, void *buf, size_t n)
{
    (void)user, (void)offset, (void)buf, (void)n;
    return false;
}

/* A source that breaks off while the weights pass. */
static void check_unreadable(void)
{
    OnnxWriteOptions o = { .external = EXTERNAL_ALWAYS, .model_path = in_folder("u.onnx") };
    Storage          s = { .source = p2o_source_callback(diags, LARGE * 4, fail_read, NULL),
                           .nbytes = LARGE * 4 };
    Tensor           t = *numbers_of(MIDDLE);
    t.storage = &s;
    for (int i = 0; i < 2; i++) {
        Graph *g = weighty_graph();
        p2o_graph_init(g, "broken", &t);
        o.external = i ? EXTERNAL_NEVER : EXTERNAL_ALWAYS;
        CHECK(!p2o_onnx_write(diags, g, &o) && last_error(DIAG_IO, "weight broken"));
        CHECK(!exists("u.onnx") && !exists("u.onnx.data") && !exists("u.onnx.part0") &&
              !exists("u.onnx.data.part0"));
    }
}

static Tensor *stored(const Storage *s, int64_t n, uint64_t offset)
{
    Tensor *t = numbers_of(n);
    t->storage = s;
    t->offset = offset;
    return t;
}

static void check_link(void)
{
    CHECK(mkdir(in_folder("sub"), 0777) == 0);
    put_file("sub/archive.pt2", numbers, sizeof numbers);
    Source  *src = p2o_source_open(diags, in_folder("sub/archive.pt2"));
    Storage  s = { .source = src, .offset = 400, .nbytes = 80000 }, big = s;
    int64_t  sizes[] = { 20, 30 };
    big.big_endian = true;
    Graph  *g = new_graph(20, NULL);
    Tensor *square = p2o_tensor_make(arena, DT_F32, 2, sizes, numbers);
    square->storage = &s;
    p2o_graph_init(g, "linked", stored(&s, MIDDLE, 7));
    p2o_graph_init(g, "little", stored(&s, LITTLE, 0));
    p2o_graph_init(g, "turned", p2o_tensor_permute(arena, square, (int[]){ 1, 0 }));
    p2o_graph_init(g, "swapped", stored(&big, MIDDLE, 0));
    p2o_graph_init(g, "own", numbers_of(MIDDLE));
    OnnxWriteOptions o = { .external = EXTERNAL_LINK, .model_path = in_folder("l.onnx") };
    CHECK(p2o_onnx_write(diags, g, &o) && !exists("l.onnx.data"));
    Bytes m = load("l.onnx");
    CHECK(lies_at(m, "7.5", "sub/archive.pt2", "428", "2400"));
    CHECK(has_bytes(m, "7.5:1.9", numbers + 100, LITTLE * 4));
    for (int i = 2; i < 5; i++)
        CHECK(has_none(m, p2o_printf(arena, "7.5:%d.13", i)));

    CHECK(symlink("sub", in_folder("link")) == 0);      /* another way to the same folder */
    o.model_path = in_folder("link/l.onnx");
    CHECK(p2o_onnx_write(diags, g, &o));
    CHECK(lies_at(load("sub/l.onnx"), "7.5", "archive.pt2", "428", "2400"));

    CHECK(mkdir(in_folder("su"),
                0777) == 0);           /* its name begins like the archive's folder */
    o.model_path = in_folder("su/l.onnx");
    CHECK(!p2o_onnx_write(diags, g, &o) && last_error(DIAG_MISUSE, "outside the model's folder"));
    CHECK(!exists("su/l.onnx"));
    o.model_path = in_folder("sub/archive.pt2");
    CHECK(!p2o_onnx_write(diags, g, &o) && last_error(DIAG_MISUSE, "replace"));
    o.model_path = in_folder("nowhere/l.onnx");
    CHECK(!p2o_onnx_write(diags, g, &o) && last_error(DIAG_IO, "nowhere"));
    p2o_source_close(src);
}

static void remove_folder(void)
{
    static const char *const files[] = { "m.onnx", "m.onnx.data", "k.onnx", "k.onnx.data",
                                         "d.onnx.data", "l.onnx",
                                         "link", "sub/archive.pt2", "sub/l.onnx", "sub", "su" };
    for (size_t i = 0; i < COUNT_OF(files); i++)
        CHECK(remove(in_folder(files[i])) == 0);
    CHECK(rmdir(folder) == 0);                          /* nothing else was left behind */
}

int main(void)
{
    strcpy(folder, "/tmp/pt2onnx_test_XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    for (int i = 0; i <= LARGE; i++)
        numbers[i] = (float)i;
    arena = p2o_arena_new(NULL, NULL);
    diags = p2o_diags_new(arena, NULL, NULL);
    dims = p2o_dims_new(arena);
    check_wire();
    check_model();
    check_versions();
    check_attributes();
    check_weights();
    check_bodies_written();
    check_refusals();
    check_external();
    check_failure();
    check_unreadable();
    check_link();
    remove_folder();
    p2o_arena_free(arena);
    return check_report();
}
