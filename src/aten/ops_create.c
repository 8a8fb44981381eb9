/* Tensors from nothing but sizes and numbers: fills, progressions, windows, indices of a grid.
 *
 * What depends on constants alone is a constant.  Progressions of floats are computed in float64
 * from the index, start + i * step, as PyTorch does; ONNX's Range would add the step up, errors and
 * all. Memory that PyTorch leaves as it was is zero. */
#include "aten/lower.h"

#include <math.h>

static void set_created(Infer *in, const Call *c, DType t, Shape s)
{
    if (names_arg(c, "layout") && has_arg(c, "layout") && !same(str_arg(c, "layout"), "strided"))
        rule_unsupported(in, "a sparse layout");
    else
        set_out(in, c, 0, t, s);
}

static void shape_filled(Infer *in, const Call *c)
{
    set_created(in, c, dtype_arg(c, "dtype", default_dtype(c)), shape_list(in, c, "size"));
}

static void shape_filled_like(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    set_created(in, c, dtype_arg(c, "dtype", x.dtype), x.shape);
}

static void shape_new(Infer *in, const Call *c)
{
    set_created(in, c, dtype_arg(c, "dtype", type_arg(c, "self").dtype), shape_list(in, c, "size"));
}

/* Without a dtype the fill value decides. */
static void shape_full(Infer *in, const Call *c)
{
    Type v = type_arg(c, "fill_value");
    bool real = v.kind == TY_FLOAT && !is_complex(v.dtype);
    set_created(in, c, dtype_arg(c, "dtype", real ? default_dtype(c) : v.dtype),
                shape_list(in, c, "size"));
}

static void shape_fill(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), value = type_arg(c, "value");
    if (value.shape.rank != 0)
        rule_fail(in, "value of rank %d", value.shape.rank);
    else
        set_created(in, c, x.dtype, x.shape);
}

static Value *lower_zeros(Lower *lo, const Call *c)
{
    return full(lo, out_shape(c, 0), out_dtype(c, 0), 0);
}
static Value *lower_ones(Lower *lo, const Call *c)
{
    return full(lo, out_shape(c, 0), out_dtype(c, 0), 1);
}

static Value *fill_with(Lower *lo, const Call *c, const char *name)
{
    const Arg *x = p2o_call_arg(c, name);
    DType      t = out_dtype(c, 0);
    int64_t    i;
    double     f;
    if (is_complex(c->outs[0]->type.dtype))             /* part by part */
        return expand(lo, tensor_as(lo, c, name, t), out_shape(c, 0));
    if (x->kind == ARG_INT && p2o_dim_is_int(x->i, &i))
        return filled(lo, out_shape(c, 0), p2o_tensor_scalar(lo->arena, t, 0, i, false));
    if (p2o_number_is_const(x, &f))
        return full(lo, out_shape(c, 0), t, f);
    return expand(lo, tensor_as(lo, c, name, t), out_shape(c, 0));
}

static Value *lower_full(Lower *lo, const Call *c) { return fill_with(lo, c, "fill_value"); }
static Value *lower_fill(Lower *lo, const Call *c) { return fill_with(lo, c, "value"); }

static void shape_shape_as_tensor(Infer *in, const Call *c)
{
    Dim n = int_dim(in, shape_arg(c, "self").rank);
    set_out(in, c, 0, DT_I64, (Shape){ 1, &n });
}

static Value *lower_shape_as_tensor(Lower *lo, const Call *c)
{
    return shape_value(lo, shape_arg(c, "self"));
}

/* A constant vector; integers are cut toward zero. */
static Value *constant_vector(Lower *lo, DType t, const double *v, size_t n)
{
    DType    kept = t == DT_F64 ? DT_F64 : is_float(t) ? DT_F32 : DT_I64;
    float   *f = NEW_N(lo->arena, float, n + 1);
    int64_t *k = NEW_N(lo->arena, int64_t, n + 1);
    int64_t *sizes = NEW_N(lo->arena, int64_t, 1);
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)v[i];
        k[i] = kept == DT_I64 && fabs(v[i]) < 9e18 ? (int64_t)v[i] : INT64_MIN;
    }
    sizes[0] = (int64_t)n;
    const void *bytes = kept == DT_F64   ? (const void *)v
                        : kept == DT_F32 ? (const void *)f
                                         : (const void *)k;
    return cast(lo, p2o_build_const(lo->b, p2o_tensor_make(lo->arena, kept, 1, sizes, bytes)), t);
}

/* Constants longer than this would rather be computed. */
enum { LONGEST_CONSTANT = 1 << 24 };

static bool must_fit(Infer *in, double n)
{
    if (n >= 0 && n <= LONGEST_CONSTANT)
        return true;
    rule_unsupported(in, "%.0f elements", n);
    return false;
}

/* The bounds of a progression; an argument that the schema lacks is NULL. */
typedef struct Bounds {
    const Arg *start, *end, *step;
    bool       has_float;
    bool       whole;           /* floats that are, like -1.0, are ints here */
    Arg        as_int[3];
} Bounds;

static const Arg *arg_or_null(const Call *c, const char *name)
{
    return names_arg(c, name) && has_arg(c, name) ? p2o_call_arg(c, name) : NULL;
}

