"""Runs PyTorch's own operator samples (OpInfo) through pt2onnx and ONNX Runtime and compares with PyTorch.

usage: suite.py PT2ONNX [--ops REGEX] [--dtypes float32,int64:16,..] [--samples N] [--jobs N] [--cache DIR]
                [--json FILE] [--table FILE.md] [--record DIR] [--show]

Each sample is captured with every dim dynamic (fixed where PyTorch's capture needs it), converted, and run at its own
size and at larger ones.  --samples is how many of each entry, 0 for all; a type may have its own number (int64:16).
With --cache a later run reads what an earlier one captured (samples.py).  Outcomes:
  right     the numbers, dtypes and shapes are PyTorch's at every size
  refused   pt2onnx said that it does not support something
  wrong     anything else: other numbers, a model that does not run, a crash
  uncaught  PyTorch itself does not capture or save the sample; not counted
Numbers are right within TOLERANCE of PyTorch's, or as near as PyTorch's to those computed in float64.  Of random
numbers and of memory as it was, the type and shape are compared, and the means and range of random ones.
"""
import argparse
import collections
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import resource
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import samples

TOLERANCE = {"float16": (2e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1e-5, 1e-6), "float64": (1e-9, 1e-12)}
EPS = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52}
CREDIBLE = {"float16": 2.0 ** -5, "bfloat16": 2.0 ** -3, "float32": 2.0 ** -13, "float64": 2.0 ** -40}
PART = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}
ULPS, SUMS = 4, 32
# PyTorch documents no order of equal elements for these (for sort and argsort only when they are not stable).
TIES = {"topk", "kthvalue", "sort", "argsort", "mode"}
RECORD_SAMPLES, RECORD_BYTES = 180, 24 << 10
DRAWS = 16                              # of random numbers
MEMORY_LIMIT = 12 << 30                 # a model that needs more for these samples is wrong
ONE_EACH = {"topk", "sort", "argsort"}  # indices along the dim are all different
STABLE = {"sort", "argsort"}            # where PyTorch keeps no order (of many elements only), ours is the stable one

LINALG = r"linalg\.|(cholesky|cholesky_inverse|cholesky_solve|det|geqrf|inverse|logdet|lu|lu_solve|lu_unpack|matrix_exp|" \
         r"norm\.nuc|ormqr|pca_lowrank|pinverse|qr|slogdet|svd|svd_lowrank|triangular_solve)(\.|$)"


def kind_of(name, line):
    """Which of the counts a sample belongs to."""
    if "backward" in name:
        return "backward"
    if line.get("kind") in ("random", "memory"):
        return line["kind"]
    if line.get("complex"):
        return "complex"
    return "linalg" if re.match(LINALG, name) else "main"


def differs(got, want, true, dtype):
    """None, or how the numbers differ."""
    if tuple(got.shape) != tuple(want.shape):
        return "shape %s, expected %s" % (list(got.shape), list(want.shape))
    if got.dtype != want.dtype:
        return "dtype %s, expected %s" % (got.dtype, want.dtype)
    if got.dtype.kind not in "fc":
        return None if np.array_equal(got, want) else "values differ"
    g, w = got.astype("f8"), want.astype("f8")
    rtol, atol = TOLERANCE[dtype]
    with np.errstate(all="ignore"):
        bad = ~np.isclose(g, w, rtol=rtol, atol=atol, equal_nan=True)
        if bad.any() and true is not None:
            bad &= ~near_truth(g, w, true.astype("f8"), dtype)
        if not bad.any():
            return None
        at = np.unravel_index(np.nanargmax(np.where(bad, np.abs(g - w), -1)) if bad.ndim else 0, bad.shape)
        return "%d of %d values differ, most at %s: %.9g, expected %.9g%s" % (
            bad.sum(), bad.size, list(map(int, at)), g[at], w[at],
            "" if true is None else ", in float64 %.9g" % true[at])


def near_truth(got, want, true, dtype):
    """Where got is the truth but for ULPS of its own and SUMS of the largest one, as sums of such terms are rounded in
    float32; or no further from it than twice PyTorch's worst element, where that says something."""
    error, eps = np.abs(want - true), EPS[dtype]
    worst, largest = (np.max(x[np.isfinite(x)], initial=0) for x in (error, np.abs(true)))
    room = ULPS * eps * np.abs(true) + SUMS * min(eps, EPS["float32"]) * largest
    if worst <= CREDIBLE[dtype] * largest:      # else another function in float64, perhaps
        room += 2 * worst
    return np.isfinite(got) & (np.abs(got - true) <= room)


