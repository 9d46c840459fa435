"""Launches: kernels and host functions bound to their arguments.

arguments  buffers that may move, and arguments packed into 8-byte slots
cuda       a CUDA kernel with its grid and block
host       a compiled or Python function
arrays     where the arrays of NumPy, CuPy, PyTorch and JAX lie
making     calls of kernels, copies and library functions, with the segments of the arrays that they take
tasks      how workers of executor `device` run a launch
"""

from .arguments import Buffer, BufferSet, Number, Scalar
from .cuda import CudaLaunch
from .host import HostLaunch, PythonLaunch
from .making import Access, Calls, StreamLaunch, read, update, write
from .tasks import DeviceBody, DeviceTask, Tiling

__all__ = [
    "Access",
    "Buffer",
    "BufferSet",
    "Calls",
    "CudaLaunch",
    "DeviceBody",
    "DeviceTask",
    "HostLaunch",
    "Number",
    "PythonLaunch",
    "Scalar",
    "StreamLaunch",
    "Tiling",
    "read",
    "update",
    "write",
]
