// Several contacts of flat features: MuJoCo documentation, "Computation", "Collision detection", "Multiple contacts".
// The documentation does not give the rules; the following were found by experiments with MuJoCo.
//
// Faces: among the faces at the touching corners of both shapes, take the pair whose normals are most opposite. If
// their cosine is above FACES, the faces lie flat on each other. The second face is projected along the normal of the
// first and clipped against it. The corners that are left within the margin of the first face become contacts, at most
// four of them, which span as large an area as the search finds. They have the normal of the second face.
//
// Edges: otherwise, take the first face that looks at the other shape and has an edge of that whose angle to it has a
// sine below EDGE, and the first such edge. Edges of the first shape on faces of the second come first, and then edges
// of the second on faces of the first; the other way round if the second shape touches with fewer corners. The edge is
// clipped against the face as a polygon that runs to the other end and back, so that an end made by clipping occurs
// twice. Two corners within the margin, the farthest apart, become contacts with the face's normal. If the polygon
// begins and ends with the same end, rounding decides in MuJoCo which contact comes first.
#pragma once

#define FACES R(0.996)
#define EDGE R(0.0888)

DEVICE_CALL bool faces_lying(const Solid& a, const Solid& b, Lying* out) {
  real most = FACES;
  bool found = false;
  ROLLED for (int k = 0; k < a.faces; ++k) {
    const int first = face_of(a, k);
    real n1[3], n2[3];
    face_normal_of(a, first, n1);
    ROLLED for (int l = 0; l < b.faces; ++l) {
      const int second = face_of(b, l);
      face_normal_of(b, second, n2);
      const real cosine = -dot3(n1, n2);
      if (!(cosine > most)) continue;
      most = cosine;
      *out = {first, second};
      found = true;
    }
  }
  return found;
}

DEVICE_CALL bool edge_lying(const Solid& edges, const Solid& faces, Lying* out) {
  ROLLED for (int k = 0; k < faces.faces; ++k) {
    const int face = face_of(faces, k);
    real from[3], to[3], normal[3];
    face_normal_of(faces, face, normal);
    if (!(dot3(normal, faces.outward) > 0)) continue;
    ROLLED for (int e = 0; e < edges_of(edges); ++e) {
      edge_of(edges, e, from, to);
      for (int i = 0; i < 3; ++i) to[i] -= from[i];
      if (!(abs_(dot3(to, normal)) < EDGE * sqrt_(dot3(to, to)))) continue;
      *out = {e, face};
      return true;
    }
  }
  return false;
}

DEVICE_CALL void put_contact(const real* point, real dist, const real* normal, real sign, const real* origin,
                             Contact* out) {
  out->dist = dist;
  for (int i = 0; i < 3; ++i) {
    out->pos[i] = origin[i] + point[i];
    out->frame[i] = sign * normal[i];
    out->frame[3 + i] = 0;
  }
  make_frame(out->frame);
}

// (3) contacts of two faces.
DEVICE_CALL int face_contacts(const Solid& a, const Solid& b, const Lying& lying, const real* origin, real margin,
                              real scale, Contact* out) {
  const Plane plane = plane_of(a, lying.first), other = plane_of(b, lying.second);
  const int* adr = a.model->face_adr();
  const int begin = adr[lying.second], sides = adr[lying.second + 1] - begin;
  Spot polygon[FACE_CORNERS];
  Rectangle bounds;
  int number = 0, first = 0;  // corners, and the one that the polygon begins with
  nothing_yet(bounds);
#ifdef FACES_IN_VECTORS
  const bool few = fits_spots(a, lying.first, b, lying.second);
  if (few) number = overlap_in_vectors(a, b, lying, plane, ALONG_SIDE * scale, polygon);
#else
  const bool few = false;
#endif
  ROLLED for (int k = sides - 1; !few && k >= 0; --k) {
    real point[3];
    corner_of(b, b.model->face_vert()[begin + k], point);
    polygon[number] = above(plane, point);
    include(bounds, polygon[number++]);
  }
  Spot here = corner_above(a, lying.first, 0, plane);
  ROLLED for (int k = 0; !few && k < adr[lying.first + 1] - adr[lying.first]; ++k) {
    const Spot from = here;
    here = corner_above(a, lying.first, k + 1, plane);
    const HalfPlane side = side_of(from, here, ALONG_SIDE * scale);
    if (holds(side, bounds)) {  // as clip does, without a look at the corners
      first = wrapped(first + 1, number);
      continue;
    }
    turn(polygon, number, first);
    first = 0;
    number = clip(polygon, number, side, FACE_CORNERS, bounds);
    if (number == 0) return 0;
  }
  turn(polygon, number, first);
  int near = 0;
  ROLLED for (int k = 0; k < number; ++k) {
    if (polygon[k].height <= margin) polygon[near++] = polygon[k];
  }
  near = without_copies(polygon, near, SAME_CORNER * scale);
  int chosen[4] = {0, 1, 2, 3};
  if (near > 4) span(polygon, near, chosen);
  const real cosine = -dot3(plane.normal, other.normal);
  for (int k = 0; k < 4 && k < near; ++k) {
    // midway between the two faces, along the normal of the second
    const Spot& c = polygon[chosen[k]];
    const real dist = c.height * cosine;
    real point[3];
    for (int i = 0; i < 3; ++i) {
      point[i] = plane.origin[i] + fma_(R(-0.5) * dist, other.normal[i], fma_(c.x, plane.x[i], c.y * plane.y[i]));
    }
    put_contact(point, dist, other.normal, R(-1.0), origin, out + k);
  }
  return near < 4 ? near : 4;
}

