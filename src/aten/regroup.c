/* Reshapes over sizes that are not known yet.
 *
 * A reshape keeps the elements in order, so both shapes split, left to right, into groups of equal
 * product; the captured sizes say where.  Inside a group sizes follow from each other: one unknown
 * is solved for, a group of numbers stays numbers, and a symbol goes to the one unknown that it can
 * be part of.  Where it could be part of several, it is left until other calls have settled some of
 * them; what is unsettled in the end is refused. */
#include "aten/infer.h"

typedef struct Hints {
    int64_t at[MAX_CAPTURES];
} Hints;

typedef struct Side {               /* of a reshape, or of a group in it */
    Shape        shape;         /* a hole is NULL */
    const Hints *hints;
} Side;

typedef struct Group {
    Side from, to;
} Group;

bool is_soft(const Infer *in, Dim d)
{
    return d && p2o_dim_is_sym(d) && p2o_role(in->bind, d) == ROLE_SOFT &&
           !p2o_is_bound(in->bind, d);
}

bool has_open(const Infer *in, Dim d) { return p2o_has_soft(in->bind, d); }

/* A -1, or the open size that took its place. */
static bool is_hole(const Infer *in, Dim d)
{
    return !d || (is_soft(in, d) && p2o_is_hole(in->bind, d));
}

static bool has_soft(const Infer *in, Shape s)
{
    for (int i = 0; i < s.rank; i++)
        if (has_open(in, s.at[i]))
            return true;
    return false;
}

static bool hints_of(Infer *in, Dim d, Hints *h)
{
    for (int k = 0; k < p2o_ncapture(in->bind); k++)
        if (!p2o_hint_at(in->bind, d, k, &h->at[k]))
            return false;
    return true;
}

static bool hints_equal(const Infer *in, const Hints *a, const Hints *b)
{
    return !memcmp(a->at, b->at, (size_t)p2o_ncapture(in->bind) * sizeof *a->at);
}

static bool hints_times(const Infer *in, Hints *a, const Hints *b)
{
    for (int k = 0; k < p2o_ncapture(in->bind); k++)
        if (__builtin_mul_overflow(a->at[k], b->at[k], &a->at[k]))
            return false;
    return true;
}

/* a / b, where b divides a in every capture. */
static bool hints_divide(const Infer *in, const Hints *a, const Hints *b, Hints *out)
{
    for (int k = 0; k < p2o_ncapture(in->bind); k++) {
        if (b->at[k] == 0 || a->at[k] % b->at[k])
            return false;
        out->at[k] = a->at[k] / b->at[k];
    }
    return true;
}

static bool is_same_number(const Infer *in, const Hints *h)
{
    for (int k = 1; k < p2o_ncapture(in->bind); k++)
        if (h->at[k] != h->at[0])
            return false;
    return true;
}

bool harden(Infer *in, Dim soft)
{
    Hints h;
    if (!is_soft(in, soft))
        return true;
    if (!hints_of(in, soft, &h) || !is_same_number(in, &h))
        return false;
    p2o_bind(in->bind, soft, int_dim(in, h.at[0]));
    return true;
}

static bool leave_unsettled(Infer *in, Dim what)
{
    p2o_note_unsettled(in->bind, what, in->call->target, in->call->loc);
    return true;
}

enum { MAX_FACTORS = 8 };

/* The factors of a size go to the unknowns that they divide in every capture; what is left of each
 * unknown is a number.  Or, with parts, to those that are a part of them: 10 of 20 may be s//2. */
typedef struct Spread {
    Infer *in;
    int    n, nfactor, hole;    /* hole: the unknown that is a -1; -1: none */
    bool   parts;
    Dim    factor[MAX_FACTORS];
    Hints  hint[MAX_FACTORS];
    Hints  left[MAX_RANK], part[MAX_RANK];
    Dim    value[MAX_RANK], found[MAX_RANK];
    int    ways, tries;         /* ways 2: several, or too many to try */
    bool   plain;               /* sizes are as they are, and numbers by themselves */
} Spread;

static bool add_factor(Spread *s, Dim d)
{
    if (s->nfactor == MAX_FACTORS || !hints_of(s->in, d, &s->hint[s->nfactor]))
        return false;
    s->factor[s->nfactor++] = d;
    return true;
}

