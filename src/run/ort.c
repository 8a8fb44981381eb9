/* The C API is one table of function pointers that only ever grows at its end
 * (onnxruntime_c_api.h), so the few functions used here are declared by slot number and taken from
 * the table by index.  All of them are there since its second version; 17 is asked for because
 * older runtimes lack operators we write.  Everything the runtime hands out is kept where
 * p2o_ort_close finds it, so that running out of memory in between loses nothing. */
#define _GNU_SOURCE
#include "run/ort.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/num.h"
#include "base/vec.h"

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorInfo OrtTensorInfo;             /* OrtTensorTypeAndShapeInfo */
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtMetadata OrtMetadata;                 /* OrtModelMetadata */

enum { API_VERSION = 17 };
enum { ORT_LOG_FATAL = 4, ORT_TYPE_TENSOR = 1, ORT_DEVICE_ALLOCATOR = 0, ORT_MEM_DEFAULT = 0 };
/* Element types are TensorProto's numbers up to here; later ones are numbered otherwise. */
enum { ORT_LAST_COMMON_TYPE = 20 };

/* slot, result, name, parameters */
#define ORT_CALLS(X)                                                                             \
    X(2, const char *, GetErrorMessage, (const OrtStatus *))                                     \
    X(3, OrtStatus *, CreateEnv, (int severity, const char *log_id, OrtEnv **))                  \
    X(6, OrtStatus *, DisableTelemetryEvents, (const OrtEnv *))                                  \
    X(7, OrtStatus *, CreateSession,                                                             \
      (const OrtEnv *, const char *path, const OrtSessionOptions *, OrtSession **))              \
    X(9, OrtStatus *, Run,                                                                       \
      (OrtSession *, const OrtRunOptions *, const char *const *in_names,                         \
       const OrtValue *const *in, size_t nin, const char *const *out_names, size_t nout,         \
       OrtValue **out))                                                                          \
    X(10, OrtStatus *, CreateSessionOptions, (OrtSessionOptions **))                             \
    X(22, OrtStatus *, SetSessionLogSeverityLevel, (OrtSessionOptions *, int severity))          \
    X(24, OrtStatus *, SetIntraOpNumThreads, (OrtSessionOptions *, int n))                       \
    X(25, OrtStatus *, SetInterOpNumThreads, (OrtSessionOptions *, int n))                       \
    X(29, OrtStatus *, RegisterCustomOpsLibrary,                                                 \
      (OrtSessionOptions *, const char *path, void **library))                                   \
    X(30, OrtStatus *, SessionGetInputCount, (const OrtSession *, size_t *))                     \
    X(31, OrtStatus *, SessionGetOutputCount, (const OrtSession *, size_t *))                    \
    X(33, OrtStatus *, SessionGetInputTypeInfo, (const OrtSession *, size_t, OrtTypeInfo **))    \
    X(34, OrtStatus *, SessionGetOutputTypeInfo, (const OrtSession *, size_t, OrtTypeInfo **))   \
    X(36, OrtStatus *, SessionGetInputName,                                                      \
      (const OrtSession *, size_t, OrtAllocator *, char **))                                     \
    X(37, OrtStatus *, SessionGetOutputName,                                                     \
      (const OrtSession *, size_t, OrtAllocator *, char **))                                     \
    X(49, OrtStatus *, CreateTensorWithDataAsOrtValue,                                           \
      (const OrtMemoryInfo *, void *data, size_t nbytes, const int64_t *sizes, size_t rank,      \
       int type, OrtValue **))                                                                   \
    X(51, OrtStatus *, GetTensorMutableData, (OrtValue *, void **))                              \
    X(55, OrtStatus *, CastTypeInfoToTensorInfo, (const OrtTypeInfo *, const OrtTensorInfo **))  \
    X(56, OrtStatus *, GetOnnxTypeFromTypeInfo, (const OrtTypeInfo *, int *))                    \
    X(60, OrtStatus *, GetTensorElementType, (const OrtTensorInfo *, int *))                     \
    X(61, OrtStatus *, GetDimensionsCount, (const OrtTensorInfo *, size_t *))                    \
    X(62, OrtStatus *, GetDimensions, (const OrtTensorInfo *, int64_t *, size_t))                \
    X(63, OrtStatus *, GetSymbolicDimensions, (const OrtTensorInfo *, const char **, size_t))    \
    X(65, OrtStatus *, GetTensorTypeAndShape, (const OrtValue *, OrtTensorInfo **))              \
    X(69, OrtStatus *, CreateCpuMemoryInfo, (int allocator, int memory, OrtMemoryInfo **))       \
    X(76, OrtStatus *, AllocatorFree, (OrtAllocator *, void *))                                  \
    X(78, OrtStatus *, GetAllocatorWithDefaultOptions, (OrtAllocator **))                        \
    X(92, void, ReleaseEnv, (OrtEnv *))                                                          \
    X(93, void, ReleaseStatus, (OrtStatus *))                                                    \
    X(94, void, ReleaseMemoryInfo, (OrtMemoryInfo *))                                            \
    X(95, void, ReleaseSession, (OrtSession *))                                                  \
    X(96, void, ReleaseValue, (OrtValue *))                                                      \
    X(98, void, ReleaseTypeInfo, (OrtTypeInfo *))                                                \
    X(99, void, ReleaseTensorTypeAndShapeInfo, (OrtTensorInfo *))                                \
    X(100, void, ReleaseSessionOptions, (OrtSessionOptions *))                                   \
    X(111, OrtStatus *, SessionGetModelMetadata, (const OrtSession *, OrtMetadata **))           \
    X(116, OrtStatus *, ModelMetadataLookupCustomMetadataMap,                                    \
      (const OrtMetadata *, OrtAllocator *, const char *key, char **))                           \
    X(118, void, ReleaseModelMetadata, (OrtMetadata *))

