// Device bodies shared by the experiments: forward kinematics, composite inertia, mass matrix and its
// Cholesky factor for one world, worked on by LANES lanes. Field names are MuJoCo's.
// The offsets I_* (integers) and F_* (floats) into the model tables, and NBODY, NV, NLEVEL, come from ant_tree.py.
#define MSTRIDE (NV + 1)  // row stride of qM: odd, so that lanes reading one column use different banks

struct Vec { float x, y, z; };
struct Quat { float w, x, y, z; };

// A field of one world. STRIDED: field-major storage, where neighbouring entries lie `stride` apart.
template <bool STRIDED> struct View {
    float* p;
    int stride;
    __device__ float& operator[](int i) const { return p[STRIDED ? i * stride : i]; }
};

__device__ inline Vec cross(Vec a, Vec b) {
    return {fmaf(a.y, b.z, -a.z * b.y), fmaf(a.z, b.x, -a.x * b.z), fmaf(a.x, b.y, -a.y * b.x)};
}
__device__ inline float dot(Vec a, Vec b) { return fmaf(a.x, b.x, fmaf(a.y, b.y, a.z * b.z)); }

__device__ inline Quat mul(Quat a, Quat b) {
    return {fmaf(a.w, b.w, -fmaf(a.x, b.x, fmaf(a.y, b.y, a.z * b.z))),
            fmaf(a.w, b.x, fmaf(a.x, b.w, fmaf(a.y, b.z, -a.z * b.y))),
            fmaf(a.w, b.y, fmaf(a.y, b.w, fmaf(a.z, b.x, -a.x * b.z))),
            fmaf(a.w, b.z, fmaf(a.z, b.w, fmaf(a.x, b.y, -a.y * b.x)))};
}
__device__ inline Vec rotate(Vec v, Quat q) {
    Vec u = {q.x, q.y, q.z};
    Vec t = cross(u, v);
    t = {2.0f * t.x, 2.0f * t.y, 2.0f * t.z};
    Vec s = cross(u, t);
    return {fmaf(q.w, t.x, v.x + s.x), fmaf(q.w, t.y, v.y + s.y), fmaf(q.w, t.z, v.z + s.z)};
}
__device__ inline Vec vec_at(const float* p) { return {p[0], p[1], p[2]}; }
__device__ inline Quat quat_at(const float* p) { return {p[0], p[1], p[2], p[3]}; }

