"""Tables and statistics: quantiles, ranks, averages by hand and bins."""
import torch
from torch import nn
import torch.nn.functional as F
import math
import numpy as np
from case import case


def quantile_index(n, q):
    return min(n - 1, int(q * n))


def running_counts(n, device=None):
    return torch.arange(1, n + 1, device=device, dtype=torch.float32)


def sturges(n):
    return math.ceil(math.log2(n)) + 1


class RowStats:
    def __init__(self, x):
        self.x = x

    @property
    def count(self):
        return self.x.shape[0]

    @property
    def middle(self):
        return (self.count - 1) // 2

    def spread(self):
        lo, hi = self.count // 4, self.count - 1 - self.count // 4
        ordered = self.x.sort(dim=0).values
        return ordered[hi] - ordered[lo]


@case("x: f32[n, 6]")
class TableQuantileRow(nn.Module):
    def forward(self, x):
        k = quantile_index(x.shape[0], 0.7)
        return x.sort(dim=0).values[k]


@case("x: f32[n, c]")
class TableLowerMedianRow(nn.Module):
    def forward(self, x):
        stats = RowStats(x)
        return x - x.sort(dim=0).values[stats.middle]


@case("x: f32[b, n]")
class TableMedianByHand(nn.Module):
    def forward(self, x):
        n = x.size(1)
        ordered, _ = torch.sort(x, dim=1)
        half = n // 2
        if n % 2 == 1:
            return ordered[:, half]
        return 0.5 * (ordered[:, half - 1] + ordered[:, half])


@case("x: f32[n, 5]")
class TableTrimmedMean(nn.Module):
    trim = 0.1

    def forward(self, x):
        n = len(x)
        k = int(self.trim * n)
        return x.sort(dim=0).values[k:n - k].mean(dim=0)


