/* Normalisations.
 *
 * Statistics of half-precision inputs are computed in f32.  What a file recorded of the type of
 * statistics is kept: it depends on the device of the capture. */
#include "aten/lower.h"

#include <float.h>
#include <math.h>

static DType stat_compute(DType t) { return t == DT_F64 ? DT_F64 : DT_F32; }

static DType stat_dtype(const Call *c, int i, DType otherwise)
{
    const Var *v = c->outs[i];
    bool       known = v && v->recorded.kind == TY_TENSOR && is_float(v->recorded.dtype);
    return known ? v->recorded.dtype : otherwise;
}

/* A vector of one number a channel, against axis 1 of a tensor of this rank. */
static Value *per_channel(Lower *lo, Value *v, int of_rank)
{
    int64_t axes[MAX_RANK];
    int     n = of_rank - 2;
    for (int i = 0; i < n; i++)
        axes[i] = 1 + i;
    return n > 0 ? emit(lo, ONNX_Unsqueeze, v, ints_const(lo, axes, (size_t)n)) : v;
}

typedef struct Stats {
    Value *mean, *var, *rstd;   /* keeping the axes */
    Value *centred;             /* x - mean */
} Stats;

/* rstd = 1 / sqrt(var + eps), var the mean of squares: not corrected. */
static Stats stats_over(Lower *lo, Value *x, const int64_t *axes, int n, double eps)
{
    Stats s = { .mean = reduce(lo, ONNX_ReduceMean, x, axes, n, true) };
    s.centred = emit(lo, ONNX_Sub, x, s.mean);
    s.var = reduce(lo, ONNX_ReduceMean, emit(lo, ONNX_Mul, s.centred, s.centred), axes, n, true);
    s.rstd = emit(lo, ONNX_Reciprocal,
                  emit(lo, ONNX_Sqrt, emit(lo, ONNX_Add, s.var, num(lo, x->dtype, eps))));
    return s;
}

static Value *optional_channel(Lower *lo, const Call *c, const char *name, DType t, int of_rank)
{
    return has_arg(c, name) ? per_channel(lo, tensor_as(lo, c, name, t), of_rank) : NULL;
}

/* y * weight + bias, each where there is one. */
static Value *scale_channels(Lower *lo, const Call *c, Value *y)
{
    Value *w = optional_channel(lo, c, "weight", y->dtype, rank(y));
    Value *b = optional_channel(lo, c, "bias", y->dtype, rank(y));
    if (w)
        y = emit(lo, ONNX_Mul, y, w);
    return b ? emit(lo, ONNX_Add, y, b) : y;
}

/* One number again and again: a constant where the sizes are known. */
static Value *repeated(Lower *lo, Shape s, DType t, double f)
{
    int64_t *sizes = NEW_N(lo->arena, int64_t, (size_t)s.rank * 2 + 1);
    for (int i = 0; i < s.rank; i++)
        if (!p2o_dim_is_int(s.at[i], &sizes[i]))
            return full(lo, s, t, f);
    Tensor *x = NEW(lo->arena, Tensor);
    *x = *p2o_tensor_scalar(lo->arena, t, f, 0, true);
    x->rank = s.rank;
    x->sizes = sizes;
    x->strides = sizes + s.rank;            /* all 0 */
    return p2o_build_const(lo->b, x);
}

/* A missing scale is ones, a missing shift zeros; ONNX wants both. */
static Value *channel_or(Lower *lo, const Call *c, const char *name, const Value *x,
                         double otherwise)
{
    Value *v = tensor_arg(lo, c, name);
    return v ? v : repeated(lo, slice_shape(x->shape, 1, 2), x->dtype, otherwise);
}

static double norm_eps(const Call *c)
{
    return float_arg(c, names_arg(c, "eps") ? "eps" : "epsilon");
}

/* Rows without the argument say it in their name. */
static bool is_training(const Call *c)
{
    if (names_arg(c, "training"))
        return bool_arg(c, "training");
    if (names_arg(c, "use_input_stats"))
        return bool_arg(c, "use_input_stats");
    return strstr(c->schema->key, "with_update") != NULL;
}

/* The new running statistics are its last two results. */
static bool is_functional(const Call *c) { return strstr(c->schema->key, "_functional") != NULL; }

