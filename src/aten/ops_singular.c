/* Singular values and what follows from them alone: norms, ranks, pseudoinverses, eigenvalues of
 * symmetric matrices.  Vectors are not given: their signs are LAPACK's choice.
 *
 * Jacobi's method from one side: pairs of columns are rotated until all are orthogonal; their
 * lengths are the singular values then.  Half as many pairs as columns are done in one round of the
 * Loop, the columns then change partners as players of a round-robin tournament do.  It ends when a
 * whole turn had nothing to rotate. */
#include "aten/matrix.h"

#include <math.h>

#define NUM(f) num(lo, DT_F64, f)

typedef struct Orthogonal {
    Value *columns;             /* [all, m, even n]: a V */
    Value *turns;               /* [all, n, even n]: V; NULL when not asked for */
} Orthogonal;

static Value *halves(Lower *lo, Value *x, Dim h, bool second)
{
    return slice_axis(lo, x, 2, second ? h : p2o_dim_int(lo->dims, 0), second ? NULL : h, 1);
}

static Value *squares_down(Lower *lo, Value *x, Value *y)
{
    const int64_t axis = 1;
    return reduce(lo, ONNX_ReduceSum, emit(lo, ONNX_Mul, x, y), &axis, 1, true);
}

/* Who sits where after a round: the first stays, the others move on by one around two rows of h. */
static Value *next_partners(Lower *lo, Dim h)
{
    Dim two = p2o_dim_int(lo->dims, 2), one = p2o_dim_int(lo->dims, 1),
        all = p2o_dim_mul(lo->dims, h, two);
    Value *i = iota(lo, all), *half = dim_scalar(lo, h),
          *end = dim_scalar(lo, p2o_dim_sub(lo->dims, all, one));
    Value *low = plus_num(lo, i, -1), *corner = dim_scalar(lo, p2o_dim_sub(lo->dims, h, one));
    Value *high = choose(lo, emit(lo, ONNX_Less, i, end), plus_num(lo, i, 1), corner);
    Value *to = choose(lo, emit(lo, ONNX_Less, i, half), low, high);
    to = choose(lo, emit(lo, ONNX_Equal, i, p2o_build_int(lo->b, 1)), half, to);
    return choose(lo, emit(lo, ONNX_Equal, i, p2o_build_int(lo->b, 0)), i, to);
}

/* Cosine and sine that make columns x and y orthogonal; *turned says where they were not. */
static void rotation(Lower *lo, Value *x, Value *y, Value *least, Value **cosine, Value **sine,
                     Value **turned)
{
    Value *a = squares_down(lo, x, x), *b = squares_down(lo, y, y), *g = squares_down(lo, x, y);
    Value *size = emit(lo, ONNX_Abs, g), *far = emit(lo, ONNX_Sqrt, emit(lo, ONNX_Mul, a, b));
    *turned = emit(lo, ONNX_Greater, size, times_num(lo, far, 1e-15));
    *turned = emit(lo, ONNX_And, *turned, emit(lo, ONNX_Greater, size, least));
    g = choose(lo, *turned, g, NUM(1));
    Value *z = emit(lo, ONNX_Div, emit(lo, ONNX_Sub, b, a), times_num(lo, g, 2)),
          *w = emit(lo, ONNX_Abs, z);
    Value *root = emit(lo, ONNX_Sqrt, plus_num(lo, emit(lo, ONNX_Mul, z, z), 1));
    Value *t = emit(lo, ONNX_Reciprocal, emit(lo, ONNX_Add, w, root));
    t = choose(lo, emit(lo, ONNX_Less, z, NUM(0)), emit(lo, ONNX_Neg, t), t);
    t = choose(lo, *turned, t, NUM(0));
    *cosine =
        emit(lo, ONNX_Reciprocal, emit(lo, ONNX_Sqrt, plus_num(lo, emit(lo, ONNX_Mul, t, t), 1)));
    *sine = emit(lo, ONNX_Mul, *cosine, t);
}

static Value *rotated(Lower *lo, Value *x, Dim h, Value *cosine, Value *sine, Value *order)
{
    Value *a = halves(lo, x, h, false), *b = halves(lo, x, h, true);
    Value *p = emit(lo, ONNX_Sub, emit(lo, ONNX_Mul, cosine, a), emit(lo, ONNX_Mul, sine, b));
    Value *q = emit(lo, ONNX_Add, emit(lo, ONNX_Mul, sine, a), emit(lo, ONNX_Mul, cosine, b));
    return gather_along(lo, concat(lo, 2, (Value *[]){ p, q }, 2), 2, order);
}

