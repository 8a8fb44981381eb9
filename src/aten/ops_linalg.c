/* Matrix products and norms.
 *
 * Products that ONNX has no operator for are written as an Einsum over labelled dims: an equation
 * is read, or made up, once for the rule and once for the lowering (Equation below).  Ellipses
 * become labels, since ONNX wants equal ranks behind them. */
#include "aten/matrix.h"

#include <math.h>

static bool must_be_ranks(Infer *in, const Call *c, const char *left, const char *right, int n)
{
    return must_rank(in, c, left, n) && must_rank(in, c, right, n);
}

/* PyTorch promotes no types in a product. */
static bool must_be_one_type(Infer *in, DType a, DType b)
{
    if (a == b)
        return true;
    rule_fail(in, "%s with %s", p2o_dtype_torch(a), p2o_dtype_torch(b));
    return false;
}

static void shape_linear(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input"), w = type_arg(c, "weight");
    int  nw = w.shape.rank;

    if (nw != 1 && nw != 2) {
        rule_fail(in, "weight: rank %d against 1 or 2", nw);
        return;
    }
    if (x.shape.rank == 0) {
        rule_fail(in, "input: rank 0");
        return;
    }
    if (!must_be_one_type(in, x.dtype, w.dtype) ||
        !must_equal(in, c, dim_at(x.shape, -1), dim_at(w.shape, -1), "input features"))
        return;
    set_out(in, c, 0, x.dtype, nw == 2 ? with_last(in, x.shape, dim_at(w.shape, 0))
                                       : slice_shape(x.shape, 0, x.shape.rank - 1));
}

/* y = x * transpose(w) + b.  Gemm takes matrices of floats only; other ranks broadcast. */
static Value *lower_linear(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input");
    Value *w = tensor_arg(lo, c, "weight");
    Value *b = tensor_arg(lo, c, "bias");       /* NULL when None */

    if (rank(x) == 2 && rank(w) == 2 && is_float(x->dtype))
        return emit_with(lo, ONNX_Gemm, ATTRS(attr_int("transB", 1)), x, w, b);
    Value *y = emit(lo, ONNX_MatMul, x, rank(w) == 2 ? swap_last_two(lo, w) : w);
    return b ? emit(lo, ONNX_Add, y, b) : y;
}

/* Vectors are rows on the left and columns on the right; the rest broadcasts. */
static void shape_matmul(Infer *in, const Call *c)
{
    Type  a = type_arg(c, "self"), b = type_arg(c, "other");
    int   na = a.shape.rank, nb = b.shape.rank;
    if (na == 0 || nb == 0) {
        rule_fail(in, "ranks %d and %d", na, nb);
        return;
    }
    if (!must_be_one_type(in, a.dtype, b.dtype) ||
        !must_equal(in, c, dim_at(a.shape, -1), dim_at(b.shape, nb == 1 ? 0 : -2), "inner sizes"))
        return;
    Shape s = broadcast(in, c, slice_shape(a.shape, 0, na > 2 ? na - 2 : 0),
                        slice_shape(b.shape, 0, nb > 2 ? nb - 2 : 0));
    if (na > 1)
        s = insert_dim(in, s, s.rank, dim_at(a.shape, -2));
    if (nb > 1)
        s = insert_dim(in, s, s.rank, dim_at(b.shape, -1));
    set_out(in, c, 0, a.dtype, s);
}

/* The product of the first two arguments; an out_dtype is what is computed in. */
/* Over no elements the sum is 0; ONNX Runtime leaves it as the memory was where it fuses, and
 * broadcasts no batch. */
static Value *lower_matmul(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *a = tensor_as(lo, c, c->schema->args[0].name, t),
          *b = tensor_as(lo, c, c->schema->args[1].name, t);
    if (dim_is(size_at(a, rank(a) - 1), 0))
        return full(lo, out_shape(c, 0), t, 0);
    return emit(lo, ONNX_MatMul, a, b);
}

static DType product_dtype(const Call *c, DType t)
{
    return p2o_schema_find(c->schema, "out_dtype") < 0 ? t : dtype_arg(c, "out_dtype", t);
}

/* The shape of a matrix product of two arguments of rank 2, or of rank 3 with a batch. */
static bool product_shape(Infer *in, const Call *c, const char *left, const char *right, int n,
                          Shape *s)
{
    Type a = type_arg(c, left), b = type_arg(c, right);
    if (!must_be_ranks(in, c, left, right, n) || !must_be_one_type(in, a.dtype, b.dtype) ||
        (n == 3 && !must_equal(in, c, a.shape.at[0], b.shape.at[0], "batch sizes")) ||
        !must_equal(in, c, a.shape.at[n - 1], b.shape.at[n - 2], "inner sizes"))
        return false;
    *s = with_last(in, a.shape, b.shape.at[n - 1]);
    return true;
}

static void shape_mm(Infer *in, const Call *c)
{
    Shape s;
    if (product_shape(in, c, "self", "mat2", 2, &s))
        set_out(in, c, 0, product_dtype(c, type_arg(c, "self").dtype), s);
}

static void shape_bmm(Infer *in, const Call *c)
{
    Shape s;
    if (product_shape(in, c, "self", "mat2", 3, &s))
        set_out(in, c, 0, product_dtype(c, type_arg(c, "self").dtype), s);
}

static void shape_mv(Infer *in, const Call *c)
{
    Type a = type_arg(c, "self"), b = type_arg(c, "vec");
    if (must_rank(in, c, "self", 2) && must_rank(in, c, "vec", 1) &&
        must_be_one_type(in, a.dtype, b.dtype) &&
        must_equal(in, c, a.shape.at[1], b.shape.at[0], "inner sizes"))
        set_out(in, c, 0, a.dtype, slice_shape(a.shape, 0, 1));
}

static void shape_dot(Infer *in, const Call *c)
{
    Type a = p2o_arg_type(&c->args[0]), b = p2o_arg_type(&c->args[1]);
    if (must_be_ranks(in, c, c->schema->args[0].name, c->schema->args[1].name, 1) &&
        must_be_one_type(in, a.dtype, b.dtype) &&
        must_equal(in, c, a.shape.at[0], b.shape.at[0], "inner sizes"))
        set_out(in, c, 0, a.dtype, (Shape){ 0, NULL });
}

/* beta * self + alpha * product: self is broadcast to the product's shape, which may not grow. */
static void set_sum(Infer *in, const Call *c, DType t, Shape product)
{
    Shape s = broadcast(in, c, shape_arg(c, "self"), product);
    if (s.rank != product.rank) {
        rule_fail(in, "self: rank %d against at most %d", s.rank, product.rank);
        return;
    }
    for (int i = 0; i < s.rank; i++)
        if (!must_equal(in, c, s.at[i], product.at[i], "sizes of self"))
            return;
    set_out(in, c, 0, t, product);
}

