"""Sources contain the headers that they need, and no others."""

from __future__ import annotations

import re

import pytest

from simengine.kernels.cuda_codegen import kernel_source
from simengine.kernels.headers import needed_headers
from simengine.kernels.sources import body_sources, headers_after_model
from simengine.physics.files import path_of
from simengine.physics.stage import Stage
from simengine.plan import catalogue
from simengine.plan.stages import CRB, STAGES

HEADERS = headers_after_model(catalogue.single(CRB))
DEFINITION = re.compile(r"^(?:#define (\w+)|struct (\w+) |DEVICE\w* [\w*& <>]*?(\w+)\()", re.MULTILINE)


def defined(name: str) -> set[str]:
    return {name for found in DEFINITION.findall(path_of(name).read_text()) for name in found if name}


def code(text: str) -> str:
    return re.sub(r"//.*", "", text)


def names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", code(text)))


def test_a_header_comes_with_those_that_it_needs_in_their_order() -> None:
    assert needed_headers(HEADERS, "") == []
    assert needed_headers(HEADERS, "// dot3(a, b)") == [], "comments need nothing"
    spatial, tree = (path_of(name).read_text() for name in ("spatial.cuh", "tree.cuh"))
    assert needed_headers(HEADERS, "sum_subtrees(m, v)") == [spatial, tree]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_no_header_is_left_out_that_defines_what_a_source_uses(stage: Stage) -> None:
    kernel = catalogue.single(stage)
    source = kernel_source(kernel, "cuda")
    texts = {name: path_of(name).read_text().replace("#pragma once\n", "") for name in headers_after_model(kernel)}
    kept = [name for name in texts if texts[name] in source]
    behind = names("\n".join(body_sources(kernel)))
    for name in reversed(texts):
        if name in kept:
            behind |= names(texts[name])
        else:
            assert not defined(name) & behind, f"{name} is left out"
    assert len(kept) < len(texts)