static Orthogonal orthogonalized(Lower *lo, Value *a, bool with_turns)
{
    const int64_t both[] = { 1, 2 };
    Dims  *t = lo->dims;
    Dim    one = p2o_dim_int(t, 1), two = p2o_dim_int(t, 2), n = size_at(a, 2);
    Dim    h = p2o_dim_floordiv(t, p2o_dim_add(t, n, one), two);
    Dim    wide = p2o_dim_mul(t, h, two), turn = p2o_dim_sub(t, wide, one);
    Value *padded = pad_axes(lo, a, 2, 1, (Dim[]){ p2o_dim_int(t, 0), p2o_dim_sub(t, wide, n) }, 0);
    padded = reshape(lo, padded, shape_of(lo, 3, (Dim[]){ size_at(a, 0), size_at(a, 1), wide }));
    Value *v =
        cast(lo, emit(lo, ONNX_Equal, unsqueeze(lo, iota(lo, n), 1), iota(lo, wide)), DT_F64);
    v = expand(lo, v, shape_of(lo, 3, (Dim[]){ size_at(a, 0), n, wide }));
    Value *order = next_partners(lo, h), *length = dim_scalar(lo, turn), *out[3], *cosine, *sine,
          *turned;
    Value *least = times_num(lo, reduce(lo, ONNX_ReduceSumSquare, a, both, 2, true), 1e-32);
    Value *count = emit(lo, ONNX_Mul, length, p2o_build_int(lo->b, 40)),
          *none = p2o_build_int(lo->b, 0);
    Rounds r = open_rounds(lo, "rotations");
    Value *quiet = round_state(&r, none), *x = round_state(&r, padded),
          *y = with_turns ? round_state(&r, v) : NULL;
    Value *left = halves(lo, x, h, false);
    rotation(lo, left, halves(lo, x, h, true), least, &cosine, &sine, &turned);
    quiet = choose(lo, any_true(lo, turned), none, plus_num(lo, quiet, 1));
    Value *next[3] = { quiet, rotated(lo, x, h, cosine, sine, order), NULL };
    if (y)
        next[2] = rotated(lo, y, h, cosine, sine, order);
    close_rounds(lo, &r, count, NULL, emit(lo, ONNX_Less, quiet, length), next, out);
    return (Orthogonal){ out[1], y ? out[2] : NULL };
}

static Value *column_lengths(Lower *lo, Value *x)
{
    const int64_t axis = 1;
    return reduce(lo, ONNX_ReduceL2, x, &axis, 1, false);
}

/* [all, min(m, n)], the largest first. */
Value *singular_values(Lower *lo, Value *a)
{
    Value *s = column_lengths(lo, orthogonalized(lo, a, false).columns), *out[2];
    Dim    k = p2o_dim_min(lo->dims, size_at(a, 1), size_at(a, 2));
    emit_many(lo, ONNX_TopK, ATTRS(attr_int("axis", 1)), 2, out, s, dim_value(lo, k));
    return out[0];
}

static bool must_have_values(Infer *in, Type x)
{
    if (x.shape.rank < 2 || !is_float(x.dtype))
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(x.dtype), x.shape.rank);
    return x.shape.rank >= 2 && is_float(x.dtype);
}

static Shape values_shape(Infer *in, Shape s)
{
    return insert_dim(in, batch_of(s), s.rank - 2,
                      p2o_dim_min(in->dims, dim_at(s, -2), dim_at(s, -1)));
}

/* Of three results the middle one. */
static void shape_svd(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (must_have_values(in, x))
        set_out(in, c, nouts(c) == 3 ? 1 : 0, x.dtype, values_shape(in, x.shape));
}

static void lower_svd(Lower *lo, const Call *c, Value **out)
{
    int i = nouts(c) == 3 ? 1 : 0;
    out[i] = as_batches(
        lo, singular_values(lo, as_one_batch(lo, p2o_arg_value(lo, &c->args[0], DT_F32))), c, i);
}

/* The matrix whose other triangle is this one's mirror image. */
static Value *symmetric(Lower *lo, Value *a, bool upper)
{
    Value *i = iota(lo, size_at(a, 1)), *row = unsqueeze(lo, i, 1);
    return choose(lo, emit(lo, upper ? ONNX_LessOrEqual : ONNX_GreaterOrEqual, row, i), a,
                  swap_last_two(lo, a));
}

