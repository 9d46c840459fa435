// The pairs of a world that may touch; see counting.cuh. Pairs of three kinds are told apart: those that a lane counts
// on the way; those with a height field, whose work the lanes share; and those that need a search, which are listed, so
// that few searches far from each other among the candidates run side by side.

// Whether the kernel counts the contacts of those of the first kind. If not, collision_near does.
#ifndef COUNTS_NEAR
#define COUNTS_NEAR 1
#endif

DEVICE int collide_counted(int type, const Pair& pair, real margin, Contact* out);

// Lists near pairs, and among them those that need a search. near.adr receives the numbers of contacts of the others;
// for those with a height field, and where the kernel does not count, 0.
struct ListPairs {
  static const bool TESTS_BOXES = true;
  const Model& m;
  const real *geom_xpos, *geom_xmat;
  NearPairs near;
  int* search_near;
  int searches, rows;  // the lane's share of the rows of pairs without a search
  DEVICE_METHOD void list(int c) {
    const int type = c >= 0 ? m.cand_type()[c] : TYPE_HFIELD;
    const bool search = SEARCHES && type == TYPE_CONVEX;
    int number = 0;
    if (COUNTS_NEAR && !search && type != TYPE_HFIELD) {
      Contact found[MAX_CONTACTS];
      number = collide_counted(type, pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
      rows += rows_of(m, c, found, number);
    }
    const int place = near.append(c, number);
    if (!SEARCHES || !m.nsearch()) return;
    int total;
    const int k = searches + lane_rank(search, &total);
    if (search) search_near[k] = place;
    searches += total;
  }
};

DEVICE Tally list_pairs(const Model& m, bool healthy, const real* geom_xpos, const real* geom_xmat, int* near_cand,
                        int* near_adr, int* search_near, real* kept_prism, real* waiting,
                        const Vec4* bounds = nullptr) {
  ListPairs list = {m, geom_xpos, geom_xmat, {m, near_cand, near_adr, 0}, search_near, 0, 0};
  each_near(m, healthy ? m.ncand() : 0, geom_xpos, geom_xmat, reinterpret_cast<int*>(waiting), list, bounds);
  lane_sync();
  if (HFIELDS && m.nhfield()) {
    count_hfields(m, near_cand, list.near.number, geom_xpos, geom_xmat, near_adr, &list.rows, kept_prism);
    lane_sync();
  }
  return {list.near.number, list.searches, list.rows};
}

DEVICE void collision_list(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* world_status,
                           int* near_cand, int* near_adr, int* search_near, real* kept_prism, int* pair_tally,
                           int* search_queue, real* waiting, real* bounds) {
  if (SEARCHES && m.nsearch()) empty_queue(search_queue);
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  const Vec4* shared = share_bounds(m, geom_xpos, bounds);
  const Tally tally =
      list_pairs(m, healthy, geom_xpos, geom_xmat, near_cand, near_adr, search_near, kept_prism, waiting, shared);
  const int rows = lane_sum_int(tally.rows);
  NearPairs{m, near_cand, near_adr, tally.near}.end(0, tally.searches, rows, pair_tally);
  lane_sync();
}
