/* torch.gradient: differences along dims, central inside and of first or second order at the ends.
 *
 * The overloads differ in how they say the distances: one number, one for each dim, or the
 * coordinates of each dim as a tensor. */
#include "aten/lower.h"

static bool has_coordinates(const Call *c)
{
    const Arg *x = names_arg(c, "spacing") ? p2o_call_arg(c, "spacing") : NULL;
    return x && x->kind == ARG_LIST && x->n && p2o_arg_type(&x->items[0]).kind == TY_TENSOR;
}

static bool spacing_list(const Call *c)
{
    return names_arg(c, "spacing") && p2o_call_arg(c, "spacing")->kind == ARG_LIST;
}

/* Which dims, in order; all of them when none is named. */
static int gradient_dims(const Call *c, int64_t *dims)
{
    const Arg *x = p2o_call_arg(c, "dim");
    int        n = x->kind == ARG_LIST ? list_len(c, "dim") : 1;
    if (x->kind == ARG_NONE)
        n = type_arg(c, "self").shape.rank;
    for (int i = 0; i < n && i < MAX_RANK; i++)
        dims[i] = x->kind == ARG_NONE   ? i
                  : x->kind == ARG_LIST ? int_item(c, "dim", i)
                                        : int_arg(c, "dim");
    return n;
}

static void shape_gradient(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t dims[MAX_RANK], order = int_arg(c, "edge_order");
    int     n = gradient_dims(c, dims), axis;
    if (n != nouts(c) || (spacing_list(c) && list_len(c, "spacing") != n) || order < 1 ||
        order > 2) {
        rule_fail(in, "%d results for %d dims, edge order %lld", nouts(c), n, (long long)order);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (!must_wrap(in, dims[i], x.shape.rank, &axis))
            return;
        Promotion p = { 0 };
        promote_type(&p, (Type){ .kind = TY_TENSOR, .dtype = float_of(x.dtype), .shape = x.shape });
        if (has_coordinates(c)) {
            Type at = type_item(c, "spacing", i);
            if (at.shape.rank != 1 ||
                !must_equal(in, c, at.shape.at[0], x.shape.at[axis], "coordinates"))
                return;
            promote_type(&p, at);
        }
        set_out(in, c, i, promoted(&p), x.shape);
    }
}

/* x[i + from], ... up to `to` from the end, along the axis. */
static Value *shifted(Lower *lo, Value *x, int axis, int64_t from, int64_t to)
{
    Dim end = p2o_dim_add(lo->dims, size_at(x, axis), p2o_dim_int(lo->dims, -to));
    return slice_axis(lo, x, axis, p2o_dim_int(lo->dims, from), end, 1);
}

/* The i-th from the front, or from the back when negative, as a slice of one. */
static Value *one_at(Lower *lo, Value *x, int axis, int64_t i)
{
    Dim at = p2o_dim_int(lo->dims, i);
    if (i < 0)
        at = p2o_dim_add(lo->dims, size_at(x, axis), at);
    return slice_axis(lo, x, axis, at, p2o_dim_add(lo->dims, at, p2o_dim_int(lo->dims, 1)), 1);
}

/* a * x + b * y + c * z */
static Value *combined(Lower *lo, Value *const *weight, Value *const *x)
{
    Value *sum = emit(lo, ONNX_Mul, weight[0], x[0]);
    for (int i = 1; i < 3; i++)
        sum = emit(lo, ONNX_Add, sum, emit(lo, ONNX_Mul, weight[i], x[i]));
    return sum;
}

/* The derivative at the one of three neighbours (0, 1, 2) that lie p and q apart. */
static Value *of_three(Lower *lo, Value *p, Value *q, int at, Value *const *x)
{
    Value *both = emit(lo, ONNX_Add, p, q), *pq = emit(lo, ONNX_Mul, p, q);
    Value *pb = emit(lo, ONNX_Mul, p, both), *qb = emit(lo, ONNX_Mul, q, both), *w[3];
    if (at == 0) {
        w[0] = emit(lo, ONNX_Neg, emit(lo, ONNX_Div, emit(lo, ONNX_Add, p, both), pb));
        w[1] = emit(lo, ONNX_Div, both, pq);
        w[2] = emit(lo, ONNX_Neg, emit(lo, ONNX_Div, p, qb));
    } else if (at == 1) {
        w[0] = emit(lo, ONNX_Neg, emit(lo, ONNX_Div, q, pb));
        w[1] = emit(lo, ONNX_Div, emit(lo, ONNX_Sub, q, p), pq);
        w[2] = emit(lo, ONNX_Div, p, qb);
    } else {
        w[0] = emit(lo, ONNX_Div, q, pb);
        w[1] = emit(lo, ONNX_Neg, emit(lo, ONNX_Div, both, pq));
        w[2] = emit(lo, ONNX_Div, emit(lo, ONNX_Add, q, both), qb);
    }
    return combined(lo, w, x);
}

