/* Recurrent networks: one ONNX operator per layer, both directions in it.
 *
 * PyTorch and ONNX agree but for the order of gates and the layout: weights of a layer are joined
 * into one tensor, gate by gate.  Weights that are initializers are joined as they are written; others
 * by nodes.  Time and batch are whatever the input says. */
#include "aten/lower.h"

typedef struct Cell {
    OnnxOp      op;
    int         ngate;
    int         order[4];               /* ONNX's gates in terms of PyTorch's */
    const char *activation;             /* NULL: the operator's own */
    bool        has_cell_state;
} Cell;

static const Cell rnn_tanh = { ONNX_RNN, 1, { 0 }, "Tanh", false };
static const Cell rnn_relu = { ONNX_RNN, 1, { 0 }, "Relu", false };
static const Cell gru = { ONNX_GRU, 3, { 1, 0, 2 }, NULL, false };            /* r z n -> z r h */
static const Cell lstm = { ONNX_LSTM, 4, { 0, 3, 1, 2 }, NULL, true };        /* i f g o -> i o f c */

static int directions(const Call *c) { return bool_arg(c, "bidirectional") ? 2 : 1; }
static int params_each(const Call *c) { return bool_arg(c, "has_biases") ? 4 : 2; }

/* Parameter `which` (w_ih, w_hh, b_ih, b_hh) of a layer and direction. */
static int param_index(const Call *c, int layer, int direction, int which)
{
    return (layer * directions(c) + direction) * params_each(c) + which;
}

static Shape param_shape(const Call *c, int layer, int direction, int which)
{
    return type_item(c, "params", param_index(c, layer, direction, which)).shape;
}

static bool check_params(Infer *in, const Call *c, const Cell *cell, Dim features, Dim *hidden)
{
    int64_t layers = int_arg(c, "num_layers");
    int     d = directions(c);
    int64_t want = layers * d * params_each(c);
    if (layers < 1 || layers > 1000 || list_len(c, "params") != want) {
        if (cell->has_cell_state && list_len(c, "params") == layers * d * (params_each(c) + 1))
            rule_unsupported(in, "a projection (proj_size)");
        else
            rule_fail(in, "%d parameters for %lld layers", list_len(c, "params"), (long long)layers);
        return false;
    }
    for (int i = 0; i < want; i++) {
        int which = i % params_each(c), layer = i / params_each(c) / d;
        Shape s = type_item(c, "params", i).shape;
        if (s.rank != (which < 2 ? 2 : 1)) {
            rule_fail(in, "parameter %d has rank %d", i, s.rank);
            return false;
        }
        if (i == 0)
            *hidden = p2o_dim_exact_div(in->dims, s.at[0], int_dim(in, cell->ngate));
        Dim rows = p2o_dim_mul(in->dims, *hidden, int_dim(in, cell->ngate));
        Dim cols = which == 1 ? *hidden
                   : layer    ? p2o_dim_mul(in->dims, *hidden, int_dim(in, d)) : features;
        if (!must_equal(in, c, rows, s.at[0], "rows of a weight") ||
            (which < 2 && !must_equal(in, c, cols, s.at[1], which ? "hidden size" : "input size")))
            return false;
    }
    return true;
}

static void shape_recurrent(Infer *in, const Call *c, const Cell *cell)
{
    Type x = type_arg(c, "input");
    Dim  hidden = NULL;
    if (!must_rank(in, c, "input", 3))
        return;
    if (bool_arg(c, "train") && float_arg(c, "dropout") > 0) {
        rule_unsupported(in, "dropout: call model.eval() before the capture");
        return;
    }
    if (!check_params(in, c, cell, x.shape.at[2], &hidden))
        return;
    int  d = directions(c), batch_axis = bool_arg(c, "batch_first") ? 0 : 1;
    Dim *state = NEW_N(in->arena, Dim, 3);
    state[0] = int_dim(in, int_arg(c, "num_layers") * d);
    state[1] = x.shape.at[batch_axis];
    state[2] = hidden;
    int nstate = cell->has_cell_state ? 2 : 1;
    if (cell->has_cell_state && list_len(c, "hx") != nstate) {
        rule_fail(in, "%d states", list_len(c, "hx"));
        return;
    }
    for (int i = 0; i < nstate; i++) {
        Shape given = cell->has_cell_state ? type_item(c, "hx", i).shape : shape_arg(c, "hx");
        if (given.rank != 3) {
            rule_fail(in, "a state of rank %d", given.rank);
            return;
        }
        for (int k = 0; k < 3; k++)
            if (!must_equal(in, c, given.at[k], state[k], k == 1 ? "batch of the state" : "size of the state"))
                return;
        set_out(in, c, 1 + i, x.dtype, (Shape){ 3, state });
    }
    set_out(in, c, 0, x.dtype, with_last(in, x.shape, p2o_dim_mul(in->dims, hidden, int_dim(in, d))));
}

