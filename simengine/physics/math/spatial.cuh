// Vectors, quaternions and com-based spatial algebra.
//
// Conventions are MuJoCo's: quaternions (w, x, y, z); matrices 3x3 row-major; spatial vectors rotation first, then
// translation; a com-based inertia is (Ixx, Iyy, Izz, Ixy, Ixz, Iyz, m dx, m dy, m dz, m) about the com of the tree.
#pragma once

DEVICE real dot3(const real* a, const real* b) { return fma_(a[2], b[2], fma_(a[1], b[1], a[0] * b[0])); }

DEVICE real dot6(const real* a, const real* b) {
  return fma_(a[5], b[5], fma_(a[4], b[4], fma_(a[3], b[3], fma_(a[2], b[2], fma_(a[1], b[1], a[0] * b[0])))));
}

// Some arguments may be a part of the model table, which has a type of its own in some forms of the dialect.
template <typename Vector>
DEVICE void cross3(real* out, const real* a, const Vector& b) {
  real x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
  out[0] = x;
  out[1] = y;
  out[2] = z;
}

// Normalise in place; returns the length. A vector shorter than MJMINVAL becomes the x axis, as in MuJoCo.
DEVICE real normalize3(real* v) {
  const real length = sqrt_(dot3(v, v)), inverse = reciprocal_(length);
  for (int i = 0; i < 3; ++i) v[i] = select(length < MJMINVAL, R(1.0) * (i == 0), v[i] * inverse);
  return length;
}

DEVICE void normalize4(real* q) {
  const real length = sqrt_(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]), inverse = reciprocal_(length);
  for (int i = 0; i < 4; ++i) q[i] = select(length < MJMINVAL, R(1.0) * (i == 0), q[i] * inverse);
}

template <typename Quat>
DEVICE void quat_mul(real* out, const real* a, const Quat& b) {
  real w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  real x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  real y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  real z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
  out[0] = w;
  out[1] = x;
  out[2] = y;
  out[3] = z;
}

// v rotated by q = (w, u): v + 2 w (u x v) + 2 u x (u x v).
template <typename Vector>
DEVICE void quat_rotate(real* out, const real* q, const Vector& v) {
  real t[3], c[3];
  cross3(t, q + 1, v);
  for (int i = 0; i < 3; ++i) t[i] = fma_(q[0], v[i], t[i]);
  cross3(c, q + 1, t);
  for (int i = 0; i < 3; ++i) out[i] = fma_(R(2.0), c[i], v[i]);
}

template <typename Vector>
DEVICE void quat_axis_angle(real* out, const Vector& axis, real angle) {
  real s, c;
  sincos_(R(0.5) * angle, &s, &c);
  out[0] = c;
  out[1] = axis[0] * s;
  out[2] = axis[1] * s;
  out[3] = axis[2] * s;
}

DEVICE void quat_to_mat(real* m, const real* q) {
  real ww = q[0] * q[0], xx = q[1] * q[1], yy = q[2] * q[2], zz = q[3] * q[3];
  real wx = q[0] * q[1], wy = q[0] * q[2], wz = q[0] * q[3], xy = q[1] * q[2], xz = q[1] * q[3], yz = q[2] * q[3];
  m[0] = ww + xx - yy - zz;
  m[4] = ww - xx + yy - zz;
  m[8] = ww - xx - yy + zz;
  m[1] = R(2.0) * (xy - wz);
  m[2] = R(2.0) * (xz + wy);
  m[3] = R(2.0) * (xy + wz);
  m[5] = R(2.0) * (yz - wx);
  m[6] = R(2.0) * (xz - wy);
  m[7] = R(2.0) * (yz + wx);
}

// Advance q by the angular velocity w [rad/s] in the body frame over a time h [s].
DEVICE void quat_integrate(real* q, const real* w, real h) {
  real axis[3] = {w[0], w[1], w[2]}, turn[4];
  real angle = h * normalize3(axis);
  quat_axis_angle(turn, axis, angle);
  quat_mul(q, q, turn);
  normalize4(q);
}

