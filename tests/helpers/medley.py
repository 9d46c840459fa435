"""A model with everything that decides which geoms collide, and with which parameters."""

from __future__ import annotations

import numpy as np

CHAIN = """
<body pos="{x} {y} {z}"><freejoint/>
  <geom type="box" size="0.12 0.08 0.05" {one}/><geom size="0.07" pos="0.15 0 0.03"/>
  <body name="link{k}" pos="0 0 0.2"><joint axis="0 1 0.2"/>
    <geom type="capsule" size="0.04 0.08" {other}/><geom type="cylinder" size="0.05 0.06" pos="0 0.14 0"/>
  </body>
</body>
"""


def medley(number: int = 16) -> str:
    """A heap of bodies with many geoms among static geoms.

    It has excludes, explicit pairs, contype and conaffinity, margins and gaps, priorities, mixing weights, and geoms
    that are much larger than others.
    """
    rng = np.random.default_rng(number)
    kinds: tuple[str, ...] = ("", 'priority="1" condim="4"', 'solmix="3" friction="0.4 0.02 0.001"', 'solmix="0"')
    kinds += ('margin="0.02" gap="0.01"', 'solref="-300 -20"', 'contype="2" conaffinity="3"')
    kinds += ('priority="1" friction="0.9 0.01 0.002"',)
    bodies = []
    for k in range(number):
        x, y = 0.32 * np.array(divmod(k % 9, 3)) + rng.uniform(-0.08, 0.08, 2)
        one, other = (f'name="{part}{k}" {kinds[rng.integers(len(kinds))]}' for part in ("box", "rod"))
        bodies.append(CHAIN.format(x=x, y=y, z=0.1 + 0.3 * (k // 9), k=k, one=one, other=other))
    pairs = "".join(f'<pair geom1="box{k}" geom2="rod{(5 * k + 1) % number}" margin="0.03"/>' for k in range(number))
    pairs += '<pair geom1="box2" geom2="slab" condim="6" friction="1 0.8 0.01 0.002 0.003"/>'
    excludes = "".join(f'<exclude body1="link{k}" body2="link{k + 3}"/>' for k in range(0, number - 3, 2))
    return f"""
<mujoco model="medley">
  <option timestep="0.004" tolerance="1e-12"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/><geom name="slab" type="box" size="1 1 0.02" pos="0.3 0.3 0"/>
    <geom type="plane" size="5 5 1" pos="-0.3 0 0" zaxis="1 0 0"/>
    <body pos="0.3 0.3 0.1"><geom type="ellipsoid" size="0.1 0.2 0.06"/><geom size="0.05" pos="0.3 0 0"/></body>
    {"".join(bodies)}
    <body name="last" pos="0.3 0.3 1.2"><freejoint/><geom type="box" size="0.5 0.5 0.04" mass="2"/></body>
  </worldbody>
  <contact>{pairs}{excludes}</contact>
  <actuator><adhesion body="last" ctrlrange="0 1" gain="2"/></actuator>
  <sensor><touch site="on"/><contact geom1="slab" num="3" data="found force dist"/></sensor>
</mujoco>
""".replace("<worldbody>", '<worldbody><site name="on" type="box" size="1 1 0.1"/>')
