"""Which headers a source needs.

A small kernel needs few of the headers, and a compiler takes longer to read them all than to compile it. A header is
needed if it defines a name that occurs behind it: in the bodies, or in a header that is needed. Names are compared as
text, so a header may be taken in vain, but none is left out whose definitions are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from simengine.physics.files import path_of

_COMMENT = re.compile(r"//.*")
_NAME = re.compile(r"[A-Za-z_]\w*")
# Definitions begin in the first column. What is defined stands before a bracket, a sign or the end of the line.
_DEFINITION = re.compile(r"^(?:#\s*define\s+(\w+)|([A-Za-z_][^{\n]*))", re.MULTILINE)
_DEFINED = re.compile(r"([A-Za-z_]\w*)\s*(?:[(=;\[:<]|$)")
_KEYWORDS = frozenset("alignas const decltype if int real sizeof static struct template typename void".split())


class _Header(NamedTuple):
    text: str
    defined: frozenset[str]
    used: frozenset[str]


@cache
def _header(name: str) -> _Header:
    text = path_of(name).read_text()
    code = _COMMENT.sub("", text)
    defined: set[str] = set()
    for macro, line in _DEFINITION.findall(code):
        defined.update([macro] if macro else _DEFINED.findall(line))
    return _Header(text, frozenset(defined - _KEYWORDS), names_in(text))


@lru_cache(maxsize=512)  # the files of all kernels, which most sources share
def names_in(text: str) -> frozenset[str]:
    """The names that occur in a text outside comments."""
    return frozenset(_NAME.findall(_COMMENT.sub("", text)))


def needed_headers(headers: Iterable[str], *behind: str) -> list[str]:
    """Texts of the headers that a source needs, in their order.

    Args:
        headers: names of all headers, in an order in which each needs only those before it.
        behind: the texts that follow them.
    """
    wanted, texts = set[str]().union(*map(names_in, behind)), []
    for header in map(_header, reversed(list(headers))):
        if not header.defined.isdisjoint(wanted):
            texts.append(header.text)
            wanted |= header.used
    return texts[::-1]
