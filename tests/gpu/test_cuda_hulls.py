"""The farthest vertex of a hull on a GPU: a look at the packs of a cell finds what a look at all vertices finds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from simengine.kernels import sources
from simengine.kernels.host_build import defines
from simengine.model.cubemaps import cell_packs, cube_map
from tests.gpu.compare import cuda_only
from tests.stages.test_cube_maps import ENTRY, HEADERS, HULLS, PACKAGE, directions_for

LOOKUP = """
extern "C" __global__ void lookup(const real* vert, int nvert, const int* adr, const int* list, int side,
                                  const int* pack, const real* dirs, int n, int* out, real* places) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Hull hull = {vert, nvert, real(0), adr, list, side, pack};
  const real dir[3] = {dirs[3 * i], dirs[3 * i + 1], dirs[3 * i + 2]};
  real place[3];
  out[i] = farthest_point(hull, dir, place);
  for (int k = 0; k < 3; ++k) places[3 * i + k] = place[k];
}
"""


def source() -> str:
    headers = ((PACKAGE / name).read_text() for name in HEADERS)
    return "\n".join([sources.dialect(), ENTRY, *headers, LOOKUP]).replace("#pragma once\n", "")


def options(dtype: str) -> tuple[str, ...]:
    return ("--std=c++17", "--fmad=false", *defines(dtype, 32), "-DBLOCK=128")


@cache
def kernel(dtype: str) -> Any:
    import cupy

    return cupy.RawModule(code=source(), options=options(dtype)).get_function("lookup")


@cuda_only
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", HULLS)
def test_packs_have_the_vertex_of_a_look_at_all(backend: str, name: str, dtype: str) -> None:
    import cupy

    rng = np.random.default_rng(len(name))
    vert = HULLS[name](rng)[rng.permutation(len(HULLS[name](rng)))]
    vert = vert.astype(np.float32).astype(np.float64)  # as MuJoCo stores them
    cube, directions = cube_map(vert), directions_for(rng, vert)
    packs = cupy.asarray(cell_packs(cube.adr, cube.vert, vert[cube.vert]))
    points, dirs = cupy.asarray(vert, dtype), cupy.asarray(directions, dtype)
    adr, listed = cupy.asarray(cube.adr, np.int32), cupy.asarray(cube.vert, np.int32)

    def found(side: int, pack: Any) -> np.ndarray:
        out, places = cupy.full(len(dirs), -1, np.int32), cupy.full_like(dirs, np.nan)
        words = (points, np.int32(len(vert)), adr, listed, np.int32(side), pack, dirs, np.int32(len(dirs)), out, places)
        kernel(dtype)((-(-len(dirs) // 128),), (128,), words)
        np.testing.assert_array_equal(places.get(), points.get()[out.get()])
        return out.get()

    everywhere = found(0, np.uintp(0))
    np.testing.assert_array_equal(found(cube.side, np.uintp(0)), everywhere)
    np.testing.assert_array_equal(found(cube.side, packs), everywhere)
