"""Images and volumes: interpolation, pooling, pyramids, transposed convolutions, 3D."""
import math

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

from case import case


def conv(i, o, k=3, s=1):
    return nn.Conv2d(i, o, k, stride=s, padding=k // 2)


def upsample_like(x, ref, mode="bilinear"):
    align = False if mode in ("bilinear", "bicubic") else None
    return F.interpolate(x, size=ref.shape[2:], mode=mode, align_corners=align)


@case("x: f32[b, 3, h, w]")
class FeaturePyramidTopDown(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ModuleList([conv(3, 4, s=2), conv(4, 6, s=2), conv(6, 8, s=2)])
        self.lateral = nn.ModuleList([nn.Conv2d(n, 4, 1) for n in (4, 6, 8)])

    def forward(self, x):
        feats = []
        for layer in self.c:
            x = F.relu(layer(x))
            feats.append(x)
        outs = [lat(f) for lat, f in zip(self.lateral, feats)]
        for i in range(len(outs) - 1, 0, -1):
            outs[i - 1] = outs[i - 1] + upsample_like(outs[i], outs[i - 1], "nearest")
        return tuple(outs)


@case("x: f32[b, 2, h, w]", "guide: f32[b, 3, p, q]")
class ResizeToGuideAndConcat(nn.Module):
    def __init__(self):
        super().__init__()
        self.fuse = nn.Conv2d(5, 4, 1)

    def forward(self, x, guide):
        x = F.interpolate(x, guide.shape[-2:], mode="bilinear", align_corners=False)
        return self.fuse(torch.cat([x, guide], 1))


@case("x: f32[b, 2, h, w]")
class DoubleThenHalve(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.conv = conv(2, 2)

    def forward(self, x):
        y = self.conv(self.up(x))
        return F.interpolate(y, scale_factor=0.5, mode="bilinear", align_corners=False)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class HalfScaleFloorsOddSizes(nn.Module):
    def forward(self, x):
        return F.interpolate(x, scale_factor=0.5, mode="nearest") - 1.0


@case("x: f32[b, 1, h, w]", least={"h": 2, "w": 2})
class OneAndAHalfTimesWithFlooredSize(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        size = (int(h * 1.5), int(w * 1.5))
        return F.interpolate(x, size=size, mode="bilinear", align_corners=True)


@case("x: f32[b, 2, h, w]", least={"h": 4, "w": 4})
class ScaleFactorFromShortSide(nn.Module):
    TARGET = 12

    def forward(self, x):
        scale = self.TARGET / min(x.shape[-2:])
        y = F.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=False,
                          recompute_scale_factor=True)
        return y.tanh()


@case("x: f32[b, 3, h, w]", least={"h": 3, "w": 3})
class ResizeShortSideKeepingAspect(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv(3, 2)

    @staticmethod
    def output_size(h, w, short=10):
        if h <= w:
            return short, int(short * w / h)
        return int(short * h / w), short

    def forward(self, x):
        size = self.output_size(*x.shape[-2:])
        x = F.interpolate(x, size=size, mode="bilinear", align_corners=False)
        return self.conv(x)


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4}, where="h <= 3 * w and w <= 3 * h")
class LongestSidePreprocess(nn.Module):
    def __init__(self):
        super().__init__()
        self.img_size = 24
        self.register_buffer("mean", torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1))

    def forward(self, x):
        oldh, oldw = x.shape[-2:]
        scale = self.img_size * 1.0 / max(oldh, oldw)
        newh, neww = int(oldh * scale + 0.5), int(oldw * scale + 0.5)
        x = F.interpolate(x, (newh, neww), mode="bilinear", align_corners=False)
        x = (x - self.mean) / 0.25
        return F.pad(x, (0, self.img_size - neww, 0, self.img_size - newh))


@case("x: f32[b, 1, h, w]", least={"h": 2, "w": 2})
class BicubicThereAndBack(nn.Module):
    def forward(self, x):
        small = F.interpolate(x, size=(9, 9), mode="bicubic", align_corners=False)
        back = F.interpolate(small, size=x.shape[-2:], mode="bicubic", align_corners=True)
        return x - back


@case("x: f32[b, 2, h, w]", "y: f32[b, 2, p, q]")
class NearestExactToOther(nn.Module):
    def forward(self, x, y):
        return F.interpolate(x, size=y.size()[2:], mode="nearest-exact") * y


@case("x: f32[b, 1, h, w]", least={"h": 4, "w": 4})
class AreaResizeToThird(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        y = F.interpolate(x, size=(h // 3, w // 3), mode="area")
        return y, F.interpolate(y, size=(h, w), mode="nearest") - x


@case("x: f32[b, 4, h, w]")
class AtrousPyramidWithImagePooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList(
            [nn.Conv2d(4, 3, 3, padding=d, dilation=d) for d in (1, 2, 4)])
        self.image = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 3, 1), nn.ReLU())
        self.project = nn.Conv2d(12, 4, 1)

    def forward(self, x):
        res = [branch(x) for branch in self.branches]
        pooled = F.interpolate(self.image(x), size=x.shape[-2:], mode="bilinear",
                               align_corners=False)
        return self.project(torch.cat(res + [pooled], dim=1))


@case("x: f32[b, 4, h, w]")
class PyramidPoolingModule(nn.Module):
    def __init__(self, bins=(1, 2, 3, 6)):
        super().__init__()
        self.stages = nn.ModuleList(
            [nn.Sequential(nn.AdaptiveAvgPool2d(n), nn.Conv2d(4, 2, 1)) for n in bins])

    def forward(self, x):
        size = x.size()[2:]
        out = [x]
        for stage in self.stages:
            out.append(F.interpolate(stage(x), size, mode="bilinear", align_corners=True))
        return torch.cat(out, 1)


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4}, where="h not in (5, 9) and w not in (5, 9)")
class SpatialPyramidByKernelMath(nn.Module):
    LEVELS = [4, 2, 1]

    def forward(self, x):
        n, c, h, w = x.shape
        outs = []
        for level in self.LEVELS:
            kh, kw = math.ceil(h / level), math.ceil(w / level)
            ph = (kh * level - h + 1) // 2
            pw = (kw * level - w + 1) // 2
            if ph > kh // 2 or pw > kw // 2:
                raise ValueError("too small for the pyramid")
            y = F.max_pool2d(x, (kh, kw), stride=(kh, kw), padding=(ph, pw))
            outs.append(y.reshape(n, -1))
        return torch.cat(outs, 1)


