/* Fourier transforms, short-time ones too, and the ways between complex and real tensors.
 *
 * A transform of a known, moderate length is a product with a matrix of cosines and one of sines,
 * made by nodes that fold to constants: ONNX Runtime does it faster and far more exactly than its
 * DFT, which for other lengths runs in float64 (in float32 it loses four digits unless the length
 * is a power of two).  A short-time transform is a convolution with the same waves under the
 * window. */
#include "aten/lower.h"

#include <math.h>

static const double TURN = 6.28318530717958647692;

enum { MAX_MATRIX = 1024 };             /* the longest transform done by a product */

/* Complex from real and back. */

static void shape_view_as_real(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!is_complex(x.dtype))
        rule_fail(in, "%s is not complex", p2o_dtype_torch(x.dtype));
    else
        set_out(in, c, 0, part_of(x.dtype), insert_dim(in, x.shape, x.shape.rank, int_dim(in, 2)));
}

static Value *lower_view_as_real(Lower *lo, const Call *c)
{
    return join_parts(lo, complex_arg(lo, c, "self"));
}

static void shape_view_as_complex(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!is_float(x.dtype) || x.shape.rank == 0)
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(x.dtype), x.shape.rank);
    else if (must_equal(in, c, dim_at(x.shape, -1), int_dim(in, 2), "last size"))
        set_out(in, c, 0, complex_of(x.dtype), slice_shape(x.shape, 0, x.shape.rank - 1));
}

static void put_parts(Complex z, Value **out)
{
    out[0] = z.re;
    out[1] = z.im;
}

static void lower_view_as_complex(Lower *lo, const Call *c, Value **out)
{
    put_parts(split_parts(lo, tensor_arg(lo, c, "self")), out);
}

static void shape_imag(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!is_complex(x.dtype))
        rule_fail(in, "%s is not complex", p2o_dtype_torch(x.dtype));
    else
        set_out(in, c, 0, part_of(x.dtype), x.shape);
}

static Value *lower_imag(Lower *lo, const Call *c) { return complex_arg(lo, c, "self").im; }

static void shape_complex(Infer *in, const Call *c)
{
    Type a = p2o_arg_type(&c->args[0]), b = p2o_arg_type(&c->args[1]);
    if (!is_float(a.dtype) || a.dtype != b.dtype)
        rule_fail(in, "%s with %s", p2o_dtype_torch(a.dtype), p2o_dtype_torch(b.dtype));
    else
        set_out(in, c, 0, complex_of(a.dtype), broadcast(in, c, a.shape, b.shape));
}

static void lower_make_complex(Lower *lo, const Call *c, Value **out)
{
    out[0] = expand(lo, tensor_arg(lo, c, "real"), out_shape(c, 0));
    out[1] = expand(lo, tensor_arg(lo, c, "imag"), out_shape(c, 0));
}

static void lower_polar(Lower *lo, const Call *c, Value **out)
{
    Value *size = tensor_arg(lo, c, "abs"), *angle = tensor_arg(lo, c, "angle");
    out[0] = emit(lo, ONNX_Mul, size, emit(lo, ONNX_Cos, angle));
    out[1] = emit(lo, ONNX_Mul, size, emit(lo, ONNX_Sin, angle));
}

/* What a call transforms, and how.  The last of the dims is the one that is halved or made
 * whole. */
typedef enum TransformKind { COMPLEX_TO_COMPLEX, REAL_TO_HALF, HALF_TO_REAL } TransformKind;
typedef enum Scale { SCALE_NONE, SCALE_ROOT, SCALE_WHOLE } Scale;       /* 1, 1 / sqrt(n), 1 / n */

typedef struct Transform {
    TransformKind kind;
    bool          forward;              /* exp(-i ..); also which way `norm` scales */
    int           ndim, dim[MAX_RANK];
    Dim           size[MAX_RANK];       /* length of the signal along each */
    Scale         scale;
} Transform;

static bool is_minus_one(Dim d) { return dim_is(d, -1); }

/* The length of the signal of which `have` is the spectrum, or itself. */
static Dim signal_length(Dims *t, const Transform *f, int i, Dim have)
{
    if (f->kind != HALF_TO_REAL || i != f->ndim - 1)
        return have;
    return p2o_dim_mul(t, p2o_dim_int(t, 2), p2o_dim_sub(t, have, p2o_dim_int(t, 1)));
}

static const char *read_scale(const Call *c, Transform *f)
{
    const char *norm = str_arg(c, "norm");
    if (!norm || same(norm, "backward"))
        f->scale = f->forward ? SCALE_NONE : SCALE_WHOLE;
    else if (same(norm, "forward"))
        f->scale = f->forward ? SCALE_WHOLE : SCALE_NONE;
    else if (same(norm, "ortho"))
        f->scale = SCALE_ROOT;
    else
        return "an unknown norm";
    return NULL;
}

