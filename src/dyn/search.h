/* What the parts of the search for a constant's elements share.
 *
 *   form    enumerates expressions of indices and sizes, each valued at a handful of elements
 *   offer   says what one of them may explain: all elements, a part of them, a condition
 *   layer   offers what is two steps from indices, and functions of forms
 *   part    finds parts (between bounds, on a side of a condition) and puts them together
 *   divide  looks for parts of several indices by themselves (divide.h)
 *   element decides
 */
#ifndef P2O_DYN_SEARCH_H
#define P2O_DYN_SEARCH_H

#include "base/vec.h"
#include "dyn/element.h"

enum {
    MARGIN_BITS = 4,            /* to the next that differs elsewhere */
    MAX_SIZES = 48,             /* forms of sizes alone: the cheapest */
    MAX_FORMS = 4000,
    MAX_TARGETS = 4 + MAX_INDICES,
    MAX_CONDITIONS = 72,        /* that elements may be told apart by */
    MAX_FOUND = 12,
    DEAREST_ELEMENT = 110,
    NSTEP = 17,                 /* numbers that an index is added to, multiplied, divided by */
    NQUICK = 24,
    NLINE = 3,
};

typedef struct Form {                   /* an expression with its values at the points */
    Expr   expr;
    double bits;
    bool   index;                       /* it varies inside a capture */
    size_t made;                        /* how many were before it: of two at the same cost the
                                         * first comes first, with every libc */
    double at[NPOINT];
} Form;

typedef struct Condition {
    Term     term;
    size_t   made;                      /* as of a Form */
    PointSet yes;
} Condition;

typedef struct Part {                   /* elements that one expression may give */
    PointSet over;
    int      n;
    int      line[NLINE][3], nline;     /* three points of a capture each: in an affine function
                                         * they lie on a line */
    Term     best;
} Part;

typedef struct Found {
    Element element;
    double  probes[NPOINT];
} Found;

typedef struct Search {
    Arena        *arena;
    const Tables *t;
    const Dim    *symbols;              /* of the inputs */
    size_t        nsymbol;
    Points        points;
    Form         *number[NSTEP];
    VEC(Form *)   sizes;                /* of sizes and numbers alone */
    VEC(Form *)   leaves;               /* indices, and what stands for one; of two that are the
                                         * same at all points, one */
    Form         *index[MAX_INDICES];   /* each of them */
    VEC(Form *)   forms;                /* one step from them */
    Map           known;                /* by values: one of each */
    size_t        nmade;                /* of them */
    int           quick[NQUICK];        /* points that most candidates are turned down by */
    Target        target[MAX_TARGETS];
    int           ntarget;
    Part          all;
    struct {
        Part part;                      /* between the least and the largest element */
        Term least, most;               /* those; NULL: no expression of sizes */
    } inner[2];                         /* of each capture, of all */
    int           ncondition;
    Condition     condition[MAX_CONDITIONS];
    Part          side[MAX_CONDITIONS][2];
    bool          two;                  /* elements are yes or no */
    double        yes, no;
    PointSet      is_yes;
    VEC(Condition) masks;               /* for pairs of them */
    Map           mask_known;
    bool          longer;               /* it went beyond the grammar of all numbers */
    double        limit;                /* bits: what costs more is not looked at */
    int           nfound;
    Found         found[MAX_FOUND];
} Search;
static inline bool same_set(const PointSet *x, const PointSet *y)
{
    return !memcmp(x, y, sizeof *x);
}

static inline bool is_part_of(const PointSet *x, const PointSet *of)
{
    for (size_t i = 0; i < COUNT_OF(x->w); i++)
        if (x->w[i] & ~of->w[i])
            return false;
    return true;
}

static inline PointSet set_not(const PointSet *x)
{
    PointSet out;
    for (size_t i = 0; i < COUNT_OF(x->w); i++)
        out.w[i] = ~x->w[i];
    return out;
}

static inline int set_count(const PointSet *x)
{
    int n = 0;
    for (int i = 0; i < NPOINT; i++)
        n += set_has(x, i);
    return n;
}

/* What costs as much or more is not of interest. */
static inline double search_dearest(const Search *s)
{
    return s->nfound ? s->found[0].element.bits + MARGIN_BITS : s->limit;
}

/* A candidate for all elements: kept if it gives them, in every capture. */
void p2o_search_see(Search *s, Term x, bool share);

/* form.c */
Form  p2o_form_of(ExprOp op, const Form *x, const Form *y, double more);
Form *p2o_form_number(Search *s, double v);
Form  p2o_form_base(const Search *s, int base);
void  p2o_forms_make(Search *s);

/* offer.c */
void p2o_part_lines(const Search *s, Part *part);
void p2o_offer_part(Search *s, Part *part, const Target *t, const Form *f);
/* `sides`: to the sides of conditions as well. */
void p2o_offer(Search *s, const Form *f, bool sides);
/* Offers the operator's result, of which the quick points are looked at first. */
void p2o_offer_made(Search *s, ExprOp op, const Form *x, const Form *y, double more, bool sides);

/* layer.c */
void p2o_offer_second(Search *s);
void p2o_offer_sums(Search *s);
void p2o_offer_functions(Search *s);
void p2o_offer_spread(Search *s);
void p2o_offer_resampled(Search *s);

/* part.c */
void p2o_parts_find(Search *s);
void p2o_parts_join(Search *s);

#endif
