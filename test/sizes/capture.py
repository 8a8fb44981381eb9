"""What PyTorch says of a module, kept on disk: captures at fixed or symbolic sizes, exports of
torch.onnx, and what the module computes at the sizes of the test."""
import ast
import collections
import contextlib
import glob
import hashlib
import heapq
import importlib.util
import inspect
import itertools
import json
import logging
import math
import os
import pickle
import random
import re
import resource
import shutil
import sys
import warnings
import zipfile

import numpy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import case as case_module

VERSION = "1"                   # of the choices below: a change makes all anew
TESTS = 12
MOST_ELEMENTS = 1 << 20         # of an input
RECORD_SIZES, RECORD_BYTES = 6, 32 << 10
MEMORY = 8 << 30                # for a capture
TRIES = 24                      # sizes that a case allows, but PyTorch may not
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16,
          "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32, "i16": torch.int16,
          "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool, "c64": torch.complex64}

# Per symbol, in order; the last are taken again, each time 6 more.
SYMBOLIC = [7, 11, 13, 17, 19, 23]
ONE = [[2, 3, 5, 7, 11, 13], [4, 8, 16, 32, 4, 8], [5, 97, 61, 83, 43, 31],
       [12, 13, 14, 15, 16, 17], [1, 6, 10, 9, 14, 15]]
TWO = [([2, 3, 4, 5, 6, 7], [3, 4, 5, 6, 7, 8]),
       ([13, 14, 16, 18, 20, 22], [15, 17, 19, 21, 23, 25]),
       ([17, 19, 23, 21, 22, 18], [40, 38, 44, 36, 34, 33]),
       ([2, 3, 5, 7, 4, 6], [33, 97, 61, 83, 43, 31])]
THREE = [[5, 97, 61, 43, 31, 29], [12, 26, 35, 22, 18, 15], [3, 41, 19, 14, 11, 7]]


class Unexportable(Exception):
    """PyTorch itself does not capture the module."""


