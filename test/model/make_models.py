"""Models of the kinds that users bring, saved by torch.export with outputs recorded at several sizes.

usage: make_models.py FOLDER [NAME|NAME.CAPTURE...]      needs PyTorch

For each model: NAME.pt2 (a capture with dynamic sizes), NAME.a.pt2, NAME.b.pt2 and perhaps .c and
.d (captures with fixed sizes, different ones), perhaps NAME.one.pt2 and NAME.onesym.pt2 (a batch of
1, fixed and with dynamic sizes) and NAME.npz (s<K>.in.<i>, s<K>.out.<j>: what PyTorch computed, at
sizes among which are 1, primes, and 0 where it is legal).  NAME.CAPTURE (windows.b) makes that one
file.
"""
import math
import os
import sys
import warnings

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  defines operators
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

warnings.filterwarnings("ignore")
MODELS = {}


# Sizes that `pt2onnx plan` gives for two and for three names.
PLAN2 = [(110, 46), (61, 10), (6, 97)]
PLAN3 = [(83, 40, 14), (51, 13, 106), (6, 97, 61)]


def model(name, args, sizes, axes, fixed=None, one=None):
    """args(*size) makes the inputs; axes has, per input, the axes that are dynamic; `fixed` are the
    sizes that the fixed captures are taken at, else the first two; `one` are sizes with a batch of
    1 for two more captures."""
    def add(cls):
        MODELS[name] = (cls, args, sizes, axes, fixed or sizes[:2], one)
        return cls
    return add


def randomize(m):
    """BatchNorm statistics as training leaves them."""
    for x in m.modules():
        if isinstance(x, nn.modules.batchnorm._BatchNorm):
            x.running_mean.uniform_(-1, 1)
            x.running_var.uniform_(0.5, 2)
            x.weight.data.uniform_(0.5, 2)
            x.bias.data.uniform_(-1, 1)


@model("residual", lambda b, h, w: (torch.randn(b, 3, h, w),), [(2, 12, 10), (3, 9, 16), (1, 7, 5), (5, 3, 11)],
       [{0: "batch", 2: "height", 3: "width"}], one=(1, 9, 16))
class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.c2, self.b2 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.cs, self.bs = nn.Conv2d(3, 6, 1), nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        y = torch.relu(self.b1(self.c1(x)))
        y = torch.relu(self.b2(self.c2(y)) + self.bs(self.cs(x)))
        return self.fc(y.mean((2, 3)))


@model("recurrent", lambda b, t: (torch.randn(b, t, 4), torch.randn(1, b, 3)), [(2, 5), (3, 7), (1, 1), (4, 11)],
       [{0: "batch", 1: "time"}, {1: "batch"}], PLAN2, one=(1, 7))
class Recurrent(nn.Module):
    """A sequence read both ways by two one-way nets, a GRU with a given state, a stacked bidirectional net."""

    def __init__(self):
        super().__init__()
        self.fw, self.bw = nn.LSTM(4, 3, batch_first=True), nn.LSTM(4, 3, batch_first=True)
        self.gru = nn.GRU(6, 3, batch_first=True)
        self.deep = nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x, h):
        y = self.fw(x)[0]
        z = self.bw(x.flip(1))[0]
        index = torch.arange(z.shape[1] - 1, -1, -1, device=z.device)
        z = z.gather(1, index[None, :, None].expand(z.shape[0], z.shape[1], z.shape[2]))
        y, g = self.gru(torch.cat([y, z], -1), h)
        return self.deep(y)[0], g


@model("masked_attention", lambda n, b: (torch.randn(n, b, 16), torch.arange(n)[None] > torch.arange(n)[:, None]),
       [(5, 2), (7, 3), (1, 1), (11, 4)], [{0: "n", 1: "b"}, {0: "n", 1: "n"}], one=(7, 1))
class MaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(16, 4)
        self.layer = nn.TransformerEncoderLayer(16, 4, 24, dropout=0.0)

    def forward(self, x, mask):
        y = self.mha(x, x, x, attn_mask=mask)[0]
        return self.layer(x + y, src_mask=mask)


@model("decoder_cache", lambda b, s, p: (torch.randn(b, s, 64), torch.zeros(b, 1, s, p + s), torch.randn(b, 2, p, 16),
                                         torch.randn(b, 2, p, 16)),
       [(2, 3, 5), (3, 4, 6), (1, 1, 7), (2, 5, 0)],
       [{0: "b", 1: "s"}, {0: "b", 2: "s", 3: "total"}, {0: "b", 2: "p"}, {0: "b", 2: "p"}], one=(1, 4, 6))
class DecoderCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(64, 64, bias=False), nn.Linear(64, 32), nn.Linear(64, 32)
        self.o = nn.Linear(64, 8)
        self.norm = nn.LayerNorm(64)

    def forward(self, x, mask, past_k, past_v):
        b, s, _ = x.shape
        h = self.norm(x)
        q = self.q(h).view(b, s, 4, 16).transpose(1, 2)
        k = torch.cat([past_k, self.k(h).view(b, s, 2, 16).transpose(1, 2)], 2)
        v = torch.cat([past_v, self.v(h).view(b, s, 2, 16).transpose(1, 2)], 2)
        kk, vv = (t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(b, 4, -1, 16) for t in (k, v))
        w = torch.softmax(q @ kk.transpose(-1, -2) / 4 + mask, -1)
        return self.o((w @ vv).transpose(1, 2).reshape(b, s, 64)), k, v


@model("pyramid", lambda b, h, w: (torch.randn(b, 3, h, w),), [(2, 13, 18), (3, 11, 15), (1, 7, 9), (2, 19, 8)],
       [{0: "batch", 2: "height", 3: "width"}], PLAN3, one=(1, 11, 15))
class Pyramid(nn.Module):
    """A deeper map resized to another's size, and pools of several sizes resized back."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.p = nn.ModuleList(nn.Conv2d(4, 2, 1) for _ in range(4))

    def forward(self, x):
        a = self.c1(x)
        b = self.c2(torch.relu(a))
        y = a + F.interpolate(b, size=a.shape[-2:], mode="bilinear", align_corners=False)
        out = [y]
        for k, conv in zip((1, 2, 3, 6), self.p):
            pooled = conv(F.adaptive_avg_pool2d(y, k))
            out.append(F.interpolate(pooled, size=y.shape[-2:], mode="bilinear", align_corners=k % 2 == 1))
        return torch.cat(out, 1)


def unet(mode):
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1, self.d2 = nn.Conv2d(1, 2, 2, stride=2), nn.Conv2d(2, 3, 2, stride=2)
            self.u2, self.u1 = nn.ConvTranspose2d(3, 2, 2, stride=2), nn.ConvTranspose2d(4, 1, 2, stride=2)

        def forward(self, x):
            h, w = x.shape[-2:]
            x = F.pad(x, (0, (8 - w % 8) % 8, 0, (8 - h % 8) % 8), mode=mode)
            a = torch.relu(self.d1(x))
            b = torch.relu(self.d2(a))
            return self.u1(torch.cat([self.u2(b), a], 1))[..., :h, :w]
    return UNet


for _mode in ("replicate", "reflect"):
    model("unet_" + _mode, lambda b, h, w: (torch.randn(b, 1, h, w),),
          [(2, 9, 17), (3, 20, 27), (1, 9, 15), (2, 8, 17), (1, 16, 24)],
          [{0: "batch", 2: "height", 3: "width"}],
          [(83, 49, 17), (51, 24, 55), (6, 106, 97), (34, 15, 104)], one=(1, 20, 27))(unet(_mode))


@model("windows", lambda b, h, w: (torch.randn(b, h * 4, w * 4, 6),), [(2, 3, 5), (5, 4, 8), (1, 1, 1), (2, 5, 2)],
       [{0: "batch", 1: "height", 2: "width"}], [(83, 10, 3), (51, 3, 26), (6, 25, 15)],
       one=(1, 4, 8))
class Windows(nn.Module):
    """Attention in shifted windows, with a mask built from the height and width."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(6, 18), nn.Linear(6, 6)

    def split(self, x):
        b, h, w, c = x.shape
        return x.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)

    def forward(self, x):
        b, h, w, c = x.shape
        y = self.split(torch.roll(x, (-1, -1), (1, 2)))
        rows = (torch.arange(h) >= h - 4).long() + (torch.arange(h) >= h - 1).long()
        cols = (torch.arange(w) >= w - 4).long() + (torch.arange(w) >= w - 1).long()
        region = self.split((rows[:, None] * 3 + cols[None, :])[None, :, :, None]).squeeze(-1)
        mask = (region[:, None, :] != region[:, :, None]).float() * -100.0
        q, k, v = self.qkv(y).chunk(3, -1)
        a = q @ k.transpose(-1, -2)
        n = mask.shape[0]
        a = (a.view(-1, n, 16, 16) + mask[None]).view(-1, 16, 16)
        y = self.proj(torch.softmax(a, -1) @ v)
        y = y.view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(y, (1, 1), (1, 2))


