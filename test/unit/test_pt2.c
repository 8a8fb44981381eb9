/* front/pt2 and front/torch_save: archives of every layout, written here in memory.
 *
 * JSON is written with ' for " and ~ for ', tree specs with ` for the quotes inside quotes. */
#include "front/pt2.h"

#include "check.h"
#include "format/json.h"

static Arena *arena;
static Diags *diags;
static Dims  *dims;

typedef struct Rec {
    const char *name;
    Str         data;
    bool        deflated;
} Rec;

static void put_le(Buf *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++, v >>= 8)
        p2o_put(b, (uint8_t[]){ (uint8_t)v }, 1);
}

/* One stored block is a valid deflate stream. */
static Str as_deflate(Str s)
{
    Buf b = { .arena = arena };
    put_le(&b, 1, 1);
    put_le(&b, s.n, 2);
    put_le(&b, ~s.n & 0xFFFF, 2);
    p2o_put(&b, s.p, s.n);
    return buf_str(&b);
}

/* Without CRCs: readers take 0 for "not recorded". */
static Str make_zip(const Rec *recs, size_t n)
{
    Buf b = { .arena = arena }, dir = { .arena = arena };
    for (size_t i = 0; i < n; i++) {
        Str      data = recs[i].deflated ? as_deflate(recs[i].data) : recs[i].data;
        size_t   len = strlen(recs[i].name), at = b.n;
        unsigned method = recs[i].deflated ? 8 : 0;
        put_le(&b, 0x04034B50, 4);
        put_le(&b, 0, 4);
        put_le(&b, method, 2);
        put_le(&b, 0, 16);
        put_le(&b, len, 4);
        p2o_put(&b, recs[i].name, len);
        p2o_put(&b, data.p, data.n);
        put_le(&dir, 0x02014B50, 4);
        put_le(&dir, 0, 6);
        put_le(&dir, method, 2);
        put_le(&dir, 0, 8);
        put_le(&dir, data.n, 4);
        put_le(&dir, recs[i].data.n, 4);
        put_le(&dir, len, 2);
        put_le(&dir, 0, 12);
        put_le(&dir, at, 4);
        p2o_put(&dir, recs[i].name, len);
    }
    size_t at = b.n;
    p2o_put(&b, dir.at, dir.n);
    put_le(&b, 0x06054B50, 4);
    put_le(&b, 0, 4);
    put_le(&b, n, 2);
    put_le(&b, n, 2);
    put_le(&b, dir.n, 4);
    put_le(&b, at, 4);
    put_le(&b, 0, 2);
    return buf_str(&b);
}

static Program *read_zip(Str zip)
{
    uint8_t *copy = p2o_alloc(arena, zip.n);
    memcpy(copy, zip.p, zip.n);
    diags = p2o_diags_new(arena, NULL, NULL);
    dims = p2o_dims_new(arena);
    Zip *z = p2o_zip_open(diags, p2o_source_memory(arena, copy, zip.n), 0, zip.n);
    return z ? p2o_pt2_read(diags, dims, z) : NULL;
}

static const char *dq(const char *z)
{
    char *out = p2o_alloc(arena, strlen(z) + 1);
    for (size_t i = 0; z[i]; i++)
        out[i] = z[i] == '\'' ? '"' : z[i] == '~' ? '\'' : z[i];
    return out;
}

static Str text(const char *z) { return str_of(dq(z)); }

static const char *quoted(const char *spec)
{
    Buf b = { .arena = arena }, out = { .arena = arena };
    for (; *spec; spec++)
        p2o_puts(&b, *spec == '\'' ? "\"" : *spec == '`' ? "\\\"" : (char[]){ *spec, 0 });
    p2o_json_quote(&out, buf_str(&b));
    return out.at;
}

#define LEAF "{'type':null,'context':null,'children_spec':[]}"
#define TUPLE(children) "{'type':'builtins.tuple','context':'null','children_spec':[" children "]}"
#define KWARGS "{'type':'builtins.dict','context':'[]','children_spec':[]}"
#define ONE_IN "[1," TUPLE(TUPLE(LEAF) "," KWARGS) "]"
#define ONE_OUT "[1," LEAF "]"
#define INT(n) "{'as_int':" #n "}"
#define META(dtype, sizes) "{'dtype':" #dtype ",'sizes':[" sizes "],'requires_grad':false," \
    "'device':{'type':'cpu','index':null},'strides':[],'storage_offset':{'as_int':0},'layout':7}"
#define TENSOR(name) "{'as_tensor':{'name':'" name "'}}"
#define USER(name) "{'user_input':{'arg':" TENSOR(name) "}}"
#define RESULT(name) "{'user_output':{'arg':" TENSOR(name) "}}"
#define RELU(from, to) "{'target':'torch.ops.aten.relu.default','inputs':[{'name':'self','arg':" \
    TENSOR(from) "," \
    "'kind':1}],'outputs':[" TENSOR(to) "],'metadata':{}}"
#define S0 \
    "{'as_expr':{'expr_str':'Symbol(~s0~, positive=True, integer=True)','hint':{'as_int':5}}}"

/* A program from its parts; NULL parts take those of y = relu(x). */
typedef struct Parts {
    const char *inputs, *outputs, *nodes, *tensors, *others, *in_specs, *out_specs;
    const char *in_tree, *out_tree;
    const char *module, *top;           /* further members */
} Parts;

static const char *or_else(const char *a, const char *b) { return a ? a : b; }

static const char *graph_json(const Parts *p)
{
    return p2o_printf(arena, "{'inputs':[%s],'outputs':[%s],'nodes':[%s],'tensor_values':{%s}%s}",
        or_else(p->inputs, TENSOR("x")), or_else(p->outputs, TENSOR("y")),
        or_else(p->nodes, RELU("x", "y")),
        or_else(p->tensors, "'x':" META(7, S0 "," INT(4)) ",'y':" META(7, S0 "," INT(4))),
        or_else(p->others, ""));
}

static Str program_json(const Parts *p)
{
    const char *head = p2o_printf(arena,
        "{'graph_module':{'graph':%s,'signature':{'input_specs':[%s],"
        "'output_specs':[%s]},'module_call_graph':[{'fqn':'','signature':{'inputs':[],"
        "'outputs':[],",
        graph_json(p), or_else(p->in_specs, USER("x")), or_else(p->out_specs, RESULT("y")));
    const char *tail = p2o_printf(arena, "}}]%s},'schema_version':{'major':8,'minor':20}%s}",
        or_else(p->module, ""), or_else(p->top, ""));
    return str_of(p2o_printf(arena, "%s\"in_spec\":%s,\"out_spec\":%s%s", dq(head),
                             quoted(or_else(p->in_tree, ONE_IN)),
                             quoted(or_else(p->out_tree, ONE_OUT)), dq(tail)));
}

static Program *read_archive(const Rec *more, size_t nmore, Str json)
{
    Rec recs[16] = { { "m/archive_format", STR("pt2"), false },
                     { "m/byteorder", STR("little"), false },
                     { "m/models/model.json", json, false } };
    for (size_t i = 0; i < nmore; i++)
        recs[3 + i] = more[i];
    return read_zip(make_zip(recs, 3 + nmore));
}

static Program *read_parts(Parts p) { return read_archive(NULL, 0, program_json(&p)); }

#define READ(...) read_parts((Parts){ __VA_ARGS__ })

static bool said(DiagKind kind, const char *what)
{
    for (size_t i = 0; i < p2o_diags_count(diags); i++)
        if (p2o_diags_at(diags, i)->kind == kind && strstr(p2o_diags_at(diags, i)->text, what))
            return true;
    for (size_t i = 0; i < p2o_diags_count(diags); i++)
        printf("said: %s\n", p2o_diags_at(diags, i)->text);
    printf("expected: %s\n", what);
    return false;
}

#define BAD(what, ...) CHECK(!READ(__VA_ARGS__) && said(DIAG_BAD_PROGRAM, what))
#define REFUSED(what, ...) CHECK(!READ(__VA_ARGS__) && said(DIAG_UNSUPPORTED, what))

