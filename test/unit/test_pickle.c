/* format/pickle: pickles written here opcode by opcode, good ones and hostile ones. */
#include "format/pickle.h"

#include "check.h"

static Arena *arena;
static Diags *diags;

/* What the last parse reported; "" for nothing. */
static const char *said;

static Pickle *parse(Str bytes)
{
    /* An exact copy, so that reading past the end is seen. */
    char *copy = p2o_alloc(arena, bytes.n);
    if (bytes.n)
        memcpy(copy, bytes.p, bytes.n);
    diags = p2o_diags_new(arena, NULL, NULL);
    Pickle *p = p2o_pickle_parse(diags, (Str){ copy, bytes.n }, "data.pkl");
    said = p2o_diags_count(diags) ? p2o_diags_at(diags, 0)->text : "";
    return p;
}

#define PARSE(literal) parse(STR(literal))

static bool fails(Str bytes, const char *why)
{
    Pickle *p = parse(bytes);
    if (!p && strstr(said, why) && p2o_diags_count(diags) == 1)
        return true;
    printf("expected '%s', said '%s'\n", why, said);
    return false;
}

#define FAILS(literal, why) fails(STR(literal), why)

static int64_t int_of(Pickle *p) { return p && p->kind == PK_INT ? p->i : INT64_MIN + 1; }

static void numbers(void)
{
    CHECK(int_of(PARSE("K\x07.")) == 7);
    CHECK(int_of(PARSE("K\xFF.")) == 255);
    CHECK(int_of(PARSE("M\x34\x12.")) == 0x1234);
    CHECK(int_of(PARSE("J\xFF\xFF\xFF\xFF.")) == -1);
    CHECK(int_of(PARSE("J\x00\x00\x00\x80.")) == INT32_MIN);
    CHECK(int_of(PARSE("J\xFF\xFF\xFF\x7F.")) == INT32_MAX);
    CHECK(int_of(PARSE("\x8a\x00.")) == 0);
    CHECK(int_of(PARSE("\x8a\x01\x80.")) == -128);
    CHECK(int_of(PARSE("\x8a\x02\x80\x00.")) == 128);
    CHECK(int_of(PARSE("\x8a\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F.")) == INT64_MAX);
    CHECK(int_of(PARSE("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.")) == INT64_MIN);
    CHECK(int_of(PARSE("\x8b\x01\x00\x00\x00\x05.")) == 5);
    Pickle *big = PARSE("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.");
    CHECK(big && big->kind == PK_BIG_INT && big->s.n == 9);
    Pickle *f = PARSE("G\xBF\xF8\x00\x00\x00\x00\x00\x00.");
    CHECK(f && f->kind == PK_FLOAT && f->f == -1.5);
    Pickle *t = PARSE("\x88."), *no = PARSE("\x89."), *none = PARSE("N.");
    CHECK(t && t->kind == PK_BOOL && t->b);
    CHECK(no && no->kind == PK_BOOL && !no->b);
    CHECK(none && none->kind == PK_NONE);
}

static bool is_text(const Pickle *p, PickleKind kind, const char *text)
{
    return p && p->kind == kind && str_is(p->s, text);
}

static void strings(void)
{
    CHECK(is_text(PARSE("\x80\x02X\x03\x00\x00\x00" "abc."), PK_STR, "abc"));
    CHECK(is_text(PARSE("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi."), PK_STR, "hi"));
    CHECK(is_text(PARSE("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."), PK_STR, "hi"));
    CHECK(is_text(PARSE("X\x00\x00\x00\x00."), PK_STR, ""));
    CHECK(is_text(PARSE("U\x02hi."), PK_STR, "hi"));
    CHECK(is_text(PARSE("T\x02\x00\x00\x00hi."), PK_STR, "hi"));
    CHECK(is_text(PARSE("U\x01\xFF."), PK_BYTES, "\xFF"));
    CHECK(is_text(PARSE("C\x02hi."), PK_BYTES, "hi"));
    CHECK(is_text(PARSE("B\x02\x00\x00\x00hi."), PK_BYTES, "hi"));
    CHECK(is_text(PARSE("X\x02\x00\x00\x00\xC3\xA9."), PK_STR, "\xC3\xA9"));
    CHECK(is_text(PARSE("c_codecs\nencode\n(X\x03\x00\x00\x00"
                        "A\xC3\xBFX\x06\x00\x00\x00latin1tR."), PK_BYTES, "A\xFF"));
    CHECK(FAILS("X\x01\x00\x00\x00\xFF.", "not UTF-8"));
    CHECK(FAILS("X\x03\x00\x00\x00\xED\xA0\x80.", "not UTF-8"));
    CHECK(FAILS("X\xFF\xFF\xFF\xFF" "abc.", "ends early"));
    CHECK(FAILS("\x8d\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF" "abc.", "ends early"));
    CHECK(FAILS("c_codecs\nencode\n(X\x03\x00\x00\x00\xE2\x82\xACX\x06\x00\x00\x00latin1tR.",
                "not latin1"));
    CHECK(FAILS("c_codecs\nencode\n(X\x01\x00\x00\x00" "AX\x05\x00\x00\x00utf_8tR.", "latin1"));
}

