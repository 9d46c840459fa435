// The prisms that a geom may touch, many at a time on the host; see prism_bounds.cuh.
#pragma once

#ifdef PRISMS_IN_VECTORS
// Cells of a patch whose prisms fit a vector: some of one row, or all of several rows. Prism k of row j has place
// (2 * cells + 2) * j + k, because a row has two vertices more than prisms.
struct Tile {
  int first[2], cells[2];  // along x and y, from the patch's first cell

  int stride() const { return 2 * cells[0] + 2; }
  int prisms() const { return 2 * cells[0]; }
};

// The prisms of a tile that the geom may touch, by bits.
template <typename Patch>
DEVICE unsigned prisms_of_tile(const Patch& f, const GeomBounds& g, const Tile& tile, real margin) {
  REAL x[VECTOR_WIDTH + 2] = {}, y[VECTOR_WIDTH + 2] = {}, height[VECTOR_WIDTH + 2] = {};
  unsigned there = 0;
  for (int j = 0; j < tile.cells[1]; ++j) {
    const int first = tile.stride() * j, row = f.first[1] + tile.first[1] + j;
    const real y0 = fma_(real(row), f.step[1], f.corner[1]), y1 = fma_(real(row + 1), f.step[1], f.corner[1]);
    const real* data = f.data + row * f.ncol;
    for (int k = 0; k <= tile.cells[0]; ++k) {
      const int c = f.first[0] + tile.first[0] + k, v = first + 2 * k;
      x[v] = x[v + 1] = fma_(real(c), f.step[0], f.corner[0]);
      y[v] = y1;
      y[v + 1] = y0;
      height[v] = fma_(data[f.ncol + c], f.scale, f.ground);
      height[v + 1] = fma_(data[c], f.scale, f.ground);
    }
    there |= ((1u << tile.prisms()) - 1) << first;
  }
  Prisms p;
  Truths reached = {};
  for (int v = 0; v < 3; ++v) {
    p.at[v][0] = lanes_at(x + v);
    p.at[v][1] = lanes_at(y + v);
    p.at[v][2] = lanes_at(height + v);
    reached |= p.at[v][2] >= f.low;
  }
  there &= bits_of(reached & ~above_faces(g, p, margin));
  if (there) there &= ~bits_of(beside_box(g, p, f.base, margin));
  if (there) there &= ~bits_of(beyond_edges(g, p, f.base, margin));
  return there;
}

// Call take(prism) for the prisms of a patch that the geom may touch, in order, until it returns false.
template <typename Patch, typename Take>
DEVICE void each_near_prism(const Patch& f, const GeomBounds& g, real margin, const Take& take) {
  const int most = VECTOR_WIDTH / 2 - 1, columns = f.number[0], rows = columns < most ? (most + 1) / (columns + 1) : 1;
  Tile tile;
  for (tile.first[1] = 0; tile.first[1] < f.number[1]; tile.first[1] += rows) {
    for (tile.first[0] = 0; tile.first[0] < columns; tile.first[0] += most) {
      tile.cells[0] = columns - tile.first[0] < most ? columns - tile.first[0] : most;
      tile.cells[1] = f.number[1] - tile.first[1] < rows ? f.number[1] - tile.first[1] : rows;
      for (unsigned near = prisms_of_tile(f, g, tile, margin); near; near &= near - 1) {
        const int bit = __builtin_ctz(near), row = tile.first[1] + bit / tile.stride();
        if (!take(2 * (row * columns + tile.first[0]) + bit % tile.stride())) return;
      }
    }
  }
}
#endif
