"""Loops and branches on values, as people write them in PyTorch: functions of tensors, the same for every engine."""

import numpy as np
import torch


def newton(x):
    y = torch.ones_like(x)
    for _ in range(50):
        following = 0.5 * (y + x / y)
        if (following - y).abs().max() < 1e-6:
            return following
        y = following
    return y


def lstm(x, h, c, w_input, w_hidden, bias):
    out = []
    for t in range(x.shape[1]):
        gates = x[:, t] @ w_input + h @ w_hidden + bias
        i, f, o, g = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        out.append(h)
    return torch.stack(out, 1)


def nms(boxes, scores):
    order = scores.argsort(descending=True)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        rest = order[1:]
        x1, y1 = torch.maximum(boxes[i, 0], boxes[rest, 0]), torch.maximum(boxes[i, 1], boxes[rest, 1])
        x2, y2 = torch.minimum(boxes[i, 2], boxes[rest, 2]), torch.minimum(boxes[i, 3], boxes[rest, 3])
        shared = (x2 - x1).clamp(min=0) * (y2 - y1).clamp(min=0)
        order = rest[shared / (area[i] + area[rest] - shared) <= 0.5]
    return torch.stack(keep)


def nms_mask(boxes, scores):
    order = scores.argsort(descending=True)
    boxes = boxes[order]
    x1, y1, x2, y2 = boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]
    area = (x2 - x1) * (y2 - y1)
    alive = torch.ones_like(area, dtype=torch.bool)
    keep = torch.zeros_like(alive)
    for j in range(boxes.shape[0]):
        if alive[j]:
            keep[j] = True
            width = (torch.minimum(x2[j], x2) - torch.maximum(x1[j], x1)).clamp(min=0)
            shared = width * (torch.minimum(y2[j], y2) - torch.maximum(y1[j], y1)).clamp(min=0)
            alive &= shared / (area[j] + area - shared) <= 0.5
    return order[keep]


def kv_cache(keys, values, token, weight):
    for _ in range(128):
        query = torch.tanh(token @ weight)
        keys = torch.cat([keys, query.unsqueeze(1)], 1)
        values = torch.cat([values, 0.5 * query.unsqueeze(1)], 1)
        attention = torch.softmax(keys @ query.unsqueeze(2), 1)
        token = (attention * values).sum(1)
    return token


def early_exit(x, layers):
    for k in range(layers.shape[0]):
        x = torch.relu(x @ layers[k])
        if x.mean() > 0.5:
            break
    return x


def greedy(table, weight, start):
    token, out = start, []
    for _ in range(40):
        token = (torch.tanh(table[token] @ weight) @ table.t()).argmax(-1)
        out.append(token)
    return torch.stack(out)


def compact(x):
    return x[torch.nonzero(x > 0)[:, 0]].sum()


PROGRAMS = {f.__name__: f for f in (newton, lstm, nms, nms_mask, kv_cache, early_exit, greedy, compact)}


def inputs(program, shape):
    """Arrays of a program; the same shape gives the same values everywhere."""
    n = shape["N"]
    rng = np.random.default_rng(n)

    def normal(*sizes, scale=1.0):
        return (rng.standard_normal(sizes) * scale).astype(np.float32)

    if program == "newton":
        return [rng.uniform(0.5, 1.5, n).astype(np.float32)]
    if program == "lstm":
        return [normal(8, n, 128), normal(8, 256), normal(8, 256), normal(128, 1024, scale=0.05), normal(256, 1024, scale=0.05), normal(1024)]
    if program in ("nms", "nms_mask"):
        corner = rng.uniform(0, 1, (n, 2))
        boxes = np.concatenate([corner, corner + rng.uniform(0.01, 0.3, (n, 2))], 1).astype(np.float32)
        return [boxes, rng.uniform(0, 1, n).astype(np.float32)]
    if program == "kv_cache":
        return [normal(1, n, 64, scale=0.1), normal(1, n, 64), normal(1, 64), normal(64, 64, scale=0.1)]
    if program == "early_exit":
        return [normal(n, 256), np.stack([normal(256, 256, scale=0.07) for _ in range(12)])]
    if program == "greedy":
        return [normal(1000, 64), normal(64, 64, scale=0.1), np.full(n, 3)]
    return [normal(n)]
