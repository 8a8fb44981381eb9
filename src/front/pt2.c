/* The layouts of a .pt2, and the program around its graph: versions, signature, ranges, names.
 *
 * 2.1 to 2.7 wrote a flat zip with serialized_exported_program.json; since 2.8 an archive holds
 * models/NAME.json beside its weights.  The JSON inside is one schema that grew: unknown keys are
 * ignored and missing ones take their defaults. */
#include "front/pt2.h"

#include "base/num.h"
#include "front/pt2_parts.h"
#include "front/torch_save.h"

enum { NEWEST_MAJOR = 8 };

/* A constant without values: see drop_idle. */
typedef struct Unreal {
    Var        *var;
    WeightSet  *from;
    const char *fqn;
} Unreal;

typedef struct Pt2File {
    Pt2         pt2;
    const char *root;
    const Json *json;                   /* the ExportedProgram */
    const Json *module;                 /* its graph_module */
    WeightSet   weights, constants;
    Map         flat;                   /* 2.1: a graph input -> its weight's name, as Json */
    Pt2Graph    main;
    Pt2Leaves   leaves;                 /* of the arguments */
    VEC(Unreal) unreal;
} Pt2File;

static const ZipEntry *find_record(const Pt2File *f, const char *root, const char *dir, Str model,
                                   const char *suffix)
{
    const char *name = p2o_printf(f->pt2.arena, "%s%s%.*s%s", root, dir, STR_ARG(model), suffix);
    return p2o_zip_find(f->pt2.zip, str_of(name));
}

static const Json *read_json(Pt2 *r, const ZipEntry *e)
{
    Str text;
    if (!p2o_zip_read(r->diags, r->zip, e, &text))
        return NULL;
    return p2o_json_parse(r->diags, text, p2o_str_dup(r->arena, e->name));
}

/* The name in models/NAME.json: "model", or the only one there is. */
static bool choose_model(Pt2File *f, Str *model)
{
    const char *prefix = p2o_printf(f->pt2.arena, "%smodels/", f->root);
    Buf         all = { .arena = f->pt2.arena };
    size_t      skip = strlen(prefix), found = 0;

    for (size_t i = 0; i < f->pt2.zip->n; i++) {
        Str name = f->pt2.zip->entries[i].name;
        if (!p2o_str_starts(name, prefix) || !p2o_str_ends(name, ".json") || name.n < skip + 5)
            continue;
        name = (Str){ name.p + skip, name.n - skip - 5 };
        if (str_is(name, "model")) {
            *model = name;
            return true;
        }
        p2o_putf(&all, "%s%s", found++ ? ", " : "", p2o_pt2_show(&f->pt2, name));
        *model = name;
    }
    if (found > 1)
        p2o_diag(f->pt2.diags, DIAG_UNSUPPORTED, 0,
                 "the archive holds %zu models and none is called model: %s", found, all.at);
    else if (!found)
        p2o_diag(f->pt2.diags, DIAG_BAD_FILE, 0, "the archive holds no models/*.json");
    return found == 1;
}

/* Weights or constants of an archive: a list and raw payloads (2.9 on), or a torch.save (2.8). */
static void open_weights(Pt2File *f, WeightSet *w, const char *kind, Str model)
{
    Pt2            *r = &f->pt2;
    const char     *dir = p2o_printf(r->arena, "%sdata/%s/", f->root, kind);
    const ZipEntry *config = find_record(f, "", dir, model,
                                         p2o_printf(r->arena, "_%s_config.json", kind));
    const ZipEntry *saved = find_record(f, "", dir, model, ".pt");

    if (config)
        p2o_pt2_weights_config(r, w, config, dir);
    else if (saved)
        p2o_pt2_weights_saved(r, w, saved);
}

static void open_flat_weights(Pt2File *f, WeightSet *w, const char *name)
{
    /* 2.1 and 2.2 call it .json, though it never was. */
    const ZipEntry *e = find_record(f, "", "", str_of(name), ".pt");
    if (!e)
        e = find_record(f, "", "", str_of(name), ".json");
    if (e)
        p2o_pt2_weights_saved(&f->pt2, w, e);
}

