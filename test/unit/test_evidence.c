/* Evidence for what a number is: costs, readings, the verdict, spelled numbers, sizes that tell and
 * planned sizes. */
#include "check.h"

#include <math.h>

#include "dyn/plan.h"
#include "dyn/seen.h"
#include "dyn/verdict.h"

enum { MARGIN = 4, PAID_SHORT = 1 };            /* of dyn/verdict.c */

typedef struct World {                          /* sizes, and what they were in each capture */
    Arena    *arena;
    Dims     *dims;
    Bindings *bind;
    Dim       sym[4];
    int       n;
    Bases     bases;
} World;

/* `sizes`: of each symbol in each capture. */
static void begin(World *w, int nsym, int ncapture, const int64_t *sizes)
{
    static const char *const names[] = { "batch", "seq", "h", "w" };
    w->arena = p2o_arena_new(NULL, NULL);
    w->dims = p2o_dims_new(w->arena);
    w->bind = p2o_bindings_new(w->dims, ncapture);
    w->n = nsym;
    for (int i = 0; i < nsym; i++) {
        w->sym[i] = p2o_dim_sym(w->dims, names[i]);
        for (int k = 0; k < ncapture; k++)
            p2o_set_hint_at(w->bind, w->sym[i], k, sizes[i * ncapture + k]);
    }
    p2o_bases_start(&w->bases, w->bind, w->sym, (size_t)nsym);
    for (int i = 0; i < nsym; i++)
        CHECK(p2o_bases_add(&w->bases, w->bind, w->sym[i]));
}

static void end(World *w) { p2o_arena_free(w->arena); }

static Readings read_values(World *w, bool whole, const double *want)
{
    Readings r = { .whole = whole }, *one[] = { &r };
    for (int k = 0; k < w->bases.ncapture; k++)
        r.want[k] = want[k];
    p2o_readings(w->arena, &w->bases, one, 1);
    return r;
}

static const char *reading_text(World *w, const Reading *r)
{
    return p2o_expr_text(w->arena, r->of, r->expr);
}

static void check_numbers(void)
{
    CHECK(p2o_number_bits(0) == 1 && p2o_number_bits(1) == 3 && p2o_number_bits(3) == 5 &&
          p2o_number_bits(8) == 7);
    CHECK(p2o_number_bits(-8) == p2o_number_bits(8));
    for (int v = 1; v < 2000; v++)
        CHECK(p2o_number_bits(v) <= p2o_number_bits(v + 1));
    CHECK(p2o_number_bits(0.5) < p2o_number_bits(0.35) &&
          p2o_number_bits(0.35) < p2o_number_bits(0.3517));
    CHECK(p2o_number_bits(1 / sqrt(8)) < 20 && p2o_number_bits(1.0 / 3) < 20 &&
          p2o_number_bits(log(97)) < 30);
    CHECK(p2o_number_bits(0.7390851332151607) > 50);            /* nothing short */
    CHECK(p2o_number_bits(INFINITY) < 4);
}

typedef struct Seen {
    World  *w;
    size_t  n, wrong, whole_wrong;
    bool    has_less, has_half, has_multiple, has_product;
} Seen;

typedef struct Point {
    const Bases *bases;
    int          at;
} Point;

static bool value_at_point(void *user, Dim sym, int64_t *v)
{
    const Point *p = user;
    for (int i = 0; i < p->bases->n; i++) {
        if (p->bases->dim[i] != sym)
            continue;
        *v = (int64_t)p->bases->at[i][p->at];
        return true;
    }
    return false;
}

