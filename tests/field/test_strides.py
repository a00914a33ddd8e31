"""Field cases, strides, layout, alignment: right numbers with wrong strides count as a fault where the caller
can see them."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

import numpy as np  # noqa: E402
from oracle import judge  # noqa: E402
from programs import Program  # noqa: E402


@pytest.mark.parametrize("pitch", (24, 25, 40))
def test_f016_reshape_of_a_strided_view_keeps_the_wide_pitch(pitch):
    """(s, 4, 6) in rows of a wider matrix, to (s, 24): a view with the wide row pitch, and the same plus 0."""
    program = Program(
        [("x", "float32", ["S", 4, 6])], lambda f, x: (x.reshape([x.shape[0], 24]), x.reshape([x.shape[0], 24]) + 0.0)
    )
    for s in (2, 3, 9):
        x = torch.randn(s, pitch)[:, :24].unflatten(1, (4, 6))
        view, copy = program(x)
        assert view.stride() == (pitch, 1)
        assert view.data_ptr() == x.data_ptr()
        assert torch.equal(view, x.reshape(s, 24))
        assert torch.equal(copy, x.reshape(s, 24))


def test_f018_rows_of_an_odd_length_after_flatten():
    """An intermediate of (B, 100401), flattened and summed per row: all rows, not only the first."""

    def body(f, x):
        y = (x * 2.0).relu()
        return y.reshape([-1]).reshape([x.shape[0], x.shape[1]]).sum(axes=[-1]), y

    program = Program([("x", "float32", ["B", "N"])], body)
    for batch in (1, 2, 4):
        x = torch.randn(batch, 100_401)
        total, kept = program(x)
        judge(total, (x * 2).relu().sum(-1), (x.double() * 2).relu().sum(-1))
        assert torch.equal(kept, (x * 2).relu())


def test_f019_a_result_written_into_a_wide_pitch_keeps_it():
    """The caller's output has the wide pitch of the input: written, returned, and its strides are still those."""
    program = Program(
        [("x", "float32", ["N", "M"]), ("out", "float32", ["N", "M"])], lambda f, x, out: f.assign(out, x * 2.0)
    )
    for n in (16, 5):
        x = torch.randn(n, 16)[:, :8]
        host = torch.full((n, 16), 7.0)
        got = program(x, host[:, :8])
        assert got.stride() == (16, 1)
        assert torch.equal(got, x * 2)
        assert torch.equal(host[:, :8], x * 2)
        assert (host[:, 8:] == 7).all()


def test_f022_permuted_input_to_a_convolution_along_the_last_axis():
    """Depthwise, kernel 3, written with shifted slices; the input is a transposed view."""

    def body(f, x, w):
        padded = f.pad(x, before=[0, 0, 1], after=[0, 0, 1])
        length = x.shape[2]
        taps = [f.slice(padded, axis=2, start=i, stop=length + i) * w[:, i : i + 1] for i in range(3)]
        return taps[0] + taps[1] + taps[2]

    program = Program([("x", "float32", ["B", 8, "L"]), ("w", "float32", [8, 3])], body)
    w = torch.randn(8, 3)
    for length in (10, 11, 4):
        x = torch.randn(2, length, 8).transpose(1, 2)
        eager, truth = (
            torch.nn.functional.conv1d(t, v[:, None, :], padding=1, groups=8)
            for t, v in ((x, w), (x.double(), w.double()))
        )
        got = program(x, w)
        judge(got, eager, truth, ulps=8)


def test_f022_permuted_input_to_an_encoder_layer():
    from bench import models, torch_models, weights

    config = weights.EncoderConfig(dim=32, heads=4, ffn=64)
    module, session = models.encoder(1, config), flexor.Session()
    layer = torch_models.encoder(1, config)
    with torch.no_grad():
        for length in (10, 11, 4):
            x = torch.randn(length, 2, 32).transpose(0, 1)
            judge(session.run(module, x), layer(x), layer.double()(x.double()), ulps=64)
            layer.float()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", (torch.float32, torch.float16), ids=str)
def test_f024_data_that_starts_off_alignment(dtype):
    """sin + cos over 262,208 elements: a fresh buffer, then starting 1 and 3 elements later, in one program."""
    name = str(dtype).removeprefix("torch.")
    program = Program([("x", name, ["N"])], lambda f, x: f.sin(x) + f.cos(x))
    buffer = torch.randn(262_208 + 3).to(dtype)
    for start in (0, 1, 3, 0, 2):
        x = buffer[start : start + 262_208]
        judge(program(x), x.sin() + x.cos(), x.double().sin() + x.double().cos())


def test_f026_an_inserted_axis_keeps_an_unusual_layout():
    """Five axes stored with the third innermost; an axis inserted, repeated along, a compact tensor added."""

    def body(f, x, y):
        return f.unsqueeze(x, axis=2).expand([-1, -1, 2, -1, -1, -1]) + y

    program = Program(
        [("x", "float32", ["A", "B", "C", "D", "E"]), ("y", "float32", ["A", "B", 2, "C", "D", "E"])], body
    )
    for a, b, c, d, e in ((2, 6, 3, 4, 5), (1, 2, 17, 3, 1)):
        x = torch.randn(a, b, d, e, c).permute(0, 1, 4, 2, 3)
        y = torch.randn(a, b, 2, c, d, e)
        assert torch.equal(program(x, y), x.unsqueeze(2).expand(-1, -1, 2, -1, -1, -1) + y)


def test_f024_numpy_rows_of_a_packed_record():
    """Misaligned in bytes, not only in vectors: a float32 column of a 5-byte record is read rightly or refused
    by name."""
    records = np.zeros(37, dtype=[("tag", "u1"), ("value", "f4")])
    records["value"] = np.arange(37)
    program = Program([("x", "float32", ["N"])], lambda f, x: x + 1.0)
    try:
        got = program(records["value"])
    except flexor.NotSupported as error:
        assert "stride" in str(error)
    else:
        assert np.array_equal(got, np.arange(37, dtype=np.float32) + 1)


def test_f021_bits_read_after_a_transpose_that_was_made_compact(field):
    def count(x):
        bits = x.t().contiguous().view(torch.uint8)
        return bits, (bits != 0).sum(1)

    f = field(count)
    for _ in range(2):
        bits, counts = f(torch.tensor([[1, -2.5, 0], [3.25, -0.0, 5.5]]))
        assert bits.shape == (3, 8)
        assert counts.tolist() == [4, 3, 2]
    field.leaves(".view", "!=", ".sum", why="bytes of numbers are read as others, which are not the engine's")
