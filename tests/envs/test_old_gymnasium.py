"""Under a Gymnasium without `AutoresetMode`, such as 0.29, single environments run. Vector ones say what they need."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gymnasium
import gymnasium.vector

del gymnasium.vector.AutoresetMode
import simengine_envs

env = gymnasium.make("simengine/InvertedPendulum-v5")
env.reset(seed=0)
print(env.step(env.action_space.sample())[1])
try:
    gymnasium.make_vec("simengine/InvertedPendulum-v5", num_envs=2)
except ImportError as error:
    print(error)
"""


@pytest.mark.slow
def test_single_environments_run() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reward, error = done.stdout.splitlines()
    assert float(reward) == 1
    assert error.startswith("vector environments need gymnasium>=1.2, and this is Gymnasium ")
    assert error.endswith("; upgrade it, or make single environments with gymnasium.make")