static bool has_running(const Call *c)
{
    return names_arg(c, "running_mean") && has_arg(c, "running_mean") && has_arg(c, "running_var");
}

/* Of no elements PyTorch takes any rank. */
static bool is_empty_vector(const Call *c)
{
    Shape x = shape_arg(c, "input");
    return x.rank == 1 && dim_is(x.at[0], 0);
}

static bool is_batch_norm_sound(Infer *in, const Call *c)
{
    static const char *const names[] = { "weight", "bias", "running_mean", "running_var" };
    Type x = type_arg(c, "input");
    if (x.shape.rank < 2) {
        rule_fail(in, "input of rank %d", x.shape.rank);
        return false;
    }
    if (is_complex(x.dtype)) {
        rule_unsupported(in, "complex tensors");
        return false;
    }
    if (!is_training(c) && !has_running(c)) {
        rule_fail(in, "neither training nor running statistics");
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names_arg(c, names[i]) && has_arg(c, names[i]) &&
            (!must_rank(in, c, names[i], 1) ||
             !must_equal(in, c, x.shape.at[1], shape_arg(c, names[i]).at[0], names[i])))
            return false;
    return true;
}

static bool was_recorded_empty(const Call *c, int i)
{
    const Type *t = &c->outs[i]->recorded;
    return t->kind != TY_TENSOR || t->shape.rank != 1 || dim_is(t->shape.at[0], 0);
}

/* The saved mean and rstd: of the batch in training, else empty on the CPU and the running ones
 * elsewhere. */
static bool has_saved(const Call *c, int i) { return is_training(c) || !was_recorded_empty(c, i); }

static bool is_saved(const Call *c, int i) { return (i == 1 || i == 2) && c->outs[i]; }

/* Results: y, saved mean, saved rstd, then what cuDNN keeps for itself, then the new running mean
 * and variance. */
static void shape_batch_norm(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    Dim  none = int_dim(in, 0);
    int  running = is_functional(c) ? nouts(c) - 2 : nouts(c);
    if (!(nouts(c) == 1 && is_empty_vector(c)) && !is_batch_norm_sound(in, c))
        return;
    set_out(in, c, 0, x.dtype, x.shape);
    for (int i = 1; i < nouts(c); i++) {
        if (is_saved(c, i))
            set_out(in, c, i, stat_dtype(c, i, x.dtype),
                    has_saved(c, i) ? slice_shape(x.shape, 1, 2) : (Shape){ 1, &none });
        else if (i >= running)
            set_out(in, c, i, type_arg(c, i == running ? "running_mean" : "running_var").dtype,
                    slice_shape(x.shape, 1, 2));
        else if (i == 3)
            set_out(in, c, i, DT_U8, (Shape){ 1, &none });
    }
}

/* Statistics over everything but the channels. */
static Stats batch_stats(Lower *lo, const Call *c, Value *x)
{
    int64_t axes[MAX_RANK];
    int     n = 0;
    for (int i = 0; i < rank(x); i++)
        if (i != 1)
            axes[n++] = i;
    return stats_over(lo, x, axes, n, norm_eps(c));
}

static Value *as_channels(Lower *lo, Value *v, DType t)
{
    return cast(lo, reshape(lo, v, slice_shape(v->shape, 1, 2)), t);
}

/* (1 - momentum) * old + momentum * new; the variance corrected by n / (n - 1). */
static void new_running(Lower *lo, const Call *c, const Value *x, const Stats *s, Value **out)
{
    DType  t = s->mean->dtype;
    double momentum = float_arg(c, "momentum");
    Dim n = p2o_dim_mul(lo->dims, size_at(x, 0), p2o_shape_product(lo->dims, x->shape, 2, rank(x)));
    Value *count = cast(lo, dim_scalar(lo, n), t);
    Value *correction = emit(lo, ONNX_Div, count, emit(lo, ONNX_Sub, count, num(lo, t, 1)));
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "running_var" : "running_mean";
        Value      *now = as_channels(lo, i ? s->var : s->mean, t);
        Value      *old = emit(lo, ONNX_Mul, tensor_as(lo, c, name, t), num(lo, t, 1 - momentum));
        if (i)
            now = emit(lo, ONNX_Mul, now, correction);
        now = emit(lo, ONNX_Mul, now, num(lo, t, momentum));
        out[i] = cast(lo, emit(lo, ONNX_Add, old, now), type_arg(c, name).dtype);
    }
}

