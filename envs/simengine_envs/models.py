"""`model_of`: finds and loads the model of a task."""

from __future__ import annotations

from functools import lru_cache

import simengine
from simengine.errors import UnknownModelError
from simengine_envs.assets import ASSETS, model_path


@lru_cache(maxsize=32)
def model_of(xml_file: str) -> simengine.Model:
    """Load the model of a task.

    Args:
        xml_file: a path if it starts with "~", "." or "/"; the text of an MJCF if it starts with "<"; else the file
            name of one of Gymnasium's models, or a name that `simengine.load_model` knows.

    Raises:
        FileNotFoundError: there is no such model.
    """
    if xml_file.lstrip().startswith("<") or not (xml_file.startswith(("~", ".", "/")) or (ASSETS / xml_file).is_file()):
        try:
            return simengine.load_model(xml_file)
        except UnknownModelError as error:
            raise FileNotFoundError(str(error)) from error
    return simengine.load_model(model_path(xml_file))
