// The same as collision_list.cu, for models whose geoms are in clusters.

DEVICE void list_culled(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* world_status,
                        int* near_cand, int* near_adr, int* search_near, real* kept_prism, int* pair_tally,
                        int* search_queue, real* waiting, real* boxes, real* near_bits) {
  if (SEARCHES && m.nsearch()) empty_queue(search_queue);
  ListPairs list = {m, geom_xpos, geom_xmat, {m, near_cand, near_adr, 0}, search_near, 0, 0};
  if (world_status[0] == STATUS_HEALTHY) {
    each_near_of_clusters(m, geom_xpos, geom_xmat, reinterpret_cast<int*>(waiting), boxes,
                          reinterpret_cast<int*>(near_bits), near_cand, list);
  }
  lane_sync();
  if (HFIELDS && m.nhfield()) {
    count_hfields(m, near_cand, list.near.number, geom_xpos, geom_xmat, near_adr, &list.rows, kept_prism);
    lane_sync();
  }
  list.near.end(0, list.searches, lane_sum_int(list.rows), pair_tally);
  lane_sync();
}
