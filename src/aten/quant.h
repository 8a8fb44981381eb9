/* What the tables of quantised operators (ops_quant.c, ops_affine.c, ops_fake.c) share.
 *
 * A real number stands beside an integer q as (q - zero) * scale, scale and zero being of the whole
 * tensor, of an axis, or of blocks.  QuantizeLinear and DequantizeLinear say that where scale and
 * zero are constants, so that a runtime can take what lies between for integer arithmetic.  The
 * one differs from PyTorch in a point: it divides by the scale where PyTorch multiplies by
 * 1 / scale, so that a number halfway between two integers may go to the other one.  Scales that
 * are computed make such numbers at every run (the largest is at 127.5 steps): there the product is
 * made first.  All else is arithmetic, step by step in PyTorch's types. */
#ifndef P2O_ATEN_QUANT_H
#define P2O_ATEN_QUANT_H

#include "aten/lower.h"

/* Rules; false after a diagnostic. */
bool must_be_float(Infer *in, const Call *c, const char *name);         /* or a half type */
bool must_be_ints(Infer *in, const Call *c, const char *name, DType t);
bool must_be_one(Infer *in, const Call *c, const char *name);           /* element */
bool must_have_range(Infer *in, const Call *c);                         /* quant_min, quant_max */
/* scale and zero of the axis of x that the call names. */
bool must_be_channels(Infer *in, const Call *c, Shape x, const char *scale, const char *zero);

/* A shape that grows. */
typedef struct Axes {
    int  rank;
    Dim *at;
} Axes;
void  push_dim(Axes *s, Dim d);
Shape axes_shape(Axes s);

/* Constants. */
static inline bool is_8_bits(DType t) { return t == DT_I8 || t == DT_U8; }
static inline bool is_known(const Value *v) { return v->tensor != NULL; }
bool fits(DType t, double from, double to);     /* integers of this range, t being such a type */
/* v in another type that holds what it is: NULL where that cannot be told. */
Value *held_as(Lower *lo, Value *v, DType t);
/* The same elements in a shape; a weight is seen so, without a node. */
Value *seen_as(Lower *lo, Value *v, Shape s);
Value *one_number(Lower *lo, Value *v);
/* What is of an axis beside a tensor of this rank; axis -1 and NULL: as it is. */
Value *along(Lower *lo, Value *v, int axis, int to_rank);

/* A tensor of type t in PyTorch's arithmetic: half types are held in float32 and rounded after each
 * step, which the runtime would do after some only. */
typedef struct Real {
    Value *at;
    DType  t;
} Real;
Real   real_of(Lower *lo, Value *v, DType t);           /* v, cast to t */
Real   real_like(Lower *lo, Value *at, DType t);        /* what is held, rounded to t */
Value *value_of(Lower *lo, Real x);                     /* of type t */
Real   step(Lower *lo, OnnxOp op, Real x, Real y);      /* types promoted */
Real   step_by(Lower *lo, OnnxOp op, Real x, double by);
Real   step_from(Lower *lo, OnnxOp op, double from, Real x);
Real   exact(Lower *lo, OnnxOp op, Real x);             /* nothing to round */
/* 1 / x.  As that, ONNX Runtime would make one division of it and of the product behind it. */
Real   inverse(Lower *lo, Real x);
Value *within(Lower *lo, Value *x, double min, double max);

/* How a tensor is quantised.  scale and zero have rank 0, or rank 1 and are of an axis. */
typedef struct Grid {
    Value *scale, *zero;    /* zero NULL: 0 */
    int    axis;            /* -1: of the whole tensor */
    double min, max;        /* of the integers */
    DType  dtype;           /* theirs */
    bool   in_rows;         /* what they stand for is reshaped before a product sees it */
} Grid;
/* quant_min and quant_max, tensors or not; absent ones are those of t.  false after a refusal. */
bool bounds(Lower *lo, const Call *c, DType t, Grid *g);
/* A number, or a tensor of one element: as the type that is wanted, where it is one. */
Value *number_or_tensor(Lower *lo, const Call *c, const char *name, DType number, DType want);
/* scale and zero of the axis that the call names. */
Grid   channels_of(Lower *lo, const Call *c, const char *scale, const char *zero, int of_rank);

/* clamp(round(x / scale) + zero, min, max) of a float32. */
Value *quantized(Lower *lo, Value *x, const Grid *g);
/* (q - zero) * scale in float32, or NULL: there is no such node. */
Value *dequantized(Lower *lo, Value *q, const Grid *g);
/* The node, hidden from MatMul where q is a weight.  block 0: scale and zero have rank 0, or rank 1
 * and are of the axis; else they have q's rank. */
Value *dequantize_hidden(Lower *lo, Value *q, Value *scale, Value *zero, int axis, int64_t block);
/* The same in the types that the operands have, by arithmetic, or by nodes where there are. */
Value *product_of_difference(Lower *lo, Value *q, Value *zero, Value *scale);
Value *dequantized_by_types(Lower *lo, Value *q, const Grid *g);

/* A tensor as [groups, size], and what is of a group as [groups]. */
typedef struct Groups {
    Shape rows, each;
} Groups;
Value *dequantized_groups(Lower *lo, Value *q, Value *scale, Value *zero, Groups to);

/* Choosing scales. */
typedef struct Extremes {
    Real min, max;          /* no more and no less than 0 */
} Extremes;
Extremes extremes_of(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims);
Real     symmetric_scale(Lower *lo, Extremes e, double min, double max);
Real     affine_scale(Lower *lo, Extremes e, double min, double max);
/* min - round(low / scale), cut; by way of `narrow` where it holds them: held_as finds it. */
Value   *affine_zero(Lower *lo, Real low, Real scale, double min, double max, DType narrow,
                     DType t);
Real     no_less(Lower *lo, Real x, double least);

#endif
