"""run: inputs of every form, results of every form."""

import signal
import subprocess
import time

import numpy as np
import pytest
from cli_programs import ADD, CLASSIC, ECHO, ENDLESS, SCALE, WRITE

DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64"]


def samples(dtype, *sizes):
    rng = np.random.default_rng(3)
    return (rng.standard_normal(sizes) * 9).astype(dtype)


def values(report, index=0):
    result = report["results"][index]
    dtype = {"f32": np.float32, "i64": np.int64}[result["dtype"]]
    return np.array(result["values"], dtype).reshape(result["sizes"])


@pytest.fixture
def echo(flexor):
    return flexor.write("echo.fasm", ECHO)


def test_the_classic_program(flexor):
    x = samples("float32", 3, 5, 8)
    np.save(flexor.folder / "x.npy", x)
    source = flexor.write("classic.fasm", CLASSIC)
    expected = np.maximum(x + 1, 0).sum(-1)
    report = flexor.json("run", source, "x.npy")
    assert report["results"][0]["name"] == "out"
    np.testing.assert_allclose(values(report), expected, rtol=1e-5)
    flexor.ok("asm", source, "-o", "classic.flx")
    np.testing.assert_allclose(values(flexor.json("run", "classic.flx", "x=x.npy", "mask=none")), expected, rtol=1e-5)
    np.testing.assert_allclose(values(flexor.json("run", source, "x.npy", "--interpret")), expected, rtol=1e-5)
    assert "out: f32[3,5]" in flexor.ok("run", source, "x.npy").out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(), (0,), (1,), (3, 17), (2, 0, 5)])
