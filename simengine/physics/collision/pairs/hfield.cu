// A geom on a height field. As in MuJoCo, the cells under the geom's bounding box are visited row by row, and the geom
// collides with the two prisms of each. A prism reaches from a triangle of the surface down to the base, and
// neighbouring prisms share two corners of the surface:
//
//     row + 1   0---2---4      strip of a row: prism k has the vertices k, k + 1, k + 2
//               | / | / |
//     row       1---3---5

// A geom and the part of a field under it, in the field's frame, relative to the geom's centre [m].
struct Patch {
  const real* data;            // heights of the whole field
  int ncol;                    // of the whole field
  int first[2], number[2];     // cells under the geom along x and y
  real corner[2], step[2];     // the field's first vertex, and the sides of a cell
  real ground, scale, base;    // height of data 0, height difference of data 1, and height of the base
  real low;                    // surfaces below this height are too far from the geom
  Difference d;                // a prism and the geom; the prism changes from call to call
  real geom_scale;
};

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
  f.data = m.hfield_data() + m.hfield_adr()[field];
  f.ncol = count[0];
  f.d.b = shape_of(m, p.geom2, p.size2, p.pos2, p.mat2, p.pos2);
  f.geom_scale = extent(f.d.b);
  real offset[3], axis[3], low[3], high[3], centre[3];
  for (int i = 0; i < 3; ++i) offset[i] = p.pos2[i] - p.pos1[i];
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, p.mat1, i);
    centre[i] = dot3(axis, offset);
    ends_along(f.d.b, axis, &low[i], &high[i]);
  }
  // (1) no contact if the bounding boxes are apart
  for (int i = 0; i < 3; ++i) {
    const real below = i < 2 ? size[i] : size[3];
    if (centre[i] + low[i] - margin > size[i] || centre[i] + high[i] + margin < -below) return false;
  }
  // (2) cells that the geom's box covers
  for (int i = 0; i < 2; ++i) {
    const int last = count[i] - 1;
    f.step[i] = 2 * size[i] / last;
    f.corner[i] = -size[i] - centre[i];
    const real begin = floor_((low[i] - margin - f.corner[i]) / f.step[i]);
    const real end = -floor_((f.corner[i] - high[i] - margin) / f.step[i]);
    f.first[i] = int(clamp_(begin, R(0.0), real(last)));
    f.number[i] = int(clamp_(end, R(0.0), real(last))) - f.first[i];
  }
  f.ground = -centre[2];
  f.scale = size[2];
  f.base = -size[3] - centre[2];
  f.low = low[2] - margin;
  return f.number[0] > 0 && f.number[1] > 0;
}

// Contact of the geom with a prism of the patch; returns false if there is none.
DEVICE_CALL bool prism_contact(const Pair& p, Patch& f, int prism, real margin, Contact* out) {
  const int strip = 2 * f.number[0], row = f.first[1] + prism / strip;
  real vert[18], centre[3] = {R(0.0), R(0.0), R(0.0)};
  bool reached = false;
  // (3) three corners of the base, then three of the surface
  for (int v = 0; v < 3; ++v) {
    const int number = prism % strip + v, c = f.first[0] + number / 2, r = row + 1 - (number & 1);
    real* lower = vert + 3 * v;
    real* upper = lower + 9;
    lower[0] = upper[0] = fma_(real(c), f.step[0], f.corner[0]);
    lower[1] = upper[1] = fma_(real(r), f.step[1], f.corner[1]);
    lower[2] = f.base;
    upper[2] = fma_(f.data[r * f.ncol + c], f.scale, f.ground);
    reached |= upper[2] >= f.low;
    for (int i = 0; i < 3; ++i) centre[i] += (lower[i] + upper[i]) * R(0.16666666666666667);
  }
  if (!reached) return false;
  real square = 0;
  for (int v = 0; v < 6; ++v) {
    for (int i = 0; i < 3; ++i) vert[3 * v + i] -= centre[i];
    square = max_(square, dot3(vert + 3 * v, vert + 3 * v));
  }
  // (4) collide the prism and the geom as two convex shapes
  Shape& a = f.d.a;
  a.mat = p.mat1;
  to_world(a.pos, p.mat1, centre);
  for (int i = 0; i < 3; ++i) a.box[i] = a.round[i] = 0;
  a.radius = 0;
  a.hull.vert = vert;
  a.hull.nvert = 6;
  a.hull.extent = sqrt_(square);
  a.hull.cube_side = 0;
  f.d.scale = extent(a) + f.geom_scale;
  Simplex simplex;
  Kinks kinks;
  return convex_contact(f.d, p.pos2, margin, simplex, kinks, out);
}

// Call `take` for the contacts of a pair, with their numbers, in MuJoCo's order and up to MuJoCo's limit; returns how
// many there are. The lanes share the prisms.
template <typename Take>
DEVICE int each_prism(const Pair& p, real margin, Take& take) {
  Patch f;
  if (!patch_of(p, margin, f)) return 0;
  const int prisms = 2 * f.number[0] * f.number[1];
  int found = 0;
  ROLLED for (int begin = 0; begin < prisms && found < MAX_HFIELD; begin += LANES) {
    Contact contact;
    const int prism = begin + lane();
    const bool hit = prism < prisms && prism_contact(p, f, prism, margin, &contact);
    int total;
    const int place = found + lane_scan(hit, &total);
    if (hit && place < MAX_HFIELD) take(place, contact);
    found += total;
  }
  return found < MAX_HFIELD ? found : MAX_HFIELD;
}

// Counts a lane's contacts that are closer than the margin and so exert a force.
struct CountActing {
  real margin;
  int number;
  DEVICE_METHOD void operator()(int, const Contact& contact) { number += contact.dist < margin; }
};

// Stores contacts at the addresses from counting.
struct StoreContacts {
  real *dist, *pos, *frame;
  int *cand, c;
  DEVICE_METHOD void operator()(int place, const Contact& contact) {
    dist[place] = contact.dist;
    for (int i = 0; i < 3; ++i) pos[3 * place + i] = contact.pos[i];
    for (int i = 0; i < 9; ++i) frame[9 * place + i] = contact.frame[i];
    cand[place] = c;
  }
};

// Number of contacts of a pair, counted by all lanes; `rows` receives the lane's share of their constraint rows.
DEVICE_CALL int count_hfield(const Model& m, int c, const real* geom_xpos, const real* geom_xmat, int* rows) {
  CountActing acting = {m.cand_margin()[c], 0};
  const int number = each_prism(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), acting);
  *rows = acting.number * rows_of(m, c);
  return number;
}

DEVICE void hfield(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* cand_adr,
                   real* contact_dist, real* contact_pos, real* contact_frame, int* contact_cand) {
  ROLLED for (int c = 0; c < m.ncand(); ++c) {
    const int first = cand_adr[c];
    if (m.cand_type()[c] != TYPE_HFIELD || cand_adr[c + 1] == first) continue;
    // (5) store them at the addresses of the world's contacts
    StoreContacts store = {contact_dist + first, contact_pos + 3 * first, contact_frame + 9 * first,
                           contact_cand + first, c};
    each_prism(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), store);
  }
  lane_sync();
}
