/* The operator tables: one ATen operator is one row, in one of the ops_*.c files. */
#ifndef P2O_ATEN_OPS_H
#define P2O_ATEN_OPS_H

#include "aten/schema.h"
#include "onnx/graph.h"

typedef struct Infer Infer;
typedef struct Lower Lower;
typedef struct Vmap  Vmap;

typedef void   ShapeRule(Infer *in, const Call *c);
typedef Value *LowerFn(Lower *lo, const Call *c);
typedef void   LowerManyFn(Lower *lo, const Call *c, Value **out);
typedef bool   BatchFn(Vmap *v, const Call *c);     /* false after a diagnostic */

/* What a number among an operator's arguments is: said by the row, else by the schema's type
 * (SymInt and what counts an extent, Scalar a factor, the others settings). */
typedef enum NumberRole {
    NUMBER_EXTENT,           /* a size, or how many */
    NUMBER_PLACE,            /* along an axis; negative ones count from its end */
    NUMBER_PAD,              /* how much is added at an end */
    NUMBER_REST,             /* what a division leaves over: output_padding */
    NUMBER_FACTOR,           /* in arithmetic */
    NUMBER_SETTING,          /* a stride, an axis, an epsilon: hardly ever made of a size */
    NUMBER_NONE              /* not looked at: what is asserted, say */
} NumberRole;

/* What modules of torch.nn make of sizes themselves; other numbers come from constructors. */
typedef enum NumberMade {
    MADE_NEVER,
    MADE_ALWAYS,             /* output_size of MaxUnpool2d */
    MADE_OF_AXIS,            /* AdaptiveAvgPool2d((None, 1)): its own axis, or a number */
    MADE_OF_REST             /* ConvTranspose2d(..)(x, output_size=..): what its own axis lacks, or
                              * a number */
} NumberMade;

/* The number that item i of argument `arg` has where the call does nothing, its first argument
 * having these sizes.  false: that argument has none. */
typedef bool IdleFn(Dims *t, const Call *c, int arg, int i, Shape self, Dim *number);
/* Of calls without numbers: copies. */
IdleFn p2o_idle_copy;
/* Of those with zeros: pads; with ones: repeats. */
IdleFn p2o_idle_zeros;
IdleFn p2o_idle_ones;

/* The number that as its second operand an operator does nothing with: x * 1. */
typedef enum Neutral { NEUTRAL_NONE, NEUTRAL_ZERO, NEUTRAL_ONE } Neutral;

typedef struct AtenOp {
    const char  *schema;     /* verbatim from PyTorch: names, types, defaults, aliasing */
    ShapeRule   *shape;      /* sets the type of every result */
    OnnxOp       onnx;       /* either: this operator, tensor arguments in order */
    LowerFn     *lower;      /* or: this function, for one result */
    LowerManyFn *lower_many; /* or: this one, for several; none of the three: nothing to emit */
    const char  *counts;     /* Scalar or int arguments that count elements, by name: sizes like
                              * any SymInt */
    const char  *varies;     /* int and float arguments that may be known at run time only, by
                              * name; literals stay */
    const char  *roles;      /* of numbers that are not what their type says:
                              * "start:place end:place step:setting" */
    const char  *made;       /* by modules of torch.nn: "output_size:axis"; see NumberMade */
    IdleFn      *idle;       /* captures may lack the call where it does nothing; NULL: it always
                              * does something */
    Neutral      neutral;
    BatchFn     *batch;      /* inside torch.vmap (batch.h); NULL: it is refused there, unless its
                              * rule says that it works element by element */
    const char  *along;      /* the row that does over one axis what this one does over all */
    bool         indexing;   /* x[:, 1:] makes it: the axis is not written down */
    bool         same_start; /* its result begins in memory where its first argument does */
    bool         updates;    /* where it trains it writes running_mean and running_var, which its
                              * schema may not say */
    bool         lifts;      /* its argument is a constant that forward() made */
    bool         reshapes;   /* one of the names for: the same elements in this shape */
    bool         complex;    /* its functions know complex tensors; else see ComplexOp */
    bool         expands;    /* leading axes of 1 that its argument has or lacks change nothing */
    bool         pieces;     /* a size says how many results: those that nobody uses are NULL, or
                              * cut off the end */
    bool         unchecked;  /* what files record of its results is wrong and not compared */
    int          from, to;   /* the opsets it can be converted to; 0: the first, the last */
    const char  *limits;     /* what is not done, for `pt2onnx ops`; NULL: nothing */
    const struct CustomRow *custom;     /* of no table: what the user said (custom.h) */
} AtenOp;

