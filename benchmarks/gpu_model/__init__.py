"""Compares the GPU model of the simulated executor with measurements.

    data ── recorded lists with measured times, and the model's prediction for each
      ├── fit, workers ── constants of a machine, fitted to two workloads
      ├── validation ── the model on the other workloads
      ├── paper ── the ratios that the ACS paper published
      ├── whatif ── other windows, GPUs and launch costs
      └── report ── tables and a picture

`python -m benchmarks.gpu_model` runs them.
"""
