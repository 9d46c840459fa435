"""`simengine run` of an environment: a policy or other actions step it, and its episodes are reported and recorded."""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.table import Table

from simengine.cli.environments.acting import make_actor
from simengine.cli.environments.ids import make_environment, require_one_model
from simengine.cli.environments.stepping import EnvironmentRun
from simengine.cli.options.errors import UsageError
from simengine.cli.recordings.recorded_run import RecordedRun, digest
from simengine.cli.results.output import console, step_bar
from simengine.cli.results.result_file import as_json

_OF_MODELS = ("ctrl", "keyframe", "executor")


def run_environment(options: argparse.Namespace, settings: SimpleNamespace, name: str) -> int:
    """Run the command for the environment with this id, and return the exit code."""
    for option in _OF_MODELS:
        if getattr(options, option) is not None:
            raise UsageError(f"--{option} is for models, and {name} is an environment; leave out --{option}")
    if options.save is not None or options.video is not None:
        require_one_model(name, "a recording holds")
    began = perf_counter()
    envs = make_environment(name, settings.worlds, settings.backend, settings.dtype)
    actor, note = make_actor(options, name, envs, settings.seed)
    if note:
        print(f"simengine: {note}", file=sys.stderr)
    recorded = RecordedRun.asked(options, settings, envs.pure.model, _given(options, settings, name))
    worlds = EnvironmentRun(name, envs, actor, settings.seed, recorded is not None)
    first_step = perf_counter() - began
    if recorded:
        elapsed = recorded.step(worlds, worlds.step)
        if recorded.stopped:
            return recorded.explain()
    else:
        elapsed = _step(worlds, name, settings.steps)
    made = recorded.steps_made if recorded else settings.steps
    summary = {
        "environment": name,
        "worlds": settings.worlds,
        "steps": settings.steps,
        "actions": actor.name,
        "backend": worlds.backend,
        "dtype": worlds.dtype,
        "first_step_s": round(first_step, 3),
        "seconds": round(elapsed, 3),
        "env_steps_per_s": round(settings.worlds * made / elapsed) if elapsed else 0,
        **_episodes(worlds),
    }
    code = 0
    if recorded:
        code = recorded.draw()
        summary |= recorded.facts
    if options.json:
        print(as_json(summary))
    else:
        _print(summary)
    return code


def _given(options: argparse.Namespace, settings: SimpleNamespace, name: str) -> dict[str, Any]:
    """What the run was asked to do, by option, beside what every run is asked."""
    acting = {"--actions": options.actions or "random"}
    if options.policy is not None:
        file = options.policy / "policy.npz" if options.policy.is_dir() else options.policy
        acting = {"--policy": digest(file)}
    return {"environment": name, "--seed": settings.seed, **acting}


def _step(worlds: EnvironmentRun, name: str, steps: int) -> float:
    """Make all steps, and return the time that they took [s]."""
    began = perf_counter()
    with step_bar(name, steps) as advance:
        for number in range(steps):
            worlds.step(number)
            advance(1)
    return perf_counter() - began


def _episodes(worlds: EnvironmentRun) -> dict[str, Any]:
    """Numbers of the episodes that have ended, and the mean return so far of those that have not."""
    found: dict[str, Any] = {"episodes": len(worlds.returns)}
    returns = np.array(worlds.returns)
    found["return_mean"] = round(float(returns.mean()), 6) if len(returns) else None
    found["return_std"] = round(float(returns.std()), 6) if len(returns) else None
    found["length_mean"] = round(float(np.mean(worlds.lengths)), 3) if len(returns) else None
    found["unfinished_return_mean"] = round(float(worlds.totals.mean()), 6)
    return found


def _print(summary: dict[str, Any]) -> None:
    title = f"{summary['environment']}: {summary['worlds']} worlds, {summary['steps']} steps"
    table = Table(title=title, show_header=False)
    table.add_row("acting", summary["actions"])
    table.add_row("backend", f"{summary['backend']}, {summary['dtype']}")
    table.add_row("first step after", f"{summary['first_step_s']:.2f} s, compilation included")
    table.add_row("speed", f"{summary['env_steps_per_s']:,} environment steps/s ({summary['seconds']:.2f} s)")
    if summary["episodes"]:
        table.add_row(
            "episodes",
            f"{summary['episodes']} ended: mean return {summary['return_mean']:.1f} +- {summary['return_std']:.1f}, "
            f"mean length {summary['length_mean']:.0f}",
        )
    else:
        table.add_row("episodes", "none ended")
    table.add_row("unfinished episodes", f"mean return so far {summary['unfinished_return_mean']:.1f}")
    if "saved" in summary:
        table.add_row("trajectory", f"{summary['frames']} frames of {summary['recorded_worlds']} worlds")
        table.add_row("in", summary["saved"])
    if "video" in summary:
        table.add_row("video", summary["video"])
    console().print(table)
