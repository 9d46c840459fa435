// Recorded calls without a system: on one stream, and as CUDA graphs that are built for each batch.
#include <vector>

#include "calls.h"

#define CHECK(x) \
  if ((x) != CUDA_SUCCESS) return #x

SYSTEM stream_replay(const Program* program, int first, int last) {
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int b = program->steps[first]; b < program->steps[last]; ++b) {
    const Batch& batch = program->batches[b];
    for (int i = 0; i < batch.count; ++i) {
      const Call& c = program->calls[batch.first + i];
      Arguments arguments(c);
      CHECK(cuLaunchKernel(c.function, c.grid[0], c.grid[1], c.grid[2], c.block[0], c.block[1], c.block[2], c.shared,
                           stream, arguments.at, nullptr));
    }
    CHECK(cuStreamSynchronize(stream));
  }
  CHECK(cuStreamDestroy(stream));
  return nullptr;
}

SYSTEM graph_replay(const Program* program, int first, int last) {
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<CUgraphNode> nodes, before;
  for (int b = program->steps[first]; b < program->steps[last]; ++b) {
    const Batch& batch = program->batches[b];
    CUgraph graph;
    CHECK(cuGraphCreate(&graph, 0));
    nodes.resize(batch.count);
    for (int i = 0; i < batch.count; ++i) {
      const Call& c = program->calls[batch.first + i];
      Arguments arguments(c);
      CUDA_KERNEL_NODE_PARAMS node = {};
      node.func = c.function;
      node.gridDimX = c.grid[0], node.gridDimY = c.grid[1], node.gridDimZ = c.grid[2];
      node.blockDimX = c.block[0], node.blockDimY = c.block[1], node.blockDimZ = c.block[2];
      node.sharedMemBytes = c.shared;
      node.kernelParams = arguments.at;
      before.clear();
      for (int w = 0; w < c.num_waits; ++w) before.push_back(nodes[program->waits[c.first_wait + w]]);
      CHECK(cuGraphAddKernelNode(&nodes[i], graph, before.data(), before.size(), &node));
    }
    CUgraphExec ready;
    CHECK(cuGraphInstantiate(&ready, graph, 0));
    CHECK(cuGraphLaunch(ready, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(ready));
    CHECK(cuGraphDestroy(graph));
  }
  CHECK(cuStreamDestroy(stream));
  return nullptr;
}
