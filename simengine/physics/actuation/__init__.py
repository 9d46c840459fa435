"""Actuators: transmissions, activations, gains and biases, and the forces they give."""
