"""`ModelTable`: a compiled MuJoCo model reduced to the table the stages read."""

from __future__ import annotations

from copy import copy
from typing import Any

import mujoco
import numpy as np

from simengine.errors import UnsupportedModelError
from simengine.model.actuators import needs_general_actuation
from simengine.model.blocks import ON_A_CPU, ON_A_GPU, block_table, branch_sizes, joined_branches, worth_blocks
from simengine.model.build import build_arrays, build_options, build_sizes, initial_state, search_sizes, typed
from simengine.model.clusters import cluster_sizes
from simengine.model.codes import among
from simengine.model.colliders import MOST_LISTED, Census, collider_table, most_slots, take_census
from simengine.model.hfields import most_cells
from simengine.model.inertia import at_rest, has_small_far_bodies
from simengine.model.numbers import check_inertia, check_numbers, check_precision
from simengine.model.pair_types import HEAVY_PAIRS, PAIR_TYPES
from simengine.model.pairs import Parameters, face_capacity, geom_pairs, pair_table, unsupported_pairs
from simengine.model.rows import needs_general_rows, row_table
from simengine.model.sensors import measured_in, sensor_names
from simengine.model.springs import has_polynomials
from simengine.model.support import INTEGRATORS, unsupported_features
from simengine.model.sweeps import sweep_table
from simengine.model.table import TABLE, resolve

_MOST_IN_REGISTERS = 64
_MOST_IN_JAX = 20000  # candidate pairs: each has slots for its contacts, whether it touches or not
_DIMS = tuple(dict.fromkeys(field.dims for field in TABLE))
"""The different dims of table fields."""

_SOLVERS = {
    int(mujoco.mjtSolver.mjSOL_PGS): "solve_pgs",
    int(mujoco.mjtSolver.mjSOL_CG): "solve_cg",
    int(mujoco.mjtSolver.mjSOL_NEWTON): "solve_newton_general",
}