/* arange(n - 1, -1, -1.0) counts as ints do, whatever type its elements have. */
static void range_bounds(Dims *t, const Call *c, Bounds *b)
{
    *b = (Bounds){ arg_or_null(c, "start"), arg_or_null(c, "end"), arg_or_null(c, "step"),
                   .whole = true };
    const Arg **all[] = { &b->start, &b->end, &b->step };
    double      v;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (!*all[i] || p2o_arg_type(*all[i]).kind != TY_FLOAT)
            continue;
        b->has_float = true;
        if (p2o_number_is_const(*all[i], &v) && v == trunc(v) && fabs(v) < 0x1p53) {
            b->as_int[i] = arg_int(p2o_dim_int(t, (int64_t)v));
            *all[i] = &b->as_int[i];
        } else {
            b->whole = false;
        }
    }
}

static bool bound_const(const Arg *x, double otherwise, double *v)
{
    *v = otherwise;
    return !x || p2o_number_is_const(x, v);
}

static bool bounds_const(const Bounds *b, double v[3])
{
    bool start = bound_const(b->start, 0, &v[0]), end = bound_const(b->end, 0, &v[1]);
    return bound_const(b->step, 1, &v[2]) && start && end;
}

/* Of ints; NULL when the sign of the step is not known. */
static Dim int_range_count(Infer *in, Dim start, Dim end, Dim step, bool inclusive)
{
    int64_t low, high;
    Dim     span = p2o_dim_sub(in->dims, end, start);
    p2o_dim_range(in->dims, step, &low, &high);
    if (low <= 0 && high >= 0)
        return NULL;
    if (inclusive)
        return p2o_dim_add(in->dims, p2o_dim_floordiv(in->dims, span, step), int_dim(in, 1));
    return p2o_dim_ceildiv(in->dims, span, step);
}

static Dim counted_range(Infer *in, const Bounds *b, DType t, bool inclusive)
{
    double v[3];
    bool   fixed = bounds_const(b, v);
    if (fixed && (v[2] == 0 || !isfinite(v[0]) || !isfinite(v[1]) || isnan(v[2]))) {
        rule_fail(in, "from %g to %g by %g", v[0], v[1], v[2]);
        return NULL;
    }
    if (b->whole)
        return int_range_count(in, b->start ? p2o_arg_dim(b->start) : int_dim(in, 0),
                               p2o_arg_dim(b->end), b->step ? p2o_arg_dim(b->step) : int_dim(in, 1),
                               inclusive);
    if (!fixed)
        return NULL;
    for (int i = 0; t == DT_I64 && i < 3; i++)          /* PyTorch cuts the bounds of int64 first */
        v[i] = trunc(v[i]);
    double n = (v[1] - v[0]) / v[2];
    n = inclusive ? floor(n) + 1 : ceil(n);
    return must_fit(in, n) ? int_dim(in, (int64_t)n) : NULL;
}

static void range_result(Infer *in, const Call *c, DType t, bool inclusive)
{
    Bounds b;
    double v[3];
    range_bounds(in->dims, c, &b);
    Dim n = counted_range(in, &b, t, inclusive);
    if (in->failed)
        return;
    if (!has_open(in, n) && p2o_dim_lt(in->dims, n, int_dim(in, 0)) == YES) {
        rule_fail(in, "the step leads away from the end");
        return;
    }
    if (!b.whole && !is_float(t) && !is_int(t) && !bounds_const(&b, v)) {
        rule_unsupported(in, "%s between floats known at run time only", p2o_dtype_torch(t));
        return;
    }
    n = n ? n : data_dim(in, c, 0, 0);
    set_created(in, c, t, (Shape){ 1, &n });
}

static void shape_arange(Infer *in, const Call *c)
{
    Bounds b;
    range_bounds(in->dims, c, &b);
    range_result(in, c, dtype_arg(c, "dtype", b.has_float ? default_dtype(c) : DT_I64), false);
}

static void shape_range(Infer *in, const Call *c)
{
    range_result(in, c, dtype_arg(c, "dtype", default_dtype(c)), true);
}

static Value *bound_value_of(Lower *lo, const Arg *x, DType t, double otherwise)
{
    return x ? p2o_arg_value(lo, x, t) : num(lo, t, otherwise);
}

static Value *constant_range(Lower *lo, DType t, const double v[3], int64_t n)
{
    double *at = NEW_N(lo->arena, double, (size_t)n + 1);
    double  start = is_float(t) ? v[0] : trunc(v[0]), step = is_float(t) ? v[2] : trunc(v[2]);
    for (int64_t i = 0; i < n; i++)
        at[i] = start + step * (double)i;
    return constant_vector(lo, t, at, (size_t)n);
}

static Value *truncated(Lower *lo, Value *x) { return cast(lo, cast(lo, x, DT_I64), DT_F64); }

/* start + step * (0 .. n - 1), n counted at run time.  Ints have whole starts and steps; only int64
 * has the bounds cut before they are counted between. */