static void containers(void)
{
    Pickle *p = PARSE("(K\x01K\x02K\x03t.");
    CHECK(p && p->kind == PK_TUPLE && p->n == 3 && int_of(p->items[2]) == 3);
    p = PARSE("K\x01K\x02\x86.");
    CHECK(p && p->kind == PK_TUPLE && p->n == 2 && int_of(p2o_pickle_item(p, 0)) == 1);
    CHECK(!p2o_pickle_item(p, 2) && !p2o_pickle_item(NULL, 0) && !p2o_pickle_item(p->items[0], 0));
    p = PARSE("](K\x01K\x02" "eK\x03" "a.");
    CHECK(p && p->kind == PK_LIST && p->n == 3 && int_of(p->items[0]) == 1 &&
          int_of(p->items[2]) == 3);
    p = PARSE("(K\x01l.");
    CHECK(p && p->kind == PK_LIST && p->n == 1);
    p = PARSE("}(U\x01" "aK\x01U\x01" "bK\x02uU\x01" "aK\x03s.");
    CHECK(p && p->kind == PK_DICT && p->n == 6);
    CHECK(int_of(p2o_pickle_get(p, "a")) == 3 && int_of(p2o_pickle_get(p, "b")) == 2);
    CHECK(!p2o_pickle_get(p, "c") && !p2o_pickle_get(NULL, "a"));
    p = PARSE("(U\x01" "aK\x01" "d.");
    CHECK(int_of(p2o_pickle_get(p, "a")) == 1);
    p = PARSE("\x8f(K\x01K\x02\x90.");
    CHECK(p && p->kind == PK_SET && p->n == 2);
    p = PARSE("c__builtin__\nset\n](K\x01K\x02" "e\x85R.");
    CHECK(p && p->kind == PK_SET && p->n == 2);
    p = PARSE(").");
    CHECK(p && p->kind == PK_TUPLE && p->n == 0);
    CHECK(FAILS(")K\x01" "a.", "no list"));
    CHECK(FAILS("]K\x01K\x02s.", "no dict"));
    CHECK(FAILS("}(K\x01u.", "has no value"));
    CHECK(FAILS("}]K\x01s.", "a key is a list"));
    CHECK(FAILS("(]K\x01" "d.", "a key is a list"));
    CHECK(FAILS("K\x01t.", "no mark"));
    CHECK(FAILS("K\x01(\x85.", "stack is empty"));
    CHECK(FAILS("a.", "stack is empty"));
}

static void globals(void)
{
    Pickle *p = PARSE("ctorch\nFloatStorage\n.");
    CHECK(p2o_pickle_is_global(p, "torch", "FloatStorage") &&
          !p2o_pickle_is_global(p, "torch", "Float"));
    CHECK(!p2o_pickle_is_global(NULL, "a", "b"));
    p = PARSE("\x8c\x05torch\x8c\x04Size\x93.");
    CHECK(p2o_pickle_is_global(p, "torch", "Size"));
    /* The classic attack is four inert nodes. */
    p = PARSE("cos\nsystem\nU\x06rm -rf\x85R.");
    CHECK(p && p->kind == PK_CALL && p2o_pickle_is_global(p->callee, "os", "system"));
    CHECK(p && p->args->kind == PK_TUPLE && is_text(p->args->items[0], PK_STR, "rm -rf"));
    /* TorchScript's enums call on a bare value. */
    p = PARSE("c__torch__\nColor\nK\x02R.");
    CHECK(p && p->kind == PK_CALL && int_of(p->args) == 2);
    p = PARSE("c__torch__\nM\n)\x81}U\x01" "aK\x05sb.");
    CHECK(p && p->kind == PK_OBJECT && int_of(p2o_pickle_get(p->state, "a")) == 5);
    /* Attributes of a dict are no keys. */
    p = PARSE("ccollections\nOrderedDict\n)RU\x01" "aK\x01s}U\x09_metadataNsb.");
    CHECK(p && p->kind == PK_DICT && p->n == 2 && int_of(p2o_pickle_get(p, "a")) == 1);
    p = PARSE("ccollections\nOrderedDict\n]U\x01" "aK\x01\x86" "a\x85R.");
    CHECK(int_of(p2o_pickle_get(p, "a")) == 1);
    CHECK(FAILS("ccollections\nOrderedDict\n]K\x01" "a\x85R.", "no list of pairs"));
    p = PARSE("(U\x07storageK\x01tQ.");
    CHECK(p && p->kind == PK_PERSISTENT && p->args->n == 2);
    CHECK(FAILS("ctorch\nSizeNb.", "a line does not end"));
    CHECK(FAILS("ctorch\nSize\nNb.", "plain value"));
    CHECK(FAILS("K\x01Nb.", "plain value"));
    CHECK(FAILS("K\x01K\x02\x93.", "no string"));
    CHECK(FAILS("K\x01)\x81.", "class is no global"));
    CHECK(FAILS("ctorch\nno end", "does not end"));
}

