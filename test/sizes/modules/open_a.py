"""Sequences: language models, speech, time series, as they are deployed."""
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from case import case


@case("x: f32[b, t, 8]")
class LogLengthScaledAttention(nn.Module):
    """Softmax temperature grows with log of the length beyond the length trained on."""

    def __init__(self, train_len=24):
        super().__init__()
        self.train_len = train_len
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        n = x.shape[1]
        scale = max(1.0, math.log(n + 1) / math.log(self.train_len)) / math.sqrt(8)
        return torch.softmax(q @ k.transpose(1, 2) * scale, -1) @ v


@case("x: f32[b, t, 16]")
class NtkScaledRotary(nn.Module):
    """Dynamic NTK: the base depends on the length once it passes the trained context."""

    def __init__(self, dim=16, max_position=32, base=10000.0, factor=2.0):
        super().__init__()
        self.dim, self.max_position, self.base, self.factor = dim, max_position, base, factor

    def forward(self, x):
        seq_len = x.shape[1]
        base = self.base
        if seq_len > self.max_position:
            ratio = self.factor * seq_len / self.max_position - (self.factor - 1)
            base = base * ratio ** (self.dim / (self.dim - 2))
        inv = 1.0 / (base ** (torch.arange(0, self.dim, 2).float() / self.dim))
        ang = torch.outer(torch.arange(seq_len).float(), inv)
        cos, sin = ang.cos(), ang.sin()
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


@case("x: f32[b, t, 6]")
class ProbSparseTopQueries(nn.Module):
    """Informer: as many queries as factor * ceil(log(length))."""

    def __init__(self, factor=2):
        super().__init__()
        self.factor = factor
        self.score = nn.Linear(6, 1)

    def forward(self, x):
        B, L, D = x.shape
        u = self.factor * np.ceil(np.log(L)).astype("int").item()
        u = u if u < L else L
        m = self.score(x).squeeze(-1)
        top = m.topk(max(u, 1), sorted=True)[1]
        return x.gather(1, top[:, :, None].expand(-1, -1, D)), x.mean(1)


