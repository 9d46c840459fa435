"""What the GPU model knows of a machine: limits of its multiprocessors, and how long each action takes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ..core.calls import Cost
from .recording import LaunchShape

_WARP = 32
_REGISTER_UNIT = 256  # registers are allocated to a warp in multiples of this
_RESERVED = 1024  # bytes of shared memory that the system takes for each block


@dataclass(frozen=True, slots=True)
class HostSpec:
    """Times of actions on the host [s], for one call each unless said otherwise.

    Attributes:
        launch, record, wait, query: functions of the driver.
        hop: what a launch adds that goes to another stream than the one before it.
        launch_graph, launch_node: the launch of a graph, and what each of its nodes adds.
        launch_branches: what it adds that the nodes of a graph are not simply one behind another.
        launch_workers: the launch of a list on persistent kernels.
        build, build_node: building and instantiating a graph, and what each of its nodes adds.
        resolve: finding what conflicts with a combination of segments, once for each combination in an executor's
            graphs.
        emit: what an emitter takes to yield a call.
        run: what a run takes besides its calls.
        resume: what an executor does before emitters go on whose awaited calls it has seen to end.
        keep: what an executor does for a call, charged with its launch.
        keep_piece: the same for a call of a graph that compiled code launches.
        keep_polled: the same with completion by polling, on a host with `compiled`.
        track: what window, hazard check and choice of a stream add, charged as the call is pulled. For a fixed list it
            is charged once, when its script is made; polling makes no scripts and is charged in every run.
        plan: hazard check and choice of a planner, also charged once for a fixed list.
        check: a hazard check of ACS against one call of its window.
        notify: a scheduler thread of ACS returns from its wait and updates the window.
        send: putting a call into a queue that the GPU reads.
        listed: how many calls the host of ACS-HW has in its list at most (a number, no time).
        compiled: whether compiled code issues calls. `track` is not charged then.
    """

    launch: float = 2.9e-6
    hop: float = 0.0
    record: float = 0.3e-6
    wait: float = 0.3e-6
    query: float = 0.22e-6
    launch_graph: float = 3e-6
    launch_node: float = 0.0
    launch_branches: float = 0.0
    launch_workers: float = 9e-6
    build: float = 0.0
    build_node: float = 4.5e-6
    resolve: float = 0.0
    run: float = 0.0
    resume: float = 0.0
    emit: float = 0.0
    keep: float = 1e-6
    keep_piece: float = 0.0
    keep_polled: float = 1e-6
    track: float = 2e-6
    plan: float = 2e-6
    check: float = 51e-9
    notify: float = 5e-6
    send: float = 0.5e-6
    listed: int = 128
    compiled: bool = False


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """A GPU and its host.

    Attributes:
        name: shown in errors.
        multiprocessors: how many there are.
        threads, blocks, registers, shared: limits of one multiprocessor; shared memory in bytes.
        resident: how many kernels run at a time at most.
        contention: a block lasts 1 + contention x times as long if other kernels hold a share x of the threads of its
            multiprocessor when it starts.
        speed: of a multiprocessor, relative to the GPU on which durations were measured.
        reference: the GPU on which durations were measured, if it is another one.
        dispatch: time from a call of the driver until the device has the command [s], as all times that follow.
        chain: from the end of a kernel to the start of the next on its stream.
        mark: what an event between two kernels adds.
        crossing: from the end of a kernel to the start of one that waits for it on another stream.
        spacing: between the starts of any two kernels.
        node: from the end of a node of a graph to the start of the next.
        join: what it adds that the next node waits for several.
        visible: from the end of work until the host can see it.
        interconnect: for a word from host to device, or back.
        slot: for a window on the GPU to take in or give out a call.
        reset: persistent kernel: from the arrival of a list to the first call of the window.
        admit: persistent kernel: for the window to take in a call.
        ticket: persistent kernel: for a block to take a tile.
        release: persistent kernel: from the end of a call to the start of one that waited for it.
        wake: persistent kernel: from when a call is ready until blocks may take its tiles, if they take tiles of ready
            calls only; None if they take tiles in program order.
        tiles: persistent kernel: blocks on each multiprocessor.
        worker: persistent kernel: how many times as long a body lasts as in a kernel of its own.
        flops, bandwidth, shortest: give the duration of calls that have only cost hints [1/s, bytes/s, s].
        host: times of the host.
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
    join: float = 0.0
    visible: float = 1e-6
    interconnect: float = 1e-6
    slot: float = 50e-9
    reset: float = 3e-6
    admit: float = 0.0
    ticket: float = 10e-9
    release: float = 1.58e-6
    wake: float | None = None
    tiles: int = 4
    worker: float = 1.0
    flops: float = 1e12
    bandwidth: float = 1e12
    shortest: float = 2e-6
    host: HostSpec = field(default_factory=HostSpec)

    def __post_init__(self) -> None:
        """Refuse a machine that could not run anything, and times that are negative or infinite."""
        for name in ("multiprocessors", "threads", "blocks", "registers", "shared", "resident", "tiles"):
            if getattr(self, name) < 1:
                raise ValueError(f"GPU {self.name!r} has {name}={getattr(self, name)}; give at least 1")
        for name in ("speed", "worker", "flops", "bandwidth"):
            if not getattr(self, name) > 0:
                raise ValueError(f"GPU {self.name!r} has {name}={getattr(self, name)}; give a positive number")
        times = {name: getattr(self, name) for name in (*_TIMES, "contention")}
        times |= {} if self.wake is None else {"wake": self.wake}
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
        """Return how long each block of a kernel runs, given the duration of the kernel where it was measured [s]."""
        return seconds / ((self.reference or self).waves(shape) * self.speed)

    def estimate(self, cost: Cost) -> float:
        """Return a duration for a call of which only the cost hints are known [s]."""
        return max(self.shortest, cost.flops / self.flops, cost.bytes / self.bandwidth)


_TIMES = (
    *("dispatch", "chain", "mark", "crossing", "spacing", "node", "join", "visible", "interconnect"),
    *("slot", "reset", "admit", "ticket", "release", "shortest"),
)
