"""Runs whole programs on this machine's GPU, on torch's CUDA tensors: values against torch, then times beside torch's.

    python tools/gpu/session.py OUT [CASE...]

Needs torch with CUDA, Triton, and the package (PYTHONPATH, built for this interpreter). Every case runs in a process of its
own with a limit, so that one that fails or hangs costs itself alone. OUT gets ``session-CARD.json``; exits 1 if a case failed.
"""

import argparse
import copy
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 150  # seconds a case
SIZES = (0, 1, 2, 15, 16, 17, 33)
TOLERANCE = {"float32": 2e-5, "bfloat16": 2e-2, "float64": 1e-11, "float16": 4e-3}


def difference(found, wanted):
    """The largest difference relative to the largest value, both as float64 on the host."""
    a, b = found.double().cpu(), wanted.double().cpu()
    assert found.is_cuda and a.shape == b.shape and found.dtype == wanted.dtype, (found.device, a.shape, b.shape, found.dtype)
    if a.numel() == 0:
        return 0.0
    nans = b.isnan()
    assert bool((a.isnan() == nans).all()), "NaN at other places"
    scale = max(1.0, float(b[~nans].abs().max()) if bool((~nans).any()) else 1.0)
    return float((a - b)[~nans].abs().max()) / scale if bool((~nans).any()) else 0.0


def check(found, wanted, result, dtype="float32", factor=1.0):
    worst = difference(found, wanted)
    result["worst"] = max(result.get("worst", 0.0), worst)
    limit = TOLERANCE[dtype] * factor
    assert worst <= limit, f"differs by {worst}, more than {limit}"


def settle():
    """Waits until what calls have left to other threads is there: variants of kernels, and graphs."""
    import flexor

    flexor.default_session().settle()


def times(torch, call, calls=200):
    """Microseconds: of the host to hand a call over, of one call with a wait, and of the device between events."""
    for _ in range(3):  # a size comes twice before it gets a graph, and its kernels before that
        call()
        settle()
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    host = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        host.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    synced = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        synced.append(time.perf_counter() - begin)
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(calls):
        call()
    last.record()
    torch.cuda.synchronize()
    return {
        "host_us": round(statistics.median(host) * 1e6, 2),
        "synced_us": round(statistics.median(synced) * 1e6, 2),
        "back_to_back_us": round(first.elapsed_time(last) * 1e3 / calls, 2),
    }


def microseconds(spent):
    return {
        "mean": round(statistics.mean(spent) * 1e6, 1),
        "median": round(statistics.median(spent) * 1e6, 1),
        "max": round(max(spent) * 1e6, 1),
    }


def synced(torch, run, inputs):
    spent = []
    for x in inputs:
        begin = time.perf_counter()
        run(x)
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - begin)
    return spent


def summary(stats):
    keys = ("calls", "failed_calls", "kernel_launches", "device_launches", "library_launches", "device_syncs", "device_copied_bytes", "compilations")
    keys += ("graph_launches", "graph_misfits", "graphs_built", "graphs_refused", "graphs_evicted")
    kept = {key: stats[key] for key in keys}
    kept["compile_seconds"] = round(stats["compile_seconds"], 3)
    kept["fallbacks"] = [{k: row[k] for k in ("op", "reason", "count")} for row in stats["fallbacks"][:20]]
    kept["launches_of_entries"] = [entry["kernels"] for entry in stats["entries"]]
    return kept


def module_of(flexor, build):
    builder = flexor.Builder()
    build(builder)
    return builder.build()


# ---------------------------------------------------------------- values


def case_doctor(torch, flexor, result):
    result["report"] = flexor.doctor()
    assert "missing" not in result["report"], result["report"]


