/* Constants that were computed from a size when the model was exported: one value everywhere
 * (states, masks), counting along an axis (positions), a lower triangle (causal masks), the
 * same again along an axis.  One whose axis was as long as a size that is dynamic now may have to
 * be computed again. */
#include "aten/lower.h"
#include "dyn/onnx_sizes.h"

enum { MOST_ELEMENTS = 1 << 22 };

static bool same_element(const Tensor *t, uint64_t i, uint64_t k)
{
    int64_t a, b;
    double  x, y;
    if (p2o_tensor_get_i64(t, i, &a))
        return p2o_tensor_get_i64(t, k, &b) && a == b;
    return p2o_tensor_get_f64(t, i, &x) && p2o_tensor_get_f64(t, k, &y) &&
           (x == y || (x != x && y != y));
}

static bool is_all_one(const Tensor *t, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++)
        if (!same_element(t, 0, i))
            return false;
    return true;
}

/* first + step * position on this axis, the same on all others; of integers. */
static bool counts_on(const Tensor *t, uint64_t n, int axis, BakedForm *f)
{
    uint64_t stride = 1, len = (uint64_t)t->sizes[axis];
    int64_t  v, next;
    for (int i = axis + 1; i < t->rank; i++)
        stride *= (uint64_t)t->sizes[i];
    if (len < 2 || !p2o_tensor_get_i64(t, 0, &f->first) || !p2o_tensor_get_i64(t, stride, &next) ||
        next == f->first ||
        !(f->first > -1000000 && f->first < 1000000 && next > -2000000 && next < 2000000))
        return false;
    f->step = next - f->first;
    f->axis = axis;
    for (uint64_t i = 0; i < n; i++)
        if (!p2o_tensor_get_i64(t, i, &v) || v != f->first + f->step * (int64_t)(i / stride % len))
            return false;
    return true;
}

/* On the last two axes: one value where column - row <= diagonal, another elsewhere. */
static bool is_triangle(const Tensor *t, uint64_t n, BakedForm *f)
{
    if (t->rank < 2)
        return false;
    uint64_t cols = (uint64_t)t->sizes[t->rank - 1], rows = (uint64_t)t->sizes[t->rank - 2];
    uint64_t edge = 1;
    if (rows < 3 || cols < 3)           /* too small to show */
        return false;
    while (edge < cols && same_element(t, 0, edge))
        edge++;
    if (edge == cols)
        return false;
    f->diagonal = (int64_t)edge - 1;
    f->inside = 0;
    f->outside = edge;
    for (uint64_t i = 0; i < n; i++) {
        int64_t row = (int64_t)(i / cols % rows), col = (int64_t)(i % cols);
        if (!same_element(t, i, col - row <= f->diagonal ? f->inside : f->outside))
            return false;
    }
    return true;
}

/* Along this axis every slice is the first. */
static bool repeats_on(const Tensor *t, uint64_t n, int axis)
{
    uint64_t stride = 1, len = (uint64_t)t->sizes[axis];
    for (int i = axis + 1; i < t->rank; i++)
        stride *= (uint64_t)t->sizes[i];
    for (uint64_t i = 0; i < n; i++)
        if (!same_element(t, i, i - i / stride % len * stride))
            return false;
    return true;
}

const BakedForm *p2o_onnx_form(Arena *a, const Tensor *t)
{
    BakedForm *f = NEW(a, BakedForm);
    uint64_t   n;
    *f = (BakedForm){ .of = t, .axes = UINT64_MAX };
    if (!p2o_tensor_nelem(t, &n) || n < 1 || n > MOST_ELEMENTS || !p2o_tensor_is_contiguous(t))
        return NULL;
    if (is_all_one(t, n))
        return f;
    f->kind = BAKED_COUNTING;
    for (int i = t->rank - 1; is_int(t->dtype) && i >= 0; i--)
        if (counts_on(t, n, i, f))
            return f;
    f->kind = BAKED_TRIANGLE;
    if (is_triangle(t, n, f))
        return f;
    f->kind = BAKED_REPEATED;
    f->axes = 0;
    for (int i = 0; i < t->rank; i++)
        f->axes |= (uint64_t)repeats_on(t, n, i) << i;
    return f->axes ? f : NULL;
}

static const Tensor *element_of(Arena *a, const Tensor *t, uint64_t i)
{
    Tensor *one = NEW(a, Tensor);
    *one = *t;
    one->rank = 0;
    one->offset += i;
    return one;
}

/* Counting as [1 ... n ... 1]. */
static Value *counted(Lower *lo, const BakedForm *f, Shape s)
{
    Value *v = iota(lo, s.at[f->axis]);
    if (f->step != 1)
        v = emit(lo, ONNX_Mul, v, p2o_build_int(lo->b, f->step));
    if (f->first)
        v = emit(lo, ONNX_Add, v, p2o_build_int(lo->b, f->first));
    v = cast(lo, v, f->of->dtype);
    for (int i = 0; i < s.rank; i++)
        if (i != f->axis)
            v = unsqueeze(lo, v, i);
    return v;
}

static Value *triangle_again(Lower *lo, const BakedForm *f, Shape s)
{
    Value *cols = unsqueeze(lo, iota(lo, s.at[s.rank - 1]), 0);
    Value *rows = unsqueeze(lo, iota(lo, s.at[s.rank - 2]), 1);
    if (f->diagonal)
        rows = emit(lo, ONNX_Add, rows, p2o_build_int(lo->b, f->diagonal));
    Value *inside = emit(lo, ONNX_LessOrEqual, cols, rows);
    return choose(lo, inside, p2o_build_const(lo->b, element_of(lo->arena, f->of, f->inside)),
                  p2o_build_const(lo->b, element_of(lo->arena, f->of, f->outside)));
}

static Value *first_slices(Lower *lo, const BakedForm *f, Shape s)
{
    const Tensor *t = f->of;
    for (int i = 0; i < s.rank; i++)
        if (!dim_is(s.at[i], t->sizes[i]))
            t = p2o_tensor_narrow(lo->arena, t, i, 0, 1);
    return p2o_graph_init(lo->b->graph, NULL, t);
}

Value *p2o_onnx_make(Lower *lo, const BakedForm *f, Shape s)
{
    if (f->kind == BAKED_FILLED)
        return filled(lo, s, element_of(lo->arena, f->of, 0));
    return expand(lo, f->kind == BAKED_COUNTING   ? counted(lo, f, s)
                      : f->kind == BAKED_TRIANGLE ? triangle_again(lo, f, s)
                                                  : first_slices(lo, f, s), s);
}
