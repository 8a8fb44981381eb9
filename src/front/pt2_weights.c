/* Where a .pt2 keeps its tensors: raw storages beside a JSON list (2.9 and later), or one nested
 * torch.save (before).  Entries are kept unread until the program asks for one by name, so that
 * what it does not use is never judged.  Entries that name one payload share one Storage: that is
 * how tied weights and views of each other are known. */
#include "front/pt2_parts.h"
#include "front/torch_save.h"

typedef struct WeightEntry {
    const Json    *meta;                /* a PayloadMeta, with `dir`; or else */
    const char    *dir;
    const Pickle  *value;               /* a pickled tensor, with `folder`; or else */
    TensorFolder  *folder;
    const Tensor  *given;               /* the caller's */
} WeightEntry;

static WeightEntry *add_entry(Pt2 *r, WeightSet *w, Str fqn)
{
    WeightEntry *e = NEW(r->arena, WeightEntry);
    w->entries.arena = r->arena;
    w->storages.arena = r->arena;
    map_put(&w->entries, fqn, e);
    return e;
}

void p2o_pt2_weights_config(Pt2 *r, WeightSet *w, const ZipEntry *e, const char *dir)
{
    const char *what = p2o_str_dup(r->arena, e->name);
    Str         text;
    if (!p2o_zip_read(r->diags, r->zip, e, &text))
        return;
    const Json *j = p2o_json_parse(r->diags, text, what);
    const Json *config = p2o_pt2_get(j, "config");
    if (!j)
        return;
    if (!config || config->kind != JSON_OBJ) {
        p2o_diag(r->diags, DIAG_BAD_FILE, 0, "%s has no object \"config\"", what);
        return;
    }
    for (uint32_t i = 0; i < config->n; i++) {
        WeightEntry *x = add_entry(r, w, config->members[i].key);
        x->meta = &config->members[i].value;
        x->dir = dir;
    }
}

static TorchSave *open_nested_save(Pt2 *r, const ZipEntry *e, const char *what)
{
    if (!e->deflated)
        return p2o_torch_save_open(r->diags, r->zip->source, e->offset, e->usize, what);
    Str bytes;
    if (!p2o_zip_read(r->diags, r->zip, e, &bytes))
        return NULL;
    Source *s = p2o_source_memory(r->arena, bytes.p, bytes.n);
    return p2o_torch_save_open(r->diags, s, 0, bytes.n, what);
}

void p2o_pt2_weights_saved(Pt2 *r, WeightSet *w, const ZipEntry *e)
{
    const char *what = p2o_str_dup(r->arena, e->name);
    if (e->usize == 0)                                  /* written for an empty dict */
        return;
    TorchSave *f = open_nested_save(r, e, what);
    if (!f)
        return;
    if (f->value->kind != PK_DICT) {
        p2o_diag(r->diags, DIAG_BAD_FILE, 0, "%s does not hold a dict", what);
        return;
    }
    for (size_t i = 0; i < f->value->n; i += 2) {
        const Pickle *key = f->value->items[i];
        if (key->kind != PK_STR)
            continue;
        WeightEntry *x = add_entry(r, w, key->s);
        x->value = f->value->items[i + 1];
        x->folder = &f->tensors;
    }
}

void p2o_pt2_weights_given(Pt2 *r, WeightSet *w, const char *fqn, const Tensor *t)
{
    add_entry(r, w, str_of(fqn))->given = t;
}

static const Tensor *bad_weight(Pt2 *r, const char *fqn, const char *why)
{
    p2o_diag(r->diags, DIAG_BAD_FILE, 0, "weight %s: %s", fqn, why);
    return NULL;
}

/* {"as_int": n}, or the bare n of 2.1. */
static bool plain_int(const Json *j, int64_t *v)
{
    if (j && j->kind == JSON_OBJ)
        j = p2o_pt2_get(j, "as_int");
    if (!j || j->kind != JSON_INT)
        return false;
    *v = j->i;
    return true;
}

