"""Models of our own as MJCF text: robots drawn at random, which may be mutated and bred.

Nothing here needs the engine; what is made can be given to `simengine.load_model`, to MuJoCo, or to a file.
"""

from simengine.zoo.robots import Limb, Robot, Segment, random_robot

__all__ = ["Limb", "Robot", "Segment", "random_robot"]
