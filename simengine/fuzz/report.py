"""What came out of fuzzing: counts of models and states, the largest errors, and what nothing explains."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simengine.fuzz.judge import Outcome


@dataclass(frozen=True)
class Finding:
    """A model that MuJoCo runs and the engine does not compute rightly.

    Attributes:
        kind: "differs", "raises", "crashes" or "hangs".
        reasons: what was wrong, a sentence for each field.
        file: the smallest model found that fails in the same way.
        repeat: the command that compares it again.
    """

    kind: str
    reasons: list[str]
    file: str
    repeat: str


@dataclass
class FuzzReport:
    """Result of `fuzz`.

    Attributes:
        backend, dtypes, seed: what was asked for.
        models: number of models, by kind of outcome.
        sources: number of models, by how they were made.
        states: number of states and steps that were compared.
        left_out: number of states and steps left out, because rounding decides them or forces are not definite.
        refused: number of refused models, by feature.
        invalid: number of models that MuJoCo itself refuses.
        worst: the largest relative error by field, of values within their tolerance.
        explained: number of values beyond their tolerance that rounding explains, by field.
        findings: what nothing explains.
        repeated: number of models that fail as an earlier finding does; they are not shrunk again.
        alike: the numbers of these models, with what was wrong first.
        seconds: how long it took.
    """

    backend: str
    dtypes: tuple[str, ...]
    seed: int
    models: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    states: int = 0
    left_out: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    worst: dict[str, float] = field(default_factory=dict)
    explained: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    repeated: int = 0
    alike: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether there is nothing that nothing explains."""
        return not self.findings and not self.repeated

    @property
    def invalid(self) -> int:
        """Number of models that MuJoCo itself refuses."""
        return self.models["invalid"]

    def add(self, source: str, outcome: Outcome) -> None:
        """Count a model."""
        self.models[outcome.kind] += 1
        self.sources[source] += 1
        self.states += outcome.states
        self.left_out += outcome.left_out
        self.explained.update(outcome.explained)
        if outcome.kind == "refused":
            self.refused.update(outcome.reasons)
        for name, error in outcome.worst.items():
            self.worst[name] = max(self.worst.get(name, 0.0), error)

    def as_dict(self) -> dict[str, Any]:
        """The report as a dictionary for JSON."""
        return {
            "passed": self.passed,
            "backend": self.backend,
            "dtypes": list(self.dtypes),
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "drawn": sum(self.models.values()),
            "models": dict(self.models.most_common()),
            "sources": dict(self.sources.most_common()),
            "states": self.states,
            "left_out": self.left_out,
            "refused": dict(self.refused.most_common()),
            "worst": {name: float(f"{error:.2g}") for name, error in sorted(self.worst.items())},
            "explained": dict(self.explained.most_common()),
            "repeated": self.repeated,
            "alike": self.alike,
            "findings": [vars(finding) for finding in self.findings],
        }


def repeat_command(path: Path, backend: str, dtypes: tuple[str, ...], states: int) -> str:
    """The command that compares a file of a corpus again."""
    dtype = dtypes[0] if len(dtypes) == 1 else "both"
    return f"simengine fuzz {path} --backend {backend} --dtype {dtype} --states {states}"
