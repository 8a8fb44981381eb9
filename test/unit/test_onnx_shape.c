/* Every rule of onnx_ops.def by example: inputs and attributes as text, and what types come out.
 *
 * An input is `f32[b, 4]`, `_` when absent, `seq f32[b]` for a sequence; `i64[2] = b, -1` also
 * knows its contents, which for other types than integers are a constant's.  An output shows its
 * contents the same way.  "none" means that the rule refuses the node.  The opset is 20 unless the
 * operator's name says another: `Split@17`. */
#include "base/num.h"
#include "check.h"
#include "onnx/graph.h"
#include "onnx/onnx_ops.h"

typedef struct Case {
    const char *op, *in, *attrs;
    int         nout;
    const char *out;
} Case;

static Str next_part(Str *rest, char c)
{
    int    depth = 0;
    size_t i = 0;
    for (; i < rest->n && (rest->p[i] != c || depth); i++)
        depth += (rest->p[i] == '[' || rest->p[i] == '(') - (rest->p[i] == ']' ||
                                   rest->p[i] == ')');
    Str part = { rest->p, i };
    *rest = i < rest->n ? (Str){ rest->p + i + 1, rest->n - i - 1 } : (Str){ "", 0 };
    return p2o_str_trim(part);
}

static Shape parse_dims(Graph *g, Str s)
{
    Dim        *at = NEW_N(g->arena, Dim, 300);
    int         rank = 0;
    const char *error;
    for (s = p2o_str_trim(s); s.n; rank++) {
        at[rank] = p2o_dim_parse(g->dims, next_part(&s, ','), &error);
        CHECK(at[rank]);
    }
    return (Shape){ rank, at };
}

/* A constant of bool or f32, element by element. */
static Value *parse_constant(Graph *g, DType t, Shape s, Str values)
{
    int64_t  sizes[8];
    float   *f = NEW_N(g->arena, float, 64);
    uint8_t *b = (uint8_t *)f;
    for (int i = 0; i < s.rank; i++)
        CHECK(p2o_dim_is_int(s.at[i], &sizes[i]));
    for (int i = 0; values.n; i++) {
        double v = 0;
        CHECK(p2o_parse_f64(next_part(&values, ','), &v));
        if (t == DT_BOOL)
            b[i] = v != 0;
        else
            f[i] = (float)v;
    }
    return p2o_graph_init(g, NULL, p2o_tensor_make(g->arena, t, s.rank, sizes, f));
}

static Value *parse_value(Graph *g, Str s)
{
    Str values, name, dims, type;
    if (str_is(s, "_"))
        return NULL;
    bool list = p2o_str_starts(s, "seq ");
    if (list)
        s = (Str){ s.p + 4, s.n - 4 };
    type = p2o_str_trim(p2o_str_cut(s, '=', &values));
    name = p2o_str_cut(type, '[', &dims);
    Shape shape = { .rank = -1 };
    if (dims.n)
        shape = parse_dims(g, (Str){ dims.p, dims.n - 1 });
    DType t = p2o_dtype_from_text(name);
    CHECK(t != DT_NONE);
    values = p2o_str_trim(values);
    if (values.n && t != DT_I64 && t != DT_I32)
        return parse_constant(g, t, shape, values);
    Value *v = p2o_graph_input(g, NULL, t, shape);
    v->is_sequence = list;
    if (values.n) {
        Shape ints = parse_dims(g, str_is(values, "empty") ? STR("") : values);
        v->ints = ints.at;
        v->nints = (size_t)ints.rank;
    }
    return v;
}

static Attr parse_attr(Graph *g, Str s)
{
    Str         value;
    const char *name = p2o_str_dup(g->arena, p2o_str_cut(s, '=', &value));
    int64_t     i;
    if (p2o_str_starts(value, "[")) {
        int64_t *v = NEW_N(g->arena, int64_t, 64);
        size_t   n = 0;
        for (Str rest = { value.p + 1, value.n - 2 }; rest.n; n++)
            CHECK(p2o_parse_i64(next_part(&rest, ','), &v[n]));
        return attr_ints(name, v, n);
    }
    if (p2o_parse_i64(value, &i))
        return attr_int(name, i);
    if (p2o_str_starts(value, "i64:")) {
        CHECK(p2o_parse_i64((Str){ value.p + 4, value.n - 4 }, &i));
        return attr_tensor(name, p2o_tensor_ints(g->arena, 1, &i, 1));
    }
    return attr_str(name, p2o_str_dup(g->arena, value));
}

static void put_value_text(Graph *g, Buf *b, const Value *v)
{
    p2o_putf(b, "%s%s%s", b->n ? "; " : "", v->is_sequence ? "seq " : "", p2o_dtype_text(v->dtype));
    if (v->shape.rank >= 0)
        p2o_putf(b, "[%s]", p2o_shape_text(g->dims, v->shape));
    if (v->ints)
        p2o_putf(b, " = %s",
                 v->nints ? p2o_shape_text(g->dims, (Shape){ (int)v->nints, v->ints }) : "empty");
}

/* The expected types in the words of this graph's Dims, which have a normal form of their own. */
static const char *reworded(Graph *g, const char *types)
{
    Buf b = { .arena = g->arena };
    for (Str s = str_of(types); s.n;)
        put_value_text(g, &b, parse_value(g, next_part(&s, ';')));
    return b.at;
}

static void run_case(const Case *c)
{
    Arena *a = p2o_arena_new(NULL, NULL);
    Diags *d = p2o_diags_new(a, NULL, NULL);
    Str     opset, name = p2o_str_cut(str_of(c->op), '@', &opset);
    int64_t version = 20;
    CHECK(!opset.n || p2o_parse_i64(opset, &version));
    Graph *g = p2o_graph_new(a, d, p2o_dims_new(a), (int)version, NULL);
    Value *in[16];
    Attr   attrs[16];
    int    nin = 0, nattr = 0;
    OnnxOp op = p2o_onnx_find(name);
    CHECK(op != ONNX_NONE);
    p2o_dim_set_range(g->dims, p2o_dim_sym(g->dims, "neg"), -9, -1);
    p2o_dim_set_range(g->dims, p2o_dim_sym(g->dims, "any"), NO_LOWER, NO_UPPER);
    p2o_dim_set_range(g->dims, p2o_dim_sym(g->dims, "pos"), 1, NO_UPPER);
    for (Str s = str_of(c->in); s.n;)
        in[nin++] = parse_value(g, next_part(&s, ';'));
    for (Str s = str_of(c->attrs); s.n;)
        attrs[nattr++] = parse_attr(g, next_part(&s, ' '));
    Node *n = p2o_graph_node(g, op, nin, in, nattr, attrs, c->nout, 0);
    Buf   out = { .arena = a };
    for (int i = 0; i < n->nout; i++)
        put_value_text(g, &out, n->out[i]);
    bool        poison = n->out[0]->dtype == DT_NONE;
    const char *got = poison ? "none" : out.at;
    CHECK(poison == (p2o_diags_errors(d) == 1));
    CHECK(p2o_graph_check(g) == NULL);
    const char *want = same(c->out, "none") ? c->out : reworded(g, c->out);
    CHECK(same(got, want));
    if (!same(got, want))
        printf("  %s(%s; %s)\n  gives %s\n  not   %s\n", c->op, c->in, c->attrs, got, want);
    p2o_arena_free(a);
}

