// Inverse weights of bodies, dofs and tendons at qpos0, and the mean inertia, of worlds with masses of their own: what
// MuJoCo's mj_setConst computes from them. Sums are in double precision, in an order that does not depend on other
// worlds.
//
// One source for the GPU (NVRTC) and the host (any C++ compiler). On a GPU a block works on one world after another, on
// a host a thread does. The build defines REAL, the type of the worlds' numbers.

#if defined(__CUDACC__)
#define DEVICE static __device__
#define EACH(i, n) for (int i = threadIdx.x; i < (n); i += blockDim.x)
#define SYNC() __syncthreads()
#else
#include <cmath>
#define DEVICE static
#define EACH(i, n) for (int i = 0; i < (n); ++i)
#define SYNC()
#endif

// The model at qpos0 (simengine/model/rest.py), the parameters of the worlds, and the results. Shapes stand behind the
// names; arrays of the worlds have an axis for the world before these.
struct Work {
  const double *linear, *angular, *turned;  // (nbody, 3, nv)
  const double *xmat;                       // (nbody, 3, 3)
  const double *M;                          // (nv, nv)
  const double *tendons;                    // (ntendon, nv)
  const int *slides;                    // (nbody), bodies that only slide along their principal axes
  const int *dof_body;                  // (nv)
  const int *mean_of;                   // (nv, 2), the first dof and the number of dofs over which a dof's is the mean
  const REAL *mass, *inertia;               // (nbody), (nbody, 3)
  const REAL *armature, *ipos;              // (nv), (nbody, 3)
  REAL *body, *dof, *tendon, *mean;         // (nbody, 2), (nv), (ntendon), ()
  const int *chosen, *num_chosen;       // the worlds to work on
  double* scratch;                          // (blocks, room)
  long long room;
  int nbody, nv, ntendon, unused;
};

// Entry of the Jacobian of a body's centre of mass: that of its origin, and its orientation times the arm.
DEVICE double of_centre(const Work& k, const REAL* ipos, int b, int i, int v) {
  double arm[3];
  for (int j = 0; j < 3; ++j) {
    const double* axis = k.xmat + 9 * b + 3 * j;
    arm[j] = axis[0] * ipos[3 * b] + axis[1] * ipos[3 * b + 1] + axis[2] * ipos[3 * b + 2];
  }
  const int next = (i + 1) % 3, last = (i + 2) % 3;
  const double* turn = k.angular + 3 * b * k.nv + v;
  return k.linear[(3 * b + i) * k.nv + v] + turn[next * k.nv] * arm[last] - turn[last * k.nv] * arm[next];
}

#if defined(__CUDACC__)

// Lower half of the inertia from the Jacobians y[v][row] of centres of mass: a thread has entries.
DEVICE void inertia_of(const Work& k, const REAL* mass, const REAL* inertia, const REAL* armature, const double* y,
                       double* L) {
  const int nbody = k.nbody, nv = k.nv, rows = 6 * nbody + k.ntendon + nv;
  EACH(e, nv * nv) {
    const int row = e / nv, column = e % nv;
    if (column > row) continue;
    double sum = k.M[e] + (row == column ? double(armature[row]) : 0.0);
    for (int j = 0; j < 3 * nbody; ++j) {
      sum += mass[j / 3] * y[row * rows + j] * y[column * rows + j];
      sum += inertia[j] * k.turned[j * nv + row] * k.turned[j * nv + column];
    }
    L[e] = sum;
  }
}

// Squares of inv(L) r' of rows y[v][r], which become inv(L) r': a thread has rows.
DEVICE void weights_of(const double* L, int nv, int rows, double* y, double* weight) {
  EACH(r, rows) {
    double square = 0;
    for (int v = 0; v < nv; ++v) {
      double sum = y[v * rows + r];
      for (int u = 0; u < v; ++u) sum -= L[v * nv + u] * y[u * rows + r];
      y[v * rows + r] = sum /= L[v * nv + v];
      square += sum * sum;
    }
    weight[r] = square;
  }
}

#else

// The same sums in the same order. The innermost loops are over numbers that lie side by side, for vectors.
DEVICE void inertia_of(const Work& k, const REAL* mass, const REAL* inertia, const REAL* armature, const double* y,
                       double* L) {
  const int nbody = k.nbody, nv = k.nv, rows = 6 * nbody + k.ntendon + nv;
  double* __restrict column = L + nv * nv + nv * rows;  // of the Jacobians; the weights come here later
  for (int e = 0; e < nv * nv; ++e) L[e] = k.M[e] + (e / nv == e % nv ? double(armature[e / nv]) : 0.0);
  for (int j = 0; j < 3 * nbody; ++j) {
    for (int v = 0; v < nv; ++v) column[v] = y[v * rows + j];
    const double* turned = k.turned + j * nv;
    for (int row = 0; row < nv; ++row) {
      const double moved = mass[j / 3] * column[row], turning = inertia[j] * turned[row];
      double* __restrict sums = L + row * nv;
      for (int v = 0; v <= row; ++v) {
        sums[v] += moved * column[v];
        sums[v] += turning * turned[v];
      }
    }
  }
}

