/* Recurrent networks: one ONNX operator per layer, both directions in it.
 *
 * PyTorch and ONNX agree but for the order of gates and the layout: weights of a layer are joined
 * into one tensor, gate by gate.  Weights that are initializers are joined as they are written;
 * others by nodes.  Time and batch are whatever the input says.  What the operators cannot do
 * (projections, float64) is a Scan over the steps, whose body is what a lone cell lowers to. Packed
 * sequences are unpacked, run with their lengths and packed again. */
#include "aten/lower.h"

typedef enum CellKind { CELL_RNN, CELL_GRU, CELL_LSTM } CellKind;

typedef struct Cell {
    CellKind    kind;
    OnnxOp      op;
    int         ngate;
    int         order[4];               /* ONNX's gates in terms of PyTorch's */
    const char *activation;             /* of CELL_RNN */
    OnnxOp      activate;
} Cell;

static const Cell rnn_tanh = { CELL_RNN, ONNX_RNN, 1, { 0 }, "Tanh", ONNX_Tanh };
static const Cell rnn_relu = { CELL_RNN, ONNX_RNN, 1, { 0 }, "Relu", ONNX_Relu };
/* r z n -> z r h */
static const Cell gru = { CELL_GRU, ONNX_GRU, 3, { 1, 0, 2 }, NULL, ONNX_NONE };
/* i f g o -> i o f c */
static const Cell lstm = { CELL_LSTM, ONNX_LSTM, 4, { 0, 3, 1, 2 }, NULL, ONNX_NONE };

static int nstates(const Cell *cell) { return cell->kind == CELL_LSTM ? 2 : 1; }

static bool is_packed(const Call *c) { return p2o_schema_find(c->schema, "batch_sizes") >= 0; }
static const char *sequence_name(const Call *c) { return is_packed(c) ? "data" : "input"; }
static bool is_batch_first(const Call *c) { return !is_packed(c) && bool_arg(c, "batch_first"); }

static int directions(const Call *c) { return bool_arg(c, "bidirectional") ? 2 : 1; }

/* A list longer than weights and biases holds a projection for each layer and direction. */
static bool has_projection(const Call *c)
{
    int64_t n = int_arg(c, "num_layers") * directions(c);
    return list_len(c, "params") == n * (bool_arg(c, "has_biases") ? 5 : 3);
}

static int params_each(const Call *c)
{
    return (bool_arg(c, "has_biases") ? 4 : 2) + has_projection(c);
}

enum { W_IH, W_HH, B_IH, B_HH, W_HR };

static int param_index(const Call *c, int layer, int direction, int which)
{
    int at = which == W_HR ? params_each(c) - 1 : which;
    return (layer * directions(c) + direction) * params_each(c) + at;
}

static Shape param_shape(const Call *c, int layer, int direction, int which)
{
    return type_item(c, "params", param_index(c, layer, direction, which)).shape;
}

typedef struct CellSizes {
    Dim hidden;                         /* of the gates and the cell state */
    Dim out;                            /* of the output and the hidden state */
} CellSizes;

static bool check_param(Infer *in, const Call *c, const Cell *cell, int layer, int direction,
                        int which, const CellSizes *s, Dim features)
{
    Shape have = param_shape(c, layer, direction, which);
    Dim rows = which == W_HR ? s->out : p2o_dim_mul(in->dims, s->hidden, int_dim(in, cell->ngate));
    Dim cols = which == W_HR   ? s->hidden
               : which == W_HH ? s->out
               : layer         ? p2o_dim_mul(in->dims, s->out, int_dim(in, directions(c)))
                               : features;
    bool  is_bias = which == B_IH || which == B_HH;
    if (have.rank != (is_bias ? 1 : 2)) {
        rule_fail(in, "a parameter of layer %d has rank %d", layer, have.rank);
        return false;
    }
    return must_equal(in, c, rows, have.at[0], "rows of a weight") &&
           (is_bias ||
            must_equal(in, c, cols, have.at[1], which == W_IH ? "input size" : "hidden size"));
}