static const Case elementwise[] = {
    { "Relu", "f32[b, 4]", "", 1, "f32[b, 4]" },
    { "Sin", "i64[4]", "", 1, "none" },
    { "Not", "bool[b]", "", 1, "bool[b]" },
    { "Not", "f32[b]", "", 1, "none" },
    { "BitwiseNot", "i32[b]", "", 1, "i32[b]" },
    { "BitwiseNot@17", "i32[b]", "", 1, "none" },
    { "IsNaN", "f16[b]", "", 1, "bool[b]" },
    { "Add", "f32[b, 1, 4]; f32[s, 1]", "", 1, "f32[b, s, 4]" },
    { "Add", "f32[b]; f32[b, s]", "", 1, "f32[b, b]" },
    { "Add", "f32[3]; f32[4]", "", 1, "none" },
    { "Add", "f32[3]; f64[3]", "", 1, "none" },
    { "Add", "bool[3]; bool[3]", "", 1, "none" },
    { "Add", "f32[b, 4]; f32[5, h]", "", 1, "f32[5, 4]" },
    { "Mul", "f32[b, 0]; f32[1, s]", "", 1, "f32[b, 0]" },
    { "Sub", "f32[]; f32[b]", "", 1, "f32[b]" },
    { "Add", "i64[2] = b, 3; i64[] = 1", "", 1, "i64[2] = b + 1, 4" },
    { "Sub", "i64[] = b; i64[1] = b", "", 1, "i64[1] = 0" },
    { "Mul", "i64[2] = b, 2; i64[2] = s, h", "", 1, "i64[2] = b*s, 2*h" },
    { "Mul", "i64[] = 9223372036854775807; i64[] = 2", "", 1, "i64[]" },
    { "Add", "i32[] = 2147483647; i32[] = 1", "", 1, "i32[]" },
    { "Div", "i64[3] = b, 6*b, -7; i64[3] = 2, 3, 2", "", 1, "i64[3] = b//2, 2*b, -3" },
    { "Div", "i64[] = any; i64[] = 2", "", 1, "i64[]" },
    { "Div", "i64[] = 2*any; i64[] = 2", "", 1, "i64[] = any" },
    { "Div", "i64[] = b; i64[] = 0", "", 1, "i64[]" },
    { "Mod", "i64[2] = -7, b; i64[] = 3", "", 1, "i64[2] = 2, b % 3" },
    { "Mod", "i64[] = any; i64[] = 3", "fmod=1", 1, "i64[]" },
    { "Mod", "f32[b]; f32[]", "", 1, "none" },
    { "Mod", "f32[b]; f32[]", "fmod=1", 1, "f32[b]" },
    { "Min", "i64[] = b; i64[] = 4; i64[] = b", "", 1, "i64[] = min(b, 4)" },
    { "Max", "i64[] = pos; i64[] = 1", "", 1, "i64[] = pos" },
    { "Max", "f32[b, 1]; f32[s]; f32[]", "", 1, "f32[b, s]" },
    { "Sum", "f32[b, 1]; f32[s]", "", 1, "f32[b, s]" },
    { "Mean", "i64[b]", "", 1, "none" },
    { "Neg", "i64[] = b", "", 1, "i64[] = -b" },
    { "Abs", "i64[2] = neg, -3", "", 1, "i64[2] = -neg, 3" },
    { "Pow", "f32[b]; i64[]", "", 1, "f32[b]" },
    { "And", "bool[b, 1]; bool[4]", "", 1, "bool[b, 4]" },
    { "And", "f32[b]; f32[b]", "", 1, "none" },
    { "BitShift", "u8[b]; u8[]", "direction=LEFT", 1, "u8[b]" },
    { "Equal", "bool[b]; bool[]", "", 1, "bool[b]" },
    { "Less", "i64[b]; i64[]", "", 1, "bool[b]" },
    { "Less", "bool[b]; bool[]", "", 1, "none" },
    { "PRelu", "f32[b, 3, h]; f32[3, 1]", "", 1, "f32[b, 3, h]" },
    { "PRelu", "f32[3]; f32[2, 3]", "", 1, "none" },
    { "Clip", "f32[b]; f32[]; _", "", 1, "f32[b]" },
    { "Clip", "f32[b]; _; f64[]", "", 1, "none" },
    { "Clip", "i64[2] = b, 9; i64[] = 1; i64[] = 5", "", 1, "i64[2] = min(max(b, 1), 5), 5" },
    { "Where", "bool[b, 1]; f32[4]; f32[]", "", 1, "f32[b, 4]" },
    { "Where", "f32[b]; f32[4]; f32[]", "", 1, "none" },
    { "Where", "bool[2] = 1, 0; i64[2] = b, s; i64[2] = 3, 4", "", 1, "i64[2] = b, 4" },
    { "Where", "bool[2]; i64[2] = b, s; i64[2] = b, 4", "", 1, "i64[2]" },
    { "Where", "bool[2]; i64[2] = b, 4; i64[2] = b, 4", "", 1, "i64[2] = b, 4" },
    { "Cast", "i64[2] = b, 4", "to=6", 1, "i32[2] = b, 4" },
    { "Cast", "i64[1] = 4294967296", "to=6", 1, "i32[1]" },
    { "Cast", "i64[2] = b, 4", "to=1", 1, "f32[2]" },
    { "Cast", "i64[2]", "to=99", 1, "none" },
    { "Cast", "i64[2]", "", 1, "none" },
    { "CastLike", "f32[b]; f16[]", "", 1, "f16[b]" },
    { "Softmax", "f32[b, 4]", "axis=-2", 1, "f32[b, 4]" },
    { "Softmax", "f32[b, 4]", "axis=2", 1, "none" },
    { "CumSum", "i64[b, s]; i64[] = -1", "", 1, "i64[b, s]" },
    { "CumSum", "i64[b]; i64[] = 1", "", 1, "none" },
    { "Trilu", "bool[s, s]; i64[]", "", 1, "bool[s, s]" },
    { "Trilu", "f32[s]", "", 1, "none" },
    { "Dropout", "f32[b]", "", 2, "f32[b]; bool[b]" },
    { "BatchNormalization", "f32[b, 3, h]; f32[3]; f32[3]; f32[3]; f32[3]", "", 1, "f32[b, 3, h]" },
    { "BatchNormalization", "f32[b, 3, h]; f32[3]; f32[3]; f32[3]; f32[3]", "training_mode=1", 3,
      "f32[b, 3, h]; f32[3]; f32[3]" },
    { "LayerNormalization", "f16[b, s, 8]; f16[8]", "", 3,
      "f16[b, s, 8]; f32[b, s, 1]; f32[b, s, 1]" },
    { "GroupNormalization", "f32[b, 4, h]; f32[4]; f32[4]", "num_groups=2", 1, "none" },
    { "GroupNormalization@21", "f32[b, 4, h]; f32[4]; f32[4]", "num_groups=2", 1, "f32[b, 4, h]" },
    { "QuantizeLinear", "f32[b]; f32[]; i8[]", "", 1, "i8[b]" },
    { "QuantizeLinear", "f32[b]; f32[]", "", 1, "u8[b]" },
    { "DequantizeLinear", "i8[b]; f32[]; i8[]", "", 1, "f32[b]" },
    { "DequantizeLinear", "i8[b]; f32[]; u8[]", "", 1, "none" },
    { "DynamicQuantizeLinear", "f32[b]", "", 3, "u8[b]; f32[]; u8[]" },
    { "Gelu", "f32[b]", "", 1, "f32[b]" },
    { "Gelu@19", "f32[b]", "", 1, "none" },
    { "Add", "f32[b]", "", 1, "none" },
    { "Add", "f32[b]; f32[b]; f32[b]", "", 1, "none" },
    { "Add", "f32[b]; _", "", 1, "none" },
    { "Add", "seq f32[b]; f32[b]", "", 1, "none" },
};

