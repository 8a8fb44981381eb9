/* What the line of source that made a call shows of its numbers.
 *
 * A capture keeps the text of that line.  A number that is written there was chosen by a person; one that is not was
 * computed, perhaps from a size. */
#ifndef P2O_DYN_SOURCE_H
#define P2O_DYN_SOURCE_H

#include "base/diag.h"
#include "ir/dim.h"

/* Whether the number stands in the line, with either sign.  CANNOT_TELL: no line is known, or part of a statement. */
Answer p2o_source_spells(const Place *at, double number);
/* Whether all numbers of the expression stand in the line. */
Answer p2o_source_spells_all(const Place *at, Dims *t, Dim expr);
/* The line asks a tensor for its sizes. */
bool   p2o_source_reads_sizes(const Place *at);

#endif