static bool reads_as(Dim d, const char *expected) { return same(p2o_dim_text(dims, d), expected); }

static bool reported_nothing(void)
{
    for (size_t i = 0; i < p2o_diags_count(diags); i++)
        printf("said: %s\n", p2o_diags_at(diags, i)->text);
    return p2o_diags_count(diags) == 0;
}

static void smallest(void)
{
    Program *p = READ(NULL);
    CHECK(p && reported_nothing());
    if (!p)
        return;
    CHECK(same(p->producer, "PyTorch, export schema 8.20"));
    CHECK(p->inputs.n == 1 && same(p->inputs.at[0].name, "x") &&
          p->main->inputs.at[0] == p->inputs.at[0].var);
    Type x = p->inputs.at[0].var->recorded;
    CHECK(x.kind == TY_TENSOR && x.dtype == DT_F32 && x.shape.rank == 2 &&
          reads_as(x.shape.at[0], "s0"));
    int64_t hint = 0;
    CHECK(p2o_dim_hint(dims, x.shape.at[0], &hint) && hint == 5);
    CHECK(p->main->calls.n == 1);
    Call *c = p->main->calls.at[0];
    CHECK(same(c->target, "aten::relu") && !c->op && c->nargs == 1 &&
          same(c->arg_names[0], "self"));
    CHECK(c->args[0].kind == ARG_VAR && c->args[0].var == p->inputs.at[0].var);
    CHECK(c->nouts == 1 && c->outs[0]->def == c && same(c->outs[0]->name, "y") && c->loc == 0);
    CHECK(p->outputs.n == 1 && same(p->outputs.at[0].name, "y") &&
          p->outputs.at[0].kind == OUT_USER);
    CHECK(p->main->outputs.n == 1 && p->main->outputs.at[0].var == c->outs[0]);
}

static void header(void)
{
    Program *p = READ(.top =
        ",'torch_version':'2.14.1+debian','guards_code':['L[~x~].size()[0] != 3'],"
        "'range_constraints':{'s0':{'min_val':2,'max_val':null},'s0 + 1':{'min_val':3,'max_val':9},"
        "'u0':{'min_val':-Infinity,'max_val':Infinity},"
        "'u1':{'min_val':'-Infinity','max_val':9223372036854775806}},"
        "'unknown_key':{'deep':[1,2]}");
    CHECK(p && same(p->producer, "PyTorch 2.14.1"));
    CHECK(p && p->guards.n == 1 && same(p->guards.at[0], "L['x'].size()[0] != 3"));
    CHECK(p && p->ranges.n == 4 && p->ranges.at[0].lo == 2 && p->ranges.at[0].hi == NO_UPPER);
    CHECK(p && same(p->ranges.at[1].expr, "s0 + 1") && p->ranges.at[1].hi == 9);
    CHECK(p && p->ranges.at[1].dim == p2o_dim_add(dims, p->ranges.at[0].dim, p2o_dim_int(dims, 1)));
    CHECK(p && p->ranges.at[2].lo == NO_LOWER && p->ranges.at[2].hi == NO_UPPER);
    CHECK(p && p->ranges.at[3].hi == INT64_MAX - 1);
    BAD("range of s0 is none", .top = ",'range_constraints':{'s0':{'min_val':5,'max_val':2}}");
    BAD("range of s0 is none", .top = ",'range_constraints':{'s0':{'min_val':[],'max_val':2}}");
    BAD("range of s0 +", .top = ",'range_constraints':{'s0 +':{'min_val':5,'max_val':7}}");
    CHECK(!read_archive(NULL, 0, text("{'graph_module':{'graph':{},'signature':{}},"
                                      "'schema_version':{'major':9}}")));
    CHECK(said(DIAG_UNSUPPORTED, "export schema 9.0"));
    CHECK(!read_archive(NULL, 0, text("{'graph_module':{'graph':{}}}")) &&
          said(DIAG_BAD_PROGRAM, "no signature"));
    CHECK(!read_archive(NULL, 0, text("[]")) && said(DIAG_BAD_PROGRAM, "no graph"));
    CHECK(!read_archive(NULL, 0, text("{'graph_module'")) && p2o_diags_errors(diags) == 1);
}

static void layouts(void)
{
    Str json = program_json(&(Parts){ NULL });
    Rec other[] = { { "r/models/b.json", json, false }, { "r/archive_format", STR("pt2"), false },
                    { "r/models/a.json", STR("{}"), false },
                    { "r/models/model.json", json, true } };
    CHECK(read_zip(make_zip(other, 2)));                /* one model, whatever its name */
    CHECK(!read_zip(make_zip(other, 3)) && said(DIAG_UNSUPPORTED, "b, a"));
    CHECK(read_zip(make_zip(other, 4)));                /* several: the one called model */
    CHECK(!read_zip(make_zip(other + 1, 1)) && said(DIAG_BAD_FILE, "no models/"));
    CHECK(!read_zip(make_zip(other, 1)) && said(DIAG_BAD_FILE, "archive_format"));
    Rec strange[] = { { "r/archive_format", STR("pt3"), false },
                      { "r/models/model.json", json, false } };
    CHECK(!read_zip(make_zip(strange, 2)) && said(DIAG_BAD_FILE, "archive_format"));
    Rec order[] = { { "r/archive_format", STR("pt2\n"), false },
                    { "r/models/model.json", json, false },
                    { "r/byteorder", STR("middle"), false } };
    CHECK(read_zip(make_zip(order, 2)));
    CHECK(!read_zip(make_zip(order, 3)) && said(DIAG_BAD_FILE, "byteorder"));
    Rec flat[] = { { "serialized_exported_program.json", json, false } };
    CHECK(read_zip(make_zip(flat, 1)));
}

#define PAYLOAD(path, sizes, strides, offset) \
    "{'path_name':'" path "','is_param':true,'use_pickle':false,'tensor_meta':{'dtype':7," \
    "'sizes':[" sizes "],'requires_grad':false,'device':{'type':'cpu','index':null}," \
    "'strides':[" strides "],'storage_offset':{'as_int':" #offset "},'layout':7}}"
#define PARAMETER(name, fqn) "{'parameter':{'arg':{'name':'" name "'},'parameter_name':'" fqn "'}}"
#define BUFFER(name, fqn, keep) \
    "{'buffer':{'arg':{'name':'" name "'},'buffer_name':'" fqn "','persistent':" keep "}}"

static Parts with_weight(void)
{
    return (Parts){ .inputs = TENSOR("p_w") "," TENSOR("x"),
                    .in_specs = PARAMETER("p_w", "a.w") "," USER("x"),
                    .tensors = "'x':" META(7, INT(4)) ",'y':" META(7, INT(4))
                               ",'p_w':" META(7, INT(2)) };
}

/* 2 floats, 1 and 2. */
#define FLOATS "\0\0\x80\x3F\0\0\0\x40"

static Program *read_weight(const char *payload, Str bytes, bool deflated)
{
    Parts p = with_weight();
    Rec   more[] = { { "m/data/weights/model_weights_config.json",
                       text(p2o_printf(arena, "{'config':{'a.w':%s}}", payload)), false },
                     { "m/data/weights/weight_0", bytes, deflated } };
    return read_archive(more, 2, program_json(&p));
}

static bool values_are(const Tensor *t, double a, double b)
{
    double x, y;
    return t && p2o_tensor_get_f64(t, 0, &x) && p2o_tensor_get_f64(t, 1, &y) && x == a && y == b;
}

#define GOOD PAYLOAD("weight_0", INT(2), INT(1), 0)