def case_add_relu_sum(torch, flexor, result):
    from bench import models, torch_models

    module, oracle = models.add_relu_sum(), torch_models.add_relu_sum
    for n in SIZES:
        for shape in ((2, n, 33), (n, 3, 17), (1, 2, n), (n, n, n)):
            a, b = torch.randn(shape, device="cuda"), torch.randn(shape, device="cuda")
            check(module(a, b), oracle(a, b), result)
    a = torch.randn(8, 64, 99, device="cuda")
    a[0, 0, 0] = float("nan")
    for x, y in (
        (a.transpose(0, 1), a.transpose(0, 1).clone()),
        (a[:, 1::2], a[:, ::2]),
        (a[..., 1:], a[..., :-1]),
        (a.expand(8, 64, 99), a[:1].expand(8, 64, 99)),
    ):
        check(module(x, y), oracle(x, y), result)
    a, b = (torch.randn(8, 128, 768, device="cuda") for _ in range(2))
    result["flexor"], result["torch"] = times(torch, lambda: module(a, b)), times(torch, lambda: oracle(a, b))


def case_chain(torch, flexor, result):
    import torch.nn.functional as F
    from bench import models
    from bench.weights import chain_weights

    w = {name: torch.from_numpy(array).cuda() for name, array in chain_weights().items()}
    module = models.chain()

    def oracle(x):
        return torch.softmax(F.gelu(F.layer_norm(x, (x.shape[-1],), w["g"], w["b"], 1e-5)) + x, -1)

    for n in SIZES:
        x = torch.randn(2, n, 768, device="cuda")
        check(module(x), oracle(x), result)
    x = torch.randn(8, 2731, 768, device="cuda")  # 64 MB
    check(module(x), oracle(x), result)
    y = torch.empty_like(x)
    result["flexor"] = times(torch, lambda: module(x), 50)
    result["torch"] = times(torch, lambda: oracle(x), 50)
    result["copy"] = times(torch, lambda: y.copy_(x), 50)


def encoder_of(torch, flexor, layers, dtype, config=None):
    from bench import models, torch_models
    from bench.weights import EncoderConfig, encoder_weights

    config = config or EncoderConfig()
    kind = getattr(torch, dtype)
    builder = flexor.Builder()
    length = builder.symbol("S", 1, 4096)
    weights = []
    for seed in range(layers):
        arrays = {k: torch.from_numpy(v).to(kind) for k, v in encoder_weights(config, seed).items()}
        weights.append(models.add_weights(builder, arrays, f"layer{seed}."))
    f = builder.function("main", inputs=[("x", dtype, ["B", length, config.dim])])
    (x,) = f.inputs
    for layer in weights:
        x = models.encoder_layer(f, x, layer, config)
    f.output(x)
    return builder.build(), torch_models.encoder(layers, config).to(kind).cuda()


def run_encoder(torch, flexor, result, layers, dtype, lengths, timed):
    torch.backends.cuda.matmul.allow_tf32 = False
    module, oracle = encoder_of(torch, flexor, layers, dtype)
    exact = copy.deepcopy(oracle).double() if dtype == "float32" else None
    with torch.no_grad():
        begin = time.perf_counter()
        x = torch.randn(8, lengths[0], 768, device="cuda", dtype=getattr(torch, dtype))
        module(x)
        torch.cuda.synchronize()
        result["first_call_seconds"] = round(time.perf_counter() - begin, 3)
        for length in lengths:
            x = torch.randn(8, length, 768, device="cuda", dtype=getattr(torch, dtype))
            wanted = exact(x.double()).float() if exact is not None else oracle(x)
            check(module(x), wanted, result, dtype, factor=3.0 * layers**0.5)
        if not timed:
            return
        kind = getattr(torch, dtype)
        fresh = lambda lengths: [torch.randn(8, n, 768, device="cuda", dtype=kind) for n in lengths]
        # A length that is new, beside one that was just seen: before graphs are there, and behind.
        lengths = torch.randperm(224, generator=torch.Generator().manual_seed(2))[:60].add(33).tolist()
        result["first_call"] = {}
        for state in ("cold", "warm"):
            half, lengths = lengths[:30], lengths[30:]
            firsts, seconds = [], []
            for x in fresh(half):
                torch.cuda.synchronize()
                first, second, third = synced(torch, module, [x, x, x])
                firsts.append(first)
                seconds.append(min(second, third))
            result["first_call"][state] = {"first": microseconds(firsts), "repeated": microseconds(seconds)}
            settle()
        for _ in range(2):
            for x in fresh(range(32, 257, 32)):
                module(x)
            settle()
        for length in (33, 47, 64, 128, 200, 256):
            x = torch.randn(8, length, 768, device="cuda", dtype=kind)
            wanted = exact(x.double()).float() if exact is not None else oracle(x)
            check(module(x), wanted, result, dtype, factor=3.0 * layers**0.5)
        result["built_before"] = flexor.stats()["graphs_built"]
        result["timed"] = {}
        for length in timed:
            x = torch.randn(8, length, 768, device="cuda", dtype=getattr(torch, dtype))
            result["timed"][length] = {
                "flexor": times(torch, lambda: module(x), 50),
                "torch": times(torch, lambda: oracle(x), 50),
            }
        # Every length new to both, synced.
        lengths = torch.randint(32, 257, (300,), generator=torch.Generator().manual_seed(1)).tolist()
        inputs = fresh(lengths)
        for name, run in (("flexor", module), ("torch", oracle)):
            result[f"sweep_{name}_us"] = microseconds(synced(torch, run, inputs))
        result["built_in_sweep"] = flexor.stats()["graphs_built"] - result["built_before"]


