/* What the user says of inputs and outputs by their names: which axes are dynamic, what ports are
 * called.  Kept as it was said; it means something once there is a program. */
#ifndef P2O_DECLARED_H
#define P2O_DECLARED_H

#include "ir/bind.h"
#include "ir/program.h"
#include "onnx/onnx_model.h"

typedef VEC(const char *) Texts;

typedef struct OutputAxis {             /* as the user names it */
    const char *output, *name;
    int64_t     axis;
} OutputAxis;

typedef struct Declared {
    Texts        inputs, axes, ranges;  /* "x:batch,3", {"x": {"0": "batch"}}, "batch=1..8" */
    const char **input_names, **output_names;           /* in the program's order; NULL: its own */
    size_t       ninput_name, noutput_name;
    VEC(OutputAxis)  output_axes;       /* found in axes */
    Arena           *arena;             /* these are of the program that it was applied to */
    Diags           *diags;
    Program         *program;
    Bindings        *bindings;
    const OnnxModel *onnx;              /* NULL: a saved program */
} Declared;

/* Names, numbers and ranges for the program's inputs; what is wrong is reported.  After an input of
 * an ONNX model that has no shape, nothing more is looked at. */
void p2o_declared_apply(Declared *d, Program *p, Bindings *b, const OnnxModel *onnx);
/* Names of sizes that are expressions: the outputs' as asked for, and the inputs'. */
void p2o_declared_name_axes(const Declared *d, Graph *g);
/* "batch=4": of an ONNX model a number takes a size's place once all sizes are settled. */
bool p2o_declared_is_pin(const char *range);

#endif
