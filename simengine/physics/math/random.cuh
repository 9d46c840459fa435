// Pseudo-random numbers for the order in which the PGS solver visits the rows. The generator is PCG XSH-RR with 64 bits
// of state and 32 bits of output: M. O'Neill, PCG, Harvey Mudd College HMC-CS-2014-0905 (2014).
#pragma once

typedef unsigned long long uint64;

// One or several steps of the generator: state becomes factor * state + shift.
struct PcgStep {
  uint64 factor, shift;
};

DEVICE PcgStep pcg_after(const PcgStep& first, const PcgStep& second) {
  return {second.factor * first.factor, second.factor * first.shift + second.shift};
}

// n steps in one: F. Brown, Random number generation with arbitrary strides, Trans. Am. Nucl. Soc. (1994).
DEVICE PcgStep pcg_steps(unsigned n) {
  PcgStep power = {6364136223846793005ull, 1}, all = {1, 0};
  ROLLED for (; n; n >>= 1) {
    if (n & 1) all = pcg_after(all, power);
    power = pcg_after(power, power);
  }
  return all;
}

DEVICE uint64 pcg_apply(const PcgStep& step, uint64 state) { return step.factor * state + step.shift; }

DEVICE unsigned pcg_output(uint64 state) {
  const unsigned mixed = (unsigned)(((state >> 18) ^ state) >> 27), turn = (unsigned)(state >> 59);
  return (mixed >> turn) | (mixed << ((32 - turn) & 31));
}

// Fisher-Yates shuffle of n numbers, from the last index down. The lanes draw random numbers in parallel, and one lane
// swaps. `state` is the generator's state for this lane's first number, which is number lane() of the shuffle; `draw`
// is LANES words of scratch.
DEVICE void shuffle(int* order, int n, uint64 state, const PcgStep& by_lanes, int* draw) {
  ROLLED for (int last = n - 1; last > 0; last -= LANES) {
    const int place = last - lane();
    if (place > 0) draw[lane()] = (int)(pcg_output(state) % (unsigned)(place + 1));
    state = pcg_apply(by_lanes, state);
    lane_sync();
    if (lane() == 0) {
      ROLLED for (int k = 0; k < LANES && last - k > 0; ++k) {
        const int other = draw[k], kept = order[last - k];
        order[last - k] = order[other];
        order[other] = kept;
      }
    }
    lane_sync();
  }
}
