/* Program -> Graph, and the vocabulary in which lowerings are written.
 *
 * A lowering sees a call whose types are settled, reads its arguments with the functions of call.h,
 * and returns the Value that carries the result.  What it cannot do it refuses with
 * `return unsupported(lo, c, "...")`; the driver goes on with the next call: one run lists all. */
#ifndef P2O_ATEN_LOWER_H
#define P2O_ATEN_LOWER_H

#include "aten/call.h"
#include "aten/infer.h"
#include "aten/ops.h"
#include "onnx/build.h"

struct Lower {
    Program    *prog;
    Arena      *arena;
    Dims       *dims;
    Diags      *diags;
    Builder    *b;              /* of the graph being filled */
    int         opset;
    Value     **values;         /* by Var id; of a complex tensor the real part */
    Value     **imag;           /* by Var id: its imaginary part */
    int         part;           /* which of the two arguments stand for, while parts are lowered */
    const Arg  *right;          /* the one argument that stands for right_part instead, or NULL */
    int         right_part;
    bool        real_has_zero;  /* numbers and real tensors have an imaginary part of 0 */
    const Arg  *selector;       /* but for this one, or NULL */
    Map        *weights;        /* storage and geometry -> Value *: tied weights are one */
    Map        *names;          /* of values */
    bool        failed;         /* the call being lowered was refused */
};

typedef struct LowerOptions {
    int                opset;
    const char *const *input_names, *const *output_names;   /* NULL entries keep the program's */
    size_t             ninput, noutput;
} LowerOptions;

/* Types are inferred.  NULL after diagnostics. */
Graph *p2o_lower(Program *p, const LowerOptions *o);

/* Lowers a body's calls into `b`'s graph, its inputs standing for `in` (NULL: a size, known by its
 * Dim); outputs to `out`.  Sizes that only the body's types have are those of `in`: `b` must be new
 * where they may stand for others than before.  false after diagnostics. */
bool p2o_lower_body(Lower *lo, Builder *b, const Body *body, Value *const *in, Value **out);

/* Nodes.  A NULL input is an absent optional one. */
#define ATTRS(...)   (int)COUNT_OF(((const Attr[]){ __VA_ARGS__ })), (const Attr[]){ __VA_ARGS__ }
#define NO_ATTRS     0, NULL
#define INPUTS(...) \
    (int)COUNT_OF(((Value *const[]){ __VA_ARGS__ })), (Value *const[]){ __VA_ARGS__ }
#define emit(lo, op, ...)             p2o_build((lo)->b, op, NO_ATTRS, INPUTS(__VA_ARGS__))
#define emit_with(lo, op, attrs, ...) p2o_build((lo)->b, op, attrs, INPUTS(__VA_ARGS__))
#define emit_many(lo, op, attrs, nout, out, ...) \
    p2o_build_many((lo)->b, op, attrs, INPUTS(__VA_ARGS__), nout, out)

Value *unsupported(Lower *lo, const Call *c, const char *fmt, ...) PRINTF_LIKE(3, 4);   /* NULL */

const char *unique_name(Lower *lo, const char *stem);   /* for a value: `stem`, or stem_1, ... */

