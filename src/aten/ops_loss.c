/* Losses and distances. */
#include "aten/lower.h"

const AtenOp p2o_ops_loss[] = {
    { 0 },
};
