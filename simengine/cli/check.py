"""`simengine check`: compare this engine with MuJoCo on any model, stage by stage."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from simengine import CheckReport, FieldResult, UnsupportedModelError, check_model, load_model
from simengine.check import BudgetResult
from simengine.cli.options.settings import add_batch_options, positive, resolve
from simengine.cli.results.output import console
from simengine.cli.results.result_file import as_json

DEFAULTS: dict[str, Any] = {
    "states": 200,
    "steps": 1000,
    "tries": 20,
    "backend": "auto",
    "dtype": "float32",
    "seed": 0,
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("check", help="compare this engine with MuJoCo on a model, stage by stage")
    parser.add_argument("model", help="a model's short name, or an MJCF file")
    parser.add_argument("--states", type=positive, help="states in which fields are compared (default: 200)")
    parser.add_argument("--steps", type=positive, help="steps of a MuJoCo trajectory to compare (default: 1000)")
    parser.add_argument(
        "--tries", type=positive, help="most states tried for each pair type and limit that is missing (default: 20)"
    )
    add_batch_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 0 if every field agrees, 1 if one does not or the model is refused."""
    settings = resolve(options, "check", DEFAULTS, None)
    try:
        model = load_model(options.model)
    except UnsupportedModelError as error:
        _print_refusal(options.model, error, options.json)
        return 1
    if settings.backend == "jax" and settings.dtype == "float64":
        import jax

        jax.config.update("jax_enable_x64", True)
    # Without a terminal, a progress bar would fill a log with lines.
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(model.name)
        report = check_model(
            model,
            backend=settings.backend,
            dtype=settings.dtype,
            num_states=settings.states,
            num_steps=settings.steps,
            tries=settings.tries,
            seed=settings.seed,
            progress=lambda what, done, total: bar.update(
                task, description=f"{model.name}: {what}", completed=done, total=total or None
            ),
        )
    if options.json:
        print(as_json({**report.as_dict(), "unsupported": []}))
    else:
        _print(report)
    return 0 if report.passed else 1


def _print_refusal(model: str, error: UnsupportedModelError, as_object: bool) -> None:
    if as_object:
        print(as_json({"passed": False, "verdict": str(error), "unsupported": list(error.features)}))
        return
    out = console()
    refusal = f"{model} is refused: it needs {len(error.features)} feature(s) that simengine does not support yet"
    out.print(refusal, soft_wrap=True)  # lines are not wrapped, so that programs can read them
    for feature in error.features:
        out.print(f"  {feature}", soft_wrap=True)


def _print(report: CheckReport) -> None:
    out = console()
    out.print(_fields(report))
    out.print(_coverage(report))
    for result in report.budget:
        out.print(_budget(result), soft_wrap=True)
    for pair in report.knife_edges:
        out.print(
            f"warning: {pair} are at their margin up to rounding, which decides whether they touch", soft_wrap=True
        )
    out.print(report.verdict())


def _fields(report: CheckReport) -> Table:
    title = f"{report.model} on {report.backend} in {report.dtype}, against MuJoCo {report.mujoco} in float64"
    table = Table("stage", "field", title=title)
    for name in ("states", "absolute", "relative", "tolerance"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    stage = ""
    for result in report.fields:
        if result.stage != stage:
            table.add_section()
        table.add_row(
            result.stage if result.stage != stage else "",
            result.field,
            str(result.states),
            f"{result.absolute:.1e}",
            f"{result.relative:.1e}",
            f"{result.tolerance:.1e}",
            _verdict(result),
        )
        stage = result.stage
    return table


def _verdict(result: FieldResult) -> str:
    if result.holds and result.ill_conditioned:
        return f"holds, but in {result.ill_conditioned} state(s) that are ill-conditioned"
    if result.holds:
        return "holds" if result.states else "no entries"
    text = f"DIFFERS in state {result.worst_state} ({result.worst_kind})"
    return text if result.rounding is None else f"{text}; rounding it does {result.rounding:.1e}"


def _budget(result: BudgetResult) -> str:
    text = (
        f"with the model's own solver budget {result.field} differs by at most {result.relative:.1e}; MuJoCo itself "
        f"stops up to {result.unfinished:.1e} short of the optimum"
    )
    return f"{text}; {result.beyond} of {result.states} state(s) differ by more than that" if result.beyond else text


def _coverage(report: CheckReport) -> Table:
    seen, steps = report.coverage, report.trajectory
    table = Table("what was covered", "in the states", "along the trajectory")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(seen.states.items()))
    table.add_row("compared", f"{seen.num_states} states ({kinds})", f"{steps.steps} steps")
    shares = [f"{100 * share:.2g} %" for share in report.share_left_out]
    table.add_row("left out at a margin", *(str(part.left_out - part.by_rounding) for part in (seen, steps)))
    table.add_row("left out as rounding chooses contacts", str(seen.by_rounding), str(steps.by_rounding))
    table.add_row("left out in all", *shares)
    table.add_row("contacts", f"{seen.contacts}, most {seen.contacts_max}", str(steps.contacts))
    table.add_row("active rows", f"{seen.rows}, most {seen.rows_max}", f"{steps.rows}, most {steps.rows_max}")
    table.add_row(
        "limits", f"{seen.limit_rows} rows, {seen.limits} of {seen.limits_total} limits", f"{steps.limit_rows} rows"
    )
    for name in sorted({*seen.pairs, *steps.pairs}):
        table.add_row(name, str(seen.pairs.get(name, 0)), str(steps.pairs.get(name, 0)))
    table.add_row("not reached", "; ".join(seen.unreached) or "nothing", "")
    return table
