"""Graphs and sets: adjacency, neighbours, pairs, pooling over elements and matching."""
import torch
from torch import nn
import torch.nn.functional as F
import math
import numpy as np
from case import case


def with_self_loops(edges, n):
    loops = torch.arange(n, device=edges.device)
    return torch.cat([edges, torch.stack([loops, loops])], dim=1)


def squared_distances(x, y):
    return ((x.unsqueeze(-2) - y.unsqueeze(-3)) ** 2).sum(dim=-1)


def all_pairs(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def degree_of(index, n):
    return torch.zeros(n).index_add(0, index, torch.ones(index.shape[0]))


class GraphSizes:
    def __init__(self, nodes, edges):
        self.nodes = nodes.shape[0]
        self.edges = edges.shape[1]

    @property
    def density(self):
        return self.edges / (self.nodes * self.nodes)


@case("x: f32[n, 6]", "adj: f32[n, n]")
class GraphConvolutionNormalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Linear(6, 5)

    def forward(self, x, adj):
        a = adj.abs() + torch.eye(x.shape[0])
        scale = a.sum(dim=1).rsqrt()
        return F.relu(self.weight(scale[:, None] * a * scale[None, :] @ x))


@case("x: f32[n, 4]", "edges: i64[2, e] < 5", least={"n": 5})
class GraphEdgeSum(nn.Module):
    def forward(self, x, edges):
        source, target = edges
        return torch.zeros_like(x).index_add(0, target, x[source])


@case("x: f32[n, 4]", "edges: i64[2, e] < 6", least={"n": 6})
class GraphEdgeMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, edges):
        n = x.size(0)
        total = x.new_zeros(n, 4).index_add(0, edges[1], x[edges[0]])
        count = degree_of(edges[1], n).clamp(min=1)
        return self.own(x) + self.other(total / count.unsqueeze(1))


@case("x: f32[n, 3]", "edges: i64[2, e] < 4", least={"n": 4})
class GraphSelfLoops(nn.Module):
    def forward(self, x, edges):
        n = x.shape[0]
        edges = with_self_loops(edges, n)
        norm = degree_of(edges[1], n).rsqrt()
        weight = norm[edges[0]] * norm[edges[1]]
        index = edges[1].unsqueeze(1).expand(-1, x.shape[1])
        return torch.zeros(n, 3).scatter_add(0, index, x[edges[0]] * weight[:, None])


@case("x: f32[n, 3]", "edges: i64[2, e] < 4", least={"n": 4})
class GraphDensityScale(nn.Module):
    def forward(self, x, edges):
        sizes = GraphSizes(x, edges)
        gathered = (x[edges[0]] - x[edges[1]]).abs().mean(dim=0)
        return x * sizes.density + gathered / sizes.edges


@case("x: f32[b, n, 4]")
class GraphRingNeighbours(nn.Module):
    def forward(self, x):
        return (x + x.roll(1, dims=1) + x.roll(-1, dims=1)) / 3


@case("x: f32[b, n, 4]")
class GraphRingHalfway(nn.Module):
    def forward(self, x):
        opposite = x.shape[1] // 2
        return x - torch.roll(x, shifts=opposite, dims=1)


