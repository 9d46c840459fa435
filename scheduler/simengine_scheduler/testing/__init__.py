"""Stand-ins for a GPU, to test executors and lists of kernels on any machine.

fake_device      streams and events that run everything as late and as mixed up as CUDA allows
called_device    the same for compiled code, through functions with CUDA's signatures
null_driver      does nothing, to measure what issuing costs
threaded_device  the protocol of executor `device` on host threads
"""

from .called_device import CalledDevice
from .fake_device import DeviceFault, FakeDevice

__all__ = [
    "CalledDevice",
    "DeviceFault",
    "FakeDevice",
]
