"""Which models and states can be compared with MuJoCo, and to how many digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

import mujoco
import numpy as np

from simengine.check.fields import AFTER_ROWS
from simengine.check.oracle import Evaluation
from simengine.check.solids import mesh_hull
from simengine.check.states import STATE_ARRAYS, Sampler

_CG_SLACK = 20.0  # conjugate gradients stop where the cost falls no more, which is at half the digits of the solution
# Elliptic PGS cut off at 100 sweeps was off by 2.4e-5 at most in three of 120 models, by 8e-7 after 1000 sweeps.
_PGS_SLACK = 50.0
_FLOAT32_SLACK = 5.0
# Errors of solved equations in units of condition times rounding: the inertia matrix is off by some units, since it has
# sums along chains.
_OF_CONDITION = 16.0
_FASTEST, _STIFFEST = 1e6, 3e3  # qacc and, in float32, efc_aref beyond which a state is left out
_SINGULAR = {"float64": 1e8, "float32": 2e5}  # condition of the inertia matrix beyond which it is
_HEAVIEST = 1e15  # inertia beyond which it is, in float32
_LARGEST_INERTIA_ERROR = 2e-7  # relative, of the least inertia of a dof, beyond which it is
_LARGEST_SPIN_ERROR = 5e-5  # relative to bias forces: their tolerance in float32
# Relative to accelerations: four times their tolerance in float32, since it is the most that rounding may make of them.
_LARGEST_SPIN_ACCELERATION = 1e-3
# Of the largest acceleration, that rounding of constraint forces in float32 may make, beyond which it is.
_LARGEST_FORCE_ACCELERATION = 0.25
_HARDEST = {"float64": 1e8, "float32": 1e5}  # efc_D beyond which it is
_FARTHEST = 1e6  # [m] of a com, beyond which it is, in float32: that holds its place to a tenth of a metre
_PLACES = ("xpos", "xipos", "xanchor", "geom_xpos", "site_xpos")
_IDLE = 1e-10  # acceleration per unit force below which an actuator moves nothing
_LARGEST = 1e3  # [m] of a geom beyond which a millionth of its size, to which the engine searches, is a millimetre
_REACH = 1.0  # [m] by which moved geoms may leave the boxes around them at most
_BY_EDGES = 10  # vertices from which on MuJoCo searches along the edges of a hull, and not all vertices of the mesh
_FLAT = 1e-6  # [m] by which a corner may be above a face
_MOST_DOFS = 60  # larger models take too long
_MOST_PRODUCTS, _PROBES = 2.5e5, 8  # of rows with rows in a step, beyond which sweeps take too long; states that tell


def without_comparison(mj: mujoco.MjModel) -> str:
    """Why a model cannot be compared; empty if it can."""
    if mj.nv == 0 or mj.nv > _MOST_DOFS:
        return "it has no dofs" if mj.nv == 0 else f"it has more than {_MOST_DOFS} dofs"
    if mj.opt.timestep < mujoco.mjMINVAL:
        return "its timestep is zero"
    rigid = _rigid_bodies(mj)
    kinds, site = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)), int(mujoco.mjtObj.mjOBJ_SITE)
    for kind, objtype, one, two in zip(mj.eq_type, mj.eq_objtype, mj.eq_obj1id, mj.eq_obj2id, strict=True):
        bodies = mj.site_bodyid[[one, two]] if int(objtype) == site else np.array([one, two])
        if int(kind) not in kinds:
            continue
        if len(set(rigid[bodies].tolist())) == 1:
            return "an equality constraint holds a rigid body to itself, and MuJoCo drops rows that are zero by chance"
        first, second = (_sliding_after_turning(mj, int(body)) for body in bodies)
        if first != second:
            return "a slide follows a ball joint, and MuJoCo's rate of a point's Jacobian is off by its velocity"
    pairs = rigid[mj.geom_bodyid[np.stack((mj.pair_geom1, mj.pair_geom2))]]
    if (pairs[0] == pairs[1]).any():
        return "an explicit pair is in a rigid body or moves with no dof, and MuJoCo's adhesion counts no such contact"
    if np.abs(mj.geom_size[mj.geom_type != mujoco.mjtGeom.mjGEOM_PLANE]).max(initial=0.0) > _LARGEST:
        return "a geom is larger than a kilometre, and searches are exact to a part of its size"
    if _reaches_inward(mj):
        return "a margin plus gap is negative, by which MuJoCo's search of convex shapes shifts their distance"
    if _has_corners_beyond_its_hull(mj):
        return "a hull lacks corners of a small mesh, all of which MuJoCo searches"
    if _has_slides_along_another(mj):
        return "two slides of a body are not orthogonal, and MuJoCo takes them for orthogonal"
    if _has_rigid_path(mj):
        return "a path lies in a rigid body, and MuJoCo drops rows that are zero"
    if _has_idle_muscle(mj):
        return "a muscle moves nothing, and its force is its scale over the rounding of zero"
    return ""


def too_many_sweeps(mj: mujoco.MjModel) -> str:
    """Why MuJoCo takes minutes to let a model fall; empty if it does not. A sweep of PGS visits all pairs of rows."""
    if mj.opt.solver != mujoco.mjtSolver.mjSOL_PGS:
        return ""
    data, sampler, products = mujoco.MjData(mj), Sampler(mj, 0), 0.0
    for _ in range(_PROBES):
        data.qpos[:] = sampler.random_qpos()
        mujoco.mj_fwdPosition(mj, data)
        products += data.nefc**2 / _PROBES
    stages = 4 if mj.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4 else 1
    return "PGS has too many rows, and MuJoCo takes minutes" if stages * products > _MOST_PRODUCTS else ""


def _reaches_inward(mj: mujoco.MjModel) -> bool:
    """Whether contacts of some geom or pair are listed only where shapes overlap by a margin plus gap below zero."""
    reach = (*(mj.geom_margin + mj.geom_gap), *(mj.pair_margin + mj.pair_gap))
    return min(reach, default=0.0) < 0


def _has_corners_beyond_its_hull(mj: mujoco.MjModel) -> bool:
    """Whether `maxhullvert` leaves corners out of the hull of a mesh that is too small for MuJoCo's search by edges."""
    for mesh in np.flatnonzero((np.asarray(mj.mesh_graphadr) >= 0) & (mj.mesh_vertnum < _BY_EDGES)).tolist():
        hull = mesh_hull(mj, mesh, np.zeros(3), np.eye(3))  # its corners are all vertices
        faces = np.einsum("ij,ij->i", hull.normals, hull.on)
        if (hull.normals @ hull.corners.T > faces[:, None] + _FLAT).any():
            return True
    return False


