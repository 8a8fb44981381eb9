/* Types by rule: runs each operator's ShapeRule over symbolic sizes.
 *
 * The one source of truth for sizes.  What the file recorded is checked against it.  Sizes that
 * must be equal are unified; when that binds a symbol the program is gone through again, so that
 * every type is in terms of what is left.  Below the driver: the vocabulary in which rules are
 * written.  A rule that fails says so through it and its results stay poison.  A rule may also
 * leave out a result that it cannot give: that is an error only where something uses it. */
#ifndef P2O_ATEN_INFER_H
#define P2O_ATEN_INFER_H

#include "aten/call.h"
#include "aten/ops.h"
#include "ir/bind.h"

struct Infer {
    Program    *prog;
    Arena      *arena;
    Dims       *dims;
    Diags      *diags;
    Bindings   *bind;
    const Call *call;           /* whose rule is running */
    bool        failed;         /* it reported an error */
    size_t      errors;         /* there were before */
};

/* Input Vars have their type set.  false after diagnostics. */
bool p2o_infer(Program *p, Bindings *b);

/* Types a body of the running rule's call for inputs of these types.  false after diagnostics. */
bool infer_body(Infer *in, const Body *b, const Type *inputs);

/* Results. */
void set_out(Infer *in, const Call *c, int i, DType t, Shape s);
/* NULL: known at run time only, of any sign. */
void set_int(Infer *in, const Call *c, int i, Dim value);
void set_float(Infer *in, const Call *c, int i);
void set_bool(Infer *in, const Call *c, int i);
static inline int nouts(const Call *c) { return c->nouts; }

/* Failures.  What follows the operator's name in the message. */
void rule_fail(Infer *in, const char *fmt, ...) PRINTF_LIKE(2, 3);              /* ill-typed */
void rule_unsupported(Infer *in, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* An argument that follows a size where ONNX takes a number only; what it may be, for the advice,
 * or NULL. */
void rule_varies(Infer *in, const char *name, const Arg *x, const char *may_be);

/* Demands; false after a diagnostic. */
bool must_rank(Infer *in, const Call *c, const char *name, int rank);
bool must_equal(Infer *in, const Call *c, Dim a, Dim b, const char *what);
/* At every size that works: said in the report, and held against the ranges that the user gives. */
void needs_le(Infer *in, Dim a, Dim b, const char *what);
void needs_equal(Infer *in, Dim a, Dim b, const char *what);
bool must_wrap(Infer *in, int64_t dim, int rank, int *out);             /* dim in range */
bool must_wrap_reduce(Infer *in, int64_t dim, int rank, int *out);      /* 0-d accepts 0, -1 */
/* By broadcasting. */
bool must_expand(Infer *in, const Call *c, Shape from, Shape to, const char *what);
/* SymInt arguments that have to be plain numbers here. */
bool const_ints(Infer *in, const Call *c, const char *name, int n, int64_t *out);
bool const_dim(Infer *in, Dim d, const char *what, int64_t *out);

/* Sizes that are still open: literals of a fixed capture that may follow a dynamic size. */
bool is_soft(const Infer *in, Dim d);
bool has_open(const Infer *in, Dim d);          /* a soft one occurs in it */
Shape resolved_shape(Infer *in, Shape s);       /* with the bindings made so far */
/* 1, or open and to be stretched to the other. */
bool is_one_beside(Infer *in, Dim d, Dim beside);
bool harden(Infer *in, Dim soft);               /* keeps its literal; true for others */
/* start:end of a dim as Python slices it, either NULL: absent. */
void slice_bounds(Infer *in, Dim start, Dim end, Dim size, Dim *from, Dim *to);
/* `from` reshaped to `to`, which may hold one -1; the number of elements must agree. */
bool reshaped(Infer *in, const Call *c, Shape from, Shape to, Shape *out);

/* Shapes. */
static inline Dim dim_at(Shape s, int i) { return s.at[i < 0 ? i + s.rank : i]; }
Dim   int_dim(const Infer *in, int64_t v);
Shape with_dim(Infer *in, Shape s, int i, Dim d);
Shape with_last(Infer *in, Shape s, Dim d);
Shape without_dim(Infer *in, Shape s, int i);
Shape insert_dim(Infer *in, Shape s, int i, Dim d);
Shape concat_shapes(Infer *in, Shape a, Shape b);
Shape slice_shape(Shape s, int from, int to);                   /* dims [from, to), shared */
Shape shape_list(Infer *in, const Call *c, const char *name);   /* of an int list */
Shape broadcast(Infer *in, const Call *c, Shape a, Shape b);
/* A size that only the data decides: one symbol for each result and axis. */
Dim   data_dim(Infer *in, const Call *c, int out, int axis);
/* The same for an input of a body that runs often: the size of an axis, or the int it is, in any
 * round. */
Dim   round_dim(Infer *in, const Var *input, int axis);
Dim   round_int(Infer *in, const Var *input);

/* torch.result_type of the named arguments: tensors, then 0-d tensors, then numbers. */
typedef struct Promotion {
    DType dim, zero, number;
} Promotion;
void  promote_type(Promotion *p, Type t);
DType promoted(const Promotion *p);
DType promote_args(const Call *c, int n, const char *const *names);
#define PROMOTE(c, ...)                                                    \
    promote_args(c, (int)COUNT_OF(((const char *const[]){ __VA_ARGS__ })), \
                 (const char *const[]){ __VA_ARGS__ })
/* torch.get_default_dtype() at the capture, for a call that leaves its dtype open: as recorded. */
DType default_dtype(const Call *c);
static inline DType float_of(DType t) { return is_float(t) || is_complex(t) ? t : DT_F32; }

/* Rules that many rows share. */
ShapeRule p2o_rule_same;        /* result is like `self`, or the first argument */
ShapeRule p2o_rule_float;       /* the same, integers and bool becoming f32 */
ShapeRule p2o_rule_bool;        /* the same shape, of bool */
ShapeRule p2o_rule_binary;      /* self and other broadcast, types promoted */
ShapeRule p2o_rule_binary_float;/* the same, integers becoming f32 */
ShapeRule p2o_rule_compare;     /* broadcast, bool */
ShapeRule p2o_rule_none;        /* no results */

#endif
