#include "onnx/kernels.h"

enum {
    NONE = 0,
    B = 1 << DT_BOOL, U8 = 1 << DT_U8, I8 = 1 << DT_I8, I16 = 1 << DT_I16, I32 = 1 << DT_I32,
    I64 = 1 << DT_I64, U16 = 1 << DT_U16, U32 = 1 << DT_U32, U64 = 1 << DT_U64,
    F16 = 1 << DT_F16, BF16 = 1 << DT_BF16, F32 = 1 << DT_F32, F64 = 1 << DT_F64,
    INTS = U8 | I8 | I16 | I32 | I64 | U16 | U32 | U64,
};

typedef struct Kernel {
    OnnxOp      op;
    const char *in;
    int         since;
    bool        reducing;
    int         types;
} Kernel;

static const Kernel kernels[] = {
#define KERNEL(op, in, since, ...)          { ONNX_##op, in, since, false, __VA_ARGS__ },
#define KERNEL_REDUCING(op, in, since, ...) { ONNX_##op, in, since, true, __VA_ARGS__ },
#include "onnx/kernels.def"
#undef KERNEL_REDUCING
#undef KERNEL
};

/* Stand-ins, best first.  Integers wrap as they should when cast back from a wider integer; a sum
 * or product of 32-bit integers need not be exact in a float, so none stands in for those. */
static const DType wider[DT_COUNT][6] = {
    [DT_BOOL] = { DT_U8, DT_I32, DT_I64, DT_F32 },
    [DT_U8]   = { DT_I32, DT_I64, DT_F64, DT_F32 },
    [DT_I8]   = { DT_I32, DT_I64, DT_F64, DT_F32 },
    [DT_I16]  = { DT_I32, DT_I64, DT_F64, DT_F32 },
    [DT_U16]  = { DT_I32, DT_I64, DT_U32, DT_F64, DT_F32 },
    [DT_I32]  = { DT_I64 },
    [DT_U32]  = { DT_I64 },
    [DT_F16]  = { DT_F32 },
    [DT_BF16] = { DT_F32 },
};

static bool is_about(const Kernel *k, int i)
{
    size_t n = strlen(k->in);
    return n > 0 && k->in[(size_t)i < n ? (size_t)i : n - 1] == 'T';
}

static bool is_reducing(const Node *n)
{
    const Attr *a = p2o_node_attr(n, "reduction");
    return a && !same(a->s, "none");
}

/* k is about n and no later row replaces it. */
static bool holds_for(const Kernel *k, const Node *n)
{
    const Kernel *next = k + 1;
    if (k->op != n->op || k->since > n->graph->opset || (k->reducing && !is_reducing(n)))
        return false;
    return next == kernels + COUNT_OF(kernels) || next->op != k->op || !same(next->in, k->in) ||
           next->since > n->graph->opset;
}

bool p2o_kernel_exists(const Node *n)
{
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        if (kernels[i].types == NONE && holds_for(&kernels[i], n))
            return false;
    return true;
}

static bool has_kernel(const Kernel *k, DType t)
{
    return k->types >> t & 1 || (t == DT_F16 && k->types & F32 && !k->reducing);
}

DType p2o_kernel_type(const Node *n, int i)
{
    const Kernel *k = NULL;
    DType         t = n->in[i]->dtype;
    for (size_t r = 0; r < COUNT_OF(kernels); r++)
        if (holds_for(&kernels[r], n) && is_about(&kernels[r], i))
            k = &kernels[r];
    if (!k || has_kernel(k, t))
        return t;
    for (const DType *w = wider[t]; *w; w++)
        if (has_kernel(k, *w))
            return *w;
    return DT_NONE;
}
