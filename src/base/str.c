/* FNV-1a with open addressing; nothing here depends on addresses, so runs repeat exactly. */
#include "base/str.h"

#include <stdio.h>

bool p2o_str_starts(Str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && !memcmp(s.p, prefix, n);
}

bool p2o_str_ends(Str s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.n >= n && !memcmp(s.p + s.n - n, suffix, n);
}

bool p2o_str_like(Str s, Str pattern)
{
    size_t i = 0, k = 0, star = pattern.n, from = 0;    /* the last *, and what it covers so far */
    while (i < s.n) {
        if (k < pattern.n && pattern.p[k] == '*') {
            star = k++;
            from = i;
        } else if (k < pattern.n && pattern.p[k] == s.p[i]) {
            i++;
            k++;
        } else if (star < pattern.n) {
            i = ++from;
            k = star + 1;
        } else {
            return false;
        }
    }
    while (k < pattern.n && pattern.p[k] == '*')
        k++;
    return k == pattern.n;
}

Str p2o_str_cut(Str s, char c, Str *rest)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;
    if (!at) {
        *rest = (Str){ "", 0 };
        return s;
    }
    size_t n = (size_t)(at - s.p);
    *rest = (Str){ at + 1, s.n - n - 1 };
    return (Str){ s.p, n };
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

Str p2o_str_trim(Str s)
{
    while (s.n && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

const char *p2o_str_dup(Arena *a, Str s)
{
    char *z = p2o_alloc(a, s.n + 1);
    if (s.n)
        memcpy(z, s.p, s.n);
    return z;
}

const char *p2o_vprintf(Arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *z = p2o_alloc(a, n < 0 ? 1 : (size_t)n + 1);
    if (n > 0)
        vsnprintf(z, (size_t)n + 1, fmt, again);
    va_end(again);
    return z;
}

const char *p2o_printf(Arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *z = p2o_vprintf(a, fmt, ap);
    va_end(ap);
    return z;
}

void p2o_put(Buf *b, const void *p, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 64;
        if (cap < b->n + n + 1)
            cap = b->n + n + 1;
        b->at = p2o_grow(b->arena, b->at, b->n, cap);
        b->cap = cap;
    }
    if (n)
        memcpy(b->at + b->n, p, n);
    b->n += n;
    b->at[b->n] = 0;
}

void p2o_puts(Buf *b, const char *z) { p2o_put(b, z, strlen(z)); }

void p2o_putf(Buf *b, const char *fmt, ...)
{
    char    small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n < sizeof small) {
        p2o_put(b, small, (size_t)n);
        return;
    }
    va_start(ap, fmt);
    p2o_puts(b, p2o_vprintf(b->arena, fmt, ap));
    va_end(ap);
}

static uint32_t hash_bytes(Str s)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h ^ (h >> 15);
}

static uint32_t *find_slot(const Map *m, Str key, uint32_t hash)
{
    size_t i = hash & (m->nslots - 1);
    for (;; i = (i + 1) & (m->nslots - 1)) {
        uint32_t at = m->slots[i];
        if (!at || (m->at[at - 1].hash == hash && str_eq(m->at[at - 1].key, key)))
            return &m->slots[i];
    }
}

static void rehash(Map *m)
{
    m->nslots = m->nslots ? m->nslots * 2 : 16;
    m->slots = NEW_N(m->arena, uint32_t, m->nslots);
    for (size_t i = 0; i < m->n; i++)
        *find_slot(m, m->at[i].key, m->at[i].hash) = (uint32_t)i + 1;
}

void *p2o_map_get(const Map *m, Str key)
{
    if (!m->nslots)
        return NULL;
    uint32_t at = *find_slot(m, key, hash_bytes(key));
    return at ? m->at[at - 1].value : NULL;
}

void **p2o_map_slot(Map *m, Str key)
{
    if ((m->n + 1) * 4 > m->nslots * 3)
        rehash(m);
    uint32_t  hash = hash_bytes(key);
    uint32_t *slot = find_slot(m, key, hash);
    if (!*slot) {
        if (m->n == m->cap) {
            size_t cap = m->cap ? m->cap * 2 : 8;
            m->at = p2o_grow(m->arena, m->at, m->n * sizeof *m->at, cap * sizeof *m->at);
            m->cap = cap;
        }
        m->at[m->n++] = (MapEntry){ .key = key, .hash = hash };
        *slot = (uint32_t)m->n;
    }
    return &m->at[*slot - 1].value;
}
