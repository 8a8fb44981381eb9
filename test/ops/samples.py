"""PyTorch's own operator samples (OpInfo), captured, with what PyTorch computes at several sizes; kept in a folder.

    FOLDER/<torch version>-<LAYOUT>/<entry>/<dtype>/index.json   what became of each sample, in order
                                                  /K.pt2         sample K captured with every dim dynamic
                                                  /K.npz         s<i>.in.<j>, s<i>.out.<j>: size i; s<i>.true.<j>: in float64

Made once: a later run reads them without PyTorch.  Samples that differ only in values and sizes are one.  Half and
complex tensors are kept as models have them: complex ones as real ones with a last axis of 2, bfloat16 as float32.
"""
import collections
import contextlib
import json
import logging
import os
import re
import warnings

import numpy as np

LAYOUT = 1                                      # counts up when what is kept changes
MEMORY = r"(new_)?empty"                        # results are whatever the memory held
SEEDS = range(1, 9)
MATRICES = r"linalg|cholesky|lu|qr|svd|inverse|pinverse|det|eig|lobpcg|matrix_exp|ormqr|geqrf|lstsq|triangular"


def home(cache):
    return os.path.join(cache, "%s-%d" % (torch_version(), LAYOUT))


def entries(cache, pattern):
    """The names of OpInfo's entries."""
    path = os.path.join(home(cache), "entries.json")
    if not os.path.exists(path):
        from torch.testing._internal.common_methods_invocations import op_db
        os.makedirs(home(cache), exist_ok=True)
        with open(path, "w") as f:
            json.dump(sorted({full_name(op) for op in op_db}), f)
    return [name for name in json.load(open(path)) if re.search(pattern, name)]


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def torch_version():
    from importlib.metadata import version
    return version("torch").split("+")[0]


def flat_arguments(sample):
    import torch
    from torch.utils import _pytree as pytree
    leaves, spec = pytree.tree_flatten_with_path(((sample.input,) + tuple(sample.args), dict(sample.kwargs)))
    return [x for _, x in leaves], ["".join(str(k) for k in path) for path, _ in leaves], spec


def wrap(op, sample):
    """A module of the sample's tensors alone; everything else is part of it."""
    import torch
    from torch.utils import _pytree as pytree
    leaves, names, spec = flat_arguments(sample)
    is_tensor = [isinstance(x, torch.Tensor) for x in leaves]

    class Wrapped(torch.nn.Module):
        def forward(self, *tensors):
            it = iter(tensors)
            full = [next(it) if t else x for x, t in zip(leaves, is_tensor)]
            args, kwargs = pytree.tree_unflatten(full, spec)
            out = op.op(*args, **kwargs)
            return tuple(x for x in pytree.tree_leaves(out) if x is not None)

    class InFloat64(torch.nn.Module):
        def forward(self, *tensors):
            it = iter(widened(x) for x in tensors)
            full = [next(it) if t else widened(x) for x, t in zip(leaves, is_tensor)]
            args, kwargs = pytree.tree_unflatten(full, spec)
            return tuple(x for x in pytree.tree_leaves(op.op(*args, **kwargs)) if x is not None)

    picked = [k for k, t in enumerate(is_tensor) if t]
    return Wrapped(), InFloat64(), [leaves[k].detach() for k in picked], [names[k] for k in picked]


def widened(x):
    import torch
    if isinstance(x, torch.dtype):
        return {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
                torch.complex64: torch.complex128}.get(x, x)
    if not isinstance(x, torch.Tensor):
        return x
    return x.double() if x.is_floating_point() else x.to(torch.complex128) if x.is_complex() else x


def run(module, tensors, seed=1):
    """Results as tensors; numbers are tensors of rank 0.  Where a sample seeds the generator itself, `seed` counts too."""
    import torch
    plant = torch.manual_seed
    plant(seed)
    torch.manual_seed = lambda n: plant(n + seed)
    try:
        out = module(*[t.clone() for t in tensors])
    finally:
        torch.manual_seed = plant
    return [x.detach() if isinstance(x, torch.Tensor) else torch.tensor(x) for x in out]


def truth(module, tensors, want):
    """The same computed in float64, where that is the same."""
    import torch
    torch.set_default_dtype(torch.float64)
    try:
        out = run(module, tensors)
    except Exception:
        out = []
    torch.set_default_dtype(torch.float32)
    if len(out) != len(want):
        return [None] * len(want)
    return [t if t.shape == w.shape and (t.dtype == torch.float64 and w.is_floating_point() or
                                         t.dtype == torch.complex128 and w.is_complex()) else None
            for t, w in zip(out, want)]


def is_random(module, tensors):
    """Other seeds, other results."""
    first = run(module, tensors, SEEDS[0])
    return any(not np.array_equal(as_array(x), as_array(y), equal_nan=x.is_floating_point() or x.is_complex())
               for s in SEEDS[1:] for x, y in zip(first, run(module, tensors, s)))


