#include "base/trace.h"

#include "base/num.h"

bool p2o_is_one_line(Str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7F)
            return false;
    return s.n > 0;
}

/* `File "net.py", line 41, in forward` */
static bool parse_frame(Str s, PlaceInfo *f)
{
    static const char before_line[] = ", line ", before_func[] = ", in ";
    Str     rest, func;
    int64_t n;

    *f = (PlaceInfo){ 0 };
    if (!p2o_str_starts(s, "File \""))
        return false;
    f->file = p2o_str_cut((Str){ s.p + 6, s.n - 6 }, '"', &rest);
    if (!p2o_str_starts(rest, before_line))
        return false;
    rest = (Str){ rest.p + sizeof before_line - 1, rest.n - sizeof before_line + 1 };
    Str line = p2o_str_cut(rest, ',', &func);
    if (!p2o_parse_i64(line, &n) || n < 0 || n > UINT32_MAX)
        return false;
    f->line = (uint32_t)n;
    rest = (Str){ rest.p + line.n, rest.n - line.n };
    if (p2o_str_starts(rest, before_func))
        f->func = (Str){ rest.p + sizeof before_func - 1, rest.n - sizeof before_func + 1 };
    return p2o_is_one_line(s);
}

/* Code that PyTorch generated for a body: its lines have the captured sizes as numbers. */
static bool is_generated(Str file) { return p2o_str_starts(file, "<eval_with_key>"); }

/* PyTorch's own code, or code that it generated. */
static bool is_inside_torch(Str file)
{
    if (p2o_str_starts(file, "torch/") || is_generated(file))
        return true;
    for (size_t i = 0; i + 7 <= file.n; i++)
        if (!memcmp(file.p + i, "/torch/", 7))
            return true;
    return false;
}

/* The line below a frame; a very long one is no person's. */
static Str source_line(Str trace)
{
    enum { LONGEST = 2000 };
    PlaceInfo f;
    Str       rest, line = p2o_str_trim(p2o_str_cut(trace, '\n', &rest));
    bool      whole = line.n <= LONGEST && p2o_is_one_line(line);
    return whole && !parse_frame(line, &f) ? line : (Str){ "", 0 };
}

PlaceInfo p2o_trace_place(Str trace)
{
    PlaceInfo best = { 0 }, f;
    bool      found = false;
    while (trace.n) {
        Str line = p2o_str_trim(p2o_str_cut(trace, '\n', &trace));
        if (!parse_frame(line, &f))
            continue;
        f.text = is_generated(f.file) ? (Str){ "", 0 } : source_line(trace);
        bool own = !is_inside_torch(f.file);
        if (own || !found)
            best = f;
        found = found || own;
    }
    return best;
}
