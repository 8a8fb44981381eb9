/* Factors of matrices: LU with the largest pivot of each column, QR by Householder's reflections;
 * the matrix exponential.
 *
 * Loops over the columns as in ops_solve.c.  Signs and pivots are LAPACK's, so that factors
 * compare. */
#include "aten/matrix.h"

#include <math.h>

#define NUM(f)                num(lo, DT_F64, f)
#define product_of(lo, a, b)  emit(lo, ONNX_MatMul, a, b)

static bool must_be_matrices(Infer *in, Type x)
{
    if (x.shape.rank < 2 || !is_float(x.dtype))
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(x.dtype), x.shape.rank);
    return x.shape.rank >= 2 && is_float(x.dtype);
}

static Dim shorter(Dims *t, Shape s) { return p2o_dim_min(t, dim_at(s, -2), dim_at(s, -1)); }

static Shape vectors_of(Infer *in, Shape batch, Dim n)
{
    return insert_dim(in, batch, batch.rank, n);
}

/* [n, m] of bools: row i against column j. */
static Value *below_diagonal(Lower *lo, Dim n, Dim m)
{
    return emit(lo, ONNX_Greater, unsqueeze(lo, iota(lo, n), 1), iota(lo, m));
}

/* LU */

static bool must_pivot(Infer *in, const Call *c)
{
    if (!bool_arg(c, "pivot"))
        rule_unsupported(in, "pivot=False");
    return bool_arg(c, "pivot");
}

static void shape_lu_factor(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (!must_be_matrices(in, x) || !must_pivot(in, c))
        return;
    set_out(in, c, 0, x.dtype, x.shape);
    set_out(in, c, 1, DT_I32, vectors_of(in, batch_of(x.shape), shorter(in->dims, x.shape)));
    if (nouts(c) > 2)
        set_out(in, c, 2, DT_I32, batch_of(x.shape));
}

typedef struct Factored {
    Value *lu;          /* [all, m, n]: u and, below the diagonal, l */
    Value *pivots;      /* int64 [all, k]: which row changed places with each, counted from 0 */
} Factored;

/* Column k: the row of its largest element below changes places with row k and is taken from those
 * below. */
static Factored factored(Lower *lo, Value *a)
{
    Dim    m = size_at(a, 1), n = size_at(a, 2), k_ = shorter(lo->dims, a->shape);
    Value *rows = iota(lo, m), *columns = iota(lo, n), *places = iota(lo, k_),
          *count = dim_scalar(lo, k_), *out[2];
    Value *none = full(lo, shape_of(lo, 2, (Dim[]){ size_at(a, 0), k_ }), DT_I64, 0);
    Rounds r = open_rounds(lo, "column");
    Value *k = r.round, *x = round_state(&r, a), *pivots = round_state(&r, none);
    Value *left = emit(lo, ONNX_Abs, gather_along(lo, x, 2, k));
    left = choose(lo, emit(lo, ONNX_GreaterOrEqual, rows, k), left, NUM(-1));
    Value *top =
        emit_with(lo, ONNX_ArgMax, ATTRS(attr_int("axis", 1), attr_int("keepdims", 1)), left);
    Value *best = emit_with(lo, ONNX_GatherND, ATTRS(attr_int("batch_dims", 1)), x, top);
    Value *here = unsqueeze(lo, gather_along(lo, x, 1, k), 1), *row = unsqueeze(lo, best, 1);
    x = choose(lo, unsqueeze(lo, emit(lo, ONNX_Equal, rows, top), 2), here, x);
    x = choose(lo, unsqueeze(lo, emit(lo, ONNX_Equal, rows, k), 1), row, x);
    Value *pivot = unsqueeze(lo, gather_along(lo, best, 1, k), 1);
    pivot = choose(lo, emit(lo, ONNX_Equal, pivot, NUM(0)), NUM(1), pivot);
    Value *factor = unsqueeze(lo, emit(lo, ONNX_Div, gather_along(lo, x, 2, k), pivot), 2);
    Value *rest = emit(lo, ONNX_Sub, x, emit(lo, ONNX_Mul, factor, row));
    rest = choose(lo, emit(lo, ONNX_Equal, columns, k), factor, rest);
    Value *changes = unsqueeze(lo, emit(lo, ONNX_Greater, rows, k), 1);
    changes = emit(lo, ONNX_And, changes, emit(lo, ONNX_GreaterOrEqual, columns, k));
    x = choose(lo, changes, rest, x);
    pivots = choose(lo, emit(lo, ONNX_Equal, places, k), top, pivots);
    close_rounds(lo, &r, count, NULL, NULL, (Value *[]){ x, pivots }, out);
    return (Factored){ out[0], out[1] };
}