static void shape_eigh(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (must_be_squares(in, c, x))
        set_out(in, c, 0, x.dtype, slice_shape(x.shape, 0, x.shape.rank - 1));
}

/* With c the largest sum of a row's sizes, a + c has only eigenvalues that are not negative: its
 * singular values. */
static void lower_eigh(Lower *lo, const Call *c, Value **out)
{
    const int64_t row = 2, both[] = { 1, 2 };
    Value *a = as_one_batch(lo, p2o_arg_value(lo, &c->args[0], DT_F32));
    a = symmetric(lo, a, str_arg(c, "UPLO")[0] == 'U' || str_arg(c, "UPLO")[0] == 'u');
    Value *shift =
        reduce(lo, ONNX_ReduceMax, reduce(lo, ONNX_ReduceL1, a, &row, 1, true), both, 2, true);
    a = emit(lo, ONNX_Add, a, emit(lo, ONNX_Mul, shift, identity_matrix(lo, size_at(a, 1))));
    Value *s = singular_values(lo, a);
    s = emit(lo, ONNX_Sub, s, squeeze(lo, shift, 2));
    Value *step = INTS(lo, -1), *from = INTS(lo, -1), *to = INTS(lo, INT64_MIN + 1),
          *axis = INTS(lo, 1);
    s = emit(lo, ONNX_Slice, s, from, to, axis, step);
    out[0] = as_batches(lo, reshape(lo, s, slice_shape(a->shape, 0, 2)), c, 0);
}

/* Below which a singular value counts as 0, [all, 1]: the larger of atol and rtol times the
 * largest.  rtol is epsilon times the longer side unless it, or an atol above 0, is given. */
