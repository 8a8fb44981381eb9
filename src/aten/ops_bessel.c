/* Bessel functions of the first, second and third kind of orders 0 and 1, and Airy's.
 *
 * Near 0 they are series in x^2, with a logarithm for those that have a pole there; far off an
 * amplitude that depends on 1 / x times a wave or an exponential.  Each part is a polynomial fitted
 * to it with an error below the last place of float64, in which all is computed: a wave needs the
 * digits of x. */
#include "aten/lower.h"

#include <math.h>

#define PI      3.14159265358979323846
#define ROOT_PI 1.77245385090551602730

#define TABLE(lo, x, t)   polynomial(lo, x, t, (int)COUNT_OF(t))
#define product(lo, x, y) emit(lo, ONNX_Mul, x, y)

/* x <= 8, in u = x^2 / 32 - 1: J0 and J1 / x. */
static const double near_j[2][17] = {
    {
        4.0030437640628113e-13, -1.2433011305498057e-11, 3.363450456866669e-10,
        -7.915323084479192e-09, 1.5956109057781304e-07, -2.7177492236298073e-06,
        3.8473197856340086e-05, -0.000443545922431152, 0.004058078989140805, -0.028472718610882044,
        0.14598884856759267, -0.5074680458471, 1.0383794611437211, -0.8080888076696872,
        -0.6484692830871837, 0.9303012472958572, 0.04582966485981377,
    },
    {
        0, -4.003763281578695e-13, 1.1658971884036465e-11, -2.9430168338294955e-10,
        6.431190178958571e-09, -1.196708182234105e-07, 1.8684526037182737e-06,
        -2.404574866003479e-05, 0.00024949458135972767, -0.0020290394945704573,
        0.012456814392263375, -0.05474581821284725, 0.15858376432721838, -0.2595948652859303,
        0.15151665143806636, 0.08105866038589796, -0.05814382795599107,
    },
};
/* Y0 - 2 / pi log(x) J0 and (Y1 - 2 / pi (log(x) J1 - 1 / x)) / x */
static const double near_y[2][17] = {
    {
        -8.83846839430682e-13, 2.6926937109987692e-11, -7.13046804012612e-10,
        1.6390875017619395e-08, -3.218507833909702e-07, 5.321318810394401e-06,
        -7.279541882544516e-05, 0.00080615860596164, -0.007025741057270546, 0.046367047681375125,
        -0.2189574709617164, 0.6721770783431679, -1.0775477338215995, 0.14412632369302475,
        1.6470964788745466, -0.8284358903604587, -0.382250654459425,
    },
    {
        0, 8.758166378731877e-13, -2.4995314348224853e-11, 6.169694909376009e-10,
        -1.3153147370992129e-08, 2.3804930317310604e-07, -3.6010000225850992e-06,
        4.4674330127252e-05, -0.00044381734344201836, 0.0034224907399185273, -0.01962875683311711,
        0.07854786922242538, -0.19639839859930203, 0.23507209206669755, 0.02336757172099348,
        -0.24337743079193114, 0.07075985882118005,
    },
};
/* x > 8, in w = (8 / x)^2: with t = x - (order + 1/2) pi / 2,
 * J is sqrt(2 / (pi x)) (p cos(t) - 8 / x q sin(t)), and
 * Y is sqrt(2 / (pi x)) (p sin(t) + 8 / x q cos(t)). */
