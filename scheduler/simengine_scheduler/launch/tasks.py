"""Tasks: how workers of executor `device` run a call, tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..core.errors import choose_one


@dataclass(frozen=True, slots=True, eq=False)
class DeviceBody:
    """A device function that runs one tile of a call. A body is equal only to itself.

        extern "C" __device__ void NAME(const unsigned long long* arguments, int tile, char* memory)

    `arguments` are the arguments of the launch in 8-byte words, in shared memory. `memory` is the shared memory that
    the task asks for.

    Attributes:
        name: of the function. Two bodies of one list must not have one name.
        code: its intermediate code (see `simengine_scheduler.device.compile_body`), or a function that returns it. The
            linker takes types of one name in several bodies for one type. So types of which bodies have versions of
            their own belong in an unnamed namespace.
        threads: of the block that calls it, as (threads, 1, 1); a multiple of 32. With executor option `merged` they
            may be the first threads of a larger block.
        registers: most registers of a thread. Bodies with the same threads, registers and family share workers, so
            that a body with few registers does not lose occupancy to one with many.
        family: bodies of one family are linked to one program. Linking takes longer the more bodies a program has.
        address: of the function, for workers on the host.
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

    Two calls wait for each other part by part where they have equally many parts.

    Attributes:
        kind: "tile" if tile i touches part i, "row" if tile i touches part i // size, "strided" if it touches part
            i % size. A part is ready once all tiles that touch it have ended.
        size: of rows or strides; 1 for "tile".
    """

    kind: Literal["tile", "row", "strided"] = "tile"
    size: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("tile", "row", "strided"):
            raise ValueError(f"tiling {self.kind!r} is unknown; {choose_one(self.kind, ('tile', 'row', 'strided'))}")
        if self.size < 1 or (self.kind == "tile" and self.size != 1):
            raise ValueError(f"tiling {self.kind!r} cannot have size {self.size}; give at least 1, and 1 for 'tile'")

    def parts(self, tiles: int) -> int:
        """Return the number of parts of a call with so many tiles."""
        return self.size if self.kind == "strided" else -(-tiles // self.size)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTask:
    """How workers on the device run a launch.

    Attributes:
        body: runs a tile.
        tiles: how many tiles the call has, numbered from 0.
        memory: shared memory of a block [bytes].
        tiling: which part of the call's `tiled` segments a tile touches.
        count: where the GPU finds the number of units of work, as a (buffer, byte offset) pair. Tiles beyond that
        number
            do nothing. With None all tiles have work.
        units: units of work in a tile.
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