static Value *float_range(Lower *lo, const Bounds *b, DType t, bool inclusive)
{
    double first;
    bool   from_zero = bound_const(b->start, 0, &first) && first == 0;
    Value *start = bound_value_of(lo, b->start, DT_F64, 0),
          *end = bound_value_of(lo, b->end, DT_F64, 0);
    Value *step = bound_value_of(lo, b->step, DT_F64, 1);
    if (t == DT_I64) {
        start = truncated(lo, start);
        end = truncated(lo, end);
        step = truncated(lo, step);
    }
    Value *n = emit(lo, ONNX_Div, from_zero ? end : emit(lo, ONNX_Sub, end, start), step);
    n = inclusive ? plus_num(lo, emit(lo, ONNX_Floor, n), 1) : emit(lo, ONNX_Ceil, n);
    Value *i =
        emit(lo, ONNX_Range, p2o_build_int(lo->b, 0), cast(lo, n, DT_I64), p2o_build_int(lo->b, 1));
    if (is_int(t)) {
        double by;
        if (!bound_const(b->step, 1, &by) || trunc(by) != 1)
            i = emit(lo, ONNX_Mul, i, cast(lo, step, DT_I64));
        return cast(lo, from_zero ? i : emit(lo, ONNX_Add, i, cast(lo, start, DT_I64)), t);
    }
    Value *x = emit(lo, ONNX_Mul, cast(lo, i, DT_F64), step);
    return cast(lo, from_zero ? x : emit(lo, ONNX_Add, x, start), t);
}

static bool never_below_zero(Lower *lo, const Arg *x)
{
    return !x || p2o_dim_le(lo->dims, p2o_dim_int(lo->dims, 0), p2o_arg_dim(x)) == YES;
}

/* Plainly only where neither bound is negative: ONNX Runtime makes one Slice of a Range that a
 * Gather takes, and a Slice counts negative bounds from the end.  Else start and n steps from 0
 * on. */
static Value *int_range(Lower *lo, const Bounds *b, Dim n, Value *start, Value *end, Value *step)
{
    double v;
    bool   fixed = bound_const(b->step, 1, &v);
    bool   start_ok = never_below_zero(lo, b->start), end_ok = never_below_zero(lo, b->end);
    if ((start_ok && end_ok) || (fixed && (v > 0 ? start_ok : end_ok)))
        return emit(lo, ONNX_Range, start, end, step);
    if (fixed && fabs(v) < 0x1p31)
        return v > 0 ? emit(lo, ONNX_Add, range_of(lo, n, (int64_t)v), start)
                     : emit(lo, ONNX_Sub, start, range_of(lo, n, (int64_t)-v));
    Value *steps =
        emit(lo, ONNX_Range, p2o_build_int(lo->b, 0), emit(lo, ONNX_Sub, end, start), step);
    return emit(lo, ONNX_Add, steps, start);
}

static Value *progression(Lower *lo, const Call *c, bool inclusive)
{
    Bounds  b;
    DType   t = out_dtype(c, 0);
    double  v[3];
    int64_t n;
    range_bounds(lo->dims, c, &b);
    if (b.has_float && (!b.whole || bounds_const(&b, v))) {
        if (bounds_const(&b, v) && p2o_dim_is_int(out_shape(c, 0).at[0], &n))
            return constant_range(lo, t, v, n);
        return float_range(lo, &b, t, inclusive);
    }
    Value *start = bound_value_of(lo, b.start, DT_I64, 0),
          *end = bound_value_of(lo, b.end, DT_I64, 0);
    Value *step = bound_value_of(lo, b.step, DT_I64, 1);
    if (inclusive && bound_const(b.step, 1, &v[2]))
        end = emit(lo, ONNX_Add, end, p2o_build_int(lo->b, v[2] > 0 ? 1 : -1));
    else if (inclusive)
        end = emit(lo, ONNX_Add, end, emit(lo, ONNX_Sign, step));
    return cast(lo, int_range(lo, &b, out_shape(c, 0).at[0], start, end, step), t);
}

static Value *lower_arange(Lower *lo, const Call *c) { return progression(lo, c, false); }
static Value *lower_range(Lower *lo, const Call *c) { return progression(lo, c, true); }

static void shape_dim_arange(Infer *in, const Call *c)
{
    Shape s = shape_arg(c, "like");
    int   dim;
    if (must_wrap(in, int_arg(c, "dim"), s.rank, &dim))
        set_out(in, c, 0, DT_I64, slice_shape(s, dim, dim + 1));
}

static Value *lower_dim_arange(Lower *lo, const Call *c) { return iota(lo, out_shape(c, 0).at[0]); }

static void shape_linspace(Infer *in, const Call *c)
{
    Dim     n = dim_arg(c, "steps");
    int64_t fixed;
    if (shape_arg(c, "start").rank != 0 || shape_arg(c, "end").rank != 0)
        rule_fail(in, "a bound that is no number");
    else if (p2o_dim_lt(in->dims, n, int_dim(in, 0)) == YES)
        rule_fail(in, "%s steps", p2o_dim_text(in->dims, n));
    else if (!p2o_dim_is_int(n, &fixed) || must_fit(in, (double)fixed))
        set_created(in, c, dtype_arg(c, "dtype", default_dtype(c)), (Shape){ 1, &n });
}

