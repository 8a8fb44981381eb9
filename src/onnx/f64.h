/* Functions in float64 that ONNX Runtime's CPU provider has in float32 only, from those it has:
 * errors of a few units in the last place. */
#ifndef P2O_ONNX_F64_H
#define P2O_ONNX_F64_H

#include "onnx/build.h"

/* n computed by other nodes when it is such a function of a float64; NULL: it is not. */
Value *p2o_f64_build(Builder *b, const Node *n);
/* exp(a^2) erfc(a) for a >= 0 */
Value *p2o_f64_erfcx(Builder *b, Value *a);

#endif
