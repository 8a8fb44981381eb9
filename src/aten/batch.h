/* How operators are carried out under torch.vmap: the vocabulary of their batched selves.
 *
 * Inside a vmap a value has axes that its operators do not see.  Outside, it is an ordinary tensor
 * with these axes first, the outermost vmap's before all others.  A row's BatchFn makes the calls
 * that do to such tensors what the operator does to the values; the sizes and types of the values
 * are known.  A value without an axis for a vmap is the same in all its turns. */
#ifndef P2O_ATEN_BATCH_H
#define P2O_ATEN_BATCH_H

#include "aten/call.h"
#include "aten/ops.h"

/* Bit k: the axis of the k-th open vmap, from the outside. */
typedef uint32_t Levels;

enum { MAX_LEVELS = 16 };

static inline int nlevels(Levels l)
{
    int n = 0;
    for (; l; l &= l - 1)
        n++;
    return n;
}

/* What became of a Var. */
typedef struct Batched {
    Arg      now;
    Levels   levels;
    uint32_t opening;           /* the last one when it was made */
    bool     known;
} Batched;

typedef struct Opening {
    Dim      size;              /* NULL: no value has entered yet */
    uint32_t number;
} Opening;

typedef struct Expected {
    const Var *var;
    Type       type;
    const Call *of;
} Expected;

struct Vmap {
    Ops        *ops;
    Program    *prog;
    Arena      *arena;
    Body       *body;
    const Call *at;
    Batched    *of;             /* by Var id, for the Vars there were at the start */
    uint32_t    nof;
    Opening     open[MAX_LEVELS];
    int         depth;
    uint32_t    nopened;
    VEC(Call *) calls;
    VEC(Expected) expected;
};

Levels levels_of(const Vmap *v, const Arg *x);          /* of a list: of all its items together */
Levels levels_of_call(const Vmap *v, const Call *c);
Dim    level_size(const Vmap *v, int level);
Shape  logical_shape(const Arg *x);                     /* without hidden axes */
/* The sizes of these levels, then s. */
Shape  batched_shape(const Vmap *v, Levels l, Shape s);

/* The tensor itself, as it has been so far. */
Arg batched_arg(Vmap *v, const Arg *x);
/* Ready to broadcast: an axis for each of `to`, of size 1 where x has none, then axes of 1 up to
 * `rank` logical ones.  What broadcasting does anyway is left out unless `all`. */
Arg aligned_arg(Vmap *v, const Arg *x, Levels to, int rank, bool all);
/* Each of `to` in full. */
Arg spread_arg(Vmap *v, const Arg *x, Levels to);

/* One more call; its first result.  Arguments without a default must be given. */
Arg add_batched(Vmap *v, const char *target, int nargs, const Arg *args);
Arg int_arg_of(Vmap *v, int64_t n);
Arg dims_arg(Vmap *v, Shape s);                         /* as a list */
Arg view_as_shape(Vmap *v, Arg x, Shape s);
/* c's own operator, or that of row `op`, on these arguments, for results with these levels. */
bool call_batched(Vmap *v, const Call *c, const AtenOp *op, const Arg *args, Levels l);
/* The same, the results then viewed as what they are. */
bool call_reshaped(Vmap *v, const Call *c, const AtenOp *op, const Arg *args, Levels l);
bool set_batched(Vmap *v, const Call *c, Arg result, Levels l);         /* of the only one */
bool set_batched_number(Vmap *v, const Call *c, Arg number);            /* the same in all turns */
const AtenOp *batch_row(const Vmap *v, const char *key);
bool refuse_batched(Vmap *v, const Call *c, const char *why);           /* false */

#endif
