#include "dyn/range.h"

enum { LARGEST_ARTEFACT = 2 };          /* lower bounds up to here are PyTorch's own */

/* "L['x'].size()[0]" or "L['xs'][1].size()[0]" at *text: the recorded size, and *text moves behind it. */
static Dim guarded_size(const Program *p, const char **text)
{
    Buf         name = { .arena = p->arena };
    const char *s = *text;
    int64_t     axis = 0;
    if (strncmp(s, "L[", 2) != 0)
        return NULL;
    for (s += 1; *s == '['; s++) {
        const char *end = strchr(s, ']');
        if (!end)
            return NULL;
        bool quoted = s[1] == '\'' && end > s + 2;
        p2o_puts(&name, name.n ? "_" : "");
        p2o_put(&name, s + 1 + quoted, (size_t)(end - s) - 1 - 2 * quoted);
        s = end;
    }
    if (strncmp(s, ".size()[", 8) != 0)
        return NULL;
    for (s += 8; *s >= '0' && *s <= '9' && axis < MAX_RANK; s++)
        axis = 10 * axis + (*s - '0');
    for (size_t i = 0; *s == ']' && i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        if (v && str_is(buf_str(&name), p->inputs.at[i].name) && axis < v->recorded.shape.rank) {
            *text = s + 1;
            return v->recorded.shape.at[axis];
        }
    }
    return NULL;
}

/* The guard in terms of the capture's symbols; NULL where it is about something else. */
static const char *guard_text(const Program *p, const char *guard)
{
    Buf out = { .arena = p->arena };
    p2o_puts(&out, "");
    while (*guard) {
        Dim d = guarded_size(p, &guard);
        if (d)
            p2o_putf(&out, "(%s)", p2o_dim_text(p->dims, d));
        else if (*guard == 'L' && guard[1] == '[')
            return NULL;
        else
            p2o_put(&out, guard++, 1);
    }
    return out.at;
}

typedef struct Comparison {
    Dim  a, b;
    char op[3];                         /* "<=", "<", ">=", ">", "==" or "!=" */
} Comparison;

static bool parse_comparison(const Program *p, const char *text, Comparison *c)
{
    int         depth = 0;
    const char *error;
    for (const char *s = text; s && *s; s++) {
        depth += (*s == '(') - (*s == ')');
        if (depth || !strchr("<>=!", *s))
            continue;
        size_t n = s[1] == '=' ? 2 : 1;
        memcpy(c->op, s, n);
        c->op[n] = 0;
        c->a = p2o_dim_parse(p->dims, p2o_str_trim((Str){ text, (size_t)(s - text) }), &error);
        c->b = p2o_dim_parse(p->dims, p2o_str_trim(str_of(s + n)), &error);
        return c->a && c->b;
    }
    return false;
}

static bool has_min_or_max(Dim d)
{
    DimKind kind = p2o_dim_kind(d);
    if (kind == DIM_MIN || kind == DIM_MAX)
        return true;
    if (kind == DIM_FLOORDIV || kind == DIM_MOD)
        return has_min_or_max(p2o_dim_operand(d, 0)) || has_min_or_max(p2o_dim_operand(d, 1));
    for (int i = 0; kind == DIM_SUM && i < p2o_dim_nterm(d); i++)
        for (int k = 0; k < p2o_dim_term(d, i)->natom; k++)
            if (has_min_or_max(p2o_dim_term(d, i)->atom[k]))
                return true;
    return false;
}

/* a <= b of a comparison by order; false for == and !=. */
static bool as_order(const Program *p, const Comparison *c, Dim *a, Dim *b)
{
    bool greater = c->op[0] == '>', strict = c->op[1] == 0;
    if (c->op[0] != '<' && !greater)
        return false;
    *a = greater ? c->b : c->a;
    *b = greater ? c->a : c->b;
    if (strict)
        *a = p2o_dim_add(p->dims, *a, p2o_dim_int(p->dims, 1));
    return *a != NULL;
}

/* That a size be 2 or more, that strides look so (which the mins and maxes are about), that two sizes differ: none
 * of it is a need of the model. */
static bool is_need(const Program *p, const Comparison *c, Need *n)
{
    int64_t least;
    if (as_order(p, c, &n->a, &n->b)) {
        n->kind = NEED_LE;
        return !p2o_dim_is_int(n->a, &least) || least > LARGEST_ARTEFACT;
    }
    *n = (Need){ .kind = NEED_EQ, .a = c->a, .b = c->b };
    return c->op[0] == '=' && !has_min_or_max(c->a) && !has_min_or_max(c->b);
}

typedef struct OneSym {
    Dim     sym;
    int     n;
    int64_t value;
} OneSym;

static void note_sym(void *user, Dim sym)
{
    OneSym *o = user;
    o->n += sym != o->sym;
    o->sym = sym;
}

