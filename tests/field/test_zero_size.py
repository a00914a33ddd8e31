"""Field cases, zero-size: every case runs after the pool was dirtied with NaN."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
pytest.importorskip("flexor", reason="the engine is not built")

import torch.nn.functional as F  # noqa: E402
from programs import Program, dirty_pool  # noqa: E402


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.int64), ids=str)
@pytest.mark.parametrize(
    "shapes", (((4, 0), (0, 4)), ((3, 2, 0), (3, 0, 3)), ((0, 5), (5, 4)), ((0, 0), (0, 0))), ids=str
)
def test_f027_a_product_over_nothing_is_zero(dtype, shapes):
    name = str(dtype).removeprefix("torch.")
    program = Program(
        [(f"x{i}", name, [f"d{i}{j}" for j in range(len(s))]) for i, s in enumerate(shapes)],
        lambda f, a, b: f.matmul(a, b) * 1,
    )
    dirty_pool(program)
    a, b = (torch.ones(s, dtype=dtype) for s in shapes)
    got = program(a, b)
    assert got.dtype == dtype
    assert torch.equal(got, torch.matmul(a, b))


REDUCTIONS = {
    "reduce_max": None,
    "reduce_min": None,
    "reduce_sum": 0.0,
    "reduce_prod": 1.0,
    "reduce_any": False,
    "reduce_all": True,
    "reduce_mean": float("nan"),
}


@pytest.mark.parametrize(("op", "identity"), REDUCTIONS.items())
def test_f029_reductions_of_an_empty_tensor(op, identity):
    """(0, 3) over everything and over axis 0: the identity, or an error where there is none; over axis 1: empty."""
    for axes, shape in (([0, 1], ()), ([0], (3,)), ([1], (0,))):
        program = Program([("x", "float32", ["N", "M"])], lambda f, x, axes=axes: f.op(op, x, axes=axes, keepdim=False))
        dirty_pool(program)
        assert program(torch.ones(2, 3)).shape == torch.Size(shape if axes != [1] else (2,))
        if identity is None and axes != [1]:
            with pytest.raises((ValueError, RuntimeError, IndexError), match="no elements"):
                program(torch.ones(0, 3))
            continue
        got = program(torch.ones(0, 3))
        assert got.shape == torch.Size(shape)
        if shape != (0,):
            wanted = torch.full(shape, identity)
            assert torch.equal(
                got.isnan() if identity != identity else got, wanted.isnan() if identity != identity else wanted
            )


def test_f029_argmax_of_an_empty_tensor():
    program = Program([("x", "float32", ["N", "M"])], lambda f, x: f.argmax(x, axes=[0], keepdim=False))
    assert torch.equal(program(torch.tensor([[1.0, 5.0], [2.0, 3.0]])), torch.tensor([1, 0]))
    with pytest.raises((ValueError, RuntimeError, IndexError), match="no elements"):
        program(torch.ones(0, 3))


def test_f030_index_reduction_of_an_empty_batch():
    program = Program(
        [("x", "float32", ["N", 3])], lambda f, x: f.argmin(x, axes=[1], keepdim=False).reshape([x.shape[0], -1])
    )
    assert torch.equal(program(torch.tensor([[3.0, 1.0, 2.0], [0.0, 1.0, 2.0]])), torch.tensor([[1], [0]]))


def test_f030_index_reduction_viewed_as_another_empty_shape():
    program = Program(
        [("x", "float32", ["N", 3])], lambda f, x: f.argmin(x, axes=[1], keepdim=False).reshape([x.shape[0], 3])
    )
    got = program(torch.ones(0, 3))
    assert got.shape == (0, 3)
    assert got.dtype == torch.int64


def test_f035_writing_an_empty_block_changes_nothing():
    """A (2, 0, 1) block into (7, 5, 3), at an offset that the data's own size gives."""

    def body(f, x, block, at):
        first = at.shape[0]
        rows = f.slice(x, axis=0, start=first, stop=first + block.shape[0])
        columns = f.slice(rows, axis=1, start=first, stop=first + block.shape[1])
        f.assign(f.slice(columns, axis=2, start=first, stop=first + block.shape[2]), block)
        return x

    program = Program(
        [("x", "float32", ["A", "B", "C"]), ("block", "float32", ["D", "E", "F"]), ("at", "float32", ["P"])], body
    )
    for offset in (0, 1, 2):
        x = torch.arange(105.0).reshape(7, 5, 3)
        before = x.clone()
        program(x, torch.empty(2, 0, 1), torch.empty(offset))
        assert torch.equal(x, before)
        program(x, torch.full((2, 1, 1), -1.0), torch.empty(offset))
        before[offset : offset + 2, offset : offset + 1, offset : offset + 1] = -1
        assert torch.equal(x, before)


