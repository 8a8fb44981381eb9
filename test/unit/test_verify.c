/* Verification: what passes, what is found out, and the words for it.
 *
 * argv[1] is a folder for the models.  Without a runtime the exit code is 77: skipped. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "base/vec.h"
#include "check.h"
#include "onnx_bytes.h"
#include "run/verify.h"

static Arena      *arena, *scratch;
static Diags      *diags;
static Ort        *ort;
static const char *folder;
static VEC(const char *) lines;
static VEC(NamedArray) recorded;

static void fresh_diags(void) { diags = p2o_diags_new(arena, NULL, NULL); }

static void keep_line(void *user, bool ok, const char *line)
{
    (void)user;
    CHECK(p2o_str_starts(str_of(line), ok ? (line[1] == 'o' ? "[ok] " : "[runs] ") : "[FAIL] "));
    VEC_PUSH(arena, &lines, p2o_str_dup(arena, str_of(line)));
}

static OrtModel *open_graph(const char *name, const Buf *graph)
{
    const char *path = p2o_printf(arena, "%s/verify_%s.onnx", folder, name);
    Str         bytes = onnx_model(arena, buf_str(graph), NULL, NULL);
    fresh_diags();
    Sink *s = p2o_sink_file(diags, path);
    if (s)
        p2o_sink_write(s, bytes.p, bytes.n);
    CHECK(s && p2o_sink_commit(s));
    OrtModel *m = p2o_ort_open(ort, diags, path);
    CHECK(m != NULL);
    if (!m)
        printf("%s: %s\n", name, p2o_diags_at(diags, 0)->text);
    return m;
}

static OrtModel *unary(const char *name, const char *op, const char *in_dims, const char *out_dims)
{
    Buf g = { .arena = arena };
    pb_put_text(&g, 2, "g");
    pb_put_str(&g, 1, onnx_node(arena, op, "x", "y", (Str){ "", 0 }));
    pb_put_str(&g, 11, onnx_value(arena, "x", 1, in_dims));
    pb_put_str(&g, 12, onnx_value(arena, "y", 1, out_dims));
    return open_graph(name, &g);
}

/* y = past and x joined along axis 1; mask is as long as the result, and passed through. */
static OrtModel *cache_model(const char *name, const char *mask_dims, const char *out_dims)
{
    Buf g = { .arena = arena };
    pb_put_text(&g, 2, "g");
    pb_put_str(&g, 1, onnx_node(arena, "Concat", "past,x", "y", onnx_attr_int(arena, "axis", 1)));
    pb_put_str(&g, 1, onnx_node(arena, "Relu", "mask", "m", (Str){ "", 0 }));
    pb_put_str(&g, 11, onnx_value(arena, "mask", 1, mask_dims));
    pb_put_str(&g, 11, onnx_value(arena, "past", 1, "batch|p"));
    pb_put_str(&g, 11, onnx_value(arena, "x", 1, "batch|s"));
    pb_put_str(&g, 12, onnx_value(arena, "y", 1, out_dims));
    pb_put_str(&g, 12, onnx_value(arena, "m", 1, mask_dims));
    return open_graph(name, &g);
}

static void record(const char *name, DType t, int rank, const int64_t *sizes, const void *data)
{
    NamedArray x = { .name = name };
    CHECK(p2o_array_make(arena, t, rank, sizes, &x.array));
    if (data && x.array.nbytes)
        memcpy(x.array.data, data, x.array.nbytes);
    VEC_PUSH(arena, &recorded, x);
}

static Npz take_recorded(void)
{
    Npz z = { .at = recorded.at, .n = recorded.n, .index = { .arena = arena } };
    for (size_t i = 0; i < z.n; i++)
        map_put(&z.index, str_of(z.at[i].name), &z.at[i].array);
    recorded.at = NULL;
    recorded.n = recorded.cap = 0;
    return z;
}

static VerifyOptions options(void)
{
    lines.n = 0;
    return (VerifyOptions){ .atol = -1, .rtol = -1, .line = keep_line, .scratch = scratch };
}

static Status verify_data(OrtModel *m, VerifyCount *count)
{
    Npz           z = take_recorded();
    VerifyOptions o = options();
    *count = (VerifyCount){ 0 };
    fresh_diags();
    return m ? p2o_verify_data(diags, m, &z, &o, count) : ST_MISUSE;
}

static Status verify_sizes(OrtModel *m, const char *sizes, VerifyCount *count)
{
    VerifyOptions o = options();
    *count = (VerifyCount){ 0 };
    fresh_diags();
    return m ? p2o_verify_sizes(diags, m, sizes, &o, count) : ST_MISUSE;
}

