"""Where the files of the physics are. File names are unique across the folders, so a name alone finds its file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent


@cache
def _by_name() -> dict[str, Path]:
    return {path.name: path for pattern in ("*.cu", "*.cuh", "*_jax.py") for path in _HERE.rglob(pattern)}


def path_of(name: str) -> Path:
    """Path of a device body `x.cu`, a header `x.cuh` or a JAX form `x_jax.py`.

    Raises:
        FileNotFoundError: no folder of the physics has a file of that name.
    """
    found = _by_name().get(name)
    if found is None:
        raise FileNotFoundError(f"no folder under {_HERE} has a file {name!r}; add it to the folder of its topic")
    return found


def module_of(stem: str) -> str:
    """Dotted name of the module with the JAX form `<stem>.py`."""
    return ".".join(path_of(f"{stem}.py").relative_to(_ROOT).with_suffix("").parts)
