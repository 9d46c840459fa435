"""The types of arrays that users get and give."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt


class Array(Protocol):
    """An array that users get: of NumPy on the host, of CuPy on backend "cuda", a `jax.Array` on backend "jax".

    `simengine.to_host` makes a NumPy array of each. All exchange memory by DLPack: `torch.from_dlpack(sim.qpos)`.
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
        """Bytes of the entries."""

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
        """Sum of the entries, or along axes."""

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Mean of the entries, or along axes."""

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """Least entry, or least along axes."""

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """Greatest entry, or greatest along axes."""

    def copy(self) -> Any:
        """An array of its own with the same entries."""

    def astype(self, dtype: Any, /) -> Any:
        """The entries in another type."""

    def reshape(self, *shape: Any) -> Any:
        """The entries in another shape."""


ArrayLike: TypeAlias = npt.ArrayLike | Array
"""What users give: an array of NumPy, CuPy, JAX or PyTorch (on the host), nested lists, or a number."""


def to_host(array: Array) -> np.ndarray:
    """A NumPy array of an array of any backend; a view where it is in the host's memory."""
    get = getattr(array, "get", None)  # CuPy converts by this method alone
    return get() if get else np.asarray(array)
