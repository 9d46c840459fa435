// The portable kernel dialect: one source for the GPU (NVRTC) and the host (any C++17 compiler).
//
// A group of LANES lanes works on one unit, usually a world. Code consists of LANE_FOR loops separated by lane_sync().
// Reductions have a fixed order, so that results never depend on timing. The compilers must not contract
// multiplications and additions: then the same expression rounds in the same way in every kernel, and fma_() is written
// where it is wanted.
//
//   GPU          LANES threads of a warp; block = (LANES, worlds); collectives are masked to the group. With LANES > 32
//                the group is a whole block. As a task of the executor `device`, block = (32 or LANES), with 32 / LANES
//                worlds per tile. In a kernel of whole steps, the warps of all teams form a one-dimensional block.
//   host, 1      a plain loop, collectives are the identity
//   host, more   one thread per lane with barriers, for the thread sanitizer
//   host, tile   one lane that works on TILE worlds at once: a real number is a vector with one entry for each world,
//                see tile.h. Bodies of tiled kernels write select() where worlds may take different branches.
//
// Collectives: lane_sum is the sum over all lanes, lane_sums the same for several numbers at once, lane_most the
// largest x, and lane_least the smallest. lane_get is x of one lane. lane_scan is the sum over the lower lanes, and
// lane_rank the number of those with a flag; their total is that over all lanes. lane_sum_of_key is the sum over the
// lower lanes with the same key; its total is that over all lanes with the key, and `first` is true for the first of
// them. lane_get_int is lane_get of an integer, lane_ballot has a bit for each lane whose x is not zero, and lane_match
// for each lane with the same x; these three exist on the GPU only, for groups of at most 32 lanes. lower_at sets an
// integer in memory to the minimum of itself and x, and raise_bit sets one of its bits, atomically; the results do not
// depend on the order of the lanes. count_up adds one to an integer in memory, atomically, and returns what it was:
// that depends on the order, so it may say where something is put, but not what. bit_count is the number of bits that
// are set, and low_bit the lowest of them.
//
// The build defines REAL (float or double), REAL_IS_FLOAT and LANES. The collectives are in lanes_gpu.cuh and
// lanes_host.cuh, and real arithmetic is in scalars.cuh.
#pragma once

#ifndef TILE
typedef REAL real;
typedef bool truth;  // of a comparison of real numbers
#endif

#if defined(__CUDACC__)
// Bodies for workers are linked with bodies for other numbers of lanes, so their functions need internal linkage.
#ifdef AS_TASK
#define DEVICE static __device__ __forceinline__
#define DEVICE_CALL static DEVICE_CALLED
#define DEVICE_APART static __device__ __noinline__
#else
#define DEVICE __device__ __forceinline__
#define DEVICE_CALL DEVICE_CALLED
#define DEVICE_APART __device__ __noinline__
#endif
#ifdef ALL_INLINE
#define DEVICE_CALLED __device__ __forceinline__
#else
#define DEVICE_CALLED __device__ __noinline__
#endif
#define DEVICE_METHOD __device__ __forceinline__
#define GRID_CONSTANT __grid_constant__
#define SIMENGINE_GPU 1
#else
#ifndef HOST_MATH  // from host_math.h, which kernels have before this
#include <cmath>
#include <cstddef>
#include <cstdint>
#endif
#define DEVICE static inline
#define DEVICE_CALL static
#define DEVICE_APART static
#define DEVICE_METHOD inline
#define GRID_CONSTANT
#define SIMENGINE_GPU 0
#endif

// DEVICE_CALL is for large functions with several callers: inlined, they would exceed the instruction cache. A kernel
// that is small without them has ALL_INLINE. Then arrays in SHORT_LOOPs, of a fixed number of rounds, are in registers.
// DEVICE_APART is for large functions that are seldom called. They take and return structures by value: a structure
// whose address is given away is in memory everywhere.
//
// LANE_FOR divides a loop among the lanes. It is not unrolled, because kernels contain many such loops, and code that
// exceeds the instruction cache costs more than a branch. ROLLED has the same effect on a serial loop. The loads of
// four rounds of an OVERLAPPED loop overlap. An UNROLLED loop has a fixed number of rounds. DOF_FOR is for loops over
// nv: with fewer than 32 lanes, nv is at most LANES, so that a lane has at most one iteration.
#if SIMENGINE_GPU
#define ROLLED _Pragma("unroll 1")
#define OVERLAPPED _Pragma("unroll 4")
#define UNROLLED _Pragma("unroll")
#else
#define ROLLED
#define OVERLAPPED
#define UNROLLED
#endif
#ifdef ALL_INLINE
#define SHORT_LOOP UNROLLED
#else
#define SHORT_LOOP ROLLED
#endif
#define LANE_FOR(i, n) ROLLED for (int i = lane(); i < (n); i += LANES)
// The entries of a table of rows and columns, row by row, where `of_row` declares what the entries of row i share. A
// single lane computes that once for each row.
#if !SIMENGINE_GPU && LANES == 1
#define LANE_FOR_TABLE(i, rows, j, columns, of_row)                        \
  for (int i = 0, once_ = 1; i < (rows); ++i, once_ = 1)                   \
    for (of_row; once_; once_ = 0)                                         \
      for (int j = 0; j < (columns); ++j)
#else
#define LANE_FOR_TABLE(i, rows, j, columns, of_row)                                                             \
  ROLLED for (int entry_ = lane(), i, j, once_;                                                                 \
              entry_ < (rows) * (columns) && (i = entry_ / (columns), j = entry_ % (columns), once_ = 1, true); \
              entry_ += LANES)                                                                                  \
    for (of_row; once_; once_ = 0)
#endif
#define LANE_FOR_LOADS(i, n) OVERLAPPED for (int i = lane(); i < (n); i += LANES)
#if SIMENGINE_GPU && LANES < 32 && !defined(DOFS_BEYOND_LANES)
#define DOF_FOR(i, n) if (const int i = lane(); i < (n))
#else
#define DOF_FOR(i, n) LANE_FOR(i, n)
#endif
