/* Is the model right at sizes it was not captured at?  The engine behind `verify` and `run`.
 *
 * An axis's name in the model is a claim: a symbol, or an expression of symbols such as
 * `past + seq`.  Sizes are read off the inputs, and every output's shape is held against its claims
 * at those sizes, whether or not numbers are compared.  A name that reads as no expression is a
 * symbol of that name; an input axis without a name is called `input.axis`. */
#ifndef P2O_RUN_VERIFY_H
#define P2O_RUN_VERIFY_H

#include "run/ort.h"

/* One finished line a size: "[ok] batch=7 seq=31  max diff 2.4e-07", "[runs] batch=7  shapes as
 * declared" where there were no numbers to compare, "[FAIL] batch=7  why". */
typedef void VerifyLineFn(void *user, bool ok, const char *line);

typedef struct VerifyOptions {
    double        atol, rtol;           /* negative: p2o_verify_tolerance of the output's type */
    VerifyLineFn *line;
    void         *user;
    Arena        *scratch;              /* rewound after each size; not the diagnostics' arena */
} VerifyOptions;

typedef struct VerifyCount {            /* added to, so several calls sum up */
    size_t nrun, nfail;
    double max_diff;                    /* over all sizes that passed */
} VerifyCount;

/* What two correct implementations may differ by: f32 and f64 1e-5 + 1e-4 |y|, f16
 * 1e-3 + 1e-2 |y|, bf16 1e-2 + 2e-2 |y|; integers and bools must be equal. */
Tolerance p2o_verify_tolerance(DType t);

/* Both return ST_OK, ST_VERIFY when a size failed, or another status after a diagnostic. */

/* Recorded inputs and outputs: `s<K>.in.<i>` and `s<K>.out.<j>`, each K one run. */
Status p2o_verify_data(Diags *d, OrtModel *m, const Npz *data, const VerifyOptions *o,
                       VerifyCount *count);
/* Random inputs at every combination of sizes ("batch=1,2,7 seq=1,5", at most 10,000); a symbol
 * without a size is 2, which a note says. */
Status p2o_verify_sizes(Diags *d, OrtModel *m, const char *sizes, const VerifyOptions *o,
                        VerifyCount *count);

/* One run: inputs from `data` (NULL: none; keys `s0.in.<i>` or the inputs' names), the rest random
 * at the sizes given ("batch=7" ...), read off the data, or 2.  The named outputs are in the
 * diagnostics' arena.  false after a diagnostic. */
bool p2o_verify_run(Diags *d, OrtModel *m, const char *const *sizes, size_t nsizes, const Npz *data,
                    NamedArray **out, size_t *nout);

#endif
