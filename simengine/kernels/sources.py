"""Source text of a kernel around its entry point: the dialect, the accessors of the model table, headers and bodies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from simengine.kernels.headers import needed_headers
from simengine.kernels.kernel import Kernel
from simengine.kernels.prelude import collide_switch, constants, model_struct
from simengine.model.pair_types import PAIRS, PairType
from simengine.physics.files import path_of
from simengine.physics.stage import Stage

_HERE = Path(__file__).parent
_DIALECT = ("dialect.cuh", "lanes_gpu.cuh", "lanes_host.cuh", "scalars.cuh", "lanes.cuh", "addresses.cuh")
_HEADERS_AFTER_MODEL = (
    "spatial.cuh",
    "tree.cuh",
    "envelope.cuh",
    "tile_factor.cuh",
    "row_terms.cuh",
    "branch_rows.cuh",
    "dof_ranges.cuh",
    "registers.cuh",
    "padded_matrix.cuh",
    "vector_matrices.cuh",
    "register_products.cuh",
    "dense.cuh",
    "wide.cuh",
    "four_pivots.cuh",
    "wide_solve.cuh",
    "range_solve.cuh",
    "block_rows.cuh",
    "branch_terms.cuh",
    "branch_solve.cuh",
    "linalg.cuh",
    "squares.cuh",
    "contact.cuh",
    "hull.cuh",
    "box.cuh",
    "sites.cuh",
    "lengths.cuh",
    "springs.cuh",
    "wrap.cuh",
    "actuators.cuh",
    "dual.cuh",
    "fluid.cuh",
    "search_queue.cuh",
    "spans.cuh",
    "bounds.cuh",
    "counting.cuh",
    "clusters.cuh",
    "sorting.cuh",
    "broadphase.cuh",
    "row_blocks.cuh",
    "rows.cuh",
    "contact_rows.cuh",
    "equality.cuh",
    "lane_blocks.cuh",
    "blocks.cuh",
    "energy.cuh",
    "integrate.cuh",
    "implicit_vectors.cuh",
    "implicit.cuh",
    "implicit_matrix.cuh",
    "forces.cuh",
    "ray.cuh",
    "ray_hfield.cuh",
    "sensor.cuh",
    "contact_sensor.cuh",
    "random.cuh",
    "row_law.cuh",
    "row_constants.cuh",
    "contact_columns.cuh",
    "unit_rows.cuh",
    "plain_rows.cuh",
    "cone_rows.cuh",
    "weighted_rows.cuh",
    "weighted_ranges.cuh",
    "ranges_as_warps.cuh",
    "rows_by_warps.cuh",
    "primal.cuh",
    "full_step.cuh",
    "newton_tile.cuh",
    "tangents.cuh",
    "cone_update.cuh",
    "whiten.cuh",
    "pgs.cuh",
    "sweep_orders.cuh",
    "pgs_rows.cuh",
    "pgs_in_vectors.cuh",
    "pgs_orders.cuh",
    "pgs_registers.cuh",
    "row_islands.cuh",
    "thin_cones.cuh",
    "noslip_rows.cuh",
    "noslip_sweeps.cuh",
)

_LARGE_HEADERS = (
    *("large.cuh", "large_runs.cuh", "large_hessian.cuh", "elimination_order.cuh", "large_sparse.cuh"),
    *("large_direct.cuh", "block_order.cuh", "large_factor.cuh", "large_pgs.cuh"),
)
_CONVEX_HEADERS = (
    *("shape.cuh", "simplex.cuh", "prism.cuh", "nearest.cuh", "simplex_vectors.cuh", "gjk.cuh", "descent.cuh"),
    "crossing.cuh",
    *("polish.cuh", "settle.cuh", "on_prism.cuh", "across_prism.cuh"),
    *("sides.cuh", "resting.cuh", "resting_on_sides.cuh"),
    *("polytope.cuh", "epa.cuh", "other_ways.cuh", "round_cores.cuh", "segment_cylinder.cuh"),
    *("solid.cuh", "polygon.cuh"),
    *("face_plane.cuh", "faces_in_vectors.cuh", "manifold.cuh"),
    *("prism_bounds.cuh", "prisms_in_vectors.cuh", "ball_on_prism.cuh"),
    "searches.cuh",
)


_BEHIND = {
    "patch": ("patch.cuh", "prism_search.cuh"),
    "hfield": ("patch.cuh", "prism_search.cuh", "hfield.cu"),
}
"""Files of functions that several bodies share, in their order, where a name stands for other files than its own."""


def headers_after_model(*kernels: Kernel) -> tuple[str, ...]:
    """Headers that follow `struct Model` in a source with these kernels, in their order."""
    large = any(kernel.unit == "large island" for kernel in kernels)
    return (*_HEADERS_AFTER_MODEL, *(_LARGE_HEADERS if large else ()))


def _told_apart(which: str) -> tuple[PairType, ...]:
    """Pair types by the word of `Stage.collides`."""
    plain = tuple(pair for pair in PAIRS if pair.plain or not pair.heavy)
    light = tuple(pair for pair in PAIRS if not pair.heavy)
    counted = tuple(pair for pair in PAIRS if pair.name != "convex" and not pair.shared)
    return {"": (), "light": light, "plain": plain, "counted": counted, "any": PAIRS}[which]


def _shared_sources(stages: Sequence[Stage]) -> list[Path]:
    """Files with functions that the bodies call: of the pair types that they tell apart, and of other stages."""
    names = [pair.name for stage in stages for pair in _told_apart(stage.collides)]
    names += [shared for stage in stages for shared in stage.shares]
    files = [file for name in names for file in _BEHIND.get(name, (f"{name}.cu",))]
    return [path_of(file) for file in dict.fromkeys(files)]


def stage_sources(*kernels: Kernel) -> list[Path]:
    """Files of the bodies, those whose functions others call first."""
    stages = [stage for kernel in kernels for stage in kernel.stages]
    return list(dict.fromkeys([*_shared_sources(stages), *(stage.source for stage in stages)]))


def body_sources(*kernels: Kernel) -> list[str]:
    """Texts of the bodies, behind those that they share and what is generated for them."""
    stages = [stage for kernel in kernels for stage in kernel.stages]
    paths, shared = stage_sources(*kernels), _shared_sources(stages)
    convex = any(path.stem == "convex" for path in paths)
    switches = dict.fromkeys(stage.collides for stage in stages if stage.collides)
    return [
        *(_text(path_of(name)) for name in _CONVEX_HEADERS if convex),
        *map(_text, shared),
        *(collide_switch(f"collide_{which}", _told_apart(which)) for which in switches),
        *map(_text, paths[len(shared) :]),
    ]


@cache
def _text(path: Path) -> str:
    """The text of a file, which is read once."""
    return path.read_text()


def dialect() -> str:
    """The text that comes before `struct Model` in every source."""
    return "\n".join(_text(_HERE / name) for name in _DIALECT)


def source_of(kernel: Kernel, definitions: list[str], entry: str, after_headers: str = "") -> str:
    """Source with an entry point: the dialect, the model's accessors, needed headers and the bodies of the stages."""
    own = (f"#define {name} {value}" for name, value in kernel.constants)
    parts = [*definitions, *own, dialect(), constants()]
    bodies = [after_headers, *body_sources(kernel), entry]
    if kernel.unit != "column":
        parts += ["#define UNIT_ISLAND"] if kernel.on_islands else []
        parts.append(model_struct(kernel))
        parts += needed_headers(headers_after_model(kernel), *bodies)
    return "\n".join(part.replace("#pragma once\n", "") for part in (*parts, *bodies))
