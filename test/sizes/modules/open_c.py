"""Mixed: recommendation, graphs, signals, codecs, and sizes in less usual places."""
import bisect
import math
import operator
from functools import reduce

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from case import case


@case("x: f32[b, t, 6]")
class EvenLengthBonus(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        n = x.size(1)
        sign = 1 - 2 * (n & 1)
        return self.fc(x) + sign * x.flip(1)


@case("x: f32[b, t]")
class HadamardPaddedTransform(nn.Module):
    """Pads to a power of two by the number of bits of the length."""

    def forward(self, x):
        b, n = x.shape
        m = 1 << (n - 1).bit_length()
        x = F.pad(x, (0, m - n))
        i = torch.arange(m)
        bits = i[:, None] & i[None, :]
        parity = torch.zeros_like(bits)
        for k in range(11):
            parity = parity ^ ((bits >> k) & 1)
        return (x @ (1.0 - 2.0 * parity.float()) / math.sqrt(m))[:, :n]


@case("x: f32[b, t, 6]")
class StridedKeyframesPerBucket(nn.Module):
    """The stride comes from a list of lengths."""

    edges = (10, 20, 40)

    def forward(self, x):
        level = bisect.bisect_right(self.edges, x.size(1))
        step = level + 1
        y = x[:, ::step]
        return y.mean(1), y[:, -1] * step


@case("x: f32[b, t, 4]")
class EpsFromLength(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        x = x - x.mean(1, keepdim=True)
        return x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1.0 / n)


@case("scores: f32[b, n]")
class TopFractionMean(nn.Module):
    """Top-k pooling as in weakly supervised detectors."""

    def __init__(self, div=8):
        super().__init__()
        self.div = div

    def forward(self, scores):
        k = scores.shape[1] // self.div + 1
        top, _ = torch.topk(scores, k=k, dim=1)
        low = torch.topk(scores, k=k, dim=1, largest=False)[0]
        return top.mean(1), low.sum(1) / k


@case("x: f32[b, t, 4]")
class BoundedOffsets(nn.Module):
    """Offsets may not leave the sequence: bounds of a clamp are shares of it."""

    def __init__(self):
        super().__init__()
        self.offset = nn.Linear(4, 1)

    def forward(self, x):
        n = x.size(1)
        reach = n // 4
        move = (self.offset(x).squeeze(-1) * 10).round().clamp(-reach, reach)
        at = (torch.arange(n) + move.long()).clamp(0, n - 1)
        return x.gather(1, at.unsqueeze(-1).expand_as(x))


@case("x: f32[b, t, 4]")
class MedianFilterWindow(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.width = width

    def forward(self, x):
        width = min(self.width, x.shape[1] | 1)
        pad = width // 2
        y = F.pad(x.transpose(1, 2), (pad, pad), mode="replicate")
        return y.unfold(-1, width, 1).median(dim=-1)[0].transpose(1, 2)


@case("user: f32[b, 8]", "items: f32[n, 8]")
class InBatchNegativesLoss(nn.Module):
    def forward(self, user, items):
        u, v = F.normalize(user, dim=1), F.normalize(items, dim=1)
        logits = u @ v.t() / 0.1
        prior = math.log(1.0 / items.shape[0])
        label = torch.arange(user.shape[0]) % items.shape[0]
        picked = logits.gather(1, label[:, None])
        loss = torch.logsumexp(logits - prior, 1) - picked.squeeze(1)
        return loss / math.log(items.size(0) + 1)


@case("fields: f32[b, f, 5]")
class PairwiseFieldInteractions(nn.Module):
    """DLRM's lower triangle of dot products."""

    def __init__(self, itself=False):
        super().__init__()
        self.offset = 0 if itself else -1

    def forward(self, fields):
        b, f, d = fields.shape
        z = torch.bmm(fields, fields.transpose(1, 2))
        li, lj = torch.tril_indices(f, f, offset=self.offset)
        flat = z[:, li, lj]
        count = f * (f - 1) // 2
        return torch.cat([fields.sum(1), flat.sum(1, keepdim=True) / max(count, 1)], 1), flat


@case("hist: f32[b, t, 4]", "target: f32[b, 4]", "length: i64[b] < 20")
class DinHistoryAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(16, 8), nn.PReLU(), nn.Linear(8, 1))

    def forward(self, hist, target, length):
        T = hist.shape[1]
        q = target[:, None].repeat(1, T, 1)
        s = self.mlp(torch.cat([q, hist, q - hist, q * hist], -1)).squeeze(-1)
        pad = torch.full_like(s, -(2.0 ** 32) + 1)
        mask = torch.arange(T)[None] < length.clamp(1, T)[:, None]
        s = torch.where(mask, s, pad) / (4 ** 0.5)
        return (s.softmax(1).unsqueeze(1) @ hist).squeeze(1)


@case("x: f32[n, 4]", "edges: i64[2, e] < 1000")
class DegreeNormalisedMessages(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, edges):
        n = x.size(0)
        row, col = edges % n
        one = torch.ones(edges.size(1))
        deg = torch.zeros(n).scatter_add_(0, row, one) + 1
        norm = (deg[row] * deg[col]).rsqrt()
        out = torch.zeros_like(x).index_add_(0, row, self.lin(x)[col] * norm[:, None])
        return out + x / deg[:, None], edges.shape[1] / n * out.mean(0)


@case("points: f32[b, n, 3]", least={"n": 2})
class KnnEdgeFeatures(nn.Module):
    def __init__(self, k=6):
        super().__init__()
        self.k = k

    def forward(self, points):
        b, n, c = points.shape
        k = min(self.k, n - 1)
        idx = torch.cdist(points, points).topk(k + 1, largest=False).indices[..., 1:]
        base = torch.arange(b).view(-1, 1, 1) * n
        near = points.reshape(b * n, c)[(idx + base).view(-1)].view(b, n, k, c)
        return torch.cat([near - points[:, :, None], points[:, :, None].expand(-1, -1, k, -1)],
                         -1).amax(2)


@case("x: f32[b, c, t]")
class GroupNormByHand(nn.Module):
    """As many groups as divide the channels, at most four."""

    def forward(self, x):
        b, c, t = x.shape
        groups = math.gcd(c, 4)
        y = x.reshape(b, groups, -1)
        y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, unbiased=False, keepdim=True) + 1e-3).sqrt()
        return y.reshape(b, c, t)


