"""The device code generator without a device: its Triton source against golden texts, interpreted against the loop-IR
evaluator, and compiled for sm_90."""

import ctypes
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_golden import compare

pytest.importorskip("triton", reason="needs Triton")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))
from compiler import WORKER, Compiler  # noqa: E402

WORKERS = 2

pytestmark = pytest.mark.slow


def write_cases(*words):
    """The cases that the build's write_cases prints."""
    build = Path(os.environ.get("FLEXOR_BUILD", ROOT / "build"))
    program = build / "tests" / "write_cases"
    if not program.exists():
        pytest.skip("build/tests/write_cases is not built")
    out = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, check=True, timeout=300).stdout
    return [json.loads(line) for line in out.decode().splitlines()]


@pytest.fixture(scope="module")
def numeric():
    return write_cases("numeric")


@pytest.fixture
def worker(tmp_path):
    worker = Compiler(TRITON_CACHE_DIR=str(tmp_path))
    yield worker
    worker.close()


GOLDEN = ["add_relu_sum_3x33", "softmax_3x33", "layer_norm_in_place_3x33", "gather_rows_3x33", "column_sum_3x33"]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_triton_source(numeric, name):
    texts = {case["name"]: case["source"] for case in numeric if case["name"].startswith(name + "/")}
    assert texts
    compare(f"{name}.triton.txt", "\n\n".join(f"# {case}\n{text}" for case, text in texts.items()))


def test_interpreted_kernels_leave_what_the_evaluator_leaves(numeric, tmp_path):
    program = ROOT / "tests" / "triton" / "interpret.py"
    parts = []
    for i in range(WORKERS):
        path = tmp_path / f"{i}.jsonl"
        path.write_text("\n".join(json.dumps(case) for case in numeric[i::WORKERS]))
        parts.append(path)

    def interpret(path):
        return subprocess.run(
            [sys.executable, "-W", "ignore", program, path],
            capture_output=True,
            text=True,
            env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        )

    with ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(interpret, parts):
            assert result.returncode == 0, result.stderr[-2000:]
            last = result.stdout.splitlines()[-1]
            assert last.startswith("ran ") and last.endswith(", wrong 0"), result.stdout[-4000:]
            assert int(last.split()[1].rstrip(",")) > 200


def programs(tmp_path):
    """The text programs that are lowered or specialised, and the benchmark's encoder layer and chain."""
    paths = [*ROOT.glob("examples/*.fasm")]
    for folder in ("lower", "specialize", "walk"):
        paths += sorted((ROOT / "tests/text" / folder).glob("*.fasm"))
    if flexor._flexor.has_code_generator():
        sys.path.insert(0, str(ROOT))
        from bench.models import chain, encoder

        for name, module in (("encoder", encoder()), ("chain", chain())):
            module.save(tmp_path / f"{name}.flx")
            paths.append(tmp_path / f"{name}.flx")
    return paths


def test_kernels_of_programs_compile_for_sm_90(tmp_path):
    cases = [case for case in write_cases("programs", *programs(tmp_path)) if "source" in case]
    assert len(cases) > 60

    def compile_all(part):
        worker = Compiler(TRITON_CACHE_DIR=str(tmp_path / "cache"))
        wrong = []
        for case in part:
            answer, data = worker.compile(case)
            if "ok" not in answer:
                wrong.append((case["name"], data.decode()))
                continue
            # What is launched: the arguments in order, and Triton's two pointers.
            sizes = [8 if kind.startswith("*") or kind == "i64" else 4 for _, kind in case["signature"]]
            assert answer["parameters"] == [str(size) for size in [*sizes, 8, 8]], case["name"]
            assert answer["scratch"][0] == "0"
            assert data.startswith(b"\x7fELF")
        worker.close()
        return wrong

    with ThreadPoolExecutor(WORKERS) as pool:
        wrong = sum(pool.map(compile_all, [cases[i::WORKERS] for i in range(WORKERS)]), [])
    assert not wrong, wrong[:3]


def test_kernels_run_on_the_gpu(tmp_path):
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        pytest.skip(f"needs a GPU and its driver: {error}")
    tools = ROOT / "tools" / "gpu"
    subprocess.run([tools / "prepare", tmp_path], check=True)
    done = subprocess.run([sys.executable, tools / "run.py", tmp_path, tmp_path / "out"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout


def test_the_worker_refuses_a_bad_source_and_goes_on(numeric, worker):
    assert worker.first.startswith("triton 3.6")
    good = next(case for case in numeric if case["name"] == "cast_f32/resident")
    bad = {**good, "source": good["source"].replace("tl.cast(v0, tl.float64)", "tl.cast(nothing, tl.float64)")}
    answer, text = worker.compile(bad)
    assert "refused" in answer and b"nothing" in text
    answer, cubin = worker.compile(good)
    assert "ok" in answer and answer["name"] == [good["function"]]
    answer, text = worker.compile({**good, "function": "absent"})
    assert "refused" in answer and b"absent" in text


@pytest.mark.quick
def test_the_worker_needs_no_torch():
    code = f"""
import runpy, sys
worker = runpy.run_path({str(WORKER)!r})
import triton.compiler, triton.backends.compiler
assert worker["version_line"]().startswith("triton ")
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "module, said",
    [("raise ImportError('no such thing')", "missing ImportError: no such thing"), ("__version__ = '2.1.0'", "found 2.1.0")],
)
def test_the_worker_says_that_triton_is_missing(tmp_path, module, said):
    (tmp_path / "triton.py").write_text(module)
    result = subprocess.run(
        [sys.executable, WORKER],
        input="",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert result.stdout.startswith("missing ") and said in result.stdout
