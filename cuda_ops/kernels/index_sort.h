// SPDX-License-Identifier: Apache-2.0
// A stable radix sort of 32-bit keys, each with its place: what deterministic sums over equal indices, and sorted
// lines, begin with. Work is linear in the number of keys: a pass for every 4 bits, of three launches each. No atomics,
// so the order of threads changes nothing.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_SORT_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_SORT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace onnxtrain {

// Keys and numbers of keys go up to here.
inline constexpr int64_t kMostSortedKeys = 2147483647;

// The keys and the places they came from, in workspace. Whoever sorts writes keys() and places() first.
struct StableSort {
  uint32_t* key_buffers[2] = {};  // `count` each
  uint32_t* place_buffers[2] = {};
  uint32_t* digit_counts = nullptr;
  int64_t count = 0;
  int current = 0;  // the buffers that hold the latest order

  uint32_t* keys() const { return key_buffers[current]; }
  uint32_t* places() const { return place_buffers[current]; }
};

// Bytes of workspace for `count` keys, and its division; `workspace` is aligned to 4 bytes.
size_t StableSortBytes(int64_t count);
StableSort MakeStableSort(void* workspace, int64_t count);

// Bits of keys from 0 to `largest`.
int KeyBits(int64_t largest);

// Orders keys and places by bits [first_bit, end_bit) of the keys; equal ones keep their order. Makes the buffers with
// the result current.
cudaError_t LaunchStableSort(int first_bit, int end_bit, StableSort* sort, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_SORT_H_
