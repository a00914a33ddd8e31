"""torch's own encoder, unchanged, on sentences of every length: one translation, parameters live."""

import torch

import flexor

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu")
model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
fast = flexor.jit(model)
with torch.no_grad():
    for length in (7, 33, 12, 100):
        x = torch.randn(2, length, 64)
        assert torch.allclose(fast(x), model(x), atol=1e-4)
    model.layers[0].linear1.weight.mul_(0.5)  # seen by the next call
    assert torch.allclose(fast(x), model(x), atol=1e-4)
assert isinstance(fast, torch.nn.TransformerEncoder)
print(fast.stats()["translations"], "translation,", f"{flexor.stats()['hit_rate']:.0%} of look-ups hit")