/* Between integers, both ends are integers first. */
static bool ends_are_const(const Call *c, double *start, double *end)
{
    if (!p2o_number_is_const(p2o_call_arg(c, "start"), start) ||
        !p2o_number_is_const(p2o_call_arg(c, "end"), end))
        return false;
    if (!is_float(out_dtype(c, 0))) {
        *start = trunc(*start);
        *end = trunc(*end);
    }
    return true;
}

static Value *space_end(Lower *lo, const Call *c, const char *name)
{
    bool whole = !is_float(out_dtype(c, 0));
    return cast(lo, tensor_as(lo, c, name, whole ? DT_I64 : DT_F64), DT_F64);
}

/* Counted from the nearer end, as PyTorch does: both are met exactly. */
static double *spaced(Lower *lo, double start, double end, int64_t n)
{
    double *v = NEW_N(lo->arena, double, (size_t)n + 1);
    double  step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    for (int64_t i = 0; i < n; i++)
        v[i] = i < n / 2 || n == 1 ? start + step * (double)i : end - step * (double)(n - 1 - i);
    return v;
}

/* The same at run time, in float64: base + step * k, where k counts from start or from end. */
static Value *spaced_value(Lower *lo, const Call *c)
{
    Dims  *d = lo->dims;
    Dim    n = out_shape(c, 0).at[0], one = p2o_dim_int(d, 1), last = p2o_dim_sub(d, n, one);
    Value *start = space_end(lo, c, "start"), *end = space_end(lo, c, "end"), *i = iota(lo, n);
    Value *steps = count_value(lo, p2o_dim_max(d, last, one), DT_F64);
    Value *step = emit(lo, ONNX_Div, emit(lo, ONNX_Sub, end, start), steps);
    Value *half = dim_value(lo, p2o_dim_max(d, p2o_dim_floordiv(d, n, p2o_dim_int(d, 2)), one));
    Value *is_first = emit(lo, ONNX_Less, i, half);
    Value *k = choose(lo, is_first, i, emit(lo, ONNX_Sub, i, dim_value(lo, last)));
    Value *base = choose(lo, is_first, start, end);
    return emit(lo, ONNX_Add, base, emit(lo, ONNX_Mul, step, cast(lo, k, DT_F64)));
}

static Value *lower_linspace(Lower *lo, const Call *c)
{
    int64_t n;
    double  start, end;
    if (p2o_dim_is_int(out_shape(c, 0).at[0], &n) && ends_are_const(c, &start, &end))
        return constant_vector(lo, out_dtype(c, 0), spaced(lo, start, end, n), (size_t)n);
    return cast(lo, spaced_value(lo, c), out_dtype(c, 0));
}

static Value *lower_logspace(Lower *lo, const Call *c)
{
    int64_t n;
    double  start, end, base = float_arg(c, "base");
    if (!p2o_dim_is_int(out_shape(c, 0).at[0], &n) || !ends_are_const(c, &start, &end))
        return cast(lo, emit(lo, ONNX_Pow, num(lo, DT_F64, base), spaced_value(lo, c)),
                    out_dtype(c, 0));
    double *v = spaced(lo, start, end, n);
    for (int64_t i = 0; i < n; i++)
        v[i] = pow(base, v[i]);
    return constant_vector(lo, out_dtype(c, 0), v, (size_t)n);
}

static void shape_eye(Infer *in, const Call *c)
{
    const Arg *m = arg_or_null(c, "m");
    Dim        at[2] = { dim_arg(c, "n"), m ? p2o_arg_dim(m) : dim_arg(c, "n") };
    set_created(in, c, dtype_arg(c, "dtype", default_dtype(c)), (Shape){ 2, at });
}

static Value *lower_eye(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0), made = t == DT_F64 || t == DT_I64 || t == DT_I32 ? t : DT_F32;
    return cast(lo, emit(lo, ONNX_EyeLike, full(lo, out_shape(c, 0), made, 0)), t);
}

/* The places of a triangle in row-major order; how many there are. */
static int64_t triangle_places(int64_t rows, int64_t cols, int64_t offset, bool upper, int64_t *row,
                               int64_t *col)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = upper ? i + offset : 0, to = upper ? cols : i + offset + 1;
        for (int64_t k = from < 0 ? 0 : from; k < (to > cols ? cols : to); k++, n++) {
            if (row) {
                row[n] = i;
                col[n] = k;
            }
        }
    }
    return n;
}

static bool is_upper(const Call *c) { return p2o_str_starts(str_of(c->schema->key), "aten::triu"); }

typedef struct Triangle {
    Dim     rows, cols, offset;
    int64_t fixed[3];           /* the same, where all three are numbers */
    bool    is_fixed;
} Triangle;

static Triangle triangle_of(const Call *c)
{
    Triangle v = { dim_arg(c, "row"), dim_arg(c, "col"), dim_arg(c, "offset"), { 0 }, false };
    v.is_fixed = p2o_dim_is_int(v.rows, &v.fixed[0]) && p2o_dim_is_int(v.cols, &v.fixed[1]) &&
                 p2o_dim_is_int(v.offset, &v.fixed[2]);
    return v;
}