def points_alike(name, line, x, got, want):
    """Which of equal elements an index names is open: it must name an equal one."""
    if name.split(".")[0] not in TIES or want.dtype != np.int64 or got.dtype != np.int64 or got.shape != want.shape:
        return False
    plain = line["plain"]
    if any(k.endswith("['stable']") and v is True for k, v in plain.items()):
        return False
    if x.ndim == 0 or got.size == 0:
        return False
    for dim in range(x.ndim):
        a, b = (np.expand_dims(t, dim) if t.ndim < x.ndim else t for t in (got, want))
        if a.ndim != x.ndim or any(a.shape[k] != x.shape[k] for k in range(x.ndim) if k != dim):
            continue
        if a.min() < 0 or max(a.max(), b.max()) >= x.shape[dim] or not one_dim_is(plain, dim, x.ndim):
            continue
        mine, its = np.take_along_axis(x, a, dim), np.take_along_axis(x, b, dim)
        if not np.array_equal(mine, its, equal_nan=x.dtype.kind == "f"):
            continue
        if name in ONE_EACH and not (np.diff(np.sort(a, dim), axis=dim) > 0).all():
            continue
        tied = np.take(mine, range(1, a.shape[dim]), dim) == np.take(mine, range(a.shape[dim] - 1), dim)
        if name not in STABLE or (np.diff(a, axis=dim)[tied] > 0).all():
            return True
    return False


def one_dim_is(plain, dim, ndim):
    """Whether a `dim` argument, where the sample has one by name, is this one."""
    for k, v in plain.items():
        if k.endswith("['dim']"):
            return v % ndim == dim
    return True


def like_draws(draws, seeds):
    """None, or how random tensors differ from those that PyTorch draws: for each element the two means, in terms of the
    deviation of both together, on the average."""
    a, b = (np.stack(x).astype("f8").reshape(len(x), -1) for x in (draws, seeds))
    both = np.concatenate([a, b])
    error = both.var(0) * (1 / len(a) + 1 / len(b))
    with np.errstate(all="ignore"):
        z = np.where(error > 0, (a.mean(0) - b.mean(0)) ** 2 / error, 0)
    z = z[np.isfinite(z)]
    if z.size and z.mean() > 4 ** 2:            # elements need not be independent
        return "the means of %d draws are %.1f deviations from PyTorch's" % (len(a), np.sqrt(z.mean()))
    return None


def in_range(got, seeds):
    """None, or how a random tensor is unlike those that PyTorch makes.  Most of it: tails may be long."""
    want = seeds[0]
    if tuple(got.shape) != tuple(want.shape) or got.dtype != want.dtype:
        return "%s %s, expected %s %s" % (got.dtype, list(got.shape), want.dtype, list(want.shape))
    if got.dtype.kind == "b" or got.size == 0:
        return None
    every = np.concatenate([s.ravel() for s in seeds if s.dtype == got.dtype]).astype("f8")
    every = every[np.isfinite(every)]
    if not every.size:
        return None
    low, high = every.min(), every.max()
    room = high - low + 1e-6
    g = np.quantile(got.astype("f8"), [0.1, 0.9])
    if got.size >= 20 and not (g[0] >= low - room and g[1] <= high + room):
        return "values in [%g, %g], PyTorch's in [%g, %g]" % (g[0], g[1], low, high)
    return None


class Recorded:
    """What samples.py kept of one sample."""

    def __init__(self, folder, line):
        self.pt2 = os.path.join(folder, "%d.pt2" % line["k"])
        self.npz = os.path.join(folder, "%d.npz" % line["k"])
        self.line = line
        with np.load(self.npz) as z:
            self.arrays = dict(z)

    def of_output(self, j):
        return [self.arrays["s%d.out.%d" % (i, j)] for i in range(len(self.line["sizes"]))]

    def at(self, size, what, n):
        return [self.arrays.get("s%d.%s.%d" % (size, what, j)) for j in range(n)]


def limit_memory(limit=None):
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (limit or hard, hard))


def command(*args):
    """Runs pt2onnx, which under a sanitizer reserves more memory than there is."""
    return subprocess.run(args, capture_output=True, text=True, timeout=300, preexec_fn=limit_memory)


def convert(pt2onnx, pt2, onnx):
    if os.path.exists(onnx):
        os.remove(onnx)
    return command(pt2onnx, pt2, onnx)


