#include "base/num.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool p2o_parse_i64(Str s, int64_t *out)
{
    bool   neg = s.n && s.p[0] == '-';
    size_t i = neg;
    if (i == s.n)
        return false;
    int64_t v = 0;                       /* accumulated negative: its range is the larger one */
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (!mul_i64(v, 10, &v) || !add_i64(v, -(s.p[i] - '0'), &v))
            return false;
    }
    if (!neg && v == INT64_MIN)
        return false;
    *out = neg ? v : -v;
    return true;
}

/* strtod reads the decimal point of the locale: give it that one. */
bool p2o_parse_f64(Str s, double *out)
{
    enum { LONGEST = 400 };
    char        text[LONGEST + 8];
    size_t      n = 0;
    bool        digit = false;
    const char *point = localeconv()->decimal_point;

    if (s.n == 0 || s.n > LONGEST)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '.' && n + strlen(point) < LONGEST) {
            memcpy(text + n, point, strlen(point));
            n += strlen(point);
            continue;
        }
        if (!((c >= '0' && c <= '9') || c == '-' || c == '+' || c == 'e' || c == 'E'))
            return false;
        digit |= c >= '0' && c <= '9';
        text[n++] = c;
    }
    text[n] = 0;
    char  *end;
    double v = strtod(text, &end);
    if (!digit || end != text + n)
        return false;
    *out = v;
    return true;
}

/* As few digits as read back the same, in plain notation where that is no longer. */
static const char *format_shortest(char *buf, double x, int most, bool single)
{
    int digits = 1;
    if (isnan(x))
        return strcpy(buf, "nan");
    if (isinf(x))
        return strcpy(buf, x < 0 ? "-inf" : "inf");
    for (; digits < most; digits++) {
        snprintf(buf, 32, "%.*e", digits - 1, x);
        double back = strtod(buf, NULL);
        if (single ? (float)back == (float)x : back == x)
            break;
    }
    snprintf(buf, 32, "%.*e", digits - 1, x);
    int exponent = atoi(strchr(buf, 'e') + 1);
    if (exponent >= -5 && exponent < 16)
        snprintf(buf, 32, "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 0, x);
    const char *point = localeconv()->decimal_point;
    char       *at = same(point, ".") ? NULL : strstr(buf, point);
    if (at) {
        *at = '.';
        memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
    }
    return buf;
}

const char *p2o_format_f64(char *buf, double x) { return format_shortest(buf, x, 17, false); }
const char *p2o_format_f32(char *buf, float x) { return format_shortest(buf, (double)x, 9, true); }

static float bits_to_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t f32_to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

float p2o_bf16_to_f32(uint16_t h) { return bits_to_f32((uint32_t)h << 16); }

uint16_t p2o_f32_to_bf16(float x)
{
    uint32_t u = f32_to_bits(x);
    if (isnan(x))
        return (uint16_t)((u >> 16) | 0x40);
    return (uint16_t)((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

float p2o_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 0x3FF;
    if (exp == 31)
        return bits_to_f32(sign | 0x7F800000u | man << 13);
    if (exp)
        return bits_to_f32(sign | (exp + 112) << 23 | man << 13);
    float tiny = ldexpf((float)man, -24);
    return sign ? -tiny : tiny;
}

uint16_t p2o_f32_to_f16(float x)
{
    uint32_t u = f32_to_bits(x), sign = (u >> 16) & 0x8000;
    float    mag = fabsf(x);
    if (isnan(x))
        return (uint16_t)(sign | 0x7E00);
    if (mag >= 65520.0f)
        return (uint16_t)(sign | 0x7C00);
    if (mag < 6.103515625e-05f)                     /* subnormal: units of 2^-24, ties to even */
        return (uint16_t)(sign | (uint32_t)lrintf(ldexpf(mag, 24)));
    uint32_t m = (u & 0x7FFFFFFF) + 0xFFF + ((u >> 13) & 1);
    return (uint16_t)(sign | ((m - (112u << 23)) >> 13));
}

bool p2o_whole(double v, int64_t *out)
{
    if (!(fabs(v) < 0x1p53) || v != floor(v))
        return false;
    *out = (int64_t)v;
    return true;
}

int64_t p2o_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = b == -1 ? 0 : a % b;
        a = b;
        b = r;
    }
    return a < 0 && a != INT64_MIN ? -a : a;
}
