"""Policies that are written by hand."""

from __future__ import annotations

import numpy as np

from simengine_training.numpy_policy import NumpyPolicy


def linear(environment: str, gains: list[list[float]], limit: float = 1.0) -> NumpyPolicy:
    """A policy without hidden layers: the action is a matrix, (observations, actions), times the observation."""
    matrix = np.array(gains, np.float32)
    observations, actions = matrix.shape
    return NumpyPolicy(
        environment=environment,
        mean=np.zeros(observations),
        deviation=np.ones(observations),
        limit=100.0,
        activation="tanh",
        weights=(matrix,),
        biases=(np.zeros(actions, np.float32),),
        low=np.full(actions, -limit),
        high=np.full(actions, limit),
    )


BALANCING = linear("simengine/InvertedPendulum-v5", [[0.3], [5.0], [0.6], [1.0]], 3.0)
"""Holds the pendulum upright for the whole episode of 1000 steps."""

STILL = linear("simengine/Hopper-v5", [[0.0] * 3] * 11)
"""Lets the hopper fall, which ends an episode after some 60 steps."""
