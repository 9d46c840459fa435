"""`Drawing`: the worlds on the page, one draw call for each shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simengine.view.extras import viser
from simengine.view.forces import Forces, arrows
from simengine.view.scene import SHOWN_GROUPS, Draw, draws, grid_offsets, place, spacing
from simengine.view.worlds import Worlds

MOST_SHOWN = 256
"""Most worlds that are drawn at once."""

_ROOT = "/worlds"  # its frame moves where the camera follows a world
_CONTACT, _CONTACT_FORCE, _APPLIED = (230, 120, 20), (40, 150, 60), (200, 30, 40)
_OUTLINE = (40, 110, 220)
_ALONE = 0.7  # side of the layout of one world, in tiles, for the camera
_DISTANCE = (0.2, -0.85, 0.6)  # from what the camera looks at to the camera, in sides of the layout


@dataclass
class Choices:
    """What a user chose to see.

    Attributes:
        followed: the chosen world.
        alone: show the chosen world alone.
        camera_follows: keep the chosen world in the middle.
        spread: distance of neighbouring worlds, as a factor of the usual one.
        groups: MuJoCo's groups of the visible geoms.
        contacts: show the contacts of the chosen world and their forces.
        applied: show the applied forces of the chosen world.
    """

    followed: int = 0
    alone: bool = False
    camera_follows: bool = False
    spread: float = 1.0
    groups: set[int] = field(default_factory=lambda: set(range(SHOWN_GROUPS)))
    contacts: bool = False
    applied: bool = True


class Drawing:
    """The worlds on the page.

    Args:
        server: the page's server.
        worlds: what is drawn.
        choices: what is shown. It is read when a frame is drawn.

    Attributes:
        shown: the range of worlds that are drawn.
    """

    def __init__(self, server: viser.ViserServer, worlds: Worlds, choices: Choices) -> None:
        self.shown = range(0)
        self._server, self._worlds, self._choices = server, worlds, choices
        self._usual = spacing(worlds.mj)
        self._built: tuple[range, bool, float] | None = None
        self._handles: list[tuple[Draw, viser.BatchedMeshHandle]] = []
        self._offsets = np.zeros((0, 3))
        self._root = server.scene.add_frame(_ROOT, show_axes=False)
        self._add_overlays()

    def _add_overlays(self) -> None:
        scale, nothing = self._worlds.mj.vis.scale, np.zeros((1, 3))
        unit = float(self._worlds.mj.stat.meansize)
        arrow = {
            "shaft_radius": 1.0 * scale.forcewidth * unit,
            "head_radius": 2.4 * scale.forcewidth * unit,
            "head_length": 5.0 * scale.forcewidth * unit,
        }
        scene, hidden = self._server.scene, np.zeros((1, 2, 3))
        self._contacts = scene.add_point_cloud(
            f"{_ROOT}/contacts",
            nothing,
            _CONTACT,
            point_size=scale.contactwidth * unit,
            point_shape="circle",
            precision="float32",
            visible=False,
        )
        self._forces = scene.add_arrows(f"{_ROOT}/contact forces", hidden, _CONTACT_FORCE, visible=False, **arrow)
        self._applied = scene.add_arrows(f"{_ROOT}/applied forces", hidden, _APPLIED, visible=False, **arrow)
        self._outline = scene.add_line_segments(
            f"{_ROOT}/chosen world", hidden, _OUTLINE, thickness=3.0, thickness_units="screen", visible=False
        )

    def update(self) -> None:
        """Draw the present state, as chosen."""
        wanted = (self._range(), self._choices.alone, self._choices.spread)
        with self._server.atomic():
            if wanted != self._built:
                self._build(*wanted)
            xpos, xmat = self._worlds.geom_poses(self.shown.start, self.shown.stop)
            for draw, handle in self._handles:
                handle.visible = draw.group in self._choices.groups
                if handle.visible:
                    handle.batched_positions, handle.batched_wxyzs = place(draw, xpos, xmat, self._offsets)
            self._root.position = self._middle(xpos)
            self._update_overlays()

    def _range(self) -> range:
        """The worlds to draw: the chosen one, or the block of worlds that has it."""
        followed = self._choices.followed
        if self._choices.alone:
            return range(followed, followed + 1)
        first = followed // MOST_SHOWN * MOST_SHOWN
        return range(first, min(first + MOST_SHOWN, self._worlds.num_worlds))

    def _build(self, shown: range, alone: bool, spread: float) -> None:
        """Make the copies of all shapes. Their poses follow with every frame."""
        for _, handle in self._handles:
            handle.remove()
        tile = self._usual * spread
        was_alone = self._built is not None and self._built[1]
        self.shown, self._offsets = shown, grid_offsets(len(shown), tile)
        self._handles = [(draw, self._add(draw, len(shown))) for draw in draws(self._worlds.mj, tile, alone)]
        if self._built is None or was_alone != alone:
            self._look_at_all(tile * (np.ceil(np.sqrt(len(shown))) if len(shown) > 1 else _ALONE))
        self._built = (shown, alone, spread)

    def _add(self, draw: Draw, worlds: int) -> viser.BatchedMeshHandle:
        copies = len(draw.geom) * worlds
        rgba = np.tile(np.clip(draw.rgba, 0, 1), (worlds, 1))
        upright = np.zeros((copies, 4), np.float32)
        upright[:, 0] = 1
        return self._server.scene.add_batched_meshes_simple(
            f"{_ROOT}/{draw.name}",
            draw.shape.vertices,
            draw.shape.faces,
            batched_wxyzs=upright,
            batched_positions=np.zeros((copies, 3), np.float32),
            batched_scales=np.tile(draw.scale, (worlds, 1)).astype(np.float32),
            batched_colors=np.round(255 * rgba[:, :3]).astype(np.uint8),
            batched_opacities=None if (rgba[:, 3] == 1).all() else rgba[:, 3].astype(np.float32),
            lod="auto" if draw.shape.name.startswith("mesh") else "off",
            side="double" if draw.shape.name == "square" else "front",
            cast_shadow=False,
            receive_shadow=False,
            visible=draw.group in self._choices.groups,
        )

    def _look_at_all(self, side: float) -> None:
        """Point the cameras at the whole layout: those of open pages, and of pages that open later."""
        target = np.array([0, 0, self._worlds.mj.stat.center[2]])
        cameras: list[Any] = [client.camera for client in self._server.get_clients().values()]
        for camera in (self._server.initial_camera, *cameras):
            camera.position = target + side * np.array(_DISTANCE)
            camera.look_at = target

    def _middle(self, xpos: np.ndarray) -> np.ndarray:
        """Where the scene's frame must lie so that the chosen world stays in the middle, (3,) [m]."""
        moves = self._worlds.mj.body_weldid[self._worlds.mj.geom_bodyid] > 0
        if not self._choices.camera_follows or not moves.any():
            return np.zeros(3)
        index = self._choices.followed - self.shown.start
        return np.asarray((xpos[index, moves].mean(0) + self._offsets[index]) * (-1, -1, 0))

    def _update_overlays(self) -> None:
        world = self._choices.followed
        offset = self._offsets[world - self.shown.start]
        nothing = Forces(np.zeros((0, 3)), np.zeros((0, 3)))
        touching = self._worlds.contact_forces(world) if self._choices.contacts else nothing
        applied = self._worlds.applied_forces(world) if self._choices.applied else nothing
        _show(self._contacts, touching.pos + offset)
        _show(self._forces, arrows(self._worlds.mj, touching) + offset)
        _show(self._applied, arrows(self._worlds.mj, applied) + offset)
        corners = self._usual * self._choices.spread / 2 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
        corners = np.pad(corners, ((0, 0), (0, 1))) + offset + (0, 0, 0.01)
        edges = np.stack([corners, np.roll(corners, -1, axis=0)], 1)
        _show(self._outline, edges if len(self.shown) > 1 else edges[:0])


def _show(handle: Any, points: np.ndarray) -> None:
    """Show points, arrows or lines, or hide the handle where there are none."""
    if len(points):
        handle.points = points
    handle.visible = len(points) > 0
