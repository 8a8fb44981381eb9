/* The .npy format is NumPy's NEP 1 (versions 1, 2 and 3): a magic number, a Python dict as text,
 * raw elements.  The dict is parsed strictly; the payload must be exactly what it promises. */
#include "run/array.h"

#include <math.h>
#include <zlib.h>

#include "base/num.h"
#include "base/vec.h"
#include "format/zip.h"

enum { MAX_AXES = 64 };

static bool count_bytes(DType t, int rank, const int64_t *sizes, size_t *nbytes)
{
    uint64_t n = p2o_dtype_bytes(t);
    bool     zero = false;
    if (n == 0)
        return false;
    for (int i = 0; i < rank; i++) {
        if (sizes[i] < 0)
            return false;
        zero |= sizes[i] == 0;
    }
    for (int i = 0; i < rank && !zero; i++)
        if (!mul_u64(n, (uint64_t)sizes[i], &n))
            return false;
    if (!zero && n > SIZE_MAX / 2)
        return false;
    *nbytes = zero ? 0 : (size_t)n;
    return true;
}

bool p2o_array_make(Arena *a, DType t, int rank, const int64_t *sizes, Array *out)
{
    size_t nbytes;
    if (!count_bytes(t, rank, sizes, &nbytes))
        return false;
    Array x = { .dtype = t, .rank = rank, .nbytes = nbytes };
    x.sizes = NEW_N(a, int64_t, (size_t)rank + 1);
    if (rank)
        memcpy(x.sizes, sizes, (size_t)rank * sizeof *sizes);
    x.data = p2o_alloc(a, nbytes + 1);
    *out = x;
    return true;
}

uint64_t p2o_array_nelem(const Array *x) { return x->nbytes / p2o_dtype_bytes(x->dtype); }

const char *p2o_array_shape_text(Arena *a, const Array *x)
{
    Buf b = { .arena = a };
    p2o_puts(&b, "[");
    for (int i = 0; i < x->rank; i++)
        p2o_putf(&b, "%s%lld", i ? ", " : "", (long long)x->sizes[i]);
    p2o_puts(&b, "]");
    return b.at;
}

static uint64_t load_bits(const Array *x, uint64_t i, size_t width)
{
    uint64_t       v = 0;
    const uint8_t *p = (const uint8_t *)x->data + i * width;
    for (size_t k = 0; k < width; k++)
        v |= (uint64_t)p[k] << (8 * k);
    return v;
}

static void store_bits(Array *x, uint64_t i, size_t width, uint64_t v)
{
    uint8_t *p = (uint8_t *)x->data + i * width;
    for (size_t k = 0; k < width; k++)
        p[k] = (uint8_t)(v >> (8 * k));
}

