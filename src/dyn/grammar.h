/* The expressions of sizes that people write, and what they cost.
 *
 * One grammar for all numbers of a program: sizes, numbers, + - * // % min max and rounding up, the
 * whole root and logarithm; for floats also / and square root, logarithm and their inverses.  An
 * expression costs bits: about what it takes to say it.  It is valued at points: the captures
 * first, then probes, which are sizes of no capture.  Two expressions with the same values at all
 * points are taken for the same. */
#ifndef P2O_DYN_GRAMMAR_H
#define P2O_DYN_GRAMMAR_H

#include "ir/bind.h"

enum {
    NPROBE = 52,                /* enough to tell ways of rounding apart: round(0.1*n)//2 */
    MAX_POINTS = MAX_CAPTURES + NPROBE,
    MAX_BASES = 32,             /* sizes that one enumeration combines; further ones are left out */
    DEAREST = 30,               /* bits: expressions beyond are not looked at */
    BITS_OP = 3,                /* of an operator */
};

typedef enum ExprOp {
    EXPR_NUMBER, EXPR_SIZE,
    EXPR_ADD, EXPR_SUB, EXPR_MUL, EXPR_FLOOR, EXPR_CEIL, EXPR_MOD, EXPR_LACK, EXPR_MIN, EXPR_MAX,
    EXPR_ROOT, EXPR_BITS, EXPR_POWER,           /* whole: isqrt(a), a.bit_length(), 2 ** a */
    EXPR_SCALED, EXPR_RAISED, EXPR_ROUNDED,     /* int, ceil and round of number * a */
    EXPR_NEAREST,                               /* round(a / number) */
    EXPR_QUOTIENT, EXPR_SQRT, EXPR_LOG, EXPR_LOG2,
    EXPR_TO_THE,                                /* a ** b, of floats that are not negative */
    EXPR_ABS, EXPR_COS, EXPR_SIN, EXPR_EXP, EXPR_ROUND, /* of elements of constants; rounded half to
                                                         * even */
    EXPR_AT_LEAST_0, EXPR_IS_0, EXPR_AND, EXPR_OR,      /* conditions: 1 or 0 */
    EXPR_CHOICE                                 /* c ? a : b */
} ExprOp;

typedef struct Expr {
    ExprOp             op;
    const struct Expr *a, *b, *c;
    double             number;  /* of NUMBER, SCALED, RAISED, ROUNDED and NEAREST */
    int                base;    /* of SIZE: which */
} Expr;

/* What expressions are made of, valued at the points. */
typedef struct Bases {
    Dims  *dims;
    const Dim *symbols;                 /* of the inputs */
    size_t nsymbol;
    int    n, nfit, ncapture, npoint;   /* points: captures to fit, those held out, probes */
    Dim    dim[MAX_BASES];
    double at[MAX_BASES][MAX_POINTS];
} Bases;

/* Bits. */
double p2o_number_bits(double v);               /* of a number, written out or as a short fraction
                                                 * or root */
/* The whole numbers that v may be the inverse, root or logarithm of, and the bits of that formula;
 * how many. */
enum { NWITHIN = 5 };
int    p2o_number_within(double v, double *whole, double *bits);
double p2o_base_bits(const Bases *b);           /* of one of the sizes */

/* The sizes' values at the captures and at probes inside the ranges.  A size that has no value
 * there is left out; false when there is no more room. */
void p2o_bases_start(Bases *b, Bindings *bind, const Dim *symbols, size_t n);
bool p2o_bases_add(Bases *b, Bindings *bind, Dim d);
/* What an expression of the symbols is at probe i; false: nothing. */
bool p2o_probe(Dims *t, const Dim *symbols, size_t n, Dim d, int i, int64_t *v);
/* Sizes that are probed instead of the usual ones. */
typedef struct Probes {
    const Dim *symbols;                 /* of the inputs */
    size_t     n;
    int64_t  (*at)[NPROBE];             /* of each symbol; 0: there is no such probe */
} Probes;
bool p2o_probe_at(Dims *t, const Probes *p, Dim d, int i, int64_t *v);
void p2o_bases_move(Bases *b, const Probes *p);         /* to these probes */

/* Calls fn with every expression of up to DEAREST bits; `values` are those in the captures to fit,
 * NaN where it has none.  The expression lies on the stack: p2o_expr_keep copies it. */
typedef void ExprFn(void *user, const Expr *e, double bits, const double *values);
void p2o_enumerate_whole(const Bases *b, ExprFn *fn, void *user);
void p2o_enumerate_float(const Bases *b, ExprFn *fn, void *user);
/* Whole ones of one step that the first `nown` bases take part in. */
void p2o_enumerate_own(const Bases *b, int nown, ExprFn *fn, void *user);

const Expr *p2o_expr_keep(Arena *a, const Expr *e);
const Expr *p2o_expr_of(Arena *a, ExprOp op, const Expr *x, const Expr *y);
const Expr *p2o_expr_number(Arena *a, double v);
/* Its operator on values; NaN where it has none. */
double      p2o_expr_apply(const Expr *e, double x, double y, double z);
bool        p2o_expr_eval(const Bases *b, const Expr *e, int point, double *v);
/* NULL: not a whole number of the kind that files can compute (a root, a logarithm). */
Dim         p2o_expr_dim(const Bases *b, const Expr *e);
const char *p2o_expr_text(Arena *a, const Bases *b, const Expr *e);
bool        p2o_expr_is_number(const Expr *e);

#endif
