"""Kits: folders of Python packages that models come from, each made on first use in .deps/zoo.

Packages are installed without what they depend on: PyTorch is that of tools/with_torch, and what is
missing is named here.  tf4 and tf5 are transformers as it was and as it is."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, ".deps", "zoo")
HUB = "pyyaml certifi regex requests tqdm charset_normalizer idna urllib3 safetensors"
HUB5 = HUB + " huggingface_hub httpx httpx2 httpcore httpcore2 h11 anyio sniffio truststore click"
KITS = {
    "tf4": "transformers==4.57.1 tokenizers==0.22.1 huggingface_hub==0.36.0 " + HUB,
    "tf5": "transformers==5.23.0 tokenizers typer shellingham rich " + HUB5,
    "more": "timm==1.0.31 torchvision==0.29.2 pillow diffusers==0.42.1 vit-pytorch==1.26.11 einops "
            "importlib_metadata zipp x-transformers==2.31.10 torch-einops-utils einx loguru "
            "frozendict torch_geometric==2.8.1 xxhash psutil pyparsing segmentation-models-pytorch==0.6.0 "
            "deepctr-torch==0.3.0 " + HUB5,
    "torch": "",
}


class Missing(Exception):
    """The packages cannot be had here."""


def folder_of(kit):
    """The kit's folder, made if it is not there."""
    folder = os.path.join(FOLDER, kit)
    ready = os.path.join(folder, ".ready")
    if not KITS[kit] or os.path.exists(ready) and open(ready).read() == KITS[kit]:
        return folder
    print("zoo: installing %s into %s" % (kit, folder), file=sys.stderr)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--retries", "1", "--no-deps", "--upgrade", "--target", folder]
    p = subprocess.run(pip + KITS[kit].split(), capture_output=True, text=True)
    if p.returncode:
        raise Missing("%s: %s" % (kit, (p.stderr.strip().split("\n") or [""])[-1][:300]))
    with open(ready, "w") as f:
        f.write(KITS[kit])
    return folder


def stand_in():
    """torchvision is of another PyTorch: its compiled operators do not load, and what it registers
    for them does without."""
    import torch
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", nms, "CPU")
    return library                      # registered as long as it lives


def without_training():
    """deepctr_torch wants metrics and callbacks for training."""
    import types
    keras = "tensorflow.python.keras.callbacks"
    names = {"sklearn.metrics": "roc_auc_score log_loss mean_squared_error accuracy_score",
             keras: "CallbackList EarlyStopping ModelCheckpoint History"}
    for full, has in names.items():
        for k in range(1, len(full.split(".")) + 1):
            name = ".".join(full.split(".")[:k])
            sys.modules.setdefault(name, types.ModuleType(name))
        for name in has.split():
            setattr(sys.modules[full], name, type(name, (), {}))


def nms(boxes, scores, threshold):
    """The indices of boxes that overlap no better one, the best first."""
    import torch
    order = scores.argsort(descending=True, stable=True).tolist()
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    for i in order:
        if kept:
            others = boxes[kept]
            low = torch.maximum(boxes[i, :2], others[:, :2])
            high = torch.minimum(boxes[i, 2:], others[:, 2:])
            both = (high - low).clamp(min=0).prod(1)
            if (both / (area[i] + area[kept] - both) > threshold).any():
                continue
        kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)