static bool open_archive(Pt2File *f)
{
    Pt2            *r = &f->pt2;
    const ZipEntry *flat = p2o_zip_find(r->zip, STR("serialized_exported_program.json"));
    Str             model, format = { "", 0 };

    if (flat) {
        open_flat_weights(f, &f->weights, "serialized_state_dict");
        open_flat_weights(f, &f->constants, "serialized_constants");
        f->json = read_json(r, flat);
        return f->json != NULL;
    }
    f->root = p2o_torch_save_root(r->zip);
    const ZipEntry *e = find_record(f, f->root, "archive_format", format, "");
    if (!e || !p2o_zip_read(r->diags, r->zip, e, &format) || !str_is(p2o_str_trim(format), "pt2")) {
        p2o_diag(r->diags, DIAG_BAD_FILE, 0, "no torch.export program: archive_format is not pt2");
        return false;
    }
    if (!p2o_torch_save_byteorder(r->diags, r->zip, f->root, &r->big_endian) ||
        !choose_model(f, &model))
        return false;
    open_weights(f, &f->weights, "weights", model);
    open_weights(f, &f->constants, "constants", model);
    f->json = read_json(r, find_record(f, f->root, "models/", model, ".json"));
    return f->json != NULL;
}

static void read_version(Pt2File *f)
{
    Pt2        *r = &f->pt2;
    const Json *version = p2o_pt2_get(f->json, "schema_version");
    const Json *torch = p2o_pt2_get(f->json, "torch_version");
    const Json *major = version, *minor = NULL;
    Str         rest;

    if (version && version->kind == JSON_OBJ) {
        major = p2o_pt2_get(version, "major");
        minor = p2o_pt2_get(version, "minor");
    }
    long long hi = major && major->kind == JSON_INT ? major->i : 0;
    long long lo = minor && minor->kind == JSON_INT ? minor->i : 0;
    if (torch && torch->kind == JSON_STR && torch->s.n)
        r->program->producer = p2o_printf(r->arena, "PyTorch %s",
                                          p2o_pt2_show(r, p2o_str_cut(torch->s, '+', &rest)));
    else
        r->program->producer = p2o_printf(r->arena, "PyTorch, export schema %lld.%lld", hi, lo);
    if (hi < 0 || hi > NEWEST_MAJOR)
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "export schema %lld.%lld is newer than %d", hi, lo,
                 NEWEST_MAJOR);
}

/* null and the infinities: unbounded. */
static bool read_bound(const Json *j, int64_t unbounded, int64_t *v)
{
    double f;
    *v = j && j->kind == JSON_INT ? j->i : unbounded;
    if (!j || j->kind == JSON_INT)
        return true;
    if (!p2o_pt2_is_float(j, &f))
        return false;
    if (f > -9e15 && f < 9e15)
        *v = (int64_t)f;
    return f == f && (f < -9e15 || f > 9e15 || (double)*v == f);
}

static void read_ranges(Pt2File *f)
{
    Pt2        *r = &f->pt2;
    const Json *ranges = p2o_pt2_get(f->json, "range_constraints");

    for (uint32_t i = 0; ranges && ranges->kind == JSON_OBJ && i < ranges->n; i++) {
        const Json  *x = &ranges->members[i].value;
        const char  *error = NULL, *shown = p2o_pt2_show(r, ranges->members[i].key);
        ProgramRange range = { .expr = p2o_str_dup(r->arena, ranges->members[i].key) };

        range.dim = p2o_dim_parse(r->program->dims, ranges->members[i].key, &error);
        if (error)
            p2o_pt2_bad(r, 0, "range of %s: %s", shown, error);
        else if (!read_bound(p2o_pt2_get(x, "min_val"), NO_LOWER, &range.lo) ||
                 !read_bound(p2o_pt2_get(x, "max_val"), NO_UPPER, &range.hi) || range.lo > range.hi)
            p2o_pt2_bad(r, 0, "range of %s is none", shown);
        else
            VEC_PUSH(r->arena, &r->program->ranges, range);
    }
}

static void read_guards(Pt2File *f)
{
    Pt2        *r = &f->pt2;
    const Json *guards = p2o_pt2_get(f->json, "guards_code");
    for (size_t i = 0; i < p2o_pt2_count(guards); i++) {
        const char *text = p2o_pt2_name(r, 0, &guards->items[i], "a guard");
        if (text)
            VEC_PUSH(r->arena, &r->program->guards, text);
    }
}

