/* Resizing, sampling, boxes. */
#include "aten/lower.h"

const AtenOp p2o_ops_vision[] = {
    { 0 },
};
