/* Operators that move elements say for each one where it comes from; arithmetic is done in int64
 * (which wraps as any narrower type does) or in double and rounded once, which for f32 is exact. */
#include "onnx/fold.h"

#include <math.h>

#include "onnx/onnx_rules.h"

enum { FOLD_BYTES = 1024, FOLD_RANK = 8 };

/* An element of an input: which input, and where in it. */
typedef struct Origin {
    int     input;
    int64_t at[FOLD_RANK];
} Origin;

typedef bool OriginFn(const Node *n, const int64_t *at, Origin *from);

static bool small_sizes(const Value *v, int64_t *sizes, uint64_t *nelem)
{
    if (v->shape.rank > FOLD_RANK)
        return false;
    *nelem = 1;
    for (int i = 0; i < v->shape.rank; i++) {
        if (!p2o_dim_is_int(v->shape.at[i], &sizes[i]) || sizes[i] > FOLD_BYTES)
            return false;
        *nelem *= (uint64_t)sizes[i];
        if (*nelem > FOLD_BYTES)
            return false;
    }
    return *nelem * p2o_dtype_bytes(v->dtype) <= FOLD_BYTES;
}

static bool is_small_constant(const Value *v)
{
    int64_t  sizes[FOLD_RANK];
    uint64_t n;
    bool     weight = v && v->name && !v->graph->file;      /* kept as it is, under its name */
    return v && v->tensor && small_sizes(v, sizes, &n) && (!weight || n == 1);
}

static int64_t known_size(const Value *v, int i)
{
    int64_t n = 0;
    p2o_dim_is_int(v->shape.at[i], &n);
    return n;
}

static bool from_transposed(const Node *n, const int64_t *at, Origin *from)
{
    const Attr *perm = p2o_node_attr(n, "perm");
    int         rank = n->out[0]->shape.rank;
    for (int i = 0; i < rank; i++)
        from->at[perm ? perm->ints[i] : rank - 1 - i] = at[i];
    return true;
}

static bool from_expanded(const Node *n, const int64_t *at, Origin *from)
{
    int rank = n->in[0]->shape.rank, lead = n->out[0]->shape.rank - rank;
    for (int i = 0; i < rank; i++)
        from->at[i] = known_size(n->in[0], i) == 1 ? 0 : at[lead + i];
    return true;
}

static bool from_concatenated(const Node *n, const int64_t *at, Origin *from)
{
    int axis;
    if (!p2o_onnx_axis(n, "axis", 0, n->out[0]->shape.rank, &axis))
        return false;
    for (int i = 0; i < n->out[0]->shape.rank; i++)
        from->at[i] = at[i];
    while (from->input < n->nin - 1 && from->at[axis] >= known_size(n->in[from->input], axis))
        from->at[axis] -= known_size(n->in[from->input++], axis);
    return true;
}

static uint64_t flat_index(const Value *v, const int64_t *at)
{
    uint64_t k = 0;
    for (int i = 0; i < v->shape.rank; i++)
        k = k * (uint64_t)known_size(v, i) + (uint64_t)at[i];
    return k;
}

static bool from_gathered(const Node *n, const int64_t *at, Origin *from)
{
    const Value *x = n->in[0], *index = n->in[1];
    int          axis, extra = index->shape.rank;
    int64_t      i, size;
    if (!p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis) ||
        !p2o_tensor_get_i64(index->tensor, flat_index(index, at + axis), &i))
        return false;
    size = known_size(x, axis);
    for (int k = 0; k < x->shape.rank; k++)
        from->at[k] = k < axis ? at[k] : k > axis ? at[k - 1 + extra] : i < 0 ? i + size : i;
    return true;
}

/* Element k of a constant input of integers, or what stands for an absent one. */
static bool int_input(const Node *n, int i, size_t k, int64_t otherwise, int64_t *v)
{
    *v = otherwise;
    return !input_at(n, i) || p2o_tensor_get_i64(n->in[i]->tensor, k, v);
}