/* Atoms that divide every term, and the sum that remains; numbers are left out. */
static bool add_factors(Spread *s, Dim d)
{
    bool           ok = true;
    const DimTerm *first = p2o_dim_nterm(d) ? p2o_dim_term(d, 0) : NULL;
    for (int i = 0; first && i < first->natom; i++)
        for (Dim q; ok && (q = p2o_dim_exact_div(s->in->dims, d, first->atom[i])); d = q)
            ok = add_factor(s, first->atom[i]);
    return ok && first &&
           (p2o_dim_is_int(d, NULL) || add_factor(s, p2o_dim_without_number(s->in->dims, d)));
}

static void count_way(Spread *s)
{
    Dim  whole[MAX_RANK];
    bool differs = false, plain = true;
    for (int i = 0; i < s->n; i++) {
        if (!is_same_number(s->in, &s->left[i]) || !is_same_number(s->in, &s->part[i]))
            return;
        whole[i] = p2o_dim_mul(s->in->dims, s->value[i], int_dim(s->in, s->left[i].at[0]));
        whole[i] = p2o_dim_floordiv(s->in->dims, whole[i], int_dim(s->in, s->part[i].at[0]));
        differs |= whole[i] != s->found[i];
        plain &= i == s->hole || p2o_dim_is_int(s->value[i], NULL) ||
                 (s->left[i].at[0] == 1 && s->part[i].at[0] == 1);
    }
    s->ways += differs || !s->ways;
    s->plain = plain;
    memcpy(s->found, whole, (size_t)s->n * sizeof *whole);
}

/* Gives the factor to unknown i: it divides what is left of it, or that divides it. */
static bool take_factor(Spread *s, int k, int i)
{
    if (hints_divide(s->in, &s->left[i], &s->hint[k], &s->left[i]))
        return true;
    return s->parts && is_same_number(s->in, &s->part[i]) && s->part[i].at[0] == 1 &&
           hints_divide(s->in, &s->hint[k], &s->left[i], &s->part[i]) &&
           hints_divide(s->in, &s->left[i], &s->left[i], &s->left[i]);
}

static void spread_from(Spread *s, int k)
{
    enum { MOST_TRIES = 20000 };
    if (s->tries++ > MOST_TRIES)
        s->ways = 2;
    if (k == s->nfactor)
        count_way(s);
    for (int i = 0; k < s->nfactor && i < s->n && s->ways < 2; i++) {
        Hints had = s->left[i], part = s->part[i];
        Dim   value = s->value[i];
        s->value[i] = p2o_dim_mul(s->in->dims, value, s->factor[k]);
        if (take_factor(s, k, i))
            spread_from(s, k + 1);
        s->left[i] = had;
        s->part[i] = part;
        s->value[i] = value;
    }
}

/* Sizes stand as they stood; a reshape that exchanges them is rarely meant. */
static bool in_order(Shape known, const Dim *found, int n)
{
    int last = -1;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < known.rank && !p2o_dim_is_int(found[i], NULL); k++) {
            if (known.at[k] != found[i])
                continue;
            if (k < last)
                return false;
            last = k;
            break;
        }
    return true;
}

/* Several unknowns: settled where there is one way only.  Where that makes a multiple of a size, a
 * part of it elsewhere would be as likely, and beside a -1 a number. */
static bool spread(Infer *in, const Call *c, Shape known, Dim quotient, const Side *to,
                   const int *unknown, int n)
{
    Spread s = { .in = in, .n = n, .hole = -1 };
    for (int i = 0; i < n; i++) {
        s.value[i] = int_dim(in, 1);
        s.left[i] = to->hints[unknown[i]];
        if (is_hole(in, to->shape.at[unknown[i]]))
            s.hole = i;
        for (int k = 0; k < p2o_ncapture(in->bind); k++)
            s.part[i].at[k] = 1;
    }
    if (!add_factors(&s, quotient))
        return leave_unsettled(in, quotient);
    spread_from(&s, 0);
    if (s.ways == 1 && (!s.plain || !in_order(known, s.found, n))) {
        s.parts = true;
        s.ways = s.hole >= 0 ? 2 : 0;
        spread_from(&s, 0);
    }
    if (s.ways != 1)
        return leave_unsettled(in, s.factor[0]);
    for (int i = 0; i < n; i++) {
        Dim d = to->shape.at[unknown[i]];
        if (d && !must_equal(in, c, d, s.found[i], "size"))
            return false;
    }
    return true;
}

