"""Sessions: which bodies share a grid, what its blocks ask for, and when a session can run further calls."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from simengine_scheduler import KernelCall, PythonLaunch, Segments
from simengine_scheduler.device.book import Book, KnownCall
from simengine_scheduler.device.occupancy import Multiprocessors
from simengine_scheduler.device.sessions import Session, plan_session, window_memory
from simengine_scheduler.device.workers import Kind, just_these
from simengine_scheduler.testing.threaded_device import HostMemory, PythonBody

SMALL = Multiprocessors(number=2)


def book_of(segments: Segments, merged: bool = False) -> Book:
    return Book(segments.conflicts, HostMemory(), tiled=True, merged=merged)


def bodies_of(known: Sequence[KnownCall]) -> dict:
    return {of.of_class: frozenset(o.body for o in known if o.of_class == of.of_class) for of in known}


def session_of(book: Book, known: Sequence[KnownCall], device: Multiprocessors, window: int, merged: bool) -> Session:
    return plan_session(book, bodies_of(known), device, window, just_these, merged)


def calls_of(segments: Segments, *kinds: tuple[int, int, int], tiles: int = 3) -> list[KernelCall]:
    return [
        KernelCall(
            f"c{i}",
            PythonBody(print, tiles, threads=threads, registers=registers, memory=memory),
            (),
            (segments.intern(f"x{i}"),),
        )
        for i, (threads, registers, memory) in enumerate(kinds)
    ]


def test_bodies_of_other_threads_or_registers_have_workers_of_their_own() -> None:
    segments = Segments()
    book = book_of(segments)
    known = [book.call(c) for c in calls_of(segments, (32, 64, 0), (128, 64, 700), (32, 64, 100))]
    assert [of.of_class for of in known] == [0, 1, 0]
    session = session_of(book, known, SMALL, 32, False)
    assert [(of.number, of.kind.threads, of.memory) for of in session.classes] == [(1, 128, 700), (0, 32, 100)]


def test_a_merged_session_has_one_class_that_fits_every_body_and_the_window() -> None:
    segments = Segments()
    book = book_of(segments, merged=True)
    known = [book.call(c) for c in calls_of(segments, (32, 200, 100), (128, 64, 90000), (64, 64, 0))]
    (only,) = session_of(book, known, SMALL, 32, True).classes
    assert only.kind == Kind(128, 200, "", True)
    assert only.memory == 90000
    # one more than there is work: a block is the window for as long as it admits
    assert only.blocks == min(97, SMALL.number * (65536 // (128 * 200)))
    assert [of.of_class for of in known] == [0, 0, 0]
    of_all = KernelCall("all", PythonBody(print, 3), (), tuple(segments.intern(f"y{i}") for i in range(3000)))
    wide = session_of(book, [*known, book.call(of_all)], SMALL, 64, True)
    assert wide.classes[0].memory == window_memory(book.num_words, 64, book.most_words) > 90000


def test_a_merged_session_needs_room_for_two_blocks() -> None:
    segments = Segments()
    book = book_of(segments, merged=True)
    known = [book.call(c) for c in calls_of(segments, (32, 64, 0), tiles=9)]
    with pytest.raises(ValueError, match="merged=True needs room for two blocks of workers"):
        session_of(book, known, Multiprocessors(number=1, blocks=1), 32, True)


def test_a_session_runs_what_it_has_bodies_and_room_for() -> None:
    segments = Segments()
    book = book_of(segments)
    first, second, third = calls_of(segments, (32, 64, 100), (32, 64, 100), (32, 64, 200))
    known = [book.call(call) for call in (first, second)]
    session = session_of(book, known, SMALL, 32, False)
    assert session.can_run(book, bodies_of(known[:1]))
    larger = book.call(third)
    assert not session.can_run(book, bodies_of([larger]))  # another body
    assert not session.can_run(book, bodies_of(known))  # its class now needs more memory than its blocks have


def test_a_launch_without_a_body_is_refused_by_name() -> None:
    segments = Segments()
    call = KernelCall("plain", PythonLaunch(print), (), (segments.intern("x"),))
    with pytest.raises(ValueError, match="executor 'device' cannot run call 'plain', whose launch has no body"):
        book_of(segments).call(call)