@model("writes", lambda n, m: (torch.randn(n + m, 5), torch.randn(m, 5), torch.randn(n + m, 5) > 0),
       [(3, 4), (4, 6), (1, 1), (7, 2)], [{0: "rows"}, {0: "m"}, {0: "rows"}], one=(4, 1))
class Writes(nn.Module):
    def forward(self, x, y, mask):
        x = x.clone()
        x[: y.shape[0]] = y
        x[mask] = 0.0
        v = x[:, 1:3]
        v += 1.0
        v.t()[0].mul_(2.0)
        return x, v


@model("messages", lambda n, e: (torch.randn(n, 3), torch.randint(0, n, (2, e)), torch.randn(e)),
       [(4, 7), (5, 9), (1, 1), (6, 0)], [{0: "nodes"}, {1: "edges"}, {0: "edges"}], one=(5, 1))
class Messages(nn.Module):
    """Sum, mean and max over the edges of each node, and a softmax per target."""

    def forward(self, x, edges, weight):
        src, dst = edges[0], edges[1]
        m = x[src] * weight[:, None]
        n = x.shape[0]
        total = torch.zeros(n, 3).index_add(0, dst, m)
        count = torch.zeros(n).index_add(0, dst, torch.ones_like(weight)).clamp(min=1)
        top = torch.zeros(n, 3).scatter_reduce(0, dst[:, None].expand(-1, 3), m, "amax", include_self=False)
        high = torch.full((n,), float("-inf")).scatter_reduce(0, dst, weight, "amax")
        e = torch.exp(weight - high[dst])
        return total, total / count[:, None], top, e / torch.zeros(n).index_add(0, dst, e)[dst]


@model("spectrum", lambda b, t: (torch.randn(b, t),), [(2, 900), (3, 1100), (1, 640), (2, 1601)],
       [{0: "batch", 1: "samples"}], [(110, 1046), (61, 710), (6, 1697)], one=(1, 1100))
class Spectrum(nn.Module):
    """A centred STFT, magnitude, mel, log; and back to the length."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(40))
        self.register_buffer("mel", torch.rand(8, 33))

    def forward(self, x):
        s = torch.stft(x, 64, 20, 40, self.window, center=True, pad_mode="reflect", return_complex=True)
        mel = torch.log(self.mel @ s.abs() + 1e-5)
        return mel, torch.istft(s, 64, 20, 40, self.window, length=x.shape[1])


def define_vision():
    """torchvision's two operators as its documentation has them, so that it need not be installed."""
    if hasattr(torch.ops.torchvision, "nms"):
        return

    def nms(boxes, scores, threshold):
        keep, order = [], scores.argsort(descending=True, stable=True).tolist()
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        while order:
            i = order.pop(0)
            keep.append(i)
            low, high = torch.maximum(boxes[i, :2], boxes[order, :2]), torch.minimum(boxes[i, 2:], boxes[order, 2:])
            both = (high - low).clamp(min=0).prod(1)
            over = both / (area[i] + area[order] - both) > threshold
            order = [k for k, o in zip(order, over.tolist()) if not o]
        return torch.tensor(keep, dtype=torch.int64)

    def roi_align(x, rois, scale, ph, pw, ratio, aligned):
        out = x.new_zeros(rois.shape[0], x.shape[1], ph, pw)
        height, width = x.shape[2:]
        for r, (image, x1, y1, x2, y2) in enumerate(rois.tolist()):
            x1, y1, x2, y2 = (v * scale - 0.5 * aligned for v in (x1, y1, x2, y2))
            w, h = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
            ys = [y1 + h / ph * (i + (j + 0.5) / ratio) for i in range(ph) for j in range(ratio)]
            xs = [x1 + w / pw * (i + (j + 0.5) / ratio) for i in range(pw) for j in range(ratio)]
            at = x.new_zeros(x.shape[1], len(ys), len(xs))
            for i, y in enumerate(ys):
                for j, u in enumerate(xs):
                    if -1 <= y <= height and -1 <= u <= width:
                        at[:, i, j] = bilinear(x[int(image)], max(y, 0.0), max(u, 0.0))
            out[r] = at.view(-1, ph, ratio, pw, ratio).mean((2, 4))
        return out

    def bilinear(x, y, u):
        top, left = min(int(y), x.shape[1] - 1), min(int(u), x.shape[2] - 1)
        bottom, right = min(top + 1, x.shape[1] - 1), min(left + 1, x.shape[2] - 1)
        dy, du = (y - top if bottom > top else 0.0), (u - left if right > left else 0.0)
        return (x[:, top, left] * (1 - dy) * (1 - du) + x[:, top, right] * (1 - dy) * du +
                x[:, bottom, left] * dy * (1 - du) + x[:, bottom, right] * dy * du)

    define_vision.library = lib = torch.library.Library("torchvision", "FRAGMENT")
    lib.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    lib.define("roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
               "int sampling_ratio, bool aligned) -> Tensor")
    lib.impl("nms", nms, "CPU")
    lib.impl("roi_align", roi_align, "CPU")
    torch.library.register_fake("torchvision::nms", lambda boxes, scores, threshold: boxes.new_empty(
        torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64))
    torch.library.register_fake("torchvision::roi_align", lambda x, rois, scale, ph, pw, ratio, aligned: x.new_empty(
        rois.shape[0], x.shape[1], ph, pw))


