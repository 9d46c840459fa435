"""The structures that Python shares with the handlers, as `ctypes` sees them; see the handlers for their meaning."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


class Field(ctypes.Structure):
    """An array of the engine: `rows` rows of `bytes` bytes, `stride` bytes apart."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    )


class Program(ctypes.Structure):
    """A program of the host, and how often it runs in a row."""

    _fields_ = (
        ("ops", ctypes.c_void_p),
        ("number", ctypes.c_int64),
        ("over", ctypes.c_void_p),
        ("repeats", ctypes.c_int64),
        ("run", ctypes.c_void_p),
    )


class Shard(ctypes.Structure):
    """The programs of a shard, in order."""

    _fields_ = (
        ("programs", ctypes.POINTER(Program)),
        ("number", ctypes.c_int64),
        ("begin", ctypes.c_int64),
        ("end", ctypes.c_int64),
    )


class HostMemory(ctypes.Structure):
    """What the handler of a CPU knows of the engine's memory."""

    _fields_ = (
        ("inputs", ctypes.POINTER(Field)),
        ("num_inputs", ctypes.c_int64),
        ("outputs", ctypes.POINTER(Field)),
        ("num_outputs", ctypes.c_int64),
        ("shards", ctypes.POINTER(Shard)),
        ("num_shards", ctypes.c_int64),
        ("index", ctypes.c_int64),
        ("cleared", ctypes.POINTER(Field)),
        ("num_cleared", ctypes.c_int64),
        ("chosen", ctypes.c_void_p),
        ("num_chosen", ctypes.c_void_p),
    )


class Graph(ctypes.Structure):
    """An executable CUDA graph, and how often it is launched in a row."""

    _fields_ = (("handle", ctypes.c_void_p), ("repeats", ctypes.c_int64))


class CudaMemory(ctypes.Structure):
    """What the handler of a GPU knows of the engine's memory."""

    _fields_ = (
        ("inputs", ctypes.POINTER(Field)),
        ("num_inputs", ctypes.c_int64),
        ("outputs", ctypes.POINTER(Field)),
        ("num_outputs", ctypes.c_int64),
        ("graphs", ctypes.POINTER(Graph)),
        ("num_graphs", ctypes.c_int64),
        ("gather", ctypes.c_void_p),
        ("scatter", ctypes.c_void_p),
        ("progress", ctypes.c_void_p),
        ("progress_words", ctypes.c_int64),
        ("event", ctypes.c_void_p),
        ("fallback", ctypes.POINTER(ctypes.c_int64)),
        ("cleared", ctypes.POINTER(Field)),
        ("num_cleared", ctypes.c_int64),
        ("choose", ctypes.c_void_p),
        ("chosen", ctypes.c_void_p),
        ("num_chosen", ctypes.c_void_p),
        ("num_worlds", ctypes.c_int64),
    )


def array_of(kind: type[Any], values: Sequence[Any]) -> Any:
    """A C array of structures, with at least one entry."""
    return (kind * max(1, len(values)))(*values)


class Item(ctypes.Structure):
    """An array to copy on a GPU, in words of four bytes; see `copies.cu`."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("instead", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        *((name, ctypes.c_int32) for name in ("rows", "words", "from_stride", "to_stride", "instead_stride", "unused")),
    )


MOST_ITEMS = 56
"""Items of a launch, whose parameters may take 4 KB."""
