/* Conversions: dtype, copies, and numbers out of tensors and back.
 *
 * Devices, layouts in memory and copies mean nothing in a graph of values: only the dtype is left
 * of them.  ONNX's Cast is PyTorch's: floats to integers are cut toward zero, to bool they are
 * compared with 0. */
#include "aten/lower.h"

/* An argument that says what dtype results have: a dtype, its number, or a tensor that has it. */
static DType wanted_dtype(const Call *c, DType otherwise)
{
    int64_t code;
    if (names_arg(c, "other"))
        return type_arg(c, "other").dtype;
    if (!names_arg(c, "dtype") || !has_arg(c, "dtype"))
        return otherwise;
    if (p2o_dim_is_int(dim_arg(c, "dtype"), &code))
        return p2o_dtype_from_c10((long)code);
    return dtype_arg(c, "dtype", otherwise);
}

static void cast_result(Infer *in, const Call *c, DType t)
{
    Type x = type_arg(c, "self");
    if (p2o_dtype_onnx(part_of(t)) == 0)
        rule_unsupported(in, "a conversion to %s", p2o_dtype_torch(t));
    else
        set_out(in, c, 0, t, x.shape);
}

static void shape_to(Infer *in, const Call *c)
{
    if (names_arg(c, "layout") && has_arg(c, "layout") && !same(str_arg(c, "layout"), "strided"))
        rule_unsupported(in, "a sparse layout");
    else
        cast_result(in, c, wanted_dtype(c, type_arg(c, "self").dtype));
}

static Value *lower_to(Lower *lo, const Call *c)
{
    return tensor_as(lo, c, "self", out_dtype(c, 0));
}

/* _cast_Float and its like: the dtype is in the name. */
static void shape_cast_named(Infer *in, const Call *c)
{
    static const struct {
        const char *name;
        DType       t;
    } types[] = {
        { "Byte", DT_U8 }, { "Char", DT_I8 },    { "Short", DT_I16 }, { "Int", DT_I32 },
        { "Long", DT_I64 }, { "Half", DT_F16 }, { "Float", DT_F32 }, { "Double", DT_F64 },
    };
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (p2o_str_ends(str_of(c->schema->key), types[i].name))
            cast_result(in, c, types[i].t);
}

static void shape_view_dtype(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    DType t = dtype_arg(c, "dtype", x.dtype);
    if (t != x.dtype)
        rule_unsupported(in, "the bits of %s as %s", p2o_dtype_torch(x.dtype), p2o_dtype_torch(t));
    else
        p2o_rule_same(in, c);
}

static Value *lower_unchanged(Lower *lo, const Call *c) { return tensor_arg(lo, c, "self"); }

/* The one element of a tensor, as a number. */
static void shape_item(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!must_equal(in, c, shape_nelem(in->dims, x.shape), int_dim(in, 1), "number of elements"))
        return;
    if (is_float(x.dtype))
        set_float(in, c, 0);
    else if (x.dtype == DT_BOOL)
        set_bool(in, c, 0);
    else
        set_int(in, c, 0, NULL);
}

static Value *only_element(Lower *lo, const Call *c)
{
    return reshape(lo, tensor_arg(lo, c, "self"), (Shape){ 0, NULL });
}

static Value *lower_item(Lower *lo, const Call *c)
{
    Value *x = only_element(lo, c);
    return is_int(x->dtype) ? cast(lo, x, DT_I64) : x;
}

static void shape_is_nonzero(Infer *in, const Call *c)
{
    if (must_equal(in, c, shape_nelem(in->dims, shape_arg(c, "self")), int_dim(in, 1),
                   "number of elements"))
        set_bool(in, c, 0);
}

static Value *lower_is_nonzero(Lower *lo, const Call *c)
{
    return cast(lo, only_element(lo, c), DT_BOOL);
}

/* PyTorch gives a number the default dtype here, whatever it is. */
static void shape_scalar_tensor(Infer *in, const Call *c)
{
    set_out(in, c, 0, dtype_arg(c, "dtype", default_dtype(c)), (Shape){ 0, NULL });
}

static Value *lower_scalar_tensor(Lower *lo, const Call *c)
{
    return number_arg(lo, c, "s", out_dtype(c, 0));
}

#define TO_TAIL                                                                                    \
    ", bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"
#define FACTORY                                                                                    \
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define ROW_TO(head)     { head, shape_to, .lower = lower_to, .batch = p2o_batch_self }
#define ROW_NAMED(name)                                                                            \
    {                                                                                              \
        "_cast_" name "(Tensor self, bool non_blocking=False) -> Tensor", shape_cast_named,        \
            .lower = lower_to, .batch = p2o_batch_self                                             \
    }
#define ROW_ALIAS(name)                                                                            \
    {                                                                                              \
        name "(Tensor(a) self) -> Tensor(a)", p2o_rule_same, .lower = lower_unchanged,             \
                                                             .idle = p2o_idle_copy                 \
    }

const AtenOp p2o_ops_cast[] = {
    ROW_TO("to.dtype(Tensor(a) self, ScalarType dtype" TO_TAIL),
    ROW_TO("to.device(Tensor(a) self, Device device, ScalarType dtype" TO_TAIL),
    ROW_TO("to.other(Tensor(a) self, Tensor other" TO_TAIL),
    ROW_TO("to.dtype_layout(Tensor(a) self, *, " FACTORY TO_TAIL),
    ROW_TO(
        "to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)"),
    ROW_TO(
        "to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)"),
    ROW_TO(
        "to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)"),
    ROW_TO("_to_copy(Tensor self, *, " FACTORY
           ", bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor"),
    ROW_TO("type_as(Tensor self, Tensor other) -> Tensor"),
    ROW_NAMED("Byte"),
    ROW_NAMED("Char"),
    ROW_NAMED("Short"),
    ROW_NAMED("Int"),
    ROW_NAMED("Long"),
    ROW_NAMED("Half"),
    ROW_NAMED("Float"),
    ROW_NAMED("Double"),
    { "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", p2o_rule_same,
      .lower = lower_unchanged, .idle = p2o_idle_copy },
    ROW_ALIAS("detach"),
    ROW_ALIAS("alias"),
    { "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", shape_view_dtype,
      .lower = lower_unchanged, .limits = "another dtype" },
    { "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", shape_view_dtype,
      .lower = lower_unchanged, .limits = "another dtype" },
    { "item(Tensor self) -> Scalar", shape_item, .lower = lower_item },
    { "_local_scalar_dense(Tensor self) -> Scalar", shape_item, .lower = lower_item },
    { "is_nonzero(Tensor self) -> bool", shape_is_nonzero, .lower = lower_is_nonzero },
    { "scalar_tensor(Scalar s, *, " FACTORY ") -> Tensor", shape_scalar_tensor,
      .lower = lower_scalar_tensor },
    /* torch.tensor([n, 2.5]) asks for the dtype its items have in common; the calls that follow
       know it. */
    { "promote_types(ScalarType type1, ScalarType type2) -> ScalarType", p2o_rule_none },
    { 0 },
};
