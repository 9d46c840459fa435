// Faces that lie on each other, and edges on faces, on the host: corners and sides are entries of vectors, and a side
// that cuts a polygon copies the corners that are left as one piece. Each corner and each side sees the operations of
// manifold.cuh and polygon.cuh in the same order.
#pragma once

#ifdef MATRIX_VECTORS
#define FACES_IN_VECTORS
#define MOST_SPOTS 60  // corners of both faces together, one bit of a word for each; others are clipped one by one
#define ROOM_OF_SPOTS (MOST_SPOTS + 4 + VECTOR_WIDTH)  // with what a vector writes behind the last

// Corners by their coordinates in a plane and their heights above it, each coordinate by itself.
struct Spots {
  REAL x[ROOM_OF_SPOTS], y[ROOM_OF_SPOTS], height[ROOM_OF_SPOTS];

  Spot at(int k) const { return {x[k], y[k], height[k]}; }
  void put(int k, const Spot& c) {
    x[k] = c.x;
    y[k] = c.y;
    height[k] = c.height;
  }
};

// The sides of a face as half planes: see side_of.
struct Sides {
  REAL nx[ROOM_OF_SPOTS], ny[ROOM_OF_SPOTS], dist[ROOM_OF_SPOTS], slack[ROOM_OF_SPOTS];

  HalfPlane at(int k) const { return {nx[k], ny[k], dist[k], slack[k]}; }
};

DEVICE Lanes lanes_at(const REAL* from) {
  Lanes x;
  __builtin_memcpy(&x, from, sizeof(x));
  return x;
}
DEVICE void put_lanes(REAL* to, Lanes x) { __builtin_memcpy(to, &x, sizeof(x)); }
DEVICE Lanes lanes_abs(Lanes x) { return (Lanes)((Truths)x & ~(Truths)-Lanes{}); }

// The first `number` bits.
DEVICE unsigned long long low_bits(int number) { return (1ull << number) - 1; }

DEVICE int sides_of(const Solid& s, int face) {
  return s.model->face_adr()[face + 1] - s.model->face_adr()[face];
}

// The corners of a face as seen from a plane, in MuJoCo's order: see corner_above. Returns their number.
DEVICE int corners_above(const Solid& s, int face, const Plane& p, Spots& out) {
  const int begin = s.model->face_adr()[face], sides = s.model->face_adr()[face + 1] - begin;
  const int* last = s.model->face_vert() + begin + sides - 1;
  const real *vert = s.model->hull_vert() + 3 * s.first, *mat = s.shape->mat;
  for (int base = 0; base < sides; base += VECTOR_WIDTH) {
    REAL local[3][VECTOR_WIDTH] = {};
    const int number = sides - base < VECTOR_WIDTH ? sides - base : VECTOR_WIDTH;
    for (int k = 0; k < number; ++k) {
      const real* from = vert + 3 * last[-base - k];
      for (int i = 0; i < 3; ++i) local[i][k] = s.scale[i] * from[i];
    }
    const Lanes x = lanes_at(local[0]), y = lanes_at(local[1]), z = lanes_at(local[2]);
    Lanes offset[3];
    for (int i = 0; i < 3; ++i) {
      const Lanes turned = vector_fma(every(mat[3 * i + 2]), z, vector_fma(every(mat[3 * i + 1]), y, mat[3 * i] * x));
      offset[i] = (turned + s.shape->pos[i]) - p.origin[i];
    }
    const real* axes[3] = {p.x, p.y, p.normal};
    REAL* to[3] = {out.x, out.y, out.height};
    for (int i = 0; i < 3; ++i) {
      const Lanes along = vector_fma(every(axes[i][1]), offset[1], axes[i][0] * offset[0]);
      put_lanes(to[i] + base, vector_fma(every(axes[i][2]), offset[2], along));
    }
  }
  return sides;
}

// The sides of a face between its corners. The first corner is put behind the last.
DEVICE void sides_between(Spots& corners, int number, real slack, Sides& out) {
  corners.put(number, corners.at(0));
  for (int base = 0; base < number; base += VECTOR_WIDTH) {
    const Lanes x = lanes_at(corners.x + base), y = lanes_at(corners.y + base);
    const Lanes nx = y - lanes_at(corners.y + base + 1), ny = lanes_at(corners.x + base + 1) - x;
    put_lanes(out.nx + base, nx);
    put_lanes(out.ny + base, ny);
    put_lanes(out.dist + base, vector_fma(nx, x, ny * y));
    put_lanes(out.slack + base, slack * (lanes_abs(nx) + lanes_abs(ny)));
  }
}

// How far each corner of a polygon is beyond a half plane, and which corners are inside, by bits.
DEVICE unsigned long long corners_inside(const Spots& polygon, int number, const HalfPlane& h, REAL* beyond) {
  unsigned long long inside = 0;
  for (int base = 0; base < number; base += VECTOR_WIDTH) {
    const Lanes x = lanes_at(polygon.x + base), y = lanes_at(polygon.y + base);
    const Lanes far = vector_fma(every(h.nx), x, vector_fma(every(h.ny), y, every(-h.dist)));
    put_lanes(beyond + base, far);
    inside |= (unsigned long long)bits_of(far <= every(h.slack)) << base;
  }
  return inside & low_bits(number);
}

// A polygon of which a half plane has corners on both sides, in the order in which it is clipped.
struct Cut {
  const Spots& from;
  const REAL* beyond;
  int number, first;  // its corners, and the one that it begins with
  Spots& to;
  int kept;

