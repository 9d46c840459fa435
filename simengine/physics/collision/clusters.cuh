// Near pairs by clusters of geoms, for models with so many candidate pairs that most lanes would find spheres apart;
// see simengine/model/clusters.py.
//
//   (1) a box round each cluster that moves; those of clusters that stand still are in the model table
//   (2) lanes over pairs of clusters: those whose boxes meet wait until each lane has one
//   (3) lanes over the candidate pairs of these: a bit for each whose bounding spheres are not apart
//   (4) the bits in order, which is that of the candidates, whatever the order in which clusters met
//
// No pair is lost: boxes are larger than the spheres by more than rounding errors. So the pairs are those that
// each_near finds, in its order.
#pragma once

#define BOX_WORDS 6            // least coordinates, then largest
#define WAITING_MEETINGS 128   // integers for groups of up to 32 lanes, four for each lane

// The box along the axes of the world round the bounding spheres of a cluster.
DEVICE void box_of_cluster(const Model& m, int cluster, const real* geom_xpos, real* box) {
  real low[3] = {REAL_MAX, REAL_MAX, REAL_MAX}, high[3] = {-REAL_MAX, -REAL_MAX, -REAL_MAX};
  ROLLED for (int k = m.cluster_adr()[cluster]; k < m.cluster_adr()[cluster + 1]; ++k) {
    const int g = m.cluster_geom()[k];
    const real radius = m.geom_type()[g] == GEOM_PLANE ? R(0.5) * REAL_MAX : m.geom_rbound()[g];
    for (int i = 0; i < 3; ++i) {
      const real at = geom_xpos[3 * g + i], reach = fma_(32 * REAL_EPS, abs_(at) + radius, radius);
      low[i] = min_(low[i], at - reach);
      high[i] = max_(high[i], at + reach);
    }
  }
  for (int i = 0; i < 3; ++i) {
    box[i] = low[i];
    box[3 + i] = high[i];
  }
}

// Whether the boxes of two clusters are within the reach of their pairs. `boxes` has those of clusters that move.
DEVICE bool clusters_meet(const Model& m, int meeting, const real* boxes) {
  real box[2][BOX_WORDS];
  for (int side = 0; side < 2; ++side) {
    const int cluster = m.meeting()[2 * meeting + side], moving = cluster - m.nstill();
    for (int i = 0; i < BOX_WORDS; ++i) {
      box[side][i] = moving < 0 ? m.cluster_box()[BOX_WORDS * cluster + i] : boxes[BOX_WORDS * moving + i];
    }
  }
  const real reach = m.meeting_reach()[meeting];
  bool apart = false;
  for (int i = 0; i < 3; ++i) {
    apart = apart || box[0][i] > box[1][3 + i] + reach || box[1][i] > box[0][3 + i] + reach;
  }
  return !apart;
}

// Set the bits of candidate pairs whose bounding spheres are not apart, of the two clusters that each lane has, or of
// none if `meeting` is -1. `begins` and `shifts` have an integer for each lane.
DEVICE void mark_near(const Model& m, int meeting, const real* geom_xpos, const real* geom_xmat, int* begins,
                      int* shifts, int* bits) {
  const int first = meeting < 0 ? 0 : m.meeting_adr()[meeting];
  const int number = meeting < 0 ? 0 : m.meeting_adr()[meeting + 1] - first;
  int total;
  const int begin = lane_scan(number, &total);
  begins[lane()] = begin;
  shifts[lane()] = first - begin;
  lane_sync();
  LANE_FOR_LOADS(k, total) {
    int of = 0;  // the last lane whose pairs begin no later
    for (int more = LANES / 2; more > 0; more /= 2) of += begins[of + more] <= k ? more : 0;
    const int c = m.meeting_cand()[k + shifts[of]];
    if (!spheres_apart(m, c, geom_xpos, geom_xmat)) raise_bit(bits + c / 32, c % 32);
  }
}

// Set the bits of all near candidate pairs.
DEVICE void mark_all_near(const Model& m, const real* geom_xpos, const real* geom_xmat, int* waiting, real* boxes,
                          int* bits) {
  LANE_FOR(w, (m.ncand() + 31) / 32) bits[w] = 0;
  LANE_FOR(k, m.ncluster() - m.nstill()) {
    box_of_cluster(m, m.nstill() + k, geom_xpos, boxes + BOX_WORDS * k);
  }
  lane_sync();
  int count = 0, next = 0;  // meetings that wait, and the first of the next round
  for (;;) {
    ROLLED while (count < LANES && next < m.nmeeting()) {
      const int own = next + lane();
      const bool meets = own < m.nmeeting() && clusters_meet(m, own, boxes);
      int total;
      const int place = count + lane_rank(meets, &total);
      if (meets) waiting[place] = own;
      count += total;
      next += LANES;
    }
    if (!count) break;
    lane_sync();
    const int own = lane() < count ? waiting[lane()] : -1;
    mark_near(m, own, geom_xpos, geom_xmat, waiting + 2 * LANES, waiting + 3 * LANES, bits);
    lane_sync();
    if (LANES + lane() < count) waiting[lane()] = waiting[LANES + lane()];
    lane_sync();
    count = count > LANES ? count - LANES : 0;
  }
}

// The same as each_near. `near_cand` receives pairs before it receives what take.list keeps of them: a pair is kept at
// the place where it was, or before.
template <typename Take>
DEVICE void each_near_of_clusters(const Model& m, const real* geom_xpos, const real* geom_xmat, int* waiting,
                                  real* boxes, int* bits, int* near_cand, Take& take) {
#if SIMENGINE_GPU && LANES > 32
  __shared__ int of_block[4 * LANES];
  waiting = of_block;
#endif
  mark_all_near(m, geom_xpos, geom_xmat, waiting, boxes, bits);
  int number = 0;
  const int words = (m.ncand() + 31) / 32;
  ROLLED for (int base = 0; base < words; base += LANES) {
    const int w = base + lane();
    unsigned left = w < words ? unsigned(bits[w]) : 0u;
    int total, place = number + lane_scan(bit_count(left), &total);
    ROLLED for (; left; left &= left - 1) put_near(m, near_cand, place++, 32 * w + low_bit(left));
    number += total;
  }
  lane_sync();
  ROLLED for (int base = 0; base < number; base += LANES) {
    const int own = base + lane() < number ? near_at(m, near_cand, base + lane()) : -1;
    lane_sync();
    list_near(m, own, geom_xpos, geom_xmat, take);
  }
}
