// Recorded calls through CUDASTF, which infers from what a task touches what it must wait for: as they come on streams,
// or as a graph for each batch.
#include <cccl/c/experimental/stf/stf.h>

#include <vector>

#include "calls.h"

using Tokens = std::vector<stf_logical_data_handle>;

static void submit(stf_ctx_handle context, Tokens& tokens, const Program* program, const Call& c) {
  stf_cuda_kernel_handle task = stf_cuda_kernel_create(context);
  for (int i = 0; i < c.num_tokens; ++i) {
    const int token = program->tokens[c.first_token + i];
    if (!tokens[token / 2]) tokens[token / 2] = stf_token(context);
    stf_cuda_kernel_add_dep(task, tokens[token / 2], token % 2 ? STF_RW : STF_READ);
  }
  const Arguments arguments(c);
  stf_cuda_kernel_start(task);
  stf_cuda_kernel_add_desc_cufunc(task, c.function, dim3(c.grid[0], c.grid[1], c.grid[2]),
                                  dim3(c.block[0], c.block[1], c.block[2]), c.shared, c.num_arguments,
                                  const_cast<const void**>(arguments.at));
  stf_cuda_kernel_end(task);
  stf_cuda_kernel_destroy(task);
}

static void forget(Tokens& tokens) {
  for (auto& token : tokens)
    if (token) stf_logical_data_destroy(token), token = nullptr;
}

SYSTEM cudastf_stream_replay(const Program* program, int first, int last) {
  stf_ctx_handle context = stf_ctx_create();
  Tokens tokens(program->num_tokens, nullptr);
  for (int b = program->steps[first]; b < program->steps[last]; ++b) {
    const Batch& batch = program->batches[b];
    for (int i = 0; i < batch.count; ++i) submit(context, tokens, program, program->calls[batch.first + i]);
    if (cudaStreamSynchronize(stf_fence(context)) != cudaSuccess) return "wait";
  }
  forget(tokens);
  stf_ctx_finalize(context);
  return nullptr;
}

SYSTEM cudastf_graph_replay(const Program* program, int first, int last) {
  static stf_async_resources_handle resources = stf_async_resources_create();  // keeps graphs, and updates them
  Tokens tokens(program->num_tokens, nullptr);
  for (int b = program->steps[first]; b < program->steps[last]; ++b) {
    const Batch& batch = program->batches[b];
    const stf_ctx_options options = {STF_BACKEND_GRAPH, 0, nullptr, resources};
    stf_ctx_handle context = stf_ctx_create_ex(&options);
    for (int i = 0; i < batch.count; ++i) submit(context, tokens, program, program->calls[batch.first + i]);
    forget(tokens);
    stf_ctx_finalize(context);  // waits for the graph
  }
  return nullptr;
}
