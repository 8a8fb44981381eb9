/* Random numbers and dropout: the right distribution, dtype and shape; the numbers are ONNX
 * Runtime's.
 *
 * Everything comes from uniform and normal samples in f32, or f64 where 24 bits are too few,
 * through the inverse of the distribution.  Said once per model, in a note.  Nodes are never
 * shared: each call draws anew. */
#include "aten/lower.h"

#include <float.h>
#include <math.h>

static void say_once(Lower *lo, DiagKind kind, const char *text)
{
    for (size_t i = 0; i < p2o_diags_count(lo->diags); i++)
        if (same(p2o_diags_at(lo->diags, i)->text, text))
            return;
    p2o_diag(lo->diags, kind, lo->b->loc, "%s", text);
}

static void note_random(Lower *lo)
{
    say_once(lo, DIAG_NOTE, "random numbers have PyTorch's distribution, not its values");
}

/* Samples of a shape: like x where that has it, which may be NULL, else like zeros.  `a` and `b`
 * are the bounds of a uniform or mean and deviation of a normal distribution. */
static Value *sample(Lower *lo, OnnxOp like, Value *x, Shape s, DType t, double a, double b)
{
    bool     normal = like == ONNX_RandomNormalLike;
    Attr     dtype = attr_int("dtype", p2o_dtype_onnx(t));
    Attr     first = attr_float(normal ? "mean" : "low", a),
         second = attr_float(normal ? "scale" : "high", b);
    int64_t *sizes = NEW_N(lo->arena, int64_t, (size_t)s.rank + 1);
    note_random(lo);
    if (p2o_shape_is_const(s)) {
        for (int i = 0; i < s.rank; i++)
            p2o_dim_is_int(s.at[i], &sizes[i]);
        return p2o_build(lo->b, normal ? ONNX_RandomNormal : ONNX_RandomUniform,
                         ATTRS(dtype, first, second, attr_ints("shape", sizes, (size_t)s.rank)), 0,
                         NULL);
    }
    if (!x || !p2o_shape_same(x->shape, s))
        x = full(lo, s, t, 0);
    return emit_with(lo, like, ATTRS(dtype, first, second), x);
}

static Value *uniform_sample(Lower *lo, Value *x, Shape s, DType t, double low, double high)
{
    return sample(lo, ONNX_RandomUniformLike, x, s, t, low, high);
}

static Value *normal_sample(Lower *lo, Value *x, Shape s, DType t, double mean, double deviation)
{
    return sample(lo, ONNX_RandomNormalLike, x, s, t, mean, deviation);
}

/* The type samples are drawn in for a result of type t. */
static DType drawn_in(DType t) { return t == DT_F64 ? DT_F64 : DT_F32; }

static Value *self_or_null(Lower *lo, const Call *c)
{
    return names_arg(c, "self") ? tensor_arg(lo, c, "self") : NULL;
}

static void shape_random_floats(Infer *in, const Call *c)
{
    bool  like = names_arg(c, "self");
    DType t = dtype_arg(c, "dtype", like ? type_arg(c, "self").dtype : default_dtype(c));
    if (!is_float(t))
        rule_unsupported(in, "random numbers of %s", p2o_dtype_torch(t));
    else
        set_out(in, c, 0, t, like ? shape_arg(c, "self") : shape_list(in, c, "size"));
}

static Value *lower_rand(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return cast(lo, uniform_sample(lo, self_or_null(lo, c), out_shape(c, 0), drawn_in(t), 0, 1), t);
}

static Value *lower_randn(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return cast(lo, normal_sample(lo, self_or_null(lo, c), out_shape(c, 0), drawn_in(t), 0, 1), t);
}

/* Writes that fill self with samples: its own shape and dtype. */
static void shape_refilled(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (is_complex(x.dtype))
        rule_unsupported(in, "random numbers of %s", p2o_dtype_torch(x.dtype));
    else
        set_out(in, c, 0, x.dtype, x.shape);
}

