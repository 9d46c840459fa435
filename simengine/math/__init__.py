"""Mathematics shared by the JAX forms of the stages: vectors, quaternions, spatial algebra, trees, soft constraints.

Every function works on the last axis and broadcasts over the leading ones, follows the dtype of its arguments and
has finite derivatives wherever the function itself is finite. It knows no model and no state, except `tree`, which
turns a model's integer tables into constant masks.
"""