/* Rows of each part, gate by gate in ONNX's order, one part after the other: [ndir, rows, cols]. */
static Value *join_gates(Lower *lo, const Cell *cell, Value *const *part, int n, Shape to)
{
    VEC(Value *)        rows = { 0 };
    VEC(const Tensor *) views = { 0 };
    int64_t             height = 0;
    for (int i = 0; i < n; i++) {
        p2o_dim_is_int(size_at(part[i], 0), &height);
        height /= cell->ngate;
        Value **gate = NEW_N(lo->arena, Value *, (size_t)cell->ngate);
        if (!part[i]->tensor && cell->ngate > 1)
            p2o_build_many(lo->b, ONNX_Split, ATTRS(attr_int("axis", 0)),
                           INPUTS(part[i], ints_const(lo, (int64_t[]){ height, height, height, height },
                                                      (size_t)cell->ngate)),
                           cell->ngate, gate);
        else
            gate[0] = part[i];
        for (int g = 0; g < cell->ngate; g++) {
            if (part[i]->tensor)
                VEC_PUSH(lo->arena, &views, p2o_tensor_narrow(lo->arena, part[i]->tensor, 0,
                                                             cell->order[g] * height, height));
            VEC_PUSH(lo->arena, &rows, gate[part[i]->tensor ? 0 : cell->order[g]]);
        }
    }
    if (views.n < rows.n)
        return reshape(lo, concat(lo, 0, rows.at, (int)rows.n), to);
    int64_t sizes[3];
    for (int k = 0; k < to.rank; k++)
        p2o_dim_is_int(to.at[k], &sizes[k]);
    return joined_weight(lo, part[0], views.at, views.n, to.rank, sizes);
}

/* The weights (which 0 or 1) or biases (which 2) of a layer. */
static Value *layer_param(Lower *lo, const Call *c, const Cell *cell, int layer, int which)
{
    int    d = directions(c), n = 0;
    Value *part[4];
    Shape  s = param_shape(c, layer, 0, which);
    for (int i = 0; i < d; i++) {
        part[n++] = tensor_item(lo, c, "params", param_index(c, layer, i, which));
        if (which == 2)
            part[n++] = tensor_item(lo, c, "params", param_index(c, layer, i, 3));
    }
    Dim *to = NEW_N(lo->arena, Dim, 3);
    to[0] = p2o_dim_int(lo->dims, d);
    to[1] = which == 2 ? p2o_dim_mul(lo->dims, s.at[0], p2o_dim_int(lo->dims, 2)) : s.at[0];
    to[2] = which == 2 ? NULL : s.at[1];
    return join_gates(lo, cell, part, n, (Shape){ which == 2 ? 2 : 3, to });
}

/* Zeros are what an absent state means. */
static bool is_zeros(const Value *v)
{
    double f;
    if (!v->def || v->def->op != ONNX_ConstantOfShape)
        return false;
    const Attr *a = p2o_node_attr(v->def, "value");
    return !a || (p2o_tensor_get_f64(a->tensor, 0, &f) && f == 0);
}

static Value *layer_state(Lower *lo, Value *hx, int layer, int d, int64_t layers)
{
    if (is_zeros(hx))
        return NULL;
    if (layers == 1)
        return hx;
    return slice_axis(lo, hx, 0, p2o_dim_int(lo->dims, layer * d), p2o_dim_int(lo->dims, (layer + 1) * d), 1);
}

