"""`load_model`, and the names of the models that come with the installation."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import mujoco

from simengine.errors import ModelError, UnknownModelError, did_you_mean
from simengine.model.compiling import compile_model, is_mjcf_text
from simengine.model.model import Model
from simengine.zoo import MODELS
from simengine.zoo import model_path as zoo_path


def load_model(source: str | os.PathLike[str] | mujoco.MjModel | Model) -> Model:
    """Load a model through MuJoCo.

    Args:
        source: a name such as "ant" or "half_cheetah" (see `model_names`), the path of an MJCF or URDF file or of a
            compiled model (`.mjb`, of the installed MuJoCo), MJCF as text, or a compiled `mujoco.MjModel`. A file takes
            precedence over a name. A `Model` is returned unchanged.

    Returns:
        The model.

    Raises:
        ModelError: MuJoCo could not compile the source, or no model of this name and no file at this path exists. In
            the latter case the error is also a FileNotFoundError.
        UnsupportedModelError: the model needs features that the engine lacks. The message names each of them.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, mujoco.MjModel):
        return Model(source)
    if not isinstance(source, (str, os.PathLike)):
        raise ModelError(
            f"load_model takes a name, a path, MJCF text or a mujoco.MjModel, not {type(source).__name__}; pass one "
            "of those"
        )
    text = os.fspath(source)
    return Model(compile_model(source if is_mjcf_text(text) else model_path(text)))


def model_names() -> list[str]:
    """Names of all models of Gymnasium and of the zoo, sorted."""
    assets = _assets_folder()
    return sorted((*(path.stem for path in assets.glob("*.xml")), *MODELS) if assets else MODELS)


def model_path(name: str) -> Path:
    """Return the file that a name stands for.

    Args:
        name: the path of a file, or one of `model_names`. A file takes precedence.

    Raises:
        UnknownModelError: there is no such file and no such name.
    """
    path = Path(name)
    if os.path.isfile(name):  # unlike Path.is_file, it accepts names of any length
        return path
    if name in MODELS:
        return zoo_path(name)
    assets = _assets_folder()
    if assets and path.name == name and os.path.isfile(assets / f"{name}.xml"):
        return assets / f"{name}.xml"
    shown = name if len(name) <= 200 else f"{name[:200]}..."
    if path.suffix or path.name != name:
        raise UnknownModelError(
            f"no model file at {shown!r}; give the path of an MJCF file, or MJCF text starting with '<'"
        )
    more = "" if assets else "; more names come with gymnasium, which is not installed"
    raise UnknownModelError(
        f"no model {shown!r}{did_you_mean(name, model_names())}; give the path of an MJCF file, or one of "
        f"{', '.join(model_names())}{more}"
    )


def _assets_folder() -> Path | None:
    """Folder of Gymnasium's MuJoCo models; None if Gymnasium is not installed."""
    spec = find_spec("gymnasium")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "envs" / "mujoco" / "assets"
