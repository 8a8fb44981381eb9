/* Any bytes as an ONNX model: read, or refused with one diagnostic.  What is read is consistent. */
#include <stdlib.h>

#include "onnx/onnx_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_ports(const OnnxPort *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < at[i].rank; k++)
            if (at[i].sizes[k] < -1 || (at[i].sizes[k] >= 0 && *at[i].dims[k]))
                abort();
}

static void walk_file(const OnnxFile *o)
{
    uint64_t nnode = 0;
    for (size_t i = 0; i < o->nop; i++) {
        nnode += o->ops[i].n;
        if (i && o->ops[i].n > o->ops[i - 1].n)
            abort();
    }
    if (nnode != o->nnode || o->nexternal > o->ninit || o->external_bytes > o->init_bytes)
        abort();
    walk_ports(o->inputs, o->nin);
    walk_ports(o->outputs, o->nout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena          *a = p2o_arena_new(NULL, NULL);
    Diags          *d = p2o_diags_new(a, NULL, NULL);
    const OnnxFile *o = p2o_onnx_read(d, p2o_source_memory(a, data, size));
    if (p2o_diags_count(d) != (o ? 0 : 1))
        abort();
    if (o)
        walk_file(o);
    p2o_arena_free(a);
    return 0;
}
