"""Runs cases of write_cases in Triton's interpreter, on NumPy, and compares with what the evaluator left in the buffers.

    TRITON_INTERPRET=1 python interpret.py CASES.jsonl

Prints one line for each case that differs, then how many ran.
"""

import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

ROOT = Path(__file__).resolve().parents[2]

# Relative to the value, or to 1 where it is smaller.
TOLERANCE = {"f64": 1e-12, "f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}
TORCH = {
    "bool": torch.uint8,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
PROGRAMS = 5  # fewer than the tiles of most cases, so that programs take several


def patch_index():
    """NumPy from 2.4 makes no number of an array of one element, as which the interpreter holds a scalar."""
    patch = interpreter._patch_lang_tensor

    def patched(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched


def patch_dot():
    """The interpreter holds a bf16 as its bits, and multiplies these."""
    plain = interpreter.InterpreterBuilder.create_dot

    def widened(handle):
        if handle.dtype != tl.bfloat16:
            return handle
        bits = handle.data.view(numpy.uint16).astype(numpy.uint32) << 16
        return TensorHandle(bits.view(numpy.float32), tl.float32)

    def create_dot(self, a, b, d, *rest):
        return plain(self, widened(a), widened(b), d, *rest)

    interpreter.InterpreterBuilder.create_dot = create_dot


def load_worker():
    path = ROOT / "python" / "flexor" / "_triton_worker.py"
    spec = importlib.util.spec_from_file_location("triton_worker", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Library:
    """Triton's libdevice, which the interpreter lacks: computed in f64 and rounded to the operands' dtype."""

    _functions = {
        "div_rn": numpy.divide,
        "sqrt_rn": numpy.sqrt,
        "pow": numpy.vectorize(lambda a, b: _c_pow(a, b), otypes=[numpy.float64]),
        "atan2": numpy.arctan2,
        "fma": lambda a, b, c: a * b + c,
        "erf": lambda a: torch.erf(torch.from_numpy(numpy.ascontiguousarray(a))).numpy(),
    }

    def __getattr__(self, name):
        function = self._functions.get(name) or getattr(numpy, name)

        def call(*operands):
            handles = [operand.handle for operand in operands]
            with numpy.errstate(all="ignore"):
                data = function(*[handle.data.astype(numpy.float64) for handle in handles])
                data = numpy.asarray(data).astype(handles[0].data.dtype)
            element = operands[0].dtype
            shaped = [operand for operand in operands if operand.type.is_block()]
            kind = tl.block_type(element, list(data.shape)) if shaped else element
            return tl.tensor(TensorHandle(data, element), kind)

        return call


def _c_pow(a, b):
    try:
        return math.pow(a, b)
    except OverflowError:
        odd = b == math.floor(b) and b % 2 == 1
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        # A pole, or a negative base with a fraction.
        if a != 0:
            return math.nan
        odd = b == math.floor(b) and b % 2 == 1
        return math.copysign(math.inf, a) if odd else math.inf


def tensor(text, dtype):
    data = torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8).clone()
    return data.view(TORCH[dtype])


def difference(found, wanted, dtype):
    """Where two buffers differ, or nothing."""
    if dtype not in TOLERANCE:
        same = found == wanted
    else:
        a, b = found.double(), wanted.double()
        near = b.isfinite() & ((a - b).abs() <= TOLERANCE[dtype] * b.abs().clamp(min=1))
        same = (a == b) | (a.isnan() & b.isnan()) | near
    if same.all():
        return None
    at = int((~same).nonzero()[0])
    return f"element {at} is {found[at].item()}, not {wanted[at].item()}"


def run(case, worker):
    namespace = worker.load_source(case["source"])
    namespace["libdevice"] = Library()
    # The interpreter has no assembler.
    if "_quick_exp2" in namespace:
        namespace["_quick_exp2"] = Library().exp2
    if "_quick_inverse" in namespace:
        namespace["_quick_inverse"] = Library().reciprocal
    buffers = [tensor(text, dtype) for text, dtype in zip(case["before"], case["dtypes"])]
    fault = torch.zeros(1, dtype=torch.int32)
    scratch = [
        torch.full((max(piece["bytes"], 8),), 0xA5, dtype=torch.uint8).view(TORCH[piece["dtype"]])
        for piece in case["scratch"]
    ]
    counters = torch.zeros(max(case["counters"], 1), dtype=torch.int32)
    words = [buffers[word["buffer"]].data_ptr() if "buffer" in word else word["value"] for word in case.get("frame", ())]
    frame = torch.tensor(words, dtype=torch.int64)
    arguments = []
    for argument in case["arguments"]:
        if "frame" in argument:
            arguments.append(frame)
        elif "buffer" in argument:
            arguments.append(buffers[argument["buffer"]])
        elif "fault" in argument:
            arguments.append(fault)
        elif "scratch" in argument:
            arguments.append(scratch[argument["scratch"]])
        elif "counters" in argument:
            arguments.append(counters)
        else:
            arguments.append(argument["value"])
    if case["tiles"] > 0:
        with numpy.errstate(all="ignore"):
            programs = min(case["tiles"], PROGRAMS) if case["per_processor"] else case["tiles"]
            namespace[case["function"]][(programs,)](*arguments, **case["constants"])
    for i, (found, text, dtype) in enumerate(zip(buffers, case["after"], case["dtypes"])):
        wrong = difference(found, tensor(text, dtype), dtype)
        if wrong:
            return f"buffer {i}: {wrong}"
    if counters.any():
        return "a counter is not 0 behind the launch"
    if bool(fault.item()) != case["fault"]:
        return f"fault is {bool(fault.item())}, not {case['fault']}"
    return None


def main(path, filter=""):
    patch_index()
    patch_dot()
    worker = load_worker()
    ran = wrong = 0
    for line in Path(path).read_text().splitlines():
        case = json.loads(line)
        if filter not in case["name"]:
            continue
        ran += 1
        try:
            found = run(case, worker)
        except Exception as error:  # a kernel that does not even run is a case that differs
            found = f"{type(error).__name__}: {error}"
        if found:
            wrong += 1
            print(f"{case['name']}: {found}")
    print(f"ran {ran}, wrong {wrong}")


if __name__ == "__main__":
    main(*sys.argv[1:])
