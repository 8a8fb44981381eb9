/* The directory is found from the file's end, read in one pass, and then checked as a whole: each
 * local header against its directory entry, names against one another, payloads for overlap.  After
 * that every entry's payload is known to lie in the archive and to belong to it alone.
 *
 * PyTorch's writer leaves sizes and CRC of local headers 0 and pads them to align the payload, so
 * of a local header only its signature, its name and its lengths are used. */
#include "format/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/num.h"
#include "base/vec.h"
#include "format/json.h"

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    LONGEST_COMMENT = 65535,
    LONGEST_NAME = 4096,
    MOST_ENTRIES = 1 << 24,
    DEFLATE_RATIO = 1032,               /* the most that the format can reach */
    INFLATE_BUDGET = 1 << 30,           /* bytes of all deflated entries together */
};

enum {
    SIG_LOCAL = 0x04034B50,
    SIG_ENTRY = 0x02014B50,
    SIG_END = 0x06054B50,
    SIG_LOCATOR = 0x07064B50,
    SIG_END64 = 0x06064B50,
};

/* One archive being opened.  Offsets count from the archive's start; `base` is that start in the
 * source. */
typedef struct ZipReader {
    Diags   *diags;
    Source  *source;
    uint64_t base, size;
    uint64_t dir, dir_bytes, count;
    uint64_t inflated;                  /* what all deflated entries so far come to */
    uint64_t seen;                      /* directory entries so far, folders included */
    VEC(ZipEntry) entries;              /* `offset` is the local header's until find_payload */
} ZipReader;

/* Where a record lies, header and payload. */
typedef struct ZipSpan {
    uint64_t from, to;
} ZipSpan;

static uint16_t zip_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

static uint32_t zip_u32(const uint8_t *p) { return zip_u16(p) | (uint32_t)zip_u16(p + 2) << 16; }

static uint64_t zip_u64(const uint8_t *p) { return zip_u32(p) | (uint64_t)zip_u32(p + 4) << 32; }

static bool broken_zip(ZipReader *r, const char *what)
{
    p2o_diag(r->diags, DIAG_BAD_FILE, 0, "broken zip archive: %s", what);
    return false;
}

static bool broken_entry(Diags *d, const ZipEntry *e, const char *what)
{
    p2o_diag(d, DIAG_BAD_FILE, 0, "broken zip archive: record %.*s: %s", STR_ARG(e->name), what);
    return false;
}

static bool read_zip(ZipReader *r, uint64_t at, void *buf, size_t n)
{
    if (at > r->size || n > r->size - at)
        return broken_zip(r, "truncated: an offset points past its end");
    if (p2o_source_read(r->source, r->base + at, buf, n))
        return true;
    p2o_diag(r->diags, DIAG_IO, 0, "cannot read %zu bytes at %" PRIu64, n, r->base + at);
    return false;
}

/* The end record is the last thing in the file but for a comment whose length it states.  A second
 * candidate inside the comment would make two readers see two archives. */
static bool find_end(ZipReader *r, uint64_t *end)
{
    size_t n = END_BYTES + LONGEST_COMMENT;
    if (n > r->size)
        n = (size_t)r->size;
    uint64_t       from = r->size - n;
    const uint8_t *tail = p2o_source_view(r->source, r->base + from, n);
    int            found = 0;

    for (size_t i = 0; tail && i + END_BYTES <= n; i++)
        if (zip_u32(tail + i) == SIG_END && i + END_BYTES + zip_u16(tail + i + 20) == n) {
            *end = from + i;
            found++;
        }
    if (found == 0)
        return broken_zip(r, "no directory at the end: truncated, or followed by other bytes");
    return found == 1 || broken_zip(r, "two directories at the end");
}

/* Fields of the end record that are all ones are only in the zip64 one; the others must agree. */
static bool read_end64(ZipReader *r, uint64_t locator, uint64_t at, bool ones[3])
{
    uint8_t e[END64_BYTES];
    if (!read_zip(r, at, e, sizeof e))
        return false;
    uint64_t rest = zip_u64(e + 4), count = zip_u64(e + 32), bytes = zip_u64(e + 40),
             dir = zip_u64(e + 48);
    if (zip_u32(e) != SIG_END64 || locator - at < END64_BYTES || rest < END64_BYTES - 12 ||
        rest > locator - at - 12)
        return broken_zip(r, "its zip64 end record is not where its locator says");
    if (zip_u32(e + 16) != 0 || zip_u32(e + 20) != 0 || zip_u64(e + 24) != count)
        return broken_zip(r, "it is one part of several");
    if ((!ones[0] && count != r->count) || (!ones[1] && bytes != r->dir_bytes) ||
        (!ones[2] && dir != r->dir))
        return broken_zip(r, "its two end records differ");
    r->count = count;
    r->dir_bytes = bytes;
    r->dir = dir;
    return true;
}

