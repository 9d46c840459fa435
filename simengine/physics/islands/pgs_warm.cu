// The forces of the last acceleration are taken up by all islands of a world, or by none if those cost less.

DEVICE void pgs_warm(const Model& m, const int* nefc, const int* efc_place, const real* island_efc_before,
                     real* island_efc_force) {
  real cost = 0;
  LANE_FOR(r, nefc[0]) cost += island_efc_before[efc_place[r]];
  if (lane_sum(cost) > 0) {
    LANE_FOR(r, nefc[0]) island_efc_force[r] = 0;
  }
  lane_sync();
}