static Value *self_uniform(Lower *lo, const Call *c, double low, double high)
{
    Value *x = tensor_arg(lo, c, "self");
    return uniform_sample(lo, x, x->shape, drawn_in(x->dtype), low, high);
}

static Value *self_normal(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return normal_sample(lo, x, x->shape, drawn_in(x->dtype), float_arg(c, "mean"),
                         float_arg(c, "std"));
}

static Value *lower_uniform(Lower *lo, const Call *c)
{
    return cast(lo, self_uniform(lo, c, float_arg(c, "from"), float_arg(c, "to")), out_dtype(c, 0));
}

static Value *lower_normal(Lower *lo, const Call *c)
{
    return cast(lo, self_normal(lo, c), out_dtype(c, 0));
}

static Value *lower_log_normal(Lower *lo, const Call *c)
{
    return cast(lo, emit(lo, ONNX_Exp, self_normal(lo, c)), out_dtype(c, 0));
}

/* log u for u in (0, 1): finite. */
static Value *log_uniform(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Log, self_uniform(lo, c, FLT_MIN, 1));
}

/* -log(u) / lambd */
static Value *lower_exponential(Lower *lo, const Call *c)
{
    return cast(lo, times_num(lo, log_uniform(lo, c), -1 / float_arg(c, "lambd")), out_dtype(c, 0));
}

/* ceil(log(u) / log(1 - p)): 1, 2, ... */
static Value *lower_geometric(Lower *lo, const Call *c)
{
    Value *x = times_num(lo, log_uniform(lo, c), 1 / log1p(-float_arg(c, "p")));
    return cast(lo, emit(lo, ONNX_Ceil, x), out_dtype(c, 0));
}

static void shape_geometric(Infer *in, const Call *c)
{
    double p = float_arg(c, "p");
    if (!(p > 0 && p < 1))
        rule_fail(in, "p of %g", p);
    else
        shape_refilled(in, c);
}

/* median + sigma * tan(u) for u in (-pi/2, pi/2) */
static Value *lower_cauchy(Lower *lo, const Call *c)
{
    Value *x = emit(lo, ONNX_Tan, self_uniform(lo, c, -1.57079632679489662, 1.57079632679489662));
    x = plus_num(lo, times_num(lo, x, float_arg(c, "sigma")), float_arg(c, "median"));
    return cast(lo, x, out_dtype(c, 0));
}

static void shape_normal_of(Infer *in, const Call *c)
{
    DType t = PROMOTE(c, "mean", "std");
    if (!is_float(t))
        rule_unsupported(in, "random numbers of %s", p2o_dtype_torch(t));
    else
        set_out(in, c, 0, t, broadcast(in, c, shape_arg(c, "mean"), shape_arg(c, "std")));
}

/* mean + std * z, one or both of them tensors. */
static Value *lower_normal_of(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    Value *mean = tensor_as(lo, c, "mean", t), *deviation = tensor_as(lo, c, "std", t);
    Value *like = rank(mean) >= rank(deviation) ? mean : deviation;
    Value *z = cast(lo, normal_sample(lo, like, out_shape(c, 0), drawn_in(t), 0, 1), t);
    return emit(lo, ONNX_Add, mean, emit(lo, ONNX_Mul, deviation, z));
}

static Value *lower_normal_sized(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return cast(lo, normal_sample(lo, NULL, out_shape(c, 0), drawn_in(t), float_arg(c, "mean"),
                                  float_arg(c, "std")), t);
}

static void shape_randint(Infer *in, const Call *c)
{
    if (names_arg(c, "self"))
        set_out(in, c, 0, dtype_arg(c, "dtype", type_arg(c, "self").dtype), shape_arg(c, "self"));
    else
        set_out(in, c, 0, dtype_arg(c, "dtype", DT_I64), shape_list(in, c, "size"));
}

/* floor(low + u * (high - low)) in f64; bounds that f32 attributes hold exactly need no
 * arithmetic. */