def test_f036_an_empty_branch_joined_to_a_full_one():
    """(B, 8) joined with (B, 0), linear, cross entropy; B = 4, 1, 0: mean NaN and sum 0 of nothing."""

    def body(f, x, none, w, target):
        logits = f.log_softmax(f.linear(f.concat([x, none], axis=1), w), axis=-1)
        picked = f.gather(logits, f.unsqueeze(target, axis=1), axis=1)
        return f.neg(picked).mean(axes=[0, 1]), f.neg(picked).sum(axes=[0, 1])

    program = Program(
        [
            ("x", "float32", ["B", 8]),
            ("none", "float32", ["B", "Z"]),
            ("w", "float32", [5, 8]),
            ("target", "int64", ["B"]),
        ],
        body,
    )
    dirty_pool(program)
    w = torch.randn(5, 8)
    for batch in (4, 1, 0, 3):
        x, target = torch.randn(batch, 8), torch.randint(0, 5, (batch,))
        mean, total = program(x, torch.empty(batch, 0), w, target)
        logits = F.linear(x, w)
        torch.testing.assert_close(mean, F.cross_entropy(logits, target), equal_nan=True)
        torch.testing.assert_close(total, F.cross_entropy(logits, target, reduction="sum"))


def test_f037_batch_normalisation_of_an_empty_batch_in_training():
    """(0, 5, 9), then (8, 5, 9), and other orders: what an empty batch leaves of the running statistics."""
    momentum, eps = 0.1, 1e-5

    def train(f, x, mean, variance, weight, bias):
        batch_mean = x.mean(axes=[0, 2])
        batch_variance = f.var(x, axes=[0, 2], keepdim=False, correction=0)
        f.add_(f.mul_(mean, 1 - momentum), batch_mean * momentum)
        unbiased = f.var(x, axes=[0, 2], keepdim=False, correction=1)
        f.add_(f.mul_(variance, 1 - momentum), unbiased * momentum)
        return f.batch_norm(x, batch_mean, batch_variance, weight, bias, eps=eps)

    def body(f, x, *rest):
        return f.if_else(
            f.scalar("eq", f.scalar("mul", x.shape[0], x.shape[2]), 0),
            lambda: f.clone(x),
            lambda: train(f, x, *rest),
        )

    inputs = [("x", "float32", ["B", 5, "L"])]
    inputs += [(name, "float32", [5]) for name in ("mean", "variance", "weight", "bias")]
    for batches in ((0, 8, 0, 3), (8, 0, 8), (2, 0, 0, 5)):
        program = Program(inputs, body)
        dirty_pool(program)
        weight, bias = torch.randn(5), torch.randn(5)
        mean, variance = torch.zeros(5), torch.ones(5)
        eager_mean, eager_variance = mean.clone(), variance.clone()
        for batch in batches:
            x = torch.randn(batch, 5, 9)
            wanted = F.batch_norm(x, eager_mean, eager_variance, weight, bias, True, momentum, eps)
            torch.testing.assert_close(program(x, mean, variance, weight, bias), wanted)
            torch.testing.assert_close(mean, eager_mean)
            torch.testing.assert_close(variance, eager_variance)
            assert mean.isfinite().all() and variance.isfinite().all()


@pytest.mark.parametrize("order", [(0, 1, 7), (7, 1, 0)], ids=str)
def test_f033_suppression_by_class_with_no_box_at_all(order):
    """Boxes of one class never suppress another's: the offset trick, whose maximum must not see an empty list."""

    def suppress(boxes, scores, classes):
        offset = classes * (boxes.max() + 1) if len(boxes) else classes
        shifted = boxes + offset[:, None]
        keep, order = [], scores.argsort(descending=True, stable=True).tolist()
        for i in order:
            low, high = torch.maximum(shifted[i, :2], shifted[keep][:, :2]), torch.minimum(shifted[i, 2:], shifted[keep][:, 2:])
            inside = (high - low).clamp(min=0).prod(-1)
            area = (shifted[:, 2:] - shifted[:, :2]).prod(-1)
            if not (inside / (area[i] + area[keep] - inside) > 0.5).any():
                keep.append(i)
        return torch.tensor(keep, dtype=torch.int64)

    def body(f, boxes, scores, classes):
        largest = f.concat([boxes.reshape([-1]), f.zeros(shape=[1], dtype="float32")], axis=0).max(axes=[0])
        shifted = boxes + (classes * (largest + 1.0)).unsqueeze(axis=1)
        return f.nms(shifted, scores, iou_threshold=0.5)

    inputs = [("boxes", "float32", ["N", 4]), ("scores", "float32", ["N"]), ("classes", "float32", ["N"])]
    program = Program(inputs, body)
    dirty_pool(program)
    for n in order:
        corners = torch.rand(n, 2) * 3
        boxes, scores, classes = torch.cat([corners, corners + 1 + torch.rand(n, 2)], 1), torch.rand(n), torch.arange(n).float() % 2
        got = program(boxes, scores, classes)
        assert got.dtype == torch.int64
        assert torch.equal(got, suppress(boxes, scores, classes)), n