static bool line_is(size_t i, const char *want)
{
    if (i < lines.n && same(lines.at[i], want))
        return true;
    printf("line %zu: %s\nexpected: %s\n", i, i < lines.n ? lines.at[i] : "(none)", want);
    return false;
}

static bool line_has(size_t i, const char *part)
{
    if (i < lines.n && strstr(lines.at[i], part))
        return true;
    printf("line %zu: %s\nexpected in it: %s\n", i, i < lines.n ? lines.at[i] : "(none)", part);
    return false;
}

static void test_numbers(void)
{
    static const int64_t one[] = { 1, 2 }, two[] = { 2, 2 }, none[] = { 0, 2 }, bad[] = { 1, 3 };
    OrtModel            *m = unary("numbers", "Relu", "batch|2", "batch|2");
    VerifyCount          count;

    record("s10.in.0", DT_F32, 2, two, (float[]){ -1, 2, 3, -4 });
    record("s10.out.0", DT_F32, 2, two, (float[]){ 0, 2, 3.1f, 0 });
    record("s2.in.0", DT_F32, 2, one, (float[]){ 1, -1 });
    record("s2.out.0", DT_F32, 2, one, (float[]){ 1.000001f, 0 });
    record("s3.in.0", DT_F32, 2, none, NULL);
    record("s3.out.0", DT_F32, 2, none, NULL);
    CHECK(verify_data(m, &count) == ST_VERIFY);
    CHECK(count.nrun == 3 && count.nfail == 1 && lines.n == 3);
    CHECK(line_is(0, "[ok] batch=1  max diff 9.5e-07"));
    CHECK(line_is(1, "[ok] batch=0  max diff 0"));
    CHECK(line_is(2, "[FAIL] batch=2  output 'y': max diff 1.0e-01, 1 of 4 outside tolerance, "
                     "worst at index [1, 0]: 3, recorded 3.1"));
    CHECK(count.max_diff > 9e-7 && count.max_diff < 1e-6 && p2o_diags_count(diags) == 0);

    record("s0.in.0", DT_F32, 2, bad, NULL);
    record("s0.out.0", DT_F32, 2, bad, NULL);
    CHECK(verify_data(m, &count) == ST_VERIFY);
    CHECK(line_is(0, "[FAIL] batch=1  input 'x': axis 1 is 3, the model fixes it at 2"));

    record("s0.in.0", DT_F32, 1, two, NULL);
    record("s1.in.0", DT_F64, 2, two, NULL);
    record("s2.out.0", DT_F32, 2, two, NULL);
    record("s3.in.0", DT_F32, 2, two, NULL);
    record("s4.in.0", DT_F32, 2, two, NULL);
    record("s4.out.0", DT_F32, 2, one, NULL);
    record("s5.in.0", DT_F32, 2, two, NULL);
    record("s5.out.0", DT_F64, 2, two, NULL);
    record("s6.in.0", DT_F32, 2, two, NULL);
    record("s6.in.1", DT_F32, 2, two, NULL);
    record("s7.in.0", DT_F32, 2, two, NULL);
    record("s7.out.0", DT_F32, 2, two, NULL);
    record("s7.out.1", DT_F32, 2, two, NULL);
    CHECK(verify_data(m, &count) == ST_VERIFY && count.nrun == 8 && count.nfail == 8);
    CHECK(line_is(0, "[FAIL] s0  input 'x': has 1 axes, the model declares 2"));
    CHECK(line_is(1, "[FAIL] s1  input 'x': recorded f64, the model takes f32"));
    CHECK(line_is(2, "[FAIL] s2  input 'x': s2.in.0 is not recorded"));
    CHECK(line_is(3, "[FAIL] batch=2  output 'y': s3.out.0 is not recorded"));
    CHECK(line_is(4, "[FAIL] batch=2  output 'y': shape [2, 2], recorded [1, 2]"));
    CHECK(line_is(5, "[FAIL] batch=2  output 'y': is f32, recorded f64"));
    CHECK(line_is(6, "[FAIL] s6  more inputs are recorded than the model's 1"));
    CHECK(line_is(7, "[FAIL] batch=2  more outputs are recorded than the model's 1"));

    record("other", DT_F32, 2, two, NULL);
    record("s-1.in.0", DT_F32, 2, two, NULL);
    record("sx.in.0", DT_F32, 2, two, NULL);
    CHECK(verify_data(m, &count) == ST_INPUT && p2o_diags_errors(diags) == 1);
    p2o_ort_close(m);
}

