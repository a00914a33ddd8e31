"""What a translation takes: work that grows with the program, and once for what is alike."""

import gc
import math
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")
nn = torch.nn

HIDDEN, HEADS = 32, 4


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.dropout = nn.Dropout(0.1)

    def heads(self, x):
        return x.view(x.size()[:-1] + (HEADS, HIDDEN // HEADS)).permute(0, 2, 1, 3)

    def forward(self, x, mask=None):
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(HIDDEN // HEADS)
        if mask is not None:
            scores = scores + mask
        weights = self.dropout(nn.functional.softmax(scores, dim=-1))
        context = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        return context.view(context.size()[:-2] + (HIDDEN,))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norms = Attention(), nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(2))
        self.wide, self.narrow = nn.Linear(HIDDEN, 2 * HIDDEN), nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, x, mask=None):
        x = self.norms[0](x + self.attention(x, mask))
        return self.norms[1](x + self.narrow(nn.functional.gelu(self.wide(x))))


class Encoder(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


def test_a_deep_encoder_with_a_mask_is_translated_in_time():
    """The sizes behind `scores + mask` are those of one of the two; naming both again in every layer made a tree of 3^12 nodes."""
    model = Encoder(12).eval()
    jitted = flexor.jit(model)
    x, mask = torch.randn(2, 5, HIDDEN), torch.zeros(2, 1, 1, 5)
    began = time.perf_counter()
    assert torch.allclose(jitted(x, mask), model(x, mask), atol=1e-4)
    assert time.perf_counter() - began < 60
    for batch, rows, length in ((3, 3, 7), (1, 1, 1), (3, 1, 4), (2, 2, 16)):
        x, mask = torch.randn(batch, length, HIDDEN), torch.zeros(rows, 1, 1, length)
        mask[..., -1] = -1e4 if length > 1 else 0
        assert torch.allclose(jitted(x, mask), model(x, mask), atol=1e-4)
    stats = jitted.stats()
    assert stats["translations"] == 1 and not stats["fallbacks"] and not stats["foreign_calls"]


def test_sizes_of_a_mask_in_the_place_of_the_batch():
    """A mask of several rows beside a batch of one: the batch takes their number, in the first layer and no more after it."""
    model = Encoder(3).eval()
    jitted = flexor.jit(model)
    for batch, rows in ((1, 3), (3, 1), (3, 3), (1, 1)):
        x, mask = torch.randn(batch, 5, HIDDEN), torch.randn(rows, 1, 1, 5)
        try:
            wanted = model(x, mask)
        except RuntimeError:
            with pytest.raises((RuntimeError, flexor.FlexorError)):
                jitted(x, mask)
            continue
        assert torch.allclose(jitted(x, mask), wanted, atol=1e-4)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_translation_holds_the_collector_and_leaves_it_as_it_was(enabled):

    @flexor.jit
    def scaled(x):
        for i in range(200):
            x = x + i
        return x

    @flexor.jit
    def refused(x):
        return (yield x)

    was = gc.isenabled()
    gc.enable() if enabled else gc.disable()
    began = []
    try:
        gc.callbacks.append(lambda phase, info: began.append(flexor_is_translating()))
        assert torch.equal(scaled(torch.ones(2)), torch.full((2,), 19901.0))
        next(refused(torch.ones(2)))
        assert gc.isenabled() == enabled
    finally:
        gc.callbacks.pop()
        gc.enable() if was else gc.disable()
    assert not any(began)


def flexor_is_translating():
    from flexor import _collector

    return _collector._holders > 0


def test_differences_of_differences():
    """x[1:] and x[:-1] have one size, and parts of parts are parts: the text of the sizes does not grow with their number."""
    jitted = flexor.jit(lambda x: torch.diff(x, n=9, dim=0))
    began = time.perf_counter()
    for rows in (12, 10, 9, 1, 0, 33):
        x = torch.arange(3.0 * rows).reshape(rows, 3) ** 2
        assert torch.allclose(jitted(x), torch.diff(x, n=9, dim=0), atol=1e-2)
    assert time.perf_counter() - began < 30
    assert not jitted.stats()["fallbacks"]
