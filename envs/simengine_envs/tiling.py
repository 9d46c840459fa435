"""Pictures of many worlds as one: which worlds are drawn, and the grid that they make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST_DRAWN = 25
"""Most worlds of a grid, unless another number is asked for."""


def grid(count: int) -> tuple[int, int]:
    """Return columns and rows of a grid for a number of pictures."""
    columns = int(np.ceil(np.sqrt(count)))
    return columns, -(-count // columns)


def drawn_worlds(num_worlds: int, most: int = MOST_DRAWN) -> list[int]:
    """Return the worlds that a grid shows, ascending: all of them, or `most` that are spread evenly."""
    if num_worlds <= most:
        return list(range(num_worlds))
    return [index * num_worlds // most for index in range(most)]


def tiled(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Return pictures (height, width, 3) as one, row by row. What is left of the last row is black."""
    columns, rows = grid(len(pictures))
    height, width = pictures[0].shape[:2]
    whole = np.zeros((rows * height, columns * width, *pictures[0].shape[2:]), pictures[0].dtype)
    for index, picture in enumerate(pictures):
        row, column = divmod(index, columns)
        whole[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
    return whole
