"""Several processes, of one host or of many: what a training does otherwise than in one process.

The processes are those that called `jax.distributed.initialize`. Each has devices of its own, and all call the same
functions in the same order. The first one, process 0, writes the files, evaluates, and decides when the training stops.
In one process every function here does nothing, or the obvious.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import jax
import numpy as np
from jax._src import distributed  # JAX has no public name for the messages of its coordinator
from jax.errors import JaxRuntimeError
from jax.experimental import multihost_utils

from simengine_training.errors import TrainingError

_FAILURE = "simengine/failure"  # key of the sentence of the first process that failed
_POLL = 1.0  # seconds between two looks at it
_GRACE = 5.0  # seconds in which a process may end by itself; one that waits for another process' devices cannot

_numbers = itertools.count()


def is_first() -> bool:
    """Whether this is the process that writes the files."""
    return jax.process_index() == 0


def use_cpu_collectives() -> None:
    """Let CPUs of several processes exchange arrays. It comes before `jax.distributed.initialize`."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")


def agreed(value: Any) -> Any:
    """What the first process passes, in every process. The others wait for it, however long it takes.

    Args:
        value: anything that JSON holds; other processes' values count for nothing.

    Raises:
        TrainingError: another process has failed.
    """
    if jax.process_count() == 1:
        return value
    key = f"simengine/agreed/{next(_numbers)}"
    if is_first():
        _client().key_value_set(key, json.dumps(value))
        return value
    return json.loads(_received(key))


def wait_for_all() -> None:
    """Wait until all processes are here, however long it takes. Devices wait for one another for a shorter time.

    Raises:
        TrainingError: another process has failed.
    """
    if jax.process_count() == 1:
        return
    key = f"simengine/here/{next(_numbers)}"
    _client().key_value_set(f"{key}/{jax.process_index()}", "")
    for index in range(jax.process_count()):
        _received(f"{key}/{index}")


def placed(tree: Any, sharding: jax.sharding.Sharding) -> Any:
    """Arrays on the devices of a sharding. Every process passes the same arrays, of NumPy or of its own devices."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)

    def place(leaf: Any) -> jax.Array:
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(place(jax.random.key_data(leaf)))
        whole = np.asarray(leaf)
        return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])

    return jax.tree.map(place, tree)


def gathered(tree: Any) -> Any:
    """Arrays of which every process has a part, as whole ones in every process."""
    if jax.process_count() == 1:
        return tree

    def gather(leaf: Any) -> Any:
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(jax.numpy.asarray(gather(jax.random.key_data(leaf))))
        if leaf.is_fully_replicated:
            return np.asarray(leaf)
        return multihost_utils.process_allgather(leaf, tiled=True)

    return jax.tree.map(gather, tree)


def on_own_device(tree: Any) -> Any:
    """Arrays that all devices have, as arrays of this process' first one."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)


@contextmanager
def failing_together() -> Iterator[None]:
    """Let an error inside end all processes, each with the sentence of the process that failed first.

    A process that stands still, since it waits for devices of the one that failed, prints the sentence and exits
    with code 1. After a failure these processes run no further training.
    """
    if jax.process_count() == 1:
        yield
        return
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(ended,), name="watch", daemon=True)
    watch.start()
    try:
        yield
    except JaxRuntimeError as error:
        if told := _failure():  # this error is a consequence: the devices of the other process are gone
            raise TrainingError(told) from error
        _tell(lost := TrainingError(_lost(error)))
        raise lost from error
    except BaseException as error:
        _tell(error)
        raise
    finally:
        ended.set()
        watch.join()


def _lost(error: JaxRuntimeError) -> str:
    """The sentence for an error that no other process explains."""
    first = str(error).strip().splitlines()[0]
    return (
        f"a device failed, or a process that shares the training is gone ({first}); look at what the other processes "
        "printed and at the memory of their hosts, then resume the training"
    )


def _watch(ended: threading.Event) -> None:
    """Look for the failure of another process until the training has ended, and end this process if it cannot."""
    while not ended.wait(_POLL):
        told = _failure()
        if told is not None and not ended.wait(_GRACE):
            print(f"simengine: {told}", file=sys.stderr, flush=True)
            with suppress(JaxRuntimeError):
                jax.distributed.shutdown()  # the one that failed waits for it
            os._exit(1)


def _received(key: str) -> str:
    """The message under a key, for which this process waits unless another one fails."""
    while True:
        try:
            return str(_client().blocking_key_value_get(key, int(1000 * _POLL)))
        except JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
            if told := _failure():
                raise TrainingError(told) from None


def _failure() -> str | None:
    """The sentence of the process that failed first; None if none has."""
    try:
        return str(_client().key_value_try_get(_FAILURE))
    except JaxRuntimeError:
        return None


def _tell(error: BaseException) -> None:
    """Let the other processes know."""
    what = "was interrupted" if isinstance(error, KeyboardInterrupt) else f"failed: {error}"
    with suppress(JaxRuntimeError):  # another one was faster, or there is nobody to be told
        _client().key_value_set(_FAILURE, f"process {jax.process_index()} {what}")


def _client() -> Any:
    return distributed.global_state.client
