// SPDX-License-Identifier: Apache-2.0
// How far a rank's collectives have come, written by its stream where the host can read it without a CUDA call.
//
// A one-thread kernel before and one behind each collective counts in device memory and copies the count into
// page-locked memory. A kernel, since both are legal in a capture and count again with every replay of the graph, which
// neither a copied constant nor a stream write does; a host function would do so too, but stops the stream until a
// driver thread has run it.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_COLLECTIVE_PROGRESS_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_COLLECTIVE_PROGRESS_H_

#include <cstdint>

struct CUstream_st;  // cudaStream_t points to it

namespace onnxtrain {

inline constexpr int kProgressCalls = 32;

// In page-locked, mapped memory; zero at first. The device writes, the host reads with atomic loads.
struct ProgressPage {
  uint64_t started = 0;  // collectives that the stream has reached
  uint64_t completed = 0;
  uint64_t calls[kProgressCalls] = {};  // CollectiveCall::Pack of the started ones; number n (from 1) at n % 32
};

// In device memory; zero at first.
struct ProgressCounters {
  uint64_t started = 0;
  uint64_t completed = 0;
};

// Both return a cudaError_t. `page` is the device's address of the page. One stream at a time uses a pair of them.
int MarkCollectiveStarted(ProgressCounters* counters, ProgressPage* page, uint64_t call, CUstream_st* stream);
int MarkCollectiveCompleted(ProgressCounters* counters, ProgressPage* page, CUstream_st* stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_COLLECTIVE_PROGRESS_H_
