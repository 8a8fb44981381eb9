"""pt2onnx.export against torch.onnx.export(dynamo=True) on the same modules: CPU seconds and peak
memory, each in a process of its own.

usage: bench_python.py [NAME...]    needs torch, onnxscript and the pt2onnx package; prints a table
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings

WAYS = ("capture", "ours", "theirs")


def bert():
    """BERT-base's sizes: 12 layers of 768, 110 million weights."""
    import torch
    from torch import nn

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
            layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
            self.pool = nn.Linear(768, 768)

        def forward(self, ids, mask):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
            x = self.layers(x, src_key_padding_mask=mask)
            return x, torch.tanh(self.pool(x[:, 0]))

    args = (torch.randint(0, 30000, (2, 16)), torch.zeros(2, 16, dtype=torch.bool))
    return Bert(), args, {"ids": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}}


def resnet():
    """ResNet-50's layers, 25 million weights."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, n, width, stride):
            super().__init__()
            m = width * 4
            self.body = nn.Sequential(
                nn.Conv2d(n, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, m, 1, bias=False), nn.BatchNorm2d(m))
            self.short = (nn.Sequential(nn.Conv2d(n, m, 1, stride, bias=False), nn.BatchNorm2d(m))
                          if n != m or stride > 1 else nn.Identity())

        def forward(self, x):
            return torch.relu(self.body(x) + self.short(x))

    parts, n = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(count):
            parts.append(Block(n, width, stride if k == 0 else 1))
            n = width * 4
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, 1000)]
    return nn.Sequential(*parts), (torch.randn(2, 3, 96, 128),), {
        "input": {0: "batch", 2: "height", 3: "width"}}


def llama():
    """16 layers of 1024 with rotary positions, grouped heads and a gated feed-forward net."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.RMSNorm(1024), nn.RMSNorm(1024)
            self.q, self.k, self.v, self.o = (
                nn.Linear(1024, n, bias=False) for n in (1024, 256, 256, 1024))
            self.gate, self.up, self.down = (
                nn.Linear(1024, 2816, False), nn.Linear(1024, 2816, False),
                nn.Linear(2816, 1024, False))

        def forward(self, x, cos, sin):
            b, s, _ = x.shape
            h = self.n1(x)
            q, k, v = (f(h).view(b, s, -1, 64).transpose(1, 2) for f in (self.q, self.k, self.v))
            q, k = (t * cos + torch.cat([-t[..., 32:], t[..., :32]], -1) * sin for t in (q, k))
            k, v = (t[:, :, None].expand(b, 4, 4, s, 64).reshape(b, 16, s, 64) for t in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, s, 1024))
            h = self.n2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.norm, self.head = (
                nn.Embedding(32000, 1024), nn.RMSNorm(1024), nn.Linear(1024, 32000, bias=False))
            self.layers = nn.ModuleList(Layer() for _ in range(16))

        def forward(self, ids):
            x = self.words(ids)
            f = torch.outer(torch.arange(ids.shape[1]).float(),
                            10000.0 ** (-torch.arange(0, 64, 2) / 64))
            f = torch.cat([f, f], -1)
            for layer in self.layers:
                x = layer(x, f.cos(), f.sin())
            return self.head(self.norm(x))

    return Llama(), (torch.randint(0, 30000, (2, 16)),), {"ids": {0: "batch", 1: "length"}}


MODELS = {"bert": bert, "resnet": resnet, "llama": llama}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name, way, folder):
    """In this process: [seconds from module to file, seconds from capture to model without writing
    it, peak MB]."""
    import torch
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, args, axes = MODELS[name]()
    model.eval()
    path = os.path.join(folder, "m.onnx")
    shapes = {k: {a: torch.export.Dim.AUTO for a in v} for k, v in axes.items()}
    shapes = (list(shapes.values())[0],) if name == "resnet" else shapes
    if way == "ours":
        import pt2onnx
    if way == "theirs":
        import onnxscript  # noqa: F401
        import torch.onnx
    with torch.no_grad():
        # What the first use of it costs.
        torch.export.export(torch.nn.Linear(2, 2), (torch.ones(2, 2),))
        begin = time.process_time()
        if way == "ours":
            pt2onnx.export(model, args, path, dynamic_axes=axes, verify=False, verbose=False)
        elif way == "theirs":
            torch.onnx.export(model, args, path, dynamo=True, dynamic_shapes=shapes, verbose=False)
        else:
            torch.export.export(model, args, dynamic_shapes=shapes, strict=False)
        whole, most = time.process_time() - begin, peak()
        after = 0.0
        if way != "capture":
            ep = torch.export.export(model, args, dynamic_shapes=shapes, strict=False)
            begin = time.process_time()
            if way == "ours":
                pt2onnx.export(ep, verify=False, verbose=False)
            else:
                torch.onnx.export(ep, (), dynamo=True, verbose=False)
            after = time.process_time() - begin
    return [whole, after, most]


def main():
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:5])))
        return
    print("%-8s %10s %10s %7s %10s %10s %7s %10s %10s %10s" % (
        "model", "ours s", "theirs s", "ratio", "after s", "after s", "ratio",
        "capture MB", "ours MB", "theirs MB"))
    for name in sys.argv[1:] or MODELS:
        got = {}
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                p = subprocess.run([sys.executable, __file__, "--measure", name, way, folder],
                                   capture_output=True, text=True)
            if p.returncode:
                sys.exit("%s, %s: %s" % (name, way, p.stderr.strip()[-2000:]))
            got[way] = json.loads(p.stdout.strip().split("\n")[-1])
        a, b = got["ours"], got["theirs"]
        print("%-8s %10.2f %10.2f %6.1fx %10.3f %10.3f %6.1fx %10.0f %10.0f %10.0f" % (
            name, a[0], b[0], b[0] / a[0], a[1], b[1], b[1] / a[1],
            got["capture"][2], a[2], b[2]), flush=True)


if __name__ == "__main__":
    main()
