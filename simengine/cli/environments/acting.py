"""What acts in an environment: a trained policy, random actions or none."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np

from simengine import Model, load_model
from simengine.cli.environments.ids import environment_id, import_modules, is_environment
from simengine.cli.options.errors import UsageError
from simengine.saved_state import fingerprint
from simengine_envs.registration import VECTOR_ENTRY
from simengine_training.numpy_policy import NumpyPolicy

ACTIONS = ("random", "zero")


class Actor(NamedTuple):
    """What acts in all worlds.

    Attributes:
        name: what it is, for people.
        act: gives actions (n, size), float32, for observations (n, observations) and the number of the step. Equal
            arguments give equal actions.
    """

    name: str
    act: Callable[[np.ndarray, int], np.ndarray]


def add_acting_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what acts in an environment."""
    parser.add_argument(
        "--policy",
        metavar="FILE|FOLDER",
        type=Path,
        help="what acts in the environment: a policy.npz, or the folder of a training that holds one",
    )
    parser.add_argument(
        "--actions",
        choices=ACTIONS,
        help="what acts in an environment without --policy: random actions, drawn anew in every step, or zeros "
        "(default: random)",
    )


def load_policy(path: Path) -> NumpyPolicy:
    """Read a policy. Raises UsageError if there is none."""
    try:
        return NumpyPolicy.load(path)
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no policy at {str(path)!r}; give a policy.npz, or the folder of a training that holds one"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{str(path)!r} holds no policy ({error}); give a policy.npz, or a folder with one") from error


def chosen_environment(what: str, options: argparse.Namespace) -> str | None:
    """Return the id of the environment that a command runs; None if it runs a model alone.

    A model with a policy runs in the environment of the policy, if that has this model.

    Args:
        what: an environment's id or a model.
        options: `imports`, `policy` and `actions`.

    Raises:
        UsageError: there is no such environment, the policy is for another model, or options do not fit.
    """
    if options.policy is not None and options.actions is not None:
        raise UsageError("--actions is for environments without a policy; leave out --actions or --policy")
    import_modules(options.imports)
    if is_environment(what):
        return environment_id(what)
    if options.policy is not None:
        policy = load_policy(options.policy)
        return _environment_with(policy, options.policy, what)
    if options.actions is not None:
        raise UsageError(
            f"--actions is for environments, and {what!r} is a model; name an environment, or leave it out"
        )
    return None


def _environment_with(policy: NumpyPolicy, path: Path, what: str) -> str:
    """Return the id of the policy's environment if it has the model `what`."""
    model = load_model(what)
    name = environment_id(policy.environment)
    own = _model_of(name)
    if own is None or fingerprint(own.table) != fingerprint(model.table):
        has = "several models" if own is None else f"the model {own.name!r}"
        raise UsageError(
            f"the policy in {str(path)!r} acts in {name}, which has {has} and not that of {what!r}; name {name} instead"
        )
    return name


def _model_of(name: str) -> Model | None:
    """The model of an environment; None if its worlds have several."""
    from simengine_envs.options import split_arguments

    spec = gymnasium.spec(name)
    if spec.vector_entry_point != VECTOR_ENTRY:
        return None
    arguments = dict(spec.kwargs)
    return split_arguments(arguments.pop("task"), arguments)[0].load()


def make_actor(
    options: argparse.Namespace, name: str, envs: gymnasium.vector.VectorEnv, seed: int
) -> tuple[Actor, str | None]:
    """Return what acts in an environment, and what a user should know of it.

    Args:
        options: `policy` and `actions`.
        name: the id of the environment.
        envs: the environment.
        seed: seed of random actions.

    Returns:
        What acts; and a note if the policy was trained in another environment, else None.

    Raises:
        UsageError: there is no such policy, or its observations or actions have other sizes.
    """
    space, observed = envs.single_action_space, envs.single_observation_space.shape
    assert isinstance(space, gymnasium.spaces.Box)
    low, high = (np.where(np.isfinite(ends), ends, one) for ends, one in ((space.low, -1.0), (space.high, 1.0)))
    shape = (envs.num_envs, *space.shape)
    if options.policy is None:
        if options.actions == "zero":
            nothing = np.broadcast_to(np.clip(0, low, high).astype(np.float32), shape)
            return Actor("zero actions", lambda observations, step: nothing), None

        def draw(observations: np.ndarray, step: int) -> np.ndarray:
            return np.random.default_rng([seed, step]).uniform(low, high, shape).astype(np.float32)

        return Actor("random actions", draw), None
    policy = load_policy(options.policy)
    sizes = (policy.mean.shape, policy.low.shape)
    if sizes != (observed, space.shape):
        raise UsageError(
            f"the policy in {str(options.policy)!r} is for {policy.environment}, with {sizes[0][0]} observations and "
            f"{sizes[1][0]} actions, and {name} has {(observed or (0,))[0]} and {space.shape[0]}; name another policy"
        )
    note = None if policy.environment == name else f"the policy was trained in {policy.environment}, not in {name}"
    return Actor(f"policy {options.policy}", lambda observations, step: policy(observations)), note
