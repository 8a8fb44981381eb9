"""Operators that pt2onnx does not know, given a meaning: names, ONNX functions, Python ones."""
from __future__ import annotations

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64,
                    c_size_t, c_uint32, c_void_p)
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._errors import UnsupportedError, UsageError
from ._library import Conversion

_FUNCTION = CFUNCTYPE(c_int, c_void_p, c_void_p)
_NONE, _TENSOR, _INT, _FLOAT, _BOOL, _STRING, _LIST = range(7)


class _Argument(Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("value", c_uint32), ("name", c_char_p),
                ("i", c_int64), ("f", c_double), ("s", c_char_p), ("n", c_size_t)]


class _Type(Structure):
    _fields_ = [("size", c_size_t), ("dtype", c_char_p), ("rank", c_int),
                ("sizes", POINTER(c_int64))]


class _Attribute(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("kind", c_int), ("i", c_int64),
                ("f", c_double), ("s", c_char_p), ("ints", POINTER(c_int64)),
                ("floats", POINTER(c_double)), ("strings", POINTER(c_char_p)), ("n", c_size_t)]


class _Node(Structure):
    _fields_ = [("size", c_size_t), ("domain", c_char_p), ("op", c_char_p),
                ("inputs", POINTER(c_uint32)), ("ninput", c_size_t),
                ("attributes", POINTER(_Attribute)), ("nattribute", c_size_t),
                ("noutput", c_size_t)]


def _declare(lib: Any) -> None:
    lib.p2o_register_op.argtypes = [c_void_p, c_char_p, _FUNCTION, c_void_p]
    lib.p2o_call_narguments.argtypes, lib.p2o_call_narguments.restype = [c_void_p], c_size_t
    lib.p2o_call_nresults.argtypes, lib.p2o_call_nresults.restype = [c_void_p], c_size_t
    lib.p2o_call_argument.argtypes = [c_void_p, c_size_t, POINTER(_Argument)]
    lib.p2o_call_item.argtypes = [c_void_p, c_size_t, c_size_t, POINTER(_Argument)]
    lib.p2o_value_type.argtypes = [c_void_p, c_uint32, POINTER(_Type)]
    lib.p2o_result_type.argtypes = [c_void_p, c_size_t, POINTER(_Type)]
    lib.p2o_emit.argtypes = [c_void_p, POINTER(_Node), POINTER(c_uint32)]
    lib.p2o_constant.argtypes = [c_void_p, c_char_p, c_int, POINTER(c_int64), c_void_p, c_size_t,
                                 POINTER(c_uint32)]
    lib.p2o_call_result.argtypes = [c_void_p, c_size_t, c_uint32]
    lib.p2o_call_refuse.argtypes = [c_void_p, c_char_p]


class Value:
    """A tensor in the model that is made."""

    def __init__(self, number: int, dtype: str, shape: Tuple[Optional[int], ...]) -> None:
        self._number = number
        self.dtype = dtype                  # "float32"
        self.shape = shape                  # None: a size that varies

    def __repr__(self) -> str:
        return "%s[%s]" % (self.dtype, ", ".join("?" if n is None else str(n)
                                                 for n in self.shape))


class _Refused(Exception):
    """The library said why."""


