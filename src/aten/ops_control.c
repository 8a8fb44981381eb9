/* Control flow: higher-order operators. */
#include "aten/lower.h"

const AtenOp p2o_ops_control[] = {
    { 0 },
};