static void add_weight(Pt2File *f, const char *name, const char *fqn, bool is_constant)
{
    Pt2 *r = &f->pt2;
    if (!name || !fqn)
        return;
    Var *v = p2o_pt2_define(r, &f->main, name);
    if (!v)
        return;
    WeightSet *from = is_constant ? &f->constants : &f->weights;
    WeightSet *other = is_constant ? &f->weights : &f->constants;
    /* Before 2.3 the file does not say which buffers are not persistent. */
    if (!p2o_pt2_weights_have(from, fqn) && p2o_pt2_weights_have(other, fqn))
        from = other;
    if (is_constant && p2o_pt2_weight_is_unreal(from, fqn)) {
        VEC_PUSH(r->arena, &f->unreal, ((Unreal){ v, from, fqn }));
        return;
    }
    v->tensor = p2o_pt2_weight(r, from, fqn);
    v->fqn = fqn;
    VEC_PUSH(r->arena, &r->program->weights, v);
}

/* A literal is an argument that was baked in. */
static void add_user_input(Pt2File *f, const Json *arg)
{
    Pt2        *r = &f->pt2;
    Str         key;
    const Json *x = p2o_pt2_union(r, 0, arg, &key);
    const Json *ref = x && !str_is(key, "as_string") ? p2o_pt2_reference(x) : NULL;

    if (!x)
        return;
    if (str_is(key, "as_custom_obj")) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "input %zu is a custom object",
                 r->program->inputs.n);
        return;
    }
    if (!ref) {
        VEC_PUSH(r->arena, &r->program->inputs, (InputSpec){
            .name = p2o_printf(r->arena, "input_%zu", r->program->inputs.n),
            .constant = p2o_pt2_arg(r, &f->main, arg) });
        return;
    }
    const char *name = p2o_pt2_name(r, 0, ref, "an input's name");
    Var        *v = name ? p2o_pt2_define(r, &f->main, name) : NULL;
    if (!v)
        return;
    if (v->recorded.kind == TY_NONE)
        p2o_pt2_bad(r, 0, "input %s has no recorded type", name);
    VEC_PUSH(r->arena, &r->program->main->inputs, v);
    VEC_PUSH(r->arena, &r->program->inputs, (InputSpec){ .name = v->name, .var = v });
}

static void add_constant_input(Pt2File *f, const Json *spec)
{
    Pt2        *r = &f->pt2;
    const char *name = p2o_pt2_name(r, 0, p2o_pt2_get(spec, "name"), "a constant input's name");
    if (name)
        VEC_PUSH(r->arena, &r->program->inputs, (InputSpec){
            .name = name, .constant = p2o_pt2_arg(r, &f->main, p2o_pt2_get(spec, "value")) });
}

/* The name in {"name": n} or in an Argument; NULL for literals and lists. */
static const Json *loose_reference(const Json *j)
{
    const Json *ref = p2o_pt2_reference(j);
    for (uint32_t i = 0; !ref && j && j->kind == JSON_OBJ && i < j->n; i++)
        if (j->members[i].value.kind == JSON_OBJ)
            ref = p2o_pt2_reference(&j->members[i].value);
    return ref;
}

/* The signature and the graph each name an input or output: the same one. */
static void check_same_name(Pt2File *f, const Json *in_signature, const Json *in_graph)
{
    const Json *a = loose_reference(in_signature), *b = loose_reference(in_graph);
    if ((a || b) && (!a || !b || !str_eq(a->s, b->s)))
        p2o_pt2_bad(&f->pt2, 0, "the signature says %s where the graph says %s",
                    a ? p2o_pt2_show(&f->pt2, a->s) : "a literal",
                    b ? p2o_pt2_show(&f->pt2, b->s) : "a literal");
}

static const char *spec_name(Pt2File *f, const Json *spec, const char *field)
{
    return p2o_pt2_name(&f->pt2, 0, p2o_pt2_get(spec, field), field);
}

