"""Planners of whole runs: their rules on known graphs, and invariants of every plan on random lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.core.policies import StreamState
from simengine_scheduler.planning.planners import (
    PLANNERS,
    Need,
    Profile,
    Work,
    by_plan,
    kesco,
    opara,
    plan_calls,
    plan_chains,
)
from tests.scheduler.programs import Program, Spec, specs
from tests.scheduler.test_clocks import closures
from tests.scheduler.test_graphs import calls_of

LIGHT = Need("memory", 1.0, 1.0)


def work_of(before: Mapping[int, Sequence[int]], needs: Mapping[int, Need] | None = None) -> Work:
    after: dict[int, list[int]] = {}
    for seq, direct in before.items():
        for other in direct:
            after.setdefault(other, []).append(seq)
    return Work({seq: (needs or {}).get(seq, LIGHT) for seq in before}, {s: list(b) for s, b in before.items()}, after)


@settings(max_examples=50, deadline=None)
@given(specs(awaits=False), st.sampled_from(sorted(PLANNERS)), st.integers(1, 4))
def test_plans_keep_to_the_hazards(emitters: list[list[Spec]], name: str, streams: int) -> None:
    program = Program(emitters)
    calls, conflicts = calls_of(program), program.segments.conflicts
    plan = plan_calls(by_plan(PLANNERS[name], Profile()), calls, conflicts, streams)
    assert sorted(plan.order) == list(range(len(calls)))
    assert all(0 <= stream < streams for stream in plan.streams)
    place = {seq: number for number, seq in enumerate(plan.order)}
    waits = [[place[other] for other in plan.waits[seq]] for seq in plan.order]
    assert all(other < number for number, direct in enumerate(waits) for other in direct)
    behind = closures([plan.streams[seq] for seq in plan.order], waits)
    for seq in range(len(calls)):
        hazards = {place[other] for other in range(seq) if conflict(calls[other], calls[seq], conflicts)}
        assert hazards <= behind[place[seq]]
    assert sum(map(len, plan.waits)) <= plan.asked


@settings(max_examples=50, deadline=None)
@given(specs(awaits=False), st.sampled_from(sorted(PLANNERS)))
def test_chains_of_a_graph_add_no_waits(emitters: list[list[Spec]], name: str) -> None:
    calls = calls_of(program := Program(emitters))
    plan = plan_calls(by_plan(PLANNERS[name], Profile()), calls, program.segments.conflicts, max(len(calls), 1))
    waits = [set(plan.waits[seq]) for seq in range(len(calls))]
    order, rows = plan_chains(PLANNERS[name], calls, waits, Profile())
    latest: dict[int, int] = {}
    for seq in order:
        assert rows[seq] not in latest or latest[rows[seq]] in waits[seq]
        latest[rows[seq]] = seq


def test_kesco_follows_the_predecessor_with_the_fewest_successors_left() -> None:
    # 2 may follow 0 or 1, 3 only 0: 2 has to leave the end of 0 to 3, though it comes first in program order
    plan = kesco(work_of({0: [], 1: [], 2: [0, 1], 3: [0]}), StreamState.of(4))
    assert plan == [(0, 0), (1, 1), (3, 0), (2, 1)]
    # 4 may follow 2 and 3; 5 and 6 come after 3 as well, so that 2 is the one with fewer successors left
    before = {2: [], 3: [], 4: [2, 3], 5: [3], 6: [3]}
    assert dict(kesco(work_of(before), StreamState.of(8)))[4] == 0


def test_kesco_puts_calls_without_an_end_on_the_emptiest_stream() -> None:
    heavy = Need("compute", 1.0, 5.0)
    plan = dict(kesco(work_of({seq: [] for seq in range(6)}, {0: heavy}), StreamState.of(2)))
    assert [seq for seq, stream in plan.items() if stream == 0] == [0]


def test_planners_go_on_from_calls_in_flight() -> None:
    state = StreamState([1, 1, 0], [7, 8, -1], {7: 0, 8: 1}, 2)
    for planner in (kesco, opara):
        plan = dict(planner(work_of({10: [8], 11: [7], 12: []}), state))
        assert plan == {10: 1, 11: 0, 12: 2}
        assert state == StreamState([1, 1, 0], [7, 8, -1], {7: 0, 8: 1}, 2)


def test_opara_claims_the_first_free_predecessor() -> None:
    plan = dict(opara(work_of({0: [], 1: [0], 2: [0], 3: [1, 2], 4: [1]}), StreamState.of(8)))
    # 1 claims 0, so 2 has a stream of its own; 3 claims 1, so 4 has one as well
    assert plan == {0: 0, 1: 0, 2: 1, 3: 0, 4: 2}


def test_opara_alternates_between_memory_and_compute_the_least_demanding_first() -> None:
    needs = {seq: Need("compute" if seq < 3 else "memory", demand, 1.0) for seq, demand in enumerate([3, 1, 2, 9, 8])}
    order = [seq for seq, _ in opara(work_of({seq: [] for seq in range(5)}, needs), StreamState.of(8))]
    assert order == [4, 1, 3, 2, 0]
    chained = work_of({0: [], 1: [0], 2: [], 3: [2], 4: []}, needs)
    order = [seq for seq, _ in opara(chained, StreamState.of(8))]
    assert order == [4, 2, 3, 0, 1]