static void batch_norm_training(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "input"), *wide = cast(lo, x, stat_compute(x->dtype));
    Stats  s = batch_stats(lo, c, wide);
    out[0] = cast(lo, scale_channels(lo, c, emit(lo, ONNX_Mul, s.centred, s.rstd)), x->dtype);
    for (int i = 1; i < nouts(c) && i < 3; i++)
        out[i] = as_channels(lo, i == 1 ? s.mean : s.rstd, stat_dtype(c, i, x->dtype));
    if (is_functional(c))
        new_running(lo, c, wide, &s, out + nouts(c) - 2);
}

/* Parameters in the type of x, but for half precision, which ONNX lets differ. */
static Value *batch_norm_node(Lower *lo, const Call *c, Value *x)
{
    Value *in[5] = { x, channel_or(lo, c, "weight", x, 1), channel_or(lo, c, "bias", x, 0),
                     tensor_arg(lo, c, "running_mean"), tensor_arg(lo, c, "running_var") };
    for (int i = 1; i < 5; i++)
        if (x->dtype == DT_F32 || x->dtype == DT_F64)
            in[i] = cast(lo, in[i], x->dtype);
    if (in[1]->dtype != in[2]->dtype) {
        in[1] = cast(lo, in[1], DT_F32);
        in[2] = cast(lo, in[2], DT_F32);
    }
    if (in[3]->dtype != in[4]->dtype) {
        in[3] = cast(lo, in[3], DT_F32);
        in[4] = cast(lo, in[4], DT_F32);
    }
    return emit_with(lo, ONNX_BatchNormalization, ATTRS(attr_float("epsilon", norm_eps(c))), in[0],
                     in[1], in[2], in[3], in[4]);
}

static Value *running_stat(Lower *lo, const Call *c, int i)
{
    DType t = stat_compute(out_dtype(c, i));
    if (i == 1)
        return tensor_as(lo, c, "running_mean", out_dtype(c, i));
    Value *shifted =
        emit(lo, ONNX_Add, tensor_as(lo, c, "running_var", t), num(lo, t, norm_eps(c)));
    return cast(lo, emit(lo, ONNX_Reciprocal, emit(lo, ONNX_Sqrt, shifted)), out_dtype(c, i));
}

static void lower_batch_norm(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "input");
    if (is_empty_vector(c)) {
        out[0] = x;
    } else if (is_training(c)) {
        batch_norm_training(lo, c, out);
    } else {
        out[0] = batch_norm_node(lo, c, x);
        for (int i = 1; i < nouts(c) && i < 3; i++)
            if (c->outs[i])
                out[i] = has_saved(c, i) ? running_stat(lo, c, i)
                                         : full(lo, out_shape(c, i), out_dtype(c, i), 0);
        if (is_functional(c)) {
            out[nouts(c) - 2] = tensor_arg(lo, c, "running_mean");
            out[nouts(c) - 1] = tensor_arg(lo, c, "running_var");
        }
    }
    if (nouts(c) > 3 && c->outs[3] && out_dtype(c, 3) == DT_U8)
        out[3] = full(lo, out_shape(c, 3), DT_U8, 0);
}

static void shape_instance_norm(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (!is_batch_norm_sound(in, c))
        return;
    if (x.shape.rank < 3) {
        rule_fail(in, "input of rank %d", x.shape.rank);
        return;
    }
    set_out(in, c, 0, x.dtype, x.shape);
}

/* Statistics over the axes from 2 on; those of x, or the running ones as in a batch norm. */
static Value *lower_instance_norm(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "input");
    int64_t axes[MAX_RANK];
    if (!is_training(c))
        return batch_norm_node(lo, c, x);
    if (x->dtype == DT_F32)
        return emit_with(lo, ONNX_InstanceNormalization, ATTRS(attr_float("epsilon", norm_eps(c))),
                         x, cast(lo, channel_or(lo, c, "weight", x, 1), DT_F32),
                         cast(lo, channel_or(lo, c, "bias", x, 0), DT_F32));
    for (int i = 2; i < rank(x); i++)
        axes[i - 2] = i;
    Stats s = stats_over(lo, cast(lo, x, stat_compute(x->dtype)), axes, rank(x) - 2, norm_eps(c));
    return cast(lo, scale_channels(lo, c, emit(lo, ONNX_Mul, s.centred, s.rstd)), x->dtype);
}

