/* What ONNX Runtime's CPU provider can compute: the rows of kernels.def. */
#ifndef P2O_ONNX_KERNELS_H
#define P2O_ONNX_KERNELS_H

#include "onnx/graph.h"

/* false: no kernel at the graph's opset, whatever the types. */
bool  p2o_kernel_exists(const Node *n);
/* The type in which n can take its input i: that input's own, else a wider type that holds all its
 * values and in which arithmetic agrees with its own after a cast back.  DT_NONE: there is none. */
DType p2o_kernel_type(const Node *n, int i);

#endif
