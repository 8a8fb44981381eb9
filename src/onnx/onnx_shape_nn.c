/* Rules of convolution, pooling, resampling and matrix products.
 *
 * Windows follow one formula for every rank: how many times a kernel of extent
 * dilation * (k - 1) + 1 fits into the padded size.  Kernel sizes are Dims too, since a weight may
 * be computed. */
#include "onnx/onnx_rules.h"

enum { NO_INPUT = -1 };

static bool is_attr_sized(const Node *n, const char *name, size_t want)
{
    const Attr *a = p2o_node_attr(n, name);
    return !a || (a->kind == ATTR_INTS && a->n == want);
}

/* The spatial attributes, where present, have one number an axis (pads two) and positive steps. */
static bool has_window_attrs(const Node *n, int spatial)
{
    size_t k = (size_t)spatial;
    if (!is_attr_sized(n, "kernel_shape", k) || !is_attr_sized(n, "strides", k) ||
        !is_attr_sized(n, "dilations", k) || !is_attr_sized(n, "pads", 2 * k))
        return false;
    for (size_t i = 0; i < k; i++)
        if (p2o_onnx_int_at(n, "strides", i, 1) < 1 || p2o_onnx_int_at(n, "dilations", i, 1) < 1)
            return false;
    return true;
}

/* dilation * (k - 1) + 1 on axis i. */
static Dim kernel_extent(Graph *g, const Node *n, int i, Dim k)
{
    int64_t dilation = p2o_onnx_int_at(n, "dilations", (size_t)i, 1);
    return dim_plus(g, dim_times(g, dim_plus(g, k, -1), dilation), 1);
}

/* Windows of `extent` over `size` on spatial axis i of `spatial`.  In ceil mode a last window may
 * hang over the end, but not start in the padding there. */
static Dim window_count(Graph *g, const Node *n, int i, int spatial, Dim size, Dim extent)
{
    Dims   *t = g->dims;
    int64_t step = p2o_onnx_int_at(n, "strides", (size_t)i, 1);
    Dim     stride = p2o_dim_int(t, step);
    if (p2o_onnx_str_is(n, "auto_pad", "NOTSET", "SAME_UPPER") ||
        p2o_onnx_str_is(n, "auto_pad", "NOTSET", "SAME_LOWER"))
        return p2o_dim_ceildiv(t, size, stride);

    bool    padded = p2o_onnx_str_is(n, "auto_pad", "NOTSET", "NOTSET");
    int64_t begin = padded ? p2o_onnx_int_at(n, "pads", (size_t)i, 0) : 0;
    int64_t end = padded ? p2o_onnx_int_at(n, "pads", (size_t)(i + spatial), 0) : 0;
    Dim     from = dim_plus(g, size, begin);
    Dim     room = p2o_dim_sub(t, dim_plus(g, from, end), extent);
    if (!p2o_node_int(n, "ceil_mode", 0))
        return dim_plus(g, p2o_dim_floordiv(t, room, stride), 1);
    Dim     count = dim_plus(g, p2o_dim_ceildiv(t, room, stride), 1);
    int64_t k, last;
    if (p2o_dim_is_int(extent, &k) && add_i64(end, step, &last) && last <= k)
        return count;                    /* every window starts before the padding */
    return p2o_dim_min(t, count, p2o_dim_ceildiv(t, from, stride));
}

static bool convolve(Graph *g, Node *n, const Value *x, const Value *w, DType t)
{
    int rank = x->shape.rank, spatial = rank - 2;
    if (rank < 3 || w->shape.rank != rank || !has_window_attrs(n, spatial))
        return false;
    Dim group = p2o_dim_int(g->dims, p2o_node_int(n, "group", 1));
    if (!p2o_onnx_equal(g, x->shape.at[1], p2o_dim_mul(g->dims, w->shape.at[1], group), "channels"))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    at[1] = w->shape.at[0];
    for (int i = 0; i < spatial; i++)
        at[2 + i] = window_count(g, n, i, spatial, x->shape.at[2 + i],
                                 kernel_extent(g, n, i, w->shape.at[2 + i]));
    return p2o_onnx_set(g, n, 0, t, rank, at);
}

