// MuJoCo's filters for pairs of geoms, and a grid that finds pairs whose bounding boxes overlap. A geom is in the cell
// of its box's lower corner. Geoms wider than a cell are "large" and are tested against all others. Cells are numbered
// by a sum that wraps around, so that distant cells share a number; the test of the boxes rejects their geoms. No two
// of the 27 cells around a geom share a number.
#pragma once

// Entries per geom in `collider` and `collider_prm`.
enum Collider { CONTYPE, CONAFFINITY, WELD, PARENT, MOVES, CONDIM, PRIORITY, LASTDOF, COLLIDER_INTS };
enum ColliderParameter { MARGIN, GAP, SOLMIX, SOLREF, SOLIMP = SOLREF + 2, COLLIDER_REALS = SOLIMP + 5 };
// Entries per explicit pair in `explicit_prm`.
enum ExplicitParameter {
  EXPLICIT_FRICTION,
  EXPLICIT_SOLREF = 5,
  EXPLICIT_SOLREFFRICTION = 7,
  EXPLICIT_SOLIMP = 9,
  EXPLICIT_MARGIN = 14,
  EXPLICIT_GAP,
  EXPLICIT_REALS
};

// MuJoCo's mjMINMU: the smallest friction coefficient.
#define MJMINMU R(1e-5)

// Largest distance of a cell from the origin, in cells; boxes farther away are put into the last one.
#define FARTHEST_CELL R(1.0e8)

// Numbers that large geoms, and geoms that collide with nothing, have in place of a cell.
DEVICE int large_geoms(const Model& m) { return m.ngrid(); }
DEVICE int idle_geoms(const Model& m) { return m.ngrid() + 1; }

DEVICE const int* collider(const Model& m, int g) { return m.collider() + COLLIDER_INTS * g; }
DEVICE const real* collider_prm(const Model& m, int g) { return m.collider_prm() + COLLIDER_REALS * g; }

// Margin of a pair of geoms, or of explicit pair `number` if that is not negative: the distance at which forces begin.
DEVICE real margin_of(const Model& m, int g1, int g2, int number) {
  if (number >= 0) return m.explicit_prm()[EXPLICIT_REALS * number + EXPLICIT_MARGIN];
  return collider_prm(m, g1)[MARGIN] + collider_prm(m, g2)[MARGIN];
}

// Distance below which a contact is listed: margin + gap.
DEVICE real reach_of(const Model& m, int g1, int g2, int number) {
  const real margin = margin_of(m, g1, g2, number);
  if (number >= 0) return margin + m.explicit_prm()[EXPLICIT_REALS * number + EXPLICIT_GAP];
  return margin + (collider_prm(m, g1)[GAP] + collider_prm(m, g2)[GAP]);
}

// Dimension of the contacts: that of the geom with the higher priority or, at equal priority, the larger one.
DEVICE int dim_of(const Model& m, int g1, int g2, int number) {
  if (number >= 0) return m.explicit_pair()[3 * number + 2];
  const int *a = collider(m, g1), *b = collider(m, g2);
  if (a[PRIORITY] != b[PRIORITY]) return a[PRIORITY] > b[PRIORITY] ? a[CONDIM] : b[CONDIM];
  return a[CONDIM] > b[CONDIM] ? a[CONDIM] : b[CONDIM];
}

// Number of constraint rows per contact of two geoms; zero if no dof moves one relative to the other.
DEVICE int rows_between(const Model& m, int g1, int g2, int dim) {
  if (collider(m, g1)[LASTDOF] == collider(m, g2)[LASTDOF]) return 0;
  return m.opt_cone() == CONE_ELLIPTIC || dim == 1 ? dim : 2 * (dim - 1);
}

