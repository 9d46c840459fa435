"""Measurements, and their committed results in `results/`. Each module is a program: `python -m benchmarks.NAME`.

Speeds of simulations: `stepping` (one model), `mixed` (several models in one batch), `piles` and `clumps` (many free
bodies), `paired` with `timed_checkout` (two checkouts), `peer_mujoco_warp` (a peer on the same problem), `host_profile`
(shares of kernels on a CPU), `robot_kernels` (times of the kernels of robots).
Single worlds: `one_world` (a step of one world beside MuJoCo's).
Growth: `scaling` with `scaling_models` (the time of a step), `scaling_gpus` (several GPUs), `memory` (bytes of a
world), `start` (the first step).
Environments and training: `environments`, `training` (an iteration), `cold_training` (empty caches), `suite` (results
of `simengine train suite`), `mixed_training` with `evolution` and `own_pace` (many robots that step at different
rates).
Costs of the scheduler: `hazard_check`, `issue_costs`, `launch_costs`, `driver_costs`, `driver_time`, `piece_costs`,
`run_costs`, `pauses_apart`, `pipeline`, `clients`.
Comparisons: `parity` (errors against MuJoCo), `features` (models that loaders accept), `scheduler_peers` (lists through
Taskflow and CUDASTF), `framework_peers` (a list in PyTorch and JAX).
The GPU model: `record_lists` records kernel lists, and `gpu_model` fits and checks the model on them.
Trust: `faults` injects faults, `soak` looks for growth of a process, and `every_kernel` launches all kernels under a
checker of memory.
Pages: `performance` writes `docs/performance.md`, and `trust` the figures of `docs/trust.md`.
`models` finds the models of these programs by name. `robots` lists and packs the robots of `simengine bench peers`, and
`benchmarks/kinds` has small models of single kinds for it.
"""
