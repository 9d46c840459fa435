// Stable radix sort of entries of two integers, shared by the lanes, without atomics. Each worker takes consecutive
// entries, so that the result depends neither on the number of workers nor on timing.
#pragma once

#define RADIX_BITS 6
#define RADIX 64

// Fewest entries per worker; `counter` has a capacity of four numbers for each entry and for PAIR_SPARE more.
#define ENTRIES_A_WORKER 16

// One pass: sort by the digit of the keys that starts at bit `shift`.
template <class Key>
DEVICE void radix_pass(const int* from, int* to, int* counter, int n, int shift, const Key& key) {
  const int most = (n + ENTRIES_A_WORKER - 1) / ENTRIES_A_WORKER, workers = most < LANES ? most : LANES;
  const int share = (n + workers - 1) / workers, own = lane();
  const int begin = own * share < n ? own * share : n, end = begin + share < n ? begin + share : n;
  // (1) each worker counts the digits of its entries
  if (own < workers) {
    ROLLED for (int digit = 0; digit < RADIX; ++digit) counter[digit * workers + own] = 0;
    ROLLED for (int i = begin; i < end; ++i) ++counter[(key(from + 2 * i) >> shift & (RADIX - 1)) * workers + own];
  }
  lane_sync();
  // (2) prefix sums: the first output index of each digit of each worker
  const int numbers = RADIX * workers, part = (numbers + LANES - 1) / LANES;
  int sum = 0, total;
  ROLLED for (int i = own * part; i < (own + 1) * part && i < numbers; ++i) sum += counter[i];
  int before = lane_scan(sum, &total);
  ROLLED for (int i = own * part; i < (own + 1) * part && i < numbers; ++i) {
    const int number = counter[i];
    counter[i] = before;
    before += number;
  }
  lane_sync();
  // (3) each worker writes its entries, in their order
  if (own < workers) {
    ROLLED for (int i = begin; i < end; ++i) {
      const int place = counter[(key(from + 2 * i) >> shift & (RADIX - 1)) * workers + own]++;
      to[2 * place] = from[2 * i];
      to[2 * place + 1] = from[2 * i + 1];
    }
  }
  lane_sync();
}

// Sort by keys of `bits` bits; returns which of the two arrays holds the result.
template <class Key>
DEVICE int* radix_sort(int* entries, int* others, int* counter, int n, int bits, const Key& key) {
  if (n < 2) return entries;
  ROLLED for (int shift = 0; shift < bits; shift += RADIX_BITS) {
    radix_pass(entries, others, counter, n, shift, key);
    int* sorted = others;
    others = entries;
    entries = sorted;
  }
  return entries;
}
