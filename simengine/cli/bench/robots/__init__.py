"""Robots of public packages, as models on which engines are compared.

    catalogue   which robots there are, and what each needs beside its file
    building    compile a robot from the package that ships it, or from a folder of packed robots
    packing     write robots into a small folder, for machines that lack the packages

No file of a robot is in this repository.
"""

from __future__ import annotations

from simengine.cli.bench.robots.building import FOLDER_VARIABLE, build, missing, start_keyframe
from simengine.cli.bench.robots.catalogue import ROBOTS, Robot, Servo, robot_names
from simengine.cli.bench.robots.packing import Packed, pack

__all__ = [
    "FOLDER_VARIABLE",
    "ROBOTS",
    "Packed",
    "Robot",
    "Servo",
    "build",
    "missing",
    "pack",
    "robot_names",
    "start_keyframe",
]
