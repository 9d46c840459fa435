// Small kernels around a count read-back: 16 counts summed by 16 warps, and time stamps on the GPU's clock.
__device__ inline unsigned long long globaltimer() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

// counts[warp] = sum of `per_count` entries of data. `sequence` (or null) is written after every count is visible
// to the host. The block's last act is its time stamp [ns] at stamps[2 * slot].
__global__ void count16(const int* data, int per_count, int* counts, volatile int* sequence, int number,
                        unsigned long long* stamps, int slot) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int sum = 0;
    for (int i = lane; i < per_count; i += 32) sum += data[warp * per_count + i];
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane == 0) {
        counts[warp] = sum;
        if (sequence) __threadfence_system();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (sequence) *sequence = number;
        stamps[2 * slot] = globaltimer();
    }
}

__global__ void stamp_start(unsigned long long* stamps, int slot) {
    if (threadIdx.x == 0) stamps[2 * slot + 1] = globaltimer();
}

__global__ void empty() {}

// Readings of the clock in a row, to learn its resolution.
__global__ void clock_readings(unsigned long long* stamps, int n) {
    for (int i = 0; i < n; ++i) stamps[i] = globaltimer();
}

// Kernels of 1, 8 and 24 pointer arguments; they read one word so that no argument is dropped.
__global__ void arguments1(int* a) { if (a[0] == -1) a[0] = 0; }
__global__ void arguments8(int* a, int* b, int* c, int* d, int* e, int* f, int* g, int* h) {
    if (a[0] == -1) b[0] = c[0] = d[0] = e[0] = f[0] = g[0] = h[0] = 0;
}
__global__ void arguments24(int* a, int* b, int* c, int* d, int* e, int* f, int* g, int* h, int* i, int* j, int* k,
                            int* l, int* m, int* n, int* o, int* p, int* q, int* r, int* s, int* t, int* u, int* v,
                            int* w, int* x) {
    if (a[0] == -1) {
        b[0] = c[0] = d[0] = e[0] = f[0] = g[0] = h[0] = i[0] = j[0] = k[0] = l[0] = m[0] = 0;
        n[0] = o[0] = p[0] = q[0] = r[0] = s[0] = t[0] = u[0] = v[0] = w[0] = x[0] = 0;
    }
}
