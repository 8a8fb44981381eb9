/* format/zip: archives are built here byte by byte, right ones in the forms that writers use and
 * wrong ones by changing one field at a time. */
#include <zlib.h>

#include "base/vec.h"
#include "check.h"
#include "format/zip.h"

static Arena *arena;

static void put_u16(Buf *b, unsigned v)
{
    p2o_put(b, (uint8_t[]){ (uint8_t)v, (uint8_t)(v >> 8) }, 2);
}

static void put_u32(Buf *b, uint64_t v)
{
    put_u16(b, (unsigned)(v & 0xFFFF));
    put_u16(b, (unsigned)(v >> 16 & 0xFFFF));
}

static void put_u64(Buf *b, uint64_t v)
{
    put_u32(b, v & UINT32_MAX);
    put_u32(b, v >> 32);
}

/* One record to write, and the lies to tell about it. */
typedef struct Rec {
    const char *name;
    Str         data;
    bool        deflate;
    bool        crc;                    /* record it; else 0 */
    bool        wide;                   /* sizes and offset in a zip64 extra field */
    unsigned    pad;                    /* bytes of extra field in the local header only */
    size_t      name_n;                 /* 0: strlen */
    const char *local_name;             /* NULL: the same */
    int64_t     csize_off, usize_off, offset_off;       /* added to the directory's values */
    unsigned    flags, method, disk;
    int         crc_xor;
} Rec;

typedef struct Arc {
    bool        zip64;                  /* with locator and zip64 end record, as PyTorch writes */
    bool        ones;                   /* the classic end record is all ones */
    const char *comment;
    int         count_off, dir_off, bytes_off, disk;
    int         end64_at_off, end64_count_off, end64_size_off;
    const char *tail;                   /* after everything */
    const char *head;                   /* before everything; offsets do not count it */
} Arc;

static Str squeeze(Str s)
{
    uLong    cap = compressBound((uLong)s.n) + 64;
    uint8_t *out = p2o_alloc(arena, cap);
    z_stream z = { 0 };
    CHECK(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (Bytef *)(uintptr_t)s.p;
    z.avail_in = (uInt)s.n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    size_t n = cap - z.avail_out;
    deflateEnd(&z);
    return (Str){ (char *)out, n };
}

static void put_local(Buf *b, const Rec *r, Str payload)
{
    const char *name = r->local_name ? r->local_name : r->name;
    size_t      n = r->name_n ? r->name_n : strlen(name);
    put_u32(b, 0x04034B50);
    put_u16(b, 0);
    put_u16(b, 0x0808);
    put_u16(b, r->deflate ? 8 : 0);
    put_u32(b, 0);                      /* time and date */
    put_u32(b, 0);                      /* CRC and sizes: only in the directory */
    put_u64(b, 0);
    put_u16(b, (unsigned)n);
    put_u16(b, r->pad);
    p2o_put(b, name, n);
    for (unsigned i = 0; i < r->pad; i++)
        p2o_puts(b, "Z");
    p2o_put(b, payload.p, payload.n);
    if (r->data.n) {                    /* data descriptor, which readers skip */
        put_u32(b, 0x08074B50);
        put_u64(b, 0);
        put_u32(b, 0);
    }
}

static void put_entry(Buf *b, const Rec *r, Str payload, uint64_t at)
{
    size_t   n = r->name_n ? r->name_n : strlen(r->name);
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)r->data.p, (uInt)r->data.n);
    uint64_t csize = payload.n + (uint64_t)r->csize_off, usize = r->data.n + (uint64_t)r->usize_off;
    at += (uint64_t)r->offset_off;
    put_u32(b, 0x02014B50);
    put_u32(b, 0);
    put_u16(b, 0x0808 | r->flags);
    put_u16(b, r->method ? r->method : r->deflate ? 8 : 0);
    put_u32(b, 0);
    put_u32(b, r->crc ? crc ^ (uint32_t)r->crc_xor : 0);
    put_u32(b, r->wide ? UINT32_MAX : csize);
    put_u32(b, r->wide ? UINT32_MAX : usize);
    put_u16(b, (unsigned)n);
    put_u16(b, r->wide ? 36 : 0);
    put_u16(b, 0);
    put_u16(b, r->disk);
    put_u16(b, 0);
    put_u32(b, 0);
    put_u32(b, r->wide ? UINT32_MAX : at);
    p2o_put(b, r->name, n);
    if (r->wide) {
        put_u32(b, 0x00047777);         /* another field first, to be skipped */
        put_u32(b, 0);
        put_u32(b, 0x00180001);
        put_u64(b, usize);
        put_u64(b, csize);
        put_u64(b, at);
    }
}

