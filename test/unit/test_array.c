/* Arrays: .npz files read and written, random ones, comparison.  Files go to argv[1] or /tmp. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/num.h"
#include "check.h"
#include "run/array.h"

static Arena      *arena;
static Diags      *diags;
static const char *folder = "/tmp";

static const char *path_of(const char *name)
{
    return p2o_printf(arena, "%s/p2o_test_array_%ld_%s", folder, (long)getpid(), name);
}

static void fresh_diags(void) { diags = p2o_diags_new(arena, NULL, NULL); }

static void put_number(Buf *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)(v >> (8 * i));
        p2o_put(b, &byte, 1);
    }
}

static Str npy_bytes(int version, const char *dict, const void *data, size_t n)
{
    Buf b = { .arena = arena };
    p2o_puts(&b, "\x93NUMPY");
    put_number(&b, (uint64_t)version, 2);
    put_number(&b, strlen(dict), version == 1 ? 2 : 4);
    p2o_puts(&b, dict);
    p2o_put(&b, data, n);
    return buf_str(&b);
}

/* An archive with one member, written to a file. */
static const char *npz_file(const char *member, Str body)
{
    Buf         b = { .arena = arena }, facts = { .arena = arena };
    const char *path = path_of("in.npz");

    put_number(&facts, 20, 2);
    put_number(&facts, 0, 2 + 2 + 2 + 2);
    put_number(&facts, crc32(0, (const Bytef *)body.p, (uInt)body.n), 4);
    put_number(&facts, body.n, 4);
    put_number(&facts, body.n, 4);
    put_number(&facts, strlen(member), 2);
    put_number(&facts, 0, 2);
    put_number(&b, 0x04034b50, 4);
    p2o_put(&b, facts.at, facts.n);
    p2o_puts(&b, member);
    p2o_put(&b, body.p, body.n);
    size_t start = b.n;
    put_number(&b, 0x02014b50, 4);
    put_number(&b, 20, 2);
    p2o_put(&b, facts.at, facts.n);
    put_number(&b, 0, 6);
    put_number(&b, 0, 4);
    put_number(&b, 0, 4);
    p2o_puts(&b, member);
    size_t size = b.n - start;
    put_number(&b, 0x06054b50, 4);
    put_number(&b, 0, 4);
    put_number(&b, 1, 2);
    put_number(&b, 1, 2);
    put_number(&b, size, 4);
    put_number(&b, start, 4);
    put_number(&b, 0, 2);
    fresh_diags();
    Sink *s = p2o_sink_file(diags, path);
    p2o_sink_write(s, b.at, b.n);
    CHECK(p2o_sink_commit(s));
    return path;
}

/* The array in a file with this header and data; NULL when it is refused. */
static const Array *read_npy(int version, const char *dict, const void *data, size_t n)
{
    Npz        *z = NEW(arena, Npz);
    const char *path = npz_file("a.npy", npy_bytes(version, dict, data, n));
    bool        ok = p2o_npz_read(diags, path, z);
    unlink(path);
    CHECK(ok == (p2o_diags_errors(diags) == 0));
    return ok ? p2o_npz_find(z, "a") : NULL;
}

static void test_headers(void)
{
    static const float data[] = { 1, 2, 3, 4, 5, 6 };
    static const char *const good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'shape': (2,3), 'fortran_order':False, 'descr':'<f4'}   \n",
        "{\"descr\": \"=f4\", \"fortran_order\": False, \"shape\": (2, 3,)}\n",
    };
    static const char *const bad[] = {
        "", "{", "{}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (2, 3)}",
        "{'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.0)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 16)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
        "{'descr': '<f4 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<U2', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4<f4<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
    };
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            const Array *x = read_npy(version, good[i], data, sizeof data);
            CHECK(x && x->dtype == DT_F32 && x->rank == 2 && x->sizes[0] == 2 && x->sizes[1] == 3);
            CHECK(x && x->nbytes == sizeof data && !memcmp(x->data, data, sizeof data));
        }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!read_npy(1, bad[i], data, sizeof data));
    CHECK(!read_npy(4, good[0], data, sizeof data));
    CHECK(!read_npy(0x101, good[0], data, sizeof data));
    CHECK(!read_npy(1, good[0], data, sizeof data - 1));

    Buf deep = { .arena = arena };
    p2o_puts(&deep, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < 65; i++)
        p2o_puts(&deep, "1, ");
    p2o_puts(&deep, ")}");
    CHECK(!read_npy(1, deep.at, data, 4));
}

