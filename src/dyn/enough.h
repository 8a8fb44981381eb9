/* Do the captures tell enough of a constant to believe an expression of its elements?
 *
 * It has to be shorter than the elements that it gives, the captures have to differ, and no size in
 * it may stand for two sizes of the inputs that were equal in all of them. */
#ifndef P2O_DYN_ENOUGH_H
#define P2O_DYN_ENOUGH_H

#include "dyn/table.h"

/* Bits in all elements: what an expression has to be shorter than.  `two`: they are yes or no. */
double p2o_tables_bits(const Tables *t, bool two);
/* Sizes of the inputs that were equal in all captures: which of them is meant? */
bool   p2o_tables_is_unclear(const Tables *t, const Expr *e);
/* Few captures, or small ones, say little: i % 7 is i there, and (w - h)//2 a number. */
bool   p2o_tables_are_enough(const Tables *t, const Expr *e);
/* Captures whose sizes differ. */
int    p2o_tables_different(const Tables *t);

#endif
