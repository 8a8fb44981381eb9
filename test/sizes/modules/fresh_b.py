"""Images, video and detection."""
import itertools
import math
from dataclasses import dataclass
from typing import List, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from case import case


@case("img: f32[b, 3, h, w]")
class GlobalAverageClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, img):
        y = F.relu(self.conv(img))
        n, c, h, w = y.shape
        y = F.avg_pool2d(y, kernel_size=(h, w)).view(n, c)
        return self.fc(y)


@case("img: f32[b, 3, h, w]")
class PadToMultipleOfEightUnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(3, 6, 8, stride=8)
        self.dec = nn.ConvTranspose2d(6, 3, 8, stride=8)

    def forward(self, img):
        h, w = img.shape[-2:]
        ph = math.ceil(h / 8) * 8 - h
        pw = math.ceil(w / 8) * 8 - w
        x = F.pad(img, (0, pw, 0, ph))
        x = self.dec(F.gelu(self.enc(x)))
        return x[:, :, :h, :w]


@case("x: f32[b, 4, h, w]")
class CoordConvInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 5, 3, padding=1)

    def forward(self, x):
        b, _, h, w = x.size()
        yy = torch.linspace(-1, 1, h, device=x.device).view(1, 1, h, 1).expand(b, 1, h, w)
        xx = torch.linspace(-1, 1, w, device=x.device).view(1, 1, 1, w).expand(b, 1, h, w)
        return self.conv(torch.cat([x, xx, yy], dim=1))


@case("x: f32[b, 6, h, w]", "z: f32[b, 4]")
class ConcatGlobalFeatureToMap(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(10, 6, 1)

    def forward(self, x, z):
        z = z[:, :, None, None].expand(-1, -1, x.shape[2], x.shape[3])
        return self.mix(torch.cat((x, z), 1))


@case("x: f32[b, 3, h, w]")
class ResizeBackToInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), nn.ReLU(), nn.Conv2d(6, 2, 3, 2, 1))

    def forward(self, x):
        size = x.shape[2:]
        logits = self.body(x)
        return F.interpolate(logits, size=size, mode="bilinear", align_corners=False)


@case("x: f32[b, 3, h, w]", least={"h": 6, "w": 6})
class CenterCropSix(nn.Module):
    def forward(self, x):
        th, tw = 6, 6
        h, w = x.shape[-2:]
        i = int(round((h - th) / 2.0))
        j = int(round((w - tw) / 2.0))
        return x[..., i:i + th, j:j + tw]


@case("x: f32[b, 3, h, w]", where="h % 4 == 0 and w % 4 == 0")
class PatchifyAndUnpatchify(nn.Module):
    patch_size = 4

    def __init__(self):
        super().__init__()
        self.mlp = nn.Linear(48, 48)

    def forward(self, imgs):
        p = self.patch_size
        h, w = imgs.shape[2] // p, imgs.shape[3] // p
        x = imgs.reshape(shape=(imgs.shape[0], 3, h, p, w, p))
        x = torch.einsum("nchpwq->nhwpqc", x)
        x = x.reshape(shape=(imgs.shape[0], h * w, p ** 2 * 3))
        x = self.mlp(x)
        x = x.reshape(shape=(x.shape[0], h, w, p, p, 3))
        x = torch.einsum("nhwpqc->nchpwq", x)
        return x.reshape(shape=(x.shape[0], 3, h * p, w * p))


@case("x: f32[b, 8, h, w]")
class FlattenToTokensAndBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self._to_map(self._mix(self._to_tokens(x)))

    def _to_tokens(self, x):
        self.H, self.W = x.shape[2:]
        return x.flatten(2).permute(0, 2, 1)

    def _mix(self, tokens):
        return tokens + self.fc(self.norm(tokens))

    def _to_map(self, tokens):
        B, _, C = tokens.shape
        return tokens.permute(0, 2, 1).reshape(B, C, self.H, self.W)