/* n along dim. */
static const char *read_transform_1d(Dims *t, const Call *c, Transform *f)
{
    Shape s = shape_arg(c, "self");
    if (!p2o_wrap_dim(int_arg(c, "dim"), s.rank, false, &f->dim[0]))
        return "dim is out of range";
    f->ndim = 1;
    f->size[0] = has_arg(c, "n") ? dim_arg(c, "n") : signal_length(t, f, 0, s.at[f->dim[0]]);
    return read_scale(c, f);
}

/* s along dim: without dim the last ones, without both all. */
static const char *read_transform_nd(Dims *t, const Call *c, Transform *f)
{
    Shape x = shape_arg(c, "self");
    bool  has_s = has_arg(c, "s"), has_dim = has_arg(c, "dim");
    f->ndim = has_dim ? list_len(c, "dim") : has_s ? list_len(c, "s") : x.rank;
    if (f->ndim > x.rank || (has_s && list_len(c, "s") != f->ndim))
        return "s and dim do not match";
    for (int i = 0; i < f->ndim; i++) {
        f->dim[i] = x.rank - f->ndim + i;
        if (has_dim && !p2o_wrap_dim(int_item(c, "dim", i), x.rank, false, &f->dim[i]))
            return "dim is out of range";
        for (int k = 0; k < i; k++)
            if (f->dim[k] == f->dim[i])
                return "a dim comes twice";
        bool given = has_s && !is_minus_one(dim_item(c, "s", i));
        f->size[i] = given ? dim_item(c, "s", i) : signal_length(t, f, i, x.at[f->dim[i]]);
    }
    return read_scale(c, f);
}

/* _fft_*: dims and a number for the scale; the dims are constants also where they are called
 * SymInt. */
static const char *read_transform_core(const Call *c, Transform *f)
{
    Shape   x = shape_arg(c, "self");
    int64_t mode = int_arg(c, "normalization"), d;
    f->ndim = list_len(c, "dim");
    if (mode < 0 || mode > 2)
        return "an unknown normalization";
    f->scale = mode == 0 ? SCALE_NONE : mode == 1 ? SCALE_ROOT : SCALE_WHOLE;
    for (int i = 0; i < f->ndim; i++) {
        if (!p2o_dim_is_int(dim_item(c, "dim", i), &d) ||
            !p2o_wrap_dim(d, x.rank, false, &f->dim[i]))
            return "dim is out of range";
        f->size[i] = x.at[f->dim[i]];
    }
    if (f->kind == HALF_TO_REAL && f->ndim)
        f->size[f->ndim - 1] = dim_arg(c, "last_dim_size");
    return NULL;
}

static Dim half_of(Dims *t, Dim n)
{
    return p2o_dim_add(t, p2o_dim_floordiv(t, n, p2o_dim_int(t, 2)), p2o_dim_int(t, 1));
}

typedef struct TransformName {
    const char   *name;
    TransformKind kind;
    bool          forward;
} TransformName;

static const TransformName transform_names[] = {
    { "fft_fft", COMPLEX_TO_COMPLEX, true },  { "fft_ifft", COMPLEX_TO_COMPLEX, false },
    { "fft_rfft", REAL_TO_HALF, true },       { "fft_ihfft", REAL_TO_HALF, false },
    { "fft_irfft", HALF_TO_REAL, false },     { "fft_hfft", HALF_TO_REAL, true },
    { "_fft_c2c", COMPLEX_TO_COMPLEX, true }, { "_fft_r2c", REAL_TO_HALF, true },
    { "_fft_c2r", HALF_TO_REAL, false },
};

/* The name without a 2 or n at its end says what it does, its arguments where. */
static const char *read_transform(Dims *t, const Call *c, Transform *f)
{
    Str  name = { c->schema->key + strlen("aten::"), strlen(c->schema->key) - strlen("aten::") };
    bool core = name.p[0] == '_';
    if (!core && (name.p[name.n - 1] == '2' || name.p[name.n - 1] == 'n'))
        name.n--;
    *f = (Transform){ 0 };
    for (size_t i = 0; i < COUNT_OF(transform_names); i++) {
        if (!str_eq(name, str_of(transform_names[i].name)))
            continue;
        f->kind = transform_names[i].kind;
        f->forward = transform_names[i].forward;
    }
    if (p2o_schema_find(c->schema, "forward") >= 0)
        f->forward = bool_arg(c, "forward");
    if (p2o_schema_find(c->schema, "onesided") >= 0 && !bool_arg(c, "onesided"))
        f->kind = COMPLEX_TO_COMPLEX;
    if (core)
        return read_transform_core(c, f);
    return p2o_schema_find(c->schema, "n") >= 0 ? read_transform_1d(t, c, f)
                                                : read_transform_nd(t, c, f);
}

static void shape_transform(Infer *in, const Call *c)
{
    Type        x = type_arg(c, "self");
    Transform   f;
    const char *wrong = read_transform(in->dims, c, &f);
    if (!wrong && f.kind == REAL_TO_HALF && is_complex(x.dtype))
        wrong = "a complex input";
    if (!wrong && f.kind != COMPLEX_TO_COMPLEX && f.ndim == 0)
        wrong = "no dim";
    if (wrong) {
        rule_fail(in, "%s", wrong);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < f.ndim; i++)
        at[f.dim[i]] = f.size[i];
    if (f.kind == REAL_TO_HALF)
        at[f.dim[f.ndim - 1]] = half_of(in->dims, f.size[f.ndim - 1]);
    DType t = complex_of(x.dtype);
    set_out(in, c, 0, f.kind == HALF_TO_REAL ? part_of(t) : t, (Shape){ x.shape.rank, at });
}

