"""What a long run leaves to others: signals, and the interpreter lock."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")

# One call each that nobody could wait for: what is printed before it, and after an interrupt.
SCRIPT = """
import signal
import numpy as np
import flexor

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process that was started in the background ignores it

def ones(*sizes):
    return np.broadcast_to(np.float32(1), sizes)

b = flexor.Builder()
KIND = {kind!r}
if KIND == "loop":
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    f.output(f.while_loop([f.inputs[0]], lambda x: (x.sum() >= 0.0).item(), lambda x: x * 1.0))
    small, large = [-ones(3)], [ones(3)]
elif KIND == "product":
    f = b.function("main", inputs=[("x", "float32", ["N", "K"]), ("y", "float32", ["K", "M"])])
    f.output(f.matmul(*f.inputs))
    small, large = [ones(2, 3), ones(3, 4)], [ones(64, 1 << 18), ones(1 << 18, 1 << 16)]
else:
    f = b.function("main", inputs=[("x", "float32", ["N"]), ("y", "float32", ["M"])])
    x, y = f.inputs
    f.output((x.unsqueeze(axis=1) * y.unsqueeze(axis=0)).exp().sum(axes=[1] if KIND == "rows" else [0, 1]))
    small, large = [ones(2), ones(3)], [ones(1 << 22), ones(1 << 22)]
module = b.build()
session = flexor.Session(compile=KIND != "interpreted loop")
before = session.run(module, *small)
for _ in range(20):
    session.run(module, *small)
print("ready", flush=True)
try:
    session.run(module, *large)
except KeyboardInterrupt:
    stopped = session.stats()["failed_calls"]
    np.testing.assert_array_equal(session.run(module, *small), before)
    print("interrupted", stopped, flush=True)
"""


@pytest.mark.parametrize("kind", ["loop", "rows", "sum", "product"])
def test_an_interrupt_reaches_a_run(kind):
    if kind != "loop" and not flexor._flexor.has_code_generator():
        pytest.skip("kernels that are cut in pieces")
    child = subprocess.Popen([sys.executable, "-c", SCRIPT.format(kind=kind)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=120)
    finally:
        child.kill()
    # The run itself was stopped; it did not come to its end before the signal was looked at.
    assert out == "interrupted 1\n"


def test_a_handler_may_call_the_engine_in_the_middle_of_a_run():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"]), ("y", "float32", ["M"])])
    x, y = f.inputs
    f.output((x.unsqueeze(axis=1) * y.unsqueeze(axis=0)).sum(axes=[0, 1]))
    module, session, seen = b.build(), flexor.Session(), []
    ones = [np.broadcast_to(np.float32(1), n) for n in (5, 1 << 14)]
    wanted = session.run(module, ones[1], ones[1])

    def handler(*_):
        seen.append(float(session.run(module, ones[0], ones[0])))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        while len(seen) < 3:
            assert session.run(module, ones[1], ones[1]) == wanted
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(seen) == {25.0}


def rows_module():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"]), ("y", "float32", ["M"])])
    x, y = f.inputs
    f.output((x.unsqueeze(axis=1) * y.unsqueeze(axis=0)).exp().sum(axes=[1]))
    return b.build()


def test_a_long_call_after_short_ones_lets_other_threads_run():
    """Other threads get the lock many times in a run that the run before it says nothing about."""
    module, session = rows_module(), flexor.Session()
    for _ in range(50):
        session.run(module, np.zeros(4, np.float32), np.zeros(4, np.float32))
    ticks, over = [0], threading.Event()

    def tick():
        while not over.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    size = 1 << 13
    x = np.broadcast_to(np.float32(0), size)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(20):
            begin, before = time.perf_counter(), ticks[0]
            session.run(module, x, x)
            got, took = ticks[0] - before, time.perf_counter() - begin
            if took > 0.3:
                break
            size *= 2
            x = np.broadcast_to(np.float32(0), size)
            session.run(module, np.zeros(4, np.float32), np.zeros(4, np.float32))
    finally:
        over.set()
        thread.join()
    assert took > 0.3, "no run was long enough to tell"
    assert got >= 20


def test_threads_that_need_one_compilation_do_not_wait_for_each_other_s_lock():
    """One compiles, and tells the log of it under the interpreter lock; the others wait for it without the lock."""
    for _ in range(5):
        module, session = rows_module(), flexor.Session()
        barrier = threading.Barrier(4)
        results = []

        def work():
            for n in range(1, 4):
                x = np.zeros((n, n), np.float32)[0] if n < 3 else np.zeros(n * 2, np.float32)[::2]
                barrier.wait()
                results.append(session.run(module, x, x).tolist() == [float(len(x))] * len(x))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
        assert results == [True] * 12