def capture(module, tensors, path):
    """The exported program, saved at `path`; None when PyTorch cannot."""
    import torch
    dims = tuple({d: torch.export.Dim.AUTO for d in range(t.dim())} for t in tensors)
    why = ""
    for dynamic in ((dims,), None):
        try:
            ep = torch.export.export(module, tuple(t.clone() for t in tensors), strict=False, dynamic_shapes=dynamic)
            with open(path, "wb") as f:
                torch.export.save(ep, f)
            return ep, ""
        except Exception as e:
            why = "%s: %s" % (type(e).__name__, str(e).strip().split("\n")[0][:200])
    return None, why


def symbolic_sizes(ep):
    """For each input the sizes as the capture has them, and the symbols' values."""
    import torch
    shapes, values = [], collections.OrderedDict()
    inputs = set(ep.graph_signature.user_inputs)
    for node in ep.graph.nodes:
        if node.op == "placeholder" and node.name in inputs and isinstance(node.meta.get("val"), torch.Tensor):
            val = node.meta["val"]
            shapes.append([d.node.expr if isinstance(d, torch.SymInt) else d for d in val.shape])
            for d in val.shape:
                for s in d.node.expr.free_symbols if isinstance(d, torch.SymInt) else ():
                    values[s] = int(d.node.shape_env.backed_var_to_val[s])
    return shapes, values


def longer(x, axis, n, again):
    """x with n elements along an axis: its own, from the front; unless `again` scaled and moved, so that no two are
    equal and matrices stay regular."""
    import torch
    more = x.index_select(axis, torch.arange(n - x.shape[axis]) % x.shape[axis])
    if not again and (more.is_floating_point() or more.is_complex()):
        more = (more * 0.9).flatten().roll(1).view_as(more)
    return torch.cat([x, more], axis)


def legal(op, names, tensors, before):
    """What must be in order is put in order; None for what PyTorch should refuse and does not."""
    import torch
    out = list(tensors)
    by = {n: k for k, n in enumerate(names)}
    if op.name == "nn.functional.scaled_dot_product_attention" and out[1].shape[-2] != out[2].shape[-2]:
        return None                             # it reads past the end of the values
    if op.name == "lu_unpack" and out[1].shape != out[0].shape[:-2] + (min(out[0].shape[-2:]),):
        return None                             # so it does of the pivots
    if op.name == "bucketize":
        out[1] = out[1].sort(-1)[0]
    if op.name == "searchsorted":
        sorter = [k for n, k in by.items() if n.endswith("['sorter']")]
        if sorter:
            out[sorter[0]] = out[0].argsort(-1)
        else:
            out[0] = out[0].sort(-1)[0]
    for n, k in by.items():
        if op.name == "nn.functional.embedding_bag" and n.endswith("['offsets']"):
            out[k] = out[k].sort(-1)[0]
            if before[k].numel() and before[k][-1] == before[1].shape[0]:      # the offset that closes the last bag
                out[k] = torch.cat([out[k][:-1], torch.full_like(out[k][-1:], out[1].shape[0])])
        if op.name == "_segment_reduce" and n.endswith("['lengths']") and \
           (out[k].sum(-1) != out[0].shape[out[k].dim() - 1]).any():
            return None                         # unsafe=True checks nothing
    return out


def grown(op, ep, names, tensors):
    """The tensors with one symbol one larger, for each; then with all of them larger and with equal elements."""
    shapes, values = symbolic_sizes(ep)
    if len(shapes) != len(tensors) or not values:
        return
    plans = [({s: values[s] + 1}, False) for s in values]
    if not re.match(MATRICES, op.name):         # which would no longer be regular
        plans.append(({s: values[s] + 2 + i % 3 for i, s in enumerate(values)}, True))
    elif any(t.numel() == 0 for t in tensors):
        return                                  # of no matrices PyTorch does not check the sides
    for larger, again in plans:
        at, out = dict(values), list(tensors)
        at.update(larger)
        for i, shape in enumerate(shapes):
            for axis, d in enumerate(shape):
                n = d if isinstance(d, int) else int(d.subs(at))
                if n > out[i].shape[axis] > 0:
                    out[i] = longer(out[i], axis, n, again)
        out = legal(op, names, out, tensors)
        if out:
            yield ", ".join("%s=%d" % kv for kv in larger.items()), out


def sizes_of(op, module, wide, ep, names, tensors):
    """(label, inputs, outputs, truth) at each size that both PyTorch and the capture accept."""
    want = run(module, tensors)
    yield "captured", tensors, want, truth(wide, tensors, want)
    captured = ep.module()
    for label, larger in grown(op, ep, names, tensors):
        try:
            want = run(module, larger)
            same = run(captured, larger)
        except Exception:
            continue
        if len(same) == len(want) and all(a.shape == b.shape for a, b in zip(same, want)):
            yield label, larger, want, truth(wide, larger, want)        # else another program at that size


