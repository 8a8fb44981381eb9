#include "aten/lower.h"

#include <assert.h>
#include <math.h>

Value *unsupported(Lower *lo, const Call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p2o_diag(lo->diags, DIAG_UNSUPPORTED, c->loc, "%s: %s", c->target,
             p2o_vprintf(lo->arena, fmt, ap));
    va_end(ap);
    lo->failed = true;
    return NULL;
}

/* Counting on from the last number given out keeps many uses of one stem linear. */
const char *unique_name(Lower *lo, const char *stem)
{
    void    **slot = p2o_map_slot(lo->names, str_of(stem));
    uintptr_t i = (uintptr_t)*slot;
    if (i == 0) {
        *slot = (void *)1;
        return stem;
    }
    const char *name;
    do
        name = p2o_printf(lo->arena, "%s_%zu", stem, (size_t)i++);
    while (p2o_map_get(lo->names, str_of(name)));
    map_put(lo->names, str_of(stem), (void *)i);
    map_put(lo->names, str_of(name), (void *)1);
    return name;
}

/* Storage and geometry: two weights that agree in all of it are one initializer. */
static Str weight_key(Lower *lo, const Tensor *t)
{
    Buf key = { .arena = lo->arena };
    p2o_put(&key, &t->storage, sizeof t->storage);
    p2o_put(&key, &t->dtype, sizeof t->dtype);
    p2o_put(&key, &t->offset, sizeof t->offset);
    p2o_put(&key, t->sizes, (size_t)t->rank * sizeof *t->sizes);
    p2o_put(&key, t->strides, (size_t)t->rank * sizeof *t->strides);
    return buf_str(&key);
}

static Graph *top_graph(const Lower *lo)
{
    const Builder *b = lo->b;
    while (b->parent)
        b = b->parent;
    return b->graph;
}

static Value *weight_value(Lower *lo, const Var *v, int part)
{
    const Tensor *t = v->tensor;
    const char   *name = v->fqn ? v->fqn : v->name;
    if (is_complex(t->dtype)) {
        t = p2o_tensor_part(lo->arena, t, part);
        name = p2o_printf(lo->arena, "%s.%s", name, part ? "imag" : "real");
    }
    void **slot = p2o_map_slot(lo->weights, weight_key(lo, t));
    if (!*slot)
        *slot = p2o_graph_init(top_graph(lo), unique_name(lo, name), t);
    return *slot;
}

Value *joined_weight(Lower *lo, const Value *first, const Tensor *const *parts, size_t n, int rank_,
                     const int64_t *sizes)
{
    Buf key = { .arena = lo->arena };
    p2o_put(&key, sizes, (size_t)rank_ * sizeof *sizes);
    for (size_t i = 0; i < n; i++) {
        Str part = weight_key(lo, parts[i]);
        p2o_put(&key, part.p, part.n);
    }
    void **slot = p2o_map_slot(lo->weights, buf_str(&key));
    if (!*slot) {
        const char *name = p2o_printf(lo->arena, "%s.joined", first->name ? first->name : "weight");
        *slot = p2o_graph_init(top_graph(lo), unique_name(lo, name),
                               p2o_tensor_join(lo->arena, parts, n, rank_, sizes));
    }
    return *slot;
}

Value *weight_view(Lower *lo, const Value *weight, int rank_, const int64_t *sizes)
{
    const Tensor *from = weight->tensor;
    if (!p2o_tensor_is_contiguous(from))
        return joined_weight(lo, weight, &from, 1, rank_, sizes);
    Tensor  *x = NEW(lo->arena, Tensor);
    int64_t *own = NEW_N(lo->arena, int64_t, (size_t)rank_ + 1), step = 1;
    int64_t *strides = NEW_N(lo->arena, int64_t, (size_t)rank_ + 1);
    for (int i = rank_ - 1; i >= 0; i--) {
        own[i] = sizes[i];
        strides[i] = step;
        step *= sizes[i] ? sizes[i] : 1;
    }
    *x = *from;
    x->rank = rank_;
    x->sizes = own;
    x->strides = strides;
    void **slot = p2o_map_slot(lo->weights, weight_key(lo, x));
    if (!*slot)
        *slot = p2o_graph_init(top_graph(lo),
                               unique_name(lo, weight->name ? weight->name : "weight"), x);
    return *slot;
}

static Value *var_value(Lower *lo, const Var *v, int part)
{
    Value **slot = part && is_complex(v->type.dtype) ? &lo->imag[v->id] : &lo->values[v->id];
    if (*slot)
        return *slot;
    if (v->tensor)
        return *slot = weight_value(lo, v, part);
    if (v->type.kind == TY_INT)                     /* sizes exist only where they are used */
        return dim_scalar(lo, v->type.value);
    assert(!"a value is used before it is lowered");
    return NULL;
}

/* Whether the argument is 0 in the turn of the imaginary parts. */
static bool is_imaginary_zero(const Lower *lo, const Arg *x)
{
    Type t = p2o_arg_type(x);
    return lo->part && lo->real_has_zero && x != lo->selector && t.kind != TY_NONE &&
           !is_complex(t.dtype);
}

