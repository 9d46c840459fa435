"""Candidate collision pairs: MuJoCo's static filters and contact-parameter mixing, done once per model.

Source: MuJoCo documentation, chapter "Computation", section "Collision detection", "Selection" (contype/conaffinity,
the parent filter, excludes), and chapter "Modeling", section "Contact parameters" (priority, solmix, element-wise
maxima).
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from simengine.model.clusters import cluster_table
from simengine.model.hfields import most_contacts
from simengine.model.meshes import most_corners
from simengine.model.pair_types import FLAT, LYING, PAIR_CODE, PAIR_SLOTS, PAIR_TYPES, PAIRS
from simengine.model.support import element

_GEOM = mujoco.mjtGeom
_MINVAL = float(mujoco.mjMINVAL)
_MINMU = float(mujoco.mjMINMU)

POLYTOPE_WORDS = 1024
"""Words of the polytope with which the lanes of a world search together for the depth of overlapping shapes."""

FACE_CORNERS = (192, 512, 1024)
"""For how many corners of two faces that lie flat on each other there are kernels: most models', and variants."""


def _types(first: str, second: str) -> tuple[int, int]:
    return int(getattr(_GEOM, f"mjGEOM_{first.upper()}")), int(getattr(_GEOM, f"mjGEOM_{second.upper()}"))


_TYPE_CODE: dict[tuple[int, int], int] = {_types(*geoms): code for geoms, code in PAIR_CODE.items()}
MAX_CODE = max(_TYPE_CODE.values())
_FLAT, _LYING = ([_types(*geoms) for geoms in pairs] for pairs in (FLAT, LYING))


class Candidate(NamedTuple):
    """Two geoms that may collide, the lower type first, and the number of their explicit pair, or -1."""

    geom1: int
    geom2: int
    pair: int = -1


class ContactParameters(NamedTuple):
    """Parameters of a candidate's contacts; solreffriction is zero if solref applies to the tangents too."""

    condim: int
    friction: np.ndarray
    solref: np.ndarray
    solreffriction: np.ndarray
    solimp: np.ndarray
    margin: float
    gap: float


def _bodies_collide(mj: mujoco.MjModel, body1: int, body2: int, filter_parent: bool) -> bool:
    weld1, weld2 = int(mj.body_weldid[body1]), int(mj.body_weldid[body2])
    if weld1 == weld2 or not (mj.body_dofnum[weld1] or mj.body_dofnum[weld2]):
        return False  # the same body, or two that no dof moves: the world and mocap bodies
    parent1 = int(mj.body_weldid[mj.body_parentid[weld1]])
    parent2 = int(mj.body_weldid[mj.body_parentid[weld2]])
    return not (filter_parent and weld1 and weld2 and (weld1 == parent2 or weld2 == parent1))


def _geoms_collide(mj: mujoco.MjModel, geom1: int, geom2: int) -> bool:
    return bool(
        (mj.geom_contype[geom1] & mj.geom_conaffinity[geom2]) or (mj.geom_contype[geom2] & mj.geom_conaffinity[geom1])
    )


def pair_flags(mj: mujoco.MjModel) -> tuple[bool, bool, bool]:
    """Whether there are contacts, whether parents and children are filtered, and whether there is a midphase.

    MuJoCo's midphase visits the geoms of two bodies in another order and sorts the pairs that it finds.
    """
    bits, flags = mujoco.mjtDisableBit, int(mj.opt.disableflags)
    contacts = not flags & (int(bits.mjDSBL_CONTACT) | int(bits.mjDSBL_CONSTRAINT))
    return contacts, not flags & int(bits.mjDSBL_FILTERPARENT), not flags & int(bits.mjDSBL_MIDPHASE)


def explicit_pairs(mj: mujoco.MjModel) -> list[Candidate]:
    """The explicit pairs of the model (MJCF element `pair`), in the order of their numbers."""
    if not pair_flags(mj)[0]:
        return []
    geoms = zip(mj.pair_geom1.tolist(), mj.pair_geom2.tolist(), strict=True)
    return [in_order(mj, geom1, geom2, pair) for pair, (geom1, geom2) in enumerate(geoms)]


