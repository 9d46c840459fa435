"""Parameters that may differ between worlds, and the table fields derived from them.

A group with per-world parameters has the real numbers of the model table once per world. Setting a parameter writes its
table field and those derived from it: contact frictions, bounding spheres and, if masses change, the inverse weights at
qpos0 that MuJoCo's compiler computes (mj_setConst). All of it is array arithmetic over the worlds, on the device of the
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any, NamedTuple

import mujoco
import numpy as np

from simengine.errors import did_you_mean
from simengine.model.actuators import full_turns, periods
from simengine.model.blob import PER_WORLD_OPTIONS, field_offsets
from simengine.model.clusters import Stills, still_boxes, stills
from simengine.model.fluid import box_sides
from simengine.model.model_table import ModelTable
from simengine.model.pairs import friction_sources
from simengine.model.rest import AtRest, at_rest, follows_from_geoms, lengths_by_qpos, rests_with_joints
from simengine.model.sensors import inertial_frames

_BITS = mujoco.mjtDisableBit
_GEOM = mujoco.mjtGeom
_MINMU, _MINVAL = float(mujoco.mjMINMU), float(mujoco.mjMINVAL)
MASSES = ("body_mass", "body_inertia", "dof_armature", "body_ipos")
GAINS = ("actuator_gainprm", "actuator_biasprm")
_OPTIONS = {name.removeprefix("opt_"): name for name in PER_WORLD_OPTIONS if name.startswith("opt_")}
_FOLDED: dict[str, int] = {
    "gravity": int(_BITS.mjDSBL_GRAVITY),
    "jnt_stiffness": int(_BITS.mjDSBL_SPRING),
    "tendon_stiffness": int(_BITS.mjDSBL_SPRING),
    "dof_damping": int(_BITS.mjDSBL_DAMPER),
    "tendon_damping": int(_BITS.mjDSBL_DAMPER),
}
"""Parameters that have no effect if the model has this disable flag."""

PARAMS: tuple[str, ...] = (
    *_OPTIONS,
    *("body_mass", "body_inertia", "dof_armature", "dof_damping", "dof_frictionloss"),
    *("body_ipos", "jnt_stiffness", "jnt_range", "qpos0", "qpos_spring", "geom_friction", "geom_size"),
    *("actuator_gainprm", "actuator_biasprm", "actuator_ctrlrange", "actuator_forcerange"),
    *("tendon_stiffness", "tendon_damping", "tendon_frictionloss"),
)
"""Parameters that may be set, by MuJoCo's names; gravity, density, viscosity and wind are options."""

Weights = Callable[[Any, Any, Any, Any], dict[str, Any]]

_ROUND = (_GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_ELLIPSOID, _GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_BOX)


def together(names: Iterable[str]) -> tuple[str, ...]:
    """Parameters, and those from which the same fields are derived, so that all are needed if one is given."""
    asked = set(names)
    return (*asked, *(other for same in (MASSES, GAINS) if asked & set(same) for other in same if other not in asked))


class SavedParams(NamedTuple):
    """Parameters of the worlds of one group, on the host.

    Attributes:
        given: parameters that were set, by name, (num_worlds, ...).
        fields: fields of the model table that follow from them, by name, (num_worlds, entries). They are kept because
            worlds whose parameters were not set have the compiled model's values, which differ in rounding.
    """

    given: dict[str, np.ndarray]
    fields: dict[str, np.ndarray]


