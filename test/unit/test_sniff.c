/* front/sniff: the smallest bytes of each kind of file, near misses, and what is said of each. */
#include "base/vec.h"
#include "check.h"
#include "front/sniff.h"

static Arena *arena;
static Diags *diags;
static Zip   *opened;

static void put_little(Buf *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++, v >>= 8)
        p2o_put(b, &(uint8_t){ (uint8_t)v }, 1);
}

/* Stored records: name, contents, name, contents, ..., NULL. */
static Str zip_of(const char *const *parts)
{
    Buf    b = { .arena = arena }, dir = { .arena = arena };
    size_t n = 0;
    for (; *parts; parts += 2, n++) {
        size_t nname = strlen(parts[0]), size = strlen(parts[1]), at = b.n;
        p2o_put(&b, "PK\3\4\0\0\0\x08\0\0\0\0\0\0", 14);
        put_little(&b, 0, 12);
        put_little(&b, nname, 4);
        p2o_puts(&b, parts[0]);
        p2o_puts(&b, parts[1]);
        p2o_put(&dir, "PK\1\2\0\0\0\0\0\x08\0\0\0\0\0\0", 16);
        put_little(&dir, 0, 4);
        put_little(&dir, size, 4);
        put_little(&dir, size, 4);
        put_little(&dir, nname, 4);
        put_little(&dir, 0, 10);
        put_little(&dir, at, 4);
        p2o_puts(&dir, parts[0]);
    }
    size_t at = b.n;
    p2o_put(&b, dir.at, dir.n);
    p2o_put(&b, "PK\5\6\0\0\0\0", 8);
    put_little(&b, n, 2);
    put_little(&b, n, 2);
    put_little(&b, dir.n, 4);
    put_little(&b, at, 4);
    put_little(&b, 0, 2);
    return buf_str(&b);
}

#define ZIP(...) zip_of((const char *const[]){ __VA_ARGS__, NULL })

static FileKind sniff(Str s)
{
    char *copy = p2o_alloc(arena, s.n);
    if (s.n)
        memcpy(copy, s.p, s.n);
    diags = p2o_diags_new(arena, NULL, NULL);
    FileKind k = p2o_sniff(diags, p2o_source_memory(arena, copy, s.n), &opened);
    CHECK((k == FILE_UNKNOWN) == (p2o_diags_count(diags) == 1));
    return k;
}

static bool unknown_because(Str s, const char *why)
{
    return sniff(s) == FILE_UNKNOWN && !opened && strstr(p2o_diags_at(diags, 0)->text, why) &&
           p2o_diags_at(diags, 0)->kind == DIAG_BAD_FILE;
}

static void test_zip_kinds(void)
{
    CHECK(sniff(ZIP("m/archive_format", "pt2", "m/models/model.json", "{}")) == FILE_PT2);
    CHECK(opened && opened->n == 2);
    CHECK(sniff(ZIP("m/data/weights/weight_0", "x", "m/archive_format", "pt2\n")) == FILE_PT2);
    CHECK(sniff(ZIP("m.n.pt2/.data/version", "6", "m.n.pt2/archive_format", "pt2")) == FILE_PT2);
    CHECK(sniff(ZIP("version", "5.2", "serialized_exported_program.json", "{}")) == FILE_PT2_OLD);
    CHECK(opened != NULL);
    CHECK(sniff(ZIP("m/data.pkl", "", "m/constants.pkl", "")) == FILE_TORCHSCRIPT);
    CHECK(sniff(ZIP("m/version", "1", "m/model.json", "{}")) == FILE_TORCHSCRIPT);
    CHECK(sniff(ZIP("m/data.pkl", "", "m/constants.pkl", "", "m/bytecode.pkl", "")) ==
          FILE_TORCHSCRIPT_LITE);
    CHECK(sniff(ZIP("m/.data/extern_modules", "", "m/.data/version", "6")) == FILE_PACKAGE);
    CHECK(sniff(ZIP("m/data.pkl", "", "m/version", "3")) == FILE_TORCH_SAVE);
    CHECK(opened != NULL);

    CHECK(unknown_because(ZIP("m/arr_0.npy", "x"), "a zip archive of something else"));
    CHECK(unknown_because(ZIP("data.pkl", "x"), "something else"));             /* no root */
    CHECK(unknown_because(ZIP("m/x", "", "n/data.pkl", ""), "something else")); /* another root */
    CHECK(unknown_because(ZIP("m/serialized_exported_program.json", "{}"), "something else"));
    CHECK(unknown_because(ZIP("m/archive_format", "pt3"), "something else"));
    CHECK(unknown_because(zip_of((const char *const[]){ NULL }), "something else"));
}

