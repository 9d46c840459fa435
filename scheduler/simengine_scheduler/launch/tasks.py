"""What a call must bring so that workers on the device can run it: a body, tiles, and what a tile touches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..core.errors import choose_one


@dataclass(frozen=True, slots=True, eq=False)
class DeviceBody:
    """A device function that runs one tile of a call; equal only to itself.

        extern "C" __device__ void NAME(const unsigned long long* arguments, int tile, char* memory)

    `arguments` are those of the launch in 8-byte words, at the start of the block's dynamic shared memory; `memory` is
    what the task asked for of it.

    Attributes:
        name: of the function; two bodies of one list must not share it.
        code: its intermediate code (see `simengine_scheduler.device.compile_body`), or what returns that when asked.
        threads: of the block that calls it, as (threads, 1, 1); a multiple of 32. With executor option `merged` they
            may be the first of a larger block, where the body has no way to tell.
        registers: most registers a thread. Bodies of equal threads, registers and family share workers, so that light
            ones do not pay for heavy ones.
        family: what is built together: a worker's code is optimised as a whole, which takes longer the more it runs.
        address: where it is, for workers on the host.
    """

    name: str
    code: bytes | Callable[[], bytes] = b""
    threads: int = 32
    registers: int = 128
    family: str = ""
    address: int = 0

    def __post_init__(self) -> None:
        if self.threads < 32 or self.threads % 32 or self.threads > 1024:
            raise ValueError(f"body {self.name!r} asks for {self.threads} threads; give a multiple of 32 up to 1024")


@dataclass(frozen=True, slots=True)
class Tiling:
    """Which part of its tiled segments a tile touches, as in cuSync's policies (arXiv 2305.13450).

    tile: tile i part i. row: tile i part i // size, so that a part is ready once all its tiles have ended.
    strided: tile i part i % size. Calls wait for one another part by part where they have equally many.
    """

    kind: Literal["tile", "row", "strided"] = "tile"
    size: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("tile", "row", "strided"):
            raise ValueError(f"tiling {self.kind!r} is unknown; {choose_one(self.kind, ('tile', 'row', 'strided'))}")
        if self.size < 1 or (self.kind == "tile" and self.size != 1):
            raise ValueError(f"tiling {self.kind!r} cannot have size {self.size}; give at least 1, and 1 for 'tile'")

    def parts(self, tiles: int) -> int:
        """Number of parts."""
        return self.size if self.kind == "strided" else -(-tiles // self.size)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTask:
    """How workers on the device run a launch.

    Attributes:
        body: runs a tile.
        tiles: how many there are, numbered from 0.
        memory: shared memory of a block [bytes].
        tiling: of the segments that the call names as `tiled`.
        count: where the device finds how many units there are, as a (buffer, byte offset) pair; tiles beyond them do
            nothing. None: all tiles have work.
        units: in a tile.
    """

    body: DeviceBody
    tiles: int
    memory: int = 0
    tiling: Tiling = Tiling()
    count: Any = None
    units: int = 1

    def __post_init__(self) -> None:
        if self.tiles < 1 or self.units < 1 or self.memory < 0:
            raise ValueError(
                f"task of body {self.body.name!r} has {self.tiles} tiles of {self.units} units, {self.memory} bytes; "
                f"give at least one tile and unit, and no negative memory"
            )
