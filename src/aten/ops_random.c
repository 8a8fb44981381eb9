/* Random numbers: the right distribution and shape, not PyTorch's numbers. */
#include "aten/lower.h"

const AtenOp p2o_ops_random[] = {
    { 0 },
};
