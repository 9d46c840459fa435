"""The kernel list holds exactly the work that the contacts of a step need, as MuJoCo finds them."""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, load_model
from simengine.emission.calls import EmittedCall
from simengine.model.table import PAIR_TYPES
from simengine.state.fields import COLUMNS, ROW_CLASSES
from simengine_scheduler.core import Cost
from tests.emission.worlds import BALL, ant, ant_start, ants, host, oracle
from tests.models import OWN
from tests.oracle import sample

FIXED = ["position", "scan", "smooth"]
AFTER = ("rne_post", "sense_motion", "sense_forces")
ASKED_FOR = {"sites": "nsite", "tendon": "ntendon", "tendon_velocity": "ntendon", "transmission": "nu"}
ASKED_FOR |= {"energy": "nbody"}

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
    model.solve_by_islands(False)
    return model


def evaluations(sim: Simulation) -> list[list[EmittedCall]]:
    """The list of a simulation of one shard, split at each evaluation of the dynamics."""
    split: list[list[EmittedCall]] = []
    for entry in sim.last_kernel_list:
        if entry.name == "position":
            split.append([])
        split[-1].append(entry)
    return split


def sizes(calls: list[EmittedCall]) -> dict[str, int]:
    """Worlds of each call by name; a name may not occur twice."""
    assert len({call.name for call in calls}) == len(calls)
    return {call.name: call.units for call in calls}


def pair_type(mj: mujoco.MjModel, geoms: np.ndarray) -> str:
    """Name of the pair type of a contact's geoms."""
    names = [mujoco.mjtGeom(t).name.removeprefix("mjGEOM_").lower() for t in sorted(mj.geom_type[geoms])]
    return "_".join(names)


def row_call(prefix: str, nefc: int) -> str:
    """Name of the call that finishes a world with so many rows."""
    if nefc == 0:
        return f"advance_{prefix}"
    bound = next((bound for bound in ROW_CLASSES if nefc <= bound), None)
    return f"finish_{prefix}_arena" if bound is None else f"finish_{prefix}_{bound}"


def expected_sizes(model: Model, qpos: np.ndarray, prefix: str, post: bool) -> dict[str, int]:
    """What one evaluation must emit for these states, by MuJoCo's contacts and rows."""
    count: Counter[str] = Counter()
    for state in qpos:
        data = oracle(model, state)
        for name in {pair_type(model.mj, geoms) for geoms in data.contact.geom}:
            count[name] += 1
        count[row_call(prefix, data.nefc)] += 1
    worlds = {"position": len(qpos), "scan": len(COLUMNS), "smooth": len(qpos)}
    extra = (*(name for name, size in ASKED_FOR.items() if getattr(model, size)), *AFTER)
    return worlds | dict(count) | (dict.fromkeys(extra, len(qpos)) if post else {})


def listed(qpos: np.ndarray) -> list[dict[str, int]]:
    """Sizes of the calls of each evaluation of one step of ants."""
    sim = host(ant(), len(qpos), shards=1, dtype="float64")
    sim.set_state(qpos=qpos)
    sim.step()
    return [sizes(calls) for calls in evaluations(sim)]


def test_an_ant_in_the_air_emits_no_narrowphase_and_no_solver() -> None:
    air = ants(3.0)
    assert listed(air) == [{"position": 4, "scan": len(COLUMNS), "smooth": 4, "advance_rk4": 4}] * 4


def test_an_ant_emits_other_lists_in_the_air_standing_and_on_its_back() -> None:
    air, stand, back = (listed(q)[0] for q in (ants(3.0), ants(0.5), ants(0.24, upside_down=True)))
    assert "plane_capsule" not in air
    assert stand["plane_capsule"] == 4
    assert "plane_sphere" not in stand
    assert back["plane_sphere"] == 4
    assert len({frozenset(names) for names in (air, stand, back)}) == 3


def test_runge_kutta_emits_four_evaluations_and_euler_one() -> None:
    sim = host(ant(), 3, shards=1)
    sim.step()
    assert [e.name for e in sim.last_kernel_list].count("scan") == 4
    ball = host(BALL, 3, shards=1)
    ball.step()
    assert [e.name for e in ball.last_kernel_list] == [*FIXED, "advance_euler"]


