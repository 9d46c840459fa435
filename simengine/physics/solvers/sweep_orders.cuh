// Random orders of the sweeps of projected Gauss-Seidel on the host, which depend on nothing but how many there are to
// visit.
#pragma once

#if defined(VECTOR_BYTES) && !defined(TILE) && !defined(UNIT_ISLAND) && LANES == 1
#define MOST_VECTOR_ROWS 256
#define MOST_VECTOR_DOFS 64
#define MOST_KEPT_PLACES 64000  // of all sweeps over as many rows

// The order in which each sweep visits n places, which depends on n alone. Orders are kept by the calling thread.
struct SweepOrders {
  unsigned char* rows[MOST_VECTOR_ROWS + 1] = {};
  int known[MOST_VECTOR_ROWS + 1] = {}, room[MOST_VECTOR_ROWS + 1] = {};
  uint64 state[MOST_VECTOR_ROWS + 1];

  ~SweepOrders() {
    for (unsigned char* each : rows) delete[] each;
  }

  // The order of sweep number `sweep`, which is at most one after the last known.
  const unsigned char* of(int n, int sweep) {
    if (sweep < known[n]) return rows[n] + sweep * n;
    if (sweep == room[n]) {
      unsigned char* larger = new unsigned char[(2 * sweep + 64) * n];
      for (int i = 0; i < sweep * n; ++i) larger[i] = rows[n][i];
      delete[] rows[n];
      rows[n] = larger;
      room[n] = 2 * sweep + 64;
    }
    unsigned char* own = rows[n] + sweep * n;
    int order[MOST_VECTOR_ROWS], draw[1];
    for (int i = 0; i < n; ++i) order[i] = sweep ? own[i - n] : i;
    if (sweep == 0) state[n] = pcg_apply(pcg_steps(lane()), 1);
    shuffle(order, n, state[n], pcg_steps(LANES), draw);
    state[n] = pcg_apply(pcg_steps(n - 1), state[n]);
    for (int i = 0; i < n; ++i) own[i] = order[i];
    ++known[n];
    return own;
  }
};
#endif
