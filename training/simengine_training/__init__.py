"""Learning on simengine's environments: PPO in JAX, in which an iteration is one program on the device.

    import simengine_training

    arguments = simengine_training.Arguments(env_id="simengine/Ant-v5", total_steps=1_000_000)
    result = simengine_training.train(arguments, "out/ant")
    actions = result.policy(observations)

    arguments      `Arguments`, which the command line offers as options
    worlds         the environment as pure functions, and its worlds
    network        the perceptrons of actor and critic
    statistics     what normalises observations and rewards
    rollout        steps of all worlds under the policy
    ppo            advantages, loss and update
    iteration      a rollout and its update as one program
    trial          whole episodes, which choose the best policy
    devices        worlds divided among devices
    processes      what several processes do otherwise than one
    ray_cluster    trainings in the processes of a Ray cluster
    programs       the compiled programs
    compiling      options of their compiler
    memories       memory of steps, made while they are compiled
    run            `train`, `resume`: updates, evaluations and files
    rows           what an update and an evaluation tell, checked
    folder, checkpoint, curve
                   the files
    numpy_policy   `NumpyPolicy`, a trained policy in NumPy alone
    evaluate, mujoco_episodes
                   episodes of a trained policy, here or in MuJoCo
    onnx_export    a trained policy as ONNX
    tensorboard    event files

Modules that need JAX or the extra `train` (Optax) are imported on first use, so that `Arguments` and `NumpyPolicy` work
without them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from simengine_training.arguments import Arguments
from simengine_training.numpy_policy import NumpyPolicy

if TYPE_CHECKING:
    from simengine_training.evaluate import Evaluation
    from simengine_training.run import Result, resume, train

__all__ = ["Arguments", "Evaluation", "NumpyPolicy", "Result", "resume", "train"]

_MODULES = {
    "Evaluation": "simengine_training.evaluate",
    "Result": "simengine_training.run",
    "resume": "simengine_training.run",
    "train": "simengine_training.run",
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
