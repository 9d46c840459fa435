"""Result files: a header, then one line for each row, in JSON that every parser reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks
from simengine.cli.results.result_file import as_json, result_text, write_json

RESULTS = Path(benchmarks.__file__).parent / "results"
RESULT: dict[str, Any] = {
    "rows": [{"model": "ant", "worlds": 64, "kernels": {"smooth": 20.5}}, {"model": "hopper", "error": "x" * 200}],
    "hardware": {"cpu": "a CPU", "cores": 2},
    "date": "2026-01-01",
    "answers": {"MJX": {"a/b": "y" * 90, "c": ""}, "Brax": {}},
    "samples": [[k] * 10 for k in range(5)],
    "none": [],
}
TEXT = f"""{{
 "hardware": {{"cpu": "a CPU", "cores": 2}},
 "date": "2026-01-01",
 "answers": {{
  "MJX": {{"a/b": "{"y" * 90}", "c": ""}},
  "Brax": {{}}
 }},
 "samples": [
  [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  [1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
  [2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
  [3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
  [4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
 ],
 "none": [],
 "rows": [
  {{"model": "ant", "worlds": 64, "kernels": {{"smooth": 20.5}}}},
  {{"model": "hopper", "error": "{"x" * 200}"}}
 ]
}}
"""


def test_rows_come_last_and_each_has_a_line_of_its_own() -> None:
    assert result_text(RESULT) == TEXT
    assert json.loads(TEXT) == RESULT


def test_an_object_longer_than_a_line_is_broken_into_its_entries() -> None:
    text = result_text({"about": {"a": "x" * 60, "b": {"c": "y" * 60, "d": "z" * 60}}})
    lines = [
        "{",
        ' "about": {',
        f'  "a": "{"x" * 60}",',
        '  "b": {',
        f'   "c": "{"y" * 60}",',
        f'   "d": "{"z" * 60}"',
        "  }",
        " }",
        "}",
    ]
    assert text.splitlines() == lines


def test_a_line_holds_120_characters_at_most_where_it_can_be_broken() -> None:
    texts = [result_text({"about": {"a": "x" * n}, "date": ""}).splitlines() for n in range(90, 110)]
    assert {len(lines) for lines in texts} == {4, 6}
    assert max(len(lines[1]) for lines in texts) == 120


@pytest.mark.parametrize("text", [as_json, result_text])
def test_json_holds_no_infinities(text: Any) -> None:
    result = {"a": [np.inf, 1.0], "b": {"c": float("nan")}}
    assert json.loads(text(result)) == {"a": [None, 1.0], "b": {"c": None}}


def test_a_result_goes_to_a_file_compressed_or_not_or_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, compressed = tmp_path / "new" / "a.json", tmp_path / "new" / "a.json.gz"
    write_json({"rows": [{"old": 1}]}, plain)
    write_json(RESULT, plain)
    write_json(RESULT, compressed)
    write_json(RESULT, None)
    assert plain.read_text() == gzip.decompress(compressed.read_bytes()).decode() == TEXT
    assert sorted(plain.parent.iterdir()) == [plain, compressed]
    write_json(RESULT, Path("-"))
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == RESULT


@pytest.mark.parametrize("path", sorted(RESULTS.rglob("*.json")), ids=lambda path: path.name)
def test_committed_results_are_as_the_writer_writes_them(path: Path) -> None:
    assert path.read_text() == result_text(json.loads(path.read_text())), (
        f"{path.name} is not laid out one row a line; write it again with simengine.cli.results.result_file.write_json"
    )