static void shape_addmm(Infer *in, const Call *c)
{
    Shape s;
    if (product_shape(in, c, "mat1", "mat2", 2, &s))
        set_sum(in, c, product_dtype(c, type_arg(c, "mat1").dtype), s);
}

static void shape_baddbmm(Infer *in, const Call *c)
{
    Shape s;
    if (product_shape(in, c, "batch1", "batch2", 3, &s))
        set_sum(in, c, product_dtype(c, type_arg(c, "batch1").dtype), s);
}

static void shape_addbmm(Infer *in, const Call *c)
{
    Shape s;
    if (product_shape(in, c, "batch1", "batch2", 3, &s))
        set_sum(in, c, type_arg(c, "batch1").dtype, slice_shape(s, 1, 3));
}

static void shape_addmv(Infer *in, const Call *c)
{
    Type a = type_arg(c, "mat"), b = type_arg(c, "vec");
    if (must_rank(in, c, "mat", 2) && must_rank(in, c, "vec", 1) &&
        must_be_one_type(in, a.dtype, b.dtype) &&
        must_equal(in, c, a.shape.at[1], b.shape.at[0], "inner sizes"))
        set_sum(in, c, a.dtype, slice_shape(a.shape, 0, 1));
}

static Shape outer_shape(Infer *in, Shape a, Shape b) { return concat_shapes(in, a, b); }

static void shape_addr(Infer *in, const Call *c)
{
    if (must_be_ranks(in, c, "vec1", "vec2", 1))
        set_sum(in, c, PROMOTE(c, "self", "vec1", "vec2"),
                outer_shape(in, shape_arg(c, "vec1"), shape_arg(c, "vec2")));
}

static Value *times_number(Lower *lo, const Call *c, Value *x, const char *name, DType t)
{
    double f;
    if (p2o_number_is_const(p2o_call_arg(c, name), &f) && f == 1)
        return x;
    return emit(lo, t == DT_BOOL ? ONNX_And : ONNX_Mul, x, number_arg(lo, c, name, t));
}

static bool is_number_zero(const Call *c, const char *name)
{
    double f;
    return p2o_number_is_const(p2o_call_arg(c, name), &f) && f == 0;
}

/* beta * self + alpha * product; with beta 0 self is not read, not even its NaN. */
static Value *add_product(Lower *lo, const Call *c, Value *product)
{
    DType  t = out_dtype(c, 0);
    Value *y = times_number(lo, c, product, "alpha", t);
    if (is_number_zero(c, "beta"))
        return y;
    return emit(lo, t == DT_BOOL ? ONNX_Or : ONNX_Add,
                times_number(lo, c, tensor_as(lo, c, "self", t), "beta", t), y);
}

/* A number that a float attribute of a node computing in t can hold. */
static bool fits_attribute(const Call *c, const char *name, DType t, double *f)
{
    return p2o_number_is_const(p2o_call_arg(c, name), f) &&
           (t != DT_F64 || (double)(float)*f == *f);
}

/* Gemm, but ONNX Runtime's forgets beta when the inner size is 0. */
static Value *lower_addmm(Lower *lo, const Call *c)
{
    double alpha, beta;
    DType  t = out_dtype(c, 0);
    Value *a = tensor_as(lo, c, "mat1", t), *b = tensor_as(lo, c, "mat2", t);
    if (!is_float(t) || !fits_attribute(c, "alpha", t, &alpha) ||
        !fits_attribute(c, "beta", t, &beta) || (beta != 1 && !never_zero(lo, size_at(a, 1))))
        return add_product(lo, c, emit(lo, ONNX_MatMul, a, b));
    Value *x = beta == 0 ? NULL : tensor_as(lo, c, "self", t);
    Attr   attrs[2];
    int    n = 0;
    if (alpha != 1)
        attrs[n++] = attr_float("alpha", alpha);
    if (x && beta != 1)
        attrs[n++] = attr_float("beta", beta);
    return p2o_build(lo->b, ONNX_Gemm, n, attrs, INPUTS(a, b, x));
}

static Value *lower_baddbmm(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return add_product(
        lo, c, emit(lo, ONNX_MatMul, tensor_as(lo, c, "batch1", t), tensor_as(lo, c, "batch2", t)));
}

static Value *lower_addbmm(Lower *lo, const Call *c)
{
    Value *y = emit_with(lo, ONNX_Einsum, ATTRS(attr_str("equation", "bij,bjk->ik")),
                         tensor_arg(lo, c, "batch1"), tensor_arg(lo, c, "batch2"));
    return add_product(lo, c, y);
}

static Value *lower_addmv(Lower *lo, const Call *c)
{
    return add_product(lo, c,
                       emit(lo, ONNX_MatMul, tensor_arg(lo, c, "mat"), tensor_arg(lo, c, "vec")));
}

static Value *outer_product(Lower *lo, const Call *c, const char *left, const char *right)
{
    DType t = out_dtype(c, 0);
    return emit(lo, t == DT_BOOL ? ONNX_And : ONNX_Mul, unsqueeze(lo, tensor_as(lo, c, left, t), 1),
                unsqueeze(lo, tensor_as(lo, c, right, t), 0));
}

static Value *lower_addr(Lower *lo, const Call *c)
{
    return add_product(lo, c, outer_product(lo, c, "vec1", "vec2"));
}
static Value *lower_outer(Lower *lo, const Call *c) { return outer_product(lo, c, "self", "vec2"); }

static void shape_outer(Infer *in, const Call *c)
{
    if (must_be_ranks(in, c, "self", "vec2", 1))
        set_out(in, c, 0, PROMOTE(c, "self", "vec2"),
                outer_shape(in, shape_arg(c, "self"), shape_arg(c, "vec2")));
}

/* relu or gelu of addmm. */
static Value *lower_addmm_activation(Lower *lo, const Call *c)
{
    Value *x = lower_addmm(lo, c);
    return bool_arg(c, "use_gelu") ? gelu_of(lo, x, false) : emit(lo, ONNX_Relu, x);
}

/* The labels of every operand's dims and of the result's. */
enum { MAX_TERMS = 32, MAX_LABELS = 52 };
typedef struct Equation {
    int nterm, nlabel;
    int rank[MAX_TERMS], out_rank;
    int term[MAX_TERMS][MAX_RANK], out[MAX_RANK];
} Equation;

static int letter_index(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? ch - 'A' : ch >= 'a' && ch <= 'z' ? ch - 'a' + 26 : -1;
}

