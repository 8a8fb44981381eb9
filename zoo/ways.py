"""Ways from a model to an ONNX file, and what each comes to.

  symbolic  torch.export with dynamic sizes, saved, the command
  one       torch.export at one size, saved, the command with every axis declared
  planned   torch.export at the sizes that `pt2onnx plan` asks for, saved, the command
  python    pt2onnx.export
  dynamo    torch.onnx.export(dynamo=True)
  script    torch.onnx.export(dynamo=False)

Classes are those of test/sizes/judge.py, and
  nocapture PyTorch does not capture the model (with these axes free), or cannot save what it has
  late      no end within the time that a try may compute
  memory    more memory than a try may have
  n/a       the model cannot be made or run by PyTorch itself
"""
import json
import math
import os
import subprocess

import torch

import capture
import judge
from judge import Verdict

# Only files of the same model are judged: no other sizes are ever "outside" what was captured.
ANYWHERE = [dict.fromkeys("bstphwnfve", 0), dict.fromkeys("bstphwnfve", 1 << 30)]
FREE = "bstpve"                 # sizes that need no step


class Unexportable(Exception):
    pass


def try_one(specimen, way, pt2onnx, folder):
    try:
        example = specimen.entry.sizes()[0]
        specimen.eager(example)
    except Exception as e:
        return Verdict("n/a", judge.one_line(e))
    out = os.path.join(folder, "m.onnx")
    try:
        return globals()[way](specimen, example, pt2onnx, folder, out)
    except Unexportable as e:
        return Verdict("nocapture", str(e))
    except MemoryError:
        return Verdict("memory")


def eager(specimen, example, *_):
    """Not a way: whether PyTorch runs the model at all sizes."""
    try:
        specimen.refs()
        return Verdict("right")
    except Exception as e:
        return Verdict("n/a", judge.one_line(e))


def judged(specimen, path):
    refs = specimen.refs()
    if any(x.dtype.kind == "f" and x.size and not (abs(x) < 1e30).any()
           for _, _, want in refs for x in want):
        return Verdict("n/a", "PyTorch computes no finite numbers")
    return judge.judge(path, specimen, refs, ANYWHERE)


def saved(specimen, sizes, path, shapes=None):
    """A saved capture; strict where the usual one cannot be had, or fixes axes."""
    args, kwargs = specimen.arguments(sizes)
    why = []
    for strict in (False, True):
        try:
            with torch.no_grad(), capture.quiet():
                program = torch.export.export(specimen.module(), args, kwargs,
                                              dynamic_shapes=shapes, strict=strict)
                program.example_inputs = None
                torch.export.save(program, path)
        except Exception as e:
            why.append(judge.one_line(e))
            continue
        fixed = fixed_axes(program, specimen) if shapes else []
        if not fixed:
            return path
        why.append("PyTorch fixes " + ", ".join(fixed))
    raise Unexportable(why[0])


def fixed_axes(program, specimen):
    users = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    return ["%s axis %d" % (i.name, k) for i, name in zip(specimen.entry.inputs, names)
            for k, a in enumerate(i.axes)
            if not a.isdigit() and capture.is_number(users[name].meta["val"].shape[k])]


def command(specimen, pt2onnx, files, out, options=()):
    verdict, _ = judge.convert([pt2onnx] + files + [out, "--quiet"] + list(options))
    if verdict is None:
        return judged(specimen, out)
    if os.path.exists(out):
        return Verdict("wrong", "refused, but there is a file: " + verdict.why)
    return verdict


def symbolic(specimen, example, pt2onnx, folder, out):
    path = saved(specimen, example, os.path.join(folder, "s.pt2"),
                        specimen.shapes(torch.export.Dim.AUTO))
    return command(specimen, pt2onnx, [path], out)


def declared(specimen):
    words = []
    for i in specimen.entry.inputs:
        axes = specimen.axes(False)[i.name]
        if i.axes:
            words += ["--input", i.name + ":" + ",".join(axes.get(k, a)
                                                         for k, a in enumerate(i.axes))]
    return words


def one(specimen, example, pt2onnx, folder, out):
    path = saved(specimen, example, os.path.join(folder, "f.pt2"))
    return command(specimen, pt2onnx, [path], out, declared(specimen))


def planned(specimen, example, pt2onnx, folder, out):
    options = declared(specimen)
    for s in specimen.entry.symbols():
        least = min(specimen.entry.values[s])
        if least > 1:
            options += ["--dim", "%s=%d.." % (s, least)]
    p = subprocess.run([pt2onnx, "plan", "--json"] + options, capture_output=True, text=True,
                       preexec_fn=judge.without_limit)
    if p.returncode:
        return Verdict("refused", "plan: " + judge.first_error(p.stderr))
    plan = json.loads(p.stdout)
    files = {"captures": [], "checks": []}
    for kind in files:
        for k, said in enumerate(plan[kind]):
            sizes = {s: legal(specimen, s, said.get(s, example[s])) for s in example}
            files[kind].append(saved(specimen, sizes, os.path.join(folder, kind + "%d.pt2" % k)))
    for path in files["checks"]:
        options += ["--check", path]
    return command(specimen, pt2onnx, files["captures"], out, options)


def legal(specimen, symbol, n):
    """The next size that the model bears: images and waveforms have steps."""
    values = specimen.entry.values[symbol]
    step = 1 if symbol in FREE else math.gcd(*values)
    return (max(n, min(values)) + step - 1) // step * step


def python(specimen, example, pt2onnx_command, folder, out):
    import pt2onnx
    args, kwargs = specimen.arguments(example)
    try:
        with capture.quiet():
            pt2onnx.export(specimen.module(), args, out, kwargs=kwargs,
                           input_names=specimen.names(), dynamic_axes=specimen.axes(True))
    except pt2onnx.CaptureError as e:
        return Verdict("nocapture", judge.one_line(e))
    except pt2onnx.Pt2OnnxError as e:
        return Verdict("refused", judge.one_line(e), code=type(e).__name__)
    return judged(specimen, out)


def torch_onnx(specimen, example, out, **more):
    args, kwargs = specimen.arguments(example)
    try:
        with torch.no_grad(), capture.quiet():
            torch.onnx.export(specimen.module(), args, out, kwargs=kwargs,
                              input_names=specimen.names(), **more)
    except Exception as e:
        return Verdict("refused", judge.one_line(e))
    return judged(specimen, out)


def dynamo(specimen, example, pt2onnx, folder, out):
    return torch_onnx(specimen, example, out, dynamo=True, external_data=False,
                      dynamic_shapes=specimen.shapes(torch.export.Dim.AUTO))


def script(specimen, example, pt2onnx, folder, out):
    return torch_onnx(specimen, example, out, dynamo=False, dynamic_axes=specimen.axes(False))
