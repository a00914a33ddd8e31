"""Compiles the bench's own C++ with the host's instruction set, once per source text and host."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "bench"


def _compiled(source, suffix, flags):
    text = (HERE / "cpp" / source).read_bytes()
    compiler = os.environ.get("CXX", "g++")
    key = hashlib.sha256(b"\0".join([text, repr((compiler, flags)).encode(), _cpu_flags()])).hexdigest()[:16]
    out = BUILD / f"{Path(source).stem}-{key}{suffix}"
    if not out.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        part = out.with_suffix(f".part{os.getpid()}")
        common = ["-std=c++20", "-O3", "-march=native", "-ffp-contract=fast", "-pthread", "-Wno-psabi"]
        subprocess.run([compiler, *common, *flags, str(HERE / "cpp" / source), "-o", str(part)], check=True)
        part.replace(out)
    return out


def _cpu_flags():
    for line in Path("/proc/cpuinfo").read_bytes().splitlines():
        if line.startswith((b"flags", b"Features")):
            return line
    return b""


def hand_library():
    """Shared library with the hand-written kernels and the machine floors."""
    return _compiled("hand.cpp", ".so", ["-shared", "-fPIC"])


class NotBuilt(RuntimeError):
    """The engine's C++ programs are not there yet; the text says what to build."""


def call_overhead_program():
    """The C++ call-overhead program, built by the project's own build from bench/cpp/call_overhead.cpp and
    found on the PATH."""
    program = shutil.which("flexor_call_overhead")
    if program is None:
        raise NotBuilt("flexor-cpp: flexor_call_overhead is not on the PATH; run through ./dev bench")
    return program
