"""The command line: commands of one file here, larger ones and what they share in rooms.

    main          parses arguments, calls the command, turns errors into exit codes
    info          what can run here, what a model consists of, the plan of a step
    warmup        compile the kernels of models beforehand
    run           step a batch and report what happened
    view          show worlds in the browser while they step
    check         compare the engine with MuJoCo, stage by stage
    fuzz          compare the engine with MuJoCo on models drawn at random
    trace         record what one step launched and when

    train/        train a policy with PPO
    policies/     trained policies: evaluate, play and export
    bench/        the benchmarks
    environments/ environments and what acts in them, for the commands that take one
    recordings/   what runs write and `replay` reads: trajectories and films
    simulations/  what the commands step: workloads and controls, also beside MuJoCo
    results/      how results are shown and written
    options/      what options mean

Each room lists its modules. Only `benchmarks/` imports this folder. No other part of simengine does.
"""