static bool find_directory(ZipReader *r)
{
    uint8_t  e[END_BYTES], l[LOCATOR_BYTES];
    uint64_t end = 0, limit;

    if (!find_end(r, &end) || !read_zip(r, end, e, sizeof e))
        return false;
    r->count = zip_u16(e + 10);
    r->dir_bytes = zip_u32(e + 12);
    r->dir = zip_u32(e + 16);
    limit = end;
    bool ones[3] = { r->count == UINT16_MAX, r->dir_bytes == UINT32_MAX, r->dir == UINT32_MAX };
    bool located = false;
    if (end >= LOCATOR_BYTES) {
        if (!read_zip(r, end - LOCATOR_BYTES, l, sizeof l))
            return false;
        located = zip_u32(l) == SIG_LOCATOR;
    }
    if (located) {
        limit = zip_u64(l + 8);
        if (limit > end - LOCATOR_BYTES || zip_u32(l + 4) != 0 || zip_u32(l + 16) > 1)
            return broken_zip(r, "its zip64 locator points outside it");
        if (!read_end64(r, end - LOCATOR_BYTES, limit, ones))
            return false;
    } else if (zip_u16(e + 4) != 0 || zip_u16(e + 6) != 0 || zip_u16(e + 8) != r->count) {
        return broken_zip(r, "it is one part of several");
    }
    if (r->dir > limit || r->dir_bytes > limit - r->dir)
        return broken_zip(r, "truncated: its directory does not end before its end record");
    if (r->count > r->dir_bytes / ENTRY_BYTES || r->count > MOST_ENTRIES)
        return broken_zip(r, "its directory is too small for its count of entries");
    return true;
}

/* Names are never used as paths on disk, but they are printed and they are compared. */
static const char *name_fault(Str s)
{
    if (s.n == 0 || s.n > LONGEST_NAME)
        return "is empty or longer than 4096 bytes";
    for (size_t i = 0; i < s.n;) {
        unsigned char c = (unsigned char)s.p[i];
        size_t        len = p2o_json_utf8((Str){ s.p + i, s.n - i });
        if (len == 0)
            return "is not UTF-8";
        if (c < 0x20 || c == 0x7F || c == '\\')
            return "has a control character or a backslash";
        i += len;
    }
    bool letter = (s.p[0] | 32) >= 'a' && (s.p[0] | 32) <= 'z';
    if (s.p[0] == '/' || (letter && s.n > 1 && s.p[1] == ':'))
        return "is an absolute path";
    for (Str rest = s; rest.n;) {
        Str part = p2o_str_cut(rest, '/', &rest);
        if (str_is(part, ".") || str_is(part, ".."))
            return "has a . or .. component";
    }
    return NULL;
}

/* The zip64 extra field holds, in this order, only those of the three that are all ones. */
static bool read_wide(const uint8_t *x, size_t n, uint64_t *const field[3])
{
    size_t size = 0;
    for (; n >= 4; x += size, n -= size) {
        unsigned id = zip_u16(x);
        size = zip_u16(x + 2);
        x += 4;
        n -= 4;
        if (size > n)
            return false;
        if (id != 1)
            continue;
        for (int k = 0; k < 3; k++) {
            if (*field[k] != UINT32_MAX)
                continue;
            if (size < 8)
                return false;
            *field[k] = zip_u64(x);
            x += 8;
            n -= 8;
            size -= 8;
        }
        return true;
    }
    return *field[0] != UINT32_MAX && *field[1] != UINT32_MAX && *field[2] != UINT32_MAX;
}

static bool check_sizes(ZipReader *r, const ZipEntry *e)
{
    if (!e->deflated)
        return e->csize == e->usize ||
               broken_entry(r->diags, e, "stored, yet its two sizes differ");
    if (e->usize / DEFLATE_RATIO > e->csize || e->usize > e->csize * DEFLATE_RATIO)
        return broken_entry(r->diags, e, "it claims to inflate beyond what deflate can do");
    uint64_t more = e->usize > e->csize ? e->usize : e->csize;
    if (more <= INFLATE_BUDGET - r->inflated) {
        r->inflated += more;
        return true;
    }
    p2o_diag_advise(r->diags, DIAG_UNSUPPORTED, 0,
                    "pack it again without compression, as PyTorch does",
                    "the compressed records of this zip archive come to more than %d bytes",
                    (int)INFLATE_BUDGET);
    return false;
}

