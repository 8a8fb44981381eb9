/* Two chains of calls that may do nothing, each from the same value to the same use of it, in two
 * captures: which of the calls are one, and which of them only one of the captures has.
 *
 * `x[:, a:b, c:d]` is a slice for each axis, less those that were whole; where all were, PyTorch
 * records an alias in their place. */
#ifndef P2O_DYN_CHAIN_H
#define P2O_DYN_CHAIN_H

#include "ir/program.h"

enum { MOST_IN_CHAIN = 64 };    /* real ones have a few; the work grows with the square */

typedef struct ChainStep {
    Call       *c;              /* of the first chain; NULL: it lacks the call */
    const Call *d;              /* of the second; NULL */
} ChainStep;

/* What it costs to take c and d for one call; negative: they are not. */
typedef int ChainCostFn(void *user, const Call *c, const Call *d);

typedef struct Chains {
    Call        *c[MOST_IN_CHAIN];
    const Call  *d[MOST_IN_CHAIN];
    size_t       nc, nd;
    ChainCostFn *cost;
    void        *user;
    ChainStep    steps[2 * MOST_IN_CHAIN];      /* in the order of execution */
    size_t       nstep;
} Chains;

/* A number in a call beyond what it works on: it does something at other sizes. */
bool p2o_has_numbers(const Call *c);

/* false: more than one way is as good, or the order of calls that were never seen together
 * matters. */
bool p2o_align_chains(Chains *x);

#endif
