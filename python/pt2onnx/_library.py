"""The C library, through ctypes."""
from __future__ import annotations

import ctypes
import functools
import json
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)
from pathlib import Path
from typing import Any, BinaryIO, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Type

from ._errors import (Diagnostic, DynamicError, InputError, Pt2OnnxError, UnsupportedError,
                      UsageError)

EXTERNAL = {None: 0, "auto": 0, True: 1, "always": 1, False: 2, "never": 2, "link": 3}
STATES = ("drop", "io")
_SEVERITIES = ("note", "warning", "error")
_ERRORS: Dict[int, Type[Pt2OnnxError]] = {-1: UsageError, -2: InputError, -3: UnsupportedError,
                                          -4: DynamicError}


class _Diagnostic(Structure):
    _fields_ = [("size", c_size_t), ("severity", c_int), ("kind", c_char_p), ("message", c_char_p),
                ("advice", c_char_p), ("file", c_char_p), ("function", c_char_p),
                ("module", c_char_p), ("line", c_uint32), ("text", c_char_p),
                ("capture", c_char_p)]


class _Options(Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("alloc", c_void_p), ("on_diag", c_void_p),
                ("on_line", c_void_p), ("opset", c_int), ("external", c_int), ("dump", c_int),
                ("state", c_int)]


class _Weight(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("dtype", c_char_p), ("data", c_void_p),
                ("nbytes", c_uint64), ("offset", c_uint64), ("rank", c_int),
                ("sizes", POINTER(c_int64)), ("strides", POINTER(c_int64))]


class Weight(NamedTuple):
    """A strided view of memory that `owner` keeps alive."""

    name: str
    dtype: str
    data: int
    nbytes: int
    offset: int
    sizes: Sequence[int]
    strides: Sequence[int]
    owner: Any


_WRITE = CFUNCTYPE(c_int, c_void_p, POINTER(ctypes.c_char), c_size_t)
_TEXTS = ("p2o_signature", "p2o_report", "p2o_summary", "p2o_ops_text")
_loaded: Optional[ctypes.CDLL] = None


def library_path() -> Path:
    """The installed library; PT2ONNX_LIBRARY names another."""
    return Path(os.environ.get("PT2ONNX_LIBRARY") or Path(__file__).with_name("libpt2onnx.so"))


def _library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        lib = ctypes.CDLL(str(library_path()))
        lib.p2o_version.restype = c_char_p
        lib.p2o_captures_limit.restype = c_size_t
        lib.p2o_options_init.argtypes = [POINTER(_Options), c_size_t]
        lib.p2o_options_init.restype = None
        lib.p2o_new.argtypes, lib.p2o_new.restype = [POINTER(_Options)], c_void_p
        lib.p2o_free.argtypes, lib.p2o_free.restype = [c_void_p], None
        for name in ("read_file", "set_input", "set_dynamic_axes", "set_dim", "set_input_names",
                     "set_output_names", "write_file", "set_custom_op", "add_op_library",
                     "add_op_text", "use_ort_library"):
            getattr(lib, "p2o_" + name).argtypes = [c_void_p, c_char_p]
        lib.p2o_read_program.argtypes = [c_void_p, c_char_p, c_size_t, POINTER(_Weight), c_size_t]
        lib.p2o_needs_kernels.argtypes = [c_void_p]
        lib.p2o_convert.argtypes = lib.p2o_read_checks.argtypes = [c_void_p]
        lib.p2o_port_names.argtypes = [c_void_p, c_char_p, POINTER(c_char_p)]
        lib.p2o_plan.argtypes = [c_void_p, POINTER(c_char_p)]
        lib.p2o_write.argtypes = [c_void_p, _WRITE, c_void_p]
        lib.p2o_diag_count.argtypes, lib.p2o_diag_count.restype = [c_void_p], c_size_t
        lib.p2o_diag_at.argtypes, lib.p2o_diag_at.restype = (
            [c_void_p, c_size_t], POINTER(_Diagnostic))
        for name in _TEXTS:
            getattr(lib, name).argtypes, getattr(lib, name).restype = [c_void_p], c_char_p
        _loaded = lib
    return _loaded


def version() -> str:
    return _library().p2o_version().decode()


def captures_limit() -> int:
    """How many captures and checks a conversion reads."""
    return _library().p2o_captures_limit()


@functools.lru_cache(maxsize=None)
def operators() -> FrozenSet[str]:
    """The names of those that have an equivalent: "aten::add.Tensor"."""
    with Conversion() as c:
        lines = (_text(c._lib.p2o_ops_text(c._handle)) or "").splitlines()
    return frozenset(line.split()[0] for line in lines if line.split())


def _text(x: Optional[bytes]) -> Optional[str]:
    return None if x is None else x.decode("utf-8", "replace")