/* One operand or the result: letters as their index, the dims of `...` as MAX_LABELS + 0 ... with
 * the last dim being the highest; `dots` of them.  -1 when malformed, else the number of labels. */
static int read_labels(Str text, int dots, int *out, bool *has_dots)
{
    int n = 0;
    *has_dots = false;
    for (size_t i = 0; i < text.n; i++) {
        char ch = text.p[i];
        if (ch == ' ')
            continue;
        if (ch == '.') {
            if (*has_dots || i + 2 >= text.n || text.p[i + 1] != '.' || text.p[i + 2] != '.')
                return -1;
            *has_dots = true;
            i += 2;
            for (int k = 0; k < dots && n < MAX_RANK; k++)
                out[n++] = MAX_LABELS + MAX_RANK - dots + k;
            continue;
        }
        if (letter_index(ch) < 0 || n == MAX_RANK)
            return -1;
        out[n++] = letter_index(ch);
    }
    return n;
}

enum { ALL_LABELS = MAX_LABELS + MAX_RANK };

/* Labels renumbered from 0 in order of first appearance; false when the letters do not suffice. */
static bool compact_labels(Equation *e)
{
    int to[ALL_LABELS], n = 0;
    for (int i = 0; i < ALL_LABELS; i++)
        to[i] = -1;
    for (int t = 0; t < e->nterm; t++) {
        for (int k = 0; k < e->rank[t]; k++) {
            int *label = &e->term[t][k];
            if (to[*label] < 0)
                to[*label] = n++;
            *label = to[*label];
        }
    }
    for (int k = 0; k < e->out_rank; k++) {
        if (to[e->out[k]] < 0)
            return false;
        e->out[k] = to[e->out[k]];
    }
    e->nlabel = n;
    return n <= MAX_LABELS;
}

/* Without an arrow the result has the dims of `...`, then the letters that occur once, capitals
 * first. */
static void implied_output(Equation *e, int dots)
{
    int count[ALL_LABELS] = { 0 };
    e->out_rank = 0;
    for (int t = 0; t < e->nterm; t++)
        for (int k = 0; k < e->rank[t]; k++)
            count[e->term[t][k]]++;
    for (int k = 0; k < dots; k++)
        e->out[e->out_rank++] = MAX_LABELS + MAX_RANK - dots + k;
    for (int i = 0; i < MAX_LABELS && e->out_rank < MAX_RANK; i++)
        if (count[i] == 1)
            e->out[e->out_rank++] = i;
}

/* NULL, or what is wrong. */
static const char *read_equation(const Call *c, Equation *e)
{
    Str  all = str_of(str_arg(c, "equation")), left = all, right = { 0 };
    bool arrow = false, any;
    int  dots = 0, labels[MAX_RANK];
    for (size_t i = 0; i + 1 < all.n && !arrow; i++) {
        if (all.p[i] == '-' && all.p[i + 1] == '>') {
            left.n = i;
            right = (Str){ all.p + i + 2, all.n - i - 2 };
            arrow = true;
        }
    }
    e->nterm = list_len(c, "tensors");
    if (e->nterm < 1 || e->nterm > MAX_TERMS)
        return "the number of operands";
    for (int t = 0; t < e->nterm; t++) {
        bool has_more = memchr(left.p, ',', left.n) != NULL;
        if (has_more != (t + 1 < e->nterm))
            return "the number of operands";
        Str term = p2o_str_cut(left, ',', &left);
        int have = type_item(c, "tensors", t).shape.rank, n = read_labels(term, 0, labels, &any);
        if (n < 0 || (any ? n > have : n != have))
            return "an operand's subscripts do not match its rank";
        e->rank[t] = read_labels(term, have - n, e->term[t], &any);
        dots = have - n > dots ? have - n : dots;
    }
    if (arrow)
        e->out_rank = read_labels(right, dots, e->out, &any);
    else
        implied_output(e, dots);
    if (e->out_rank < 0 || !compact_labels(e))
        return "the subscripts of the result, or too many of them";
    for (int i = 0; i < e->out_rank; i++)
        for (int k = 0; k < i; k++)
            if (e->out[i] == e->out[k])
                return "a subscript comes twice in the result";
    return NULL;
}

static bool has_label(const int *labels, int n, int label)
{
    for (int i = 0; i < n; i++)
        if (labels[i] == label)
            return true;
    return false;
}

/* Dims with one label agree; among operands, a size of 1 is stretched. */
static void equation_shape(Infer *in, const Call *c, const Equation *e, const Type *terms, DType t)
{
    Dim size[MAX_LABELS] = { 0 };
    for (int i = 0; i < e->nterm; i++) {
        if (!must_be_one_type(in, terms[0].dtype, terms[i].dtype))
            return;
        for (int k = 0; k < e->rank[i]; k++) {
            Dim *have = &size[e->term[i][k]], d = terms[i].shape.at[k];
            bool twice = has_label(e->term[i], k, e->term[i][k]);
            if (!*have || (dim_is(*have, 1) && !twice))
                *have = d;
            else if ((!dim_is(d, 1) || twice) &&
                     !must_equal(in, c, *have, d, "sizes of one subscript"))
                return;
        }
    }
    Dim *at = NEW_N(in->arena, Dim, (size_t)e->out_rank + 1);
    for (int k = 0; k < e->out_rank; k++)
        at[k] = size[e->out[k]];
    set_out(in, c, 0, t, (Shape){ e->out_rank, at });
}

