/* First bytes decide between containers, and record names between the kinds of zip archive.  The
 * extension proves nothing: .pt, .pth and .bin are all of these.  Files that are not converted are
 * told apart all the same, because "weights without a program" helps and "bad file" does not. */
#include "front/sniff.h"

#include "base/num.h"
#include "base/vec.h"

#define EXPORT_IT \
    "save the model with torch.export.save(torch.export.export(model, args), \"m.pt2\")"

static const struct {
    DiagKind    kind;
    const char *text, *advice;          /* text NULL: converted, or reported when found */
} refusals[] = {
    [FILE_EMPTY] = { DIAG_BAD_FILE, "the file is empty", NULL },
    [FILE_TORCHSCRIPT] = {
        DIAG_WRONG_KIND, "this is a TorchScript archive (torch.jit.save), not converted yet",
        EXPORT_IT },
    [FILE_TORCHSCRIPT_LITE] = {
        DIAG_WRONG_KIND, "this is a TorchScript archive for mobile (.ptl), not converted",
        EXPORT_IT },
    [FILE_PACKAGE] = {
        DIAG_WRONG_KIND, "this is a torch.package archive: Python source, not a captured program",
        EXPORT_IT },
    [FILE_TORCH_SAVE] = {
        DIAG_WRONG_KIND, "this is a torch.save file: weights without a program", EXPORT_IT },
    [FILE_TORCH_SAVE_LEGACY] = {
        DIAG_WRONG_KIND,
        "this is a torch.save file of the form before PyTorch 1.6: weights without a program",
        EXPORT_IT },
    [FILE_TORCH_SAVE_TAR] = {
        DIAG_WRONG_KIND, "this is a torch.save file of 2016-17 (tar): weights without a program",
        EXPORT_IT },
    [FILE_FLATBUFFER] = {
        DIAG_WRONG_KIND, "this is a mobile module in flatbuffer form (PTMF), not converted",
        EXPORT_IT },
    [FILE_PREVIEW] = {
        DIAG_WRONG_KIND,
        "this is a container of a PyTorch preview release, which no released PyTorch reads",
        EXPORT_IT },
    [FILE_SAFETENSORS] = {
        DIAG_WRONG_KIND, "this is a safetensors file: weights without a program",
        "load it into the model in Python, then " EXPORT_IT },
    [FILE_ONNX] = {
        DIAG_WRONG_KIND, "this is an ONNX model already: there is nothing to convert",
        "to look at it use: pt2onnx inspect FILE" },
};

void p2o_sniff_refuse(Diags *d, FileKind k)
{
    if ((size_t)k >= COUNT_OF(refusals) || !refusals[k].text)
        return;
    if (refusals[k].advice)
        p2o_diag_advise(d, refusals[k].kind, 0, refusals[k].advice, "%s", refusals[k].text);
    else
        p2o_diag(d, refusals[k].kind, 0, "%s", refusals[k].text);
}

const char *p2o_sniff_text(FileKind k)
{
    return (size_t)k < COUNT_OF(refusals) && refusals[k].text ? refusals[k].text : "";
}

static bool has_record(const Zip *z, Str root, const char *name)
{
    return p2o_zip_find(z, str_of(p2o_printf(z->index.arena, "%.*s/%s", STR_ARG(root), name)));
}

static FileKind sniff_zip(Diags *d, const Zip *z)
{
    Str rest = { "", 0 }, root = { "", 0 };
    if (z->n)                           /* PyTorch's rule: the first entry names the root folder */
        root = p2o_str_cut(z->entries[0].name, '/', &rest);

    const char     *format = p2o_printf(z->index.arena, "%.*s/archive_format", STR_ARG(root));
    const ZipEntry *e = p2o_zip_find(z, str_of(format));
    if (e) {
        Str text;
        if (!p2o_zip_read(d, z, e, &text))
            return FILE_UNKNOWN;
        if (str_is(p2o_str_trim(text), "pt2"))
            return FILE_PT2;
    }
    if (p2o_zip_find(z, STR("serialized_exported_program.json")))
        return FILE_PT2_OLD;
    if (has_record(z, root, "bytecode.pkl"))
        return FILE_TORCHSCRIPT_LITE;
    /* model.json: PyTorch 1.0 and 1.1 */
    if (has_record(z, root, "constants.pkl") || has_record(z, root, "model.json"))
        return FILE_TORCHSCRIPT;
    if (has_record(z, root, ".data/extern_modules"))
        return FILE_PACKAGE;
    if (has_record(z, root, "data.pkl"))
        return FILE_TORCH_SAVE;
    p2o_diag(d, DIAG_BAD_FILE, 0, "not a saved PyTorch program: a zip archive of something else");
    return FILE_UNKNOWN;
}

/* Octal with leading spaces or zeros, ended by a space or NUL; false for the binary form, whose
 * members are larger than any that tells the kind. */
static bool read_octal(const uint8_t *p, size_t n, uint64_t *out)
{
    size_t i = 0;
    *out = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] && p[i] != ' '; i++) {
        if (p[i] < '0' || p[i] > '7')
            return false;
        *out = *out << 3 | (uint64_t)(p[i] - '0');
    }
    return true;
}

enum { TAR_BLOCK = 512 };

