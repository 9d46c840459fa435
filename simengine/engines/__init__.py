"""The two engines behind `Simulation`: kernel lists on the host and on CUDA, and JAX."""
