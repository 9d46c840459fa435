"""Broadphase by a grid in every step, for models with too many pairs of geoms for a table of candidates.

Stages, in the order in which a step runs them:

    broadphase             sorts geoms into a grid; counts their pairs, and contact slots for them
    scan_pairs             prefix sums of the counts over the worlds
    find_pairs             writes the pairs in MuJoCo's order
    collide                contacts of a slice of the pairs, into the slots of each pair
    count_pairs            counts of contacts and constraint rows of each world
    copy_contacts         copies the contacts from the slots to the arena, with their parameters

Source: MuJoCo documentation, chapter "Computation", section "Collision detection", "Selection".
"""