def start(onnx):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])


def by_verify(pt2onnx, rec, onnx):
    """NumPy has no bfloat16; the command has."""
    p = command(pt2onnx, "verify", onnx, "--data", rec.npz)
    return ("right", "") if p.returncode == 0 else ("wrong", "verify: " + (p.stdout + p.stderr).strip()[-300:])


def judge(pt2onnx, name, rec, folder):
    line = rec.line
    onnx = os.path.join(folder, "m.onnx")
    p = convert(pt2onnx, rec.pt2, onnx)
    # a tiny sample whose capture is good for few sizes only is refused with the guard that says so
    if p.returncode == 3 or (p.returncode == 4 and "the capture's guard" in p.stderr):
        return "refused", p.stderr.strip().split("error: ")[1].split("\n")[0] if "error: " in p.stderr else p.stderr
    if p.returncode != 0:
        return "wrong", "exit code %d: %s" % (p.returncode, p.stderr.strip()[:400])
    if "bfloat16" in line["inputs"] + line["outputs"]:
        return by_verify(pt2onnx, rec, onnx)
    try:
        session = start(onnx)
    except Exception as e:
        return "wrong", "does not load: %s" % str(e).split("\n")[0][:300]
    ports, nout = session.get_inputs(), len(line["outputs"])
    if len(ports) != len(line["inputs"]):
        return "wrong", "%d inputs, expected %d" % (len(ports), len(line["inputs"]))
    for i, label in enumerate(line["sizes"]):
        ins, want, true = rec.at(i, "in", len(ports)), rec.at(i, "out", nout), rec.at(i, "true", nout)
        try:
            got = session.run(None, {port.name: x for port, x in zip(ports, ins)})
        except Exception as e:
            return "wrong", "does not run at %s: %s" % (label, str(e).split("\n")[0][:300])
        if len(got) != nout:
            return "wrong", "%d outputs, expected %d" % (len(got), nout)
        for j in range(nout):
            bad = compare_output(name, rec, ins[0] if ins else None, got[j], want[j], true[j], j)
            if not bad and line["kind"] == "random" and i == 0:
                feed = {port.name: x for port, x in zip(ports, ins)}
                bad = like_draws([session.run(None, feed)[j] for _ in range(DRAWS)], rec.of_output(j))
            if bad:
                return "wrong", "output %d at %s: %s" % (j, label, bad)
    return "right", ""


def compare_output(name, rec, first, got, want, true, j):
    line, dtype = rec.line, rec.line["outputs"][j]
    if line["kind"] == "memory":
        same = got.shape == want.shape and got.dtype == want.dtype
        return None if same else "%s %s, expected %s %s" % (got.dtype, got.shape, want.dtype, want.shape)
    if line["kind"] == "random":
        return in_range(got, rec.of_output(j))
    bad = differs(got, want, true, PART.get(dtype, dtype))
    return None if not bad or points_alike(name, line, first, got, want) else bad


def try_entry(job, tell):
    """Outcomes of an entry's samples; tell(stage, k) says what comes next."""
    name, dtype, pt2onnx, limit, cache, ended = job
    out = []
    with tempfile.TemporaryDirectory() as scratch:
        folder, lines = samples.kept_samples(cache or scratch, name, dtype, limit, lambda k: tell("capture", k),
                                             [k for stage, k in ended if stage == "capture"])
        for line in lines:
            if line["status"] == "uncaught":
                out.append((line, "uncaught", line["why"]))
                continue
            if ("run", line["k"]) in ended:
                out.append((line, "wrong", "ONNX Runtime ends the process"))
                continue
            tell("run", line["k"])
            try:
                status, why = judge(pt2onnx, name, Recorded(folder, line), scratch)
            except Exception as e:              # no fault of PyTorch's any more
                status, why = "wrong", "%s: %s" % (type(e).__name__, str(e)[:300])
            out.append((line, status, why))
    return out


def work(pipe):
    limit_memory(MEMORY_LIMIT)
    for job in iter(pipe.recv, None):
        pipe.send(("done", try_entry(job, lambda stage, k: pipe.send((stage, k)))))


