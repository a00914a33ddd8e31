"""What `./dev test --fast` runs of the Python tests: of a module that is slow what is marked quick, of the others what is not marked
slow, and of a test with many parameters every STRIDE-th set of them."""

from collections import Counter

MANY = 10
STRIDE = 10


def pytest_addoption(parser):
    parser.addoption("--fast", action="store_true", help="leave out slow tests, and most parameters of those that have many")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--fast"):
        return

    def function_of(item):
        return item.path, getattr(item, "cls", None), getattr(item, "originalname", item.name)

    sets, seen, kept, left = Counter(map(function_of, items)), Counter(), [], []
    for item in items:
        function = function_of(item)
        quick = item.get_closest_marker("slow") is None or item.get_closest_marker("quick") is not None
        chosen = sets[function] <= MANY or seen[function] % STRIDE == 0
        seen[function] += 1
        (kept if quick and chosen else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)