// (4) contacts of an edge on a face; `sign` is +1 or -1 and turns the face's normal into the contact's.
DEVICE_CALL int edge_contacts(const Solid& edges, const Solid& faces, const Lying& lying, real sign,
                              const real* origin, real margin, real scale, Contact* out) {
  if (edges.astray) return 0;
  const int face = lying.second, *adr = faces.model->face_adr();
  const Plane plane = plane_of(faces, face);
  real end[2][3];
  edge_of(edges, lying.first, end[0], end[1]);
  const Spot from = above(plane, end[0]), to = above(plane, end[1]);
  // the part of the edge over the face, as parameters in [0, 1]: a polygon of two corners
  Spot part[THERE_AND_BACK] = {{R(0.0), R(0.0), from.height}, {R(1.0), R(0.0), to.height}};
  Rectangle bounds;
  int corners = 2, near = 0;
#ifdef FACES_IN_VECTORS
  const bool few = sides_of(faces, face) <= MOST_SPOTS;
  if (few) corners = part_in_vectors(faces, face, plane, from, to, ALONG_SIDE * scale, part);
#else
  const bool few = false;
#endif
  Spot here = corner_above(faces, face, 0, plane);
  ROLLED for (int k = 0; !few && k < adr[face + 1] - adr[face]; ++k) {
    const Spot before = here;
    here = corner_above(faces, face, k + 1, plane);
    const HalfPlane h = side_of(before, here, ALONG_SIDE * scale);
    const real d1 = beyond(h, from), d2 = beyond(h, to);
    if (d1 > h.slack && d2 > h.slack) return 0;
    corners = clip(part, corners, {d2 - d1, R(0.0), -d1, h.slack}, THERE_AND_BACK, bounds);
  }
  ROLLED for (int k = 0; k < corners; ++k) {
    if (part[k].height + edges.thick <= margin) part[near++] = part[k];
  }
  // an end made by clipping occurs twice, so take the first corner and the one farthest from it
  int last = near > 1 ? 1 : 0;
  ROLLED for (int k = 2; k < near; ++k) {
    if (abs_(part[k].x - part[0].x) > abs_(part[last].x - part[0].x)) last = k;
  }
  ROLLED for (int e = 0; e < 2 && e < near; ++e) {
    const Spot& c = part[e ? last : 0];
    const real dist = c.height + edges.thick;
    real point[3];
    for (int i = 0; i < 3; ++i) {
      point[i] = fma_(c.x, end[1][i] - end[0][i], end[0][i]) + (edges.thick - R(0.5) * dist) * plane.normal[i];
    }
    put_contact(point, dist, plane.normal, sign, origin, out + e);
  }
  return near < 2 ? near : 2;
}

// Contacts of two shapes that lie flat on each other; returns their number, at most four, or 0 if the shapes do not.
// `scale` is the size of both shapes [m].
DEVICE_CALL int lying_contacts(const Solid& a, const Solid& b, const real* origin, real margin, real scale,
                               Contact* out) {
  Lying lying;
  if (faces_lying(a, b, &lying)) return face_contacts(a, b, lying, origin, margin, scale, out);
  const bool second_first = !a.line && a.touches > b.touches;
  for (int k = 0; k < 2; ++k) {
    const bool second = second_first == (k == 0);
    const Solid &edges = second ? b : a, &faces = second ? a : b;
    if (!edge_lying(edges, faces, &lying)) continue;
    return edge_contacts(edges, faces, lying, second ? R(1.0) : R(-1.0), origin, margin, scale, out);
  }
  return 0;
}
