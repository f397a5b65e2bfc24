// SPDX-License-Identifier: Apache-2.0
// What the kernels of cuda_ops/kernels/collective_progress.cu do, as host functions of the stream.
#include <cuda_runtime_api.h>

#include "cuda_ops/kernels/collective_progress.h"
#include "tests/simulated_cuda/kept.h"

namespace onnxtrain {
namespace {

struct Mark {
  ProgressCounters* counters;
  ProgressPage* page;
  uint64_t call;  // 0: completed
};

void Run(void* pointer) {
  const Mark& mark = *static_cast<const Mark*>(pointer);
  if (mark.call == 0) {
    __atomic_store_n(&mark.page->completed, ++mark.counters->completed, __ATOMIC_RELEASE);
    return;
  }
  const uint64_t number = ++mark.counters->started;
  __atomic_store_n(&mark.page->calls[number % kProgressCalls], mark.call, __ATOMIC_RELAXED);
  __atomic_store_n(&mark.page->started, number, __ATOMIC_RELEASE);
}

// A graph may run it again.
Mark* Kept(const Mark& mark) { return simulated_cuda::Keep(new Mark(mark)); }

}  // namespace

int MarkCollectiveStarted(ProgressCounters* counters, ProgressPage* page, uint64_t call, CUstream_st* stream) {
  return cudaLaunchHostFunc(stream, Run, Kept({counters, page, call}));
}

int MarkCollectiveCompleted(ProgressCounters* counters, ProgressPage* page, CUstream_st* stream) {
  return cudaLaunchHostFunc(stream, Run, Kept({counters, page, 0}));
}

}  // namespace onnxtrain