static void weights(void)
{
    Program *p = read_weight(GOOD, STR(FLOATS), false);
    CHECK(p && p->weights.n == 1 && p->inputs.n == 1 && p->main->inputs.n == 1);
    CHECK(p && same(p->weights.at[0]->fqn, "a.w") && same(p->weights.at[0]->name, "p_w"));
    CHECK(p && values_are(p->weights.at[0]->tensor, 1, 2));
    p = read_weight(GOOD, STR(FLOATS), true);           /* deflated by another tool */
    CHECK(p && values_are(p->weights.at[0]->tensor, 1, 2));
    p = read_weight(GOOD, STR(""), false);              /* exported from fake tensors */
    CHECK(p && !p->weights.at[0]->tensor->storage->source &&
          values_are(p->weights.at[0]->tensor, 0, 0));
    CHECK(!read_weight(GOOD, STR("abcd"), false) && said(DIAG_BAD_FILE, "a.w: it runs past"));
    CHECK(!read_weight(PAYLOAD("weight_1", INT(2), INT(1), 0), STR(FLOATS), false));
    CHECK(said(DIAG_BAD_FILE, "no m/data/weights/weight_1"));
    CHECK(!read_weight(PAYLOAD("../weight_0", INT(2), INT(1), 0), STR(FLOATS), false));
    CHECK(said(DIAG_BAD_FILE, "leaves its folder"));
    CHECK(!read_weight(PAYLOAD("weight_0", INT(2), INT(1), 1), STR(FLOATS), false));
    CHECK(said(DIAG_BAD_FILE, "it runs past"));
    CHECK(!read_weight(PAYLOAD("weight_0", INT(2), INT(1), -1), STR(FLOATS), false) &&
          said(DIAG_BAD_FILE, "malformed"));
    CHECK(!read_weight(PAYLOAD("weight_0", INT(-2), INT(1), 0), STR(FLOATS), false) &&
          said(DIAG_BAD_FILE, "negative"));
    CHECK(!read_weight(PAYLOAD("weight_0", INT(2), "", 0), STR(FLOATS), false) &&
          said(DIAG_BAD_FILE, "malformed"));
    CHECK(!read_weight(PAYLOAD("weight_0", S0, INT(1), 0), STR(FLOATS), false) &&
          said(DIAG_BAD_FILE, "no integer"));
#define HUGE INT(4611686018427387904)
    CHECK(!read_weight(PAYLOAD("weight_0", HUGE "," HUGE, INT(1) "," INT(1), 0),
                       STR(FLOATS), false) && said(DIAG_BAD_FILE, "overflows"));
    CHECK(!read_weight("{'path_name':'weight_0','use_pickle':true,'tensor_meta':null}", STR(FLOATS),
                       false));
    CHECK(said(DIAG_UNSUPPORTED, "subclass"));
    CHECK(!read_weight("{'path_name':'weight_0'}", STR(FLOATS), false) &&
          said(DIAG_BAD_FILE, "malformed"));
    CHECK(!read_weight("7", STR(FLOATS), false) && said(DIAG_BAD_FILE, "malformed"));
    Parts parts = with_weight();
    CHECK(!read_archive(NULL, 0, program_json(&parts)) &&
          said(DIAG_BAD_FILE, "a.w: the file has none"));
}

/* Tied weights and views share a storage; constants have a folder of their own. */
static void shared_weights(void)
{
    Parts p = { .inputs = TENSOR("a") "," TENSOR("b") "," TENSOR("c") "," TENSOR("x"),
                .in_specs = PARAMETER("a", "a") "," PARAMETER("b", "b") ","
                            BUFFER("c", "c", "false") "," USER("x") };
    Rec   more[] = { { "m/data/weights/model_weights_config.json",
                       text("{'config':{'a':" GOOD
                            ",'b':" PAYLOAD("weight_0", INT(1), INT(1), 1)
                            ",'unused':" PAYLOAD("gone", INT(1), INT(1), 0) "}}"), false },
                     { "m/data/weights/weight_0", STR(FLOATS), false },
                     { "m/data/constants/model_constants_config.json",
                       text("{'config':{'c':" GOOD "}}"), false },
                     { "m/data/constants/weight_0", STR(FLOATS), false } };
    Program *q = read_archive(more, 4, program_json(&p));
    CHECK(q && q->weights.n == 3);
    if (!q)
        return;
    const Tensor *a = q->weights.at[0]->tensor, *b = q->weights.at[1]->tensor;
    const Tensor *c = q->weights.at[2]->tensor;
    double        v;
    CHECK(a->storage == b->storage && a->storage != c->storage);
    CHECK(p2o_tensor_get_f64(b, 0, &v) && v == 2);
    Rec broken[] = { { "m/data/weights/model_weights_config.json", text("{'config':[]}"), false } };
    CHECK(!read_archive(broken, 1, program_json(&p)) && said(DIAG_BAD_FILE, "no object"));
}

static void put_text(Buf *b, const char *z)
{
    p2o_puts(b, "X");
    put_le(b, strlen(z), 4);
    p2o_puts(b, z);
}

/* {"a.w": parameter over record 0 with two floats}; `class`, `numel` and `args` can be wrong. */
static Str saved_pickle(const char *class, unsigned numel, const char *rebuild, bool bare)
{
    Buf b = { .arena = arena };
    if (!bare) {
        p2o_puts(&b, "}");
        put_text(&b, "a.w");
        p2o_puts(&b, "ctorch._utils\n_rebuild_parameter\n");
    }
    p2o_putf(&b, "c%s\n((", rebuild);
    put_text(&b, "storage");
    p2o_putf(&b, "c%s\n", class);
    put_text(&b, "0");
    put_text(&b, "cpu");
    p2o_puts(&b, "K");
    put_le(&b, numel, 1);
    p2o_puts(&b, "tQ");
    p2o_put(&b, "K\0K\2\x85K\1\x85\x89}", 10);
    p2o_puts(&b, strstr(rebuild, "v3") ? "ctorch\nfloat32\ntR" : "tR");
    p2o_puts(&b, bare ? "." : "\x88}\x87Rs.");
    return buf_str(&b);
}

static Str saved_zip(Str pickle, Str bytes, const char *order)
{
    Rec recs[] = { { "archive/data.pkl", pickle, false },
                   { "archive/byteorder", str_of(order), false },
                   { "archive/data/0", bytes, false } };
    return make_zip(recs, 3);
}

static Program *read_saved(const char *record, Str saved, bool deflated)
{
    Parts p = with_weight();
    Rec   flat[] = { { "serialized_exported_program.json", program_json(&p), false },
                     { record, saved, deflated } };
    return read_zip(make_zip(flat, 2));
}

static void saved_weights(void)
{
    static const char storage[] = "torch\nFloatStorage", v2[] = "torch._utils\n_rebuild_tensor_v2";
    Str      good = saved_zip(saved_pickle(storage, 2, v2, false), STR(FLOATS), "little");
    Program *p = read_saved("serialized_state_dict.pt", good, false);
    CHECK(p && values_are(p->weights.at[0]->tensor, 1, 2));
    CHECK((p = read_saved("serialized_state_dict.json", good, false)) &&
          values_are(p->weights.at[0]->tensor, 1, 2));
    CHECK((p = read_saved("serialized_state_dict.pt", good, true)) &&
          values_are(p->weights.at[0]->tensor, 1, 2));
    CHECK((p = read_saved("serialized_constants.pt", good, false)) &&
          values_are(p->weights.at[0]->tensor, 1, 2));
    Str big = saved_zip(saved_pickle(storage, 2, v2, false), STR("\x3F\x80\0\0\x40\0\0\0"), "big");
    CHECK((p = read_saved("serialized_state_dict.pt", big, false)) &&
          values_are(p->weights.at[0]->tensor, 1, 2));
    Str untyped = saved_zip(saved_pickle("torch.storage\nUntypedStorage", 8,
                                         "torch._utils\n_rebuild_tensor_v3", false),
                            STR(FLOATS), "little");
    CHECK((p = read_saved("serialized_state_dict.pt", untyped, false)) &&
          values_are(p->weights.at[0]->tensor, 1, 2));
    Str fake = saved_zip(saved_pickle(storage, 2, v2, false), STR(""), "little");
    CHECK((p = read_saved("serialized_state_dict.pt", fake, false)) &&
          values_are(p->weights.at[0]->tensor, 0, 0));

    Str longer = saved_zip(saved_pickle(storage, 3, v2, false), STR(FLOATS), "little");
    CHECK(!read_saved("serialized_state_dict.pt", longer, false) &&
          said(DIAG_BAD_FILE, "the pickle says 12"));
    Str evil = saved_zip(saved_pickle(storage, 2, "os\nsystem", false), STR(FLOATS), "little");
    CHECK(!read_saved("serialized_state_dict.pt", evil, false) &&
          said(DIAG_UNSUPPORTED, "os.system"));
    Str quant = saved_zip(saved_pickle("torch\nQInt8Storage", 2, v2, false), STR(FLOATS), "little");
    CHECK(!read_saved("serialized_state_dict.pt", quant, false) &&
          said(DIAG_UNSUPPORTED, "QInt8Storage"));
    Str list = saved_zip(STR("]."), STR(FLOATS), "little");
    CHECK(!read_saved("serialized_state_dict.pt", list, false) &&
          said(DIAG_BAD_FILE, "does not hold a dict"));
    Str number = saved_zip(STR("}X\3\0\0\0a.wK\1s."), STR(FLOATS), "little");
    CHECK(!read_saved("serialized_state_dict.pt", number, false) &&
          said(DIAG_BAD_FILE, "no tensor"));
    CHECK(!read_saved("serialized_state_dict.pt", STR(""), false) &&
          said(DIAG_BAD_FILE, "has none by that name"));
    CHECK(!read_saved("serialized_state_dict.pt", STR("no zip"), false) &&
          p2o_diags_errors(diags) > 0);
    Rec bare[] = { { "archive/version", STR("3"), false } };
    CHECK(!read_saved("serialized_state_dict.pt", make_zip(bare, 1), false) &&
          said(DIAG_BAD_FILE, "no data.pkl"));

    /* 2.8: an archive around nested torch.saves. */
    Parts parts = with_weight();
    Rec   more[] = { { "m/data/weights/model.pt", good, false },
                     { "m/data/constants/model.pt", STR(""), false } };
    p = read_archive(more, 2, program_json(&parts));
    CHECK(p && values_are(p->weights.at[0]->tensor, 1, 2));
}