static bool are_labels(const int *a, const int *b, int n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Two operands whose product MatMul takes, the last two dims of either perhaps swapped: batch dims
 * in front of both, or a matrix on the right; one label summed. */
static Value *equation_matmul(Lower *lo, const Equation *e, Value *const *v)
{
    int na = e->rank[0], nb = e->rank[1], no = e->out_rank;
    if (e->nterm != 2 || na < 2 || nb < 2 || (nb != na && nb != 2) || no != na)
        return NULL;
    const int *a = e->term[0], *b = e->term[1], *out = e->out;
    bool       swap_a = a[na - 2] != out[no - 2], swap_b = b[nb - 1] != out[no - 1];
    int        row = a[swap_a ? na - 1 : na - 2], inner = a[swap_a ? na - 2 : na - 1];
    int        inner_b = b[swap_b ? nb - 1 : nb - 2], col = b[swap_b ? nb - 2 : nb - 1];
    if (row != out[no - 2] || col != out[no - 1] || inner != inner_b || row == inner ||
        col == inner || row == col || has_label(out, no, inner) || !are_labels(a, out, na - 2) ||
        (nb == na && !are_labels(b, out, nb - 2)) || (swap_a && nb != na) ||
        has_label(out, no - 2, col))
        return NULL;
    if (size_at(v[0], swap_a ? -2 : -1) != size_at(v[1], swap_b ? -1 : -2))
        return NULL;
    return emit(lo, ONNX_MatMul, swap_a ? swap_last_two(lo, v[0]) : v[0],
                swap_b ? swap_last_two(lo, v[1]) : v[1]);
}

static Value *lower_equation(Lower *lo, const Equation *e, Value *const *v)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    Buf    text = { .arena = lo->arena };
    Value *y = equation_matmul(lo, e, v);
    if (y)
        return y;
    for (int t = 0; t < e->nterm; t++) {
        if (t)
            p2o_put(&text, ",", 1);
        for (int k = 0; k < e->rank[t]; k++)
            p2o_put(&text, &letters[e->term[t][k]], 1);
    }
    p2o_put(&text, "->", 2);
    for (int k = 0; k < e->out_rank; k++)
        p2o_put(&text, &letters[e->out[k]], 1);
    return p2o_build(lo->b, ONNX_Einsum,
                     ATTRS(attr_str("equation", p2o_str_dup(lo->arena, buf_str(&text)))), e->nterm,
                     v);
}

static void shape_einsum(Infer *in, const Call *c)
{
    Equation    e;
    Type        terms[MAX_TERMS];
    const char *wrong = read_equation(c, &e);
    if (wrong) {
        rule_fail(in, "'%s': %s", str_arg(c, "equation"), wrong);
        return;
    }
    for (int i = 0; i < e.nterm; i++)
        terms[i] = type_item(c, "tensors", i);
    equation_shape(in, c, &e, terms, terms[0].dtype);
}

static Value *lower_einsum(Lower *lo, const Call *c)
{
    Equation e;
    Value   *v[MAX_TERMS];
    read_equation(c, &e);
    for (int i = 0; i < e.nterm; i++)
        v[i] = tensor_item(lo, c, "tensors", i);
    return lower_equation(lo, &e, v);
}

/* An equation over two operands, `n` dims of the one summed with those of the other; the result has
 * the rest of the one, then of the other. */
static bool pair_equation(int na, int nb, int n, const int *dims_a, const int *dims_b, Equation *e)
{
    *e = (Equation){ .nterm = 2, .rank = { na, nb } };
    if (na + nb - n > MAX_LABELS)
        return false;
    for (int i = 0; i < nb; i++)
        e->term[1][i] = -1;
    for (int i = 0; i < na; i++)
        e->term[0][i] = e->nlabel++;
    for (int i = 0; i < n; i++)
        e->term[1][dims_b[i]] = dims_a[i];
    for (int i = 0; i < na; i++)
        if (!has_label(dims_a, n, i))
            e->out[e->out_rank++] = i;
    for (int i = 0; i < nb; i++) {
        if (e->term[1][i] < 0) {
            e->term[1][i] = e->nlabel++;
            e->out[e->out_rank++] = e->term[1][i];
        }
    }
    return true;
}

static const char *tensordot_equation(const Call *c, Equation *e)
{
    int na = shape_arg(c, "self").rank, nb = shape_arg(c, "other").rank,
        n = list_len(c, "dims_self");
    int a[MAX_RANK], b[MAX_RANK];
    if (n != list_len(c, "dims_other") || n > na || n > nb)
        return "the dims to sum do not match";
    for (int i = 0; i < n; i++) {
        if (!p2o_wrap_dim(int_item(c, "dims_self", i), na, false, &a[i]) ||
            !p2o_wrap_dim(int_item(c, "dims_other", i), nb, false, &b[i]) ||
            has_label(a, i, a[i]) || has_label(b, i, b[i]))
            return "a dim is out of range or comes twice";
    }
    return pair_equation(na, nb, n, a, b, e) ? NULL : "too many dims";
}

static void pair_shape(Infer *in, const Call *c, const Equation *e)
{
    Type terms[2] = { type_arg(c, "self"), type_arg(c, "other") };
    equation_shape(in, c, e, terms, terms[0].dtype);
}

static Value *lower_pair(Lower *lo, const Call *c, const Equation *e)
{
    Value *v[2] = { tensor_arg(lo, c, "self"), tensor_arg(lo, c, "other") };
    return lower_equation(lo, e, v);
}

static void shape_tensordot(Infer *in, const Call *c)
{
    Equation    e;
    const char *wrong = tensordot_equation(c, &e);
    if (wrong)
        rule_fail(in, "%s", wrong);
    else
        pair_shape(in, c, &e);
}

static Value *lower_tensordot(Lower *lo, const Call *c)
{
    Equation e;
    tensordot_equation(c, &e);
    return lower_pair(lo, c, &e);
}

/* The last dims are summed; a 0-d operand only scales. */
static bool inner_equation(const Call *c, Equation *e)
{
    int na = shape_arg(c, "self").rank, nb = shape_arg(c, "other").rank;
    int n = na && nb ? 1 : 0, a = na - 1, b = nb - 1;
    return pair_equation(na, nb, n, &a, &b, e);
}

static void shape_inner(Infer *in, const Call *c)
{
    Equation e;
    Shape    a = shape_arg(c, "self"), b = shape_arg(c, "other");
    if (!inner_equation(c, &e))
        rule_fail(in, "too many dims");
    else if (!a.rank || !b.rank || must_equal(in, c, dim_at(a, -1), dim_at(b, -1), "last sizes"))
        pair_shape(in, c, &e);
}

static Value *lower_inner(Lower *lo, const Call *c)
{
    Equation e;
    Value   *a = tensor_arg(lo, c, "self"), *b = tensor_arg(lo, c, "other");
    if (!rank(a) || !rank(b))
        return emit(lo, ONNX_Mul, a, b);
    if (rank(b) == 1)
        return emit(lo, ONNX_MatMul, a, b);
    inner_equation(c, &e);
    return lower_pair(lo, c, &e);
}

/* y[.., k] = sum over i, j of x1[.., i] w[k, i, j] x2[.., j] */
static bool bilinear_equation(const Call *c, Equation *e)
{
    int n = shape_arg(c, "input1").rank;
    *e = (Equation){ .nterm = 3, .rank = { n, 3, n }, .out_rank = n, .nlabel = n + 2 };
    if (n + 2 > MAX_LABELS)
        return false;
    for (int i = 0; i + 1 < n; i++)
        e->term[0][i] = e->term[2][i] = e->out[i] = i;
    e->term[0][n - 1] = e->term[1][1] = n - 1;
    e->term[2][n - 1] = e->term[1][2] = n;
    e->out[n - 1] = e->term[1][0] = n + 1;
    return true;
}

