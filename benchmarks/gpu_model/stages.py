"""Executor `device` on robots by stages, as ACS-HW ran them: what the model says, and which costs keep it from more.

The list is issued ahead of counts, which the device reads itself. Durations follow from the bound that was measured
with the same robot's list by counts (`benchmarks.gpu_model.varying`). A list ahead of counts has more calls. Those that
have no work in a step take as long on the model as if they had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.gpu_model.varying import GpuOfList, gpu_of_list, modelled
from simengine.cli.simulations.workloads import make_workload
from simengine_scheduler.gpu_model import gpu_named
from simengine_scheduler.study.specs import Spec

BY_COUNTS, AHEAD = ":emission=stages", ":emission=stages-ahead"
_PERSISTENT = ("admit", "release", "worker", "ticket")  # costs of the persistent kernel, which are known of the H200
_NODE = 0.7e-6  # what a graph of the H200 takes from one call to the next [s]


def machines(gpu: GpuOfList) -> dict[str, GpuOfList]:
    """The machine of a list, and what it would be if the persistent kernel had lower costs."""
    return {
        "device": gpu,
        "bodies as long as kernels": replace(gpu, worker=1.0),
        "calls follow as in a graph": replace(gpu, release=_NODE),
        "both, and a free window": replace(gpu, worker=1.0, release=_NODE, admit=0.0),
    }


def stages(result: Mapping[str, Any], names: Sequence[str], gpu: str, steps: int) -> Iterator[dict[str, Any]]:
    """A row for each robot of a result: what a step takes [us]."""
    persistent = {name: getattr(gpu_named("h200"), name) for name in _PERSISTENT}
    serial = {row["workload"]: row for row in result["rows"] if row["executor"] == "serial"}
    for name in names or [name for name in serial if name.endswith(BY_COUNTS)]:
        by_counts, ahead = (make_workload(Spec.parse(own), "host") for own in (name, name.replace(BY_COUNTS, AHEAD)))
        machine = replace(gpu_of_list(gpu_named(gpu), by_counts, serial[name]["bound"]), **persistent)
        row = {"workload": name, "measured serial": serial[name]["us_per_step"]}
        row["serial"] = modelled(by_counts, "serial", machine, steps)
        row["serial, ahead"] = modelled(ahead, "serial", machine, steps)
        row["graph-cached, ahead"] = modelled(ahead, "graph-cached", machine, steps)
        row |= {what: modelled(ahead, "device", other, steps) for what, other in machines(machine).items()}
        yield {what: round(us, 1) if isinstance(us, float) else us for what, us in row.items()}
        by_counts.close()
        ahead.close()
