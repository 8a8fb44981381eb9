/* Shapes: lists of Dims, and the pure algebra on them that rules share. */
#ifndef P2O_IR_SHAPE_H
#define P2O_IR_SHAPE_H

#include "ir/dim.h"
#include "ir/dtype.h"

enum { MAX_RANK = 64 };

typedef struct Shape {
    int        rank;
    const Dim *at;
} Shape;

static inline bool dim_is(Dim d, int64_t n) { int64_t v; return p2o_dim_is_int(d, &v) && v == n; }

/* A mutable copy, with room for `extra` more dims. */
Dim  *p2o_shape_copy(Arena *a, Shape s, int extra);
Shape p2o_shape_insert(Arena *a, Shape s, int i, Dim d);          /* a copy with d put in at i */
bool  p2o_shape_same(Shape a, Shape b);                 /* same rank and same Dims */
Dim   p2o_shape_product(Dims *t, Shape s, int from, int to);    /* of dims [from, to) */
static inline Dim shape_nelem(Dims *t, Shape s) { return p2o_shape_product(t, s, 0, s.rank); }
bool  p2o_shape_is_const(Shape s);                      /* no symbols */
/* "b, 4, 8" */
const char *p2o_shape_text(Dims *t, Shape s);

/* dim counted from the end when negative; false when out of range.  A scalar accepts 0 and -1 when
 * `scalar_ok`, as PyTorch's reductions do, giving 0. */
bool p2o_wrap_dim(int64_t dim, int rank, bool scalar_ok, int *out);
/* start:end of an axis as Python slices mean it: NULL is absent, negative counts from the end, both
 * are held inside the size, and from <= to.  A size that the capture says is at least 1 is taken to
 * be. */
void p2o_slice_range(Dims *t, Dim start, Dim end, Dim size, Dim *from, Dim *to);

#endif