static void shape_bilinear(Infer *in, const Call *c)
{
    Equation e;
    Type     terms[3] = { type_arg(c, "input1"), type_arg(c, "weight"), type_arg(c, "input2") };
    int      n = terms[0].shape.rank;
    if (n == 0 || n != terms[2].shape.rank || !bilinear_equation(c, &e))
        rule_fail(in, "inputs of ranks %d and %d", n, terms[2].shape.rank);
    else if (must_rank(in, c, "weight", 3))
        equation_shape(in, c, &e, terms, terms[0].dtype);
}

static Value *lower_bilinear(Lower *lo, const Call *c)
{
    Equation e;
    Value   *v[3] = { tensor_arg(lo, c, "input1"), tensor_arg(lo, c, "weight"),
                      tensor_arg(lo, c, "input2") };
    bilinear_equation(c, &e);
    Value *y = lower_equation(lo, &e, v), *b = tensor_arg(lo, c, "bias");
    return b ? emit(lo, ONNX_Add, y, b) : y;
}

/* The product of three operands after each got dims of 1 at `expandN`, some dims of it summed. */
static const char *trilinear_equation(const Call *c, Equation *e)
{
    static const char *const names[] = { "i1", "i2", "i3" }, *const expands[] = { "expand1",
                                                                                  "expand2",
                                                                                  "expand3" };
    bool drop[MAX_RANK] = { 0 };
    int  total = shape_arg(c, "i1").rank + list_len(c, "expand1"), dim;
    *e = (Equation){ .nterm = 3, .nlabel = total };
    if (total > MAX_LABELS)
        return "too many dims";
    for (int t = 0; t < 3; t++) {
        bool added[MAX_RANK] = { 0 };
        for (int i = 0; i < list_len(c, expands[t]); i++) {
            if (!p2o_wrap_dim(int_item(c, expands[t], i), total, false, &dim) || added[dim])
                return "a dim to add is out of range or comes twice";
            added[dim] = true;
        }
        for (int i = 0; i < total; i++)
            if (!added[i])
                e->term[t][e->rank[t]++] = i;
        if (e->rank[t] != shape_arg(c, names[t]).rank)
            return "the operands' ranks do not match";
    }
    for (int i = 0; i < list_len(c, "sumdim"); i++) {
        if (!p2o_wrap_dim(int_item(c, "sumdim", i), total, false, &dim))
            return "a dim to sum is out of range";
        drop[dim] = true;
    }
    for (int i = 0; i < total; i++) {
        bool somewhere = has_label(e->term[0], e->rank[0], i) ||
                         has_label(e->term[1], e->rank[1], i) ||
                         has_label(e->term[2], e->rank[2], i);
        if (!somewhere)
            return "a dim that no operand has";
        if (!drop[i])
            e->out[e->out_rank++] = i;
    }
    return NULL;
}

static void shape_trilinear(Infer *in, const Call *c)
{
    Equation    e;
    Type        terms[3] = { type_arg(c, "i1"), type_arg(c, "i2"), type_arg(c, "i3") };
    const char *wrong = trilinear_equation(c, &e);
    if (wrong)
        rule_fail(in, "%s", wrong);
    else
        equation_shape(in, c, &e, terms, terms[0].dtype);
}

static Value *lower_trilinear(Lower *lo, const Call *c)
{
    Equation e;
    Value   *v[3] = { tensor_arg(lo, c, "i1"), tensor_arg(lo, c, "i2"), tensor_arg(lo, c, "i3") };
    trilinear_equation(c, &e);
    return lower_equation(lo, &e, v);
}

/* Matrices in a row; the first may be a row vector and the last a column vector. */
static void shape_multi_dot(Infer *in, const Call *c)
{
    const char *name = c->schema->args[0].name;
    int         n = list_len(c, name);
    if (n < 1) {
        rule_fail(in, "no matrices");
        return;
    }
    Type  first = type_item(c, name, 0), last = type_item(c, name, n - 1);
    Dim  *at = NEW_N(in->arena, Dim, 2), inner = dim_at(first.shape, -1);
    int   r = 0;
    for (int i = 0; i < n; i++) {
        Type t = type_item(c, name, i);
        bool end = (i == 0 || i == n - 1) && n > 1;
        if (t.shape.rank != 2 && !(end && t.shape.rank == 1)) {
            rule_fail(in, "matrix %d has rank %d", i, t.shape.rank);
            return;
        }
        if (!must_be_one_type(in, first.dtype, t.dtype) ||
            (i && !must_equal(in, c, inner, t.shape.at[0], "inner sizes")))
            return;
        inner = dim_at(t.shape, -1);
    }
    if (first.shape.rank == 2)
        at[r++] = first.shape.at[0];
    if (last.shape.rank == 2)
        at[r++] = last.shape.at[1];
    set_out(in, c, 0, first.dtype, (Shape){ r, at });
}

/* Towards a vector at the end, else from the left. */
static Value *lower_multi_dot(Lower *lo, const Call *c)
{
    const char *name = c->schema->args[0].name;
    int         n = list_len(c, name);
    bool        from_right = type_item(c, name, n - 1).shape.rank == 1;
    Value      *y = tensor_item(lo, c, name, from_right ? n - 1 : 0);
    for (int i = 1; i < n; i++) {
        if (from_right)
            y = emit(lo, ONNX_MatMul, tensor_item(lo, c, name, n - 1 - i), y);
        else
            y = emit(lo, ONNX_MatMul, y, tensor_item(lo, c, name, i));
    }
    return y;
}

/* Sizes multiply, aligned at the last dim. */
static void shape_kron(Infer *in, const Call *c)
{
    Shape a = shape_arg(c, "self"), b = shape_arg(c, "other");
    if (a.rank < b.rank) {
        Shape t = a;
        a = b;
        b = t;
    }
    Dim *at = p2o_shape_copy(in->arena, a, 0);
    for (int i = 0; i < b.rank; i++)
        at[a.rank - b.rank + i] = p2o_dim_mul(in->dims, at[a.rank - b.rank + i], b.at[i]);
    set_out(in, c, 0, PROMOTE(c, "self", "other"), (Shape){ a.rank, at });
}

/* A dim of 1 after (at 1) or before (at 0) each of the last n dims, missing ones being 1. */
static Value *interleave_ones(Lower *lo, Value *x, int n, int at)
{
    int64_t axes[2 * MAX_RANK];
    size_t  k = 0;
    for (int i = 0; i < n; i++) {
        if (i < n - rank(x)) {
            axes[k++] = 2 * i;
            axes[k++] = 2 * i + 1;
        } else {
            axes[k++] = 2 * i + at;
        }
    }
    return k ? emit(lo, ONNX_Unsqueeze, x, ints_const(lo, axes, k)) : x;
}

