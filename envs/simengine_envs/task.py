"""`Task`: how episodes start, what is observed, rewarded and ended, as pure functions on arrays of many worlds.

The functions are traced by JAX. They take and return arrays whose first axis is the world, use `jax.numpy`, and change
nothing. `docs/guide/tasks.md` shows a whole task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from simengine_envs.choices import whole_number
from simengine_envs.draw import Draw
from simengine_envs.models import model_of
from simengine_envs.snapshot import Snapshot

if TYPE_CHECKING:
    from simengine import Model

Array = jax.Array
Values = dict[str, Array]
SomeTask = TypeVar("SomeTask", bound="Task")


def _as_fields(cls: type[Any]) -> None:
    """Turn attributes that a subclass assigns without a type into defaults of the fields that it inherits."""
    own = get_annotations(cls)
    known = {name for base in cls.__mro__[1:] for name in get_annotations(base)}
    for name, value in list(vars(cls).items()):
        if name in known and name not in own:
            own[name] = "Any"
        if name in own and type(value).__hash__ is None:  # a mutable default, such as a dictionary
            setattr(cls, name, field(default_factory=lambda value=value: copy(value)))  # type: ignore[misc]
    cls.__annotations__ = own


def _inherited_weights(cls: type[Any]) -> dict[str, float]:
    """The default weights of a class's bases."""
    found: dict[str, float] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= vars(base).get("default_weights", {})
    return found


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True, eq=False)
class Task(ABC):
    """Base class of tasks.

    A subclass assigns the attributes below, adds attributes of its own with their types, and writes the functions. All
    attributes are arguments of the environment: `gymnasium.make("Balance-v0", frame_skip=4)`. Instances are frozen
    dataclasses.

    Attributes:
        xml_file: path of the model if it starts with "~", "." or "/"; else the name of a model of simengine or of
            Gymnasium. Or the text of an MJCF.
        frame_skip: engine steps in one environment step.
        weights: weight of each reward term. Terms that an argument or a subclass does not name keep the weights that
            the task had, and those that nobody names have weight 1.
        default_camera_config: attributes of MuJoCo's free camera, for rendering; None for MuJoCo's own.
    """

    xml_file: str
    frame_skip: int = 1
    weights: Mapping[str, float] = field(default_factory=dict)
    default_camera_config: Mapping[str, Any] | None = field(default_factory=dict)
    default_weights: ClassVar[Mapping[str, float]] = {}
    inherited_weights: ClassVar[Mapping[str, float]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inherited, own = _inherited_weights(cls), vars(cls).get("weights", {})
        _as_fields(cls)
        cls.inherited_weights, cls.default_weights = inherited, {**inherited, **own}
        dataclass(frozen=True, kw_only=True, eq=False)(cls)

    def __post_init__(self) -> None:
        """Check the arguments, and merge the weights with the default ones. A subclass that has this calls it, too.

        Raises:
            ValueError: an argument is out of its range.
        """
        name = type(self).__name__
        if not isinstance(self.weights, Mapping):
            raise TypeError(f"{name}: weights must be a dictionary of numbers by reward term, not {self.weights!r}")
        for term, weight in self.weights.items():
            if isinstance(weight, str) or not np.isreal(weight) or not np.isfinite(weight):
                raise ValueError(f"{name}: the weight of {term!r} is {weight!r}; give a finite number")
        object.__setattr__(self, "weights", {**self.default_weights, **self.weights})
        whole_number(f"{name}: frame_skip", self.frame_skip, 1)

    def load(self) -> Model:
        """The model. By default that of `xml_file`; a task that builds its model overrides this.

        Raises:
            FileNotFoundError: there is no such model.
        """
        return model_of(self.xml_file)

    def resolve(self, model: Model) -> Self:
        """The same task with names of the model's elements replaced by their ids, and what else it looks up once."""
        return self

    @property
    def derived(self) -> tuple[str, ...]:
        """Names of the derived fields that the functions read from snapshots, such as "xpos" or "cfrc_ext"."""
        return ()

    @abstractmethod
    def start(self, model: Model, draw: Draw, last: Values | None) -> Mapping[str, Any]:
        """The start of new episodes.

        Args:
            model: the model.
            draw: random numbers. `draw.num_worlds` is the number n of episodes that start.
            last: memory of the episodes that ended in these worlds, with "episode_length" and "episode_return", each
                (n, ...); None for the first episodes.

        Returns:
            Values (n, ...) by name: state fields such as `qpos`, `qvel`, `act`, `mocap_pos`; "params", a dictionary of
                parameters that worlds may differ in (`simengine.model.params.PARAMS`); "memory", a dictionary of values
                that last until the next step. What is absent has the model's value.
        """

    def action_range(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest actions, (action size,) each. By default the ranges of the model's controls."""
        low, high = model.mj.actuator_ctrlrange.T
        limited = model.mj.actuator_ctrllimited.astype(bool)
        return np.where(limited, low, -np.inf), np.where(limited, high, np.inf)

    def control(self, now: Snapshot, action: Array) -> Array:
        """Controls of the step, (n, nu). By default the action."""
        return action

    def event(self, now: Snapshot, draw: Draw) -> Mapping[str, Array]:
        """State fields to change before the step, (n, ...) by name, such as velocities after a push."""
        return {}

    @abstractmethod
    def rewards(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Reward terms (n,) by name. The reward is their sum, each times its weight.

        Args:
            before: before the step.
            now: after the step, with the memory as it was during the step.
        """

    def terminated(self, before: Snapshot, now: Snapshot) -> Array:
        """Whether episodes end in a state without a future, (n,) bool. Stopped worlds always do."""
        return jnp.zeros(now.qpos.shape[0], bool)

    def remember(self, before: Snapshot, now: Snapshot, draw: Draw) -> Mapping[str, Array]:
        """Values of the memory that the step changes, (n, ...) by name, such as new commands or the last action."""
        return {}

    @abstractmethod
    def observation(self, now: Snapshot, draw: Draw) -> Array:
        """What the agent sees, (n, size). The memory is that of the next step; `draw` is for noise."""

    def info(self, now: Snapshot) -> Mapping[str, Array]:
        """Further values (n,) or (n, ...) by name, which a step and a reset report."""
        return {}

    def step_info(self, before: Snapshot, now: Snapshot) -> Mapping[str, Array]:
        """Further values (n,) or (n, ...) by name, which only a step reports."""
        return {}

    def term_names(self, names: Mapping[str, Any]) -> dict[str, str]:
        """The name under which the info has each reward term, weighted. By default `reward_NAME`.

        The info has no terms that are absent here.
        """
        return {name: f"reward_{name}" for name in names}

    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation by name; empty if the task does not say."""
        return {}

    def arguments(self) -> dict[str, Any]:
        """The arguments with which the task was made, by name."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}  # type: ignore[arg-type]
