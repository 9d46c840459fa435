"""Models of this project as MJCF: files, piles, and random robots, which can be mutated.

Nothing here needs the engine. The MJCF can be passed to `simengine.load_model` or to MuJoCo, or written to a file.
"""

from __future__ import annotations

from pathlib import Path

from simengine.zoo.piles import PILES, pile_xml
from simengine.zoo.robots import Limb, Robot, Segment, random_robot

__all__ = ["MODELS", "PILES", "Limb", "Robot", "Segment", "model_path", "pile_xml", "random_robot"]

MODELS = ("grasp", "cartpole", "quadruped", "biped")
"""Models that are files: `grasp`, a hand with three fingers on a gantry, and a box to pick up; `cartpole`, a pole on a
cart; `quadruped` and `biped`, legged robots whose actuators hold positions, with the keyframe `home`."""


def model_path(name: str) -> Path:
    """The MJCF file of one of MODELS. Raises ValueError if the name is unknown."""
    if name not in MODELS:
        raise ValueError(f"the zoo has no model {name!r}; choose from {', '.join(MODELS)}")
    return Path(__file__).with_name(f"{name}.xml")