/* Arguments. */
/* NULL for None; numbers as that type. */
Value *p2o_arg_value(Lower *lo, const Arg *x, DType number);
Value *tensor_arg(Lower *lo, const Call *c, const char *name);  /* as it is; NULL when None */
Value *tensor_as(Lower *lo, const Call *c, const char *name, DType t);  /* cast; numbers made so */
Value *tensor_item(Lower *lo, const Call *c, const char *name, int i);
Value *number_arg(Lower *lo, const Call *c, const char *name, DType t); /* rank 0 */
const int64_t *ints_arg(Lower *lo, const Call *c, const char *name, int n); /* one stands for n */
/* A number that ends up in an attribute; false after a refusal: it is known at run time only. */
bool fixed_number(Lower *lo, const Call *c, const char *name, double *f);
/* A complex tensor is a pair of real Values.  im is NULL for real tensors and numbers. */
typedef struct Complex {
    Value *re, *im;
} Complex;
Complex complex_arg(Lower *lo, const Call *c, const char *name);
Complex complex_as(Lower *lo, const Call *c, const char *name, DType t);
/* To and from one Value with a last axis of 2, as models have them at their ends. */
Value  *join_parts(Lower *lo, Complex z);
Complex split_parts(Lower *lo, Value *x);
static inline Shape out_shape(const Call *c, int i) { return c->outs[i]->type.shape; }
/* Of its parts when it is complex. */
static inline DType out_dtype(const Call *c, int i) { return part_of(c->outs[i]->type.dtype); }
/* torch.result_type of all tensor arguments; as a float when the result is one. */
DType compute_dtype(const Call *c);

/* Constants. */
Value *ints_const(Lower *lo, const int64_t *v, size_t n);
#define INTS(lo, ...) \
    ints_const(lo, (const int64_t[]){ __VA_ARGS__ }, COUNT_OF(((const int64_t[]){ __VA_ARGS__ })))
Value *num(Lower *lo, DType t, double f);                       /* rank 0 */

/* Arithmetic in x's type; a number that changes nothing is left out. */
Value *plus_num(Lower *lo, Value *x, double f);
Value *times_num(Lower *lo, Value *x, double f);
/* x where cond holds, else y.  A macro, so that nodes for its arguments are made in their order. */
#define choose(lo, cond, x, y) emit(lo, ONNX_Where, cond, x, y)
Value *sign_bit(Lower *lo, Value *x);                           /* also of -0 */
Value *gelu_of(Lower *lo, Value *x, bool by_tanh);
Value *hypot_of(Lower *lo, Value *x, Value *y);                 /* sqrt(x^2 + y^2) */
Value *atan2_of(Lower *lo, Value *y, Value *x);
/* coef[0] * x^(n-1) + ... + coef[n-1] */
Value *polynomial(Lower *lo, Value *x, const double *coef, int n);
/* log(1 + x), exp(x) - 1, accurate near 0; log(1 + exp(x)).  Half types lose digits on the way. */
Value *log1p_of(Lower *lo, Value *x);
Value *expm1_of(Lower *lo, Value *x);
Value *softplus_of(Lower *lo, Value *x);
/* What PyTorch computes the half types in. */
static inline DType wide_of(DType t) { return t == DT_F16 || t == DT_BF16 ? DT_F32 : t; }

/* Pieces of weights as one initializer, named after the first of them.  Nothing is copied: they are
 * joined as they are written. */
Value *joined_weight(Lower *lo, const Value *first, const Tensor *const *parts, size_t n, int rank,
                     const int64_t *sizes);

/* A weight under another shape of as many elements: the same bytes. */
Value *weight_view(Lower *lo, const Value *weight, int rank, const int64_t *sizes);

/* Facts. */
static inline int   rank(const Value *v) { return v->shape.rank; }
static inline Dim   size_at(const Value *v, int i) { return dim_at(v->shape, i); }
static inline bool  is_size(const Value *v, int i, int64_t n) { return dim_is(size_at(v, i), n); }

