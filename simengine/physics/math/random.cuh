// Pseudo-random numbers, and the order in which the dual solver takes the rows: M. O'Neill, PCG, Harvey Mudd College
// HMC-CS-2014-0905 (2014), the generator XSH-RR with 64 bits of state and 32 of output.
#pragma once

typedef unsigned long long uint64;

// One or several steps of the generator: state becomes factor * state + shift.
struct PcgStep {
  uint64 factor, shift;
};

DEVICE PcgStep pcg_after(const PcgStep& first, const PcgStep& second) {
  return {second.factor * first.factor, second.factor * first.shift + second.shift};
}

// n steps at once: F. Brown, Random number generation with arbitrary strides, Trans. Am. Nucl. Soc. (1994).
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

// Shuffle n numbers as Fisher and Yates do, from the last place down. `state` is that of the generator at this lane's
// first number, number lane() of the shuffle; `draw` is LANES words of scratch. Lanes draw side by side, one swaps.
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
