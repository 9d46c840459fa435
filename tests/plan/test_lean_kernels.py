"""Which models have leaner kernels on a GPU, by what they lack or have many of."""

from __future__ import annotations

import pytest

from simengine.model import ModelTable, load_table
from simengine.plan import contact_kernels
from simengine.plan.evaluation import plan_evaluation
from simengine.plan.issue import decide_issuing
from simengine.plan.launches import Launch
from simengine.plan.selection import (
    FEWEST_GEOMS_IN_MEMORY,
    FEWEST_PAIRS_LISTED,
    MERGED_WORLDS,
    MOTION_BEHIND,
    Selection,
)
from simengine.plan.step_plan import plan_step
from tests.emission.test_memory import GpuOnPaper

MANY = MERGED_WORLDS + 1


def kernels(model: ModelTable, worlds: int, dtype: str = "float32", emission: str = "auto") -> list[str]:
    """Names of the kernels of a step on a GPU."""
    gpu = GpuOnPaper()
    model = gpu.form_of(model, dtype)
    plan = plan_step(model, worlds, gpu, dtype, decide_issuing([model], gpu, "serial", emission, {}), shards=1)
    return [kernel.name for kernel in plan.kernels(frozenset())]


def integrators(model: ModelTable, dtype: str = "float32", emission: str = "ahead") -> set[str]:
    return {name for name in kernels(model, 64, dtype, emission) if "implicitfast" in name}


LIMB = (
    '<body pos="0 0 1"><joint name="a{0}" type="hinge" damping="1"/><geom size=".1" contype="0" conaffinity="0"/>'
    '<site name="s{0}"/></body>'
)


def limbs(more: str = "", option: str = "", number: int = 3) -> ModelTable:
    """Bodies on hinges with an implicit integrator, which have some more elements and options."""
    bodies = "".join(LIMB.format(i) for i in range(number))
    settings = f'<option integrator="implicitfast" {option}/>'
    return load_table(f"<mujoco>{settings}<worldbody>{bodies}</worldbody>{more}</mujoco>")


def actuators(text: str) -> str:
    return f"<actuator>{text}</actuator>"


TENDON = '<tendon><fixed damping="1"><joint joint="a0" coef="1"/><joint joint="a1" coef="1"/></fixed></tendon>'


@pytest.mark.parametrize(
    ("model", "single"),
    [
        (limbs(), True),
        (limbs(actuators('<velocity joint="a0" kv="2"/><position joint="a0" kp="3"/>')), True),
        (limbs(actuators('<velocity site="s0" kv="2" gear="0 0 0 1 0 0"/>')), True),  # which one joint moves
        (limbs(TENDON), False),
        (limbs(option='density="1000"'), False),
        (limbs(number=64), True),
    ],
    ids=["dampers", "servos", "a site", "a tendon", "a medium", "64 dofs"],
)
def test_implicit_damping_of_single_dofs_has_a_kernel_of_its_own(model: ModelTable, single: bool) -> None:
    model.solve_by_islands(False)
    for emission in ("ahead", "counted", "stages"):  # so that bits do not depend on the emission
        names = integrators(model, emission=emission)
        assert len(names) == 1
        assert names.pop().startswith("implicitfast_diagonal") == single


def test_more_dofs_than_registers_hold_are_damped_as_islands_or_along_branches() -> None:
    model = limbs(number=65)
    model.solve_by_islands(False)
    assert not model.damps_single_dofs
    assert not limbs(number=200).damps_single_dofs  # solved by islands


@pytest.mark.parametrize(("solver", "eliminated"), [("Newton", True), ("PGS", False), ("CG", False)])
def test_the_inertia_is_eliminated_where_no_solver_reads_its_factor(solver: str, eliminated: bool) -> None:
    model = limbs(option=f'solver="{solver}"')
    for worlds, emission in ((64, "ahead"), (MANY, "ahead"), (64, "counted")):
        names = kernels(model, worlds, emission=emission)
        assert any("unfactored" in name for name in names) == eliminated
    slipless = limbs(option='noslip_iterations="3"')
    assert not any("unfactored" in name for name in kernels(slipless, MANY))


def room(geoms: int, kind: str) -> ModelTable:
    """A body among so many geoms that stand still."""
    fixed = "".join(f'<geom type="{kind}" size=".1 .1 .1" pos="{i} 0 0"/>' for i in range(geoms - 1))
    return load_table(
        f'<mujoco><worldbody>{fixed}<body pos="0 0 1"><freejoint/><geom type="{kind}" size=".1 .1 .1"/></body>'
        "</worldbody></mujoco>"
    )


@pytest.mark.parametrize("geoms", [FEWEST_GEOMS_IN_MEMORY - 1, FEWEST_GEOMS_IN_MEMORY])
@pytest.mark.parametrize("worlds", [MERGED_WORLDS, MANY])
def test_large_batches_have_frames_of_many_geoms_in_memory(geoms: int, worlds: int) -> None:
    names = kernels(room(geoms, "cylinder"), worlds)
    many = geoms >= FEWEST_GEOMS_IN_MEMORY and worlds > MERGED_WORLDS
    assert any("_of_many" in name for name in names) == many
    assert any(name.endswith("_in_parts") for name in names) == (worlds > MERGED_WORLDS)


@pytest.mark.parametrize("geoms", [20, FEWEST_PAIRS_LISTED + 1])
@pytest.mark.parametrize("worlds", [MERGED_WORLDS, MANY])
def test_the_motion_of_large_batches_comes_behind_the_list_of_near_pairs(geoms: int, worlds: int) -> None:
    selection = Selection(room(geoms, "sphere"), worlds, "euler", frozenset(), True, spreads_searches=True)
    launches = [item for item in plan_evaluation(selection, 0).launches if isinstance(item, Launch)]
    names = [item.kernel.name.split("_no_")[0] for item in launches]
    behind = [i for i, item in enumerate(launches) if item.behind]
    if "count_near" not in names:
        assert not behind
        return
    listing = names.index("list_near")
    assert MOTION_BEHIND in launches[listing].kernel.produced
    assert behind
    assert min(behind) > names.index("count_near") > listing
    assert all(MOTION_BEHIND not in item.kernel.produced for item in launches[listing + 1 :])


@pytest.mark.parametrize("geoms", [FEWEST_PAIRS_LISTED, FEWEST_PAIRS_LISTED + 1])
@pytest.mark.parametrize("worlds", [MERGED_WORLDS, MANY])
def test_lanes_count_contacts_of_any_world_where_pairs_are_many(geoms: int, worlds: int) -> None:
    model = room(geoms, "box")
    assert model.ncand == geoms - 1
    names = kernels(model, worlds)
    assert ("count_near" in names) == (geoms > FEWEST_PAIRS_LISTED and worlds > MERGED_WORLDS)


@pytest.mark.parametrize("worlds", [513, 1000, 1500, 2048, 2049, 8192, 100_000])
def test_one_of_two_kernels_takes_a_queue_of_any_length(worlds: int) -> None:
    selection = Selection(room(20, "cylinder"), worlds, "euler", frozenset(), True, spreads_searches=True)
    short, long = contact_kernels.TOUCHES_OF_MANY
    limits = []
    for kernel in (short, long):
        groups = worlds * contact_kernels.parts_of(kernel, selection.search_parts)
        limits.append(groups // dict(kernel.constants).get("SHORT_QUEUE", 16))
    assert limits[0] == limits[1] > 0
