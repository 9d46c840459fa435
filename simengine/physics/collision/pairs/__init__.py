"""Contacts of two geoms: one file for each pair of geom types, in the order of MuJoCo's types.

`convex` handles all types without a function of their own, and `hfield` height fields against convex geoms.
Source: MuJoCo documentation, chapter "Computation", section "Collision detection", "Pair-wise colliders".
"""
