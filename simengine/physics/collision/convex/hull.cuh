// The vertex of a mesh's hull that is farthest along a direction. Hulls with many vertices have a cube map: the
// direction meets a cell of a cube, which lists the few vertices that may be farthest; see simengine/model/cubemaps.py.
// That finds the same vertex as a look at all, which the JAX form takes.
#pragma once

#define IS_PRISM (-SIMENGINE_GPU)  // on a GPU, in place of a side: six vertices, the upper ones last
#define PACK_WORDS 16  // of four vertices and their places

// Whether a look at a cell reads packs, and how many a model may have: more do not stay in the caches, and cost time.
#ifdef MATRIX_VECTORS
#define HAS_PACKS 1
#define MOST_PACKS (1 << 16)
#else
#define MOST_PACKS (1 << 18)
#define HAS_PACKS SIMENGINE_GPU
#endif

struct Hull {
  const real* vert;                  // vertices in the geom's frame [m]
  int nvert;                         // 0 for geoms that are no meshes
  real extent;                       // distance of the farthest vertex [m]
  const int *cube_adr, *cube_vert;   // the cube map
  int cube_side;                     // its cells along an edge of the cube, 0 if there is no map; IS_PRISM
#if HAS_PACKS
  const int* pack;                   // the first pack of its first cell, or null
#endif
#if !SIMENGINE_GPU
  mutable real last_dir[3];          // the direction that was asked for last, and its vertex; -1 if there is none
  mutable int last;
  const real* top;                   // of a prism, the unit normal of its upper face, which has its last three vertices
#endif
};

DEVICE Hull hull_of(const Model& m, int geom) {
  return {m.hull_vert() + 3 * m.geom_hulladr()[geom], m.geom_hullnum()[geom], m.geom_extent()[geom],
          m.cube_adr() + m.geom_cubeadr()[geom],      m.cube_vert() + 0,      m.geom_cubeside()[geom],
#if HAS_PACKS
          m.ncubepack() && m.ncubepack() <= MOST_PACKS ? m.cube_pack() + PACK_WORDS * m.geom_cubeadr()[geom] : 0,
#endif
  };
}

// The axis along which a direction is longest: the first of several.
DEVICE int longest_axis(const real* dir) {
  const real x = abs_(dir[0]), y = abs_(dir[1]), z = abs_(dir[2]);
#if SIMENGINE_GPU
  return x >= y && x >= z ? 0 : y >= z ? 1 : 2;
#else  // branches would often be predicted wrongly
  const int last = z > max_(x, y);
  return 2 * last + ((y > x) & !last);
#endif
}

// Entry `axis` of a direction, and the entries that follow it in cyclic order.
DEVICE void turned_to(const real* dir, int axis, real* up, real* along, real* other) {
#if SIMENGINE_GPU
  *up = axis == 0 ? dir[0] : axis == 1 ? dir[1] : dir[2];
  *along = axis == 0 ? dir[1] : axis == 1 ? dir[2] : dir[0];
  *other = axis == 0 ? dir[2] : axis == 1 ? dir[0] : dir[1];
#else
  const real cyclic[5] = {dir[0], dir[1], dir[2], dir[0], dir[1]};
  *up = cyclic[axis];
  *along = cyclic[axis + 1];
  *other = cyclic[axis + 2];
#endif
}

// The cell that a direction meets. Where rounding decides between two cells, both list the farthest vertex.
DEVICE int cube_cell(const real* dir, int side) {
  const int axis = longest_axis(dir);
  real up, along, other;
  turned_to(dir, axis, &up, &along, &other);
  const real half = R(0.5) * side, scale = divide_(half, abs_(up)), last = real(side - 1);
  const int column = int(clamp_(fma_(along, scale, half), R(0.0), last));
  const int row = int(clamp_(fma_(other, scale, half), R(0.0), last));
  return ((2 * axis + (up < 0)) * side + row) * side + column;
}

// Let vertex v be the best if it is farther along `dir` than the best so far.
DEVICE void take_farther(const Hull& h, const real* dir, int v, int* best, real* most) {
  const real along = dot3(h.vert + 3 * v, dir);
  *best = along > *most ? v : *best;
  *most = along > *most ? along : *most;
}

#ifdef MATRIX_VECTORS
// Four numbers that are stored as floats.
DEVICE Four floats_at(const int* from) {
  typedef float Floats __attribute__((vector_size(4 * sizeof(float))));
  Floats x;
  __builtin_memcpy(&x, from, sizeof(x));
#if REAL_IS_FLOAT
  return x;
#else
  return __builtin_convertvector(x, Four);
#endif
}

// How far the four vertices of a pack are along a direction.
DEVICE Four heights_of(const int* pack, Four x, Four y, Four z) {
  return four_fma(floats_at(pack + 8), z, four_fma(floats_at(pack + 4), y, floats_at(pack) * x));
}

