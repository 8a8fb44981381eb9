"""export: from a module and one example to an ONNX file that is right at every size."""
from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
import threading
import warnings
from typing import Any, BinaryIO, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._custom import CustomOps
from ._errors import (CaptureError, Diagnostic, DynamicError, InputError, Pt2OnnxError,
                      UnsupportedError, UsageError, VerificationError)
from ._library import Conversion
from ._result import Port, Result
from ._verify import Check, Runtime, Tolerances, as_arrays, check_at, not_loaded

# torch.onnx.export's, without meaning here.
LEGACY = frozenset("""export_params training operator_export_type do_constant_folding
    keep_initializers_as_inputs custom_opsets export_modules_as_functions autograd_inlining dynamo
    fallback optimize artifacts_dir dump_exported_program profile custom_translation_table
    example_outputs strip_doc_string enable_onnx_checker use_external_data_format export_type aten
    propagate google_printer fixed_batch_size add_node_names onnx_shape_inference export_raw_ir
    backend export_options""".split())


_one_at_a_time = threading.RLock()      # captures: PyTorch's own state, the model's, the classes
FAILURES = CaptureError, DynamicError, InputError, UnsupportedError, VerificationError


class _Steps:
    """Says what is going on when it takes long."""

    def __init__(self, shown: bool) -> None:
        self._bar: Any = None
        self._shown = shown and sys.stderr.isatty()
        if self._shown:
            try:
                from tqdm import tqdm
                self._bar = tqdm(bar_format="pt2onnx: {desc} [{elapsed}]", leave=False)
            except ImportError:
                pass

    def __call__(self, what: str) -> None:
        if self._bar is not None:
            self._bar.set_description_str(what, refresh=True)
        elif self._shown:
            print("pt2onnx: %s" % what, file=sys.stderr)

    def done(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Request:
    """What the user asks of any model, however it is captured."""

    def __init__(self, opset: Optional[int], external: Any, output_names: Sequence[str],
                 state: str, custom: CustomOps) -> None:
        self.opset, self.external, self.output_names = opset, external, list(output_names)
        self.state = state
        self.custom = custom
        self.input_names: List[str] = []
        self.axes: Dict[str, Dict[int, str]] = {}
        self.output_axes: Dict[str, Dict[int, str]] = {}
        self.dims: List[str] = []
        self._levels: Optional[Sequence[int]] = None    # of taking apart that are tried: all

    def declare(self, example: Any) -> None:
        """The names and ranges of a module's inputs."""
        self.input_names = list(example.names.values())
        self.axes = {**example.axes(), **self.output_axes}
        self.dims = ["%s=%d..%s" % (s.name, s.low, "" if s.high is None else s.high)
                     for s in example.symbols.values() if s.low or s.high is not None]

    def convert(self, read: Sequence[Callable[[Conversion], None]],
                checks: Sequence[Callable[[Conversion], None]] = (),
                pinned: Sequence[str] = ()) -> Conversion:
        """`pinned`: names of sizes that are not dynamic after all.  What the converter does not
        support is tried again with programs taken apart by PyTorch; what helped once, or did not,
        decides what is tried the next time."""
        try:
            return self._convert(read, checks, pinned)
        except UnsupportedError:
            if not all(hasattr(r, "apart") for r in [*read, *checks]):
                raise
            from ._decompose import LEVELS
            levels, self._levels = range(LEVELS) if self._levels is None else self._levels, ()
            for level in levels:
                try:
                    done = self._convert([r.apart(level) for r in read],
                                         [r.apart(level) for r in checks], pinned)
                    self._levels = [level]
                    return done
                except FAILURES:
                    pass
            raise

    def _convert(self, read: Sequence[Callable[[Conversion], None]],
                 checks: Sequence[Callable[[Conversion], None]],
                 pinned: Sequence[str]) -> Conversion:
        stays = re.compile(r"\b(%s)\b" % "|".join(map(re.escape, pinned)))
        axes = {port: {k: n for k, n in named.items() if not (pinned and stays.search(n))}
                for port, named in self.axes.items()}
        c = Conversion(self.opset, self.external, self.state)
        try:
            self.custom.tell(c)
            for r in read:
                r(c)
            if checks:
                c.read_checks()
            for r in checks:
                r(c)
            c.set_names(self.input_names, self.output_names)
            if self.axes:
                c.set_dynamic_axes(axes)
            for d in self.dims:
                if d.split("=")[0] not in pinned:
                    c.set_dim(d)
            c.convert()
            return c
        except BaseException:
            c.close()
            raise


def _write(conversion: Conversion, f: Any, check: Optional[Callable[[str], None]]) -> None:
    """Checked before it takes its place: first under its name in a folder of its own, then
    moved."""
    to_path = f is not None and not hasattr(f, "write")
    if to_path or check is not None:
        path = os.path.abspath(os.fspath(f)) if to_path else "model.onnx"
        with tempfile.TemporaryDirectory(prefix=".pt2onnx-",
                                         dir=os.path.dirname(path) or None) as folder:
            name = os.path.join(folder, os.path.basename(path))
            conversion.write_file(name)
            if check is not None:
                check(name)
            # The model comes last.
            for part in sorted(os.listdir(folder), key=lambda n: n == os.path.basename(path)):
                if to_path:
                    os.replace(os.path.join(folder, part),
                               os.path.join(os.path.dirname(path), part))
    if hasattr(f, "write"):
        conversion.write(f)


def _can_run(custom: CustomOps) -> bool:
    """ONNX Runtime is there, and runs what the user's operators become."""
    if not _have_runtime():
        return False
    if custom.need_kernels():
        warnings.warn("the model was not checked: ONNX Runtime has no kernels for operators of "
                      "your own domain (ort_library=)", stacklevel=4)
        return False
    return True


def _have_runtime() -> bool:
    try:
        import onnxruntime  # noqa: F401
        return True
    except ImportError:
        warnings.warn("onnxruntime is not installed: the model was not checked "
                      "(pip install onnxruntime, or verify=False)", stacklevel=4)
        return False


def _finish(conversion: Conversion, f: Any, check: Optional[Callable[[str], List[Check]]],
            verbose: bool, report: Any, notes: Sequence[Diagnostic] = (),
            kernels: Sequence[str] = ()) -> Result:
    checks: List[Check] = []
    if check is not None and conversion.needs_kernels():        # a function of the user's did it
        warnings.warn("the model was not checked: ONNX Runtime has no kernels for operators of "
                      "your own domain (ort_library=)", stacklevel=3)
        check = None

    def judge(model: str) -> None:
        checks.extend(check(model) if check is not None else [])
        bad = [c for c in checks if not c.ok]
        if bad:
            raise VerificationError("the model differs from PyTorch; nothing was written:\n" +
                                    "\n".join(map(str, checks)))

    try:
        _write(conversion, f, judge if check is not None else None)
        s = conversion.signature()
        ports = {k: [Port(p["name"], p["dtype"], tuple(p["dims"])) for p in s[k]]
                 for k in ("inputs", "outputs")}
        result = Result(path=os.fspath(f) if f is not None and not hasattr(f, "write") else None,
                        inputs=ports["inputs"], outputs=ports["outputs"],
                        state=s["state"], dims=s["dims"]["symbols"], opset=s["opset"],
                        nodes=s["nodes"],
                        notes=[*notes,
                               *(d for d in conversion.diagnostics() if d.severity != "error")],
                        report=conversion.report(), check=checks,
                        _conversion=conversion if f is None else None, _kernels=kernels)
    except BaseException:
        conversion.close()
        raise
    if f is not None:
        conversion.close()
    if report is not None and report is not True and report is not False:
        if hasattr(report, "write"):
            report.write(result.report)
        else:
            with open(report, "w") as out:
                out.write(result.report)
    for d in result.notes:
        if d.severity == "warning":
            warnings.warn(str(d), stacklevel=3)
    if verbose:
        print(result)
    return result


def _export_module(model: Any, args: Any, f: Any, kwargs: Any, input_names: Any, dynamic_axes: Any,
                   dynamic_shapes: Any, weights: Any, request: _Request, verify: bool,
                   tol: Tolerances, verbose: bool, report: Any) -> Result:
    from ._capture import Subject, untouched
    from ._wrappers import inner, unwrapped
    from ._example import Example, bind_arguments, declare_axes, declare_shapes
    from ._module import Module
    from ._trees import classes, refuse_counting
    from ._weights import load_weights

    model = inner(model)
    with _one_at_a_time, unwrapped(model), classes() as known:
        args, kwargs = bind_arguments(model, args, kwargs)
        known.found((args, kwargs))
        refuse_counting((args, kwargs))
        example = Example(model, args, kwargs, input_names)
        if dynamic_shapes is not None:
            declare_shapes(example, model, dynamic_shapes)
        if dynamic_axes:
            request.output_axes = declare_axes(example, dynamic_axes, request.output_names)
        example.resolve()
        request.declare(example)
        steps = _Steps(verbose)
        try:
            with untouched(model):
                subject = Subject(model, example, known)
                if subject.unreal and verify:
                    warnings.warn("the model has no values: the file was not compared with PyTorch",
                                  stacklevel=3)
                verify = verify and not subject.unreal and _can_run(request.custom)
                module = Module(subject, request, load_weights(weights), tol, steps)
                return _first_way(module, f, verify, verbose, report)
        finally:
            steps.done()


def _first_way(module: Any, f: Any, verify: bool, verbose: bool, report: Any) -> Result:
    """The first way that leads to a model which is right at every size; else the first to one that
    is right at the sizes that it claims, if these are many."""
    failed: List[Pt2OnnxError] = []
    partly: List[Callable[[], Any]] = []

    def finish(attempt: Any) -> Result:
        module.demand_state(attempt)
        check = (lambda path: module.compare(attempt, path)) if verify else None
        module.notes[:] = [d for d in module.notes if d.kind != "bounds"]
        module.notes += _notes_of_bounds(module, attempt)
        return _finish(attempt.conversion, f, check, verbose, report, module.notes,
                       module.request.custom.kernels)

    example = module.subject.example
    for way in module.ways(verify):
        attempt = None
        try:
            attempt = way()
            if not verify and module.runs_outside(attempt):
                attempt.conversion.close()
                attempt.failed_outside = True
            else:
                return finish(attempt)
        except FAILURES as e:
            failed.append(e)
        if attempt is not None and attempt.failed_outside and attempt.claims.are_wide(example):
            partly.append(way)
    for way in partly:
        try:
            attempt = way()
            attempt.within = True
            return finish(attempt)
        except FAILURES as e:
            failed.append(e)
    # What the last way says is nearest to the user's axes, unless it did not come to that.
    last = next((e for e in reversed(failed) if not isinstance(e, CaptureError)), failed[0])
    others = dict.fromkeys(str(e) for e in failed if str(e) != str(last))
    if isinstance(last, CaptureError):      # one says what is in the way: the others are its echoes
        others = {}
    raise type(last)("\nbefore that: ".join([str(last), *others]), last.diagnostics) from last


def _notes_of_bounds(module: Any, attempt: Any) -> List[Diagnostic]:
    if not attempt.within and not module.runs_outside(attempt):
        said = ["%s is at most %d" % (n, s["max"]) for n, s in attempt.claims.symbols.items()
                if n in module.subject.example.symbols and "max" in s
                and s["max"] != module.subject.example.symbols[n].high]
    else:
        said = attempt.claims.bounds(module.subject.example, attempt.within)
    if not said:
        return []
    return [Diagnostic("warning", "bounds", "%s: elsewhere the model does something else" %
                       ", ".join(said))]


def _flat_axes(axes: Mapping[str, Any]) -> Tuple[Dict[str, Dict[int, str]], List[str]]:
    """dynamic_axes or flat dynamic_shapes of a program that was captured already: the axes' names,
    and their ranges."""
    out: Dict[str, Dict[int, str]] = {}
    ranges: List[str] = []
    for port, spec in axes.items():
        named = out.setdefault(port, {})
        for axis, dim in spec.items() if isinstance(spec, Mapping) else ((a, True) for a in spec):
            low, high = getattr(dim, "min", None), getattr(dim, "max", None)
            if dim is None or isinstance(dim, int) and dim is not True:
                continue
            name = (dim if isinstance(dim, str)
                    else getattr(dim, "__name__", None) or "%s_%d" % (port, int(axis)))
            named[int(axis)] = name
            if isinstance(high, int) and high < 2 ** 31:
                ranges.append("%s=%d..%d" % (name, low if isinstance(low, int) else 0, high))
    return out, ranges


def _load_program(path: str) -> Any:
    """The saved program in PyTorch, to compare with; None, with a warning, where it cannot be
    had."""
    if path.endswith(".onnx"):
        return None
    try:
        import torch
    except ImportError:
        return None
    try:
        return torch.export.load(path)
    except Exception as e:
        warnings.warn("not compared with PyTorch, which does not load %s: %s" % (
            path, str(e).strip().split("\n")[0]), stacklevel=4)
        return None


def _export_saved(model: Any, f: Any, input_names: Any, dynamic_axes: Any, dynamic_shapes: Any,
                  weights: Any, request: _Request, verify: bool, tol: Tolerances, verbose: bool,
                  report: Any) -> Result:
    """An ExportedProgram, a path, or several of either: captures of one model at different
    sizes."""
    several = list(model) if isinstance(model, (list, tuple)) else [model]
    readers: List[Callable[[Conversion], None]] = []
    for m in several:
        if isinstance(m, (str, os.PathLike)):
            path = os.fspath(m)
            readers.append(lambda c, p=path: c.read_file(p))
        else:
            from ._module import reader
            from ._weights import load_weights
            readers.append(reader(m, load_weights(weights)))
    if weights is not None and any(isinstance(m, (str, os.PathLike)) for m in several):
        raise UsageError("weights= is for modules and ExportedPrograms; "
                         "a saved program has its own")
    if dynamic_shapes is not None and not isinstance(dynamic_shapes, Mapping):
        raise UsageError("for a captured program dynamic_shapes is a dict by input name: "
                         "{'x': {0: 'batch'}}")
    request.input_names = list(input_names or [])
    request.axes, request.dims = _flat_axes({**(dynamic_axes or {}), **(dynamic_shapes or {})})
    conversion = request.convert(readers)
    check: Optional[Callable[[str], List[Check]]] = None
    if verify and _can_run(request.custom):
        programs = [_load_program(os.fspath(m)) if isinstance(m, (str, os.PathLike)) else m
                    for m in several]
        programs = [p for p in programs if p is not None and p.example_inputs is not None]

        def compared(path: str) -> List[Check]:
            with _one_at_a_time:
                return _compare_programs(programs, conversion, path, tol, request.custom.kernels)
        check = compared
    return _finish(conversion, f, check, verbose, report, kernels=request.custom.kernels)


def _compare_programs(programs: Sequence[Any], conversion: Conversion, path: str,
                      tol: Tolerances, kernels: Sequence[str]) -> List[Check]:
    try:
        runtime = Runtime(path, kernels)
    except Exception as e:
        return [not_loaded(e)]
    out = []
    if programs:                                # else there may be no PyTorch here
        from ._quanta import jumps, quantises
    for k, ep in enumerate(programs):
        feeds, run = _call_program(ep, conversion)
        want = as_arrays(run())
        slack = functools.partial(jumps, run, want, tol.computed_in) if quantises([ep]) else None
        out.append(check_at(runtime, feeds, want, {"capture": k}, tol, slack))
    return out


def _call_program(ep: Any, conversion: Conversion) -> Tuple[Dict[str, Any], Callable[[], Any]]:
    """Its inputs by name, and what runs it on them."""
    import torch
    from torch.utils import _pytree as pytree

    def copies() -> Any:
        return pytree.tree_map(
            lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, ep.example_inputs)

    def run() -> Any:
        args, kwargs = copies()
        with torch.no_grad():
            return ep.module()(*args, **kwargs)

    args, kwargs = copies()
    tensors = [x.clone() for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    feeds = dict(zip([p["name"] for p in conversion.signature()["inputs"]], tensors))
    return feeds, run


def export(model: Any, args: Any = (), f: Union[str, "os.PathLike[str]", BinaryIO, None] = None, *,
           kwargs: Optional[Mapping[str, Any]] = None, input_names: Optional[Sequence[str]] = None,
           output_names: Optional[Sequence[str]] = None,
           dynamic_axes: Optional[Mapping[str, Any]] = None, dynamic_shapes: Any = None,
           opset_version: Optional[int] = None, external_data: Union[bool, str, None] = None,
           weights: Any = None, verify: bool = True, atol: Optional[float] = None,
           rtol: Optional[float] = None, report: Any = None, state: str = "drop",
           verbose: Optional[bool] = None, custom_ops: Optional[Mapping[Any, Any]] = None,
           op_library: Any = None, ort_library: Any = None, **legacy: Any) -> Result:
    """Converts a model to ONNX with the axes dynamic that are said to be.

    model           an nn.Module, an ExportedProgram, or the path of a saved one (.pt2); several
                    captures of one model at different sizes as a list; or the path of an ONNX
                    model, to change its sizes
    args, kwargs    one example of the arguments, of any size
    f               a path or a binary file object; None: in memory, see Result.save
    dynamic_axes    {'x': {0: 'batch', 1: 'length'}} or {'x': [0, 1]}; outputs may be named too;
                    'past_key_values.*' means all inputs like it
    dynamic_shapes  as torch.export takes it: strings, Dim, AUTO, nested as the arguments are or by
                    name
    external_data   True: weights in f + '.data'; False: never; None: when they pass 1.9 GB
    weights         values for a model without any (meta device): a .safetensors file, a list of
                    them, an index, a folder, or a dict
    verify          compares with PyTorch in ONNX Runtime at several sizes; a difference raises, and
                    no file is left
    state           'io': buffers and inputs that the model changes get an output 'NAME.next', and
                    such a buffer is an input with its value as the default; 'drop': not returned
    custom_ops      {'mylib::foo': 'com.example:Foo'}: a node of your domain; or a function that
                    makes nodes: lambda g, x, alpha=1.0: g.Mul(x, alpha)
    op_library      a file or a text with ONNX functions, which custom_ops may name
    ort_library     kernels for ONNX Runtime, for the check and for result()
    report          a path or text file for how each size became dynamic
    """
    unknown = sorted(set(legacy) - LEGACY)
    if unknown:
        raise TypeError("export() got an unexpected keyword argument '%s'" % unknown[0])
    if legacy:
        warnings.warn("without meaning here and ignored: %s" % ", ".join(sorted(legacy)),
                      stacklevel=2)
    loud = verbose is None or bool(verbose)
    tol = Tolerances(atol, rtol)
    request = _Request(opset_version, external_data, output_names or [], state,
                       CustomOps(custom_ops, op_library, ort_library))
    kind = type(model).__name__
    if (isinstance(model, (str, os.PathLike)) or kind == "ExportedProgram"
            or isinstance(model, (list, tuple))):
        return _export_saved(model, f, input_names, dynamic_axes, dynamic_shapes, weights, request,
                             verify, tol, loud, report)
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        raise UnsupportedError("a ScriptModule cannot be converted yet: export the nn.Module that "
                               "it was made from")
    if not isinstance(model, torch.nn.Module):
        if not callable(model):
            raise UsageError("model is an nn.Module, an ExportedProgram or a path, not a %s" % kind)
        raise UsageError("model is a function: put it into the forward of an nn.Module")
    return _export_module(model, args, f, kwargs, input_names, dynamic_axes, dynamic_shapes,
                          weights, request, verify, tol, loud, report)