def case_encoder_f32(torch, flexor, result):
    run_encoder(torch, flexor, result, 1, "float32", [1, 2, 15, 16, 17, 33, 128], [128])


def case_encoder_bf16(torch, flexor, result):
    run_encoder(torch, flexor, result, 1, "bfloat16", [1, 2, 15, 16, 17, 33, 128], [33, 128, 256])


def case_encoder12_bf16(torch, flexor, result):
    run_encoder(torch, flexor, result, 12, "bfloat16", [33, 64, 128, 200, 256, 47], [33, 128, 256])


def case_encoder12_bf16_torch(torch, flexor, result):
    """The rivals of encoder12_bf16 where nothing else runs: every length new, synced; eager, and compiled for all lengths."""
    model = encoder_of(torch, flexor, 12, "bfloat16")[1]
    lengths = torch.randint(32, 257, (300,), generator=torch.Generator().manual_seed(1)).tolist()
    inputs = [torch.randn(8, n, 768, device="cuda", dtype=torch.bfloat16) for n in lengths]
    with torch.no_grad():
        for name, run in (("torch", model), ("torch_compile_dynamic", torch.compile(model, dynamic=True))):
            begin = time.perf_counter()
            synced(torch, run, inputs[:3])
            result[f"first_calls_{name}_seconds"] = round(time.perf_counter() - begin, 3)
            result[f"sweep_{name}_us"] = microseconds(synced(torch, run, inputs))


def case_minilm_f32(torch, flexor, result):
    """Token ids to sentence embeddings: a lookup, six layers, a mean."""
    import numpy as np
    from bench import models, torch_models
    from bench.weights import MiniLMConfig, encoder_weights

    config = MiniLMConfig(eps=1e-12, dim=384, ffn=1536)
    rng = np.random.default_rng(0)
    w = {name: rng.standard_normal((rows, 384), dtype=np.float32) for name, rows in (("we", 1000), ("pe", 512), ("te", 1))}
    w["eg"], w["eb"] = np.ones(384, np.float32), np.zeros(384, np.float32)
    w["layers"] = [encoder_weights(config, seed) for seed in range(2)]
    module = models.minilm(w, config)
    oracle = torch_models.MiniLM(w, config).eval().cuda().double()
    with torch.no_grad():
        for batch, length in ((1, 1), (2, 7), (3, 33), (1, 128)):
            ids = torch.randint(0, 1000, (batch, length), device="cuda")
            check(module(ids), oracle(ids).float(), result, factor=5)
        session = flexor.Session()
        session.run(module, torch.full((1, 4), 5, device="cuda"))
        bad = torch.full((1, 4), 1000, device="cuda")
        try:
            session.run(module, bad)
            session.synchronize(0, torch.cuda.current_stream().cuda_stream)
            raise AssertionError("an index out of range was taken")
        except flexor.FlexorError as error:
            result["out_of_range"] = str(error)
        session.run(module, torch.full((1, 4), 5, device="cuda"))
        session.synchronize()