Value *p2o_arg_value(Lower *lo, const Arg *x, DType number)
{
    int64_t i;
    double  f;
    number = part_of(number);
    if (is_imaginary_zero(lo, x))
        return full(lo, p2o_arg_type(x).shape, x->kind == ARG_VAR ? p2o_arg_type(x).dtype : number,
                    0);
    int part = x == lo->right ? lo->right_part : lo->part;
    switch (x->kind) {
    case ARG_VAR: {
        Value *v = var_value(lo, x->var, part);
        return v && x->var->type.kind != TY_TENSOR ? cast(lo, v, number) : v;
    }
    case ARG_COMPLEX:
        return num(lo, number, x->re_im[part]);
    case ARG_INT:
        if (p2o_dim_is_int(x->i, &i))
            return p2o_build_const(lo->b, p2o_tensor_scalar(lo->arena, number, 0, i, false));
        return cast(lo, dim_scalar(lo, x->i), number);
    case ARG_FLOAT:
    case ARG_BOOL:
        p2o_number_is_const(x, &f);
        return num(lo, number, f);
    default:
        return NULL;
    }
}

Value *tensor_arg(Lower *lo, const Call *c, const char *name)
{
    const Arg *x = p2o_call_arg(c, name);
    return p2o_arg_value(lo, x, p2o_arg_type(x).dtype);
}

Value *tensor_as(Lower *lo, const Call *c, const char *name, DType t)
{
    Value *v = p2o_arg_value(lo, p2o_call_arg(c, name), t);
    return v ? cast(lo, v, t) : NULL;
}

Value *tensor_item(Lower *lo, const Call *c, const char *name, int i)
{
    const Arg *list = p2o_call_arg(c, name);
    assert(list->kind == ARG_LIST && (uint32_t)i < list->n);
    return p2o_arg_value(lo, &list->items[i], p2o_arg_type(&list->items[i]).dtype);
}

/* The part that arguments stand for is switched for one of them. */
Complex complex_as(Lower *lo, const Call *c, const char *name, DType t)
{
    const Arg *x = p2o_call_arg(c, name);
    Complex    z = { tensor_as(lo, c, name, t), NULL };
    if (is_complex(p2o_arg_type(x).dtype)) {
        lo->part = 1;
        z.im = tensor_as(lo, c, name, t);
        lo->part = 0;
    }
    return z;
}

Complex complex_arg(Lower *lo, const Call *c, const char *name)
{
    return complex_as(lo, c, name, p2o_arg_type(p2o_call_arg(c, name)).dtype);
}

static bool is_part(const Value *v, int64_t which, const Value *of)
{
    const Node *n = v->def;
    return n && n->op == ONNX_Gather && n->in[0] == of &&
           p2o_node_int(n, "axis", 0) == rank(of) - 1 && rank(v) == rank(of) - 1 &&
           n->in[1]->ints && dim_is(n->in[1]->ints[0], which) && is_size(of, -1, 2);
}

Value *join_parts(Lower *lo, Complex z)
{
    Value *im = z.im ? z.im : full(lo, z.re->shape, z.re->dtype, 0);
    if (z.re->def && z.re->def->op == ONNX_Gather && is_part(z.re, 0, z.re->def->in[0]) &&
        is_part(im, 1, z.re->def->in[0]))
        return z.re->def->in[0];
    return concat(lo, rank(z.re),
                  (Value *[]){ unsqueeze(lo, z.re, rank(z.re)), unsqueeze(lo, im, rank(z.re)) }, 2);
}

Complex split_parts(Lower *lo, Value *x)
{
    return (Complex){ select_axis(lo, x, rank(x) - 1, p2o_dim_int(lo->dims, 0)),
                      select_axis(lo, x, rank(x) - 1, p2o_dim_int(lo->dims, 1)) };
}

Value *number_arg(Lower *lo, const Call *c, const char *name, DType t)
{
    return tensor_as(lo, c, name, t);
}

const int64_t *ints_arg(Lower *lo, const Call *c, const char *name, int n)
{
    int64_t *v = NEW_N(lo->arena, int64_t, (size_t)n + 1);
    int      have = list_len(c, name);
    for (int i = 0; i < n; i++)
        v[i] = int_item(c, name, have == 1 ? 0 : i);
    return v;
}

bool fixed_number(Lower *lo, const Call *c, const char *name, double *f)
{
    if (p2o_number_is_const(p2o_call_arg(c, name), f))
        return true;
    p2o_diag_advise(lo->diags, DIAG_UNSUPPORTED, c->loc,
                    "it is computed here, and ONNX fixes it in the file: make it a number",
                    "%s: argument '%s' must be a constant", c->target, name);
    lo->failed = true;
    return false;
}

DType compute_dtype(const Call *c)
{
    Promotion p = { 0 };
    for (int i = 0; i < c->nargs; i++)
        if (c->schema->args[i].base == SB_TENSOR && c->args[i].kind != ARG_NONE &&
            c->args[i].kind != ARG_LIST)
            promote_type(&p, p2o_arg_type(&c->args[i]));
    DType t = part_of(promoted(&p));
    return is_float(out_dtype(c, 0)) ? out_dtype(c, 0) : t;
}

Value *ints_const(Lower *lo, const int64_t *v, size_t n) { return p2o_build_ints(lo->b, v, n); }
Value *num(Lower *lo, DType t, double f) { return p2o_build_scalar(lo->b, part_of(t), f); }