/* 0-based pivots -> int64 [all, m]: which row of the matrix each row of l u is. */
static Value *permutation(Lower *lo, Value *pivots, Dim m)
{
    Dim    n = size_at(pivots, 1);
    Value *rows = iota(lo, m), *count = dim_scalar(lo, n), *out;
    Value *start =
        expand(lo, unsqueeze(lo, rows, 0), shape_of(lo, 2, (Dim[]){ size_at(pivots, 0), m }));
    Rounds r = open_rounds(lo, "swap");
    Value *order = round_state(&r, start), *k = r.round;
    Value *there = unsqueeze(lo, gather_along(lo, pivots, 1, k), 1);
    Value *mine = unsqueeze(lo, gather_along(lo, order, 1, k), 1);
    Value *theirs = emit_with(lo, ONNX_GatherElements, ATTRS(attr_int("axis", 1)), order, there);
    order = choose(lo, emit(lo, ONNX_Equal, rows, there), mine, order);
    order = choose(lo, emit(lo, ONNX_Equal, rows, k), theirs, order);
    close_rounds(lo, &r, count, NULL, NULL, &order, &out);
    return out;
}

/* P of a = P l u, [all, m, m]. */
static Value *permutation_matrix(Lower *lo, Value *order, Dim m)
{
    return cast(lo, emit(lo, ONNX_Equal, unsqueeze(lo, iota(lo, m), 1), unsqueeze(lo, order, 1)),
                DT_F64);
}

/* The unit lower triangle [all, m, k] and the upper one [all, k, n]. */
static Value *lower_factor(Lower *lo, Value *lu)
{
    Dim    m = size_at(lu, 1), k = shorter(lo->dims, lu->shape);
    Value *x = slice_axis(lo, lu, 2, p2o_dim_int(lo->dims, 0), k, 1),
          *row = unsqueeze(lo, iota(lo, m), 1);
    Value *one = cast(lo, emit(lo, ONNX_Equal, row, iota(lo, k)), DT_F64);
    return choose(lo, below_diagonal(lo, m, k), x, one);
}

static Value *upper_factor(Lower *lo, Value *lu)
{
    Dim    n = size_at(lu, 2), k = shorter(lo->dims, lu->shape);
    Value *x = slice_axis(lo, lu, 1, p2o_dim_int(lo->dims, 0), k, 1);
    return choose(lo, below_diagonal(lo, k, n), NUM(0), x);
}

static void lower_lu_factor(Lower *lo, const Call *c, Value **out)
{
    const int64_t axis = 2;
    Value   *a = as_one_batch(lo, p2o_arg_value(lo, &c->args[0], DT_F32));
    Factored f = factored(lo, a);
    out[0] = as_batches(lo, f.lu, c, 0);
    out[1] = as_batches(lo, plus_num(lo, f.pivots, 1), c, 1);
    if (nouts(c) < 3 || !c->outs[2])
        return;
    Dim    k = size_at(f.pivots, 1);
    Value *square = slice_axis(lo, upper_factor(lo, f.lu), 2, p2o_dim_int(lo->dims, 0), k, 1);
    Value *diagonal = reduce(lo, ONNX_ReduceSum, emit(lo, ONNX_Mul, square, identity_matrix(lo, k)),
                             &axis, 1, false);
    out[2] = first_bad(lo, emit(lo, ONNX_Equal, diagonal, NUM(0)), out_shape(c, 2));
}