static Value *integers_between(Lower *lo, Value *like, Shape s, Value *low, Value *high)
{
    enum { EXACT = 1 << 24 };
    int64_t a = 0, b = 0;
    bool    from = low->ints && p2o_dim_is_int(low->ints[0], &a);
    if (from && high->ints && p2o_dim_is_int(high->ints[0], &b) && a > -EXACT && b < EXACT)
        return emit(lo, ONNX_Floor, uniform_sample(lo, like, s, DT_F64, (double)a, (double)b));
    Value *u = uniform_sample(lo, like, s, DT_F64, 0, 1);
    high = cast(lo, high, DT_F64);
    low = cast(lo, low, DT_F64);
    if (from && a == 0)
        return emit(lo, ONNX_Floor, emit(lo, ONNX_Mul, u, high));
    u = emit(lo, ONNX_Mul, u, emit(lo, ONNX_Sub, high, low));
    return emit(lo, ONNX_Floor, emit(lo, ONNX_Add, u, low));
}

static Value *lower_randint(Lower *lo, const Call *c)
{
    Value *low = names_arg(c, "low") ? number_arg(lo, c, "low", DT_I64) : p2o_build_int(lo->b, 0);
    Value *x = integers_between(lo, self_or_null(lo, c), out_shape(c, 0), low,
                                number_arg(lo, c, "high", DT_I64));
    return cast(lo, x, out_dtype(c, 0));
}

/* One more than the greatest integer that random_() gives: all that the type holds exactly. */
static double random_limit(DType t)
{
    switch (t) {
    case DT_BOOL: return 2;
    case DT_U8: return 0x1p8;
    case DT_I8: return 0x1p7;
    case DT_I16: return 0x1p15;
    case DT_I32: return 0x1p31;
    case DT_F16: return 0x1p11 + 1;
    case DT_BF16: return 0x1p8 + 1;
    case DT_F32: return 0x1p24 + 1;
    case DT_F64: return 0x1p53 + 1;
    default: return 0x1p63;
    }
}

/* random_(), random_(to), random_(from, to): whole numbers. */
static Value *lower_random(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    double low = names_arg(c, "from") ? (double)int_arg(c, "from") : 0;
    bool   limited = names_arg(c, "to") && has_arg(c, "to");
    double high = limited ? (double)int_arg(c, "to") : random_limit(x->dtype);
    Value *u = uniform_sample(lo, x, x->shape, DT_F64, 0, 1);
    return cast(lo, emit(lo, ONNX_Floor, plus_num(lo, times_num(lo, u, high - low), low)),
                x->dtype);
}

static void shape_randperm(Infer *in, const Call *c)
{
    Dim n = dim_arg(c, "n");
    set_out(in, c, 0, dtype_arg(c, "dtype", DT_I64), (Shape){ 1, &n });
}

/* The order of random keys. */
static Value *lower_randperm(Lower *lo, const Call *c)
{
    Shape  s = out_shape(c, 0);
    Value *sorted[2];
    emit_many(lo, ONNX_TopK, NO_ATTRS, 2, sorted, uniform_sample(lo, NULL, s, DT_F32, 0, 1),
              dim_value(lo, s.at[0]));
    return cast(lo, sorted[1], out_dtype(c, 0));
}

static void shape_bernoulli(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!is_float(x.dtype))
        rule_fail(in, "probabilities of %s", p2o_dtype_torch(x.dtype));
    else
        p2o_rule_same(in, c);
}

/* 1 with probability p, which broadcasts to self.  Not ONNX's Bernoulli: ONNX Runtime's draws 1
 * with probability 1 - p. */
static Value *ones_with_probability(Lower *lo, const Call *c, const char *p)
{
    DType  t = type_arg(c, p).dtype == DT_F64 ? DT_F64 : DT_F32;
    Value *x = tensor_arg(lo, c, "self");
    Value *u = uniform_sample(lo, x, x->shape, t, 0, 1);
    return cast(lo, emit(lo, ONNX_Less, u, tensor_as(lo, c, p, t)), x->dtype);
}

