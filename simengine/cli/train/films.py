"""Films of the policies that a training evaluates, each drawn by a process of its own while the training goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from signal import SIGINT
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from simengine.cli.recordings.video import require_renderer
from simengine_training.folder import evaluated_policy

if TYPE_CHECKING:
    from simengine_training.curve import Row

STEPS = 300
"""Steps of each world of a film at most."""

# A GPU belongs to the training. Worlds of a film are few, and are stepped on the CPU.
_ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}


class Films:
    """Films `videos/000080.mp4` of the policies `policies/000080.npz` in the folder of a training.

    Policies that earlier pieces of the training have left without a film get theirs first. Leaving the `with` block
    waits for the films; if an error or Ctrl-C ends it, those that are not complete are left out. A film that fails is
    told in a sentence, and the training goes on.

    Args:
        folder: the folder of the training.
        imports: modules that register environments.

    Raises:
        RuntimeError: no films can be drawn here.
    """

    def __init__(self, folder: Path, imports: Sequence[str]):
        require_renderer()
        self._folder, self._imports = folder, imports
        self._waiting: SimpleQueue[Path | None] = SimpleQueue()
        self._drawing: subprocess.Popen[str] | None = None
        self._stopped = False
        self._lock = Lock()  # of the two above
        self._thread = Thread(target=self._work, name="films", daemon=True)
        for policy in sorted(evaluated_policy(folder, 0).parent.glob("[0-9]*.npz")):
            self._waiting.put(policy)

    def __call__(self, row: Row) -> None:
        """Film the policy of an evaluation; rows of updates are left alone."""
        if "return_std" in row:
            self._waiting.put(evaluated_policy(self._folder, int(row["update"])))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.put(None)
        try:
            if kind is None:
                self._thread.join()
        finally:
            with self._lock:
                self._stopped = True
                if self._drawing is not None:
                    self._drawing.send_signal(SIGINT)  # upon which it removes what is not complete
            self._thread.join()

    def _work(self) -> None:
        while (policy := self._waiting.get()) is not None and not self._stopped:
            film = self._folder / "videos" / f"{policy.stem}.mp4"
            if not film.exists():
                self._draw(policy, film)

    def _draw(self, policy: Path, film: Path) -> None:
        imports = [word for module in self._imports for word in ("--import", module)]
        words = ["play", str(policy), *imports, "--video", str(film), "--steps", str(STEPS), "--episodes", "1"]
        call = [sys.executable, "-m", "simengine.cli.main", *words]
        pipe, env = subprocess.PIPE, os.environ | _ON_THE_CPU
        with self._lock:
            if self._stopped:
                return
            # in a session of its own, so that Ctrl-C on a terminal reaches the training alone
            self._drawing = subprocess.Popen(call, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
        said = self._drawing.communicate()[1].strip().splitlines()
        if self._drawing.returncode and not self._stopped:
            reason = said[-1].removeprefix("simengine: ") if said else f"exit code {self._drawing.returncode}"
            print(f"simengine: {film} could not be drawn: {reason}", file=sys.stderr)
