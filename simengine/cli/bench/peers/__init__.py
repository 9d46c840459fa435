"""Speeds of simengine beside those of other engines, on the same problem.

    command     the command `bench peers`
    problem     what all engines solve: a model, first states, controls
    models      problems by the name of a model, and the sets of models
    engine      the interface of an engine, of which each adapter is a small class
    ours        simengine
    mujoco_cpu  MuJoCo's C on the CPU: `mujoco.rollout`, `mujoco.batch`, and mjbatch
    mujoco_warp MuJoCo Warp
    jax_peers   MJX and Brax
    registry    the engines by name
    agreement   accelerations of an engine beside those of MuJoCo
    measure     prepare, warm up, time and compare the engines of a case
    report      the table and the plot

Peers are optional installs. One that is absent is said, with how to install it.
"""
