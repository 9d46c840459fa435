"""Robots of public packages: those that are installed can be stepped, and a packed robot is the same robot."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from benchmarks.robots import main
from simengine import ModelError, load_model
from simengine.cli.bench.peers.models import chosen_models
from simengine.cli.bench.robots import FOLDER_VARIABLE, ROBOTS, Robot, Servo, build, missing, pack, start_keyframe
from simengine.errors import UnknownModelError

TOY = """<mujoco model='toy'>
  <compiler meshdir='parts'/>
  <asset><mesh name='foot' file='foot.obj'/><mesh name='shell' file='shell.obj'/></asset>
  <worldbody><body name='base' pos='0 0 1'><freejoint/>
    <inertial pos='0 0 0' mass='1' diaginertia='.1 .1 .1'/>
    <geom type='mesh' mesh='shell' contype='0' conaffinity='0' group='2'/>
    <body name='leg'><joint name='left_knee' axis='0 1 0' range='-90 90' limited='true'/>
      <inertial pos='0 0 0' mass='1' diaginertia='.1 .1 .1'/><geom type='mesh' mesh='foot'/></body>
  </body></worldbody>
</mujoco>"""
TETRAHEDRON = "v 0 0 0\nv .2 0 0\nv 0 .2 0\nv 0 0 .2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
ROBOT = Robot(
    "toy",
    "toy-robots",
    "toy_robots/toy.xml",
    "a leg.",
    height=0.5,
    joints=((".*_knee", 0.3),),
    servos=(Servo(".*_knee", armature=0.01, effort=5),),
    floor=True,
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with a robot of two meshes, one of which is only seen."""
    folder = tmp_path / "site" / "toy_robots"
    (folder / "parts").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "toy.xml").write_text(TOY, encoding="utf-8")
    for name in ("foot", "shell"):
        (folder / "parts" / f"{name}.obj").write_text(TETRAHEDRON, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    yield folder
    sys.modules.pop("toy_robots", None)


@pytest.mark.usefixtures("package")
def test_what_the_file_lacks_is_added() -> None:
    mj = build(ROBOT)
    assert (mj.nv, mj.nu, mj.ngeom, mj.nmesh) == (7, 1, 2, 1)
    assert mj.geom("floor").type[0] == mujoco.mjtGeom.mjGEOM_PLANE
    start = mj.key_qpos[start_keyframe(ROBOT, mj)]
    assert (start[2], start[7]) == (0.5, 0.3)
    stiffness = 0.01 * (2 * np.pi * 10) ** 2
    assert mj.actuator_gainprm[0, 0] == pytest.approx(stiffness)
    assert mj.actuator_biasprm[0, 2] == pytest.approx(-4 * 0.01 * 2 * np.pi * 10)
    assert mj.actuator_forcerange[0] == pytest.approx([-5, 5])
    assert mj.actuator_ctrlrange[0] == pytest.approx(mj.jnt_range[1])


def test_a_packed_robot_is_the_same_robot(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "robots"
    found = pack(ROBOT, folder)
    assert found.meshes == 1
    assert found.bytes == sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    original = build(ROBOT)
    (package / "toy.xml").unlink()
    with pytest.raises(ModelError, match="robot 'toy' of toy-robots could not be built"):
        build(ROBOT)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    for mj in (build(ROBOT), build(ROBOT, folder)):
        assert mj.key_qpos == pytest.approx(original.key_qpos)
        assert mj.body_mass == pytest.approx(original.body_mass)
        assert mj.nmesh == 1


@pytest.mark.usefixtures("package")
def test_a_large_robot_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'toy' takes"):
        pack(ROBOT, tmp_path / "robots", largest=10)
    assert not (tmp_path / "robots" / "toy").exists()


@pytest.mark.usefixtures("package")
def test_a_robot_that_has_changed_is_refused() -> None:
    with pytest.raises(ModelError, match="no joint matches 'elbow'"):
        build(replace(ROBOT, servos=(Servo("elbow", 1, 1),)))


def test_a_robot_whose_package_is_absent_is_said() -> None:
    absent = replace(ROBOT, path="no_such_package/toy.xml")
    assert "run pip install --no-deps toy-robots" in missing(absent)
    with pytest.raises(UnknownModelError, match="toy-robots, which is not installed"):
        build(absent)


def test_every_robot_of_the_set_is_loaded_or_said() -> None:
    models, absent = chosen_models([], ["robots"], None)
    assert sorted([model.name for model in models] + list(absent)) == sorted(robot.name for robot in ROBOTS)


@pytest.mark.parametrize(
    "robot",
    [pytest.param(robot, id=robot.name, marks=[pytest.mark.slow] * (k % 3 > 0)) for k, robot in enumerate(ROBOTS)],
)
def test_an_installed_robot_can_be_stepped(robot: Robot) -> None:
    if reason := missing(robot):
        pytest.skip(reason)
    mj = build(robot)
    assert load_model(mj).nv == mj.nv
    assert mj.nu > 0
    data, key = mujoco.MjData(mj), start_keyframe(robot, mj)
    if key >= 0:
        mujoco.mj_resetDataKeyframe(mj, data, key)
    mujoco.mj_step(mj, data, 20)
    assert np.isfinite(data.qpos).all()
    assert data.warning.number[mujoco.mjtWarning.mjWARN_BADQACC] == 0


def test_the_program_lists_and_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["list", "--robot", "unitree_g1", "dog"]) == 0
    printed = capsys.readouterr().out
    assert "unitree_g1" in printed
    assert "i2rt_yam" not in printed
    with pytest.raises(SystemExit) as wrong:
        main(["pack", str(tmp_path), "--robot", "unitree_g"])
    assert wrong.value.code == 2
    assert "did you mean 'unitree_g1'" in capsys.readouterr().err
