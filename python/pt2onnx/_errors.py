"""What goes wrong, as exceptions that carry the library's own diagnostics."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence


@dataclass(frozen=True)
class Diagnostic:
    """One thing that the converter says: what, where in the user's source, what to do."""

    severity: str                   # "note", "warning" or "error"
    kind: str                       # stable: "no-operator", "not-dynamic", ...
    message: str
    advice: Optional[str] = None
    file: Optional[str] = None
    line: int = 0
    function: Optional[str] = None
    module: Optional[str] = None
    text: str = ""                  # all of it, as the command prints it
    capture: Optional[Dict[str, int]] = None    # sizes at which one more capture would tell

    def __str__(self) -> str:
        return self.text or self.message


class Pt2OnnxError(RuntimeError):
    """The base of what this package raises."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics: List[Diagnostic] = list(diagnostics)


class UsageError(Pt2OnnxError, ValueError):
    """The arguments make no sense."""


class InputError(Pt2OnnxError):
    """A saved program that cannot be read."""


class UnsupportedError(Pt2OnnxError):
    """Operators or features without an equivalent; every one is listed."""


class DynamicError(Pt2OnnxError):
    """An axis cannot be dynamic as asked."""


class CaptureError(Pt2OnnxError):
    """torch.export does not capture the model."""


class VerificationError(Pt2OnnxError):
    """ONNX Runtime's numbers are not PyTorch's; nothing was written."""
