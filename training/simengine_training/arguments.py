"""The arguments of a training, with help texts. The command line makes its options from these fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from simengine_training.numpy_policy import ACTIVATIONS

ALGORITHMS = ("ppo",)


def option(default: Any, text: str) -> Any:
    """A dataclass field with a help text."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of a training. `describe()` returns the meaning of each field.

    Raises:
        ValueError: a value is out of its range.
        TypeError: a value has the wrong type.
    """

    env_id: str = option("simengine/Ant-v5", "id of the environment, as gymnasium.make_vec takes it")
    env_arguments: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "further arguments of the environment, such as its backend"}
    )
    algorithm: str = option("ppo", "how the policy learns: ppo")
    seed: int = option(0, "seed of the environments, of the first weights and of the actions")
    num_envs: int = option(64, "environments stepped at once")
    rollout_steps: int = option(64, "steps of every environment between two updates")
    spread_starts: bool = option(
        False, "let the first episodes end at different steps, so that not all are truncated at once"
    )
    devices: int = option(1, "devices among which the environments are divided, such as GPUs")
    total_steps: int = option(1_000_000, "environment steps of the whole training, all environments together")
    learning_rate: float = option(3e-4, "Adam's step size at the start")
    anneal: bool = option(True, "let the learning rate fall linearly to zero over the training")
    target_kl: float = option(0.0, "divergence per minibatch that the learning rate follows; 0 for a fixed rate")
    gamma: float = option(0.99, "discount of rewards per environment step")
    gae_lambda: float = option(0.95, "lambda of generalised advantage estimation")
    epochs: int = option(4, "passes over a rollout in one update")
    minibatches: int = option(8, "minibatches of a pass")
    clip: float = option(0.2, "how far the ratio of probabilities may leave 1 before its gradient is cut")
    entropy_coef: float = option(0.0, "weight of the entropy bonus")
    value_coef: float = option(0.5, "weight of the value loss")
    max_grad_norm: float = option(0.5, "norm to which gradients are cut")
    hidden_sizes: tuple[int, ...] = option((64, 64), "widths of the hidden layers, of the policy and the value alike")
    activation: str = option("tanh", "function after each hidden layer: elu, relu, silu or tanh")
    initial_log_std: float = option(0.0, "logarithm of the actions' first deviation; the action space spans [-1, 1]")
    normalize_observations: bool = option(True, "shift and scale observations by their running mean and deviation")
    normalize_rewards: bool = option(True, "scale rewards by the running deviation of their discounted sum")
    checkpoint_every: int = option(50, "updates between two checkpoints, at each of which the policy is evaluated")
    eval_episodes: int = option(64, "episodes of an evaluation; 0 for none, and the last policy is the best one")
    target_return: float | None = option(None, "mean return of an evaluation at which the training stops")

    def __post_init__(self) -> None:
        """Check every value."""
        object.__setattr__(self, "hidden_sizes", tuple(self.hidden_sizes))
        self._check_types()
        for name in (
            "num_envs",
            "rollout_steps",
            "total_steps",
            "epochs",
            "minibatches",
            "checkpoint_every",
            "devices",
        ):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        for name in ("learning_rate", "clip", "max_grad_norm"):
            self._check(name, getattr(self, name) > 0, "greater than 0")
        for name in ("seed", "entropy_coef", "value_coef", "eval_episodes", "target_kl"):
            self._check(name, getattr(self, name) >= 0, "at least 0")
        for name in ("gamma", "gae_lambda"):
            self._check(name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        self._check("hidden_sizes", all(size >= 1 for size in self.hidden_sizes), "widths of at least 1")
        for name, known in (("algorithm", ALGORITHMS), ("activation", ACTIVATIONS)):
            self._check_name(name, known)
        if self.num_envs % self.devices or self.batch_size // self.devices % self.minibatches:
            raise ValueError(
                f"a rollout of {self.num_envs} x {self.rollout_steps} steps does not split into {self.minibatches} "
                f"equal minibatches on {self.devices} devices; change num_envs, rollout_steps, minibatches or devices"
            )
        if self.total_steps < self.batch_size:
            raise ValueError(
                f"total_steps is {self.total_steps}, less than one rollout of {self.num_envs} x {self.rollout_steps} "
                "steps; raise it, or lower num_envs or rollout_steps"
            )

    def _check_types(self) -> None:
        for entry in fields(self):
            value, default = getattr(self, entry.name), entry.default
            # In Python True is an int, and 1 may stand for 1.0. YAML reads 3e-4 as text, which is refused here.
            numeric = isinstance(default, float) or (entry.name == "target_return" and value is not None)
            allowed: Any = (int, float) if numeric else type(default)
            fits = isinstance(value, allowed) and isinstance(value, bool) == isinstance(default, bool)
            if default is not MISSING and not fits:
                kind = "a number" if numeric else f"of type {type(default).__name__}"
                raise TypeError(f"argument {entry.name} must be {kind}, not {value!r}")
        if not all(isinstance(size, int) for size in self.hidden_sizes):
            raise TypeError(f"argument hidden_sizes must hold whole numbers, not {self.hidden_sizes!r}")

    def _check_name(self, name: str, known: Iterable[str]) -> None:
        if getattr(self, name) not in known:
            found = getattr(self, name)
            near = get_close_matches(str(found).lower(), list(known), 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"argument {name} must be one of {', '.join(known)}, not {found!r}{hint}")

    def _check(self, name: str, holds: bool, range_: str) -> None:
        if not holds:
            raise ValueError(f"argument {name} must be {range_}, not {getattr(self, name)}")

    @property
    def batch_size(self) -> int:
        """Number of environment steps in a rollout, over all environments."""
        return self.num_envs * self.rollout_steps

    @property
    def num_updates(self) -> int:
        """Number of updates of the whole training: the number of complete rollouts in `total_steps`."""
        return self.total_steps // self.batch_size

    def as_dict(self) -> dict[str, Any]:
        """All values by name, ready for JSON."""
        return {**asdict(self), "hidden_sizes": list(self.hidden_sizes)}

    @staticmethod
    def describe() -> dict[str, str]:
        """The help text of each field, by name."""
        return {entry.name: entry.metadata["help"] for entry in fields(Arguments)}
