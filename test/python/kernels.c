/* A library of kernels as users of ONNX Runtime have them: com.example:SoftCap(x, cap) is
 * cap * tanh(x / cap).  The slice of the C API that it takes is declared by slot, as in
 * src/run/ort.c. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void AnyFn(void);
typedef struct ApiBase {
    AnyFn *const *(*GetApi)(uint32_t version);
} ApiBase;

enum { API_VERSION = 17, CUSTOM_OP_VERSION = 8, FLOAT = 1, REQUIRED = 0 };
enum {
    CREATE_DOMAIN = 26, DOMAIN_ADD = 27, ADD_DOMAIN = 28, MUTABLE_DATA = 51, DIM_COUNT = 61,
    DIMS = 62, ELEMENTS = 64, TYPE_AND_SHAPE = 65, ATTRIBUTE_FLOAT = 85, GET_INPUT = 90, GET_OUTPUT = 91,
    RELEASE_TYPE_AND_SHAPE = 99
};
#define CALL(slot, ...) ((void *(*)(__VA_ARGS__))api[slot])

typedef struct CustomOp CustomOp;
struct CustomOp {
    uint32_t version;
    void *(*CreateKernel)(const CustomOp *, const void *api, const void *info);
    const char *(*GetName)(const CustomOp *);
    const char *(*GetExecutionProviderType)(const CustomOp *);
    int (*GetInputType)(const CustomOp *, size_t);
    size_t (*GetInputTypeCount)(const CustomOp *);
    int (*GetOutputType)(const CustomOp *, size_t);
    size_t (*GetOutputTypeCount)(const CustomOp *);
    void (*KernelCompute)(void *kernel, void *context);
    void (*KernelDestroy)(void *kernel);
    int (*GetInputCharacteristic)(const CustomOp *, size_t);
    int (*GetOutputCharacteristic)(const CustomOp *, size_t);
};

static AnyFn *const *api;

static void *create_kernel(const CustomOp *op, const void *a, const void *info)
{
    (void)op, (void)a;
    float *cap = malloc(sizeof *cap);
    CALL(ATTRIBUTE_FLOAT, const void *, const char *, float *)(info, "cap", cap);
    return cap;
}

static void compute(void *kernel, void *context)
{
    const float *cap = kernel;
    const void  *x;
    void        *y, *info;
    float       *in, *out;
    size_t       rank = 0, n = 0;
    int64_t      sizes[16];
    CALL(GET_INPUT, void *, size_t, const void **)(context, 0, &x);
    CALL(TYPE_AND_SHAPE, const void *, void **)(x, &info);
    CALL(DIM_COUNT, const void *, size_t *)(info, &rank);
    CALL(DIMS, const void *, int64_t *, size_t)(info, sizes, rank);
    CALL(ELEMENTS, const void *, size_t *)(info, &n);
    ((void (*)(void *))api[RELEASE_TYPE_AND_SHAPE])(info);
    CALL(GET_OUTPUT, void *, size_t, const int64_t *, size_t, void **)(context, 0, sizes, rank, &y);
    CALL(MUTABLE_DATA, const void *, float **)(x, &in);
    CALL(MUTABLE_DATA, void *, float **)(y, &out);
    for (size_t i = 0; i < n; i++)
        out[i] = *cap * tanhf(in[i] / *cap);
}

static const char *name_of(const CustomOp *op) { (void)op; return "SoftCap"; }
static const char *provider_of(const CustomOp *op) { (void)op; return NULL; }
static int    float_of(const CustomOp *op, size_t i) { (void)op, (void)i; return FLOAT; }
static int    required(const CustomOp *op, size_t i) { (void)op, (void)i; return REQUIRED; }
static size_t one_of(const CustomOp *op) { (void)op; return 1; }

static const CustomOp soft_cap = {
    CUSTOM_OP_VERSION, create_kernel, name_of, provider_of, float_of, one_of, float_of, one_of,
    compute, free, required, required
};

__attribute__((visibility("default"))) void *RegisterCustomOps(void *options, const ApiBase *base)
{
    void *domain = NULL, *status;
    api = base->GetApi(API_VERSION);
    status = CALL(CREATE_DOMAIN, const char *, void **)("com.example", &domain);
    if (!status)
        status = CALL(DOMAIN_ADD, void *, const CustomOp *)(domain, &soft_cap);
    if (!status)
        status = CALL(ADD_DOMAIN, void *, void *)(options, domain);
    return status;
}