/* One pivot for each row or column, of the same batch. */
static bool must_be_pivots(Infer *in, const Call *c, const char *name, Type lu)
{
    Type p = type_arg(c, name);
    if (p.dtype != DT_I32 || p.shape.rank != lu.shape.rank - 1) {
        rule_fail(in, "pivots: %s of rank %d", p2o_dtype_torch(p.dtype), p.shape.rank);
        return false;
    }
    for (int i = 0; i + 2 < lu.shape.rank; i++)
        if (!must_equal(in, c, p.shape.at[i], lu.shape.at[i], "pivots"))
            return false;
    return must_equal(in, c, dim_at(p.shape, -1), shorter(in->dims, lu.shape), "pivots");
}

static void shape_lu(Infer *in, const Call *c)
{
    Type  x = p2o_arg_type(&c->args[0]);
    if (!must_be_matrices(in, x) || (names_arg(c, "pivot") && !must_pivot(in, c)) ||
        (names_arg(c, "LU_pivots") && !must_be_pivots(in, c, "LU_pivots", x)))
        return;
    Shape batch = batch_of(x.shape);
    Dim   m = dim_at(x.shape, -2), n = dim_at(x.shape, -1), k = shorter(in->dims, x.shape),
        none = int_dim(in, 0);
    Shape empty = { 1, p2o_shape_copy(in->arena, (Shape){ 1, &none }, 0) };
    bool  unpacks = names_arg(c, "LU_pivots");
    bool  data = !unpacks || bool_arg(c, "unpack_data"),
         pivots = !unpacks || bool_arg(c, "unpack_pivots");
    set_out(in, c, 0, x.dtype, pivots ? matrices_of(in, batch, m, m) : empty);
    set_out(in, c, 1, x.dtype, data ? matrices_of(in, batch, m, k) : empty);
    set_out(in, c, 2, x.dtype, data ? matrices_of(in, batch, k, n) : empty);
}

static void unpacked(Lower *lo, const Call *c, Factored f, Value **out)
{
    for (int i = 0; i < 3; i++)
        if (out_shape(c, i).rank == 1 && dim_is(out_shape(c, i).at[0], 0))
            out[i] = full(lo, out_shape(c, i), out_dtype(c, i), 0);
    Dim m = size_at(f.lu, 1);
    if (!out[0])
        out[0] = as_batches(lo, permutation_matrix(lo, permutation(lo, f.pivots, m), m), c, 0);
    if (!out[1])
        out[1] = as_batches(lo, lower_factor(lo, f.lu), c, 1);
    if (!out[2])
        out[2] = as_batches(lo, upper_factor(lo, f.lu), c, 2);
}

static void lower_lu(Lower *lo, const Call *c, Value **out)
{
    unpacked(lo, c, factored(lo, as_one_batch(lo, tensor_arg(lo, c, "A"))), out);
}

/* LAPACK's pivots, counted from 1, as 0-based ones of one batch. */
static Value *pivots_of(Lower *lo, Value *pivots, Dim all)
{
    Value *x =
        reshape(lo, cast(lo, pivots, DT_I64), shape_of(lo, 2, (Dim[]){ all, size_at(pivots, -1) }));
    return plus_num(lo, x, -1);
}

static void lower_lu_unpack(Lower *lo, const Call *c, Value **out)
{
    Value *lu = as_one_batch(lo, tensor_arg(lo, c, "LU_data"));
    unpacked(lo, c, (Factored){ lu, pivots_of(lo, tensor_arg(lo, c, "LU_pivots"), size_at(lu, 0)) },
             out);
}

/* Which of the two spellings. */
static bool is_old_solve(const Call *c) { return names_arg(c, "LU_data"); }

static void shape_lu_solve(Infer *in, const Call *c)
{
    Type lu = type_arg(c, is_old_solve(c) ? "LU_data" : "LU"),
         b = type_arg(c, is_old_solve(c) ? "self" : "B");
    bool left = is_old_solve(c) || bool_arg(c, "left");
    if (!must_be_squares(in, c, lu) ||
        !must_be_pivots(in, c, is_old_solve(c) ? "LU_pivots" : "pivots", lu))
        return;
    if (b.shape.rank < 2 || b.dtype != lu.dtype) {
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(b.dtype), b.shape.rank);
        return;
    }
    if (must_equal(in, c, dim_at(b.shape, left ? -2 : -1), dim_at(lu.shape, -1),
                   "size of the systems"))
        set_out(in, c, 0, b.dtype,
                matrices_of(in, broadcast(in, c, batch_of(lu.shape), batch_of(b.shape)),
                            dim_at(b.shape, -2), dim_at(b.shape, -1)));
}