static void wrapped_tensors(void)
{
    static const char record[] = "serialized_state_dict.pt";
    Buf deep = { .arena = arena };
    p2o_puts(&deep, "}");
    put_text(&deep, "a.w");
    for (int i = 0; i < 20; i++)
        p2o_puts(&deep, "ctorch._utils\n_rebuild_parameter\n");
    p2o_puts(&deep, "N");
    for (int i = 0; i < 20; i++)
        p2o_puts(&deep, "\x85R");
    p2o_puts(&deep, "s.");
    CHECK(!read_saved(record, saved_zip(buf_str(&deep), STR(FLOATS), "little"), false));
    CHECK(said(DIAG_BAD_FILE, "wrapped too many times"));
    Str sub = STR("}X\3\0\0\0a.wctorch._tensor\n_rebuild_from_type_v2\n"
                  "(cos\nsystem\ncmy\nSubclass\n)NtRs.");
    CHECK(!read_saved(record, saved_zip(sub, STR(FLOATS), "little"), false));
    CHECK(said(DIAG_UNSUPPORTED, "my.Subclass"));
}

static const char *encode64(Str s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    Buf b = { .arena = arena };
    for (size_t i = 0; i < s.n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < s.n ? (uint8_t)s.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            p2o_put(&b, k <= s.n - i ? &digits[v >> (18 - 6 * k) & 63] : "=", 1);
    }
    return buf_str(&b).p;
}

/* 2.1: all alternatives written out, a flat signature, constants in the graph, wrapped metas. */
#define OLD_TENSOR(name) "{'as_none':null,'as_int':null,'as_tensor':{'name':'" name "'}}"
#define OLD_META(sizes) \
    "{'meta':{'dtype':7,'sizes':[" sizes "],'requires_grad':false,'device':{'type':'cpu'}," \
    "'strides':[],'storage_offset':0,'layout':7}}"
#define OLD_SIZE "{'as_int':null,'as_expr':{'expr_str':'s0','hint':5}}"
#define OLD_GRAPH "{'graph_module':{'graph':{" \
    "'inputs':[" OLD_TENSOR("arg0_1") "," OLD_TENSOR("arg1_1") "," OLD_TENSOR("arg2_1") "]," \
    "'outputs':[" OLD_TENSOR("add") "," OLD_TENSOR("index") "]," \
    "'nodes':[{'target':'torch.ops.aten.add.Tensor','inputs':[" \
    "{'name':'self','arg':" OLD_TENSOR("arg1_1") "}," \
    "{'name':'other','arg':" OLD_TENSOR("_tensor_constant0") "}," \
    "{'name':'alpha','arg':{'as_none':null,'as_int':1}}],'outputs':[" OLD_TENSOR("add") "]," \
    "'metadata':{'stack_trace':'  File `net.py`, line 3, in forward'," \
    "'nn_module_stack':'L__self__:(,net.M);L__self___lin:(L[~self~].lin,torch.nn.Linear)'}}," \
    "{'target':'torch.ops.aten.index.Tensor','inputs':[" \
    "{'name':'self','arg':" OLD_TENSOR("arg2_1") "}," \
    "{'name':'indices','arg':{'as_tensor':null,'as_optional_tensors':[" \
    "{'as_tensor':null,'as_none':[]}," \
    "{'as_tensor':'arg0_1','as_none':null}]}}]," \
    "'outputs':[" OLD_TENSOR("index") "],'metadata':{}}]," \
    "'tensor_values':{'arg0_1':" OLD_META(INT(2)) ",'arg1_1':" OLD_META(INT(2)) "," \
    "'arg2_1':" OLD_META(OLD_SIZE) ",'add':" OLD_META(INT(2)) ",'index':" OLD_META(INT(2)) "}," \
    "'sym_int_values':{},'sym_bool_values':{}," \
    "'is_single_tensor_return':false,'constants':{'_tensor_constant0':'"
#define OLD_TAIL \
    "'}},'signature':{'inputs_to_parameters':{'arg0_1':'a.w'}," \
    "'inputs_to_buffers':{'arg1_1':'a.w'},'user_inputs':['arg2_1'],'user_outputs':['index']," \
    "'buffers_to_mutate':{'add':'a.w'},'backward_signature':%s}," \
    "'call_spec':{'in_spec':~I~,'out_spec':~O~},'module_call_graph':[]}," \
    "'opset_version':{'aten':10},'range_constraints':{'s0':{'min_val':2,'max_val':Infinity}}," \
    "'equality_constraints':[],'schema_version':1}"

static Program *read_oldest(const char *constant, const char *backward)
{
    Buf         b = { .arena = arena };
    const char *json = p2o_printf(arena, OLD_GRAPH "%s" OLD_TAIL, constant, backward);
    for (const char *z = json; *z; z++) {
        if (!strncmp(z, "~I~", 3) || !strncmp(z, "~O~", 3)) {
            p2o_puts(&b, quoted(z[1] == 'I' ? ONE_IN : ONE_OUT));
            z += 2;
        } else {
            p2o_puts(&b, *z == '`' ? "\\\"" : dq((char[]){ *z, 0 }));
        }
    }
    static const char storage[] = "torch\nFloatStorage", v2[] = "torch._utils\n_rebuild_tensor_v2";
    Rec recs[] = { { "serialized_exported_program.json", buf_str(&b), false },
                   { "serialized_state_dict.json",
                     saved_zip(saved_pickle(storage, 2, v2, false), STR(FLOATS), "little"), false },
                   { "version", STR("1"), false } };
    return read_zip(make_zip(recs, 3));
}

