"""Fixtures that the tests of training share."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_training import Arguments
from tests.training import point


@pytest.fixture(autouse=True, scope="session")
def _registered() -> None:
    point.register()


@pytest.fixture(scope="session")
def tiny() -> Any:
    """A function that makes arguments of a training on `Point`, which takes a second or two."""

    def make(**changes: Any) -> Arguments:
        small = {
            "env_id": point.ID,
            "env_arguments": {"backend": "host"},
            "num_envs": 8,
            "rollout_steps": 16,
            "total_steps": 8 * 16 * 6,
            "minibatches": 4,
            "hidden_sizes": (16,),
            "checkpoint_every": 2,
            "eval_episodes": 4,
        }
        return Arguments(**{**small, **changes})

    return make
