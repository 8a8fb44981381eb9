/* ONNX Runtime through our own declarations of its C API, on models built by hand.
 *
 * argv[1] is a folder for the models.  Without a runtime the exit code is 77: skipped. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "check.h"
#include "onnx_bytes.h"
#include "run/ort.h"

static Arena      *arena;
static Diags      *diags;
static Ort        *ort;
static const char *folder;

static void fresh_diags(void) { diags = p2o_diags_new(arena, NULL, NULL); }

static OrtModel *open_model(const char *name, Str bytes)
{
    const char *path = p2o_printf(arena, "%s/%s.onnx", folder, name);
    fresh_diags();
    Sink *s = p2o_sink_file(diags, path);
    CHECK(s != NULL);
    if (!s)
        return NULL;
    p2o_sink_write(s, bytes.p, bytes.n);
    CHECK(p2o_sink_commit(s));
    return p2o_ort_open(ort, diags, path);
}

static Str unary_model(const char *op, int elem, const char *in_dims, const char *out_dims)
{
    Buf g = { .arena = arena };
    pb_put_text(&g, 2, "g");
    pb_put_str(&g, 1, onnx_node(arena, op, "x", "y", (Str){ "", 0 }));
    pb_put_str(&g, 11, onnx_value(arena, "x", elem, in_dims));
    pb_put_str(&g, 12, onnx_value(arena, "y", elem, out_dims));
    return onnx_model(arena, buf_str(&g), "who", "by hand");
}

static Array array_of(DType t, int rank, const int64_t *sizes, const void *data)
{
    Array x;
    CHECK(p2o_array_make(arena, t, rank, sizes, &x));
    if (x.nbytes && data)
        memcpy(x.data, data, x.nbytes);
    return x;
}

static void test_ports(void)
{
    OrtModel *m = open_model("ports", unary_model("Relu", 1, "batch|5|?", "batch|5|?"));
    CHECK(m && p2o_diags_count(diags) == 0);
    if (!m)
        return;
    CHECK(p2o_ort_ninput(m) == 1 && p2o_ort_noutput(m) == 1);
    const OrtPort *x = p2o_ort_input(m, 0);
    CHECK(same(x->name, "x") && x->dtype == DT_F32 && x->rank == 3);
    CHECK(x->sizes[0] == -1 && x->sizes[1] == 5 && x->sizes[2] == -1);
    CHECK(same(x->dims[0], "batch") && same(x->dims[1], "") && same(x->dims[2], ""));
    CHECK(same(p2o_ort_output(m, 0)->name, "y"));
    CHECK(p2o_ort_meta(m, "who") && same(p2o_ort_meta(m, "who"), "by hand"));
    CHECK(!p2o_ort_meta(m, "absent"));
    p2o_ort_close(m);
}

static void test_relu(void)
{
    static const int64_t sizes[] = { 2, 3 }, wrong[] = { 6 }, none[] = { 0, 3 };
    static const float   in[] = { -1, 2, -3, 4, 0, -6 }, want[] = { 0, 2, 0, 4, 0, 0 };
    OrtModel *m = open_model("relu", unary_model("Relu", 1, "a|b", "a|b"));
    if (!m) {
        CHECK(m != NULL);
        return;
    }
    Array x = array_of(DT_F32, 2, sizes, in), y;
    CHECK(p2o_ort_run(arena, m, &x, &y) == NULL);
    CHECK(y.dtype == DT_F32 && y.rank == 2 && y.sizes[0] == 2 && y.sizes[1] == 3);
    CHECK(y.nbytes == sizeof want && !memcmp(y.data, want, sizeof want));

    x = array_of(DT_F32, 2, none, NULL);
    CHECK(p2o_ort_run(arena, m, &x, &y) == NULL && y.rank == 2 && y.sizes[0] == 0 && y.nbytes == 0);

    x = array_of(DT_F32, 1, wrong, in);
    const char *why = p2o_ort_run(arena, m, &x, &y);
    CHECK(why && strstr(why, "rank") && !strchr(why, '\n'));
    x = array_of(DT_F64, 2, sizes, NULL);
    why = p2o_ort_run(arena, m, &x, &y);
    CHECK(why && strstr(why, "data type"));
    x = array_of(DT_F32, 2, sizes, in);             /* a failed run leaves the model usable */
    CHECK(p2o_ort_run(arena, m, &x, &y) == NULL && !memcmp(y.data, want, sizeof want));
    p2o_ort_close(m);
}

