"""Rounds in which sums along the branches of trees are found."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.model.rounds import round_table


def trees(rng: np.random.Generator, deep: int) -> str:
    """Bodies with up to two children each, in up to `deep` levels."""
    if not deep:
        return ""
    return "".join(f"<body><geom size='1'/>{trees(rng, deep - 1)}</body>" for _ in range(rng.integers(0, 3)))


@pytest.mark.parametrize("seed", range(20))
def test_a_body_gets_all_above_it_while_nobody_writes_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    xml = f"<mujoco><worldbody>{trees(rng, seed)}</worldbody></mujoco>" if seed < 8 else chain(seed)
    mj = mujoco.MjModel.from_xml_string(xml)
    table, found = round_table(mj), np.arange(mj.nbody) ** 2
    wanted = found.copy()
    for body in range(1, mj.nbody):
        wanted[body] += wanted[mj.body_parentid[body]]
    rounds = len(table["round_adr"]) - 1
    for begin, end in zip(table["round_adr"][:-1], table["round_adr"][1:], strict=True):
        bodies, above = table["round_body"][begin:end], table["round_base"][begin:end]
        assert set(bodies).isdisjoint(above)
        assert len(set(bodies)) == len(bodies)
        found[bodies] += found[above]
    np.testing.assert_array_equal(found, wanted)
    if seed >= 8:
        assert rounds == (seed - 1).bit_length()


def chain(length: int) -> str:
    """A body for each level."""
    return f"<mujoco><worldbody>{'<body>' * length}<geom size='1'/>{'</body>' * length}</worldbody></mujoco>"
