/* ir/tensor: checks, views, and streaming against a gather written the plain way. */
#include <math.h>

#include "base/num.h"
#include "base/vec.h"
#include "check.h"
#include "ir/tensor.h"

static Arena *arena;

static Storage *storage_of(const void *p, size_t n)
{
    Storage *s = NEW(arena, Storage);
    uint8_t *copy = p2o_alloc(arena, n);                /* of the exact size: overruns are seen */
    if (n)
        memcpy(copy, p, n);
    *s = (Storage){ .source = p2o_source_memory(arena, copy, n), .nbytes = n };
    return s;
}

/* n bytes that tell where they came from. */
static Storage *counted_storage(size_t n)
{
    uint8_t *p = p2o_alloc(arena, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 7 + i / 251);
    return storage_of(p, n);
}

static Tensor view_of(const Storage *s, DType t, int rank, const int64_t *sizes,
                      const int64_t *strides, uint64_t offset)
{
    return (Tensor){ .storage = s, .dtype = t, .rank = rank, .sizes = sizes, .strides = strides,
                     .offset = offset };
}

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

static const char *why_not(Tensor x)
{
    const char *why = NULL;
    bool        ok = p2o_tensor_check(&x, &why);
    CHECK(ok == (why == NULL));
    return why ? why : "";
}

static void test_check(void)
{
    const Storage *s = counted_storage(96);
    CHECK(same(why_not(view_of(s, DT_F32, 2, DIMS(4, 6), DIMS(6, 1), 0)), ""));
    CHECK(same(why_not(view_of(s, DT_F32, 2, DIMS(4, 6), DIMS(1, 4), 0)), ""));
    CHECK(same(why_not(view_of(s, DT_F32, 0, NULL, NULL, 23)), ""));
    CHECK(strstr(why_not(view_of(s, DT_F32, 0, NULL, NULL, 24)), "past the end of its storage"));
    CHECK(strstr(why_not(view_of(s, DT_F32, 2, DIMS(4, 6), DIMS(6, 1), 1)), "past the end"));
    CHECK(strstr(why_not(view_of(s, DT_F64, 2, DIMS(4, 6), DIMS(6, 1), 0)), "past the end"));
    CHECK(same(why_not(view_of(s, DT_F32, 2, DIMS(2, 4), DIMS(4, 1), 16)), ""));
    CHECK(same(why_not(view_of(s, DT_U8, 1, DIMS(96), DIMS(1), 0)), ""));
    CHECK(strstr(why_not(view_of(s, DT_U8, 1, DIMS(97), DIMS(1), 0)), "past the end"));
    CHECK(strstr(why_not(view_of(s, DT_U8, 1, DIMS(-1), DIMS(1), 0)), "negative"));
    CHECK(strstr(why_not(view_of(s, DT_U8, 1, DIMS(1), DIMS(-1), 0)), "negative"));
    CHECK(strstr(why_not(view_of(s, DT_NONE, 1, DIMS(1), DIMS(1), 0)), "no element type"));
    CHECK(strstr(why_not(view_of(s, DT_STR, 1, DIMS(1), DIMS(1), 0)), "no element type"));
    int64_t ones[65];
    for (int i = 0; i < 65; i++)
        ones[i] = 1;
    CHECK(same(why_not(view_of(s, DT_F32, 64, ones, ones, 0)), ""));
    CHECK(strstr(why_not(view_of(s, DT_F32, 65, ones, ones, 0)), "rank"));
    CHECK(strstr(why_not(view_of(s, DT_F32, -1, ones, ones, 0)), "rank"));
}