static bool from_sliced(const Node *n, const int64_t *at, Origin *from)
{
    const Value *x = n->in[0];
    for (int i = 0; i < x->shape.rank; i++)
        from->at[i] = at[i];
    for (int64_t k = 0; k < known_size(n->in[1], 0); k++) {
        int64_t start, axis, step, size;
        int     i;
        if (!int_input(n, 1, (size_t)k, 0, &start) || !int_input(n, 3, (size_t)k, k, &axis) ||
            !int_input(n, 4, (size_t)k, 1, &step) || !p2o_wrap_dim(axis, x->shape.rank, false, &i))
            return false;
        size = known_size(x, i);
        if (start < 0)
            start = start < -size ? 0 : start + size;
        else if (step < 0 && start > size - 1)
            start = size - 1;
        from->at[i] = start + at[i] * step;
    }
    return true;
}

static bool is_inside(const Node *n, const Origin *from)
{
    for (int i = 0; i < n->in[from->input]->shape.rank; i++)
        if (from->at[i] < 0 || from->at[i] >= known_size(n->in[from->input], i))
            return false;
    return true;
}

static bool from_same_place(const Node *n, const int64_t *at, Origin *from)
{
    (void)n, (void)at, (void)from;
    return true;
}

static OriginFn *origin_rule(OnnxOp op)
{
    switch (op) {
    case ONNX_Transpose: return from_transposed;
    case ONNX_Expand: return from_expanded;
    case ONNX_Concat: return from_concatenated;
    case ONNX_Gather: return from_gathered;
    case ONNX_Slice: return from_sliced;
    case ONNX_Reshape: case ONNX_Flatten: case ONNX_Squeeze: case ONNX_Unsqueeze:
        return from_same_place;
    default: return NULL;
    }
}

static void step_coordinates(int64_t *at, const int64_t *sizes, int rank)
{
    for (int i = rank - 1; i >= 0 && ++at[i] == sizes[i]; i--)
        at[i] = 0;
}

static const uint8_t *loaded_bytes(Arena *a, const Value *v)
{
    int64_t  sizes[FOLD_RANK];
    uint64_t n;
    if (!small_sizes(v, sizes, &n))
        return NULL;
    size_t   nbytes = (size_t)n * p2o_dtype_bytes(v->dtype);
    uint8_t *bytes = p2o_alloc(a, nbytes + 1);
    return p2o_tensor_load(v->tensor, bytes, nbytes) ? bytes : NULL;
}

static const Tensor *moved(const Node *n, OriginFn *origin, const int64_t *sizes, uint64_t nelem)
{
    Arena          *a = n->graph->arena;
    Value          *y = n->out[0];
    size_t          item = p2o_dtype_bytes(y->dtype);
    uint8_t        *bytes = p2o_alloc(a, (size_t)nelem * item + 1);
    int64_t         at[FOLD_RANK] = { 0 };
    const uint8_t **in = NEW_N(a, const uint8_t *, (size_t)n->nin);
    for (int i = 0; i < (n->op == ONNX_Concat ? n->nin : 1); i++)
        if (!(in[i] = loaded_bytes(a, n->in[i])))
            return NULL;
    if (origin == from_same_place)
        return p2o_tensor_make(a, y->dtype, y->shape.rank, sizes, in[0]);
    for (uint64_t k = 0; k < nelem; k++) {
        Origin from = { 0 };
        if (!origin(n, at, &from) || !is_inside(n, &from))
            return NULL;
        memcpy(bytes + k * item, in[from.input] + flat_index(n->in[from.input], from.at) * item,
               item);
        step_coordinates(at, sizes, y->shape.rank);
    }
    return p2o_tensor_make(a, y->dtype, y->shape.rank, sizes, bytes);
}

/* A float is cast to an integer only where the type holds it: elsewhere results differ by
 * machine. */
static const Tensor *cast_element(Arena *a, const Tensor *x, uint64_t i, DType to)
{
    double  f;
    int64_t whole, back;
    if (p2o_tensor_get_i64(x, i, &whole))
        return p2o_tensor_scalar(a, to, 0, whole, false);
    if (x->dtype == DT_U64 || !p2o_tensor_get_f64(x, i, &f))
        return NULL;
    const Tensor *y = p2o_tensor_scalar(a, to, f, 0, true);
    bool fits = !is_int(to) || (p2o_tensor_get_i64(y, 0, &back) && (double)back == trunc(f));
    return fits ? y : NULL;
}

