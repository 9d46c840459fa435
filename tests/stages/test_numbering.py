"""The CUDA and JAX forms of a stage carry the same numbered comments, so that they can be read side by side."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import simengine
from simengine.plan.stages import STAGES

PACKAGE = Path(simengine.__file__).parent
SOURCES = sorted((PACKAGE / "physics").rglob("*.cu"))
HEADERS = [*(PACKAGE / "physics").rglob("*.cuh"), *(PACKAGE / "kernels").glob("*.[ch]*")]
PAIRS = [(cu, cu.with_name(f"{cu.stem}_jax.py")) for cu in SOURCES if cu.with_name(f"{cu.stem}_jax.py").exists()]
COLUMNS = 120


def numbers(path: Path, comment: str) -> list[int]:
    """Numbers in parentheses in the comments, in ascending order, each once."""
    comments = "\n".join(re.findall(rf"{comment} .*", path.read_text()))
    return sorted({int(n) for n in re.findall(r"\((\d)\)", comments)})


def test_every_jax_form_has_a_cuda_form_beside_it() -> None:
    for stage in (stage for stage in STAGES if stage.jax):
        form = stage.source.with_name(f"{stage.jax.partition(':')[0]}.py")
        assert form.exists(), f"the JAX form of {stage.name} is not beside {stage.source.name}"


@pytest.mark.parametrize(("cu", "form"), PAIRS, ids=[cu.stem for cu, _ in PAIRS])
def test_both_forms_have_the_same_numbers(cu: Path, form: Path) -> None:
    ours, theirs = numbers(cu, "//"), numbers(form, "#")
    assert ours == theirs, f"{cu.name} has {ours}, {form.name} has {theirs}"
    assert ours == list(range(1, max(ours, default=1) + 1)), f"the numbers of {cu.name} are not 1, 2, ...: {ours}"


@pytest.mark.parametrize("path", [*SOURCES, *sorted(HEADERS)], ids=lambda p: p.name)
def test_sources_are_tidy(path: Path) -> None:
    text = path.read_text()
    long = [i for i, line in enumerate(text.splitlines(), start=1) if len(line) > COLUMNS]
    assert not long, f"lines {long} of {path.name} are longer than {COLUMNS} columns"
    trailing = [i for i, line in enumerate(text.splitlines(), start=1) if line != line.rstrip()]
    assert not trailing, f"lines {trailing} of {path.name} end in blanks"
    assert "\t" not in text, "indent with blanks"
    assert text == text.rstrip() + "\n", "end with one newline"
