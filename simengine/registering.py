"""Registers simengine's environments with Gymnasium, as soon as a program has both.

Importing Gymnasium takes a fifth of the time of `import simengine`, and programs without environments do not need it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_GYMNASIUM = "gymnasium"


def register_with_gymnasium() -> None:
    """Register the environments, now or once the program has imported Gymnasium."""
    if sys.modules.get(_GYMNASIUM) is not None:
        register_environments()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


def register_environments() -> None:
    """Register the environments through the entry point of the installed distribution.

    Warns:
        UserWarning: the entry point could not be loaded.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group="gymnasium.envs", name="simengine"):
        if entry.module in sys.modules:  # which registers them at the end of its own import
            continue
        try:
            entry.load()()
        except (ImportError, AttributeError) as error:
            warnings.warn(
                f"simengine's environments could not be registered ({error}); reinstall simengine, or call "
                "simengine_envs.register_envs() to see the whole error",
                stacklevel=2,
            )


class _AfterGymnasium(MetaPathFinder):
    """Finds no module itself. Once Gymnasium has been imported, it leaves and registers the environments.

    A program may look for Gymnasium without importing it, so it stays until then.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _GYMNASIUM:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    register_environments()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