static bool check_params(Infer *in, const Call *c, const Cell *cell, Dim features, CellSizes *s)
{
    int64_t layers = int_arg(c, "num_layers"), n;
    int     d = directions(c);
    if (layers < 1 || layers > 1000 || list_len(c, "params") != layers * d * params_each(c) ||
        (has_projection(c) && cell->kind != CELL_LSTM)) {
        rule_fail(in, "%d parameters for %lld layers", list_len(c, "params"), (long long)layers);
        return false;
    }
    Shape first = param_shape(c, 0, 0, W_IH);
    s->hidden =
        first.rank == 2 ? p2o_dim_exact_div(in->dims, first.at[0], int_dim(in, cell->ngate)) : NULL;
    s->out = has_projection(c) && param_shape(c, 0, 0, W_HR).rank == 2
                 ? param_shape(c, 0, 0, W_HR).at[0]
                 : s->hidden;
    if (!s->hidden || !const_dim(in, s->hidden, "hidden size", &n) ||
        !const_dim(in, s->out, "proj_size", &n)) {
        if (!s->hidden)
            rule_fail(in, "rows of the first weight are no multiple of %d", cell->ngate);
        return false;
    }
    for (int i = 0; i < layers * d * 5; i++) {
        int which = i % 5, layer = i / 5 / d;
        bool there = which == W_HR ? has_projection(c) : which < B_IH || bool_arg(c, "has_biases");
        if (there && !check_param(in, c, cell, layer, i / 5 % d, which, s, features))
            return false;
    }
    return true;
}

static Type state_type(const Call *c, const Cell *cell, int i)
{
    return cell->kind == CELL_LSTM ? type_item(c, "hx", i) : type_arg(c, "hx");
}

static void shape_recurrent(Infer *in, const Call *c, const Cell *cell)
{
    Type      x = type_arg(c, sequence_name(c));
    CellSizes s;
    if (!must_rank(in, c, sequence_name(c), is_packed(c) ? 2 : 3))
        return;
    if (bool_arg(c, "train") && float_arg(c, "dropout") > 0) {
        rule_unsupported(in, "dropout: call model.eval() before the capture");
        return;
    }
    if (!check_params(in, c, cell, dim_at(x.shape, -1), &s))
        return;
    if (cell->kind == CELL_LSTM && list_len(c, "hx") != 2) {
        rule_fail(in, "%d states", list_len(c, "hx"));
        return;
    }
    int d = directions(c);
    for (int i = 0; i < nstates(cell); i++) {
        Shape given = state_type(c, cell, i).shape;
        if (given.rank != 3) {
            rule_fail(in, "a state of rank %d", given.rank);
            return;
        }
        Dim *at = NEW_N(in->arena, Dim, 3);
        at[0] = int_dim(in, int_arg(c, "num_layers") * d);
        at[1] = is_packed(c) ? given.at[1] : x.shape.at[is_batch_first(c) ? 0 : 1];
        at[2] = i ? s.hidden : s.out;
        for (int k = 0; k < 3; k++)
            if (!must_equal(in, c, given.at[k], at[k],
                            k == 1 ? "batch of the state" : "size of the state"))
                return;
        set_out(in, c, 1 + i, x.dtype, (Shape){ 3, at });
    }
    set_out(in, c, 0, x.dtype,
            with_last(in, x.shape, p2o_dim_mul(in->dims, s.out, int_dim(in, d))));
}

/* The gates of a value's first dim, in PyTorch's order. */
static void split_gates(Lower *lo, Value *x, int axis, int n, Value **gate)
{
    int64_t each = 0, sizes[4];
    p2o_dim_is_int(size_at(x, axis), &each);
    for (int i = 0; i < n; i++)
        sizes[i] = each / n;
    if (n > 1)
        p2o_build_many(lo->b, ONNX_Split, ATTRS(attr_int("axis", axis)),
                       INPUTS(x, ints_const(lo, sizes, (size_t)n)), n, gate);
    else
        gate[0] = x;
}

/* Rows of each part, gate by gate in ONNX's order, one part after the other: [ndir, rows, cols]. */
static Value *join_gates(Lower *lo, const Cell *cell, Value *const *part, int n, Shape to)
{
    bool    all_weights = true;
    int64_t height = 0, sizes[3];
    VEC(Value *)        rows = { 0 };
    VEC(const Tensor *) views = { 0 };
    for (int i = 0; i < n; i++)
        all_weights &= part[i]->tensor != NULL;
    for (int i = 0; i < n; i++) {
        Value *gate[4];
        p2o_dim_is_int(size_at(part[i], 0), &height);
        height /= cell->ngate;
        if (!all_weights)
            split_gates(lo, part[i], 0, cell->ngate, gate);
        for (int g = 0; g < cell->ngate; g++) {
            if (all_weights)
                VEC_PUSH(lo->arena, &views, p2o_tensor_narrow(lo->arena, part[i]->tensor, 0,
                                                             cell->order[g] * height, height));
            else
                VEC_PUSH(lo->arena, &rows, gate[cell->order[g]]);
        }
    }
    if (!all_weights)
        return reshape(lo, concat(lo, 0, rows.at, (int)rows.n), to);
    for (int k = 0; k < to.rank; k++)
        p2o_dim_is_int(to.at[k], &sizes[k]);
    return joined_weight(lo, part[0], views.at, views.n, to.rank, sizes);
}

