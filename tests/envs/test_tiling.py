"""Pictures of many worlds as one."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from simengine_envs import SingleEnv
from simengine_envs.tiling import drawn_worlds, grid, tiled
from tests.helpers import pages

SIZE = {"width": 32, "height": 24, "backend": "host"}


def test_pictures_lie_row_by_row() -> None:
    assert [grid(count) for count in (1, 2, 3, 5, 9, 10)] == [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (4, 3)]
    pictures = [np.full((2, 3, 3), index + 1, np.uint8) for index in range(5)]
    whole = tiled(pictures)
    assert (whole.shape, whole.dtype) == ((4, 9, 3), np.uint8)
    assert whole[::2, ::3, 0].tolist() == [[1, 2, 3], [4, 5, 0]]


def test_drawn_worlds_are_spread_evenly() -> None:
    assert drawn_worlds(4, 9) == [0, 1, 2, 3]
    assert drawn_worlds(100, 4) == [0, 25, 50, 75]
    assert len(set(drawn_worlds(26))) == 25


@pytest.mark.parametrize("name", ["simengine/InvertedPendulum-v5", "simengine/MixedLocomotion-v0"])
def test_a_vector_environment_draws_a_grid(name: str) -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    pytest.importorskip("gymnasium.envs.mujoco")
    given: dict[str, Any] = {**SIZE, "num_envs": 6}
    if "Mixed" in name:
        given["robots"] = ("ant", "quadruped")
    each = gymnasium.make_vec(name, render_mode="rgb_array", **given)
    whole = gymnasium.make_vec(name, render_mode="rgb_array_grid", **given)
    some = gymnasium.make_vec(name, render_mode="rgb_array_grid", grid_worlds=2, **given)
    for env in (each, whole, some):
        env.reset(seed=0)
    pictures: Any = each.render()
    assert len(pictures) == 6
    assert np.array_equal(whole.render(), tiled(pictures))
    assert np.array_equal(some.render(), tiled([pictures[0], pictures[3]]))
    for env in (each, whole, some):
        env.close()


@pytest.mark.parametrize("given", [{"grid_worlds": 4}, {"grid_worlds": 0, "render_mode": "rgb_array_grid"}])
def test_a_limit_without_a_grid_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="render_mode='rgb_array_grid'"):
        gymnasium.make_vec("simengine/InvertedPendulum-v5", num_envs=2, backend="host", **given)


def test_single_environments_have_no_grid() -> None:
    with pytest.raises(ValueError, match="'rgb_array_grid' is unknown"):
        SingleEnv("simengine_envs.tasks.inverted_pendulum:InvertedPendulum", render_mode="rgb_array_grid")
