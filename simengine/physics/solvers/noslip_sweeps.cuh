// One sweep of noslip.cu over the rows of an island: over memory, or by a warp, whose lanes load ahead of the updates.
#pragma once

// What a sweep leaves to the next one. On the GPU, a lane has its first column of z, and has looked up an entry of the
// list ahead: the first row that is updated, and how many are.
struct SweepState {
  real improvement;
#if SIMENGINE_GPU && LANES <= 32
  real z;
  int first, together;
#endif
};

#if SIMENGINE_GPU && LANES <= 32
DEVICE void look_up(const Model& m, const Rows& rows, int n, const int* list, int k, SweepState* state) {
  state->first = k < n ? list[k] : 0;
  state->together = k < n ? rows_improved(m, rows, state->first) : 0;
}

DEVICE void begin_sweeps(const Model& m, const DenseDual& d, int n, const int* list, SweepState* state) {
  state->z = lane() < m.nv() ? d.z[lane()] : R(0.0);
  look_up(m, d.rows, n, list, lane(), state);
}
DEVICE void end_sweeps(const Model& m, const DenseDual& d, const SweepState& state) {
  if (lane() < m.nv()) d.z[lane()] = state.z;
  lane_sync();
}

// The first rows of friction losses and edges among the entries of the lanes, one for each of the first lanes, with a
// bit for edges: 2 r + 1. Returns their number.
DEVICE int line_up(const Model& m, int first, int together, int* line) {
  const bool scalar = together == 1 || together == 2;
  const unsigned found = lane_ballot(scalar);
  int* place = reinterpret_cast<int*>(m.column);
  lane_sync();
  if (scalar) place[__popc(found & ((1u << lane()) - 1u))] = 2 * first + (together == 2);
  lane_sync();
  *line = lane() < __popc(found) ? place[lane()] : 0;
  return __popc(found);
}

// What a turn needs of Y: the lane's column of the row, and of the opposite edge.
struct Turn {
  int line;
  real row, opposite;

  DEVICE_METHOD void load(const real* column, int stride) {
    const real* own = column + (line >> 1) * stride;
    row = own[0], opposite = own[(line & 1) * stride];
  }
};

// The updates of friction losses and edges in `count` lanes, in turn. Each lane loads what the update of its rows needs
// beside Y, and passes it on in their turn. Y is loaded one turn ahead, and the row is known two turns ahead, so that
// the updates wait for each other only. Two sets of registers alternate, so that none is copied while it is loaded.
DEVICE void take_turns(const Model& m, const DenseDual& d, int count, int line, SweepState* state) {
  const int nv = m.nv(), stride = m.nvp(), own = lane();
  const real* column = d.Y + (own < nv ? own : 0);
  const ScalarForce mine = own < count ? scalar_force(d, line >> 1, line & 1) : ScalarForce{0, 0, 0, 0};
  real force = mine.force;
  unsigned moved = 0;
  const auto update = [&](int k, Turn* now, Turn* next) {
    const real *Y = d.Y + (now->line >> 1) * stride, *opposite = Y + stride;
    const bool edges = now->line & 1;
    next->load(column, stride);
    now->line = lane_get_int(line, (k + 2) & (LANES - 1));
    const ScalarForce before = {lane_get(mine.residual, k), lane_get(mine.force, k), lane_get(mine.bound, k),
                                lane_get(mine.curve, k)};
    const real across = own >= nv ? R(0.0) : edges ? now->row - now->opposite : now->row;
    real coupled = fma_(across, state->z, R(0.0)), best;
    ROLLED for (int v = own + LANES; v < nv; v += LANES) {
      coupled = fma_(edges ? Y[v] - opposite[v] : Y[v], d.z[v], coupled);
    }
    if (!improve_scalar(before, edges, lane_sum(coupled), &best, &state->improvement)) return;
    const real change = best - before.force;
    state->z = fma_(change, across, state->z);
    ROLLED for (int v = own + LANES; v < nv; v += LANES) {
      d.z[v] = fma_(change, edges ? Y[v] - opposite[v] : Y[v], d.z[v]);
    }
    moved |= 1u << k;
    force = own == k ? best : force;
  };
  Turn one = {lane_get_int(line, 0), 0, 0}, other = {lane_get_int(line, 1), 0, 0};
  one.load(column, stride);
  ROLLED for (int k = 0; k < count; k += 2) {
    update(k, &one, &other);
    if (k + 1 < count) update(k + 1, &other, &one);
  }
  if (moved >> own & 1) put_scalar(d, line >> 1, line & 1, force);
}

// One sweep over the rows in a list, whose friction losses come before all cones.
DEVICE void sweep(const Model& m, const DenseDual& d, int n, const int* list, SweepState* state) {
  const int own = lane();
  ROLLED for (int base = 0; base < n; base += LANES) {
    const int first = state->first, together = state->together;
    int line;
    const int count = line_up(m, first, together, &line);
    look_up(m, d.rows, n, list, base + LANES < n ? base + LANES + own : own, state);
    if (count) take_turns(m, d, count, line, state);
    unsigned cones = NOSLIP_CONES ? lane_ballot(together > 2) : 0;
    if (!cones) continue;
    if (own < m.nv()) d.z[own] = state->z;
    ROLLED for (; cones; cones &= cones - 1) {
      const int k = lowest_bit(cones);
      state->improvement += improve_cone(m, d, lane_get_int(first, k), lane_get_int(together, k));
    }
    state->z = own < m.nv() ? d.z[own] : R(0.0);
  }
  lane_sync();
}
#else
DEVICE void begin_sweeps(const Model&, const DenseDual&, int, const int*, SweepState*) {}
DEVICE void end_sweeps(const Model&, const DenseDual&, const SweepState&) {}

#ifdef MATRIX_VECTORS
// The change of the slope by the changes of all forces, for a row, or for the difference of two rows.
DEVICE real coupling(const real* Y, const real* minus, bool edges, const real* z, int nv) {
  const auto row = [&](int v) {
    const Lanes own = load_words(Y + v, nv - v);
    return edges ? own - load_words(minus + v, nv - v) : own;
  };
  return dot_in_vectors(nv, row, [&](int v) { return load_words(z + v, nv - v); });
}
#else
DEVICE real coupling(const real* Y, const real* minus, bool edges, const real* z, int nv) {
  real sum = 0;
  DOF_FOR(v, nv) sum = fma_(edges ? Y[v] - minus[v] : Y[v], z[v], sum);
  return lane_sum(sum);
}
#endif

// One sweep over the rows in a list.
DEVICE void sweep(const Model& m, const DenseDual& d, int n, const int* list, SweepState* state) {
  const int nv = m.nv(), stride = m.nvp();
  ROLLED for (int k = 0; k < n; ++k) {
    const int r = list[k], together = rows_improved(m, d.rows, r);
    if (!together) continue;
    if (NOSLIP_CONES && together > 2) {
      state->improvement += improve_cone(m, d, r, together);
      continue;
    }
    const bool edges = together == 2;
    const real *Y = d.Y + r * stride, *minus = Y + stride;
    const ScalarForce now = scalar_force(d, r, edges);
    real best;
    if (!improve_scalar(now, edges, coupling(Y, minus, edges, d.z, nv), &best, &state->improvement)) continue;
    const real change = best - now.force;
    DOF_FOR(v, nv) d.z[v] = fma_(change, edges ? Y[v] - minus[v] : Y[v], d.z[v]);
    lane_sync();
    if (lane() == 0) put_scalar(d, r, edges, best);
  }
  lane_sync();
}
#endif
