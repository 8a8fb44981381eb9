/* Slices of bytes, text built in an arena, and a hash map from bytes to pointers.
 *
 * A Str is a view and need not end in NUL; names that live in the IR are NUL-terminated
 * `const char *` made by p2o_str_dup or p2o_printf. */
#ifndef P2O_BASE_STR_H
#define P2O_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"

#if defined(__GNUC__)
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define PRINTF_LIKE(fmt, first)
#endif

typedef struct Str {
    const char *p;
    size_t      n;
} Str;

#define STR(literal) ((Str){ (literal), sizeof(literal) - 1 })
#define STR_ARG(s)   (int)(s).n, (s).p              /* for "%.*s" */

static inline Str  str_of(const char *z) { return (Str){ z, strlen(z) }; }

static inline bool str_eq(Str a, Str b)
{
    return a.n == b.n && (a.n == 0 || !memcmp(a.p, b.p, a.n));
}

static inline bool str_is(Str a, const char *z) { return str_eq(a, str_of(z)); }
static inline bool same(const char *a, const char *b) { return strcmp(a, b) == 0; }

bool        p2o_str_starts(Str s, const char *prefix);
bool        p2o_str_ends(Str s, const char *suffix);
/* As a shell's: each * stands for any characters. */
bool        p2o_str_like(Str s, Str pattern);
/* The part before the first `c`; *rest gets what follows it.  No `c`: all of s, rest empty. */
Str         p2o_str_cut(Str s, char c, Str *rest);
Str         p2o_str_trim(Str s);
const char *p2o_str_dup(Arena *a, Str s);
const char *p2o_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *p2o_vprintf(Arena *a, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* Text that grows; at[n] is always NUL once something was put. */
typedef struct Buf {
    Arena *arena;
    char  *at;
    size_t n, cap;
} Buf;

void p2o_put(Buf *b, const void *p, size_t n);
void p2o_puts(Buf *b, const char *z);
void p2o_putf(Buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline Str buf_str(const Buf *b) { return (Str){ b->at ? b->at : "", b->n }; }

/* Hash map in insertion order: entries [0, n) may be walked, and order never depends on hashing. */
typedef struct MapEntry {
    Str      key;        /* bytes are the caller's and must outlive the map */
    void    *value;
    uint32_t hash;
} MapEntry;

typedef struct Map {
    Arena    *arena;
    MapEntry *at;
    size_t    n, cap;
    uint32_t *slots;     /* index + 1 into at; 0 is free */
    size_t    nslots;
} Map;

void  *p2o_map_get(const Map *m, Str key);                  /* NULL when absent */
void **p2o_map_slot(Map *m, Str key);                       /* added with NULL when absent */
static inline void map_put(Map *m, Str key, void *value) { *p2o_map_slot(m, key) = value; }

#endif
