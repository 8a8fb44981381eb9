#define _GNU_SOURCE
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct Source {
    Arena         *arena;
    const uint8_t *base;          /* NULL: by callback */
    uint64_t       size;
    bool           mapped;
    const char    *path;
    ReadAtFn      *fn;
    void          *user;
};

static void close_source(void *s) { p2o_source_close(s); }

/* Everything is allocated before the file is opened: running out of memory leaves none open. */
Source *p2o_source_open(Diags *d, const char *path)
{
    struct stat st;
    Arena      *a = p2o_diags_arena(d);
    Source     *s = NEW(a, Source);

    *s = (Source){ .arena = a, .path = p2o_str_dup(a, str_of(path)), .base = (const uint8_t *)"" };
    p2o_arena_defer(a, close_source, s);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 || fstat(fd, &st) != 0 ? errno : 0;
    if (!error && S_ISREG(st.st_mode) && st.st_size) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        error = p == MAP_FAILED ? errno : 0;
        s->mapped = !error;
        s->base = error ? s->base : p;
        s->size = error ? 0 : (uint64_t)st.st_size;
    }
    if (fd >= 0)
        close(fd);
    if (error)
        p2o_diag(d, error == ENOENT ? DIAG_BAD_FILE : DIAG_IO, 0, "cannot open %s: %s", path,
                 strerror(error));
    else if (!S_ISREG(st.st_mode))
        p2o_diag(d, DIAG_BAD_FILE, 0, "%s is %s", path,
                 S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    return error || !S_ISREG(st.st_mode) ? NULL : s;
}

Source *p2o_source_memory(Arena *a, const void *p, size_t n)
{
    Source *s = NEW(a, Source);
    s->arena = a;
    s->base = n ? p : "";
    s->size = n;
    return s;
}

Source *p2o_source_callback(Diags *d, uint64_t size, ReadAtFn *fn, void *user)
{
    Source *s = NEW(p2o_diags_arena(d), Source);
    s->arena = p2o_diags_arena(d);
    s->size = size;
    s->fn = fn;
    s->user = user;
    return s;
}

void p2o_source_close(Source *s)
{
    if (s && s->mapped) {
        munmap((void *)(uintptr_t)s->base, (size_t)s->size);
        s->mapped = false;
        s->size = 0;
    }
}

uint64_t    p2o_source_size(const Source *s) { return s->size; }
const char *p2o_source_path(const Source *s) { return s->path; }

static bool in_range(const Source *s, uint64_t offset, size_t n)
{
    return offset <= s->size && n <= s->size - offset;
}

const uint8_t *p2o_source_view(Source *s, uint64_t offset, size_t n)
{
    if (!in_range(s, offset, n))
        return NULL;
    if (s->base)
        return s->base + offset;
    uint8_t *copy = p2o_alloc(s->arena, n);
    return s->fn(s->user, offset, copy, n) ? copy : NULL;
}

bool p2o_source_read(Source *s, uint64_t offset, void *buf, size_t n)
{
    if (!in_range(s, offset, n))
        return false;
    if (!s->base)
        return s->fn(s->user, offset, buf, n);
    if (n)
        memcpy(buf, s->base + offset, n);
    return true;
}

struct Sink {
    Diags      *diags;
    const char *path, *temp;      /* NULL: by callback */
    FILE       *file;
    WriteFn    *fn;
    void       *user;
    uint64_t    offset;
    int         error;            /* errno of the first failure */
};

static void abort_sink(void *s) { p2o_sink_abort(s); }

Sink *p2o_sink_file(Diags *d, const char *path)
{
    Arena *a = p2o_diags_arena(d);
    Sink  *s = NEW(a, Sink);
    int    fd = -1;

    *s = (Sink){ .diags = d, .path = p2o_str_dup(a, str_of(path)) };
    p2o_arena_defer(a, abort_sink, s);
    for (unsigned i = 0; fd < 0 && i < 1000; i++) {      /* another writer may hold a name */
        s->temp = p2o_printf(a, "%s.part%u", path, i);
        fd = open(s->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    s->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (s->file)
        return s;
    int error = errno;
    if (fd >= 0) {
        close(fd);
        unlink(s->temp);
    }
    s->temp = NULL;
    p2o_diag(d, DIAG_IO, 0, "cannot write %s: %s", path, strerror(error));
    return NULL;
}

Sink *p2o_sink_callback(Diags *d, WriteFn *fn, void *user)
{
    Sink *s = NEW(p2o_diags_arena(d), Sink);
    s->diags = d;
    s->fn = fn;
    s->user = user;
    return s;
}

void p2o_sink_write(Sink *s, const void *p, size_t n)
{
    s->offset += n;
    if (s->error || n == 0)
        return;
    errno = 0;
    bool ok = s->file ? fwrite(p, 1, n, s->file) == n : s->fn(s->user, p, n);
    if (!ok)
        s->error = errno ? errno : EIO;
}

void p2o_sink_pad(Sink *s, uint64_t n)
{
    static const char zeros[4096];
    for (; n > sizeof zeros; n -= sizeof zeros)
        p2o_sink_write(s, zeros, sizeof zeros);
    p2o_sink_write(s, zeros, (size_t)n);
}

uint64_t p2o_sink_offset(const Sink *s) { return s->offset; }
bool     p2o_sink_failed(const Sink *s) { return s->error != 0; }

bool p2o_sink_commit(Sink *s)
{
    if (s->file) {
        if (fclose(s->file) != 0 && !s->error)
            s->error = errno ? errno : EIO;
        s->file = NULL;
        if (!s->error && rename(s->temp, s->path) != 0)
            s->error = errno;
        if (s->error)
            unlink(s->temp);
        s->temp = NULL;
    }
    if (s->error)
        p2o_diag(s->diags, DIAG_IO, 0, "cannot write %s: %s", s->path ? s->path : "output",
                 strerror(s->error));
    return s->error == 0;
}

void p2o_sink_abort(Sink *s)
{
    if (!s)
        return;
    if (s->file)
        fclose(s->file);
    s->file = NULL;
    if (s->temp)
        unlink(s->temp);
    s->temp = NULL;
}

const char *p2o_read_text(Diags *d, const char *path, size_t *n)
{
    Source *s = p2o_source_open(d, path);
    if (!s)
        return NULL;
    *n = (size_t)p2o_source_size(s);
    const uint8_t *p = p2o_source_view(s, 0, *n);
    const char    *z = p2o_str_dup(p2o_diags_arena(d), (Str){ (const char *)p, *n });
    p2o_source_close(s);
    return z;
}