/* Division by a number is taken to come out even, which the model then needs. */
static Dim quotient_of(Infer *in, Dim x, Dim by)
{
    Dim q = p2o_dim_exact_div(in->dims, x, by);
    return q || !p2o_dim_is_int(by, NULL) ? q : p2o_dim_floordiv(in->dims, x, by);
}

/* What a -1 among sizes stands for, rounded down.  PyTorch takes none beside a size of 0, so a size
 * that divides the number of elements cancels: (x*b)//(8*b) is x//8. */
static Dim size_of_hole(Infer *in, Dim total, Shape to, int hole)
{
    Dim others = int_dim(in, 1);
    for (int i = 0; i < to.rank; i++) {
        bool number = i == hole || p2o_dim_is_int(to.at[i], NULL);
        Dim  q = number ? NULL : p2o_dim_exact_div(in->dims, total, to.at[i]);
        total = q ? q : total;
        others = q || i == hole ? others : p2o_dim_mul(in->dims, others, to.at[i]);
    }
    Dim exact = p2o_dim_exact_div(in->dims, total, others);
    if (!exact)     /* n + -n % 8 over (n + 7)//8, what padding to whole chunks has, is 8 */
        exact = p2o_dim_exact_div(in->dims, p2o_dim_without_mod(in->dims, total), others);
    return exact ? exact : p2o_dim_floordiv(in->dims, total, others);
}

/* What a -1 stands for beside a size that divides by no rule of ours, min(b, 4): the quotient all
 * the same, which has to come out even.  Symbols may turn out to be equal yet. */
static Dim rest_of(Infer *in, Shape known, Shape to, int hole)
{
    Dim total = shape_nelem(in->dims, known);
    for (int i = 0; i < to.rank; i++) {
        DimKind kind = i == hole ? DIM_INT : p2o_dim_kind(to.at[i]);
        if (kind == DIM_SUM || (kind == DIM_SYM && !p2o_dim_exact_div(in->dims, total, to.at[i])))
            return NULL;
    }
    return size_of_hole(in, total, to, hole);
}

/* One side has no unknowns: the other's follow from it. */
static bool solve_group(Infer *in, const Call *c, Shape known, const Side *side)
{
    Dim   quotient = shape_nelem(in->dims, known);
    Shape to = side->shape;
    int   unknown[MAX_RANK], n = 0, holes = 0;
    for (int i = 0; i < to.rank; i++) {
        if (!to.at[i] || has_soft(in, slice_shape(to, i, i + 1))) {
            holes += !to.at[i];
            unknown[n++] = i;
            continue;
        }
        if (quotient)
            quotient = quotient_of(in, quotient, to.at[i]);
    }
    if (n == 1 && !quotient && to.at[unknown[0]] && is_hole(in, to.at[unknown[0]]))
        quotient = rest_of(in, known, to, unknown[0]);
    if (n > 0 && !quotient)
        return true;                            /* symbols that are not known to be equal yet */
    if (n == 0)
        return must_equal(in, c, shape_nelem(in->dims, known), shape_nelem(in->dims, to),
                          "number of elements");
    if (n == 1)
        return holes || must_equal(in, c, to.at[unknown[0]], quotient, "size");
    bool settled = true;
    if (p2o_dim_is_int(quotient, NULL)) {
        for (int i = 0; i < n; i++)
            settled &= !to.at[unknown[i]] || harden(in, to.at[unknown[i]]);
        return settled || leave_unsettled(in, quotient);
    }
    int sums = 0;
    for (int i = 0; i < known.rank; i++)
        sums += p2o_dim_nterm(known.at[i]) > 1;
    if (sums > 1)                               /* multiplied out, they are not found again */
        return leave_unsettled(in, quotient);
    return spread(in, c, known, quotient, side, unknown, n);
}

