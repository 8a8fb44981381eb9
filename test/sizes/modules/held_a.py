"""Held out: text, caches, masks, audio and time series."""
import math
from collections import namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from case import case

Span = namedtuple("Span", "start length")


def cdiv(a, b):
    return (a + b - 1) // b


def round_to(n, m):
    return cdiv(n, m) * m


def middle(n, keep):
    return Span((n - keep) // 2, keep)


class Hop:
    """A frame length and a hop, and what they make of a length."""
    def __init__(self, size, hop):
        self.size, self.hop = size, hop

    def frames(self, n):
        return max(cdiv(n - self.size, self.hop), 0) + 1

    def padding(self, n):
        return (self.frames(n) - 1) * self.hop + self.size - n


@case("x: f32[b, t, 8]", "mask: i64[b, t] < 2", most={"t": 256})
class LeftPaddedPositionIds(nn.Module):
    def __init__(self):
        super().__init__()
        self.wpe = nn.Embedding(256, 8)

    def forward(self, x, mask):
        position_ids = mask.cumsum(-1) - 1
        position_ids = position_ids.masked_fill(mask == 0, 1)
        return x + self.wpe(position_ids.clamp(max=x.shape[1]))[:, -x.shape[1]:]


@case("prefix: f32[b, p, 8]", "x: f32[b, t, 8]")
class PrefixLanguageModelMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, prefix, x):
        p = prefix.size(1)
        h = torch.cat([prefix, x], dim=1)
        n = h.size(1)
        mask = torch.ones(n, n, dtype=torch.bool).tril()
        mask[:, :p] = True
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        score = (q @ k.mT) * (8 ** -0.5)
        out = score.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        return out[:, p:]


@case("x: f32[b, t, 12]", most={"b": 40})
class SymmetricAlibiThreeHeads(nn.Module):
    heads = 3

    def __init__(self):
        super().__init__()
        self.slopes = [2.0 ** (-8.0 * (i + 1) / self.heads) for i in range(self.heads)]

    def forward(self, x):
        b, t, c = x.shape
        pos = torch.arange(t)
        dist = (pos.view(1, t) - pos.view(t, 1)).abs()
        bias = torch.tensor(self.slopes).view(-1, 1, 1) * -dist
        y = x.view(b, t, self.heads, -1).transpose(1, 2)
        attn = torch.softmax(y @ y.transpose(2, 3) / math.sqrt(c / self.heads) + bias, dim=-1)
        return (attn @ y).transpose(1, 2).reshape(b, t, c)


@case("x: f32[b, t, 6]", most={"b": 32})
class DebertaLogDistanceTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.size, self.longest = 8, 64
        self.rel = nn.Embedding(4 * self.size, 6)

    def buckets(self, n):
        rel = np.arange(n)[:, None] - np.arange(n)[None, :]
        mid = self.size // 2
        near = (rel < mid) & (rel > -mid)
        away = np.where(near, mid - 1, np.abs(rel))
        far = np.ceil(np.log(away / mid) / np.log((self.longest - 1) / mid) * (mid - 1)) + mid
        return np.where(away <= mid, rel, far * np.sign(rel)).astype(np.int64)

    def forward(self, x):
        idx = torch.from_numpy(self.buckets(x.shape[1])) + 2 * self.size
        bias = torch.einsum("bid,ijd->bij", x, self.rel(idx.clamp(0, 4 * self.size - 1)))
        return torch.softmax(bias / math.sqrt(6 * 3), -1) @ x