static Value *param(Lower *lo, const Call *c, int layer, int direction, int which)
{
    return tensor_item(lo, c, "params", param_index(c, layer, direction, which));
}

/* The weights (W_IH, W_HH) or both biases (B_IH) of a layer. */
static Value *layer_param(Lower *lo, const Call *c, const Cell *cell, int layer, int which)
{
    int    d = directions(c), n = 0;
    Value *part[4];
    Shape  s = param_shape(c, layer, 0, which);
    for (int i = 0; i < d; i++) {
        part[n++] = param(lo, c, layer, i, which);
        if (which == B_IH)
            part[n++] = param(lo, c, layer, i, B_HH);
    }
    Dim *to = NEW_N(lo->arena, Dim, 3);
    to[0] = p2o_dim_int(lo->dims, d);
    to[1] = which == B_IH ? p2o_dim_mul(lo->dims, s.at[0], p2o_dim_int(lo->dims, 2)) : s.at[0];
    to[2] = which == B_IH ? NULL : s.at[1];
    return join_gates(lo, cell, part, n, (Shape){ which == B_IH ? 2 : 3, to });
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

/* States [from, to) of all layers and directions. */
static Value *some_states(Lower *lo, Value *hx, int64_t from, int64_t to)
{
    return slice_axis(lo, hx, 0, p2o_dim_int(lo->dims, from), p2o_dim_int(lo->dims, to), 1);
}

typedef struct Sequence {
    Value *x;                           /* [time, batch, features] */
    Value *lengths;                     /* int32[batch]; NULL: all are the whole time */
    Value *state[2];                    /* hidden, cell: [layers * directions, batch, size] */
} Sequence;

/* One ONNX operator: y[0] is [time, directions, batch, hidden], then the last states. */
static void layer_by_operator(Lower *lo, const Call *c, const Cell *cell, int layer,
                              const Sequence *s, Value **y)
{
    int     d = directions(c), nattr = 0;
    int64_t hidden = 0;
    Attr    attrs[4];
    Value  *state[2] = { NULL, NULL };
    p2o_dim_is_int(param_shape(c, layer, 0, W_HH).at[1], &hidden);
    attrs[nattr++] = attr_int("hidden_size", hidden);
    if (d == 2)
        attrs[nattr++] = attr_str("direction", "bidirectional");
    if (cell->activation) {
        const char **names = NEW_N(lo->arena, const char *, 2);
        names[0] = names[1] = cell->activation;
        attrs[nattr++] = attr_strs("activations", names, (size_t)d);
    }
    if (cell->kind == CELL_GRU)
        attrs[nattr++] = attr_int("linear_before_reset", 1);
    for (int i = 0; i < nstates(cell); i++)
        if (!is_zeros(s->state[i]))
            state[i] = some_states(lo, s->state[i], layer * d, (layer + 1) * d);
    p2o_build_many(lo->b, cell->op, nattr, attrs,
                   INPUTS(s->x, layer_param(lo, c, cell, layer, W_IH),
                          layer_param(lo, c, cell, layer, W_HH),
                          bool_arg(c, "has_biases") ? layer_param(lo, c, cell, layer, B_IH) : NULL,
                          s->lengths, state[0], state[1]),
                   1 + nstates(cell), y);
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

static Value *logistic(Lower *lo, Value *x) { return emit(lo, ONNX_Sigmoid, x); }

/* One step from the gates of the input and of the hidden state, each with its bias.
 *     RNN   h = act(i + h)
 *     GRU   h = n + z (h - n),  n = tanh(in + r hn)
 *     LSTM  c = f c + i g,  h = o tanh(c) */
static void cell_step(Lower *lo, const Cell *cell, Value *gi, Value *gh, Value *const *state,
                      Value **out)
{
    Value *i[4], *h[4];
    int    last = rank(gi) - 1;
    if (cell->kind == CELL_RNN) {
        out[0] = emit(lo, cell->activate, emit(lo, ONNX_Add, gi, gh));
        return;
    }
    if (cell->kind == CELL_GRU) {
        split_gates(lo, gi, last, 3, i);
        split_gates(lo, gh, last, 3, h);
        Value *r = logistic(lo, emit(lo, ONNX_Add, i[0], h[0])),
              *z = logistic(lo, emit(lo, ONNX_Add, i[1], h[1]));
        Value *n = emit(lo, ONNX_Tanh, emit(lo, ONNX_Add, i[2], emit(lo, ONNX_Mul, r, h[2])));
        out[0] = emit(lo, ONNX_Add, n, emit(lo, ONNX_Mul, z, emit(lo, ONNX_Sub, state[0], n)));
        return;
    }
    split_gates(lo, emit(lo, ONNX_Add, gi, gh), last, 4, i);
    Value *kept = emit(lo, ONNX_Mul, logistic(lo, i[1]), state[1]);
    out[1] =
        emit(lo, ONNX_Add, kept, emit(lo, ONNX_Mul, logistic(lo, i[0]), emit(lo, ONNX_Tanh, i[2])));
    out[0] = emit(lo, ONNX_Mul, logistic(lo, i[3]), emit(lo, ONNX_Tanh, out[1]));
}

/* x * transpose(w) + b, b being NULL without biases. */
static Value *gates_of(Lower *lo, Value *x, Value *w, Value *b)
{
    if (rank(x) == 2)
        return emit_with(lo, ONNX_Gemm, ATTRS(attr_int("transB", 1)), x, w, b);
    Value *y = emit(lo, ONNX_MatMul, x, swap_last_two(lo, w));
    return b ? emit(lo, ONNX_Add, y, b) : y;
}

/* One direction: the gates of all inputs at once, then step by step over the time. */
static void direction_by_scan(Lower *lo, const Call *c, const Cell *cell, int layer, int direction,
                              const Sequence *s, Value **y)
{
    bool     biased = bool_arg(c, "has_biases");
    int      n = nstates(cell), at = layer * directions(c) + direction;
    Builder *outer = lo->b;
    Graph   *body = p2o_graph_new(lo->arena, lo->diags, lo->dims, lo->opset, outer->graph);
    Value   *w_hh = param(lo, c, layer, direction, W_HH),
          *b_hh = biased ? param(lo, c, layer, direction, B_HH) : NULL;
    Value   *w_hr = has_projection(c) ? param(lo, c, layer, direction, W_HR) : NULL;
    Value   *gi = gates_of(lo, s->x, param(lo, c, layer, direction, W_IH),
                         biased ? param(lo, c, layer, direction, B_IH) : NULL);
    Value   *in[3], *inner[3], *next[2];
    int64_t *backward = NEW(lo->arena, int64_t);
    *backward = direction;
    body->name = "step";
    for (int i = 0; i < n; i++)
        in[i] = squeeze(lo, some_states(lo, s->state[i], at, at + 1), 0);
    in[n] = gi;
    for (int i = 0; i <= n; i++)
        inner[i] = p2o_graph_input(body, NULL, in[i]->dtype,
                                   i < n ? in[i]->shape : slice_shape(gi->shape, 1, 3));
    lo->b = p2o_builder_new(body, outer);
    cell_step(lo, cell, inner[n], gates_of(lo, inner[0], w_hh, b_hh), inner, next);
    if (w_hr)
        next[0] = gates_of(lo, next[0], w_hr, NULL);
    lo->b = outer;
    for (int i = 0; i < n; i++)
        p2o_graph_output(body, next[i]);
    p2o_graph_output(body, next[0]);
    Value *out[3];
    p2o_build_many(lo->b, ONNX_Scan,
                   ATTRS(attr_graph("body", body), attr_int("num_scan_inputs", 1),
                         attr_ints("scan_input_directions", backward, 1),
                         attr_ints("scan_output_directions", backward, 1)),
                   n + 1, in, n + 1, out);
    y[0] = out[n];
    for (int i = 0; i < n; i++)
        y[1 + i] = unsqueeze(lo, out[i], 0);
}

/* y[0] is [time, batch, directions * hidden], then the last states of the layer. */
static void layer_by_scan(Lower *lo, const Call *c, const Cell *cell, int layer, const Sequence *s,
                          Value **y)
{
    Value *way[3][2];
    int    d = directions(c);
    for (int i = 0; i < d; i++) {
        Value *one[3];
        direction_by_scan(lo, c, cell, layer, i, s, one);
        for (int k = 0; k <= nstates(cell); k++)
            way[k][i] = one[k];
    }
    for (int k = 0; k <= nstates(cell); k++)
        y[k] = concat(lo, k ? 0 : 2, way[k], d);
}

static void lower_layers(Lower *lo, const Call *c, const Cell *cell, Sequence *s, Value **out)
{
    int64_t layers = int_arg(c, "num_layers");
    bool    by_scan = has_projection(c) || s->x->dtype == DT_F64;
    Value **last = NEW_N(lo->arena, Value *, (size_t)layers * 2);
    if (by_scan && s->lengths) {
        unsupported(lo, c, "a packed sequence with a projection or in float64");
        return;
    }
    for (int k = 0; k < layers; k++) {
        Value *y[3];
        (by_scan ? layer_by_scan : layer_by_operator)(lo, c, cell, k, s, y);
        s->x = by_scan ? y[0] : join_directions(lo, y[0], directions(c));
        for (int i = 0; i < nstates(cell); i++)
            last[i * layers + k] = y[1 + i];
    }
    for (int i = 0; i < nstates(cell); i++)
        out[1 + i] = concat(lo, 0, last + i * layers, (int)layers);
}

/* Packed sequences lie step by step, longest first: step t has the first batch_sizes[t] of the
 * batch. */
typedef struct Packing {
    Value *steps;               /* bool[time, batch]: there at that time */
    Value *row;                 /* int64[time, batch]: where in the data; 0 when not there */
} Packing;

static Packing unpacking(Lower *lo, Value *batch_sizes, Value *members)
{
    Value  *offset = emit_with(lo, ONNX_CumSum, ATTRS(attr_int("exclusive", 1)), batch_sizes,
                               p2o_build_int(lo->b, 0));
    Packing p;
    p.steps = emit(lo, ONNX_Less, members, unsqueeze(lo, batch_sizes, 1));
    p.row = choose(lo, p.steps, emit(lo, ONNX_Add, unsqueeze(lo, offset, 1), members),
                   p2o_build_int(lo->b, 0));
    return p;
}

/* Rows of [time, batch, ..] that are there. */
static Value *packed_rows(Lower *lo, Value *x, Value *steps)
{
    Dim *to = p2o_shape_copy(lo->arena, x->shape, 0);
    to[1] = p2o_dim_mul(lo->dims, size_at(x, 0), size_at(x, 1));
    Value *rows = reshape(lo, x, (Shape){ rank(x) - 1, to + 1 });
    return emit_with(lo, ONNX_Compress, ATTRS(attr_int("axis", 0)), rows, flat(lo, steps));
}

static Value *count_steps(Lower *lo, Value *steps, int64_t axis, DType t)
{
    return reduce(lo, ONNX_ReduceSum, cast(lo, steps, t), &axis, 1, false);
}

static void lower_recurrent(Lower *lo, const Call *c, const Cell *cell, Value **out)
{
    Sequence s = { .x = tensor_arg(lo, c, sequence_name(c)) };
    Packing  p = { NULL, NULL };
    for (int i = 0; i < nstates(cell); i++)
        s.state[i] =
            cell->kind == CELL_LSTM ? tensor_item(lo, c, "hx", i) : tensor_arg(lo, c, "hx");
    if (is_packed(c)) {
        p = unpacking(lo, tensor_arg(lo, c, "batch_sizes"), iota(lo, size_at(s.state[0], 1)));
        s.x = emit(lo, ONNX_Gather, s.x, p.row);
        s.lengths = count_steps(lo, p.steps, 0, DT_I32);
    } else if (is_batch_first(c)) {
        s.x = swap_dims(lo, s.x, 0, 1);
    }
    lower_layers(lo, c, cell, &s, out);
    if (lo->failed)
        return;
    if (is_packed(c))
        out[0] = packed_rows(lo, s.x, p.steps);
    else
        out[0] = is_batch_first(c) ? swap_dims(lo, s.x, 0, 1) : s.x;
}

static void shape_rnn_tanh(Infer *in, const Call *c) { shape_recurrent(in, c, &rnn_tanh); }
static void shape_rnn_relu(Infer *in, const Call *c) { shape_recurrent(in, c, &rnn_relu); }
static void shape_gru(Infer *in, const Call *c) { shape_recurrent(in, c, &gru); }
static void shape_lstm(Infer *in, const Call *c) { shape_recurrent(in, c, &lstm); }

static void lower_rnn_tanh(Lower *lo, const Call *c, Value **out)
{
    lower_recurrent(lo, c, &rnn_tanh, out);
}
static void lower_rnn_relu(Lower *lo, const Call *c, Value **out)
{
    lower_recurrent(lo, c, &rnn_relu, out);
}
static void lower_gru(Lower *lo, const Call *c, Value **out) { lower_recurrent(lo, c, &gru, out); }
static void lower_lstm(Lower *lo, const Call *c, Value **out)
{
    lower_recurrent(lo, c, &lstm, out);
}

/* How many rows there are, and steps, is up to the lengths. */
static void shape_pack(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (x.shape.rank < 2 || !must_rank(in, c, "lengths", 1)) {
        if (x.shape.rank < 2)
            rule_fail(in, "input: rank %d", x.shape.rank);
        return;
    }
    if (!must_equal(in, c, x.shape.at[bool_arg(c, "batch_first") ? 0 : 1],
                    shape_arg(c, "lengths").at[0], "batch"))
        return;
    Dim *steps = NEW(in->arena, Dim);
    *steps = data_dim(in, c, 1, 0);
    set_out(in, c, 0, x.dtype, with_dim(in, without_dim(in, x.shape, 0), 0, data_dim(in, c, 0, 0)));
    set_out(in, c, 1, DT_I64, (Shape){ 1, steps });
}

static void lower_pack(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "input"), *lengths = tensor_as(lo, c, "lengths", DT_I64);
    if (bool_arg(c, "batch_first"))
        x = swap_dims(lo, x, 0, 1);
    Value *steps = emit(lo, ONNX_Less, unsqueeze(lo, iota(lo, size_at(x, 0)), 1), lengths);
    Value *counts = count_steps(lo, steps, 1, DT_I64);
    out[0] = packed_rows(lo, x, steps);
    out[1] = emit_with(lo, ONNX_Compress, ATTRS(attr_int("axis", 0)), counts,
                       emit(lo, ONNX_Greater, counts, p2o_build_int(lo->b, 0)));
}

/* The batch is the first of batch_sizes; total_length, when given, is the time. */
static void shape_unpack(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "data");
    int64_t total = int_arg(c, "total_length");
    if (x.shape.rank < 1 || !must_rank(in, c, "batch_sizes", 1))
        return;
    Dim *batch = NEW(in->arena, Dim),
        time = total > 0 ? int_dim(in, total) : shape_arg(c, "batch_sizes").at[0];
    *batch = data_dim(in, c, 0, bool_arg(c, "batch_first") ? 0 : 1);
    Shape s = with_dim(in, x.shape, 0, bool_arg(c, "batch_first") ? time : *batch);
    set_out(in, c, 0, x.dtype, insert_dim(in, s, 0, bool_arg(c, "batch_first") ? *batch : time));
    set_out(in, c, 1, DT_I64, (Shape){ 1, batch });
}