static int64_t group_count(const Call *c)
{
    return int_arg(c, names_arg(c, "group") ? "group" : "num_groups");
}

static void shape_group_norm(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "input");
    int64_t groups = group_count(c), channels;
    if (x.shape.rank < 2 || groups < 1) {
        rule_fail(in, "input of rank %d in %lld groups", x.shape.rank, (long long)groups);
        return;
    }
    if (p2o_dim_is_int(x.shape.at[1], &channels) && channels % groups) {
        rule_fail(in, "%lld channels in %lld groups", (long long)channels, (long long)groups);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "bias" : "weight";
        if (has_arg(c, name) && (!must_rank(in, c, name, 1) ||
                                 !must_equal(in, c, x.shape.at[1], shape_arg(c, name).at[0], name)))
            return;
    }
    set_out(in, c, 0, x.dtype, x.shape);
    Dim at[] = { x.shape.at[0], int_dim(in, groups) };
    for (int i = 1; i < nouts(c); i++)
        if (c->outs[i])
            set_out(in, c, i, stat_dtype(c, i, x.dtype), (Shape){ 2, at });
}

/* [N, groups, channels / groups * the rest] */
static Value *in_groups(Lower *lo, Value *x, int64_t groups)
{
    Dim g = p2o_dim_int(lo->dims, groups), all = p2o_shape_product(lo->dims, x->shape, 1, rank(x));
    Dim each = p2o_dim_exact_div(lo->dims, all, g);
    Dim at[] = { size_at(x, 0), g, each ? each : p2o_dim_floordiv(lo->dims, all, g) };
    return reshape(lo, x, (Shape){ 3, at });
}

/* An instance norm over groups in the place of channels, then the channels' own scale and shift. */
static void lower_group_norm(Lower *lo, const Call *c, Value **out)
{
    static const int64_t last[] = { 2 };
    Value *x = tensor_arg(lo, c, "input"), *wide = cast(lo, x, stat_compute(x->dtype)), *y;
    Value *grouped = in_groups(lo, wide, group_count(c));
    Shape  per_group = slice_shape(grouped->shape, 1, 2);
    Stats  s = { 0 };
    if (nouts(c) > 1 || wide->dtype == DT_F64)
        s = stats_over(lo, grouped, last, 1, norm_eps(c));
    if (wide->dtype == DT_F64)
        y = emit(lo, ONNX_Mul, s.centred, s.rstd);
    else
        y = emit_with(lo, ONNX_InstanceNormalization, ATTRS(attr_float("epsilon", norm_eps(c))),
                      grouped, repeated(lo, per_group, DT_F32, 1),
                      repeated(lo, per_group, DT_F32, 0));
    out[0] = cast(lo, scale_channels(lo, c, reshape(lo, y, x->shape)), x->dtype);
    for (int i = 1; i < nouts(c); i++)
        if (c->outs[i])
            out[i] = cast(lo, squeeze(lo, i == 1 ? s.mean : s.rstd, 2), out_dtype(c, i));
}

/* A mean over the normalized axes keeps them as 1. */
static Shape stat_shape(Infer *in, Shape x, int n)
{
    Dim *at = p2o_shape_copy(in->arena, x, 0);
    for (int i = x.rank - n; i < x.rank; i++)
        at[i] = int_dim(in, 1);
    return (Shape){ x.rank, at };
}