Value *plus_num(Lower *lo, Value *x, double f)
{
    return f == 0 ? x : emit(lo, ONNX_Add, x, num(lo, x->dtype, f));
}

Value *times_num(Lower *lo, Value *x, double f)
{
    return f == 1 ? x : emit(lo, ONNX_Mul, x, num(lo, x->dtype, f));
}

Value *polynomial(Lower *lo, Value *x, const double *coef, int n)
{
    Value *y = num(lo, x->dtype, coef[0]);
    for (int i = 1; i < n; i++) {
        y = i == 1 && coef[0] == 1 ? x : emit(lo, ONNX_Mul, y, x);
        y = plus_num(lo, y, coef[i]);
    }
    return y;
}

/* Less sees no sign in -0; its reciprocal shows it. */
Value *sign_bit(Lower *lo, Value *x)
{
    Value *zero = num(lo, x->dtype, 0), *below = emit(lo, ONNX_Less, x, zero);
    if (!is_float(x->dtype))
        return below;
    return emit(lo, ONNX_Or, below, emit(lo, ONNX_Less, emit(lo, ONNX_Reciprocal, x), zero));
}

/* max(|x|, |y|) * sqrt(1 + (min / max)^2): nothing overflows before the result does.  Where both
 * are equal the quotient is 1, also for 0 and infinity. */
Value *hypot_of(Lower *lo, Value *x, Value *y)
{
    x = emit(lo, ONNX_Abs, x);
    y = emit(lo, ONNX_Abs, y);
    Value *most = emit(lo, ONNX_Max, x, y), *least = emit(lo, ONNX_Min, x, y);
    Value *q = choose(lo, emit(lo, ONNX_Equal, x, y), num(lo, x->dtype, 1),
                      emit(lo, ONNX_Div, least, most));
    q = emit(lo, ONNX_Sqrt, plus_num(lo, emit(lo, ONNX_Mul, q, q), 1));
    return emit(lo, ONNX_Mul, most, q);
}

/* atan(y / x), half a turn further where x is negative.  Where both are equally far from 0 the
 * quotient is a sign, also of zeros and infinities. */
Value *atan2_of(Lower *lo, Value *y, Value *x)
{
    const double pi = 3.14159265358979323846;
    DType  t = x->dtype;
    Value *same_size = emit(lo, ONNX_Equal, emit(lo, ONNX_Abs, y), emit(lo, ONNX_Abs, x));
    Value       *q =
        choose(lo, same_size, emit(lo, ONNX_Mul, emit(lo, ONNX_Sign, y), emit(lo, ONNX_Sign, x)),
               emit(lo, ONNX_Div, y, x));
    Value *turn = choose(lo, sign_bit(lo, y), num(lo, t, -pi), num(lo, t, pi));
    turn = choose(lo, sign_bit(lo, x), turn, num(lo, t, 0));
    return emit(lo, ONNX_Add, emit(lo, ONNX_Atan, q), turn);
}

/* With u = 1 + x as rounded, log(1 + x) = log(u) - (u - 1 - x) / u to within the square of the
 * error. */
Value *log1p_of(Lower *lo, Value *x)
{
    Value *u = plus_num(lo, x, 1), *log = emit(lo, ONNX_Log, u);
    Value *error = emit(lo, ONNX_Sub, plus_num(lo, u, -1), x);
    Value *near = emit(lo, ONNX_Less, emit(lo, ONNX_Abs, x), num(lo, x->dtype, 0.5));
    return choose(lo, near, emit(lo, ONNX_Sub, log, emit(lo, ONNX_Div, error, u)), log);
}

/* tanh(x / 2) * (exp(x) + 1) */
Value *expm1_of(Lower *lo, Value *x)
{
    Value *t = emit(lo, ONNX_Tanh, times_num(lo, x, 0.5));
    return emit(lo, ONNX_Mul, t, plus_num(lo, emit(lo, ONNX_Exp, x), 1));
}

/* ONNX Runtime's Softplus knows no f64: max(x, 0) + log(1 + exp(-|x|)). */
Value *softplus_of(Lower *lo, Value *x)
{
    if (x->dtype != DT_F64)
        return emit(lo, ONNX_Softplus, x);
    Value *e = emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, emit(lo, ONNX_Abs, x)));
    return emit(lo, ONNX_Add, emit(lo, ONNX_Max, x, num(lo, DT_F64, 0)), log1p_of(lo, e));
}

/* x / 2 * (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) for erf. */
static Value *gelu_by_parts(Lower *lo, Value *x, bool by_tanh)
{
    Value *y;
    if (by_tanh) {
        Value *cube = times_num(lo, emit(lo, ONNX_Mul, emit(lo, ONNX_Mul, x, x), x), 0.044715);
        y = emit(lo, ONNX_Tanh, times_num(lo, emit(lo, ONNX_Add, x, cube), 0.79788456080286535588));
    } else {
        y = emit(lo, ONNX_Erf, times_num(lo, x, 0.70710678118654752440));
    }
    return emit(lo, ONNX_Mul, times_num(lo, x, 0.5), plus_num(lo, y, 1));
}

