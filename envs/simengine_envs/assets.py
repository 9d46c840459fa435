"""Where a task's model file is."""

from __future__ import annotations

from pathlib import Path

import gymnasium

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def model_path(xml_file: str) -> str:
    """The path of a model file, by Gymnasium's rule.

    Args:
        xml_file: a path if it starts with "~", "." or "/"; else the name of one of Gymnasium's own models.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = Path(xml_file).expanduser() if xml_file.startswith(("~", ".", "/")) else ASSETS / xml_file
    if not path.is_file():
        raise FileNotFoundError(
            f"no model file at {str(path)!r}; give a path that starts with '/', './' or '~', or the name of a file in "
            f"{str(ASSETS)!r}"
        )
    return str(path)
