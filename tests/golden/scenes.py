"""Models of the golden cases that no other test needs, as MJCF text."""

from __future__ import annotations

ARM = """
<body pos="-1.2 0 0.5">
  <joint name="shoulder" axis="0 1 0" damping="0.3" frictionloss="0.1" range="-60 60"/>
  <geom type="capsule" size="0.05" fromto="0 0 0 0.5 0 0"/>
  <body pos="0.5 0 0">
    <joint name="elbow" axis="0 1 0" damping="0.2"/><geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0"/>
  </body>
</body>
"""
SHAPES = ('type="sphere" size="0.1"', 'type="capsule" size="0.07 0.08"', 'type="box" size="0.1 0.08 0.06"')
TABLE = '<geom type="box" size="0.14 0.1 0.03"/>' + "".join(
    f'<geom type="sphere" size="0.05" pos="{x} {y} -0.06"/>' for x, y in ((-0.1, 0), (0.1, 0.07), (0.1, -0.07))
)


def _document(name: str, option: str, bodies: list[str], more: str = "") -> str:
    return f"""
<mujoco model="{name}">
  <option timestep="0.004" {option}/>
  <default><geom density="600"/></default>
  <worldbody><geom type="plane" size="9 9 1"/>{ARM}{"".join(bodies)}</worldbody>
  <actuator><motor joint="shoulder" gear="8"/><position joint="elbow" kp="6"/></actuator>{more}
</mujoco>
"""


def _free(index: int, x: float, y: float, z: float, geoms: str, angles: str = "0 0 0") -> str:
    """A free body, shifted a little from its position, so that nothing stands in balance."""
    x, y = x + 0.013 * (index * 7 % 5 - 2), y + 0.011 * (index * 3 % 5 - 2)
    return f'<body name="body{index}" pos="{x:.3f} {y:.3f} {z:.3f}" euler="{angles}"><freejoint/>{geoms}</body>'


def stacks(number: int, height: int, option: str = "", more: str = "") -> str:
    """Stacks of spheres, capsules and boxes that fall over. Each body is a tree; each stack has one or more islands."""
    bodies = []
    for index in range(number * height):
        stack, level = divmod(index, height)
        geom = f"<geom {SHAPES[index % len(SHAPES)]}/>"
        bodies.append(
            _free(index, 0.7 * (stack // 2), 0.7 * (stack % 2), 0.12 + 0.22 * level, geom, f"0 {20 * index} 0")
        )
    return _document(f"stacks_{number}_{height}", option, bodies, more)


def logs(layers: int, option: str = "") -> str:
    """Logs in crosswise layers of two, which form one island."""
    bodies = []
    for index in range(2 * layers):
        layer, side = divmod(index, 2)
        aside = 0.16 * (2 * side - 1)
        x, y, angles = (aside, 0.0, "90 0 0") if layer % 2 else (0.0, aside, "0 90 0")
        bodies.append(_free(index, x, y, 0.08 + 0.15 * layer, '<geom type="capsule" size="0.08 0.3"/>', angles))
    return _document(f"logs_{layers}", option, bodies)


def tables(number: int) -> str:
    """Tables with three round feet, which fall on each other. Each body has four geoms."""
    bodies = []
    for index in range(number):
        level, place = divmod(index, 6)
        x, y = 0.36 * (place % 3), 0.3 * (place // 3)
        bodies.append(_free(index, x, y, 0.15 + 0.2 * level, TABLE, f"{15 * (index % 4)} 0 {40 * index}"))
    return _document(f"tables_{number}", "", bodies)
