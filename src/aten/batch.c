/* The batched selves of operators: see batch.h.
 *
 * Three ideas carry most of it.  What broadcasts only has to be aligned; what works along an axis
 * only has to be told that there are others before it; what only gives the elements another shape
 * is a view as what the result is known to be. */
#include "aten/batch.h"

#include "aten/infer.h"

static bool is_tensor(const Arg *x)
{
    return x->kind == ARG_VAR && x->var->type.kind == TY_TENSOR;
}

static int first_rank(const Call *c)
{
    const Arg *x = &c->args[0];
    return logical_shape(x->kind == ARG_LIST && x->n ? &x->items[0] : x).rank;
}

/* The named argument's place in args, which is in the order of c's row. */
static Arg *slot(const Call *c, Arg *args, const char *name)
{
    int i = p2o_schema_find(c->schema, name);
    return i < 0 ? NULL : &args[i];
}

static Arg *batched_args(Vmap *v, const Call *c)
{
    Arg *args = NEW_N(v->arena, Arg, (size_t)c->nargs + 1);
    for (int i = 0; i < c->nargs; i++)
        args[i] = batched_arg(v, &c->args[i]);
    return args;
}

/* Result types go by which tensors are 0-d, and hidden axes must not count. */
static void note_promotion(const Vmap *v, const Arg *x, Promotion *plain, Promotion *batched)
{
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        note_promotion(v, &x->items[i], plain, batched);
    Type t = p2o_arg_type(x);
    if (x->kind == ARG_LIST || t.kind == TY_NONE)
        return;
    promote_type(plain, t);
    if (levels_of(v, x) && t.shape.rank == 0)
        t.shape.rank = 1;
    promote_type(batched, t);
}

static void cast_to(Vmap *v, Arg *x, const Arg *was, DType t)
{
    if (is_tensor(was) && was->var->type.dtype != t && was->var->type.dtype != DT_BOOL)
        *x = add_batched(v, "aten::to.dtype", 2,
                         (Arg[]){ *x, { .kind = ARG_DTYPE, .dtype = t } });
}

bool p2o_batch_pointwise(Vmap *v, const Call *c)
{
    Levels    l = levels_of_call(v, c);
    Arg      *args = batched_args(v, c);
    Promotion plain = { 0 }, batched = { 0 };
    int       rank = 0;
    for (int i = 0; i < c->nargs; i++) {
        int r = is_tensor(&c->args[i]) ? logical_shape(&c->args[i]).rank : 0;
        rank = r > rank ? r : rank;
        if (c->schema->args[i].base == SB_TENSOR)
            note_promotion(v, &c->args[i], &plain, &batched);
    }
    for (int i = 0; i < c->nargs; i++) {
        if (is_tensor(&c->args[i]) && levels_of(v, &c->args[i]))
            args[i] = aligned_arg(v, &c->args[i], l, rank, false);
        if (promoted(&plain) != promoted(&batched))
            cast_to(v, &args[i], &c->args[i], promoted(&plain));
    }
    return call_batched(v, c, c->op, args, l);
}

bool p2o_batch_into(Vmap *v, const Call *c)
{
    Levels l = levels_of_call(v, c);
    Arg   *args = batched_args(v, c);
    int    rank = first_rank(c);
    args[0] = spread_arg(v, &c->args[0], l);
    for (int i = 1; i < c->nargs; i++)
        if (levels_of(v, &c->args[i]))
            args[i] = aligned_arg(v, &c->args[i], l, rank, false);
    return call_batched(v, c, c->op, args, l);
}

/* The value is a number to the operator, but not with hidden axes: it is copied then. */
bool p2o_batch_fill(Vmap *v, const Call *c)
{
    const Arg *value = p2o_call_arg(c, "value");
    Levels     l = levels_of_call(v, c);
    if (!levels_of(v, value))
        return p2o_batch_into(v, c);
    Arg y = add_batched(v, "aten::copy", 2,
                        (Arg[]){ spread_arg(v, &c->args[0], l),
                                 aligned_arg(v, value, l, first_rank(c), false) });
    return set_batched(v, c, y, l);
}

bool p2o_batch_self(Vmap *v, const Call *c)
{
    return call_batched(v, c, c->op, batched_args(v, c), levels_of(v, &c->args[0]));
}

