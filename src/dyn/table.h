/* A constant that forward() made, as it was in every capture.
 *
 * Its elements are asked for as functions of bases: indices along the axes that are not 1, how far
 * the last two are apart with its sign and without, the sizes of those axes, and the sizes of the
 * inputs. */
#ifndef P2O_DYN_TABLE_H
#define P2O_DYN_TABLE_H

#include <math.h>

#include "dyn/grammar.h"
#include "ir/shape.h"
#include "ir/tensor.h"

enum {
    MAX_INDICES = 4,                    /* axes along which it may vary */
    MAX_LEVELS = 3,
    MOST_SLICES = 16,
};

typedef struct Table {                  /* in one capture */
    const int64_t *sizes;
    double        *v;
    uint64_t       n;
} Table;

typedef struct Tables {
    int      n;                         /* captures */
    int      rank;
    DType    dtype;
    bool     whole;                     /* elements are ints */
    double   scale;                     /* the largest element */
    double   level[MAX_LEVELS];         /* the scale of elements less than it, the least first: many
                                         * of them, far from all larger ones */
    int      nlevel;
    double   slice[MAX_INDICES][MOST_SLICES];   /* along an axis that is short and never changes:
                                         * the largest element of each slice; 0: another axis */
    bool     rounded;                   /* beside other elements than these: they have no scale of
                                         * their own */
    Table    at[MAX_CAPTURES];
    int      nindex, index[MAX_INDICES];        /* axes that are not 1, the last first */
    int      nsymbol;                   /* of the inputs, those that no axis of the constant
                                         * equals */
    Dim      symbol[MAX_BASES];
    int      nlike[MAX_BASES];          /* of each size: how many sizes of the inputs were the same
                                         * in all captures */
    Bindings *bind;
    bool      part;                     /* of a constant: one of many indices is divided further,
                                         * or not looked at */
    int      *left;                     /* searches that it and its parts may still take */
} Tables;

/* false: too large, not readable, or of more axes than that. */
bool p2o_tables_load(Arena *a, Tables *t, const Tensor *const *v);
/* Finds the axes that are not 1, again after a change of sizes. */
bool p2o_tables_index(Tables *t);
/* The inputs' sizes that are bases too. */
void p2o_tables_symbols(Tables *t, const Dim *symbols, size_t n);

static inline int tables_distances(const Tables *t) { return t->nindex > 1 ? 2 : 0; }
static inline int tables_first_size(const Tables *t) { return t->nindex + tables_distances(t); }
static inline int tables_nbase(const Tables *t)
{
    return tables_first_size(t) + t->nindex + t->nsymbol;
}

/* The bases at one element of capture k. */
void p2o_tables_bases(const Tables *t, int k, uint64_t flat, double *at);
/* Size i of those that are bases, in capture k. */
double p2o_tables_size(const Tables *t, int i, int k);

/* What floats of this type are off by anyway, as they were rounded or computed: one like v. */
static inline double tables_slack(const Tables *t, double v)
{
    double scale = t->scale;
    for (int i = t->nlevel - 1; i >= 0; i--)
        scale = fabs(v) < t->level[i] ? t->level[i] : scale;
    return t->whole ? 0 : scale * (t->dtype == DT_F64 ? 1e-11 : 1e-7);
}
static inline double tables_share(const Tables *t)
{
    return t->whole ? 0 : t->dtype == DT_F64 ? 1e-10 : 1e-6;
}
/* A few ulp of what numpy rounds to; ints are exact. */
bool p2o_tables_alike(const Tables *t, double x, double y);

enum { TABLE_BLOCK = 128 };
/* Values of an expression at up to TABLE_BLOCK points. */
void p2o_expr_block(const Expr *e, double (*bases)[TABLE_BLOCK], int n, double *out);
/* The expression gives every element of every capture; `share`: divided by their sum. */
bool p2o_tables_given(const Tables *t, const Expr *e, bool share);

#endif
