"""A fixed sample of torch's own description of its operators beside eager. tests/conformance/op_db.py runs all of it."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
pytest.importorskip("expecttest", reason="torch.testing needs it")
pytest.importorskip("flexor", reason="the engine is not built")

sys.path.append(str(Path(__file__).parents[1] / "conformance"))
import op_db  # noqa: E402

NATIVE = (
    "acos add addmm amax argsort atan2 baddbmm block_diag bmm cdist chunk count_nonzero cov diag_embed diagonal"
    " einsum expand gradient hstack index_add index_put isclose lgamma linalg.vector_norm linspace log_softmax"
    " logaddexp masked.var masked_fill masked_select matmul max.reduction_with_dim mean meshgrid.variadic_tensors"
    " mode movedim"
).split()
FOREIGN = ("arange", "as_strided", "cat", "bernoulli")
RECORDS = {op_db.name_of(record): record for record in op_db.records("a", "m")}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("manner", op_db.MANNERS)
@pytest.mark.parametrize("name", (*NATIVE, *FOREIGN))
def test_samples_of_a_record_are_eagers(name, manner):
    row = op_db.run_record(RECORDS[name], manner, dtypes=(torch.float32,), most=3, most_errors=3)
    assert not row["wrong"] and not row["other_error"], "\n".join(row["problems"])
    assert row["samples"]
    if name in NATIVE and manner == "text":
        assert row["native"] == row["samples"], row["reasons"]


@pytest.mark.quick
def test_every_record_has_a_family_or_a_reason_to_have_none():
    assert not [name for name in RECORDS if not op_db.family_of(name)]
