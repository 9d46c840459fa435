// Contacts of a pair whose cores are near each other or overlap; see searches.cuh. The distance of the cores or the
// depth is known. `part` is the number of the search. Several lanes share what takes longest, and one has the rest.

#if LANES == 1
typedef OneLane TouchLanes;
#else
typedef AllLanes TouchLanes;
#endif

// The pairs of a world beyond the memory for states of searches, from number `first` on; other lanes take the rest.
DEVICE void touch_rest(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                       const int* search_near, int searches, int* search_found, int first) {
  ROLLED for (int k = first; k < searches; k += QUEUE_REST) {
    const int c = near_at(m, near_cand, search_near[k]);
    Contact found[MAX_CONVEX];
    const int contacts = collide_convex(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
    search_found[k] = contacts + FOUND_ROWS * rows_of(m, c, found, contacts);
  }
}

DEVICE void collision_touch(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* search_near, const int* pair_tally, const int* search_state,
                            const real* search_simplex, const int* search_queue, real* kept_contact, int* search_found,
                            int part) {
  if (part >= MOST_SEARCHES) {
    if (lane() != 0) return;
    const int first = kept_searches(m, pair_tally[1]) + part - MOST_SEARCHES;
    touch_rest(m, geom_xpos, geom_xmat, near_cand, search_near, pair_tally[1], search_found, first);
    return;
  }
  const int c = near_at(m, near_cand, search_near[part]);
  const Pair p = pair_of(m, c, geom_xpos, geom_xmat);
  const Difference d = difference_of(p);
  const real margin = detection_margin(m, c);
  Simplex simplex;
  real normal[3];
  const int cores = search_state[part];
  if (cores != CORES_REST && !is_segment_cylinder(d)) {
    take_simplex(search_simplex + SIMPLEX_WORDS * size_t(part), cores == CORES_DEEP, simplex, normal);
  }
  Kinks kinks;
  Contact found[MAX_CONVEX];
  if (!end_search<TouchLanes>(d, p.pos1, margin, simplex, normal, kinks, found) || lane() != 0) return;
  const int contacts = with_features(p, d, margin, simplex, kinks, found);
  search_found[part] = contacts + FOUND_ROWS * rows_of(m, c, found, contacts);
  put_kept(kept_contact, part, found, contacts);
}