/* Moves; each returns its input where there is nothing to do. */
Value *cast(Lower *lo, Value *x, DType t);
Value *transpose(Lower *lo, Value *x, const int64_t *perm);
Value *swap_dims(Lower *lo, Value *x, int i, int j);
Value *swap_last_two(Lower *lo, Value *x);
Value *move_dim(Lower *lo, Value *x, int from, int to);         /* the others keep their order */
Value *unsqueeze(Lower *lo, Value *x, int axis);
Value *squeeze(Lower *lo, Value *x, int axis);
Value *concat(Lower *lo, int axis, Value *const *v, int n);
/* [start, end) with a positive step along one axis; NULL end: to the last. */
Value *slice_axis(Lower *lo, Value *x, int axis, Dim start, Dim end, int64_t step);
Value *slice_steps(Lower *lo, Value *x, int axis, Dim start, Dim end, Dim step);
Value *select_axis(Lower *lo, Value *x, int axis, Dim index);   /* drops the axis */
/* Constants put before and after n axes from `first` on: pads has n begins, then n ends. */
Value *pad_axes(Lower *lo, Value *x, int first, int n, const Dim *pads, double with);
/* The axis as [count, kernel]: element (i, k) is at i * stride + k * dilation, inside x. */
Value *windows(Lower *lo, Value *x, int axis, Dim count, Dim kernel, int64_t stride,
               int64_t dilation);
Value *reduce(Lower *lo, OnnxOp op, Value *x, const int64_t *axes, int n, bool keepdims);
/* |x|^p; at 0 whether x is not 0.  sum(|x|^p)^(1/p), with its limits at 0 (how many are not 0) and
 * infinity (the extremes of |x|). */
Value *abs_power(Lower *lo, Value *x, double p);
/* y, but NaN where the sum of the sizes that it is the extreme of is: ONNX Runtime's extremes pass
 * over a NaN. */
Value *nan_or(Lower *lo, Value *sum, Value *y);
Value *p_norm(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims, double p);
Value *flat(Lower *lo, Value *x);                               /* rank 1 */
/* ScatterElements along `axis`, or ScatterND; reduction is none, add, mul, max or min. */
Value *scatter_with(Lower *lo, OnnxOp op, int axis, Value *x, Value *index, Value *updates,
                    const char *reduction);
/* What two shapes broadcast to, as their types are settled. */
Shape  joint_shape(Lower *lo, Shape a, Shape b);
/* Of bools; nothing gives false and true. */
Value *reduce_any(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims);
Value *reduce_all(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims);

/* A Loop (loop.c).  Nodes made between opening and closing are its body's, which sees all values
 * made before; states go round in the order they are asked for, and keep their types. */
typedef struct Rounds {
    Builder *outer;
    Graph   *body;
    Value   *round;             /* int64, rank 0: 0, 1, ... */
    Value   *first[8];          /* what the states begin with */
    int      nstate;
} Rounds;
Rounds open_rounds(Lower *lo, const char *name);
Value *round_state(Rounds *r, Value *first);
/* Up to `count` rounds (NULL: any number) while go_on holds (NULL: always), which `start` says of
 * the first (NULL: it does); next and out are by state. */
void close_rounds(Lower *lo, Rounds *r, Value *count, Value *start, Value *go_on,
                  Value *const *next, Value **out);
Value *any_true(Lower *lo, Value *x);                           /* rank 0; of nothing: false */

/* Sizes at run time (dims.c). */
Value *dim_value(Lower *lo, Dim d);                             /* int64, rank 1 of one element */
Value *dim_scalar(Lower *lo, Dim d);                            /* int64, rank 0 */
Value *count_value(Lower *lo, Dim d, DType t);                  /* of that type, rank 0 */
Value *range_of(Lower *lo, Dim n, int64_t step);                /* int64: 0, step ... n of them */
static inline Value *iota(Lower *lo, Dim n) { return range_of(lo, n, 1); }
Value *shape_value(Lower *lo, Shape s);                         /* int64, rank 1: all of it */
Value *reshape(Lower *lo, Value *x, Shape to);
Value *expand(Lower *lo, Value *x, Shape to);
Value *full(Lower *lo, Shape s, DType t, double v);             /* filled with a constant */
Value *filled(Lower *lo, Shape s, const Tensor *scalar);        /* where a double is too short */
bool   never_zero(Lower *lo, Dim d);
void   carries_dims(Lower *lo, Value *v);                       /* v's sizes may be read off it */
void   carries_int(Lower *lo, Value *scalar, Dim d);            /* a rank-0 int64 is the size d */

#endif
