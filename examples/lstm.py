"""An LSTM written by hand: one compilation for sequences of every length."""

import torch

import flexor


@flexor.jit
def lstm(x, h, c, w_input, w_hidden, bias):
    out = []
    for t in range(x.shape[1]):
        gates = x[:, t] @ w_input + h @ w_hidden + bias
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        out.append(h)
    return torch.stack(out, 1)


cell = torch.nn.LSTM(16, 32, batch_first=True)
w_input, w_hidden = cell.weight_ih_l0.t().contiguous(), cell.weight_hh_l0.t().contiguous()
bias = cell.bias_ih_l0 + cell.bias_hh_l0
with torch.no_grad():
    for length in (5, 12, 1, 40):
        x = torch.randn(4, length, 16)
        mine = lstm(x, torch.zeros(4, 32), torch.zeros(4, 32), w_input, w_hidden, bias)
        assert torch.allclose(mine, cell(x)[0], atol=1e-5)
print("translations:", lstm.stats()["translations"])