bool p2o_batch_type(Vmap *v, const Call *c)
{
    return call_batched(v, c, c->op, batched_args(v, c), 0);
}

/* By PyTorch's names for arguments that count axes. */
static bool names_axes(const SchemaArg *a)
{
    static const char *const names[] = { "dim", "dims", "dim0", "dim1", "dim2", "axis", "axis0",
                                         "axis1", "source", "destination" };
    for (size_t i = 0; i < COUNT_OF(names) && a->base == SB_INT; i++)
        if (same(a->name, names[i]))
            return true;
    return false;
}

static Arg behind_levels(Vmap *v, const Arg *x, int n)
{
    int64_t dim = 0;
    p2o_dim_is_int(p2o_arg_dim(x), &dim);
    return dim < 0 ? *x : int_arg_of(v, dim + n);
}

/* false: no axes are given, which stands for all of them, or none. */
static bool shift_axes(Vmap *v, const Call *c, Arg *args, int n)
{
    bool given = true, any = false;
    for (int i = 0; i < c->nargs; i++) {
        if (!names_axes(&c->schema->args[i]))
            continue;
        const Arg *x = &c->args[i];
        any = true;
        given &= x->kind == ARG_INT || x->kind == ARG_VAR || (x->kind == ARG_LIST && x->n);
        if (x->kind != ARG_LIST && given)
            args[i] = behind_levels(v, x, n);
        Arg *items = x->kind == ARG_LIST ? NEW_N(v->arena, Arg, x->n) : NULL;
        for (uint32_t k = 0; items && k < x->n; k++)
            items[k] = behind_levels(v, &x->items[k], n);
        if (items && given)
            args[i] = arg_list(items, x->n);
    }
    return given && any;
}

static bool others_are_plain(const Vmap *v, const Call *c)
{
    for (int i = 1; i < c->nargs; i++)
        if (levels_of(v, &c->args[i]))
            return false;
    return true;
}

/* A 0-d value may be reduced, sorted, flipped along its axis 0 or -1, that it does not have. */
static Arg with_an_axis(Vmap *v, const Arg *x, Levels l)
{
    Shape one = { 1, (Dim[]){ p2o_dim_int(v->prog->dims, 1) } };
    return view_as_shape(v, spread_arg(v, x, l), batched_shape(v, l, one));
}

bool p2o_batch_axes(Vmap *v, const Call *c)
{
    Levels l = levels_of_call(v, c);
    Arg   *args = batched_args(v, c);
    if (!others_are_plain(v, c))
        return refuse_batched(v, c, "an argument beside the first is batched");
    if (!shift_axes(v, c, args, nlevels(l)))
        return refuse_batched(v, c, "no axis is given");
    if (c->args[0].kind == ARG_LIST)
        for (uint32_t i = 0; i < args[0].n; i++)
            args[0].items[i] = spread_arg(v, &c->args[0].items[i], l);
    else if (first_rank(c) == 0) {
        args[0] = with_an_axis(v, &c->args[0], l);
        return call_reshaped(v, c, c->op, args, l);
    }
    return call_batched(v, c, c->op, args, l);
}

bool p2o_batch_new_axis(Vmap *v, const Call *c)
{
    Levels l = levels_of_call(v, c);
    Arg   *args = batched_args(v, c);
    shift_axes(v, c, args, nlevels(l));
    for (uint32_t i = 0; c->args[0].kind == ARG_LIST && i < args[0].n; i++)
        args[0].items[i] = spread_arg(v, &c->args[0].items[i], l);
    return call_batched(v, c, c->op, args, l);
}

/* All elements of each value in a row. */
static Arg flat_value(Vmap *v, const Arg *x, Levels l)
{
    Dim n = shape_nelem(v->prog->dims, logical_shape(x));
    return view_as_shape(v, batched_arg(v, x), batched_shape(v, l, (Shape){ 1, &n }));
}

static Arg last_axis(Vmap *v, bool list)
{
    Arg *dim = NEW(v->arena, Arg);
    *dim = int_arg_of(v, -1);
    return list ? arg_list(dim, 1) : *dim;
}