static Value *lower_bernoulli(Lower *lo, const Call *c)
{
    return ones_with_probability(lo, c, "self");
}
static Value *lower_bernoulli_p(Lower *lo, const Call *c)
{
    return ones_with_probability(lo, c, "p");
}

static void shape_bernoulli_p(Infer *in, const Call *c)
{
    Shape s = shape_arg(c, "self"), joint = broadcast(in, c, s, shape_arg(c, "p"));
    if (joint.rank != s.rank)
        rule_fail(in, "p of rank %d for self of rank %d", joint.rank, s.rank);
    else
        shape_refilled(in, c);
}

static void shape_multinomial(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if ((x.shape.rank != 1 && x.shape.rank != 2) || !is_float(x.dtype))
        rule_fail(in, "probabilities of rank %d and dtype %s", x.shape.rank,
                  p2o_dtype_torch(x.dtype));
    else
        set_out(in, c, 0, DT_I64, with_last(in, x.shape, dim_arg(c, "num_samples")));
}

/* Of p / e, e exponential, the greatest is drawn with probability p, the next of the rest, and so
 * on. */
static Value *lower_multinomial(Lower *lo, const Call *c)
{
    Value *p = tensor_as(lo, c, "self", DT_F32), *top[2];
    Dim    n = dim_arg(c, "num_samples");
    Shape  s = p->shape;
    if (bool_arg(c, "replacement")) {                   /* each sample a race of its own */
        p = unsqueeze(lo, p, rank(p) - 1);
        Dim *at = p2o_shape_copy(lo->arena, s, 1);
        at[s.rank] = at[s.rank - 1];
        at[s.rank - 1] = n;
        s = (Shape){ s.rank + 1, at };
    }
    Value *e = emit(lo, ONNX_Neg, emit(lo, ONNX_Log, uniform_sample(lo, p, s, DT_F32, FLT_MIN, 1)));
    Value *race = emit(lo, ONNX_Div, p, e);
    if (bool_arg(c, "replacement"))
        return emit_with(lo, ONNX_ArgMax, ATTRS(attr_int("axis", -1), attr_int("keepdims", 0)),
                         race);
    emit_many(lo, ONNX_TopK, NO_ATTRS, 2, top, race, dim_value(lo, n));
    return top[1];
}

/* Dropout does nothing at inference. */
static bool drops(const Call *c)
{
    bool train = p2o_call_arg(c, "train")->kind == ARG_NONE || bool_arg(c, "train");
    return train && float_arg(c, "p") != 0;
}

static void shape_dropout(Infer *in, const Call *c)
{
    double p = float_arg(c, "p");
    Type   x = type_arg(c, "input");
    if (drops(c) && !is_float(x.dtype))
        rule_fail(in, "dropout of %s", p2o_dtype_torch(x.dtype));
    else if (!(p >= 0 && p <= 1))
        rule_fail(in, "p of %g", p);
    else
        p2o_rule_same(in, c);
}

static void shape_native_dropout(Infer *in, const Call *c)
{
    shape_dropout(in, c);
    set_out(in, c, 1, DT_BOOL, shape_arg(c, "input"));
}

static void warn_training(Lower *lo)
{
    say_once(lo, DIAG_WARN,
             "dropout as in training: call model.eval() before the capture if that is not meant");
}

/* ONNX drops all but p = 1. */
static void dropped(Lower *lo, Value *x, double p, Value *out[2])
{
    warn_training(lo);
    emit_many(lo, ONNX_Dropout, NO_ATTRS, 2, out, x, num(lo, DT_F32, p), num(lo, DT_BOOL, 1));
}

static void lower_native_dropout(Lower *lo, const Call *c, Value **out)
{
    double p = float_arg(c, "p");
    out[0] = tensor_arg(lo, c, "input");
    if (drops(c) && p < 1)
        dropped(lo, out[0], p, out);
    else {
        out[0] = drops(c) ? times_num(lo, out[0], 0) : out[0];
        out[1] = c->outs[1] ? full(lo, out_shape(c, 1), DT_BOOL, !drops(c)) : NULL;
    }
}

