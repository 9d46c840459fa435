"""`simengine bench peers`: physics steps a second of simengine and of other engines, on the same problems."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from simengine.backends.select import available_backends
from simengine.cli.bench.peers.engine import CPU, GPU
from simengine.cli.bench.peers.joined import earlier_result, joined
from simengine.cli.bench.peers.measure import Effort, measure
from simengine.cli.bench.peers.models import SETS, chosen_models, facts
from simengine.cli.bench.peers.ours import Simengine
from simengine.cli.bench.peers.problem import make_problem
from simengine.cli.bench.peers.registry import PEERS, chosen_peers
from simengine.cli.bench.peers.report import plot_speeds, print_report
from simengine.cli.bench.robots import FOLDER_VARIABLE
from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import add_batch_options, positive, resolve
from simengine.cli.results.machine import result_header
from simengine.cli.results.output import progress_bar
from simengine.cli.results.result_file import write_json

COMMAND = "bench peers"
DEFAULTS: dict[str, Any] = {
    "worlds": [64, 1024],
    "backend": "auto",
    "dtype": "float32",
    "seed": 0,
    "warmup": 200,
    "steps": 200,
    "seconds": 2.0,
    "repeats": 3,
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "peers",
        help="steps a second beside other engines, on the same problems",
        description="Every engine gets the same compiled model, controls and first states, and the error of its "
        "accelerations against MuJoCo's C stands beside its speed. On the GPU the peers are MuJoCo Warp, MJX and Brax, "
        "on the CPU mujoco.rollout, mujoco.batch and mjbatch; those that are not installed are named. The exit code is "
        "1 if simengine fails or disagrees with MuJoCo.",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a robot, a name, pile:KIND:BODIES, or a file")
    parser.add_argument("--set", dest="sets", action="append", choices=list(SETS), default=[], help="a set of models")
    parser.add_argument("--worlds", nargs="+", type=positive, help="batch sizes")
    parser.add_argument("--peers", nargs="*", metavar="NAME", help=f"peers, instead of the usual: {', '.join(PEERS)}")
    parser.add_argument("--warmup", type=positive, help="steps before the states that are timed")
    parser.add_argument("--steps", type=positive, help="steps of a repeat at most")
    parser.add_argument("--seconds", type=float, help="about how long a repeat of an engine takes at most")
    parser.add_argument("--repeats", type=positive, help="repeats, of which the median counts")
    parser.add_argument(
        "--robots-dir", type=Path, help=f"folder of packed robots, instead of the variable {FOLDER_VARIABLE}"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result there too; - prints it alone")
    parser.add_argument(
        "--append",
        action="store_true",
        help="add the cases to those in the file of --json, which replaces a case that is there; same machine only",
    )
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw steps/s over worlds, a panel for each model")
    add_batch_options(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 1 if simengine fails or its results differ from MuJoCo's."""
    settings = resolve(options, COMMAND, DEFAULTS, None)
    if options.plot and find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib; run pip install matplotlib, or leave the plot out")
    backend, device = _place(settings.backend)
    peers, without = chosen_peers(options.peers, device)
    names = options.models or ([] if options.sets else ["ant"])
    models, absent = chosen_models(names, options.sets, options.robots_dir)
    for reason in (*without.values(), *absent.values()):
        print(reason, file=sys.stderr)
    if not models:
        raise UsageError("no model of the set can be loaded here; install one of the packages named above")
    changes = [said for model in models if any(p.newton_only for p in peers) and (said := model.with_newton())]
    packages = tuple(package for peer in peers for package in peer.packages)
    result: dict[str, Any] = {
        "benchmark": "peers",
        **result_header("simengine " + shlex.join(sys.argv[1:]), packages),
        **{"backend": backend, "device": device, "absent": without | absent, "changes": changes},
    }
    if options.append and (options.json is None or str(options.json) == "-"):
        raise UsageError("--append needs the file to which the cases are added; give --json FILE")
    earlier = earlier_result(options.json, result) if options.append else {}
    ours = partial(Simengine, device, settings.dtype, backend)
    makers = [partial(peer, device, settings.dtype) for peer in peers]
    effort = Effort(settings.warmup, settings.steps, settings.seconds, settings.repeats)
    rows: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    with progress_bar("cases", len(models) * len(settings.worlds)) as advance:
        for model in models:
            for worlds in settings.worlds:
                print(f"{model.name}, {worlds} worlds", file=sys.stderr)
                found, counts = measure(make_problem(model, worlds, settings.seed), ours, makers, effort)
                rows += found
                problems.append({"model": model.name, "worlds": worlds, **facts(model.mj), **counts})
                result |= {"models": problems, "rows": rows}
                if str(options.json) != "-":
                    write_json(
                        joined(earlier, result), options.json
                    )  # after each case, because a later one may end the process
                advance(1)
    if str(options.json) == "-":
        write_json(result, options.json)
    else:
        print_report(rows, problems, changes)
    if options.plot:
        plot_speeds(rows, options.plot)
    return 0 if all(row.get("agrees", False) for row in rows if row["engine"] == Simengine.name) else 1


def _place(asked: str) -> tuple[str, str]:
    """Return the backend, and the device on which it runs. Raises UsageError if it cannot run here."""
    reasons = available_backends()
    found = next((name for name in ("cuda", "host", "jax") if asked in ("auto", name) and not reasons[name]), None)
    if found is None:
        raise UsageError(f"{reasons.get(asked) or 'no backend can run here'}; give another --backend")
    if found == "jax":
        import jax

        return found, CPU if jax.default_backend() == "cpu" else GPU
    return found, GPU if found == "cuda" else CPU