/* P l u x = b, or its transpose u' l' P' x = b; x a = b is a' x' = b'. */
static Value *lower_lu_solve(Lower *lo, const Call *c)
{
    bool   old = is_old_solve(c), left = old || bool_arg(c, "left");
    bool   turned = (!old && bool_arg(c, "adjoint")) == left;
    Value *lu = tensor_arg(lo, c, old ? "LU_data" : "LU"),
          *b = tensor_arg(lo, c, old ? "self" : "B");
    Value *pivots = tensor_arg(lo, c, old ? "LU_pivots" : "pivots");
    Systems s = systems_of(lo, lu, left ? b : swap_last_two(lo, b), true);
    Shape  batch = slice_shape(s.shape, 0, s.shape.rank - 2);
    Dim   *wide = p2o_shape_copy(lo->arena, batch, 1);
    wide[batch.rank] = size_at(pivots, -1);
    pivots = pivots_of(lo, expand(lo, pivots, (Shape){ batch.rank + 1, wide }), size_at(s.a, 0));
    Value *matrix =
              permutation_matrix(lo, permutation(lo, pivots, size_at(s.a, 1)), size_at(s.a, 1)),
          *x;
    if (turned) {
        x = triangular_solution(lo, swap_last_two(lo, s.a), s.b, false, false);
        x = product_of(lo, matrix, triangular_solution(lo, swap_last_two(lo, s.a), x, true, true));
    } else {
        x = triangular_solution(lo, s.a, product_of(lo, swap_last_two(lo, matrix), s.b), false,
                                true);
        x = triangular_solution(lo, s.a, x, true, false);
    }
    x = reshape(lo, x, s.shape);
    return reshape(lo, cast(lo, left ? x : swap_last_two(lo, x), out_dtype(c, 0)), out_shape(c, 0));
}

/* QR */

typedef struct Reflections {
    Value *a;   /* [all, m, n]: r and, below the diagonal, the vectors without their leading 1 */
    Value *tau; /* [all, k] */
} Reflections;

static Value *sum_along(Lower *lo, Value *x, int64_t axis)
{
    return reduce(lo, ONNX_ReduceSum, x, &axis, 1, false);
}

/* x - scale v (v' x), all of one batch: v [all, m], x [all, m, n], scale [all, 1, 1]. */
static Value *reflected(Lower *lo, Value *x, Value *v, Value *scale)
{
    Value *column = unsqueeze(lo, v, 2);
    Value *along = product_of(lo, unsqueeze(lo, v, 1), x);
    return emit(lo, ONNX_Sub, x, emit(lo, ONNX_Mul, emit(lo, ONNX_Mul, scale, column), along));
}

/* Column k below the diagonal is turned onto -sign(a) |column| of its first element a.  One that is
 * 0 already below a is left as it is, with tau 0. */
