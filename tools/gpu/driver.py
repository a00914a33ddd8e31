"""The CUDA driver through ctypes: just enough to run compiled kernels and to time them. Needs no toolkit and no package."""

import ctypes
import statistics
import time

NOT_READY = 600
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
PLAIN_SHARED_BYTES = 48 * 1024


class DriverError(Exception):
    """A call of the driver failed; the text names call and error."""


class Hang(DriverError):
    """A kernel did not end in time. The process must end: the context cannot be used further."""


class Driver:
    """One device, its primary context and a stream of our own."""

    def __init__(self, device=0):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, handle)
        self.name = name.value.decode()
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = version.value
        self.multiprocessors = self.attribute(handle, 16)
        self.capability = 10 * self.attribute(handle, 75) + self.attribute(handle, 76)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self.call("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        # Ordered with the default stream, on which the plain copies run: these may return before they are done.
        self.call("cuStreamCreate", ctypes.byref(self.stream), 0)

    def call(self, function, *arguments):
        code = getattr(self.library, function)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise DriverError(f"{function}: {text.value.decode() if text.value else code}")

    def attribute(self, device, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def allocate(self, count):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(count, 1)))
        return pointer.value

    def free(self, pointer):
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def write(self, pointer, data):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data, ctypes.c_size_t(len(data)))

    def fill(self, pointer, byte, count):
        self.call("cuMemsetD8_v2", ctypes.c_uint64(pointer), ctypes.c_ubyte(byte), ctypes.c_size_t(count))

    def copy(self, target, source, count):
        """On the device, ordered with the stream."""
        self.call(
            "cuMemcpyDtoDAsync_v2",
            ctypes.c_uint64(target),
            ctypes.c_uint64(source),
            ctypes.c_size_t(count),
            self.stream,
        )

    def read(self, pointer, count):
        data = ctypes.create_string_buffer(max(count, 1))
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(pointer), ctypes.c_size_t(count))
        return data.raw[:count]

    def wait(self, limit=20.0):
        """Until the stream is idle; raises Hang after ``limit`` seconds."""
        end = time.monotonic() + limit
        while (code := self.library.cuStreamQuery(self.stream)) == NOT_READY:
            if time.monotonic() > end:
                raise Hang(f"a kernel did not end within {limit} s")
        if code != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise DriverError(f"the kernel failed: {text.value.decode() if text.value else code}")

    def graph(self, work):
        """What ``work`` launches on the stream, as a graph to launch."""
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, 1)
        work()
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        self.call("cuGraphDestroy", graph)
        return ready

    def launch_graph(self, graph):
        self.call("cuGraphLaunch", graph, self.stream)

    def destroy_graph(self, graph):
        self.call("cuGraphExecDestroy", graph)

    def microseconds(self, work, rounds=30, first_rounds=5):
        """Device time of ``work``, the median of rounds after a few that do not count."""
        first, last, value = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        for event in (first, last):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        times = []
        for _ in range(rounds):
            self.call("cuEventRecord", first, self.stream)
            work()
            self.call("cuEventRecord", last, self.stream)
            self.wait()
            self.call("cuEventElapsedTime", ctypes.byref(value), first, last)
            times.append(value.value * 1e3)
        for event in (first, last):
            self.call("cuEventDestroy_v2", event)
        return statistics.median(times[first_rounds:])


class Kernel:
    """A loaded cubin. ``parameters`` are the sizes in bytes that the compiler stated; the driver must agree."""

    def __init__(self, driver, cubin, symbol, warps, shared, parameters):
        self.driver, self.warps, self.shared = driver, warps, shared
        self.module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(self.module), cubin)
        self.function = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(self.function), self.module, symbol.encode())
        if shared > PLAIN_SHARED_BYTES:
            driver.call("cuFuncSetAttribute", self.function, MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
        self.offsets = []
        for i, size in enumerate(parameters):
            offset, found = ctypes.c_size_t(), ctypes.c_size_t()
            driver.call("cuFuncGetParamInfo", self.function, ctypes.c_size_t(i), ctypes.byref(offset), ctypes.byref(found))
            if found.value != size:
                raise DriverError(f"parameter {i} of {symbol} has {found.value} bytes, not {size}")
            self.offsets.append(offset.value)
        self.sizes = parameters

    def launch(self, grid, arguments):
        """Launches ``grid`` programs with integers or pointers as arguments; a grid of 0 is skipped."""
        if grid == 0:
            return
        values = [
            ctypes.create_string_buffer(int(a).to_bytes(size, "little", signed=int(a) < 0), size)
            for a, size in zip([*arguments, 0, 0], self.sizes, strict=True)
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        self.driver.call(
            "cuLaunchKernel", self.function, grid, 1, 1, 32 * self.warps, 1, 1, self.shared, self.driver.stream, pointers, None
        )

    def unload(self):
        self.driver.call("cuModuleUnload", self.module)
