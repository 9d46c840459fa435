"""`load_model` by name, and its errors for unknown names."""

from __future__ import annotations

from pathlib import Path

import pytest

from simengine import ModelError, Simulation, load_model
from simengine.loading import model_names


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d_v5", "grasp"])
def test_a_model_loads_by_name(name: str) -> None:
    assert load_model(name).nq > 0
    assert name in model_names()


def test_a_simulation_takes_a_name() -> None:
    sim = Simulation("ant", num_worlds=2, backend="host")
    assert (sim.model.name, sim.num_worlds) == ("ant", 2)


def test_an_existing_file_wins_over_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ant").write_text("<mujoco model='own'/>", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_model("ant").name == "own"
    assert load_model(Path("ant")).name == "own"


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ModelError, match=r"no model 'half_cheeta' \(did you mean 'half_cheetah'"):
        load_model("half_cheeta")


@pytest.mark.parametrize("name", ["some/folder/ant", "../assets/ant", "ant.xml"])
def test_a_path_is_no_name(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="no model file at"):
        load_model(name)