static bool solve_either(Infer *in, const Call *c, const Group *g)
{
    Shape from = g->from.shape, to = g->to.shape;
    if (!has_soft(in, from))
        return solve_group(in, c, from, &g->to);
    if (!has_soft(in, to) && !(to.rank == 1 && !to.at[0]))
        return solve_group(in, c, to, &g->from);
    if (from.rank == 1 && to.rank == 1 && to.at[0])
        return must_equal(in, c, from.at[0], to.at[0], "size");
    return true;                                /* nothing known on either side yet */
}

/* The hints of `to`, a hole's from the number of elements. */
static bool target_hints(Infer *in, Shape from, Shape to, Hints *h)
{
    Hints total, known;
    int   hole = -1;
    for (int k = 0; k < p2o_ncapture(in->bind); k++)
        total.at[k] = known.at[k] = 1;
    for (int i = 0; i < from.rank; i++) {
        Hints one;
        if (!hints_of(in, from.at[i], &one) || !hints_times(in, &total, &one))
            return false;
    }
    for (int i = 0; i < to.rank; i++) {
        if (!to.at[i])
            hole = i;
        else if (!hints_of(in, to.at[i], &h[i]) || !hints_times(in, &known, &h[i]))
            return false;
    }
    return hole < 0 || hints_divide(in, &total, &known, &h[hole]);
}

typedef struct Split {                  /* both shapes in groups of equal product */
    int from[MAX_RANK], to[MAX_RANK];   /* the group of each axis; n for what is left over */
    int n;
} Split;

/* Which side of an open group is behind: true for `from`. */
static bool from_is_behind(const Infer *in, const Hints *from, const Hints *to)
{
    for (int k = 0; k < p2o_ncapture(in->bind); k++)
        if (from->at[k] != to->at[k])
            return from->at[k] < to->at[k];
    return false;
}

/* Left to right; false when they do not fit, which the count of elements will say. */
static bool split_groups(const Infer *in, int nfrom, const Hints *hf, int nto, const Hints *ht,
                         Split *s)
{
    int i = 0, j = 0;
    for (s->n = 0; i < nfrom && j < nto; s->n++) {
        Hints pf = hf[i], pt = ht[j];
        s->from[i++] = s->to[j++] = s->n;
        while (!hints_equal(in, &pf, &pt)) {
            bool more_from = from_is_behind(in, &pf, &pt) || j == nto;
            if (more_from ? i == nfrom : j == nto)
                return false;
            if (!hints_times(in, more_from ? &pf : &pt, more_from ? &hf[i] : &ht[j]))
                return false;
            *(more_from ? &s->from[i++] : &s->to[j++]) = s->n;
        }
    }
    while (i < nfrom)
        s->from[i++] = s->n;
    while (j < nto)
        s->to[j++] = s->n;
    return true;
}

static int axes_in(const int *group, int n, int g)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += group[i] == g;
    return count;
}

static bool has_soft_in(const Infer *in, Shape s, const int *group, int g)
{
    for (int i = 0; i < s.rank; i++)
        if (group[i] == g && has_open(in, s.at[i]))
            return true;
    return false;
}

static bool is_dynamic(const Infer *in, Dim d)
{
    return d && !p2o_dim_is_int(d, NULL) && !has_open(in, d);
}

static bool was_one(const Infer *in, const Hints *h)
{
    return is_same_number(in, h) && h->at[0] == 1;
}

typedef struct Known {
    Shape        shape;
    const Hints *hints;
    const int   *group;
} Known;

static bool is_alone(const Known *x, Shape to, const int *to_group, int i)
{
    return axes_in(x->group, x->shape.rank, x->group[i]) == 1 &&
           axes_in(to_group, to.rank, x->group[i]) == 1;
}

/* Exchanged, they would look the same.  A number is exchanged as a whole only. */
static bool could_be_exchanged(const Infer *in, const Known *x, Shape to, const int *to_group,
                               int i, int k)
{
    if (x->shape.at[k] == x->shape.at[i] || x->group[k] == x->group[i] ||
        !hints_equal(in, &x->hints[k], &x->hints[i]))
        return false;
    if (!is_dynamic(in, x->shape.at[k]) && was_one(in, &x->hints[i]))
        return false;
    if (!is_dynamic(in, x->shape.at[k]) &&
        !(is_alone(x, to, to_group, i) && is_alone(x, to, to_group, k)))
        return false;
    return has_soft_in(in, to, to_group, x->group[k]) && has_soft_in(in, to, to_group, x->group[i]);
}

