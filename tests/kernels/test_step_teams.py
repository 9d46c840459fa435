"""Kernels of whole steps with their teams as threads: the bits of counted lists, from nothing but what is alive.

What the host cannot show is the warps of a team and several worlds in one; see tests/gpu/test_cuda_steps.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simengine import Model, Simulation, load_model
from simengine.plan.stages import INTEGRATORS
from simengine.state.fields import COLUMNS, NUM_COLUMNS, ROW_CLASSES
from simengine.zoo import random_robot
from tests.kernels import teams
from tests.models import compile_model
from tests.stages.harness import BACK, FRONT, Memory
from tests.stages.harness_sanitizer import Result, supported

WORLDS, STEPS, BEFORE = 3, 20, 200
MODELS = [
    ("ant", "float32", "rk4", ()),
    ("hopper", "float32", "rk4", ()),
    ("half_cheetah", "float64", "euler", ()),
    ("swimmer", "float32", "rk4", ("fluid",)),
    ("robot", "float64", "euler", ("contacts_plain",)),
]
"""Models, precisions, integrators, and stages that not every kernel of whole steps has."""

THREADS = "-fsanitize=thread"
TOO_FAST = {"float32": 1e30, "float64": 1e300}


def loaded(name: str) -> Model:
    """A model, solved as a whole."""
    model = load_model(random_robot(7) if name == "robot" else compile_model(name))
    model.table.solve_by_islands(False)
    return model


def started(name: str, dtype: str, worlds: int, steps: int) -> tuple[Simulation, Memory, np.ndarray]:
    """Worlds in motion and in contact, the last of which is about to fail; a copy; and controls of so many steps."""
    model = loaded(name)
    rng = np.random.default_rng(3)
    options: dict[str, Any] = {"backend": "host", "emission": "counted", "executor": "serial", "on_nonfinite": "freeze"}
    sim = Simulation(model, worlds, dtype=dtype, **options)
    sim.set_state(
        qvel=rng.normal(0, 2, (worlds, model.nv)),
        qfrc_applied=rng.normal(0, 0.1, (worlds, model.nv)),
        xfrc_applied=rng.normal(0, 0.1, (worlds, model.nbody, 6)),
    )
    push = rng.choice([-1.0, 1.0], (worlds, model.nu))  # to the limits of joints
    sim.step(BEFORE, ctrl=push)
    if worlds > 1:
        qvel = np.array(sim.field("qvel"))
        qvel[-1, 0] = TOO_FAST[dtype]
        sim.set_state(qvel=qvel)
    memory = Memory(model.table, dtype, worlds, 0, 0)
    kernel = teams.kernel_of(model.table)
    memory.set({field: np.asarray(sim.field(field)) for field in (*kernel.reads, *kernel.state)})
    ctrl = (push * rng.uniform(0.5, 1, (steps, worlds, model.nu))).astype(dtype)
    memory.add("ctrl", np.pad(ctrl, ((0, 0), (FRONT, BACK), (0, 0)), constant_values=np.nan))
    return sim, memory, ctrl


def rows_after(name: str, dtype: str, shared_rows: int) -> np.ndarray:
    """Compare steps by teams with counted ones, bit for bit; returns the rows of the worlds that did not fail."""
    sim, memory, ctrl = started(name, dtype, WORLDS, STEPS)
    kernel = teams.kernel_of(memory.model)
    teams.run(kernel, memory, teams.arguments(kernel, memory, min(memory.model.nefc_max, shared_rows)))
    sim.step(STEPS, ctrl=ctrl)
    assert not memory.broken_guards()
    for field in kernel.state:
        ours, theirs = memory.own(field), np.asarray(sim.field(field))
        assert ours.tobytes() == theirs.tobytes(), f"{field} has other bits"
    counts = memory.own("counts").reshape(NUM_COLUMNS, WORLDS)
    assert dict(zip(COLUMNS, counts.sum(1).tolist(), strict=True)) == sim.schedule.counts()
    assert memory.arrays["totals_host"].ravel()[COLUMNS.index("bad")] == 1
    assert [status > 0 for status in memory.own("world_status")] == [False, False, True]
    assert memory.own("nstep")[:-1].tolist() == [BEFORE + STEPS] * (WORLDS - 1)
    return counts[COLUMNS.index("nefc"), :-1]


@pytest.mark.parametrize(("name", "dtype", "integrator", "special"), MODELS, ids=[name for name, *_ in MODELS])
def test_teams_have_the_bits_of_counted_steps(name: str, dtype: str, integrator: str, special: tuple[str, ...]) -> None:
    stages = {stage.name for stage in teams.kernel_of(loaded(name).table).stages}
    assert stages & {*INTEGRATORS, "fluid", "contacts_plain"} == {integrator, *special}
    assert rows_after(name, dtype, ROW_CLASSES[-1]).max() > 0


@pytest.mark.parametrize(("name", "shared_rows"), [("ant", 8), ("hopper", 4)])
def test_rows_that_are_many_are_far(name: str, shared_rows: int) -> None:
    """In the ant all worlds have more, in the hopper one of them."""
    rows = rows_after(name, "float32", shared_rows)
    assert rows.max() > shared_rows
    assert name == "ant" or rows.min() <= shared_rows


@pytest.fixture
def sanitized() -> Callable[[int], Result]:
    """Steps of a world under the thread sanitizer, but for the barrier of a phase."""
    if not supported(THREADS):
        pytest.skip(f"this compiler or machine lacks {THREADS}")

    def run(left_out: int) -> Result:
        # in single precision the sanitizer's four notes on eight bytes would not do for four teams
        _, memory, _ = started("hopper", "float64", 1, 3)
        kernel = teams.kernel_of(memory.model)
        slots = teams.arguments(kernel, memory, memory.model.nefc_max, poison=False, left_out=left_out)
        return teams.run_under(THREADS, kernel, memory, slots)

    return run


@pytest.mark.sanitizer
def test_teams_do_not_race(sanitized: Callable[[int], Result]) -> None:
    result = sanitized(teams.NO_PHASE)
    assert not result.reports, result.reports[:3000]
    assert result.status == 0


@pytest.mark.sanitizer
@pytest.mark.parametrize("phase", [-1, 0, 1, 2, 3])
def test_teams_race_without_the_barrier_of_a_phase(sanitized: Callable[[int], Result], phase: int) -> None:
    assert "ThreadSanitizer: data race" in sanitized(phase).reports