/* [a, 1] * [1, b] -> [a, b] -> [a b], along every dim */
static Value *lower_kron(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    int    n = out_shape(c, 0).rank;
    if (2 * n > MAX_RANK)
        return unsupported(lo, c, "rank %d", n);
    Value *a = interleave_ones(lo, tensor_as(lo, c, "self", t), n, 1);
    Value *b = interleave_ones(lo, tensor_as(lo, c, "other", t), n, 0);
    return reshape(lo, emit(lo, t == DT_BOOL ? ONNX_And : ONNX_Mul, a, b), out_shape(c, 0));
}

/* cross without dim: the first of size 3. */
static bool cross_dim(const Call *c, Shape s, int *dim)
{
    if (has_arg(c, "dim"))
        return p2o_wrap_dim(int_arg(c, "dim"), s.rank, false, dim);
    for (*dim = 0; *dim < s.rank; ++*dim)
        if (dim_is(s.at[*dim], 3))
            return true;
    return false;
}

static void shape_cross(Infer *in, const Call *c)
{
    Type  a = type_arg(c, "self"), b = type_arg(c, "other");
    Shape s = broadcast(in, c, a.shape, b.shape);
    int   dim;
    if (a.shape.rank != b.shape.rank)
        rule_fail(in, "ranks %d and %d", a.shape.rank, b.shape.rank);
    else if (!cross_dim(c, s, &dim))
        rule_fail(in, "no dim of size 3, or dim out of range");
    else if (must_equal(in, c, a.shape.at[dim], int_dim(in, 3), "size of the dim") &&
             must_equal(in, c, b.shape.at[dim], int_dim(in, 3), "size of the dim"))
        set_out(in, c, 0, PROMOTE(c, "self", "other"), s);
}

static Value *turned(Lower *lo, Value *x, int dim, int64_t first)
{
    Value *order = INTS(lo, first, (first + 1) % 3, (first + 2) % 3);
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", dim)), x, order);
}

/* a[1 2 0] b[2 0 1] - a[2 0 1] b[1 2 0] */
static Value *lower_cross(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *a = tensor_as(lo, c, "self", t), *b = tensor_as(lo, c, "other", t);
    int    dim;
    cross_dim(c, out_shape(c, 0), &dim);
    return emit(lo, ONNX_Sub, emit(lo, ONNX_Mul, turned(lo, a, dim, 1), turned(lo, b, dim, 2)),
                emit(lo, ONNX_Mul, turned(lo, a, dim, 2), turned(lo, b, dim, 1)));
}

static void shape_vecdot(Infer *in, const Call *c)
{
    Type  a = type_arg(c, "x"), b = type_arg(c, "y");
    Shape s = broadcast(in, c, a.shape, b.shape);
    int   dim;
    if (must_be_one_type(in, a.dtype, b.dtype) && must_wrap(in, int_arg(c, "dim"), s.rank, &dim))
        set_out(in, c, 0, a.dtype, without_dim(in, s, dim));
}

static Value *lower_vecdot(Lower *lo, const Call *c)
{
    Value  *p = emit(lo, ONNX_Mul, tensor_arg(lo, c, "x"), tensor_arg(lo, c, "y"));
    int     dim = 0;
    p2o_wrap_dim(int_arg(c, "dim"), rank(p), false, &dim);
    int64_t axis = dim;
    return reduce(lo, ONNX_ReduceSum, p, &axis, 1, false);
}

/* Rows of a matrix in groups, each times a matrix of its own; offs holds where the groups end. */
static const char *grouped_left(const Call *c) { return c->schema->args[0].name; }
static const char *grouped_right(const Call *c) { return c->schema->args[1].name; }

static void shape_grouped_mm(Infer *in, const Call *c)
{
    Type    a = type_arg(c, grouped_left(c)), b = type_arg(c, grouped_right(c));
    int64_t n;
    if (a.shape.rank != 2 || b.shape.rank != 3 || !has_arg(c, "offs") ||
        (p2o_schema_find(c->schema, "bias") >= 0 && has_arg(c, "bias"))) {
        rule_unsupported(in, "other than rows in groups, without a bias");
        return;
    }
    if (must_be_one_type(in, a.dtype, b.dtype) && must_rank(in, c, "offs", 1) &&
        const_dim(in, b.shape.at[0], "number of groups", &n) &&
        must_equal(in, c, shape_arg(c, "offs").at[0], b.shape.at[0], "number of groups") &&
        must_equal(in, c, a.shape.at[1], b.shape.at[1], "inner sizes"))
        set_out(in, c, 0, product_dtype(c, a.dtype), with_last(in, a.shape, b.shape.at[2]));
}