static Reflections reflections(Lower *lo, Value *a)
{
    Dim    k_ = shorter(lo->dims, a->shape);
    Value *rows = iota(lo, size_at(a, 1)), *columns = iota(lo, size_at(a, 2)),
          *places = iota(lo, k_);
    Value *count = dim_scalar(lo, k_), *zero = NUM(0), *one = NUM(1), *out[2];
    Value *none = full(lo, shape_of(lo, 2, (Dim[]){ size_at(a, 0), k_ }), DT_F64, 0);
    Rounds r = open_rounds(lo, "column");
    Value *k = r.round, *x = round_state(&r, a), *tau = round_state(&r, none);
    Value *column = gather_along(lo, x, 2, k),
          *first = unsqueeze(lo, gather_along(lo, column, 1, k), 1);
    Value *below = emit(lo, ONNX_Greater, rows, k), *rest = choose(lo, below, column, zero);
    Value *squares = unsqueeze(lo, sum_along(lo, emit(lo, ONNX_Mul, rest, rest), 1), 1);
    Value *done = emit(lo, ONNX_Equal, squares, zero);
    Value *norm =
        emit(lo, ONNX_Sqrt, emit(lo, ONNX_Add, squares, emit(lo, ONNX_Mul, first, first)));
    Value *to = choose(lo, emit(lo, ONNX_Less, first, zero), norm, emit(lo, ONNX_Neg, norm));
    to = choose(lo, done, one, to);
    Value *scale = choose(lo, done, zero, emit(lo, ONNX_Div, emit(lo, ONNX_Sub, to, first), to));
    Value *v = emit(lo, ONNX_Div, rest, choose(lo, done, one, emit(lo, ONNX_Sub, first, to)));
    v = choose(lo, emit(lo, ONNX_Equal, rows, k), one, v);
    Value *turned = reflected(lo, x, v, unsqueeze(lo, scale, 2));
    /* Of column k: above, the new diagonal, the vector. */
    Value *kept = choose(lo, below, v, column);
    kept = choose(lo, emit(lo, ONNX_Equal, rows, k), choose(lo, done, first, to), kept);
    turned = choose(lo, emit(lo, ONNX_Equal, columns, k), unsqueeze(lo, kept, 2), turned);
    x = choose(lo, emit(lo, ONNX_GreaterOrEqual, columns, k), turned, x);
    tau = choose(lo, emit(lo, ONNX_Equal, places, k), scale, tau);
    close_rounds(lo, &r, count, NULL, NULL, (Value *[]){ x, tau }, out);
    return (Reflections){ out[0], out[1] };
}

/* All reflections on x [all, m, ..], the last one first: Q x.  Forward: Q' x. */
static Value *all_reflected(Lower *lo, Reflections q, Value *x, bool forward)
{
    Dim    n = size_at(q.tau, 1);
    Value *rows = iota(lo, size_at(q.a, 1)), *count = dim_scalar(lo, n), *out;
    Value *last = dim_scalar(lo, p2o_dim_sub(lo->dims, n, p2o_dim_int(lo->dims, 1)));
    Rounds r = open_rounds(lo, "reflection");
    Value *y = round_state(&r, x), *k = forward ? r.round : emit(lo, ONNX_Sub, last, r.round);
    Value *v = choose(lo, emit(lo, ONNX_Greater, rows, k), gather_along(lo, q.a, 2, k), NUM(0));
    v = choose(lo, emit(lo, ONNX_Equal, rows, k), NUM(1), v);
    Value *scale = unsqueeze(lo, unsqueeze(lo, gather_along(lo, q.tau, 1, k), 1), 2);
    y = reflected(lo, y, v, scale);
    close_rounds(lo, &r, count, NULL, NULL, &y, &out);
    return out;
}

/* The first n columns of Q. */
static Value *columns_of_q(Lower *lo, Reflections q, Dim n)
{
    Dim    m = size_at(q.a, 1);
    Value *one = cast(lo, emit(lo, ONNX_Equal, unsqueeze(lo, iota(lo, m), 1), iota(lo, n)), DT_F64);
    one = expand(lo, one, shape_of(lo, 3, (Dim[]){ size_at(q.a, 0), m, n }));
    return all_reflected(lo, q, one, false);
}

typedef enum QrMode { QR_REDUCED, QR_COMPLETE, QR_R } QrMode;

static QrMode qr_mode(const Call *c)
{
    if (!names_arg(c, "mode"))
        return bool_arg(c, "some") ? QR_REDUCED : QR_COMPLETE;
    return same(str_arg(c, "mode"), "r")          ? QR_R
           : same(str_arg(c, "mode"), "complete") ? QR_COMPLETE
                                                  : QR_REDUCED;
}

static void shape_qr(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (!must_be_matrices(in, x))
        return;
    Shape  batch = batch_of(x.shape);
    QrMode mode = qr_mode(c);
    Dim    m = dim_at(x.shape, -2), n = dim_at(x.shape, -1), none = int_dim(in, 0);
    Dim    k = mode == QR_COMPLETE ? m : shorter(in->dims, x.shape);
    Shape  empty = { 1, p2o_shape_copy(in->arena, (Shape){ 1, &none }, 0) };
    set_out(in, c, 0, x.dtype, mode == QR_R ? empty : matrices_of(in, batch, m, k));
    set_out(in, c, 1, x.dtype, matrices_of(in, batch, k, n));
}