static void test_check_overflow(void)
{
    const Storage *s = counted_storage(96);
    int64_t        big = INT64_MAX;
    CHECK(strstr(why_not(view_of(s, DT_F32, 2, DIMS(big, 4), DIMS(0, 0), 0)), "overflows"));
    CHECK(strstr(why_not(view_of(s, DT_F32, 1, DIMS(big), DIMS(0), 0)), "overflows"));
    CHECK(strstr(why_not(view_of(s, DT_U8, 2, DIMS(3, 3), DIMS(big, big), 0)), "overflows"));
    CHECK(strstr(why_not(view_of(s, DT_F32, 1, DIMS(2), DIMS(big), 0)), "overflows"));
    CHECK(strstr(why_not(view_of(s, DT_F32, 1, DIMS(2), DIMS(1), UINT64_MAX)), "overflows"));
    CHECK(strstr(why_not(view_of(s, DT_F32, 0, NULL, NULL, UINT64_MAX / 2)), "overflows"));
    /* 4 bytes may not claim to be a disk full */
    CHECK(strstr(why_not(view_of(s, DT_F32, 1, DIMS((int64_t)1 << 40), DIMS(0), 0)), "16 GB"));
    CHECK(same(why_not(view_of(s, DT_F32, 1, DIMS(1 << 20), DIMS(0), 0)), ""));
    /* an empty tensor fits anywhere, whatever its other sizes */
    CHECK(same(why_not(view_of(s, DT_F32, 3, DIMS(big, 0, big), DIMS(big, big, big), 7)), ""));
    CHECK(same(why_not(view_of(s, DT_F32, 1, DIMS(1), DIMS(big), 5)), ""));

    Storage past = *s;
    past.offset = 1;
    CHECK(strstr(why_not(view_of(&past, DT_U8, 1, DIMS(1), DIMS(1), 0)), "end of the file"));
    past.offset = UINT64_MAX;
    CHECK(strstr(why_not(view_of(&past, DT_U8, 1, DIMS(1), DIMS(1), 0)), "end of the file"));

    Storage none = { .source = NULL };                  /* zeros, as fake tensors leave */
    CHECK(same(why_not(view_of(&none, DT_F32, 2, DIMS(4, 6), DIMS(6, 1), 0)), ""));
    CHECK(strstr(why_not(view_of(&none, DT_F32, 1, DIMS((int64_t)1 << 40), DIMS(1), 0)), "16 GB"));
}

static void test_nelem(void)
{
    uint64_t n = 99;
    Tensor   x = view_of(NULL, DT_F32, 3, DIMS(2, 3, 4), NULL, 0);
    CHECK(p2o_tensor_nelem(&x, &n) && n == 24);
    x.rank = 0;
    CHECK(p2o_tensor_nelem(&x, &n) && n == 1);
    x = view_of(NULL, DT_F32, 3, DIMS(INT64_MAX, INT64_MAX, 0), NULL, 0);
    CHECK(p2o_tensor_nelem(&x, &n) && n == 0);
    n = 99;
    x = view_of(NULL, DT_F32, 3, DIMS(INT64_MAX, INT64_MAX, 1), NULL, 0);
    CHECK(!p2o_tensor_nelem(&x, &n) && n == 99);
    x = view_of(NULL, DT_F32, 2, DIMS(0, -1), NULL, 0);
    CHECK(!p2o_tensor_nelem(&x, &n));
}

static bool contiguous(int rank, const int64_t *sizes, const int64_t *strides)
{
    Tensor x = view_of(NULL, DT_F32, rank, sizes, strides, 0);
    return p2o_tensor_is_contiguous(&x);
}

static void test_contiguous(void)
{
    CHECK(contiguous(0, NULL, NULL) && contiguous(2, DIMS(4, 6), DIMS(6, 1)));
    CHECK(!contiguous(2, DIMS(4, 6), DIMS(1, 4)) && !contiguous(2, DIMS(4, 6), DIMS(7, 1)));
    CHECK(!contiguous(1, DIMS(4), DIMS(2)) && !contiguous(1, DIMS(4), DIMS(0)));
    CHECK(contiguous(3, DIMS(4, 1, 6), DIMS(6, 99, 1)) && contiguous(2, DIMS(1, 1), DIMS(5, 7)));
    CHECK(contiguous(2, DIMS(3, 0), DIMS(17, 5)) && contiguous(2, DIMS(0, 3), DIMS(17, 5)));
    CHECK(!contiguous(2, DIMS(INT64_MAX, INT64_MAX), DIMS(INT64_MAX, 1)));
}