static void read_input_spec(Pt2File *f, const Json *union_, const Json *graph_input)
{
    Pt2        *r = &f->pt2;
    Str         key;
    const Json *spec = p2o_pt2_union(r, 0, union_, &key);

    if (!spec)
        return;
    if (str_is(key, "constant_input")) {
        add_constant_input(f, spec);
        return;
    }
    check_same_name(f, p2o_pt2_get(spec, "arg"), graph_input);
    if (str_is(key, "user_input")) {
        add_user_input(f, p2o_pt2_get(spec, "arg"));
        return;
    }
    const char *name = spec_name(f, p2o_pt2_get(spec, "arg"), "name");
    if (str_is(key, "parameter")) {
        add_weight(f, name, spec_name(f, spec, "parameter_name"), false);
    } else if (str_is(key, "buffer")) {
        const Json *persistent = p2o_pt2_get(spec, "persistent");
        add_weight(f, name, spec_name(f, spec, "buffer_name"),
                   persistent && persistent->kind == JSON_BOOL && !persistent->b);
    } else if (str_is(key, "tensor_constant")) {
        add_weight(f, name, spec_name(f, spec, "tensor_constant_name"), true);
    } else if (str_is(key, "custom_obj")) {
        /* Without a tensor or a type: whoever uses it is refused for that, later. */
        Var *v = name ? p2o_pt2_define(r, &f->main, name) : NULL;
        if (v)
            v->fqn = spec_name(f, spec, "custom_obj_name");
    } else if (str_is(key, "token")) {
        if (name)
            p2o_pt2_define(r, &f->main, name);
    } else {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "an input of kind %s is not known",
                 p2o_pt2_show(r, key));
    }
}

/* 2.1: maps from the graph's input names to the weights' names; the others are the user's. */
static void read_flat_signature(Pt2File *f, const Json *sig)
{
    static const char *const maps[] = { "inputs_to_buffers", "inputs_to_parameters" };
    f->flat.arena = f->pt2.arena;
    for (size_t k = 0; k < COUNT_OF(maps); k++) {
        const Json *map = p2o_pt2_get(sig, maps[k]);
        for (uint32_t i = 0; map && map->kind == JSON_OBJ && i < map->n; i++)
            map_put(&f->flat, map->members[i].key, &map->members[i].value);
    }
}

static void read_flat_input(Pt2File *f, const Json *graph_input)
{
    const Json *ref = loose_reference(graph_input);
    const char *name = ref ? p2o_pt2_name(&f->pt2, 0, ref, "an input's name") : NULL;
    const Json *fqn = name ? p2o_map_get(&f->flat, str_of(name)) : NULL;

    if (fqn)
        add_weight(f, name, p2o_pt2_name(&f->pt2, 0, fqn, "a weight's name"), false);
    else
        add_user_input(f, graph_input);
}

/* 2.1 keeps tensor constants in the graph itself. */
static void read_embedded(Pt2File *f)
{
    Pt2        *r = &f->pt2;
    const Json *constants = p2o_pt2_get(f->main.json, "constants");
    for (uint32_t i = 0; constants && constants->kind == JSON_OBJ && i < constants->n; i++) {
        const Json  key = { .kind = JSON_STR, .s = constants->members[i].key };
        const char *name = p2o_pt2_name(r, 0, &key, "a constant's name");
        Var        *v = name ? p2o_pt2_define(r, &f->main, name) : NULL;
        if (!v)
            continue;
        v->tensor = p2o_pt2_embedded(r, &constants->members[i].value, name);
        v->fqn = v->name;
        VEC_PUSH(r->arena, &r->program->weights, v);
    }
}

static const Json *tree_spec(const Pt2File *f, const char *which)
{
    const Json *calls = p2o_pt2_get(f->module, "module_call_graph");
    const Json *spec = p2o_pt2_get(p2o_pt2_get(f->module, "call_spec"), which);      /* 2.1 */
    for (size_t i = 0; i < p2o_pt2_count(calls); i++) {
        const Json *fqn = p2o_pt2_get(&calls->items[i], "fqn");
        const Json *signature = p2o_pt2_get(&calls->items[i], "signature");
        if (fqn && fqn->kind == JSON_STR && fqn->s.n == 0 && signature)
            return p2o_pt2_get(signature, which);
    }
    return spec;
}

static Pt2Leaves read_tree(Pt2File *f, const char *which)
{
    const Json *fields = p2o_pt2_get(f->module, "treespec_namedtuple_fields");
    return p2o_pt2_leaves(&f->pt2, tree_spec(f, which), fields, which);
}