static void test_broken_zip(void)
{
    Str s = ZIP("m/archive_format", "pt2", "m/models/model.json", "{}");
    for (size_t n = 4; n < s.n; n++)
        CHECK(unknown_because((Str){ s.p, n }, "truncated"));
    CHECK(unknown_because(STR("PK\3"), "not a saved PyTorch program"));
}

static void test_magic(void)
{
    Str legacy = STR("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x2E\x80\x02M");
    CHECK(sniff(legacy) == FILE_TORCH_SAVE_LEGACY && !opened);
    CHECK(sniff((Str){ legacy.p, 15 }) == FILE_TORCH_SAVE_LEGACY);
    CHECK(unknown_because((Str){ legacy.p, 14 }, "not a saved PyTorch program"));
    CHECK(unknown_because(STR("\x80\x02}q\0."), "not a saved PyTorch program"));
    CHECK(sniff(STR("\x1C\0\0\0PTMF\0\0\0\0")) == FILE_FLATBUFFER);
    CHECK(sniff(STR("\x1C\0\0\0PTMF")) == FILE_FLATBUFFER);
    CHECK(unknown_because(STR("\x1C\0\0\0PTM"), "not a saved"));
    CHECK(sniff(STR("PYTORCH1....")) == FILE_PREVIEW && sniff(STR("PYTORCH1")) == FILE_PREVIEW);
    CHECK(sniff(STR("")) == FILE_EMPTY);
    CHECK(unknown_because(STR("\0"), "not a saved"));
    CHECK(unknown_because(STR("import torch"), "not a saved"));
    CHECK(unknown_because(STR("version https://git-lfs.github.com/spec/v1\noid"), "git-lfs"));
    CHECK(p2o_diags_at(diags, 0)->advice != NULL);
    CHECK(unknown_because(STR("<!DOCTYPE html><title>404"), "a web page"));
}

static void test_safetensors(void)
{
    Buf b = { .arena = arena };
    put_little(&b, 8, 8);
    p2o_puts(&b, "{}      data");
    CHECK(sniff(buf_str(&b)) == FILE_SAFETENSORS);
    CHECK(sniff((Str){ b.at, 16 }) == FILE_SAFETENSORS);
    CHECK(unknown_because((Str){ b.at, 15 }, "not a saved"));       /* header past the end */
    b.at[8] = '[';
    CHECK(unknown_because(buf_str(&b), "not a saved"));
    b.at[8] = '{';
    b.at[7] = 1;
    CHECK(unknown_because(buf_str(&b), "not a saved"));
    b.at[7] = 0;
    b.at[0] = 1;
    CHECK(unknown_because(buf_str(&b), "not a saved"));
}

static void put_member(Buf *b, const char *name, char type, const char *contents)
{
    uint8_t  h[512] = { 0 };
    unsigned sum = 0;
    strcpy((char *)h, name);
    strcpy((char *)h + 100, "0000644");
    snprintf((char *)h + 124, 12, "%08o", (unsigned)strlen(contents));
    h[156] = (uint8_t)type;
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum);
    p2o_put(b, h, sizeof h);
    p2o_puts(b, contents);
    while (b->n % 512)
        p2o_put(b, "", 1);
}

static void test_tar(void)
{
    Buf b = { .arena = arena };
    put_member(&b, "./PaxHeaders/sys_info", 'x', "30 mtime=1480000000.123456789\n");
    put_member(&b, "sys_info", '0', "x");
    put_member(&b, "pickle", '0', "\x80\x02}.");
    put_member(&b, "storages", '0', "");
    size_t before = b.n;
    put_member(&b, "tensors", '0', "yyy");
    CHECK(sniff(buf_str(&b)) == FILE_TORCH_SAVE_TAR);
    CHECK(unknown_because((Str){ b.at, before }, "not a saved"));
    CHECK(unknown_because((Str){ b.at, before + 511 }, "not a saved"));
    b.at[before + 100]++;                               /* its checksum is now wrong */
    CHECK(unknown_because(buf_str(&b), "not a saved"));

    Buf other = { .arena = arena };
    put_member(&other, "model_weights.ckpt", '0', "x");
    CHECK(unknown_because(buf_str(&other), "not a saved"));
    memset(other.at + 124, '7', 12);                    /* a member far past the end */
    CHECK(unknown_because(buf_str(&other), "not a saved"));
}