bool p2o_onnx_rule_conv(Graph *g, Node *n)
{
    const Value *x = n->in[0], *w = n->in[1], *b = input_at(n, 2);
    return is_real_type(x->dtype) && w->dtype == x->dtype &&
           (!b || (b->dtype == x->dtype && b->shape.rank == 1)) && convolve(g, n, x, w, x->dtype);
}

bool p2o_onnx_rule_deform_conv(Graph *g, Node *n)
{
    return is_real_type(n->in[0]->dtype) && n->in[1]->dtype == n->in[0]->dtype &&
           convolve(g, n, n->in[0], n->in[1], n->in[0]->dtype);
}

bool p2o_onnx_rule_conv_integer(Graph *g, Node *n)
{
    return convolve(g, n, n->in[0], n->in[1], DT_I32);
}

bool p2o_onnx_rule_qlinear_conv(Graph *g, Node *n)
{
    return convolve(g, n, n->in[0], n->in[3], n->in[7]->dtype);
}

/* stride * (in - 1) + output_padding + extent - pads */
static Dim transposed_size(Graph *g, const Node *n, int i, int spatial, Dim size, Dim extent)
{
    int64_t fixed = p2o_onnx_int_at(n, "output_shape", (size_t)i, NO_INPUT);
    int64_t stride = p2o_onnx_int_at(n, "strides", (size_t)i, 1);
    if (fixed != NO_INPUT)
        return p2o_dim_int(g->dims, fixed);
    if (p2o_onnx_str_is(n, "auto_pad", "NOTSET", "SAME_UPPER") ||
        p2o_onnx_str_is(n, "auto_pad", "NOTSET", "SAME_LOWER"))
        return dim_times(g, size, stride);
    Dim out = p2o_dim_add(g->dims, dim_times(g, dim_plus(g, size, -1), stride), extent);
    out = dim_plus(g, out, p2o_onnx_int_at(n, "output_padding", (size_t)i, 0));
    if (!p2o_onnx_str_is(n, "auto_pad", "NOTSET", "NOTSET"))
        return out;
    out = p2o_dim_sub(g->dims, out, p2o_dim_int(g->dims, p2o_onnx_int_at(n, "pads", (size_t)i, 0)));
    return p2o_dim_sub(g->dims, out,
                       p2o_dim_int(g->dims, p2o_onnx_int_at(n, "pads", (size_t)(i + spatial), 0)));
}

bool p2o_onnx_rule_conv_transpose(Graph *g, Node *n)
{
    const Value *x = n->in[0], *w = n->in[1];
    int          rank = x->shape.rank, spatial = rank - 2;
    if (!is_real_type(x->dtype) || w->dtype != x->dtype || rank < 3 || w->shape.rank != rank ||
        !has_window_attrs(n, spatial) || !is_attr_sized(n, "output_padding", (size_t)spatial) ||
        !is_attr_sized(n, "output_shape", (size_t)spatial) ||
        !p2o_onnx_equal(g, x->shape.at[1], w->shape.at[0], "channels"))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    at[1] = dim_times(g, w->shape.at[1], p2o_node_int(n, "group", 1));
    for (int i = 0; i < spatial; i++)
        at[2 + i] = transposed_size(g, n, i, spatial, x->shape.at[2 + i],
                                    kernel_extent(g, n, i, w->shape.at[2 + i]));
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at);
}

bool p2o_onnx_rule_pool(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int          rank = x->shape.rank, spatial = rank - 2;
    if (rank < 3 || !p2o_node_attr(n, "kernel_shape") || !has_window_attrs(n, spatial))
        return false;
    if (p2o_node_attr(n, "dilations") && n->op != ONNX_MaxPool &&
        g->opset < (n->op == ONNX_AveragePool ? 19 : 18))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 0; i < spatial; i++) {
        Dim k = p2o_dim_int(g->dims, p2o_onnx_int_at(n, "kernel_shape", (size_t)i, 1));
        at[2 + i] = window_count(g, n, i, spatial, x->shape.at[2 + i], kernel_extent(g, n, i, k));
    }
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at) && p2o_onnx_set(g, n, 1, DT_I64, rank, at);
}

bool p2o_onnx_rule_global_pool(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    if (x->shape.rank < 3 || !is_real_type(x->dtype))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 2; i < x->shape.rank; i++)
        at[i] = p2o_dim_int(g->dims, 1);
    return p2o_onnx_set(g, n, 0, x->dtype, x->shape.rank, at);
}

