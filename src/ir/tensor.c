/* Streaming: dims of size 1 are dropped and neighbours that step as one are merged, so that most
 * tensors are a single run and any other a small nest of loops around its longest run.  Bytes pass
 * through a fixed stage, where they are also put into little-endian order. */
#include "ir/tensor.h"

#include <assert.h>
#include <math.h>

#include "base/num.h"
#include "base/vec.h"
#include "ir/shape.h"

enum { STAGE_BYTES = 64 * 1024, WIDEST_ITEM = 16 };

static const uint64_t MOST_REPEATED = (uint64_t)16 << 30;

bool p2o_tensor_nelem(const Tensor *x, uint64_t *n)
{
    uint64_t total = 1;
    bool     fits = true;

    for (int i = 0; i < x->rank; i++) {
        if (x->sizes[i] < 0)
            return false;
        if (x->sizes[i] == 0)
            total = 0;                  /* whatever the other sizes are: 0 times anything fits */
    }
    for (int i = 0; i < x->rank && total && fits; i++)
        fits = mul_u64(total, (uint64_t)x->sizes[i], &total);
    if (fits)
        *n = total;
    return fits;
}

/* Elements from the first to just past the last; x is not empty. */
static bool tensor_extent(const Tensor *x, uint64_t *n)
{
    uint64_t span = 1, step;
    for (int i = 0; i < x->rank; i++)
        if (!mul_u64((uint64_t)x->sizes[i] - 1, (uint64_t)x->strides[i], &step) ||
            !add_u64(span, step, &span))
            return false;
    *n = span;
    return true;
}

static const char *tensor_fault(const Tensor *x)
{
    const Storage *s = x->storage;
    uint64_t       n, bytes, span, item = p2o_dtype_bytes(x->dtype), end;

    if (item == 0)
        return "it has no element type";
    if (x->rank < 0 || x->rank > MAX_RANK)
        return "its rank is not 0 to 64";
    for (int i = 0; i < x->rank; i++)
        if (x->sizes[i] < 0 || x->strides[i] < 0)
            return "it has a negative size or stride";
    if (!p2o_tensor_nelem(x, &n) || !mul_u64(n, item, &bytes))
        return "its number of elements overflows";
    if (s->source && (!add_u64(s->offset, s->nbytes, &end) || end > p2o_source_size(s->source)))
        return "its storage runs past the end of the file";
    if (n == 0)
        return NULL;
    if (bytes > MOST_REPEATED && (!s->source || bytes > s->nbytes))
        return "it repeats its bytes to more than 16 GB";
    if (!tensor_extent(x, &span) || !add_u64(span, x->offset, &span) || !mul_u64(span, item, &span))
        return "its extent overflows";
    if (s->source && span > s->nbytes)
        return "it runs past the end of its storage";
    return NULL;
}

bool p2o_tensor_check(const Tensor *x, const char **why)
{
    const char *fault = tensor_fault(x);
    if (fault)
        *why = fault;
    return !fault;
}

/* As PyTorch has it: the stride of a dim of size 1 does not matter, nor any of an empty tensor. */
bool p2o_tensor_is_contiguous(const Tensor *x)
{
    int64_t want = 1;
    bool    dense = true;

    for (int i = x->rank - 1; i >= 0; i--) {
        if (x->sizes[i] == 0)
            return true;
        if (x->sizes[i] == 1 || !dense)
            continue;
        dense = x->strides[i] == want && mul_i64(want, x->sizes[i], &want);
    }
    return dense;
}

static void store_little(uint8_t *p, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++, v >>= 8)
        p[i] = (uint8_t)v;
}

