"""Modules of one operator each, with axis 0 of every input dynamic, against PyTorch at several batches.

usage: single.py PT2ONNX [--only REGEX] [--slice K] [--jobs N] [--ways python,pt2] [--chars N]

Each module is converted by pt2onnx.export(verify=False) and, captured with Dim.AUTO on axis 0, from a
.pt2 by the command.  What comes out is run in ONNX Runtime at BATCHES where PyTorch runs.  Outcomes:
  right     dtype, shape and numbers are PyTorch's at every batch
  refused   pt2onnx said so
  fixed     right, but the file takes only the batch of the example, as PyTorch's capture does
  beyond    right at every batch that the file claims, not at another: x.squeeze() at batch 1
  uncaught  PyTorch does not capture the module
  wrong     anything else
--slice K: every K-th module of the list; --chars N: of what is said of each that is not right.
"""
import argparse
import collections
import concurrent.futures
import importlib
import inspect
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
FILES = ["data", "layers", "functions", "math", "methods"]
BATCHES = [3, 1, 2, 7, 0]       # the first is the example's
FIRST = BATCHES[0]


def flat(x):
    """Outputs as arrays; complex ones as pairs."""
    import torch
    out = []
    for t in torch.utils._pytree.tree_leaves(x):
        if isinstance(t, torch.Tensor):
            t = torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
            out.append(t.detach().resolve_neg().float().numpy() if t.dtype == torch.bfloat16 else
                       t.detach().resolve_neg().numpy())
        elif t is not None:
            out.append(np.asarray(t, np.float32 if isinstance(t, float) else None))
    return out


def inputs(case, n):
    import torch
    torch.manual_seed(zlib.crc32(case.name.encode()) + n)
    return case.inputs(n)


def module(case):
    import torch
    torch.manual_seed(0)
    return case.make().eval()


def truth(case):
    """By batch, what PyTorch computes; nothing where it raises."""
    import torch
    found = {}
    for n in BATCHES:
        if n < case.least:
            continue
        try:
            args = inputs(case, n)
            feeds = flat(args)
            with torch.no_grad():
                found[n] = feeds, flat(module(case)(*args))
        except Exception as e:
            if n == FIRST:
                raise
    return found