static void test_cut_off(void)
{
    static const float data[] = { 1 };
    Str whole = npy_bytes(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", data,
                          sizeof data);
    for (size_t n = 0; n < whole.n; n++) {
        Npz         z;
        const char *path = npz_file("a.npy", (Str){ whole.p, n });
        CHECK(!p2o_npz_read(diags, path, &z) && p2o_diags_errors(diags) == 1);
        unlink(path);
    }
    Npz         z;
    const char *path = npz_file("a.txt", whole);
    CHECK(!p2o_npz_read(diags, path, &z) && p2o_diags_errors(diags) == 1);
    unlink(path);
    fresh_diags();
    CHECK(!p2o_npz_read(diags, path_of("absent.npz"), &z) && p2o_diags_errors(diags) == 1);
}

static void test_layouts(void)
{
    /* [[0, 1, 2], [3, 4, 5]] by columns */
    static const int16_t columns[] = { 0, 3, 1, 4, 2, 5 };
    const Array *x = read_npy(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}",
                              columns, 12);
    for (uint64_t i = 0; i < 6; i++)
        CHECK(x && p2o_array_at(x, i) == (double)i);
    static const uint8_t cube[] = { 0, 4, 2, 6, 1, 5, 3, 7 };       /* strides 1, 2, 4 */
    x = read_npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 2)}", cube, 8);
    for (uint64_t i = 0; i < 8; i++)
        CHECK(x && p2o_array_at(x, i) == (double)i);
    x = read_npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (8,)}", cube, 8);
    CHECK(x && p2o_array_at(x, 1) == 4);
    x = read_npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 3)}", "", 0);
    CHECK(x && x->nbytes == 0 && x->sizes[1] == 3 && p2o_array_nelem(x) == 0);
    x = read_npy(
        1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 461168601842738790, 99)}", "", 0);
    CHECK(x && x->nbytes == 0);

    static const uint8_t big[] = { 0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0 };
    x = read_npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", big, 8);
    CHECK(x && p2o_array_at(x, 0) == 1 && p2o_array_at(x, 1) == -2);
    x = read_npy(1, "{'descr': '>c8', 'fortran_order': False, 'shape': ()}", big, 8);
    CHECK(x && x->dtype == DT_C64 && x->rank == 0 && p2o_array_at(x, 0) == 1);
    x = read_npy(1, "{'descr': '>i8', 'fortran_order': False, 'shape': ()}",
                 "\xff\xff\xff\xff\xff\xff\xff\xfe", 8);
    CHECK(x && p2o_array_at(x, 0) == -2);

    static const uint8_t bools[] = { 0, 1, 2, 255 };
    x = read_npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", bools, 4);
    CHECK(x && !memcmp(x->data, "\0\1\1\1", 4));
    x = read_npy(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "\x80\x3f", 2);
    CHECK(x && x->dtype == DT_BF16 && p2o_array_at(x, 0) == 1);
    x = read_npy(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", "\x00\xbc", 2);
    CHECK(x && x->dtype == DT_F16 && p2o_array_at(x, 0) == -1);
}

static Array array_of(DType t, int rank, const int64_t *sizes, const void *data)
{
    Array x;
    CHECK(p2o_array_make(arena, t, rank, sizes, &x));
    if (x.nbytes)
        memcpy(x.data, data, x.nbytes);
    return x;
}

