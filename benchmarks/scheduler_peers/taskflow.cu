// Recorded calls through Taskflow: a `tf::cudaGraph` for each batch, with an edge for each wait.
#include <taskflow/cuda/cudaflow.hpp>

#include <array>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "calls.h"

static constexpr int MOST = 96;  // arguments of a call

template <size_t... I>
static tf::cudaTask task_of(tf::cudaGraph& graph, const Call& c, std::index_sequence<I...>) {
  return graph.kernel({c.grid[0], c.grid[1], c.grid[2]}, {c.block[0], c.block[1], c.block[2]}, c.shared, c.kernel,
                      c.arguments[I]...);
}

using Maker = tf::cudaTask (*)(tf::cudaGraph&, const Call&);

template <size_t N>
static tf::cudaTask with_arguments(tf::cudaGraph& graph, const Call& c) {
  return task_of(graph, c, std::make_index_sequence<N>());
}

template <size_t... N>
static constexpr std::array<Maker, sizeof...(N)> makers(std::index_sequence<N...>) {
  return {with_arguments<N + 1>...};
}

static constexpr auto MAKERS = makers(std::make_index_sequence<MOST>());

// The kernel of a name in machine code, which may ask for so much shared memory.
extern "C" const void* taskflow_kernel(const void* code, const char* name, int shared) {
  cudaLibrary_t library;
  cudaKernel_t kernel;
  if (cudaLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0) != cudaSuccess) return nullptr;
  if (cudaLibraryGetKernel(&kernel, library, name) != cudaSuccess) return nullptr;
  if (shared > 40 * 1024) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  return kernel;
}

SYSTEM taskflow_replay(const Program* program, int first, int last) try {
  tf::cudaStream stream;
  std::vector<tf::cudaTask> tasks;
  for (int b = program->steps[first]; b < program->steps[last]; ++b) {
    const Batch& batch = program->batches[b];
    tf::cudaGraph graph;
    tasks.clear();
    for (int i = 0; i < batch.count; ++i) {
      const Call& c = program->calls[batch.first + i];
      if (!c.kernel) return "a call has a kernel that the CUDA runtime does not know";
      if (c.num_arguments < 1 || c.num_arguments > MOST) return "a call has no arguments, or too many";
      tasks.push_back(MAKERS[c.num_arguments - 1](graph, c));
      for (int w = 0; w < c.num_waits; ++w) tasks[program->waits[c.first_wait + w]].precede(tasks[i]);
    }
    tf::cudaGraphExec ready(graph);
    stream.run(ready).synchronize();
  }
  return nullptr;
} catch (const std::exception& error) {
  static std::string what;
  what = error.what();
  return what.c_str();
}