static void shape_layer_norm(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "input");
    Shape norm = shape_list(in, c, "normalized_shape");
    int   lead = x.shape.rank - norm.rank;
    bool  is_rms = !names_arg(c, "bias");
    if (lead < 0 || norm.rank == 0) {
        rule_fail(in, "normalized_shape of rank %d for an input of rank %d", norm.rank,
                  x.shape.rank);
        return;
    }
    if (is_complex(x.dtype)) {
        rule_unsupported(in, "complex tensors");
        return;
    }
    for (int i = 0; i < norm.rank; i++)
        if (!must_equal(in, c, x.shape.at[lead + i], norm.at[i], "normalized size") ||
            (has_arg(c, "weight") &&
             (!must_rank(in, c, "weight", norm.rank) ||
              !must_equal(in, c, norm.at[i], shape_arg(c, "weight").at[i], "size of the weight"))))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
    for (int i = 1; i < nouts(c); i++)
        if (c->outs[i])
            set_out(in, c, i, stat_dtype(c, i, is_rms ? stat_compute(x.dtype) : x.dtype),
                    stat_shape(in, x.shape, norm.rank));
}

static int last_axes(const Call *c, int64_t *axes)
{
    int n = list_len(c, "normalized_shape");
    for (int i = 0; i < n; i++)
        axes[i] = i - n;
    return n;
}

/* ONNX wants one type: parameters of another make it f32. */
static void lower_layer_norm(Lower *lo, const Call *c, Value **out)
{
    Value  *x = tensor_arg(lo, c, "input");
    Value  *w = tensor_arg(lo, c, "weight"), *b = tensor_arg(lo, c, "bias");
    int64_t axes[MAX_RANK];
    int     n = last_axes(c, axes);
    DType   t = x->dtype;
    if ((w && w->dtype != t) || (b && b->dtype != t))
        t = stat_compute(t);
    Value *wide = cast(lo, x, t);
    w = w ? cast(lo, w, t) : repeated(lo, slice_shape(x->shape, rank(x) - n, rank(x)), t, 1);
    out[0] = cast(lo,
                  emit_with(lo, ONNX_LayerNormalization,
                            ATTRS(attr_int("axis", -n), attr_float("epsilon", norm_eps(c))), wide,
                            w, b ? cast(lo, b, t) : NULL),
                  x->dtype);
    if (nouts(c) == 1)
        return;
    Stats s = stats_over(lo, cast(lo, x, stat_compute(t)), axes, n, norm_eps(c));
    for (int i = 1; i < nouts(c); i++)
        if (c->outs[i])
            out[i] = cast(lo, i == 1 ? s.mean : s.rstd, out_dtype(c, i));
}

/* x / sqrt(mean(x^2) + eps) * weight; without eps, that of the type computed in. */
static void lower_rms_norm(Lower *lo, const Call *c, Value **out)
{
    Value  *x = tensor_arg(lo, c, "input"), *w = tensor_arg(lo, c, "weight");
    DType   t = stat_compute(x->dtype);
    double  least = t == DT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    double  eps = has_arg(c, "eps") ? float_arg(c, "eps") : least;
    int64_t axes[MAX_RANK];
    int     n = last_axes(c, axes);
    Value  *wide = cast(lo, x, t);
    Value  *mean = reduce(lo, ONNX_ReduceMean, emit(lo, ONNX_Mul, wide, wide), axes, n, true);
    Value  *root = emit(lo, ONNX_Sqrt, emit(lo, ONNX_Add, mean, num(lo, t, eps)));
    if (nouts(c) > 1 && c->outs[1])
        out[1] = cast(lo, emit(lo, ONNX_Reciprocal, root), out_dtype(c, 1));
    if (lo->opset >= 23 && w && w->dtype == x->dtype) {
        out[0] = emit_with(lo, ONNX_RMSNormalization,
                           ATTRS(attr_int("axis", -n), attr_float("epsilon", eps)), x, w);
        return;
    }
    Value *y = emit(lo, ONNX_Div, wide, root);
    out[0] = cast(lo, w ? emit(lo, ONNX_Mul, y, cast(lo, w, t)) : y, x->dtype);
}

