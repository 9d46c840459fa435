"""Planning: what is worked out about a run of calls before it is issued.

profiles  what a call takes of the machine
planners  an order and streams for a whole run of calls
clocks    which waits between streams are needed
"""

from .planners import PLANNERS
from .profiles import Need, Profile

__all__ = [
    "PLANNERS",
    "Need",
    "Profile",
]