def detection_inputs(n):
    """Boxes of which some overlap and some are below the threshold; more than 100 good ones where n is large."""
    corner = torch.rand(n, 2) * (40 if n > 50 else 20)
    boxes = torch.cat([corner, corner + 1 + torch.rand(n, 2) * 3], 1)
    return boxes, torch.rand(n), torch.randn(1, 3, 16, 12)


@model("detection", detection_inputs, [(20,), (33,), (1,), (0,), (400,)], [{0: "boxes"}, {0: "boxes"}, {}], one=(1,))
class Detection(nn.Module):
    """Threshold, non-maximum suppression, at most 100 boxes, RoI-align, mean."""

    def forward(self, boxes, scores, image):
        good = scores > 0.3
        boxes, scores = boxes[good], scores[good]
        keep = torch.ops.torchvision.nms(boxes, scores, 0.5)[:100]
        boxes, scores = boxes[keep], scores[keep]
        rois = torch.cat([torch.zeros_like(boxes[:, :1]), boxes], 1)
        crops = torch.ops.torchvision.roi_align(image, rois, 0.3, 7, 7, 2, True)
        return boxes, scores, crops.mean((2, 3))


@model("sdpa3", lambda b, s: (torch.randn(b, s, 8),), [(2, 5), (3, 7), (1, 1), (4, 13)], [{0: "b", 1: "s"}])
class Sdpa3(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@model("shuffle", lambda b, h, w: (torch.randn(b, 4, 2 * h, 2 * w),), [(2, 3, 4), (3, 5, 2), (1, 1, 1), (2, 4, 7)],
       [{0: "b", 2: "h", 3: "w"}])
class Shuffle(nn.Module):
    def forward(self, x):
        return F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.unfold(x, 2)


@model("shares", lambda b, n: (torch.randn(b, n),), [(2, 31), (3, 10), (5, 64), (2, 97), (4, 7), (2, 333)], [{0: "b", 1: "n"}])
class Shares(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        root = torch.sym_int(torch.sym_sqrt(n))
        return (x[:, :math.trunc(0.7 * n)], x[:, math.trunc(n / 1.1):], x[:, :root].sum(1, keepdim=True),
                x[:, :n & ~1], x.new_ones(math.trunc(n / 0.3), n >> 1), x.new_ones(1 << (root % 8), (n & 5) + 3))


@model("tied_head", lambda b, s: (torch.randint(0, 50, (b, s)),), [(2, 5), (3, 4), (1, 1), (2, 9)], [{0: "b", 1: "s"}])
class TiedHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(self.emb(ids))


@model("bf16", lambda b, s: (torch.randn(b, s, 8),), [(2, 5), (3, 4), (1, 1), (2, 9)], [{0: "b", 1: "s"}])
class Bf16(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).bfloat16()

    def forward(self, x):
        return self.layer(x.bfloat16()).float()


@model("transposed", lambda b, h, w: (torch.randn(b, 4, h, w),), [(2, 5, 6), (3, 4, 7), (1, 1, 1), (2, 8, 3)],
       [{0: "b", 2: "h", 3: "w"}])
class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.bn = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), nn.BatchNorm2d(6)

    def forward(self, x):
        return self.bn(self.up(x))


@model("unused_input", lambda b: (torch.randn(b, 3), torch.randn(b, 2), torch.randn(b, 3)), [(2,), (3,), (1,), (7,)],
       [{0: "b"}, {0: "b"}, {0: "b"}])
class UnusedInput(nn.Module):
    def forward(self, x, unused, y):
        return x + y


@model("view_softmax", lambda a, b: (torch.randn(a, b, 2),), [(3, 4), (5, 2), (1, 1), (2, 7)], [{0: "a", 1: "b"}])
class ViewSoftmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x.view(x.size(1), -1), -1)


