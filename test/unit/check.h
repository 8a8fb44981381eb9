/* The whole test framework: CHECK, and a main that counts. */
#ifndef P2O_TEST_CHECK_H
#define P2O_TEST_CHECK_H

#include <stdio.h>

static int check_passed, check_failed;

#define CHECK(cond)                                                                   \
    do {                                                                              \
        if (cond) {                                                                   \
            check_passed++;                                                           \
        } else {                                                                      \
            check_failed++;                                                           \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #cond);                 \
        }                                                                             \
    } while (0)

static inline int check_report(void)
{
    printf("%d passed, %d failed\n", check_passed, check_failed);
    return check_failed != 0;
}

#endif