class ModelTable:
    """A model as the engine computes with it: the table that stages read, and what kind of model it is.

    Its real and integer fields may have other shapes than MuJoCo's fields of the same name: users see `Model`.

    Attributes:
        name: the model's name, or "unnamed".
        mj: the compiled `mujoco.MjModel` (float64), which also serves for rendering and as a reference.
        sizes: nq, nv, ... by name; each is an attribute too.
        arrays: the model table, by field name (see `simengine.model.table.TABLE`); each is an attribute too. Integer
            fields are int32, real ones float64; treat them as read-only.
        opt_integrator: "euler", "euler_general" (if dampers are not linear), "rk4", "implicit" or "implicitfast".
        has_convex: whether some pair type uses GJK and EPA.
        face_corners: how many corners of two faces that lie flat on each other the kernels must be able to hold.
        finds_pairs: whether pairs of geoms are found in every step; then the table has no candidate pairs. See
            `simengine.model.colliders`.
        pair_codes: indices into PAIR_TYPES of the pairs that can touch.
        examples: geom1, geom2 and type of the candidate pairs, or of some of each kind if pairs are found.
        has_islands: whether the world is solved island by island; see `simengine.model.blocks`.
        solver: stage that solves for the constraint forces: "solve_newton_unilateral" (Newton's method for rows that
            only push), "solve_newton_general" (for rows of every type), "solve_cg" or "solve_pgs".
        has_adhesion: whether there are adhesion actuators.
        has_fluid: whether a fluid acts on the bodies.
        sensor_names: types of the sensors (mjtSensor without its prefix), empty for those that a flag disables.
        general_position: whether positions and collision need the kernels for general models.
        general_smooth: whether the smooth forces need the kernels for general models.
        has_site_actuators: whether some actuator acts at sites.
        initial: state fields of one world whose initial value is not zero, by name.
        has_general_rows: whether a state can have other rows than limits and frictionless or pyramidal contacts of
            dimension 3; such models need a solver for every type of row.
        npair_max, ncon_max, nefc_max: most pairs, contacts and constraint rows that a state can have.
    """

    def __init__(self, mj: mujoco.MjModel):
        name = mj.names[: mj.names.find(b"\0")].decode() or "unnamed"
        check_numbers(name, mj)
        rest = at_rest(mj)
        check_inertia(name, mj, rest)
        by_islands = worth_blocks(mj)
        override = mj.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
        many = by_islands and not override and mj.ngeom * (mj.ngeom - 1) // 2 + mj.npair > MOST_LISTED
        census = take_census(mj) if many else None
        census = census if census and census.number > MOST_LISTED else None
        pairs = census.examples if census else geom_pairs(mj)
        features = unsupported_features(mj) + unsupported_pairs(mj, pairs)
        if features:
            raise UnsupportedModelError(name, features)
        self.name = name
        self.mj = mj
        self.opt_integrator: str = INTEGRATORS[int(mj.opt.integrator)]
        if self.opt_integrator == "euler" and mj.dof_dampingpoly.any():
            self.opt_integrator = "euler_general"
        parameters = Parameters(mj)
        self.has_general_rows = needs_general_rows(mj, [parameters.of(pair).condim for pair in pairs])
        lean = mj.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON and not self.has_general_rows
        self.solver: str = "solve_newton_unilateral" if lean else _SOLVERS[int(mj.opt.solver)]
        self.arrays = build_arrays(mj, pairs, census)
        self.sizes = build_sizes(mj, self.arrays)
        self.options = build_options(mj)
        self.initial = initial_state(mj)
        self.pair_codes: tuple[int, ...] = tuple(sorted(set(self.arrays["cand_type"].tolist())))
        self._note_most(census)
        self.arrays["sweep_order"] = sweep_table(mj, self.nefc_max)
        self.sizes["nsweep"], self.sizes["nsweepword"] = self.arrays["sweep_order"].shape
        searched = {PAIR_TYPES.index(name) for name in ("convex", "hfield")}
        self.has_convex: bool = not searched.isdisjoint(self.pair_codes)
        self.counts_near: bool = not searched.issuperset(self.pair_codes)
        self.face_corners = face_capacity(mj, pairs)
        self.has_fluid = bool(self.arrays["opt_density"] > 0 or self.arrays["opt_viscosity"] > 0)
        heavy = any(HEAVY_PAIRS[code] for code in self.pair_codes)
        self.sensor_names = sensor_names(self.arrays["sensor_type"])
        self.has_adhesion = bool((mj.actuator_trntype == mujoco.mjtTrn.mjTRN_BODY).any())
        at_sites = among(mj.actuator_trntype, mujoco.mjtTrn.mjTRN_SITE, mujoco.mjtTrn.mjTRN_SLIDERCRANK)
        self.has_site_actuators = bool(at_sites.any())
        self.general_smooth = bool(
            needs_general_actuation(mj)
            or self.npath
            or self.ngravcomp
            or (self.has_fluid and self.arrays["body_fluid"].any())
            or self.opt_integrator in ("implicit", "implicitfast")
            or has_small_far_bodies(mj, rest)
            or has_polynomials(mj)
            or mj.tendon_armature.any()
        )
        self.general_position = bool(heavy or self.neq or self.nfriction or self.general_smooth)
        self.examples = {name: self.arrays[f"cand_{name}"] for name in ("geom1", "geom2", "type")}
        self.finds_pairs = False
        self._split(by_islands)
        self._split_was_chosen = self._dense_was_chosen = False
        if census:
            self.find_pairs(True)
        self._check_shapes()

    def __getattr__(self, name: str) -> Any:
        for source in ("arrays", "sizes", "options"):
            values = self.__dict__.get(source, {})
            if name in values:
                return values[name]
        raise AttributeError(f"the model table has no field {name!r}; see simengine.model.table.TABLE")

    def check_precision(self, dtype: str) -> None:
        """Raise ModelError if a precision, "float32" or "float64", cannot hold the model's numbers."""
        check_precision(self.name, self.mj, self.arrays, dtype)

    @property
    def damps_single_dofs(self) -> bool:
        """Whether the derivative of the smooth forces by the velocity is diagonal but for Coriolis forces.

        Each damper and actuator then acts on one dof. It says so of models whose matrices are in registers of a GPU.
        """
        single = bool((np.diff(self.arrays["moment_rowadr"]) <= 1).all())
        damped = self.ntendon or self.has_fluid or self.has_adhesion
        return single and not damped and not self.has_islands and self.nv <= _MOST_IN_REGISTERS

    def senses(self, part: str) -> bool:
        """Whether a sensor is measured in a part of an evaluation, a key of `SENSORS`."""
        return bool(measured_in(self.mj, part).any())

    def cells_under(self, field_geom: int, geom: int, reach: float) -> tuple[int, int]:
        """The most rows and columns of cells of a height field that another geom can lie over; see `most_cells`."""
        return most_cells(self.mj, field_geom, geom, reach)

    def solve_by_islands(self, wanted: bool) -> None:
        """Choose the solution island by island, or as one dense problem; before the model is simulated."""
        self._split(wanted)
        self._split_was_chosen = True

    def _split(self, wanted: bool) -> None:
        self.has_islands = wanted
        if self.finds_pairs and not wanted:
            self.find_pairs(False)
        arrays, sizes = block_table(self.mj, wanted)
        self.arrays |= arrays
        self.sizes |= sizes

    def find_pairs(self, wanted: bool) -> None:
        """Choose to find pairs of geoms anew in every step, or to list all candidates; before the model is simulated.

        Only worlds that are solved island by island can have their pairs found.
        """
        if wanted and not self.has_islands:
            raise ValueError(
                f"model {self.name!r} is solved as one problem, so its pairs cannot be found in every step"
            )
        pairs = [] if wanted else geom_pairs(self.mj)
        arrays, sizes = collider_table(self.mj, wanted)
        table = pair_table(self.mj, pairs)
        table["cand_rows"] = row_table(self.mj, *(table[f"cand_{name}"] for name in ("condim", "geom1", "geom2")))[
            "cand_rows"
        ]
        self.arrays |= arrays | {name: typed(name, values) for name, values in table.items()}
        self.sizes |= (
            sizes
            | {"ncand": len(pairs), "nslot": len(table["slot_cand"])}
            | {"nspan": len(table["span_run"]), "nrun": len(table["run_geom"])}
            | cluster_sizes(table)
            | search_sizes(table)
        )
        one_branch = list(range(-1, self.mj.nv - 1))
        self.sizes |= branch_sizes(self.mj, one_branch if wanted else joined_branches(self.mj, self.arrays))
        self.finds_pairs = wanted
        if not wanted:
            self._note_most(None)

    def _note_most(self, census: Census | None) -> None:
        """The most pairs, contacts and rows of a state; examples stand in the table where there is a census."""
        slots = np.bincount(self.slot_cand, minlength=self.ncand) if census is None else most_slots(census, self.mj)
        self.npair_max = self.ncand if census is None else census.number
        self.ncon_max = int(slots.sum())
        rows = int((self.cand_rows * slots).sum())
        self.nefc_max = int(self.eq_rows.sum() + self.nfriction + 2 * self.nlimit) + rows

    def with_candidates(self) -> ModelTable:
        """The model with a table of all candidate pairs, which the JAX forms of the stages need.

        Raises:
            UnsupportedModelError: there are too many.
        """
        if not self.finds_pairs:
            return self
        if self.npair_max > _MOST_IN_JAX:
            feature = f"{self.npair_max} pairs of geoms in JAX (at most {_MOST_IN_JAX})"
            raise UnsupportedModelError(self.name, [feature])
        other = copy(self)
        other.arrays, other.sizes = dict(self.arrays), dict(self.sizes)
        other.find_pairs(False)
        return other

    def on_a_cpu(self) -> ModelTable:
        """The model in the form that costs a CPU least: smaller worlds, too, are solved island by island there."""
        return self._split_on(ON_A_CPU)

    def on_a_gpu(self) -> ModelTable:
        """The model in the form that costs a GPU least: smaller worlds of free bodies, too, are solved by islands."""
        return self._split_on(ON_A_GPU)

    def _split_on(self, where: str) -> ModelTable:
        """The model island by island, where that is worth it. What `solve_by_islands` chose is kept."""
        if self.has_islands or self._split_was_chosen or not worth_blocks(self.mj, where):
            return self
        other = copy(self)
        other.arrays, other.sizes = dict(self.arrays), dict(self.sizes)
        other._split(True)
        return other

    def as_one_problem(self) -> ModelTable:
        """The model as one problem. What `solve_by_islands` chose is kept, and islands whose pairs are found anew."""
        if not self.has_islands or self._split_was_chosen or self.finds_pairs:
            return self
        other = copy(self)
        other.arrays, other.sizes = dict(self.arrays), dict(self.sizes)
        other._split(False)
        return other

    def solve_dense_up_to(self, dofs: int) -> None:
        """Choose the most dofs of an island that is solved as a dense problem; before the model is simulated."""
        self.options["large_island"] = dofs
        self._dense_was_chosen = True

    def with_dense_islands(self, dofs: int) -> ModelTable:
        """The model with dense problems for islands of up to so many dofs. What `solve_dense_up_to` chose is kept."""
        if self._dense_was_chosen:
            return self
        other = copy(self)
        other.options = self.options | {"large_island": dofs}
        return other

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={self.sizes[name]}" for name in ("nq", "nv", "nu", "nbody", "ncand"))
        return f"ModelTable({self.name!r}, {sizes})"

    def _check_shapes(self) -> None:
        expected_of = {dims: resolve(dims, self.sizes) for dims in _DIMS}
        for field in TABLE:
            expected, actual = expected_of[field.dims], self.arrays[field.name].shape
            if actual != expected:
                raise AssertionError(f"model table field {field.name} has shape {actual}, expected {expected}")
