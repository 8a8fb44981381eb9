"""Sizes and slices that the data tell, loops, and what the captures of users have beside operators."""
import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

from case import b, c, case, f, i, modules, note, pos, unit


@case(lambda n: (f(n, 6), f(n + 1, 6), f(3, 6)))
def data_sym_sum(x, y, z):
    k = torch.sym_sum([x.shape[0], y.shape[0], z.shape[0]])
    return x.new_ones(k, 2), x * k


class While(nn.Module):
    def forward(self, x):
        def cond(k, y):
            return k < x.shape[0]

        def body(k, y):
            return k + 1, y * 2 + k
        return while_loop(cond, body, (0, x))


note("data_while_int", While, lambda n: (f(n, 3),))


class WhileTensor(nn.Module):
    def forward(self, x):
        def cond(k, y):
            return (k < 5).squeeze() & (y.sum() < 100)

        def body(k, y):
            return k + 1, y + y.abs()
        return while_loop(cond, body, (torch.zeros(1, dtype=torch.int64), x))


note("data_while_tensor", WhileTensor, lambda n: (f(n, 3),))


class WhileIntOnly(nn.Module):
    def forward(self, x):
        def cond(k, j, y):
            return k + j < 10

        def body(k, j, y):
            return k + 1, j + 2, y + k - j
        return while_loop(cond, body, (x.shape[0], 1, x))


note("data_while_ints", WhileIntOnly, lambda n: (f(n, 3),))


@case(lambda n: (f(n, 5),))
def data_where_one(x):
    return torch.where(x > 0)


@case(lambda n: (f(n, 5),))
def data_where_one_index(x):
    r, k = torch.where(x > 0)
    return x[r, k], r + k


@case(lambda n: (f(n, 5), b(n)))
def data_slice_end_sum(x, m):
    k = int(m.sum())
    return x[:k]


@case(lambda n: (f(n, 5), b(n)))
def data_slice_start_sum(x, m):
    k = int(m.sum())
    return x[k:]


@case(lambda n: (f(n, 5), i(-4, 4, 1)))
def data_slice_end_item(x, k):
    return x[:k.item()]


@case(lambda n: (f(n, 5), i(-4, 4, 1)))
def data_slice_start_item(x, k):
    return x[k.item():] * 2


@case(lambda n: (f(n, 5), i(0, 2, 1)))
def data_slice_checked(x, k):
    u = k.item()
    torch._check(u >= 0)
    torch._check(u <= x.shape[0])
    return x[:u], x[u:]


@case(lambda n: (f(n, 5), i(0, 5, 1)))
def data_select_item(x, k):
    u = k.item()
    torch._check(u >= 0)
    torch._check(u < 5)
    return x[:, u]


@case(lambda n: (f(n, 5), i(1, 5, 1)))
def data_narrow_item(x, k):
    u = k.item()
    torch._check(u >= 0)
    torch._check(u <= 5)
    return x.narrow(1, 0, u)


@case(lambda n: (f(n, 5), i(1, 5, n)))
def data_mask_from_lengths(x, k):
    m = torch.arange(int(k.max()))[None, :] < k[:, None]
    return m


@case(lambda n: (pos(n, 5),))
def data_arange_floats(x):
    a, z = x.min().item(), x.max().item()
    return torch.arange(a, z + 3.0, 0.5)


@case(lambda n: (pos(n, 5),))
def data_arange_floats_int(x):
    a, z = x.min().item(), x.max().item()
    return torch.arange(a, z + 3.0, dtype=torch.int64)


@case(lambda n: (i(0, 4, n), i(5, 9, n)))
def data_arange_ints(x, y):
    return torch.arange(int(x.min()), int(y.max()))


@case(lambda n: (f(n, 12),))
def data_as_strided(x):
    return torch.as_strided(x, (x.shape[0], 3, 4), (12, 4, 1)), x.as_strided((x.shape[0], 6), (12, 2), 1)


@case(lambda n: (f(n, 4, 6),))
def data_as_strided_view(x):
    y = x.transpose(1, 2)
    return y.as_strided((y.shape[0], 6, 4), (24, 1, 6)), x[:, 1:].as_strided((x.shape[0], 3), (24, 6), 2)


@case(lambda n: (f(n, 12),))
def data_as_strided_write(x):
    y = x.clone()
    y.as_strided((y.shape[0], 3), (12, 4)).mul_(2)
    y.view(-1, 3, 4).as_strided((y.shape[0], 2), (12, 1), 3).zero_()
    return y


@case(lambda n: (f(n, 4),))
def data_tensor_split(x):
    return torch.tensor_split(x, 3), torch.tensor_split(x, 3, dim=1), torch.tensor_split(x, (1, 3), dim=1)


@case(lambda n: (f(n, 4),))
def data_tensor_split_beyond(x):
    return torch.tensor_split(x, (2, 5, 9)), torch.tensor_split(x, (-3, -1))


@case(lambda n: (f(n, 4),))
def data_tensor_split_six(x):
    return torch.tensor_split(x, 6), torch.tensor_split(x, 6, dim=1)


@case(lambda n: (f(n, 4),))
def data_tensor_split_tensor(x):
    return torch.tensor_split(x, torch.tensor([1, 3])), torch.tensor_split(x, torch.tensor(2))