static Value *lower_dropout(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input"), *out[2];
    double p = float_arg(c, "p");
    if (!drops(c))
        return x;
    if (p == 1)
        return times_num(lo, x, 0);
    dropped(lo, x, p, out);
    return out[0];
}

static void shape_feature_dropout(Infer *in, const Call *c)
{
    if (drops(c) && shape_arg(c, "input").rank < 2)
        rule_fail(in, "input of rank %d", shape_arg(c, "input").rank);
    else
        shape_dropout(in, c);
}

/* [n, c, 1, 1, ...]: whole channels are dropped. */
static Shape channel_shape(Lower *lo, const Value *x)
{
    Dim *at = p2o_shape_copy(lo->arena, x->shape, 0);
    for (int i = 2; i < rank(x); i++)
        at[i] = p2o_dim_int(lo->dims, 1);
    return (Shape){ rank(x), at };
}

static Value *lower_feature_dropout(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input"), *out[2];
    double p = float_arg(c, "p");
    if (!drops(c))
        return x;
    if (p == 1)
        return times_num(lo, x, 0);
    dropped(lo, full(lo, channel_shape(lo, x), x->dtype, 1), p, out);
    return emit(lo, ONNX_Mul, x, out[0]);
}

/* What is dropped becomes SELU's lower end, -1.758; then mean and variance are mended:
 * keep * (a * x + k) - (1 - p) * k with a = ((1 - p) * (1 + p * 1.758^2))^-1/2 and k = 1.758 *
 * a. */
static Value *alpha_dropped(Lower *lo, const Call *c, Value *x, Shape mask)
{
    const double alpha = 1.7580993408473766;
    double       p = float_arg(c, "p");
    double       a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p)), k = alpha * a;
    if (!drops(c))
        return x;
    if (p == 1)
        return times_num(lo, x, 0);
    warn_training(lo);
    Value *u = uniform_sample(lo, x, mask, DT_F32, 0, 1);
    Value *keep = cast(lo, emit(lo, ONNX_Less, u, num(lo, DT_F32, 1 - p)), x->dtype);
    Value *y = emit(lo, ONNX_Mul, keep, plus_num(lo, times_num(lo, x, a), k));
    return plus_num(lo, y, -(1 - p) * k);
}

static Value *lower_alpha_dropout(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input");
    return alpha_dropped(lo, c, x, x->shape);
}

static Value *lower_feature_alpha_dropout(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input");
    return alpha_dropped(lo, c, x, channel_shape(lo, x));
}

#define FACTORY                                                                                    \
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define INDEX                                                                                      \
    "ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define LIKE    FACTORY ", MemoryFormat? memory_format=None"
#define GEN     "*, Generator? generator=None) -> Tensor"
/* ONNX Runtime has no kernels of later versions. */
#define DRAWS   .to = 21, .batch = p2o_batch_random

/* An operator and its twin with a generator, which must be None. */
#define ROW_DRAW(name, args, tail, rule, fn)                                                       \
    { name "(" args ", *, " tail ") -> Tensor", rule, .lower = fn, DRAWS },                        \
    {                                                                                              \
        name ".generator(" args ", *, Generator? generator, " tail ") -> Tensor", rule,            \
            .lower = fn, DRAWS                                                                     \
    }
#define TRAINS  "training up to opset 21"
#define ROW_DROPOUT(name, rule, fn) \
    { name "(Tensor input, float p, bool train) -> Tensor", rule, .lower = fn, .limits = TRAINS, \
      .batch = p2o_batch_random }
#define ROW_REFILL(head, rule, fn) { head ", " GEN, rule, .lower = fn, DRAWS }

