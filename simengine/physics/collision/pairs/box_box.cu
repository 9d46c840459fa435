// Two boxes: a polygon of contacts where a face of one touches a face of the other, one contact where two edges cross.
//
// There are 15 axes that may separate the boxes: the normals of the faces of both, and the cross products of their
// edges (Gottschalk, Lin and Manocha, OBBTree, 1996). The axis with the least overlap decides how the boxes touch. An
// edge axis that is almost the normal of the best face must have an overlap smaller by a twentieth; otherwise flat
// contacts would alternate between both kinds. A negative overlap is a gap, and there is no contact beyond the margin.

// Cosine of the angle within which an edge axis counts as the normal of a face, and the fraction of the face's overlap
// by which it must then be better.
#define NEARLY_PARALLEL R(0.99)
#define TWENTIETH R(0.05)
// Squared sine of the angle below which edges count as parallel.
#define BARELY_CROSSED max_(R(1e-16), 64 * REAL_EPS * REAL_EPS)
// A corner this far outside a side, relative to the side's distance, still counts as inside: in flush boxes whole edges
// lie on a side.
#define FLUSH (16 * REAL_EPS)
// Corners closer than this fraction of the deciding face's half diagonal count as one, and the first is used.
#define ONE_CORNER R(1e-7)
// Four clips of a quadrangle give at most eight corners; rounding may add one.
#define POLYGON 9

// Both boxes in the frame of the first.
struct Boxes {
  real turn[9];     // orientation of the second
  real offset1[3];  // centre of the second
  real offset2[3];  // centre of the first, in the frame of the second
  const real *size1, *size2;
};

struct Axis {
  real overlap;
  real normal[3];  // in the frame of the first box, from the first to the second
  int index;       // number of the face; for edges three times the first box's edge, plus the second's
};

DEVICE Boxes boxes_of(const Pair& p) {
  Boxes b;
  real between[3], axis1[3], axis2[3];
  for (int i = 0; i < 3; ++i) between[i] = p.pos2[i] - p.pos1[i];
  for (int i = 0; i < 3; ++i) {
    mat_col(axis1, p.mat1, i);
    b.offset1[i] = dot3(axis1, between);
    for (int j = 0; j < 3; ++j) {
      mat_col(axis2, p.mat2, j);
      b.turn[3 * i + j] = dot3(axis1, axis2);
      if (i == 0) b.offset2[j] = -dot3(axis2, between);
    }
  }
  b.size1 = p.size1;
  b.size2 = p.size2;
  return b;
}

// (1) the face with the least overlap: 0, 1, 2 of the first box, 3, 4, 5 of the second.
DEVICE Axis best_face(const Boxes& b) {
  Axis best = {REAL_MAX, {0, 0, 0}, 0};
  for (int i = 0; i < 6; ++i) {
    const int k = i % 3;
    real overlap = i < 3 ? b.size1[k] - abs_(b.offset1[k]) : b.size2[k] - abs_(b.offset2[k]);
    for (int j = 0; j < 3; ++j) {
      overlap += i < 3 ? abs_(b.turn[3 * k + j]) * b.size2[j] : abs_(b.turn[3 * j + k]) * b.size1[j];
    }
    if (overlap < best.overlap) {
      best.overlap = overlap;
      best.index = i;
    }
  }
  const int k = best.index % 3;
  for (int j = 0; j < 3; ++j) {
    if (best.index < 3) best.normal[j] = j != k ? R(0.0) : b.offset1[k] >= 0 ? R(1.0) : R(-1.0);
    else best.normal[j] = b.offset2[k] <= 0 ? b.turn[3 * j + k] : -b.turn[3 * j + k];
  }
  return best;
}

