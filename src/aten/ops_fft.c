/* Fourier transforms and complex numbers as real pairs. */
#include "aten/lower.h"

const AtenOp p2o_ops_fft[] = {
    { 0 },
};