typedef struct Heard {
    Buf      bytes;
    uint64_t calls, limit;              /* fails at call number `limit`; 0: never */
} Heard;

static bool hear_bytes(void *user, const void *p, size_t n)
{
    Heard *h = user;
    CHECK(n > 0);
    p2o_put(&h->bytes, p, n);
    return ++h->calls != h->limit;
}

/* Element by element, with division. */
static bool gather_plainly(const Tensor *x, uint8_t *out)
{
    uint64_t n = 1, item = p2o_dtype_bytes(x->dtype);
    for (int k = 0; k < x->rank; k++)
        n *= (uint64_t)x->sizes[k];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, at = x->offset;
        for (int k = x->rank - 1; k >= 0; k--) {
            at += rest % (uint64_t)x->sizes[k] * (uint64_t)x->strides[k];
            rest /= (uint64_t)x->sizes[k];
        }
        if (!p2o_source_read(x->storage->source, x->storage->offset + at * item, out + i * item,
                             (size_t)item))
            return false;
    }
    return true;
}

/* Streams, loads and compares; returns the number of runs, 0 when something is wrong. */
static uint64_t runs_of(const Tensor *x)
{
    Heard    h = { .bytes.arena = arena };
    uint64_t n = 0;
    if (!p2o_tensor_nelem(x, &n) || !p2o_tensor_stream(x, hear_bytes, &h))
        return 0;
    size_t   nbytes = (size_t)n * p2o_dtype_bytes(x->dtype);
    uint8_t *want = p2o_alloc(arena, nbytes), *got = p2o_alloc(arena, nbytes);
    bool ok = gather_plainly(x, want) && h.bytes.n == nbytes &&
              !memcmp(buf_str(&h.bytes).p, want, nbytes) &&
              p2o_tensor_load(x, got, nbytes) && !memcmp(got, want, nbytes);
    return ok ? h.calls : 0;
}

static void test_stream_forms(void)
{
    static const DType types[] = { DT_U8, DT_F16, DT_F32, DT_I64, DT_C128 };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        Storage *s = counted_storage(400 * p2o_dtype_bytes(types[i]));
        s->offset = p2o_dtype_bytes(types[i]);          /* a storage inside a file */
        s->nbytes -= s->offset;
        Tensor x[] = {
            view_of(s, types[i], 0, NULL, NULL, 398),
            view_of(s, types[i], 1, DIMS(399), DIMS(1), 0),
            view_of(s, types[i], 1, DIMS(5), DIMS(3), 7),
            view_of(s, types[i], 1, DIMS(5), DIMS(0), 7),
            view_of(s, types[i], 2, DIMS(4, 6), DIMS(1, 4), 3),
            view_of(s, types[i], 2, DIMS(4, 6), DIMS(10, 1), 3),
            view_of(s, types[i], 2, DIMS(4, 6), DIMS(0, 1), 3),
            view_of(s, types[i], 2, DIMS(4, 6), DIMS(1, 0), 3),
            view_of(s, types[i], 2, DIMS(4, 6), DIMS(1, 1), 3),     /* overlaps itself */
            view_of(s, types[i], 2, DIMS(1, 6), DIMS(1000, 2), 3),
            view_of(s, types[i], 3, DIMS(2, 3, 4), DIMS(12, 4, 1), 0),
            view_of(s, types[i], 3, DIMS(2, 3, 4), DIMS(100, 4, 1), 0),
            view_of(s, types[i], 3, DIMS(2, 3, 4), DIMS(1, 8, 2), 0),
            view_of(s, types[i], 4, DIMS(2, 3, 4, 5), DIMS(60, 1, 15, 3), 0),   /* channels last */
            view_of(s, types[i], 4, DIMS(2, 3, 4, 5), DIMS(0, 20, 0, 1), 0),
            view_of(s, types[i], 5, DIMS(2, 1, 3, 1, 4), DIMS(7, 0, 20, 999, 1), 1),
        };
        for (size_t k = 0; k < COUNT_OF(x); k++)
            CHECK(runs_of(&x[k]) == 1);                 /* small: the stage takes it whole */
    }
}

