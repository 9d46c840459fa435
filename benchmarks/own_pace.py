"""`OwnPace`: robots that step, learn and are reset in lists of their own, so that none waits for another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import simengine
from benchmarks.evolution import CudaLearners, HostLearners
from simengine_scheduler import KernelCall
from simengine_scheduler.core import Item


class OwnPace:
    """Lists of robots, for `Schedule.run_lists`.

    Args:
        sim: has a group for each robot.
        learners: of the robots.
        frames: steps of the simulation in one of a robot.
        lengths: steps of an episode of each robot.
    """

    def __init__(
        self, sim: simengine.Simulation, learners: CudaLearners | HostLearners, frames: int, lengths: Sequence[int]
    ) -> None:
        schedule = sim.schedule
        self._lengths = lengths
        self._since = [0] * len(lengths)
        self._steps = [schedule.steps(group, frames) for group in sim.groups]
        self._launches = [learners.launches(number) for number in range(len(lengths))]
        self._policies = [schedule.segments.intern("policy", number) for number in range(len(lengths))]
        self._seen = [schedule.segments_of(group, "qpos", "qvel") for group in sim.groups]
        self._acts, self._resets = list[KernelCall](), list[KernelCall]()
        for number, group in enumerate(sim.groups):
            reads, launches = (*self._seen[number], self._policies[number]), self._launches[number]
            self._acts.append(KernelCall("act", launches.act, reads, schedule.segments_of(group, "ctrl")))
            self._resets.append(KernelCall("reset", launches.reset, (), schedule.segments_of(group)))

    def lists(self, absent: Sequence[Sequence[bool]]) -> list[Iterator[Item]]:
        """The list of each robot for some steps, of which each row says which robots leave it out."""
        return [self._list(number, [row[number] for row in absent]) for number in range(len(self._lengths))]

    def _list(self, number: int, absent: Sequence[bool]) -> Iterator[Item]:
        act, steps = self._acts[number], self._steps[number]
        for left_out in absent:
            if left_out:
                continue
            yield act
            yield from steps
            self._since[number] += 1
            if self._since[number] == self._lengths[number]:
                yield KernelCall(
                    "learn", self._launches[number].learn(), self._seen[number], (), (self._policies[number],)
                )
                yield self._resets[number]
                self._since[number] = 0