static void test_round_trip(void)
{
    static const int64_t sizes[] = { 2, 3 }, none[] = { 0, 3 };
    uint64_t    seed = 1;
    NamedArray  all[DT_COUNT + 2];
    size_t      n = 0;
    const char *path = path_of("out.npz");
    for (int t = 1; t < DT_COUNT; t++)
        if (*p2o_dtype_npy((DType)t)) {
            all[n].name = p2o_dtype_text((DType)t);
            CHECK(p2o_array_random(arena, (DType)t, 2, sizes, &seed, &all[n++].array));
        }
    all[n].name = "scalar/with:odd name";
    CHECK(p2o_array_random(arena, DT_F32, 0, NULL, &seed, &all[n++].array));
    all[n].name = "empty";
    CHECK(p2o_array_random(arena, DT_I64, 2, none, &seed, &all[n++].array));
    fresh_diags();
    CHECK(p2o_npz_write(diags, path, all, n));
    size_t      len1, len2;
    const char *bytes1 = p2o_read_text(diags, path, &len1);
    Npz         z;
    CHECK(p2o_npz_read(diags, path, &z) && z.n == n);
    for (size_t i = 0; i < n && i < z.n; i++) {
        ArrayDiff    diff = { .noutside = 1 };
        const Array *x = p2o_npz_find(&z, all[i].name);
        CHECK(x && p2o_array_compare(x, &all[i].array, (Tolerance){ 0, 0 }, &diff));
        CHECK(diff.noutside == 0);
    }
    CHECK(!p2o_npz_find(&z, "absent"));
    CHECK(p2o_npz_write(diags, path, all, n));
    const char *bytes2 = p2o_read_text(diags, path, &len2);
    CHECK(bytes1 && bytes2 && len1 == len2 && !memcmp(bytes1, bytes2, len1));

    NamedArray half = { .name = "h" }, odd = { .name = "o" };
    CHECK(p2o_array_random(arena, DT_BF16, 2, sizes, &seed, &half.array));
    CHECK(p2o_npz_write(diags, path, &half, 1) && p2o_npz_read(diags, path, &z));
    CHECK(z.at[0].array.dtype == DT_F32);
    for (uint64_t i = 0; i < 6; i++)
        CHECK(p2o_array_at(&z.at[0].array, i) == p2o_array_at(&half.array, i));
    CHECK(p2o_diags_errors(diags) == 0);
    CHECK(p2o_array_random(arena, DT_F8E5M2, 2, sizes, &seed, &odd.array));
    CHECK(!p2o_npz_write(diags, path, &odd, 1) && p2o_diags_errors(diags) == 1);
    CHECK(!p2o_npz_write(diags, path_of("no/such/folder.npz"), &half, 1));
    unlink(path);
}

static void test_make(void)
{
    static const int64_t huge[] = { INT64_MAX, INT64_MAX }, negative[] = { -1, 2 };
    static const int64_t zero_huge[] = { INT64_MAX, 0, INT64_MAX }, hidden[] = { 0, -1 };
    Array                x = { .rank = 77 };
    CHECK(!p2o_array_make(arena, DT_F32, 2, huge, &x) && x.rank == 77);
    CHECK(!p2o_array_make(arena, DT_F32, 2, negative, &x));
    CHECK(!p2o_array_make(arena, DT_F32, 2, hidden, &x));
    CHECK(!p2o_array_make(arena, DT_STR, 0, NULL, &x));
    CHECK(!p2o_array_make(arena, DT_NONE, 0, NULL, &x));
    CHECK(p2o_array_make(arena, DT_F32, 3, zero_huge, &x) && x.nbytes == 0 && x.data);
    CHECK(p2o_array_make(arena, DT_C128, 0, NULL, &x) && x.nbytes == 16);
    CHECK(p2o_array_nelem(&x) == 1);
    CHECK(same(p2o_array_shape_text(arena, &x), "[]"));
    CHECK(p2o_array_make(arena, DT_U8, 2, (int64_t[]){ 2, 5 }, &x));
    CHECK(same(p2o_array_shape_text(arena, &x), "[2, 5]"));
}

