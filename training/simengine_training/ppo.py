"""Proximal policy optimisation with a clipped ratio of probabilities.

Sources: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), equations 7 and 9; Schulman et al.,
"High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2016), equation 16.

    reset environments -> [ rollout -> advantages -> epochs of minibatches ] x checkpoint_every -> checkpoint -> ...

1. All random numbers follow from the seed and the number of the update, and all environments are reset at a checkpoint.
   Two runs on one machine therefore give the same bits, even if one of them was resumed from a checkpoint.
2. Parameters and statistics do not change during a rollout, so that the ratios of the first minibatch are 1.
3. A truncated episode has not terminated. The value of its last observation estimates the rewards that are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv

from simengine_envs import BatchEnv
from simengine_training import checkpoint, curve
from simengine_training.arguments import Arguments
from simengine_training.checkpoint import Learner
from simengine_training.device_rollout import DeviceCollector
from simengine_training.environments import make_envs, sizes
from simengine_training.errors import TrainingError
from simengine_training.evaluate import Evaluation, evaluate_policy
from simengine_training.extras import optax
from simengine_training.policy import ActorCritic, Params, Policy, compiled, forward
from simengine_training.rollout import Collected, Collector, Rollout

OnUpdate = Callable[[curve.Row], None]


class Samples(NamedTuple):
    """Samples of a rollout without its time axis, with advantages and target values. Arrays are (n,) or (n, size)."""

    observations: jax.Array
    actions: jax.Array
    log_probs: jax.Array
    advantages: jax.Array
    targets: jax.Array


def gae(
    rewards: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    terminated: jax.Array,
    ended: jax.Array,
    gamma: float,
    gae_lambda: float,
) -> tuple[jax.Array, jax.Array]:
    """Generalised advantage estimates, and target values of the critic. All arrays are (T, n), as in `Rollout`."""
    deltas = rewards + gamma * jnp.where(terminated, 0.0, next_values) - values
    decay = jnp.where(ended, 0.0, gamma * gae_lambda).astype(deltas.dtype)

    def backwards(following: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, factor = now
        advantage = delta + factor * following
        return advantage, advantage

    _, advantages = jax.lax.scan(backwards, jnp.zeros_like(deltas[0]), (deltas, decay), reverse=True)
    return advantages, advantages + values


def clipped_objective(
    log_probs: jax.Array, old_log_probs: jax.Array, advantages: jax.Array, clip: float
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """PPO's loss of the policy, (), with the approximate KL divergence and the fraction of clipped ratios.

    Arrays are (n,). `old_log_probs` belong to the policy that drew the actions.
    """
    log_ratio = log_probs - old_log_probs
    ratio = jnp.exp(log_ratio)
    gain = jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - clip, 1 + clip) * advantages)
    moved = {
        "approx_kl": jnp.mean(ratio - 1 - log_ratio),
        "clip_fraction": jnp.mean((jnp.abs(ratio - 1) > clip).astype(ratio.dtype)),
    }
    return -jnp.mean(gain), moved


def loss(
    params: Params, network: ActorCritic, samples: Samples, arguments: Arguments
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The loss of a minibatch, (), and its parts. Advantages are normalised by their mean and deviation in it."""
    distribution, values = forward(network, params, samples.observations)
    advantages = (samples.advantages - samples.advantages.mean()) / (samples.advantages.std() + 1e-8)
    log_probs = distribution.log_prob(samples.actions)
    policy_loss, moved = clipped_objective(log_probs, samples.log_probs, advantages, arguments.clip)
    value_loss = 0.5 * jnp.mean((values - samples.targets) ** 2)
    entropy = distribution.entropy()
    total = policy_loss + arguments.value_coef * value_loss - arguments.entropy_coef * entropy
    return total, {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy, **moved}


