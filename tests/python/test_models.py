"""The models of bench and demo against torch: every length with one compilation."""

import importlib.metadata
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from bench import models, onnx_models, programs, torch_models, weights  # noqa: E402
from oracle import judge  # noqa: E402

SMALL = weights.EncoderConfig(dim=48, heads=4, ffn=96)

pytestmark = pytest.mark.slow


def has_minilm():
    try:
        return bool(weights.minilm_files())
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize("layers", (1, 3))
def test_encoder_at_every_length(layers):
    module, session = models.encoder(layers, SMALL), flexor.Session()
    model = torch_models.encoder(layers, SMALL)
    exact = torch_models.encoder(layers, SMALL).double()
    with torch.no_grad():
        for batch, length in ((1, 1), (2, 33), (2, 16), (3, 2), (1, 17), (8, 15), (0, 5), (2, 100), (1, 129)):
            x = torch.randn(batch, length, SMALL.dim)
            judge(session.run(module, x), model(x), exact(x.double()), ulps=64)
    assert session.stats()["compilations"] <= 2


@pytest.mark.parametrize(
    ("make", "eager", "count"),
    [
        (models.add_relu_sum, torch_models.add_relu_sum, 2),
        (models.relu_sum, torch_models.relu_sum, 1),
        (models.chain, torch_models.chain(), 1),
    ],
    ids=("add_relu_sum", "relu_sum", "chain"),
)
@pytest.mark.quick
def test_streaming_programs(make, eager, count):
    module, session = make(), flexor.Session()
    if make is models.chain:
        w = {name: torch.from_numpy(a).double() for name, a in weights.chain_weights().items()}

        def truth(x):
            y = torch.nn.functional.layer_norm(x, (x.shape[-1],), w["g"], w["b"], 1e-5)
            return torch.softmax(torch.nn.functional.gelu(y) + x, -1)
    else:
        truth = eager
    for length in (0, 1, 2, 15, 16, 17, 33, 129):
        inputs = [torch.randn(2, length, 768) for _ in range(count)]
        judge(session.run(module, *inputs), eager(*inputs), truth(*(t.double() for t in inputs)), ulps=16)
    assert session.stats()["compilations"] == 1


@pytest.mark.slow
@pytest.mark.skipif(not has_minilm(), reason="the MiniLM package is not installed")
def test_minilm_from_a_file(tmp_path):
    """Saved, loaded, and equal to torch at every length; padded batches are not needed."""
    path = str(tmp_path / "minilm.flx")
    models.minilm(weights.minilm_weights(), weights.minilm_config()).save(path)
    module, session, model = flexor.load(path), flexor.Session(), torch_models.minilm()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for batch, length in ((1, 3), (1, 12), (2, 64), (1, 129), (1, 512)):
            ids = rng.integers(1000, 30000, (batch, length))
            ours, theirs = session.run(module, ids), model(torch.from_numpy(ids)).numpy()
            assert ours.dtype == np.float32
            assert ours.shape == (batch, 384)
            cosine = (ours.astype(np.float64) * theirs).sum(-1)
            assert cosine.min() >= 0.99999
    assert session.stats()["compilations"] <= 2


@pytest.mark.parametrize("program", ("add_relu_sum", "relu_sum", "chain", "encoder"))
def test_rivals_run_the_same_program(program):
    """The ONNX graphs that ONNX Runtime is timed with compute what torch computes."""
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is a rival")
    inputs = programs.inputs(program, {"S": 5, "B": 1})
    model = getattr(torch_models, program)
    eager = model if program.endswith("sum") else model()
    with torch.no_grad():
        expected = eager(*(torch.from_numpy(x) for x in inputs)).numpy()
    graphs = [getattr(onnx_models, program)()]
    if program == "encoder":
        graphs.append(onnx_models.encoder(fused_attention=True))
    for graph in graphs:
        session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
        (result,) = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs)})
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)