def test_the_list_is_that_of_the_last_step() -> None:
    sim = host(BALL, 3, shards=1)
    sim.step(7)
    assert [e.name for e in sim.last_kernel_list] == [*FIXED, "advance_euler"]
    sim.forward()
    assert [e.name for e in sim.last_kernel_list] == [
        *FIXED,
        "transmission",
        "energy",
        "sense_motion",
        "advance_forward",
        "rne_post",
        "sense_forces",
    ]


def test_calls_of_a_step_match_mujoco_for_ants() -> None:
    """The first evaluation of a step, and forward(), in a batch where some fly, some stand, some lie."""
    start = ant_start(60)
    sim = host(ant(), 60, shards=1, dtype="float64")
    sim.set_state(**start._asdict())
    sim.step()
    assert sizes(evaluations(sim)[0]) == expected_sizes(ant(), start.qpos, "rk4", post=False)
    qpos = np.array(sim.qpos)
    sim.forward()
    assert sizes(evaluations(sim)[0]) == expected_sizes(ant(), qpos, "forward", post=True)


@pytest.mark.parametrize("name", ["pile", "two_arms", "contact_parameters", "parallel_capsules"])
def test_calls_match_mujoco_for_every_pair_type(name: str) -> None:
    model, qpos = as_one_problem(load_model(OWN[name])), sample(name).qpos
    sim = host(model, len(qpos), shards=1, dtype="float64")
    sim.set_state(qpos=qpos)
    sim.forward()
    expected = expected_sizes(model, qpos, "forward", post=True)
    assert set(expected) & set(PAIR_TYPES)
    assert sizes(evaluations(sim)[0]) == expected


def test_worlds_are_split_into_row_classes() -> None:
    """Worlds with 0 to MANY standing spheres, in a mixed order, reach every size class; none is forgotten."""
    model = feet()
    standing = np.random.default_rng(0).permutation([0, 0, 0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, MANY, MANY])
    qpos = np.where(np.arange(MANY) < standing[:, None], -0.101, 0.0)
    sim = host(model, len(standing), shards=1, dtype="float64")
    sim.set_state(qpos=qpos)
    sim.step()
    classes = {"advance_euler": 3, "finish_euler_8": 2, "finish_euler_16": 2, "finish_euler_32": 2}
    classes |= {"finish_euler_64": 2, "finish_euler_128": 2, "finish_euler_arena": 3}
    everything = sizes(sim.last_kernel_list)
    assert everything == {"position": 16, "scan": len(COLUMNS), "smooth": 16, "plane_sphere": 13} | classes
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
    counts = sim.counts()
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
    touching = {e.call.tag.shard for e in sim.last_kernel_list if e.name == "plane_sphere"}
    assert touching == {2}
    assert {e.call.tag.shard for e in sim.last_kernel_list if e.name == "position"} == {0, 1, 2}


def test_cost_hints_grow_with_worlds_and_precision() -> None:
    def costs(worlds: int, dtype: str) -> dict[str, Cost]:
        sim = host(ant(), worlds, shards=1, dtype=dtype)
        sim.forward()
        return {e.name: e.call.cost for e in sim.last_kernel_list if e.name in FIXED}

    few, many, precise = costs(4, "float32"), costs(12, "float32"), costs(4, "float64")
    assert sorted(few) == sorted(FIXED)
    for name, cost in few.items():
        assert many[name].flops == 3 * cost.flops > 0
        assert many[name].bytes == 3 * cost.bytes > 0
        assert cost.bytes < precise[name].bytes <= 2 * cost.bytes or name == "scan"  # which touches integers only


def test_frozen_worlds_cause_no_calls() -> None:
    sim = host(ant(), 4, shards=1, on_nonfinite="freeze")
    sim.set_state(qpos=ants(0.24, upside_down=True))
    np.asarray(sim.qpos)[1:, 0] = np.nan
    sim.step()
    names = sizes(evaluations(sim)[0])
    assert names["plane_sphere"] == 1
    assert sum(units for name, units in names.items() if name.startswith(("finish", "advance"))) == 1
    np.asarray(sim.qpos)[0, 0] = np.nan
    sim.step()
    assert [sizes(calls) for calls in evaluations(sim)] == [{"position": 4, "scan": len(COLUMNS), "smooth": 4}] * 4