// The first of the largest entries; the last if there is none, because some are no numbers.
DEVICE int first_largest(Four x) { return __builtin_ctz(four_bits(x == largest(x)) | 8); }

// The entry of a cell that is farthest along `dir`, of one with several packs. `most` has the heights of the first.
// Inlined, it would take registers where a cell has one.
__attribute__((noinline)) DEVICE_CALL int farthest_of_packs(const int* pack, Four most, Four x, Four y, Four z) {
  const int *next = pack - PACK_WORDS * ptrdiff_t(pack[12]), packs = pack[13];
  FourTruths turn = FourTruths{};
  for (int k = 0; k < packs; ++k) {
    const Four along = heights_of(next + PACK_WORDS * k, x, y, z);
    const FourTruths farther = along > most;
    most = chosen(farther, along, most);
    turn = farther ? FourTruths{} + (k + 1) : turn;
  }
  const unsigned highest = four_bits(most == largest(most));
  int best = -1;
  for (int k = 0; k < 4; ++k) {
    const int entry = 4 * int(turn[k]) + k;
    if (highest >> k & 1 && (best < 0 || entry < best)) best = entry;
  }
  return best < 0 ? 0 : best;
}

// The vertex of a cell that is farthest along `dir`, and its place. Four are looked at together, each by the operations
// of search_farthest.
DEVICE int farthest_of_cell(const Hull& h, int cell, const real* dir, real* point) {
  const int* pack = h.pack + PACK_WORDS * size_t(cell);
  const Four x = four(dir[0]), y = four(dir[1]), z = four(dir[2]), along = heights_of(pack, x, y, z);
  if (pack[12] < 0) {
    const int v = h.cube_vert[h.cube_adr[cell] + farthest_of_packs(pack, along, x, y, z)];
    for (int i = 0; i < 3; ++i) point[i] = h.vert[3 * v + i];
    return v;
  }
  const int k = first_largest(along);
  for (int i = 0; i < 3; ++i) {
    float place;
    __builtin_memcpy(&place, pack + 4 * i + k, sizeof(place));
    point[i] = place;
  }
  return pack[12 + k];
}
#endif

DEVICE_CALL int search_farthest(const Hull& h, const real* dir) {
  int best = 0;
  if (h.cube_side) {
    const int cell = cube_cell(dir, h.cube_side), begin = h.cube_adr[cell], end = h.cube_adr[cell + 1];
    best = h.cube_vert[begin];
    real most = dot3(h.vert + 3 * best, dir);
    int k = begin + 1;
#if !SIMENGINE_GPU
    // most cells have at most four vertices, and a loop over one to four would often be predicted wrongly
    const int last = end - 1;
    for (; k < begin + 4; ++k) take_farther(h, dir, h.cube_vert[k < last ? k : last], &best, &most);
#endif
    OVERLAPPED for (; k < end; ++k) take_farther(h, dir, h.cube_vert[k], &best, &most);
    return best;
  }
  real most = dot3(h.vert, dir);
  ROLLED for (int v = 1; v < h.nvert; ++v) {
    const real along = dot3(h.vert + 3 * v, dir);
    if (along > most) {
      most = along;
      best = v;
    }
  }
  return best;
}

#if !SIMENGINE_GPU
// The vertex of a prism that is farthest along `dir`, and its place. The upper corners stand on the lower ones.
DEVICE int farthest_of_prism(const Hull& h, const real* dir, real* point) {
  const int first = dir[2] > 0 ? 3 : 0;
  const real* corner = h.vert + 3 * first;
  const real one = dot3(corner, dir), two = dot3(corner + 3, dir), three = dot3(corner + 6, dir);
  int best = two > one;
  best = three > (best ? two : one) ? 2 : best;
  for (int i = 0; i < 3; ++i) point[i] = corner[3 * best + i];
  return h.last = first + best;
}

// The same of a mesh. A direction is often asked for twice: at the end of a search, to improve a normal, and to find
// what touches there.
DEVICE_CALL int farthest_of_mesh(const Hull& h, const real* dir, real* point) {
  const bool again = h.last >= 0 && h.last_dir[0] == dir[0] && h.last_dir[1] == dir[1] && h.last_dir[2] == dir[2];
  for (int i = 0; i < 3; ++i) h.last_dir[i] = dir[i];
#ifdef MATRIX_VECTORS
  if (!again && h.cube_side && h.pack) {
    return h.last = farthest_of_cell(h, cube_cell(dir, h.cube_side), dir, point);
  }
#endif
  if (!again) h.last = search_farthest(h, dir);
  for (int i = 0; i < 3; ++i) point[i] = h.vert[3 * h.last + i];
  return h.last;
}

