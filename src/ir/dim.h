/* Symbolic integers: the sizes of tensors.
 *
 * A Dim is immutable and interned in its Dims table, so equal means `==`.  Normal form: a sum of
 * integer multiples of products of atoms; an atom is a symbol or an opaque floordiv, mod, min, max
 * or function of normal forms.  NULL is "not representable" (overflow, division by zero, too large,
 * an expression that is not an integer): every operation on NULL gives NULL, and the caller asks
 * once.
 *
 * Symbols stand for non-negative sizes unless a range says otherwise.  Questions about two Dims
 * have three answers.  Simplifications hold for every assignment inside the ranges; a divisor that
 * may be 0 stays, and where it is 0 the Dim has no value. */
#ifndef P2O_IR_DIM_H
#define P2O_IR_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef const struct DimExpr *Dim;
typedef struct Dims Dims;

typedef enum Answer { NO, YES, CANNOT_TELL } Answer;

#define NO_UPPER INT64_MAX                              /* as a bound: unbounded */
#define NO_LOWER INT64_MIN

Dims  *p2o_dims_new(Arena *a);
Arena *p2o_dims_arena(const Dims *t);

Dim  p2o_dim_int(Dims *t, int64_t v);
/* Found or made, with range [0, NO_UPPER].  NULL when the name is no [A-Za-z_][A-Za-z0-9_.]* of at
 * most 255 bytes: replacing bytes could make two sizes one. */
Dim  p2o_dim_sym(Dims *t, const char *name);
Dim  p2o_dim_sym_of(Dims *t, Str name);
bool p2o_dim_has_sym(const Dims *t, Str name);          /* already made */
bool p2o_dim_name_ok(Str name);
/* A symbol that was not there before: `stem` if free, else stem_1, stem_2, ...  Bytes that no name
 * may have become `_`. */
Dim  p2o_dim_fresh(Dims *t, const char *stem);
/* Must come before the symbol takes part in an expression: simplification relies on it.  Bounds
 * with lo > hi are ignored. */
void p2o_dim_set_range(Dims *t, Dim sym, int64_t lo, int64_t hi);
/* The least the symbol can be by the capture.  PyTorch writes 2 where 1 and even 0 work as well, so
 * only p2o_dim_assume relies on it. */
void p2o_dim_set_floor(Dims *t, Dim sym, int64_t lo);
/* What the symbol was when the program was captured; at least 1 makes that its floor. */
void p2o_dim_set_hint(Dims *t, Dim sym, int64_t v);

Dim p2o_dim_add(Dims *t, Dim a, Dim b);
Dim p2o_dim_sub(Dims *t, Dim a, Dim b);
Dim p2o_dim_mul(Dims *t, Dim a, Dim b);
Dim p2o_dim_neg(Dims *t, Dim a);
Dim p2o_dim_floordiv(Dims *t, Dim a, Dim b);            /* Python's // */
Dim p2o_dim_ceildiv(Dims *t, Dim a, Dim b);             /* -((-a) // b) */
Dim p2o_dim_mod(Dims *t, Dim a, Dim b);                 /* Python's %: the sign of b */
Dim p2o_dim_min(Dims *t, Dim a, Dim b);
Dim p2o_dim_max(Dims *t, Dim a, Dim b);
Dim p2o_dim_min_of(Dims *t, int n, const Dim *list);    /* n >= 1 */
Dim p2o_dim_max_of(Dims *t, int n, const Dim *list);
Dim p2o_dim_pow(Dims *t, Dim a, int64_t e);             /* e >= 0 */
/* Functions of one Dim.  isqrt has no value below 0, pow2 (2**a) none outside of 0..62; bit_length
 * is Python's.  The others round factor * a, or a / factor, as Python computes them in doubles. */
typedef enum DimFn {
    FN_ISQRT, FN_BIT_LENGTH, FN_POW2,
    FN_TRUNC, FN_FLOOR, FN_CEIL, FN_ROUND,              /* of factor * a; halves to even */
    FN_TRUNC_OVER, FN_FLOOR_OVER, FN_CEIL_OVER, FN_ROUND_OVER,  /* of a / factor, likewise */
} DimFn;
Dim p2o_dim_fn(Dims *t, DimFn fn, double factor, Dim a);
/* A float of the program: factor * a, a / factor, sqrt(a) or log2(a). */
typedef enum RealKind { REAL_TIMES, REAL_OVER, REAL_SQRT, REAL_LOG2 } RealKind;
typedef struct DimReal {
    RealKind kind;
    double   factor;
    Dim      a;
} DimReal;
Dim p2o_dim_rounded(Dims *t, DimFn how, DimReal real);  /* how: FN_TRUNC .. FN_ROUND */
/* Python's spelling, up to the operand, of a function that p2o_dim_text writes as `name(`; NULL:
 * none. */