// (2) the pair of edges with the least overlap, along the cross product of their directions.
DEVICE Axis best_edges(const Boxes& b) {
  Axis best = {REAL_MAX, {0, 0, 0}, -1};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;
      real across[3];
      across[i] = 0;
      across[i1] = -b.turn[3 * i2 + j];
      across[i2] = b.turn[3 * i1 + j];
      const real square = dot3(across, across);
      if (square < BARELY_CROSSED) continue;
      const real scale = 1 / sqrt_(square);
      for (int k = 0; k < 3; ++k) across[k] *= scale;
      real along = dot3(across, b.offset1), side1 = 0, side2 = 0;
      for (int k = 0; k < 3; ++k) {
        side1 = fma_(across[k], b.turn[3 * k + j1], side1);
        side2 = fma_(across[k], b.turn[3 * k + j2], side2);
      }
      const real reach1 = abs_(across[i1]) * b.size1[i1] + abs_(across[i2]) * b.size1[i2];
      const real reach2 = abs_(side1) * b.size2[j1] + abs_(side2) * b.size2[j2];
      const real overlap = reach1 + reach2 - abs_(along);
      if (overlap < best.overlap) {
        const real sign = along >= 0 ? R(1.0) : R(-1.0);
        best = {overlap, {sign * across[0], sign * across[1], sign * across[2]}, 3 * i + j};
      }
    }
  }
  return best;
}

// (3) the part of the other box's face over the deciding face, by clipping its polygon against four sides
// (Sutherland and Hodgman, Reentrant polygon clipping, 1974).
struct Corner {
  real at[2];   // along the two other axes of the deciding face, in cyclic order
  real height;  // above that face, negative inside
};

DEVICE int clip_side(const Corner* in, int number, int axis, real sign, real size, Corner* out) {
  int kept = 0;
  for (int i = 0; i < number; ++i) {
    const Corner &from = in[i], &to = in[i + 1 < number ? i + 1 : 0];
    const real d1 = fma_(sign, from.at[axis], -size), d2 = fma_(sign, to.at[axis], -size);
    const bool inside1 = d1 <= FLUSH * size, inside2 = d2 <= FLUSH * size;
    if (inside1 && kept < POLYGON) out[kept++] = from;
    if (inside1 != inside2 && kept < POLYGON) {
      const real share = clamp_(d1 / (d1 - d2), R(0.0), R(1.0));
      for (int k = 0; k < 2; ++k) out[kept].at[k] = fma_(share, to.at[k] - from.at[k], from.at[k]);
      out[kept++].height = fma_(share, to.height - from.height, from.height);
    }
  }
  return kept;
}

// Does a corner coincide with an earlier one?
DEVICE bool is_repeated(const Corner* polygon, int corner, real near2) {
  for (int k = 0; k < corner; ++k) {
    const real dx = polygon[corner].at[0] - polygon[k].at[0], dy = polygon[corner].at[1] - polygon[k].at[1];
    if (fma_(dx, dx, dy * dy) <= near2) return true;
  }
  return false;
}

DEVICE int face_contacts(const Pair& p, const Boxes& b, const Axis& face, real margin, Contact* out) {
  const bool first = face.index < 3;
  const int up = face.index % 3, x = (up + 1) % 3, y = (up + 2) % 3;
  const real *offset = first ? b.offset1 : b.offset2, *size = first ? b.size1 : b.size2;
  const real *other = first ? b.size2 : b.size1, sign = offset[up] >= 0 ? R(1.0) : R(-1.0);
  real turn[9];
  for (int i = 0; i < 9; ++i) turn[i] = first ? b.turn[i] : b.turn[3 * (i % 3) + i / 3];
  // the face of the other box whose normal is most opposite
  int facing = 0;
  for (int k = 1; k < 3; ++k) {
    if (abs_(turn[3 * up + k]) > abs_(turn[3 * up + facing])) facing = k;
  }
  const int s = (facing + 1) % 3, t = (facing + 2) % 3;
  const real toward = (turn[3 * up + facing] > 0) == (sign > 0) ? -other[facing] : other[facing];
  Corner polygon[POLYGON], clipped[POLYGON];
  for (int corner = 0; corner < 4; ++corner) {
    const real u = corner == 0 || corner == 3 ? other[s] : -other[s], v = corner < 2 ? other[t] : -other[t];
    real at[3];
    for (int i = 0; i < 3; ++i) {
      at[i] = fma_(v, turn[3 * i + t], fma_(u, turn[3 * i + s], fma_(toward, turn[3 * i + facing], offset[i])));
    }
    polygon[corner] = {{at[x], at[y]}, fma_(sign, at[up], -size[up])};
  }
  int number = clip_side(polygon, 4, 0, R(1.0), size[x], clipped);
  number = clip_side(clipped, number, 0, R(-1.0), size[x], polygon);
  number = clip_side(polygon, number, 1, R(1.0), size[y], clipped);
  number = clip_side(clipped, number, 1, R(-1.0), size[y], polygon);
  // contacts midway between its corners and the face
  const real *pos = first ? p.pos1 : p.pos2, *mat = first ? p.mat1 : p.mat2;
  const real near2 = ONE_CORNER * ONE_CORNER * fma_(size[x], size[x], size[y] * size[y]);
  int contacts = 0;
  for (int k = 0; k < number && contacts < MAX_BOX_BOX; ++k) {
    if (polygon[k].height > margin || is_repeated(polygon, k, near2)) continue;
    real at[3];
    at[x] = polygon[k].at[0];
    at[y] = polygon[k].at[1];
    at[up] = sign * fma_(R(0.5), polygon[k].height, size[up]);
    Contact* contact = out + contacts++;
    contact->dist = polygon[k].height;
    for (int i = 0; i < 3; ++i) {
      contact->pos[i] = pos[i] + dot3(mat + 3 * i, at);
      contact->frame[i] = (first ? sign : -sign) * mat[3 * i + up];
      contact->frame[3 + i] = 0;
    }
    make_frame(contact->frame);
  }
  return contacts;
}

