"""Contacts and constraint rows of one world, as users see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Contacts(NamedTuple):
    """Contacts of one world, in MuJoCo's order.

    Attributes:
        dist: distance, negative for penetration, (ncon,) [m].
        pos: midpoint between the surfaces, world frame, (ncon, 3) [m].
        frame: contact frames, (ncon, 3, 3). The rows are the normal from geom1 to geom2 and two tangents, world frame.
        geom1, geom2: geom ids, (ncon,).
        dim: contact dimension, (ncon,).
        efc_address: first constraint row, or -1 for a contact in the gap, which has no rows, (ncon,).
    """

    dist: np.ndarray
    pos: np.ndarray
    frame: np.ndarray
    geom1: np.ndarray
    geom2: np.ndarray
    dim: np.ndarray
    efc_address: np.ndarray

    @property
    def ncon(self) -> int:
        """Number of contacts."""
        return len(self.dist)


class Constraints(NamedTuple):
    """Constraint rows of one world, in MuJoCo's order: equality constraints, friction, limits, contacts.

    Attributes:
        J: Jacobian, (nefc, nv).
        pos, margin: constraint position and the margin at which it acts, (nefc,) [m, rad].
        D: constraint mass, (nefc,).
        aref: reference acceleration, (nefc,).
        force: constraint force, (nefc,).
        type: MuJoCo's mjtConstraint, (nefc,).
        id: index of the equality constraint, dof, joint, tendon or contact of the row, (nefc,).
        frictionloss: largest force of a friction row, 0 for other rows, (nefc,) [N, N m].
    """

    J: np.ndarray
    pos: np.ndarray
    margin: np.ndarray
    D: np.ndarray
    aref: np.ndarray
    force: np.ndarray
    type: np.ndarray
    id: np.ndarray
    frictionloss: np.ndarray

    @property
    def nefc(self) -> int:
        """Number of rows."""
        return len(self.pos)
