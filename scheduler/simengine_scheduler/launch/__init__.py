"""Launches: kernels and host functions bound to their arguments.

arguments  buffers that may move, and arguments packed into 8-byte slots
cuda       a CUDA kernel with its grid and block
host       a compiled or Python function
tasks      how workers of executor `device` run a launch
"""

from .arguments import Buffer, BufferSet, Number, Scalar
from .cuda import CudaLaunch
from .host import HostLaunch, PythonLaunch
from .tasks import DeviceBody, DeviceTask, Tiling

__all__ = [
    "Buffer",
    "BufferSet",
    "CudaLaunch",
    "DeviceBody",
    "DeviceTask",
    "HostLaunch",
    "Number",
    "PythonLaunch",
    "Scalar",
    "Tiling",
]