@model("branches", lambda b: (torch.randn(b, 4), torch.tensor(b % 2 == 0)), [(2,), (3,), (1,), (6,)], [{0: "b"}, {}])
class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x, flag):
        return torch.cond(flag, lambda x: self.f(x), lambda x: torch.relu(self.g(x)), (x,))


@model("loops", lambda t, b, n: (torch.randn(t, b, 4), torch.tensor(n)), [(5, 2, 3), (4, 3, 0), (1, 1, 1), (7, 5, 6)],
       [{0: "t", 1: "b"}, {}], [(46, 110, 3), (10, 61, 0), (97, 6, 1)], one=(4, 1, 2))
class Loops(nn.Module):
    """A scan over time, a loop whose length the data decide, a branch in it, and a map over rows."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)

    def forward(self, x, n):
        from torch._higher_order_ops import map as over_rows, scan, while_loop

        def step(h, x):
            h = torch.tanh(self.f(h) + x)
            return h, h.sum(1)

        def round(i, y):
            y = torch.cond(y.sum() > 0, lambda y: y - y.shape[0], lambda y: 2 * y + 1, (y,))
            return i + 1, y

        last, each = scan(step, torch.zeros(x.shape[1], 4), x)
        count, y = while_loop(lambda i, y: i < n, round, (torch.zeros((), dtype=torch.int64), last))
        return count, y, each, over_rows(lambda r, w: r.softmax(0) @ w, y, self.f.weight)


@model("autocast", lambda b: (torch.randn(b, 8),), [(2,), (3,), (1,), (7,)], [{0: "b"}])
class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.g, self.norm = nn.Linear(8, 8), nn.Linear(8, 4), nn.LayerNorm(8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.norm(self.f(x)).relu()
            with torch.autocast("cpu", enabled=False):
                y = y.float() * x.sin()
            y = self.g(y) + x[:, :4]
        return y.float()


@model("transformer", lambda b, s, t: (torch.randn(b, s, 16), torch.randn(b, t, 16)),
       [(2, 5, 3), (3, 4, 7), (1, 1, 1), (2, 9, 6)], [{0: "b", 1: "s"}, {0: "b", 1: "t"}], one=(1, 4, 7))
class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(16, 2, 1, 1, 24, dropout=0.0, batch_first=True)

    def forward(self, src, tgt):
        return self.net(src, tgt)


@model("pieces", lambda b, s: (torch.randn(b, s, 3),), [(2, 9), (3, 14), (1, 5), (2, 23), (5, 7), (1, 64)],
       [{0: "b", 1: "s"}], PLAN2)
class Pieces(nn.Module):
    """Pieces that are taken by their place, and positions that count down."""

    def forward(self, x):
        back = x[:, torch.arange(x.shape[1] - 1, -1, -1)]
        around = x[:, torch.arange(-1, x.shape[1] - 1)]
        return back - around, x.chunk(4, 1)[1], x.split(4, 1)[1], x.chunk(3, 1)[0], x.split(5, 1)[0], x.unbind(1)[1]


@model("first_piece", lambda b, s: (torch.randn(b, s, 3),), [(2, 8), (3, 11), (1, 1), (2, 2), (4, 3), (2, 29)],
       [{0: "b", 1: "s"}], PLAN2)
class FirstPiece(nn.Module):
    def forward(self, x):
        back = x[:, torch.arange(x.shape[1] - 1, -1, -1)]
        half = x.chunk(2, 1)[0]
        return back, half, half.chunk(3, 1)[0] + 1


@model("padded_pools", lambda b, h, w: (torch.randn(b, 2, h, w),), [(2, 11, 13), (5, 24, 17), (1, 5, 4), (3, 8, 31)],
       [{0: "batch", 2: "height", 3: "width"}])
class PaddedPools(nn.Module):
    """Zeros beside negative numbers count as the largest, unlike the padding of a pool."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.ConstantPad2d(1, 0.0), nn.MaxPool2d(3, 2))

    def forward(self, x):
        x = -1 - x.abs()
        ends = F.pad(x, (0, 1, 0, 1))
        return self.stem(x), F.max_pool2d(ends, 2), F.max_pool2d(ends, 3, 2, 1, ceil_mode=True), \
            F.avg_pool2d(ends, 3, 2, 1)


