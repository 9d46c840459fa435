"""Numbers, vectors and attributes of MJCF, drawn at random from few round values."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")

SOLREFS = ("0.02 1", "0.04 0.7", "0.01 1.5", "-300 -20")
SOLIMPS = ("0.9 0.95 0.001", "0.7 0.95 0.1 0.4 3", "0.9 0.9 0.01", "0.5 0.99 0.05 0.7 1")


def words(*values: float) -> str:
    """Numbers as MJCF writes them."""
    return " ".join(f"{value:g}" for value in values)


class Draw:
    """Draws what models are made of.

    Args:
        seed: equal seeds draw the same, on every machine.
    """

    def __init__(self, seed: int | str):
        self.rng = random.Random(f"{seed}")

    def chance(self, probability: float) -> bool:
        """True with some probability."""
        return self.rng.random() < probability

    def choice(self, values: Sequence[_T]) -> _T:
        """One of some values."""
        return values[self.rng.randrange(len(values))]

    def several(self, values: Sequence[_T], least: int, most: int) -> list[_T]:
        """From `least` to `most` different values, as far as there are so many."""
        return self.rng.sample(values, min(len(values), self.rng.randint(least, max(least, most))))

    def count(self, least: int, most: int) -> range:
        """As many numbers from 0 as a count from `least` to `most` says."""
        return range(self.rng.randint(least, most))

    def number(self, low: float, high: float) -> float:
        """One of eleven numbers from `low` to `high`."""
        return round(low + (high - low) * self.rng.randint(0, 10) / 10, 6)

    def numbers(self, low: float, high: float, size: int) -> str:
        """Numbers from `low` to `high`."""
        return words(*(self.number(low, high) for _ in range(size)))

    def vector(self, reach: float, size: int = 3) -> str:
        """A vector with entries from -reach to reach."""
        return self.numbers(-reach, reach, size)

    def quaternion(self) -> str:
        """A quaternion of whole numbers, which MuJoCo normalizes."""
        entries = [self.rng.randint(-3, 3) for _ in range(4)]
        return words(*(entries if any(entries) else (1, 0, 0, 0)))

    def direction(self) -> str:
        """An axis that is no axis of a box: faces that stay parallel touch in ways that rounding decides."""
        x, y, z = (self.rng.randint(-3, 3) for _ in range(3))
        return words(x + 0.3, y + 0.2, z + 0.6)

    def interval(self, low: float, high: float) -> str:
        """Two numbers in ascending order, on either side of zero."""
        return words(self.number(low, -0.1), self.number(0.1, high))

    def solref(self) -> str:
        """Time constant and damping ratio of a constraint, or its stiffness and damping."""
        return self.choice(SOLREFS)

    def solimp(self) -> str:
        """Impedance of a constraint."""
        return self.choice(SOLIMPS)

    def attributes(self, **choices: Callable[[], object]) -> str:
        """Up to five of the attributes, each with the value that its function draws."""
        chosen = self.several(sorted(choices), 0, 5)
        values = ((name, choices[name]()) for name in chosen)
        return " ".join(
            f'{name}="{value:g}"' if isinstance(value, float) else f'{name}="{value}"' for name, value in values
        )
