"""The machine's C++ compiler, and shared libraries that it makes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from .cache import cached, digest

_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-pthread", "-w")


@lru_cache(maxsize=1)
def compiler() -> tuple[str, str] | None:
    """Return the path of the C++ compiler and its version line, or None if there is none."""
    for candidate in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        path = shutil.which(candidate) if candidate else None
        if path:
            answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            if answer.returncode == 0:
                return path, answer.stdout.splitlines()[0]
    return None


def build(name: str, sources: Sequence[Path], options: Sequence[str] = ("-shared",)) -> Path:
    """Return what the compiler makes of some files, or of the first of them, which includes the others.

    Args:
        name: of the result.
        sources: the file to compile, and the files that it includes. They are parts of the result's key.
        options: of the compiler, besides those for all results. They stand behind those in $CXXFLAGS.

    Raises:
        RuntimeError: there is no compiler, or it failed.
    """
    found = compiler()
    if found is None:
        raise RuntimeError(f"{name} needs a C++ compiler (looked for $CXX, g++, clang++, c++); install one, or set CXX")
    path, version = found
    flags = [*_FLAGS, *os.environ.get("CXXFLAGS", "").split(), *options]
    key = digest(*(source.read_text() for source in sources), path, version, " ".join(flags))

    def make(target: Path) -> None:
        command = [path, *flags, str(sources[0]), "-o", str(target)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode:
            first = next((line for line in answer.stderr.splitlines() if "error" in line), answer.stderr[:300])
            raise RuntimeError(f"{path} could not compile {name}: {first}; try another compiler with CXX=")

    return cached(f"{name}-{key}", make)