@model("whole_pools", lambda b, h, w: (torch.randn(b, 3, h, w),),
       [(2, 8, 13), (3, 11, 17), (1, 2, 1), (2, 7, 5), (1, 19, 31)], [{0: "b", 2: "h", 3: "w"}])
class WholePools(nn.Module):
    """Options that follow a size."""

    def forward(self, x):
        h, w = x.shape[2:]
        y = F.avg_pool2d(x, (h, w)) + F.max_pool2d(x, (h, w), stride=1)
        rows, where = F.max_pool2d(x, (2, w), stride=(1, w), return_indices=True)
        cells = F.adaptive_max_pool2d(x, (4, None))
        seen = F.scaled_dot_product_attention(x, x, x, scale=1 / h)
        return (y, rows, where, cells, seen, F.one_hot(x.argmax(3), w), x.unfold(3, w, 1),
                F.avg_pool2d(x, (2, w), padding=(1, 0), count_include_pad=False))


def over_pairs(f, n):
    """f of n indices, over every combination of them."""
    for k in reversed(range(n)):
        f = torch.vmap(f, in_dims=tuple(0 if i == k else None for i in range(n)), out_dims=0)
    return f


@model("vmap_mask", lambda n, s: (torch.randn(n, 2, s, 4), torch.rand(n, s) > 0.3), [(2, 7), (3, 11), (1, 1), (5, 2)],
       [{0: "batch", 2: "length"}, {0: "batch", 1: "length"}], fixed=PLAN2)
class VmapMask(nn.Module):
    """A mask made from functions of (batch, head, query, key), as decoders make theirs."""

    def forward(self, x, known):
        b, h, s, _ = x.shape

        def seen(i, head, q, k):
            window = (k <= q) & (k > q - 3)
            return window.new_ones((), dtype=torch.bool) & window & torch.ops.aten.index(known, [i, k])

        mask = over_pairs(seen, 4)(torch.arange(b), torch.arange(1), torch.arange(s), torch.arange(s))
        scores = torch.where(mask & known[:, None, None], x @ x.transpose(-1, -2), -1e4)
        return scores.softmax(-1) @ x, mask


@model("vmap_math", lambda n, s: (torch.randn(n, s, 4), torch.randn(n, 4, 3), torch.randn(s)),
       [(2, 7), (3, 11), (1, 2), (5, 3)],
       [{0: "batch", 1: "length"}, {0: "batch"}, {0: "length"}], fixed=PLAN2)
class VmapMath(nn.Module):
    """Reductions, products, axes, writes; values that have the axis or lack it, at places of their own."""

    strict = True       # otherwise PyTorch captures no axis but the first

    def forward(self, x, w, y):
        def one(a, m):
            p = a @ m + y[:, None]
            q = p.softmax(0).cumsum(-1).transpose(0, 1) * a.shape[0]
            z = torch.zeros_like(a)
            z[0] = a.mean(0)
            z.add_(a.amax(), alpha=2)
            return p.sum((0, 1)), q, torch.cat([z, a.flip(0)], 1), a.std() + a.max(dim=1).values, y * 2

        return torch.vmap(one, in_dims=(0, -1), out_dims=(0, 1, -1, 0, 0))(x, w.movedim(0, 2))


@model("vmap_index", lambda n, t: (torch.randn(n, 5, 4), torch.randint(0, 4, (n, t)), torch.randint(0, 5, (t,))),
       [(2, 7), (3, 11), (1, 1), (5, 2)], [{0: "batch"}, {0: "batch", 1: "picks"}, {0: "picks"}], fixed=PLAN2)
