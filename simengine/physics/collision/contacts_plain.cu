// The same as contacts.cu, for models that also have plain pair types.
DEVICE void contacts_plain(const Model& m, const real* qpos, const real* geom_xpos, const real* geom_xmat,
                           const int* world_status, int* ncon, int* nefc, int* counts, real* contact_dist,
                           real* contact_pos, real* contact_frame, int* contact_cand, real* waiting, int shard_size) {
  const ContactFields out = {contact_dist, contact_pos, contact_frame, contact_cand};
  count_contacts<collide_plain, MAX_PLAIN_CONTACTS, true>(m, qpos, geom_xpos, geom_xmat, world_status, nullptr, nullptr,
                                                          nullptr, ncon, nefc, counts, waiting, shard_size, &out);
}