Value *gelu_of(Lower *lo, Value *x, bool by_tanh)
{
    if (lo->opset < 20 || x->dtype == DT_F64)
        return cast(lo, gelu_by_parts(lo, cast(lo, x, wide_of(x->dtype)), by_tanh), x->dtype);
    return by_tanh ? emit_with(lo, ONNX_Gelu, ATTRS(attr_str("approximate", "tanh")), x)
                   : emit(lo, ONNX_Gelu, x);
}

Value *cast(Lower *lo, Value *x, DType t)
{
    Attr to = attr_int("to", p2o_dtype_onnx(t));
    t = part_of(t);
    if (x->dtype == t)
        return x;
    if (p2o_dtype_bytes(t) == 1 && is_float(t)) /* too large is NaN or infinity, as in PyTorch */
        return emit_with(lo, ONNX_Cast, ATTRS(to, attr_int("saturate", 0)), x);
    return emit_with(lo, ONNX_Cast, ATTRS(to), x);
}

Value *transpose(Lower *lo, Value *x, const int64_t *perm)
{
    bool identity = true;
    for (int i = 0; i < rank(x); i++)
        identity &= perm[i] == i;
    if (identity)
        return x;
    int64_t *kept = NEW_N(lo->arena, int64_t, (size_t)rank(x));
    memcpy(kept, perm, (size_t)rank(x) * sizeof *kept);
    return emit_with(lo, ONNX_Transpose, ATTRS(attr_ints("perm", kept, (size_t)rank(x))), x);
}

Value *swap_dims(Lower *lo, Value *x, int i, int j)
{
    int64_t perm[MAX_RANK];
    for (int k = 0; k < rank(x); k++)
        perm[k] = k;
    perm[i] = j;
    perm[j] = i;
    return transpose(lo, x, perm);
}

Value *swap_last_two(Lower *lo, Value *x) { return swap_dims(lo, x, rank(x) - 1, rank(x) - 2); }

Value *move_dim(Lower *lo, Value *x, int from, int to)
{
    int64_t perm[MAX_RANK];
    for (int i = 0, k = 0; i < rank(x); i++) {
        k += k == from;
        perm[i] = i == to ? from : k++;
    }
    return transpose(lo, x, perm);
}

Value *unsqueeze(Lower *lo, Value *x, int axis)
{
    return emit(lo, ONNX_Unsqueeze, x, INTS(lo, axis));
}
Value *squeeze(Lower *lo, Value *x, int axis) { return emit(lo, ONNX_Squeeze, x, INTS(lo, axis)); }

Value *concat(Lower *lo, int axis, Value *const *v, int n)
{
    if (n == 1)
        return v[0];
    return p2o_build(lo->b, ONNX_Concat, ATTRS(attr_int("axis", axis)), n, v);
}

Value *slice_steps(Lower *lo, Value *x, int axis, Dim start, Dim end, Dim step)
{
    if (dim_is(step, 1) && dim_is(start, 0) && (!end || end == size_at(x, axis)))
        return x;
    return emit(lo, ONNX_Slice, x, dim_value(lo, start),
                end ? dim_value(lo, end) : INTS(lo, INT64_MAX), INTS(lo, axis),
                dim_value(lo, step));
}

Value *slice_axis(Lower *lo, Value *x, int axis, Dim start, Dim end, int64_t step)
{
    return slice_steps(lo, x, axis, start, end, p2o_dim_int(lo->dims, step));
}

Value *select_axis(Lower *lo, Value *x, int axis, Dim index)
{
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", axis)), x, dim_scalar(lo, index));
}

Value *pad_axes(Lower *lo, Value *x, int first, int n, const Dim *pads, double with)
{
    Dim  all[2 * MAX_RANK];
    bool any = false;
    for (int i = 0; i < 2 * rank(x); i++)
        all[i] = p2o_dim_int(lo->dims, 0);
    for (int i = 0; i < n; i++) {
        all[first + i] = pads[i];
        all[rank(x) + first + i] = pads[n + i];
        any |= !dim_is(pads[i], 0) || !dim_is(pads[n + i], 0);
    }
    if (!any)
        return x;
    return emit(lo, ONNX_Pad, x, shape_value(lo, (Shape){ 2 * rank(x), all }),
                with != 0 ? num(lo, x->dtype, with) : NULL);
}

Value *windows(Lower *lo, Value *x, int axis, Dim count, Dim kernel, int64_t stride,
               int64_t dilation)
{
    Value *at = emit(lo, ONNX_Add, unsqueeze(lo, range_of(lo, count, stride), 1),
                     range_of(lo, kernel, dilation));
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", axis)), x, at);
}

/* axes became an input of ReduceSum in opset 13 and of the others in 18. */
Value *reduce(Lower *lo, OnnxOp op, Value *x, const int64_t *axes, int n, bool keepdims)
{
    Attr keep = attr_int("keepdims", keepdims);
    if (lo->opset >= 18 || op == ONNX_ReduceSum)
        return emit_with(lo, op, ATTRS(keep), x, ints_const(lo, axes, (size_t)n));
    int64_t *kept = NEW_N(lo->arena, int64_t, (size_t)n + 1);
    memcpy(kept, axes, (size_t)n * sizeof *kept);
    return emit_with(lo, op, ATTRS(keep, attr_ints("axes", kept, (size_t)n)), x);
}

