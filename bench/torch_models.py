"""The same programs in PyTorch: the oracle of tests and demo, and a rival in bench."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .weights import EncoderConfig, chain_weights, encoder_weights, minilm_config, minilm_weights


def _linear(weight, bias):
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data, layer.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
    return layer


def _norm(scale, shift, eps):
    layer = nn.LayerNorm(len(scale), eps)
    layer.weight.data, layer.bias.data = torch.from_numpy(scale), torch.from_numpy(shift)
    return layer


class EncoderLayer(nn.Module):
    """Post-norm encoder layer on x[B, S, D], fused QKV, erf GELU, no mask."""

    def __init__(self, w, config):
        super().__init__()
        self.heads = config.heads
        self.qkv, self.out = _linear(w["wqkv"], w["bqkv"]), _linear(w["wo"], w["bo"])
        self.up, self.down = _linear(w["w1"], w["b1"]), _linear(w["w2"], w["b2"])
        self.norm1, self.norm2 = _norm(w["g1"], w["be1"], config.eps), _norm(w["g2"], w["be2"], config.eps)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, dim)
        y = self.norm1(x + self.out(attended))
        return self.norm2(y + self.down(F.gelu(self.up(y))))


class MiniLM(nn.Module):
    """all-MiniLM-L6-v2 without dropout: ids [B, S] to unit-length embeddings [B, D]."""

    def __init__(self, weights, config):
        super().__init__()
        for name in ("we", "pe", "te"):
            self.register_buffer(name, torch.from_numpy(weights[name]))
        self.norm = _norm(weights["eg"], weights["eb"], config.eps)
        self.layers = nn.ModuleList(EncoderLayer(w, config) for w in weights["layers"])

    def forward(self, ids):
        x = self.norm(self.we[ids] + self.pe[: ids.shape[1]] + self.te)
        for layer in self.layers:
            x = layer(x)
        pooled = x.mean(1)
        return pooled / pooled.norm(dim=-1, keepdim=True)


def add_relu_sum(a, b):
    return (a + b).relu().sum(-1)


def add_relu_sum_three(a, b, c):
    return (a + b + c).relu().sum(-1)


def relu_sum(x):
    return (x + 1.0).relu().sum()


def chain():
    w = {name: torch.from_numpy(array) for name, array in chain_weights().items()}
    return lambda x: torch.softmax(F.gelu(F.layer_norm(x, (x.shape[-1],), w["g"], w["b"], 1e-5)) + x, -1)


def encoder(layers=1, config=EncoderConfig()):
    return nn.Sequential(*(EncoderLayer(encoder_weights(config, seed), config) for seed in range(layers))).eval()


def minilm():
    return MiniLM(minilm_weights(), minilm_config()).eval()
