// The pairs of a world that may touch; see counting.cuh. Pairs of three kinds are told apart: those that a lane counts
// on the way; those with a height field, whose work the lanes share; and those that need a search, which are listed, so
// that few searches far from each other among the candidates run side by side.

DEVICE int collide_any(int type, const Pair& pair, real margin, Contact* out);

// What is known of a world's pairs. Each lane has its share of `rows` and `types`.
struct Tally {
  int rows;   // constraint rows of the contacts of pairs without a search
  int types;  // the types of these pairs that have contacts, a bit for each
  int sum;    // listed pairs if the model has any pair that needs a search, and contacts otherwise
};

// cand_adr receives the number of contacts of each pair without a search if the model has any pair that needs one, and
// otherwise the index of the first.
DEVICE Tally list_pairs(const Model& m, bool healthy, const real* geom_xpos, const real* geom_xmat, int* cand_adr,
                        int* search_cand) {
  const bool searching = m.nsearch() > 0;
  const int ncand = healthy ? m.ncand() : 0;
  Tally tally = {0, 0, 0};
  if (m.nhfield() && healthy) {  // the numbers of contacts wait in cand_adr
    LANE_FOR(c, ncand) cand_adr[c] = 0;
    lane_sync();
    count_hfields(m, geom_xpos, geom_xmat, cand_adr, &tally.rows);
    lane_sync();
  }
  ROLLED for (int base = 0; base < m.ncand(); base += LANES) {
    const int c = base + lane();
    int number = 0, more_rows = 0, total;
    bool search = false;
    if (c < ncand && m.cand_type()[c] == TYPE_HFIELD) {
      number = cand_adr[c];
    } else if (c < ncand && m.cand_type()[c] == TYPE_CONVEX) {
      search = !apart<true>(m, c, geom_xpos, geom_xmat);
    } else if (c < ncand) {
      Contact found[MAX_CONTACTS];
      number = count_pair<collide_any, true>(m, c, geom_xpos, geom_xmat, found, &more_rows);
    }
    const int place = tally.sum + lane_scan(searching ? search : number, &total);
    if (c < m.ncand()) cand_adr[c] = searching ? number : place;
    if (search) search_cand[place] = c;
    if (number) tally.types |= 1 << m.cand_type()[c];
    tally.sum += total;
    tally.rows += more_rows;
  }
  if (searching) LANE_FOR(k, m.nsearch() - tally.sum) search_cand[tally.sum + k] = -1;
  return tally;
}

DEVICE void collision_list(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* world_status,
                           int* cand_adr, int* search_cand, int* pair_tally) {
  const Tally tally = list_pairs(m, world_status[0] == STATUS_HEALTHY, geom_xpos, geom_xmat, cand_adr, search_cand);
  const int rows = lane_sum_int(tally.rows), types = lane_or(tally.types);
  LANE_FOR(i, 1) {
    pair_tally[0] = rows;
    pair_tally[1] = types;
    pair_tally[2] = tally.sum;
  }
  lane_sync();
}