/* The values are those of the expression, and of the Dim that it becomes, at all points. */
static void see_expr(void *user, const Expr *e, double bits, const double *values)
{
    Seen  *s = user;
    Bases *b = &s->w->bases;
    double v;
    s->wrong += bits > DEAREST || bits < p2o_base_bits(b);
    for (int k = 0; k < b->nfit; k++)
        s->wrong += p2o_expr_eval(b, e, k, &v) ? v != values[k] : !isnan(values[k]);
    if (s->n++ % 23)
        return;
    Dim d = p2o_expr_dim(b, e);
    for (int i = 0; d && i < b->npoint; i++) {
        Point   at = { b, i };
        int64_t whole;
        if (p2o_expr_eval(b, e, i, &v) && p2o_dim_eval(b->dims, d, value_at_point, &at, &whole) &&
            (double)whole != v && s->whole_wrong++ < 5)
            printf("%s: %lld, the expression is %g\n", p2o_dim_text(b->dims, d), (long long)whole,
                   v);
    }
}

static void note_forms(void *user, const Expr *e, double bits, const double *values)
{
    Seen *s = user;
    (void)bits;
    (void)values;
    const char *text = p2o_expr_text(s->w->arena, &s->w->bases, e);
    s->has_less |= same(text, "seq - 4");
    s->has_half |= same(text, "seq//2");
    s->has_multiple |= same(text, "8*(seq//8)");
    s->has_product |= same(text, "batch*seq");
}

static void check_grammar(void)
{
    World w;
    begin(&w, 2, 2, (int64_t[]){ 211, 40, 97, 34 });
    CHECK(p2o_base_bits(&w.bases) == 3);
    Seen s = { .w = &w };
    p2o_enumerate_whole(&w.bases, see_expr, &s);
    CHECK(s.n > 1000 && s.wrong == 0 && s.whole_wrong == 0);
    s = (Seen){ .w = &w };
    p2o_enumerate_float(&w.bases, see_expr, &s);
    CHECK(s.n > 1000 && s.wrong == 0);
    s = (Seen){ .w = &w };
    p2o_enumerate_own(&w.bases, 2, note_forms, &s);
    CHECK(s.has_less && s.has_half && s.has_multiple && s.has_product);
    end(&w);
}

/* In order, no two alike, and all give what was captured. */
static void check_reading_list(World *w, const Readings *r)
{
    double v;
    for (int i = 0; i < r->n; i++) {
        CHECK(i == 0 || r->list[i - 1].bits <= r->list[i].bits);
        for (int k = 0; k < w->bases.nfit; k++)
            CHECK(p2o_expr_eval(r->list[i].of, r->list[i].expr, k, &v) &&
                  fabs(v - r->want[k]) <= 1e-9 * fabs(v));
        for (int j = 0; j < i; j++) {
            bool alike = true;
            for (int p = 0; p < NPROBE; p++)
                alike &= r->list[i].at[p] == r->list[j].at[p] ||
                         (isnan(r->list[i].at[p]) && isnan(r->list[j].at[p]));
            CHECK(!alike);
        }
    }
}

static void check_readings(void)
{
    static const struct { double want[3]; bool whole; const char *text; } cases[] = {
        { { 97, 34, 14 }, true, "seq" },        { { 96, 33, 13 }, true, "seq - 1" },
        { { 48, 17, 7 }, true, "seq//2" },      { { 49, 18, 8 }, true, "seq//2 + 1" },
        { { 308, 74, 23 }, true, "batch + seq" }, { { 194, 68, 28 }, true, "2*seq" },
        { { 7, 6, 2 }, true, "(-seq) % 8" },    { { 64, 34, 14 }, true, "min(seq, 64)" },
        { { 14, 5, 9 }, true, "batch % seq" }, /* 211 % 97, 40 % 34 is 6: not found */
        { { 9.848857801796104, 5.830951894845301, 3.7416573867739413 }, false, "sqrt(seq)" },
    };
    World w;
    begin(&w, 2, 3, (int64_t[]){ 211, 40, 9, 97, 34, 14 });
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Readings r = read_values(&w, cases[i].whole, cases[i].want);
        check_reading_list(&w, &r);
        bool found = r.n > 0 && same(reading_text(&w, &r.list[0]), cases[i].text);
        CHECK(found == !same(cases[i].text, "batch % seq"));
        if (!found && r.n)
            printf("%s, not %s\n", reading_text(&w, &r.list[0]), cases[i].text);
    }
    end(&w);
}