class Conversion:
    """One model on its way: read, declare, convert, write."""

    def __init__(self, opset: Optional[int] = None, external: object = None,
                 state: str = "drop") -> None:
        self._handle: Optional[int] = None
        self._keep: List[Any] = []          # what the library points at
        self._raised: List[BaseException] = []          # by functions that it called
        if external not in EXTERNAL:
            raise UsageError("external_data is True, False, 'link' or None, not %r" % (external,))
        if state not in STATES:
            raise UsageError("state is 'drop' or 'io', not %r" % (state,))
        self._lib = _library()
        options = _Options()
        self._lib.p2o_options_init(byref(options), ctypes.sizeof(options))
        options.opset = options.opset if opset is None else int(opset)
        options.external = EXTERNAL[external]
        options.state = STATES.index(state)
        self._handle = self._lib.p2o_new(byref(options))
        if not self._handle:
            raise MemoryError("pt2onnx")

    def close(self) -> None:
        if self._handle:
            self._lib.p2o_free(self._handle)
        self._handle = None
        self._keep.clear()

    def __enter__(self) -> "Conversion":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    __del__ = close

    def _do(self, name: str, *args: Any) -> None:
        before = self._lib.p2o_diag_count(self._handle)
        status = getattr(self._lib, "p2o_" + name)(self._handle, *args)
        if status == 0:
            return
        if status == -7:
            raise MemoryError("pt2onnx")
        said = [d for d in self.diagnostics()[before:] if d.severity == "error"]
        message = "\n".join(str(d) for d in said) or "conversion failed (%d)" % status
        if status == -6:
            raise OSError(message)
        raise _ERRORS.get(status, Pt2OnnxError)(message, said)

    def read_file(self, path: str) -> None:
        self._do("read_file", os.fsencode(path))

    def read_program(self, program: bytes, weights: Sequence[Weight]) -> None:
        table = (_Weight * len(weights))()
        for slot, w in zip(table, weights):
            rank = len(w.sizes)
            dims = c_int64 * max(rank, 1)
            slot.size, slot.name, slot.dtype = (
                ctypes.sizeof(slot), w.name.encode(), w.dtype.encode())
            slot.data, slot.nbytes, slot.offset, slot.rank = (
                w.data or None, w.nbytes, w.offset, rank)
            slot.sizes, slot.strides = dims(*w.sizes), dims(*w.strides)
        self._keep += [program, table, [w.owner for w in weights]]
        self._do("read_program", program, len(program), table, len(weights))

    def read_checks(self) -> None:
        """What is read from here on is only held against what was found."""
        self._do("read_checks")

    def plan(self, names: Sequence[str], ranges: Sequence[str]) -> Dict[str, List[Dict[str, int]]]:
        """Sizes to take captures at, and others to check them at; on a handle without a program."""
        said = c_char_p()
        self._do("set_input", ("x:" + ",".join(names)).encode())
        for r in ranges:
            self.set_dim(r)
        self._do("plan", byref(said))
        return json.loads(said.value or b"{}")

    def port_names(self, spec: str, fields: Dict[str, Any], names: Sequence[str]) -> List[str]:
        """Inputs' names by their paths, a cache's parts by their layers; on a handle of its own."""
        said = c_char_p()
        self._do("port_names", json.dumps({
            "in_spec": spec, "treespec_namedtuple_fields": fields,
            "names": list(names)}).encode(), byref(said))
        return json.loads(said.value or b"[]")

    def set_dynamic_axes(self, axes: Dict[str, Dict[int, str]]) -> None:
        self._do("set_dynamic_axes", json.dumps(
            {k: {str(a): n for a, n in v.items()} for k, v in axes.items()}).encode())

    def set_dim(self, spec: str) -> None:
        self._do("set_dim", spec.encode())

    def set_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._do("set_input_names", ",".join(inputs).encode())
        self._do("set_output_names", ",".join(outputs).encode())

    def set_custom_op(self, spec: str) -> None:
        self._do("set_custom_op", spec.encode())

    def add_op_library(self, x: bytes, is_text: bool) -> None:
        self._do("add_op_text" if is_text else "add_op_library", x)

    def use_ort_library(self, path: str) -> None:
        self._do("use_ort_library", os.fsencode(path))

    def needs_kernels(self) -> bool:
        return bool(self._lib.p2o_needs_kernels(self._handle))

    def convert(self) -> None:
        try:
            self._do("convert")
        except Pt2OnnxError as e:
            if self._raised:
                raise e from self._raised[0]
            raise

    def write_file(self, path: str) -> None:
        self._do("write_file", os.fsencode(path))

    def write(self, f: BinaryIO) -> None:
        failed: List[BaseException] = []

        def chunk(_user: object, p: Any, n: int) -> int:
            try:
                f.write(ctypes.string_at(p, n))
                return 1
            except BaseException as e:
                failed.append(e)
                return 0

        try:
            self._do("write", _WRITE(chunk), None)
        except (Pt2OnnxError, OSError):
            if failed:
                raise failed[0]
            raise

    def diagnostics(self) -> List[Diagnostic]:
        out = []
        for i in range(self._lib.p2o_diag_count(self._handle)):
            d = self._lib.p2o_diag_at(self._handle, i).contents
            out.append(Diagnostic(
                _SEVERITIES[d.severity], _text(d.kind) or "", _text(d.message) or "",
                _text(d.advice), _text(d.file), d.line, _text(d.function), _text(d.module),
                _text(d.text) or "",
                json.loads(d.capture) if d.size >= ctypes.sizeof(d) and d.capture else None))
        return out

    def signature(self) -> Dict[str, Any]:
        return json.loads(self._lib.p2o_signature(self._handle) or b"{}")

    def report(self) -> str:
        return _text(self._lib.p2o_report(self._handle)) or ""