static void lower_qr(Lower *lo, const Call *c, Value **out)
{
    Reflections q = reflections(lo, as_one_batch(lo, p2o_arg_value(lo, &c->args[0], DT_F32)));
    Dim    k = dim_at(out_shape(c, 1), -2);
    Value *r = slice_axis(lo, q.a, 1, p2o_dim_int(lo->dims, 0), k, 1);
    r = choose(lo, below_diagonal(lo, k, size_at(q.a, 2)), NUM(0), r);
    out[1] = as_batches(lo, r, c, 1);
    if (qr_mode(c) == QR_R)
        out[0] = full(lo, out_shape(c, 0), out_dtype(c, 0), 0);
    else if (c->outs[0])
        out[0] = as_batches(lo, columns_of_q(lo, q, k), c, 0);
}

static void shape_geqrf(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!must_be_matrices(in, x))
        return;
    set_out(in, c, 0, x.dtype, x.shape);
    set_out(in, c, 1, x.dtype, vectors_of(in, batch_of(x.shape), shorter(in->dims, x.shape)));
}

static void lower_geqrf(Lower *lo, const Call *c, Value **out)
{
    Reflections q = reflections(lo, as_one_batch(lo, tensor_arg(lo, c, "self")));
    out[0] = as_batches(lo, q.a, c, 0);
    out[1] = as_batches(lo, q.tau, c, 1);
}

/* The vectors and tau, the first two arguments. */
static Reflections reflections_arg(Lower *lo, const Call *c)
{
    Value *a = as_one_batch(lo, p2o_arg_value(lo, &c->args[0], DT_F32)),
          *tau = p2o_arg_value(lo, &c->args[1], DT_F32);
    Shape  s = shape_of(lo, 2, (Dim[]){ size_at(a, 0), size_at(tau, -1) });
    return (Reflections){ a, reshape(lo, cast(lo, tau, DT_F64), s) };
}

/* tau is of the vectors' batch. */
static bool must_be_reflections(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]), tau = p2o_arg_type(&c->args[1]);
    if (!must_be_matrices(in, x))
        return false;
    if (tau.shape.rank != x.shape.rank - 1 || tau.dtype != x.dtype) {
        rule_fail(in, "tau: %s of rank %d", p2o_dtype_torch(tau.dtype), tau.shape.rank);
        return false;
    }
    for (int i = 0; i + 2 < x.shape.rank; i++)
        if (!must_equal(in, c, tau.shape.at[i], x.shape.at[i], "batch of tau"))
            return false;
    return true;
}

static void shape_householder(Infer *in, const Call *c)
{
    if (must_be_reflections(in, c))
        set_out(in, c, 0, p2o_arg_type(&c->args[0]).dtype, p2o_arg_type(&c->args[0]).shape);
}

static Value *lower_householder(Lower *lo, const Call *c)
{
    Reflections q = reflections_arg(lo, c);
    return as_batches(lo, columns_of_q(lo, q, size_at(q.a, 2)), c, 0);
}

static void shape_ormqr(Infer *in, const Call *c)
{
    Type a = type_arg(c, "self"), x = type_arg(c, "input3");
    if (!must_be_reflections(in, c) || !must_be_matrices(in, x))
        return;
    if (x.shape.rank != a.shape.rank) {
        rule_fail(in, "matrices of rank %d for Q of rank %d", x.shape.rank, a.shape.rank);
        return;
    }
    for (int i = 0; i + 2 < x.shape.rank; i++)
        if (!must_equal(in, c, x.shape.at[i], a.shape.at[i], "batch"))
            return;
    if (must_equal(in, c, dim_at(x.shape, bool_arg(c, "left") ? -2 : -1), dim_at(a.shape, -2),
                   "size of Q"))
        set_out(in, c, 0, x.dtype, x.shape);
}

/* Q x or Q' x; x Q is (Q' x')'. */
static Value *lower_ormqr(Lower *lo, const Call *c)
{
    bool   left = bool_arg(c, "left"), turned = bool_arg(c, "transpose");
    Value *x = as_one_batch(lo, tensor_arg(lo, c, "input3"));
    x = all_reflected(lo, reflections_arg(lo, c), left ? x : swap_last_two(lo, x), turned == left);
    return as_batches(lo, left ? x : swap_last_two(lo, x), c, 0);
}