static void lower_unpack(Lower *lo, const Call *c, Value **out)
{
    Value  *x = tensor_arg(lo, c, "data"), *sizes = tensor_as(lo, c, "batch_sizes", DT_I64);
    int64_t total = int_arg(c, "total_length");
    Value  *batch = emit(lo, ONNX_Gather, sizes, p2o_build_int(lo->b, 0));
    if (total > 0) {
        Dim *pads = NEW_N(lo->arena, Dim, 2);
        pads[0] = p2o_dim_int(lo->dims, 0);
        pads[1] = p2o_dim_sub(lo->dims, p2o_dim_int(lo->dims, total), size_at(sizes, 0));
        sizes = emit(lo, ONNX_Pad, sizes, shape_value(lo, (Shape){ 2, pads }));
    }
    Value  *members = emit(lo, ONNX_Range, p2o_build_int(lo->b, 0), batch, p2o_build_int(lo->b, 1));
    Packing p = unpacking(lo, sizes, members);
    Value  *there = p.steps, *y = emit(lo, ONNX_Gather, x, p.row);
    for (int i = 2; i < rank(y); i++)
        there = unsqueeze(lo, there, i);
    y = choose(lo, there, y, number_arg(lo, c, "padding_value", x->dtype));
    out[0] = bool_arg(c, "batch_first") ? swap_dims(lo, y, 0, 1) : y;
    out[1] = count_steps(lo, p.steps, 0, DT_I64);
}