def make_update(arguments: Arguments, network: ActorCritic) -> Callable[..., tuple[Params, Any, dict[str, jax.Array]]]:
    """Compile the update: (params, opt_state, rollout, key) -> (params, opt_state, mean of each part of the loss)."""
    optimizer = checkpoint.make_optimizer(arguments)

    def minibatch(carry: tuple[Params, Any], samples: Samples) -> tuple[tuple[Params, Any], dict[str, jax.Array]]:
        params, opt_state = carry
        gradients, parts = jax.grad(loss, has_aux=True)(params, network, samples, arguments)
        changes, opt_state = optimizer.update(gradients, opt_state, params)
        return (optax.apply_updates(params, changes), opt_state), parts

    def update(params: Params, opt_state: Any, rollout: Rollout, key: jax.Array) -> Any:
        advantages, targets = gae(
            rollout.rewards, rollout.values, rollout.next_values, rollout.terminated, rollout.ended,
            arguments.gamma, arguments.gae_lambda,
        )  # fmt: skip
        whole = Samples(rollout.observations, rollout.actions, rollout.log_probs, advantages, targets)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), whole)

        def epoch(carry: tuple[Params, Any], epoch_key: jax.Array) -> Any:
            order = jax.random.permutation(epoch_key, arguments.batch_size)
            order = order.reshape(arguments.minibatches, -1)
            return jax.lax.scan(lambda c, indices: minibatch(c, jax.tree.map(lambda x: x[indices], flat)), carry, order)

        carry, parts = jax.lax.scan(epoch, (params, opt_state), jax.random.split(key, arguments.epochs))
        return *carry, jax.tree.map(jnp.mean, parts)

    return jax.jit(update)


@dataclass(frozen=True)
class Result:
    """The result of a training.

    Attributes:
        folder: folder with all files of the training.
        policy: the policy after the last update.
        rows: the learning curve, a row for each update.
        before: evaluation of the first policy, as `Evaluation.as_dict` returns it; None without evaluations.
        after: evaluation of the last policy, likewise.
        summary: the contents of `summary.json`.
    """

    folder: Path
    policy: Policy
    rows: list[curve.Row]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    summary: dict[str, Any]