static const Case reductions[] = {
    { "ReduceMean", "f32[b, s, 4]; i64[1] = -1", "", 1, "f32[b, s, 1]" },
    { "ReduceMean", "f32[b, s, 4]; i64[2] = 0, -1", "keepdims=0", 1, "f32[s]" },
    { "ReduceMean", "f32[b, s, 4]", "keepdims=0", 1, "f32[]" },
    { "ReduceMean", "f32[b, s]; i64[0] = empty", "noop_with_empty_axes=1", 1, "f32[b, s]" },
    { "ReduceMean", "f32[b, s]; i64[1]", "", 1, "none" },
    { "ReduceMean", "f32[b, s]; i64[1] = 2", "", 1, "none" },
    { "ReduceMean", "f32[b, s]; i64[2] = 1, -1", "", 1, "none" },
    { "ReduceMean@17", "f32[b, s]; i64[1] = 1", "", 1, "none" },
    { "ReduceMean@17", "f32[b, s]", "axes=[1]", 1, "f32[b, 1]" },
    { "ReduceMean@18", "f32[b, s]", "axes=[1]", 1, "none" },
    { "ReduceSum@17", "f32[b, s]; i64[1] = 1", "", 1, "f32[b, 1]" },
    { "ReduceMax", "bool[b]", "", 1, "bool[1]" },
    { "ReduceMax@18", "bool[b]", "", 1, "none" },
    { "ReduceProd", "i64[3] = b, 2, s", "keepdims=0", 1, "i64[] = 2*b*s" },
    { "ReduceSum", "i64[2] = b, 2; i64[1] = 0", "", 1, "i64[1] = b + 2" },
    { "ReduceSum", "i64[0] = empty", "keepdims=0", 1, "i64[] = 0" },
    { "ReduceSum", "i64[2] = b, 2; i64[0] = empty", "noop_with_empty_axes=1", 1, "i64[2] = b, 2" },
    { "ArgMax", "f32[b, s]", "axis=-1 keepdims=0", 1, "i64[b]" },
    { "ArgMin", "f32[b, s]", "", 1, "i64[1, s]" },
    { "ArgMin", "f32[]", "", 1, "none" },
};

