/* What is wrong at other sizes, whatever the numbers of an ONNX file are: sizes that would have to
 * shrink or to be equal where they are not, results that only happened to be as long as an
 * input. */
#include "dyn/large.h"
#include "dyn/onnx_numbers.h"

#include "onnx/onnx_ops.h"

enum { LEAST_TELLING = 16 };            /* smaller numbers are in too many models to show a size */

static LargeSizes large_sizes(const Weighing *w)
{
    return (LargeSizes){ .symbols = w->symbols.at, .n = w->symbols.n };
}

static bool is_same_at_large_sizes(const Weighing *w, Dim a, Dim b)
{
    LargeSizes at = large_sizes(w);
    return p2o_large_same(w->s->prog->dims, &at, a, b);
}

/* Of an upsampled image: it was as large as an input, and is not even at sizes that everything
 * divides. */
static void doubt_result(Weighing *w, const NodeCall *k)
{
    const Node *n = k->file->node;
    int64_t     size, of;
    const Value *y = n->op == ONNX_ConvTranspose && n->nout ? n->out[0] : NULL;
    for (int d = 2; y && y->dtype && d < y->shape.rank; d++) {
        Dim now = p2o_resolve(w->s->bind, n->out[0]->shape.at[d]);
        if (p2o_dim_is_sym(now) || p2o_dim_is_int(now, NULL) ||
            !p2o_hint_at(w->s->bind, now, 0, &size))
            continue;
        for (size_t i = 0; i < w->symbols.n; i++)
            if (p2o_hint_at(w->s->bind, w->symbols.at[i], 0, &of) && of == size &&
                !is_same_at_large_sizes(w, now, w->symbols.at[i]))
                p2o_onnx_refuse(w, &k->call,
                                p2o_printf(w->arena, "its result was as long as %s, and is not at "
                                           "other sizes",
                                           p2o_dim_name(w->symbols.at[i])));
    }
}

/* Small sizes may be too small for the model, but none is too large; a pad has no least size. */
static bool is_negative_somewhere(const Weighing *w, Dim d, bool pad)
{
    Dims          *t = w->s->prog->dims;
    LargeSizes     at = large_sizes(w);
    int64_t        v;
    for (int i = 0; pad && i < NPROBE; i++)
        if (p2o_probe(t, w->symbols.at, w->symbols.n, d, i, &v) && v < 0)
            return true;
    return p2o_large_eval(t, &at, d, &v) && v < 0;
}

static int64_t slot_number(const SizeSlot *slot, size_t e)
{
    int64_t v = 0;
    p2o_dim_is_int(slot->was->ints[e], &v);
    return v;
}

static void doubt_negative(Weighing *w, const NodeCall *k)
{
    const Node *n = k->file->node;
    for (size_t c = 0; c < k->slots.n; c++) {
        const SizeSlot *slot = &k->slots.at[c];
        char            letter = p2o_onnx_number_letter(n, slot->input);
        for (size_t e = 0; !slot->form && letter != 'P' && e < slot->was->nints; e++) {
            Dim d = slot->open[e] ? p2o_resolve(w->s->bind, slot->open[e]) : NULL;
            if (d && is_negative_somewhere(w, d, letter == 'A'))
                p2o_onnx_refuse(w, &k->call,
                                p2o_printf(w->arena,
                                           "%lld would be %s, which is less than 0 at some sizes",
                                           (long long)slot_number(slot, e),
                                           p2o_dim_text(w->s->prog->dims, d)));
        }
    }
}

/* Sizes that were taken because they are the same, and are numbers of many models as well. */
static void doubt_small(Weighing *w)
{
    const OnnxSettling *s = w->s;
    for (size_t i = 0; i < p2o_bind_nevent(s->bind); i++) {
        const BindEvent *e = p2o_bind_event(s->bind, i);
        int64_t          v;
        Loc              loc = 0;
        const char      *target = p2o_soft_of(s->bind, e->sym, &loc);
        if (e->why != BIND_EVIDENCE || p2o_dim_is_int(e->to, NULL) ||
            !p2o_hint_at(s->bind, e->sym, 0, &v) || v >= LEAST_TELLING)
            continue;
        Call from = { .target = target ? target : "a size", .loc = loc };
        p2o_onnx_refuse(w, &from,
                        p2o_printf(w->arena,
                                   "whether %lld is a number or follows %s cannot be told",
                                   (long long)v, p2o_dim_text(s->prog->dims, e->to)));
    }
}

/* What must be equal is not, at sizes that everything divides: a number is missing that was 0 or
 * 1. */
static void doubt_needs(Weighing *w)
{
    const OnnxSettling *s = w->s;
    for (size_t i = 0; i < p2o_nneed(s->bind); i++) {
        const Need *n = p2o_need_at(s->bind, i);
        if (n->kind != NEED_EQ || n->origin != NEED_OF_OPERATOR || w->nrefused)
            continue;
        Dim a = p2o_resolve(s->bind, n->a), b = p2o_resolve(s->bind, n->b);
        if (is_same_at_large_sizes(w, a, b))
            continue;
        p2o_onnx_refuse(w, &(Call){ .target = n->by, .loc = n->loc },
                        p2o_printf(w->arena, "it would need %s = %s",
                                   p2o_dim_text(s->prog->dims, a), p2o_dim_text(s->prog->dims, b)));
    }
}

/* A size of an input that would have to shrink where others grow: a constant holds their sum. */
static void doubt_inputs(Weighing *w)
{
    const OnnxSettling *s = w->s;
    for (size_t i = 0; i < s->freed.n; i++) {
        LargeSizes     at = large_sizes(w);
        int64_t        v;
        Dim            now = p2o_resolve(s->bind, s->freed.at[i]);
        if (!p2o_large_eval(s->prog->dims, &at, now, &v) || v >= 0)
            continue;
        Call of = { .target = p2o_printf(w->arena, "%s can't be dynamic",
                                         p2o_dim_name(s->freed.at[i])) };
        p2o_onnx_refuse(w, &of,
                        p2o_printf(w->arena, "it would be %s", p2o_dim_text(s->prog->dims, now)));
    }
}

/* A triangle between two sizes: its diagonal may be made of them. */
static void doubt_triangles(Weighing *w, const NodeCall *k)
{
    for (size_t i = 0; i < k->slots.n; i++) {
        const BakedForm *f = k->slots.at[i].form;
        int              last = f ? f->of->rank - 1 : 0;
        if (!f || f->kind != BAKED_TRIANGLE || f->of->sizes[last] == f->of->sizes[last - 1] ||
            !f->diagonal)
            continue;
        p2o_onnx_refuse(w, &k->call,
                        p2o_printf(w->arena,
                                   "a triangle with diagonal %lld between two sizes may follow "
                                   "them", (long long)f->diagonal));
    }
}

void p2o_onnx_doubts(Weighing *w)
{
    doubt_small(w);
    doubt_needs(w);
    doubt_inputs(w);
    p2o_onnx_doubt_traced(w);
    for (size_t i = 0; i < w->s->calls.n; i++) {
        doubt_result(w, w->s->calls.at[i]);
        doubt_negative(w, w->s->calls.at[i]);
        doubt_triangles(w, w->s->calls.at[i]);
        p2o_onnx_doubt_ones(w, w->s->calls.at[i]);
    }
}