def test_npy_and_npz_come_back_as_they_went_in(flexor, echo, dtype, sizes):
    x = samples(dtype, *sizes)
    np.save(flexor.folder / "x.npy", x)
    flexor.ok("run", echo, "x.npy", "--output", "y.npz")
    with np.load(flexor.folder / "y.npz") as archive:
        assert archive.files == ["y"]
        assert archive["y"].dtype == x.dtype
        np.testing.assert_array_equal(archive["y"], x)
    flexor.ok("run", echo, "y.npz:y", "--output", "z.npy")
    np.testing.assert_array_equal(np.load(flexor.folder / "z.npy"), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_safetensors_come_back_as_they_went_in(flexor, echo, dtype):
    from safetensors.numpy import load_file, save_file

    x = samples(dtype, 3, 17)
    save_file({"x": x}, flexor.folder / "x.safetensors")
    flexor.ok("run", echo, "x.safetensors", "--output", "y.safetensors")
    y = load_file(flexor.folder / "y.safetensors")["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_bfloat16_travels_in_safetensors_only(flexor, echo):
    header = b'{"x":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x3E20], dtype=np.uint16)
    contents = len(header).to_bytes(8, "little") + header + bits.tobytes()
    (flexor.folder / "x.safetensors").write_bytes(contents)
    report = flexor.json("run", echo, "x.safetensors")
    assert report["results"][0]["dtype"] == "bf16"
    assert report["results"][0]["values"] == [1, -2, "inf", 0.15625]
    flexor.ok("run", echo, "x.safetensors", "-o", "y.safetensors")
    assert (flexor.folder / "y.safetensors").read_bytes()[-8:] == bits.tobytes()
    flexor.refused("E0704", "run", echo, "x.safetensors", "-o", "y.npz")


def test_archives_bind_every_array_by_its_name(flexor):
    source = flexor.write("add.fasm", ADD)
    a, b = samples("float32", 33), samples("float32", 33) * 2
    np.savez(flexor.folder / "named.npz", b=b, a=a)
    np.savez_compressed(flexor.folder / "packed.npz", b=b, a=a)
    np.savez(flexor.folder / "positions.npz", a, b)
    np.savez(flexor.folder / "wrong.npz", a=a, c=b)
    for name in ["named.npz", "packed.npz", "positions.npz"]:
        np.testing.assert_array_equal(values(flexor.json("run", source, name)), a + b)
    np.testing.assert_array_equal(values(flexor.json("run", source, "a=wrong.npz", "b=wrong.npz:c")), a + b)
    flexor.refused("E0112", "run", source, "wrong.npz")
    flexor.refused("E0112", "run", source, "a=named.npz:z", "b=named.npz")
    flexor.refused("E0507", "run", source, "named.npz", "a=named.npz")


def test_large_deflated_arrays(flexor, echo):
    x = np.tile(samples("float64", 1000), 300)
    np.savez_compressed(flexor.folder / "x.npz", x=x)
    flexor.ok("run", echo, "x.npz", "-o", "y.npz")
    np.testing.assert_array_equal(np.load(flexor.folder / "y.npz")["y"], x)
    summary = flexor.json("run", echo, "x.npz")["results"][0]["summary"]
    np.testing.assert_allclose([summary["min"], summary["max"], summary["mean"]], [x.min(), x.max(), x.mean()])


def test_column_major_arrays_keep_their_elements(flexor, echo):
    x = np.asfortranarray(samples("int32", 3, 4, 5))
    np.save(flexor.folder / "x.npy", x)
    flexor.ok("run", echo, "x.npy", "-o", "y.npy")
    np.testing.assert_array_equal(np.load(flexor.folder / "y.npy"), x)


def test_the_input_file_stays_as_it_is(flexor):
    source = flexor.write("write.fasm", WRITE)
    x = samples("float32", 100)
    np.save(flexor.folder / "x.npy", x)
    assert not values(flexor.json("run", source, "x.npy")).any()
    np.testing.assert_array_equal(np.load(flexor.folder / "x.npy"), x)


def test_scalars_and_several_results(flexor):
    source = flexor.write("scale.fasm", SCALE)
    report = flexor.json("run", source, "[1, 2, 3]", "factor=1.5", "twice=true")
    np.testing.assert_array_equal(values(report), [3, 6, 9])
    assert report["results"][1] == {"name": "size", "kind": "int", "value": 3}
    np.testing.assert_array_equal(values(flexor.json("run", source, "[1, 2]", "3", "false")), [3, 6])
    flexor.ok("run", source, "[1, 2]", "3", "false", "-o", "results")
    np.testing.assert_array_equal(np.load(flexor.folder / "results" / "scaled.npy"), np.float32([3, 6]))
    assert np.load(flexor.folder / "results" / "size.npy") == 2
    flexor.refused("E0507", "run", source, "[1, 2]", "3", "false", "-o", "one.npy")


def test_another_function(flexor):
    source = flexor.write("scale.fasm", SCALE)
    report = flexor.json("run", source, "[1, 2]", "--function", "negated", "--repeat", "3")
    np.testing.assert_array_equal(values(report), [-1, -2])
    assert report["calls"] == 3
    flexor.refused("E0112", "run", source, "--function", "other")


def test_tensors_written_out(flexor, echo):
    def echoed(word):
        result = flexor.json("run", echo, word)["results"][0]
        return result["dtype"], result["sizes"], result["values"]

    assert echoed("[[1, 2], [3, 4]]") == ("i64", [2, 2], [1, 2, 3, 4])
    assert echoed("[1, 2.5]") == ("f32", [2], [1, 2.5])
    assert echoed("x=[true, false]") == ("bool", [2], [True, False])
    assert echoed("[[], []]") == ("f32", [2, 0], [])
    assert echoed("[9007199254740993]") == ("i64", [1], [9007199254740993])
    assert echoed("3") == ("i64", [], [3])
    assert echoed("[nan, -inf]")[2] == ["nan", "-inf"]
    dtype, sizes, elements = echoed("f32[2,3]")
    assert (dtype, sizes, len(elements)) == ("f32", [2, 3], 6)
    assert elements == echoed("float32[2,3]")[2]
    for bad in ["[1, [2]]", "[[1], [2, 3]]", "[1, 2", "[1] x", "[a]", "f32[-1]", "f32[2,,3]", "hello"]:
        flexor.refused("E0803", "run", echo, bad)
    flexor.refused("E0309", "run", echo, "f32[4000000000,4000000000]")


def test_arguments_that_do_not_fit(flexor):
    source = flexor.write("classic.fasm", CLASSIC)
    flexor.refused("E0506", "run", source)
    flexor.refused("E0112", "run", source, "y=[1]")
    flexor.refused("E0501", "run", source, "f32[1,2,8]", "bool[1,2]", "3")
    flexor.refused("E0503", "run", source, "f64[1,2,8]")
    flexor.refused("E0502", "run", source, "f32[2,8]")
    flexor.refused("E0504", "run", source, "f32[1,2,9]")
    flexor.refused("E0505", "run", source, "f32[1,65,8]")
    flexor.refused("E0201", "run", source, "x=missing.npy")


def test_damaged_inputs_are_refused_with_an_id(flexor, echo):
    x = samples("float32", 16)
    np.save(flexor.folder / "x.npy", x)
    np.savez(flexor.folder / "x.npz", x=x)
    np.savez_compressed(flexor.folder / "packed.npz", x=x)
    rng = np.random.default_rng(5)
    for name in ["x.npy", "x.npz", "packed.npz"]:
        whole = (flexor.folder / name).read_bytes()
        for _ in range(25):
            damaged = bytearray(whole)
            if rng.random() < 0.3:
                del damaged[rng.integers(len(damaged)) :]
            else:
                damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
            (flexor.folder / f"d_{name}").write_bytes(damaged)
            result = flexor("run", echo, f"d_{name}")
            assert result.code in (0, 1), result.err
            assert (result.code == 0) or result.err.startswith("E0"), result.err


def test_what_is_wrong_with_an_input_file(flexor, echo):
    x = samples("float32", 16)
    np.save(flexor.folder / "x.npy", x)
    whole = (flexor.folder / "x.npy").read_bytes()
    (flexor.folder / "short.npy").write_bytes(whole[:-1])
    flexor.refused("E0203", "run", echo, "short.npy")
    (flexor.folder / "none.npy").write_bytes(b"")
    flexor.refused("E0205", "run", echo, "none.npy")
    np.save(flexor.folder / "big.npy", x.astype(">f4"))
    flexor.refused("E0704", "run", echo, "big.npy")
    np.save(flexor.folder / "complex.npy", x.astype("complex64"))
    flexor.refused("E0704", "run", echo, "complex.npy")

    (flexor.folder / "bytes.npy").write_bytes(whole.replace(b"'<f4'", b"'<\xff\xfe'"))
    assert "\N{REPLACEMENT CHARACTER}" in flexor.refused("E0704", "run", echo, "bytes.npy").err

    np.savez(flexor.folder / "x.npz", x=x)
    contents = bytearray((flexor.folder / "x.npz").read_bytes())
    contents[contents.index(x.tobytes())] ^= 1
    (flexor.folder / "flipped.npz").write_bytes(contents)
    flexor.refused("E0204", "run", echo, "flipped.npz")
    flexor.refused("E0205", "run", echo, "x=" + flexor.write("no.npz", "hello"))

    for header in [
        "{",
        "[]",
        '{"x":{}}',
        '{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}}',
        '{"x":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}',
    ]:
        text = len(header).to_bytes(8, "little") + header.encode() + bytes(16)
        (flexor.folder / "bad.safetensors").write_bytes(text)
        flexor.refused("E0205", "run", echo, "bad.safetensors")
    header = '{"x":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}}'
    (flexor.folder / "bad.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(16))
    flexor.refused("E0203", "run", echo, "bad.safetensors")


def test_results_are_shown_as_numpy_shows_them(flexor, echo):
    np.save(flexor.folder / "x.npy", np.arange(100 * 100).reshape(100, 100))
    out = flexor.ok("run", echo, "x.npy").out
    assert out.startswith("y: i64[100,100]\n[[")
    assert "..." in out
    assert "9999" in out
    assert "min 0, max 9999, mean 4999.5" in out
    assert len(out.splitlines()) == 9


def test_an_output_that_cannot_be_written(flexor, echo):
    flexor.refused("E0206", "run", echo, "[1]", "-o", "no/folder/y.npz")
    assert list(flexor.folder.glob("**/*.tmp")) == []


@pytest.mark.parametrize("mode", [[], ["--interpret"]])
def test_interrupt_stops_a_run(flexor, binary, mode):
    source = flexor.write("endless.fasm", ENDLESS)
    process = subprocess.Popen([binary, "run", source, "[1, 2]", *mode], stderr=subprocess.PIPE, text=True)
    time.sleep(0.7)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err.startswith("E0509 ")
