"""`weights=`: tensors that lie in files, mapped and never loaded."""
from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from typing import Any, Dict, Mapping

import torch

from ._errors import InputError, UsageError

_SAFETENSORS = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16,
    "I32": torch.int32, "I64": torch.int64, "F16": torch.float16, "BF16": torch.bfloat16,
    "F32": torch.float32, "F64": torch.float64, "C64": torch.complex64,
}


def _safetensors(path: Path) -> Dict[str, torch.Tensor]:
    with open(path, "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)  # writable to torch, never written
    size = int.from_bytes(data[:8], "little")
    if size > len(data) - 8:
        raise InputError("%s: the header is longer than the file" % path)
    try:
        header = json.loads(data[8:8 + size])
        header.pop("__metadata__", None)
        start, out = 8 + size, {}
        for name, x in header.items():
            begin, end = x["data_offsets"]
            dtype = _SAFETENSORS[x["dtype"]]
            count = (end - begin) // dtype.itemsize
            flat = (torch.frombuffer(data, dtype=dtype, count=count, offset=start + begin)
                    if count else torch.empty(0, dtype=dtype))
            out[name] = flat.view(x["shape"])
        return out
    except (KeyError, TypeError, ValueError, RuntimeError) as e:
        raise InputError("%s: no safetensors file: %s: %s" % (path, type(e).__name__, e)) from e


def _file(path: Path) -> Dict[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if path.name.endswith(".index.json"):
        shards = sorted(set(json.loads(path.read_text())["weight_map"].values()))
        return load_weights([path.parent / s for s in shards])
    if path.is_dir():
        index = sorted(path.glob("*.index.json")) or sorted(path.glob("*.safetensors"))
        if not index:
            raise UsageError("weights: %s holds no *.index.json and no *.safetensors" % path)
        return load_weights(index)
    out = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    return out.get("state_dict", out) if isinstance(out, dict) else {}


def load_weights(weights: Any) -> Dict[str, torch.Tensor]:
    """A path, several, or a mapping of names to tensors or arrays; later ones win."""
    if weights is None:
        return {}
    if isinstance(weights, (str, os.PathLike)):
        return _file(Path(weights))
    if isinstance(weights, Mapping):
        return {k: v if isinstance(v, torch.Tensor) else torch.as_tensor(v)
                for k, v in weights.items()}
    out: Dict[str, torch.Tensor] = {}
    for w in weights:
        out.update(load_weights(w))
    return out