/* `stem`, or stem_1, stem_2 ...; `taken` counts on from the last number given out. */
static const char *free_name(Map *taken, const char *stem)
{
    uintptr_t   k = (uintptr_t)p2o_map_get(taken, str_of(stem));
    const char *name = stem;
    while (p2o_map_get(taken, str_of(name)))
        name = p2o_printf(taken->arena, "%s_%zu", stem, (size_t)k++);
    if (k)
        map_put(taken, str_of(stem), (void *)k);
    map_put(taken, str_of(name), (void *)1);
    return name;
}

/* The parts of a cache by their layers; other inputs keep the names that PyTorch gave them. */
static void name_inputs(Pt2File *f)
{
    Program *p = f->pt2.program;
    Map      taken = { .arena = p->arena };
    for (size_t i = 0; i < p->inputs.n; i++)
        if (p->inputs.at[i].var)
            p->inputs.at[i].name =
                free_name(&taken, p2o_pt2_input_name(p->arena, &f->leaves.list.at[i],
                                                     p->inputs.at[i].name));
}

static void read_inputs(Pt2File *f, const Json *sig)
{
    Pt2        *r = &f->pt2;
    const Json *inputs = p2o_pt2_get(f->main.json, "inputs");
    const Json *specs = p2o_pt2_get(sig, "input_specs");
    size_t      n = p2o_pt2_count(inputs);

    if (specs && p2o_pt2_count(specs) != n) {
        p2o_pt2_bad(r, 0, "the graph has %zu inputs, the signature %zu", n, p2o_pt2_count(specs));
        return;
    }
    if (!specs)
        read_flat_signature(f, sig);
    for (size_t i = 0; i < n; i++) {
        if (specs)
            read_input_spec(f, &specs->items[i], &inputs->items[i]);
        else
            read_flat_input(f, &inputs->items[i]);
    }
    read_embedded(f);
    f->leaves = read_tree(f, "in_spec");
    if (f->leaves.known && f->leaves.list.n != r->program->inputs.n && !p2o_pt2_failed(r))
        p2o_pt2_bad(r, 0, "in_spec has %zu leaves, the program %zu inputs", f->leaves.list.n,
                    r->program->inputs.n);
    if (f->leaves.known && !p2o_pt2_failed(r))
        name_inputs(f);
}

/* What an output spec says, however the file spells it. */
typedef struct OutputNote {
    bool        ignored;                /* a token, or already reported */
    OutputKind  kind;
    const char *name;                   /* of a mutated buffer or input */
} OutputNote;

static OutputNote read_output_spec(Pt2File *f, const Json *union_, const Json *graph_output)
{
    Pt2        *r = &f->pt2;
    Str         key;
    const Json *spec = p2o_pt2_union(r, 0, union_, &key);

    if (!spec || str_is(key, "token"))
        return (OutputNote){ .ignored = true };
    check_same_name(f, p2o_pt2_get(spec, "arg"), graph_output);
    if (str_is(key, "user_output"))
        return (OutputNote){ .kind = OUT_USER };
    if (str_is(key, "buffer_mutation"))
        return (OutputNote){ .kind = OUT_BUFFER, .name = spec_name(f, spec, "buffer_name") };
    if (str_is(key, "parameter_mutation"))
        return (OutputNote){ .kind = OUT_BUFFER, .name = spec_name(f, spec, "parameter_name") };
    if (str_is(key, "user_input_mutation"))
        return (OutputNote){ .kind = OUT_INPUT, .name = spec_name(f, spec, "user_input_name") };
    p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "an output of kind %s is not supported",
             p2o_pt2_show(r, key));
    return (OutputNote){ .ignored = true };
}

/* 2.1: the first outputs are the buffers', in the map's order. */
static OutputNote read_flat_output(Pt2File *f, const Json *sig, size_t i)
{
    const Json *mutated = p2o_pt2_get(sig, "buffers_to_mutate");
    if (!mutated || mutated->kind != JSON_OBJ || i >= mutated->n)
        return (OutputNote){ .kind = OUT_USER };
    return (OutputNote){ .kind = OUT_BUFFER,
                         .name = p2o_pt2_name(&f->pt2, 0, &mutated->members[i].value,
                                              "a buffer's name") };
}

