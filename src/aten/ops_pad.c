/* Padding, windows and their inverse. */
#include "aten/lower.h"

const AtenOp p2o_ops_pad[] = {
    { 0 },
};