static void emit_layer(Lower *lo, const Call *c, const Cell *cell, int layer, Value *x, Value *const *state,
                       Value **out)
{
    int     d = directions(c), nattr = 0;
    int64_t hidden = 0, layers = int_arg(c, "num_layers");
    Attr    attrs[4];
    p2o_dim_is_int(param_shape(c, layer, 0, 1).at[1], &hidden);
    attrs[nattr++] = attr_int("hidden_size", hidden);
    if (d == 2)
        attrs[nattr++] = attr_str("direction", "bidirectional");
    if (cell->activation) {
        const char **names = NEW_N(lo->arena, const char *, 2);
        names[0] = names[1] = cell->activation;
        attrs[nattr++] = attr_strs("activations", names, (size_t)d);
    }
    if (cell->op == ONNX_GRU)
        attrs[nattr++] = attr_int("linear_before_reset", 1);
    Value *b = bool_arg(c, "has_biases") ? layer_param(lo, c, cell, layer, 2) : NULL;
    Value *h = layer_state(lo, state[0], layer, d, layers);
    Value *s = cell->has_cell_state ? layer_state(lo, state[1], layer, d, layers) : NULL;
    p2o_build_many(lo->b, cell->op, nattr, attrs,
                   INPUTS(x, layer_param(lo, c, cell, layer, 0), layer_param(lo, c, cell, layer, 1), b, NULL, h, s),
                   cell->has_cell_state ? 3 : 2, out);
}

/* [time, direction, batch, hidden] -> [time, batch, direction * hidden] */
static Value *join_directions(Lower *lo, Value *y, int d)
{
    if (d == 1)
        return squeeze(lo, y, 1);
    y = transpose(lo, y, (int64_t[]){ 0, 2, 1, 3 });
    Dim *to = p2o_shape_copy(lo->arena, y->shape, 0);
    to[2] = p2o_dim_mul(lo->dims, size_at(y, 2), size_at(y, 3));
    return reshape(lo, y, (Shape){ 3, to });
}

static void lower_recurrent(Lower *lo, const Call *c, const Cell *cell, Value **out)
{
    int64_t layers = int_arg(c, "num_layers");
    int     d = directions(c), nstate = cell->has_cell_state ? 2 : 1;
    Value  *x = tensor_arg(lo, c, "input"), *state[2] = { NULL, NULL };
    Value **last = NEW_N(lo->arena, Value *, (size_t)layers * 2);

    for (int i = 0; i < nstate; i++)
        state[i] = cell->has_cell_state ? tensor_item(lo, c, "hx", i) : tensor_arg(lo, c, "hx");
    if (bool_arg(c, "batch_first"))
        x = swap_dims(lo, x, 0, 1);
    for (int k = 0; k < layers; k++) {
        Value *y[3];
        emit_layer(lo, c, cell, k, x, state, y);
        x = join_directions(lo, y[0], d);
        for (int i = 0; i < nstate; i++)
            last[i * layers + k] = y[1 + i];
    }
    out[0] = bool_arg(c, "batch_first") ? swap_dims(lo, x, 0, 1) : x;
    for (int i = 0; i < nstate; i++)
        out[1 + i] = concat(lo, 0, last + i * layers, (int)layers);
}

static void shape_rnn_tanh(Infer *in, const Call *c) { shape_recurrent(in, c, &rnn_tanh); }
static void shape_rnn_relu(Infer *in, const Call *c) { shape_recurrent(in, c, &rnn_relu); }
static void shape_gru(Infer *in, const Call *c) { shape_recurrent(in, c, &gru); }
static void shape_lstm(Infer *in, const Call *c) { shape_recurrent(in, c, &lstm); }

static void lower_rnn_tanh(Lower *lo, const Call *c, Value **out) { lower_recurrent(lo, c, &rnn_tanh, out); }
static void lower_rnn_relu(Lower *lo, const Call *c, Value **out) { lower_recurrent(lo, c, &rnn_relu, out); }
static void lower_gru(Lower *lo, const Call *c, Value **out) { lower_recurrent(lo, c, &gru, out); }
static void lower_lstm(Lower *lo, const Call *c, Value **out) { lower_recurrent(lo, c, &lstm, out); }

#define RECURRENT "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> "

const AtenOp p2o_ops_rnn[] = {
    { "rnn_tanh.input(Tensor input, Tensor hx, " RECURRENT "(Tensor, Tensor)", shape_rnn_tanh,
      .lower_many = lower_rnn_tanh },
    { "rnn_relu.input(Tensor input, Tensor hx, " RECURRENT "(Tensor, Tensor)", shape_rnn_relu,
      .lower_many = lower_rnn_relu },
    { "gru.input(Tensor input, Tensor hx, " RECURRENT "(Tensor, Tensor)", shape_gru, .lower_many = lower_gru },
    { "lstm.input(Tensor input, Tensor[] hx, " RECURRENT "(Tensor, Tensor, Tensor)", shape_lstm,
      .lower_many = lower_lstm, .unchecked = true,      /* PyTorch 2.6 records states of rank 4 */
      .limits = "no projection" },
    { 0 },
};
