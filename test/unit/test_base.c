/* base/: arena, vec, str, map, num, diag, io.  Files are made in a folder of their own under TMPDIR
 * and removed again. */
#define _GNU_SOURCE
#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "base/vec.h"
#include "check.h"

/* Counts what is live and fails the allocation of a given number. */
typedef struct Meter {
    int live, calls, fail_at;
} Meter;

static void *metered_alloc(void *user, void *p, size_t size)
{
    Meter *m = user;
    if (size == 0) {
        m->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (++m->calls == m->fail_at)
        return NULL;
    m->live += p == NULL;
    return realloc(p, size);
}

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static void test_arena(void)
{
    Meter  m = { 0 };
    Arena *a = p2o_arena_new(metered_alloc, &m);
    CHECK(a != NULL && m.live == 1);

    static const size_t sizes[] = { 0, 1, 15, 16, 17, 1000, 65536, 5000000, 3 };
    unsigned char      *at[COUNT_OF(sizes)];
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        at[i] = p2o_alloc(a, sizes[i]);
        CHECK(at[i] != NULL);
        CHECK((uintptr_t)at[i] % 16 == 0);
        CHECK(is_zero(at[i], sizes[i]));
        if (sizes[i])
            memset(at[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t k = 0; k < sizes[i]; k += sizes[i] > 100 ? sizes[i] / 7 : 1)
            CHECK(at[i][k] == i + 1);

    int       live = m.live;
    ArenaMark mark = p2o_arena_mark(a);
    for (int i = 0; i < 100; i++)
        memset(p2o_alloc(a, 100000), 0xFF, 100000);
    CHECK(m.live > live);
    p2o_arena_rewind(a, mark);
    CHECK(m.live == live);
    CHECK(is_zero(p2o_alloc(a, 4000), 4000));       /* used memory comes back zeroed */
    CHECK(at[5][999] == 6);

    char *text = p2o_grow(a, NULL, 0, 4);
    memcpy(text, "abcd", 4);
    text = p2o_grow(a, text, 4, 10);
    CHECK(!memcmp(text, "abcd\0\0\0\0\0\0", 10));
    p2o_arena_free(a);
    CHECK(m.live == 0);
    p2o_arena_free(NULL);
}

static void test_arena_mark_of_empty(void)
{
    Meter     m = { 0 };
    Arena    *a = p2o_arena_new(metered_alloc, &m);
    ArenaMark mark = p2o_arena_mark(a);
    p2o_alloc(a, 10);
    p2o_arena_rewind(a, mark);
    CHECK(m.live == 1);
    p2o_arena_free(a);
    CHECK(m.live == 0);
}

/* Jumps back from the n-th allocation; returns whether it did. */
static bool runs_out(int fail_at, size_t n, size_t size)
{
    Meter        m = { .fail_at = fail_at };
    Arena       *a = p2o_arena_new(metered_alloc, &m);
    volatile bool jumped = false;
    if (!a)
        return true;
    if (setjmp(*p2o_arena_guard(a)) == 0)
        p2o_alloc_n(a, n, size);
    else
        jumped = true;
    p2o_arena_free(a);
    CHECK(m.live == 0);
    return jumped;
}

static void test_arena_exhausted(void)
{
    CHECK(runs_out(1, 1, 1));
    CHECK(runs_out(2, 1, 1));
    CHECK(!runs_out(3, 1, 1));
    CHECK(runs_out(0, SIZE_MAX, 1));
    CHECK(runs_out(0, SIZE_MAX / 2, 3));
    CHECK(runs_out(0, (size_t)1 << 63, 2));         /* the product is 0 when it wraps */
    CHECK(!runs_out(0, 0, SIZE_MAX));
}

static void test_vec(Arena *a)
{
    VEC(int) v = { 0 };
    for (int i = 0; i < 1000; i++)
        VEC_PUSH(a, &v, i * i);
    CHECK(v.n == 1000 && v.cap >= 1000);
    for (int i = 0; i < 1000; i++)
        CHECK(v.at[i] == i * i);
    VEC_RESERVE(a, &v, 5000);
    CHECK(v.cap >= 5000 && v.n == 1000 && v.at[999] == 999 * 999);
    int *before = v.at;
    VEC_RESERVE(a, &v, 10);
    CHECK(v.at == before);

    VEC(Str) w = { 0 };
    VEC_PUSH(a, &w, (Str){ "ab", 2 });         /* commas in the value */
    CHECK(w.n == 1 && str_is(w.at[0], "ab"));
}

static void test_str(Arena *a)
{
    Str rest;
    CHECK(str_eq(STR("ab"), str_of("ab")));
    CHECK(!str_eq(STR("ab"), STR("abc")));
    CHECK(str_eq((Str){ NULL, 0 }, STR("")));
    CHECK(str_is((Str){ "a\0b", 3 }, "a") == false);
    CHECK(p2o_str_starts(STR("model.json"), "model") && !p2o_str_starts(STR("mod"), "model"));
    CHECK(p2o_str_like(STR("past.0.key"), STR("past.*")) && !p2o_str_like(STR("pas"), STR("past*")));
    CHECK(p2o_str_like(STR("abcabd"), STR("*ab*d")) && p2o_str_like(STR(""), STR("**")));
    CHECK(p2o_str_like(STR("aXbXc"), STR("a*b*c")) && !p2o_str_like(STR("aXbXcd"), STR("a*b*c")));
    CHECK(p2o_str_like(STR("x"), STR("x")) && !p2o_str_like(STR("x"), STR("")));
    CHECK(p2o_str_ends(STR("model.json"), ".json") && !p2o_str_ends(STR("n"), ".json"));
    CHECK(p2o_str_starts(STR(""), "") && p2o_str_ends(STR(""), ""));

    CHECK(str_is(p2o_str_cut(STR("a/b/c"), '/', &rest), "a") && str_is(rest, "b/c"));
    CHECK(str_is(p2o_str_cut(STR("/x"), '/', &rest), "") && str_is(rest, "x"));
    CHECK(str_is(p2o_str_cut(STR("x/"), '/', &rest), "x") && rest.n == 0);
    CHECK(str_is(p2o_str_cut(STR("abc"), '/', &rest), "abc") && rest.n == 0 && rest.p);
    CHECK(p2o_str_cut((Str){ NULL, 0 }, '/', &rest).n == 0);
    CHECK(str_is(p2o_str_trim(STR(" \t\r\n a b \n")), "a b"));
    CHECK(p2o_str_trim(STR(" \n ")).n == 0 && p2o_str_trim(STR("")).n == 0);

    const char *z = p2o_str_dup(a, (Str){ "xyz", 2 });
    CHECK(same(z, "xy"));
    CHECK(same(p2o_str_dup(a, (Str){ NULL, 0 }), ""));
    CHECK(same(p2o_printf(a, "%d-%s", 7, "q"), "7-q"));
    CHECK(same(p2o_printf(a, "%s", ""), ""));
    CHECK(strlen(p2o_printf(a, "%5000d", 1)) == 5000);
}

static void test_buf(Arena *a)
{
    Buf b = { .arena = a };
    CHECK(buf_str(&b).n == 0 && buf_str(&b).p);
    p2o_put(&b, "", 0);
    CHECK(same(b.at, ""));
    for (int i = 0; i < 1000; i++)
        p2o_putf(&b, "%03d,", i);
    CHECK(b.n == 4000 && !memcmp(b.at, "000,001,", 8) && same(b.at + 3992, "998,999,"));
    p2o_putf(&b, "%0300d", 5);                      /* longer than any buffer on the stack */
    CHECK(b.n == 4300 && b.at[4299] == '5' && b.at[4000] == '0' && b.at[4300] == 0);
    p2o_put(&b, "x\0y", 3);
    CHECK(b.n == 4303 && b.at[4302] == 'y');
}

static void test_map(Arena *a)
{
    Map m = { .arena = a };
    CHECK(p2o_map_get(&m, STR("x")) == NULL);
    int value[5000];
    for (int i = 0; i < 5000; i++)
        map_put(&m, str_of(p2o_printf(a, "key%d", i)), &value[i]);
    CHECK(m.n == 5000);
    int wrong = 0;
    for (int i = 0; i < 5000; i++) {                /* order is that of insertion */
        const char *key = p2o_printf(a, "key%d", i);
        wrong += p2o_map_get(&m, str_of(key)) != &value[i] || !str_is(m.at[i].key, key);
    }
    CHECK(wrong == 0);
    CHECK(p2o_map_get(&m, STR("key5000")) == NULL);
    CHECK(p2o_map_get(&m, STR("key")) == NULL);
    map_put(&m, STR("key7"), &value[0]);
    CHECK(m.n == 5000 && p2o_map_get(&m, STR("key7")) == &value[0]);
    void **slot = p2o_map_slot(&m, STR("new"));
    CHECK(*slot == NULL && m.n == 5001);
    CHECK(p2o_map_slot(&m, STR("new")) == slot);
    map_put(&m, (Str){ "a\0b", 3 }, &value[1]);     /* keys are bytes */
    CHECK(p2o_map_get(&m, STR("a")) == NULL);
    map_put(&m, STR(""), &value[2]);
    CHECK(p2o_map_get(&m, (Str){ NULL, 0 }) == &value[2]);
}

static bool reads_i64(const char *z, int64_t want)
{
    int64_t v = 99;
    return p2o_parse_i64(str_of(z), &v) && v == want;
}

static bool refuses_i64(const char *z)
{
    int64_t v = 99;
    return !p2o_parse_i64(str_of(z), &v) && v == 99;
}

static void test_parse_i64(void)
{
    CHECK(reads_i64("0", 0) && reads_i64("-0", 0) && reads_i64("007", 7) && reads_i64("-12", -12));
    CHECK(reads_i64("9223372036854775807", INT64_MAX));
    CHECK(reads_i64("-9223372036854775808", INT64_MIN));
    CHECK(refuses_i64("9223372036854775808") && refuses_i64("-9223372036854775809"));
    CHECK(refuses_i64("99999999999999999999999"));
    CHECK(refuses_i64("") && refuses_i64("-") && refuses_i64("+1") && refuses_i64(" 1"));
    CHECK(refuses_i64("1 ") && refuses_i64("1.0") && refuses_i64("0x10") && refuses_i64("1e3"));
}

static bool reads_f64(const char *z, double want)
{
    double v = 99;
    return p2o_parse_f64(str_of(z), &v) && v == want;
}

static bool refuses_f64(const char *z)
{
    double v = 99;
    return !p2o_parse_f64(str_of(z), &v) && v == 99;
}

static void test_parse_f64(void)
{
    CHECK(reads_f64("0.1", 0.1) && reads_f64("-2.5e-3", -2.5e-3) && reads_f64("1E+16", 1e16));
    CHECK(reads_f64("2.", 2.0) && reads_f64("12345678901234567890", 12345678901234567890.0));
    CHECK(reads_f64("4.9406564584124654e-324", 4.9406564584124654e-324));
    CHECK(reads_f64("1e400", (double)INFINITY) && reads_f64("1e-400", 0));
    double v = 1;
    CHECK(p2o_parse_f64(STR("-0.0"), &v) && v == 0 && signbit(v));
    CHECK(refuses_f64("") && refuses_f64(".") && refuses_f64("-") && refuses_f64("e5"));
    CHECK(refuses_f64("1e") && refuses_f64("1.2.3") && refuses_f64("1 ") && refuses_f64(" 1"));
    CHECK(refuses_f64("nan") && refuses_f64("inf") && refuses_f64("0x1p3") && refuses_f64("1,5"));
    CHECK(refuses_f64("--1") && refuses_f64("1-1"));
    char longest[1000];
    memset(longest, '1', sizeof longest);
    CHECK(!p2o_parse_f64((Str){ longest, sizeof longest }, &v));
    memset(longest, '.', sizeof longest);
    CHECK(!p2o_parse_f64((Str){ longest, 400 }, &v));
    CHECK(p2o_parse_f64((Str){ "1.5xx", 3 }, &v) && v == 1.5);      /* not past the slice */
}

static void test_format(void)
{
    static const double odd[] = { 0.1, 1.0 / 3, 1e-05, 1e16, 123456789.125, 5e-324, -0.0, 1e22,
                                  2.2250738585072014e-308, 1.7976931348623157e308 };
    char buf[32];
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        double v = 0;
        CHECK(p2o_parse_f64(str_of(p2o_format_f64(buf, odd[i])), &v));
        CHECK(v == odd[i] && signbit(v) == signbit(odd[i]));
        CHECK(strlen(buf) < 32);
    }
    CHECK(same(p2o_format_f64(buf, 0.1), "0.1") && same(p2o_format_f64(buf, 2.5), "2.5"));
    CHECK(same(p2o_format_f64(buf, (double)INFINITY), "inf"));
    CHECK(same(p2o_format_f64(buf, -(double)INFINITY), "-inf"));
    CHECK(same(p2o_format_f64(buf, (double)NAN), "nan"));
    CHECK(same(p2o_format_f32(buf, 0.1f), "0.1"));
    float third = 1.0f / 3;
    double back;
    CHECK(p2o_parse_f64(str_of(p2o_format_f32(buf, third)), &back) && (float)back == third);
    CHECK(strlen(buf) <= 12);                       /* no more digits than a float has */
}

/* A locale with a decimal comma must not show; skipped where none is installed. */
static void test_locale(void)
{
    static const char *const comma[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    for (size_t i = 0; i < COUNT_OF(comma); i++)
        if (setlocale(LC_NUMERIC, comma[i])) {
            test_parse_f64();
            test_format();
            break;
        }
    setlocale(LC_NUMERIC, "C");
}

static void test_checked_arithmetic(void)
{
    int64_t  i = 5;
    uint64_t u = 5;
    CHECK(add_i64(INT64_MAX, -1, &i) && i == INT64_MAX - 1);
    CHECK(!add_i64(INT64_MAX, 1, &i) && !add_i64(INT64_MIN, -1, &i));
    CHECK(!mul_i64(INT64_MIN, -1, &i) && !mul_i64((int64_t)1 << 32, (int64_t)1 << 31, &i));
    CHECK(mul_i64(-3, 4, &i) && i == -12);
    CHECK(!add_u64(UINT64_MAX, 1, &u) && add_u64(UINT64_MAX, 0, &u) && u == UINT64_MAX);
    CHECK(!mul_u64((uint64_t)1 << 32, (uint64_t)1 << 32, &u) && mul_u64(1u << 31, 2, &u));
    CHECK(floor_div(7, 2) == 3 && floor_div(-7, 2) == -4 && floor_div(7, -2) == -4);
    CHECK(floor_div(-7, -2) == 3 && floor_div(-6, 2) == -3 && floor_div(0, -5) == 0);
    CHECK(floor_mod(7, 3) == 1 && floor_mod(-7, 3) == 2 && floor_mod(7, -3) == -2);
    CHECK(floor_mod(-7, -3) == -1 && floor_mod(-6, 3) == 0);
}

static void test_half(void)
{
    int wrong = 0;
    for (unsigned h = 0; h < 65536; h++) {          /* every half is a float and comes back */
        float f = p2o_f16_to_f32((uint16_t)h), b = p2o_bf16_to_f32((uint16_t)h);
        wrong += isnan(f) ? !isnan(p2o_f16_to_f32(p2o_f32_to_f16(f))) : p2o_f32_to_f16(f) != h;
        wrong += isnan(b) ? !isnan(p2o_bf16_to_f32(p2o_f32_to_bf16(b))) : p2o_f32_to_bf16(b) != h;
    }
    CHECK(wrong == 0);
    CHECK(p2o_f16_to_f32(0x3C00) == 1.0f && p2o_f16_to_f32(0x0001) == ldexpf(1, -24));
    CHECK(p2o_f16_to_f32(0x7BFF) == 65504.0f && isinf(p2o_f16_to_f32(0xFC00)));
    CHECK(p2o_f32_to_f16(65519.996f) == 0x7BFF && p2o_f32_to_f16(65520.0f) == 0x7C00);
    CHECK(p2o_f32_to_f16(1.00048828125f) == 0x3C00);        /* halfway: to even, down */
    CHECK(p2o_f32_to_f16(1.00146484375f) == 0x3C02);        /* halfway: to even, up */
    CHECK(p2o_f32_to_f16(nextafterf(1.00048828125f, 2)) == 0x3C01);
    CHECK(p2o_f32_to_f16(ldexpf(1, -25)) == 0 && p2o_f32_to_f16(ldexpf(3, -25)) == 2);
    CHECK(p2o_f32_to_f16(ldexpf(1.5f, -25)) == 1 && p2o_f32_to_f16(-1e-20f) == 0x8000);
    CHECK(p2o_f32_to_f16(6.1035e-05f) == 0x0400);           /* rounds up into the normal range */
    CHECK(p2o_f32_to_bf16(1.0f) == 0x3F80 && p2o_f32_to_bf16(3.4e38f) == 0x7F80);
    CHECK(p2o_f32_to_bf16(1.00390625f) == 0x3F80 && p2o_f32_to_bf16(1.01171875f) == 0x3F82);
}

static void count_diag(void *user, const Diag *d)
{
    (void)d;
    ++*(int *)user;
}

static void test_diag(Arena *a)
{
    int    seen = 0;
    Diags *d = p2o_diags_new(a, count_diag, &seen);
    CHECK(p2o_diags_arena(d) == a);
    CHECK(p2o_diags_status(d) == ST_OK && p2o_diags_errors(d) == 0);
    p2o_diag(d, DIAG_WARN, 0, "odd");
    CHECK(p2o_diags_status(d) == ST_OK && p2o_diags_errors(d) == 0 && seen == 1);
    p2o_diags_file(d, "net.pt2");
    Loc loc = p2o_place_add(d, (PlaceInfo){ STR("/home/me/src/net.py"), STR("forward"),
                                            STR("enc.proj"), STR("y = self.proj(x)"), 41, false });
    p2o_diag(d, DIAG_SHAPE, loc, "input features: %d against %d", 512, 768);
    p2o_diag_advise(d, DIAG_UNSUPPORTED, 0, "do that", "cannot do this");
    CHECK(seen == 3 && p2o_diags_count(d) == 3 && p2o_diags_errors(d) == 2);
    CHECK(p2o_diags_status(d) == ST_INPUT);                 /* that of the first error */
    CHECK(same(p2o_diag_text(d, p2o_diags_at(d, 0)), "warning: odd"));
    CHECK(same(p2o_diag_text(d, p2o_diags_at(d, 1)),
               "net.pt2: error: input features: 512 against 768 [shape-mismatch]\n"
               "  at forward (net.py:41), module enc.proj: y = self.proj(x)"));
    CHECK(same(p2o_diag_text(d, p2o_diags_at(d, 2)),
               "net.pt2: error: cannot do this [unsupported]\n  do that"));
    CHECK(same(p2o_diag_kind_name(DIAG_BAD_FILE), "bad-file"));
    CHECK(p2o_diag_severity(DIAG_NOTE) == SEV_NOTE && p2o_diag_status(DIAG_IO) == ST_IO);
}

static void test_places(Arena *a)
{
    Diags *d = p2o_diags_new(a, NULL, NULL);
    Loc    x =
        p2o_place_add(d, (PlaceInfo){ STR("C:\\me\\a.py"), STR("f"), STR(""), STR(""), 1, false });
    Loc    y = p2o_place_add(d, (PlaceInfo){ STR("a.py"), STR("f"), STR(""), STR(""), 2, false });
    CHECK(x != 0 && y != 0 && x != y);
    CHECK(p2o_place_add(
              d, (PlaceInfo){ STR("/elsewhere/a.py"), STR("f"), STR(""), STR(""), 1, false }) == x);
    CHECK(same(p2o_place_at(d, x)->file, "a.py") && p2o_place_at(d, x)->module == NULL);
    CHECK(p2o_place_at(d, 0) == NULL && p2o_place_at(d, 1000) == NULL);
}

static const char *folder;                                  /* ours, removed at the end */

static const char *in_folder(Arena *a, const char *name)
{
    return p2o_printf(a, "%s/%s", folder, name);
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static int files_in_folder(void)
{
    int  n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static bool holds(Arena *a, const char *path, const char *want)
{
    Diags      *d = p2o_diags_new(a, NULL, NULL);
    size_t      n;
    const char *text = p2o_read_text(d, path, &n);
    return text && n == strlen(want) && same(text, want);
}

static void test_sink_file(Arena *a)
{
    Diags      *d = p2o_diags_new(a, NULL, NULL);
    const char *path = in_folder(a, "out.onnx");

    Sink *s = p2o_sink_file(d, path);
    p2o_sink_write(s, "hello", 5);
    p2o_sink_pad(s, 3);
    CHECK(p2o_sink_offset(s) == 8);
    CHECK(!exists(path));                                   /* no file under the final name yet */
    CHECK(p2o_sink_commit(s) && !p2o_sink_failed(s));
    struct stat st;
    CHECK(stat(path, &st) == 0 && st.st_size == 8);
    CHECK(files_in_folder() == 1);
    p2o_sink_abort(s);                                      /* after commit: nothing */
    CHECK(exists(path));

    s = p2o_sink_file(d, path);                             /* an existing file survives an abort */
    p2o_sink_write(s, "worse", 5);
    p2o_sink_abort(s);
    p2o_sink_abort(s);
    CHECK(stat(path, &st) == 0 && st.st_size == 8 && files_in_folder() == 1);

    s = p2o_sink_file(d, path);                             /* and is replaced by a commit */
    Sink *other = p2o_sink_file(d, path);                   /* two writers do not meet */
    p2o_sink_write(s, "new", 3);
    p2o_sink_write(other, "other", 5);
    CHECK(stat(path, &st) == 0 && st.st_size == 8);
    CHECK(p2o_sink_commit(s) && holds(a, path, "new"));
    CHECK(p2o_sink_commit(other) && holds(a, path, "other"));
    CHECK(files_in_folder() == 1 && p2o_diags_count(d) == 0);
    unlink(path);
}

static void test_sink_errors(Arena *a)
{
    Diags *d = p2o_diags_new(a, NULL, NULL);
    CHECK(p2o_sink_file(d, in_folder(a, "no/such/folder/x")) == NULL);
    CHECK(p2o_diags_count(d) == 1 && p2o_diags_status(d) == ST_IO);

    const char *path = in_folder(a, "taken");
    CHECK(mkdir(path, 0777) == 0);
    Sink *s = p2o_sink_file(d, path);                       /* its name is a folder at commit */
    p2o_sink_write(s, "x", 1);
    CHECK(!p2o_sink_commit(s) && p2o_sink_failed(s) && p2o_diags_count(d) == 2);
    CHECK(files_in_folder() == 1);
    rmdir(path);
    p2o_sink_abort(NULL);
}

/* Takes `room` bytes and then fails. */
typedef struct Taker {
    char   got[64];
    size_t n, room;
} Taker;

static bool take_bytes(void *user, const void *p, size_t n)
{
    Taker *t = user;
    if (n > t->room - t->n)
        return false;
    memcpy(t->got + t->n, p, n);
    t->n += n;
    return true;
}

static void test_sink_callback(Arena *a)
{
    Diags *d = p2o_diags_new(a, NULL, NULL);
    Taker  t = { .room = 10 };
    Sink  *s = p2o_sink_callback(d, take_bytes, &t);
    p2o_sink_write(s, "abc", 3);
    p2o_sink_write(s, "", 0);
    p2o_sink_pad(s, 2);
    CHECK(!p2o_sink_failed(s) && p2o_sink_offset(s) == 5 && !memcmp(t.got, "abc\0\0", 5));
    p2o_sink_write(s, "too much", 8);
    CHECK(p2o_sink_failed(s));
    p2o_sink_write(s, "x", 1);                              /* ignored, though it would fit */
    CHECK(t.n == 5);
    CHECK(!p2o_sink_commit(s) && p2o_diags_count(d) == 1 && p2o_diags_status(d) == ST_IO);
}

static bool serve_bytes(void *user, uint64_t offset, void *buf, size_t n)
{
    if (offset >= 100)
        return false;                                       /* as if the disk ended here */
    memset(buf, (int)(offset & 0xFF) + *(int *)user, n);
    return true;
}

static void check_ranges(Source *s, uint64_t size)
{
    char c;
    CHECK(p2o_source_size(s) == size);
    CHECK(p2o_source_view(s, 0, 1) && p2o_source_read(s, size - 1, &c, 1));
    CHECK(p2o_source_view(s, size, 0) != NULL || size >= 100);
    CHECK(!p2o_source_view(s, size, 1) && !p2o_source_read(s, size, &c, 1));
    CHECK(!p2o_source_view(s, size + 1, 0) && !p2o_source_view(s, 0, (size_t)size + 1));
    CHECK(!p2o_source_view(s, UINT64_MAX, 2) && !p2o_source_view(s, 1, SIZE_MAX));
    CHECK(!p2o_source_read(s, UINT64_MAX, &c, 1));
}

static void test_source(Arena *a)
{
    Diags *d = p2o_diags_new(a, NULL, NULL);
    Source *s = p2o_source_memory(a, "0123456789", 10);
    check_ranges(s, 10);
    CHECK(!memcmp(p2o_source_view(s, 3, 4), "3456", 4) && p2o_source_path(s) == NULL);
    CHECK(p2o_source_size(p2o_source_memory(a, NULL, 0)) == 0);

    int add = 5;
    s = p2o_source_callback(d, 50, serve_bytes, &add);
    check_ranges(s, 50);
    const uint8_t *p = p2o_source_view(s, 7, 2);
    CHECK(p && p[0] == 12 && p[1] == 12);
    s = p2o_source_callback(d, 200, serve_bytes, &add);
    char c;
    CHECK(p2o_source_read(s, 99, &c, 1) && !p2o_source_read(s, 100, &c, 1));
    CHECK(p2o_source_view(s, 150, 1) == NULL && p2o_diags_count(d) == 0);
}

static void test_source_file(Arena *a)
{
    Diags      *d = p2o_diags_new(a, NULL, NULL);
    const char *path = in_folder(a, "in");
    Sink       *k = p2o_sink_file(d, path);
    p2o_sink_write(k, "0123456789", 10);
    CHECK(p2o_sink_commit(k));

    Source *s = p2o_source_open(d, path);
    check_ranges(s, 10);
    CHECK(!memcmp(p2o_source_view(s, 8, 2), "89", 2) && same(p2o_source_path(s), path));
    p2o_source_close(s);
    CHECK(p2o_source_size(s) == 0 && p2o_source_view(s, 0, 1) == NULL);
    p2o_source_close(s);
    p2o_source_close(NULL);

    k = p2o_sink_file(d, path);
    CHECK(p2o_sink_commit(k));
    s = p2o_source_open(d, path);                           /* an empty file is a file */
    CHECK(s && p2o_source_size(s) == 0 && p2o_diags_count(d) == 0);
    p2o_source_close(s);
    CHECK(holds(a, path, ""));
    unlink(path);

    CHECK(p2o_source_open(d, path) == NULL && p2o_diags_status(d) == ST_INPUT);
    CHECK(p2o_source_open(d, folder) == NULL && p2o_diags_count(d) == 2);
    CHECK(strstr(p2o_diags_at(d, 1)->text, "directory") != NULL);
}

static void check_whole(void)
{
    int64_t v = 7;
    CHECK(!p2o_whole(INFINITY, &v) && !p2o_whole(-INFINITY, &v) && !p2o_whole(NAN, &v) &&
          !p2o_whole(0.5, &v));
    CHECK(!p2o_whole(0x1p53, &v) && !p2o_whole(-0x1p53, &v) && !p2o_whole((double)INT64_MAX, &v) &&
          v == 7);
    CHECK(p2o_whole(0x1p53 - 1, &v) && v == ((int64_t)1 << 53) - 1 && p2o_whole(-3, &v) && v == -3);
    CHECK(p2o_whole(-0.0, &v) && v == 0);
}

int main(void)
{
    check_whole();
    Arena      *a = p2o_arena_new(NULL, NULL);
    const char *tmp = getenv("TMPDIR");
    char       *made = p2o_alloc(a, strlen(tmp ? tmp : "/tmp") + 32);
    strcat(strcpy(made, tmp ? tmp : "/tmp"), "/p2o_test_base_XXXXXX");
    folder = mkdtemp(made);
    CHECK(folder != NULL);
    if (!folder)
        return check_report();

    test_arena();
    test_arena_mark_of_empty();
    test_arena_exhausted();
    test_vec(a);
    test_str(a);
    test_buf(a);
    test_map(a);
    test_parse_i64();
    test_parse_f64();
    test_format();
    test_locale();
    test_checked_arithmetic();
    test_half();
    test_diag(a);
    test_places(a);
    test_sink_file(a);
    test_sink_errors(a);
    test_sink_callback(a);
    test_source(a);
    test_source_file(a);
    CHECK(files_in_folder() == 0);
    rmdir(folder);
    p2o_arena_free(a);
    return check_report();
}