static void oldest(void)
{
    Str      pickle = saved_pickle("torch\nFloatStorage", 2, "torch._utils\n_rebuild_tensor_v2",
                                   true);
    Program *p = read_oldest(encode64(saved_zip(pickle, STR(FLOATS), "little")), "null");
    CHECK(p && reported_nothing());
    if (!p)
        return;
    CHECK(same(p->producer, "PyTorch, export schema 1.0") && p->weights.n == 3 && p->inputs.n == 1);
    CHECK(same(p->weights.at[2]->name, "_tensor_constant0") &&
          values_are(p->weights.at[2]->tensor, 1, 2));
    CHECK(p->weights.at[0]->tensor->storage == p->weights.at[1]->tensor->storage);
    CHECK(p->outputs.n == 2 && p->outputs.at[0].kind == OUT_BUFFER &&
          same(p->outputs.at[0].name, "a.w"));
    CHECK(p->outputs.at[1].kind == OUT_USER && same(p->outputs.at[1].name, "index"));
    Call *add = p->main->calls.at[0], *index = p->main->calls.at[1];
    CHECK(add->nargs == 3 && reads_as(add->args[2].i, "1") && add->args[1].var == p->weights.at[2]);
    CHECK(index->args[1].kind == ARG_LIST && index->args[1].n == 2 &&
          index->args[1].items[0].kind == ARG_NONE);
    CHECK(index->args[1].items[1].var == p->weights.at[0]);
    const Place *at = p2o_place_at(diags, add->loc);
    CHECK(at && same(at->file, "net.py") && at->line == 3 && same(at->func, "forward") &&
          same(at->module, "lin"));
    int64_t hint = 0;
    CHECK(p2o_dim_hint(dims, p->inputs.at[0].var->recorded.shape.at[0], &hint) && hint == 5);
    CHECK(p->ranges.n == 1 && p->ranges.at[0].hi == NO_UPPER);
    CHECK(!read_oldest("!!!!", "null") && said(DIAG_BAD_FILE, "not base64"));
    CHECK(!read_oldest("QUJD", "null") && p2o_diags_errors(diags) == 1);
    CHECK(!read_oldest(encode64(saved_zip(pickle, STR(FLOATS), "little")),
                       "{'loss_output':'index'}"));
    CHECK(said(DIAG_UNSUPPORTED, "gradients"));
}

#define CALL(inputs) "{'target':'torch.ops.my.op.default','inputs':[" inputs "],'outputs':[" \
    TENSOR("y") "],'metadata':{}}"
#define ARGUMENT(value) "{'name':'k','arg':" value "}"

/* The one argument of a call. */
static const Arg *read_argument(const char *value)
{
    static Arg none = { .kind = ARG_OPERATOR, .s = "failed" };
    Program *p = READ(.nodes = p2o_printf(arena, CALL("%s"),
                                          p2o_printf(arena, ARGUMENT("%s"), value)),
                      .others = ",'sym_int_values':{'n':{'as_int':6}}",
                      .inputs = TENSOR("x") ",{'as_sym_int':{'as_name':'n'}}",
                      .in_specs = USER("x")
                                  ",{'user_input':{'arg':{'as_sym_int':{'as_name':'n'}}}}",
                      .in_tree = "[1," TUPLE(TUPLE(LEAF "," LEAF) "," KWARGS) "]");
    return p && p->main->calls.at[0]->nargs == 1 ? p->main->calls.at[0]->args : &none;
}

static bool is_int_arg(const Arg *a, const char *expected)
{
    return a->kind == ARG_INT && reads_as(a->i, expected);
}

static bool is_text_arg(const Arg *a, ArgKind kind, const char *expected)
{
    return a->kind == kind && same(a->s, expected);
}

static void scalars(void)
{
    CHECK(read_argument("{'as_none':true}")->kind == ARG_NONE);
    CHECK(read_argument("{'as_none':[]}")->kind == ARG_NONE);
    CHECK(is_int_arg(read_argument("{'as_int':9223372036854775807}"), "9223372036854775807"));
    CHECK(is_int_arg(read_argument("{'as_int':-3,'as_float':null}"), "-3"));
    CHECK(read_argument("{'as_float':2.5}")->f == 2.5 && read_argument("{'as_float':3}")->f == 3);
    CHECK(read_argument("{'as_float':'-Infinity'}")->f < -1e308 &&
          read_argument("{'as_float':Infinity}")->f > 1e308);
    double nan = read_argument("{'as_float':'NaN'}")->f;
    CHECK(nan != nan);
    CHECK(read_argument("{'as_bool':true}")->kind == ARG_BOOL &&
          read_argument("{'as_bool':true}")->b);
    CHECK(is_text_arg(read_argument("{'as_string':'a\\nb'}"), ARG_STR, "a\nb"));
    CHECK(read_argument("{'as_complex':{'real':1,'imag':-2.5}}")->re_im[1] == -2.5);
    CHECK(read_argument("{'as_scalar_type':13}")->dtype == DT_BF16);
    CHECK(is_text_arg(read_argument("{'as_layout':7}"), ARG_LAYOUT, "strided"));
    CHECK(is_text_arg(read_argument("{'as_memory_format':2}"), ARG_MEMORY_FORMAT, "channels_last"));
    CHECK(is_text_arg(read_argument("{'as_device':{'type':'cuda','index':1}}"), ARG_DEVICE,
                      "cuda:1"));
    CHECK(is_text_arg(read_argument("{'as_device':{'type':'cpu','index':null}}"), ARG_DEVICE,
                      "cpu"));
    CHECK(is_text_arg(read_argument("{'as_operator':'torch.ops.a.b.default'}"), ARG_OPERATOR,
                      "a::b"));
    CHECK(same(read_argument("{'as_tensor':{'name':'x'}}")->var->name, "x"));
    CHECK(same(read_argument("{'as_sym_int':{'as_name':'n'}}")->var->name, "n"));
    CHECK(is_int_arg(read_argument("{'as_sym_int':{'as_int':4}}"), "4"));
    CHECK(read_argument("{'as_sym_float':{'as_float':0.5}}")->f == 0.5);
    CHECK(read_argument("{'as_sym_bool':{'as_bool':false}}")->kind == ARG_BOOL);
}

static void lists(void)
{
    const Arg *a = read_argument("{'as_tensors':[{'name':'x'},{'name':'n'}]}");
    CHECK(a->kind == ARG_LIST && a->n == 2 && same(a->items[1].var->name, "n"));
    a = read_argument("{'as_optional_tensors':[{'as_none':true},{'as_tensor':{'name':'x'}}]}");
    CHECK(a->kind == ARG_LIST && a->n == 2 && a->items[0].kind == ARG_NONE &&
          a->items[1].kind == ARG_VAR);
    CHECK(read_argument("{'as_optional_tensor':{'as_none':true}}")->kind == ARG_NONE);
    a = read_argument("{'as_nested_tensors':[[{'name':'x'}],[]]}");
    CHECK(a->kind == ARG_LIST && a->n == 2 && a->items[0].n == 1 && a->items[1].kind == ARG_LIST);
    a = read_argument("{'as_ints':[]}");
    CHECK(a->kind == ARG_LIST && a->n == 0);
    a = read_argument("{'as_sym_ints':[{'as_name':'n'},{'as_int':-1}]}");
    CHECK(a->kind == ARG_LIST && a->items[0].kind == ARG_VAR && is_int_arg(&a->items[1], "-1"));
    a = read_argument("{'as_int_lists':[[1,2],[3]]}");
    CHECK(a->kind == ARG_LIST && is_int_arg(&a->items[1].items[0], "3"));
    CHECK(read_argument("{'as_float_lists':[[0.5]]}")->items[0].items[0].f == 0.5);
    CHECK(read_argument("{'as_floats':[1,'Infinity']}")->items[1].f > 1e308);
    CHECK(read_argument("{'as_bools':[true]}")->items[0].b);
    CHECK(is_text_arg(&read_argument("{'as_strings':['a']}")->items[0], ARG_STR, "a"));
    a = read_argument("{'as_string_to_argument':{'k':{'as_int':1}}}");
    CHECK(a->kind == ARG_LIST && a->n == 1 && is_text_arg(&a->items[0].items[0], ARG_STR, "k"));
}

static bool refuses(const char *value, const char *why)
{
    return same(read_argument(value)->s ? read_argument(value)->s : "", "failed") &&
           (said(DIAG_BAD_PROGRAM, why));
}

