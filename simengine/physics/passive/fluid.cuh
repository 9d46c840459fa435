// Forces of a fluid on bodies: MuJoCo documentation, "Computation", "Fluid forces".
#pragma once

// No fluid acts on a body of less mass [kg], as in MuJoCo (mjMINVAL).
#define MIN_MASS R(1e-15)

// Velocity of a body's point relative to the fluid, and the body's angular velocity, in the frame with the axes `mat`.
DEVICE void motion_through_fluid(const Model& m, const real* point, const real* mat, const real* com, const real* cvel,
                                 real* w, real* v) {
  real arm[3], lever[3], relative[3], axis[3];
  for (int i = 0; i < 3; ++i) arm[i] = point[i] - com[i];
  cross3(lever, cvel, arm);
  for (int i = 0; i < 3; ++i) relative[i] = cvel[3 + i] + lever[i] - m.opt_wind()[i];
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, mat, i);
    w[i] = dot3(axis, cvel);
    v[i] = dot3(axis, relative);
  }
}

// Coefficients of the resistance (linear + quadratic |v|) v to the velocity along and about each axis: Stokes drag on a
// sphere whose diameter is the mean side of the body's box, and drag on the faces of the box.
struct BoxDrag {
  real move, spin, face[3], stir[3];
};

DEVICE BoxDrag box_drag(const Model& m, int b) {
  const real pi = R(3.14159265358979323846), density = m.opt_density()[0], viscosity = m.opt_viscosity()[0];
  const auto box = m.body_box() + 3 * b;
  const real diameter = (box[0] + box[1] + box[2]) / R(3.0);
  BoxDrag drag = {R(3.0) * pi * diameter * viscosity, pi * diameter * diameter * diameter * viscosity, {}, {}};
  for (int i = 0; i < 3; ++i) {
    const real a = box[(i + 1) % 3], c = box[(i + 2) % 3], a2 = a * a, c2 = c * c;
    drag.face[i] = R(0.5) * density * a * c;
    drag.stir[i] = density * box[i] * (a2 * a2 + c2 * c2) / R(64.0);
  }
  return drag;
}

// Force and torque of the fluid on the box of body b at its centre of mass, in the world frame.
DEVICE void body_drag(const Model& m, int b, const real* xipos, const real* ximat, const real* com, const real* cvel,
                      real* force, real* torque) {
  real w[3], v[3], f[3], t[3];
  motion_through_fluid(m, xipos, ximat, com, cvel, w, v);
  const BoxDrag drag = box_drag(m, b);
  for (int i = 0; i < 3; ++i) {
    f[i] = -(drag.move + drag.face[i] * abs_(v[i])) * v[i];
    t[i] = -(drag.spin + drag.stir[i] * abs_(w[i])) * w[i];
  }
  for (int i = 0; i < 3; ++i) {
    force[i] = dot3(ximat + 3 * i, f);
    torque[i] = dot3(ximat + 3 * i, t);
  }
}

// Add to `out` the change of the com-based fluid force on the box of body b under a change x of its com-based motion.
DEVICE void box_change(const Model& m, int b, const real* xipos, const real* ximat, const real* com,
                         const real* cvel, const real* x, real* out) {
  const BoxDrag drag = box_drag(m, b);
  real w[3], v[3], f[3], t[3], force[3], torque[3], wrench[6], arm[3], moved[3], axis[3];
  motion_through_fluid(m, xipos, ximat, com, cvel, w, v);
  for (int i = 0; i < 3; ++i) arm[i] = xipos[i] - com[i];
  cross3(moved, x, arm);
  for (int i = 0; i < 3; ++i) moved[i] += x[3 + i];
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, ximat, i);
    f[i] = -(drag.move + R(2.0) * drag.face[i] * abs_(v[i])) * dot3(axis, moved);
    t[i] = -(drag.spin + R(2.0) * drag.stir[i] * abs_(w[i])) * dot3(axis, x);
  }
  for (int i = 0; i < 3; ++i) {
    force[i] = dot3(ximat + 3 * i, f);
    torque[i] = dot3(ximat + 3 * i, t);
  }
  force_at(wrench, force, torque, xipos, com);
  for (int i = 0; i < 6; ++i) out[i] += wrench[i];
}

// ------------------------------------------------------------------------------------------------- ellipsoid model

