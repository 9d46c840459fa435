// Contacts with height fields: those of listed prisms, and of the pairs that are not listed; see prism_search.cuh.
DEVICE void prism_store(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                        const int* near_adr, const int* pair_tally, const int* prism_of, const int* prism_tally,
                        const int* prism_place, const real* prism_contact, real* contact_dist, real* contact_pos,
                        real* contact_frame, int* contact_cand) {
  const ContactFields out = {contact_dist, contact_pos, contact_frame, contact_cand};
  LANE_FOR(k, prism_tally[0]) {
    if (prism_place[k] < 0) continue;
    const int i = prism_of[2 * k];
    Contact contact;
    take_kept(prism_contact + KEPT_REALS * k, 0, &contact, 1);
    out.put(near_at(m, near_adr, i) + prism_place[k], &contact, 1, near_at(m, near_cand, i));
  }
  const int near = pair_tally[0], unlisted = prism_tally[1];
  if (unlisted < near) {
    each_prism(StoredFields{m, near_cand, near_adr, unlisted, near, geom_xpos, geom_xmat, out});
  }
  lane_sync();
}
