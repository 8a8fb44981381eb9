"""Runs PyTorch's own operator samples (OpInfo) through pt2onnx and ONNX Runtime and compares with PyTorch.

usage: suite.py PT2ONNX [--ops REGEX] [--dtypes float32,int64,..] [--samples N] [--jobs N] [--json FILE]
                [--table FILE.md] [--show]

Each sample is captured with every dim dynamic (fixed where PyTorch's capture needs it), converted, and run
at its own size and, where a dim can grow, one larger.  Outcomes:
  right     the numbers, dtypes and shapes are PyTorch's
  refused   pt2onnx said that it does not support something
  wrong     anything else: other numbers, a model that does not run, a crash
  uncaught  PyTorch itself does not capture or save the sample; not counted
"""
import argparse, collections, json, logging, os, re, subprocess, sys, tempfile, warnings
from concurrent.futures import ProcessPoolExecutor

DTYPES = ["float32", "int64", "bool", "float16"]
TIES = {"topk", "kthvalue", "sort", "argsort", "mode", "median", "nanmedian"}
SORTED_INPUT = {"bucketize", "searchsorted", "nn.functional.embedding_bag"}     # grown by wrapping around they would not be
SAYS_RANDOM = ["random numbers have", "dropout as in training"]
TOLERANCE = {"float16": (1e-2, 1e-2), "bfloat16": (3e-2, 3e-2), "float32": (1e-4, 2e-5), "float64": (1e-6, 1e-8)}


def entries(pattern):
    from torch.testing._internal.common_methods_invocations import op_db
    return [(i, op) for i, op in enumerate(op_db) if re.search(pattern, full_name(op))]


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def is_random(op, sample):
    """Two seeds, two results, or memory as it was: nothing to compare."""
    import torch
    if re.match("(new_)?empty", op.name):
        return True
    outs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        try:
            outs.append(flat_tensors(call(op, sample)))
        except Exception:
            return False
    return any(not torch.equal(a, b) for a, b in zip(*outs) if a.dtype == b.dtype and not a.isnan().any())


def call(op, sample):
    from torch.utils import _pytree as pytree
    args, kwargs = pytree.tree_map(copy_tensor, ((sample.input,) + tuple(sample.args), dict(sample.kwargs)))
    return op.op(*args, **kwargs)


def copy_tensor(x):
    import torch
    return x.detach().clone() if isinstance(x, torch.Tensor) else x


def flat_tensors(out):
    import torch
    from torch.utils import _pytree as pytree
    leaves = pytree.tree_leaves(out)
    return [x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in leaves if x is not None]


def wrap(op, sample):
    """A module of the sample's tensors alone; everything else is part of it."""
    import torch
    from torch.utils import _pytree as pytree
    leaves, spec = pytree.tree_flatten(((sample.input,) + tuple(sample.args), dict(sample.kwargs)))
    is_tensor = [isinstance(x, torch.Tensor) for x in leaves]

    class Wrapped(torch.nn.Module):
        def forward(self, *tensors):
            it = iter(tensors)
            full = [next(it) if t else x for x, t in zip(leaves, is_tensor)]
            args, kwargs = pytree.tree_unflatten(full, spec)
            out = op.op(*args, **kwargs)
            return tuple(x for x in pytree.tree_leaves(out) if x is not None)

    return Wrapped(), [x.detach() for x, t in zip(leaves, is_tensor) if t]


def capture(module, tensors, path):
    import torch
    dims = tuple({d: torch.export.Dim.AUTO for d in range(t.dim())} for t in tensors)
    for dynamic in (dims, None):
        try:
            ep = torch.export.export(module, tuple(t.clone() for t in tensors), strict=False,
                                     dynamic_shapes=(dynamic,) if dynamic is not None else None)
            with open(path, "wb") as f:
                torch.export.save(ep, f)
            return True
        except Exception:
            continue
    return False


