/* What ONNX Runtime's CPU provider can compute: the rows of kernels.def. */
#ifndef P2O_ONNX_KERNELS_H
#define P2O_ONNX_KERNELS_H

#include "onnx/graph.h"

/* false: no kernel at this opset, whatever the types. */
bool  p2o_kernel_exists(OnnxOp op, int opset);
/* The type in which `op` can take its input i of type t: t itself, else a wider type that holds all
 * its values and in which arithmetic agrees with t's after a cast back.  DT_NONE: there is none. */
DType p2o_kernel_type(OnnxOp op, int opset, int i, DType t);

#endif
