"""Errors against MuJoCo by field, and speeds, of many models: `python -m benchmarks.parity run --json out.json`.

For each model, backend and dtype the program runs `simengine.check_model` on random, settled and thrown states, and on
single steps along a MuJoCo trajectory. It gives the largest relative error of each field, the features that the states
covered, and steps/s with random controls. The models are those of the installed Gymnasium and those that the tests
share, each of which has a group of features. `python -m benchmarks.parity table` writes `docs/parity.md` from the
committed results.

The exit code of `run` is 1 if a model disagrees with MuJoCo.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import simengine
from benchmarks.models import ASSETS
from benchmarks.stepping import group_controls, hardware, package_versions
from simengine import zoo
from simengine.cli.results.result_file import write_json

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "parity.md"
GROUPS: dict[str, tuple[str, ...]] = {
    "positions": ("kinematics", "com_pos", "crb"),
    "forces": ("com_vel", "passive", "rne", "actuation", "acceleration"),
    "contacts": ("narrowphase",),
    "rows": ("constraint",),
    "solution": ("solve", "rne_post"),
    "one step": ("step",),
}
"""Columns of the page, and the stages whose fields each summarises. Other stages are in the column "more"."""


def gymnasium_models() -> dict[str, Path]:
    """Every model file of Gymnasium, by name."""
    return {path.stem: path for path in sorted(ASSETS.glob("*.xml"))}


def feature_models() -> dict[str, str]:
    """MJCF of the models of the zoo, and of those that the tests share, by name."""
    from tests import models

    of_zoo = {f"zoo: {name}": zoo.model_path(name).read_text() for name in zoo.MODELS}
    return of_zoo | {f"tests: {name}": text for name, text in sorted(models.OWN.items())}


def speed(model: simengine.Model, worlds: int, backend: str, dtype: str, seconds: float) -> dict[str, Any]:
    """Steps/s from rest with random controls. Worlds whose state is not finite are reset."""
    sim = simengine.Simulation(model, worlds, backend=backend, dtype=dtype, on_nonfinite="reset")
    controls = group_controls(sim, sim.groups[0], 1)
    for i in range(10):
        sim.step(ctrl=controls[i % len(controls)])
    sim.synchronize()
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds or steps < 10:
        for _ in range(10):
            sim.step(ctrl=controls[steps % len(controls)])
            steps += 1
        sim.synchronize()
    rate = worlds * steps / (time.perf_counter() - begin)
    sim.close()
    return {"worlds": worlds, "steps_per_s": float(f"{rate:.3g}")}


def row_of(name: str, source: Any, backend: str, dtype: str, args: argparse.Namespace) -> dict[str, Any]:
    """A row with the errors and the speed of one model, on one backend and with one dtype."""
    row: dict[str, Any] = {"model": name, "dtype": dtype}
    try:
        model = simengine.load_model(source)
    except simengine.UnsupportedModelError as error:
        return {**row, "backend": backend, "refused": list(error.features)}
    report = simengine.check_model(model, backend=backend, dtype=dtype, num_states=args.states, num_steps=args.steps)
    worst = {f"{r.stage}.{r.field}": float(f"{r.relative:.2e}") for r in report.fields if r.states}
    covered = {"states": report.coverage.num_states, "contacts": report.coverage.contacts, "rows": report.coverage.rows}
    row |= {"backend": report.backend, "passed": report.passed, "verdict": report.verdict(), "covered": covered}
    row |= {"pairs": report.coverage.pairs, "errors": worst}
    worlds = args.worlds if report.backend != "jax" else min(args.worlds, 64)
    return row | speed(model, worlds, report.backend, dtype, args.seconds)


def measured(task: tuple[str, Any, str, str, argparse.Namespace]) -> dict[str, Any]:
    """Call `row_of`, in a new process if several run at a time."""
    if task[2] == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    return row_of(*task)


def rows_of(tasks: list[tuple[str, Any, str, str, argparse.Namespace]], jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the rows in the order of the tasks, as soon as they are measured."""
    if jobs == 1:
        yield from map(measured, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(measured, tasks)


def run(args: argparse.Namespace) -> int:
    """Measure all models and write the rows. Returns the exit code."""
    sources: dict[str, Any] = {**gymnasium_models(), **feature_models()}
    chosen = [name for name in sources if not args.model or name in args.model]
    tasks = [(name, sources[name], b, d, args) for name in chosen for b in args.backend for d in args.dtype]
    rows = []
    for row in rows_of(tasks, args.jobs):
        rows.append(row)
        said = row.get("verdict") or f"{row['model']!r} is refused: {len(row['refused'])} elements"
        print(f"{said}; {row.get('steps_per_s', 0):,.0f} steps/s", file=sys.stderr, flush=True)
    versions = {**package_versions(), "simengine": simengine.__version__, "mujoco": mujoco.__version__}
    document = {
        "hardware": hardware(),
        "versions": {**versions, "python": platform.python_version()},
        "date": date.today().isoformat(),
        "command": "python -m benchmarks.parity " + " ".join(sys.argv[1:]),
        "parity": rows,
    }
    write_json(document, args.json)
    return int(not all(row.get("passed", True) for row in rows))


def _cells(row: dict[str, Any]) -> list[str]:
    known = {stage for stages in GROUPS.values() for stage in stages}
    errors = {tuple(name.split(".", 1)): value for name, value in row["errors"].items()}
    more = sorted({stage for stage, _ in errors} - known)
    columns = [*GROUPS.values(), more]
    worst = [max((v for (stage, _), v in errors.items() if stage in stages), default=np.nan) for stages in columns]
    shown = ["" if np.isnan(value) else f"{value:.0e}" for value in worst]
    verdict = "" if row["passed"] else " **differs**"
    return [row["model"] + verdict, row["dtype"], *shown, f"{row['worlds']:,}", f"{row['steps_per_s']:,.0f}"]


def page() -> str:
    """The text of the page, from every committed result of `run`."""
    lines = [
        "# Errors against MuJoCo, and speed",
        "",
        "`python -m benchmarks.parity table` writes this page, from results of `benchmarks/parity.py`.",
        "",
        "An error is that of a field against MuJoCo's, max|a - b| / max(1, max|b|). The table has the worst error of",
        "the fields of each group of stages. The states are random, settled and thrown ones, and single steps along a",
        "trajectory of MuJoCo. Both solvers run to 1e-15. The result files have the errors of each field, and what the",
        "states covered. Steps/s are measured with random controls from rest.",
        "",
        "Parity means the same contacts as MuJoCo's, up to rounding, wherever rounding does not decide them. Of faces",
        "that lie flat on each other, the contacts are the corners that MuJoCo's search chooses, except where it ends",
        "with the same corner twice or after a step that keeps the area: there they span at least as much. Two convex",
        "shapes touch if they are closer than their margin by more than the rounding of the distance, 1e-14 of their",
        "size in float64 and 5e-7 in float32, so at exactly the margin there is no contact, as in MuJoCo.",
        "",
        "In float32 a body that only turns about its centre of mass, like a turntable, is held with a least inverse",
        "inertia. MuJoCo's is zero along a line, and its forces of 1e16 N on such bodies cancel in float64 only. There",
        "the reference is MuJoCo with that inertia. Edges of pyramids with a friction below 0.01 are no harder in",
        "float32 than those of a friction of 0.01.",
    ]
    for path in sorted(RESULTS.glob("*.json")):
        document = json.loads(path.read_text())
        if "parity" not in document:
            continue
        machine = document["hardware"].get("gpu") or document["hardware"]["cpu"]
        lines += ["", f"## {machine}", "", f"`{document['command']}`, {document['date']}, `{path.name}`"]
        rows = document["parity"]
        for backend in dict.fromkeys(row["backend"] for row in rows):
            columns = ["model", "precision", *GROUPS, "more", "worlds", "steps/s"]
            lines += ["", f"### {backend}", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
            lines += [f"| {' | '.join(_cells(row))} |" for row in rows if row["backend"] == backend and "errors" in row]
            refused = {row["model"]: row["refused"] for row in rows if row["backend"] == backend and "refused" in row}
            lines += ["", *(f"Refused: {name}: {'; '.join(what[:5])}" for name, what in refused.items())]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Run the command, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    measure = commands.add_parser("run", help="compare and measure")
    measure.add_argument("--model", nargs="+", help="only these")
    measure.add_argument("--backend", nargs="+", default=["auto"])
    measure.add_argument("--dtype", nargs="+", default=["float64", "float32"])
    measure.add_argument("--worlds", type=int, default=1024)
    measure.add_argument("--states", type=int, default=200)
    measure.add_argument("--steps", type=int, default=300)
    measure.add_argument("--seconds", type=float, default=1.0, help="time over which speed is measured")
    measure.add_argument("--jobs", type=int, default=1, help="models measured side by side, which share the machine")
    measure.add_argument("--json", type=Path)
    commands.add_parser("table", help="write docs/parity.md")
    args = parser.parse_args()
    if args.what == "run":
        return run(args)
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
