"""An ExportedProgram's graph as the JSON that torch.export.save writes (models/NAME.json), without
its cost.

Only what the converter reads is written: no copies, no canonical order, each size expression
printed once.
"""
from __future__ import annotations

import json
import math
import operator
from typing import Any, Callable, Dict, List, Optional

import torch
from torch.utils import _pytree as pytree

from ._errors import UnsupportedError

Json = Dict[str, Any]

# Codes of the saved format.
_DTYPES = {
    torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5,
    torch.float16: 6, torch.float32: 7, torch.float64: 8, torch.complex32: 9, torch.complex64: 10,
    torch.complex128: 11, torch.bool: 12, torch.bfloat16: 13,
    **{getattr(torch, name): code for name, code in (
        ("uint16", 28), ("float8_e4m3fn", 29), ("float8_e5m2", 30), ("float8_e4m3fnuz", 31),
        ("float8_e5m2fnuz", 32), ("float8_e8m0fnu", 33), ("uint32", 34), ("uint64", 35))
       if hasattr(torch, name)},
}
_LAYOUTS = {torch.sparse_coo: 1, torch.sparse_csr: 2, torch.sparse_csc: 3, torch.sparse_bsr: 4,
            torch.sparse_bsc: 5, torch._mkldnn: 6, torch.strided: 7}
_MEMORY_FORMATS = {torch.contiguous_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3,
                   torch.preserve_format: 4}


def _float(x: float) -> Any:
    return (x if math.isfinite(x) else "NaN" if math.isnan(x)
            else "Infinity" if x > 0 else "-Infinity")


def _all(kind: Any, items: Any) -> bool:
    return all(type(x) is kind for x in items)


def _target_name(target: Any) -> str:
    if isinstance(target, str):
        return target
    return "%s.%s" % (target.__module__.replace("torch._ops", "torch.ops"), target.__name__)


