// Recorded calls, as a program in C++ that issues them would have them. `recording.py` fills these structures.
#pragma once
#include <cuda.h>

struct Call {
  CUfunction function;
  const void* kernel;  // the same function by its library, for the interface of the CUDA runtime
  unsigned grid[3], block[3];
  unsigned shared;    // bytes
  int num_arguments;  // each has a word of 8 bytes
  const unsigned long long* arguments;
  int first_wait, num_waits;    // calls of its batch that it must come directly after, as positions in the batch
  int first_token, num_tokens;  // what it touches: twice a token, and one more if it writes
};

// Calls between two waits of the host.
struct Batch {
  int first, count;
};

struct Program {
  const Call* calls;
  const int* waits;
  const int* tokens;
  const Batch* batches;
  const int* steps;  // by step, its first batch; one more at the end
  int num_tokens;
};

// Pointers to the arguments of a call, as a launch takes them.
struct Arguments {
  void* at[128];
  explicit Arguments(const Call& call) {
    for (int i = 0; i < call.num_arguments; ++i) at[i] = const_cast<unsigned long long*>(call.arguments + i);
  }
};

// A system issues steps `first` to `last - 1`, waits for the device after each batch, and returns 0, or what failed.
#define SYSTEM extern "C" const char*