def run_jobs(jobs, nworker):
    """(job, outcomes) as they come.  A worker that dies was at the last thing it told of: the entry is tried again
    without that."""
    jobs, busy = collections.deque(jobs), {}

    def begin(job):
        mine, its = multiprocessing.Pipe()
        p = multiprocessing.Process(target=work, args=(its,))
        p.start()
        its.close()
        mine.send(job)
        busy[mine] = [p, job, None]

    while jobs or busy:
        while jobs and len(busy) < nworker:
            begin(jobs.popleft())
        for pipe in multiprocessing.connection.wait(list(busy)):
            p, job, at = busy[pipe]
            try:
                what, value = pipe.recv()
            except EOFError:
                p.join()
                del busy[pipe]
                if at is None:
                    raise SystemExit("%s %s: the worker ended before it began" % job[:2])
                begin(job[:5] + (job[5] + (at,),))
                continue
            if what != "done":
                busy[pipe][2] = (what, value)
                continue
            yield job, value
            if jobs:
                busy[pipe][1:] = [jobs.popleft(), None]
                pipe.send(busy[pipe][1])
            else:
                pipe.send(None)
                p.join()
                del busy[pipe]


class Tally:
    """Outcomes by entry and count (main, linalg, complex, ...)."""

    def __init__(self):
        self.rows = collections.OrderedDict()   # (count, entry) -> Counter
        self.total = collections.Counter()
        self.why = {}                           # (status, entry) -> the first reason
        self.names = set()

    def add(self, name, line, status, why):
        self.rows.setdefault((kind_of(name, line), name), collections.Counter())[status] += 1
        self.total[status] += 1
        self.why.setdefault((status, name), why)

    def of(self, count):
        return {n: r for (k, n), r in self.rows.items() if k == count and r["right"] + r["refused"] + r["wrong"]}

    def figures(self):
        for count in ("main", "linalg", "complex", "random", "memory", "backward"):
            rows = self.of(count)
            if rows:
                yield count, rows, [n for n, r in rows.items() if not r["refused"] and not r["wrong"]], \
                    [n for n, r in rows.items() if r["wrong"]]


WORDS = {"main": "forward, deterministic, strided, real", "linalg": "linear algebra, real",
         "complex": "complex tensors in or out", "random": "random numbers: type, shape and range",
         "memory": "memory as it was: type and shape", "backward": "backward"}


