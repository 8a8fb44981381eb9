/* Linear systems, inverses, determinants and Cholesky factors.
 *
 * ONNX has none of these but Det for float32.  Elimination after Gauss and Jordan with the largest
 * pivot of each column is a Loop over the columns, all matrices of a batch at once; it runs in
 * float64, which leaves results at least as exact as PyTorch's.  Factors that only a later solve
 * would need are left out.  Singular values and eigenvalues are not done. */
#include "aten/matrix.h"

#include <math.h>

bool must_be_squares(Infer *in, const Call *c, Type x)
{
    if (x.shape.rank < 2 || !is_float(x.dtype)) {
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(x.dtype), x.shape.rank);
        return false;
    }
    return must_equal(in, c, dim_at(x.shape, -2), dim_at(x.shape, -1), "sides of a square matrix");
}

Shape matrices_of(Infer *in, Shape batch, Dim rows, Dim columns)
{
    Dim *at = p2o_shape_copy(in->arena, batch, 2);
    at[batch.rank] = rows;
    at[batch.rank + 1] = columns;
    return (Shape){ batch.rank + 2, at };
}

Shape shape_of(Lower *lo, int n, const Dim *at)
{
    return (Shape){ n, p2o_shape_copy(lo->arena, (Shape){ n, at }, 0) };
}

Value *as_one_batch(Lower *lo, Value *x)
{
    Dim all = p2o_shape_product(lo->dims, x->shape, 0, rank(x) - 2);
    return reshape(lo, cast(lo, x, DT_F64),
                   shape_of(lo, 3, (Dim[]){ all, size_at(x, -2), size_at(x, -1) }));
}

Value *as_batches(Lower *lo, Value *x, const Call *c, int out)
{
    return reshape(lo, cast(lo, x, out_dtype(c, out)), out_shape(c, out));
}

Value *gather_along(Lower *lo, Value *x, int axis, Value *i)
{
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", axis)), x, i);
}

/* One column: the row with its largest pivot changes places with row k, is divided by the pivot and
 * taken from all others.  Returns the matrix; *pivot gets its sign turned by the change. */
static Value *eliminate_column(Lower *lo, Value *a, Value *k, Value *rows, Value **pivot)
{
    Value *zero = num(lo, DT_F64, 0);
    Value *left = choose(lo, emit(lo, ONNX_GreaterOrEqual, rows, k),
                         emit(lo, ONNX_Abs, gather_along(lo, a, 2, k)), num(lo, DT_F64, -1));
    Value *top =
        emit_with(lo, ONNX_ArgMax, ATTRS(attr_int("axis", 1), attr_int("keepdims", 1)), left);
    Value *best = emit_with(lo, ONNX_GatherND, ATTRS(attr_int("batch_dims", 1)), a, top);
    Value *here = gather_along(lo, a, 1, k), *value = gather_along(lo, best, 1, k);
    Value *nonzero = choose(lo, emit(lo, ONNX_Equal, value, zero), num(lo, DT_F64, 1), value);
    Value *row = unsqueeze(lo, emit(lo, ONNX_Div, best, unsqueeze(lo, nonzero, 1)), 1);
    a = choose(lo, unsqueeze(lo, emit(lo, ONNX_Equal, rows, top), 2), unsqueeze(lo, here, 1), a);
    Value *factor = unsqueeze(lo, gather_along(lo, a, 2, k), 2);
    a = emit(lo, ONNX_Sub, a, emit(lo, ONNX_Mul, factor, row));
    *pivot =
        choose(lo, emit(lo, ONNX_Equal, squeeze(lo, top, 1), k), value, emit(lo, ONNX_Neg, value));
    return choose(lo, unsqueeze(lo, emit(lo, ONNX_Equal, rows, k), 1), row, a);
}

typedef struct Eliminated {
    Value *matrix;  /* [batch, n, width]: the identity, then what was beside it times the inverse */
    Value *pivots;  /* [batch, n]; their product is the determinant */
} Eliminated;

