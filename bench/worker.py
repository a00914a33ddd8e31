"""One engine behind a line protocol: a JSON request per line on stdin, a JSON answer per line on stdout.

Started by `bench.pool`; blocked in the read while other engines are measured. Requests name a `cmd`:
build, time, sweep, each, call, out, stats, reset, save, memory. Times are in seconds. An error answers
{"error": text} and the worker lives on.
"""

import json
import os
import sys
import time
import timeit

import numpy as np

from . import engines, programs


class Worker:
    def __init__(self, name):
        self.engine = engines.create(name)
        self.bound = {}

    def _bound(self, request, shape):
        key = (request["program"], json.dumps(shape, sort_keys=True))
        if key not in self.bound:
            self.bound[key] = self.engine.bind(request["program"], programs.inputs(request["program"], shape))
        return self.bound[key]

    def build(self, request):
        start = time.perf_counter()
        self.engine.build(request["program"])
        return {"build_s": time.perf_counter() - start}

    def time(self, request):
        """`n` samples of the mean of `inner` runs at one shape, after `warm` runs."""
        call, arguments = self._bound(request, request["shape"])
        for _ in range(request.get("warm", 2)):
            call(*arguments)
        inner = request.get("inner", 1)
        names = {f"a{i}": a for i, a in enumerate(arguments)}
        timer = timeit.Timer(f"call({', '.join(names)})", globals={"call": call, **names})
        return {"s": [t / inner for t in timer.repeat(request["n"], inner)]}

    def sweep(self, request):
        """`n` samples of one pass over all shapes, every shape with buffers of its own, after one pass."""
        bound = [self._bound(request, shape) for shape in request["shapes"]]
        samples = []
        for sample in range(request["n"] + 1):
            start = time.perf_counter()
            for call, arguments in bound:
                call(*arguments)
            if sample:
                samples.append(time.perf_counter() - start)
        return {"s": samples}

    def each(self, request):
        """Per shape, in order: the first run and then `repeat` more, [[first, again, ...], ...].

        Every run has inputs of its own, made outside the clock: no run finds them in a nearer cache than another.
        """
        out = []
        for shape in request["shapes"]:
            times = []
            for _ in range(1 + request.get("repeat", 0)):
                call, arguments = self.engine.bind(request["program"], programs.inputs(request["program"], shape))
                start = time.perf_counter()
                call(*arguments)
                times.append(time.perf_counter() - start)
            out.append(times)
        return {"s": out}

    def call(self, request):
        """Runs given inputs `1 + repeat` times; the result goes back as a nested list."""
        arrays = [np.array(a) for a in request["inputs"]]
        call, arguments = self.engine.bind(request["program"], arrays)
        times = []
        for _ in range(1 + request.get("repeat", 0)):
            start = time.perf_counter()
            result = call(*arguments)
            times.append(time.perf_counter() - start)
        return {"s": times, "result": self.engine.to_numpy(result).tolist()}

    def out(self, request):
        call, arguments = self._bound(request, request["shape"])
        np.save(request["path"], self.engine.to_numpy(call(*arguments)))
        return {}

    def stats(self, _request):
        return {"stats": self.engine.stats()}

    def reset(self, _request):
        self.engine.reset()
        self.bound.clear()
        return {}

    def save(self, request):
        self.engine.save(request["program"], request["path"])
        return {}

    def drop(self, _request):
        """Forgets prepared inputs."""
        self.bound.clear()
        return {}

    def memory(self, _request):
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        return {"peak_rss_bytes": int(status["VmHWM"].split()[0]) * 1024}


COMMANDS = ("build", "time", "sweep", "each", "call", "out", "stats", "reset", "save", "drop", "memory")


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an engine prints goes to the log, never between the answers

    def answer(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    worker = Worker(sys.argv[1])
    answer({"versions": worker.engine.versions})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["cmd"] not in COMMANDS:
                raise ValueError(f"unknown command {request['cmd']!r}")
            answer(getattr(worker, request["cmd"])(request))
        except Exception as error:  # an engine's failure is a result: it is reported in the table
            answer({"error": f"{type(error).__name__}: {error}"[:600]})


if __name__ == "__main__":
    main()
