/* Is a table an affine function of a candidate, with factors that are numbers or expressions of
 * sizes?
 *
 * A handful of elements decides first.  In every capture two of them give factor and offset, the
 * others must agree; what factor and offset are in the captures is then weighed as any number of a
 * program is (dyn/verdict). */
#ifndef P2O_DYN_FIT_H
#define P2O_DYN_FIT_H

#include "dyn/table.h"

enum { NPOINT = TABLE_BLOCK, BITS_STEP = 3 };   /* BITS_STEP: of an operator */

typedef struct PointSet { uint64_t w[NPOINT / 64]; } PointSet;

typedef struct Points {                 /* those of one capture side by side */
    Arena        *arena;
    const Tables *t;
    int           of[NPOINT];           /* the capture */
    double        bases[MAX_BASES][TABLE_BLOCK];
    double        probes[MAX_BASES][TABLE_BLOCK];       /* bases at elements of no capture */
    double        want[NPOINT];
    Bases         sizes;                /* those among the bases, for readings */
    int           nread[2];             /* readings of floats, of ints: they take longest, and
                                         * have a limit */
    uint64_t     *seen[2];              /* sieve of what expressions of sizes are in the captures,
                                         * floats and ints: most values are none of them */
    Map           read;                 /* values in the captures -> Term *: sizes that gave them */
} Points;

/* What is explained: the elements, or a function of them that has an inverse. */
typedef struct Target {
    ExprOp inverse;                     /* EXPR_SIZE: the elements themselves */
    const Expr *less;                   /* without this; NULL: as they are */
    double less_bits;
    double want[NPOINT], room[NPOINT];
} Target;

typedef struct Term {                   /* an expression; NULL: there is none */
    const Expr *expr;
    double      bits;
} Term;

void p2o_points_choose(Points *p, Arena *a, const Tables *t, const Dim *symbols, size_t nsymbol);
/* A function of the elements, NaN where it has no value; false: almost everywhere. */
bool p2o_target_make(const Points *p, ExprOp inverse, Target *out);
/* The elements without x. */
void p2o_target_less(const Points *p, const Expr *x, double bits, Target *out);

static inline bool set_has(const PointSet *s, int i) { return s->w[i / 64] >> (i % 64) & 1; }
static inline void set_add(PointSet *s, int i) { s->w[i / 64] |= (uint64_t)1 << (i % 64); }

/* What the elements are over some points, by a candidate with its values there.  `shape`: but for a
 * factor in each capture, which may be any. */
Term p2o_fit(Points *p, const PointSet *over, const Target *t, const Expr *g, double bits,
             const double *values, bool shape);
/* The same number in all captures, or an expression of sizes.  NaN: a capture that does not say. */
Term p2o_fit_sizes(Points *p, const double *at, double room);

#endif