static const Case movement[] = {
    { "Identity", "i64[2] = b, 4", "", 1, "i64[2] = b, 4" },
    { "Identity", "seq f32[b]", "", 1, "seq f32[b]" },
    { "Reshape", "f32[b, 4, 8]; i64[2] = 0, -1", "", 1, "f32[b, 32]" },
    { "Reshape", "f32[b, s, 8]; i64[3] = -1, 2, 4", "", 1, "f32[b*s, 2, 4]" },
    { "Reshape", "f32[b, s]; i64[2] = -1, 4", "", 1, "f32[b*s//4, 4]" },
    { "Reshape", "f32[b, s]; i64[2] = s, b", "", 1, "f32[s, b]" },
    { "Reshape", "f32[b, s]; i64[3] = 0, 0, 0", "", 1, "none" },
    { "Reshape", "f32[0, 4]; i64[2] = 0, 7", "allowzero=1", 1, "f32[0, 7]" },
    { "Reshape", "f32[b]; i64[2] = -1, -1", "", 1, "none" },
    { "Reshape", "f32[b]; i64[1] = -2", "", 1, "none" },
    { "Reshape", "f32[6]; i64[1] = 7", "", 1, "none" },
    { "Reshape", "f32[b]; i64[3]", "", 1, "f32[u, u_1, u_2]" },
    { "Reshape", "f32[b]; i64[n]", "", 1, "none" },
    { "Reshape", "f32[b]; i32[1] = -1", "", 1, "none" },
    { "Reshape", "i64[1] = b; i64[0] = empty", "", 1, "i64[] = b" },
    { "Reshape", "i64[] = b; i64[1] = -1", "", 1, "i64[1] = b" },
    { "Flatten", "f32[b, 3, h]", "axis=-2", 1, "f32[b, 3*h]" },
    { "Flatten", "f32[b, 3]", "axis=0", 1, "f32[1, 3*b]" },
    { "Flatten", "f32[b]", "axis=2", 1, "none" },
    { "Squeeze", "f32[1, b, 1]; i64[2] = 0, -1", "", 1, "f32[b]" },
    { "Squeeze", "f32[2, b]; i64[1] = 0", "", 1, "none" },
    { "Squeeze", "f32[1, 4, 1]", "", 1, "f32[4]" },
    { "Squeeze", "f32[1, b]", "", 1, "none" },
    { "Squeeze", "i64[1] = b; i64[1] = 0", "", 1, "i64[] = b" },
    { "Unsqueeze", "f32[b]; i64[2] = 0, -1", "", 1, "f32[1, b, 1]" },
    { "Unsqueeze", "f32[b]; i64[1] = 2", "", 1, "none" },
    { "Unsqueeze", "f32[b]; i64[2] = 0, 0", "", 1, "none" },
    { "Unsqueeze", "i64[] = s; i64[1] = 0", "", 1, "i64[1] = s" },
    { "Transpose", "f32[b, 3, h]", "perm=[2, 0, 1]", 1, "f32[h, b, 3]" },
    { "Transpose", "f32[b, 3]", "", 1, "f32[3, b]" },
    { "Transpose", "f32[b, 3]", "perm=[0, 0]", 1, "none" },
    { "Transpose", "f32[b, 3]", "perm=[0]", 1, "none" },
    { "Expand", "f32[b, 1]; i64[2] = 1, s", "", 1, "f32[b, s]" },
    { "Expand", "f32[4]; i64[3] = b, 1, 1", "", 1, "f32[b, 1, 4]" },
    { "Expand", "f32[b, 1]; i64[1]", "", 1, "f32[b, u]" },
    { "Expand", "f32[3]; i64[1] = 4", "", 1, "none" },
    { "Expand", "i64[1] = b; i64[1] = 3", "", 1, "i64[3] = b, b, b" },
    { "Expand", "i64[] = b; i64[1] = 1000", "", 1, "i64[1000]" },
    { "Tile", "f32[b, 3]; i64[2] = 2, s", "", 1, "f32[2*b, 3*s]" },
    { "Tile", "f32[b, 3]; i64[2]", "", 1, "f32[u, u_1]" },
    { "Tile", "f32[b, 3]; i64[1] = 2", "", 1, "none" },
    { "Pad", "f32[b, h]; i64[4] = 0, 1, 0, 2", "", 1, "f32[b, h + 3]" },
    { "Pad", "f32[b, h]; i64[2] = p, -1; f32[]; i64[1] = -1", "", 1, "f32[b, h + p - 1]" },
    { "Pad@17", "f32[b, h]; i64[2] = 1, 1; _; i64[1] = 0", "", 1, "none" },
    { "Pad", "f32[b, h]; i64[2] = 1, 1", "", 1, "none" },
    { "Pad", "f32[b]; i64[2]", "", 1, "f32[u]" },
    { "Pad", "f32[b]; i64[2] = 0, 1; i64[]", "", 1, "none" },
    { "Slice", "f32[b, h]; i64[1] = 1; i64[1] = 9223372036854775807; i64[1] = 1", "", 1,
      "f32[b, max(h - 1, 0)]" },
    { "Slice", "f32[pos]; i64[1] = 1; i64[1] = 9223372036854775807; i64[1] = 0", "", 1,
      "f32[pos - 1]" },
    { "Slice", "f32[h]; i64[1] = 0; i64[1] = 5; i64[1] = 0", "", 1, "f32[min(h, 5)]" },
    { "Slice", "f32[h]; i64[1] = 0; i64[1] = -1; i64[1] = 0", "", 1, "f32[max(h - 1, 0)]" },
    { "Slice", "f32[h]; i64[1] = -3; i64[1] = 9223372036854775807; i64[1] = 0", "", 1,
      "f32[min(h, 3)]" },
    { "Slice", "f32[h]; i64[1] = -1; i64[1] = -9223372036854775807; i64[1] = 0; i64[1] = -1", "", 1,
      "f32[h]" },
    { "Slice", "f32[10]; i64[1] = 8; i64[1] = 1; i64[1] = 0; i64[1] = -3", "", 1, "f32[3]" },
    { "Slice", "f32[10]; i64[1] = 2; i64[1] = 9; i64[1] = 0; i64[1] = 2", "", 1, "f32[4]" },
    { "Slice", "f32[10]; i64[1] = 7; i64[1] = 3", "", 1, "f32[0]" },
    { "Slice", "f32[h]; i64[1] = 0; i64[1] = s; i64[1] = 0", "", 1, "f32[min(h, s)]" },
    { "Slice", "f32[h]; i64[1] = any; i64[1] = 5; i64[1] = 0", "", 1, "f32[u]" },
    { "Slice", "f32[h]; i64[1]; i64[1] = 5; i64[1] = 0", "", 1, "f32[u]" },
    { "Slice", "f32[h]; i64[1] = 0; i64[1] = 5; i64[1]", "", 1, "none" },
    { "Slice", "f32[h]; i64[1] = 0; i64[1] = 5; i64[1] = 0; i64[1] = 0", "", 1, "none" },
    { "Slice", "f32[h]; i64[1] = 0; i64[2] = 5, 6; i64[1] = 0", "", 1, "none" },
    { "Slice", "i64[4] = b, 2, s, 4; i64[1] = 1; i64[1] = 3", "", 1, "i64[2] = 2, s" },
    { "Slice",
      "i64[4] = b, 2, s, 4; i64[1] = -1; i64[1] = -9223372036854775807; i64[1] = 0; i64[1] = -2",
          "",
      1, "i64[2] = 4, 2" },
    { "Slice", "i64[2] = b, 2; i64[1] = 9; i64[1] = 12", "", 1, "i64[0] = empty" },
    { "Concat", "f32[b, 3]; f32[b, s]; f32[b, 1]", "axis=-1", 1, "f32[b, s + 4]" },
    { "Concat", "f32[b, 3]; f32[2, s]", "axis=1", 1, "f32[2, s + 3]" },
    { "Concat", "f32[4, 3]; f32[5, 3]", "axis=1", 1, "none" },
    { "Concat", "f32[b]; f64[b]", "axis=0", 1, "none" },
    { "Concat", "f32[b]; f32[b]", "", 1, "none" },
    { "Concat", "i64[1] = b; i64[2] = 3, s", "axis=0", 1, "i64[3] = b, 3, s" },
    { "Split", "f32[b, 6]; i64[2] = 2, 4", "axis=1", 2, "f32[b, 2]; f32[b, 4]" },
    { "Split", "f32[b]", "num_outputs=2", 2, "f32[-((-b)//2)]; f32[b + (-b)//2]" },
    { "Split", "f32[7]", "num_outputs=3", 3, "f32[3]; f32[3]; f32[1]" },
    { "Split@17", "f32[2*b]", "", 2, "f32[b]; f32[b]" },
    { "Split", "f32[4]", "", 2, "none" },
    { "Split", "f32[b]; i64[2]", "", 2, "f32[u]; f32[u_1]" },
    { "Gather", "f32[v, 8]; i64[b, s]", "", 1, "f32[b, s, 8]" },
    { "Gather", "f32[v, 8]; i64[]", "axis=-1", 1, "f32[v]" },
    { "Gather", "f32[v, 8]; f32[]", "", 1, "none" },
    { "Gather", "i64[3] = b, 4, s; i64[] = -1", "", 1, "i64[] = s" },
    { "Gather", "i64[3] = b, 4, s; i64[2] = 1, 0", "", 1, "i64[2] = 4, b" },
    { "Gather", "i64[3] = b, 4, s; i64[] = 3", "", 1, "none" },
    { "GatherElements", "f32[b, v]; i64[b, k]", "axis=1", 1, "f32[b, k]" },
    { "GatherElements", "f32[b, v]; i64[k]", "axis=1", 1, "none" },
    { "GatherND", "f32[b, h, w, 3]; i64[n, 2]", "", 1, "f32[n, w, 3]" },
    { "GatherND", "f32[b, h, w]; i64[b, n, 1]", "batch_dims=1", 1, "f32[b, n, w]" },
    { "GatherND", "f32[b]; i64[n, 2]", "", 1, "none" },
    { "ScatterElements", "f32[b, 4]; i64[b, 2]; f32[b, 2]", "axis=1 reduction=add", 1,
      "f32[b, 4]" },
    { "ScatterElements@17", "f32[b, 4]; i64[b, 2]; f32[b, 2]", "axis=1 reduction=max", 1, "none" },
    { "ScatterElements", "f32[b, 4]; i64[b, 2]; f16[b, 2]", "axis=1", 1, "none" },
    { "ScatterND", "f32[b, 4]; i64[n, 1]; f32[n, 4]", "", 1, "f32[b, 4]" },
    { "ScatterND", "f32[b, 4]; i64[n, 1]; f32[n]", "", 1, "none" },
    { "Compress", "f32[b, 4]; bool[b]", "axis=0", 1, "f32[u, 4]" },
    { "Compress", "f32[b, 4]; bool[n]", "", 1, "f32[u]" },
    { "DepthToSpace", "f32[b, 4*c, h, w]", "blocksize=2", 1, "f32[b, c, 2*h, 2*w]" },
    { "SpaceToDepth", "f32[b, c, 2*h, w]", "blocksize=2", 1, "f32[b, 4*c, h, w//2]" },
    { "SpaceToDepth", "f32[b, c, h]", "blocksize=2", 1, "none" },
    { "ReverseSequence", "f32[s, b]; i64[b]", "", 1, "f32[s, b]" },
    { "CenterCropPad", "f32[h, w, 3]; i64[2] = 8, s", "axes=[0, 1]", 1, "f32[8, s, 3]" },
};

