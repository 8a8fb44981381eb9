#include "dyn/site.h"

#include <math.h>

#include "base/num.h"

typedef struct Collecting {
    Sites        *s;
    const Lineup *l;
    Map           times;        /* line, operator, number -> how often calls of that line have it */
} Collecting;

/* The argument in capture k, and its place in a list; NULL: the call did nothing there. */
static const Arg *arg_in(const LinedCall *row, int k, int arg, int item)
{
    const Call *c = row->of[k];
    if (!c)
        return NULL;
    return item < 0 ? &c->args[arg] : &c->args[arg].items[item];
}

static Shape self_at(const LinedCall *row, int k)
{
    const Arg *x = &row->call->args[0];
    return x->kind == ARG_VAR ? p2o_recorded_at(x->var, k).shape : (Shape){ 0 };
}

static bool number_in(const Arg *x, double *v)
{
    int64_t i;
    *v = x->kind == ARG_FLOAT ? x->f : 0;
    if (x->kind != ARG_INT)
        return x->kind == ARG_FLOAT;
    bool known = p2o_dim_is_int(x->i, &i);
    *v = (double)i;
    return known;
}

/* What no expression of sizes gives. */
#define UNKNOWN (-4611686018427387904.0)

static bool number_at(const Collecting *w, const LinedCall *row, int k, int arg, int item,
                      double *v)
{
    const Arg *x = arg_in(row, k, arg, item);
    Dim        idle;
    int64_t    i;
    if (x)
        return number_in(x, v);
    *v = UNKNOWN;
    if (!self_at(row, k).rank)                  /* what does nothing there was not recorded */
        return row->call->schema->args[arg].base == SB_SYMINT;
    if (!row->call->op->idle(w->l->p[0]->dims, row->call, arg, item < 0 ? 0 : item,
                             self_at(row, k), &idle))
        return false;
    if (p2o_dim_is_int(idle, &i))
        *v = (double)i;
    return true;
}

/* The axis along which a place lies; false: it has none that is known. */
static bool axis_of_place(const Call *c, int rank, int *axis)
{
    int     k = p2o_schema_find(c->schema, "dim");
    int64_t dim;
    return k >= 0 && c->args[k].kind == ARG_INT && p2o_dim_is_int(c->args[k].i, &dim) &&
           p2o_wrap_dim(dim, rank, false, axis);
}

/* Ends past all sizes mean the axis's own; where some captures count from the start and others from
 * the end, all are counted from the start, if the axis is known.  false: past all sizes in all of
 * them. */
static bool count_from_start(const LinedCall *row, int n, double *at)
{
    double past = (double)INT64_MAX;
    int    negative = 0, open = 0, axis;
    for (int k = 0; k < n; k++) {
        negative += at[k] < 0;
        open += at[k] >= past;
    }
    if (open == n || (!open && (!negative || negative == n)))
        return open < n;
    int64_t size[MAX_CAPTURES];
    for (int k = 0; k < n; k++) {
        Shape self = self_at(row, k);
        if (!axis_of_place(row->call, self.rank, &axis) || !p2o_dim_is_int(self.at[axis], &size[k]))
            return true;
    }
    for (int k = 0; k < n; k++)
        at[k] = at[k] >= past ? (double)size[k] : at[k] < 0 ? at[k] + (double)size[k] : at[k];
    return true;
}

static bool turn_sign(Site *x, int n)
{
    for (int k = 0; k < n; k++)
        if (!(x->at[k] < 0))
            return false;
    for (int k = 0; k < n; k++)
        x->at[k] = -x->at[k];
    return true;
}

static void **times_slot(Collecting *w, const Call *c, double v)
{
    return p2o_map_slot(&w->times, str_of(p2o_printf(w->s->prog->arena, "%u %s %.17g", c->loc,
                                                     c->target, v)));
}

/* An operator that takes sizes there can be asked what it needs of them; one that takes numbers
 * only cannot. */
static bool can_be_open(const Site *x)
{
    return x->whole && (x->schema->base == SB_SYMINT || x->schema->base == SB_SCALAR ||
                        x->schema->base == SB_TENSOR ||
                        p2o_op_varies(x->call->op, x->schema->name));
}

static bool has_minus_one(const Call *c)
{
    int64_t v;
    for (int k = 0; k < c->nargs; k++)
        for (uint32_t i = 0; c->args[k].kind == ARG_LIST && i < c->args[k].n; i++)
            if (c->args[k].items[i].kind == ARG_INT &&
                p2o_dim_is_int(c->args[k].items[i].i, &v) && v == -1)
                return true;
    return false;
}

