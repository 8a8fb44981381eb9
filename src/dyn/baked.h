/* Tensors and numbers that were computed from a size at capture: recognised, and computed again.
 *
 * A mask or a table of positions made in Python is a constant in the capture.  When it differs between
 * captures it must follow a size; where its pattern shows how (one value, counting, a triangle, a
 * diagonal) calls that make it take its place. */
#ifndef P2O_DYN_BAKED_H
#define P2O_DYN_BAKED_H

#include "aten/ops.h"
#include "ir/bind.h"

/* v[k] is the constant in capture k.  Puts calls that compute it at the head of p's main body and lets
 * `first`, the constant's Var there, be their result.  false: no pattern fits. */
bool p2o_baked_tensor(Ops *o, Program *p, Bindings *b, Var *first, const Tensor *const *v, int n);

/* A float that was v[k] in capture k: a number times n, 1/n, sqrt(n) or 1/sqrt(n) for one of the inputs'
 * sizes.  Puts calls before position *at of the main body, moving it on.  false: nothing fits, or several. */
bool p2o_baked_float(Ops *o, Program *p, Bindings *b, const double *v, int n, size_t *at, Arg *out);

#endif
