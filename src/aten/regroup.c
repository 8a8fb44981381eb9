/* Reshapes over sizes that are not known yet.
 *
 * A reshape keeps the elements in order, so both shapes split, left to right, into groups of equal
 * product; the captured sizes say where.  Inside a group sizes follow from each other: one unknown
 * is solved for, a group of numbers stays numbers, and a symbol goes to the one unknown that it can
 * be part of.  Where it could be part of several, one capture cannot settle it. */
#include "aten/infer.h"

typedef struct Hints {
    int64_t at[MAX_CAPTURES];
} Hints;

typedef struct Group {
    Shape from, to;             /* a hole in `to` is NULL */
} Group;

bool is_soft(const Infer *in, Dim d)
{
    return d && p2o_dim_is_sym(d) && p2o_role(in->bind, d) == ROLE_SOFT && !p2o_is_bound(in->bind, d);
}

bool has_open(const Infer *in, Dim d) { return p2o_has_soft(in->bind, d); }

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

/* The unknown of a group that `atom` must be part of; -1: none, -2: several could be it. */
static int place_for(Infer *in, const Hints *atom, const Hints *left, const int *unknown, int n)
{
    int   found = -1;
    Hints q;
    for (int i = 0; i < n; i++) {
        if (!hints_divide(in, &left[unknown[i]], atom, &q))
            continue;
        if (found >= 0)
            return -2;
        found = unknown[i];
    }
    return found;
}

static bool fail_unsettled(Infer *in, Dim sym)
{
    p2o_diag_advise(in->diags, DIAG_NOT_DYNAMIC, in->call->loc,
                    p2o_unsettled_advice(in->prog),
                    "%s: which of the sizes follows %s cannot be told from one capture", in->call->target,
                    p2o_dim_text(in->dims, sym));
    in->failed = true;
    return false;
}

