// SPDX-License-Identifier: Apache-2.0
// Faults that the sanitized builds must report at their lines, and the same kernels without them. Tests look for the
// lines by the words behind "planted:".
//
// Usage: planted_faults FAULT | clean
#include <cstdio>
#include <string>

#include "cuda_ops/device_code.h"

namespace onnxtrain::cuda_kernels {

constexpr int kThreads = 64;

template <bool kBarrier>
__global__ void ReadNeighbour(float* out) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (kBarrier) __syncthreads();
  out[threadIdx.x] = words[(threadIdx.x + 1) % kThreads];  // planted: missing_barrier
}

// The read of one round and the write of the next.
template <bool kBarrier>
__global__ void ReadInRounds(float* out) {
  __shared__ float word;
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) word = static_cast<float>(round);  // planted: missing_second_barrier
    __syncthreads();
    out[threadIdx.x] = word;
    if (kBarrier) __syncthreads();
  }
}

// Lanes meet in a shuffle, which orders no memory.
template <bool kBarrier>
__global__ void ReadLane(float* out) {
  __shared__ float words[32];
  words[threadIdx.x] = __shfl_xor_sync(0xffffffffu, static_cast<float>(threadIdx.x), 1);
  if (kBarrier) __syncwarp();
  out[threadIdx.x] = words[31 - threadIdx.x];  // planted: missing_warp_barrier
}

__global__ void Count(float* out) {
  out[0] += 1.0f;  // planted: unordered_sum
}

__global__ void CountBlocks(float* out) {
  if (threadIdx.x == 0) out[0] += 1.0f;  // planted: unordered_blocks
}

__global__ void Static(float* out, int beyond) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = 1.0f;
  __syncthreads();
  float* const start = words;
  start[threadIdx.x + beyond] = 2.0f;  // planted: static_shared
  out[threadIdx.x] = 1.0f;
}

__global__ void Dynamic(float* out, int beyond) {
  ONNXTRAIN_DYNAMIC_SHARED(float, words);
  words[threadIdx.x + beyond] = 2.0f;  // planted: dynamic_shared
  out[threadIdx.x] = 1.0f;
}

__global__ void Global(float* out, int beyond) { out[threadIdx.x + beyond] = 1.0f; }  // planted: global

}  // namespace onnxtrain::cuda_kernels

int main(int, char** arguments) {
  using namespace onnxtrain::cuda_kernels;
  const std::string fault = arguments[1];
  const auto has = [&](const char* name) { return fault == name; };
  float* const out = new float[kThreads]();
  if (has("missing_barrier")) {
    ONNXTRAIN_LAUNCH(ReadNeighbour<false>, 1, kThreads, 0, nullptr, out);
  } else {
    ONNXTRAIN_LAUNCH(ReadNeighbour<true>, 1, kThreads, 0, nullptr, out);
  }
  if (has("missing_second_barrier")) {
    ONNXTRAIN_LAUNCH(ReadInRounds<false>, 1, kThreads, 0, nullptr, out);
  } else {
    ONNXTRAIN_LAUNCH(ReadInRounds<true>, 1, kThreads, 0, nullptr, out);
  }
  if (has("missing_warp_barrier")) {
    ONNXTRAIN_LAUNCH(ReadLane<false>, 1, 32, 0, nullptr, out);
  } else {
    ONNXTRAIN_LAUNCH(ReadLane<true>, 1, 32, 0, nullptr, out);
  }
  ONNXTRAIN_LAUNCH(Count, 1, has("unordered_sum") ? 2 : 1, 0, nullptr, out);
  ONNXTRAIN_LAUNCH(CountBlocks, has("unordered_blocks") ? 2 : 1, 32, 0, nullptr, out);
  ONNXTRAIN_LAUNCH(Static, 1, kThreads, 0, nullptr, out, has("static_shared") ? 1 : 0);
  ONNXTRAIN_LAUNCH(Dynamic, 1, kThreads, kThreads * sizeof(float), nullptr, out, has("dynamic_shared") ? 1 : 0);
  ONNXTRAIN_LAUNCH(Global, 1, kThreads, 0, nullptr, out, has("global") ? 1 : 0);
  std::printf("%f\n", static_cast<double>(out[0]));
  delete[] out;
  return 0;
}
