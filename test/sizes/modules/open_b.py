"""Images: backbones, detection, segmentation, restoration, as they are deployed."""
import math
from collections import OrderedDict
from itertools import product

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from case import case


def to_2tuple(x):
    return tuple(x) if isinstance(x, (list, tuple)) else (x, x)


@case("x: f32[b, 4, h, w]")
class SwinShiftOnlyIfLarger(nn.Module):
    """The window shrinks to the map where the map is smaller, and there is no shift then."""

    def __init__(self, window=4):
        super().__init__()
        self.window = to_2tuple(window)
        self.qkv = nn.Linear(4, 12)

    def sizes(self, h, w):
        ws = [f if f <= s else s for f, s in zip((h, w), self.window)]
        ss = [0 if f <= s else s // 2 for f, s in zip((h, w), ws)]
        return ws, ss

    def forward(self, x):
        b, c, h, w = x.shape
        (wh, ww), (sh, sw) = self.sizes(h, w)
        x = x.permute(0, 2, 3, 1)
        x = F.pad(x, (0, 0, 0, (ww - w % ww) % ww, 0, (wh - h % wh) % wh))
        hp, wp = x.shape[1:3]
        x = torch.roll(x, shifts=(-sh, -sw), dims=(1, 2))
        x = x.view(b, hp // wh, wh, wp // ww, ww, c).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(-1, wh * ww, c)
        q, k, v = self.qkv(x).chunk(3, -1)
        x = torch.softmax(q @ k.mT / 2, -1) @ v
        x = x.view(b, hp // wh, wp // ww, wh, ww, c).permute(0, 1, 3, 2, 4, 5)
        x = torch.roll(x.reshape(b, hp, wp, c), shifts=(sh, sw), dims=(1, 2))
        return x[:, :h, :w].permute(0, 3, 1, 2)


@case("x: f32[b, 3, h, w]", least={"h": 8, "w": 8})
class ShiftedWindowRegionMask(nn.Module):
    def __init__(self, window=4, shift=2):
        super().__init__()
        self.ws, self.ss = window, shift

    def forward(self, x):
        h, w = x.shape[-2:]
        hp = int(np.ceil(h / self.ws)) * self.ws
        wp = int(np.ceil(w / self.ws)) * self.ws
        img = torch.zeros((1, hp, wp, 1))
        cuts = (slice(0, -self.ws), slice(-self.ws, -self.ss), slice(-self.ss, None))
        for cnt, (i, j) in enumerate(product(cuts, cuts)):
            img[:, i, j, :] = cnt
        m = img.view(1, hp // self.ws, self.ws, wp // self.ws, self.ws, 1)
        m = m.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.ws * self.ws)
        m = m.unsqueeze(1) - m.unsqueeze(2)
        m = m.masked_fill(m != 0, -100.0)
        return m, x.mean((2, 3))


@case("x: f32[b, 4, h, w]")
class PatchMergingOddPad(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        H, W, _ = x.shape[-3:]
        x = F.pad(x, (0, 0, 0, W % 2, 0, H % 2))
        x = torch.cat([x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)], -1)
        return self.reduction(self.norm(x))


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class VitInterpolatedPositions(nn.Module):
    """DINO: the factor is nudged so that the size comes out."""

    def __init__(self, patch=4, grid=3, dim=6):
        super().__init__()
        self.patch, self.grid = patch, grid
        self.proj = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.randn(1, grid * grid + 1, dim))
        self.cls = nn.Parameter(torch.randn(1, 1, dim))

    def positions(self, w0, h0, dim):
        first, rest = self.pos[:, :1], self.pos[:, 1:]
        w0, h0 = w0 + 0.1, h0 + 0.1
        rest = rest.reshape(1, self.grid, self.grid, dim).permute(0, 3, 1, 2)
        rest = F.interpolate(rest, scale_factor=(w0 / self.grid, h0 / self.grid), mode="bicubic")
        assert int(w0) == rest.shape[-2] and int(h0) == rest.shape[-1]
        return torch.cat((first, rest.permute(0, 2, 3, 1).view(1, -1, dim)), dim=1)

    def forward(self, x):
        b, _, w, h = x.shape
        t = self.proj(x).flatten(2).transpose(1, 2)
        t = torch.cat((self.cls.expand(b, -1, -1), t), dim=1)
        return t + self.positions(w // self.patch, h // self.patch, t.shape[-1])


@case("x: f32[b, 4, h, w]")
class SpatialPyramidByKernel(nn.Module):
    """SPP-net: kernel, stride and padding from the size of the map."""

    levels = (1, 2, 3)

    def forward(self, x):
        n, c, h, w = x.size()
        outs = []
        for k in self.levels:
            kh, kw = math.ceil(h / k), math.ceil(w / k)
            ph, pw = (kh * k - h + 1) // 2, (kw * k - w + 1) // 2
            y = F.pad(x, (pw, pw, ph, ph), value=-1e4)
            y = F.max_pool2d(y, (kh, kw), stride=(kh, kw))
            outs.append(y[:, :, :k, :k].reshape(n, -1))
        return torch.cat(outs, 1)


@case("x: f32[b, 4, h, w]")
class GlobalPoolByKernelSize(nn.Module):
    def forward(self, x):
        y = F.avg_pool2d(x, kernel_size=x.size()[2:])
        area = x.shape[2] * x.shape[3]
        z = F.lp_pool2d(x.abs() + 0.1, 3, kernel_size=x.shape[2:])
        return torch.cat([y.flatten(1), z.flatten(1) / area ** (1 / 3)], 1)


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class SamePaddingTensorflow(nn.Module):
    """timm's Conv2dSame."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 3, 3, 3))
        self.stride, self.dilation = (2, 2), (1, 2)

    @staticmethod
    def get_same_padding(x, k, s, d):
        return max((math.ceil(x / s) - 1) * s + (k - 1) * d + 1 - x, 0)

    def forward(self, x):
        ih, iw = x.size()[-2:]
        ph = self.get_same_padding(ih, 3, self.stride[0], self.dilation[0])
        pw = self.get_same_padding(iw, 3, self.stride[1], self.dilation[1])
        x = F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2])
        return F.conv2d(x, self.weight, None, self.stride, 0, self.dilation)


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class RetinaAnchorsStrideFromImage(nn.Module):
    """torchvision: the stride is the image size over the map size."""

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 4, 3, 2, 1)
        self.c2 = nn.Conv2d(4, 8, 3, 2, 1)

    def forward(self, x):
        ih, iw = x.shape[-2:]
        boxes = []
        h = x
        for conv in (self.c1, self.c2):
            h = torch.relu(conv(h))
            fh, fw = h.shape[-2:]
            sh, sw = ih // fh, iw // fw
            yy, xx = torch.meshgrid(torch.arange(fh) * sh, torch.arange(fw) * sw, indexing="ij")
            c = torch.stack((xx, yy), -1).reshape(-1, 2).float()
            boxes.append(torch.cat([c - 2.0, c + 2.0], 1))
        boxes = torch.cat(boxes)
        return boxes.clamp(min=0).minimum(torch.tensor([iw, ih, iw, ih]).float()), h.mean((2, 3))


@case("p3: f32[b, 6, h, w]", "p4: f32[b, 6, k, l]")
class YoloDecodeTwoLevels(nn.Module):
    def __init__(self):
        super().__init__()
        self.strides = (8, 16)

    def forward(self, p3, p4):
        outs, grids = [], []
        for s, p in zip(self.strides, (p3, p4)):
            b, c, h, w = p.shape
            yv, xv = torch.meshgrid([torch.arange(h), torch.arange(w)], indexing="ij")
            grid = torch.stack((xv, yv), 2).view(1, -1, 2)
            o = p.flatten(start_dim=2).permute(0, 2, 1)
            xy, wh = (o[..., :2] + grid) * s, o[..., 2:4].exp() * s
            outs.append(torch.cat([xy, wh, o[..., 4:].sigmoid()], -1))
            grids.append(torch.full((*grid.shape[:2], 1), s / (h * w)))
        return torch.cat(outs, 1), torch.cat(grids, 1)


@case("x: f32[b, 4, h, w]", "skip: f32[b, 4, 2*h + k, 2*w + 1]")
class UnetCentrePadUp(nn.Module):
    """milesial's UNet: the difference of sizes is padded on both sides."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x, skip):
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        dy = skip.size()[2] - x.size()[2]
        dx = skip.size()[3] - x.size()[3]
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([skip, x], dim=1))


@case("x: f32[b, 3, h, w]")
class ResizeShorterSideKeepRatio(nn.Module):
    def __init__(self, size=12, longest=40):
        super().__init__()
        self.size, self.longest = size, longest

    def target(self, h, w):
        short, long = (h, w) if h <= w else (w, h)
        scale = self.size / short
        if long * scale > self.longest:
            scale = self.longest / long
        return max(int(h * scale + 0.5), 1), max(int(w * scale + 0.5), 1)

    def forward(self, x):
        return F.interpolate(x, size=self.target(*x.shape[-2:]), mode="bilinear")


@case("x: f32[b, 3, h, w]")
class LetterboxToSquare(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        side = max(h, w)
        top, left = (side - h) // 2, (side - w) // 2
        x = F.pad(x, (left, side - w - left, top, side - h - top), value=0.45)
        return F.adaptive_avg_pool2d(x, 4)


@case("x: f32[b, 3, h, w]")
class RestorationPadReflectAndCrop(nn.Module):
    """SwinIR's check_image_size by flips, then a crop of the enlarged picture."""

    def __init__(self, window=4, scale=2):
        super().__init__()
        self.window, self.scale = window, scale
        self.body = nn.Conv2d(3, 3 * scale * scale, 3, padding=1)

    def forward(self, x):
        _, _, h_old, w_old = x.size()
        h_pad = (h_old // self.window + 1) * self.window - h_old
        w_pad = (w_old // self.window + 1) * self.window - w_old
        x = torch.cat([x, torch.flip(x, [2])], 2)[:, :, : h_old + h_pad, :]
        x = torch.cat([x, torch.flip(x, [3])], 3)[:, :, :, : w_old + w_pad]
        y = F.pixel_shuffle(self.body(x), self.scale)
        return y[..., : h_old * self.scale, : w_old * self.scale]


@case("x: f32[b, 4, h, w]")
class CoordConvCentred(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(7, 4, 1)

    def forward(self, x):
        b, _, h, w = x.shape
        yy = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(b, 1, h, w)
        xx = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(b, 1, h, w)
        rr = ((yy - 0.5) ** 2 + (xx - 0.5) ** 2).sqrt()
        return self.conv(torch.cat([x, yy, xx, rr], 1))


@case("x: f32[b, 4, h, w]")
class DetrSinePositions(nn.Module):
    def __init__(self, feats=4, temperature=100):
        super().__init__()
        self.feats, self.temperature, self.scale = feats, temperature, 2 * math.pi

    def axis(self, n):
        e = torch.arange(1, n + 1, dtype=torch.float32) / (n + 1e-6) * self.scale
        d = torch.arange(self.feats, dtype=torch.float32)
        d = self.temperature ** (2 * torch.div(d, 2, rounding_mode="floor") / self.feats)
        p = e[:, None] / d
        return torch.stack((p[:, 0::2].sin(), p[:, 1::2].cos()), dim=2).flatten(1)

    def forward(self, x):
        h, w = x.shape[-2:]
        y = self.axis(h)[:, None].expand(h, w, -1)
        z = self.axis(w)[None].expand(h, w, -1)
        pos = torch.cat((y, z), -1).permute(2, 0, 1)
        return torch.cat([x, pos[None].expand(x.shape[0], -1, -1, -1)], 1)


@case("q: f32[b, n, 4]", "h_map: f32[b, 4, h, w]")
class DecomposedRelPos(nn.Module):
    """SAM: a table for the largest map is resized to the one at hand."""

    def __init__(self, size=5):
        super().__init__()
        self.rel_h = nn.Parameter(torch.randn(2 * size - 1, 4))
        self.rel_w = nn.Parameter(torch.randn(2 * size - 1, 4))

    @staticmethod
    def get_rel_pos(q_size, k_size, rel_pos):
        max_rel_dist = int(2 * max(q_size, k_size) - 1)
        if rel_pos.shape[0] != max_rel_dist:
            rel_pos = F.interpolate(rel_pos.reshape(1, rel_pos.shape[0], -1).permute(0, 2, 1),
                                    size=max_rel_dist, mode="linear")
            rel_pos = rel_pos.reshape(-1, max_rel_dist).permute(1, 0)
        q = torch.arange(q_size)[:, None] * max(k_size / q_size, 1.0)
        k = torch.arange(k_size)[None, :] * max(q_size / k_size, 1.0)
        rel = (q - k) + (k_size - 1) * max(q_size / k_size, 1.0)
        return rel_pos[rel.long()]

    def forward(self, q, h_map):
        h, w = h_map.shape[-2:]
        rh = self.get_rel_pos(h, h, self.rel_h)
        rw = self.get_rel_pos(w, w, self.rel_w)
        m = h_map.permute(0, 2, 3, 1)
        bias = torch.einsum("bhwc,hkc->bhwk", m, rh)[..., None] \
            + torch.einsum("bhwc,wkc->bhwk", m, rw)[..., None, :]
        return bias.amax((-1, -2)), q.mean(1)


@case("x: f32[b, 4, h, w]")
class WindowPartitionMapsAnySize(nn.Module):
    """MaxViT's grid attention with the grid as large as the map lets it be."""

    def __init__(self, grid=3):
        super().__init__()
        self.grid = grid

    def forward(self, x):
        b, c, h, w = x.shape
        g = self.grid
        x = F.pad(x, (0, -w % g, 0, -h % g))
        hh, ww = x.shape[-2] // g, x.shape[-1] // g
        t = x.view(b, c, g, hh, g, ww).permute(0, 3, 5, 2, 4, 1).reshape(-1, g * g, c)
        t = torch.softmax(t @ t.mT, -1) @ t
        t = t.view(b, hh, ww, g, g, c).permute(0, 5, 3, 1, 4, 2)
        return t.reshape(b, c, g * hh, g * ww)[:, :, :h, :w]


@case("rois: f32[n, 4]", "feat: f32[1, 4, h, w]")
class RoiGridSample(nn.Module):
    """Boxes in units of the map are read with grid_sample."""

    def forward(self, rois, feat):
        n = rois.size(0)
        h, w = feat.shape[-2:]
        centre = torch.sigmoid(rois[:, :2]) * rois.new_tensor([w, h])
        size = torch.sigmoid(rois[:, 2:]) * rois.new_tensor([w, h]) / 2
        step = torch.linspace(-0.5, 0.5, 3)
        gy, gx = torch.meshgrid(step, step, indexing="ij")
        at = centre[:, None, None] + torch.stack([gx, gy], -1) * size[:, None, None]
        at = 2 * at / rois.new_tensor([max(w - 1, 1), max(h - 1, 1)]) - 1
        return F.grid_sample(feat.expand(n, -1, -1, -1), at, align_corners=True)


@case("x: f32[b, 2, h, w]")
class NonMaximumHeatmapPeaks(nn.Module):
    """CenterNet: peaks, the best of each map, back to coordinates."""

    def __init__(self, k=6):
        super().__init__()
        self.k = k

    def forward(self, x):
        b, c, h, w = x.shape
        peak = torch.where(F.max_pool2d(x, 3, 1, 1) == x, x, x - 10.0)
        score, index = peak.view(b, c, -1).topk(min(self.k, h * w), dim=-1)
        index = index % (h * w)
        ys = torch.div(index, w, rounding_mode="floor").float()
        xs = (index % w).int().float()
        return torch.stack([xs / w, ys / h, score], -1).sum(2)


@case("x: f32[b, 3, h, w]")
class GaussianBlurSigmaFromSize(nn.Module):
    def kernel(self, sigma, radius=2):
        t = torch.arange(-radius, radius + 1).float()
        k = torch.exp(-0.5 * (t / sigma) ** 2)
        return k / k.sum()

    def forward(self, x):
        sigma = 0.3 + 0.02 * min(x.shape[-2:])
        k = self.kernel(sigma)
        c = x.shape[1]
        x = F.pad(x, (2, 2, 2, 2), mode="replicate")
        x = F.conv2d(x, k.view(1, 1, 1, -1).repeat(c, 1, 1, 1), groups=c)
        return F.conv2d(x, k.view(1, 1, -1, 1).repeat(c, 1, 1, 1), groups=c)


@case("x: f32[b, 4, h, w]")
class AsppRatesFromMap(nn.Module):
    """Dilation grows with the map so that the context stays the same share of it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4, 3, 3) / 6)

    def forward(self, x):
        rate = max(x.shape[-1] // 12, 1)
        near = F.conv2d(x, self.weight, padding=1)
        far = F.conv2d(x, self.weight, padding=rate, dilation=rate)
        image = x.mean((2, 3), keepdim=True).expand_as(near)
        return near + far + image


@case("x: f32[b, 4, h, w]")
class LocalResponseBySize(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps_scale = 1e-2

    def forward(self, x):
        h, w = x.shape[-2:]
        self.count = h * w
        eps = self.eps_scale / self.count
        mean = x.flatten(2).sum(-1) / self.count
        var = x.flatten(2).pow(2).sum(-1) / self.count - mean ** 2
        n = self.count - 1 or 1
        e = (x - mean[..., None, None]).pow(2)
        y = e / (4 * (e.sum((2, 3), keepdim=True) / n + 1e-4)) + 0.5
        return x * torch.sigmoid(y), (var + eps).rsqrt().clamp(max=50.0)


@case("frames: f32[b, t, 3, h, w]")
class TemporalShiftFolded(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, frames):
        b, t, c, h, w = frames.shape
        x = self.conv(frames.flatten(0, 1))
        x = x.view(b, t, 8, h, w)
        out = torch.zeros_like(x)
        out[:, :-1, :2] = x[:, 1:, :2]
        out[:, 1:, 2:4] = x[:, :-1, 2:4]
        out[:, :, 4:] = x[:, :, 4:]
        return out.mean((-1, -2)) / t


@case("x: f32[b, 4, h, w]")
class NonLocalSubsampled(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Conv2d(4, 2, 1)
        self.phi = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        stride = 2 if h * w > 64 else 1
        sub = x[:, :, ::stride, ::stride]
        q = self.theta(x).flatten(2).transpose(1, 2)
        k = self.phi(sub).flatten(2)
        f = torch.matmul(q, k)
        y = (f / f.size(-1)) @ sub.flatten(2).transpose(1, 2)
        return y.transpose(1, 2).reshape(b, c, h, w) + x


@case("x: f32[b, 3, h, w]")
class TileBlendWeights(nn.Module):
    """Weights of a tile that fall towards its edges."""

    def ramp(self, n, overlap):
        r = np.ones(n, dtype=np.float32)
        k = min(overlap, n // 2)
        r[:k] = (np.arange(k) + 1) / (k + 1)
        r[n - k:] = r[:k][::-1]
        return r

    def forward(self, x):
        h, w = x.shape[2:]
        weight = np.outer(self.ramp(h, 4), self.ramp(w, 4))
        return x * torch.from_numpy(weight)


@case("x: f32[b, 4, h, w]")
class FpnTopDownBySize(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Conv2d(4, 4, 3, 2, 1) for _ in range(3)])
        self.lateral = nn.ModuleList([nn.Conv2d(4, 3, 1) for _ in range(4)])

    def forward(self, x):
        feats = OrderedDict(p0=x)
        for i, s in enumerate(self.stages):
            x = torch.relu(s(x))
            feats[f"p{i + 1}"] = x
        outs, last = [], None
        for (name, f), lat in reversed(list(zip(feats.items(), self.lateral))):
            y = lat(f)
            if last is not None:
                y = y + F.interpolate(last, size=f.shape[-2:], mode="nearest")
            last = y
            outs.append(y.mean((2, 3)))
        return last, torch.stack(outs, 1)


@case("x: f32[b, 4, h, w]")
class AxialPooledGate(nn.Module):
    """Coordinate attention: rows and columns as one long strip, cut again."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 2, 1)
        self.fh = nn.Conv2d(2, 4, 1)
        self.fw = nn.Conv2d(2, 4, 1)

    def forward(self, x):
        n, c, h, w = x.size()
        xh = F.adaptive_avg_pool2d(x, (h, 1))
        xw = F.adaptive_avg_pool2d(x, (1, w)).permute(0, 1, 3, 2)
        y = F.hardswish(self.conv(torch.cat([xh, xw], dim=2)))
        yh, yw = torch.split(y, [h, w], dim=2)
        return x * self.fh(yh).sigmoid() * self.fw(yw.permute(0, 1, 3, 2)).sigmoid()


@case("x: f32[b, 3, h, w]")
class SpaceToDepthByFactor(nn.Module):
    def __init__(self, bs=2):
        super().__init__()
        self.bs = bs

    def forward(self, x):
        bs = self.bs
        x = x[:, :, : max(x.shape[2] // bs, 1) * bs, : max(x.shape[3] // bs, 1) * bs]
        x = F.pad(x, (0, x.shape[3] % bs, 0, x.shape[2] % bs))
        N, C, H, W = x.size()
        x = x.view(N, C, H // bs, bs, W // bs, bs)
        x = x.permute(0, 3, 5, 1, 2, 4).contiguous()
        return x.view(N, C * bs ** 2, H // bs, W // bs)


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class HalfPixelResizeByGrid(nn.Module):
    """A bilinear resize to half, with its own grid."""

    def forward(self, x):
        b, _, h, w = x.shape
        oh, ow = h // 2, w // 2
        ys = (torch.arange(oh).float() + 0.5) * (h / oh) / h * 2 - 1
        xs = (torch.arange(ow).float() + 0.5) * (w / ow) / w * 2 - 1
        grid = torch.stack(torch.meshgrid(ys, xs, indexing="ij")[::-1], -1)
        return F.grid_sample(x, grid.expand(b, -1, -1, -1), align_corners=False)


@case("x: f32[b, 4, h, w]")
class FourierLowPassByRatio(nn.Module):
    def __init__(self, ratio=0.3):
        super().__init__()
        self.ratio = ratio

    def forward(self, x):
        h, w = x.shape[-2:]
        ky = np.minimum(np.arange(h), h - np.arange(h))
        kx = np.minimum(np.arange(w), w - np.arange(w))
        keep = (ky[:, None] <= h * self.ratio) & (kx[None] <= w * self.ratio)
        f = torch.fft.fft2(x) * torch.from_numpy(keep)
        return torch.fft.ifft2(f).real
