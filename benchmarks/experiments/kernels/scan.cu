// Exclusive scan of K integer columns over W worlds, counts[column][world], one block of 1024 threads a column.
// W must be a multiple of 4 (int4 loads). COMPACT: the same pass also lists, in order, the worlds with an entry.

// COMPACT carries two sums in one word: entries in the low half, worlds with an entry in the high half.
template <bool COMPACT> struct Sum { typedef unsigned int type; };
template <> struct Sum<true> { typedef unsigned long long type; };

template <bool COMPACT>
__global__ void scan_columns(const int4* counts, int4* offsets, int* totals, int* listed, int* nlisted, int nworld) {
    typedef typename Sum<COMPACT>::type T;
    __shared__ T warp_sums[32];
    const int column = blockIdx.x, tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int n4 = nworld / 4;
    counts += column * n4, offsets += column * n4, listed += column * nworld;
    T carry = 0;
    for (int first = 0; first < n4; first += 1024) {
        const int i = first + tid;
        const int4 c = (i < n4) ? counts[i] : make_int4(0, 0, 0, 0);
        T own = (unsigned int)(c.x + c.y + c.z + c.w);
        if (COMPACT) own += (T)((c.x != 0) + (c.y != 0) + (c.z != 0) + (c.w != 0)) << (COMPACT ? 32 : 0);
        T sum = own;
        for (int d = 1; d < 32; d <<= 1) {
            const T below = __shfl_up_sync(0xffffffffu, sum, d);
            if (lane >= d) sum += below;
        }
        if (lane == 31) warp_sums[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            T s = warp_sums[lane];
            for (int d = 1; d < 32; d <<= 1) {
                const T below = __shfl_up_sync(0xffffffffu, s, d);
                if (lane >= d) s += below;
            }
            warp_sums[lane] = s;
        }
        __syncthreads();
        const T before = carry + (warp ? warp_sums[warp - 1] : 0) + sum - own;
        carry += warp_sums[31];
        __syncthreads();  // warp_sums is overwritten by the next chunk
        if (i < n4) {
            const int o = (int)(unsigned int)before;
            offsets[i] = make_int4(o, o + c.x, o + c.x + c.y, o + c.x + c.y + c.z);
            if (COMPACT) {
                int at = (int)(before >> (COMPACT ? 32 : 0));
                if (c.x) listed[at++] = 4 * i;
                if (c.y) listed[at++] = 4 * i + 1;
                if (c.z) listed[at++] = 4 * i + 2;
                if (c.w) listed[at++] = 4 * i + 3;
            }
        }
    }
    if (tid == 0) {
        totals[column] = (int)(unsigned int)carry;
        if (COMPACT) nlisted[column] = (int)(carry >> (COMPACT ? 32 : 0));
    }
}
