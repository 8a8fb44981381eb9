#include "onnx/onnx_proto.h"

#include "base/vec.h"

void p2o_proto_spoil(ProtoWalk *w, const char *why)
{
    if (!w->why)
        w->why = why;
    w->bad = true;
}

const char *p2o_proto_text(ProtoWalk *w, const PbReader *r, const PbField *f)
{
    if (f->wire != PB_BYTES || f->nbytes > SIZE_MAX - 1) {
        p2o_proto_spoil(w, "a text field is not text");
        return "";
    }
    char *z = p2o_alloc(w->arena, (size_t)f->nbytes + 1);
    if (!p2o_source_read(r->source, f->at, z, (size_t)f->nbytes)) {
        p2o_proto_spoil(w, "unreadable");
        return "";
    }
    for (size_t i = 0; i < f->nbytes; i++)
        if (((unsigned char)z[i] < 0x20 || z[i] == 0x7F) && !(w->lines && z[i] == '\n')) {
            if (w->exact)
                p2o_proto_spoil(w, "a name has control characters");
            z[i] = '?';                 /* would reach a terminal */
        }
    return z;
}

PbReader p2o_proto_enter(ProtoWalk *w, const PbReader *r, const PbField *f)
{
    if (f->wire != PB_BYTES)
        p2o_proto_spoil(w, "a message field holds a number");
    return pb_inside(r, f);
}

void p2o_proto_leave(ProtoWalk *w, const PbReader *r)
{
    if (r->failed)
        p2o_proto_spoil(w, "malformed or cut off protobuf");
}

/* A message of two texts, as StringStringEntryProto is. */
OnnxMeta p2o_proto_pair(ProtoWalk *w, PbReader r)
{
    OnnxMeta m = { "", "" };
    PbField  f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            m.key = p2o_proto_text(w, &r, &f);
        else if (f.number == 2)
            m.value = p2o_proto_text(w, &r, &f);
    }
    p2o_proto_leave(w, &r);
    return m;
}

OnnxImport p2o_proto_import(ProtoWalk *w, PbReader r)
{
    OnnxImport m = { "", 0 };
    PbField    f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            m.domain = p2o_proto_text(w, &r, &f);
        else if (f.number == 2)
            m.version = (int64_t)f.value;
    }
    p2o_proto_leave(w, &r);
    return m;
}

static void read_dim(ProtoWalk *w, PbReader r, int64_t *size, const char **name)
{
    PbField f;
    *size = -1;
    *name = "";
    while (pb_next(&r, &f)) {
        if (f.number == 1) {
            *size = (int64_t)f.value < 0 ? -1 : (int64_t)f.value;
            *name = "";
        } else if (f.number == 2) {
            *size = -1;
            *name = p2o_proto_text(w, &r, &f);
        }
    }
    p2o_proto_leave(w, &r);
}

static void read_port_shape(ProtoWalk *w, PbReader r, OnnxPort *port)
{
    VEC(int64_t)      sizes = { 0 };
    VEC(const char *) names = { 0 };
    PbField           f;
    while (pb_next(&r, &f)) {
        int64_t     size;
        const char *name;
        if (f.number != 1)
            continue;
        read_dim(w, p2o_proto_enter(w, &r, &f), &size, &name);
        VEC_PUSH(w->arena, &sizes, size);
        VEC_PUSH(w->arena, &names, name);
    }
    p2o_proto_leave(w, &r);
    if (sizes.n > 1000)                 /* far past anything a runtime accepts; keeps rank an int */
        p2o_proto_spoil(w, "a shape has more than 1000 axes");
    port->rank = sizes.n > 1000 ? 0 : (int)sizes.n;
    port->sizes = sizes.at;
    port->dims = names.at;
}

static void read_tensor_type(ProtoWalk *w, PbReader r, OnnxPort *port)
{
    PbField f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            port->dtype = f.value > 1000 ? DT_NONE : p2o_dtype_from_onnx((long)f.value);
        else if (f.number == 2)
            read_port_shape(w, p2o_proto_enter(w, &r, &f), port);
    }
    p2o_proto_leave(w, &r);
}

static void read_type(ProtoWalk *w, PbReader r, OnnxPort *port)
{
    static const char *const kinds[] = { [1] = "tensor", [4] = "sequence", [5] = "map",
                                         [7] = "opaque", [8] = "sparse tensor", [9] = "optional" };
    PbField f;
    while (pb_next(&r, &f)) {
        if (f.number >= COUNT_OF(kinds) || !kinds[f.number])
            continue;
        port->kind = kinds[f.number];
        if (f.number == 1)
            read_tensor_type(w, p2o_proto_enter(w, &r, &f), port);
    }
    p2o_proto_leave(w, &r);
}

OnnxPort p2o_proto_port(ProtoWalk *w, PbReader r)
{
    OnnxPort port = { .name = "", .kind = "unknown", .rank = -1 };
    PbField  f;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            port.name = p2o_proto_text(w, &r, &f);
        else if (f.number == 2)
            read_type(w, p2o_proto_enter(w, &r, &f), &port);
    }
    p2o_proto_leave(w, &r);
    return port;
}