static double f64_of_bits(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static uint64_t bits_of_f64(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static double f32_of_bits(uint64_t u)
{
    uint32_t w = (uint32_t)u;
    float    v;
    memcpy(&v, &w, sizeof v);
    return (double)v;
}

static uint64_t bits_of_f32(double v)
{
    float    f = (float)v;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static int64_t sign_extend(uint64_t v, size_t width)
{
    uint64_t top = (uint64_t)1 << (8 * width - 1);
    return (int64_t)((v ^ top) - top);
}

static bool is_unsigned(DType t) { return t == DT_U8 || t == DT_U16 || t == DT_U32 || t == DT_U64; }

/* Component i: an element, or a real or imaginary part. */
static double component(const Array *x, uint64_t i)
{
    switch (x->dtype) {
    case DT_F16:
    case DT_C32:
        return (double)p2o_f16_to_f32((uint16_t)load_bits(x, i, 2));
    case DT_BF16:
        return (double)p2o_bf16_to_f32((uint16_t)load_bits(x, i, 2));
    case DT_F32:
    case DT_C64:
        return f32_of_bits(load_bits(x, i, 4));
    case DT_F64:
    case DT_C128:
        return f64_of_bits(load_bits(x, i, 8));
    default:
        return (double)NAN;
    }
}

double p2o_array_at(const Array *x, uint64_t i)
{
    size_t width = p2o_dtype_bytes(x->dtype);
    if (x->dtype == DT_BOOL)
        return load_bits(x, i, 1) != 0;
    if (is_unsigned(x->dtype))
        return (double)load_bits(x, i, width);
    if (is_int(x->dtype))
        return (double)sign_extend(load_bits(x, i, width), width);
    return component(x, is_complex(x->dtype) ? 2 * i : i);
}

static void set_component(Array *x, uint64_t i, double v)
{
    switch (x->dtype) {
    case DT_F16:
    case DT_C32:
        store_bits(x, i, 2, p2o_f32_to_f16((float)v));
        break;
    case DT_BF16:
        store_bits(x, i, 2, p2o_f32_to_bf16((float)v));
        break;
    case DT_F32:
    case DT_C64:
        store_bits(x, i, 4, bits_of_f32(v));
        break;
    default:
        store_bits(x, i, 8, bits_of_f64(v));
    }
}

static bool is_wide_float(DType t)
{
    return t == DT_F16 || t == DT_BF16 || t == DT_F32 || t == DT_F64;
}

bool p2o_array_convert(Arena *a, const Array *x, DType t, Array *out)
{
    Array y;
    if (!is_wide_float(x->dtype) || !is_wide_float(t) ||
        !p2o_array_make(a, t, x->rank, x->sizes, &y))
        return false;
    uint64_t n = p2o_array_nelem(x);
    for (uint64_t i = 0; i < n; i++)
        set_component(&y, i, component(x, i));
    *out = y;
    return true;
}

typedef struct NpyText {                /* the header's dict, and what was found in it */
    Str  at;                            /* what is left */
    Str  descr;
    bool fortran;
    int  rank;
    int64_t sizes[MAX_AXES];
    bool has_descr, has_order, has_shape;
} NpyText;

static bool skip_to(NpyText *h, char c)
{
    while (h->at.n && (h->at.p[0] == ' ' || h->at.p[0] == '\n'))
        h->at = (Str){ h->at.p + 1, h->at.n - 1 };
    if (!h->at.n || h->at.p[0] != c)
        return false;
    h->at = (Str){ h->at.p + 1, h->at.n - 1 };
    return true;
}

static bool npy_quoted(NpyText *h, Str *out)
{
    char q = skip_to(h, '\'') ? '\'' : skip_to(h, '"') ? '"' : 0;
    if (!q || !memchr(h->at.p, q, h->at.n))
        return false;
    *out = p2o_str_cut(h->at, q, &h->at);
    return true;
}

static bool npy_word(NpyText *h, const char *word)
{
    h->at = p2o_str_trim(h->at);
    if (!p2o_str_starts(h->at, word))
        return false;
    h->at = (Str){ h->at.p + strlen(word), h->at.n - strlen(word) };
    return true;
}

/* "()", "(3,)", "(3, 4)" */
static bool npy_shape(NpyText *h)
{
    if (!skip_to(h, '('))
        return false;
    while (!skip_to(h, ')')) {
        size_t n = 0;
        while (n < h->at.n && h->at.p[n] >= '0' && h->at.p[n] <= '9')
            n++;
        if (h->rank == MAX_AXES || !p2o_parse_i64((Str){ h->at.p, n }, &h->sizes[h->rank++]))
            return false;
        h->at = (Str){ h->at.p + n, h->at.n - n };
        if (skip_to(h, ','))
            continue;
        return h->rank > 1 && skip_to(h, ')');          /* "(3)" is a number, not a tuple */
    }
    return true;
}

static bool npy_entry(NpyText *h)
{
    Str key;
    if (!npy_quoted(h, &key) || !skip_to(h, ':'))
        return false;
    if (str_is(key, "descr") && !h->has_descr)
        return h->has_descr = npy_quoted(h, &h->descr);
    if (str_is(key, "fortran_order") && !h->has_order) {
        h->fortran = npy_word(h, "True");
        return h->has_order = h->fortran || npy_word(h, "False");
    }
    if (str_is(key, "shape") && !h->has_shape)
        return h->has_shape = npy_shape(h);
    return false;
}

static bool npy_dict(NpyText *h)
{
    if (!skip_to(h, '{'))
        return false;
    while (!skip_to(h, '}')) {
        if (!npy_entry(h))
            return false;
        if (!skip_to(h, ',') && !(h->at.n && h->at.p[0] == '}'))
            return false;
    }
    return h->has_descr && h->has_order && h->has_shape && p2o_str_trim(h->at).n == 0;
}

/* The text after the magic number and its length; *data what follows it. */
static bool npy_split(Str file, Str *text, Str *data)
{
    const uint8_t *p = (const uint8_t *)file.p;
    if (file.n < 12 || memcmp(p, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3 || p[7] != 0)
        return false;
    size_t start = p[6] == 1 ? 10 : 12;
    size_t n = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1)
        n |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (n > file.n - start)
        return false;
    *text = (Str){ file.p + start, n };
    *data = (Str){ file.p + start + n, file.n - start - n };
    return true;
}

/* One byte has no order, whatever mark stands before it. */
static DType npy_dtype(Str descr, bool *big)
{
    static const char marks[] = "<|=>";
    char              text[8] = "";
    if (descr.n < 3 || descr.n >= sizeof text || !strchr(marks, descr.p[0]))
        return DT_NONE;
    *big = descr.p[0] == '>';
    memcpy(text, descr.p, descr.n);
    if (same(text + 1, "V2"))
        return DT_BF16;
    text[0] = text[2] == '1' && !text[3] ? '|' : '<';
    return p2o_dtype_from_npy(str_of(text));
}

static void swap_bytes(Array *x)
{
    size_t width = p2o_dtype_bytes(x->dtype) / (is_complex(x->dtype) ? 2 : 1);
    for (uint8_t *p = x->data, *end = p + x->nbytes; p < end; p += width)
        for (size_t i = 0; i < width / 2; i++) {
            uint8_t b = p[i];
            p[i] = p[width - 1 - i];
            p[width - 1 - i] = b;
        }
}

/* Column-major elements into row-major order: the index is counted up, its source offset kept. */
static void from_fortran(Array *x, const void *from)
{
    size_t  width = p2o_dtype_bytes(x->dtype), nelem = x->nbytes / width, at = 0;
    size_t  stride[MAX_AXES] = { 0 };
    int64_t index[MAX_AXES] = { 0 };
    size_t  step = 1;
    if (nelem == 0)
        return;
    for (int i = 0; i < x->rank; i++) {
        stride[i] = step;
        step *= (size_t)x->sizes[i];
    }
    for (size_t i = 0; i < nelem; i++) {
        memcpy((uint8_t *)x->data + i * width, (const uint8_t *)from + at * width, width);
        for (int k = x->rank - 1; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < x->sizes[k])
                break;
            at -= (size_t)x->sizes[k] * stride[k];
            index[k] = 0;
        }
    }
}

static bool npy_read(Diags *d, Str name, Str file, Array *out)
{
    NpyText h = { 0 };
    Str     data;
    size_t  nbytes;
    bool    big = false;

    if (!npy_split(file, &h.at, &data) || !npy_dict(&h)) {
        p2o_diag(d, DIAG_BAD_FILE, 0, "%.*s: not a .npy array of version 1 to 3", STR_ARG(name));
        return false;
    }
    DType t = npy_dtype(h.descr, &big);
    if (t == DT_NONE) {
        p2o_diag(d, DIAG_UNSUPPORTED, 0, "%.*s: elements '%.*s': expected bool, integer or float",
                 STR_ARG(name), STR_ARG(h.descr));
        return false;
    }
    if (!count_bytes(t, h.rank, h.sizes, &nbytes) || nbytes != data.n) {
        p2o_diag(d, DIAG_BAD_FILE, 0, "%.*s: %zu bytes of elements do not fit its shape and type",
                 STR_ARG(name), data.n);
        return false;
    }
    p2o_array_make(p2o_diags_arena(d), t, h.rank, h.sizes, out);
    if (h.fortran && h.rank > 1)
        from_fortran(out, data.p);
    else if (nbytes)
        memcpy(out->data, data.p, nbytes);
    if (big)
        swap_bytes(out);
    for (size_t i = 0; t == DT_BOOL && i < nbytes; i++)
        ((uint8_t *)out->data)[i] = ((uint8_t *)out->data)[i] != 0;
    return true;
}

static bool npz_members(Diags *d, const Zip *z, Npz *out)
{
    Arena *a = p2o_diags_arena(d);
    out->at = NEW_N(a, NamedArray, z->n + 1);
    out->n = 0;
    out->index = (Map){ .arena = a };
    for (size_t i = 0; i < z->n; i++) {
        Str         name = z->entries[i].name, file;
        NamedArray *x = &out->at[out->n];
        if (!p2o_str_ends(name, ".npy"))
            continue;
        if (!p2o_zip_read(d, z, &z->entries[i], &file) || !npy_read(d, name, file, &x->array))
            return false;
        x->name = p2o_str_dup(a, (Str){ name.p, name.n - strlen(".npy") });
        map_put(&out->index, str_of(x->name), &x->array);
        out->n++;
    }
    if (out->n == 0)
        p2o_diag(d, DIAG_BAD_FILE, 0, "no .npy array in it");
    return out->n != 0;
}

bool p2o_npz_read(Diags *d, const char *path, Npz *out)
{
    Source *s = p2o_source_open(d, path);
    if (!s)
        return false;
    Zip *z = p2o_zip_open(d, s, 0, p2o_source_size(s));
    bool ok = z && npz_members(d, z, out);
    p2o_source_close(s);
    return ok;
}

const Array *p2o_npz_find(const Npz *z, const char *name)
{
    return p2o_map_get(&z->index, str_of(name));
}

static void put_le(Buf *b, uint64_t v, size_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    p2o_put(b, bytes, n);
}

/* Padded so that the elements start at a multiple of 64, as NumPy does. */
static Str npy_header(Arena *a, const Array *x)
{
    Buf text = { .arena = a }, b = { .arena = a };
    p2o_putf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", p2o_dtype_npy(x->dtype));
    for (int i = 0; i < x->rank; i++)
        p2o_putf(&text, "%s%lld", i ? ", " : "", (long long)x->sizes[i]);
    p2o_puts(&text, x->rank == 1 ? ",), }" : "), }");
    while ((10 + text.n + 1) % 64)
        p2o_puts(&text, " ");
    p2o_puts(&text, "\n");
    p2o_put(&b, "\x93NUMPY\x01\x00", 8);
    put_le(&b, text.n, 2);
    p2o_put(&b, text.at, text.n);
    return buf_str(&b);
}

typedef struct NpzMember {
    const char *name;                   /* with .npy */
    Str         header;
    Array       array;
    uint32_t    crc, nbytes, offset;
} NpzMember;

/* What local header and directory entry share: version 2.0, UTF-8 names, stored, 1980-01-01. */
static void put_entry_facts(Buf *b, const NpzMember *m)
{
    put_le(b, 20, 2);
    put_le(b, 0x800, 2);
    put_le(b, 0, 2);
    put_le(b, 0, 2);
    put_le(b, 0x21, 2);
    put_le(b, m->crc, 4);
    put_le(b, m->nbytes, 4);
    put_le(b, m->nbytes, 4);
    put_le(b, strlen(m->name), 2);
    put_le(b, 0, 2);
}

static void write_member(Arena *a, Sink *s, NpzMember *m)
{
    Buf b = { .arena = a };
    m->offset = (uint32_t)p2o_sink_offset(s);
    put_le(&b, 0x04034b50, 4);
    put_entry_facts(&b, m);
    p2o_puts(&b, m->name);
    p2o_put(&b, m->header.p, m->header.n);
    p2o_sink_write(s, b.at, b.n);
    p2o_sink_write(s, m->array.data, m->array.nbytes);
}

static void write_directory(Arena *a, Sink *s, const NpzMember *at, size_t n)
{
    Buf      b = { .arena = a };
    uint64_t start = p2o_sink_offset(s);
    for (size_t i = 0; i < n; i++) {
        put_le(&b, 0x02014b50, 4);
        put_le(&b, 20, 2);
        put_entry_facts(&b, &at[i]);
        put_le(&b, 0, 2 + 2 + 2);                       /* no comment, disk 0, no attributes */
        put_le(&b, 0, 4);
        put_le(&b, at[i].offset, 4);
        p2o_puts(&b, at[i].name);
    }
    size_t size = b.n;
    put_le(&b, 0x06054b50, 4);
    put_le(&b, 0, 4);
    put_le(&b, n, 2);
    put_le(&b, n, 2);
    put_le(&b, size, 4);
    put_le(&b, start, 4);
    put_le(&b, 0, 2);
    p2o_sink_write(s, b.at, b.n);
}

static uint32_t crc_of(uint32_t crc, const void *p, size_t n)
{
    for (const uint8_t *at = p; n;) {
        uInt part = n > 1u << 30 ? 1u << 30 : (uInt)n;
        crc = (uint32_t)crc32(crc, at, part);
        at += part;
        n -= part;
    }
    return crc;
}

/* false after a diagnostic; *total counts the archive's bytes so far. */
static bool plan_member(Diags *d, const NamedArray *from, NpzMember *m, uint64_t *total)
{
    Arena *a = p2o_diags_arena(d);
    m->array = from->array;
    m->name = p2o_printf(a, "%s.npy", from->name);
    if (from->array.dtype == DT_BF16)
        p2o_array_convert(a, &from->array, DT_F32, &m->array);
    if (!*p2o_dtype_npy(m->array.dtype)) {
        p2o_diag(d, DIAG_UNSUPPORTED, 0, "%s: .npy has no element type for %s", from->name,
                 p2o_dtype_text(m->array.dtype));
        return false;
    }
    m->header = npy_header(a, &m->array);
    uint64_t nbytes = m->header.n + (uint64_t)m->array.nbytes;
    *total += nbytes + 2 * strlen(m->name) + 30 + 46;
    if (strlen(m->name) > UINT16_MAX || *total > UINT32_MAX - 22) {
        p2o_diag(d, DIAG_UNSUPPORTED, 0, "%s: the .npz would be over 4 GB", from->name);
        return false;
    }
    m->nbytes = (uint32_t)nbytes;
    m->crc = crc_of(crc_of(0, m->header.p, m->header.n), m->array.data, m->array.nbytes);
    return true;
}

bool p2o_npz_write(Diags *d, const char *path, const NamedArray *at, size_t n)
{
    Arena     *a = p2o_diags_arena(d);
    NpzMember *members = NEW_N(a, NpzMember, n + 1);
    uint64_t   total = 0;

    if (n > UINT16_MAX) {
        p2o_diag(d, DIAG_UNSUPPORTED, 0, "%zu arrays: a .npz holds at most 65535", n);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!plan_member(d, &at[i], &members[i], &total))
            return false;
    Sink *s = p2o_sink_file(d, path);
    if (!s)
        return false;
    for (size_t i = 0; i < n; i++)
        write_member(a, s, &members[i]);
    write_directory(a, s, members, n);
    return p2o_sink_commit(s);
}

/* splitmix64 */
static uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Four uniform numbers summed: near enough to normal, and the same on every machine. */
static double draw_float(uint64_t *seed)
{
    uint64_t z = draw(seed);
    double   sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)(z >> (16 * i) & 0xFFFF) / 65536.0;
    return (sum - 2.0) * 1.7320508075688772;
}

bool p2o_array_random(Arena *a, DType t, int rank, const int64_t *sizes, uint64_t *seed,
                      Array *out)
{
    Array x;
    if (!p2o_array_make(a, t, rank, sizes, &x))
        return false;
    size_t   width = p2o_dtype_bytes(t);
    uint64_t n = p2o_array_nelem(&x);
    if (is_wide_float(t) || is_complex(t)) {
        for (uint64_t i = 0; i < n * (is_complex(t) ? 2 : 1); i++)
            set_component(&x, i, draw_float(seed));
    } else {
        uint64_t mask = is_float(t) ? 0x3F : 1;         /* 8-bit floats: small and finite */
        for (uint64_t i = 0; i < n; i++)
            store_bits(&x, i, width, draw(seed) >> 17 & mask);
    }
    *out = x;
    return true;
}

static double float_gap(double x, double y)
{
    if (isnan(x) && isnan(y))
        return 0;
    if (isnan(x) || isnan(y))
        return (double)INFINITY;
    return x == y ? 0 : fabs(x - y);
}

static double int_gap(const Array *x, const Array *y, uint64_t i)
{
    size_t   width = p2o_dtype_bytes(x->dtype);
    uint64_t a = load_bits(x, i, width), b = load_bits(y, i, width);
    if (x->dtype == DT_BOOL)
        return (a != 0) != (b != 0);
    if (a == b)
        return 0;
    if (is_float(x->dtype))             /* 8-bit floats: how far is not known */
        return (double)INFINITY;
    bool less = is_unsigned(x->dtype) ? a < b : sign_extend(a, width) < sign_extend(b, width);
    if (!is_unsigned(x->dtype)) {
        a = (uint64_t)sign_extend(a, width);
        b = (uint64_t)sign_extend(b, width);
    }
    return (double)(less ? b - a : a - b);
}

static bool same_shape(const Array *x, const Array *y)
{
    return x->dtype == y->dtype && x->rank == y->rank &&
           (x->rank == 0 || !memcmp(x->sizes, y->sizes, (size_t)x->rank * sizeof *x->sizes));
}

bool p2o_array_compare(const Array *x, const Array *y, Tolerance t, ArrayDiff *out)
{
    if (!same_shape(x, y))
        return false;
    ArrayDiff diff = { 0 };
    unsigned  parts = is_complex(x->dtype) ? 2 : 1;
    uint64_t  n = p2o_array_nelem(x);
    bool      exact = !is_wide_float(x->dtype) && parts == 1;
    double    farthest = -(double)INFINITY;
    for (uint64_t i = 0; i < n; i++) {
        bool outside = false;
        for (unsigned k = 0; k < parts; k++) {
            double want = exact ? 0 : component(y, parts * i + k);
            double gap = exact ? int_gap(x, y, i) : float_gap(component(x, parts * i + k), want);
            double excess = gap - (exact || !isfinite(want) ? 0 : t.atol + t.rtol * fabs(want));
            outside |= excess > 0;
            diff.max_abs = gap > diff.max_abs ? gap : diff.max_abs;
            if (excess > farthest) {
                farthest = excess;
                diff.worst = i;
            }
        }
        diff.noutside += outside;
    }
    *out = diff;
    return true;
}

ArrayStats p2o_array_stats(const Array *x)
{
    ArrayStats s = { 0 };
    uint64_t   n = p2o_array_nelem(x), seen = 0;
    double     sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        double v = p2o_array_at(x, i);
        if (isnan(v)) {
            s.nnan++;
            continue;
        }
        s.min = seen && s.min <= v ? s.min : v;
        s.max = seen && s.max >= v ? s.max : v;
        sum += v;
        seen++;
    }
    s.mean = seen ? sum / (double)seen : 0;
    return s;
}