static bool one_value(void *user, Dim sym, int64_t *v)
{
    const OneSym *o = user;
    *v = o->value;
    return sym == o->sym;
}

/* YES or NO where sym alone decides and is v. */
static Answer holds_at(Dims *t, NeedKind kind, Dim a, Dim b, Dim sym, int64_t v)
{
    OneSym  o = { .sym = sym, .value = v };
    int64_t x, y;
    if (!p2o_dim_eval(t, a, one_value, &o, &x) || !p2o_dim_eval(t, b, one_value, &o, &y))
        return CANNOT_TELL;
    return kind == NEED_LE ? (x <= y ? YES : NO) : (x == y ? YES : NO);
}

typedef struct InInputs {
    const Program *prog;
    bool           all;
} InInputs;

static void note_sought(void *user, Dim sym)
{
    OneSym *o = user;
    o->n += sym == o->sym;
}

static void find_in_inputs(void *user, Dim sym)
{
    InInputs *x = user;
    OneSym    sought = { .sym = sym };
    for (size_t i = 0; i < x->prog->main->inputs.n; i++) {
        const Type *t = &x->prog->main->inputs.at[i]->recorded;
        for (int k = 0; k < t->shape.rank; k++)
            p2o_dim_symbols(t->shape.at[k], note_sought, &sought);
        if (t->value)
            p2o_dim_symbols(t->value, note_sought, &sought);
    }
    x->all &= sought.n > 0;
}

/* Ranges of what the data decide were taken at the captured sizes. */
static bool is_of_inputs(const Program *p, Dim d)
{
    InInputs x = { p, true };
    p2o_dim_symbols(d, find_in_inputs, &x);
    return x.all;
}

/* A least size that follows from guards that need nothing, needs nothing itself. */
static bool is_artefact(const Program *p, const ProgramRange *r)
{
    OneSym  two = { .value = LARGEST_ARTEFACT };
    int64_t at_two;
    bool    artefact = false;
    p2o_dim_symbols(r->dim, note_sym, &two);
    if (r->lo <= LARGEST_ARTEFACT)
        return true;
    if (!p2o_dim_is_sym(r->dim))                /* s14 + s27 is 4 where both are 2 */
        return p2o_dim_eval(p->dims, r->dim, one_value, &two, &at_two) ? r->lo <= at_two : two.n > 1;
    for (size_t i = 0; i < p->guards.n; i++) {
        Comparison c;
        Need       n;
        Dim        a, b;
        if (!parse_comparison(p, guard_text(p, p->guards.at[i]), &c) || !as_order(p, &c, &a, &b) ||
            holds_at(p->dims, NEED_LE, a, b, r->dim, r->lo - 1) != NO)
            continue;
        if (is_need(p, &c, &n))
            return false;
        artefact = true;
    }
    return artefact;
}

static const char *need_text(const Program *p, const Need *n, Dim a, Dim b)
{
    return p2o_printf(p->arena, "%s %s %s (%s)", p2o_dim_text(p->dims, a), n->kind == NEED_LE ? "<=" : "=",
                      p2o_dim_text(p->dims, b), n->by);
}

static bool refuse_size(const Program *p, const Need *n, const char *spec, Dim sym, int64_t v)
{
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, n->loc, "give a range inside", "%s: %s can't be %lld: the model needs %s", spec,
                    p2o_dim_name(sym), (long long)v, need_text(p, n, n->a, n->b));
    return false;
}

/* Both ends of a range that the user gives must work; divisibility is asked of single numbers only. */
static bool check_declared(const Program *p, Bindings *b, const ProgramRange *r, bool with_place)
{
    Dim  sym = p2o_resolve(b, r->dim);
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        Need        now = { n->kind, p2o_resolve(b, n->a), p2o_resolve(b, n->b), n->by, n->loc };
        if ((n->kind != NEED_LE && r->lo != r->hi) || !now.a || !now.b || (n->loc != 0) != with_place)
            continue;
        if (r->lo != NO_LOWER && holds_at(p->dims, n->kind, now.a, now.b, sym, r->lo) == NO)
            return refuse_size(p, &now, r->expr, sym, r->lo);
        if (r->hi != NO_UPPER && holds_at(p->dims, n->kind, now.a, now.b, sym, r->hi) == NO)
            return refuse_size(p, &now, r->expr, sym, r->hi);
    }
    return true;
}

static bool is_violated(Bindings *b, Dims *t, const Need *n, Dim *x, Dim *y)
{
    *x = p2o_resolve(b, n->a);
    *y = p2o_resolve(b, n->b);
    return *x && *y && (n->kind == NEED_LE ? p2o_dim_le(t, *x, *y) : p2o_dim_eq(t, *x, *y)) == NO;
}

