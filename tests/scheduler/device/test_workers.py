"""Which bodies workers are linked with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine_scheduler.device.workers import Kind, all_to_run, just_these
from simengine_scheduler.launch.tasks import DeviceBody

BODIES = [DeviceBody(name) for name in "abcdefgh"]
SETS = st.frozensets(st.sampled_from(BODIES), min_size=1)


def seen(*lists: frozenset[DeviceBody]) -> list[frozenset[DeviceBody]]:
    """The workers that are linked as lists come one after another."""
    known: list[frozenset[DeviceBody]] = []
    for bodies in lists:
        chosen = all_to_run(known, bodies)
        assert bodies <= chosen
        if chosen not in known:
            known.append(chosen)
    return known


def test_a_list_of_other_bodies_gets_a_worker_of_its_own() -> None:
    step, forward = frozenset(BODIES[:5]), frozenset(BODIES[3:])
    assert seen(step, forward, step, forward) == [step, forward]


def test_a_list_of_fewer_bodies_takes_the_smallest_worker_that_has_them() -> None:
    small, large = frozenset(BODIES[:2]), frozenset(BODIES[:5])
    assert all_to_run([large, small], frozenset(BODIES[1:2])) == small
    assert seen(large, small) == [large]


@given(st.lists(SETS, max_size=40))
def test_lists_that_vary_are_not_linked_one_by_one(lists: list[frozenset[DeviceBody]]) -> None:
    assert len(seen(*lists)) <= 3 + len(BODIES)


def test_bodies_of_one_name_are_not_brought_together() -> None:
    twin = frozenset([DeviceBody("a")])
    known = [frozenset([body]) for body in BODIES[:3]]
    assert all_to_run(known, twin) == twin


def test_bodies_are_numbered_by_name() -> None:
    kind = Kind(32, 64)
    assert just_these({kind: frozenset(BODIES)})[kind].bodies == tuple(BODIES)


def test_two_bodies_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two bodies of a list are named 'a'"):
        just_these({Kind(32, 64): frozenset([BODIES[0], DeviceBody("a")])})
