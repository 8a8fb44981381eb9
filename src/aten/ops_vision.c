/* Sampling at given places, boxes, and what torchvision adds. */
#include "aten/lower.h"

static void shape_grid_sampler(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "input");
    Shape grid = shape_arg(c, "grid");
    int   n = x.shape.rank - 2;
    if ((n != 2 && n != 3) || !must_rank(in, c, "grid", n + 2)) {
        rule_fail(in, "input of rank %d", x.shape.rank);
        return;
    }
    if (!must_equal(in, c, x.shape.at[0], grid.at[0], "batches") ||
        !must_equal(in, c, grid.at[n + 1], int_dim(in, n), "coordinates"))
        return;
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < n; i++)
        at[2 + i] = grid.at[1 + i];
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

/* Opset 20 brought three dims and other names of the modes. */
static Value *lower_grid_sampler(Lower *lo, const Call *c)
{
    static const char *const modes[] = { "linear", "nearest", "cubic" };
    static const char *const old_modes[] = { "bilinear", "nearest", "bicubic" };
    static const char *const paddings[] = { "zeros", "border", "reflection" };
    Value  *x = tensor_arg(lo, c, "input"), *grid = tensor_arg(lo, c, "grid");
    int64_t mode = int_arg(c, "interpolation_mode"), padding = int_arg(c, "padding_mode");

    if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
        return unsupported(lo, c, "interpolation mode %lld, padding mode %lld", (long long)mode,
                           (long long)padding);
    if (rank(x) == 5 && (lo->opset < 20 || mode == 2))
        return unsupported(
            lo, c, "%s", mode == 2 ? "cubic sampling in three dims" : "three dims before opset 20");
    return emit_with(lo, ONNX_GridSample,
                     ATTRS(attr_str("mode", (lo->opset >= 20 ? modes : old_modes)[mode]),
                           attr_str("padding_mode", paddings[padding]),
                           attr_int("align_corners", bool_arg(c, "align_corners"))),
                     x, cast(lo, grid, x->dtype));
}

/* theta [N, n, n + 1] and size [N, C, ...] of n + 2 give [N, ..., n]. */
static void shape_affine_grid(Infer *in, const Call *c)
{
    Type  theta = type_arg(c, "theta");
    Shape size = shape_list(in, c, "size");
    int   n = size.rank - 2;
    if ((n != 2 && n != 3) || theta.shape.rank != 3) {
        rule_fail(in, "theta of rank %d for a size of %d entries", theta.shape.rank, size.rank);
        return;
    }
    if (!must_equal(in, c, theta.shape.at[0], size.at[0], "batches") ||
        !must_equal(in, c, theta.shape.at[1], int_dim(in, n), "rows of theta") ||
        !must_equal(in, c, theta.shape.at[2], int_dim(in, n + 1), "columns of theta"))
        return;
    Shape spatial = slice_shape(size, 2, size.rank);
    Shape grid = insert_dim(in, spatial, 0, theta.shape.at[0]);
    set_out(in, c, 0, theta.dtype, insert_dim(in, grid, grid.rank, int_dim(in, n)));
}

/* Column k of theta, [N, 1, ..., n]. */
static Value *theta_column(Lower *lo, Value *theta, int k, int n)
{
    Value *v = select_axis(lo, theta, 2, p2o_dim_int(lo->dims, k));
    return emit(lo, ONNX_Unsqueeze, v, ints_const(lo, (const int64_t[]){ 1, 2, 3 }, (size_t)n));
}

/* Places of n elements whose outer edges are at -1 and 1, or whose centres are when corners are
 * aligned: (2 i - (n - 1)) / n, or / (n - 1), and 0 for a single one. */
static Value *affine_steps(Lower *lo, Dim n, bool align_corners, DType t, int trailing)
{
    Dim    one = p2o_dim_int(lo->dims, 1), rest = p2o_dim_sub(lo->dims, n, one);
    Dim    by = align_corners ? p2o_dim_max(lo->dims, rest, one) : n;
    Value *at = emit(lo, ONNX_Sub, range_of(lo, n, 2), dim_value(lo, rest));
    at = emit(lo, ONNX_Div, cast(lo, at, t), cast(lo, dim_value(lo, by), t));
    return emit(lo, ONNX_Unsqueeze, at,
                ints_const(lo, (const int64_t[]){ 1, 2, 3 }, (size_t)trailing));
}

static bool is_longer_than_one(Lower *lo, Shape size)
{
    for (int i = 2; i < size.rank; i++)
        if (p2o_dim_lt(lo->dims, p2o_dim_int(lo->dims, 1), size.at[i]) != YES)
            return false;
    return true;
}

