"""Programs of jitted functions as files: they run without the function, from Python and from the command line."""

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

X = torch.arange(20.0).reshape(4, 5) / 10
SCALE = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(5, 5) for _ in range(2))
        self.register_buffer("shift", torch.ones(5))

    def forward(self, x, limit=10.0):
        for layer in self.layers:
            x = torch.relu(layer(x)) + self.shift
            while x.sum() > limit:
                x = x * 0.5
        return {"last": x, "rows": len(x), "parts": [x.sum(), x]}


def test_a_module_as_a_file(tmp_path):
    module = Net()
    path = tmp_path / "net.flx"
    flexor.jit(module).save(path, X, 10.0)
    loaded = flexor.load(path)
    assert {weight["name"] for weight in loaded.weights()} == {*module.state_dict()}
    assert [argument["name"] for argument in loaded.inputs()] == ["x", "limit"]
    assert loaded.metadata()["result"] == "{'last': out0, 'rows': out1, 'parts': [out2, out3]}"
    for rows, limit in ((4, 10.0), (1, 0.5), (7, 1e9)):
        x = torch.rand(rows, 5)
        want = module(x, limit)
        last, count, total, again = loaded(x, limit)
        assert torch.allclose(last, want["last"], atol=1e-5) and torch.equal(last, again)
        assert count == rows and torch.allclose(total, want["parts"][0], rtol=1e-5)
    module.shift.zero_()
    assert torch.equal(loaded(x, limit)[0], last), "the file has weights of its own"


def test_a_file_runs_on_the_command_line(tmp_path):
    program = shutil.which("flexor") or str(Path(flexor.__file__).parents[2] / "bin" / "flexor")
    if not os.access(program, os.X_OK):
        pytest.skip("the program flexor is not built")

    @flexor.jit
    def f(x, scale):
        return (x * scale + SCALE).relu().sum(-1)

    f.save(tmp_path / "f.flx", X, 2.0)
    np.save(tmp_path / "x.npy", X.numpy())
    done = subprocess.run(
        [program, "run", "f.flx", "x.npy", "2.0", "--output", "out.npy"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert np.allclose(np.load(tmp_path / "out.npy"), f(X, 2.0))


@dataclasses.dataclass
class Pair:
    a: object
    b: object


RESULTS = {
    "an argument": (lambda x: x, "out0"),
    "a number that is known": (lambda x: (x, 3, None), "(out0, out1, None)"),
    "twice the same": (lambda x: [x, x], "[out0, out1]"),
    "sizes": (lambda x: (x.shape, 1.5), "((out0, out1), out2)"),
    "a dataclass": (lambda x: Pair(x + 1, {"k": True}), "Pair(a=out0, b={'k': out1})"),
    "ways of a branch": (lambda x: (x, 0) if x.sum() > 0 else (x * 2, 1), "(out0, out1)"),
}


@pytest.mark.parametrize(("function", "text"), RESULTS.values(), ids=RESULTS)
def test_results_are_spelt(tmp_path, function, text):
    module = flexor.jit(function).save(tmp_path / "f.fasm", X)
    assert module.metadata()["result"] == text
    loaded = flexor.load(tmp_path / "f.fasm")
    for x in (X, -X):
        leaves = []

        def collect(value):
            if dataclasses.is_dataclass(value):
                value = vars(value)
            if isinstance(value, dict):
                value = list(value.values())
            if isinstance(value, (tuple, list)):
                for item in value:
                    collect(item)
            elif value is not None:
                leaves.append(value)

        collect(function(x))
        got = loaded(x)
        got = got if isinstance(got, tuple) else (got,)
        assert len(got) == len(leaves) and all(type(a) is type(b) and np.allclose(a, b) for a, b in zip(got, leaves))


def prints(x):
    print(x.shape)
    return x


def calls_a_library(x):
    return torch.linalg.svdvals(x)


def gives_text(x):
    return x, f"{len(x.shape)} axes"


def gives_two_structures(x):
    return x if x.sum() > 0 else (x, x)


class Writes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x + self.count


async def waits(x):
    return x


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (prints, "a call of Python: print in "),
        (calls_a_library, "svdvals"),
        (gives_text, "a result that is a str"),
        (gives_two_structures, "results of several structures"),
        (Writes(), "a write to the weight count"),
        (waits, "a coroutine"),
    ],
)
def test_what_needs_python_is_refused(tmp_path, target, reason):
    with pytest.raises(flexor.NotSupported, match="E0706") as caught:
        flexor.jit(target).save(tmp_path / "f.flx", X)
    assert reason in str(caught.value) and not (tmp_path / "f.flx").exists()


def test_saving_runs_nothing(tmp_path):
    x = X.clone()

    @flexor.jit(fallback="raise")
    def f(x):
        x += 1
        return x

    f.save(tmp_path / "f.flx", x)
    assert torch.equal(x, X) and f.stats()["calls"] == 0
    assert torch.equal(flexor.load(tmp_path / "f.flx")(x), X + 1) and torch.equal(x, X + 1)


def test_declared_sizes_stand_in_the_file(tmp_path):
    module = flexor.jit(Net(), dims={"x": [flexor.Dim("B", 1, 8), 5]})
    (x,) = module.save(tmp_path / "net.flx", X).inputs()
    assert [(dim["text"], dim["lo"], dim["hi"]) for dim in x["dims"]] == [("B", 1, 8), ("5", 5, 5)]