# ---------------------------------------------------------------- what it must not break on


def case_host_ops(torch, flexor, result):
    """Ops without a kernel run on the host, on copies, counted."""

    def build(b):
        f = b.function("main", inputs=[("x", "float32", ["N"])])
        (x,) = f.inputs
        f.output((f.cumsum(x * 2.0, axis=0) + 1.0).relu())

    module, session = module_of(flexor, build), flexor.Session()
    for n in SIZES:
        x = torch.randn(n, device="cuda")
        check(session.run(module, x), ((x * 2).cumsum(0) + 1).relu(), result)
    result["fallbacks"] = session.stats()["fallbacks"][:3]


def case_limits(torch, flexor, result):
    from bench import models

    module = models.add_relu_sum()
    session = flexor.Session(hard_limit="8MB", soft_limit="4MB")
    small = torch.randn(2, 3, 4, device="cuda")
    big = torch.randn(64, 1024, 1024, device="cuda")
    wanted = (small + small).relu().sum(-1)
    check(session.run(module, small, small), wanted, result)

    def build(b):
        f = b.function("main", inputs=[("x", "float32", ["N", "M", "K"])])
        (x,) = f.inputs
        f.output(f.cumsum(x * 2.0, axis=0))  # the product is no result: the session's memory

    doubled = module_of(flexor, build)
    try:
        session.run(doubled, big)
        raise AssertionError("more than the hard limit was given")
    except flexor.FlexorError as error:
        result["refusal"] = str(error)
    check(session.run(module, small, small), wanted, result)
    try:
        module(small, small.cpu())
        raise AssertionError("tensors on two devices were taken")
    except flexor.FlexorError as error:
        result["mixed"] = str(error)
    check(module(small, small), wanted, result)
    check(module(small.cpu(), small.cpu()).cuda(), wanted, result)


def case_capture(torch, flexor, result):
    from bench import models

    module = models.add_relu_sum()
    a = torch.randn(2, 3, 5, device="cuda")
    wanted = (a + a).relu().sum(-1)
    check(module(a, a), wanted, result)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            module(a, a)
        raise AssertionError("a call became part of a graph")
    except flexor.FlexorError as error:
        result["refusal"] = str(error)
    check(module(a, a), wanted, result)


def case_streams(torch, flexor, result):
    from bench import models

    module = models.add_relu_sum()
    streams = [torch.cuda.Stream() for _ in range(3)]
    for round_ in range(30):
        for stream in streams:
            with torch.cuda.stream(stream):
                a = torch.randn(8, 64 + round_, 768, device="cuda")
                torch.cuda._sleep(100_000)
                check(module(a, a), (a + a).relu().sum(-1), result)


def case_jit(torch, flexor, result):
    """Functions and torch's own modules, unchanged."""

    @flexor.jit
    def f(x, y):
        return (x + y).relu().sum(-1)

    for n in (1, 2, 33):
        a = torch.randn(n, 5, device="cuda")
        check(f(a, a), (a + a).relu().sum(-1), result)
        check(f(a.cpu(), a.cpu()).cuda(), (a + a).relu().sum(-1), result)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu")
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval().cuda()
    fast = flexor.jit(model)
    with torch.no_grad():
        for length in (7, 33, 12, 100):
            x = torch.randn(2, length, 64, device="cuda")
            check(fast(x), model(x), result, factor=20)
        settle()
        result["flexor"], result["torch"] = times(torch, lambda: fast(x)), times(torch, lambda: model(x))
    result["jit_stats"] = {k: v for k, v in fast.stats().items() if isinstance(v, int | float | str)}


