"""Tensor's methods and what Python does with tensors."""
import torch

from case import b, c, case, f, i, pos, unit


@case(lambda n: (f(n, 3, 16),))
def T_view(x):
    return x.view(-1), x.view(x.shape[0], -1), x.view(x.size(0), 3, 4, 4), x.view(-1, 8), x.view(-1, 3, 2, 8), x.view(x.shape[0] * 3, 16)


@case(lambda n: (f(n, 3, 16),))
def T_reshape(x):
    return x.reshape(-1), x.reshape(x.shape[0], 48), x.reshape(3, -1, 16), x.reshape(16, 3, -1), x.transpose(0, 1).reshape(3, -1), x.reshape(-1, 1, 6)


@case(lambda n: (f(n, 3, 16), f(n, 48)))
def T_like(x, y):
    return x.view_as(y), y.reshape_as(x), x.expand_as(x), x[:, :1].expand_as(x), y.type_as(x), x.new_zeros(y.shape)


@case(lambda n: (f(n, 12),))
def T_view_dtype(x):
    return x.view(torch.int32), x.to(torch.float64).view(torch.int64)


@case(lambda n: (f(n, 3, 16),))
def T_unflatten(x):
    return x.unflatten(2, (4, -1)), x.unflatten(-1, (2, 2, 4)), x.flatten(1).unflatten(1, (3, 16)), x.flatten(), x.flatten(0, 1), x.ravel()


@case(lambda n: (f(n, 1, 16), f(1, 3)))
def T_expand(x, y):
    return x.expand(-1, 5, -1), x.expand(x.shape[0], 2, 16), x.expand(2, -1, 3, 16), y.expand(4, 3), y.expand(7, -1, 3), y.expand(x.shape[0], 3)


@case(lambda n: (f(n, 3, 4),))
def T_repeat(x):
    return x.repeat(1, 2, 1), x.repeat(2, 1, 1, 3), x.repeat(3, 1, 1), x.repeat(x.shape[0], 1, 1), x.tile((2,)), x.repeat_interleave(2, 0), x.repeat_interleave(2)


@case(lambda n: (f(n, 3, 4, 5),))
def T_permute(x):
    return (x.permute(0, 2, 3, 1), x.permute(3, 2, 1, 0), x.transpose(0, 1), x.transpose(-1, -2).contiguous(), x.movedim(0, -1), x.moveaxis((0, 1), (2, 3)),
            x.swapaxes(0, 2), x.swapdims(1, 3), x.mT, x.permute(-1, 0, -3, 2), x[:, 0, 0].t(), x[:, 0].mT)


@case(lambda n: (f(n, 1, 4, 1),))
def T_squeeze(x):
    return x.squeeze(1), x.squeeze(-1), x.squeeze((1, 3)), x.unsqueeze(0), x.unsqueeze(-1), x.squeeze(2), x[None], x[..., None]


@case(lambda n: (f(n, 1, 4, 1),))
def T_squeeze_all(x):
    return x.squeeze()


@case(lambda n: (f(n, 1, 4),))
def T_squeeze_batch(x):
    return x.squeeze(0), x[:1].squeeze(0)


@case(lambda n: (f(n, 12, 6),))
def T_split(x):
    return x.split(5, 1), x.split([2, 4, 6], 1), x.chunk(3, 1), x.chunk(4, -1), x.unbind(1), x.tensor_split(5, 1), x.hsplit(3), x.dsplit((1, 4))


@case(lambda n: (f(n, 12, 6),))
def T_index(x):
    return (x[0], x[-1], x[:, 3], x[..., -2], x[:, 1:5], x[:, ::2], x[:, -4:-1], x[1:], x[:-1], x[::2], x[:, None, 2:], x[0, 1], x[:2, :2, :2], x[..., 1:3, 0])


@case(lambda n: (f(n, 12, 6), i(0, 12, 5), b(12)))
def T_index_tensor(x, k, m):
    return (x[:, k], x[:, [0, 2, -1]], x[:, :, torch.tensor([1, 1, 3])], x[:, k, 0], x[:, k, torch.zeros_like(k)], x[:, m], x[torch.arange(x.shape[0]), 0],
            x[torch.arange(x.shape[0])[:, None], k], x[[0, -1], :, [1, 2]], x[0, k])