@case("x: f32[b, t, 6]")
class KeepTokensByRatio(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(6, 1)

    def forward(self, x):
        n = x.shape[1]
        k = math.ceil(0.7 * n)
        s = self.score(x).squeeze(-1)
        idx = s.topk(k, dim=1).indices.sort(dim=1).values
        kept = torch.gather(x, 1, idx.unsqueeze(-1).repeat(1, 1, x.shape[-1]))
        return kept, s.softmax(-1)


@case("x: f32[b, t, 4]")
class AutoCorrelationTopDelays(nn.Module):
    """Autoformer: delays with the largest correlation, k of log(length)."""

    def forward(self, x):
        length = x.size(1)
        f = torch.fft.rfft(x.transpose(1, 2), dim=-1)
        corr = torch.fft.irfft(f * torch.conj(f), n=length, dim=-1).mean(1)
        top_k = int(1 * math.log(length)) + 1
        weights, delay = torch.topk(corr, top_k, dim=-1)
        index = (torch.arange(length)[None, None] + delay[:, :, None]) % length
        rolled = torch.gather(x.unsqueeze(1).expand(-1, top_k, -1, -1), 2,
                              index[..., None].expand(-1, -1, -1, x.size(2)))
        return (rolled * weights.softmax(-1)[:, :, None, None]).sum(1)


class MovingAverage(nn.Module):
    def __init__(self, kernel_size):
        super().__init__()
        self.kernel_size = kernel_size
        self.avg = nn.AvgPool1d(kernel_size=kernel_size, stride=1, padding=0)

    def forward(self, x):
        front = x[:, 0:1, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        end = x[:, -1:, :].repeat(1, self.kernel_size // 2, 1)
        x = torch.cat([front, x, end], dim=1)
        return self.avg(x.permute(0, 2, 1)).permute(0, 2, 1)


@case("x: f32[b, t, 4]")
class SeriesDecompositionLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.trend = MovingAverage(6)
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        trend = self.trend(x)
        return self.a(x - trend) + self.b(trend)


@case("x: f32[b, t, 3]")
class PatchTimeSeriesWithLastPad(nn.Module):
    """PatchTST: pads the end by replication so that all is covered."""

    def __init__(self, patch_len=5, stride=3):
        super().__init__()
        self.patch_len, self.stride = patch_len, stride
        self.embed = nn.Linear(patch_len, 7)

    def forward(self, x):
        x = x.transpose(1, 2)
        length = x.shape[-1]
        steps = math.ceil(max(length - self.patch_len, 0) / self.stride)
        missing = steps * self.stride + self.patch_len - length
        x = F.pad(x, (0, missing), mode="replicate")
        x = x.unfold(dimension=-1, size=self.patch_len, step=self.stride)
        return self.embed(x) / x.size(2)


@case("x: f32[b, t, 4]")
class PeriodFoldByLargestBin(nn.Module):
    """TimesNet with one period that is a share of the length."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        B, T, N = x.size()
        period = max(T // 3, 1)
        if T % period != 0:
            length = ((T // period) + 1) * period
            padding = torch.zeros([B, length - T, N])
            out = torch.cat([x, padding], dim=1)
        else:
            length = T
            out = x
        out = out.reshape(B, length // period, period, N).permute(0, 3, 1, 2).contiguous()
        out = self.conv(out)
        return out.permute(0, 2, 3, 1).reshape(B, -1, N)[:, :T, :] + x


@case("x: f32[b, t, 4]")
class SampleStdOverTime(nn.Module):
    def forward(self, x):
        n = x.size(1)
        mean = x.sum(1, keepdim=True) / n
        var = ((x - mean) ** 2).sum(1, keepdim=True) / (n - 1 if n > 1 else 1)
        return (x - mean) / torch.sqrt(var + 1e-5), var * (n / (n + 1))


@case("x: f32[b, t, 8]", "past: f32[b, p, 8]")
class SinkAndRecentCache(nn.Module):
    """StreamingLLM: keeps the first tokens and the last ones."""

    def __init__(self, start_size=2, recent_size=6):
        super().__init__()
        self.start_size, self.recent_size = start_size, recent_size
        self.cache_size = start_size + recent_size

    def forward(self, x, past):
        full = torch.cat([past, x], 1)
        n = full.size(1)
        if n > self.cache_size:
            full = torch.cat([full[:, : self.start_size], full[:, n - self.recent_size : n]], 1)
        return full, x * (n - past.size(1)) / n


@case("x: f32[b, t, 8]")
class DilatedAttentionSegments(nn.Module):
    """Every r-th token of a segment, with r from the length."""

    def forward(self, x):
        n = x.shape[1]
        r = 1 + n // 16
        y = x[:, ::r]
        w = torch.softmax(y @ y.transpose(1, 2) / math.sqrt(y.shape[-1]), -1)
        z = w @ y
        return z.repeat_interleave(r, dim=1)[:, :n] + x


@dataclass
class Shape3:
    batch: int
    length: int
    width: int

    def blocks(self, size):
        return (self.length + size - 1) // size

    def missing(self, size):
        return self.blocks(size) * size - self.length


@case("x: f32[b, t, 6]", "mask: bool[b, t]")
class BlockSparseSummaries(nn.Module):
    def __init__(self, block=5):
        super().__init__()
        self.block = block

    def forward(self, x, mask):
        s = Shape3(*x.shape)
        pad = s.missing(self.block)
        x = F.pad(x, (0, 0, 0, pad))
        mask = F.pad(mask, (0, pad), value=False)
        xb = x.reshape(s.batch, s.blocks(self.block), self.block, s.width)
        mb = mask.reshape(s.batch, -1, self.block).unsqueeze(-1).float()
        mean = (xb * mb).sum(2) / mb.sum(2).clamp_min(1)
        return mean, mb.sum((1, 2)) / s.length


@case("x: f32[b, t, 8]", most={"t": 128})
class AlibiSymmetricBuffer(nn.Module):
    def __init__(self, heads=2, max_len=128):
        super().__init__()
        dist = -(torch.arange(max_len)[None] - torch.arange(max_len)[:, None]).abs().float()
        slopes = torch.tensor([2.0 ** (-8.0 * (i + 1) / heads) for i in range(heads)])
        self.register_buffer("bias", slopes[:, None, None] * dist)
        self.max_len = max_len
        self.heads = heads

    def forward(self, x):
        b, n, d = x.shape
        if n > self.max_len:
            raise ValueError("too long")
        q = x.view(b, n, self.heads, d // self.heads).transpose(1, 2)
        bias = self.bias[:, self.max_len - n:, self.max_len - n:]
        y = F.scaled_dot_product_attention(q, q, q, attn_mask=bias[None])
        return y.transpose(1, 2).flatten(2)


@case("q: f32[b, 2, t, 4]", "k: f32[b, 2, s, 4]", where="s >= t")
class CausalBottomRightMask(nn.Module):
    def forward(self, q, k):
        t, s = q.size(-2), k.size(-2)
        bias = torch.zeros(t, s)
        keep = torch.ones(t, s, dtype=torch.bool).tril(diagonal=s - t)
        bias.masked_fill_(keep.logical_not(), float("-inf"))
        w = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) + bias).softmax(-1)
        return w.sum(-2) / t


@case("x: f32[b, t, 6]", most={"t": 110})
class ConformerRelPositionTable(nn.Module):
    """ESPnet: a table of 2T-1 rows, cut around the middle of a longer buffer."""

    def __init__(self, d_model=6, max_len=110):
        super().__init__()
        self.max_len = max_len
        pos = torch.arange(max_len).unsqueeze(1).float()
        div = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
        plus = torch.zeros(max_len, d_model)
        minus = torch.zeros(max_len, d_model)
        plus[:, 0::2], plus[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        minus[:, 0::2], minus[:, 1::2] = torch.sin(-pos * div), torch.cos(-pos * div)
        self.register_buffer("pe", torch.cat([plus.flip(0), minus[1:]]).unsqueeze(0))

    def forward(self, x):
        T = x.size(1)
        mid = self.pe.size(1) // 2
        pe = self.pe[:, mid - T + 1 : mid + T]
        return x @ pe.transpose(1, 2) / math.sqrt(x.size(2))


@case("x: f32[b, t, 5]")
class HalvesSwapped(nn.Module):
    def forward(self, x):
        half = x.shape[1] >> 1
        rest = x.shape[1] - half
        a, b = torch.split(x, [half, rest], dim=1)
        return torch.cat([b, a], dim=1), b.mean(1) * (half & 1)


@case("x: f32[b, t, 6]")
class ShortOrLongPooling(nn.Module):
    """Mean for short inputs, a mix with the maximum for long ones, by a number."""

    def __init__(self, threshold=8):
        super().__init__()
        self.threshold = threshold

    def forward(self, x):
        is_long = float(x.shape[1] > self.threshold)
        return x.mean(1) * (1.0 - 0.5 * is_long) + x.amax(1) * 0.5 * is_long


@case("wave: f32[b, n]", least={"n": 4})
class PreEmphasisAndCentredFrames(nn.Module):
    def __init__(self, win=12, hop=5):
        super().__init__()
        self.win, self.hop = win, hop
        self.register_buffer("w", torch.hamming_window(win, periodic=False))

    def forward(self, wave):
        n = wave.shape[1]
        y = torch.cat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], dim=1)
        count = (n + self.hop // 2) // self.hop
        need = (count - 1) * self.hop + self.win
        left = (self.win - self.hop) // 2
        y = F.pad(y, (left, max(need - n - left, 0)))
        frames = y.unfold(1, self.win, self.hop)[:, :count]
        return (frames * self.w).square().mean(-1)


@case("spec: f32[b, 6, t]")
class DeltaFeaturesReplicate(nn.Module):
    """torchaudio's compute_deltas."""

    def forward(self, spec, win_length: int = 5):
        shape = spec.size()
        x = spec.reshape(1, -1, shape[-1])
        n = (win_length - 1) // 2
        denom = n * (n + 1) * (2 * n + 1) / 3
        x = F.pad(x, (n, n), mode="replicate")
        kernel = torch.arange(-n, n + 1, 1, dtype=x.dtype).repeat(x.shape[1], 1, 1)
        return (F.conv1d(x, kernel, groups=x.shape[1]) / denom).reshape(shape)


@case("x: f32[b, 3, n]", least={"n": 2})
class UNetOddLengthOutputPadding(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(3, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose1d(6, 3, 3, stride=2, padding=1)

    def forward(self, x):
        y = torch.relu(self.down(x))
        return self.up(y, output_size=x.shape[-1:]) + x


@case("x: f32[b, t, 4]")
class CumulativeMeanNormalisation(nn.Module):
    def forward(self, x):
        b, t, c = x.shape
        steps = torch.arange(c, c * (t + 1), c, dtype=x.dtype).view(1, -1)
        mean = torch.cumsum(x.sum(2), dim=1) / steps
        power = torch.cumsum(x.pow(2).sum(2), dim=1) / steps
        var = (power - mean.pow(2)).clamp(min=0)
        return (x - mean.unsqueeze(2)) / (var + 1e-5).sqrt().unsqueeze(2)


@case("x: f32[b, t, 4]", "idx: i64[b, m] < 1000")
class ClampedNeighbourGather(nn.Module):
    def forward(self, x, idx):
        limit = x.size(1) - 1
        idx = idx.clamp(0, limit)
        after = (idx + 1).clamp(max=limit)
        take = lambda i: x.gather(1, i.unsqueeze(-1).expand(-1, -1, x.size(2)))
        return (take(idx) + take(after)) / 2, idx.float() / max(limit, 1)


@case("x: f32[b, t, 8]")
class RetentionDecayChunks(nn.Module):
    """RetNet's decay mask, normalised by its own row sums."""

    def __init__(self, heads=2):
        super().__init__()
        self.h = heads
        self.register_buffer("decay", torch.log(1 - 2 ** (-5 - torch.arange(heads).float())))

    def forward(self, x):
        b, slen, d = x.shape
        index = torch.arange(slen).to(self.decay)
        mask = torch.tril(torch.ones(slen, slen))
        mask = torch.masked_fill(index[:, None] - index[None, :], ~mask.bool(), float("inf"))
        mask = torch.nan_to_num(torch.exp(mask * self.decay[:, None, None]))
        mask = mask / mask.sum(dim=-1, keepdim=True).sqrt()
        q = x.reshape(b, slen, self.h, -1).transpose(1, 2)
        return (q @ q.mT * mask @ q).transpose(1, 2).reshape(b, slen, d)


@case("ids: i64[b, t] < 40", most={"t": 126})
class FairseqPaddedPositions(nn.Module):
    """RoBERTa positions start behind the padding index."""

    def __init__(self, padding_idx=1):
        super().__init__()
        self.padding_idx = padding_idx
        self.words = nn.Embedding(40, 8, padding_idx)
        self.positions = nn.Embedding(128, 8, padding_idx)

    def forward(self, ids):
        mask = ids.ne(self.padding_idx).int()
        pos = (torch.cumsum(mask, dim=1).type_as(mask) * mask).long() + self.padding_idx
        plain = torch.arange(self.padding_idx + 1, ids.shape[1] + self.padding_idx + 1)
        return self.words(ids) + self.positions(pos) - 0.1 * self.positions(plain)[None]


def window_starts(length, window, overlap=0.5):
    step = max(int(window * (1 - overlap)), 1)
    return list(range(0, max(length - window, 0) + 1, step))


@case("x: f32[b, t, 3]", least={"t": 4})
class OverlappingWindowVotes(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        starts = torch.tensor(window_starts(x.shape[1], 4))
        at = starts[:, None] + torch.arange(4)[None]
        w = x[:, at].flatten(2)
        return self.fc(w).softmax(-1).mean(1)


@case("x: f32[b, t, 4]")
class TriangularTimeWeights(nn.Module):
    @staticmethod
    @lru_cache(maxsize=None)
    def weights(n):
        w = np.minimum(np.arange(1, n + 1), np.arange(n, 0, -1))
        return (w / w.sum()).astype(np.float32)

    def forward(self, x):
        w = torch.from_numpy(self.weights(x.shape[1]))
        return torch.einsum("btc,t->bc", x, w)


@case("x: f32[b, t, 4]", "y: f32[b, s, 4]")
class SoftDtwCostBand(nn.Module):
    """A band around the diagonal whose slope is the ratio of the two lengths."""

    def __init__(self, radius=3):
        super().__init__()
        self.radius = radius

    def forward(self, x, y):
        t, s = x.size(1), y.size(1)
        cost = torch.cdist(x, y)
        line = torch.arange(t).float() * (s / t)
        away = (torch.arange(s).float()[None] - line[:, None]).abs()
        far = away > self.radius * max(1.0, s / t)
        return cost.masked_fill(far, 1e4).amin(2).mean(1)


@case("mel: f32[b, 8, t]")
class WhisperPadOrTrim(nn.Module):
    def __init__(self, length=30):
        super().__init__()
        self.length = length
        self.conv1 = nn.Conv1d(8, 6, 3, padding=1)
        self.conv2 = nn.Conv1d(6, 6, 3, stride=2, padding=1)
        self.pos = nn.Parameter(torch.randn(length // 2, 6))

    def pad_or_trim(self, x):
        if x.shape[-1] > self.length:
            x = x[..., : self.length]
        if x.shape[-1] < self.length:
            x = F.pad(x, (0, self.length - x.shape[-1]))
        return x

    def forward(self, mel):
        x = F.gelu(self.conv1(self.pad_or_trim(mel)))
        x = F.gelu(self.conv2(x)).permute(0, 2, 1)
        frac = min(mel.shape[-1], self.length) / self.length
        return (x + self.pos) * frac


@case("x: f32[b, t, 6]")
class MultiScaleTimePyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])

    def forward(self, x):
        t = x.size(1)
        h = x.transpose(1, 2)
        out = 0
        for i, fc in enumerate(self.fc):
            level = F.adaptive_avg_pool1d(h, max(t >> i, 1))
            level = fc(level.transpose(1, 2)).transpose(1, 2)
            out = out + F.interpolate(level, size=t, mode="linear", align_corners=False)
        return out.transpose(1, 2)


@case("x: f32[b, t, 6]")
class QuantileFramesSummary(nn.Module):
    """Frames at fixed shares of the clip, as a video model samples them."""

    def __init__(self, frames=4):
        super().__init__()
        self.frames = frames
        self.fc = nn.Linear(6 * frames, 5)

    def forward(self, x):
        index = np.linspace(0, x.shape[1] - 1, self.frames).round().astype(np.int64)
        return self.fc(x[:, torch.from_numpy(index)].flatten(1))
