/* Losses: a value for each element or sample, then by `reduction` all of them, their mean or their
 * sum.
 *
 * Half types are computed in f32.  Class indices and what is ignored of them are ONNX's
 * NegativeLogLikelihoodLoss, which ONNX Runtime takes apart itself. */
#include "aten/lower.h"

#include <math.h>

enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };      /* at::Reduction */

static Shape loss_shape(const Call *c, Shape s)
{
    return int_arg(c, "reduction") == REDUCE_NONE ? s : (Shape){ 0, NULL };
}

/* s is the shape before the reduction. */
static void set_loss(Infer *in, const Call *c, DType t, Shape s)
{
    int64_t how = int_arg(c, "reduction");
    if (how < REDUCE_NONE || how > REDUCE_SUM)
        rule_fail(in, "reduction %lld", (long long)how);
    else if (!is_float(t) && how == REDUCE_MEAN)
        rule_fail(in, "the mean of %s", p2o_dtype_torch(t));
    else
        set_out(in, c, 0, !is_float(t) && how == REDUCE_SUM ? DT_I64 : t, loss_shape(c, s));
}

static void must_be_real_loss(Infer *in, DType t)
{
    if (!is_float(t))
        rule_fail(in, "a loss of %s", p2o_dtype_torch(t));
}

static Shape broadcast_args(Infer *in, const Call *c, const char *const *names, int n)
{
    Shape s = { 0, NULL };
    for (int i = 0; i < n; i++)
        if (has_arg(c, names[i]))
            s = broadcast(in, c, s, shape_arg(c, names[i]));
    return s;
}

#define BROADCAST(in, c, ...)                                            \
    broadcast_args(in, c, (const char *const[]){ __VA_ARGS__ },          \
                   (int)COUNT_OF(((const char *const[]){ __VA_ARGS__ })))

static void shape_l1_loss(Infer *in, const Call *c)
{
    set_loss(in, c, PROMOTE(c, "self", "target"), BROADCAST(in, c, "self", "target"));
}

/* Kernels that take floats only. */
static void shape_pair_loss(Infer *in, const Call *c)
{
    must_be_real_loss(in, PROMOTE(c, "self", "target"));
    shape_l1_loss(in, c);
}

/* Formulas in which integers become floats. */
static void shape_float_pair_loss(Infer *in, const Call *c)
{
    set_loss(in, c, float_of(PROMOTE(c, "self", "target")), BROADCAST(in, c, "self", "target"));
}

static void shape_bce(Infer *in, const Call *c)
{
    set_loss(in, c, PROMOTE(c, "self", "target", "weight"),
             BROADCAST(in, c, "self", "target", "weight"));
}

static void shape_bce_logits(Infer *in, const Call *c)
{
    set_loss(in, c, PROMOTE(c, "self", "target", "weight", "pos_weight"),
             BROADCAST(in, c, "self", "target", "weight", "pos_weight"));
}

static void shape_poisson_nll(Infer *in, const Call *c)
{
    set_loss(in, c, float_of(PROMOTE(c, "input", "target")), BROADCAST(in, c, "input", "target"));
}

static void shape_margin_ranking(Infer *in, const Call *c)
{
    set_loss(in, c, float_of(PROMOTE(c, "input1", "input2", "target")),
             BROADCAST(in, c, "input1", "input2", "target"));
}

/* An argument in the type that the loss is computed in. */
static Value *loss_arg(Lower *lo, const Call *c, const char *name)
{
    return tensor_as(lo, c, name, wide_of(out_dtype(c, 0)));
}

static Value *reduce_whole(Lower *lo, OnnxOp op, Value *x)
{
    return emit_with(lo, op, ATTRS(attr_int("keepdims", 0)), x);
}

static bool is_reduced_by(const Call *c, int64_t how) { return int_arg(c, "reduction") == how; }

/* Of no elements the mean is NaN, where ONNX Runtime says 0. */
static Value *reduced_loss(Lower *lo, const Call *c, Value *x)
{
    bool empty = dim_is(shape_nelem(lo->dims, x->shape), 0);
    if (is_reduced_by(c, REDUCE_MEAN) && empty)
        return num(lo, out_dtype(c, 0), NAN);
    if (!is_reduced_by(c, REDUCE_NONE) && rank(x))
        x = reduce_whole(lo, is_reduced_by(c, REDUCE_MEAN) ? ONNX_ReduceMean : ONNX_ReduceSum, x);
    return cast(lo, x, out_dtype(c, 0));
}