typedef struct OrtCalls {
#define X(slot, result, name, params) result (*name) params;
    ORT_CALLS(X)
#undef X
} OrtCalls;

typedef void AnyFn(void);

typedef struct OrtApiBase {
    AnyFn *const *(*GetApi)(uint32_t version);          /* NULL: the runtime is older */
    const char *(*GetVersionString)(void);
} OrtApiBase;

struct Ort {
    Arena        *arena;
    void         *library;
    const char   *path, *version;
    OrtCalls      call;
    OrtEnv       *env;
    OrtAllocator *allocator;            /* the runtime's own: not released */
    OrtMemoryInfo *memory;
    OrtStatus    *status;               /* the complaint being read */
    VEC(const char *) kernels;          /* paths of the user's libraries */
    OrtModel     *models;
};

struct OrtModel {
    Ort               *ort;
    Diags             *diags;
    OrtModel          *next;            /* in ort->models */
    OrtSessionOptions *options;
    OrtSession        *session;
    OrtMetadata       *metadata;
    VEC(void *)        libraries;       /* opened for this session, closed after it */
    size_t             nin, nout;
    OrtPort           *in, *out;
    const char       **in_names, **out_names;
    OrtValue         **in_values, **out_values;         /* of the run under way */
    OrtTypeInfo       *type;                            /* under inspection */
    OrtTensorInfo     *tensor;
    char              *text;                            /* of the runtime's allocator */
};

/* The first line of the complaint, NULL when there is none; releases the status. */
static const char *complaint(Arena *a, Ort *o, OrtStatus *st)
{
    if (!st)
        return NULL;
    o->status = st;
    Str         rest, all = str_of(o->call.GetErrorMessage(st));
    const char *text = p2o_str_dup(a, p2o_str_trim(p2o_str_cut(all, '\n', &rest)));
    o->call.ReleaseStatus(st);
    o->status = NULL;
    return *text ? text : "unknown error";
}

static bool reported(Ort *o, Diags *d, OrtStatus *st)
{
    const char *why = complaint(p2o_diags_arena(d), o, st);
    if (why)
        p2o_diag(d, DIAG_RUNTIME, 0, "onnx runtime: %s", why);
    return why != NULL;
}

typedef struct OrtSearch {
    Arena *arena;
    Ort   *ort;
    Buf    tried;                       /* places, for the message */
} OrtSearch;

static void note_place(OrtSearch *s, const char *place, const char *why)
{
    p2o_putf(&s->tried, "%s%s", s->tried.n ? ", " : "", place);
    if (why)
        p2o_putf(&s->tried, " (%s)", why);
}

static void bind_calls(OrtCalls *c, AnyFn *const *table)
{
#define X(slot, result, name, params) c->name = (result (*) params)table[slot];
    ORT_CALLS(X)
#undef X
}

/* Asked before GetApi, which prints when it refuses. */
static bool is_recent(const OrtApiBase *base)
{
    Str     rest, major = p2o_str_cut(str_of(base->GetVersionString()), '.', &rest);
    int64_t n = 0, minor = 0;
    return p2o_parse_i64(major, &n) && p2o_parse_i64(p2o_str_cut(rest, '.', &rest), &minor) &&
           (n > 1 || (n == 1 && minor >= API_VERSION));
}

