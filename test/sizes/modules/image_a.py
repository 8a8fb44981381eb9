"""Images: pads, crops, patches, windows, tiles, flips and shuffles of pixels."""
import math

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

from case import case


def round_up(value, multiple):
    return int(math.ceil(value / multiple) * multiple)


def pad_to_multiple(x, multiple):
    h, w = x.shape[-2:]
    pad_h = (multiple - h % multiple) % multiple
    pad_w = (multiple - w % multiple) % multiple
    return F.pad(x, (0, pad_w, 0, pad_h)), h, w


@case("x: f32[b, 3, h, w]")
class PadToEightThenCropBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 8, stride=8)
        self.up = nn.ConvTranspose2d(8, 3, 8, stride=8)

    def forward(self, x):
        y, h, w = pad_to_multiple(x, 8)
        y = self.up(torch.relu(self.down(y)))
        return y[..., :h, :w] + x


@case("x: f32[b, 2, h, w]", least={"h": 8, "w": 8})
class PadBothSidesToSixteenReflect(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1, stride=2)

    def forward(self, x):
        h, w = x.shape[-2], x.shape[-1]
        extra_h = round_up(h, 16) - h
        extra_w = round_up(w, 16) - w
        top, left = extra_h // 2, extra_w // 2
        x = F.pad(x, (left, extra_w - left, top, extra_h - top), mode="reflect")
        return self.conv(x)


@case("x: f32[b, 3, h, w]")
class ReplicatePadWithNegativeModulo(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 4, stride=4)

    def forward(self, x):
        _, _, h, w = x.size()
        x = F.pad(x, (0, -w % 4, 0, -h % 4), mode="replicate")
        return self.stem(x)


@case("x: f32[b, 3, h, w]")
class LetterboxToSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        h, w = x.shape[2], x.shape[3]
        side = max(h, w)
        x = F.pad(x, (0, side - w, 0, side - h), value=0.5)
        y = self.conv(x)
        return y + y.transpose(2, 3)


@case("x: f32[b, 1, h, w]")
class CentredSquarePad(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        diff = abs(h - w)
        before, after = diff // 2, diff - diff // 2
        if h > w:
            x = F.pad(x, (before, after, 0, 0), value=1.0)
        elif w > h:
            x = F.pad(x, (0, 0, before, after), value=1.0)
        return torch.rot90(x, 1, (2, 3)) + 2 * x


@case("x: f32[b, 3, h, w]", least={"h": 8, "w": 8})
class CentreCropEight(nn.Module):
    SIZE = 8

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3 * 64, 5)

    def forward(self, x):
        top = (x.shape[2] - self.SIZE) // 2
        left = (x.shape[3] - self.SIZE) // 2
        x = x[:, :, top:top + self.SIZE, left:left + self.SIZE]
        return self.fc(x.flatten(1))