/* Rows before `from` are of one kind, all in or all out, and so are those from `to` on; in between
 * each has one element less, or more, than the one before. */
static Dim triangle_count(Dims *t, const Triangle *v, bool upper)
{
    Dim zero = p2o_dim_int(t, 0), one = p2o_dim_int(t, 1), two = p2o_dim_int(t, 2);
    Dim from = p2o_dim_min(t, p2o_dim_max(t, p2o_dim_neg(t, v->offset), zero), v->rows);
    Dim to = p2o_dim_min(t, p2o_dim_max(t, p2o_dim_sub(t, v->cols, v->offset), zero), v->rows);
    Dim ends = p2o_dim_sub(t, p2o_dim_add(t, from, to), one);  /* first and last in between */
    Dim sides = p2o_dim_add(t, ends, p2o_dim_mul(t, two, v->offset));
    Dim pair = upper ? p2o_dim_sub(t, p2o_dim_mul(t, two, v->cols), sides)
                     : p2o_dim_add(t, sides, two);
    Dim between = p2o_dim_floordiv(t, p2o_dim_mul(t, p2o_dim_sub(t, to, from), pair), two);
    Dim whole = p2o_dim_mul(t, upper ? from : p2o_dim_sub(t, v->rows, to), v->cols);
    return p2o_dim_add(t, between, whole);
}

static void shape_triangle_indices(Infer *in, const Call *c)
{
    Triangle v = triangle_of(c);
    Dim      zero = int_dim(in, 0), n;
    if (p2o_dim_lt(in->dims, v.rows, zero) == YES || p2o_dim_lt(in->dims, v.cols, zero) == YES) {
        rule_fail(in, "%s rows and %s columns", p2o_dim_text(in->dims, v.rows),
                  p2o_dim_text(in->dims, v.cols));
        return;
    }
    needs_le(in, zero, v.rows, "rows");
    needs_le(in, zero, v.cols, "columns");
    if (v.is_fixed && !must_fit(in, (double)v.fixed[0] * (double)v.fixed[1]))
        return;
    if (v.is_fixed)
        n = int_dim(in, triangle_places(v.fixed[0], v.fixed[1], v.fixed[2], is_upper(c), NULL,
                                        NULL));
    else
        n = triangle_count(in->dims, &v, is_upper(c));
    set_created(in, c, dtype_arg(c, "dtype", DT_I64), (Shape){ 2, (Dim[]){ int_dim(in, 2), n } });
}

/* Where column - row is at least, or at most, the offset. */
static Value *varying_triangle(Lower *lo, const Call *c, const Triangle *v)
{
    OnnxOp side = is_upper(c) ? ONNX_GreaterOrEqual : ONNX_LessOrEqual;
    Value *row = unsqueeze(lo, iota(lo, v->rows), 1);
    Value *off = emit(lo, ONNX_Sub, iota(lo, v->cols), row);
    Value *mask = emit(lo, side, off, dim_scalar(lo, v->offset));
    Value *at = emit(lo, ONNX_NonZero, mask);
    at->shape = out_shape(c, 0);            /* how many follows from the sizes alone */
    return cast(lo, at, out_dtype(c, 0));
}

static Value *lower_triangle_indices(Lower *lo, const Call *c)
{
    Triangle v = triangle_of(c);
    int64_t *sizes = NEW_N(lo->arena, int64_t, 2);
    int64_t  n = 0;
    if (!v.is_fixed)
        return varying_triangle(lo, c, &v);
    p2o_dim_is_int(out_shape(c, 0).at[1], &n);
    int64_t *at = NEW_N(lo->arena, int64_t, 2 * (size_t)n + 1);
    sizes[0] = 2;
    sizes[1] = triangle_places(v.fixed[0], v.fixed[1], v.fixed[2], is_upper(c), at, at + n);
    return cast(lo, p2o_build_const(lo->b, p2o_tensor_make(lo->arena, DT_I64, 2, sizes, at)),
                out_dtype(c, 0));
}

/* A window is a sum of cosines, sum(weight[k] * cos(2 * pi * k * i / last)), or a formula of its
 * own.  A periodic one of n elements ends before n, where a symmetric one ends at n - 1. */
typedef struct Window {
    double weight[3];
    double (*at)(const Call *c, double x);              /* of x = 2 * i / last - 1 */
} Window;

static double float_or(const Call *c, const char *name, double otherwise)
{
    return names_arg(c, name) ? float_arg(c, name) : otherwise;
}

static double bartlett_at(const Call *c, double x)
{
    (void)c;
    return 1 - fabs(x);
}

/* The modified Bessel function of order 0: the sum of ((x/2)^k / k!)^2. */
static double bessel_i0(double x)
{
    double term = 1, sum = 1;
    for (int k = 1; k < 1000 && term > sum * 1e-17; k++) {
        term *= (x / 2 / k) * (x / 2 / k);
        sum += term;
    }
    return sum;
}

static double kaiser_at(const Call *c, double x)
{
    double beta = float_or(c, "beta", 12);
    return bessel_i0(beta * sqrt(fmax(0, 1 - x * x))) / bessel_i0(beta);
}

