/* A pickled tensor is a call of torch._utils._rebuild_tensor_v2 (or of its kin) on a storage, and a
 * storage is a persistent id ("storage", class, key, device, numel) whose bytes are the record
 * `key`.  Only the names in this file mean anything; every other global is refused by name. */
#include "front/torch_save.h"

#include "base/num.h"
#include "base/vec.h"
#include "ir/shape.h"

/* Rebuild functions wrap each other (a parameter around a tensor); honest files nest two deep. */
enum { MAX_WRAPPERS = 8 };

static const struct {
    const char *name;
    DType       dtype;
} storage_classes[] = {
    { "FloatStorage", DT_F32 },         { "DoubleStorage", DT_F64 },
    { "HalfStorage", DT_F16 },          { "BFloat16Storage", DT_BF16 },
    { "LongStorage", DT_I64 },          { "IntStorage", DT_I32 },
    { "ShortStorage", DT_I16 },         { "CharStorage", DT_I8 },
    { "ByteStorage", DT_U8 },           { "BoolStorage", DT_BOOL },
    { "ComplexFloatStorage", DT_C64 },  { "ComplexDoubleStorage", DT_C128 },
    { "UntypedStorage", DT_U8 },        /* numel counts bytes; the tensor names its dtype */
    /* TorchScript alone has classes for these. */
    { "UInt16Storage", DT_U16 },        { "UInt32Storage", DT_U32 },
    { "UInt64Storage", DT_U64 },        { "ComplexHalfStorage", DT_C32 },
    { "Float8_e5m2Storage", DT_F8E5M2 },         { "Float8_e4m3fnStorage", DT_F8E4M3FN },
    { "Float8_e5m2fnuzStorage", DT_F8E5M2FNUZ }, { "Float8_e4m3fnuzStorage", DT_F8E4M3FNUZ },
    { "Float8_e8m0fnuStorage", DT_F8E8M0 },
};

const char *p2o_torch_save_root(const Zip *z)
{
    if (!z->n)
        return "";
    Str name = z->entries[0].name, rest;
    Str root = p2o_str_cut(name, '/', &rest);
    if (root.n == name.n)
        return "";
    return p2o_str_dup(z->index.arena, (Str){ name.p, root.n + 1 });
}

bool p2o_torch_save_byteorder(Diags *d, const Zip *z, const char *root, bool *big_endian)
{
    const char     *name = p2o_printf(p2o_diags_arena(d), "%sbyteorder", root);
    const ZipEntry *e = p2o_zip_find(z, str_of(name));
    Str             text = STR("little");

    *big_endian = false;
    if (e && !p2o_zip_read(d, z, e, &text))
        return false;
    text = p2o_str_trim(text);
    *big_endian = str_is(text, "big");
    if (*big_endian || str_is(text, "little"))
        return true;
    p2o_diag(d, DIAG_BAD_FILE, 0, "byteorder is neither little nor big");
    return false;
}

Storage *p2o_torch_save_storage(Diags *d, const Zip *z, const ZipEntry *e, bool big_endian)
{
    Arena   *a = p2o_diags_arena(d);
    Storage *s = NEW(a, Storage);
    *s = (Storage){ .source = z->source, .offset = e->offset, .nbytes = e->usize,
                    .big_endian = big_endian, .crc = e->deflated ? 0 : e->crc };
    if (e->deflated) {                          /* inflating checks it */
        Str bytes;
        if (!p2o_zip_read(d, z, e, &bytes))
            return NULL;
        s->source = p2o_source_memory(a, bytes.p, bytes.n);
        s->offset = 0;
    }
    return s;
}

TorchSave *p2o_torch_save_open(Diags *d, Source *s, uint64_t offset, uint64_t size,
                               const char *what)
{
    Arena     *a = p2o_diags_arena(d);
    TorchSave *f = NEW(a, TorchSave);
    Zip       *z = p2o_zip_open(d, s, offset, size);
    if (!z)
        return NULL;
    const char     *root = p2o_torch_save_root(z);
    const ZipEntry *e = p2o_zip_find(z, str_of(p2o_printf(a, "%sdata.pkl", root)));
    Str             bytes;

    if (!e) {
        p2o_diag(d, DIAG_BAD_FILE, 0, "%s has no data.pkl", what);
        return NULL;
    }
    f->tensors = (TensorFolder){ .diags = d, .zip = z, .prefix = p2o_printf(a, "%sdata/", root) };
    f->tensors.storages.arena = a;
    if (!p2o_torch_save_byteorder(d, z, root, &f->tensors.big_endian) ||
        !p2o_zip_read(d, z, e, &bytes))
        return NULL;
    f->value = p2o_pickle_parse(d, bytes, what);
    return f->value ? f : NULL;
}

