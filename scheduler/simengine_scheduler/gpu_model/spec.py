"""What the GPU model knows of a machine: limits of its multiprocessors, and what each action costs in time."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ..core.calls import Cost
from .recording import LaunchShape

_WARP = 32
_REGISTER_UNIT = 256  # registers are given to a warp in such portions
_RESERVED = 1024  # bytes of shared memory that a block costs besides its own


@dataclass(frozen=True, slots=True)
class HostSpec:
    """Costs on the host [s]. Those of one call each, unless said otherwise.

    launch, record, wait, query: the driver's functions. launch_graph, launch_node: a graph's launch, and what each of
    its nodes adds. launch_workers: the launch of a list on persistent kernels. build, build_node: building and
    instantiating a graph, and what each of its nodes adds. resolve: finding out what conflicts with a combination of
    segments, once for each that an executor's graphs hold.
    emit: an emitter's making of a call.
    keep: an executor's own work on a call, charged with its launch. track: what the window, hazards and the choice of
    a stream add to it, charged as it is pulled: before the executor waits for anything. For a fixed list it is charged
    once, as a script is made of it, except under polling, which makes none.
    plan: hazards and a planner's choice for a call, of a fixed list also once.
    check: a hazard check of ACS against one call of its window. notify: a scheduler thread of ACS returns from its wait
    and brings the window up to date. send: putting a call into a queue that the GPU reads. listed: calls, not seconds,
    that the host of ACS-HW keeps in its list, at most.
    """

    launch: float = 2.9e-6
    record: float = 0.3e-6
    wait: float = 0.3e-6
    query: float = 0.22e-6
    launch_graph: float = 3e-6
    launch_node: float = 0.0
    launch_workers: float = 9e-6
    build: float = 0.0
    build_node: float = 4.5e-6
    resolve: float = 0.0
    emit: float = 0.0
    keep: float = 1e-6
    track: float = 2e-6
    plan: float = 2e-6
    check: float = 51e-9
    notify: float = 5e-6
    send: float = 0.5e-6
    listed: int = 128


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """A GPU and its host.

    Limits of one multiprocessor: threads, blocks, registers, shared memory [bytes]. `resident`: kernels at a time.
    `contention`: a block that starts on a multiprocessor whose threads belong to other kernels by a share x lasts
    1 + contention x times as long. `speed`: of a multiprocessor, relative to where durations were taken.
    `reference`: the GPU on which durations were taken, where that is another one.

    Times [s]. dispatch: from the host's call to the device's having the command. chain: from the end of a kernel to the
    start of the next on its stream. mark: what an event between the two adds. crossing: from the end of a kernel to the
    start of one that waits for it on another stream. spacing: between the starts of any two kernels. node: from the end
    of a graph's node to the start of the next. visible: from the end of work until the host can see it.
    interconnect: a word from host to device, or back. slot: a window on the GPU takes in or gives out a call.

    Of a persistent kernel, reset: from a list's being there to the window's first call. admit: its window takes in a
    call. ticket: a block takes a tile. release: from the end of a call to the start of one that waited for it.
    tiles: blocks on each multiprocessor. worker: how many times as long as in a kernel of its own a body lasts there.

    flops, bandwidth, shortest: the duration of calls that say nothing but their cost hints [1/s, bytes/s, s].
    """

    name: str
    multiprocessors: int
    threads: int = 2048
    blocks: int = 32
    registers: int = 65536
    shared: int = 233472
    resident: int = 128
    contention: float = 0.0
    speed: float = 1.0
    reference: GpuSpec | None = None
    dispatch: float = 3e-6
    chain: float = 1.1e-6
    mark: float = 0.0
    crossing: float = 2e-6
    spacing: float = 0.2e-6
    node: float = 0.7e-6
    visible: float = 1e-6
    interconnect: float = 1e-6
    slot: float = 50e-9
    reset: float = 3e-6
    admit: float = 0.0
    ticket: float = 10e-9
    release: float = 1.58e-6
    tiles: int = 4
    worker: float = 1.0
    flops: float = 1e12
    bandwidth: float = 1e12
    shortest: float = 2e-6
    host: HostSpec = field(default_factory=HostSpec)

    def __post_init__(self) -> None:
        """Refuse a machine that could not run anything, and time that runs backwards."""
        for name in ("multiprocessors", "threads", "blocks", "registers", "shared", "resident", "tiles"):
            if getattr(self, name) < 1:
                raise ValueError(f"GPU {self.name!r} has {name}={getattr(self, name)}; give at least 1")
        for name in ("speed", "worker", "flops", "bandwidth"):
            if not getattr(self, name) > 0:
                raise ValueError(f"GPU {self.name!r} has {name}={getattr(self, name)}; give a positive number")
        times = {name: getattr(self, name) for name in (*_TIMES, "contention")}
        times |= {f"host.{part.name}": getattr(self.host, part.name) for part in fields(self.host)}
        for name, value in times.items():
            if not 0 <= value < float("inf"):
                raise ValueError(f"GPU {self.name!r} has {name}={value}; give a finite number that is not negative")

    def needs(self, shape: LaunchShape) -> tuple[int, int, int, int]:
        """Return what a block takes of a multiprocessor: threads, blocks, registers, shared memory [bytes]."""
        warps = -(-shape.threads // _WARP)
        registers = -(-shape.registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT * warps
        return warps * _WARP, 1, registers, shape.shared + _RESERVED

    def limits(self) -> tuple[int, int, int, int]:
        """Return what a multiprocessor has, in the order of `needs`."""
        return self.threads, self.blocks, self.registers, self.shared

    def occupancy(self, shape: LaunchShape) -> int:
        """Return how many such blocks an empty multiprocessor holds; 0 if none fits."""
        return min(have // need for have, need in zip(self.limits(), self.needs(shape), strict=True) if need)

    def waves(self, shape: LaunchShape) -> int:
        """Return how often the empty GPU must be filled until all blocks have run. Raises ValueError if none fits."""
        held = self.occupancy(shape)
        if held == 0:
            raise ValueError(f"a block of {shape} does not fit a multiprocessor of {self.name!r}; choose another GPU")
        return -(-shape.blocks // (held * self.multiprocessors))

    def block_seconds(self, shape: LaunchShape, seconds: float) -> float:
        """Return how long each block runs, for a kernel that lasts so long alone where its duration was taken."""
        return seconds / ((self.reference or self).waves(shape) * self.speed)

    def estimate(self, cost: Cost) -> float:
        """Return a duration for a call of which nothing is known but its cost hints [s]."""
        return max(self.shortest, cost.flops / self.flops, cost.bytes / self.bandwidth)


_TIMES = (
    *("dispatch", "chain", "mark", "crossing", "spacing", "node", "visible", "interconnect"),
    *("slot", "reset", "admit", "ticket", "release", "shortest"),
)
