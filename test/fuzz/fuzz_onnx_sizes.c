/* Any bytes as an ONNX model whose first axes are made dynamic: changed and written, or refused
 * with a diagnostic. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pt2onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct FuzzBytes {
    const uint8_t *p;
    size_t         n;
} FuzzBytes;

static int read_fuzz(void *user, uint64_t offset, void *buf, size_t n)
{
    const FuzzBytes *b = user;
    memcpy(buf, b->p + offset, n);
    return 1;
}

static int drop_bytes(void *user, const void *p, size_t n)
{
    (void)user, (void)p, (void)n;
    return 1;
}

static void change(const uint8_t *data, size_t size, const char *axes)
{
    FuzzBytes       b = { data, size };
    p2o_reader      r = { .size = sizeof r, .nbytes = size, .read_at = read_fuzz, .user = &b };
    p2o_conversion *c = p2o_new(NULL);
    if (!c)
        abort();
    p2o_status s = p2o_read(c, &r);
    if (s == P2O_OK && axes)
        s = p2o_set_dynamic_axes(c, axes);
    if (s == P2O_OK)
        s = p2o_convert(c);
    if (s == P2O_OK && (!p2o_summary(c) || !p2o_report(c)))
        abort();
    if (s == P2O_OK)
        s = p2o_write(c, drop_bytes, NULL);
    if (s != P2O_OK && p2o_diag_count(c) == 0)
        abort();
    p2o_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || memcmp(data, "PK", 2) != 0) { /* saved programs have entries of their own */
        change(data, size, NULL);
        change(data, size, "{\"x\": {\"0\": \"batch\"}}");
        change(data, size, "{\"x\": [0, 1]}");
    }
    return 0;
}
