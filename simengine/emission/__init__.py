"""Emission: turning the plan of a step into kernel calls on the memory of a shard.

    store ── the memory of a group: fields, and arenas that grow
      └── calls ── one kernel as a call, with its arguments and segments
            └── binding ── one evaluation as calls and waits for counts
                  ├── whole ── a step as one call on a CPU
                  ├── counted ── a step by counts, as a list that compiled code runs
                  └── shard ── the emitter of a shard ◄── step_calls: several steps as one kernel on a GPU
                        └── steps ── steps of many shards through an executor

`sized` has the copies of a call for other numbers of worlds. `params` holds the model parameters that differ between
worlds. `dense` expands fields that are stored by blocks.
Decisions do not belong here: `simengine.plan` takes them, and the emitters follow the plan.
"""
