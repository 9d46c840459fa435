"""Collision: which pairs of geoms touch, how many contacts they have, and the contacts themselves.

Stages, in the order in which a step runs them:

    collision, collision_general   broadphase over a table of candidate pairs; counts of contacts and constraint rows
    scan                           prefix sums of the counts over the worlds: addresses in the arenas
    narrowphase                    contacts of the pairs that touch; one stage for each pair of geom types (`pairs`)
    contacts, contacts_plain       counts and contacts in one stage, for kernels that know where the contacts go

`pairs` has the functions for two geom types, `convex` the algorithms for convex shapes, and `broadphase` the stages for
models with too many pairs for a table. Source: MuJoCo documentation, chapter "Computation", section "Collision
detection".
"""