static void put_end(Buf *b, const Arc *a, uint64_t count, uint64_t dir, uint64_t bytes,
                    uint64_t base)
{
    uint64_t end64 = b->n - base;
    if (a->zip64) {
        put_u32(b, 0x06064B50);
        put_u64(b, (uint64_t)(44 + a->end64_size_off));
        put_u32(b, 0);
        put_u64(b, 0);
        put_u64(b, count + (uint64_t)a->end64_count_off);
        put_u64(b, count + (uint64_t)a->end64_count_off);
        put_u64(b, bytes);
        put_u64(b, dir);
        put_u32(b, 0x07064B50);
        put_u32(b, 0);
        put_u64(b, end64 + (uint64_t)a->end64_at_off);
        put_u32(b, 1);
    }
    const char *comment = a->comment ? a->comment : "";
    put_u32(b, 0x06054B50);
    put_u16(b, (unsigned)a->disk);
    put_u16(b, 0);
    put_u16(b, a->ones ? 0xFFFF : (unsigned)count + (unsigned)a->count_off);
    put_u16(b, a->ones ? 0xFFFF : (unsigned)count + (unsigned)a->count_off);
    put_u32(b, a->ones ? UINT32_MAX : bytes + (uint64_t)a->bytes_off);
    put_u32(b, a->ones ? UINT32_MAX : dir + (uint64_t)a->dir_off);
    put_u16(b, (unsigned)strlen(comment));
    p2o_puts(b, comment);
}

static Str archive(Arc a, const Rec *recs, size_t n)
{
    Buf       b = { .arena = arena };
    uint64_t *at = NEW_N(arena, uint64_t, n);
    Str      *payload = NEW_N(arena, Str, n);

    p2o_puts(&b, a.head ? a.head : "");
    uint64_t base = b.n;
    for (size_t i = 0; i < n; i++) {
        bool again = i && recs[i].deflate && recs[i - 1].deflate &&
                     recs[i].data.p == recs[i - 1].data.p;
        payload[i] = again           ? payload[i - 1]
                   : recs[i].deflate ? squeeze(recs[i].data)
                                     : recs[i].data;
        at[i] = b.n - base;
        put_local(&b, &recs[i], payload[i]);
    }
    uint64_t dir = b.n - base;
    for (size_t i = 0; i < n; i++)
        put_entry(&b, &recs[i], payload[i], at[i]);
    put_end(&b, &a, n, dir, b.n - base - dir, base);
    p2o_puts(&b, a.tail ? a.tail : "");
    return buf_str(&b);
}

#define ARCHIVE(arc, ...) \
    archive((arc), (Rec[]){ __VA_ARGS__ }, sizeof((Rec[]){ __VA_ARGS__ }) / sizeof(Rec))

#define REC(the_name, the_data) .name = (the_name), .data = the_data
/* One record with these lies; an archive that ends in these. */
#define ONE(...)    ARCHIVE(plain, { REC("a", some_text), __VA_ARGS__ })
#define ENDING(...) ARCHIVE(((Arc){ __VA_ARGS__ }), { REC("a", STR("1")) })

static const Str some_text = { "some text, some text, some text, some text", 42 };
static const Arc plain = { .zip64 = false }, torch = { .zip64 = true };
static Diags    *diags;

/* A copy of the exact size: a byte past the end is seen. */
static Zip *open_zip(Str s)
{
    char *copy = p2o_alloc(arena, s.n);
    memcpy(copy, s.p, s.n);
    diags = p2o_diags_new(arena, NULL, NULL);
    Zip *z = p2o_zip_open(diags, p2o_source_memory(arena, copy, s.n), 0, s.n);
    CHECK((z == NULL) == (p2o_diags_count(diags) == 1));
    return z;
}