static void test_stream_large(void)
{
    Storage *s = counted_storage(1 << 20);
    Tensor   flat = view_of(s, DT_F32, 1, DIMS(1 << 18), DIMS(1), 0);
    CHECK(runs_of(&flat) == 16);
    Tensor odd = view_of(s, DT_F32, 1, DIMS((1 << 18) - 1), DIMS(1), 1);
    CHECK(runs_of(&odd) == 16);
    Tensor square = view_of(s, DT_F32, 2, DIMS(512, 512), DIMS(1, 512), 0);
    CHECK(runs_of(&square) == 16);
    Tensor rows = view_of(s, DT_U8, 2, DIMS(7, 100001), DIMS(140000, 1), 3);
    CHECK(runs_of(&rows) == 11);
    Tensor step = view_of(s, DT_F16, 1, DIMS(99999), DIMS(5), 2);
    CHECK(runs_of(&step) == 4);
    Tensor deep = view_of(s, DT_C128, 3, DIMS(32, 32, 32), DIMS(1, 32, 1024), 0);
    CHECK(runs_of(&deep) == 8);
    Tensor same_one = view_of(s, DT_I64, 2, DIMS(300, 300), DIMS(0, 0), 9);
    CHECK(runs_of(&same_one) == 11);
}

/* Shapes and strides from a fixed sequence of pseudo-random numbers. */
static void test_stream_random(void)
{
    static const DType types[] = { DT_I8, DT_BF16, DT_I32, DT_F64, DT_C128 };
    const Storage     *s = counted_storage(20000);
    uint64_t           state = 12345;
    int                wrong = 0, tried = 0;

    for (int round = 0; round < 400; round++) {
        int64_t   sizes[6], strides[6];
        ArenaMark m = p2o_arena_mark(arena);
        state = state * 6364136223846793005u + 1442695040888963407u;
        int rank = (int)(state >> 60) % 7;
        for (int k = 0; k < rank; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sizes[k] = (int64_t)(state >> 40) % 6 + (k == 0 && state >> 63 ? 9 : 0);
            strides[k] = (int64_t)(state >> 33) % 24;
        }
        const char *why;
        Tensor      x = view_of(s, types[round % 5], rank, sizes, strides, state >> 61);
        if (p2o_tensor_check(&x, &why)) {
            uint64_t n;
            tried++;
            wrong += p2o_tensor_nelem(&x, &n) && runs_of(&x) != (n > 0);
        }
        p2o_arena_rewind(arena, m);
    }
    CHECK(wrong == 0 && tried > 300);
}

static void test_stream_zeros(void)
{
    Storage none = { .source = NULL };
    Tensor  x = view_of(&none, DT_F32, 2, DIMS(300, 100), DIMS(1, 300), 0);
    Heard   h = { .bytes.arena = arena };
    CHECK(p2o_tensor_stream(&x, hear_bytes, &h) && h.bytes.n == 120000 && h.calls == 2);
    size_t set = 0;
    for (size_t i = 0; i < h.bytes.n; i++)
        set += h.bytes.at[i] != 0;
    CHECK(set == 0);
    double  f = 1;
    int64_t i = 1;
    CHECK(p2o_tensor_get_f64(&x, 29999, &f) && f == 0 && !p2o_tensor_get_f64(&x, 30000, &f));
    x.dtype = DT_I64;
    CHECK(p2o_tensor_get_i64(&x, 0, &i) && i == 0);

    Tensor empty = view_of(counted_storage(0), DT_F32, 2, DIMS(3, 0), DIMS(1, 1), 0);
    h = (Heard){ .bytes.arena = arena };
    CHECK(p2o_tensor_stream(&empty, hear_bytes, &h) && h.calls == 0);
    CHECK(p2o_tensor_load(&empty, NULL, 0));
}

