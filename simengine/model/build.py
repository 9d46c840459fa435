"""The contents of the model table from a compiled MuJoCo model: arrays, sizes, options and initial state."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from simengine.model.actuators import actuator_table
from simengine.model.blocks import MOST_DENSE_DOFS, block_table, branch_sizes, joined_branches
from simengine.model.colliders import Census, collider_table
from simengine.model.distances import measured_geoms
from simengine.model.fluid import fluid_table
from simengine.model.frames import frame_table
from simengine.model.gravcomp import LIMITED, gravcomp_table
from simengine.model.hfields import geom_hfields
from simengine.model.lengths import length_table
from simengine.model.meshes import hull_table
from simengine.model.pair_types import PAIR_SLOTS, PAIR_TYPES
from simengine.model.pairs import POLYTOPE_WORDS, Candidate, can_lie, pair_table
from simengine.model.rounds import round_table
from simengine.model.rows import row_table
from simengine.model.sensors import sensor_table
from simengine.model.slopes import most_pieces, slope_table
from simengine.model.table import INT_OPTIONS, SIZES, TABLE, TABLE_BY_NAME, terms
from simengine.model.tendons import path_table

_DISABLE = mujoco.mjtDisableBit
_HFIELD = PAIR_TYPES.index("hfield")

_REACHES = ("geom_margin", "geom_gap", "pair_margin", "pair_gap")  # without any, contacts begin at distance 0
MOST_KEPT = 256
"""Room for contacts of searched pairs of a world that counting keeps for the narrowphase, which searches again for
those beyond; see `collision_distance`."""
MOST_KEPT_PRISMS = 64
"""The same for contacts with height fields, which are kept on the host."""
MOST_PRISMS = 128
"""Room for prisms of height fields that may touch in a world, which a GPU lists; see `prism_list`."""


def initial_state(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """State fields whose initial value is not zero, as after mj_resetData."""
    mocap = np.argsort(mj.body_mocapid)[mj.nbody - mj.nmocap :]
    poses = {"mocap_pos": mj.body_pos[mocap], "mocap_quat": mj.body_quat[mocap]}
    return {"qpos": mj.qpos0.copy(), "eq_active": mj.eq_active0.astype(np.int32), **poses}


def _levels(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    depth = np.zeros(mj.nbody, dtype=np.int32)
    for body in range(1, mj.nbody):
        depth[body] = depth[mj.body_parentid[body]] + 1
    order = np.argsort(depth[1:], kind="stable") + 1
    counts = np.bincount(depth[1:], minlength=1)[1:] if mj.nbody > 1 else np.zeros(0, dtype=np.int64)
    return np.concatenate(([0], np.cumsum(counts))), np.append(order, 0)


def _subtree_ends(mj: mujoco.MjModel) -> np.ndarray:
    last = np.arange(mj.nbody)
    for body in range(mj.nbody - 1, 0, -1):
        parent = mj.body_parentid[body]
        last[parent] = max(last[parent], last[body])
    return last


def build_arrays(mj: mujoco.MjModel, pairs: list[Candidate], census: Census | None) -> dict[str, np.ndarray]:
    """Copy MuJoCo's fields, add the derived ones, and apply the disable flags to them."""
    disabled = int(mj.opt.disableflags)
    values: dict[str, Any] = pair_table(mj, pairs) | block_table(mj, False)[0] | collider_table(mj, False)[0]
    values["level_adr"], values["level_body"] = _levels(mj)
    values["body_last"] = _subtree_ends(mj)
    values["root_body"] = 1 + np.flatnonzero(mj.body_parentid[1:] == 0)
    measured = measured_geoms(mj)
    touching = {g for c in pairs for g in c[:2]} if census is None else census.geoms
    flat = {g for c in pairs if can_lie(mj, c) for g in c[:2]}
    of_plane = {c.geom2 for c in pairs if mj.geom_type[c.geom1] == mujoco.mjtGeom.mjGEOM_PLANE}
    on_planes = of_plane if census is None else touching
    values |= hull_table(mj, touching | measured, flat, on_planes | measured)
    values |= length_table(mj) | path_table(mj) | actuator_table(mj) | sensor_table(mj)
    values |= slope_table(mj, values)
    values |= row_table(mj, values["cand_condim"], values["cand_geom1"], values["cand_geom2"])
    values["stat_meaninertia"] = mj.stat.meaninertia
    values |= fluid_table(mj) | gravcomp_table(mj) | frame_table(mj) | round_table(mj)
    values["geom_hfieldid"] = geom_hfields(mj)
    values["sweep_order"] = np.zeros((0, 0))
    for option in ("timestep", "gravity", "wind", "tolerance", "ls_tolerance", "noslip_tolerance", "impratio"):
        values[f"opt_{option}"] = getattr(mj.opt, option)
    values["opt_impratio"] = max(mj.opt.impratio, mujoco.mjMINVAL)  # as MuJoCo divides by it
    values["opt_leastref"] = 0.0 if disabled & int(_DISABLE.mjDSBL_REFSAFE) else 2.0 * mj.opt.timestep
    values["dof_treeid"] = np.zeros(mj.nv) if disabled & int(_DISABLE.mjDSBL_ISLAND) else mj.dof_treeid
    arrays = {}
    for field in TABLE:
        given = values[field.name] if field.name in values else getattr(mj, field.name)
        arrays[field.name] = np.array(given, dtype=np.int32 if field.kind == "int" else np.float64)
    if disabled & int(_DISABLE.mjDSBL_GRAVITY):
        arrays["opt_gravity"][:] = 0
    if disabled & int(_DISABLE.mjDSBL_SPRING):
        for name in ("jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness", "tendon_stiffnesspoly"):
            arrays[name][:] = 0
    if disabled & int(_DISABLE.mjDSBL_DAMPER):
        for name in ("dof_damping", "dof_dampingpoly", "tendon_damping", "tendon_dampingpoly"):
            arrays[name][:] = 0
    if disabled & int(_DISABLE.mjDSBL_CLAMPCTRL):
        arrays["actuator_ctrllimited"][:] = 0
    # gravity compensation clamps its sum with the actuator force itself
    arrays["jnt_actfrclimited"][arrays["jnt_gravcomp"] == LIMITED] = 0
    # where nothing acts, a range that does not contain zero would produce a force
    if disabled & int(_DISABLE.mjDSBL_ACTUATION) or not mj.nu:
        arrays["actuator_forcelimited"][:] = 0
        arrays["jnt_actfrclimited"][:] = 0
    return arrays