static const int64_t *plain_ints(Pt2 *r, const Json *list)
{
    int64_t *v = NEW_N(r->arena, int64_t, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        if (!plain_int(&list->items[i], &v[i]))
            return NULL;
    return v;
}

static const Storage *payload_storage(Pt2 *r, WeightSet *w, const WeightEntry *x, const char *fqn)
{
    const char *path = p2o_pt2_name(r, 0, p2o_pt2_get(x->meta, "path_name"), "path_name");
    if (!path)
        return NULL;
    if (strchr(path, '/')) {
        bad_weight(r, fqn, "path_name leaves its folder");
        return NULL;
    }
    const char     *name = p2o_printf(r->arena, "%s%s", x->dir, path);
    const ZipEntry *e = p2o_zip_find(r->zip, str_of(name));
    if (!e) {
        bad_weight(r, fqn, p2o_printf(r->arena, "the archive has no %s", name));
        return NULL;
    }
    /* Fake tensors all name one empty payload, and are no aliases for it. */
    if (e->usize == 0)
        return NEW(r->arena, Storage);
    void **slot = p2o_map_slot(&w->storages, str_of(name));
    if (!*slot)
        *slot = p2o_torch_save_storage(r->diags, r->zip, e, r->big_endian);
    return *slot;
}

static const Tensor *configured_weight(Pt2 *r, WeightSet *w, const WeightEntry *x, const char *fqn)
{
    const Json *pickled = p2o_pt2_get(x->meta, "use_pickle");
    const Json *meta = p2o_pt2_get(x->meta, "tensor_meta");
    const Json *sizes = p2o_pt2_get(meta, "sizes"), *strides = p2o_pt2_get(meta, "strides");
    const Json *dtype = p2o_pt2_get(meta, "dtype"), *layout = p2o_pt2_get(meta, "layout");
    int64_t     offset = 0;
    const char *why;

    if (pickled && pickled->kind == JSON_BOOL && pickled->b) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "weight %s is a pickled tensor subclass", fqn);
        return NULL;
    }
    if (!sizes || sizes->kind != JSON_LIST || !strides || strides->kind != JSON_LIST ||
        sizes->n != strides->n || sizes->n > MAX_RANK ||
        !plain_int(p2o_pt2_get(meta, "storage_offset"), &offset) || offset < 0)
        return bad_weight(r, fqn, "sizes, strides or offset are malformed");
    if (layout && (layout->kind != JSON_INT || layout->i != 7)) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "weight %s is sparse", fqn);
        return NULL;
    }
    Tensor *t = NEW(r->arena, Tensor);
    *t = (Tensor){ .rank = (int)sizes->n, .sizes = plain_ints(r, sizes),
                   .strides = plain_ints(r, strides), .offset = (uint64_t)offset };
    if (dtype && dtype->kind == JSON_INT && dtype->i > 0 && dtype->i < 1000)
        t->dtype = p2o_dtype_from_serde((long)dtype->i);
    if (t->dtype == DT_NONE || !t->sizes || !t->strides)
        return bad_weight(r, fqn, "a size or stride is no integer, or the dtype is unknown");
    t->storage = payload_storage(r, w, x, fqn);
    if (!t->storage)
        return NULL;
    return p2o_tensor_check(t, &why) ? t : bad_weight(r, fqn, why);
}

bool p2o_pt2_weight_is_unreal(const WeightSet *w, const char *fqn)
{
    const WeightEntry *x = p2o_map_get(&w->entries, str_of(fqn));
    const Json        *meta = x && x->meta ? p2o_pt2_get(x->meta, "tensor_meta") : NULL;
    const Json        *sizes = p2o_pt2_get(meta, "sizes");
    for (uint32_t i = 0; sizes && sizes->kind == JSON_LIST && i < sizes->n; i++)
        if (p2o_pt2_get(&sizes->items[i], "as_expr"))
            return true;
    return !x;
}

bool p2o_pt2_weights_have(const WeightSet *w, const char *fqn)
{
    return p2o_map_get(&w->entries, str_of(fqn)) != NULL;
}

const Tensor *p2o_pt2_weight(Pt2 *r, WeightSet *w, const char *fqn)
{
    const WeightEntry *x = p2o_map_get(&w->entries, str_of(fqn));
    if (!x)
        return bad_weight(
            r, fqn, r->zip ? "the file has none by that name" : "none was given by that name");
    if (x->given)
        return x->given;
    if (x->meta)
        return configured_weight(r, w, x, fqn);
    return p2o_torch_save_tensor(x->folder, x->value, fqn);
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool base64_bytes(Arena *a, Str text, Str *out)
{
    while (text.n && text.p[text.n - 1] == '=')
        text.n--;
    unsigned char *p = p2o_alloc(a, text.n / 4 * 3 + 3);
    uint32_t       bits = 0;
    size_t         n = 0;
    for (size_t i = 0; i < text.n; i++) {
        int v = base64_digit(text.p[i]);
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4)
            p[n++] = (unsigned char)(bits >> (6 - i % 4 * 2));
    }
    *out = (Str){ (const char *)p, n };
    return true;
}

const Tensor *p2o_pt2_embedded(Pt2 *r, const Json *base64, const char *name)
{
    Str bytes;
    if (base64->kind != JSON_STR || !base64_bytes(r->arena, base64->s, &bytes))
        return bad_weight(r, name, "not base64");
    Source    *s = p2o_source_memory(r->arena, bytes.p, bytes.n);
    TorchSave *f = p2o_torch_save_open(r->diags, s, 0, bytes.n, name);
    return f ? p2o_torch_save_tensor(&f->tensors, f->value, name) : NULL;
}
