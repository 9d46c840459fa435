"""The plan of a step as plain values and as text, for scripts and for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from simengine.kernels.kernel import Kernel
from simengine.kernels.step_kernel import StepKernel
from simengine.plan.evaluation import Evaluation
from simengine.plan.issue import Issue
from simengine.plan.launches import Await, Count, Launch
from simengine.state.fields import TOTALS
from simengine.state.island_fields import ISLAND_COLUMNS
from simengine.state.pair_fields import PAIR_COLUMNS

_COLUMNS = {"totals_host": TOTALS, "pair_totals_host": PAIR_COLUMNS, "island_totals_host": ISLAND_COLUMNS}


ISSUED = {
    Issue.COUNTED: "call by call, after the contacts and rows of the step have been counted",
    Issue.AHEAD: "as one fixed list, before contacts and rows have been counted",
    Issue.STEP_KERNEL: "as one kernel that makes whole steps",
    Issue.PROGRAM: "as one compiled call for each shard, which counts and launches by itself",
}
"""What each way of issuing means."""


def evaluation_facts(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """The launches of each evaluation of the dynamics as rows; equal evaluations stand together."""
    alike = groupby(enumerate(evaluations, start=1), key=lambda numbered: numbered[1].launches)
    return [
        {"numbers": [number for number, _ in same], "launches": [_row(item) for item in launches]}
        for launches, same in alike
    ]


def phases(kernel: StepKernel) -> list[list[list[str]]]:
    """Names of the stages of each phase of a kernel of whole steps, by team."""
    return [[[stage.name for stage in track] for track in phase] for phase in kernel.phases]


def _row(item: Launch | Await) -> dict[str, Any]:
    if isinstance(item, Await):
        needs = ", ".join(space for space, _ in item.needs)
        return {"await": item.scan.name, "over": f"counts known, capacity for each {needs}"}
    return {"call": item.name, "over": _over(item), "stages": _stages(item.kernel)}


def _over(launch: Launch) -> str:
    """Names the units of a launch."""
    kernel = launch.kernel
    if kernel.unit == "column":
        return f"{kernel.columns} columns of counts"
    if launch.counted is None:
        return "all worlds"
    unit = {"island": "islands", "large island": "islands", "slice": "slices of pairs"}.get(kernel.unit, "worlds")
    return f"{unit} counted in {_column(launch.counted)}"


def _column(count: Count) -> str:
    return str(_COLUMNS[count.table][count.first])


def _stages(kernel: Kernel) -> list[str]:
    return [f"{stage.name} ({stage.form})" if stage.form else stage.name for stage in kernel.stages]


def plan_text(facts: dict[str, Any]) -> str:
    """The facts of a plan as text, a line for each launch."""
    sizes = sorted(set(facts["shards"]), reverse=True)
    lines = [
        f"{facts['model']}: {facts['worlds']} worlds on backend {facts['backend']}, {facts['dtype']}",
        f"issued       {facts['issued']} ({facts['issue']})",
        f"executor     {facts['executor']}",
        f"shards       {len(facts['shards'])} of {' or '.join(map(str, sizes))} worlds",
        f"lanes        {facts['lanes']} for each world",
        f"integrator   {facts['integrator']}",
        f"solver       {facts['solver']}",
    ]
    if "step_kernel" in facts:
        lines += ["", f"step kernel {facts['step_kernel']['name']}; phases, with a barrier behind each:"]
        for phase in facts["step_kernel"]["phases"]:
            lines.append("  " + " | ".join(", ".join(track) or "-" for track in phase))
        lines += ["", "where fields are wanted, the last step is issued by kernels:"]
    for evaluation in facts["evaluations"]:
        numbers = evaluation["numbers"]
        which = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
        lines += ["", f"evaluation {which} of the dynamics:", *_table(evaluation["launches"])]
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    calls = [row for row in rows if "call" in row]
    widths = [max(len(row[name]) for row in calls) for name in ("call", "over")]
    lines = [f"  {'call':<{widths[0]}}  {'over':<{widths[1]}}  stages"]
    for row in rows:
        if "await" in row:
            lines.append(f"  -- await {row['await']}: {row['over']} --")
        else:
            lines.append(f"  {row['call']:<{widths[0]}}  {row['over']:<{widths[1]}}  {', '.join(row['stages'])}")
    return lines
