"""Waits for a device that never ends its work: after the limit, an error names the call."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest

from simengine_scheduler import CallError, KernelCall, Segments, make_executor
from simengine_scheduler.cuda.patience import Stalled, limit, within
from simengine_scheduler.testing import CalledDevice

KINDS: dict[str, dict[str, Any]] = {
    "serial": {"device": "cuda"},
    "serial python": {"device": "cuda", "compiled": False},
    "serial check_each": {"device": "cuda", "check_each": True},
    "streams": {},
    "streams python": {"compiled": False},
    "streams polling": {"completion": "polling"},
    "streams planned": {"stream_policy": "kesco"},
    "graph": {},
    "graph-cached": {},
    "pipeline": {},
}
STUCK = 5


class StuckDevice(CalledDevice):
    """A device that seems to end nothing once a call has begun that never ends."""

    stuck = False

    def query(self, event: int) -> bool:
        done = super().query(event)
        return done and not self.stuck


def ran(kind: str, device: StuckDevice, patience: float | None) -> None:
    """Thirty calls in a window of four, of which number `STUCK` never ends; and the wait for them."""

    def body(number: int) -> None:
        device.stuck = device.stuck or number == STUCK

    calls = [KernelCall(f"k{k}", device.launch(lambda k=k: body(k)), (), ()) for k in range(30)]
    options = {"segments": Segments(), "driver": device, "stream": 0, "window": 4, "patience": patience}
    with make_executor(kind.split()[0], **options, **KINDS[kind]) as executor:
        executor.run([calls])
        executor.synchronize()


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_without_end_becomes_an_error_that_names_a_call(kind: str) -> None:
    began = time.monotonic()
    with pytest.raises(CallError, match=r"has not ended its work within 0\.1 s; call 'k\d+' of shard 0 was") as caught:
        ran(kind, StuckDevice(1, eagerness=0.9), 0.1)
    assert time.monotonic() - began < 60, "it would wait for ever"
    assert caught.value.fatal
    assert isinstance(caught.value.cause, Stalled)
    if kind == "serial check_each":
        assert caught.value.call.name == f"k{STUCK}"


@pytest.mark.parametrize("kind", KINDS)
def test_work_that_ends_is_waited_for(kind: str) -> None:
    device = StuckDevice(1, eagerness=0.1)
    device.query = super(StuckDevice, device).query  # type: ignore[method-assign]
    ran(kind, device, 20.0)
    assert device.executed >= 30


def test_a_limit_must_be_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit() is None
    monkeypatch.setenv("SIMENGINE_PATIENCE", "2.5")
    assert limit() == 2.5
    for wrong in ("0", "-1", "soon", "nan"):
        monkeypatch.setenv("SIMENGINE_PATIENCE", wrong)
        with pytest.raises(ValueError, match=f"SIMENGINE_PATIENCE={wrong} is no time to wait"):
            limit()
    with pytest.raises(ValueError, match="patience=0 is no time to wait"):
        make_executor("serial", patience=0)


def test_what_blocks_is_left_behind_and_what_raises_raises() -> None:
    never, done = Event(), Event()
    with pytest.raises(Stalled, match=r"the test did not end within SIMENGINE_PATIENCE=0\.05 s"):
        within(0.05, never.wait, "the test")  # type: ignore[arg-type]
    never.set()
    within(None, done.set, "nothing")
    assert done.is_set()
    with pytest.raises(ZeroDivisionError):
        within(5.0, lambda: 1 / 0, "a division")  # type: ignore[arg-type, return-value]