// Pose of body b in the world frame from its parent's pose, written to xpos, xquat and xmat. `shift` [rad or m]
// is added to every joint coordinate, so that repetitions of the body do different work.
template <class Q, class X>
__device__ inline void body_pose(int b, Q qpos, X xpos, X xquat, X xmat, const int* it, const float* ft, float shift) {
    Vec pos = vec_at(ft + F_POS + 3 * b);
    Quat quat = quat_at(ft + F_QUAT + 4 * b);
    const int joint = it[I_JOINT + b], adr = it[I_QADR + b];
    if (joint == 1) {  // free
        pos = {qpos[adr] + shift, qpos[adr + 1], qpos[adr + 2]};
        quat = {qpos[adr + 3] + shift, qpos[adr + 4], qpos[adr + 5], qpos[adr + 6]};
    } else if (b > 0) {
        const int p = it[I_PARENT + b];
        Quat pq = {xquat[4 * p], xquat[4 * p + 1], xquat[4 * p + 2], xquat[4 * p + 3]};
        Vec d = rotate(pos, pq);
        pos = {xpos[3 * p] + d.x, xpos[3 * p + 1] + d.y, xpos[3 * p + 2] + d.z};
        quat = mul(pq, quat);
        if (joint == 2) {  // hinge at the body's origin
            float s, c;
            sincosf(0.5f * (qpos[adr] + shift), &s, &c);
            Vec a = vec_at(ft + F_AXIS + 3 * b);
            quat = mul(quat, Quat{c, s * a.x, s * a.y, s * a.z});
        }
    }
    float n = 1.0f / sqrtf(fmaf(quat.w, quat.w, fmaf(quat.x, quat.x, fmaf(quat.y, quat.y, quat.z * quat.z))));
    Quat q = {quat.w * n, quat.x * n, quat.y * n, quat.z * n};
    xpos[3 * b] = pos.x, xpos[3 * b + 1] = pos.y, xpos[3 * b + 2] = pos.z;
    xquat[4 * b] = q.w, xquat[4 * b + 1] = q.x, xquat[4 * b + 2] = q.y, xquat[4 * b + 3] = q.z;
    xmat[9 * b + 0] = fmaf(-2.0f, fmaf(q.y, q.y, q.z * q.z), 1.0f);
    xmat[9 * b + 1] = 2.0f * fmaf(q.x, q.y, -q.w * q.z);
    xmat[9 * b + 2] = 2.0f * fmaf(q.x, q.z, q.w * q.y);
    xmat[9 * b + 3] = 2.0f * fmaf(q.x, q.y, q.w * q.z);
    xmat[9 * b + 4] = fmaf(-2.0f, fmaf(q.x, q.x, q.z * q.z), 1.0f);
    xmat[9 * b + 5] = 2.0f * fmaf(q.y, q.z, -q.w * q.x);
    xmat[9 * b + 6] = 2.0f * fmaf(q.x, q.z, -q.w * q.y);
    xmat[9 * b + 7] = 2.0f * fmaf(q.y, q.z, q.w * q.x);
    xmat[9 * b + 8] = fmaf(-2.0f, fmaf(q.x, q.x, q.y * q.y), 1.0f);
}

template <int LANES> __device__ inline unsigned group_mask() {
    const int first = (threadIdx.x & 31) & ~(LANES - 1);
    return (LANES == 32 ? 0xffffffffu : ((1u << (LANES & 31)) - 1u) << first);
}

// Composite inertia crb[body][10] = Ixx Iyy Izz Ixy Ixz Iyz, m d, m about the torso's origin, summed up the tree;
// and motion axes cdof[dof][6] (rotation, translation) about the same point.
template <int LANES>
__device__ inline void composite_inertia(int lane, unsigned mask, const float* xpos, const float* xmat, float* crb,
                                         float* cdof, const int* it, const float* ft) {
    const Vec origin = vec_at(xpos + 3);
    for (int b = lane; b < NBODY; b += LANES) {  // (1) each body's own inertia
        const float* R = xmat + 9 * b;
        const float* I = ft + F_INERTIA + 3 * b;
        const float m = ft[F_MASS + b];
        const Vec d = {xpos[3 * b] - origin.x, xpos[3 * b + 1] - origin.y, xpos[3 * b + 2] - origin.z};
        const Vec md = {m * d.x, m * d.y, m * d.z};
        float* c = crb + 10 * b;
        auto rir = [&](int i, int j) {
            return fmaf(R[3 * i] * R[3 * j], I[0],
                        fmaf(R[3 * i + 1] * R[3 * j + 1], I[1], R[3 * i + 2] * R[3 * j + 2] * I[2]));
        };
        c[0] = fmaf(md.y, d.y, fmaf(md.z, d.z, rir(0, 0)));
        c[1] = fmaf(md.x, d.x, fmaf(md.z, d.z, rir(1, 1)));
        c[2] = fmaf(md.x, d.x, fmaf(md.y, d.y, rir(2, 2)));
        c[3] = fmaf(-md.x, d.y, rir(0, 1));
        c[4] = fmaf(-md.x, d.z, rir(0, 2));
        c[5] = fmaf(-md.y, d.z, rir(1, 2));
        c[6] = md.x, c[7] = md.y, c[8] = md.z, c[9] = m;
    }
    for (int i = lane; i < NV; i += LANES) {  // (2) each dof's axis
        const int b = it[I_DOFBODY + i];
        float* c = cdof + 6 * i;
        if (i < 3) {
            for (int k = 0; k < 6; ++k) c[k] = (k == 3 + i) ? 1.0f : 0.0f;
        } else {
            const float* R = xmat + 9 * b;
            Vec a = vec_at(ft + F_AXIS + 3 * b);
            if (i < 6) a = {i == 3 ? 1.0f : 0.0f, i == 4 ? 1.0f : 0.0f, i == 5 ? 1.0f : 0.0f};
            const Vec w = {dot(vec_at(R), a), dot(vec_at(R + 3), a), dot(vec_at(R + 6), a)};
            const Vec arm = {origin.x - xpos[3 * b], origin.y - xpos[3 * b + 1], origin.z - xpos[3 * b + 2]};
            const Vec v = cross(w, arm);
            c[0] = w.x, c[1] = w.y, c[2] = w.z, c[3] = v.x, c[4] = v.y, c[5] = v.z;
        }
    }
    __syncwarp(mask);
    for (int level = NLEVEL - 2; level > 0; --level) {  // (3) parents pull from their children: no atomics
        const int first = it[I_LEVEL + level], n = 10 * (it[I_LEVEL + level + 1] - first);
        for (int i = lane; i < n; i += LANES) {
            const int b = first + i / 10, k = i % 10;
            float sum = crb[10 * b + k];
            for (int c = it[I_CHILD + b]; c < it[I_CHILD + b] + it[I_NCHILD + b]; ++c) sum += crb[10 * c + k];
            crb[10 * b + k] = sum;
        }
        __syncwarp(mask);
    }
}

