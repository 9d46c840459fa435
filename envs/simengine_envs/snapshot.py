"""`Snapshot`: what the functions of a task see of all worlds at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax

from simengine import Model
from simengine.errors import did_you_mean


@dataclass(frozen=True)
class Snapshot:
    """All worlds before or after a step.

    Fields of the state (`qpos`, `qvel`, `act`, `mocap_pos`, ...) and the task's derived fields are attributes under
    MuJoCo's names, each (n, ...). Derived fields are those of the last evaluation of the step, as after `mj_step`.

    Attributes:
        fields: arrays by MuJoCo's name.
        memory: values that the task remembers, (n, ...) by name.
        action: (n, action size) action of the step; that of a reset is zero.
        length: (n,) int32, environment steps of the episode so far.
        finite: (n,) bool, false for worlds that the engine stopped since their state was not finite.
        dt: duration of an environment step [s].
        model: the model, to read constants from.
    """

    fields: Mapping[str, jax.Array]
    memory: Mapping[str, jax.Array]
    action: jax.Array
    length: jax.Array
    finite: jax.Array
    dt: float
    model: Model

    def __getattr__(self, name: str) -> jax.Array:
        fields: Mapping[str, jax.Array] = object.__getattribute__(self, "fields")
        if name in fields:
            return fields[name]
        hint = did_you_mean(name, fields)
        raise AttributeError(f"the task asks for {name!r}{hint}; name it in `derived` to have it after each step")

    @property
    def time(self) -> jax.Array:
        """(n,) time since the start of the episode [s]."""
        return self.length * self.dt
