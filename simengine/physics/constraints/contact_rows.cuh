// Rows of a contact by a single lane, which visits the dofs that move one of its bodies. Several lanes share columns:
// constraint.cu, contact_columns.cuh.
#pragma once

#if LANES == 1 && !SIMENGINE_GPU
// The rows of contact k from row `first` on: velocity along the axes of the contact frame, then about them. For a
// pyramid: the normal plus and minus each of the other axes times its friction. Dofs beside the branches of the two
// bodies have zeros.
template <class Rows>
DEVICE void contact_rows(const Model& m, const Rows& jacobian, int k, int cand, int first, const real* contact_pos,
                         const real* contact_frame, const real* subtree_com, const real* cdof) {
  const ContactSides sides = contact_sides(m, cand, contact_pos + 3 * k, subtree_com);
  const typename Rows::Dofs dofs = jacobian.dofs(m, sides.body[0], sides.body[1]);
  const int stride = jacobian.stride, dim = m.cand_condim()[cand], rows = rows_of(m, cand);
  const bool pyramid = dim > 1 && m.opt_cone() != CONE_ELLIPTIC, four_edges = pyramid && dim == 3;
  real *J = jacobian.J + size_t(first) * stride, frame[9], friction[5];
  for (int i = 0; i < 9; ++i) frame[i] = contact_frame[9 * k + i];
  for (int i = 0; i < 5; ++i) friction[i] = m.cand_friction()[5 * cand + i];
  for (int e = 0; e < rows * stride; ++e) J[e] = 0;
  for (int side = 0; side < 2; ++side) {
    const int other = sides.body[1 - side];
    for (int v = m.body_lastdof()[sides.body[side]]; v >= 0; v = m.dof_parentid()[v]) {
      const bool both = moves(m, v, other);
      if (both && side) continue;  // it was visited from the first body
      real linear[3] = {0, 0, 0}, angular[3] = {0, 0, 0}, column[3], along[6];
      for (int s = 0; s < 2; ++s) {
        if (s != side && !both) continue;
        const real sign = s ? R(1.0) : R(-1.0);
        side_jacobian(v, sides.arm[s], cdof, column);
        for (int i = 0; i < 3; ++i) {
          linear[i] = fma_(sign, column[i], linear[i]);
          angular[i] = fma_(sign, cdof[6 * v + i], angular[i]);
        }
      }
      real* out = J + jacobian.column(dofs, v);
      for (int i = 0; i < 3; ++i) along[i] = dot3(frame + 3 * i, linear);
      if (four_edges) {  // the most common rows, without a loop over edges
        for (int i = 0; i < 2; ++i) {
          const real leaning = friction[i] * along[i + 1];
          out[2 * i * stride] = along[0] + leaning;
          out[(2 * i + 1) * stride] = along[0] - leaning;
        }
        continue;
      }
      for (int i = 0; i < 3 && dim > 3; ++i) along[3 + i] = dot3(frame + 3 * i, angular);
      if (!pyramid) out[0] = along[0];
      for (int i = 1; i < dim; ++i) {
        const real leaning = friction[i - 1] * along[i];
        if (pyramid) {
          out[(2 * i - 2) * stride] = along[0] + leaning;
          out[(2 * i - 1) * stride] = along[0] - leaning;
        } else {
          out[i * stride] = along[i];
        }
      }
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int column = 0; column < 2; ++column) jacobian.touch(first + i, column, dofs);
  }
}
#endif
