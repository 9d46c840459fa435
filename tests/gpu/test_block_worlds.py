"""Worlds of several trees of which each has a block of the inertia in a GPU's registers."""

from __future__ import annotations

import pytest

from simengine import check_model, load_model
from tests.gpu.compare import cuda_only


def chains(number: int, links: int, option: str) -> str:
    """A model of chains of capsules with a free first body, side by side above the floor, and a box beside them."""
    bodies = []
    for c in range(number):
        inner = ""
        for k in range(links):
            inner = (
                f'<body pos="0 0 0.12"><joint axis="{k % 2} {1 - k % 2} 0" damping="{0.05 * (k + 1)}" armature="0.05"/>'
                f'<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.1"/>{inner}</body>'
            )
        bodies.append(f'<body pos="{0.3 * c} 0 0.1"><freejoint/><geom type="sphere" size="0.05"/>{inner}</body>')
    return (
        f"<mujoco><option {option}/><worldbody><geom type='plane' size='9 9 1'/>{''.join(bodies)}"
        '<body pos="0 0.5 0.2"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>'
    )


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("option", ["", 'integrator="implicitfast"', 'solver="CG" iterations="1000" tolerance="1e-12"'])
def test_blocks_of_as_many_dofs_as_a_warp_has_lanes_agree_with_mujoco(backend: str, option: str, dtype: str) -> None:
    """Blocks of 20 and of six dofs, and blocks of 34, which no registers hold."""
    for links, number in ((14, 4), (28, 2)):
        model = load_model(chains(number, links, option))
        assert model.table.has_islands
        report = check_model(model, backend=backend, dtype=dtype, num_states=20, num_steps=20)
        assert report.passed, report.verdict()


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_symmetric_matrix_of_one_tree_agrees_with_mujoco(backend: str, dtype: str) -> None:
    for links in (2, 9, 20):
        text = chains(1, links, 'integrator="implicitfast"')
        report = check_model(load_model(text), backend=backend, dtype=dtype, num_states=20, num_steps=20)
        assert report.passed, report.verdict()
