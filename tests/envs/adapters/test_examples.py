"""The programs in examples/ that train with other libraries run, and report what they did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.helpers.checkout import ROOT

OPTIONS = ["--env", "simengine/InvertedPendulum-v5", "--backend", "host", "--json"]
pytestmark = pytest.mark.slow


def result(program: str, library: str, *options: Any) -> dict[str, Any]:
    pytest.importorskip(library)
    command = [sys.executable, ROOT / "examples" / program, *OPTIONS, *map(str, options)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("vector", ["batch", "sync"])
def test_one_file_of_pytorch_learns(vector: str) -> None:
    options = ("--steps", 4096, "--num-envs", 4, "--rollout", 128, "--vector", vector)
    found = result("train_torch.py", "torch", *options)
    assert len(found["losses"]) == 8
    assert found["episodes"] > 50
    assert found["mean_return"] > 12  # a policy at random reaches 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_stable_baselines3(algorithm: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.zip"
    options = ("--steps", 400, "--num-envs", 4, "--algorithm", algorithm, "--save", policy)
    found = result("train_stable_baselines3.py", "stable_baselines3", *options)
    assert found["steps"] >= 400
    assert found["episodes"] > 5
    assert policy.stat().st_size > 1000


@pytest.mark.filterwarnings("ignore")
def test_rsl_rl(tmp_path: Path) -> None:
    found = result("train_rsl_rl.py", "rsl_rl", "--steps", 300, "--num-envs", 4, "--out", tmp_path)
    assert found["iterations"] == 4
    assert found["episodes"] > 5
    assert (tmp_path / "model_3.pt").exists()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(jax.__version_info__ >= (0, 10), reason="Brax needs a function that JAX 0.10 has dropped")
def test_brax() -> None:
    options = ("--steps", 2000, "--num-envs", 16, "--episode-length", 20, "--evaluations", 2)
    history = result("train_brax.py", "brax", *options)["history"]
    assert history[0]["steps"] == 0
    assert history[-1]["steps"] >= 2000


CLEANRL = """
import json, sys
import gymnasium as gym
import numpy as np

def make_env():
    env = gym.make(sys.argv[2])
    env = gym.wrappers.FlattenObservation(env)
    env = gym.wrappers.RecordEpisodeStatistics(env)
    env = gym.wrappers.ClipAction(env)
    env = gym.wrappers.NormalizeObservation(env)
    env = gym.wrappers.TransformObservation(env, lambda obs: np.clip(obs, -0.5, 0.5))
    env = gym.wrappers.NormalizeReward(env, gamma=0.99)
    return gym.wrappers.TransformReward(env, lambda reward: np.clip(reward, -10, 10))

envs = gym.vector.SyncVectorEnv([make_env] * 2)
seen = [envs.reset(seed=1)[0]]
for _ in range(30):
    seen.append(envs.step(envs.action_space.sample())[0])
if __name__ == "__main__":
    print(json.dumps({"most": float(np.abs(seen).max()), "name": sys.argv[2]}))
"""


def test_a_program_of_cleanrl_runs_as_it_is(tmp_path: Path) -> None:
    """With the wrappers and the calls of its `ppo_continuous_action.py`."""
    file = tmp_path / "ppo.py"
    file.write_text(CLEANRL)
    command = [sys.executable, ROOT / "examples" / "run_cleanrl.py", file, "--env-id", "simengine/InvertedPendulum-v5"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"most": 0.5, "name": "simengine/InvertedPendulum-v5"}
    missing = subprocess.run([*command[:2], tmp_path / "none.py"], check=False, capture_output=True, text=True)
    assert missing.returncode == 2
    assert "FILE.py is a program of CleanRL" in missing.stderr
