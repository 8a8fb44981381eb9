/* Growable array in an arena.
 *
 *     VEC(Var *) vars = {0};
 *     VEC_PUSH(arena, &vars, v);
 *     for (size_t i = 0; i < vars.n; i++) use(vars.at[i]);
 *
 * Growth doubles; the old array stays in the arena, so the total is at most twice the final one. */
#ifndef P2O_BASE_VEC_H
#define P2O_BASE_VEC_H

#include "base/arena.h"

#define VEC(T) struct { T *at; size_t n, cap; }

#define VEC_RESERVE(arena, v, want)                                                            \
    do {                                                                                       \
        if ((want) > (v)->cap) {                                                               \
            size_t cap_ = (v)->cap ? (v)->cap * 2 : 8;                                         \
            if (cap_ < (want))                                                                 \
                cap_ = (want);                                                                 \
            (v)->at = p2o_grow((arena), (v)->at, (v)->n * sizeof *(v)->at,                     \
                               cap_ * sizeof *(v)->at);                                        \
            (v)->cap = cap_;                                                                   \
        }                                                                                      \
    } while (0)

#define VEC_PUSH(arena, v, ...)                                                                \
    do {                                                                                       \
        VEC_RESERVE((arena), (v), (v)->n + 1);                                                 \
        (v)->at[(v)->n++] = __VA_ARGS__;                                                       \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

#endif
