/* Whether what was found of sizes holds: at large sizes, which no capture had, and in the captures
 * that nothing was fitted to. */
#ifndef P2O_DYN_HELD_H
#define P2O_DYN_HELD_H

#include "dyn/demand.h"
#include "dyn/site.h"

typedef struct Found {
    const Lineup *lineup;
    Program      *prog;
    Bindings     *bind;
    const Sites  *sites;
    const Dim    *symbols;              /* of the inputs */
    size_t        nsymbol;
    const Solved *solved;               /* what sizes were taken for that a demand tells */
} Found;

/* All are false after diagnostics.  Of sizes that were settled: no operator needs what is never
 * true, no size turns negative, and every check has the numbers that were found. */
bool p2o_found_holds(const Found *f);
/* Sizes that the first capture computes are the numbers that checks have. */
bool p2o_claims_hold(const Found *f);
/* What the first capture has as a plain number is that in checks, too: else Python computed it from
 * a size, and PyTorch did not notice. */
bool p2o_literals_hold(const Found *f);

#endif