static Value *nonnegative(Lower *lo, Value *x)
{
    return emit(lo, ONNX_Max, x, num(lo, x->dtype, 0));
}

static Value *loss_difference(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Sub, loss_arg(lo, c, "self"), loss_arg(lo, c, "target"));
}

static Value *lower_mse_loss(Lower *lo, const Call *c)
{
    Value *d = loss_difference(lo, c);
    if (is_reduced_by(c, REDUCE_SUM) && rank(d))
        return cast(lo, reduce_whole(lo, ONNX_ReduceSumSquare, d), out_dtype(c, 0));
    return reduced_loss(lo, c, emit(lo, ONNX_Mul, d, d));
}

static Value *l1_of(Lower *lo, const Call *c)
{
    Value *d = loss_difference(lo, c);
    if (is_reduced_by(c, REDUCE_SUM) && rank(d))
        return cast(lo, reduce_whole(lo, ONNX_ReduceL1, d), out_dtype(c, 0));
    return reduced_loss(lo, c, emit(lo, ONNX_Abs, d));
}

static Value *lower_l1_loss(Lower *lo, const Call *c) { return l1_of(lo, c); }

/* z^2 / 2 up to z = delta, straight from there on: m * (z - m / 2) with m = min(z, delta). */
static Value *huber_of(Lower *lo, const Call *c, double delta)
{
    Value *z = emit(lo, ONNX_Abs, loss_difference(lo, c));
    Value *m = emit(lo, ONNX_Min, z, num(lo, z->dtype, delta));
    return emit(lo, ONNX_Mul, m, emit(lo, ONNX_Sub, z, times_num(lo, m, 0.5)));
}

static Value *lower_huber_loss(Lower *lo, const Call *c)
{
    return reduced_loss(lo, c, huber_of(lo, c, float_arg(c, "delta")));
}

static Value *lower_smooth_l1_loss(Lower *lo, const Call *c)
{
    double beta = float_arg(c, "beta");
    if (beta == 0)
        return l1_of(lo, c);
    return reduced_loss(lo, c, times_num(lo, huber_of(lo, c, beta), 1 / beta));
}

/* log(1 + exp(-target * self)), infinite where exp is in the type of the result: PyTorch's is. */
static Value *lower_soft_margin_loss(Lower *lo, const Call *c)
{
    Value *z =
        emit(lo, ONNX_Mul, emit(lo, ONNX_Neg, loss_arg(lo, c, "target")), loss_arg(lo, c, "self"));
    Value *e = cast(lo, cast(lo, emit(lo, ONNX_Exp, z), out_dtype(c, 0)), z->dtype);
    return reduced_loss(lo, c, emit(lo, ONNX_Log, plus_num(lo, e, 1)));
}

static Value *weighted(Lower *lo, const Call *c, Value *x)
{
    Value *w = loss_arg(lo, c, "weight");
    return w ? emit(lo, ONNX_Mul, x, w) : x;
}

static Value *minus_from_one(Lower *lo, Value *x)
{
    return emit(lo, ONNX_Sub, num(lo, x->dtype, 1), x);
}

/* (t - 1) * log(1 - x) - t * log(x), logarithms no less than -100 */
static Value *lower_bce(Lower *lo, const Call *c)
{
    Value *x = loss_arg(lo, c, "self"), *t = loss_arg(lo, c, "target"),
          *least = num(lo, x->dtype, -100);
    Value *no = emit(lo, ONNX_Max, emit(lo, ONNX_Log, minus_from_one(lo, x)), least);
    Value *yes = emit(lo, ONNX_Max, emit(lo, ONNX_Log, x), least);
    Value *left = emit(lo, ONNX_Mul, plus_num(lo, t, -1), no);
    return reduced_loss(lo, c,
                        weighted(lo, c, emit(lo, ONNX_Sub, left, emit(lo, ONNX_Mul, t, yes))));
}