static void add_output(Pt2File *f, OutputNote note, const Json *arg)
{
    Pt2 *r = &f->pt2;
    Arg  value = p2o_pt2_arg(r, &f->main, arg);
    bool fine = value.kind == ARG_NONE || value.kind == ARG_VAR || value.kind == ARG_INT ||
                value.kind == ARG_FLOAT || value.kind == ARG_BOOL || value.kind == ARG_STR;

    if (!fine || p2o_pt2_get(arg, "as_custom_obj")) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "output %zu is neither a tensor nor a number",
                 r->program->outputs.n);
        return;
    }
    VEC_PUSH(r->arena, &r->program->main->outputs, value);
    VEC_PUSH(r->arena, &r->program->outputs,
             (OutputSpec){ .kind = note.kind, .name = note.name, .value = value });
}

/* Paths where the user named something, else the names of the values; no two alike, and none an
 * input's. */
static void name_outputs(Pt2File *f, const Pt2Leaves *leaves)
{
    Program *p = f->pt2.program;
    Map      taken = { .arena = p->arena };
    size_t   leaf = 0;

    for (size_t i = 0; i < p->inputs.n; i++)
        map_put(&taken, str_of(p->inputs.at[i].name), (void *)1);
    for (size_t i = 0; i < p->outputs.n; i++) {
        OutputSpec *o = &p->outputs.at[i];
        if (o->kind != OUT_USER)
            continue;
        const Pt2Leaf *x = leaves->known ? &leaves->list.at[leaf] : NULL;
        const char    *path = x ? p2o_pt2_output_name(p->arena, x, &f->leaves) : NULL;
        if (!path && o->value.kind == ARG_VAR)
            path = o->value.var->name;
        o->name = free_name(&taken, path ? path : p2o_printf(p->arena, "output_%zu", leaf));
        leaf++;
    }
}

static void read_outputs(Pt2File *f, const Json *sig)
{
    Pt2        *r = &f->pt2;
    const Json *outputs = p2o_pt2_get(f->main.json, "outputs");
    const Json *specs = p2o_pt2_get(sig, "output_specs");
    size_t      n = p2o_pt2_count(outputs), users = 0;

    if (specs && p2o_pt2_count(specs) != n) {
        p2o_pt2_bad(r, 0, "the graph has %zu outputs, the signature %zu", n, p2o_pt2_count(specs));
        return;
    }
    if (p2o_pt2_get(sig, "backward_signature"))
        p2o_diag(r->diags, DIAG_UNSUPPORTED, 0, "the program computes gradients");
    for (size_t i = 0; i < n; i++) {
        OutputNote note = specs ? read_output_spec(f, &specs->items[i], &outputs->items[i]) :
                          read_flat_output(f, sig, i);
        if (note.ignored)
            continue;
        users += note.kind == OUT_USER;
        add_output(f, note, &outputs->items[i]);
    }
    Pt2Leaves leaves = read_tree(f, "out_spec");
    if (leaves.known && leaves.list.n != users && !p2o_pt2_failed(r))
        p2o_pt2_bad(r, 0, "out_spec has %zu leaves, the program %zu outputs", leaves.list.n, users);
    if (!p2o_pt2_failed(r))
        name_outputs(f, &leaves);
}

static void mark_used(const Arg *x, bool *used)
{
    if (x->kind == ARG_VAR)
        used[x->var->id] = true;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        mark_used(&x->items[i], used);
}

static bool takes_any(const Arg *x, const bool *vars)
{
    bool takes = x->kind == ARG_VAR && vars[x->var->id];
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n && !takes; i++)
        takes = takes_any(&x->items[i], vars);
    return takes;
}

/* Whether each call has a result that is asked for, or is there for something else. */
static bool *used_calls(const Program *p, bool *vars)
{
    const Body *b = p->main;
    bool       *calls = NEW_N(p->arena, bool, b->calls.n + 1);
    for (size_t i = 0; i < b->outputs.n; i++)
        mark_used(&b->outputs.at[i], vars);
    for (size_t i = b->calls.n; i-- > 0;) {
        const Call *c = b->calls.at[i];
        calls[i] = c->nouts == 0;
        for (int k = 0; k < c->nouts; k++)
            calls[i] |= c->outs[k] && vars[c->outs[k]->id];
        for (int k = 0; k < c->nargs; k++)
            calls[i] |= c->args[k].kind == ARG_BODY;
        for (int k = 0; k < c->nargs && calls[i]; k++)
            mark_used(&c->args[k], vars);
    }
    return calls;
}

