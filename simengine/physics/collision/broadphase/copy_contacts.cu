// Copy the contacts of a slice of pairs from their slots to the world's part of the contact arena. Each gets its
// parameters, which MuJoCo mixes from those of both geoms or takes from an explicit pair: MuJoCo documentation,
// "Modeling", "Contact parameters".

// Weight of the first geom in the mixed solver parameters.
DEVICE real share_of(real mix1, real mix2) {
  if (mix1 >= MJMINVAL && mix2 >= MJMINVAL) return divide_(mix1, mix1 + mix2);
  if (mix1 < MJMINVAL && mix2 < MJMINVAL) return R(0.5);
  return mix1 < MJMINVAL ? R(0.0) : R(1.0);
}

struct Parameters {
  real friction[5], solref[2], solreffriction[2], solimp[5];
};

DEVICE void explicit_parameters(const Model& m, int number, Parameters& out) {
  const real* prm = m.explicit_prm() + EXPLICIT_REALS * number;
  for (int i = 0; i < 5; ++i) out.friction[i] = prm[EXPLICIT_FRICTION + i];
  for (int i = 0; i < 5; ++i) out.solimp[i] = prm[EXPLICIT_SOLIMP + i];
  for (int i = 0; i < 2; ++i) out.solref[i] = prm[EXPLICIT_SOLREF + i];
  for (int i = 0; i < 2; ++i) out.solreffriction[i] = prm[EXPLICIT_SOLREFFRICTION + i];
}

// Parameters of two geoms: those of the geom with the higher priority or, at equal priority, mixed.
DEVICE void mixed_parameters(const Model& m, int g1, int g2, Parameters& out) {
  const int lead = collider(m, g1)[PRIORITY] - collider(m, g2)[PRIORITY];
  const int a = lead < 0 ? g2 : g1, b = lead > 0 ? g1 : g2;
  const real *prm1 = collider_prm(m, a), *prm2 = collider_prm(m, b);
  const real *friction1 = m.geom_friction() + 3 * a, *friction2 = m.geom_friction() + 3 * b;
  for (int i = 0; i < 5; ++i) {
    const int kind = i < 2 ? 0 : i == 2 ? 1 : 2;  // sliding, spinning, rolling
    out.friction[i] = max_(max_(friction1[kind], friction2[kind]), MJMINMU);
  }
  const real share = a == b ? R(1.0) : share_of(prm1[SOLMIX], prm2[SOLMIX]), rest = R(1.0) - share;
  const bool standard = prm1[SOLREF] > 0 && prm2[SOLREF] > 0;
  for (int i = 0; i < 2; ++i) {
    const real one = prm1[SOLREF + i], other = prm2[SOLREF + i];
    out.solref[i] = standard ? share * one + rest * other : min_(one, other);
    out.solreffriction[i] = 0;
  }
  for (int i = 0; i < 5; ++i) out.solimp[i] = share * prm1[SOLIMP + i] + rest * prm2[SOLIMP + i];
}

DEVICE void copy_contacts(const Model& m, const int* pair_geom, const int* pair_number, const int* pair_slot,
                           const int* pair_ncon, const int* pair_first, const real* slot_dist, const real* slot_pos,
                           const real* slot_frame, real* contact_dist, real* contact_pos, real* contact_frame,
                           int* contact_cand, int* contact_geom1, int* contact_geom2, int* contact_condim,
                           int* contact_rows, real* contact_friction, real* contact_solref,
                           real* contact_solreffriction, real* contact_solimp, real* contact_margin) {
  LANE_FOR(s, m.slice_number) {
    const int p = m.slice_first + s, contacts = pair_ncon[p];
    if (!contacts) continue;
    const int g1 = pair_geom[2 * p], g2 = pair_geom[2 * p + 1], number = pair_number[p];
    const int dim = dim_of(m, g1, g2, number), rows = rows_between(m, g1, g2, dim);
    const real margin = margin_of(m, g1, g2, number);
    Parameters prm;
    // (1) parameters
    if (number >= 0) {
      explicit_parameters(m, number, prm);
    } else {
      mixed_parameters(m, g1, g2, prm);
    }
    // (2) the contacts of the pair; each has its own entry of parameters, as a candidate pair has in the table
    ROLLED for (int k = 0; k < contacts; ++k) {
      const int from = pair_slot[p] + k, to = pair_first[p] + k;
      contact_dist[to] = slot_dist[from];
      for (int i = 0; i < 3; ++i) contact_pos[3 * to + i] = slot_pos[3 * from + i];
      for (int i = 0; i < 9; ++i) contact_frame[9 * to + i] = slot_frame[9 * from + i];
      contact_cand[to] = to;
      contact_geom1[to] = g1;
      contact_geom2[to] = g2;
      contact_condim[to] = dim;
      contact_rows[to] = rows;
      contact_margin[to] = margin;
      for (int i = 0; i < 5; ++i) contact_friction[5 * to + i] = prm.friction[i];
      for (int i = 0; i < 5; ++i) contact_solimp[5 * to + i] = prm.solimp[i];
      for (int i = 0; i < 2; ++i) contact_solref[2 * to + i] = prm.solref[i];
      for (int i = 0; i < 2; ++i) contact_solreffriction[2 * to + i] = prm.solreffriction[i];
    }
  }
  lane_sync();
}