@case("x: f32[n, 5]")
class TableTrimmedMeanInteger(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        k = n // 10
        kept = x.sort(dim=0).values[k:n - k]
        return kept.sum(dim=0) / (n - 2 * k)


@case("x: f32[n, 4]")
class TableInterquartileScale(nn.Module):
    def forward(self, x):
        return x / (1.0 + RowStats(x).spread())


@case("x: f32[b, n]")
class TableTopQuarterMean(nn.Module):
    def forward(self, x):
        k = max(1, x.shape[-1] // 4)
        return x.topk(k, dim=-1).values.mean(dim=-1)


@case("x: f32[b, n]")
class TableTopLogCount(nn.Module):
    def forward(self, x):
        k = int(math.log2(x.shape[1])) + 1
        values, index = torch.topk(x, min(k, x.shape[1]), dim=1)
        return values, index


@case("x: f32[b, n]", least={"n": 3})
class TableTopThree(nn.Module):
    def forward(self, x):
        values, index = x.topk(3, dim=1)
        return values / x.shape[1], index


@case("x: f32[n, c]")
class TableRankTransform(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        ranks = x.argsort(dim=0).argsort(dim=0)
        p = (ranks.float() + 0.5) / n
        return torch.log(p) - torch.log1p(-p)


@case("x: f32[b, n]")
class TableRankToUnit(nn.Module):
    def forward(self, x):
        ranks = x.argsort(dim=-1).argsort(dim=-1).to(x.dtype)
        return ranks / max(x.size(-1) - 1, 1)


@case("x: f32[b, n]", least={"n": 2})
class TableSoftHistogramSturges(nn.Module):
    def forward(self, x):
        bins = sturges(x.shape[1])
        centres = torch.linspace(-2.0, 2.0, bins)
        width = 4.0 / bins
        hits = torch.exp(-((x.unsqueeze(-1) - centres) / width) ** 2)
        return hits.mean(dim=1)


@case("x: f32[n]")
class TableHistogramSqrtRule(nn.Module):
    def forward(self, x):
        bins = int(math.ceil(math.sqrt(x.shape[0])))
        edges = torch.tensor([-2.0 + 4.0 * i / bins for i in range(bins + 1)])
        inside = (x[:, None] >= edges[:-1]) & (x[:, None] < edges[1:])
        return inside.float().sum(dim=0) / x.shape[0]


@case("x: f32[b, t, 4]")
class TableRunningAverage(nn.Module):
    def forward(self, x):
        counts = running_counts(x.size(1), x.device)
        return x.cumsum(dim=1) / counts[None, :, None]


@case("x: f32[b, t]")
class TableRunningVarianceBack(nn.Module):
    def forward(self, x):
        back = x.flip(1)
        counts = running_counts(x.shape[1])
        mean = back.cumsum(1) / counts
        square = (back * back).cumsum(1) / counts
        return (square - mean * mean).flip(1)


@case("x: f32[n, 3]")
class TableInterpolatedQuantile(nn.Module):
    def __init__(self, q=0.35):
        super().__init__()
        self.q = q

    def forward(self, x):
        position = self.q * (x.shape[0] - 1)
        low = int(math.floor(position))
        high = min(low + 1, x.shape[0] - 1)
        weight = position - low
        ordered = x.sort(dim=0).values
        return ordered[low] * (1 - weight) + ordered[high] * weight


@case("x: f32[n, 3]")
class TableQuantileBands(nn.Module):
    bands = (0.05, 0.25, 0.5, 0.75, 0.95)

    def forward(self, x):
        n = x.shape[0]
        picks = [round(q * (n - 1)) for q in self.bands]
        return x.sort(dim=0).values[picks]


@case("x: f32[b, n]")
class TableTorchQuantile(nn.Module):
    def forward(self, x):
        n = x.size(1)
        ordered = x.sort(dim=1).values
        thirds = [ordered[:, n // 3], ordered[:, (2 * n) // 3]]
        return torch.stack(thirds, dim=1)


@case("x: f32[n, d]", least={"n": 2})
class TableBesselScore(nn.Module):
    def forward(self, x):
        n, _ = x.shape
        mean = x.sum(0) / n
        var = ((x - mean) ** 2).sum(0) / (n - 1)
        return (x - mean) / torch.sqrt(var + 1e-2)


@case("x: f32[n, d]")
class TableShrunkCovariance(nn.Module):
    def forward(self, x):
        n, d = x.shape
        centred = x - x.mean(dim=0, keepdim=True)
        cov = centred.t() @ centred / n
        shrink = min(1.0, d / (n + d))
        return (1 - shrink) * cov + shrink * torch.eye(d) * cov.diagonal().sum() / d


@case("x: f32[n, 4]", least={"n": 2})
class TableLeaveOneOutMean(nn.Module):
    def forward(self, x):
        return x - (x.sum(dim=0, keepdim=True) - x) / (len(x) - 1)


@case("x: f32[b, n]")
class TableHarmonicWeights(nn.Module):
    def forward(self, x):
        weights = [1.0 / (i + 1) for i in range(x.shape[1])]
        total = sum(weights)
        weights = torch.tensor([w / total for w in weights])
        return x.sort(dim=1, descending=True).values @ weights


@case("x: f32[b, t, 3]")
class TableDecayWeightsNumpy(nn.Module):
    decay = 0.9

    def forward(self, x):
        weights = self.decay ** np.arange(x.shape[1])[::-1]
        weights = torch.tensor(weights / weights.sum(), dtype=torch.float32)
        return torch.einsum("btc,t->bc", x, weights)


@case("x: f32[n, 4]", least={"n": 3})
class TableTrainTestSplit(nn.Module):
    def forward(self, x):
        cut = int(0.8 * x.shape[0])
        train, test = x[:cut], x[cut:]
        mean = train.mean(dim=0)
        scale = train.abs().amax(dim=0) + 1.0
        return (train - mean) / scale, (test - mean) / scale


@case("x: f32[n, 4]", least={"n": 2})
class TableTrainTestSplitInteger(nn.Module):
    def forward(self, x):
        cut = x.shape[0] * 4 // 5
        train, test = x[:cut], x[cut:]
        return test - train.mean(dim=0), torch.cat([test, train], dim=0)


@case("x: f32[n, 3]", least={"n": 5})
class TableFoldMeans(nn.Module):
    folds = 5

    def forward(self, x):
        size = x.shape[0] // self.folds
        kept = x[:size * self.folds].reshape(self.folds, size, 3)
        return kept.mean(dim=1)


@case("x: f32[n, 3]", least={"n": 2})
class TablePairedRows(nn.Module):
    def forward(self, x):
        pairs = x.shape[0] // 2
        return x[::2][:pairs] - x[1::2][:pairs]


@case("numeric: f32[b, 6]", "codes: i64[b, 3] < 10")
class TableEmbeddingsAndNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(10, 4) for _ in range(3)])
        self.norm = nn.BatchNorm1d(6)
        self.out = nn.Sequential(nn.Linear(18, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))

    def forward(self, numeric, codes):
        parts = [table(codes[:, i]) for i, table in enumerate(self.tables)]
        return self.out(torch.cat([self.norm(numeric)] + parts, dim=1))


@case("x: f32[b, 10]")
class TableResidualPlain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 16)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU()) for _ in range(3))
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x).squeeze(-1)