@case(lambda n: (f(n, 4), b(n), b(4)))
def data_put_one_mask(x, p, q):
    y, z = x.clone(), x.clone()
    y[p] = 3.0
    z[:, q] = 4.0
    return y, z


@case(lambda n: (f(n, 4), torch.arange(n) == 0, b(4)))
def data_put_two_masks(x, p, q):
    y = x.clone()
    y[p, q] = 5.0
    return y


@case(lambda n: (f(n, 4), torch.arange(n) < 2, torch.tensor([True, False, False, False])))
def data_put_masks_broadcast(x, p, q):
    y = x.clone()
    y[p, q] = -1.0
    return y, x[p, q]


@case(lambda n: (f(n, 4), b(n, 4), f(1)))
def data_put_mask_value(x, m, v):
    y, z = x.clone(), x.clone()
    y[m] = v
    z[m] = z[m] * 2 + 1
    return y, z


@case(lambda n: (f(n, 4, 3), b(n), i(0, 4, 1)))
def data_put_mask_index(x, m, k):
    y = x.clone()
    y[m, k] = 2.0
    return y


@case(lambda n: (f(n, 4), i(0, 4, 1), i(0, 3, n)))
def data_repeat_interleave(x, one, each):
    return x.repeat_interleave(one, dim=0), x.repeat_interleave(each, dim=0), x.repeat_interleave(3, dim=1)


@case(lambda n: (f(n, 4), torch.tensor([2])))
def data_repeat_interleave_one(x, one):
    return torch.repeat_interleave(x, one, dim=1), torch.repeat_interleave(x, one), torch.repeat_interleave(one)


@case(lambda n: (c(n, 9, 12),))
def data_istft(x):
    return torch.istft(x, 16, hop_length=4), torch.istft(x, 16, 4, window=torch.hann_window(16), length=40)


@case(lambda n: (c(n, 16, 12),))
def data_istft_two_sided(x):
    return (torch.istft(x, 16, 4, onesided=False),
            torch.istft(x, 16, 4, window=torch.hann_window(16), onesided=False, normalized=True))


@case(lambda n: (c(n, 16, 12),))
def data_istft_complex(x):
    return torch.view_as_real(torch.istft(x, 16, 4, onesided=False, return_complex=True)),


@case(lambda n: (f(n, 80),))
def data_stft(x):
    y = torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True)
    z = torch.stft(x, 16, 4, window=torch.hann_window(16), onesided=False, return_complex=True)
    return torch.view_as_real(y), torch.view_as_real(z)


@case(lambda n: (f(n, 80),))
def data_stft_istft(x):
    w = torch.hann_window(16)
    y = torch.stft(x, 16, 4, window=w, return_complex=True)
    z = torch.stft(x, 16, 4, window=w, onesided=False, return_complex=True)
    v = torch.istft(z, 16, 4, window=w, onesided=False, return_complex=True)
    return (torch.istft(y, 16, 4, window=w), torch.istft(z, 16, 4, window=w, onesided=False), torch.view_as_real(v),
            torch.istft(y * torch.polar(torch.ones(9, 1), torch.arange(9.)[:, None]), 16, 4, window=w, length=70))


@case(lambda n: (f(n, 4), f(n, 4)))
def data_set(x, y):
    z = x.clone()
    z.set_(y * 2)
    return z + 1


@case(lambda n: (f(n, 4),))
def data_set_data(x):
    z = torch.zeros(2)
    z.data = x * 2
    return z


@case(lambda n: (i(0, 9, n, 4),))
def data_item_out(x):
    return x.sum().item(), x


@case(lambda n: (f(n, 4),))
def data_item_float_out(x):
    return x.sum().item(), x + 1


@case(lambda n: (f(n, 4),))
def data_item_bool_out(x):
    return (x.sum() > 0).item(), x.shape[0], x


@case(lambda n: (f(n, 4),))
def data_item_used(x):
    return x * x.max().item(), torch.full((2,), x.min().item())


@case(lambda n: (f(n, 4),))
def data_nonzero(x):
    return torch.nonzero(x > 0), (x > 0).nonzero(as_tuple=True), torch.argwhere(x > 0)


@case(lambda n: (f(n, 4), b(n)))
def data_mask_select(x, m):
    return x[m], x[x > 0], torch.masked_select(x, x > 0.5), x[m][:, 1]


@case(lambda n: (i(0, 4, n, 3),))
def data_unique(x):
    return torch.unique(x), torch.unique(x, return_inverse=True, return_counts=True), torch.unique_consecutive(x)


@case(lambda n: (i(0, 4, n),))
def data_bincount(x):
    return torch.bincount(x), torch.bincount(x, minlength=8)


@case(lambda n: (i(0, 4, n),))
def data_one_hot(x):
    return F.one_hot(x, 5), F.one_hot(x)


@case(lambda n: (f(n, 4),))
def data_cond(x):
    return torch.cond(x.sum() > 0, lambda y: y.sin() + 1, lambda y: y.cos() - 1, (x,))


@case(lambda n: (f(n, 5),))
def data_arange_floats_ints(x):
    a, z = x.min().item() - 0.5, x.max().item() + 2.7
    return (torch.arange(a, z, dtype=torch.int64), torch.arange(a, z, dtype=torch.int32), torch.arange(z, dtype=torch.int64),
            torch.arange(a, z + 5, 2.5, dtype=torch.int64), torch.arange(z, a - 3, -1.5, dtype=torch.int32), torch.arange(a, z, 0.5))