static Verdict weigh(World *w, Evidence e, bool whole, const double *at)
{
    Readings *r = NEW(w->arena, Readings);
    *r = read_values(w, whole, at);
    e.at = at;
    e.nfit = p2o_nfit(w->bind);
    e.ncapture = p2o_ncapture(w->bind);
    Verdict v = p2o_weigh(&e, r);
    if (v.kind == VERDICT_SIZE) {               /* the margin, and the payment */
        CHECK(v.best && v.best_bits <= v.held + PAID_SHORT && v.margin >= MARGIN);
        CHECK(v.best_bits + MARGIN <= v.number_bits && v.best_bits + MARGIN <= v.rival_bits);
        for (int i = 0; i < r->n && !e.line; i++)
            CHECK(&r->list[i] == v.best || r->list[i].bits >= v.best_bits + MARGIN);
    }
    if (v.kind == VERDICT_NUMBER) {
        CHECK(v.number_bits + MARGIN <= v.best_bits);
        for (int k = 1; k < e.nfit; k++)
            CHECK(at[k] == at[0]);
    }
    return v;
}

#define AT(...) (const double[]){ __VA_ARGS__ }

static void check_one_capture(void)
{
    World    w;
    Evidence plain = { .role = NUMBER_EXTENT }, spelled = plain, lacking = plain,
             setting = { .role = NUMBER_SETTING };
    spelled.spelled = SPELLED_YES;
    lacking.spelled = SPELLED_NO;
    begin(&w, 1, 1, (int64_t[]){ 8 });
    CHECK(weigh(&w, spelled, true, AT(8)).kind == VERDICT_NUMBER);
    CHECK(weigh(&w, setting, true, AT(8)).kind == VERDICT_NUMBER);
    CHECK(weigh(&w, lacking, true, AT(4)).kind == VERDICT_OPEN);        /* 4, or half of it */
    CHECK(weigh(&w, plain, true, AT(7)).kind == VERDICT_OPEN);          /* 7, or one less */
    CHECK(weigh(&w, (Evidence){ .role = NUMBER_EXTENT, .usual = true }, true, AT(8)).kind ==
          VERDICT_NUMBER);
    end(&w);
    begin(&w, 1, 1, (int64_t[]){ 211 });
    CHECK(weigh(&w, lacking, true, AT(211)).kind == VERDICT_SIZE);
    CHECK(weigh(&w, plain, true, AT(2)).kind == VERDICT_NUMBER);
    CHECK(weigh(&w, spelled, true, AT(211)).kind == VERDICT_NUMBER);
    CHECK(weigh(&w, plain, false, AT(1 / sqrt(211))).kind == VERDICT_SIZE);
    CHECK(weigh(&w, plain, false, AT(1e-5)).kind == VERDICT_NUMBER);
    Verdict less = weigh(&w, lacking, true, AT(210));
    CHECK(less.kind == VERDICT_OPEN || same(reading_text(&w, less.best), "batch - 1"));
    end(&w);
}

