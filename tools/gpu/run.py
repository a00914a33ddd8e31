"""Runs the device kernels on this machine's GPU: what they leave in memory against the loop-IR evaluator, and how fast
they are. Needs Triton (for its compiler) and the CUDA driver; with torch, kernels are timed beside torch's own.

    python tools/gpu/run.py CASES OUT [--only numeric,rows,products,attention] [--tune]

CASES is the folder that tools/gpu/prepare wrote; OUT gets ``gpu-CARD.json``. With ``--tune`` every tiling is timed, and OUT
gets ``gemm_tiles.def`` with the best. Exits 1 if a kernel is wrong.
"""

import argparse
import gzip
import json
import math
import os
import pickle
import re
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from compiler import Compiler
from driver import Driver, DriverError, Kernel

# Relative to the value, or to 1 where it is smaller. f32: 2 ulp of a function and sums in another order.
TOLERANCE = {"f64": 1e-11, "f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}
FORMATS = {"bool": "B", "u8": "B", "i8": "b", "i32": "i", "i64": "q", "f16": "e", "bf16": "H", "f32": "f", "f64": "d"}
GUARD = 256  # bytes around each buffer that no kernel may touch
GUARD_BYTE = 0xA5


def mark_divisible(case):
    """Names the arguments that are multiples of 16, as a launch would find them: buffers are aligned."""
    case["divisible"] = [
        name
        for (name, _), argument in zip(case["signature"], case["arguments"])
        if "value" not in argument or (argument["value"] % 16 == 0 and not name.startswith("x"))
    ]


def compile_all(cases, target, processes):
    """The answers, one for each case; equal requests are compiled once."""
    keys = [json.dumps([c[k] for k in ("source", "signature", "constants", "divisible", "warps", "stages")]) for c in cases]
    first = {key: case for key, case in zip(keys, cases)}
    pending = list(first)

    def serve(part):
        compiler = Compiler()
        if not compiler.first.startswith("triton "):
            raise DriverError(f"no compiler: {compiler.first}")
        done = {key: compiler.compile(first[key], target) for key in part}
        compiler.close()
        return done

    answers = {}
    with ThreadPoolExecutor(processes) as pool:
        for done in pool.map(serve, [pending[i::processes] for i in range(processes)]):
            answers.update(done)
    return [answers[key] for key in keys], len(pending)


def decoded(data, dtype):
    count = len(data) // struct.calcsize(FORMATS[dtype])
    values = struct.unpack(f"<{count}{FORMATS[dtype]}", data)
    if dtype == "bf16":
        return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(v << 16 for v in values)))
    return values


def difference(found, wanted, dtype):
    tolerance = TOLERANCE.get(dtype, 0)
    for i, (a, b) in enumerate(zip(decoded(found, dtype), decoded(wanted, dtype))):
        if a == b or (a != a and b != b):
            continue
        if tolerance and math.isfinite(b) and abs(a - b) <= tolerance * max(1, abs(b)):
            continue
        return f"element {i} is {a}, not {b}"
    return None


def loaded(driver, answer):
    words, cubin = answer
    if "ok" not in words:
        raise DriverError(f"not compiled: {cubin.decode()[-400:]}")
    parameters = [int(size) for size in words["parameters"]]
    return Kernel(driver, cubin, words["name"][0], int(words["warps"][0]), int(words["shared"][0]), parameters)


def launch_arguments(case, buffers, fault, scratch=(), counters=0):
    def value(argument):
        if "buffer" in argument:
            return buffers[argument["buffer"]]
        if "scratch" in argument:
            return scratch[argument["scratch"]]
        if "counters" in argument:
            return counters
        return fault if "fault" in argument else argument["value"]

    return [value(argument) for argument in case["arguments"]]


