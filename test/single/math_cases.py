"""torch's functions."""
import torch

from case import b, c, case, f, i, note, as_module, pos, unit


def pointwise(name, inputs, *functions):
    """One case of several functions of the same inputs."""
    def forward(x):
        return tuple(g(x) for g in functions)
    note("torch_" + name, lambda: as_module(forward), inputs)


def plain(n):
    return f(n, 6, 4),


def chances(n):
    return unit(n, 6, 4) * 0.9 + 0.05,


def positive(n):
    return pos(n, 6, 4),


for name in "abs ceil cos cosh erf erfc exp exp2 expm1 floor neg round sign sin sinc sinh sigmoid square tan tanh trunc frac signbit deg2rad rad2deg isposinf isneginf nan_to_num asinh atan positive relu angle i0 sgn fix".split():
    pointwise(name, plain, getattr(torch, name))
for name in "log log10 log1p log2 rsqrt sqrt reciprocal lgamma digamma".split():
    pointwise(name, positive, getattr(torch, name))
for name in "acos asin atanh logit erfinv".split():
    pointwise(name, chances, getattr(torch, name))
pointwise("acosh", lambda n: (pos(n, 6, 4) + 1,), torch.acosh)
for name in "i0e i1 i1e bessel_j0 bessel_j1 ndtr log_ndtr erfcx".split():
    pointwise("special_" + name, plain, getattr(torch.special, name))
for name in "gammaln psi ndtri entr".split():
    pointwise("special_" + name, chances, getattr(torch.special, name))
pointwise("integers", lambda n: (i(-9, 9, n, 6),), torch.abs, torch.neg, torch.sign, torch.square, torch.sin, torch.sqrt, torch.exp, torch.ceil, torch.bitwise_not, torch.sigmoid, torch.reciprocal, torch.log1p)
pointwise("half", lambda n: (f(n, 6, 4).half(),), torch.abs, torch.exp, torch.sin, torch.relu, torch.erf, torch.rsqrt, lambda x: x.softmax(1), lambda x: x.sum(1), lambda x: x @ x.mT, lambda x: x.mean((1, 2)), lambda x: torch.nn.functional.layer_norm(x, (4,)), lambda x: x.cumsum(1), lambda x: x.max(1))
pointwise("double", lambda n: (f(n, 6, 4).double(),), torch.abs, torch.exp, torch.sin, torch.relu, torch.erf, lambda x: x.softmax(1), lambda x: x.sum(1), lambda x: x @ x.mT, torch.tanh, torch.nn.functional.gelu, lambda x: x.topk(2)[0], lambda x: x.std(1))
pointwise("round_decimals", plain, lambda x: torch.round(x, decimals=2), lambda x: torch.round(x, decimals=-1), lambda x: torch.nan_to_num(x / 0, 1.0, 2.0, -3.0))
pointwise("polygamma", positive, lambda x: torch.polygamma(1, x), lambda x: torch.polygamma(2, x), lambda x: torch.mvlgamma(x + 3, 3), lambda x: torch.special.multigammaln(x + 2, 2))
pointwise("zeta", lambda n: (pos(n, 6) + 1.5,), lambda x: torch.special.zeta(x, x), lambda x: torch.special.gammainc(x, x + 1), lambda x: torch.special.gammaincc(x, x * 0.5), lambda x: torch.igamma(x, x))
pointwise("chebyshev", lambda n: (unit(n, 6),), lambda x: torch.special.hermite_polynomial_h(x, 3), lambda x: torch.special.chebyshev_polynomial_t(x, 4), lambda x: torch.special.legendre_polynomial_p(x, 2))
pointwise("clamp", plain, lambda x: torch.clamp(x, -0.5, 0.5), lambda x: torch.clamp_min(x, 0), lambda x: torch.clamp_max(x, 0.1), lambda x: torch.clip(x, max=1), lambda x: torch.clamp(x, x.mean(), x.max()))