static void test_tolerance(void)
{
    static const int64_t one[] = { 1 };
    OrtModel            *m = unary("tolerance", "Relu", "n", "n");
    VerifyCount          count = { 0 };
    record("s0.in.0", DT_F32, 1, one, (float[]){ 1 });
    record("s0.out.0", DT_F32, 1, one, (float[]){ 1.1f });
    Npz           z = take_recorded();
    VerifyOptions o = options();
    fresh_diags();
    CHECK(m && p2o_verify_data(diags, m, &z, &o, &count) == ST_VERIFY);
    o.atol = 0.2;
    CHECK(m && p2o_verify_data(diags, m, &z, &o, &count) == ST_OK);
    CHECK(count.nrun == 2 && count.nfail == 1);
    o.atol = 0;
    o.rtol = 0.2;
    CHECK(m && p2o_verify_data(diags, m, &z, &o, &count) == ST_OK);
    CHECK(p2o_verify_tolerance(DT_BF16).rtol > p2o_verify_tolerance(DT_F16).rtol);
    CHECK(p2o_verify_tolerance(DT_F16).rtol > p2o_verify_tolerance(DT_F32).rtol);
    p2o_ort_close(m);
}

static void test_bf16(void)
{
    static const int64_t two[] = { 2 };
    Buf                  g = { .arena = arena };
    VerifyCount          count;
    pb_put_text(&g, 2, "g");
    pb_put_str(&g, 1, onnx_node(arena, "Identity", "x", "y", (Str){ "", 0 }));
    pb_put_str(&g, 11, onnx_value(arena, "x", 16, "n"));
    pb_put_str(&g, 12, onnx_value(arena, "y", 16, "n"));
    OrtModel *m = open_graph("bf16", &g);
    record("s0.in.0", DT_F32, 1, two, (float[]){ 1, 0.3333f });
    record("s0.out.0", DT_F32, 1, two, (float[]){ 1, 0.3333f });
    CHECK(verify_data(m, &count) == ST_OK && lines.n == 1);
    p2o_ort_close(m);
}

/* `p + s` as the size of an input and of an output. */
static void test_expressions(void)
{
    static const int64_t mask[] = { 1, 5 }, past[] = { 1, 2 }, x[] = { 1, 3 }, other[] = { 2, 3 };
    VerifyCount count;
    OrtModel   *m = cache_model("cache", "batch|p + s", "batch|p + s");

    record("s0.in.0", DT_F32, 2, mask, NULL);
    record("s0.in.1", DT_F32, 2, past, NULL);
    record("s0.in.2", DT_F32, 2, x, NULL);
    record("s0.out.0", DT_F32, 2, mask, NULL);
    record("s0.out.1", DT_F32, 2, mask, NULL);
    record("s1.in.0", DT_F32, 2, past, NULL);
    record("s1.in.1", DT_F32, 2, past, NULL);
    record("s1.in.2", DT_F32, 2, x, NULL);
    record("s2.in.0", DT_F32, 2, mask, NULL);
    record("s2.in.1", DT_F32, 2, past, NULL);
    record("s2.in.2", DT_F32, 2, other, NULL);
    CHECK(verify_data(m, &count) == ST_VERIFY && lines.n == 3 && count.nfail == 2);
    CHECK(line_is(0, "[ok] batch=1 p=2 s=3  max diff 0"));
    CHECK(line_is(1, "[FAIL] batch=1 p=2 s=3  input 'mask': axis 1 is 2, but p + s is 5"));
    CHECK(line_is(2, "[FAIL] batch=1 p=2  input 'x': axis 0 is 2, but batch is 1"));

    CHECK(verify_sizes(m, "batch=1,2 p=0,7 s=1", &count) == ST_OK);
    CHECK(count.nrun == 4 && lines.n == 4);
    CHECK(line_is(0, "[runs] batch=1 p=0 s=1  shapes as declared"));
    CHECK(line_is(1, "[runs] batch=1 p=7 s=1  shapes as declared"));
    CHECK(line_is(3, "[runs] batch=2 p=7 s=1  shapes as declared"));
    CHECK(p2o_diags_count(diags) == 0);
    p2o_ort_close(m);

    m = cache_model("cache_lie", "batch|p + s", "batch|2*s");
    CHECK(verify_sizes(m, "batch=1 p=4 s=4,5", &count) == ST_VERIFY && count.nfail == 1);
    CHECK(line_is(1, "[FAIL] batch=1 p=4 s=5  output 'y': axis 1 is 9, but 2*s is 10"));
    p2o_ort_close(m);
}

