/* What the line of source that made a call shows of its numbers.
 *
 * A capture keeps the text of that line.  A number that is written there was chosen by a person; one that is not was
 * computed, perhaps from a size. */
#ifndef P2O_DYN_SOURCE_H
#define P2O_DYN_SOURCE_H

#include "base/diag.h"
#include "ir/dim.h"

/* The text of a whole statement is there: what it does not show, it does not say. */
bool p2o_source_known(const Place *at);
/* The number stands in the line, with either sign. */
bool p2o_source_spells(const Place *at, double number);
/* It does so in arithmetic, not only as an argument or an item of one. */
bool p2o_source_computes(const Place *at, double number);
/* The line calls the operator: it is not hidden in a function that the line calls. */
bool p2o_source_shows(const Place *at, const char *target);
/* How often the number is an argument or an item of one there. */
int  p2o_source_items(const Place *at, const char *target, double number);
/* It computes in the operator's arguments there: x[:, : n // 2]. */
bool p2o_source_computes_args(const Place *at, const char *target);
/* One of its arguments, or an item of one, is an attribute there: self.heads. */
bool p2o_source_has_attribute(const Place *at, const char *target);
/* The line asks a tensor for its sizes. */
bool p2o_source_reads_sizes(const Place *at);

#endif
