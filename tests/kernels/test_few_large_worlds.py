"""Few worlds along branches have other kernels on a GPU than many, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import load_model
from simengine.engines.list_engine import ListEngine
from simengine.model import Model
from simengine.plan import step_plan
from simengine.plan.selection import Selection
from simengine.state.fields import INTEGRATION_STATE
from tests.gpu.test_branch_worlds import ARMS, star
from tests.helpers.cuda_on_host.backend import FiberBackend

OF_FEW = {"inertia_by_block", "only_euler_factor_branches", "euler_factored_branches"}


def driven_star() -> Model:
    """A star whose arms are pulled by actuators on paths with springs."""
    text = star('cone="elliptic"')
    for arm in range(ARMS):
        for name, joint in (("near", f"j{arm}_0"), ("far", f"j{arm}_7")):
            at = text.index(f'<joint name="{joint}"')
            text = f'{text[:at]}<site name="{name}{arm}" pos="0.01 0 0.02"/>{text[at:]}'
    paths = "".join(
        f'<spatial name="t{arm}" springlength="0.1" stiffness="3" damping="0.2">'
        f'<site site="near{arm}"/><site site="far{arm}"/></spatial>'
        for arm in range(ARMS)
    )
    pulls = "".join(f'<general tendon="t{arm}" gainprm="2"/>' for arm in range(ARMS))
    more = f"<tendon>{paths}</tendon><actuator>{pulls}</actuator></mujoco>"
    model = load_model(text.replace("</mujoco>", more))
    model.table.solve_by_islands(False)
    return model


def stepped(model: Model) -> tuple[list[bytes], set[str]]:
    """The state after two steps of two worlds, and the kernels that made them."""
    rng, worlds = np.random.default_rng(0), 2
    FiberBackend.used.clear()
    engine = ListEngine([(model.table, worlds)], FiberBackend(), "serial", "float32", 1, "ahead", {})
    qpos = np.tile(model.qpos0, (worlds, 1))
    qpos[:, 2] = 0.05  # arms touch the floor and each other
    engine.put(0, "qpos", None, qpos)
    engine.put(0, "qvel", None, rng.normal(size=(worlds, model.nv)))
    engine.put(0, "ctrl", None, rng.normal(size=(worlds, model.nu)))
    engine.step(2, frozenset(), {})
    assert engine.counts(0)["nefc"] > 100
    return [np.asarray(engine.get(0, name)).tobytes() for name in INTEGRATION_STATE], set(FiberBackend.used)


@pytest.mark.parametrize("driven_by_block", [True, False])
def test_few_worlds_have_the_bits_of_many(monkeypatch: pytest.MonkeyPatch, driven_by_block: bool) -> None:
    if driven_by_block:
        monkeypatch.setattr(step_plan, "FEWEST_ENTRIES_OF_A_BLOCK", 1)
    few, used = stepped(driven_star())
    assert used >= OF_FEW
    assert ("forces_beside" in used) == driven_by_block
    for name in ("factors_beside_solver", "moves_in_blocks"):
        monkeypatch.setattr(Selection, name, property(lambda self: False))
    many, used = stepped(driven_star())
    assert not used & {*OF_FEW, "forces_beside"}
    assert few == many
