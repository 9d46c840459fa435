"""Train a policy with PPO in one file of PyTorch, the way CleanRL's programs do, on any environment of Gymnasium.

    python examples/train_torch.py --env simengine/HalfCheetah-v5 --steps 200000
    python examples/train_torch.py --env simengine/HalfCheetah-v5 --steps 200000 --vector sync

With `--vector batch` one simulation steps all worlds. With `--vector sync` each world is an environment of its own,
made by `gymnasium.make` and stepped by `gymnasium.vector.SyncVectorEnv`. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import vector
from rich.progress import track
from torch import nn
from torch.distributions import Normal

import simengine  # noqa: F401 (registers the environments)

DISCOUNT, LAMBDA, CLIP = 0.99, 0.95, 0.2
EPOCHS, MINIBATCHES = 10, 4


def make_one(name: str, backend: str) -> Callable[[], gymnasium.Env]:
    """A function that makes one environment, with statistics and clipped actions."""

    def make() -> gymnasium.Env:
        env = gymnasium.make(name, backend=backend)
        env = gymnasium.wrappers.FlattenObservation(env)
        env = gymnasium.wrappers.RecordEpisodeStatistics(env)
        return gymnasium.wrappers.ClipAction(env)

    return make


def make_envs(name: str, num_envs: int, kind: str, backend: str) -> Any:
    """A vector environment with statistics, clipped actions, and normalised observations and rewards."""
    if kind == "sync":
        envs: Any = gymnasium.vector.SyncVectorEnv([make_one(name, backend)] * num_envs)
    else:
        envs = gymnasium.make_vec(name, num_envs=num_envs, backend=backend)
        envs = vector.ClipAction(vector.RecordEpisodeStatistics(envs))
    return vector.NormalizeReward(vector.NormalizeObservation(envs), gamma=DISCOUNT)


class Agent(nn.Module):
    """A Gaussian policy and a value."""

    def __init__(self, observation_size: int, action_size: int):
        super().__init__()

        def network(outputs: int) -> nn.Module:
            return nn.Sequential(
                nn.Linear(observation_size, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
            )

        self.mean, self.critic = network(action_size), network(1)
        self.log_std = nn.Parameter(torch.zeros(action_size))

    def policy(self, observation: torch.Tensor) -> Normal:
        """Distribution of the action."""
        return Normal(self.mean(observation), self.log_std.exp())

    def value(self, observation: torch.Tensor) -> torch.Tensor:
        """Value (n,) of observations (n, size)."""
        found: torch.Tensor = self.critic(observation)[..., 0]
        return found


class Rollout:
    """Steps an agent in the environments, and keeps what an update needs.

    After a step that ends an episode, the next step of that world starts a new one, and its action is not used. Such
    steps are left out.
    """

    def __init__(self, envs: Any, agent: Agent, seed: int):
        self.envs, self.agent = envs, agent
        self.observation = torch.as_tensor(envs.reset(seed=seed)[0], dtype=torch.float32)
        self.ended = torch.zeros(envs.num_envs, dtype=torch.bool)
        self.returns: list[float] = []

    @torch.no_grad()
    def collect(self, length: int) -> dict[str, torch.Tensor]:
        """Observations, actions, log probabilities, advantages and targets of `length` steps, each (rows, ...)."""
        names = ("observation", "action", "log", "value", "reward", "terminated", "ended", "used")
        kept: dict[str, list[torch.Tensor]] = {name: [] for name in names}
        for _ in range(length):
            policy = self.agent.policy(self.observation)
            action = policy.sample()
            kept["observation"].append(self.observation)
            kept["action"].append(action)
            kept["log"].append(policy.log_prob(action).sum(-1))
            kept["value"].append(self.agent.value(self.observation))
            observation, reward, terminated, truncated, infos = self.envs.step(action.numpy())
            self.observation = torch.as_tensor(observation, dtype=torch.float32)
            kept["reward"].append(torch.as_tensor(reward, dtype=torch.float32))
            kept["used"].append(~self.ended)
            self.ended = torch.as_tensor(terminated | truncated)
            kept["terminated"].append(torch.as_tensor(terminated))
            kept["ended"].append(self.ended)
            self._note(infos)
        data = {name: torch.stack(values) for name, values in kept.items()}
        data["advantage"] = advantages(data, self.agent.value(self.observation))
        data["target"] = data["advantage"] + data["value"]
        return {name: value[data["used"]] for name, value in data.items()}

    def _note(self, infos: dict[str, Any]) -> None:
        """Keep the returns of episodes that ended."""
        if "episode" in infos:
            self.returns += infos["episode"]["r"][infos["_episode"]].tolist()


def advantages(data: dict[str, torch.Tensor], last: torch.Tensor) -> torch.Tensor:
    """Generalised advantage estimates (steps, n). Where a limit ends an episode, the value of its end still counts."""
    found, running = torch.zeros_like(data["reward"]), torch.zeros_like(last)
    following = last
    for t in reversed(range(len(found))):
        error = data["reward"][t] + DISCOUNT * ~data["terminated"][t] * following - data["value"][t]
        running = error + DISCOUNT * LAMBDA * ~data["ended"][t] * running
        found[t], following = running, data["value"][t]
    return found


def loss_of(agent: Agent, data: dict[str, torch.Tensor]) -> torch.Tensor:
    """The clipped loss of PPO with that of the value."""
    policy = agent.policy(data["observation"])
    ratio = (policy.log_prob(data["action"]).sum(-1) - data["log"]).exp()
    advantage = (data["advantage"] - data["advantage"].mean()) / (data["advantage"].std() + 1e-8)
    gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
    return 0.5 * (agent.value(data["observation"]) - data["target"]).square().mean() - gain


def update(agent: Agent, optimizer: torch.optim.Optimizer, data: dict[str, torch.Tensor]) -> float:
    """Improve the agent on the data of a rollout; returns the last loss."""
    count, loss = len(data["reward"]), torch.zeros(())
    for _ in range(EPOCHS):
        for rows in torch.randperm(count).chunk(MINIBATCHES):
            loss = loss_of(agent, {name: value[rows] for name, value in data.items()})
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    return float(loss.detach())


def main() -> int:
    """Train, and report the returns of the episodes that ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--env", default="simengine/HalfCheetah-v5", help="id of the environment")
    parser.add_argument("--vector", choices=["batch", "sync"], default="batch")
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps, of all worlds together")
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--rollout", type=int, default=128, help="steps of each world before an update")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the result as JSON and nothing else")
    args = parser.parse_args()
    if min(args.steps, args.num_envs) < 1 or args.rollout * args.num_envs < 2 * MINIBATCHES:
        parser.error(f"steps and num-envs must be at least 1, and rollout times num-envs at least {2 * MINIBATCHES}")
    torch.manual_seed(args.seed)
    envs = make_envs(args.env, args.num_envs, args.vector, args.backend)
    agent = Agent(envs.single_observation_space.shape[0], envs.single_action_space.shape[0])
    optimizer = torch.optim.Adam(agent.parameters(), 3e-4, eps=1e-5)
    rollout, losses = Rollout(envs, agent, args.seed), []
    updates = -(-args.steps // (args.rollout * args.num_envs))
    for _ in track(range(updates), "updates", disable=args.json):
        losses.append(update(agent, optimizer, rollout.collect(args.rollout)))
    envs.close()
    latest = rollout.returns[-100:]
    mean = float(np.mean(latest)) if latest else None
    if args.json:
        print(json.dumps({"losses": losses, "episodes": len(rollout.returns), "mean_return": mean}))
    else:
        print(f"{updates} updates, mean return of the latest {len(latest)} episodes: {mean}")
    return 0 if np.isfinite(losses).all() else 1


if __name__ == "__main__":
    sys.exit(main())
