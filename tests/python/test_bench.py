"""The harness itself: options, targets, the quiet check, one worker over its pipes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="rich prints the table")
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from bench import __main__ as program  # noqa: E402
from bench import engines, groups, quiet, rows, table, targets  # noqa: E402
from bench.groups import memory  # noqa: E402
from bench.pool import EngineError, Pool, Worker  # noqa: E402

pytestmark = pytest.mark.slow


def row(engine, seconds, group="chain", case="hot"):
    return rows.timed(group, case, engine, "8x129x768", [seconds])


def test_speed_up_is_against_the_best_rival_and_never_against_a_floor():
    results = [row("flexor", 1.0), row("torch-eager", 3.0), row("onnxruntime", 1.7), row("hand", 0.1)]
    assert targets.best_rival(results[0], results).engine == "onnxruntime"
    assert targets.reached(results[0], results) is True
    results[2] = row("onnxruntime", 1.5)
    assert targets.reached(results[0], results) is False
    assert targets.reached(results[1], results) is None


def test_a_target_without_its_rival_is_not_called_reached():
    alone = [row("flexor", 1.0, "encoder", "S=33"), row("onnxruntime", 9.0, "encoder", "S=33")]
    assert targets.reached(alone[0], alone) is None
    with_rival = [*alone, row("torch-compile-dynamic", 0.9, "encoder", "S=33")]
    assert targets.reached(alone[0], with_rival) is False


def test_rates_are_compared_by_value():
    low = rows.measured("hit_rate", "64 calls: hit rate", "flexor-exact-only", "", 0.2, "", 64)
    high = rows.measured("hit_rate", "500 calls: hit rate", "flexor", "", 0.998, "", 500)
    assert targets.reached(low, [low]) is False
    assert targets.reached(high, [high]) is True


def test_every_target_names_a_known_group_and_engine():
    for target in targets.TARGETS:
        assert target.group in groups.NAMES
        assert target.engine in program.ENGINES
        assert target.rival is None or target.rival in engines.ENGINES


def test_table_and_file_hold_every_row(tmp_path):
    results = [row("flexor", 1e-3), row("torch-eager", 2e-3)]
    assert table.render(results).row_count == 2
    path = tmp_path / "rows.json"
    rows.write(path, results)
    assert [r["engine"] for r in json.loads(path.read_text())] == ["flexor", "torch-eager"]


@pytest.mark.quick
def test_lower_bound_of_the_encoder_is_the_step_that_adds_its_residual():
    assert memory.lower_bound_bytes(1, 1, dim=10, ffn=40) == 60 * 4
    assert memory.lower_bound_bytes(8, 256) == 8 * 256 * 6 * 768 * 4


@pytest.mark.quick
def test_options():
    options = program._options(["--quick", "--group=chain,memory", "--json", "out.json", "--engine", "flexor"])
    assert options["quick"]
    assert options["group"] == ("chain", "memory")
    assert options["json"] == "out.json"
    assert options["engine"] == ("flexor",)
    for wrong in (["--nope"], ["--group"], ["--group", "nope"], ["chain"]):
        with pytest.raises(ValueError, match="argument|value|unknown"):
            program._options(wrong)


def test_a_busy_stranger_is_seen_and_named_but_our_own_child_is_not():
    spin = [sys.executable, "-c", "while True: pass"]
    child = subprocess.Popen(spin)
    started = subprocess.run(["sh", "-c", '"$0" "$@" >/dev/null 2>&1 & echo $!', *spin], capture_output=True, text=True)
    stranger = int(started.stdout)
    try:
        cores, busiest = quiet.others(0.5)
        pids = [pid for _, _, pid in busiest]
        assert stranger in pids
        assert child.pid not in pids
        assert cores > quiet.LIMIT
        assert "other processes use" in quiet.complaint(0.3)
    finally:
        os.kill(stranger, signal.SIGKILL)
        child.kill()
        child.wait()


def test_a_worker_answers_errors_and_lives_on():
    with Pool(["numpy"], pytest.fail) as pool:
        worker = pool.workers["numpy"]
        with pytest.raises(EngineError, match="no NumPy form of chain"):
            worker.ask("build", program="chain")
        worker.ask("build", program="tiny")
        answer = worker.ask("time", program="tiny", shape={"P": 4, "Q": 8}, n=3, inner=10)
        assert len(answer["s"]) == 3
        assert all(0 < s < 1 for s in answer["s"])
        answer = worker.ask("call", program="tiny", inputs=[[[1.0, -9.0]], [[2.0, 1.0]]])
        assert answer["result"] == [3.0]


def test_an_engine_that_is_killed_leaves_the_pool_with_its_signal():
    notes = []
    with Pool(["numpy"], notes.append) as pool:
        pool.workers["numpy"].process.kill()
        assert pool.ask_all("build", program="tiny") == {}
        assert "numpy" not in pool
    assert "signal 9" in notes[0]


def test_an_engine_that_cannot_start_leaves_a_note():
    notes = []
    with Pool(["no-such-engine"], notes.append) as pool:
        assert not pool.workers
    assert "no-such-engine" in notes[0]


def test_a_worker_that_waits_uses_no_cpu():
    worker = Worker("numpy")
    try:
        stat = Path(f"/proc/{worker.process.pid}/stat")

        def ticks():
            return sum(map(int, stat.read_text().rsplit(")", 1)[1].split()[11:13]))

        def used_while_waiting():
            before = ticks()
            time.sleep(0.5)
            return ticks() - before

        # The first rounds may still see the worker start; one that spins uses every round.
        assert any(used_while_waiting() <= 1 for _ in range(10))
    finally:
        worker.close()