// Angle, from 0 to pi, of the rotation by the unit quaternion q; `axis` receives its axis, the x axis if the angle is
// 0.
DEVICE real quat_axis(real* axis, const real* q) {
  for (int i = 0; i < 3; ++i) axis[i] = select(q[0] < 0, -q[1 + i], q[1 + i]);
  const real sine = normalize3(axis);
  return R(2.0) * atan2_(sine, abs_(q[0]));
}

// Rotation vector from the orientation `from` to `to`, both unit quaternions; it is the same in either's frame.
template <typename Quat>
DEVICE void quat_difference(real* out, const Quat& from, const real* to) {
  const real back[4] = {from[0], -from[1], -from[2], -from[3]};
  real turn[4];
  quat_mul(turn, back, to);
  const real angle = quat_axis(out, turn);
  for (int i = 0; i < 3; ++i) out[i] *= angle;
}

DEVICE void mat_col(real* out, const real* m, int col) {
  out[0] = m[col];
  out[1] = m[3 + col];
  out[2] = m[6 + col];
}

// Inertia times motion vector, or several motion vectors as vectors of the host.
template <class Entry>
DEVICE void inert_mul(Entry* out, const real* i, const Entry* v) {
  out[0] = i[0] * v[0] + i[3] * v[1] + i[4] * v[2] - i[8] * v[4] + i[7] * v[5];
  out[1] = i[3] * v[0] + i[1] * v[1] + i[5] * v[2] + i[8] * v[3] - i[6] * v[5];
  out[2] = i[4] * v[0] + i[5] * v[1] + i[2] * v[2] - i[7] * v[3] + i[6] * v[4];
  out[3] = i[8] * v[1] - i[7] * v[2] + i[9] * v[3];
  out[4] = i[6] * v[2] - i[8] * v[0] + i[9] * v[4];
  out[5] = i[7] * v[0] - i[6] * v[1] + i[9] * v[5];
}

// Rate of change of the motion vector m fixed in a frame that moves with velocity v.
DEVICE void cross_motion(real* out, const real* v, const real* m) {
  real a[3], b[3];
  cross3(out, v, m);
  cross3(a, v, m + 3);
  cross3(b, v + 3, m);
  for (int i = 0; i < 3; ++i) out[3 + i] = a[i] + b[i];
}

// Rate of change of the force vector f fixed in a frame that moves with velocity v.
DEVICE void cross_force(real* out, const real* v, const real* f) {
  real a[3], b[3];
  cross3(a, v, f);
  cross3(b, v + 3, f + 3);
  for (int i = 0; i < 3; ++i) out[i] = a[i] + b[i];
  cross3(out + 3, v, f + 3);
}

// Force on a body of inertia i with velocity v and acceleration a: I a + v x I v. It is computed from the acceleration
// of the body point at the com, a + w x v. The product of the velocity and its own momentum is zero, and does not
// occur: its rounding would grow with the square of the speed.
DEVICE void inertial_force(real* out, const real* i, const real* v, const real* a) {
  real point[6], spin[3], moved[3], turned[3];
  cross3(point + 3, v, v + 3);
  for (int k = 0; k < 3; ++k) {
    point[k] = a[k];
    point[3 + k] += a[3 + k];
  }
  inert_mul(out, i, point);
  spin[0] = i[0] * v[0] + i[3] * v[1] + i[4] * v[2];
  spin[1] = i[3] * v[0] + i[1] * v[1] + i[5] * v[2];
  spin[2] = i[4] * v[0] + i[5] * v[1] + i[2] * v[2];
  cross3(turned, v, spin);
  cross3(moved, v, i + 6);
  cross3(spin, v, moved);
  for (int k = 0; k < 3; ++k) {
    out[k] += turned[k];
    out[3 + k] += spin[k];
  }
}

// Com-based force vector of a force and a torque at a point: the torque gains (point - com) x force.
DEVICE void force_at(real* out, const real* force, const real* torque, const real* point, const real* com) {
  real arm[3] = {point[0] - com[0], point[1] - com[1], point[2] - com[2]};
  cross3(out, arm, force);
  for (int i = 0; i < 3; ++i) {
    out[i] += torque[i];
    out[3 + i] = force[i];
  }
}