/* Cut or filled with zeros at its end to length n along axis. */
static Value *cut_or_fill(Lower *lo, Value *x, int axis, Dim n)
{
    Dim have = size_at(x, axis), zero = p2o_dim_int(lo->dims, 0);
    if (p2o_dim_eq(lo->dims, have, n) == YES)
        return x;
    if (p2o_dim_le(lo->dims, n, have) != YES) {
        Dim *pads = NEW_N(lo->arena, Dim, 2 * (size_t)rank(x));
        for (int i = 0; i < 2 * rank(x); i++)
            pads[i] = zero;
        pads[rank(x) + axis] = p2o_dim_max(lo->dims, p2o_dim_sub(lo->dims, n, have), zero);
        x = emit(lo, ONNX_Pad, x, shape_value(lo, (Shape){ 2 * rank(x), pads }));
    }
    return p2o_dim_le(lo->dims, have, n) == YES ? x : slice_axis(lo, x, axis, zero, n, 1);
}

static Complex cut_or_fill_parts(Lower *lo, Complex z, int axis, Dim n)
{
    return (Complex){ cut_or_fill(lo, z.re, axis, n),
                      z.im ? cut_or_fill(lo, z.im, axis, n) : NULL };
}

/* Waves: cos and sin of a turn * row * column / n, each times `factor`, in double until the end. */
typedef struct Waves {
    Value *cos, *sin;
} Waves;

static Waves waves(Lower *lo, Value *rows, Value *cols, Dim n, double factor, DType t)
{
    Value *steps =
        emit(lo, ONNX_Mod, emit(lo, ONNX_Mul, unsqueeze(lo, rows, 1), cols), dim_scalar(lo, n));
    Value *turn = emit(lo, ONNX_Div, num(lo, DT_F64, TURN), count_value(lo, n, DT_F64));
    int64_t len;
    if (p2o_dim_is_int(n, &len))
        turn = num(lo, DT_F64, TURN / (double)len);
    Value *angle = emit(lo, ONNX_Mul, cast(lo, steps, DT_F64), turn);
    return (Waves){ cast(lo, times_num(lo, emit(lo, ONNX_Cos, angle), factor), t),
                    cast(lo, times_num(lo, emit(lo, ONNX_Sin, angle), factor), t) };
}

static double scale_factor(Scale s, int64_t n)
{
    return s == SCALE_NONE ? 1 : s == SCALE_ROOT ? 1 / sqrt((double)n) : 1 / (double)n;
}

/* x along axis times m: [.., rows, ..] [rows, cols] -> [.., cols, ..] */
static Value *times_along(Lower *lo, Value *x, int axis, Value *m)
{
    int last = rank(x) - 1;
    return move_dim(lo, emit(lo, ONNX_MatMul, move_dim(lo, x, axis, last), m), last, axis);
}

/* sum of z exp(sign i ..) with sign -1 when forward; `cols` of the results. */
static Complex by_matrix(Lower *lo, Complex z, int axis, const Transform *f, int64_t n, Dim cols)
{
    Dims *d = lo->dims;
    Waves w = waves(lo, iota(lo, p2o_dim_int(d, n)), iota(lo, cols), p2o_dim_int(d, n),
                    scale_factor(f->scale, n), z.re->dtype);
    Value *rc = times_along(lo, z.re, axis, w.cos), *rs = times_along(lo, z.re, axis, w.sin);
    if (!z.im)
        return (Complex){ rc, f->forward ? emit(lo, ONNX_Neg, rs) : rs };
    Value *ic = times_along(lo, z.im, axis, w.cos), *is = times_along(lo, z.im, axis, w.sin);
    return (Complex){ emit(lo, f->forward ? ONNX_Add : ONNX_Sub, rc, is),
                      emit(lo, f->forward ? ONNX_Sub : ONNX_Add, ic, rs) };
}

/* Half a spectrum counts twice but for its ends, where k is 0 or n / 2. */
static Value *half_weights(Lower *lo, Value *k, int64_t n, DType t)
{
    Value *twice =
        emit(lo, ONNX_Mod, emit(lo, ONNX_Mul, k, p2o_build_int(lo->b, 2)), p2o_build_int(lo->b, n));
    return choose(lo, emit(lo, ONNX_Equal, twice, p2o_build_int(lo->b, 0)), num(lo, t, 1),
                  num(lo, t, 2));
}

