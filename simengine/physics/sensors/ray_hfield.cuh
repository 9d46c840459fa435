// Intersection of rays with height fields: the surface with two triangles per cell, the walls below its edges, and the
// box of the base.
#pragma once

// A ray over a field, in units of cells: its start, and its speed along columns and rows.
struct CellRay {
  const real* data;
  int cells[2], ncol;
  real at[2], speed[2];
};

// Height of the surface, from 0 to 1, along row (axis 0) or column (axis 1) `line`, where the other coordinate is `at`.
DEVICE real edge_height(const CellRay& r, int axis, int line, real at) {
  const int k = int(clamp_(floor_(at), R(0.0), real(r.cells[axis] - 1)));
  const real* first = r.data + (axis ? k * r.ncol + line : line * r.ncol + k);
  return fma_(at - k, first[axis ? r.ncol : 1] - first[0], first[0]);
}

// The nearer hit among a cell's two triangles, which share its diagonal.
DEVICE real ray_cell(const CellRay& r, int column, int row, real height, real p, real v) {
  const real* corner = r.data + row * r.ncol + column;
  const real h00 = corner[0], h10 = corner[1], h01 = corner[r.ncol], h11 = corner[r.ncol + 1];
  const real slack = 4 * REAL_EPS * r.ncol;  // so that no ray passes between two cells
  real best = NO_HIT;
  for (int upper = 0; upper < 2; ++upper) {
    const real along_x = upper ? h11 - h01 : h10 - h00, along_y = upper ? h01 - h00 : h11 - h10;
    const real x = r.at[0] - column, y = r.at[1] - row;
    const real above = p - height * fma_(along_y, y, fma_(along_x, x, h00));
    const real rate = v - height * fma_(along_y, r.speed[1], along_x * r.speed[0]);
    if (abs_(rate) <= MJMINVAL) continue;
    const real t = -above / rate, fx = fma_(t, r.speed[0], x), fy = fma_(t, r.speed[1], y);
    const real low = upper ? fx : fy, high = upper ? fy : fx;
    if (t >= 0 && low >= -slack && low <= high + slack && high <= 1 + slack) best = nearer(best, t);
  }
  return best;
}

// The surface. The cells are visited in the order in which the ray crosses them (Amanatides and Woo, "A fast voxel
// traversal algorithm for ray tracing", 1987).
DEVICE real ray_surface(const CellRay& r, real height, real p, real v) {
  // (1) the part of the ray over the field, between the lowest and the highest possible surface
  const real start[3] = {r.at[0], r.at[1], p}, speed[3] = {r.speed[0], r.speed[1], v};
  const real end[3] = {real(r.cells[0]), real(r.cells[1]), height};
  real from = 0, to = REAL_MAX;
  for (int i = 0; i < 3; ++i) {
    const real slack = 16 * REAL_EPS * end[i];
    if (abs_(speed[i]) <= MJMINVAL) {
      if (start[i] < -slack || start[i] > end[i] + slack) return NO_HIT;
      continue;
    }
    const real a = (-slack - start[i]) / speed[i], b = (end[i] + slack - start[i]) / speed[i];
    from = max_(from, min_(a, b));
    to = min_(to, max_(a, b));
  }
  if (from > to) return NO_HIT;
  // (2) from cell to cell
  int cell[2];
  real next[2];
  for (int i = 0; i < 2; ++i) {
    cell[i] = int(clamp_(floor_(fma_(from, r.speed[i], r.at[i])), R(0.0), real(r.cells[i] - 1)));
  }
  ROLLED for (int steps = r.cells[0] + r.cells[1]; steps > 0; --steps) {
    const real hit = ray_cell(r, cell[0], cell[1], height, p, v);
    if (hit >= 0) return hit;
    for (int i = 0; i < 2; ++i) {
      const bool moves = abs_(r.speed[i]) > MJMINVAL;
      next[i] = moves ? (cell[i] + (r.speed[i] > 0) - r.at[i]) / r.speed[i] : REAL_MAX;
    }
    const int i = next[1] < next[0];
    if (next[i] > to) break;
    cell[i] += r.speed[i] > 0 ? 1 : -1;
    if (cell[i] < 0 || cell[i] >= r.cells[i]) break;
  }
  return NO_HIT;
}

// The walls between height 0 and the edges of the surface.
DEVICE real ray_walls(const CellRay& r, const real* size, const real* p, const real* v) {
  real best = NO_HIT;
  for (int i = 0; i < 2; ++i) {
    if (abs_(v[i]) <= MJMINVAL) continue;
    for (int side = 0; side < 2; ++side) {
      const real t = ((side ? size[i] : -size[i]) - p[i]) / v[i];
      const real at = fma_(t, r.speed[1 - i], r.at[1 - i]), z = fma_(t, v[2], p[2]);
      if (t < 0 || at < 0 || at > r.cells[1 - i] || z < 0) continue;
      if (z < size[2] * edge_height(r, 1 - i, side ? r.cells[i] : 0, at)) best = nearer(best, t);
    }
  }
  return best;
}

// A ray against a whole height field, in the frame of its geom.
DEVICE real ray_hfield(const Model& m, int field, const real* p, const real* v) {
  const real* size = m.hfield_size() + 4 * field;
  CellRay r;
  r.data = m.hfield_data() + m.hfield_adr()[field];
  r.ncol = m.hfield_ncol()[field];
  r.cells[0] = r.ncol - 1;
  r.cells[1] = m.hfield_nrow()[field] - 1;
  for (int i = 0; i < 2; ++i) {
    const real per_length = r.cells[i] / (2 * size[i]);
    r.at[i] = (p[i] + size[i]) * per_length;
    r.speed[i] = v[i] * per_length;
  }
  const real base[3] = {p[0], p[1], fma_(R(0.5), size[3], p[2])}, half[3] = {size[0], size[1], R(0.5) * size[3]};
  const real solid = nearer(ray_box(base, v, half), ray_walls(r, size, p, v));
  return nearer(solid, ray_surface(r, size[2], p[2], v[2]));
}