@case("x: f32[b, 4, h, w]")
class AdaptiveThreeByFive(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d((3, 5))
        self.fc = nn.Linear(60, 7)

    def forward(self, x):
        return self.fc(self.pool(x).flatten(1))


@case("x: f32[b, 3, h, w]")
class AdaptiveMaxOfColumns(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveMaxPool2d((1, None))

    def forward(self, x):
        return self.pool(x).squeeze(2) * 2 + x.mean(2)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class AdaptiveHalfOfOwnSize(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        return F.adaptive_avg_pool2d(x, (h // 2, (w + 1) // 2))


@case("x: f32[b, 4, 6*h, 6*w]", most={"b": 60, "h": 12, "w": 12})
class AdaptiveExactMultiple(nn.Module):
    def forward(self, x):
        a = F.adaptive_avg_pool2d(x, (6, 3))
        m = F.adaptive_max_pool2d(x, (2, 6))
        return a, m


@case("x: f32[b, 8, h, w]")
class SqueezeExciteBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 2)
        self.fc2 = nn.Linear(2, 8)

    def forward(self, x):
        b, c, _, _ = x.size()
        y = F.adaptive_avg_pool2d(x, 1).view(b, c)
        y = torch.sigmoid(self.fc2(F.relu(self.fc1(y)))).view(b, c, 1, 1)
        return x * y.expand_as(x)


@case("x: f32[b, 4, h, w]")
class ConvBlockAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 4))
        self.spatial = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x):
        k = (x.size(2), x.size(3))
        avg = F.avg_pool2d(x, k, stride=k).flatten(1)
        top = F.max_pool2d(x, k, stride=k).flatten(1)
        x = x * torch.sigmoid(self.mlp(avg) + self.mlp(top))[:, :, None, None]
        s = torch.cat([x.max(1)[0].unsqueeze(1), x.mean(1).unsqueeze(1)], 1)
        return x * torch.sigmoid(self.spatial(s))


@case("x: f32[b, 4, h, w]")
class GlobalPoolWithKernelOfImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = F.avg_pool2d(x, kernel_size=x.size()[2:])
        return self.fc(x.squeeze())


@case("x: f32[b, 6, h, w]")
class GeneralisedMeanPooling(nn.Module):
    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.ones(1) * p)
        self.eps = eps

    def forward(self, x):
        x = x.clamp(min=self.eps).pow(self.p) + 0.01
        x = F.avg_pool2d(x, (x.size(-2), x.size(-1)))
        return x.pow(1.0 / self.p).flatten(1)