static bool last_says(const char *why)
{
    const char *text = p2o_diags_count(diags)
                           ? p2o_diags_at(diags, p2o_diags_count(diags) - 1)->text : "no message";
    if (strstr(text, why) && !strchr(text, '\n'))
        return true;
    printf("message: %s\n", text);
    return false;
}

static bool refused_zip(Str s, const char *why) { return !open_zip(s) && last_says(why); }

static bool record_is(const Zip *z, const char *name, Str want)
{
    const ZipEntry *e = z ? p2o_zip_find(z, str_of(name)) : NULL;
    Str             got;
    return e && p2o_zip_read(diags, z, e, &got) && str_eq(got, want);
}

static bool unreadable(Str s, const char *name, const char *why)
{
    const Zip      *z = open_zip(s);
    const ZipEntry *e = z ? p2o_zip_find(z, str_of(name)) : NULL;
    Str             got;
    return e && !p2o_zip_read(diags, z, e, &got) && p2o_diags_count(diags) == 1 && last_says(why);
}

static void test_forms(void)
{
    const Arc forms[] = { plain, torch, { .zip64 = true, .ones = true }, { .comment = "hello" },
                          { .zip64 = true, .comment = "PK" } };
    Str text = STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        Str  bytes = ARCHIVE(forms[i], { REC("r/data/0", STR("0123")), .crc = true, .pad = 23 },
                             { REC("r/none", STR("")) },
                             { REC("r/none2", STR("")), .deflate = true },
                             { REC("r/code.py", text), .deflate = true, .crc = true },
                             { REC("r/nocrc", STR("xyz")), .pad = 4 },
                             { REC("r/wide", STR("wide")), .wide = true, .crc = true });
        Zip *z = open_zip(bytes);
        CHECK(z && z->n == 6);
        CHECK(record_is(z, "r/data/0", STR("0123")) && record_is(z, "r/none", STR("")));
        CHECK(record_is(z, "r/none2", STR("")) && record_is(z, "r/code.py", text));
        CHECK(record_is(z, "r/nocrc", STR("xyz")) && record_is(z, "r/wide", STR("wide")));
        CHECK(z && str_is(z->entries[0].name, "r/data/0") && str_is(z->entries[5].name, "r/wide"));
        CHECK(z && z->entries[0].offset == 30 + 8 + 23 && z->entries[3].deflated);
        CHECK(z && !p2o_zip_find(z, STR("r")) && !p2o_zip_find(z, STR("R/none")));
    }
    Zip *z = open_zip(archive(plain, NULL, 0));
    CHECK(z && z->n == 0 && !p2o_zip_find(z, STR("")));
    z = open_zip(ARCHIVE(plain, { REC("r/", STR("")) }, { REC("r/a", STR("1")) }));
    CHECK(z && z->n == 1 && record_is(z, "r/a", STR("1")));
    CHECK(refused_zip(ARCHIVE(plain, { REC("r/", STR("x")) }), "a folder with contents"));
}

/* An archive inside another file, as nested .pt records are. */
static void test_nested(void)
{
    Str   inner = ARCHIVE(torch, { REC("r/a", STR("payload")), .crc = true, .pad = 5 });
    Buf   b = { .arena = arena };
    p2o_puts(&b, "before");
    p2o_put(&b, inner.p, inner.n);
    p2o_puts(&b, "after");
    diags = p2o_diags_new(arena, NULL, NULL);
    Source *s = p2o_source_memory(arena, b.at, b.n);
    Zip    *z = p2o_zip_open(diags, s, 6, inner.n);
    CHECK(record_is(z, "r/a", STR("payload")));
    CHECK(z && z->entries[0].offset == 6 + 30 + 3 + 5);
    CHECK(!p2o_zip_open(diags, s, 6, inner.n - 1));
    CHECK(!p2o_zip_open(diags, s, 5, inner.n));
    CHECK(!p2o_zip_open(diags, s, 6, b.n) && last_says("truncated"));
    CHECK(!p2o_zip_open(diags, s, UINT64_MAX, 1) && last_says("truncated"));
    CHECK(!p2o_zip_open(diags, s, 1, UINT64_MAX) && last_says("truncated"));
    CHECK(refused_zip(ARCHIVE(((Arc){ .head = "prefix" }), { REC("r/a", STR("1")) }), "zip"));
}