/* A spelled number that rules would make a size without need: beside a -1, of pieces. */
static bool stays_as_spelled(const Site *x)
{
    return x->call->op->pieces || (x->call->op->reshapes && has_minus_one(x->call));
}

/* Rules may say what a number is that was the same in all captures, unless every size was another
 * there: then it is only weighed.  0 is rarely a size, and nothing asks for one. */
static bool is_opened(const Sites *s, const Site *x)
{
    bool size = x->role <= NUMBER_REST;
    bool spelled = x->spelled == SPELLED_YES && stays_as_spelled(x);
    bool window = x->schema->base == SB_INT && !p2o_op_counts(x->call->op, x->schema->name);
    bool asked = size && !window && !x->negative && x->at[0] >= 1 && x->at[0] < 0x1p53 &&
                 !spelled && !s->all_vary;
    return can_be_open(x) && (x->differs || asked);
}

/* What is no whole number that a double tells from its neighbours is that of no size. */
static void open_site(Sites *s, Site *x)
{
    int64_t hints[MAX_CAPTURES];
    for (int k = 0; k < p2o_ncapture(s->bind); k++)
        if (!p2o_whole(x->negative ? -x->at[k] : x->at[k], &hints[k]))
            hints[k] = (int64_t)UNKNOWN;        /* what ends past all sizes, on an axis not known */
    x->open = p2o_soft(s->bind, hints, x->call->target, x->call->loc);
    *x->arg = arg_int(x->open);
}

/* A start that is None is 0. */
static bool is_default(const SchemaArg *s, NumberRole role, double v)
{
    const Arg *d = s->dflt.kind == ARG_LIST && s->dflt.n ? &s->dflt.items[0] : &s->dflt;
    double     usual;
    if (d->kind == ARG_NONE && role == NUMBER_PLACE)
        return s->has_default && v == 0;
    return s->has_default && number_in(d, &usual) && usual == v;
}

/* What is left over is 0 of every other size: that it is the default says nothing. */
static bool is_usual(const Site *x)
{
    return x->role != NUMBER_REST && is_default(x->schema, x->role, x->at[0]) && !x->negative;
}

/* By its type: a step or a stride, but not an axis. */
static bool takes_sizes(const Site *x) { return x->schema->base == SB_SYMINT; }

/* stride=1 stands for [1, 1]. */
static bool same_number(const Arg *x, const Arg *y)
{
    double v, w;
    return number_in(x, &v) && number_in(y, &w) && v == w;
}

/* The same of all arithmetic in the line: x / n + 4. */
static void **line_slot(Collecting *w, const Call *c, double v)
{
    return p2o_map_slot(&w->times, str_of(p2o_printf(w->s->prog->arena, "%u %.17g", c->loc, v)));
}

/* How often the line has to have the number: as often as one of its calls of an operator.  Of
 * slices and the like a line has several: x[:4, :n]. */
static void count_times(Collecting *w, const Site *x)
{
    void    **times = times_slot(w, x->call, fabs(x->at[0]));
    uintptr_t n = 1;
    for (size_t i = w->s->list.n; i > 0 && w->s->list.at[i - 1]->call == x->call; i--)
        n += w->s->list.at[i - 1]->counted && fabs(w->s->list.at[i - 1]->at[0]) == fabs(x->at[0]);
    if (x->role == NUMBER_PLACE)
        n = (uintptr_t)*times + 1;
    if (n <= (uintptr_t)*times)
        return;
    uintptr_t more = x->role == NUMBER_FACTOR ? n - (uintptr_t)*times : 0;
    *times = (void *)n;                         /* before the map grows */
    void **all = line_slot(w, x->call, fabs(x->at[0]));
    *all = (void *)((uintptr_t)*all + more);
}

/* A call that does nothing in some captures says nothing there of a number that does not matter
 * then: it is what it was in the others, if that is one number, and else unknown. */
static void stand_in_for(double *at, const bool *lacks, int n)
{
    int  first = 0;
    bool differs = false;
    while (first < n - 1 && lacks[first])
        first++;
    for (int k = first; k < n; k++)
        differs |= !lacks[k] && at[k] != at[first];
    for (int k = 0; k < n; k++)
        if (lacks[k])
            at[k] = differs ? UNKNOWN : at[first];
}