static bool int_result(OnnxOp op, int64_t x, int64_t y, int64_t *z)
{
    uint64_t u = (uint64_t)x, v = (uint64_t)y;
    switch (op) {
    case ONNX_Add: *z = (int64_t)(u + v); return true;
    case ONNX_Sub: *z = (int64_t)(u - v); return true;
    case ONNX_Mul: *z = (int64_t)(u * v); return true;
    default: return false;
    }
}

static bool float_result(OnnxOp op, double x, double y, double *z)
{
    switch (op) {
    case ONNX_Add: *z = x + y; return true;
    case ONNX_Sub: *z = x - y; return true;
    case ONNX_Mul: *z = x * y; return true;
    case ONNX_Div: *z = x / y; return true;
    default: return false;
    }
}

/* The element of v that is broadcast to this place of n's output. */
static uint64_t broadcast_index(const Node *n, const Value *v, const int64_t *at)
{
    uint64_t k = 0;
    int      lead = n->out[0]->shape.rank - v->shape.rank;
    for (int i = 0; i < v->shape.rank; i++) {
        int64_t size = known_size(v, i);
        k = k * (uint64_t)size + (size == 1 ? 0 : (uint64_t)at[lead + i]);
    }
    return k;
}

static const Tensor *combined_element(const Node *n, const int64_t *at)
{
    const Tensor *x = n->in[0]->tensor, *y = n->in[1]->tensor;
    uint64_t      ix = broadcast_index(n, n->in[0], at), iy = broadcast_index(n, n->in[1], at);
    DType         t = x->dtype;
    int64_t       a, b, c;
    double        f, g, h;
    if (p2o_tensor_get_i64(x, ix, &a) && p2o_tensor_get_i64(y, iy, &b))
        return int_result(n->op, a, b, &c) ? p2o_tensor_scalar(n->graph->arena, t, 0, c, false)
                                           : NULL;
    if (!is_float(t) || !p2o_tensor_get_f64(x, ix, &f) || !p2o_tensor_get_f64(y, iy, &g) ||
        !float_result(n->op, f, g, &h))
        return NULL;
    return p2o_tensor_scalar(n->graph->arena, t, h, 0, true);
}

static const Tensor *computed_elements(const Node *n, const int64_t *sizes, uint64_t nelem)
{
    Arena       *a = n->graph->arena;
    const Value *y = n->out[0];
    size_t       item = p2o_dtype_bytes(y->dtype);
    uint8_t     *bytes = p2o_alloc(a, (size_t)nelem * item + 1);
    int64_t      at[FOLD_RANK] = { 0 };
    for (uint64_t i = 0; i < nelem; i++) {
        const Tensor *e = n->op == ONNX_Cast ? cast_element(a, n->in[0]->tensor, i, y->dtype)
                                             : combined_element(n, at);
        if (!e || !p2o_tensor_load(e, bytes + i * item, item))
            return NULL;
        step_coordinates(at, sizes, y->shape.rank);
    }
    return p2o_tensor_make(a, y->dtype, y->shape.rank, sizes, bytes);
}

static bool computes_elements(OnnxOp op)
{
    return op == ONNX_Cast || op == ONNX_Add || op == ONNX_Sub || op == ONNX_Mul || op == ONNX_Div;
}

static bool has_folded_type(DType t) { return t == DT_BOOL || is_int(t) || is_real_type(t); }

const Tensor *p2o_fold(const Node *n)
{
    OriginFn *origin = origin_rule(n->op);
    int64_t   sizes[FOLD_RANK];
    uint64_t  nelem;
    if ((!origin && !computes_elements(n->op)) || !has_folded_type(n->out[0]->dtype))
        return NULL;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !(is_small_constant(n->in[i]) && has_folded_type(n->in[i]->dtype)))
            return NULL;
    if (!small_sizes(n->out[0], sizes, &nelem))
        return NULL;
    return origin ? moved(n, origin, sizes, nelem) : computed_elements(n, sizes, nelem);
}