/* The exponential */

static void shape_matrix_exp(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (x.dtype == DT_F16 || x.dtype == DT_BF16)
        rule_unsupported(in, "%s, in which PyTorch overflows on the way", p2o_dtype_torch(x.dtype));
    else if (must_be_squares(in, c, x))
        set_out(in, c, 0, x.dtype, x.shape);
}

/* exp(a / 2^s) by its series, with the norm of a / 2^s at most 1/2, squared s times; each matrix
 * has its s. */
static Value *lower_matrix_exp(Lower *lo, const Call *c)
{
    const int64_t both[] = { 1, 2 }, all = 0;
    Value        *a = as_one_batch(lo, tensor_arg(lo, c, "self")),
          *one = identity_matrix(lo, size_at(a, 1)), *out;
    Value *norm =
        reduce(lo, ONNX_ReduceMax, reduce(lo, ONNX_ReduceL1, a, &both[0], 1, true), both, 2, true);
    Value *log = emit(lo, ONNX_Log, emit(lo, ONNX_Max, norm, NUM(0.5)));
    Value *s = emit(lo, ONNX_Ceil, times_num(lo, log, 1.44269504088896340736));
    s = emit(lo, ONNX_Min, plus_num(lo, s, 1), NUM(1100));
    a = emit(lo, ONNX_Mul, a, emit(lo, ONNX_Pow, NUM(2), emit(lo, ONNX_Neg, s)));
    Value *sum = expand(lo, one, a->shape);
    for (int i = 15; i >= 1; i--)                       /* 1 + a / i (...) */
        sum = emit(lo, ONNX_Add, one, product_of(lo, times_num(lo, a, 1.0 / i), sum));
    Value *most =
        emit(lo, ONNX_Max, reduce(lo, ONNX_ReduceMax, flat(lo, s), &all, 1, false), NUM(0));
    Value *count = cast(lo, most, DT_I64);
    Rounds r = open_rounds(lo, "square");
    Value *x = round_state(&r, sum), *more = emit(lo, ONNX_Less, cast(lo, r.round, DT_F64), s);
    x = choose(lo, more, product_of(lo, x, x), x);
    close_rounds(lo, &r, count, NULL, NULL, &x, &out);
    return as_batches(lo, out, c, 0);
}

#define NO_PIVOT .limits = "pivot=False"
#define PLU      "(Tensor P, Tensor L, Tensor U)"

const AtenOp p2o_ops_factor[] = {
    { "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
      shape_lu_factor, .lower_many = lower_lu_factor, NO_PIVOT },
    { "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
      shape_lu_factor, .lower_many = lower_lu_factor, NO_PIVOT },
    { "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
      shape_lu_factor, .lower_many = lower_lu_factor, NO_PIVOT },
    { "linalg_lu(Tensor A, *, bool pivot=True) -> " PLU, shape_lu, .lower_many = lower_lu,
      NO_PIVOT },
    { "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
      "bool unpack_pivots=True) -> " PLU,
      shape_lu, .lower_many = lower_lu_unpack },
    { "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
      shape_lu_solve, .lower = lower_lu_solve },
    { "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", shape_lu_solve,
      .lower = lower_lu_solve },
    { "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)", shape_qr,
      .lower_many = lower_qr },
    { "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", shape_qr, .lower_many = lower_qr },
    { "geqrf(Tensor self) -> (Tensor a, Tensor tau)", shape_geqrf, .lower_many = lower_geqrf },
    { "linalg_householder_product(Tensor input, Tensor tau) -> Tensor", shape_householder,
      .lower = lower_householder },
    { "orgqr(Tensor self, Tensor input2) -> Tensor", shape_householder,
      .lower = lower_householder },
    { "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
      shape_ormqr, .lower = lower_ormqr },
    { "matrix_exp(Tensor self) -> Tensor", shape_matrix_exp, .lower = lower_matrix_exp,
      .limits = "half types" },
    { "linalg_matrix_exp(Tensor self) -> Tensor", shape_matrix_exp, .lower = lower_matrix_exp,
      .limits = "half types" },
    { 0 },
};