def train(arguments: Arguments, folder: str | Path, on_update: OnUpdate | None = None) -> Result:
    """Train a new policy.

    Args:
        arguments: arguments of the training.
        folder: folder for checkpoints, curve and summary, which is made if it does not exist.
        on_update: called after each update with its row of the curve.

    Raises:
        TrainingError: the folder holds a training, the environment cannot be made, or the loss is not finite.
        ValueError: the spaces of the environment are not supported.
    """
    folder = Path(folder)
    if (folder / "summary.json").exists():
        raise TrainingError(f"{folder} already holds a training; resume it, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    vector = make_envs(arguments.env_id, arguments.num_envs, arguments.env_arguments, on_device=True)
    try:
        observation_size, action_size = sizes(vector)
        learner = checkpoint.first_learner(arguments, observation_size, action_size)
        run = _Run(arguments, folder, vector, learner, [])
        run.summary = {
            "arguments": arguments.as_dict(),
            "observation_size": observation_size,
            "action_size": action_size,
            "before": run.evaluation(),
        }
        checkpoint.write_summary(folder, run.summary)
        checkpoint.save(folder, learner)
        return run.finish(on_update)
    finally:
        vector.close()


def resume(folder: str | Path, on_update: OnUpdate | None = None) -> Result:
    """Go on with an interrupted training from its newest checkpoint. The result has the bits of an uninterrupted one.

    Raises:
        TrainingError: the folder holds no training, or one that is finished; also as for `train`.
    """
    folder = Path(folder)
    summary = checkpoint.read_summary(folder)
    arguments = Arguments(**summary["arguments"])
    template = checkpoint.first_learner(arguments, summary["observation_size"], summary["action_size"])
    learner = checkpoint.restore(folder, template)
    if int(learner.updates) >= arguments.num_updates:
        raise TrainingError(f"the training in {folder} is finished; start another one in another folder")
    rows = [row for row in curve.read_csv(folder / "curve.csv") if row["update"] <= int(learner.updates)]
    vector = make_envs(arguments.env_id, arguments.num_envs, arguments.env_arguments, on_device=True)
    try:
        run = _Run(arguments, folder, vector, learner, rows)
        run.summary = summary
        return run.finish(on_update)
    finally:
        vector.close()


class _Run:
    """A running training: the learner, its environments, and the curve so far."""

    summary: dict[str, Any]

    def __init__(self, arguments: Arguments, folder: Path, vector: VectorEnv, learner: Learner, rows: list[curve.Row]):
        self.arguments, self.folder, self.learner, self.rows = arguments, folder, learner, rows
        network = checkpoint.make_network(arguments, sizes(vector)[1])
        self.functions = compiled(network)
        self.collector: Collector | DeviceCollector
        if isinstance(vector, BatchEnv):
            self.collector = DeviceCollector(vector, network, arguments.gamma)
        else:
            self.collector = Collector(vector, self.functions, arguments.gamma)
        self.update = make_update(arguments, network)
        self.key = jax.random.key(arguments.seed)

    @property
    def policy(self) -> Policy:
        return Policy(self.functions, self.learner.params, self.learner.observations)

    def evaluation(self) -> dict[str, Any] | None:
        """Evaluate the policy in new environments, as the arguments say; None if they ask for no evaluation."""
        if not self.arguments.eval_episodes:
            return None
        found: Evaluation = evaluate_policy(
            self.policy,
            self.arguments.env_id,
            self.arguments.eval_episodes,
            seed=self._seed(-1),
            env_arguments=self.arguments.env_arguments,
        )
        return found.as_dict()

    def _seed(self, update: int) -> int:
        """A seed for environments that follows from the seed of the training and an update, or -1 for evaluations."""
        return int(np.random.SeedSequence([self.arguments.seed, update + 1]).generate_state(1)[0])

    def finish(self, on_update: OnUpdate | None) -> Result:
        """Do the remaining updates, evaluate the policy, and write all files."""
        updates, every = self.arguments.num_updates, self.arguments.checkpoint_every
        started = int(self.learner.updates)
        for update in range(started, updates):
            if update == started or update % every == 0:
                self.collector.restart(self._seed(update))
            self.rows.append(self.one_update(update))
            if (update + 1) % every == 0 or update + 1 == updates:
                curve.write_csv(self.folder / "curve.csv", self.rows)
                checkpoint.save(self.folder, self.learner)
            if on_update:
                on_update(self.rows[-1])
        return self._conclude()

    def one_update(self, update: int) -> curve.Row:
        """Collect one rollout, update the learner, and return the row of the curve."""
        began = perf_counter()
        rollout_key, update_key = jax.random.split(jax.random.fold_in(self.key, update))
        learner, steps = self.learner, self.arguments.rollout_steps
        collected = self.collector.collect(learner.params, learner.observations, rollout_key, steps)
        collected_at = perf_counter()
        observations, returns, rewards = self._normalise(collected)
        rollout = collected.rollout._replace(rewards=rewards)
        params, opt_state, parts = self.update(learner.params, learner.opt_state, rollout, update_key)
        if not all(np.isfinite(value) for value in parts.values()):
            raise TrainingError(
                f"update {update + 1} made the loss non-finite; lower learning_rate or max_grad_norm, "
                "or look for rewards that are not finite"
            )
        self.learner = Learner(params, opt_state, observations, returns, np.asarray(update + 1))
        row = {
            "update": update + 1,
            "env_steps": (update + 1) * self.arguments.batch_size,
            "episodes": len(collected.returns),
            "return_mean": float(np.mean(collected.returns)) if collected.returns else float("nan"),
            "length_mean": float(np.mean(collected.lengths)) if collected.lengths else float("nan"),
            **{name: float(value) for name, value in parts.items()},
        }
        ended = perf_counter()
        return {**row, "rollout_s": round(collected_at - began, 4), "update_s": round(ended - collected_at, 4)}

    def _normalise(self, collected: Collected) -> tuple[Any, Any, np.ndarray]:
        """Statistics of observations and of discounted returns that include this rollout, and its scaled rewards."""
        observations, returns = self.learner.observations, self.learner.returns
        rewards = collected.rollout.rewards
        if self.arguments.normalize_observations:
            observations = observations.merged(collected.observed)
        if self.arguments.normalize_rewards:
            returns = returns.merged(collected.discounted)
            rewards = returns.scaled(rewards)
        return observations, returns, rewards

    def _conclude(self) -> Result:
        after = self.evaluation()
        steps = self.arguments.num_updates * self.arguments.batch_size
        rollout_s, update_s = (sum(row[name] for row in self.rows) for name in ("rollout_s", "update_s"))
        self.summary |= {
            "after": after,
            "updates": self.arguments.num_updates,
            "env_steps": steps,
            "rollout_s": round(rollout_s, 2),
            "update_s": round(update_s, 2),
            "env_steps_per_s": round(steps / (rollout_s + update_s)),
        }
        checkpoint.write_summary(self.folder, self.summary)
        before = self.summary["before"]
        evaluations = {0: before["return_mean"], steps: after["return_mean"]} if before and after else {}
        title = f"{self.arguments.env_id}, seed {self.arguments.seed}"
        curve.plot(self.folder / "curve.png", self.rows, title, evaluations)
        return Result(self.folder, self.policy, self.rows, before, after, self.summary)
