// Convex polygons: clipping, and four corners that span a large area.
#pragma once

#ifndef FACE_CORNERS
#define FACE_CORNERS 192  // most corners of both faces together; kernels of models that need more are built with more
#endif
// factor by which an area must be larger, because equal areas are common; among many corners one step gains little
#if !REAL_IS_FLOAT
#define LARGER R(1.000000001)
#elif FACE_CORNERS > 192
#define LARGER R(1.0000004)
#else
#define LARGER R(1.00001)
#endif
#define CLEARLY_LARGER R(1.001)  // what a free search must find
#if REAL_IS_FLOAT
#define SAME_CORNER R(1e-5)  // relative to the scale: corners closer than this are copies of each other
#else
#define SAME_CORNER R(1e-9)
#endif

// A point by its coordinates in a plane and its height above it.
struct Spot {
  real x, y, height;
};

// A half plane, positive outside. What is beyond it by at most `slack` lies along its border up to rounding, and is
// inside.
struct HalfPlane {
  real nx, ny, dist, slack;
};

DEVICE real beyond(const HalfPlane& h, const Spot& c) { return fma_(h.nx, c.x, fma_(h.ny, c.y, -h.dist)); }

// (1) clip a polygon in place (Sutherland and Hodgman, Reentrant polygon clipping, 1974). Each edge adds the point
// where it crosses the half plane, and its end if that is inside. A corner is read before its results are written.
// `room` is the capacity in corners; returns the number of corners left.
DEVICE_CALL int clip(Spot* polygon, int number, const HalfPlane& h, int room) {
  if (number == 0) return 0;
  const Spot start = polygon[0];
  Spot from = start;
  real d1 = beyond(h, from);
  int kept = 0;
  ROLLED for (int i = 0; i < number; ++i) {
    const Spot to = i + 1 < number ? polygon[i + 1] : start;
    const real d2 = beyond(h, to);
    if ((d1 <= h.slack) != (d2 <= h.slack) && kept < room && kept < i + 2) {
      const real share = clamp_(d1 / (d1 - d2), R(0.0), R(1.0));
      polygon[kept++] = {fma_(share, to.x - from.x, from.x), fma_(share, to.y - from.y, from.y),
                         fma_(share, to.height - from.height, from.height)};
    }
    if (d2 <= h.slack && kept < room && kept < i + 2) polygon[kept++] = to;
    from = to;
    d1 = d2;
  }
  return kept;
}

DEVICE bool is_copy(const Spot& c, const Spot& other, real same) {
  return max_(abs_(c.x - other.x), abs_(c.y - other.y)) <= same;
}

// Drop corners that are copies of the one before, as long as there are more than four. Returns the number left.
DEVICE_CALL int without_copies(Spot* polygon, int number, real same) {
  if (number <= 4) return number;
  int kept = 1, copies = number - 4;
  ROLLED for (int k = 1; k < number; ++k) {
    const Spot c = polygon[k];
    bool copy = is_copy(c, polygon[kept - 1], same);
    if (k + 1 == number) copy |= is_copy(c, polygon[0], same);
    if (copy && copies > 0) --copies;
    else polygon[kept++] = c;
  }
  return kept;
}

DEVICE real area(const Spot* p, int number, const int* quad) {
  const Spot &a = p[quad[0] % number], &b = p[quad[1] % number], &c = p[quad[2] % number], &d = p[quad[3] % number];
  return abs_((c.x - a.x) * (d.y - b.y) - (c.y - a.y) * (d.x - b.x));
}

// The search for four corners: those of now, and their area. A free search takes steps that keep the area; another one
// only says whether it met such steps.
struct Search {
  int quad[4];
  real most;
  bool free, met;
};

// Advance one corner by one if that makes the area larger.
DEVICE_CALL bool move_on(const Spot* p, int number, int corner, Search& s) {
  const int end = corner == 3 ? s.quad[0] + number : s.quad[corner + 1];
  ++s.quad[corner];
  const real next = area(p, number, s.quad);
  bool moves = next > s.most * LARGER;
  if (!moves && next * LARGER >= s.most && s.quad[corner] < end) {
    s.met = true;
    moves = s.free;
  }
  if (!moves) --s.quad[corner];
  else s.most = max_(s.most, next);
  return moves;
}

// Where the third corner coincides with the second, advance it, and the fourth if that is reached, if that makes the
// area larger.
DEVICE_CALL bool part(const Spot* p, int number, Search& s) {
  if (!s.free || s.quad[1] != s.quad[2]) return false;
  const int third = s.quad[2] + 1, trial[4] = {s.quad[0], s.quad[1], third, s.quad[3] + (s.quad[3] == third)};
  const real next = area(p, number, trial);
  if (!(next > s.most * LARGER)) return false;
  s.most = next;
  for (int k = 2; k < 4; ++k) s.quad[k] = trial[k];
  return true;
}

// Write four corners that span a large area to `best` if they span more than `least`. The first corner goes once round
// the polygon, and the others advance while the area grows: the third and the second after each step of the fourth.
// Where the first one has reached the second, a triangle may be the largest so far. In a free search the second corner
// then goes on to the third, which is the same triangle, and from where all can part.
DEVICE_CALL void search(const Spot* p, int number, real least, Search& s, int* best) {
  for (int k = 0; k < 4; ++k) s.quad[k] = k;
  s.most = area(p, number, s.quad);
  ROLLED for (; s.quad[0] < number; ++s.quad[0]) {
    ROLLED while (move_on(p, number, 3, s) || part(p, number, s)) {
      ROLLED while (move_on(p, number, 2, s)) {
      }
      ROLLED while (move_on(p, number, 1, s)) {
      }
      if (s.free && s.quad[0] == s.quad[1] && s.quad[2] == s.quad[1] + 1) ++s.quad[1];
      for (int k = 0; k < 4 && s.most > least; ++k) best[k] = s.quad[k] % number;
    }
    // a corner that the first one has reached advances past it
    if (s.quad[1] > s.quad[0]) continue;
    ++s.quad[1];
    if (s.quad[2] == s.quad[1]) {
      ++s.quad[2];
      if (s.quad[3] == s.quad[2]) ++s.quad[3];
    }
  }
}

// (2) four corners that span a large area of a polygon of more than four. MuJoCo's search may end with two corners that
// coincide, and rounding decides whether it takes a step that keeps the area. Where either happened, a free search that
// finds more counts.
DEVICE_CALL void span(const Spot* p, int number, int* best) {
  Search s;
  s.free = s.met = false;
  for (int k = 0; k < 4; ++k) best[k] = k;
  search(p, number, R(0.0), s, best);
  const bool copies = best[0] == best[1] || best[1] == best[2] || best[2] == best[3] || best[3] == best[0];
  if (!s.met && !copies) return;
  s.free = true;
  search(p, number, copies ? s.most : s.most * CLEARLY_LARGER, s, best);
}