static bool streams_as(Storage *s, DType t, const uint8_t *want, size_t n)
{
    uint8_t got[32];
    int64_t count = (int64_t)(n / p2o_dtype_bytes(t)), one = 1;
    Tensor  x = view_of(s, t, 1, &count, &one, 0);
    return p2o_tensor_load(&x, got, n) && !memcmp(got, want, n);
}

static void test_byte_order(void)
{
    uint8_t up[16], by2[16], by4[16], by8[16];
    for (uint8_t i = 0; i < 16; i++) {
        up[i] = i;
        by2[i] = i ^ 1;
        by4[i] = i ^ 3;
        by8[i] = i ^ 7;
    }
    Storage *s = storage_of(up, 16);
    CHECK(streams_as(s, DT_F64, up, 16));
    s->big_endian = true;
    CHECK(streams_as(s, DT_U8, up, 16) && streams_as(s, DT_BF16, by2, 16));
    CHECK(streams_as(s, DT_F32, by4, 16) && streams_as(s, DT_I64, by8, 16));
    CHECK(streams_as(s, DT_C32, by2, 16) && streams_as(s, DT_C64, by4, 16));
    CHECK(streams_as(s, DT_C128, by8, 16));

    Tensor  x = view_of(s, DT_I16, 2, DIMS(2, 4), DIMS(1, 2), 0);
    uint8_t got[16];
    int64_t v;
    CHECK(p2o_tensor_load(&x, got, 16) && !memcmp(got, "\1\0\5\4\x9\x8\xD\xC\3\2\7\6", 12));
    CHECK(p2o_tensor_get_i64(&x, 1, &v) && v == 0x0405);
}

static void test_bools(void)
{
    Storage *s = storage_of("\0\1\2\xFF", 4);
    CHECK(streams_as(s, DT_BOOL, (const uint8_t *)"\0\1\1\1", 4));
    CHECK(streams_as(s, DT_U8, (const uint8_t *)"\0\1\2\xFF", 4));
    Tensor  x = view_of(s, DT_BOOL, 1, DIMS(4), DIMS(1), 0);
    int64_t v;
    double  f;
    CHECK(p2o_tensor_get_i64(&x, 3, &v) && v == 1 && p2o_tensor_get_f64(&x, 2, &f) && f == 1);
}

static bool serve_nothing(void *user, uint64_t offset, void *buf, size_t n)
{
    int *left = user;
    (void)offset;
    memset(buf, 7, n);
    return --*left >= 0;
}

static void test_stream_failures(void)
{
    Storage *s = counted_storage(1 << 20);
    Tensor   x = view_of(s, DT_F32, 1, DIMS(1 << 18), DIMS(1), 0);
    Heard    h = { .bytes.arena = arena, .limit = 3 };
    CHECK(!p2o_tensor_stream(&x, hear_bytes, &h) && h.calls == 3);
    Tensor t = view_of(s, DT_F32, 2, DIMS(512, 512), DIMS(1, 512), 0);
    h.calls = 0;
    CHECK(!p2o_tensor_stream(&t, hear_bytes, &h) && h.calls == 3);
    uint8_t buf[8];
    CHECK(!p2o_tensor_load(&x, buf, 8));
    Tensor small = view_of(s, DT_F32, 1, DIMS(1), DIMS(1), 0);
    CHECK(!p2o_tensor_load(&small, buf, 8) && p2o_tensor_load(&small, buf, 4));
    Tensor bad = view_of(s, DT_F32, 1, DIMS(1 << 18), DIMS(1), 1);
    h = (Heard){ .bytes.arena = arena };
    CHECK(!p2o_tensor_stream(&bad, hear_bytes, &h) && h.calls == 0);

    int     left = 3;
    Diags  *d = p2o_diags_new(arena, NULL, NULL);
    Storage remote = { .source = p2o_source_callback(d, 1 << 20, serve_nothing, &left),
                       .nbytes = 1 << 20 };
    x.storage = t.storage = &remote;
    CHECK(!p2o_tensor_stream(&x, hear_bytes, &h) && h.calls == 3);
    left = 1;                                           /* strided: one read and no more */
    h = (Heard){ .bytes.arena = arena };
    CHECK(p2o_tensor_stream(&t, hear_bytes, &h) && left == 0 && h.bytes.n == 1 << 20);
    CHECK(!p2o_tensor_stream(&t, hear_bytes, &h));
    double v;
    CHECK(!p2o_tensor_get_f64(&x, 0, &v));
}

