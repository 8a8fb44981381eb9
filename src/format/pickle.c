/* The pickle machine: a stack, marks and a memo, and one table of opcodes.
 *
 * Opcodes that only exist to run code (INST, OBJ, EXT, NEWOBJ_EX) or that no writer of tensors uses
 * are absent from the table and refused.  Reading is sticky: after the first error bytes read as
 * zeros and pops give None, and the loop stops.  Memory stays in proportion to the input: a memo
 * slot must be used or be the next one, and lengths are checked against the bytes left. */
#include "format/pickle.h"

#include "base/vec.h"
#include "format/json.h"

typedef struct Unpickler {
    Diags         *diags;
    Arena         *arena;
    const char    *what;
    const uint8_t *at;
    size_t         pos, end;
    bool           failed, stopped;
    Pickle        *none;
    VEC(Pickle *)  stack;
    VEC(size_t)    marks;
    VEC(Pickle *)  memo;
} Unpickler;

typedef void OpFn(Unpickler *u, int arg);

static void fail_pickle(Unpickler *u, const char *why)
{
    if (!u->failed)
        p2o_diag(u->diags, DIAG_BAD_FILE, 0, "%s: %s at byte %zu of the pickle", u->what, why,
                 u->pos);
    u->failed = true;
}

static const uint8_t *take_bytes(Unpickler *u, uint64_t n)
{
    if (u->failed || n > u->end - u->pos) {
        fail_pickle(u, "data ends early");
        return NULL;
    }
    const uint8_t *p = u->at + u->pos;
    u->pos += (size_t)n;
    return p;
}

