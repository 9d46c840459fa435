"""A small program of a user, which the tests run and check with `mypy --strict` in an environment of their own."""

from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np

import simengine
import simengine_envs
import simengine_scheduler
import simengine_training

BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def height_after(steps: int) -> float:
    """Height of a ball after so many steps."""
    sim = simengine.Simulation(simengine.load_model(BALL), num_worlds=2, backend="host")
    sim.step(steps)
    return float(np.asarray(sim.qpos)[0, 2])


def trace_of_calls() -> list[int]:
    """Order in which two calls ran."""
    segments = simengine_scheduler.Segments()
    x = segments.intern("x")
    ran: list[int] = []
    launches = [simengine_scheduler.PythonLaunch(partial(ran.append, number)) for number in range(2)]
    calls = [simengine_scheduler.KernelCall("append", launch, (), (), (x,)) for launch in launches]
    simengine_scheduler.make_executor("serial", segments=segments).run([calls])
    return ran


def main() -> None:
    """Use each package once."""
    assert height_after(10) < 1.0
    assert trace_of_calls() == [0, 1]
    simengine_envs.register_envs()
    env = gymnasium.make("simengine/Ant-v5")
    env.reset(seed=1)
    assert simengine_training.Arguments().total_steps > 0
    print("ran")


if __name__ == "__main__":
    main()
