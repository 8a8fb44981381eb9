/* The ONNX reader on models built by hand, on every prefix of one, and on hostile fields. */
#include <stdlib.h>

#include "check.h"
#include "format/pb.h"
#include "onnx/onnx_read.h"
#include "onnx_bytes.h"

static Arena *arena;
static Diags *diags;

static const OnnxFile *read_bytes(Str s)
{
    diags = p2o_diags_new(arena, NULL, NULL);
    return p2o_onnx_read(diags, p2o_source_memory(arena, s.p, s.n));
}

static bool refused(Str s)
{
    return !read_bytes(s) && p2o_diags_errors(diags) == 1 && p2o_diags_status(diags) == ST_INPUT;
}

static void test_varints(void)
{
    static const uint64_t values[] = { 0, 1, 127, 128, 300, UINT32_MAX, (uint64_t)1 << 63,
                                       UINT64_MAX };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        Buf b = { .arena = arena };
        pb_put_varint(&b, values[i]);
        PbReader r = pb_reader(p2o_source_memory(arena, b.at, b.n), 0, b.n);
        CHECK(pb_varint(&r) == values[i] && !r.failed && !pb_more(&r));
        for (size_t cut = 0; cut < b.n; cut++) {
            PbReader s = pb_reader(p2o_source_memory(arena, b.at, b.n), 0, cut);
            CHECK(pb_varint(&s) == 0 && s.failed);
            CHECK(pb_varint(&s) == 0);
        }
    }
    static const uint8_t too_long[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 };
    static const uint8_t too_big[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 2 };
    PbReader r = pb_reader(p2o_source_memory(arena, too_long, sizeof too_long), 0, sizeof too_long);
    CHECK(pb_varint(&r) == 0 && r.failed);
    r = pb_reader(p2o_source_memory(arena, too_big, sizeof too_big), 0, sizeof too_big);
    CHECK(pb_varint(&r) == 0 && r.failed);
}

static void test_fields(void)
{
    static const uint8_t bytes[] = { 0x08, 0x96, 0x01, 0x11, 1, 0, 0, 0, 0, 0, 0, 0x80,
                                     0x1D, 2, 0, 0, 0, 0x22, 2, 'h', 'i' };
    PbReader r = pb_reader(p2o_source_memory(arena, bytes, sizeof bytes), 0, sizeof bytes);
    PbField  f;
    CHECK(pb_next(&r, &f) && f.number == 1 && f.wire == PB_VARINT && f.value == 150);
    CHECK(pb_next(&r, &f) && f.number == 2 && f.wire == PB_FIXED64);
    CHECK(f.value == 0x8000000000000001u);
    CHECK(pb_next(&r, &f) && f.number == 3 && f.wire == PB_FIXED32 && f.value == 2);
    CHECK(pb_next(&r, &f) && f.number == 4 && f.wire == PB_BYTES && f.nbytes == 2 && f.at == 19);
    CHECK(!pb_next(&r, &f) && !r.failed);
    for (uint8_t wire = 3; wire < 8; wire++) {
        uint8_t one[] = { (uint8_t)(8 | wire), 0, 0, 0, 0 };
        r = pb_reader(p2o_source_memory(arena, one, sizeof one), 0, sizeof one);
        CHECK(pb_next(&r, &f) == (wire == 5) && r.failed == (wire != 5));
    }
    static const uint8_t zero[] = { 0x00, 0x00 }, past_end[] = { 0x0A, 0x03, 'a', 'b' };
    static const uint8_t huge[] = { 0x0A, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 'a' };
    r = pb_reader(p2o_source_memory(arena, zero, sizeof zero), 0, sizeof zero);
    CHECK(!pb_next(&r, &f) && r.failed);
    r = pb_reader(p2o_source_memory(arena, past_end, sizeof past_end), 0, sizeof past_end);
    CHECK(!pb_next(&r, &f) && r.failed);
    r = pb_reader(p2o_source_memory(arena, huge, sizeof huge), 0, sizeof huge);
    CHECK(!pb_next(&r, &f) && r.failed);
}

/* y = If(c) { Relu(x) } else { Neg(Relu(x)) }, with an initializer that is also an input. */
static Str sample_model(void)
{
    static const int64_t shape[] = { 3, 4 };
    Arena *a = arena;
    Buf    g = { .arena = a }, yes = { .arena = a }, no = { .arena = a }, attrs = { .arena = a };

    pb_put_str(&yes, 1, onnx_node(a, "Relu", "x", "t", (Str){ "", 0 }));
    pb_put_str(&no, 1, onnx_node(a, "Relu", "x", "u", (Str){ "", 0 }));
    pb_put_str(&no, 1, onnx_node(a, "Neg", "u", "v", (Str){ "", 0 }));
    pb_put_str(&no, 5, onnx_ints(a, "inner", shape, 1));
    Str then_branch = onnx_attr_graph(a, "then_branch", buf_str(&yes));
    Str else_branch = onnx_attr_graph(a, "else_branch", buf_str(&no));
    p2o_put(&attrs, then_branch.p, then_branch.n);
    p2o_put(&attrs, else_branch.p, else_branch.n);
    pb_put_text(&g, 2, "main");
    pb_put_str(&g, 1, onnx_node(a, "If", "c", "y", buf_str(&attrs)));
    pb_put_str(&g, 1, onnx_node(a, "Relu", "y", "z", (Str){ "", 0 }));
    pb_put_str(&g, 5, onnx_ints(a, "k", shape, 2));
    pb_put_str(&g, 11, onnx_value(a, "x", 1, "batch|5|past + seq|?"));
    pb_put_str(&g, 11, onnx_value(a, "k", 7, "2"));
    pb_put_str(&g, 11, onnx_value(a, "c", 9, ""));
    pb_put_str(&g, 12, onnx_value(a, "z", 10, NULL));
    return onnx_model(a, buf_str(&g), "pt2onnx.dims", "{}");
}