/* Every element type passes through Identity bit by bit. */
static void test_types(void)
{
    static const DType types[] = { DT_BOOL, DT_U8,  DT_I8,  DT_I16, DT_I32,  DT_I64, DT_U16,
                                   DT_U32,  DT_U64, DT_F16, DT_BF16, DT_F32, DT_F64 };
    static const int64_t sizes[] = { 3, 5 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *name = p2o_dtype_text(types[i]);
        Str         bytes = unary_model("Identity", p2o_dtype_onnx(types[i]), "n|5", "n|5");
        OrtModel   *m = open_model(p2o_printf(arena, "identity_%s", name), bytes);
        uint64_t    seed = i;
        Array       x, y;
        CHECK(m != NULL);
        if (!m)
            continue;
        CHECK(p2o_ort_input(m, 0)->dtype == types[i]);
        CHECK(p2o_array_random(arena, types[i], 2, sizes, &seed, &x));
        const char *why = p2o_ort_run(arena, m, &x, &y);
        if (why)
            printf("%s: %s\n", name, why);
        CHECK(!why && y.dtype == types[i] && y.nbytes == x.nbytes);
        CHECK(!why && !memcmp(x.data, y.data, x.nbytes));
        p2o_ort_close(m);
    }
}

static void test_scalar(void)
{
    OrtModel *m = open_model("scalar", unary_model("Neg", 7, "", ""));
    Array     x = array_of(DT_I64, 0, NULL, (int64_t[]){ 42 }), y;
    CHECK(m && p2o_ort_input(m, 0)->rank == 0);
    CHECK(m && !p2o_ort_run(arena, m, &x, &y) && y.rank == 0 && p2o_array_at(&y, 0) == -42);
    p2o_ort_close(m);
}

/* Two inputs, two outputs, in the model's order. */
static void test_order(void)
{
    static const int64_t two[] = { 2 };
    Buf                  g = { .arena = arena };
    pb_put_text(&g, 2, "g");
    pb_put_str(&g, 1, onnx_node(arena, "Sub", "a,b", "d", (Str){ "", 0 }));
    pb_put_str(&g, 1, onnx_node(arena, "Add", "a,b", "s", (Str){ "", 0 }));
    pb_put_str(&g, 11, onnx_value(arena, "a", 1, "n"));
    pb_put_str(&g, 11, onnx_value(arena, "b", 1, "n"));
    pb_put_str(&g, 12, onnx_value(arena, "s", 1, "n"));
    pb_put_str(&g, 12, onnx_value(arena, "d", 1, "n"));
    OrtModel *m = open_model("order", onnx_model(arena, buf_str(&g), NULL, NULL));
    Array     in[2] = { array_of(DT_F32, 1, two, (float[]){ 10, 20 }),
                        array_of(DT_F32, 1, two, (float[]){ 1, 2 }) };
    Array     out[2];
    CHECK(m && !p2o_ort_run(arena, m, in, out));
    CHECK(m && same(p2o_ort_output(m, 0)->name, "s") && p2o_array_at(&out[0], 1) == 22);
    CHECK(m && same(p2o_ort_output(m, 1)->name, "d") && p2o_array_at(&out[1], 0) == 9);
    in[1] = array_of(DT_F32, 1, (int64_t[]){ 3 }, NULL);
    CHECK(m && p2o_ort_run(arena, m, in, out));
    p2o_ort_close(m);
}

static bool refused(const char *name, Str bytes, Status status, const char *part)
{
    OrtModel *m = open_model(name, bytes);
    bool      ok = !m && p2o_diags_errors(diags) == 1 && p2o_diags_status(diags) == status &&
              strstr(p2o_diags_at(diags, 0)->text, part);
    p2o_ort_close(m);
    return ok;
}