/* (1 - t) * x + (1 + (pos_weight - 1) * t) * log(1 + exp(-x)) */
static Value *lower_bce_logits(Lower *lo, const Call *c)
{
    Value *x = loss_arg(lo, c, "self"), *t = loss_arg(lo, c, "target"),
          *pos = loss_arg(lo, c, "pos_weight");
    Value *left = emit(lo, ONNX_Mul, minus_from_one(lo, t), x);
    Value *right = softplus_of(lo, emit(lo, ONNX_Neg, x));
    if (pos) {
        Value *w = plus_num(lo, emit(lo, ONNX_Mul, plus_num(lo, pos, -1), t), 1);
        right = emit(lo, ONNX_Mul, w, right);
    }
    return reduced_loss(lo, c, weighted(lo, c, emit(lo, ONNX_Add, left, right)));
}

/* t * (log t - x), 0 log 0 being 0; of log t given: exp(t) * (t - x) */
static Value *lower_kl_div(Lower *lo, const Call *c)
{
    Value *x = loss_arg(lo, c, "self"), *t = loss_arg(lo, c, "target");
    if (bool_arg(c, "log_target"))
        return reduced_loss(lo, c,
                            emit(lo, ONNX_Mul, emit(lo, ONNX_Exp, t), emit(lo, ONNX_Sub, t, x)));
    Value *none = emit(lo, ONNX_Equal, t, num(lo, t->dtype, 0));
    Value *log_t = emit(lo, ONNX_Log, choose(lo, none, num(lo, t->dtype, 1), t));
    return reduced_loss(lo, c, emit(lo, ONNX_Mul, t, emit(lo, ONNX_Sub, log_t, x)));
}

/* Stirling's formula for log(t!), t * log(t) - t + log(2 * pi * t) / 2, where t > 1. */
static Value *stirling(Lower *lo, Value *t)
{
    Value *log_t = emit(lo, ONNX_Log, t);
    Value *half = times_num(lo, plus_num(lo, log_t, 1.83787706640934548356), 0.5);
    Value *s = emit(lo, ONNX_Add, emit(lo, ONNX_Sub, emit(lo, ONNX_Mul, t, log_t), t), half);
    return choose(lo, emit(lo, ONNX_Greater, t, num(lo, t->dtype, 1)), s, num(lo, t->dtype, 0));
}

/* exp(x) - t * x, or of x that is no logarithm: x - t * log(x + eps) */
static Value *lower_poisson_nll(Lower *lo, const Call *c)
{
    Value *x = loss_arg(lo, c, "input"), *t = loss_arg(lo, c, "target"), *loss;
    if (bool_arg(c, "log_input"))
        loss = emit(lo, ONNX_Sub, emit(lo, ONNX_Exp, x), emit(lo, ONNX_Mul, t, x));
    else
        loss =
            emit(lo, ONNX_Sub, x,
                 emit(lo, ONNX_Mul, t, emit(lo, ONNX_Log, plus_num(lo, x, float_arg(c, "eps")))));
    if (bool_arg(c, "full"))
        loss = emit(lo, ONNX_Add, loss, stirling(lo, t));
    return reduced_loss(lo, c, loss);
}

static Value *target_is(Lower *lo, Value *t, double f)
{
    return emit(lo, ONNX_Equal, t, num(lo, t->dtype, f));
}

/* max(0, margin - x) unless the target is 1, plus x unless it is -1 */
static Value *lower_hinge_embedding(Lower *lo, const Call *c)
{
    Value *x = loss_arg(lo, c, "self"), *t = loss_arg(lo, c, "target"),
          *zero = num(lo, x->dtype, 0);
    Value *margin = emit(lo, ONNX_Sub, num(lo, x->dtype, float_arg(c, "margin")), x);
    Value *apart = choose(lo, target_is(lo, t, 1), zero, nonnegative(lo, margin));
    Value *close = choose(lo, target_is(lo, t, -1), zero, x);
    return reduced_loss(lo, c, emit(lo, ONNX_Add, apart, close));
}

