/* Numbers in arithmetic that were a dynamic size at capture.
 *
 * `x / 5` of a fixed capture with a length of 5 may have been `x / length`.  No type says so; a warning does. */
#ifndef P2O_DYN_NUMBERS_H
#define P2O_DYN_NUMBERS_H

#include "ir/bind.h"
#include "ir/program.h"

/* One warning for each size that was fixed at capture, at the first such number.  Calls are bound. */
void p2o_warn_numbers(const Program *p, Bindings *b);

#endif
