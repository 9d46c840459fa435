// Functions shared by the sensors: their frames, the motion of these, and how a reading becomes sensordata.
#pragma once

struct SensorFrame {
  int body;  // -1 if there is no frame
  real pos[3], quat[4];
};

// Frame of sensor i in the world: the measured one for `side` 0, the reference for `side` 1.
DEVICE SensorFrame sensor_frame(const Model& m, int i, int side, const real* xpos, const real* xquat) {
  const int at = 2 * i + side;
  SensorFrame frame = {m.sensor_bodyid()[at], {0, 0, 0}, {1, 0, 0, 0}};
  if (frame.body >= 0) {
    quat_rotate(frame.pos, xquat + 4 * frame.body, m.sensor_pos() + 3 * at);
    for (int k = 0; k < 3; ++k) frame.pos[k] += xpos[3 * frame.body + k];
    quat_mul(frame.quat, xquat + 4 * frame.body, m.sensor_quat() + 4 * at);
  }
  return frame;
}

// Rotate v from world axes to those of a frame with orientation q.
DEVICE void into_frame(real* out, const real* q, const real* v) {
  const real back[4] = {q[0], -q[1], -q[2], -q[3]};
  quat_rotate(out, back, v);
}

// Rotational, then translational part at a point of a body's com-based motion vector (velocity or acceleration).
DEVICE void motion_at(const Model& m, int body, const real* motion, const real* subtree_com, const real* point,
                      real* out) {
  const real *com = subtree_com + 3 * m.body_rootid()[body], *own = motion + 6 * body;
  real arm[3], lever[3];
  for (int k = 0; k < 3; ++k) arm[k] = point[k] - com[k];
  cross3(lever, own, arm);
  for (int k = 0; k < 3; ++k) {
    out[k] = own[k];
    out[3 + k] = own[3 + k] + lever[k];
  }
}

// Store the reading `value` of sensor i: numbers are clamped to the cutoff, axes and quaternions are not.
DEVICE void put_sensor(const Model& m, int i, const real* value, real* sensordata) {
  const real cutoff = m.sensor_cutoff()[i];
  const int kind = m.sensor_datatype()[i], adr = m.sensor_adr()[i], dim = m.sensor_dim()[i];
  for (int k = 0; k < dim; ++k) {
    real x = k < MAX_SENSOR_DIM ? value[k] : R(0.0);  // contact sensors are longer, and zero until they are read
    if (cutoff > 0 && kind == DATATYPE_REAL) x = clamp_(x, -cutoff, cutoff);
    if (cutoff > 0 && kind == DATATYPE_POSITIVE) x = min_(x, cutoff);
    sensordata[adr + k] = x;
  }
}
