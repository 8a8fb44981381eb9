/* Bump allocator: everything a conversion builds lives in one arena and is freed with it.
 *
 * Memory is zeroed and aligned to 16.  Allocation never returns NULL: exhaustion longjmps to the
 * point set by p2o_arena_guard, the one jump in the program.  In sanitizer builds poisoned red
 * zones lie between allocations, so overruns inside the arena are seen too. */
#ifndef P2O_BASE_ARENA_H
#define P2O_BASE_ARENA_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

/* realloc-shaped: p NULL allocates, size 0 frees, NULL result means no memory. */
typedef void *AllocFn(void *user, void *p, size_t size);

typedef struct ArenaMark {
    void  *chunk;
    size_t used;
} ArenaMark;

Arena *p2o_arena_new(AllocFn *alloc, void *user);   /* alloc NULL: libc; NULL result: no memory */
void   p2o_arena_free(Arena *a);

/* setjmp on the result before allocating; without it exhaustion aborts. */
jmp_buf *p2o_arena_guard(Arena *a);

/* fn(arg) is called when the arena is freed, last first: how files are closed whatever happened. */
void p2o_arena_defer(Arena *a, void (*fn)(void *arg), void *arg);

void *p2o_alloc(Arena *a, size_t nbytes);
void *p2o_alloc_n(Arena *a, size_t n, size_t size);             /* n * size, overflow checked */
void *p2o_grow(Arena *a, void *p, size_t old_bytes, size_t new_bytes);

/* Everything allocated after the mark is given back. */
ArenaMark p2o_arena_mark(const Arena *a);
void      p2o_arena_rewind(Arena *a, ArenaMark m);

#define NEW(arena, T)         ((T *)p2o_alloc((arena), sizeof(T)))
#define NEW_N(arena, T, n)    ((T *)p2o_alloc_n((arena), (n), sizeof(T)))

#endif
