// Sort the geoms of a world into a grid, and count the pairs that it finds and the contact slots that these need; see
// broadphase.cuh.

// Counts pairs and the most contacts they may have, and stores the first partners of a geom.
struct CountNear {
  const Model& m;
  int pairs, slots, own, g;
  int* near;
  DEVICE_METHOD void operator()(int low, int high) {
    int g1, g2;
    order_by_type(m, low, high, &g1, &g2);
    ++pairs;
    slots += kind_of(m, g1, g2)[1];
    if (near && own < MAX_NEIGHBOURS) near[own] = low == g ? high : low;
    ++own;
  }
};

struct CellKey {
  DEVICE_METHOD int operator()(const int* entry) const { return entry[0]; }
};

// (3) index of the first geom of each cell, and boxes in sorted order
DEVICE void index_cells(const Model& m, const real* geom_box, const int* grid_sorted, int* grid_start, real* grid_box) {
  const int n = m.ngeom(), last = idle_geoms(m);
  LANE_FOR(i, n) {
    const int cell = grid_sorted[2 * i], before = i ? grid_sorted[2 * i - 2] : -1, g = grid_sorted[2 * i + 1];
    ROLLED for (int c = before + 1; c <= cell; ++c) grid_start[c] = i;
    if (i == n - 1) {
      ROLLED for (int c = cell + 1; c <= last; ++c) grid_start[c] = n;
    }
    for (int k = 0; k < 6; ++k) grid_box[6 * i + k] = geom_box[6 * g + k];
  }
  lane_sync();
}

DEVICE void broadphase(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* world_status,
                       real* geom_box, int* grid_entry, int* grid_sorted, int* grid_counter, int* grid_start,
                       real* grid_box, int* grid_found, int* grid_near, int* pair_counts, int shard_size) {
  const int n = world_status[0] == STATUS_HEALTHY ? m.ngeom() : 0;
  CountNear sum = {m, 0, 0, 0, 0, 0};
  // (1) box and cell of each geom
  LANE_FOR(g, n) {
    bound_geom(m, g, geom_xpos, geom_xmat, geom_box + 6 * g);
    grid_entry[2 * g] = cell_of(m, g, geom_box + 6 * g);
    grid_entry[2 * g + 1] = g;
  }
  lane_sync();
  if (n) {
    // (2) geoms sorted by cell
    int bits = 1;
    while (m.ngrid() >> bits) ++bits;
    const int* sorted = radix_sort(grid_entry, grid_sorted, grid_counter, n, bits, CellKey());
    if (sorted != grid_sorted) {
      LANE_FOR(e, 2 * n) grid_sorted[e] = sorted[e];
      lane_sync();
    }
    index_cells(m, geom_box, grid_sorted, grid_start, grid_box);
    // (4) pairs of each geom with others in the grid
    const Grid grid = {grid_sorted, grid_start, grid_box};
    const int small = grid_start[large_geoms(m)], end = grid_start[idle_geoms(m)];
    LANE_FOR(i, small) {
      sum.own = 0;
      sum.g = grid_sorted[2 * i + 1];
      sum.near = grid_near + MAX_NEIGHBOURS * i;
      each_near(m, grid, i, sum);
      grid_found[i] = sum.own;
    }
    sum.near = 0;
    // (5) pairs of large geoms, and explicit pairs
    ROLLED for (int l = small; l < end; ++l) {
      LANE_FOR(i, l) {
        int low, high;
        if (near_large(m, grid, i, l, geom_xpos, geom_xmat, &low, &high)) sum(low, high);
      }
    }
    LANE_FOR(e, m.nexplicit()) {
      const int* own = m.explicit_pair() + 3 * e;
      if (!spheres_apart(m, own[0], own[1], reach_of(m, own[0], own[1], e), geom_xpos, geom_xmat)) {
        ++sum.pairs;
        sum.slots += kind_of(m, own[0], own[1])[1];
      }
    }
  }
  // (6) the world's entry in each column of counts
  int pairs, slots;
  lane_scan(sum.pairs, &pairs);
  lane_scan(sum.slots, &slots);
  if (lane() == 0) {
    pair_counts[0] = pairs + PAIR_SPARE;
    pair_counts[shard_size] = slots;
    pair_counts[2 * shard_size] = (pairs + PAIRS_A_SLICE - 1) / PAIRS_A_SLICE;
  }
  lane_sync();
}
