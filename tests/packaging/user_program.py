"""A small user program. Tests run it and check it with `mypy --strict` in a separate environment."""

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
    """Height of a ball after a number of steps [m]."""
    model = simengine.load_model(BALL)
    with simengine.Simulation(model, num_worlds=2, backend="host", dtype=np.float64) as sim:
        sim.step(steps)
        qpos: simengine.Array = sim.qpos
        return float(qpos[0, 2])


def share_on_the_right(worlds: int) -> float:
    """Share of pushed ants whose x coordinate grew. Each ant has a friction of its own."""
    sim = simengine.Simulation("ant", worlds, backend="host", dtype=np.float32, keep="qacc", executor="serial")
    sim.set_params(geom_friction=np.tile(sim.model.geom_friction, (worlds, 1, 1)) * 0.5)
    assert float(sim.params("geom_friction").max()) <= float(np.max(sim.model.geom_friction))
    sim.set_state(qvel=np.linspace(-1, 1, worlds)[:, None] * np.ones(sim.model.nv))
    before = sim.qpos[:, 0].copy()
    sim.step(3, ctrl=np.zeros((3, worlds, sim.model.nu)))
    moved = simengine.to_host(sim.qpos)[:, 0] - before
    assert simengine.to_host(sim.field("qacc")).shape == (worlds, sim.model.nv)
    schedule: simengine.Schedule = sim.schedule
    assert (schedule.executor, schedule.reason) == ("serial", "it was asked for")
    assert schedule.kernel_list
    assert schedule.counts(sim.groups[0])["bad"] == 0
    executor = simengine_scheduler.make_executor("threads", **schedule.options)
    assert schedule.run(executor, 2).executor == "threads"
    assert len(schedule.trace_step().events) > 0
    sim.close()
    return float((moved > 0).mean())


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
    assert share_on_the_right(4) == 0.5
    assert trace_of_calls() == [0, 1]
    simengine_envs.register_envs()
    env = gymnasium.make("simengine/Ant-v5")
    env.reset(seed=1)
    assert simengine_training.Arguments().total_steps > 0
    print("ran")


if __name__ == "__main__":
    main()
