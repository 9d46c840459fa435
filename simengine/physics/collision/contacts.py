"""Broadphase, counting, and the contacts themselves, for a kernel that knows where its world's contacts go.

`contacts` knows the light pair types, and `contacts_plain` also the plain ones among the heavy.
"""

from dataclasses import replace

from simengine.physics.collision.collision import COLLISION
from simengine.physics.collision.narrowphase import NARROWPHASE
from simengine.physics.stage import Stage

CONTACTS = Stage(
    name="contacts",
    reads=COLLISION.reads,
    writes=("ncon", "nefc", "counts", *NARROWPHASE["plane_sphere"].writes),
    scalars=COLLISION.scalars,
    collides="light",
    flops=COLLISION.flops + NARROWPHASE["plane_sphere"].flops,
)
CONTACTS_PLAIN = replace(CONTACTS, name="contacts_plain", collides="plain")
