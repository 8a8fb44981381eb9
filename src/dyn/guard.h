/* The guards of a capture: what must hold of its sizes, as Python that PyTorch wrote, such as
 * `math.trunc(0.7*torch.sym_float(L['x'].size()[1])) == 11`.
 *
 * A guard is compiled to code for a small stack machine: what a file says can't make it recurse.
 * It is evaluated as Python does, with exact ints and with doubles; where Python would raise an
 * error, or an int leaves 64 bits, the answer is CANNOT_TELL.  The spellings are those of PyTorch
 * 2.13's PythonPrinter (torch/utils/_sympy/printers.py) and of the sympy functions behind it. */
#ifndef P2O_DYN_GUARD_H
#define P2O_DYN_GUARD_H

#include "ir/bind.h"
#include "ir/program.h"

typedef struct Guard Guard;

/* How its two sides stand to each other, where it is one comparison. */
typedef enum GuardRelation {
    GUARD_OTHER, GUARD_LT, GUARD_LE, GUARD_GT, GUARD_GE, GUARD_EQ, GUARD_NE
} GuardRelation;

/* NULL: it is not understood. */
Guard *p2o_guard_parse(const Program *p, const char *text);
/* The sizes that a text mentions, even one that is not understood. */
typedef void GuardSizeFn(void *user, Dim size);
void   p2o_guard_mentions(const Program *p, const char *text, GuardSizeFn *fn, void *user);

const char   *p2o_guard_source(const Guard *g);         /* as written */
/* It need not be said any more: it holds wherever the others do, or is said by a range. */
void          p2o_guard_settle(Guard *g);
bool          p2o_guard_settled(const Guard *g);
size_t        p2o_guard_nsize(const Guard *g);
/* Each once, as it is declared now: a name, perhaps, where the capture has a number. */
Dim           p2o_guard_size(const Guard *g, size_t i);
GuardRelation p2o_guard_relation(const Guard *g);
bool          p2o_guard_has_max(const Guard *g);
/* It compares a size, and nothing that is computed from it, to a number. */
bool          p2o_guard_is_size(const Guard *g);
/* Of a comparison, side 0 or 1: whether it is a number, and which. */
bool          p2o_guard_number(const Guard *g, int side, double *v);
/* Of a comparison, side 0 or 1, in the sizes that the file recorded; NULL where floats are in
 * it. */
Dim           p2o_guard_dim(const Guard *g, Dims *t, int side);

/* sizes[i] stands for p2o_guard_size(g, i). */
Answer      p2o_guard_holds(const Guard *g, Dims *t, const Dim *sizes, DimValueFn *value,
                            void *user);
/* The guard in the names of those sizes, to be evaluated by Python with its modules math and
 * operator. */
const char *p2o_guard_python(const Guard *g, Dims *t, const Dim *sizes);
/* A size as Python writes it. */
const char *p2o_dim_python(Dims *t, Dim d);

#endif