/* Cells: one step of [batch, features]. */
static void shape_cell(Infer *in, const Call *c, const Cell *cell)
{
    Type x = type_arg(c, "input"), h = state_type(c, cell, 0);
    if (cell->kind == CELL_LSTM && list_len(c, "hx") != 2) {
        rule_fail(in, "%d states", list_len(c, "hx"));
        return;
    }
    Dim hidden = dim_at(h.shape, -1),
        rows = p2o_dim_mul(in->dims, hidden, int_dim(in, cell->ngate));
    int64_t n;
    if (!must_rank(in, c, "input", 2) || !must_rank(in, c, "w_ih", 2) ||
        !must_rank(in, c, "w_hh", 2) || !const_dim(in, hidden, "hidden size", &n) ||
        !must_equal(in, c, x.shape.at[1], shape_arg(c, "w_ih").at[1], "input size") ||
        !must_equal(in, c, rows, shape_arg(c, "w_ih").at[0], "rows of a weight") ||
        !must_equal(in, c, rows, shape_arg(c, "w_hh").at[0], "rows of a weight") ||
        !must_equal(in, c, hidden, shape_arg(c, "w_hh").at[1], "hidden size") ||
        !must_equal(in, c, x.shape.at[0], h.shape.at[0], "batch of the state"))
        return;
    for (int i = 0; i < nstates(cell); i++)
        set_out(in, c, i, x.dtype, h.shape);
}

