// Contact of a geom with a prism whose cores are near each other or overlap; see prism_search.cuh. The distance of the
// cores or the depth is known. `part` is the number of the prism. Several lanes share what takes longest.
#if LANES == 1
typedef OneLane PrismLanes;
#else
typedef AllLanes PrismLanes;
#endif

DEVICE void prism_touch(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                        const int* prism_of, const real* prism_simplex, const int* prism_queue, int* prism_state,
                        real* prism_contact, int part) {
  const int c = near_at(m, near_cand, prism_of[2 * part]);
  const Pair p = pair_of(m, c, geom_xpos, geom_xmat);
  Patch f;
  real vert[PRISM_REALS], normal[3];
  listed_prism(p, prism_of[2 * part + 1], f, vert);
  prism_shape(p, f, vert);
  Simplex simplex;
  take_simplex(prism_simplex + SIMPLEX_WORDS * size_t(part), prism_state[part] == PRISM_DEEP, simplex, normal);
  Kinks kinks;
  Contact contact;
  const real margin = detection_margin(m, c);
  const bool touches = end_search<PrismLanes>(f.d, p.pos2, margin, simplex, normal, kinks, &contact);
  lane_sync();
  if (lane() != 0) return;
  prism_state[part] = touches ? PRISM_TOUCHES : PRISM_APART;
  if (touches) put_kept(prism_contact + KEPT_REALS * part, 0, &contact, 1);
}