static void bad_arguments(void)
{
    CHECK(refuses("{'as_int':1,'as_float':2}", "found two"));
    CHECK(refuses("{'as_int':null}", "found none"));
    CHECK(refuses("{}", "found none"));
    CHECK(refuses("null", "alternatives"));
    CHECK(refuses("{'as_int':1e30}", "my::op: k is no 64-bit integer"));
    CHECK(refuses("{'as_int':18446744073709551615}", "no 64-bit integer"));
    CHECK(refuses("{'as_int':'1'}", "no 64-bit integer"));
    CHECK(refuses("{'as_float':'Inf'}", "no float"));
    CHECK(refuses("{'as_ints':1}", "no list"));
    CHECK(refuses("{'as_int_lists':[1]}", "no list"));
    CHECK(refuses("{'as_bool':1}", "no bool"));
    CHECK(refuses("{'as_string':'a\\u0000b'}", "no string"));
    CHECK(refuses("{'as_scalar_type':99}", "dtype"));
    CHECK(refuses("{'as_scalar_type':0}", "dtype"));
    CHECK(refuses("{'as_layout':8}", "layout"));
    CHECK(refuses("{'as_memory_format':0}", "memory format"));
    CHECK(refuses("{'as_tensor':{'name':'z'}}", "value z is used but not defined"));
    CHECK(refuses("{'as_tensor':{'name':'y'}}", "value y is used but not"));    /* its own result */
    CHECK(refuses("{'as_tensor':{'name':'a\\nb'}}", "no name"));
    CHECK(refuses("{'as_graph':{'name':'g'}}", "no graph"));
    CHECK(refuses("{'as_operator':'nodots'}", "no operator"));
    REFUSED("kind as_future", .nodes = CALL(ARGUMENT("{'as_future':1}")));
}

static void targets(void)
{
    static const char *const names[][2] = {
        { "torch.ops.aten.add.Tensor", "aten::add.Tensor" },
        { "torch.ops.aten.linear.default", "aten::linear" },
        { "torch.ops.aten.__and__.Scalar", "aten::__and__.Scalar" },
        { "torch.ops.higher_order.cond", "higher_order::cond" },
        { "torch.ops.cond", "higher_order::cond" },
        { "_operator.mul", "_operator::mul" }, { "math.trunc", "math::trunc" },
        { "torch.sym_max", "torch::sym_max" },
        { "torch._sym_sqrt", "torch::_sym_sqrt" },
        { "torch._functorch.predispatch._add_batch_dim",
          "torch._functorch.predispatch::_add_batch_dim" },
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        Program *p = READ(.nodes = p2o_printf(arena, "{'target':'%s','inputs':[],'outputs':["
                                              TENSOR("y") "]}", names[i][0]));
        CHECK(p && same(p->main->calls.at[0]->target, names[i][1]));
    }
    static const char *const bad[] = { "", "relu", ".relu", "torch.ops.", "torch.ops..x", "a.",
                                       "a.b\\n" };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        BAD("no operator name",
            .nodes = p2o_printf(arena, "{'target':'%s','inputs':[],'outputs':[]}", bad[i]));
}

static void results(void)
{
    Program *p = READ(.nodes = "{'target':'torch.ops.a.b','inputs':[],'outputs':["
                      "{'as_none':true},{'as_tensors':["
                      "{'name':'y'},{'name':'z'}]},{'as_sym_int':{'as_name':'n'}},"
                      "{'as_sym_int':{'as_int':3}},{'as_int':1},"
                      "{'as_optional_tensors':[{'as_none':true},{'as_tensor':{'name':'w'}}]}]}",
                      .others =
                          ",'sym_int_values':{'n':{'as_expr':{'expr_str':'s0*2','hint':null}}},"
                          "'sym_bool_values':{'q':{'as_bool':true}},"
                          "'sym_float_values':{'w':{'as_float':1.5}}");
    CHECK(p != NULL);
    Call *c = p ? p->main->calls.at[0] : NULL;
    CHECK(c && c->nouts == 8 && !c->outs[0] && !c->outs[4] && !c->outs[5] && !c->outs[6]);
    CHECK(c && same(c->outs[2]->name, "z") && c->outs[2]->recorded.kind == TY_NONE);
    CHECK(c && c->outs[3]->recorded.kind == TY_INT && reads_as(c->outs[3]->recorded.value, "2*s0"));
    CHECK(c && c->outs[7]->recorded.kind == TY_FLOAT && c->outs[7]->def == c);
    BAD("value y is defined twice", .nodes = RELU("x", "y") "," RELU("x", "y"));
    BAD("value x is defined twice", .nodes = RELU("x", "x"));
    BAD("result of kind as_graph",
        .nodes = "{'target':'a.b','inputs':[],'outputs':[{'as_graph':{}}]}");
    BAD("value y is recorded twice", .others = ",'sym_int_values':{'y':{'as_int':3}}");
    BAD("no lists", .nodes = "{'target':'a.b','inputs':{}}");
    BAD("no operator name", .nodes = "7");
    BAD("value z is used", .nodes = RELU("z", "y"));
    BAD("value y is used", .nodes = RELU("y", "z") "," RELU("x", "y"));
}

static void recorded(void)
{
    Program *p = READ(.tensors = "'x':" META(5, S0) ",'y':" META(12, "{'as_expr':{'expr_str':"
                      "'TruncToInt(Mul(Float(~1.7~, precision=53), "
                      "ToFloat(Symbol(~s0~, integer=True))))','hint':null}}"));
    CHECK(p && p->inputs.at[0].var->recorded.dtype == DT_I64);
    CHECK(p && p->outputs.at[0].value.var->recorded.shape.rank == 1);
    CHECK(p && same(p2o_dim_text(p->dims, p->outputs.at[0].value.var->recorded.shape.at[0]),
                    "trunc(1.7*s0)"));
    CHECK(READ(.tensors = "'x':" META(7, "")) != NULL); /* results need no record, inputs do */
    BAD("input x has no recorded type", .tensors = "");
    BAD("negative size", .tensors = "'x':" META(7, INT(-1)));
    BAD("expression s0 +", .tensors = "'x':" META(7, "{'as_expr':{'expr_str':'s0 +'}}"));
    BAD("neither an integer nor", .tensors = "'x':" META(7, "{'as_int':1.5}"));
    BAD("neither an integer nor", .tensors = "'x':" META(7, "4"));
    BAD("sizes of value x", .tensors = "'x':{'dtype':7}");
    BAD("sym_int_values is no object", .others = ",'sym_int_values':[]");
    REFUSED("dtype of value x", .tensors = "'x':" META(99, ""));
    REFUSED("dtype of value x", .tensors = "'x':" META(0, ""));
    REFUSED("value x is a sparse", .tensors = "'x':{'dtype':7,'sizes':[],'layout':1}");
}

#define BRANCH(name, out) "{'name':'','arg':{'as_graph':{'name':'" name "','graph':{'inputs':[" \
    TENSOR("x") ",{'as_int':3}," \
    "{'as_string':'x'}],'outputs':[" TENSOR(out) ",{'as_none':true}],'nodes':[" RELU("x", "y") \
    "],'tensor_values':{'x':" META(7, S0) "},'is_single_tensor_return':false}}}}"
#define COND(out) \
    "{'target':'torch.ops.higher_order.cond','inputs':[{'name':'','arg':{'as_bool':true}}," \
    BRANCH("true_graph_0", "y") "," BRANCH("false_graph_0", out) \
        ",{'name':'','arg':{'as_tensors':[{'name':'x'}]}}]," \
    "'outputs':[{'as_tensors':[{'name':'y'}]}],'is_hop_single_tensor_return':false}"

static void subgraphs(void)
{
    Program *p = READ(.nodes = COND("x"));
    Call    *c = p ? p->main->calls.at[0] : NULL;
    CHECK(c && same(c->target, "higher_order::cond") && c->nargs == 4 &&
          c->args[1].kind == ARG_BODY);
    CHECK(c && same(c->arg_names[1], "") && c->nouts == 1);
    if (!c)
        return;
    Body *yes = c->args[1].body, *no = c->args[2].body;
    CHECK(same(yes->name, "true_graph_0") && yes->inputs.n == 3 && yes->calls.n == 1 &&
          yes->outputs.n == 2);
    CHECK(yes->inputs.at[0] != p->inputs.at[0].var &&
          yes->outputs.at[0].var == yes->calls.at[0]->outs[0]);
    CHECK(yes->inputs.at[1] && yes->inputs.at[2] && !same(yes->inputs.at[2]->name, "x"));
    CHECK(no->outputs.at[0].var == no->inputs.at[0] && no->outputs.at[1].kind == ARG_NONE);
    /* A branch sees nothing of the graph around it. */
    BAD("value z is used", .nodes = RELU("x", "z") "," COND("z"));
}