static void memo(void)
{
    Pickle *p = PARSE("]q\x00h\x00" "a.");
    CHECK(p && p->kind == PK_LIST && p->n == 1 && p->items[0] == p);    /* holds itself */
    p = PARSE("K\x05\x94h\x00\x86.");
    CHECK(p && p->items[0] == p->items[1]);
    p = PARSE("K\x05r\x00\x00\x00\x00j\x00\x00\x00\x00\x86.");
    CHECK(p && p->items[0] == p->items[1]);
    p = PARSE("K\x05q\x00K\x06q\x00h\x00\x87.");
    CHECK(p && int_of(p->items[2]) == 6);
    CHECK(FAILS("K\x01r\xFF\xFF\xFF\xFF.", "skipped"));
    CHECK(FAILS("K\x01q\x01.", "skipped"));
    CHECK(FAILS("h\x00.", "empty memo slot"));
    CHECK(FAILS("q\x00.", "stack is empty"));
}

static void ends(void)
{
    CHECK(FAILS("", "ends early"));
    CHECK(FAILS("\x80", "ends early"));
    CHECK(FAILS("\x80\x06.", "newer than 5"));
    CHECK(FAILS(".", "one value"));
    CHECK(FAILS("K\x01K\x02.", "one value"));
    CHECK(FAILS("K\x01(.", "one value"));
    CHECK(FAILS("K\x01.K", "more bytes"));
    CHECK(FAILS("\x95\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFK\x01.", "a frame is longer"));
    /* INST, OBJ, EXT1, NEWOBJ_EX, PERSID, text GET and PUT, DUP, POP, BUFFER */
    static const char refused[] = "io\x82\x92Pgp20\x97\x98";
    for (size_t i = 0; i < sizeof refused - 1; i++) {
        char bytes[] = { 'N', refused[i], '0', '\n', '.' };
        CHECK(fails((Str){ bytes, sizeof bytes }, "is not allowed"));
    }
}

/* A million levels: nothing may recurse. */
static void depth(void)
{
    enum { N = 1000000 };
    char *bytes = p2o_alloc(arena, N + 2);
    memset(bytes, 0x85, N + 2);
    bytes[0] = 'N';
    bytes[N + 1] = '.';
    Pickle *p = parse((Str){ bytes, N + 2 });
    size_t  n = 0;
    for (; p && p->kind == PK_TUPLE; p = p->items[0])
        n++;
    CHECK(n == N);
    memset(bytes, '(', N + 2);
    CHECK(fails((Str){ bytes, N + 2 }, "ends early"));
}

/* Every truncation of a real shape of pickle is an error, and every flipped byte is survived. */
static void broken(void)
{
    static const char whole[] = "\x80\x02}q\x00(X\x01\x00\x00\x00wq\x01"
        "ctorch._utils\n_rebuild_tensor_v2\nq\x02("
        "(X\x07\x00\x00\x00storageq\x03" "ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x00"
            "0K\x06tq\x05QK\x00K\x02K\x03\x86"
        "K\x03K\x01\x86\x89" "ccollections\nOrderedDict\n)Rtq\x06Ru.";
    CHECK(PARSE(whole) != NULL);
    size_t refused = 0, n = sizeof whole - 1;
    for (size_t i = 0; i < n; i++)
        refused += parse((Str){ whole, i }) == NULL;
    CHECK(refused == n);
    char copy[sizeof whole];
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, whole, sizeof whole);
            copy[i] = (char)(copy[i] ^ (1 << bit));
            Pickle *p = parse((Str){ copy, n });
            CHECK((p == NULL) == (p2o_diags_errors(diags) > 0));
        }
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    numbers();
    strings();
    containers();
    globals();
    memo();
    ends();
    depth();
    broken();
    p2o_arena_free(arena);
    return check_report();
}