@case("x: f32[b, 2, h, w]", least={"h": 6, "w": 6})
class CentreCropRoundedLikeTorchvision(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        top = int(round((h - 6) / 2.0))
        left = int(round((w - 6) / 2.0))
        return x[..., top:top + 6, left:left + 6].tanh()


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class CentralFractionCrop(nn.Module):
    def __init__(self, fraction=0.875):
        super().__init__()
        self.fraction = fraction

    def forward(self, x):
        h, w = x.shape[-2:]
        ch, cw = int(h * self.fraction), int(w * self.fraction)
        y0, x0 = (h - ch) // 2, (w - cw) // 2
        x = x[:, :, y0:y0 + ch, x0:x0 + cw]
        return x - x.mean(dim=(2, 3), keepdim=True)


@case("x: f32[b, 1, h, w]", least={"h": 16, "w": 16})
class ValidUnetCroppingItsSkip(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 4, 3)
        self.b = nn.Conv2d(4, 8, 3)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.c = nn.Conv2d(8, 2, 3)

    @staticmethod
    def crop(skip, like):
        dh = skip.shape[2] - like.shape[2]
        dw = skip.shape[3] - like.shape[3]
        t, l = dh // 2, dw // 2
        return skip[:, :, t:t + like.shape[2], l:l + like.shape[3]]

    def forward(self, x):
        skip = F.relu(self.a(x))
        y = F.relu(self.b(F.max_pool2d(skip, 2)))
        y = self.up(y)
        return self.c(torch.cat([self.crop(skip, y), y], dim=1))


@case("x: f32[b, 3, h, w]")
class CropOrPadToSixteen(nn.Module):
    def __init__(self):
        super().__init__()
        self.target = 16
        self.conv = nn.Conv2d(3, 2, 5, stride=3)

    def forward(self, x):
        dh, dw = self.target - x.shape[2], self.target - x.shape[3]
        x = F.pad(x, [dw // 2, dw - dw // 2, dh // 2, dh - dh // 2])
        return self.conv(x)


@case("x: f32[b, 3, 4*h, 4*w]")
class PatchEmbedByReshape(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(48, 10)

    def forward(self, x):
        b, c, h, w = x.shape
        p = 4
        x = x.reshape(b, c, h // p, p, w // p, p)
        x = x.permute(0, 2, 4, 1, 3, 5).reshape(b, (h // p) * (w // p), c * p * p)
        return self.proj(x)


@case("x: f32[b, 3, h, w]")
class PatchEmbedPaddingWhenNeeded(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_size = (4, 4)
        self.proj = nn.Conv2d(3, 12, kernel_size=4, stride=4)
        self.norm = nn.LayerNorm(12)

    def forward(self, x):
        _, _, H, W = x.size()
        if W % self.patch_size[1] != 0:
            x = F.pad(x, (0, self.patch_size[1] - W % self.patch_size[1]))
        if H % self.patch_size[0] != 0:
            x = F.pad(x, (0, 0, 0, self.patch_size[0] - H % self.patch_size[0]))
        x = self.proj(x)
        Wh, Ww = x.size(2), x.size(3)
        x = self.norm(x.flatten(2).transpose(1, 2))
        return x.transpose(1, 2).view(-1, 12, Wh, Ww)


@case("tokens: f32[b, h*h, 12]")
class UnpatchifySquareTokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(12, 2 * 2 * 3)

    def unpatchify(self, x, p=2):
        h = w = int(x.shape[1] ** 0.5)
        assert h * w == x.shape[1]
        x = x.reshape(x.shape[0], h, w, p, p, 3)
        x = torch.einsum("nhwpqc->nchpwq", x)
        return x.reshape(x.shape[0], 3, h * p, w * p)

    def forward(self, tokens):
        return self.unpatchify(self.head(tokens))


@case("x: f32[b, h, w, 4]")
class PaddedWindowPartitionAndBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.window = 7
        self.mix = nn.Linear(49, 49)

    def forward(self, x):
        B, H, W, C = x.shape
        ws = self.window
        pad_h = (ws - H % ws) % ws
        pad_w = (ws - W % ws) % ws
        if pad_h > 0 or pad_w > 0:
            x = F.pad(x, (0, 0, 0, pad_w, 0, pad_h))
        Hp, Wp = H + pad_h, W + pad_w
        x = x.view(B, Hp // ws, ws, Wp // ws, ws, C)
        x = x.permute(0, 1, 3, 5, 2, 4).reshape(-1, C, ws * ws)
        x = self.mix(x).view(-1, C, ws, ws).permute(0, 2, 3, 1)
        x = x.view(B, Hp // ws, Wp // ws, ws, ws, C)
        x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, Hp, Wp, C)
        return x[:, :H, :W, :].contiguous()


@case("x: f32[b, 4*h, 4*w, 8]", most={"b": 12, "h": 15, "w": 15})
class ShiftedWindowAttentionWithRegionMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.ws, self.shift = 4, 2
        self.qkv = nn.Linear(8, 24)

    def partition(self, x):
        B, H, W, C = x.shape
        x = x.view(B, H // self.ws, self.ws, W // self.ws, self.ws, C)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.ws * self.ws, C)

    def region_mask(self, H, W):
        img = torch.zeros(1, H, W, 1)
        cuts = (slice(0, -self.ws), slice(-self.ws, -self.shift), slice(-self.shift, None))
        cnt = 0
        for hs in cuts:
            for ws in cuts:
                img[:, hs, ws, :] = cnt
                cnt += 1
        m = self.partition(img).squeeze(-1)
        diff = m.unsqueeze(1) - m.unsqueeze(2)
        return diff.masked_fill(diff != 0, -100.0)

    def forward(self, x):
        B, H, W, C = x.shape
        shifted = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        q, k, v = self.qkv(self.partition(shifted)).chunk(3, -1)
        attn = q @ k.transpose(1, 2) / math.sqrt(C)
        mask = self.region_mask(H, W)
        nw = mask.shape[0]
        attn = attn.view(B, nw, 16, 16) + mask.unsqueeze(0)
        y = attn.view(-1, 16, 16).softmax(-1) @ v
        y = y.view(B, H // 4, W // 4, 4, 4, C).permute(0, 1, 3, 2, 4, 5).reshape(B, H, W, C)
        return torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2)) + x


@case("x: f32[b, 6, h, w]")
class ShiftOnlyWhenLargerThanWindow(nn.Module):
    def __init__(self):
        super().__init__()
        self.window_size = 8
        self.shift_size = 4
        self.dw = nn.Conv2d(6, 6, 3, padding=1, groups=6)

    def forward(self, x):
        h, w = x.shape[-2:]
        shift = self.shift_size
        if min(h, w) <= self.window_size:
            shift = 0
        if shift > 0:
            x = torch.roll(x, (-shift, -shift), (2, 3))
        x = self.dw(x)
        return torch.roll(x, (shift, shift), (2, 3)) if shift > 0 else x


@case("x: f32[b, 2, h, w]", least={"h": 3, "w": 3})
class UnfoldWeighFoldNormalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(18, 1) + 0.5)

    def forward(self, x):
        size = x.shape[-2:]
        cols = F.unfold(x, 3, padding=1) * self.weight
        ones = F.unfold(torch.ones_like(x), 3, padding=1)
        return F.fold(cols, size, 3, padding=1) / F.fold(ones, size, 3, padding=1)


@case("x: f32[b, 2, h, w]", least={"h": 4, "w": 4})
class StridedUnfoldToTokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.unfold = nn.Unfold(kernel_size=4, stride=2)
        self.fc = nn.Linear(32, 6)

    def forward(self, x):
        t = self.unfold(x).transpose(1, 2)
        t = self.fc(t)
        rows = (x.size(2) - 4) // 2 + 1
        return t.reshape(x.size(0), rows, -1, 6)


@case("x: f32[b, h, w]", least={"h": 3, "w": 5})
class LocalRangeOfNeighbourhood(nn.Module):
    def forward(self, x):
        p = x.unfold(1, 3, 1).unfold(2, 5, 2)
        flat = p.flatten(3)
        return flat.max(-1).values - flat.min(-1).values


@case("x: f32[b, 2, h, w]")
class TileByTileLoop(nn.Module):
    TILE = 16

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        rows = []
        for y in range(0, x.shape[2], self.TILE):
            row = []
            for z in range(0, x.shape[3], self.TILE):
                row.append(self.conv(x[:, :, y:y + self.TILE, z:z + self.TILE]))
            rows.append(torch.cat(row, dim=3))
        return torch.cat(rows, dim=2)


@case("x: f32[b, 1, h, w]", least={"h": 8, "w": 8})
class OverlappingTilesBlended(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.Conv2d(4, 1, 1))

    @staticmethod
    def starts(length, tile, stride):
        s = list(range(0, length - tile + 1, stride))
        if s[-1] != length - tile:
            s.append(length - tile)
        return s

    def forward(self, x):
        h, w = x.shape[-2:]
        total, count = torch.zeros_like(x), torch.zeros(1, 1, h, w)
        for top in self.starts(h, 8, 6):
            for left in self.starts(w, 8, 6):
                pad = (left, w - left - 8, top, h - top - 8)
                total = total + F.pad(self.net(x[:, :, top:top + 8, left:left + 8]), pad)
                count = count + F.pad(torch.ones(1, 1, 8, 8), pad)
        return total / count


@case("x: f32[b, 3, h, w]")
class MirrorMosaic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)

    def forward(self, x):
        top = torch.cat([x, x.flip(-1)], dim=-1)
        mosaic = torch.cat([top, top.flip(-2)], dim=-2)
        h, w = x.shape[-2:]
        m = F.pad(mosaic, (1, 1, 1, 1))
        return self.conv(m)[..., h // 2:h // 2 + h, w // 2:w // 2 + w]


@case("x: f32[b, 3, h, w]")
class FlipTestTimeAverage(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        views = torch.cat([x, x.flip(3), x.flip(2), x.flip((2, 3))], dim=0)
        y = torch.sigmoid(self.conv(views))
        a, b, c, d = y.chunk(4, dim=0)
        return (a + b.flip(3) + c.flip(2) + d.flip((2, 3))) / 4


@case("x: f32[b, 2, h, w]")
class TransposeViewOnlyForSquares(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, (1, 3), padding=(0, 1))

    def forward(self, x):
        y = self.conv(x)
        if x.shape[2] == x.shape[3]:
            y = (y + self.conv(x.transpose(2, 3)).transpose(2, 3)) / 2
        return y


@case("x: f32[b, 4, h, w]")
class PixelShuffleUpsampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(4, 3 * 9, 3, padding=1)
        self.shuffle = nn.PixelShuffle(3)

    def forward(self, x):
        up = self.shuffle(self.body(x))
        base = F.interpolate(x[:, :3], size=up.shape[-2:], mode="nearest")
        return up + base


@case("x: f32[b, 2, h, w]")
class PixelUnshuffleOnPaddedImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 1)

    def forward(self, x):
        h, w = x.shape[-2:]
        x = F.pad(x, (0, w % 2, 0, h % 2))
        y = self.conv(F.pixel_unshuffle(x, 2))
        return F.pixel_shuffle(y, 2)[:, :, :h, :w]


@case("x: f32[b, 3, h, w]")
class FocusSlicesOfEvenTrim(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 6, 1)

    def forward(self, x):
        h, w = x.shape[-2:]
        if h & 1:
            x = F.pad(x, (0, 0, 0, 1))
        if w & 1:
            x = F.pad(x, (0, 1))
        parts = [x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.conv(torch.cat(parts, 1))


@case("x: f32[b, c, h, w]", where="c % 3 == 0", least={"c": 3})
class ChannelShuffleInThreeGroups(nn.Module):
    def forward(self, x):
        b, c, h, w = x.size()
        x = x.view(b, 3, c // 3, h, w).transpose(1, 2).contiguous()
        x = x.view(b, -1, h, w)
        weight = torch.arange(c, dtype=x.dtype).view(1, c, 1, 1) / c
        return x * weight


@case("x: f32[b, 1, 2*h, 2*w]")
class HaarWaveletLevel(nn.Module):
    def __init__(self):
        super().__init__()
        k = torch.tensor([[1., 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])
        self.register_buffer("kernel", k.view(4, 1, 2, 2) / 2)

    def forward(self, x):
        y = F.conv2d(x, self.kernel, stride=2)
        low, high = y[:, :1], y[:, 1:]
        high = F.softshrink(high, 0.3)
        return F.conv_transpose2d(torch.cat([low, high], 1), self.kernel, stride=2)


@case("x: f32[b, 2, h, w]")
class QuadrantSwapByHalfRoll(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        y = torch.roll(x, shifts=(h // 2, w // 2), dims=(-2, -1))
        return torch.cat([y, x], dim=1).cumsum(1)


@case("x: f32[b, 1, h, w]")
class CheckerboardMixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 2, 3, padding=1)
        self.b = nn.Conv2d(1, 2, 5, padding=2)

    def forward(self, x):
        rows = torch.arange(x.shape[2]).unsqueeze(1)
        cols = torch.arange(x.shape[3])
        board = (rows + cols) % 2 == 0
        return torch.where(board, self.a(x), self.b(x))


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class BorderSuppressed(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        r = min(3, min(h, w) // 4)
        mask = torch.ones(h - 2 * r, w - 2 * r)
        mask = F.pad(mask, (r, r, r, r), value=0.25)
        return x * mask


@case("x: f32[b, 3, h, w]", least={"h": 2})
class UpperAndLowerHalvesApart(nn.Module):
    def __init__(self):
        super().__init__()
        self.sky = nn.Conv2d(3, 4, 1)
        self.ground = nn.Conv2d(3, 4, 1)

    def forward(self, x):
        half = x.shape[2] // 2
        upper, lower = x[:, :, :half], x[:, :, half:]
        return torch.cat([self.sky(upper), self.ground(lower)], 2), upper.mean(2) - lower.mean(2)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class FourQuadrantMeans(nn.Module):
    def forward(self, x):
        mh, mw = x.size(2) // 2, x.size(3) // 2
        quads = [x[:, :, a, b] for a in (slice(None, mh), slice(mh, None))
                 for b in (slice(None, mw), slice(mw, None))]
        return torch.stack([q.mean((2, 3)) for q in quads], dim=-1)


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class TrimToEvenWithBitMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool2d(2)

    def forward(self, x):
        h, w = x.shape[-2:]
        x = x[:, :, :h & ~1, :w & ~1]
        return self.pool(x) - x[:, :, ::2, ::2]


@case("x: f32[b, 1, h, w]")
class PadToNextPowerOfTwo(nn.Module):
    @staticmethod
    def next_power(n):
        return 1 << (n - 1).bit_length()

    def forward(self, x):
        h, w = x.shape[-2:]
        x = F.pad(x, (0, self.next_power(w) - w, 0, self.next_power(h) - h))
        return x + x.flip(-1).roll(1, -2)


@case("x: f32[b, 3, h, w]", least={"h": 4, "w": 4})
class UnetPaddingTheDifference(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = nn.Conv2d(3, 4, 3, padding=1)
        self.down = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
        self.up1 = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.up2 = nn.ConvTranspose2d(16, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 2, 1)

    def join(self, x1, x2):
        dy = x2.size()[2] - x1.size()[2]
        dx = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return torch.cat([x2, x1], dim=1)

    def forward(self, x):
        a = self.inc(x)
        b = self.down(a)
        c = self.down2(b)
        y = self.join(self.up1(c), b)
        return self.out(self.join(self.up2(y), a))


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class DivmodPatchGrid(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        nh, rh = divmod(h, 2)
        nw, rw = divmod(w, 2)
        x = x[..., rh:, rw:]
        x = x.reshape(x.shape[0], 3, nh, 2, nw, 2)
        return x.amax(dim=(3, 5)) + x.sum(dim=(3, 5)) / (nh * nw)


@case("x: f32[b, h, w]")
class CommonDivisorTiles(nn.Module):
    def forward(self, x):
        b, h, w = x.shape
        g = math.gcd(h, w)
        tiles = x.view(b, h // g, g, w // g, g)
        return tiles - tiles.mean(dim=(2, 4), keepdim=True) * 0.5


@case("x: f32[b, 3, h, w]")
class ReflectPadLimitedByImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)

    def forward(self, x):
        h, w = x.shape[-2:]
        ph, pw = min(3, h - 1), min(3, w - 1)
        x = F.pad(x, (pw, pw, ph, ph), mode="reflect")
        x = F.pad(x, (1, 1, 1, 1), mode="constant")
        return self.conv(x)


@case("x: f32[b, 2, h, w]", least={"h": 3, "w": 3})
class CircularPaddingPanorama(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 5)

    def forward(self, x):
        x = F.pad(x, (2, 2, 0, 0), mode="circular")
        x = F.pad(x, (0, 0, 2, 2), mode="replicate")
        return self.conv(x)


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class DiagonalZigzagFlatten(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3, padding=1)

    def forward(self, x):
        h, w = x.shape[-2:]
        cells = [(i, j) for i in range(h) for j in range(w)]
        cells.sort(key=lambda c: (c[0] + c[1], c[0] if (c[0] + c[1]) % 2 else c[1]))
        order = torch.tensor([i * w + j for i, j in cells])
        return self.conv(x.flatten(2).index_select(2, order))


@case("x: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class FeatheredEdgesFromNumpyRamp(nn.Module):
    @staticmethod
    def ramp(n):
        edge = np.minimum(np.arange(n), np.arange(n)[::-1]) + 1.0
        return np.clip(edge / 4.0, 0, 1).astype(np.float32)

    def forward(self, x):
        h, w = x.shape[-2:]
        return x * torch.tensor(self.ramp(h)[:, None] * self.ramp(w)[None, :])


@case("x: f32[b, 1, h, w]", most={"h": 30, "w": 30})
class MontageOfTheBatch(nn.Module):
    def forward(self, x):
        n, c, h, w = x.shape
        cols = int(math.ceil(math.sqrt(n)))
        rows = int(math.ceil(n / cols))
        blank = torch.full((c, h, w), -1.0)
        lines = []
        for r in range(rows):
            line = [x[k] if k < n else blank for k in range(r * cols, (r + 1) * cols)]
            lines.append(torch.cat(line, dim=2))
        return torch.cat(lines, dim=1)


@case("x: f32[b, 2, h, w]", least={"h": 4})
class FieldsDeinterlaced(nn.Module):
    def forward(self, x):
        h = x.shape[2]
        lines = list(range(0, h, 2)) + list(range(1, h, 2))
        inverse = sorted(range(h), key=lambda i: lines[i])
        y = F.avg_pool2d(x[:, :, lines], (3, 1), stride=1, padding=(1, 0))
        return y[:, :, inverse] - x


@case("x: f32[b, 2, h, w]", least={"h": 4, "w": 4})
class ThreeEvenlySpacedCrops(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        h, w = x.shape[-2:]
        tops = np.linspace(0, h - 4, 3).astype(int)
        lefts = np.linspace(0, w - 4, 3).astype(int)
        crops = [x[:, :, t:t + 4, s:s + 4] for t, s in zip(tops.tolist(), lefts.tolist())]
        return self.fc(torch.stack(crops, 1).flatten(2)).amax(1)


@case("x: f32[b, h, w]", least={"h": 2, "w": 2})
class RowsInBandsOfIntegerRoot(nn.Module):
    def forward(self, x):
        h = x.shape[1]
        band = math.isqrt(h)
        means = [part.mean(1) for part in x.split(band, dim=1)]
        return torch.stack(means, 1)


@case("x: f32[b, 3, h, w]", least={"h": 3, "w": 3})
class PhaseTableByRemainder(nn.Module):
    PHASES = {0: (0, 0), 1: (1, 0), 2: (1, 1)}

    def forward(self, x):
        h, w = x.shape[-2:]
        top, bottom = self.PHASES[h % 3]
        left, right = self.PHASES[w % 3]
        x = x[:, :, top:h - bottom, left:w - right]
        b, c, nh, nw = x.shape
        return x.view(b, c, nh // 3, 3, nw // 3, 3).sum((3, 5)) / 3


@case("x: f32[b, 2, h, w]", least={"h": 2, "w": 2})
class TriangularHalfOfImage(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        lower = torch.from_numpy(np.tril(np.ones((h, w), dtype=np.float32), k=(w - h) // 2))
        return x * lower - x.flip(3) * (1 - lower) * 0.5
