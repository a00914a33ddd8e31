"""What Python says of devices where there is none: programs on the fake driver are tests of C++, those on a card tools/gpu/session.py."""

import ctypes
import sys

import numpy as np
import pytest

flexor = pytest.importorskip("flexor", reason="the engine is not built")


def test_the_doctor_names_what_is_there_and_what_is_missing():
    lines = {line.split()[0]: line for line in flexor.doctor().splitlines()}
    assert lines["processor"].endswith("kernels are compiled") or "interpreted" in lines["processor"]
    assert "driver" in lines
    if "missing" in lines["driver"]:
        assert "libcuda" in lines["driver"]
    assert lines["compiler"].split()[1] in ("Triton,", "missing:")
    if lines["compiler"].split()[1] == "Triton,":
        assert "ms" in lines["compiler"]


class OnDevice:
    """Memory that DLPack says lies on a CUDA device, of an owner that is not torch."""

    def __init__(self, kind):
        class Tensor(ctypes.Structure):
            _fields_ = [
                ("data", ctypes.c_void_p),
                ("device", ctypes.c_int32 * 2),
                ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p),
            ]

        self.memory, self.shape = np.ones(3, np.float32), (ctypes.c_int64 * 1)(3)
        self.tensor = Tensor(self.memory.ctypes.data, (ctypes.c_int32 * 2)(kind, 0), 1, 2, 32, 1, self.shape, None, 0, None, None)

    def __dlpack__(self):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return (self.tensor.device[0], 0)


def test_device_memory_of_others_than_torch_is_refused_by_name():
    b = flexor.Builder()
    f = b.function("main", inputs=[("x", "float32", ["N"])])
    f.output(f.inputs[0].relu())
    module = b.build()
    assert module(OnDevice(1)).tolist() == [1, 1, 1]
    for kind in (2, 10, 13):
        with pytest.raises(flexor.DTypeError) as caught:
            module(OnDevice(kind))
        assert caught.value.code == "E0403"
        assert f"device type {kind}" in str(caught.value)


def test_waiting_for_a_device_that_is_not_there():
    if "missing" not in flexor.doctor().split("driver", 1)[1].splitlines()[0]:
        pytest.skip("there is a driver here")
    with pytest.raises(flexor.FlexorError) as caught:
        flexor.Session().synchronize()
    assert caught.value.code == "E0709"
    with pytest.raises(flexor.DTypeError):
        flexor.Session().synchronize("cuda")


def test_a_program_asks_for_devices_as_torch_has_them():
    torch = pytest.importorskip("torch", reason="torch is the oracle")

    @flexor.jit
    def made(x):
        where = torch.zeros(2, device=x.device) if not x.is_cuda and x.device.type == "cpu" else None
        return where + x.new_ones(2) + torch.zeros_like(x) + torch.ones(2, device="cpu").to(x.device)

    assert made(torch.ones(2)).tolist() == [2, 2]
    assert made.stats()["translations"] == 1
    assert sys.modules["torch"].device("cpu") == made(torch.ones(2)).device
