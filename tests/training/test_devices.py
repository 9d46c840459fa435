"""Worlds divided among devices, as two devices of a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
import numpy as np
from simengine_training import Arguments, resume, train
from tests.training import point

point.register()
arguments = dict(
    env_id=point.ID, env_arguments={"backend": "host"}, num_envs=32, rollout_steps=32, total_steps=32 * 32 * 20,
    minibatches=4, hidden_sizes=(16,), checkpoint_every=10, eval_episodes=16, learning_rate=3e-3,
)


def stop(row):
    if row["update"] == 13:
        raise KeyboardInterrupt


folder = sys.argv[1]
one, two = (train(Arguments(**arguments, devices=count), f"{folder}/{count}") for count in (1, 2))
try:
    train(Arguments(**arguments, devices=2), f"{folder}/parts", stop)
except KeyboardInterrupt:
    pass
parts = resume(f"{folder}/parts")
same = all((a == b).all() for a, b in zip(two.policy.weights, parts.policy.weights, strict=True))
last = [result.evaluations[-1]["return_mean"] for result in (one, two)]
first = [result.rows[0]["value_loss"] for result in (one, two)]
episodes = [result.rows[0]["episodes"] for result in (one, two)]
print(json.dumps({"last": last, "same": bool(same), "first": first, "episodes": episodes}))
"""


@pytest.mark.slow
def test_two_devices_learn_as_one_and_resume_to_the_bit(tmp_path: Path) -> None:
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["same"]
    assert min(found["last"]) > -3
    # the worlds are the same at first, the noise of the actions is not
    assert abs(found["first"][0] - found["first"][1]) < 0.2 * found["first"][0]