static void test_elements(void)
{
    static const int64_t one[] = { 1 };
    Array x = array_of(DT_U64, 1, one, "\xff\xff\xff\xff\xff\xff\xff\xff");
    CHECK(p2o_array_at(&x, 0) == 18446744073709551615.0);
    x = array_of(DT_I8, 1, one, "\x80");
    CHECK(p2o_array_at(&x, 0) == -128);
    x = array_of(DT_U8, 1, one, "\x80");
    CHECK(p2o_array_at(&x, 0) == 128);
    x = array_of(DT_I32, 1, one, "\xff\xff\xff\x7f");
    CHECK(p2o_array_at(&x, 0) == 2147483647);
    x = array_of(DT_F8E4M3FN, 1, one, "\x38");
    CHECK(isnan(p2o_array_at(&x, 0)));

    Array wide, back;
    x = array_of(DT_F32, 0, NULL, (float[]){ 1.0f / 3 });
    CHECK(p2o_array_convert(arena, &x, DT_F64, &wide));
    CHECK(p2o_array_at(&wide, 0) == (double)(1.0f / 3));
    CHECK(p2o_array_convert(arena, &wide, DT_BF16, &back) && p2o_array_at(&back, 0) == 0.333984375);
    CHECK(p2o_array_convert(arena, &x, DT_F16, &back) && p2o_array_at(&back, 0) == 0.333251953125);
    CHECK(!p2o_array_convert(arena, &x, DT_I32, &back));
    x = array_of(DT_I32, 0, NULL, "\1\0\0\0");
    CHECK(!p2o_array_convert(arena, &x, DT_F32, &back));
}

static void test_random(void)
{
    static const int64_t sizes[] = { 100, 40 };
    for (int t = 1; t < DT_COUNT; t++) {
        uint64_t  seed = 7, again = 7;
        ArrayDiff diff;
        Array     x, y;
        if (!p2o_dtype_bytes((DType)t))
            continue;
        CHECK(p2o_array_random(arena, (DType)t, 2, sizes, &seed, &x));
        CHECK(p2o_array_random(arena, (DType)t, 2, sizes, &again, &y));
        CHECK(p2o_array_compare(&x, &y, (Tolerance){ 0, 0 }, &diff) && diff.noutside == 0);
        CHECK(p2o_array_random(arena, (DType)t, 2, sizes, &again, &y) && seed != again);
        CHECK(p2o_array_compare(&x, &y, (Tolerance){ 0, 0 }, &diff) && diff.noutside > 0);
        ArrayStats s = p2o_array_stats(&x);
        if (is_int((DType)t) || t == DT_BOOL)
            CHECK(s.min == 0 && s.max == 1 && s.mean > 0.4 && s.mean < 0.6);
        else if (s.nnan == 0)
            CHECK(s.min > -3.6 && s.min < -2 && s.max < 3.6 && s.max > 2 && fabs(s.mean) < 0.1);
    }
}

static ArrayDiff f32_diff(float x, float y, double atol, double rtol)
{
    Array     a = array_of(DT_F32, 0, NULL, &x), b = array_of(DT_F32, 0, NULL, &y);
    ArrayDiff diff = { 0 };
    CHECK(p2o_array_compare(&a, &b, (Tolerance){ atol, rtol }, &diff));
    return diff;
}

