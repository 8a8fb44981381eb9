"""What shapes operators give that PyTorch cannot capture for want of that knowledge.

PyTorch 2.13 has the fake_quantize_* operators without kernels for tensors that have sizes only, so
that torch.export refuses modules that use them.  Kernels that PyTorch has are left alone.
"""

from typing import Any, List

_kernels: List[Any] = []        # libraries live as long as what they register


def _like(x: Any, *_: Any, **__: Any) -> Any:
    import torch
    return torch.empty_like(x)


def _like_and_mask(x: Any, *_: Any, **__: Any) -> Any:
    import torch
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


_MISSING = {
    "fake_quantize_per_tensor_affine_cachemask": _like_and_mask,
    "fake_quantize_per_channel_affine_cachemask": _like_and_mask,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": _like_and_mask,
    "_fake_quantize_learnable_per_tensor_affine": _like,
    "_fake_quantize_learnable_per_channel_affine": _like,
}


def register_missing_kernels() -> None:
    """Once; later calls do nothing."""
    import torch
    if _kernels:
        return
    library = torch.library.Library("aten", "IMPL")
    _kernels.append(library)
    for name, kernel in _MISSING.items():
        packet = getattr(torch.ops.aten, name, None)
        has = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
        if packet is not None and has is not None and not has("aten::" + name, "Meta"):
            library.impl(name, kernel, "Meta")