/* A vector's distances lie along the axis of x. */
static Value *along(Lower *lo, Value *v, int axis, int ndim)
{
    for (int i = axis + 1; i < ndim; i++)
        v = unsqueeze(lo, v, 1);
    return v;
}

static Value *uneven_gradient(Lower *lo, Value *x, int axis, Value *place, int64_t order)
{
    Value *at = along(lo, place, axis, rank(x)), *out[3];
    int    a = 0;                                       /* of `at`, whose first axis it is */
    Value *steps = emit(lo, ONNX_Sub, shifted(lo, at, a, 1, 0), shifted(lo, at, a, 0, 1));
    Value *before = shifted(lo, steps, a, 0, 1), *after = shifted(lo, steps, a, 1, 0);
    out[1] = of_three(lo, before, after, 1,
                      (Value *[]){ shifted(lo, x, axis, 0, 2), shifted(lo, x, axis, 1, 1),
                                   shifted(lo, x, axis, 2, 0) });
    for (int end = 0; end < 2; end++) {
        int64_t i = end ? -3 : 0;
        Value  *p = one_at(lo, steps, a, end ? -2 : 0), *q = one_at(lo, steps, a, end ? -1 : 1);
        if (order == 2) {
            out[2 * end] = of_three(lo, p, q, 2 * end,
                                    (Value *[]){ one_at(lo, x, axis, i), one_at(lo, x, axis, i + 1),
                                                 one_at(lo, x, axis, i + 2) });
        } else {
            Value *from = one_at(lo, x, axis, end ? -2 : 0);
            Value *to = one_at(lo, x, axis, end ? -1 : 1);
            out[2 * end] = emit(lo, ONNX_Div, emit(lo, ONNX_Sub, to, from), end ? q : p);
        }
    }
    return concat(lo, axis, out, 3);
}

/* Inside (x[i + 1] - x[i - 1]) / (2 h). */
static Value *even_gradient(Lower *lo, Value *x, int axis, Value *h, int64_t order)
{
    Value *out[3],
        *span = emit(lo, ONNX_Sub, shifted(lo, x, axis, 2, 0), shifted(lo, x, axis, 0, 2));
    out[1] = emit(lo, ONNX_Div, span, emit(lo, ONNX_Add, h, h));
    for (int end = 0; end < 2; end++) {
        Value *a = one_at(lo, x, axis, end ? -1 : 0), *b = one_at(lo, x, axis, end ? -2 : 1), *d;
        if (order == 1) {
            d = end ? emit(lo, ONNX_Sub, a, b) : emit(lo, ONNX_Sub, b, a);
        } else {                /* -3/2 a + 2 b - 1/2 c, seen from the end */
            Value *third = one_at(lo, x, axis, end ? -3 : 2);
            d = emit(lo, ONNX_Sub, times_num(lo, b, 2), times_num(lo, third, 0.5));
            d = emit(lo, ONNX_Sub, d, times_num(lo, a, 1.5));
            d = end ? emit(lo, ONNX_Neg, d) : d;
        }
        out[2 * end] = emit(lo, ONNX_Div, d, h);
    }
    return concat(lo, axis, out, 3);
}

static void lower_gradient(Lower *lo, const Call *c, Value **out)
{
    int64_t dims[MAX_RANK], order = int_arg(c, "edge_order");
    int     n = gradient_dims(c, dims), axis;
    for (int i = 0; i < n; i++) {
        if (!c->outs[i])
            continue;
        DType  t = wide_of(out_dtype(c, i));
        Value *x = tensor_as(lo, c, "self", t), *y, *h = num(lo, t, 1);
        p2o_wrap_dim(dims[i], rank(x), false, &axis);
        if (has_coordinates(c)) {
            y = uneven_gradient(lo, x, axis, cast(lo, tensor_item(lo, c, "spacing", i), t), order);
        } else {
            const Arg *d = names_arg(c, "spacing") ? p2o_call_arg(c, "spacing") : NULL;
            if (d && d->kind != ARG_NONE)
                h = p2o_arg_value(lo, spacing_list(c) ? &d->items[i] : d, t);
            y = even_gradient(lo, x, axis, h, order);
        }
        out[i] = cast(lo, y, out_dtype(c, i));
    }
}

#define ROW_GRADIENT(name, args)                                                                \
    { "gradient." name "(Tensor self, *, " args ", int edge_order=1) -> Tensor[]", shape_gradient, \
      .lower_many = lower_gradient }

const AtenOp p2o_ops_gradient[] = {
    ROW_GRADIENT("scalarint", "Scalar? spacing=None, int? dim=None"),
    ROW_GRADIENT("scalararray", "Scalar spacing, int[] dim"),
    ROW_GRADIENT("array", "int[] dim"),
    ROW_GRADIENT("scalarrayint", "Scalar[] spacing, int? dim=None"),
    ROW_GRADIENT("scalarrayarray", "Scalar[] spacing, int[] dim"),
    ROW_GRADIENT("tensorarrayint", "Tensor[] spacing, int? dim=None"),
    ROW_GRADIENT("tensorarray", "Tensor[] spacing, int[] dim"),
    { 0 },
};
