"""Make a failing model small: parts go as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from xml.etree import ElementTree as ET

_NEEDED = ("mujoco", "worldbody")


def shrink(text: str, fails: Callable[[str], bool], seconds: float, most: int = 400) -> str:
    """Remove elements and attributes, and simplify numbers, until none of it can go.

    Args:
        text: MJCF that fails.
        fails: whether a model still fails in the same way.
        seconds: time after which the smallest model so far is returned.
        most: attempts after which it is.

    Returns:
        MJCF that fails.
    """
    root, end, tried = ET.fromstring(text), time.monotonic() + seconds, 0
    changed = True
    while changed:
        changed = False
        for change in (_without_elements, _with_children_in_place, _without_attributes, _with_simple_numbers):
            k = 0
            while (candidate := _nth(change(root), k)) is not None:
                if tried >= most or time.monotonic() > end:
                    return _written(root)
                tried += 1
                if fails(_written(candidate)):
                    root, changed = candidate, True  # the candidate after it has its number now
                else:
                    k += 1
    return _written(root)


def _nth(candidates: Iterator[ET.Element], k: int) -> ET.Element | None:
    return next((candidate for number, candidate in enumerate(candidates) if number == k), None)


def _without_elements(root: ET.Element) -> Iterator[ET.Element]:
    """The model without each of its elements, the largest first."""
    order = sorted(_places(root), key=lambda place: -sum(1 for _ in _at(root, place).iter()))
    for place in order:
        if _at(root, place).tag not in _NEEDED:
            smaller = deepcopy(root)
            _at(smaller, place[:-1]).remove(_at(smaller, place))
            yield smaller


def _with_children_in_place(root: ET.Element) -> Iterator[ET.Element]:
    """The model with each body replaced by the bodies in it."""
    for place in _places(root):
        body = _at(root, place)
        inner = [k for k, child in enumerate(body) if child.tag == "body"]
        if body.tag == "body" and inner:
            smaller = deepcopy(root)
            parent, old = _at(smaller, place[:-1]), _at(smaller, place)
            parent.remove(old)
            for k in inner:
                parent.append(old[k])
            yield smaller


def _without_attributes(root: ET.Element) -> Iterator[ET.Element]:
    for place in _places(root):
        for name in _at(root, place).attrib:
            smaller = deepcopy(root)
            del _at(smaller, place).attrib[name]
            yield smaller


def _with_simple_numbers(root: ET.Element) -> Iterator[ET.Element]:
    """The model with each attribute of numbers rounded to two digits, where that changes it."""
    for place in _places(root):
        for name, value in _at(root, place).items():
            try:
                rounded = " ".join(f"{float(part):.2g}" for part in value.split())
                same = [float(part) for part in value.split()] == [float(part) for part in rounded.split()]
            except ValueError:
                continue
            if not same:
                simpler = deepcopy(root)
                _at(simpler, place).set(name, rounded)
                yield simpler


def _places(root: ET.Element) -> list[tuple[int, ...]]:
    """The indices that lead to every element but the root."""
    found: list[tuple[int, ...]] = []

    def visit(element: ET.Element, place: tuple[int, ...]) -> None:
        for k, child in enumerate(element):
            found.append((*place, k))
            visit(child, (*place, k))

    visit(root, ())
    return found


def _at(root: ET.Element, place: tuple[int, ...]) -> ET.Element:
    for k in place:
        root = root[k]
    return root


def _written(root: ET.Element) -> str:
    written = deepcopy(root)
    ET.indent(written)
    return ET.tostring(written, encoding="unicode")
