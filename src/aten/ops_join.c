/* Splitting and joining tensors, repeating and rolling them. */
#include "aten/lower.h"

const AtenOp p2o_ops_join[] = {
    { 0 },
};
