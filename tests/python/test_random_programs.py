"""Random whole programs against torch eager: values, dtypes, shapes, strides, aliases and what became of the arguments.

By hand, for more of them:  python tests/python/test_random_programs.py FIRST COUNT [SECONDS]
"""

import random
import sys
import traceback

import pytest

np = pytest.importorskip("numpy", reason="arrays are arguments too")
torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

import random_generator  # noqa: E402
import random_programs as programs  # noqa: E402
from oracle import seen_strides  # noqa: E402

CALLS = 5

pytestmark = pytest.mark.slow


def compare(got, pair, what, strides=True):
    e, t = pair.e, pair.t
    if isinstance(got, (np.ndarray, np.generic)):
        got, strides = torch.from_numpy(np.array(got)), False
    assert isinstance(got, torch.Tensor), f"{what} is a {type(got).__name__}"
    assert got.dtype == e.dtype, f"{what} has dtype {got.dtype}, expected {e.dtype}"
    assert got.shape == e.shape, f"{what} has shape {tuple(got.shape)}, expected {tuple(e.shape)}"
    if strides:
        assert seen_strides(got) == seen_strides(e), f"{what} has strides {got.stride()}, expected {e.stride()} (shape {tuple(e.shape)})"
    if not e.is_floating_point() or pair.exact:
        same = torch.equal(got, e) if not e.is_floating_point() else torch.equal(got.nan_to_num(7.25), e.nan_to_num(7.25))
        assert same, f"{what} differs in exact values: {got.flatten()[:8].tolist()}, expected {e.flatten()[:8].tolist()}"
        return
    sure = torch.isnan(e) & torch.isnan(t)
    assert bool(torch.isnan(got[sure]).all()), f"{what} has no NaN where eager and the truth have one: {got[sure][:8].tolist()}"
    usable = torch.isfinite(e) & torch.isfinite(t)
    g, x, truth = got[usable].double(), e[usable].double(), t[usable].double()
    if not truth.numel():
        return
    eps = torch.finfo(e.dtype).eps
    error = (g - truth).abs()
    allowed = 16 * (x - truth).abs().max() + 64 * eps * truth.abs() + 8 * eps * truth.abs().max() + 1e-6
    worst = int((error - allowed).argmax()) if not error.isnan().any() else int(error.isnan().int().argmax())
    assert error[worst] <= allowed[worst], f"{what} differs: {g[worst]:.9g} is {error[worst]:.3g} from {truth[worst]:.9g}, allowed {allowed[worst]:.3g} (eager {x[worst]:.9g})"


def span(t):
    """First and last byte that a tensor reaches."""
    if not t.numel():
        return None
    low = sum(min(0, (n - 1) * s) for n, s in zip(t.shape, t.stride()))
    high = sum(max(0, (n - 1) * s) for n, s in zip(t.shape, t.stride()))
    size = t.element_size()
    return t.data_ptr() + low * size, t.data_ptr() + (high + 1) * size


def check_aliases(tensors, eager, weights):
    """Who shares memory with whom, and at what distance. Memory of a weight comes out as a copy each time."""
    owned = [w.untyped_storage().data_ptr() for w in weights]
    for i in range(len(tensors)):
        for j in range(i):
            a, b, x, y = tensors[i], tensors[j], eager[i], eager[j]
            if not a.numel() or not b.numel():
                continue
            memory = x.untyped_storage().data_ptr()
            if memory == y.untyped_storage().data_ptr() and memory not in owned:
                assert a.data_ptr() - b.data_ptr() == x.data_ptr() - y.data_ptr(), f"values {j} and {i} should share memory"
            else:
                (a0, a1), (b0, b1) = span(a), span(b)
                assert a1 <= b0 or b1 <= a0, f"values {j} and {i} should not share memory"


class Engine:
    """A session, and what its foreign calls have heard."""

    def __init__(self, session):
        self.session, self.heard = session, programs.bind_hooks(session)


