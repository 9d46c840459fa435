"""What commands step.

stepping    build a simulation from settings and step it
controls    random controls, and those of a file
workloads   workloads by name
oracle      a comparison of a batch with MuJoCo
rollout     `mujoco.rollout`, which steps the same batch
"""
