"""InvertedPendulum-v5: a cart learns to balance a pole.

Source of the task: Barto, Sutton and Anderson, "Neuronlike Adaptive Elements That Can Solve Difficult Learning Control
Problems", in the version that Gymnasium documents as InvertedPendulum-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.locomotion import check_noise, finite_state, noisy_start

if TYPE_CHECKING:
    from simengine import Model

_MOST_TILT = 0.2  # [rad]


class InvertedPendulum(Task):
    """InvertedPendulum, with the observations, rewards, terminations and arguments of Gymnasium's InvertedPendulum-v5.

    **Action**, `Box(-3, 3, (1,), float32)`: control of the motor of the cart, which the model clips to [-3, 3]. The
    force on the cart is 100 times the control [N].

    **Observation**, `Box(-inf, inf, (4,), float64)`:

    | index | meaning                         | unit  |
    | ----- | ------------------------------- | ----- |
    | 0     | position of the cart            | m     |
    | 1     | angle of the pole, 0 if upright | rad   |
    | 2     | velocity of the cart            | m/s   |
    | 3     | angular velocity of the pole    | rad/s |

    **Reward**: 1 for each step that does not end the episode, else 0; `reward_survive` in `info` of a step.

    **Start of an episode**: `qpos0` at rest plus uniform noise in `+-reset_noise_scale` on `qpos` and `qvel`.

    **End of an episode**: it terminates when the pole is more than 0.2 rad from upright, when the state is not finite,
    or if the engine stopped the world. Gymnasium's time limit truncates it.

    | argument              | default                 | meaning                              |
    | --------------------- | ----------------------- | ------------------------------------ |
    | xml_file              | "inverted_pendulum.xml" | model: a path, or a name             |
    | frame_skip            | 2                       | engine steps in one environment step |
    | default_camera_config | follows body 0          | free camera for rendering            |
    | reset_noise_scale     | 0.01                    | size of the noise at the start       |
    """

    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    default_camera_config: Mapping[str, Any] | None = {"trackbodyid": 0, "distance": 2.04}
    reset_noise_scale: float = 0.01

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_noise(self)

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        return {"qpos": model.nq, "qvel": model.nv}

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Uniform noise on `qpos` and `qvel`, in +-`reset_noise_scale`."""
        return noisy_start(model, draw, self.reset_noise_scale, normal_velocities=False)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Coordinates and velocities, (n, 4)."""
        return jnp.concatenate([now.qpos, now.qvel], axis=1)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Term `survive`, (n,)."""
        return {"survive": 1.0 - self.terminated(before, now).astype(now.qpos.dtype)}

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the pole leans too far, (n,)."""
        return ~finite_state(now) | (jnp.abs(now.qpos[:, 1]) > _MOST_TILT)