Value *abs_power(Lower *lo, Value *x, double p)
{
    if (p == 0)
        return cast(lo, cast(lo, x, DT_BOOL), x->dtype);
    Value *y = fmod(p, 2) == 0 ? x : emit(lo, ONNX_Abs, x);
    return p == 1   ? y
           : p == 2 ? emit(lo, ONNX_Mul, y, y)
                    : emit(lo, ONNX_Pow, y, num(lo, x->dtype, p));
}

Value *nan_or(Lower *lo, Value *sum, Value *y)
{
    return choose(lo, emit(lo, ONNX_IsNaN, sum), sum, y);
}

Value *p_norm(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims, double p)
{
    if (n == 0)
        return p == 0 ? abs_power(lo, x, 0) : emit(lo, ONNX_Abs, x);
    if (p == 1 || p == 2)
        return reduce(lo, p == 1 ? ONNX_ReduceL1 : ONNX_ReduceL2, x, axes, n, keepdims);
    if (isinf(p))
        return nan_or(lo, reduce(lo, ONNX_ReduceL1, x, axes, n, keepdims),
                      reduce(lo, p > 0 ? ONNX_ReduceMax : ONNX_ReduceMin, emit(lo, ONNX_Abs, x),
                             axes, n, keepdims));
    Value *sum = reduce(lo, ONNX_ReduceSum, abs_power(lo, x, p), axes, n, keepdims);
    return p == 0 ? sum : emit(lo, ONNX_Pow, sum, num(lo, x->dtype, 1 / p));
}

/* As uint8 where bool is not taken (before opset 20), or where ONNX Runtime would meet an empty set
 * of bools, which it refuses; the least and greatest uint8 are the right answers then. */
static Value *reduce_bool(Lower *lo, OnnxOp op, Value *x, const int64_t *axes, int n, bool keepdims)
{
    bool as_bool = lo->opset >= 20;
    for (int i = 0; i < n; i++)
        as_bool &= never_zero(lo, size_at(x, (int)axes[i]));
    if (as_bool)
        return reduce(lo, op, x, axes, n, keepdims);
    return cast(lo, reduce(lo, op, cast(lo, x, DT_U8), axes, n, keepdims), DT_BOOL);
}

Value *reduce_any(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims)
{
    return reduce_bool(lo, ONNX_ReduceMax, x, axes, n, keepdims);
}

Value *reduce_all(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims)
{
    return reduce_bool(lo, ONNX_ReduceMin, x, axes, n, keepdims);
}

Value *flat(Lower *lo, Value *x)
{
    Dim n = shape_nelem(lo->dims, x->shape);
    return reshape(lo, x, (Shape){ 1, &n });
}

/* ONNX Runtime reduces no 16-bit floats; of bools, max is or (add) and min is and (mul). */
Value *scatter_with(Lower *lo, OnnxOp op, int axis, Value *x, Value *index, Value *updates,
                    const char *reduction)
{
    DType t = x->dtype;
    bool  reduces = !same(reduction, "none");
    Attr  attrs[2];
    int   n = 0;
    if (reduces && (t == DT_F16 || t == DT_BF16))
        return cast(lo,
                    scatter_with(lo, op, axis, cast(lo, x, DT_F32), index,
                                 cast(lo, updates, DT_F32), reduction),
                    t);
    if (t == DT_BOOL && same(reduction, "max"))
        reduction = "add";
    if (t == DT_BOOL && same(reduction, "min"))
        reduction = "mul";
    if (op == ONNX_ScatterElements)
        attrs[n++] = attr_int("axis", axis);
    if (reduces)
        attrs[n++] = attr_str("reduction", reduction);
    return p2o_build(lo->b, op, n, attrs, INPUTS(x, index, updates));
}

Shape joint_shape(Lower *lo, Shape a, Shape b)
{
    Shape longer = a.rank >= b.rank ? a : b, other = a.rank >= b.rank ? b : a;
    int   lead = longer.rank - other.rank;
    Dim  *at = p2o_shape_copy(lo->arena, longer, 0);
    for (int i = 0; i < other.rank; i++)
        if (dim_is(at[lead + i], 1))
            at[lead + i] = other.at[i];
    return (Shape){ longer.rank, at };
}

/* Rows that name one ONNX operator: tensor arguments in order, all in the type it computes in. */
static Value *lower_plain(Lower *lo, const Call *c)
{
    Value *in[16];
    int    n = 0;
    DType  t = compute_dtype(c);
    for (int i = 0; i < c->nargs && n < (int)COUNT_OF(in); i++)
        if (c->schema->args[i].base == SB_TENSOR)
            in[n++] = tensor_as(lo, c, c->schema->args[i].name, t);
    return cast(lo, p2o_build(lo->b, c->op->onnx, NO_ATTRS, n, in), out_dtype(c, 0));
}

/* The type by ONNX's rules must be the type by ATen's; the latter is kept, in the user's
 * symbols. */
