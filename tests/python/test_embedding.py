"""What a host asks of the package: buffers of its own, preparation, hooks at load, processes and threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import flexor

ADD = ".func main(x: f32[N, M], y: f32[N, M]) -> 1\n  LOAD_LOCAL x\n  LOAD_LOCAL y\n  CALL_OP add 2\n  RETURN 1\n"
TWO = ".func main(x: f32[N]) -> 2\n  LOAD_LOCAL x\n  RELU\n  LOAD_LOCAL x\n  CALL_OP neg 1\n  RETURN 2\n"


def arrays(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    return x, np.sqrt(x)


@pytest.mark.parametrize("rows", [0, 1, 2, 15, 16, 17, 33])
def test_out_is_written_and_returned(rows):
    module = flexor.from_text(ADD)
    x, y = arrays(rows, 6)
    for out in (np.full((rows, 6), np.nan, np.float32), np.full((6, rows), np.nan, np.float32).T, np.full((rows, 12), np.nan, np.float32)[:, ::2]):
        assert module(x, y, out=out) is out
        np.testing.assert_array_equal(out, x + y)
        out[...] = np.nan
        assert flexor.Session().run(module, x, y=y, out=out) is out
        np.testing.assert_array_equal(out, x + y)


def test_out_of_several_outputs():
    module = flexor.from_text(TWO)
    x = np.array([-1, 2, -3], np.float32)
    outs = (np.empty(3, np.float32), np.empty(3, np.float32))
    assert module(x, out=outs) is outs
    np.testing.assert_array_equal(outs[0], [0, 2, 0])
    np.testing.assert_array_equal(outs[1], -x)
    listed = [np.empty(3, np.float32), np.empty(3, np.float32)]
    assert module(x, out=listed) is listed
    assert module(x, out=None)[0].tolist() == [0, 2, 0]


def test_out_of_torch_counts_a_version():
    torch = pytest.importorskip("torch")
    module = flexor.from_text(ADD)
    x, y = torch.ones(3, 4), torch.ones(3, 4)
    out = torch.empty(3, 4)
    before = out._version
    assert module(x, y, out=out) is out
    assert out.tolist() == [[2.0] * 4] * 3
    assert out._version > before


def test_out_that_does_not_fit_is_named():
    module = flexor.from_text(ADD)
    x, y = arrays(3, 4)
    read_only = np.empty((3, 4), np.float32)
    read_only.flags.writeable = False
    wrong = {
        "E0514": [np.empty((4, 3), np.float32), np.empty((3, 4), np.float64), np.empty(12, np.float32), [np.empty((3, 4), np.float32)] * 2],
        "E0515": [x, y, x[:, :], x.reshape(4, 3).reshape(3, 4)],
        "E0312": [np.broadcast_to(np.empty((1, 4), np.float32), (3, 4))],
        "E0511": [read_only],
        "E0404": [3, "text", [None]],
    }
    wrong["E0312"][0].flags.writeable = True
    for code, outs in wrong.items():
        for out in outs:
            with pytest.raises(flexor.FlexorError, match=code):
                module(x, y, out=out)
    halves = np.ones((3, 8), np.float32)
    assert module(halves[:, :4], y, out=halves[:, 4:]) is not None
    with pytest.raises(flexor.FlexorError, match="E0515"):
        module(halves[:, :4], y, out=halves[:, 3:7])


def test_an_input_named_out_is_an_input():
    module = flexor.from_text(".func main(out: f32[N]) -> 1\n  LOAD_LOCAL out\n  RELU\n  RETURN 1\n")
    assert module(out=np.array([-1, 1], np.float32)).tolist() == [0, 1]


def test_prepare_leaves_nothing_to_do():
    session = flexor.Session()
    module = flexor.from_text(".symbol N in 1..512\n" + ADD.replace("M", "8"))
    session.prepare(module, {"N": (1, 200)}, other_threads=1)
    before = session.stats()
    for rows in range(1, 201, 7):
        x, y = arrays(rows, 8)
        session.run(module, x, y)
    after = session.stats()
    assert after["compilations"] == before["compilations"]
    assert after["pool"]["growth_events"] == before["pool"]["growth_events"]


def test_frozen_sizes_beyond_what_is_kept_are_not_prepared():
    module = flexor.from_text(".symbol N in 1..4096\n.func main(x: f32[FROZEN N]) -> 1\n  LOAD_LOCAL x\n  RELU\n  RETURN 1\n")
    with pytest.raises(flexor.ResourceLimit, match="E0605"):
        flexor.Session().prepare(module, {"N": (1, 4096)})


def test_a_file_whose_hooks_are_not_bound_does_not_load(tmp_path):
    path = tmp_path / "hosted.fasm"
    path.write_text(".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  CALL_FOREIGN twice 1\n  RETURN 1\n")
    session = flexor.Session()
    with pytest.raises(flexor.NotSupported, match="E0705.*\n.*twice"):
        session.load(path)
    session.bind("twice", lambda x: x * 2)
    module = session.load(path)
    assert session.run(module, np.ones(2, np.float32)).tolist() == [2, 2]


# ---------------------------------------------------------------- processes


def run_script(body: str, **kwargs) -> subprocess.CompletedProcess[str]:
    code = "import flexor, numpy as np, os, signal, sys, threading, time\n" + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **kwargs)


def test_a_forked_child_goes_on():
    done = run_script("""
        module = flexor.from_text('''.func main(x: f32[N, M], y: f32[M, K]) -> 1
          LOAD_LOCAL x
          LOAD_LOCAL y
          CALL_OP matmul 2
          CALL_OP softmax 1 axis=-1
          RETURN 1
        ''')
        x, y = np.ones((600, 300), np.float32), np.ones((300, 500), np.float32)
        wanted = module(x, y)                       # the threads of the pool have begun
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                same = np.array_equal(module(x, y), wanted)
                fresh = flexor.from_text('.func main(x: f32[N]) -> 1\\n  LOAD_LOCAL x\\n  RELU\\n  CALL_OP exp 1\\n  RETURN 1\\n')
                same = same and fresh(np.zeros(3, np.float32)).tolist() == [1, 1, 1]   # compiled in the child
                os._exit(0 if same else 1)
            children.append(child)
        assert np.array_equal(module(x, y), wanted)
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    """)
    assert done.returncode == 0, done.stderr


def test_a_fork_beside_busy_threads():
    done = run_script("""
        module = flexor.from_text('.func main(x: f32[N, M]) -> 1\\n  LOAD_LOCAL x\\n  CALL_OP softmax 1 axis=-1\\n  RETURN 1\\n')
        x = np.ones((512, 512), np.float32)
        wanted = module(x)
        stop = False
        def work():
            while not stop:
                module(x)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        children = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if np.array_equal(module(x), wanted) else 1)
            children.append(child)
        stop = True
        for thread in threads: thread.join()
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_fork_beside_threads_that_compile():
    done = run_script("""
        def fresh(i, count=6):
            steps = ''.join(f'  LOAD_CONST {i * 100 + j}.5\\n  CALL_OP add 2\\n  CALL_OP softmax 1 axis=-1\\n' for j in range(count))
            return flexor.from_text('.func main(x: f32[N, M]) -> 1\\n  LOAD_LOCAL x\\n' + steps + '  LOAD_LOCAL x\\n  CALL_OP matmul 2\\n  RETURN 1\\n')
        x = np.ones((4, 4), np.float32)
        shared = fresh(0, 40)
        stop, made = False, [0, 0]
        def work(thread):
            shared(x)                                            # both, and the children, want the same region
            while not stop:
                made[thread] += 1
                fresh(1000 * (thread + 1) + made[thread])(x)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads: thread.start()
        children = []
        for i in range(12):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                np.testing.assert_allclose(shared(x), 1, rtol=1e-5)
                np.testing.assert_allclose(fresh(900_000 + i)(x), 1, rtol=1e-5)
                os._exit(0)
            children.append(child)
        stop = True
        for thread in threads: thread.join()
        assert min(made) > 1
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    """)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_during_a_long_compilation():
    # Hundreds of different kernels: the compilation of the region alone takes long.
    body = "".join(
        f"  LOAD_LOCAL x\n  LOAD_CONST {i}.5\n  CALL_OP add 2\n  CALL_OP tanh 1\n  CALL_OP softmax 1 axis={-1 - i % 2}\n  STORE_LOCAL x\n" for i in range(400)
    )
    code = f"""
import flexor, numpy as np, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
module = flexor.from_text('''.func main(x: f32[N, M]) -> 1
{body}  LOAD_LOCAL x
  RETURN 1
''')
print("ready", flush=True)
try:
    module(np.ones((3, 4), np.float32))
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
small = flexor.from_text('.func main(x: f32[N]) -> 1\\n  LOAD_LOCAL x\\n  RELU\\n  RETURN 1\\n')
assert small(np.ones(2, np.float32)).tolist() == [1, 1]
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert out in ("interrupted\n", "done\n")
    if out == "interrupted\n":
        assert time.monotonic() - begin < 60


def test_the_interpreter_ends_with_work_in_flight():
    done = run_script("""
        module = flexor.from_text('.func main(x: f32[N, M]) -> 1\\n  LOAD_LOCAL x\\n  CALL_OP softmax 1 axis=-1\\n  RETURN 1\\n')
        x = np.ones((700, 700), np.float32)
        module(x)
        def work():
            while True:
                module(x)
        for _ in range(3): threading.Thread(target=work, daemon=True).start()
        logging = flexor.Session()
        time.sleep(0.2)
        print("end", flush=True)
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "end\n"
    assert done.stderr == ""