/* (Results stacked by the Loop itself would lose their sizes when n is 0.) */
static Eliminated eliminate(Lower *lo, Value *a)
{
    Dim    n = size_at(a, 1);
    Value *rows = iota(lo, n), *count = dim_scalar(lo, n),
          *none = full(lo, slice_shape(a->shape, 0, 2), DT_F64, 0);
    Value *pivot, *out[2];
    Rounds r = open_rounds(lo, "column");
    Value *inner = round_state(&r, a), *pivots = round_state(&r, none);
    Value *next = eliminate_column(lo, inner, r.round, rows, &pivot);
    pivots = choose(lo, emit(lo, ONNX_Equal, rows, r.round), unsqueeze(lo, pivot, 1), pivots);
    close_rounds(lo, &r, count, NULL, NULL, (Value *[]){ next, pivots }, out);
    return (Eliminated){ out[0], out[1] };
}

Value *identity_matrix(Lower *lo, Dim n)
{
    Value *i = iota(lo, n);
    return cast(lo, emit(lo, ONNX_Equal, unsqueeze(lo, i, 1), i), DT_F64);
}

/* The inverse of a times b, both [batch, n, ..]. */
static Eliminated solve(Lower *lo, Value *a, Value *b)
{
    Eliminated e = eliminate(lo, concat(lo, 2, (Value *[]){ a, b }, 2));
    e.matrix = slice_axis(lo, e.matrix, 2, size_at(a, 1), NULL, 1);
    return e;
}

Value *first_bad(Lower *lo, Value *bad, Shape batch)
{
    const int64_t axis = 1;
    Dim    one = p2o_dim_int(lo->dims, 1);
    Value *none = p2o_build_int(lo->b, INT32_MAX);
    Value *place = emit(lo, ONNX_Add, iota(lo, size_at(bad, 1)), p2o_build_int(lo->b, 1));
    Value *found = choose(lo, bad, place, none);
    Value *end = full(lo, shape_of(lo, 2, (Dim[]){ size_at(bad, 0), one }), DT_I64, INT32_MAX);
    found = concat(lo, 1, (Value *[]){ found, end }, 2);
    found = reduce(lo, ONNX_ReduceMin, found, &axis, 1, false);
    found = choose(lo, emit(lo, ONNX_Equal, found, none), p2o_build_int(lo->b, 0), found);
    return reshape(lo, cast(lo, found, DT_I32), batch);
}

static Value *zero_pivot(Lower *lo, Value *pivots, Shape batch)
{
    return first_bad(lo, emit(lo, ONNX_Equal, pivots, num(lo, DT_F64, 0)), batch);
}

Value *inverse_of(Lower *lo, Value *a)
{
    return solve(lo, a, expand(lo, identity_matrix(lo, size_at(a, 1)), a->shape)).matrix;
}

static void shape_inverse(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (!must_be_squares(in, c, x))
        return;
    set_out(in, c, 0, x.dtype, x.shape);
    if (nouts(c) > 1)
        set_out(in, c, 1, DT_I32, batch_of(x.shape));
}

static void lower_inverse(Lower *lo, const Call *c, Value **out)
{
    Value *x = p2o_arg_value(lo, &c->args[0], DT_F32), *a = as_one_batch(lo, x);
    Value *one = expand(lo, identity_matrix(lo, size_at(a, 1)), a->shape);
    Eliminated e = solve(lo, a, one);
    out[0] = as_batches(lo, e.matrix, c, 0);
    if (nouts(c) > 1 && c->outs[1])
        out[1] = zero_pivot(lo, e.pivots, out_shape(c, 1));
}

/* B is a vector, or one for each matrix, when it lacks the last dim of what A's batch would
 * give. */
static bool is_vectors(Shape a, Shape b)
{
    if (b.rank == 1)
        return true;
    if (b.rank != a.rank - 1)
        return false;
    for (int i = 0; i < b.rank; i++)
        if (b.at[i] != a.at[i])
            return false;
    return true;
}