static void test_end_record(void)
{
    CHECK(refused_zip(STR(""), "truncated"));
    CHECK(refused_zip(STR("PK\5\6"), "truncated"));
    CHECK(refused_zip(ENDING(.tail = "x"), "truncated"));
    CHECK(refused_zip(ENDING(.disk = 1), "one part of several"));
    CHECK(refused_zip(ENDING(.count_off = 1), "too small"));
    CHECK(refused_zip(ENDING(.count_off = -1), "more than its count"));
    CHECK(refused_zip(ENDING(.dir_off = 1), "truncated"));
    CHECK(refused_zip(ENDING(.dir_off = -1), "fewer entries"));
    CHECK(refused_zip(ENDING(.bytes_off = 1), "truncated"));
    CHECK(refused_zip(ENDING(.bytes_off = -1), "zip"));
    CHECK(refused_zip(ENDING(.ones = true), "zip"));
    CHECK(refused_zip(ENDING(.zip64 = true, .count_off = 1), "differ"));
    CHECK(refused_zip(ENDING(.zip64 = true, .dir_off = 1), "differ"));
    CHECK(refused_zip(ENDING(.zip64 = true, .bytes_off = 9), "differ"));
    CHECK(refused_zip(ENDING(.zip64 = true, .end64_at_off = 1),
                      "not where its locator says"));
    CHECK(refused_zip(ENDING(.zip64 = true, .end64_at_off = 100),
                      "outside it"));
    CHECK(refused_zip(ENDING(.zip64 = true, .end64_at_off = -100000),
                      "outside it"));
    CHECK(refused_zip(ENDING(.zip64 = true, .end64_size_off = 1),
                      "not where its locator says"));
    CHECK(refused_zip(ENDING(.zip64 = true, .end64_size_off = -1),
                      "not where its locator says"));
    CHECK(refused_zip(ENDING(.zip64 = true, .ones = true, .end64_count_off = 1000000),
                      "too small"));

    Buf b = { .arena = arena };         /* an end record in the comment of another */
    Str inner = archive(plain, NULL, 0);
    Str outer = ARCHIVE(plain, { REC("a", STR("1")) });
    p2o_put(&b, outer.p, outer.n - 2);
    put_u16(&b, (unsigned)inner.n);
    p2o_put(&b, inner.p, inner.n);
    CHECK(refused_zip(buf_str(&b), "two directories"));
}

static void test_entries(void)
{
    CHECK(refused_zip(ONE(.usize_off = 1), "its two sizes differ"));
    CHECK(refused_zip(ONE(.csize_off = -1), "its two sizes differ"));
    CHECK(refused_zip(ONE(.csize_off = 17, .usize_off = 17),
                      "runs into the directory"));      /* the descriptor is 16 bytes */
    CHECK(refused_zip(ONE(.wide = true, .csize_off = INT64_MAX, .usize_off = INT64_MAX),
                      "runs into the directory"));
    CHECK(refused_zip(ONE(.wide = true, .csize_off = -43, .usize_off = -43),
                      "runs into the directory"));      /* 2^64 - 1 bytes */
    CHECK(refused_zip(ONE(.offset_off = 1), "does not match the directory"));
    CHECK(refused_zip(ONE(.offset_off = 1000), "truncated"));
    CHECK(refused_zip(ONE(.wide = true, .offset_off = -1), "truncated"));
    CHECK(refused_zip(ONE(.local_name = "b"), "does not match"));
    CHECK(refused_zip(ONE(.local_name = "ab"), "does not match"));
    CHECK(refused_zip(ONE(.flags = 1), "encrypted"));
    CHECK(p2o_diags_at(diags, 0)->kind == DIAG_UNSUPPORTED);
    CHECK(refused_zip(ONE(.flags = 0x2000), "encrypted"));
    CHECK(refused_zip(ONE(.method = 12), "method 12"));
    CHECK(refused_zip(ONE(.disk = 1), "several"));

    /* all ones without the field that says what they stand for */
    CHECK(refused_zip(ONE(.csize_off = UINT32_MAX - 42, .usize_off = UINT32_MAX - 42), "zip64"));
}

