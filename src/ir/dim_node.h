/* The inside of a Dim, shared by the files dim*.c and by nobody else.
 *
 * A monomial is interned like a Dim, so a polynomial is a plain array of (coefficient, monomial)
 * in one fixed order.  That order multiplies through (p before q means p*m before q*m), so sums
 * merge, products shift and divide, and none of it sorts.
 *
 * The limits bound every walk over an expression, in time and in stack: beyond them is NULL. */
#ifndef P2O_IR_DIM_NODE_H
#define P2O_IR_DIM_NODE_H

#include "base/vec.h"
#include "ir/dim.h"

enum {
    DIM_MAX_TERMS = 256,
    DIM_MAX_DEGREE = 32,        /* of a monomial: the sum of its powers */
    DIM_MAX_DEPTH = 32,         /* opaque atoms inside opaque atoms */
    DIM_MAX_WEIGHT = 1024,      /* nodes of the expression written out as a tree */
    DIM_MAX_LIST = 24,          /* operands of one min or max */
};

typedef struct Mono {
    uint32_t   id;
    int        natom;           /* 0: the monomial 1 */
    int        degree;
    const Dim *atom;            /* in atom order */
    const int *power;
} Mono;

typedef struct Part {
    int64_t     coef;           /* never 0 */
    const Mono *mono;
} Part;

typedef struct Poly {           /* a sum under construction; lives on the stack */
    int  n;
    Part at[DIM_MAX_TERMS];
} Poly;

typedef struct Range {
    int64_t lo, hi;
} Range;

struct DimExpr {
    DimKind        kind;
    uint32_t       id;          /* order of creation */
    int            depth, weight;
    int            nterm;
    const Part    *part;        /* the same terms twice: to calculate with, and for callers */
    const DimTerm *term;
    Range          range;
    bool           is_used;     /* a symbol with expressions made of it */
    bool           has_hint;
    int64_t        value;       /* of DIM_INT; the hint of DIM_SYM */
    int64_t        floor;       /* of DIM_SYM; 0: none */
    const char    *name;        /* of DIM_SYM */
    Dim            operand[2];  /* the second is NULL of DIM_FN */
    DimFn          fn;          /* of DIM_FN, and its factor: 0 where it has none */
    double         factor;
    const char    *text;        /* once printed */
};

struct Dims {
    Arena      *arena;
    Map         ints, syms, opaques, sums, monos, stems;
    VEC(struct DimExpr *) nodes;        /* by id: operands come before what is made of them */
    uint32_t    nmono;
    uint64_t    work;           /* terms merged so far */
    const Mono *one;
};

/* Caches in an immutable node. */
static inline struct DimExpr *thaw(Dim d) { return (struct DimExpr *)(uintptr_t)d; }

static inline bool is_opaque(Dim d) { return d->kind >= DIM_FLOORDIV && d->kind <= DIM_FN; }

/* NULL past the limits. */
Dim         p2o_dim_intern(Dims *t, const Poly *p);
Dim         p2o_dim_opaque(Dims *t, DimKind kind, Dim a, Dim b);        /* as it stands */
Dim         p2o_dim_fn_atom(Dims *t, DimFn fn, double factor, Dim a);   /* as it stands */
const Mono *p2o_mono_intern(Dims *t, int natom, const Dim *atom, const int *power);

/* < 0 when a comes before b. */
int         p2o_atom_order(Dim a, Dim b);
const Mono *p2o_mono_mul(Dims *t, const Mono *a, const Mono *b);
const Mono *p2o_mono_div(Dims *t, const Mono *a, const Mono *b);        /* NULL: not a multiple */
/* The largest monomial that divides every part; `seed` NULL, or another one it must divide. */
const Mono *p2o_mono_common(Dims *t, int n, const Part *at, const Mono *seed);

/* p += k * m * (the sum of the n parts); false on overflow and past the limits. */
bool p2o_poly_add(Dims *t, Poly *p, int n, const Part *at, int64_t k, const Mono *m);
static inline bool poly_add_dim(Dims *t, Poly *p, Dim d, int64_t k)
{
    return p2o_poly_add(t, p, d->nterm, d->part, k, t->one);
}

/* a = q*b + r, moving into q what the leading term of b divides; false on overflow. */
bool p2o_dim_divide(Dims *t, Dim a, Dim b, Dim *q, Dim *r);

static inline Range bounds_of(Dim d) { return d->range; }

typedef enum FnOperand { FN_ALONE, FN_TIMES, FN_OVER } FnOperand;       /* a, factor*a, a/factor */
const char *p2o_fn_name(DimFn fn);
FnOperand   p2o_fn_operand(DimFn fn);
bool        p2o_fn_value(DimFn fn, double factor, int64_t a, int64_t *out);
Range       p2o_fn_range(Dim d);
/* d <= operand + *offset for every value that d has, or >= when not `above`; false: not known. */
bool        p2o_fn_relates(Dim d, bool above, int64_t *offset);
/* x = num / den where that is exact and short: 2.0, 0.5, -1.25. */
bool        p2o_short_fraction(double x, int64_t *num, int64_t *den);

/* From the ranges of what d is made of. */
void  p2o_dim_find_range(Dims *t, Dim d);
bool  p2o_dim_never_zero(Dim d);
/* The one value of x // c for all x in r, if there is one; c > 0. */
bool  p2o_range_quotient(Range r, int64_t c, int64_t *q);

#endif