bool p2o_batch_reduce(Vmap *v, const Call *c)
{
    Levels l = levels_of_call(v, c);
    Arg   *args = batched_args(v, c), *dim = slot(c, args, "dim");
    if (!others_are_plain(v, c))
        return refuse_batched(v, c, "an argument beside the first is batched");
    if (shift_axes(v, c, args, nlevels(l)) && first_rank(c))
        return call_batched(v, c, c->op, args, l);
    args[0] = flat_value(v, &c->args[0], l);
    *dim = last_axis(v, c->schema->args[dim - args].list);
    return call_reshaped(v, c, c->op, args, l);
}

bool p2o_batch_along(Vmap *v, const Call *c)
{
    Levels        l = levels_of_call(v, c);
    const AtenOp *op = batch_row(v, p2o_schema_key(v->arena, c->op->along));
    const Schema *s = p2o_ops_schema(v->ops, op);
    Arg          *args = NEW_N(v->arena, Arg, (size_t)s->nargs);
    for (int i = 0; i < s->nargs; i++) {
        int k = p2o_schema_find(c->schema, s->args[i].name);
        args[i] = same(s->args[i].name, "dim") ? last_axis(v, s->args[i].list)
                  : k >= 0                     ? c->args[k]
                                               : s->args[i].dflt;
    }
    args[0] = flat_value(v, &c->args[0], l);
    return call_reshaped(v, c, op, args, l);
}

/* What gathers and scatters takes a number for a row of one. */
bool p2o_batch_together(Vmap *v, const Call *c)
{
    Levels l = levels_of_call(v, c);
    Arg   *args = batched_args(v, c);
    int    index = p2o_schema_find(c->schema, "index");
    bool   picks = index >= 0 && is_tensor(&c->args[index]), numbers = false;
    for (int i = 0; i < c->nargs; i++)
        numbers |= picks && is_tensor(&c->args[i]) && logical_shape(&c->args[i]).rank == 0;
    if (first_rank(c) == 0 && !picks)
        return refuse_batched(v, c, "of a number");
    if (!shift_axes(v, c, args, nlevels(l)))
        return refuse_batched(v, c, "no axis is given");
    for (int i = 0; i < c->nargs; i++)
        if (is_tensor(&c->args[i]))
            args[i] = numbers && logical_shape(&c->args[i]).rank == 0
                          ? with_an_axis(v, &c->args[i], l)
                          : spread_arg(v, &c->args[i], l);
    return numbers ? call_reshaped(v, c, c->op, args, l) : call_batched(v, c, c->op, args, l);
}

bool p2o_batch_view(Vmap *v, const Call *c)
{
    Levels l = levels_of(v, &c->args[0]);
    if (c->nouts != 1 || !c->outs[0])
        return refuse_batched(v, c, "several results");
    return set_batched(v, c, view_as_shape(v, batched_arg(v, &c->args[0]),
                                           batched_shape(v, l, c->outs[0]->type.shape)), l);
}

static Arg expanded_to(Vmap *v, const Arg *x, Levels l, Shape to)
{
    return add_batched(v, "aten::expand", 2,
                       (Arg[]){ aligned_arg(v, x, l, to.rank, true),
                                dims_arg(v, batched_shape(v, l, to)) });
}

bool p2o_batch_expand(Vmap *v, const Call *c)
{
    Levels l = levels_of(v, &c->args[0]);
    return set_batched(v, c, expanded_to(v, &c->args[0], l, c->outs[0]->type.shape), l);
}

bool p2o_batch_permute(Vmap *v, const Call *c)
{
    Levels     l = levels_of(v, &c->args[0]);
    int        n = nlevels(l), rank = first_rank(c), dim;
    Arg       *items = NEW_N(v->arena, Arg, (size_t)(n + rank));
    for (int i = 0; i < n; i++)
        items[i] = int_arg_of(v, i);
    for (int i = 0; i < rank; i++) {
        if (!p2o_wrap_dim(int_item(c, "dims", i), rank, false, &dim))
            return refuse_batched(v, c, "an axis out of range");
        items[n + i] = int_arg_of(v, n + dim);
    }
    return call_batched(v, c, c->op,
                        (Arg[]){ batched_arg(v, &c->args[0]), arg_list(items, (size_t)(n + rank)) },
                        l);
}

