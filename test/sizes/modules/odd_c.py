"""Matrices made from a size, index tricks, padding to powers and factorised reshapes."""
import torch
from torch import nn
import torch.nn.functional as F
import math
import numpy as np
from case import case


def next_power(n):
    return 1 << (n - 1).bit_length()


def closest_power(n):
    low = 1 << (n.bit_length() - 1)
    return low if n - low <= 2 * low - n else 2 * low


def nearest_factors(n):
    for a in range(math.isqrt(n), 0, -1):
        if n % a == 0:
            return a, n // a


def bit_reverse(i, bits):
    out = 0
    for _ in range(bits):
        out = (out << 1) | (i & 1)
        i >>= 1
    return out


def dct_matrix(n):
    k, i = np.arange(n)[:, None], np.arange(n)[None, :]
    m = np.cos(np.pi * (2 * i + 1) * k / (2 * n)) * np.sqrt(2.0 / n)
    m[0] /= np.sqrt(2.0)
    return torch.tensor(m, dtype=torch.float32)


def hadamard(n):
    h = torch.ones(1, 1)
    while h.shape[0] < n:
        h = torch.cat([torch.cat([h, h], dim=1), torch.cat([h, -h], dim=1)], dim=0)
    return h


class Grid:
    def __init__(self, n):
        self.side = int(math.ceil(math.sqrt(n)))
        self.missing = self.side * self.side - n


@case("x: f32[b, n]", "kernel: f32[n]")
class MatrixCirculant(nn.Module):
    def forward(self, x, kernel):
        n = x.shape[-1]
        i = torch.arange(n)
        return x @ kernel[(i[:, None] - i[None, :]) % n] / n


