/* Dims as text, with as few parentheses as read back without doubt: quotients and remainders keep
 * theirs inside products, where `a*b//c` would be right but unclear. */
#include <inttypes.h>

#include "base/num.h"
#include "ir/dim_node.h"

static void put_dim(Buf *b, Dim d);

static void put_in_parens(Buf *b, Dim d)
{
    p2o_puts(b, "(");
    put_dim(b, d);
    p2o_puts(b, ")");
}

/* A chain max(max(a, b), c) is written max(a, b, c). */
static void put_chain(Buf *b, Dim d, DimKind kind)
{
    if (d->kind == kind) {
        put_chain(b, d->operand[0], kind);
        p2o_puts(b, ", ");
        d = d->operand[1];
    }
    put_dim(b, d);
}

/* Needs no parentheses whatever stands beside it. */
static bool is_tight(Dim d)
{
    if (d->kind == DIM_INT)
        return d->value >= 0;
    return d->kind == DIM_SYM || d->kind == DIM_MIN || d->kind == DIM_MAX || d->kind == DIM_FN;
}

/* 2*b*s^2, without quotients and remainders among the factors. */
static bool is_plain_product(Dim d)
{
    if (d->kind != DIM_SUM || d->nterm != 1 || d->term[0].coef < 0)
        return false;
    for (int i = 0; i < d->term[0].natom; i++)
        if (!is_tight(d->term[0].atom[i]))
            return false;
    return true;
}

static void put_operand(Buf *b, Dim d, bool left)
{
    if (is_tight(d) || (left && is_plain_product(d)))
        put_dim(b, d);
    else
        put_in_parens(b, d);
}

/* trunc(0.7*s): a factor multiplies all of the operand, for (0.7*2)*s may be another float. */
static void put_fn(Buf *b, Dim d)
{
    FnOperand operand = p2o_fn_operand(d->fn);
    char      factor[32];
    p2o_format_f64(factor, d->factor);
    p2o_putf(b, "%s(", p2o_fn_name(d->fn));
    if (operand == FN_ALONE) {
        put_dim(b, d->operand[0]);
    } else if (operand == FN_TIMES) {
        p2o_putf(b, "%s*", factor);
        put_operand(b, d->operand[0], false);
    } else {
        put_operand(b, d->operand[0], true);
        p2o_putf(b, d->factor < 0 ? "/(%s)" : "/%s", factor);
    }
    p2o_puts(b, ")");
}

static void put_opaque(Buf *b, Dim d)
{
    if (d->kind == DIM_FN) {
        put_fn(b, d);
        return;
    }
    if (d->kind == DIM_MIN || d->kind == DIM_MAX) {
        p2o_puts(b, d->kind == DIM_MIN ? "min(" : "max(");
        put_chain(b, d, d->kind);
        p2o_puts(b, ")");
        return;
    }
    put_operand(b, d->operand[0], true);
    p2o_puts(b, d->kind == DIM_FLOORDIV ? "//" : " % ");
    put_operand(b, d->operand[1], false);
}

/* Text is in the order of names, not of the table: the same sizes read the same in every model. */
static const char *atom_text(Arena *a, Dim d)
{
    Buf b = { .arena = a };
    put_dim(&b, d);
    return b.at;
}

static void sort_by_text(const char **key, int *order, int n)
{
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0 && strcmp(key[i], key[order[k - 1]]) < 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static const int *atom_order(Arena *a, const DimTerm *term)
{
    const char **key = NEW_N(a, const char *, (size_t)term->natom + 1);
    int         *order = NEW_N(a, int, (size_t)term->natom + 1);
    for (int i = 0; i < term->natom; i++)
        key[i] = atom_text(a, term->atom[i]);
    sort_by_text(key, order, term->natom);
    return order;
}

/* The term without the sign of its coefficient; `alone`: nothing binds to it from the left. */
static void put_magnitude(Buf *b, const DimTerm *term, bool alone)
{
    uint64_t k = term->coef < 0 ? 0 - (uint64_t)term->coef : (uint64_t)term->coef;
    bool     first = true;
    if (k != 1 || term->natom == 0) {
        p2o_putf(b, "%" PRIu64, k);
        first = false;
    }
    alone &= first && term->natom == 1 && term->power[0] == 1;
    const int *order = atom_order(b->arena, term);
    for (int n = 0; n < term->natom; n++) {
        int i = order[n];
        if (!first)
            p2o_puts(b, "*");
        first = false;
        if (alone || is_tight(term->atom[i]))
            put_dim(b, term->atom[i]);
        else
            put_in_parens(b, term->atom[i]);
        if (term->power[i] != 1)
            p2o_putf(b, "^%d", term->power[i]);
    }
}

static void put_term(Buf *b, const DimTerm *term, bool leads)
{
    bool minus = term->coef < 0;
    if (leads) {
        p2o_puts(b, minus ? "-" : "");
        put_magnitude(b, term, !minus);
    } else if (term->coef == INT64_MIN) {
        p2o_puts(b, " + -");            /* its magnitude alone would not read back */
        put_magnitude(b, term, false);
    } else {
        p2o_puts(b, minus ? " - " : " + ");
        put_magnitude(b, term, true);
    }
}

/* Positive terms first (`8 - s` rather than `-s + 8`); of these, symbols, opaque atoms, the
 * number. */
static const int *term_order(Arena *a, Dim d)
{
    const char **key = NEW_N(a, const char *, (size_t)d->nterm);
    int         *order = NEW_N(a, int, (size_t)d->nterm);
    for (int i = 0; i < d->nterm; i++) {
        Buf      b = { .arena = a };
        DimTerm  plain = d->term[i];
        plain.coef = 1;
        bool symbols = true;
        for (int k = 0; k < plain.natom; k++)
            symbols &= plain.atom[k]->kind == DIM_SYM;
        p2o_puts(&b, !plain.natom ? "2" : symbols ? "0" : "1");
        put_magnitude(&b, &plain, true);
        key[i] = b.at;
    }
    sort_by_text(key, order, d->nterm);
    int n = 0, *signed_order = NEW_N(a, int, (size_t)d->nterm);
    for (int minus = 0; minus < 2; minus++)
        for (int i = 0; i < d->nterm; i++)
            if ((d->term[order[i]].coef < 0) == minus)
                signed_order[n++] = order[i];
    return signed_order;
}

static void put_dim(Buf *b, Dim d)
{
    if (d->kind == DIM_INT) {
        p2o_putf(b, "%" PRId64, d->value);
        return;
    }
    if (d->kind == DIM_SYM) {
        p2o_puts(b, d->name);
        return;
    }
    if (is_opaque(d)) {
        put_opaque(b, d);
        return;
    }
    const int *order = term_order(b->arena, d);
    for (int i = 0; i < d->nterm; i++)
        put_term(b, &d->term[order[i]], i == 0);
}

const char *p2o_dim_text(Dims *t, Dim d)
{
    if (!d)
        return "?";
    if (!d->text) {
        Buf b = { .arena = t->arena };
        put_dim(&b, d);
        thaw(d)->text = b.at;
    }
    return d->text;
}