@case(lambda n: (f(n, 12), i(0, 12, n), i(-12, 0, n, 3)))
def T_index_rows(x, k, j):
    rows = torch.arange(x.size(0))
    return x[rows, k], x.gather(1, k[:, None]), x.gather(1, j + 12), x[rows[:, None], j], x.take_along_dim(k[:, None], 1), torch.take(x, k)


@case(lambda n: (f(n, 12, 6),))
def T_assign(x):
    y = x.clone()
    y[:, 0] = 0
    y[:, 1:3] = x[:, 2:4]
    y[..., -1] += 1
    y[0] = 5.0
    y[-1, 2] *= 2
    y[:, ::3] -= 1
    y[x > 1] = 9.0
    return y


@case(lambda n: (f(n, 12), f(n, 12), i(0, 12, n)))
def T_assign_index(x, v, k):
    y, z, w = x.clone(), x.clone(), x.clone()
    rows = torch.arange(x.shape[0])
    y[rows, k] = 7.0
    z[:, [1, 3]] = v[:, :2]
    w[rows, k] += v[rows, k]
    return y, z, w, x.index_put((rows, k), v[:, 0]), x.index_put((rows, k), v[:, 0], accumulate=True)


@case(lambda n: (f(n, 6),))
def T_data(x):
    return x.data * 2


@case(lambda n: (f(n, 12, 6), f(n, 4, 6)))
def T_index_methods(x, s):
    k = torch.tensor([0, 3, 5, 7])
    return (x.index_select(1, k), x.index_add(1, k, s), x.index_add(1, k, s, alpha=2), x.index_copy(1, k, s), x.index_fill(1, k, -1.0), x.index_reduce(1, k, s, "amax"))


@case(lambda n: (f(n, 12), i(0, 12, n, 4), f(n, 4)))
def T_scatter(x, k, s):
    k = torch.arange(4) * 3 + k % 3
    return (x.scatter(1, k, s), x.scatter(1, k, 2.5), x.scatter_add(1, k, s), x.scatter_reduce(1, k, s, "amax"), x.scatter_reduce(1, k, s, "sum", include_self=False),
            x.scatter_reduce(1, k, s, "mean"), x.scatter_reduce(1, k, s, "prod"), x.scatter(1, k, s, reduce="add"), x.clone().scatter_(1, k, 1.0))


@case(lambda n: (f(n, 12), i(0, 4, n)))
def T_scatter_rows(x, k):
    y = torch.zeros(4, 12).index_add(0, k, x)
    z = torch.zeros(4, 12).scatter_add(0, k[:, None].expand(-1, 12), x)
    w = x.new_zeros(4, 12).scatter_reduce_(0, k[:, None].expand_as(x), x, "amax", include_self=False)
    return y, z, w, torch.zeros(4).index_add_(0, k, torch.ones_like(x[:, 0]))


@case(lambda n: (f(n, 12), b(n, 12)))
def T_masked(x, m):
    return x.masked_fill(m, 0.0), x.masked_fill(~m, float("-inf")), x.masked_fill(m[:, :1], 2), x.where(m, x * 2), x.masked_scatter(m, x.flatten().flip(0)), x.masked_select(m)


@case(lambda n: (f(n, 5, 5),))
def T_diagonals(x):
    return (x.diagonal(0, 1, 2), x.diagonal(1, -2, -1), x.tril(), x.triu(1), x.tril(-1), torch.diag_embed(x[:, 0]), x[:, 0].diag_embed(1), x[0].diag(), x[0, 0].diag(),
            x.diagonal_scatter(x[:, 0], 0, 1, 2), x.select_scatter(x[:, 0], 1, 2), x.slice_scatter(x[:, :2], 1, 1, 3))


@case(lambda n: (f(n, 6),))
def T_fill(x):
    y, z, w = x.clone(), x.clone(), x.clone()
    y.fill_(3)
    z[:, 1:].zero_()
    w.diagonal().fill_(4)
    return y, z, w, x.clone().fill_diagonal_(2.0), x.new_full((2, 3), 5), x.new_ones(x.shape[0], 2), x.new_empty(2).zero_(), x.new_tensor([1, 2])