class Nodes:
    """Makes nodes of ONNX: g.Mul(x, 2.0), g.Concat(x, y, axis=0), g.op("Foo", x, domain="d")."""

    def __init__(self, lib: Any, call: int) -> None:
        self._lib, self._call = lib, call
        self.results = [self._type(lib.p2o_result_type, i)      # (dtype, shape) of each
                        for i in range(lib.p2o_call_nresults(call))]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name[:1].isupper():
            raise AttributeError(name)
        return lambda *inputs, **attributes: self.op(name, *inputs, **attributes)

    def _check(self, status: int) -> None:
        if status == -7:
            raise MemoryError("pt2onnx")
        if status:
            raise _Refused()

    def _type(self, ask: Any, number: int) -> Tuple[str, Tuple[Optional[int], ...]]:
        t = _Type(size=ctypes.sizeof(_Type))
        self._check(ask(self._call, number, byref(t)))
        return t.dtype.decode(), tuple(t.sizes[i] if t.sizes[i] >= 0 else None
                                       for i in range(t.rank))

    def _value(self, number: int) -> Value:
        return Value(number, *self._type(self._lib.p2o_value_type, number))

    def constant(self, x: Any, dtype: Optional[str] = None) -> Value:
        """A number, list, array or tensor."""
        if hasattr(x, "detach"):
            x = x.detach().cpu().numpy()
        a = np.asarray(x)
        if dtype is None and a.dtype == np.float64 and not isinstance(x, np.ndarray):
            dtype = "float32"
        a = np.array(a, dtype=dtype, order="C")
        sizes, out = (c_int64 * max(a.ndim, 1))(*a.shape), c_uint32()
        self._check(self._lib.p2o_constant(self._call, a.dtype.name.encode(), a.ndim, sizes,
                                           a.ctypes.data_as(c_void_p), a.nbytes, byref(out)))
        return self._value(out.value)

    def _input(self, x: Any, like: Optional[str]) -> int:
        if x is None:
            return 0
        if isinstance(x, Value):
            return x._number
        number = isinstance(x, (bool, int, float))
        return self.constant(x, like if number else None)._number

    def op(self, name: str, *inputs: Any, domain: str = "", outputs: int = 1,
           **attributes: Any) -> Any:
        """A node's output, or a tuple of them.  Numbers among the inputs become constants of the
        type of the first tensor; None is an absent input."""
        like = next((x.dtype for x in inputs if isinstance(x, Value)), None)
        numbers = (c_uint32 * max(len(inputs), 1))(*[self._input(x, like) for x in inputs])
        attrs = (_Attribute * max(len(attributes), 1))()
        for slot, (key, x) in zip(attrs, attributes.items()):
            _set_attribute(slot, key, x)
        out = (c_uint32 * max(outputs, 1))()
        node = _Node(ctypes.sizeof(_Node), domain.encode() or None, name.encode(), numbers,
                     len(inputs), attrs, len(attributes), outputs)
        self._check(self._lib.p2o_emit(self._call, byref(node), out))
        made = tuple(self._value(n) for n in out[:outputs])
        return made[0] if outputs == 1 else made

    def _given(self, x: _Argument, item: Callable[[int], _Argument]) -> Any:
        if x.kind == _TENSOR or x.value:
            return self._value(x.value)
        if x.kind == _LIST:
            return [self._given(item(k), item) for k in range(x.n)]
        return {_NONE: None, _INT: x.i, _FLOAT: x.f, _BOOL: bool(x.i),
                _STRING: (x.s or b"").decode()}[x.kind]

    def arguments(self) -> Dict[str, Any]:
        out = {}
        for i in range(self._lib.p2o_call_narguments(self._call)):
            def item(k: int, i: int = i) -> _Argument:
                y = _Argument(size=ctypes.sizeof(_Argument))
                self._check(self._lib.p2o_call_item(self._call, i, k, byref(y)))
                return y
            x = _Argument(size=ctypes.sizeof(_Argument))
            self._check(self._lib.p2o_call_argument(self._call, i, byref(x)))
            out[x.name.decode()] = self._given(x, item)
        return out


def _set_attribute(slot: _Attribute, name: str, x: Any) -> None:
    slot.size, slot.name = ctypes.sizeof(slot), name.encode()
    if isinstance(x, str):
        slot.kind, slot.s = 2, x.encode()
    elif isinstance(x, (bool, int, np.integer)):
        slot.kind, slot.i = 0, int(x)
    elif isinstance(x, (float, np.floating)):
        slot.kind, slot.f = 1, float(x)
    elif isinstance(x, (list, tuple, np.ndarray)):
        items = list(x)
        slot.n = len(items)
        if items and all(isinstance(i, str) for i in items):
            slot.kind, slot.strings = 5, (c_char_p * len(items))(*[i.encode() for i in items])
        elif any(isinstance(i, (float, np.floating)) for i in items):
            slot.kind, slot.floats = 4, (c_double * len(items))(*map(float, items))
        else:
            slot.kind, slot.ints = 3, (c_int64 * max(len(items), 1))(*map(int, items))
    else:
        raise TypeError("attribute %s is a %s" % (name, type(x).__name__))