static void check_several(void)
{
    World    w;
    Evidence e = { .role = NUMBER_EXTENT }, pad = { .role = NUMBER_PAD };
    begin(&w, 1, 2, (int64_t[]){ 9, 11 });
    CHECK(weigh(&w, e, true, AT(9, 11)).kind == VERDICT_SIZE);          /* 5 bits buy a size */
    CHECK(weigh(&w, e, true, AT(5, 7)).kind == VERDICT_OPEN);           /* never one less 4 */
    end(&w);
    begin(&w, 2, 2, (int64_t[]){ 12, 16, 9, 12 });      /* alike: seq is 3*batch//4 */
    Verdict v = weigh(&w, e, true, AT(9, 12));
    CHECK(v.kind != VERDICT_NUMBER &&
          (v.kind == VERDICT_OPEN || same(reading_text(&w, v.best), "seq")));
    CHECK(weigh(&w, e, true, AT(8, 11)).kind == VERDICT_OPEN);
    end(&w);
    begin(&w, 2, 3, (int64_t[]){ 211, 40, 9, 97, 34, 14 });
    v = weigh(&w, e, true, AT(93, 30, 10));
    CHECK(v.kind == VERDICT_SIZE && same(reading_text(&w, v.best), "seq - 4"));
    CHECK(weigh(&w, e, true, AT(4, 4, 4)).kind == VERDICT_NUMBER);
    CHECK(weigh(&w, e, true, AT(93, 30, 11)).kind == VERDICT_OPEN);     /* nothing gives it */
    CHECK(weigh(&w, pad, true, AT(7, 6, 2)).kind == VERDICT_OPEN);      /* 3 bits a capture */
    Evidence line = pad;
    line.line = &(Place){ .text = "y = F.pad(x, (0, -w % 8))" };
    CHECK(weigh(&w, line, true, AT(7, 6, 2)).best_bits <
          weigh(&w, pad, true, AT(7, 6, 2)).best_bits);
    e.at = AT(93, 30, 11);
    e.nfit = e.ncapture = 3;
    v = weigh(&w, e, true, e.at);
    CHECK(v.best ||
          same(p2o_verdict_text(w.arena, &e, &v), "no simple expression of the sizes gives that"));
    end(&w);
}

static void hold_out_last(World *w)
{
    p2o_set_nfit(w->bind, w->bases.ncapture - 1);
    p2o_bases_start(&w->bases, w->bind, w->sym, (size_t)w->n);
    for (int i = 0; i < w->n; i++)
        CHECK(p2o_bases_add(&w->bases, w->bind, w->sym[i]));
}

/* A capture that is held out: what is found holds there too, or nothing is. */
static void check_held_out(void)
{
    World    w;
    Evidence e = { .role = NUMBER_EXTENT };
    begin(&w, 2, 3, (int64_t[]){ 211, 40, 9, 97, 34, 14 });
    hold_out_last(&w);
    Verdict v = weigh(&w, e, true, AT(93, 30, 10));
    CHECK(v.kind == VERDICT_SIZE && same(reading_text(&w, v.best), "seq - 4"));
    v = weigh(&w, e, true, AT(93, 30, 11));
    CHECK(v.kind == VERDICT_OPEN);
    end(&w);
}

static double tan_of_field(double w) { return 0.5 * w / tan(0.5235987755982988); }

/* A size of 0 says nothing of 1, and of sizes below 2 nothing is claimed without one. */
static void check_seen(void)
{
    static const int64_t sizes[][3] = {
        { 0, 5, 9 }, { 1, 5, 9 }, { 0, 1, 9 }, { 2, 5, 9 }, { 0, 0, 0 }
    };
    static const int64_t least[] = { 2, 1, 0, 2, 2 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        World w;
        begin(&w, 1, 3, sizes[i]);
        CHECK(p2o_seen_least(w.bind, w.sym[0]) == least[i]);
        end(&w);
    }
}