static bool report_violated(const Program *p, Bindings *b)
{
    bool found = false;
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        Dim         x, y;
        if (!is_violated(b, p->dims, n, &x, &y))
            continue;
        p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, n->loc, "give sizes that fit", "the model needs %s, and the sizes asked for say %s %s %s",
                        need_text(p, n, n->a, n->b), p2o_dim_text(p->dims, x), n->kind == NEED_LE ? "<=" : "=",
                        p2o_dim_text(p->dims, y));
        found = true;
    }
    return found;
}

bool p2o_range_collect(Program *p, Bindings *b)
{
    for (size_t i = 0; i < p->ranges.n; i++) {
        const ProgramRange *r = &p->ranges.at[i];
        if (!r->dim || !is_of_inputs(p, r->dim))
            continue;
        if (!is_artefact(p, r))
            p2o_need(b, (Need){ NEED_LE, p2o_dim_int(p->dims, r->lo), r->dim, "the capture's range", 0 });
        if (r->hi != NO_UPPER)
            p2o_need(b, (Need){ NEED_LE, r->dim, p2o_dim_int(p->dims, r->hi), "the capture's range", 0 });
    }
    for (size_t i = 0; i < p->guards.n; i++) {
        Comparison c;
        Need       n;
        if (!parse_comparison(p, guard_text(p, p->guards.at[i]), &c) || !is_need(p, &c, &n))
            continue;
        n.by = p2o_printf(p->arena, "the capture's guard %s", p->guards.at[i]);
        n.loc = 0;
        p2o_need(b, n);
    }
    return !report_violated(p, b);
}

/* An input's axis that follows others. */
static void need_sizes(const Program *p, Bindings *b)
{
    for (size_t i = 0; i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        for (int k = 0; v && k < v->type.shape.rank; k++) {
            Dim size = p2o_resolve(b, v->type.shape.at[k]), zero = p2o_dim_int(p->dims, 0);
            if (p2o_dim_le(p->dims, zero, size) != YES)
                p2o_need(b, (Need){ NEED_LE, zero, size, p2o_printf(p->arena, "axis %d of '%s'", k, p->inputs.at[i].name), 0 });
        }
    }
}

/* What the capture itself says of sizes is said again: at others the file is another program's. */
static void note_capture(const Program *p, Bindings *b)
{
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        const char *text = p2o_str_starts(str_of(n->by), "the capture's") ? p2o_range_need(p, b, n) : NULL;
        if (text)
            p2o_diag(p->diags, DIAG_NOTE, n->loc, "the model was captured for %s only: %s", text, n->by);
    }
}

bool p2o_range_check(Program *p, Bindings *b)
{
    need_sizes(p, b);
    bool ok = !report_violated(p, b);
    for (size_t i = 0; ok && i < p->declared.n; i++)
        ok = check_declared(p, b, &p->declared.at[i], true) && check_declared(p, b, &p->declared.at[i], false);
    if (ok)
        note_capture(p, b);
    return ok;
}

const char *p2o_range_need(const Program *p, Bindings *b, const Need *n)
{
    Dim x = p2o_resolve(b, n->a), y = p2o_resolve(b, n->b);
    if (!x || !y || (n->kind == NEED_LE ? p2o_dim_le(p->dims, x, y) : p2o_dim_eq(p->dims, x, y)) == YES)
        return NULL;
    return p2o_printf(p->arena, "%s %s %s", p2o_dim_text(p->dims, x), n->kind == NEED_LE ? "<=" : "=", p2o_dim_text(p->dims, y));
}

/* c*s + d >= 0 bounds s. */
static void tighten(Dims *t, Dim room, Dim sym, int64_t *lo, int64_t *hi)
{
    OneSym  zero = { .sym = sym, .value = 0 };
    int64_t c = 0, d;
    for (int i = 0; i < p2o_dim_nterm(room); i++) {
        const DimTerm *x = p2o_dim_term(room, i);
        if (x->natom > 1 || (x->natom == 1 && (x->atom[0] != sym || x->power[0] != 1)))
            return;
        c = x->natom ? x->coef : c;
    }
    if (c == 0 || !p2o_dim_eval(t, room, one_value, &zero, &d))
        return;
    int64_t q = c > 0 ? -d / c + (-d % c > 0) : d / -c;
    if (c > 0 && q > *lo)
        *lo = q;
    if (c < 0 && q < *hi)
        *hi = q;
}

void p2o_range_of(const Program *p, Bindings *b, Dim sym, int64_t *lo, int64_t *hi)
{
    p2o_dim_range(p->dims, sym, lo, hi);
    for (size_t i = 0; i < p2o_nneed(b); i++) {
        const Need *n = p2o_need_at(b, i);
        Dim         room = p2o_dim_sub(p->dims, p2o_resolve(b, n->b), p2o_resolve(b, n->a));
        if (n->kind == NEED_LE && room)
            tighten(p->dims, room, sym, lo, hi);
    }
}