static void see_site(Collecting *w, const LinedCall *row, int arg, int item)
{
    const Call *c = row->call;
    Site       *x = NEW(w->s->prog->arena, Site);
    *x = (Site){ .call = row->call, .schema = &c->schema->args[arg] };
    x->arg = item < 0 ? &row->call->args[arg] : &row->call->args[arg].items[item];
    x->role = p2o_op_role(c->op, x->schema);
    x->whole = x->arg->kind == ARG_INT;
    if (x->role == NUMBER_NONE)
        return;
    bool lacks[MAX_CAPTURES] = { false };
    for (int k = 0; k < w->l->n; k++) {
        if (!row->of[k] && !c->op->idle)
            return;                             /* of sizes alone: captures with numbers lack it */
        lacks[k] = !number_at(w, row, k, arg, item, &x->at[k]);
        if (lacks[k] && row->of[k])
            return;                             /* a size that the capture has as a symbol */
    }
    stand_in_for(x->at, lacks, w->l->n);
    if (x->whole && x->role == NUMBER_PLACE && !count_from_start(row, w->l->n, x->at))
        return;
    x->negative = x->whole && x->role == NUMBER_PLACE && turn_sign(x, w->l->n);
    for (int k = 1; k < w->l->n; k++)
        x->differs |= x->at[k] != x->at[0] && !(isnan(x->at[k]) && isnan(x->at[0]));
    if (x->whole && x->role == NUMBER_EXTENT && x->at[0] < 0 && !x->differs)
        return;                                 /* -1: whatever it takes */
    bool repeated = item > 0 && x->schema->list_size > 0 && x->arg[-1].kind == x->arg->kind &&
                    same_number(&x->arg[-1], x->arg);
    x->counted = (x->role != NUMBER_SETTING || takes_sizes(x)) && !is_usual(x) && !repeated &&
                 !x->schema->result;
    if (x->counted)
        count_times(w, x);
    VEC_PUSH(w->s->prog->arena, &w->s->list, x);
}

/* How often calls of a line have a number, axes counted: each needs a place in the line.  `of`: in
 * all, of an operator, or of one call.  1.0 is another number than 1. */
static uintptr_t count_of(Sites *s, Loc line, const char *of, double v, bool is_float, int more)
{
    const char *key = p2o_printf(s->prog->arena, "%u %s %c%.17g", line, of, "if"[is_float], v);
    void      **slot = p2o_map_slot(&s->uses, str_of(key));
    *slot = (void *)((uintptr_t)*slot + (uintptr_t)more);
    return (uintptr_t)*slot;
}

static bool is_same_in_captures(const Collecting *w, const LinedCall *row, int arg, int item)
{
    const Arg *own = &row->call->args[arg];
    double     v, first;
    number_in(item < 0 ? own : &own->items[item], &first);
    for (int k = 1; k < w->l->n; k++)
        if (arg_in(row, k, arg, item) && number_in(arg_in(row, k, arg, item), &v) && v != first)
            return false;
    return true;
}

/* Of an operator that a line calls again and again, the call with most uses counts; a slice and
 * what is written back through it are one.  What differs between captures is no number. */
static void count_use(Collecting *w, const LinedCall *row, const Arg *x, int arg, int item)
{
    const Call      *c = row->call;
    const SchemaArg *s = &c->schema->args[arg];
    NumberRole       role = p2o_op_role(c->op, s);
    double           v;
    bool             is_float = x->kind == ARG_FLOAT;
    if (!number_in(x, &v) || s->result || is_default(s, role, v) ||
        (c->op->indexing && role == NUMBER_SETTING) || !is_same_in_captures(w, row, arg, item) ||
        (item > 0 && s->list_size > 0 && same_number(x - 1, x)))
        return;
    const char *call = p2o_printf(w->s->prog->arena, "call %zu", (size_t)(row - w->l->calls.at));
    const char *of = c->op->indexing ? "[]" : c->target;
    uintptr_t   n = count_of(w->s, c->loc, call, v, is_float, 1);
    if (n <= count_of(w->s, c->loc, of, v, is_float, 0))
        return;
    count_of(w->s, c->loc, of, v, is_float, 1);         /* the most, which n is now */
    count_of(w->s, c->loc, "", v, is_float, 1);
}

static void count_uses(Collecting *w, const LinedCall *row)
{
    for (int k = 0; k < row->call->nargs; k++) {
        const Arg *x = &row->call->args[k];
        count_use(w, row, x, k, -1);
        for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
            count_use(w, row, &x->items[i], k, (int)i);
    }
}