bool p2o_onnx_rule_max_unpool(Graph *g, Node *n)
{
    const Value *x = n->in[0], *to = input_at(n, 2);
    int          rank = x->shape.rank, spatial = rank - 2, len;
    if (rank < 3 || n->in[1]->dtype != DT_I64 || !has_window_attrs(n, spatial) ||
        (to && (!p2o_onnx_length(to, &len) || len != rank)))
        return false;
    if (to && to->ints)
        return p2o_onnx_set(g, n, 0, x->dtype, rank, to->ints);
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 0; i < spatial; i++) {
        Dim k = p2o_dim_int(g->dims, p2o_onnx_int_at(n, "kernel_shape", (size_t)i, 1));
        at[2 + i] = to ? p2o_onnx_fresh(g) : transposed_size(g, n, i, spatial, at[2 + i], k);
    }
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at);
}

/* [N, C * product(block), L] -> [N, C, image ...] */
bool p2o_onnx_rule_col2im(Graph *g, Node *n)
{
    const Value *x = n->in[0], *image = n->in[1], *block = n->in[2];
    int          spatial, nblock;
    if (x->shape.rank != 3 || !p2o_onnx_length(image, &spatial) ||
        !p2o_onnx_length(block, &nblock) || nblock != spatial || spatial + 2 > MAX_RANK)
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)spatial + 2), area = p2o_dim_int(g->dims, 1),
        count = area;
    at[0] = x->shape.at[0];
    for (int i = 0; i < spatial; i++) {
        at[2 + i] = image->ints ? image->ints[i] : p2o_onnx_fresh(g);
        if (!block->ints)
            continue;
        Dim extent = kernel_extent(g, n, i, block->ints[i]);
        area = p2o_dim_mul(g->dims, area, block->ints[i]);
        count = p2o_dim_mul(g->dims, count, window_count(g, n, i, spatial, at[2 + i], extent));
    }
    bool known = image->ints && block->ints;
    if (!has_window_attrs(n, spatial) ||
        (known && !p2o_onnx_equal(g, x->shape.at[2], count, "blocks")))
        return false;
    at[1] = block->ints ? p2o_onnx_quotient(g, x->shape.at[1], area) : p2o_onnx_fresh(g);
    return p2o_onnx_set(g, n, 0, x->dtype, spatial + 2, at);
}

static bool crop_regions(Graph *g, Node *n, int64_t height, int64_t width)
{
    const Value *x = n->in[0], *rois = n->in[1];
    if (x->shape.rank != 4 || rois->shape.rank != 2 || rois->dtype != x->dtype)
        return false;
    Dim at[4] = { rois->shape.at[0], x->shape.at[1], p2o_dim_int(g->dims, height),
                  p2o_dim_int(g->dims, width) };
    return p2o_onnx_set(g, n, 0, x->dtype, 4, at);
}

bool p2o_onnx_rule_roi_align(Graph *g, Node *n)
{
    return n->in[2]->dtype == DT_I64 &&
           crop_regions(g, n, p2o_node_int(n, "output_height", 1),
                        p2o_node_int(n, "output_width", 1));
}

bool p2o_onnx_rule_max_roi_pool(Graph *g, Node *n)
{
    return p2o_node_attr(n, "pooled_shape") &&
           crop_regions(g, n, p2o_onnx_int_at(n, "pooled_shape", 0, 1),
                        p2o_onnx_int_at(n, "pooled_shape", 1, 1));
}

bool p2o_onnx_rule_grid_sample(Graph *g, Node *n)
{
    const Value *x = n->in[0], *grid = n->in[1];
    int          rank = x->shape.rank;
    if (rank < 3 || grid->shape.rank != rank || (rank != 4 && g->opset < 20) ||
        (g->sizes && !p2o_onnx_equal(g, x->shape.at[0], grid->shape.at[0], "batch")))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 2; i < rank; i++)
        at[i] = grid->shape.at[i - 1];
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at);
}