def case_loop(torch, flexor, result):
    """A loop that the data ends, and a loop that writes in place."""

    def newton(a):
        x, i = a, 0
        while i < 20 and bool((x * x - a).abs().max() > 1e-6):
            x = 0.5 * (x + a / x)
            i += 1
        return x

    def shift(x, n):
        for i in range(n):
            x[i] += float(i)
        return x * 2

    fast = flexor.jit(newton)
    for n in (1, 2, 17, 1024):
        a = torch.rand(n, device="cuda") * 50 + 50
        check(fast(a), newton(a), result, factor=3)
    result["flexor"], result["torch"] = times(torch, lambda: fast(a), 50), times(torch, lambda: newton(a), 50)
    fast_shift = flexor.jit(shift)
    x = torch.randn(7, 5, device="cuda")
    y = x.clone()
    check(fast_shift(x, 4), shift(y, 4), result)
    check(x, y, result)


def case_attention(torch, flexor, result):
    """Masks, lengths and causality, on the device or on the host, counted."""
    import torch.nn.functional as F

    @flexor.jit
    def plain(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    @flexor.jit
    def causal(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    @flexor.jit
    def masked(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype in ("float32", "bfloat16"):
        for n in (1, 2, 15, 17, 33, 130):
            q, k, v = (torch.randn(2, 3, n, 64, device="cuda", dtype=getattr(torch, dtype)) for _ in range(3))
            mask = torch.rand(2, 1, n, n, device="cuda") > 0.3
            mask[..., 0] = True
            exact = [t.double() for t in (q, k, v)]
            for found, wanted in (
                (plain(q, k, v), F.scaled_dot_product_attention(*exact)),
                (causal(q, k, v), F.scaled_dot_product_attention(*exact, is_causal=True)),
                (masked(q, k, v, mask), F.scaled_dot_product_attention(*exact, attn_mask=mask)),
            ):
                check(found, wanted.to(getattr(torch, dtype)), result, dtype, factor=2)


def case_products(torch, flexor, result):
    """Products with bias, with more behind them, turned, in batches, of views: by the library where FLEXOR_CUBLASLT says so."""
    functional = torch.nn.functional
    torch.backends.cuda.matmul.allow_tf32 = False
    forms = {
        "linear": functional.linear,
        "gelu": lambda x, w, b: functional.gelu(functional.linear(x, w, b)),
        "relu": lambda x, w, b: torch.relu(functional.linear(x, w, b)) + 1,
        "left_turned": lambda x, w, b: torch.matmul(x.t(), x) + b.sum() * 0 + w.sum() * 0,
        "batches": lambda x, w, b: torch.matmul(x.unsqueeze(0).expand(3, -1, -1), w.t().unsqueeze(0) + b),
        "columns": lambda x, w, b: functional.linear(x[:, 1:], w[:, 1:], b),
    }
    jitted = {name: flexor.jit(form) for name, form in forms.items()}
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        kind = getattr(torch, dtype)
        for name, form in forms.items():
            for rows, width in ((1, 16), (17, 33), (300, 256), (0, 16)):
                x, w, b = (torch.randn(size, device="cuda", dtype=kind) for size in ((rows, width), (48, width), (48,)))
                if name == "batches":
                    b = b.new_zeros(48)
                found = jitted[name](x, w, b)
                exact = form(x.double(), w.double(), b.double())
                scale = max(1.0, float(exact.abs().max()) if exact.numel() else 1.0)
                check(found / scale, (exact / scale).to(kind), result, dtype, factor=2)
    result["library_launches"] = flexor.stats()["library_launches"]
    if os.environ.get("FLEXOR_CUBLASLT") == "always":
        assert result["library_launches"] > 50, result
    result["timed"] = {}
    linear, gelu = jitted["linear"], jitted["gelu"]
    for dtype, rows, n, k in (
        ("float32", 64, 768, 768),
        ("float32", 1024, 3072, 768),
        ("float64", 256, 768, 768),
        ("bfloat16", 1024, 2304, 768),
        ("bfloat16", 2048, 768, 3072),
    ):
        kind = getattr(torch, dtype)
        x, w, b = (torch.randn(size, device="cuda", dtype=kind) for size in ((rows, k), (n, k), (n,)))
        result["timed"][f"{dtype} {rows}x{n}x{k}"] = {
            "flexor": times(torch, lambda: linear(x, w, b), 100)["back_to_back_us"],
            "torch": times(torch, lambda: functional.linear(x, w, b), 100)["back_to_back_us"],
            "flexor, gelu": times(torch, lambda: gelu(x, w, b), 100)["back_to_back_us"],
            "torch, gelu": times(torch, lambda: functional.gelu(functional.linear(x, w, b)), 100)["back_to_back_us"],
        }


# ---------------------------------------------------------------- models of the package transformers, unchanged


def native_calls(fast, result):
    """What ran in Python instead, and where programs fell back."""
    import flexor

    result["jit_stats"] = {k: v for k, v in fast.stats().items() if v}
    result["interpreted_ops"] = flexor.stats()["interpreted_ops"]
    result["fallback_rows"] = [{k: r[k] for k in ("op", "reason", "count")} for r in flexor.stats()["fallbacks"]][:8]


def case_bert(torch, flexor, result):
    from transformers import BertConfig, BertModel

    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype in ("float32", "bfloat16"):
        kind = getattr(torch, dtype)
        torch.manual_seed(0)
        model = BertModel(BertConfig(), add_pooling_layer=False).eval().cuda()
        exact = BertModel(BertConfig(), add_pooling_layer=False).eval().cuda().double()
        exact.load_state_dict(model.state_dict())
        model = model.to(kind)
        fast = flexor.jit(model)
        with torch.no_grad():
            begin = time.perf_counter()
            fast(torch.randint(0, 30000, (1, 16), device="cuda"))
            torch.cuda.synchronize()
            result[f"{dtype}_first_call_seconds"] = round(time.perf_counter() - begin, 3)
            for batch, length in ((1, 16), (1, 33), (2, 7), (1, 128)):
                ids = torch.randint(0, 30000, (batch, length), device="cuda")
                wanted = exact(ids).last_hidden_state.to(kind)
                check(fast(ids).last_hidden_state, wanted, result, dtype, factor=6)
            for length in (16, 128):
                ids = torch.randint(0, 30000, (1, length), device="cuda")
                ours, theirs = times(torch, lambda: fast(ids), 40), times(torch, lambda: model(ids), 40)
                result[f"{dtype}_{length}"] = {"flexor": ours, "torch": theirs, "speedup": round(theirs["synced_us"] / ours["synced_us"], 2)}
        native_calls(fast, result)


def generate_case(torch, flexor, result, **options):
    from transformers import GPT2Config, GPT2LMHeadModel

    steps = 32
    for dtype in ("float32", "bfloat16"):
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config()).eval().cuda().to(getattr(torch, dtype))
        fast = flexor.jit(model)
        inputs = [torch.randint(3, 50000, (1, length), device="cuda") for length in (5, 9, 17, 40)]

        def generate(m, ids):
            return m.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=steps, min_new_tokens=steps,
                              pad_token_id=0, do_sample=False, **options)

        def timed(m, ids):
            spent = []
            for _ in range(3):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                generate(m, ids)
                torch.cuda.synchronize()
                spent.append(time.perf_counter() - begin)
            return round(min(spent) * 1e3, 2)

        with torch.no_grad():
            alike = 0
            begin = time.perf_counter()
            for ids in inputs:
                found, wanted = generate(fast, ids).tolist(), generate(model, ids).tolist()
                alike += found == wanted
            result[f"{dtype}_seconds_of_four"] = round(time.perf_counter() - begin, 2)
            result[f"{dtype}_alike"] = f"{alike} of {len(inputs)}"
            # With random weights scores lie close; what is equal in float32 is the measure.
            assert dtype != "float32" or alike == len(inputs), result
            generate(fast, inputs[1])
            settle()
            ours, theirs = timed(fast, inputs[1]), timed(model, inputs[1])
            result[dtype] = {"flexor_ms": ours, "torch_ms": theirs, "tokens": steps, "speedup": round(theirs / ours, 2)}
        native_calls(fast, result)


def case_gpt2_dynamic(torch, flexor, result):
    generate_case(torch, flexor, result)


def case_gpt2_static(torch, flexor, result):
    generate_case(torch, flexor, result, cache_implementation="static")


# ---------------------------------------------------------------- compiling beside the calls, and seen from outside


def case_background(torch, flexor, result):
    """New lengths wait for nothing: what is not compiled yet is served by what is."""
    module, oracle = encoder_of(torch, flexor, 12, "bfloat16")
    session = flexor.Session()
    with torch.no_grad():
        x = torch.randn(8, 100, 768, device="cuda", dtype=torch.bfloat16)
        begin = time.perf_counter()
        session.run(module, x)
        torch.cuda.synchronize()
        result["cold_seconds"] = round(time.perf_counter() - begin, 3)
        result["cold"] = {k: v for k, v in session.stats().items() if k.startswith("device_") and not isinstance(v, dict)}
        for name, pause in (("at once", 0.0), ("again", 5.0)):
            time.sleep(pause)
            before = session.stats()
            spent = []
            lengths = torch.randint(32, 257, (100,), generator=torch.Generator().manual_seed(2)).tolist()
            for n in lengths:
                x = torch.randn(8, n, 768, device="cuda", dtype=torch.bfloat16)
                torch.cuda.synchronize()
                begin = time.perf_counter()
                out = session.run(module, x)
                torch.cuda.synchronize()
                spent.append(time.perf_counter() - begin)
                if len(spent) % 25 == 0:
                    check(out, oracle(x), result, "bfloat16", factor=12)
            after = session.stats()
            counters = ("device_variants", "device_stand_ins", "device_compile_waits", "device_compile_wait_seconds", "device_launches")
            result[name] = {k: round(after[k] - before[k], 4) for k in counters}
            result[name]["us"] = {"median": round(statistics.median(spent) * 1e6, 1), "max": round(max(spent) * 1e6, 1)}


def case_profile(torch, flexor, result):
    module, _ = encoder_of(torch, flexor, 1, "bfloat16")
    x = torch.randn(8, 256, 768, device="cuda", dtype=torch.bfloat16)
    module(x)
    text = module.explain(x, profile=True)
    result["profile"] = text[text.index("profile:") :].split("\n\n")[0].splitlines()
    big = torch.randn(4096, 4096, device="cuda")

    @flexor.jit
    def add(a):
        return a + 1

    add(big)
    text = add.explain(big, profile=True)
    result["large"] = text[text.index("profile:") :].split("\n\n")[0].splitlines()
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        module(x)
        torch.cuda.synchronize()
    result["torch_profiler"] = sorted({e.key for e in seen.key_averages()})
    assert any(name.startswith("k_main_") for name in result["torch_profiler"]), result["torch_profiler"]


# ---------------------------------------------------------------- sizes and views


def case_shapes(torch, flexor, result):
    """Odd dims, views of every kind, grids above 65,535, more than 2^31 elements."""

    @flexor.jit
    def rows(x, y):
        return (x * y).relu().sum(-1)

    @flexor.jit
    def each(x):
        return x * 2.0 + 1.0

    for shape in ((0, 5), (5, 0), (1, 1), (7, 13), (70_001, 3), (3, 70_001), (1 << 20, 1)):
        a, b = torch.randn(shape, device="cuda"), torch.randn(shape, device="cuda")
        check(rows(a, b), (a.double() * b.double()).relu().sum(-1).float(), result, factor=4)
        check(each(a), a * 2.0 + 1.0, result)
    base = torch.randn(67, 130, device="cuda")
    for view in (base.t(), base[1:, 3:], base[::2, ::3], base[:, 5], base.flip(0), base[3].expand(9, 130), base.view(-1)[1:-1], base[0, 0]):
        check(each(view), view * 2.0 + 1.0, result)
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int32):
        view = (torch.randn(1000, device="cuda") * 9).to(dtype)[1:]
        found = each(view)
        wanted = view * 2.0 + 1.0
        check(found, wanted, result, str(wanted.dtype).removeprefix("torch."))
    large = torch.full(((1 << 31) + 77,), 3.0, device="cuda", dtype=torch.bfloat16)
    large[-1] = 5.0
    found = each(large)
    assert found.numel() == large.numel() and float(found[-1]) == 11.0 and float(found[0]) == 7.0
    assert bool((found[:-1] == 7.0).all())