static bool types_agree(Lower *lo, const Call *c, const Type *t, Value *v)
{
    bool ok = part_of(t->dtype) == v->dtype && t->shape.rank == v->shape.rank;
    for (int i = 0; ok && i < t->shape.rank; i++)
        ok = p2o_dim_eq(lo->dims, t->shape.at[i], v->shape.at[i]) != NO;
    if (!ok)
        p2o_diag(lo->diags, DIAG_INTERNAL, c->loc,
                 "%s: lowered to %s[%s] where its rule says %s[%s]", c->target,
                 p2o_dtype_text(v->dtype), p2o_shape_text(lo->dims, v->shape),
                 p2o_dtype_text(t->dtype), p2o_shape_text(lo->dims, t->shape));
    return ok;
}

static void bind_result(Lower *lo, const Call *c, Var *out, Value *v, int part)
{
    if (!out || !v)
        return;
    (part ? lo->imag : lo->values)[out->id] = v;
    if (out->type.kind == TY_TENSOR) {
        if (!types_agree(lo, c, &out->type, v))
            return;
        v->shape = out->type.shape;
        carries_dims(lo, v);
    } else if (out->type.kind == TY_INT) {
        carries_int(lo, v, out->type.value);
    }
    if (v->name || !v->def)
        return;
    v->name =
        unique_name(lo, is_complex(out->type.dtype)
                            ? p2o_printf(lo->arena, "%s.%s", out->name, part ? "imag" : "real")
                            : out->name);
}

static bool is_size_of_args(const Call *c, Dim d)
{
    for (int i = 0; i < c->nargs; i++) {
        Shape s = c->args[i].kind == ARG_VAR ? p2o_arg_type(&c->args[i]).shape : (Shape){ 0 };
        for (int k = 0; k < s.rank; k++)
            if (s.at[k] == d)
                return true;
    }
    return p2o_dim_is_int(d, NULL);
}

/* A result that never has elements is made, not computed: kernels differ in what they make of
 * none. */
static bool is_always_empty(const Call *c)
{
    bool empty = false;
    if (c->nouts != 1 || !c->outs[0] || c->outs[0]->type.kind != TY_TENSOR)
        return false;
    Shape s = c->outs[0]->type.shape;
    for (int i = 0; i < s.rank; i++) {
        empty |= dim_is(s.at[i], 0);
        if (!is_size_of_args(c, s.at[i]))
            return false;
    }
    return empty;
}

static void lower_real(Lower *lo, const Call *c, Value **out)
{
    if (is_always_empty(c))
        out[0] = full(lo, out_shape(c, 0), part_of(out_dtype(c, 0)), 0);
    else if (c->op->lower)
        out[0] = c->op->lower(lo, c);
    else if (c->op->lower_many)
        c->op->lower_many(lo, c, out);
    else if (c->op->onnx)
        out[0] = lower_plain(lo, c);
}

/* The row's own product of one part of the left with one of the right operand; NULL: of a real
 * one's imaginary part. */
static Value *part_product(Lower *lo, const Call *c, const Arg *left, const Arg *right, int i,
                           int k)
{
    Value *y = NULL;
    if ((i && !is_complex(p2o_arg_type(left).dtype)) ||
        (k && !is_complex(p2o_arg_type(right).dtype)))
        return NULL;
    lo->part = i;
    lo->right = right;
    lo->right_part = k;
    lower_real(lo, c, &y);
    lo->part = 0;
    lo->right = NULL;
    return y;
}

static Value *sum_of(Lower *lo, OnnxOp op, Value *a, Value *b)
{
    return a && b ? emit(lo, op, a, b) : a ? a : b;
}

/* (a + b i)(c + d i) = ac - bd + (ad + bc) i, for whatever the row multiplies. */
static void lower_product(Lower *lo, const Call *c, Value **out)
{
    const Arg *left = &c->args[0], *right = &c->args[1];
    for (int i = 0; i < c->nargs; i++) {
        if (c->schema->args[i].base == SB_TENSOR && c->args[i].kind == ARG_LIST) {
            if (c->args[i].n != 2) {
                unsupported(lo, c, "complex tensors, %u of them", c->args[i].n);
                return;
            }
            left = &c->args[i].items[0];
            right = &c->args[i].items[1];
        }
    }
    Value *p[4];
    for (int k = 0; k < 4; k++)
        p[k] = part_product(lo, c, left, right, k / 2, k % 2);
    if (lo->failed)
        return;
    out[0] = sum_of(lo, ONNX_Sub, p[0], p[3]);
    out[1] = sum_of(lo, ONNX_Add, p[1], p[2]);
}

static void lower_complex(Lower *lo, const Call *c, const ComplexOp *x, Value **out)
{
    if (x->use == COMPLEX_OWN || x->use == COMPLEX_PRODUCT) {
        (x->use == COMPLEX_OWN ? x->lower : lower_product)(lo, c, out);
        return;
    }
    lower_real(lo, c, out);
    Value **imag = out + c->nouts;
    if (x->use == COMPLEX_REAL) {
        for (int i = 0; i < c->nouts && !lo->failed; i++)
            imag[i] = out[i] ? full(lo, out_shape(c, i), out_dtype(c, i), 0) : NULL;
    } else if (c->nouts && c->outs[0] && is_complex(c->outs[0]->type.dtype)) {
        lo->part = 1;
        lo->real_has_zero = x->use == COMPLEX_SUM;
        lo->selector = x->selector ? p2o_call_arg(c, x->selector) : NULL;
        lower_real(lo, c, imag);
        lo->part = 0;
        lo->real_has_zero = false;
    }
}