static void test_compare(void)
{
    CHECK(f32_diff(1, 1, 0, 0).noutside == 0);
    CHECK(f32_diff(1.5f, 1, 0.5, 0).noutside == 0 && f32_diff(1.5f, 1, 0.5, 0).max_abs == 0.5);
    CHECK(f32_diff(1.5f, 1, 0.49, 0).noutside == 1);
    CHECK(f32_diff(110, 100, 0, 0.1).noutside == 0 && f32_diff(110, 100, 0, 0.09).noutside == 1);
    CHECK(f32_diff(NAN, NAN, 0, 0).max_abs == 0 && f32_diff(INFINITY, INFINITY, 0, 0).max_abs == 0);
    CHECK(f32_diff(NAN, 1, 1e9, 1e9).noutside == 1 && f32_diff(1, NAN, 1e9, 1e9).noutside == 1);
    CHECK(f32_diff(INFINITY, -INFINITY, 1e9, 1e9).noutside == 1);
    CHECK(f32_diff(1, INFINITY, 1e9, 1e9).noutside == 1);
    CHECK(f32_diff(INFINITY, 1, 1e9, 1e9).noutside == 1);
    CHECK(isinf(f32_diff(1, INFINITY, 1, 1).max_abs) && f32_diff(0.0f, -0.0f, 0, 0).noutside == 0);

    static const int64_t two[] = { 2 }, flat[] = { 1, 2 };
    ArrayDiff diff;
    Array big = array_of(DT_F32, 1, two, (float[]){ 1000.5f, 1 });
    Array ref = array_of(DT_F32, 1, two, (float[]){ 1000, 1.25f });
    CHECK(p2o_array_compare(&big, &ref, (Tolerance){ 0, 1e-2 }, &diff));
    CHECK(diff.max_abs == 0.5 && diff.noutside == 1 && diff.worst == 1);    /* 0 is within */

    Array i1 = array_of(DT_I64, 1, two, (int64_t[]){ INT64_MIN, 5 });
    Array i2 = array_of(DT_I64, 1, two, (int64_t[]){ INT64_MAX, 5 });
    CHECK(p2o_array_compare(&i1, &i2, (Tolerance){ 1e30, 1e30 }, &diff));
    CHECK(diff.noutside == 1 && diff.max_abs == 18446744073709551615.0 && diff.worst == 0);
    Array b1 = array_of(DT_BOOL, 1, two, "\1\0"), b2 = array_of(DT_BOOL, 1, two, "\2\1");
    CHECK(p2o_array_compare(&b1, &b2, (Tolerance){ 9, 9 }, &diff));
    CHECK(diff.noutside == 1 && diff.worst == 1 && diff.max_abs == 1);
    Array h1 = array_of(DT_F16, 1, two, "\x00\x3c\x00\x3c");
    Array h2 = array_of(DT_F16, 1, two, "\x00\x3c\x00\x40");
    CHECK(p2o_array_compare(&h1, &h2, (Tolerance){ 0.5, 0 }, &diff));
    CHECK(diff.noutside == 1 && diff.max_abs == 1);
    Array c1 = array_of(DT_C64, 0, NULL, (float[]){ 1, 2 });
    Array c2 = array_of(DT_C64, 0, NULL, (float[]){ 1, 3 });
    CHECK(p2o_array_compare(&c1, &c2, (Tolerance){ 0.5, 0 }, &diff));
    CHECK(diff.noutside == 1 && diff.worst == 0);
    Array reshaped = array_of(DT_F32, 2, flat, ref.data);
    CHECK(!p2o_array_compare(&reshaped, &ref, (Tolerance){ 9, 9 }, &diff));
    CHECK(!p2o_array_compare(&i1, &ref, (Tolerance){ 9, 9 }, &diff));
}

static void test_stats(void)
{
    static const int64_t four[] = { 4 }, none[] = { 0 };
    Array      x = array_of(DT_F32, 1, four, (float[]){ -1, NAN, 5, 2 });
    ArrayStats s = p2o_array_stats(&x);
    CHECK(s.min == -1 && s.max == 5 && s.mean == 2 && s.nnan == 1);
    x = array_of(DT_F32, 1, none, NULL);
    s = p2o_array_stats(&x);
    CHECK(s.min == 0 && s.max == 0 && s.mean == 0 && s.nnan == 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        folder = argv[1];
    arena = p2o_arena_new(NULL, NULL);
    test_headers();
    test_cut_off();
    test_layouts();
    test_round_trip();
    test_make();
    test_elements();
    test_random();
    test_compare();
    test_stats();
    p2o_arena_free(arena);
    return check_report();
}
