"""Sources that `load_model` cannot read, each refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simengine import ModelError, Simulation, load_model
from tests.emission.worlds import refused


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "nothing.xml"
    words = rf"no model file at '{path}'; give the path of an MJCF file, or MJCF text"
    refused(lambda: load_model(path), FileNotFoundError, words)
    refused(lambda: Simulation(str(path), num_worlds=2, backend="host"), FileNotFoundError, words)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    refused(lambda: load_model(tmp_path), FileNotFoundError, "no model file at .*give the path")


@pytest.mark.parametrize("text", ["hello", "", "a long text that is no path " * 300, "nul\0byte"])
def test_text_that_is_neither_a_path_nor_xml(text: str) -> None:
    refused(lambda: load_model(text), FileNotFoundError, "no model '.*give the path of an MJCF file, or one of ant, ")


@pytest.mark.parametrize(
    "text",
    [
        "<this is no xml",
        "<mujoco><worldbody></mujoco>",
        "<robots/>",
        "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
        '<mujoco><worldbody><geom size="-1"/></worldbody></mujoco>',
        '<mujoco><worldbody><geom colour="red"/></worldbody></mujoco>',
    ],
)
def test_text_that_mujoco_cannot_compile(text: str) -> None:
    refused(lambda: load_model(text), ModelError, "MuJoCo could not compile the given MJCF text: .*; correct the model")


def test_a_file_that_mujoco_cannot_compile(tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_text("not xml at all")
    refused(lambda: load_model(path), ModelError, rf"MuJoCo could not compile '{path}': .*; correct the model")


def test_a_compiled_model_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "broken.mjb"
    path.write_bytes(bytes(64))
    refused(lambda: load_model(path), ModelError, rf"MuJoCo could not compile '{path}': .*; correct the model")


@pytest.mark.parametrize("source", [None, 3, b"<mujoco/>", [1, 2]])
def test_what_is_no_source(source: Any) -> None:
    refused(
        lambda: load_model(source), ModelError, "load_model takes a name, a path, MJCF text or a mujoco.MjModel, not"
    )