static Value *tolerance(Lower *lo, const Call *c, Value *a, Shape batch, Value *largest)
{
    static const char *const names[2][2] = { { "atol", "tol" }, { "rtol", "rcond" } };
    Value *given[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (names_arg(c, names[i][j]) && has_arg(c, names[i][j]))
                given[i] = tensor_as(lo, c, names[i][j], DT_F64);
    Shape one_each = shape_of(lo, 2, (Dim[]){ size_at(a, 0), p2o_dim_int(lo->dims, 1) });
    for (int i = 0; i < 2; i++)
        if (given[i])
            given[i] = reshape(lo, expand(lo, given[i], batch), one_each);
    bool explicit = names_arg(c, "tol") || names_arg(c, "rcond");
    if (!given[1] && !explicit) {
        DType  t = p2o_arg_type(&c->args[0]).dtype;
        double eps = t == DT_F64 ? 0x1p-52 : t == DT_F32 ? 0x1p-23 : t == DT_F16 ? 0x1p-10 : 0x1p-7;
        given[1] = times_num(
            lo, count_value(lo, p2o_dim_max(lo->dims, size_at(a, 1), size_at(a, 2)), DT_F64), eps);
        if (given[0])
            given[1] = choose(lo, emit(lo, ONNX_Greater, given[0], NUM(0)), NUM(0), given[1]);
    }
    Value *relative = given[1] ? emit(lo, ONNX_Mul, given[1], largest) : NUM(0);
    return given[0] ? emit(lo, ONNX_Max, given[0], relative) : relative;
}

static Value *matrices_arg(Lower *lo, const Call *c)
{
    Value *a = as_one_batch(lo, p2o_arg_value(lo, &c->args[0], DT_F32));
    return names_arg(c, "hermitian") && bool_arg(c, "hermitian") ? symmetric(lo, a, false) : a;
}

static bool must_be_hermitian(Infer *in, const Call *c, Type x)
{
    if (names_arg(c, "hermitian") && bool_arg(c, "hermitian"))
        return must_be_squares(in, c, x);
    return must_have_values(in, x);
}

static void shape_pinv(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (must_be_hermitian(in, c, x))
        set_out(in, c, 0, x.dtype,
                matrices_of(in, batch_of(x.shape), dim_at(x.shape, -1), dim_at(x.shape, -2)));
}

/* With a V = u s: V / s^2 (u s)', of the values that count. */
static Value *lower_pinv(Lower *lo, const Call *c)
{
    const int64_t axis = 1;
    Value     *a = matrices_arg(lo, c);
    Orthogonal o = orthogonalized(lo, a, true);
    Value *s = column_lengths(lo, o.columns);
    Value *largest = emit(lo, ONNX_Max, reduce(lo, ONNX_ReduceMax, s, &axis, 1, true), NUM(0));
    Value        *counts =
        emit(lo, ONNX_Greater, s, tolerance(lo, c, a, batch_of(shape_arg(c, "self")), largest));
    Value *r = emit(lo, ONNX_Reciprocal, choose(lo, counts, s, NUM(1)));
    r = unsqueeze(lo, choose(lo, counts, emit(lo, ONNX_Mul, r, r), NUM(0)), 1);
    return as_batches(
        lo, emit(lo, ONNX_MatMul, emit(lo, ONNX_Mul, o.turns, r), swap_last_two(lo, o.columns)), c,
        0);
}

static void shape_rank(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (must_be_hermitian(in, c, x))
        set_out(in, c, 0, DT_I64, batch_of(x.shape));
}

static Value *lower_matrix_rank(Lower *lo, const Call *c)
{
    const int64_t axis = 1;
    Value *a = matrices_arg(lo, c), *s = singular_values(lo, a);
    Value *largest = emit(lo, ONNX_Max, reduce(lo, ONNX_ReduceMax, s, &axis, 1, true), NUM(0));
    Value *counts = emit(lo, ONNX_Greater, s, tolerance(lo, c, a, out_shape(c, 0), largest));
    return as_batches(lo, reduce(lo, ONNX_ReduceSum, cast(lo, counts, DT_I64), &axis, 1, false), c,
                      0);
}

/* The quotient of the largest and smallest; of -2 turned over. */
static bool cond_order(const Call *c, double *p)
{
    *p = 2;
    return (!has_arg(c, "p") || p2o_number_is_const(p2o_call_arg(c, "p"), p)) && fabs(*p) == 2;
}

static void shape_cond(Infer *in, const Call *c)
{
    Type   x = type_arg(c, "self");
    double p;
    if (!must_have_values(in, x))
        return;
    if (!cond_order(c, &p))
        rule_unsupported(in, "a norm other than 2 and -2");
    else
        set_out(in, c, 0, x.dtype, batch_of(x.shape));
}

static Value *lower_cond(Lower *lo, const Call *c)
{
    const int64_t axis = 1;
    double p;
    Value *s = singular_values(lo, as_one_batch(lo, tensor_arg(lo, c, "self")));
    Value        *high = reduce(lo, ONNX_ReduceMax, s, &axis, 1, false),
          *low = reduce(lo, ONNX_ReduceMin, s, &axis, 1, false);
    cond_order(c, &p);
    return as_batches(lo, p > 0 ? emit(lo, ONNX_Div, high, low) : emit(lo, ONNX_Div, low, high), c,
                      0);
}

#define NO_VECTORS .limits = "no singular vectors"
#define NO_EIGEN   .limits = "no eigenvectors"
#define ROW_PINV(args)                                                                             \
    {                                                                                              \
        "linalg_pinv" args ", bool hermitian=False) -> Tensor", shape_pinv, .lower = lower_pinv    \
    }
#define ROW_RANK(args)                                                                             \
    {                                                                                              \
        "linalg_matrix_rank" args ", bool hermitian=False) -> Tensor", shape_rank,                 \
            .lower = lower_matrix_rank                                                             \
    }

const AtenOp p2o_ops_singular[] = {
    { "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", shape_svd,
      .lower_many = lower_svd },
    { "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
      shape_svd, .lower_many = lower_svd, NO_VECTORS },
    { "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
      shape_svd, .lower_many = lower_svd, NO_VECTORS },
    { "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
      shape_svd, .lower_many = lower_svd, NO_VECTORS },
    { "linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", shape_eigh,
      .lower_many = lower_eigh },
    { "linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
      shape_eigh, .lower_many = lower_eigh, NO_EIGEN },
    { "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
      shape_eigh, .lower_many = lower_eigh, NO_EIGEN },
    ROW_PINV("(Tensor self, float rcond"),
    ROW_PINV(".rcond_tensor(Tensor self, Tensor rcond"),
    ROW_PINV(".atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None"),
    ROW_PINV(".atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None"),
    { "pinverse(Tensor self, float rcond=1e-15) -> Tensor", shape_pinv, .lower = lower_pinv },
    ROW_RANK("(Tensor self, float tol"),
    ROW_RANK(".tol_tensor(Tensor input, Tensor tol"),
    ROW_RANK(".atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None"),
    ROW_RANK(".atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None"),
    { "linalg_cond(Tensor self, Scalar? p=None) -> Tensor", shape_cond, .lower = lower_cond,
      .limits = "norms 2 and -2 alone" },
    { 0 },
};