static void test_onnx(void)
{
    CHECK(sniff(STR("\x08\x08\x12\x07pytorch\x1A\x03" "2.1:\x02\x12\0B\0")) == FILE_ONNX);
    CHECK(sniff(STR("\x08\x0A:\0")) == FILE_ONNX);
    CHECK(sniff(STR("\x08\x0A\x28\x80\x01\x32\0\x42\0\x72\0\xCA\x01\0:\x05")) == FILE_ONNX);
    CHECK(unknown_because(STR("\x08"), "not a saved") && unknown_because(STR("\x08\x08"), "not a"));
    CHECK(unknown_because(STR("\x08\0:\0"), "not a saved"));            /* ir_version 0 */
    CHECK(unknown_because(STR("\x08\x08\x48\x01:\0"), "not a saved"));  /* field 9 */
    CHECK(unknown_because(STR("\x08\x08\x10\x01:\0"), "not a saved"));  /* field 2, wire type 0 */
    CHECK(unknown_because(STR("\x08\x08\x12\x7F:\0"), "not a saved"));  /* runs past the end */
    CHECK(unknown_because(STR("\x08\x08\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01:\0"), "not a"));
    CHECK(unknown_because(STR("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF:\0"), "not a"));
}

static bool refusal_says(FileKind k, DiagKind kind, const char *what, const char *advice)
{
    diags = p2o_diags_new(arena, NULL, NULL);
    p2o_sniff_refuse(diags, k);
    if (p2o_diags_count(diags) != 1)
        return false;
    const Diag *d = p2o_diags_at(diags, 0);
    return d->kind == kind && strstr(d->text, what) && !strchr(d->text, '\n') &&
           (advice ? d->advice && strstr(d->advice, advice) : !d->advice);
}

static void test_refusals(void)
{
    const char *export = "torch.export.save(torch.export.export(model, args), \"m.pt2\")";
    CHECK(refusal_says(FILE_TORCH_SAVE, DIAG_WRONG_KIND,
                       "this is a torch.save file: weights without a program", export));
    CHECK(refusal_says(FILE_TORCH_SAVE_LEGACY, DIAG_WRONG_KIND, "torch.save", export));
    CHECK(refusal_says(FILE_TORCH_SAVE_TAR, DIAG_WRONG_KIND, "torch.save", export));
    CHECK(refusal_says(FILE_TORCHSCRIPT, DIAG_WRONG_KIND, "TorchScript archive", export));
    CHECK(refusal_says(FILE_TORCHSCRIPT_LITE, DIAG_WRONG_KIND, "mobile", export));
    CHECK(refusal_says(FILE_PACKAGE, DIAG_WRONG_KIND, "torch.package", export));
    CHECK(refusal_says(FILE_FLATBUFFER, DIAG_WRONG_KIND, "flatbuffer", export));
    CHECK(refusal_says(FILE_PREVIEW, DIAG_WRONG_KIND, "preview", export));
    CHECK(refusal_says(FILE_SAFETENSORS, DIAG_WRONG_KIND, "safetensors", export));
    CHECK(refusal_says(FILE_ONNX, DIAG_WRONG_KIND, "ONNX", "inspect"));
    CHECK(refusal_says(FILE_EMPTY, DIAG_BAD_FILE, "empty", NULL));

    static const FileKind silent[] = { FILE_PT2, FILE_PT2_OLD, FILE_UNKNOWN };
    for (size_t i = 0; i < COUNT_OF(silent); i++) {
        diags = p2o_diags_new(arena, NULL, NULL);
        p2o_sniff_refuse(diags, silent[i]);
        CHECK(p2o_diags_count(diags) == 0);
    }
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    test_zip_kinds();
    test_broken_zip();
    test_magic();
    test_safetensors();
    test_tar();
    test_onnx();
    test_refusals();
    p2o_arena_free(arena);
    return check_report();
}
