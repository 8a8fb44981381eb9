/* Sizes that hold only where a need holds: b*n = b*u*u says what u is, at squares, and that the
 * model works at no others.
 *
 * An operator's demand with one unknown in it, on which one side depends and rises throughout, has
 * one solution at most at any sizes.  Whatever reading solves it is what the model had, wherever
 * PyTorch runs: readings have to agree, and what follows has to hold, at such sizes only.  That
 * several open sizes are the one unknown is evidence: they were equal in all captures, which have
 * to be of many kinds, and readings that differ at other sizes of the demand are rivals as ever. */
#ifndef P2O_DYN_DEMAND_H
#define P2O_DYN_DEMAND_H

#include "dyn/allowed.h"

enum { MAX_UNKNOWNS = 8 };

typedef struct Unknowns {               /* open sizes that were equal in all captures */
    Dim at[MAX_UNKNOWNS];
    int n;
} Unknowns;

typedef struct Solved {                 /* probes at which demands have solutions */
    Bindings           *bind;
    const Demand       *demand;
    Unknowns            of;
    Probes              probes;
    int64_t             unknown[NPROBE];        /* what solves this one there */
    Allowed             allowed;
    const struct Solved *before;        /* demands that hold there as well; NULL: none */
} Solved;

/* The first demand on the open size that tells it at any sizes; NULL: none does. */
const Demand *p2o_demand_on(Bindings *b, Dim open, Unknowns *of);
/* With x for the unknown it demands nothing, at sizes that all small numbers divide at least. */
bool p2o_demand_is_idle(Bindings *b, const Demand *d, const Unknowns *of, const Dim *symbols,
                        size_t n, Dim x);
/* The probes of a demand, with those before it; NULL: too few sizes meet them. */
Solved *p2o_demand_solve(Arena *a, Bindings *b, const Demand *d, const Unknowns *of,
                         const Dim *symbols, size_t n, const Solved *before);
/* x = y at all of its probes. */
bool p2o_solved_has(const Solved *s, Dim x, Dim y);

#endif
