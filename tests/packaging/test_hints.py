"""What the errors of all packages share: hints for names that do not exist."""

from __future__ import annotations

import pytest

from simengine.errors import did_you_mean

TASKS = ("simengine/Ant-v5", "simengine/Humanoid-v5", "simengine/G1Flat-v0", "simengine/Go1Flat-v0")


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("simengine/Antt-v5", TASKS, " (did you mean 'simengine/Ant-v5'?)"),
        ("simengine/ant-v5", TASKS, " (did you mean 'simengine/Ant-v5'?)"),
        ("flat", ("flap", "flab", "rough"), " (did you mean 'flap' or 'flab'?)"),
        ("reacher", TASKS, ""),
        (5, ("qpos",), ""),
    ],
)
def test_the_nearest_names_are_suggested_and_no_others(name: object, known: tuple[str, ...], hint: str) -> None:
    assert did_you_mean(name, known) == hint
