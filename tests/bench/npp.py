"""Filters of gray bytes by NPP, of the CUDA toolkit: milliseconds by the device's own clock."""
import ctypes
from ctypes import POINTER, byref, c_float, c_int, c_size_t, c_uint, c_void_p

import numpy as np

from measure import middle

RUNS, BATCHES = 10, 7
REPLICATE, MASK_3, MASK_5, NORM_L2 = 2, 200, 201, 2
TO_DEVICE = 1
# cudaDeviceAttr by the members of Context that they are for
ATTRIBUTES = {"processors": 16, "threads_of_processor": 39, "threads_of_group": 1, "shared_of_group": 8, "major": 75,
              "minor": 76}


class Pair(ctypes.Structure):
    """A width and a height, or a column and a row."""
    _fields_ = [("x", c_int), ("y", c_int)]


class Context(ctypes.Structure):
    """NppStreamContext."""
    _fields_ = [("stream", c_void_p), ("device", c_int), ("processors", c_int), ("threads_of_processor", c_int),
                ("threads_of_group", c_int), ("shared_of_group", c_size_t), ("major", c_int), ("minor", c_int),
                ("stream_flags", c_uint), ("reserved", c_int)]


def libraries():
    """Returns the runtime and NPP's filters of the newest CUDA there is."""
    for version in 13, 12:
        try:
            return [ctypes.CDLL(f"lib{name}.so.{version}") for name in ("cudart", "nppif")]
        except OSError as problem:
            missing = problem
    raise missing


def call(function, *arguments):
    status = function(*arguments)
    if status:
        raise OSError(f"{function.__name__}: status {status}")


def gaussian(side):
    """Returns who, and milliseconds of a Gaussian 5x5."""
    return measure(side, "nppiFilterGaussBorder_8u_C1R_Ctx",
                   lambda target, size: (target, side, size, MASK_5, REPLICATE))


def sobel(side):
    """Returns who, and milliseconds of the magnitude alone, which has 16 bits."""
    return measure(side, "nppiGradientVectorSobelBorder_8u16s_C1R_Ctx", lambda target, size: (
        None, 0, None, 0, target, 2 * side, None, 0, size, MASK_3, NORM_L2, REPLICATE))


def measure(side, name, arguments):
    cuda, filters = libraries()
    cuda.cudaMalloc.argtypes = POINTER(c_void_p), c_size_t
    cuda.cudaMemcpy.argtypes = c_void_p, c_void_p, c_size_t, c_int
    source, target, begin, end = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    number, milliseconds, context = c_int(), c_float(), Context()
    call(cuda.cudaSetDevice, 0)
    for member, attribute in ATTRIBUTES.items():
        call(cuda.cudaDeviceGetAttribute, byref(number), attribute, 0)
        setattr(context, member, number.value)
    pixels = np.random.default_rng(1).integers(0, 256, (side, side), np.uint8)
    call(cuda.cudaMalloc, byref(source), pixels.nbytes)
    call(cuda.cudaMalloc, byref(target), 2 * pixels.nbytes)
    call(cuda.cudaMemcpy, source, pixels.ctypes.data, pixels.nbytes, TO_DEVICE)
    call(cuda.cudaEventCreate, byref(begin))
    call(cuda.cudaEventCreate, byref(end))
    size = Pair(side, side)

    def batch():
        call(cuda.cudaEventRecord, begin, None)
        for _ in range(RUNS):
            call(getattr(filters, name), source, side, size, Pair(0, 0), *arguments(target, size), context)
        call(cuda.cudaEventRecord, end, None)
        call(cuda.cudaEventSynchronize, end)
        call(cuda.cudaEventElapsedTime, byref(milliseconds), begin, end)
        return milliseconds.value / RUNS

    took = middle([batch() for _ in range(BATCHES + 1)][1:])
    for pixels in source, target:
        call(cuda.cudaFree, pixels)
    return "NPP", took
