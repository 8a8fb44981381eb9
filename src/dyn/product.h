/* Products and quotients of what people compute floats of, valued in the captures and sorted by how
 * they change between them.
 *
 * Parts are sizes, a few more or less, halves, pairs of sizes, whole roots and logarithms, and the
 * logarithms of such.  A product is known up to a factor (and a sum up to what is added) by how it
 * changes: so one that fits a float whose factor is any number is looked up, not searched for.  The
 * table is made once for all floats of a program. */
#ifndef P2O_DYN_PRODUCT_H
#define P2O_DYN_PRODUCT_H

#include "dyn/grammar.h"

enum { PRODUCT_PARTS = 4 };

typedef struct ProductPart {            /* of products: an expression, or its inverse or square */
    const Expr *expr;
    int         power;                  /* 1, -1, 2, -2 */
    double      bits;
    double      held;                   /* bits that the whole numbers in it have in the captures */
    int         base;                   /* the one size in it; -1: of several */
    double      at[MAX_CAPTURES];
} ProductPart;

typedef struct Product {
    uint16_t part[PRODUCT_PARTS];
    uint8_t  n;
    float    bits;
} Product;

typedef struct Keyed {                  /* a product to some power, by how it changes */
    double   key;
    uint32_t product;
    float    power;
} Keyed;

typedef struct KeyedList {
    Keyed *at;
    size_t n;
} KeyedList;

typedef enum KeyKind {
    KEY_RATIO,                          /* of the first two captures */
    KEY_DIFFERENCE,
    KEY_SHARE,                          /* of differences: the third to the first, by the second to
                                         * the first */
    NKEY
} KeyKind;

typedef struct Keys {                   /* over some of the captures */
    unsigned  mask;                     /* which */
    KeyedList by[NKEY];
} Keys;

typedef struct Products Products;

/* NULL: the captures to fit do not tell sizes from numbers: there is one only, or a size never
 * changed. */
Products          *p2o_products_new(Arena *a, const Bases *b);
/* NULL: there were too many different choices of captures. */
const Keys        *p2o_products_keys(Products *t, unsigned mask);
const Product     *p2o_product_at(const Products *t, uint32_t i);
/* In capture k, to that power. */
double             p2o_product_value(const Products *t, const Product *p, double power, int k);
double             p2o_product_held(const Products *t, const Product *p);
const Expr        *p2o_product_expr(const Products *t, const Product *p, double power);

#endif
