"""Adapters: one module per engine, each with a class `Engine`.

An Engine has `versions` (dict), `build(program)`, `bind(program, arrays)` → (callable, arguments) and
`to_numpy(result)`.
`bind` prepares whatever the engine wants to hold before the clock starts; the callable does one run.
"""

import importlib

# engine name → (module, constructor argument)
ENGINES = {
    "flexor": ("flexor_engine", "numpy"),
    "flexor-torch": ("flexor_engine", "torch"),
    "flexor-exact-only": ("flexor_engine", "exact-only"),
    "flexor-jit": ("jit_engine", "live"),
    "flexor-jit-frozen": ("jit_engine", "frozen"),
    "torch-eager": ("torch_engine", "eager"),
    "torch-compile": ("torch_engine", "default"),
    "torch-compile-dynamic": ("torch_engine", "dynamic"),
    "onnxruntime": ("ort_engine", "run"),
    "onnxruntime-mha": ("ort_engine", "mha"),
    "onnxruntime-iobinding": ("ort_engine", "iobinding"),
    "numpy": ("numpy_engine", ""),
    "hand": ("hand_engine", ""),
}

# Engines that are floors or our own: never counted as the best rival.
NOT_RIVALS = ("flexor", "flexor-torch", "flexor-exact-only", "flexor-jit", "flexor-jit-frozen", "flexor-cpp", "hand")


def create(name):
    module, argument = ENGINES[name]
    return importlib.import_module(f"bench.engines.{module}").Engine(argument)
