"""Stand-ins for a GPU, to test executors and lists of kernels on any machine.

fake_device      streams and events that run everything as late and as mixed up as CUDA allows
threaded_device  the protocol of executor `device` on host threads
"""

from .fake_device import DeviceFault, FakeDevice

__all__ = [
    "DeviceFault",
    "FakeDevice",
]
