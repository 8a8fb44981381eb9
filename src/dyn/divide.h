/* A constant of several indices, made of constants of fewer.
 *
 *   split     a list that counts through a grid: index p is (p // w, p % w); axes without a say
 *   separate  f(i) + g(j), f(i) * g(j), their less or larger, roots and inverses of sums
 *
 * The parts are tables of their own, for which an expression is looked for as for any other; what
 * they make together is held against every element.  That a division gives all of them does not
 * make it the one that was meant: W//14 and W//16 are the same at small sizes.  So each is a
 * candidate (p2o_search_see), and another that costs as little refuses both. */
#ifndef P2O_DYN_DIVIDE_H
#define P2O_DYN_DIVIDE_H

#include "dyn/search.h"

/* The expression with each base replaced; NULL: one of them has no replacement. */
const Expr *p2o_expr_over(Arena *a, const Expr *e, const Expr *const *by);
const Expr *p2o_base(Arena *a, int base);

/* A part has the axes of the whole, some of which are 1: what its bases are among those of the
 * whole. */
void p2o_part_bases(Arena *a, const Tables *whole, const Tables *part, const Expr **by);
/* Keeps the axes whose bit is set; elsewhere the part is where element ref[k] of the whole is. */
bool p2o_part_cut(Search *s, unsigned axes, const uint64_t *ref, Tables *out);
/* The element of the whole. */
uint64_t p2o_part_element(const Table *whole, int rank, unsigned axes, uint64_t at, uint64_t ref);

/* Elements do not depend on some axes; false: on all. */
bool p2o_divide_idle(Search *s);
void p2o_divide_split(Search *s);
void p2o_divide_separate(Search *s);
/* Its axes look like two groups that make the elements separately; a look at some elements. */
bool p2o_looks_separate(const Tables *t);

#endif
