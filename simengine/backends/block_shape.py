"""How many worlds share a block of threads on a GPU, where kernels run world by world."""

from __future__ import annotations

_RESERVED_BYTES = 1024  # of the shared memory of each block, by CUDA
_WARP = 32
_ENOUGH_THREADS = 768  # on a multiprocessor; registers do not let many more of them run a kernel with a solver


def worlds_of_block(units: int, lanes: int, scratch: int, most: int, spread: int, shared: int) -> int:
    """The number of worlds, or of other units, in a block.

    If there are at most `spread` units, each has a block of its own, so that units with different numbers of iterations
    do not wait for each other. More units share blocks, as long as that leaves room for as many on a multiprocessor: a
    large block wastes the shared memory that is too little for another one. Units of several warps never share one,
    since their lanes wait for the whole block.

    Args:
        units: number of units of the launch.
        lanes: threads of a unit.
        scratch: shared memory of a unit [bytes].
        most: largest number of units in a block.
        spread: number of blocks above which units share blocks.
        shared: shared memory of a multiprocessor [bytes].
    """
    if lanes > _WARP:
        return 1
    worlds = 1
    while worlds < most and units > worlds * spread:
        worlds = min(2 * worlds, most)

    def at_once(worlds: int) -> int:
        return min(worlds * (shared // (worlds * scratch + _RESERVED_BYTES)), _ENOUGH_THREADS // lanes)

    while worlds * lanes >= 2 * _WARP and at_once(worlds) < at_once(worlds // 2):
        worlds //= 2
    return worlds