static bool scalar_is(DType t, double f, int64_t i, bool use_float, uint64_t bits)
{
    uint8_t       got[8] = { 0 };
    uint64_t      v = 0;
    const Tensor *x = p2o_tensor_scalar(arena, t, f, i, use_float);
    if (!x || x->rank != 0 || x->dtype != t || !p2o_tensor_load(x, got, p2o_dtype_bytes(t)))
        return false;
    for (int k = 7; k >= 0; k--)
        v = v << 8 | got[k];
    return v == bits;
}

static void test_scalar(void)
{
    CHECK(scalar_is(DT_F32, 0.1, 0, true, 0x3DCCCCCD));
    CHECK(scalar_is(DT_F32, 9, 3, false, 0x40400000));
    CHECK(scalar_is(DT_F64, 0.1, 0, true, 0x3FB999999999999A));
    CHECK(scalar_is(DT_F16, 0.1, 0, true, 0x2E66) && scalar_is(DT_BF16, 0.1, 0, true, 0x3DCD));
    CHECK(scalar_is(DT_F16, 1.00048828125, 0, true, 0x3C00));       /* ties go to even */
    CHECK(scalar_is(DT_F16, 1.00146484375, 0, true, 0x3C02));
    CHECK(scalar_is(DT_BF16, 1.00390625, 0, true, 0x3F80));
    CHECK(scalar_is(DT_BF16, 1.01171875, 0, true, 0x3F82));
    CHECK(scalar_is(DT_F16, 1e6, 0, true, 0x7C00) && scalar_is(DT_F16, -1e6, 0, true, 0xFC00));
    CHECK(scalar_is(DT_F32, -(double)INFINITY, 0, true, 0xFF800000));
    CHECK(scalar_is(DT_F32, 3.5e38, 0, true, 0x7F800000));
    CHECK(scalar_is(DT_F32, 0, 16777217, false, 0x4B800000));
    CHECK(scalar_is(DT_F32, -0.0, 0, true, 0x80000000));
    CHECK(scalar_is(DT_F64, 0, INT64_MAX, false, 0x43E0000000000000));
    CHECK(scalar_is(DT_I64, 0, INT64_MIN, false, 0x8000000000000000));
    CHECK(scalar_is(DT_I64, -2.9, 0, true, (uint64_t)-2) && scalar_is(DT_I32, 2.9, 0, true, 2));
    CHECK(scalar_is(DT_I32, 0, -1, false, 0xFFFFFFFF) && scalar_is(DT_U8, 0, 255, false, 255));
    CHECK(scalar_is(DT_I8, 0, -128, false, 0x80) && scalar_is(DT_U16, 7.0, 0, true, 7));
    CHECK(scalar_is(DT_I64, (double)NAN, 0, true, 0) && scalar_is(DT_I64, 1e300, 0, true, 0));
    CHECK(scalar_is(DT_I64, -9223372036854775808.0, 0, true, 0x8000000000000000));
    CHECK(scalar_is(DT_BOOL, 0.5, 0, true, 1) && scalar_is(DT_BOOL, 0, 256, false, 1));
    CHECK(scalar_is(DT_BOOL, 9, 0, false, 0) && scalar_is(DT_BOOL, 0, 9, true, 0));
}