static void shape_window(Infer *in, const Call *c)
{
    Dim     n = dim_arg(c, "window_length");
    int64_t fixed;
    DType   t = dtype_arg(c, "dtype", default_dtype(c));
    if (p2o_dim_lt(in->dims, n, int_dim(in, 0)) == YES || !is_float(t))
        rule_fail(in, "a window of %s in %s", p2o_dim_text(in->dims, n), p2o_dtype_torch(t));
    else if (!p2o_dim_is_int(n, &fixed) || must_fit(in, (double)fixed))
        set_created(in, c, t, (Shape){ 1, &n });
}

static const double two_pi = 6.28318530717958647693;

static double window_weight(const Call *c, const Window *w, double i, double last)
{
    double sum = 0;
    if (w->at)
        return w->at(c, 2 * i / last - 1);
    for (int k = 0; k < 3; k++)
        sum += w->weight[k] * cos(two_pi * k * i / last);
    return sum;
}

/* Of a length known at run time: 1 for the one element of a window of length 1. */
static Value *window_value(Lower *lo, const Window *w, Dim n, Dim last)
{
    Value *i = cast(lo, iota(lo, n), DT_F64), *sum = num(lo, DT_F64, w->weight[0]);
    for (int k = 1; k < 3 && w->weight[k] != 0; k++) {
        Value *turn =
            emit(lo, ONNX_Div, times_num(lo, i, two_pi * k), count_value(lo, last, DT_F64));
        sum = emit(lo, ONNX_Add, times_num(lo, emit(lo, ONNX_Cos, turn), w->weight[k]), sum);
    }
    Value *alone = emit(lo, ONNX_Equal, dim_value(lo, n), INTS(lo, 1));
    return choose(lo, alone, num(lo, DT_F64, 1), sum);
}

static Value *window(Lower *lo, const Call *c, Window w)
{
    Dim     n = out_shape(c, 0).at[0];
    int64_t fixed;
    bool    periodic = !names_arg(c, "periodic") || bool_arg(c, "periodic");
    if (!p2o_dim_is_int(n, &fixed)) {
        Dim last = periodic ? n : p2o_dim_sub(lo->dims, n, p2o_dim_int(lo->dims, 1));
        if (w.at)
            return unsupported(lo, c, "a length known at run time only");
        return cast(lo, window_value(lo, &w, n, last), out_dtype(c, 0));
    }
    double *v = NEW_N(lo->arena, double, (size_t)fixed + 1);
    for (int64_t i = 0; i < fixed; i++)
        v[i] = fixed == 1 ? 1
                          : window_weight(c, &w, (double)i, (double)(periodic ? fixed : fixed - 1));
    return constant_vector(lo, out_dtype(c, 0), v, (size_t)fixed);
}

static Value *lower_hann(Lower *lo, const Call *c)
{
    return window(lo, c, (Window){ { 0.5, -0.5, 0 }, NULL });
}
static Value *lower_bartlett(Lower *lo, const Call *c)
{
    return window(lo, c, (Window){ .at = bartlett_at });
}
static Value *lower_kaiser(Lower *lo, const Call *c)
{
    return window(lo, c, (Window){ .at = kaiser_at });
}

static Value *lower_blackman(Lower *lo, const Call *c)
{
    return window(lo, c, (Window){ { 0.42, -0.5, 0.08 }, NULL });
}

static Value *lower_hamming(Lower *lo, const Call *c)
{
    return window(lo, c,
                  (Window){ { float_or(c, "alpha", 0.54), -float_or(c, "beta", 0.46), 0 }, NULL });
}

static bool is_vander(const Call *c) { return same(c->schema->key, "aten::vander"); }

/* Powers of each element, as a running product: small integers grow.  A number is a vector of
 * one. */
static void shape_vander(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "x");
    Dim   one = int_dim(in, 1);
    Shape s = x.shape.rank ? x.shape : (Shape){ 1, &one };
    if (is_vander(c) && x.shape.rank != 1)
        rule_fail(in, "x of rank %d", x.shape.rank);
    else
        set_created(in, c, is_float(x.dtype) || is_complex(x.dtype) ? x.dtype : DT_I64,
                    insert_dim(in, s, s.rank, has_arg(c, "N") ? dim_arg(c, "N") : dim_at(s, -1)));
}

static Value *lower_vander(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Dim    n = dim_at(out_shape(c, 0), -1);
    Value *x = tensor_as(lo, c, "x", t), *power = iota(lo, n);
    if (rank(x) == 0)
        x = unsqueeze(lo, x, 0);
    if (is_vander(c) && !bool_arg(c, "increasing"))
        power = emit(lo, ONNX_Sub,
                     dim_value(lo, p2o_dim_sub(lo->dims, n, p2o_dim_int(lo->dims, 1))), power);
    return emit(lo, ONNX_Pow, unsqueeze(lo, x, rank(x)), cast(lo, power, t));
}

