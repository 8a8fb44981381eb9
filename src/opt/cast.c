/* Identity, Casts to the type there already is, and a Cast of a Cast whose first step loses
 * nothing.
 *
 * The middle type holds every value exactly, so the second step sees the same number with or
 * without it.  One case differs: an integer out of the last type's range wraps, a float does
 * not. */
#include "opt/opt.h"

/* Bits of the integers that t holds exactly, without sign. */
static int integer_bits(DType t)
{
    switch (t) {
    case DT_BOOL: return 1;
    case DT_I8: return 7;
    case DT_U8: case DT_BF16: return 8;
    case DT_F16: return 11;
    case DT_I16: return 15;
    case DT_U16: return 16;
    case DT_F32: return 24;
    case DT_I32: return 31;
    case DT_U32: return 32;
    case DT_F64: return 53;
    case DT_I64: return 63;
    case DT_U64: return 64;
    default: return 0;
    }
}

static bool has_no_sign(DType t)
{
    return t == DT_BOOL || t == DT_U8 || t == DT_U16 || t == DT_U32 || t == DT_U64;
}

/* Every value of `from` is one of `to`. */
static bool is_exact(DType from, DType to)
{
    int have = integer_bits(from), room = integer_bits(to);
    if (from == to)
        return true;
    if (!have || !room || to == DT_BOOL)
        return false;
    if (is_float(from))
        return to == DT_F64 || (to == DT_F32 && from != DT_F64);
    return have <= room && (has_no_sign(from) || !has_no_sign(to));
}

static bool skips_middle(DType from, DType middle, DType to)
{
    if (!is_exact(from, middle))
        return false;
    return to == from || !(is_int(from) && is_float(middle) && is_int(to));
}

bool p2o_opt_cast(Node *n)
{
    if (n->op == ONNX_Identity)     /* under other symbols it is the border of a loop's round */
        return p2o_shape_same(n->in[0]->shape, n->out[0]->shape) &&
               p2o_opt_replace(n->out[0], n->in[0]);
    if (n->op != ONNX_Cast)
        return false;
    DType to = n->out[0]->dtype;
    if (n->in[0]->dtype == to)
        return p2o_opt_replace(n->out[0], n->in[0]);
    const Node *before = made_by(n->in[0], ONNX_Cast);
    if (!before || !skips_middle(before->in[0]->dtype, n->in[0]->dtype, to))
        return false;
    if (before->in[0]->dtype == to && p2o_opt_replace(n->out[0], before->in[0]))
        return true;
    return p2o_node_become(n, ONNX_Cast, 1, before->in, n->nattr, n->attrs);
}
