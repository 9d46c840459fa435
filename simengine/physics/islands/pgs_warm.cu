// Drop the warm start in all islands of a world if zero forces cost less.

DEVICE void pgs_warm(const Model& m, const int* nefc, const int* efc_by_island, const real* island_efc_before,
                     real* island_efc_force) {
  real cost = 0;
  LANE_FOR(r, nefc[0]) cost += island_efc_before[efc_by_island[r]];
  if (lane_sum(cost) > 0) {
    LANE_FOR(r, nefc[0]) island_efc_force[r] = 0;
  }
  lane_sync();
}
