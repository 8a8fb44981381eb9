"""Images: coordinate grids, anchors, position tables, channel groups, batch-dependent things."""
import itertools
import math

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

from case import case


def pixel_grid(h, w):
    ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    return torch.stack([xs, ys], dim=-1).float()


def normalised_axis(n):
    return torch.linspace(-1, 1, n)


@case("x: f32[b, 2, h, w]")
class CoordConvLinspace(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        b, _, h, w = x.shape
        ys = normalised_axis(h).view(1, 1, h, 1).expand(b, 1, h, w)
        xs = normalised_axis(w).view(1, 1, 1, w).expand(b, 1, h, w)
        return self.conv(torch.cat([x, ys, xs], dim=1))


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class CoordConvWithRadius(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(5, 3, 1)

    def forward(self, x):
        batch, _, xd, yd = x.size()
        xx = torch.arange(xd).repeat(1, yd, 1).transpose(1, 2).float() / (xd - 1) * 2 - 1
        yy = torch.arange(yd).repeat(1, xd, 1).float() / (yd - 1) * 2 - 1
        xx = xx.repeat(batch, 1, 1, 1)
        yy = yy.repeat(batch, 1, 1, 1)
        rr = torch.sqrt((xx - 0.5) ** 2 + (yy - 0.5) ** 2)
        return self.conv(torch.cat([x, xx, yy, rr], 1))


@case("x: f32[b, 4, h, w]")
class FcosLocationsAndBoxes(nn.Module):
    STRIDE = 8

    def __init__(self):
        super().__init__()
        self.reg = nn.Conv2d(4, 4, 3, padding=1)

    def locations(self, h, w):
        s = self.STRIDE
        shifts_x = torch.arange(0, w * s, step=s, dtype=torch.float32)
        shifts_y = torch.arange(0, h * s, step=s, dtype=torch.float32)
        y, x = torch.meshgrid(shifts_y, shifts_x, indexing="ij")
        return torch.stack((x.reshape(-1), y.reshape(-1)), dim=1) + s // 2

    def forward(self, x):
        h, w = x.size()[-2:]
        d = F.relu(self.reg(x)).flatten(2).transpose(1, 2) * self.STRIDE
        loc = self.locations(h, w)[None]
        return torch.cat([loc - d[..., :2], loc + d[..., 2:]], -1)


@case("x: f32[b, 3, h, w]")
class AnchorsOverTwoLevels(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.strides = [2, 4]
        self.sizes = {2: (4., 8.), 4: (16., 24.)}

    def anchors(self, h, w, stride):
        sizes = torch.tensor(self.sizes[stride])
        half = torch.stack([-sizes, -sizes, sizes, sizes], 1) / 2
        centre = (pixel_grid(h, w).view(-1, 2) + 0.5) * stride
        return (centre.repeat(1, 2)[:, None] + half[None]).reshape(-1, 4)

    def forward(self, x):
        outs = []
        for s in self.strides:
            f = F.avg_pool2d(x, s, ceil_mode=True)
            delta = self.conv(f).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
            outs.append(self.anchors(*f.shape[-2:], s) + delta)
        return torch.cat(outs, 1)


@case("p: f32[b, 14, h, w]")
class YoloHeadDecode(nn.Module):
    def __init__(self):
        super().__init__()
        self.na, self.no = 2, 7
        self.register_buffer("anchors", torch.tensor([[1.25, 1.6], [2.0, 3.75]]))

    def forward(self, p):
        bs, _, ny, nx = p.shape
        y = p.view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        xy, wh, conf = y.split((2, 2, self.no - 4), 4)
        xy = (xy * 2 + pixel_grid(ny, nx).view(1, 1, ny, nx, 2) - 0.5) * 8
        wh = (wh * 2) ** 2 * self.anchors.view(1, self.na, 1, 1, 2)
        return torch.cat((xy, wh, conf), 4).view(bs, self.na * nx * ny, self.no)


@case("x: f32[b, 8, h, w]", "mask: bool[b, h, w]")
class SinePositionsFromPaddingMask(nn.Module):
    def forward(self, x, mask):
        not_mask = ~mask
        y = not_mask.cumsum(1, dtype=torch.float32)
        z = not_mask.cumsum(2, dtype=torch.float32)
        y = y / (y[:, -1:, :] + 1e-1) * 2 * math.pi
        z = z / (z[:, :, -1:] + 1e-1) * 2 * math.pi
        dim_t = torch.arange(4, dtype=torch.float32)
        dim_t = 100 ** (2 * torch.div(dim_t, 2, rounding_mode="floor") / 4)
        py, pz = y[..., None] / dim_t, z[..., None] / dim_t
        py = torch.stack((py[..., 0::2].sin(), py[..., 1::2].cos()), dim=4).flatten(3)
        pz = torch.stack((pz[..., 0::2].sin(), pz[..., 1::2].cos()), dim=4).flatten(3)
        return x + torch.cat((py, pz), dim=3).permute(0, 3, 1, 2)


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class VitWithResizedPositionTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = 6
        self.proj = nn.Conv2d(3, 8, 4, stride=4)
        self.cls = nn.Parameter(torch.randn(1, 1, 8))
        self.pos = nn.Parameter(torch.randn(1, 1 + self.grid ** 2, 8))
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def positions(self, h, w):
        if h == self.grid and w == self.grid:
            return self.pos
        table = self.pos[:, 1:].reshape(1, self.grid, self.grid, 8).permute(0, 3, 1, 2)
        table = F.interpolate(table, size=(h, w), mode="bicubic", align_corners=False)
        return torch.cat([self.pos[:, :1], table.permute(0, 2, 3, 1).reshape(1, -1, 8)], 1)

    def forward(self, x):
        x = self.proj(x)
        b, _, h, w = x.shape
        x = torch.cat([self.cls.expand(b, -1, -1), x.flatten(2).transpose(1, 2)], 1)
        x = x + self.positions(h, w)
        return x + self.attn(x, x, x, need_weights=False)[0]


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class DinoPositionsByScaleFactor(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(2, 4, 2, stride=2)
        self.pos_embed = nn.Parameter(torch.randn(1, 16, 4))

    def interpolate_pos(self, x, w, h):
        npatch, n = x.shape[1], self.pos_embed.shape[1]
        if npatch == n and w == h:
            return self.pos_embed
        w0, h0 = w // 2 + 0.1, h // 2 + 0.1
        side = int(math.sqrt(n))
        table = F.interpolate(
            self.pos_embed.reshape(1, side, side, 4).permute(0, 3, 1, 2),
            scale_factor=(w0 / math.sqrt(n), h0 / math.sqrt(n)), mode="bilinear")
        return table.permute(0, 2, 3, 1).view(1, -1, 4)

    def forward(self, x):
        w, h = x.shape[-2:]
        x = self.proj(x).flatten(2).transpose(1, 2)
        return x + self.interpolate_pos(x, w, h)


@case("x: f32[b, 8, h, w]", most={"h": 64, "w": 64})
class RowAndColumnEmbeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.row = nn.Embedding(64, 4)
        self.col = nn.Embedding(64, 4)

    def forward(self, x):
        h, w = x.shape[-2:]
        xe = self.col(torch.arange(w))
        ye = self.row(torch.arange(h))
        pos = torch.cat([xe.unsqueeze(0).repeat(h, 1, 1), ye.unsqueeze(1).repeat(1, w, 1)], -1)
        return x + pos.permute(2, 0, 1).unsqueeze(0).repeat(x.shape[0], 1, 1, 1)


@case("x: f32[b, 8, h, w]", most={"h": 40, "w": 40})
class RelativeBiasTableTwoAxes(nn.Module):
    LIMIT = 40

    def __init__(self):
        super().__init__()
        self.h_table = nn.Parameter(torch.randn(2 * self.LIMIT - 1, 2))
        self.w_table = nn.Parameter(torch.randn(2 * self.LIMIT - 1, 2))
        self.qkv = nn.Conv2d(8, 24, 1)

    def bias(self, table, n):
        pos = torch.arange(n)
        return table[pos[:, None] - pos[None, :] + self.LIMIT - 1]

    def forward(self, x):
        x = F.avg_pool2d(x, 4, ceil_mode=True)
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).view(b, 3, 2, c // 2, h * w).unbind(1)
        logits = torch.einsum("bndi,bndj->bnij", q, k) / math.sqrt(c // 2)
        bias = (self.bias(self.h_table, h)[:, None, :, None]
                + self.bias(self.w_table, w)[None, :, None, :])
        logits = logits + bias.reshape(h * w, h * w, 2).permute(2, 0, 1)
        return torch.einsum("bnij,bndj->bndi", logits.softmax(-1), v).reshape(b, c, h, w)


@case("x: f32[b, 3, h, w]")
class SoftArgmaxKeypoints(nn.Module):
    def __init__(self):
        super().__init__()
        self.heat = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x):
        heat = self.heat(x)
        n, k, h, w = heat.shape
        p = F.softmax(heat.view(n, k, -1), dim=2).view(n, k, h, w)
        px = (p.sum(2) * torch.arange(w).float()).sum(-1)
        py = (p.sum(3) * torch.arange(h).float()).sum(-1)
        return torch.stack([px, py], -1)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class SpatialTransformerAffine(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Linear(2, 6)
        nn.init.normal_(self.loc.weight, std=0.1)
        self.loc.bias.data = torch.tensor([0.9, 0.1, 0.05, -0.1, 0.8, 0.02])

    def forward(self, x):
        theta = self.loc(x.mean((2, 3))).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.size()), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


@case("x: f32[b, 2, h, w]", "flow: f32[b, 2, h, w]")
class FlowWarpNormalised(nn.Module):
    def forward(self, x, flow):
        _, _, h, w = x.size()
        v = pixel_grid(h, w).unsqueeze(0) + flow.permute(0, 2, 3, 1)
        vx = 2.0 * v[..., 0] / max(w - 1, 1) - 1.0
        vy = 2.0 * v[..., 1] / max(h - 1, 1) - 1.0
        grid = torch.stack((vx, vy), dim=3)
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)


@case("x: f32[b, 4, h, w]", "points: f32[b, n, 2]")
class FeaturesAtPixelPoints(nn.Module):
    def forward(self, x, points):
        h, w = x.shape[-2:]
        size = torch.tensor([w, h], dtype=torch.float32)
        pts = torch.sigmoid(points) * size
        grid = (2 * pts + 1) / size - 1
        out = F.grid_sample(x, grid.unsqueeze(2), align_corners=False)
        return out.squeeze(3).transpose(1, 2), pts


@case("x: f32[b, 1, h, w]")
class GaussianAboutTheCentre(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        cy, cx = (h - 1) / 2, (w - 1) / 2
        ys = torch.tensor([(i - cy) ** 2 for i in range(h)])
        xs = torch.tensor([(j - cx) ** 2 for j in range(w)])
        sigma = 0.3 * max(h, w)
        return x * torch.exp(-(ys[:, None] + xs[None]) / (2 * sigma ** 2))


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class HanningVignetteNumpy(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        window = np.outer(np.hanning(h + 2)[1:-1], np.hanning(w + 2)[1:-1])
        return x * torch.from_numpy(window.astype(np.float32))


@case("x: f32[b, h, w, 8]")
class AxialRotaryGrid(nn.Module):
    def rotate(self, x, pos):
        f = 1.0 / (50.0 ** (torch.arange(0, 4, 2).float() / 4))
        ang = pos[..., None].float() * f
        c, s = ang.cos(), ang.sin()
        a, b = x[..., :2], x[..., 2:]
        return torch.cat([a * c - b * s, a * s + b * c], -1)

    def forward(self, x):
        _, h, w, d = x.shape
        t = torch.arange(h * w)
        row = (t // w).view(h, w)
        col = (t % w).view(h, w)
        return torch.cat([self.rotate(x[..., :d // 2], row), self.rotate(x[..., d // 2:], col)], -1)


@case("boxes: f32[b, n, 4]", "image: f32[b, 1, h, w]")
class BoxesScaledToImage(nn.Module):
    def forward(self, boxes, image):
        img_h, img_w = image.shape[-2:]
        cx, cy, w, h = boxes.sigmoid().unbind(-1)
        xyxy = torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1)
        scale = torch.tensor([img_w, img_h, img_w, img_h], dtype=torch.float32)
        xyxy = xyxy * scale
        x = xyxy[..., 0::2].clamp(min=0, max=img_w)
        y = xyxy[..., 1::2].clamp(min=0, max=img_h)
        return torch.stack([x, y], dim=-1).flatten(2)


@case("x: f32[b, 8, h, w]", "style: f32[b, 5]")
class ModulatedConvBatchAsGroups(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 4, 8, 3, 3) * 0.2)
        self.affine = nn.Linear(5, 8)

    def forward(self, x, style):
        batch, in_channel, height, width = x.shape
        weight = self.weight * (self.affine(style).view(batch, 1, in_channel, 1, 1) + 1)
        demod = torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8)
        weight = (weight * demod.view(batch, 4, 1, 1, 1)).view(batch * 4, in_channel, 3, 3)
        x = x.view(1, batch * in_channel, height, width)
        out = F.conv2d(x, weight, padding=1, groups=batch)
        return out.view(batch, 4, height, width)


@case("x: f32[b, 4, h, w]", where="b <= 4 or b % 4 == 0")
class MinibatchDeviationChannel(nn.Module):
    def forward(self, x):
        batch, c, h, w = x.shape
        group = min(batch, 4)
        y = x.view(group, -1, 1, c, h, w)
        y = torch.sqrt(y.var(0, unbiased=False) + 1e-8)
        y = y.mean([2, 3, 4], keepdim=True).squeeze(2)
        y = y.repeat(group, 1, h, w)
        return torch.cat([x, y], 1)


@case("z: f32[b, 3, 3, 3]", "x: f32[b, 3, h, w]", least={"h": 3, "w": 3})
class SiameseDepthwiseCorrelation(nn.Module):
    def forward(self, z, x):
        batch, channel = z.shape[0], z.shape[1]
        inp = x.reshape(1, batch * channel, x.size(2), x.size(3))
        kernel = z.reshape(batch * channel, 1, z.size(2), z.size(3))
        out = F.conv2d(inp, kernel, groups=batch * channel)
        return out.view(batch, channel, out.size(2), out.size(3)) * 0.1


@case("left: f32[b, 3, h, w]", "right: f32[b, 3, h, w]")
class StereoCostVolume(nn.Module):
    MAX_DISPARITY = 6

    def forward(self, left, right):
        cost = []
        for d in range(min(self.MAX_DISPARITY, left.shape[3])):
            if d == 0:
                cost.append((left * right).mean(1))
            else:
                c = (left[..., d:] * right[..., :-d]).mean(1)
                cost.append(F.pad(c, (d, 0)))
        cost = torch.stack(cost, 1)
        return (F.softmax(cost, 1) * torch.arange(cost.shape[1]).view(1, -1, 1, 1)).sum(1)


@case("a: f32[b, 4, h, w]", "c: f32[b, 4, p, q]",
      most={"b": 8, "h": 16, "w": 16, "p": 16, "q": 16})
class AllPairsCorrelation(nn.Module):
    def forward(self, a, c):
        b, dim, h, w = a.shape
        corr = torch.matmul(a.flatten(2).transpose(1, 2), c.flatten(2))
        corr = corr.view(b * h * w, 1, *c.shape[-2:]) / math.sqrt(dim)
        pooled = F.adaptive_max_pool2d(corr, 1)
        return pooled.view(b, h, w), corr.view(b, h, w, -1).mean(-1)


@case("x: f32[b, 1, h, w]", least={"h": 5, "w": 5})
class BoxFilterByIntegralImage(nn.Module):
    def forward(self, x):
        k = 5
        s = F.pad(x, (1, 0, 1, 0)).cumsum(2).cumsum(3)
        h, w = x.shape[2] - k + 1, x.shape[3] - k + 1
        total = s[..., k:, k:] - s[..., :h, k:] - s[..., k:, :w] + s[..., :h, :w]
        return total / k ** 2


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class TotalVariationPerPixel(nn.Module):
    def count(self, t):
        return t.size(1) * t.size(2) * t.size(3)

    def forward(self, x):
        dh = x[:, :, 1:, :] - x[:, :, :x.size(2) - 1, :]
        dw = x[:, :, :, 1:] - x[:, :, :, :x.size(3) - 1]
        tv = dh.abs().sum((1, 2, 3)) / self.count(dh) + dw.abs().sum((1, 2, 3)) / self.count(dw)
        return tv / x.size(0)


@case("x: f32[b, 3, h, w]")
class MixupWithReversedBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        lam = torch.arange(1, len(x) + 1).view(-1, 1, 1, 1) / (len(x) + 1)
        return self.conv(lam * x + (1 - lam) * x.flip(0))


@case("x: f32[b, t, 3, h, w]", most={"b": 12, "t": 20, "h": 30, "w": 30})
class FramesFoldedIntoBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.gru = nn.GRU(6, 5, batch_first=True)

    def forward(self, x):
        b, t = x.shape[:2]
        f = F.relu(self.conv(x.flatten(0, 1))).mean((2, 3))
        y, last = self.gru(f.view(b, t, -1))
        return y, last.squeeze(0)


@case("x: f32[b, 6, h, w]")
class SqueezedGlobalFeature(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        y = x.amax((2, 3), keepdim=True).squeeze()
        if y.dim() == 1:
            y = y.unsqueeze(0)
        return self.fc(y)


@case("x: f32[b, 4, h, w]")
class BatchCentredUnlessSingle(nn.Module):
    def forward(self, x):
        if x.shape[0] > 1:
            x = (x - x.mean(0, keepdim=True)) / (x.std(0, keepdim=True) + 1.0)
        return x.flatten(2).logsumexp(-1)


@case("x: f32[2*b, 3, h, w]")
class StackedPairsSplitInHalf(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x):
        f = self.conv(x).mean((2, 3))
        half = f.size(0) // 2
        a, b = F.normalize(f[:half], dim=1), F.normalize(f[half:], dim=1)
        sim = a @ b.t() / 0.5
        target = torch.eye(half)
        return sim, -(sim.log_softmax(1) * target).sum(1)


@case("x: f32[4, c, h, w]", where="c % 4 == 0", least={"c": 4})
class GroupStatisticsOfChannels(nn.Module):
    GROUPS = 4

    def forward(self, x):
        n, c, h, w = x.shape
        g = x.view(n, self.GROUPS, c // self.GROUPS, h, w)
        mean = g.mean((2, 3, 4), keepdim=True)
        var = g.var((2, 3, 4), keepdim=True, unbiased=False)
        return ((g - mean) / torch.sqrt(var + 1e-2)).view(n, c, h, w)


@case("x: f32[b, 8, h, w]")
class GroupNormResidual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, 8)
        self.conv = nn.Conv2d(8, 8, 3, padding=1, groups=4)

    def forward(self, x):
        return x + self.conv(F.silu(self.norm(x)))


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class InstanceNormStyleTransfer(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad = nn.ReflectionPad2d(1)
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.InstanceNorm2d(4, affine=True)

    def forward(self, x):
        return torch.tanh(self.norm(self.conv(self.pad(x))))


@case("x: f32[b, 1, h, w]")
class CosineTransformByMatrix(nn.Module):
    def basis(self, n):
        k = np.arange(n)[:, None]
        m = np.cos(np.pi * (2 * np.arange(n)[None] + 1) * k / (2 * n)) * math.sqrt(2 / n)
        m[0] /= math.sqrt(2)
        return torch.tensor(m, dtype=torch.float32)

    def forward(self, x):
        h, w = x.shape[-2:]
        y = self.basis(h) @ x @ self.basis(w).t()
        keep = max(1, h // 2)
        return y[:, :, :keep]


@case("x: f32[b, 2, h, w]", most={"b": 16, "h": 48, "w": 48})
class SpatialSelfAttentionBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Conv2d(2, 12, 1)
        self.out = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(F.avg_pool2d(x, 2, ceil_mode=True)).flatten(2).chunk(3, 1)
        att = torch.softmax(q.transpose(1, 2) @ k * int(q.shape[1]) ** -0.5, -1)
        y = (v @ att.transpose(1, 2)).view(b, 4, (h + 1) // 2, (w + 1) // 2)
        return x + F.interpolate(self.out(y), size=(h, w), mode="nearest")


@case("x: f32[b, 3, h, w]")
class PlainResidualClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
                                  nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                   nn.Conv2d(8, 8, 3, padding=1))
        self.fc = nn.Linear(8, 10)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(x + self.block(x))
        return self.fc(self.drop(x.mean([-2, -1])))


@case("x: f32[b, 3, h, w]")
class ConvNextLayerNormChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.dw = nn.Conv2d(3, 3, 7, padding=3, groups=3)
        self.norm = nn.LayerNorm(3)
        self.a, self.b = nn.Linear(3, 12), nn.Linear(12, 3)

    def forward(self, x):
        y = self.norm(self.dw(x).permute(0, 2, 3, 1))
        y = self.b(F.gelu(self.a(y))).permute(0, 3, 1, 2)
        return x + y


@case("x: f32[b, 2, h, w]")
class RadialBinsOfLoopedDistance(nn.Module):
    BINS = 4

    def forward(self, x):
        h, w = x.shape[-2:]
        far = math.hypot(h / 2, w / 2)
        bins = [[min(self.BINS - 1, int(self.BINS * math.hypot(i - h / 2, j - w / 2) / far))
                 for j in range(w)] for i in range(h)]
        onehot = F.one_hot(torch.tensor(bins).view(-1), self.BINS).float()
        return x.flatten(2) @ onehot / (onehot.sum(0) + 1)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class NearestIndicesFromPythonList(nn.Module):
    OUT = 10

    def forward(self, x):
        h, w = x.shape[-2:]
        rows = torch.tensor([min(int(i * h / self.OUT), h - 1) for i in range(self.OUT)])
        cols = torch.tensor([j * w // self.OUT for j in range(self.OUT)])
        return x[:, :, rows][:, :, :, cols] + x.mean()


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class SerpentineScanOrder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, 4, batch_first=True)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(x, (4, None))
        b, c, h, w = x.shape
        order = []
        for r in range(h):
            row = list(range(r * w, (r + 1) * w))
            order += row if r % 2 == 0 else row[::-1]
        seq = x.flatten(2)[:, :, order].transpose(1, 2)
        return self.rnn(seq)[0][:, -1]


@case("x: f32[b, 1, h, w]", "mask: bool[b, h, w]")
class MaskedMeanWithAreaFraction(nn.Module):
    def forward(self, x, mask):
        m = mask.unsqueeze(1).float()
        area = m.sum((2, 3))
        mean = (x * m).sum((2, 3)) / area.clamp(min=1)
        fraction = area / (x.shape[2] * x.shape[3])
        return torch.cat([mean, fraction], 1)


@case("x: f32[b, 2, h, w]", "labels: i64[b, h, w] < 5")
class ClassSumsByScatter(nn.Module):
    def forward(self, x, labels):
        b, c, h, w = x.shape
        idx = labels.view(b, 1, -1).expand(-1, c, -1)
        sums = torch.zeros(b, c, 5).scatter_add(2, idx, x.flatten(2))
        return sums / (h * w) * 10


def sincos_1d(dim, pos):
    omega = 1.0 / 10.0 ** (np.arange(dim // 2, dtype=float) / (dim / 2.0))
    out = np.einsum("m,d->md", pos.reshape(-1), omega)
    return np.concatenate([np.sin(out), np.cos(out)], axis=1)


@case("x: f32[b, 2, 2*h, 2*w]")
class NumpySincosPatchPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(2, 8, 2, stride=2)

    def forward(self, x):
        x = self.proj(x)
        gh, gw = x.shape[-2:]
        grid = np.stack(np.meshgrid(np.arange(gw, dtype=float), np.arange(gh, dtype=float)))
        pos = np.concatenate([sincos_1d(4, grid[0]), sincos_1d(4, grid[1])], axis=1)
        return x.flatten(2).transpose(1, 2) + torch.from_numpy(pos).float()


@case("x: f32[b, 4, h, w]", least={"h": 2, "w": 2}, most={"b": 8, "h": 12, "w": 12})
class OffsetDictionaryAttentionBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.biases = nn.Parameter(torch.randn(2, 144))
        self.qkv = nn.Linear(4, 12)

    def forward(self, x):
        b, c, h, w = x.shape
        points = list(itertools.product(range(h), range(w)))
        offsets, idxs = {}, []
        for p1 in points:
            for p2 in points:
                offset = (abs(p1[0] - p2[0]), abs(p1[1] - p2[1]))
                idxs.append(offsets.setdefault(offset, len(offsets)))
        n = len(points)
        bias = self.biases[:, torch.tensor(idxs).view(n, n)]
        qkv = self.qkv(x.flatten(2).transpose(1, 2)).view(b, n, 3, 2, 2)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = (q @ k.transpose(2, 3) * 0.7 + bias).softmax(-1) @ v
        return y.transpose(1, 2).reshape(b, n, c)


@case("x: f32[b, 4, h, w]", most={"b": 12, "h": 16, "w": 16})
class RasterOrderCausalPixels(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        t = x.flatten(2).transpose(1, 2)
        allowed = torch.from_numpy(np.tril(np.ones((h * w, h * w))) > 0)
        scores = (t @ t.transpose(1, 2) / math.sqrt(c)).masked_fill(~allowed, float("-inf"))
        return (scores.softmax(-1) @ t).transpose(1, 2).reshape(b, c, h, w)


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class NumpyMgridAnchors(nn.Module):
    SCALES = (2.0, 4.0)

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, stride=4)

    def forward(self, x):
        f = self.conv(x)
        fh, fw = f.shape[-2:]
        gy, gx = np.mgrid[0:fh, 0:fw]
        boxes = [np.stack([(gx + 0.5) / fw, (gy + 0.5) / fh, np.full(gx.shape, s / x.shape[3]),
                           np.full(gx.shape, s / x.shape[2])], -1) for s in self.SCALES]
        prior = torch.as_tensor(np.stack(boxes, 2).reshape(-1, 4), dtype=torch.float32)
        delta = f.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
        centre = prior[:, :2] + 0.1 * delta[..., :2] * prior[:, 2:]
        return torch.cat([centre, prior[:, 2:] * torch.exp(0.2 * delta[..., 2:])], -1)


@case("x: f32[b, 4, h, w]", least={"b": 2}, most={"b": 14})
class AllPairsOfBatchCompared(nn.Module):
    def forward(self, x):
        f = F.normalize(x.mean((2, 3)) + 0.1, dim=1)
        first, second = zip(*itertools.combinations(range(len(x)), 2))
        return (f[list(first)] - f[list(second)]).pow(2).sum(1)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2}, most={"h": 20, "w": 20})
class GridGraphNeighbourAverage(nn.Module):
    def edges(self, h, w):
        pairs = []
        for i in range(h):
            for j in range(w):
                if j + 1 < w:
                    pairs.append((i * w + j, i * w + j + 1))
                if i + 1 < h:
                    pairs.append((i * w + j, (i + 1) * w + j))
        return torch.tensor(pairs + [(t, s) for s, t in pairs]).t()

    def forward(self, x):
        b, c, h, w = x.shape
        src, dst = self.edges(h, w)
        flat = x.flatten(2)
        total = torch.zeros_like(flat).index_add(2, dst, flat[:, :, src])
        degree = torch.zeros(h * w).index_add(0, dst, torch.ones(dst.shape[0]))
        return flat - total / degree


@case("x: f32[b, 8, h, w]", least={"h": 2, "w": 2}, most={"b": 8, "h": 14, "w": 14})
class LogSpacedRelativeCoordinates(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 1))

    @staticmethod
    def table(h, w):
        dy = np.arange(-(h - 1), h, dtype=np.float32) / (h - 1) * 8
        dx = np.arange(-(w - 1), w, dtype=np.float32) / (w - 1) * 8
        t = np.stack(np.meshgrid(dy, dx, indexing="ij"), -1)
        return np.sign(t) * np.log2(np.abs(t) + 1.0) / np.log2(8)

    def forward(self, x):
        b, c, h, w = x.shape
        bias = self.mlp(torch.from_numpy(self.table(h, w)).float()).flatten()
        ys, xs = np.divmod(np.arange(h * w), w)
        index = ((ys[:, None] - ys[None] + h - 1) * (2 * w - 1) + xs[:, None] - xs[None] + w - 1)
        t = F.normalize(x.flatten(2), dim=1)
        scores = t.transpose(1, 2) @ t + bias[torch.from_numpy(index)]
        return (x.flatten(2) @ scores.softmax(-1).transpose(1, 2)).view(b, c, h, w)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class CircleOfSampledPixels(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        radius = (min(h, w) - 1) / 2
        steps = max(4, int(2 * math.pi * radius))
        rows = [round((h - 1) / 2 + radius * math.sin(2 * math.pi * k / steps))
                for k in range(steps)]
        cols = [round((w - 1) / 2 + radius * math.cos(2 * math.pi * k / steps))
                for k in range(steps)]
        return x[:, :, torch.tensor(rows), torch.tensor(cols)]
