"""`fuzz`: models drawn and mutated at random, each compared with MuJoCo in a process of its own."""

from __future__ import annotations

from simengine.fuzz.corpus import Case, read, read_all
from simengine.fuzz.fuzz import fuzz, replay
from simengine.fuzz.report import Finding, FuzzReport

__all__ = ["Case", "Finding", "FuzzReport", "fuzz", "read", "read_all", "replay"]
