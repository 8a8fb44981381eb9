/* Matrices in batches, as the lowerings of linear algebra see them: [all, rows, columns] of
 * float64, which leaves results at least as exact as PyTorch's. */
#ifndef P2O_ATEN_MATRIX_H
#define P2O_ATEN_MATRIX_H

#include "aten/lower.h"

/* Rules. */
bool  must_be_squares(Infer *in, const Call *c, Type x);
static inline Shape batch_of(Shape s) { return slice_shape(s, 0, s.rank - 2); }
Shape matrices_of(Infer *in, Shape batch, Dim rows, Dim columns);

/* Lowerings. */
Shape  shape_of(Lower *lo, int n, const Dim *at);
Value *as_one_batch(Lower *lo, Value *x);
Value *as_batches(Lower *lo, Value *x, const Call *c, int out); /* back to the i-th result's type */
Value *gather_along(Lower *lo, Value *x, int axis, Value *i);
Value *identity_matrix(Lower *lo, Dim n);                       /* [n, n] */
Value *inverse_of(Lower *lo, Value *a);
/* [all, min(m, n)], the largest first (ops_singular.c). */
Value *singular_values(Lower *lo, Value *a);
/* x of a x = b for a triangular a, whose other triangle is not read; with `unit` its diagonal is
 * not either. */
Value *triangular_solution(Lower *lo, Value *a, Value *b, bool upper, bool unit);
/* int32: 0, or the first of a matrix's pivots [all, n] that is bad, counted from 1. */
Value *first_bad(Lower *lo, Value *bad, Shape batch);

/* a and b of any batches, expanded to the one they have in common; `shape` is b's then. */
typedef struct Systems {
    Value *a, *b;
    Shape  shape;
} Systems;
Systems systems_of(Lower *lo, Value *a, Value *b, bool left);           /* x a = b is turned over */

#endif
