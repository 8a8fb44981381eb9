/* What captures at fixed sizes saw of the sizes, and what is claimed of others.
 *
 * A Python branch that no capture took is not in the program.  So the interval of each size that
 * was seen is said; and what every capture had in common (all sizes odd, or multiples of 4, one
 * always less than another, none of 1) is not claimed to be otherwise: it is in the notes and in
 * the file's metadata. */
#ifndef P2O_DYN_SEEN_H
#define P2O_DYN_SEEN_H

#include "ir/bind.h"
#include "ir/program.h"

/* The least size that is claimed. */
int64_t p2o_seen_least(Bindings *b, Dim sym);
/* All captures had sizes that leave the remainder `rest` by `by`, 2 or more; false: they differ. */
bool p2o_seen_remainder(Bindings *b, Dim sym, int64_t *by, int64_t *rest);
void p2o_claim_seen(Program *p, Bindings *b, const Dim *symbols, size_t n);

#endif