static void test_overlap(void)
{
    Str s = STR("0123456789");          /* with name, header and descriptor 57 bytes a record */
    Rec two[] = { { REC("a", s) }, { REC("b", s), .offset_off = -57 } };
    CHECK(refused_zip(archive(plain, two, 2), "does not match"));
    two[1].name = "a";                  /* one record behind two entries */
    CHECK(refused_zip(archive(plain, two, 2), "overlap"));

    Rec stretched[] = { { REC("a", s), .csize_off = 17, .usize_off = 17 }, { REC("b", s) } };
    CHECK(refused_zip(archive(plain, stretched, 2), "overlap"));
    stretched[0].csize_off = stretched[0].usize_off = 16;
    CHECK(open_zip(archive(plain, stretched, 2)));

    Rec back[] = { { REC("a", s), .offset_off = 57 }, { REC("b", s), .offset_off = -57 } };
    back[0].local_name = "b";           /* the directory need not be in the payloads' order */
    back[1].local_name = "a";
    CHECK(open_zip(archive(plain, back, 2)));
    back[1].csize_off = back[1].usize_off = 17;
    CHECK(refused_zip(archive(plain, back, 2), "overlap"));
}

static void test_names(void)
{
    static const char *const bad[] = { "/a", "../a", "a/..", "a/../b", "./a", "a/./b", ".", "..",
                                       "C:x", "c:/x", "a\\b", "a\nb", "a\x7F" "b", "\xFF",
                                       "a\xC3", "\xED\xA0\x80", "" };
    static const char *const good[] = { "a..b", "...", "a/...", ".data/version", "a//b", "9:x",
                                        "ab:c", "\xC3\xA9/\xE6\xA8\xA1", "a b", "a." };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(refused_zip(ARCHIVE(plain, { REC(bad[i], STR("1")) }), "the name of entry 0"));
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(record_is(open_zip(ARCHIVE(plain, { REC(good[i], STR("1")) })), good[i], STR("1")));
    CHECK(refused_zip(ARCHIVE(plain, { REC("ok", STR("")) },
                              { REC("a\0b", STR("1")), .name_n = 3 }), "entry 1"));

    char *longest = p2o_alloc(arena, 5000);
    memset(longest, 'n', 4096);
    CHECK(record_is(open_zip(ARCHIVE(plain, { REC(longest, STR("1")) })), longest, STR("1")));
    longest[4096] = 'n';
    CHECK(refused_zip(ARCHIVE(plain, { REC(longest, STR("1")) }), "longer than 4096"));

    CHECK(refused_zip(ARCHIVE(plain, { REC("a", STR("1")) }, { REC("a", STR("2")) }),
                      "two of this name"));
    CHECK(refused_zip(ARCHIVE(plain, { REC("r/a", STR("1")) }, { REC("R/A", STR("2")) }),
                      "two of this name"));
    CHECK(open_zip(ARCHIVE(plain, { REC("\xC3\x89", STR("1")) }, { REC("\xC3\xA9", STR("2")) })));
    CHECK(open_zip(ARCHIVE(plain, { REC("a@", STR("1")) }, { REC("a`", STR("2")) })));
}

static void test_contents(void)
{
    CHECK(unreadable(ONE(.crc = true, .crc_xor = 1), "a", "checksum"));
    CHECK(unreadable(ONE(.deflate = true, .crc = true, .crc_xor = 1), "a",
                     "checksum"));
    CHECK(unreadable(ONE(.deflate = true, .usize_off = 1), "a", "inflate"));
    CHECK(unreadable(ONE(.deflate = true, .usize_off = -1), "a", "inflate"));
    CHECK(unreadable(ONE(.deflate = true, .csize_off = 1), "a", "inflate"));
    CHECK(unreadable(ONE(.deflate = true, .csize_off = -1), "a", "inflate"));
    CHECK(unreadable(ARCHIVE(plain, { REC("a", STR("\xFF\xFF\xFF\xFF")), .method = 8 }), "a",
                     "inflate"));
    CHECK(unreadable(ONE(.deflate = true, .usize_off = -42), "a", "inflate"));
}