/* A name only an output has is bound where first seen; a second meaning is a lie. */
static void test_fresh_names(void)
{
    VerifyCount count;
    OrtModel   *m = cache_model("fresh", "batch|total", "batch|u0");
    CHECK(verify_sizes(m, "batch=1 p=4 s=4 total=3", &count) == ST_OK);
    CHECK(line_is(0, "[runs] batch=1 total=3 p=4 s=4  shapes as declared"));
    p2o_ort_close(m);
    m = cache_model("fresh_lie", "batch|total", "batch|total");
    CHECK(verify_sizes(m, "p=4 s=4 total=3,8", &count) == ST_VERIFY && count.nfail == 1);
    CHECK(line_has(0, "[FAIL]") && line_has(0, "output 'y': axis 1 is 8, but total is 3"));
    p2o_ort_close(m);
}

static void test_odd_names(void)
{
    static const int64_t six[] = { 6, 4 };
    VerifyCount count;
    const char *dims = "batch-size|dynamic axes 1";
    OrtModel   *m = unary("glued", "Relu", dims, dims);
    CHECK(verify_sizes(m, "batch-size=3 dynamic axes 1=4,5", &count) == ST_OK && count.nrun == 2);
    CHECK(line_is(1, "[runs] batch-size=3 dynamic axes 1=5  shapes as declared"));
    p2o_ort_close(m);

    m = unary("unnamed", "Relu", "?|n", "?|n");
    CHECK(verify_sizes(m, "x.0=3", &count) == ST_OK);
    CHECK(line_is(0, "[runs] x.0=3 n=2  shapes as declared"));
    CHECK(p2o_diags_count(diags) == 1 && p2o_diags_at(diags, 0)->kind == DIAG_NOTE);
    CHECK(strstr(p2o_diags_at(diags, 0)->text, "no size given for n: 2 is used"));
    p2o_ort_close(m);

    m = unary("even", "Relu", "2*k|n", "2*k|n");
    CHECK(verify_sizes(m, "k=3 n=1", &count) == ST_OK && line_has(0, "[runs] k=3 n=1"));
    record("s0.in.0", DT_F32, 2, six, NULL);
    record("s0.out.0", DT_F32, 2, six, NULL);
    CHECK(verify_data(m, &count) == ST_OK && line_is(0, "[ok] k=3 n=4  max diff 0"));
    p2o_ort_close(m);
}

static bool misused(OrtModel *m, const char *sizes, const char *part)
{
    VerifyCount count;
    Status      st = verify_sizes(m, sizes, &count);
    if (st == ST_MISUSE && p2o_diags_errors(diags) == 1 && p2o_diags_status(diags) == ST_MISUSE &&
        strstr(p2o_diags_at(diags, 0)->text, part) && lines.n == 0)
        return true;
    printf("'%s': status %d, %s\n", sizes, (int)st,
           p2o_diags_count(diags) ? p2o_diags_at(diags, 0)->text : "-");
    return false;
}

static void test_usage(void)
{
    OrtModel *m = unary("usage", "Relu", "batch|seq", "batch|seq");
    Buf       many = { .arena = arena };
    CHECK(misused(m, "foo=1", "the model's are batch, seq"));
    CHECK(misused(m, "batch", "expected NAME=N"));
    CHECK(misused(m, "batch=", "expected NAME=N"));
    CHECK(misused(m, "batch=x", "expected NAME=N"));
    CHECK(misused(m, "batch=1,,2", "size ''"));
    CHECK(misused(m, "batch=-1", "size '-1'"));
    CHECK(misused(m, "batch=99999999999999999999", "expected a number"));
    CHECK(misused(m, "batch=1 batch=2", "given twice"));
    CHECK(misused(m, "=1", "no input has a size ''"));
    p2o_puts(&many, "batch=1");
    for (int i = 0; i < 100; i++)
        p2o_puts(&many, ",1");
    p2o_puts(&many, " seq=1");
    for (int i = 0; i < 99; i++)
        p2o_puts(&many, ",1");
    CHECK(misused(m, many.at, "more than 10000"));
    VerifyCount count;
    CHECK(verify_sizes(m, "", &count) == ST_OK && count.nrun == 1);
    CHECK(line_is(0, "[runs] batch=2 seq=2  shapes as declared"));
    p2o_ort_close(m);
    m = unary("fixed", "Relu", "3", "3");
    CHECK(verify_sizes(m, "", &count) == ST_OK && line_has(0, "[runs] fixed sizes  "));
    CHECK(misused(m, "n=1", "every size is fixed"));
    p2o_ort_close(m);
}

