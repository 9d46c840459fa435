// What the window reads of the host's ring: calls, lists to play, and calls that the host waits for (protocol.cuh).
#pragma once

#include "desk.cuh"

// Entries that were read together, one a lane, and where the window is. All but the first three are the same in all
// lanes.
struct Feed {
  Bits entry;
  int length, played;  // of the list that the entry names: its calls, and how many were admitted when it was read
  int used, known;    // of the entries that were read
  unsigned position;  // in the ring, of the first of them
  int number;         // of the next call
  bool ended;         // whether no more calls come
  bool blocked;       // whether an entry had to wait, so that `played` may have changed
  long long idle;     // since when nothing has come, or 0
};

// Calls that are admitted one after another, one a lane.
struct Batch {
  int count = 0;
  Arrival call = {};
};

DEVICE Feed new_feed(const List& list) {
  return Feed{0, 0, 0, 0, 0, unsigned(list.place->position), list.place->number, false, false, 0};
}

DEVICE Bits ring_at(const List& list, unsigned position) {
  return look_at_host(list.ring + (position & unsigned(list.ring_size - 1)));
}

DEVICE int what_of(Bits entry) { return int(low(entry) >> NUMBER_BITS); }
DEVICE int number_of(Bits entry) { return int(low(entry) & ((1u << NUMBER_BITS) - 1)); }

// Reads entries that the host has written since.
DEVICE void read_ring(const List& list, Feed& feed) {
  feed.position += feed.used;
  feed.entry = ring_at(list, feed.position + lane());
  const unsigned there = ballot(high(feed.entry) == feed.position + lane() + 1);
  feed.used = 0;
  feed.known = lowest(~Bits(there));
  if (!feed.known) return;
  system_fence();
  feed.idle = 0;
  if (lane() == 0) tell_host(&list.status->read, int(feed.position));
  feed.blocked = false;
  if (lane() >= feed.known || what_of(feed.entry) != PLAY) return;
  feed.length = list.scripts[number_of(feed.entry)].length;
  feed.played = list.played[number_of(feed.entry)];
}

DEVICE Bits entry_in(const Feed& feed, int i) { return from_lane(feed.entry, i); }

// Tells the host when a call has ended; at once if it is no longer in the window.
DEVICE void promise(const List& list, Desk& desk, int number) {
  Bits found = 0;
  for (int base = 0; base < list.window; base += LANE_COUNT) {
    const int at = base + lane();
    found |= Bits(ballot(at < list.window && desk.occupied & bit(at) && desk.number[at] == number)) << base;
  }
  desk.told |= found;
  if (found) return;
  system_fence();
  if (lane() == 0) tell(list, number);
}

// Adds a round of a list to what is played. False if there is no room for another list.
DEVICE bool play(const List& list, Desk& desk, const Feed& feed, int script) {
  const int length = from_lane(feed.length, feed.used), played = from_lane(feed.played, feed.used);
  for (int i = 0; i < desk.num_players; ++i)
    if (desk.player[4 * i] == script) {
      lanes_sync();
      if (lane() == 0) desk.player[4 * i + 3] += length;
      lanes_sync();
      return true;
    }
  if (desk.num_players == MOST_PLAYED) return false;
  lanes_sync();
  if (lane() == 0) {
    int* player = desk.player + 4 * desk.num_players;
    player[0] = script, player[1] = 0, player[2] = feed.blocked ? list.played[script] : played, player[3] = length;
  }
  ++desk.num_players;
  lanes_sync();
  return true;
}

// Follows the entries up to a call, one that must wait, or the end.
DEVICE void follow(const List& list, Desk& desk, Feed& feed) {
  for (; feed.used < feed.known && !feed.ended; ++feed.used) {
    const Bits entry = entry_in(feed, feed.used);
    const int what = what_of(entry), number = number_of(entry);
    if (what == CALL) return;
    if (what == PLAY && !play(list, desk, feed, number)) {
      feed.blocked = true;
      return;
    }
    if (what == TELL) promise(list, desk, number);
    if (what == END) feed.ended = true;
  }
}

DEVICE bool has_calls(const Feed& feed) {
  return feed.used < feed.known && !feed.ended && what_of(entry_in(feed, feed.used)) == CALL;
}