static void lower_call(Lower *lo, const Call *c)
{
    const ComplexOp *complex = p2o_complex_op(c);
    const Place     *place = p2o_place_at(lo->diags, c->loc);
    Value          **out = NEW_N(lo->arena, Value *, 2 * (size_t)c->nouts + 1);

    lo->failed = false;
    lo->b->loc = c->loc;
    lo->b->module = place ? place->module : NULL;
    if (!p2o_op_in_opset(c->op, lo->opset)) {
        unsupported(lo, c, "opset %d; it can be converted to %d to %d", lo->opset,
                    p2o_op_from(c->op), p2o_op_to(c->op));
        return;
    }
    if (complex)
        lower_complex(lo, c, complex, out);
    else
        lower_real(lo, c, out);
    for (int i = 0; i < 2 * c->nouts; i++)
        lo->failed |= out[i] && out[i]->dtype == DT_NONE;   /* could not be made, which was said */
    for (int i = 0; i < 2 * c->nouts && !lo->failed; i++)
        bind_result(lo, c, c->outs[i % c->nouts], out[i], i >= c->nouts);
}

static bool was_lowered(const Lower *lo, const Arg *x)
{
    if (x->kind == ARG_VAR && x->var->def && x->var->type.kind != TY_INT)
        return lo->values[x->var->id] != NULL;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        if (!was_lowered(lo, &x->items[i]))
            return false;
    return true;
}

static void lower_calls(Lower *lo, const Body *body)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        bool        ready = true;
        for (int k = 0; k < c->nargs; k++)
            ready &= was_lowered(lo, &c->args[k]);
        if (ready)
            lower_call(lo, c);
    }
}

/* x as the body's types have it.  Where they know less than x does, it is a value of its own: what
 * is found out about it must not reach x. */
static Value *input_as(Lower *lo, const Type *t, Value *x)
{
    bool is_int = t->kind == TY_INT, made_here = !x->def && x->graph == lo->b->graph && !x->tensor;
    if (is_int ? !made_here : t->kind == TY_TENSOR && !p2o_shape_same(x->shape, t->shape)) {
        x = p2o_graph_node(lo->b->graph, ONNX_Identity, 1, &x, 0, NULL, 1, lo->b->loc)->out[0];
        x->shape = t->shape;
        x->ints = NULL;
        x->nints = 0;
    }
    if (is_int)
        carries_int(lo, x, t->value);
    else
        carries_dims(lo, x);
    return x;
}

/* Python's numbers, wherever they pass a body's border. */
static DType border_dtype(Type t)
{
    return t.kind == TY_FLOAT ? DT_F64 : t.dtype;
}

bool p2o_lower_body(Lower *lo, Builder *b, const Body *body, Value *const *in, Value **out)
{
    Builder *outer = lo->b;
    size_t   errors = p2o_diags_errors(lo->diags);
    lo->b = b;
    for (size_t i = 0; i < body->inputs.n; i++) {
        const Var *v = body->inputs.at[i];
        lo->values[v->id] = in[i] ? input_as(lo, &v->type, in[i]) : NULL;
    }
    lower_calls(lo, body);
    bool ok = p2o_diags_errors(lo->diags) == errors;
    for (size_t i = 0; ok && i < body->outputs.n; i++) {
        const Arg *x = &body->outputs.at[i];
        out[i] = p2o_arg_value(lo, x, border_dtype(p2o_arg_type(x)));
    }
    lo->b = outer;
    lo->failed = !ok;
    return ok;
}

static Shape pair_shape_of(Lower *lo, Shape s)
{
    Dim *at = p2o_shape_copy(lo->arena, s, 1);
    at[s.rank] = p2o_dim_int(lo->dims, 2);
    return (Shape){ s.rank + 1, at };
}

static void note_pair(Lower *lo, const char *what, const char *name)
{
    p2o_diag(lo->diags, DIAG_NOTE, 0,
             "%s '%s' is complex: its last axis holds the real and the imaginary part", what, name);
}

static void lower_inputs(Lower *lo, const LowerOptions *o)
{
    size_t k = 0;                                    /* among inputs that the model really has */
    for (size_t i = 0; i < lo->prog->inputs.n; i++) {
        const InputSpec *s = &lo->prog->inputs.at[i];
        if (!s->var) {
            p2o_diag(lo->diags, DIAG_NOTE, 0,
                     "input '%s' was a constant at capture and is no input of the model", s->name);
            continue;
        }
        const char *name = k < o->ninput && o->input_names[k] ? o->input_names[k] : s->name;
        Type        t = s->var->type;
        Value      *v = p2o_graph_input(lo->b->graph, unique_name(lo, name), part_of(t.dtype),
                                   is_complex(t.dtype) ? pair_shape_of(lo, t.shape) : t.shape);
        lo->values[s->var->id] = v;
        v->initial = s->initial;
        if (is_complex(t.dtype)) {
            Complex z = split_parts(lo, v);
            lo->values[s->var->id] = z.re;
            lo->imag[s->var->id] = z.im;
            note_pair(lo, "input", name);
        }
        if (t.kind == TY_INT)
            carries_int(lo, v, t.value);
        k++;
    }
    for (size_t i = 0; i < lo->b->graph->inputs.n; i++)
        carries_dims(lo, lo->b->graph->inputs.at[i]);
}

