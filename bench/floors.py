"""Measured limits of this machine: read bandwidth in and out of cache, and the multiply-add peak."""

import ctypes
import functools

from . import native

OUT_OF_CACHE_BYTES = 1 << 30


@functools.cache
def _library():
    library = ctypes.CDLL(str(native.hand_library()))
    library.floor_read_bandwidth.restype = ctypes.c_double
    library.floor_read_bandwidth.argtypes = [ctypes.c_long]
    library.floor_fma_peak.restype = ctypes.c_double
    return library


@functools.cache
def read_bandwidth(working_set=OUT_OF_CACHE_BYTES):
    """Bytes per second of two threads reading a working set of that many bytes over and over."""
    return _library().floor_read_bandwidth(working_set)


@functools.cache
def fma_peak():
    """float32 operations per second, a multiply-add counted as two."""
    return _library().floor_fma_peak()