@case("x: f32[b, 4, h, w]")
class StripPooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_h = nn.Conv2d(4, 4, (3, 1), padding=(1, 0))
        self.conv_w = nn.Conv2d(4, 4, (1, 3), padding=(0, 1))

    def forward(self, x):
        _, _, h, w = x.size()
        a = self.conv_h(F.adaptive_avg_pool2d(x, (None, 1))).expand(-1, -1, h, w)
        b = self.conv_w(F.adaptive_avg_pool2d(x, (1, None))).expand(-1, -1, h, w)
        return x * torch.sigmoid(a + b)


@case("x: f32[b, 4, h, w]")
class CoordinateAttentionSplit(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 3, 1)
        self.conv_h = nn.Conv2d(3, 4, 1)
        self.conv_w = nn.Conv2d(3, 4, 1)

    def forward(self, x):
        n, c, h, w = x.size()
        xh = x.mean(3, keepdim=True)
        xw = x.mean(2, keepdim=True).permute(0, 1, 3, 2)
        y = F.hardswish(self.conv1(torch.cat([xh, xw], dim=2)))
        xh, xw = torch.split(y, [h, w], dim=2)
        xw = xw.permute(0, 1, 3, 2)
        return x * self.conv_h(xh).sigmoid() * self.conv_w(xw).sigmoid()


@case("x: f32[b, 3, h, w]")
class TransposedConvWithOutputSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 5, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(5, 3, 3, stride=2, padding=1)

    def forward(self, x):
        y = torch.relu(self.down(x))
        return self.up(y, output_size=x.size()) + x


@case("x: f32[b, 2, h, w]")
class TransposedConvWithComputedPadding(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 3, 3, stride=2, padding=1)
        self.weight = nn.Parameter(torch.randn(3, 2, 3, 3) * 0.3)

    def forward(self, x):
        h, w = x.shape[-2:]
        out_pad = ((h + 1) % 2, (w + 1) % 2)
        y = self.down(x)
        return F.conv_transpose2d(y, self.weight, stride=2, padding=1, output_padding=out_pad)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class MaxUnpoolToOriginalSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2)

    def forward(self, x):
        y, idx = self.pool(x)
        return self.unpool(y.exp(), idx, output_size=x.size())


@case("x: f32[b, 1, h, w]", least={"h": 8, "w": 8})
class LaplacianPyramidThreeLevels(nn.Module):
    def __init__(self):
        super().__init__()
        k = torch.tensor([1., 4., 6., 4., 1.])
        self.register_buffer("k", (k[:, None] * k[None] / 256).view(1, 1, 5, 5))

    def forward(self, x):
        bands = []
        for _ in range(2):
            down = F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), self.k, stride=2)
            bands.append(x - upsample_like(down, x))
            x = down
        return (*bands, x)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class AsManyLevelsAsLogOfSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv(2, 2)

    def forward(self, x):
        h, w = x.shape[-2:]
        levels = int(math.log2(min(h, w)))
        total = x
        for _ in range(levels):
            x = F.avg_pool2d(torch.tanh(self.conv(x)), 2)
            total = total + F.interpolate(x, (h, w), mode="nearest")
        return total / (levels + 1)


@case("x: f32[b, 2, h, w]")
class ImagePyramidUntilSmall(nn.Module):
    def forward(self, x):
        means = [x.mean((2, 3))]
        while min(x.shape[-2:]) >= 8:
            x = F.max_pool2d(x, 3, stride=2, padding=1)
            means.append(x.mean((2, 3)))
        return torch.stack(means, 1).sum(1) + len(means)


@case("x: f32[b, 3, h, w]")
class TwoResolutionFusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.high, self.low = conv(3, 4), conv(3, 4, s=2)
        self.h2l, self.l2h = conv(4, 4, s=2), nn.Conv2d(4, 4, 1)

    def forward(self, x):
        hi, lo = F.relu(self.high(x)), F.relu(self.low(x))
        height, width = hi.shape[-2], hi.shape[-1]
        up = F.interpolate(self.l2h(lo), size=[height, width], mode="bilinear",
                           align_corners=True)
        return F.relu(hi + up), F.relu(lo + self.h2l(hi))


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class CeilModePools(nn.Module):
    def __init__(self):
        super().__init__()
        self.mx = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.av = nn.AvgPool2d(3, stride=2, ceil_mode=True, count_include_pad=False)

    def forward(self, x):
        x = F.pad(x, (1, 1, 1, 1), value=0.3)
        return self.mx(x) + self.av(x)


