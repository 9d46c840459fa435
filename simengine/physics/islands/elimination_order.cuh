// The order in which the blocks of a large island are eliminated on the host, and where its factor has entries.
//
// Blocks that share rows are neighbours. The block with the fewest neighbours is eliminated first, the lowest of
// several (minimum degree: A. George and J. Liu, SIAM Review 31 (1989)). Its neighbours then become neighbours of each
// other, which is what its elimination adds to the matrix. In a heap a body touches few others, so little is added.
#pragma once

#ifdef MATRIX_VECTORS
#define MOST_SPARSE_BLOCKS 512
#define MOST_SPARSE_ENTRIES 8192
#define ELIMINATED 0xffff

struct EliminationOrder {
  int n;                              // blocks
  int place[MOST_SPARSE_BLOCKS];      // at which a block is eliminated
  int block[MOST_SPARSE_BLOCKS];      // that is eliminated at a place
  int first[MOST_SPARSE_BLOCKS + 1];  // entry of each place's row, which is its own block
  int column[MOST_SPARSE_ENTRIES];    // place of the other block of an entry, in rising order in each row

  // From pairs of blocks: pair(k, b) writes two blocks to b, of which the second may be negative. Returns false if
  // there is no room.
  template <typename Pair>
  bool find(int blocks, int pairs, const Pair& pair) {
    n = blocks;
    if (n > MOST_SPARSE_BLOCKS) return false;
    words = (n + 63) / 64;
    for (int i = 0; i < n * words; ++i) bits[i] = 0;
    for (int k = 0; k < pairs; ++k) {
      int b[2];
      pair(k, b);
      if (b[1] < 0 || b[0] == b[1]) continue;
      set(b[0], b[1]);
      set(b[1], b[0]);
    }
    for (int b = 0; b < n; ++b) count(b);
    first[0] = 0;
    for (int at = 0; at < n; ++at) {
      if (!eliminate(at)) return false;
    }
    for (int at = 0; at < n; ++at) sort_row(at);
    return true;
  }

  // The entry of the row at `from` whose column is `to`.
  int entry(int from, int to) const {
    int e = first[from];
    while (column[e] != to) ++e;
    return e;
  }

 private:
  int words;
  uint16_t degree[MOST_SPARSE_BLOCKS];
  uint64_t bits[MOST_SPARSE_BLOCKS * MOST_SPARSE_BLOCKS / 64];  // neighbours of each block

  void set(int b, int other) { bits[b * words + other / 64] |= uint64_t(1) << (other % 64); }
  void count(int b) {
    int sum = 0;
    for (int w = 0; w < words; ++w) sum += __builtin_popcountll(bits[b * words + w]);
    degree[b] = sum;
  }

  // Eliminate a block of the fewest neighbours at this place. Its row is the blocks, until sort_row().
  bool eliminate(int at) {
    uint16_t least = ELIMINATED;
    for (int b = 0; b < n; ++b) least = degree[b] < least ? degree[b] : least;
    int own = 0;
    while (degree[own] != least) ++own;
    int end = first[at];
    if (end + least + 1 > MOST_SPARSE_ENTRIES) return false;
    place[own] = at;
    block[at] = own;
    column[end++] = own;
    for (int w = 0; w < words; ++w) {
      for (uint64_t rest = bits[own * words + w]; rest; rest &= rest - 1) {
        column[end++] = 64 * w + __builtin_ctzll(rest);
      }
    }
    first[at + 1] = end;
    degree[own] = ELIMINATED;
    for (int e = first[at] + 1; e < end; ++e) {
      const int b = column[e];
      for (int w = 0; w < words; ++w) bits[b * words + w] |= bits[own * words + w];
      bits[b * words + b / 64] &= ~(uint64_t(1) << (b % 64));
      bits[b * words + own / 64] &= ~(uint64_t(1) << (own % 64));
      count(b);
    }
    return true;
  }

  void sort_row(int at) {
    for (int e = first[at]; e < first[at + 1]; ++e) {
      const int own = place[column[e]];
      int to = e;
      for (; to > first[at] && column[to - 1] > own; --to) column[to] = column[to - 1];
      column[to] = own;
    }
  }
};
#endif
