"""Field cases, silent fallback: each test reads the statistics, not only the result."""

import logging

import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle")
flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_f164_a_count_in_the_condition_of_a_loop(field):
    def halve(x):
        steps = 0
        while torch.count_nonzero(x) > 1:
            x = torch.floor(x / 2)
            steps += 1
        return x, steps

    f = field(halve)
    for values in ([3.0, 9.0, 1.0], [5.0, 5.5, 100.0, 2.0], [0.0, 8.0]):
        f(torch.tensor(values))
    field.is_native()


def test_f165_a_class_statement_in_the_body(field):
    def difference(x):
        y = x + 10

        class Holder:
            def __init__(self, value):
                self.value = value

        return Holder(x).value - y

    f = field(difference)
    for n in (1, 3):
        assert f(torch.ones(n)).tolist() == [-10.0] * n
    field.is_native()


def test_f167_one_opaque_call_leaves_the_code_around_it_compiled(field):
    """What nobody can look into is Python's, and so is each op on what it returns: named in the statistics, never in silence. With a
    rule for the result, only the call itself is."""
    seen = []

    def opaque(t):
        seen.append(t.sum().item())
        return t.clone()

    def block(t):
        return torch.tanh(t * 2 + 1).exp().log1p()

    def work(x, call):
        x = block(x)
        for _ in range(3):
            x = call(x)
        return block(x)

    ruled = flexor.op(result=lambda t: t)(opaque)
    f, g = field(lambda x: work(x, ruled)), field(lambda x: work(x, flexor.disable(opaque)))
    for n in (3, 4):
        f(torch.randn(n))
        g(torch.randn(n))
    assert len(seen) == 2 * 2 * 2 * 3  # eager's and ours
    assert f.jitted.stats()["foreign_calls"] == []
    left = {what for _, _, what in g.jitted.stats()["foreign_calls"]}
    assert {what for what in left if "opaque" not in what} <= {"*", "+", "torch.tanh", ".exp", ".log1p"}
    field.leaves(*left, why="the function asks for it")


def test_f168_a_switch_that_turns_compiling_off_says_so():
    off = flexor.Session(compile=False)
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    f.output(f.inputs[0] * 2.0)
    off.run(b.build(), torch.ones(3))
    stats = off.stats()
    assert stats["compilations"] == 0
    assert stats["compiled_ops"] == 0
    assert [(row["reason"], row["count"]) for row in stats["fallbacks"]] == [("compile_off", 1)]


def test_f169_forty_ops_with_a_number_pulled_out_after_each(field):
    """One program: a number that is pulled out ends no program, and nothing runs twice."""

    def chain(x):
        total = 0.0
        for i in range(40):
            x = torch.sin(x + i)
            total += x.sum().item()
        return x, torch.tensor(total)

    f = field(chain)
    for batch in (1, 8, 64):
        f(torch.randn(batch))
    assert f.translations <= 2
    field.is_native()


def test_f170_a_counter_that_changes_with_every_call(field, caplog):
    """A branch on an attribute of the function's own object: a bounded number of translations, then the reason, once."""

    class Counter:
        calls = 0

    counter = Counter()

    def branches(x):
        counter.calls += 1
        if counter.calls % 3 == 0:
            return x + counter.calls
        return x - counter.calls

    jitted = flexor.jit(branches)
    with caplog.at_level(logging.WARNING, logger="flexor"):
        for call in range(1, 501):
            want = 1.0 + call if call % 3 == 0 else 1.0 - call
            assert jitted(torch.ones(2)).tolist() == [want] * 2
    assert jitted.stats()["translations"] <= 64
    assert len(caplog.records) <= 2
    field.verdict = "native" if not jitted.stats()["fallbacks"] else "fallback"
    field.reasons = list(jitted.stats()["fallbacks"])