static const Case makers[] = {
    { "Shape", "f32[b, 4]", "", 1, "i64[2] = b, 4" },
    { "Shape", "f32[b, 4, s]", "start=-2", 1, "i64[2] = 4, s" },
    { "Shape", "f32[b, 4, s]", "start=1 end=-1", 1, "i64[1] = 4" },
    { "Shape", "f32[b, 4]", "start=2 end=1", 1, "i64[0] = empty" },
    { "Shape", "f32[]", "", 1, "i64[0] = empty" },
    { "Size", "f32[b, 4]", "", 1, "i64[] = 4*b" },
    { "Range", "i64[] = 0; i64[] = s; i64[] = 1", "", 1, "i64[s]" },
    { "Range", "i64[] = 1; i64[] = 8; i64[] = 3", "", 1, "i64[3] = 1, 4, 7" },
    { "Range", "i64[] = 5; i64[] = 0; i64[] = -2", "", 1, "i64[3] = 5, 3, 1" },
    { "Range", "i64[] = 5; i64[] = 0; i64[] = 1", "", 1, "i64[0] = empty" },
    { "Range", "i64[] = p; i64[] = p + s; i64[] = 1", "", 1, "i64[s]" },
    { "Range", "i64[] = 0; i64[] = s; i64[] = 0", "", 1, "none" },
    { "Range", "i64[]; i64[] = s; i64[] = 1", "", 1, "i64[u]" },
    { "Range", "f32[] = 0; f32[] = 1; f32[] = 0.25", "", 1, "f32[4]" },
    { "Range", "f32[] = 0; f32[] = 1; f32[] = 0.3", "", 1, "f32[4]" },
    { "Range", "f32[] = 0; f32[] = -1; f32[] = 0.3", "", 1, "f32[0]" },
    { "Range", "f32[] = 0; f32[] = 1; f32[] = 0", "", 1, "f32[u]" },
    { "Range", "i64[1] = 0; i64[] = s; i64[] = 1", "", 1, "none" },
    { "ConstantOfShape", "i64[2] = b, 4", "", 1, "f32[b, 4]" },
    { "ConstantOfShape", "i64[1] = 2", "value=i64:7", 1, "i64[2] = 7, 7" },
    { "ConstantOfShape", "i64[0] = empty", "value=i64:7", 1, "i64[] = 7" },
    { "ConstantOfShape", "i64[2]", "", 1, "f32[u, u_1]" },
    { "Constant", "", "value=i64:7", 1, "i64[1] = 7" },
    { "Constant", "", "value_ints=[1, 2]", 1, "i64[2] = 1, 2" },
    { "Constant", "", "value_int=3", 1, "i64[] = 3" },
    { "Constant", "", "", 1, "none" },
    { "NonZero", "bool[b, 4]", "", 1, "i64[2, u]" },
    { "NonZero", "bool[]", "", 1, "none" },
    { "TopK", "f32[b, v]; i64[1] = 5", "", 2, "f32[b, 5]; i64[b, 5]" },
    { "TopK", "f32[b, v]; i64[1]", "axis=0", 2, "f32[u, v]; i64[u, v]" },
    { "Unique", "i64[b, s]", "", 4, "i64[u]; i64[u]; i64[b*s]; i64[u]" },
    { "Unique", "i64[b, s]", "axis=1", 4, "i64[b, u]; i64[u]; i64[s]; i64[u]" },
    { "OneHot", "i64[b]; i64[] = 10; f32[2]", "", 1, "f32[b, 10]" },
    { "OneHot", "i64[b]; i64[] = 10; f32[2]", "axis=0", 1, "f32[10, b]" },
    { "EyeLike", "f32[b, 4]", "dtype=7", 1, "i64[b, 4]" },
    { "RandomNormal", "", "shape=[2, 3]", 1, "f32[2, 3]" },
    { "RandomNormal", "", "shape=[-1]", 1, "none" },
    { "RandomUniformLike", "i64[b]", "dtype=11", 1, "f64[b]" },
    { "Bernoulli", "f32[b]", "dtype=9", 1, "bool[b]" },
    { "Multinomial", "f32[b, v]", "sample_size=3 dtype=7", 1, "i64[b, 3]" },
    { "HannWindow", "i64[] = 320", "", 1, "f32[320]" },
    { "MelWeightMatrix", "i64[] = 80; i64[] = 512; i64[]; f32[]; f32[]", "", 1, "f32[257, 80]" },
    { "DFT", "f32[b, s, 1]; _; i64[] = 1", "onesided=1", 1, "f32[b, s//2 + 1, 2]" },
    { "DFT@17", "f32[b, s, 1]; i64[] = 512", "axis=1", 1, "f32[b, 512, 2]" },
    { "DFT", "f32[b, 6, 2]", "inverse=1 onesided=1", 1, "f32[b, 10, 1]" },
    { "DFT", "f32[b, s, 2]; _; i64[] = 2", "", 1, "none" },
    { "STFT", "f32[b, t, 1]; i64[] = 160; f32[512]", "", 1, "f32[b, (t - 512)//160 + 1, 257, 2]" },
    { "STFT", "f32[b, 1000, 1]; i64[] = 100; _; i64[] = 400", "onesided=0", 1,
      "f32[b, 7, 400, 2]" },
    { "STFT", "f32[b, t, 1]; i64[] = 160", "", 1, "none" },
};

