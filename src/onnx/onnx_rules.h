/* What the shape rules share; included by onnx_shape*.c and the table only.
 *
 * A rule reads the types of its node's inputs and sets those of its outputs.  It returns false for
 * a node that ONNX would refuse; a size that depends on data is a fresh symbol.  Dims may be NULL
 * on the way (overflow, division by zero): setting such a type fails, setting such contents leaves
 * them unknown. */
#ifndef P2O_ONNX_ONNX_RULES_H
#define P2O_ONNX_ONNX_RULES_H

#include "base/num.h"
#include "onnx/onnx_ops.h"

/* Repeated for rows that share a rule, which C allows. */
#define ONNX(name, domain, since, min_in, max_in, min_out, max_out, rule, inputs, attrs) \
    OnnxRule p2o_onnx_rule_##rule;
#include "onnx/onnx_ops.def"
#undef ONNX

enum { MAX_INTS = 256 };                /* contents longer than this are not followed */

static inline Value *input_at(const Node *n, int i) { return i < n->nin ? n->in[i] : NULL; }
static inline bool   is_index_type(DType t) { return t == DT_I64 || t == DT_I32; }

/* The floats that arithmetic takes: all but the eight-bit ones. */
static inline bool is_real_type(DType t)
{
    return t == DT_F16 || t == DT_BF16 || t == DT_F32 || t == DT_F64;
}

static inline bool is_numeric_type(DType t) { return is_int(t) || is_real_type(t); }

/* Output i; true without effect when the node has no such output. */
bool p2o_onnx_set(Graph *g, Node *n, int i, DType t, int rank, const Dim *at);
static inline bool set_shape(Graph *g, Node *n, int i, DType t, Shape s)
{
    return p2o_onnx_set(g, n, i, t, s.rank, s.at);
}
static inline bool set_like(Graph *g, Node *n, int i, const Value *v)
{
    return set_shape(g, n, i, v->dtype, v->shape);
}
/* Contents of output 0, when they fit its type and are short.  Always true, to end a rule with. */
bool p2o_onnx_set_ints(Node *n, const Dim *at, size_t nints);

Dim   p2o_onnx_fresh(Graph *g);
/* May be equal; where sizes are being settled, they are from now on. */
bool  p2o_onnx_equal(Graph *g, Dim a, Dim b, const char *what);
/* Only where sizes are being settled: each of the dims from `from` on, and no other rank. */
bool  p2o_onnx_settle_shape(Graph *g, Shape have, Shape want, const char *what);
bool  p2o_onnx_broadcast(Graph *g, Shape a, Shape b, Shape *out);
/* The type of a value that is one or the other: equal dims stay, others are fresh. */
bool  p2o_onnx_join(Graph *g, Shape a, Shape b, Shape *out);

/* The axis attribute `name`, counted from the end when negative. */
bool     p2o_onnx_axis(const Node *n, const char *name, int64_t otherwise, int rank, int *axis);
/* Contents that are all numbers; NULL when not known. */
int64_t *p2o_onnx_numbers(Graph *g, const Value *v, size_t *n);
/* Axes from input i or else the attribute "axes", as a set of bits; *given is false when there are
 * none.  false when not constant, out of range or repeated. */
bool     p2o_onnx_axes(Graph *g, const Node *n, int i, int rank, uint64_t *set, bool *given);
/* Element i of the attribute `name`. */
int64_t  p2o_onnx_int_at(const Node *n, const char *name, size_t i, int64_t otherwise);
bool     p2o_onnx_str_is(const Node *n, const char *name, const char *otherwise, const char *is);
/* The type that the attribute `name` names by its number. */
DType    p2o_onnx_dtype(const Node *n, const char *name, DType otherwise);
/* The length of a rank-1 value, at most MAX_RANK. */
bool     p2o_onnx_length(const Value *v, int *n);
/* The one element of a scalar or a vector of one; fresh when its contents are not known. */
Dim      p2o_onnx_scalar(Graph *g, const Value *v);

static inline Dim dim_plus(Graph *g, Dim a, int64_t c)
{
    return p2o_dim_add(g->dims, a, p2o_dim_int(g->dims, c));
}
static inline Dim dim_times(Graph *g, Dim a, int64_t c)
{
    return p2o_dim_mul(g->dims, a, p2o_dim_int(g->dims, c));
}
/* a / b known to leave no remainder. */
Dim p2o_onnx_quotient(Graph *g, Dim a, Dim b);

#endif
