"""`StepKernel`: one GPU kernel for whole steps, used for few worlds.

A block works on one world with several warps, its *teams*. If there are more worlds than multiprocessors, it works on
several worlds, each of which has its own warp or group of lanes in every team. An evaluation of the dynamics is a
sequence of phases with a barrier of the block after each. In a phase every team runs the stages of its *track*. Tracks
of one phase must not conflict by the declarations of their stages. A window applies the same rule to calls at run time.

    phase    team 0                 team 1           team 2        team 3
    1        kinematics, com_pos    guard
    2        com_vel, rne           crb              contacts      passive, actuation
    3        acceleration                            constraint
    4        solve, integrator

With a fluid, its drag is added to the passive forces, so the first team computes these too, before the drag.

Worlds do not depend on each other, so no block waits for another. The fields that evaluations produce stay in shared
memory (`shared_fields`), except contacts, and the rows of worlds with many rows, which are in global memory
(`global_fields`). The stages are the same as in other kernels, and so are the bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

from simengine.kernels.kernel import Kernel
from simengine.kernels.placing import ScratchItem, ScratchPlan, place_items
from simengine.model.table import resolve
from simengine.physics.actuation.actuation import ACTUATION
from simengine.physics.collision.contacts import CONTACTS, CONTACTS_PLAIN
from simengine.physics.constraints.constraint import CONSTRAINT
from simengine.physics.dynamics.acceleration import ACCELERATION_WIDE
from simengine.physics.dynamics.crb import CRB
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
from simengine.state.fields import FIELD, INTEGRATION_STATE, ROW_SPACES, entry_shape, padded

Track = tuple[Stage, ...]
Phase = tuple[Track, ...]

TEAMS = 4
WARP = 32
MOST_WARPS = 4
"""Most warps of a team; they run the same phase, so that a multiprocessor fetches its instructions once."""


@dataclass(frozen=True)
class StepKernel(Kernel):
    """A kernel of whole steps.

    Attributes:
        phases: tracks of each phase, by team.
    """

    phases: tuple[Phase, ...] = ()
    unit: str = "step"

    __hash__ = Kernel.__hash__

    def __post_init__(self) -> None:
        """Check the phases; raises ValueError if the stages are not those of the phases, or if tracks conflict."""
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
        """Fields of the state that a step changes; they are in shared memory from its start to its end."""
        return tuple(name for name in self.updates if name in INTEGRATION_STATE)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Produced fields of constraint rows."""
        return tuple(name for name in self.produced if FIELD[name].space in ROW_SPACES)

    @cached_property
    def global_fields(self) -> tuple[str, ...]:
        """Fields in global memory: contacts, and rows of worlds with too many for shared memory."""
        return (*(name for name in self.produced if FIELD[name].space == "contact"), *self.rows)

    @cached_property
    def shared_fields(self) -> tuple[str, ...]:
        """Fields in shared memory."""
        made = (name for name in self.produced if FIELD[name].space in ("world", *ROW_SPACES))
        return (*self.updates, *made)

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Produced fields that are written to global memory directly, for the kernels that follow."""
        return tuple(
            name for name in self.produced if name not in self.shared_fields and name not in self.global_fields
        )

    @cached_property
    def scratch_items(self) -> tuple[ScratchItem, ...]:
        """Items in shared memory with their lifetimes in phases; items live in the same phase share no words."""
        last = len(self.phases) - 1
        items = []
        for name in self.shared_fields:
            users = [k for k, phase in enumerate(self.phases) for track in phase for s in track if name in s.fields]
            lasting = name in self.updates
            items.append(ScratchItem(name, 0 if lasting else min(users), last if lasting else max(users)))
        for k, phase in enumerate(self.phases):
            own = ((stage, name) for track in phase for stage in track for name, _ in stage.scratch)
            items += [ScratchItem(f"{stage.name}_{name}", k, k) for stage, name in own]
        return tuple(items)

    def plan_scratch(self, sizes: Mapping[str, int], nrow: int, registers: bool) -> ScratchPlan:
        """Offsets in shared memory, for worlds of up to `nrow` rows; see `Kernel.plan_scratch`."""
        working = {f"{s.name}_{name}": dims for s in self.stages for name, dims in s.scratch}
        extra = {"nvp": padded(sizes["nv"]), "nhessian": 0 if registers else sizes["nv"] ** 2}
        lengths = []
        for item in self.scratch_items:
            if item.name in working:
                words = _words(resolve(working[item.name], {**sizes, **extra}))
            else:
                words = _entry_words(item.name, sizes) * (nrow if item.name in self.rows else 1)
            lengths.append(padded(max(1, words)))
        return place_items(self.scratch_items, tuple(lengths), frozenset())

    def plan_global(self, sizes: Mapping[str, int], contacts: int, rows: int) -> ScratchPlan:
        """Offsets in a world's part of global memory, for up to that many contacts and rows."""
        offsets, words = {}, 0
        for name in self.global_fields:
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
        (motion, (CRB,), (CONTACTS_PLAIN if plain else CONTACTS,), forces),
        ((ACCELERATION_WIDE,), (), (CONSTRAINT,)),
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
    """The kernel for steps of simple models: integrator "euler" or "rk4"; with or without fluid, plain pair types."""
    return _KERNELS[integrator, fluid, plain]
