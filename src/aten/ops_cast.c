/* Conversions: dtype, copies, and numbers out of tensors. */
#include "aten/lower.h"

const AtenOp p2o_ops_cast[] = {
    { 0 },
};