// Force and torque of the fluid on geom g, taken as an ellipsoid, from its angular velocity w and its velocity v
// relative to the fluid, all in the geom's frame: added mass, Magnus and Kutta lift, viscous drag and Stokes drag.
//
// Let u be the direction of v, a the squared areas of the ellipsoid's sections, and n = a u. The area projected along
// the flow is pi sqrt(n n / n u), and n lies along the normal at the stagnation point. The formulas are scaled so that
// neither small bodies nor small velocities underflow.
template <typename T>
DEVICE void ellipsoid_force(const Model& m, int g, const T* w, const T* v, T* force, T* torque) {
  const real pi = R(3.14159265358979323846), density = m.opt_density()[0], viscosity = m.opt_viscosity()[0];
  const real *axes = m.geom_semiaxes() + 3 * g, *coef = m.geom_fluid() + 12 * g;
  const real blunt = coef[1], slender = coef[2], angular = coef[3], kutta = coef[4], magnus = coef[5];
  const real longest = max_(axes[0], max_(axes[1], axes[2]));
  const real middle = max_(min_(axes[0], axes[1]), min_(max_(axes[0], axes[1]), axes[2])), widest = longest * middle;
  T momentum[3], spin[3], turned[3], lift[3], u[3], n[3], stirred[3];
  // added mass, and the Magnus lift of a spinning body
  for (int i = 0; i < 3; ++i) {
    momentum[i] = (density * coef[6 + i]) * v[i];
    spin[i] = (density * coef[9 + i]) * w[i];
  }
  cross_of(force, momentum, w);
  cross_of(torque, momentum, v);
  cross_of(turned, spin, w);
  cross_of(lift, w, v);
  const real displaced = magnus * density * (R(4.0) / R(3.0)) * pi * axes[0] * axes[1] * axes[2];
  for (int i = 0; i < 3; ++i) {
    force[i] = force[i] + displaced * lift[i];
    torque[i] = torque[i] + turned[i];
  }
  // Stokes drag, and drag that grows with the angular velocity
  const real radius = (axes[0] + axes[1] + axes[2]) / R(3.0), eighth = R(8.0) * pi / R(15.0);
  const real long4 = longest * longest * longest * longest;
  for (int i = 0; i < 3; ++i) {
    const real side = max_(axes[(i + 1) % 3], axes[(i + 2) % 3]), own = eighth * axes[i] * side * side * side * side;
    stirred[i] = (angular * own + slender * (eighth * middle * long4 - own)) * w[i];
  }
  const T brake = R(8.0) * pi * radius * radius * radius * viscosity + density * sqrt_(dot_of(stirred, stirred));
  for (int i = 0; i < 3; ++i) {
    force[i] = force[i] - (R(6.0) * pi * radius * viscosity) * v[i];
    torque[i] = torque[i] - brake * w[i];
  }
  // drag by the area projected along the flow, and the Kutta lift of a body oblique to it
  const T speed = sqrt_(dot_of(v, v));
  if (value_of(speed) == 0) return;
  for (int i = 0; i < 3; ++i) {
    const real section = divide_(axes[(i + 1) % 3] * axes[(i + 2) % 3], widest);
    u[i] = divide_(v[i], speed);
    n[i] = (section * section) * u[i];
  }
  const T along = dot_of(n, u), square = dot_of(n, n), area = (pi * widest) * sqrt_(divide_(square, along));
  cross_of(turned, n, u);
  cross_of(lift, turned, u);
  const T raised = (kutta * density) * (speed * speed * (divide_(along, square) * area));
  const T drag = density * (speed * ((slender * pi * widest) + (blunt - slender) * area));
  for (int i = 0; i < 3; ++i) force[i] = force[i] + raised * lift[i] - drag * v[i];
}

// Add to `out` the com-based force of the fluid on the ellipsoids of body b.
DEVICE void ellipsoid_wrench(const Model& m, int b, const real* geom_xpos, const real* geom_xmat, const real* com,
                             const real* cvel, real* out) {
  const auto heavy = m.body_mass()[b] >= MIN_MASS;
  ROLLED for (int g = m.body_geomadr()[b]; g < m.body_geomadr()[b] + m.body_geomnum()[b]; ++g) {
    if (m.geom_fluid()[12 * g] == 0) continue;
    const real *pos = geom_xpos + 3 * g, *mat = geom_xmat + 9 * g;
    real w[3], v[3], f[3], t[3], force[3], torque[3], wrench[6];
    motion_through_fluid(m, pos, mat, com, cvel, w, v);
    ellipsoid_force<real>(m, g, w, v, f, t);
    for (int i = 0; i < 3; ++i) {
      force[i] = m.geom_fluid()[12 * g] * dot3(mat + 3 * i, f);
      torque[i] = m.geom_fluid()[12 * g] * dot3(mat + 3 * i, t);
    }
    force_at(wrench, force, torque, pos, com);
    for (int i = 0; i < 6; ++i) out[i] += select(heavy, wrench[i], R(0.0));
  }
}

// Add to `out` the change of that force under a change x of the body's com-based motion.
DEVICE void ellipsoid_change(const Model& m, int b, const real* geom_xpos, const real* geom_xmat, const real* com,
                             const real* cvel, const real* x, real* out) {
  const auto heavy = m.body_mass()[b] >= MIN_MASS;
  ROLLED for (int g = m.body_geomadr()[b]; g < m.body_geomadr()[b] + m.body_geomnum()[b]; ++g) {
    if (m.geom_fluid()[12 * g] == 0) continue;
    const real *pos = geom_xpos + 3 * g, *mat = geom_xmat + 9 * g;
    real w[3], v[3], arm[3], moved[3], axis[3], force[3], torque[3], wrench[6];
    Dual dual_w[3], dual_v[3], f[3], t[3];
    motion_through_fluid(m, pos, mat, com, cvel, w, v);
    for (int i = 0; i < 3; ++i) arm[i] = pos[i] - com[i];
    cross3(moved, x, arm);
    for (int i = 0; i < 3; ++i) moved[i] += x[3 + i];
    for (int i = 0; i < 3; ++i) {
      mat_col(axis, mat, i);
      dual_w[i] = {w[i], dot3(axis, x)};
      dual_v[i] = {v[i], dot3(axis, moved)};
    }
    ellipsoid_force<Dual>(m, g, dual_w, dual_v, f, t);
    for (int i = 0; i < 3; ++i) {
      const real *row = mat + 3 * i, interaction = m.geom_fluid()[12 * g];
      force[i] = interaction * (row[0] * f[0].d + row[1] * f[1].d + row[2] * f[2].d);
      torque[i] = interaction * (row[0] * t[0].d + row[1] * t[1].d + row[2] * t[2].d);
    }
    force_at(wrench, force, torque, pos, com);
    for (int i = 0; i < 6; ++i) out[i] += select(heavy, wrench[i], R(0.0));
  }
}