static const Tensor *refuse_tensor(TensorFolder *f, const char *name, const char *why)
{
    p2o_diag(f->diags, DIAG_BAD_FILE, 0, "tensor %s: %s", name, why);
    return NULL;
}

static DType storage_dtype(const Pickle *class)
{
    if (class->kind != PK_GLOBAL)
        return DT_NONE;
    if (!str_is(class->module, "torch") && !str_is(class->module, "torch.storage"))
        return DT_NONE;
    for (size_t i = 0; i < COUNT_OF(storage_classes); i++)
        if (str_is(class->name, storage_classes[i].name))
            return storage_classes[i].dtype;
    return DT_NONE;
}

static const Storage *load_storage(TensorFolder *f, Str key, uint64_t nbytes, const char *name)
{
    Storage *s = p2o_map_get(&f->storages, key);
    if (!s) {
        Arena          *a = p2o_diags_arena(f->diags);
        const char     *record = p2o_printf(a, "%s%.*s", f->prefix, STR_ARG(key));
        const ZipEntry *e = p2o_zip_find(f->zip, str_of(record));
        if (!e) {
            refuse_tensor(f, name, "its record is missing");
            return NULL;
        }
        s = p2o_torch_save_storage(f->diags, f->zip, e, f->big_endian);
        if (!s)
            return NULL;
        /* Saved from fake tensors: the shape without the bytes. */
        if (e->usize == 0 && nbytes > 0)
            *s = (Storage){ .nbytes = nbytes };
        map_put(&f->storages, key, s);
    }
    if (s->nbytes == nbytes)
        return s;
    refuse_tensor(f, name, p2o_printf(p2o_diags_arena(f->diags),
                                      "its record has %llu bytes, the pickle says %llu",
                                      (unsigned long long)s->nbytes, (unsigned long long)nbytes));
    return NULL;
}

/* ("storage", class, key, device, numel); sets *dtype unless the tensor named one. */
static const Storage *read_storage(TensorFolder *f, const Pickle *p, DType *dtype, const char *name)
{
    const Pickle *id = p && p->kind == PK_PERSISTENT ? p->args : NULL;
    const Pickle *tag = p2o_pickle_item(id, 0), *class = p2o_pickle_item(id, 1);
    const Pickle *key = p2o_pickle_item(id, 2), *numel = p2o_pickle_item(id, 4);
    uint64_t      nbytes;

    if (!numel || tag->kind != PK_STR || !str_is(tag->s, "storage") || key->kind != PK_STR ||
        numel->kind != PK_INT || numel->i < 0 || !key->s.n || memchr(key->s.p, '/', key->s.n)) {
        refuse_tensor(f, name, "its storage is not one");
        return NULL;
    }
    DType t = storage_dtype(class);
    if (t == DT_NONE) {
        bool global = class->kind == PK_GLOBAL;
        p2o_diag(f->diags, DIAG_UNSUPPORTED, 0, "tensor %s: storage class %.*s is not supported",
                 name,
                 STR_ARG(global ? class->name : STR("?")));
        return NULL;
    }
    if (!mul_u64((uint64_t)numel->i, p2o_dtype_bytes(t), &nbytes)) {
        refuse_tensor(f, name, "its storage is too large");
        return NULL;
    }
    if (*dtype == DT_NONE)
        *dtype = t;
    return load_storage(f, key->s, nbytes, name);
}

static const int64_t *read_ints(TensorFolder *f, const Pickle *p)
{
    int64_t *v = NEW_N(p2o_diags_arena(f->diags), int64_t, p->n);
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i]->kind != PK_INT)
            return NULL;
        v[i] = p->items[i]->i;
    }
    return v;
}

/* {"conj": true} or {"neg": true}: the bytes are not the values. */
static bool is_lazy_view(const Pickle *attrs)
{
    if (attrs && attrs->kind == PK_CALL)                /* TorchScript's restore_type_tag */
        attrs = p2o_pickle_item(attrs->args, 0);
    const Pickle *conj = p2o_pickle_get(attrs, "conj"), *neg = p2o_pickle_get(attrs, "neg");
    return (conj && conj->kind == PK_BOOL && conj->b) || (neg && neg->kind == PK_BOOL && neg->b);
}

