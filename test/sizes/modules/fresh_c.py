"""Tables, sets, graphs, physics, forecasting, recommenders, signals, statistics."""
import math
from collections import OrderedDict
from functools import partial
from typing import Dict, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from case import case


@case("x: f32[b, 6]")
class BatchStandardScore(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        mean = x.sum(0, keepdim=True) / n
        var = ((x - mean) ** 2).sum(0, keepdim=True) / max(n - 1, 1)
        return (x - mean) / torch.sqrt(var + 1e-6)


@case("num: f32[b, 5]", "cat: i64[b, 3] < 7")
class TabularWithOffsetEmbedding(nn.Module):
    """One shared table, each column shifted to its own rows."""

    def __init__(self):
        super().__init__()
        cards = [7, 7, 7]
        self.register_buffer("offsets", torch.tensor([0] + list(np.cumsum(cards)[:-1])))
        self.emb = nn.Embedding(sum(cards), 4)
        self.mlp = nn.Sequential(nn.Linear(5 + 12, 10), nn.ReLU(), nn.Linear(10, 1))

    def forward(self, num, cat):
        e = self.emb(cat + self.offsets[None]).reshape(len(cat), -1)
        return self.mlp(torch.cat([num, e], dim=1)).view(-1)


@case("x: f32[b, n, 3]")
class DeepSetsMeanMax(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8))
        self.rho = nn.Linear(17, 4)

    def forward(self, x):
        b, n, _ = x.shape
        h = self.phi(x)
        count = torch.full((b, 1), math.log(n + 1), dtype=x.dtype)
        return self.rho(torch.cat([h.mean(1), h.amax(1), count], dim=-1))


@case("pts: f32[b, 3, n]")
class PointNetSegmentationConcat(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 8, 1)
        self.conv2 = nn.Conv1d(8, 16, 1)
        self.head = nn.Conv1d(24, 4, 1)

    def forward(self, pts):
        n_pts = pts.size()[2]
        local = F.relu(self.conv1(pts))
        x = torch.max(self.conv2(local), 2, keepdim=True)[0]
        x = x.view(-1, 16, 1).repeat(1, 1, n_pts)
        return F.log_softmax(self.head(torch.cat([x, local], 1)), dim=1)


@case("x: f32[b, n, 4]", "adj: f32[b, n, n]")
class DenseGcnWithSelfLoops(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(4, 6)

    def forward(self, x, adj):
        N = adj.shape[-1]
        a = (adj > 0.3).float()
        a = torch.maximum(a, a.transpose(1, 2)) + torch.eye(N, device=x.device)
        a = a.clamp(max=1)
        d = a.sum(-1).pow(-0.5)
        return torch.relu(d[:, :, None] * a * d[:, None, :] @ self.w(x))


@case("x: f32[n, 5]", "src: i64[e] < 3", "dst: i64[e] < 3", least={"n": 3})
class EdgeListMeanAggregation(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(10, 5)

    def forward(self, x, src, dst):
        num_nodes, dim = x.size()
        num_edges = src.numel()
        out = x.new_zeros(num_nodes, dim)
        out = out.index_add(0, dst, x[src])
        deg = x.new_zeros(num_nodes).index_add(0, dst, x.new_ones(num_edges))
        agg = out / deg.clamp(min=1).unsqueeze(-1)
        return self.lin(torch.cat([x, agg], dim=-1))


@case("x: f32[b, n, 4]")
class AllPairsRelationNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 6))

    def forward(self, x):
        b, n, d = x.size()
        xi = x.unsqueeze(1).repeat(1, n, 1, 1)
        xj = x.unsqueeze(2).repeat(1, 1, n, 1)
        pairs = torch.cat([xi, xj], 3).view(b * n * n, 2 * d)
        return self.g(pairs).view(b, n * n, 6).sum(1) / (n * n)


