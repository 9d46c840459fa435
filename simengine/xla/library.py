"""Registers the handlers of custom calls, which XLA calls, with JAX."""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Callable
from functools import cache
from threading import Thread
from typing import Any
from weakref import finalize

import jax

from simengine.errors import BackendError
from simengine.kernels.host_build import compiler
from simengine.xla.handler_build import build_handler
from simengine.xla.python_handlers import python_handlers

TARGET = "simengine_step"
"""Name of the custom call on every platform."""

RANDOM_BITS, FOLD_IN = "simengine_random_bits", "simengine_fold_in"
JOIN, SUM_OF_LAST, SUM_OF_ARRAYS = "simengine_join", "simengine_sum_of_last", "simengine_sum_of_arrays"
FIRST_ROWS, TAKE_ROWS, PUT_ROWS = "simengine_first_rows", "simengine_take_rows", "simengine_put_rows"
CHAIN = "simengine_chain"
"""Names of the custom calls of `host_calls`."""

MAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
GROW = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5, ctypes.c_void_p, ctypes.c_int64)
MAKE_ON = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


@cache
def handlers(platform: str) -> Any:
    """The handler of a platform, "cpu" or "CUDA", which is registered with JAX, and what belongs to it.

    It is a compiled library, or without a C++ compiler an object of Python with the same functions.

    Raises:
        BackendError: the compiler could not compile the handler.
    """
    try:
        compiler()
    except BackendError:
        library = python_handlers(platform)
    else:
        library = _compiled(platform)
    atexit.register(library.simengine_close)
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(library.simengine_step), platform=platform)
    names = RANDOM_BITS, FOLD_IN, JOIN, SUM_OF_LAST, SUM_OF_ARRAYS, FIRST_ROWS, TAKE_ROWS, PUT_ROWS, CHAIN
    for name in names:
        if hasattr(library, name):
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform=platform)
    return library


def _compiled(platform: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(build_handler(platform)))


def when_gone(call: Any, forget: Callable[..., None], *arguments: Any) -> None:
    """Call `forget(*arguments)` in a thread of its own once an object is garbage-collected.

    The thread may have to wait for programs that still run. The thread that drops the object must not, since such a
    program may wait for it.
    """

    def start() -> None:
        Thread(target=forget, args=arguments, daemon=True).start()

    finalize(call, start).atexit = False


def answer(why: int, room: int, work: Callable[[], int], failed: int) -> int:
    """Return the result of `work`, which a handler called. If it raises, write the error's text and return `failed`.

    Args:
        why: address of the text.
        room: bytes of the text.
        work: what the handler asked for.
        failed: what tells the handler that it failed.
    """
    try:
        return work()
    except Exception as error:
        text = f"{type(error).__name__}: {error}".encode()[: room - 1]
        ctypes.memmove(why, text + b"\0", len(text) + 1)
        return failed
