"""The kernel list holds exactly the work that the contacts of a step need, as MuJoCo finds them."""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, load_model
from simengine.model.pair_types import PAIR_TYPES
from simengine.state.fields import FIELD, ROW_CLASSES
from simengine_scheduler.core import Cost
from tests.emission.lists import Work, evaluations, touched, work, written
from tests.emission.worlds import BALL, ant, ant_start, ants, host, oracle
from tests.helpers.oracle import sample
from tests.models import OWN

ON_DEMAND = {"site_xpos": "nsite", "ten_length": "ntendon", "ten_velocity": "ntendon", "actuator_length": "nu"}
ON_DEMAND |= dict.fromkeys(("energy", "cfrc_ext", "cacc", "subtree_linvel", "sensordata"), "nbody")
"""Fields that no step needs for itself, and the size of a model without which they are empty."""

FEET = """
<mujoco model="feet">
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    {bodies}
  </worldbody>
</mujoco>
"""
FOOT = '<body pos="{x} 0 0.2"><joint type="slide" axis="0 0 1"/><geom size="0.1" contype="2" conaffinity="1"/></body>'
MANY = 40


def feet() -> Model:
    """MANY spheres over a plane that do not touch each other: four rows for each that stands."""
    return as_one_problem(load_model(FEET.format(bodies="".join(FOOT.format(x=i * 0.01) for i in range(MANY)))))


def as_one_problem(model: Model) -> Model:
    """The model, solved at once also on a CPU."""
    model.table.solve_by_islands(False)
    return model


def pair_type(mj: mujoco.MjModel, geoms: np.ndarray) -> str:
    """Name of the pair type of a contact's geoms."""
    names = [mujoco.mjtGeom(t).name.removeprefix("mjGEOM_").lower() for t in sorted(mj.geom_type[geoms])]
    return "_".join(names)


def row_class(nefc: int) -> str:
    """The count of the worlds of the size class that holds so many rows."""
    return next((f"rows_{bound}" for bound in ROW_CLASSES if nefc <= bound), "rows_more")


def expected(model: Model, qpos: np.ndarray) -> Work:
    """What one evaluation must do for these states, by MuJoCo's contacts and rows."""
    narrowphase, classes = Counter[str](), Counter[str]()
    for state in qpos:
        data = oracle(model, state)
        narrowphase.update({pair_type(model.mj, geoms) for geoms in data.contact.geom})
        classes[row_class(data.nefc)] += 1
    return Work(dict(narrowphase), sorted(classes.values()), {len(qpos)})


def on_demand(sim: Simulation) -> set[str]:
    """Of the fields that no step needs, those that the latest list writes."""
    return written(sim, *sim.schedule.kernel_list) & set(ON_DEMAND)


def listed(qpos: np.ndarray) -> list[Work]:
    """What each evaluation of one step of ants does."""
    sim = host(ant(), len(qpos), shards=1, dtype="float64")
    sim.set_state(qpos=qpos)
    sim.step()
    return [work(sim, calls) for calls in evaluations(sim)]


def test_an_ant_in_the_air_emits_no_narrowphase_and_no_solver() -> None:
    assert listed(ants(3.0)) == [Work({}, [4], {4})] * 4
    sim = host(ant(), 4, shards=1)
    sim.set_state(qpos=ants(3.0))
    sim.step()
    assert not touched(sim, *sim.schedule.kernel_list) & {"contact_dist", "efc_J"}


def test_an_ant_emits_other_lists_in_the_air_standing_and_on_its_back() -> None:
    air, stand, back = (listed(q)[0].narrowphase for q in (ants(3.0), ants(0.5), ants(0.24, upside_down=True)))
    assert air == {}
    assert stand["plane_capsule"] == 4
    assert "plane_sphere" not in stand
    assert back["plane_sphere"] == 4


def test_runge_kutta_emits_four_evaluations_and_euler_one() -> None:
    for model, number in ((ant(), 4), (BALL, 1)):
        sim = host(model, 3, shards=1)
        sim.step()
        counted = [entry for entry in sim.schedule.kernel_list if "totals" in written(sim, entry)]
        assert len(counted) == len(evaluations(sim)) == number


def test_the_list_is_that_of_the_last_step() -> None:
    sim = host(BALL, 3, shards=1)
    sim.step(7)
    (calls,) = evaluations(sim)
    assert work(sim, calls) == Work({}, [3], {3})
    assert {"qpos", "qvel"} <= written(sim, *calls)
    assert on_demand(sim) == set()
    sim.forward()
    (calls,) = evaluations(sim)
    assert work(sim, calls) == Work({}, [3], {3})
    assert not {"qpos", "qvel"} & written(sim, *calls)
    assert on_demand(sim) == {field for field, size in ON_DEMAND.items() if getattr(sim.model, size)}