@case("x: f32[b, n, 3]", least={"n": 5})
class KnnEdgeFeatures(nn.Module):
    """Edge features of DGCNN with flat indices into batch * points."""

    k = 4

    def knn(self, x):
        inner = -2 * torch.matmul(x, x.transpose(2, 1))
        xx = torch.sum(x ** 2, dim=2, keepdim=True)
        return (-xx - inner - xx.transpose(2, 1)).topk(k=self.k, dim=-1)[1]

    def forward(self, x):
        batch_size, num_points, num_dims = x.size()
        idx = self.knn(x)
        idx_base = torch.arange(0, batch_size).view(-1, 1, 1) * num_points
        idx = (idx + idx_base).view(-1)
        feature = x.reshape(batch_size * num_points, -1)[idx, :]
        feature = feature.view(batch_size, num_points, self.k, num_dims)
        x = x.view(batch_size, num_points, 1, num_dims).repeat(1, 1, self.k, 1)
        return torch.cat((feature - x, x), dim=3).permute(0, 3, 1, 2)


@case("u: f32[b, n]", least={"n": 3})
class HeatEquationStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(0.1))

    def forward(self, u):
        n = u.shape[-1]
        dx = 1.0 / (n - 1)
        dt = 0.25 * dx ** 2
        lap = (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2]) / dx ** 2
        inner = u[:, 1:-1] + dt * self.alpha * lap
        return torch.cat([u[:, :1], inner, u[:, -1:]], dim=1)


@case("u: f32[b, n]", least={"n": 2})
class SpectralDerivative(nn.Module):
    def forward(self, u):
        n = u.size(-1)
        k = torch.fft.rfftfreq(n, d=1.0 / n) * 2 * math.pi
        uh = torch.fft.rfft(u)
        return torch.fft.irfft(1j * k * uh, n=n)