@case(lambda n: (f(n, 6), f(n, 6)))
def T_in_place(x, y):
    z = x.clone()
    z.add_(y).mul_(2).sub_(1).div_(3).clamp_(-1, 1).abs_().sqrt_()
    w = x.clone()
    w.copy_(y[0])
    v = x.clone()
    v.t_()
    u = x.clone().unsqueeze_(1)
    return z, w, v, u, x.clone().transpose_(0, 1), x.clone().addcmul_(x, y, value=2), x.clone().lerp_(y, 0.3), x.clone().pow_(2), x.clone().neg_()


@case(lambda n: (f(n, 6),))
def T_types(x):
    return (x.half(), x.double(), x.int(), x.long(), x.bool(), x.to(torch.int8), x.byte().mul(0), x.float(), x.short(), x.to(x.dtype), x.to("cpu"), x.bfloat16().float(), x.char())


@case(lambda n: (f(n, 6),))
def T_shape(x):
    m, k = x.shape
    return (torch.zeros(m, k), torch.full((m,), k), torch.arange(m), x * m, x.numel() * x, x + x.dim(), torch.ones(x.size()), torch.tensor(x.shape[0]), x.new_ones(len(x)))


@case(lambda n: (f(n, 6),))
def T_size_arithmetic(x):
    m = x.shape[0]
    return torch.arange(m // 2), torch.zeros(m * 2 - 1), x[: m // 2], x[(m + 1) // 2:], x / m, x * m ** 0.5, torch.linspace(0, 1, m), torch.full((1,), m % 3), x[m - 1]


@case(lambda n: (f(n, 6), f(n, 6)))
def T_operators(x, y):
    return (x + y, x - 1, 2 - x, x * y, x / y, 3 / x, x // 2, x % 3, x ** 2, 2 ** x, -x, abs(x), x > y, x <= 0, x == y, x != y, x @ y.T, x < y, ~(x > 0), (x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0), +x, divmod(x, 2)[0] if False else x // y)


@case(lambda n: (i(-20, 20, n, 6), i(1, 9, n, 6)))
def T_integer_operators(x, y):
    return (x + y, x * y, x - y, x // y, x % y, x / y, x & y, x | y, x ^ y, ~x, x << 2, x >> 1, -x, abs(x), x ** 2, x > y, 7 - x, x // 4, x % -4, x.fmod(y), x.remainder(-y), x.clamp(-3, 3), x.float() / 3)


@case(lambda n: (f(n, 6), i(0, 9, n, 6), b(n, 6)))
def T_mixed_types(x, k, m):
    return x + k, x * m, k + m, k * 2.5, k / 2, x + k.int(), x.half() + 1, x.double() + x, k + 1, m + 1, m * m, k.int() + k, torch.where(m, x, k), m.sum(), k.sum(), m.float().mean(1), k.int().sum(1)


@case(lambda n: (f(n, 12, 6),))
def T_reductions(x):
    return (x.sum(), x.sum(0), x.sum(1), x.sum((1, 2), keepdim=True), x.mean(), x.mean(-1), x.mean((0, 1)), x.std(1), x.var((1, 2)), x.var(0, correction=0), x.std(),
            x.prod(1), x.prod(), x.norm(), x.norm(dim=1), x.norm(1, 2, True), x.logsumexp(1), x.logsumexp((0, 2)), x.nansum(1), x.nanmean(2))


@case(lambda n: (f(n, 12, 6),))
def T_extremes(x):
    return (x.max(), x.min(), x.max(1), x.min(2, keepdim=True), x.amax(1), x.amin((0, 1)), x.argmax(), x.argmin(1), x.argmax(-1, keepdim=True), x.aminmax(dim=1), x.median(1), x.median(), x.max(0), x.argmax(0))


@case(lambda n: (b(n, 12, 6),))
def T_any_all(x):
    return x.any(), x.all(), x.any(1), x.all(2, keepdim=True), x.any(0), x.all(0), x.float().any(1), torch.count_nonzero(x), x.count_nonzero(1), torch.all(x, (1, 2)), torch.any(x, (0, 2))


@case(lambda n: (f(n, 12, 6),))
def T_sorting(x):
    return (x.sort(1), x.sort(1, descending=True), x.argsort(2), x.topk(3, 1), x.topk(2, -1, largest=False), x.kthvalue(3, 1), x.sort(0), x.msort(), x.argsort(0, descending=True), x.topk(4, 1, sorted=True))


@case(lambda n: (f(n, 12),))
def T_topk_of_batch(x):
    return x.topk(x.shape[0] // 2, 0), x.topk(min(x.shape[0], 5), 0)[0], x[:, 0].sort()[1]


@case(lambda n: (f(n, 12, 6),))
def T_scans(x):
    return (x.cumsum(1), x.cumsum(0), x.cumprod(2), x.cummax(1), x.cummin(0), x.logcumsumexp(1), x.diff(dim=1), x.diff(dim=0), x.diff(2, 2), (x > 0).cumsum(1), x.flip(0), x.flip((1, 2)), x.roll(2, 1), x.roll(1, 0), x.roll((1, -2), (0, 2)), x.roll(3), x.rot90(), x.rot90(2, (1, 2)), x.fliplr(), x.flipud())


@case(lambda n: (f(n, 12, 6),))
def T_unfold(x):
    return x.unfold(1, 4, 2), x.unfold(-1, 3, 1), x.flatten(1).unfold(1, 10, 7)


@case(lambda n: (f(n + 4, 3),))
def T_unfold_rows(x):
    return x.unfold(0, 4, 2), x.unfold(0, 3, 1)


@case(lambda n: (f(n, 6), f(n, 6)))
def T_compare(x, y):
    return (x.eq(y), x.ne(0), x.lt(y), x.ge(0.5), x.isclose(y), x.isnan(), x.isinf(), x.isfinite(), x.maximum(y), x.minimum(y), x.fmax(y), x.fmin(y), x.clamp(min=0), x.clamp(max=y), x.clip(-0.3, 0.4), x.clamp(y - 1, y), x.greater(y), x.less_equal(y), x.not_equal(y), x.logical_and(y), x.logical_or(y), x.logical_not(), x.logical_xor(y))


@case(lambda n: (f(n, 6), f(n, 6)))
def T_arithmetic(x, y):
    return (x.add(y, alpha=2), x.sub(y, alpha=0.5), x.rsub(1) if hasattr(x, "rsub") else 1 - x, x.mul(3), x.div(y), x.div(y, rounding_mode="floor"), x.div(2, rounding_mode="trunc"), x.fmod(0.7), x.remainder(y), x.pow(3), x.abs().pow(y), x.abs().float_power(2), x.addcmul(x, y, value=0.3), x.addcdiv(x, y.abs() + 1), x.lerp(y, 0.4), x.lerp(y, y.sigmoid()), x.atan2(y), x.hypot(y), x.copysign(y), x.heaviside(y), x.ldexp(y.round()), x.logaddexp(y), x.logaddexp2(y), x.xlogy(y.abs()), x.nextafter(y) if False else x, x.true_divide(2), x.floor_divide(y), x.dist(y), x.dist(y, 1), x.square(), x.negative(), x.positive(), x.sgn())


@case(lambda n: (f(n, 6),))
def T_apply_nothing(x):
    return x.detach(), x.clone(), x.contiguous(), x.cpu(), x.real, x.conj(), x.resolve_conj(), x.clone(memory_format=torch.preserve_format), x.to(memory_format=torch.contiguous_format), x.alias() if hasattr(x, "alias") else x


@case(lambda n: (f(n, 4, 6, 6),))
def T_memory_format(x):
    return x.contiguous(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last) + 1, x.to(torch.float64, memory_format=torch.channels_last), torch.empty_like(x).copy_(x), x.stride()[-1] * x, x.is_contiguous() * x


@case(lambda n: (f(n, 6),))
def T_python(x):
    out = []
    for row in x.unbind(1):
        out.append(row * len(out))
    s = sum(x[:, k] for k in range(x.shape[1]))
    return torch.stack(out, 1), s, x.tolist() if False else s, x[:, :3] if x.shape[1] > 3 else x, max(x.shape[1], 4) * x, [t + 1 for t in x.split(2, 1)]


@case(lambda n: (f(n, 6), f(n, 6)))
def T_dict_results(x, y):
    return {"sum": x + y, "parts": [x, (y, {"deep": x * y})], "none": None}


@case(lambda n: (f(n, 3, 4), f(n, 4, 5), f(4)))
def T_products(x, y, v):
    return (x @ y, x.matmul(y), x.bmm(y), x @ v, x.matmul(y[0]), v @ y, x[0].mm(y[0]), x[0].mv(v), v.dot(v), torch.baddbmm(x @ y, x, y, beta=0.5, alpha=2), v.outer(v), x[:, 0].addmm(x[:, 0], torch.eye(4)), torch.addmv(x[0, :, 0], x[0], v), v.inner(v), x.inner(v))


@case(lambda n: (f(n, 3, 4), f(n, 3, 4)))
def T_cross(x, y):
    return torch.cross(x, y, dim=1), torch.linalg.cross(x.mT, y.mT), torch.linalg.vecdot(x, y), torch.kron(x[0], y[0]), torch.tensordot(x, y, ([1, 2], [1, 2])), torch.tensordot(x, y.mT, 1) if False else x


@case(lambda n: (f(n, 6), f(2, 6)))
def T_cat(x, y):
    return (torch.cat([x, y]), torch.cat([x, x], 1), torch.cat((y, x, y), 0), torch.stack([x, x]), torch.stack([x, x], -1), torch.hstack((x, x)), torch.vstack((x, y)), torch.dstack((x, x)),
            torch.column_stack((x, x[:, 0])), torch.concat([x, y]), torch.row_stack((x, y)), torch.cat([x, x.long()], 1), torch.cat([x[:0], x]), torch.cat([x, torch.empty(0)], 0))


@case(lambda n: (c(n, 6), c(n, 6)))
def T_complex(x, y):
    z = x * y + x / (y + 3) - 2
    return z, x.real, x.imag, x.abs(), x.angle(), x.conj(), x.exp(), torch.view_as_real(x), x @ y.T, x.sum(1), x[:, 1:3], (x * 1j).real, x.mean(0), torch.polar(x.abs(), x.angle())


@case(lambda n: (f(n, 6, 2),))
def T_view_as_complex(x):
    z = torch.view_as_complex(x)
    return torch.view_as_real(z * z), z.abs(), torch.complex(x[..., 0], x[..., 1]).angle(), torch.view_as_real(torch.polar(x[..., 0].abs(), x[..., 1]) * z).flatten(1)


@case(lambda n: (i(0, 2, n, 6),))
def T_bits(x):
    return x.bitwise_and(1), x.bitwise_not(), x.bitwise_left_shift(2), x.logical_not(), x.bool() & True, x.sum(1) % 2 == 0, (x == 1).nonzero(), x.to(torch.uint8) << 1


@case(lambda n: (f(n, 6),), random=True)
def T_random(x):
    return torch.rand_like(x), torch.randn(x.shape), torch.randint(0, 5, (x.shape[0],)), x.new_empty(3, 2).normal_(), torch.bernoulli(x.sigmoid()), torch.randperm(x.shape[0]), torch.normal(x, 1.0), torch.multinomial(x.softmax(1), 2), x.clone().uniform_(-1, 1), torch.rand(x.size(0), 3)


@case(lambda n: (f(n, 6),))
def T_histograms(x):
    return torch.histc(x, 5, -1, 1), torch.bucketize(x, torch.tensor([-1., 0., 1.])), torch.searchsorted(torch.tensor([-1., 0., 1.]), x, right=True), torch.quantile(x, 0.3, 1), x.nanquantile(torch.tensor([0.1, 0.9]), 1), x.nanmedian(1)


@case(lambda n: (i(0, 4, n, 6),))
def T_modes(x):
    return x.mode(1)[0], torch.isin(x, torch.tensor([1, 3])), x.unique(), torch.unique(x, dim=0), torch.unique_consecutive(x.flatten(), return_counts=True)


@case(lambda n: (f(n, 6), f(n)))
def T_broadcast(x, y):
    return x + y[:, None], x * y.view(-1, 1), x - x.mean(0), x / x.sum(1, keepdim=True), torch.broadcast_to(y[:, None], x.shape), y.broadcast_to((3, y.shape[0])), torch.broadcast_tensors(x, y[:, None]), y[:, None] == y[None], torch.where(y[:, None] > 0, x, 0.0)