def _lowering(conversion: Conversion, f: Callable[..., Any]) -> Any:
    lib = conversion._lib

    def lower(_user: object, call: int) -> int:
        try:
            g = Nodes(lib, call)
            made = f(g, **g.arguments())
            made = tuple(made) if isinstance(made, (list, tuple)) else (made,)
            if len(made) != len(g.results) or not all(isinstance(v, Value) for v in made):
                raise TypeError("it gives %r, and the operator has %d results" % (
                    made, len(g.results)))
            for i, v in enumerate(made):
                g._check(lib.p2o_call_result(call, i, v._number))
            return 0
        except _Refused:
            return -3
        except BaseException as e:
            conversion._raised.append(e)
            lib.p2o_call_refuse(call, ("%s: %s" % (type(e).__name__, e)).encode())
            return -3

    return _FUNCTION(lower)


def _name(op: Any) -> str:
    """mylib::foo, also of what torch.library.custom_op gives and of torch.ops.mylib.foo."""
    if isinstance(op, str):
        return op
    name = getattr(op, "_qualname", None) or getattr(op, "_qualified_op_name", None)
    name = name or (op.name() if callable(getattr(op, "name", None)) else None)
    if not isinstance(name, str):
        raise UsageError("custom_ops: %r is no operator: 'mylib::foo'" % (op,))
    return name


def _refuse_writers(name: str) -> None:
    """A node gives values and changes none."""
    try:
        import torch
    except ImportError:
        return
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    op: Any = torch.ops
    for part in (space, base, overload or "default"):
        op = getattr(op, part, None)
    schema = getattr(op, "_schema", None)
    if schema is not None and schema.is_mutable:
        raise UnsupportedError("custom_ops: %s writes to its arguments (%s): a node of ONNX gives "
                               "values and changes none" % (name, schema))


def _as_list(x: Any) -> Sequence[Any]:
    return [] if x is None else [x] if isinstance(x, (str, os.PathLike)) else list(x)


class CustomOps:
    """What export was told: custom_ops, op_library, ort_library."""

    def __init__(self, ops: Optional[Mapping[Any, Union[str, Callable[..., Any]]]] = None,
                 library: Any = None, kernels: Any = None) -> None:
        self.ops = {_name(k): v for k, v in (ops or {}).items()}
        self.library = [os.fspath(x) for x in _as_list(library)]
        self.kernels = [os.fspath(x) for x in _as_list(kernels)]
        for name, meaning in self.ops.items():
            if not isinstance(meaning, str) and not callable(meaning):
                raise UsageError("custom_ops: %s is 'com.example:Foo' or a function, not a %s" % (
                    name, type(meaning).__name__))
            _refuse_writers(name)

    def tell(self, c: Conversion) -> None:
        """All of it, to a handle that has not converted yet."""
        for x in self.library:
            text = "=>" in x                    # which no path has
            c.add_op_library(x.encode() if text else os.fsencode(x), text)
        for name, meaning in self.ops.items():
            if isinstance(meaning, str):
                c.set_custom_op("%s=%s" % (name, meaning))
            else:
                _declare(c._lib)
                f = _lowering(c, meaning)
                c._keep.append(f)
                c._do("register_op", name.encode(), f, None)
        for x in self.kernels:
            c.use_ort_library(x)

    def need_kernels(self) -> bool:
        """ONNX Runtime cannot run what they are mapped to."""
        if not self.ops and not self.library:
            return False
        with Conversion() as c:
            self.tell(c)
            return c.needs_kernels()