static bool check_method(ZipReader *r, const ZipEntry *e, unsigned flags, unsigned method)
{
    enum { ENCRYPTED = 1, PATCHED = 0x20, STRONGLY = 0x40, MASKED = 0x2000 };
    if (flags & (ENCRYPTED | PATCHED | STRONGLY | MASKED)) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "zip record %.*s is encrypted", STR_ARG(e->name));
        return false;
    }
    if (method != 0 && method != 8) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0,
                 "zip record %.*s is compressed by method %u: only 0 (stored) and 8 (deflate) are "
                 "read", STR_ARG(e->name), method);
        return false;
    }
    return true;
}

/* One directory entry at p, of `left` bytes at most; *used is its length. */
static bool read_entry(ZipReader *r, const uint8_t *p, uint64_t left, uint64_t *used)
{
    if (left < ENTRY_BYTES || zip_u32(p) != SIG_ENTRY)
        return broken_zip(r, "its directory holds fewer entries than its count");
    size_t nname = zip_u16(p + 28), nextra = zip_u16(p + 30), ncomment = zip_u16(p + 32);
    *used = ENTRY_BYTES + nname + nextra + ncomment;
    if (*used > left)
        return broken_zip(r, "an entry runs past the end of its directory");

    ZipEntry e = {
        .name = { (const char *)p + ENTRY_BYTES, nname },
        .offset = zip_u32(p + 42),
        .csize = zip_u32(p + 20),
        .usize = zip_u32(p + 24),
        .crc = zip_u32(p + 16),
        .deflated = zip_u16(p + 10) != 0,
    };
    const char *fault = name_fault(e.name);
    if (fault) {
        p2o_diag(r->diags, DIAG_BAD_FILE, 0, "broken zip archive: the name of entry %" PRIu64 " %s",
                 r->seen, fault);
        return false;
    }
    if (!read_wide(p + ENTRY_BYTES + nname, nextra,
                   (uint64_t *const[3]){ &e.usize, &e.csize, &e.offset }))
        return broken_entry(r->diags, &e, "its extra field is cut short or lacks its zip64 sizes");
    if (zip_u16(p + 34) != 0)
        return broken_entry(r->diags, &e, "it is in another part of several");
    if (!check_method(r, &e, zip_u16(p + 8), zip_u16(p + 10)) || !check_sizes(r, &e))
        return false;
    if (!p2o_str_ends(e.name, "/"))
        VEC_PUSH(p2o_diags_arena(r->diags), &r->entries, e);
    else if (e.usize)
        return broken_entry(r->diags, &e, "a folder with contents");
    return true;
}

static bool read_directory(ZipReader *r)
{
    const uint8_t *p = NULL;
    if (r->dir_bytes <= SIZE_MAX)
        p = p2o_source_view(r->source, r->base + r->dir, (size_t)r->dir_bytes);
    if (!p)
        return broken_zip(r, "its directory cannot be read");
    uint64_t left = r->dir_bytes;
    for (r->seen = 0; r->seen < r->count; r->seen++) {
        uint64_t used = 0;
        if (!read_entry(r, p, left, &used))
            return false;
        p += used;
        left -= used;
    }
    return left == 0 || broken_zip(r, "its directory holds more than its count of entries");
}

/* From the local header on: turns e->offset into the payload's place in the source. */
static bool find_payload(ZipReader *r, ZipEntry *e, ZipSpan *span)
{
    uint8_t h[LOCAL_BYTES];
    char    name[LONGEST_NAME];

    if (e->offset > r->dir || r->dir - e->offset < LOCAL_BYTES + e->name.n)
        return broken_entry(r->diags, e, "truncated: its header is not before the directory");
    if (!read_zip(r, e->offset, h, sizeof h) ||
        !read_zip(r, e->offset + LOCAL_BYTES, name, e->name.n))
        return false;
    if (zip_u32(h) != SIG_LOCAL || !str_eq((Str){ name, zip_u16(h + 26) }, e->name))
        return broken_entry(r->diags, e, "its local header does not match the directory");
    uint64_t skip = LOCAL_BYTES + e->name.n + zip_u16(h + 28), room = r->dir - e->offset;
    if (skip > room || e->csize > room - skip)
        return broken_entry(r->diags, e, "truncated: its payload runs into the directory");
    *span = (ZipSpan){ e->offset, e->offset + skip + e->csize };
    e->offset += r->base + skip;
    return true;
}