static void shape_solve(Infer *in, const Call *c)
{
    Type  a = type_arg(c, "A"), b = type_arg(c, "B");
    Shape s = b.shape;
    if (!must_be_squares(in, c, a))
        return;
    bool vectors = is_vectors(a.shape, s), left = bool_arg(c, "left");
    if (s.rank < 1 || b.dtype != a.dtype || (vectors && !left)) {
        rule_fail(in, "B: %s of rank %d", p2o_dtype_torch(b.dtype), s.rank);
        return;
    }
    if (!must_equal(in, c, dim_at(s, vectors || !left ? -1 : -2), dim_at(a.shape, -1),
                    "size of the systems"))
        return;
    Shape batch =
        broadcast(in, c, batch_of(a.shape), slice_shape(s, 0, s.rank - (vectors ? 1 : 2)));
    set_out(in, c, 0, a.dtype,
            concat_shapes(in, batch, slice_shape(s, s.rank - (vectors ? 1 : 2), s.rank)));
    if (nouts(c) > 1)
        set_out(in, c, nouts(c) - 1, DT_I32, batch_of(a.shape));
}

Systems systems_of(Lower *lo, Value *a, Value *b, bool left)
{
    Systems s;
    Shape   batch = joint_shape(lo, batch_of(a->shape), batch_of(b->shape));
    for (int i = 0; i < 2; i++) {
        Value *x = left ? (i ? b : a) : swap_last_two(lo, i ? b : a);
        Dim   *wide = p2o_shape_copy(lo->arena, batch, 2);
        wide[batch.rank] = size_at(x, -2);
        wide[batch.rank + 1] = size_at(x, -1);
        s.shape = (Shape){ batch.rank + 2, wide };
        *(i ? &s.b : &s.a) = as_one_batch(lo, expand(lo, x, s.shape));
    }
    return s;
}

static Value *solution_of(Lower *lo, const Call *c, const Systems *s, Value *x)
{
    Value *y = reshape(lo, x, s->shape);
    return reshape(lo, cast(lo, bool_arg(c, "left") ? y : swap_last_two(lo, y), out_dtype(c, 0)),
                   out_shape(c, 0));
}

static void lower_solve(Lower *lo, const Call *c, Value **out)
{
    Value  *a = tensor_arg(lo, c, "A"), *b = tensor_arg(lo, c, "B");
    bool    vectors = is_vectors(a->shape, b->shape);
    int     last = nouts(c) - 1;
    Systems s = systems_of(lo, a, vectors ? unsqueeze(lo, b, rank(b)) : b, bool_arg(c, "left"));
    Eliminated e = solve(lo, s.a, s.b);
    out[0] = solution_of(lo, c, &s, e.matrix);
    if (last < 1 || !c->outs[last])
        return;
    if (p2o_dim_eq(lo->dims, size_at(e.pivots, 0), shape_nelem(lo->dims, out_shape(c, last))) !=
        YES)
        unsupported(lo, c, "info where A's batch is broadcast");
    else
        out[last] = zero_pivot(lo, e.pivots, out_shape(c, last));
}

static void shape_solve_triangular(Infer *in, const Call *c)
{
    Type a = type_arg(c, "self"), b = type_arg(c, "B");
    bool left = bool_arg(c, "left");
    if (!must_be_squares(in, c, a))
        return;
    if (b.shape.rank < 2 || b.dtype != a.dtype) {
        rule_fail(in, "B: %s of rank %d", p2o_dtype_torch(b.dtype), b.shape.rank);
        return;
    }
    if (!must_equal(in, c, dim_at(b.shape, left ? -2 : -1), dim_at(a.shape, -1),
                    "size of the systems"))
        return;
    Shape batch = broadcast(in, c, batch_of(a.shape), batch_of(b.shape));
    set_out(in, c, 0, a.dtype,
            concat_shapes(in, batch, slice_shape(b.shape, b.shape.rank - 2, b.shape.rank)));
}

/* Row by row, from the one that has a single unknown: it is divided by the diagonal, then taken
 * from the rows to come. */
