"""Groups of measurements, in the order they run. Each module has `run(context)` → rows; its name is the
group's name."""

NAMES = ("encoder", "hit_rate", "new_length", "overhead", "add_relu_sum", "chain", "loops", "minilm", "compile_time", "memory")