/* NODELETE: the runtime's threads and exit handlers outlive its unloading. */
static bool try_library(OrtSearch *s, const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib) {
        note_place(s, path, strchr(path, '/') ? dlerror() : NULL);
        return false;
    }
    void *symbol = dlsym(lib, "OrtGetApiBase");
    const OrtApiBase *(*get_base)(void);
    memcpy(&get_base, &symbol, sizeof get_base);        /* C has no cast from object to function */
    const OrtApiBase *base = symbol ? get_base() : NULL;
    AnyFn *const     *table = base && is_recent(base) ? base->GetApi(API_VERSION) : NULL;
    if (!table) {
        note_place(s, path, base ? p2o_printf(s->arena, "version %s, older than 1.%d",
                                              base->GetVersionString(), API_VERSION)
                                 : "not onnx runtime");
        dlclose(lib);
        return false;
    }
    Ort *o = NEW(s->arena, Ort);
    o->arena = s->arena;
    o->library = lib;
    o->path = p2o_str_dup(s->arena, str_of(path));
    o->version = p2o_str_dup(s->arena, str_of(base->GetVersionString()));
    bind_calls(&o->call, table);
    s->ort = o;
    return true;
}

/* Every match of the pattern, the last (highest version) first. */
static bool try_pattern(OrtSearch *s, const char *pattern)
{
    glob_t g;
    bool   found = false;
    if (glob(pattern, 0, NULL, &g) != 0) {
        note_place(s, pattern, NULL);
        return false;
    }
    for (size_t i = g.gl_pathc; i > 0 && !found; i--)
        found = try_library(s, g.gl_pathv[i - 1]);
    globfree(&g);
    return found;
}

static bool try_folder(OrtSearch *s, const char *folder)
{
    return try_pattern(s, p2o_printf(s->arena, "%s/libonnxruntime.so*", folder));
}

/* The folder and those above it, each with `below` added. */
static bool try_upwards(OrtSearch *s, Str folder, const char *below)
{
    for (int depth = 0; depth < 32; depth++) {
        glob_t      g;
        const char *pattern = p2o_printf(s->arena, "%.*s/%s", STR_ARG(folder), below);
        if (glob(pattern, 0, NULL, &g) == 0) {
            globfree(&g);
            if (try_pattern(s, pattern))
                return true;
        }
        while (folder.n && folder.p[folder.n - 1] != '/')
            folder.n--;
        if (folder.n == 0)
            break;
        folder.n--;
    }
    return false;
}

static bool try_beside_program(OrtSearch *s)
{
    static const char below[] = ".deps/onnxruntime/libonnxruntime.so*";
    char              self[4096];
    ssize_t           n = readlink("/proc/self/exe", self, sizeof self);
    Str               folder = { self, n > 0 ? (size_t)n : 0 };

    while (folder.n && folder.p[folder.n - 1] != '/')
        folder.n--;
    if (folder.n == 0)
        return false;
    folder.n--;
    note_place(s, p2o_printf(s->arena, "%s in %.*s and above", below, STR_ARG(folder)), NULL);
    return try_folder(s, p2o_str_dup(s->arena, folder)) || try_upwards(s, folder, below);
}

static bool try_node_modules(OrtSearch *s)
{
    static const char package[] = "node_modules/onnxruntime-node";
    char              here[4096];
    if (!getcwd(here, sizeof here))
        return false;
    note_place(s, p2o_printf(s->arena, "%s here and above", package), NULL);
    return try_upwards(s, str_of(here), p2o_printf(s->arena,
                       "%s/bin/napi-v*/linux/*/libonnxruntime.so*", package));
}

static bool try_wheels(OrtSearch *s, const char *prefix)
{
    return prefix && try_folder(s, p2o_printf(s->arena, "%s/python3*/*-packages/onnxruntime/capi",
                                              prefix));
}