/* Known sizes of which the order does not say to which of several unknowns they belong: one that
 * was 1 and has no 1 opposite, and one that was like another throughout. */
static Dim unclear_size(const Infer *in, const Known *x, Shape to, const Hints *to_hints,
                        const int *to_group)
{
    int open = 0, ones = 0;
    for (int i = 0; i < to.rank; i++) {
        open += has_open(in, to.at[i]);
        ones += has_open(in, to.at[i]) && was_one(in, &to_hints[i]);
    }
    for (int i = 0; open > 1 && i < x->shape.rank; i++) {
        if (!x->shape.at[i] || p2o_dim_is_int(x->shape.at[i], NULL))
            continue;
        if (was_one(in, &x->hints[i]) &&
            (ones != 1 || !p2o_dim_is_sym(x->shape.at[i]) || !is_alone(x, to, to_group, i)))
            return x->shape.at[i];
        for (int k = 0; is_dynamic(in, x->shape.at[i]) && k < x->shape.rank; k++)
            if (could_be_exchanged(in, x, to, to_group, i, k))
                return x->shape.at[i];
    }
    return NULL;
}

static Side side_part(Shape s, const Hints *hints, const int *group, int g)
{
    int i = 0;
    while (group[i] != g)
        i++;
    return (Side){ slice_shape(s, i, i + axes_in(group, s.rank, g)), hints + i };
}

static bool is_left_over(Infer *in, const Call *c, Shape s, const int *group, int n)
{
    for (int i = 0; i < s.rank; i++)
        if (group[i] == n && s.at[i] && !has_open(in, s.at[i]) &&
            !must_equal(in, c, s.at[i], int_dim(in, 1), "size"))
            return false;
    return true;
}

/* Two open sizes are paired by what they were: no other may have been that. */
static bool is_only(const Infer *in, const Hints *h, const Hints *all, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += hints_equal(in, h, &all[i]);
    return count == 1;
}

static bool solve_groups(Infer *in, const Call *c, Shape from, Shape to, const Hints *hf,
                         const Hints *ht)
{
    Split s;
    if (!split_groups(in, from.rank, hf, to.rank, ht, &s))
        return true;
    Dim unclear = unclear_size(in, &(Known){ from, hf, s.from }, to, ht, s.to);
    if (!unclear)
        unclear = unclear_size(in, &(Known){ to, ht, s.to }, from, hf, s.from);
    if (unclear && has_soft(in, from) && has_soft(in, to))
        return leave_unsettled(in, unclear);
    if (unclear)
        return solve_either(in, c, &(Group){ { from, hf }, { to, ht } });
    for (int g = 0; g < s.n; g++) {
        Group x = { side_part(from, hf, s.from, g), side_part(to, ht, s.to, g) };
        bool  open = has_soft(in, x.from.shape) && has_soft(in, x.to.shape);
        if (open &&
            !(is_only(in, x.from.hints, hf, from.rank) && is_only(in, x.to.hints, ht, to.rank)))
            continue;
        if (!solve_either(in, c, &x))
            return false;
    }
    return is_left_over(in, c, from, s.from, s.n) && is_left_over(in, c, to, s.to, s.n);
}

/* Beside a -1 a literal may be a number as well as a size: the order of groups proves nothing. */
static bool has_hole(const Infer *in, Shape to)
{
    for (int i = 0; i < to.rank && to.rank <= 2; i++)
        if (is_hole(in, to.at[i]))
            return true;
    return false;
}

Shape resolved_shape(Infer *in, Shape s)
{
    Dim *at = p2o_shape_copy(in->arena, s, 0);
    for (int i = 0; i < s.rank; i++)
        at[i] = at[i] ? p2o_resolve(in->bind, at[i]) : NULL;
    return (Shape){ s.rank, at };
}