@case("ids: i64[b, t] < 30", "past: f32[b, p, 8]", where="p + t <= 254")
class BartOffsetTwoAfterPast(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = 2
        self.tok = nn.Embedding(30, 8)
        self.pos = nn.Embedding(256, 8)

    def forward(self, ids, past):
        bsz, seq_len = ids.shape[:2]
        past_len = past.shape[1]
        positions = torch.arange(past_len, past_len + seq_len, dtype=torch.long) + self.offset
        h = self.tok(ids) * math.sqrt(8) + self.pos(positions.expand(bsz, -1))
        return torch.cat([past, h], 1)


@case("q: f32[b, t, 8]")
class RotaryPositionInterpolation(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained = 32
        self.register_buffer("inv_freq", 1.0 / (1000 ** (torch.arange(0, 8, 2) / 8)))

    def forward(self, q):
        n = q.shape[-2]
        scale = self.trained / max(n, self.trained)
        angle = torch.outer(torch.arange(n).float() * scale, self.inv_freq)
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        turned = torch.cat([-q[..., 4:], q[..., :4]], dim=-1)
        return q * cos + turned * sin


@case("x: f32[b, t, 6]", most={"b": 48})
class ChunkLooksBackOneChunk(nn.Module):
    def __init__(self, chunk=4):
        super().__init__()
        self.chunk = chunk

    def forward(self, x):
        b, t, c = x.shape
        padded = round_to(t, self.chunk)
        n = padded // self.chunk
        blocks = F.pad(x, (0, 0, 0, padded - t)).view(b, n, self.chunk, c)
        before = F.pad(blocks, (0, 0, 0, 0, 1, 0))[:, :n]
        keys = torch.cat([before, blocks], dim=2)
        s = torch.einsum("bnic,bnjc->bnij", blocks, keys) / c ** 0.5
        i = torch.arange(self.chunk)[:, None] + self.chunk
        s = s.masked_fill(torch.arange(2 * self.chunk)[None] > i, -1e4)
        y = torch.einsum("bnij,bnjc->bnic", s.softmax(-1), keys)
        return y.reshape(b, padded, c)[:, :t]


@case("x: f32[b, t, 4]", most={"b": 64})
class StreamingChunkMaskWithLeftChunks(nn.Module):
    chunk, left = 5, 2

    def forward(self, x):
        t = x.shape[1]
        index = torch.arange(t)
        ends = ((index // self.chunk + 1) * self.chunk).clamp(max=t)
        starts = ((index // self.chunk - self.left) * self.chunk).clamp(min=0)
        seen = (index[None] >= starts[:, None]) & (index[None] < ends[:, None])
        weights = seen.float() / seen.sum(dim=1, keepdim=True)
        return weights @ x, (ends - starts).float() / t


@case("x: f32[b, t, 4]", "lengths: i64[b] < 6", least={"t": 3})
class LastStepByLengths(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 6, batch_first=True)

    def forward(self, x, lengths):
        out, _ = self.rnn(x)
        lengths = torch.clamp(lengths + 1, max=x.size(1))
        last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, out.size(2))
        valid = torch.arange(x.size(1))[None, :] < lengths[:, None]
        mean = (out * valid.unsqueeze(-1)).sum(1) / lengths.unsqueeze(-1)
        return out.gather(1, last).squeeze(1), mean


@case("ids: i64[b, t] < 40", least={"t": 3})
class UniBiTrigramMeans(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(40, 5)

    def forward(self, ids):
        e = self.emb(ids)
        n = e.shape[1]
        two = e[:, :-1] * e[:, 1:]
        three = e[:, :n - 2] * e[:, 1:n - 1] * e[:, 2:]
        return torch.cat([e.sum(1) / n, two.sum(1) / (n - 1), three.sum(1) / (n - 2)], dim=-1)


@case("chars: i64[b, n] < 26")
class CharactersInBlocksOfFive(nn.Module):
    per_word = 5

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(27, 6, padding_idx=26)
        self.conv = nn.Conv1d(6, 8, 3, padding=1)

    def forward(self, chars):
        b, n = chars.shape
        words = -(-n // self.per_word)
        chars = F.pad(chars, (0, words * self.per_word - n), value=26)
        e = self.emb(chars.reshape(b * words, self.per_word)).transpose(1, 2)
        return self.conv(e).amax(-1).view(b, words, -1)


@case("past: f32[b, p, 6]", "new: f32[b, t, 6]", least={"p": 4})
class CacheOfSinksAndRecent(nn.Module):
    sinks, recent = 4, 10

    def forward(self, past, new):
        kv = torch.cat([past, new], dim=1)
        total = kv.shape[1]
        start = max(self.sinks, total - self.recent)
        kept = torch.cat([kv[:, :self.sinks], kv[:, start:]], dim=1)
        attn = torch.softmax(new @ kept.mT / math.sqrt(6), dim=-1)
        return attn @ kept, kept


@case("q: f32[b, t, 6]", "past: f32[b, p, 6]", where="t + p <= 256", most={"b": 64})
class TriangleBufferSlicedByPast(nn.Module):
    def __init__(self):
        super().__init__()
        tri = torch.tril(torch.ones(256, 256)).view(1, 256, 256)
        self.register_buffer("bias", tri, persistent=False)

    def forward(self, q, past):
        k = torch.cat((past, q), dim=-2)
        nd, ns = q.size(-2), k.size(-2)
        w = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(k.size(-1))
        b = self.bias[:, ns - nd:ns, :ns]
        w = w * b - 1e4 * (1 - b)
        return w.softmax(dim=-1) @ k


@case("x: f32[b, t, 12]", most={"b": 32})
class MultiQueryHeadsFoldedIntoTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.d = 3, 4
        self.q = nn.Linear(12, 12)
        self.kv = nn.Linear(12, 8)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.q(x).view(b, t * self.h, self.d)
        k, v = self.kv(x).split(self.d, dim=-1)
        w = torch.baddbmm(x.new_zeros(1), q, k.transpose(1, 2), beta=0, alpha=self.d ** -0.5)
        w = w.view(b, t, self.h, t).softmax(-1).view(b, t * self.h, t)
        return torch.bmm(w, v).view(b, t, self.h * self.d)


@case("x: f32[b, n, 10]")
class PerceiverReadsIntoLatents(nn.Module):
    def __init__(self):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(5, 10))
        self.to_kv = nn.Linear(10, 20, bias=False)
        self.ff = nn.Sequential(nn.LayerNorm(10), nn.Linear(10, 10))

    def forward(self, x):
        b, n = x.shape[0], x.shape[1]
        pos = torch.linspace(-1.0, 1.0, steps=n).view(1, n, 1)
        k, v = self.to_kv(x * (1 + pos)).chunk(2, dim=-1)
        z = self.latents.unsqueeze(0).repeat(b, 1, 1)
        z = z + (z @ k.transpose(-2, -1) * 10 ** -0.5).softmax(dim=-1) @ v
        return self.ff(z)


@case("x: f32[b, t, 8]", most={"b": 40})
class FunnelBlockPooledQueries(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        t = x.shape[1]
        q = F.avg_pool1d(x.transpose(1, 2), 2, ceil_mode=True).transpose(1, 2)
        y = self.norm(q + self.attn(q, x, x, need_weights=False)[0])
        up = y.repeat_interleave(2, dim=1)[:, :t]
        return y, up + x


@case("x: f32[b, t, 4]", most={"b": 64})
class ReceptanceDecayToTheEnd(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.tensor([0.1, 0.3, 0.5, 1.0]))
        self.mix = nn.Parameter(torch.tensor([0.5, 0.4, 0.2, 0.9]))

    def forward(self, x):
        T = x.shape[1]
        shifted = F.pad(x, (0, 0, 1, -1))
        k = x * self.mix + shifted * (1 - self.mix)
        ages = torch.arange(T - 1, -1, -1).view(T, 1)
        w = torch.exp(-self.decay * ages)
        state = (k * w).sum(dim=1)
        return state / w.sum(dim=0), torch.sigmoid(x[:, T - 1]) * state


@case("q: f32[b, t, 6]", "k: f32[b, t, 6]", most={"b": 50})
class RetentionParallelForm(nn.Module):
    def __init__(self, gamma=0.9):
        super().__init__()
        self.gamma = gamma

    def forward(self, q, k):
        n = q.shape[1]
        i = torch.arange(n).unsqueeze(1)
        j = torch.arange(n).unsqueeze(0)
        D = torch.where(i >= j, self.gamma ** (i - j).clamp(min=0).float(), torch.zeros(()))
        D = D / D.sum(dim=-1, keepdim=True).sqrt()
        ret = q @ k.transpose(-1, -2) * D
        return ret / ret.abs().sum(-1, keepdim=True).clamp(min=1) @ k


@case("x: f32[b, t, 4]", most={"b": 24, "t": 96})
class SpanScoresOfAllEndpoints(nn.Module):
    widest = 7

    def __init__(self):
        super().__init__()
        self.start, self.end = nn.Linear(4, 1), nn.Linear(4, 1)
        self.width = nn.Embedding(self.widest + 1, 1)

    def forward(self, x):
        b, t, _ = x.size()
        score = self.start(x) + self.end(x).view(b, 1, t)
        pos = torch.arange(t)
        width = pos[None, :] - pos[:, None]
        ok = (width >= 0) & (width <= self.widest)
        score = score + self.width(width.clamp(0, self.widest)).squeeze(-1)
        flat = score.masked_fill(~ok, -1e4).view(b, t * t)
        return flat.log_softmax(dim=-1).view(b, t, t)


@case("docs: f32[b, s, t, 4]", most={"b": 12, "s": 30, "t": 60})
class SentencesThenDocument(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.GRU(4, 5, batch_first=True, bidirectional=True)
        self.sentences = nn.GRU(10, 6, batch_first=True)

    def forward(self, docs):
        b, s, t, c = docs.shape
        y, _ = self.words(docs.view(b * s, t, c))
        y = y.view(b, s, t, -1).mean(2)
        z, last = self.sentences(y)
        return z, last.squeeze(0)


@case("ids: i64[b, t] < 20", "mask: i64[b, t] < 2")
class SoftPromptBeforeTokens(nn.Module):
    prompt_len = 6

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.prompt = nn.Parameter(torch.randn(self.prompt_len, 8))

    def forward(self, ids, mask):
        b = ids.shape[0]
        h = torch.cat([self.prompt.expand(b, -1, -1), self.emb(ids)], dim=1)
        m = torch.cat([mask.new_ones(b, self.prompt_len), mask], dim=1).float()
        total = self.prompt_len + ids.shape[1]
        assert m.shape[1] == total
        return (h * m.unsqueeze(-1)).sum(1) / m.sum(1, keepdim=True), m.mean(1) * total


@case("x: f32[b, t, 6]", most={"b": 32})
class SparseStrideFromRootOfLength(nn.Module):
    def forward(self, x):
        t = x.size(1)
        stride = max(math.isqrt(t), 1)
        i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
        local = (i - j >= 0) & (i - j < stride)
        strided = ((i - j) % stride == 0) & (i >= j)
        mask = torch.where(local | strided, 0.0, -1e4)
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


@case("x: f32[b, t, 4]")
class OctaveOfEachPosition(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 4))

    def forward(self, x):
        octave = [min((i + 1).bit_length(), 9) for i in range(x.shape[1])]
        return x + self.table[torch.tensor(octave)]


@case("x: f32[b, t, 6]", most={"b": 40})
class MemoryCompressedKeys(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 3
        self.compress = nn.Conv1d(6, 6, self.factor, stride=self.factor, groups=2)
        self.null = nn.Parameter(torch.zeros(1, 1, 6))

    def forward(self, x):
        b, t, d = x.shape
        missing = (self.factor - t % self.factor) % self.factor
        k = self.compress(F.pad(x, (0, 0, missing, 0)).transpose(1, 2)).transpose(1, 2)
        k = torch.cat([self.null.expand(b, 1, d), k], dim=1)
        dots = torch.einsum("bid,bjd->bij", x, k) * d ** -0.5
        i = torch.arange(t)[:, None]
        seen = torch.arange(k.shape[1])[None] * self.factor <= i + missing + 1
        return dots.masked_fill(~seen, -1e9).softmax(-1) @ k


@case("x: f32[b, t, 6]")
class TokensMergedBipartite(nn.Module):
    def forward(self, x):
        b, t, c = x.shape
        if t < 4:
            return x
        r = t // 4
        even, odd = x[:, ::2], x[:, 1::2]
        score = F.normalize(even, dim=-1) @ F.normalize(odd, dim=-1).mT
        best = score.amax(dim=-1)
        order = best.argsort(dim=1, descending=True)
        keep = order[:, r:].unsqueeze(-1).expand(b, even.shape[1] - r, c)
        return torch.cat([even.gather(1, keep), odd], dim=1)


@case("x: f32[b, t, 8]", most={"t": 120})
class LoopOverQueryChunks(nn.Module):
    query_chunk = 16

    def forward(self, x):
        t = x.shape[1]
        outs = []
        for i in range(0, t, self.query_chunk):
            q = x[:, i:i + self.query_chunk]
            k = x[:, :min(i + self.query_chunk, t)]
            outs.append(torch.softmax(q @ k.mT / math.sqrt(8), dim=-1) @ k)
        return torch.cat(outs, dim=1)


@case("wav: f32[b, n]", least={"n": 5})
class CentredFramesAfterPreemphasis(nn.Module):
    n_fft, hop = 8, 3

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hamming_window(8))

    def forward(self, wav):
        x = torch.cat([wav[:, :1], wav[:, 1:] - 0.97 * wav[:, :-1]], dim=1)
        half = self.n_fft // 2
        x = F.pad(x.unsqueeze(1), (half, half), mode="reflect").squeeze(1)
        frames = x.unfold(1, self.n_fft, self.hop)
        count = 1 + wav.shape[1] // self.hop
        return (frames * self.window)[:, :count], frames.square().sum(-1).clamp(min=1e-5).log()


@case("x: f32[b, 3, t]")
class DualPathSegmentsAndBack(nn.Module):
    K = 8

    def __init__(self):
        super().__init__()
        self.intra, self.inter = nn.Linear(8, 8), nn.Conv1d(3, 3, 3, padding=1)

    def forward(self, x):
        B, N, L = x.shape
        P = self.K // 2
        gap = self.K - (P + L % self.K) % self.K
        x = F.pad(x, (P, gap + P))
        one = x[:, :, :-P].reshape(B, N, -1, self.K)
        two = x[:, :, P:].reshape(B, N, -1, self.K)
        seg = self.intra(torch.cat([one, two], dim=3).view(B, N, -1, self.K))
        seg = seg.view(B, N, -1, self.K * 2)
        a = seg[..., :self.K].reshape(B, N, -1)[:, :, P:]
        b = seg[..., self.K:].reshape(B, N, -1)[:, :, :-P]
        return self.inter((a + b)[:, :, :L])


@case("x: f32[b, c, t]", most={"c": 16})
class UpThreeDownTwoResample(nn.Module):
    up, down = 3, 2

    def __init__(self):
        super().__init__()
        taps = np.sinc(np.arange(-6, 7) / 3) * np.hanning(15)[1:-1]
        self.register_buffer("taps", torch.tensor(taps, dtype=torch.float32).view(1, 1, -1))

    def forward(self, x):
        b, c, t = x.shape
        stuffed = x.new_zeros(b * c, t, self.up)
        stuffed[:, :, 0] = x.reshape(b * c, t)
        y = F.conv1d(stuffed.view(b * c, 1, t * self.up), self.taps, padding=6)
        y = y[:, 0, ::self.down]
        return y.view(b, c, (t * self.up + self.down - 1) // self.down)


@case("x: f32[b, t, 3]")
class CentredAverageOddWidthOfLength(nn.Module):
    def forward(self, x):
        t = x.shape[1]
        k = (t // 8) | 1
        y = x.transpose(1, 2)
        trend = F.avg_pool1d(y, k, stride=1, padding=k // 2, count_include_pad=False)
        return trend.transpose(1, 2), x - trend.transpose(1, 2)


@case("x: f32[b, t]", least={"t": 2})
class FourierBasisForecastHalfHorizon(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Linear(3, 6)

    def basis(self, horizon):
        grid = np.arange(horizon) / horizon
        rows = [np.cos(2 * np.pi * k * grid) for k in range(3)]
        rows += [np.sin(2 * np.pi * k * grid) for k in range(3)]
        return torch.tensor(np.stack(rows), dtype=torch.float32)

    def forward(self, x):
        horizon = x.shape[1] // 2
        stats = torch.stack([x.mean(1), x[:, -1], x[:, -horizon:].mean(1)], dim=1)
        return self.theta(stats) @ self.basis(horizon)


@case("x: f32[b, t, 3]", "future: f32[b, h, 2]")
class LastValueCarriedOverCovariates(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 3)

    def forward(self, x, future):
        last = x[:, -1:, :]
        steps = future.shape[1]
        ahead = torch.arange(1, steps + 1).view(1, steps, 1) / (x.shape[1] + steps)
        feats = torch.cat([last.expand(-1, steps, -1), future,
                           ahead.expand(x.shape[0], -1, -1)], dim=-1)
        return self.out(feats) + last


@case("x: f32[b, 4, t]", least={"t": 4})
class ThreeScalesMixedDownAndUp(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.ModuleList(nn.Conv1d(4, 4, 1) for _ in range(3))

    def forward(self, x):
        scales = [x, F.avg_pool1d(x, 2), F.avg_pool1d(x, 4)]
        length = x.shape[-1]
        total = 0
        for conv, s in zip(self.mix, scales):
            total = total + F.interpolate(conv(s), size=length, mode="linear")
        return total / len(scales), scales[-1]


@case("x: f32[b, 4, t]", "cache: f32[b, 4, 4]")
class CausalConvCarryingItsCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 5, groups=4)

    def forward(self, x, cache):
        keep = self.conv.kernel_size[0] - 1
        joined = torch.cat([cache, x], dim=2)
        new_cache = joined.narrow(2, joined.size(2) - keep, keep)
        return F.silu(self.conv(joined)), new_cache


@case("x: f32[b, 6, t]")
class CumulativeLayerNormOverTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, 6, 1))
        self.bias = nn.Parameter(torch.zeros(1, 6, 1))

    def forward(self, x):
        b, c, t = x.size()
        count = torch.arange(c, c * (t + 1), c, dtype=x.dtype).view(1, -1)
        mean = x.sum(1).cumsum(1) / count
        power = x.pow(2).sum(1).cumsum(1) / count
        var = (power - mean.pow(2)).clamp(min=0)
        y = (x - mean.unsqueeze(1)) / (var + 1e-2).sqrt().unsqueeze(1)
        return y * self.gain.expand_as(x) + self.bias


@case("x: f32[b, 6, t]", least={"t": 2})
class AttentiveStatisticsWithContext(nn.Module):
    def __init__(self):
        super().__init__()
        self.tdnn = nn.Conv1d(18, 4, 1)
        self.conv = nn.Conv1d(4, 6, 1)

    def forward(self, x):
        L = x.size(-1)
        mean = x.mean(dim=2, keepdim=True).repeat(1, 1, L)
        std = x.std(dim=2, keepdim=True).repeat(1, 1, L)
        w = self.conv(torch.tanh(self.tdnn(torch.cat([x, mean, std], dim=1)))).softmax(dim=2)
        mu = (w * x).sum(2)
        sg = ((w * x ** 2).sum(2) - mu ** 2).clamp(min=1e-2).sqrt()
        return torch.cat([mu, sg], dim=1)


@case("x: f32[b, t]", least={"t": 2})
class VariogramOverFourLags(nn.Module):
    lags = (1, 2, 3, 5)

    def forward(self, x):
        n = x.size(1)
        y = F.pad(x, (0, max(self.lags)))
        out = []
        for lag in self.lags:
            d = (y[:, lag:lag + n] - x) ** 2
            out.append(d.sum(1) / max(n - lag, 1) / 2)
        return torch.stack(out, dim=-1)


@case("spec: f32[b, f, t]", least={"f": 4}, most={"b": 50})
class FrequencyBandsWithRemainder(nn.Module):
    def forward(self, spec):
        f = spec.shape[1]
        step, rest = divmod(f, 4)
        widths = [step, step, step, step + rest]
        bands = torch.split(spec, widths, dim=1)
        energy = torch.stack([band.square().mean(dim=1) for band in bands], dim=1)
        low = spec.narrow(1, 0, step)
        high = spec.narrow(1, f - step, step)
        return energy, low - high.flip(1)


@case("mix: f32[b, 2, t]")
class DemucsValidLengthAndTrim(nn.Module):
    kernel, stride, depth = 6, 3, 2

    def __init__(self):
        super().__init__()
        ch = [2, 4, 6]
        self.enc = nn.ModuleList(nn.Conv1d(ch[i], ch[i + 1], 6, 3) for i in range(2))
        self.dec = nn.ModuleList(nn.ConvTranspose1d(ch[i + 1], ch[i], 6, 3) for i in (1, 0))

    def valid_length(self, length):
        for _ in range(self.depth):
            length = max(math.ceil((length - self.kernel) / self.stride) + 1, 1)
        for _ in range(self.depth):
            length = (length - 1) * self.stride + self.kernel
        return int(length)

    def forward(self, mix):
        length = mix.shape[-1]
        delta = self.valid_length(length) - length
        x = F.pad(mix, (delta // 2, delta - delta // 2))
        for layer in self.enc:
            x = F.relu(layer(x))
        for layer in self.dec:
            x = layer(x)
        start, keep = middle(x.shape[-1], length)
        return x.narrow(-1, start, keep)


@case("wav: f32[b, n]")
class HopClassFramesThenEnergies(nn.Module):
    def __init__(self):
        super().__init__()
        self.plan = Hop(10, 4)
        self.proj = nn.Linear(10, 3)

    def forward(self, wav):
        b, n = wav.shape
        count = self.plan.frames(n)
        x = F.pad(wav, (0, self.plan.padding(n)))
        frames = x.unfold(1, self.plan.size, self.plan.hop).reshape(b, count, -1)
        return self.proj(frames), frames.abs().amax(-1) / count
