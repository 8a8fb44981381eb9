/* Whether a number is spelled in the line of source that made a call.
 *
 * A capture keeps the text of that line.  It is one term of what a number costs (dyn/verdict),
 * nothing more. */
#ifndef P2O_DYN_SPELL_H
#define P2O_DYN_SPELL_H

#include "base/diag.h"

typedef enum Spelled {
    SPELLED_UNKNOWN,            /* the line is not known */
    SPELLED_NO,
    SPELLED_SHARED,             /* the line has it, but not as often as its calls, axes counted */
    SPELLED_YES
} Spelled;

/* How often the number stands in the line; an axis, as in x.shape[1], does not count.  -1: the text
 * is not known. */
int p2o_spelled_times(const Place *at, double number);
/* The same, but not where it is a part of arithmetic: the 1 of x[:, n - 1]. */
int p2o_spelled_alone(const Place *at, double number);
/* The same, where it is spelled as a float: 1.0, not 1. */
int p2o_spelled_float(const Place *at, double number);

#endif
