"""Recurrent nets, caches, packing by hand, chunked memory, branches and sums on lengths."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from case import case


def ceil_div(a, b):
    return -(-a // b)


class ChunkPlan:
    def __init__(self, length, chunk):
        self.length, self.chunk = length, chunk

    @property
    def count(self):
        return ceil_div(self.length, self.chunk)

    @property
    def padding(self):
        return self.count * self.chunk - self.length

    def bounds(self):
        return [(i * self.chunk, min((i + 1) * self.chunk, self.length))
                for i in range(self.count)]


@case("x: f32[b, t, 6]")
class RecurrentLstmLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        out, (h, c) = self.rnn(x)
        return self.head(out[:, -1]), h[-1] + c[-1]


@case("x: f32[t, b, 6]")
class RecurrentBiGruTwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 5, num_layers=2, bidirectional=True)

    def forward(self, x):
        h0 = torch.zeros(4, x.size(1), 5)
        out, h = self.rnn(x, h0)
        return out, torch.cat([h[-2], h[-1]], dim=1)


@case("x: f32[b, t, 4]")
class RecurrentTanhSkip(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 4, batch_first=True)

    def forward(self, x):
        y, _ = self.rnn(x)
        back, _ = self.rnn(x.flip(1))
        return x + y + back.flip(1)


@case("x: f32[b, t, 4]", most={"t": 64})
class RecurrentGruCellLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 6)

    def forward(self, x):
        h = x.new_zeros(x.size(0), 6)
        outputs = []
        for step in range(x.size(1)):
            h = self.cell(x[:, step], h)
            outputs.append(h)
        return torch.stack(outputs, 1)


@case("x: f32[b, t, 6]")
class RecurrentPyramidalLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(6, 4, batch_first=True, bidirectional=True)
        self.second = nn.LSTM(16, 4, batch_first=True)

    def forward(self, x):
        x, _ = self.first(x)
        if x.size(1) % 2:
            x = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
        b, t, c = x.size()
        y, _ = self.second(x.contiguous().view(b, t // 2, c * 2))
        return y


@case("x: f32[b, 4, t]")
class RecurrentCrnnOverColumns(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)
        self.pool = nn.MaxPool1d(2, ceil_mode=True)
        self.rnn = nn.LSTM(6, 5, bidirectional=True)
        self.fc = nn.Linear(10, 7)

    def forward(self, x):
        y = self.pool(self.conv(x).relu()).permute(2, 0, 1)
        y, _ = self.rnn(y)
        t, b, h = y.size()
        return self.fc(y.view(t * b, h)).view(t, b, -1).log_softmax(2)


@case("x: f32[b, t, 8]", "past_k: f32[b, p, 8]", "past_v: f32[b, p, 8]")
class SeqCacheAppendAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, past_k, past_v):
        q, k, v = self.qkv(x).chunk(3, -1)
        k = torch.cat([past_k, k], 1)
        v = torch.cat([past_v, v], 1)
        t, s = q.shape[1], k.shape[1]
        mask = torch.ones(t, s, dtype=torch.bool).tril(diagonal=s - t)
        score = (q @ k.mT / math.sqrt(8)).masked_fill(~mask, float("-inf"))
        return score.softmax(-1) @ v, k, v


@case("x: f32[b, t, 8]", "cache: f32[b, p, 8]")
class SeqCacheKeepLastTwelve(nn.Module):
    keep = 12

    def forward(self, x, cache):
        full = torch.cat([cache, x], dim=1)
        full = full[:, -self.keep:]
        return F.scaled_dot_product_attention(x, full, full), full


@case("x: f32[b, t, 8]", "cache: f32[b, 32, 8]", most={"t": 32})
class SeqCacheRollFixedBuffer(nn.Module):
    def forward(self, x, cache):
        t = x.shape[1]
        cache = torch.cat([cache[:, t:], x], dim=1)
        weights = torch.linspace(0, 1, cache.shape[1])
        return cache, (cache * weights[:, None]).sum(1)


@case("ids: i64[b, t] < 30", "past: f32[b, p, 8]", most={"t": 40, "p": 60})
class SeqCachePositionOffset(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(30, 8)
        self.wpe = nn.Embedding(100, 8)

    def forward(self, ids, past):
        past_length = past.size(-2)
        position = torch.arange(past_length, ids.size(-1) + past_length)
        h = self.wte(ids) + self.wpe(position.unsqueeze(0).view(-1, ids.shape[-1]))
        return h + past.mean(1, keepdim=True)


@case("q: f32[b, 4, t, 4]", "k: f32[b, 4, past + t, 4]")
class SeqCacheAlibiOffset(nn.Module):
    n_heads = 4

    def get_slopes(self, n):
        start = 2 ** (-2 ** -(math.log2(n) - 3))
        return [start * start ** i for i in range(n)]

    def forward(self, q, k):
        t, s = q.shape[-2], k.shape[-2]
        slopes = torch.tensor(self.get_slopes(self.n_heads)).view(-1, 1, 1)
        rows = torch.arange(s - t, s).view(-1, 1)
        cols = torch.arange(s).view(1, -1)
        bias = -slopes * (rows - cols).abs()
        mask = torch.where(cols > rows, -1e9, 0.0)
        score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias + mask
        return score.softmax(-1) @ k


@case("x: f32[b, t, 8]", "mems: f32[b, m, 8]")
class SeqMemoryTransformerXlShift(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.Linear(8, 8, bias=False)
        self.register_buffer("inv", 1 / (100 ** (torch.arange(0.0, 8, 2) / 8)))

    def rel_shift(self, x):
        b, q, k = x.shape
        x = torch.cat([x.new_zeros(b, q, 1), x], dim=2).view(b, k + 1, q)
        return x[:, 1:].view(b, q, k)

    def forward(self, x, mems):
        cat = torch.cat([mems, x], 1)
        qlen, klen = x.shape[1], cat.shape[1]
        pos = torch.arange(klen - 1, -1, -1.0)
        ang = torch.outer(pos, self.inv)
        r = self.r(torch.cat([ang.sin(), ang.cos()], -1))
        bd = self.rel_shift(x @ r.T)
        mask = torch.triu(torch.ones(qlen, klen), diagonal=1 + klen - qlen).bool()
        score = (x @ cat.mT + bd).div(8 ** 0.5).masked_fill(mask, -1e9)
        return score.softmax(-1) @ cat


@case("x: f32[b, t, 8]")
class SeqChunkedFeedForward(nn.Module):
    chunk = 7

    def __init__(self):
        super().__init__()
        self.ff = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        return torch.cat([self.ff(c) + c.mean(1, keepdim=True)
                          for c in x.split(self.chunk, dim=1)], dim=1)


@case("x: f32[b, t, 8]")
class SeqChunkPlanAttention(nn.Module):
    def forward(self, x):
        plan = ChunkPlan(x.shape[1], 8)
        y = F.pad(x, (0, 0, 0, plan.padding))
        y = y.view(x.shape[0], plan.count, plan.chunk, x.shape[2])
        summary = y.mean(2)
        score = x @ summary.mT / plan.count
        return score.softmax(-1) @ summary


@case("x: f32[b, t, 8]")
class SeqChunkPlanBoundsLoop(nn.Module):
    def forward(self, x):
        plan = ChunkPlan(x.shape[1], 10)
        means = [x[:, lo:hi].sum(1) / (hi - lo) for lo, hi in plan.bounds()]
        return torch.stack(means, dim=1)


@case("x: f32[b, t, 8]")
class SeqChunkIntoFourParts(nn.Module):
    def forward(self, x):
        parts = torch.chunk(x, 4, dim=1)
        return torch.cat([p.max(1).values for p in parts], dim=-1)


@case("x: f32[b, t, 8]", least={"t": 3})
class SeqThirdsByTensorSplit(nn.Module):
    def forward(self, x):
        a, b, c = x.tensor_split(3, dim=1)
        return torch.cat([a.mean(1), b.mean(1), c.mean(1)], -1)


@case("x: f32[b, t, 6]", "y: f32[b, s, 6]")
class SeqPackTwoByHand(nn.Module):
    def forward(self, x, y):
        t, s = x.shape[1], y.shape[1]
        both = torch.cat([x, y], 1)
        segment = torch.tensor([0] * t + [1] * s)
        same = segment[:, None] == segment[None, :]
        score = (both @ both.mT).masked_fill(~same, -1e9).softmax(-1)
        out = score @ both
        return out[:, :t], out[:, t:]


@case("x: f32[b, t, 6]", "y: f32[b, s, 6]")
class SeqPackPadToLonger(nn.Module):
    def forward(self, x, y):
        longest = max(x.shape[1], y.shape[1])
        x = F.pad(x, (0, 0, 0, longest - x.shape[1]))
        y = F.pad(y, (0, 0, 0, longest - y.shape[1]))
        return torch.cat([x, y], dim=-1)


@case("x: f32[b, t, 6]", "y: f32[b, s, 6]")
class SeqPackCropToShorter(nn.Module):
    def forward(self, x, y):
        n = min(x.size(1), y.size(1))
        return x[:, :n] * y[:, :n], (x[:, -n:] - y[:, -n:]).abs().sum(1) / n


@case("flat: f32[n, 6]", "lengths: i64[b] < 9")
class SeqPackSegmentMeans(nn.Module):
    def forward(self, flat, lengths):
        ends = (lengths + 1).cumsum(0)
        token = torch.arange(flat.shape[0])
        segment = (token[:, None] >= ends[None, :]).sum(1)
        onehot = (segment[:, None] == torch.arange(lengths.shape[0])[None]).float()
        return onehot.T @ flat / onehot.sum(0).clamp(min=1)[:, None], onehot.sum(0)


@case("x: f32[b, t, 4]")
class SeqPyramidHalvingIndex(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        index = []
        step = 1
        while step < n + 1:
            index.append(n - step)
            step <<= 1
        return x[:, torch.tensor(index)]


@case("x: f32[b, t, 4]")
class SeqLogSparseMask(nn.Module):
    def row(self, i, n):
        keep = [0.0] * n
        keep[i] = 1.0
        gap = 1
        while i - gap >= 0:
            keep[i - gap] = 1.0
            gap *= 2
        return keep

    def forward(self, x):
        n = x.size(1)
        mask = torch.tensor([self.row(i, n) for i in range(n)])
        score = x @ x.transpose(1, 2) / 2 - 1e9 * (1 - mask)
        return score.softmax(-1) @ x


@case("x: f32[b, t, 4]", least={"t": 2})
class SeqProbSparseTopQueries(nn.Module):
    factor = 2

    def forward(self, x):
        t = x.shape[1]
        u = min(self.factor * math.ceil(math.log(t)), t)
        score = x @ x.transpose(1, 2) / 2
        spread = score.max(-1).values - score.sum(-1) / t
        top = spread.topk(u, dim=-1).values
        return top, score.softmax(-1)[:, :u] @ x


@case("x: f32[b, t, 4]")
class SeqBitReversedOrder(nn.Module):
    def reverse(self, i, bits):
        out = 0
        for _ in range(bits):
            out = (out << 1) | (i & 1)
            i >>= 1
        return out

    def forward(self, x):
        n = x.shape[1]
        bits = (n - 1).bit_length()
        order = [self.reverse(i, bits) for i in range(1 << bits)]
        return x[:, torch.tensor([i for i in order if i < n])]


@case("x: f32[b, t, 4]")
class SeqInterleaveEvenThenOdd(nn.Module):
    def forward(self, x):
        t = x.shape[1]
        order = list(range(0, t, 2)) + list(range(1, t, 2))
        return x[:, order].cumsum(1) / torch.arange(1, t + 1)[:, None]


@case("x: f32[b, t, 4]")
class SeqFactorisedIntoGrid(nn.Module):
    def widest_divisor(self, n):
        for d in range(math.isqrt(n), 0, -1):
            if n % d == 0:
                return d

    def forward(self, x):
        b, t, c = x.shape
        rows = self.widest_divisor(t)
        return x.view(b, rows, t // rows, c).transpose(1, 2).reshape(b, t, c) * rows


@case("x: f32[b, t, 4]", "y: f32[b, s, 4]", most={"t": 32, "s": 32})
class SeqAlignByGcd(nn.Module):
    def forward(self, x, y):
        t, s = x.size(1), y.size(1)
        g = math.gcd(t, s)
        x = x.view(x.size(0), g, t // g, 4).mean(2)
        y = y.view(y.size(0), g, s // g, 4).mean(2)
        return torch.cat([x, y], -1)


@case("x: f32[b, t, 4]")
class SeqWarmStartBranchShort(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 5)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        if x.shape[1] < 5:
            return self.fc(x).mean(1)
        return self.conv(x.transpose(1, 2)).mean(2)


@case("x: f32[b, t, 4]")
class SeqThreeWayLengthSwitch(nn.Module):
    gains = {"short": 0.5, "medium": 1.0, "long": 3.0}

    def kind(self, n):
        if n <= 8:
            return "short"
        return "medium" if n < 24 else "long"

    def forward(self, x):
        return torch.tanh(x * self.gains[self.kind(x.shape[1])])


@case("x: f32[b, t, 4]")
class SeqSqueezeSingleStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 5, batch_first=True)

    def forward(self, x):
        y, h = self.rnn(x)
        return y.squeeze(1), h.squeeze()


@case("x: f32[b, t, 4]")
class SeqHeadsEqualTypicalBatch(nn.Module):
    heads = 4

    def forward(self, x):
        b, t, c = x.shape
        tiled = x.repeat(self.heads, 1, 1).view(self.heads, b, t, c)
        scale = torch.arange(1, self.heads + 1).view(-1, 1, 1, 1) / self.heads
        y = (tiled * scale).permute(1, 0, 2, 3).reshape(b * self.heads, t, c)
        return (y @ y.mT / 4).softmax(-1).view(b, self.heads, t, t).mean(1)


@case("x: f32[b, t, 16]")
class SeqLengthSixteenCoincidence(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(16, 16) / 4)
        self.max_len = 16

    def forward(self, x):
        t = x.shape[1]
        ratio = t / self.max_len
        return (x @ self.w) * ratio + (t == 16) * 1.0


@case("q: f32[b, t, 8]", "k: f32[b, s, 8]")
class SeqEntropyScaledSoftmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.train_len = 20

    def forward(self, q, k):
        s = k.shape[1]
        temperature = max(1.0, math.log(s, self.train_len)) if s > 1 else 1.0
        return ((q @ k.mT) * temperature / math.sqrt(q.shape[-1])).softmax(-1) @ k


@case("x: f32[b, t, 8]")
class SeqStochasticDepthNoopLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            keep = 1 - 0.1 * i / len(self.layers)
            x = x + self.drop(F.relu(layer(x))) * keep
        return x.sum(dim=1).div(x.shape[1]) + x.flatten(1)[:, :8]


@case("logits: f32[b, t, 7]")
class SeqGreedyCollapseRepeats(nn.Module):
    blank = 0

    def forward(self, logits):
        best = logits.argmax(-1)
        before = F.pad(best[:, :-1], (1, 0), value=-1)
        keep = (best != before) & (best != self.blank)
        return torch.where(keep, best, torch.full_like(best, -1)), keep.sum(1) / best.shape[1]


@case("x: f32[b, t, 4]", most={"t": 48})
class SeqViterbiLikeScan(nn.Module):
    def __init__(self):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        b, t, k = x.shape
        score = x[:, 0]
        for i in range(1, t):
            score = torch.logsumexp(score[:, :, None] + self.trans, dim=1) + x[:, i]
        return score.logsumexp(-1) / t, score - score.mean(-1, keepdim=True)


@case("x: f32[b, t, 4]")
class SeqPrefixScanDoubling(nn.Module):
    def forward(self, x):
        t = x.shape[1]
        shift = 1
        while shift < t:
            x = x + 0.5 * F.pad(x, (0, 0, shift, 0))[:, :t]
            shift *= 2
        return x


@case("x: f32[b, t, 4]")
class SeqResumeFromQuantisedTimes(nn.Module):
    steps = 65

    def forward(self, x):
        t = x.shape[1]
        times = np.round(np.linspace(0, self.steps - 1, t)).astype(int)
        table = torch.sin(torch.arange(self.steps) * 0.1)
        return x * table[times.tolist()].unsqueeze(-1) + x.mean()


@case("x: f32[b, t, 4]")
class SeqSpecMaskMiddleFifth(nn.Module):
    def forward(self, x):
        t = x.shape[1]
        width = int(t * 0.2)
        start = (t - width) // 2
        mask = torch.ones(t)
        mask[start:start + width] = 0.25
        return x * mask[:, None]


@case("x: f32[b, t, 4]")
class SeqRatioKeepTokens(nn.Module):
    ratio = 0.6

    def forward(self, x):
        keep = max(1, round(x.shape[1] * self.ratio))
        return x.norm(dim=-1).topk(keep, dim=1).values, x[:, :keep]


@case("x: f32[b, t, 4]", "bias: f32[t, t]")
class SeqBiasGivenSquare(nn.Module):
    def forward(self, x, bias):
        upper = bias.triu(1)
        sym = upper + upper.T + torch.eye(x.shape[1])
        return sym @ x / x.shape[1] ** 0.5


@case("x: f32[b, t, c]", least={"c": 2})
class SeqScaleByEveryAxis(nn.Module):
    def forward(self, x):
        b, t, c = x.shape
        norm = F.layer_norm(x, (c,))
        return norm * t / (b + 1), norm.sum((0, 1)) / (b * t), F.instance_norm(
            torch.cat([x, x * 2], 1).transpose(1, 2)) / math.sqrt(4)


@case("ids: i64[b, t] < 17")
class SeqByteTokenOffsets(nn.Module):
    specials = {"bos": 17, "eos": 18, "pad": 19}

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)

    def forward(self, ids):
        b, t = ids.shape
        bos = torch.full((b, 1), self.specials["bos"])
        eos = torch.full((b, 1), self.specials["eos"])
        ids = torch.cat([bos, ids, eos], 1)
        short = -(t + 2) % 8
        ids = F.pad(ids, (0, short), value=self.specials["pad"])
        return self.emb(ids).view(b, -1, 64), (ids != self.specials["pad"]).sum(1)
