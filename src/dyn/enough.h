/* Do the captures tell enough of a constant to believe an expression of its elements?
 *
 * It has to be shorter than the elements that it gives, and the captures have to differ in the
 * sizes that it is made of; no size in it may stand for two sizes of the inputs that were equal in
 * all of them, and no number for what became of a size. */
#ifndef P2O_DYN_ENOUGH_H
#define P2O_DYN_ENOUGH_H

#include "dyn/table.h"

/* Bits in all elements: what an expression has to be shorter than.  `two`: they are yes or no. */
double p2o_tables_bits(const Tables *t, bool two);
/* Sizes of the inputs that were equal in all captures: which of them is meant? */
bool   p2o_tables_is_unclear(const Tables *t, const Expr *e);
/* Two odd sizes do not tell n//2 from (n - 1)//2. */
enum { FEWEST_CAPTURES = 3 };
/* Captures whose sizes differ. */
int    p2o_tables_different(const Tables *t);
/* Few captures, or small ones, say little: i % 7 is i there, and (w - h)//2 a number.  `longer`: of
 * an expression beyond the grammar of all numbers, they say nothing. */
bool   p2o_tables_are_enough(const Tables *t, const Expr *e, bool longer);
/* No cheap expression of a size was one of its numbers in all captures: 3 where t//4 was 3. */
bool   p2o_tables_numbers_are_told(const Tables *t, const Expr *e);

#endif
