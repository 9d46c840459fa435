"""Images of lists: words of segments, tickets, resource classes; and grids of workers that fit together."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import KernelCall, PythonLaunch, Segments
from simengine_scheduler.core.hazards import conflict, conflict_whole
from simengine_scheduler.device import words
from simengine_scheduler.device.image import STRIDE, Image, build_image, window_memory
from simengine_scheduler.device.occupancy import Multiprocessors, Need, joint_grids
from simengine_scheduler.device.words import WordTable
from simengine_scheduler.device.workers import Kind
from simengine_scheduler.testing.threaded_device import PythonBody
from tests.scheduler.device.programs import random_program

SMALL = Multiprocessors(number=2)


def hazard(image: Image, later: int, earlier: int) -> int:
    """What run_window finds: 0 none, 1 tiles of one part, 2 the whole; computed from the words as it does."""

    def bits(task: int) -> dict[int, np.void]:
        first, count = (int(image.tasks[task][name]) for name in ("first_word", "num_words"))
        return {int(word["at"]): word for word in image.words[first : first + count]}

    mine, theirs = bits(later), bits(earlier)
    any_, whole = 0, 0
    for at, word in mine.items():
        if at in theirs:
            other = theirs[at]
            any_ |= int(word["against_written"] & other["written"]) | int(word["against_touched"] & other["touched"])
            whole |= int(word["against_written_whole"] & other["written"])
            whole |= int(word["against_touched_whole"] & other["touched"])
            whole |= int(word["touched"] & other["written_whole"]) | int(word["written"] & other["touched_whole"])
    return 2 if whole else 1 if any_ else 0


@given(seed=st.integers(0, 2**32))
def test_words_say_what_the_pairwise_definition_says(seed: int) -> None:
    program = random_program(seed, length=12)
    conflicts = program.segments.conflicts
    image = build_image(program.calls, conflicts, SMALL, 32)
    for later, b in enumerate(program.calls):
        for earlier, a in enumerate(program.calls[:later]):
            wanted = 2 if conflict_whole(a, b, conflicts) else 1 if conflict(a, b, conflicts) else 0
            assert hazard(image, later, earlier) == wanted


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), most=st.sampled_from((1, 3, 2048)))
def test_words_of_earlier_lists_are_those_of_lists_that_follow(seed: int, most: int) -> None:
    """Lists of some of the calls, one after another. Then segments are interned that conflict with known ones."""
    program = random_program(seed, length=12)
    segments, draw = program.segments, random.Random(seed)
    known = WordTable(segments.conflicts)
    calls = list(program.calls)
    for number in range(6):
        if number == 3:
            new = [segments.intern(f"field{i}", partition=("part", i)) for i in range(3)]
            calls += [KernelCall(f"new{s}", PythonBody(print), (), (s,)) for s in new]
        chosen = sorted(draw.sample(range(len(calls)), draw.randint(0, len(calls))))
        listed = [calls[i] for i in chosen]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(words, "_MOST", most)
            image = build_image(listed, segments.conflicts, SMALL, 32, known_words=known) if listed else None
        for later, b in enumerate(listed):
            for earlier, a in enumerate(listed[:later]):
                pair = (a, b, segments.conflicts)
                assert image is not None
                assert hazard(image, later, earlier) == (2 if conflict_whole(*pair) else 1 if conflict(*pair) else 0)


def test_members_of_a_family_do_not_conflict_and_each_does_with_the_whole() -> None:
    segments = Segments()
    # more than a word of other segments between them
    whole = segments.intern("x")
    others = [segments.intern(f"y{i}") for i in range(40)]
    parts = [segments.intern("x", partition=("size", i)) for i in range(2)]
    touched = [(), (whole,), *((part,) for part in parts), (whole,)]
    calls = [KernelCall("others", PythonBody(print), tuple(others), ())]
    calls += [KernelCall(f"c{i}", PythonBody(print), (), ids) for i, ids in enumerate(touched)]
    image = build_image(calls, segments.conflicts, SMALL, 32)
    assert [hazard(image, 3, 4), hazard(image, 4, 3), hazard(image, 3, 2), hazard(image, 5, 3)] == [0, 0, 2, 2]


def test_every_tile_has_one_ticket_in_program_order() -> None:
    segments = Segments()
    tiles = [1, 1000, 3]
    calls = [KernelCall(f"c{i}", PythonBody(print, n), (), (segments.intern(f"x{i}"),)) for i, n in enumerate(tiles)]
    image = build_image(calls, segments.conflicts, SMALL, 32)
    (only,) = image.classes
    assert only.tickets["task"].tolist() == sorted(only.tickets["task"].tolist())
    for i, n in enumerate(tiles):
        first = only.tickets["first"][only.tickets["task"] == i]
        run = int(image.tasks["run"][i])
        assert [t for f in first for t in range(f, min(f + run, n))] == list(range(n))
        assert image.state[image.remaining + i * STRIDE] == len(first)
    assert len(only.tickets) < 200


def test_a_merged_list_has_one_class_that_fits_every_body_and_the_window() -> None:
    segments = Segments()
    kinds = [(32, 200, 100), (128, 64, 5000), (64, 64, 0)]
    calls = [
        KernelCall(
            f"c{i}",
            PythonBody(print, 3, threads=threads, registers=registers, memory=memory),
            (),
            (segments.intern(f"x{i}"),),
        )
        for i, (threads, registers, memory) in enumerate(kinds)
    ]
    image = build_image(calls, segments.conflicts, SMALL, 32, merged=True)
    (only,) = image.classes
    assert only.kind == Kind(128, 200, "", True)
    assert only.memory == 5000
    # one more than there are tiles: a block is the window for as long as it admits
    assert only.blocks == min(10, SMALL.number * (65536 // (128 * 200)))
    assert sorted(image.tasks["body"].tolist()) == [0, 1, 2]
    wide = build_image(calls, segments.conflicts, SMALL, 512, merged=True)
    assert wide.classes[0].memory == window_memory(wide.num_words, 512, wide.most_words) > 5000


def test_a_merged_list_needs_room_for_two_blocks() -> None:
    segments = Segments()
    call = KernelCall("c", PythonBody(print, 9), (), (segments.intern("x"),))
    with pytest.raises(ValueError, match="merged=True needs room for two blocks of workers"):
        build_image([call], segments.conflicts, Multiprocessors(number=1, blocks=1), 32, merged=True)


def test_a_launch_without_a_body_is_refused_by_name() -> None:
    segments = Segments()
    call = KernelCall("plain", PythonLaunch(print), (), (segments.intern("x"),))
    with pytest.raises(ValueError, match="executor 'device' cannot run call 'plain', whose launch has no body"):
        build_image([call], segments.conflicts, SMALL, 32)


@given(
    needs=st.lists(
        st.builds(
            Need, st.sampled_from((32, 128, 256)), st.integers(16, 255), st.integers(0, 60000), st.integers(1, 10**5)
        ),
        min_size=1,
        max_size=3,
    )
)
def test_grids_fit_together(needs: list[Need]) -> None:
    device = Multiprocessors(number=3)
    try:
        grids = joint_grids(needs, device)
    except ValueError:
        return
    blocks = [-(-grid // device.number) for grid in grids]
    for room, of in (
        (device.registers, lambda n: n.threads * n.registers),
        (device.shared, lambda n: n.shared + 1024),
        (device.threads, lambda n: n.threads),
        (device.blocks, lambda n: 1),
    ):
        assert sum(n * of(need) for n, need in zip(blocks, needs, strict=True)) <= room
    assert all(1 <= grid <= max(1, need.work) for grid, need in zip(grids, needs, strict=True))


def test_warps_find_registers_in_one_partition() -> None:
    """A block of columns takes 3072 registers of each partition, a worker 5376 of one: by sums nine would fit."""
    of_columns, worker = Need(128, 96, 0, 468), Need(32, 168, 0, 2000)
    device = Multiprocessors()
    grids = joint_grids([of_columns, worker, worker, worker], device)
    warps = sum(grid // device.number for grid in grids[1:])
    assert grids[0] == device.number
    assert warps == 8  # 10 240 registers of the 65 536 are left, 2560 in each partition
    assert min(grids[1:]) >= 2 * device.number


def test_one_multiprocessor_gets_fewer_blocks_beside_the_window() -> None:
    device, worker = Multiprocessors(), Need(32, 168, 0, 10**5)
    assert joint_grids([worker], device) == [132 * 12]
    assert joint_grids([worker], device, Need(32, 128, 6000, 1)) == [132 * 12 - 1]
    with pytest.raises(ValueError, match="one block of each of 2 resource classes does not fit"):
        joint_grids([Need(1024, 64, 0, 10)], device, Need(32, 64, 0, 1))


def test_the_class_with_more_work_gets_more_blocks() -> None:
    few, many = joint_grids([Need(32, 128, 0, 400), Need(32, 128, 0, 4000)], Multiprocessors())
    assert few < many
    assert few >= 132
    assert joint_grids([Need(32, 128, 0, 40), Need(32, 128, 0, 4000)], Multiprocessors())[0] == 40


def test_classes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="one block of each of 2 resource classes does not fit .* lacks .* registers"):
        joint_grids([Need(1024, 64, 0, 10), Need(32, 64, 0, 10)], SMALL)
