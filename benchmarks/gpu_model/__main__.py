"""The GPU model: `python -m benchmarks.gpu_model fit LISTS`, then `python -m benchmarks.gpu_model report LISTS`.

LISTS is the file that `python -m benchmarks.record_lists` wrote on the GPU. `fit` prints a preset, to be committed by
hand in simengine_scheduler/gpu_model/presets.py. `ready` compares tickets in program order with a set of ready calls
for executor `device`. `report` checks the preset on every workload, computes the ratios of the ACS paper, and answers
what-if questions. For executor `device` both read results of `simengine bench scheduler`. `varying` reads such a result
instead of LISTS, and says how far the model is off for lists that vary and that compiled code issues. So does `stages`,
which says what executor `device` makes of robots by stages.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gpu_model import paper, workers
from benchmarks.gpu_model.data import Workload, load, together
from benchmarks.gpu_model.fit import fit, from_costs
from benchmarks.gpu_model.reasons import reasons
from benchmarks.gpu_model.report import plot, table, validation_table
from benchmarks.gpu_model.stages import stages
from benchmarks.gpu_model.validation import validate_workload
from benchmarks.gpu_model.varying import BETWEEN_EVENTS, compared
from benchmarks.gpu_model.whatif import ready_sets, what_if
from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine_scheduler.gpu_model import gpu_named

FITTED = ("ant x 64", "6 models x 64")
"""A list that is mostly one chain, and a list with so many independent calls that issuing it takes the longest."""

ASKED = ("ant x 2048",)
BESIDE = ("ant x 64", "humanoid x 64", "half_cheetah x 64", "walker2d_v5 x 64")


def chosen(workloads: list[Workload], names: list[str]) -> list[Workload]:
    """The workloads with these names.

    Raises:
        SystemExit: there is no workload of such a name.
    """
    by_name = {workload.name: workload for workload in workloads}
    for name in names:
        if name not in by_name:
            sys.exit(f"there is no workload {name!r}; choose from {', '.join(map(repr, by_name))}")
    return [by_name[name] for name in names]


def fitting(args: argparse.Namespace) -> int:
    """Fit the constants of the machine, and print them."""
    workloads, costs, _ = load(args.lists)
    gpu = from_costs(gpu_named(args.gpu), costs)
    found = fit(gpu, chosen(workloads, args.fitted), progress=lambda text: print(text, file=sys.stderr, flush=True))
    found = workers.fit_worker(workloads, found, workers.measured(args.benched), args.fitted)
    print(json.dumps(asdict(found), indent=1))
    return 0


def reporting(args: argparse.Namespace) -> int:
    """Check the preset, answer the questions, and print or write the result."""
    workloads, _, about = load(args.lists)
    gpu = gpu_named(args.gpu)
    result: dict[str, Any] = {"measured": about, "gpu": asdict(gpu)}
    result["validation"] = [validate_workload(workload, gpu, workload.name in args.fitted) for workload in workloads]
    print(validation_table(result["validation"]), "\n", flush=True)
    if args.plot:
        plot(result["validation"], args.plot)
    if args.benched:
        result["device"] = workers.compared(workloads, gpu, workers.measured(args.benched), args.fitted)
        print(table(result["device"]), "\n", flush=True)
    if not args.quick:
        result["paper"] = list(paper.rows(workloads))
        print(table(result["paper"]), "\n", flush=True)
        asked = [*chosen(workloads, args.asked), together(chosen(workloads, args.beside))]
        result["what_if"] = [row for workload in asked for row in what_if(workload, gpu)]
        print(table(result["what_if"]))
    write_json(result, args.json)
    return 0


def readying(args: argparse.Namespace) -> int:
    """Compare tickets of executor `device` with a set of ready calls, and print or write the result."""
    workloads, _, about = load(args.lists)
    gpu = gpu_named(args.gpu)
    rows = [ready_sets(workload, gpu) for workload in workloads if "ahead" in workload.lists]
    print(table(rows))
    write_json({**document("benchmarks.gpu_model", rows), "measured": about, "gpu": asdict(gpu)}, args.json)
    return 0


def varying(args: argparse.Namespace) -> int:
    """Ask the model about lists that vary, whose bounds were measured, and print or write the rows."""
    rows = []
    for row in args.make(json.loads(args.lists.read_text()), args.workloads, args.gpu, args.steps):
        print(row, flush=True)
        rows.append(row)
    result = document("benchmarks.gpu_model", rows)
    write_json({**result, "gpu": asdict(gpu_named(args.gpu)), "between_events_us": 1e6 * BETWEEN_EVENTS}, args.json)
    return 0


def main() -> int:
    """Run the command, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("fit", fitting), ("ready", readying), ("report", reporting)):
        command = commands.add_parser(name)
        command.add_argument("lists", type=Path)
        command.add_argument("--gpu", default="h200", help="preset to start from, or to check")
        command.add_argument("--fitted", nargs="+", default=list(FITTED), help="names of the workloads fitted on")
        command.add_argument(
            "--benched", nargs="+", type=Path, default=[], help="results of `simengine bench scheduler`"
        )
        command.add_argument("--json", type=Path)
        command.set_defaults(run=run)
    command.add_argument("--asked", nargs="+", default=list(ASKED), help="workloads of the what-if tables")
    command.add_argument("--beside", nargs="+", default=list(BESIDE), help="workloads to be asked of as one batch")
    command.add_argument("--quick", action="store_true", help="the check alone")
    command.add_argument("--plot", type=Path)
    for name, make in (("varying", compared), ("stages", stages)):
        command = commands.add_parser(name)
        command.add_argument("lists", type=Path, help="a result of `simengine bench scheduler`")
        command.add_argument("--gpu", default="h100", help="preset to check")
        command.add_argument("--workloads", nargs="+", default=[], help="lists; by default all of the result")
        command.add_argument("--steps", type=int, default=30, help="steps whose mean is taken")
        command.add_argument("--json", type=Path)
        command.set_defaults(run=varying, make=make)
        if make is compared:
            command.add_argument(
                "--reasons",
                dest="make",
                action="store_const",
                const=reasons,
                help="what the lists would take without some costs",
            )
    args = parser.parse_args()
    return int(args.run(args))


if __name__ == "__main__":
    sys.exit(main())
