/* Several captures of one model at different sizes, lined up call by call.
 *
 * Each may lack calls that do nothing at its sizes (a slice of a whole axis, a pad by 0): the open
 * program has them all.  Captures that are only checked may have fixed sizes where the first has
 * symbols.  What is lined up is a copy of the first program's calls, open to change; what was read
 * stays as it is. */
#ifndef P2O_DYN_LINEUP_H
#define P2O_DYN_LINEUP_H

#include "aten/ops.h"
#include "ir/bind.h"

typedef struct LinedCall {
    Call       *call;                   /* of the open program */
    const Call *of[MAX_CAPTURES];       /* its like in each capture; NULL: it did nothing there */
} LinedCall;

/* A number of the open program that capture k, a check, has as a literal. */
typedef struct Claim {
    const Call *call;
    const Arg  *arg;
    int         k;
    int64_t     value;
} Claim;

typedef struct Lineup {
    Ops            *ops;
    Program *const *p;
    int             n;
    VEC(Claim)      claims;             /* where the first has sizes as symbols */
    VEC(LinedCall)  calls;              /* in order, those of bodies after the call that has them */
} Lineup;

/* Programs are bound and in functional form and share a Dims table; p[0]'s main body becomes the
 * open one.  false after a diagnostic: the first place where they part ways. */
bool p2o_line_up(Lineup *l, Bindings *b);

/* The axes of p[0]'s inputs that differ between captures get symbols: "x_0" for axis 0 of x, unless
 * declared already. */
bool p2o_line_up_inputs(Program *const *p, int n, Bindings *b);

/* What capture k recorded of a value of the open program. */
static inline Type p2o_recorded_at(const Var *v, int k)
{
    return k == 0 ? v->recorded : v->also ? v->also[k - 1] : (Type){ 0 };
}

#endif