static Value *real_by_matrix(Lower *lo, Complex z, int axis, const Transform *f, int64_t n)
{
    Dims  *d = lo->dims;
    DType  t = z.re->dtype;
    Dim    size = p2o_dim_int(d, n);
    Value *k = iota(lo, half_of(d, size));
    Waves  w = waves(lo, k, iota(lo, size), size, scale_factor(f->scale, n), t);
    Value *times = unsqueeze(lo, half_weights(lo, k, n, t), 1);
    Value *y = times_along(lo, z.re, axis, emit(lo, ONNX_Mul, w.cos, times));
    if (!z.im)
        return y;
    Value *odd = times_along(lo, z.im, axis, emit(lo, ONNX_Mul, w.sin, times));
    return emit(lo, f->forward ? ONNX_Add : ONNX_Sub, y, odd);
}

static bool is_power_of_two(Dim n)
{
    int64_t v;
    return p2o_dim_is_int(n, &v) && v > 0 && (v & (v - 1)) == 0;
}

/* DFT along axis of a pair, or of a real signal; opset 20 moved the axis to an input. */
static Value *dft(Lower *lo, Value *x, int axis, bool inverse, bool half)
{
    Attr attrs[3];
    int  n = 0;
    if (inverse)
        attrs[n++] = attr_int("inverse", 1);
    if (half)
        attrs[n++] = attr_int("onesided", 1);
    if (lo->opset >= 20)
        return p2o_build(lo->b, ONNX_DFT, n, attrs, INPUTS(x, NULL, p2o_build_int(lo->b, axis)));
    attrs[n++] = attr_int("axis", axis);
    return p2o_build(lo->b, ONNX_DFT, n, attrs, INPUTS(x));
}

/* ONNX's inverse is divided by n. */
static Value *rescaled(Lower *lo, Value *x, const Transform *f, Dim n, bool divided)
{
    if (f->scale == (divided ? SCALE_WHOLE : SCALE_NONE))
        return x;
    Value *count = count_value(lo, n, x->dtype);
    if (f->scale == SCALE_ROOT)
        count = emit(lo, ONNX_Sqrt, count);
    return emit(lo, divided ? ONNX_Mul : ONNX_Div, x, count);
}

static Complex by_dft(Lower *lo, Complex z, int axis, const Transform *f, Dim n, bool half)
{
    DType  t = z.re->dtype, wide = is_power_of_two(n) ? t : DT_F64;
    bool   inverse = !f->forward && !half;
    Value *x = cast(lo, z.im ? join_parts(lo, z) : unsqueeze(lo, z.re, rank(z.re)), wide);
    Value *y = rescaled(lo, dft(lo, x, axis, inverse, half), f, n, inverse);
    Complex out = split_parts(lo, cast(lo, y, t));
    if (half && !f->forward)                    /* the conjugate: the signal is real */
        out.im = emit(lo, ONNX_Neg, out.im);
    return out;
}

static Value *reversed(Lower *lo, Value *x, int axis)
{
    return emit(lo, ONNX_Slice, x, INTS(lo, -1), INTS(lo, INT64_MIN), INTS(lo, axis), INTS(lo, -1));
}

/* The other half of a spectrum is the mirror image of the first, conjugate. */
static Value *made_whole(Lower *lo, Value *x, int axis, Dim n, bool negate)
{
    Dims  *d = lo->dims;
    Dim    one = p2o_dim_int(d, 1);
    Dim end = p2o_dim_add(d, one, p2o_dim_floordiv(d, p2o_dim_sub(d, n, one), p2o_dim_int(d, 2)));
    Value *tail = reversed(lo, slice_axis(lo, x, axis, one, end, 1), axis);
    return concat(lo, axis, (Value *[]){ x, negate ? emit(lo, ONNX_Neg, tail) : tail }, 2);
}

static Value *real_by_dft(Lower *lo, Complex z, int axis, const Transform *f, Dim n)
{
    Complex whole = { made_whole(lo, z.re, axis, n, false),
                      z.im ? made_whole(lo, z.im, axis, n, true) : NULL };
    return by_dft(lo, whole, axis, f, n, false).re;
}

static void lower_transform(Lower *lo, const Call *c, Value **out)
{
    Transform f;
    Complex   z = complex_as(lo, c, "self", out_dtype(c, 0));
    int64_t   n;
    read_transform(lo->dims, c, &f);
    if (f.kind == COMPLEX_TO_COMPLEX && f.ndim == 0 && !z.im)
        z.im = full(lo, z.re->shape, z.re->dtype, 0);
    for (int k = 0; k < f.ndim; k++) {          /* halving comes first, making whole last */
        int  i = f.kind == REAL_TO_HALF ? f.ndim - 1 - k : k, axis = f.dim[i];
        bool ends = i == f.ndim - 1, half = ends && f.kind == REAL_TO_HALF;
        Dim  size = f.size[i], spectrum = half_of(lo->dims, size);
        bool product = p2o_dim_is_int(size, &n) && n <= MAX_MATRIX;
        if (ends && f.kind == HALF_TO_REAL) {
            z = cut_or_fill_parts(lo, z, axis, spectrum);
            out[0] =
                product ? real_by_matrix(lo, z, axis, &f, n) : real_by_dft(lo, z, axis, &f, size);
            return;
        }
        z = cut_or_fill_parts(lo, z, axis, size);
        z = product ? by_matrix(lo, z, axis, &f, n, half ? spectrum : size)
                    : by_dft(lo, z, axis, &f, size, half);
    }
    put_parts(z, out);
}