/* Floats with numbers of their own, at the sizes of a plan: seq and h in 8 captures. */
static void check_scales(void)
{
    static const int64_t sizes[] = { 83, 34, 15, 3, 64, 80, 5, 78, 40, 6, 89, 16, 30, 7, 2, 78 };
    enum { N = 8 };
    double   at[13][N];
    World    w;
    Evidence e = { .role = NUMBER_FACTOR };
    begin(&w, 2, N, sizes);
    for (int k = 0; k < N; k++) {
        double b = (double)sizes[k], s = (double)sizes[N + k], harmonic = 0;
        for (int i = 1; i <= (int)s; i++)
            harmonic += 1.0 / i;
        at[0][k] = tan_of_field(s);
        at[1][k] = (b - 1) / ((b + 2) * (b + 3));
        at[2][k] = 0.9 - 0.1 / (s - 1);
        at[3][k] = pow(b, -1 / (s + 4));
        at[4][k] = log(s + 1) / log(32) / sqrt(b);
        at[5][k] = fmin(32 / s, 1);
        at[6][k] = 1.7 * pow(b * s, 0.31);
        at[7][k] = exp(-0.013 * s);
        at[8][k] = harmonic;                            /* none of these */
        at[9][k] = round(1e3 * sqrt(s)) / 1e3;
        at[10][k] = s > 20 ? 3 : 0.5;
        at[11][k] = s > 20 ? 3 * sqrt(s) : log(b);
        at[12][k] = fmin(170 / s, 5);                   /* cut off at 16 or above 20: seen */
    }
    for (int i = 0; i < 13; i++) {
        Verdict v = weigh(&w, e, false, at[i]);
        CHECK((v.kind == VERDICT_SIZE) == (i < 8 || i == 12));
        double s = 53, b = 29, got = NAN;
        Bases  p = { .dims = w.dims, .n = 2, .npoint = 1 };
        p.at[0][0] = b;
        p.at[1][0] = s;
        const double want[] = { tan_of_field(s),
                                (b - 1) / ((b + 2) * (b + 3)),
                                0.9 - 0.1 / (s - 1),
                                pow(b, -1 / (s + 4)),
                                log(s + 1) / log(32) / sqrt(b),
                                32 / s,
                                1.7 * pow(b * s, 0.31),
                                exp(-0.013 * s) };
        CHECK(i >= 8 || (v.best && p2o_expr_eval(&p, v.best->expr, 0, &got) &&
                         fabs(got - want[i]) <= 1e-9 * want[i]));
    }
    end(&w);
}

/* What few captures say of a number that nobody writes. */
static void check_few_scales(void)
{
    World    w;
    Evidence e = { .role = NUMBER_FACTOR };
    double   c = 0.7390851332151607;
    begin(&w, 2, 2, (int64_t[]){ 211, 40, 97, 34 });
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34)).kind == VERDICT_OPEN);
    CHECK(weigh(&w, e, false, AT(c + 1.0 / 97, c + 1.0 / 34)).kind == VERDICT_OPEN);
    end(&w);
    begin(&w, 2, 3, (int64_t[]){ 211, 40, 9, 97, 34, 14 });
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34, c * 14)).kind == VERDICT_SIZE);
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34, c * 15)).kind == VERDICT_OPEN);
    CHECK(weigh(&w, e, false, AT(c * 3, c * 3, c * 2)).kind == VERDICT_OPEN); /* steps say little */
    CHECK(weigh(&w, e, false, AT(0.5, 0.25, 0.75)).kind == VERDICT_OPEN);
    end(&w);
    begin(&w, 2, 3, (int64_t[]){ 211, 40, 9, 97, 34, 14 }); /* nothing is fitted to checks */
    hold_out_last(&w);
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34, c * 14)).kind == VERDICT_OPEN);
    CHECK(weigh(&w, e, false, AT(c + 1.0 / 97, c + 1.0 / 34, c + 1.0 / 14)).kind == VERDICT_OPEN);
    CHECK(weigh(&w, e, false, AT(0.7 * 97, 0.7 * 34, 0.7 * 14)).kind == VERDICT_SIZE);
    CHECK(weigh(&w, e, false, AT(0.7 * 97, 0.7 * 34, 0.7 * 15)).kind == VERDICT_OPEN);
    end(&w);
    begin(&w, 2, 4, (int64_t[]){ 211, 40, 9, 9, 97, 34, 14, 1 });
    hold_out_last(&w);
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34, c * 14, c)).kind == VERDICT_SIZE);
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34, c * 14, 0)).kind == VERDICT_OPEN);
    end(&w);
    begin(&w, 1, 6, (int64_t[]){ 97, 34, 9, 14, 5, 60 });   /* cut off at 10: shown by checks */
    p2o_set_nfit(w.bind, 3);
    p2o_bases_start(&w.bases, w.bind, w.sym, (size_t)w.n);
    CHECK(p2o_bases_add(&w.bases, w.bind, w.sym[0]));
    double cut[] = { 1 - 10.0 / 97, 1 - 10.0 / 34, 0, 1 - 10.0 / 14, 0, 1 - 10.0 / 60 };
    CHECK(weigh(&w, e, false, cut).kind == VERDICT_SIZE);
    cut[5] += 1e-6;                                         /* the last check is one */
    CHECK(weigh(&w, e, false, cut).kind == VERDICT_OPEN);
    end(&w);
    begin(&w, 2, 3, (int64_t[]){ 211, 211, 211, 97, 34, 14 });  /* may follow a size that stayed */
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34, c * 14)).kind == VERDICT_OPEN);
    end(&w);
    begin(&w, 2, 3, (int64_t[]){ 97, 34, 14, 97, 34, 14 }); /* of two sizes that are alike */
    CHECK(weigh(&w, e, false, AT(c * 97, c * 34, c * 14)).kind == VERDICT_OPEN);
    end(&w);
}