static const double far_p[2][12] = {
    {
        -2.0390538930216558e-10, 1.4749834390098408e-09, -5.095426342612473e-09,
        1.1738201566162318e-08, -2.2200808092929834e-08, 4.254618336685247e-08,
        -1.0205641504020241e-07, 3.6197586629108695e-07, -2.183913220862882e-06,
        2.7380883364029815e-05, -0.0010986328124932161, 1.0,
    },
    {
        2.1731256384382006e-10, -1.5735112875653608e-09, 5.444783254130188e-09,
        -1.2580087109450936e-08, 2.39228225148129e-08, -4.629242533160881e-08,
        1.128176961176786e-07, -4.102441006435233e-07, 2.580989128016041e-06,
        -3.520399297088085e-05, 0.0018310546874928057, 1.0,
    },
};
static const double far_q[2][13] = {
    {
        -1.3477124660773009e-10, 1.0109800215415163e-09, -3.5553821838176246e-09,
        8.000767332263505e-09, -1.3609184621061207e-08, 2.0428375439110697e-08,
        -3.228978342430206e-08, 6.399779045200883e-08, -1.816239758596948e-07, 8.23842597941962e-07,
        -6.930786094098128e-06, 0.00014305114745934616, -0.015624999999999995,
    },
    {
        1.4279863718732564e-10, -1.0718601898199735e-09, 3.773159277490976e-09,
        -8.504673164053084e-09, 1.4507731229088885e-08, -2.1888206325920083e-08,
        3.489689910562633e-08, -7.010039962940274e-08, 2.0299308040415046e-07,
        -9.505878179376511e-07, 8.47096079685228e-06, -0.0002002716064436332, 0.04687499999999999,
    },
};
/* x <= 2, in x^2: I0 and I1 / x. */
static const double near_i[2][10] = {
    {
        3.045242653561327e-17, 9.373259435491812e-15, 2.4028675787778216e-12, 4.709501086185397e-10,
        6.78168405793189e-08, 6.7816840274543955e-06, 0.0004340277777779769, 0.015624999999999938,
        0.25, 1.0,
    },
    {
        0, 5.48146485545306e-16, 1.4997362179030207e-13, 3.364012518066672e-11,
        5.651401420587637e-09, 6.781684054619206e-07, 5.4253472220132724e-05, 0.0026041666666674814,
        0.062499999999999875, 0.5,
    },
};
/* K0 + log(x / 2) I0 and x (K1 - log(x / 2) I1) */
static const double near_k[2][10] = {
    {
        6.872289021185454e-17, 2.0062068689459318e-14, 4.8433399275830486e-12,
        8.819879035027937e-10, 1.1570351012535374e-07, 1.021401413519616e-05, 0.0005451899602573268,
        0.014418505235913403, 0.1056960837746168, -0.5772156649015329,
    },
    {
        -1.2137166536221057e-15, -3.1149818492859936e-13, -6.54047500248146e-11,
        -1.0112901478345438e-08, -1.0892182678340606e-06, -7.493042904491131e-05,
        -0.0028371119837725905, -0.042049020943651316, 0.03860783245076608, 1.0,
    },
};
/* x > 2, in 4 / x - 1: exp(x) sqrt(x) K. */
static const double far_k[2][23] = {
    {
        9.814351706270477e-11, -1.741509780951922e-10, -2.5110434859824095e-10,
        4.297477277683221e-10, 6.695715668552346e-10, -1.2153912642295458e-09,
        2.394308518907248e-10, -6.910315844647252e-10, 3.6495903976932076e-09,
        -8.004788511161158e-09, 1.713191167986285e-08, -4.1066608948068586e-08,
        1.0292555593382769e-07, -2.6897299904408254e-07, 7.427862282519565e-07,
        -2.191167926598009e-06, 7.002244890822603e-06, -2.4735205374354336e-05,
        9.95605474680908e-05, -0.00047976905673535503, 0.0030328918102741427, -0.031071461824889863,
        1.2185953385133905,
    },
    {
        -1.0723248616244554e-10, 1.9076143997849255e-10, 2.7254522744334753e-10,
        -4.671206856758779e-10, -7.346508024780933e-10, 1.338505137154513e-09,
        -2.917504734356429e-10, 8.254949192313567e-10, -4.159440167664528e-09,
        9.191769765137446e-09, -1.9909229735256997e-08, 4.816504266972803e-08,
        -1.2200062020372017e-07, 3.2305348234307344e-07, -9.067153954123532e-07,
        2.7300306926674243e-06, -8.961206567605334e-06, 3.2843866443684416e-05,
        -0.00013959021961465037, 0.0007357241548745164, -0.005566729880073309, 0.1033497377538656,
        1.363151890371342,
    },
};
/* -4.5 <= x <= 2.1, in x + 1.2: Ai. */
static const double airy_near[] = {
        8.34345290514155e-25, 1.289951174641985e-24, -1.6509408340599951e-22, 6.065084914097015e-22,
        1.2241682429103357e-20, -1.281112276433848e-19, 4.9872383654168565e-21,
        9.24283145600697e-18, -7.211387122943512e-17, -8.303943538514654e-17, 5.354302038673479e-15,
        -3.3384256759704293e-14, -8.1195723881895e-14, 2.3762711877331593e-12,
        -1.1176000821690906e-11, -4.426567359862098e-11, 7.595969794821521e-10,
        -2.5083395012278887e-09, -1.5050384543367413e-08, 1.6424281258274962e-07,
        -3.296596206776201e-07, -3.134761529658284e-06, 2.1860164377261115e-05,
        -1.72828726794935e-05, -0.0003655632147999476, 0.0015287389361959862, 0.0005901198899860769,
        -0.019763396160815048, 0.04049095992748394, 0.06629274861256337, -0.31571662488127206,
        0.10703156927228079, 0.5261943748021201,
};
/* x > 2.1, in 1 / z - 1/4 for z = 2/3 x^(3/2): 2 sqrt(pi) x^(1/4) exp(z) Ai. */
static const double airy_above[] = {
        -324.7677854732881, 121.22201016051997, 51.98599168729605, -14.985079249918623,
        -8.927367605178537, 3.1544510006421773, -0.27045986053153637, 0.25802590694759625,
        -0.21876359034694107, 0.12110327615487715, -0.06992007973287843, 0.043782427166981046,
        -0.028707556515303056, 0.01985605031181172, -0.01467569204744897, 0.01175929382764459,
        -0.010426902189357186, 0.010554534696392967, -0.01283798942559647, 0.020668722023702454,
        -0.0557289753230795, 0.9845197059940428,
};
/* x < -4.5, in 1 / z^2 for z = 2/3 (-x)^(3/2): with t = z + pi / 4,
 * Ai is (p sin(t) - q / z cos(t)) / (sqrt(pi) (-x)^(1/4)).  This is p, */