static void see_call(Collecting *w, const LinedCall *row)
{
    count_uses(w, row);
    for (int k = 0; k < row->call->nargs; k++) {
        const Arg *x = &row->call->args[k];
        if (x->kind == ARG_INT || x->kind == ARG_FLOAT)
            see_site(w, row, k, -1);
        for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
            if (x->items[i].kind == ARG_INT || x->items[i].kind == ARG_FLOAT)
                see_site(w, row, k, (int)i);
    }
}

/* Scalars keep what Python had: (n - 1) / 2 is 1.0, which a line with a 1 does not spell. */
static int times_spelled(const Site *x, const Place *at, double number)
{
    bool scalar = x->schema->base == SB_SCALAR || x->schema->base == SB_TENSOR;
    if (!x->whole && scalar && number == floor(number))
        return p2o_spelled_float(at, number);
    return x->role == NUMBER_FACTOR ? p2o_spelled_times(at, number) : p2o_spelled_alone(at, number);
}

/* As often as its calls have it. */
static Spelled is_spelled(Collecting *w, const Site *x)
{
    const Place *at = p2o_place_at(w->s->prog->diags, x->call->loc);
    double       number = x->negative ? -x->at[0] : x->at[0];
    int          times = times_spelled(x, at, number);
    if (times < 0 || x->schema->result)         /* what the operator makes is in no line */
        return SPELLED_UNKNOWN;
    void **slot = (x->role == NUMBER_FACTOR ? line_slot : times_slot)(w, x->call, fabs(x->at[0]));
    if ((uintptr_t)times < (uintptr_t)*slot)
        return SPELLED_NO;
    uintptr_t uses = count_of(w->s, x->call->loc, "", number, x->arg->kind == ARG_FLOAT, 0);
    return (uintptr_t)times < uses ? SPELLED_SHARED : SPELLED_YES;
}

void p2o_sites_collect(Sites *s, const Lineup *l)
{
    Collecting w = { .s = s, .l = l, .times = { .arena = s->prog->arena } };
    s->uses = (Map){ .arena = s->prog->arena };
    size_t     from = s->list.n;
    for (size_t i = 0; i < l->calls.n; i++)
        see_call(&w, &l->calls.at[i]);
    for (size_t i = from; i < s->list.n; i++) {
        Site *x = s->list.at[i];
        x->spelled = is_spelled(&w, x);
        if (is_opened(s, x))
            open_site(s, x);
    }
}

void p2o_site_note(Sites *s, Call *c, double v)
{
    static const SchemaArg made = { .name = "", .base = SB_SCALAR };
    Site                  *site = NEW(s->prog->arena, Site);
    *site = (Site){ .call = c, .schema = &made, .role = NUMBER_FACTOR, .whole = v == floor(v) };
    for (int k = 0; k < p2o_ncapture(s->bind); k++)
        site->at[k] = v;
    int       times = p2o_spelled_times(p2o_place_at(s->prog->diags, c->loc), v);
    uintptr_t uses = count_of(s, c->loc, "", v, false, 0);
    site->spelled = times < 0               ? SPELLED_UNKNOWN
                    : !times                ? SPELLED_NO
                    : (uintptr_t)times > uses ? SPELLED_YES
                                            : SPELLED_SHARED;
    VEC_PUSH(s->prog->arena, &s->list, site);
}

Site *p2o_site_add(Sites *s, Call *c, Arg *x, NumberRole role, const int64_t *at)
{
    static const SchemaArg made = { .name = "", .base = SB_SYMINT };
    Site                  *site = NEW(s->prog->arena, Site);
    *site = (Site){ .call = c, .arg = x, .schema = &made, .role = role, .whole = true };
    for (int k = 0; k < p2o_ncapture(s->bind); k++) {
        site->at[k] = (double)at[k];
        site->differs |= at[k] != at[0];
    }
    VEC_PUSH(s->prog->arena, &s->list, site);
    open_site(s, site);
    return site;
}

static bool is_fixed_size(const Sites *s, Shape of, int axis, double v)
{
    int64_t size;
    return axis >= 0 && axis < of.rank && v > 1 &&
           p2o_dim_is_int(p2o_resolve(s->bind, of.at[axis]), &size) && (double)size == v;
}

