"""Golden hashes on the GPU: all executors of a case give one hash, and it is the committed one."""

from __future__ import annotations

from functools import cache

import pytest

from tests.golden import environment, hashes
from tests.golden.cases import CASES
from tests.golden.play import Outcome, assert_moves, play

pytestmark = pytest.mark.gpu

each = pytest.mark.parametrize(("name", "dtype"), [(n, dtype) for n in CASES for dtype in ("float32", "float64")])


@cache
def serial(name: str, dtype: str) -> Outcome:
    return play(CASES[name], "cuda", "serial", dtype)


@each
def test_every_executor_gives_one_hash(name: str, dtype: str) -> None:
    for executor, shards in (("streams", None), ("graph-cached", None), ("auto", None), ("streams", 3)):
        found = play(CASES[name], "cuda", executor, dtype, shards)
        assert found.hash == serial(name, dtype).hash, f"{executor}, shards={shards}"


@each
def test_the_hash_is_the_committed_one(name: str, dtype: str) -> None:
    hashes.assert_committed(environment.key("cuda", dtype), name, serial(name, dtype).hash)


@each
def test_the_worlds_move_apart_and_touch_what_the_case_says(name: str, dtype: str) -> None:
    assert_moves(serial(name, dtype), CASES[name])
