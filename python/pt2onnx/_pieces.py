"""One program from several: a Python branch on a size makes one program on each side of it.

A piece is a capture with symbolic sizes and the guards that PyTorch wrote down with it: where they
hold, it is the model.  The pieces become the branches of nested torch.cond, each taken where its
guards hold; what the whole is good for is the guard "one or the other".
"""
from __future__ import annotations

import ast
import json
import math
import operator
import re
import types
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch

from ._errors import CaptureError
from ._example import Example, Sizes
from ._serialize import Json, program_parts

_SIZE = re.compile(r"L(?:\['\w+'\]|\[\d+\])+\.size\(\)\[\d+\]")
_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv",
              ast.Mod: "mod", ast.Div: "truediv",
              ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
              ast.Eq: "eq", ast.NotEq: "ne", ast.And: "and_", ast.Or: "or_"}
_CALLS = {"min": "torch.sym_min", "max": "torch.sym_max", "torch.sym_float": "torch.sym_float",
          "math.ceil": "math.ceil", "math.floor": "math.floor", "math.trunc": "math.trunc"}
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
RANGE = 4096                    # sizes that are tried for where a range ends
Place = Tuple[str, int]         # input, axis


_PYTHON: Dict[str, Any] = {"math": math, "operator": operator, "min": min, "max": max}
_PYTHON["torch"] = types.SimpleNamespace(
    sym_float=float, sym_int=int, sym_max=max, sym_min=min, sym_not=operator.not_,
    sym_sqrt=math.sqrt, _sym_sqrt=math.sqrt)