def geom_pairs(mj: mujoco.MjModel) -> list[Candidate]:
    """Pairs that may collide, in the order in which MuJoCo lists their contacts.

    The order is by bodies. For two bodies, the explicit pairs come first, which are not filtered, and then the other
    pairs of geoms that pass the static filters.
    """
    contacts, filter_parent, midphase = pair_flags(mj)
    if not contacts:
        return []
    excluded = {int(signature) for signature in mj.exclude_signature}
    explicit: dict[tuple[int, int], list[Candidate]] = {}
    for pair in range(mj.npair):
        geom1, geom2 = int(mj.pair_geom1[pair]), int(mj.pair_geom2[pair])
        body1, body2 = sorted((int(mj.geom_bodyid[geom1]), int(mj.geom_bodyid[geom2])))
        explicit.setdefault((body1, body2), []).append(in_order(mj, geom1, geom2, pair))
    bodies = np.flatnonzero(mj.body_geomnum)
    geoms = {b: range(mj.body_geomadr[b], mj.body_geomadr[b] + mj.body_geomnum[b]) for b in bodies.tolist()}
    candidates: list[Candidate] = []
    for body1 in bodies.tolist():
        for body2 in _partners(mj, body1, bodies[bodies >= body1], explicit):
            own = explicit.get((body1, body2), [])
            candidates += own
            if (body1 << 16) + body2 in excluded or not _bodies_collide(mj, body1, body2, filter_parent):
                continue
            taken = {candidate[:2] for candidate in own}
            found = [in_order(mj, g1, g2) for g1 in geoms[body1] for g2 in geoms[body2] if _geoms_collide(mj, g1, g2)]
            found = [candidate for candidate in found if candidate[:2] not in taken]
            candidates += sorted(found) if midphase else found
    return candidates


def _partners(
    mj: mujoco.MjModel, body1: int, bodies: np.ndarray, explicit: dict[tuple[int, int], list[Candidate]]
) -> list[int]:
    """Those of some bodies that have an explicit pair with body1, or whose contact bits match its own."""
    meets = mj.body_contype[body1] & mj.body_conaffinity[bodies] | mj.body_conaffinity[body1] & mj.body_contype[bodies]
    return [
        body2
        for body2, bits in zip(bodies.tolist(), meets.tolist(), strict=True)
        if bits or (explicit and (body1, body2) in explicit)
    ]


def in_order(mj: mujoco.MjModel, geom1: int, geom2: int, pair: int = -1) -> Candidate:
    """A candidate with the geom of the lower type first."""
    return Candidate(geom2, geom1, pair) if mj.geom_type[geom1] > mj.geom_type[geom2] else Candidate(geom1, geom2, pair)


def _solmix(mj: mujoco.MjModel, geom1: int, geom2: int) -> float:
    mix1, mix2 = float(mj.geom_solmix[geom1]), float(mj.geom_solmix[geom2])
    if mix1 >= _MINVAL and mix2 >= _MINVAL:
        return mix1 / (mix1 + mix2)
    if mix1 < _MINVAL and mix2 < _MINVAL:
        return 0.5
    return 0.0 if mix1 < _MINVAL else 1.0


def parameters_of(mj: mujoco.MjModel, candidate: Candidate) -> ContactParameters:
    """Contact parameters of a candidate: those of its explicit pair, or those of its geoms combined.

    The flag "override" replaces all except the dimension and the gap by those of the options.
    """
    found = _own_parameters(mj, candidate)
    if not mj.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE):
        return found
    return found._replace(
        friction=np.maximum(mj.opt.o_friction, _MINMU),
        solref=mj.opt.o_solref.copy(),
        solreffriction=np.zeros(2),
        solimp=mj.opt.o_solimp.copy(),
        margin=float(mj.opt.o_margin),
    )


def _own_parameters(mj: mujoco.MjModel, candidate: Candidate) -> ContactParameters:
    geom1, geom2, pair = candidate
    if pair < 0:
        return combine(mj, geom1, geom2)
    friction = np.maximum(mj.pair_friction[pair], _MINMU)
    solver = (mj.pair_solref[pair].copy(), mj.pair_solreffriction[pair].copy(), mj.pair_solimp[pair].copy())
    return ContactParameters(int(mj.pair_dim[pair]), friction, *solver, mj.pair_margin[pair], mj.pair_gap[pair])


def combine(mj: mujoco.MjModel, geom1: int, geom2: int) -> ContactParameters:
    """Contact parameters of two geoms: margins are summed; the rest is from the higher priority, or mixed if equal."""
    margin = float(mj.geom_margin[geom1] + mj.geom_margin[geom2])
    gap = float(mj.geom_gap[geom1] + mj.geom_gap[geom2])
    priority1, priority2 = mj.geom_priority[geom1], mj.geom_priority[geom2]
    if priority1 != priority2:
        geom = geom1 if priority1 > priority2 else geom2
        condim = int(mj.geom_condim[geom])
        friction3 = mj.geom_friction[geom]
        solref, solimp = mj.geom_solref[geom].copy(), mj.geom_solimp[geom].copy()
    else:
        condim = int(max(mj.geom_condim[geom1], mj.geom_condim[geom2]))
        friction3 = np.maximum(mj.geom_friction[geom1], mj.geom_friction[geom2])
        mix = _solmix(mj, geom1, geom2)
        ref1, ref2 = mj.geom_solref[geom1], mj.geom_solref[geom2]
        both_standard = ref1[0] > 0 and ref2[0] > 0
        solref = mix * ref1 + (1 - mix) * ref2 if both_standard else np.minimum(ref1, ref2)
        solimp = mix * mj.geom_solimp[geom1] + (1 - mix) * mj.geom_solimp[geom2]
    friction = np.maximum(friction3[[0, 0, 1, 2, 2]], _MINMU)
    return ContactParameters(condim, friction, solref, np.zeros(2), solimp, margin, gap)