def typed(name: str, values: Any) -> np.ndarray:
    """The values of a table field in the field's dtype."""
    return np.array(values, dtype=np.int32 if TABLE_BY_NAME[name].kind == "int" else np.float64)


def _first_with_sizes() -> dict[str, tuple[str, int, int]]:
    found: dict[str, tuple[str, int, int]] = {}
    for field in TABLE:
        for axis, (size, more) in enumerate(terms(field.dims)):
            if size:
                found.setdefault(size, (field.name, axis, more))
    return found


_FIRST_WITH = _first_with_sizes()
"""For each size that a table field has, the first such field, the axis, and the number that is added to the size."""


def build_sizes(mj: mujoco.MjModel, arrays: dict[str, np.ndarray]) -> dict[str, int]:
    """Sizes of the table: as its arrays have them, and those that no array has."""
    derived = {
        "ngravcomp": int(np.count_nonzero(arrays["body_gravcomp"])),
        "ntree": int(arrays["dof_treeid"].max(initial=-1)) + 1,
        **block_table(mj, False)[1],
        **branch_sizes(mj, joined_branches(mj, arrays)),
        **collider_table(mj, False)[1],
        **search_sizes(arrays),
        "npiece": most_pieces(arrays),
    }
    for size, (name, axis, more) in _FIRST_WITH.items():
        derived.setdefault(size, arrays[name].shape[axis] - more)
    return {name: derived[name] if name in derived else int(getattr(mj, name)) for name in SIZES}


def search_sizes(arrays: dict[str, np.ndarray]) -> dict[str, int]:
    """Words of a list of near pairs, how many candidate pairs need a search, how many of their contacts and of those
    with height fields counting keeps, how many prisms are listed, and words of a polytope.

    Two near pairs share a word of a list, unless numbers of pairs or of contacts need more than 16 bits."""
    searched = arrays["cand_type"] == PAIR_TYPES.index("convex")
    number = int(np.count_nonzero(searched))
    slots = PAIR_SLOTS[PAIR_TYPES.index("convex")] * number
    of_pairs = np.bincount(arrays["slot_cand"], minlength=len(searched))[arrays["cand_type"] == _HFIELD]
    prisms = int(of_pairs.sum())
    most = MOST_PRISMS if (of_pairs == PAIR_SLOTS[_HFIELD]).any() else prisms  # pairs may have more prisms than slots
    pairs, contacts = len(searched), len(arrays["slot_cand"])
    return {
        "nnear": -(-pairs // 2) if max(pairs, contacts) < 2**16 else pairs,
        "nsearch": number,
        "nkept": min(MOST_KEPT, slots),
        "nkeptprism": min(MOST_KEPT_PRISMS, prisms),
        "nprism": min(MOST_PRISMS, most),
        "npolytope": POLYTOPE_WORDS if number else 0,
    }


def build_options(mj: mujoco.MjModel) -> dict[str, int]:
    """Options of the table, with the disable flags folded in."""
    disabled = int(mj.opt.disableflags)
    damped = bool((mj.dof_damping > 0).any() or mj.dof_dampingpoly.any()) and not disabled & int(_DISABLE.mjDSBL_DAMPER)
    overridden = mj.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    values = {
        "opt_iterations": int(mj.opt.iterations),
        "opt_ls_iterations": int(mj.opt.ls_iterations),
        "opt_eulerdamp": int(damped and not disabled & int(_DISABLE.mjDSBL_EULERDAMP)),
        "opt_solver": int(mj.opt.solver),
        "opt_warmstart": int(not disabled & int(_DISABLE.mjDSBL_WARMSTART)),
        "opt_actuation": int(not disabled & int(_DISABLE.mjDSBL_ACTUATION)),
        "opt_multiccd": int(not disabled & int(_DISABLE.mjDSBL_MULTICCD)),
        "opt_reach": int(any(np.any(getattr(mj, name)) for name in _REACHES) or overridden),
        "opt_cone": int(mj.opt.cone),
        "opt_noslip_iterations": int(mj.opt.noslip_iterations),
        "opt_midphase": int(not disabled & int(_DISABLE.mjDSBL_MIDPHASE)),
        "large_island": MOST_DENSE_DOFS,
    }
    return {name: values[name] for name in INT_OPTIONS}
