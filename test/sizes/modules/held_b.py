"""Held out: images, clips, grids, pyramids and detection heads."""
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from case import case


@dataclass
class Box:
    top: int
    left: int
    height: int
    width: int

    @classmethod
    def centred(cls, h, w, side):
        return cls((h - side) // 2, (w - side) // 2, side, side)

    def of(self, x):
        return x[..., self.top:self.top + self.height, self.left:self.left + self.width]


def make_divisible(v, divisor=8, least=None):
    new = max(least or divisor, int(v + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * v else new


def out_size(n, k, s=1, p=0, d=1):
    return (n + 2 * p - d * (k - 1) - 1) // s + 1


def to_tokens(x):
    return x.flatten(2).transpose(1, 2)


@case("x: f32[b, 3, h, w]")
class LargestCentredSquare(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        y = Box.centred(h, w, min(h, w)).of(x)
        return F.interpolate(y, size=(10, 10), mode="bilinear", align_corners=False)


@case("x: f32[b, 3, h, w]")
class ResizeToMakeDivisible(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 8, stride=8)

    def forward(self, x):
        h, w = (make_divisible(s) for s in x.shape[2:])
        x = F.interpolate(x, size=(h, w), mode="nearest")
        return self.stem(x)


@case("x: f32[b, 4, h, w]", most={"b": 32, "h": 40, "w": 40})
class SpatialReductionAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.sr = nn.Conv2d(4, 4, 2, stride=2)
        self.norm = nn.LayerNorm(4)
        self.kv = nn.Linear(4, 8)

    def forward(self, x):
        B, C, H, W = x.shape
        N = H * W
        q = to_tokens(x)
        red = self.sr(F.pad(x, (0, W % 2, 0, H % 2))).reshape(B, C, -1).permute(0, 2, 1)
        kv = self.kv(self.norm(red)).reshape(B, -1, 2, 2, C // 2).permute(2, 0, 3, 1, 4)
        q = q.reshape(B, N, 2, C // 2).permute(0, 2, 1, 3)
        attn = (q @ kv[0].transpose(-2, -1)) * (C // 2) ** -0.5
        return (attn.softmax(dim=-1) @ kv[1]).transpose(1, 2).reshape(B, N, C)


@case("tokens: f32[b, 1 + h*h, 6]", most={"h": 14})
class ClassTokenSplitFromSquareGrid(nn.Module):
    def __init__(self):
        super().__init__()
        self.dw = nn.Conv2d(6, 6, 3, padding=1, groups=6)

    def forward(self, tokens):
        b, n, c = tokens.shape
        cls, grid = tokens.split([1, n - 1], dim=1)
        side = round((n - 1) ** 0.5)
        grid = grid.transpose(1, 2).view(b, c, side, side)
        grid = self.dw(grid).flatten(2).transpose(1, 2)
        return torch.cat([cls, grid], dim=1)


@case("x: f32[b, h, w, 4]")
class WindowsOfFiveReversed(nn.Module):
    ws = 5

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        b, h, w, c = x.shape
        nh, nw = -(-h // self.ws), -(-w // self.ws)
        x = F.pad(x, (0, 0, 0, nw * self.ws - w, 0, nh * self.ws - h))
        win = x.view(b, nh, self.ws, nw, self.ws, c).permute(0, 1, 3, 2, 4, 5)
        win = win.reshape(-1, self.ws ** 2, c)
        win = win - self.fc(win).mean(dim=1, keepdim=True)
        back = win.view(b, nh, nw, self.ws, self.ws, c).permute(0, 1, 3, 2, 4, 5)
        return back.reshape(b, nh * self.ws, nw * self.ws, c)[:, :h, :w]


@case("x: f32[b, 4, h, w]", least={"h": 2, "w": 2}, most={"b": 40})
class GridAttentionTwoByTwo(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        gh, gw = h // 2, w // 2
        x = x[:, :, :gh * 2, :gw * 2]
        grid = x.reshape(b, c, 2, gh, 2, gw).permute(0, 3, 5, 2, 4, 1).reshape(b * gh * gw, 4, c)
        y = F.scaled_dot_product_attention(grid, grid, grid)
        y = y.view(b, gh, gw, 2, 2, c).permute(0, 5, 3, 1, 4, 2)
        return y.reshape(b, c, 2 * gh, 2 * gw)


@case("x: f32[b, 3, h, w]", least={"h": 6, "w": 6})
class FiveCropsStacked(nn.Module):
    size = 6

    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 4, 6)

    def forward(self, x):
        h, w = x.shape[-2:]
        s = self.size
        cy, cx = int(round((h - s) / 2.0)), int(round((w - s) / 2.0))
        crops = [x[..., :s, :s], x[..., :s, w - s:w], x[..., h - s:h, :s], x[..., h - s:, w - s:],
                 x[..., cy:cy + s, cx:cx + s]]
        crops = torch.stack(crops, dim=1)
        y = self.net(crops.view(-1, 3, s, s))
        return y.view(x.shape[0], len(crops[0]), -1).mean(1)


@case("x: f32[b, 2, h, w]")
class CropSixtyPercentThenBack(nn.Module):
    def forward(self, x):
        h, w = x.shape[2], x.shape[3]
        ch, cw = max(int(h * 0.6), 1), max(int(w * 0.6), 1)
        top, left = (h - ch) // 2, (w - cw) // 2
        inner = x[:, :, top:top + ch, left:left + cw].mean(1, keepdim=True)
        back = F.pad(inner, (left, w - cw - left, top, h - ch - top))
        return x + back * (h * w) / (ch * cw)


@case("x: f32[b, 3, h, w]")
class PadAspectToFourByThree(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        target_w = max(w, math.ceil(h * 4 / 3))
        target_h = max(h, math.ceil(w * 3 / 4))
        dw, dh = target_w - w, target_h - h
        canvas = x.new_full((b, c, target_h, target_w), 0.25)
        canvas[:, :, dh // 2:dh // 2 + h, dw // 2:dw // 2 + w] = x
        return canvas


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class PyramidByHalvesAndThirds(nn.Module):
    def __init__(self):
        super().__init__()
        self.lateral = nn.Conv2d(3, 4, 1)

    def forward(self, x):
        h, w = x.shape[-2:]
        sizes = [(max(h // k, 1), max(w // k, 1)) for k in (1, 2, 3)]
        levels = [F.adaptive_avg_pool2d(self.lateral(x), s) for s in sizes]
        top = levels[-1]
        for level in levels[-2::-1]:
            top = level + F.interpolate(top, size=level.shape[-2:], mode="nearest")
        return top, levels[-1].mean(dim=(2, 3))


@case("x: f32[b, 4, h, w]")
class SpatialSoftmaxExpectedXy(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(1) * 0.7)

    def forward(self, x):
        b, c, h, w = x.shape
        px, py = np.meshgrid(np.linspace(-1.0, 1.0, w), np.linspace(-1.0, 1.0, h))
        px = torch.from_numpy(px.reshape(h * w)).float()
        py = torch.from_numpy(py.reshape(h * w)).float()
        p = F.softmax(x.reshape(-1, h * w) / self.temperature, dim=-1)
        ex = torch.sum(px * p, dim=1, keepdim=True)
        ey = torch.sum(py * p, dim=1, keepdim=True)
        return torch.cat([ex, ey], 1).view(-1, c * 2)


@case("x: f32[b, 2, h, w]")
class CoordinateChannelsCentredPixels(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 3, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        b, _, h, w = x.shape
        ys = (torch.arange(h) + 0.5) / h
        xs = (torch.arange(w) + 0.5) / w
        yy, xx = torch.meshgrid(ys, xs, indexing="ij")
        coords = torch.stack((xx, yy)).unsqueeze(0).expand(b, -1, -1, -1)
        return self.conv(torch.cat((x, coords), dim=1))


@case("x: f32[b, 4, h, w]")
class RaysFromFieldOfView(nn.Module):
    fov = 60.0

    def forward(self, x):
        h, w = x.shape[-2:]
        focal = 0.5 * w / math.tan(math.radians(self.fov) / 2)
        i, j = torch.meshgrid(torch.arange(w).float(), torch.arange(h).float(), indexing="xy")
        dirs = torch.stack([(i - w * 0.5) / focal, -(j - h * 0.5) / focal,
                            -torch.ones_like(i)], dim=-1)
        dirs = dirs / dirs.norm(dim=-1, keepdim=True)
        return torch.einsum("bchw,hwd->bcd", x, dirs) / (h * w)


@case("depth: f32[b, 1, h, w]")
class DepthUnprojectedToPoints(nn.Module):
    def forward(self, depth):
        b, _, h, w = depth.shape
        f = float(max(h, w))
        K_inv = torch.tensor([[1 / f, 0.0, -w / 2 / f], [0.0, 1 / f, -h / 2 / f], [0.0, 0.0, 1.0]])
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        pix = torch.stack([x.flatten(), y.flatten(), torch.ones(h * w)], dim=0)
        return (K_inv @ pix).unsqueeze(0) * depth.reshape(b, 1, h * w).abs()


@case("cls: f32[b, 6, h, w]", "image: f32[b, 3, 8*h, 8*w]", most={"b": 8, "h": 25, "w": 25})
class StrideFromImageOverFeature(nn.Module):
    def forward(self, cls, image):
        fh, fw = cls.shape[-2:]
        stride_h = image.shape[-2] // fh
        stride_w = image.shape[-1] // fw
        sy = torch.arange(fh) * stride_h + stride_h // 2
        sx = torch.arange(fw) * stride_w + stride_w // 2
        centres = torch.cartesian_prod(sy, sx).float()
        scores = cls.permute(0, 2, 3, 1).reshape(cls.shape[0], -1, 6).sigmoid()
        best, label = scores.max(-1)
        return centres, best, label


@case("x: f32[b, 4, h, w]")
class RetinaHeadThreeRatios(nn.Module):
    ratios, scale, stride = (0.5, 1.0, 2.0), 4.0, 8

    def __init__(self):
        super().__init__()
        self.reg = nn.Conv2d(4, 12, 3, padding=1)

    def forward(self, x):
        d = self.reg(x)
        n, _, h, w = d.shape
        r = torch.sqrt(torch.tensor(self.ratios))
        wh = torch.stack([self.scale * self.stride / r, self.scale * self.stride * r], 1)
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = torch.stack([gx, gy], -1).view(h * w, 1, 2) * self.stride
        centre = centre.expand(h * w, 3, 2).reshape(-1, 2)
        d = d.view(n, 3, 4, h, w).permute(0, 3, 4, 1, 2).reshape(n, h * w * 3, 4)
        sizes = wh.repeat(h * w, 1)
        limit = torch.tensor([w * self.stride, h * self.stride])
        xy = torch.minimum((centre + d[..., :2] * sizes).clamp(min=0), limit)
        return torch.cat([xy, sizes * d[..., 2:].clamp(max=4).exp()], dim=-1)


@case("heat: f32[b, 3, h, w]", least={"h": 3, "w": 3})
class CentreNetTopPeaks(nn.Module):
    k = 9

    def forward(self, heat):
        b, c, h, w = heat.size()
        peak = F.max_pool2d(heat, 3, stride=1, padding=1)
        heat = torch.where(peak == heat, heat.sigmoid(), 0.5 * heat.sigmoid())
        scores, inds = torch.topk(heat.view(b, -1), self.k)
        classes = inds // (h * w)
        inds = inds % (h * w)
        ys, xs = (inds // w).float(), (inds % w).float()
        return scores, classes, ys / h, xs / w


@case("x: f32[b, 8, h, w]", most={"b": 32})
class PixelShuffleByHandThenTrim(nn.Module):
    r = 2

    def forward(self, x):
        b, c, h, w = x.shape
        oc = c // self.r ** 2
        y = x.view(b, oc, self.r, self.r, h, w).permute(0, 1, 4, 2, 5, 3)
        y = y.reshape(b, oc, h * self.r, w * self.r)
        return y[..., 1:-1, 1:-1] if min(h, w) > 1 else y


@case("x: f32[b, 2, h, w]")
class SpaceToDepthThreeWithEdgePad(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(18, 5, 1)

    def forward(self, x):
        h, w = x.shape[-2:]
        x = F.pad(x, (0, (3 - w % 3) % 3, 0, (3 - h % 3) % 3), mode="replicate")
        b, c, H, W = x.shape
        x = x.view(b, c, H // 3, 3, W // 3, 3).permute(0, 1, 3, 5, 2, 4)
        return self.mix(x.reshape(b, c * 9, H // 3, W // 3))


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class PatchesByTwoUnfolds(nn.Module):
    size, step = 4, 2

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(48, 6)

    def forward(self, x):
        p = x.unfold(2, self.size, self.step).unfold(3, self.size, self.step)
        b, c, nh, nw = p.shape[:4]
        p = p.permute(0, 2, 3, 1, 4, 5).contiguous().view(b, nh * nw, -1)
        grid = torch.arange(nh * nw).view(1, nh * nw, 1) / (nh * nw)
        return self.proj(p) + grid, p.mean(dim=-1).view(b, nh, nw)


@case("x: f32[b, 3, h, w]")
class PatchDropKeepsQuarterByNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 3, stride=2, padding=1)

    def forward(self, x):
        t = to_tokens(self.embed(x))
        n = t.shape[1]
        keep = max(1, int(n * (1 - 0.75)))
        ids = t.norm(dim=-1).argsort(dim=1, descending=True)[:, :keep]
        kept = torch.gather(t, 1, ids.unsqueeze(-1).repeat(1, 1, t.shape[2]))
        return kept.mean(1), kept.sum(1) / n


@case("x: f32[b, 4, h, w]")
class ChannelsSummedWithRowPrior(nn.Module):
    def forward(self, x):
        _, _, h, w = x.shape
        prior = torch.tensor([1 - abs(2 * i / h - 1) for i in range(h)])
        horizon = round(h / 3)
        lower = x[:, :, horizon:].sum(dim=(2, 3)) / ((h - horizon) * w)
        return x * prior.view(-1, 1), lower


@case("x: f32[b, 3, h, w]", least={"h": 3, "w": 3})
class SobelOnReflectedBorder(nn.Module):
    def __init__(self):
        super().__init__()
        k = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
        self.register_buffer("k", torch.stack([k, k.t()]).unsqueeze(1))

    def forward(self, x):
        b, c, h, w = x.shape
        y = x.reshape(b * c, 1, h, w)
        y = F.conv2d(F.pad(y, (1, 1, 1, 1), mode="reflect"), self.k)
        mag = (y.pow(2).sum(1) + 1e-4).sqrt().view(b, c, h, w)
        return mag / mag.mean(dim=(-2, -1), keepdim=True), mag.flatten(1).amax(1) / (h + w)


@case("x: f32[b, 2, h, w]", least={"h": 11, "w": 11}, most={"b": 40})
class StructuralSimilarityWithItsFlip(nn.Module):
    def __init__(self):
        super().__init__()
        g = [math.exp(-((i - 5) ** 2) / 4.5) for i in range(11)]
        self.register_buffer("g", torch.tensor(g) / sum(g))

    def blur(self, x):
        c = x.shape[1]
        x = F.conv2d(x, self.g.view(1, 1, -1, 1).repeat(c, 1, 1, 1), groups=c)
        return F.conv2d(x, self.g.view(1, 1, 1, -1).repeat(c, 1, 1, 1), groups=c)

    def forward(self, x):
        y = x.flip(-1)
        mx, my = self.blur(x), self.blur(y)
        sx, sy = self.blur(x * x) - mx ** 2, self.blur(y * y) - my ** 2
        sxy = self.blur(x * y) - mx * my
        s = (2 * mx * my + 0.01) * (2 * sxy + 0.09)
        return (s / ((mx ** 2 + my ** 2 + 0.01) * (sx + sy + 0.09))).mean((1, 2, 3))


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class RegionMeansOnThreeByThree(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        ys = np.linspace(0, h, 4).astype(int)
        xs = np.linspace(0, w, 4).astype(int)
        cells = []
        for y0, y1 in zip(ys[:-1], ys[1:]):
            for x0, x1 in zip(xs[:-1], xs[1:]):
                cell = x[:, :, y0:max(y1, y0 + 1), x0:max(x1, x0 + 1)]
                cells.append(cell.mean(dim=(2, 3)))
        return torch.stack(cells, dim=-1).view(x.size(0), 3, 3, 3)


@case("x: f32[b, 4, h, w]", most={"b": 24, "h": 48, "w": 48})
class CrissCrossSums(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        rows = x.permute(0, 2, 1, 3).reshape(b * h, c, w)
        cols = x.permute(0, 3, 1, 2).reshape(b * w, c, h)
        aw = torch.bmm(rows.transpose(1, 2), rows) / c
        ah = torch.bmm(cols.transpose(1, 2), cols) / c
        ah = ah - 1e4 * torch.eye(h).unsqueeze(0).expand(b * w, h, h) * (h > 1)
        yw = torch.bmm(rows, aw.softmax(-1).transpose(1, 2)).view(b, h, c, w).permute(0, 2, 1, 3)
        yh = torch.bmm(cols, ah.softmax(-1).transpose(1, 2)).view(b, w, c, h).permute(0, 2, 3, 1)
        return yw + yh


@case("x: f32[b, 6, h, w]")
class FourWayShiftGroups(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Conv2d(6, 6, 1)

    def forward(self, x):
        B, C, H, W = x.shape
        g = C // 6
        out = x.clone()
        out[:, :g, :, :-1] = x[:, :g, :, 1:]
        out[:, g:2 * g, :, 1:] = x[:, g:2 * g, :, :W - 1]
        out[:, 2 * g:3 * g, :H - 1] = x[:, 2 * g:3 * g, 1:]
        out[:, 3 * g:4 * g, 1:] = x[:, 3 * g:4 * g, :-1]
        return self.fc(out)


@case("x: f32[b, 2, h, w]")
class RolledByHalfAndThird(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        centred = torch.roll(x, shifts=(h // 2, w // 2), dims=(-2, -1))
        back = torch.roll(centred, (-(h // 2), -(w // 2)), dims=(-2, -1))
        return centred - 0.5 * x.roll(h // 3, dims=2), back


@case("x: f32[b, 3, h, w]", "skip: f32[b, 2, h2, w2]", most={"b": 20})
class UpBlockMatchesSkipByPadOrCrop(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 3, 2, stride=2)
        self.conv = nn.Conv2d(5, 4, 3, padding=1)

    def forward(self, x, skip):
        x = self.up(x)
        dy = skip.size()[2] - x.size()[2]
        dx = skip.size()[3] - x.size()[3]
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([skip, x], dim=1))


@case("x: f32[b, 3, h, w]")
class ConvStackGridMatchesFormula(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 7, stride=2, padding=3)
        self.b = nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.pos = nn.Parameter(torch.randn(1, 6, 5, 5))

    def forward(self, x):
        h, w = (out_size(out_size(n, 7, 2, 3), 3, 2, 1) for n in x.shape[2:])
        y = F.relu(self.b(F.relu(self.a(x))))
        pos = F.interpolate(self.pos, size=(h, w), mode="bilinear", align_corners=False)
        return (y + pos).view(-1, 6, h * w).permute(0, 2, 1)


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class ScaleSoAreaIsFixed(nn.Module):
    area = 144

    def forward(self, x):
        h, w = x.shape[-2:]
        s = math.sqrt(self.area / (h * w))
        nh, nw = max(1, int(h * s)), max(1, int(w * s))
        y = F.interpolate(x, size=(nh, nw), mode="bilinear", align_corners=True)
        return y, y.mean(dim=(2, 3)) * s


@case("x: f32[b, 2, h, w]")
class DilatedContextQuarterRates(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 1, 3, 3) / 3)

    def forward(self, x):
        if x.shape[-1] >= 16:
            rate = 4
        else:
            rate = 1
        y = F.conv2d(x, self.weight, padding=rate, dilation=rate, groups=2)
        return x + F.gelu(y)


@case("x: f32[b, 3, h, w]", most={"b": 12, "h": 70, "w": 70})
class SlidingWindowInferenceCounts(nn.Module):
    crop, stride = 8, 5

    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x):
        b, _, h, w = x.shape
        nh = max(h - self.crop + self.stride - 1, 0) // self.stride + 1
        nw = max(w - self.crop + self.stride - 1, 0) // self.stride + 1
        preds, count = x.new_zeros(b, 2, h, w), x.new_zeros(b, 1, h, w)
        for i in range(nh):
            for j in range(nw):
                y2, x2 = min(i * self.stride + self.crop, h), min(j * self.stride + self.crop, w)
                y1, x1 = max(y2 - self.crop, 0), max(x2 - self.crop, 0)
                out = self.net(x[:, :, y1:y2, x1:x2])
                preds = preds + F.pad(out, (x1, w - x2, y1, h - y2))
                count[:, :, y1:y2, x1:x2] += 1
        return preds / count


@case("x: f32[b, t, 3, h, w]", least={"t": 2}, most={"b": 6, "t": 40, "h": 24, "w": 24})
class FrameDifferencesAndSegments(nn.Module):
    segments = 4

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)

    def forward(self, x):
        b, t, c, h, w = x.shape
        diff = (x[:, 1:] - x[:, :-1]).abs().mean(dim=(2, 3, 4))
        tick = t / float(self.segments)
        pick = [int(tick / 2.0 + tick * i) for i in range(self.segments)]
        y = self.conv(x[:, pick].reshape(-1, c, h, w))
        y = y.mean((2, 3)).view(b, self.segments, -1)
        return y.mean(1), diff.sum(1) / (t - 1)


@case("x: f32[b, 4, t, h, w]", most={"b": 6, "t": 24, "h": 24, "w": 24})
class SpaceTimeFactorisedPools(nn.Module):
    def __init__(self):
        super().__init__()
        self.temporal = nn.Conv1d(4, 5, 3, padding=1)

    def forward(self, x):
        b, c, t, h, w = x.shape
        seq = x.permute(0, 3, 4, 1, 2).reshape(b * h * w, c, t)
        seq = self.temporal(seq).view(b, h, w, -1, t)
        return seq.sum(dim=(1, 2)) / (h * w), seq.mean(-1).permute(0, 3, 1, 2) * t ** 0.5


@case("mask: f32[b, 1, h, w]", "feat: f32[b, 5, h2, w2]", most={"b": 24})
class MaskedAveragePrototype(nn.Module):
    def forward(self, mask, feat):
        h, w = mask.shape[-2:]
        f = F.interpolate(feat, size=(h, w), mode="bilinear", align_corners=True)
        m = mask.sigmoid()
        proto = (f * m).sum(dim=(2, 3)) / (m.sum(dim=(2, 3)) + 1e-5)
        ratio = h * w / (feat.shape[-2] * feat.shape[-1])
        return proto, F.cosine_similarity(feat, proto[..., None, None], dim=1), m.mean() * ratio


@case("x: f32[b, 4, h, w]", "boxes: f32[n, 4]", least={"h": 2, "w": 2}, most={"b": 24})
class BoxesNormalisedAndClipped(nn.Module):
    def forward(self, x, boxes):
        H, W = x.shape[-2:]
        boxes = boxes.sigmoid() * torch.tensor([W, H, W, H])
        x1y1, x2y2 = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
        x2y2 = torch.min(x2y2, torch.tensor([[W - 1.0, H - 1.0]]))
        wh = (x2y2 - x1y1).clamp(min=0)
        area = wh.prod(dim=1) / ((W - 1) * (H - 1))
        return torch.cat([x1y1, x2y2], 1) / x.new_tensor([W, H, W, H]), area


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class PyramidUnrolledTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(2))

    def forward(self, x):
        size = np.array(x.shape[2:])
        sizes = [tuple(int(s) for s in np.maximum(size // 2 ** k, 1)) for k in (1, 2)]
        feats = [x]
        for conv, s in zip(self.convs, sizes):
            feats.append(F.interpolate(torch.tanh(conv(feats[-1])), size=s, mode="area"))
        ups = [F.interpolate(f, size=tuple(x.shape[-2:]), mode="nearest") for f in feats[1:]]
        return torch.cat([x] + ups, dim=1)


@case("x: f32[b, 4, h, w]")
class RoundedScaleFactorUpsample(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        y = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        z = F.interpolate(y, scale_factor=0.5, mode="nearest", recompute_scale_factor=True)
        return y[:, :, h // 2:h // 2 + h, w // 2:w // 2 + w], z + x


@case("x: f32[b, 6, h, w]", most={"b": 24})
class EfficientGlobalContextNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = nn.Conv2d(6, 1, 1)
        self.t = nn.Sequential(nn.Conv2d(6, 3, 1), nn.LayerNorm([3, 1, 1]), nn.Conv2d(3, 6, 1))

    def forward(self, x):
        n, c, h, w = x.size()
        weight = self.k(x).view(n, 1, -1).softmax(-1).unsqueeze(-1)
        context = x.view(n, 1, c, h * w) @ weight.view(n, 1, h * w, 1)
        return x + self.t(context.view(n, c, 1, 1)) / math.log(h * w + 1)
