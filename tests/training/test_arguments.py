"""Arguments out of range, and the error if the optional dependencies are missing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import simengine_training
from simengine_training import Arguments


def test_every_argument_has_a_help_text() -> None:
    texts = Arguments.describe()
    assert set(texts) == set(Arguments().as_dict())
    assert all(len(text) > 10 for text in texts.values())


def test_updates_are_the_whole_rollouts() -> None:
    arguments = Arguments(num_envs=4, rollout_steps=8, total_steps=100, minibatches=2)
    assert (arguments.batch_size, arguments.num_updates) == (32, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_envs": 0}, "argument num_envs must be at least 1, not 0"),
        ({"gamma": 1.5}, "argument gamma must be between 0 and 1, not 1.5"),
        ({"learning_rate": 0.0}, "argument learning_rate must be greater than 0"),
        ({"seed": -1}, "argument seed must be at least 0"),
        ({"algorithm": "sac"}, "argument algorithm must be one of ppo, not 'sac'"),
        ({"hidden_sizes": (64, 0)}, "argument hidden_sizes must be widths of at least 1"),
        ({"minibatches": 7}, "a rollout of 64 x 64 steps does not split into 7 equal minibatches"),
        ({"total_steps": 100}, "total_steps is 100, less than one rollout"),
    ],
)
def test_value_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Arguments(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": "3e-4"}, "argument learning_rate must be a number, not '3e-4'"),
        ({"num_envs": 8.0}, "argument num_envs must be of type int, not 8.0"),
        ({"anneal": 1}, "argument anneal must be of type bool, not 1"),
        ({"epochs": True}, "argument epochs must be of type int, not True"),
        ({"hidden_sizes": (8, "8")}, "argument hidden_sizes must hold whole numbers"),
    ],
)
def test_value_of_another_type_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Arguments(**changes)


def test_whole_numbers_are_numbers_and_lists_are_tuples() -> None:
    assert Arguments(gamma=1, hidden_sizes=[8]) == Arguments(gamma=1.0, hidden_sizes=(8,))  # type: ignore[arg-type]


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = simengine_training.nothing


@pytest.mark.parametrize("package", ["optax"])
def test_missing_extra_is_named(package: str) -> None:
    """In a process where the package cannot be imported, as where it is not installed."""
    code = f"""
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name == {package!r} or name.startswith({package + "."!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
from simengine.cli.main import main
sys.exit(main(["train", "simengine/Ant-v5"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    expected = f"simengine: training needs the package '{package}', which is not installed; install what it needs with"
    assert done.stderr.startswith(expected)
    assert done.stderr.count("\n") == 1
    assert "pip install 'simengine[train]'" in done.stderr
