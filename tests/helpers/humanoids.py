"""Humanoids of 35 dofs and more: a free trunk, two legs of 6 hinges, a waist of 3, two arms of 7, and fingers."""

from __future__ import annotations

_AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
_TOUCHES_NOTHING = 'contype="0" conaffinity="0"'


def _chain(name: str, axes: str, step: tuple[float, float, float], end: str, joint: str) -> str:
    """Links in a row, one for each axis, with `end` on the last."""
    along = "{} {} {}".format(*step)
    links = "".join(
        f'<body pos="{along if k else "0 0 0"}"><joint name="{name}{k}" axis="{_AXES[axis]}" {joint}/>'
        f'<geom type="capsule" fromto="0 0 0 {along}" size="0.03" mass="{1.2 - 0.12 * k}" {_TOUCHES_NOTHING}/>'
        for k, axis in enumerate(axes)
    )
    return links + end + "</body>" * len(axes)


def _hand(side: int, dofs: int, joint: str) -> str:
    """Fingers of up to three hinges, which have so many dofs together."""
    fingers = ""
    for left in range(dofs, 0, -3):
        finger = _chain(f"finger{side}_{left}_", "yyy"[: min(3, left)], (0.03, 0, 0), "", joint)
        fingers += f'<body pos="0.05 {0.02 * left} 0">{finger}</body>'
    return fingers


def humanoid_xml(nv: int = 35, option: str = "", frictionloss: float = 0.1) -> str:
    """MJCF of a humanoid on a floor, whose feet touch it at four spheres each.

    Args:
        nv: number of dofs, at least 35; those beyond are of fingers.
        option: attributes of the element `option`.
        frictionloss: of each hinge; if it is not zero, the model has rows that not only push.
    """
    joint = f'range="-2 2" damping="0.5" armature="0.01" frictionloss="{frictionloss}"'
    foot = "".join(
        f'<geom type="sphere" size="0.015" pos="{x} {y} -0.06" mass="0.05" friction="0.8"/>'
        for x in (-0.05, 0.12)
        for y in (0.03, -0.03)
    )
    hands = [_hand(side, (nv - 35 + 1 - side) // 2, joint) for side in range(2)]
    arms = "".join(
        f'<body pos="0 {0.15 * s} 0.1">{_chain(f"arm{i}_", "yxzyxyz", (0, 0.08 * s, -0.024), hands[i], joint)}</body>'
        for i, s in enumerate((1, -1))
    )
    legs = "".join(
        f'<body pos="0 {0.1 * s} -0.05">{_chain(f"leg{i}_", "xzyyyx", (0, 0, -0.14), foot, joint)}</body>'
        for i, s in enumerate((1, -1))
    )
    driven = [f"{limb}{i}_{k}" for limb, links in (("leg", 6), ("arm", 7)) for i in range(2) for k in range(links)]
    motors = "".join(
        f'<position joint="{name}" kp="60" kv="2" forcerange="-80 80"/>'
        for name in (*driven, "waist0", "waist1", "waist2")
    )
    return f"""
<mujoco><option timestep="0.004" {option}/>
  <worldbody><geom type="plane" size="9 9 1"/>
    <body pos="0 0 0.97"><freejoint/><geom type="box" size="0.06 0.1 0.05" mass="5" {_TOUCHES_NOTHING}/>{legs}
      <body pos="0 0 0.05">{_chain("waist", "zxy", (0, 0, 0.1), arms, joint)}</body></body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>
"""