Value *triangular_solution(Lower *lo, Value *a, Value *b, bool upper, bool unit)
{
    Dim    n = size_at(a, 1);
    Value *rows = iota(lo, n), *count = dim_scalar(lo, n), *out;
    Value *last = dim_scalar(lo, p2o_dim_sub(lo->dims, n, p2o_dim_int(lo->dims, 1)));
    Rounds r = open_rounds(lo, "row");
    Value *k = r.round, *x = round_state(&r, b);
    if (upper)
        k = emit(lo, ONNX_Sub, last, k);
    Value *column = gather_along(lo, a, 2, k), *row = gather_along(lo, x, 1, k);
    if (!unit)
        row = emit(lo, ONNX_Div, row, unsqueeze(lo, gather_along(lo, column, 1, k), 1));
    row = unsqueeze(lo, row, 1);
    Value *to_come = emit(lo, upper ? ONNX_Less : ONNX_Greater, rows, k);
    Value *rest = emit(lo, ONNX_Sub, x, emit(lo, ONNX_Mul, unsqueeze(lo, column, 2), row));
    x = choose(lo, unsqueeze(lo, to_come, 1), rest, x);
    x = choose(lo, unsqueeze(lo, emit(lo, ONNX_Equal, rows, k), 1), row, x);
    close_rounds(lo, &r, count, NULL, NULL, &x, &out);
    return out;
}

static Value *lower_solve_triangular(Lower *lo, const Call *c)
{
    bool    left = bool_arg(c, "left"), unit = bool_arg(c, "unitriangular");
    Systems s = systems_of(lo, tensor_arg(lo, c, "self"), tensor_arg(lo, c, "B"), left);
    return solution_of(lo, c, &s,
                       triangular_solution(lo, s.a, s.b, bool_arg(c, "upper") == left, unit));
}

/* det, slogdet (sign and logarithm of its size) and logdet.  What LU factors there are is left
 * out. */
static void shape_determinant(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    if (!must_be_squares(in, c, x))
        return;
    set_out(in, c, 0, x.dtype, batch_of(x.shape));
    if (p2o_str_ends(str_of(c->schema->key), "slogdet"))
        set_out(in, c, 1, x.dtype, batch_of(x.shape));
}

static Value *over_pivots(Lower *lo, const Call *c, OnnxOp op, Value *x)
{
    const int64_t axis = 1;
    return reshape(lo, cast(lo, reduce(lo, op, x, &axis, 1, false), out_dtype(c, 0)),
                   out_shape(c, 0));
}

static void lower_det(Lower *lo, const Call *c, Value **out)
{
    Value *x = p2o_arg_value(lo, &c->args[0], DT_F32);
    if (x->dtype == DT_F32)
        out[0] = emit(lo, ONNX_Det, x);
    else
        out[0] = over_pivots(lo, c, ONNX_ReduceProd, eliminate(lo, as_one_batch(lo, x)).pivots);
}

static Value *log_of_sizes(Lower *lo, const Call *c, Value *pivots)
{
    return over_pivots(lo, c, ONNX_ReduceSum, emit(lo, ONNX_Log, emit(lo, ONNX_Abs, pivots)));
}

static void lower_slogdet(Lower *lo, const Call *c, Value **out)
{
    Value *pivots = eliminate(lo, as_one_batch(lo, p2o_arg_value(lo, &c->args[0], DT_F32))).pivots;
    out[0] = over_pivots(lo, c, ONNX_ReduceProd, emit(lo, ONNX_Sign, pivots));
    out[1] = log_of_sizes(lo, c, pivots);
}

static Value *lower_logdet(Lower *lo, const Call *c)
{
    Value *pivots = eliminate(lo, as_one_batch(lo, tensor_arg(lo, c, "self"))).pivots;
    Value *sign = over_pivots(lo, c, ONNX_ReduceProd, emit(lo, ONNX_Sign, pivots));
    return choose(lo, emit(lo, ONNX_Less, sign, num(lo, sign->dtype, 0)), num(lo, sign->dtype, NAN),
                  log_of_sizes(lo, c, pivots));
}

static void shape_cholesky(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!must_be_squares(in, c, x))
        return;
    set_out(in, c, 0, x.dtype, x.shape);
    if (nouts(c) > 1)
        set_out(in, c, 1, DT_I32, batch_of(x.shape));
}

