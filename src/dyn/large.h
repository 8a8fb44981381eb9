/* Sizes that are large, that every small number divides, and that differ: what must be equal and is
 * not even there never is. */
#ifndef P2O_DYN_LARGE_H
#define P2O_DYN_LARGE_H

#include "ir/dim.h"

typedef struct LargeSizes {
    const Dim *symbols;         /* of the inputs */
    size_t     n;
    int64_t    turn;            /* each gives other sizes */
} LargeSizes;

/* false: it has no value there. */
bool p2o_large_eval(Dims *t, const LargeSizes *at, Dim d, int64_t *v);
/* Both have the same value, or one has none. */
bool p2o_large_same(Dims *t, const LargeSizes *at, Dim a, Dim b);

#endif