def figure_lines(tally):
    for count, rows, good, wrong in tally.figures():
        yield "%s: %d entries, right in all samples: %d (%.1f%%), some refused: %d, some wrong: %d; samples: %s" % (
            WORDS[count], len(rows), len(good), 100.0 * len(good) / len(rows),
            sum(1 for r in rows.values() if r["refused"]), len(wrong),
            ", ".join("%d %s" % (sum(r[s] for r in rows.values()), s) for s in ("right", "refused", "wrong")))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("pt2onnx")
    p.add_argument("--ops", default="")
    p.add_argument("--dtypes", default="float32")
    p.add_argument("--samples", type=int, default=0)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--cache")
    p.add_argument("--json")
    p.add_argument("--table")
    p.add_argument("--record")
    p.add_argument("--show", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        names = samples.entries(a.cache or scratch, a.ops)
    limits = {d: int(n) if n else a.samples for d, _, n in (x.partition(":") for x in a.dtypes.split(","))}
    jobs = [(n, d, os.path.abspath(a.pt2onnx), limits[d], a.cache, ()) for n in names for d in limits]
    tally, seen = Tally(), []
    for (name, dtype, *_), out in run_jobs(jobs, a.jobs):
        tally.names.add(name)
        for line, status, why in out:
            tally.add(name, line, status, why)
            seen.append((name, dtype, line["k"], status, why))
            if status == "wrong" or (a.show and status in ("refused", "uncaught")):
                print("%s %s #%d %s: %s" % (name, dtype, line["k"], status, why), flush=True)
    seen.sort()
    print("samples: %s" % ", ".join("%d %s" % (v, k) for k, v in sorted(tally.total.items())))
    for text in figure_lines(tally):
        print(text)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(seen, f, indent=0)
    if a.table:
        write_table(a.table, tally, "of each entry " + ", ".join(
            "%s in %s" % ("the first %d samples" % n if n else "all samples", d) for d, n in limits.items()))
    if a.record:
        record(a.record, a.cache, limits, os.path.abspath(a.pt2onnx), seen)
    print("%d passed, %d failed" % (tally.total["right"], tally.total["wrong"]))
    return 1 if tally.total["wrong"] else 0


def write_table(path, tally, what):
    with open(path, "w") as f:
        f.write("# Operators, by PyTorch's own samples\n\n"
                "Made by `test/ops/suite.py --table` with PyTorch %s: %s.\n"
                "Entries are OpInfo's; samples that differ only in values and sizes are one. A sample is right when dtype, "
                "shape and numbers are PyTorch's\nat every size tried; refused: the conversion says what it does not "
                "support. `pt2onnx ops` lists operators and their limits.\n\n" % (samples.torch_version(), what))
        f.write("| counted | entries | right in all samples | some refused | some wrong | samples right | refused | wrong |\n"
                "|---|---|---|---|---|---|---|---|\n")
        for count, rows, good, wrong in tally.figures():
            n = {s: sum(r[s] for r in rows.values()) for s in ("right", "refused", "wrong")}
            f.write("| %s | %d | %d (%.1f %%) | %d | %d | %d | %d | %d |\n" % (
                WORDS[count], len(rows), len(good), 100.0 * len(good) / len(rows),
                sum(1 for r in rows.values() if r["refused"]), len(wrong), n["right"], n["refused"], n["wrong"]))
        left = {n for n in tally.names if not any(n in rows for _, rows, _, _ in tally.figures())}
        f.write("\nNot counted: %d samples that `torch.export` does not capture or save, and with them all of: %s.\n" %
                (tally.total["uncaught"], ", ".join(sorted(n for n in left if ("uncaught", n) in tally.why)) or "none"))
        f.write("Without samples of these types, or with none that is strided: %s.\n" %
                (", ".join(sorted(n for n in left if ("uncaught", n) not in tally.why)) or "none"))
        for count, rows, _, _ in tally.figures():
            f.write("\n## %s\n\n| entry | tried | right | refused | wrong | |\n|---|---|---|---|---|---|\n" %
                    (WORDS[count][0].upper() + WORDS[count][1:]))
            for name, r in sorted(rows.items()):
                status = "wrong" if r["wrong"] else "refused" if r["refused"] else ""
                why = tally.why.get((status, name), "")
                f.write("| %s | %d | %d | %d | %d | %s |\n" % (name, r["right"] + r["refused"] + r["wrong"], r["right"],
                                                          r["refused"], r["wrong"], why.replace("|", "\\|")))


def record(folder, cache, limits, pt2onnx, seen):
    """A selection of what was right: of every entry at most one sample, by a fixed seed, deflated."""
    import random
    import shutil
    import zipfile
    right = collections.OrderedDict()
    for name, dtype, k, status, _ in seen:
        right.setdefault(name, []).append((dtype, k)) if status == "right" else None
    pick = random.Random(1)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    kept = 0
    for name in sorted(right, key=lambda n: pick.random()):
        dtype, k = right[name][pick.randrange(len(right[name]))]
        home, lines = samples.kept_samples(cache, name, dtype, limits[dtype])
        rec = Recorded(home, next(x for x in lines if x["k"] == k))
        if rec.line["kind"] != "exact" or kind_of(name, rec.line) == "backward" or not by_recorded(pt2onnx, rec, folder):
            continue
        stem = os.path.join(folder, "%s.%s.%d" % (name, dtype, k))
        with zipfile.ZipFile(rec.pt2) as z, zipfile.ZipFile(stem + ".pt2", "w", zipfile.ZIP_DEFLATED) as out:
            for item in z.infolist():
                data = re.sub(rb'File \\"/[^"\\]*/', rb'File \\"', z.read(item))       # no one's folders
                out.writestr(zipfile.ZipInfo(item.filename), data, zipfile.ZIP_DEFLATED)
        np.savez_compressed(stem + ".npz", **{a: x for a, x in rec.arrays.items() if ".true." not in a})
        if os.path.getsize(stem + ".pt2") + os.path.getsize(stem + ".npz") > RECORD_BYTES:
            os.remove(stem + ".pt2")
            os.remove(stem + ".npz")
            continue
        kept += 1
        if kept == RECORD_SAMPLES:
            break
    print("recorded %d samples in %s" % (kept, folder))


def by_recorded(pt2onnx, rec, folder):
    """Whether the command alone finds the sample right: ties and rounding it judges more strictly."""
    onnx = os.path.join(folder, "m.onnx")
    ok = convert(pt2onnx, rec.pt2, onnx).returncode == 0 and by_verify(pt2onnx, rec, onnx)[0] == "right"
    if os.path.exists(onnx):
        os.remove(onnx)
    return ok


if __name__ == "__main__":
    sys.exit(main())
