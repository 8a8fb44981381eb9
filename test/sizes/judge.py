"""Whether a converted file is right: runs it in ONNX Runtime where PyTorch was run, and finds the
class of the result.

  right     numbers, types and shapes are PyTorch's at every size
  refused   the converter said that it cannot be done
  excluded  right but at sizes that the file itself says it is not for
  branch    differs at a size outside the captured ones, where the module's own code goes on
            another way: takes other instructions, another side of a min or max, or as many turns
            of a loop as make PyTorch's capture there another program
  wrong     differs at a legal size
  fails     ONNX Runtime raises at a legal size
  crash     the converter died
"""
import json
import math
import operator
import re
import resource
import subprocess
import sys

import numpy as np
import onnxruntime as ort

TOLERANCE = {"float16": 1e-2}           # of the largest number, or of 1; others 1e-4
SECONDS = 60


class Verdict:
    def __init__(self, kind, why="", **more):
        self.kind, self.why, self.more = kind, why, more


def without_limit():
    """A command with sanitizers reserves more addresses than a model's try may use."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def convert(command):
    """(Verdict or None, stderr)"""
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                           preexec_fn=without_limit,
                           errors="replace")
    except subprocess.TimeoutExpired:
        return Verdict("crash", "no end within %d s" % SECONDS), ""
    if p.returncode == 0:
        return None, p.stderr
    if not 0 < p.returncode <= 6:
        why = "exit code %d: %s" % (p.returncode, p.stderr.strip()[-300:])
        return Verdict("crash", why), p.stderr
    return Verdict("refused", first_error(p.stderr), code=p.returncode), p.stderr


def first_error(text):
    lines = text.strip().split("\n")
    for line in lines:
        if ": error: " in line:
            return line.split(": error: ", 1)[1]
    return lines[0]


def session_of(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def difference(got, want):
    """None, or how two outputs differ."""
    if got.shape != want.shape:
        return "shape %s, expected %s" % (list(got.shape), list(want.shape))
    if got.dtype != want.dtype:
        return "%s, expected %s" % (got.dtype, want.dtype)
    if got.dtype.kind not in "fc":
        bad = got != want
        return "%d of %d values differ" % (bad.sum(), bad.size) if bad.any() else None
    kind = "c16" if got.dtype.kind == "c" else "f8"
    g, w = got.astype(kind), want.astype(kind)
    with np.errstate(all="ignore"):
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        finite = np.abs(w[np.isfinite(w)])
        room = TOLERANCE.get(str(want.dtype), 1e-4) * max(1.0, finite.max(initial=0))
        apart = np.where(same, 0, np.abs(g - w))
        if (apart <= room).all():               # a NaN is not
            return None
        return "max diff %.3g" % np.max(np.nan_to_num(apart, nan=np.inf))


def difference_of_all(got, want):
    if len(got) != len(want):
        return "%d outputs, expected %d" % (len(got), len(want))
    for j, (g, w) in enumerate(zip(got, want)):
        bad = difference(np.asarray(g), w)
        if bad:
            return "output %d: %s" % (j, bad)
    return None


class File:
    """A converted model, and what it says of its own sizes."""

    def __init__(self, path, names):
        self.session = session_of(path)
        self.ports = self.session.get_inputs()
        known = all(p.name in names for p in self.ports)
        self.index = {p.name: names.index(p.name) if known else k
                      for k, p in enumerate(self.ports)}
        meta = self.session.get_modelmeta().custom_metadata_map.get("pt2onnx.dims")
        self.dims = json.loads(meta) if meta else {}

    def run(self, inputs):
        return self.session.run(None, {name: inputs[k] for name, k in self.index.items()})

    def excludes(self, inputs):
        """None, or the words of the file by which it is not for inputs of these sizes."""
        at = {}
        for p in self.ports:
            shape = inputs[self.index[p.name]].shape
            for k, (dim, n) in enumerate(zip(p.shape, shape)):
                if isinstance(dim, int) and dim != n:
                    return "axis %d of %s is %d" % (k, p.name, dim)
                if isinstance(dim, str) and at.setdefault(dim, n) != n:
                    return "%s is one size" % dim
        for name, s in self.dims.get("symbols", {}).items():
            if not s.get("min", 0) <= at.get(name, s.get("min", 0)):
                return "%s >= %d" % (name, s["min"])
            if "max" in s and at.get(name, 0) > s["max"]:
                return "%s <= %d" % (name, s["max"])
        for need in self.dims.get("needs", []):
            if not holds(need, at):
                return need
        return None


def holds(need, sizes):
    """What cannot be read excludes nothing."""
    text = re.sub(r"(?<![<>=!])=(?!=)", "==", need).replace("^", "**")
    try:
        return bool(eval(text, {"math": math, "operator": operator}, dict(sizes)))
    except (ArithmeticError, ValueError):       # n % 0, the root of less than 0
        return False
    except Exception:
        return True


def judge(path, subject, refs, captured):
    """The class of a file, by what PyTorch computed at the sizes of refs."""
    try:
        model = File(path, subject.names())
    except Exception as e:
        return Verdict("fails", "does not load: " + one_line(e), at=None)
    excluded, bad = [], []
    for sizes, inputs, want in refs:
        try:
            kind, why = "wrong", difference_of_all(model.run(inputs), want)
        except Exception as e:
            kind, why = "fails", one_line(e)
        if not why:
            continue
        rule = model.excludes(inputs)
        if rule:
            excluded.append((sizes, rule))
        else:
            bad.append((kind, sizes, why))
    if bad:
        return worst(subject, bad, captured)
    if excluded:
        rules = sorted({rule for _, rule in excluded})
        why = "%d of %d sizes: %s" % (len(excluded), len(refs), "; ".join(rules))
        return Verdict("excluded", why, at=excluded[0][0], excluded=[s for s, _ in excluded])
    return Verdict("right")


def worst(subject, bad, captured):
    """Wrong before fails; a branch only where nothing else is wrong."""
    branches, rest = [], []
    for b in bad:
        (branches if outside(b[1], captured) and parts(subject, b[1], captured) else rest).append(b)
    kind, sizes, why = min(rest or branches, key=lambda b: (b[0] != "wrong", sum(b[1].values())))
    return Verdict(kind if rest else "branch", "at %s: %s" % (words(sizes), why), at=sizes,
                   captured=captured, bad=len(bad))


def outside(sizes, captured):
    return any(not min(c[s] for c in captured) <= n <= max(c[s] for c in captured)
               for s, n in sizes.items())


def parts(subject, sizes, captured):
    """Whether the module goes another way at these sizes than at all of the captured ones."""
    return (instructions(subject, sizes) not in [instructions(subject, c) for c in captured]
            or subject.program(sizes) not in [subject.program(c) for c in captured])


def noted(function, taken):
    """min or max that notes which of its arguments it takes."""
    def choose(*args, **more):
        value = function(*args, **more)
        caller = sys._getframe(1)
        if len(args) > 1:
            taken.add((caller.f_code, caller.f_lasti, tuple(a == value for a in args)))
        return value
    return choose


def instructions(subject, sizes):
    """The set of instructions of the suite's own code that a run takes."""
    taken = set()
    space = sys.modules[subject.case.cls.__module__].__dict__

    def step(frame, event, arg):
        if event == "opcode":
            taken.add((frame.f_code, frame.f_lasti))
        return step

    def enter(frame, event, arg):
        if not frame.f_globals.get("__name__", "").startswith("sizes_"):
            return None
        frame.f_trace_opcodes = True
        return step

    before = sys.gettrace()
    space.update(min=noted(min, taken), max=noted(max, taken))
    sys.settrace(enter)
    try:
        subject.eager(sizes)
    finally:
        sys.settrace(before)
        del space["min"], space["max"]
    return taken


def words(sizes):
    return " ".join("%s=%d" % kv for kv in sizes.items())


def one_line(e):
    return "%s: %s" % (type(e).__name__, " ".join(str(e).split())[:250])