/* Settles what is open; false after a refusal. */
static bool settle_reshape(Infer *in, const Call *c, Shape from, Shape to)
{
    Hints hf[MAX_RANK], ht[MAX_RANK];
    if (!has_soft(in, from) && !has_soft(in, to))
        return true;
    for (int i = 0; i < from.rank; i++)
        if (!hints_of(in, from.at[i], &hf[i]))
            return true;
    if (to.rank > MAX_RANK || !target_hints(in, from, to, ht))
        return true;
    if (has_hole(in, to) && !has_soft(in, from))
        return solve_group(in, c, from, &(Side){ to, ht });
    return solve_groups(in, c, from, to, hf, ht);
}

/* The place of the one -1, or -1; -2 after a diagnostic. */
static int find_hole(Infer *in, Shape to)
{
    int hole = -1;
    for (int i = 0; i < to.rank; i++) {
        int64_t v;
        if (!p2o_dim_is_int(to.at[i], &v) || v >= 0)
            continue;
        if (v != -1 || hole >= 0) {
            rule_fail(in, "size %lld at %d", (long long)v, i);
            return -2;
        }
        hole = i;
    }
    return hole;
}

/* An open bound lay inside at capture; it is asked again when it is settled. */
static bool is_open_inside(Infer *in, Dim i, Dim size)
{
    int64_t v, most;
    return is_soft(in, i) && p2o_hint_at(in->bind, i, 0, &v) &&
           p2o_hint_at(in->bind, size, 0, &most) && v <= most;
}

/* A negative one counts from the end. */
static Dim open_bound(Infer *in, Dim i, Dim size)
{
    int64_t v;
    return p2o_hint_at(in->bind, i, 0, &v) && v < 0 ? p2o_dim_add(in->dims, size, i) : i;
}

void slice_bounds(Infer *in, Dim start, Dim end, Dim size, Dim *from, Dim *to)
{
    bool open_start = is_open_inside(in, start, size), open_end = is_open_inside(in, end, size);
    p2o_slice_range(in->dims, open_start ? NULL : start, open_end ? NULL : end, size, from, to);
    *from = open_start ? open_bound(in, start, size) : *from;
    *to = open_end ? open_bound(in, end, size) : *to;
}

/* Without the sizes that are on both sides: 3*b*x = 12*x says that b is 4. */
static void cancel_sizes(Infer *in, Shape to, Dim *total, Dim *known)
{
    for (int i = 0; i < to.rank; i++) {
        bool number = p2o_dim_is_int(to.at[i], NULL) || p2o_dim_is_sym(to.at[i]);
        Dim  x = number ? NULL : p2o_dim_exact_div(in->dims, *total, to.at[i]);
        Dim  y = number ? NULL : p2o_dim_exact_div(in->dims, *known, to.at[i]);
        *total = x && y ? x : *total;
        *known = x && y ? y : *known;
    }
}

bool reshaped(Infer *in, const Call *c, Shape from, Shape to, Shape *out)
{
    from = resolved_shape(in, from);
    to = resolved_shape(in, to);
    Dim *at = p2o_shape_copy(in->arena, to, 0);
    int  hole = find_hole(in, to);
    if (hole >= 0)
        at[hole] = NULL;
    if (hole == -2 || !settle_reshape(in, c, from, (Shape){ to.rank, at }))
        return false;
    Dim total = shape_nelem(in->dims, resolved_shape(in, from)), known = int_dim(in, 1);
    for (int i = 0; i < to.rank; i++) {
        at[i] = at[i] ? p2o_resolve(in->bind, at[i]) : NULL;
        known = i == hole ? known : p2o_dim_mul(in->dims, known, at[i]);
    }
    if (hole >= 0) {
        at[hole] = size_of_hole(in, total, (Shape){ to.rank, at }, hole);
        if (!at[hole]) {
            rule_fail(in, "cannot find the size at %d: %s elements into [%s]", hole,
                      p2o_dim_text(in->dims, total), p2o_shape_text(in->dims, to));
            return false;
        }
        known = p2o_dim_mul(in->dims, known, at[hole]);
    }
    *out = (Shape){ to.rank, at };
    if (!total || !known) {
        rule_fail(in, "the number of elements is none of 64 bits");
        return false;
    }
    cancel_sizes(in, *out, &total, &known);
    return must_equal(in, c, total, known, "number of elements");
}
