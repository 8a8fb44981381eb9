/* Numbers of an ONNX file that a size may have made: what the search for them, their weighing and
 * the doubts that remain share (onnx_numbers.c, onnx_weigh.c, onnx_doubts.c). */
#ifndef P2O_DYN_ONNX_NUMBERS_H
#define P2O_DYN_ONNX_NUMBERS_H

#include <math.h>

#include "aten/ops.h"
#include "dyn/grammar.h"
#include "dyn/onnx_sizes.h"
#include "dyn/reading.h"
#include "dyn/spell.h"

enum { MOST_REFUSED = 3 };      /* others mostly follow from them */

typedef struct FixedSize {
    int64_t size;
    bool    given;              /* by an input or by weights */
} FixedSize;

typedef struct Number {
    const char     *target;
    const NodeCall *call;
    NumberRole      role;
    bool            whole, usual, fixed;
    bool            strict;     /* also where an expression is not much longer */
    bool            length;     /* of a constant */
    bool            lonely;     /* a size that nothing else has */
    bool            square;     /* `at` is that of the file's number */
    bool            counted;    /* added to floats, or a factor of 1: people do that with counts */
    bool            parameter;  /* with a name of the model's own */
    double          at, slack;
    Dim             axis;       /* the size of the axis along which it is; NULL: not known */
} Number;

typedef struct Weighing {
    OnnxSettling *s;
    Arena        *arena;
    VEC(Number)   list;
    VEC(FixedSize) fixed;       /* sizes above 1 that never change, each once */
    VEC(Dim)      symbols;      /* of the inputs */
    Map           seen;         /* size; symbol that evidence made a number; of a Readings: its
                                 * number and sizes */
    VEC(Readings *) all;
    Bases         bases;
    int           nrefused;
    const Number *last;         /* that was refused */
} Weighing;

/* Fills w->list. */
void   p2o_onnx_find_numbers(Weighing *w);
/* What is wrong at other sizes whatever the numbers are. */
void   p2o_onnx_doubts(Weighing *w);
void   p2o_onnx_doubt_ones(Weighing *w, const NodeCall *k);
void   p2o_onnx_doubt_traced(Weighing *w);

void   p2o_onnx_refuse(Weighing *w, const Call *c, const char *why);
void **p2o_onnx_seen(Weighing *w, const void *key, size_t n);
/* Floats of many values in no order: nothing that was computed from sizes. */
bool   p2o_onnx_is_weights(const Tensor *t);
/* Exporters of PyTorch call what they computed val_3 and onnx::Mul_12, and weights by their
 * names. */
bool   p2o_onnx_is_parameter(const Value *v);
/* The line, or the call, has the number, whatever its sign. */
bool   p2o_onnx_is_spelled_in(const Place *at, double v);
/* The letter of onnx_ops.def that says what an input's numbers mean; 0: nothing is said. */
char   p2o_onnx_number_letter(const Node *n, int input);

static inline bool is_alike(double x, double y, double slack)
{
    return x == y || fabs(x - y) <= slack * fabs(y);
}
static inline bool is_said(double v) { return v >= 1e6 || p2o_number_bits(v) < 50; }

#endif
