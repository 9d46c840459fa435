// Kernels made from the bodies of tree.cu: kinematics straight through global memory in two layouts, and the
// three stages alone or fused, with intermediates in shared memory and a mask of stored fields.

// World-major: LANES lanes a world, over the bodies of one tree level at a time.
template <int LANES>
__global__ void kinematics_world_major(const float* qpos, float* xpos, float* xquat, float* xmat, const int* it,
                                       const float* ft, int nworld, int repeats) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x, w = t / LANES, lane = t % LANES;
    if (w >= nworld) return;
    const unsigned mask = group_mask<LANES>();
    const View<false> q{const_cast<float*>(qpos) + w * NQ, 1};
    const View<false> p{xpos + w * NBODY * 3, 1}, r{xquat + w * NBODY * 4, 1}, m{xmat + w * NBODY * 9, 1};
    for (int rep = 0; rep < repeats; ++rep)
        for (int level = 0; level < NLEVEL; ++level) {
            for (int b = it[I_LEVEL + level] + lane; b < it[I_LEVEL + level + 1]; b += LANES)
                body_pose(b, q, p, r, m, it, ft, 1e-3f * rep);
            __syncwarp(mask);
        }
}

// Field-major, world fastest: neighbouring threads (x) are neighbouring worlds; LANES (y) share a world's bodies.
template <int LANES>
__global__ void kinematics_field_major(const float* qpos, float* xpos, float* xquat, float* xmat, const int* it,
                                       const float* ft, int nworld, int repeats) {
    const int w = blockIdx.x * blockDim.x + threadIdx.x;
    const bool active = w < nworld;
    const View<true> q{const_cast<float*>(qpos) + w, nworld};
    const View<true> p{xpos + w, nworld}, r{xquat + w, nworld}, m{xmat + w, nworld};
    for (int rep = 0; rep < repeats; ++rep)
        for (int level = 0; level < NLEVEL; ++level) {
            if (active)
                for (int b = it[I_LEVEL + level] + threadIdx.y; b < it[I_LEVEL + level + 1]; b += LANES)
                    body_pose(b, q, p, r, m, it, ft, 1e-3f * rep);
            if (LANES > 1) __syncthreads();
        }
}

// Fields of one world, as bits of a mask and in this order in shared memory.
enum { XPOS = 1, XQUAT = 2, XMAT = 4, CRB = 8, CDOF = 16, QM = 32, NFIELD = 6 };
enum { KINEMATICS = 1, COMPOSITE = 2, FACTOR = 4 };

__host__ __device__ constexpr int field_size(int f) {
    return f == XPOS ? NBODY * 3 : f == XQUAT ? NBODY * 4 : f == XMAT ? NBODY * 9
         : f == CRB ? NBODY * 10 : f == CDOF ? NV * 6 : NV * MSTRIDE;
}
__host__ __device__ constexpr int fields_used(int stages) {
    return (stages & KINEMATICS ? XPOS | XQUAT | XMAT : 0) | (stages & COMPOSITE ? XPOS | XMAT | CRB | CDOF : 0) |
           (stages & FACTOR ? CRB | CDOF | QM : 0);
}
__host__ __device__ constexpr int fields_made(int stages) {
    return (stages & KINEMATICS ? XPOS | XQUAT | XMAT : 0) | (stages & COMPOSITE ? CRB | CDOF : 0) |
           (stages & FACTOR ? QM : 0);
}
__host__ __device__ constexpr int field_offset(int field, int used) {
    int offset = 0;
    for (int f = 1; f < field; f <<= 1) offset += (used & f) ? field_size(f) : 0;
    return offset;
}

template <int LANES, int FIELD>
__device__ inline void copy_field(int lane, float* to, const float* from) {
    for (int i = lane; i < field_size(FIELD); i += LANES) to[i] = from[i];
}

// STAGES run in order on one world's fields in shared memory. Fields that another kernel made are loaded first,
// those named in STORE are written at the end. Shared bytes a world: 4 * (field_offset(64, used) | 1).
template <int LANES, int STAGES, int STORE>
__global__ void stages(const float* qpos, float* xpos, float* xquat, float* xmat, float* crb, float* cdof, float* qM,
                       const int* it, const float* ft, int nworld) {
    extern __shared__ float shared[];
    constexpr int used = fields_used(STAGES), load = used & ~fields_made(STAGES);
    constexpr int stride = field_offset(1 << NFIELD, used) | 1;
    const int t = blockIdx.x * blockDim.x + threadIdx.x, w = t / LANES, lane = t % LANES;
    if (w >= nworld) return;
    const unsigned mask = group_mask<LANES>();
    float* mine = shared + (threadIdx.x / LANES) * stride;
#define SHARED(F) (mine + field_offset(F, used))
#define GLOBAL(F, field) (field + w * field_size(F))
#define LOAD(F, field) if (load & F) copy_field<LANES, F>(lane, SHARED(F), GLOBAL(F, field))
#define SAVE(F, field) if (STORE & F) copy_field<LANES, F>(lane, GLOBAL(F, field), SHARED(F))
    LOAD(XPOS, xpos); LOAD(XQUAT, xquat); LOAD(XMAT, xmat); LOAD(CRB, crb); LOAD(CDOF, cdof);
    __syncwarp(mask);
    if (STAGES & KINEMATICS) {
        const View<false> q{const_cast<float*>(qpos) + w * NQ, 1};
        const View<false> p{SHARED(XPOS), 1}, r{SHARED(XQUAT), 1}, m{SHARED(XMAT), 1};
        for (int level = 0; level < NLEVEL; ++level) {
            for (int b = it[I_LEVEL + level] + lane; b < it[I_LEVEL + level + 1]; b += LANES)
                body_pose(b, q, p, r, m, it, ft, 0.0f);
            __syncwarp(mask);
        }
    }
    if (STAGES & COMPOSITE)
        composite_inertia<LANES>(lane, mask, SHARED(XPOS), SHARED(XMAT), SHARED(CRB), SHARED(CDOF), it, ft);
    if (STAGES & FACTOR) factor_mass_matrix<LANES>(lane, mask, SHARED(CRB), SHARED(CDOF), SHARED(QM), it);
    SAVE(XPOS, xpos); SAVE(XQUAT, xquat); SAVE(XMAT, xmat); SAVE(CRB, crb); SAVE(CDOF, cdof); SAVE(QM, qM);
}