class VmapIndex(nn.Module):
    """Indices that have the hidden axis, or not, into tensors that have it, or not."""

    def forward(self, x, i, j):
        table = x[0]
        both = torch.vmap(lambda a, k: (a[k], torch.ops.aten.index(a, [None, k]), a.index_select(1, k)))(x, i)
        alone = torch.vmap(lambda k: (table[k], F.embedding(k, table)))(i)
        plain = torch.vmap(lambda a: torch.ops.aten.index(a, [j, j % 4]))(x)
        return (*both, *alone, plain, torch.vmap(lambda a, k: a.sum(1).gather(0, k))(x, i))


@model("vmap_nest", lambda n, s: (torch.randn(n), torch.randn(s), torch.randn(n, s, 3)),
       [(2, 7), (3, 11), (1, 2), (5, 3)],
       [{0: "batch"}, {0: "length"}, {0: "batch", 1: "length"}], fixed=PLAN2)
class VmapNest(nn.Module):
    """One inside the other: numbers that meet, rows of rows."""

    def forward(self, a, c, x):
        grid = torch.vmap(lambda p: torch.vmap(lambda q: torch.where(p > q, p, p - q * 2))(c))(a)
        rows = torch.vmap(torch.vmap(lambda r: torch.outer(r, r).sum(0) + r.dot(r)))(x)
        return grid, rows, torch.vmap(lambda r: torch.vmap(lambda q: (r * q).sum(0))(c))(x)


@model("quantised", lambda b, t: (torch.randn(b, t, 16),), [(2, 7), (1, 1), (5, 3), (3, 29)],
       [{0: "batch", 1: "time"}], fixed=PLAN2)
class Quantised(nn.Module):
    """Integers for floats: fixed scales, scales of channels and groups, computed ones."""

    def __init__(self):
        super().__init__()
        for name, rows, columns in (("a", 24, 16), ("b", 8, 24)):
            self.register_buffer(name, torch.randint(-127, 128, (rows, columns), dtype=torch.int8))
        self.register_buffer("a_scale", torch.rand(24) * 0.004 + 0.001)
        self.register_buffer("a_zero", torch.zeros(24, dtype=torch.int64))
        self.register_buffer("b_scale", torch.rand(8, 3) * 0.004 + 0.001)
        self.bias = nn.Parameter(torch.randn(24))

    def forward(self, x):
        q = torch.ops.quantized_decomposed
        whole, narrow = (0.031, -3, -128, 127, torch.int8), (0.05, 10, 0, 127, torch.uint8)
        x = q.dequantize_per_tensor(q.quantize_per_tensor(x, *whole), *whole)
        a = q.dequantize_per_channel(self.a, self.a_scale, self.a_zero, 0, -127, 127, torch.int8)
        x = torch.relu(F.linear(x, a, self.bias))
        x = q.dequantize_per_tensor(q.quantize_per_tensor(x, *narrow), *narrow)
        scale, zero = q.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
        computed = (scale, zero, -128, 127, torch.int8)
        x = q.dequantize_per_tensor.tensor(q.quantize_per_tensor.tensor(x, *computed), *computed)
        b = q.dequantize_per_channel_group(self.b, self.b_scale, None, -128, 127, torch.int8, 8,
                                           torch.float32)
        return F.linear(x, b)


def save(folder, name, only=None):
    cls, make, sizes, axes, fixed, one = MODELS[name]
    torch.manual_seed(0)
    m = cls().eval()
    randomize(m)
    with torch.no_grad():
        runs = [make(*s) for s in sizes]
        if only is None:
            np.savez_compressed(os.path.join(folder, name + ".npz"), **record(m, runs))
        shapes = tuple({a: Dim.AUTO for a in x} for x in axes)
        captures = [("", runs[0], shapes)]
        captures += [("." + c, runs[sizes.index(at)] if at in sizes else make(*at), None)
                     for c, at in zip("abcd", fixed)]
        if one:
            captures += [(".one", make(*one), None), (".onesym", make(*one), shapes)]
        for suffix, args, dynamic in captures:
            if only is None or only == suffix:
                capture(os.path.join(folder, name + suffix + ".pt2"), m, args, dynamic)


def record(m, runs):
    found = {}
    for k, args in enumerate(runs):
        out = m(*[t.clone() for t in args])
        for i, t in enumerate(args):
            found["s%d.in.%d" % (k, i)] = t.numpy()
        for j, t in enumerate(out if isinstance(out, tuple) else (out,)):
            found["s%d.out.%d" % (k, j)] = t.numpy()
    return found


