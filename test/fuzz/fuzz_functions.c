/* Any bytes as a library of ONNX functions: refused with a diagnostic, or functions whose rules can
 * be asked. */
#include <stdlib.h>

#include "onnx/function.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count_diag(void *user, const Diag *d)
{
    (void)d;
    ++*(size_t *)user;
}

static void ask_rules(Arena *a, Diags *d, const OnnxFunction *f)
{
    Dims       *t = p2o_dims_new(a);
    Graph      *g = p2o_graph_new(a, d, t, f->opset, NULL);
    Dim         n = p2o_dim_sym(t, "n");
    Value     **in = NEW_N(a, Value *, (size_t)f->nin + 1);
    Value     **out = NEW_N(a, Value *, (size_t)f->nout + 1);
    const char *op;
    for (int i = 0; i < f->nin; i++)
        in[i] = p2o_graph_input(g, NULL, DT_F32, (Shape){ 2, (Dim[]){ n, p2o_dim_int(t, 4) } });
    p2o_function_type(g, f, f->nin, in, 0, NULL, out);
    p2o_function_misfit(a, f, 17, &op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t          said = 0;
    Arena          *a = p2o_arena_new(NULL, NULL);
    Diags          *d = p2o_diags_new(a, count_diag, &said);
    FunctionLibrary l = { .index = { .arena = a } };
    if (p2o_functions_parse(d, &l, (Str){ (const char *)data, size }) != (said == 0))
        abort();
    for (size_t i = 0; i < l.index.n; i++)
        ask_rules(a, d, l.index.at[i].value);
    p2o_arena_free(a);
    return 0;
}