class _Graph:
    """One graph, main or nested, on its way to JSON."""

    def __init__(self, module: torch.fx.GraphModule, texts: Dict[Any, Json]) -> None:
        self.module, self.texts = module, texts
        self.values: Json = {k: {} for k in ("tensor_values", "sym_int_values", "sym_float_values",
                                             "sym_bool_values", "custom_obj_values")}
        self.renamed: Dict[str, str] = {}       # a second getitem of the same element -> the first

    def size(self, s: Any) -> Json:
        if type(s) is int:
            return {"as_int": s}
        expr = s.node.expr
        if expr.is_Integer:
            return {"as_int": int(expr)}
        known = self.texts.get(expr)
        if known is None:
            import sympy
            known = {"expr_str": sympy.srepr(expr)}
            hint = s.node.hint if isinstance(s, torch.SymInt) else None
            if isinstance(hint, int):
                known["hint"] = {"as_int": int(hint)}
            self.texts[expr] = known
        return {"as_expr": known}

    def _number(self, s: Any, literal: str, plain: Callable[[Any], Any]) -> Json:
        if isinstance(s, (int, float)):
            return {literal: plain(s)}
        expr = s.node.expr
        if expr.is_number or expr.is_Boolean and not expr.free_symbols:
            return {literal: plain(expr)}
        import sympy
        return {"as_expr": {"expr_str": sympy.srepr(expr)}}

    def define(self, name: str, value: Any) -> Json:
        """Records what is known of a value and gives back the argument that names it."""
        if value is None:
            return {"as_none": True}
        if isinstance(value, torch.Tensor):
            if value.dtype not in _DTYPES or value.layout not in _LAYOUTS:
                raise UnsupportedError("%s is %s, %s" % (name, value.dtype, value.layout))
            self.values["tensor_values"][name] = {
                "dtype": _DTYPES[value.dtype], "layout": _LAYOUTS[value.layout],
                "sizes": [self.size(n) for n in value.shape],
                "strides": ([self.size(n) for n in value.stride()]
                            if value.layout == torch.strided else [])}
            return {"as_tensor": {"name": name}}
        if isinstance(value, (bool, torch.SymBool)):
            self.values["sym_bool_values"][name] = self._number(value, "as_bool", bool)
            return {"as_sym_bool": {"as_name": name}}
        if isinstance(value, (int, torch.SymInt)):
            self.values["sym_int_values"][name] = self.size(value)
            return {"as_sym_int": {"as_name": name}}
        if isinstance(value, (float, torch.SymFloat)):
            self.values["sym_float_values"][name] = self._number(value, "as_float",
                                                                 lambda x: _float(float(x)))
            return {"as_sym_float": {"as_name": name}}
        if hasattr(value, "class_fqn"):
            self.values["custom_obj_values"][name] = {"name": name, "class_fqn": value.class_fqn}
            return {"as_custom_obj": {"name": name, "class_fqn": value.class_fqn}}
        raise UnsupportedError("%s is a %s" % (name, type(value).__name__))

    def _use(self, node: torch.fx.Node) -> Json:
        if node.op == "get_attr":
            inner = getattr(self.module, str(node.target))
            if not isinstance(inner, torch.fx.GraphModule):
                raise UnsupportedError("%s is a %s in the graph itself" % (
                    node.target, type(inner).__name__))
            return {"as_graph": {"name": node.target, "graph": _Graph(inner, self.texts).write()}}
        name, value = node.name, node.meta.get("val")
        for key, kind in (("sym_int_values", "as_sym_int"), ("sym_float_values", "as_sym_float"),
                          ("sym_bool_values", "as_sym_bool")):
            if name in self.values[key]:
                return {kind: {"as_name": name}}
        if hasattr(value, "class_fqn"):
            return {"as_custom_obj": {"name": name, "class_fqn": value.class_fqn}}
        return {"as_tensor": {"name": self.renamed.get(name, name)}}

    def _list(self, items: Any, type_: Any) -> Json:
        if not items:
            of = str(type_)
            return {"as_ints" if "int" in of else "as_floats" if "float" in of
                    else "as_bools" if "bool" in of else "as_strings" if "str" in of
                    else "as_tensors": []}
        for kind, key in ((bool, "as_bools"), (int, "as_ints"), (str, "as_strings")):
            if _all(kind, items):
                return {key: list(items)}
        if _all(float, items):
            return {"as_floats": [_float(x) for x in items]}
        if all(isinstance(x, (list, tuple)) for x in items):
            if all(_all(int, x) for x in items):
                return {"as_int_lists": [list(x) for x in items]}
            if all(_all(float, x) for x in items):
                return {"as_float_lists": [[_float(v) for v in x] for x in items]}
            return {"as_nested_tensors": [[self._use(t)["as_tensor"] for t in x] for x in items]}
        used = [self.argument(x) for x in items]
        kinds = {next(iter(x)) for x in used}
        for literal, key in (("as_int", "as_sym_int"), ("as_float", "as_sym_float"),
                             ("as_bool", "as_sym_bool")):
            if kinds <= {literal, key}:
                return {key + "s": [x[key] if key in x else x for x in used]}
        if kinds <= {"as_tensor"}:
            return {"as_tensors": [x["as_tensor"] for x in used]}
        if kinds <= {"as_tensor", "as_none"}:
            return {"as_optional_tensors": used}
        return {"as_arguments": used}               # of several kinds: PyTorch itself saves none

    def argument(self, x: Any, type_: Any = None) -> Json:
        if isinstance(x, torch.fx.Node):
            return self._use(x)
        if x is None:
            return {"as_none": True}
        for kind, key in ((bool, "as_bool"), (int, "as_int"), (str, "as_string")):
            if type(x) is kind:
                return {key: x}
        if isinstance(x, float):
            return {"as_float": _float(x)}
        if isinstance(x, complex):
            return {"as_complex": {"real": _float(x.real), "imag": _float(x.imag)}}
        if isinstance(x, (list, tuple)):
            return self._list(x, type_)
        if isinstance(x, dict):
            return {"as_string_to_argument": {k: self.argument(v) for k, v in x.items()}}
        for kind, key, codes in ((torch.dtype, "as_scalar_type", _DTYPES),
                                 (torch.layout, "as_layout", _LAYOUTS),
                                 (torch.memory_format, "as_memory_format", _MEMORY_FORMATS)):
            if isinstance(x, kind):
                return {key: codes[x]}
        if isinstance(x, torch.device):
            return {"as_device": {"type": x.type, "index": x.index}}
        if isinstance(x, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
            return {"as_operator": _target_name(x)}
        raise UnsupportedError("an argument of type %s" % type(x).__name__)

    def _inputs(self, node: torch.fx.Node) -> List[Json]:
        schema = getattr(node.target, "_schema", None)
        if not isinstance(node.target, torch._ops.OpOverload) or schema is None:
            named = ([("", x, None) for x in node.args] +
                     [(k, x, None) for k, x in node.kwargs.items()])
        else:
            named = []
            for i, a in enumerate(schema.arguments):
                if a.name in node.kwargs:
                    named.append((a.name, node.kwargs[a.name], a.type))
                elif not a.kwarg_only and i < len(node.args):
                    named.append((a.name, node.args[i], a.type))
        return [{"name": n, "arg": self.argument(x, t)} for n, x, t in named]

    def _element(self, node: torch.fx.Node, index: Any) -> Optional[torch.fx.Node]:
        found: Optional[torch.fx.Node] = None
        for user in node.users:
            if user.target is operator.getitem and user.args[1] == index:
                if found is not None:
                    self.renamed[user.name] = found.name
                found = found or user
        return found

    def _several(self, node: torch.fx.Node, values: Any) -> List[Json]:
        out = []
        for i, value in enumerate(values):
            user = self._element(node, i)
            name = user.name if user is not None else "%s_unused_%d" % (node.name, i)
            if isinstance(value, (list, tuple)):
                parts = []
                for k, part in enumerate(value):
                    inner = self._element(user, k) if user is not None else None
                    parts.append(self.define(
                        inner.name if inner is not None else "%s_%d" % (name, k),
                        part)["as_tensor"])
                out.append({"as_tensors": parts})
            else:
                out.append(self.define(name, value))
        return out

    def _outputs(self, node: torch.fx.Node) -> List[Json]:
        value = node.meta.get("val")
        returns = (node.target._schema.returns if isinstance(node.target, torch._ops.OpOverload)
                   else None)
        if returns is not None and not returns:
            return []
        if not isinstance(value, (list, tuple)):
            return [self.define(node.name, value)]
        out = self._several(node, value)
        if returns is not None and len(returns) == 1:           # -> Tensor[]
            return [{"as_tensors": [x["as_tensor"] for x in out]}]
        return out

    @staticmethod
    def _metadata(node: torch.fx.Node) -> Dict[str, str]:
        out = {}
        if node.meta.get("stack_trace"):
            out["stack_trace"] = node.meta["stack_trace"]
        if node.meta.get("nn_module_stack"):
            out["nn_module_stack"] = ";".join("%s,%s,%s" % (k, path, kind) for k, (path, kind) in
                                              node.meta["nn_module_stack"].items())
        return out

    def write(self) -> Json:
        inputs, nodes, outputs, single = [], [], [], False
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                value = node.meta.get("val")
                constant = value is None or isinstance(value, (int, float, str))
                inputs.append(self.argument(value) if constant else self.define(node.name, value))
            elif node.op == "call_function" and node.target is not operator.getitem:
                nodes.append({"target": _target_name(node.target), "inputs": self._inputs(node),
                              "outputs": self._outputs(node), "metadata": self._metadata(node)})
            elif node.op == "output":
                result = node.args[0]
                single = isinstance(result, torch.fx.Node)
                outputs = [self.argument(x) for x in ([result] if single else result)]
        return {"inputs": inputs, "nodes": nodes, "outputs": outputs,
                "is_single_tensor_return": single, **self.values}


def _spec_argument(arg: Any) -> Json:
    kind = type(arg).__name__
    if kind == "TensorArgument":
        return {"as_tensor": {"name": arg.name}}
    if kind in ("SymIntArgument", "SymFloatArgument", "SymBoolArgument"):
        return {{"SymIntArgument": "as_sym_int", "SymFloatArgument": "as_sym_float",
                 "SymBoolArgument": "as_sym_bool"}[kind]: {"as_name": arg.name}}
    if kind == "CustomObjArgument":
        return {"as_custom_obj": {"name": arg.name, "class_fqn": arg.class_fqn}}
    if kind == "ConstantArgument":
        x = arg.value
        return ({"as_none": True} if x is None else {"as_bool": x} if isinstance(x, bool)
                else {"as_int": x} if isinstance(x, int)
                else {"as_float": _float(x)} if isinstance(x, float) else {"as_string": str(x)})
    return {"name": arg.name}


def _input_spec(s: Any) -> Json:
    kind, arg = s.kind.name, {"name": getattr(s.arg, "name", "")}
    if kind == "USER_INPUT":
        if type(s.arg).__name__ == "ConstantArgument":
            return {"constant_input": {"name": s.arg.name, "value": _spec_argument(s.arg)}}
        return {"user_input": {"arg": _spec_argument(s.arg)}}
    if kind == "PARAMETER":
        return {"parameter": {"arg": arg, "parameter_name": s.target}}
    if kind == "BUFFER":
        return {"buffer": {"arg": arg, "buffer_name": s.target, "persistent": bool(s.persistent)}}
    if kind == "CONSTANT_TENSOR":
        return {"tensor_constant": {"arg": arg, "tensor_constant_name": s.target}}
    if kind == "CUSTOM_OBJ":
        return {"custom_obj": {"arg": arg, "custom_obj_name": s.target}}
    return {kind.lower(): {"arg": arg}}


def _output_spec(s: Any) -> Json:
    kind = s.kind.name
    if kind == "USER_OUTPUT":
        return {"user_output": {"arg": _spec_argument(s.arg)}}
    named = {"BUFFER_MUTATION": "buffer_name", "PARAMETER_MUTATION": "parameter_name",
             "USER_INPUT_MUTATION": "user_input_name"}.get(kind)
    return {kind.lower(): {"arg": {"name": getattr(s.arg, "name", "")},
                           **({named: s.target} if named else {})}}


def tree_text(spec: Any, fields: Json) -> Optional[str]:
    """The tree as text; None where one of its classes has no name to save it under."""
    def children(x: Any) -> Any:
        return x.children() if callable(getattr(x, "children", None)) else x.children_specs

    def note(x: Any) -> None:
        if x.type is not None and pytree.is_namedtuple_class(
                x.context if isinstance(x.context, type) else x.type):
            known = pytree.SUPPORTED_SERIALIZED_TYPES.get(x.context)
            if known is not None:
                fields[known.serialized_type_name] = {"field_names": list(x.context._fields)}
        for child in children(x):
            note(child)

    try:
        text = pytree.treespec_dumps(spec, 1)
        note(spec)
        return text
    except Exception:
        return None


def _bound(x: Any) -> Optional[int]:
    return int(x) if isinstance(x, int) or getattr(x, "is_Integer", False) else None


def program_json(ep: torch.export.ExportedProgram) -> bytes:
    return json.dumps(program_parts(ep)).encode()


def program_parts(ep: torch.export.ExportedProgram) -> Json:
    fields: Json = {}
    root: Json = {}
    for entry in ep.module_call_graph:
        if entry.fqn == "" and entry.signature is not None:
            specs = {"in_spec": tree_text(entry.signature.in_spec, fields),
                     "out_spec": tree_text(entry.signature.out_spec, fields)}
            root = {k: v for k, v in specs.items() if v is not None}
    return {
        "graph_module": {
            "graph": _Graph(ep.graph_module, {}).write(),
            "signature": {
                "input_specs": [_input_spec(s) for s in ep.graph_signature.input_specs],
                "output_specs": [_output_spec(s) for s in ep.graph_signature.output_specs]},
            "module_call_graph": [{"fqn": "", "signature": root}],
            "treespec_namedtuple_fields": fields,
        },
        "range_constraints": {str(k): {"min_val": _bound(v.lower), "max_val": _bound(v.upper)}
                              for k, v in ep.range_constraints.items()},
        "schema_version": {"major": 8, "minor": 0},
        "torch_version": torch.__version__,
        "guards_code": list(getattr(ep, "_guards_code", None) or []),
    }