@case("x: f32[b, n]")
class MatrixToeplitzList(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        rows = [[1.0 / (1 + abs(i - j)) for j in range(n)] for i in range(n)]
        return x @ torch.tensor(rows)


@case("x: f32[b, n]")
class MatrixToeplitzLearned(nn.Module):
    reach = 8

    def __init__(self):
        super().__init__()
        self.diagonals = nn.Parameter(torch.randn(2 * self.reach + 1))

    def forward(self, x):
        i = torch.arange(x.size(1))
        offset = (i[None, :] - i[:, None]).clamp(-self.reach, self.reach) + self.reach
        return x @ self.diagonals[offset]


@case("x: f32[b, n]")
class MatrixHankel(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        padded = F.pad(x, (0, n - 1))
        return padded.unfold(1, n, 1)


@case("x: f32[b, n]")
class MatrixCosineTransform(nn.Module):
    def forward(self, x):
        return x @ dct_matrix(x.shape[-1]).t()


@case("x: f32[b, n]")
class MatrixCosineTransformTorch(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        i = torch.arange(n, dtype=torch.float32)
        basis = torch.cos(math.pi * (2 * i[:, None] + 1) * i[None, :] / (2 * n))
        return x @ basis / n


@case("x: f32[b, h, w]")
class MatrixCosineTransformPlane(nn.Module):
    keep = 4

    def forward(self, x):
        rows, cols = (dct_matrix(s) for s in x.shape[-2:])
        return (rows @ x @ cols.t())[:, :self.keep, :self.keep]


@case("x: f32[b, n]")
class MatrixFourierParts(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        half = n // 2 + 1
        turns = (torch.arange(n)[:, None] * torch.arange(half)[None, :]) % n
        angle = turns * (2 * math.pi / n)
        return x @ torch.cos(angle), -(x @ torch.sin(angle))


@case("x: f32[b, n]")
class MatrixWalshPadded(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        size = next_power(n)
        return F.pad(x, (0, size - n)) @ hadamard(size) / math.sqrt(size)


@case("x: f32[b, n]")
class MatrixHaarLevels(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        x = F.pad(x, (0, next_power(n) - n))
        details = []
        while x.shape[1] > 1:
            a, b = x[:, ::2], x[:, 1::2]
            details.insert(0, (a - b) / 2)
            x = (a + b) / 2
        return torch.cat([x] + details, dim=1)


@case("x: f32[n]")
class MatrixVandermonde(nn.Module):
    def forward(self, x):
        x = torch.tanh(x)
        return torch.stack([x ** k for k in range(min(x.shape[0], 5))], dim=1) / x.shape[0]


@case("x: f32[b, n]")
class MatrixHilbert(nn.Module):
    def forward(self, x):
        i = torch.arange(1, x.shape[1] + 1)
        return x @ (1.0 / (i[:, None] + i[None, :] - 1))


@case("x: f32[b, n, 2]")
class MatrixPrefixMeanTril(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        weights = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
        return torch.from_numpy(weights).float() @ x


@case("x: f32[b, n, 2]")
class MatrixPrefixMeanSoftmax(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        mask = torch.tril(torch.ones(n, n))
        weights = torch.zeros(n, n).masked_fill(mask == 0, float("-inf"))
        return F.softmax(weights, dim=-1) @ x


@case("x: f32[b, n, n]")
class MatrixHalfVector(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        i, j = torch.tril_indices(n, n)
        return (x + x.mT)[:, i, j]


@case("x: f32[b, n*(n+1)//2]")
class MatrixFromHalfVector(nn.Module):
    def forward(self, x):
        n = (math.isqrt(8 * x.shape[1] + 1) - 1) // 2
        i, j = torch.tril_indices(n, n)
        full = x.new_zeros(x.shape[0], n, n)
        full[:, i, j] = x
        return full + full.transpose(1, 2)


@case("x: f32[b, n, 4]")
class MatrixBlockDiagonalMask(nn.Module):
    block = 4

    def forward(self, x):
        n = x.shape[1]
        owner = torch.arange(n) // self.block
        same = owner[:, None] == owner[None, :]
        scores = (x @ x.mT / 2).masked_fill(~same, float("-inf"))
        return scores.softmax(-1) @ x


@case("x: f32[b, n, 4]")
class MatrixBandFromSize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        width = max(1, n // 8)
        ones = torch.ones(n, n)
        band = torch.triu(ones, -width) * torch.tril(ones, width)
        return (band / band.sum(-1, keepdim=True)) @ x


@case("x: f32[b, h, w]")
class MatrixCheckerboard(nn.Module):
    def forward(self, x):
        _, h, w = x.shape
        sign = 1 - 2 * ((torch.arange(h)[:, None] + torch.arange(w)[None, :]) % 2)
        return x * sign


@case("x: f32[b, n]")
class MatrixFactorisedTranspose(nn.Module):
    def forward(self, x):
        rows, cols = nearest_factors(x.shape[1])
        grid = x.reshape(-1, rows, cols)
        return grid.transpose(1, 2).reshape(x.shape), grid.sum(dim=2)


@case("x: f32[b, n]", "y: f32[b, m]")
class MatrixCommonDivisor(nn.Module):
    def forward(self, x, y):
        g = math.gcd(x.shape[1], y.shape[1])
        left = x.view(len(x), g, -1).mean(dim=2)
        right = y.view(len(y), g, -1).mean(dim=2)
        return left * right


@case("x: f32[b, n]")
class MatrixRowsOfSeven(nn.Module):
    cols = 7

    def forward(self, x):
        rows, rest = divmod(x.shape[1], self.cols)
        if rest:
            x = F.pad(x, (0, self.cols - rest))
            rows += 1
        return x.view(-1, rows, self.cols).cumsum(dim=1)


@case("x: f32[b, n]")
class MatrixRowsOfSevenUnbranched(nn.Module):
    cols = 7

    def forward(self, x):
        x = F.pad(x, (0, -x.shape[1] % self.cols))
        return x.unflatten(1, (-1, self.cols)).cumsum(dim=1)


@case("x: f32[b, n, 3]")
class MatrixSquareGrid(nn.Module):
    def forward(self, x):
        grid = Grid(x.shape[1])
        x = torch.cat([x, x[:, :1].expand(-1, grid.missing, -1)], dim=1)
        x = x.permute(0, 2, 1).reshape(-1, 3, grid.side, grid.side)
        return F.avg_pool2d(x, 3, stride=1, padding=1)


@case("x: f32[b, s*s, 3]")
class MatrixTokensToImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        side = int(x.shape[1] ** 0.5)
        image = x.transpose(1, 2).reshape(x.shape[0], 3, side, side)
        return self.conv(image).flatten(2).transpose(1, 2)


@case("x: f32[b, n]")
class MatrixButterflyStride(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        stride = 1
        while stride < n:
            x = 0.8 * x + 0.6 * x.roll(stride, dims=1)
            stride <<= 1
        return x


@case("x: f32[b, n]")
class MatrixBitReversal(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        size = next_power(n)
        bits = size.bit_length() - 1
        order = [bit_reverse(i, bits) for i in range(size)]
        return x[:, [i for i in order if i < n]]


@case("x: f32[b, n]")
class MatrixGrayOrder(nn.Module):
    def forward(self, x):
        i = torch.arange(next_power(x.shape[1]))
        gray = i ^ (i >> 1)
        return F.pad(x, (0, len(i) - x.shape[1]))[:, gray]


@case("x: f32[b, n]")
class MatrixPopcountWeights(nn.Module):
    def forward(self, x):
        weights = torch.tensor([float(bin(i).count("1")) for i in range(x.shape[1])])
        return x * (1 + weights)


@case("x: f32[b, n]")
class MatrixClosestPower(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        size = closest_power(n)
        if size > n:
            return F.pad(x, (0, size - n), value=1.0)
        return x[:, :size] * 2


@case("x: f32[b, n]")
class MatrixPowerFromLog(nn.Module):
    def forward(self, x):
        size = 2 ** int(np.ceil(np.log2(x.shape[1])))
        return F.interpolate(x.unsqueeze(1), size=size, mode="linear").squeeze(1)


@case("x: f32[b, 2*n]")
class MatrixPerfectShuffle(nn.Module):
    def forward(self, x):
        half = x.shape[1] // 2
        return torch.stack([x[:, :half], x[:, half:]], dim=2).flatten(1)


@case("x: f32[n, n]")
class MatrixAntidiagonal(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        anti = x[torch.arange(n), n - 1 - torch.arange(n)]
        return anti, x.diagonal().sum() / n


@case("x: f32[h, w]")
class MatrixZigzag(nn.Module):
    def forward(self, x):
        h, w = x.shape
        cells = [(i, j) for i in range(h) for j in range(w)]
        cells.sort(key=lambda c: (c[0] + c[1], c[0] if (c[0] + c[1]) % 2 else c[1]))
        order = torch.tensor([i * w + j for i, j in cells])
        return x.flatten()[order]


@case("x: f32[b, n]", "y: f32[b, m]")
class MatrixOuterFlattened(nn.Module):
    def forward(self, x, y):
        outer = torch.bmm(x.unsqueeze(2), y.unsqueeze(1))
        return outer.view(x.size(0), x.size(1) * y.size(1)) / math.sqrt(3)


@case("a: f32[n, m]", "b: f32[2, 3]")
class MatrixKronecker(nn.Module):
    def forward(self, a, b):
        n, m = a.shape
        full = a[:, None, :, None] * b[None, :, None, :]
        return full.reshape(n * b.shape[0], m * b.shape[1])


@case("x: f32[n, d]")
class MatrixGramWide(nn.Module):
    def forward(self, x):
        n, d = x.shape
        if n < d:
            return x @ x.t() / d
        return x.t() @ x / n


@case("x: f32[b, n]")
class MatrixLinearResample(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        m = int(1.5 * n)
        weights = torch.zeros(m, n)
        for i in range(m):
            position = i * (n - 1) / max(m - 1, 1)
            low = min(int(position), n - 1)
            high = min(low + 1, n - 1)
            weights[i, low] += 1 - (position - low)
            weights[i, high] += position - low
        return x @ weights.t()


@case("x: f32[b, h, w]")
class MatrixResizeByHand(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        rows = torch.linspace(0, h - 1, 2 * h)
        cols = torch.linspace(0, w - 1, 2 * w)
        wy = (1 - (rows[:, None] - torch.arange(h)).abs()).clamp(min=0)
        wx = (1 - (cols[:, None] - torch.arange(w)).abs()).clamp(min=0)
        return wy @ x @ wx.t()


@case("x: f32[b, t, 8]")
class MatrixSinusoidsNumpy(nn.Module):
    def forward(self, x):
        t, d = x.shape[1:]
        angles = np.arange(t)[:, None] / np.power(100.0, 2 * (np.arange(d)[None, :] // 2) / d)
        angles[:, 0::2] = np.sin(angles[:, 0::2])
        angles[:, 1::2] = np.cos(angles[:, 1::2])
        return x + torch.as_tensor(angles, dtype=x.dtype)


@case("x: f32[b, h, t, t]")
class MatrixHeadSlopes(nn.Module):
    def forward(self, x):
        heads, t = x.shape[1], x.shape[-1]
        slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])
        distance = (torch.arange(t)[None, :] - torch.arange(t)[:, None]).abs()
        return (x - slopes[:, None, None] * distance).softmax(dim=-1)


@case("x: f32[b, n]")
class MatrixTaperedNumpy(nn.Module):
    def forward(self, x):
        window = torch.tensor(np.hamming(x.shape[-1]), dtype=torch.float32)
        return x * window, (x * window).sum(dim=-1) / window.sum()


@case("x: f32[b, n]")
class MatrixTaperedTorch(nn.Module):
    def forward(self, x):
        return x * torch.hann_window(x.shape[1], periodic=True) + 0.1 * x


@case("x: f32[b, n]")
class MatrixBinomialSmooth(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        weights = torch.tensor([math.comb(n - 1, i) / 2 ** (n - 1) for i in range(n)])
        return (x * weights).sum(dim=1), x * weights * n


@case("x: f32[b, n]")
class MatrixFibonacciLags(nn.Module):
    def forward(self, x):
        a, b, out = 1, 2, x
        while a < x.shape[1]:
            out = out + x.roll(a, dims=1) / b
            a, b = b, a + b
        return out


@case("x: f32[b, n]")
class MatrixPrimeColumns(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        prime = [i > 1 and all(i % j for j in range(2, math.isqrt(i) + 1)) for i in range(n)]
        return torch.where(torch.tensor(prime), x, -0.5 * x)


@case("x: f32[b, n]")
class MatrixLogFactorialScale(nn.Module):
    def forward(self, x):
        scale = math.lgamma(x.shape[1] + 1) / x.shape[1]
        harmonic = sum(1 / k for k in range(1, x.shape[1] + 1))
        return x * scale + harmonic


@case("x: f32[b, n]")
class MatrixScheduleCosine(nn.Module):
    warm = 4

    def forward(self, x):
        n = x.size(1)
        rate = [min(1.0, (i + 1) / self.warm) * 0.5 * (1 + math.cos(math.pi * i / n))
                for i in range(n)]
        return (x * torch.tensor(rate)).cumsum(dim=1)


@case("x: f32[b, 4, n]")
class MatrixFourByChance(nn.Module):
    heads = 4

    def forward(self, x):
        b, c, n = x.shape
        scores = torch.einsum("bcn,bdn->bcd", x, x) / (n * self.heads)
        return scores.reshape(b * self.heads, c) + b


@case("x: f32[b, c, n]")
class MatrixWholeAxisKernel(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        return F.avg_pool1d(x, kernel_size=n).squeeze(-1), F.max_pool1d(x, n // 2 + 1, stride=1)