def run_case(driver, case, answer):
    """What is wrong with the case on this card, or nothing. After a kernel that failed or did not end nothing is given
    back: the process has to end."""
    kernel = loaded(driver, answer)
    fault = driver.allocate(4)
    driver.write(fault, bytes(4))
    sizes = [len(text) // 2 for text in case["before"]]
    blocks = [driver.allocate(size + 2 * GUARD) for size in sizes]
    for block, text, size in zip(blocks, case["before"], sizes):
        driver.fill(block, GUARD_BYTE, size + 2 * GUARD)
        driver.write(block + GUARD, bytes.fromhex(text))
    scratch = [driver.allocate(piece["bytes"]) for piece in case["scratch"]]
    counters = driver.allocate(4 * case["counters"])
    driver.fill(counters, 0, 4 * case["counters"])
    arguments = launch_arguments(case, [block + GUARD for block in blocks], fault, scratch, counters)
    kernel.launch(programs(driver, case), arguments)
    driver.wait()
    counted = any(driver.read(counters, 4 * case["counters"]))
    memory = [driver.read(block, size + 2 * GUARD) for block, size in zip(blocks, sizes)]
    found = struct.unpack("<i", driver.read(fault, 4))[0] != 0
    for pointer in [*blocks, fault, *scratch, counters]:
        driver.free(pointer)
    kernel.unload()
    if counted:
        return "a counter is not 0 behind the launch"
    guard = bytes([GUARD_BYTE]) * GUARD
    for i, (data, text, size, dtype) in enumerate(zip(memory, case["after"], sizes, case["dtypes"])):
        if data[:GUARD] != guard or data[GUARD + size :] != guard:
            return f"buffer {i}: memory outside of it was written"
        wrong = difference(data[GUARD : GUARD + size], bytes.fromhex(text), dtype)
        if wrong:
            return f"buffer {i}: {wrong}"
    return None if found == case["fault"] else f"fault is {found}, not {case['fault']}"


def programs(driver, case):
    most = case["per_processor"] * driver.multiprocessors
    return min(case["tiles"], most) if most else case["tiles"]


def run_from(path, first):
    """The cases from ``first`` on, a line of JSON for each; ends the process."""
    with open(path, "rb") as file:
        cases, answers = pickle.load(file)
    driver = Driver()
    for case, answer in zip(cases[first:], answers[first:]):
        try:
            wrong = run_case(driver, case, answer)
        except DriverError as error:
            if "ok" in answer[0]:
                print(json.dumps({"lost": str(error)}), flush=True)
                os._exit(3)
            wrong = str(error)
        print(json.dumps({"wrong": wrong}), flush=True)
    os._exit(0)


def run_all(cases, answers):
    """What is wrong, by case. Cases run in a process of their own: after a kernel that fails, another goes on behind it."""
    wrong = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases"
        path.write_bytes(pickle.dumps((cases, answers)))
        first = lost = 0
        while first < len(cases) and lost < 20:
            child = subprocess.run(
                [sys.executable, __file__, "--from", str(first), str(path), folder], stdout=subprocess.PIPE, text=True
            )
            results = [json.loads(line) for line in child.stdout.splitlines()]
            for case, result in zip(cases[first:], results):
                if result.get("lost") or result.get("wrong"):
                    wrong[case["name"]] = result.get("lost") or result["wrong"]
            if child.returncode == 0:
                return wrong, len(cases)
            lost += 1
            if not results or "lost" not in results[-1]:
                wrong[cases[first + len(results)]["name"]] = f"the process ended with {child.returncode}"
                first += 1
            first += len(results)
    return wrong, first


def copy_bandwidth(driver, size):
    """GB/s of a device-to-device copy, read and written bytes counted."""
    source, target = driver.allocate(size), driver.allocate(size)
    driver.fill(source, 1, size)
    microseconds = driver.microseconds(lambda: driver.copy(target, source, size))
    driver.free(source)
    driver.free(target)
    return 2 * size / microseconds / 1e3


def read_cases(path):
    with gzip.open(path, "rt") as file:
        cases = [json.loads(line) for line in file]
    for case in cases:
        mark_divisible(case)
    return cases


KINDS = ("numeric", "rows", "products", "attention")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--groups", default="", help="a pattern: what is timed beside what was planned")
    parser.add_argument("--seconds", type=float, default=480, help="of all; what is not timed by then is left out")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--from", dest="first", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first is not None:
        run_from(options.cases, options.first)
    start = time.monotonic()
    driver = Driver()
    kinds = [kind for kind in KINDS if kind in options.only.split(",")]
    cases = {kind: read_cases(options.cases / f"{kind}.jsonl.gz") for kind in kinds}
    for kind in kinds:
        planned = lambda case: case.get("label", "planned") in ("planned", "rest")  # noqa: E731
        tuned = lambda case: options.tune and re.search(options.groups, case["group"])  # noqa: E731
        cases[kind] = [case for case in cases[kind] if planned(case) or tuned(case)]
    answers, distinct = compile_all(sum(cases.values(), []), driver.capability, options.processes)
    result = {
        "card": driver.name,
        "driver": driver.version,
        "capability": driver.capability,
        "compiled": distinct,
        "compile_seconds": round(time.monotonic() - start, 2),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"gpu-{re.sub(r'[^A-Za-z0-9]+', '-', driver.name).strip('-')}.json"

    def save():
        path.write_text(json.dumps(result, indent=1))

    ok = True
    if "numeric" in kinds:
        result["wrong"], result["ran"] = run_all(cases["numeric"], answers[: len(cases["numeric"])])
        ok = not result["wrong"] and result["ran"] == len(cases["numeric"])
        result["numeric_seconds"] = round(time.monotonic() - start - result["compile_seconds"], 2)
        save()
    try:
        result["copy_gb_per_s"] = round(copy_bandwidth(driver, 1 << 28), 1)
        result["copy_64_mb_gb_per_s"] = round(copy_bandwidth(driver, 1 << 26), 1)
        if len(kinds) > ("numeric" in kinds):
            from bench import Bench

            bench = Bench(driver, result, start + options.seconds, save)
            at = 0
            for kind in kinds:
                part = answers[at : at + len(cases[kind])]
                at += len(cases[kind])
                if kind != "numeric":
                    bench.run(kind, cases[kind], part)
            if "products" in kinds:
                result["torch_over_engine"] = bench.summary()
            if options.tune and "products" in kinds:
                (options.out / "gemm_tiles.def").write_text(bench.tiles())
    except (DriverError, ImportError) as error:
        # After a failed kernel the context is lost.
        result["stopped"] = str(error)
    save()
    print(json.dumps({k: v for k, v in result.items() if k not in KINDS}, indent=1)[:4000])
    for kind in kinds:
        for group, row in result.get(kind, {}).items():
            best = min(row["us"].items(), key=lambda item: item[1]) if row["us"] else ("", 0)
            print(kind, group, "floor", row["floor_us"], row["torch_us"], "library", row.get("library_us"), "planned", row["us"].get("planned"), "best", best)
    ok = ok and "stopped" not in result and not result.get("wrong_timed")
    sys.stdout.flush()
    os._exit(0 if ok else 1)


if __name__ == "__main__":
    main()