class WorldParameters:
    """The per-world parameters of one model, and the fields derived from them.

    Attributes:
        places: first entry and number of entries of each table field in the model's real numbers.
    """

    def __init__(self, model: ModelTable):
        self._model = model
        self.places = field_offsets(model)
        self._rest: AtRest | None = None

    def default(self, name: str) -> np.ndarray:
        """The compiled model's value. Raises ValueError if the parameter is unknown or cannot be set for this model."""
        if name not in PARAMS:
            hint = did_you_mean(name, PARAMS)
            raise ValueError(
                f"{name!r} is not a parameter that worlds may differ in{hint}; choose from {', '.join(PARAMS)}"
            )
        reason = self._refusal(name)
        if reason:
            raise ValueError(f"{name} of model {self._model.name!r} cannot differ between worlds: {reason}")
        mj = self._model.mj
        if name == "body_ipos":  # with MuJoCo's replacement of frames applied
            return self._model.body_ipos.copy()
        return np.array(getattr(mj.opt if name in _OPTIONS else mj, name), dtype=np.float64)

    def _refusal(self, name: str) -> str:
        """The reason why a parameter cannot be set for this model; empty if it can."""
        model, mj = self._model, self._model.mj
        if name in ("density", "viscosity", "wind") and not model.has_fluid:
            return "it has no fluid; give it a density or viscosity in its MJCF"
        if name in ("dof_frictionloss", "tendon_frictionloss"):
            kind = "dofs" if name == "dof_frictionloss" else "tendons"
            if not (getattr(mj, name) > 0).all():
                return f"some {kind} have no friction loss and therefore no constraint rows; give them one in its MJCF"
        if name in MASSES and (mj.actuator_gaintype == mujoco.mjtGain.mjGAIN_MUSCLE).any():
            return "the peak forces of its muscles follow from its inertia"
        if name == "qpos0" and model.npath and (mj.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)).any():
            return "lengths at rest of its spatial tendons follow from where its free bodies are"
        if name == "qpos_spring" and rests_with_joints(mj).any():
            return "springs of its tendons rest where its joints' do; give them a springlength in its MJCF"
        if name == "geom_size":
            if follows_from_geoms(mj).any():
                return "tendons with constraint rows or springs wrap its geoms, and their lengths at rest follow"
            if not np.isin(mj.geom_type, (_GEOM.mjGEOM_PLANE, *_ROUND)).all():
                return "it has meshes or height fields"
            if (mj.geom_fluid[:, 0] != 0).any():
                return "coefficients of its fluid forces follow from the sizes"
        return ""

    def widths(self, names: Iterable[str]) -> dict[str, int]:
        """Number of entries of each table field that is derived from parameters with these names."""
        one = {name: self.default(name)[None] for name in together(names)}
        return {field: values.shape[1] for field, values in self.derive(np, one).items()}

    def fits(self, saved: SavedParams) -> bool:
        """Whether the saved fields are those that this model derives. Another form of the model may have others."""
        return self.widths(saved.given) == {name: values.shape[1] for name, values in saved.fields.items()}

    def derive(self, xp: Any, given: dict[str, Any], weights: Weights | None = None) -> dict[str, Any]:
        """Table fields derived from parameters.

        Args:
            xp: NumPy, CuPy or jax.numpy.
            given: parameters of the worlds by name, (worlds, ...), all of one dtype; complete in the sense
                of `together`.
            weights: computes what follows from the inverse of the inertia, as `weights` does, which is the default.

        Returns:
            fields by name, (worlds, entries), of that dtype.
        """
        fields: dict[str, Any] = {}
        for name, values in given.items():
            if name == "geom_friction":
                own = self._model.finds_pairs  # then kernels combine the friction of geoms
                fields |= {"geom_friction": values} if own else {"cand_friction": self._frictions(xp, values)}
            elif name == "geom_size":
                fields |= {"geom_size": values} | self._bounds(xp, values)
            elif name == "qpos0":
                fields |= {"qpos0": values, "tendon_length0": self._lengths(xp, values)}
            elif name not in GAINS and self._model.mj.opt.disableflags & _FOLDED.get(name, 0) == 0:
                fields[_OPTIONS.get(name, name)] = values
        if GAINS[0] in given:
            fields |= self._actuators(xp, *(given[name] for name in GAINS))
        if "body_mass" in given:
            masses = [given[name] for name in MASSES]
            fields |= self._inertial(xp, *masses) | (weights or partial(self.weights, xp))(*masses)
        return {name: values.reshape(len(values), -1) for name, values in fields.items()}

    def _frictions(self, xp: Any, values: Any) -> Any:
        first, second, fixed = friction_sources(self._model.mj)
        mixed = xp.maximum(values[:, first], values[:, second])[..., np.array([0, 0, 1, 2, 2])]
        known = xp.asarray(self._model.cand_friction, values.dtype)
        return xp.where(xp.asarray(fixed)[:, None], known, xp.maximum(mixed, _MINMU))

    def _actuators(self, xp: Any, gain: Any, bias: Any) -> dict[str, Any]:
        """Parameters (worlds, nu, 10) of gains and biases in the table's form, and the fields derived from both."""
        mj = self._model.mj
        turns = full_turns(mj)
        of_kinds = zip(GAINS, (mj.actuator_gaintype, mj.actuator_biastype), (1, 0), (gain, bias), strict=True)
        fields = {name: self._effective(xp, name, kind, fixed, prm) for name, kind, fixed, prm in of_kinds}
        if turns.any():
            fields["actuator_period"] = periods(xp, xp.asarray(turns, gain.dtype), gain, bias)
        return fields

    def _effective(self, xp: Any, name: str, kind: np.ndarray, fixed: int, prm: Any) -> Any:
        """The first nine of MuJoCo's parameters; those that an actuator's type does not use have the model's value.

        `fixed` is the number that the first type (a fixed gain, no bias) uses. The peak force of a muscle, if not
        given, follows from its scale, as in the model table.
        """
        mj = self._model.mj
        used = np.array((fixed, 3, 9))[np.minimum(kind, 2)]
        there = (np.arange(9) < used[:, None]) & (self._model.actuator_disabled == 0)[:, None]
        scale = xp.asarray(1 / np.maximum(_MINVAL, mj.actuator_acc0), prm.dtype)
        peak = xp.where(prm[..., 2] < 0, prm[..., 3] * scale, prm[..., 2])
        is_peak = np.outer(kind == int(mujoco.mjtGain.mjGAIN_MUSCLE), np.arange(9) == 2)
        folded = xp.where(xp.asarray(is_peak), peak[..., None], prm[..., :9])
        known = xp.asarray(getattr(self._model, name).reshape(mj.nu, 9), prm.dtype)
        return xp.where(xp.asarray(there), folded, known)

    def _lengths(self, xp: Any, qpos0: Any) -> Any:
        """Lengths (worlds, ntendon) at qpos0; only those of fixed tendons depend on the parameter."""
        rows, known = lengths_by_qpos(self._model.mj), self._model.tendon_length0
        fixed = rows.any(axis=1)
        lengths = _combined(qpos0, xp.asarray(rows.T, qpos0.dtype))
        return xp.where(xp.asarray(fixed), lengths, xp.asarray(known, qpos0.dtype))

    @property
    def rest(self) -> AtRest:
        """The model at qpos0."""
        if self._rest is None:
            self._rest = at_rest(self._model.mj)
        return self._rest

    @cached_property
    def stills(self) -> Stills:
        """The geoms of clusters that stand still, whose boxes follow from their sizes."""
        return stills(self._model.mj, self._model.cluster_adr, self._model.cluster_geom, self._model.nstill)

    def _inertial(self, xp: Any, mass: Any, inertia: Any, armature: Any, ipos: Any) -> dict[str, Any]:
        """Fields derived from masses, principal moments, armatures and centres of mass, but for `weights`."""
        return {
            "body_mass": mass,
            "body_inertia": inertia,
            "dof_armature": armature,
            "body_ipos": ipos,
            **self._sensed(xp, ipos),
            "body_subtreemass": _combined(mass, xp.asarray(_above(self._model.mj), mass.dtype)),
            "body_box": box_sides(xp, mass, inertia),
        }

    def weights(self, xp: Any, mass: Any, inertia: Any, armature: Any, ipos: Any) -> dict[str, Any]:
        """Inverse weights of bodies, dofs and tendons at qpos0, and the mean inertia.

        Args: mass (worlds, nbody), inertia (.., nbody, 3), armature (.., nv), ipos (.., nbody, 3).
        """
        mj, rest = self._model.mj, self.rest

        def known(array: np.ndarray) -> Any:
            return xp.asarray(array, mass.dtype)

        centres = _of_centres(xp, known(rest.linear), known(rest.angular), known(rest.xmat) @ ipos[..., None])
        M = known(rest.M) + _summed(centres, mass[..., None]) + _summed(known(rest.turned), inertia)
        M = M + armature[:, None, :] * known(np.eye(mj.nv))
        inverse, diagonal = xp.linalg.inv(M), xp.arange(mj.nv)
        # mean inverse inertias, of translation and of rotation
        sides = (rows.reshape(*rows.shape[:-3], -1, mj.nv) for rows in (centres, known(rest.angular)))
        means = [_weights(inverse, rows).reshape(len(mass), -1, 3).mean(axis=-1) for rows in sides]
        by_body = xp.stack(means, axis=-1)
        by_dof = _combined(inverse[:, diagonal, diagonal], known(_averages(mj)))
        # for bodies that only slide along their principal axes, MuJoCo uses the mass alone
        slides = xp.asarray(mj.body_simple == 2) & (ipos == 0).all(axis=-1)
        own = 1 / xp.maximum(mass, _MINVAL)
        by_body = xp.where(slides[..., None] & xp.asarray(np.array([True, False])), own[..., None], by_body)
        by_dof = xp.where(slides[:, mj.dof_bodyid], own[:, mj.dof_bodyid], by_dof)
        return {
            "body_invweight0": by_body,
            "dof_invweight0": by_dof,
            "tendon_invweight0": _weights(inverse, known(rest.tendons)),
            "stat_meaninertia": M[:, diagonal, diagonal].mean(axis=1),
        }

    def _sensed(self, xp: Any, ipos: Any) -> dict[str, Any]:
        """Positions of the frames of sensors, if some of them are inertial frames of bodies."""
        body = inertial_frames(self._model.mj)
        if not (body >= 0).any():
            return {}
        fixed = xp.asarray(self._model.sensor_pos, ipos.dtype)
        return {"sensor_pos": xp.where(xp.asarray(body >= 0)[..., None], ipos[:, np.maximum(body, 0)], fixed)}

    def _bounds(self, xp: Any, size: Any) -> dict[str, Any]:
        """Bounding spheres and boxes, and half axes, of geoms with sizes (worlds, ngeom, 3)."""
        kind = xp.asarray(self._model.mj.geom_type)[:, None]
        radius, half = size[..., :1], size[..., 1:2]
        longest = {_GEOM.mjGEOM_CAPSULE: radius + half, _GEOM.mjGEOM_CYLINDER: half}
        axes = xp.where(kind == int(_GEOM.mjGEOM_SPHERE), xp.concatenate([radius] * 3, axis=-1), size)
        for shape, length in longest.items():
            axes = xp.where(kind == int(shape), xp.concatenate([radius, radius, length], axis=-1), axes)
        plane = kind == int(_GEOM.mjGEOM_PLANE)
        # sizes of planes may be zero, where the square root has no derivative
        square = xp.where(plane, 1.0, size) ** 2
        bound = axes.max(axis=-1, keepdims=True)
        bound = xp.where(kind == int(_GEOM.mjGEOM_BOX), xp.sqrt(square.sum(axis=-1, keepdims=True)), bound)
        bound = xp.where(
            kind == int(_GEOM.mjGEOM_CYLINDER), xp.sqrt(square[..., :2].sum(axis=-1, keepdims=True)), bound
        )
        box = xp.concatenate([xp.zeros_like(size), axes], axis=-1)
        bound = xp.where(plane, 0.0, bound)
        clusters = {"cluster_box": still_boxes(xp, self.stills, bound[..., 0])} if self._model.nstill else {}
        return clusters | {
            "geom_rbound": bound,
            "geom_aabb": xp.where(plane, xp.asarray(self._model.geom_aabb, size.dtype), box),
            "geom_semiaxes": axes,
        }