def run_once(engine, module, program, sizes, seed, numpy=False):
    session = engine.session
    engine.heard.clear()
    mine = programs.arguments(program, sizes, seed)
    theirs = programs.arguments(program, sizes, seed)
    eager = programs.Eager(program)
    try:
        with torch.no_grad():
            inputs, results = eager.run(theirs)
    except programs.TooInexact:
        return
    except (RuntimeError, IndexError) as error:
        inputs = results = None
        raised = error
    if results is None:
        try:
            session.run(module, *mine)
        except flexor.FlexorError:
            return
        if 1 in sizes.values() and "refer to a single memory location" in str(raised):
            return  # torch judges by the strides of axes with one element, which mean nothing
        raise AssertionError(f"eager raised: {raised}")
    if numpy:
        if any(isinstance(p, programs.Pair) and p.e.dtype == torch.bfloat16 for p in (*inputs, *results)):
            return
        mine = programs.as_numpy(mine, program, seed)
    out = session.run(module, *mine)
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    assert len(out) == len(results)
    for position, (got, pair) in enumerate(zip(out, results)):
        compare(got, pair, f"result {position}", True)
    for position, (got, pair) in enumerate(zip(mine, inputs)):
        if isinstance(got, (torch.Tensor, np.ndarray)):
            compare(got, pair, f"argument {position} after the call")
    assert [name for name, _ in engine.heard] == [name for name, _ in eager.heard], "foreign calls in another order"
    for position, ((_, got), (name, pair)) in enumerate(zip(engine.heard, eager.heard)):
        compare(got, pair, f"operand of foreign call {position}, {name},", strides=False)
    if numpy:
        return
    tensors = [*(x for x in mine if isinstance(x, torch.Tensor)), *out]
    theirs = [*(p.e for p in inputs if isinstance(p, programs.Pair)), *(p.e for p in results)]
    check_aliases(tensors, theirs, program.weights)


def check_program(seed, engines):
    program = random_generator.generate(seed)
    if program is None:
        return False
    try:
        module = programs.Writer(flexor, program).module()
    except flexor.ModuleError as error:
        if "sizes that only the run knows" in str(error):  # of a split: how many results there are must be known
            return False
        raise
    rng = random.Random(seed)
    (name,) = rng.choices(list(engines), WEIGHTS)
    for call, sizes in enumerate(programs.bindings(program, rng, CALLS)):
        numpy = rng.random() < 0.2
        try:
            run_once(engines[name], module, program, sizes, seed * 7 + call, numpy)
        except BaseException as error:
            error.add_note(f"{program}\ncall {call}, {name}{', NumPy' if numpy else ''}: {sizes}")
            raise
    return True


# Of the engines below, in their order.
WEIGHTS = (70, 10, 10, 10)


def make_engines():
    def stressed(**switch):
        return Engine(flexor.Session(_native=flexor._flexor.NativeSession(poison=True, **switch)))

    return {
        "symbolic": stressed(),
        "exact": stressed(exact_only=True),
        "every guard fails": stressed(fail_guards=True),
        "every region ends at once": stressed(end_at_once=True),
    }


@pytest.fixture(scope="module")
def engines():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield make_engines()
    torch.set_num_threads(threads)


@pytest.mark.parametrize("first", [pytest.param(0, marks=pytest.mark.quick), *range(20, 200, 20)])
def test_random_programs_agree_with_eager(engines, first):
    assert sum(check_program(seed, engines) for seed in range(first, first + 20)) > 10


if __name__ == "__main__":
    import collections
    import logging
    import time

    logging.getLogger("flexor").setLevel(logging.CRITICAL)

    import warnings

    warnings.simplefilter("ignore")
    first, count = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    engines = make_engines()
    kinds = collections.defaultdict(list)
    begin = time.time()
    made = 0
    seen = dict.fromkeys(engines, 0)
    budget = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    for seed in range(first, first + count):
        if time.time() - begin > budget:
            print(f"stopped before seed {seed}")
            break
        try:
            made += check_program(seed, engines)
        except Exception as error:  # noqa: BLE001
            line = "".join(c if not c.isdigit() else "#" for c in f"{type(error).__name__}: {error}".splitlines()[0])[:110]
            where = traceback.extract_tb(error.__traceback__)[-1]
            kinds[line, where.name].append(seed)
            if count == 1:
                print("".join(traceback.format_exception_only(error)))
        for name, engine in engines.items():
            for event in engine.session.events(seen[name]):
                seen[name] = event["sequence"]
                if event["kind"] in ("compile_failed", "interpreted"):
                    text = " ".join(event["text"].split())
                    kinds[("no code: " + "".join(c if not c.isdigit() else "#" for c in text))[:160], ""].append(seed)
    for (line, where), seeds in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(len(seeds), line, where, seeds[:8])
    print(f"{made} programs, {sum(map(len, kinds.values()))} failures, {time.time() - begin:.1f} s")
    print({k: v for k, v in engines["symbolic"].session.stats().items() if not isinstance(v, (list, dict))})
