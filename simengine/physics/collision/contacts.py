"""Broadphase, counting, and the contacts themselves, for a kernel that knows where the contacts of its world go.

`contacts` handles light pair types; `contacts_plain` also handles the plain ones among the heavy types.
"""

from dataclasses import replace

from simengine.physics.collision.collision import COLLISION
from simengine.physics.collision.narrowphase import NARROWPHASE
from simengine.physics.stage import Stage

CONTACTS = Stage(
    name="contacts",
    reads=COLLISION.reads,
    writes=("ncon", "nefc", "counts", *NARROWPHASE["plane_sphere"].writes),
    scratch=COLLISION.scratch,
    scalars=COLLISION.scalars,
    collides="light",
    flops=COLLISION.flops + NARROWPHASE["plane_sphere"].flops,
)
CONTACTS_PLAIN = replace(CONTACTS, name="contacts_plain", collides="plain")