/* max(0, margin - target * (input1 - input2)) */
static Value *lower_margin_ranking(Lower *lo, const Call *c)
{
    Value *d = emit(lo, ONNX_Sub, loss_arg(lo, c, "input2"), loss_arg(lo, c, "input1"));
    Value *x = emit(lo, ONNX_Mul, loss_arg(lo, c, "target"), d);
    return reduced_loss(lo, c, nonnegative(lo, plus_num(lo, x, float_arg(c, "margin"))));
}

static int class_dim(int rank_) { return rank_ == 1 ? 0 : 1; }

/* Scores of rank 1 are one sample: classes are dim 0 there, else dim 1. */
static void class_loss(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self"), t = type_arg(c, "target");
    Shape s = x.shape;
    if (s.rank == 0 || t.shape.rank != s.rank - 1 || is_float(t.dtype)) {
        rule_fail(in, "targets of rank %d and dtype %s for scores of rank %d", t.shape.rank,
                  p2o_dtype_torch(t.dtype), s.rank);
        return;
    }
    must_be_real_loss(in, x.dtype);
    Shape samples = without_dim(in, s, class_dim(s.rank));
    for (int i = 0; i < samples.rank; i++)
        if (!must_equal(in, c, samples.at[i], t.shape.at[i], "samples"))
            return;
    if (has_arg(c, "weight") && (!must_rank(in, c, "weight", 1) ||
        !must_equal(in, c, dim_at(shape_arg(c, "weight"), 0), s.at[class_dim(s.rank)], "classes")))
        return;
    set_loss(in, c, x.dtype, samples);
}

static bool must_have_fixed_ignore(Infer *in, const Call *c)
{
    int64_t v;
    return const_dim(in, dim_arg(c, "ignore_index"), "ignore_index", &v);
}

static void shape_nll_loss(Infer *in, const Call *c)
{
    if (must_have_fixed_ignore(in, c))
        class_loss(in, c);
}

/* x: logarithms of probabilities. */
static Value *nll_of(Lower *lo, const Call *c, Value *x)
{
    static const char *const names[] = { "none", "mean", "sum" };
    Value *t = tensor_as(lo, c, "target", DT_I64);
    bool   one = rank(x) == 1;
    if (one) {
        x = unsqueeze(lo, x, 0);
        t = unsqueeze(lo, t, 0);
    }
    Value *y = emit_with(lo, ONNX_NegativeLogLikelihoodLoss,
                         ATTRS(attr_int("ignore_index", int_arg(c, "ignore_index")),
                               attr_str("reduction", names[int_arg(c, "reduction")])),
                         x, t, loss_arg(lo, c, "weight"));
    return one && is_reduced_by(c, REDUCE_NONE) ? squeeze(lo, y, 0) : y;
}

static Value *lower_nll_loss(Lower *lo, const Call *c)
{
    return cast(lo, nll_of(lo, c, loss_arg(lo, c, "self")), out_dtype(c, 0));
}

static void lower_nll_loss_forward(Lower *lo, const Call *c, Value **out)
{
    out[0] = lower_nll_loss(lo, c);
}

/* Targets of the scores' rank are probabilities of classes. */
static bool has_class_probabilities(const Call *c)
{
    return shape_arg(c, "target").rank == shape_arg(c, "self").rank;
}

static void shape_cross_entropy(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), t = type_arg(c, "target");
    if (!must_have_fixed_ignore(in, c))
        return;
    if (!has_class_probabilities(c)) {
        class_loss(in, c);
        return;
    }
    if (x.shape.rank == 0 || !is_float(t.dtype)) {
        rule_fail(in, "probabilities of rank %d and dtype %s", t.shape.rank,
                  p2o_dtype_torch(t.dtype));
        return;
    }
    must_be_real_loss(in, x.dtype);
    for (int i = 0; i < x.shape.rank; i++)
        if (!must_equal(in, c, x.shape.at[i], t.shape.at[i], "scores and probabilities"))
            return;
    set_loss(in, c, PROMOTE(c, "self", "target"),
             without_dim(in, x.shape, class_dim(x.shape.rank)));
}

/* A weight for each class, against scores. */
static Value *class_weights(Lower *lo, const Call *c, int rank_)
{
    Value *w = loss_arg(lo, c, "weight");
    for (int i = 2; w && i < rank_; i++)
        w = unsqueeze(lo, w, i - 1);
    return w;
}

