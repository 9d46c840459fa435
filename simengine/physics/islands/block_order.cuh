// The order in which lanes of a GPU eliminate the blocks of a large island, and where its factor has blocks.
//
// As on the host (elimination_order.cuh), the block with the fewest neighbours is eliminated first, the lowest of
// several, and its neighbours become neighbours of each other. Here a round has several blocks of at most one neighbour
// more, which are no neighbours and have none in common: warps eliminate them side by side. A warp knows the neighbours
// of all blocks, as bits of two words a lane, so that an island has at most twice as many blocks as a warp has lanes.
#pragma once

#ifdef FACTOR_BY_LANES
typedef unsigned long long BlockBits;

DEVICE BlockBits bit_of(int block) { return BlockBits(1) << block; }
DEVICE int count_bits(BlockBits x) { return bit_count(unsigned(x)) + bit_count(unsigned(x >> 32)); }
DEVICE int lowest_of(BlockBits x) { return unsigned(x) ? low_bit(unsigned(x)) : 32 + low_bit(unsigned(x >> 32)); }

// Each row of the factor has its own block, and then those beside it, in the order of their places.
struct BlockOrder {
  BlockBits beside[MOST_FACTORED_BLOCKS];  // places of the blocks beside that of each place
  int first[MOST_FACTORED_BLOCKS + 1];     // number of each row's first block
  unsigned char place[MOST_FACTORED_BLOCKS], block[MOST_FACTORED_BLOCKS];
  unsigned char rows[MOST_FACTORED_BLOCKS];     // of the round that begins or ends at a place
  unsigned char column[MOST_BLOCKS_OF_FACTOR];  // place of each block's column

  // The number of the block in the row at `from` whose column is `to`, which is not before it.
  DEVICE_METHOD int at(int from, int to) const {
    return from == to ? first[from] : first[from] + 1 + count_bits(beside[from] & (bit_of(to) - 1));
  }
  // Places `begin` to before `end` are a round.
  DEVICE_METHOD void end_round(int begin, int end) { rows[begin] = rows[end - 1] = (unsigned char)(end - begin); }
};

// Bits of one lane of the warp, in all of them.
DEVICE BlockBits bits_of_lane(BlockBits own, int from) {
  const unsigned low = unsigned(warp_get_int(int(unsigned(own)), from));
  const unsigned high = unsigned(warp_get_int(int(unsigned(own >> 32)), from));
  return BlockBits(high) << 32 | low;
}

// Eliminate n blocks, by one warp. `beside` has the neighbours of each block, and becomes the blocks that are still
// there in the row of each place.
DEVICE void eliminate_in_order(BlockOrder* order, int n) {
  BlockBits own[2];
  bool left[2];
  UNROLLED for (int h = 0; h < 2; ++h) {
    const int b = 32 * h + warp_lane();
    left[h] = b < n;
    own[h] = left[h] ? order->beside[b] : 0;
  }
  warp_sync();
  int begin = 0, most = -1;  // the round's first place, and the most neighbours of its blocks
  BlockBits taken = 0;       // its blocks and their neighbours
  ROLLED for (int place = 0; place < n;) {
    int key = -1;  // the largest is that of the fewest neighbours, and of the lowest block among these
    UNROLLED for (int h = 0; h < 2; ++h) {
      const int b = 32 * h + warp_lane(), of_block = (63 - count_bits(own[h])) << 6 | (63 - b);
      key = left[h] && !(taken & (own[h] | bit_of(b))) && of_block > key ? of_block : key;
    }
    key = warp_most(key);
    const int block = 63 - (key & 63), neighbours = 63 - (key >> 6);
    if (place > begin && (key < 0 || neighbours > most)) {
      if (warp_lane() == 0) order->end_round(begin, place);
      begin = place;
      taken = 0;
      continue;
    }
    if (place == begin) most = neighbours + 1;
    const BlockBits row = bits_of_lane(block < 32 ? own[0] : own[1], block & 31);
    taken |= row | bit_of(block);
    UNROLLED for (int h = 0; h < 2; ++h) {
      const int b = 32 * h + warp_lane();
      if (row & bit_of(b)) own[h] = (own[h] | row) & ~(bit_of(b) | bit_of(block));
      left[h] = left[h] && b != block;
    }
    if (warp_lane() == 0) {
      order->beside[place] = row;
      order->block[place] = (unsigned char)block;
      order->place[block] = (unsigned char)place;
    }
    ++place;
  }
  if (warp_lane() == 0) order->end_round(begin, n);
  warp_sync();
}

// Find the order, by all lanes; false if there is no room for the factor.
DEVICE bool find_order(const LargeIsland& s, BlockOrder* order, int room) {
  LANE_FOR(b, s.nblock) {
    const int* words = s.blocks + BLOCK_WORDS * b;
    BlockBits neighbours = 0;
    ROLLED for (int e = words[BLOCK_BEGIN]; e < words[BLOCK_END]; ++e) {
      const Link link = s.link[e];
      if (link.n) neighbours |= bit_of(s.dof_block[link.dof]);
    }
    order->beside[b] = neighbours & ~bit_of(b);
  }
  lane_sync();
  if (warp_index() == 0) eliminate_in_order(order, s.nblock);
  lane_sync();
  LANE_FOR(k, s.nblock) {
    BlockBits places = 0;
    ROLLED for (BlockBits rest = order->beside[k]; rest; rest &= rest - 1) {
      places |= bit_of(order->place[lowest_of(rest)]);
    }
    order->beside[k] = places;
  }
  lane_sync();
  const int blocks = sums_before(
      s.nblock, [&](int k) { return 1 + count_bits(order->beside[k]); },
      [&](int k, int before) { order->first[k] = before; });
  LANE_FOR(i, 1) order->first[s.nblock] = blocks;
  lane_sync();
  if (blocks > room) return false;
  LANE_FOR(k, s.nblock) {
    unsigned char* column = order->column + order->first[k];
    *column++ = (unsigned char)k;
    ROLLED for (BlockBits rest = order->beside[k]; rest; rest &= rest - 1) *column++ = (unsigned char)lowest_of(rest);
  }
  lane_sync();
  return true;
}
#endif
