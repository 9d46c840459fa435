// Rows of contacts by several lanes, which share the columns. What the columns of a contact have in common is put in
// memory that the lanes share, for several contacts side by side: one load says where the next one is.
#pragma once

#if LANES > 1 || SIMENGINE_GPU
#define CONTACTS_AT_ONCE 16
#define CONTACT_WORDS 24
#define CONTACT_ARMS 9       // relative to the centres of mass of both trees, behind the frame
#define CONTACT_FRICTION 15
#define CONTACT_NUMBERS 20   // bodies, first row, and 16 times the number of rows plus the dimension, as integers

DEVICE void put_contact(const Model& m, int k, int cand, int first, const real* contact_pos,
                        const real* contact_frame, const real* subtree_com, real* contact) {
  const ContactSides sides = contact_sides(m, cand, contact_pos + 3 * k, subtree_com);
  int* number = reinterpret_cast<int*>(contact + CONTACT_NUMBERS);
  for (int i = 0; i < 9; ++i) contact[i] = contact_frame[9 * k + i];
  for (int i = 0; i < 6; ++i) contact[CONTACT_ARMS + i] = sides.arm[i / 3][i % 3];
  for (int i = 0; i < 5; ++i) contact[CONTACT_FRICTION + i] = m.cand_friction()[5 * cand + i];
  number[0] = sides.body[0];
  number[1] = sides.body[1];
  number[2] = first;
  number[3] = 16 * rows_of(m, cand) + m.cand_condim()[cand];
}

// Jacobian of a contact in column v: velocity along the axes of the contact frame, then about them. For a pyramid:
// the normal plus and minus each of the other axes times its friction.
DEVICE void contact_columns(const Model& m, int v, const real* contact, const real* cdof, int stride, real* out) {
  const int* number = reinterpret_cast<const int*>(contact + CONTACT_NUMBERS);
  const int dim = number[3] & 15, rows = number[3] >> 4;
  if (v >= m.nv()) {  // a column beyond the dofs of the row's blocks
    ROLLED for (int i = 0; i < rows; ++i) out[i * stride] = 0;
    return;
  }
  real linear[3] = {0, 0, 0}, angular[3] = {0, 0, 0}, column[3], along[6];
  for (int side = 0; side < 2; ++side) {
    if (!moves(m, v, number[side])) continue;
    const real sign = side ? R(1.0) : R(-1.0);
    side_jacobian(v, contact + CONTACT_ARMS + 3 * side, cdof, column);
    for (int i = 0; i < 3; ++i) linear[i] = fma_(sign, column[i], linear[i]);
    for (int i = 0; i < 3 && dim > 3; ++i) angular[i] = fma_(sign, cdof[6 * v + i], angular[i]);
  }
  for (int i = 0; i < 3; ++i) along[i] = dot3(contact + 3 * i, linear);
  for (int i = 0; i < 3 && dim > 3; ++i) along[3 + i] = dot3(contact + 3 * i, angular);
  const bool pyramid = dim > 1 && !(HAS_CONES && m.opt_cone() == CONE_ELLIPTIC);
  if (!pyramid) out[0] = along[0];
  for (int i = 1; i < 6; ++i) {
    if (i >= dim) continue;
    const real leaning = contact[CONTACT_FRICTION + i - 1] * along[i];
    if (pyramid) {
      out[(2 * i - 2) * stride] = along[0] + leaning;
      out[(2 * i - 1) * stride] = along[0] - leaning;
    } else {
      out[i * stride] = along[i];
    }
  }
}

template <class Rows>
DEVICE typename Rows::Dofs dofs_of_contact(const Model& m, const Rows& jacobian, const real* contact) {
  const int* number = reinterpret_cast<const int*>(contact + CONTACT_NUMBERS);
  return jacobian.dofs(m, number[0], number[1]);
}
#endif