/* Several unknowns: each symbol of the quotient goes to the one it fits, numbers stay. */
static bool spread(Infer *in, const Call *c, Dim quotient, Shape to, const int *unknown, int n)
{
    Hints left[MAX_RANK], atom;
    Dim   value[MAX_RANK];
    for (int i = 0; i < n; i++) {
        value[unknown[i]] = int_dim(in, 1);
        if (!to.at[unknown[i]] || !hints_of(in, to.at[unknown[i]], &left[unknown[i]]))
            return true;                        /* a hole among them: found by division later */
    }
    if (p2o_dim_nterm(quotient) != 1)
        return fail_unsettled(in, quotient);
    const DimTerm *t = p2o_dim_term(quotient, 0);
    for (int i = 0; i < t->natom; i++) {
        for (int p = 0; p < t->power[i]; p++) {
            if (!hints_of(in, t->atom[i], &atom))
                return true;
            int at = place_for(in, &atom, left, unknown, n);
            if (at < 0)
                return fail_unsettled(in, t->atom[i]);
            value[at] = p2o_dim_mul(in->dims, value[at], t->atom[i]);
            hints_divide(in, &left[at], &atom, &left[at]);
        }
    }
    for (int i = 0; i < n; i++) {
        int at = unknown[i];
        if (!is_same_number(in, &left[at]))
            return fail_unsettled(in, to.at[at]);
        Dim whole = p2o_dim_mul(in->dims, value[at], int_dim(in, left[at].at[0]));
        if (!must_equal(in, c, to.at[at], whole, "size"))
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

/* One side has no unknowns: the other's follow from it. */
static bool solve_group(Infer *in, const Call *c, Shape known, Shape to)
{
    Dim quotient = shape_nelem(in->dims, known);
    int unknown[MAX_RANK], n = 0, holes = 0;
    for (int i = 0; i < to.rank; i++) {
        if (!to.at[i] || has_soft(in, slice_shape(to, i, i + 1))) {
            holes += !to.at[i];
            unknown[n++] = i;
            continue;
        }
        if (quotient)
            quotient = quotient_of(in, quotient, to.at[i]);
    }
    if (n > 0 && !quotient)
        return true;                            /* symbols that are not known to be equal yet */
    if (n == 0)
        return must_equal(in, c, shape_nelem(in->dims, known), shape_nelem(in->dims, to), "number of elements");
    if (n == 1)
        return holes || must_equal(in, c, to.at[unknown[0]], quotient, "size");
    bool settled = true;
    if (p2o_dim_is_int(quotient, NULL)) {
        for (int i = 0; i < n; i++)
            settled &= !to.at[unknown[i]] || harden(in, to.at[unknown[i]]);
        return settled || fail_unsettled(in, quotient);
    }
    return spread(in, c, quotient, to, unknown, n);
}

static bool solve_either(Infer *in, const Call *c, const Group *g)
{
    if (!has_soft(in, g->from))
        return solve_group(in, c, g->from, g->to);
    if (!has_soft(in, g->to) && !(g->to.rank == 1 && !g->to.at[0]))
        return solve_group(in, c, g->to, g->from);
    if (g->from.rank == 1 && g->to.rank == 1 && g->to.at[0])
        return must_equal(in, c, g->from.at[0], g->to.at[0], "size");
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

/* Goes through both shapes and solves each group as it closes. */
static bool solve_groups(Infer *in, const Call *c, Shape from, Shape to, const Hints *hf, const Hints *ht)
{
    int i = 0, j = 0;
    while (i < from.rank && j < to.rank) {
        int   i0 = i, j0 = j;
        Hints pf = hf[i++], pt = ht[j++];
        while (!hints_equal(in, &pf, &pt)) {
            bool more_from = pf.at[0] < pt.at[0] || j == to.rank;
            if (more_from ? i == from.rank : j == to.rank)
                return true;                    /* they do not fit: the count of elements will say so */
            if (!hints_times(in, more_from ? &pf : &pt, more_from ? &hf[i] : &ht[j]))
                return true;
            i += more_from;
            j += !more_from;
        }
        Group g = { slice_shape(from, i0, i), slice_shape(to, j0, j) };
        if (!solve_either(in, c, &g))
            return false;
    }
    for (; i < from.rank; i++)
        if (!must_equal(in, c, from.at[i], int_dim(in, 1), "size"))
            return false;
    for (; j < to.rank; j++)
        if (to.at[j] && !must_equal(in, c, to.at[j], int_dim(in, 1), "size"))
            return false;
    return true;
}

static Shape resolved_shape(Infer *in, Shape s)
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
    return is_soft(in, i) && p2o_hint_at(in->bind, i, 0, &v) && p2o_hint_at(in->bind, size, 0, &most) &&
           v <= most;
}

bool slice_bounds(Infer *in, Dim start, Dim end, Dim size, Dim *from, Dim *to)
{
    bool open_start = is_open_inside(in, start, size), open_end = is_open_inside(in, end, size);
    if (!p2o_slice_range(in->dims, open_start ? NULL : start, open_end ? NULL : end, size, from, to)) {
        rule_unsupported(in, "start or end whose sign is not known: %s:%s", p2o_dim_text(in->dims, start),
                         p2o_dim_text(in->dims, end));
        return false;
    }
    *from = open_start ? start : *from;
    *to = open_end ? end : *to;
    return true;
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
        at[hole] = p2o_dim_exact_div(in->dims, total, known);
        if (!at[hole])
            at[hole] = p2o_dim_floordiv(in->dims, total, known);
        if (!at[hole]) {
            rule_fail(in, "cannot find the size at %d: %s elements into [%s]", hole,
                      p2o_dim_text(in->dims, total), p2o_shape_text(in->dims, to));
            return false;
        }
        known = p2o_dim_mul(in->dims, known, at[hole]);
    }
    *out = (Shape){ to.rank, at };
    return must_equal(in, c, total, known, "number of elements");
}