static void lower_cell(Lower *lo, const Call *c, const Cell *cell, Value **out)
{
    Value *state[2] = { NULL, NULL };
    for (int i = 0; i < nstates(cell); i++)
        state[i] = cell->kind == CELL_LSTM ? tensor_item(lo, c, "hx", i) : tensor_arg(lo, c, "hx");
    Value *gi = gates_of(lo, tensor_arg(lo, c, "input"), tensor_arg(lo, c, "w_ih"),
                         tensor_arg(lo, c, "b_ih"));
    cell_step(lo, cell, gi,
              gates_of(lo, state[0], tensor_arg(lo, c, "w_hh"), tensor_arg(lo, c, "b_hh")), state,
              out);
}

static void shape_rnn_tanh_cell(Infer *in, const Call *c) { shape_cell(in, c, &rnn_tanh); }
static void shape_rnn_relu_cell(Infer *in, const Call *c) { shape_cell(in, c, &rnn_relu); }
static void shape_gru_cell(Infer *in, const Call *c) { shape_cell(in, c, &gru); }
static void shape_lstm_cell(Infer *in, const Call *c) { shape_cell(in, c, &lstm); }

static void lower_rnn_tanh_cell(Lower *lo, const Call *c, Value **out)
{
    lower_cell(lo, c, &rnn_tanh, out);
}
static void lower_rnn_relu_cell(Lower *lo, const Call *c, Value **out)
{
    lower_cell(lo, c, &rnn_relu, out);
}
static void lower_gru_cell(Lower *lo, const Call *c, Value **out) { lower_cell(lo, c, &gru, out); }
static void lower_lstm_cell(Lower *lo, const Call *c, Value **out)
{
    lower_cell(lo, c, &lstm, out);
}

