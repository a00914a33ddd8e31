"""Compiles Triton source to machine code: a process of its own, without torch and without a GPU.

    python _triton_worker.py

The first line it writes is ``triton VERSION``, or ``missing REASON``, after which it ends. Then it answers requests, one at
a time, until its input ends. Requests and answers are lines of words, and bytes whose length the last line states:

    request                              answer
      function NAME                        ok                          refused
      target cuda 90                       name SYMBOL                 error LENGTH
      argument NAME TYPE                   warps COUNT                 <text>
      constant NAME INTEGER                shared BYTES
      divisible NAME                       scratch BYTES ALIGNMENT
      warps COUNT                          parameters SIZE...
      stages COUNT                         cubin LENGTH
      source LENGTH                        <cubin>
      <text>

Arguments stand in the order of the function's parameters, TYPE as Triton writes it (``*fp32``, ``i64``); constants are its
constexpr parameters; values of a divisible argument are multiples of 16. ``parameters`` are the sizes of the launch's
parameters in bytes: the arguments, then two pointers of Triton's own.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import re
import sys
from typing import Any, BinaryIO

# The versions whose compiler and launch convention were checked.
OLDEST = (3, 6)
NEWEST = (3, 6)

_PTX_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


class Refused(Exception):
    """A request that cannot be served; the next one can."""


def load_source(source: str) -> dict[str, Any]:
    """The names that a module of that text defines. Triton reads the text again through linecache: no file is needed."""
    name = f"<triton-{hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), namespace)
    return namespace


def parameter_sizes(ptx: str) -> list[int]:
    """Sizes of the parameters of the one entry of a PTX text."""
    head = re.search(r"\.entry\s+\S+\(\s*(.*?)\)", ptx, re.S)
    if head is None:
        return []
    return [_PTX_SIZES[bits] for bits in re.findall(r"\.param\s+\.[busf](8|16|32|64)\b", head.group(1))]


class Request:
    """One request as it is read."""

    def __init__(self) -> None:
        self.function = ""
        self.target = ("cuda", 90)
        self.arguments: list[tuple[str, str]] = []
        self.constants: dict[str, int] = {}
        self.divisible: list[str] = []
        self.options: dict[str, Any] = {}
        self.source = ""

    @staticmethod
    def read(stream: BinaryIO) -> Request | None:
        """The next request, or nothing at the end of the input."""
        request = Request()
        while line := stream.readline():
            key, *words = line.decode().split()
            if key == "source":
                length = int(words[0])
                text = stream.read(length)
                if len(text) < length:
                    return None
                request.source = text.decode()
                return request
            request._take(key, words)
        return None

    def _take(self, key: str, words: list[str]) -> None:
        if key == "function":
            self.function = words[0]
        elif key == "target":
            self.target = (words[0], int(words[1]))
        elif key == "argument":
            self.arguments.append((words[0], words[1]))
        elif key == "constant":
            self.constants[words[0]] = int(words[1])
        elif key == "divisible":
            self.divisible.append(words[0])
        elif key == "warps":
            self.options["num_warps"] = int(words[0])
        elif key == "stages":
            self.options["num_stages"] = int(words[0])
        else:
            raise Refused(f"unknown word {key!r} in a request")


def compile_request(request: Request) -> tuple[list[str], bytes]:
    """The lines of the answer and the cubin.

    Raises
    ------
    Refused
        Triton does not take the source.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    try:
        function = load_source(request.source)[request.function]
        places = {name: i for i, name in enumerate(function.arg_names)}
        source = ASTSource(
            function,
            {**dict(request.arguments), **{name: "constexpr" for name in request.constants}},
            {(places[name],): value for name, value in request.constants.items()},
            {(places[name],): [["tt.divisibility", 16]] for name in request.divisible},
        )
        # Denormals are values: libdevice must not flush them.
        options = {"enable_reflect_ftz": False, **request.options}
        kernel = triton.compile(source, target=GPUTarget(*request.target, 32), options=options)
    except Exception as error:  # a compiler's own errors have no common type
        raise Refused(f"{type(error).__name__}: {error}") from error
    data = kernel.metadata
    lines = [
        f"name {data.name}",
        f"warps {data.num_warps}",
        f"shared {data.shared}",
        f"scratch {data.global_scratch_size} {data.global_scratch_align}",
        "parameters " + " ".join(map(str, parameter_sizes(kernel.asm["ptx"]))),
    ]
    return lines, kernel.asm["cubin"]


def version_line() -> str:
    """What the worker says first."""
    try:
        import triton
    except Exception as error:  # an import that fails may raise anything
        return f"missing {type(error).__name__}: {error}".replace("\n", " ")
    version = tuple(int(part) for part in re.findall(r"\d+", triton.__version__)[:2])
    if not OLDEST <= version <= NEWEST:
        ours = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        return f"missing Triton {ours}: found {triton.__version__}"
    return f"triton {triton.__version__}"


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until they end."""
    first = version_line()
    answers.write(first.encode() + b"\n")
    answers.flush()
    if first.startswith("missing"):
        return
    while (request := Request.read(requests)) is not None:
        try:
            lines, cubin = compile_request(request)
            answer = "\n".join(["ok", *lines, f"cubin {len(cubin)}", ""]).encode() + cubin
        except Refused as error:
            text = str(error).encode()
            answer = f"refused\nerror {len(text)}\n".encode() + text
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    # What compilers print must not mix with the answers.
    private = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # Beside the package's modules, this file's folder must not hide the standard library's.
    sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
    serve(sys.stdin.buffer, private)
