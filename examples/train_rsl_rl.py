"""Train a policy with PPO of rsl_rl, whose tensors share the memory of the environment's arrays.

    python examples/train_rsl_rl.py --env simengine/Ant-v5 --num-envs 4096 --steps 10000000 --out out/ant

Needs `pip install 'simengine[rsl-rl]'`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from typing import Any

from rsl_rl.runners import OnPolicyRunner

from simengine_envs.adapters.rsl_rl import RslRlVecEnv

STEPS_PER_ITERATION = 24  # of each world


def configuration() -> dict[str, Any]:
    """What rsl_rl's runner reads."""
    network = {"class_name": "MLPModel", "hidden_dims": [128, 128], "activation": "elu"}
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0}
    algorithm = {
        "class_name": "PPO",
        "num_learning_epochs": 5,
        "num_mini_batches": 4,
        "learning_rate": 1e-3,
        "schedule": "adaptive",
        "desired_kl": 0.01,
        "entropy_coef": 0.005,
    }
    return {
        "num_steps_per_env": STEPS_PER_ITERATION,
        "save_interval": 50,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": gaussian},
        "critic": network,
        "algorithm": algorithm,
    }


def main() -> int:
    """Train, and report the mean return of the latest episodes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--env", default="simengine/Ant-v5", help="id of the environment")
    parser.add_argument("--steps", type=int, default=1_000_000, help="environment steps, of all worlds together")
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder for logs and policies; a temporary one if it is not given")
    parser.add_argument("--json", action="store_true", help="print the result as JSON and nothing else")
    args = parser.parse_args()
    if min(args.steps, args.num_envs) < 1:
        parser.error("steps and num-envs must be at least 1")
    env = RslRlVecEnv(args.env, args.num_envs, args.seed, backend=args.backend)
    iterations = -(-args.steps // (STEPS_PER_ITERATION * args.num_envs))
    with contextlib.ExitStack() as stack:
        out = args.out or stack.enter_context(tempfile.TemporaryDirectory())
        if args.json:
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
        runner = OnPolicyRunner(env, configuration(), out, str(env.device))
        runner.learn(iterations, init_at_random_ep_len=True)
    returns = list(runner.logger.rewbuffer)
    mean = sum(returns) / len(returns) if returns else None
    if args.json:
        print(json.dumps({"iterations": iterations, "episodes": len(returns), "mean_return": mean}))
    else:
        print(f"{iterations} iterations, mean return of the latest {len(returns)} episodes: {mean}")
    env.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
