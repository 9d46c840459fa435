"""Where the engine's solver ends, which contacts the engine lists, and where its steps lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from simengine.check.fields import STEPPED
from simengine.check.oracle import Evaluation
from simengine.check.order import marks
from simengine.check.states import STATE_ARRAYS, as_numpy
from simengine.model.model import Model
from simengine.simulation import Simulation


class Solved(NamedTuple):
    """The end point of the solver in one state, in float64.

    Attributes:
        qacc, qacc_smooth: (nv,) accelerations with and without constraint forces [m/s^2, rad/s^2].
        qfrc_constraint: (nv,) generalised constraint forces [N, N m].
        efc_J: (nefc, nv) constraint Jacobian.
        efc_D, efc_aref: (nefc,) constraint masses and reference accelerations.
        efc_force: (nefc,) forces of the rows [N, N m].
    """

    qacc: np.ndarray
    qacc_smooth: np.ndarray
    qfrc_constraint: np.ndarray
    efc_J: np.ndarray
    efc_D: np.ndarray
    efc_aref: np.ndarray
    efc_force: np.ndarray


def solve(
    model: Model,
    evaluations: Sequence[Evaluation],
    backend: str,
    dtype: str,
    warm: Sequence[np.ndarray] | None = None,
) -> list[Solved]:
    """The engine's solutions.

    Args:
        model: the model.
        evaluations: at least one state.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
        warm: (nv,) the acceleration from which the solver starts in each state, if it does not start from zero.
    """
    sim = _evaluated(model, evaluations, backend, dtype, warm)
    fields = [as_numpy(sim.field(name)) for name in ("qacc", "qacc_smooth", "qfrc_constraint")]
    found = []
    for world in range(len(evaluations)):
        rows = sim.constraints(world)
        arrays = (*(field[world] for field in fields), *map(as_numpy, (rows.J, rows.D, rows.aref, rows.force)))
        found.append(Solved(*(np.asarray(array, np.float64) for array in arrays)))
    sim.close()
    return found


class Listed(NamedTuple):
    """The contacts of one state.

    Attributes:
        geoms: geom pairs.
        dist: (ncon,) distances [m], in float64 as pos and frame.
        pos: (ncon, 3) points [m].
        frame: (ncon, 3, 3) axes in rows, the normal first.
    """

    geoms: list[tuple[int, int]]
    dist: np.ndarray
    pos: np.ndarray
    frame: np.ndarray

    @property
    def marks(self) -> np.ndarray:
        """(ncon, 7) what tells them apart; see `simengine.check.order.marks`."""
        return marks(self.dist, self.pos, self.frame)


def contacts(model: Model, evaluations: Sequence[Evaluation], backend: str, dtype: str) -> list[Listed]:
    """The engine's contacts; arguments as for `solve`."""
    with _evaluated(model, evaluations, backend, dtype) as sim:
        return [_listed(sim.contacts(world)) for world in range(len(evaluations))]


def stepped(
    model: Model, starts: Sequence[Mapping[str, np.ndarray]], backend: str, dtype: str
) -> dict[str, np.ndarray]:
    """The engine's states after steps, by the names of `STEPPED`, (n, ...).

    Args:
        model: the model.
        starts: at least one state before a step, by MuJoCo's names, with `qacc_warmstart`.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    with Simulation(model, num_worlds=len(starts), backend=backend, dtype=dtype, on_nonfinite="freeze") as sim:
        sim.set_state(**{name: np.array([start[name] for start in starts]) for name in starts[0]})
        sim.step()
        return {field.name: as_numpy(sim.field(field.name)).copy() for field in STEPPED}


def _listed(found: Any) -> Listed:
    """The contacts of a world, as `Simulation.contacts` gives them."""
    dist, pos, frame = (as_numpy(getattr(found, name)).astype(np.float64) for name in ("dist", "pos", "frame"))
    pairs = zip(found.geom1.tolist(), found.geom2.tolist(), strict=True)
    return Listed(list(pairs), dist, pos.reshape(-1, 3), frame.reshape(-1, 3, 3))


def _evaluated(
    model: Model,
    evaluations: Sequence[Evaluation],
    backend: str,
    dtype: str,
    warm: Sequence[np.ndarray] | None = None,
) -> Simulation:
    sim = Simulation(model, num_worlds=len(evaluations), backend=backend, dtype=dtype, on_nonfinite="freeze")
    sim.set_state(**{name: np.array([getattr(e.state, name) for e in evaluations]) for name in STATE_ARRAYS})
    if warm is not None:
        sim.set_state(qacc_warmstart=np.array(warm))
    sim.forward()
    return sim