@case("x: f32[b, c, h, w]", where="c % 2 == 0")
class ChannelShuffleTwoGroups(nn.Module):
    def forward(self, x):
        b, c, h, w = x.data.size()
        groups = 2
        per = c // groups
        x = x.view(b, groups, per, h, w)
        x = torch.transpose(x, 1, 2).contiguous()
        return x.view(b, -1, h, w)


@case("clip: f32[b, t, 3, h, w]")
class FoldTimeIntoBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(6, 4)

    def forward(self, clip):
        b, t = clip.shape[:2]
        feats = self.cnn(clip.view(b * t, *clip.shape[2:])).view(b, t, -1)
        return self.head(feats.mean(1)), feats


@case("x: f32[b, 3, h, w]")
class InstanceNormByHand(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.rand(3))
        self.beta = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        n, c, h, w = x.shape
        flat = x.reshape(n, c, h * w)
        mu = flat.sum(-1, keepdim=True) / (h * w)
        var = ((flat - mu) ** 2).sum(-1, keepdim=True) / (h * w)
        y = (flat - mu) / torch.sqrt(var + 1e-5)
        y = y * self.gamma.view(1, c, 1) + self.beta.view(1, c, 1)
        return y.view(n, c, h, w)


@case("x: f32[b, 5, h, w]")
class SpatialSoftArgmax(nn.Module):
    def forward(self, x):
        n, c, h, w = x.shape
        prob = F.softmax(x.view(n, c, h * w), dim=-1).view(n, c, h, w)
        xs = torch.arange(w, dtype=x.dtype) / max(w - 1, 1)
        ys = torch.arange(h, dtype=x.dtype) / max(h - 1, 1)
        ex = (prob.sum(dim=2) * xs).sum(-1)
        ey = (prob.sum(dim=3) * ys).sum(-1)
        return torch.stack([ex, ey], dim=-1)


class AnchorMaker:
    def __init__(self, sizes=(8.0, 16.0), ratios=(0.5, 1.0, 2.0)):
        cells = []
        for s, r in itertools.product(sizes, ratios):
            hh, ww = s * math.sqrt(r), s / math.sqrt(r)
            cells.append([-ww / 2, -hh / 2, ww / 2, hh / 2])
        self.base = torch.tensor(cells)

    def per_location(self):
        return self.base.shape[0]

    def grid(self, fh: int, fw: int, sh: int, sw: int) -> Tensor:
        sx = torch.arange(0, fw, dtype=torch.float32) * sw
        sy = torch.arange(0, fh, dtype=torch.float32) * sh
        yy, xx = torch.meshgrid(sy, sx, indexing="ij")
        yy, xx = yy.reshape(-1), xx.reshape(-1)
        shifts = torch.stack((xx, yy, xx, yy), dim=1)
        return (shifts.view(-1, 1, 4) + self.base.view(1, -1, 4)).reshape(-1, 4)


