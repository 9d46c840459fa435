// Plane and mesh: the corners of the face that the mesh's lowest vertex shows to the plane, four of them at most.

// Twice the area of a quadrilateral.
DEVICE real quad_area(const real* a, const real* b, const real* c, const real* d) {
  real ac[3], bd[3], normal[3];
  for (int i = 0; i < 3; ++i) {
    ac[i] = c[i] - a[i];
    bd[i] = d[i] - b[i];
  }
  cross3(normal, ac, bd);
  return sqrt_(dot3(normal, normal));
}

// Four corners of a convex polygon that span much of it, the first among them: the others move on as long as the area
// grows. Corner k is vertex around[(start + k) % number].
DEVICE_CALL void span_polygon(const real* vert, const int* around, int start, int number, int* quad) {
  for (int k = 0; k < 4; ++k) quad[k] = k;
  real area = 0;
  ROLLED for (bool grows = true; grows;) {
    grows = false;
    ROLLED for (int k = 4; k >= 1 && !grows; --k) {
      // once with the corners as they are, then each moved on in turn, the last one first
      int next[4] = {quad[0], quad[1], quad[2], quad[3]};
      if (k < 4 && ++next[k] >= (k == 3 ? number : next[k + 1])) continue;
      const real* corner[4];
      for (int i = 0; i < 4; ++i) corner[i] = vert + 3 * around[(start + next[i]) % number];
      const real other = quad_area(corner[0], corner[1], corner[2], corner[3]);
      if (!(other > area)) continue;
      area = other;
      for (int i = 0; i < 4; ++i) quad[i] = next[i];
      grows = true;
    }
  }
}

DEVICE_CALL int collide_plane_mesh(const Pair& p, real margin, Contact* out) {
  const Model& m = *p.model;
  const int g = p.geom2, first_face = m.geom_faceadr()[g];
  const real* vert = m.hull_vert() + 3 * m.geom_hulladr()[g];
  real normal[3], down[3], offset[3];
  mat_col(normal, p.mat1, 2);
  for (int i = 0; i < 3; ++i) {
    offset[i] = p.pos2[i] - p.pos1[i];
    down[i] = -fma_(p.mat2[6 + i], normal[2], fma_(p.mat2[3 + i], normal[1], p.mat2[i] * normal[0]));
  }
  const real height = dot3(offset, normal);
  // (1) the lowest vertex
  int low = 0;
  real most = dot3(vert, down);
  ROLLED for (int v = 1; v < m.geom_hullnum()[g]; ++v) {
    const real along = dot3(vert + 3 * v, down);
    if (along > most) {
      most = along;
      low = v;
    }
  }
  if (height - most > margin) return 0;
  // (2) the face at it that looks down most
  int face = -1, start = 0;
  real best = -REAL_MAX;
  ROLLED for (int f = first_face; f < first_face + m.geom_facenum()[g]; ++f) {
    const real faces = dot3(m.face_normal() + 3 * f, down);
    if (faces <= best) continue;
    ROLLED for (int k = m.face_adr()[f]; k < m.face_adr()[f + 1]; ++k) {
      if (m.face_vert()[k] != low) continue;
      best = faces;
      face = f;
      start = k - m.face_adr()[f];
    }
  }
  // (3) its corners, from the lowest on, or four that span it
  const int* around = face < 0 ? &low : m.face_vert() + m.face_adr()[face];
  const int number = face < 0 ? 1 : m.face_adr()[face + 1] - m.face_adr()[face];
  int chosen[4] = {0, 1, 2, 3};
  if (number > 4) span_polygon(vert, around, start, number, chosen);
  // (4) contacts half-way between them and the plane, of those that lie lower than the geom's centre
  int contacts = 0;
  for (int k = 0; k < 4 && k < number; ++k) {
    const real* local = vert + 3 * around[(start + chosen[k]) % number];
    const real below = dot3(local, down), dist = height - below;
    if (dist > margin || below <= 0) continue;
    Contact& c = out[contacts++];
    c.dist = dist;
    for (int i = 0; i < 3; ++i) {
      c.pos[i] = fma_(R(-0.5) * dist, normal[i], p.pos2[i] + dot3(p.mat2 + 3 * i, local));
      c.frame[i] = normal[i];
      c.frame[3 + i] = 0;
    }
    make_frame(c.frame);
  }
  return contacts;
}

DEVICE void plane_mesh(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* cand_adr,
                       real* contact_dist, real* contact_pos, real* contact_frame, int* contact_cand) {
  fill_contacts<collide_plane_mesh, MAX_PLANE_MESH>(m, TYPE_PLANE_MESH, geom_xpos, geom_xmat, cand_adr, contact_dist,
                                                    contact_pos, contact_frame, contact_cand);
}