/* size is [N, C, H, W] or [N, C, D, H, W]; the grid leaves out C and ends in the coordinates. */
bool p2o_onnx_rule_affine_grid(Graph *g, Node *n)
{
    const Value *theta = n->in[0], *size = n->in[1];
    int          len;
    if (theta->shape.rank != 3 || !p2o_onnx_length(size, &len) || len < 4 || len > 5 ||
        (g->sizes && size->ints && !p2o_onnx_equal(g, theta->shape.at[0], size->ints[0], "batch")))
        return false;
    Dim at[5] = { theta->shape.at[0] };
    for (int i = 2; i < len; i++)
        at[i - 1] = size->ints ? size->ints[i] : p2o_onnx_fresh(g);
    at[len - 1] = p2o_dim_int(g->dims, len - 2);
    return p2o_onnx_set(g, n, 0, theta->dtype, len, at);
}

/* floor(size * scale).  A scale with few fraction bits is exact for every size; else only a known
 * size has a known result, multiplied in single precision as runtimes do. */
static Dim scaled_size(Graph *g, Dim size, double scale)
{
    enum { DENOMINATOR = 1024 };
    double  num = scale * DENOMINATOR;
    int64_t v;
    if (!(scale > 0) || scale > 1e6)
        return NULL;
    if ((double)(int64_t)num == num)
        return p2o_dim_floordiv(g->dims, dim_times(g, size, (int64_t)num),
                                p2o_dim_int(g->dims, DENOMINATOR));
    if (p2o_dim_is_int(size, &v) && v < 1 << 24)
        return p2o_dim_int(g->dims, (int64_t)((float)v * (float)scale));
    return p2o_onnx_fresh(g);
}

/* One number an axis, from sizes or scales; a policy that keeps proportions gives fresh sizes. */
bool p2o_onnx_rule_resize(Graph *g, Node *n)
{
    const Value *x = n->in[0], *scales = input_at(n, 2), *sizes = input_at(n, 3);
    const Attr  *axes = p2o_node_attr(n, "axes");
    bool         stretch = p2o_onnx_str_is(n, "keep_aspect_ratio_policy", "stretch", "stretch");
    int          count, rank = x->shape.rank;
    if (scales && sizes && sizes->shape.rank == 1 && p2o_onnx_length(scales, &count) && count == 0)
        scales = NULL;                   /* an empty vector is how opset 11 left scales out */
    if (!scales == !sizes || !p2o_onnx_length(sizes ? sizes : scales, &count) ||
        (axes ? axes->n != (size_t)count || g->opset < 18 : count != rank) ||
        (sizes ? sizes->dtype != DT_I64 : scales->dtype != DT_F32))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 0; i < count; i++) {
        int    axis;
        double scale;
        if (!p2o_wrap_dim(p2o_onnx_int_at(n, "axes", (size_t)i, i), rank, false, &axis))
            return false;
        if (sizes)
            at[axis] = sizes->ints && stretch ? sizes->ints[i] : p2o_onnx_fresh(g);
        else if (scales->tensor && p2o_tensor_get_f64(scales->tensor, (uint64_t)i, &scale))
            at[axis] = scaled_size(g, at[axis], scale);
        else
            at[axis] = p2o_onnx_fresh(g);
    }
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at);
}

bool p2o_onnx_rule_nms(Graph *g, Node *n)
{
    Dim at[2] = { p2o_onnx_fresh(g), p2o_dim_int(g->dims, 3) };
    return n->in[0]->dtype == DT_F32 && n->in[0]->shape.rank == 3 && n->in[1]->dtype == DT_F32 &&
           n->in[1]->shape.rank == 3 && p2o_onnx_set(g, n, 0, DT_I64, 2, at);
}

bool p2o_onnx_rule_gemm(Graph *g, Node *n)
{
    const Value *a = n->in[0], *b = n->in[1], *c = input_at(n, 2);
    int          ta = p2o_node_int(n, "transA", 0) != 0, tb = p2o_node_int(n, "transB", 0) != 0;
    if (a->shape.rank != 2 || b->shape.rank != 2 || a->dtype != b->dtype ||
        !is_numeric_type(a->dtype) ||
        !p2o_onnx_equal(g, a->shape.at[!ta], b->shape.at[tb], "features"))
        return false;
    Dim   at[2] = { a->shape.at[ta], b->shape.at[!tb] };
    Shape s;
    if (c && (c->dtype != a->dtype || c->shape.rank > 2 ||
              !p2o_onnx_broadcast(g, (Shape){ 2, at }, c->shape, &s)))
        return false;
    return p2o_onnx_set(g, n, 0, a->dtype, 2, at);
}

