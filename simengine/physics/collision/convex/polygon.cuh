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

// The smallest rectangle along the axes of the plane that holds the corners of a polygon.
struct Rectangle {
  real low[2], high[2];
};

DEVICE void nothing_yet(Rectangle& bounds) {
  for (int i = 0; i < 2; ++i) {
    bounds.low[i] = REAL_MAX;
    bounds.high[i] = -REAL_MAX;
  }
}

DEVICE void include(Rectangle& bounds, const Spot& c) {
  const real at[2] = {c.x, c.y};
  for (int i = 0; i < 2; ++i) {
    bounds.low[i] = min_(bounds.low[i], at[i]);
    bounds.high[i] = max_(bounds.high[i], at[i]);
  }
}

// Whether a half plane holds all that is within bounds. The corner that is farthest beyond it is as far as any corner
// of the polygon, also as rounded: rounding keeps order.
DEVICE bool holds(const HalfPlane& h, const Rectangle& bounds) {
  const Spot farthest = {h.nx < 0 ? bounds.low[0] : bounds.high[0], h.ny < 0 ? bounds.low[1] : bounds.high[1], R(0.0)};
  return beyond(h, farthest) <= h.slack;
}

// (1) clip a polygon in place (Sutherland and Hodgman, Reentrant polygon clipping, 1974). Each edge adds the point
// where it crosses the half plane, and its end if that is inside. A corner is read before its results are written.
// `room` is the capacity in corners; `bounds` receives those of what is left. Returns the number of corners left. A
// polygon inside is left as it is, but begins with its second corner.
DEVICE_CALL int clip(Spot* polygon, int number, const HalfPlane& h, int room, Rectangle& bounds) {
  nothing_yet(bounds);
  if (number == 0) return 0;
  const Spot start = polygon[0];
  Spot from = start, to = number > 1 ? polygon[1] : start;
  real d1 = beyond(h, from);
  int kept = 0;
  ROLLED for (int i = 0; i < number; ++i) {
    const Spot next = i + 2 < number ? polygon[i + 2] : start;  // on its way while the corner before is clipped
    const real d2 = beyond(h, to);
    if ((d1 <= h.slack) != (d2 <= h.slack) && kept < room && kept < i + 2) {
      const real share = clamp_(d1 / (d1 - d2), R(0.0), R(1.0));
      const Spot crossing = {fma_(share, to.x - from.x, from.x), fma_(share, to.y - from.y, from.y),
                             fma_(share, to.height - from.height, from.height)};
      include(bounds, crossing);
      polygon[kept++] = crossing;
    }
    if (d2 <= h.slack && kept < room && kept < i + 2) {
      include(bounds, to);
      polygon[kept++] = to;
    }
    from = to;
    to = next;
    d1 = d2;
  }
  return kept;
}

// Reverse the order of corners `first` to `last` - 1.
DEVICE void reverse(Spot* polygon, int first, int last) {
  ROLLED for (--last; first < last; ++first, --last) {
    const Spot c = polygon[first];
    polygon[first] = polygon[last];
    polygon[last] = c;
  }
}

