// A geom on a height field. As in MuJoCo, the cells under the geom's bounding box are visited row by row, and the geom
// collides with the two prisms of each. A prism reaches from a triangle of the surface down to the base, and
// neighbouring prisms share two corners of the surface:
//
//     row + 1   0---2---4      strip of a row: prism k has the vertices k, k + 1, k + 2
//               | / | / |
//     row       1---3---5
#pragma once

// The part of a field under a geom, in the field's frame, relative to the geom's centre [m].
struct Ground {
  const real* data;            // heights of the whole field
  int ncol;                    // of the whole field
  int first[2], number[2];     // cells under the geom along x and y
  real corner[2], step[2];     // the field's first vertex, and the sides of a cell
  real ground, scale, base;    // height of data 0, height difference of data 1, and height of the base
  real low;                    // surfaces below this height are too far from the geom
};

// The same with the geom.
struct Patch : Ground {
  Difference d;     // a prism and the geom; the prism changes from call to call
  real geom_scale;
};

// Where a field is below a geom; `centre` receives the geom's centre in the field's frame.
DEVICE void place_field(const Pair& p, Patch& f, real* centre) {
  const Model& m = *p.model;
  const int field = m.geom_hfieldid()[p.geom1];
  const int count[2] = {m.hfield_ncol()[field], m.hfield_nrow()[field]};
  const real* size = m.hfield_size() + 4 * field;
  f.data = m.hfield_data() + m.hfield_adr()[field];
  f.ncol = count[0];
  f.d.b = shape_of(m, p.geom2, p.size2, p.pos2, p.mat2, p.pos2);
  f.geom_scale = extent(f.d.b);
  real offset[3], axis[3];
  for (int i = 0; i < 3; ++i) offset[i] = p.pos2[i] - p.pos1[i];
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, p.mat1, i);
    centre[i] = dot3(axis, offset);
  }
  for (int i = 0; i < 2; ++i) {
    f.step[i] = 2 * size[i] / (count[i] - 1);
    f.corner[i] = -size[i] - centre[i];
  }
  f.ground = -centre[2];
  f.scale = size[2];
  f.base = -size[3] - centre[2];
  f.low = -REAL_MAX;
}

// Lower and upper end of the geom along a direction, from its centre.
DEVICE void ends_along(const Shape& s, const real* dir, real* low, real* high) {
  real point[3];
  const real opposite[3] = {-dir[0], -dir[1], -dir[2]};
  support(s, dir, point);
  *high = dot3(point, dir) + s.radius;
  support(s, opposite, point);
  *low = dot3(point, dir) - s.radius;
}

// The part of the field under the geom; returns false if there is none.
DEVICE_CALL bool patch_of(const Pair& p, real margin, Patch& f) {
  const Model& m = *p.model;
  const int field = m.geom_hfieldid()[p.geom1];
  const int count[2] = {m.hfield_ncol()[field], m.hfield_nrow()[field]};
  const real* size = m.hfield_size() + 4 * field;
  real axis[3], low[3], high[3], centre[3];
  place_field(p, f, centre);
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, p.mat1, i);
    ends_along(f.d.b, axis, &low[i], &high[i]);
  }
  // (1) no contact if the bounding boxes are apart
  for (int i = 0; i < 3; ++i) {
    const real below = i < 2 ? size[i] : size[3];
    if (centre[i] + low[i] - margin > size[i] || centre[i] + high[i] + margin < -below) return false;
  }
  // (2) cells that the geom's box covers
  for (int i = 0; i < 2; ++i) {
    const real last = real(count[i] - 1);
    const real begin = floor_((low[i] - margin - f.corner[i]) / f.step[i]);
    const real end = -floor_((f.corner[i] - high[i] - margin) / f.step[i]);
    f.first[i] = int(clamp_(begin, R(0.0), last));
    f.number[i] = int(clamp_(end, R(0.0), last)) - f.first[i];
  }
  f.low = low[2] - margin;
  return f.number[0] > 0 && f.number[1] > 0;
}

// A prism of a field: its row of cells, and its number in that row.
struct PrismPlace {
  int row, number;
};

// Prism `number` of the patch, in MuJoCo's order.
DEVICE PrismPlace prism_of_patch(const Ground& f, int number) {
  const int strip = 2 * f.number[0];
  return {f.first[1] + number / strip, 2 * f.first[0] + number % strip};
}

