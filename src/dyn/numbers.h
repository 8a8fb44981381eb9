/* Numbers in arithmetic that may follow a size which the capture fixed.
 *
 * `x / 5` of a fixed capture with a length of 5 may have been `x / length`.  No type says so, but the line of source does:
 * a number that is written in it is one; one that is not, or that stands beside a look at a size, may be either. */
#ifndef P2O_DYN_NUMBERS_H
#define P2O_DYN_NUMBERS_H

#include "ir/bind.h"
#include "ir/program.h"

/* False, reported, when a number may be either.  Where it is written, or where the capture has no source lines, a warning for
 * each size at the first number that equals it.  Calls are bound. */
bool p2o_check_numbers(const Program *p, Bindings *b);

#endif
