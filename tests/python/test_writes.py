"""Writes to elements that share memory, to inference tensors and to read-only arrays: as torch and NumPy have them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def program(body, *inputs):
    b = flexor.Builder()
    f = b.function("main", inputs=inputs)
    f.output(body(f, *f.inputs))
    return b.build()


REPEATED = {
    "rows": lambda t: t.expand(4, 5),
    "rows of a slice": lambda t: t[..., 2:].expand(3, 3),
    "columns": lambda t: t.reshape(5, 1).expand(5, 4),
    "everything": lambda t: t[..., :1].expand(3, 4),
    "batches": lambda t: t.expand(2, 3, 5),
    "no rows": lambda t: t.expand(0, 5),
    "one row": lambda t: t.expand(1, 5),
    "nothing": lambda t: t.repeat(4, 1),
}
SELECTING = {
    "masked_fill_": (lambda f, x, mask: f.op("masked_fill_", x, mask, 7.0), lambda x, mask: x.masked_fill_(mask, 7.0)),
    "tril_": (lambda f, x, mask: f.op("tril_", x, diagonal=1), lambda x, mask: x.tril_(1)),
    "triu_": (lambda f, x, mask: f.op("triu_", x), lambda x, mask: x.triu_()),
}


@pytest.mark.filterwarnings("ignore:Use of masked_fill_ on expanded tensors")
@pytest.mark.parametrize("compile", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("layout", REPEATED)
@pytest.mark.parametrize("op", SELECTING)
def test_selecting_writes_on_expanded_tensors(op, layout, compile):
    ours, theirs = (torch.arange(1.0, 6.0) for _ in range(2))
    mine, eager = REPEATED[layout](ours), REPEATED[layout](theirs)
    mask = torch.rand(eager.shape, generator=torch.Generator().manual_seed(5)) < 0.3
    ranks = [(name, dtype, [f"{name}{i}" for i in range(mine.dim())]) for name, dtype in (("x", "float32"), ("mask", "bool"))]
    module = program(SELECTING[op][0], *ranks)
    got = flexor.Session(compile=compile).run(module, mine, mask)
    wanted = SELECTING[op][1](eager, mask)
    assert torch.equal(ours, theirs)
    assert torch.equal(got, wanted)


@pytest.mark.filterwarnings("ignore:Use of masked_fill_ on expanded tensors")
def test_a_selecting_write_on_what_the_program_expands():
    module = program(
        lambda f, x, m: f.op("masked_fill_", f.op("expand", x, shape=[6, -1]), m, -1.0),
        ("x", "float32", [1, "N"]),
        ("m", "bool", [6, "N"]),
    )
    for n in (1, 3, 17):
        x = torch.arange(float(n)).reshape(1, n)
        mask = torch.rand(6, n, generator=torch.Generator().manual_seed(n)) < 0.2
        wanted = x.clone().expand(6, n).masked_fill_(mask, -1.0)
        for session in (flexor.Session(compile=False), flexor.Session()):
            mine = x.clone()
            assert torch.equal(session.run(module, mine, mask), wanted)
            assert torch.equal(mine, wanted[:1])


@pytest.mark.parametrize("compile", [False, True], ids=["interpreted", "compiled"])
def test_other_writes_on_expanded_tensors_are_refused_as_torch_does(compile):
    module = program(lambda f, x: f.op("add_", x, 1.0), ("x", "float32", ["N", "M"]))
    session = flexor.Session(compile=compile)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(3).expand(2, 3).add_(1.0)
    with pytest.raises(flexor.ShapeError, match="E0312"):
        session.run(module, torch.zeros(3).expand(2, 3))
    with pytest.raises(flexor.ShapeError, match="E0312"):
        session.run(module, torch.zeros(6).as_strided((4, 3), (1, 1)))


def test_bags_begin_with_the_first_id():
    module = program(
        lambda f, ids, offsets, table: f.embedding_bag_offsets(ids, offsets, table, mode="sum"),
        ("ids", "int64", ["N"]),
        ("offsets", "int64", ["B"]),
        ("table", "float32", [5, 2]),
    )
    ids, table = torch.tensor([1, 2, 3]), torch.arange(10.0).reshape(5, 2)
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        torch.nn.functional.embedding_bag(ids, table, torch.tensor([1, 2]), mode="sum")
    for session in (flexor.Session(compile=False), flexor.Session()):
        with pytest.raises(flexor.ShapeError, match="E0307"):
            session.run(module, ids, torch.tensor([1, 2]), table)
        assert session.run(module, ids, torch.tensor([0, 2]), table).shape == (2, 2)


def test_inference_tensors_are_written_in_inference_mode_only():
    module = program(lambda f, x, y: f.op("add_", x, y), ("x", "float32", ["N"]), ("y", "float32", ["N"]))
    nested = flexor.from_text(
        ".func main(xs: any) -> 1\n LOAD_LOCAL xs\n LOAD_CONST 0\n LIST_GET\n LOAD_CONST 1.0\n CALL_OP add_ 2\n RETURN 1\n"
    )
    with torch.inference_mode():
        inference, eager = torch.zeros(3), torch.zeros(3)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        eager.add_(1.0)
    for session in (flexor.Session(compile=False), flexor.Session()):
        with pytest.raises(RuntimeError, match="E0512") as caught:
            session.run(module, inference, torch.ones(3))
        assert caught.value.code == "E0512"
        with pytest.raises(flexor.ArgumentError, match="E0512"):
            session.run(nested, [inference])
        assert not inference.any()
        assert session.run(module, torch.ones(3), inference).tolist() == [1, 1, 1]  # read only
        with torch.inference_mode():
            session.run(module, inference, torch.ones(3))
            assert inference.tolist() == [1, 1, 1]
            inference.zero_()


def test_a_read_only_array_may_be_read_beside_one_that_is_written():
    module = program(lambda f, x, y: f.op("add_", x, y), ("x", "float32", ["N"]), ("y", "float32", ["N"]))
    fixed = np.ones(3, np.float32)
    fixed.flags.writeable = False
    for session in (flexor.Session(compile=False), flexor.Session()):
        x = np.zeros(3, np.float32)
        assert session.run(module, x, fixed).tolist() == [1, 1, 1]
        with pytest.raises(flexor.ArgumentError, match="E0511"):
            session.run(module, fixed, x)
        assert fixed.tolist() == [1, 1, 1]