@case(lambda n: (f(n, 6), pos(n, 6)))
def torch_binary(x, y):
    return (torch.add(x, y, alpha=3), torch.sub(x, 2), torch.mul(x, y), torch.div(x, y), torch.atan2(x, y), torch.fmod(x, y), torch.remainder(x, 0.3), torch.pow(y, x), torch.pow(2, x), torch.maximum(x, y), torch.minimum(x, y),
            torch.hypot(x, y), torch.copysign(x, -1.0), torch.xlogy(x, y), torch.special.xlog1py(x, y), torch.logaddexp(x, y), torch.floor_divide(x, y), torch.true_divide(x, 3), torch.rsub(x, y), torch.nextafter(x, y) if False else x, torch.float_power(y, 0.5), torch.ldexp(x, torch.tensor(3)), torch.fmax(x, y), torch.arctan2(x, y), torch.lerp(x, y, 0.3), torch.dist(x, y))


@case(lambda n: (i(-30, 30, n, 6), i(1, 12, n, 6)))
def torch_gcd(x, y):
    return torch.gcd(x, y), torch.lcm(x, y), torch.bitwise_xor(x, y), torch.bitwise_right_shift(y, 1), torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), torch.floor_divide(x, 4), torch.pow(y, 2), torch.remainder(x, y), torch.fmod(x, y)


@case(lambda n: (f(n, 6), f(n, 6), f(6)))
def torch_fused(x, y, v):
    return torch.addcmul(x, x, y, value=0.5), torch.addcdiv(x, y, x.abs() + 1, value=2), torch.addmm(v, x, torch.eye(6)), torch.addmm(x, x, torch.eye(6), beta=2, alpha=0.3), torch.addr(x[:, :6], x[:, 0], v), torch.lerp(x, y, v.sigmoid())


@case(lambda n: (f(n, 6, 5),))
def torch_reductions(x):
    return (torch.sum(x, 1), torch.mean(x, (0, 2)), torch.std(x, 1), torch.var(x, 2, unbiased=False), torch.std_mean(x, 1), torch.var_mean(x, (1, 2), keepdim=True), torch.prod(x, 2), torch.norm(x, 2, 1), torch.norm(x, "fro"), torch.norm(x, 1, (1, 2)),
            torch.amax(x, (1, 2)), torch.aminmax(x), torch.logsumexp(x, 0), torch.nansum(x), torch.cov(x[0]) if False else torch.sum(x), torch.max(x, 1)[0], torch.min(x), torch.sum(x, dtype=torch.float64), torch.numel(x) + x)


@case(lambda n: (f(n, 6, 5),))
def torch_reductions_of_batch(x):
    return torch.sum(x, 0), torch.mean(x, 0), torch.std(x, 0), torch.var_mean(x, 0), torch.softmax(x, 0), torch.logcumsumexp(x, 0), torch.cumsum(x, 0), torch.prod(x, 0), torch.norm(x, dim=0), torch.linalg.vector_norm(x, 3, 0)


@case(lambda n: (f(n, 6, 5),))
def torch_extremes_of_batch(x):
    return torch.max(x, 0), torch.argmin(x, 0), torch.amax(x, 0), torch.median(x, 0)[0], torch.sort(x, 0)[0], torch.quantile(x, 0.5, 0), torch.cummax(x, 0)[0], torch.kthvalue(x, 1, 0)[0], torch.mode(x, 0)[0]