static void test_refusals(void)
{
    Buf g = { .arena = arena }, type = { .arena = arena }, value = { .arena = arena };
    Buf seq = { .arena = arena }, elem = { .arena = arena }, t = { .arena = arena };
    pb_put_int(&t, 1, 1);
    pb_put_str(&elem, 1, buf_str(&t));
    pb_put_str(&seq, 1, buf_str(&elem));
    pb_put_str(&type, 4, buf_str(&seq));
    pb_put_text(&value, 1, "y");
    pb_put_str(&value, 2, buf_str(&type));
    pb_put_text(&g, 2, "g");
    pb_put_str(&g, 1, onnx_node(arena, "SequenceConstruct", "x", "y", (Str){ "", 0 }));
    pb_put_str(&g, 11, onnx_value(arena, "x", 1, "n"));
    pb_put_str(&g, 12, buf_str(&value));
    CHECK(refused("sequence", onnx_model(arena, buf_str(&g), NULL, NULL), ST_UNSUPPORTED,
                  "output 'y'"));
    CHECK(refused("string", unary_model("Identity", 8, "n", "n"), ST_UNSUPPORTED, "string"));
    CHECK(refused("no_op", unary_model("NoSuchOperator", 1, "n", "n"), ST_IO, "NoSuchOperator"));
    CHECK(refused("garbage", STR("this is no model"), ST_IO, "onnx runtime"));
    CHECK(refused("empty", STR(""), ST_IO, "onnx runtime"));
    fresh_diags();
    CHECK(!p2o_ort_open(ort, diags, "/no/such/model.onnx") && p2o_diags_errors(diags) == 1);
}

/* Models that are still open are closed with the runtime. */
static void test_left_open(void)
{
    CHECK(open_model("left", unary_model("Relu", 1, "n", "n")) != NULL);
    CHECK(open_model("left", unary_model("Relu", 1, "n", "n")) != NULL);
    p2o_ort_unload(ort);
    p2o_ort_unload(ort);
    fresh_diags();
    ort = p2o_ort_load(diags);
    CHECK(ort && open_model("again", unary_model("Relu", 1, "n", "n")));
}

static void test_not_found(void)
{
    const char *was = getenv("PT2ONNX_ORT");
    const char *text = p2o_printf(arena, "%s/text.so", folder);
    Sink       *s = p2o_sink_file(diags, text);
    if (was)
        was = p2o_str_dup(arena, str_of(was));
    p2o_sink_write(s, "text", 4);
    CHECK(p2o_sink_commit(s));
    const char *const wrong[] = { "/no/such/library.so", text, "/", "libz.so.1" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("PT2ONNX_ORT", wrong[i], 1);
        fresh_diags();
        CHECK(!p2o_ort_load(diags) && p2o_diags_errors(diags) == 1);
        const Diag *x = p2o_diags_at(diags, 0);
        CHECK(x->kind == DIAG_RUNTIME && strstr(x->text, wrong[i]) && !strchr(x->text, '\n'));
        CHECK(x->advice && strstr(x->advice, "PT2ONNX_ORT"));
    }
    if (was)
        setenv("PT2ONNX_ORT", was, 1);
    else
        unsetenv("PT2ONNX_ORT");
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : "/tmp";
    arena = p2o_arena_new(NULL, NULL);
    fresh_diags();
    ort = p2o_ort_load(diags);
    if (!ort) {
        printf("skipped: %s\n", p2o_diags_at(diags, 0)->text);
        p2o_arena_free(arena);
        return 77;
    }
    printf("onnx runtime %s: %s\n", p2o_ort_version(ort), p2o_ort_path(ort));
    test_ports();
    test_relu();
    test_types();
    test_scalar();
    test_order();
    test_refusals();
    test_left_open();
    test_not_found();
    p2o_ort_unload(ort);
    p2o_arena_free(arena);
    return check_report();
}
