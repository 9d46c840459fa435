"""Draw a batch of different robots as a moving picture: the engine steps them, MuJoCo's renderer draws them.

    MUJOCO_GL=egl python examples/picture.py robots.webp

Ants, humanoids and robots drawn at random fall onto one floor and move under random controls. All of them are one
simulation; each group of worlds has a model of its own. A world knows nothing of its neighbours in the picture: every
one is simulated at the origin and drawn at its own place of a grid. MuJoCo needs OpenGL without a window for this, by
`MUJOCO_GL=egl` or `MUJOCO_GL=osmesa`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image
from rich.progress import track

import simengine
from simengine.zoo import random_robot

COLOURS = ((0.90, 0.49, 0.13), (0.16, 0.50, 0.73), (0.15, 0.68, 0.38), (0.61, 0.35, 0.71), (0.75, 0.22, 0.17))
SPACING = 1.9  # [m] between neighbours of the grid
FLOOR = """<mujoco>
  <statistic extent="14" center="0 0 0"/>
  <visual>
    <quality shadowsize="4096"/><map shadowclip="1"/>
    <headlight ambient=".35 .35 .35" diffuse=".3 .3 .3" specular="0 0 0"/>
  </visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".86 .90 .94" rgb2=".98 .98 .99" width="64" height="64"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1=".80 .83 .86" rgb2=".74 .77 .81" width="64" height="64"/>
    <material name="tiles" texture="tiles" texrepeat=".6 .6" texuniform="true"/>
  </asset>
  <worldbody>
    <light directional="true" pos="2 -2 8" dir="-.25 .25 -1" diffuse=".6 .6 .6"/>
    <geom type="plane" size="40 40 1" material="tiles"/>
  </worldbody>
</mujoco>"""


def make_batch(random_robots: int, backend: str) -> simengine.Simulation:
    """One simulation of ants, humanoids and random robots, in poses that are tilted at random, above the floor."""
    rng = np.random.default_rng(5)
    pairs = [(simengine.load_model(name), 6) for name in ("ant", "humanoid")]
    pairs += [(simengine.load_model(random_robot(seed)), 1) for seed in range(random_robots)]
    sim = simengine.Simulation(pairs, backend=backend)
    for group in sim.groups:
        qpos = np.tile(group.model.mj.qpos0, (group.num_worlds, 1))
        qpos[:, 2] += rng.uniform(0.4, 1.4, group.num_worlds)
        turn = rng.normal(size=(group.num_worlds, 4)) * 0.35 + [1, 0, 0, 0]
        qpos[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        group.set_state(qpos=qpos)
    return sim


def advance(sim: simengine.Simulation, rng: np.random.Generator, seconds: float) -> None:
    """Step every group by about so much time under new random controls; a group has its model's own time step."""
    for group in sim.groups:
        low, high = group.model.mj.actuator_ctrlrange.T
        group.set_state(ctrl=rng.uniform(0.7 * low, 0.7 * high, (group.num_worlds, group.model.nu)))
    ticks = [max(1, round(seconds / group.model.mj.opt.timestep)) for group in sim.groups]
    done = 0
    for target in sorted(set(ticks)):
        sim.step(target - done)
        done = target
        for group, last in zip(sim.groups, ticks, strict=True):
            group.paused = last <= target
    for group in sim.groups:
        group.paused = False


class Painter:
    """Draws all worlds of a simulation as one scene."""

    def __init__(self, sim: simengine.Simulation, width: int, height: int):
        floor = mujoco.MjModel.from_xml_string(FLOOR)
        floor.vis.global_.offwidth, floor.vis.global_.offheight = width, height
        self._groups = sim.groups
        self._data = [mujoco.MjData(group.model.mj) for group in sim.groups]
        self._floor = mujoco.MjData(floor)
        self._renderer = mujoco.Renderer(floor, height, width, max_geom=4000)
        self._camera = mujoco.MjvCamera()
        self._camera.azimuth, self._camera.elevation, self._camera.distance = 90, -28, 12.4
        self._camera.lookat[:] = 0, 0.6, 0
        mujoco.mj_forward(floor, self._floor)
        count = sum(group.num_worlds for group in sim.groups)
        columns = int(np.ceil(np.sqrt(2 * count)))
        rows = -(-count // columns)
        places = np.array([(i % columns, i // columns) for i in range(count)], dtype=float)
        places = (places - [(columns - 1) / 2, (rows - 1) / 2]) * SPACING
        self._places = np.random.default_rng(2).permutation(places)

    def frame(self) -> Image.Image:
        """The worlds as they are."""
        self._renderer.update_scene(self._floor, self._camera)
        places = iter(self._places)
        for number, (group, data) in enumerate(zip(self._groups, self._data, strict=True)):
            for qpos in group.to_host(group.qpos):
                data.qpos[:] = qpos
                data.qpos[:2] += next(places)
                mujoco.mj_kinematics(group.model.mj, data)
                self._add(group.model.mj, data, COLOURS[number % len(COLOURS)])
        return Image.fromarray(self._renderer.render())

    def _add(self, model: mujoco.MjModel, data: mujoco.MjData, colour: tuple[float, float, float]) -> None:
        """Append the moving geoms of one world to the scene, without their textures."""
        scene = self._renderer.scene
        first = scene.ngeom
        options, moving = mujoco.MjvOption(), mujoco.mjtCatBit.mjCAT_DYNAMIC
        mujoco.mjv_addGeoms(model, data, options, mujoco.MjvPerturb(), moving, scene)
        for geom in scene.geoms[first : scene.ngeom]:
            geom.matid = -1
            geom.rgba[:] = (*colour, 1)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the picture to write: .webp or .gif")
    parser.add_argument("--robots", type=int, default=24, help="robots drawn at random (default 24)")
    parser.add_argument("--seconds", type=float, default=4.0, help="simulated time (default 4)")
    parser.add_argument("--fps", type=int, default=20, help="frames a second (default 20)")
    parser.add_argument("--size", type=int, nargs=2, default=(720, 360), metavar=("WIDTH", "HEIGHT"), help="pixels")
    parser.add_argument("--backend", default="auto", help="backend of the simulation (default auto)")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    sim = make_batch(options.robots, options.backend)
    painter = Painter(sim, *options.size)
    frames = []
    for _ in track(range(round(options.seconds * options.fps)), description="frames"):
        frames.append(painter.frame())
        advance(sim, rng, 1 / options.fps)
    shown: dict[str, Any] = {"save_all": True, "append_images": frames[1:], "loop": 0}
    if options.file.suffix == ".webp":
        shown |= {"quality": 60, "method": 6}
    frames[0].save(options.file, duration=round(1000 / options.fps), **shown)
    sim.close()
    print(f"{len(frames)} frames of {sim.num_worlds} worlds in {options.file}, {options.file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
