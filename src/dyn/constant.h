/* Constants that forward() computed from sizes in Python: recognised, and computed again.
 *
 * A mask or a table of positions that is made of Python numbers is a constant in the capture.  Its
 * elements are expressions of their indices and of its sizes, in the same grammar as all other
 * numbers: each element is one more value that the expression has to give.  Its sizes become sites
 * like any other. */
#ifndef P2O_DYN_CONSTANT_H
#define P2O_DYN_CONSTANT_H

#include "dyn/site.h"

/* Calls that make them take the place of constants that differ between captures.  false after a
 * diagnostic: one that no expression gives. */
bool p2o_constants(const Lineup *l, Sites *s);
/* Of a capture with dynamic sizes: they are the same in all checks.  false after a diagnostic. */
bool p2o_constants_hold(const Lineup *l);

#endif