static int times(const char *text, double number)
{
    return p2o_spelled_times(&(Place){ .text = text }, number);
}

static void check_spelled(void)
{
    CHECK(p2o_spelled_times(NULL, 4) == -1 && times(NULL, 4) == -1);
    CHECK(times("", 4) == 0 && times("y = x", 4) == 0);
    CHECK(times("y = x[:, :4]", 4) == 1 && times("y = x[:, :-4]", -4) == 1 &&
          times("y = x[:, :4]", -4) == 0);
    CHECK(times("y = x.view(4, 4, 14)", 4) == 2 && times("y = x.view(4, 4, 14)", 1) == 0);
    CHECK(times("y4 = x4 + a_4", 4) == 0 && times("y = x4(4)", 4) == 1);
    CHECK(times("y = x * .5", 0.5) == 1 && times("y = x * 0.50", 0.5) == 1 &&
          times("y = x * 5", 0.5) == 0);
    CHECK(times("y = x + 1e-5", 1e-5) == 1 && times("y = x + 1e-5", 5) == 0 &&
          times("y = x + 2.5e+1", 25) == 1);
    CHECK(times("y = x.view(n, -1)", 1) == 0);
    CHECK(times("y = x / shape[2]", 2) == 0 && times("y = x / shape[2] / 2", 2) == 1);
    CHECK(times("y = x / x.shape[2]", 2) == 0 && times("y = x / x.size(2)", 2) == 0);
    CHECK(times("y = x / x.shape[2] / 2", 2) == 1 && times("y = x / x.size(-2)", 2) == 0);
    CHECK(times("y = x / x.size(", 2) == 0);
}

static bool chosen_value(void *user, Dim sym, int64_t *v)
{
    const char *at = strstr(user, p2o_dim_name(sym));
    long long   n;
    bool        read = at && sscanf(at + strlen(p2o_dim_name(sym)), "=%lld", &n) == 1;
    *v = read ? n : 0;
    return read;
}

static void check_telling(void)
{
    World w;
    begin(&w, 2, 1, (int64_t[]){ 3, 5 });
    Readings r = read_values(&w, true, AT(2));
    Telling  t = p2o_telling(w.arena, w.bind, w.sym, 2, &r);
    CHECK(t.text && t.json && t.json[0] == '{' && strstr(t.json, "\"batch\": ") &&
          strstr(t.json, "\"seq\": "));
    Dim     first = p2o_expr_dim(&w.bases, r.list[0].expr);
    int64_t v = 2;
    CHECK(first && p2o_dim_eval(w.dims, first, chosen_value, (void *)(uintptr_t)t.text, &v) &&
          v != 2);
    CHECK(!p2o_telling(w.arena, w.bind, w.sym, 0, &r).text);
    end(&w);
    begin(&w, 2, 1, (int64_t[]){ 3, 5 });
    p2o_dim_set_range(w.dims, w.sym[1], 4, 9);
    p2o_dim_set_range(w.dims, w.sym[0], 2, 3);
    r = read_values(&w, true, AT(4));
    t = p2o_telling(w.arena, w.bind, w.sym, 2, &r);
    int64_t batch = 0, seq = 0;
    CHECK(t.text && chosen_value((void *)(uintptr_t)t.text, w.sym[0], &batch) && batch >= 2 &&
          batch <= 3);
    CHECK(t.text && chosen_value((void *)(uintptr_t)t.text, w.sym[1], &seq) && seq >= 4 &&
          seq <= 9);
    end(&w);
}

