"""Train a policy with PPO of Brax: rollouts and updates are one JAX program.

    python examples/train_brax.py --env simengine/Ant-v5 --num-envs 2048 --steps 10000000

Needs `pip install 'simengine[brax]'`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import sys
from typing import Any

with contextlib.redirect_stdout(sys.stderr):  # Brax imports MJX, which prints that Warp is absent
    from brax.training.agents.ppo import networks, train

    from simengine_envs.adapters.brax import BraxEnv, wrap


def main() -> int:
    """Train, and report the mean return of the last evaluation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--env", default="simengine/Ant-v5", help="id of the environment")
    parser.add_argument("--steps", type=int, default=1_000_000, help="environment steps, of all worlds together")
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--episode-length", type=int, default=1000, help="steps after which episodes are truncated")
    parser.add_argument("--evaluations", type=int, default=10)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the results as JSON and nothing else")
    args = parser.parse_args()
    if min(args.steps, args.num_envs, args.episode_length) < 1 or args.evaluations < 2:
        parser.error("steps, num-envs and episode-length must be at least 1, and evaluations at least 2")
    history: list[dict[str, float]] = []

    def report(steps: int, metrics: dict[str, Any]) -> None:
        found = {
            name: float(metrics[name]) for name in metrics if name.startswith(("eval/episode_reward", "training/"))
        }
        history.append({"steps": int(steps), **found})
        if not args.json:
            print(f"{steps} steps: mean return {metrics['eval/episode_reward']:.1f}", flush=True)

    train.train(
        environment=BraxEnv(args.env, backend=args.backend),
        wrap_env_fn=wrap,
        num_timesteps=args.steps,
        num_envs=args.num_envs,
        num_eval_envs=min(128, args.num_envs),
        num_evals=args.evaluations,
        episode_length=args.episode_length,
        unroll_length=16,
        batch_size=args.num_envs,
        num_minibatches=4,
        num_updates_per_batch=4,
        normalize_observations=True,
        discounting=0.99,
        learning_rate=3e-4,
        entropy_cost=1e-3,
        network_factory=functools.partial(networks.make_ppo_networks, policy_hidden_layer_sizes=(128, 128)),
        progress_fn=report,
        seed=args.seed,
    )
    if args.json:
        print(json.dumps({"history": history}))
    return 0 if all(math.isfinite(value) for row in history for value in row.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
