"""Run a program of CleanRL as it is, on environments of simengine under Gymnasium 1.

    python examples/run_cleanrl.py cleanrl/ppo_continuous_action.py --env-id simengine/Hopper-v5

CleanRL's programs are written for Gymnasium 0.29, where the last argument of `TransformObservation` did not exist. It
gets its value of then here. What follows the file's name are the program's own options.
"""

from __future__ import annotations

import runpy
import sys
from functools import partial
from pathlib import Path
from typing import Any

from gymnasium import wrappers

import simengine  # noqa: F401 (registers the environments)


def main() -> int:
    """Run the program that the command line names."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        print(
            f"usage: {sys.argv[0]} FILE.py [options of the program]; FILE.py is a program of CleanRL", file=sys.stderr
        )
        return 2
    changed: Any = wrappers
    changed.TransformObservation = partial(wrappers.TransformObservation, observation_space=None)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