// (3) three corners of a prism's base, then three of its upper face. Returns whether that reaches up to the geom.
DEVICE bool vertices_of(const Ground& f, const PrismPlace& prism, real* vert) {
  bool reached = false;
  for (int v = 0; v < 3; ++v) {
    const int number = prism.number + v, c = number / 2, r = prism.row + 1 - (number & 1);
    real* lower = vert + 3 * v;
    real* upper = lower + 9;
    lower[0] = upper[0] = fma_(real(c), f.step[0], f.corner[0]);
    lower[1] = upper[1] = fma_(real(r), f.step[1], f.corner[1]);
    lower[2] = f.base;
    upper[2] = fma_(f.data[r * f.ncol + c], f.scale, f.ground);
    reached |= upper[2] >= f.low;
  }
  return reached;
}

#define PRISM_REALS 21  // six vertices, and the upward normal of the upper face

// Let the first shape be the prism with these vertices, which become relative to its centre; the normal is added.
DEVICE void prism_shape(const Pair& p, Patch& f, real* vert) {
  real square = 0, centre[3] = {R(0.0), R(0.0), R(0.0)};
  for (int v = 0; v < 3; ++v) {
    for (int i = 0; i < 3; ++i) centre[i] += (vert[3 * v + i] + vert[3 * v + 9 + i]) * R(0.16666666666666667);
  }
  for (int v = 0; v < 6; ++v) {
    for (int i = 0; i < 3; ++i) vert[3 * v + i] -= centre[i];
    square = max_(square, dot3(vert + 3 * v, vert + 3 * v));
  }
  face_upward(vert + 9, vert + 18);
  Shape& a = f.d.a;
  a.mat = p.mat1;
  to_world(a.pos, p.mat1, centre);
  for (int i = 0; i < 3; ++i) a.box[i] = a.round[i] = 0;
  a.radius = 0;
  a.hull.vert = vert;
  a.hull.nvert = 6;
  a.hull.extent = sqrt_(square);
  a.hull.cube_side = IS_PRISM;
#if HAS_PACKS
  a.hull.pack = 0;
#endif
  placed(a);
  f.d.scale = extent(a) + f.geom_scale;
  f.d.several = false;
#if !SIMENGINE_GPU
  a.hull.top = vert + 18;
  f.d.model = nullptr;
#endif
}

#define SEARCH_PRISM (-1)

// The contact of the geom with the prism that has these vertices, where no search is needed: 1 if there is one, 0 if
// there is none, else SEARCH_PRISM. The first shape is then the prism. The host looks for shapes on the upper face when
// it begins a search.
DEVICE int contact_at_once(const Pair& p, Patch& f, real* vert, real margin, Contact* out) {
  if (is_ball(f.d.b)) {
    const int found = ball_on_prism(vert + 9, f.base, f.d.b.radius, margin, p.mat1, p.pos2, out);
    if (found >= 0) return found;
  }
  prism_shape(p, f, vert);
#if SIMENGINE_GPU
  real on_face[3], point[3], gap, normal[3];
  const real radius = f.d.b.radius;
  int found = rests_above(f.d, vert + 18, margin + radius, point, &gap, normal);
  if (found == REST_UNKNOWN) found = lies_across(f.d, vert + 18, margin + radius, point, &gap, normal);
  if (found == REST_UNKNOWN) return SEARCH_PRISM;
  if (found == REST_APART || gap - radius > margin) return 0;
  for (int i = 0; i < 3; ++i) on_face[i] = fma_(-gap, normal[i], point[i]);
  between_cores(f.d, p.pos2, normal, on_face, point, gap - radius, out);
  return 1;
#else
  return SEARCH_PRISM;
#endif
}

// (4) contact of the geom with a prism as two convex shapes; returns false if there is none.
DEVICE_CALL bool prism_contact(const Pair& p, Patch& f, int prism, real margin, Contact* out) {
  real vert[PRISM_REALS];
  if (!vertices_of(f, prism_of_patch(f, prism), vert)) return false;
  const int found = contact_at_once(p, f, vert, margin, out);
  if (found != SEARCH_PRISM) return found;
  Simplex simplex;
  Kinks kinks;
  return convex_contact(f.d, p.pos2, margin, simplex, kinks, out);
}
