"""The compiler's process, spoken to as the engine does it."""

import os
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).resolve().parents[2] / "python" / "flexor" / "_triton_worker.py"


class Compiler:
    """One process. ``first`` is what it says of Triton."""

    def __init__(self, **environment):
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        self.first = self.process.stdout.readline().decode().strip()

    def compile(self, case, target=90):
        """The lines of the answer by their first word, and the bytes at its end."""
        lines = [f"function {case['function']}", f"target cuda {target}", f"warps {case['warps']}", f"stages {case['stages']}"]
        lines += [f"argument {name} {kind}" for name, kind in case["signature"]]
        lines += [f"constant {name} {value}" for name, value in case["constants"].items()]
        lines += [f"divisible {name}" for name in case.get("divisible", [])]
        text = case["source"].encode()
        self.process.stdin.write("\n".join([*lines, f"source {len(text)}", ""]).encode() + text)
        self.process.stdin.flush()
        answer = {}
        while True:
            key, *words = self.process.stdout.readline().decode().split()
            answer[key] = words
            if key in ("cubin", "error"):
                return answer, self.process.stdout.read(int(words[0]))

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