/* For `batch`; the first one stands for NULL where the rule is one of infer.h's. */
BatchFn p2o_batch_pointwise;    /* tensors broadcast, types are promoted */
BatchFn p2o_batch_self;         /* the first tensor alone; others give their type */
BatchFn p2o_batch_into;         /* the same, into the sizes of the first */
BatchFn p2o_batch_fill;         /* by a number */
BatchFn p2o_batch_type;         /* the first tensor gives its type only */
BatchFn p2o_batch_axes;         /* along axes of the first tensor, or list of tensors */
BatchFn p2o_batch_new_axis;     /* the same, counting an axis that is new */
BatchFn p2o_batch_reduce;       /* along axes; none given: all */
BatchFn p2o_batch_along;        /* over all elements: as the row in `along` does over one axis */
BatchFn p2o_batch_together;     /* along an axis of several tensors that do not broadcast */
BatchFn p2o_batch_view;         /* the same elements in another shape */
BatchFn p2o_batch_expand;
BatchFn p2o_batch_permute;
BatchFn p2o_batch_repeat;
BatchFn p2o_batch_tail;         /* on the last axes of the first tensor, others having no axis */
BatchFn p2o_batch_swap_tail;    /* x.t(), x.mT */
BatchFn p2o_batch_matmul;
BatchFn p2o_batch_linear;
BatchFn p2o_batch_addmm;
BatchFn p2o_batch_outer;
BatchFn p2o_batch_masked_fill;
BatchFn p2o_batch_index;
BatchFn p2o_batch_index_put;
BatchFn p2o_batch_index_select;
BatchFn p2o_batch_embedding;
BatchFn p2o_batch_attention;
BatchFn p2o_batch_size;         /* numbers that are known */
BatchFn p2o_batch_nothing;      /* what is asserted */
BatchFn p2o_batch_random;       /* refused, unless it is switched off */

enum { OPSET_MIN = 17, OPSET_MAX = 23 };

static inline int  p2o_op_from(const AtenOp *op) { return op->from ? op->from : OPSET_MIN; }
static inline int  p2o_op_to(const AtenOp *op) { return op->to ? op->to : OPSET_MAX; }

static inline bool p2o_op_in_opset(const AtenOp *op, int n)
{
    return n >= p2o_op_from(op) && n <= p2o_op_to(op);
}

/* How an operator that knows only real tensors does complex ones: a table of its own
 * (ops_complex.c), since most do not care. */
typedef enum ComplexUse {
    COMPLEX_OWN,             /* by the functions given here */
    COMPLEX_PARTS,           /* the real parts, then the imaginary ones, as if that were all */
    COMPLEX_SUM,             /* the same; numbers and real tensors are 0 in the second turn */
    COMPLEX_PRODUCT,         /* linear in each of its first two operands */
    COMPLEX_REAL,            /* as it is: the imaginary part of the result is 0 */
} ComplexUse;

typedef struct ComplexOp {
    const char  *name;       /* "mul.Tensor" */
    ComplexUse   use;
    LowerManyFn *lower;      /* OWN: imaginary parts of the results come after all real ones */
    ShapeRule   *shape;      /* NULL: the row's own rule is right */
    const char  *selector;   /* SUM: the argument that is no operand and stays as it is */
} ComplexOp;

/* How c does its complex tensors; NULL when it has none, or when its row knows them. */
const ComplexOp *p2o_complex_op(const Call *c);
bool             p2o_knows_complex(const Call *c);              /* or has none to know */

typedef struct Ops Ops;

Ops          *p2o_ops_new(Arena *a, Dims *t);
/* What the user said of operators without a row; NULL: nothing. */
struct CustomOps *p2o_ops_custom(const Ops *o);
void          p2o_ops_set_custom(Ops *o, struct CustomOps *x);
bool          p2o_op_counts(const AtenOp *op, const char *arg);
bool          p2o_op_varies(const AtenOp *op, const char *arg);  /* and what counts */
NumberRole    p2o_op_role(const AtenOp *op, const SchemaArg *a);
NumberMade    p2o_op_made(const AtenOp *op, const char *arg);
const AtenOp *p2o_ops_find(const Ops *o, Str key);              /* "aten::add.Tensor"; NULL: none */
/* Rows in table order; NULL past the last. */
const AtenOp *p2o_ops_at(const Ops *o, size_t i, const char **key);
/* Parsed on first use. */
const Schema *p2o_ops_schema(Ops *o, const AtenOp *op);

/* Rows that are no operator's in general but one form of its calls, by their schema; not found by
 * p2o_ops_find.  Arguments from `results` on are sizes of results. */
void          p2o_ops_add_form(Ops *o, const AtenOp *op, int results);
const AtenOp *p2o_ops_find_form(const Ops *o, const char *schema);      /* NULL: none */

/* A call of our own making with one fresh result, bound, not yet in the body.  NULL when there is
 * no such row (quietly) or the arguments do not fit (after a diagnostic). */
Call *p2o_ops_call(Ops *o, Program *p, Body *b, const char *target, int nargs, const Arg *args,
                   Loc loc);

#endif