static void test_sample(void)
{
    const OnnxFile *o = read_bytes(sample_model());
    CHECK(o != NULL);
    if (!o)
        return;
    CHECK(o->ir_version == 8 && same(o->producer, "by hand") && same(o->producer_version, "1.0"));
    CHECK(same(o->graph_name, "main"));
    CHECK(o->nimport == 1 && same(o->imports[0].domain, "") && o->imports[0].version == 17);
    CHECK(o->nin == 2 && same(o->inputs[0].name, "x") && same(o->inputs[1].name, "c"));
    const OnnxPort *x = &o->inputs[0];
    CHECK(same(x->kind, "tensor") && x->dtype == DT_F32 && x->rank == 4);
    CHECK(x->sizes[0] == -1 && same(x->dims[0], "batch"));
    CHECK(x->sizes[1] == 5 && same(x->dims[1], ""));
    CHECK(same(x->dims[2], "past + seq") && x->sizes[3] == -1 && same(x->dims[3], ""));
    CHECK(o->inputs[1].dtype == DT_BOOL && o->inputs[1].rank == 0);
    CHECK(o->nout == 1 && o->outputs[0].dtype == DT_F16 && o->outputs[0].rank == -1);
    CHECK(o->nmeta == 1 && same(o->meta[0].key, "pt2onnx.dims") && same(o->meta[0].value, "{}"));
    CHECK(o->nnode == 5 && o->nbody == 2 && o->nfunction == 0 && o->nop == 3);
    CHECK(same(o->ops[0].name, "Relu") && o->ops[0].n == 3);
    CHECK(same(o->ops[1].name, "If") && same(o->ops[2].name, "Neg"));
    CHECK(o->ninit == 2 && o->init_bytes == 24 && o->nexternal == 0);
}

/* Whatever is cut off or changed, the answer is a model or one diagnostic. */
static void test_damage(void)
{
    Str   whole = sample_model();
    char *copy = p2o_alloc(arena, whole.n);
    CHECK(refused((Str){ "", 0 }));
    for (size_t n = 1; n < whole.n; n++)
        CHECK(read_bytes((Str){ whole.p, n }) || p2o_diags_errors(diags) == 1);
    for (size_t i = 0; i < whole.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, whole.p, whole.n);
            copy[i] = (char)(copy[i] ^ 1 << bit);
            CHECK(read_bytes((Str){ copy, whole.n }) || p2o_diags_errors(diags) == 1);
        }
}

static Str graph_with(unsigned field, Str bytes)
{
    Buf g = { .arena = arena };
    pb_put_str(&g, field, bytes);
    return onnx_model(arena, buf_str(&g), NULL, NULL);
}

static void test_initializers(void)
{
    Buf t = { .arena = arena }, entry = { .arena = arena }, dims = { .arena = arena };

    pb_put_varint(&dims, 1000000);
    pb_put_varint(&dims, 1000000);
    pb_put_str(&t, 1, buf_str(&dims));              /* packed */
    pb_put_int(&t, 2, 1);
    pb_put_int(&t, 14, 1);
    pb_put_text(&entry, 1, "length");
    pb_put_text(&entry, 2, "4000000000000");
    pb_put_str(&t, 13, buf_str(&entry));
    const OnnxFile *o = read_bytes(graph_with(5, buf_str(&t)));
    CHECK(o && o->ninit == 1 && o->nexternal == 1);
    CHECK(o && o->init_bytes == 4000000000000 && o->external_bytes == 4000000000000);

    Buf typed = { .arena = arena };                 /* elements in float_data: measured by shape */
    pb_put_int(&typed, 1, 3);
    pb_put_int(&typed, 2, 11);
    o = read_bytes(graph_with(5, buf_str(&typed)));
    CHECK(o && o->init_bytes == 24);

    Buf negative = { .arena = arena };
    pb_put_int(&negative, 1, -3);
    CHECK(refused(graph_with(5, buf_str(&negative))));

    Buf huge = { .arena = arena };
    for (int i = 0; i < 3; i++)
        pb_put_int(&huge, 1, (int64_t)1 << 40);
    CHECK(refused(graph_with(5, buf_str(&huge))));
    pb_put_int(&huge, 1, 0);                        /* no elements after all */
    o = read_bytes(graph_with(5, buf_str(&huge)));
    CHECK(o && o->init_bytes == 0);

    Buf empty = { .arena = arena };
    pb_put_int(&empty, 1, 0);
    pb_put_int(&empty, 1, (int64_t)1 << 62);
    pb_put_int(&empty, 2, 1);
    o = read_bytes(graph_with(5, buf_str(&empty)));
    CHECK(o && o->ninit == 1 && o->init_bytes == 0);

    Buf sparse = { .arena = arena };
    pb_put_str(&sparse, 1, buf_str(&typed));
    pb_put_str(&sparse, 2, buf_str(&typed));
    o = read_bytes(graph_with(15, buf_str(&sparse)));
    CHECK(o && o->ninit == 1 && o->init_bytes == 48);
}

