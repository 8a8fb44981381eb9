/* Special functions: those that need more than one ONNX operator to be exact enough. */
#include "aten/lower.h"

const AtenOp p2o_ops_special[] = {
    { 0 },
};