/* Not all captures leave the same remainder. */
static bool shows_remainders(const Plan *p, int i)
{
    static const int64_t by[] = { 2, 3, 4, 5, 7, 8 };
    for (size_t k = 0; k < sizeof by / sizeof *by; k++)
        if (p->captures[0][i] % by[k] == p->captures[1][i] % by[k] &&
            p->captures[1][i] % by[k] == p->captures[2][i] % by[k])
            return false;
    return true;
}

static void check_plan(void)
{
    for (int n = 1; n <= 4; n++) {
        World w;
        Plan  p = { 0 };
        begin(&w, n, 1, (int64_t[]){ 3, 5, 7, 9 });
        p2o_plan_sizes(w.dims, w.sym, n, &p);
        for (int i = 0; i < n; i++) {
            int64_t least = INT64_MAX, most = 0;
            for (int k = 0; k < PLAN_CAPTURES; k++) {
                least = p.captures[k][i] < least ? p.captures[k][i] : least;
                most = p.captures[k][i] > most ? p.captures[k][i] : most;
            }
            CHECK(least >= 2 && least < 20 && most > 80 && p.checks[0][i] >= 2);
            CHECK(shows_remainders(&p, i));
            CHECK(p.checks[PLAN_CHECKS - 1][i] == 2 && p.ones[0][i] == 1);
            CHECK(n == 1 || (p.ones[1][i] == 1) != (p.ones[2][i] == 1));
            for (int k = 0; k < PLAN_CAPTURES; k++)
                for (int j = 0; j < i; j++)
                    CHECK(p.captures[k][i] != p.captures[k][j]);        /* no two sizes alike */
        }
        end(&w);
    }
}

static void check_plan_ranges(void)
{
    static const int64_t ranges[][2] = { { 3, 10 }, { 1, 1 },     { 5, 6 }, { 400, NO_UPPER },
                                         { 2, 50 }, { 128, 512 }, { 0, 4 } };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        World w;
        Plan  p = { 0 };
        begin(&w, 2, 1, (int64_t[]){ 3, 5 });
        p2o_dim_set_range(w.dims, w.sym[1], ranges[i][0], ranges[i][1]);
        p2o_plan_sizes(w.dims, w.sym, 2, &p);
        int64_t least = p.captures[0][1], most = least;
        for (int k = 0; k < PLAN_CAPTURES; k++) {
            int64_t v = p.captures[k][1], c = p.checks[k % PLAN_CHECKS][1];
            CHECK(v >= 1 && v >= ranges[i][0] && v <= ranges[i][1] && c >= 1 && c >= ranges[i][0] &&
                  c <= ranges[i][1]);
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
        CHECK(p.nones == (ranges[i][0] > 1 ? 1 : 3) && (p.ones[0][1] == 1) == (ranges[i][0] <= 1));
        CHECK(least < most || ranges[i][1] - ranges[i][0] < 2); /* they differ, if there is room */
        end(&w);
    }
    Plan   many = { 0 };
    Arena *a = p2o_arena_new(NULL, NULL);
    Dims  *t = p2o_dims_new(a);
    Dim    sym[PLAN_MOST];
    for (int i = 0; i < PLAN_MOST; i++)
        sym[i] = p2o_dim_sym(t, p2o_printf(a, "s%d", i));
    p2o_plan_sizes(t, sym, PLAN_MOST, &many);
    for (int i = 0; i < PLAN_MOST; i++)
        CHECK(many.captures[0][i] >= 1 && many.checks[PLAN_CHECKS - 1][i] >= 1);
    p2o_arena_free(a);
}

int main(void)
{
    check_numbers();
    check_grammar();
    check_readings();
    check_one_capture();
    check_several();
    check_held_out();
    check_seen();
    check_scales();
    check_few_scales();
    check_spelled();
    check_telling();
    check_plan();
    check_plan_ranges();
    return check_report();
}
