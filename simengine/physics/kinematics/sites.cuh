// Where a site is, which is fixed in its body.
#pragma once

DEVICE void site_position(const Model& m, int s, const real* xpos, const real* xquat, real* out) {
  const int b = m.site_bodyid()[s];
  quat_rotate(out, xquat + 4 * b, m.site_pos() + 3 * s);
  for (int i = 0; i < 3; ++i) out[i] = xpos[3 * b + i] + out[i];
}
