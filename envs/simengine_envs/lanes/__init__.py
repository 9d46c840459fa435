"""A step of environments on a CPU in one custom call.

XLA makes a kernel of each group of operations that it fuses. A step of an environment has dozens of such groups with
little work in each, and to start one takes longer than its work. Here a whole step is one call, a chain of programs and
of the engine's calls:

    state, actions -> program 0 -> steps -> program 1 -> dynamics of new episodes -> last program -> state, results

A thread of the engine takes some worlds through all of it before it takes others, since no world needs another one.
Program 0 computes controls. The last one computes rewards, observations and all else that a step reports, and where
worlds start an episode, their first state. What the engine's calls need and give stays in the engine's memory.

A program is a list of operations on lanes. A lane is one number of every world, such as the second coordinate. An array
(n, 3) is three lanes, and to take a part of it, to turn it, or to join it with others computes nothing. Programs run on
64 worlds at a time, in `simengine/xla/lanes_host.cpp`, with vectors of 16 numbers.

How a function gets there:

1. `simengine_envs.rounding.rounded`, through which all environments on a CPU go, asks `in_chain` first. This is the one
   place that decides. JAX traces the function, in the form without loops that a GPU has, too.
2. `Evaluation` goes through the operations that JAX has traced. Each has a rule that makes nodes of a `Graph`, of
   which equal ones are one. The engine's calls are noted with the lanes that they take.
3. `Chain` asks for a program before each call, and for the last one. `Writer` puts the nodes in order, gives them
   registers, and leaves out of the last program what blocks without a new episode need not compute.
4. The result is a custom call of XLA with the programs as an attribute; see `simengine/xla/chain_host.cpp`.

An operation without a rule raises `NotInLanes`, and the whole function is left to XLA, as it is where there is no C++
compiler. So are steps under `vmap`, and steps with random numbers of 64 bits, which environments in float64 draw.

Results have the bits of XLA's kernels. Operations are rounded one by one, as `rounded` has XLA do; quotients by
constants are products, as XLA makes them; sines are those of the C library, and exponentials those of XLA's compiler.

    graph       `Graph`, the operations on lanes
    values      `Lanes`, an array as nodes of a graph
    rules       operations of JAX as operations on lanes, with those of `arithmetic`, `functions`, `shapes` and `random`
    evaluation  `Evaluation`, a traced function on lanes, and the engine's calls in it
    program     `Writer`, which writes operations as programs
    chain       `in_chain` and `Chain`, programs and the engine's calls as one call
"""
