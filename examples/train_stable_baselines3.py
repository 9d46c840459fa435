"""Train a policy with PPO or SAC of Stable-Baselines3, on many worlds as one environment.

    python examples/train_stable_baselines3.py --env simengine/HalfCheetah-v5 --steps 200000 --save out/policy.zip

Needs `pip install 'simengine[sb3]'`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from stable_baselines3 import PPO, SAC

from simengine_envs.adapters.stable_baselines3 import StableBaselinesVecEnv


def main() -> int:
    """Train, and report the mean return of the latest episodes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--env", default="simengine/HalfCheetah-v5", help="id of the environment")
    parser.add_argument("--algorithm", choices=["ppo", "sac"], default="ppo")
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps, of all worlds together")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="write the policy here")
    parser.add_argument("--json", action="store_true", help="print the result as JSON and nothing else")
    args = parser.parse_args()
    if min(args.steps, args.num_envs) < 1:
        parser.error("steps and num-envs must be at least 1")
    env = StableBaselinesVecEnv(args.env, args.num_envs, args.seed, step_infos=False, backend=args.backend)
    options = {"seed": args.seed, "device": "cpu", "verbose": 0 if args.json else 1}
    if args.algorithm == "ppo":
        model: PPO | SAC = PPO("MlpPolicy", env, n_steps=max(2, 2048 // args.num_envs), batch_size=256, **options)
    else:
        model = SAC("MlpPolicy", env, train_freq=1, gradient_steps=1, **options)
    model.learn(args.steps, progress_bar=False)
    if args.save:
        model.save(args.save)
    returns = [float(episode["r"]) for episode in model.ep_info_buffer or []]
    mean = float(np.mean(returns)) if returns else None
    if args.json:
        print(json.dumps({"steps": model.num_timesteps, "episodes": len(returns), "mean_return": mean}))
    else:
        print(f"{model.num_timesteps} steps, mean return of the latest {len(returns)} episodes: {mean}")
    env.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
