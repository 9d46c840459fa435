"""Keys of environments, the file of hashes, and the recorder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden import environment, hashes, record


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "g++ 12.2.0"),
        ("g++-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "g++ 13.3.0"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang++ 18.1.3"),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", "clang++ 15.0.0"),
    ],
)
def test_compilers_have_a_name_and_a_version(line: str, name: str) -> None:
    assert environment.compiler_name(line) == name


@pytest.mark.parametrize(
    ("machine", "flags", "found"),
    [
        ("x86_64", "fpu fma avx2 avx512f", "x86_64 avx512f"),
        ("x86_64", "fpu fma avx2", "x86_64 avx2+fma"),
        ("x86_64", "fpu avx", "x86_64 other"),
        ("aarch64", "", "aarch64"),
    ],
)
def test_cpus_are_told_apart_by_what_libraries_choose_by(machine: str, flags: str, found: str) -> None:
    assert environment.class_of(machine, f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: avx512f\n") == found


def test_the_key_names_all_that_decides() -> None:
    compiler, library = environment.cxx_compiler(), environment.c_library()
    key = environment.key("host", "float64")
    assert key.startswith(f"host, {compiler}, {library}, ")
    assert key.endswith(", float64")


def row(case: str, value: str) -> record.Row:
    return {"key": "host, here", "case": case, "hash": value}


def test_the_recorder_says_which_hashes_changed(capsys: pytest.CaptureFixture[str]) -> None:
    table = {
        "host, here": {"rollers, CG": "aa", "ant, RK4": "bb", "of no case": "cc"},
        "host, there": {"ant, RK4": "dd"},
    }
    changed = record.merge(table, [row("rollers, CG", "aa"), row("ant, RK4", "ee"), row("dual, PGS, elliptic", "ff")])
    assert changed == ["host, here: ant, RK4: bb -> ee"]
    assert list(table["host, here"]) == ["ant, RK4", "dual, PGS, elliptic", "rollers, CG"]
    assert table["host, there"] == {"ant, RK4": "dd"}
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_rows_are_taken_from_the_log_of_another_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "hashes.json"
    log.write_text(f"compiling\n{json.dumps(row('ant, RK4', 'bb'))}\n{{ no row\n0 hashes changed\n")
    monkeypatch.setattr("sys.argv", ["record", "--rows", str(log), "--file", str(file)])
    assert record.main() == 0
    assert hashes.read(file) == {"host, here": {"ant, RK4": "bb"}}


def test_a_recorded_case_is_the_one_that_the_tests_compare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "hashes.json"
    monkeypatch.setattr("sys.argv", ["record", "--dtype", "float32", "--case", "ant, RK4", "--file", str(file)])
    assert record.main() == 0
    ((key, found),) = hashes.read(file).items()
    assert key == environment.key("host", "float32")
    assert list(found) == ["ant, RK4"]
    hashes.assert_committed(key, "ant, RK4", found["ant, RK4"])


def test_the_committed_file_holds_a_case_a_line() -> None:
    lines = hashes.FILE.read_text().splitlines()
    table = hashes.read()
    assert len(lines) == 2 + sum(2 + len(known) for known in table.values())


def test_a_changed_hash_fails_and_an_unknown_environment_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "hashes.json"
    hashes.write({"host, here": {"ant, RK4": "aa"}}, file)
    hashes.assert_committed("host, here", "ant, RK4", "aa", file)
    with pytest.raises(AssertionError, match=r"ant, RK4.* bb .* aa"):
        hashes.assert_committed("host, here", "ant, RK4", "bb", file)
    with pytest.raises(AssertionError, match=r"no hash of 'rollers, CG'.*tests.golden.record"):
        hashes.assert_committed("host, here", "rollers, CG", "aa", file)
    with pytest.raises(pytest.skip.Exception, match=r"tests\.golden\.record --backend cuda"):
        hashes.assert_committed("cuda, there", "ant, RK4", "aa", file)
