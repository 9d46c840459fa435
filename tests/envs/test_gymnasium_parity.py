"""Every task against Gymnasium's own, along one history of states and actions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium
import mujoco
import numpy as np
import pytest

from simengine_envs.registration import REGISTRATIONS

pytest.importorskip("glfw", reason="Gymnasium's own MuJoCo tasks import it")

GYMNASIUMS = [item for item in REGISTRATIONS if item.id.endswith("-v5")]
"""The tasks that Gymnasium has too."""

STEPS = 30
FREE = 3
"""Steps between two copies of the state. In the steps between, what is left of the step before must be ours, too: the
positions of the last Runge-Kutta evaluation, and the point from which the solver starts."""
# The engine does in float64 what MuJoCo does, in nearly the same order, PGS included: both stop after the same sweep.
TOLERANCE = {"float64": 1e-10, "float32": 2e-3}


class Case(NamedTuple):
    """A task, its arguments, and what the history must cover for the comparison to mean something.

    Attributes:
        name: id in Gymnasium.
        arguments: arguments that differ from the defaults.
        start: coordinates of the first state by index, where those of Gymnasium's reset would cover too little.
        speed: velocity of the first dof in the first state.
        contacts: whether constraint forces must act.
        ends: whether an episode must terminate.
    """

    name: str
    arguments: Mapping[str, Any] = MappingProxyType({})
    start: Mapping[int, float] = MappingProxyType({})
    speed: float = 0.0
    contacts: bool = True
    ends: bool = False


ALL = {"exclude_current_positions_from_observation": False}
CASES = (
    Case("Ant-v5"),
    Case("HalfCheetah-v5"),
    Case("Hopper-v5", ends=True),
    Case("Humanoid-v5", ends=True),
    Case("HumanoidStandup-v5"),
    Case("InvertedDoublePendulum-v5", start={0: 0.95}, speed=10.0, ends=True),
    Case("InvertedPendulum-v5", start={0: 0.95}, speed=2.0, ends=True),
    Case("Pusher-v5", start={1: 0.9, 7: -0.1}),
    Case("Reacher-v5", start={1: 4.0}),
    Case("Swimmer-v5", start={3: 1.8}),
    Case("Walker2d-v5", ends=True),
)
OTHERS = (
    Case(
        "Ant-v5",
        {
            "frame_skip": 3,
            "forward_reward_weight": 2.5,
            "ctrl_cost_weight": 0.1,
            "contact_cost_weight": 0.03,
            "healthy_reward": 0.7,
            "main_body": "aux_2",
            "healthy_z_range": (0.6, 0.9),
            "contact_force_range": (-3.0, 2.0),
            **ALL,
        },
        ends=True,
    ),
    Case("HalfCheetah-v5", {"frame_skip": 2, "forward_reward_weight": 0.5, "ctrl_cost_weight": 0.3, **ALL}),
    Case(
        "Hopper-v5",
        {
            "frame_skip": 7,
            "forward_reward_weight": 0.5,
            "ctrl_cost_weight": 0.3,
            "healthy_reward": 0.6,
            "healthy_state_range": (-2.0, 3.0),
            "healthy_z_range": (0.1, 5.0),
            "healthy_angle_range": (-3.0, 3.0),
            **ALL,
        },
        ends=True,
    ),
    Case(
        "Humanoid-v5",
        {
            "frame_skip": 3,
            "forward_reward_weight": 2.0,
            "ctrl_cost_weight": 0.3,
            "contact_cost_weight": 1e-5,
            "contact_cost_range": (0.01, 1.0),
            "healthy_reward": 2.0,
            "terminate_when_unhealthy": False,
            "healthy_z_range": (0.9, 1.39),
            "include_cinert_in_observation": False,
            "include_qfrc_actuator_in_observation": False,
            **ALL,
        },
        start={2: 1.25},
    ),
    Case(
        "Humanoid-v5",
        {
            "contact_cost_weight": 0.0,
            "include_cvel_in_observation": False,
            "include_cfrc_ext_in_observation": False,
        },
        start={2: 1.25},
    ),
    Case(
        "HumanoidStandup-v5",
        {
            "frame_skip": 3,
            "uph_cost_weight": 2.0,
            "ctrl_cost_weight": 0.3,
            "impact_cost_weight": 1e-5,
            "impact_cost_range": (1.0, 5.0),
            "include_cvel_in_observation": False,
            "include_cfrc_ext_in_observation": False,
            **ALL,
        },
    ),
    Case("InvertedDoublePendulum-v5", {"frame_skip": 2, "healthy_reward": 3.0}, contacts=False, ends=True),
    Case("InvertedPendulum-v5", {"frame_skip": 1}, contacts=False, ends=True),
    Case(
        "Pusher-v5",
        {"frame_skip": 3, "reward_near_weight": 0.2, "reward_dist_weight": 3.0, "reward_control_weight": 0.4},
        start={1: 0.9, 7: -0.1},
    ),
    Case("Reacher-v5", {"frame_skip": 5, "reward_dist_weight": 3.0, "reward_control_weight": 0.4}, start={1: 4.0}),
    Case("Swimmer-v5", {"frame_skip": 2, "forward_reward_weight": 3.0, "ctrl_cost_weight": 0.2, **ALL}, contacts=False),
    Case(
        "Walker2d-v5",
        {
            "xml_file": "walker2d.xml",
            "frame_skip": 6,
            "forward_reward_weight": 3.0,
            "ctrl_cost_weight": 0.2,
            "healthy_reward": 0.3,
            "healthy_z_range": (1.2, 1.4),
            "healthy_angle_range": (-0.3, 0.5),
            **ALL,
        },
        ends=True,
    ),
)


class Comparison:
    """The worst difference along a history, relative to 1 plus the size of the value, and what the history covers."""

    def __init__(self) -> None:
        self.worst: dict[str, float] = {}
        self.contacts = self.ends = 0

    def add(self, part: str, actual: Any, expected: Any) -> None:
        """Compare a value of ours with Gymnasium's."""
        assert np.shape(actual) == np.shape(expected), part
        error = np.abs(np.subtract(actual, expected, dtype=np.float64)) / (1 + np.abs(expected))
        self.worst[part] = max(self.worst.get(part, 0.0), float(np.max(error, initial=0.0)))

    def add_info(self, actual: dict[str, Any], expected: dict[str, Any]) -> None:
        """Compare infos, whose keys must be the same."""
        assert actual.keys() == expected.keys()
        for name, value in expected.items():
            self.add(name, actual[name], value)

    def too_large(self, tolerance: float) -> dict[str, float]:
        """The differences above a tolerance."""
        return {part: error for part, error in self.worst.items() if not error < tolerance}