bool p2o_batch_repeat(Vmap *v, const Call *c)
{
    Levels     l = levels_of(v, &c->args[0]);
    int        n = nlevels(l), rank = first_rank(c);
    const Arg *times = &c->args[1];
    int        more = rank > (int)times->n ? rank - (int)times->n : 0;     /* tile takes fewer */
    size_t     total = (size_t)(n + more) + times->n;
    Arg       *items = NEW_N(v->arena, Arg, total);
    for (int i = 0; i < n + more; i++)
        items[i] = int_arg_of(v, 1);
    for (uint32_t i = 0; i < times->n; i++)
        items[n + more + (int)i] = times->items[i];
    Arg x = aligned_arg(v, &c->args[0], l, more + (int)times->n, true);
    return call_batched(v, c, c->op, (Arg[]){ x, arg_list(items, total) }, l);
}

bool p2o_batch_tail(Vmap *v, const Call *c)
{
    if (!others_are_plain(v, c))
        return refuse_batched(v, c, "an argument beside the first is batched");
    return call_batched(v, c, c->op, batched_args(v, c), levels_of(v, &c->args[0]));
}

bool p2o_batch_swap_tail(Vmap *v, const Call *c)
{
    Levels l = levels_of(v, &c->args[0]);
    Arg    x = batched_arg(v, &c->args[0]);
    if (first_rank(c) > 2 && (same(c->schema->key, "aten::numpy_T")))
        return refuse_batched(v, c, "of more than two axes");
    if (first_rank(c) >= 2)
        x = add_batched(v, "aten::transpose.int", 3,
                        (Arg[]){ x, int_arg_of(v, -2), int_arg_of(v, -1) });
    return set_batched(v, c, x, l);
}

/* As a matrix, an axis of 1 where it is a vector; axes of 1 up to `rank`. */
static Arg matrix_of(Vmap *v, const Arg *x, Levels l, int rank, bool left)
{
    if (logical_shape(x).rank >= 2)
        return aligned_arg(v, x, l, rank, true);
    Arg y = add_batched(v, "aten::unsqueeze", 2,
                        (Arg[]){ aligned_arg(v, x, l, 1, true), int_arg_of(v, left ? -2 : -1) });
    for (int i = 2; i < rank; i++)
        y = add_batched(v, "aten::unsqueeze", 2, (Arg[]){ y, int_arg_of(v, nlevels(l)) });
    return y;
}

static Arg product_of(Vmap *v, const Arg *a, const Arg *b, Levels l)
{
    int ra = logical_shape(a).rank, rb = logical_shape(b).rank, rank = ra > rb ? ra : rb;
    rank = rank > 2 ? rank : 2;
    Arg y = add_batched(v, "aten::matmul", 2, (Arg[]){ matrix_of(v, a, l, rank, true),
                                                       matrix_of(v, b, l, rank, false) });
    if (rb == 1)
        y = add_batched(v, "aten::squeeze.dim", 2, (Arg[]){ y, int_arg_of(v, -1) });
    if (ra == 1)
        y = add_batched(v, "aten::squeeze.dim", 2, (Arg[]){ y, int_arg_of(v, rb == 1 ? -1 : -2) });
    return y;
}

bool p2o_batch_matmul(Vmap *v, const Call *c)
{
    Levels l = levels_of_call(v, c);
    return set_batched(v, c, product_of(v, &c->args[0], &c->args[1], l), l);
}

/* x + alpha * y */
static Arg sum_of(Vmap *v, Arg x, Arg y, Arg alpha)
{
    return add_batched(v, "aten::add.Tensor", 3, (Arg[]){ x, y, alpha });
}

bool p2o_batch_linear(Vmap *v, const Call *c)
{
    Levels     l = levels_of_call(v, c);
    const Arg *x = &c->args[0], *w = &c->args[1], *bias = &c->args[2];
    int        rank = first_rank(c);
    if (!levels_of(v, w) && !levels_of(v, bias))
        return p2o_batch_tail(v, c);
    if (logical_shape(w).rank != 2)
        return refuse_batched(v, c, "a batched weight that is no matrix");
    int  wide = rank > 2 ? rank : 2;
    Arg  wt = add_batched(v, "aten::transpose.int", 3,
                          (Arg[]){ aligned_arg(v, w, l, wide, true), int_arg_of(v, -2),
                                   int_arg_of(v, -1) });
    Arg  y = add_batched(v, "aten::matmul", 2, (Arg[]){ matrix_of(v, x, l, wide, true), wt });
    if (rank == 1)
        y = add_batched(v, "aten::squeeze.dim", 2, (Arg[]){ y, int_arg_of(v, -2) });
    if (bias->kind != ARG_NONE)
        y = sum_of(v, y, aligned_arg(v, bias, l, rank, true), int_arg_of(v, 1));
    return set_batched(v, c, y, l);
}

