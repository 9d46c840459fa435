"""Errors of training. A message is one sentence that says what failed, where, and what to do."""

from __future__ import annotations

from simengine import SimengineError


class MissingExtraError(SimengineError, ImportError):
    """The packages of an extra are not installed."""


class TrainingError(SimengineError, RuntimeError):
    """A training cannot be started, resumed or read from its folder."""
