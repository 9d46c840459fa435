"""The window: exhaustive over small lists, states, capacity, misuse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from simengine_scheduler import KernelCall, PythonLaunch, Segments, Window
from simengine_scheduler.core.hazards import conflict

LAUNCH = PythonLaunch(lambda: None)


def legal_orders(calls: list[KernelCall], table: Segments) -> set[tuple[int, ...]]:
    """All permutations in which conflicting calls keep program order."""
    n = len(calls)
    pairs = [(a, b) for b in range(n) for a in range(b) if conflict(calls[a], calls[b], table.conflicts)]
    return {p for p in itertools.permutations(range(n)) if all(p.index(a) < p.index(b) for a, b in pairs)}


def reachable_orders(calls: list[KernelCall], table: Segments, capacity: int) -> set[tuple[int, ...]]:
    """All orders of execution that a window offers, found by replaying every sequence of choices."""

    def replay(choices: tuple[int, ...]) -> Window:
        window = Window(table, capacity)
        rest = iter(calls)
        for choice in (*choices, None):
            while not window.full and (following := next(rest, None)) is not None:
                window.insert(following)
            if choice is not None:
                window.start(choice)
                window.complete(choice)
        return window

    def explore(choices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        window = replay(choices)
        if not window.calls:
            yield choices
        for seq in tuple(window.ready):
            yield from explore((*choices, seq))

    return set(explore(()))


def accesses(kinds: tuple[tuple[str, int], ...]) -> KernelCall:
    """A call from (how, segment) pairs; how is r, w, u or - for none."""
    by = {how: tuple(s for h, s in kinds if h == how) for how in "rwu"}
    return KernelCall("k", LAUNCH, by["r"], by["w"], by["u"])


def test_all_lists_of_three_calls_on_two_segments_reach_exactly_the_legal_orders() -> None:
    table = Segments()
    a, b = table.intern("a"), table.intern("b")
    kinds = [accesses(((x, a), (y, b))) for x, y in itertools.product("-rwu", repeat=2)]
    for calls in itertools.product(kinds, repeat=3):
        assert reachable_orders(list(calls), table, 32) == legal_orders(list(calls), table)


def test_all_lists_of_four_calls_on_a_partitioned_buffer() -> None:
    table = Segments()
    whole = table.intern("a")
    parts = [table.intern("a", 0, p) for p in (("size", 0), ("size", 1), ("pair", 0))]
    kinds = [
        accesses(k)
        for k in ((("r", whole),), (("w", whole),), (("r", parts[0]),), (("u", parts[1]),), (("w", parts[2]),))
    ]
    for calls in itertools.product(kinds, repeat=4):
        legal = legal_orders(list(calls), table)
        assert reachable_orders(list(calls), table, 4) == legal
        assert reachable_orders(list(calls), table, 1) == {(0, 1, 2, 3)}
        assert reachable_orders(list(calls), table, 2) <= legal


def test_states_and_upstream_sets() -> None:
    table = Segments()
    a, b = table.intern("a"), table.intern("b")
    window = Window(table, 4)
    first, second = window.insert(accesses((("w", a),))), window.insert(accesses((("w", b),)))
    third = window.insert(accesses((("r", a), ("r", b))))
    assert [window.state(s) for s in (first, second, third)] == ["ready", "ready", "pending"]
    assert window.upstream(third) == {first, second}
    window.start(first)
    assert window.state(first) == "executing"
    assert window.executing() == [first]
    window.complete(first)
    assert window.upstream(third) == {second}
    window.start(second)
    window.complete(second)
    assert window.ready == [third]
    assert window.state(third) == "ready"
    with pytest.raises(KeyError, match="not in the window"):
        window.state(first)
    assert len(window) == 1


def test_executing_calls_never_conflict() -> None:
    """All ways to start and complete calls with two in flight, on lists of four."""
    table = Segments()
    a = table.intern("a")
    kinds = [accesses(((how, a),)) for how in "-rwu"]
    for calls in itertools.product(kinds, repeat=4):
        stack: list[tuple[tuple[str, int], ...]] = [()]
        while stack:
            moves = stack.pop()
            window = Window(table, 4)
            for c in calls:
                window.insert(c)
            for move, seq in moves:
                window.start(seq) if move == "start" else window.complete(seq)
            running = window.executing()
            for x, y in itertools.combinations(running, 2):
                assert not conflict(calls[x], calls[y], table.conflicts)
            if len(running) < 2:
                stack += [(*moves, ("start", s)) for s in window.ready]
            if running:
                stack.append((*moves, ("complete", running[-1])))


def test_misuse_is_refused() -> None:
    table = Segments()
    a = table.intern("a")
    with pytest.raises(ValueError, match="window of 0 calls"):
        Window(table, 0)
    window = Window(table, 2)
    window.insert(accesses((("w", a),)))
    window.insert(accesses((("w", a),)))
    assert window.full
    with pytest.raises(RuntimeError, match="holds 2 calls, its capacity"):
        window.insert(accesses((("w", a),)))
    with pytest.raises(ValueError, match="call 1 is not ready"):
        window.start(1)
    with pytest.raises(ValueError, match="call 0 is not executing"):
        window.complete(0)
    window.start(0)
    with pytest.raises(ValueError, match="call 0 is not ready"):
        window.start(0)
    window.complete(0)
    with pytest.raises(ValueError, match="call 0 is not executing"):
        window.complete(0)


def test_clear_forgets_calls_and_numbers_go_on() -> None:
    table = Segments()
    a = table.intern("a")
    window = Window(table, 2)
    window.insert(accesses((("w", a),)))
    window.clear()
    assert len(window) == 0
    assert window.insert(accesses((("r", a),))) == 1
    assert window.ready == [1]