/* theta times (x, y, ..., 1), x along the last axis.  AffineGrid has a single aligned step at
 * -1. */
static Value *lower_affine_grid(Lower *lo, const Call *c)
{
    Value *theta = tensor_arg(lo, c, "theta"), *sum = NULL;
    int    n = list_len(c, "size") - 2;
    bool   align = bool_arg(c, "align_corners");
    Dim    at[5];
    for (int i = 0; i < n + 2; i++)
        at[i] = dim_item(c, "size", i);
    Shape size = { n + 2, at };
    if (lo->opset >= 20 && (!align || is_longer_than_one(lo, size)))
        return emit_with(lo, ONNX_AffineGrid, ATTRS(attr_int("align_corners", align)), theta,
                         shape_value(lo, size));
    for (int k = 0; k < n; k++) {
        Value *steps = affine_steps(lo, at[n + 1 - k], align, theta->dtype, k + 1);
        Value *term = emit(lo, ONNX_Mul, steps, theta_column(lo, theta, k, n));
        sum = sum ? emit(lo, ONNX_Add, sum, term) : term;
    }
    return emit(lo, ONNX_Add, sum, theta_column(lo, theta, n, n));
}

static void shape_nms(Infer *in, const Call *c)
{
    Shape boxes = shape_arg(c, "dets");
    if (!must_rank(in, c, "dets", 2) || !must_rank(in, c, "scores", 1) ||
        !must_equal(in, c, boxes.at[1], int_dim(in, 4), "coordinates of a box") ||
        !must_equal(in, c, boxes.at[0], shape_arg(c, "scores").at[0], "boxes and scores"))
        return;
    Dim kept = data_dim(in, c, 0, 0);
    set_out(in, c, 0, DT_I64, (Shape){ 1, &kept });
}

/* One batch of one class; of (batch, class, box) the box, best first.  Which of a box's corners
 * come first makes no difference to areas. */
static Value *lower_nms(Lower *lo, const Call *c)
{
    Value *boxes = tensor_arg(lo, c, "dets"), *scores = tensor_arg(lo, c, "scores");
    double threshold = float_arg(c, "iou_threshold");
    if (boxes->dtype == DT_F64 || scores->dtype == DT_F64)
        return unsupported(lo, c, "boxes of float64");
    if (!(threshold >= 0 && threshold <= 1))
        return unsupported(lo, c, "iou_threshold %g", threshold);
    Value *most = dim_value(lo, size_at(boxes, 0));
    boxes = unsqueeze(lo, cast(lo, boxes, DT_F32), 0);
    scores = emit(lo, ONNX_Unsqueeze, cast(lo, scores, DT_F32), INTS(lo, 0, 1));
    Value *found =
        emit(lo, ONNX_NonMaxSuppression, boxes, scores, most, num(lo, DT_F32, threshold));
    return select_axis(lo, found, 1, p2o_dim_int(lo->dims, 2));
}

static void shape_roi_align(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "input");
    Shape rois = shape_arg(c, "rois");
    if (!must_rank(in, c, "input", 4) || !must_rank(in, c, "rois", 2) ||
        !must_equal(in, c, rois.at[1], int_dim(in, 5), "batch and coordinates of a box"))
        return;
    Dim at[] = { rois.at[0], x.shape.at[1], dim_arg(c, "pooled_height"),
                 dim_arg(c, "pooled_width") };
    set_out(in, c, 0, x.dtype, (Shape){ 4, at });
}

/* A box is (batch, x1, y1, x2, y2). */
static Value *lower_roi_align(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "input"), *rois = tensor_as(lo, c, "rois", x->dtype);
    int64_t height, width, samples = int_arg(c, "sampling_ratio");
    if (!p2o_dim_is_int(dim_arg(c, "pooled_height"), &height) ||
        !p2o_dim_is_int(dim_arg(c, "pooled_width"), &width))
        return unsupported(lo, c, "an output size known at run time only");
    Value *batch = cast(lo, select_axis(lo, rois, 1, p2o_dim_int(lo->dims, 0)), DT_I64);
    Value *boxes = slice_axis(lo, rois, 1, p2o_dim_int(lo->dims, 1), p2o_dim_int(lo->dims, 5), 1);
    return emit_with(lo, ONNX_RoiAlign,
                     ATTRS(attr_str("mode", "avg"),
                           attr_str("coordinate_transformation_mode",
                                    bool_arg(c, "aligned") ? "half_pixel" : "output_half_pixel"),
                           attr_int("output_height", height), attr_int("output_width", width),
                           attr_int("sampling_ratio", samples > 0 ? samples : 0),
                           attr_float("spatial_scale", float_arg(c, "spatial_scale"))),
                     x, boxes, batch);
}