static const double airy_sine[] = {
        -1596230166954.1165, 304795452203.46936, -26900237896.007618, 1474864591.3032434,
        -57655301.69580738, 1789962.161334477, -49978.697405504936, 1476.950339616661,
        -55.391099166366274, 3.0788059058317407, -0.2915902814988137, 0.05764918938054596,
        -0.03713348765393792, 1.0,
};
/* this q. */
static const double airy_cosine[] = {
        -1.9567485768189656e+16, 4138441864801965.5, -404328303279408.3, 24338152634417.766,
        -1019590006241.1356, 32076642569.12825, -810052283.3662695, 17780991.830720536,
        -378874.8328195715, 9034.616433485317, -277.9304675034781, 12.340444330723068,
        -0.8776654868205211, 0.11609906298002043, -0.03799305912750358, 0.06944444444444443,
};

static Value *over(Lower *lo, double f, Value *x)
{
    return emit(lo, ONNX_Div, num(lo, DT_F64, f), x);
}

static Value *is_below(Lower *lo, Value *x, double f)
{
    return emit(lo, ONNX_Less, x, num(lo, DT_F64, f));
}

/* The amplitude and the two parts of the wave, for a > 8. */
static Value *far_wave(Lower *lo, Value *a, int order, bool second_kind)
{
    Value *q = over(lo, 8, a), *w = product(lo, q, q);
    Value *t = plus_num(lo, a, -(order + 0.5) * PI / 2);
    Value *cosine = emit(lo, ONNX_Cos, t), *sine = emit(lo, ONNX_Sin, t);
    Value *even = TABLE(lo, w, far_p[order]);
    Value *odd = product(lo, q, TABLE(lo, w, far_q[order]));
    even = product(lo, even, second_kind ? sine : cosine);
    odd = product(lo, odd, second_kind ? cosine : sine);
    Value *sum = emit(lo, second_kind ? ONNX_Add : ONNX_Sub, even, odd);
    return product(lo, sum, emit(lo, ONNX_Sqrt, over(lo, 2 / PI, a)));
}

