"""Greedy suppression of overlapping boxes: a while loop whose sizes change with every step."""

import torch

import flexor


@flexor.jit
def suppress(boxes, scores, limit):
    order = scores.argsort(descending=True)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        rest = order[1:]
        low = torch.maximum(boxes[i, :2], boxes[rest, :2])
        high = torch.minimum(boxes[i, 2:], boxes[rest, 2:])
        sides = (high - low).clamp(min=0)
        shared = sides[:, 0] * sides[:, 1]
        order = rest[shared / (area[i] + area[rest] - shared) <= limit]
    return torch.stack(keep)


torch.manual_seed(0)
for n in (100, 10, 1):
    corner = torch.rand(n, 2)
    boxes = torch.cat([corner, corner + 0.1 + 0.2 * torch.rand(n, 2)], 1)
    scores = torch.rand(n)
    kept = suppress(boxes, scores, 0.5)
    assert torch.equal(kept, suppress.__wrapped__(boxes, scores, 0.5))
    print(f"{n} boxes, {len(kept)} kept")
