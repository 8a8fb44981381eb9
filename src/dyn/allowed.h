/* The probes at which a model has a say: where what it needs holds, and where the file is claimed.
 *
 * Readings that differ elsewhere only do not differ.  Needs are said anew in every round of
 * settling, and by every call that has them: each is looked at once. */
#ifndef P2O_DYN_ALLOWED_H
#define P2O_DYN_ALLOWED_H

#include "base/vec.h"
#include "dyn/grammar.h"

typedef struct Allowed {
    Arena     *arena;
    Bindings  *bind;
    const Dim *symbols;         /* of the inputs */
    size_t     n;
    const Probes *moved;        /* NULL: the usual probes */
    Map        needs;           /* NeedKey -> uint64_t *: the probes where it holds, as bits */
    bool       at[NPROBE];
} Allowed;

/* For these symbols, which stay where they are. */
void p2o_allowed_start(Allowed *a, Arena *arena, Bindings *b, const Dim *symbols, size_t n);
void p2o_allowed_find(Allowed *a);

#endif
