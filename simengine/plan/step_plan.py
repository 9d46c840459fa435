"""`StepPlan`: what a step of a group of worlds needs on a backend, decided once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco

from simengine.backends.base import LANE_CLASSES, Backend, StepShape
from simengine.kernels.functions import Build
from simengine.kernels.kernel import Kernel
from simengine.kernels.placing import ScratchPlan
from simengine.kernels.step_kernel import StepKernel
from simengine.model.model_table import ModelTable
from simengine.physics.solvers.solve_newton_general import SOLVE_NEWTON_GENERAL
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.physics.solvers.solve_pgs import SOLVE_PGS
from simengine.plan.contact_kernels import SCAN_KERNEL
from simengine.plan.evaluation import Evaluation, plan_evaluation
from simengine.plan.islands import most_dense_dofs
from simengine.plan.issue import Issue, Issuing, waits_for_counts
from simengine.plan.launches import Launch
from simengine.plan.scratch import lanes_of_islands, lanes_of_world, scratch_plan, works_in_blocks
from simengine.plan.selection import (
    FEWEST_ENTRIES_OF_A_BLOCK,
    FEWEST_PAIRS_OF_A_BLOCK,
    FEWEST_PAIRS_OF_A_WARP,
    FEWEST_PAIRS_OF_FEW_WORLDS,
    SPREAD_WORLDS,
    Selection,
)
from simengine.plan.step_kernels import MAX_GLOBAL_BYTES, StepMemory, step_kernel_for, step_memory
from simengine.plan.text import ISSUED, evaluation_facts, phases, plan_text
from simengine.plan.tiles import LEAST_WORLDS
from simengine.state.fields import SENSED
from simengine.state.island_fields import ISLAND_CLASSES

_ALONG_BRANCHES = (SOLVE_NEWTON_UNILATERAL.name, SOLVE_NEWTON_GENERAL.name)
"""Solvers that need no dense matrices."""

_PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)


@dataclass(frozen=True)
class StepPlan:
    """What a step of a group needs: kernels and their forms, shards, and how calls are issued.

    Attributes:
        model: model of the worlds.
        backend: runs the calls.
        dtype: "float32" or "float64".
        bounds: first world of each shard, and the number of worlds at the end.
        issuing: the decision for the batch.
        neighbours: number of worlds of each group of the batch, this one included, that has a kernel of whole steps.
    """

    model: ModelTable
    backend: Backend
    dtype: str
    bounds: tuple[int, ...]
    issuing: Issuing
    neighbours: tuple[int, ...] = ()

    @property
    def num_worlds(self) -> int:
        """Number of worlds of the group."""
        return self.bounds[-1]

    @property
    def shard_sizes(self) -> list[int]:
        """Number of worlds of each shard."""
        return [end - begin for begin, end in zip(self.bounds, self.bounds[1:], strict=False)]

    @property
    def word(self) -> int:
        """Bytes of a real number."""
        return 4 if self.dtype == "float32" else 8

    @property
    def issue(self) -> Issue:
        """How steps are issued."""
        return self.issuing.issue

    @property
    def can_go_ahead(self) -> bool:
        """Whether steps may be issued ahead of counts.

        No worker of the executor `device` can have the bodies of large islands beside those of worlds.
        """
        by_workers = self.issuing.executor == "device" and self.model.has_islands
        return not by_workers and not waits_for_counts(self.model)

    @property
    def goes_ahead(self) -> bool:
        """Whether steps that are issued kernel by kernel go ahead of counts."""
        return self.issue.is_ahead and self.can_go_ahead

    @property
    def evaluations(self) -> int:
        """Number of evaluations in a step."""
        return 4 if self.model.opt_integrator == "rk4" else 1

    @cached_property
    def lanes(self) -> int:
        """Number of lanes that work on a world."""
        return lanes_of_world(self.model, self.backend)

    @cached_property
    def island_lanes(self) -> tuple[int, ...]:
        """Number of lanes that work on an island of each size class; empty if worlds are not solved by islands."""
        return lanes_of_islands(self.model, self.backend)

    @cached_property
    def step_kernel(self) -> StepKernel | None:
        """The kernel of whole steps; None unless steps are issued so, the model is simple and the worlds fit a GPU."""
        kernel = step_kernel_for(self.model)
        if kernel is None or self.issue is not Issue.STEP_KERNEL or self._step_shape(0) is None:
            return None
        memory = step_memory(kernel, self.model, self.backend, self.word)
        fits = self.word * memory.in_global.words * self.num_worlds <= MAX_GLOBAL_BYTES
        return kernel if fits and self._step_shape(memory.scratch) else None

    @cached_property
    def step_memory(self) -> StepMemory:
        """The memory of one world in the kernel of whole steps, which the plan must have."""
        assert self.step_kernel is not None
        return step_memory(self.step_kernel, self.model, self.backend, self.word)

    @property
    def step_shape(self) -> StepShape:
        """How worlds share blocks in the kernel of whole steps, which the plan must have."""
        shape = self._step_shape(self.step_memory.scratch)
        assert shape is not None
        return shape

    def _step_shape(self, scratch_bytes: int) -> StepShape | None:
        """The shape with so many bytes of shared memory for a world; None if the worlds are too many even with none."""
        return self.backend.step_shape(sum(self.neighbours), len(self.neighbours), self.lanes, scratch_bytes)

    @cached_property
    def _evaluations(self) -> dict[tuple[int, str, int, frozenset[str], bool], Evaluation]:
        """The evaluations that were planned, which shards of one size share."""
        return {}

    def evaluation(
        self, worlds: int, integrator: str, rk_stage: int, wanted: frozenset[str], ahead: bool
    ) -> Evaluation:
        """The plan of one evaluation of a shard.

        Args:
            worlds: number of worlds in the shard.
            integrator: name of the integrator, or empty to integrate nothing.
            rk_stage: index of the evaluation in a Runge-Kutta step; 0 for other integrators.
            wanted: derived fields that must be valid in memory afterwards.
            ahead: whether calls are issued ahead of counts.
        """
        key = (worlds, integrator, rk_stage, wanted, ahead)
        if key not in self._evaluations:
            selection = Selection(self.model, worlds, integrator, wanted, ahead, *self._forms)
            self._evaluations[key] = plan_evaluation(selection, rk_stage)
        return self._evaluations[key]

    @cached_property
    def _forms(self) -> tuple[Any, ...]:
        """The attributes of `Selection`, from `matrix_rows` on, that all evaluations share."""
        model, matrix, dual, branches, warps = self.model, 0, 0, False, False
        pushing = model.solver == SOLVE_NEWTON_UNILATERAL.name
        warp = self.backend.matrix_rows(most_dense_dofs(model, ISLAND_CLASSES[-1]), self.dtype) if pushing else 0
        block = self.backend.block_rows(most_dense_dofs(model, model.nv), self.dtype) if pushing else 0
        if not model.has_islands:
            matrix = self.backend.matrix_rows(model.nv, self.dtype)
            by_rows = model.solver == SOLVE_PGS.name and model.opt_cone == _PYRAMIDAL
            dual = self.backend.dual_rows(model.nv, self.dtype) if by_rows else 0
            warps = model.solver == SOLVE_NEWTON_GENERAL.name and self.backend.solves_by_warps(model.nv, self.dtype)
            branches = model.solver in _ALONG_BRANCHES and self.backend.along_branches(model.nv)
        by_stages = self.issuing.by_stages
        tiles = self.backend.name == "host" and max(self.shard_sizes) >= LEAST_WORLDS and not by_stages
        spreads = self.backend.name == "cuda" and not by_stages
        few = max(self.shard_sizes) <= SPREAD_WORLDS
        fewest = min(FEWEST_PAIRS_OF_A_BLOCK, FEWEST_PAIRS_OF_FEW_WORLDS) if few else FEWEST_PAIRS_OF_A_BLOCK
        by_block = spreads and not model.nhfield and model.sizes["ncand"] >= fewest
        counting = spreads and self.lanes < LANE_CLASSES[-1]
        by_warp = counting and not model.finds_pairs and model.sizes["ncand"] >= FEWEST_PAIRS_OF_A_WARP
        culls = spreads and model.nmeeting > 0 and not model.finds_pairs and not works_in_blocks(model)
        counts = by_block, spreads, by_warp, culls
        lengths = self._has_lengths_by_block
        of_stages = by_stages, self.backend.name == "cuda"
        return matrix, warp, block, dual, tiles, branches, lengths, warps, *counts, spreads, spreads, *of_stages

    @property
    def _has_lengths_by_block(self) -> bool:
        """Whether a block works on the tendons and actuators of a world: on a GPU, if there are many."""
        model, warps = self.model, self.backend.name == "cuda" and self.lanes == LANE_CLASSES[-1]
        whole = model.has_islands or model.has_adhesion or self.issuing.by_stages
        many = model.sizes["nJten"] + model.sizes["nJmom"] >= FEWEST_ENTRIES_OF_A_BLOCK
        return warps and many and model.general_smooth and not whole

    def scratch_plan(self, kernel: Kernel, nv: int, nrow: int) -> ScratchPlan:
        """The offsets of a kernel's scratch items, for units of up to `nv` dofs and `nrow` constraint rows."""
        key = (kernel, nv, nrow)
        if key not in self._scratch_plans:
            self._scratch_plans[key] = scratch_plan(kernel, {**self.model.sizes, "nv": nv}, nrow, self.backend)
        return self._scratch_plans[key]

    @cached_property
    def _scratch_plans(self) -> dict[tuple[Kernel, int, int], ScratchPlan]:
        return {}

    def step(self, worlds: int, wanted: frozenset[str], ahead: bool) -> tuple[Evaluation, ...]:
        """Plan the evaluations of a step of a shard.

        Args:
            worlds: number of worlds in the shard.
            wanted: derived fields that must be valid in memory after the step.
            ahead: whether calls are issued ahead of counts.
        """
        integrator = self.model.opt_integrator
        return tuple(
            self.evaluation(worlds, integrator, stage, self.wanted_of(wanted, stage), ahead)
            for stage in range(self.evaluations)
        )

    def beyond(self, space: str, worlds: int) -> int:
        """The number of constraint rows up to which worlds have no entries in an arena, in steps of a shard."""
        steps = self.step(worlds, frozenset(), self.goes_ahead)
        return min(step.scalars.get(f"{space}_beyond", 0) for step in steps)

    def wanted_of(self, wanted: frozenset[str], rk_stage: int) -> frozenset[str]:
        """The wanted fields that an evaluation of a step must store.

        Sensor values come from the first evaluation, other fields from the last.
        """
        sensed = wanted & SENSED if rk_stage == 0 else frozenset[str]()
        return sensed | (wanted - SENSED if rk_stage == self.evaluations - 1 else frozenset())

    def kernels(self, wanted: frozenset[str]) -> tuple[Kernel, ...]:
        """Kernels that the kernel lists of the group's steps launch, each once."""
        ahead = self.goes_ahead
        evaluations = [e for size in set(self.shard_sizes) for e in self.step(size, wanted, ahead)]
        return tuple(dict.fromkeys(kernel for evaluation in evaluations for kernel in evaluation.kernels))

    def builds(self) -> tuple[Build, ...]:
        """What steps without wanted fields need compiled, each once."""
        if self.step_kernel is not None:
            return tuple(Build(kernel, self.lanes) for kernel in (self.step_kernel, SCAN_KERNEL))
        ahead = self.goes_ahead
        evaluations = (e for size in set(self.shard_sizes) for e in self.step(size, frozenset(), ahead))
        launches = (item for evaluation in evaluations for item in evaluation.launches if isinstance(item, Launch))
        return tuple(dict.fromkeys(Build(item.kernel, self._lanes_of(item)) for item in launches))

    def _lanes_of(self, launch: Launch) -> int:
        return self.lanes if launch.island_class is None else self.island_lanes[launch.island_class]

    def facts(self, wanted: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The plan as plain values: how steps are split and issued, and the launches of each evaluation.

        Args:
            wanted: derived fields that must be valid after a step.
        """
        issue = self.issue if self.step_kernel or self.issue is not Issue.STEP_KERNEL else Issue.AHEAD
        issue = issue if self.can_go_ahead or not issue.is_ahead else Issue.COUNTED
        kernel = self.step_kernel
        return {
            "model": self.model.name,
            "worlds": self.num_worlds,
            "backend": self.backend.name,
            "dtype": self.dtype,
            "executor": self.issuing.executor,
            "issue": issue.value,
            "issued": ISSUED[issue],
            "shards": self.shard_sizes,
            "lanes": self.lanes,
            "integrator": self.model.opt_integrator,
            "solver": self.model.solver,
            **({"step_kernel": {"name": kernel.name, "phases": phases(kernel)}} if kernel else {}),
            "evaluations": evaluation_facts(self.step(max(self.shard_sizes), wanted, issue.is_ahead)),
        }

    def __str__(self) -> str:
        return plan_text(self.facts())


def has_step_kernel(model: ModelTable) -> bool:
    """Whether there is a kernel of whole steps for a model."""
    return step_kernel_for(model) is not None


def plan_step(
    model: ModelTable,
    num_worlds: int,
    backend: Backend,
    dtype: str,
    issuing: Issuing,
    shards: int | None = None,
    neighbours: Sequence[int] = (),
    share: float = 1.0,
) -> StepPlan:
    """Decide the plan of a group.

    Args:
        model: model of the worlds.
        num_worlds: number of worlds.
        backend: runs the calls.
        dtype: "float32" or "float64".
        issuing: the decision for the batch.
        shards: number of shards; None lets the backend choose. There is at most one shard for each world.
        neighbours: number of worlds of each group of the batch, this one included, that has a kernel of whole steps.
        share: the group's share of the work of the batch, roughly.
    """
    wanted = shards or backend.shards_for(num_worlds, issuing.executor, issuing.emission, share)
    count = min(num_worlds, wanted)
    bounds = tuple(num_worlds * i // count for i in range(count + 1))
    return StepPlan(model, backend, dtype, bounds, issuing, tuple(neighbours))