static int by_place(const void *a, const void *b)
{
    const ZipSpan *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* One blob behind many names is how a small file becomes a large one. */
static bool find_payloads(ZipReader *r)
{
    size_t   n = r->entries.n;
    ZipSpan *spans = NEW_N(p2o_diags_arena(r->diags), ZipSpan, n);

    for (size_t i = 0; i < n; i++)
        if (!find_payload(r, &r->entries.at[i], &spans[i]))
            return false;
    if (n)
        qsort(spans, n, sizeof *spans, by_place);
    for (size_t i = 1; i < n; i++)
        if (spans[i].from < spans[i - 1].to)
            return broken_zip(r, "two records overlap");
    return true;
}

static Str fold_case(Arena *a, Str s)
{
    char *p = p2o_alloc(a, s.n);
    for (size_t i = 0; i < s.n; i++)
        p[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 32 : s.p[i]);
    return (Str){ p, s.n };
}

static bool index_names(ZipReader *r, Zip *z)
{
    Map folded = { .arena = z->index.arena };

    for (size_t i = 0; i < z->n; i++) {
        ZipEntry *e = &z->entries[i];
        void    **slot = p2o_map_slot(&folded, fold_case(z->index.arena, e->name));
        if (*slot)
            return broken_entry(r->diags, e, "there are two of this name");
        *slot = e;
        map_put(&z->index, e->name, e);
    }
    return true;
}

Zip *p2o_zip_open(Diags *d, Source *s, uint64_t offset, uint64_t size)
{
    ZipReader r = { .diags = d, .source = s, .base = offset, .size = size };
    uint64_t  whole = p2o_source_size(s);

    if (offset > whole || size > whole - offset) {
        broken_zip(&r, "truncated: it runs past the end of the file");
        return NULL;
    }
    if (!find_directory(&r) || !read_directory(&r) || !find_payloads(&r))
        return NULL;
    Zip *z = NEW(p2o_diags_arena(d), Zip);
    *z = (Zip){ .source = s, .entries = r.entries.at, .n = r.entries.n,
                .index = { .arena = p2o_diags_arena(d) } };
    return index_names(&r, z) ? z : NULL;
}

const ZipEntry *p2o_zip_find(const Zip *z, Str name) { return p2o_map_get(&z->index, name); }

static void *zlib_alloc(void *arena, uInt n, uInt size) { return p2o_alloc_n(arena, n, size); }

static void zlib_free(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

/* Both sizes are below INFLATE_BUDGET and so fit zlib's 32 bits. */
static bool inflate_all(Arena *a, const uint8_t *in, size_t nin, char *out, size_t nout)
{
    ArenaMark m = p2o_arena_mark(a);
    z_stream  s = { .zalloc = zlib_alloc, .zfree = zlib_free, .opaque = a };

    s.next_in = (Bytef *)(uintptr_t)in;
    s.avail_in = (uInt)nin;
    s.next_out = (Bytef *)out;
    s.avail_out = (uInt)nout;
    bool ok = inflateInit2(&s, -MAX_WBITS) == Z_OK && inflate(&s, Z_FINISH) == Z_STREAM_END;
    inflateEnd(&s);
    p2o_arena_rewind(a, m);
    return ok && s.avail_in == 0 && s.avail_out == 0;
}

bool p2o_zip_read(Diags *d, const Zip *z, const ZipEntry *e, Str *out)
{
    Arena         *a = p2o_diags_arena(d);
    const uint8_t *p = NULL;

    if (e->csize <= SIZE_MAX)
        p = p2o_source_view(z->source, e->offset, (size_t)e->csize);
    if (!p) {
        p2o_diag(d, DIAG_IO, 0, "cannot read record %.*s", STR_ARG(e->name));
        return false;
    }
    if (e->deflated) {
        char *text = p2o_alloc(a, (size_t)e->usize);
        if (!inflate_all(a, p, (size_t)e->csize, text, (size_t)e->usize))
            return broken_entry(d, e, "it does not inflate to the size it states");
        p = (const uint8_t *)text;
    }
    if (e->crc && crc32_z(0, p, (size_t)e->usize) != e->crc)
        return broken_entry(d, e, "its checksum is wrong: the file is damaged");
    *out = (Str){ (const char *)p, (size_t)e->usize };
    return true;
}

bool p2o_zip_crc(Source *s, uint64_t offset, uint64_t n, uint32_t *crc)
{
    uint8_t piece[64 * 1024];
    uLong   sum = crc32(0, NULL, 0);
    while (n) {
        size_t k = n < sizeof piece ? (size_t)n : sizeof piece;
        if (!p2o_source_read(s, offset, piece, k))
            return false;
        sum = crc32(sum, piece, (uInt)k);
        offset += k;
        n -= k;
    }
    *crc = (uint32_t)sum;
    return true;
}
