/* Which sizes work: what operators, the capture's ranges and its guards need, against what the user asks for.
 *
 * PyTorch records a least size of 2, or more, where it merely did not try 1: such bounds (of the range itself,
 * and guards like `1 < s - 1` that raise it) need nothing and are passed over; guards stay in the metadata. */
#ifndef P2O_DYN_RANGE_H
#define P2O_DYN_RANGE_H

#include "ir/bind.h"
#include "ir/program.h"

/* The capture's ranges and guards become needs.  Input types are set.  false after diagnostics: a number that the
 * user asks for is not among what they allow. */
bool p2o_range_collect(Program *p, Bindings *b);

/* Types are inferred.  false after diagnostics: a size that the user asks for does not work. */
bool p2o_range_check(Program *p, Bindings *b);

/* From what to what the size works as far as is known; 0 and NO_UPPER where nothing is. */
void p2o_range_of(const Program *p, Bindings *b, Dim sym, int64_t *lo, int64_t *hi);

/* A need in the sizes' present names, "4 <= seq"; NULL where it holds at every size. */
const char *p2o_range_need(const Program *p, Bindings *b, const Need *n);

#endif
