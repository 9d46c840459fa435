"""Where arrays lie: the bytes of arrays of NumPy, CuPy, PyTorch and JAX, and of buffers, as ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import Buffer


def bytes_of(array: Any) -> tuple[int, int]:
    """Return the first address of an array, and the number of bytes from there to its end, gaps of strides included.

    Raises:
        TypeError: it is no array of these libraries, and no buffer.
    """
    if isinstance(array, Buffer):
        return array.ptr, array.nbytes
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(array, name, None)
        if interface is not None:
            shape, itemsize = interface["shape"], int(interface["typestr"][2:])
            return _span(interface["data"][0], shape, interface.get("strides"), itemsize)
    if hasattr(array, "data_ptr"):  # PyTorch, whose arrays on the host have no interface; strides count elements
        itemsize = array.element_size()
        return _span(array.data_ptr(), array.shape, [itemsize * stride for stride in array.stride()], itemsize)
    if hasattr(array, "unsafe_buffer_pointer"):  # JAX
        return array.unsafe_buffer_pointer(), array.nbytes
    raise TypeError(f"a {type(array).__name__} is no array; give one of NumPy, CuPy, PyTorch or JAX, or a Buffer")


def is_array(value: Any) -> bool:
    """Whether `bytes_of` knows where a value lies. Scalars of NumPy are no arrays."""
    if isinstance(value, Buffer):
        return True
    if getattr(value, "ndim", None) == 0 and not hasattr(value, "__cuda_array_interface__"):
        return False
    names = ("__cuda_array_interface__", "__array_interface__", "data_ptr", "unsafe_buffer_pointer")
    return any(hasattr(value, name) for name in names)


def on_device(array: Any) -> bool:
    """Whether an array is on a GPU."""
    return getattr(array, "__cuda_array_interface__", None) is not None


def _span(start: int, shape: Sequence[int], strides: Sequence[int] | None, itemsize: int) -> tuple[int, int]:
    if 0 in shape:
        return int(start), 0
    if strides is None:
        size = itemsize
        for length in shape:
            size *= length
        return int(start), size
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    first = sum(min(0, each) for each in reach)
    return int(start) + first, sum(max(0, each) for each in reach) - first + itemsize
