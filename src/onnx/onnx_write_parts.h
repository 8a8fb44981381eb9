/* What the two ways of writing a model share: onnx_write.c makes one from a Graph, onnx_copy.c
 * writes one that was read again.  Included by these only. */
#ifndef P2O_ONNX_ONNX_WRITE_PARTS_H
#define P2O_ONNX_ONNX_WRITE_PARTS_H

#include "format/pb_write.h"
#include "onnx/onnx_model.h"
#include "onnx/onnx_proto.h"
#include "onnx/onnx_write.h"

enum { EXTERNAL_LEAST = 1024 };

typedef struct ModelWriter {
    PbWriter     pb;
    Arena       *arena;
    Diags       *diags;
    const Graph *root;
    const char  *producer_version;
    const char **names;                 /* by value id, of those that have none */
    bool         spill;                 /* weights go to the data file */
    bool         aside;                 /* so do those that a model which was read has outside it */
    bool         link;                  /* weights stay in their archive */
    const char  *data_name;             /* of the data file, without folder */
    Sink        *data;                  /* NULL: measuring, or no data file */
    uint64_t     data_end;
    Map          archives;              /* path as opened -> location, relative to the model */
    uint64_t     next_name;             /* to try for an unnamed value */
    bool         failed;
} ModelWriter;

void p2o_put_entry(ModelWriter *w, uint32_t field, const char *key, const char *value);
void p2o_put_node(ModelWriter *w, const Node *n);
/* ref: the function's attribute whose value it has; NULL: a's own. */
void p2o_put_attribute(ModelWriter *w, uint32_t field, const Attr *a, const char *ref);
void p2o_put_opset(ModelWriter *w, uint32_t field, const char *domain, int64_t version);
void p2o_put_tensor(ModelWriter *w, uint32_t field, const Tensor *x, const char *name);
void p2o_put_tensor_type(ModelWriter *w, const Value *v, bool named);
/* The fields that hold a tensor's elements: in the data file, where they are, or here. */
void p2o_put_elements(ModelWriter *w, const Tensor *x, const char *name, bool aside, bool linked);

/* Domains and functions that a model's nodes need (onnx_write_function.c). */
typedef struct ModelOperators {
    Map domains;                        /* name -> version */
    Map functions;                      /* "domain\nname" -> OnnxFunction * */
    int ir_version;                     /* that the functions take */
} ModelOperators;

void p2o_need_operator(ModelOperators *o, const OnnxOperator *op);
void p2o_put_functions(ModelWriter *w, const ModelOperators *o);

/* The model that root->file was read from, as its Graph is now. */
void p2o_put_copy(ModelWriter *w);
/* Its elements lie in a data file. */
bool p2o_copy_is_outside(const ModelWriter *w, const Tensor *x);

#endif