static uint64_t take_uint(Unpickler *u, int nbytes)
{
    const uint8_t *p = take_bytes(u, (uint64_t)nbytes);
    uint64_t       v = 0;
    for (int i = nbytes - 1; p && i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static Str take_str(Unpickler *u, uint64_t n)
{
    const uint8_t *p = take_bytes(u, n);
    return p ? (Str){ (const char *)p, (size_t)n } : (Str){ "", 0 };
}

static Str take_line(Unpickler *u)
{
    size_t         left = u->end - u->pos;
    const uint8_t *nl = left ? memchr(u->at + u->pos, '\n', left) : NULL;
    if (!nl) {
        fail_pickle(u, "a line does not end");
        return (Str){ "", 0 };
    }
    Str s = take_str(u, (uint64_t)(nl - (u->at + u->pos)));
    u->pos++;
    return s;
}

static Pickle *push_value(Unpickler *u, PickleKind kind)
{
    Pickle *p = NEW(u->arena, Pickle);
    p->kind = kind;
    VEC_PUSH(u->arena, &u->stack, p);
    return p;
}

/* Values below the last mark are out of reach. */
static size_t stack_floor(const Unpickler *u)
{
    return u->marks.n ? u->marks.at[u->marks.n - 1] : 0;
}

static Pickle *top_value(Unpickler *u)
{
    if (u->stack.n > stack_floor(u))
        return u->stack.at[u->stack.n - 1];
    fail_pickle(u, "the stack is empty");
    return u->none;
}

static Pickle *pop_value(Unpickler *u)
{
    Pickle *p = top_value(u);
    if (!u->failed)
        u->stack.n--;
    return p;
}

/* The values since the last mark, which is taken away with them. */
static Pickle **pop_mark(Unpickler *u, size_t *n)
{
    *n = 0;
    if (!u->marks.n) {
        fail_pickle(u, "there is no mark");
        return NULL;
    }
    size_t from = u->marks.at[--u->marks.n];
    *n = u->stack.n - from;
    u->stack.n = from;
    return u->stack.at + from;
}

static bool is_utf8(Str s)
{
    while (s.n) {
        size_t n = p2o_json_utf8(s);
        if (!n)
            return false;
        s = (Str){ s.p + n, s.n - n };
    }
    return true;
}

static void op_proto(Unpickler *u, int arg)
{
    (void)arg;
    if (take_uint(u, 1) > 5)
        fail_pickle(u, "protocol newer than 5");
}

static void op_frame(Unpickler *u, int arg)
{
    (void)arg;
    if (take_uint(u, 8) > u->end - u->pos)
        fail_pickle(u, "a frame is longer than the data");
}

static void op_stop(Unpickler *u, int arg)
{
    (void)arg;
    u->stopped = true;
}

static void op_mark(Unpickler *u, int arg)
{
    (void)arg;
    VEC_PUSH(u->arena, &u->marks, u->stack.n);
}

static void op_none(Unpickler *u, int arg)
{
    (void)arg;
    push_value(u, PK_NONE);
}

static void op_bool(Unpickler *u, int arg) { push_value(u, PK_BOOL)->b = arg != 0; }

static void op_uint(Unpickler *u, int nbytes)
{
    uint64_t v = take_uint(u, nbytes);
    push_value(u, PK_INT)->i = (int64_t)v;
}

static void op_int32(Unpickler *u, int arg)
{
    (void)arg;
    uint32_t v = (uint32_t)take_uint(u, 4);
    push_value(u, PK_INT)->i = v > INT32_MAX ? (int64_t)v - ((int64_t)1 << 32) : (int64_t)v;
}

/* Little-endian two's complement; no bytes at all are zero. */
static void op_long(Unpickler *u, int nbytes)
{
    Str     s = take_str(u, take_uint(u, nbytes));
    Pickle *p = push_value(u, s.n > 8 ? PK_BIG_INT : PK_INT);
    if (s.n > 8) {
        p->s = s;
        return;
    }
    uint64_t v = s.n && (s.p[s.n - 1] & 0x80) ? UINT64_MAX : 0;
    for (size_t i = s.n; i > 0; i--)
        v = v << 8 | (uint8_t)s.p[i - 1];
    p->i = v > INT64_MAX ? -(int64_t)~v - 1 : (int64_t)v;
}

static void op_float(Unpickler *u, int arg)
{
    (void)arg;
    const uint8_t *b = take_bytes(u, 8);
    uint64_t       v = 0;
    for (int i = 0; b && i < 8; i++)
        v = v << 8 | b[i];
    memcpy(&push_value(u, PK_FLOAT)->f, &v, sizeof v);
}

static void op_unicode(Unpickler *u, int nbytes)
{
    Str s = take_str(u, take_uint(u, nbytes));
    if (!is_utf8(s))
        fail_pickle(u, "a string is not UTF-8");
    push_value(u, PK_STR)->s = s;
}

/* Python 2's str: text where it can be. */
static void op_string(Unpickler *u, int nbytes)
{
    Str s = take_str(u, take_uint(u, nbytes));
    push_value(u, is_utf8(s) ? PK_STR : PK_BYTES)->s = s;
}

static void op_bytes(Unpickler *u, int nbytes)
{
    Str s = take_str(u, take_uint(u, nbytes));
    push_value(u, PK_BYTES)->s = s;
}

static void op_empty(Unpickler *u, int kind) { push_value(u, (PickleKind)kind); }

static void set_items(Unpickler *u, Pickle *p, Pickle *const *items, size_t n)
{
    p->items = NEW_N(u->arena, Pickle *, n);
    p->n = p->cap = n;
    if (n)
        memcpy(p->items, items, n * sizeof *items);
}

static void op_tuple_n(Unpickler *u, int n)
{
    Pickle *items[3];
    for (int i = n - 1; i >= 0; i--)
        items[i] = pop_value(u);
    set_items(u, push_value(u, PK_TUPLE), items, (size_t)n);
}

static bool is_hashable(const Pickle *key)
{
    return key->kind != PK_LIST && key->kind != PK_DICT && key->kind != PK_SET;
}

static void check_keys(Unpickler *u, Pickle *const *items, size_t n)
{
    if (n % 2)
        fail_pickle(u, "a key has no value");
    for (size_t i = 0; i < n; i += 2)
        if (!is_hashable(items[i]))
            fail_pickle(u, "a key is a list, set or dict");
}

static void op_marked(Unpickler *u, int kind)
{
    size_t   n;
    Pickle **items = pop_mark(u, &n);
    if (kind == PK_DICT)
        check_keys(u, items, n);
    if (u->failed)
        return;
    /* The new value takes the first item's place on the stack: copy before pushing. */
    Pickle *p = NEW(u->arena, Pickle);
    p->kind = (PickleKind)kind;
    set_items(u, p, items, n);
    VEC_PUSH(u->arena, &u->stack, p);
}

static void add_items(Unpickler *u, Pickle *to, PickleKind kind, Pickle *const *items, size_t n)
{
    if (to->kind != kind)
        fail_pickle(u, kind == PK_DICT ? "an item is set on no dict" : "an item is put in no list");
    if (kind == PK_DICT)
        check_keys(u, items, n);
    if (u->failed || !n)
        return;
    if (to->cap - to->n < n) {
        size_t cap = to->cap * 2 > to->n + n ? to->cap * 2 : to->n + n;
        to->items = p2o_grow(u->arena, to->items, to->n * sizeof *items, cap * sizeof *items);
        to->cap = cap;
    }
    memcpy(to->items + to->n, items, n * sizeof *items);
    to->n += n;
}

static void op_append(Unpickler *u, int arg)
{
    (void)arg;
    Pickle *x = pop_value(u);
    add_items(u, top_value(u), PK_LIST, &x, 1);
}

static void op_setitem(Unpickler *u, int arg)
{
    (void)arg;
    Pickle *item[2];
    item[1] = pop_value(u);
    item[0] = pop_value(u);
    add_items(u, top_value(u), PK_DICT, item, 2);
}

static void op_extend(Unpickler *u, int kind)
{
    size_t   n;
    Pickle **items = pop_mark(u, &n);
    if (!u->failed)
        add_items(u, top_value(u), (PickleKind)kind, items, n);
}

static void op_global(Unpickler *u, int arg)
{
    (void)arg;
    Str     module = take_line(u), name = take_line(u);
    Pickle *p = push_value(u, PK_GLOBAL);
    if (!is_utf8(module) || !is_utf8(name))
        fail_pickle(u, "a global's name is not UTF-8");
    p->module = module;
    p->name = name;
}

static void op_stack_global(Unpickler *u, int arg)
{
    (void)arg;
    Pickle *name = pop_value(u), *module = pop_value(u);
    if (name->kind != PK_STR || module->kind != PK_STR) {
        fail_pickle(u, "a global's name is no string");
        return;
    }
    Pickle *p = push_value(u, PK_GLOBAL);
    p->module = module->s;
    p->name = name->s;
}

static bool is_builtin(const Pickle *p, const char *name)
{
    return p2o_pickle_is_global(p, "builtins", name) ||
           p2o_pickle_is_global(p, "__builtin__", name);
}

/* OrderedDict() or OrderedDict([(key, value), ...]): only the empty call is written nowadays. */
static void make_dict(Unpickler *u, const Pickle *args)
{
    Pickle       *dict = push_value(u, PK_DICT);
    const Pickle *pairs = p2o_pickle_item(args, 0);
    for (size_t i = 0; pairs && i < pairs->n; i++) {
        const Pickle *pair = p2o_pickle_item(pairs, i);
        if (!pair || (pair->kind != PK_TUPLE && pair->kind != PK_LIST) || pair->n != 2) {
            fail_pickle(u, "the argument of OrderedDict is no list of pairs");
            return;
        }
        add_items(u, dict, PK_DICT, pair->items, 2);
    }
}

static void make_set(Unpickler *u, const Pickle *args)
{
    const Pickle *items = p2o_pickle_item(args, 0);
    if (items && items->kind != PK_LIST && items->kind != PK_TUPLE)
        fail_pickle(u, "the argument of set is no list");
    else
        set_items(u, push_value(u, PK_SET), items ? items->items : NULL, items ? items->n : 0);
}

/* encode(text, "latin1"): one byte a character. */
static void make_bytes(Unpickler *u, const Pickle *args)
{
    const Pickle *text = p2o_pickle_item(args, 0), *coding = p2o_pickle_item(args, 1);
    Buf           b = { .arena = u->arena };
    if (!text || text->kind != PK_STR || !coding || coding->kind != PK_STR ||
        !str_is(coding->s, "latin1")) {
        fail_pickle(u, "_codecs.encode of something other than latin1 text");
        return;
    }
    for (size_t i = 0; i < text->s.n; i++) {
        uint8_t c = (uint8_t)text->s.p[i];
        if (c > 0xC3) {
            fail_pickle(u, "a character is not latin1");
            return;
        }
        if (c >= 0xC2)
            c = (uint8_t)(c << 6 | ((uint8_t)text->s.p[++i] & 0x3F));
        p2o_put(&b, &c, 1);
    }
    push_value(u, PK_BYTES)->s = buf_str(&b);
}

static void op_call(Unpickler *u, int kind)
{
    Pickle *args = pop_value(u), *callee = pop_value(u);
    bool    with_tuple = args->kind == PK_TUPLE;

    if (u->failed)
        return;
    if (kind == PK_OBJECT && (callee->kind != PK_GLOBAL || !with_tuple)) {
        fail_pickle(u, "an object's class is no global");
    } else if (with_tuple && p2o_pickle_is_global(callee, "collections", "OrderedDict")) {
        make_dict(u, args);
    } else if (with_tuple && (is_builtin(callee, "set") || is_builtin(callee, "frozenset"))) {
        make_set(u, args);
    } else if (with_tuple && p2o_pickle_is_global(callee, "_codecs", "encode")) {
        make_bytes(u, args);
    } else {
        Pickle *p = push_value(u, (PickleKind)kind);
        p->callee = callee;
        p->args = args;
    }
}

/* Attributes of a dict (an OrderedDict's _metadata) are dropped: they are no keys. */
static void op_build(Unpickler *u, int arg)
{
    (void)arg;
    Pickle *state = pop_value(u), *to = top_value(u);
    if (to->kind == PK_CALL || to->kind == PK_OBJECT)
        to->state = state;
    else if (to->kind != PK_DICT)
        fail_pickle(u, "attributes are set on a plain value");
}

static void op_persistent(Unpickler *u, int arg)
{
    (void)arg;
    Pickle *id = pop_value(u);
    push_value(u, PK_PERSISTENT)->args = id;
}

static void memoize(Unpickler *u, uint64_t i)
{
    Pickle *p = top_value(u);
    if (i > u->memo.n)
        fail_pickle(u, "a memo slot is skipped");
    else if (i == u->memo.n)
        VEC_PUSH(u->arena, &u->memo, p);
    else
        u->memo.at[i] = p;
}

static void op_put(Unpickler *u, int nbytes)
{
    memoize(u, nbytes ? take_uint(u, nbytes) : u->memo.n);
}

static void op_get(Unpickler *u, int nbytes)
{
    uint64_t i = take_uint(u, nbytes);
    if (i >= u->memo.n)
        fail_pickle(u, "an empty memo slot is read");
    else
        VEC_PUSH(u->arena, &u->stack, u->memo.at[i]);
}

static const struct {
    OpFn *fn;
    int   arg;
} opcodes[256] = {
    [0x80] = { op_proto, 0 },        [0x95] = { op_frame, 0 },        ['.'] = { op_stop, 0 },
    ['('] = { op_mark, 0 },          ['N'] = { op_none, 0 },
    [0x88] = { op_bool, 1 },         [0x89] = { op_bool, 0 },
    ['K'] = { op_uint, 1 },          ['M'] = { op_uint, 2 },          ['J'] = { op_int32, 0 },
    [0x8a] = { op_long, 1 },         [0x8b] = { op_long, 4 },         ['G'] = { op_float, 0 },
    ['X'] = { op_unicode, 4 },       [0x8c] = { op_unicode, 1 },      [0x8d] = { op_unicode, 8 },
    ['T'] = { op_string, 4 },        ['U'] = { op_string, 1 },
    ['B'] = { op_bytes, 4 },         ['C'] = { op_bytes, 1 },         [0x8e] = { op_bytes, 8 },
    [')'] = { op_empty, PK_TUPLE },  [']'] = { op_empty, PK_LIST },   ['}'] = { op_empty, PK_DICT },
    [0x8f] = { op_empty, PK_SET },
    [0x85] = { op_tuple_n, 1 },      [0x86] = { op_tuple_n, 2 },      [0x87] = { op_tuple_n, 3 },
    ['t'] = { op_marked, PK_TUPLE }, ['l'] = { op_marked, PK_LIST }, ['d'] = { op_marked, PK_DICT },
    [0x91] = { op_marked, PK_SET },
    ['a'] = { op_append, 0 },        ['s'] = { op_setitem, 0 },
    ['e'] = { op_extend, PK_LIST },  ['u'] = { op_extend, PK_DICT }, [0x90] = { op_extend, PK_SET },
    ['c'] = { op_global, 0 },        [0x93] = { op_stack_global, 0 },
    ['R'] = { op_call, PK_CALL },    [0x81] = { op_call, PK_OBJECT }, ['b'] = { op_build, 0 },
    ['Q'] = { op_persistent, 0 },
    ['q'] = { op_put, 1 },           ['r'] = { op_put, 4 },           [0x94] = { op_put, 0 },
    ['h'] = { op_get, 1 },           ['j'] = { op_get, 4 },
};

Pickle *p2o_pickle_parse(Diags *d, Str bytes, const char *what)
{
    Arena    *a = p2o_diags_arena(d);
    Pickle    none = { .kind = PK_NONE };
    Unpickler u = { .diags = d, .arena = a, .what = what, .at = (const uint8_t *)bytes.p,
                    .end = bytes.n, .none = &none };

    while (!u.failed && !u.stopped) {
        uint8_t op = (uint8_t)take_uint(&u, 1);
        if (u.failed)
            break;
        if (opcodes[op].fn)
            opcodes[op].fn(&u, opcodes[op].arg);
        else
            fail_pickle(&u, p2o_printf(a, "opcode 0x%02x is not allowed", op));
    }
    if (!u.failed && (u.stack.n != 1 || u.marks.n))
        fail_pickle(&u, "it does not end with one value");
    if (!u.failed && u.pos != u.end)
        fail_pickle(&u, "more bytes follow the end");
    return u.failed ? NULL : u.stack.at[0];
}

Pickle *p2o_pickle_get(const Pickle *p, const char *key)
{
    if (!p || p->kind != PK_DICT)
        return NULL;
    for (size_t i = p->n; i >= 2; i -= 2)
        if (p->items[i - 2]->kind == PK_STR && str_is(p->items[i - 2]->s, key))
            return p->items[i - 1];
    return NULL;
}

bool p2o_pickle_is_global(const Pickle *p, const char *module, const char *name)
{
    return p && p->kind == PK_GLOBAL && str_is(p->module, module) && str_is(p->name, name);
}

Pickle *p2o_pickle_item(const Pickle *p, size_t i)
{
    return p && (p->kind == PK_TUPLE || p->kind == PK_LIST) && i < p->n ? p->items[i] : NULL;
}
