/* A float that follows sizes, as calls that compute it. */
#ifndef P2O_DYN_FLOAT_H
#define P2O_DYN_FLOAT_H

#include "aten/ops.h"
#include "dyn/reading.h"

/* Puts calls ahead of `before` in the main body and lets the argument be their result.  false: no
 * operators compute it, or the call is in another body. */
bool p2o_float_calls(Ops *o, Program *p, const Call *before, Arg *x, const Reading *r);

#endif
