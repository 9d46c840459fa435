"""Registers `Point` when it is imported, as a module of a user does for its environments."""

from tests.training import point

point.register()
