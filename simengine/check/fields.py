"""The fields that are compared, in the order of the stages, and their tolerances.

The relative error of a field at one state is max|a - b| / max(1, max|b|), where b is MuJoCo's; the tolerances bound it.
"""

from __future__ import annotations

from typing import NamedTuple


class Tolerance(NamedTuple):
    """Largest permitted relative error, by precision."""

    float64: float
    float32: float

    def of(self, dtype: str) -> float:
        """The bound for "float32" or "float64"."""
        return self.float32 if dtype == "float32" else self.float64


EXACT = Tolerance(0.0, 0.0)
# MuJoCo's own normals of convex shapes are accurate to 1e-5 only, where the distance is flat around its minimum.
CONVEX = Tolerance(5e-5, 5e-4)
SMOOTH = Tolerance(1e-9, 5e-5)
CONTACT = Tolerance(1e-8, 1e-4)
ROW = Tolerance(1e-8, 2e-4)
SOLUTION = Tolerance(1e-6, 2e-3)
STEP = Tolerance(1e-6, 1e-3)


class Compared(NamedTuple):
    """A field that is compared.

    Attributes:
        stage: the stage that computes it.
        name: MuJoCo's name; with the prefix `contact_` or `efc_` for contacts and rows.
        space: "world", "contact" or "row": what one entry belongs to.
        tolerance: bound of the relative error, by precision.
    """

    stage: str
    name: str
    space: str
    tolerance: Tolerance


def _of(stage: str, names: str, tolerance: Tolerance, space: str = "world") -> tuple[Compared, ...]:
    return tuple(Compared(stage, name, space, tolerance) for name in names.split())


FORWARD: tuple[Compared, ...] = (
    *_of("kinematics", "xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat", SMOOTH),
    *_of("sites", "site_xpos site_xmat", SMOOTH),
    *_of("com_pos", "subtree_com cinert cdof", SMOOTH),
    *_of("tendon", "ten_length ten_J", SMOOTH),
    *_of("crb", "crb qM", SMOOTH),
    *_of("com_vel", "cvel cdof_dot", SMOOTH),
    *_of("passive", "qfrc_fluid qfrc_gravcomp qfrc_passive", SMOOTH),
    *_of("rne", "qfrc_bias", SMOOTH),
    *_of("tendon_velocity", "ten_velocity", SMOOTH),
    *_of("transmission", "actuator_length actuator_velocity actuator_moment", SMOOTH),
    *_of("actuation", "act_dot actuator_force qfrc_actuator", SMOOTH),
    *_of("acceleration", "qfrc_smooth qacc_smooth", SMOOTH),
    *_of("narrowphase", "contact_geom", EXACT, "contact"),
    *_of("narrowphase", "contact_dist contact_pos contact_frame", CONTACT, "contact"),
    *_of("constraint", "nefc", EXACT, "row"),
    *_of("constraint", "efc_type efc_id", EXACT, "row"),
    *_of("constraint", "efc_J efc_pos efc_margin efc_D efc_aref efc_frictionloss", ROW, "row"),
    *_of("solve", "efc_force", SOLUTION, "row"),
    *_of("solve", "qacc qfrc_constraint", SOLUTION),
    *_of("rne_post", "cfrc_ext", SOLUTION),
    *_of("energy", "energy", SMOOTH),
    *_of("subtree_vel", "subtree_linvel subtree_angmom", SMOOTH),
    *_of("body_forces", "cacc cfrc_int", SOLUTION),
    *_of("sensor", "sensordata", SOLUTION),
)
"""Fields after `forward()`. The error of `contact_geom` is the number of contacts that only one engine lists, and that
of `nefc` the difference in rows. The other contact and row fields are compared where these two agree."""

AFTER_ROWS = frozenset(("solve", "rne_post", "body_forces", "sensor"))
"""Stages whose results depend on the forces of the rows."""

STEPPED: tuple[Compared, ...] = _of("step", "qpos qvel act", STEP)
"""State after one step."""


ALONG_NORMALS = ("actuator_velocity", "actuator_moment", "qfrc_actuator", "qfrc_smooth", "qacc_smooth")
"""Fields that depend on contact normals in models with adhesion actuators."""


def as_exact_as_convex(fields: tuple[Compared, ...], has_adhesion: bool) -> tuple[Compared, ...]:
    """The fields, with the tolerances of models with convex pairs for those that depend on contacts."""
    names = ALONG_NORMALS if has_adhesion else ()
    return tuple(
        field._replace(tolerance=Tolerance(*map(max, field.tolerance, CONVEX)))
        if field.tolerance != EXACT
        and (field.space in ("contact", "row") or field.tolerance in (SOLUTION, STEP) or field.name in names)
        else field
        for field in fields
    )


def as_exact_as_search(fields: tuple[Compared, ...]) -> tuple[Compared, ...]:
    """The fields, with the tolerance of convex pairs for sensors: MuJoCo searches for the nearest points of geoms."""
    return tuple(
        field._replace(tolerance=Tolerance(*map(max, field.tolerance, CONVEX))) if field.stage == "sensor" else field
        for field in fields
    )