/* numpy.matmul: a vector is a row on the left, a column on the right, and loses its 1 again. */
static bool matrix_product(Graph *g, Node *n, Shape a, Shape b, DType t)
{
    if (a.rank < 1 || b.rank < 1)
        return false;
    Dim   inner = b.at[b.rank == 1 ? 0 : b.rank - 2];
    Shape batch, ba = { a.rank > 2 ? a.rank - 2 : 0, a.at };
    Shape bb = { b.rank > 2 ? b.rank - 2 : 0, b.at };
    if (!p2o_onnx_equal(g, a.at[a.rank - 1], inner, "features") ||
        !p2o_onnx_broadcast(g, ba, bb, &batch))
        return false;
    Dim *at = p2o_shape_copy(g->arena, batch, 2);
    int  rank = batch.rank;
    if (a.rank > 1)
        at[rank++] = a.at[a.rank - 2];
    if (b.rank > 1)
        at[rank++] = b.at[b.rank - 1];
    return p2o_onnx_set(g, n, 0, t, rank, at);
}

bool p2o_onnx_rule_matmul(Graph *g, Node *n)
{
    const Value *a = n->in[0], *b = n->in[1];
    return a->dtype == b->dtype && is_numeric_type(a->dtype) &&
           matrix_product(g, n, a->shape, b->shape, a->dtype);
}

bool p2o_onnx_rule_matmul_integer(Graph *g, Node *n)
{
    return matrix_product(g, n, n->in[0]->shape, n->in[1]->shape, DT_I32);
}

bool p2o_onnx_rule_qlinear_matmul(Graph *g, Node *n)
{
    return matrix_product(g, n, n->in[0]->shape, n->in[3]->shape, n->in[7]->dtype);
}

bool p2o_onnx_rule_det(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    return x->shape.rank >= 2 && is_real_type(x->dtype) &&
           p2o_onnx_set(g, n, 0, x->dtype, x->shape.rank - 2, x->shape.at);
}

bool p2o_onnx_rule_nll_loss(Graph *g, Node *n)
{
    const Value *x = n->in[0], *target = n->in[1];
    Shape        s = { 0 };
    if (p2o_onnx_str_is(n, "reduction", "mean", "none"))
        s = target->shape;
    if (g->sizes && (target->shape.rank < 1 || x->shape.rank < 1 ||
                     !p2o_onnx_equal(g, x->shape.at[0], target->shape.at[0], "batch")))
        return false;
    return is_index_type(target->dtype) && is_real_type(x->dtype) &&
           set_shape(g, n, 0, x->dtype, s) && set_like(g, n, 1, x);
}

typedef struct Heads {                   /* [batch, heads, length, size] of Q, K or V */
    Dim at[4];
} Heads;

static bool split_heads(Graph *g, const Node *n, const Value *x, const char *heads, Heads *out)
{
    const Dim *d = x->shape.at;
    Dim        h = p2o_dim_int(g->dims, p2o_node_int(n, heads, 0));
    if (x->shape.rank == 4)
        *out = (Heads){ { d[0], d[1], d[2], d[3] } };
    else if (x->shape.rank == 3 && p2o_node_int(n, heads, 0) > 0)
        *out = (Heads){ { d[0], h, d[1], p2o_onnx_quotient(g, d[2], h) } };
    else
        return false;
    return true;
}

