"""CUDA: the driver calls that executors make, and graphs of launches."""

from .driver import CudaDriver, Driver

__all__ = [
    "CudaDriver",
    "Driver",
]