def test_calls_of_a_step_match_mujoco_for_ants() -> None:
    """The first evaluation of a step, and forward(), in a batch where some fly, some stand, some lie."""
    start = ant_start(60)
    sim = host(ant(), 60, shards=1, dtype="float64")
    sim.set_state(**start._asdict())
    sim.step()
    assert work(sim, evaluations(sim)[0]) == expected(ant(), start.qpos)
    assert on_demand(sim) == set()
    qpos = np.array(sim.qpos)
    sim.forward()
    assert work(sim, evaluations(sim)[0]) == expected(ant(), qpos)
    assert on_demand(sim) == {field for field, size in ON_DEMAND.items() if getattr(ant(), size)}


@pytest.mark.parametrize("name", ["pile", "two_arms", "contact_parameters", "parallel_capsules"])
def test_calls_match_mujoco_for_every_pair_type(name: str) -> None:
    model, qpos = as_one_problem(load_model(OWN[name])), sample(name).qpos
    sim = host(model, len(qpos), shards=1, dtype="float64")
    sim.set_state(qpos=qpos)
    sim.forward()
    wanted = expected(model, qpos)
    assert set(wanted.narrowphase) & set(PAIR_TYPES)
    assert work(sim, evaluations(sim)[0]) == wanted
    assert on_demand(sim) == {field for field, size in ON_DEMAND.items() if getattr(model, size)}


def test_worlds_are_split_into_row_classes() -> None:
    """Worlds with 0 to MANY standing spheres, in a mixed order, reach every size class; none is forgotten."""
    model = feet()
    standing = np.random.default_rng(0).permutation([0, 0, 0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, MANY, MANY])
    qpos = np.where(np.arange(MANY) < standing[:, None], -0.101, 0.0)
    sim = host(model, len(standing), shards=1, dtype="float64")
    sim.set_state(qpos=qpos)
    sim.step()
    (calls,) = evaluations(sim)
    assert work(sim, calls) == Work({"plane_sphere": 13}, [2, 2, 2, 2, 2, 3, 3], {16})
    classes = Counter(row_class(4 * int(number)) for number in standing)
    assert set(classes) == {*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more"}
    assert classes.items() <= sim.schedule.counts().items()
    for world, state in enumerate(qpos):
        data = oracle(model, state)
        mujoco.mj_step(model.mj, data)
        np.testing.assert_allclose(np.asarray(sim.qvel)[world], data.qvel, atol=1e-9)


def test_counts_are_totals_of_mujoco() -> None:
    start = ant_start(30)
    sim = host(ant(), 30, shards=4, dtype="float64")
    sim.set_state(qpos=start.qpos)
    sim.forward()
    data = [oracle(ant(), q) for q in start.qpos]
    counts = sim.schedule.counts()
    assert counts["ncon"] == sum(d.ncon for d in data) > 10
    assert counts["nefc"] == sum(d.nefc for d in data)
    assert counts["bad"] == 0
    classes = {name: number for name, number in counts.items() if name.startswith("rows_")}
    bounded = classes.pop("rows_bounded")
    assert sum(classes.values()) == bounded + classes["rows_more"] == 30


def test_each_shard_emits_for_its_own_worlds() -> None:
    """Six ants of which only the last two touch: the shard of the others emits no narrowphase."""
    qpos = np.concatenate([ants(3.0), ants(0.24, upside_down=True, worlds=2)])
    sim = host(ant(), 6, shards=3, dtype="float64")
    sim.set_state(qpos=qpos)
    sim.forward()
    shards = {0, 1, 2}
    touching = {e.call.tag.shard for e in sim.schedule.kernel_list if "contact_dist" in written(sim, e)}
    assert touching == {2}
    for field in ("totals", "qacc"):
        assert {e.call.tag.shard for e in sim.schedule.kernel_list if field in written(sim, e)} == shards


def test_cost_hints_grow_with_worlds_and_precision() -> None:
    of_numbers = set[str]()

    def costs(worlds: int, dtype: str) -> dict[str, Cost]:
        sim = host(ant(), worlds, shards=1, dtype=dtype)
        sim.forward()
        entries = sim.schedule.kernel_list
        of_numbers.update(e.name for e in entries if any(FIELD[f].kind == "real" for f in touched(sim, e) & set(FIELD)))
        return {e.name: e.call.cost for e in entries}

    few, many, precise = costs(4, "float32"), costs(12, "float32"), costs(4, "float64")
    assert few.keys() == many.keys() == precise.keys()
    assert of_numbers < few.keys()
    for name, cost in few.items():
        assert many[name].flops == 3 * cost.flops > 0
        assert many[name].bytes == 3 * cost.bytes > 0
        if name in of_numbers:
            assert cost.bytes < precise[name].bytes <= 2 * cost.bytes
        else:
            assert cost.bytes == precise[name].bytes


def test_frozen_worlds_cause_no_calls() -> None:
    sim = host(ant(), 4, shards=1, on_nonfinite="freeze")
    sim.set_state(qpos=ants(0.24, upside_down=True))
    np.asarray(sim.qpos)[1:, 0] = np.nan
    sim.step()
    found = work(sim, evaluations(sim)[0])
    assert found.narrowphase["plane_sphere"] == 1
    assert found.finished == [1]
    np.asarray(sim.qpos)[0, 0] = np.nan
    sim.step()
    assert [work(sim, calls) for calls in evaluations(sim)] == [Work({}, [], {4})] * 4