@case(lambda n: (f(n, 6, 5),))
def torch_moves(x):
    return (torch.transpose(x, 0, 1), torch.permute(x, (2, 0, 1)), torch.flatten(x, 1), torch.reshape(x, (-1, 5)), torch.squeeze(x[:, :1], 1), torch.unsqueeze(x, 2), torch.movedim(x, 0, 2), torch.moveaxis(x, 1, 0), torch.swapaxes(x, 1, 2), torch.t(x[:, 0]),
            torch.flip(x, (0, 2)), torch.roll(x, (2, 1), (0, 1)), torch.rot90(x, 1, (1, 2)), torch.fliplr(x), torch.flipud(x), torch.unbind(x, 1), torch.split(x, 2, 1), torch.chunk(x, 2, 2), torch.narrow(x, 1, 2, 3), torch.select(x, 1, 3), torch.atleast_3d(x[0, 0]), torch.adjoint(x), torch.ravel(x), torch.unflatten(x, 1, (2, 3)))


@case(lambda n: (f(n, 6),))
def torch_split_batch(x):
    a, z = torch.split(x, [1, x.shape[0] - 1])
    return a, z


@case(lambda n: (f(n, 6),))
def torch_chunk_batch(x):
    return torch.chunk(x, 2)


@case(lambda n: (f(2 * n, 6),))
def torch_chunk_even(x):
    a, z = torch.chunk(x, 2)
    return a * z, torch.stack((a, z), 1).flatten(0, 1)


@case(lambda n: (f(n, 6),))
def torch_tensor_split(x):
    return torch.tensor_split(x, 4, 1), torch.tensor_split(x, (1, 4), 1), torch.hsplit(x, 2), torch.hsplit(x, (2, 5)), torch.tensor_split(x, (1,)), torch.vsplit(x, (1,))


@case(lambda n: (f(n, 6),))
def torch_creation(x):
    m = x.shape[0]
    return (torch.zeros(m, 3), torch.ones((2, m)), torch.full((m, 2), 1.5), torch.full((m,), 7), torch.empty(m, 0), torch.arange(m), torch.arange(1, m + 1), torch.arange(0, 2 * m, 2), torch.arange(m, 0, -1), torch.arange(0.0, 3.0, 0.5), torch.linspace(-1, 1, m), torch.linspace(0, 5, 6),
            torch.eye(m), torch.eye(4), torch.eye(m, 3), torch.zeros_like(x), torch.ones_like(x, dtype=torch.int64), torch.full_like(x, 3), torch.scalar_tensor(3), torch.tensor([1.0, 2.0]), torch.tril_indices(4, 4), torch.triu_indices(3, 5, 1), torch.logspace(0, 2, 5), torch.arange(m, dtype=torch.float32), torch.zeros(()), torch.tensor(5))


@case(lambda n: (f(n, 6),))
def torch_windows(x):
    return torch.hann_window(8) + 0 * x[0, 0], torch.hamming_window(7, False), torch.blackman_window(9), torch.bartlett_window(6), torch.kaiser_window(8), torch.signal.windows.gaussian(7, std=2.0), x * torch.hann_window(6)


@case(lambda n: (f(n), f(5)))
def torch_meshgrid(x, y):
    return torch.meshgrid(x, y, indexing="ij"), torch.meshgrid(y, x, indexing="xy"), torch.cartesian_prod(x, y), torch.outer(x, y), torch.ger(x, y), torch.vander(x, 4), torch.block_diag(x[None], y[None])


@case(lambda n: (f(n, 6, 6),))
def torch_triangles(x):
    return torch.tril(x), torch.triu(x, 2), torch.diag(x[0]), torch.diagonal(x, 1, 1, 2), torch.trace(x[0]), torch.diag_embed(x[:, 0], 1), torch.tril(torch.ones(x.shape[0], x.shape[0])), torch.triu(torch.full((x.shape[0], x.shape[0]), float("-inf")), 1), torch.diagflat(x[0, 0])


