"""InvertedDoublePendulum-v5: a cart learns to balance two poles, one on top of the other.

The task is the one that Gymnasium documents as InvertedDoublePendulum-v5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.locomotion import check_noise, noisy_start

if TYPE_CHECKING:
    from simengine import Model

_MOST_OBSERVED = 10.0  # velocities and constraint forces are clipped to this
_LEAST_HEIGHT, _BEST_HEIGHT = 1.0, 2.0  # of the tip [m]


class InvertedDoublePendulum(Task):
    """InvertedDoublePendulum, as Gymnasium's InvertedDoublePendulum-v5: all that it observes, rewards and ends.

    **Action**, `Box(-1, 1, (1,), float32)`: control of the motor of the cart, which the model clips to [-1, 1]. The
    force on the cart is 500 times the control [N].

    **Observation**, `Box(-inf, inf, (9,), float64)`:

    | index | meaning                                                        | unit       |
    | ----- | -------------------------------------------------------------- | ---------- |
    | 0     | position of the cart                                           | m          |
    | 1..2  | sines of the angles of the lower and of the upper pole         | -          |
    | 3..4  | cosines of these angles                                        | -          |
    | 5..7  | velocities of cart, lower and upper pole, clipped to [-10, 10] | m/s, rad/s |
    | 8     | constraint force on the cart, clipped to [-10, 10]             | N          |

    **Reward**: `reward_survive + distance_penalty + velocity_penalty`. `info` of a step has all three and no
    more. The tip is the site at the end of the upper pole, in the last evaluation of the step.

    | term             | value                                                                           |
    | ---------------- | ------------------------------------------------------------------------------- |
    | reward_survive   | `healthy_reward` if the tip is higher than 1 m, else 0                          |
    | distance_penalty | `-(0.01 x^2 + (z - 2)^2)`, with the tip at x and z [m]                          |
    | velocity_penalty | `-(1e-3 v1^2 + 5e-3 v2^2)`, with the velocities of lower and upper pole [rad/s] |

    **Start of an episode**: `qpos` is `qpos0` plus uniform noise in `+-reset_noise_scale`. `qvel` is normal noise with
    standard deviation `reset_noise_scale`.

    **End of an episode**: it terminates when the tip is at or below 1 m, or if the engine stopped the world.
    Gymnasium's time limit truncates it.

    | argument              | default                        | meaning                                     |
    | --------------------- | ------------------------------ | ------------------------------------------- |
    | xml_file              | "inverted_double_pendulum.xml" | model: a path, or a name                    |
    | frame_skip            | 5                              | engine steps in one environment step        |
    | default_camera_config | MuJoCo's                       | free camera for rendering                   |
    | healthy_reward        | 10                             | reward of a step that does not end episodes |
    | reset_noise_scale     | 0.1                            | size of the noise at the start              |
    """

    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    healthy_reward: float = 10.0
    reset_noise_scale: float = 0.1

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_noise(self)

    @property
    def derived(self) -> tuple[str, ...]:
        """The position of the tip, and constraint forces."""
        return ("site_xpos", "qfrc_constraint")

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """Uniform noise on `qpos` and normal noise on `qvel`, both scaled by `reset_noise_scale`."""
        return noisy_start(model, draw, self.reset_noise_scale, normal_velocities=True)

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Position of the cart, angles, velocities and the constraint force, (n, 9)."""
        angles = now.qpos[:, 1:]
        clipped = (jnp.clip(x, -_MOST_OBSERVED, _MOST_OBSERVED) for x in (now.qvel, now.qfrc_constraint[:, :1]))
        return jnp.concatenate([now.qpos[:, :1], jnp.sin(angles), jnp.cos(angles), *clipped], axis=1)

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Terms `survive`, `distance` and `velocity`, each (n,)."""
        x, z = now.site_xpos[:, 0, 0], now.site_xpos[:, 0, 2]
        lower, upper = now.qvel[:, 1], now.qvel[:, 2]
        return {
            "survive": self.healthy_reward * (1.0 - self.terminated(before, now).astype(x.dtype)),
            "distance": -(0.01 * x**2 + (z - _BEST_HEIGHT) ** 2),
            "velocity": -(1e-3 * lower**2 + 5e-3 * upper**2),
        }

    def term_names(self, names: Mapping[str, Any]) -> dict[str, str]:
        """The names of the terms in the info."""
        own = {"survive": "reward_survive", "distance": "distance_penalty", "velocity": "velocity_penalty"}
        return {name: own[name] for name in names}

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether the tip is too low, (n,)."""
        return ~(now.finite & (now.site_xpos[:, 0, 2] > _LEAST_HEIGHT))