def friction_sources(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two geoms whose larger frictions each candidate has, and whether its friction is fixed instead: (ncand,) each."""
    pairs = geom_pairs(mj)
    priority = mj.geom_priority
    first = [c.geom2 if priority[c.geom2] > priority[c.geom1] else c.geom1 for c in pairs]
    second = [c.geom1 if priority[c.geom1] > priority[c.geom2] else c.geom2 for c in pairs]
    override = bool(mj.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE))
    fixed = [override or c.pair >= 0 for c in pairs]
    return np.array(first, dtype=int), np.array(second, dtype=int), np.array(fixed, dtype=bool)


class Parameters:
    """Contact parameters of a model's candidates; combinations that many candidates share are computed once."""

    def __init__(self, mj: mujoco.MjModel):
        self._mj = mj
        scalars = (mj.geom_condim, mj.geom_priority, mj.geom_solmix, mj.geom_margin, mj.geom_gap)
        rows = np.column_stack([*scalars, mj.geom_friction, mj.geom_solref, mj.geom_solimp])
        numbers: dict[tuple[float, ...], int] = {}
        self._kind = [numbers.setdefault(tuple(row), len(numbers)) for row in rows.tolist()]
        self._known: dict[tuple[int, int], ContactParameters] = {}

    def of(self, candidate: Candidate) -> ContactParameters:
        """Contact parameters of a candidate; treat the arrays as read-only."""
        if candidate.pair >= 0:
            return parameters_of(self._mj, candidate)
        kinds = self._kind[candidate.geom1], self._kind[candidate.geom2]
        if kinds not in self._known:
            self._known[kinds] = parameters_of(self._mj, candidate)
        return self._known[kinds]


def unsupported_pairs(mj: mujoco.MjModel, pairs: list[Candidate]) -> list[str]:
    """One line per candidate pair whose geom types have no narrowphase."""
    lines = []
    geom, geom_type = mujoco.mjtObj.mjOBJ_GEOM, mj.geom_type.tolist()
    other_ccd = mj.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_NATIVECCD)
    for candidate in pairs:
        geom1, geom2, _ = candidate
        types, corners = (geom_type[geom1], geom_type[geom2]), _corners(mj, candidate)
        if types in _TYPE_CODE and not other_ccd and corners <= FACE_CORNERS[-1]:
            continue
        names = f"geoms {element(mj, geom, geom1)} and {element(mj, geom, geom2)}"
        if types not in _TYPE_CODE:
            words = [_GEOM(t).name.removeprefix("mjGEOM_").lower() for t in types]
            lines.append(f"collision {words[0]}-{words[1]} of {names}")
        elif other_ccd and PAIRS[_TYPE_CODE[types]].name in ("convex", "hfield"):
            lines.append(f"disable flag nativeccd, without which {names} collide by another method (enable it)")
        elif corners > FACE_CORNERS[-1]:
            lines.append(f"contacts of flat faces with {corners} corners (at most {FACE_CORNERS[-1]}) of {names}")
    return lines


def _corners(mj: mujoco.MjModel, candidate: Candidate) -> int:
    """The most corners, together, of two faces with which the geoms of a convex pair can lie flat on each other."""
    types = int(mj.geom_type[candidate.geom1]), int(mj.geom_type[candidate.geom2])
    lies = types in _FLAT and _slots(mj, types) > 1
    return most_corners(mj, candidate.geom1) + most_corners(mj, candidate.geom2) if lies else 0


def face_capacity(mj: mujoco.MjModel, pairs: list[Candidate]) -> int:
    """The least of FACE_CORNERS that suffices for supported pairs."""
    most = max((_corners(mj, candidate) for candidate in pairs), default=0)
    return next(room for room in FACE_CORNERS if most <= room)


def _reach(parameters: ContactParameters) -> float:
    """Distance below which contacts are listed [m]."""
    return parameters.margin + parameters.gap


def _slots(mj: mujoco.MjModel, types: tuple[int, int]) -> int:
    """Most contacts of a pair of geom types; for convex pairs it depends on the flag multiccd."""
    code = _TYPE_CODE.get(types, -1)
    if code < 0 or PAIRS[code].name != "convex":
        return PAIR_SLOTS[code] if code >= 0 else 0
    if mj.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_MULTICCD):
        return 1
    return 4 if types in _FLAT else 2 if types in _LYING else 1


