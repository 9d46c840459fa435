"""Default choices of the CUDA backend. These tests need no GPU."""

from __future__ import annotations

from typing import Any

import pytest

from simengine.backends.cuda import CudaBackend

BACKEND = object.__new__(CudaBackend)  # without a look for a device


@pytest.mark.parametrize(
    ("executor", "options", "waits", "emission"),
    [
        ("graph-cached", {}, False, "whole"),
        ("graph-cached", {"record": "off"}, True, "whole"),
        ("graph-cached", {"record": "times"}, False, "ahead"),
        ("streams", {}, False, "whole"),
        ("streams", {"stream_policy": "kesco", "record": "order"}, False, "ahead"),
        ("streams", {"completion": "polling"}, False, "counted"),
        ("streams", {}, True, "counted"),
        ("pipeline", {}, False, "ahead"),
        ("device", {}, False, "ahead"),
        ("serial", {}, False, "counted"),
        ("graph", {}, False, "counted"),
    ],
)
def test_emission(executor: str, options: dict[str, Any], waits: bool, emission: str) -> None:
    assert BACKEND.emission(executor, options, waits) == emission


@pytest.mark.parametrize(
    ("executor", "emission", "worlds", "shards"),
    [
        ("streams", "counted", 16384, 2),
        ("streams", "counted", 16383, 1),
        ("streams", "ahead", 16384, 1),
        ("graph-cached", "whole", 65536, 1),
        ("pipeline", "ahead", 64, 2),
        ("pipeline", "ahead", 1, 1),
    ],
)
def test_shards(executor: str, emission: str, worlds: int, shards: int) -> None:
    assert BACKEND.shards_for(worlds, executor, emission) == shards
