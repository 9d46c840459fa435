"""Measurements, and their committed results in `results/`. Each module is a program: `python -m benchmarks.NAME`.

Speeds of simulations: `stepping` (one model), `mixed` (several models in one batch), `piles` and `clumps` (many free
bodies), `paired` with `timed_checkout` (two checkouts), `peer_mujoco_warp` (a peer on the same problem).
Costs of the scheduler: `hazard_check`, `issue_costs`, `launch_costs`, `pauses_apart`, `pipeline`, `clients`.
Comparisons: `parity` (errors against MuJoCo), `features` (models that loaders accept).
The GPU model: `record_lists` records kernel lists, and `gpu_model` fits and checks the model on them.
Pages: `performance` writes `docs/performance.md`. `every_kernel` launches all kernels under a checker of memory.
`models` finds the models of these programs by name. `robots` lists and packs the robots of `simengine bench peers`.
"""