/* Column by column: l = a[k:, k] / sqrt(a[k, k]), then a - l l'.  Only the lower triangle is read.
 * A matrix that is not positive definite stops at the first column whose a[k, k] is not: it shows
 * what that was, and what was given from there on. */
static void lower_cholesky(Lower *lo, const Call *c, Value **out)
{
    const int64_t axis = 2;
    Value *x = tensor_arg(lo, c, "self"), *zero = num(lo, DT_F64, 0), *got[3];
    bool   upper = bool_arg(c, "upper");
    Value *a = as_one_batch(lo, upper ? swap_last_two(lo, x) : x), *rows = iota(lo, size_at(a, 1));
    Value *lower = choose(lo, emit(lo, ONNX_GreaterOrEqual, unsqueeze(lo, rows, 1), rows), a, zero);
    Value *count = dim_scalar(lo, size_at(a, 1));
    Value        *going =
        full(lo, shape_of(lo, 2, (Dim[]){ size_at(a, 0), p2o_dim_int(lo->dims, 1) }), DT_BOOL, 1);
    Rounds r = open_rounds(lo, "column");
    Value *k = r.round, *inner = round_state(&r, a), *factor = round_state(&r, lower),
          *goes = round_state(&r, going);
    Value *column = gather_along(lo, inner, 2, k),
          *pivot = unsqueeze(lo, gather_along(lo, column, 1, k), 1);
    Value *good = emit(lo, ONNX_And, goes, emit(lo, ONNX_Greater, pivot, zero)),
          *here = emit(lo, ONNX_Equal, rows, k);
    column = emit(lo, ONNX_Div, column,
                  emit(lo, ONNX_Sqrt, choose(lo, good, pivot, num(lo, DT_F64, 1))));
    column =
        choose(lo, emit(lo, ONNX_And, good, emit(lo, ONNX_GreaterOrEqual, rows, k)), column, zero);
    inner = emit(lo, ONNX_Sub, inner,
                 emit(lo, ONNX_Mul, unsqueeze(lo, column, 2), unsqueeze(lo, column, 1)));
    Value *given =
        choose(lo, emit(lo, ONNX_And, goes, here), pivot, gather_along(lo, factor, 2, k));
    column = choose(lo, good, column, given);
    factor = choose(lo, here, unsqueeze(lo, column, 2), factor);
    close_rounds(lo, &r, count, NULL, NULL, (Value *[]){ inner, factor, good }, got);
    out[0] = as_batches(lo, upper ? swap_last_two(lo, got[1]) : got[1], c, 0);
    if (nouts(c) < 2 || !c->outs[1])
        return;
    Value *diagonal = emit(lo, ONNX_Equal, unsqueeze(lo, rows, 1), rows);
    diagonal = choose(lo, diagonal, got[1], zero);
    diagonal = reduce(lo, ONNX_ReduceSum, diagonal, &axis, 1, false);
    Value *positive = emit(lo, ONNX_Greater, diagonal, zero);
    out[1] = first_bad(lo, emit(lo, ONNX_Not, positive), out_shape(c, 1));
}

static void shape_cholesky_solve(Infer *in, const Call *c)
{
    Type b = type_arg(c, "self"), l = type_arg(c, "input2");
    if (!must_be_squares(in, c, l))
        return;
    if (b.shape.rank < 2 || b.dtype != l.dtype) {
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(b.dtype), b.shape.rank);
        return;
    }
    if (must_equal(in, c, dim_at(b.shape, -2), dim_at(l.shape, -1), "size of the systems"))
        set_out(in, c, 0, b.dtype,
                matrices_of(in, broadcast(in, c, batch_of(l.shape), batch_of(b.shape)),
                            dim_at(b.shape, -2), dim_at(b.shape, -1)));
}

/* l l' x = b, or u' u x = b. */
static Value *by_cholesky(Lower *lo, Value *factor, Value *b, bool upper)
{
    Value *lower = upper ? swap_last_two(lo, factor) : factor;
    Value *y = triangular_solution(lo, lower, b, false, false);
    return triangular_solution(lo, swap_last_two(lo, lower), y, true, false);
}

