/* Any bytes as a file: its kind is found, and when it is a zip archive every record is read.  What
 * is refused has been reported, once. */
#include <stdlib.h>

#include "front/sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_records(Diags *d, const Zip *z, size_t size)
{
    for (size_t i = 0; i < z->n; i++) {
        const ZipEntry *e = &z->entries[i];
        size_t          before = p2o_diags_count(d);
        Str             text;
        if (p2o_zip_find(z, e->name) != e || e->offset > size || e->csize > size - e->offset)
            abort();
        bool ok = p2o_zip_read(d, z, e, &text);
        if (ok ? text.n != e->usize : p2o_diags_count(d) != before + 1)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena   *a = p2o_arena_new(NULL, NULL);
    Diags   *d = p2o_diags_new(a, NULL, NULL);
    Zip     *z;
    FileKind k = p2o_sniff(d, p2o_source_memory(a, data, size), &z);
    if ((k == FILE_UNKNOWN) != (p2o_diags_count(d) == 1))
        abort();
    if (z)
        read_records(d, z, size);
    p2o_arena_free(a);
    return 0;
}
