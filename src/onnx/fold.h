/* Constant folding: what a node over small constants yields. */
#ifndef P2O_ONNX_FOLD_H
#define P2O_ONNX_FOLD_H

#include "onnx/graph.h"

/* The value of n's one output, bit for bit what ONNX Runtime computes; NULL when an input is not
 * constant, when one or the result has more than 1 kB, or when the operator is not followed.  A
 * weight, which has a name and bytes in the input file, counts only as a single number. */
const Tensor *p2o_fold(const Node *n);

#endif