@case("image: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class RpnWithGridAnchors(nn.Module):
    def __init__(self):
        super().__init__()
        self.anchors = AnchorMaker()
        self.backbone = nn.Conv2d(3, 8, 4, stride=4)
        self.delta = nn.Conv2d(8, 4 * self.anchors.per_location(), 1)

    def forward(self, image):
        ih, iw = image.shape[-2:]
        f = torch.relu(self.backbone(image))
        fh, fw = f.shape[-2:]
        boxes = self.anchors.grid(fh, fw, ih // fh, iw // fw)
        d = self.delta(f)
        n = d.shape[0]
        d = d.view(n, -1, 4, fh, fw).permute(0, 3, 4, 1, 2).reshape(n, -1, 4)
        out = boxes.unsqueeze(0) + d
        x1, x2 = out[..., 0::2].clamp(0, iw).unbind(-1)
        y1, y2 = out[..., 1::2].clamp(0, ih).unbind(-1)
        return torch.stack((x1, y1, x2, y2), -1)


@case("feat: f32[b, 12, h, w]")
class YoloHeadDecode(nn.Module):
    stride = 8

    def __init__(self):
        super().__init__()
        self.na, self.no = 2, 6
        self.register_buffer("anchor_wh", torch.tensor([[10.0, 13.0], [33.0, 23.0]]))

    @staticmethod
    def _make_grid(nx, ny):
        yv, xv = torch.meshgrid([torch.arange(ny), torch.arange(nx)], indexing="ij")
        return torch.stack((xv, yv), 2).view((1, 1, ny, nx, 2)).float()

    def forward(self, feat):
        bs, _, ny, nx = feat.shape
        x = feat.view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        y = x.sigmoid()
        xy = (y[..., 0:2] * 2.0 - 0.5 + self._make_grid(nx, ny)) * self.stride
        wh = (y[..., 2:4] * 2) ** 2 * self.anchor_wh.view(1, self.na, 1, 1, 2)
        return torch.cat((xy, wh, y[..., 4:]), -1).view(bs, -1, self.no)


@case("x: f32[b, 6, h, w]")
class PyramidPoolingModule(nn.Module):
    def __init__(self, bins=(1, 2, 3)):
        super().__init__()
        self.features = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(b), nn.Conv2d(6, 2, 1), nn.ReLU()) for b in bins
        )

    def forward(self, x):
        x_size = x.size()
        out = [x]
        for f in self.features:
            out.append(F.interpolate(f(x), x_size[2:], mode="bilinear", align_corners=True))
        return torch.cat(out, 1)


@case("x: f32[b, 4, h, w]", least={"h": 4, "w": 4})
class SpatialPyramidPoolingCeil(nn.Module):
    """Kernel and stride follow from the size of the map, as in the SPP-net ports."""

    def __init__(self, levels=(1, 2, 4)):
        super().__init__()
        self.levels = levels

    def forward(self, x):
        num, c, h, w = x.size()
        parts = []
        for lv in self.levels:
            kh, kw = h // lv, w // lv
            y = F.max_pool2d(x[:, :, :kh * lv, :kw * lv], kernel_size=(kh, kw), stride=(kh, kw))
            parts.append(y.reshape(num, -1))
        return torch.cat(parts, dim=1)


