"""Field cases, errors: what eager refuses is refused, and the message says where and why."""

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_f172_a_size_declared_free_that_meets_a_fixed_one(field):
    weight = torch.randn(1, 1, 22, 1)

    def adds(q):
        return q * 2 + weight

    f = field(adds, dims={"q": ["B", "H", flexor.Dim("S", 1, 64), "D"]})
    f(torch.randn(2, 3, 22, 4))
    with pytest.raises(RuntimeError) as caught:
        f(torch.randn(2, 3, 23, 4))
    assert "23" in str(caught.value) and "22" in str(caught.value)
    assert str(caught.traceback[-1].statement).strip() == "return q * 2 + weight"
    field.is_native()


def test_f173_a_free_size_that_another_argument_ties(field):
    def scales(a, b):
        return a.shape[0] * a * b

    f, g = field(scales, dims={"a": ["R", None]}), field(scales, dims={"a": ["R", "R"]})
    for rows in (3, 5, 1):
        f(torch.randn(rows, 4), torch.randn(rows, 4))
    g(torch.randn(10, 10), torch.randn(10, 10))
    for h in (f, g):
        with pytest.raises(RuntimeError, match="10"):
            h(torch.randn(10, 10), torch.randn(7, 10))
    field.is_native()


def test_f175_negative_indices_that_eager_refuses(field):
    def embeds(ids, table):
        return torch.nn.functional.embedding(ids, table) * 2

    def accumulates(x, index):
        return x.index_add(0, index, torch.ones(1, 2))

    f, g = field(embeds), field(accumulates)
    f(torch.tensor([2, 4]), torch.randn(5, 3))
    with pytest.raises(IndexError):
        f(torch.tensor([2, -2, 4]), torch.randn(5, 3))
    g(torch.zeros(3, 2), torch.tensor([1]))
    with pytest.raises((IndexError, RuntimeError)):
        g(torch.zeros(3, 2), torch.tensor([-1]))
    field.is_native()


def test_f178_computed_indices_that_are_negative(field):
    def picks(a, b):
        return a[b - 1] + 1

    f = field(picks)
    a = torch.arange(20.0)
    assert f(a, torch.zeros(3, dtype=torch.int64)).tolist() == [20] * 3
    assert f(a, torch.full((2,), -19)).tolist() == [1] * 2
    with pytest.raises(IndexError):
        f(a, torch.full((2,), -20))
    with pytest.raises(IndexError):
        f(a, torch.full((2,), 21))
    field.is_native()


def test_f179_a_memory_limit_tells_what_is_asked_for_and_what_is_held(field):
    def grows(x):
        return torch.cat([x.expand(1 << 20)] * 2) + 1

    f = field(grows)
    f(torch.ones(1))
    module = f.jitted.module(torch.ones(1))
    session = flexor.Session(hard_limit="1MB")
    with pytest.raises(MemoryError) as caught:
        session.run(module, torch.ones(1))
    text = str(caught.value)
    assert text.startswith("E0601") and all(part in text for part in ("8.0 MiB more", "0 B in use", "hard limit 1.0 MiB", "concat"))
    field.is_native()


def test_f180_every_translation_says_why_it_was_made(field):
    scale = 2.0

    def scales(x, mode="up"):
        return x * scale if mode == "up" else torch.zeros(3) + x

    f = field(scales)
    f(torch.ones(3))
    f(torch.ones(3, dtype=torch.float64))
    square = torch.ones(3, 3, dtype=torch.float64)
    f(square)
    f(square, "down")
    scale = 3.0
    f(torch.ones(3))
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        f(square, "down")
    finally:
        torch.set_default_dtype(before)
    first, dtype, rank, text, cell, default = f.jitted.stats()["reasons"]
    assert first == "the first call"
    assert dtype == "x: torch.float64 instead of torch.float32"
    assert rank == "x: 2 axes instead of 1"
    assert text == "mode: 'down' instead of 'up'"
    assert cell == "a variable of the closure: 3.0 instead of 2.0"
    assert default == "torch.get_default_dtype(): torch.float64 instead of torch.float32"
    field.is_native()


def test_f180_every_compilation_says_why_it_was_made(field):
    def doubles(x):
        return (x * 2).sum(-1)

    f = field(doubles)
    flexor.default_session().clear_cache()
    for x in (torch.ones(3, 4), torch.ones(4, 3).t(), torch.ones(3, 4, dtype=torch.float64)):
        f(x)
    reasons = [entry["reason"] for entry in flexor.stats()["entries"]]
    assert len(reasons) >= 2 and all(reasons)
    field.is_native()


@pytest.mark.filterwarnings("ignore:Sparse")
def test_f181_a_compressed_sparse_matrix_made_inside(field):
    def makes(rows, columns, values):
        matrix = torch.sparse_csr_tensor(rows, columns, values * 2, (2, 5), check_invariants=True)
        return matrix.to_dense() + 1

    f = field(makes)
    rows, values = torch.tensor([0, 1, 2]), torch.ones(2)
    for _ in range(2):
        f(rows, torch.tensor([0, 4]), values)
    with pytest.raises(RuntimeError):
        f(rows, torch.tensor([0, 10]), values)
    field.leaves("torch.sparse_csr_tensor", ".to_dense", "+", why="the engine has no compressed sparse tensors; torch's own checks are wanted")
