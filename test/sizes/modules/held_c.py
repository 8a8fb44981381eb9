"""Held out: points, graphs, tables, recommenders, returns, diffusion, matrices and losses."""
import functools
import itertools
import math
import operator

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from case import case


def pairwise(x, y):
    xx = (x ** 2).sum(-1, keepdim=True)
    yy = (y ** 2).sum(-1).unsqueeze(-2)
    return (xx + yy - 2 * x @ y.transpose(-1, -2)).clamp(min=0)


def numel(shape):
    return functools.reduce(operator.mul, shape, 1)


def fraction(n, share, least=1):
    return max(least, min(n, int(math.floor(share * n))))


class Schedule:
    """The time steps that a sampler visits."""
    def __init__(self, total=1000):
        self.total = total

    def timesteps(self, n):
        return (np.arange(n) * (self.total // n)).round()[::-1].copy()


@case("points: f32[b, n, 3]", least={"n": 2}, most={"b": 24})
class EdgeConvolutionOverNearest(nn.Module):
    def __init__(self, k=6):
        super().__init__()
        self.k = k
        self.mlp = nn.Linear(6, 8)

    def forward(self, points):
        b, n, d = points.shape
        k = min(self.k, n)
        idx = pairwise(points, points).topk(k, dim=-1, largest=False)[1]
        flat = idx + torch.arange(b).view(-1, 1, 1) * n
        near = points.reshape(b * n, d)[flat.view(-1)].view(b, n, k, d)
        centre = points.view(b, n, 1, d).expand(-1, -1, k, -1)
        return F.leaky_relu(self.mlp(torch.cat([near - centre, centre], -1))).max(dim=2)[0]


@case("xyz: f32[b, n, 3]", "centres: f32[b, s, 3]", most={"b": 16})
class InverseDistanceInterpolation(nn.Module):
    def forward(self, xyz, centres):
        k = min(3, centres.shape[1])
        d, idx = pairwise(xyz, centres).topk(k, dim=2, largest=False)
        w = 1.0 / (d + 1e-2)
        w = w / w.sum(dim=2, keepdim=True)
        src = centres.unsqueeze(1).expand(-1, xyz.shape[1], -1, -1)
        near = src.gather(2, idx.unsqueeze(-1).expand(-1, -1, -1, 3))
        return (near * w.unsqueeze(-1)).sum(dim=2)


@case("xyz: f32[b, n, 3]", least={"n": 2}, most={"b": 24, "n": 64})
class FarthestPointsQuarter(nn.Module):
    def forward(self, xyz):
        b, n, _ = xyz.shape
        count = (n + 3) // 4
        dist = torch.full((b, n), 1e4)
        far = torch.zeros(b, dtype=torch.long)
        chosen = []
        for _ in range(count):
            p = xyz.gather(1, far.view(b, 1, 1).expand(b, 1, 3))
            chosen.append(p)
            dist = torch.minimum(dist, ((xyz - p) ** 2).sum(-1))
            far = dist.argmax(dim=-1)
        return torch.cat(chosen, dim=1)


@case("points: f32[b, n, 3]")
class PointsInUnitSphereWithRank(nn.Module):
    def forward(self, points):
        n = points.size(1)
        centred = points - points.sum(dim=1, keepdim=True) / n
        radius = centred.norm(dim=-1).amax(dim=1).clamp(min=1e-3)
        scaled = centred / radius.view(-1, 1, 1)
        order = torch.linspace(0, 1, n).view(1, n, 1).repeat(points.size(0), 1, 1)
        return torch.cat([scaled, order], dim=-1)


@case("adj: f32[b, n, n]", "x: f32[b, n, 4]", most={"b": 24})
class BatchedSymmetricAdjacency(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(4, 4, bias=False)

    def forward(self, adj, x):
        b, n, _ = adj.shape
        a = adj.sigmoid()
        a = (a + a.transpose(1, 2)) / 2
        eye = torch.eye(n).unsqueeze(0).repeat(b, 1, 1)
        a = a * (1 - eye) + 2 * eye
        inv = a.sum(-1).pow(-0.5)
        return torch.relu(inv.unsqueeze(2) * (a @ (inv.unsqueeze(2) * self.w(x))))


@case("adj: f32[n, n]", "x: f32[n, 3]")
class ChebyshevFilterThreeTerms(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.randn(3, 3, 2) / 3)

    def forward(self, adj, x):
        n = adj.shape[0]
        a = adj.abs()
        lap = torch.diag(a.sum(1)) - a
        scaled = 2.0 / (2 * n) * lap - torch.eye(n)
        t0, t1 = x, scaled @ x
        t2 = 2 * scaled @ t1 - t0
        return sum(t @ w for t, w in zip((t0, t1, t2), self.theta))


@case("x: f32[n, 4]", "edges: i64[2, e] < 7", least={"n": 7})
class EdgeSoftmaxByTarget(nn.Module):
    def __init__(self):
        super().__init__()
        self.att = nn.Linear(8, 1)

    def forward(self, x, edges):
        n, e = x.shape[0], edges.shape[1]
        src, dst = edges[0], edges[1]
        score = torch.exp(torch.tanh(self.att(torch.cat([x[src], x[dst]], -1)))).view(e)
        total = torch.zeros(n).scatter_add(0, dst, score)
        alpha = score / total[dst]
        out = torch.zeros(n, 4).index_add(0, dst, alpha.view(-1, 1) * x[src])
        return out, alpha * e / n


@case("x: f32[b, n, 4]", least={"n": 2}, most={"b": 24})
class RelationPairsWithoutDiagonal(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(8, 6)

    def forward(self, x):
        b, n, c = x.shape
        i = torch.arange(n).repeat_interleave(n - 1)
        j = torch.arange(n * (n - 1)) % (n - 1)
        j = j + (j >= i).long()
        pairs = torch.cat([x[:, i], x[:, j]], dim=-1)
        return self.g(pairs).relu().view(b, n, n - 1, -1).sum(2) / (n - 1)


@case("x: f32[n, c]", least={"n": 2}, most={"c": 48})
class MidRankPercentiles(nn.Module):
    def forward(self, x):
        n, c = x.shape
        below = (x.unsqueeze(0) < x.unsqueeze(1)).float().sum(dim=1)
        pct = (below + 0.5) / n
        z = torch.log(pct / (1 - pct)) * math.sqrt(3) / math.pi
        return pct, z.sum(dim=1) / math.sqrt(c)


@case("x: f32[n, 5]", least={"n": 2})
class QuantilesBySortedPositions(nn.Module):
    qs = (0.1, 0.25, 0.5, 0.9)

    def forward(self, x):
        n = x.shape[0]
        s = x.sort(dim=0).values
        rows = []
        for q in self.qs:
            pos = q * (n - 1)
            lo = int(pos)
            hi = min(lo + 1, n - 1)
            rows.append(s[lo] + (s[hi] - s[lo]) * (pos - lo))
        return torch.stack(rows)


@case("x: f32[b, n]", least={"n": 3})
class TwentyPercentTrimmedSpread(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        cut = int(0.2 * n)
        core = torch.sort(x, dim=-1)[0][:, cut:n - cut]
        m = core.shape[-1]
        mean = core.mean(-1, keepdim=True)
        se = ((core - mean) ** 2).sum(-1).sqrt() / (m - 1) / (1 - 2 * cut / n)
        return mean.squeeze(-1), se


@case("x: f32[b, n]", least={"n": 4})
class SkewnessAndKurtosisCorrected(nn.Module):
    def forward(self, x):
        n = x.size(1)
        d = x - x.mean(1, keepdim=True)
        m2 = d.pow(2).mean(1) + 0.1
        g1 = d.pow(3).mean(1) / m2 ** 1.5
        g2 = d.pow(4).mean(1) / m2 ** 2 - 3
        skew = g1 * math.sqrt(n * (n - 1)) / (n - 2)
        kurt = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * g2 + 6)
        return skew, kurt


@case("x: f32[n, 4]", "group: i64[n] < 3")
class GroupSharesOfTheTable(nn.Module):
    groups = 3

    def forward(self, x, group):
        n = x.shape[0]
        one = F.one_hot(group, self.groups).float()
        count = one.sum(0)
        mean = (one.t() @ x) / count.clamp(min=1).unsqueeze(-1)
        prior = (count + 1.0) / (n + self.groups)
        between = prior.unsqueeze(-1) * (mean - x.mean(0)) ** 2
        return mean, prior.log(), between.sum(0)


@case("x: f32[n, d]", least={"n": 2, "d": 2}, most={"d": 64})
class LedoitLikeShrinkage(nn.Module):
    def forward(self, x):
        n, d = x.shape
        xc = x - x.mean(0)
        s = xc.T @ xc / (n - 1)
        rho = min(1.0, d / (n + d))
        mu = torch.trace(s) / d
        return (1 - rho) * s + rho * mu * torch.eye(d)


@case("x: f32[n, 3]", "y: f32[m, 3]", least={"n": 2, "m": 2})
class WelchStatisticOfTwoSamples(nn.Module):
    def forward(self, x, y):
        n, m = x.size(0), y.size(0)
        vx, vy = x.var(dim=0) / n, y.var(dim=0) / m
        t = (x.mean(0) - y.mean(0)) / (vx + vy + 1e-3).sqrt()
        dof = (vx + vy + 1e-3) ** 2 / (vx ** 2 / (n - 1) + vy ** 2 / (m - 1) + 1e-3)
        pooled = ((n - 1) * vx * n + (m - 1) * vy * m) / (n + m - 2)
        return t, dof, pooled


@case("x: f32[b, n]")
class EmpiricalCdfOnFixedGrid(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.linspace(-2, 2, 9))

    def forward(self, x):
        n = x.shape[1]
        below = torch.sigmoid((self.grid.view(1, -1, 1) - x.unsqueeze(1)) * 8)
        cdf = below.sum(-1) / n
        band = math.sqrt(math.log(2 / 0.05) / (2 * n))
        return cdf, (cdf - band).clamp(min=0), (cdf + band).clamp(max=1)


@case("fields: f32[b, f, 4]", least={"f": 2}, most={"b": 48, "f": 48})
class FactorisationInnerPairs(nn.Module):
    def forward(self, fields):
        f = fields.shape[1]
        rows, cols = zip(*itertools.combinations(range(f), 2))
        p, q = fields[:, list(rows)], fields[:, list(cols)]
        inner = (p * q).sum(-1)
        return inner.sum(1, keepdim=True) / (f * (f - 1) // 2), inner


@case("fields: f32[b, f, 6]")
class FactorisationSumSquareTrick(nn.Module):
    def __init__(self):
        super().__init__()
        self.deep = nn.Linear(6, 3)

    def forward(self, fields):
        b, f = fields.shape[:2]
        square = fields.sum(dim=1) ** 2
        cross = 0.5 * (square - (fields ** 2).sum(dim=1)) / f
        deep = self.deep(fields.reshape(b * f, -1)).reshape(b, -1, 3)
        return torch.cat([cross, deep.amax(1)], dim=-1)


@case("bottom: f32[b, 5]", "sparse: f32[b, s, 5]", most={"b": 64, "s": 60})
class DlrmDotInteractionFlat(nn.Module):
    def forward(self, bottom, sparse):
        b, d = bottom.shape
        t = torch.cat([bottom.view(b, 1, d), sparse], dim=1)
        z = torch.bmm(t, t.transpose(1, 2))
        ni, nj = z.shape[1], z.shape[2]
        li = torch.tensor([i for i in range(ni) for j in range(i)])
        lj = torch.tensor([j for i in range(nj) for j in range(i)])
        return torch.cat([bottom, z[:, li, lj]], dim=1)


@case("users: f32[u, 6]", "items: f32[i, 6]", least={"i": 2})
class SampledSoftmaxRecall(nn.Module):
    def forward(self, users, items):
        k = fraction(items.shape[0], 0.3)
        scores = users @ items.t() / math.sqrt(users.shape[1])
        popularity = math.log(1.0 / items.shape[0])
        top = torch.topk(scores - popularity, k, dim=1).values
        gain = 1.0 / torch.log2(torch.arange(k) + 2.0)
        return top, (top.sigmoid() * gain).sum(1) / gain.sum()


@case("history: i64[b, t] < 50", "item: i64[b] < 50", most={"t": 128})
class BehaviourDecayToCandidate(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 6)
        self.pos = nn.Embedding(128, 6)

    def forward(self, history, item):
        b, t = history.shape
        age = torch.arange(t).flip(0)
        h = self.emb(history) + self.pos(age)
        q = self.emb(item).unsqueeze(1)
        w = torch.cat([h * q, h - q], -1).mean(-1) - age * (1.0 / t)
        return torch.bmm(w.softmax(1).unsqueeze(1), h).squeeze(1)


@case("rewards: f32[b, t]", most={"t": 64})
class DiscountedReturnsBackwards(nn.Module):
    gamma = 0.97

    def forward(self, rewards):
        t = rewards.shape[1]
        running = torch.zeros_like(rewards[:, 0])
        returns = []
        for i in reversed(range(t)):
            running = rewards[:, i] + self.gamma * running
            returns.insert(0, running)
        returns = torch.stack(returns, dim=1)
        return returns - returns.sum(1, keepdim=True) / t


@case("rewards: f32[b, t]", "values: f32[b, t + 1]")
class GeneralisedAdvantageByMatrix(nn.Module):
    gamma, lam = 0.99, 0.95

    def forward(self, rewards, values):
        t = rewards.shape[-1]
        delta = rewards + self.gamma * values[:, 1:] - values[:, :t]
        power = torch.arange(t)[:, None] - torch.arange(t)[None, :]
        m = torch.tril((self.gamma * self.lam) ** power.clamp(min=0).float())
        adv = delta @ m
        norm = (adv - adv.mean()) / (adv.var(unbiased=False) + 1e-2).sqrt()
        return norm, adv + values[:, :-1]


@case("rewards: f32[b, t]")
class NStepTargetsPadded(nn.Module):
    n, gamma = 3, 0.9

    def forward(self, rewards):
        b, t = rewards.shape
        padded = F.pad(rewards, (0, self.n - 1))
        powers = self.gamma ** torch.arange(self.n)
        target = (padded.unfold(1, self.n, 1) * powers).sum(-1)
        left = torch.clamp(t - torch.arange(t), max=self.n)
        return target, self.gamma ** left.expand(b, t).float()


@case("returns: f32[e, t]")
class BaselineFromOtherEpisodes(nn.Module):
    def forward(self, returns):
        e, t = returns.shape
        total = returns.sum(dim=0, keepdim=True)
        base = (total - returns) / max(e - 1, 1)
        progress = torch.arange(t, dtype=torch.float32) / max(t - 1, 1)
        return (returns - base) * (1 - 0.5 * progress)


@case("x: f32[b, 4, h, w]", "steps: i64[b] < 1000", most={"b": 40})
class TimestepEmbeddingOntoImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.dim = 8
        self.emb = nn.Linear(8, 8)

    def forward(self, x, steps):
        half = self.dim // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half) / half)
        args = steps[:, None].float() * freqs[None] / 100
        scale, shift = self.emb(torch.cat([args.cos(), args.sin()], -1)).chunk(2, dim=1)
        h = F.group_norm(x, 2) * (scale[:, :, None, None] + 1)
        return h + shift.view(x.shape[0], -1, 1, 1).expand(-1, -1, *x.shape[2:])


@case("x: f32[n, 6]", most={"n": 200})
class SamplerVisitsEverySize(nn.Module):
    def __init__(self):
        super().__init__()
        self.schedule = Schedule()
        self.register_buffer("alphas", torch.linspace(0.999, 0.01, 1000))

    def forward(self, x):
        n = x.shape[0]
        steps = torch.from_numpy(self.schedule.timesteps(n)).long()
        a = self.alphas[steps].unsqueeze(-1)
        return a.sqrt() * x + (1 - a).sqrt() * x.roll(1, 0)


@case("x: f32[b, n, 4]", least={"n": 2})
class CosineBetasOverLength(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        t = torch.arange(n + 1) / n
        bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
        beta = (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
        snr = 1 / (1 + torch.arange(n) / (n - 1))
        return x * (1 - beta).sqrt().view(1, n, 1), x.mean(-1) * snr


@case("pred: f32[b, 3, h, w]", "target: f32[b, 3, h, w]", least={"h": 2, "w": 2})
class GradientAndPixelLossPerImage(nn.Module):
    def forward(self, pred, target):
        b, c, h, w = pred.shape
        e = pred - target
        dx = (e[..., 1:] - e[..., :-1]).abs().sum((1, 2, 3)) / (c * h * (w - 1))
        dy = (e[..., 1:, :] - e[..., :-1, :]).abs().sum((1, 2, 3)) / (c * (h - 1) * w)
        mse = e.view(b, -1).square().sum(1) / numel(pred.shape[1:])
        return mse + 0.5 * (dx + dy), -10 * torch.log10(mse)


@case("a: f32[n, 8]", "b: f32[n, 8]", least={"n": 2})
class ContrastiveBothWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.2)))

    def forward(self, a, b):
        n = a.shape[0]
        logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() * self.scale.exp()
        labels = torch.arange(n)
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        return loss / math.log(n), logits.diagonal() - math.log(n)


@case("z: f32[2*n, 6]", least={"n": 2})
class NormalisedTemperaturePairs(nn.Module):
    def forward(self, z):
        n = z.shape[0] // 2
        z = F.normalize(z, dim=1)
        sim = z @ z.T / 0.5
        sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
        partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
        positive = sim.gather(1, partner.unsqueeze(1)).squeeze(1)
        return (torch.logsumexp(sim, dim=1) - positive).mean()


@case("z1: f32[n, d]", "z2: f32[n, d]", least={"n": 2, "d": 2}, most={"d": 64})
class RedundancyReductionLoss(nn.Module):
    def forward(self, z1, z2):
        n, d = z1.shape
        a = (z1 - z1.mean(0)) / (z1.std(0) + 0.1)
        b = (z2 - z2.mean(0)) / (z2.std(0) + 0.1)
        c = a.T @ b / n
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = c.flatten()[:-1].view(d - 1, d + 1)[:, 1:].flatten().pow(2).sum()
        return on + 0.005 * off, off / (d * (d - 1))


@case("logits: f32[b, t, v]", "labels: i64[b, t] < 4", least={"v": 4, "t": 2}, most={"b": 40})
class SmoothedShiftedCrossEntropy(nn.Module):
    eps = 0.1

    def forward(self, logits, labels):
        v = logits.size(-1)
        lp = logits[:, :-1].log_softmax(-1).reshape(-1, v)
        gold = labels[:, 1:].reshape(-1, 1)
        nll = -lp.gather(1, gold).squeeze(1)
        smooth = -lp.sum(-1)
        low = self.eps / (v - 1)
        loss = (1 - self.eps - low) * nll + low * smooth
        return loss.view(labels.shape[0], -1).sum(1) / (labels.shape[1] - 1)


@case("probs: f32[b, 3, h, w]", "mask: i64[b, h, w] < 3", most={"b": 32})
class DiceWithSizedSmoothing(nn.Module):
    def forward(self, probs, mask):
        b, c, h, w = probs.shape
        p = probs.softmax(1).reshape(b, c, -1)
        g = F.one_hot(mask, num_classes=c).permute(0, 3, 1, 2).reshape(b, c, h * w).float()
        smooth = 1e-2 * h * w
        dice = (2 * (p * g).sum(-1) + smooth) / (p.sum(-1) + g.sum(-1) + smooth)
        return 1 - dice.mean(1), g.sum(-1) / (h * w)


@case("x: f32[b, n, n]", most={"b": 24})
class BandAndOppositeCorners(nn.Module):
    def forward(self, x):
        n = x.size(-1)
        width = n // 5 + 1
        i = torch.arange(n)
        band = (i[:, None] - i[None]).abs() < width
        corner = torch.triu(torch.ones(n, n), diagonal=n // 2)
        corner = corner + corner.T
        return x * band, (x * corner).sum((1, 2)) / (n * n)


@case("c: f32[b, n]", "r: f32[b, n]", most={"b": 24})
class ToeplitzByPadAndStride(nn.Module):
    def forward(self, c, r):
        b, n = c.shape
        vals = torch.cat([r[:, 1:].flip(1), c], dim=1)
        wide = F.pad(vals, (0, 1)).unsqueeze(1).expand(b, n, 2 * n)
        skew = wide.reshape(b, -1)[:, :n * (2 * n - 1)].view(b, n, 2 * n - 1)
        return skew[:, :, n - 1:] * (1.0 / math.sqrt(n))


@case("x: f32[b, h, t, t]", most={"b": 12, "h": 16, "t": 64})
class RelativeShiftOfScores(nn.Module):
    def forward(self, x):
        b, h, t, _ = x.shape
        zero = x.new_zeros((b, h, t, 1))
        padded = torch.cat([zero, x], dim=-1).view(b, h, t + 1, t)
        shifted = padded[:, :, 1:].reshape(b, h, t, t)
        return (shifted * torch.tril(torch.ones(t, t))).softmax(-1), shifted.mean((2, 3)) * t


@case("x: f32[b, n]", most={"b": 48, "n": 128})
class LowerTriangleFromVectorPadded(nn.Module):
    def side(self, m):
        return math.ceil((math.isqrt(8 * m + 1) - 1) / 2 + 1e-9)

    def forward(self, x):
        b, m = x.shape
        k = self.side(m)
        full = k * (k + 1) // 2
        while full < m:
            k += 1
            full = k * (k + 1) // 2
        i, j = torch.tril_indices(k, k)
        out = x.new_zeros(b, k, k)
        out[:, i, j] = F.pad(x, (0, full - m))
        return out @ out.mT


@case("x: f32[n, 4]")
class ReverseWithinPowerOfTwoBlocks(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        size = 1 << (n.bit_length() // 2)
        blocks = (n + size - 1) & ~(size - 1)
        y = F.pad(x, (0, 0, 0, blocks - n)).view(-1, size, 4).flip(1)
        return y.reshape(blocks, 4), y.sum(1) / size


@case("x: f32[b, m, n]", most={"b": 24})
class RandomlessProjectionByHadamardSigns(nn.Module):
    rank = 6

    def forward(self, x):
        b, m, n = x.shape
        k = min(self.rank, n)
        signs = np.where(np.arange(n)[:, None] & np.arange(1, k + 1)[None, :], -1.0, 1.0)
        proj = torch.as_tensor(signs, dtype=x.dtype) / math.sqrt(k)
        sketch = x @ proj
        gram = sketch @ sketch.transpose(1, 2)
        return gram / (m * n) ** 0.5, sketch.norm(dim=(1, 2)) / numel(x.shape[1:])
