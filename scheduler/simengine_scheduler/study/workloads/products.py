"""Chains of matrix products, cut into bands of rows.

    chain c:  X0 --right--> X1 --left--> X2 --right--> X3 ...     X1 = X0 W:  a band waits for the same band of X0
              |band 0|      |band 0|     |band 0|                 X2 = A X1:  a band waits for all of X1
              |band 1|      |band 1|     |band 1|

With form "varying", some chains take part in a step, each with some number of its products, so that lists come in forms
that were never seen. With form "fixed" all products of all chains are one list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.calls import Emitter, FixedList, KernelCall
from .base import Network, check_form
from .calls import CallMaker
from .kernels import BOUNDED
from .targets import Target

_TAKE_PART = 0.75  # probability that a chain takes part in a step


class _Chain:
    """The products of a chain: for each of them a call for each band."""

    def __init__(self, make: CallMaker, length: int, size: int, bands: int) -> None:
        drawn = make.rng.uniform(-1, 1, (length + 1, size, size)).astype(np.float32)
        arrays = [make.field(f"x{k}", drawn[0] if k == 0 else np.zeros_like(drawn[0])) for k in range(length + 1)]
        self.observe = make.observe("x0", (arrays[0], arrays[length]), size, size, size, f"x{length}")
        self.products: list[list[KernelCall]] = []
        zero = make.memory.constant(np.zeros(size, np.float32))
        rows = size // bands
        for k in range(length):
            left = make.memory.constant(drawn[k + 1] * np.float32(1.5 / np.sqrt(size))) if k % 2 else None
            calls = []
            for band in range(bands):
                own = slice(band * rows, (band + 1) * rows)
                calls.append(
                    make.dense(
                        f"product{k}_band{band}",
                        arrays[k][own] if left is None else left[own],
                        arrays[k + 1][own],
                        (rows, size, size),
                        BOUNDED,
                        reads=(make.segment(f"x{k}", band if left is None else None),),
                        writes=(make.segment(f"x{k + 1}", band),),
                        layer=None if left is None else (arrays[k], zero),
                    )
                )
            self.products.append(calls)

    def calls(self, length: int) -> list[KernelCall]:
        """Return the calls of a step with so many products."""
        return [self.observe, *(call for calls in self.products[:length] for call in calls)]


class Products(Network):
    """Chains of matrix products.

    Args:
        target: where it runs.
        chains: how many there are.
        length: products of a chain.
        size: rows and columns of every matrix; a multiple of `bands`.
        bands: calls of a product.
        form: "varying" or "fixed".
        seed: of matrices and forms.
    """

    def __init__(
        self,
        target: Target,
        chains: int = 8,
        length: int = 8,
        size: int = 128,
        bands: int = 4,
        form: str = "varying",
        seed: int = 0,
    ) -> None:
        super().__init__("products", target, chains)
        if size % bands:
            raise ValueError(f"matrices of {size} rows cannot be cut into {bands} bands; give a multiple of it")
        self._fixed = check_form(form) == "fixed"
        rng = np.random.default_rng(seed)
        self._chains = [_Chain(CallMaker(self.memory, n, rng), length, size, bands) for n in range(chains)]
        self._length, self._seed = length, seed
        self._lists = [FixedList(chain.calls(length)) for chain in self._chains]
        self._forms = np.random.default_rng(seed)

    def emitters(self) -> Sequence[Emitter]:
        """Return the list of each chain that takes part."""
        if self._fixed:
            return list(self._lists)
        lengths = self._forms.integers(1, self._length, len(self._chains), endpoint=True)
        drawn = self._forms.random(len(self._chains))
        present = drawn <= max(_TAKE_PART, drawn.min())  # one at least
        chains = zip(self._chains, lengths.tolist(), present.tolist(), strict=True)
        return [chain.calls(length) for chain, length, takes_part in chains if takes_part]

    def reset(self) -> None:
        """Restore every field, and draw the same forms again."""
        super().reset()
        self._forms = np.random.default_rng(self._seed)
