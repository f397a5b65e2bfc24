// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/device_code.h"
#include "cuda_ops/kernels/collective_progress.h"

namespace onnxtrain {
namespace cuda_kernels {

// For the host, which polls.
__device__ inline void Publish(uint64_t* to, uint64_t value) {
#if defined(__CUDA_ARCH__)
  __threadfence_system();
  *static_cast<volatile uint64_t*>(to) = value;
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

__global__ void __launch_bounds__(1) CollectiveStarted(ProgressCounters* counters, ProgressPage* page, uint64_t call) {
  const uint64_t number = ++counters->started;
  Publish(&page->calls[number % kProgressCalls], call);
  Publish(&page->started, number);
}

__global__ void __launch_bounds__(1) CollectiveCompleted(ProgressCounters* counters, ProgressPage* page) {
  Publish(&page->completed, ++counters->completed);
}

}  // namespace cuda_kernels

int MarkCollectiveStarted(ProgressCounters* counters, ProgressPage* page, uint64_t call, CUstream_st* stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::CollectiveStarted, 1, 1, 0, stream, counters, page, call);
}

int MarkCollectiveCompleted(ProgressCounters* counters, ProgressPage* page, CUstream_st* stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::CollectiveCompleted, 1, 1, 0, stream, counters, page);
}

}  // namespace onnxtrain