/* The name of the result that is the same value; NULL: none is. */
static const char *returned_as(const Lower *lo, const OutputSpec *out, const char *const *names)
{
    for (size_t i = 0; i < lo->prog->outputs.n; i++) {
        const OutputSpec *s = &lo->prog->outputs.at[i];
        if (s->kind == OUT_USER && s->value.kind == ARG_VAR && out->value.kind == ARG_VAR &&
            s->value.var == out->value.var)
            return names[i];
    }
    return NULL;
}

/* What becomes of a buffer: "count.next"; of an input too, unless it is returned anyway: NULL. */
static const char *next_name(Lower *lo, const OutputSpec *out, const char *const *names)
{
    const char *returned = out->kind == OUT_INPUT ? returned_as(lo, out, names) : NULL;
    for (size_t i = 0, k = 0; i < lo->prog->inputs.n; i++) {
        const InputSpec *s = &lo->prog->inputs.at[i];
        if (!s->var)
            continue;
        bool is_buffer = s->initial != NULL;        /* it may be called as an input is */
        if (is_buffer != (out->kind == OUT_BUFFER) ||
            (!same(s->name, out->name) && !same(s->var->name, out->name))) {
            k++;
            continue;
        }
        Value *v = lo->b->graph->inputs.at[k];
        v->next = returned ? returned
                           : unique_name(lo, p2o_printf(lo->arena, "%s.next", v->name));
        return returned ? NULL : v->next;
    }
    return NULL;                                    /* keep_state makes an input of every buffer */
}

/* Output names are the user's: taken before any inner value can have them. */
static const char **claim_output_names(Lower *lo, const LowerOptions *o)
{
    const char **names = NEW_N(lo->arena, const char *, lo->prog->outputs.n + 1);
    size_t       k = 0;
    for (size_t i = 0; i < lo->prog->outputs.n; i++) {
        const OutputSpec *s = &lo->prog->outputs.at[i];
        if (s->kind != OUT_USER || s->value.kind == ARG_NONE)
            continue;
        names[i] =
            unique_name(lo, k < o->noutput && o->output_names[k] ? o->output_names[k] : s->name);
        k++;
    }
    for (size_t i = 0; lo->prog->keeps_state && i < lo->prog->outputs.n; i++)
        if (lo->prog->outputs.at[i].kind != OUT_USER)
            names[i] = next_name(lo, &lo->prog->outputs.at[i], names);
    return names;
}

/* State comes after what the program returns. */
static void lower_outputs(Lower *lo, const char **names, bool state)
{
    for (size_t i = 0; i < lo->prog->outputs.n; i++) {
        const OutputSpec *s = &lo->prog->outputs.at[i];
        if (state != (s->kind != OUT_USER))
            continue;
        if (state && !names[i] && !returned_as(lo, s, names))
            p2o_diag_advise(lo->diags, DIAG_NOTE, 0, "state io makes it an input and an output",
                            "the program changes '%s'; the model does not return that", s->name);
        if (!names[i])
            continue;
        Value *v = p2o_arg_value(lo, &s->value, p2o_arg_type(&s->value).dtype);
        if (!v) {
            p2o_diag(lo->diags, DIAG_UNSUPPORTED, 0, "output '%s' is neither a tensor nor a number",
                     names[i]);
            continue;
        }
        if (is_complex(p2o_arg_type(&s->value).dtype)) {
            lo->part = 1;
            v = join_parts(lo, (Complex){ v, p2o_arg_value(lo, &s->value, DT_F32) });
            lo->part = 0;
            note_pair(lo, "output", names[i]);
        }
        if (!v->def || p2o_value_is_output(v))      /* inputs, weights and what is returned twice */
            v = p2o_graph_node(lo->b->graph, ONNX_Identity, 1, &v, 0, NULL, 1, 0)->out[0];
        v->name = names[i];
        p2o_graph_output(lo->b->graph, v);
    }
}

Graph *p2o_lower(Program *p, const LowerOptions *o)
{
    Arena *a = p->arena;
    Graph *g = p2o_graph_new(a, p->diags, p->dims, o->opset, NULL);
    Map    weights = { .arena = a }, names = { .arena = a };
    Lower  lo = { .prog = p, .arena = a, .dims = p->dims, .diags = p->diags, .opset = o->opset,
                  .b = p2o_builder_new(g, NULL), .values = NEW_N(a, Value *, (size_t)p->nvar + 1),
                  .imag = NEW_N(a, Value *, (size_t)p->nvar + 1),
                  .weights = &weights, .names = &names };
    size_t errors = p2o_diags_errors(p->diags);

    g->name = "main";
    lower_inputs(&lo, o);
    const char **output_names = claim_output_names(&lo, o);
    lower_calls(&lo, p->main);
    if (p2o_diags_errors(p->diags) == errors)
        lower_outputs(&lo, output_names, false);
    if (p2o_diags_errors(p->diags) == errors)
        lower_outputs(&lo, output_names, true);
    return p2o_diags_errors(p->diags) == errors ? g : NULL;
}
