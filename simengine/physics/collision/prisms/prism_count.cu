// Numbers of contacts of near pairs with height fields, from their prisms; see prism_search.cuh. prism_place receives
// the number of each prism's contact within its pair, -1 if it has none. Prisms of the pairs that are not listed are
// collided here.

// Number the contacts of listed prisms up to MuJoCo's limit of a pair. Returns the lane's share of their rows.
DEVICE int number_contacts(const Model& m, const int* near_cand, const int* prism_of, int listed,
                           const int* prism_state, const real* prism_contact, int* prism_place, int* near_adr) {
  int rows = 0, open = -1, before = 0;  // the pair that the last round did not finish, and its contacts so far
  ROLLED for (int base = 0; base < listed; base += LANES) {
    const int k = base + lane(), last = base + LANES < listed ? base + LANES - 1 : listed - 1;
    const int i = k < listed ? prism_of[2 * k] : -1;
    const bool hit = i >= 0 && prism_state[k] == PRISM_TOUCHES;
    const int already = i == open ? before : 0;
    int total;
    bool first;
    const int place = already + lane_sum_of_key(i, hit, &total, &first);
    const int number = already + total < MAX_HFIELD ? already + total : MAX_HFIELD;
    const bool taken = hit && place < MAX_HFIELD;
    const int c = taken ? near_at(m, near_cand, i) : 0;
    if (taken && prism_contact[KEPT_REALS * k] < m.cand_margin()[c]) rows += rows_of(m, c);
    if (i >= 0) prism_place[k] = taken ? place : -1;
    if (i >= 0 && first) put_near(m, near_adr, i, number);
    open = prism_of[2 * last];
    before = lane_most(i == open ? number : 0);
    lane_sync();
  }
  return rows;
}

DEVICE void prism_count(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                        const int* prism_of, const int* prism_tally, const int* prism_state,
                        const real* prism_contact, int* prism_place, int* near_adr, int* pair_tally) {
  const int near = pair_tally[0], unlisted = prism_tally[1];
  int rows = number_contacts(m, near_cand, prism_of, prism_tally[0], prism_state, prism_contact, prism_place, near_adr);
  if (unlisted < near) {
    each_prism(CountedFields{m, near_cand, unlisted, near, geom_xpos, geom_xmat, near_adr, &rows, nullptr});
  }
  rows = lane_sum_int(rows);
  LANE_FOR(i, 1) pair_tally[2] += rows;
  lane_sync();
}