static const Case layers[] = {
    { "Conv", "f32[b, 3, h, w]; f32[8, 3, 3, 3]", "pads=[1, 1, 1, 1]", 1, "f32[b, 8, h, w]" },
    { "Conv", "f32[b, 3, h, w]; f32[8, 3, 3, 5]; f32[8]", "strides=[2, 1] dilations=[2, 1]", 1,
      "f32[b, 8, (h - 5)//2 + 1, w - 4]" },
    { "Conv", "f32[b, 4, 9]; f32[8, 2, 3]", "group=2 auto_pad=SAME_UPPER strides=[2]", 1,
      "f32[b, 8, 5]" },
    { "Conv", "f32[b, 4, 9]; f32[8, 4, 3]", "auto_pad=VALID pads=[1, 1]", 1, "f32[b, 8, 7]" },
    { "Conv", "f32[b, 4, 9]; f32[8, 3, 3]", "", 1, "none" },
    { "Conv", "f32[b, 4, 9]; f32[8, 4, 3]", "strides=[0]", 1, "none" },
    { "Conv", "f32[b, 4, 9]; f32[8, 4, 3]", "strides=[1, 1]", 1, "none" },
    { "Conv", "f32[b, 4, 9]; f32[8, 4, 3]", "pads=[1]", 1, "none" },
    { "Conv", "f32[b, 4, 9]; f32[8, 4, 20]", "", 1, "none" },
    { "Conv", "f32[b, 4]; f32[8, 4]", "", 1, "none" },
    { "ConvInteger", "u8[b, 4, 9]; u8[8, 4, 3]", "", 1, "i32[b, 8, 7]" },
    { "QLinearConv", "u8[b, 4, 9]; f32[]; u8[]; i8[8, 4, 3]; f32[]; i8[]; f32[]; u8[]", "", 1,
      "u8[b, 8, 7]" },
    { "ConvTranspose", "f32[b, 8, h]; f32[8, 4, 4]", "strides=[2] pads=[1, 1]", 1,
      "f32[b, 4, 2*h]" },
    { "ConvTranspose", "f32[b, 8, h]; f32[8, 2, 3]",
      "group=2 strides=[2] output_padding=[1] dilations=[2]", 1,
      "f32[b, 4, 2*h + 4]" },
    { "ConvTranspose", "f32[b, 8, h]; f32[8, 4, 3]", "output_shape=[20]", 1, "f32[b, 4, 20]" },
    { "ConvTranspose", "f32[b, 8, h]; f32[7, 4, 3]", "", 1, "none" },
    { "DeformConv", "f32[b, 3, h, w]; f32[8, 3, 3, 3]; f32[b, 18, h, w]", "pads=[1, 1, 1, 1]", 1,
      "f32[b, 8, h, w]" },
    { "MaxPool", "f32[b, 3, h]", "kernel_shape=[2] strides=[2]", 2,
      "f32[b, 3, (h - 2)//2 + 1]; i64[b, 3, (h - 2)//2 + 1]" },
    { "MaxPool", "f32[b, 3, 5]", "kernel_shape=[2] strides=[2] ceil_mode=1", 1, "f32[b, 3, 3]" },
    { "MaxPool", "f32[b, 3, 6]", "kernel_shape=[3] strides=[3] pads=[1, 1] ceil_mode=1", 1,
      "f32[b, 3, 3]" },
    { "AveragePool", "f32[b, 3, 6]", "kernel_shape=[1] strides=[4] pads=[0, 3] ceil_mode=1", 1,
      "f32[b, 3, 2]" },
    { "AveragePool", "f32[b, 3, 9]", "kernel_shape=[3] dilations=[2]", 1, "f32[b, 3, 5]" },
    { "AveragePool@18", "f32[b, 3, 9]", "kernel_shape=[3] dilations=[2]", 1, "none" },
    { "MaxPool", "f32[b, 3, 9]", "", 1, "none" },
    { "GlobalAveragePool", "f32[b, 3, h, w]", "", 1, "f32[b, 3, 1, 1]" },
    { "MaxUnpool", "f32[b, 3, h]; i64[b, 3, h]", "kernel_shape=[2] strides=[2]", 1,
      "f32[b, 3, 2*h]" },
    { "MaxUnpool", "f32[b, 3, h]; i64[b, 3, h]; i64[3] = b, 3, 9", "kernel_shape=[2]", 1,
      "f32[b, 3, 9]" },
    { "Col2Im", "f32[b, 12*c, l]; i64[2] = h, w; i64[2] = 3, 4", "", 1, "f32[b, c, h, w]" },
    { "RoiAlign", "f32[b, c, h, w]; f32[n, 4]; i64[n]", "output_height=7 output_width=5", 1,
      "f32[n, c, 7, 5]" },
    { "MaxRoiPool", "f32[b, c, h, w]; f32[n, 5]", "pooled_shape=[2, 3]", 1, "f32[n, c, 2, 3]" },
    { "GridSample", "f32[b, c, h, w]; f32[b, s, t, 2]", "", 1, "f32[b, c, s, t]" },
    { "GridSample@19", "f32[b, c, 3, h, w]; f32[b, 4, s, t, 3]", "", 1, "none" },
    { "AffineGrid", "f32[b, 2, 3]; i64[4] = b, c, h, w", "", 1, "f32[b, h, w, 2]" },
    { "AffineGrid", "f32[b, 3, 4]; i64[5]", "", 1, "f32[b, u, u_1, u_2, 3]" },
    { "Resize", "f32[b, c, h, w]; _; f32[4] = 1, 1, 2, 0.5", "", 1, "f32[b, c, 2*h, w//2]" },
    { "Resize", "f32[1, 1, 4, 5]; _; f32[4] = 1, 1, 1.3, 1.3", "", 1, "f32[1, 1, 5, 6]" },
    { "Resize", "f32[h]; _; f32[1] = 1.3", "", 1, "f32[u]" },
    { "Resize", "f32[b, c, h, w]; _; _; i64[4] = b, c, s, 9", "", 1, "f32[b, c, s, 9]" },
    { "Resize", "f32[b, c, h, w]; _; _; i64[2] = s, 9", "axes=[2, 3]", 1, "f32[b, c, s, 9]" },
    { "Resize@17", "f32[b, c, h, w]; _; _; i64[2] = s, 9", "axes=[2, 3]", 1, "none" },
    { "Resize", "f32[b, h]; _; f32[2]; i64[2]", "", 1, "none" },
    { "Resize", "f32[b, h]", "", 1, "none" },
    { "NonMaxSuppression", "f32[1, n, 4]; f32[1, 1, n]", "", 1, "i64[u, 3]" },
    { "Gemm", "f32[b, 8]; f32[16, 8]; f32[16]", "transB=1", 1, "f32[b, 16]" },
    { "Gemm", "f32[8, b]; f32[8, 16]", "transA=1", 1, "f32[b, 16]" },
    { "Gemm", "f32[b, 8]; f32[16, 8]", "", 1, "none" },
    { "Gemm", "f32[b, s, 8]; f32[8, 4]", "", 1, "none" },
    { "MatMul", "f32[b, 1, s, 8]; f32[h, 8, t]", "", 1, "f32[b, h, s, t]" },
    { "MatMul", "f32[8]; f32[b, 8, 4]", "", 1, "f32[b, 4]" },
    { "MatMul", "f32[b, 4, 8]; f32[8]", "", 1, "f32[b, 4]" },
    { "MatMul", "f32[8]; f32[8]", "", 1, "f32[]" },
    { "MatMul", "f32[4, 8]; f32[9, 4]", "", 1, "none" },
    { "MatMul", "f32[]; f32[8]", "", 1, "none" },
    { "MatMulInteger", "u8[b, 8]; i8[8, 4]", "", 1, "i32[b, 4]" },
    { "QLinearMatMul", "u8[b, 8]; f32[]; u8[]; u8[8, 4]; f32[]; u8[]; f32[]; u8[]", "", 1,
      "u8[b, 4]" },
    { "Det", "f32[b, n, n]", "", 1, "f32[b]" },
    { "Einsum", "f32[b, i, k]; f32[b, k, j]", "equation=bij,bjk->bik", 1, "f32[b, i, j]" },
    { "Einsum", "f32[b, h, 3]; f32[3, 4]", "equation=...i,ij->...j", 1, "f32[b, h, 4]" },
    { "Einsum", "f32[n, n]", "equation=ii", 1, "f32[]" },
    { "Einsum", "f32[b, c]; f32[c, a]", "equation=ij,jk", 1, "f32[b, a]" },
    { "Einsum", "f32[b, c]", "equation=ij->k", 1, "none" },
    { "Einsum", "f32[b, c]", "equation=ijk->i", 1, "none" },
    { "Einsum", "f32[b, c]", "equation=ij,jk->i", 1, "none" },
    { "Einsum", "f32[3, 4]; f32[5, 6]", "equation=ij,jk->ik", 1, "none" },
    { "NegativeLogLikelihoodLoss", "f32[b, 5]; i64[b]", "reduction=none", 1, "f32[b]" },
    { "SoftmaxCrossEntropyLoss", "f32[b, 5]; i64[b]", "", 2, "f32[]; f32[b, 5]" },
    { "Attention@23", "f32[b, s, 64]; f32[b, t, 32]; f32[b, t, 16]", "q_num_heads=4 kv_num_heads=2",
      1, "f32[b, s, 32]" },
    { "Attention@23",
      "f32[b, 4, s, 16]; f32[b, 2, t, 16]; f32[b, 2, t, 8]; _; f32[b, 2, p, 16]; f32[b, 2, p, 8]",
          "", 4,
      "f32[b, 4, s, 8]; f32[b, 2, p + t, 16]; f32[b, 2, p + t, 8]; f32[b, 4, s, p + t]" },
    { "Attention@23", "f32[b, s, 64]; f32[b, t, 32]; f32[b, t, 32]", "", 1, "none" },
    { "RMSNormalization@23", "f32[b, 8]; f32[8]", "", 1, "f32[b, 8]" },
    { "LSTM", "f32[s, b, 10]; f32[2, 80, 10]; f32[2, 80, 20]",
      "direction=bidirectional hidden_size=20", 3,
      "f32[s, 2, b, 20]; f32[2, b, 20]; f32[2, b, 20]" },
    { "GRU", "f32[b, s, 10]; f32[1, 60, 10]; f32[1, 60, 20]", "layout=1", 2,
      "f32[b, s, 1, 20]; f32[b, 1, 20]" },
    { "RNN", "f32[s, b, 10]; f32[1, 20, 11]; f32[1, 20, 20]", "", 2, "none" },
    { "RNN", "f32[s, b, 10]; f32[1, 20, 10]; f32[1, 20, 20]", "hidden_size=21", 2, "none" },
};

