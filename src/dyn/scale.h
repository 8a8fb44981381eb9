/* Floats with numbers of their own: c*g, c + g, a*g + c, c*g**p, exp(c*g), exp(a*g + c), log(c*g),
 * where g is a product of sizes (dyn/product) and a and c are any numbers, and these cut off by min
 * or max.
 *
 * A float that was computed has 52 bits in every capture, so that numbers which nobody could guess
 * are found from the captures themselves.  They cost all their bits, and pay for themselves only:
 * what is left, how the values change, has to pay for the rest. */
#ifndef P2O_DYN_SCALE_H
#define P2O_DYN_SCALE_H

#include "dyn/product.h"

/* `held`: what of the bits in the captures counts for the expression, its own numbers among
 * them. */
typedef void ScaleFn(void *user, const Expr *e, double bits, double held);

/* Calls fn with what gives the values in all captures; the expressions stay. */
void p2o_scales(Products *t, Arena *a, const Bases *b, const double *want, ScaleFn *fn, void *user);

#endif