/* Expected codes are PyTorch 2.13's. */
static void test_tiny_floats(void)
{
    double inf = (double)INFINITY, nan = (double)NAN;
    CHECK(scalar_is(DT_F8E4M3FN, 1.5, 0, true, 0x3C) && scalar_is(DT_F8E4M3FN, -1, 0, true, 0xB8));
    CHECK(scalar_is(DT_F8E4M3FN, 448, 0, true, 0x7E) && scalar_is(DT_F8E4M3FN, 1e9, 0, true, 0x7E));
    CHECK(scalar_is(DT_F8E4M3FN, -inf, 0, true, 0xFE));
    CHECK(scalar_is(DT_F8E4M3FN, nan, 0, true, 0x7F));
    CHECK(scalar_is(DT_F8E4M3FN, -0.0, 0, true, 0x80) && scalar_is(DT_F8E4M3FN, 0, 3, false, 0x44));
    CHECK(scalar_is(DT_F8E4M3FN, 1.0625, 0, true, 0x38));           /* tie, down to even */
    CHECK(scalar_is(DT_F8E4M3FN, 1.1875, 0, true, 0x3A));           /* tie, up to even */
    CHECK(scalar_is(DT_F8E4M3FNUZ, 247.9, 0, true, 0x7F));
    CHECK(scalar_is(DT_F8E4M3FNUZ, 248, 0, true, 0x80));
    CHECK(scalar_is(DT_F8E4M3FNUZ, -0.0, 0, true, 0));
    CHECK(scalar_is(DT_F8E4M3FNUZ, -1, 0, true, 0xC0));
    CHECK(scalar_is(DT_F8E5M2, 61439, 0, true, 0x7B) && scalar_is(DT_F8E5M2, 61440, 0, true, 0x7C));
    CHECK(scalar_is(DT_F8E5M2, -inf, 0, true, 0xFC) && scalar_is(DT_F8E5M2, nan, 0, true, 0x7F));
    CHECK(scalar_is(DT_F8E5M2FNUZ, inf, 0, true, 0x80));
    CHECK(scalar_is(DT_F8E5M2FNUZ, 6, 0, true, 0x4A));
    CHECK(scalar_is(DT_F8E8M0, 1.5, 0, true, 0x80) && scalar_is(DT_F8E8M0, 3, 0, true, 0x81));
    CHECK(scalar_is(DT_F8E8M0, 2.9, 0, true, 0x80) && scalar_is(DT_F8E8M0, -1, 0, true, 0x7F));
    CHECK(scalar_is(DT_F8E8M0, 0, 0, true, 0) && scalar_is(DT_F8E8M0, inf, 0, true, 0xFF));

    static const DType types[] = { DT_F8E4M3FN, DT_F8E4M3FNUZ, DT_F8E5M2, DT_F8E5M2FNUZ,
                                   DT_F8E8M0 };
    for (size_t i = 0; i < COUNT_OF(types); i++)
        for (unsigned code = 0; code < 256; code++) {       /* what is read is written back */
            uint8_t byte = (uint8_t)code;
            double  v = 0;
            CHECK(p2o_tensor_get_f64(p2o_tensor_make(arena, types[i], 0, NULL, &byte), 0, &v));
            CHECK(!isfinite(v) || scalar_is(types[i], v, 0, true, code));
        }
}

