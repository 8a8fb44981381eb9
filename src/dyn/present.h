/* Sizes of all of a program's tensors, by what they were in the first capture: what a number that
 * was the same may be, beside expressions of the inputs' sizes. */
#ifndef P2O_DYN_PRESENT_H
#define P2O_DYN_PRESENT_H

#include "base/vec.h"
#include "dyn/grammar.h"
#include "ir/program.h"

typedef struct PresentSize {
    const Bases *as;            /* of it alone */
    size_t       made;          /* by this call of the program */
} PresentSize;

typedef struct Present {        /* sizes that were the same in the first capture */
    VEC(PresentSize) list;
} Present;

typedef struct PresentSizes {
    const Program *prog;
    Bindings      *bind;
    const Dim     *symbols;     /* of the inputs */
    size_t         nsymbol;
    Map            by_first;    /* int64_t -> Present * */
    Map            bases;       /* Dim -> Bases *: large, and the same in every round of settling */
    size_t         n;           /* of different sizes */
} PresentSizes;

/* For these symbols, which stay where they are. */
void p2o_present_start(PresentSizes *p, const Program *prog, Bindings *b, const Dim *symbols,
                       size_t n);
/* As sizes are known now. */
void p2o_present_find(PresentSizes *p);
/* NULL: none. */
const Present *p2o_present_as(const PresentSizes *p, int64_t first);

#endif