def capture(path, m, args, dynamic):
    try:
        torch.export.save(torch.export.export(m, args, dynamic_shapes=dynamic,
                                             strict=getattr(m, "strict", False)), path)
        strip(path)
    except Exception as e:
        why = str(e).strip().split("\n")[0][:150]
        print("%s: PyTorch does not capture it: %s" % (os.path.basename(path), why))


class Guarded(nn.Module):
    """A branch in Python: PyTorch keeps which sizes take it, and the other one is not in the capture."""

    def forward(self, x):
        if x.shape[0] % 2 == 0 and x.shape[0] > 3:
            return x * 2
        return x * 3


def save_guarded(folder):
    path = os.path.join(folder, "guarded.pt2")
    torch.export.save(torch.export.export(Guarded(), (torch.randn(8, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},)), path)
    strip(path)


class Lone(nn.Module):
    """One row is left as it is; PyTorch captures either way."""

    def forward(self, x):
        return x * 2 if x.shape[0] == 1 else x - x.mean(0)


def save_lone(folder):
    for name, rows in zip("abc", (7, 40, 1)):
        capture(os.path.join(folder, "lone.%s.pt2" % name), Lone(), (torch.randn(rows, 3),), None)


class Far(nn.Module):
    """Does otherwise at long sequences, whatever the batch is."""

    def forward(self, x):
        return x * 2 if x.shape[1] > 50 else x - x.mean(0)


class LonePair(nn.Module):
    """The same, where another input has twice as many."""

    def forward(self, x, y):
        return (x * 2 if x.shape[0] == 1 else x - x.mean(0)) + y.view(2, -1).sum(0)


def save_far(folder):
    for name, n in zip("abc", (7, 40, 1)):
        capture(os.path.join(folder, "lonepair.%s.pt2" % name), LonePair(), (torch.randn(n), torch.randn(2 * n)), None)
    for name, sizes in zip("abcd", ((2, 9), (3, 20), (4, 31), (1, 64))):
        capture(os.path.join(folder, "far.%s.pt2" % name), Far(), (torch.randn(*sizes),), None)


def save_custom_op(folder):
    """What examples/custom_op.py converts: operators of one's own, which examples/custom_op.txt defines."""
    example = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "custom_op.py")
    with open(example) as f:                            # its operators and its module
        text = f.read().split("# The same in Python")[0].replace("import pt2onnx", "").replace("import onnxruntime", "")
    found = {"__file__": example, "__name__": "custom_op"}
    exec(compile(text, example, "exec"), found)
    torch.manual_seed(0)
    m = found["Denoise"]().eval()
    with torch.no_grad():
        runs = [(torch.randn(b, n, 8),) for b, n in ((3, 8), (1, 4), (1, 7), (7, 31), (2, 501))]
        np.savez_compressed(os.path.join(folder, "custom_op.npz"), **record(m, runs[:4]))
    dynamic = ({0: Dim("batch"), 1: Dim("length", min=4)},)
    capture(os.path.join(folder, "custom_op.pt2"), m, runs[0], dynamic)
    capture(os.path.join(folder, "custom_op.a.pt2"), m, runs[3], None)
    capture(os.path.join(folder, "custom_op.b.pt2"), m, (torch.randn(110, 46, 8),), None)


def strip(path):
    """The same archive without the example inputs and this machine's folders, compressed: fixtures should be small."""
    import re
    import zipfile
    with zipfile.ZipFile(path) as z:
        entries = [(i.filename, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w") as z:
        for name, data in entries:
            if "/data/sample_inputs/" in name:
                continue
            if name.endswith(".json"):
                data = re.sub(rb'File \\"/[^"\\]*?/site-packages/', b'File \\\\"', data)
                data = re.sub(rb'File \\"/[^"\\]*/([^/"\\]+)\\"', rb'File \\"\1\\"', data)
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if name.endswith(".json") else zipfile.ZIP_STORED
            z.writestr(info, data)


if __name__ == "__main__":
    define_vision()
    for each in sys.argv[2:] or [*MODELS, "guarded", "custom_op"]:
        which, _, suffix = each.partition(".")
        if which == "custom_op":
            save_custom_op(sys.argv[1])
        elif which == "guarded":
            save_guarded(sys.argv[1])
            save_lone(sys.argv[1])
            save_far(sys.argv[1])
        else:
            save(sys.argv[1], which, "." + suffix if suffix else None)
