#include "dyn/allowed.h"

#include "dyn/seen.h"

enum { FEWEST_PROBES = 12 };            /* to be left, to tell readings apart */

_Static_assert(NPROBE <= 64, "a bit each");

typedef struct NeedKey {
    Dim      a, b;
    uint64_t kind;              /* a NeedKind, as wide as the others: no padding */
} NeedKey;

void p2o_allowed_start(Allowed *a, Arena *arena, Bindings *b, const Dim *symbols, size_t n)
{
    *a = (Allowed){ .arena = arena, .bind = b, .symbols = symbols, .n = n,
                    .needs = { .arena = arena } };
}

static bool size_at(const Allowed *a, Dim d, int i, int64_t *v)
{
    Dims *t = p2o_bindings_dims(a->bind);
    return a->moved ? p2o_probe_at(t, a->moved, d, i, v)
                    : p2o_probe(t, a->symbols, a->n, d, i, v);
}

/* A probe that was moved to nowhere is none. */
static bool is_probe(const Allowed *a, int i)
{
    for (size_t k = 0; a->moved && k < a->moved->n; k++)
        if (!a->moved->at[k][i])
            return false;
    return true;
}

/* Where it holds, or its sizes have no value. */
static uint64_t probes_of_need(const Allowed *a, const NeedKey *n)
{
    uint64_t holds = 0;
    int64_t  x, y;
    for (int i = 0; i < NPROBE; i++) {
        bool known = size_at(a, n->a, i, &x) && size_at(a, n->b, i, &y);
        if (!known || (n->kind == NEED_EQ ? x == y : x <= y))
            holds |= (uint64_t)1 << i;
    }
    return holds;
}

static uint64_t probes_of(Allowed *a, const Need *n)
{
    NeedKey *key = NEW(a->arena, NeedKey);
    *key = (NeedKey){ p2o_resolve(a->bind, n->a), p2o_resolve(a->bind, n->b), n->kind };
    void **slot = p2o_map_slot(&a->needs, (Str){ (const char *)key, sizeof *key });
    if (!*slot) {
        uint64_t *holds = NEW(a->arena, uint64_t);
        *holds = probes_of_need(a, key);
        *slot = holds;
    }
    return *(const uint64_t *)*slot;
}

/* How many probes are left where this kind of needs holds. */
static int keep_needed(Allowed *a, NeedKind kind)
{
    uint64_t holds = UINT64_MAX;
    int      left = 0;
    for (size_t k = 0; k < p2o_nneed(a->bind); k++)
        if (p2o_need_at(a->bind, k)->kind == kind)
            holds &= probes_of(a, p2o_need_at(a->bind, k));
    for (int i = 0; i < NPROBE; i++) {
        a->at[i] &= holds >> i & 1;
        left += a->at[i];
    }
    return left;
}

/* Readings that differ only where no capture had such a remainder, or sizes of 1, do not differ
 * where the file is claimed to be right.  Probes must be left to tell others apart. */
static void keep_seen(Allowed *a, Dim sym)
{
    bool    kept[NPROBE];
    int     n = 0;
    int64_t by = 1, rest = 0, v, least = p2o_seen_least(a->bind, sym);
    if (!p2o_seen_remainder(a->bind, sym, &by, &rest))
        by = 1;
    for (int i = 0; i < NPROBE; i++) {
        kept[i] = a->at[i] && size_at(a, sym, i, &v) && v >= least && (by == 1 || v % by == rest);
        n += kept[i];
    }
    if (n >= FEWEST_PROBES)
        memcpy(a->at, kept, sizeof kept);
}

void p2o_allowed_find(Allowed *a)
{
    bool equal[NPROBE];
    for (int i = 0; i < NPROBE; i++)
        a->at[i] = is_probe(a, i);
    keep_needed(a, NEED_EQ);
    memcpy(equal, a->at, sizeof equal);
    if (keep_needed(a, NEED_LE) < FEWEST_PROBES)
        memcpy(a->at, equal, sizeof equal);
    for (size_t i = 0; i < a->n; i++)
        keep_seen(a, a->symbols[i]);
}