def _has_slides_along_another(mj: mujoco.MjModel) -> bool:
    """Whether MuJoCo takes the inertia matrix of some body for diagonal although two of its slides are parallel."""
    for body in np.flatnonzero(np.asarray(mj.body_simple) == 2).tolist():
        axes = mj.jnt_axis[mj.body_jntadr[body] :][: mj.body_jntnum[body]]
        if np.abs(axes @ axes.T - np.diag(np.sum(axes * axes, axis=1))).max() > mujoco.mjMINVAL:
            return True
    return False


def _sliding_after_turning(mj: mujoco.MjModel, body: int) -> set[int]:
    """Of a body and those that move it, the ones with a ball joint before another joint, which can only be a slide.

    For the rate of a point's Jacobian, MuJoCo turns the axes of a ball joint about a centre that moves with all joints
    of its body. Those after the ball joint do not move it. Finite differences of the Jacobian are the engine's rate.
    """
    found = set()
    while body > 0:
        first, number = int(mj.body_jntadr[body]), int(mj.body_jntnum[body])
        if number > 1 and (mj.jnt_type[first : first + number - 1] == mujoco.mjtJoint.mjJNT_BALL).any():
            found.add(body)
        body = int(mj.body_parentid[body])
    return found


def _rigid_bodies(mj: mujoco.MjModel) -> np.ndarray:
    """Number of the rigid body of each body, (nbody,): 0 for those that no dof moves, which mocap bodies are, too."""
    return np.where(np.asarray(mj.body_treeid) < 0, 0, mj.body_weldid)


