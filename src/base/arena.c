/* Chunks in a list, the newest first.  A chunk doubles the one before it up to 4 MB; a request
 * larger than that gets a chunk of its own size.  Rewinding frees whole chunks. */
#include "base/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define RED_ZONE 32
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define RED_ZONE 0
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 16, FIRST_CHUNK = 64 * 1024, LAST_CHUNK = 4 * 1024 * 1024 };

typedef struct Chunk {
    struct Chunk *prev;
    size_t        cap, used;
    _Alignas(16) unsigned char data[];
} Chunk;

typedef struct Deferred {
    struct Deferred *next;
    void (*fn)(void *arg);
    void *arg;
} Deferred;

struct Arena {
    AllocFn *alloc;
    void    *user;
    Chunk   *top;
    Deferred *deferred;
    bool     guarded;
    jmp_buf  guard;
};

static void *libc_alloc(void *user, void *p, size_t size)
{
    (void)user;
    if (size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, size);
}

Arena *p2o_arena_new(AllocFn *alloc, void *user)
{
    if (!alloc)
        alloc = libc_alloc;
    Arena *a = alloc(user, NULL, sizeof *a);
    if (!a)
        return NULL;
    memset(a, 0, sizeof *a);
    a->alloc = alloc;
    a->user = user;
    return a;
}

static void drop_chunk(Arena *a)
{
    Chunk *c = a->top;
    a->top = c->prev;
    UNPOISON(c->data, c->cap);
    a->alloc(a->user, c, 0);
}

void p2o_arena_free(Arena *a)
{
    if (!a)
        return;
    for (Deferred *d = a->deferred; d; d = d->next)
        d->fn(d->arg);
    while (a->top)
        drop_chunk(a);
    a->alloc(a->user, a, 0);
}

void p2o_arena_defer(Arena *a, void (*fn)(void *arg), void *arg)
{
    Deferred *d = NEW(a, Deferred);
    *d = (Deferred){ .next = a->deferred, .fn = fn, .arg = arg };
    a->deferred = d;
}

jmp_buf *p2o_arena_guard(Arena *a)
{
    a->guarded = true;
    return &a->guard;
}

static void exhausted(Arena *a)
{
    if (a->guarded)
        longjmp(a->guard, 1);
    abort();
}

static void add_chunk(Arena *a, size_t need)
{
    size_t cap = a->top ? a->top->cap * 2 : FIRST_CHUNK;
    if (cap > LAST_CHUNK)
        cap = LAST_CHUNK;
    if (cap < need)
        cap = need;
    if (cap > SIZE_MAX - sizeof(Chunk))
        exhausted(a);
    Chunk *c = a->alloc(a->user, NULL, sizeof *c + cap);
    if (!c)
        exhausted(a);
    c->prev = a->top;
    c->cap = cap;
    c->used = 0;
    POISON(c->data, cap);
    a->top = c;
}

void *p2o_alloc(Arena *a, size_t nbytes)
{
    if (nbytes > SIZE_MAX / 2)
        exhausted(a);
    size_t need = ((nbytes + ALIGN - 1) & ~(size_t)(ALIGN - 1)) + RED_ZONE;
    if (!a->top || a->top->cap - a->top->used < need)
        add_chunk(a, need);
    unsigned char *p = a->top->data + a->top->used;
    a->top->used += need;
    UNPOISON(p, nbytes);
    memset(p, 0, nbytes);
    return p;
}

void *p2o_alloc_n(Arena *a, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / 2 / size)
        exhausted(a);
    return p2o_alloc(a, n * size);
}

void *p2o_grow(Arena *a, void *p, size_t old_bytes, size_t new_bytes)
{
    assert(new_bytes >= old_bytes);
    void *q = p2o_alloc(a, new_bytes);
    if (old_bytes)
        memcpy(q, p, old_bytes);
    return q;
}

ArenaMark p2o_arena_mark(const Arena *a)
{
    return (ArenaMark){ .chunk = a->top, .used = a->top ? a->top->used : 0 };
}

void p2o_arena_rewind(Arena *a, ArenaMark m)
{
    while (a->top != m.chunk)
        drop_chunk(a);
    if (a->top) {
        POISON(a->top->data + m.used, a->top->cap - m.used);
        a->top->used = m.used;
    }
}