// The vertex farthest along `dir`, and its place.
DEVICE int farthest_point(const Hull& h, const real* dir, real* point) {
  return h.top ? farthest_of_prism(h, dir, point) : farthest_of_mesh(h, dir, point);
}
#endif

#if SIMENGINE_GPU
// A vertex, or its place in a list, and where it is; by value, so that it stays in registers.
struct HullPoint {
  int number;
  real at[3];
};

// Let the vertices of a pack, which are in the list from place `first` on, be the best if one is farther along `dir`.
DEVICE void take_pack(const int* pack, const real* dir, int first, HullPoint* best, real* most) {
  const float4* places = reinterpret_cast<const float4*>(pack);
  const float4 x = places[0], y = places[1], z = places[2];
  const real point[4][3] = {{x.x, y.x, z.x}, {x.y, y.y, z.y}, {x.z, y.z, z.z}, {x.w, y.w, z.w}};
  UNROLLED for (int k = 0; k < 4; ++k) {
    const real along = dot3(point[k], dir);
    const bool farther = along > *most;
    best->number = farther ? first + k : best->number;
    for (int i = 0; i < 3; ++i) best->at[i] = farther ? point[k][i] : best->at[i];
    *most = farther ? along : *most;
  }
}

// The vertex farthest along (x, y, z), of a hull with packs. A look reads one line of memory where the cell has one.
DEVICE_CALL HullPoint farthest_in_packs(const int* packs, const int* cube_adr, const int* cube_vert, int side, real x,
                                        real y, real z) {
  const real dir[3] = {x, y, z};
  const int cell = side ? cube_cell(dir, side) : 0, *pack = packs + PACK_WORDS * cell;
  const int4 vertex = *reinterpret_cast<const int4*>(pack + 12);
  const float* first = reinterpret_cast<const float*>(pack);
  HullPoint best = {0, {first[0], first[4], first[8]}};
  real most = dot3(best.at, dir);
  take_pack(pack, dir, 0, &best, &most);
  if (vertex.x < 0) {
    const int* next = pack - PACK_WORDS * vertex.x;
    ROLLED for (int k = 0; k < vertex.y; ++k) take_pack(next + PACK_WORDS * k, dir, 4 * (k + 1), &best, &most);
    best.number = cube_vert[cube_adr[cell] + best.number];
    return best;
  }
  const int k = best.number;
  best.number = k == 0 ? vertex.x : k == 1 ? vertex.y : k == 2 ? vertex.z : vertex.w;
  return best;
}

// The same of a prism, whose upper corners stand on the lower ones.
DEVICE HullPoint farthest_of_prism(const real* vert, const real* dir) {
  const bool upper = dir[2] > 0;
  HullPoint best = {0, {vert[0], vert[1], upper ? vert[11] : vert[2]}};
  real most = dot3(best.at, dir);
  UNROLLED for (int k = 1; k < 3; ++k) {
    const real at[3] = {vert[3 * k], vert[3 * k + 1], upper ? vert[3 * k + 11] : vert[3 * k + 2]};
    const real along = dot3(at, dir);
    const bool farther = along > most;
    best.number = farther ? k : best.number;
    for (int i = 0; i < 3; ++i) best.at[i] = farther ? at[i] : best.at[i];
    most = farther ? along : most;
  }
  best.number += upper ? 3 : 0;
  return best;
}

// The same of a hull without packs.
DEVICE_APART HullPoint farthest_without_packs(const Hull h, real x, real y, real z) {
  const real dir[3] = {x, y, z};
  if (h.cube_side == IS_PRISM) return farthest_of_prism(h.vert, dir);
  const int v = search_farthest(h, dir);
  return {v, {h.vert[3 * v], h.vert[3 * v + 1], h.vert[3 * v + 2]}};
}

// The vertex farthest along `dir`, and its place.
DEVICE int farthest_point(const Hull& h, const real* dir, real* point) {
#ifdef SEARCHES_PRISMS
  if (h.cube_side == IS_PRISM) {
    const HullPoint corner = farthest_of_prism(h.vert, dir);
    for (int i = 0; i < 3; ++i) point[i] = corner.at[i];
    return corner.number;
  }
#endif
  const HullPoint found =
      h.pack ? farthest_in_packs(h.pack, h.cube_adr, h.cube_vert, h.cube_side, dir[0], dir[1], dir[2])
             : farthest_without_packs(h, dir[0], dir[1], dir[2]);
  for (int i = 0; i < 3; ++i) point[i] = found.at[i];
  return found.number;
}
#endif

// Number of the vertex farthest along `dir`, which is not zero: the lowest of those that are equally far.
DEVICE int farthest_vertex(const Hull& h, const real* dir) {
  real point[3];
  return farthest_point(h, dir, point);
}