/* Tracing torch.vmap leaves calls behind that nobody uses, on constants that have no values. */
static void drop_idle(Pt2File *f)
{
    Pt2  *r = &f->pt2;
    Body *b = r->program->main;
    bool *used = NEW_N(r->arena, bool, (size_t)r->program->nvar + 1);
    bool *unreal = NEW_N(r->arena, bool, (size_t)r->program->nvar + 1);
    bool *calls = used_calls(r->program, used);
    for (size_t i = 0; i < f->unreal.n; i++) {
        unreal[f->unreal.at[i].var->id] = true;
        if (used[f->unreal.at[i].var->id])
            p2o_pt2_weight(r, f->unreal.at[i].from, f->unreal.at[i].fqn);      /* says why not */
    }
    size_t n = 0;
    for (size_t i = 0; i < b->calls.n; i++) {
        Call *c = b->calls.at[i];
        bool  idle = false;
        for (int k = 0; k < c->nargs && !calls[i]; k++)
            idle |= takes_any(&c->args[k], unreal);
        for (int k = 0; k < c->nouts && idle; k++)
            if (c->outs[k])
                unreal[c->outs[k]->id] = true;
        if (!idle)
            b->calls.at[n++] = c;
    }
    b->calls.n = n;
}

static Program *read_program(Pt2File *f, Dims *t)
{
    Pt2 *r = &f->pt2;

    r->program = p2o_program_new(r->diags, t);
    read_version(f);
    f->module = p2o_pt2_get(f->json, "graph_module");
    f->main = (Pt2Graph){ .json = p2o_pt2_get(f->module, "graph"), .body = r->program->main };
    const Json *sig = p2o_pt2_get(f->module, "signature");
    if (!f->main.json || !sig) {
        p2o_pt2_bad(r, 0, "the program has no graph or no signature");
        return NULL;
    }
    read_ranges(f);
    read_guards(f);
    p2o_pt2_values(r, &f->main);
    read_inputs(f, sig);
    p2o_pt2_calls(r, &f->main);
    read_outputs(f, sig);
    if (f->unreal.n)
        drop_idle(f);
    return p2o_pt2_failed(r) ? NULL : r->program;
}

static Pt2File new_reader(Diags *d, const Zip *z)
{
    return (Pt2File){ .pt2 = { .diags = d, .arena = p2o_diags_arena(d), .zip = z,
                               .errors_before = p2o_diags_errors(d) }, .root = "" };
}

Program *p2o_pt2_read(Diags *d, Dims *t, const Zip *z)
{
    Pt2File f = new_reader(d, z);
    return open_archive(&f) ? read_program(&f, t) : NULL;
}

Program *p2o_pt2_read_json(Diags *d, Dims *t, Str json, const NamedTensor *weights, size_t n)
{
    Pt2File f = new_reader(d, NULL);
    for (size_t i = 0; i < n; i++)
        p2o_pt2_weights_given(&f.pt2, &f.weights, weights[i].name, weights[i].tensor);
    f.json = p2o_json_parse(d, json, "the program");
    return f.json ? read_program(&f, t) : NULL;
}

bool p2o_pt2_port_names(Diags *d, const Json *given, Buf *out)
{
    Pt2File     f = new_reader(d, NULL);
    const Json *names = p2o_pt2_get(given, "names");
    f.leaves = p2o_pt2_leaves(&f.pt2, p2o_pt2_get(given, "in_spec"),
                              p2o_pt2_get(given, "treespec_namedtuple_fields"), "in_spec");
    if (p2o_pt2_failed(&f.pt2) || f.leaves.list.n != p2o_pt2_count(names)) {
        p2o_pt2_bad(&f.pt2, 0, "%zu names for %zu leaves", p2o_pt2_count(names),
                    f.leaves.list.n);
        return false;
    }
    p2o_puts(out, "[");
    for (size_t i = 0; i < f.leaves.list.n; i++) {
        const char *name = p2o_pt2_name(&f.pt2, 0, &names->items[i], "an input's name");
        p2o_puts(out, i ? ", " : "");
        p2o_json_quote(out, str_of(p2o_pt2_input_name(f.pt2.arena, &f.leaves.list.at[i],
                                                      name ? name : "")));
    }
    p2o_puts(out, "]");
    return !p2o_pt2_failed(&f.pt2);
}