static void shape_deform_conv(Infer *in, const Call *c)
{
    static const char *const names[2][3] = { { "stride_h", "pad_h", "dilation_h" },
                                             { "stride_w", "pad_w", "dilation_w" } };
    Type    x = type_arg(c, "input");
    Shape   w = shape_arg(c, "weight");
    Dims   *t = in->dims;
    int64_t v[3], groups;
    if (!must_rank(in, c, "input", 4) || !must_rank(in, c, "weight", 4) ||
        !must_rank(in, c, "offset", 4) || !const_dim(in, dim_arg(c, "groups"), "groups", &groups) ||
        !const_dim(in, dim_arg(c, "offset_groups"), "offset_groups", &v[0]) ||
        !must_equal(in, c, x.shape.at[1], p2o_dim_mul(t, w.at[1], int_dim(in, groups)),
                    "input channels"))
        return;
    Dim at[4] = { x.shape.at[0], w.at[0] };
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++)
            if (!const_dim(in, dim_arg(c, names[i][k]), names[i][k], &v[k]))
                return;
        if (v[0] < 1 || v[2] < 1) {
            rule_fail(in, "stride or dilation out of range");
            return;
        }
        Dim steps = p2o_dim_mul(t, p2o_dim_sub(t, w.at[2 + i], int_dim(in, 1)), int_dim(in, v[2]));
        Dim room =
            p2o_dim_sub(t, p2o_dim_add(t, x.shape.at[2 + i], int_dim(in, 2 * v[1] - 1)), steps);
        at[2 + i] = p2o_dim_add(t, p2o_dim_floordiv(t, room, int_dim(in, v[0])), int_dim(in, 1));
    }
    set_out(in, c, 0, x.dtype, (Shape){ 4, at });
}

static Value *lower_deform_conv(Lower *lo, const Call *c)
{
    int64_t *stride = NEW_N(lo->arena, int64_t, 2), *dilation = NEW_N(lo->arena, int64_t, 2);
    int64_t *pads = NEW_N(lo->arena, int64_t, 4);
    stride[0] = int_arg(c, "stride_h");
    stride[1] = int_arg(c, "stride_w");
    dilation[0] = int_arg(c, "dilation_h");
    dilation[1] = int_arg(c, "dilation_w");
    pads[0] = pads[2] = int_arg(c, "pad_h");
    pads[1] = pads[3] = int_arg(c, "pad_w");
    return emit_with(
        lo, ONNX_DeformConv,
        ATTRS(attr_ints("strides", stride, 2), attr_ints("pads", pads, 4),
              attr_ints("dilations", dilation, 2), attr_int("group", int_arg(c, "groups")),
              attr_int("offset_group", int_arg(c, "offset_groups"))),
        tensor_arg(lo, c, "input"), tensor_arg(lo, c, "weight"), tensor_arg(lo, c, "offset"),
        tensor_arg(lo, c, "bias"), bool_arg(c, "use_mask") ? tensor_arg(lo, c, "mask") : NULL);
}

#define GRID_SAMPLER_ROW(name)                                                                     \
    {                                                                                              \
        name "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "              \
             "bool align_corners) -> Tensor",                                                      \
            shape_grid_sampler, .lower = lower_grid_sampler,                                       \
                                .limits = "three dims from opset 20 on, not cubic"                 \
    }

const AtenOp p2o_ops_vision[] = {
    GRID_SAMPLER_ROW("grid_sampler"),
    GRID_SAMPLER_ROW("grid_sampler_2d"),
    GRID_SAMPLER_ROW("grid_sampler_3d"),
    GRID_SAMPLER_ROW("_grid_sampler_2d_cpu_fallback"),
    { "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
      shape_affine_grid, .lower = lower_affine_grid },
    { "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", shape_nms,
      .lower = lower_nms, .limits = "not float64" },
    { "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
      shape_roi_align, .lower = lower_roi_align, .to = 21, .limits = "a fixed output size" },
    { "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
      shape_deform_conv, .lower = lower_deform_conv, .from = 19,
      .roles = "stride_h:setting stride_w:setting pad_h:setting pad_w:setting dilation_h:setting "
               "dilation_w:setting groups:setting offset_groups:setting" },
    { 0 },
};
