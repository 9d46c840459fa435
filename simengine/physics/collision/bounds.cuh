// Bounding spheres and boxes of geoms, and rounds of candidate pairs that lanes test by them.
#pragma once

// Whether the bounding spheres of two geoms are farther apart than `margin`: MuJoCo's mj_filterSphere.
DEVICE bool spheres_apart(const Model& m, int g1, int g2, real margin, const real* geom_xpos, const real* geom_xmat) {
  real offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = geom_xpos[3 * g2 + i] - geom_xpos[3 * g1 + i];
  const real reach = margin + m.geom_rbound()[g1] + m.geom_rbound()[g2];
  if (m.geom_type()[g1] == GEOM_PLANE) {
    real normal[3];
    mat_col(normal, geom_xmat + 9 * g1, 2);
    return dot3(offset, normal) > reach;
  }
  return dot3(offset, offset) > reach * reach;
}

// Whether a face of either geom's bounding box separates the two geoms (Gottschalk, Lin and Manocha, OBBTree, 1996,
// without the cross products of edges). It is cheaper than the narrowphase of heavy pair types.
DEVICE bool boxes_apart(const Model& m, int g1, int g2, real margin, const real* geom_xpos, const real* geom_xmat) {
  const int geom[2] = {g1, g2};
  if (m.geom_type()[geom[0]] == GEOM_PLANE) return false;
  const real* box[2] = {m.geom_aabb() + 6 * geom[0], m.geom_aabb() + 6 * geom[1]};
  const real* mat[2] = {geom_xmat + 9 * geom[0], geom_xmat + 9 * geom[1]};
  real between[3];
  for (int i = 0; i < 3; ++i) {
    between[i] = geom_xpos[3 * geom[1] + i] + dot3(mat[1] + 3 * i, box[1]) -
                 (geom_xpos[3 * geom[0] + i] + dot3(mat[0] + 3 * i, box[0]));
  }
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < 3; ++i) {
      real axis[3], other[3];
      mat_col(axis, mat[side], i);
      real reach = margin + box[side][3 + i];
      for (int k = 0; k < 3; ++k) {
        mat_col(other, mat[1 - side], k);
        reach = fma_(abs_(dot3(axis, other)), box[1 - side][3 + k], reach);
      }
      if (abs_(dot3(axis, between)) > reach) return true;
    }
  }
  return false;
}

// The same for candidate pair c.
DEVICE bool spheres_apart(const Model& m, int c, const real* geom_xpos, const real* geom_xmat) {
  return spheres_apart(m, m.cand_geom1()[c], m.cand_geom2()[c], detection_margin(m, c), geom_xpos, geom_xmat);
}
DEVICE bool boxes_apart(const Model& m, int c, const real* geom_xpos, const real* geom_xmat) {
  return boxes_apart(m, m.cand_geom1()[c], m.cand_geom2()[c], detection_margin(m, c), geom_xpos, geom_xmat);
}

// Worlds of up to so many geoms have their bounding spheres in the memory that lanes share, where a kernel has room for
// them; the number is also in kernel.py.
#define MOST_BOUNDS 256

#define ROUNDS_AT_ONCE 4  // rounds of candidates whose loads overlap

// The bounding sphere of each geom: its centre and radius, which is -1 for a plane. `words` has four words a geom.
// Returns null where there are too many geoms, or a single lane, which gains nothing.
DEVICE const Vec4* share_bounds(const Model& m, const real* geom_xpos, real* words) {
  if (LANES == 1 || m.ngeom() > MOST_BOUNDS) return 0;
  Vec4* bounds = reinterpret_cast<Vec4*>(words);
  LANE_FOR(g, m.ngeom()) {
    const real* at = geom_xpos + 3 * g;
    bounds[g] = {at[0], at[1], at[2], m.geom_type()[g] == GEOM_PLANE ? R(-1.0) : m.geom_rbound()[g]};
  }
  lane_sync();
  return bounds;
}

// The lane's candidates in ROUNDS_AT_ONCE rounds: in which of them bounding spheres are not apart, and which have a
// plane, by bits. The operations are those of spheres_apart.
struct Rounds {
  int near, planes;
};

// The rounds from candidate `first` on. WHOLE says that each lane has a candidate in each of them.
template <bool WHOLE>
DEVICE Rounds test_bounds(const Model& m, int first, int ncand, const Vec4* bounds) {
  int pair[ROUNDS_AT_ONCE], geoms[ROUNDS_AT_ONCE];
  real margin[ROUNDS_AT_ONCE];
  UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) {
    const int c = first + lane() + k * LANES;
    pair[k] = WHOLE || c < ncand ? c : ncand - 1;
    geoms[k] = m.cand_geoms()[pair[k]];
    margin[k] = 0;
  }
  if (m.opt_reach()) {
    UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) margin[k] = detection_margin(m, pair[k]);
  }
  Rounds found = {0, 0};
  UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) {
    const Vec4 a = bounds[geoms[k] & 0xffff], b = bounds[geoms[k] >> 16];
    const real offset[3] = {b.x - a.x, b.y - a.y, b.z - a.z}, reach = margin[k] + a.w + b.w;
    const bool there = WHOLE || first + lane() + k * LANES < ncand;
    found.near |= (there && !(dot3(offset, offset) > reach * reach)) << k;
    found.planes |= (there && a.w < 0) << k;
  }
  return found;
}

// In which of ROUNDS_AT_ONCE rounds of candidates from `first` on the lane's pair is near, by bits. Planes, which have
// no bounding sphere, are few: lanes look at them after all rounds, so that none of these branches.
DEVICE int near_rounds(const Model& m, int first, int ncand, const Vec4* bounds, const real* geom_xpos,
                       const real* geom_xmat) {
  int near = 0;
  if (!bounds) {
    UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) {
      const int c = first + k * LANES + lane();
      near |= (c < ncand && !spheres_apart(m, c, geom_xpos, geom_xmat)) << k;
    }
    return near;
  }
  const bool whole = first + ROUNDS_AT_ONCE * LANES <= ncand;
  const Rounds found = whole ? test_bounds<true>(m, first, ncand, bounds) : test_bounds<false>(m, first, ncand, bounds);
  near = found.near & ~found.planes;
  ROLLED for (int left = found.planes; left; left &= left - 1) {
    const int k = low_bit(left);
    near |= !spheres_apart(m, first + k * LANES + lane(), geom_xpos, geom_xmat) << k;
  }
  return near;
}
