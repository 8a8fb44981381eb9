"""Why PyTorch does not capture a model, in three lines: where, what, and what to write instead."""
from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import threading
from typing import Any, Iterator, List, Optional, Tuple

import torch

from ._errors import CaptureError, Diagnostic
from ._state import is_own

LONGEST = 200                   # of PyTorch's words
_FILE = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')
Place = Tuple[str, int, str, str]               # file, line, function, the line itself

# What PyTorch says; what it means; what to write.  The first whose words are found, and whose
# words are in the line, counts.
_MEANINGS = [
    (r"data-dependent|Dynamic slicing|could not extract specialized integer", r"is_causal",
     "is_causal depends on what a tensor holds, and is fixed when the model is captured",
     "attn_mask=mask, computed from the tensor; or is_causal=True or False"),
    (r"tolist|data-dependent|could not extract specialized integer",
     r"\bfor\b|\bwhile\b|tolist|range\(",
     "a loop depends on what a tensor holds, and would be fixed when the model is captured",
     "one computation on the whole tensor with a mask; or torch.while_loop(cond, body, operands)"),
    (r"data-dependent|could not extract specialized integer", r"\bint\(|\.item\(",
     "a number that a tensor holds decides what is computed",
     "torch.where(mask, a, b), or a mask in place of a slice; for a branch "
     "torch.cond(pred, f, g, operands)"),
    (r"data-dependent", r"",
     "which way this goes depends on what a tensor holds",
     "torch.cond(pred, f, g, operands), or torch.where(pred, a, b)"),
    (r"not a known type|unrecognized type|not supported or pytree|pytree-flattenable", r"",
     None,
     "tensors, tuples, lists, dicts, dataclasses; or tell PyTorch of the class: "
     "torch.utils._pytree.register_pytree_node"),
    (r"numpy", r"", None, "torch's functions in place of numpy's"),
    (r"assigned during export|[Mm]utated attribute|mutating module attributes", r"", None,
     "self.register_buffer(name, value) in __init__, and change it in place"),
]
_OTHERWISE = "torch.export.draft_export(model, args) says more"


def _text_of(path: str, line: int) -> str:
    return linecache.getline(path, line).strip()


def _user_place(e: BaseException) -> Optional[Place]:
    """The innermost line of code that is not PyTorch's: of the stack, else of what is said."""
    found: Optional[Place] = None
    trace = e.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        path = frame.f_code.co_filename
        if is_own(frame.f_globals.get("__name__")) and not path.startswith("<"):
            found = path, trace.tb_lineno, frame.f_code.co_name, _text_of(path, trace.tb_lineno)
        trace = trace.tb_next
    own = os.path.dirname(torch.__file__), os.path.dirname(__file__)
    said = [(p, int(n), f, _text_of(p, int(n))) for p, n, f in _FILE.findall(str(e))
            if not p.startswith(own)]
    strict = type(e).__module__.startswith("torch._dynamo")     # it reads code: no frames of it
    return said[-1] if said and (strict or found is None) else found


def _words(e: BaseException) -> str:
    first = next((s.strip() for s in str(e).split("\n") if s.strip()), "")
    first = re.sub(r"\s*\(unhinted: .*", "", first)
    first = "%s: %s" % (type(e).__name__, first) if first else type(e).__name__
    return first if len(first) <= LONGEST else first[:LONGEST - 3] + "..."


def explained(e: BaseException) -> CaptureError:
    place, words = _user_place(e), _words(e)
    line = place[3] if place else ""
    cause, instead = next(
        ((c, i) for said, code, c, i in _MEANINGS
         if re.search(said, str(e), re.I) and re.search(code, line)), (None, None))
    lines: List[str] = ["torch.export cannot capture the model"]
    if place:
        lines[0] += ": %s:%d in %s: %s" % (os.path.basename(place[0]), place[1], place[2], line)
    cause = "%s (%s)" % (cause, words) if cause else words
    advice = "write instead: " + instead if instead else _OTHERWISE
    text = "\n  ".join([*lines, cause, advice])
    d = Diagnostic("error", "capture", cause, advice, place and place[0], place[1] if place else 0,
                   place and place[2], None, text)
    return CaptureError(text, [d])


class _Muted:
    """What one thread writes is dropped; the others write on."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() != self._thread and self._stream is not None:
            self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """PyTorch prints whole programs to stderr when a capture fails."""
    before = sys.stderr
    sys.stderr = _Muted(before)
    try:
        yield
    finally:
        sys.stderr = before
