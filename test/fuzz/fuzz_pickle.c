/* Any bytes as a pickle: no crash, and a tree whose every string lies in the bytes. */
#include <stdlib.h>

#include "base/vec.h"
#include "format/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Walk {
    Arena        *arena;
    Map           seen;                 /* by address: trees share, and may hold themselves */
    VEC(Pickle *) todo;
} Walk;

static void visit(Walk *w, Pickle *p)
{
    Pickle **key = NEW(w->arena, Pickle *);
    *key = p;
    void **slot = p2o_map_slot(&w->seen, (Str){ (const char *)key, sizeof p });
    if (*slot)
        return;
    *slot = p;
    VEC_PUSH(w->arena, &w->todo, p);
}

static void walk_value(Walk *w, const Pickle *p, Str bytes)
{
    unsigned sum = 0;
    switch (p->kind) {
    case PK_STR: case PK_BYTES: case PK_BIG_INT:
        for (size_t i = 0; i < p->s.n; i++)
            sum += (unsigned char)p->s.p[i];
        if (p->s.n > bytes.n || sum > 255 * bytes.n)
            abort();
        break;
    case PK_TUPLE: case PK_LIST: case PK_SET: case PK_DICT:
        if (p->kind == PK_DICT && p->n % 2)
            abort();
        for (size_t i = 0; i < p->n; i++)
            visit(w, p->items[i]);
        break;
    case PK_CALL: case PK_OBJECT:
        visit(w, p->callee);
        visit(w, p->args);
        if (p->state)
            visit(w, p->state);
        break;
    case PK_PERSISTENT:
        visit(w, p->args);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena  *a = p2o_arena_new(NULL, NULL);
    Diags  *d = p2o_diags_new(a, NULL, NULL);
    Str     bytes = { (const char *)data, size };
    Pickle *p = p2o_pickle_parse(d, bytes, "input");
    Walk    w = { .arena = a, .seen = { .arena = a } };

    if ((p == NULL) != (p2o_diags_errors(d) == 1))
        abort();
    if (p)
        visit(&w, p);
    while (w.todo.n)
        walk_value(&w, w.todo.at[--w.todo.n], bytes);
    p2o_arena_free(a);
    return 0;
}
