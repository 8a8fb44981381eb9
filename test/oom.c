/* Every conversion with the n-th allocation failing, for all n: an error, no leak, no crash.
 * usage: oom FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "pt2onnx.h"

typedef struct Limit {
    long left;                  /* allocations until one fails */
    int  hit;
} Limit;

static void *limited(void *user, void *p, size_t size)
{
    Limit *l = user;
    if (size == 0) {
        free(p);
        return NULL;
    }
    if (l->left-- <= 0) {
        l->hit = 1;
        return NULL;
    }
    return realloc(p, size);
}

static int ignore_bytes(void *user, const void *p, size_t n)
{
    (void)user;
    (void)p;
    (void)n;
    return 1;
}

static p2o_status convert_all(p2o_conversion *c, const char *path)
{
    p2o_status s = p2o_read_file(c, path);
    if (s == P2O_OK)
        s = p2o_convert(c);
    return s == P2O_OK ? p2o_write(c, ignore_bytes, NULL) : s;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        for (long n = 0;; n++) {
            Limit       l = { .left = n };
            p2o_options o;
            p2o_options_init(&o, sizeof o);
            o.alloc = limited;
            o.user = &l;
            p2o_conversion *c = p2o_new(&o);
            p2o_status      s = c ? convert_all(c, argv[i]) : P2O_ERR_NOMEM;
            p2o_free(c);
            int ok = l.hit ? s == P2O_ERR_NOMEM : s == P2O_OK;
            passed += ok;
            failed += !ok;
            if (!ok)
                printf("%s: allocation %ld: status %d\n", argv[i], n, s);
            if (!l.hit)
                break;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
