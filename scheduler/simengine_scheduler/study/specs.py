"""Specs: a name and options in one word, such as `streams:completion=polling,window=16`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import choose_one
from ..executors.base import Options
from ..registry import EXECUTORS


@dataclass(frozen=True)
class Spec:
    """A name and options. As text it is `name:option=value,option=value`."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read a spec. Values are whole numbers, `true`, `false` or words. Raises ValueError for other text."""
        name, colon, rest = text.partition(":")
        options: dict[str, Any] = {}
        for part in rest.split(",") if colon else ():
            key, equals, value = part.partition("=")
            if not (key.isidentifier() and equals and value) or key in options:
                raise ValueError(f"spec {text!r} is not like 'name' or 'name:option=value,option=value'; see {part!r}")
            options[key] = _value(value)
        if not name:
            raise ValueError(f"spec {text!r} has no name; write 'name' or 'name:option=value'")
        return cls(name, options)

    def __str__(self) -> str:
        shown = ",".join(f"{key}={_shown(value)}" for key, value in self.options.items())
        return f"{self.name}:{shown}" if shown else self.name


def offered(spec: Spec) -> str:
    """Return why `make_executor` refuses a spec, or an empty string if it does not."""
    if spec.name not in EXECUTORS:
        return f"unknown executor {spec.name!r}; {choose_one(spec.name, sorted(EXECUTORS))}"
    try:
        Options(**spec.options)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _value(text: str) -> Any:
    if text.lstrip("-").isdigit():
        return int(text)
    return {"true": True, "false": False}.get(text, text)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