static const Place *place_of(const char *metadata)
{
    Program *p = READ(.nodes = p2o_printf(arena, "{'target':'a.b','inputs':[],'outputs':["
                                          TENSOR("y") "],'metadata':%s}", metadata));
    return p ? p2o_place_at(diags, p->main->calls.at[0]->loc) : NULL;
}

static void places(void)
{
#define FRAME(file, line, func) "File \\'" file "\\', line " #line ", in " func "\\n    code()\\n"
    const Place *at = place_of("{'stack_trace':'" FRAME("/home/me/net.py", 41, "forward") "  "
                               FRAME("/x/torch/nn/linear.py", 134, "forward") "','nn_module_stack':"
                               "'L__self__,,net.M;L__self__enc,enc@1,net.E[a, b]'}");
    CHECK(at && same(at->file, "net.py") && at->line == 41 && same(at->func, "forward") &&
          same(at->module, "enc"));
    at = place_of("{'stack_trace':'" FRAME("torch/a.py", 1, "f") FRAME("b/torch/b.py", 2, "g")
                  "'}");
    CHECK(at && same(at->file, "b.py") && at->line == 2 && !at->module);
    at = place_of("{'stack_trace':'" FRAME("my model/a.py", 7, "f") "'}");
    CHECK(at && same(at->file, "a.py"));
    at = place_of("{'stack_trace':'nonsense\\nFile \\'a.py, line 3',"
                  "'nn_module_stack':'L[~a,b~],enc.proj,m.E'}");
    CHECK(at && !at->file && same(at->module, "enc.proj"));
    CHECK(!place_of("{'nn_module_stack':'_empty_nn_module_stack_from_metadata_hook,"
                    "_empty_nn_module_stack_from_metadata_hook,_empty'}"));
    CHECK(!place_of("{'stack_trace':'File \\'a.py\\', line 99999999999, in f',"
                    "'nn_module_stack':''}"));
    CHECK(!place_of("{'stack_trace':5,'nn_module_stack':[]}") && !place_of("null") &&
          !place_of("[]"));
}

static void signatures(void)
{
    Program *p = READ(.inputs = TENSOR("t") "," TENSOR("o") "," TENSOR("x")
                      ",{'as_float':2.5},{'as_none':true}",
        .in_specs =
            "{'token':{'arg':{'name':'t'}}},"
            "{'custom_obj':{'arg':{'name':'o','class_fqn':'c'},'custom_obj_name':'obj'}},"
            USER("x") ",{'constant_input':{'name':'k','value':{'as_float':2.5}}},"
            "{'user_input':{'arg':{'as_none':true}}}",
        .in_tree = "[1," TUPLE(TUPLE(LEAF "," LEAF "," LEAF) "," KWARGS) "]");
    CHECK(p && p->inputs.n == 3 && p->main->inputs.n == 1 && p->weights.n == 0);
    CHECK(p && same(p->inputs.at[1].name, "k") && !p->inputs.at[1].var &&
          p->inputs.at[1].constant.f == 2.5);
    CHECK(p && !p->inputs.at[2].var && p->inputs.at[2].constant.kind == ARG_NONE);
    CHECK(p && p2o_var_find(p->main, STR("t")) &&
          same(p2o_var_find(p->main, STR("o"))->fqn, "obj"));
    p = READ(.outputs = TENSOR("y") "," TENSOR("y") "," TENSOR("x") "," TENSOR("y"),
             .out_specs = "{'buffer_mutation':{'arg':{'name':'y'},'buffer_name':'b.n'}},"
                          "{'user_input_mutation':{'arg':{'name':'y'},'user_input_name':'x'}},"
                          "{'token':{'arg':{'name':'x'}}},"
                          RESULT("y"));
    CHECK(p && p->outputs.n == 3 && p->main->outputs.n == 3);
    CHECK(p && p->outputs.at[0].kind == OUT_BUFFER && same(p->outputs.at[0].name, "b.n"));
    CHECK(p && p->outputs.at[1].kind == OUT_INPUT && same(p->outputs.at[1].name, "x"));
    CHECK(p && p->outputs.at[2].kind == OUT_USER && same(p->outputs.at[2].name, "y"));
    BAD("2 inputs, the signature 1", .inputs = TENSOR("x") "," TENSOR("z"));
    BAD("1 outputs, the signature 2", .out_specs = RESULT("y") "," RESULT("y"));
    BAD("the signature says x where the graph says z", .inputs = TENSOR("z"));
    BAD("the signature says x where the graph says a literal", .inputs = "{'as_int':1}");
    BAD("the signature says z where the graph says y", .out_specs = RESULT("z"));
    BAD("value x is defined twice", .inputs = TENSOR("x") "," TENSOR("x"),
        .in_specs = USER("x") "," USER("x"));
    BAD("in_spec has 1 leaves, the program 2", .inputs = TENSOR("x") ",{'as_int':1}",
        .in_specs = USER("x") ",{'constant_input':{'name':'k','value':{'as_int':1}}}");
    BAD("out_spec has 2 leaves, the program 1", .out_tree = "[1," TUPLE(LEAF "," LEAF) "]");
    BAD("in_spec is no tree", .in_tree = "[1,");
    BAD("in_spec is no tree", .in_tree = "[1]");
    REFUSED("kind loss_output", .out_specs = "{'loss_output':{'arg':{'name':'y'}}}");
    REFUSED("kind gradient_to_parameter",
            .out_specs = "{'gradient_to_parameter':{'arg':{'name':'y'},'parameter_name':'a'}}");
    REFUSED("kind mystery", .in_specs = "{'mystery':{'arg':{'name':'x'}}}");
    REFUSED("custom object", .inputs = "{'as_custom_obj':{'name':'x','class_fqn':'c'}}",
            .in_specs = "{'user_input':{'arg':{'as_custom_obj':{'name':'x','class_fqn':'c'}}}}");
    REFUSED("neither a tensor nor", .outputs = "{'as_tensors':[{'name':'y'}]}",
            .out_specs = "{'user_output':{'arg':{'as_tensors':[{'name':'y'}]}}}");
}

/* Names of n outputs, all y, under an output tree: "a b c". */
static const char *output_names(const char *tree, int n)
{
    Buf outputs = { .arena = arena }, specs = { .arena = arena }, names = { .arena = arena };
    for (int i = 0; i < n; i++) {
        p2o_putf(&outputs, "%s" TENSOR("y"), i ? "," : "");
        p2o_putf(&specs, "%s" RESULT("y"), i ? "," : "");
    }
    Program *p = READ(.outputs = n ? outputs.at : "", .out_specs = n ? specs.at : "",
                      .out_tree = p2o_printf(arena, "[1,%s]", tree),
                      .module = ",'treespec_namedtuple_fields':{'m.Pair':"
                                "{'field_names':['first','second']}}");
    for (size_t i = 0; p && i < p->outputs.n; i++)
        p2o_putf(&names, "%s%s", i ? " " : "", p->outputs.at[i].name);
    return p && names.at ? names.at : "";
}

#define NODE(type, context, children) "{'type':'" type "','context':" context ",'children_spec':[" \
    children "]}"
#define NAMES(expected, n, tree) CHECK(same(output_names(tree, n), expected))

