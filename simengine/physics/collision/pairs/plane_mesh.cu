// Plane and mesh: contacts at up to four corners of the face at the mesh's lowest vertex that looks down most.

struct PlaneMesh {
  // Call put(k, contact) for each contact; returns their number.
  template <class Put>
  static DEVICE_METHOD int each(const Pair& p, real margin, Put put) {
    const Model& m = *p.model;
    const int g = p.geom2;
    const Hull hull = hull_of(m, g);
    real normal[3], down[3], offset[3];
    mat_col(normal, p.mat1, 2);
    for (int i = 0; i < 3; ++i) {
      offset[i] = p.pos2[i] - p.pos1[i];
      down[i] = -fma_(p.mat2[6 + i], normal[2], fma_(p.mat2[3 + i], normal[1], p.mat2[i] * normal[0]));
    }
    const real height = dot3(offset, normal);
    // (1) the lowest vertex
    const int low = farthest_vertex(hull, down), corner = m.geom_solidadr()[g] + low;
    if (height - dot3(hull.vert + 3 * low, down) > margin) return 0;
    // (2) the face at this vertex whose normal points down most
    int face = -1;
    real best = -REAL_MAX;
    ROLLED for (int k = m.vert_adr()[corner]; k < m.vert_adr()[corner + 1]; ++k) {
      const int f = m.vert_face()[k];
      const real faces = dot3(m.face_normal() + 3 * f, down);
      if (faces <= best) continue;
      best = faces;
      face = f;
    }
    int entry = face < 0 ? 0 : m.face_adr()[face];
    ROLLED while (face >= 0 && m.face_vert()[entry] != low) ++entry;
    // (3) its corners, starting with the lowest, or four that span it
    const int* corners = face < 0 ? &low : m.face_span() + 4 * entry;
    const int number = face < 0 ? 1 : m.face_adr()[face + 1] - m.face_adr()[face];
    // (4) contacts midway between the plane and those corners that are lower than the geom's centre
    int contacts = 0;
    for (int k = 0; k < 4 && k < number; ++k) {
      const real* local = hull.vert + 3 * corners[k];
      const real below = dot3(local, down), dist = height - below;
      if (dist > margin || below <= 0) continue;
      Contact c;
      c.dist = dist;
      for (int i = 0; i < 3; ++i) {
        c.pos[i] = fma_(R(-0.5) * dist, normal[i], p.pos2[i] + dot3(p.mat2 + 3 * i, local));
        c.frame[i] = normal[i];
        c.frame[3 + i] = 0;
      }
      make_frame(c.frame);
      put(contacts++, c);
    }
    return contacts;
  }
};

DEVICE_CALL int collide_plane_mesh(const Pair& p, real margin, Contact* out) {
  return PlaneMesh::each(p, margin, [&](int k, const Contact& found) { out[k] = found; });
}

DEVICE void plane_mesh(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                       const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                       real* contact_frame, int* contact_cand) {
  fill_one_by_one<PlaneMesh>(m, TYPE_PLANE_MESH, geom_xpos, geom_xmat, near_cand, near_adr, pair_tally,
                             {contact_dist, contact_pos, contact_frame, contact_cand});
}