static Value *sum_classes(Lower *lo, Value *x, int axis)
{
    return reduce(lo, ONNX_ReduceSum, x, (const int64_t[]){ axis }, 1, false);
}

/* p * (1 - smoothing) + smoothing / classes */
static Value *smoothed(Lower *lo, Value *p, double smoothing, Dim classes)
{
    if (smoothing == 0)
        return p;
    Value *rest =
        emit(lo, ONNX_Div, num(lo, p->dtype, smoothing), count_value(lo, classes, p->dtype));
    return emit(lo, ONNX_Add, times_num(lo, p, 1 - smoothing), rest);
}

/* -sum(weight * p * log x) over the classes; the mean is over samples. */
static Value *probability_loss(Lower *lo, const Call *c, Value *logs)
{
    int    axis = class_dim(rank(logs));
    Value *p = smoothed(lo, loss_arg(lo, c, "target"), float_arg(c, "label_smoothing"),
                        size_at(logs, axis));
    Value *x = emit(lo, ONNX_Mul, logs, p), *w = class_weights(lo, c, rank(logs));
    if (w)
        x = emit(lo, ONNX_Mul, x, w);
    return reduced_loss(lo, c, emit(lo, ONNX_Neg, sum_classes(lo, x, axis)));
}

/* A share of `smoothing` goes to all classes alike; means are weighted, what is ignored left out:
 * (1 - s) * w[t] * -log x[t] + s / classes * sum(-w * log x) */
static Value *smooth_index_loss(Lower *lo, const Call *c, Value *logs)
{
    int    axis = class_dim(rank(logs));
    DType  dt = logs->dtype;
    double share = float_arg(c, "label_smoothing");
    Value *t = tensor_as(lo, c, "target", DT_I64), *per_class = loss_arg(lo, c, "weight");
    Value *zero = num(lo, dt, 0);
    Value *ignored = emit(lo, ONNX_Equal, t, p2o_build_int(lo->b, int_arg(c, "ignore_index")));
    t = choose(lo, ignored, p2o_build_int(lo->b, 0), t);
    Value *picked = emit_with(lo, ONNX_GatherElements, ATTRS(attr_int("axis", axis)), logs,
                              unsqueeze(lo, t, axis));
    Value *weight = per_class ? emit(lo, ONNX_Gather, per_class, t) : num(lo, dt, 1);
    weight = choose(lo, ignored, zero, weight);
    Value *spread = class_weights(lo, c, rank(logs));
    spread = sum_classes(lo, spread ? emit(lo, ONNX_Mul, logs, spread) : logs, axis);
    spread = choose(lo, ignored, zero, spread);
    Value *part = emit(lo, ONNX_Div, num(lo, dt, -share), count_value(lo, size_at(logs, axis), dt));
    Value *own = times_num(lo, emit(lo, ONNX_Mul, squeeze(lo, picked, axis), weight), share - 1);
    Value *loss = emit(lo, ONNX_Add, own, emit(lo, ONNX_Mul, spread, part));
    if (!is_reduced_by(c, REDUCE_MEAN))
        return reduced_loss(lo, c, loss);
    if (rank(loss)) {
        loss = reduce_whole(lo, ONNX_ReduceSum, loss);
        weight = reduce_whole(lo, ONNX_ReduceSum, weight);
    }
    return cast(lo, emit(lo, ONNX_Div, loss, weight), out_dtype(c, 0));
}

static Value *lower_cross_entropy(Lower *lo, const Call *c)
{
    Value *x = loss_arg(lo, c, "self");
    Value *logs = emit_with(lo, ONNX_LogSoftmax, ATTRS(attr_int("axis", class_dim(rank(x)))), x);
    if (has_class_probabilities(c))
        return probability_loss(lo, c, logs);
    if (float_arg(c, "label_smoothing") != 0)
        return smooth_index_loss(lo, c, logs);
    return cast(lo, nll_of(lo, c, logs), out_dtype(c, 0));
}

