"""Calls of torch that rows of the front end describe, beside eager: forms, dtypes and errors where the two could part.

Each line is an expression over x [4, 5] and v [5] (float32), i [4, 5] (int64), b [4, 5] (bool), z (one float) and e [0, 3].
"""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

CALLS = """
x.var(False)
x.std(False)
x.var(1, False)
x.var(correction=0.5)
x.any(dim=())
x.all(dim=())
x.squeeze(dim=())
x.logsumexp(dim=())
x.sum(dim=())
F.softmax(x, dim=None)
F.softmax(x)
torch.softmax(x, 1, torch.float64)
torch.zeros(3, requires_grad=True)
torch.cat([x, None])
torch.clamp(x)
x.clamp(min=z, max=2)
x.clamp(z, z)
torch.prod(x, (0,1))
torch.arange(5)
torch.arange(0, -3, 2)
torch.arange(5, dtype=torch.int32)
torch.arange(5, dtype=torch.float32)
torch.arange(1, 5, 2, dtype=torch.bool)
torch.eye(3)
torch.eye(3, 4, dtype=torch.int64)
torch.full((2,3), 7)
torch.full((2,3), True)
torch.full((2,3), 1.5, dtype=torch.int64)
torch.full((2,), z)
torch.full_like(i, 2.7)
torch.full_like(b, 2)
torch.zeros(2,3), torch.ones((2,3))
i.mean()
i.mean(dtype=torch.float32)
b.sum(), b.sum(dtype=torch.bool), b.prod()
i.var()
i.std()
i.softmax(1)
i.logsumexp(1)
i.sqrt(), i.exp(), i.sigmoid(), b.exp()
F.relu(b)
F.gelu(i)
F.silu(i)
F.elu(i)
F.leaky_relu(i)
F.softplus(i)
F.hardtanh(i)
F.hardtanh(i, -2, 2)
F.hardswish(i)
F.relu6(i)
torch.relu(b)
torch.neg(b)
-b
~x
~i, ~b
b + b, b * b, b - i
b - b
b @ b
i @ i.t()
x @ i.t().float()
x @ i.t()
x / i
i / i
i // (i+1), i % (i+1)
x // 2, x % 2, i // 2, i % 3, b // 2
i ** 2, x ** 2, 2 ** x, i ** -1
i ** 0.5
b ** 2
2 ** b
torch.pow(2, i)
torch.maximum(x, i)
torch.maximum(x, 2)
torch.fmod(i, 0)
i // 0
torch.lerp(x, i, 0.5)
torch.lerp(x, x, z)
torch.lerp(i, i, 0.5)
torch.where(b, x, 2)
torch.where(b, 1, 2)
torch.where(b, 1.0, 2)
torch.where(b, x, i)
torch.where(x, x, x)
torch.where(i, x, x)
torch.where(b)
torch.masked_fill(x, b, z)
torch.masked_fill(i, b, 2.5)
i.masked_fill(b, True)
x.masked_fill(i, 2)
x.addcmul(i, i)
torch.addcmul(i, x, x)
torch.add(x, i, alpha=2)
torch.add(i, i, alpha=2.5)
torch.add(b, b, alpha=True)
torch.add(i, 2.5)
torch.add(i, True)
torch.sub(b, True)
torch.rsub(x, 2), torch.rsub(x, i), 2 - b.int()
x.argmax(), x.argmax(dim=1, keepdim=True), b.argmax()
i.argmax(dim=True)
x.max(1), i.max(0), b.max(1), x.max(1, True)
e.sum(0), e.mean(0), e.prod(0)
e.amax(0)
e.amax(1)
e.max(0)
e.max()
e.argmax()
e.argmax(1)
e.var(0), e.std(0)
z.sum(0), z.max(0), z.squeeze(), z.flatten(), z.t(), z.unsqueeze(0), z.reshape(1,1)
z.sum(dim=(0,))
z.softmax(0)
x.softmax(-3)
x.sum(2)
x.transpose(0, 2)
x.reshape(3, 7)
x.reshape(-1, -1)
x.view(4, -1)
x.t().view(20)
x.unflatten(1, (5, 1)), x.unflatten(-1, (-1, 5))
x.unflatten(1, (2, 2))
x.flatten(1, 0)
x.expand(3, -1, -1), x.expand(4, 5)
x.expand(-1, 4, 5)
x.expand(3, 5)
x.split(2), x.split([1, 3]), x.split(3, dim=1)
x.split([1, 2])
x.chunk(2), x.chunk(3), x.chunk(7), x.chunk(2, 1)
x.unbind(), x.unbind(1)
x.narrow(0, 1, 2), x.narrow(1, -2, 2)
x.narrow(0, 3, 2)
x.select(0, -1), x.select(1, 7)
x.flip(0), x.flip((0, 1)), x.flip(0, -1), x.flip([])
x.roll(1)
x.roll(1, 0), x.roll((1, 2), (0, 1)), x.roll(7, 1)
x.roll(1, (0, 1))
x.repeat(2, 1), x.repeat(2, 2, 1)
x.repeat(2)
x.tile((2,)), x.tile(2, 1), torch.tile(x, (2, 2)), x.tile((1, 2, 2))
x.repeat_interleave(2, 0), x.repeat_interleave(1, 1), x.repeat_interleave(2), x.repeat_interleave(0, 1)
x.repeat_interleave(3, dim=-1)
x.gather(1, i[:, :2] % 5), x.gather(0, i[:2] % 4)
x.gather(1, i)
x.gather(1, -i)
x.index_select(0, i[0, :2]), x.index_select(1, i[0, :0])
x.index_select(0, i)
x.index_select(0, -i[0])
x.tril(), x.triu(1), x.tril(-1), i.tril(), b.triu()
v.tril()
F.pad(x, (1, 2)), F.pad(x, (1, -1, 2, 0), value=3), F.pad(i, (1, 1), value=2), F.pad(b, (1, 1)), F.pad(i, (1,1), value=2.7)
F.pad(x, (1, 2, 3))
F.pad(x, (1, 1), mode='constant', value=True)
F.linear(x, x), F.linear(v, x), F.linear(x, x, z.expand(4)), F.linear(x, v)
F.linear(x, x, v)
F.linear(i, i)
F.embedding(i % 4, x), F.embedding(i % 4, x, padding_idx=0)
F.embedding(i, x)
F.embedding(x, x)
F.layer_norm(x, (5,)), F.layer_norm(x, (4, 5)), F.layer_norm(x, [5], v, v, 1e-3)
F.layer_norm(x, (4,))
F.layer_norm(i, (5,))
F.layer_norm(x, (5,), x[0], x[:, 0])
F.rms_norm(x, (5,)), F.rms_norm(x, (4,5), None, 1e-3)
F.rms_norm(x, (3,))
F.group_norm(x[None], 2), F.group_norm(x, 5), F.group_norm(x, 1, v, v)
F.group_norm(x, 3)
F.batch_norm(x, v, v.abs()), F.batch_norm(x, v, v.abs(), v, v, False, 0.1, 1e-3)
F.batch_norm(x, None, None, training=True)
F.batch_norm(x, None, None)
F.batch_norm(v, v, v)
F.normalize(x), F.normalize(x, dim=0), F.normalize(x, 2.0, 1), F.normalize(x, p=1)
F.normalize(x, dim=(0,1))
F.normalize(i)
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])
F.scaled_dot_product_attention(x[None], x[None], x[None])
F.scaled_dot_product_attention(x, x, x)
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], is_causal=True, scale=0.3)
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], b[:, :4])
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], x[:, :4])
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], b[:, :4], is_causal=True)
torch.mm(x, x)
torch.mm(x[None], x.t()[None])
torch.bmm(x[None], x.t()[None].expand(2, 5, 4))
torch.bmm(x[None].expand(2,4,5), x.t()[None].expand(2, 5, 4))
torch.mv(x, v), torch.dot(v, v), torch.inner(v, x), torch.inner(x, x), torch.inner(x, v)
torch.inner(z, x)
torch.addmm(x[:, :4], x, x.t()), torch.addmm(z, x, x.t(), beta=2, alpha=0.5), torch.addmm(v[:4], x, x.t(), beta=0)
torch.addmm(x * float('nan'), x, x.t(), beta=0)
torch.addmm(x[:, :4] * float('nan'), x, x.t(), beta=0)
torch.addmv(v[:4], x, v), torch.addmv(z, x, v, beta=0, alpha=2)
torch.addmv(x, x, v)
torch.baddbmm(x[None, :, :4], x[None], x.t()[None]), torch.baddbmm(z, x[None], x.t()[None], beta=2, alpha=3)
torch.einsum('ij,kj->ik', x, x), torch.einsum('ij,ij->', x, x), torch.einsum('ij,ij->i', x, x), torch.einsum('ij->ji', x), torch.einsum('ij->', x), torch.einsum('ij->j', x)
torch.einsum('ij,j', x, v), torch.einsum('i,j->ij', v, v), torch.einsum('bij,bkj->bik', x[None], x[None]), torch.einsum('bhid,bhjd->bhij', x[None, None], x[None, None])
torch.einsum('ii->i', x[:, :4]), torch.einsum('...ij->...ji', x), torch.einsum('ij,jk,kl->il', x, x.t(), x)
torch.einsum('ij,kj->ik', x, x[:, :1])
torch.einsum('ij,jk->ki', x, x)
torch.einsum('ijk,il->jkl', x[:, :, None], x)
torch.einsum('ij,jk->ik', i, i.t())
torch.einsum('ij,jk->ik', (x, x.t()))
x.norm(), x.norm(dim=1), x.norm(1, dim=0), x.norm(float('inf')), x.norm(p=2, dim=(0,1), keepdim=True), x.norm(0, 1), x.norm(3)
torch.norm(x, dim=-1, keepdim=True), torch.norm(i.float())
i.norm()
torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, 1, 0), torch.linalg.vector_norm(x, float('-inf'), (0, 1), True)
torch.linalg.norm(x)
torch.linalg.vector_norm(x, dim=())
torch.linalg.vector_norm(e, float('inf'), 0)
torch.count_nonzero(x), torch.count_nonzero(b, 1), x.count_nonzero((0, 1)), i.count_nonzero(dim=0)
torch.aminmax(x), torch.aminmax(x, dim=1, keepdim=True), x.aminmax(dim=0)
torch.var_mean(x), torch.var_mean(x, 1), torch.std_mean(x, (0, 1), keepdim=True), torch.var_mean(x, False), torch.var_mean(x, dim=1, correction=0)
torch.isclose(x, x + 1e-9), torch.allclose(x, x), torch.allclose(x, x + 1), torch.isclose(x / 0, x / 0), torch.isclose(x * float('nan'), x * float('nan'), equal_nan=True)
torch.isclose(i, i)
torch.isclose(x, x.double())
torch.logaddexp(x, x[:1]), torch.logaddexp(x / 0, x / 0), torch.logit(x.sigmoid()), torch.logit(x, 1e-3), torch.logit(x), torch.frac(x * 7), torch.heaviside(x, z), torch.heaviside(x * 0, z)
torch.heaviside(i, i), torch.frac(-x / 0)
torch.heaviside(x, i)
torch.frac(i)
torch.div(x, i + 1, rounding_mode='trunc')
torch.div(x, 0.3, rounding_mode='trunc'), torch.div(x, 0.3, rounding_mode='floor'), torch.div(-i, 3, rounding_mode='trunc'), torch.div(x, x + 1, rounding_mode='trunc')
torch.diff(x), torch.diff(x, dim=0), torch.diff(b), torch.diff(x, n=2), torch.diff(x, prepend=x), torch.diff(i), torch.diff(e, dim=0)
torch.ldexp(x, i[:1] - 2), torch.ldexp(x, torch.tensor(3)), torch.deg2rad(x), torch.rad2deg(i), torch.deg2rad(b)
torch.isposinf(x / 0), torch.isneginf(x / 0), torch.isposinf(i)
torch.atleast_1d(z), torch.atleast_2d(z), torch.atleast_3d(z), torch.atleast_2d(v), torch.atleast_3d(v), torch.atleast_3d(x), torch.atleast_1d(x)
torch.atleast_1d(x, z), torch.atleast_2d([x, z])
torch.hstack((x, x)), torch.hstack((v, v)), torch.hstack((z, z)), torch.vstack((x, v)), torch.vstack((v, v)), torch.dstack((x, x)), torch.dstack((v, v)), torch.column_stack((x, v[:4])), torch.column_stack((v, v)), torch.column_stack((z, z))
torch.hstack((z, v))
torch.hstack((v, z)), torch.hstack((x, i))
torch.hsplit(x, 5), torch.vsplit(x, 2), torch.hsplit(v, 5), torch.dsplit(x[None], 5), torch.vsplit(x, [1, 3])
torch.hsplit(x, 2)
torch.vsplit(v, 1)
torch.movedim(x, 0, 1), torch.movedim(x[None], (0, 2), (1, 0)), torch.moveaxis(x[None], -1, 0)
torch.movedim(x, 0, 5)
torch.movedim(x, (0, 0), (0, 1))
torch.meshgrid(v, v, indexing='ij'), torch.meshgrid(v, v, indexing='xy'), torch.meshgrid(v, v), torch.meshgrid(v, z, indexing='ij'), torch.meshgrid([v, v[:2]], indexing='ij')
torch.fliplr(x), torch.flipud(x), torch.flipud(v)
torch.fliplr(v)
torch.ravel(x), torch.ravel(x.t()), torch.ravel(z), x.adjoint(), torch.conj(x), torch.real(x)
torch.broadcast_to(v, (4, 5)), v.broadcast_to(3, 5), z.broadcast_to((2,))
torch.fill(x, 2), torch.fill(i, 2.5), torch.fill(x, z)
x.to(torch.int64), x.to('cpu'), x.to(i), x.to(torch.float32, copy=True), x.to(torch.float32, False, True), x.to(dtype=torch.float64), x.to('cpu', torch.float64)
x.type(torch.float64), x.type_as(i)
x.clone(), x.clone(memory_format=torch.contiguous_format), x.t().contiguous(), x.contiguous(memory_format=torch.contiguous_format), x.t().clone()
F.logsigmoid(x), F.softsign(x), F.tanhshrink(x), F.hardshrink(x), F.hardshrink(x, 1), F.threshold(x, 0.1, 20), F.mish(x), F.glu(x[:, :4]), F.cosine_similarity(x, x + 1), F.cosine_similarity(v, v, dim=0), F.cosine_similarity(x, x[:1])
F.glu(x)
F.mse_loss(x, x + 1), F.l1_loss(x, x * 2), F.mse_loss(x, x + 1, reduction='sum'), F.mse_loss(x, x, reduction='none')
F.mse_loss(x, i)
F.mse_loss(x, x[:1])
F.hardshrink(i)
torch.eq(input=x, other=x), torch.atan2(x, other=x), torch.maximum(x, other=x)
torch.sigmoid_(x), x
x.relu_(), x.exp_(), x.bitwise_left_shift_(1)
i.bitwise_left_shift_(1), i
x.fill_(2), x.fill_(z), i.fill_(2.5)
x.fill_(v)
x.zero_(), x.copy_(v), x.copy_(i), i.copy_(x * 3.7)
x.clamp_(0, 1), x.clamp_(min=z), i.clamp_(2.5)
i.add_(2.5)
i.add_(1, alpha=2), i.mul_(2), i.sub_(i), i.div_(2)
i.pow_(2), x.pow_(2), x.pow_(i)
x.masked_fill_(b, 0), i.masked_fill_(b, 2.5)
x.add_(x.double()), x.mul_(True), x.sub_(v), b.add_(b), b.mul_(b)
v.add_(x)
x.lerp_(x, 0.3), x.addcmul_(x, x, value=2)
x.size(0), x.size(), x.numel(), x.dim(), x.size(-3)
x.item()
z.item(), x[0, 0].item(), i[0, 0].item(), b[0, 0].item(), len(x)
x.sum().item() > 0, float(z), int(z), bool(z)
torch.round(x * 3), torch.round(x, decimals=2), x.round(decimals=0), torch.round(i)
torch.sign(x * float('nan')), torch.sign(b), torch.abs(b), torch.floor(i), torch.ceil(b)
torch.floor(b)
torch.square(b), torch.square(i), torch.rsqrt(i), torch.reciprocal(i + 1), torch.reciprocal(b)
torch.logical_not(x), torch.logical_and(x, i), torch.bitwise_not(b), torch.bitwise_and(i, 3), torch.bitwise_and(b, True), torch.bitwise_or(i, b)
torch.bitwise_and(x, x)
i << 2, i >> 1, 1 << i, b << 1
x << 1
i & 3, b | True, i ^ b
x == 2, x != i, b < i, i >= 2.5, b == True, x == None
torch.outer(v, v), torch.outer(v, i[0])
torch.outer(x, v)
torch.stack([x, x], -1), torch.stack([x, i]), torch.stack((z, z)), torch.stack([])
torch.cat([x, i]), torch.cat([x, x], -1), torch.cat([b, i]), torch.cat([x, torch.empty(0)])
torch.cat([z, z])
torch.cat([x, v])
torch.special.expit(x), torch.special.logit(x.sigmoid()), torch.special.softmax(x, 1)
torch.isnan(x), torch.isinf(i), torch.isfinite(b), torch.isnan(b)
torch.mean(x, dtype=torch.float64), torch.sum(x, 0, dtype=torch.int64), torch.sum(i, dtype=torch.float32), torch.prod(x, 0, dtype=torch.float64), torch.prod(i, 1, True)
x.mean((0, 1)), x.mean(-1, True), x.sum((0, -1)), x.sum([1]), x.amax((0,1)), x.amin(-1, True), x.amax(())
x.sum((0, 0))
x.mean(dim=None), x.std(dim=None), x.logsumexp((0, 1)), x.log_softmax(-1, dtype=torch.float64)
torch.transpose(x, -1, 0), torch.permute(x, (1, 0)), x.permute(1, 0), x.permute([1, 0]), x.swapaxes(0, 1)
x.permute(0)
x.permute(0, 0)
x.unsqueeze(-1), x.unsqueeze(2), x.unsqueeze(-3)
x.unsqueeze(3)
x.squeeze(0), x[:1].squeeze(0), x[None].squeeze((0, 1)), x[None, :, None].squeeze()
x[i % 4], x[:, i[0]], x[b], x[..., 0], x[None, 0], x[0][None], x[-1, ::2], x[1:3, None], x[True], x[i[0, :2], i[1, :2] - 5]
x[5]
x[0, 0, 0]
x[::-1]
x[i]
x[[0, 1]], x[(0, 1)], x[torch.tensor([True, False, True, False])], x[z.long()]
x[-i[0, 1:4]]
F.dropout(x, 0.5, False), F.dropout(x, 0.0)
F.hardtanh(x, 0.5, -0.5)
F.celu(x), F.celu(x, 0.5), F.selu(x), torch.selu(x), F.softmin(x, 1), F.celu(x * float('nan'))
F.celu(x, 0.0)
F.selu(i)
torch.linalg.matmul(x, x.t()), torch.linalg.norm(x), torch.linalg.norm(x, dim=1, keepdim=True), torch.linalg.norm(v, 1)
torch.tensor(2.5), torch.tensor(3), torch.tensor(True), torch.tensor(2, dtype=torch.float32), torch.tensor([1, 2]) + i[0, :2], torch.tensor(2.7, dtype=torch.int64)
torch.as_tensor(2.5), torch.as_tensor(x, dtype=torch.float64), torch.as_tensor([1.0, 2.0]), torch.as_tensor(i)
torch.tensor(2, requires_grad=True)
torch.tensor(2.5, requires_grad=True), x * torch.tensor(2.0), i * torch.tensor(2.0), i * torch.tensor(2.0, dtype=torch.float64)
torch.tensor(x), torch.tensor(float('inf')), torch.tensor(2**40), torch.tensor(2**70)
x.type(torch.int64), x.type('torch.DoubleTensor'), x.type()
x.lerp_(x + 1, 0.3), x.addcmul_(x, v, value=2), x.tril_(), x.triu_(-1), x.clamp_min_(0), x.clamp_max_(1)
x.lerp_(x, x), i.clamp_max_(3), i.tril_(1), i.addcmul_(i, i)
i.lerp_(i, 0.5)
x.clamp_min_(v), x.clamp_max_(z)
x.byte(), x.char(), x.half(), x.bfloat16(), x.int(), x.short()
torch.empty(2, 3).shape, torch.empty_like(x).shape, x.new_empty(2).dtype, x.new_empty((2, 3)).shape
torch.acos(x), x.asin(), torch.arctan(x), torch.acosh(x + 3), torch.asinh(x * 1e12), torch.arctanh(x), x.cosh(), x.sinh()
torch.erfc(x * 4), torch.erfinv(x), torch.lgamma(x * 3), torch.digamma(x * 3), torch.i0(x * 30), torch.special.gammaln(x)
i.acos(), i.atan(), i.lgamma(), i.digamma(), b.cosh(), b.i0(), i.erfc(), i.erfinv()
torch.tensor([0.0, -0.0, -1.0, -2.0, 1e30, float("inf"), -float("inf"), float("nan")]).lgamma()
torch.tensor([0.0, -0.0, -1.0, -2.0, 1e30, float("inf"), -float("inf"), float("nan")]).digamma()
torch.tensor([-1.0, 1.0, 1.5, -2.0, float("nan"), 0.999999]).erfinv()
torch.copysign(x, -0.0), torch.copysign(x, v), torch.copysign(i, -1), torch.copysign(b, x)
torch.hypot(x, v), torch.hypot(x * 1e30, x * 1e30), torch.hypot(x * float("inf"), x)
torch.hypot(i, i)
torch.hypot(x, x.double())
x.clone().acos_(), x.clone().copysign_(-v), x.clone().hypot_(v), x.clone().lgamma_()
i.clone().acos_()
torch.angle(x), torch.angle(i - 5), torch.angle(b), torch.isreal(x), torch.isreal(i)
torch.float_power(x, 2), torch.float_power(2, x), torch.float_power(i, v)
torch.equal(x, x + 0), torch.equal(x, v), torch.equal(x, x * 2), torch.equal(i, i)
torch.equal(x, i)
torch.isin(i, torch.tensor([1, 7])), torch.isin(i, torch.tensor([1, 7]), invert=True), torch.isin(x, x[0])
torch.isin(i, 3), torch.isin(i, torch.arange(100))
torch.mvlgamma(x.abs() + 3, 2), torch.mvlgamma(i + 3, 3)
torch.logaddexp2(x, v), torch.logaddexp2(x / 0, x / 0)
torch.gradient(x), torch.gradient(x, dim=1), torch.gradient(x, spacing=0.5, edge_order=2), torch.gradient(v, dim=(0,))
torch.gradient(x, dim=(1, 1))
torch.gradient(x, spacing=(v[:4], v))
torch.clamp_min(b, b), torch.clamp_max(x, v), torch.clamp_min(x, 0.5), torch.clamp_max(i, 3)
x.double(memory_format=torch.contiguous_format), x.reshape(2, 2, 5, 1).expand(2, 2, 5, 3).half(memory_format=torch.channels_last).stride()
x.to(torch.float64).float(memory_format=torch.preserve_format), x.t().float(memory_format=torch.contiguous_format).is_contiguous()
torch.diag(v), torch.diag(x), torch.diag(x, 1), torch.diag(v, -2), torch.diag(i, 4), torch.diagflat(x), torch.diagflat(v, 2)
torch.diag(x[None])
torch.diag_embed(x), torch.diag_embed(x, 2), torch.diag_embed(x, -1, 0, 2), torch.diag_embed(b, 1, 2, 0), torch.diag_embed(i)
torch.diag_embed(x, 0, 1, 1)
torch.diagonal(x), x.diagonal(2), x.diagonal(-3), x.diagonal(9), x[None].diagonal(0, 1, 2), torch.linalg.diagonal(x[None], offset=1)
x.diagonal(0, 1, 1)
x.diagonal(0, 2, 1)
torch.diagonal_copy(x), torch.diagonal_scatter(x, v[:4]), torch.diagonal_scatter(x, v[:4] * 2, 1)
torch.diagonal_scatter(x, v)
torch.block_diag(x, v, z), torch.block_diag(x), torch.block_diag(x, i)
torch.block_diag(x[None])
torch.kron(x, v), torch.kron(v, x), torch.kron(x[None], i), torch.kron(z, x), torch.kron(b, b)
torch.cross(x[:, :3], x[:, 1:4], dim=1), torch.linalg.cross(x[:, :3], x[:1, :3]), torch.cross(x[:, :3], x[:, :3]), torch.cross(x[:3], x[1:])
torch.linalg.cross(x, x)
torch.linalg.matrix_power(x[:, :4], 0), torch.matrix_power(x[:, :4], 1), torch.linalg.matrix_power(x[None, :, :4], 5)
torch.linalg.matrix_power(x, 2)
torch.linalg.multi_dot([x, x.t()]), torch.linalg.multi_dot([v, x.t()]), torch.linalg.multi_dot([x, x.t(), x])
torch.linalg.vander(v), torch.linalg.vander(x, N=3), torch.linalg.vander(i[0], N=4), torch.linalg.vander(z, N=3)
torch.linalg.vander(v, N=0)
torch.linalg.norm(v, 3), torch.linalg.norm(v, -1.5), torch.linalg.norm(x, 1), torch.linalg.norm(x, float("inf"), (1, 0)), torch.linalg.norm(x, -1)
torch.linalg.norm(x, "fro"), torch.linalg.norm(x, dim=1), torch.linalg.norm(x[None], keepdim=True), torch.linalg.norm(x, 2, 1)
torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x[None], 1, keepdim=True), torch.linalg.matrix_norm(x, -float("inf")), torch.linalg.matrix_norm(x, 2)
torch.linalg.matrix_norm(v)
torch.dist(x, v), torch.dist(x, x, 3), torch.dist(x, v, 0), torch.dist(x, v, float("inf"))
torch.cdist(x, x[:2]), torch.cdist(x, x, 1), torch.cdist(x[None], x, 3.0), torch.cdist(x, x, 0.0), torch.cdist(x, x, float("inf"))
torch.cdist(x, x[:, :4])
torch.cov(x), torch.cov(v), torch.cov(x, correction=0), torch.cov(x, aweights=v.abs()), torch.cov(i), torch.cov(x[:1]), torch.cov(x, correction=9)
torch.cov(x, aweights=v), torch.cov(x[None])
torch.cov(x, fweights=torch.arange(5)), torch.cov(x, fweights=torch.arange(5), aweights=v.abs()), torch.cov(x, correction=2, aweights=v.abs())
torch.cov(x, fweights=torch.arange(4))
torch.cov(x, fweights=v)
torch.atleast_1d(x, z), torch.atleast_2d((v, z)), torch.atleast_3d([x]), torch.atleast_2d(v)
torch.add(b, b, alpha=True), torch.add(b, b, alpha=False), torch.sub(x, x, alpha=True)
torch.arange(0.5, 3), torch.arange(3.0), torch.arange(1, 0, -0.25), torch.arange(0, 1, 0.1, dtype=torch.float64), torch.arange(2.5, dtype=torch.int64)
torch.arange(0, 1, -0.5)
torch.einsum("ii->i", x[:, :4]), torch.einsum("ii", x[:, :4]), torch.einsum("...j,j->...", x[None], v), torch.einsum("b...i,...ij->b...j", x[None, None], x.t()[None])
torch.einsum("...", x), torch.einsum("i...->...", x), torch.einsum("...ii->...i", x[None, :, :4]), torch.einsum("iji->j", x.reshape(4, 5, 1)[:1].expand(4, 5, 4))
torch.einsum("ii->i", x)
torch.gradient(x, spacing=(0.5, 2)), torch.gradient(x, spacing=[2.0], dim=[1])
torch.gradient(x, spacing=(0.5,))
torch.corrcoef(x), torch.corrcoef(v), torch.corrcoef(i), torch.corrcoef(x[:1])
torch.diff(x, 2), torch.diff(x, 0), torch.diff(x, 0, prepend=x), torch.diff(b), torch.diff(x, prepend=x[:, :1]), torch.diff(x, dim=0, append=x), torch.diff(v, 7)
torch.div(i, i - 50, rounding_mode="trunc"), torch.div(i - 9, 4, rounding_mode="trunc"), torch.div(i, 2.5, rounding_mode="trunc")
torch.div(i, i, rounding_mode="trunc")
torch.div(b, b, rounding_mode="trunc")
torch.heaviside(i - 4, i), torch.heaviside(b, b), torch.heaviside(x, z)
torch.isclose(i, i + 1, rtol=0.5), torch.isclose(b, b), torch.isclose(i, i, equal_nan=True), torch.isneginf(i), torch.isposinf(b)
torch.logit(i), torch.logit(x.sigmoid(), 0.2), torch.logit(x, 0.2), torch.logit(b), torch.logit(x.sigmoid(), 0.7)
x.chunk(3, 1), x.chunk(2, 1), x.chunk(3), x.chunk(9), v.chunk(1), torch.hsplit(x, (1, 3)), torch.vsplit(x, [2]), torch.hsplit(x, (3, 1))
torch.hsplit(x, 2)
torch.flip(x, dims=(0,)), x.flip(dims=(0, 1)), x.permute(dims=(1, 0)), torch.permute(x, dims=(1, 0)), torch.zeros(size=(2, 3)), x.repeat(repeats=(2, 1))
torch.meshgrid(v, z, indexing="xy"), torch.meshgrid(v, v[:3], v[:2], indexing="xy"), torch.meshgrid(z, indexing="ij")
torch.cartesian_prod(v, v[:2]), torch.cartesian_prod(v), torch.cartesian_prod(i[0], i[1], i[2])
torch.cartesian_prod(v, x)
torch.broadcast_tensors(x, v, z), torch.broadcast_tensors(x[:, :1], v, i[None]), torch.broadcast_tensors(v)
torch.broadcast_tensors(x, v[:4])
torch.constant_pad_nd(x, (1, -2), 3), torch.constant_pad_nd(b, (1, 2, 0, 1), True), torch.constant_pad_nd(i, (1, 1))
torch.index_select(z, 0, torch.tensor([0])), torch.index_select(x, 1, torch.tensor(3)), torch.inner(z, x), torch.inner(x, z)
torch.index_select(z, 0, torch.tensor([0, 0]))
torch.linspace(0, 1, 7), torch.linspace(3, -2, 6, dtype=torch.int64), torch.linspace(z, 9, 4), torch.linspace(1, 2, 1), torch.linspace(1, 2, 0)
torch.linspace(0, 1, -1)
torch.logspace(0, 2, 5), torch.logspace(-1, 1, 4, 2.0), torch.logspace(0, 3, 4, dtype=torch.int64), torch.logspace(1, 2, 1, base=3)
torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride(), torch.empty_permuted((2,), (0,)).shape
torch.empty_permuted((2, 3), (0, 0))
torch.max(z, 0), torch.min(z, -1, keepdim=True), torch.max(b, 1), torch.min(b, 0, True)
torch.addr(b, b[:, 0], b[0]), torch.addr(x, v[:4], v, beta=0.5, alpha=2), torch.addr(i, i[:, 0], i[0], beta=3), torch.addbmm(i, i[None], i[None, :, :1], alpha=0.5)
torch.addmv(i[:, 0], i, i[0], beta=2.5, alpha=1), torch.addmv(v[:4], x, v, beta=0)
x.H, x[None].mH, x.mT, z.shape, b.H
x[None].H
torch.masked.sum(x, 1, mask=b), torch.masked.sum(i, mask=b), torch.masked.sum(b), torch.masked.prod(x, 0, mask=b), torch.masked.sum(x, mask=b[:1])
torch.masked.amax(x, 1, mask=b), torch.masked.amin(i, 0, mask=b), torch.masked.argmax(x, 1, mask=b), torch.masked.argmin(i, 0, mask=b, keepdim=True)
torch.masked.mean(x, 1, mask=b), torch.masked.mean(x, 1, mask=b & False), torch.masked.mean(x), torch.masked.median(x, 1, mask=b)
torch.masked.var(x, 1, mask=b), torch.masked.std(x, 0, unbiased=False, mask=b), torch.masked.var(i, 1), torch.masked.std(x, 1, correction=2.5, mask=b, keepdim=True)
torch.masked.norm(x, 2.0, 1, mask=b), torch.masked.norm(x, float("-inf"), 1, mask=b), torch.masked.logsumexp(x, 1, mask=b), torch.masked.logsumexp(i, 1)
torch.masked.softmax(x, 1, mask=b), torch.masked.log_softmax(x, 1, mask=b), torch.masked.softmin(x, 1), torch.masked.softmax(x, 1, mask=b & False)
torch.masked.cumsum(x, 1, mask=b), torch.masked.cumprod(x, 1, mask=b), torch.masked.logaddexp(x, x * 2, input_mask=b)
torch.masked.sum(x, 5)
torch.masked.sum(x, mask=i)
torch.gcd(i, i - 8), torch.lcm(i, i.t().reshape(4, 5)), torch.gcd(i, 6), torch.frexp(x * 100), torch.frexp(x / 0), torch.frexp(x.t())[1].stride()
torch.gcd(x, x)
torch.igamma(x.abs() * 9, v.abs() * 9), torch.igammac(x.abs() * 9, v.abs() * 9), torch.special.gammainc(x.abs() * 9, v.abs())
torch.igamma(torch.tensor([0.0, 0.0, 1.0, -1.0, float("inf"), 2.0]), torch.tensor([0.0, 1.0, 0.0, 1.0, 3.0, float("inf")]))
torch.igamma(i, i)
torch.combinations(v), torch.combinations(v, 3), torch.combinations(i[0], with_replacement=True), torch.combinations(v, 1)
torch.combinations(x)
torch.kthvalue(x, 2), torch.kthvalue(x, 1, 0, True), x.kthvalue(5)
torch.kthvalue(x, 6)
torch.masked_scatter(x, b, x.t()), torch.masked_scatter(v, b, x), x.masked_scatter(b[0], i.float()), x.masked_scatter(b & False, v), z.masked_scatter(z > 0, v)
x.masked_scatter(b, v[:1])
x.masked_scatter(b, i)
torch.logit(x.sigmoid(), z.item() / 10), torch.logspace(0, 2, 4, z.item()), torch.cdist(x, x, z.item()), torch.linalg.vector_norm(x, z.item(), 1)
torch.linalg.vector_norm(x, -z.item(), 1), torch.linalg.vector_norm(x, z.item() - 2.5), torch.logit(x, -z.item()), torch.logit(x.sigmoid(), z.item())
torch.fft.fftshift(x), torch.fft.ifftshift(x), torch.fft.fftshift(v, 0), torch.fft.ifftshift(i[:3], (0,))
torch.mode(i % 3, 0).values, torch.mode(i % 4, 1, True).values, torch.mode(z), torch.mode(b, 1).values, torch.mode(x)
torch.mode(e, 0)
torch.logcumsumexp(x * 50, 1), torch.logcumsumexp(x, 0), z.logcumsumexp(0), torch.logcumsumexp(torch.where(b, float("-inf"), x), 1), torch.logcumsumexp(torch.where(b, float("nan"), x), 1)
torch.logcumsumexp(i, 1)
torch.masked_select(x, b[0]), torch.masked_select(v, b), torch.masked_select(z, z > 0), torch.masked_select(x[:, :1], b)
torch.masked_select(x, i)
torch.index_add(z, 0, torch.tensor([0]), z, alpha=3), torch.index_copy(z, 0, torch.tensor([0]), z * 2), torch.index_fill(z, 0, torch.tensor([0]), 7.0)
torch.index_fill(x, 1, torch.tensor([0, 2]), z), torch.index_fill(i, 0, torch.tensor([1]), i[0, 3]), x.clone().index_fill_(0, torch.tensor([3]), z)
torch.index_fill(x, 1, torch.tensor([0]), v)
torch.index_reduce(z, 0, torch.tensor([0]), z * 2, "amax", include_self=False), torch.index_fill(z, 0, torch.tensor([0]), z * 2)
torch.median(x), torch.median(x, 1), x.median(0, True), torch.median(i), torch.median(i, 1), torch.nanmedian(x, 0), z.median(0), torch.median(x * float("nan"))
torch.where(x > 1, float("nan"), x).median(1).values, torch.where(x > 1, float("nan"), x).nanmedian(1), torch.where(b, float("nan"), x).nanmedian()
torch.median(x.double(), -1, keepdim=True), z.nanmedian()
torch.median(e, 0)
torch.median(e)
torch.median(b)
torch.masked.median(x, 1, mask=b), torch.masked.median(x, 0, keepdim=True), torch.masked.median(x, 1, mask=b & False)
torch.add(x, v, alpha=z.item()), torch.sub(x, v, alpha=x.shape[0]), torch.add(i, i, alpha=i.shape[1]), torch.add(x, x.double(), alpha=z.item())
torch.addcmul(x, x, v, value=z.item()), torch.addcdiv(x, x, v, value=z.item()), torch.addmm(x[:, :4], x, x.t(), beta=z.item(), alpha=z.item())
F.pad(x, (1, 2), value=z.item()), F.pad(i, (1, 2), value=z.item()), torch.isclose(x, v, z.item(), z.item()), torch.gradient(x, spacing=z.item())
torch.baddbmm(x[None, :, :4], x[None], x.t()[None], beta=z.item()), torch.isclose(x, v, rtol=-z.item())
torch.cumulative_trapezoid(x), torch.cumulative_trapezoid(x, dx=0.5, dim=0), torch.cumulative_trapezoid(x, x * 2), torch.msort(x), torch.argwhere(b)
"""


