#include "dyn/seen.h"

#include "base/num.h"
#include "dyn/range.h"

enum { MOST_ORDERED = 64 };             /* more symbols than settling allows: MAX_BASES */

typedef struct SeenSizes {              /* of a size, in all captures */
    int64_t lo, hi;
    bool    known, one;
} SeenSizes;

static SeenSizes seen_of(Bindings *b, Dim sym)
{
    SeenSizes s = { .lo = INT64_MAX };
    int64_t   v;
    for (int k = 0; k < p2o_ncapture(b); k++) {
        if (!p2o_hint_at(b, sym, k, &v))
            continue;
        s.known = true;
        s.one |= v == 1;
        s.lo = v < s.lo ? v : s.lo;
        s.hi = v > s.hi ? v : s.hi;
    }
    return s;
}

/* Every capture had x below y. */
static bool was_below(Bindings *b, Dim x, Dim y)
{
    int64_t v, w;
    for (int k = 0; k < p2o_ncapture(b); k++)
        if (!p2o_hint_at(b, x, k, &v) || !p2o_hint_at(b, y, k, &w) || v >= w)
            return false;
    return true;
}

static Need unseen(NeedKind kind, Dim x, Dim y, const char *by)
{
    return (Need){ .kind = kind, .a = x, .b = y, .by = by, .origin = NEED_UNSEEN };
}

/* PyTorch records other programs at sizes of 1: they are claimed only where a capture had them.  A
 * size of 0 says nothing of 1, and what is claimed has no gaps. */
int64_t p2o_seen_least(Bindings *b, Dim sym)
{
    SeenSizes s = seen_of(b, sym);
    return s.one ? s.lo : 2;
}

static void claim_least(Program *p, Bindings *b, Dim sym)
{
    int64_t least = p2o_seen_least(b, sym);
    if (least == 2)
        p2o_need(b, unseen(NEED_LE, p2o_dim_int(p->dims, 2), sym,
                           "sizes below 2 were not captured"));
    else
        p2o_range_claim(p, b, sym, least);
}

/* An axis that is made of others, n//2, is 1 where n is not. */
static void claim_least_of_axes(Program *p, Bindings *b)
{
    Dim two = p2o_dim_int(p->dims, 2);
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        Shape shape = p->main->inputs.at[i]->type.shape;
        for (int k = 0; k < shape.rank; k++) {
            Dim       d = p2o_resolve(b, shape.at[k]);
            SeenSizes s = seen_of(b, d);
            if (!p2o_dim_is_int(d, NULL) && !p2o_dim_is_sym(d) && s.known && !s.one && s.lo >= 2)
                p2o_need(b, unseen(NEED_LE, two, d, "sizes below 2 were not captured"));
        }
    }
}

/* Two or three sizes agree by chance in many a remainder: of them only odd and even counts, and
 * whether none of the even ones could be halved twice, which ends loops over halves. */
static int64_t telling_part(int64_t by, int64_t size)
{
    if (by % 4 == 0 && size % 4 == 2)
        return 4;
    return by % 2 ? 1 : 2;
}

bool p2o_seen_remainder(Bindings *b, Dim sym, int64_t *by, int64_t *rest)
{
    enum { SEVERAL = 4, MOST = 64 };
    int64_t first, v;
    *by = 0;
    if (!p2o_hint_at(b, sym, 0, &first))
        return false;
    for (int k = 1; k < p2o_ncapture(b); k++)
        if (p2o_hint_at(b, sym, k, &v))
            *by = p2o_gcd(*by, v - first);
    if (*by && (p2o_ncapture(b) < SEVERAL || *by > MOST))
        *by = telling_part(*by, first);
    *rest = *by ? first % *by : 0;
    return *by > 1;
}

/* Models treat odd and even sizes apart: captures of one kind say nothing of the other. */
static void claim_remainder(Program *p, Bindings *b, Dim sym, Buf *out)
{
    int64_t by, rest;
    if (!p2o_seen_remainder(b, sym, &by, &rest))
        return;
    Dim left = p2o_dim_mod(p->dims, sym, p2o_dim_int(p->dims, by));
    p2o_need(b, unseen(NEED_EQ, left, p2o_dim_int(p->dims, rest), "others were not captured"));
    if (by == 2)
        p2o_puts(out, rest ? ", all odd" : ", all even");
    else
        p2o_putf(out, ", %s %% %lld = %lld", p2o_dim_name(sym), (long long)by, (long long)rest);
}

static bool was_equal(Bindings *b, Dim x, Dim y)
{
    int64_t v, w;
    for (int k = 0; k < p2o_ncapture(b); k++)
        if (!p2o_hint_at(b, x, k, &v) || !p2o_hint_at(b, y, k, &w) || v != w)
            return false;
    return true;
}

/* Two sizes that were always equal: a number may be what they differ by, and which of them another
 * size follows is not known.  Where rules alone told all sizes, that does not matter. */
static void claim_equal(Program *p, Bindings *b, const Dim *symbols, size_t n, Buf *out)
{
    for (size_t i = 1; i < n && p->weighed.n && p2o_ncapture(b) > 1; i++)
        for (size_t k = i; k-- > 0;) {
            if (!was_equal(b, symbols[i], symbols[k]))
                continue;
            p2o_need(b, unseen(NEED_EQ, symbols[i], symbols[k], "others were not captured"));
            p2o_putf(out, ", %s = %s", p2o_dim_name(symbols[i]), p2o_dim_name(symbols[k]));
            break;
        }
}

/* One size that was always below another: what compares them went one way only.  Said of
 * neighbours in the order of the sizes, which says it of all. */
static void claim_order(Program *p, Bindings *b, const Dim *symbols, size_t n, Buf *out)
{
    uint64_t below[MOST_ORDERED] = { 0 }, above[MOST_ORDERED] = { 0 };
    n = n < MOST_ORDERED ? n : MOST_ORDERED;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && p2o_ncapture(b) > 1; k++)
            if (was_below(b, symbols[i], symbols[k])) {
                above[i] |= (uint64_t)1 << k;
                below[k] |= (uint64_t)1 << i;
            }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            if (!(above[i] >> k & 1) || above[i] & below[k])    /* no, or others lie between */
                continue;
            Dim more = p2o_dim_add(p->dims, symbols[i], p2o_dim_int(p->dims, 1));
            p2o_need(b, unseen(NEED_LE, more, symbols[k], "others were not captured"));
            p2o_putf(out, ", %s < %s", p2o_dim_name(symbols[i]), p2o_dim_name(symbols[k]));
        }
}

void p2o_claim_seen(Program *p, Bindings *b, const Dim *symbols, size_t n)
{
    Buf out = { .arena = p->arena };
    for (size_t i = 0; i < n; i++) {
        SeenSizes s = seen_of(b, symbols[i]);
        if (!s.known)
            continue;
        claim_least(p, b, symbols[i]);
        p2o_putf(&out, s.lo == s.hi ? "%s%s %lld" : "%s%s %lld to %lld", out.n ? ", " : "",
                 p2o_dim_name(symbols[i]), (long long)s.lo, (long long)s.hi);
        claim_remainder(p, b, symbols[i], &out);
    }
    claim_least_of_axes(p, b);
    claim_order(p, b, symbols, n, &out);
    claim_equal(p, b, symbols, n, &out);
    if (out.n)
        p2o_diag(p->diags, DIAG_NOTE, 0,
                 "captured at %s: what the model does otherwise at other sizes is not known",
                 out.at);
}