class SpectralConv1d(nn.Module):
    def __init__(self, cin, cout, modes):
        super().__init__()
        self.cout, self.modes = cout, modes
        self.w = nn.Parameter(torch.randn(cin, cout, modes, 2) / (cin * cout))

    def forward(self, x):
        B, N = x.shape[0], x.size(-1)
        ft = torch.fft.rfft(x)
        out = torch.zeros(B, self.cout, N // 2 + 1, dtype=torch.cfloat, device=x.device)
        w = torch.view_as_complex(self.w)
        out[:, :, :self.modes] = torch.einsum("bix,iox->box", ft[:, :, :self.modes], w)
        return torch.fft.irfft(out, n=N)


@case("a: f32[b, n, 1]", least={"n": 8})
class FourierNeuralOperator1d(nn.Module):
    def __init__(self, width=6, modes=4):
        super().__init__()
        self.lift = nn.Linear(2, width)
        self.spec = SpectralConv1d(width, width, modes)
        self.skip = nn.Conv1d(width, width, 1)
        self.out = nn.Linear(width, 1)

    def get_grid(self, shape):
        bs, size = shape[0], shape[1]
        grid = torch.tensor(np.linspace(0, 1, size), dtype=torch.float)
        return grid.reshape(1, size, 1).repeat([bs, 1, 1])

    def forward(self, a):
        x = torch.cat((a, self.get_grid(a.shape)), dim=-1)
        x = self.lift(x).permute(0, 2, 1)
        x = F.gelu(self.spec(x) + self.skip(x))
        return self.out(x.permute(0, 2, 1))


@case("x: f32[b, t, 3]", least={"t": 5})
class PatchTstEmbedding(nn.Module):
    def __init__(self, patch_len=4, stride=2):
        super().__init__()
        self.patch_len, self.stride = patch_len, stride
        self.pad = nn.ReplicationPad1d((0, stride))
        self.value = nn.Linear(patch_len, 8, bias=False)

    def forward(self, x):
        means = x.mean(1, keepdim=True)
        std = torch.sqrt(torch.var(x, dim=1, keepdim=True, unbiased=False) + 1e-5)
        x = ((x - means) / std).permute(0, 2, 1)
        n_vars = x.shape[1]
        x = self.pad(x).unfold(dimension=-1, size=self.patch_len, step=self.stride)
        x = torch.reshape(x, (x.shape[0] * x.shape[1], x.shape[2], x.shape[3]))
        z = self.value(x)
        return z.view(-1, n_vars, z.shape[-2], z.shape[-1]).permute(0, 1, 3, 2)


@case("x: f32[b, t, 2]")
class TimesNetFoldByPeriod(nn.Module):
    def __init__(self, period=6):
        super().__init__()
        self.period = period
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        B, T, N = x.size()
        period = self.period
        length = ((T + period - 1) // period) * period
        padding = torch.zeros([x.shape[0], length - T, x.shape[2]])
        out = torch.cat([x, padding], dim=1)
        out = out.reshape(B, length // period, period, N).permute(0, 3, 1, 2).contiguous()
        out = self.conv(out).permute(0, 2, 3, 1).reshape(B, -1, N)
        return out[:, :T, :] + x


@case("x: f32[b, t]", least={"t": 2})
class NBeatsTrendAndSeasonality(nn.Module):
    def __init__(self, degree=3, harmonics=2):
        super().__init__()
        self.degree, self.harmonics = degree, harmonics
        self.scale = nn.Parameter(torch.ones(degree + 2 * harmonics))

    def basis(self, steps):
        t = np.arange(steps, dtype=np.float32) / steps
        rows = [t ** i for i in range(self.degree)]
        for h in range(1, self.harmonics + 1):
            rows += [np.cos(2 * np.pi * h * t), np.sin(2 * np.pi * h * t)]
        return torch.as_tensor(np.stack(rows).astype(np.float32))

    def forward(self, x):
        S = self.basis(x.shape[1])
        theta = x @ S.t() / x.shape[1] * self.scale
        return theta @ S, theta


@case("x: f32[b, t, 3]", "horizon: f32[b, p, 1]")
class DecoderInputWithLabelLength(nn.Module):
    """Informer style: half of the history, then zeros for the horizon."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)

    def forward(self, x, horizon):
        label_len = x.shape[1] // 2
        pred_len = horizon.shape[1]
        zeros = torch.zeros(x.shape[0], pred_len, x.shape[2], dtype=x.dtype)
        dec = torch.cat([x[:, x.shape[1] - label_len:], zeros], dim=1)
        mark = F.pad(horizon, (0, 0, label_len, 0))
        return self.lin(torch.cat([dec, mark], -1))[:, -pred_len:]


@case("x: f32[b, t]", least={"t": 3})
class ExponentialSmoothingMatrix(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(0.4))

    def forward(self, x):
        T = x.size(1)
        a = torch.sigmoid(self.logit)
        lag = torch.arange(T).view(-1, 1) - torch.arange(T).view(1, -1)
        w = torch.tril(a * (1 - a) ** lag.clamp(min=0))
        w[:, 0] = (1 - a) ** torch.arange(T)
        return x @ w.T


@case("dense: f32[b, 8]", "sparse: f32[b, s, 8]")
class DlrmDotInteraction(nn.Module):
    """Masks the lower triangle rather than gathering it."""

    def forward(self, dense, sparse):
        batch, d = dense.shape
        T = torch.cat([dense, sparse.view(batch, -1)], dim=1).view((batch, -1, d))
        Z = torch.bmm(T, T.transpose(1, 2))
        _, ni, nj = Z.shape
        li = torch.tril(torch.ones(ni, nj), diagonal=-1)
        R = (Z * li).flatten(start_dim=1)
        return torch.cat([dense, R], dim=1)


@case("q: f32[b, 6]", "d: f32[b, 6]")
class InBatchSoftmaxLoss(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.t = temperature

    def forward(self, q, d):
        q, d = F.normalize(q, dim=-1), F.normalize(d, dim=-1)
        sim = q @ d.t() / self.t
        labels = torch.arange(q.size(0), device=q.device)
        loss = F.cross_entropy(sim, labels)
        acc = (sim.argmax(1) == labels).float().sum() / q.size(0)
        return loss, acc


@case("z: f32[2*b, 6]")
class NtXentViews(nn.Module):
    def forward(self, z):
        n = z.shape[0] // 2
        z = F.normalize(z, dim=1)
        sim = z @ z.T / 0.5
        eye = torch.eye(2 * n, dtype=torch.bool)
        sim = sim.masked_fill(eye, -1e9)
        target = torch.cat([torch.arange(n) + n, torch.arange(n)])
        return F.cross_entropy(sim, target, reduction="none").view(2, n).mean(0)


@case("x: f32[b, n]", least={"n": 2})
class QuantileByLinearInterpolation(nn.Module):
    """numpy.percentile with its default method."""

    def __init__(self, qs=(0.1, 0.5, 0.9)):
        super().__init__()
        self.qs = qs

    def forward(self, x):
        s, _ = torch.sort(x, dim=-1)
        n = x.shape[-1]
        out = []
        for q in self.qs:
            pos = q * (n - 1)
            lo = int(math.floor(pos))
            hi = min(lo + 1, n - 1)
            out.append(s[:, lo] * (1 - (pos - lo)) + s[:, hi] * (pos - lo))
        return torch.stack(out, dim=1)


@case("x: f32[b, n]", least={"n": 3})
class TrimmedMean(nn.Module):
    def __init__(self, fraction=0.2):
        super().__init__()
        self.fraction = fraction

    def forward(self, x):
        n = x.size(1)
        cut = int(n * self.fraction)
        kept = x.sort(dim=1).values[:, cut:n - cut]
        return kept.mean(dim=1), kept.sum(1) / (n - 2 * cut)


@case("x: f32[n, d]", least={"n": 2})
class ShrunkCovariance(nn.Module):
    def forward(self, x):
        n, d = x.shape
        xc = x - x.mean(0)
        cov = xc.t() @ xc / (n - 1)
        mu = torch.trace(cov) / d
        rho = min(1.0, d / n)
        return (1 - rho) * cov + rho * mu * torch.eye(d)


@case("a: f32[n, 3]", "c: f32[m, 3]")
class MaximumMeanDiscrepancy(nn.Module):
    def kernel(self, total, n_total):
        d2 = ((total.unsqueeze(0) - total.unsqueeze(1)) ** 2).sum(2)
        bandwidth = d2.sum() / max(n_total ** 2 - n_total, 1) + 1e-6
        return sum(torch.exp(-d2 / (bandwidth * 2.0 ** i)) for i in range(-1, 2))

    def forward(self, a, c):
        n, m = int(a.size()[0]), int(c.size()[0])
        k = self.kernel(torch.cat([a, c], dim=0), n + m)
        return k[:n, :n].mean() + k[n:, n:].mean() - 2 * k[:n, n:].mean()


@case("x: f32[b, n]")
class HistogramSoftBins(nn.Module):
    def __init__(self, bins=8, lo=-3.0, hi=3.0):
        super().__init__()
        self.delta = (hi - lo) / bins
        self.register_buffer("centers", lo + self.delta * (torch.arange(bins).float() + 0.5))

    def forward(self, x):
        b, n = x.shape
        d = x.unsqueeze(1).expand(b, len(self.centers), n) - self.centers.view(1, -1, 1)
        w = torch.sigmoid(8 * (d + self.delta / 2)) - torch.sigmoid(8 * (d - self.delta / 2))
        hist = w.sum(-1) / n
        return hist, torch.cumsum(hist, -1)


@case("x: f32[b, c, t]", least={"c": 2})
class RunningStatsPerFrame(nn.Module):
    """Cumulative layer norm for causal speech enhancement."""

    def forward(self, x):
        batch, channel, time = x.size()
        step_sum = x.sum(1)
        step_pow = x.pow(2).sum(1)
        cum_sum = torch.cumsum(step_sum, dim=1)
        cum_pow = torch.cumsum(step_pow, dim=1)
        cnt = np.arange(channel, channel * (time + 1), channel)
        cnt = torch.from_numpy(cnt).type(x.type()).view(1, -1).expand_as(cum_sum)
        mean = cum_sum / cnt
        var = (cum_pow - 2 * mean * cum_sum) / cnt + mean.pow(2)
        std = (var + 1e-5).sqrt()
        return (x - mean.unsqueeze(1)) / std.unsqueeze(1)


@case("x: f32[b, n]", least={"n": 2})
class AutocorrelationLagsByCeilLog(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        lags = math.ceil(math.log2(n)) + 1
        xc = x - x.mean(-1, keepdim=True)
        padded = F.pad(xc, (0, lags))
        windows = padded.unfold(-1, n, 1)[:, :lags]
        ac = torch.einsum("bn,bln->bl", xc, windows)
        return ac / (xc.pow(2).sum(-1, keepdim=True) + 1e-8)


@case("x: f32[b, n]", "h: f32[k]")
class FftConvolveSame(nn.Module):
    """scipy.signal.fftconvolve(x, h, mode='same')."""

    @staticmethod
    def _centered(arr, newsize, fullsize):
        start = (fullsize - newsize) // 2
        return arr[..., start:start + newsize]

    def forward(self, x, h):
        n, k = x.shape[-1], h.shape[0]
        full = n + k - 1
        y = torch.fft.irfft(torch.fft.rfft(x, full) * torch.fft.rfft(h, full), full)
        return self._centered(y, n, full)


@case("x: f32[b, n]", least={"n": 4})
class PolyphaseResampleTwoThirds(nn.Module):
    def __init__(self, up=2, down=3, taps=9):
        super().__init__()
        self.up, self.down = up, down
        t = np.arange(taps) - (taps - 1) / 2
        h = np.sinc(t / down) * np.hamming(taps)
        h = torch.tensor(h / h.sum() * up, dtype=torch.float32)
        self.register_buffer("h", h.view(1, 1, -1))

    def forward(self, x):
        b, n = x.shape
        out_len = int(math.ceil(n * self.up / self.down))
        z = torch.zeros(b, n, self.up)
        z[:, :, 0] = x
        z = z.reshape(b, 1, n * self.up)
        half = self.h.shape[-1] // 2
        y = F.conv1d(z, self.h, padding=half, stride=self.down)
        return y[:, 0, :out_len]


@case("x: f32[b, n]", where="n % 4 == 0")
class HaarWaveletTwoLevels(nn.Module):
    def step(self, x):
        pairs = x.view(x.shape[0], x.shape[1] // 2, 2)
        s = (pairs[..., 0] + pairs[..., 1]) / math.sqrt(2)
        d = (pairs[..., 0] - pairs[..., 1]) / math.sqrt(2)
        return s, d

    def forward(self, x):
        s1, d1 = self.step(x)
        s2, d2 = self.step(s1)
        thr = math.sqrt(2 * math.log(x.shape[1])) * 0.1
        soft = partial(F.softshrink, lambd=thr)
        d1, d2 = soft(d1), soft(d2)
        r1 = torch.stack([s2 + d2, s2 - d2], -1).flatten(1) / math.sqrt(2)
        return torch.stack([r1 + d1, r1 - d1], -1).view_as(x) / math.sqrt(2)


@case("x: f32[b, n]")
class DctTypeTwoByTable(nn.Module):
    def __init__(self, keep=6):
        super().__init__()
        self.keep = keep

    def table(self, n: int) -> torch.Tensor:
        k = torch.arange(n, dtype=torch.float32).unsqueeze(1)
        i = torch.arange(n, dtype=torch.float32).unsqueeze(0)
        m = torch.cos(math.pi / n * (i + 0.5) * k) * math.sqrt(2.0 / n)
        m[0] = m[0] / math.sqrt(2.0)
        return m

    def forward(self, x):
        n = x.shape[-1]
        C = self.table(n)
        coef = F.linear(x, C)
        kept = min(self.keep, n)
        low = coef * (torch.arange(n) < kept)
        return coef, low @ C


class Batcher:
    """Lays a flat list of rows out as groups of equal size."""

    def __init__(self, group):
        self.group = group
        self.rows = 0

    def pack(self, x):
        self.rows = x.shape[0]
        groups = (self.rows + self.group - 1) // self.group
        short = groups * self.group - self.rows
        return F.pad(x, (0, 0, 0, short)).view(groups, self.group, x.shape[1])

    def unpack(self, y):
        return y.reshape(-1, y.shape[-1])[: self.rows]


@case("x: f32[n, 6]")
class GhostBatchNormGroups(nn.Module):
    def __init__(self):
        super().__init__()
        self.batcher = Batcher(5)
        self.weight = nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x):
        g = self.batcher.pack(x)
        mu = g.mean(1, keepdim=True)
        sd = g.std(1, keepdim=True, unbiased=False) + 1e-3
        return self.batcher.unpack((g - mu) / sd * self.weight)


@case("pos: f32[b, n, 2]", "mass: f32[b, n]")
class GravitySoftenedForces(nn.Module):
    def __init__(self, g=1.0, eps=0.1):
        super().__init__()
        self.g, self.eps = g, eps

    def forward(self, pos, mass):
        assert pos.ndim == 3 and pos.shape[:2] == mass.shape
        n = pos.shape[1]
        m = mass.abs()
        r = pos[:, None, :, :] - pos[:, :, None, :]
        inv = (r.square().sum(-1) + self.eps ** 2).rsqrt() ** 3
        inv = inv * (1 - torch.eye(n))
        acc = self.g * torch.einsum("bij,bijk,bj->bik", inv, r, m)
        com = (pos * m[..., None]).sum(1) / m.sum(1, keepdim=True).clamp(min=1e-6)
        return acc, com.unsqueeze(1).expand(-1, n, -1)


@case("lattice: f32[b, h, w]", least={"h": 2, "w": 2})
class IsingEnergyCheckerboard(nn.Module):
    def forward(self, lattice):
        s = torch.where(lattice > 0, 1.0, -1.0)
        L1, L2 = s.shape[1], s.shape[2]
        board = (torch.arange(L1)[:, None] + torch.arange(L2)[None]) % 2
        nb = sum(torch.roll(s, sh, ax) for sh, ax in ((1, 1), (-1, 1), (1, 2), (-1, 2)))
        energy = -(s * nb).sum(dim=(1, 2)) / (2.0 * L1 * L2)
        prob = torch.sigmoid(2 * 0.4 * nb) * board
        return energy, prob


@case("x: f32[b, n, 4]", "query: f32[b, 4]", least={"n": 2})
class TopFractionRetrieval(nn.Module):
    """Averages the best tenth of the candidates, at least two of them."""

    def forward(self, x, query):
        n = x.shape[1]
        k = min(n, max(2, round(0.1 * n)))
        score = torch.einsum("bnd,bd->bn", x, query) / math.sqrt(x.shape[-1])
        best, idx = torch.topk(score, k, dim=1)
        picked = torch.gather(x, 1, idx.unsqueeze(-1).expand(-1, -1, x.shape[2]))
        return (best.softmax(1).unsqueeze(-1) * picked).sum(1), best


@case("x: f32[b, t, 3]", least={"t": 2}, most={"t": 12})
class EulerDampedOscillator(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        steps = x.size(1)
        h = 1.0 / steps
        p = torch.zeros_like(x[:, 0])
        v = torch.zeros_like(p)
        track = []
        for i in range(steps):
            v = v + h * (x[:, i] - self.k * p - 0.1 * v)
            p = p + h * v
            track.append(p)
        return torch.stack(track, 1)


@case("x: f32[b, n, 4]")
class SmallSetEarlyReturn(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(4, 1)

    def forward(self, x, temperature: Optional[float] = None):
        if x.shape[1] <= 2:
            return x.mean(1)
        w = torch.softmax(self.attn(x) / (temperature or math.sqrt(x.shape[1])), dim=1)
        return (w * x).sum(1)


@case("x: f32[b, s, 4]", "kind: i64[b, s] < 5")
class OneHotTypePooling(nn.Module):
    kinds = 5

    def forward(self, x, kind):
        oh = F.one_hot(kind, self.kinds).to(x.dtype)
        total = torch.einsum("bsk,bsd->bkd", oh, x)
        share = oh.sum(1) / x.size(1)
        return total / oh.sum(1).clamp(min=1).unsqueeze(-1), share


@case("logits: f32[b, t, c]", least={"c": 2})
class EntropyInUnitsOfClasses(nn.Module):
    def forward(self, logits):
        lp = logits.log_softmax(-1)
        h = -(lp.exp() * lp).sum(-1) / math.log(logits.shape[-1])
        return h, h.sum(1, keepdim=True) / logits.shape[1]


@case("z: f32[b, n, d]", least={"n": 2})
class SinkhornWithSizedMarginals(nn.Module):
    def __init__(self, iters=3):
        super().__init__()
        self.iters = iters

    def forward(self, z):
        b, n, m = z.shape
        norm = -math.log(n + m)
        log_mu = torch.full((n,), norm + math.log(m)).expand(b, -1)
        log_nu = torch.full((m,), norm + math.log(n)).expand(b, -1)
        u, v = torch.zeros_like(log_mu), torch.zeros_like(log_nu)
        for _ in range(self.iters):
            u = log_mu - torch.logsumexp(z + v.unsqueeze(1), dim=2)
            v = log_nu - torch.logsumexp(z + u.unsqueeze(2), dim=1)
        return z + u.unsqueeze(2) + v.unsqueeze(1) - norm