// What the tables say of the call of a lane. Of equal calls of a batch, each knows how many are before it.
DEVICE void look_up(const List& list, Batch& batch) {
  Arrival& call = batch.call;
  const bool there = lane() < batch.count;
  const unsigned same = alike(there ? call.task : -1);
  const int earlier = population(same & ((1u << lane()) - 1));
  if (there) {
    const Task& task = list.tasks[call.task];
    call.first_word = task.first_word;
    call.num_words = task.num_words;
    call.parts = task.parts;
    call.of_class = task.of_class;
    call.tickets = tickets_of(task.tiles, list.grids[task.of_class]);
    call.execution = list.executions[call.task] + earlier + 1;
  }
  lanes_sync();
  if (there && population(same) == earlier + 1) list.executions[call.task] = call.execution;
  lanes_sync();
}

// Calls that came one by one.
DEVICE Batch batch_of_calls(const List& list, Feed& feed) {
  Batch batch;
  const unsigned calls = ballot(lane() >= feed.used && lane() < feed.known && what_of(feed.entry) == CALL);
  batch.count = lowest(~(Bits(calls) >> feed.used));
  const Bits own = from_lane(feed.entry, (feed.used + lane()) % LANE_COUNT);
  batch.call.task = number_of(own);
  batch.call.script = -1;
  batch.call.position = 0;
  batch.call.before = batch.call.before_tiled = 0;
  feed.used += batch.count;
  look_up(list, batch);
  return batch;
}

// The next calls of the lists that are played, one of each in turn.
DEVICE Batch batch_of_lists(const List& list, Desk& desk) {
  Batch batch;
  const int lists = desk.num_players;
  const int round = lane() / lists;
  const int* player = desk.player + 4 * ((desk.turn + lane()) % lists);
  const bool there = round < player[3];
  // up to the first list that has fewer calls left, so that turns stay in order
  batch.count = lowest(~Bits(ballot(there)));
  batch.call.script = player[0];
  batch.call.position = player[2] + round;
  if (lane() < batch.count) {
    const Script& script = list.scripts[player[0]];
    const Line& line = list.lines[script.first + (player[1] + round) % script.length];
    batch.call.task = line.task;
    batch.call.before = line.before;
    batch.call.before_tiled = line.tiled;
  }
  lanes_sync();
  // each list goes on by the calls that it has in the batch
  for (int i = lane(); i < lists; i += LANE_COUNT) {
    const int first = (i - desk.turn + lists) % lists;
    const int taken = first < batch.count ? (batch.count - first + lists - 1) / lists : 0;
    int* own = desk.player + 4 * i;
    own[1] = (own[1] + taken) % list.scripts[own[0]].length;
    own[2] += taken;
    own[3] -= taken;
  }
  desk.turn = (desk.turn + batch.count) % lists;
  lanes_sync();
  look_up(list, batch);
  return batch;
}

// Removes the lists of which all calls were admitted.
DEVICE void stop_playing(const List& list, Desk& desk) {
  for (int i = 0; i < desk.num_players;) {
    int* player = desk.player + 4 * i;
    if (player[3] > 0) {
      ++i;
      continue;
    }
    lanes_sync();
    if (lane() == 0) {
      list.played[player[0]] = player[2];
      for (int k = 4 * i; k < 4 * (desk.num_players - 1); ++k) desk.player[k] = desk.player[k + 4];
    }
    --desk.num_players;
    if (desk.turn > i) --desk.turn;
    lanes_sync();
  }
  if (desk.num_players) desk.turn %= desk.num_players;
}

// Leaves if nothing has come for a while and no call is in the window. Host and window each write first and read then,
// so that they cannot miss each other: either the window sees the next entry, or the host sees that it has gone.
DEVICE bool leaves(const List& list, const Desk& desk, Feed& feed) {
  bool gone = false;
  const long long time = from_lane(now(), 0);
  if (!feed.idle) feed.idle = time;
  if (desk.occupied || time - feed.idle < LEAVES_AFTER) return false;
  if (lane() == 0) {
    tell_host(&list.status->gone, 1);
    system_fence();
    gone = high(ring_at(list, feed.position)) != feed.position + 1;
    if (!gone) tell_host(&list.status->gone, 0);
  }
  return ballot(gone) != 0;
}
