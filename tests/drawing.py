"""How tests draw models: the same ones in every run, and shrunk where one fails."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

QUICK = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