def window_partition(x, ws):
    B, H, W, C = x.shape
    x = x.view(B, H // ws, ws, W // ws, ws, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, ws, ws, C)


def window_reverse(windows, ws, H, W):
    B = int(windows.shape[0] / (H * W / ws / ws))
    x = windows.view(B, H // ws, W // ws, ws, ws, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


@case("x: f32[b, h, w, 8]")
class ShiftedWindowAttention(nn.Module):
    def __init__(self, dim=8, window=4, shift=2):
        super().__init__()
        self.ws, self.shift = window, shift
        self.qkv = nn.Linear(dim, 3 * dim)

    def region_mask(self, Hp, Wp):
        img = torch.zeros((1, Hp, Wp, 1))
        cnt = 0
        cuts = (slice(0, -self.ws), slice(-self.ws, -self.shift), slice(-self.shift, None))
        for hs in cuts:
            for ws in cuts:
                img[:, hs, ws, :] = cnt
                cnt += 1
        m = window_partition(img, self.ws).view(-1, self.ws * self.ws)
        diff = m.unsqueeze(1) - m.unsqueeze(2)
        return diff.masked_fill(diff != 0, -100.0).masked_fill(diff == 0, 0.0)

    def forward(self, x):
        B, H, W, C = x.shape
        pad_r = (self.ws - W % self.ws) % self.ws
        pad_b = (self.ws - H % self.ws) % self.ws
        x = F.pad(x, (0, 0, 0, pad_r, 0, pad_b))
        _, Hp, Wp, _ = x.shape
        y = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        win = window_partition(y, self.ws).view(-1, self.ws * self.ws, C)
        q, k, v = self.qkv(win).chunk(3, -1)
        attn = q @ k.transpose(1, 2) * C ** -0.5
        mask = self.region_mask(Hp, Wp)
        nW = mask.shape[0]
        attn = attn.view(B, nW, attn.shape[1], attn.shape[2]) + mask.unsqueeze(0)
        attn = attn.view(-1, attn.shape[2], attn.shape[3]).softmax(-1)
        out = window_reverse((attn @ v).view(-1, self.ws, self.ws, C), self.ws, Hp, Wp)
        out = torch.roll(out, shifts=(self.shift, self.shift), dims=(1, 2))
        return out[:, :H, :W, :].contiguous()


@case("x: f32[b, 3, h, w]", least={"h": 3, "w": 3})
class ResizeWithScaleFactor(nn.Module):
    def __init__(self, ratio=0.5):
        super().__init__()
        self.ratio = ratio
        self.c = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        small = F.interpolate(x, scale_factor=self.ratio, mode="nearest")
        y = self.c(small)
        y = F.interpolate(y, scale_factor=2, mode="nearest")
        h, w = y.shape[2:]
        return x[:, :, :h, :w] - y


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class KeepAspectResizeLongSide(nn.Module):
    """Scales so that the longer side becomes 16, letterboxed with grey."""

    def __init__(self, target=16):
        super().__init__()
        self.target = target

    def forward(self, x):
        h, w = x.shape[-2], x.shape[-1]
        r = self.target / max(h, w)
        nh, nw = max(1, int(round(h * r))), max(1, int(round(w * r)))
        y = F.interpolate(x, size=(nh, nw), mode="bilinear", align_corners=False)
        top = (self.target - nh) // 2
        left = (self.target - nw) // 2
        pads = (left, self.target - nw - left, top, self.target - nh - top)
        return F.pad(y, pads, value=114.0 / 255.0)


@case("feat: f32[b, 4, h, w]", "flow: f32[b, 2, h, w]")
class FlowWarp(nn.Module):
    def forward(self, feat, flow):
        n, _, h, w = feat.size()
        gy, gx = torch.meshgrid(torch.arange(0, h), torch.arange(0, w), indexing="ij")
        grid = torch.stack((gx, gy), 2).type_as(feat)
        vgrid = grid + flow.permute(0, 2, 3, 1)
        vx = 2.0 * vgrid[:, :, :, 0] / max(w - 1, 1) - 1.0
        vy = 2.0 * vgrid[:, :, :, 1] / max(h - 1, 1) - 1.0
        out = F.grid_sample(feat, torch.stack((vx, vy), dim=3), mode="bilinear",
                            padding_mode="zeros", align_corners=True)
        return out


@case("low: f32[b, 2, h, w]", "mask: f32[b, 36, h, w]")
class RaftConvexUpsample(nn.Module):
    factor = 2

    def forward(self, low, mask):
        k = self.factor
        N, C, H, W = low.shape
        mask = mask.view(N, 1, 9, k, k, H, W) if mask.shape[1] == 9 * k * k else mask
        mask = torch.softmax(mask, dim=2)
        up = F.unfold(k * low, [3, 3], padding=1)
        up = up.view(N, C, 9, 1, 1, H, W)
        up = torch.sum(mask * up, dim=2)
        up = up.permute(0, 1, 4, 2, 5, 3)
        return up.reshape(N, C, k * H, k * W)


def same_pad(size: int, k: int, s: int, d: int = 1) -> int:
    return max((math.ceil(size / s) - 1) * s + (k - 1) * d + 1 - size, 0)


@case("x: f32[b, 3, h, w]")
class TensorflowSameConv(nn.Conv2d):
    def __init__(self):
        super().__init__(3, 6, kernel_size=5, stride=3)

    def forward(self, x):
        ih, iw = x.size()[-2:]
        kh, kw = self.weight.size()[-2:]
        pad_h = same_pad(ih, kh, self.stride[0], self.dilation[0])
        pad_w = same_pad(iw, kw, self.stride[1], self.dilation[1])
        x = F.pad(x, [pad_w // 2, pad_w - pad_w // 2, pad_h // 2, pad_h - pad_h // 2])
        return F.conv2d(x, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


@case("video: f32[b, 3, t, h, w]")
class UniformlySampledFrames(nn.Module):
    """Takes eight frames evenly spread over the clip, repeating them if it is short."""

    def __init__(self, num=8):
        super().__init__()
        self.num = num
        self.conv = nn.Conv3d(3, 4, (3, 1, 1), padding=(1, 0, 0))

    def forward(self, video):
        t = video.shape[2]
        idx = torch.linspace(0, t - 1, self.num)
        idx = torch.clamp(idx, 0, t - 1).long()
        return self.conv(torch.index_select(video, 2, idx)).amax(dim=(3, 4))


@case("video: f32[b, 3, t, h, w]", least={"t": 4})
class SlowFastPathways(nn.Module):
    def __init__(self, alpha=4):
        super().__init__()
        self.alpha = alpha

    def forward(self, video):
        fast = video
        n = video.shape[2]
        step = torch.linspace(0, n - 1, n // self.alpha).long()
        slow = torch.index_select(video, 2, step)
        return slow.mean(dim=(3, 4)), fast.flatten(3).mean(-1)


@dataclass
class GridSpec:
    height: int
    width: int
    cell: int

    @property
    def rows(self) -> int:
        return -(-self.height // self.cell)

    @property
    def cols(self) -> int:
        return -(-self.width // self.cell)

    def padding(self) -> Tuple[int, int, int, int]:
        return 0, self.cols * self.cell - self.width, 0, self.rows * self.cell - self.height


@case("img: f32[b, 1, h, w]", least={"h": 2, "w": 2})
class CellHistogramOfGradients(nn.Module):
    def __init__(self, cell=4, bins=6):
        super().__init__()
        self.cell, self.bins = cell, bins
        sobel = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
        self.register_buffer("kernel", torch.stack([sobel, sobel.t()])[:, None])

    def forward(self, img):
        spec = GridSpec(img.shape[2], img.shape[3], self.cell)
        g = F.conv2d(img, self.kernel, padding=1)
        mag = g.norm(dim=1)
        phase = torch.atan2(g[:, 0], g[:, 1]) / math.pi * self.bins
        idx = phase.floor().long() % self.bins
        hist = F.one_hot(idx, self.bins).permute(0, 3, 1, 2) * mag[:, None]
        hist = F.pad(hist, spec.padding())
        hist = hist.view(img.shape[0], self.bins, spec.rows, self.cell, spec.cols, self.cell)
        return hist.sum(dim=(3, 5))


@case("img: f32[b, 3, h, w]", least={"h": 8, "w": 8})
class OverlappingTilesBlend(nn.Module):
    """Cuts 8x8 tiles with stride 4, filters each and folds them back with weights."""

    def __init__(self):
        super().__init__()
        self.k, self.s = 8, 4
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        ramp = 1 - (torch.arange(8) - 3.5).abs() / 4
        self.register_buffer("weight", (ramp[:, None] * ramp[None, :]).view(1, 64))

    def forward(self, img):
        n, c, h, w = img.shape
        ph, pw = -(h - self.k) % self.s, -(w - self.k) % self.s
        x = F.pad(img, (0, pw, 0, ph), mode="replicate")
        H, W = x.shape[-2:]
        cols = F.unfold(x, self.k, stride=self.s)
        L = cols.shape[-1]
        tiles = cols.transpose(1, 2).reshape(n * L, c, self.k, self.k)
        tiles = self.conv(tiles).reshape(n, L, c, -1) * self.weight
        cols = tiles.reshape(n, L, -1).transpose(1, 2)
        num = F.fold(cols, (H, W), self.k, stride=self.s)
        ones = self.weight.view(1, 64, 1).expand(1, 64, L)
        den = F.fold(ones, (H, W), self.k, stride=self.s)
        return (num / den)[..., :h, :w]


@case("x: f32[b, 4, h, w]")
class AxialAttentionWithTables(nn.Module):
    def __init__(self):
        super().__init__()
        self.row = nn.Parameter(torch.randn(32, 4) * 0.1)
        self.lin = nn.Linear(4, 12)

    def table(self, n):
        at = torch.arange(n).float() * (31 / max(n - 1, 1))
        lo = at.floor().long()
        hi = (lo + 1).clamp(max=31)
        f = (at - lo)[:, None]
        return self.row[lo] * (1 - f) + self.row[hi] * f

    def along(self, x):
        n = x.size(-2)
        q, k, v = self.lin(x + self.table(n)).chunk(3, -1)
        return torch.softmax(q @ k.transpose(-1, -2) / 2.0, -1) @ v

    def forward(self, x):
        rows = self.along(x.permute(0, 2, 3, 1))
        cols = self.along(x.permute(0, 3, 2, 1)).transpose(1, 2)
        return (rows + cols).permute(0, 3, 1, 2)


@case("feat: f32[b, 4, h, w]", "rois: f32[r, 4]", least={"h": 2, "w": 2})
class RoiGridSampleFirstImage(nn.Module):
    def __init__(self, out=3):
        super().__init__()
        self.out = out

    def forward(self, feat, rois):
        h, w = feat.shape[-2:]
        scale = torch.tensor([w, h, w, h], dtype=feat.dtype)
        boxes = rois.sigmoid() * scale
        x1, x2 = torch.minimum(boxes[:, 0], boxes[:, 2]), torch.maximum(boxes[:, 0], boxes[:, 2])
        y1, y2 = torch.minimum(boxes[:, 1], boxes[:, 3]), torch.maximum(boxes[:, 1], boxes[:, 3])
        u = (torch.arange(self.out) + 0.5) / self.out
        gx = (x1[:, None] + (x2 - x1)[:, None] * u) / w * 2 - 1
        gy = (y1[:, None] + (y2 - y1)[:, None] * u) / h * 2 - 1
        R = rois.shape[0]
        grid = torch.stack((gx[:, None, :].expand(R, self.out, self.out),
                            gy[:, :, None].expand(R, self.out, self.out)), -1)
        src = feat[:1].expand(R, -1, -1, -1)
        return F.grid_sample(src, grid, align_corners=False)


@case("boxes: f32[b, n, 4]", "image: f32[b, 3, h, w]")
class NormalizedBoxesToPixels(nn.Module):
    def forward(self, boxes, image):
        H, W = image.shape[-2:]
        cx, cy, bw, bh = boxes.sigmoid().unbind(-1)
        xyxy = torch.stack([cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2], -1)
        xyxy = xyxy * torch.tensor([W, H, W, H])
        area = (xyxy[..., 2] - xyxy[..., 0]) * (xyxy[..., 3] - xyxy[..., 1])
        return xyxy, area / float(H * W)


@case("a: f32[n, 4]", "c: f32[m, 4]")
class PairwiseBoxIou(nn.Module):
    @staticmethod
    def to_corners(x):
        centre, wh = x[:, :2], x[:, 2:].exp()
        return torch.cat([centre - wh / 2, centre + wh / 2], dim=1)

    def forward(self, a, c):
        a, c = self.to_corners(a), self.to_corners(c)
        A, B = a.size(0), c.size(0)
        hi = torch.min(a[:, 2:].unsqueeze(1).expand(A, B, 2), c[:, 2:].unsqueeze(0).expand(A, B, 2))
        lo = torch.max(a[:, :2].unsqueeze(1).expand(A, B, 2), c[:, :2].unsqueeze(0).expand(A, B, 2))
        inter = torch.clamp(hi - lo, min=0).prod(-1)
        area_a = (a[:, 2:] - a[:, :2]).prod(1).unsqueeze(1).expand_as(inter)
        area_b = (c[:, 2:] - c[:, :2]).prod(1).unsqueeze(0).expand_as(inter)
        return inter / (area_a + area_b - inter)


@case("heat: f32[b, 3, h, w]", "wh: f32[b, 2, h, w]", where="h * w >= 4")
class CenterNetTopKDecode(nn.Module):
    K = 4

    def forward(self, heat, wh):
        batch, cat, height, width = heat.size()
        heat = heat.sigmoid()
        peak = F.max_pool2d(heat, 3, stride=1, padding=1)
        heat = heat * torch.where(peak == heat, 1.0, 0.05)
        scores, inds = torch.topk(heat.view(batch, -1), self.K)
        cls = torch.div(inds, height * width, rounding_mode="floor")
        inds = inds % (height * width)
        ys = (inds // width).float()
        xs = (inds % width).float()
        wh = wh.permute(0, 2, 3, 1).reshape(batch, -1, 2)
        wh = wh.gather(1, inds.unsqueeze(2).expand(batch, self.K, 2))
        box = torch.stack([xs - wh[..., 0] / 2, ys - wh[..., 1] / 2,
                           xs + wh[..., 0] / 2, ys + wh[..., 1] / 2], dim=2)
        return box, scores, cls


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class LaplacianPyramidTwoLevels(nn.Module):
    def __init__(self):
        super().__init__()
        k = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]) / 256.0
        self.register_buffer("k", torch.from_numpy(k).float()[None, None].repeat(3, 1, 1, 1))

    def blur(self, x):
        return F.conv2d(F.pad(x, (2, 2, 2, 2), mode="replicate"), self.k, groups=3)

    def expand(self, x, size):
        n, c = x.shape[:2]
        up = torch.zeros(n, c, 2 * x.shape[2], 2 * x.shape[3])
        up[:, :, ::2, ::2] = x * 4
        return self.blur(up[:, :, :size[0], :size[1]])

    def forward(self, x):
        levels = []
        for _ in range(2):
            down = self.blur(x)[:, :, ::2, ::2]
            levels.append(x - self.expand(down, x.shape[-2:]))
            x = down
        return levels[0], levels[1], x


@case("x: f32[b, 2, h, w]")
class CircularFftShiftLowPass(nn.Module):
    """Keeps the middle quarter of the spectrum."""

    def forward(self, x):
        h, w = x.shape[-2:]
        spec = torch.fft.fftshift(torch.fft.fft2(x), dim=(-2, -1))
        ky, kx = max(1, h // 4), max(1, w // 4)
        cy, cx = h // 2, w // 2
        rows = (torch.arange(h) - cy).abs() <= ky
        cols = (torch.arange(w) - cx).abs() <= kx
        keep = (rows[:, None] & cols[None, :]).to(x.dtype)
        low = torch.fft.ifft2(torch.fft.ifftshift(spec * keep, dim=(-2, -1))).real
        return low, keep.sum() / (h * w)


@case("x: f32[b, 4, h, w]")
class PooledGateReshapeByOnes(nn.Module):
    """Squeeze and excite with the usual `[1] * k` view."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 2), nn.Linear(2, 4)

    def forward(self, x):
        rank = x.dim() - 2
        squeezed = x.flatten(2).sum(-1).div(np.prod(list(x.shape[2:])).item())
        g = torch.sigmoid(self.fc2(F.relu(self.fc1(squeezed))))
        return x * g.view(*g.shape, *([1] * rank))


@case("x: f32[b, 3, h, w]")
class PadSquareOnlyIfNeeded(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d((2, 2))

    def forward(self, x):
        h, w = x.shape[-2:]
        if h == w:
            return self.pool(x), x.new_zeros(2)
        side = max(h, w)
        dh, dw = side - h, side - w
        x = F.pad(x, (dw // 2, dw - dw // 2, dh // 2, dh - dh // 2))
        return self.pool(x), torch.tensor([dh // 2, dw // 2], dtype=x.dtype)


@case("frames: f32[t, 3, h, w]", most={"t": 9})
class ExponentialFrameAverage(nn.Module):
    def __init__(self, momentum=0.8):
        super().__init__()
        self.momentum = momentum

    def forward(self, frames):
        avg = frames[0]
        out = [avg]
        for i in range(1, frames.size(0)):
            avg = self.momentum * avg + (1 - self.momentum) * frames[i]
            out.append(avg)
        return torch.stack(out)
