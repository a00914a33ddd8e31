"""explain, stats, bench, ops: what the program tells about itself."""

import json

import pytest
from cli_programs import CLASSIC, DIVIDE, PRODUCTS, SCALE


def test_explain_tells_the_five_steps(flexor):
    source = flexor.write("classic.fasm", CLASSIC)
    text = flexor.ok("explain", source, "f32[2,5,8]").out
    for step in ["load", "symbolise", "match guards", "specialise", "generate", "register"]:
        assert step in text
    assert "% of the floor" in flexor.ok("explain", source, "f32[2,5,8]", "--profile").out
    report = flexor.json("explain", source, "f32[2,5,8]")
    assert report["arguments"] == ["f32[2,5,8]", "none"]
    assert report["stats"]["calls"] == 1


def test_explain_without_inputs_takes_sizes_from_the_declared_ranges(flexor):
    source = flexor.write("classic.fasm", CLASSIC)
    x = flexor.json("explain", source)["arguments"][0]
    assert x.startswith("f32[")
    assert 1 <= int(x[4:-1].split(",")[1]) <= 64
    assert "load" in flexor.ok("explain", source).out


def test_made_up_sizes_fit_together(flexor):
    source = flexor.write("products.fasm", PRODUCTS)
    report = flexor.json("explain", source)
    assert report["arguments"] == ["f32[8,9]", "f32[9,32]"]
    assert "raised" not in report["text"]
    assert flexor.json("stats", source)["failed_calls"] == 0
    assert flexor.json("bench", source, "--repeat", "1")["arguments"] == report["arguments"]


def test_explain_of_a_refused_run_is_refused_and_tells_what_it_saw(flexor):
    source = flexor.write("divide.fasm", DIVIDE)
    words = ("explain", source, "[6, 8]", "[2, 0]")
    result = flexor(*words)
    assert result.code == 1
    assert result.err.startswith("E0310 ")
    assert "raised" in result.out
    assert "load" in result.out
    report = flexor(*words, "--json")
    assert report.code == 1
    assert report.json["error"]["id"] == "E0310"
    assert "raised" in report.json["text"]
    assert flexor.ok("explain", source, "[6, 8]", "[2, 1]").out


@pytest.mark.parametrize(
    "words",
    [
        ("explian", "x.fasm"),
        ("run",),
        ("run", "x.fasm", "--no-such-option"),
        ("run", "x.fasm", "--repeat", "0"),
        ("stats", "x.fasm", "--threads", "many"),
        ("stats", "x.fasm", "--events", "--prometheus"),
        (),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_an_object_too(flexor, words):
    plain = flexor(*words)
    assert plain.code == 2
    assert plain.out == ""
    assert plain.err
    as_json = flexor(*words, "--json")
    assert as_json.code == 2
    assert as_json.json["error"]["id"] == "E0507"
    assert as_json.json["error"]["found"]


def test_stats_in_every_form(flexor):
    source = flexor.write("classic.fasm", CLASSIC)
    assert "hit" in flexor.ok("stats", source, "f32[2,5,8]").out
    stats = flexor.json("stats", source, "f32[2,5,8]", "--repeat", "20")
    assert stats["calls"] == 20
    assert {"hit_rate", "fallback_rate", "rungs", "pool"} <= stats.keys()
    prometheus = flexor.ok("stats", source, "--prometheus").out
    samples = [line for line in prometheus.splitlines() if line and not line.startswith("#")]
    assert samples and all(line.startswith("flexor_") and float(line.rsplit(" ", 1)[1]) >= 0 for line in samples)
    events = [json.loads(line) for line in flexor.ok("stats", source, "--events").out.splitlines()]
    assert events and all({"kind", "sequence"} <= event.keys() for event in events)
    assert flexor("stats", source, "--events", "--prometheus").code == 2


def test_the_interpreter_compiles_nothing(flexor):
    source = flexor.write("classic.fasm", CLASSIC)
    stats = flexor.json("stats", source, "f32[2,5,8]", "--interpret")
    assert stats["compilations"] == 0
    assert stats["fallback_rate"] == 1


def test_bench_orders_its_figures(flexor):
    source = flexor.write("scale.fasm", SCALE)
    report = flexor.json("bench", source, "f32[100]", "2.0", "false", "--repeat", "50")
    assert report["calls"] == 50
    assert report["arguments"][0] == "f32[100]"
    assert len(report["arguments"]) == 3
    assert 0 < report["min_s"] <= report["median_s"] <= report["p99_s"] <= report["max_s"]
    assert report["min_s"] <= report["mean_s"] <= report["max_s"]
    assert report["first_s"] > 0
    text = flexor.ok("bench", source, "f32[100]", "2.0", "false").out
    for row in ["first", "min", "median", "p99", "hit rate"]:
        assert row in text


def test_limits_reach_the_session(flexor):
    source = flexor.write("classic.fasm", CLASSIC)
    stats = flexor.json("stats", source, "f32[2,5,8]", "--soft-limit", "1MB", "--hard-limit", "2MB", "--threads", "1")
    assert stats["pool"]["soft_limit"] == 1 << 20
    assert stats["pool"]["hard_limit"] == 2 << 20
    assert flexor("stats", source, "--soft-limit", "many").code == 2


def test_ops_lists_and_describes_the_registry(flexor):
    ops = flexor.json("ops")
    names = [op["name"] for op in ops]
    assert len(names) == len(set(names)) > 40
    listing = flexor.ok("ops").out.splitlines()
    assert [line.split()[0] for line in listing] == names
    for op in ops:
        assert op["summary"]
    softmax = flexor.json("ops", "softmax")
    assert softmax == ops[names.index("softmax")]
    assert softmax["dtypes"] == ["f16", "bf16", "f32", "f64"]
    assert "dtypes: f16, bf16, f32, f64" in flexor.ok("ops", "softmax").out
    assert "constraints" in flexor.ok("ops", "matmul").out
    assert "did you mean 'softmax'?" in flexor.refused("E0108", "ops", "sofmax").err


def test_doctor_names_what_devices_need(flexor):
    lines = flexor.ok("doctor").out.splitlines()
    assert [line.split()[0] for line in lines][:2] == ["processor", "driver"]
    report = flexor.json("doctor")
    assert set(report) >= {"processor", "driver", "compiler"}
    assert all(report.values())
