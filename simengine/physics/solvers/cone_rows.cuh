// The cost of elliptic cones of dimension 3 (row_law.cuh), as many at a time as a vector has entries. Each entry sees
// the operations of row_law and line_law, and sums over cones are in the order of their rows.
#pragma once

#ifdef PLAIN_ROWS
#define MOST_CONE_VECTORS (64 / VECTOR_WIDTH)

// Numbers of up to VECTOR_WIDTH cones, by the rows of a cone.
struct ConeLanes {
  Lanes of[3];

  // Take those of `number` cones from memory, where rows follow each other.
  DEVICE_METHOD void load(const real* from, int number) {
    alignas(64) REAL packed[3 * VECTOR_WIDTH], apart[3][VECTOR_WIDTH];
    for (int q = 0; q < 3; ++q) {
      const int left = 3 * number - q * VECTOR_WIDTH;
      const Lanes part = left > 0 ? load_words(from + q * VECTOR_WIDTH, left) : Lanes{};
      __builtin_memcpy(packed + q * VECTOR_WIDTH, &part, sizeof(part));
    }
    for (int k = 0; k < VECTOR_WIDTH; ++k) {
      for (int i = 0; i < 3; ++i) apart[i][k] = packed[3 * k + i];
    }
    for (int i = 0; i < 3; ++i) __builtin_memcpy(&of[i], apart[i], sizeof(Lanes));
  }
  DEVICE_METHOD void store(real* to, int number) const {
    alignas(64) REAL apart[3][VECTOR_WIDTH];
    for (int i = 0; i < 3; ++i) __builtin_memcpy(apart[i], &of[i], sizeof(Lanes));
    for (int k = 0; k < number; ++k) {
      for (int i = 0; i < 3; ++i) to[3 * k + i] = apart[i][k];
    }
  }
};

DEVICE Lanes roots_of(Lanes x) {
  Lanes root;
  for (int k = 0; k < VECTOR_WIDTH; ++k) root[k] = sqrt_(x[k]);
  return root;
}

// Up to VECTOR_WIDTH cones at one point.
struct ConesAt {
  Lanes N, T, U[2];
  Truths free, quadratic;
};

// What the cones of a vector have at every point.
struct ConeVector {
  int number;
  Lanes mu, friction[2], Dm;
  ConeLanes D;

  DEVICE_METHOD ConesAt at(const ConeLanes& x) const {
    ConesAt cones;
    cones.N = mu * x.of[0];
    for (int i = 0; i < 2; ++i) cones.U[i] = friction[i] * x.of[i + 1];
    cones.T = roots_of(vector_fma(cones.U[1], cones.U[1], cones.U[0] * cones.U[0]));
    cones.free = cones.N >= mu * cones.T;
    cones.quadratic = ~cones.free & (mu * cones.N + cones.T <= Lanes{});
    return cones;
  }
};

// All cones of a world or an island, whose rows are its last ones.
struct ThreeRowCones {
  int first, vectors;  // the first row of a cone
  ConeVector vector[MOST_CONE_VECTORS];
};

// Find the cones of some rows; returns false if they are too many, or not all of dimension 3 behind all other rows.
DEVICE bool find_cones(const Model& m, const Rows& rows, ThreeRowCones& cones) {
  int first = rows.n;
  while (first > 0 && rows.type[first - 1] == ROW_CONTACT_ELLIPTIC) --first;
  const int number = (rows.n - first) / 3;
  if (!number || first + 3 * number != rows.n || number > MOST_CONE_VECTORS * VECTOR_WIDTH) return false;
  for (int r = 0; r < first; ++r) {
    if (rows.type[r] == ROW_CONTACT_ELLIPTIC) return false;
  }
  const real impratio = m.opt_impratio()[0];
  cones.first = first;
  cones.vectors = (number + VECTOR_WIDTH - 1) / VECTOR_WIDTH;
  for (int q = 0; q < cones.vectors; ++q) {
    ConeVector& own = cones.vector[q];
    const int begin = first + 3 * q * VECTOR_WIDTH, left = number - q * VECTOR_WIDTH;
    alignas(64) REAL friction[2][VECTOR_WIDTH] = {};
    own.number = left < VECTOR_WIDTH ? left : VECTOR_WIDTH;
    for (int k = 0; k < own.number; ++k) {
      const int r = begin + 3 * k, cand = rows.cand[rows.id[r]];
      if (rows.address[rows.id[r]] != r || m.cand_rows()[cand] != 3) return false;
      for (int i = 0; i < 2; ++i) friction[i][k] = m.cand_friction()[5 * cand + i];
    }
    for (int i = 0; i < 2; ++i) __builtin_memcpy(&own.friction[i], friction[i], sizeof(Lanes));
    own.D.load(rows.D + begin, own.number);
    own.mu = own.friction[0] * every(reciprocal_sqrt_(impratio));
    own.Dm = own.D.of[0] / (own.mu * own.mu * (every(1) + own.mu * own.mu));
  }
  return true;
}

// Rows that are not of the cones.
DEVICE Rows before_cones(const Rows& rows) {
  Rows others = rows;
  others.n = rows.cones->first;
  return others;
}