static bool is_number(const Arg *x, double n)
{
    double f;
    return p2o_number_is_const(x, &f) && f == n;
}

/* beta * self + alpha * (a @ b) */
bool p2o_batch_addmm(Vmap *v, const Call *c)
{
    Levels     l = levels_of_call(v, c);
    const Arg *beta = p2o_call_arg(c, "beta"), *alpha = p2o_call_arg(c, "alpha");
    int        rank = c->outs[0]->type.shape.rank;
    Arg        x = aligned_arg(v, &c->args[0], l, rank, true);
    Arg        y = product_of(v, &c->args[1], &c->args[2], l);
    if (is_number(beta, 0))                     /* self is not looked at, whatever it is */
        return refuse_batched(v, c, "beta of 0");
    if (!is_number(beta, 1))
        x = add_batched(v, "aten::mul.Scalar", 2, (Arg[]){ x, *beta });
    return set_batched(v, c, sum_of(v, x, y, *alpha), l);
}

bool p2o_batch_outer(Vmap *v, const Call *c)
{
    Levels l = levels_of_call(v, c);
    Arg    a = aligned_arg(v, &c->args[0], l, 1, true), b = aligned_arg(v, &c->args[1], l, 1, true);
    a = add_batched(v, "aten::unsqueeze", 2, (Arg[]){ a, int_arg_of(v, -1) });
    b = add_batched(v, "aten::unsqueeze", 2, (Arg[]){ b, int_arg_of(v, -2) });
    return set_batched(v, c, add_batched(v, "aten::mul.Tensor", 2, (Arg[]){ a, b }), l);
}

/* The value is a number to the operator, but not with hidden axes. */
bool p2o_batch_masked_fill(Vmap *v, const Call *c)
{
    Levels     l = levels_of_call(v, c);
    const Arg *x = &c->args[0], *mask = &c->args[1], *value = &c->args[2];
    int        rank = c->outs[0]->type.shape.rank;
    if (!levels_of(v, value))
        return p2o_batch_pointwise(v, c);
    Arg y = aligned_arg(v, value, l, rank, false);
    if (p2o_arg_type(value).dtype != p2o_arg_type(x).dtype)
        y = add_batched(v, "aten::to.dtype", 2,
                        (Arg[]){ y, { .kind = ARG_DTYPE, .dtype = p2o_arg_type(x).dtype } });
    return set_batched(v, c, add_batched(v, "aten::where.self", 3,
                                         (Arg[]){ aligned_arg(v, mask, l, rank, false), y,
                                                  aligned_arg(v, x, l, rank, false) }), l);
}

/* The number of the turn: 0, 1, ... along the level's axis. */
static Arg turn_of(Vmap *v, Levels l, int level, int rank)
{
    Arg y = add_batched(v, "aten::arange", 1, (Arg[]){ arg_int(level_size(v, level)) });
    for (int k = level + 1; k < MAX_LEVELS; k++)
        if (l >> k & 1)
            y = add_batched(v, "aten::unsqueeze", 2, (Arg[]){ y, int_arg_of(v, -1) });
    for (int i = 0; i < rank; i++)
        y = add_batched(v, "aten::unsqueeze", 2, (Arg[]){ y, int_arg_of(v, -1) });
    return y;
}

/* What x[indices] is made of. */
typedef struct Indexing {
    Levels     self, block;     /* of the indexed; of the indices */
    int        rank;            /* of the indices together */
    int        first, last;     /* axes that have one */
    bool       contiguous, masked;
    const Arg *list;
} Indexing;

static Indexing indexing_of(const Vmap *v, const Call *c)
{
    Indexing x = { .self = levels_of(v, &c->args[0]), .list = p2o_call_arg(c, "indices"),
                   .first = -1 };
    int      count = 0;
    for (uint32_t i = 0; i < x.list->n; i++) {
        const Arg *k = &x.list->items[i];
        if (k->kind != ARG_VAR)
            continue;
        Type t = k->var->type;
        x.block |= levels_of(v, k);
        x.rank = t.shape.rank > x.rank ? t.shape.rank : x.rank;
        x.masked |= t.dtype == DT_BOOL || t.dtype == DT_U8;
        x.first = x.first < 0 ? (int)i : x.first;
        x.last = (int)i;
        count++;
    }
    x.contiguous = x.first >= 0 && x.last - x.first + 1 == count;
    return x;
}

