"""CartPoleSwingUp: a cart learns to swing its pole up and to hold it upright in the middle of the rail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from simengine_envs.draw import Draw
from simengine_envs.snapshot import Snapshot
from simengine_envs.task import Array, Task, Values
from simengine_envs.tasks.locomotion import check_noise

if TYPE_CHECKING:
    from simengine import Model

_SPEED_SCALE = 5.0  # [rad/s] a pole that turns this fast earns 1/e of the reward of one at rest
_NEAR_MIDDLE = 1.0  # [m] a cart this far from the middle earns 1/e of the reward of one in the middle


class CartPoleSwingUp(Task):
    """A cart on a rail with a pole that hangs down. The motor is too weak to lift the pole in one go.

    **Action**, `Box(-1, 1, (1,), float32)`: the force on the cart, in units of 12 N.

    **Observation**, `Box(-inf, inf, (5,))`: position of the cart [m], cosine and sine of the pole's angle from upright,
    velocity of the cart [m/s], angular velocity of the pole [rad/s].

    **Reward** in a step:

    | term    | weight | value                                                                                 |
    | ------- | ------ | ------------------------------------------------------------------------------------- |
    | upright | 1      | from 0 (hanging) to 1 (upright), less the further from the middle and the faster it is |
    | control | -0.01  | square of the action                                                                  |

    **Start**: the cart is near the middle and the pole hangs, with uniform noise in `+-reset_noise_scale`.
    **End**: only by the time limit. `info` has `success`: the pole is within 0.2 rad of upright and slower than
    1 rad/s.
    """

    xml_file: str = "cartpole"
    frame_skip: int = 2
    weights: Mapping[str, float] = {"control": -0.01}
    default_camera_config: Mapping[str, Any] = {"distance": 5.0}
    reset_noise_scale: float = 0.05

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        super().__post_init__()
        check_noise(self)

    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """The pole hangs."""
        scale = self.reset_noise_scale
        hanging = jnp.asarray([0.0, np.pi])
        return {"qpos": hanging + draw.uniform((2,), -scale, scale), "qvel": draw.uniform((2,), -scale, scale)}

    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """The two terms."""
        height = (1 + jnp.cos(now.qpos[:, 1])) / 2
        middle = jnp.exp(-jnp.square(now.qpos[:, 0] / _NEAR_MIDDLE))
        slow = (1 + jnp.exp(-jnp.square(now.qvel[:, 1] / _SPEED_SCALE))) / 2
        return {"upright": height * middle * slow, "control": jnp.square(now.action[:, 0])}

    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """Position, cosine and sine of the angle, and velocities, (n, 5)."""
        x, angle = now.qpos[:, :1], now.qpos[:, 1:]
        return jnp.concatenate([x, jnp.cos(angle), jnp.sin(angle), now.qvel], axis=1)

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Whether the pole stands."""
        return {"success": (jnp.cos(now.qpos[:, 1]) > np.cos(0.2)) & (jnp.abs(now.qvel[:, 1]) < 1)}

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation."""
        return {"cart_position": 1, "pole_angle": 2, "velocities": 2}
