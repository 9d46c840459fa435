"""Learning on simengine's vector environments: PPO in JAX, rollouts and evaluation.

    import simengine_training

    arguments = simengine_training.Arguments(env_id="simengine/Ant-v5", total_steps=1_000_000)
    result = simengine_training.train(arguments, "out/ant")
    policy = NumpyPolicy.load("out/ant")  # from simengine_training.numpy_policy
    print(evaluate(policy, arguments.env_id, episodes=20).mean)  # from simengine_training.evaluate

    arguments ── the arguments of a training, which the command line offers as options
    environments ── rollout ── ppo ── checkpoint, curve
    policy, statistics ── the network, and the normalisation of what it observes
    numpy_policy ── evaluate (mujoco_episodes), onnx_export: what is done with a trained policy

Modules that need the extra `train` (Flax, Optax, Orbax) are imported on first use, so that `Arguments` works without
it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from simengine_training.arguments import Arguments

if TYPE_CHECKING:
    from simengine_training.checkpoint import load_policy
    from simengine_training.evaluate import Evaluation
    from simengine_training.ppo import Result, resume, train

__all__ = ["Arguments", "Evaluation", "Result", "load_policy", "resume", "train"]

_MODULES = {
    "Evaluation": "simengine_training.evaluate",
    "Result": "simengine_training.ppo",
    "load_policy": "simengine_training.checkpoint",
    "resume": "simengine_training.ppo",
    "train": "simengine_training.ppo",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use.

    Raises:
        AttributeError: there is no such name.
        MissingExtraError: the extra `train` is not installed.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'simengine_training' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