static uint64_t fetch_little(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

Tensor *p2o_tensor_make(Arena *a, DType t, int rank, const int64_t *sizes, const void *bytes)
{
    Storage *s = NEW(a, Storage);
    Tensor  *x = NEW(a, Tensor);
    int64_t *own = NEW_N(a, int64_t, (size_t)rank), *strides = NEW_N(a, int64_t, (size_t)rank);
    int64_t  step = 1;
    uint64_t n = 0;

    for (int i = rank - 1; i >= 0; i--) {
        own[i] = sizes[i];
        strides[i] = step;
        if (!mul_i64(step, sizes[i] > 1 ? sizes[i] : 1, &step))
            step = 0;                   /* an empty tensor's, or one that fails its check */
    }
    *x = (Tensor){ .storage = s, .dtype = t, .rank = rank, .sizes = own, .strides = strides };
    if (!p2o_tensor_nelem(x, &n) || !mul_u64(n, p2o_dtype_bytes(t), &s->nbytes))
        s->nbytes = 0;
    s->source = p2o_source_memory(a, bytes, (size_t)s->nbytes);
    return x;
}

Tensor *p2o_tensor_ints(Arena *a, int rank, const int64_t *v, size_t n)
{
    assert(rank == 1 || (rank == 0 && n == 1));
    uint8_t *bytes = p2o_alloc_n(a, n, 8);
    for (size_t i = 0; i < n; i++)
        store_little(bytes + 8 * i, (uint64_t)v[i], 8);
    return p2o_tensor_make(a, DT_I64, rank, (int64_t[]){ (int64_t)n }, bytes);
}

/* Towards zero.  What int64 cannot hold is undefined in PyTorch and 0 here. */
static int64_t truncate_f64(double f)
{
    const double limit = 9223372036854775808.0;
    return f >= -limit && f < limit ? (int64_t)f : 0;
}

/* The 8-bit floats.  Codes without the sign bit are in the order of their values. */
typedef struct TinyFloat {
    DType   dtype;
    int     mantissa, bias;             /* bits; what the exponent exceeds its value by */
    uint8_t greatest;                   /* the last finite code */
    uint8_t over, nan;                  /* what larger values and NaN become */
    bool    has_sign;
} TinyFloat;

static const TinyFloat tiny_floats[] = {
    { DT_F8E4M3FN,   3, 7,   0x7E, 0x7E, 0x7F, true },
    { DT_F8E4M3FNUZ, 3, 8,   0x7F, 0x80, 0x80, true },      /* 80 is NaN: there is no -0 */
    { DT_F8E5M2,     2, 15,  0x7B, 0x7C, 0x7F, true },      /* 7C is infinity */
    { DT_F8E5M2FNUZ, 2, 16,  0x7F, 0x80, 0x80, true },
    { DT_F8E8M0,     0, 127, 0xFE, 0xFF, 0xFF, false },     /* powers of two; the sign is lost */
};

static const TinyFloat *tiny_float(DType t)
{
    for (size_t i = 0; i < COUNT_OF(tiny_floats); i++)
        if (tiny_floats[i].dtype == t)
            return &tiny_floats[i];
    return NULL;
}

/* The value of a code without its sign; past the greatest, what the pattern would go on to. */
static double tiny_magnitude(const TinyFloat *t, unsigned code)
{
    unsigned man = code & ((1u << t->mantissa) - 1), exp = code >> t->mantissa;
    if (exp == 0 && t->mantissa)
        return ldexp((double)man, 1 - t->bias - t->mantissa);
    return ldexp((double)(man | 1u << t->mantissa), (int)exp - t->bias - t->mantissa);
}

static double tiny_to_f64(const TinyFloat *t, uint8_t byte)
{
    unsigned code = t->has_sign ? byte & 0x7F : byte;
    double   v = tiny_magnitude(t, code);
    if (byte == t->nan || code > t->greatest)
        v = t->dtype == DT_F8E5M2 && code == t->over ? (double)INFINITY : (double)NAN;
    return t->has_sign && byte >> 7 ? -v : v;
}

/* To nearest, ties to the even code, or up where there is no mantissa to be even.  All 256 codes
 * are tried: plainer than a formula, and scalars are few. */
static uint8_t tiny_from_f32(const TinyFloat *t, float v)
{
    double   mag = fabs((double)v), gap = (double)INFINITY;
    unsigned best = t->over;

    if (isnan(v))
        return t->nan;
    for (unsigned c = 0; c <= t->greatest + 1u; c++) {
        double g = fabs(tiny_magnitude(t, c) - mag);
        bool   wins_tie = c % 2 == 0 || t->mantissa == 0;
        if (g < gap || (g == gap && wins_tie && !isinf(g))) {
            gap = g;
            best = c > t->greatest ? t->over : c;
        }
    }
    bool no_sign = !t->has_sign || (best == 0 && t->nan == 0x80);
    return (uint8_t)(signbit(v) && !no_sign ? best | 0x80 : best);
}

Tensor *p2o_tensor_scalar(Arena *a, DType t, double f, int64_t i, bool use_float)
{
    float    single = use_float ? (float)f : (float)i;
    double   wide = use_float ? f : (double)i;
    uint64_t bits = 0;
    uint32_t bits32;

    assert(t == DT_BOOL || is_int(t) || is_float(t));
    if (t == DT_BOOL) {
        bits = use_float ? f != 0 : i != 0;
    } else if (is_int(t)) {
        bits = (uint64_t)(use_float ? truncate_f64(f) : i);
    } else if (t == DT_F16) {
        bits = p2o_f32_to_f16(single);
    } else if (t == DT_BF16) {
        bits = p2o_f32_to_bf16(single);
    } else if (t == DT_F32) {
        memcpy(&bits32, &single, sizeof bits32);
        bits = bits32;
    } else if (t == DT_F64) {
        memcpy(&bits, &wide, sizeof bits);
    } else {
        bits = tiny_from_f32(tiny_float(t), single);
    }
    uint8_t *bytes = p2o_alloc(a, 8);
    store_little(bytes, bits, p2o_dtype_bytes(t));
    return p2o_tensor_make(a, t, 0, NULL, bytes);
}

/* The storage only holds the place: bytes come from the parts. */
Tensor *p2o_tensor_join(Arena *a, const Tensor *const *parts, size_t n, int rank,
                        const int64_t *sizes)
{
    static const Storage none;
    int64_t             *kept = NEW_N(a, int64_t, (size_t)rank * 2 + 1), stride = 1;
    const Tensor       **list = NEW_N(a, const Tensor *, n);
    Tensor              *x = NEW(a, Tensor);
    for (size_t i = 0; i < n; i++)
        list[i] = parts[i];
    for (int i = rank - 1; i >= 0; i--) {
        kept[i] = sizes[i];
        kept[rank + i] = stride;
        stride *= sizes[i];
    }
    *x = (Tensor){ .storage = &none, .dtype = parts[0]->dtype, .rank = rank, .sizes = kept,
                   .strides = kept + rank, .parts = list, .nparts = n };
    return x;
}

Tensor *p2o_tensor_permute(Arena *a, const Tensor *x, const int *perm)
{
    Tensor  *y = NEW(a, Tensor);
    int64_t *sizes = NEW_N(a, int64_t, (size_t)x->rank);
    int64_t *strides = NEW_N(a, int64_t, (size_t)x->rank);

    for (int i = 0; i < x->rank; i++) {
        assert(perm[i] >= 0 && perm[i] < x->rank);
        sizes[i] = x->sizes[perm[i]];
        strides[i] = x->strides[perm[i]];
    }
    *y = *x;
    y->sizes = sizes;
    y->strides = strides;
    return y;
}

Tensor *p2o_tensor_part(Arena *a, const Tensor *x, int part)
{
    Tensor  *v = NEW(a, Tensor);
    int64_t *strides = NEW_N(a, int64_t, (size_t)x->rank + 1);
    for (int i = 0; i < x->rank; i++)
        strides[i] = x->strides[i] * 2;
    *v = *x;
    v->dtype = part_of(x->dtype);
    v->strides = strides;
    v->offset = x->offset * 2 + (uint64_t)part;
    return v;
}

Tensor *p2o_tensor_narrow(Arena *a, const Tensor *x, int dim, int64_t start, int64_t len)
{
    assert(dim >= 0 && dim < x->rank && start >= 0 && len >= 0 && len <= x->sizes[dim] - start);
    Tensor  *y = NEW(a, Tensor);
    int64_t *sizes = NEW_N(a, int64_t, (size_t)x->rank);

    memcpy(sizes, x->sizes, (size_t)x->rank * sizeof *sizes);
    sizes[dim] = len;
    *y = *x;
    y->sizes = sizes;
    if (len)                            /* an empty tensor has no first element to be at */
        y->offset += (uint64_t)start * (uint64_t)x->strides[dim];
    return y;
}

static void reverse_units(uint8_t *p, size_t n, size_t unit)
{
    for (; n && unit > 1; p += unit, n -= unit)
        for (size_t i = 0; i < unit / 2; i++) {
            uint8_t c = p[i];
            p[i] = p[unit - 1 - i];
            p[unit - 1 - i] = c;
        }
}

/* The bytes that keep together when their order is reversed: each half of a complex number. */
static size_t swap_unit(const Tensor *x)
{
    size_t item = p2o_dtype_bytes(x->dtype);
    if (!x->storage->big_endian)
        return 1;
    return is_complex(x->dtype) ? item / 2 : item;
}

/* Collects bytes; holds a whole number of elements whenever it is flushed. */
typedef struct Stage {
    TensorBytesFn *cb;
    void          *user;
    size_t         unit;                /* bytes to reverse; 1: none */
    bool           is_bool;             /* any byte but 0 is true, and written as 1 */
    size_t         n;
    uint8_t        buf[STAGE_BYTES];
} Stage;

static bool flush_stage(Stage *g)
{
    size_t n = g->n;
    g->n = 0;
    reverse_units(g->buf, n, g->unit);
    for (size_t i = 0; g->is_bool && i < n; i++)
        g->buf[i] = g->buf[i] != 0;
    return n == 0 || g->cb(g->user, g->buf, n);
}

static bool stream_zeros(Stage *g, uint64_t nbytes)
{
    memset(g->buf, 0, nbytes < STAGE_BYTES ? (size_t)nbytes : STAGE_BYTES);
    for (; nbytes; nbytes -= g->n) {
        g->n = nbytes < STAGE_BYTES ? (size_t)nbytes : STAGE_BYTES;
        if (!g->cb(g->user, g->buf, g->n))
            return false;
    }
    return true;
}

static bool stream_dense(Stage *g, Source *s, uint64_t at, uint64_t nbytes)
{
    for (uint64_t n; nbytes; at += n, nbytes -= n) {
        n = nbytes < STAGE_BYTES ? nbytes : STAGE_BYTES;
        g->n = (size_t)n;
        if (!p2o_source_read(s, at, g->buf, g->n) || !flush_stage(g))
            return false;
    }
    return true;
}

typedef struct Walk {
    int      rank;
    size_t   item;                      /* bytes */
    uint64_t size[MAX_RANK];            /* outermost first */
    uint64_t step[MAX_RANK];            /* bytes */
} Walk;

/* x without dims of size 1, and with dims merged where the outer steps over exactly the inner. */
static void plan_walk(const Tensor *x, Walk *w)
{
    w->item = p2o_dtype_bytes(x->dtype);
    w->rank = 0;
    for (int i = 0; i < x->rank; i++) {
        uint64_t size = (uint64_t)x->sizes[i], step = (uint64_t)x->strides[i] * w->item, inner;
        int      last = w->rank - 1;
        if (size == 1)
            continue;
        if (last >= 0 && mul_u64(size, step, &inner) && w->step[last] == inner) {
            w->size[last] *= size;
            w->step[last] = step;
        } else {
            w->size[w->rank] = size;
            w->step[w->rank++] = step;
        }
    }
}

/* n elements, `step` bytes apart, into g->buf; there is room. */
static void gather(Stage *g, const uint8_t *p, size_t n, uint64_t step, size_t item)
{
    uint8_t *to = g->buf + g->n;
    g->n += n * item;
#define GATHER(bytes)                                                                          \
    case bytes:                                                                                \
        for (size_t i = 0; i < n; i++)                                                         \
            memcpy(to + i * bytes, p + i * step, bytes);                                       \
        break
    switch (item) {
        GATHER(1);
        GATHER(2);
        GATHER(4);
        GATHER(8);
        GATHER(16);
    }
#undef GATHER
}

/* The innermost dim: n elements from p on. */
static bool stream_row(Stage *g, const uint8_t *p, uint64_t n, uint64_t step, size_t item)
{
    while (n) {
        if (g->n == STAGE_BYTES && !flush_stage(g))
            return false;
        uint64_t room = (STAGE_BYTES - g->n) / item;
        size_t   k = (size_t)(n < room ? n : room);
        if (step == item) {
            memcpy(g->buf + g->n, p, k * item);
            g->n += k * item;
        } else {
            gather(g, p, k, step, item);
        }
        n -= k;
        if (n)                          /* past the last element there may be no memory */
            p += k * step;
    }
    return true;
}

/* Counts through the outer dims like an odometer. */
static bool stream_strided(Stage *g, const Walk *w, const uint8_t *p)
{
    uint64_t at[MAX_RANK] = { 0 };
    int      inner = w->rank - 1;

    for (;;) {
        if (!stream_row(g, p, w->size[inner], w->step[inner], w->item))
            return false;
        int i = inner - 1;
        for (; i >= 0 && at[i] + 1 == w->size[i]; i--) {
            p -= at[i] * w->step[i];
            at[i] = 0;
        }
        if (i < 0)
            return flush_stage(g);
        at[i]++;
        p += w->step[i];
    }
}

_Static_assert(STAGE_BYTES % WIDEST_ITEM == 0, "the stage holds whole elements");

static bool stream_parts(const Tensor *x, TensorBytesFn *cb, void *user)
{
    for (size_t i = 0; i < x->nparts; i++)
        if (!p2o_tensor_stream(x->parts[i], cb, user))
            return false;
    return true;
}

bool p2o_tensor_stream(const Tensor *x, TensorBytesFn *cb, void *user)
{
    const Storage *s = x->storage;
    Stage          g;                   /* its buffer is not cleared: most tensors are small */
    Walk           w;
    uint64_t       n, span;

    if (tensor_fault(x) || !p2o_tensor_nelem(x, &n))
        return false;
    if (n == 0)
        return true;
    if (x->nparts)
        return stream_parts(x, cb, user);
    g.cb = cb;
    g.user = user;
    g.unit = swap_unit(x);
    g.is_bool = x->dtype == DT_BOOL;
    g.n = 0;
    plan_walk(x, &w);
    if (!s->source)
        return stream_zeros(&g, n * w.item);
    uint64_t from = s->offset + x->offset * w.item;
    if (w.rank == 0 || (w.rank == 1 && w.step[0] == w.item))
        return stream_dense(&g, s->source, from, n * w.item);
    if (!tensor_extent(x, &span) || span > SIZE_MAX / w.item)
        return false;
    const uint8_t *p = p2o_source_view(s->source, from, (size_t)span * w.item);
    return p && stream_strided(&g, &w, p);
}

typedef struct Loading {
    uint8_t *to;
    size_t   left;
} Loading;

static bool load_bytes(void *user, const void *p, size_t n)
{
    Loading *l = user;
    if (n > l->left)
        return false;
    memcpy(l->to, p, n);
    l->to += n;
    l->left -= n;
    return true;
}

bool p2o_tensor_load(const Tensor *x, void *buf, size_t nbytes)
{
    Loading l = { buf, nbytes };
    return p2o_tensor_stream(x, load_bytes, &l) && l.left == 0;
}

/* Little-endian bytes of element i, row-major. */
static bool read_element(const Tensor *x, uint64_t i, uint8_t raw[WIDEST_ITEM])
{
    size_t   item = p2o_dtype_bytes(x->dtype);
    uint64_t n, at = x->offset;

    if (tensor_fault(x) || !p2o_tensor_nelem(x, &n) || i >= n)
        return false;
    for (size_t k = 0; k < x->nparts; k++) {
        if (!p2o_tensor_nelem(x->parts[k], &n))
            return false;
        if (i < n)
            return read_element(x->parts[k], i, raw);
        i -= n;
    }
    for (int k = x->rank - 1; k >= 0; k--) {
        at += i % (uint64_t)x->sizes[k] * (uint64_t)x->strides[k];
        i /= (uint64_t)x->sizes[k];
    }
    if (!x->storage->source)
        return true;                    /* raw is zero */
    if (!p2o_source_read(x->storage->source, x->storage->offset + at * item, raw, item))
        return false;
    reverse_units(raw, item, swap_unit(x));
    return true;
}

bool p2o_tensor_get_i64(const Tensor *x, uint64_t i, int64_t *v)
{
    uint8_t raw[WIDEST_ITEM] = { 0 };
    size_t  item = p2o_dtype_bytes(x->dtype);

    if ((x->dtype != DT_BOOL && !is_int(x->dtype)) || !read_element(x, i, raw))
        return false;
    uint64_t u = fetch_little(raw, item), sign = (uint64_t)1 << (8 * item - 1);
    switch (x->dtype) {
    case DT_BOOL:
        *v = u != 0;
        return true;
    case DT_U64:
        if (u > INT64_MAX)
            return false;
        break;
    case DT_U8: case DT_U16: case DT_U32:
        break;
    default:
        u = (u ^ sign) - sign;          /* widens the sign bit */
    }
    memcpy(v, &u, sizeof *v);
    return true;
}

bool p2o_tensor_get_f64(const Tensor *x, uint64_t i, double *v)
{
    uint8_t  raw[WIDEST_ITEM] = { 0 };
    int64_t  whole;
    uint64_t u;
    uint32_t u32;
    float    f;

    if (x->dtype != DT_U64 && p2o_tensor_get_i64(x, i, &whole)) {
        *v = (double)whole;
        return true;
    }
    if (!read_element(x, i, raw))
        return false;
    u = fetch_little(raw, 8);
    u32 = (uint32_t)u;
    switch (x->dtype) {
    case DT_U64:
        *v = (double)u;
        return true;
    case DT_F16:
        *v = (double)p2o_f16_to_f32((uint16_t)u);
        return true;
    case DT_BF16:
        *v = (double)p2o_bf16_to_f32((uint16_t)u);
        return true;
    case DT_F32:
        memcpy(&f, &u32, sizeof f);
        *v = (double)f;
        return true;
    case DT_F64:
        memcpy(v, &u, sizeof *v);
        return true;
    default:
        if (!tiny_float(x->dtype))
            return false;
        *v = tiny_to_f64(tiny_float(x->dtype), raw[0]);
        return true;
    }
}