def grown(inputs, tensors):
    """The tensors with one symbol's axes one longer, for each symbol."""
    import torch
    symbols = collections.OrderedDict()
    if any(isinstance(dim, str) and not dim.isidentifier() for port in inputs for dim in port.shape):
        return                          # a size that follows others would have to grow with them
    for i, port in enumerate(inputs):
        for axis, dim in enumerate(port.shape):
            if isinstance(dim, str):
                symbols.setdefault(dim, []).append((i, axis))
    for symbol, places in symbols.items():
        out = list(tensors)
        for i, axis in places:
            n = out[i].shape[axis]
            if n == 0:
                break
            more = out[i].index_select(axis, torch.tensor([0]))
            if more.is_floating_point():
                more = (more * 0.9).flatten().roll(1).view_as(more)     # no ties, regular matrices, the same domain
            out[i] = torch.cat([out[i], more], axis)
        else:
            yield symbol, out


def as_real(x):
    """Models have complex tensors as real ones with a last axis of 2."""
    import torch
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def differs(got, want):
    import numpy as np
    import torch
    want = as_real(want.detach())
    ref = want.resolve_conj().resolve_neg().numpy()
    if tuple(got.shape) != tuple(ref.shape):
        return "shape %s, expected %s" % (list(got.shape), list(ref.shape))
    if got.dtype != ref.dtype:
        return "dtype %s, expected %s" % (got.dtype, ref.dtype)
    if got.dtype.kind not in "fc":
        return None if np.array_equal(got, ref) else "values differ"
    rtol, atol = TOLERANCE.get(str(got.dtype), (1e-4, 2e-5))
    if np.allclose(got, ref, rtol=rtol, atol=atol, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return "values differ by %g" % np.nanmax(np.abs(got.astype("f8") - ref.astype("f8")))


def points_alike(op, x, got, want):
    """Which of equal elements an index names is open: it must name an equal one."""
    import torch
    if op.name not in TIES or not isinstance(x, torch.Tensor) or want.dtype != torch.int64:
        return False
    got = torch.from_numpy(got)
    for dim in range(x.dim()):
        a, b = (t.unsqueeze(dim) if t.dim() < x.dim() else t for t in (got, want))
        try:
            if torch.equal(x.gather(dim, a), x.gather(dim, b)):
                return True
        except RuntimeError:
            continue
    return False


def run_model(session, tensors):
    names = {i.name for i in session.get_inputs()}
    feeds = {i.name: as_real(t).resolve_conj().resolve_neg().numpy() for i, t in zip(session.get_inputs(), tensors)}
    return session.run(None, {k: v for k, v in feeds.items() if k in names})


def try_sample(pt2onnx, op, sample, folder):
    import onnxruntime as ort
    if is_random(op, sample):
        return "random", ""
    module, tensors = wrap(op, sample)
    pt2, onnx = os.path.join(folder, "m.pt2"), os.path.join(folder, "m.onnx")
    want = module(*[t.clone() for t in tensors])
    if any(str(t.dtype) == "torch.bfloat16" for t in list(tensors) + flat_tensors(want)):
        return "uncaught", "NumPy has no bfloat16"
    if not capture(module, tensors, pt2):
        return "uncaught", ""
    if os.path.exists(onnx):
        os.remove(onnx)
    p = subprocess.run([pt2onnx, pt2, onnx], capture_output=True, text=True)
    if p.returncode == 0 and any(s in p.stderr for s in SAYS_RANDOM):       # seeded by the sample itself
        return "random", ""
    if p.returncode == 3:
        return "refused", p.stderr.strip().split("error: ")[1].split("\n")[0] if "error: " in p.stderr else p.stderr
    if p.returncode != 0:
        return "wrong", "exit code %d: %s" % (p.returncode, p.stderr.strip()[:300])
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return "wrong", "does not load: %s" % str(e).split("\n")[0][:300]
    sizes = [("captured", tensors)]
    if op.name not in SORTED_INPUT:
        sizes += grown(session.get_inputs(), tensors)
    for what, ts in sizes:
        if what != "captured":
            try:
                larger = module(*[t.clone() for t in ts])
            except Exception:
                continue
            if len(larger) != len(want):        # as many results as the size says: another program
                continue
            want = larger
        try:
            got = run_model(session, ts)
        except Exception as e:
            return "wrong", "does not run at %s: %s" % (what, str(e).split("\n")[0][:300])
        if len(got) != len(want):
            return "wrong", "%d outputs, expected %d" % (len(got), len(want))
        for k, (g, w) in enumerate(zip(got, want)):
            bad = differs(g, w if hasattr(w, "detach") else __import__("torch").tensor(w))
            if bad and not points_alike(op, ts[0], g, w):
                return "wrong", "output %d at %s: %s" % (k, what, bad)
    return "right", ""


def signature(sample):
    """Samples that differ only in values and sizes are one."""
    import torch
    from torch.utils import _pytree as pytree
    leaves, spec = pytree.tree_flatten(((sample.input,) + tuple(sample.args), dict(sample.kwargs)))
    key = [(tuple(min(n, 2) for n in x.shape), str(x.dtype), x.is_contiguous()) if isinstance(x, torch.Tensor)
           else repr(x) for x in leaves]
    return repr((key, str(spec)))


def is_strided(sample):
    import torch
    from torch.utils import _pytree as pytree
    leaves = pytree.tree_leaves(((sample.input,) + tuple(sample.args), dict(sample.kwargs)))
    return all(x.layout == torch.strided for x in leaves if isinstance(x, torch.Tensor))


def try_entry(job):
    index, dtype, pt2onnx, limit = job
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    torch.set_num_threads(1)
    op, out, seen = op_db[index], [], set()
    torch.manual_seed(0)
    dt = getattr(torch, dtype)
    if not op.supports_dtype(dt, "cpu"):
        return full_name(op), dtype, out
    try:
        samples = list(op.sample_inputs("cpu", dt, requires_grad=False))
    except Exception:
        return full_name(op), dtype, out
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for k, sample in enumerate(samples):
            if not is_strided(sample):
                continue
            key = signature(sample)
            if key in seen or (limit and len(seen) >= limit):
                continue
            seen.add(key)
            try:
                status, why = try_sample(pt2onnx, op, sample, folder)
            except Exception as e:
                status, why = "uncaught", "%s: %s" % (type(e).__name__, str(e)[:200])
            out.append((k, status, why))
    return full_name(op), dtype, out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("pt2onnx")
    p.add_argument("--ops", default="")
    p.add_argument("--dtypes", default="float32")
    p.add_argument("--samples", type=int, default=0)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--json")
    p.add_argument("--table")
    p.add_argument("--show", action="store_true")
    a = p.parse_args()
    jobs = [(i, d, os.path.abspath(a.pt2onnx), a.samples) for i, _ in entries(a.ops) for d in a.dtypes.split(",")]
    rows = collections.OrderedDict()
    total = collections.Counter()
    with ProcessPoolExecutor(a.jobs) as pool:
        for name, dtype, out in pool.map(try_entry, jobs):
            row = rows.setdefault(name, collections.Counter())
            for k, status, why in out:
                row[status] += 1
                total[status] += 1
                if status == "wrong" or (a.show and status in ("refused", "uncaught")):
                    print("%s %s #%d %s: %s" % (name, dtype, k, status, why), flush=True)
    counted = {n: r for n, r in rows.items() if r["right"] + r["refused"] + r["wrong"]}
    good = [n for n, r in counted.items() if not r["refused"] and not r["wrong"]]
    wrong = [n for n, r in counted.items() if r["wrong"]]
    print("samples: %s" % ", ".join("%d %s" % (v, k) for k, v in sorted(total.items())))
    print("entries: %d, right in all samples: %d (%.1f%%), some wrong: %d" %
          (len(counted), len(good), 100.0 * len(good) / max(1, len(counted)), len(wrong)))
    if a.json:
        json.dump(rows, open(a.json, "w"), indent=0, sort_keys=True)
    if a.table:
        write_table(a.table, counted, "%s of each entry, %s" % ("the first %d samples" % a.samples if a.samples else "all samples", a.dtypes))
    print("%d passed, %d failed" % (total["right"], total["wrong"]))
    return 1 if wrong else 0


def write_table(path, rows, what):
    with open(path, "w") as f:
        f.write("# Operators, by PyTorch's own samples\n\nMade by `make test-ops`. Entries are OpInfo's; a sample "
                "is right when dtype, shape and numbers are PyTorch's at every size tried.\n"
                "This run: " + what + ".\n\n"
                "| entry | tried | right | refused | wrong |\n|---|---|---|---|---|\n")
        for name, r in sorted(rows.items()):
            f.write("| %s | %d | %d | %d | %d |\n" % (name, r["right"] + r["refused"] + r["wrong"], r["right"],
                                                     r["refused"], r["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
