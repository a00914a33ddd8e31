"""Times device kernels beside torch's, in graphs of many launches; weights change from launch to launch, so that they are
not found in the cache. Used by run.py."""

import math
import statistics
import time

import torch
import torch.nn.functional as functional
from run import launch_arguments, loaded, programs

from cublaslt import WORKSPACE, CublasLt
from driver import DriverError

TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
SIGNATURES = {
    "*fp32": torch.float32,
    "*fp64": torch.float64,
    "*bf16": torch.bfloat16,
    "*fp16": torch.float16,
    "*i64": torch.int64,
    "*i32": torch.int32,
    "*i8": torch.int8,
    "*u8": torch.uint8,
}
DEVICE = "cuda"
ROUNDS = 9
CACHE = 160 << 20  # bytes of rotated operands: several times the L2


def random_tensor(count, dtype, top):
    if dtype.is_floating_point:
        return torch.randn(count, device=DEVICE, dtype=torch.float32 if dtype != torch.float64 else dtype).to(dtype)
    return torch.randint(0, max(top, 1), (count,), device=DEVICE).to(dtype)


def relative_error(found, wanted):
    found, wanted = found.double(), wanted.double()
    return float((found - wanted).norm() / wanted.norm().clamp(min=1e-30))


class Bench:
    def __init__(self, driver, result, deadline, save):
        self.driver, self.result, self.deadline, self.save = driver, result, deadline, save
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(int(time.time()))
        self.shapes = {}
        self.cublaslt = self.workspace = None
        self.peak()

    def peak(self):
        """TFLOP/s of a large product on random data: the ceiling of the floors."""
        for name, dtype, size in (("bf16", torch.bfloat16, 8192), ("f16", torch.float16, 8192), ("f32", torch.float32, 4096), ("f64", torch.float64, 4096)):
            a, b = (torch.randn(size, size, device=DEVICE).to(dtype) for _ in range(2))
            us = self.time_torch([lambda: a @ b], 4)
            self.result[f"{name}_tflops"] = round(2 * size**3 / us / 1e6, 1)

    def time_torch(self, calls, launches):
        """Microseconds of a call, in a graph."""
        for call in calls[:2]:
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(launches):
                calls[i % len(calls)]()
        times = []
        for _ in range(ROUNDS + 3):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            graph.replay()
            last.record()
            torch.cuda.synchronize()
            times.append(first.elapsed_time(last) * 1e3 / launches)
        return round(statistics.median(times[3:]), 2)

    def time_kernel(self, case, kernel, arguments, launches):
        count = programs(self.driver, case)
        return self.time_launches(lambda i: kernel.launch(count, arguments[i % len(arguments)]), launches)

    def time_launches(self, launch, launches):
        def work():
            for i in range(launches):
                launch(i)

        launch(0)
        self.driver.wait()
        graph = self.driver.graph(work)
        us = self.driver.microseconds(lambda: self.driver.launch_graph(graph), ROUNDS + 3, 3) / launches
        self.driver.destroy_graph(graph)
        return round(us, 2)

    def run(self, kind, cases, answers):
        out = self.result.setdefault(kind, {})
        groups = {}
        for case, answer in zip(cases, answers):
            groups.setdefault(case["group"], []).append((case, answer))
        # What was planned, of all groups, comes first: time may end.
        for name, members in groups.items():
            if time.monotonic() > self.deadline:
                self.result.setdefault("left_out", []).append(name)
                continue
            out[name] = getattr(self, kind)(members)
            self.save()
        torch.cuda.empty_cache()

    def timed(self, members, sets, check, launches):
        """Times each member; ``sets``: lists of tensors to take turns, the first of which ``check`` looks at."""
        fault = torch.zeros(4, dtype=torch.int32, device=DEVICE)
        us = {}
        for case, answer in members:
            if time.monotonic() > self.deadline and us:
                break
            try:
                kernel = loaded(self.driver, answer)
            except DriverError as error:
                us[case["label"]] = float("inf")
                self.result.setdefault("refused", {})[f"{case['group']}: {case['label']}"] = str(error)[-200:]
                continue
            scratch = [torch.empty(piece["bytes"] + 16, dtype=torch.uint8, device=DEVICE) for piece in case["scratch"]]
            counters = torch.zeros(case["counters"] + 4, dtype=torch.int32, device=DEVICE)
            arguments = [
                launch_arguments(
                    case, [t.data_ptr() for t in each], fault.data_ptr(), [s.data_ptr() for s in scratch], counters.data_ptr()
                )
                for each in sets
            ]
            torch.cuda.synchronize()
            us[case["label"]] = self.time_kernel(case, kernel, arguments, launches)
            wrong = check()
            if wrong:
                self.result.setdefault("wrong_timed", {})[f"{case['group']}: {case['label']}"] = wrong
                us[case["label"]] = float("inf")
            kernel.unload()
        return us

    def floor(self, case, dtype):
        by_bytes = case["traffic"] / self.result["copy_gb_per_s"] / 1e3
        by_flops = case.get("flops", 0) / self.result[f"{dtype}_tflops"] / 1e6
        return round(max(by_bytes, by_flops), 2)

    # ---------------------------------------------------------------- kinds

    def rows(self, members):
        case = members[0][0]
        kinds = [SIGNATURES[kind] for name, kind in case["signature"] if name.startswith("b")]
        size = lambda i: case["bytes"][i] // torch.empty(0, dtype=kinds[i]).element_size()  # noqa: E731
        top = case["bytes"][0] // 8 // 1024
        sets = []
        while not sets or (len(sets) < 4 and len(sets) * sum(case["bytes"]) < CACHE):
            sets.append([random_tensor(size(i), kind, top) for i, kind in enumerate(kinds)])
        written = [i for i, t in enumerate(sets[0]) if f"tl.store(b{i} " in case["source"]]
        first = {}

        def check():
            # A kernel that changes what it reads gives something else each time.
            if "in_place" in case["group"]:
                return None
            for i in written:
                found = sets[0][i].double()
                if i not in first:
                    first[i] = found.clone()
                elif not relative_error(found, first[i]) <= 2e-4:
                    return f"buffer {i} differs from what the first tiling gives: {relative_error(found, first[i])}"
            return None

        us = self.timed(members, sets, check, 16)
        return {"floor_us": self.floor(case, "f32"), "torch_us": self.rows_in_torch(case["group"], sets), "us": us}

    def rows_in_torch(self, group, sets):
        name, _, shape = group.rpartition("_")
        rows, columns = map(int, shape.split("x"))
        view = lambda t: t[: rows * columns].view(rows, columns)  # noqa: E731
        calls = {
            "softmax": lambda t: lambda: torch.softmax(view(t), -1),
            "column_sum": lambda t: lambda: view(t).sum(0),
            "full_max": lambda t: lambda: view(t).max(),
            "layer_norm_in_place": lambda t: lambda: functional.layer_norm(view(t), (columns,)),
        }
        if name not in calls:
            return {}
        return {name: self.time_torch([calls[name](each[0]) for each in sets], 16)}

    def products(self, members):
        case = members[0][0]
        shape = self.shapes[case["group"]] = case["torch"]
        m, n, k, dtype = shape["m"], shape["n"], shape["k"], TORCH[shape["dtype"]]
        x = torch.randn(m, k, device=DEVICE).to(dtype)
        bias = torch.randn(n, device=DEVICE).to(dtype)
        other = torch.randn(m, n, device=DEVICE).to(dtype)
        out = torch.empty(m, n, device=DEVICE, dtype=dtype)
        count = max(2, min(64, CACHE // case["bytes"][1]))
        weights = [(torch.randn(n, k, device=DEVICE) / k**0.5).to(dtype) for _ in range(count)]
        sets = [[x, w, bias, out, *([other] if shape["residual"] else [])] for w in weights]
        launches = count * max(1, 32 // count)

        def reference(w):
            y = functional.linear(x.double(), w.double(), bias.double()).to(dtype)
            if shape["gelu"]:
                y = functional.gelu(y.double()).to(dtype)
            return y + other if shape["residual"] else y

        def library(w):
            y = functional.linear(x, w, bias)
            if shape["gelu"]:
                y = functional.gelu(y)
            return y + other if shape["residual"] else y

        # The graph ends with the last set's product.
        wanted = reference(weights[(launches - 1) % count])
        limit = {torch.float64: 1e-12, torch.float32: 1e-5}.get(dtype, 6e-3)

        def check():
            error = relative_error(out, wanted)
            out.fill_(float("nan"))
            return None if error < limit else f"relative error {error}"

        torch_us = {"linear": self.time_torch([lambda w=w: functional.linear(x, w, bias) for w in weights], launches)}
        if shape["gelu"] or shape["residual"]:
            torch_us["linear and more"] = self.time_torch([lambda w=w: library(w) for w in weights], launches)
        rest = [member for member in members if member[0]["label"] == "rest"]
        out_us = {"floor_us": self.floor(case, shape["dtype"]), "torch_us": torch_us}
        try:
            out_us["library_us"] = self.by_library(shape, sets, rest[0] if rest else None, check, launches)
        except DriverError as error:
            self.result.setdefault("refused", {})[f"{case['group']}: library"] = str(error)
        us = self.timed([member for member in members if member[0]["label"] != "rest"], sets, check, launches)
        chosen = out_us.get("library_us") if case["by_library"] else us.get("planned")
        return {**out_us, "by_library": case["by_library"], "engine_us": chosen, "us": us}

    def by_library(self, shape, sets, rest, check, launches):
        """As the engine has the library compute it: with a bias, and a kernel of its own behind it for what is left."""
        if self.cublaslt is None:
            self.cublaslt = CublasLt()
            self.workspace = torch.empty(WORKSPACE, dtype=torch.uint8, device=DEVICE)
        dtype, sizes = shape["dtype"], (shape["m"], shape["n"], shape["k"])
        made = torch.empty_like(sets[0][3])
        pointers = [[x.data_ptr(), w.data_ptr(), bias.data_ptr(), (made if rest else out).data_ptr()] for x, w, bias, out, *_ in sets]
        algorithm = self.cublaslt.algorithm(dtype, *sizes, pointers[0][2])
        kernel = arguments = None
        if rest:
            kernel = loaded(self.driver, rest[1])
            arguments = launch_arguments(rest[0], [t.data_ptr() for t in [*sets[0], made]], 0)

        def launch(i):
            self.cublaslt.multiply(
                dtype, sizes, algorithm, pointers[i % len(pointers)], self.workspace.data_ptr(), self.driver.stream
            )
            if rest:
                kernel.launch(programs(self.driver, rest[0]), arguments)

        torch.cuda.synchronize()
        us = self.time_launches(launch, launches)
        wrong = check()
        if wrong:
            self.result.setdefault("wrong_timed", {})[f"{shape}: library"] = wrong
        if rest:
            kernel.unload()
        return us

    def attention(self, members):
        case = members[0][0]
        shape = case["torch"]
        batch, heads, length, head = shape["batch"], shape["heads"], shape["length"], shape["head"]
        qkv = torch.randn(batch, length, 3, heads, head, device=DEVICE).to(torch.bfloat16)
        queries = shape["queries"]
        out = torch.empty(batch, queries, heads, head, device=DEVICE, dtype=torch.bfloat16)
        buffers = [qkv, out]
        mask, kept = None, 1.0
        if shape["lengths"]:
            lengths = torch.linspace(length // 8, length, batch, device=DEVICE).long()
            mask = (torch.arange(length, device=DEVICE) < lengths[:, None])[:, None, None, :]
            kept = float(lengths.double().mean()) / length
            buffers.append(lengths)
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
        q = q[:, :, :queries]
        causal = shape["causal"]

        def library():
            return functional.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)

        parts = []
        for b in range(batch):
            whole = functional.scaled_dot_product_attention(
                q[b].float(), k[b].float(), v[b].float(), None if mask is None else mask[b], is_causal=causal
            )
            parts.append(whole)
        wanted = torch.stack(parts).transpose(1, 2)

        def check():
            error = relative_error(out, wanted)
            out.fill_(float("nan"))
            return None if error < 6e-3 else f"relative error {error}"

        torch_us = {"sdpa": self.time_torch([library], 16)}
        if mask is not None:
            plain = lambda: functional.scaled_dot_product_attention(q, k, v)  # noqa: E731
            torch_us["sdpa without a mask"] = self.time_torch([plain], 16)
        us = self.timed(members, [buffers], check, 16)
        floor = self.floor({**case, "flops": case["flops"] * kept}, "bf16")
        return {"floor_us": floor, "torch_us": torch_us, "us": us}

    def summary(self):
        """Geometric means of torch's time, with what follows by kernels of its own, over the engine's."""
        ratios = {}
        for group, row in self.result.get("products", {}).items():
            shape = self.shapes[group]
            if not row["engine_us"] or shape["m"] == 16 or shape["m"] == 32:
                continue
            rows = "1 row" if shape["m"] == 1 else "64 rows" if shape["m"] == 64 else "264 to 2048 rows"
            kind = "fused" if shape["gelu"] or shape["residual"] else "alone"
            last = list(row["torch_us"].values())[-1]
            for who in ("engine", "own kernels"):
                us = row["engine_us"] if who == "engine" else row["us"]["planned"]
                ratios.setdefault(f"{shape['dtype']} {kind}, {rows}: {who}", []).append(last / us)
        return {name: round(statistics.geometric_mean(values), 3) for name, values in sorted(ratios.items())}

    def tiles(self):
        """Rows of gemm_tiles.def: what is best for a product and for what is fused with products of its size."""
        times = {}
        for group, row in self.result.get("products", {}).items():
            shape = self.shapes[group]
            key = (shape["n"], shape["k"], {"f64": 8, "f32": 4}.get(shape["dtype"], 2), shape["m"])
            us = {label: us for label, us in row["us"].items() if label != "planned"}
            if not us:
                continue
            for label, value in us.items():
                times.setdefault(key, {}).setdefault(label, []).append(value / min(us.values()))
        lines = []
        for (n, k, size, m), labels in sorted(times.items()):
            most = max(map(len, labels.values()))
            tile = min((math.prod(ratios), label) for label, ratios in labels.items() if len(ratios) == most)[1]
            lines.append(f"FLEXOR_GEMM_TILE({m}, {n}, {k}, {size}, {tile})")
        return "\n".join(lines) + "\n"