static const Case sequences[] = {
    { "SequenceEmpty", "", "dtype=7", 1, "seq i64" },
    { "SequenceConstruct", "f32[b, 4]; f32[s, 4]", "", 1, "seq f32[u, 4]" },
    { "SequenceConstruct", "f32[b, 4]; f32[4]", "", 1, "none" },
    { "SequenceInsert", "seq f32; f32[b, 4]", "", 1, "seq f32[b, 4]" },
    { "SequenceInsert", "seq f32[b, 4]; f32[s, 4]; i64[]", "", 1, "seq f32[u, 4]" },
    { "SequenceInsert", "seq f32[b, 4]; f64[b, 4]", "", 1, "none" },
    { "SequenceInsert", "f32[b, 4]; f32[b, 4]", "", 1, "none" },
    { "SequenceErase", "seq f32[b]; i64[]", "", 1, "seq f32[b]" },
    { "SequenceAt", "seq f32[b, 4]; i64[]", "", 1, "f32[b, 4]" },
    { "SequenceAt", "seq f32; i64[]", "", 1, "none" },
    { "SequenceLength", "seq f32[b]", "", 1, "i64[]" },
    { "ConcatFromSequence", "seq f32[b, 4]", "axis=0", 1, "f32[u, 4]" },
    { "ConcatFromSequence", "seq f32[b, 4]", "axis=-1 new_axis=1", 1, "f32[b, 4, u]" },
    { "SplitToSequence", "f32[b, 4]", "axis=0", 1, "seq f32[1, 4]" },
    { "SplitToSequence", "f32[b, 4]", "axis=0 keepdims=0", 1, "seq f32[4]" },
    { "SplitToSequence", "f32[b, 4]; i64[] = 2", "axis=0", 1, "seq f32[u, 4]" },
};

static bool is_tried(const Case *at, size_t n, const char *op)
{
    for (size_t i = 0; i < n; i++) {
        Str opset, name = p2o_str_cut(str_of(at[i].op), '@', &opset);
        if (str_is(name, op) && !same(at[i].out, "none"))
            return true;
    }
    return false;
}

/* Each rule is used by some operator with a case; If, Loop and Scan have theirs below. */
static void check_coverage(void)
{
#define TRIED(table, op) is_tried(table, COUNT_OF(table), op)
    for (int k = ONNX_NONE + 1; k < ONNX_COUNT; k++) {
        bool tried = k == ONNX_If || k == ONNX_Loop || k == ONNX_Scan;
        for (int i = ONNX_NONE + 1; i < ONNX_COUNT && !tried; i++) {
            const char *op = p2o_onnx_info((OnnxOp)i)->name;
            tried = p2o_onnx_info((OnnxOp)i)->rule == p2o_onnx_info((OnnxOp)k)->rule &&
                    (TRIED(elementwise, op) || TRIED(reductions, op) || TRIED(movement, op) ||
                     TRIED(makers, op) || TRIED(layers, op) || TRIED(sequences, op));
        }
        CHECK(tried);
        if (!tried)
            printf("  no case for the rule of %s\n", p2o_onnx_info((OnnxOp)k)->name);
    }
}

static void check_table(void)
{
    for (int k = ONNX_NONE + 1; k < ONNX_COUNT; k++) {
        const OnnxInfo *row = p2o_onnx_info((OnnxOp)k);
        CHECK(k == ONNX_NONE + 1 || strcmp(p2o_onnx_info((OnnxOp)(k - 1))->name, row->name) < 0);
        CHECK(p2o_onnx_find(str_of(row->name)) == (OnnxOp)k);
        CHECK(row->rule && row->since >= 1 && row->since <= 23);
        CHECK(row->max_in == -1 || row->max_in >= row->min_in);
        CHECK(row->max_out == -1 || row->max_out >= row->min_out);
    }
    CHECK(p2o_onnx_find(STR("")) == ONNX_NONE);
    CHECK(p2o_onnx_find(STR("Aaa")) == ONNX_NONE);
    CHECK(p2o_onnx_find(STR("Zzz")) == ONNX_NONE);
    CHECK(p2o_onnx_find(STR("Ad")) == ONNX_NONE);
    CHECK(p2o_onnx_find(STR("Addx")) == ONNX_NONE);
    CHECK(p2o_onnx_find((Str){ "Address", 3 }) == ONNX_Add);
}

