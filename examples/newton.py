"""Newton's square root of every element, until all have converged: a loop on values inside one program."""

import torch

import flexor


@flexor.jit
def square_root(x):
    y = torch.ones_like(x)
    for _ in range(50):
        following = 0.5 * (y + x / y)
        if (following - y).abs().max() < 1e-6:
            return following
        y = following
    return y


for n in (4, 1000, 17):
    x = torch.rand(n) + 0.5
    assert torch.allclose(square_root(x), x.sqrt(), atol=1e-5)
assert square_root.stats()["translations"] == 1
print(square_root.explain(torch.rand(8) + 0.5).splitlines()[0])