@case("x: f32[b, h, w]")
class GraphGridNeighbours(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        p = F.pad(x, (1, 1, 1, 1))
        around = p[:, :h, 1:-1] + p[:, 2:, 1:-1] + p[:, 1:-1, :w] + p[:, 1:-1, 2:]
        ones = F.pad(torch.ones(h, w), (1, 1, 1, 1))
        count = ones[:h, 1:-1] + ones[2:, 1:-1] + ones[1:-1, :w] + ones[1:-1, 2:]
        return x - around / count.clamp(min=1)


@case("x: f32[n, 3]", least={"n": 2})
class GraphCompleteEdgesList(nn.Module):
    def forward(self, x):
        pairs = torch.tensor(all_pairs(x.shape[0]))
        return (x[pairs[:, 0]] - x[pairs[:, 1]]).abs().sum(dim=1)


@case("x: f32[n, 3]", least={"n": 2})
class GraphUpperTrianglePairs(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        i, j = torch.triu_indices(n, n, offset=1).unbind(0)
        return x[i] * x[j]


@case("x: f32[n, 3]", least={"n": 2})
class GraphPairMeanByCount(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        total = (x[:, None] - x[None]).abs().sum(dim=(0, 1))
        return total / (n * (n - 1) / 2)


@case("x: f32[b, n, 3]", "y: f32[b, m, 3]")
class SetPairwiseManhattan(nn.Module):
    def forward(self, x, y):
        return (x[:, :, None, :] - y[:, None, :, :]).abs().sum(-1)


@case("x: f32[n, 4]")
class SetKernelBandwidth(nn.Module):
    def forward(self, x):
        n, d = x.shape
        bandwidth = n ** (-1.0 / (d + 4))
        kernel = torch.exp(-squared_distances(x, x) / (2 * bandwidth ** 2))
        return kernel.sum(dim=1) / n


@case("x: f32[n, 3]", least={"n": 2})
class GraphNearestNeighbours(nn.Module):
    k = 5

    def forward(self, x):
        n = x.shape[0]
        k = min(self.k, n - 1)
        d = squared_distances(x, x) + torch.eye(n) * 1e4
        near = d.topk(k, dim=1, largest=False).indices
        return x[near].mean(dim=1) - x


@case("x: f32[n, 3]")
class GraphNeighboursFromRoot(nn.Module):
    def forward(self, x):
        k = math.isqrt(x.shape[0])
        d = squared_distances(x, x)
        values, _ = torch.topk(d, k, dim=1, largest=False)
        return values.sum(dim=1) / k


@case("x: f32[b, n, 4]")
class SetDeepSetsMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        self.outer = nn.Linear(8, 3)

    def forward(self, x):
        return self.outer(self.inner(x).sum(dim=1) / x.shape[1])


@case("x: f32[b, n, 4]", "mask: bool[b, n]")
class SetMaskedMean(nn.Module):
    def forward(self, x, mask):
        weight = mask.to(x.dtype).unsqueeze(-1)
        mean = (x * weight).sum(1) / weight.sum(1).clamp(min=1.0)
        share = weight.sum(1) / mask.size(1)
        return mean, share


@case("x: f32[b, n, 8]")
class SetInducedPoints(nn.Module):
    points = 4

    def __init__(self):
        super().__init__()
        self.inducing = nn.Parameter(torch.randn(1, self.points, 8))
        self.gather = nn.MultiheadAttention(8, 4, batch_first=True)
        self.spread = nn.MultiheadAttention(8, 4, batch_first=True)

    def forward(self, x):
        seeds = self.inducing.repeat(x.shape[0], 1, 1)
        hidden, _ = self.gather(seeds, x, x)
        out, _ = self.spread(x, hidden, hidden)
        return x + out


@case("x: f32[b, n, 8]")
class SetAttentionPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.randn(8))
        self.value = nn.Linear(8, 8)

    def forward(self, x):
        b, n, d = x.size()
        scores = x.matmul(self.query) / math.sqrt(d)
        weights = scores.softmax(dim=-1).view(b, 1, n)
        return torch.bmm(weights, self.value(x)).squeeze(1)


@case("x: f32[b, n, 5]", "y: f32[b, m, 5]")
class SetChamfer(nn.Module):
    def forward(self, x, y):
        d = squared_distances(x, y)
        return d.amin(dim=2).mean(dim=1) + d.amin(dim=1).mean(dim=1)


@case("x: f32[n, 3]", "y: f32[m, 3]")
class SetSinkhornPlan(nn.Module):
    rounds = 4

    def forward(self, x, y):
        n, m = x.shape[0], y.shape[0]
        scores = -squared_distances(x, y) / 4
        for _ in range(self.rounds):
            scores = scores - scores.logsumexp(dim=1, keepdim=True) - math.log(n)
            scores = scores - scores.logsumexp(dim=0, keepdim=True) - math.log(m)
        return scores.exp() * n


@case("x: f32[n, 3]", "y: f32[m, 3]", least={"n": 2, "m": 2})
class SetUnbiasedDiscrepancy(nn.Module):
    def forward(self, x, y):
        n, m = len(x), len(y)
        xx = torch.exp(-squared_distances(x, x))
        yy = torch.exp(-squared_distances(y, y))
        xy = torch.exp(-squared_distances(x, y))
        within = (xx.sum() - n) / (n * (n - 1)) + (yy.sum() - m) / (m * (m - 1))
        return within - 2 * xy.mean(), xy.sum(dim=1) / m


@case("x: f32[b, n, 3]")
class SetPointFeaturesMax(nn.Module):
    def __init__(self):
        super().__init__()
        self.local = nn.Conv1d(3, 8, 1)
        self.joint = nn.Conv1d(16, 4, 1)

    def forward(self, x):
        local = F.relu(self.local(x.transpose(1, 2)))
        whole = local.max(dim=2, keepdim=True)[0]
        whole = whole.repeat(1, 1, x.shape[1])
        return self.joint(torch.cat([local, whole], dim=1)).transpose(1, 2)


@case("x: f32[b, n, 3]")
class SetStridedSubsample(nn.Module):
    keep = 8

    def forward(self, x):
        step = max(1, x.shape[1] // self.keep)
        return x[:, ::step][:, :self.keep]


@case("x: f32[b, n, 4]")
class SetTreeReduction(nn.Module):
    def forward(self, x):
        while x.shape[1] > 1:
            if x.shape[1] % 2:
                x = torch.cat([x, torch.zeros_like(x[:, :1])], dim=1)
            x = torch.tanh(x[:, 0::2] + 0.5 * x[:, 1::2])
        return x[:, 0]


@case("x: f32[n, 3]")
class GraphHypercubeNeighbours(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        bits = max(1, (n - 1).bit_length())
        total = x
        for k in range(bits):
            index = [i ^ (1 << k) if i ^ (1 << k) < n else i for i in range(n)]
            total = total + x[torch.tensor(index)]
        return total / (bits + 1)


@case("x: f32[n, 3]")
class GraphHeapParents(nn.Module):
    def forward(self, x):
        parents = torch.tensor([max(0, (i - 1) // 2) for i in range(x.shape[0])])
        return x - 0.5 * x[parents]


@case("x: f32[n, 3]")
class GraphHeapParentsArange(nn.Module):
    def forward(self, x):
        parents = (torch.arange(x.shape[0]) - 1).clamp(min=0) // 2
        return x - 0.5 * x.index_select(0, parents)


@case("x: f32[n, 3]")
class GraphPathLaplacian(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        a = np.eye(n, k=1) + np.eye(n, k=-1)
        laplacian = np.diag(a.sum(axis=1)) - a
        return torch.from_numpy(laplacian).float() @ x


@case("adj: f32[n, n]")
class GraphPageRank(nn.Module):
    damping = 0.85

    def forward(self, adj):
        n = adj.shape[0]
        flow = adj.abs() + 1e-2
        flow = flow / flow.sum(dim=0, keepdim=True)
        rank = torch.full((n, 1), 1.0 / n)
        for _ in range(6):
            rank = (1 - self.damping) / n + self.damping * flow @ rank
        return rank.squeeze(1) * n


@case("adj: f32[n, n]", "x: f32[n, 2]")
class GraphWalkLengthFromSize(nn.Module):
    def forward(self, adj, x):
        walk = adj.softmax(dim=1)
        for _ in range(x.shape[0].bit_length()):
            x = 0.5 * x + 0.5 * walk @ x
        return x


@case("x: f32[b, n, 4]", "y: f32[b, m, 4]")
class GraphBipartiteAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(4, 8), nn.Linear(4, 8)

    def forward(self, x, y):
        scores = self.q(x) @ self.k(y).mT / math.sqrt(8)
        return scores.softmax(-1) @ y, scores.softmax(-2).mT @ x


@case("x: f32[n, 6]", "adj: bool[n, n]")
class GraphDenseAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(6, 8, bias=False)
        self.left, self.right = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x, adj):
        n = x.shape[0]
        h = self.lift(x)
        scores = F.leaky_relu(self.left(h).t()[:, :, None] + self.right(h).t()[:, None, :], 0.2)
        linked = adj | torch.eye(n, dtype=torch.bool)
        weights = scores.masked_fill(~linked, float("-inf")).softmax(dim=-1)
        return (weights @ h).permute(1, 0, 2).reshape(n, 16)


@case("x: f32[b, n, 3]")
class GraphMessageAllPairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.message = nn.Linear(6, 5)

    def forward(self, x):
        b, n, c = x.shape
        left = x.unsqueeze(2).expand(b, n, n, c)
        right = x.unsqueeze(1).expand(b, n, n, c)
        pairs = torch.cat([left, right], dim=-1).reshape(b * n * n, 2 * c)
        return F.relu(self.message(pairs)).view(b, n, n, -1).mean(dim=2)


@case("x: f32[b, n, 4]", least={"n": 2})
class GraphWithoutSelf(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        scores = torch.matmul(x, x.transpose(1, 2)) / 2.0
        scores = scores.masked_fill(torch.eye(n, dtype=torch.bool), -1e9)
        return scores.softmax(dim=-1) @ x


@case("x: f32[n, 4]")
class GraphPoolHalf(nn.Module):
    ratio = 0.5

    def __init__(self):
        super().__init__()
        self.score = nn.Parameter(torch.tensor([0.5, -1.0, 0.7, 0.2]))

    def forward(self, x):
        k = math.ceil(self.ratio * x.shape[0])
        score, keep = torch.topk(x @ self.score, k)
        return x[keep] * torch.tanh(score).unsqueeze(-1)


@case("x: f32[b, n, 4]")
class GraphPoolHalfInteger(nn.Module):
    def forward(self, x):
        k = (x.shape[1] + 1) // 2
        order = x[..., 0].argsort(dim=1, descending=True)[:, :k]
        return x.gather(1, order.unsqueeze(-1).expand(-1, -1, 4))


@case("x: f32[n, 4]")
class GraphReadoutBySize(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return torch.cat([x.sum(0) / math.sqrt(n), x.mean(0), x.sum(0) / math.log(n + 1)])


@case("x: f32[n, 3]", "y: f32[m, 3]")
class GraphDisjointUnion(nn.Module):
    def forward(self, x, y):
        n, m = x.shape[0], y.shape[0]
        both = torch.cat([x, y])
        mask = torch.block_diag(torch.ones(n, n), torch.ones(m, m))
        return (mask / mask.sum(dim=1, keepdim=True)) @ both


@case("x: f32[n, 3]", "y: f32[m, 3]")
class GraphDisjointUnionMask(nn.Module):
    def forward(self, x, y):
        owner = torch.cat([torch.zeros(len(x)), torch.ones(len(y))])
        both = torch.cat([x, y], dim=0)
        scores = (both @ both.t()).masked_fill(owner[:, None] != owner[None, :], -1e4)
        return torch.softmax(scores, dim=1) @ both


@case("x: f32[t, b, 4]")
class SetRecurrentPlain(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        states, last = self.rnn(x)
        return self.out(states), last[0]


@case("x: f32[b, n, 4]")
class GraphDiffusionStep(nn.Module):
    def forward(self, x):
        rate = 1.0 / (1 + x.shape[1])
        for _ in range(3):
            x = x + rate * (x.sum(dim=1, keepdim=True) - x.shape[1] * x)
        return x


@case("x: f32[n, 4]")
class SetSqueezeSingleton(nn.Module):
    def forward(self, x):
        centred = x - x.mean(dim=0, keepdim=True) / 2
        return centred.unsqueeze(1).squeeze() * 2


@case("members: f32[b, n, 4]", "query: f32[b, 4]")
class SetSmallOrLarge(nn.Module):
    def forward(self, members, query):
        n = members.shape[1]
        if n <= 4:
            return torch.einsum("bnd,bd->b", members, query)
        weights = torch.einsum("bnd,bd->bn", members, query).softmax(dim=1)
        return weights.amax(dim=1) * n
