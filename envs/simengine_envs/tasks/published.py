"""Models of robots that other packages publish: MuJoCo Menagerie, and mjlab."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import mujoco


def published_spec(name: str, package: str) -> mujoco.MjSpec:
    """A robot as MuJoCo Menagerie publishes it or, where that cannot provide it, as mjlab does.

    Menagerie downloads a robot when it is first used. mjlab's package contains its robots; it is not imported.

    Args:
        name: name of the robot, for messages.
        package: name of the robot in both packages, such as `unitree_go1`.

    Raises:
        ImportError: neither package is installed.
        FileNotFoundError: Menagerie cannot provide the robot's files, and mjlab is not installed.
    """
    try:
        return _menagerie(name, package)
    except (ImportError, FileNotFoundError):
        path = _in_mjlab(package)
        if path is None:
            raise
        return mujoco.MjSpec.from_file(str(path))


def _menagerie(name: str, package: str) -> mujoco.MjSpec:
    try:
        import mujoco_menagerie as menagerie
    except ImportError as error:
        raise ImportError(
            f"robot {name!r} is a model of MuJoCo Menagerie ({error}); install simengine[robots]"
        ) from error
    found = menagerie.get(package)
    try:
        return found.spec(found.default_model)
    except (menagerie.MenagerieError, OSError) as error:
        raise FileNotFoundError(
            f"MuJoCo Menagerie cannot provide robot {name!r} ({error}); connect to the network, set MENAGERIE_ROOT to "
            "a checkout, or install mjlab"
        ) from error


def _in_mjlab(package: str) -> Path | None:
    """The robot's MJCF file in mjlab, if that is installed and has it."""
    mjlab = find_spec("mjlab")
    for folder in (mjlab.submodule_search_locations or ()) if mjlab else ():
        for path in sorted((Path(folder) / "asset_zoo" / "robots" / package / "xmls").glob("*.xml")):
            return path
    return None
