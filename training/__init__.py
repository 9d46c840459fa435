"""Learning on simengine's vector environments: PPO in JAX, rollouts and evaluation.

    import training

    arguments = training.Arguments(env_id="simengine/Ant-v5", total_steps=1_000_000)
    result = training.train(arguments, "out/ant")
    policy = training.load_policy("out/ant")
    print(training.evaluate_policy(policy, arguments.env_id, episodes=20).mean)

What needs the extra `train` (Flax, Optax, Orbax) is imported on first use, so that arguments can be read without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from training.arguments import Arguments

if TYPE_CHECKING:
    from training.checkpoint import load_policy
    from training.evaluate import Evaluation, evaluate_policy
    from training.ppo import Result, resume, train

__all__ = ["Arguments", "Evaluation", "Result", "evaluate_policy", "load_policy", "resume", "train"]

_PLACES = {
    "Evaluation": "training.evaluate",
    "Result": "training.ppo",
    "evaluate_policy": "training.evaluate",
    "load_policy": "training.checkpoint",
    "resume": "training.ppo",
    "train": "training.ppo",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use; raises `training.extras.MissingExtraError` without the extra `train`."""
    if name not in _PLACES:
        raise AttributeError(f"module 'training' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value
