"""Starts the CUDA driver while Python imports CuPy: both take long, and neither needs the other."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from importlib.util import find_spec
from threading import Thread

_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED


def start_driver() -> Thread | None:
    """Start the driver in a thread, and make the context of the first GPU there.

    Nothing is done without CuPy, or once CuPy or another library has used CUDA: the current GPU may then be another.
    Errors are left to CuPy, which meets them again.
    """
    if "cupy" in sys.modules or find_spec("cupy") is None:
        return None
    thread = Thread(target=_start, name="simengine-driver", daemon=True)
    thread.start()
    return thread


def _start() -> None:
    with suppress(OSError, AttributeError):  # no driver is installed
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuCtxGetCurrent(ctypes.byref(context)) != _NOT_INITIALIZED or driver.cuInit(0):
            return
        if not driver.cuDeviceGet(ctypes.byref(device), 0):
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
