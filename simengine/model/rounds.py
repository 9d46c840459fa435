"""Rounds in which a sum or a product along all branches of the trees is found, for lanes that share the bodies.

Body by body a chain of n bodies takes n steps, each of which waits for the one before. In rounds it takes log2(n). Let
the depth of a child of the world be 0. Before round r, a body has what the bodies of its block of 2^r depths make on
the way to it. Round r adds to each body whose depth has bit r what the last body above its block has, which lacks that
bit: so no body is read while it is written.
"""

from __future__ import annotations

import mujoco
import numpy as np


def round_table(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The bodies of each round, and the body above that each of them adds."""
    depth = np.full(mj.nbody, -1)
    for body in range(1, mj.nbody):
        depth[body] = depth[mj.body_parentid[body]] + 1
    held, base, first = list[int](), list[int](), [0]
    above = np.array(mj.body_parentid)  # of a body, the last one above its block of depths
    for r in range(int(depth.max(initial=0)).bit_length()):
        bodies = np.flatnonzero((depth > 0) & (depth >> r & 1 == 1))
        held += bodies.tolist()
        base += above[bodies].tolist()
        first.append(len(held))
        above[bodies] = above[above[bodies]]
    return {"round_adr": np.array(first), "round_body": np.array(held, int), "round_base": np.array(base, int)}
