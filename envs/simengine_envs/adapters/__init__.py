"""Environments in the shapes that training libraries expect. Each file needs one library, and only it imports it.

    stable_baselines3  `StableBaselinesVecEnv`, a `VecEnv` of Stable-Baselines3
    rsl_rl             `RslRlVecEnv`, a `VecEnv` of rsl_rl
    brax               `BraxEnv` and `BraxBatchEnv`, `Env`s of Brax, and `wrap`
    making             makes the environment that an adapter works on
    missing            the error of a library that is not installed

Libraries that take Gymnasium's environments, such as CleanRL and TorchRL, need no adapter: they call `gymnasium.make`
or `gymnasium.make_vec`.
"""
