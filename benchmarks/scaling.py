"""How the time of a step grows: `python -m benchmarks.scaling --json out/scaling.json --plot out/scaling.png`.

There is a curve for each size that can grow alone: worlds of two models, dofs of a chain, contacts of a slab on
spheres, geoms of an arm, that is candidate pairs, and geoms of a room in which an arm stands. A point is the median of
repeats of some ten milliseconds. The exponent of a point is the slope from the point before, on logarithmic axes: 0
where more costs nothing, 1 where the time grows in proportion, 3 where it grows as a dense factorisation. A curve bends
where its exponent passes one half.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.scaling_models import crowded_arm, furnished_room, hanging_chain, standing_table
from simengine import Simulation, load_model
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json
from simengine.cli.simulations.controls import random_controls
from simengine.cli.simulations.stepping import on_device

Row = dict[str, Any]
_BENT = 0.5  # exponent from which on a curve counts as bent


class Curve(NamedTuple):
    """A size that grows.

    Attributes:
        name: name of the curve.
        size: what grows.
        source: gives the model for a size, by a name or as MJCF.
        sizes: the sizes.
        in_worlds: whether the size is the number of worlds.
    """

    name: str
    size: str
    source: Callable[[int], str]
    sizes: tuple[int, ...]
    in_worlds: bool = False


CURVES = (
    Curve("worlds of ant", "worlds", lambda _: "ant", tuple(4**k for k in range(3, 10)), True),
    Curve("worlds of humanoid", "worlds", lambda _: "humanoid", tuple(4**k for k in range(3, 9)), True),
    Curve("dofs", "dofs", hanging_chain, (4, 8, 16, 24, 32, 48, 64, 96, 128)),
    Curve("contacts", "contacts", standing_table, (1, 2, 4, 8, 16, 32, 64)),
    Curve("geoms", "geoms", crowded_arm, (8, 16, 32, 64, 128, 256)),
    Curve("geoms of a room", "geoms", furnished_room, (16, 64, 256, 1024)),
)


def measure(source: str, worlds: int, backend: str, seconds: float, repeats: int) -> Row:
    """Return the time of a step [us], and contacts, rows and kernels of it.

    Args:
        source: a model's name, or MJCF.
        worlds: number of worlds.
        backend: backend that steps.
        seconds: about how long a repeat takes [s].
        repeats: repeats, of which the median counts.
    """
    model = load_model(source)
    with Simulation(model, worlds, backend=backend) as sim:
        rng = np.random.default_rng(0)
        sim.set_state(qvel=rng.uniform(-0.01, 0.01, (worlds, model.nv)))
        options = (
            {"ctrl": on_device(random_controls(model, worlds, 0)[0].astype("float32"), sim.backend)} if model.nu else {}
        )
        sim.step(20, **options)
        sim.synchronize()

        def run(steps: int) -> float:
            began = perf_counter()
            sim.step(steps, **options)
            sim.synchronize()
            return perf_counter() - began

        steps = max(2, min(1000, int(seconds / max(run(4) / 4, 1e-6))))
        times = [run(steps) / steps for _ in range(repeats)]
        counts = sim.schedule.counts()
        return {
            "us_per_step": round(1e6 * statistics.median(times), 2),
            "spread": round((max(times) - min(times)) / statistics.median(times), 3),
            "steps_per_s": round(worlds / statistics.median(times)),
            "contacts": round(counts["ncon"] / worlds, 2),
            "rows": round(counts["nefc"] / worlds, 2),
            "kernels": len(sim.schedule.kernel_list),
        }


def exponents(points: Sequence[tuple[float, float]]) -> list[float | None]:
    """Slopes on logarithmic axes from each point to the next; None for the first."""
    slopes = [math.log(later / time) / math.log(larger / size) for (size, time), (larger, later) in pairwise(points)]
    return [None, *slopes]


def bend(points: Sequence[tuple[float, float]]) -> float | None:
    """The size from which on the time grows by an exponent of at least one half, or None if it never does."""
    slopes = exponents(points)
    bent = [place for place, slope in enumerate(slopes) if slope is not None and slope < _BENT]
    first = bent[-1] if bent else 0
    return points[first][0] if first + 1 < len(points) else None


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the time of a step over each size, on logarithmic axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys(row["size"] for row in rows))
    figure = Figure(figsize=(3.2 * len(sizes), 3.0), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, size in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        for curve in dict.fromkeys(row["curve"] for row in rows if row["size"] == size):
            points = [(row["value"], row["us_per_step"]) for row in rows if row["curve"] == curve]
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=curve)
        axes.set(xscale="log", yscale="log", xlabel=size, ylabel="us a step")
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", nargs="+", choices=[curve.name for curve in CURVES], help="curves, instead of all")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--worlds", type=int, default=4096, help="worlds of the curves over other sizes")
    parser.add_argument("--most", type=int, default=4**9, help="largest number of worlds")
    parser.add_argument("--seconds", type=float, default=0.03, help="about how long a repeat takes")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "benchmarks.scaling", *(sys.argv[1:] if arguments is None else arguments)])
    rows: list[Row] = []
    for curve in CURVES:
        if options.curves and curve.name not in options.curves:
            continue
        for size in curve.sizes:
            worlds = size if curve.in_worlds else options.worlds
            if worlds > options.most:
                continue
            found = measure(curve.source(size), worlds, options.backend, options.seconds, options.repeats)
            rows.append({"curve": curve.name, "size": curve.size, "value": size, "worlds": worlds, **found})
            print(rows[-1], flush=True)
            write_json({"benchmark": "scaling", **result_header(command), "rows": rows}, options.json)
    if options.plot:
        plot(rows, options.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