def case_memory(torch, flexor, result):
    """No memory left: a clear error, and the next call works."""

    @flexor.jit
    def each(x):
        return x * 2.0

    small = torch.ones(5, device="cuda")
    each(small)
    free, _ = torch.cuda.mem_get_info()
    hold = torch.empty(int(free * 0.6), dtype=torch.uint8, device="cuda")
    ones = torch.ones(int(free * 0.25) // 4, device="cuda")
    try:
        each(ones)
        raise AssertionError("memory that is not there was given")
    except (flexor.FlexorError, torch.OutOfMemoryError) as error:
        result["refusal"] = f"{type(error).__name__}: {error}"
    check(each(small), small * 2, result)
    del hold
    torch.cuda.empty_cache()
    found = each(ones)
    assert bool((found[:1000] == 2).all()) and bool((found[-1000:] == 2).all())


def case_threads(torch, flexor, result):
    """Several threads, each on a stream of its own, on one jitted function."""
    import threading

    @flexor.jit
    def f(x, w):
        return torch.softmax(x @ w, -1)

    failures = []
    w = torch.randn(64, 64, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False

    def work(seed):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for i in range(40):
                    x = torch.randn(3 + (seed * 7 + i) % 29, 64, device="cuda")
                    found = f(x, w)
                    wanted = torch.softmax(x.double() @ w.double(), -1).float()
                    torch.cuda.current_stream().synchronize()
                    check(found, wanted, result, factor=4)
        except Exception as error:
            failures.append(repr(error))

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]


def run_case(name):
    import torch

    sys.path.insert(0, str(ROOT))
    import flexor

    torch.manual_seed(0)
    result = {"case": name}
    begin = time.perf_counter()
    try:
        globals()[f"case_{name}"](torch, flexor, result)
        torch.cuda.synchronize()
        result["ok"] = True
    except Exception as error:
        result["ok"] = False
        result["error"] = f"{type(error).__name__}: {error}"
        result["trace"] = traceback.format_exc()[-3000:]
    result["seconds"] = round(time.perf_counter() - begin, 2)
    result["stats"] = summary(flexor.stats())
    result["events"] = [e["text"] for e in flexor.default_session().events() if e["kind"] in ("compile_failed", "interpreted")][:10]
    print("RESULT " + json.dumps(result, default=str), flush=True)
    os._exit(0)  # after a kernel that failed the context is lost


def main():
    cases = [name.removeprefix("case_") for name in globals() if name.startswith("case_")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("cases", nargs="*", default=cases)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_case(options.run)
    results = []
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.cases or cases:
        try:
            with tempfile.TemporaryDirectory() as cache:  # Triton's: compiling is cold in every case
                child = subprocess.run(
                    [sys.executable, __file__, str(options.out), "--run", name],
                    capture_output=True,
                    text=True,
                    timeout=LIMIT,
                    env={**os.environ, "TRITON_CACHE_DIR": cache},
                )
            lines = [line for line in child.stdout.splitlines() if line.startswith("RESULT ")]
            failed = {"case": name, "ok": False, "error": f"ended with {child.returncode}", "trace": child.stderr[-3000:]}
            result = json.loads(lines[-1][7:]) if lines else failed
        except subprocess.TimeoutExpired:
            result = {"case": name, "ok": False, "error": f"did not end within {LIMIT} s"}
        results.append(result)
        (options.out / "session-partial.json").write_text(json.dumps(results, indent=1))
        print(name, "ok" if result["ok"] else "FAILED: " + result["error"][:1500], result.get("seconds"), flush=True)
    card = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.cuda.get_device_name())"], capture_output=True, text=True
    ).stdout.strip()
    name = re.sub(r"[^A-Za-z0-9]+", "-", card).strip("-") or "none"
    (options.out / f"session-{name}.json").write_text(json.dumps({"card": card, "cases": results}, indent=1))
    sys.exit(0 if all(result["ok"] for result in results) else 1)


if __name__ == "__main__":
    main()
