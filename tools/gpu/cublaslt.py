"""cuBLASLt through ctypes, asked as the engine asks it (src/runtime/cuda/cublaslt.cpp). Used by bench.py."""

import ctypes

from driver import DriverError

TYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 14}
WORKSPACE = 32 << 20


def rounded_up(size):
    step = max((1 << (size.bit_length() - 1)) // 8, 32)
    return -(-size // step) * step


class Result(ctypes.Structure):
    _fields_ = [
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


class CublasLt:
    def __init__(self):
        self.library = ctypes.CDLL("libcublasLt.so.13")  # torch has loaded it
        self.handle = ctypes.c_void_p()
        self.call("cublasLtCreate", ctypes.byref(self.handle))

    def call(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status != 0:
            raise DriverError(f"{function} gave {status}")

    def layout(self, dtype, rows, columns, leading):
        out = (ctypes.c_uint64 * 8)()
        self.call(
            "cublasLtMatrixLayoutInit_internal",
            out,
            ctypes.c_size_t(64),
            TYPES[dtype],
            ctypes.c_uint64(rows),
            ctypes.c_uint64(columns),
            ctypes.c_int64(leading),
        )
        return out

    def descriptors(self, dtype, m, n, k, bias):
        product = (ctypes.c_uint64 * 32)()
        double = dtype == "f64"
        self.call("cublasLtMatmulDescInit_internal", product, ctypes.c_size_t(256), 70 if double else 68, 1 if double else 0)

        def set_attribute(number, value):
            self.call(
                "cublasLtMatmulDescSetAttribute", product, number, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))
            )

        set_attribute(3, ctypes.c_int(1))
        if bias:
            set_attribute(7, ctypes.c_uint32(4))
            set_attribute(8, ctypes.c_uint64(bias))
        return product, self.layout(dtype, k, n, k), self.layout(dtype, k, m, k), self.layout(dtype, n, m, n)

    def algorithm(self, dtype, m, n, k, bias):
        """Of x [m, k] times the transpose of w [n, k], all rows dense and aligned, plus a bias where there is one."""
        product, w, x, out = self.descriptors(dtype, *map(rounded_up, (m, n, k)), bias)
        preference = (ctypes.c_uint64 * 8)()
        self.call("cublasLtMatmulPreferenceInit_internal", preference, ctypes.c_size_t(64))
        for number, value in (
            (1, ctypes.c_uint64(WORKSPACE)),
            (3, ctypes.c_uint32(2)),
            *((i, ctypes.c_uint32(16)) for i in (5, 6, 7, 8)),
        ):
            self.call(
                "cublasLtMatmulPreferenceSetAttribute",
                preference,
                number,
                ctypes.byref(value),
                ctypes.c_size_t(ctypes.sizeof(value)),
            )
        result, count = Result(), ctypes.c_int()
        self.call(
            "cublasLtMatmulAlgoGetHeuristic",
            self.handle,
            product,
            w,
            x,
            out,
            out,
            preference,
            1,
            ctypes.byref(result),
            ctypes.byref(count),
        )
        if count.value == 0 or result.status != 0:
            raise DriverError("cuBLASLt has no algorithm")
        return result

    def multiply(self, dtype, sizes, algorithm, pointers, workspace, stream):
        """``pointers``: of x, w, the bias (0 where there is none) and the result."""
        x, w, bias, out = pointers
        product, w_layout, x_layout, out_layout = self.descriptors(dtype, *sizes, bias)
        number = ctypes.c_double if dtype == "f64" else ctypes.c_float
        self.call(
            "cublasLtMatmul",
            self.handle,
            product,
            ctypes.byref(number(1)),
            ctypes.c_void_p(w),
            w_layout,
            ctypes.c_void_p(x),
            x_layout,
            ctypes.byref(number(0)),
            ctypes.c_void_p(out),
            out_layout,
            ctypes.c_void_p(out),
            out_layout,
            algorithm.algorithm,
            ctypes.c_void_p(workspace),
            ctypes.c_size_t(algorithm.workspace),
            stream,
        )