/* Scores of one sample may have rank 0 or 1, and its target too. */
static void shape_multi_margin(Infer *in, const Call *c)
{
    Type   x = type_arg(c, "self"), t = type_arg(c, "target");
    Dim    one = int_dim(in, 1), samples = x.shape.rank == 2 ? x.shape.at[0] : one;
    Dim    classes = x.shape.rank ? dim_at(x.shape, -1) : one;
    double p;
    must_be_real_loss(in, x.dtype);
    if (x.shape.rank > 2 || t.shape.rank > 1 || (x.shape.rank == 2 && t.shape.rank != 1) ||
        is_float(t.dtype))
        rule_fail(in, "targets of rank %d and dtype %s for scores of rank %d", t.shape.rank,
                  p2o_dtype_torch(t.dtype), x.shape.rank);
    else if (!p2o_number_is_const(p2o_call_arg(c, "p"), &p) || (p != 1 && p != 2))
        rule_fail(in, "p is neither 1 nor 2");
    else if (must_equal(in, c, shape_nelem(in->dims, t.shape), samples, "samples") &&
             (!has_arg(c, "weight") ||
              (must_rank(in, c, "weight", 1) &&
               must_equal(in, c, dim_at(shape_arg(c, "weight"), 0), classes, "classes"))))
        set_loss(in, c, x.dtype, t.shape);
}

static Value *at_rank(Lower *lo, Value *x, int rank_)
{
    while (rank(x) < rank_)
        x = unsqueeze(lo, x, 0);
    return x;
}

/* w[t] * sum over all classes but t of max(0, margin - x[t] + x)^p, over the number of classes */
static Value *lower_multi_margin(Lower *lo, const Call *c)
{
    Value *x = at_rank(lo, loss_arg(lo, c, "self"), 2), *w = loss_arg(lo, c, "weight");
    Value *t = at_rank(lo, tensor_as(lo, c, "target", DT_I64), 1), *at = unsqueeze(lo, t, 1);
    double p = 1;
    p2o_number_is_const(p2o_call_arg(c, "p"), &p);
    Value *own = emit_with(lo, ONNX_GatherElements, ATTRS(attr_int("axis", 1)), x, at);
    Value *z =
        emit(lo, ONNX_Add, emit(lo, ONNX_Sub, x, own), number_arg(lo, c, "margin", x->dtype));
    z = nonnegative(lo, z);
    if (p == 2)
        z = emit(lo, ONNX_Mul, z, z);
    Value *is_own = emit(lo, ONNX_Equal, iota(lo, size_at(x, 1)), at);
    z = sum_classes(lo, choose(lo, is_own, num(lo, x->dtype, 0), z), 1);
    if (w)
        z = emit(lo, ONNX_Mul, z, emit(lo, ONNX_Gather, w, t));
    z = emit(lo, ONNX_Div, z, count_value(lo, size_at(x, 1), x->dtype));
    return reduced_loss(lo, c, reshape(lo, z, shape_arg(c, "target")));
}

static void shape_multilabel_margin(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), t = type_arg(c, "target");
    if (x.shape.rank > 2 || t.shape.rank != x.shape.rank || t.dtype != DT_I64) {
        rule_fail(in, "targets of rank %d and dtype %s for scores of rank %d", t.shape.rank,
                  p2o_dtype_torch(t.dtype), x.shape.rank);
        return;
    }
    must_be_real_loss(in, x.dtype);
    for (int i = 0; i < x.shape.rank; i++)
        if (!must_equal(in, c, x.shape.at[i], t.shape.at[i], "scores and targets"))
            return;
    set_loss(in, c, x.dtype, slice_shape(x.shape, 0, x.shape.rank == 2));
    if (nouts(c) > 1)
        set_out(in, c, 1, x.dtype, x.shape);
}

/* Labels of a sample end at the first that is negative.  For each label k and each class i that is
 * none: max(0, 1 - x[label[k]] + x[i]), over the number of classes. */