// Their part of rows_cost, after that of other rows.
DEVICE_CALL real cones_cost(const ThreeRowCones& cones, real cost, const real* jar, real* force, real* weight) {
  for (int q = 0; q < cones.vectors; ++q) {
    const ConeVector& own = cones.vector[q];
    const int begin = cones.first + 3 * q * VECTOR_WIDTH;
    ConeLanes x, push;
    x.load(jar + begin, own.number);
    const ConesAt at = own.at(x);
    const Truths between = ~(at.free | at.quadratic);
    const Lanes depth = at.N - own.mu * at.T, slope = own.Dm * depth, inverse = every(1) / at.T;
    const Lanes bend = -slope * own.mu * inverse, u[3] = {Lanes{}, at.U[0] * inverse, at.U[1] * inverse};
    const Lanes scale[3] = {own.mu, own.friction[0], own.friction[1]};
    const Lanes v[3] = {own.mu, scale[1] * (-own.mu * u[1]), scale[2] * (-own.mu * u[2])};
    Lanes bowl = {}, d[3];
    for (int i = 0; i < 3; ++i) {
      d[i] = where(at.quadratic, own.D.of[i]);
      push.of[i] = between ? -(slope * v[i]) : -(d[i] * x.of[i]);
      bowl = vector_fma(every(R(0.5)) * d[i] * x.of[i], x.of[i], bowl);
    }
    push.store(force + begin, own.number);
    const Lanes all = between ? every(R(0.5)) * slope * depth : bowl;
    for (int k = 0; k < own.number; ++k) cost += all[k];
    if (!weight) continue;
    alignas(64) REAL second[3][3][VECTOR_WIDTH];
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        const Lanes across = i && j ? bend * scale[i] * scale[j] * (every(i == j) - u[i] * u[j]) : Lanes{};
        const Lanes slides = vector_fma(own.Dm * v[i], v[j], across);
        const Lanes entry = between ? slides : i == j ? d[i] : Lanes{};
        __builtin_memcpy(second[i][j], &entry, sizeof(Lanes));
      }
    }
    for (int k = 0; k < own.number; ++k) {
      real* to = weight + MAX_CONE_ROWS * (begin + 3 * k);
      for (int e = 0; e < 9; ++e) to[MAX_CONE_ROWS * (e / 3) + e % 3] = second[e / 3][e % 3][k];
    }
  }
  return cost;
}

// Whether the second derivatives of all cones are the same all along a full step.
DEVICE_CALL bool cones_full_step(const ThreeRowCones& cones, const real* jar, const real* jv) {
  Truths same = ~Truths{};
  for (int q = 0; q < cones.vectors; ++q) {
    const ConeVector& own = cones.vector[q];
    const int begin = cones.first + 3 * q * VECTOR_WIDTH;
    ConeLanes x, step;
    x.load(jar + begin, own.number);
    step.load(jv + begin, own.number);
    const ConesAt before = own.at(x);
    for (int i = 0; i < 3; ++i) x.of[i] += step.of[i];
    const ConesAt after = own.at(x);
    same &= (before.free & after.free) | (before.quadratic & after.quadratic) | (places() >= Truths{} + own.number);
  }
  return !has_bits(~same);
}

// What the cost of cones follows from along jar + alpha jv; see put_line.
struct ConeLines {
  Lanes mu, Dm, N, N_rate, UU, UV, VV, slope, curve, size;
  int number;
};

DEVICE_CALL void put_cone_lines(const ThreeRowCones& cones, const real* jar, const real* jv, ConeLines* lines) {
  for (int q = 0; q < cones.vectors; ++q) {
    const ConeVector& own = cones.vector[q];
    const int begin = cones.first + 3 * q * VECTOR_WIDTH;
    ConeLanes x, step;
    x.load(jar + begin, own.number);
    step.load(jv + begin, own.number);
    ConeLines line = {own.mu, own.Dm, own.mu * x.of[0], own.mu * step.of[0]};
    for (int i = 0; i < 3; ++i) {
      const Lanes pull = own.D.of[i] * step.of[i];
      if (i) {
        const Lanes u = own.friction[i - 1] * x.of[i], rate = own.friction[i - 1] * step.of[i];
        line.UU = vector_fma(u, u, line.UU);
        line.UV = vector_fma(u, rate, line.UV);
        line.VV = vector_fma(rate, rate, line.VV);
      }
      line.slope = vector_fma(pull, x.of[i], line.slope);
      line.curve = vector_fma(pull, step.of[i], line.curve);
      line.size = vector_fma(size_of(pull), size_of(x.of[i]), line.size);
    }
    line.number = own.number;
    lines[q] = line;
  }
}

// Add the sums of line_law over all cones at jar + alpha jv.
DEVICE_CALL void add_cone_lines(const ConeLines* lines, int vectors, real alpha, LineLaw& sum) {
  const Lanes at = every(alpha), none = Lanes{};
  for (int q = 0; q < vectors; ++q) {
    const ConeLines& line = lines[q];
    const Lanes N = vector_fma(at, line.N_rate, line.N), along = vector_fma(at, line.VV, line.UV);
    const Lanes square = vector_fma(at, along + line.UV, line.UU), T = roots_of(square > none ? square : none);
    const Truths free = N >= line.mu * T, quadratic = ~free & (line.mu * N + T <= none), between = ~(free | quadratic);
    const Lanes inverse = every(1) / T, rate = along * inverse, depth = N - line.mu * T;
    const Lanes change = line.N_rate - line.mu * rate, bend = (line.VV - rate * rate) * inverse;
    const Lanes first = between ? line.Dm * depth * change : vector_fma(at, line.curve, line.slope);
    const Lanes second = between ? line.Dm * (change * change - depth * line.mu * bend) : line.curve;
    const Lanes size = between ? line.Dm * (size_of(N) + line.mu * T) * (size_of(line.N_rate) + line.mu * size_of(rate))
                               : vector_fma(size_of(at), line.curve, every(2) * line.size);
    for (int k = 0; k < line.number; ++k) {
      sum.first += free[k] ? R(0.0) : first[k];
      sum.second += free[k] ? R(0.0) : second[k];
      sum.size += free[k] ? R(0.0) : size[k];
    }
  }
}
#endif