const char *p2o_dim_fn_python(Str name);
/* a & mask, for any mask. */
Dim p2o_dim_and(Dims *t, Dim a, int64_t mask);
/* a / b where b divides a as a polynomial, so for every b but 0; NULL when that cannot be seen. */
Dim p2o_dim_exact_div(Dims *t, Dim a, Dim b);
/* The same with x % y written as x - y*(x//y), which shows what x and x//y have in common. */
Dim p2o_dim_without_mod(Dims *t, Dim d);
/* 4*x - 12 without its 4. */
Dim p2o_dim_without_number(Dims *t, Dim d);

bool        p2o_dim_is_int(Dim d, int64_t *v);          /* v may be NULL; false for NULL */
bool        p2o_dim_is_sym(Dim d);
const char *p2o_dim_name(Dim sym);                      /* of a symbol */

/* For every assignment, for none, or neither is known.  eq may see more than `==`: it relates
 * quotients to remainders.  NULL: CANNOT_TELL. */
Answer p2o_dim_eq(Dims *t, Dim a, Dim b);
Answer p2o_dim_lt(Dims *t, Dim a, Dim b);
Answer p2o_dim_le(Dims *t, Dim a, Dim b);
/* Bounds that hold for every assignment inside the symbols' ranges; not always the tightest. */
void p2o_dim_range(Dims *t, Dim d, int64_t *lo, int64_t *hi);
/* d where every symbol is at least its floor, or `most` if that is less: without the mins and maxes
 * that only smaller sizes need. */
Dim  p2o_dim_assume(Dims *t, Dim d, int64_t most);
void p2o_dim_assumed_range(Dims *t, Dim d, int64_t *lo, int64_t *hi);
/* Value with every symbol at its hint; false when one has none, or on overflow or division by 0. */
bool p2o_dim_hint(Dims *t, Dim d, int64_t *v);

typedef bool DimValueFn(void *user, Dim sym, int64_t *v);
bool p2o_dim_eval(Dims *t, Dim d, DimValueFn *value, void *user, int64_t *out);

/* Every symbol replaced by what fn returns for it (the symbol itself to keep it). */
typedef Dim DimReplaceFn(void *user, Dim sym);
Dim p2o_dim_subst(Dims *t, Dim d, DimReplaceFn *fn, void *user);

/* Calls fn for each distinct symbol, in order of first appearance. */
typedef void DimVisitFn(void *user, Dim sym);
void p2o_dim_symbols(Dim d, DimVisitFn *fn, void *user);
/* Some symbol is in both. */
bool p2o_dim_are_kin(Dim a, Dim b);

/* Structure, for code that turns a Dim into something else (nodes, text). */
typedef enum DimKind {
    DIM_INT, DIM_SYM, DIM_FLOORDIV, DIM_MOD, DIM_MIN, DIM_MAX, DIM_FN, DIM_SUM
} DimKind;
typedef struct DimTerm {            /* coef * product of atom[i]^power[i] */
    int64_t    coef;
    int        natom;
    const Dim *atom;
    const int *power;
} DimTerm;
DimKind        p2o_dim_kind(Dim d);
/* Every min and max replaced by the one of its operands that fn returns the number of; -1: kept.
 * An operand is NULL past the limits. */
typedef int DimChooseFn(void *user, DimKind kind, int n, const Dim *list);
Dim p2o_dim_choose(Dims *t, Dim d, DimChooseFn *fn, void *user);
bool           p2o_dim_has(Dim d, DimKind kind);        /* of that kind, or made of one that is */
Dim            p2o_dim_operand(Dim d, int i);           /* 0 or 1, of FLOORDIV .. MAX; 0, of FN */
DimFn          p2o_dim_fn_of(Dim d, double *factor);    /* of DIM_FN */
int            p2o_dim_nterm(Dim d);    /* of any: an atom is one term of itself; 0 has none */
const DimTerm *p2o_dim_term(Dim d, int i);      /* symbols first in table order; constant last */

/* Short text: `past + seq`, `(h + 1)//2`, `8 - s`, `2*b*s`, `b^2`, `max(a, b)`, `s % 8`,
 * `trunc(0.7*s)`, `round(s/3)`.  Reads back through p2o_dim_parse as the same Dim. */
const char *p2o_dim_text(Dims *t, Dim d);               /* NULL gives "?" */

/* What p2o_dim_text prints, sympy's str form (`((s0 + 1)//2)`, `s0**2`, `Mod(s0, 8)`, `Max(1, s0)`,
 * `s0/2` where exact) and its srepr form (`Add(Symbol('s77', positive=True, integer=True),
 * Integer(1))`); they are one grammar.  NULL with *error set when it does not parse; NULL with
 * *error NULL when it parses but is no integer expression of this kind (floats, booleans ...).
 * Floats count only where rounded at once, as in TruncToInt(0.7*ToFloat(s)). */
Dim p2o_dim_parse(Dims *t, Str text, const char **error);

#endif