// Let a polygon begin with its corner number `first`.
DEVICE_CALL void turn(Spot* polygon, int number, int first) {
  if (first == 0) return;
  reverse(polygon, 0, first);
  reverse(polygon, first, number);
  reverse(polygon, 0, number);
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

// Corner number k of a polygon, counted round and round.
DEVICE int wrapped(int k, int number) {
  while (k >= number) k -= number;
  return k;
}

// The search for four corners: those of now, where they are, and their area. A free search takes steps that keep the
// area; another one only says whether it met such steps.
struct Search {
  int quad[4];
  real x[4], y[4];
  real most;
  bool free, met;
};

DEVICE void read_corner(const Spot* p, int number, int corner, Search& s) {
  const Spot& c = p[wrapped(s.quad[corner], number)];
  s.x[corner] = c.x;
  s.y[corner] = c.y;
}

DEVICE real area(const Search& s) {
  return abs_((s.x[2] - s.x[0]) * (s.y[3] - s.y[1]) - (s.y[2] - s.y[0]) * (s.x[3] - s.x[1]));
}

// Let s be the search with one corner advanced by one, if that makes the area larger; returns whether it does.
DEVICE bool move_on(const Spot* p, int number, int corner, Search& s) {
  const int end = corner == 3 ? s.quad[0] + number : s.quad[corner + 1];
  const real x = s.x[corner], y = s.y[corner];
  ++s.quad[corner];
  read_corner(p, number, corner, s);
  const real next = area(s);
  bool moves = next > s.most * LARGER;
  if (!moves && next * LARGER >= s.most && s.quad[corner] < end) {
    s.met = true;
    moves = s.free;
  }
  if (moves) {
    s.most = max_(s.most, next);
  } else {
    --s.quad[corner];
    s.x[corner] = x;
    s.y[corner] = y;
  }
  return moves;
}

// Where the third corner coincides with the second, advance it, and the fourth if that is reached, if that makes the
// area larger.
DEVICE bool part(const Spot* p, int number, Search& s) {
  if (!s.free || s.quad[1] != s.quad[2]) return false;
  Search trial = s;
  trial.quad[2] = s.quad[2] + 1;
  trial.quad[3] = s.quad[3] + (s.quad[3] == trial.quad[2]);
  for (int k = 2; k < 4; ++k) read_corner(p, number, k, trial);
  const real next = area(trial);
  if (!(next > s.most * LARGER)) return false;
  s = trial;
  s.most = next;
  return true;
}

// Write four corners that span a large area to `best` if they span more than `least`. The first corner goes once round
// the polygon, and the others advance while the area grows: the third and the second after each step of the fourth.
// Where the first one has reached the second, a triangle may be the largest so far. In a free search the second corner
// then goes on to the third, which is the same triangle, and from where all can part.
DEVICE_CALL Search search(const Spot* p, int number, real least, bool free, int* best) {
  Search s;
  s.free = free;
  s.met = false;
  for (int k = 0; k < 4; ++k) {
    s.quad[k] = k;
    read_corner(p, number, k, s);
  }
  s.most = area(s);
  ROLLED for (; s.quad[0] < number; ++s.quad[0]) {
    // a corner that the first one has reached has advanced past it
    for (int k = 0; k < 4; ++k) read_corner(p, number, k, s);
    ROLLED while (move_on(p, number, 3, s) || part(p, number, s)) {
      ROLLED while (move_on(p, number, 2, s)) {
      }
      ROLLED while (move_on(p, number, 1, s)) {
      }
      if (s.free && s.quad[0] == s.quad[1] && s.quad[2] == s.quad[1] + 1) {
        ++s.quad[1];
        read_corner(p, number, 1, s);
      }
      for (int k = 0; k < 4 && s.most > least; ++k) best[k] = wrapped(s.quad[k], number);
    }
    if (s.quad[1] > s.quad[0]) continue;
    ++s.quad[1];
    if (s.quad[2] == s.quad[1]) {
      ++s.quad[2];
      if (s.quad[3] == s.quad[2]) ++s.quad[3];
    }
  }
  return s;
}

// (2) four corners that span a large area of a polygon of more than four. MuJoCo's search may end with two corners that
// coincide, and rounding decides whether it takes a step that keeps the area. Where either happened, a free search that
// finds more counts.
DEVICE_CALL void span(const Spot* p, int number, int* best) {
  for (int k = 0; k < 4; ++k) best[k] = k;
  const Search s = search(p, number, R(0.0), false, best);
  const bool copies = best[0] == best[1] || best[1] == best[2] || best[2] == best[3] || best[3] == best[0];
  if (!s.met && !copies) return;
  search(p, number, copies ? s.most : s.most * CLEARLY_LARGER, true, best);
}
