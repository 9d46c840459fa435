"""The command line: one module for each command, and helpers that several commands share.

    main             parses arguments, calls the command, turns errors into exit codes
    info             what can run here, what a model consists of, the plan of a step
    warmup           compile the kernels of models beforehand
    run              step a batch and report what happened; run_environment does it for an environment
    replay           show, draw or check what a run has recorded
    view             show worlds in the browser while they step
    check            compare the engine with MuJoCo, stage by stage
    trace            record what one step launched and when
    train            train a policy with PPO: its settings (train_settings), its trainings (train_jobs, train_ray), and
                     what is shown meanwhile (train_progress) and at the end (train_table)
    evaluate         measure a policy, in simengine and in MuJoCo
    play             watch a policy in a window, or film it
    export           write a policy for machines without simengine
    bench            groups the benchmarks: bench_stepping, bench_peers (its engines: the folder peers), bench_scheduler
                     (its report: bench_report, published)

    settings         merge typed options, presets and defaults
    stepping         build a simulation from settings and step it
    controls         random controls, and those of a file
    keyframe         the keyframe that an option names
    environments     ids of environments, and the modules that register them
    acting           what acts in an environment: a policy, random actions, zeros
    environment_run  steps an environment that may be recorded
    environment_worlds  an environment on the page of `view`
    recorded_run     the options of a run that is recorded, and its loop
    recording        write what worlds do, with checkpoints
    trajectory       the format of trajectory files
    video            draw a trajectory
    film             draw worlds while they step
    policies         read trained policies
    workloads        workloads by name
    robots           the folder with the robots of public packages
    rollout, oracle  `mujoco.rollout` as a peer, and a comparison with MuJoCo
    machine          hardware and versions, for result files
    result_file      how result files are written
    output, errors   the console, and the error of a wrong call

Only `benchmarks/` imports this folder. No other part of simengine does.
"""
