"""torch.compile(backend="flexor")."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the front end")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

import flexor.torch_backend  # noqa: E402, F401  (registers the name)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(5, 6)
        self.norm = torch.nn.LayerNorm(6)

    def forward(self, x, times=2):
        y = torch.relu(self.norm(self.first(x))) * times
        if y.sum() > 10:  # torch.compile breaks its graph here
            y = y - 1
        return y, x.shape[0]


def test_graphs_of_torch_compile_run_on_the_engine():
    torch.manual_seed(0)
    torch._dynamo.reset()
    net = Net().eval()
    compiled = torch.compile(net, backend="flexor", dynamic=True)
    flexor.default_session().reset_stats()
    with torch.no_grad():
        for rows in (4, 7, 2, 33):
            x = torch.randn(rows, 5)
            want, got = net(x), compiled(x)
            assert torch.allclose(want[0], got[0], atol=1e-5) and got[1] == rows
    assert flexor.stats()["calls"] >= 8  # two graphs, each on every length
