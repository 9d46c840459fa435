"""The files of a training, beside its checkpoints.

| name | contents |
|---|---|
| `summary.json` | arguments, sizes, the best evaluation, and at the end the totals |
| `policy.npz` | the best policy so far; see `simengine_training.numpy_policy` |
| `policies/` | the policy of each evaluation, by the number of its update |
| `curve.csv` | one line for each update |
| `evaluations.csv` | one line for each evaluation |
| `times.csv` | seconds from the start of the training to the end of each update and of each evaluation |
| `curve.png` | the learning curve |
| `checkpoints/` | states from which the training goes on |

All but `times.csv` have the same bytes whether or not a training was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simengine_training.arguments import Arguments
from simengine_training.errors import TrainingError
from simengine_training.numpy_policy import NumpyPolicy

FORMAT = 2  # of `summary.json`
POLICY = "policy.npz"


@contextmanager
def writing(folder: Path, then: str) -> Iterator[None]:
    """Turn an error of the file system into a `TrainingError`, whose sentence ends with what to do `then`."""
    try:
        yield
    except OSError as error:
        raise TrainingError(f"writing to {folder} failed ({error}); {then}") from error


def evaluated_policy(folder: Path, update: int) -> Path:
    """The file of the policy that was evaluated after an update."""
    return folder / "policies" / f"{update:06}.npz"


def write_policy(path: Path, policy: NumpyPolicy) -> None:
    """Write a policy under another name and rename it, so that an interruption leaves a complete file."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_name("policy.part.npz")
    policy.save(part)
    part.replace(path)


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    """Write `summary.json` under another name and rename it, so that an interruption leaves a complete file."""
    part = folder / "summary.json.part"
    part.write_text(json.dumps({"format": FORMAT, **summary}, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(folder / "summary.json")


def check_shared(folder: Path) -> None:
    """Look whether this process sees the summary that another one has written.

    Raises:
        TrainingError: it does not.
    """
    if not (folder / "summary.json").exists():
        raise TrainingError(
            f"{folder} of the first process is not there in another one; name a folder that all hosts share"
        )


def read_summary(folder: str | Path) -> dict[str, Any]:
    """Read `summary.json`.

    Raises:
        TrainingError: the folder has no such file, or it is of another version.
    """
    path = Path(folder) / "summary.json"
    if not path.is_file():
        raise TrainingError(f"{folder} holds no training: there is no summary.json; name the folder of one")
    try:
        summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if summary.pop("format") != FORMAT:
            raise ValueError("it has another format")
        Arguments(**summary["arguments"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrainingError(
            f"{path} was written by another version of simengine, or is damaged ({error}); start the training again "
            "in another folder"
        ) from error
    return summary
