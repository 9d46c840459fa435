"""A simulation works on its own GPU, whichever is current: here on the host, where contexts of a GPU are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine import Simulation
from simengine.backends.host import HostBackend

_WORLDS = 2


def _watched(function: Callable[..., Any], made: list[str], current: list[str]) -> Callable[..., Any]:
    def call(self: HostBackend, *args: Any) -> Any:
        assert current or not made, f"{function.__name__} works on whichever GPU is current"
        return function(self, *args)

    return call


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Once this list is not empty, memory is made and read only while the backend's own GPU is current."""
    made: list[str] = []
    current: list[str] = []

    @contextmanager
    def own() -> Iterator[None]:
        current.append("own")
        try:
            yield
        finally:
            current.pop()

    monkeypatch.setattr(HostBackend, "own_gpu", lambda self: own())
    for name in ("zeros", "upload", "stage", "to_host", "synchronize", "drain"):
        monkeypatch.setattr(HostBackend, name, _watched(getattr(HostBackend, name), made, current))
    return made


def test_public_functions_switch_to_the_backends_gpu(made: list[str], tmp_path: Path) -> None:
    with Simulation("half_cheetah", num_worlds=_WORLDS, backend="host") as sim:
        made.append("simulation")
        sim.set_state(qvel=np.ones((_WORLDS, 9)))
        sim.set_params(body_mass=np.ones((_WORLDS, 8)))
        sim.step(2, ctrl=np.zeros((2, _WORLDS, 6)))
        sim.forward()
        sim.reset([1])
        assert sim.params("body_mass").shape == (_WORLDS, 8)
        sim.save_state(tmp_path / "state.npz")
        sim.load_state(tmp_path / "state.npz")
        sim.add_group("hopper", 1)
        sim.synchronize()


def test_a_parameter_is_a_copy() -> None:
    with Simulation("half_cheetah", num_worlds=_WORLDS, backend="host") as sim:
        sim.params("body_mass")[...] = -1
        assert (sim.params("body_mass") >= 0).all()