static void lower_multilabel_margin(Lower *lo, const Call *c, Value **out)
{
    Value *x = at_rank(lo, loss_arg(lo, c, "self"), 1),
          *t = at_rank(lo, tensor_arg(lo, c, "target"), 1);
    Value *zero = p2o_build_int(lo->b, 0);
    int    axis = rank(x) - 1;
    DType  dt = x->dtype;
    Value *negative = cast(lo, emit(lo, ONNX_Less, t, zero), DT_I64);
    Value *label =
        emit(lo, ONNX_Equal, emit(lo, ONNX_CumSum, negative, p2o_build_int(lo->b, axis)), zero);
    t = choose(lo, label, t, zero);
    Value *counts = cast(lo, label, dt);
    Value *none = full(lo, x->shape, dt, 0);
    Value *times = scatter_with(lo, ONNX_ScatterElements, axis, none, t, counts, "add");
    Value *is_label = cast(lo, emit(lo, ONNX_Greater, times, none), dt);
    Value *own = emit_with(lo, ONNX_GatherElements, ATTRS(attr_int("axis", axis)), x, t);
    Value *z = emit(lo, ONNX_Sub, unsqueeze(lo, x, axis), unsqueeze(lo, own, axis + 1));
    z = nonnegative(lo, plus_num(lo, z, 1));
    z = emit(lo, ONNX_Mul, z, unsqueeze(lo, counts, axis + 1));
    z = emit(lo, ONNX_Mul, z, unsqueeze(lo, minus_from_one(lo, is_label), axis));
    z = reduce(lo, ONNX_ReduceSum, z, (const int64_t[]){ axis, axis + 1 }, 2, false);
    out[0] = reduced_loss(lo, c, emit(lo, ONNX_Div, z, count_value(lo, size_at(x, axis), dt)));
    if (nouts(c) > 1)
        out[1] = reshape(lo, cast(lo, is_label, out_dtype(c, 0)), shape_arg(c, "target"));
}

static Value *lower_multilabel_margin_one(Lower *lo, const Call *c)
{
    Value *out[1];
    lower_multilabel_margin(lo, c, out);
    return out[0];
}

static void shape_cosine_embedding(Infer *in, const Call *c)
{
    Shape s = broadcast(in, c, shape_arg(c, "input1"), shape_arg(c, "input2")),
          t = shape_arg(c, "target");
    DType dt = float_of(PROMOTE(c, "input1", "input2", "target"));
    if (t.rank > 1 || s.rank != t.rank + 1)
        rule_fail(in, "targets of rank %d for vectors of rank %d", t.rank, s.rank);
    else
        set_loss(in, c, dt, broadcast(in, c, slice_shape(s, 0, t.rank), t));
}

/* 1 - cos where the target is 1, max(0, cos - margin) where it is -1 */
static Value *lower_cosine_embedding(Lower *lo, const Call *c)
{
    Value *a = loss_arg(lo, c, "input1"), *b = loss_arg(lo, c, "input2"),
          *t = loss_arg(lo, c, "target");
    int    axis = rank(t);
    Value *ab = sum_classes(lo, emit(lo, ONNX_Mul, a, b), axis);
    Value *aa = plus_num(lo, sum_classes(lo, emit(lo, ONNX_Mul, a, a), axis), 1e-12);
    Value *bb = plus_num(lo, sum_classes(lo, emit(lo, ONNX_Mul, b, b), axis), 1e-12);
    Value *cosine = emit(lo, ONNX_Div, ab, emit(lo, ONNX_Sqrt, emit(lo, ONNX_Mul, aa, bb)));
    Value *zero = num(lo, a->dtype, 0);
    Value *close = choose(lo, target_is(lo, t, 1), minus_from_one(lo, cosine), zero);
    Value *apart = nonnegative(lo, plus_num(lo, cosine, -float_arg(c, "margin")));
    apart = choose(lo, target_is(lo, t, -1), apart, zero);
    return reduced_loss(lo, c, emit(lo, ONNX_Add, close, apart));
}

static void shape_triplet_margin(Infer *in, const Call *c)
{
    static const char *const names[] = { "anchor", "positive", "negative" };
    Shape s = { 0, NULL };
    DType t = float_of(promote_args(c, (int)COUNT_OF(names), names));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (shape_arg(c, names[i]).rank != shape_arg(c, "anchor").rank ||
            shape_arg(c, "anchor").rank == 0) {
            rule_fail(in, "%s of rank %d", names[i], shape_arg(c, names[i]).rank);
            return;
        }
        s = broadcast(in, c, s, shape_arg(c, names[i]));
    }
    set_loss(in, c, t, slice_shape(s, 0, s.rank - 1));
}

