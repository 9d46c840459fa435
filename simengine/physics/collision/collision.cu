// Counting for models with light pair types only; see counting.cuh.
DEVICE void collision(const Model& m, const real* qpos, const real* geom_xpos, const real* geom_xmat,
                      const int* world_status, int* near_cand, int* near_adr, int* pair_tally, int* ncon, int* nefc,
                      int* counts, real* waiting, int shard_size) {
  count_contacts<collide_light, MAX_LIGHT_CONTACTS, false>(m, qpos, geom_xpos, geom_xmat, world_status, near_cand,
                                                           near_adr, pair_tally, ncon, nefc, counts, waiting,
                                                           shard_size);
}