@case("x: f32[b, 2, h, w]")
class AverageWithoutCountingPad(nn.Module):
    def forward(self, x):
        a = F.avg_pool2d(x, 5, stride=1, padding=2, count_include_pad=False)
        b = F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=True)
        return a - x, b


@case("x: f32[b, 3, h, w]")
class SamePaddingLikeTensorflow(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 5, stride=2)

    @staticmethod
    def same_pad(size, k, s, d=1):
        return max((math.ceil(size / s) - 1) * s + (k - 1) * d + 1 - size, 0)

    def forward(self, x):
        ih, iw = x.size()[-2:]
        ph, pw = self.same_pad(ih, 5, 2), self.same_pad(iw, 5, 2)
        if ph > 0 or pw > 0:
            x = F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2])
        return self.conv(x)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class DilationGrowsWithImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 2, 3, 3) * 0.2)

    def forward(self, x):
        d = max(1, min(x.shape[-2:]) // 8)
        return F.conv2d(x, self.weight, padding=d, dilation=d)


@case("x: f32[b, 2, d, h, w]", most={"b": 12, "d": 24, "h": 24, "w": 24})
class VolumeUnetTrilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv3d(2, 3, 3, padding=1)
        self.b = nn.Conv3d(3, 4, 3, stride=2, padding=1)
        self.c = nn.Conv3d(7, 2, 1)

    def forward(self, x):
        s = F.relu(self.a(x))
        y = F.relu(self.b(s))
        y = F.interpolate(y, size=s.shape[2:], mode="trilinear", align_corners=False)
        return self.c(torch.cat([s, y], 1))


@case("x: f32[b, 1, d, h, w]", least={"d": 2}, most={"b": 12, "d": 24, "h": 24, "w": 24})
class VolumePadAndPoolTwo(nn.Module):
    def forward(self, x):
        d, h, w = x.shape[2:]
        x = F.pad(x, (0, w % 2, 0, h % 2, 0, d % 2), value=-1.0)
        m = F.max_pool3d(x, 2)
        a = F.avg_pool3d(x, 2)
        return torch.cat([m, a], 1)


@case("x: f32[b, 3, t, h, w]", most={"b": 12, "t": 24, "h": 24, "w": 24})
class AdaptivePoolOfClip(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool3d((None, 2, 1))
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        y = self.pool(x).squeeze(-1)
        return self.fc(y.permute(0, 2, 1, 3).flatten(2))


@case("x: f32[b, t, 8, h, w]", most={"b": 12, "t": 24, "h": 24, "w": 24})
class TemporalShiftOfChannels(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        b, t, c, h, w = x.shape
        fold = c // 4
        out = torch.zeros_like(x)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, 1:, fold:2 * fold] = x[:, :-1, fold:2 * fold]
        out[:, :, 2 * fold:] = x[:, :, 2 * fold:]
        return self.conv(out.view(b * t, c, h, w)).view(b, t, 4, h, w)


@case("x: f32[b, 1, d, h, w]", least={"d": 2, "h": 4, "w": 4},
      most={"b": 12, "d": 24, "h": 24, "w": 24})
class TubeletTokensWithPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv3d(1, 6, (2, 4, 4), stride=(2, 4, 4))

    def forward(self, x):
        y = self.proj(x)
        n = math.prod(y.shape[2:])
        pos = torch.arange(n).float().unsqueeze(-1) / torch.tensor([1., 2, 4, 8, 16, 32])
        return y.flatten(2).transpose(1, 2) + torch.sin(pos)


@case("x: f32[b, 1, d, h, w]", least={"d": 2}, most={"b": 12, "d": 30, "h": 20, "w": 20})
class SlicesNearestToSixteen(nn.Module):
    def forward(self, x):
        idx = np.linspace(0, x.shape[2] - 1, 16).round().astype(int)
        y = x[:, :, idx.tolist()]
        return y.mean(dim=(3, 4)) + 0.1 * y.amax(dim=(3, 4))


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class ResizeToRoundedSquareRoot(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        side = max(1, int(round(math.sqrt(h * w) / 2)))
        return F.interpolate(x, size=(side, side), mode="bilinear", align_corners=False)


@case("x: f32[b, 2, h, w]", least={"h": 3, "w": 3})
class MultipleOfFourteenResize(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(2, 3, 14, stride=14)

    @staticmethod
    def constrain(x, multiple=14):
        y = int(np.round(x / multiple) * multiple)
        return max(y, multiple)

    def forward(self, x):
        h, w = x.shape[-2:]
        x = F.interpolate(x, (self.constrain(h), self.constrain(w)), mode="bicubic",
                          align_corners=True)
        y = self.patch(x)
        return F.interpolate(y, (h, w), mode="bilinear", align_corners=True)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class ResizeByNumpyMatrices(nn.Module):
    OUT = 12

    def matrix(self, n):
        pos = np.clip((np.arange(self.OUT) + 0.5) * n / self.OUT - 0.5, 0, n - 1)
        low = np.floor(pos).astype(int)
        high = np.minimum(low + 1, n - 1)
        m = np.zeros((self.OUT, n), dtype=np.float32)
        for i in range(self.OUT):
            m[i, low[i]] += 1 - (pos[i] - low[i])
            m[i, high[i]] += pos[i] - low[i]
        return torch.from_numpy(m)

    def forward(self, x):
        h, w = x.shape[-2:]
        return self.matrix(h) @ x @ self.matrix(w).t()


@case("x: f32[b, 1, h, w]", least={"h": 4, "w": 4})
class BlurWithSigmaOfImageSize(nn.Module):
    @staticmethod
    def kernel(sigma):
        radius = max(1, int(round(2 * sigma)))
        k = [math.exp(-0.5 * (i / sigma) ** 2) for i in range(-radius, radius + 1)]
        return torch.tensor(k) / sum(k), radius

    def forward(self, x):
        k, r = self.kernel(0.05 * min(x.shape[-2:]) + 0.3)
        x = F.pad(x, (r, r, r, r), mode="replicate")
        x = F.conv2d(x, k.view(1, 1, 1, -1))
        return F.conv2d(x, k.view(1, 1, -1, 1))


@case("x: f32[b, 2, h, w]")
class AdaptiveBinsWrittenByHand(nn.Module):
    BINS = 5

    def spans(self, n):
        return [(math.floor(i * n / self.BINS), math.ceil((i + 1) * n / self.BINS))
                for i in range(self.BINS)]

    def forward(self, x):
        h, w = x.shape[-2:]
        rows = []
        for a, b in self.spans(h):
            rows.append(torch.stack([x[:, :, a:b, c:d].amax((2, 3)) for c, d in self.spans(w)], -1))
        return torch.stack(rows, -2)


@case("x: f32[b, 3, h, w]")
class HalveWidthUntilOneColumn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, (1, 3), padding=(0, 1))

    def forward(self, x):
        while x.shape[-1] > 1:
            if x.shape[-1] % 2:
                x = F.pad(x, (0, 1))
            x = F.max_pool2d(torch.tanh(self.conv(x)), (1, 2))
        return x.squeeze(-1)


@case("x: f32[b, 2, h, w]")
class MaxOverWholeRowsByKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=1)

    def forward(self, x):
        width = x.size(3)
        y = F.max_pool2d(x, (1, width)).squeeze(3)
        return self.conv(y)


@case("x: f32[b, 3, t, h, w]", most={"b": 12, "t": 20, "h": 20, "w": 20})
class TemporalAverageByKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x):
        y = F.avg_pool3d(x, (x.shape[2], 1, 1))
        return self.conv(y[:, :, 0]) / math.sqrt(x.shape[2])


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class LogPolarResample(nn.Module):
    RADII, ANGLES = 6, 8

    def forward(self, x):
        h, w = x.shape[-2:]
        r = np.exp(np.linspace(0, np.log(min(h, w) / 2), self.RADII))
        a = np.linspace(0, 2 * np.pi, self.ANGLES, endpoint=False) + 0.1
        gx = r[:, None] * np.cos(a)[None] / (w / 2)
        gy = r[:, None] * np.sin(a)[None] / (h / 2)
        grid = torch.tensor(np.stack([gx, gy], -1), dtype=torch.float32)
        grid = grid.unsqueeze(0).expand(len(x), -1, -1, -1)
        return F.grid_sample(x, grid, align_corners=False)


@case("x: f32[b, 1, d, h, w]", least={"d": 2}, most={"b": 12, "d": 30, "h": 16, "w": 16})
class SlabsOfVolumeProjected(nn.Module):
    def forward(self, x):
        depth = x.shape[2]
        edges = [round(depth * k / 3) for k in range(4)]
        out = []
        for lo, hi in zip(edges[:-1], edges[1:]):
            hi = max(hi, lo + 1)
            out.append(F.max_pool3d(x[:, :, lo:hi], (hi - lo, 1, 1)))
        return torch.cat(out, 2)