static void trees(void)
{
    NAMES("y", 1, LEAF);
    NAMES("y y_1 y_2", 3, TUPLE(LEAF "," TUPLE(LEAF "," LEAF)));
    NAMES("y y_1", 2, NODE("builtins.list", "'null'", LEAF "," LEAF));
    NAMES("out pair_0 pair_1", 3, NODE("builtins.dict", "'[`out`, `pair`]'",
                                       LEAF "," TUPLE(LEAF "," LEAF)));
    /* x is an input */
    NAMES("x_1 y", 2, NODE("collections.OrderedDict", "'[`x`, `y`]'", LEAF "," LEAF));
    NAMES("0_a 1_a", 2, TUPLE(NODE("builtins.dict", "'[`a`]'", LEAF) ","
                              NODE("builtins.dict", "'[`a`]'", LEAF)));
    NAMES("a_b a_b_1", 2, NODE("builtins.dict", "'[`a`, `a_b`]'",
                               NODE("builtins.dict", "'[`b`]'", LEAF) "," LEAF));
    NAMES("1 True None 3", 4, NODE("builtins.dict", "'[1, true, null, [2]]'",
                                   LEAF "," LEAF "," LEAF "," LEAF));
    NAMES("q", 1, NODE("collections.defaultdict",
                       "{'default_factory_module':'builtins','default_factory_name':'list',"
                       "'dict_context':['q']}", LEAF));
    NAMES("y", 1, NODE("collections.deque", "'3'", LEAF));
    NAMES("first second", 2, NODE("collections.namedtuple", "'m.Pair'", LEAF "," LEAF));
    NAMES("y y_1", 2, NODE("collections.namedtuple", "'m.Other'", LEAF "," LEAF));
    NAMES("u v", 2, NODE("m.Data", "'[[`u`, `v`], [`w`]]'", LEAF "," LEAF));
    NAMES("logits", 1, NODE("transformers.Output", "'[`logits`]'", LEAF));
    NAMES("y y_1", 2, NODE("m.Opaque", "'not json'", LEAF "," LEAF));
    NAMES("y y_1", 2, NODE("m.Opaque", "null", LEAF "," LEAF));
    NAMES("k_0 l", 2, NODE("torch.fx.immutable_collections.immutable_dict", "'[`k`, `e`, `l`]'",
                           NODE("torch.fx.immutable_collections.immutable_list", "'null'", LEAF) ","
                           TUPLE("") "," LEAF));
}

#define LIST(children) NODE("builtins.list", "'null'", children)

/* Keys and values of attention are named by their layers. */
static void caches(void)
{
    NAMES("present.0.key present.1.key present.0.value present.1.value", 4,
          NODE("m.Cache", "'[`key_cache`, `value_cache`]'", LIST(LEAF "," LEAF) ","
               LIST(LEAF "," LEAF)));
    NAMES("logits past.0.key past.0.value past.0.length", 4,
          NODE("builtins.dict", "'[`logits`, `past`]'", LEAF ","
               NODE("m.Cache", "'[`key_cache`, `value_cache`, `length`]'",
                    LIST(LEAF) "," LIST(LEAF) "," LIST(LEAF))));
    NAMES("key_cache_0 value_cache_0 value_cache_1", 3,
          NODE("m.Cache", "'[`key_cache`, `value_cache`]'", LIST(LEAF) "," LIST(LEAF "," LEAF)));
    NAMES("present.0.key present.0.value present.1.key present.1.value", 4,
          NODE("builtins.dict", "'[`past_key_values`]'",
               TUPLE(TUPLE(LEAF "," LEAF) "," TUPLE(LEAF "," LEAF))));
    NAMES("kv_cache.0.decoder.key kv_cache.0.decoder.value kv_cache.0.encoder.key "
          "kv_cache.0.encoder.value", 4,
          NODE("builtins.dict", "'[`kv_cache`]'",
               LIST(TUPLE(LEAF "," LEAF "," LEAF "," LEAF))));
    NAMES("present.0.decoder.key present.0.decoder.value present.0.encoder.key "
          "present.0.encoder.value", 4,
          NODE("m.Both", "'[`self_attention_cache`, `cross_attention_cache`]'",
               NODE("m.Cache", "'[`key_cache`, `value_cache`]'", LIST(LEAF) "," LIST(LEAF)) ","
               NODE("m.Cache", "'[`key_cache`, `value_cache`]'", LIST(LEAF) "," LIST(LEAF))));
    NAMES("states_0_0 states_0_1", 2,
          NODE("builtins.dict", "'[`states`]'", LIST(TUPLE(LEAF "," LEAF))));
    NAMES("past_0_0 past_0_1 past_1", 3,
          NODE("builtins.dict", "'[`past`]'", LIST(TUPLE(LEAF "," LEAF) "," LEAF)));
    NAMES("past_0_0 past_0_1 past_1_0", 3,
          NODE("builtins.dict", "'[`past`]'", LIST(TUPLE(LEAF "," LEAF) "," TUPLE(LEAF))));
    NAMES("y", 1, TUPLE(NODE("m.Cache", "'[`key_cache`, `value_cache`]'", LIST("") "," LIST(""))
                        "," LEAF));
}

static void deep_trees(void)
{
    /* Nested past the JSON reader's limit, and a path too long to be a name. */
    Buf deep = { .arena = arena };
    for (int i = 0; i < 300; i++)
        p2o_puts(&deep, "{'type':'builtins.tuple','context':'null','children_spec':[");
    p2o_puts(&deep, LEAF);
    for (int i = 0; i < 300; i++)
        p2o_puts(&deep, "]}");
    CHECK(same(output_names(deep.at, 1), "") && said(DIAG_BAD_PROGRAM, "out_spec is no tree"));
    char *key = p2o_alloc(arena, 2001);
    memset(key, 'k', 2000);
    CHECK(same(output_names(p2o_printf(arena, NODE("builtins.dict", "'[`%s`]'", LEAF), key), 1),
               "y"));
    CHECK(same(output_names(NODE("builtins.dict", "'[`a\\\\nb`]'", LEAF), 1), "a_b"));
}

/* All that is wrong is reported in one run, but not without end. */
static void many_errors(void)
{
    CHECK(!READ(.nodes = RELU("a", "y") "," RELU("b", "z") "," RELU("c", "w")) &&
          p2o_diags_errors(diags) == 3);
    Buf nodes = { .arena = arena };
    for (int i = 0; i < 1000; i++)
        p2o_putf(&nodes, "%s" RELU("gone", "y%d"), i ? "," : "", i);
    CHECK(!READ(.nodes = nodes.at) && p2o_diags_errors(diags) >= 50 &&
          p2o_diags_errors(diags) < 70);
}

/* Every truncation is an error; a changed byte is an error or another program. */
static void broken(void)
{
    Parts p = with_weight();
    p.nodes = COND("x");
    Rec recs[] = { { "m/archive_format", STR("pt2"), false },
                   { "m/models/model.json", program_json(&p), false },
                   { "m/data/weights/model_weights_config.json",
                     text("{'config':{'a.w':" GOOD "}}"), false },
                   { "m/data/weights/weight_0", STR(FLOATS), false } };
    Str       zip = make_zip(recs, 4);
    size_t    refused = 0, explained = 0;
    char     *copy = p2o_alloc(arena, zip.n);
    ArenaMark mark = p2o_arena_mark(arena);

    CHECK(read_zip(zip) != NULL);
    for (size_t i = 0; i < zip.n; i += 7, p2o_arena_rewind(arena, mark))
        refused += !read_zip((Str){ zip.p, i }) && p2o_diags_errors(diags) > 0;
    CHECK(refused == (zip.n + 6) / 7);
    for (size_t i = 0; i < zip.n; i++, p2o_arena_rewind(arena, mark)) {
        memcpy(copy, zip.p, zip.n);
        copy[i] = (char)(copy[i] ^ (i % 3 == 0 ? 1 : i % 3 == 1 ? 0x10 : 0xFF));
        explained += (read_zip((Str){ copy, zip.n }) == NULL) == (p2o_diags_errors(diags) > 0);
    }
    CHECK(explained == zip.n);
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    smallest();
    header();
    layouts();
    weights();
    shared_weights();
    saved_weights();
    wrapped_tensors();
    oldest();
    scalars();
    lists();
    bad_arguments();
    targets();
    results();
    recorded();
    subgraphs();
    places();
    signatures();
    trees();
    caches();
    deep_trees();
    many_errors();
    broken();
    p2o_arena_free(arena);
    return check_report();
}