DEVICE void weights_of(const double* L, int nv, int rows, double* y, double* weight) {
  for (int r = 0; r < rows; ++r) weight[r] = 0;
  for (int v = 0; v < nv; ++v) {
    double* __restrict own = y + v * rows;
    for (int u = 0; u < v; ++u) {
      const double factor = L[v * nv + u], *other = y + u * rows;
      for (int r = 0; r < rows; ++r) own[r] -= factor * other[r];
    }
    const double pivot = L[v * nv + v];
    for (int r = 0; r < rows; ++r) {
      own[r] /= pivot;
      weight[r] += own[r] * own[r];
    }
  }
}

#endif

DEVICE void weigh(const Work& k, long long world, double* scratch) {
  const int nbody = k.nbody, nv = k.nv, rows = 6 * nbody + k.ntendon + nv;
  const REAL *mass = k.mass + world * nbody, *inertia = k.inertia + world * 3 * nbody;
  const REAL *armature = k.armature + world * nv, *ipos = k.ipos + world * 3 * nbody;
  double *L = scratch, *y = L + nv * nv, *weight = y + nv * rows;  // y[v][row]

  // (1) rows whose weights are asked for: centres of mass, orientations, tendons, and each dof by itself
  EACH(e, 3 * nbody * nv) {
    const int row = e / nv, v = e % nv;
    y[v * rows + row] = of_centre(k, ipos, row / 3, row % 3, v);
    y[v * rows + 3 * nbody + row] = k.angular[e];
  }
  EACH(e, k.ntendon * nv) y[e % nv * rows + 6 * nbody + e / nv] = k.tendons[e];
  EACH(e, nv * nv) y[e % nv * rows + 6 * nbody + k.ntendon + e / nv] = e % nv == e / nv;
  SYNC();

  // (2) lower half of the inertia
  inertia_of(k, mass, inertia, armature, y, L);
  SYNC();
  EACH(first, 1) {
    double sum = 0;
    for (int v = 0; v < nv; ++v) sum += L[v * nv + v];
    k.mean[world] = REAL(sum / nv);
  }
  SYNC();

  // (3) Cholesky factor, by columns
  for (int j = 0; j < nv; ++j) {
    EACH(o, nv - j) {
      double sum = L[(j + o) * nv + j];
      for (int v = 0; v < j; ++v) sum -= L[(j + o) * nv + v] * L[j * nv + v];
      L[(j + o) * nv + j] = sum;
    }
    SYNC();
    const double pivot = sqrt(L[j * nv + j]);
    SYNC();
    EACH(o, nv - j) L[(j + o) * nv + j] = o ? L[(j + o) * nv + j] / pivot : pivot;
    SYNC();
  }

  // (4) weight of a row r: r inv(M) r', the square of inv(L) r'
  weights_of(L, nv, rows, y, weight);
  SYNC();

  // (5) means over the axes of a body and over the dofs of a joint
  EACH(e, 2 * nbody) {
    const int b = e / 2, turns = e % 2;
    const double* own = weight + 3 * (turns * nbody + b);
    const bool slides = k.slides[b] && ipos[3 * b] == 0 && ipos[3 * b + 1] == 0 && ipos[3 * b + 2] == 0;
    const double light = mass[b] > 1e-15 ? mass[b] : 1e-15;  // mjMINVAL
    k.body[world * 2 * nbody + e] = REAL(slides && !turns ? 1 / light : (own[0] + own[1] + own[2]) / 3);
  }
  EACH(v, nv) {
    const int b = k.dof_body[v], begin = k.mean_of[2 * v], number = k.mean_of[2 * v + 1];
    const bool slides = k.slides[b] && ipos[3 * b] == 0 && ipos[3 * b + 1] == 0 && ipos[3 * b + 2] == 0;
    const double light = mass[b] > 1e-15 ? mass[b] : 1e-15;
    double sum = 0;
    for (int u = begin; u < begin + number; ++u) sum += weight[6 * nbody + k.ntendon + u];
    k.dof[world * nv + v] = REAL(slides ? 1 / light : sum / number);
  }
  EACH(t, k.ntendon) k.tendon[world * k.ntendon + t] = REAL(weight[6 * nbody + t]);
  SYNC();
}

#if defined(__CUDACC__)
extern "C" __global__ void invweights(const Work work) {
  double* scratch = work.scratch + blockIdx.x * work.room;
  for (int i = blockIdx.x; i < *work.num_chosen; i += gridDim.x) weigh(work, work.chosen[i], scratch);
}
#else
// A program of one op, as the handler of a host runs it.
extern "C" long long invweights(const void* work, long long number, long long, int*) {
  const Work& own = *static_cast<const Work*>(work);
  for (int i = 0; i < *own.num_chosen; ++i) weigh(own, own.chosen[i], own.scratch);
  return number;
}
#endif
