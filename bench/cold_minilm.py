"""One cold start in this process: import flexor, load MiniLM from the .flx file, first result. Prints {"s":
seconds}."""

import time

START = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402

import flexor  # noqa: E402
import numpy as np  # noqa: E402

if __name__ == "__main__":
    module = flexor.load(sys.argv[1])
    embedding = module(np.array([[101, 2129, 2079, 1045, 4608, 2019, 6453, 1999, 18750, 1029, 102, 0]]))
    elapsed = time.perf_counter() - START
    assert "torch" not in sys.modules and np.isfinite(embedding).all()
    print(json.dumps({"s": elapsed}))
