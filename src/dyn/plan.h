/* Sizes in general position: where to take captures so that no two plausible expressions agree on
 * all of them.
 *
 * Three captures, far apart, with all remainders of small numbers among them, and some to check
 * with: small sizes, the smallest, powers of two, round ones, and sizes of 1, where models and
 * PyTorch often do otherwise.  Which of the sizes at hand are taken is decided by
 * enumerating the grammar: as few pairs of cheap expressions as possible have the same values in
 * all captures. */
#ifndef P2O_DYN_PLAN_H
#define P2O_DYN_PLAN_H

#include "ir/dim.h"

enum {
    PLAN_CAPTURES = 3,
    PLAN_CHECKS = 8,
    PLAN_MOST = 16,
    PLAN_ONES = 9,              /* all of them, and two for each bit of their numbers */
};

typedef struct Plan {
    int64_t captures[PLAN_CAPTURES][PLAN_MOST];         /* of each symbol */
    int64_t checks[PLAN_CHECKS][PLAN_MOST];
    int64_t ones[PLAN_ONES][PLAN_MOST];                 /* further checks, with sizes of 1 */
    int     nones;                                      /* of them; 0 where no size may be 1 */
} Plan;

/* For n symbols, at most PLAN_MOST; their ranges are those of the table. */
void p2o_plan_sizes(Dims *t, const Dim *symbols, int n, Plan *out);

#endif
