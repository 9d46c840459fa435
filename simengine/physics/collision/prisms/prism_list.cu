// The prisms of a world that may touch, in MuJoCo's order, as far as there is room for all of a pair; see
// prism_search.cuh. prism_tally receives their number, and the first near pair whose prisms are not listed.


// The list of a world.
struct PrismList {
  int* prism_of;
  int room, number;  // prisms that have a place, and those so far

  // Append prisms of near pair i; `there` says whether the lane has one.
  DEVICE_METHOD void append(bool there, int i, int prism) {
    int total;
    const int place = number + lane_rank(there, &total);
    if (there && place < room) {
      prism_of[2 * place] = i;
      prism_of[2 * place + 1] = prism;
    }
    number += total;
  }
};

// A near pair with a height field: the ground under the geom.
struct Above {
  Ground ground;
#if SIMENGINE_GPU
  GeomBounds geom;
#endif
  real margin;
};
#define ABOVE_WORDS 56
static_assert(sizeof(Above) <= ABOVE_WORDS * sizeof(real), "scratch of PRISM_LIST");

// Whether the geom may touch a prism.
DEVICE bool may_touch(const Above& pair, const PrismPlace& prism) {
  real vert[18];
  if (!vertices_of(pair.ground, prism, vert)) return false;
#if SIMENGINE_GPU
  Prisms one;
  for (int v = 0; v < 3; ++v) {
    for (int i = 0; i < 3; ++i) one.at[v][i] = vert[9 + 3 * v + i];
  }
  return !are_apart(pair.geom, one, pair.ground.base, pair.margin);
#endif
  return true;
}

// List the prisms of near pair i. All lanes have the same pair.
DEVICE void list_prisms(const Above& pair, int i, PrismList& list) {
  const int prisms = 2 * pair.ground.number[0] * pair.ground.number[1];
  ROLLED for (int base = 0; base < prisms && list.number <= list.room; base += LANES) {
    const int own = base + lane();
    const PrismPlace prism = prism_of_patch(pair.ground, own < prisms ? own : 0);
    list.append(own < prisms && may_touch(pair, prism), i, number_of(pair.ground, prism));
  }
}

// Find the ground under the geom of a near pair; returns false if there is none.
DEVICE bool find_ground(const Model& m, int c, const real* geom_xpos, const real* geom_xmat, Above& pair) {
  if (m.cand_type()[c] != TYPE_HFIELD) return false;
  const Pair p = pair_of(m, c, geom_xpos, geom_xmat);
  Patch f;
  pair.margin = detection_margin(m, c);
  if (!patch_of(p, pair.margin, f)) return false;
  pair.ground = f;
#if SIMENGINE_GPU
  pair.geom = bounds_of(p, f.d.b);
#endif
  return true;
}

DEVICE void prism_list(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                       const int* pair_tally, int* prism_of, int* prism_tally, int* prism_queue, real* above) {
  empty_queue(prism_queue);
  PrismList list = {prism_of, m.nprism(), 0};
  Above& shared = *reinterpret_cast<Above*>(above);
  const int near = pair_tally[0];
  int listed = 0, end = near;
  ROLLED for (int base = 0; base < end; base += LANES) {
    Above own;
    const int k = base + lane();
    // the lanes that have such a pair, the lowest first, list its prisms with all others
    int left = k < near && find_ground(m, near_at(m, near_cand, k), geom_xpos, geom_xmat, own) ? LANES - lane() : 0;
    ROLLED for (int most = lane_most(left); most && end == near; most = lane_most(left)) {
      if (left == most) {
        shared = own;
        left = 0;
      }
      lane_sync();
      list_prisms(shared, base + LANES - most, list);
      if (list.number > list.room) {
        end = base + LANES - most;
      } else {
        listed = list.number;
      }
      lane_sync();
    }
  }
  LANE_FOR(k, 1) {
    prism_tally[0] = listed;
    prism_tally[1] = end;
  }
  lane_sync();
}
