/* Sorting, searching, counting. */
#include "aten/lower.h"

const AtenOp p2o_ops_sort[] = {
    { 0 },
};
