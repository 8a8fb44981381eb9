/* The rows of onnx_ops.def as a table.  They stand in ASCII order, so bisection finds a name. */
#include "onnx/onnx_ops.h"

#include "onnx/onnx_rules.h"

static const OnnxInfo rows[] = {
    [ONNX_NONE] = { .name = "", .domain = "", .max_in = -1, .max_out = -1, .inputs = "",
                    .attrs = "" },
#define ONNX(name, domain, since, min_in, max_in, min_out, max_out, rule, inputs, attrs) \
    [ONNX_##name] = { #name,   domain,  since,                 min_in, max_in,           \
                      min_out, max_out, p2o_onnx_rule_##rule,  inputs, attrs },
#include "onnx/onnx_ops.def"
#undef ONNX
};

const OnnxInfo *p2o_onnx_info(OnnxOp op) { return &rows[op]; }

Str p2o_onnx_input(OnnxOp op, int i)
{
    Str word = { 0 };
    for (Str rest = str_of(op == ONNX_NONE ? "" : rows[op].inputs); rest.n && i >= 0; i--) {
        word = p2o_str_cut(rest, ' ', &rest);
        if (word.n && word.p[word.n - 1] == '*')
            return (Str){ word.p, word.n - 1 };
    }
    return i < 0 ? word : (Str){ 0 };
}

char p2o_onnx_attr(OnnxOp op, const char *name)
{
    Str letter;
    for (Str rest = str_of(op == ONNX_NONE ? "" : rows[op].attrs); rest.n;)
        if (str_is(p2o_str_cut(p2o_str_cut(rest, ' ', &rest), ':', &letter), name) && letter.n)
            return letter.p[0];
    return 0;
}

static int compare_name(Str a, const char *z)
{
    size_t nz = strlen(z), n = a.n < nz ? a.n : nz;
    int    c = n ? memcmp(a.p, z, n) : 0;
    return c ? c : (a.n > nz) - (a.n < nz);
}

OnnxOp p2o_onnx_find(Str name)
{
    int lo = ONNX_NONE + 1, hi = ONNX_COUNT;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2, c = compare_name(name, rows[mid].name);
        if (c == 0)
            return (OnnxOp)mid;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return ONNX_NONE;
}