/* The zero frequency to the middle of each dim, or back. */
static Value *shift_halves(Lower *lo, const Call *c, bool back)
{
    Value *x = tensor_arg(lo, c, "self");
    Dims  *d = lo->dims;
    bool   all = !has_arg(c, "dim");
    for (int i = 0, n = all ? rank(x) : list_len(c, "dim"), axis; i < n; i++) {
        axis = i;
        if (!all)
            p2o_wrap_dim(int_item(c, "dim", i), rank(x), false, &axis);
        Dim two = p2o_dim_int(d, 2), size = size_at(x, axis);
        Dim at = back ? p2o_dim_floordiv(d, size, two) : p2o_dim_ceildiv(d, size, two);
        x = concat(lo, axis, (Value *[]){ slice_axis(lo, x, axis, at, NULL, 1),
                                          slice_axis(lo, x, axis, p2o_dim_int(d, 0), at, 1) }, 2);
    }
    return x;
}

static Value *lower_fftshift(Lower *lo, const Call *c) { return shift_halves(lo, c, false); }
static Value *lower_ifftshift(Lower *lo, const Call *c) { return shift_halves(lo, c, true); }

static void shape_shift_halves(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  axis;
    for (int i = 0; i < list_len(c, "dim"); i++)
        if (!must_wrap(in, int_item(c, "dim", i), x.shape.rank, &axis))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

static bool is_half_frequencies(const Call *c)
{
    return same(c->schema->key, "aten::fft_rfftfreq");
}

static void shape_fftfreq(Infer *in, const Call *c)
{
    Dim  *at = NEW(in->arena, Dim), n = dim_arg(c, "n");
    DType t = dtype_arg(c, "dtype", DT_F32);
    *at = is_half_frequencies(c) ? half_of(in->dims, n) : n;
    if (!is_float(t))
        rule_unsupported(in, "dtype %s", p2o_dtype_torch(t));
    else
        set_out(in, c, 0, t, (Shape){ 1, at });
}

/* 0, 1 .. then -n/2 .. -1, each by n d */
static Value *lower_fftfreq(Lower *lo, const Call *c)
{
    DType   t = out_dtype(c, 0);
    Dims   *d = lo->dims;
    Dim     n = dim_arg(c, "n");
    Value  *k = iota(lo, out_shape(c, 0).at[0]);
    int64_t len;
    if (!is_half_frequencies(c)) {
        Value *front =
            emit(lo, ONNX_Less, k, dim_scalar(lo, p2o_dim_ceildiv(d, n, p2o_dim_int(d, 2))));
        k = choose(lo, front, k, emit(lo, ONNX_Sub, k, dim_scalar(lo, n)));
    }
    if (p2o_dim_is_int(n, &len))
        return emit(lo, ONNX_Mul, cast(lo, k, t),
                    num(lo, t, 1 / ((double)len * float_arg(c, "d"))));
    return emit(lo, ONNX_Div, cast(lo, k, t),
                times_num(lo, count_value(lo, n, t), float_arg(c, "d")));
}

/* Short-time transforms: frames of n_fft samples, `hop` apart, under a window of `win` in their
 * middle. */
typedef struct Frames {
    int64_t n_fft, hop, win, left;      /* left: zeros before the window */
    bool    half;                       /* only frequencies up to n_fft / 2 */
} Frames;

static const char *read_frames(const Call *c, Frames *f)
{
    f->n_fft = int_arg(c, "n_fft");
    f->hop = has_arg(c, "hop_length") ? int_arg(c, "hop_length") : f->n_fft / 4;
    f->win = has_arg(c, "win_length") ? int_arg(c, "win_length") : f->n_fft;
    f->left = (f->n_fft - f->win) / 2;
    f->half = !has_arg(c, "onesided") || bool_arg(c, "onesided");
    if (f->hop < 1 || f->win < 1 || f->win > f->n_fft)
        return "hop_length or win_length is out of range";
    return NULL;
}

static bool window_fits(Infer *in, const Call *c, const Frames *f)
{
    if (!has_arg(c, "window"))
        return true;
    if (!is_float(type_arg(c, "window").dtype)) {
        rule_unsupported(in, "a window of %s", p2o_dtype_torch(type_arg(c, "window").dtype));
        return false;
    }
    return must_rank(in, c, "window", 1) && must_equal(in, c, shape_arg(c, "window").at[0],
                                                       int_dim(in, f->win), "length of the window");
}

static int64_t frequencies(const Frames *f) { return f->half ? f->n_fft / 2 + 1 : f->n_fft; }

static bool pads_ends(const Call *c)
{
    return p2o_schema_find(c->schema, "center") >= 0 && bool_arg(c, "center");
}

static void shape_stft(Infer *in, const Call *c)
{
    Type        x = type_arg(c, "self");
    Dims       *t = in->dims;
    Frames      f;
    const char *wrong = read_frames(c, &f);
    int         n = x.shape.rank;
    if (wrong || n < 1 || n > 2) {
        rule_fail(in, "%s", wrong ? wrong : "a signal that is not of rank 1 or 2");
        return;
    }
    if (!is_float(x.dtype)) {
        rule_unsupported(in, "a signal of %s", p2o_dtype_torch(x.dtype));
        return;
    }
    if (!pads_ends(c) && bool_arg(c, "align_to_window") && f.win < f.n_fft) {
        rule_unsupported(in, "align_to_window");
        return;
    }
    if (!window_fits(in, c, &f))
        return;
    int64_t grown = pads_ends(c) ? f.n_fft / 2 * 2 : 0;
    Dim     room = p2o_dim_add(t, x.shape.at[n - 1], int_dim(in, grown - f.n_fft));
    Dim     count = p2o_dim_add(t, p2o_dim_floordiv(t, room, int_dim(in, f.hop)), int_dim(in, 1));
    Shape   s = insert_dim(in, with_last(in, x.shape, count), n - 1, int_dim(in, frequencies(&f)));
    if (bool_arg(c, "return_complex"))
        set_out(in, c, 0, complex_of(x.dtype), s);
    else
        set_out(in, c, 0, x.dtype, insert_dim(in, s, s.rank, int_dim(in, 2)));
}

/* Without its first and last so many. */
static Value *cut_ends(Lower *lo, Value *x, int axis, Dim first, Dim last)
{
    return slice_axis(lo, x, axis, first, dim_is(last, 0) ? NULL : p2o_dim_neg(lo->dims, last), 1);
}

static Value *from_left(Lower *lo, const Frames *f)
{
    Value *i = iota(lo, p2o_dim_int(lo->dims, f->win));
    return f->left ? emit(lo, ONNX_Add, i, p2o_build_int(lo->b, f->left)) : i;
}

/* [2 frequencies, win]: cosines, then negative sines, under the window. */
static Value *wave_kernel(Lower *lo, const Call *c, const Frames *f, Value *times, double scale,
                          DType t)
{
    Dims  *d = lo->dims;
    Value *window = has_arg(c, "window") ? tensor_as(lo, c, "window", t) : NULL;
    Value *k = iota(lo, p2o_dim_int(d, frequencies(f)));
    Waves  w = waves(lo, k, from_left(lo, f), p2o_dim_int(d, f->n_fft), scale, t);
    Value *both = concat(lo, 0, (Value *[]){ w.cos, emit(lo, ONNX_Neg, w.sin) }, 2);
    if (times)
        both = emit(lo, ONNX_Mul, both, concat(lo, 0, (Value *[]){ times, times }, 2));
    return window ? emit(lo, ONNX_Mul, both, window) : both;
}

/* [batch, time] -> [batch, 2 frequencies, frames].  ONNX Runtime convolves only float32. */
static Value *analysed(Lower *lo, Value *x, Value *kernel, const Frames *f, Dim count)
{
    if (x->dtype == DT_F32) {
        int64_t right = f->n_fft - f->win - f->left;
        x = cut_ends(lo, x, 1, p2o_dim_int(lo->dims, f->left), p2o_dim_int(lo->dims, right));
        int64_t *hop = NEW(lo->arena, int64_t);
        *hop = f->hop;
        return emit_with(lo, ONNX_Conv, ATTRS(attr_ints("strides", hop, 1)), unsqueeze(lo, x, 1),
                         unsqueeze(lo, kernel, 1));
    }
    Value *starts = emit(lo, ONNX_Mul, iota(lo, count), p2o_build_int(lo->b, f->hop));
    Value *index = emit(lo, ONNX_Add, unsqueeze(lo, starts, 1), from_left(lo, f));
    Value *frames = emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", 1)), x, index);
    return swap_last_two(lo, emit(lo, ONNX_MatMul, frames, swap_last_two(lo, kernel)));
}

static Value *padded_ends(Lower *lo, const Call *c, Value *x, int64_t n)
{
    static const char *const modes[][2] = { { "reflect", "reflect" }, { "replicate", "edge" },
                                            { "constant", "constant" } };
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        if (same(str_arg(c, "pad_mode"), modes[i][0]))
            return emit_with(lo, ONNX_Pad, ATTRS(attr_str("mode", modes[i][1])), x,
                             INTS(lo, 0, n, 0, n));
    return unsupported(lo, c, "pad_mode '%s'", str_arg(c, "pad_mode"));
}

static void lower_stft(Lower *lo, const Call *c, Value **out)
{
    Frames f;
    Value *x = tensor_arg(lo, c, "self"), *part[2];
    bool   single = rank(x) == 1;
    read_frames(c, &f);
    if (single)
        x = unsqueeze(lo, x, 0);
    if (pads_ends(c))
        x = padded_ends(lo, c, x, f.n_fft / 2);
    if (!x)
        return;
    double scale = bool_arg(c, "normalized") ? 1 / sqrt((double)f.n_fft) : 1;
    Value *y = analysed(lo, x, wave_kernel(lo, c, &f, NULL, scale, x->dtype), &f,
                        out_shape(c, 0).at[single ? 1 : 2]);
    emit_many(lo, ONNX_Split, ATTRS(attr_int("axis", 1)), 2, part, y,
              INTS(lo, frequencies(&f), frequencies(&f)));
    Complex z = { single ? squeeze(lo, part[0], 0) : part[0],
                  single ? squeeze(lo, part[1], 0) : part[1] };
    if (bool_arg(c, "return_complex"))
        put_parts(z, out);
    else
        out[0] = join_parts(lo, z);
}

static bool read_inverse(Infer *in, const Call *c, Frames *f)
{
    Type        x = type_arg(c, "self");
    const char *wrong = read_frames(c, f);
    int64_t     have = 0;
    if (wrong || x.shape.rank < 2 || x.shape.rank > 3 || !is_complex(x.dtype)) {
        rule_fail(in, "%s", wrong ? wrong : "a spectrum that is not complex, of rank 2 or 3");
        return false;
    }
    if (!has_arg(c, "onesided") && p2o_dim_is_int(dim_at(x.shape, -2), &have))
        f->half = have != f->n_fft;
    return must_equal(in, c, dim_at(x.shape, -2), int_dim(in, frequencies(f)), "frequencies");
}

/* Samples that frames cover, and where the result begins among them. */
static Dim covered(Dims *t, const Frames *f, Dim frames)
{
    Dim steps = p2o_dim_sub(t, frames, p2o_dim_int(t, 1));
    return p2o_dim_add(t, p2o_dim_mul(t, steps, p2o_dim_int(t, f->hop)), p2o_dim_int(t, f->n_fft));
}

static void shape_istft(Infer *in, const Call *c)
{
    Type   x = type_arg(c, "self");
    Dims  *t = in->dims;
    Frames f;
    if (!read_inverse(in, c, &f) || !window_fits(in, c, &f))
        return;
    if (x.dtype != DT_C64) {
        rule_unsupported(in, "a spectrum that is not complex64");
        return;
    }
    if (bool_arg(c, "return_complex") && f.half) {
        rule_fail(in, "return_complex of half a spectrum");
        return;
    }
    if (!bool_arg(c, "center") && f.win < f.n_fft) {
        rule_fail(in, "a window shorter than n_fft leaves the ends open without center");
        return;
    }
    Dim length = dim_arg(c, "length");
    if (!length)
        length = p2o_dim_sub(t, covered(t, &f, dim_at(x.shape, -1)),
                             int_dim(in, bool_arg(c, "center") ? f.n_fft / 2 * 2 : 0));
    set_out(in, c, 0, bool_arg(c, "return_complex") ? x.dtype : part_of(x.dtype),
            with_last(in, slice_shape(x.shape, 0, x.shape.rank - 1), length));
}

/* Frames added up where they overlap: [batch, channels, frames] -> [batch, 1, time]. */
static Value *overlapped(Lower *lo, Value *x, Value *kernel, const Frames *f)
{
    int64_t *hop = NEW(lo->arena, int64_t);
    *hop = f->hop;
    return emit_with(lo, ONNX_ConvTranspose, ATTRS(attr_ints("strides", hop, 1)), x,
                     unsqueeze(lo, kernel, 1));
}

/* Frames made of waves under the window and added up, by the sum of the squared windows. */
static Value *synthesized(Lower *lo, const Call *c, const Frames *f, Complex z)
{
    Dims  *d = lo->dims;
    DType  t = z.re->dtype;
    bool   single = rank(z.re) == 2;
    Dim    count = size_at(z.re, -1), one = p2o_dim_int(d, 1);
    Value *k = iota(lo, p2o_dim_int(d, frequencies(f)));
    Value *kernel =
        wave_kernel(lo, c, f, f->half ? unsqueeze(lo, half_weights(lo, k, f->n_fft, t), 1) : NULL,
                    scale_factor(bool_arg(c, "normalized") ? SCALE_ROOT : SCALE_WHOLE, f->n_fft),
                    t);
    Value *x = concat(lo, single ? 0 : 1, (Value *[]){ z.re, z.im }, 2);
    Value *y = overlapped(lo, single ? unsqueeze(lo, x, 0) : x, kernel, f);
    Value *window = has_arg(c, "window") ? tensor_as(lo, c, "window", t) : NULL;
    Value *square = window ? emit(lo, ONNX_Mul, window, window)
                           : full(lo, (Shape){ 1, (Dim[]){ p2o_dim_int(d, f->win) } }, t, 1);
    Value *sum = overlapped(lo, full(lo, (Shape){ 3, (Dim[]){ one, one, count } }, t, 1),
                            unsqueeze(lo, square, 0), f);
    Dim length = dim_at(out_shape(c, 0), -1);
    Dim from = p2o_dim_int(d, bool_arg(c, "center") ? f->n_fft / 2 - f->left : 0);
    Dim rest = p2o_dim_sub(d, size_at(y, 2), p2o_dim_add(d, from, length));
    bool given = has_arg(c, "length");          /* may be longer than what there is */
    if (given)
        rest = p2o_dim_int(d, 0);
    y = squeeze(
        lo, emit(lo, ONNX_Div, cut_ends(lo, y, 2, from, rest), cut_ends(lo, sum, 2, from, rest)),
        1);
    if (given)
        y = cut_or_fill(lo, y, 1, length);
    return single ? squeeze(lo, y, 0) : y;
}

/* To a real signal PyTorch goes from half of the spectrum, whatever the other half is. */
static void lower_istft(Lower *lo, const Call *c, Value **out)
{
    Frames  f;
    Dims   *d = lo->dims;
    Complex z = complex_arg(lo, c, "self");
    int     axis = rank(z.re) - 2;
    read_frames(c, &f);
    if (bool_arg(c, "return_complex")) {        /* the imaginary part is -i z's real one */
        f.half = false;
        Value *re = synthesized(lo, c, &f, z);
        Value *im = synthesized(lo, c, &f, (Complex){ z.im, emit(lo, ONNX_Neg, z.re) });
        put_parts((Complex){ re, im }, out);
        return;
    }
    f.half = true;
    if (!dim_is(size_at(z.re, axis), frequencies(&f))) {
        Dim zero = p2o_dim_int(d, 0), end = p2o_dim_int(d, frequencies(&f));
        z.re = slice_axis(lo, z.re, axis, zero, end, 1);
        z.im = slice_axis(lo, z.im, axis, zero, end, 1);
    }
    out[0] = synthesized(lo, c, &f, z);
}

#define FFT_1D(name)                                                                               \
    {                                                                                              \
        "fft_" name "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",         \
            shape_transform, .lower_many = lower_transform, .complex = true                        \
    }
#define FFT_2D(name)                                                                               \
    {                                                                                              \
        "fft_" name                                                                                \
        "2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",        \
            shape_transform, .lower_many = lower_transform, .complex = true                        \
    }
#define FFT_ND(name)                                                                               \
    {                                                                                              \
        "fft_" name                                                                                \
        "n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",           \
            shape_transform, .lower_many = lower_transform, .complex = true                        \
    }
#define FFT_ROWS(name) FFT_1D(name), FFT_2D(name), FFT_ND(name)
#define STFT_ARGS                                                                                  \
    "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
#define STFT_ENDS                                                                                  \
    "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor"
#define FREQUENCIES                                                                                \
    "(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "    \
    "bool? pin_memory=None) -> Tensor"

const AtenOp p2o_ops_fft[] = {
    { "view_as_real(Tensor(a) self) -> Tensor(a)", shape_view_as_real, .lower = lower_view_as_real,
      .complex = true },
    { "view_as_real_copy(Tensor self) -> Tensor", shape_view_as_real, .lower = lower_view_as_real,
      .complex = true },
    { "view_as_complex(Tensor(a) self) -> Tensor(a)", shape_view_as_complex,
      .lower_many = lower_view_as_complex, .complex = true },
    { "view_as_complex_copy(Tensor self) -> Tensor", shape_view_as_complex,
      .lower_many = lower_view_as_complex, .complex = true },
    { "imag(Tensor(a) self) -> Tensor(a)", shape_imag, .lower = lower_imag, .complex = true },
    { "complex(Tensor real, Tensor imag) -> Tensor", shape_complex,
      .lower_many = lower_make_complex, .complex = true },
    { "polar(Tensor abs, Tensor angle) -> Tensor", shape_complex, .lower_many = lower_polar,
      .complex = true },
    FFT_ROWS("fft"),
    FFT_ROWS("ifft"),
    FFT_ROWS("rfft"),
    FFT_ROWS("irfft"),
    FFT_ROWS("hfft"),
    FFT_ROWS("ihfft"),
    { "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
      shape_transform, .lower_many = lower_transform, .complex = true },
    { "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
      shape_transform, .lower_many = lower_transform, .complex = true },
    { "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
      shape_transform, .lower_many = lower_transform, .complex = true },
    { "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", shape_shift_halves,
      .lower = lower_fftshift },
    { "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", shape_shift_halves,
      .lower = lower_ifftshift },
    { "stft(" STFT_ARGS "bool normalized=False, " STFT_ENDS, shape_stft, .lower_many = lower_stft,
      .complex = true, .limits = "real signals" },
    { "stft.center(" STFT_ARGS
      "bool center=True, str pad_mode=\"reflect\", bool normalized=False, " STFT_ENDS,
      shape_stft, .lower_many = lower_stft, .complex = true, .limits = "real signals" },
    { "istft(" STFT_ARGS
      "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
      "bool return_complex=False) -> Tensor",
      shape_istft, .lower_many = lower_istft, .complex = true, .counts = "length",
      .limits = "complex64" },
    { "fft_fftfreq" FREQUENCIES, shape_fftfreq, .lower = lower_fftfreq, .counts = "n" },
    { "fft_rfftfreq" FREQUENCIES, shape_fftfreq, .lower = lower_fftfreq, .counts = "n" },
    { 0 },
};