// Index of a pair of numbers in a sorted list of pairs, or -1.
DEVICE int find_two(const int* sorted, int n, int first, int second) {
  int low = 0, high = n;
  while (low < high) {
    const int mid = (low + high) / 2, a = sorted[2 * mid], b = sorted[2 * mid + 1];
    if (a == first && b == second) return mid;
    if (a < first || (a == first && b < second)) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  return -1;
}

DEVICE bool is_excluded(const Model& m, int body1, int body2) {
  const int signature = (body1 << 16) + body2;
  int low = 0, high = m.nexcluded();
  while (low < high) {
    const int mid = (low + high) / 2;
    if (m.exclude_signature()[mid] < signature) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  return low < m.nexcluded() && m.exclude_signature()[low] == signature;
}

// Whether MuJoCo's filters let two geoms collide, of which `low` has the lower id. Explicit pairs are handled
// elsewhere.
DEVICE bool may_collide(const Model& m, int low, int high) {
  const int *a = collider(m, low), *b = collider(m, high);
  if (a[WELD] == b[WELD] || !(a[MOVES] | b[MOVES])) return false;
  if (a[PARENT] == b[WELD] || b[PARENT] == a[WELD]) return false;
  if (!(a[CONTYPE] & b[CONAFFINITY]) && !(b[CONTYPE] & a[CONAFFINITY])) return false;
  if (m.nexcluded() && is_excluded(m, m.geom_bodyid()[low], m.geom_bodyid()[high])) return false;
  return find_two(m.explicit_geoms(), m.nexplicit(), low, high) < 0;
}

// Bounding box of a geom, enlarged by its margin and by a bound on the rounding errors of the box and the narrowphase.
DEVICE void bound_geom(const Model& m, int g, const real* geom_xpos, const real* geom_xmat, real* box) {
  const real *pos = geom_xpos + 3 * g, *mat = geom_xmat + 9 * g, *own = m.geom_aabb() + 6 * g;
  const real *size = m.geom_size() + 3 * g, *prm = collider_prm(m, g);
  const int type = m.geom_type()[g];
  const real reach = max_(R(0.0), prm[MARGIN] + prm[GAP]) * (type == GEOM_BOX ? BEYOND_AXES : R(1.0));
  for (int i = 0; i < 3; ++i) {
    real centre = pos[i], half = size[0];
    if (type == GEOM_PLANE) {
      half = REAL_MAX;
    } else if (type == GEOM_CAPSULE) {
      half = fma_(abs_(mat[3 * i + 2]), size[1], size[0]);
    } else if (type != GEOM_SPHERE) {
      half = 0;
      for (int k = 0; k < 3; ++k) {
        centre = fma_(mat[3 * i + k], own[k], centre);
        half = fma_(abs_(mat[3 * i + k]), own[3 + k], half);
      }
    }
    const real more = type == GEOM_PLANE ? R(0.0) : reach + 32 * REAL_EPS * (abs_(centre) + half);
    box[i] = type == GEOM_PLANE ? -REAL_MAX : centre - half - more;
    box[3 + i] = type == GEOM_PLANE ? REAL_MAX : centre + half + more;
  }
}

DEVICE bool boxes_overlap(const real* a, const real* b) {
  return a[0] <= b[3] && b[0] <= a[3] && a[1] <= b[4] && b[1] <= a[4] && a[2] <= b[5] && b[2] <= a[5];
}

DEVICE int cell_along(const Model& m, real x) {
  return int(floor_(clamp_(divide_(x, m.grid_cell()[0]), -FARTHEST_CELL, FARTHEST_CELL)));
}

DEVICE int cell_at(const Model& m, int x, int y, int z) {
  const unsigned along_y = m.grid_step()[0], along_z = m.grid_step()[1];
  return int((unsigned(x) + along_y * unsigned(y) + along_z * unsigned(z)) & unsigned(m.ngrid() - 1));
}

// The cell of a geom, from its box.
DEVICE int cell_of(const Model& m, int g, const real* box) {
  const int* own = collider(m, g);
  if (!own[CONTYPE] && !own[CONAFFINITY]) return idle_geoms(m);
  for (int i = 0; i < 3; ++i) {
    if (!(box[3 + i] - box[i] < R(0.95) * m.grid_cell()[0])) return large_geoms(m);
  }
  return cell_at(m, cell_along(m, box[0]), cell_along(m, box[1]), cell_along(m, box[2]));
}

// The geoms of a world, sorted by cell.
struct Grid {
  const int *sorted, *start;
  const real* box;
};

// Call take(low, high) for each pair of the geom at index i of the sorted geoms with another geom in the grid. Of the
// two geoms of a pair, the one whose cell comes first in the order z, y, x finds the other.
template <class Take>
DEVICE void each_near(const Model& m, const Grid& grid, int i, Take& take) {
  const real* box = grid.box + 6 * i;
  const int g = grid.sorted[2 * i + 1], mask = m.ngrid() - 1;
  int cell[3], beyond[3];
  for (int k = 0; k < 3; ++k) {
    cell[k] = cell_along(m, box[k]);
    beyond[k] = cell_along(m, box[3 + k]) > cell[k];
  }
  // rows of neighbouring cells along x, which have consecutive numbers
  for (int row = 0; row < 5; ++row) {
    const int y = row == 0 ? 0 : row == 1 ? 1 : row - 3, z = row >= 2;
    if ((y > 0 && !beyond[1]) || (z && !beyond[2])) continue;
    const int first = cell_at(m, cell[0] - (row > 0), cell[1] + y, cell[2] + z);
    const int number = 1 + (row > 0) + beyond[0];
    for (int k = 0; k < number; ++k) {
      const int c = (first + k) & mask;
      int j = grid.start[c];
      if (row == 0 && k == 0) j = i + 1;
      const int end = grid.start[c + 1];
      ROLLED for (; j < end; ++j) {
        if (!boxes_overlap(box, grid.box + 6 * j)) continue;
        const int other = grid.sorted[2 * j + 1], low = g < other ? g : other, high = g < other ? other : g;
        if (may_collide(m, low, high)) take(low, high);
      }
    }
  }
}

// Whether the geoms at indices i < l of the sorted geoms may touch, where that at l is a large one.
DEVICE bool near_large(const Model& m, const Grid& grid, int i, int l, const real* geom_xpos, const real* geom_xmat,
                       int* low, int* high) {
  const int one = grid.sorted[2 * i + 1], other = grid.sorted[2 * l + 1];
  *low = one < other ? one : other;
  *high = one < other ? other : one;
  const bool second = m.geom_type()[other] == GEOM_PLANE;
  if (second || m.geom_type()[one] == GEOM_PLANE) {
    const int plane = second ? other : one;
    if (m.geom_type()[second ? one : other] == GEOM_PLANE) return false;
    const real *box = grid.box + 6 * (second ? i : l), *prm = collider_prm(m, plane);
    const real *mat = geom_xmat + 9 * plane, *pos = geom_xpos + 3 * plane;
    real height = 0, extent = max_(R(0.0), prm[MARGIN] + prm[GAP]), size = 0;
    for (int k = 0; k < 3; ++k) {
      const real normal = mat[3 * k + 2], half = R(0.5) * (box[3 + k] - box[k]);
      const real centre = R(0.5) * (box[3 + k] + box[k]);
      height = fma_(normal, centre - pos[k], height);
      extent = fma_(abs_(normal), half, extent);
      size += abs_(centre) + abs_(pos[k]);
    }
    if (height > extent + 32 * REAL_EPS * size) return false;
  } else if (!boxes_overlap(grid.box + 6 * i, grid.box + 6 * l)) {
    return false;
  }
  return may_collide(m, *low, *high);
}

// Index into PAIR_TYPES, and the most contacts, of two geoms whose first has the lower type.
DEVICE const int* kind_of(const Model& m, int g1, int g2) {
  return m.kind() + 2 * (8 * m.geom_type()[g1] + m.geom_type()[g2]);
}

// Two geoms, sorted by type; geoms of equal type stay in the given order.
DEVICE void order_by_type(const Model& m, int a, int b, int* g1, int* g2) {
  const bool swap = m.geom_type()[a] > m.geom_type()[b];
  *g1 = swap ? b : a;
  *g2 = swap ? a : b;
}
