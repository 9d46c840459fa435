"""Convex shapes: distance and penetration of two shapes, and several contacts where they touch with flat features.

In the order in which a contact is computed:

    shape                  support functions of all convex geoms
    gjk                    distance of two shapes that are apart
    epa, polytope          penetration of two shapes that overlap
    polish                 the exact normal, and the nearest points
    crossing               where edges cross that are almost parallel
    segment_cylinder       all of these for a capsule and a cylinder, without a search, in kernels only
    solid                  the faces and edges at the contact
    manifold, polygon      up to four contacts of faces and edges that lie flat on each other

Source: MuJoCo documentation, chapter "Computation", section "Collision detection", "Convex collisions".
"""