// Lower triangle of qM (row stride MSTRIDE) from crb and cdof, then its Cholesky factor in place.
template <int LANES>
__device__ inline void factor_mass_matrix(int lane, unsigned mask, const float* crb, const float* cdof, float* qM,
                                          const int* it) {
    for (int i = lane; i < NV * MSTRIDE; i += LANES) qM[i] = 0.0f;
    __syncwarp(mask);
    for (int i = lane; i < NV; i += LANES) {
        const float* c = crb + 10 * it[I_DOFBODY + i];
        const Vec w = vec_at(cdof + 6 * i), v = vec_at(cdof + 6 * i + 3), md = vec_at(c + 6);
        const Vec dv = cross(md, v), dw = cross(md, w);
        const Vec ang = {dot({c[0], c[3], c[4]}, w) + dv.x, dot({c[3], c[1], c[5]}, w) + dv.y,
                         dot({c[4], c[5], c[2]}, w) + dv.z};
        const Vec lin = {fmaf(c[9], v.x, -dw.x), fmaf(c[9], v.y, -dw.y), fmaf(c[9], v.z, -dw.z)};
        for (int j = i; j >= 0; j = it[I_DOFPARENT + j])
            qM[i * MSTRIDE + j] = dot(vec_at(cdof + 6 * j), ang) + dot(vec_at(cdof + 6 * j + 3), lin);
        qM[i * MSTRIDE + i] += 0.01f;  // armature [kg m^2]
    }
    __syncwarp(mask);
    for (int k = 0; k < NV; ++k) {  // right-looking Cholesky; lane = row
        const float pivot = sqrtf(qM[k * MSTRIDE + k]), inverse = 1.0f / pivot;
        __syncwarp(mask);
        for (int i = k + lane; i < NV; i += LANES)
            qM[i * MSTRIDE + k] = (i == k) ? pivot : qM[i * MSTRIDE + k] * inverse;
        __syncwarp(mask);
        for (int i = k + 1 + lane; i < NV; i += LANES) {
            const float lik = qM[i * MSTRIDE + k];
            for (int j = k + 1; j <= i; ++j)
                qM[i * MSTRIDE + j] = fmaf(-lik, qM[j * MSTRIDE + k], qM[i * MSTRIDE + j]);
        }
        __syncwarp(mask);
    }
}