static Value *in_square(Lower *lo, Value *a)
{
    return plus_num(lo, times_num(lo, product(lo, a, a), 1.0 / 32), -1);
}

static Value *near_first_kind(Lower *lo, Value *a, int order)
{
    Value *y = TABLE(lo, in_square(lo, a), near_j[order]);
    return order ? product(lo, y, a) : y;
}

static Value *first_kind(Lower *lo, Value *x, int order)
{
    Value *a = emit(lo, ONNX_Abs, x), *near = near_first_kind(lo, a, order);
    Value *y = choose(lo, is_below(lo, a, 8), near, far_wave(lo, a, order, false));
    return order ? choose(lo, is_below(lo, x, 0), emit(lo, ONNX_Neg, y), y) : y;
}

static Value *second_kind(Lower *lo, Value *x, int order)
{
    Value *near = TABLE(lo, in_square(lo, x), near_y[order]);
    Value *wave = product(lo, emit(lo, ONNX_Log, x), near_first_kind(lo, x, order));
    if (order) {
        near = product(lo, near, x);
        wave = emit(lo, ONNX_Sub, wave, emit(lo, ONNX_Reciprocal, x));
    }
    near = emit(lo, ONNX_Add, near, times_num(lo, wave, 2 / PI));
    Value *y = choose(lo, is_below(lo, x, 8), near, far_wave(lo, x, order, true));
    y = choose(lo, is_below(lo, x, 0), num(lo, DT_F64, NAN), y);
    return choose(lo, emit(lo, ONNX_Equal, x, num(lo, DT_F64, 0)),
                  num(lo, DT_F64, -(double)INFINITY), y);
}

/* The modified ones of the second kind; scaled by exp(x). */
static Value *third_kind(Lower *lo, Value *x, int order, bool scaled)
{
    Value *z = product(lo, x, x), *log = emit(lo, ONNX_Log, times_num(lo, x, 0.5));
    Value *near = TABLE(lo, z, near_k[order]);
    Value *pole = product(lo, log, TABLE(lo, z, near_i[order]));
    near = order ? emit(lo, ONNX_Add, emit(lo, ONNX_Div, near, x), product(lo, pole, x))
                 : emit(lo, ONNX_Sub, near, pole);
    Value *far = emit(lo, ONNX_Div, TABLE(lo, plus_num(lo, over(lo, 4, x), -1), far_k[order]),
                      emit(lo, ONNX_Sqrt, x));
    if (scaled)
        near = product(lo, near, emit(lo, ONNX_Exp, x));
    else
        far = product(lo, far, emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, x)));
    Value *y = choose(lo, emit(lo, ONNX_LessOrEqual, x, num(lo, DT_F64, 2)), near, far);
    y = choose(lo, is_below(lo, x, 0), num(lo, DT_F64, NAN), y);
    return choose(lo, emit(lo, ONNX_Equal, x, num(lo, DT_F64, 0)),
                  num(lo, DT_F64, (double)INFINITY), y);
}

