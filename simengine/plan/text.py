"""The plan of a step as rows and text, for people and for scripts."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from simengine.kernels.kernel import Kernel
from simengine.kernels.step_kernel import StepKernel
from simengine.plan.evaluation import Await, Count, Launch
from simengine.plan.issue import Issue
from simengine.plan.step_plan import StepPlan
from simengine.state.fields import COLUMNS, COLUMNS_OF, FIELD, ISLAND_COLUMNS, PAIR_COLUMNS

_ISSUED = {
    Issue.COUNTED: "call by call, after the contacts and rows of the step have been counted",
    Issue.AHEAD: "as one fixed list, before contacts and rows have been counted",
    Issue.STEP_KERNEL: "as one kernel that makes whole steps",
    Issue.PROGRAM: "as one compiled call for each shard, which counts and launches by itself",
}
_COLUMNS = {"totals_host": COLUMNS, "pair_totals_host": PAIR_COLUMNS, "island_totals_host": ISLAND_COLUMNS}


def plan_facts(plan: StepPlan, wanted: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The plan as plain values, ready for JSON: shards, how calls are issued, and the launches of each evaluation.

    Args:
        plan: the plan of a group.
        wanted: derived fields that must be valid after a step.
    """
    by_step_kernel = plan.step_kernel is not None
    issue = plan.issue if by_step_kernel or plan.issue is not Issue.STEP_KERNEL else Issue.AHEAD
    issue = issue if plan.can_go_ahead or not issue.is_ahead else Issue.COUNTED
    facts: dict[str, Any] = {
        "model": plan.model.name,
        "worlds": plan.num_worlds,
        "backend": plan.backend.name,
        "dtype": plan.dtype,
        "executor": plan.issuing.executor,
        "issue": issue.value,
        "issued": _ISSUED[issue],
        "shards": plan.shard_sizes,
        "lanes": plan.lanes,
        "integrator": plan.model.opt_integrator,
        "solver": plan.model.solver,
    }
    if plan.step_kernel is not None:
        facts["step_kernel"] = {"name": plan.step_kernel.name, "phases": _phases(plan.step_kernel)}
    evaluations = plan.step(max(plan.shard_sizes), wanted, issue.is_ahead)
    alike = groupby(enumerate(evaluations, start=1), key=lambda numbered: numbered[1].launches)
    facts["evaluations"] = [
        {"numbers": [number for number, _ in same], "launches": [_row(item) for item in launches]}
        for launches, same in alike
    ]
    return facts


def _phases(kernel: StepKernel) -> list[list[list[str]]]:
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
        return f"{len(COLUMNS_OF[FIELD[kernel.reads[0]].space])} columns of counts"
    if launch.counted is None:
        return "all worlds"
    unit = {"island": "islands", "large island": "islands", "slice": "slices of pairs"}.get(kernel.unit, "worlds")
    return f"{unit} counted in {_column(launch.counted)}"


def _column(count: Count) -> str:
    return str(_COLUMNS[count.table][count.first])


def _stages(kernel: Kernel) -> list[str]:
    return [f"{stage.name} ({stage.form})" if stage.form else stage.name for stage in kernel.stages]


def plan_text(plan: StepPlan, wanted: frozenset[str] = frozenset()) -> str:
    """The plan as text, with a line for each launch.

    Args:
        plan: the plan of a group.
        wanted: derived fields that must be valid after a step.
    """
    facts = plan_facts(plan, wanted)
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
