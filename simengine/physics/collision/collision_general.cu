// Counting for models with any pair type and any type of row; see counting.cuh.
DEVICE void collision_general(const Model& m, const real* qpos, const int* eq_active, const real* ten_length,
                          const real* geom_xpos, const real* geom_xmat, const int* world_status, int* cand_adr,
                          real* kept_contact, int* ncon, int* nefc, int* counts, int shard_size) {
  count_contacts<collide_any, MAX_CONTACTS, true, count_hfield>(m, qpos, ten_length, geom_xpos, geom_xmat,
                                                                world_status, cand_adr, ncon, nefc, counts, shard_size,
                                                                standing_rows(m, eq_active), nullptr, kept_contact);
}