def test_nothing_is_written_to_the_standard_streams(tmp_path):
    done = run_script("""
        session = flexor.Session(hard_limit="1MB", soft_limit="1MB")
        module = flexor.from_text('.func main(x: f32[N, M]) -> 1\\n  LOAD_LOCAL x\\n  LOAD_LOCAL x\\n  CALL_OP matmul 2\\n  CALL_OP softmax 1 axis=-1\\n  RETURN 1\\n')
        session.run(module, np.ones((3, 3), np.float32))
        for refused in (np.ones((3, 4), np.float32), np.ones(3, np.float32), None, np.ones((3, 3))):
            try: session.run(module, refused)
            except flexor.FlexorError: pass
        try: session.run(module, np.ones((2000, 2000), np.float32))
        except flexor.FlexorError: pass
        session.bind("host", lambda x: 1 / 0)
        hosted = flexor.from_text('.func main(x: f32[N]) -> 1\\n  LOAD_LOCAL x\\n  CALL_FOREIGN host 1\\n  RETURN 1\\n')
        try: session.run(hosted, np.ones(3, np.float32))
        except ZeroDivisionError: pass
        session.explain(module, np.ones((3, 3), np.float32)), session.stats(), session.dashboard()
        @flexor.jit
        def f(x):
            return x + 1 if x.sum() > 0 else x - 1
        f(np.ones(3, np.float32)), f(-np.ones(3, np.float32)), f.explain(np.ones(3, np.float32))
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_follow_the_environment_and_the_affinity():
    code = "import flexor; s = flexor.Session(); print(s.stats()['threads'])"
    if "threads" not in flexor.Session().stats():
        pytest.skip("the number of threads is no statistic")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout == "1\n"


def test_an_unsupported_system_gets_one_sentence(tmp_path):
    package = tmp_path / "flexor"
    package.mkdir()
    for name in ("__init__.py", "_platform.py"):
        (package / name).write_text((Path(flexor.__file__).parent / name).read_text())
    code = "import sys{}\ntry:\n  import flexor\nexcept ImportError as e:\n  print(e)"
    for change, sentence in (
        ("", "this installation of flexor holds no compiled module for CPython"),
        ("; sys.platform = 'darwin'", "flexor needs Linux with glibc 2.35 or newer on x86_64 or aarch64, and CPython 3.10 to 3.13; this is darwin."),
        ("; import os; os.confstr = lambda _: 'glibc 2.31'", "and CPython 3.10 to 3.13; this is glibc 2.31."),
        ("; import os; os.uname = lambda: type('u', (), {'machine': 'riscv64'})", "this machine is riscv64."),
    ):
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", code.format(change)], env=env, capture_output=True, text=True)
        assert sentence in done.stdout and done.stdout.count("\n") == 1, (done.stdout, done.stderr)


@pytest.mark.slow
def test_import_takes_little_beside_numpy():
    def best(code: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    modules = "import sys, flexor; assert not [m for m in sys.modules if m.startswith('flexor.frontend') or m == 'torch']"
    subprocess.run([sys.executable, "-c", modules], check=True)
    names = "import flexor; flexor.builder.Builder; assert all(getattr(flexor, n) for n in flexor.__all__) and set(flexor.__all__) <= set(dir(flexor))"
    subprocess.run([sys.executable, "-c", names], check=True)
    assert best("import flexor") - best("import numpy") < 0.5
