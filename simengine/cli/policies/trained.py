"""Trained policies as arguments of commands: the folder of a training, or a `policy.npz`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from simengine.cli.environments.ids import add_import_option, environment_id
from simengine.cli.options.errors import UsageError
from simengine_training.numpy_policy import NumpyPolicy

FILE, SUMMARY = "policy.npz", "summary.json"
EVALUATED = "policies"  # the folder in that of a training which holds the policy of each evaluation
# Where a training ran, in which precision and with how much memory says nothing about its task.
_TRAINED_IN = ("backend", "dtype", "nconmax", "njmax")


class TrainedPolicy(NamedTuple):
    """A policy, and the environment that it is for.

    Attributes:
        path: its `policy.npz`.
        policy: the policy.
        env_id: id of the environment in which it was trained.
        env_arguments: arguments of the task there, without those of the engine. Empty if no `summary.json` of a
            training lies beside the file, or above a folder `policies`.
    """

    path: Path
    policy: NumpyPolicy
    env_id: str
    env_arguments: dict[str, Any]


def add_policy_argument(parser: argparse.ArgumentParser, steps: bool = True) -> None:
    """Add the argument that names a policy, and the option that imports its environment if that is to be stepped."""
    parser.add_argument("run", metavar="RUN", type=Path, help=f"the folder of a training, or a {FILE}")
    if steps:
        add_import_option(parser)


def read_policy(path: Path, imports: Sequence[str] = (), steps: bool = True) -> TrainedPolicy:
    """Read a policy and what its training says about the environment.

    Args:
        path: the folder of a training, or a file.
        imports: modules that register environments, which are imported first.
        steps: whether the environment is to be stepped, so that it must exist here.

    Raises:
        UsageError: there is no policy at `path`, or its environment does not exist.
        ValueError: a file is not what its name says.
    """
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"there is no policy at {str(file)!r}; give the folder of a training, or a {FILE}")
    policy = NumpyPolicy.load(file)
    env_id = environment_id(policy.environment, imports) if steps else policy.environment
    folder = file.parent.parent if file.parent.name == EVALUATED else file.parent
    return TrainedPolicy(file, policy, env_id, _task_arguments(folder / SUMMARY, env_id))


def _task_arguments(summary: Path, env_id: str) -> dict[str, Any]:
    """The arguments of the task in a summary of a training in this environment; {} if there is no summary."""
    if not summary.is_file():
        return {}
    try:
        arguments = json.loads(summary.read_text(encoding="utf-8"))["arguments"]
        trained_in, given = arguments["env_id"], dict(arguments["env_arguments"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{str(summary)!r} is no summary of a training ({error!r}); move {FILE} elsewhere to use it alone"
        ) from error
    if trained_in != env_id:
        raise ValueError(
            f"{str(summary)!r} is of a training in {trained_in}, and the {FILE} beside it is for {env_id}; move "
            "one of them"
        )
    return {name: value for name, value in given.items() if name not in _TRAINED_IN}


def seed_number(text: str) -> int:
    """Convert an argument to a seed. Raises ArgumentTypeError if it is none."""
    if not (text.isascii() and text.isdigit() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"{text!r} is no seed; give a whole number from 0 to {2**32 - 1}")
    return int(text)