/* Gates computed before; what a backward pass would need is left out. */
static void shape_fused_cell(Infer *in, const Call *c, const Cell *cell, const char *state)
{
    Type    s = type_arg(c, state);
    int64_t n;
    if (s.shape.rank < 1 || !const_dim(in, dim_at(s.shape, -1), "hidden size", &n))
        return;
    for (int i = 0; i < nstates(cell); i++)
        set_out(in, c, i, s.dtype, s.shape);
}

static Value *with_bias(Lower *lo, const Call *c, const char *gates, const char *bias)
{
    Value *x = tensor_arg(lo, c, gates), *b = tensor_arg(lo, c, bias);
    return b ? emit(lo, ONNX_Add, x, b) : x;
}

static void lower_fused_cell(Lower *lo, const Call *c, const Cell *cell, const char *state_,
                             Value **out)
{
    Value *s = tensor_arg(lo, c, state_), *state[2] = { s, s };
    cell_step(lo, cell, with_bias(lo, c, "input_gates", "input_bias"),
              with_bias(lo, c, "hidden_gates", "hidden_bias"), state, out);
}

static void shape_fused_gru(Infer *in, const Call *c) { shape_fused_cell(in, c, &gru, "hx"); }
static void shape_fused_lstm(Infer *in, const Call *c) { shape_fused_cell(in, c, &lstm, "cx"); }
static void lower_fused_gru(Lower *lo, const Call *c, Value **out)
{
    lower_fused_cell(lo, c, &gru, "hx", out);
}
static void lower_fused_lstm(Lower *lo, const Call *c, Value **out)
{
    lower_fused_cell(lo, c, &lstm, "cx", out);
}

/* One layer and direction of an LSTM, as CPU decompositions have it; mode 2 says LSTM. */
static void shape_mkldnn_lstm(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input");
    if (int_arg(c, "mode") != 2 || int_arg(c, "num_layers") != 1 || bool_arg(c, "bidirectional") ||
        bool_arg(c, "batch_first") || bool_arg(c, "train") || list_len(c, "batch_sizes") ||
        x.dtype == DT_F64) {
        rule_unsupported(
            in, "other than one layer and direction of an LSTM, time first, for inference");
        return;
    }
    if (!must_rank(in, c, "input", 3) || !must_rank(in, c, "weight0", 2) ||
        !must_rank(in, c, "weight1", 2) || !must_rank(in, c, "hx_", 3) ||
        !must_rank(in, c, "cx_", 3) ||
        !must_equal(in, c, x.shape.at[2], shape_arg(c, "weight0").at[1], "input size"))
        return;
    set_out(in, c, 0, x.dtype, with_last(in, x.shape, int_dim(in, int_arg(c, "hidden_size"))));
    set_out(in, c, 1, x.dtype, shape_arg(c, "hx_"));
    set_out(in, c, 2, x.dtype, shape_arg(c, "cx_"));
}

