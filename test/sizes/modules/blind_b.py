"""Images, video, volumes, grids, detection heads, point clouds, graphs, spectrograms, stencils."""
import math
from dataclasses import dataclass, field
from functools import partial
from typing import List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from case import case


def conv_bn_relu(cin, cout, k=3, s=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, k, stride=s, padding=k // 2, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class UNetTwoDownsDiffPad(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.e1 = conv_bn_relu(3, width)
        self.e2 = conv_bn_relu(width, width * 2)
        self.mid = conv_bn_relu(width * 2, width * 4)
        self.t2 = nn.ConvTranspose2d(width * 4, width * 2, 2, stride=2)
        self.d2 = conv_bn_relu(width * 4, width * 2)
        self.t1 = nn.ConvTranspose2d(width * 2, width, 2, stride=2)
        self.d1 = conv_bn_relu(width * 2, width)
        self.seg = nn.Conv2d(width, 2, 1)

    @staticmethod
    def pad_like(small, ref):
        missing_h = ref.size(2) - small.size(2)
        missing_w = ref.size(3) - small.size(3)
        top, left = missing_h // 2, missing_w // 2
        return F.pad(small, (left, missing_w - left, top, missing_h - top))

    def forward(self, x):
        s1 = self.e1(x)
        s2 = self.e2(F.max_pool2d(s1, 2))
        z = self.mid(F.max_pool2d(s2, 2))
        z = self.d2(torch.cat([self.pad_like(self.t2(z), s2), s2], 1))
        z = self.d1(torch.cat([self.pad_like(self.t1(z), s1), s1], 1))
        return self.seg(z)


@case("x: f32[b, 3, h, w]")
class FCNScoreResizedToInput(nn.Module):
    def __init__(self, num_classes=5):
        super().__init__()
        self.backbone = nn.Sequential(conv_bn_relu(3, 8, s=2), conv_bn_relu(8, 8, s=2))
        self.classifier = nn.Conv2d(8, num_classes, kernel_size=1)

    def forward(self, x):
        input_shape = x.shape[-2:]
        score = self.classifier(self.backbone(x))
        return F.interpolate(score, size=input_shape, mode="bilinear", align_corners=False)


@case("x: f32[b, 4, h, w]")
class CoordChannelsConv(nn.Module):
    """Appends x, y in [-1, 1] and the radius."""

    def __init__(self, with_r=True):
        super().__init__()
        self.with_r = with_r
        self.conv = nn.Conv2d(4 + 2 + int(with_r), 6, 3, padding=1)

    def forward(self, x):
        b, _, h, w = x.shape
        yy = torch.linspace(-1, 1, h, dtype=x.dtype, device=x.device)
        xx = torch.linspace(-1, 1, w, dtype=x.dtype, device=x.device)
        yy = yy.view(1, 1, h, 1).expand(b, 1, h, w)
        xx = xx.view(1, 1, 1, w).expand(b, 1, h, w)
        feats = [x, xx, yy]
        if self.with_r:
            feats.append(torch.sqrt((xx - 0.5) ** 2 + (yy - 0.5) ** 2))
        return self.conv(torch.cat(feats, 1))


@case("img: f32[n, 3, h, w]", least={"h": 4, "w": 4})
class PatchTokensWithResizedPos(nn.Module):
    def __init__(self, dim=16, patch=4, trained_grid=6):
        super().__init__()
        self.patch = patch
        self.trained_grid = trained_grid
        self.embed = nn.Conv2d(3, dim, patch, stride=patch)
        self.summary = nn.Parameter(torch.randn(dim))
        self.summary_pos = nn.Parameter(torch.randn(dim))
        self.pos_map = nn.Parameter(torch.randn(1, dim, trained_grid, trained_grid))
        self.norm = nn.LayerNorm(dim)

    def pos_for(self, img):
        rows = img.shape[2] // self.patch
        cols = img.shape[3] // self.patch
        if rows == self.trained_grid and cols == self.trained_grid:
            return self.pos_map
        return F.interpolate(self.pos_map, size=(rows, cols), mode="bicubic", align_corners=False)

    def forward(self, img):
        grid = self.embed(img) + self.pos_for(img)
        tokens = grid.flatten(2).permute(0, 2, 1)
        first = (self.summary + self.summary_pos).expand(img.shape[0], 1, -1)
        return self.norm(torch.cat([first, tokens], dim=1))


@case("x: f32[b, 3, h, w]")
class PadToEightThenCropBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(3, 8, 8, stride=8)
        self.dec = nn.ConvTranspose2d(8, 3, 8, stride=8)

    def forward(self, x):
        h, w = x.shape[2], x.shape[3]
        pad_h = (8 - h % 8) % 8
        pad_w = (8 - w % 8) % 8
        if pad_h > 0 or pad_w > 0:
            x = F.pad(x, (0, pad_w, 0, pad_h), mode="constant", value=0.5)
        x = self.dec(torch.tanh(self.enc(x)))
        return x[:, :, :h, :w]


@case("x: f32[b, 8, h, w]")
class SqueezeExciteAreaMean(nn.Module):
    def __init__(self, c=8, r=4):
        super().__init__()
        self.fc1 = nn.Linear(c, c // r)
        self.fc2 = nn.Linear(c // r, c)

    def forward(self, x):
        b, c, h, w = x.size()
        s = x.view(b, c, -1).sum(dim=-1) / (h * w)
        s = torch.sigmoid(self.fc2(F.relu(self.fc1(s))))
        return x * s.view(b, c, 1, 1)


@case("lr: f32[b, 1, h, w]")
class SubPixelUpscaleWithSkip(nn.Module):
    upscale = 3

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.Tanh(),
            nn.Conv2d(8, self.upscale ** 2, 3, padding=1), nn.PixelShuffle(self.upscale),
        )

    def forward(self, lr):
        h, w = lr.shape[-2:]
        base = F.interpolate(lr, size=(h * self.upscale, w * self.upscale), mode="bilinear",
                             align_corners=True)
        return (base + self.body(lr)).clamp(-2, 2)


@case("x: f32[b, c, h, w]", least={"h": 2, "w": 2})
class TotalVariationPenalty(nn.Module):
    def __init__(self, weight=2.0):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        b, c, h, w = x.shape
        vertical = (x[:, :, 1:] - x[:, :, :h - 1]).square().sum() / (c * (h - 1) * w)
        horizontal = (x[..., 1:] - x[..., :w - 1]).square().sum() / (c * h * (w - 1))
        return self.weight * (vertical + horizontal) / b


@case("x: f32[b, 3, h, w]")
class SquareCenterCropThenConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        h, w = x.shape[-2:]
        side = min(h, w)
        top = int(round((h - side) / 2.0))
        left = int(round((w - side) / 2.0))
        return self.conv(x[..., top:top + side, left:left + side])


@case("x: f32[b, c, h, w]", least={"h": 2, "w": 2})
class BlurPoolDown(nn.Module):
    def __init__(self, stride=2):
        super().__init__()
        self.stride = stride
        a = torch.tensor([1., 2., 1.])
        filt = a[:, None] * a[None, :]
        self.register_buffer("filt", (filt / filt.sum())[None, None])

    def forward(self, x):
        c = x.shape[1]
        x = F.pad(x, (1, 1, 1, 1), mode="reflect")
        return F.conv2d(x, self.filt.repeat(c, 1, 1, 1), stride=self.stride, groups=c)


@case("x: f32[b, 4, h, w]")
class StridedAutoencoderOutputSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.down2 = nn.Conv2d(6, 8, 3, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1)
        self.up1 = nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1)

    def forward(self, x):
        y1 = F.relu(self.down1(x))
        y2 = F.relu(self.down2(y1))
        z = F.relu(self.up2(y2, output_size=y1.size()))
        return self.up1(z, output_size=x.size())


@case("pts: f32[b, n, 3]")
class PointNetGlobalConcat(nn.Module):
    def __init__(self, hidden=8, parts=5):
        super().__init__()
        self.mlp1 = nn.Conv1d(3, hidden, 1)
        self.mlp2 = nn.Conv1d(hidden, hidden * 2, 1)
        self.seg = nn.Conv1d(hidden * 3, parts, 1)

    def forward(self, pts):
        num_points = pts.size(1)
        centroid = pts.sum(1, keepdim=True) / num_points
        x = (pts - centroid).transpose(2, 1)
        local_feat = F.relu(self.mlp1(x))
        glob = torch.max(self.mlp2(local_feat), 2, keepdim=True)[0]
        glob = glob.repeat(1, 1, num_points)
        return F.log_softmax(self.seg(torch.cat([local_feat, glob], 1)), dim=1)


@case("x: f32[n, 8]", "edge_index: i64[2, e] < 6", least={"n": 6})
class GraphConvMeanAggregate(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin_self = nn.Linear(8, 8)
        self.lin_neigh = nn.Linear(8, 8, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        num_nodes = x.size(0)
        agg = torch.zeros(num_nodes, x.size(1), dtype=x.dtype).index_add(0, dst, x[src])
        deg = torch.zeros(num_nodes).index_add(0, dst, torch.ones(edge_index.size(1)))
        agg = agg / deg.clamp(min=1).unsqueeze(-1)
        h = F.relu(self.lin_self(x) + self.lin_neigh(agg))
        graph = h.sum(0) / num_nodes + edge_index.shape[1] / num_nodes
        return h, graph


@case("logits: f32[b, k, h, w]", "target: f32[b, k, h, w]")
class DiceWithSmoothing(nn.Module):
    def forward(self, logits, target):
        N = target.size(0)
        smooth = 1
        p = torch.sigmoid(logits).view(N, -1)
        t = (target > 0).float().view(N, -1)
        inter = p * t
        loss = 2 * (inter.sum(1) + smooth) / (p.sum(1) + t.sum(1) + smooth)
        loss = 1 - loss.sum() / N
        bce = F.binary_cross_entropy_with_logits(logits, (target > 0).float(), reduction="sum")
        return loss + bce / target[0].numel() / N


@case("heat: f32[b, k, h, w]", least={"h": 2, "w": 2})
class SpatialSoftArgmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.5))

    def forward(self, heat):
        n, k, h, w = heat.shape
        att = F.softmax(heat.reshape(n * k, h * w) / self.temperature, dim=-1).view(n, k, h, w)
        ys = torch.arange(h, dtype=heat.dtype) / (h - 1) * 2 - 1
        xs = torch.arange(w, dtype=heat.dtype) / (w - 1) * 2 - 1
        ex = (att.sum(2) * xs).sum(-1)
        ey = (att.sum(3) * ys).sum(-1)
        return torch.stack([ex, ey], -1)


@case("x: f32[b, 3, h, w]")
class FPNTopDownMerge(nn.Module):
    def __init__(self, channels=(4, 6, 8), out=8):
        super().__init__()
        self.stages = nn.ModuleList()
        cin = 3
        for c in channels:
            self.stages.append(conv_bn_relu(cin, c, s=2))
            cin = c
        self.lateral = nn.ModuleList([nn.Conv2d(c, out, 1) for c in channels])
        self.smooth = nn.ModuleList([nn.Conv2d(out, out, 3, padding=1) for _ in channels])

    def forward(self, x):
        feats = []
        for stage in self.stages:
            x = stage(x)
            feats.append(x)
        lat = [l(f) for l, f in zip(self.lateral, feats)]
        for i in range(len(lat) - 1, 0, -1):
            lat[i - 1] = lat[i - 1] + F.interpolate(lat[i], size=lat[i - 1].shape[2:],
                                                    mode="nearest")
        return tuple(s(f) for s, f in zip(self.smooth, lat))


@case("x: f32[b, 8, h, w]")
class PyramidPoolBinsHead(nn.Module):
    def __init__(self, dim=8, bins=(1, 2, 3)):
        super().__init__()
        self.bins = bins
        self.reduce = nn.ModuleList(nn.Conv2d(dim, 2, 1) for _ in bins)
        self.final = nn.Conv2d(dim + 2 * len(bins), 4, 3, padding=1)

    def forward(self, x):
        size = tuple(x.shape[-2:])
        pyramid = [F.interpolate(F.relu(conv(F.adaptive_avg_pool2d(x, n))), size,
                                 mode="bilinear", align_corners=True)
                   for n, conv in zip(self.bins, self.reduce)]
        return self.final(torch.cat([x] + pyramid, dim=1))


@dataclass
class AnchorConfig:
    stride: int = 4
    sizes: Tuple[float, ...] = (8.0, 16.0)
    ratios: List[float] = field(default_factory=lambda: [0.5, 1.0, 2.0])

    @property
    def per_cell(self):
        return len(self.sizes) * len(self.ratios)


@case("image: f32[b, 3, h, w]")
class DenseAnchorsFromConfig(nn.Module):
    def __init__(self, cfg: Optional[AnchorConfig] = None):
        super().__init__()
        self.cfg = cfg or AnchorConfig()
        base = []
        for s in self.cfg.sizes:
            for r in self.cfg.ratios:
                aw, ah = s * math.sqrt(1 / r), s * math.sqrt(r)
                base.append([-aw / 2, -ah / 2, aw / 2, ah / 2])
        self.register_buffer("cell", torch.tensor(base))
        self.stem = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.box = nn.Conv2d(4, 4 * self.cfg.per_cell, 3, stride=2, padding=1)

    def forward(self, image):
        img_h, img_w = image.shape[-2:]
        deltas = self.box(F.relu(self.stem(image)))
        gh, gw = deltas.shape[-2:]
        sy = torch.arange(gh, dtype=torch.float32) * self.cfg.stride
        sx = torch.arange(gw, dtype=torch.float32) * self.cfg.stride
        yy, xx = torch.meshgrid(sy, sx, indexing="ij")
        shifts = torch.stack([xx, yy, xx, yy], -1).reshape(-1, 1, 4)
        anchors = (shifts + self.cell.view(1, -1, 4)).reshape(-1, 4)
        d = deltas.view(image.size(0), self.cfg.per_cell, 4, gh, gw)
        d = d.permute(0, 3, 4, 1, 2).reshape(image.size(0), -1, 4)
        boxes = anchors + d
        x = boxes[..., 0::2].clamp(min=0, max=img_w)
        y = boxes[..., 1::2].clamp(min=0, max=img_h)
        return torch.stack((x, y), dim=-1).flatten(-2)


def to_windows(x, side):
    """[b, rows*side, cols*side, c] -> [b, rows*cols, side*side, c]"""
    b, h, w, c = x.shape
    rows, cols = h // side, w // side
    x = x.reshape(b, rows, side, cols, side, c).transpose(2, 3)
    return x.reshape(b, rows * cols, side * side, c)


def from_windows(win, side, h, w):
    b, c = win.shape[0], win.shape[-1]
    x = win.reshape(b, h // side, w // side, side, side, c).transpose(2, 3)
    return x.reshape(b, h, w, c)


@case("x: f32[b, h, w, 8]")
class ShiftedWindowBlock(nn.Module):
    def __init__(self, dim=8, heads=2, side=4):
        super().__init__()
        self.side, self.shift, self.heads = side, side // 2, heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, dim * 3)
        self.out = nn.Linear(dim, dim)

    def region(self, n):
        # 0: ordinary, 1: the last window before the seam, 2: what was rolled around
        pos = torch.arange(n)
        return (pos >= n - self.side).long() + (pos >= n - self.shift).long()

    def allowed(self, h, w):
        label = self.region(h)[:, None] * 3 + self.region(w)[None, :]
        label = to_windows(label.view(1, h, w, 1), self.side)[0, :, :, 0]
        return label[:, :, None] == label[:, None, :]

    def forward(self, x):
        h, w = x.shape[1], x.shape[2]
        y = self.norm(x)
        full_h = (h + self.side - 1) // self.side * self.side
        full_w = (w + self.side - 1) // self.side * self.side
        y = F.pad(y, (0, 0, 0, full_w - w, 0, full_h - h))
        y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        win = to_windows(y, self.side)
        b, nw, n, c = win.shape
        q, k, v = self.qkv(win).view(b, nw, n, 3, self.heads, c // self.heads).unbind(3)
        att = torch.einsum("bwihd,bwjhd->bwhij", q, k) / math.sqrt(c // self.heads)
        att = att.masked_fill(~self.allowed(full_h, full_w)[None, :, None], -1e4)
        o = torch.einsum("bwhij,bwjhd->bwihd", att.softmax(-1), v).reshape(b, nw, n, c)
        o = from_windows(self.out(o), self.side, full_h, full_w)
        o = torch.roll(o, (self.shift, self.shift), (1, 2))
        return x + o[:, :h, :w]


@case("p3: f32[b, 8, h, w]", "p4: f32[b, 8, h4, w4]")
class FcosLocationsAndBoxes(nn.Module):
    strides = [8, 16]

    def __init__(self):
        super().__init__()
        self.reg = nn.Conv2d(8, 4, 3, padding=1)
        self.ctr = nn.Conv2d(8, 1, 1)

    def centers(self, fmap: Tensor, stride: int) -> Tensor:
        rows, cols = fmap.shape[-2:]
        cx = torch.arange(stride // 2, cols * stride, stride).float().repeat(rows)
        cy = torch.arange(stride // 2, rows * stride, stride).float().repeat_interleave(cols)
        return torch.stack([cx, cy], dim=1)

    def forward(self, p3, p4):
        boxes, scores = [], []
        for stride, fmap in zip(self.strides, (p3, p4)):
            c = self.centers(fmap, stride)
            ltrb = (F.softplus(self.reg(fmap)) * stride).flatten(2).transpose(1, 2)
            boxes.append(torch.cat([c - ltrb[..., :2], c + ltrb[..., 2:]], -1))
            scores.append(self.ctr(fmap).flatten(1).sigmoid())
        return torch.cat(boxes, 1), torch.cat(scores, 1)


@case("img: f32[b, 3, h, w]", "flow: f32[b, 2, h, w]")
class BackwardWarpWithFlow(nn.Module):
    @staticmethod
    def normalize(p, size):
        return p * 2 / max(size - 1, 1) - 1

    def forward(self, img, flow):
        h, w = img.shape[-2:]
        px = torch.arange(w, device=img.device) + flow[:, 0]
        py = torch.arange(h, device=img.device)[:, None] + flow[:, 1]
        grid = torch.stack([self.normalize(px, w), self.normalize(py, h)], dim=3)
        warped = F.grid_sample(img, grid, mode="bilinear", align_corners=True)
        inside = (px >= 0) & (px <= w - 1) & (py >= 0) & (py <= h - 1)
        return warped, inside.float().sum((1, 2)) / (h * w)


@case("x: f32[b, c, h, w]", "angle: f32[b]")
class RotateKeepingAspect(nn.Module):
    def forward(self, x, angle):
        h, w = x.shape[-2:]
        aspect = w / h
        cos, sin = torch.cos(angle), torch.sin(angle)
        zero = torch.zeros_like(angle)
        theta = torch.stack([
            torch.stack([cos, -sin / aspect, zero], -1),
            torch.stack([sin * aspect, cos, zero], -1),
        ], 1)
        grid = F.affine_grid(theta, list(x.size()), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


@case("x: f32[b, 2, h, w]", least={"h": 4, "w": 4})
class OverlapPatchesFoldAverage(nn.Module):
    def __init__(self, k=4, s=2):
        super().__init__()
        self.k, self.s = k, s
        self.mlp = nn.Linear(2 * k * k, 2 * k * k)

    def forward(self, x):
        b, c, h, w = x.shape
        nh = (h - self.k) // self.s + 1
        nw = (w - self.k) // self.s + 1
        hh, ww = (nh - 1) * self.s + self.k, (nw - 1) * self.s + self.k
        x = x[:, :, :hh, :ww]
        cols = F.unfold(x, self.k, stride=self.s)
        cols = cols + self.mlp(cols.transpose(1, 2)).transpose(1, 2)
        num = F.fold(cols, (hh, ww), self.k, stride=self.s)
        den = F.fold(torch.ones_like(cols), (hh, ww), self.k, stride=self.s)
        return num / den


@case("x: f32[b, h, w, 8]", most={"h": 12, "w": 12})
class RelPosBiasSlicedTable(nn.Module):
    def __init__(self, dim=8, heads=2, max_side=12):
        super().__init__()
        self.heads = heads
        self.max_side = max_side
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.table = nn.Parameter(torch.randn(heads, 2 * max_side - 1, 2 * max_side - 1) * 0.3)

    def get_bias(self, h, w):
        m = self.max_side
        tab = self.table[:, m - h:m + h - 1, m - w:m + w - 1]
        ri = torch.arange(h)[:, None] - torch.arange(h)[None, :] + h - 1
        rj = torch.arange(w)[:, None] - torch.arange(w)[None, :] + w - 1
        idx = ri[:, None, :, None] * (2 * w - 1) + rj[None, :, None, :]
        return tab.flatten(1)[:, idx.reshape(-1)].view(self.heads, h * w, h * w)

    def forward(self, x):
        b, h, w, d = x.shape
        n = h * w
        x = x.reshape(b, n, d)
        split = lambda t: t.reshape(b, n, self.heads, -1).transpose(1, 2)
        q = split(self.q(x))
        k, v = map(split, self.kv(x).chunk(2, -1))
        att = q @ k.mT / math.sqrt(d // self.heads) + self.get_bias(h, w)
        return (att.softmax(-1) @ v).transpose(1, 2).reshape(b, h, w, d)


@case("clip: f32[b, 3, t, h, w]", least={"t": 2, "h": 4, "w": 4}, most={"t": 32})
class TubeletVideoEmbedding(nn.Module):
    def __init__(self, dim=8, tubelet=(2, 4, 4), max_frames=16):
        super().__init__()
        self.tubelet = tubelet
        self.proj = nn.Conv3d(3, dim, tubelet, stride=tubelet)
        self.time_pos = nn.Parameter(torch.randn(1, max_frames, 1, dim))
        self.space_pos = nn.Parameter(torch.randn(1, dim, 5, 5))

    def forward(self, clip):
        B, _, T, H, W = clip.shape
        t, h, w = (s // p for s, p in zip((T, H, W), self.tubelet))
        x = self.proj(clip).flatten(3).permute(0, 2, 3, 1)
        sp = F.interpolate(self.space_pos, size=(h, w), mode="bilinear", align_corners=False)
        sp = sp.flatten(2).transpose(1, 2).unsqueeze(1)
        x = x + self.time_pos[:, :t] + sp
        x = x.reshape(B, t * h * w, -1)
        return x, x.sum(1) / math.sqrt(t * h * w)


@case("x: f32[n*t, c, h, w]", "stamps: f32[t]", least={"c": 2})
class TemporalShiftByFraction(nn.Module):
    """Clips lie one after the other on the batch axis; their length is that of the stamps."""

    def __init__(self, part=4):
        super().__init__()
        self.part = part

    def forward(self, x, stamps):
        length = stamps.numel()
        clips = x.unflatten(0, (x.size(0) // length, length))
        k = max(clips.size(2) // self.part, 1)
        fwd, bwd, stay = clips.split([k, k, clips.size(2) - 2 * k], dim=2)
        fwd = F.pad(fwd[:, 1:], (0, 0, 0, 0, 0, 0, 0, 1))
        bwd = F.pad(bwd[:, :length - 1], (0, 0, 0, 0, 0, 0, 1, 0))
        y = torch.cat([fwd, bwd, stay], dim=2)
        y = y + (stamps / length).view(1, -1, 1, 1, 1)
        return y.flatten(0, 1)


@case("vol: f32[b, 1, d, h, w]", least={"d": 2, "h": 2, "w": 2}, most={"d": 24, "h": 24, "w": 24})
class VolumeDecoderTrilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv3d(1, 4, 3, padding=1)
        self.bottleneck = nn.Conv3d(4, 6, 3, padding=1)
        self.dec = nn.Conv3d(10, 2, 1)
        self.norm = nn.InstanceNorm3d(4, affine=True)

    def forward(self, vol):
        e = F.leaky_relu(self.norm(self.enc(vol)), 0.1)
        z = F.leaky_relu(self.bottleneck(F.avg_pool3d(e, 2)), 0.1)
        z = F.interpolate(z, size=e.shape[2:], mode="trilinear", align_corners=False)
        out = self.dec(torch.cat((e, z), 1))
        n_voxels = torch.prod(torch.tensor(vol.shape[2:]))
        voxel_mean = out.sum(dim=(2, 3, 4)) / n_voxels
        return out, voxel_mean


@case("u: f32[b, ny, nx]", least={"ny": 3, "nx": 3})
class HeatEquationSteps(nn.Module):
    def __init__(self, alpha=0.1, steps=4):
        super().__init__()
        self.alpha = alpha
        self.steps = steps

    def forward(self, u):
        ny, nx = u.shape[1:]
        dx, dy = 1.0 / (nx - 1), 1.0 / (ny - 1)
        dt = 0.2 * min(dx, dy) ** 2 / self.alpha
        for _ in range(self.steps):
            core = u[:, 1:-1, 1:-1]
            uxx = (u[:, 1:-1, 2:] - 2 * core + u[:, 1:-1, :-2]) / dx ** 2
            uyy = (u[:, 2:, 1:-1] - 2 * core + u[:, :-2, 1:-1]) / dy ** 2
            u = F.pad((core + dt * self.alpha * (uxx + uyy)).unsqueeze(1), (1, 1, 1, 1),
                      mode="replicate").squeeze(1)
        return u


@case("v: f32[b, 2, ny, nx]")
class PeriodicCurlAndDivergence(nn.Module):
    def __init__(self, Lx=2 * np.pi, Ly=2 * np.pi):
        super().__init__()
        self.Lx, self.Ly = Lx, Ly

    def ddx(self, f):
        h = self.Lx / f.shape[-1]
        return (torch.roll(f, -1, -1) - torch.roll(f, 1, -1)) / (2 * h)

    def ddy(self, f):
        h = self.Ly / f.shape[-2]
        return (torch.roll(f, -1, -2) - torch.roll(f, 1, -2)) / (2 * h)

    def forward(self, v):
        vx, vy = v.unbind(1)
        curl = self.ddx(vy) - self.ddy(vx)
        div = self.ddx(vx) + self.ddy(vy)
        cell_area = (self.Lx / v.shape[-1]) * (self.Ly / v.shape[-2])
        enstrophy = 0.5 * curl.square().sum((-2, -1)) * cell_area
        return curl, div, enstrophy


@case("x: f32[b, c, h, w]")
class SoftHistogramFixedBins(nn.Module):
    def __init__(self, bins=10, lo=-3.0, hi=3.0, sigma=3.0):
        super().__init__()
        self.delta = (hi - lo) / bins
        self.sigma = sigma
        self.register_buffer("centers", lo + self.delta * (torch.arange(bins).float() + 0.5))

    def forward(self, x):
        n_pixels = int(np.prod(x.shape[2:]))
        v = x.flatten(2).unsqueeze(2) - self.centers[:, None]
        v = torch.sigmoid(self.sigma * (v + self.delta / 2)) - torch.sigmoid(
            self.sigma * (v - self.delta / 2))
        hist = v.sum(-1) / n_pixels
        cdf = hist.cumsum(-1)
        return hist, cdf


@case("x: f32[b, c, h, w]")
class IntegralImageLocalContrast(nn.Module):
    def __init__(self, eps=1e-2):
        super().__init__()
        self.eps = eps

    def box_sum(self, x, ry, rx):
        h, w = x.shape[-2:]
        ii = F.pad(x, (rx + 1, rx, ry + 1, ry)).cumsum(-1).cumsum(-2)
        ky, kx = 2 * ry + 1, 2 * rx + 1
        return (ii[..., ky:ky + h, kx:kx + w] - ii[..., :h, kx:kx + w]
                - ii[..., ky:ky + h, :w] + ii[..., :h, :w])

    def forward(self, x):
        h, w = x.shape[-2:]
        # the window grows with the image
        ry, rx = max(1, h // 8), max(1, w // 8)
        count = self.box_sum(torch.ones(1, 1, h, w), ry, rx)
        mean = self.box_sum(x, ry, rx) / count
        var = self.box_sum(x * x, ry, rx) / count - mean ** 2
        return (x - mean) / torch.sqrt(var.clamp(min=0) + self.eps)


@case("heatmaps: f32[b, k, h, w]")
class HeatmapPeaksToNormalizedXY(nn.Module):
    def forward(self, heatmaps):
        b, k, h, w = heatmaps.shape
        flat = heatmaps.reshape(b, k, -1)
        maxvals, idx = flat.max(dim=2)
        px = (idx % w).float()
        py = torch.div(idx, w, rounding_mode="floor").float()
        whwh = torch.tensor([w, h], dtype=torch.float32)
        preds = torch.stack((px, py), dim=-1)
        preds = (preds + 0.5) / whwh
        preds = torch.where(maxvals.unsqueeze(-1) > 0, preds, torch.zeros_like(preds))
        return preds, maxvals


class SamePadConv(nn.Conv2d):
    def calc_same_pad(self, i, k, s):
        return max((math.ceil(i / s) - 1) * s + k - i, 0)

    def forward(self, x):
        ih, iw = x.size()[-2:]
        pad_h = self.calc_same_pad(ih, self.kernel_size[0], self.stride[0])
        pad_w = self.calc_same_pad(iw, self.kernel_size[1], self.stride[1])
        x = F.pad(x, [pad_w // 2, pad_w - pad_w // 2, pad_h // 2, pad_h - pad_h // 2])
        return F.conv2d(x, self.weight, self.bias, self.stride)


@case("x: f32[b, 3, h, w]")
class SameConvTensorflowStem(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = SamePadConv(3, 8, 3, stride=2)
        self.block = SamePadConv(8, 8, 5, stride=3)
        self.bn = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.block(F.silu(self.bn(self.stem(x))))


@case("image: f32[b, 3, h, w]")
class LongestSideLetterbox(nn.Module):
    def __init__(self, target=24, fill=114 / 255):
        super().__init__()
        self.target = target
        self.fill = fill
        self.conv = nn.Conv2d(3, 2, 4, stride=4)

    def new_size(self, height, width):
        ratio = self.target / max(height, width)
        return [max(1, int(side * ratio + 0.5)) for side in (height, width)]

    def forward(self, image):
        nh, nw = self.new_size(*image.shape[-2:])
        x = F.interpolate(image, (nh, nw), mode="bilinear", align_corners=False)
        top, bottom = divmod(self.target - nh, 2)
        left, right = divmod(self.target - nw, 2)
        x = F.pad(x, (left, left + right, top, top + bottom), value=self.fill)
        return x, self.conv(x)


@case("x: f32[b, 2, h, w]")
class TiledInferenceCeil(nn.Module):
    def __init__(self, tile=5):
        super().__init__()
        self.tile = tile
        self.net = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.GELU(),
                                 nn.Conv2d(4, 1, 3, padding=1))

    def forward(self, x):
        b, c, h, w = x.shape
        t = self.tile
        rows = -(-h // t)
        cols = -(-w // t)
        x = F.pad(x, (0, cols * t - w, 0, rows * t - h))
        x = x.reshape(b, c, rows, t, cols, t).permute(0, 2, 4, 1, 3, 5)
        y = self.net(x.reshape(b * rows * cols, c, t, t))
        y = y - y.mean(dim=(2, 3), keepdim=True)
        y = y.reshape(b, rows, cols, 1, t, t).permute(0, 3, 1, 4, 2, 5)
        y = y.reshape(b, 1, rows * t, cols * t)
        return y[..., :h, :w]


def quarter_turn_pairs(x):
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([-odd, even], -1).flatten(-2)


@case("x: f32[b, h, w, 16]", most={"h": 24, "w": 24})
class AxialRotaryImageAttention(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        scales = torch.linspace(1.0, 5.0, self.hd // 4)
        self.register_buffer("scales", scales, persistent=False)

    def sincos(self, h, w):
        sy = torch.linspace(-1.0, 1.0, steps=h).unsqueeze(-1) * self.scales * math.pi
        sx = torch.linspace(-1.0, 1.0, steps=w).unsqueeze(-1) * self.scales * math.pi
        y = sy[:, None, :].expand(h, w, -1)
        x = sx[None, :, :].expand(h, w, -1)
        ang = torch.cat((y, x), -1).reshape(h * w, -1)
        ang = ang.repeat_interleave(2, dim=-1)
        return ang.sin(), ang.cos()

    def forward(self, x):
        b, h, w, d = x.shape
        q, k, v = self.to_qkv(x.reshape(b, h * w, d)).chunk(3, dim=-1)
        q, k, v = (t.reshape(b, h * w, self.heads, self.hd).transpose(1, 2) for t in (q, k, v))
        sin, cos = self.sincos(h, w)
        q = q * cos + quarter_turn_pairs(q) * sin
        k = k * cos + quarter_turn_pairs(k) * sin
        # longer sequences get a sharper softmax
        q = q * (math.log2(h * w + 1) / 6)
        o = F.scaled_dot_product_attention(q, k, v)
        return o.transpose(1, 2).reshape(b, h, w, d)


@case("depth: f32[b, 1, h, w]")
class DepthBackProjection(nn.Module):
    """Pinhole with 60 degrees of horizontal field of view, principal point at the centre."""

    def __init__(self, hfov=60.0):
        super().__init__()
        self.hfov = math.radians(hfov)

    def forward(self, depth):
        b, _, h, w = depth.shape
        f = (w / 2) / math.tan(self.hfov / 2)
        cx, cy = (w - 1) / 2, (h - 1) / 2
        K = torch.tensor([[f, 0.0, cx], [0.0, f, cy], [0.0, 0.0, 1.0]])
        v, u = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        pix = torch.stack([u, v, torch.ones_like(u)], 0).float().reshape(3, -1)
        rays = torch.linalg.inv(K) @ pix
        xyz = rays.unsqueeze(0) * depth.abs().reshape(b, 1, -1)
        return xyz.reshape(b, 3, h, w)


@case("x: f32[b, h, w]")
class DctLowPassByMatrix(nn.Module):
    def __init__(self, keep=0.5):
        super().__init__()
        self.keep = keep

    def dct_mat(self, n):
        k = torch.arange(n, dtype=torch.float32)[:, None]
        i = torch.arange(n, dtype=torch.float32)[None, :]
        m = torch.cos(math.pi * k * (2 * i + 1) / (2 * n)) * math.sqrt(2.0 / n)
        first = torch.full((1, n), 1.0 / math.sqrt(n))
        return torch.cat([first, m[1:]], 0)

    def forward(self, x):
        h, w = x.shape[-2:]
        A, B = self.dct_mat(h), self.dct_mat(w)
        c = A @ x @ B.T
        kh = math.ceil(self.keep * h)
        kw = math.ceil(self.keep * w)
        low = A[:kh].T @ c[:, :kh, :kw] @ B[:kw]
        return low, x - low


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2}, most={"h": 64, "w": 64})
class LaplacianPyramidEnergy(nn.Module):
    def __init__(self, max_levels=4):
        super().__init__()
        self.max_levels = max_levels

    def n_levels(self, h, w):
        return min(self.max_levels, int(math.floor(math.log2(min(h, w)))))

    def forward(self, x):
        h, w = x.shape[-2], x.shape[-1]
        energies = []
        recon = torch.zeros_like(x)
        for level in range(self.n_levels(h, w)):
            small = F.avg_pool2d(x, 2)
            up = F.interpolate(small, size=(x.shape[-2], x.shape[-1]), mode="bilinear",
                               align_corners=False)
            band = x - up
            energies.append(band.pow(2).mean((1, 2, 3)))
            recon = recon + F.interpolate(band, size=(h, w)) / 2 ** level
            x = small
        return recon, sum(energies) / len(energies)


@case("x: f32[b, 3, h, w]")
class LandscapeOnlyBackbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, (1, 3), padding=(0, 1))
        self.row = nn.Linear(4, 4)

    def forward(self, x):
        h, w = x.shape[2:]
        portrait = h > w
        if portrait:
            x = x.transpose(2, 3)
        y = self.conv(x)
        y = self.row(y.mean(dim=2).transpose(1, 2)).transpose(1, 2).unsqueeze(2) + y
        if portrait:
            y = y.transpose(2, 3)
        return y


@case("tokens: f32[b, s*s, 8]", most={"s": 20})
class TokensToSquareGridConv(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.dw = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens):
        B, L, C = tokens.shape
        H = W = math.isqrt(L)
        assert H * W == L, "input feature has wrong size"
        x = self.norm(tokens).transpose(1, 2).reshape(B, C, H, W)
        x = self.dw(x) + x
        x = F.max_pool2d(F.pad(x, (0, W % 2, 0, H % 2)), 2)
        return x.flatten(2).transpose(1, 2) / np.sqrt(C)


@case("x: f32[b, c, h, w]")
class SnakeScanRows(nn.Module):
    """Boustrophedon order: every second row is read from right to left."""

    def __init__(self):
        super().__init__()
        self.decay = 0.9

    def forward(self, x):
        b, c, h, w = x.shape
        idx = torch.arange(h * w).view(h, w)
        odd = (torch.arange(h) % 2).bool().view(h, 1)
        idx = torch.where(odd, idx.flip(1), idx).reshape(-1)
        seq = x.reshape(b, c, h * w).index_select(2, idx)
        n = seq.shape[-1]
        run = seq.cumsum(-1) / torch.arange(1, n + 1)
        back = torch.empty_like(run)
        back[:, :, idx] = run
        return back.view(b, c, h, w)


@case("xyz: f32[b, n, 3]", most={"n": 128})
class KnnEdgeFeatures(nn.Module):
    def __init__(self, k=8):
        super().__init__()
        self.k = k
        self.mlp = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 8))

    def forward(self, xyz):
        b, n, _ = xyz.shape
        k = min(self.k, n)
        dist = (xyz.unsqueeze(1) - xyz.unsqueeze(2)).pow(2).sum(-1)
        idx = dist.topk(k, dim=-1, largest=False).indices
        offset = torch.arange(b).view(-1, 1, 1) * n
        nbrs = xyz.reshape(b * n, 3)[(idx + offset).view(-1)].view(b, n, k, 3)
        center = xyz.unsqueeze(2).expand(-1, -1, k, -1)
        feat = self.mlp(torch.cat([nbrs - center, center], -1))
        return feat.amax(2), feat.sum(2) / k


@case("pts: f32[b, n, 3]", "feat: f32[b, n, 4]")
class VoxelGridAverager(nn.Module):
    def __init__(self, resolution=4):
        super().__init__()
        self.r = resolution
        self.conv = nn.Conv3d(5, 4, 3, padding=1)

    def forward(self, pts, feat):
        B, N, C = feat.shape
        r3 = self.r ** 3
        coords = ((pts.clamp(-2, 2) + 2) / 4 * (self.r - 1)).round().long()
        flat = (coords[..., 0] * self.r + coords[..., 1]) * self.r + coords[..., 2]
        flat = flat + torch.arange(B)[:, None] * r3
        ones = torch.ones(B * N)
        count = torch.zeros(B * r3).scatter_add(0, flat.view(-1), ones)
        acc = torch.zeros(B * r3, C)
        acc = acc.scatter_add(0, flat.view(-1, 1).expand(-1, C), feat.reshape(-1, C))
        mean = acc / count.clamp(min=1.0).unsqueeze(1)
        grid = torch.cat([mean, (count / N).unsqueeze(1)], 1)
        grid = grid.view(B, self.r, self.r, self.r, C + 1).permute(0, 4, 1, 2, 3)
        return self.conv(grid)


def segment_softmax(scores, index, num_nodes):
    mx = torch.full((num_nodes, scores.size(1)), -1e9)
    idx = index.view(-1, 1).expand_as(scores)
    mx = mx.scatter_reduce(0, idx, scores, reduce="amax", include_self=True)
    ex = (scores - mx[index]).exp()
    den = torch.zeros(num_nodes, scores.size(1)).scatter_add(0, idx, ex)
    return ex / (den[index] + 1e-16)


@case("x: f32[n, 6]", "src: i64[e] < 5", "dst: i64[e] < 5", "w: f32[e]", least={"n": 5})
class EdgeListGraphAttention(nn.Module):
    def __init__(self, in_f=6, out_f=4, heads=2):
        super().__init__()
        self.heads, self.out_f = heads, out_f
        self.lin = nn.Linear(in_f, heads * out_f, bias=False)
        self.a_src = nn.Parameter(torch.randn(heads, out_f))
        self.a_dst = nn.Parameter(torch.randn(heads, out_f))

    def forward(self, x, src, dst, w):
        N = x.shape[0]
        loops = torch.arange(N)
        src, dst = torch.cat([src, loops]), torch.cat([dst, loops])
        w = torch.cat([w, torch.ones(N)])
        h = self.lin(x).view(N, self.heads, self.out_f)
        e = (h * self.a_src).sum(-1)[src] + (h * self.a_dst).sum(-1)[dst] + w[:, None]
        alpha = segment_softmax(F.leaky_relu(e, 0.2), dst, N)
        msg = (alpha.unsqueeze(-1) * h[src]).view(-1, self.heads * self.out_f)
        out = torch.zeros(N, self.heads * self.out_f).index_add_(0, dst, msg)
        density = w.shape[0] / (N * N)
        return F.elu(out) * density


@case("x: f32[b, n, 4]", "adj: f32[b, n, n]", most={"n": 64})
class SymmetricNormalizedAdjacency(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(4, 8)

    @property
    def order(self):
        return 3

    def forward(self, x, adj):
        n = adj.size(-1)
        a = torch.sigmoid(adj)
        a = (a + a.transpose(1, 2)) / 2 + torch.eye(n)
        d = a.sum(-1).rsqrt()
        lap = torch.eye(n).expand_as(a) - d.unsqueeze(-1) * a * d.unsqueeze(-2)
        lap = 2.0 * lap / (1 + 1 / n) - torch.eye(n)
        t0, t1 = x, lap @ x
        out = t0 + t1
        for _ in range(2, self.order + 1):
            t0, t1 = t1, 2 * lap @ t1 - t0
            out = out + t1
        return self.w(out)


@case("video: f32[b, 3, t, h, w]", least={"t": 4}, most={"h": 20, "w": 20})
class SlowFastFrameSubsample(nn.Module):
    def __init__(self, alpha=4):
        super().__init__()
        self.alpha = alpha
        self.slow = nn.Conv3d(3, 6, (1, 3, 3), padding=(0, 1, 1))
        self.fast = nn.Conv3d(3, 2, (3, 1, 1), padding=(1, 0, 0))

    def forward(self, video):
        T = video.shape[2]
        index = torch.linspace(0, T - 1, T // self.alpha).long()
        slow = self.slow(torch.index_select(video, 2, index))
        fast = self.fast(video)
        n_slow = slow.shape[2]
        ratio = T // n_slow
        fast = fast[:, :, :n_slow * ratio]
        fast = fast.reshape(fast.size(0), 2, n_slow, ratio, *fast.shape[3:]).mean(3)
        return torch.cat([slow, fast], 1)


@case("left: f32[b, 4, h, w]", "right: f32[b, 4, h, w]", least={"w": 6})
class StereoCostVolumeSoftDisparity(nn.Module):
    def __init__(self, max_disp=6):
        super().__init__()
        self.max_disp = max_disp
        self.feat = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, left, right):
        left, right = self.feat(left), self.feat(right)
        B, C, H, W = left.shape
        vol = left.new_zeros(B, self.max_disp, H, W)
        for d in range(self.max_disp):
            if d == 0:
                vol[:, d] = (left * right).sum(1) / C
            else:
                vol[:, d, :, d:] = (left[..., d:] * right[..., :W - d]).sum(1) / C
        prob = vol.softmax(1)
        disp = (prob * torch.arange(self.max_disp).view(1, -1, 1, 1)).sum(1)
        return disp / W


@case("field: f32[b, v, lat, lon]")
class EquirectAreaWeightedError(nn.Module):
    def forward(self, field):
        nlat, nlon = field.shape[-2:]
        lat = torch.linspace(90 - 90 / nlat, -90 + 90 / nlat, nlat)
        weights = torch.cos(torch.deg2rad(lat))
        weights = weights / weights.mean()
        anomalies = field - (field * weights[:, None]).sum((-2, -1), keepdim=True) / (nlat * nlon)
        rmse = torch.sqrt((anomalies ** 2 * weights.view(-1, 1)).mean(dim=(-2, -1)))
        lon = torch.arange(nlon) * (360.0 / nlon)
        wave1 = (field * torch.cos(torch.deg2rad(lon))).sum(-1) * 2 / nlon
        return rmse, wave1


@case("z: f32[b, 2, h, w]")
class CheckerboardCouplingLayer(nn.Module):
    def __init__(self, reverse_mask=False):
        super().__init__()
        self.reverse_mask = reverse_mask
        self.st = nn.Conv2d(2, 4, 3, padding=1)

    def mask_like(self, z):
        h, w = z.size(2), z.size(3)
        board = [[(i + j) % 2 for j in range(2)] for i in range(2)]
        m = torch.tensor(board, dtype=z.dtype).repeat((h + 1) // 2, (w + 1) // 2)[:h, :w]
        return 1 - m if self.reverse_mask else m

    def forward(self, z):
        m = self.mask_like(z)
        s, t = self.st(z * m).chunk(2, dim=1)
        s = torch.tanh(s) * (1 - m)
        t = t * (1 - m)
        z = z * s.exp() + t
        dims = z.shape[1] * z.shape[2] * z.shape[3]
        return z, s.sum((1, 2, 3)) / (math.log(2) * dims)


@case("wav: f32[b, n]", least={"n": 9}, most={"n": 2000})
class StftMagnitudeFromFrames(nn.Module):
    def __init__(self, n_fft=16, hop=4):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        k = torch.arange(n_fft // 2 + 1).float()[:, None]
        t = torch.arange(n_fft).float()[None]
        win = torch.hann_window(n_fft)
        self.register_buffer("cos", torch.cos(2 * math.pi * k * t / n_fft) * win)
        self.register_buffer("sin", torch.sin(2 * math.pi * k * t / n_fft) * win)
        self.to_db = partial(torch.clamp, min=1e-5)

    def forward(self, wav):
        n = wav.shape[-1]
        pad = self.n_fft // 2
        x = F.pad(wav.unsqueeze(1), (pad, pad), mode="reflect").squeeze(1)
        frames = x.unfold(-1, self.n_fft, self.hop)
        mag = ((frames @ self.cos.T) ** 2 + (frames @ self.sin.T) ** 2).transpose(1, 2)
        db = 10 * torch.log10(self.to_db(mag))
        n_frames = 1 + n // self.hop
        mean = db.sum(-1, keepdim=True) / n_frames
        return db - mean


@case("spec: f32[b, 1, freq, time]", least={"freq": 3})
class SubBandSplitEncoder(nn.Module):
    """Low, middle and high thirds of the spectrum, brought to one size."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(1, 4, 3, padding=1) for _ in range(3))
        self.head = nn.Conv2d(12, 3, 1)

    @staticmethod
    def edges(n_freq):
        return [0] + [round(n_freq * frac) for frac in (0.25, 0.6)] + [n_freq]

    def forward(self, spec):
        n_freq, n_time = spec.shape[2], spec.shape[3]
        e = self.edges(n_freq)
        target = (max(n_freq // 4, 1), max(n_time // 2, 1))
        bands = []
        for conv, lo, hi in zip(self.convs, e[:-1], e[1:]):
            y = F.relu(conv(spec[:, :, lo:hi]))
            y = y * (hi - lo) / n_freq
            bands.append(F.interpolate(y, size=target, mode="bilinear", align_corners=False))
        return self.head(torch.cat(bands, 1))


@case("x: f32[b, 4, h, w]")
class SpatialPyramidMaxCeil(nn.Module):
    def __init__(self, levels=(1, 2, 4)):
        super().__init__()
        self.levels = levels
        self.fc = nn.Linear(4 * sum(n * n for n in levels), 6)

    def pool_level(self, x, n):
        b, c, h, w = x.shape
        kh, kw = int(np.ceil(h / n)), int(np.ceil(w / n))
        extra_h, extra_w = kh * n - h, kw * n - w
        top, left = extra_h // 2, extra_w // 2
        x = F.pad(x, (left, extra_w - left, top, extra_h - top), value=-5.0)
        x = x.view(b, c, n, kh, n, kw)
        return x.amax(dim=5).amax(dim=3).flatten(1)

    def forward(self, x):
        return self.fc(torch.cat([self.pool_level(x, n) for n in self.levels], dim=1))


@case("x: f32[b, n, 8]", "noise: f32[b, n]", least={"n": 4})
class MaskedPatchKeepQuarter(nn.Module):
    def __init__(self, dim=8, keep=0.25):
        super().__init__()
        self.keep = keep
        self.enc = nn.Linear(dim, dim)
        self.blank = nn.Parameter(torch.randn(dim))

    def forward(self, x, noise):
        n = x.shape[1]
        n_keep = int(n * self.keep)
        picked = noise.topk(n_keep, dim=1, largest=False)[1]
        where = picked.unsqueeze(-1).expand(-1, -1, x.shape[2])
        seen = self.enc(x.gather(1, where))
        full = self.blank.expand_as(x).scatter(1, where, seen)
        hidden = torch.ones_like(noise).scatter(1, picked, 0.0)
        err = (full - x).pow(2).mean(2) * hidden
        return full, err.sum(1) / (n - n_keep)


@case("x: f32[b, 4*g, h, w]", most={"g": 12})
class ShuffleThenGroupNormAnyWidth(nn.Module):
    def __init__(self, groups=4, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps

    def channel_shuffle(self, x):
        per_group = x.size(1) // self.groups
        return x.unflatten(1, (self.groups, per_group)).transpose(1, 2).flatten(1, 2)

    def forward(self, x):
        x = self.channel_shuffle(x)
        b, c, h, w = x.shape
        n = c // self.groups * h * w
        g = x.view(b, self.groups, n)
        mu = g.sum(-1, keepdim=True) / n
        var = (g - mu).pow(2).sum(-1, keepdim=True) / n
        g = (g - mu) / torch.sqrt(var + self.eps)
        gain = torch.arange(1, c + 1).view(1, c, 1, 1) / c
        return g.view(b, c, h, w) * gain


@case("raw: f32[b, 1, h, w]", least={"h": 2, "w": 2})
class BayerPackAndUpsample(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(4, 12, 3, padding=1)

    def pack(self, raw):
        H, W = raw.shape[2] // 2 * 2, raw.shape[3] // 2 * 2
        im = raw[:, 0]
        return torch.stack((im[:, 0:H:2, 0:W:2], im[:, 0:H:2, 1:W:2],
                            im[:, 1:H:2, 1:W:2], im[:, 1:H:2, 0:W:2]), dim=1)

    def forward(self, raw):
        rgb = F.pixel_shuffle(self.net(self.pack(raw)), 2)
        dh, dw = raw.shape[2] - rgb.shape[2], raw.shape[3] - rgb.shape[3]
        rgb = F.pad(rgb, (0, dw, 0, dh), mode="replicate")
        return rgb, rgb.sum((2, 3)) / (raw.shape[2] * raw.shape[3])


@case("x: f32[b, 8, h, w]")
class RowAndColumnGates(nn.Module):
    def __init__(self, c=8, mid=4):
        super().__init__()
        self.rows = nn.AdaptiveAvgPool2d((None, 1))
        self.cols = nn.AdaptiveAvgPool2d((1, None))
        self.squeeze = nn.Conv1d(c, mid, 3, padding=1)
        self.gates = nn.ModuleDict({"h": nn.Conv1d(mid, c, 1), "w": nn.Conv1d(mid, c, 1)})

    def forward(self, x):
        h, w = x.shape[2:]
        strip = torch.cat([self.rows(x).squeeze(3), self.cols(x).squeeze(2)], dim=-1)
        strip = F.hardswish(self.squeeze(strip)) * (h + w) ** -0.5
        gh, gw = strip.split((h, w), dim=-1)
        gh = torch.sigmoid(self.gates["h"](gh))[..., None]
        gw = torch.sigmoid(self.gates["w"](gw))[:, :, None]
        return x * gh * gw


@case("x: f32[b, 3, h, w]")
class GaussianVignette(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        cy, cx = h // 2, w // 2
        diag = torch.sqrt(torch.tensor(float(h ** 2 + w ** 2)))
        sigma = diag * 0.35
        y = (torch.arange(h) - cy).abs().float()
        xx = (torch.arange(w) - cx).abs().float()
        r2 = y[:, None].pow(2) + xx[None, :].pow(2)
        gain = torch.exp(-r2 / (2 * sigma ** 2))
        off = abs(h - w) / (h + w)
        return x * gain + off


@case("x: f32[b, 3, h, w]", "y: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class MultiScaleSsimScore(nn.Module):
    def __init__(self, win=7):
        super().__init__()
        self.win = win
        self.C1, self.C2 = 0.01 ** 2, 0.03 ** 2
        self.register_buffer("msw", torch.tensor([0.0448, 0.2856, 0.3001]))

    def ssim(self, x, y):
        # the window must fit into the coarsest level
        k = min(self.win, x.shape[-2], x.shape[-1])
        pool = lambda t: F.avg_pool2d(t, k, stride=1)
        cov_norm = k * k / max(k * k - 1, 1)
        ux, uy = pool(x), pool(y)
        vx = cov_norm * (pool(x * x) - ux * ux)
        vy = cov_norm * (pool(y * y) - uy * uy)
        vxy = cov_norm * (pool(x * y) - ux * uy)
        num = (2 * ux * uy + self.C1) * (2 * vxy + self.C2)
        den = (ux ** 2 + uy ** 2 + self.C1) * (vx + vy + self.C2)
        return (num / den).mean((1, 2, 3))

    def forward(self, x, y):
        scores = []
        for i, weight in enumerate(self.msw):
            if i:
                x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
            scores.append(self.ssim(x, y) * weight)
        return torch.stack(scores, dim=-1).sum(-1)


@case("x: f32[b, 4, h, w]")
class ResizeDownToBudget(nn.Module):
    """Images of more than `budget` cells are worked on at a smaller size."""

    def __init__(self, budget=256):
        super().__init__()
        self.budget = budget
        self.mix = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        h, w = x.shape[-2:]
        if h * w <= self.budget:
            return x + F.relu(self.mix(x))
        scale = math.sqrt(self.budget / (h * w))
        nh = max(1, math.floor(h * scale))
        nw = max(1, math.floor(w * scale))
        y = F.relu(self.mix(F.interpolate(x, size=(nh, nw), mode="nearest")))
        y = F.interpolate(y, size=(h, w), mode="bilinear", align_corners=False)
        return x + y * scale
