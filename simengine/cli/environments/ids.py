"""Environments by their ids: which modules register them, and whether a text names one or a model."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from simengine.cli.options.errors import UsageError
from simengine_envs import registration

if TYPE_CHECKING:
    from simengine_envs import BatchEnv

_WITH_MODULE = re.compile(r"([A-Za-z_][\w.]*):([\w/.-]+)")
_WITH_VERSION = re.compile(r"([\w-]+/)?[\w.-]+-v\d+")
_OWN = f"{registration.NAMESPACE}/"


def add_import_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that imports modules, which register environments. The namespace has their names in `imports`."""
    parser.add_argument(
        "--import",
        dest="imports",
        metavar="MODULE",
        action="append",
        default=[],
        help="import a module that registers environments, from the current folder too; may be given several times",
    )


def import_modules(names: Sequence[str]) -> None:
    """Import modules, which are looked for in the current folder first, as by `python -m`.

    Raises:
        UsageError: a module cannot be imported.
    """
    folder = os.getcwd()
    if names and folder not in sys.path:
        sys.path.insert(0, folder)
    for name in names:
        try:
            import_module(name)
        except Exception as error:  # a module of a user may raise anything
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise UsageError(
                f"module {name!r} cannot be imported ({said}); correct it, or call this in its folder"
            ) from error


def is_environment(text: str) -> bool:
    """Whether a text names an environment and not a model.

    It does if an environment with this id is registered, or if it has the form of an id: a version at its end
    ("Balance-v0"), the namespace of simengine ("simengine/Ant"), or a module before a colon ("mypackage:Balance-v0").
    A file is always a model.
    """
    if os.path.isfile(text):
        return False
    own = text.startswith(_OWN) and not Path(text).suffix
    form = _WITH_MODULE.fullmatch(text) or _WITH_VERSION.fullmatch(text)
    return bool(form) or own or text in registration.names()


def modules_of(text: str, imports: Sequence[str] = ()) -> list[str]:
    """Modules that register an environment: those of `--import`, and that of an id "module:id"."""
    module = _WITH_MODULE.fullmatch(text)
    return list(dict.fromkeys([*imports, *([module[1]] if module else [])]))


def environment_id(text: str, imports: Sequence[str] = (), any_kind: bool = False) -> str:
    """Return the id of an environment, after the modules that register it are imported.

    Args:
        text: an id, or "module:id" as in Gymnasium, which imports the module first.
        imports: further modules to import.
        any_kind: whether environments that are not made of a `simengine_envs.Task` are accepted too.

    Returns:
        The id, without the module.

    Raises:
        UsageError: a module cannot be imported, or there is no such environment.
    """
    module = _WITH_MODULE.fullmatch(text)
    import_modules(modules_of(text, imports))
    registration.register_envs()
    name = module[2] if module else text
    if any_kind and _is_registered(name):
        return name
    if name not in registration.names() and not name.startswith(_OWN):
        raise UsageError(
            f"there is no environment {name!r}{registration.nearest(name)}; if it is your own, add --import MODULE, "
            "where MODULE registers it"
        )
    try:
        registration.check_name(name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return name


def _is_registered(name: str) -> bool:
    """Whether Gymnasium has an environment with this id, which may leave out the version."""
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error:
        return False
    return True


def make_environment(name: str, num_envs: int, backend: str | None, dtype: str | None) -> BatchEnv:
    """Make a vector environment whose arrays are those of JAX, and whose worlds restart in the step after an end.

    Args:
        name: the id, as `environment_id` returned it.
        num_envs: number of worlds.
        backend: the backend; None for the environment's own choice.
        dtype: "float32" or "float64"; None for the environment's own choice.

    Raises:
        UsageError: there are fewer worlds than robots.
    """
    given: dict[str, Any] = {"backend": backend, "dtype": dtype}
    given = {key: value for key, value in given.items() if value is not None}
    try:
        made: Any = gymnasium.make_vec(name, num_envs=num_envs, array="jax", **given).unwrapped
    except (TypeError, ValueError) as error:
        if isinstance(error, OSError | ImportError):
            raise
        raise UsageError(f"environment {name!r} cannot be made: {error}") from error
    envs: BatchEnv = made
    return envs


def require_one_model(name: str, wish: str) -> None:
    """Raise UsageError if the worlds of an environment have several models.

    Args:
        name: the id of the environment.
        wish: what was asked for, such as "a page shows".
    """
    if gymnasium.spec(name).vector_entry_point != registration.VECTOR_ENTRY:
        raise UsageError(
            f"the worlds of {name} have several models, and {wish} worlds of one; name another environment"
        )