/* The indices as they are for the tensor with hidden axes: those that the indices have, too, are
 * indexed by the turn; the others are taken whole. */
static Arg batched_indices(Vmap *v, const Indexing *x, Levels block)
{
    Arg *items = NEW_N(v->arena, Arg, x->list->n + (size_t)MAX_LEVELS);
    int  n = 0;
    for (int k = 0; k < MAX_LEVELS; k++)
        if (x->self >> k & 1)
            items[n++] = block >> k & 1 ? turn_of(v, block, k, x->rank) : arg_none();
    for (uint32_t i = 0; i < x->list->n; i++)
        items[n++] = x->list->items[i].kind == ARG_VAR
                         ? aligned_arg(v, &x->list->items[i], block, x->rank, true)
                         : x->list->items[i];
    return arg_list(items, (size_t)n);
}

/* Where the axes of the picked block stand in the result: behind `before` others. */
static int place_of_block(const Arg *indices)
{
    int first = -1, last = -1, count = 0;
    for (uint32_t i = 0; i < indices->n; i++) {
        if (indices->items[i].kind != ARG_VAR)
            continue;
        first = first < 0 ? (int)i : first;
        last = (int)i;
        count++;
    }
    return last - first + 1 == count ? first : 0;
}

/* Axes of the result that indexing gives: hidden axes that were taken whole, the block (its hidden
 * axes, then those of the indices), and the rest, in the order that values have them in. */
static Arg ordered_result(Vmap *v, Arg y, const Indexing *x, Levels block, int place, int rank)
{
    Levels all = x->self | block, whole = x->self & ~block;
    int    nwhole = nlevels(whole), nblock = nlevels(block), total = nlevels(all) + rank, n = 0;
    int    want = x->contiguous ? x->first : 0;     /* axes of the value before the block */
    int    nlogical = rank - x->rank;
    Arg    perm[MAX_RANK];
    bool   moved = false;
    if (total > MAX_RANK)
        return y;                                   /* its type is refused */
    int ahead = place, at_block = ahead;            /* other axes before and after the block */
    int other = 0, hidden_in_block = 0;
    for (int k = 0; k < MAX_LEVELS; k++) {
        if (!(all >> k & 1))
            continue;
        int from = block >> k & 1 ? at_block + hidden_in_block++
                                  : (other < ahead ? other : other + nblock + x->rank);
        other += !(block >> k & 1);
        perm[n++] = int_arg_of(v, from);
    }
    for (int i = 0; i <= nlogical; i++) {
        for (int k = 0; i == want && k < x->rank; k++)
            perm[n++] = int_arg_of(v, at_block + nblock + k);
        if (i == nlogical)
            break;
        int o = nwhole + i;
        perm[n++] = int_arg_of(v, o < ahead ? o : o + nblock + x->rank);
    }
    if (n != total)
        return y;
    for (int i = 0; i < total; i++)
        moved |= !dim_is(perm[i].i, i);
    Arg *items = NEW_N(v->arena, Arg, (size_t)total);
    memcpy(items, perm, (size_t)total * sizeof *items);
    return moved ? add_batched(v, "aten::permute", 2, (Arg[]){ y, arg_list(items, (size_t)total) })
                 : y;
}

bool p2o_batch_index(Vmap *v, const Call *c)
{
    Indexing x = indexing_of(v, c);
    if (x.masked)
        return refuse_batched(v, c, "a mask as an index");
    if (x.first < 0)
        return refuse_batched(v, c, "no index");
    Arg list = batched_indices(v, &x, x.block);
    Arg y = add_batched(v, "aten::index.Tensor", 2,
                        (Arg[]){ batched_arg(v, &c->args[0]), list });
    y = ordered_result(v, y, &x, x.block, place_of_block(&list), c->outs[0]->type.shape.rank);
    return set_batched(v, c, y, x.self | x.block);
}

