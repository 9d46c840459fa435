// The searches of a shard that kernels go on with: those whose cores overlap or are near each other. Few searches of a
// world go that far, and their numbers differ between worlds, so those of all worlds are in one queue, from which
// groups of lanes take them. Its order depends on timing, but each search is by itself.
#pragma once

#define QUEUE_LINES 4     // kinds of searches, see line_of
#define QUEUE_NEAR 3      // the line of cores that are near each other; those of other lines overlap
#define QUEUE_REST 8      // entries of a world, in that line, for the pairs beyond the memory for states
#define MOST_SEARCHES 64  // of a world, of which states are in memory; larger numbers in entries are such pairs
#define QUEUE_WORLD 128   // numbers of searches of a world in an entry

// A search: its world, as a number within the shard, and its number there.
struct SearchOf {
  int world, search;
};

// The queue of a shard of n worlds: lengths of its lines, then the lines themselves, each with room for all searches,
// of which a world has up to `room`.
struct SearchQueue {
  const int* words;
  int room, n;

  DEVICE_METHOD size_t line(int number) const { return QUEUE_LINES + words_before(n, number * room); }
  DEVICE_METHOD int length(int lines) const {
    int sum = 0;
    for (int k = 0; k < lines; ++k) sum += words[k];
    return sum;
  }
  DEVICE_METHOD SearchOf entry(int at) const {
    int number = 0;
    UNROLLED for (int k = 0; k < QUEUE_LINES - 1; ++k) {
      const bool beyond = number == k && at >= words[k];
      at -= beyond ? words[k] : 0;
      number += beyond;
    }
    const int found = words[line(number) + at];
    return {found / QUEUE_WORLD, found % QUEUE_WORLD};
  }
};

DEVICE void empty_queue(int* words) {
  LANE_FOR(k, QUEUE_LINES) words[k] = 0;
}

// Put a search at the end of a line.
DEVICE void put_entry(int* words, const SearchQueue& queue, int line, const SearchOf& own) {
  words[queue.line(line) + count_up(words + line)] = own.world * QUEUE_WORLD + own.search;
}

// Whether a kernel takes a queue of `waiting` searches. In large shards, contacts have a kernel of several lanes a
// search for queues that are short beside `groups` groups of lanes, and one of a lane a search for the others.
#ifndef SHORT_QUEUE
#define SHORT_QUEUE 16
#endif
DEVICE bool takes_queue(int waiting, int groups) {
#if defined(TAKES_SHORT_QUEUES)
  return waiting <= groups / SHORT_QUEUE;
#elif defined(TAKES_LONG_QUEUES)
  return waiting > groups / SHORT_QUEUE;
#else
  return true;
#endif
}
