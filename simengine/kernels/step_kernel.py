"""`StepKernel`: whole steps of worlds as one kernel of the GPU, for worlds that are few.

A block works on a world with several warps, its *teams*; where worlds are more than the device has multiprocessors, on
several worlds, of which each has its own warp or group of lanes in a team. An evaluation of the dynamics is a row of
phases with a barrier of the block behind each; in a phase every team runs the stages of its own track. Tracks of a
phase may not conflict, by the declarations of their stages: the rule by which a window orders the calls of a list,
applied once and for all.

    phase    team 0                 team 1           team 2        team 3
    1        kinematics, com_pos    guard
    2        com_vel, rne           crb, factor_m    contacts      passive, actuation
    3        acceleration                            constraint
    4        solve, integrator

In a fluid its drag adds to the passive forces, which the first team then computes before it.

Nothing of a world depends on another one, so that no world waits for those of other blocks. What evaluations produce
stays in shared memory, but for contacts, and the rows of worlds that have many, which are *far*: in memory of the
store. The stages are those of the kernels of a list, and so are the bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

from simengine.kernels.kernel import Kernel, ScratchItem, ScratchPlan, place_items
from simengine.model.table import resolve
from simengine.physics.actuation.actuation import ACTUATION
from simengine.physics.collision.contacts import CONTACTS, CONTACTS_PLAIN
from simengine.physics.constraints.constraint import CONSTRAINT
from simengine.physics.dynamics.acceleration import ACCELERATION
from simengine.physics.dynamics.crb import CRB
from simengine.physics.dynamics.factor_m import FACTOR_M
from simengine.physics.dynamics.rne import RNE
from simengine.physics.integration.euler import EULER
from simengine.physics.integration.rk4 import RK4
from simengine.physics.kinematics.com_pos import COM_POS
from simengine.physics.kinematics.com_vel import COM_VEL
from simengine.physics.kinematics.guard import GUARD
from simengine.physics.kinematics.kinematics import KINEMATICS
from simengine.physics.passive.fluid import FLUID
from simengine.physics.passive.passive import PASSIVE
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.physics.stage import Stage
from simengine.state.fields import FIELD, INTEGRATION_STATE, entry_shape, padded

Track = tuple[Stage, ...]
Phase = tuple[Track, ...]

TEAMS = 4
WARP = 32
MOST_WARPS = 4
"""Warps of a team: worlds in them are in the same phase, so that a multiprocessor fetches its instructions once."""


@dataclass(frozen=True)
class StepKernel(Kernel):
    """A kernel of whole steps.

    Attributes:
        phases: tracks of each phase, by team.
    """

    phases: tuple[Phase, ...] = ()
    unit: str = "step"

    def __post_init__(self) -> None:
        """Raises ValueError where the stages are not those of the phases, or tracks of a phase conflict."""
        if self.stages != tuple(stage for phase in self.phases for track in phase for stage in track):
            raise ValueError(f"kernel {self.name!r} has other stages than its phases; name them in the phases' order")
        for phase in self.phases:
            for one, other in permutations(phase, 2):
                changed = {name for stage in one for name in (*stage.writes, *stage.updates)}
                both = changed.intersection(name for stage in other for name in stage.fields)
                if both:
                    raise ValueError(f"tracks of kernel {self.name!r} meet in {sorted(both)}; put them in two phases")

    @cached_property
    def state(self) -> tuple[str, ...]:
        """Fields of the state that a step changes: near from its start to its end."""
        return tuple(name for name in self.updates if name in INTEGRATION_STATE)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Produced fields of constraint rows."""
        return tuple(name for name in self.produced if FIELD[name].space == "row")

    @cached_property
    def far(self) -> tuple[str, ...]:
        """Fields in memory of the store: contacts, and rows of worlds that have too many to be near."""
        return (*(name for name in self.produced if FIELD[name].space == "contact"), *self.rows)

    @cached_property
    def near(self) -> tuple[str, ...]:
        """Fields in shared memory."""
        made = (name for name in self.produced if FIELD[name].space in ("world", "row"))
        return (*self.updates, *made)

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Produced fields that go straight to where calls behind the kernel read them."""
        return tuple(name for name in self.produced if name not in self.near and name not in self.far)

    @cached_property
    def scratch_items(self) -> tuple[ScratchItem, ...]:
        """What is near, with its lifetime in phases; nothing alive in the same phase shares words."""
        last = len(self.phases) - 1
        items = []
        for name in self.near:
            users = [k for k, phase in enumerate(self.phases) for track in phase for s in track if name in s.fields]
            lasting = name in self.updates
            items.append(ScratchItem(name, 0 if lasting else min(users), last if lasting else max(users)))
        for k, phase in enumerate(self.phases):
            own = ((stage, name) for track in phase for stage in track for name, _ in stage.scratch)
            items += [ScratchItem(f"{stage.name}_{name}", k, k) for stage, name in own]
        return tuple(items)

    def plan_scratch(self, sizes: Mapping[str, int], nrow: int, registers: bool) -> ScratchPlan:
        """Where near fields stand for worlds of up to `nrow` rows; see `Kernel.plan_scratch`."""
        working = {f"{s.name}_{name}": dims for s in self.stages for name, dims in s.scratch}
        extra = {"nvp": padded(sizes["nv"]), "nhessian": 0 if registers else sizes["nv"] ** 2}
        sized = []
        for item in self.scratch_items:
            if item.name in working:
                words = _words(resolve(working[item.name], {**sizes, **extra}))
            else:
                words = _entry_words(item.name, sizes) * (nrow if item.name in self.rows else 1)
            sized.append((item, padded(max(1, words))))
        return place_items(sized, frozenset())

    def plan_far(self, sizes: Mapping[str, int], contacts: int, rows: int) -> ScratchPlan:
        """Where far fields of a world stand, which may have so many contacts and rows."""
        offsets, words = {}, 0
        for name in self.far:
            offsets[name] = words
            words += padded(_entry_words(name, sizes) * (contacts if FIELD[name].space == "contact" else rows))
        return ScratchPlan(offsets, words)


def _words(shape: Sequence[int]) -> int:
    number = 1
    for size in shape:
        number *= size
    return number


def _entry_words(name: str, sizes: Mapping[str, int]) -> int:
    return _words(entry_shape(FIELD[name], sizes))


def _step_kernel(integrator: Stage, fluid: bool, plain: bool) -> StepKernel:
    motion: Track = (COM_VEL, PASSIVE, FLUID, RNE) if fluid else (COM_VEL, RNE)
    forces: Track = (ACTUATION,) if fluid else (PASSIVE, ACTUATION)
    phases: tuple[Phase, ...] = (
        ((KINEMATICS, COM_POS), (GUARD,)),
        (motion, (CRB, FACTOR_M), (CONTACTS_PLAIN if plain else CONTACTS,), forces),
        ((ACCELERATION,), (), (CONSTRAINT,)),
        ((SOLVE_NEWTON_UNILATERAL, integrator),),
    )
    stages = tuple(stage for phase in phases for track in phase for stage in track)
    name = f"steps_{integrator.name}{'_fluid' if fluid else ''}{'_plain' if plain else ''}"
    return StepKernel(name, stages, phases=phases)


_KERNELS = {
    (integrator.name, fluid, plain): _step_kernel(integrator, fluid, plain)
    for integrator, fluid, plain in product((EULER, RK4), (False, True), (False, True))
}
STEP_KERNELS = tuple(_KERNELS.values())


def step_kernel(integrator: str, fluid: bool, plain: bool) -> StepKernel:
    """The kernel of steps of simple models with an integrator, "euler" or "rk4", a fluid, and plain pair types."""
    return _KERNELS[integrator, fluid, plain]
