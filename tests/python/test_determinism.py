"""The same call gives the same bits: however many threads run it, however often, and whatever was called before."""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch holds the tensors")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

BAGS = [0, 3, 3, 2000, 2001]

# Name: inputs (name, dtype, dims), body, sizes of the call that is repeated.
KERNELS = {
    "full sum": ([("x", "float32", ["N", "M"])], lambda f, x: x.sum(), {"N": 1013, "M": 977}),
    "full sum of halves": ([("x", "float16", ["N"])], lambda f, x: x.sum(), {"N": 300007}),
    "full variance": ([("x", "float32", ["N"])], lambda f, x: f.var(x, axes=[0], keepdim=False), {"N": 1000003}),
    "product of a chain": ([("x", "float32", ["N"])], lambda f, x: (x * 1e-3 + 1).prod(axes=[0]), {"N": 200003}),
    "sum of columns": ([("x", "float32", ["N", "M"])], lambda f, x: (x * x).sum(axes=[0]), {"N": 20011, "M": 37}),
    "rows": ([("x", "float32", ["N", "M"])], lambda f, x: x.softmax(axis=-1), {"N": 257, "M": 1000}),
    "split rows": ([("x", "float32", ["N", "M"])], lambda f, x: x.softmax(axis=-1), {"N": 2, "M": 400009}),
    "split layer norm": ([("x", "float32", ["N", "M"])], lambda f, x: f.layer_norm(x, eps=1e-5), {"N": 1, "M": 300007}),
    "logsumexp": ([("x", "float32", ["N", "M"])], lambda f, x: f.logsumexp(x, axes=[0, 1], keepdim=False), {"N": 3, "M": 100003}),
    "gemm": ([("x", "float32", ["N", "K"]), ("y", "float32", ["K", "M"])], lambda f, x, y: x @ y, {"N": 129, "K": 2051, "M": 131}),
    "one row by a matrix": ([("x", "float32", ["N", "K"]), ("y", "float32", ["K", "M"])], lambda f, x, y: x @ y, {"N": 1, "K": 9001, "M": 33}),
    "deep gemm": ([("x", "float32", ["N", "K"]), ("y", "float32", ["K", "M"])], lambda f, x, y: (x @ y).relu(), {"N": 3, "K": 50021, "M": 5}),
    "gemm of bf16": ([("x", "bfloat16", ["N", "K"]), ("y", "bfloat16", ["K", "M"])], lambda f, x, y: x @ y, {"N": 65, "K": 1025, "M": 67}),
    "batched gemm": ([("x", "float64", ["B", "N", "K"]), ("y", "float64", ["B", "K", "M"])], lambda f, x, y: x @ y, {"B": 7, "N": 33, "K": 515, "M": 31}),
    "attention": ([(n, "float32", ["B", 4, s, 32]) for n, s in (("q", "S"), ("k", "T"), ("v", "T"))], lambda f, q, k, v: f.sdpa(q, k, v), {"B": 2, "S": 77, "T": 1013}),
    "attention of one query": ([(n, "float32", ["B", 4, s, 32]) for n, s in (("q", "S"), ("k", "T"), ("v", "T"))], lambda f, q, k, v: f.sdpa(q, k, v), {"B": 1, "S": 1, "T": 5003}),
    "causal attention": ([(n, "float16", ["B", 4, "S", 32]) for n in "qkv"], lambda f, q, k, v: f.sdpa(q, k, v, is_causal=True), {"B": 1, "S": 301}),
    "embedding bag": (
        [("ids", "int64", ["N"]), ("offsets", "int64", ["B"]), ("table", "float32", [50, "M"])],
        lambda f, ids, offsets, table: f.embedding_bag_offsets(ids, offsets, table, mode="sum"),
        {"N": 4001, "B": len(BAGS), "M": 129},
    ),
}


def tensors(inputs, sizes):
    g = torch.Generator().manual_seed(1)
    out = []
    for name, dtype, dims in inputs:
        shape = [sizes.get(d, d) for d in dims]
        if name == "offsets":
            out.append(torch.tensor(BAGS))
        elif dtype == "int64":
            out.append(torch.randint(0, 50, shape, generator=g))
        else:
            out.append(torch.randn(shape, generator=g).to(getattr(torch, dtype)))
    return out


@pytest.fixture
def threads():
    """Leaves the process with the thread count that it had."""
    yield (1, 2, 3)
    flexor.Session(threads=int(os.environ.get("FLEXOR_NUM_THREADS", os.cpu_count())))


@pytest.mark.parametrize("name", KERNELS)
def test_same_bits_for_every_thread_count_and_every_run(name, threads):
    inputs, body, sizes = KERNELS[name]
    b = flexor.Builder()
    f = b.function("main", inputs=inputs)
    f.output(body(f, *f.inputs))
    module = b.build()
    arguments = tensors(inputs, sizes)
    bits = set()
    for count in threads:
        session = flexor.Session(threads=count)
        if name != "embedding bag" and count > 1:
            session.run(module, *tensors(inputs, {k: 1 if count == 2 else v + 1 for k, v in sizes.items()}))
        for _ in range(4):
            bits.add(session.run(module, *arguments).reshape(-1).view(torch.uint8).numpy().tobytes())
        assert session.stats()["interpreted_ops"] == 0
    assert len(bits) == 1