static bool search_everywhere(OrtSearch *s)
{
    const char *asked = getenv("PT2ONNX_ORT"), *venv = getenv("VIRTUAL_ENV");
    const char *home = getenv("HOME");
    if (asked && *asked) {
        if (access(p2o_printf(s->arena, "%s/.", asked), F_OK) == 0)
            return try_folder(s, asked);
        return try_library(s, strchr(asked, '/') ? asked : p2o_printf(s->arena, "./%s", asked));
    }
    return try_beside_program(s) ||
           try_wheels(s, venv && *venv ? p2o_printf(s->arena, "%s/lib", venv) : NULL) ||
           try_node_modules(s) ||
           try_wheels(s, home && *home ? p2o_printf(s->arena, "%s/.local/lib", home) : NULL) ||
           try_wheels(s, "/usr/local/lib") || try_wheels(s, "/usr/lib") ||
           try_library(s, "libonnxruntime.so") || try_library(s, "libonnxruntime.so.1");
}

Ort *p2o_ort_load(Diags *d)
{
    OrtSearch s = { .arena = p2o_diags_arena(d), .tried = { .arena = p2o_diags_arena(d) } };
    if (!search_everywhere(&s)) {
        p2o_diag_advise(d, DIAG_RUNTIME, 0,
                        "run `make demo` in the source folder or `pip install onnxruntime`, or set "
                        "PT2ONNX_ORT to libonnxruntime.so",
                        "no onnx runtime found: looked for %s", s.tried.n ? s.tried.at : "nothing");
        return NULL;
    }
    Ort *o = s.ort;
    if (reported(o, d, o->call.CreateEnv(ORT_LOG_FATAL, "pt2onnx", &o->env)) ||
        reported(o, d, o->call.DisableTelemetryEvents(o->env)) ||
        reported(o, d, o->call.GetAllocatorWithDefaultOptions(&o->allocator)) ||
        reported(o, d, o->call.CreateCpuMemoryInfo(ORT_DEVICE_ALLOCATOR, ORT_MEM_DEFAULT,
                                                   &o->memory))) {
        p2o_ort_unload(o);
        return NULL;
    }
    return o;
}

void p2o_ort_unload(Ort *o)
{
    if (!o || !o->library)
        return;
    while (o->models)
        p2o_ort_close(o->models);
    if (o->status)
        o->call.ReleaseStatus(o->status);
    if (o->memory)
        o->call.ReleaseMemoryInfo(o->memory);
    if (o->env)
        o->call.ReleaseEnv(o->env);
    dlclose(o->library);
    o->library = NULL;
}

const char *p2o_ort_version(const Ort *o) { return o->version; }
const char *p2o_ort_path(const Ort *o) { return o->path; }

static void drop_type(OrtModel *m)
{
    const OrtCalls *c = &m->ort->call;
    if (m->type)
        c->ReleaseTypeInfo(m->type);
    if (m->tensor)
        c->ReleaseTensorTypeAndShapeInfo(m->tensor);
    m->type = NULL;
    m->tensor = NULL;
}

static void drop_text(OrtModel *m)
{
    const Ort *o = m->ort;
    OrtStatus *st = m->text ? o->call.AllocatorFree(o->allocator, m->text) : NULL;
    if (st)
        o->call.ReleaseStatus(st);
    m->text = NULL;
}

static void drop_values(OrtModel *m)
{
    for (size_t i = 0; m->in_values && i < m->nin; i++) {
        if (m->in_values[i])
            m->ort->call.ReleaseValue(m->in_values[i]);
        m->in_values[i] = NULL;
    }
    for (size_t i = 0; m->out_values && i < m->nout; i++) {
        if (m->out_values[i])
            m->ort->call.ReleaseValue(m->out_values[i]);
        m->out_values[i] = NULL;
    }
}

/* A copy of m->text, which is given back. */
static const char *take_text(OrtModel *m)
{
    const char *z = m->text ? p2o_str_dup(m->ort->arena, str_of(m->text)) : NULL;
    drop_text(m);
    return z;
}

static DType dtype_of_ort(int type)
{
    return type > ORT_LAST_COMMON_TYPE ? DT_NONE : p2o_dtype_from_onnx(type);
}

/* The names belong to the type under inspection, so they are copied. */
static bool describe_dims(OrtModel *m, const OrtTensorInfo *info, OrtPort *port)
{
    const OrtCalls *c = &m->ort->call;
    Arena          *a = m->ort->arena;
    size_t          rank;
    if (reported(m->ort, m->diags, c->GetDimensionsCount(info, &rank)))
        return false;
    int64_t     *sizes = NEW_N(a, int64_t, rank + 1);
    const char **dims = NEW_N(a, const char *, rank + 1);
    if (rank && (reported(m->ort, m->diags, c->GetDimensions(info, sizes, rank)) ||
                 reported(m->ort, m->diags, c->GetSymbolicDimensions(info, dims, rank))))
        return false;
    for (size_t i = 0; i < rank; i++)
        dims[i] = dims[i] ? p2o_str_dup(a, str_of(dims[i])) : "";
    port->rank = (int)rank;
    port->sizes = sizes;
    port->dims = dims;
    return true;
}

