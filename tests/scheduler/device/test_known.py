"""What the host works out of a list: waits without those that others imply, and chains of calls that a block runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine_scheduler import KernelCall, Options, Segments, validate
from simengine_scheduler.core.hazards import conflict, conflict_whole
from simengine_scheduler.device.chains import Chain, chains_of, most_at_once
from simengine_scheduler.device.known_image import build_known_image
from simengine_scheduler.device.occupancy import Multiprocessors
from simengine_scheduler.device.upstream import Wait, upstream_of
from simengine_scheduler.device.workers import Kind, Worker, just_these
from simengine_scheduler.launch.tasks import DeviceBody
from simengine_scheduler.testing.threaded_device import PythonBody, ThreadedDevice
from tests.scheduler.device.programs import Program, random_program


def parts_of(program: Program) -> list[int]:
    tasks = [call.launch.task for call in program.calls]  # type: ignore[attr-defined]
    parts = [
        task.tiling.parts(task.tiles) if call.tiled else 0 for call, task in zip(program.calls, tasks, strict=True)
    ]
    return [own if own <= task.tiles else 0 for own, task in zip(parts, tasks, strict=True)]


def closed(waits: Sequence[Sequence[Wait]]) -> list[dict[int, bool]]:
    """For each call all that it comes after, and whether it comes after all tiles of it."""
    found: list[dict[int, bool]] = []
    for own in waits:
        after: dict[int, bool] = {}
        for wait in own:
            after[wait.call] = after.get(wait.call, False) or wait.whole
            for other, whole in found[wait.call].items():
                after[other] = after.get(other, False) or whole or wait.whole
        found.append(after)
    return found


@given(seed=st.integers(0, 2**32))
def test_waits_lead_to_every_call_with_a_hazard_and_to_no_other(seed: int) -> None:
    program = random_program(seed, length=14, tiled=0.8)
    calls, conflicts, parts = program.calls, program.segments.conflicts, parts_of(program)
    waits = upstream_of(calls, parts, conflicts)
    after = closed(waits)
    for later, b in enumerate(calls):
        for earlier, a in enumerate(calls[:later]):
            if not conflict(a, b, conflicts):
                assert earlier not in [wait.call for wait in waits[later]]
                continue
            alike = parts[earlier] == parts[later] > 0
            whole = not alike or conflict_whole(a, b, conflicts)
            assert earlier in after[later]
            assert after[later][earlier] or not whole


@given(seed=st.integers(0, 2**32))
def test_no_wait_is_implied_by_the_others(seed: int) -> None:
    program = random_program(seed, length=12, tiled=0.8)
    waits = upstream_of(program.calls, parts_of(program), program.segments.conflicts)
    before = closed(waits)
    for call, own in enumerate(waits):
        for wait in own:
            without = [*waits[:call], [other for other in own if other != wait]]
            after = closed(without)[call]
            assert wait.call not in after or (wait.whole and not after[wait.call])
        assert set(before[call]) <= set(range(call))


def waits_at_random(draw: st.DrawFn) -> tuple[list[list[Wait]], list[int | None]]:
    """Waits of calls for earlier ones, and kinds."""
    length = draw(st.integers(1, 14))
    waits = [
        [
            Wait(other, draw(st.booleans()))
            for other in sorted(draw(st.sets(st.integers(0, call - 1), max_size=3)), reverse=True)
        ]
        if call
        else []
        for call in range(length)
    ]
    return waits, draw(st.lists(st.sampled_from((0, 1, None)), min_size=length, max_size=length))


@given(drawn=st.composite(waits_at_random)())
def test_chains_have_every_call_once_and_come_after_what_they_wait_for(
    drawn: tuple[list[list[Wait]], list[int | None]],
) -> None:
    waits, kinds = drawn
    chains = chains_of(waits, kinds)
    assert sorted(call for chain in chains for call in chain.calls) == list(range(len(waits)))
    place = {call: number for number, chain in enumerate(chains) for call in chain.calls}
    for number, chain in enumerate(chains):
        assert len({kinds[call] for call in chain.calls}) == 1
        assert kinds[chain.calls[0]] is not None or len(chain.calls) == 1
        for call in chain.calls:
            for wait in waits[call]:
                assert place[wait.call] <= number
                if place[wait.call] == number:  # the block itself has run that tile
                    assert not wait.whole
                    assert chain.calls.index(wait.call) < chain.calls.index(call)
                else:
                    assert chains[place[wait.call]].begins < chain.begins


def test_of_several_calls_the_one_from_which_most_follow_goes_on() -> None:
    by_parts = [Wait(0, False)]
    waits = [[], by_parts, by_parts, [Wait(2, True)]]
    chains = chains_of(waits, [0, 0, 0, 0])
    assert [chain.calls for chain in chains] == [(0, 2), (1,), (3,)]


def test_chains_do_not_wait_for_each_other_in_a_circle() -> None:
    """0 -> 1 -> 3 by parts, and 0 -> 2 -> 3: if 3 went on from 1, the chain would wait for 2, which waits for it."""
    waits = [[], [Wait(0, False)], [Wait(0, True)], [Wait(2, True), Wait(1, False)]]
    assert [chain.calls for chain in chains_of(waits, [0, 0, 1, 0])] == [(0, 1), (2,), (3,)]


@pytest.mark.parametrize(("begins", "most"), [((0, 0), 7), ((0, 1), 7), ((0, 2), 4)])
def test_how_many_blocks_chains_take_at_once(begins: tuple[int, int], most: int) -> None:
    chains = [Chain((0, 1), begins[0]), Chain((2,), begins[1])]
    assert most_at_once(chains, [4, 4, 3]) == most


def test_blocks_are_as_many_as_work_and_wait_at_once() -> None:
    program = random_program(5, length=60)
    image = build_known_image(program.calls, program.segments.conflicts, Multiprocessors())
    for of in image.classes:
        tiles = sum(int(image.tasks[start["call"]]["tiles"]) for start in of.tickets)
        assert 0 < of.blocks < tiles


def test_bodies_of_several_classes_are_one_where_it_has_room_for_all_at_once() -> None:
    program = random_program(5, length=60)
    given = program.calls, program.segments.conflicts
    assert len(build_known_image(*given, Multiprocessors()).classes) == 2
    (one,) = build_known_image(*given, Multiprocessors(), together=True).classes
    assert one.kind.merged
    assert one.kind.known
    assert len(build_known_image(*given, Multiprocessors(number=1, threads=128), together=True).classes) == 2


def test_bodies_that_cannot_share_blocks_have_classes_of_their_own() -> None:
    program = random_program(5, length=60)

    def workers_of(wanted: dict[Kind, frozenset[DeviceBody]]) -> dict[Kind, Worker]:
        if any(kind.merged for kind in wanted):
            raise ValueError("a body waits for all threads of its block")
        return just_these(wanted)

    image = build_known_image(
        program.calls, program.segments.conflicts, Multiprocessors(), workers_of=workers_of, together=True
    )
    assert [of.kind.merged for of in image.classes] == [False, False]


def test_bodies_of_several_warps_and_fewer_than_others_are_not_asked_whether_they_can_share_blocks() -> None:
    """They mostly have a barrier, and to look for it takes as long as to link a worker."""
    segments = Segments()
    calls = [
        KernelCall(f"of {threads}", PythonBody(print, threads=threads), (), (segments.intern(str(threads)),))
        for threads in (32, 64, 128)
    ]

    def classes(*calls: KernelCall) -> list[int]:
        image = build_known_image(calls, segments.conflicts, Multiprocessors(), together=True)
        return [of.kind.threads for of in image.classes]

    assert classes(*calls) == [128, 64, 32]
    assert classes(calls[0], calls[2]) == [128]


@pytest.mark.parametrize("seed", range(6))
def test_lists_of_one_class_for_all_leave_what_serial_leaves(seed: int) -> None:
    program = random_program(seed)
    options = Options(segments=program.segments, record="times", hazards="host", watchdog=30.0)
    trace = ThreadedDevice(options, workers=3, together=True).run([program.calls])
    got = program.data.copy()
    assert validate(trace.order, trace, program.segments) == []
    np.testing.assert_array_equal(got, program.expected(trace.order))