class Subject:
    """A module of the suite, with a place for what PyTorch says of it."""

    def __init__(self, case, stem, text_hash, cache):
        self.case, self.name = case, stem + "." + case.name
        self.folder = os.path.join(cache, stem, "%s-%s" % (case.name, text_hash))
        self._refs = {}

    def module(self):
        torch.manual_seed(0)
        return self.case.cls().eval()

    def inputs(self, sizes):
        text = self.name + json.dumps(sizes)
        g = torch.Generator().manual_seed(int(hashlib.sha1(text.encode()).hexdigest()[:8], 16))
        return tuple(one_input(i, sizes, g) for i in self.case.inputs)

    def unreal(self, sizes):
        """Inputs without memory, for a capture at sizes that nothing is run at."""
        with FakeTensorMode():
            return tuple(torch.zeros(i.shape(sizes), dtype=DTYPES[i.dtype])
                         for i in self.case.inputs)

    def names(self):
        """The names of the inputs in captures: those of forward's parameters."""
        names = []
        for p in inspect.signature(self.case.cls.forward).parameters.values():
            if p.kind == p.VAR_POSITIONAL:
                names += ["%s_%d" % (p.name, k) for k in range(len(self.case.inputs))]
            else:
                names.append(p.name)
        return names[1:1 + len(self.case.inputs)]

    def axes(self):
        """Per input, axis -> the name to give it.  An expression gets one of its own: the command
        takes no expressions, and finds out what they are."""
        return [{k: a if a.isidentifier() else "%s_%d" % (name, k)
                 for k, a in enumerate(i.axes) if not a.isdigit()}
                for name, i in zip(self.names(), self.case.inputs)]

    def declared(self):
        words = []
        for name, i, axes in zip(self.names(), self.case.inputs, self.axes()):
            if i.axes:
                words += ["--input", name + ":" + ",".join(axes.get(k, a)
                                                           for k, a in enumerate(i.axes))]
        return words

    # sizes

    def near(self, wanted, other_than=None, taken=(), large=False):
        """The nearest sizes to these, none of `taken`, that the case allows and at which the module
        runs, all of them other than those of `other_than` if there are any such.  `large`: however
        large.  Where it runs nowhere near, further down."""
        for strict in (True, False) if other_than else (False,):
            tries = 0
            for sizes in nearest(self.case, wanted, large=large):
                if strict and any(sizes[s] == other_than[s] for s in sizes) or sizes in taken:
                    continue
                if self.runs(sizes):
                    return sizes
                tries += 1
                if tries == TRIES:
                    break
        if max(wanted.values()) <= 24:          # as small as the line below makes them
            for values in itertools.permutations(wanted.values()):      # s >= t is far from s << t
                sizes = dict(zip(wanted, values))
                if allowed(self.case, sizes, large) and sizes not in taken and self.runs(sizes):
                    return sizes
            raise ValueError("%s runs nowhere near %s" % (self.name, wanted))
        return self.near({s: min(n, 12 + n // 2) for s, n in wanted.items()}, other_than, taken)

    def choice(self, values, other_than=None):
        more = values + [v + 6 for v in values] + [v + 12 for v in values]
        return self.near(dict(zip(self.case.symbols(), more)), other_than)

    def runs(self, sizes):
        """Known from an earlier run, or tried."""
        if too_large(self.case, sizes):
            return True
        path = self.path("runs", sizes, "json")
        if not os.path.exists(path):
            try:
                self.eager(sizes)
                why = None
            except Exception as e:
                why = "%s: %s" % (type(e).__name__, str(e).split("\n")[0])
            write(path, json.dumps(why).encode())
        with open(path) as f:
            return json.load(f) is None

    def refusals(self):
        """What PyTorch said at sizes that the case allows, as lines."""
        for path in sorted(glob.glob(os.path.join(glob.escape(self.folder), "runs-*.json"))):
            with open(path) as f:
                why = json.load(f)
            if why:
                yield "%s at %s: %s" % (self.name, os.path.basename(path)[5:-5], why)

    # what PyTorch computes

    def eager(self, sizes):
        with torch.no_grad(), quiet():
            out = self.module()(*[t.clone() for t in self.inputs(sizes)])
        return [numpy_of(x) for x in leaves_of(out)]

    def refs(self, fixed=None):
        """[(sizes, inputs, outputs)] at the sizes of the test, those of `fixed` held."""
        key = dict(sorted((fixed or {}).items()))
        path = self.path("refs2", key, "pickle")
        if path not in self._refs:
            if not os.path.exists(path):
                refs = []
                for sizes in test_sizes(self, key):
                    try:
                        out = self.eager(sizes)
                    except Exception:
                        self.runs(sizes)        # keeps why not
                        continue
                    refs.append((sizes, [numpy_of(t) for t in self.inputs(sizes)], out))
                    if len(refs) == TESTS:
                        break
                if not refs:
                    raise ValueError("%s runs nowhere with %s" % (self.name, key))
                write(path, pickle.dumps(refs))
            with open(path, "rb") as f:
                self._refs[path] = pickle.load(f)
        return self._refs[path]

    # captures

    def path(self, what, sizes, ext):
        name = "-".join([what] + ["%s%d" % kv for kv in sizes.items()])
        return os.path.join(self.folder, name + "." + ext)

    def kept(self, path, make):
        """The file at path, made if it is not there; what it cannot be made for is kept as well."""
        if os.path.exists(path + ".why"):
            with open(path + ".why") as f:
                raise Unexportable(f.read())
        if not os.path.exists(path):
            os.makedirs(self.folder, exist_ok=True)
            part = os.path.join(self.folder, ".part%d.%s" % (os.getpid(), os.path.basename(path)))
            try:
                with torch.no_grad(), quiet(), limited_memory():
                    make(part)
            except Exception as e:
                why = "%s: %s" % (type(e).__name__, " ".join(str(e).split())[:300])
                write(path + ".why", why.encode())
                raise Unexportable(why)
            os.replace(part, path)
        return path

    def fixed(self, sizes):
        def make(part):
            inputs = self.inputs(sizes) if not too_large(self.case, sizes) else self.unreal(sizes)
            ep = torch.export.export(self.module(), inputs)
            ep.example_inputs = None            # the converter has no use for them
            torch.export.save(ep, part)
        return self.kept(self.path("fixed", sizes, "pt2"), make)

    def program(self, sizes):
        """How often each line makes each call, in PyTorch's capture at these sizes; None where it
        has none.  Calls that PyTorch leaves out where they do nothing are not counted."""
        try:
            with zipfile.ZipFile(self.fixed(sizes)) as z:
                name = next(n for n in z.namelist() if n.endswith("models/model.json"))
                nodes = json.loads(z.read(name))["graph_module"]["graph"]["nodes"]
        except Unexportable:
            return None
        counts = collections.Counter()
        for n in nodes:
            if not re.match(r"torch.ops.aten.(slice|pad|expand|lift|detach|upsample)", n["target"]):
                line = n["metadata"].get("stack_trace", "").split("\n")[-1]
                counts[n["target"], line] += 1
        return counts

    def symbolic(self):
        """(file, the sizes of the example, [input, axis] that PyTorch fixed)"""
        sizes = self.choice(SYMBOLIC)
        auto = torch.export.Dim.AUTO
        free = [{k: auto for k in axes} for axes in self.axes()]
        path = self.path("symbolic", sizes, "pt2")

        def make(part):
            parameters = list(inspect.signature(self.case.cls.forward).parameters.values())[1:]
            several = parameters and parameters[0].kind == inspect.Parameter.VAR_POSITIONAL
            shapes = (tuple(free),) if several else tuple(free)
            ep = torch.export.export(self.module(), self.inputs(sizes), dynamic_shapes=shapes)
            torch.export.save(ep, part)
            write(path + ".fixed", json.dumps(fixed_axes(ep, free)).encode())
        self.kept(path, make)
        with open(path + ".fixed") as f:
            return path, sizes, json.load(f)

    def onnx(self, dynamo):
        sizes = self.choice(SYMBOLIC)

        def make(part):
            more = {"external_data": False} if dynamo else {}
            torch.onnx.export(self.module(), self.inputs(sizes), part, dynamo=dynamo,
                              input_names=self.names(), **more)
        return self.kept(self.path("dynamo" if dynamo else "script", sizes, "onnx"), make), sizes


def says_capture(subject, path, sizes):
    """What a saved capture itself gives where the file made from it does not give PyTorch's."""
    with torch.no_grad(), quiet():
        try:
            out = torch.export.load(path).module()(*subject.inputs(sizes))
        except Exception as e:
            return None, "refuses: " + " ".join(str(e).split())[:150]
    return [numpy_of(x) for x in leaves_of(out)], "runs"


def is_right(subject, path, sizes, want, difference):
    """Whether PyTorch computes the module's numbers from a saved capture."""
    out, _ = says_capture(subject, path, sizes)
    return out is not None and not difference(out, want)


def one_input(i, sizes, g):
    shape, dtype = i.shape(sizes), DTYPES[i.dtype]
    if dtype == torch.bool:
        return torch.rand(shape, generator=g) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=g).to(dtype)
    return torch.randint(0, i.below, shape, generator=g).to(dtype)


def fixed_axes(ep, free):
    """The axes that were to be free, and have a number now."""
    users = {n.name: n for n in ep.graph.nodes if n.op == "placeholder"}
    names = [s.arg.name for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    out = []
    for k, (name, axes) in enumerate(zip(names, free)):
        shape = users[name].meta["val"].shape
        out += [[k, axis] for axis in axes if is_number(shape[axis])]
    return out


def is_number(size):
    """Also a symbol that a guard has given a value."""
    return isinstance(size, int) or size.node.maybe_as_int() is not None


def leaves_of(out):
    return [x for x in torch.utils._pytree.tree_leaves(out) if x is not None]


def numpy_of(x):
    if isinstance(x, torch.Tensor):
        x = x.detach()
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy().copy()
    return torch.tensor(x).numpy()


# Which sizes

def allowed(case, sizes, large=False):
    return (case.allows(sizes) and (large or not too_large(case, sizes))
            and all(n >= 0 for i in case.inputs for n in i.shape(sizes)))


def too_large(case, sizes):
    return any(math.prod(i.shape(sizes)) > MOST_ELEMENTS for i in case.inputs)


def nearest(case, wanted, held=(), large=False, most_seen=60000):
    """Sizes that the case allows, nearest first."""
    names = list(wanted)
    start = tuple(min(max(wanted[s], case.least.get(s, 1)), case.most.get(s, wanted[s]))
                  for s in names)
    while not large and too_large(case, dict(zip(names, start))) and max(start) > 8:
        start = tuple(n * 7 // 8 if n == max(start) else n for n in start)
    heap, seen = [(0, 0, start)], {start}
    order = itertools.count(1)
    while heap:
        _, _, at = heapq.heappop(heap)
        sizes = dict(zip(names, at))
        if allowed(case, sizes, large):
            yield sizes
        for k in [k for k, s in enumerate(names) if s not in held]:
            for step in (-1, 1):
                to = at[:k] + (at[k] + step,) + at[k + 1:]
                if to not in seen and to[k] >= 1 and len(seen) < most_seen:
                    seen.add(to)
                    far = sum(abs(a - b) for a, b in zip(to, start))
                    heapq.heappush(heap, (far, next(order), to))


def test_sizes(subject, fixed):
    """Sizes to test at, more than are needed: the least, small ones, powers of two, primes, equal
    ones, a large one, random ones."""
    case = subject.case
    names = [s for s in case.symbols() if s not in fixed]
    large = {0: 1, 1: 100, 2: 100, 3: 40, 4: 24}.get(len(names), 16)
    rng = random.Random(subject.name)
    wanted = [[1, 1, 1, 1], [2, 3, 5, 7], [1, 4, 6, 9], [5, 1, 1, 1], [3, 3, 3, 3], [4, 8, 16, 32],
              [2, 2, 2, 2], [7, 11, 13, 5], [8, 16, 8, 16], [3, large, large - 5, large - 3],
              [6, 10, 1, 12]]
    if len(names) == 1:
        wanted = [[n] for n in (1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, large)]
    seen = []
    for values in wanted + [None] * 60:
        if values is None:
            few = 9 if len(names) > 1 else 40           # the first is a batch
            values = [rng.randint(1, 24 if k else few) for k in range(len(names))]
        values = values + [v + 1 for v in values] + [v + 2 for v in values]
        sizes = first_allowed(case, dict(zip(names, values)), fixed)
        if sizes is not None and sizes not in seen:
            seen.append(sizes)
            yield sizes


def first_allowed(case, wanted, fixed):
    """In the order of the case's symbols; None where none is near."""
    everything = {s: fixed.get(s, wanted.get(s)) for s in case.symbols()}
    return next(nearest(case, everything, fixed, most_seen=20000), None)


# Files

def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = "%s.part%d" % (path, os.getpid())
    with open(part, "wb") as f:
        f.write(data)
    os.replace(part, path)


@contextlib.contextmanager
def quiet():
    """Without warnings, logs or anything else on the terminal, from C++ neither."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    logging.disable(logging.CRITICAL)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd, copy in zip((1, 2), kept):
            os.dup2(copy, fd)
        for fd in kept + [nowhere]:
            os.close(fd)
        logging.disable(logging.NOTSET)


def record_data(folder, subject, held):
    refs = subject.refs(held)
    small = [r for r in refs if sum(x.nbytes for x in r[1] + r[2]) < RECORD_BYTES] or refs[:1]
    chosen = small[::2] + small[1::2]
    arrays = {}
    for k, (_, inputs, outputs) in enumerate(chosen[:RECORD_SIZES]):
        arrays.update(("s%d.in.%d" % (k, i), x) for i, x in enumerate(inputs))
        arrays.update(("s%d.out.%d" % (k, j), x) for j, x in enumerate(outputs))
    name = "-".join([subject.name] + sorted(held or {})) + ".npz"
    numpy.savez_compressed(os.path.join(folder, name), **arrays)
    return name


def copy_capture(path, to):
    """Deflated, and without the names of anyone's folders."""
    if not path.endswith(".pt2"):
        shutil.copyfile(path, to)
        return
    with zipfile.ZipFile(path) as z, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out:
        for item in z.infolist():
            data = re.sub(rb'File \\"/[^"\\]*/', rb'File \\"', z.read(item))
            out.writestr(zipfile.ZipInfo(item.filename), data, zipfile.ZIP_DEFLATED)


@contextlib.contextmanager
def limited_memory():
    """A table of all pairs of the pixels of a large image would take the machine down."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def text_of(tree, source, name):
    """The class, what it mentions of other cases, and whatever else is in the file."""
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef) and n.decorator_list}
    taken, todo = [], [name]
    while todo:
        one = todo.pop()
        taken.append(one)
        words = set(re.findall(r"\w+", segment(classes[one], source)))
        todo += [c for c in classes if c in words and c not in taken and c not in todo]
    rest = [n for n in tree.body if getattr(n, "name", None) not in classes]
    return "\n".join([segment(classes[n], source) for n in sorted(taken)]
                     + [segment(n, source) for n in rest])


def segment(node, source):
    first = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])])
    return "\n".join(source[first - 1:node.end_lineno])


def load(modules, cache):
    """Every module of the suite.  Files are copied first: captures quote source lines, and a file
    may be edited meanwhile."""
    subjects = []
    for path in sorted(os.listdir(modules)):
        if not path.endswith(".py") or path.startswith("_"):
            continue
        with open(os.path.join(modules, path)) as f:
            text = f.read()
        digest = hashlib.sha1(text.encode()).hexdigest()[:10]
        copy = os.path.join(cache, "source", digest, path)
        if not os.path.exists(copy):
            write(copy, text.encode())
        stem = path[:-3]
        spec = importlib.util.spec_from_file_location("sizes_" + stem, copy)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        before = len(case_module.CASES)
        spec.loader.exec_module(module)
        tree, source = ast.parse(text), text.split("\n")
        for c in case_module.CASES[before:]:
            own = VERSION + text_of(tree, source, c.name)
            subjects.append(Subject(c, stem, hashlib.sha1(own.encode()).hexdigest()[:10], cache))
    return subjects