static Value *triplet_side(Lower *lo, const Call *c, Value *a, Value *b)
{
    Value *d = plus_num(lo, emit(lo, ONNX_Sub, a, b), float_arg(c, "eps"));
    return p_norm(lo, d, (const int64_t[]){ rank(d) - 1 }, 1, false, float_arg(c, "p"));
}

/* max(0, margin + |anchor - positive| - |anchor - negative|); swap: or of |positive - negative|, if
 * less. */
static Value *lower_triplet_margin(Lower *lo, const Call *c)
{
    Value *a = loss_arg(lo, c, "anchor"), *p = loss_arg(lo, c, "positive"),
          *n = loss_arg(lo, c, "negative");
    Value *near = triplet_side(lo, c, a, p), *far = triplet_side(lo, c, a, n);
    if (bool_arg(c, "swap"))
        far = emit(lo, ONNX_Min, far, triplet_side(lo, c, p, n));
    Value *x = plus_num(lo, emit(lo, ONNX_Sub, near, far), float_arg(c, "margin"));
    return reduced_loss(lo, c, nonnegative(lo, x));
}

#define PAIR      "(Tensor self, Tensor target, int reduction=Mean"
#define NLL                                                                                        \
    "(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100"
#define ROW_NLL(name)                                                                              \
    {                                                                                              \
        name NLL ") -> Tensor", shape_nll_loss, .lower = lower_nll_loss,                           \
                                                .roles = "ignore_index:setting"                    \
    }
#define ROW_NLL_FORWARD(name)                                                                      \
    {                                                                                              \
        name "(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "   \
             "-> (Tensor output, Tensor total_weight)",                                            \
            shape_nll_loss, .lower_many = lower_nll_loss_forward, .limits = "total_weight",        \
                            .roles = "ignore_index:setting"                                        \
    }

const AtenOp p2o_ops_loss[] = {
    { "mse_loss" PAIR ") -> Tensor", shape_pair_loss, .lower = lower_mse_loss },
    { "l1_loss" PAIR ") -> Tensor", shape_l1_loss, .lower = lower_l1_loss },
    { "smooth_l1_loss" PAIR ", float beta=1.0) -> Tensor", shape_pair_loss,
      .lower = lower_smooth_l1_loss },
    { "huber_loss" PAIR ", float delta=1.0) -> Tensor", shape_pair_loss,
      .lower = lower_huber_loss },
    { "soft_margin_loss" PAIR ") -> Tensor", shape_pair_loss, .lower = lower_soft_margin_loss },
    { "kl_div" PAIR ", *, bool log_target=False) -> Tensor", shape_float_pair_loss,
      .lower = lower_kl_div },
    { "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
      shape_bce, .lower = lower_bce },
    { "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=Mean) -> Tensor",
      shape_bce_logits, .lower = lower_bce_logits },
    { "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
      shape_poisson_nll, .lower = lower_poisson_nll },
    { "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> Tensor",
      shape_float_pair_loss, .lower = lower_hinge_embedding },
    { "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor",
      shape_margin_ranking, .lower = lower_margin_ranking },
    ROW_NLL("nll_loss"),
    ROW_NLL("nll_loss2d"),
    ROW_NLL("nll_loss_nd"),
    ROW_NLL_FORWARD("nll_loss_forward"),
    ROW_NLL_FORWARD("nll_loss2d_forward"),
    { "cross_entropy_loss" NLL ", float label_smoothing=0.0) -> Tensor", shape_cross_entropy,
      .lower = lower_cross_entropy },
    { "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=Mean) -> Tensor",
      shape_multi_margin, .lower = lower_multi_margin },
    { "multilabel_margin_loss" PAIR ") -> Tensor", shape_multilabel_margin,
      .lower = lower_multilabel_margin_one },
    { "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
      shape_multilabel_margin, .lower_many = lower_multilabel_margin },
    { "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor",
      shape_cosine_embedding, .lower = lower_cosine_embedding },
    { "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
      shape_triplet_margin, .lower = lower_triplet_margin },
    { 0 },
};
