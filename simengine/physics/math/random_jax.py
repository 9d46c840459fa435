"""The pseudo-random generator PCG XSH-RR with 64 bits of state, in 32-bit integers.

Source: M. O'Neill, PCG, Harvey Mudd College HMC-CS-2014-0905 (2014). A state is a pair (high, low) of uint32.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

_FACTOR = 6364136223846793005
_HIGH, _LOW = _FACTOR >> 32, _FACTOR & 0xFFFFFFFF

State = tuple[jax.Array, jax.Array]


def first_state() -> State:
    """The state whose value is 1."""
    return jnp.uint32(0), jnp.uint32(1)


def following(state: State) -> State:
    """The next state: factor * state + 1 modulo 2^64."""
    high, low = state
    # the product of the low halves has 64 bits, so it is computed from parts of 16 bits each
    a1, a0 = low >> 16, low & 0xFFFF
    b1, b0 = jnp.uint32(_LOW >> 16), jnp.uint32(_LOW & 0xFFFF)
    middle = (a0 * b0 >> 16) + (a0 * b1 & 0xFFFF) + (a1 * b0 & 0xFFFF)
    carried = a1 * b1 + (a0 * b1 >> 16) + (a1 * b0 >> 16) + (middle >> 16)
    new_low = low * jnp.uint32(_LOW) + jnp.uint32(1)
    new_high = carried + high * jnp.uint32(_LOW) + low * jnp.uint32(_HIGH) + (new_low == 0).astype(jnp.uint32)
    return new_high, new_low


def output(state: State) -> jax.Array:
    """The random number () uint32 of a state."""
    high, low = state
    mixed_high, mixed_low = high ^ high >> 18, low ^ (low >> 18 | high << 14)
    mixed, turn = mixed_low >> 27 | mixed_high << 5, high >> 27
    return mixed >> turn | mixed << ((32 - turn) & 31)


def shuffle(order: jax.Array, begin: jax.Array, count: jax.Array, state: State) -> tuple[jax.Array, State]:
    """Fisher-Yates shuffle of `count` () entries of `order` (n,), which start at `begin` (), from the last one down."""

    def swap(k: jax.Array, carry: tuple[jax.Array, State]) -> tuple[jax.Array, State]:
        order, state = carry
        place = count - 1 - k
        other = (output(state) % (place + 1).astype(jnp.uint32)).astype(place.dtype)
        values = order[begin + jnp.stack([other, place])]
        return order.at[begin + jnp.stack([place, other])].set(values), following(state)

    return jax.lax.fori_loop(0, count - 1, swap, (order, state))