static void shape_cartesian_prod(Infer *in, const Call *c)
{
    int  n = list_len(c, "tensors");
    Dim  rows = int_dim(in, 1);
    if (n == 0) {
        rule_fail(in, "no tensors");
        return;
    }
    DType t = type_item(c, "tensors", 0).dtype;
    for (int i = 0; i < n; i++) {
        Type x = type_item(c, "tensors", i);
        if (x.shape.rank != 1 || x.dtype != t) {
            rule_fail(in, "tensor %d has rank %d and dtype %s", i, x.shape.rank,
                      p2o_dtype_torch(x.dtype));
            return;
        }
        rows = p2o_dim_mul(in->dims, rows, x.shape.at[0]);
    }
    set_created(in, c, t, (Shape){ n == 1 ? 1 : 2, (Dim[]){ rows, int_dim(in, n) } });
}

static Value *lower_cartesian_prod(Lower *lo, const Call *c)
{
    int     n = list_len(c, "tensors");
    Dim    *grid = NEW_N(lo->arena, Dim, (size_t)n + 1);
    Value **column = NEW_N(lo->arena, Value *, (size_t)n);
    Dim     one = p2o_dim_int(lo->dims, 1), rows = out_shape(c, 0).at[0];
    for (int i = 0; i < n; i++)
        grid[i] = type_item(c, "tensors", i).shape.at[0];
    if (n == 1)
        return tensor_item(lo, c, "tensors", 0);
    for (int i = 0; i < n; i++) {
        Value *x = tensor_item(lo, c, "tensors", i);
        for (int k = i + 1; k < n; k++)
            x = unsqueeze(lo, x, rank(x));
        column[i] =
            reshape(lo, expand(lo, x, (Shape){ n, grid }), (Shape){ 2, (Dim[]){ rows, one } });
    }
    return concat(lo, 1, column, n);
}

/* r of n elements, or of n + r - 1 when they may come again. */
static void shape_combinations(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t r = int_arg(c, "r");
    Dim     ways = int_dim(in, 1), factorial = ways;
    if (x.shape.rank != 1 || r < 0 || r > 8) {
        if (x.shape.rank != 1)
            rule_fail(in, "self of rank %d", x.shape.rank);
        else
            rule_unsupported(in, "combinations of %lld", (long long)r);
        return;
    }
    for (int64_t i = 0; i < r; i++) {
        Dim next = p2o_dim_add(in->dims, x.shape.at[0],
                               int_dim(in, bool_arg(c, "with_replacement") ? i : -i));
        ways = p2o_dim_mul(in->dims, ways, next);
        factorial = p2o_dim_mul(in->dims, factorial, int_dim(in, i + 1));
    }
    ways = p2o_dim_floordiv(in->dims, ways, factorial);
    if (r == 0)
        ways = int_dim(in, 0);
    set_created(in, c, x.dtype, (Shape){ r ? 2 : 1, (Dim[]){ ways, int_dim(in, r) } });
}

/* Places of an r-fold grid whose indices ascend, in row-major order. */
static Value *lower_combinations(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *mask = NULL, *i = iota(lo, size_at(x, 0));
    int    r = (int)int_arg(c, "r");
    OnnxOp before = bool_arg(c, "with_replacement") ? ONNX_LessOrEqual : ONNX_Less;
    if (r == 0)
        return full(lo, out_shape(c, 0), x->dtype, 0);
    if (r == 1)
        return unsqueeze(lo, x, 1);
    for (int k = 0; k + 1 < r; k++) {
        Dim    one = p2o_dim_int(lo->dims, 1), left[8], right[8];
        for (int q = 0; q < r; q++) {
            left[q] = q == k ? size_at(x, 0) : one;
            right[q] = q == k + 1 ? size_at(x, 0) : one;
        }
        Value *ascends = emit(lo, before, reshape(lo, i, (Shape){ r, left }),
                              reshape(lo, i, (Shape){ r, right }));
        mask = mask ? emit(lo, ONNX_And, mask, ascends) : ascends;
    }
    return emit(lo, ONNX_Gather, x, swap_last_two(lo, emit(lo, ONNX_NonZero, mask)));
}

#define FACTORY                                                                                    \
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define MADE    "*, " FACTORY ") -> Tensor"
#define LIKE    "*, " FACTORY ", MemoryFormat? memory_format=None) -> Tensor"
#define INDEX                                                                                      \
    "*, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "                        \
    "bool? pin_memory=None) -> Tensor"

#define ROW_FILL(name, fn)                                                             \
    { name "(SymInt[] size, " MADE, shape_filled, .lower = fn },                       \
    { name "_like(Tensor self, " LIKE, shape_filled_like, .lower = fn,                 \
      .batch = p2o_batch_self },                                                       \
    { "new_" name "(Tensor self, SymInt[] size, " MADE, shape_new, .lower = fn,        \
      .batch = p2o_batch_type }
#define SPACE(head, more, fn)                                                                      \
    {                                                                                              \
        head ", int steps, " more MADE, shape_linspace, .lower = fn, .counts = "steps"             \
    }
#define ROW_SPACE(name, more, fn)                                  \
    SPACE(name "(Scalar start, Scalar end", more, fn),             \
    SPACE(name ".Tensor_Tensor(Tensor start, Tensor end", more, fn), \
    SPACE(name ".Tensor_Scalar(Tensor start, Scalar end", more, fn), \
    SPACE(name ".Scalar_Tensor(Scalar start, Tensor end", more, fn)