/* The sum of the header's bytes, its own field counted as spaces. */
static bool is_tar_header(const uint8_t *h)
{
    enum { SUM_AT = 148, SUM_BYTES = 8 };
    uint64_t want, sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : h[i];
    return h[0] && read_octal(h + SUM_AT, SUM_BYTES, &want) && want == sum;
}

/* torch.save of 2016-17 wrote sys_info, pickle, storages and tensors. */
static bool is_torch_tar(Source *s)
{
    enum { MOST_MEMBERS = 16 };
    static const char *const names[] = { "pickle", "storages", "tensors" };
    uint8_t                  h[TAR_BLOCK];
    unsigned                 seen = 0;
    uint64_t                 at = 0, size;

    for (int i = 0; i < MOST_MEMBERS && p2o_source_read(s, at, h, sizeof h); i++) {
        if (!is_tar_header(h) || !read_octal(h + 124, 12, &size))
            break;
        for (size_t k = 0; k < COUNT_OF(names); k++)
            if (!memcmp(h, names[k], strlen(names[k]) + 1))
                seen |= 1u << k;
        at += TAR_BLOCK + (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    }
    return seen == (1u << COUNT_OF(names)) - 1;
}

static bool read_varint(Source *s, uint64_t *at, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t c;
        if (!p2o_source_read(s, *at, &c, 1))
            return false;
        ++*at;
        *out |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80)
            return true;
    }
    return false;
}

/* A ModelProto as every writer orders it: ir_version first, then only fields it knows, each of its
 * wire type, as far as the graph. */
static bool is_onnx(Source *s)
{
    enum { VARINT = 0, BYTES = 2, GRAPH = 7, LAST_FIELD = 26, MOST_FIELDS = 4096, LAST_IR = 1000 };
    static const uint8_t wire[LAST_FIELD + 1] = {
        [2] = BYTES + 1, [3] = BYTES + 1, [4] = BYTES + 1, [5] = VARINT + 1, [6] = BYTES + 1,
        [GRAPH] = BYTES + 1, [8] = BYTES + 1, [14] = BYTES + 1, [20] = BYTES + 1,
        [25] = BYTES + 1, [26] = BYTES + 1,
    };                                  /* wire type + 1; 0: no such field */
    uint64_t at = 0, tag, v;

    if (!read_varint(s, &at, &tag) || tag != (1 << 3 | VARINT) || !read_varint(s, &at, &v) ||
        v == 0 || v > LAST_IR)
        return false;
    for (int i = 0; i < MOST_FIELDS; i++) {
        if (!read_varint(s, &at, &tag) || tag >> 3 > LAST_FIELD || !wire[tag >> 3] ||
            wire[tag >> 3] != (tag & 7) + 1 || !read_varint(s, &at, &v))
            return false;
        if (tag >> 3 == GRAPH)
            return true;
        if ((tag & 7) == BYTES && !add_u64(at, v, &at))
            return false;
    }
    return false;
}

/* A header of n bytes of JSON, its length first. */
static bool is_safetensors(Source *s)
{
    enum { LONGEST_HEADER = 100000000 };
    uint8_t  h[9];
    uint64_t n = 0, size = p2o_source_size(s);

    if (!p2o_source_read(s, 0, h, sizeof h) || h[8] != '{')
        return false;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | h[i];
    return n >= 2 && n <= LONGEST_HEADER && n <= size - 8;
}

static bool begins(Source *s, uint64_t at, Str with)
{
    char buf[32];
    return p2o_source_read(s, at, buf, with.n) && !memcmp(buf, with.p, with.n);
}

/* Downloads gone wrong are common enough to be told apart. */
static void report_unknown(Diags *d, Source *s)
{
    if (begins(s, 0, STR("version https://git-lfs")))
        p2o_diag_advise(d, DIAG_BAD_FILE, 0, "fetch the file itself with: git lfs pull",
                        "not a saved PyTorch program: a git-lfs pointer to one");
    else if (begins(s, 0, STR("<!DOCTYPE html")) || begins(s, 0, STR("<html")))
        p2o_diag(d, DIAG_BAD_FILE, 0, "not a saved PyTorch program: a web page");
    else
        p2o_diag(d, DIAG_BAD_FILE, 0, "not a saved PyTorch program");
}

FileKind p2o_sniff(Diags *d, Source *s, Zip **zip)
{
    static const char legacy[] = "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x2E";

    *zip = NULL;
    if (p2o_source_size(s) == 0)
        return FILE_EMPTY;
    if (begins(s, 0, STR("PK\3\4")) || begins(s, 0, STR("PK\5\6"))) {
        *zip = p2o_zip_open(d, s, 0, p2o_source_size(s));
        FileKind k = *zip ? sniff_zip(d, *zip) : FILE_UNKNOWN;
        if (k == FILE_UNKNOWN)
            *zip = NULL;
        return k;
    }
    if (begins(s, 0, STR(legacy)))
        return FILE_TORCH_SAVE_LEGACY;
    if (begins(s, 4, STR("PTMF")))
        return FILE_FLATBUFFER;
    if (is_torch_tar(s))
        return FILE_TORCH_SAVE_TAR;
    if (begins(s, 0, STR("PYTORCH1")))
        return FILE_PREVIEW;
    if (is_safetensors(s))
        return FILE_SAFETENSORS;
    if (is_onnx(s))
        return FILE_ONNX;
    report_unknown(d, s);
    return FILE_UNKNOWN;
}
