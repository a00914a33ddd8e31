"""Field cases, guard miss: a stored plan or value used where it no longer holds. Most need the third call."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
pytest.importorskip("flexor", reason="the engine is not built")

from oracle import judge  # noqa: E402
from programs import Assembled, Program  # noqa: E402


def test_f006_a_number_used_twice_is_current_in_every_call(tmp_path):
    """The same float is a factor and part of eps; four different values, then the first again."""
    program = Assembled(
        tmp_path,
        """
        .func main(x: f32[N, D], s: float) -> 1
          LOAD_LOCAL x
          LOAD_LOCAL s
          CALL_OP mul 2
          STORE_LOCAL y
          LOAD_LOCAL y
          LOAD_LOCAL y
          LOAD_LOCAL y
          CALL_OP mul 2
          CALL_OP reduce_mean 1 axes=[-1], keepdim=true
          LOAD_LOCAL s
          LOAD_CONST 0.001
          SCALAR add
          CALL_OP add 2
          CALL_OP sqrt 1
          CALL_OP div 2
          RETURN 1
        .end
        """,
    )

    def eager(x, s):
        y = x * s
        return y / (y.square().mean(-1, keepdim=True) + (s + 0.001)).sqrt()

    x = torch.randn(5, 33)
    for s in (0.1, 0.2, 0.3, 0.4, 0.1):
        judge(program(x, s), eager(x, s), eager(x.double(), s), ulps=16)
    assert program.compilations <= 2


def test_f007_an_extra_flag_does_not_freeze_the_length():
    program = Program([("x", "float32", ["N"]), ("flag", "bool", [])], lambda f, x, flag: f.concat([x, x], axis=0))
    for n, flag in ((20, True), (40, True), (40, False), (7, True)):
        x = torch.randn(n)
        got = program(x, torch.tensor(flag))
        assert got.shape == (2 * n,)
        assert torch.equal(got, x.repeat(2))


def test_f008_the_length_of_a_slice_is_its_own():
    """n ones, all but the first: their number and their sum, also for n = 1 and n = 0."""
    program = Program([("x", "float32", ["N"])], lambda f, x: (x[1:], x[1:].sum(axes=[0])))
    for n in (10, 1, 0, 10):
        rest, total = program(torch.ones(n))
        assert rest.shape == (max(n - 1, 0),)
        assert total.item() == max(n - 1, 0)


def test_f009_a_reduction_after_a_gather_follows_the_indices():
    program = Program(
        [("buffer", "float32", ["R", 1]), ("index", "int64", ["N"])],
        lambda f, buffer, index: f.embedding(index, buffer).sum(axes=[0, 1]),
    )
    buffer = torch.tensor([[10.0], [20.0], [30.0], [40.0], [50.0]])
    assert [program(buffer, torch.arange(n)).item() for n in (1, 2, 3, 4)] == [10, 30, 60, 100]


def test_f011_equal_element_counts_are_different_shapes():
    def body(f, x):
        batch, channels, height, width = (x.shape[i] for i in range(4))
        return x.reshape([1, 3, -1]).reshape([batch, channels, height, width])

    program = Program([("x", "uint8", [1, 3, "H", "W"])], body)
    for height, width in ((320, 320), (160, 320), (640, 80), (80, 640)):
        x = torch.randint(0, 256, (1, 3, height, width), dtype=torch.uint8)
        got = program(x)
        assert got.shape == x.shape
        assert torch.equal(got, x)


@pytest.mark.parametrize("order", [(4, 10, 7, 192), (10, 7, 4), (192, 10, 1)], ids=str)
def test_f013_a_batch_that_equals_another_extent(order):
    program = Program([("x", "float32", ["S", 10, 192]), ("bias", "float32", [10, 192])], lambda f, x, bias: x + bias)
    bias = torch.randn(10, 192)
    for s in order:
        x = torch.randn(s, 10, 192)
        assert torch.equal(program(x, bias), x + bias)
    assert program.compilations == 1


def test_f014_a_model_that_branches_on_its_size(tmp_path):
    """Rows a multiple of 128: x + 1, else x - 1. The branch belongs to the family, not to the first call."""
    program = Assembled(
        tmp_path,
        """
        .func main(x: f32[N, D]) -> 1
          LOAD_LOCAL x
          GET_DIM 0
          LOAD_CONST 128
          SCALAR mod
          LOAD_CONST 0
          SCALAR eq
          BRANCH_IF_FALSE other
          LOAD_LOCAL x
          LOAD_CONST 1.0
          CALL_OP add 2
          RETURN 1
        other:
          LOAD_LOCAL x
          LOAD_CONST 1.0
          CALL_OP sub 2
          RETURN 1
        .end
        """,
    )
    for rows in (256, 100, 384, 128, 127, 0):
        x = torch.randn(rows, 3)
        assert torch.equal(program(x), x + 1 if rows % 128 == 0 else x - 1), rows


def test_f001_a_helper_that_is_rebound_in_the_globals(field):
    module = {"torch": torch}
    exec("def helper(v): return torch.sin(v) + 20\ndef calls(v): return helper(v)", module)
    f = field(module["calls"])
    one = torch.ones(1)
    assert f(one).item() == pytest.approx(20.8415, abs=1e-4)
    module["helper"] = torch.cos
    assert f(one).item() == pytest.approx(0.5403, abs=1e-4)
    module["helper"] = lambda v: v - 1
    assert f(one).item() == 0
    field.is_native()


def test_f002_a_number_of_a_class_and_of_its_instance(field):
    class Scale:
        factor = 1.0

    scale, x = Scale(), torch.tensor([4.0])
    on_class, on_instance = field(lambda v: v * Scale.factor), field(lambda v: v * scale.factor)
    assert (on_class(x).item(), on_instance(x).item()) == (4, 4)
    Scale.factor = 10.0
    assert (on_class(x).item(), on_instance(x).item()) == (40, 40)
    scale.factor = 3.0
    assert (on_class(x).item(), on_instance(x).item()) == (40, 12)
    del scale.factor
    Scale.factor = 2.0
    assert (on_class(x).item(), on_instance(x).item()) == (8, 8)
    field.is_native()


def test_f004_the_default_dtype_is_not_a_constant(field):
    def makes():
        made = torch.tensor(1.0) + 0.5
        return made, str(made.dtype)

    f = field(makes)
    try:
        assert f()[1] == "torch.float32"
        torch.set_default_dtype(torch.float64)
        assert f()[1] == "torch.float64"
        torch.set_default_dtype(torch.float32)
        assert f()[1] == "torch.float32"
    finally:
        torch.set_default_dtype(torch.float32)
    field.leaves("torch.tensor", "str", "+", why="the name of a dtype is made into text")
