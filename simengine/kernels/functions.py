"""`KernelFunctions`: compiled kernels of one backend and precision, built when first needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from simengine.kernels.kernel import Kernel


class Build(NamedTuple):
    """What is compiled: a kernel, for a number of lanes of its units."""

    kernel: Kernel
    lanes: int


Made = TypeVar("Made")
Loader = Callable[[Sequence[Build]], Sequence[Any]]


class KernelFunctions:
    """Functions by build.

    Args:
        load: compiles kernels in parallel, or finds them in the cache, and returns their functions in the same order.
    """

    def __init__(self, load: Loader):
        self._load = load
        self._functions: dict[Build, Any] = {}

    def require(self, builds: Iterable[Build]) -> None:
        """Make sure that these kernels are loaded; missing ones are built together."""
        missing = [build for build in dict.fromkeys(builds) if build not in self._functions]
        if missing:
            self._functions.update(zip(missing, self._load(missing), strict=True))

    def __getitem__(self, build: Build) -> Any:
        self.require([build])
        return self._functions[build]


def together(
    make: Callable[[Build], Made], builds: Sequence[Build], size: Callable[[Build], int]
) -> Iterator[tuple[Build, Made]]:
    """Make something of every build on all processors, and yield each with what was made of it.

    The largest are first, so that the processors do not wait at the end for one that was late.
    """
    largest_first = sorted(builds, key=size, reverse=True)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        yield from zip(largest_first, pool.map(make, largest_first), strict=True)