def arguments():
    generator = torch.Generator().manual_seed(0)
    x, v = torch.randn(4, 5, generator=generator), torch.randn(5, generator=generator)
    return x, torch.arange(20).reshape(4, 5), x > 0, v, torch.tensor(2.5), torch.empty(0, 3)


def outcome(function):
    try:
        return "returned", function(*arguments())
    except Exception as error:
        return "raised", error


def alike(got, wanted):
    if isinstance(wanted, torch.Tensor):
        if not isinstance(got, torch.Tensor) or (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
            return False
        return torch.allclose(got.double(), wanted.double(), 1e-5, 1e-6, equal_nan=True) and got.requires_grad == wanted.requires_grad
    if isinstance(wanted, (tuple, list)):
        return type(got) is type(wanted) and len(got) == len(wanted) and all(map(alike, got, wanted))
    return type(got) is type(wanted) and repr(got) == repr(wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_call_is_eagers(call):
    function = eval(f"lambda x, i, b, v, z, e: ({call})", {"torch": torch, "F": torch.nn.functional})
    wanted, got = outcome(function), outcome(flexor.jit(function, fallback="silent"))
    assert got[0] == wanted[0], (got, wanted)
    assert isinstance(got[1], type(wanted[1])) if wanted[0] == "raised" else alike(got[1], wanted[1]), (got, wanted)


def native(function, *given):
    jitted = flexor.jit(function, fallback="raise")
    result = jitted(*given)
    assert not jitted.stats()["foreign_calls"]
    return result


def test_composed_calls_are_native():
    x, i, b, v, z, e = arguments()
    functional = torch.nn.functional
    for function in (
        lambda x, v: torch.einsum("ij,j->i", x, v),
        lambda x, v: torch.baddbmm(x[None, :, :4], x[None], x.t()[None], beta=0.5),
        lambda x, v: functional.cosine_similarity(x, x + v),
        lambda x, v: torch.linalg.vector_norm(x, dim=-1, keepdim=True),
        lambda x, v: torch.hstack([x, x]).repeat_interleave(2, dim=0),
        lambda x, v: torch.allclose(x, x + v),
        lambda x, v: functional.mse_loss(x, x * 2),
        lambda x, v: torch.meshgrid(v, v, indexing="ij"),
        lambda x, v: functional.interpolate(x[None, None], size=(7, 3)),
        lambda x, v: functional.interpolate(x[None], size=len(v) * 2),
        lambda x, v: functional.batch_norm(x, None, None, v, v, training=True),
        lambda x, v: torch.masked.softmax(x, 1, mask=x > 0),
        lambda x, v: torch.masked.var(x, 1, mask=x > 0),
        lambda x, v: torch.diagonal_scatter(torch.diag_embed(v), v * 2),
        lambda x, v: torch.block_diag(x, v, x.chunk(3, 1)[2]),
        lambda x, v: torch.linalg.matrix_power(torch.corrcoef(x), 3),
        lambda x, v: torch.cdist(x, torch.linspace(0, 1, 5)[None]),
        lambda x, v: torch.gradient(torch.lgamma(x), dim=1),
        lambda x, v: torch.cross(x[:, :3], x[:, 2:]),
        lambda x, v: torch.isin(x, v) | torch.equal(x, x),
    ):
        assert alike(native(function, x, v), function(x, v))


def test_axis_that_is_an_argument_is_known_value_by_value():
    x = arguments()[0]
    jitted = flexor.jit(lambda x, dim, keepdim: x.softmax(dim).sum(dim, keepdim), fallback="raise")
    for dim in (0, 1, -1, 0):
        for keepdim in (False, True):
            torch.testing.assert_close(jitted(x, dim, keepdim), x.softmax(dim).sum(dim, keepdim))
    assert not jitted.stats()["foreign_calls"]
    assert jitted.stats()["translations"] == 6


def test_results_without_tensors_among_arguments_are_torchs():
    jitted = flexor.jit(lambda n: torch.arange(n) * 2)
    for n in (0, 3, 5):
        assert torch.equal(jitted(n), torch.arange(n) * 2)
    with pytest.raises(RuntimeError):
        jitted(-1)


def test_attribute_of_another_kind_is_left_to_torch():
    x = arguments()[0]
    jitted = flexor.jit(lambda x, alpha: torch.add(x > 0, x > 1, alpha=alpha))
    assert torch.equal(jitted(x, True), torch.add(x > 0, x > 1, alpha=True))


@pytest.mark.parametrize("name, given", [("unsqueeze_", (0,)), ("t_", ()), ("transpose_", (0, 1)), ("squeeze_", ()), ("resize_", (2, 2))])
def test_methods_that_change_the_shape_of_their_tensor_are_eagers(name, given):
    def function(x, given):
        y = x * 2
        return getattr(y, name)(*given), y.sum(0)

    jitted = flexor.jit(function, fallback="silent")
    for _ in range(2):
        assert alike(jitted(arguments()[0], given), function(arguments()[0], given))


def test_random_numbers_and_new_tensors_are_made_in_every_call():
    torch.manual_seed(0)
    drawn = flexor.jit(lambda x: x + torch.randn(5))
    x = torch.zeros(5)
    assert not torch.equal(drawn(x), drawn(x))
    made = flexor.jit(lambda n: torch.linspace(0, 1, 3))
    made(1).add_(1)
    assert torch.equal(made(1), torch.linspace(0, 1, 3))


def test_what_is_given_as_out_is_written():
    def function(x, y):
        torch.logaddexp2(x, x, out=y)
        return y + 1

    x, y, z = arguments()[0], torch.zeros(4, 5), torch.zeros(4, 5)
    assert alike(flexor.jit(function)(x, y), function(x, z)) and torch.equal(y, z)
