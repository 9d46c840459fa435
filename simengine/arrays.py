"""Types of the arrays that users pass and receive."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt


class Array(Protocol):
    """An array that users receive.

    It is a NumPy array on backend "host", a CuPy array on backend "cuda", and a `jax.Array` on backend "jax".
    `simengine.to_host` converts each of them to a NumPy array. All of them share memory through DLPack, as in
    `torch.from_dlpack(sim.qpos)`.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Length along each axis."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""

    @property
    def ndim(self) -> int:
        """Number of axes."""

    @property
    def size(self) -> int:
        """Number of entries."""

    @property
    def nbytes(self) -> int:
        """Size of the entries [bytes]."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray: ...
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...
    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Sum of all entries, or sums along axes."""

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Mean of all entries, or means along axes."""

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """Smallest entry, or smallest entries along axes."""

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """Largest entry, or largest entries along axes."""

    def copy(self) -> Any:
        """A copy with memory of its own."""

    def astype(self, dtype: Any, /) -> Any:
        """A copy with entries of another type."""

    def reshape(self, *shape: Any) -> Any:
        """The entries in another shape."""


ArrayLike: TypeAlias = npt.ArrayLike | Array
"""What users may pass: an array of NumPy, CuPy or JAX, a PyTorch tensor on the host, nested lists, or a number."""


def to_host(array: Array) -> np.ndarray:
    """Return the array of any backend as a NumPy array. An array in host memory is viewed, not copied."""
    get = getattr(array, "get", None)  # CuPy refuses implicit conversion and has this method instead
    return get() if get else np.asarray(array)