static bool describe_type(OrtModel *m, const char *what, OrtPort *port)
{
    const OrtCalls *c = &m->ort->call;
    int             kind = 0, type = 0;
    const OrtTensorInfo *info = NULL;

    if (reported(m->ort, m->diags, c->GetOnnxTypeFromTypeInfo(m->type, &kind)) ||
        reported(m->ort, m->diags, c->CastTypeInfoToTensorInfo(m->type, &info)))
        return false;
    if (kind != ORT_TYPE_TENSOR || !info) {
        p2o_diag(m->diags, DIAG_UNSUPPORTED, 0,
                 "%s '%s' is a sequence, map or optional: expected a tensor", what, port->name);
        return false;
    }
    if (reported(m->ort, m->diags, c->GetTensorElementType(info, &type)))
        return false;
    port->dtype = dtype_of_ort(type);
    if (p2o_dtype_bytes(port->dtype) == 0) {
        p2o_diag(m->diags, DIAG_UNSUPPORTED, 0,
                 "%s '%s' has elements of kind %s: expected numbers", what, port->name,
                 port->dtype == DT_STR ? "string" : p2o_printf(m->ort->arena, "%d", type));
        return false;
    }
    return describe_dims(m, info, port);
}

static bool describe_port(OrtModel *m, bool is_input, size_t i, OrtPort *port)
{
    const OrtCalls *c = &m->ort->call;
    OrtAllocator   *al = m->ort->allocator;

    if (reported(m->ort, m->diags, is_input ? c->SessionGetInputName(m->session, i, al, &m->text)
                                            : c->SessionGetOutputName(m->session, i, al, &m->text)))
        return false;
    port->name = take_text(m);
    if (reported(m->ort, m->diags, is_input ? c->SessionGetInputTypeInfo(m->session, i, &m->type)
                                            : c->SessionGetOutputTypeInfo(m->session, i, &m->type)))
        return false;
    bool ok = describe_type(m, is_input ? "input" : "output", port);
    drop_type(m);
    return ok;
}

static bool describe_ports(OrtModel *m)
{
    const OrtCalls *c = &m->ort->call;
    Arena          *a = m->ort->arena;
    size_t          nin, nout;
    if (reported(m->ort, m->diags, c->SessionGetInputCount(m->session, &nin)) ||
        reported(m->ort, m->diags, c->SessionGetOutputCount(m->session, &nout)))
        return false;
    m->in = NEW_N(a, OrtPort, nin + 1);
    m->out = NEW_N(a, OrtPort, nout + 1);
    m->in_names = NEW_N(a, const char *, nin + 1);
    m->out_names = NEW_N(a, const char *, nout + 1);
    m->in_values = NEW_N(a, OrtValue *, nin + 1);
    m->out_values = NEW_N(a, OrtValue *, nout + 1);
    m->nin = nin;
    m->nout = nout;
    for (size_t i = 0; i < nin + nout; i++) {
        bool     is_input = i < nin;
        size_t   k = is_input ? i : i - nin;
        OrtPort *port = is_input ? &m->in[k] : &m->out[k];
        if (!describe_port(m, is_input, k, port))
            return false;
        (is_input ? m->in_names : m->out_names)[k] = port->name;
    }
    return true;
}

static bool add_kernels(OrtModel *m)
{
    Ort *o = m->ort;
    for (size_t i = 0; i < o->kernels.n; i++) {
        VEC_PUSH(o->arena, &m->libraries, NULL);
        if (reported(o, m->diags,
                     o->call.RegisterCustomOpsLibrary(m->options, o->kernels.at[i],
                                                      &m->libraries.at[i])))
            return false;
    }
    return true;
}

void p2o_ort_use(Ort *o, const char *path) { VEC_PUSH(o->arena, &o->kernels, path); }

