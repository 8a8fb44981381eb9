/* The expression of sizes that a literal was in every capture.
 *
 * Several expressions mostly fit.  What the line of source shows decides between them: one whose numbers all stand in
 * it, or a size as it is, comes before one with numbers of its own.  Only one of a kind is an answer. */
#ifndef P2O_DYN_SEARCH_H
#define P2O_DYN_SEARCH_H

#include "ir/bind.h"
#include "ir/program.h"

typedef struct Search {
    Dims        *dims;
    Bindings    *bind;
    const Place *at;            /* the line that made the call; may be NULL */
    const char  *target;        /* the operator */
    const Dim   *sizes;         /* what it may be made of */
    size_t       n, nlocal;     /* the first nlocal are of the call's own tensors */
    const Dim   *present;       /* sizes of other tensors: taken as they are, where none of those fits */
    size_t       npresent;
    Dim          padded;        /* of an amount of padding: the size that may be lacking it to a multiple; else NULL */
} Search;

typedef struct Found {
    Dim first, second;          /* NULL: none, or no other */
    int n;                      /* 2: several */
} Found;

Found p2o_search(const Search *s, Dim literal);
/* An expression that gives the literal although it was the same in every capture; NULL: none. */
Dim   p2o_search_same(const Search *s, Dim literal);

#endif
