/* Feeds a fuzz entry with files and with mutations of them, from a fixed seed: what a fuzzer does,
 * but the same every time.  usage: fuzz_X FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROUNDS = 400 };

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t mutate(uint8_t *p, size_t n)
{
    for (uint64_t k = next_random() % 4 + 1; n && k > 0; k--) {
        size_t at = (size_t)(next_random() % n), len = (size_t)(next_random() % 16) + 1;
        switch (next_random() % 5) {
        case 0: p[at] ^= (uint8_t)(1u << next_random() % 8); break;
        case 1: p[at] = (uint8_t)next_random(); break;
        case 2: memset(p + at, next_random() & 1 ? 0xFF : 0, n - at < len ? n - at : len); break;
        case 3: memmove(p + at, p + n - len % n, len < n - at ? len % n : 0); break;
        default: n = at; break;
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    int runs = 0;
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f)
            return 1;
        static uint8_t seed[1 << 20];
        size_t         n = fread(seed, 1, sizeof seed, f);
        fclose(f);
        LLVMFuzzerTestOneInput(seed, n);
        for (int k = 0; k < ROUNDS; k++, runs++) {
            uint8_t *copy = malloc(n + 1);              /* its own size: overruns are seen */
            if (!copy)
                return 1;
            memcpy(copy, seed, n);
            LLVMFuzzerTestOneInput(copy, mutate(copy, n));
            free(copy);
        }
    }
    printf("%d passed, 0 failed\n", runs);              /* a failure ends the program before this */
    return 0;
}