class Guards:
    """What PyTorch wrote down with a capture: where it holds, the capture is the model."""

    def __init__(self, ep: torch.export.ExportedProgram) -> None:
        self.inputs = [s.arg.name for s in ep.graph_signature.input_specs
                       if s.kind.name == "USER_INPUT"]
        texts = [g for g in getattr(ep, "_guards_code", None) or []]
        self.paths = {t: _place(t, self.inputs) for g in texts for t in _SIZE.findall(g)}
        self.texts = [_in_names(g, self.paths) for g in texts]
        whole = " and ".join("(%s)" % g for g in self.texts) or "True"
        try:
            self._code = compile(whole, "guard", "eval")
        except SyntaxError as e:
            raise CaptureError("a guard that cannot be read: %s" % whole) from e

    def hold(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Of the inputs' shapes, in order."""
        names = {_size_name(*p): shapes[self.inputs.index(p[0])][p[1]]
                 for p in self.paths.values()}
        try:
            return bool(eval(self._code, dict(_PYTHON), names))
        except Exception:
            return False

    def numbers(self) -> Set[int]:
        """Those that they speak of, and products of two of one guard: n // 4 > 128 ends at 516."""
        out: Set[int] = set()
        for g in self.texts:
            found = re.findall(r"(?<![\w.])\d+(?:\.\d*)?(?!\w)", g)
            own = sorted({int(float(n)) for n in found})[:8]
            out.update(own, (a * b for a in own for b in own))
        return out


class Piece:
    """A capture and where it holds: with sizes of 1 only where it was captured at them, or, unless
    `apart`, wherever its guards allow it."""

    def __init__(self, ep: torch.export.ExportedProgram, example: Example, sizes: Sizes,
                 apart: bool) -> None:
        self.ep, self.sizes = ep, sizes
        guards = Guards(ep)
        self.paths = guards.paths
        values = {n.name: n.meta.get("val") for n in ep.graph.nodes if n.op == "placeholder"}
        specs = [s.arg for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        self.inputs = [a.name for a in specs]
        shapes = {a.name: list(getattr(values.get(a.name), "shape", [])) for a in specs}
        self.places: List[Place] = [(specs[leaf].name, axis) for leaf, axis, _ in
                                    example.resized(example.sizes) if axis is not None]
        self.exprs = {p: _expression(shapes[p[0]][p[1]]) for p in self.places}
        self.guards = guards.texts + self._of_ranges(2 if apart else 3) + self._of_equal_axes()
        self.tree = ast.parse(" and ".join("(%s)" % g for g in self.guards) or "True", mode="eval")
        self._code = compile(self.tree, "guard", "eval")
        _check_readable(self.tree)

    def _of_ranges(self, least: int) -> List[str]:
        """PyTorch's least of 2 is what it never saw less than."""
        out = []
        for (name, axis), e in self.exprs.items():
            r = self.ep.range_constraints.get(e) if e.is_Symbol else None
            if r is not None and r.lower.is_Integer and r.lower >= least:
                out.append("%s >= %d" % (_size_name(name, axis), r.lower))
            if r is not None and r.upper.is_Integer and r.upper < 2 ** 31:
                out.append("%s <= %d" % (_size_name(name, axis), r.upper))
        return out

    def _of_equal_axes(self) -> List[str]:
        first: Dict[Any, Place] = {}
        out = []
        for place, e in self.exprs.items():
            if e.is_Integer:
                out.append("%s == %d" % (_size_name(*place), int(e)))
            elif not e.is_Symbol:
                raise CaptureError("an input's size is %s" % e)
            elif first.setdefault(e, place) != place:
                out.append("%s == %s" % (_size_name(*place), _size_name(*first[e])))
        return out

    def holds(self, shapes: Sequence[Sequence[int]]) -> bool:
        names = {_size_name(*p): shapes[self.inputs.index(p[0])][p[1]] for p in self.places}
        try:
            return bool(eval(self._code, dict(_PYTHON), names))
        except ZeroDivisionError:
            return False


def _expression(n: Any) -> Any:
    import sympy
    return n.node.expr if isinstance(n, torch.SymInt) else sympy.Integer(int(n))


def _size_name(name: str, axis: int) -> str:
    return "size_%s_%d" % (name, axis)


def _place(text: str, inputs: Sequence[str]) -> Place:
    keys = re.findall(r"\['?(\w+)'?\]", text)
    name, axis = "_".join(keys[:-1]), int(keys[-1])
    if keys[0] == "flat_args":                          # strict export's
        name = inputs[int(keys[1])]
    if name not in inputs:
        raise CaptureError("a guard speaks of %s" % text)
    return name, axis


def _in_names(guard: str, paths: Dict[str, Place]) -> str:
    return _SIZE.sub(lambda m: _size_name(*paths[m.group()]), guard).replace("torch.sym_m", "m")


def _check_readable(tree: ast.AST) -> None:
    allowed = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.Compare,
               ast.Name, ast.Load, ast.Constant, ast.Call, ast.Attribute, *_OPERATORS)
    for n in ast.walk(tree):
        if not isinstance(n, allowed) or isinstance(n, ast.Call) and (
                ast.unparse(n.func) not in _CALLS or len(n.args) > 2):
            raise CaptureError("a guard that cannot be computed: %s" % ast.unparse(n))


def _is_float(x: Json) -> bool:
    return "as_float" in x or "as_sym_float" in x


class _Nodes:
    """Nodes that compute with sizes, as JSON."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.nodes, self.values = prefix, [], {}   # type: ignore[var-annotated]
        self._known: Dict[str, Json] = {}

    def call(self, target: str, args: Sequence[Tuple[str, Json]], result: Json) -> Json:
        kind = next(iter(result))
        text = target + json.dumps([a for _, a in args])
        if text not in self._known:
            name = "%s_%d" % (self.prefix, len(self.nodes))
            out = {kind: {"as_name": name}} if kind != "as_tensor" else {kind: {"name": name}}
            self.values[name] = result
            self.nodes.append({"target": target, "inputs": [{"name": n, "arg": a} for n, a in args],
                               "outputs": [out], "metadata": {}})
            self._known[text] = out
        return self._known[text]

    def size(self, tensor: str, axis: int) -> Json:
        return self.call("torch.ops.aten.sym_size.int", [("self", {"as_tensor": {"name": tensor}}),
                         ("dim", {"as_int": axis})], {"as_sym_int": {}})

    def compute(self, e: ast.AST, sizes: Dict[str, Place]) -> Json:
        if isinstance(e, ast.Expression):
            return self.compute(e.body, sizes)
        if isinstance(e, ast.Constant):
            return {"as_" + type(e.value).__name__: e.value}
        if isinstance(e, ast.Name):
            return self.size(*sizes[e.id])
        if isinstance(e, ast.UnaryOp):
            x = self.compute(e.operand, sizes)
            if isinstance(e.op, ast.Not):
                return self._operator("torch.sym_not", [x], "as_sym_bool")
            return self._binary(ast.Mult(), x, {"as_int": -1})
        if isinstance(e, ast.Call):
            name, args = ast.unparse(e.func), [self.compute(a, sizes) for a in e.args]
            real = name == "torch.sym_float" or \
                not name.startswith("math.") and any(map(_is_float, args))
            return self._operator(_CALLS[name], args, "as_sym_float" if real else "as_sym_int")
        if isinstance(e, ast.BinOp):
            return self._binary(e.op, self.compute(e.left, sizes), self.compute(e.right, sizes))
        if isinstance(e, ast.Compare):
            parts = [self.compute(x, sizes) for x in [e.left, *e.comparators]]
            out = [self._binary(op, a, b) for op, a, b in zip(e.ops, parts, parts[1:])]
            return self._all(ast.And(), out)
        assert isinstance(e, ast.BoolOp)
        return self._all(e.op, [self.compute(v, sizes) for v in e.values])

    def _all(self, op: ast.AST, parts: List[Json]) -> Json:
        out = parts[0]
        for p in parts[1:]:
            out = self._binary(op, out, p)
        return out

    def _binary(self, op: ast.AST, a: Json, b: Json) -> Json:
        real = isinstance(op, ast.Div) or _is_float(a) or _is_float(b)
        truth = isinstance(op, (*_COMPARED, ast.And, ast.Or))
        kind = "as_sym_bool" if truth else "as_sym_float" if real else "as_sym_int"
        return self._operator("_operator." + _OPERATORS[type(op)], [a, b], kind)

    def _operator(self, target: str, args: Sequence[Json], kind: str) -> Json:
        return self.call(target, [("", a) for a in args], {kind: {}})


class _Whole:
    """The pieces on their way to one program."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces
        self.parts = [program_parts(p.ep) for p in pieces]
        for parts in self.parts[1:]:            # a symbol has one captured size
            _drop_hints(parts["graph_module"]["graph"])
        first = self.parts[0]["graph_module"]
        self.inputs: List[Json] = []            # arguments of the whole graph
        self.specs: List[Json] = []
        self.tensors: Json = {}
        self.operands: List[str] = []
        self.taken: List[Dict[str, str]] = [{} for _ in pieces]     # operand -> a piece's name
        self.weights: List[Tuple[int, str, str]] = []       # piece, its name for it, ours
        for k, parts in enumerate(self.parts):
            self._add_weights(k, parts["graph_module"])
        self._add_inputs(first)
        self.outputs = first["signature"]["output_specs"]
        for parts in self.parts:
            given = parts["graph_module"]["signature"]["output_specs"]
            if any("as_tensor" not in s.get("user_output", {}).get("arg", {}) for s in given):
                raise CaptureError("a piece gives back other things than tensors")
            if len(given) != len(self.outputs):
                raise CaptureError("pieces give back different numbers of tensors")

    def _add_weights(self, k: int, module: Json) -> None:
        graph = module["graph"]
        for spec, arg in zip(module["signature"]["input_specs"], graph["inputs"]):
            (kind, s), = spec.items()
            if kind in ("user_input", "constant_input"):
                continue
            key = {"parameter": "parameter_name", "buffer": "buffer_name",
                   "tensor_constant": "tensor_constant_name"}.get(kind)
            if key is None:
                raise CaptureError("a piece needs a %s" % kind)
            name = arg["as_tensor"]["name"]
            ours, stored = name, s[key]
            if kind == "tensor_constant":               # each capture makes its own
                ours, stored = "piece%d_%s" % (k, name), "piece%d.%s" % (k, stored)
            self.taken[k][ours] = name
            if ours not in self.operands:
                self.operands.append(ours)
                self.inputs.append({"as_tensor": {"name": ours}})
                self.specs.append({kind: {**s, "arg": {"name": ours}, key: stored}})
                self.tensors[ours] = graph["tensor_values"][name]
                self.weights.append((k, s[key], stored))

    def _add_inputs(self, module: Json) -> None:
        for spec, arg in zip(module["signature"]["input_specs"], module["graph"]["inputs"]):
            if "user_input" not in spec and "constant_input" not in spec:
                continue
            self.inputs.append(arg)
            self.specs.append(spec)
            if "as_tensor" in arg:
                name = arg["as_tensor"]["name"]
                self.operands.append(name)
                self.tensors[name] = dict(module["graph"]["tensor_values"][name])
                self.tensors[name]["sizes"] = list(self.tensors[name]["sizes"])
                for taken in self.taken:
                    taken[name] = name
            elif "as_sym_int" in arg:
                raise CaptureError("an int is an input")
        for (name, axis), size in self._sizes().items():
            self.tensors[name]["sizes"][axis] = size
            self.tensors[name].pop("strides", None)

    def _sizes(self) -> Dict[Place, Json]:
        """A symbol for each dynamic axis: some piece has it free."""
        out: Dict[Place, Json] = {}
        used: Dict[str, Place] = {}
        for k, p in enumerate(self.pieces):
            values = self.parts[k]["graph_module"]["graph"]["tensor_values"]
            for place, e in p.exprs.items():
                size = values[place[0]]["sizes"][place[1]]
                if e.is_Symbol and place not in out and used.setdefault(str(e), place) == place:
                    out[place] = size
        for k, p in enumerate(self.pieces):     # equal to another axis in every piece
            values = self.parts[k]["graph_module"]["graph"]["tensor_values"]
            for place, e in p.exprs.items():
                if e.is_Symbol:
                    out.setdefault(place, values[place[0]]["sizes"][place[1]])
        if len(out) < len(self.pieces[0].places):
            raise CaptureError("no piece leaves %s free" % sorted(
                set(self.pieces[0].places) - set(out)))
        return out

    def _symbol(self, place: Place) -> str:
        return _text(self.tensors[place[0]], place[1])

    def _body(self, k: int) -> Json:
        """A piece as a branch.  Axes that it has other sizes for are cut to these, which changes
        nothing where its guards hold, and tells the converter."""
        piece, graph = self.pieces[k], self.parts[k]["graph_module"]["graph"]
        nodes, inputs, values = _Nodes("length%d" % k), [], self._known_values(k)
        first: Dict[Any, Place] = {}            # where the whole has this symbol, if anywhere
        names = dict(self.taken[k])
        for place, e in piece.exprs.items():
            if e.is_Symbol and _text(values[place[0]], place[1]) == self._symbol(place):
                first.setdefault(e, place)
        for place, e in piece.exprs.items():
            if e.is_Symbol and first.setdefault(e, place) == place:
                if _text(values[place[0]], place[1]) != self._symbol(place):
                    raise CaptureError("pieces have different names for a size")
                continue
            name, axis = place
            now = names[name] if names[name] != name else "whole%d_%s" % (k, name)
            names[name] = now
        cuts = [(p, e) for p, e in piece.exprs.items() if not e.is_Symbol or first[e] != p]
        for name, ours in names.items():
            if ours.startswith("whole%d_" % k):
                values[ours] = self.tensors[name]
        cuts.sort(key=lambda c: self.operands.index(c[0][0]))   # those of a tensor in a row
        for n, (place, e) in enumerate(cuts):
            name, axis = place
            size = {"as_int": int(e)} if e.is_Integer else nodes.size(
                names[first[e][0]], first[e][1])
            last = not any(p[0] == name for p, _ in cuts[n + 1:])
            before = names[name] if not any(p[0] == name for p, _ in cuts[:n]) else \
                "cut%d_%d" % (k, n - 1)
            result = name if last else "cut%d_%d" % (k, n)
            index = "index%d_%d" % (k, n)
            nodes.nodes += [_arange(index, size), _index_select(result, before, axis, index)]
            values[index] = {"dtype": 5, "layout": 7, "sizes": [
                size if "as_int" in size else graph["tensor_values"][name]["sizes"][axis]],
                "strides": [{"as_int": 1}]}
            if not last:
                values[result] = dict(values[before], sizes=[
                    graph["tensor_values"][name]["sizes"][a] if a == axis else s
                    for a, s in enumerate(values[before]["sizes"])])
        for ours in self.operands:
            name = names.get(ours) or "unused%d_%s" % (k, ours)
            values.setdefault(name, self.tensors[ours])
            inputs.append({"as_tensor": {"name": name}})
        return {**graph, "inputs": inputs, "nodes": nodes.nodes + graph["nodes"],
                "tensor_values": values, "is_single_tensor_return": False,
                "sym_int_values": {**graph["sym_int_values"]}}

    def _known_values(self, k: int) -> Json:
        """Of a piece's tensors.  PyTorch simplified their sizes by guards that hold in the piece
        alone: the converter finds these sizes itself."""
        graph = self.parts[k]["graph_module"]["graph"]
        given = {a["as_tensor"]["name"] for a in graph["inputs"] if "as_tensor" in a}
        return {name: v for name, v in graph["tensor_values"].items() if name in given}

    def _result_values(self, k: int) -> List[Json]:
        graph = self.parts[k]["graph_module"]["graph"]
        return [graph["tensor_values"][a["as_tensor"]["name"]] for a in graph["outputs"]]

    def _choose(self, ks: Sequence[int]) -> Json:
        """A graph that takes the operands and gives what the first piece that holds does."""
        if len(ks) == 1:
            return self._body(ks[0])
        nodes = _Nodes("test%d" % ks[0])
        piece = self.pieces[ks[0]]
        sizes = {_size_name(*p): p for p in piece.places}
        test = nodes.compute(piece.tree, sizes)
        values = dict(self.tensors)
        outputs = []
        alike = [self._result_values(k) for k in ks]
        for i, one in enumerate(alike[0]):
            name = "either%d_%d" % (ks[0], i)
            outputs.append({"as_tensor": {"name": name}})
            values[name] = {"dtype": one["dtype"], "layout": 7, "strides": [], "sizes": [
                s if all(_text(v[i], d) == _text(one, d) for v in alike) else _anything(
                    "%s_%d" % (name, d)) for d, s in enumerate(one["sizes"])]}
            if any(len(v[i]["sizes"]) != len(one["sizes"]) or v[i]["dtype"] != one["dtype"]
                   for v in alike):
                raise CaptureError("pieces give back tensors of different kinds")
        call = {"target": "torch.ops.higher_order.cond", "metadata": {}, "outputs": outputs,
                "inputs": [{"name": "", "arg": a} for a in (
                    test, {"as_graph": {"name": "piece%d" % ks[0], "graph": self._body(ks[0])}},
                    {"as_graph": {"name": "else%d" % ks[0], "graph": self._choose(ks[1:])}},
                    {"as_tensors": [{"name": n} for n in self.operands]})]}
        return {"inputs": [{"as_tensor": {"name": n}} for n in self.operands],
                "nodes": nodes.nodes + [call], "outputs": outputs, "tensor_values": values,
                "is_single_tensor_return": False, "sym_int_values": {}, "sym_float_values": {},
                "sym_bool_values": {}, "custom_obj_values": {}}

    def program(self) -> Json:
        whole = self.parts[0]
        graph = self._choose(range(len(self.pieces)))
        graph["inputs"] = self.inputs
        outputs = [{"user_output": {"arg": a}} for a in graph["outputs"]]
        texts = {_size_name(*p): "L['%s'].size()[%d]" % p for p in self.pieces[0].places}
        for piece in self.pieces:
            texts.update({_size_name(*p): text for text, p in piece.paths.items()})
        return {**whole, "guards_code": self._guard(texts),
                "range_constraints": self._ranges(),
                "graph_module": {**whole["graph_module"], "graph": graph,
                                 "signature": {"input_specs": self.specs,
                                               "output_specs": outputs}}}

    def _ranges(self) -> Json:
        """PyTorch's least of 2, where no piece was captured at less."""
        out = {}
        for place in self.pieces[0].places:
            seen = any(p.exprs[place] == 1 for p in self.pieces)
            name = re.sub(r"Symbol\('(\w+)'.*", r"\1", self._symbol(place))
            out[name] = {"min_val": 1 if seen else 2, "max_val": None}
        return out

    def _guard(self, texts: Dict[str, str]) -> List[str]:
        """One or the other holds; of one size alone, as a range if it is one."""
        either = " or ".join("(%s)" % (" and ".join("(%s)" % g for g in p.guards) or "1 <= 2")
                             for p in self.pieces)
        used = set(re.findall(r"\bsize_\w+", either))
        if len(used) == 1:
            name, = used
            code = compile(either, "guard", "eval")
            held = [n for n in range(1, RANGE) if eval(code, dict(_PYTHON), {name: n})]
            if held == list(range(held[0], held[-1] + 1)) and held[-1] < RANGE - 1:
                either = "%s <= %d" % (name, held[-1])
                if held[0] > 2:
                    return [texts[name] + " <= %d" % held[-1], texts[name] + " >= %d" % held[0]]
        return [re.sub(r"\bsize_\w+", lambda m: texts[m.group()], either)]


def _text(value: Json, axis: int) -> str:
    size = value["sizes"][axis] if axis < len(value["sizes"]) else {}
    return str(size.get("as_int", size.get("as_expr", {}).get("expr_str")))


def _drop_hints(x: Any) -> None:
    if isinstance(x, dict):
        if "expr_str" in x:
            x.pop("hint", None)
        x = list(x.values())
    for item in x if isinstance(x, list) else []:
        _drop_hints(item)


def _anything(name: str) -> Json:
    return {"as_expr": {"expr_str": "Symbol('u_%s', integer=True)" % name}}


def _arange(name: str, size: Json) -> Json:
    return {"target": "torch.ops.aten.arange.default", "metadata": {},
            "inputs": [{"name": "end", "arg": size},
                       {"name": "device", "arg": {"as_device": {"type": "cpu", "index": None}}}],
            "outputs": [{"as_tensor": {"name": name}}]}


def _index_select(name: str, x: str, axis: int, index: str) -> Json:
    return {"target": "torch.ops.aten.index_select.default", "metadata": {},
            "inputs": [{"name": "self", "arg": {"as_tensor": {"name": x}}},
                       {"name": "dim", "arg": {"as_int": axis}},
                       {"name": "index", "arg": {"as_tensor": {"name": index}}}],
            "outputs": [{"as_tensor": {"name": name}}]}


def compose(pieces: Sequence[Piece]) -> Tuple[bytes, List[Tuple[int, str, str]]]:
    """(the program, its weights as (piece, the piece's name, the program's name))"""
    whole = _Whole(pieces)
    return json.dumps(whole.program()).encode(), whole.weights
