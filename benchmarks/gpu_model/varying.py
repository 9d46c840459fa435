"""Lists that vary on the GPU model, issued by compiled code as it is, against what was measured.

The lists are made and run on the host, so that counts choose calls as they do on a GPU. How long kernels last follows
from the bound that was measured with the list: its work and its longest chain. A call takes a time that all calls
share, and another one in proportion to the bytes of its cost hint. The two are such that the sum of all calls is the
work, and the longest chain is as long as the one measured.

The host was not equally fast at all times. A row says how long Python took for a launch, in steps that were recorded
behind those that were timed. All times of the host are scaled by that, over the median of all rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from simengine.cli.simulations.workloads import make_workload
from simengine_scheduler import make_executor
from simengine_scheduler.core import Cost, KernelCall
from simengine_scheduler.core.dependencies import dependencies
from simengine_scheduler.gpu_model import GpuSpec, gpu_named
from simengine_scheduler.gpu_model.simulated import SimulatedExecutor
from simengine_scheduler.study.specs import Spec
from simengine_scheduler.study.workloads.base import Workload

BETWEEN_EVENTS = 3.4e-6
"""What the events around a kernel show besides the kernel [s]: `wired`, 54 calls deep, takes kept graphs 258 us a step,
where its longest chain is 382 us by events."""

_US = 1e-6
_SHORTEST = 0.5e-6
_STEPS = 3  # whose longest chain is looked at, as `bound_of` does
_WARMUP, _LEARNING = 12, 300  # steps before the modelled ones; pieces are learned and tried in more
_MODELLED = ("serial", "streams")
_NO_TIMES = ("listed", "compiled")


@dataclass(frozen=True, slots=True)
class GpuOfList(GpuSpec):
    """A GPU on which a call takes `each` seconds, and `of_byte` more for each byte of its cost hint."""

    each: float = 0.0
    of_byte: float = 0.0

    def estimate(self, cost: Cost) -> float:
        """Return the duration of a call [s]."""
        return max(_SHORTEST, self.each + self.of_byte * cost.bytes - BETWEEN_EVENTS)


def gpu_of_list(gpu: GpuSpec, workload: Workload, bound: Mapping[str, float]) -> GpuOfList:
    """Return the GPU for a list with a measured bound. `workload` is run for a few steps, and reset."""
    steps = list(_orders(workload))
    calls = sum(len(order) for order, _ in steps)
    nbytes = sum(call.cost.bytes for order, _ in steps for call in order)
    mean = _US * bound["work_us"] / bound["calls"]

    def durations(share: float) -> tuple[float, float]:
        return (1 - share) * mean, share * mean * calls / nbytes if nbytes else 0.0

    def chain(share: float) -> float:
        each, of_byte = durations(share)
        return sum(_longest(order, before, each, of_byte) for order, before in steps) / len(steps)

    each, of_byte = durations(_bisected(chain, _US * bound["chain_us"]))
    given = {field.name: getattr(gpu, field.name) for field in fields(gpu)}
    return GpuOfList(**given, each=each, of_byte=of_byte)


def _orders(workload: Workload) -> Iterator[tuple[Sequence[KernelCall], Sequence[Sequence[int]]]]:
    """The calls of the first steps, and for each the calls that it must come after."""
    workload.reset()
    options = {**workload.options, "segments": workload.segments}
    with make_executor("serial", **options, record="order") as executor:
        for _ in range(_STEPS):
            order = workload.run(executor, 1).order
            yield order, [tuple(before) for before in dependencies(order, workload.segments.conflicts)]
    workload.reset()


def _longest(order: Sequence[KernelCall], before: Sequence[Sequence[int]], each: float, of_byte: float) -> float:
    ends: list[float] = []
    for call, others in zip(order, before, strict=True):
        ends.append(each + of_byte * call.cost.bytes + max((ends[other] for other in others), default=0.0))
    return max(ends, default=0.0)


def _bisected(chain: Any, wanted: float) -> float:
    """The share, from 0 to 1, at which the chain is as long as wanted, or comes closest."""
    low, high = 0.0, 1.0
    if chain(low) >= wanted:
        return low
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if chain(middle) < wanted else (low, middle)
    return low


def with_host(gpu: GpuOfList, slower: float) -> GpuOfList:
    """Return the GPU with a host that takes `slower` times as long for everything."""
    host = gpu.host
    times = {field.name: getattr(host, field.name) for field in fields(host) if field.name not in _NO_TIMES}
    return replace(gpu, host=replace(host, **{name: slower * seconds for name, seconds in times.items()}))


def modelled(workload: Workload, executor: str, gpu: GpuSpec, steps: int = 30, **more: Any) -> float:
    """Return what a step takes on the model under an executor, by its spec and further options [us]."""
    spec = Spec.parse(executor)
    own = {name: option for name, option in workload.options.items() if name not in ("device", "segments")}
    options = {**own, **spec.options, **more, "segments": workload.segments}
    learns = spec.name == "streams" and options.get("pieces", True) and options.get("completion") != "polling"
    workload.reset()
    with make_executor("simulated", model=spec.name, gpu=gpu, **options) as simulated:
        assert isinstance(simulated, SimulatedExecutor)
        workload.run(simulated, _LEARNING if learns else _WARMUP)
        simulated.synchronize()
        began = simulated.now
        workload.run(simulated, steps)
        simulated.synchronize()
        return (simulated.now - began) / _US / steps


def compared(result: Mapping[str, Any], names: Sequence[str], gpu: str, steps: int) -> Iterator[dict[str, Any]]:
    """Rows of measured lists, those of `names` or all: what was measured of an executor, and what the model says."""
    rows = [row for row in result["rows"] if row["executor"].partition(":")[0] in _MODELLED and not row["error"]]
    typical = statistics.median(row["issue_us"] for row in rows)
    for name in names or dict.fromkeys(row["workload"] for row in rows):
        workload = make_workload(Spec.parse(name), "host")
        own = [row for row in rows if row["workload"] == name]
        machine = gpu_of_list(gpu_named(gpu), workload, own[0]["bound"])
        for row in own:
            slower = row["issue_us"] / typical
            says = modelled(workload, row["executor"], with_host(machine, slower), steps)
            yield {
                "workload": name,
                "executor": row["executor"],
                "measured_us": round(row["us_per_step"], 1),
                "spread": round(row["spread"], 2),
                "slower": round(slower, 2),
                "modelled_us": round(says, 1),
                "ratio": round(says / row["us_per_step"], 3),
            }
        workload.close()
