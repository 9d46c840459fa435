"""Models by short name: `ant` is the file of that name among the assets of the installed Gymnasium, or of our zoo."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from simengine import zoo
from simengine.cli.errors import UsageError


def assets_folder() -> Path:
    """Folder of Gymnasium's MuJoCo models."""
    spec = find_spec("gymnasium")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("models by short name come from gymnasium, which is not installed; install it or give a path")
    return Path(spec.submodule_search_locations[0]) / "envs" / "mujoco" / "assets"


def asset_names() -> list[str]:
    """Short names of all models that Gymnasium and the zoo bring, sorted."""
    return sorted((*(path.stem for path in assets_folder().glob("*.xml")), *zoo.MODELS))


def model_path(name: str) -> Path:
    """The file that `name` stands for.

    Args:
        name: path of an MJCF or URDF file, or a short name such as `ant` or `half_cheetah`. An existing file wins.

    Raises:
        UsageError: neither; the message lists the short names.
    """
    path = Path(name)
    if path.is_file():
        return path
    if name in zoo.MODELS:
        return zoo.model_path(name)
    asset = assets_folder() / f"{name}.xml"
    if path.name == name and asset.is_file():
        return asset
    raise UsageError(f"no model file {name!r}; give the path of an MJCF file or one of {', '.join(asset_names())}")