/* A size baked into a Reshape shows as the runtime's complaint. */
static void test_frozen(void)
{
    static const int64_t target[] = { 2, 5 };
    Buf                  g = { .arena = arena };
    VerifyCount          count;
    pb_put_text(&g, 2, "g");
    pb_put_str(&g, 1, onnx_node(arena, "Reshape", "x,shape", "y", (Str){ "", 0 }));
    pb_put_str(&g, 5, onnx_ints(arena, "shape", target, 2));
    pb_put_str(&g, 11, onnx_value(arena, "x", 1, "n"));
    pb_put_str(&g, 12, onnx_value(arena, "y", 1, "2|5"));
    OrtModel *m = open_graph("frozen", &g);
    CHECK(verify_sizes(m, "n=10,11", &count) == ST_VERIFY && count.nfail == 1);
    CHECK(line_is(0, "[runs] n=10  shapes as declared"));
    CHECK(line_has(1, "[FAIL] n=11  onnx runtime: ") && line_has(1, "Reshape"));
    p2o_ort_close(m);
}

static bool run_once(OrtModel *m, const char *const *sizes, size_t n, const Npz *data, Array *y)
{
    NamedArray *out;
    size_t      nout;
    fresh_diags();
    if (!m || !p2o_verify_run(diags, m, sizes, n, data, &out, &nout))
        return false;
    CHECK(same(out[0].name, "y"));
    *y = out[0].array;
    return true;
}

static void test_run(void)
{
    static const int64_t past[] = { 1, 2 }, x[] = { 1, 3 };
    static const char *const sizes[] = { "p=3", "s=4 batch=2" }, *const twice[] = { "p=3", "p=3" };
    static const char *const several[] = { "p=3,4" }, *const clash[] = { "p=3" };
    static const char *const unknown[] = { "q=3" };
    OrtModel *m = cache_model("run", "batch|p + s", "batch|p + s");
    Array     y;
    CHECK(run_once(m, sizes, 2, NULL, &y) && y.rank == 2 && y.sizes[0] == 2 && y.sizes[1] == 7);
    CHECK(p2o_diags_count(diags) == 0);
    CHECK(run_once(m, NULL, 0, NULL, &y) && y.sizes[1] == 4 && p2o_diags_count(diags) == 1);
    CHECK(!run_once(m, twice, 2, NULL, &y) && p2o_diags_status(diags) == ST_MISUSE);
    CHECK(!run_once(m, several, 1, NULL, &y) && p2o_diags_status(diags) == ST_MISUSE);
    CHECK(!run_once(m, unknown, 1, NULL, &y) && p2o_diags_status(diags) == ST_MISUSE);

    record("past", DT_F32, 2, past, (float[]){ 1, 2 });
    record("s0.in.2", DT_F32, 2, x, (float[]){ 3, 4, 5 });
    Npz z = take_recorded();
    CHECK(run_once(m, NULL, 0, &z, &y) && y.sizes[0] == 1 && y.sizes[1] == 5);
    for (uint64_t i = 0; i < 5; i++)
        CHECK(p2o_array_at(&y, i) == (double)(i + 1));
    CHECK(p2o_diags_count(diags) == 1 && strstr(p2o_diags_at(diags, 0)->text, "'mask'"));
    CHECK(!run_once(m, clash, 1, &z, &y) && p2o_diags_status(diags) == ST_MISUSE);
    record("past", DT_I64, 2, past, NULL);
    z = take_recorded();
    CHECK(!run_once(m, NULL, 0, &z, &y) && p2o_diags_status(diags) == ST_INPUT);
    p2o_ort_close(m);
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : "/tmp";
    arena = p2o_arena_new(NULL, NULL);
    scratch = p2o_arena_new(NULL, NULL);
    fresh_diags();
    ort = p2o_ort_load(diags);
    if (!ort)
        printf("skipped: %s\n", p2o_diags_at(diags, 0)->text);
    if (ort) {
        test_numbers();
        test_tolerance();
        test_bf16();
        test_expressions();
        test_fresh_names();
        test_odd_names();
        test_usage();
        test_frozen();
        test_run();
    }
    bool found = ort != NULL;
    p2o_ort_unload(ort);
    p2o_arena_free(scratch);
    p2o_arena_free(arena);
    return found ? check_report() : 77;
}