/* v * g / |v|, the norm over all axes but dim; -1: over all. */
static void shape_weight_norm(Infer *in, const Call *c)
{
    Type v = type_arg(c, "v");
    int  dim = -1;
    if (int_arg(c, "dim") != -1 && !must_wrap(in, int_arg(c, "dim"), v.shape.rank, &dim))
        return;
    set_out(in, c, 0, v.dtype, broadcast(in, c, v.shape, shape_arg(c, "g")));
    if (nouts(c) < 2 || !c->outs[1])
        return;
    Dim *at = p2o_shape_copy(in->arena, v.shape, 0);
    for (int i = 0; i < v.shape.rank; i++)
        at[i] = i == dim ? at[i] : int_dim(in, 1);
    set_out(in, c, 1, stat_dtype(c, 1, v.dtype), (Shape){ dim < 0 ? 0 : v.shape.rank, at });
}

static void lower_weight_norm(Lower *lo, const Call *c, Value **out)
{
    Value  *v = tensor_arg(lo, c, "v");
    int64_t axes[MAX_RANK];
    int     n = 0, dim = -1;
    if (int_arg(c, "dim") != -1)
        p2o_wrap_dim(int_arg(c, "dim"), rank(v), false, &dim);
    for (int i = 0; i < rank(v); i++)
        if (i != dim)
            axes[n++] = i;
    Value *norm = n ? reduce(lo, ONNX_ReduceL2, v, axes, n, dim >= 0) : emit(lo, ONNX_Abs, v);
    out[0] = emit(lo, ONNX_Mul, v, emit(lo, ONNX_Div, tensor_as(lo, c, "g", v->dtype), norm));
    if (nouts(c) > 1 && c->outs[1])
        out[1] = cast(lo, norm, out_dtype(c, 1));
}

#define BATCH_NORM_ARGS "(Tensor input, Tensor? weight, Tensor? bias, "
#define BATCH_NORM_ROW(schema) { schema, shape_batch_norm, .lower_many = lower_batch_norm }
#define UPDATING_NORM_ROW(schema) \
    { schema, shape_batch_norm, .lower_many = lower_batch_norm, .updates = true }

const AtenOp p2o_ops_norm[] = {
    UPDATING_NORM_ROW(
        "batch_norm" BATCH_NORM_ARGS
        "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, "
        "bool cudnn_enabled) -> Tensor"),
    UPDATING_NORM_ROW(
        "native_batch_norm" BATCH_NORM_ARGS
        "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor)"),
    UPDATING_NORM_ROW(
        "_native_batch_norm_legit" BATCH_NORM_ARGS
        "Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, "
        "float eps) -> (Tensor, Tensor, Tensor)"),
    BATCH_NORM_ROW("_native_batch_norm_legit.no_stats" BATCH_NORM_ARGS
                   "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)"),
    BATCH_NORM_ROW(
        "_native_batch_norm_legit_no_training" BATCH_NORM_ARGS
        "Tensor running_mean, Tensor running_var, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor)"),
    BATCH_NORM_ROW(
        "_native_batch_norm_legit_functional" BATCH_NORM_ARGS
        "Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)"),
    UPDATING_NORM_ROW(
        "_batch_norm_with_update" BATCH_NORM_ARGS
        "Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor, Tensor)"),
    BATCH_NORM_ROW(
        "_batch_norm_with_update_functional" BATCH_NORM_ARGS
        "Tensor running_mean, Tensor running_var, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)"),
    BATCH_NORM_ROW(
        "_batch_norm_no_update" BATCH_NORM_ARGS
        "Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor, Tensor)"),
    BATCH_NORM_ROW(
        "cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, Tensor, Tensor)"),
    BATCH_NORM_ROW(
        "miopen_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, Tensor)"),
    { "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
      shape_instance_norm, .lower = lower_instance_norm, .updates = true },
    { "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
      shape_group_norm, .lower_many = lower_group_norm },
    { "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
      shape_group_norm, .lower_many = lower_group_norm },
    { "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
      shape_layer_norm, .lower_many = lower_layer_norm,
      .batch = p2o_batch_tail },
    { "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
      shape_layer_norm, .lower_many = lower_layer_norm,
      .batch = p2o_batch_tail },
    { "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
      shape_layer_norm, .lower_many = lower_rms_norm,
      .batch = p2o_batch_tail },
    { "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
      shape_layer_norm, .lower_many = lower_rms_norm,
      .batch = p2o_batch_tail },
    { "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", shape_weight_norm,
      .lower_many = lower_weight_norm },
    { "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
      shape_weight_norm, .lower_many = lower_weight_norm },
    { 0 },
};