def differs(got, want, case, n):
    if len(got) != len(want):
        return "%d outputs, not %d" % (len(got), len(want))
    for k, (g, w) in enumerate(zip(got, want)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return "output %d is %s%s, not %s%s" % (k, g.dtype, list(g.shape), w.dtype, list(w.shape))
        if case.random or g.size == 0 or n == 0 and np.isnan(w.astype("f8")).all():
            continue                            # of nothing there is no mean
        if g.dtype.kind in "biu":
            if not np.array_equal(g, w):
                return "output %d: %d of %d values differ" % (k, (g != w).sum(), g.size)
            continue
        tol = 2e-2 if w.dtype == np.float16 else case.tol
        if not np.allclose(g.astype("f8"), w.astype("f8"), rtol=tol, atol=tol * 0.1, equal_nan=True):
            with np.errstate(all="ignore"):
                return "output %d: differs by %g" % (k, np.nanmax(np.abs(g.astype("f8") - w)))
    return None


def run(path, case, wanted):
    """(outcome, detail)"""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return "wrong", "load: " + str(e)[:300]
    ports = session.get_inputs()
    fixed, bad, beyond = None, [], []
    claimed = claims(path)
    for n, (feeds, want) in wanted.items():
        feed, fits = {}, True
        by_name = {p.name: p for p in ports}
        if len(ports) > len(feeds):
            return "wrong", "%d inputs, not %d" % (len(ports), len(feeds))
        for p, x in zip(ports, feeds) if len(ports) == len(feeds) else match(ports, feeds, list(inspect.signature(module(case).forward).parameters)):
            feed[p.name] = x
            for a, b in zip(p.shape, x.shape):
                fits = fits and (not isinstance(a, int) or a == b)
        if not fits and n != FIRST:
            fixed = n if fixed is None else fixed
            continue
        try:
            got = session.run(None, feed)
        except Exception as e:
            said = "at %d: run: %s" % (n, str(e)[:300])
            (bad if within(claimed, ports, feed) else beyond).append(said)
            continue
        if case.same:
            import torch
            got = flat(case.same(*[torch.from_numpy(g) for g in got]))
            want = flat(case.same(*[torch.from_numpy(w) for w in want]))
        d = differs(got, want, case, n)
        if d and (n or not unlike_itself(case, want)):
            (bad if within(claimed, ports, feed) else beyond).append("at %d: %s" % (n, d))
    if bad:
        return "wrong", "; ".join(bad)
    if beyond:
        return "beyond", "; ".join(beyond)
    return ("fixed", "only at batch %d, not %d" % (FIRST, fixed)) if fixed is not None else ("right", "")


def claims(path):
    """By the name of an input's axis, its least and largest size as the file says."""
    import onnx
    for p in onnx.load(path, load_external_data=False).metadata_props:
        if p.key == "pt2onnx.dims":
            return {k: (v.get("min", 0), v.get("max", 1 << 62)) for k, v in json.loads(p.value)["symbols"].items()}
    return {}


def within(claimed, ports, feed):
    for p in ports:
        for name, size in zip(p.shape, feed[p.name].shape):
            low, high = claimed.get(name, (0, 1 << 62)) if isinstance(name, str) else (0, 1 << 62)
            if not low <= size <= high:
                return False
    return True


def match(ports, feeds, names):
    """Where inputs are not used, the others by their place among the parameters."""
    for p in ports:
        yield p, feeds[names.index(p.name)]


def unlike_itself(case, want):
    """Whether what PyTorch captures does not do with nothing what the module does."""
    import torch
    args, none = inputs(case, FIRST), inputs(case, 0)
    shapes = tuple({0: torch.export.Dim.AUTO} if a.ndim else None for a in args)
    try:
        program = capture(module(case), args, shapes)
        return bool(differs(flat(program.module(check_guards=False)(*none)), want, case, 0))
    except Exception:
        return True


def by_python(case, wanted, folder):
    import torch
    import pt2onnx
    path = os.path.join(folder, "python.onnx")
    args = inputs(case, FIRST)
    shapes = tuple({0: torch.export.Dim.AUTO} if a.ndim else None for a in args)
    try:
        pt2onnx.export(module(case), args, path, dynamic_shapes=shapes, verify=False)
    except pt2onnx.CaptureError as e:
        return "uncaught", str(e)
    except (pt2onnx.UnsupportedError, pt2onnx.DynamicError, pt2onnx.InputError) as e:
        return "refused", type(e).__name__ + ": " + str(e)
    except Exception as e:
        return "wrong", "raised " + type(e).__name__ + ": " + str(e)[:500]
    return run(path, case, wanted)


def capture(made, args, shapes):
    """Strict where PyTorch fails otherwise, as users would."""
    import torch
    with torch.no_grad():
        try:
            return torch.export.export(made, args, dynamic_shapes=shapes)
        except Exception:
            try:
                return torch.export.export(made, args, dynamic_shapes=shapes, strict=True)
            except Exception:
                pass
            raise


def by_command(case, wanted, folder, command):
    import torch
    saved, path = os.path.join(folder, "m.pt2"), os.path.join(folder, "m.onnx")
    args = inputs(case, FIRST)
    shapes = tuple({0: torch.export.Dim.AUTO} if a.ndim else None for a in args)
    try:
        torch.export.save(capture(module(case), args, shapes), saved)
    except Exception as e:
        return "uncaught", type(e).__name__ + ": " + str(e)
    done = subprocess.run([command, saved, path, "--quiet"], capture_output=True, text=True, timeout=300)
    if done.returncode in (2, 3, 4):            # 2: PyTorch saves constants without values
        return "refused", done.stderr or done.stdout
    if done.returncode != 0:
        return "wrong", "exit %d: %s" % (done.returncode, done.stderr)
    return run(path, case, wanted)


def judge(job):
    name, command, ways = job
    import torch
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    import logging
    logging.disable(logging.CRITICAL)
    if not os.environ.get("SINGLE_LOUD"):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)        # PyTorch prints what it cannot capture
        os.dup2(1, 2)
    case = load()[name]
    try:
        wanted = truth(case)
    except Exception:
        return name, {w: ("broken", traceback.format_exc()[-700:]) for w in ways}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            try:
                if way == "python":
                    found[way] = by_python(case, wanted, folder)
                else:
                    found[way] = by_command(case, wanted, folder, command)
            except Exception:
                found[way] = "wrong", traceback.format_exc()[-700:]
    return name, found


def load():
    from case import CASES
    for name in FILES:
        if os.path.exists(os.path.join(HERE, name + "_cases.py")):
            importlib.import_module(name + "_cases")
    return CASES


def main():
    p = argparse.ArgumentParser()
    p.add_argument("command")
    p.add_argument("--only", default="")
    p.add_argument("--slice", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--ways", default="python,pt2")
    p.add_argument("--chars", type=int, default=300)
    o = p.parse_args()
    ways = o.ways.split(",")
    os.environ["PT2ONNX_LIBRARY"] = os.path.join(os.path.dirname(os.path.abspath(o.command)), "libpt2onnx.so")
    names = [n for k, n in enumerate(load()) if k % o.slice == 0 and re.search(o.only, n)]
    counts = {w: collections.Counter() for w in ways}
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(o.jobs, spawn, max_tasks_per_child=40) as pool:
        for name, found in pool.map(judge, [(n, o.command, ways) for n in names]):
            for w, (outcome, detail) in found.items():
                counts[w][outcome] += 1
                if outcome != "right":
                    print("%-8s %-6s %s: %s" % (outcome, w, name, " | ".join(detail.split("\n"))[:o.chars]), flush=True)
    for w in ways:
        print(w + ": " + ", ".join("%d %s" % (n, k) for k, n in sorted(counts[w].items())))
    bad = sum(c["wrong"] + c["broken"] for c in counts.values())
    total = sum(sum(c.values()) for c in counts.values())
    print("%d passed, %d failed" % (total - bad, bad))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
