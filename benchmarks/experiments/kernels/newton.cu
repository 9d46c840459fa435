// The dense work of one Newton iteration: H = M + J' D J over a world's rows, H = L L', H x = g. nv = NV <= 16.
// Lane i of a world's 16 holds row i of H in registers. With LANES = 32 two half-warps share the rows of J and
// then factor the same H twice, so that no exchange is needed.
//
// J: [world][max_rows][16], row stride 16 floats (the last two are zero); D: [world][max_rows]; M: [world][NV][NV];
// g, x: [world][16]. worlds[k]: the world that group k works on; nefc[world]: its rows, at most rows_shared.
// Shared floats a world: 17 * rows_shared + 20 (J, D, and one column of L; the 20 spreads worlds over the banks).

// Entry j of the column held one entry a lane: by shuffles, or read back from shared memory as a broadcast.
template <bool SHARED_COLUMN>
__device__ inline void spread_column(float own, int row, int half, unsigned mask, float* shared_column, float* column) {
    if (SHARED_COLUMN) {
        __syncwarp(mask);
        if (half == 0) shared_column[row] = own;
        __syncwarp(mask);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float4 c = reinterpret_cast<const float4*>(shared_column)[j];
            column[4 * j] = c.x, column[4 * j + 1] = c.y, column[4 * j + 2] = c.z, column[4 * j + 3] = c.w;
        }
    } else {
#pragma unroll
        for (int j = 0; j < NV; ++j) column[j] = __shfl_sync(mask, own, j, 16);
    }
}

template <int LANES, bool SHARED_COLUMN>
__global__ void newton(const float4* J, const float* D, const float* M, const float* g, float* x, const int* worlds,
                       const int* nefc, int nworld, int max_rows, int rows_shared, int iterations) {
    extern __shared__ float shared[];
    const int t = blockIdx.x * blockDim.x + threadIdx.x, k = t / LANES, lane = t % LANES;
    if (k >= nworld) return;
    const unsigned mask = group_mask<LANES>();
    const int w = worlds[k], rows = nefc[w], row = lane % 16, half = lane / 16;
    float* sJ = shared + (threadIdx.x / LANES) * (17 * rows_shared + 20);
    float* sD = sJ + 16 * rows_shared;
    float* sL = sD + rows_shared;
    for (int i = lane; i < 4 * rows; i += LANES) reinterpret_cast<float4*>(sJ)[i] = J[w * max_rows * 4 + i];
    for (int i = lane; i < rows; i += LANES) sD[i] = D[w * max_rows + i];
    float m[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j) m[j] = (row < NV) ? M[(w * NV + row) * NV + j] : 0.0f;
    const float rhs = (row < NV) ? g[w * 16 + row] : 0.0f;
    __syncwarp(mask);

    float y = 0.0f;
    for (int it = 0; it < iterations; ++it) {
        // (1) H = M + J' D J. The last solution enters D slightly, so that iterations depend on each other.
        const float scale = fmaf(__shfl_sync(mask, y, 0, 16), 1e-6f, 1.0f);
        float h[NV];
#pragma unroll
        for (int j = 0; j < NV; ++j) h[j] = (half == 0) ? m[j] : 0.0f;
        for (int r = half; r < rows; r += LANES / 16) {
            const float dj = scale * sD[r] * sJ[16 * r + row];
            const float4* jr = reinterpret_cast<const float4*>(sJ + 16 * r);
            float c[16];
#pragma unroll
            for (int q = 0; q < (NV + 3) / 4; ++q) {
                const float4 v = jr[q];
                c[4 * q] = v.x, c[4 * q + 1] = v.y, c[4 * q + 2] = v.z, c[4 * q + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < NV; ++j) h[j] = fmaf(dj, c[j], h[j]);
        }
        if (LANES == 32) {
#pragma unroll
            for (int j = 0; j < NV; ++j) h[j] += __shfl_xor_sync(mask, h[j], 16);
        }
        // (2) Cholesky, lane = row. Row p's upper part, free from step p on, takes column p of L for step (4).
        float inverse_pivot = 0.0f;
#pragma unroll
        for (int p = 0; p < NV; ++p) {
            const float inverse = 1.0f / sqrtf(__shfl_sync(mask, h[p], p, 16));
            const float lip = h[p] * inverse;
            float column[16];
            spread_column<SHARED_COLUMN>(lip, row, half, mask, sL, column);
            if (row == p) inverse_pivot = inverse;
            if (row > p) h[p] = lip;
#pragma unroll
            for (int j = p + 1; j < NV; ++j)
                h[j] = (row == p) ? column[j] : (row > p) ? fmaf(-lip, column[j], h[j]) : h[j];
        }
        // (3) L y = g
        y = rhs;
#pragma unroll
        for (int p = 0; p < NV; ++p) {
            const float yp = __shfl_sync(mask, y * inverse_pivot, p, 16);
            y = (row == p) ? yp : (row > p) ? fmaf(-h[p], yp, y) : y;
        }
        // (4) L' x = y
#pragma unroll
        for (int p = NV - 1; p >= 0; --p) {
            const float xp = __shfl_sync(mask, y * inverse_pivot, p, 16);
            y = (row == p) ? xp : (row < p) ? fmaf(-h[p], xp, y) : y;
        }
    }
    if (half == 0) x[w * 16 + row] = (row < NV) ? y : 0.0f;
}
