// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/index_sort.h"

#include <utility>

#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "runtime/kernel_fault.h"

namespace onnxtrain {
namespace cuda_kernels {

constexpr int kDigitBits = 8;
constexpr unsigned kDigits = 1u << kDigitBits;
static_assert(kDigits == kBlockThreads);  // a thread a digit

__device__ inline unsigned DigitOf(uint32_t key, int shift) { return key >> shift & (kDigits - 1); }

__global__ void __launch_bounds__(kBlockThreads) IndexKeys(IndexSortArguments a, uint32_t* keys, uint32_t* places) {
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    const int64_t given = a.index_dtype == DType::kInt32 ? static_cast<const int32_t*>(a.indices)[i]
                                                         : static_cast<const int64_t*>(a.indices)[i];
    const int64_t index = given < 0 ? given + a.size : given;
    const bool inside = index >= 0 && index < a.size;
    if (!inside) ReportFault(a.status_word, static_cast<uint32_t>(DeviceFault::kIndexOutOfRange), a.node_index);
    keys[i] = static_cast<uint32_t>(inside ? index : a.size);
    places[i] = static_cast<uint32_t>(i);
  }
}

// table[digit * tiles + tile]: how often the digit occurs in the tile. A block a tile.
__global__ void __launch_bounds__(kBlockThreads)
    CountDigits(const uint32_t* keys, int64_t count, int shift, uint32_t* table, unsigned tiles) {
  __shared__ unsigned digits[kBlockThreads];
  const int64_t i = FirstElement();
  digits[threadIdx.x] = i < count ? DigitOf(keys[i], shift) : kDigits;
  __syncthreads();
  uint32_t found = 0;
  for (unsigned other = 0; other < kBlockThreads; ++other) found += digits[other] == threadIdx.x ? 1 : 0;
  table[threadIdx.x * tiles + blockIdx.x] = found;
}

// Every entry becomes the sum of those before it. One block; a thread takes a run of entries.
__global__ void __launch_bounds__(kBlockThreads) SumBefore(uint32_t* table, int64_t entries) {
  __shared__ uint32_t sums[kBlockThreads];
  const int64_t each = (entries + kBlockThreads - 1) / kBlockThreads;
  const int64_t begin = threadIdx.x * each;
  const int64_t end = begin + each < entries ? begin + each : entries;
  uint32_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += table[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  uint32_t before = 0;
  for (unsigned other = 0; other < threadIdx.x; ++other) before += sums[other];
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t mine = table[i];
    table[i] = before;
    before += mine;
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    MoveByDigit(const uint32_t* keys, const uint32_t* places, int64_t count, int shift, const uint32_t* table,
                unsigned tiles, uint32_t* to_keys, uint32_t* to_places) {
  __shared__ unsigned digits[kBlockThreads];
  const int64_t i = FirstElement();
  const uint32_t key = i < count ? keys[i] : 0;
  const unsigned digit = i < count ? DigitOf(key, shift) : kDigits;
  digits[threadIdx.x] = digit;
  __syncthreads();
  if (i >= count) return;
  uint32_t rank = 0;
  for (unsigned other = 0; other < threadIdx.x; ++other) rank += digits[other] == digit ? 1 : 0;
  const uint32_t to = table[digit * tiles + blockIdx.x] + rank;
  to_keys[to] = key;
  to_places[to] = places[i];
}

}  // namespace cuda_kernels

namespace {

int64_t Tiles(int64_t count) { return (count + kBlockThreads - 1) / kBlockThreads; }
// In words, so that arrays behind each other stay 16-byte aligned.
int64_t Rounded(int64_t words) { return (words + 3) / 4 * 4; }

}  // namespace

size_t IndexSortWorkspace(int64_t count) {
  return sizeof(uint32_t) * static_cast<size_t>(4 * Rounded(count) + Tiles(count) * cuda_kernels::kDigits);
}

cudaError_t LaunchIndexSort(const IndexSortArguments& a, void* workspace, SortedIndices* sorted, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  auto* keys = static_cast<uint32_t*>(workspace);
  uint32_t* places = keys + Rounded(a.count);
  uint32_t* other_keys = places + Rounded(a.count);
  uint32_t* other_places = other_keys + Rounded(a.count);
  uint32_t* const table = other_places + Rounded(a.count);
  const auto tiles = static_cast<unsigned>(Tiles(a.count));
  cudaError_t error =
      ONNXTRAIN_LAUNCH(cuda_kernels::IndexKeys, ElementBlocks(a.count), kBlockThreads, 0, stream, a, keys, places);
  for (int shift = 0; shift < 32 && (a.size >> shift) != 0; shift += cuda_kernels::kDigitBits) {
    if (error == cudaSuccess) {
      error = ONNXTRAIN_LAUNCH(cuda_kernels::CountDigits, tiles, kBlockThreads, 0, stream, keys, a.count, shift, table,
                               tiles);
    }
    if (error == cudaSuccess) {
      error = ONNXTRAIN_LAUNCH(cuda_kernels::SumBefore, 1, kBlockThreads, 0, stream, table,
                               int64_t{tiles} * cuda_kernels::kDigits);
    }
    if (error == cudaSuccess) {
      error = ONNXTRAIN_LAUNCH(cuda_kernels::MoveByDigit, tiles, kBlockThreads, 0, stream, keys, places, a.count, shift,
                               table, tiles, other_keys, other_places);
    }
    std::swap(keys, other_keys);
    std::swap(places, other_places);
  }
  *sorted = {keys, places};
  return error;
}

}  // namespace onnxtrain