/* Only where the picked block comes first are values and result in the same order. */
bool p2o_batch_index_put(Vmap *v, const Call *c)
{
    Levels   l = levels_of_call(v, c);
    Indexing x = indexing_of(v, c);
    Arg     *args = batched_args(v, c);
    if (x.masked)
        return refuse_batched(v, c, "a mask as an index");
    if (x.first != 0 || !x.contiguous)
        return refuse_batched(v, c, "indices behind an axis that has none");
    int picked = x.rank + first_rank(c) - (x.last + 1);
    x.self = l;
    args[0] = spread_arg(v, &c->args[0], l);
    *slot(c, args, "indices") = batched_indices(v, &x, l);
    *slot(c, args, "values") = aligned_arg(v, p2o_call_arg(c, "values"), l, picked, false);
    return call_batched(v, c, c->op, args, l);
}

bool p2o_batch_index_select(Vmap *v, const Call *c)
{
    const Arg *index = p2o_call_arg(c, "index");
    int        dim, rank = first_rank(c);
    if (!levels_of(v, index))
        return p2o_batch_axes(v, c);
    if (logical_shape(index).rank != 1 || !rank ||
        !p2o_wrap_dim(int_arg(c, "dim"), rank, false, &dim))
        return refuse_batched(v, c, "of a number");
    Arg *items = NEW_N(v->arena, Arg, (size_t)dim + 1);
    items[dim] = *index;
    Arg      list = arg_list(items, (size_t)dim + 1);
    Indexing x = { .self = levels_of(v, &c->args[0]), .block = levels_of(v, index), .rank = 1,
                   .first = dim, .last = dim, .contiguous = true, .list = &list };
    Arg indices = batched_indices(v, &x, x.block);
    Arg y = add_batched(v, "aten::index.Tensor", 2,
                        (Arg[]){ batched_arg(v, &c->args[0]), indices });
    y = ordered_result(v, y, &x, x.block, place_of_block(&indices), rank);
    return set_batched(v, c, y, x.self | x.block);
}

/* Rows of the table: as many as there are indices. */
bool p2o_batch_embedding(Vmap *v, const Call *c)
{
    const Arg *indices = p2o_call_arg(c, "indices");
    Levels     l = levels_of_call(v, c);
    if (!levels_of(v, &c->args[0]))
        return call_batched(v, c, c->op, batched_args(v, c), l);
    Indexing x = { .self = levels_of(v, &c->args[0]), .block = levels_of(v, indices),
                   .rank = logical_shape(indices).rank, .contiguous = true };
    Arg list = arg_list(NEW_N(v->arena, Arg, 1), 1);
    list.items[0] = *indices;
    x.list = &list;
    Arg all = batched_indices(v, &x, x.block);
    Arg y = add_batched(v, "aten::index.Tensor", 2, (Arg[]){ batched_arg(v, &c->args[0]), all });
    y = ordered_result(v, y, &x, x.block, place_of_block(&all), c->outs[0]->type.shape.rank);
    return set_batched(v, c, y, l);
}

/* Query, key and value have their last two axes for themselves; a mask is broadcast. */
bool p2o_batch_attention(Vmap *v, const Call *c)
{
    Levels     l = levels_of_call(v, c);
    Arg       *args = batched_args(v, c);
    int        rank = first_rank(c);
    const Arg *mask = p2o_call_arg(c, "attn_mask");
    for (int i = 0; i < 3; i++) {
        if (logical_shape(&c->args[i]).rank != rank)
            return refuse_batched(v, c, "of different ranks");
        args[i] = spread_arg(v, &c->args[i], l);
    }
    if (mask->kind != ARG_NONE)
        *slot(c, args, "attn_mask") = aligned_arg(v, mask, l, rank, levels_of(v, mask) != 0);
    return call_batched(v, c, c->op, args, l);
}

bool p2o_batch_size(Vmap *v, const Call *c)
{
    if (!c->outs[0] || c->outs[0]->type.kind != TY_INT)
        return refuse_batched(v, c, "a number that depends on the turn");
    return set_batched_number(v, c, arg_int(c->outs[0]->type.value));
}

bool p2o_batch_nothing(Vmap *v, const Call *c)
{
    (void)v, (void)c;
    return true;
}

bool p2o_batch_random(Vmap *v, const Call *c)
{
    int at = p2o_schema_find(c->schema, "train");
    if (at >= 0 && c->args[at].kind == ARG_BOOL && !c->args[at].b)
        return p2o_batch_self(v, c);
    return refuse_batched(v, c, "it is random");
}