typedef struct World {
    Arena *arena;
    Diags *diags;
    Graph *g;
} World;

static World begin_world(void)
{
    World w = { .arena = p2o_arena_new(NULL, NULL) };
    w.diags = p2o_diags_new(w.arena, NULL, NULL);
    w.g = p2o_graph_new(w.arena, w.diags, p2o_dims_new(w.arena), 20, NULL);
    return w;
}

static Graph *new_body(World *w) { return p2o_graph_new(w->arena, w->diags, w->g->dims, 20, w->g); }

static bool has_type(World *w, const Value *v, const char *want)
{
    Buf b = { .arena = w->arena };
    put_value_text(w->g, &b, v);
    if (!same(b.at, want))
        printf("  gives %s, not %s\n", b.at, want);
    return same(b.at, want);
}

static Graph *branch_of(World *w, Value *v)
{
    Graph *body = new_body(w);
    p2o_graph_output(body, v);
    return body;
}

static void check_if(void)
{
    World  w = begin_world();
    Value *c = parse_value(w.g, STR("bool[]")), *x = parse_value(w.g, STR("f32[b, 4, s]"));
    Value *y = parse_value(w.g, STR("f32[b, 4, 7]")), *z = parse_value(w.g, STR("f32[b]"));
    Attr   ok[] = { attr_graph("then_branch", branch_of(&w, x)),
                    attr_graph("else_branch", branch_of(&w, y)) };
    Node  *n = p2o_graph_node(w.g, ONNX_If, 1, &c, 2, ok, 1, 0);
    CHECK(has_type(&w, n->out[0], "f32[b, 4, u]"));
    CHECK(p2o_diags_errors(w.diags) == 0);
    Attr bad[] = { attr_graph("then_branch", branch_of(&w, x)),
                   attr_graph("else_branch", branch_of(&w, z)) };
    CHECK(p2o_graph_node(w.g, ONNX_If, 1, &c, 2, bad, 1, 0)->out[0]->dtype == DT_NONE);
    CHECK(p2o_graph_node(w.g, ONNX_If, 1, &c, 1, ok, 1, 0)->out[0]->dtype == DT_NONE);
    CHECK(p2o_diags_errors(w.diags) == 2);
    p2o_arena_free(w.arena);
}

/* acc -> acc with one more row; the row is scanned.  `stop` makes the condition a computed one. */
static Graph *growing_body(World *w, bool stop)
{
    Graph *body = new_body(w);
    p2o_graph_input(body, "i", DT_I64, (Shape){ 0 });
    Value *c = p2o_graph_input(body, "c", DT_BOOL, (Shape){ 0 });
    Value *acc = p2o_graph_input(body, "acc", DT_F32, parse_dims(w->g, STR("n, 4")));
    Value *row = p2o_graph_input(w->g, NULL, DT_F32, parse_dims(w->g, STR("1, 4")));
    Value *in[] = { acc, row };
    Attr   axis = attr_int("axis", 0);
    Value *grown = p2o_graph_node(body, ONNX_Concat, 2, in, 1, &axis, 1, 0)->out[0];
    Value *cond = p2o_graph_node(body, stop ? ONNX_Not : ONNX_Identity, 1, &c, 0, NULL, 1,
                                 0)->out[0];
    p2o_graph_output(body, cond);
    p2o_graph_output(body, grown);
    p2o_graph_output(body, row);
    return body;
}

static void check_loop(void)
{
    World  w = begin_world();
    Value *count = parse_value(w.g, STR("i64[] = t")), *yes = parse_value(w.g, STR("bool[] = 1"));
    Value *start = parse_value(w.g, STR("f32[0, 4]")), *other = parse_value(w.g, STR("f64[0, 4]"));
    Attr   plain = attr_graph("body", growing_body(&w, false)),
           stop = attr_graph("body", growing_body(&w, true));
    Value *in[] = { count, yes, start };
    Node  *n = p2o_graph_node(w.g, ONNX_Loop, 3, in, 1, &plain, 2, 0);
    CHECK(has_type(&w, n->out[0], "f32[u, 4]"));
    CHECK(has_type(&w, n->out[1], "f32[t, 1, 4]"));
    n = p2o_graph_node(w.g, ONNX_Loop, 3, in, 1, &stop, 2, 0);
    CHECK(has_type(&w, n->out[1], "f32[u_2, 1, 4]"));
    in[0] = NULL;
    n = p2o_graph_node(w.g, ONNX_Loop, 3, in, 1, &plain, 2, 0);
    CHECK(has_type(&w, n->out[1], "f32[u_4, 1, 4]"));
    CHECK(p2o_diags_errors(w.diags) == 0);
    in[2] = other;
    CHECK(p2o_graph_node(w.g, ONNX_Loop, 3, in, 1, &plain, 2, 0)->out[0]->dtype == DT_NONE);
    in[2] = start;
    CHECK(p2o_graph_node(w.g, ONNX_Loop, 3, in, 1, &plain, 1, 0)->out[0]->dtype == DT_NONE);
    CHECK(p2o_graph_node(w.g, ONNX_Loop, 2, in, 1, &plain, 2, 0)->out[0]->dtype == DT_NONE);
    p2o_arena_free(w.arena);
}

static void check_scan(void)
{
    World  w = begin_world();
    Value *state = parse_value(w.g, STR("f32[b, 4]")), *xs = parse_value(w.g, STR("f32[b, t, 4]"));
    Graph *body = new_body(&w);
    Value *in[] = { p2o_graph_input(body, NULL, DT_F32, state->shape),
                    p2o_graph_input(body, NULL, DT_F32, state->shape) };
    Value *sum = p2o_graph_node(body, ONNX_Add, 2, in, 0, NULL, 1, 0)->out[0];
    p2o_graph_output(body, sum);
    p2o_graph_output(body, sum);
    int64_t one = 1, last = -1;
    Attr    attrs[] = { attr_graph("body", body), attr_int("num_scan_inputs", 1),
                        attr_ints("scan_input_axes", &one, 1),
                            attr_ints("scan_output_axes", &last, 1) };
    Value  *args[] = { state, xs };
    Node   *n = p2o_graph_node(w.g, ONNX_Scan, 2, args, 4, attrs, 2, 0);
    CHECK(has_type(&w, n->out[0], "f32[b, 4]"));
    CHECK(has_type(&w, n->out[1], "f32[b, 4, t]"));
    CHECK(p2o_graph_node(w.g, ONNX_Scan, 2, args, 1, attrs, 2, 0)->out[0]->dtype == DT_NONE);
    p2o_arena_free(w.arena);
}

#define RUN(table)                                             \
    do {                                                       \
        for (size_t i = 0; i < COUNT_OF(table); i++)           \
            run_case(&table[i]);                               \
    } while (0)

int main(void)
{
    check_table();
    check_coverage();
    RUN(elementwise);
    RUN(reductions);
    RUN(movement);
    RUN(makers);
    RUN(layers);
    RUN(sequences);
    check_if();
    check_loop();
    check_scan();
    return check_report();
}
