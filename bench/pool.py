"""Worker processes, one per engine, asked one after the other: two engines never run at the same time."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from . import native

ROOT = Path(__file__).resolve().parent.parent
SETTLE_S = 0.05  # after an answer: lets the engine's spinning threads fall asleep before the next engine runs


class EngineError(RuntimeError):
    """An engine could not start or a request failed; the text is the engine's own."""


class Worker:
    def __init__(self, engine, cache="inductor"):
        native.BUILD.mkdir(parents=True, exist_ok=True)
        self.engine = engine
        threads = str(len(os.sched_getaffinity(0)))
        environment = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(native.BUILD / f"{cache}-{engine}"))
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = threads
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
        self.log = native.BUILD / f"worker-{engine}.log"
        command = [sys.executable, "-m", "bench.worker", engine]
        with open(self.log, "w") as log:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            self.process = subprocess.Popen(command, text=True, env=environment, cwd=ROOT, **pipes)
        self.versions = self._answer()["versions"]

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            last = self.log.read_text().strip().splitlines()[-1:] or ["no output"]
            how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise EngineError(f"{self.engine}: {how}: {last[0]}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(f"{self.engine}: {answer['error']}")
        return answer

    def ask(self, cmd, **request):
        try:
            self.process.stdin.write(json.dumps({"cmd": cmd, **request}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer's end of file tells the story
        answer = self._answer()
        time.sleep(SETTLE_S)
        return answer

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it ended first; a request was still in the pipe
        self.process.wait()


class Pool:
    """The engines of one group. Engines that fail drop out with a note; the others go on.

    Use as a context manager; `ask_all(cmd, ...)` gives {engine: answer} in a fixed order.
    """

    def __init__(self, names, note, cache="inductor"):
        self.note, self.workers = note, {}
        for name in names:
            try:
                self.workers[name] = Worker(name, cache)
            except EngineError as error:
                note(str(error))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers.values():
            worker.close()

    def __contains__(self, name):
        return name in self.workers

    def ask(self, name, cmd, **request):
        """One engine's answer, or None when it is not there or fails (it then leaves the pool)."""
        worker = self.workers.get(name)
        if worker is None:
            return None
        try:
            return worker.ask(cmd, **request)
        except EngineError as error:
            self.drop(name, str(error).removeprefix(f"{name}: "))
            return None

    def drop(self, name, reason):
        """Ends one engine's worker and says why."""
        self.note(f"{name}: {reason}")
        self.workers.pop(name).close()

    def ask_all(self, cmd, **request):
        answers = {name: self.ask(name, cmd, **request) for name in list(self.workers)}
        return {name: answer for name, answer in answers.items() if answer is not None}