static Value *lower_cholesky_solve(Lower *lo, const Call *c)
{
    Systems s = systems_of(lo, tensor_arg(lo, c, "input2"), tensor_arg(lo, c, "self"), true);
    return as_batches(lo, by_cholesky(lo, s.a, s.b, bool_arg(c, "upper")), c, 0);
}

static Value *lower_cholesky_inverse(Lower *lo, const Call *c)
{
    Value *factor = as_one_batch(lo, tensor_arg(lo, c, "self"));
    Value *one = expand(lo, identity_matrix(lo, size_at(factor, 1)), factor->shape);
    return as_batches(lo, by_cholesky(lo, factor, one, bool_arg(c, "upper")), c, 0);
}

static void shape_old_triangular(Infer *in, const Call *c)
{
    Type b = type_arg(c, "self"), a = type_arg(c, "A");
    if (!must_be_squares(in, c, a))
        return;
    if (b.shape.rank < 2 || b.dtype != a.dtype) {
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(b.dtype), b.shape.rank);
        return;
    }
    if (!must_equal(in, c, dim_at(b.shape, -2), dim_at(a.shape, -1), "size of the systems"))
        return;
    Shape batch = broadcast(in, c, batch_of(a.shape), batch_of(b.shape));
    set_out(in, c, 0, b.dtype, matrices_of(in, batch, dim_at(b.shape, -2), dim_at(b.shape, -1)));
    set_out(in, c, 1, a.dtype, matrices_of(in, batch, dim_at(a.shape, -2), dim_at(a.shape, -1)));
}

static void lower_old_triangular(Lower *lo, const Call *c, Value **out)
{
    Value  *a = tensor_arg(lo, c, "A");
    bool    turned = bool_arg(c, "transpose"), upper = bool_arg(c, "upper") != turned;
    Systems s = systems_of(lo, turned ? swap_last_two(lo, a) : a, tensor_arg(lo, c, "self"), true);
    out[0] = as_batches(lo, triangular_solution(lo, s.a, s.b, upper, bool_arg(c, "unitriangular")),
                        c, 0);
    out[1] = expand(lo, a, out_shape(c, 1));
}

/* A tensor as a matrix: the dims before `ind` against those from it on, which hold as many
 * elements. */
static void shape_tensorinv(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t ind = int_arg(c, "ind");
    int     n = x.shape.rank;
    if (ind < 1 || ind > n || !is_float(x.dtype)) {
        rule_fail(in, "ind %lld of rank %d", (long long)ind, n);
        return;
    }
    if (must_equal(in, c, p2o_shape_product(in->dims, x.shape, 0, (int)ind),
                   p2o_shape_product(in->dims, x.shape, (int)ind, n), "sides of a square matrix"))
        set_out(in, c, 0, x.dtype,
                concat_shapes(in, slice_shape(x.shape, (int)ind, n),
                              slice_shape(x.shape, 0, (int)ind)));
}

static Value *as_square(Lower *lo, Value *x, Dim n)
{
    return reshape(lo, cast(lo, x, DT_F64),
                   shape_of(lo, 3, (Dim[]){ p2o_dim_int(lo->dims, 1), n, n }));
}

static Value *lower_tensorinv(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Dim    n = p2o_shape_product(lo->dims, x->shape, 0, (int)int_arg(c, "ind"));
    return as_batches(lo, inverse_of(lo, as_square(lo, x, n)), c, 0);
}

/* The order in which the dims of self are taken: those named come last. */
static bool solve_order(const Call *c, int n, int64_t *order)
{
    int  k = 0, named = list_len(c, "dims"), at[MAX_RANK];
    bool last[MAX_RANK] = { false };
    for (int i = 0; i < named; i++) {
        if (i >= MAX_RANK || !p2o_wrap_dim(int_item(c, "dims", i), n, false, &at[i]) || last[at[i]])
            return false;
        last[at[i]] = true;
    }
    for (int i = 0; i < n; i++)
        if (!last[i])
            order[k++] = i;
    for (int i = 0; i < named; i++)
        order[k++] = at[i];
    return true;
}

