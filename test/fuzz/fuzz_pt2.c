/* Any bytes as a .pt2: a program whose weights can be read, or a diagnostic; never a crash.
 *
 * Random bytes seldom make a zip, so an input that begins with `{` is instead the program's JSON
 * inside an archive with one weight. */
#include <stdlib.h>

#include "front/pt2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST_LOADED = 1 << 16 };

static void check_weights(Arena *a, const Program *p)
{
    for (size_t i = 0; i < p->weights.n; i++) {
        const Tensor *t = p->weights.at[i]->tensor;
        const char   *why;
        uint64_t      n;
        if (!t || !p2o_tensor_check(t, &why) || !p2o_tensor_nelem(t, &n))
            abort();
        size_t nbytes = n < LARGEST_LOADED ? (size_t)n * p2o_dtype_bytes(t->dtype) : 0;
        if (nbytes && !p2o_tensor_load(t, p2o_alloc(a, nbytes), nbytes))
            abort();
    }
}

static void check_calls(const Body *b)
{
    for (size_t i = 0; i < b->calls.n; i++) {
        const Call *c = b->calls.at[i];
        for (int k = 0; k < c->nargs; k++) {
            if (c->args[k].kind == ARG_VAR && !c->args[k].var)
                abort();
            if (c->args[k].kind == ARG_BODY)
                check_calls(c->args[k].body);
        }
    }
}

static void put_number(Buf *b, size_t v, int nbytes)
{
    for (; nbytes > 0; nbytes--, v >>= 8)
        p2o_put(b, (uint8_t[]){ (uint8_t)v }, 1);
}

static void add_record(Buf *zip, Buf *dir, const char *name, Str data)
{
    size_t at = zip->n, n = strlen(name);
    put_number(zip, 0x04034B50, 4);
    put_number(zip, 0, 22);
    put_number(zip, n, 4);
    p2o_puts(zip, name);
    p2o_put(zip, data.p, data.n);
    put_number(dir, 0x02014B50, 4);
    put_number(dir, 0, 16);
    put_number(dir, data.n, 4);
    put_number(dir, data.n, 4);
    put_number(dir, n, 2);
    put_number(dir, 0, 12);
    put_number(dir, at, 4);
    p2o_puts(dir, name);
}

static Str wrap_json(Arena *a, Str json)
{
    static const char config[] =
        "{\"config\":{\"w\":{\"path_name\":\"0\",\"tensor_meta\":{\"dtype\":7,"
        "\"sizes\":[{\"as_int\":2}],\"strides\":[{\"as_int\":1}],"
        "\"storage_offset\":{\"as_int\":0}}}}}";
    Buf zip = { .arena = a }, dir = { .arena = a };
    add_record(&zip, &dir, "m/archive_format", STR("pt2"));
    add_record(&zip, &dir, "m/models/model.json", json);
    add_record(&zip, &dir, "m/data/weights/model_weights_config.json", STR(config));
    add_record(&zip, &dir, "m/data/weights/0", STR("abcdefgh"));
    size_t at = zip.n;
    p2o_put(&zip, dir.at, dir.n);
    put_number(&zip, 0x06054B50, 4);
    put_number(&zip, 0, 4);
    put_number(&zip, 4, 2);
    put_number(&zip, 4, 2);
    put_number(&zip, dir.n, 4);
    put_number(&zip, at, 4);
    put_number(&zip, 0, 2);
    return buf_str(&zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *a = p2o_arena_new(NULL, NULL);
    Diags *d = p2o_diags_new(a, NULL, NULL);
    Str    bytes = { (const char *)data, size };

    if (size && data[0] == '{')
        bytes = wrap_json(a, bytes);
    Zip     *z = p2o_zip_open(d, p2o_source_memory(a, bytes.p, bytes.n), 0, bytes.n);
    Program *p = z ? p2o_pt2_read(d, p2o_dims_new(a), z) : NULL;
    if ((p == NULL) != (p2o_diags_errors(d) > 0))
        abort();
    if (p) {
        check_weights(a, p);
        check_calls(p->main);
    }
    p2o_arena_free(a);
    return 0;
}