  // Add corners k to end - 1, counted from the first, round and round.
  void keep(int k, int end) {
    int at = wrapped(k + first, number), left = end - k;
    for (; left > 0; at = 0) {
      const int piece = left < number - at ? left : number - at;
      for (int i = 0; i < piece; i += VECTOR_WIDTH) {
        put_lanes(to.x + kept + i, lanes_at(from.x + at + i));
        put_lanes(to.y + kept + i, lanes_at(from.y + at + i));
        put_lanes(to.height + kept + i, lanes_at(from.height + at + i));
      }
      kept += piece;
      left -= piece;
    }
  }
  // Add the point where the edge from corner k to the next crosses the half plane.
  void cross(int k) {
    const int at = wrapped(k + first, number), next = at + 1 == number ? 0 : at + 1;
    const Spot a = from.at(at), b = from.at(next);
    const real share = clamp_(beyond[at] / (beyond[at] - beyond[next]), R(0.0), R(1.0));
    to.put(kept++, {fma_(share, b.x - a.x, a.x), fma_(share, b.y - a.y, a.y),
                    fma_(share, b.height - a.height, a.height)});
  }
};

// A polygon within a half plane, given which of its corners are inside: see clip. Returns the number of corners.
DEVICE int cut(const Spots& from, int number, int first, const HalfPlane& h, const REAL* beyond,
               unsigned long long inside, Spots& to) {
  // bit k for the corner k from the first on, and for the one after it; and for edges that cross
  const unsigned long long here = (inside >> first | inside << (number - first)) & low_bits(number);
  const unsigned long long next = here >> 1 | (here & 1) << (number - 1), crossing = here ^ next;
  const int one = __builtin_ctzll(crossing), two = 63 - __builtin_clzll(crossing);
  if (crossing & (crossing - 1) & ~(1ull << two)) {  // rounding has made a part of a side stand out
    Spot corners[MOST_SPOTS + 4];
    Rectangle bounds;
    for (int k = 0; k < number; ++k) corners[k] = from.at(wrapped(k + first, number));
    const int kept = clip(corners, number, h, MOST_SPOTS, bounds);
    for (int k = 0; k < kept; ++k) to.put(k, corners[k]);
    return kept;
  }
  Cut c = {from, beyond, number, first, to, 0};
  if (here & 1) {
    c.keep(1, one + 1);
    c.cross(one);
    c.cross(two);
    c.keep(two + 1, number + 1);
  } else {
    c.cross(one);
    c.keep(one + 1, two + 1);
    c.cross(two);
  }
  return c.kept;
}

DEVICE bool fits_spots(const Solid& a, int first, const Solid& b, int second) {
  return sides_of(a, first) + sides_of(b, second) <= MOST_SPOTS;
}

// The corners of the part of the second face that is over the first, as seen from the plane of that. Returns their
// number.
DEVICE int overlap_in_vectors(const Solid& a, const Solid& b, const Lying& lying, const Plane& plane, real slack,
                              Spot* polygon) {
  Spots spots[2], corners;
  Sides sides;
  REAL beyond[ROOM_OF_SPOTS];
  const int edges = corners_above(a, lying.first, plane, corners);
  sides_between(corners, edges, slack, sides);
  int number = corners_above(b, lying.second, plane, spots[0]), first = 0, own = 0;
  for (int k = 0; k < edges; ++k) {
    const HalfPlane side = sides.at(k);
    const unsigned long long inside = corners_inside(spots[own], number, side, beyond);
    if (!inside) return 0;
    if (inside == low_bits(number)) {  // then the polygon begins with its next corner
      first = wrapped(first + 1, number);
      continue;
    }
    number = cut(spots[own], number, first, side, beyond, inside, spots[1 - own]);
    own = 1 - own;
    first = 0;
  }
  for (int k = 0; k < number; ++k) polygon[k] = spots[own].at(wrapped(k + first, number));
  return number;
}

// The part of an edge over a face, whose corners are parameters of the edge in [0, 1]: see edge_contacts. Returns their
// number, 0 if there is no such part.
DEVICE int part_in_vectors(const Solid& faces, int face, const Plane& plane, const Spot& from, const Spot& to,
                           real slack, Spot* part) {
  Spots corners;
  Sides sides;
  REAL d1[ROOM_OF_SPOTS], d2[ROOM_OF_SPOTS];
  const int edges = corners_above(faces, face, plane, corners);
  sides_between(corners, edges, slack, sides);
  unsigned long long cuts = 0;
  for (int base = 0; base < edges; base += VECTOR_WIDTH) {
    const Lanes nx = lanes_at(sides.nx + base), ny = lanes_at(sides.ny + base), along = -lanes_at(sides.dist + base);
    const Lanes one = vector_fma(nx, every(from.x), vector_fma(ny, every(from.y), along));
    const Lanes two = vector_fma(nx, every(to.x), vector_fma(ny, every(to.y), along));
    const Lanes most = lanes_at(sides.slack + base);
    const int number = edges - base < VECTOR_WIDTH ? edges - base : VECTOR_WIDTH;
    if (bits_of((one > most) & (two > most)) & low_bits(number)) return 0;
    cuts |= (bits_of((one > most) | (two > most)) & low_bits(number)) << base;
    put_lanes(d1 + base, one);
    put_lanes(d2 + base, two);
  }
  Rectangle bounds;
  int number = 2, before = 0;  // a side that cuts nothing lets the part begin with its next corner
  for (; cuts; cuts &= cuts - 1) {
    const int k = __builtin_ctzll(cuts);
    turn(part, number, (k - before) % number);
    number = clip(part, number, {d2[k] - d1[k], R(0.0), -d1[k], sides.slack[k]}, THERE_AND_BACK, bounds);
    if (!number) return 0;
    before = k + 1;
  }
  turn(part, number, (edges - before) % number);
  return number;
}
#endif