static bool start_session(OrtModel *m, const char *path)
{
    Ort            *o = m->ort;
    const OrtCalls *c = &o->call;
    return !reported(o, m->diags, c->CreateSessionOptions(&m->options)) &&
           !reported(o, m->diags, c->SetSessionLogSeverityLevel(m->options, ORT_LOG_FATAL)) &&
           !reported(o, m->diags, c->SetIntraOpNumThreads(m->options, 1)) &&
           !reported(o, m->diags, c->SetInterOpNumThreads(m->options, 1)) && add_kernels(m) &&
           !reported(o, m->diags, c->CreateSession(o->env, path, m->options, &m->session)) &&
           !reported(o, m->diags, c->SessionGetModelMetadata(m->session, &m->metadata));
}

OrtModel *p2o_ort_open(Ort *o, Diags *d, const char *path)
{
    OrtModel *m = NEW(o->arena, OrtModel);
    m->ort = o;
    m->diags = d;
    m->next = o->models;
    o->models = m;
    if (start_session(m, path) && describe_ports(m))
        return m;
    p2o_ort_close(m);
    return NULL;
}

void p2o_ort_close(OrtModel *m)
{
    if (!m || !m->ort)
        return;
    const OrtCalls *c = &m->ort->call;
    drop_values(m);
    drop_type(m);
    drop_text(m);
    if (m->metadata)
        c->ReleaseModelMetadata(m->metadata);
    if (m->session)
        c->ReleaseSession(m->session);
    if (m->options)
        c->ReleaseSessionOptions(m->options);
    for (size_t i = 0; i < m->libraries.n; i++)
        if (m->libraries.at[i])
            dlclose(m->libraries.at[i]);
    for (OrtModel **at = &m->ort->models; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    m->ort = NULL;
}

size_t         p2o_ort_ninput(const OrtModel *m) { return m->nin; }
size_t         p2o_ort_noutput(const OrtModel *m) { return m->nout; }
const OrtPort *p2o_ort_input(const OrtModel *m, size_t i) { return &m->in[i]; }
const OrtPort *p2o_ort_output(const OrtModel *m, size_t i) { return &m->out[i]; }

const char *p2o_ort_meta(OrtModel *m, const char *key)
{
    const Ort *o = m->ort;
    OrtStatus *st = o->call.ModelMetadataLookupCustomMetadataMap(m->metadata, o->allocator, key,
                                                                 &m->text);
    if (st) {
        o->call.ReleaseStatus(st);
        return NULL;
    }
    return take_text(m);
}

static const char *fetch_output(Arena *a, OrtModel *m, size_t i, Array *out)
{
    Ort            *o = m->ort;
    const OrtCalls *c = &o->call;
    int             type = 0;
    size_t          rank = 0;
    void           *data = NULL;
    const char     *why;

    if ((why = complaint(a, o, c->GetTensorTypeAndShape(m->out_values[i], &m->tensor))) ||
        (why = complaint(a, o, c->GetTensorElementType(m->tensor, &type))) ||
        (why = complaint(a, o, c->GetDimensionsCount(m->tensor, &rank))))
        return why;
    int64_t *sizes = NEW_N(a, int64_t, rank + 1);
    if ((rank && (why = complaint(a, o, c->GetDimensions(m->tensor, sizes, rank)))) ||
        (why = complaint(a, o, c->GetTensorMutableData(m->out_values[i], &data))))
        return why;
    drop_type(m);
    if (!p2o_array_make(a, dtype_of_ort(type), (int)rank, sizes, out))
        return p2o_printf(a, "output '%s' has a type or size that cannot be held", m->out[i].name);
    if (out->nbytes)
        memcpy(out->data, data, out->nbytes);
    return NULL;
}

static const char *run_values(Arena *a, OrtModel *m, const Array *in, Array *out)
{
    Ort            *o = m->ort;
    const OrtCalls *c = &o->call;
    const char     *why;

    for (size_t i = 0; i < m->nin; i++)
        if ((why = complaint(a, o, c->CreateTensorWithDataAsOrtValue(
                 o->memory, in[i].data, in[i].nbytes, in[i].sizes, (size_t)in[i].rank,
                 p2o_dtype_onnx(in[i].dtype), &m->in_values[i]))))
            return why;
    if ((why = complaint(a, o, c->Run(m->session, NULL, m->in_names,
                                      (const OrtValue *const *)m->in_values, m->nin, m->out_names,
                                      m->nout, m->out_values))))
        return why;
    for (size_t i = 0; i < m->nout; i++)
        if ((why = fetch_output(a, m, i, &out[i])))
            return why;
    return NULL;
}

const char *p2o_ort_run(Arena *a, OrtModel *m, const Array *in, Array *out)
{
    const char *why = run_values(a, m, in, out);
    drop_type(m);
    drop_values(m);
    return why;
}
