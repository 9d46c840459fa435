"""`AutoresetMode` of Gymnasium, or one of simengine's own where Gymnasium is older and has none.

Single environments run under Gymnasium 0.29 as well, for which CleanRL's programs are written.
"""

from __future__ import annotations

from enum import Enum

import gymnasium

try:
    from gymnasium.vector import AutoresetMode
except ImportError:

    class AutoresetMode(Enum):  # type: ignore[no-redef]
        """When a new episode starts after one has ended."""

        NEXT_STEP = "NextStep"
        SAME_STEP = "SameStep"
        DISABLED = "Disabled"


__all__ = ["AutoresetMode", "check_gymnasium"]


def check_gymnasium() -> None:
    """Raise ImportError if this Gymnasium has no vector environments as those of simengine are."""
    if not AutoresetMode.__module__.startswith("gymnasium"):
        raise ImportError(
            "vector environments need gymnasium>=1.2, and this is Gymnasium "
            f"{gymnasium.__version__}; upgrade it, or make single environments with gymnasium.make"
        )
