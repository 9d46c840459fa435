"""`KernelFunctions`: compiled kernels of one backend, precision and number of lanes, built when first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from simengine.kernels.kernel import Kernel

Loader = Callable[[list[Kernel]], dict[str, Any]]


class KernelFunctions:
    """Functions by kernel.

    Args:
        load: compiles kernels in parallel, or finds them in the cache, and returns their functions by name.
    """

    def __init__(self, load: Loader):
        self._load = load
        self._functions: dict[str, Any] = {}

    def require(self, kernels: Iterable[Kernel]) -> None:
        """Make sure that these kernels are loaded; missing ones are built together."""
        missing = [kernel for kernel in kernels if kernel.name not in self._functions]
        if missing:
            self._functions.update(self._load(missing))

    def __getitem__(self, kernel: Kernel) -> Any:
        self.require([kernel])
        return self._functions[kernel.name]