static void test_hostile(void)
{
    Buf two = { .arena = arena }, number = { .arena = arena }, nodes = { .arena = arena };
    Str model = graph_with(1, onnx_node(arena, "Relu", "x", "y", (Str){ "", 0 }));

    p2o_put(&two, model.p, model.n);
    p2o_put(&two, model.p, model.n);
    CHECK(read_bytes(model) != NULL);
    CHECK(refused(buf_str(&two)));
    pb_put_int(&number, 7, 5);                      /* the graph as a number */
    CHECK(refused(buf_str(&number)));
    CHECK(refused(graph_with(1, (Str){ "", 0 })));  /* a node without an operator */

    Str             ugly = onnx_node(arena, "A\x1b[31m\n", "", "", (Str){ "", 0 });
    const OnnxFile *o = read_bytes(graph_with(1, ugly));
    CHECK(o && same(o->ops[0].name, "A?[31m?"));

    Buf axes = { .arena = arena };
    for (int i = 0; i < 1001; i++)
        p2o_puts(&axes, i ? "|n" : "n");
    CHECK(refused(graph_with(11, onnx_value(arena, "x", 1, axes.at))));

    Str graph = { "", 0 };                          /* 2000 bodies inside each other */
    for (int i = 0; i < 2000; i++) {
        Buf g = { .arena = arena };
        pb_put_str(&g, 1, onnx_node(arena, "If", "", "", onnx_attr_graph(arena, "b", graph)));
        graph = buf_str(&g);
    }
    o = read_bytes(onnx_model(arena, graph, NULL, NULL));
    CHECK(o && o->nnode == 2000 && o->nbody == 2000);

    Buf function = { .arena = arena };              /* nodes of functions have another number */
    p2o_put(&nodes, model.p, model.n);
    pb_put_str(&function, 7, onnx_node(arena, "Abs", "x", "y", (Str){ "", 0 }));
    pb_put_str(&nodes, 25, buf_str(&function));
    o = read_bytes(buf_str(&nodes));
    CHECK(o && o->nfunction == 1 && o->nnode == 2 && o->nop == 2 && same(o->ops[0].name, "Abs"));
}

static void test_kinds(void)
{
    static const char *const kinds[] = { "tensor", "unknown", "unknown", "sequence", "map",
                                         "unknown", "opaque", "sparse tensor", "optional" };
    for (unsigned i = 1; i <= 9; i++) {
        Buf type = { .arena = arena }, value = { .arena = arena };
        pb_put_str(&type, i, (Str){ "", 0 });
        pb_put_text(&value, 1, "p");
        pb_put_str(&value, 2, buf_str(&type));
        const OnnxFile *o = read_bytes(graph_with(12, buf_str(&value)));
        CHECK(o && o->nout == 1 && same(o->outputs[0].kind, kinds[i - 1]));
        CHECK(o && o->outputs[0].dtype == DT_NONE && o->outputs[0].rank == -1);
    }
}

static bool never_weights(void *user, uint64_t offset, void *buf, size_t n)
{
    Str *s = user;
    CHECK(n < 4096);
    memcpy(buf, s->p + offset, n);
    return true;
}

/* Through a callback, a tensor of a megabyte is stepped over. */
static void test_streamed(void)
{
    Buf   t = { .arena = arena };
    char *big = p2o_alloc(arena, 1 << 20);
    pb_put_int(&t, 1, 1 << 18);
    pb_put_int(&t, 2, 1);
    pb_put_str(&t, 9, (Str){ big, 1 << 20 });
    Str model = graph_with(5, buf_str(&t));
    diags = p2o_diags_new(arena, NULL, NULL);
    Source         *s = p2o_source_callback(diags, model.n, never_weights, &model);
    const OnnxFile *o = p2o_onnx_read(diags, s);
    CHECK(o && o->init_bytes == 1 << 20);
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    test_varints();
    test_fields();
    test_sample();
    test_damage();
    test_initializers();
    test_hostile();
    test_kinds();
    test_streamed();
    p2o_arena_free(arena);
    return check_report();
}