def as_array(x):
    import torch
    x = x.detach().resolve_conj().resolve_neg()
    if x.is_complex():
        x = torch.view_as_real(x)
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


def keep(path, sizes):
    arrays = {}
    for i, (_, ins, outs, true) in enumerate(sizes):
        for what, tensors in (("in", ins), ("out", outs), ("true", true)):
            for j, x in enumerate(tensors):
                if x is not None:
                    arrays["s%d.%s.%d" % (i, what, j)] = as_array(x)
    np.savez(path, **arrays)


def describe(op, sample, stem):
    """Captures and records one sample; what its line of the index says."""
    import torch
    module, wide, tensors, names = wrap(op, sample)
    random = is_random(module, tensors)
    kind = "memory" if re.match(MEMORY, op.name) else "random" if random else "exact"
    ep, why = capture(module, tensors, stem + ".pt2")
    if ep is None:
        return {"status": "uncaught", "why": why}
    if kind == "exact":
        sizes = list(sizes_of(op, module, wide, ep, names, tensors))
    else:
        sizes = [("seed %d" % s, tensors, run(module, tensors, s), ()) for s in SEEDS]
    every = [t for _, ins, outs, _ in sizes for t in list(ins) + list(outs)]
    keep(stem + ".npz", sizes)
    leaves, paths, _ = flat_arguments(sample)
    plain = {p: x for p, x in zip(paths, leaves) if isinstance(x, (bool, int, float, str))}
    return {"status": "kept", "kind": kind, "sizes": [s[0] for s in sizes], "plain": plain,
            "inputs": [str(t.dtype)[6:] for t in tensors], "outputs": [str(t.dtype)[6:] for t in sizes[0][2]],
            "dynamic": bool(symbolic_sizes(ep)[1]), "complex": any(t.is_complex() for t in every)}


def signature(sample):
    """Samples that differ only in values and sizes are one."""
    import torch
    leaves, _, spec = flat_arguments(sample)
    key = [(tuple(min(n, 2) for n in x.shape), str(x.dtype), x.is_contiguous()) if isinstance(x, torch.Tensor)
           else repr(x) for x in leaves]
    return repr((key, str(spec)))


def is_strided(sample):
    import torch
    return all(x.layout == torch.strided for x in flat_arguments(sample)[0] if isinstance(x, torch.Tensor))


def chosen_samples(op, dtype):
    """[(place in OpInfo's list, sample)], one of each signature."""
    import torch
    torch.manual_seed(0)
    dt = getattr(torch, dtype)
    if not op.supports_dtype(dt, "cpu"):
        return []
    seen = set()
    out = []
    for k, sample in enumerate(op.sample_inputs("cpu", dt, requires_grad=False)):
        if is_strided(sample) and signature(sample) not in seen:
            seen.add(signature(sample))
            out.append((k, sample))
    return out


def kept_samples(cache, name, dtype, limit, before=lambda k: None, crashing=()):
    """(folder, lines of its index): the first `limit` samples of an entry, 0 for all; captured if they are not yet.
    before(k) is called before each capture; those in `crashing` are known to end the process."""
    folder = os.path.join(home(cache), name, dtype)
    path = os.path.join(folder, "index.json")
    index = json.load(open(path)) if os.path.exists(path) else {"samples": [], "complete": False}
    have = index["samples"]
    if not index["complete"] and (not limit or len(have) < limit):
        capture_more(folder, path, index, name, dtype, limit, before, crashing)
    return folder, have[:limit] if limit else have


def capture_more(folder, path, index, name, dtype, limit, before, crashing):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    torch.set_num_threads(1)
    os.makedirs(folder, exist_ok=True)
    op, have = next(o for o in op_db if full_name(o) == name), index["samples"]
    todo = chosen_samples(op, dtype)
    with torch.no_grad(), open(os.devnull, "w") as null, contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
        for k, sample in todo[len(have):limit or None]:
            before(k)
            try:
                if k in crashing:
                    raise RuntimeError("PyTorch ends the process")
                line = describe(op, sample, os.path.join(folder, str(k)))
            except Exception as e:                              # PyTorch's: nothing of ours has run yet
                line = {"status": "uncaught", "why": "%s: %s" % (type(e).__name__, str(e)[:200])}
            have.append(dict(line, k=k))
            write_index(path, index)
    index["complete"] = len(have) == len(todo)
    write_index(path, index)


def write_index(path, index):
    with open(path + ".new", "w") as f:
        json.dump(index, f)
    os.replace(path + ".new", path)