def pair(case: Case, dtype: str, backend: str = "host") -> tuple[Any, Any]:
    """Our environment and Gymnasium's, without wrappers."""
    ours = gymnasium.make(f"simengine/{case.name}", backend=backend, dtype=dtype, **case.arguments).unwrapped
    return ours, gymnasium.make(case.name, **case.arguments).unwrapped


def place(reference: Any, qpos: np.ndarray, qvel: np.ndarray) -> None:
    """Set the state of Gymnasium's environment as its reset does, with nothing left of the steps before."""
    mujoco.mj_resetData(reference.model, reference.data)
    reference.set_state(qpos, qvel)


def follow(case: Case, dtype: str, backend: str = "host", steps: int = STEPS) -> Comparison:
    """Step both environments with random actions, some beyond the range, from the reference's state every few steps."""
    ours, reference = pair(case, dtype, backend)
    data, found = reference.data, Comparison()
    reference.reset(seed=1)
    for index, value in case.start.items():
        data.qpos[index] = value
    data.qvel[0] += case.speed
    rng, space = np.random.default_rng(2), reference.action_space
    ended = False
    for step in range(steps):
        if ended:
            reference.reset()
        if ended or step % FREE == 0:
            qpos, qvel = data.qpos.copy(), data.qvel.copy()
            place(reference, qpos, qvel)
            ours.set_state(qpos, qvel)
        action = 1.2 * rng.uniform(space.low, space.high).astype(np.float64)  # Gymnasium adds float32 up in float32
        observation, reward, ended, truncated, info = ours.step(action)
        expected, expected_reward, *expected_ends, expected_info = reference.step(action)
        found.add("observation", observation, expected)
        found.add("reward", reward, expected_reward)
        found.add_info(info, expected_info)
        assert [ended, truncated] == expected_ends
        found.contacts += bool(data.efc_force.any())
        found.ends += ended
    ours.close()
    reference.close()
    return found


@pytest.mark.parametrize("case", [*CASES, *OTHERS], ids=lambda case: "-".join((case.name, *case.arguments))[:60])
def test_step_equals_gymnasiums(case: Case) -> None:
    found = follow(case, "float64")
    assert not found.too_large(TOLERANCE["float64"])
    assert found.contacts or not case.contacts
    assert found.ends or not case.ends


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reset_equals_gymnasiums_at_the_same_state(case: Case) -> None:
    """With contact forces of zero, since Gymnasium's reset does not compute them."""
    ours, reference = pair(case, "float64")
    observation, info = ours.reset(seed=5)
    place(reference, *np.split(ours.state_vector(), [reference.model.nq]))
    found = Comparison()
    found.add("observation", observation, reference._get_obs())
    found.add_info(info, reference._get_reset_info())
    assert not found.too_large(TOLERANCE["float64"])


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case.name == "Ant-v5" else pytest.mark.slow) for case in CASES]
)
def test_float32_is_near_gymnasium(case: Case) -> None:
    assert not follow(case, "float32").too_large(TOLERANCE["float32"])


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.name in ("Ant-v5", "InvertedDoublePendulum-v5")])
def test_backend_jax_equals_gymnasium(case: Case) -> None:
    assert not follow(case, "float64", "jax", 12).too_large(1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_backend_cuda_equals_gymnasium(case: Case, dtype: str) -> None:
    assert not follow(case, dtype, "cuda").too_large({"float64": 1e-6, "float32": 2e-3}[dtype])


@pytest.mark.parametrize("item", GYMNASIUMS, ids=lambda item: item.id)
def test_every_task_of_gymnasium_is_compared(item: Any) -> None:
    for cases in (CASES, OTHERS):
        assert item.id in {case.name for case in cases}