@case(lambda n: (f(n, 4, 5), f(n, 5, 6)))
def torch_einsum(x, y):
    return (torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij->bji", x), torch.einsum("bij,bjk->", x, y), torch.einsum("bij->b", x), torch.einsum("bij,bij->bi", x, x), torch.einsum("...ij,...jk->...ik", x, y), torch.einsum("bij,cjk->bcik", x, y), torch.einsum("bii->bi", x[:, :, :4]), torch.einsum("i,j->ij", x[0, :, 0], y[0, 0]))


@case(lambda n: (f(n, 4, 5), f(n, 5, 6)))
def torch_products(x, y):
    return torch.matmul(x, y), torch.bmm(x, y), torch.mm(x[0], y[0]), torch.tensordot(x, y, ([2], [1])), torch.baddbmm(torch.zeros(1, 1, 6), x, y), torch.addbmm(torch.zeros(4, 6), x, y), torch.chain_matmul(x[0], y[0]) if False else torch.linalg.multi_dot([x[0], y[0]]), torch.dot(x[0, 0], x[0, 1]), torch.mv(x[0], y[0, :, 0]), torch.inner(x, x[0]), torch.kron(x[0], y[0]), torch.vdot(x[0, 0], y[0, :, 0])


@case(lambda n: (f(n, 6), b(n, 6), f(n, 6)))
def torch_where(x, m, y):
    return torch.where(m, x, y), torch.where(m, 1.0, 0.0), torch.where(x > 0, x, 0), torch.where(m, x, torch.tensor(2.0)), torch.masked_fill(x, m, 3), torch.masked_select(x, m), torch.logical_and(m, x > 0), torch.logical_xor(m, m)


@case(lambda n: (f(n, 6), i(0, 6, n, 2)))
def torch_gathers(x, k):
    return torch.gather(x, 1, k), torch.take_along_dim(x, k, 1), torch.index_select(x, 1, torch.tensor([0, 5, 2])), torch.scatter(x, 1, k % 1, 1.0), torch.scatter_add(x, 1, k, x[:, :2]), torch.index_select(x, 0, torch.tensor([0])), torch.take(x, k), torch.gather(x, 0, k * 0)


@case(lambda n: (f(n, 6), f(6)))
def torch_sorting(x, v):
    return torch.sort(x), torch.argsort(x, 1, descending=True), torch.topk(x, 3), torch.msort(x), torch.searchsorted(v.sort()[0], x), torch.bucketize(x, v.sort()[0], right=True), torch.kthvalue(x, 2), torch.sort(x, stable=True, dim=0)


@case(lambda n: (f(n, 6, 6) + 4 * torch.eye(6),), tol=1e-3)
def torch_linalg(x):
    s = x @ x.mT
    return torch.linalg.inv(x), torch.linalg.det(x), torch.linalg.slogdet(x), torch.linalg.solve(x, x[:, :, :2]), torch.linalg.cholesky(s), torch.linalg.matrix_power(x, 3), torch.linalg.pinv(x), torch.inverse(x), torch.linalg.matrix_norm(x), torch.linalg.norm(x, dim=(1, 2)), torch.linalg.vector_norm(x, dim=-1), torch.logdet(s), torch.linalg.eigvalsh(s), torch.linalg.svdvals(x), torch.linalg.matrix_exp(x * 0.1), torch.linalg.solve_triangular(x.tril(), x, upper=False), torch.linalg.norm(x[0], 1), torch.linalg.cond(x) if False else torch.det(x), torch.cholesky_solve(x, torch.linalg.cholesky(s))


@case(lambda n: (f(n, 5, 4),), tol=1e-3, same=lambda q, r, u, s, v, w, e: (q @ r, r.abs(), (u * s[..., None, :]) @ v, s, w, (e * w[..., None, :]) @ e.mT))
def torch_factors(x):
    q, r = torch.linalg.qr(x)
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    w, e = torch.linalg.eigh(x.mT @ x)
    return q, r, u, s, v, w, e


@case(lambda n: (f(n, 16),))
def torch_fft(x):
    return (torch.fft.fft(x), torch.fft.rfft(x), torch.fft.irfft(torch.fft.rfft(x)), torch.fft.ifft(torch.fft.fft(x)).real, torch.fft.fftshift(x), torch.fft.fftfreq(8), torch.fft.rfftfreq(9), torch.fft.fft2(x.view(-1, 4, 4)), torch.fft.rfft(x, 12, norm="ortho"), torch.fft.fftn(x.view(-1, 4, 4)), torch.fft.hfft(torch.fft.ihfft(x)), torch.fft.ifftshift(x, 1), torch.fft.rfft2(x.view(-1, 4, 4)).abs())


@case(lambda n: (f(n, 4),))
def torch_fft_batch(x):
    return torch.fft.fft(x, dim=0), torch.fft.rfft(x, dim=0).abs(), torch.fft.ifft(x, dim=0)


@case(lambda n: (f(n, 64),))
def torch_stft(x):
    return torch.stft(x, 16, return_complex=True), torch.stft(x, 16, 8, 12, torch.hann_window(12), center=False, normalized=True, return_complex=True).abs(), torch.stft(x, 8, return_complex=True, onesided=False, pad_mode="constant")


@case(lambda n: (f(n, 6),))
def torch_scans(x):
    return torch.cumsum(x, 1), torch.cumprod(x, 1), torch.cummax(x, 1), torch.cummin(x, 1), torch.logcumsumexp(x, 1), torch.diff(x), torch.diff(x, prepend=x[:, :1]), torch.trapezoid(x, dim=1), torch.cumulative_trapezoid(x, dim=1), torch.gradient(x, dim=1)[0], torch.cumsum(x > 0, 1), torch.trapz(x, dx=0.5)


@case(lambda n: (f(n, 6), f(n, 6)))
def torch_comparisons(x, y):
    return torch.eq(x, y), torch.ne(x, y), torch.gt(x, 0), torch.le(x, y), torch.isclose(x, y), torch.isnan(x), torch.isfinite(x / 0), torch.isinf(x / 0), torch.isreal(x), torch.isin(x, y), torch.logical_not(x), torch.heaviside(x, y), torch.is_tensor(x) * x, torch.is_floating_point(x) * y


@case(lambda n: (f(n, 6), f(n, 6)))
def torch_allclose(x, y):
    return (x - y).abs().max() < 1, torch.allclose(x, y)


@case(lambda n: (c(n, 6),))
def torch_complex_functions(x):
    return torch.sin(x), torch.sqrt(x), torch.cos(x)


@case(lambda n: (f(n, 6),), random=True)
def torch_poisson(x):
    return torch.poisson(x.abs())


@case(lambda n: (f(n),))
def torch_combinations(x):
    return torch.combinations(x, 2)


@case(lambda n: (f(n, 6),))
def torch_cov(x):
    return torch.corrcoef(x.T), torch.cov(x.T)


@case(lambda n: (c(n, 6),))
def torch_complex(x):
    return torch.real(x), torch.imag(x), torch.conj(x), torch.angle(x), torch.abs(x), torch.view_as_real(x), torch.exp(x), torch.log(x), torch.resolve_conj(x.conj()), torch.sgn(x), torch.square(x), torch.reciprocal(x), torch.sum(x, 1), torch.cumsum(x, 1), torch.conj_physical(x)


@case(lambda n: (f(n, 6),))
def torch_tuples(x):
    return torch.atleast_1d(x), torch.atleast_2d(x[0, 0]), torch.broadcast_tensors(x, x[:1]), torch.broadcast_to(x, (2,) + x.shape), torch.stack([x, x], 1), torch.hstack([x, x]), torch.dstack([x, x]), torch.tile(x, (2, 1)), torch.repeat_interleave(x, 2, 0), torch.clone(x), torch.argwhere(x > 0)


@case(lambda n: (f(n, 6), f(n, 6)))
def torch_correlations(x, y):
    return torch.cdist(x, y, 2), torch.histc(x, 4), torch.renorm(x, 2, 0, 1.0), torch.linalg.vander(x), torch.std(x - y, 0)


@case(lambda n: (f(n, 6),))
def torch_quantiles(x):
    return torch.quantile(x, torch.tensor([0.2, 0.7]), 1), torch.nanquantile(x, 0.5, 1, True), torch.median(x, 1), torch.nanmedian(x, 1), torch.quantile(x, 0.4, 1, interpolation="nearest"), torch.quantile(x, 0.5)


@case(lambda n: (i(0, 5, n),))
def torch_counts(x):
    return torch.bincount(x, minlength=6), torch.unique(x), torch.unique(x, return_counts=True), torch.unique_consecutive(x, return_inverse=True), torch.nn.functional.one_hot(x, 5), torch.count_nonzero(x)


@case(lambda n: (f(n, 6),))
def torch_indexed(x):
    k = torch.tensor([1, 3, 5])
    return torch.index_add(x, 1, k, x[:, :3]), torch.index_copy(x, 1, k, x[:, :3]), torch.index_fill(x, 1, k, 2.0), torch.index_reduce(x, 1, k, x[:, :3], "mean"), torch.scatter_reduce(x, 1, k.expand(x.shape[0], 3), x[:, :3], "amin"), torch.select_scatter(x, x[:, 0], 1, 2), torch.slice_scatter(x, x[:, :2], 1, 2, 4), torch.put(x, k, torch.zeros(3)), torch.masked_scatter(x, x > 0, x)


@case(lambda n: (f(n, 6),), random=True)
def torch_random(x):
    return torch.rand(x.shape[0], 2), torch.randn_like(x), torch.randint(3, 9, x.shape), torch.randint_like(x, 5), torch.bernoulli(torch.full_like(x, 0.3)), torch.normal(0.0, 1.0, (x.shape[0],)), torch.rand(2, 3), torch.empty(2).exponential_(), torch.rand_like(x, dtype=torch.float64), torch.native_dropout(x, 0.5, True)


@case(lambda n: (unit(n, 8, 8), unit(n, 1)))
def torch_vision_like(x, g):
    return torch.clamp(x * g[:, :, None] * 255, 0, 255).to(torch.uint8), (x * 255).byte().float() / 255, x.flip(-1), torch.stack([x] * 3, 1), (x - x.mean((1, 2), keepdim=True)) / x.std((1, 2), keepdim=True)


@case(lambda n: (f(n, 4, 8),))
def torch_rope(x):
    t = torch.arange(x.shape[0], dtype=x.dtype)
    a = torch.outer(t, 1.0 / 10000 ** (torch.arange(0, 8, 2) / 8))
    cos, sin = torch.cat((a, a), 1).cos()[:, None], torch.cat((a, a), 1).sin()[:, None]
    r = torch.cat((-x[..., 4:], x[..., :4]), -1)
    return x * cos + r * sin, torch.view_as_real(torch.view_as_complex(x.view(-1, 4, 4, 2)) * torch.polar(torch.ones_like(a), a)[:, None]).flatten(2)


@case(lambda n: (f(n, 6), f(n, 6), f(n, 6)))
def torch_foreach_like(x, y, z):
    return [a * 2 for a in (x, y, z)], torch._foreach_add([x, y], 1.0), torch._foreach_mul([x, y], [z, z]), torch._foreach_sqrt([x.abs()])


@case(lambda n: (f(n, 6),))
def torch_vmap(x):
    return torch.vmap(lambda r: r * r.sum())(x), torch.vmap(torch.dot)(x, x)


@case(lambda n: (f(n, 6),))
def torch_checks(x):
    torch._check(x.shape[1] == 6)
    assert x.dim() == 2
    with torch.no_grad():
        y = x + 1
    with torch.autocast("cpu", enabled=False):
        z = x @ x.T
    return y, z, torch.cond(torch.tensor(True), lambda a: a + 1, lambda a: a - 1, (x,)) if False else y