def _of_centres(xp: Any, linear: Any, angular: Any, arm: Any) -> Any:
    """Jacobians (worlds, nbody, 3, nv) of centres of mass, from those of the bodies' origins and orientations.

    Args: linear, angular (nbody, 3, nv), arm (worlds, nbody, 3, 1) from the origin [m].
    """
    x, y, z = (arm[..., i, 0] for i in range(3))
    none = xp.zeros_like(x)
    across = xp.stack([none, z, -y, -z, none, x, y, -x, none], axis=-1)
    return linear + across.reshape(*across.shape[:-1], 3, 3) @ angular


def _summed(rows: Any, weight: Any) -> Any:
    """Sum over bodies of rows' weight rows (' transposes), (worlds, nv, nv).

    Args: rows (nbody, 3, nv), shared by all worlds or per world; weight (worlds, nbody, 3 or 1).
    """
    nv = rows.shape[-1]
    weighted = (weight[..., None] * rows).reshape(len(weight), -1, nv)
    return rows.reshape(*rows.shape[:-3], -1, nv).swapaxes(-1, -2) @ weighted


def _combined(values: Any, matrix: Any) -> Any:
    """Values (worlds, n) times a matrix (n, k); the order of the sums does not depend on the number of worlds."""
    return (values[:, :, None] * matrix).sum(axis=1)


def _weights(inverse: Any, rows: Any) -> Any:
    """Diagonal of rows inverse rows', (worlds, number of rows)."""
    return ((rows @ inverse) * rows).sum(axis=-1)


def _above(mj: mujoco.MjModel) -> np.ndarray:
    """(nbody, nbody) 1 where the second body is the first or one of its ancestors."""
    above = np.eye(mj.nbody)
    for body in range(1, mj.nbody):
        above[body] += above[mj.body_parentid[body]]
    return above


def _averages(mj: mujoco.MjModel) -> np.ndarray:
    """Matrix (nv, nv) that replaces the values of a ball joint, and of each half of a free joint, by their mean."""
    mean = np.eye(mj.nv)
    for joint in range(mj.njnt):
        kind, dof = mj.jnt_type[joint], mj.jnt_dofadr[joint]
        starts = {mujoco.mjtJoint.mjJNT_FREE: (dof, dof + 3), mujoco.mjtJoint.mjJNT_BALL: (dof,)}
        for start in starts.get(mujoco.mjtJoint(kind), ()):
            mean[start : start + 3, start : start + 3] = 1 / 3
    return mean