/* (storage, offset, sizes, strides, ...) */
static const Tensor *strided_tensor(TensorFolder *f, const Pickle *args, DType dtype,
                                    const char *name)
{
    const Pickle *offset = p2o_pickle_item(args, 1);
    const Pickle *sizes = p2o_pickle_item(args, 2), *strides = p2o_pickle_item(args, 3);
    const char   *why;

    if (!strides || offset->kind != PK_INT || offset->i < 0 || sizes->kind != PK_TUPLE ||
        strides->kind != PK_TUPLE || sizes->n != strides->n || sizes->n > MAX_RANK)
        return refuse_tensor(f, name, "offset, sizes or strides are malformed");
    Tensor *x = NEW(p2o_diags_arena(f->diags), Tensor);
    *x = (Tensor){ .dtype = dtype, .rank = (int)sizes->n, .offset = (uint64_t)offset->i,
                   .sizes = read_ints(f, sizes), .strides = read_ints(f, strides) };
    if (!x->sizes || !x->strides)
        return refuse_tensor(f, name, "a size or stride is no integer");
    x->storage = read_storage(f, p2o_pickle_item(args, 0), &x->dtype, name);
    if (!x->storage)
        return NULL;
    return p2o_tensor_check(x, &why) ? x : refuse_tensor(f, name, why);
}

static bool is_plain_class(const Pickle *p)
{
    return p2o_pickle_is_global(p, "torch", "Tensor") ||
           p2o_pickle_is_global(p, "torch.nn.parameter", "Parameter") ||
           p2o_pickle_is_global(p, "torch.nn.parameter", "Buffer");
}

static bool is_rebuild(const Pickle *fn, const char *name)
{
    return p2o_pickle_is_global(fn, "torch._utils", name);
}

static const Tensor *unknown_rebuild(TensorFolder *f, const Pickle *fn, const char *name)
{
    if (!fn || fn->kind != PK_GLOBAL)
        return refuse_tensor(f, name, "the value is no tensor");
    p2o_diag(f->diags, DIAG_UNSUPPORTED, 0, "tensor %s: %.*s.%.*s is not supported", name,
             STR_ARG(fn->module),
             STR_ARG(fn->name));
    return NULL;
}

static const Tensor *rebuild_tensor(TensorFolder *f, const Pickle *fn, const Pickle *args,
                                    const char *name)
{
    bool          v2 = is_rebuild(fn, "_rebuild_tensor_v2");
    bool          v3 = is_rebuild(fn, "_rebuild_tensor_v3");
    const Pickle *dtype = p2o_pickle_item(args, 6);
    DType         t = DT_NONE;

    if (!v2 && !v3 && !is_rebuild(fn, "_rebuild_tensor"))
        return unknown_rebuild(f, fn, name);
    if ((v2 || v3) && is_lazy_view(p2o_pickle_item(args, v2 ? 6 : 7))) {
        p2o_diag(f->diags, DIAG_UNSUPPORTED, 0,
                 "tensor %s is saved as a lazy conjugate or negative", name);
        return NULL;
    }
    if (v3) {
        if (dtype && dtype->kind == PK_GLOBAL && str_is(dtype->module, "torch"))
            t = p2o_dtype_from_torch(dtype->name);
        if (t == DT_NONE || t == DT_STR) {
            p2o_diag(f->diags, DIAG_UNSUPPORTED, 0, "tensor %s: dtype is not supported", name);
            return NULL;
        }
    }
    return strided_tensor(f, args, t, name);
}

const Tensor *p2o_torch_save_tensor(TensorFolder *f, const Pickle *p, const char *name)
{
    const Pickle *fn = p && p->kind == PK_CALL ? p->callee : NULL, *args = fn ? p->args : NULL;

    for (int i = 0; i < MAX_WRAPPERS; i++) {
        if (is_rebuild(fn, "_rebuild_parameter") ||
            is_rebuild(fn, "_rebuild_parameter_with_state")) {
            const Pickle *inner = p2o_pickle_item(args, 0);
            fn = inner && inner->kind == PK_CALL ? inner->callee : NULL;
            args = fn ? inner->args : NULL;
        } else if (p2o_pickle_is_global(fn, "torch._tensor", "_rebuild_from_type_v2") ||
                   p2o_pickle_is_global(fn, "torch.tensor", "_rebuild_from_type_v2")) {
            if (!is_plain_class(p2o_pickle_item(args, 1)))
                return unknown_rebuild(f, p2o_pickle_item(args, 1), name);
            fn = p2o_pickle_item(args, 0);
            args = p2o_pickle_item(args, 2);
        } else {
            return rebuild_tensor(f, fn, args, name);
        }
    }
    return refuse_tensor(f, name, "wrapped too many times");
}
