/* The expression that gives a constant's elements.
 *
 * Forms of indices and sizes are enumerated in layers, each valued at a handful of elements: the
 * grammar of all numbers first; then whole forms of two steps; then cosines, powers and gaussians
 * of them.  A form need only be an affine function away from the elements (dyn/fit), or be so on
 * one side of a condition, or between two bounds.  What fits there is held against every element of
 * every capture.  The cheapest is taken, unless another that costs little more differs
 * elsewhere. */
#ifndef P2O_DYN_ELEMENT_H
#define P2O_DYN_ELEMENT_H

#include "dyn/fit.h"

typedef struct Element {
    const Expr *expr;           /* over the bases of the tables */
    double      bits;
    bool        share;          /* divided by the sum of all elements */
} Element;

/* In the arena; false: none, or not one alone. */
bool p2o_element_find(Arena *a, const Tables *t, const Dim *symbols, size_t nsymbol, Element *out);

/* The expression has whole parts only: no fraction, root or rounding. */
bool p2o_expr_is_whole(const Expr *e);

#endif
