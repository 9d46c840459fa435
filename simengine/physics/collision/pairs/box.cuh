// Boxes: functions that several pair types share.
#pragma once

// Contact of a sphere and a box. The normal points from the sphere's centre to the nearest point of the box or, if the
// box contains the centre, out of the nearest face.
DEVICE int sphere_against_box(const real* centre, real radius, const Pair& p, real margin, Contact* out) {
  real offset[3], local[3], nearest[3], normal[3];
  for (int i = 0; i < 3; ++i) offset[i] = centre[i] - p.pos2[i];
  for (int i = 0; i < 3; ++i) {
    local[i] = p.mat2[i] * offset[0] + p.mat2[3 + i] * offset[1] + p.mat2[6 + i] * offset[2];
    nearest[i] = clamp_(local[i], -p.size2[i], p.size2[i]);
    normal[i] = nearest[i] - local[i];
  }
  real dist = normalize3(normal);
  if (dist - radius > margin) return 0;
  if (dist < MJMINVAL) {
    // the nearest face; among equals x before y before z, and the lower of two
    int face = 0;
    real depth = R(2.0) * (p.size2[0] + p.size2[1] + p.size2[2]);
    for (int i = 0; i < 6; ++i) {
      const real way = abs_((i & 1 ? p.size2[i / 2] : -p.size2[i / 2]) - local[i / 2]);
      if (way < depth) {
        depth = way;
        face = i;
      }
    }
    for (int i = 0; i < 3; ++i) normal[i] = i == face / 2 ? (face & 1 ? R(-1.0) : R(1.0)) : R(0.0);
    for (int i = 0; i < 3; ++i) nearest[i] = fma_(-depth, normal[i], local[i]);
    dist = -depth;
  }
  // midway between the surfaces
  for (int i = 0; i < 3; ++i) offset[i] = R(0.5) * (nearest[i] + fma_(radius, normal[i], local[i]));
  out->dist = dist - radius;
  for (int i = 0; i < 3; ++i) {
    out->pos[i] = p.pos2[i] + dot3(p.mat2 + 3 * i, offset);
    out->frame[i] = dot3(p.mat2 + 3 * i, normal);
    out->frame[3 + i] = 0;
  }
  make_frame(out->frame);
  return 1;
}