bool p2o_onnx_rule_attention(Graph *g, Node *n)
{
    const Value *past = input_at(n, 4);
    Heads        q, k, v;
    DType        t = n->in[0]->dtype;
    if (!split_heads(g, n, n->in[0], "q_num_heads", &q) ||
        !split_heads(g, n, n->in[1], "kv_num_heads", &k) ||
        !split_heads(g, n, n->in[2], "kv_num_heads", &v) || !is_real_type(t) ||
        (past && past->shape.rank != 4))
        return false;
    if (g->sizes && !(p2o_onnx_equal(g, q.at[0], k.at[0], "batch") &&
                      p2o_onnx_equal(g, k.at[0], v.at[0], "batch") &&
                      p2o_onnx_equal(g, k.at[2], v.at[2], "length of keys and values")))
        return false;
    if (past)
        k.at[2] = v.at[2] = p2o_dim_add(g->dims, past->shape.at[2], k.at[2]);
    Dim whole[4] = { q.at[0], q.at[1], q.at[2], v.at[3] };
    Dim score[4] = { q.at[0], q.at[1], q.at[2], k.at[2] };
    Dim flat[3] = { q.at[0], q.at[2], p2o_dim_mul(g->dims, q.at[1], v.at[3]) };
    bool is4 = n->in[0]->shape.rank == 4;
    return p2o_onnx_set(g, n, 0, t, is4 ? 4 : 3, is4 ? whole : flat) &&
           p2o_onnx_set(g, n, 1, n->in[1]->dtype, 4, k.at) &&
           p2o_onnx_set(g, n, 2, n->in[2]->dtype, 4, v.at) && p2o_onnx_set(g, n, 3, t, 4, score);
}

enum { LETTERS = 128 };

typedef struct Einsum {
    Dim   letter[LETTERS];               /* size of a subscript; NULL: not seen */
    int   count[LETTERS];
    Shape dots;                          /* what all ellipses broadcast to */
} Einsum;

static bool is_subscript(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* One operand's subscripts against its shape. */
static bool read_term(Graph *g, Einsum *e, Str term, Shape s)
{
    int letters = 0, at = 0;
    for (size_t i = 0; i < term.n; i++)
        letters += is_subscript(term.p[i]);
    for (size_t i = 0; i < term.n; i++) {
        char c = term.p[i];
        if (c == ' ')
            continue;
        if (c == '.') {
            int dots = s.rank - letters;
            if (term.n - i < 3 || term.p[i + 1] != '.' || term.p[i + 2] != '.' || dots < 0 ||
                !p2o_onnx_broadcast(g, e->dots, (Shape){ dots, s.at + at }, &e->dots))
                return false;
            at += dots;
            i += 2;
            continue;
        }
        if (!is_subscript(c) || at >= s.rank)
            return false;
        Shape one = { 1, &e->letter[(int)c] }, both;
        if (!e->letter[(int)c])
            e->letter[(int)c] = s.at[at];
        else if (p2o_onnx_broadcast(g, one, (Shape){ 1, s.at + at }, &both))
            e->letter[(int)c] = both.at[0];
        else
            return false;
        e->count[(int)c]++;
        at++;
    }
    return at == s.rank;
}

/* Without an arrow the output is the ellipsis, then the subscripts used once in order. */
static bool einsum_output(Graph *g, Node *n, const Einsum *e, const char *arrow)
{
    Dim at[MAX_RANK + LETTERS];
    int rank = 0;
    for (int i = 0; i < e->dots.rank && !arrow; i++)
        at[rank++] = e->dots.at[i];
    for (int c = 0; c < LETTERS && !arrow; c++)
        if (e->count[c] == 1)
            at[rank++] = e->letter[c];
    for (const char *p = arrow ? arrow + 2 : ""; *p; p++) {
        if (*p == '.' && p[1] == '.' && p[2] == '.') {
            for (int i = 0; i < e->dots.rank && rank < MAX_RANK; i++)
                at[rank++] = e->dots.at[i];
            p += 2;
        } else if (is_subscript(*p) && e->letter[(int)*p] && rank < MAX_RANK) {
            at[rank++] = e->letter[(int)*p];
        } else if (*p != ' ') {
            return false;
        }
    }
    return p2o_onnx_set(g, n, 0, n->in[0]->dtype, rank, at);
}

bool p2o_onnx_rule_einsum(Graph *g, Node *n)
{
    const Attr *a = p2o_node_attr(n, "equation");
    Einsum      e = { 0 };
    if (!a || a->kind != ATTR_STR)
        return false;
    const char *arrow = strstr(a->s, "->");
    Str         rest = { a->s, arrow ? (size_t)(arrow - a->s) : strlen(a->s) };
    for (int i = 0; i < n->nin; i++) {
        Str term = p2o_str_cut(rest, ',', &rest);
        if (!n->in[i] || n->in[i]->dtype != n->in[0]->dtype ||
            !read_term(g, &e, term, n->in[i]->shape))
            return false;
    }
    return rest.n == 0 && einsum_output(g, n, &e, arrow);
}