static void test_make_and_views(void)
{
    int64_t v[6] = { 10, 11, 12, 13, 14, -15 }, got = 0;
    Tensor *x = p2o_tensor_ints(arena, 1, v, 6);
    CHECK(x->rank == 1 && x->sizes[0] == 6 && p2o_tensor_get_i64(x, 5, &got) && got == -15);
    CHECK(p2o_tensor_ints(arena, 0, v, 1)->rank == 0);
    x = p2o_tensor_ints(arena, 1, NULL, 0);
    CHECK(x->sizes[0] == 0 && !p2o_tensor_get_i64(x, 0, &got) && same(why_not(*x), ""));

    x = p2o_tensor_make(arena, DT_I64, 2, DIMS(2, 3), v);
    CHECK(p2o_tensor_is_contiguous(x) && x->strides[0] == 3 && same(why_not(*x), ""));
    Tensor *t = p2o_tensor_permute(arena, x, (int[]){ 1, 0 });
    CHECK(t->sizes[0] == 3 && t->sizes[1] == 2 && !p2o_tensor_is_contiguous(t));
    CHECK(p2o_tensor_get_i64(t, 1, &got) && got == 13 && runs_of(t) == 1);
    Tensor *n = p2o_tensor_narrow(arena, t, 0, 1, 2);
    CHECK(n->sizes[0] == 2 && p2o_tensor_get_i64(n, 0, &got) && got == 11);
    CHECK(p2o_tensor_get_i64(n, 3, &got) && got == -15 && same(why_not(*n), "") && runs_of(n) == 1);
    CHECK(t->sizes[0] == 3 && t->offset == 0);          /* the viewed tensor is as it was */
    n = p2o_tensor_narrow(arena, x, 1, 3, 0);
    CHECK(n->sizes[1] == 0 && same(why_not(*n), ""));
    CHECK(p2o_tensor_narrow(arena, x, 0, 0, 2)->offset == 0);

    x = p2o_tensor_make(arena, DT_F32, 3, DIMS(0, INT64_MAX, INT64_MAX), NULL);
    CHECK(same(why_not(*x), "") && x->storage->nbytes == 0);
    x = p2o_tensor_make(arena, DT_F32, 2, DIMS(INT64_MAX, INT64_MAX), NULL);
    CHECK(!same(why_not(*x), ""));
}

static bool reads_as(DType t, const char *bytes, double want)
{
    Tensor *x = p2o_tensor_make(arena, t, 0, NULL, bytes);
    double  v = 99;
    return p2o_tensor_get_f64(x, 0, &v) && v == want;
}

static void test_get(void)
{
    CHECK(reads_as(DT_I8, "\xFE", -2) && reads_as(DT_U8, "\xFE", 254));
    CHECK(reads_as(DT_I16, "\0\x80", -32768) && reads_as(DT_U16, "\0\x80", 32768));
    CHECK(reads_as(DT_I32, "\xFF\xFF\xFF\xFF", -1));
    CHECK(reads_as(DT_U32, "\xFF\xFF\xFF\xFF", 4294967295.0));
    CHECK(reads_as(DT_U64, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 18446744073709551615.0));
    CHECK(reads_as(DT_F16, "\0\x3C", 1) && reads_as(DT_BF16, "\xC0\xBF", -1.5));
    CHECK(reads_as(DT_F32, "\0\0\x20\x41", 10) && reads_as(DT_F64, "\0\0\0\0\0\0\xF8\x3F", 1.5));

    double  f;
    int64_t i;
    Tensor *x = p2o_tensor_make(arena, DT_U64, 0, NULL, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
    CHECK(!p2o_tensor_get_i64(x, 0, &i));
    x = p2o_tensor_make(arena, DT_F32, 0, NULL, "\0\0\x20\x41");
    CHECK(!p2o_tensor_get_i64(x, 0, &i) && !p2o_tensor_get_f64(x, 1, &f));
    CHECK(!p2o_tensor_get_f64(x, UINT64_MAX, &f));
    x = p2o_tensor_make(arena, DT_C64, 0, NULL, "\0\0\x20\x41\0\0\0\0");
    CHECK(!p2o_tensor_get_f64(x, 0, &f) && !p2o_tensor_get_i64(x, 0, &i));
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    test_check();
    test_check_overflow();
    test_nelem();
    test_contiguous();
    test_stream_forms();
    test_stream_large();
    test_stream_random();
    test_stream_zeros();
    test_byte_order();
    test_bools();
    test_stream_failures();
    test_scalar();
    test_tiny_floats();
    test_make_and_views();
    test_get();
    p2o_arena_free(arena);
    return check_report();
}
