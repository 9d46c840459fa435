"""Models of which one size grows while the others stay: dofs, contacts or geoms."""

from __future__ import annotations

_HEAD = '<mujoco><option timestep="0.002" integrator="Euler"/><default><geom density="1000"/></default><worldbody>'
_TAIL = "</worldbody></mujoco>"


def hanging_chain(dofs: int) -> str:
    """A chain of hinges that hangs from the world and touches nothing.

    Args:
        dofs: number of hinges.
    """
    link = (
        '<body pos="0 0 -0.1"><joint type="hinge" axis="{}" damping="0.02"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -0.08" size="0.02" contype="0" conaffinity="0"/>'
    )
    axes = ("1 0 0", "0 1 0")
    links = "".join(link.format(axes[k % 2]) for k in range(dofs))
    return f"{_HEAD}{links}{'</body>' * dofs}{_TAIL}"


def standing_table(contacts: int) -> str:
    """A free slab with spheres below it, of which each touches the floor in one point: 6 dofs and 4 rows a contact.

    Args:
        contacts: number of spheres.
    """
    side = max(2, round(contacts**0.5 + 0.499))
    places = [(0.1 * (k % side), 0.1 * (k // side)) for k in range(contacts)]
    feet = "".join(f'<geom type="sphere" size="0.02" pos="{x:.2f} {y:.2f} -0.05"/>' for x, y in places)
    half = 0.05 * side
    place = f'size="{half:.2f} {half:.2f} 0.02" pos="{half:.2f} {half:.2f} 0"'
    slab = f'<geom type="box" {place} contype="0" conaffinity="0"/>'
    floor = '<geom type="plane" size="9 9 1"/>'
    return f'{_HEAD}{floor}<body pos="0 0 0.0695"><freejoint/>{slab}{feet}</body>{_TAIL}'


def crowded_arm(geoms: int) -> str:
    """An arm of eight hinges whose spheres are near each other and never touch: many candidate pairs.

    Args:
        geoms: number of spheres, a multiple of 8.
    """
    each = geoms // 8
    spheres = "".join(
        f'<geom type="sphere" size="0.004" pos="{0.02 * (k % 8 - 4):.3f} {0.02 * (k // 8):.3f} -0.05"/>'
        for k in range(each)
    )
    link = f'<body pos="0 0 -0.1"><joint type="hinge" axis="1 0 0" damping="0.5" stiffness="2"/>{spheres}'
    return f"{_HEAD}{link * 8}{'</body>' * 8}{_TAIL}"


def furnished_room(geoms: int) -> str:
    """An arm of seven hinges in a room full of boxes that stand still, most of them out of its reach.

    The arm swings and touches a box now and then, as a robot in a scene does. Each capsule of the arm and each box are
    a candidate pair.

    Args:
        geoms: number of boxes.
    """
    columns = max(2, round(geoms**0.5 + 0.499))
    boxes = []
    for k in range(geoms):
        row, column = k // columns, k % columns
        x, y, half = 0.35 * (column - 0.5 * columns), 0.35 * (row - 0.5 * columns) + 0.2, 0.05 + 0.01 * (k % 5)
        boxes.append(f'<geom type="box" size="{half:.2f} {half:.2f} 0.3" pos="{x:.3f} {y:.3f} 0.3"/>')
    link = (
        '<body pos="0 0 {}"><joint name="hinge{}" type="hinge" axis="{}" damping="0.5" stiffness="1"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 0.14" size="0.04"/>'
    )
    axes = ("0 0 1", "0 1 0", "1 0 0")
    arm = "".join(link.format(0.16 if k else 0.05, k, axes[k % 3]) for k in range(7))
    motors = "".join(f'<motor joint="hinge{k}" gear="4" ctrllimited="true" ctrlrange="-1 1"/>' for k in range(7))
    return f"{_HEAD}{''.join(boxes)}{arm}{'</body>' * 7}</worldbody><actuator>{motors}</actuator></mujoco>"