@case("x: f32[b, c]")
class TableColumnTokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Linear(1, 8)
        self.cls = nn.Parameter(torch.randn(1, 1, 8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        tokens = self.value(x.unsqueeze(-1))
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], dim=1)
        mixed, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return self.head(mixed[:, 0])


@case("x: f32[b, n]")
class TableTemperatureByLog(nn.Module):
    base = 32

    def forward(self, x):
        temperature = math.log(x.shape[-1] + 1) / math.log(self.base)
        return F.softmax(x * temperature, dim=-1)


@case("x: f32[b, n]", least={"n": 2})
class TableEntropyShare(nn.Module):
    def forward(self, x):
        p = x.softmax(dim=1)
        return -(p * p.log()).sum(dim=1) / math.log(x.size(1))


@case("x: f32[n, 4]")
class TableStandardError(nn.Module):
    def forward(self, x):
        return x.std(dim=0, unbiased=False) / x.shape[0] ** 0.5


@case("x: f32[b, n]")
class TableGiniByRank(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        values = (x.abs() + 0.1).sort(dim=1).values
        weights = 2 * torch.arange(1, n + 1) - n - 1
        return (values * weights).sum(dim=1) / (n * values.sum(dim=1))


@case("x: f32[b, t]", least={"t": 2})
class TableDetrend(nn.Module):
    def forward(self, x):
        t = x.shape[1]
        time = torch.arange(t, dtype=x.dtype) - (t - 1) / 2
        slope = (x * time).sum(dim=1, keepdim=True) / (time * time).sum()
        return x - x.mean(dim=1, keepdim=True) - slope * time


@case("x: f32[b, d]")
class TablePolynomialPairs(nn.Module):
    def forward(self, x):
        d = x.shape[1]
        rows, cols = torch.triu_indices(d, d)
        return torch.cat([x, x[:, rows] * x[:, cols]], dim=1)


@case("x: f32[b, t, 2]")
class TableLagColumns(nn.Module):
    lags = (1, 2, 5)

    def forward(self, x):
        t = x.shape[1]
        shifted = [F.pad(x, (0, 0, lag, 0))[:, :t] for lag in self.lags]
        return torch.cat([x] + shifted, dim=-1)


@case("x: f32[b, t]")
class TableMovingMedian(nn.Module):
    def forward(self, x):
        padded = torch.cat([x[:, :1], x, x[:, -1:]], dim=1)
        windows = padded.unfold(1, 3, 1)
        return windows.sort(dim=-1).values[..., 1]


@case("x: f32[4*g, c]")
class TableGroupMeans(nn.Module):
    def forward(self, x):
        groups = x.shape[0] // 4
        means = x.view(groups, 4, -1).mean(dim=1)
        return x - means.repeat_interleave(4, dim=0)


@case("x: f32[n, 3]")
class TableWinsorise(nn.Module):
    low, high = 0.05, 0.95

    def forward(self, x):
        n = x.shape[0]
        ordered = x.sort(dim=0).values
        lo = ordered[int(self.low * n)]
        hi = ordered[min(n - 1, int(self.high * n))]
        return torch.minimum(torch.maximum(x, lo), hi)


@case("x: f32[n, 3]")
class TableStrideResample(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        index = torch.tensor([(7 * i + 3) % n for i in range(n)])
        return x[index] + x


@case("x: f32[b, n]")
class TableSmallSampleCorrection(nn.Module):
    corrections = {1: 2.0, 2: 1.253, 3: 1.128, 4: 1.085, 5: 1.064}

    def forward(self, x):
        factor = self.corrections.get(x.shape[1], 1.0)
        return factor * x.abs().mean(dim=1)


@case("x: f32[b, n]", "y: f32[b, n]")
class TableCorrelation(nn.Module):
    def forward(self, x, y):
        n = x.shape[1]
        x = x - x.sum(1, keepdim=True) / n
        y = y - y.sum(1, keepdim=True) / n
        return (x * y).sum(1) / torch.sqrt((x * x).sum(1) * (y * y).sum(1) + 1e-2)


@case("x: f32[n, 4]", "y: f32[m, 4]")
class TablePooledMean(nn.Module):
    def forward(self, x, y):
        n, m = len(x), len(y)
        pooled = (n * x.mean(dim=0) + m * y.mean(dim=0)) / (n + m)
        share = n / (n + m)
        return pooled, share * x, (1 - share) * y