// (4) contact midway between the nearest points of the two edges, each of which is on the side of the other box.
DEVICE void edge_contact(const Pair& p, const Boxes& b, const Axis& edges, Contact* out) {
  const int i = edges.index / 3, j = edges.index % 3;
  real point1[3], point2[3], apart[3], direction[3];
  for (int k = 0; k < 3; ++k) {
    point1[k] = k == i ? R(0.0) : edges.normal[k] > 0 ? b.size1[k] : -b.size1[k];
    point2[k] = b.offset1[k];
    direction[k] = b.turn[3 * k + j];
  }
  for (int k = 0; k < 3; ++k) {
    const real side[3] = {b.turn[k], b.turn[3 + k], b.turn[6 + k]};
    const real reach = k == j ? R(0.0) : dot3(edges.normal, side) > 0 ? -b.size2[k] : b.size2[k];
    for (int l = 0; l < 3; ++l) point2[l] = fma_(reach, side[l], point2[l]);
  }
  for (int k = 0; k < 3; ++k) apart[k] = point1[k] - point2[k];
  const real cosine = direction[i], u = apart[i], v = dot3(direction, apart);
  const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
  const real square = fma_(direction[i1], direction[i1], direction[i2] * direction[i2]);
  real x1 = clamp_((cosine * v - u) / square, -b.size1[i], b.size1[i]), x2 = fma_(cosine, x1, v);
  if (abs_(x2) > b.size2[j]) {
    x2 = clamp_(x2, -b.size2[j], b.size2[j]);
    x1 = clamp_(fma_(cosine, x2, -u), -b.size1[i], b.size1[i]);
  }
  point1[i] = x1;
  for (int k = 0; k < 3; ++k) point1[k] = R(0.5) * (point1[k] + fma_(x2, direction[k], point2[k]));
  out->dist = -edges.overlap;
  for (int k = 0; k < 3; ++k) {
    out->pos[k] = p.pos1[k] + dot3(p.mat1 + 3 * k, point1);
    out->frame[k] = dot3(p.mat1 + 3 * k, edges.normal);
    out->frame[3 + k] = 0;
  }
  make_frame(out->frame);
}

DEVICE int collide_box_box(const Pair& p, real margin, Contact* out) {
  const Boxes b = boxes_of(p);
  const Axis face = best_face(b);
  if (face.overlap < -margin) return 0;
  const Axis edges = best_edges(b);
  if (edges.overlap < -margin) return 0;
  const bool alike = abs_(dot3(face.normal, edges.normal)) > NEARLY_PARALLEL;
  const real lead = face.overlap - edges.overlap;
  if (lead <= 0 || (alike && lead < TWENTIETH * abs_(face.overlap))) return face_contacts(p, b, face, margin, out);
  edge_contact(p, b, edges, out);
  return 1;
}

DEVICE void box_box(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                    const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                    real* contact_frame, int* contact_cand) {
  fill_contacts<collide_box_box, MAX_BOX_BOX>(m, TYPE_BOX_BOX, geom_xpos, geom_xmat, near_cand, near_adr, pair_tally,
                                              contact_dist, contact_pos, contact_frame, contact_cand);
}
