#include "onnx/onnx_origin.h"

#include "base/trace.h"

/* The last but one of ['', 'block', 'conv2d']: the last is the call itself. */
static Str innermost(Str list)
{
    Str last = { "", 0 }, before = last, quote;
    while (list.n) {
        p2o_str_cut(list, '\'', &quote);
        Str word = p2o_str_cut(quote, '\'', &list);
        if (!quote.n)
            break;
        before = last;
        last = word;
    }
    return before;
}

void p2o_origin_take(OnnxOrigin *o, OnnxMeta entry)
{
    Str value = str_of(entry.value);
    if (same(entry.key, "pkg.torch.onnx.stack_trace")) {
        PlaceInfo from = p2o_trace_place(value);
        from.module = o->place.module;
        from.library = o->place.library;
        o->place = from;
    } else if (same(entry.key, "pkg.torch.onnx.class_hierarchy")) {
        o->place.library = p2o_str_starts(innermost(value), "torch.nn.modules.");
    } else if (same(entry.key, "pkg.torch.onnx.name_scopes")) {
        Str module = innermost(value);
        o->place.module = p2o_is_one_line(module) ? module : (Str){ "", 0 };
    } else if (same(entry.key, "pkg.torch.onnx.fx_node")) {
        o->call = value;
    } else if (same(entry.key, "pkg.onnxscript.rewriter.rule_name")) {
        o->padded = strstr(entry.value, "ConvPad") != NULL;
    }
}

static bool is_name_letter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool p2o_origin_next(const OnnxOrigin *o, size_t *at, Str *name)
{
    Str s = o->call;
    while (*at < s.n && s.p[*at] != '%')
        ++*at;
    size_t from = *at + 1, end = from;
    while (end < s.n && is_name_letter(s.p[end]))
        end++;
    *at = end;
    if (from >= s.n)
        return false;
    *name = (Str){ s.p + from, end - from };
    return true;
}

Str p2o_origin_name(const OnnxOrigin *o)
{
    size_t at = 0;
    Str    name;
    return p2o_origin_next(o, &at, &name) ? name : (Str){ "", 0 };
}

const char *p2o_origin_args(const OnnxOrigin *o)
{
    return o->call.n ? strstr(o->call.p, "(args = ") : NULL;
}

Str p2o_origin_operator(const OnnxOrigin *o)
{
    static const char before[] = "target=torch.ops.aten.";
    const char *at = o->call.n ? strstr(o->call.p, before) : NULL;
    size_t      n = 0;
    if (!at)
        return (Str){ "", 0 };
    for (at += sizeof before - 1; is_name_letter(at[n]);)
        n++;
    return (Str){ at, n };
}