#define RANGE_LIMIT "no integers between floats known at run time only"
#define WINDOW(head, fn, limit) \
    { head MADE, shape_window, .lower = fn, .counts = "window_length", .limits = limit }
#define ROW_WINDOW(name, fn, limit)                          \
    WINDOW(name "_window(int window_length, ", fn, limit),   \
    WINDOW(name "_window.periodic(int window_length, bool periodic, ", fn, limit)
#define FIXED_LENGTH "a fixed length"

#define ROW_TRIANGLE(name) \
    { name "(int row, int col, int offset=0, " INDEX, shape_triangle_indices, \
      .lower = lower_triangle_indices, .counts = "row col", .varies = "offset", \
      .roles = "offset:factor", .limits = "constants of at most 2^24 elements" }

const AtenOp p2o_ops_create[] = {
    ROW_FILL("zeros", lower_zeros),
    ROW_FILL("ones", lower_ones),
    { "empty.memory_format(SymInt[] size, " LIKE, shape_filled, .lower = lower_zeros },
    { "empty_like(Tensor self, " LIKE, shape_filled_like, .lower = lower_zeros,
      .batch = p2o_batch_self },
    { "new_empty(Tensor self, SymInt[] size, " MADE, shape_new, .lower = lower_zeros,
      .batch = p2o_batch_type },
    { "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, " MADE, shape_new,
      .lower = lower_zeros },
    { "empty_strided(SymInt[] size, SymInt[] stride, " MADE, shape_filled, .lower = lower_zeros },
    { "empty_permuted(SymInt[] size, int[] physical_layout, " MADE, shape_filled,
      .lower = lower_zeros },
    { "full(SymInt[] size, Scalar fill_value, " MADE, shape_full, .lower = lower_full },
    { "full_like(Tensor self, Scalar fill_value, " LIKE, shape_filled_like, .lower = lower_full,
      .batch = p2o_batch_self },
    { "new_full(Tensor self, SymInt[] size, Scalar fill_value, " MADE, shape_new,
      .lower = lower_full,
      .batch = p2o_batch_type },
    { "fill.Scalar(Tensor self, Scalar value) -> Tensor", shape_fill, .lower = lower_fill,
      .batch = p2o_batch_self },
    { "fill.Tensor(Tensor self, Tensor value) -> Tensor", shape_fill, .lower = lower_fill,
      .batch = p2o_batch_fill },
    { "zero(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_zeros,
      .batch = p2o_batch_self },
    { "_shape_as_tensor(Tensor self) -> Tensor", shape_shape_as_tensor,
      .lower = lower_shape_as_tensor },
    { "arange(Scalar end, " MADE, shape_arange, .lower = lower_arange, .counts = "end",
      .limits = RANGE_LIMIT },
    { "arange.start(Scalar start, Scalar end, " MADE, shape_arange, .lower = lower_arange,
      .counts = "start end", .limits = RANGE_LIMIT },
    { "arange.start_step(Scalar start, Scalar end, Scalar step=1, " MADE, shape_arange,
      .lower = lower_arange, .counts = "start end", .limits = RANGE_LIMIT },
    { "range(Scalar start, Scalar end, " MADE, shape_range, .lower = lower_range,
      .counts = "start end" },
    { "range.step(Scalar start, Scalar end, Scalar step=1, " MADE, shape_range,
      .lower = lower_range, .counts = "start end" },
    { "_dim_arange(Tensor like, int dim) -> Tensor", shape_dim_arange, .lower = lower_dim_arange },
    ROW_SPACE("linspace", "", lower_linspace),
    ROW_SPACE("logspace", "float base=10.0, ", lower_logspace),
    { "eye(SymInt n, " MADE, shape_eye, .lower = lower_eye },
    { "eye.m(SymInt n, SymInt m, " MADE, shape_eye, .lower = lower_eye },
    ROW_TRIANGLE("tril_indices"),
    ROW_TRIANGLE("triu_indices"),
    ROW_WINDOW("hann", lower_hann, NULL),
    ROW_WINDOW("hamming", lower_hamming, NULL),
    WINDOW("hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, ",
           lower_hamming, NULL),
    WINDOW("hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, "
           "float beta, ",
           lower_hamming, NULL),
    ROW_WINDOW("blackman", lower_blackman, NULL),
    ROW_WINDOW("bartlett", lower_bartlett, FIXED_LENGTH),
    ROW_WINDOW("kaiser", lower_kaiser, FIXED_LENGTH),
    WINDOW("kaiser_window.beta(int window_length, bool periodic, float beta, ", lower_kaiser,
           FIXED_LENGTH),
    { "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", shape_vander,
      .lower = lower_vander, .counts = "N" },
    { "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", shape_vander, .lower = lower_vander },
    { "cartesian_prod(Tensor[] tensors) -> Tensor", shape_cartesian_prod,
      .lower = lower_cartesian_prod },
    { "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
      shape_combinations, .lower = lower_combinations, .limits = "r of at most 8" },
    { 0 },
};