static void shape_tensorsolve(Infer *in, const Call *c)
{
    Type    a = type_arg(c, "self"), b = type_arg(c, "other");
    int     n = a.shape.rank;
    int64_t order[MAX_RANK];
    if (!is_float(a.dtype) || b.dtype != a.dtype || b.shape.rank > n || !solve_order(c, n, order)) {
        rule_fail(in, "%s of rank %d for rank %d", p2o_dtype_torch(b.dtype), b.shape.rank, n);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, a.shape, 0);
    for (int i = 0; i < n; i++)
        at[i] = a.shape.at[order[i]];
    Shape rest = slice_shape((Shape){ n, at }, b.shape.rank, n);
    if (must_equal(in, c, shape_nelem(in->dims, b.shape), shape_nelem(in->dims, rest),
                   "sides of a square matrix") &&
        must_equal(in, c, shape_nelem(in->dims, b.shape),
                   p2o_shape_product(in->dims, (Shape){ n, at }, 0, b.shape.rank),
                   "size of the system"))
        set_out(in, c, 0, a.dtype, rest);
}

static Value *lower_tensorsolve(Lower *lo, const Call *c)
{
    Value  *a = tensor_arg(lo, c, "self"), *b = tensor_arg(lo, c, "other");
    int64_t order[MAX_RANK];
    Dim     one = p2o_dim_int(lo->dims, 1), n = shape_nelem(lo->dims, b->shape);
    solve_order(c, rank(a), order);
    b = reshape(lo, cast(lo, b, DT_F64), shape_of(lo, 3, (Dim[]){ one, n, one }));
    return as_batches(lo, solve(lo, as_square(lo, transpose(lo, a, order), n), b).matrix, c, 0);
}

const AtenOp p2o_ops_solve[] = {
    { "linalg_inv(Tensor A) -> Tensor", shape_inverse, .lower_many = lower_inverse },
    { "inverse(Tensor self) -> Tensor", shape_inverse, .lower_many = lower_inverse },
    { "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
      shape_inverse, .lower_many = lower_inverse },
    { "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", shape_solve,
      .lower_many = lower_solve, .limits = "no info where A's batch is broadcast" },
    { "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
      shape_solve, .lower_many = lower_solve, .limits = "no info where A's batch is broadcast" },
    { "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
      shape_solve, .lower_many = lower_solve, .limits = "no LU factors" },
    { "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
      shape_solve_triangular, .lower = lower_solve_triangular },
    { "det(Tensor self) -> Tensor", shape_determinant, .lower_many = lower_det },
    { "linalg_det(Tensor A) -> Tensor", shape_determinant, .lower_many = lower_det },
    { "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", shape_determinant,
      .lower_many = lower_det, .limits = "no LU factors" },
    { "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", shape_determinant,
      .lower_many = lower_slogdet },
    { "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", shape_determinant,
      .lower_many = lower_slogdet },
    { "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
      shape_determinant, .lower_many = lower_slogdet, .limits = "no LU factors" },
    { "logdet(Tensor self) -> Tensor", shape_determinant, .lower = lower_logdet },
    { "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", shape_cholesky,
      .lower_many = lower_cholesky },
    { "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
      shape_cholesky, .lower_many = lower_cholesky },
    { "cholesky(Tensor self, bool upper=False) -> Tensor", shape_cholesky,
      .lower_many = lower_cholesky },
    { "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
      shape_cholesky_solve, .lower = lower_cholesky_solve },
    { "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", shape_cholesky,
      .lower = lower_cholesky_inverse },
    { "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
      shape_old_triangular, .lower_many = lower_old_triangular },
    { "linalg_tensorinv(Tensor self, int ind=2) -> Tensor", shape_tensorinv,
      .lower = lower_tensorinv },
    { "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
      shape_tensorsolve, .lower = lower_tensorsolve },
    { 0 },
};