def _has_rigid_path(mj: mujoco.MjModel) -> bool:
    """Whether the sites of some tendon belong to one rigid body: where it touches no geom, nothing moves it."""
    rigid = _rigid_bodies(mj)
    site = int(mujoco.mjtWrap.mjWRAP_SITE)
    for first, number in zip(mj.tendon_adr.tolist(), mj.tendon_num.tolist(), strict=True):
        path = slice(first, first + number)
        sites = mj.wrap_objid[path][np.asarray(mj.wrap_type[path]) == site]
        if len(sites) and len(set(rigid[mj.site_bodyid[sites]].tolist())) == 1:
            return True
    return False


def _has_idle_muscle(mj: mujoco.MjModel) -> bool:
    """Whether the peak force of some muscle is its scale over an acceleration that is zero but for rounding, as that of
    a crank whose sites belong to one rigid body."""
    gain, bias = int(mujoco.mjtGain.mjGAIN_MUSCLE), int(mujoco.mjtBias.mjBIAS_MUSCLE)
    scaled = (np.asarray(mj.actuator_gaintype) == gain) & (mj.actuator_gainprm[:, 2] < 0)
    scaled |= (np.asarray(mj.actuator_biastype) == bias) & (mj.actuator_biasprm[:, 2] < 0)
    return bool((scaled & (np.asarray(mj.actuator_acc0) < _IDLE)).any())


def nudged(mj: mujoco.MjModel, size: float, turn: int) -> mujoco.MjModel:
    """A copy whose bodies and geoms are moved by up to `size` [m], elsewhere in each turn, so that no distances are
    equal and no faces parallel."""
    moved, rng = copy(mj), np.random.default_rng(turn)
    moved.body_pos[1:] += size * rng.uniform(-1, 1, moved.body_pos[1:].shape)
    moved.body_quat[1:] += size * rng.uniform(-1, 1, moved.body_quat[1:].shape)
    moved.body_quat[:] /= np.linalg.norm(moved.body_quat, axis=1, keepdims=True)
    moved.geom_sameframe[:] = 0  # geoms that lie where their bodies do
    moved.body_margin[:] += _REACH  # the boxes by which MuJoCo skips pairs are those of the geoms as they were
    moved.geom_pos[:] += size * rng.uniform(-1, 1, moved.geom_pos.shape)
    moved.geom_quat[:] += size * rng.uniform(-1, 1, moved.geom_quat.shape)
    moved.geom_quat[:] /= np.linalg.norm(moved.geom_quat, axis=1, keepdims=True)
    return moved


def is_sane(evaluation: Evaluation, dtype: str) -> bool:
    """Whether a state has a result that can be compared.

    Places of bodies must be numbers that the precision can hold, and hold to the size of bodies. Contacts that can move
    nothing have no definite force. An inertia matrix that is not positive, as negative armatures make it, has no
    minimum of the cost that solvers look for. In float32, a solver resolves about a thousandth of the reference
    accelerations, so states are left out in which these are large. So are states in which a body far from the com of
    its tree spins so fast that the centrifugal forces about that com, which cancel, leave mere rounding, or enough of
    it to accelerate a light dof; and states in which constraint forces cancel as far. In either precision, inertia
    about a com that is a million times as far from a joint as its bodies leaves mere rounding, too.
    """
    fields, state = evaluation.fields, evaluation.state
    if not all((np.abs(getattr(state, name)) < mujoco.mjMAXVAL).all() for name in STATE_ARRAYS):
        return False  # MuJoCo resets such states in a step, and the engine freezes them
    if any(not np.isfinite(fields[name]).all() for name in ("qacc", "efc_D", "efc_force", "qM")):
        return False
    if any(np.abs(fields[name]).max(initial=0.0) > np.finfo(dtype).max for name in _PLACES):
        return False
    if dtype == "float32" and np.abs(fields["xipos"]).max(initial=0.0) > _FARTHEST:
        return False
    if not is_invertible(fields["qM"], dtype) or (dtype == "float32" and np.abs(fields["crb"]).max() > _HEAVIEST):
        return False
    if _inertia_error(fields) > _LARGEST_INERTIA_ERROR:
        return False
    if dtype == "float32" and np.abs(fields["efc_aref"]).max(initial=0.0) > _STIFFEST:
        return False
    if dtype == "float32" and (_is_lost_in_spin(fields) or _is_lost_in_forces(fields)):
        return False
    return bool(np.abs(fields["qacc"]).max() < _FASTEST and fields["efc_D"].max(initial=0.0) < _HARDEST[dtype])