/* Rows behind the last group are 0. */
static Value *lower_grouped_mm(Lower *lo, const Call *c)
{
    DType   t = out_dtype(c, 0);
    Value  *a = tensor_as(lo, c, grouped_left(c), t), *b = tensor_as(lo, c, grouped_right(c), t);
    Value  *from = INTS(lo, 0), *rows = INTS(lo, 0);
    int64_t n = 0;
    p2o_dim_is_int(size_at(b, 0), &n);
    if (n < 1)
        return full(lo, out_shape(c, 0), t, 0);
    Value **end = NEW_N(lo->arena, Value *, (size_t)n),
          **part = NEW_N(lo->arena, Value *, (size_t)n);
    int64_t *ones = NEW_N(lo->arena, int64_t, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    p2o_build_many(lo->b, ONNX_Split, ATTRS(attr_int("axis", 0)),
                   INPUTS(tensor_as(lo, c, "offs", DT_I64), ints_const(lo, ones, (size_t)n)),
                   (int)n, end);
    for (int64_t i = 0; i < n; i++) {
        end[i]->shape = rows->shape;            /* one each, however many offs has */
        Value *group = emit(lo, ONNX_Slice, a, from, end[i], rows);
        part[i] = emit(lo, ONNX_MatMul, group, select_axis(lo, b, 0, p2o_dim_int(lo->dims, i)));
        from = end[i];
    }
    Value *rest = emit(lo, ONNX_Sub, dim_value(lo, size_at(a, 0)), from);
    Value *pads = concat(lo, 0, (Value *[]){ INTS(lo, 0, 0), rest, INTS(lo, 0) }, 3);
    return emit(lo, ONNX_Pad, concat(lo, 0, part, (int)n), pads);
}

static bool must_be_square(Infer *in, const Call *c, Shape s)
{
    if (s.rank < 2) {
        rule_fail(in, "rank %d against at least 2", s.rank);
        return false;
    }
    return must_equal(in, c, dim_at(s, -2), dim_at(s, -1), "sides of a square matrix");
}

static void shape_matrix_power(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (int_arg(c, "n") < 0 ? must_be_squares(in, c, x) : must_be_square(in, c, x.shape))
        set_out(in, c, 0, x.dtype, x.shape);
}

/* By squaring; the power 0 is the identity, negative ones are those of the inverse. */
static Value *lower_matrix_power(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *y = NULL;
    if (int_arg(c, "n") == 0) {
        Value *i = iota(lo, size_at(x, -1));
        Value *eye = emit(lo, ONNX_Equal, unsqueeze(lo, i, 1), i);
        return expand(lo, cast(lo, eye, x->dtype), out_shape(c, 0));
    }
    if (int_arg(c, "n") < 0)
        x = as_batches(lo, inverse_of(lo, as_one_batch(lo, x)), c, 0);
    uint64_t power = (uint64_t)int_arg(c, "n");
    for (uint64_t n = int_arg(c, "n") < 0 ? -power : power; n > 0; n /= 2) {
        if (n % 2)
            y = y ? emit(lo, ONNX_MatMul, y, x) : x;
        if (n > 1)
            x = emit(lo, ONNX_MatMul, x, x);
    }
    return y;
}

/* What a norm is taken over and how. */
typedef struct Norm {
    int     ndim, dim[MAX_RANK];
    bool    is_matrix;                  /* over the two dims, rows first */
    double  ord;                        /* of a vector, or 1, 2 and inf of a matrix */
    bool    frobenius, nuclear;
} Norm;

/* The dims; all of them when not given. */
static const char *norm_dims(const Call *c, int rank_, Norm *n)
{
    const Arg *x = p2o_call_arg(c, "dim");
    n->ndim = x->kind == ARG_LIST ? (int)x->n : rank_;
    for (int i = 0; i < n->ndim; i++) {
        n->dim[i] = i;
        if (x->kind == ARG_LIST && !p2o_wrap_dim(int_item(c, "dim", i), rank_, true, &n->dim[i]))
            return "a dim is out of range";
        if (has_label(n->dim, i, n->dim[i]))
            return "a dim comes twice";
    }
    return NULL;
}

/* linalg_norm chooses by ord and dim: without ord a vector norm of everything. */
static const char *read_norm(const Call *c, Norm *n)
{
    int         rank_ = shape_arg(c, "self").rank;
    const Arg  *ord = p2o_call_arg(c, "ord");
    const char *wrong = norm_dims(c, rank_, n);
    bool        any = p2o_str_starts(str_of(c->schema->key), "aten::linalg_norm");
    if (wrong)
        return wrong;
    n->ord = 2;
    n->frobenius = ord->kind == ARG_STR && same(ord->s, "fro");
    n->nuclear = ord->kind == ARG_STR && same(ord->s, "nuc");
    if (any && (ord->kind == ARG_NONE || (n->ndim == 1 && ord->kind != ARG_STR))) {
        p2o_number_is_const(ord, &n->ord);
        return NULL;
    }
    if (n->ndim != 2 || rank_ < 2)
        return "a matrix norm needs two dims";
    n->is_matrix = true;
    if (ord->kind != ARG_STR && !p2o_number_is_const(ord, &n->ord))
        return "ord is known at run time only";
    return NULL;
}

static void shape_norm(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    DType t = dtype_arg(c, "dtype", x.dtype);
    Norm  n = { 0 };
    const char *wrong = read_norm(c, &n);
    if (wrong || !is_float(t)) {
        rule_fail(in, "%s", wrong ? wrong : "not a float type");
        return;
    }
    if (n.is_matrix && !n.frobenius && !n.nuclear && fabs(n.ord) != 1 && fabs(n.ord) != 2 &&
        !isinf(n.ord)) {
        rule_fail(in, "a matrix norm of order %g", n.ord);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    int  r = 0;
    for (int i = 0; i < x.shape.rank; i++) {
        if (!has_label(n.dim, n.ndim, i))
            at[r++] = x.shape.at[i];
        else if (bool_arg(c, "keepdim"))
            at[r++] = int_dim(in, 1);
    }
    set_out(in, c, 0, t, (Shape){ r, at });
}

/* Over dims, n of them; without any, of single elements.  The largest of no sizes is 0. */
static Value *norm_over(Lower *lo, OnnxOp op, Value *x, const int *dims, int n, bool keep)
{
    int64_t axes[MAX_RANK];
    bool    may_be_empty = false;
    for (int i = 0; i < n; i++) {
        axes[i] = dims[i];
        may_be_empty |= !never_zero(lo, size_at(x, dims[i]));
    }
    Value *y = n ? reduce(lo, op, x, axes, n, keep) : emit(lo, ONNX_Abs, x);
    return op == ONNX_ReduceMax && may_be_empty ? emit(lo, ONNX_Max, y, num(lo, x->dtype, 0)) : y;
}

/* (sum |x|^p)^(1/p), with its limits at 0 and the infinities. */
static Value *vector_norm(Lower *lo, Value *x, const Norm *n, bool keep)
{
    DType  t = x->dtype;
    double p = n->ord;
    if (p == 0) {
        Value *nonzero = emit(lo, ONNX_Not, emit(lo, ONNX_Equal, x, num(lo, t, 0)));
        return norm_over(lo, ONNX_ReduceSum, cast(lo, nonzero, t), n->dim, n->ndim, keep);
    }
    if (p == 1 || p == 2)
        return norm_over(lo, p == 1 ? ONNX_ReduceL1 : ONNX_ReduceL2, x, n->dim, n->ndim, keep);
    Value *size = emit(lo, ONNX_Abs, x);
    if (isinf(p))
        return nan_or(
            lo, norm_over(lo, ONNX_ReduceL1, x, n->dim, n->ndim, keep),
            norm_over(lo, p > 0 ? ONNX_ReduceMax : ONNX_ReduceMin, size, n->dim, n->ndim, keep));
    Value *sum = norm_over(lo, ONNX_ReduceSum, emit(lo, ONNX_Pow, size, num(lo, t, p)), n->dim,
                           n->ndim, keep);
    return emit(lo, ONNX_Pow, sum, num(lo, t, 1 / p));
}

/* 2, -2 and nuc: the largest, smallest and sum of the singular values.  Of none the largest is
 * 0. */
static Value *spectral_norm(Lower *lo, const Call *c, Value *x, const Norm *n)
{
    const int64_t axis = 1;
    int64_t       perm[MAX_RANK];
    int           k = 0;
    for (int i = 0; i < rank(x); i++)
        if (!has_label(n->dim, 2, i))
            perm[k++] = i;
    perm[k++] = n->dim[0];
    perm[k++] = n->dim[1];
    Value *s = singular_values(lo, as_one_batch(lo, transpose(lo, x, perm)));
    s = reduce(lo,
               n->nuclear   ? ONNX_ReduceSum
               : n->ord > 0 ? ONNX_ReduceMax
                            : ONNX_ReduceMin,
               s, &axis, 1, false);
    return as_batches(lo, n->ord > 0 && !n->nuclear ? emit(lo, ONNX_Max, s, num(lo, DT_F64, 0)) : s,
                      c, 0);
}

/* 1: the largest column sum; inf: the largest row sum; negative: the smallest.  The first reduction
 * keeps its dim, of size 1, for the second to take both away. */
static Value *matrix_norm(Lower *lo, Value *x, const Norm *n, bool keep)
{
    if (n->frobenius)
        return norm_over(lo, ONNX_ReduceL2, x, n->dim, 2, keep);
    Value *sums = norm_over(lo, ONNX_ReduceL1, x, &n->dim[fabs(n->ord) == 1 ? 0 : 1], 1, true);
    return norm_over(lo, n->ord > 0 ? ONNX_ReduceMax : ONNX_ReduceMin, sums, n->dim, 2, keep);
}

static Value *lower_norm(Lower *lo, const Call *c)
{
    Norm   n = { 0 };
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    read_norm(c, &n);
    if (rank(x) == 0)
        n.ndim = 0;
    if (n.is_matrix && !n.frobenius && (n.nuclear || fabs(n.ord) == 2))
        return spectral_norm(lo, c, x, &n);
    return (n.is_matrix ? matrix_norm : vector_norm)(lo, x, &n, bool_arg(c, "keepdim"));
}

#define BETA_ALPHA "*, Scalar beta=1, Scalar alpha=1) -> Tensor"
#define NORM_ARGS  "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"

const AtenOp p2o_ops_linalg[] = {
    { "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", shape_linear,
      .lower = lower_linear,
      .batch = p2o_batch_linear },
    { "matmul(Tensor self, Tensor other) -> Tensor", shape_matmul, .lower = lower_matmul,
      .batch = p2o_batch_matmul },
    { "linalg_matmul(Tensor self, Tensor other) -> Tensor", shape_matmul, .lower = lower_matmul,
      .batch = p2o_batch_matmul },
    { "mm(Tensor self, Tensor mat2) -> Tensor", shape_mm, .lower = lower_matmul,
      .batch = p2o_batch_matmul },
    { "mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", shape_mm,
      .lower = lower_matmul },
    { "bmm(Tensor self, Tensor mat2) -> Tensor", shape_bmm, .lower = lower_matmul,
      .batch = p2o_batch_matmul },
    { "bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", shape_bmm,
      .lower = lower_matmul },
    { "mv(Tensor self, Tensor vec) -> Tensor", shape_mv, .lower = lower_matmul,
      .batch = p2o_batch_matmul },
    { "dot(Tensor self, Tensor tensor) -> Tensor", shape_dot, .lower = lower_matmul,
      .batch = p2o_batch_matmul },
    { "vdot(Tensor self, Tensor other) -> Tensor", shape_dot, .lower = lower_matmul },
    { "addmm(Tensor self, Tensor mat1, Tensor mat2, " BETA_ALPHA, shape_addmm,
      .lower = lower_addmm,
      .batch = p2o_batch_addmm },
    { "addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, " BETA_ALPHA,
      shape_addmm, .lower = lower_addmm },
    { "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
      shape_addmm, .lower = lower_addmm_activation },
    { "addmv(Tensor self, Tensor mat, Tensor vec, " BETA_ALPHA, shape_addmv, .lower = lower_addmv,
      .batch = p2o_batch_addmm },
    { "addr(Tensor self, Tensor vec1, Tensor vec2, " BETA_ALPHA, shape_addr, .lower = lower_addr },
    { "addbmm(Tensor self, Tensor batch1, Tensor batch2, " BETA_ALPHA, shape_addbmm,
      .lower = lower_addbmm },
    { "baddbmm(Tensor self, Tensor batch1, Tensor batch2, " BETA_ALPHA, shape_baddbmm,
      .lower = lower_baddbmm,
      .batch = p2o_batch_addmm },
    { "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, " BETA_ALPHA,
      shape_baddbmm, .lower = lower_baddbmm },
    { "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
      shape_grouped_mm, .lower = lower_grouped_mm, .limits = "rows in groups" },
    { "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
      shape_grouped_mm, .lower = lower_grouped_mm },
    { "outer(Tensor self, Tensor vec2) -> Tensor", shape_outer, .lower = lower_outer,
      .batch = p2o_batch_outer },
    { "ger(Tensor self, Tensor vec2) -> Tensor", shape_outer, .lower = lower_outer,
      .batch = p2o_batch_outer },
    { "inner(Tensor self, Tensor other) -> Tensor", shape_inner, .lower = lower_inner },
    { "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", shape_einsum,
      .lower = lower_einsum },
    { "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
      shape_tensordot, .lower = lower_tensordot },
    { "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
      shape_bilinear, .lower = lower_bilinear },
    { "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
      shape_trilinear, .lower = lower_trilinear },
    { "chain_matmul(Tensor[] matrices) -> Tensor", shape_multi_dot, .lower = lower_multi_dot },
    { "linalg_multi_dot(Tensor[] tensors) -> Tensor", shape_multi_dot, .lower = lower_multi_dot },
    { "kron(Tensor self, Tensor other) -> Tensor", shape_kron, .lower = lower_kron },
    { "cross(Tensor self, Tensor other, int? dim=None) -> Tensor", shape_cross,
      .lower = lower_cross },
    { "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", shape_cross,
      .lower = lower_cross },
    { "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", shape_vecdot,
      .lower = lower_vecdot },
    { "matrix_power(Tensor self, int n) -> Tensor", shape_matrix_power, .lower = lower_matrix_power,
      .roles = "n:extent" },
    { "linalg_matrix_power(Tensor self, int n) -> Tensor", shape_matrix_power,
      .lower = lower_matrix_power, .roles = "n:extent" },
    { "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, " NORM_ARGS, shape_norm,
      .lower = lower_norm },
    { "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, " NORM_ARGS, shape_norm,
      .lower = lower_norm },
    { "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], " NORM_ARGS, shape_norm,
      .lower = lower_norm },
    { "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], " NORM_ARGS,
      shape_norm, .lower = lower_norm },
    { 0 },
};