/* How often a call's tensors have a size that never changes. */
static int times_fixed(const Sites *s, const Call *c, double v)
{
    int n = 0;
    for (int k = 0; k < c->nargs; k++)
        for (int i = 0; c->args[k].kind == ARG_VAR && i < c->args[k].var->type.shape.rank; i++)
            n += is_fixed_size(s, c->args[k].var->type.shape, i, v);
    return n;
}

/* How often a list had a number in the first capture, apart from sizes that are known. */
static int times_listed(const Sites *s, const Arg *list, double v)
{
    int     n = 0;
    int64_t was;
    for (uint32_t i = 0; list && i < list->n; i++) {
        Dim d = list->items[i].kind == ARG_INT ? p2o_resolve(s->bind, list->items[i].i) : NULL;
        if (d && (p2o_dim_is_int(d, NULL) || p2o_has_soft(s->bind, d)))
            n += p2o_hint_at(s->bind, d, 0, &was) && (double)was == v;
    }
    return n;
}

/* The list that it is an item of, and its place there; NULL: it is none. */
static const Arg *list_of(const Site *x, int *item)
{
    for (int k = 0; k < x->call->nargs; k++) {
        const Arg *list = &x->call->args[k];
        for (uint32_t i = 0; list->kind == ARG_LIST && i < list->n; i++) {
            *item = (int)i;
            if (&list->items[i] == x->arg)
                return list;
        }
    }
    *item = -1;
    return NULL;
}

/* Pads come in pairs, those of the last axis first; what is left over has one for each axis. */
static bool axis_of_site(const Site *x, int rank, int *axis)
{
    int        item;
    const Arg *list = list_of(x, &item);
    if (!list || (x->role != NUMBER_PAD && x->role != NUMBER_REST))
        return axis_of_place(x->call, rank, axis);
    *axis = x->role == NUMBER_REST ? rank - (int)list->n + item : rank - 1 - item / 2;
    return *axis >= 0;
}

Dim p2o_site_axis(const Sites *s, const Site *x)
{
    const Call *c = x->call;
    int         axis;
    if (x->role == NUMBER_FACTOR || !c->schema || !c->nargs || c->args[0].kind != ARG_VAR ||
        x->schema->result)
        return NULL;
    Shape self = c->args[0].var->type.shape;
    return axis_of_site(x, self.rank, &axis) ? p2o_resolve(s->bind, self.at[axis]) : NULL;
}

/* x times another item of the list, or whatever a -1 stands for, is `size`. */
static bool is_factor_in(const Sites *s, const Arg *list, const Site *x, int64_t size)
{
    int64_t other;
    double  v = x->at[0];
    for (uint32_t i = 0; list->kind == ARG_LIST && i < list->n; i++)
        if (&list->items[i] != x->arg && list->items[i].kind == ARG_INT &&
            p2o_dim_is_int(p2o_resolve(s->bind, list->items[i].i), &other) &&
            ((double)other * v == (double)size || (other == -1 && size % (int64_t)v == 0)))
            return true;
    return false;
}

/* 4 heads of 8, where 32 never changes. */
static bool splits_fixed_size(const Sites *s, const Site *x)
{
    const Call *c = x->call;
    int64_t     size;
    if (!c->op || !c->op->reshapes || c->nargs < 2 || c->args[0].kind != ARG_VAR || x->at[0] < 2)
        return false;
    Shape self = c->args[0].var->type.shape;
    for (int i = 0; i < self.rank; i++)
        if (p2o_dim_is_int(p2o_resolve(s->bind, self.at[i]), &size) && (double)size > x->at[0] &&
            is_factor_in(s, &c->args[1], x, size))
            return true;
    return false;
}

/* The same axis, counted from the last, of a tensor that the call takes. */
static bool is_fixed_beside(const Sites *s, const Site *x)
{
    const Call *c = x->call;
    int         item;
    const Arg  *list = list_of(x, &item);
    for (int i = 0; list && i < c->nargs; i++) {
        Shape of = c->args[i].kind == ARG_VAR ? c->args[i].var->type.shape : (Shape){ 0 };
        if (is_fixed_size(s, of, of.rank - (int)list->n + item, x->at[0]))
            return true;
    }
    return false;
}

/* A reshape has the sizes that never change again, each once: one more has another reason. */
static bool is_kept_size(const Sites *s, const Site *x)
{
    int        item;
    const Arg *list = list_of(x, &item);
    return times_fixed(s, x->call, x->at[0]) >= (list ? times_listed(s, list, x->at[0]) : 1);
}