def is_invertible(inertia: np.ndarray, dtype: str) -> bool:
    """Whether an inertia matrix (nv, nv) is positive, and not so nearly singular that accelerations are rounding."""
    values = np.linalg.eigvalsh(inertia)
    return bool(values[0] * _SINGULAR[dtype] >= values[-1])


def _inertia_error(fields: Mapping[str, np.ndarray]) -> float:
    """What rounding in float64 makes of inertia about the com of a tree, relative to the least inertia of a dof."""
    least = float(np.diag(fields["qM"]).min())
    return float(np.finfo(np.float64).eps * np.abs(fields["crb"]).max()) / max(least, mujoco.mjMINVAL)


def _is_lost_in_spin(fields: Mapping[str, np.ndarray]) -> bool:
    """Whether rounding of centrifugal forces in float32 makes bias forces uncertain, or what accelerates light dofs."""
    error, least = _spin_error(fields), float(np.linalg.eigvalsh(fields["qM"])[0])
    forces, accelerations = (max(1.0, float(np.abs(fields[name]).max())) for name in ("qfrc_bias", "qacc_smooth"))
    return error > min(_LARGEST_SPIN_ERROR * forces, _LARGEST_SPIN_ACCELERATION * accelerations * least)


def _is_lost_in_forces(fields: Mapping[str, np.ndarray]) -> bool:
    """Whether constraint forces cancel so far that their rounding in float32 is a large part of the accelerations."""
    forces = np.abs(fields["efc_force"]) @ np.abs(fields["efc_J"].reshape(-1, len(fields["qacc"])))
    error = float(np.finfo(np.float32).eps * forces.max(initial=0.0)) / float(np.linalg.eigvalsh(fields["qM"])[0])
    return error > _LARGEST_FORCE_ACCELERATION * max(1.0, float(np.abs(fields["qacc"]).max()))


def _spin_error(fields: Mapping[str, np.ndarray]) -> float:
    """What rounding in float32 makes of the largest product of inertia and velocities about the com of a tree [N m]."""
    inertia, vel = fields["cinert"].reshape(-1, 10), fields["cvel"].reshape(-1, 6)
    spin, speed = np.linalg.norm(vel[:, :3], axis=1), np.linalg.norm(vel[:, 3:], axis=1)
    moment, arm = np.abs(inertia[:, :6]).max(axis=1), np.linalg.norm(inertia[:, 6:], axis=1)
    return float(np.finfo(np.float32).eps * (moment * spin**2 + arm * spin * speed).max(initial=0.0))


def blur(evaluations: Sequence[Evaluation], dtype: str) -> float:
    """Relative error of an acceleration where the inertia matrix is nearly singular; at most a tenth."""
    most = max((float(np.linalg.cond(e.fields["qM"])) for e in evaluations), default=0.0)
    return min(_OF_CONDITION * most * float(np.finfo(dtype).eps), 0.1)


def slack_of(mj: mujoco.MjModel, dtype: str, stage: str) -> float:
    """By how much a field of a stage may miss the tolerance.

    A solver that stops before the optimum counts for the stages that come after it only. In float32 the comparison
    looks for gross errors: the same code is held to the tolerances in float64.
    """
    solved = _solver_slack(mj, dtype) if stage in AFTER_ROWS or stage == "step" else 1.0
    return solved * (_FLOAT32_SLACK if dtype == "float32" else 1.0)


def _solver_slack(mj: mujoco.MjModel, dtype: str) -> float:
    if mj.opt.solver == mujoco.mjtSolver.mjSOL_CG:
        return _CG_SLACK
    elliptic = mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    return _PGS_SLACK if (elliptic or dtype == "float32") and mj.opt.solver == mujoco.mjtSolver.mjSOL_PGS else 1.0
