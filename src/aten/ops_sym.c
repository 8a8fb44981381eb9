/* Sizes as values: sym_size and the arithmetic on them, and the checks that captures leave behind.
 *
 * Nothing is emitted here.  A size is a Dim; nodes for it come into being where it is used. */
#include "aten/lower.h"

static void shape_sym_size(Infer *in, const Call *c)
{
    Shape s = shape_arg(c, "self");
    int   dim;
    if (must_wrap(in, int_arg(c, "dim"), s.rank, &dim))
        set_int(in, c, 0, s.at[dim]);
}

static void shape_sym_numel(Infer *in, const Call *c)
{
    set_int(in, c, 0, shape_nelem(in->dims, shape_arg(c, "self")));
}

typedef Dim DimBinaryFn(Dims *t, Dim a, Dim b);

/* a op b on ints; floats are not sizes. */
static void int_binary(Infer *in, const Call *c, DimBinaryFn *op)
{
    Type a = type_arg(c, "a"), b = type_arg(c, "b");
    if (a.kind != TY_INT || b.kind != TY_INT) {
        rule_unsupported(in, "arithmetic on numbers that are not sizes");
        return;
    }
    Dim d = op(in->dims, a.value, b.value);
    if (d)
        set_int(in, c, 0, d);
    else
        rule_unsupported(in, "%s and %s give no size", p2o_dim_text(in->dims, a.value),
                         p2o_dim_text(in->dims, b.value));
}

static void shape_int_add(Infer *in, const Call *c) { int_binary(in, c, p2o_dim_add); }
static void shape_int_sub(Infer *in, const Call *c) { int_binary(in, c, p2o_dim_sub); }
static void shape_int_mul(Infer *in, const Call *c) { int_binary(in, c, p2o_dim_mul); }
static void shape_int_floordiv(Infer *in, const Call *c) { int_binary(in, c, p2o_dim_floordiv); }
static void shape_int_mod(Infer *in, const Call *c) { int_binary(in, c, p2o_dim_mod); }
static void shape_int_min(Infer *in, const Call *c) { int_binary(in, c, p2o_dim_min); }
static void shape_int_max(Infer *in, const Call *c) { int_binary(in, c, p2o_dim_max); }

static void shape_int_neg(Infer *in, const Call *c)
{
    Type a = type_arg(c, "a");
    if (a.kind == TY_INT)
        set_int(in, c, 0, p2o_dim_neg(in->dims, a.value));
    else
        rule_unsupported(in, "arithmetic on numbers that are not sizes");
}

static void shape_int_pow(Infer *in, const Call *c)
{
    Type    a = type_arg(c, "a"), b = type_arg(c, "b");
    int64_t e;
    if (a.kind != TY_INT || b.kind != TY_INT || !p2o_dim_is_int(b.value, &e) || e < 0)
        rule_unsupported(in, "a power that is no size");
    else
        set_int(in, c, 0, p2o_dim_pow(in->dims, a.value, e));
}

/* A comparison of sizes is only ever asserted: its truth is the capture's promise. */
static void shape_int_compare(Infer *in, const Call *c) { set_bool(in, c, 0); }

#define ROW_INT(name, rule) { "_operator::" name "(Scalar a, Scalar b) -> Scalar", rule }

const AtenOp p2o_ops_sym[] = {
    { "sym_size.int(Tensor self, int dim) -> SymInt", shape_sym_size },
    { "sym_numel(Tensor self) -> SymInt", shape_sym_numel },
    ROW_INT("add", shape_int_add),
    ROW_INT("sub", shape_int_sub),
    ROW_INT("mul", shape_int_mul),
    ROW_INT("floordiv", shape_int_floordiv),
    ROW_INT("mod", shape_int_mod),
    ROW_INT("pow", shape_int_pow),
    ROW_INT("eq", shape_int_compare),
    ROW_INT("ne", shape_int_compare),
    ROW_INT("lt", shape_int_compare),
    ROW_INT("le", shape_int_compare),
    ROW_INT("gt", shape_int_compare),
    ROW_INT("ge", shape_int_compare),
    { "_operator::neg(Scalar a) -> Scalar", shape_int_neg },
    { "torch::sym_min(Scalar a, Scalar b) -> Scalar", shape_int_min },
    { "torch::sym_max(Scalar a, Scalar b) -> Scalar", shape_int_max },
    { "_assert_scalar(Scalar self, str assert_msg) -> ()", p2o_rule_none },
    { "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
      p2o_rule_none },
    { "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", p2o_rule_none },
    { "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", p2o_rule_none },
    { 0 },
};