/* A place along an axis that never changes, or a size that its tensors have too. */
static bool stands_by_fixed(const Sites *s, const Site *x)
{
    const Call *c = x->call;
    Dim         axis = x->role == NUMBER_PLACE ? p2o_site_axis(s, x) : NULL;
    if (axis)
        return p2o_dim_is_int(axis, NULL);
    if (!x->whole || x->role == NUMBER_FACTOR || !c->nargs)
        return false;
    if (!c->op || !c->op->reshapes)
        return is_fixed_beside(s, x);
    return is_kept_size(s, x) || splits_fixed_size(s, x);
}

/* What the capture says of the axis that an item of a list is for; NULL: nothing. */
static Dim recorded_axis(const Site *x)
{
    const Arg *list = &x->call->args[p2o_schema_find(x->call->schema, x->schema->name)];
    const Arg *self = &x->call->args[0];
    if (list->kind != ARG_LIST || self->kind != ARG_VAR)
        return NULL;
    Shape s = self->var->recorded.shape;
    int   axis = s.rank - (int)list->n + (int)(x->arg - list->items);
    return axis >= 0 && axis < s.rank ? s.at[axis] : NULL;
}

/* It was the size of its own axis: a module that leaves the axis as it is writes that, too. */
static bool was_own_axis(const Site *x)
{
    int64_t size;
    Dim     axis = recorded_axis(x);
    return axis && p2o_dim_is_int(axis, &size) && (double)size == x->at[0];
}

/* The capture has no symbol for the axis: what was computed of it is a number there. */
static bool was_fixed_axis(const Site *x)
{
    Dim axis = recorded_axis(x);
    return !axis || p2o_dim_is_int(axis, NULL);
}

/* A step that the user's own line does not have came from somewhere: it is weighed as any size. */
static NumberRole role_here(const Site *x, const Place *at)
{
    bool computed = x->role == NUMBER_SETTING && takes_sizes(x) && x->spelled == SPELLED_NO &&
                    !(at && at->library);
    return computed ? NUMBER_EXTENT : x->role;
}

/* Modules of torch.nn take numbers from their constructors, but make some of sizes.  What is left
 * over is rarely among those: one capture tells nothing of it, two that it stays. */
static bool is_module_option(const Sites *s, const Site *x, const Place *at)
{
    NumberMade made = x->call->op ? p2o_op_made(x->call->op, x->schema->name) : MADE_NEVER;
    return at && at->library && made != MADE_ALWAYS &&
           !(made == MADE_OF_AXIS && was_own_axis(x)) &&
           !(made == MADE_OF_REST && p2o_ncapture(s->bind) == 1 && was_fixed_axis(x));
}

/* x * 1: it does nothing. */
static bool is_neutral(const Site *x)
{
    Neutral n = x->call->op ? x->call->op->neutral : NEUTRAL_NONE;
    return n != NEUTRAL_NONE && x->call->nargs > 1 && x->arg == &x->call->args[1] &&
           x->at[0] == (n == NEUTRAL_ONE);
}

static bool varies_in(const Sites *s, const Arg *x)
{
    Shape shape = x->kind == ARG_VAR ? x->var->type.shape : (Shape){ 0 };
    bool  varies = x->kind == ARG_VAR && x->var->type.kind != TY_TENSOR;
    for (int i = 0; i < shape.rank; i++)
        varies |= !p2o_dim_is_int(p2o_resolve(s->bind, shape.at[i]), NULL);
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        varies |= varies_in(s, &x->items[i]);
    return varies;
}

/* A size of what an operator gives that nobody here has seen the inside of. */
static bool is_given_size(const Sites *s, const Site *x)
{
    bool varies = false;
    for (int i = 0; x->schema->result && i < x->call->nargs; i++)
        varies |= !x->call->schema->args[i].result && varies_in(s, &x->call->args[i]);
    return varies;
}

Evidence p2o_site_evidence(const Sites *s, const Site *x)
{
    const Place *at = p2o_place_at(s->prog->diags, x->call->loc);
    return (Evidence){ .at = x->at, .nfit = p2o_nfit(s->bind), .ncapture = p2o_ncapture(s->bind),
                       .role = role_here(x, at), .spelled = x->spelled, .usual = is_usual(x),
                       .fixed = stands_by_fixed(s, x), .setting = is_module_option(s, x, at),
                       .idle = is_neutral(x), .given = is_given_size(s, x),
                       .own = p2o_site_axis(s, x),
                       .line = at && at->text && !at->library ? at : NULL };
}