static void test_bombs(void)
{
    size_t n = 5000000;
    char  *zeros = p2o_alloc(arena, n);
    Str    block = { zeros, n };
    Str    bytes = ARCHIVE(plain, { "a", .data = block, .deflate = true, .crc = true });
    CHECK(bytes.n < 6000);
    CHECK(record_is(open_zip(bytes), "a", block));      /* dense, but honest */
    CHECK(refused_zip(ARCHIVE(plain, { "a", .data = block, .deflate = true, .usize_off = 1000000 }),
                      "beyond what deflate can do"));
    CHECK(refused_zip(ARCHIVE(plain, { REC("a", STR("x")), .deflate = true, .wide = true,
                                       .usize_off = INT64_MAX }), "beyond what deflate can do"));
    CHECK(refused_zip(ARCHIVE(plain, { REC("a", STR("x")), .deflate = true, .csize_off = -3,
                                       .usize_off = 1 }), "beyond what deflate can do"));

    /* each within the ratio, all together too much */
    static Rec many[300];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = (Rec){ p2o_printf(arena, "r%zu", i), .data = block, .deflate = true };
    CHECK(refused_zip(archive(torch, many, COUNT_OF(many)), "more than 1073741824 bytes"));
    CHECK(p2o_diags_at(diags, 0)->kind == DIAG_UNSUPPORTED && p2o_diags_at(diags, 0)->advice);
    CHECK(open_zip(archive(torch, many, 200)));
}

static void test_many(void)
{
    enum { N = 70000 };                 /* more than a classic end record can count */
    Rec *recs = NEW_N(arena, Rec, N);
    for (size_t i = 0; i < N; i++)
        recs[i] = (Rec){ p2o_printf(arena, "r/data/%zu", i), .data = STR("7") };
    Zip *z = open_zip(archive((Arc){ .zip64 = true, .ones = true }, recs, N));
    CHECK(z && z->n == N && record_is(z, "r/data/69999", STR("7")));
    CHECK(!open_zip(archive((Arc){ .zip64 = false }, recs, N)));
}

/* Every truncation is refused, and every change of one byte at least does no harm. */
static void test_damage(void)
{
    Str s = ARCHIVE(torch, { REC("r/a.py", some_text), .deflate = true, .crc = true },
                    { REC("r/b", STR("xyz")), .crc = true, .pad = 9 },
                    { REC("r/c", STR("wide")), .wide = true });
    for (size_t n = 0; n < s.n; n++)
        CHECK(refused_zip((Str){ s.p, n }, "truncated"));
    static const unsigned char flips[] = { 0x01, 0x80, 0xFF };
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < sizeof flips; k++) {
            ArenaMark m = p2o_arena_mark(arena);
            char     *copy = p2o_alloc(arena, s.n);
            memcpy(copy, s.p, s.n);
            copy[i] = (char)(copy[i] ^ flips[k]);
            Zip *z = open_zip((Str){ copy, s.n });
            Str  got;
            for (size_t e = 0; z && e < z->n; e++)
                if (p2o_zip_read(diags, z, &z->entries[e], &got))
                    CHECK(got.n == z->entries[e].usize);
            p2o_arena_rewind(arena, m);
        }
}

typedef struct Served {
    Str      bytes;
    uint64_t broken_from;               /* reads at or past this fail */
} Served;

static bool serve_zip(void *user, uint64_t offset, void *buf, size_t n)
{
    const Served *v = user;
    if (offset + n > v->broken_from)
        return false;
    memcpy(buf, v->bytes.p + offset, n);
    return true;
}

static void test_callback(void)
{
    Str    s = ARCHIVE(torch, { REC("r/a", STR("hello")), .crc = true, .pad = 7 },
                       { REC("r/b", STR("hello hello hello hello hello")), .deflate = true });
    Served v = { s, UINT64_MAX };
    diags = p2o_diags_new(arena, NULL, NULL);
    Zip *z = p2o_zip_open(diags, p2o_source_callback(diags, s.n, serve_zip, &v), 0, s.n);
    CHECK(record_is(z, "r/a", STR("hello")));
    CHECK(record_is(z, "r/b", STR("hello hello hello hello hello")));
    v.broken_from = 0;
    Str got;
    CHECK(z && !p2o_zip_read(diags, z, &z->entries[0], &got) && last_says("cannot read record"));
    CHECK(z && !p2o_zip_open(diags, z->source, 0, s.n) && p2o_diags_count(diags) == 2);
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    test_forms();
    test_nested();
    test_end_record();
    test_entries();
    test_overlap();
    test_names();
    test_contents();
    test_bombs();
    test_many();
    test_damage();
    test_callback();
    p2o_arena_free(arena);
    return check_report();
}
