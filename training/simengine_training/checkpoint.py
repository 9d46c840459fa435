"""Writes the files of a training to its folder, and reads them.

| name | contents |
|---|---|
| `summary.json` | arguments, sizes, evaluations, and at the end the totals |
| `curve.csv` | one line for each update |
| `curve.png` | the learning curve |
| `checkpoints/` | Orbax checkpoints, named by the number of updates done |
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from simengine_training.arguments import Arguments
from simengine_training.errors import TrainingError
from simengine_training.extras import ocp, optax
from simengine_training.policy import ActorCritic, Params, Policy, compiled
from simengine_training.statistics import Statistics

_KEPT = 2  # checkpoints in the folder; older ones are deleted


class Learner(NamedTuple):
    """The state of a training, which each update changes.

    Attributes:
        params: parameters of the network.
        opt_state: state of the optimiser.
        observations: statistics of the observations.
        returns: statistics of the discounted sums of rewards.
        updates: (), number of updates done.
    """

    params: Params
    opt_state: Any
    observations: Statistics
    returns: Statistics
    updates: np.ndarray


def make_network(arguments: Arguments, action_size: int) -> ActorCritic:
    """The network that the arguments describe."""
    return ActorCritic(action_size, arguments.hidden_sizes, arguments.initial_log_std)


def make_optimizer(arguments: Arguments) -> optax.GradientTransformation:
    """Adam on gradients whose norm is clipped. With `anneal` the learning rate falls linearly to zero."""
    steps = arguments.num_updates * arguments.epochs * arguments.minibatches
    rate = optax.linear_schedule(arguments.learning_rate, 0.0, steps) if arguments.anneal else arguments.learning_rate
    return optax.chain(optax.clip_by_global_norm(arguments.max_grad_norm), optax.adam(rate, eps=1e-5))


def first_learner(arguments: Arguments, observation_size: int, action_size: int) -> Learner:
    """The learner before the first update. Its weights depend only on the seed and the sizes."""
    network = make_network(arguments, action_size)
    params = network.init(jax.random.key(arguments.seed), np.zeros((1, observation_size), dtype=np.float32))
    opt_state = make_optimizer(arguments).init(params)
    empty = Statistics.empty((observation_size,))
    return Learner(params, opt_state, empty, Statistics.empty(), np.zeros((), dtype=np.int64))


def save(folder: Path, learner: Learner) -> None:
    """Write a checkpoint, and delete old ones. It appears under its name only when it is complete."""
    with _manager(folder) as manager:
        manager.save(int(learner.updates), args=ocp.args.StandardSave(learner), force=True)
        manager.wait_until_finished()


def restore(folder: Path, template: Learner) -> Learner:
    """Read the newest checkpoint.

    Args:
        folder: folder of the training.
        template: a learner with the same shapes.

    Raises:
        TrainingError: there is no checkpoint.
    """
    with _manager(folder) as manager:
        newest = manager.latest_step()
        if newest is None:
            raise TrainingError(f"{folder} has no checkpoint to read; start the training again in another folder")
        return manager.restore(newest, args=ocp.args.StandardRestore(template))


def _manager(folder: Path) -> ocp.CheckpointManager:
    options = ocp.CheckpointManagerOptions(max_to_keep=_KEPT, create=True, enable_async_checkpointing=False)
    return ocp.CheckpointManager((folder / "checkpoints").resolve(), options=options)


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    """Write `summary.json` under another name and rename it, so that an interruption leaves a complete file."""
    partial = folder / "summary.json.partial"
    partial.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(folder / "summary.json")


def read_summary(folder: Path) -> dict[str, Any]:
    """Read `summary.json`.

    Raises:
        TrainingError: the folder has no such file.
    """
    path = folder / "summary.json"
    if not path.is_file():
        raise TrainingError(f"{folder} holds no training: there is no summary.json; name the folder of one")
    return json.loads(path.read_text(encoding="utf-8"))


def load_policy(folder: str | Path) -> Policy:
    """Load the policy from the newest checkpoint in the folder of a training.

    Raises:
        TrainingError: the folder holds no training, or no checkpoint.
    """
    folder = Path(folder)
    summary = read_summary(folder)
    arguments = Arguments(**summary["arguments"])
    learner = restore(folder, first_learner(arguments, summary["observation_size"], summary["action_size"]))
    network = make_network(arguments, summary["action_size"])
    return Policy(compiled(network), learner.params, learner.observations)