@case("x: f32[b, n, 4]")
class SquareGridFromTokens(nn.Module):
    """Tokens laid out on the smallest square that holds them."""

    def __init__(self):
        super().__init__()
        self.peg = nn.Conv2d(4, 4, 3, padding=1, groups=4)

    def forward(self, x):
        b, n, c = x.shape
        side = int(np.ceil(np.sqrt(n)))
        missing = side * side - n
        y = torch.cat([x, x[:, :1].expand(-1, missing, -1)], dim=1)
        y = y.transpose(1, 2).view(b, c, side, side)
        y = self.peg(y) + y
        return y.flatten(2).transpose(1, 2)[:, :n]


@case("x: f32[b, n, 4]")
class IsqrtChunkMean(nn.Module):
    def forward(self, x):
        b, n, c = x.shape
        size = math.isqrt(n)
        count = n // size
        y = x[:, : size * count].reshape(b, count, size, c)
        return y.mean(2).amax(1), x[:, size * count - 1]


class Meter:
    """Keeps what the last call saw."""

    def __init__(self):
        self.last = None

    def note(self, n):
        self.last = n
        return n


@case("x: f32[b, t, 4]")
class StatefulLengthMeter(nn.Module):
    def __init__(self):
        super().__init__()
        self.meter = Meter()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        self.meter.note(x.shape[1])
        return self.scaled(self.fc(x))

    def scaled(self, y, power=0.5):
        return y / self.meter.last ** power


@case("x: f32[b, t, 4]")
class SmallIndexDtype(nn.Module):
    """Indices are kept small where they fit."""

    def index_dtype(self, n):
        return torch.uint8 if n <= 16 else torch.int64

    def forward(self, x):
        n = x.shape[1]
        order = torch.arange(n - 1, -1, -1).to(self.index_dtype(n))
        return x[:, order.long()] * 0.5 + x, order.float() / n


@case("x: f32[b, c, t]")
class SqueezeWidthFromChannels(nn.Module):
    """make_divisible for a number of pooled channels."""

    @staticmethod
    def make_divisible(v, divisor=4, min_value=None):
        min_value = min_value or divisor
        new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
        if new_v < 0.9 * v:
            new_v += divisor
        return new_v

    def forward(self, x):
        mid = self.make_divisible(x.shape[1] * 0.5)
        g = F.adaptive_avg_pool1d(x.mean(-1, keepdim=True).transpose(1, 2), mid)
        g = F.interpolate(torch.relu(g), size=x.shape[1], mode="linear").transpose(1, 2)
        return x * torch.sigmoid(g)


@case("x: f32[b, t, 4]")
class WarmupSchedulePerStep(nn.Module):
    """Steps below a tenth of the length are faded in."""

    def forward(self, x):
        n = x.shape[1]
        warm = max(round(0.1 * n), 1)
        ramp = torch.tensor([min(1.0, (i + 1) / warm) for i in range(n)])
        return x * ramp[None, :, None]


@case("x: f32[b, 2, n]", least={"n": 2})
class ResampleByRatio(nn.Module):
    """Speed change: 16 to 12 kHz by linear interpolation."""

    def __init__(self, orig=16, new=12):
        super().__init__()
        g = math.gcd(orig, new)
        self.orig, self.new = orig // g, new // g

    def forward(self, x):
        n = x.shape[-1]
        target = int(math.ceil(self.new * n / self.orig))
        at = torch.arange(target).float() * (self.orig / self.new)
        lo = at.floor().long().clamp(max=n - 1)
        hi = (lo + 1).clamp(max=n - 1)
        frac = at - lo
        return x[..., lo] * (1 - frac) + x[..., hi] * frac