def kind_of_types(mj: mujoco.MjModel, types: tuple[int, int]) -> tuple[int, int]:
    """Index into PAIR_TYPES (-1 without a narrowphase), and most contacts, of a pair of geom types."""
    return _TYPE_CODE.get(types, -1), _slots(mj, types)


def can_lie(mj: mujoco.MjModel, candidate: Candidate) -> bool:
    """Whether the geoms of a convex pair can lie flat on each other and then touch at several points."""
    types = int(mj.geom_type[candidate.geom1]), int(mj.geom_type[candidate.geom2])
    return types in (*_FLAT, *_LYING) and _slots(mj, types) > 1


def _spans(pairs: list[Candidate], reach: np.ndarray) -> np.ndarray:
    """First pair of each span, and the number of pairs: (spans + 1,).

    The pairs of a span have the same first geom, second geoms of successive numbers, and equal margins and gaps. So
    their bounding spheres are tested side by side.

    Args:
        pairs: the candidates.
        reach: margins and gaps, (candidates, 2).
    """
    step = np.diff(np.array([c[:2] for c in pairs], dtype=np.int64).reshape(-1, 2), axis=0)
    goes_on = (step == (0, 1)).all(axis=1) & (np.diff(reach, axis=0) == 0).all(axis=1)
    starts = 1 + np.flatnonzero(~goes_on)
    return np.array([*([0] if pairs else []), *starts, len(pairs)], dtype=np.int32)


def _runs(pairs: list[Candidate], starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The runs of second geoms of spans, which several spans may share.

    Args:
        pairs: the candidates.
        starts: first pair of each span, and the number of pairs, (spans + 1,).

    Returns:
        The run of each span, (spans,), and the first geom of each run and their number, (runs, 2).
    """
    first = [pairs[start].geom2 for start in starts[:-1]]
    geoms = list(zip(first, np.diff(starts).tolist(), strict=True))
    runs = sorted(set(geoms))
    number = {run: k for k, run in enumerate(runs)}
    return np.array([number[run] for run in geoms], dtype=np.int32), np.array(runs, dtype=np.int32).reshape(-1, 2)


def pair_table(mj: mujoco.MjModel, pairs: list[Candidate]) -> dict[str, np.ndarray]:
    """The `cand_*` and `slot_*` arrays, spans and clusters, of the model table for supported pairs."""
    geom_type, combined = mj.geom_type.tolist(), Parameters(mj)
    codes = [_TYPE_CODE[geom_type[g1], geom_type[g2]] for g1, g2, _ in pairs]
    parameters = [combined.of(candidate) for candidate in pairs]
    slots = np.array([_slots(mj, (geom_type[g1], geom_type[g2])) for g1, g2, _ in pairs], dtype=np.int32)
    for c in np.flatnonzero(np.array(codes, dtype=np.int32) == PAIR_TYPES.index("hfield")):
        slots[c] = most_contacts(mj, pairs[c].geom1, pairs[c].geom2, _reach(parameters[c]))
    slot_cand = np.repeat(np.arange(len(pairs)), slots)
    first = np.cumsum(slots) - slots
    reach = np.array([[p.margin, p.gap] for p in parameters]).reshape(-1, 2)
    spans = _spans(pairs, reach)
    span_run, run_geom = _runs(pairs, spans)
    return {
        "cand_geom1": np.array([c.geom1 for c in pairs], dtype=np.int32),
        "cand_geom2": np.array([c.geom2 for c in pairs], dtype=np.int32),
        "cand_geoms": np.array([c.geom1 | (c.geom2 & 0x7FFF) << 16 for c in pairs], dtype=np.int32),
        "cand_type": np.array(codes, dtype=np.int32),
        "cand_slot": first.astype(np.int32),
        "cand_condim": np.array([p.condim for p in parameters], dtype=np.int32),
        "cand_friction": np.array([p.friction for p in parameters]).reshape(-1, 5),
        "cand_solref": np.array([p.solref for p in parameters]).reshape(-1, 2),
        "cand_solreffriction": np.array([p.solreffriction for p in parameters]).reshape(-1, 2),
        "cand_solimp": np.array([p.solimp for p in parameters]).reshape(-1, 5),
        "cand_margin": reach[:, 0],
        "cand_gap": reach[:, 1],
        "span_adr": spans,
        "span_run": span_run,
        "run_geom": run_geom,
        **cluster_table(mj, pairs, reach.sum(axis=1)),
        "slot_cand": slot_cand.astype(np.int32),
        "slot_sub": (np.arange(len(slot_cand)) - first[slot_cand]).astype(np.int32),
    }