/* PyTorch has no value at infinity, and 0 from where float64 ends. */
static Value *airy_of(Lower *lo, Value *x)
{
    Value *a = emit(lo, ONNX_Abs, x), *root = emit(lo, ONNX_Sqrt, a);
    Value *z = times_num(lo, product(lo, a, root), 2.0 / 3), *r = emit(lo, ONNX_Reciprocal, z);
    Value *size = emit(lo, ONNX_Sqrt, root), *w = product(lo, r, r), *t = plus_num(lo, z, PI / 4);
    Value *high = product(lo, TABLE(lo, plus_num(lo, r, -0.25), airy_above),
                          emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, z)));
    high = emit(lo, ONNX_Div, high, times_num(lo, size, 2 * ROOT_PI));
    Value *sine = product(lo, TABLE(lo, w, airy_sine), emit(lo, ONNX_Sin, t));
    Value *cosine = product(lo, product(lo, r, TABLE(lo, w, airy_cosine)), emit(lo, ONNX_Cos, t));
    Value *low = emit(lo, ONNX_Div, emit(lo, ONNX_Sub, sine, cosine), times_num(lo, size, ROOT_PI));
    Value *y = choose(lo, is_below(lo, x, -4.5), low, TABLE(lo, plus_num(lo, x, 1.2), airy_near));
    y = choose(lo, emit(lo, ONNX_Greater, x, num(lo, DT_F64, 2.1)), high, y);
    y = choose(lo, emit(lo, ONNX_Greater, x, num(lo, DT_F64, 103.892)), num(lo, DT_F64, 0), y);
    return choose(lo, emit(lo, ONNX_IsInf, x), num(lo, DT_F64, NAN), y);
}

static Value *argument(Lower *lo, const Call *c)
{
    return tensor_as(lo, c, names_arg(c, "x") ? "x" : "self", DT_F64);
}

static Value *result(Lower *lo, const Call *c, Value *y) { return cast(lo, y, out_dtype(c, 0)); }

#define LOWERING(fn, expression)                                                                \
    static Value *fn(Lower *lo, const Call *c)                                                  \
    {                                                                                           \
        Value *x = argument(lo, c);                                                             \
        return result(lo, c, expression);                                                       \
    }

LOWERING(lower_bessel_j0, first_kind(lo, x, 0))
LOWERING(lower_bessel_j1, first_kind(lo, x, 1))
LOWERING(lower_bessel_y0, second_kind(lo, x, 0))
LOWERING(lower_bessel_y1, second_kind(lo, x, 1))
LOWERING(lower_bessel_k0, third_kind(lo, x, 0, false))
LOWERING(lower_bessel_k1, third_kind(lo, x, 1, false))
LOWERING(lower_scaled_k0, third_kind(lo, x, 0, true))
LOWERING(lower_scaled_k1, third_kind(lo, x, 1, true))
LOWERING(lower_airy_ai, airy_of(lo, x))

#define ROW(name, arg, fn, ...)                                                                 \
    { "special_" name "(Tensor " arg ") -> Tensor", p2o_rule_float, .lower = fn, __VA_ARGS__ }
#define CLOSER "float64: exact, where PyTorch is off by 1e-7"

const AtenOp p2o_ops_bessel[] = {
    ROW("bessel_j0", "self", lower_bessel_j0, .limits = CLOSER),
    ROW("bessel_j1", "self", lower_bessel_j1, .limits = CLOSER),
    ROW("bessel_y0", "self", lower_bessel_y0, .limits = CLOSER),
    ROW("bessel_y1", "self", lower_bessel_y1, .limits = CLOSER),
    ROW("modified_bessel_k0", "self", lower_bessel_k0, .limits = NULL),
    ROW("modified_bessel_k1", "self", lower_bessel_k1, .limits = NULL),
    ROW("scaled_modified_bessel_k0", "x", lower_scaled_k0, .limits = NULL),
    ROW("scaled_modified_bessel_k1", "x", lower_scaled_k1, .limits = NULL),
    ROW("airy_ai", "x", lower_airy_ai, .limits = NULL),
    { 0 },
};