@case("codes: i64[b, 3, t] < 16")
class DelayedCodebookPattern(nn.Module):
    """MusicGen: every codebook one step later than the one before it."""

    def __init__(self, books=3, card=16):
        super().__init__()
        self.books, self.card = books, card
        self.emb = nn.ModuleList([nn.Embedding(card + 1, 6) for _ in range(books)])

    def forward(self, codes):
        b, k, t = codes.shape
        out = torch.full((b, k, t + k - 1), self.card, dtype=torch.long)
        for i in range(k):
            out[:, i, i : i + t] = codes[:, i]
        return sum(e(out[:, i]) for i, e in enumerate(self.emb)), out


@case("x: f32[b, t, 6]", "mem: f32[b, s, 6]")
class RatioWindowCrossAttention(nn.Module):
    """Each query sees the part of the memory that stands at the same share."""

    def forward(self, x, mem):
        t, s = x.shape[1], mem.shape[1]
        per = max(s // t, 1)
        start = (torch.arange(t) * per).clamp(max=s - 1)
        j = torch.arange(s)
        seen = (j[None] >= start[:, None]) & (j[None] < start[:, None] + per)
        w = (x @ mem.mT).masked_fill(~seen, -1e4).softmax(-1)
        return w @ mem * (s % t + 1)


@case("a: f32[b, n, 4]", "c: f32[b, m, 4]")
class LongerOfTwo(nn.Module):
    def forward(self, a, c):
        n, m = a.shape[1], c.shape[1]
        longest = max(n, m)
        a = F.pad(a, (0, 0, 0, longest - n))
        c = F.pad(c, (0, 0, 0, longest - m))
        return (a * n + c * m) / (n + m)


@case("x: f32[b, t, 4]")
class ChunkCountAsNumber(nn.Module):
    def __init__(self, chunk=7):
        super().__init__()
        self.chunk = chunk

    def forward(self, x):
        parts = divmod(x.size(1), self.chunk)
        used = parts[0] + bool(parts[1])
        filled = parts[1] / self.chunk if parts[1] else 1.0
        return x.sum(1) / used, x.new_full((x.size(0), 1), filled)


@case("x: f32[b, 3, n]", least={"n": 3})
class ConvStrideToTarget(nn.Module):
    """The stride is chosen so that about eight positions come out."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3) / 3)

    def forward(self, x):
        stride = -(-x.shape[-1] // 8)
        y = F.conv1d(x, self.weight, stride=stride, padding=1)
        return y, y.shape[-1] * y.mean(-1)


@case("x: f32[b, 3, n]")
class TransposedBackToLength(nn.Module):
    """Output padding from what the strided layers dropped."""

    def __init__(self):
        super().__init__()
        self.enc = nn.Parameter(torch.randn(4, 3, 4) / 4)
        self.dec = nn.Parameter(torch.randn(4, 3, 4) / 4)

    def forward(self, x):
        n = x.size(2)
        y = torch.tanh(F.conv1d(F.pad(x, (2, 2)), self.enc, stride=3))
        left = n - ((y.size(2) - 1) * 3 + 4 - 4)
        z = F.conv_transpose1d(y, self.dec, stride=3, padding=2, output_padding=left % 3)
        return F.pad(z, (0, n - z.size(2)))


@case("x: f32[b, t, 4]")
class HarmonicPositionWeights(nn.Module):
    """NDCG's discounts, divided by the best that the length allows."""

    @staticmethod
    def ideal(n):
        return sum(1.0 / math.log2(i + 2) for i in range(n))

    def forward(self, x):
        n = x.size(1)
        gain = x.sigmoid().mean(-1).sort(dim=1, descending=True).values
        discount = 1.0 / torch.log2(torch.arange(n) + 2.0)
        return (gain * discount).sum(1) / self.ideal(n)


@case("x: f32[b, h, w, 3]")
class ProductOfSizesTemperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 5)

    def forward(self, x):
        tokens = reduce(operator.mul, x.shape[1:-1], 1)
        y = self.proj(x).reshape(x.shape[0], tokens, 5)
        w = (y / math.log2(tokens + 1)).softmax(1)
        return (w * y).sum(1), w.amax(1) * tokens


@case("x: f32[b, t, 6]")
class FlagBySizeOfIntermediate(nn.Module):
    """Counts on the pooled length, not on the one that came in."""

    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool1d(3, stride=2, padding=1, ceil_mode=True)

    def forward(self, x):
        y = self.pool(x.transpose(1, 2))
        m = y.shape[-1]
        ramp = torch.arange(m).float() / m
        big = int(m >= 12)
        return y * ramp + big, y.sum(-1) / (m - (m % 2) + 1)


@case("x: f32[b, t, 4]", "w: f32[k, 4]", where="k <= 2*t + 1")
class DynamicKernelFromInput(nn.Module):
    """A kernel that comes with the input, padded to keep the length."""

    def forward(self, x, w):
        k = w.shape[0]
        left = (k - 1) // 2
        y = F.pad(x.transpose(1, 2), (left, k - 1 - left))
        y = F.conv1d(y, w.t().unsqueeze(1) / k, groups=4)
        return y.transpose(1, 2)
