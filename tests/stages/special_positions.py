"""Two geoms in positions where the answer needs a rule."""

from __future__ import annotations

BALL, ROD = '<geom size="0.1"/>', '<geom type="capsule" size="0.05 0.2"/>'
SIDEWAYS = (0.7071067811865476, 0.7071067811865476, 0.0, 0.0)
SPECIAL: tuple[tuple[str, str, tuple[float, ...], tuple[float, ...]], ...] = (
    (BALL, BALL, (0, 0, 0), (1, 0, 0, 0)),
    (BALL, BALL, (0, 0, 0), SIDEWAYS),
    (BALL, ROD, (0, 0, 0), (1, 0, 0, 0)),
    (BALL, ROD, (0, 0, 0), SIDEWAYS),
    (BALL, ROD, (0, 0, 0.25), (1, 0, 0, 0)),
    (ROD, ROD, (0, 0, 0), SIDEWAYS),
    (ROD, ROD, (0.08, 0, 0.1), (1, 0, 0, 0)),
    (ROD, ROD, (0.08, 0, -0.1), (0, 1, 0, 0)),
    (ROD, ROD, (0.08, 0, 0.41), (1, 0, 0, 0)),
    (ROD, ROD, (0.08, 0, 0.1), (1, 2e-5, 0, 0)),
    (ROD, ROD, (0.08, 0, 0.1), (1, 2e-4, 0, 0)),
    (ROD, ROD, (0, 0, 0.45), (1, 0, 0, 0)),
)
"""Geoms, and position and quaternion of the second: coincident centres, parallel, collinear, nearly parallel and
crossing axes."""
