"""`Stage`: the declaration of one part of a physics step, and its three forms.

A stage `x` is three files: `x.py` (this declaration), `x.cu` (the device body in the portable dialect) and `x_jax.py`
(the same mathematics in JAX, for one world). The declaration fixes the order of the arguments of both bodies: reads,
writes, updates, then the body's own scratch and scalars.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from simengine.physics.files import module_of, path_of
from simengine.state.fields import FIELD

Dims = tuple[int | str, ...]


class Form(StrEnum):
    """What a form of a stage is for. A stage without a form serves simple models, or all models."""

    GENERAL = "general"
    """Models with features that the simple form leaves out."""
    BLOCKS = "blocks"
    """Worlds that are solved island by island, whose inertia is stored by blocks of dofs."""
    WIDE = "wide"
    """Worlds whose matrices are in registers of a GPU, from 33 dofs on two rows in a lane."""
    BRANCHES = "branches"
    """Worlds of more than 64 dofs whose matrices have entries along the branches of trees."""
    LARGE = "large"
    """Islands of more dofs than dense matrices have."""


@dataclass(frozen=True)
class Stage:
    """One stage of the physics.

    Attributes:
        name: stem of the three files, and name of the device function and of the stage in traces.
        reads: fields that the body only reads.
        writes: fields that the body writes entirely (of an arena: the part of the world at hand). Of ten_J, and on GPUs
            of actuator_moment, those are the entries in the model table. The others are zero from the start.
        updates: fields that the body reads and writes through one pointer.
        scratch: private working arrays, (name, shape for one world); a shape may use the sizes of the model, "nvp" (nv
            padded to a multiple of four) and "nrow" (the largest number of rows in the solver's size class).
        scalars: integer launch arguments.
        in_place: pairs (read, write) that may share memory where a kernel has both in scratch, because the body reads
            all of the first before it writes the second.
        shares: stages whose files hold functions that this body calls.
        collides: which pair types the body tells apart, "light", "plain", "counted" (all that neither need a search nor
            share lanes) or "any": its source then follows theirs, and
            a function `collide_<which>` over them.
        form: what this form of a stage is for, where a stage has several.
        of: names of the stages whose work it does in this form.
        contact_parameters: the body reads parameters of contacts, such as friction. These stand in the model's table,
            or, where pairs of geoms are found anew in every step, beside each contact.
        symmetric: the body factors a symmetric matrix of the size of nv, or solves by eliminating one.
        flops: rough count of floating-point operations per world and dof, for cost hints.
        body: name of the device function and stem of its file, where several stages share one; empty where both are
            the stage's name.
        constants: template arguments of the device function, by which the stages that share it differ.
        if_kept: a kernel leaves the body out if it stores nothing that the body writes. No later body may read that.
        jax: "module:function" of the JAX form, the module without its package; empty for a stage that JAX does not
            need, because array shapes are fixed there.
    """

    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    scratch: tuple[tuple[str, Dims], ...] = ()
    scalars: tuple[str, ...] = ()
    in_place: tuple[tuple[str, str], ...] = ()
    shares: tuple[str, ...] = ()
    collides: str = ""
    form: Form | None = None
    of: tuple[str, ...] = ()
    contact_parameters: bool = False
    symmetric: bool = False
    flops: float = 0.0
    body: str = ""
    constants: str = ""
    if_kept: bool = False
    jax: str = ""

    def __post_init__(self) -> None:
        unknown = [name for name in self.fields if name not in FIELD]
        if unknown:
            raise ValueError(
                f"stage {self.name!r} names unknown field(s) {unknown}; add them to simengine.state.fields"
            )
        if bool(self.form) != bool(self.of):
            raise ValueError(
                f"stage {self.name!r} has a form, or is one of other stages, but not both; give both or none"
            )
        if len(set(self.fields)) != len(self.fields):
            raise ValueError(f"stage {self.name!r} names a field twice; a field is read, written or updated, once")

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields, in the order of the body's arguments."""
        return self.reads + self.writes + self.updates

    @property
    def function(self) -> str:
        """Name of the device function."""
        return self.body or self.name

    @property
    def callee(self) -> str:
        """The device function with its template arguments, as a call writes it."""
        return f"{self.function}<{self.constants}>" if self.constants else self.function

    @property
    def source(self) -> Path:
        """Path of the device body."""
        return path_of(f"{self.function}.cu")

    def load_jax(self) -> Callable[..., Any]:
        """Import the JAX form, and jax with it."""
        stem, _, function = self.jax.partition(":")
        return getattr(importlib.import_module(module_of(stem)), function)
