/* Damaged files: cut at every length, and with every byte changed, through the whole library.  Each
 * must give an error or the very model that the whole file gives, never a crash or a hang.  An ONNX
 * file has no checksums: a damaged weight is written as it is.  usage: robust FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pt2onnx.h"

typedef struct Bytes {
    const uint8_t *p;
    size_t         n;
} Bytes;

static int      passed, failed, is_onnx;
static uint64_t whole_model;            /* hash of what the undamaged file becomes */

static int read_bytes(void *user, uint64_t offset, void *buf, size_t n)
{
    const Bytes *b = user;
    memcpy(buf, b->p + offset, n);
    return 1;
}

static int hash_bytes(void *user, const void *p, size_t n)
{
    uint64_t *hash = user;
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ ((const uint8_t *)p)[i]) * 1099511628211u;
    return 1;
}

static void try_bytes(const char *what, size_t at, const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n + 1);                      /* its own size: overruns are seen */
    if (!copy)
        abort();
    memcpy(copy, p, n);
    Bytes           b = { copy, n };
    p2o_reader      r = { .size = sizeof r, .nbytes = n, .read_at = read_bytes, .user = &b };
    p2o_conversion *c = p2o_new(NULL);
    uint64_t        model = 14695981039346656037u;
    p2o_status      s = p2o_read(c, &r);
    if (s == P2O_OK && is_onnx)
        s = p2o_set_dynamic_axes(c, "{\"x\": {\"0\": \"batch\"}}");
    if (s == P2O_OK)
        s = p2o_convert(c);
    if (s == P2O_OK)
        s = p2o_write(c, hash_bytes, &model);
    int silent = s != P2O_OK && p2o_diag_count(c) == 0;
    if (!whole_model)
        whole_model = model;
    if (silent || (s == P2O_OK && model != whole_model && !is_onnx)) {
        printf("%s %zu: status %d %s\n", what, at, s,
               silent ? "without a word" : "and another model");
        failed++;
    } else {
        passed++;
    }
    p2o_free(c);
    free(copy);
}

static int damage_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    static uint8_t data[1 << 20];
    size_t         n = fread(data, 1, sizeof data, f);
    fclose(f);
    whole_model = 0;
    is_onnx = strstr(path, ".onnx") != NULL;
    try_bytes("whole", n, data, n);
    for (size_t i = 0; i < n; i++)
        try_bytes("cut at", i, data, i);
    for (size_t i = 0; i < n; i++) {
        static const uint8_t masks[] = { 0x01, 0x20, 0xFF };
        uint8_t              old = data[i];
        data[i] = old ^ masks[i % sizeof masks];
        try_bytes("byte", i, data, n);
        data[i] = old;
    }
    return 1;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!damage_file(argv[i]))
            failed++;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
