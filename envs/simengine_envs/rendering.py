"""Draws pictures of a world with Gymnasium's MuJoCo renderer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import mujoco
import numpy as np

from simengine.errors import did_you_mean
from simengine_envs.camera import followed_body
from simengine_envs.task import Task

RENDER_MODES = ("human", "rgb_array", "depth_array", "rgbd_tuple")
GRID = "rgb_array_grid"
_START = 0.1  # how far from its home a robot may start without moving the camera [m]
VECTOR_MODES = (*(mode for mode in RENDER_MODES if mode != "human"), GRID)
"""Render modes of vector environments, which open no windows. `GRID` gives one picture of many worlds."""


class RenderOptions(NamedTuple):
    """How worlds are drawn: the rendering arguments of Gymnasium's MuJoCo environments, under the same names.

    Attributes:
        width, height: size of the picture [pixels].
        camera_id, camera_name: a camera of the model; the free camera if both are None.
        max_geom: largest number of geoms to draw.
        visual_options: flags of MuJoCo's visualiser (`mjtVisFlag`) and their values.
    """

    width: int = 480
    height: int = 480
    camera_id: int | None = None
    camera_name: str | None = None
    max_geom: int = 1000
    visual_options: Mapping[int, bool] | None = None


class Renderer:
    """Draws states of a task's model. The first picture opens a window or an off-screen context.

    The free camera moves along with a robot that walks away. It draws unless a camera of the model is chosen.

    Args:
        task: gives the model, the frame skip and the camera.
        render_mode: one of `modes`; None if nothing will be drawn.
        options: how worlds are drawn.
        modes: the modes that the environment has.

    Raises:
        ValueError: the render mode is unknown.
    """

    def __init__(
        self, task: Task, render_mode: str | None, options: RenderOptions, modes: tuple[str, ...] = RENDER_MODES
    ):
        if render_mode is not None and render_mode not in modes:
            hint = did_you_mean(render_mode, modes)
            raise ValueError(f"render_mode {render_mode!r} is unknown{hint}; give one of {', '.join(modes)}, or None")
        self._modes = modes
        self.render_mode = render_mode
        self._task = task
        self.options = options
        self._stage: Any = None
        self._body: int | None = None
        self._seen: np.ndarray | None = None  # where the followed body was in the latest picture, (2,) [m]

    def render(self, qpos: np.ndarray, qvel: np.ndarray, time: float) -> Any:
        """Draw one state.

        Args:
            qpos: (nq,).
            qvel: (nv,).
            time: time of the simulation [s], which the window shows.

        Returns:
            None for render mode "human", (height, width, 3) uint8 for "rgb_array" and "rgb_array_grid", (height, width)
            float32 for "depth_array", and both arrays for "rgbd_tuple".

        Raises:
            ValueError: the environment was made without a render mode.
            ImportError: packages that Gymnasium needs for drawing are missing.
        """
        if self.render_mode is None:
            raise ValueError(
                f"this environment has no render_mode; make it with render_mode= one of {', '.join(self._modes)}"
            )
        if self._stage is None:
            self._stage = self._open()
        self._stage.data.time = time
        self._stage.set_state(qpos, qvel)
        if (viewer := self._stage.mujoco_renderer.viewer) is not None:
            viewer.make_context_current()  # another renderer may have drawn since
        if self._body is None:
            return self._stage.render()
        now = self._stage.data.xpos[self._body, :2].copy()
        if self._seen is None:
            picture = self._stage.render()  # aims the camera
            self._seen = self._aimed_at(now)
            if np.linalg.norm(now - self._seen) < _START:
                self._seen = now
                return picture
        self._stage.mujoco_renderer.viewer.cam.lookat[:2] += now - self._seen
        self._seen = now
        return self._stage.render()

    def _aimed_at(self, now: np.ndarray) -> np.ndarray:
        """Where the followed body is in the middle of the first picture, (2,) [m]: its home if the task says where the
        camera looks. If not, Gymnasium looks at what is there now."""
        if "lookat" not in (self._task.default_camera_config or {}):
            return now
        home = mujoco.MjData(self._stage.model)
        mujoco.mj_kinematics(self._stage.model, home)
        return home.xpos[self._body, :2].copy()

    def _open(self) -> Any:
        """Make a bare `MujocoEnv` of Gymnasium, which owns and draws the `MjData` that states are copied into."""
        try:
            from gymnasium.envs.mujoco import MujocoEnv
        except ImportError as error:
            raise ImportError(
                f"rendering needs Gymnasium's MuJoCo extra ({error}); install it with: pip install 'gymnasium[mujoco]'"
            ) from error
        model = copy(self._task.load().mj)  # the size of the picture is set in the model
        self._body, self._seen = followed_body(model, self._task.default_camera_config), None

        class Stage(MujocoEnv):  # type: ignore[misc]
            """Draws the model that the task has loaded, which need not be a file."""

            def _initialize_simulation(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
                model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.width)
                model.vis.global_.offheight = max(model.vis.global_.offheight, self.height)
                return model, mujoco.MjData(model)

        return Stage(
            os.path.abspath(__file__),  # any file that exists
            self._task.frame_skip,
            observation_space=None,
            render_mode="rgb_array" if self.render_mode == GRID else self.render_mode,
            default_camera_config=dict(self._task.default_camera_config or {}),
            **self.options._asdict(),
        )

    def close(self) -> None:
        """Close the window or the context. The next picture opens it again."""
        if self._stage is not None:
            self._stage.close()
            self._stage = None
