"""What the state table says of one field."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """One field of the state table.

    Attributes:
        name: MuJoCo's name, or the engine's own where MuJoCo has none.
        kind: "real" or "int".
        dims: shape of one entry; integers, sizes of the model, "nvp" (nv rounded up to a multiple of four) or
            "size+1".
        space: see `simengine.state.fields`.
        doc: meaning, unit and frame.
    """

    name: str
    kind: str
    dims: tuple[int | str, ...]
    space: str
    doc: str


def of_world(name: str, *dims: int | str, doc: str, kind: str = "real") -> Field:
    """A field of the space `world`."""
    return Field(name, kind, dims, "world", doc)


def of_block(name: str, *dims: int | str, doc: str, kind: str = "real") -> Field:
    """A field of the space `block`."""
    return Field(name, kind, dims, "block", doc)
