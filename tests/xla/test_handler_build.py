"""The handler of custom calls is compiled against JAX's headers, before JAX is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax

from simengine.xla.handler_build import _headers


def test_the_headers_are_those_of_jax() -> None:
    assert Path(jax.ffi.include_dir()) == _headers()


def test_jax_is_not_imported() -> None:
    program = "import sys, simengine.xla.handler_build; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