const AtenOp p2o_ops_random[] = {
    ROW_DRAW("rand", "SymInt[] size", FACTORY, shape_random_floats, lower_rand),
    ROW_DRAW("randn", "SymInt[] size", FACTORY, shape_random_floats, lower_randn),
    ROW_DRAW("rand_like", "Tensor self", LIKE, shape_random_floats, lower_rand),
    ROW_DRAW("randn_like", "Tensor self", LIKE, shape_random_floats, lower_randn),
    ROW_DRAW("randint", "SymInt high, SymInt[] size", INDEX, shape_randint, lower_randint),
    { "randint.low(SymInt low, SymInt high, SymInt[] size, *, " INDEX ") -> Tensor", shape_randint,
      .lower = lower_randint, DRAWS },
    { "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "
      INDEX ") -> Tensor",
      shape_randint, .lower = lower_randint, DRAWS },
    ROW_DRAW("randint_like", "Tensor self, SymInt high", LIKE, shape_randint, lower_randint),
    { "randint_like.Tensor(Tensor self, Tensor high, *, " LIKE ") -> Tensor", shape_randint,
      .lower = lower_randint, DRAWS },
    { "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " LIKE ") -> Tensor",
      shape_randint, .lower = lower_randint, DRAWS },
    ROW_DRAW("randperm", "SymInt n", INDEX, shape_randperm, lower_randperm),
    ROW_REFILL("normal.Tensor_float(Tensor mean, float std=1", shape_normal_of, lower_normal_of),
    ROW_REFILL("normal.float_Tensor(float mean, Tensor std", shape_normal_of, lower_normal_of),
    ROW_REFILL("normal.Tensor_Tensor(Tensor mean, Tensor std", shape_normal_of, lower_normal_of),
    { "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
      FACTORY ") -> Tensor",
      shape_random_floats, .lower = lower_normal_sized, DRAWS },
    ROW_REFILL("normal_functional(Tensor self, float mean=0, float std=1", shape_refilled,
               lower_normal),
    /* PyTorch has the next two in place only. */
    ROW_REFILL("normal(Tensor self, float mean=0, float std=1", shape_refilled, lower_normal),
    ROW_REFILL("bernoulli.float(Tensor self, float p=0.5", shape_bernoulli_p, lower_bernoulli_p),
    ROW_REFILL("bernoulli.p(Tensor self, float p", shape_bernoulli_p, lower_bernoulli_p),
    ROW_REFILL("bernoulli.Tensor(Tensor self, Tensor p", shape_bernoulli_p, lower_bernoulli_p),
    ROW_REFILL("bernoulli(Tensor self", shape_bernoulli, lower_bernoulli),
    ROW_REFILL("uniform(Tensor self, float from=0, float to=1", shape_refilled, lower_uniform),
    ROW_REFILL("exponential(Tensor self, float lambd=1", shape_refilled, lower_exponential),
    ROW_REFILL("cauchy(Tensor self, float median=0, float sigma=1", shape_refilled, lower_cauchy),
    ROW_REFILL("geometric(Tensor self, float p", shape_geometric, lower_geometric),
    ROW_REFILL("log_normal(Tensor self, float mean=1, float std=2", shape_refilled,
               lower_log_normal),
    ROW_REFILL("random(Tensor self", shape_refilled, lower_random),
    ROW_REFILL("random.to(Tensor self, int to", shape_refilled, lower_random),
    ROW_REFILL("random.from(Tensor self, int from, int? to", shape_refilled, lower_random),
    ROW_REFILL("multinomial(Tensor self, SymInt num_samples, bool replacement=False",
               shape_multinomial, lower_multinomial),
    ROW_DROPOUT("dropout", shape_dropout, lower_dropout),
    ROW_DROPOUT("feature_dropout", shape_feature_dropout, lower_feature_dropout),
    ROW_DROPOUT("alpha_dropout", shape_dropout, lower_alpha_dropout),
    ROW_DROPOUT("feature_alpha_dropout", shape_feature_dropout, lower_feature_alpha_dropout),
    { "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
      shape_native_dropout, .lower_many = lower_native_dropout, .limits = TRAINS,
      .batch = p2o_batch_random },
    { 0 },
};
