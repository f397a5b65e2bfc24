// SPDX-License-Identifier: Apache-2.0
// A stable radix sort (Knuth, The Art of Computer Programming 3, 5.2.5), least significant digit first. A block orders
// a tile of keys: each thread counts the digits of some neighbouring keys, a sum over (digit, thread) gives each
// thread's first place for each digit, and a sum over (digit, tile) each tile's.
#include "cuda_ops/kernels/block_prefix.h"
#include "cuda_ops/kernels/index_sort.h"

namespace onnxtrain {
namespace cuda_kernels {

inline constexpr int kDigitBits = 4;
inline constexpr unsigned kDigits = 1u << kDigitBits;
inline constexpr unsigned kThreadKeys = 8;
inline constexpr int64_t kTileKeys = int64_t{kThreadKeys} * kBlockThreads;
inline constexpr unsigned kScanned = 16;  // counts a thread of SumDigitCounts takes at a time

__device__ inline unsigned DigitOf(uint32_t key, int shift) { return key >> shift & (kDigits - 1); }

// of[digit * kBlockThreads + thread] becomes the number of keys of the tile that come before the thread's first one of
// that digit. Returns with all threads beyond a barrier.
__device__ inline void TileStarts(const uint32_t* keys, int64_t begin, int64_t end, int shift, uint16_t* of) {
  const unsigned thread = threadIdx.x;
  for (unsigned digit = 0; digit < kDigits; ++digit) of[digit * kBlockThreads + thread] = 0;
  for (int64_t i = begin + thread * kThreadKeys; i < begin + (thread + 1) * kThreadKeys && i < end; ++i) {
    ++of[DigitOf(keys[i], shift) * kBlockThreads + thread];
  }
  __syncthreads();
  uint16_t* const mine = of + thread * kDigits;
  unsigned sum = 0;
  for (unsigned i = 0; i < kDigits; ++i) sum += mine[i];
  unsigned before = BlockPrefix(sum).before;
  for (unsigned i = 0; i < kDigits; ++i) {
    const unsigned count = mine[i];
    mine[i] = static_cast<uint16_t>(before);
    before += count;
  }
  __syncthreads();
}

// digit_counts [digit, tile]
__global__ void __launch_bounds__(kBlockThreads)
    CountDigits(const uint32_t* keys, int64_t count, int shift, int64_t tiles, uint32_t* digit_counts) {
  __shared__ uint16_t starts[kDigits * kBlockThreads];
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t begin = tile * kTileKeys;
    const int64_t end = begin + kTileKeys < count ? begin + kTileKeys : count;
    TileStarts(keys, begin, end, shift, starts);
    const unsigned digit = threadIdx.x;
    if (digit < kDigits) {
      const int64_t next = digit + 1 < kDigits ? starts[(digit + 1) * kBlockThreads] : end - begin;
      digit_counts[digit * tiles + tile] = static_cast<uint32_t>(next - starts[digit * kBlockThreads]);
    }
    __syncthreads();  // before the next tile's counts
  }
}

// Each count becomes the sum of those before it. One block.
__global__ void __launch_bounds__(kBlockThreads) SumDigitCounts(uint32_t* counts, int64_t count) {
  uint32_t carried = 0;
  for (int64_t base = 0; base < count; base += int64_t{kScanned} * kBlockThreads) {
    const int64_t first = base + threadIdx.x * kScanned;
    const int64_t end = first + kScanned < count ? first + kScanned : count;
    uint32_t sum = 0;
    for (int64_t i = first; i < end; ++i) sum += counts[i];
    const Prefix<uint32_t> prefix = BlockPrefix(sum);
    uint32_t before = carried + prefix.before;
    for (int64_t i = first; i < end; ++i) {
      const uint32_t here = counts[i];
      counts[i] = before;
      before += here;
    }
    carried += prefix.total;
  }
}

struct KeysAndPlaces {
  uint32_t* keys;
  uint32_t* places;
};

__global__ void __launch_bounds__(kBlockThreads) PlaceKeys(KeysAndPlaces from, KeysAndPlaces to, int64_t count,
                                                           int shift, int64_t tiles, const uint32_t* digit_counts) {
  __shared__ uint16_t starts[kDigits * kBlockThreads];
  __shared__ uint16_t of_tile[kDigits];
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t begin = tile * kTileKeys;
    const int64_t end = begin + kTileKeys < count ? begin + kTileKeys : count;
    TileStarts(from.keys, begin, end, shift, starts);
    if (threadIdx.x < kDigits) of_tile[threadIdx.x] = starts[threadIdx.x * kBlockThreads];
    __syncthreads();
    const int64_t first = begin + threadIdx.x * kThreadKeys;
    for (int64_t i = first; i < first + kThreadKeys && i < end; ++i) {
      const uint32_t key = from.keys[i];
      const unsigned digit = DigitOf(key, shift);
      const unsigned within = starts[digit * kBlockThreads + threadIdx.x]++;
      const int64_t at = static_cast<int64_t>(digit_counts[digit * tiles + tile]) + within - of_tile[digit];
      to.keys[at] = key;
      to.places[at] = from.places[i];
    }
    __syncthreads();  // before the next tile's digits
  }
}

inline int64_t Tiles(int64_t count) { return (count + kTileKeys - 1) / kTileKeys; }

}  // namespace cuda_kernels

size_t StableSortBytes(int64_t count) {
  return sizeof(uint32_t) * static_cast<size_t>(4 * count + cuda_kernels::kDigits * cuda_kernels::Tiles(count));
}

StableSort MakeStableSort(void* workspace, int64_t count) {
  auto* const words = static_cast<uint32_t*>(workspace);
  StableSort sort;
  sort.key_buffers[0] = words;
  sort.key_buffers[1] = words + count;
  sort.place_buffers[0] = words + 2 * count;
  sort.place_buffers[1] = words + 3 * count;
  sort.digit_counts = words + 4 * count;
  sort.count = count;
  return sort;
}

int KeyBits(int64_t largest) {
  int bits = 0;
  while (largest >> bits != 0) ++bits;
  return bits;
}

cudaError_t LaunchStableSort(int first_bit, int end_bit, StableSort* sort, cudaStream_t stream) {
  if (sort->count == 0) return cudaSuccess;
  const int64_t tiles = cuda_kernels::Tiles(sort->count);
  for (int shift = first_bit; shift < end_bit; shift += cuda_kernels::kDigitBits) {
    const int next = 1 - sort->current;
    cudaError_t error = ONNXTRAIN_LAUNCH(cuda_kernels::CountDigits, RowBlocks(tiles), kBlockThreads, 0, stream,
                                         sort->keys(), sort->count, shift, tiles, sort->digit_counts);
    if (error != cudaSuccess) return error;
    error = ONNXTRAIN_LAUNCH(cuda_kernels::SumDigitCounts, 1, kBlockThreads, 0, stream, sort->digit_counts,
                             int64_t{cuda_kernels::kDigits} * tiles);
    if (error != cudaSuccess) return error;
    error = ONNXTRAIN_LAUNCH(cuda_kernels::PlaceKeys, RowBlocks(tiles), kBlockThreads, 0, stream,
                             cuda_kernels::KeysAndPlaces{sort->keys(), sort->places()},
                             cuda_kernels::KeysAndPlaces{sort->key_buffers[next], sort->place_buffers[next]},
                             sort->count, shift, tiles, sort->digit_counts);
    if (error != cudaSuccess) return error;
    sort->current = next;
  }
  return cudaSuccess;
}

}  // namespace onnxtrain