static void lower_mkldnn_lstm(Lower *lo, const Call *c, Value **out)
{
    Value *h = tensor_arg(lo, c, "hx_"), *s = tensor_arg(lo, c, "cx_"), *joined[3], *y[3];
    for (int i = 0; i < 3; i++) {
        Value *part[2] = { tensor_arg(lo, c,
                                      i == 0   ? "weight0"
                                      : i == 1 ? "weight1"
                                               : "weight2"),
                           NULL };
        part[1] = i == 2 ? tensor_arg(lo, c, "weight3") : NULL;
        Shape p = part[0]->shape;
        Dim   one = p2o_dim_int(lo->dims, 1), two = p2o_dim_int(lo->dims, 2);
        Shape to = i == 2 ? (Shape){ 2, (Dim[]){ one, p2o_dim_mul(lo->dims, p.at[0], two) } }
                          : (Shape){ 3, (Dim[]){ one, p.at[0], p.at[1] } };
        joined[i] = i == 2 && !bool_arg(c, "has_biases")
                        ? NULL
                        : join_gates(lo, &lstm, part, i == 2 ? 2 : 1, to);
    }
    emit_many(lo, ONNX_LSTM,
              ATTRS(attr_int("hidden_size", int_arg(c, "hidden_size")),
                    attr_str("direction", bool_arg(c, "reverse") ? "reverse" : "forward")),
              3, y, tensor_arg(lo, c, "input"), joined[0], joined[1], joined[2], NULL,
              is_zeros(h) ? NULL : h, is_zeros(s) ? NULL : s);
    out[0] = squeeze(lo, y[0], 1);
    out[1] = y[1];
    out[2] = y[2];
}

#define RECURRENT                                                                                  \
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "                \
    "bool bidirectional"
#define CELL_ARGS "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
#define ROW_RECURRENT(name, rule, fn)                                                              \
    { name ".input(Tensor input, Tensor hx, " RECURRENT ", bool batch_first) -> (Tensor, Tensor)", \
      rule, .lower_many = fn, .limits = "no dropout" },                                            \
    {                                                                                              \
        name ".data(Tensor data, Tensor batch_sizes, Tensor hx, " RECURRENT                        \
             ") -> (Tensor, Tensor)",                                                              \
            rule, .lower_many = fn, .limits = "no dropout, not in float64"                         \
    }

const AtenOp p2o_ops_rnn[] = {
    ROW_RECURRENT("rnn_tanh", shape_rnn_tanh, lower_rnn_tanh),
    ROW_RECURRENT("rnn_relu", shape_rnn_relu, lower_rnn_relu),
    ROW_RECURRENT("gru", shape_gru, lower_gru),
    { "lstm.input(Tensor input, Tensor[] hx, " RECURRENT
      ", bool batch_first) -> (Tensor, Tensor, Tensor)",
      shape_lstm, .lower_many = lower_lstm,
      .unchecked = true }, /* PyTorch 2.6 records states of rank 4 */
    { "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, " RECURRENT
      ") -> (Tensor, Tensor, Tensor)",
      shape_lstm, .lower_many = lower_lstm, .unchecked = true,
      .limits = "no dropout, no projection, not in float64" },
    { "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
      shape_pack, .lower_many = lower_pack,
      .unchecked = true }, /* captures record batch_sizes as float */
    { "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)",
      shape_unpack, .lower_many = lower_unpack, .unchecked = true },
    { "rnn_tanh_cell(Tensor input, Tensor hx, " CELL_ARGS "Tensor", shape_rnn_tanh_cell,
      .lower_many = lower_rnn_tanh_cell },
    { "rnn_relu_cell(Tensor input, Tensor hx, " CELL_ARGS "Tensor", shape_rnn_relu_cell,
      .lower_many = lower_rnn_relu_cell },
    { "gru_cell(Tensor input, Tensor hx, " CELL_ARGS "Tensor", shape_gru_cell,
      .lower_many = lower_gru_cell },
    { "lstm_cell(Tensor input, Tensor[] hx, " CELL_ARGS "(Tensor, Tensor)", shape_lstm_cell,
      .lower_many = lower_lstm_cell },
    { "_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor)",
      shape_fused_gru, .lower_many = lower_fused_gru, .limits = "no workspace" },
    { "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)",
      shape_fused_lstm, .lower_many = lower_fused_lstm, .limits = "no workspace" },
    { "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
      shape_mkldnn_lstm, .lower_many = lower_mkldnn_lstm,
      .limits = "LSTM for inference; no workspace" },
    { 0 },
};
