// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/index_sort.h"
#include "cuda_ops/kernels/row_reduce.h"
#include "cuda_ops/kernels/top_k.h"

namespace onnxtrain {
namespace cuda_kernels {

// Unsigned integers in the order of the values: the bits of a negative number are all turned, those of another get the
// sign bit. Zeros are one, and NaNs are one above infinity.
__device__ inline uint32_t OrderedBits(float value) {
  if (value != value) return 0xffffffffu;
  const uint32_t bits = value == 0 ? 0 : __builtin_bit_cast(uint32_t, value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline uint64_t OrderedBits(double value) {
  if (value != value) return ~uint64_t{0};
  const uint64_t bits = value == 0 ? 0 : __builtin_bit_cast(uint64_t, value);
  return (bits >> 63) != 0 ? ~bits : bits | uint64_t{1} << 63;
}
__device__ inline uint64_t OrderedBits(const void* x, DType dtype, int64_t at) {
  switch (dtype) {
    case DType::kDouble:
      return OrderedBits(static_cast<const double*>(x)[at]);
    case DType::kInt32:
      return static_cast<uint32_t>(static_cast<const int32_t*>(x)[at]) ^ 0x80000000u;
    case DType::kInt64:
      return static_cast<uint64_t>(static_cast<const int64_t*>(x)[at]) ^ uint64_t { 1 } << 63;
    default:
      return OrderedBits(LoadFloat(x, dtype, at));
  }
}

// Elements are numbered line by line. Where element `place` lies.
struct LineOrder {
  Divisor by_length;
  Divisor by_inner;

  __device__ int64_t At(int64_t place) const {
    int64_t outer = place;
    const int64_t i = by_length.Split(&outer);
    const int64_t within = by_inner.Split(&outer);
    return (outer * by_length.value() + i) * by_inner.value() + within;
  }
};

// Half a key of each place: `shift` is 0 or 32. The first time places are those of the lines themselves.
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    TopKKeys(TopKArguments a, LineOrder order, int shift, bool first, int64_t count, uint32_t* keys, uint32_t* places) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    if (first) places[i] = static_cast<uint32_t>(i);
    const uint64_t bits = OrderedBits(a.x, a.dtype, order.At(places[i]));
    keys[i] = static_cast<uint32_t>((a.largest ? ~bits : bits) >> shift);
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    LineKeys(Divisor by_length, int64_t count, const uint32_t* places, uint32_t* keys) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    keys[i] = static_cast<uint32_t>(by_length.Quotient(places[i]));
  }
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    TakeFirst(TopKArguments a, LineOrder order, Divisor by_kept, const uint32_t* places) {
  const int64_t total = a.outer * a.kept * a.inner;
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t outer = i;
    const int64_t within = order.by_inner.Split(&outer);
    const int64_t rank = by_kept.Split(&outer);
    const int64_t line = outer * a.inner + within;
    const int64_t place = places[line * a.length + rank];
    if (a.values != nullptr) static_cast<Bits*>(a.values)[i] = static_cast<const Bits*>(a.x)[order.At(place)];
    if (a.indices != nullptr) a.indices[i] = place - line * a.length;
  }
}

// A value's order in the high bits would not leave room for its index: both travel.
struct Candidate {
  uint64_t bits;
  int64_t index;  // -1: none
};

__device__ inline bool Before(const Candidate& a, const Candidate& b, bool last) {
  if (b.index < 0 || a.index < 0) return a.index >= 0;
  if (a.bits != b.bits) return a.bits > b.bits;
  return last ? a.index > b.index : a.index < b.index;
}

// The best of a warp, for every thread of it.
__device__ inline Candidate WarpBest(Candidate best, bool last) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const Candidate other{__shfl_xor_sync(0xffffffffu, best.bits, distance),
                          __shfl_xor_sync(0xffffffffu, best.index, distance)};
    if (Before(other, best, last)) best = other;
  }
  return best;
}

// A warp a line.
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    ArgExtremum(ArgExtremumArguments a, Divisor by_inner) {
  for (int64_t line = WarpRows::FirstRow(); line < a.outer * a.inner; line += WarpRows::RowStride()) {
    int64_t outer = line;
    const int64_t within = by_inner.Split(&outer);
    Candidate best{0, -1};
    for (int64_t i = WarpRows::Thread(); i < a.length; i += 32) {
      const uint64_t bits = OrderedBits(a.x, a.dtype, (outer * a.length + i) * a.inner + within);
      const Candidate candidate{a.largest ? bits : ~bits, i};
      if (Before(candidate, best, a.last)) best = candidate;
    }
    best = WarpBest(best, a.last);
    if (WarpRows::Thread() == 0) a.y[line] = best.index;
  }
}

// The bits of a key that differ: the low ones of 16-bit floats, seen as float, follow from their sign.
struct KeyRange {
  int first;
  int end;
};
inline KeyRange KeyRangeOf(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
    case DType::kInt64:
      return {0, 64};
    case DType::kBfloat16:
      return {16, 32};
    case DType::kFloat16:
      return {12, 32};
    default:
      return {0, 32};
  }
}

// Places in the order of the values of all lines, then, stable, of the lines.
inline cudaError_t SortLines(const TopKArguments& a, const LineOrder& order, StableSort* sort, cudaStream_t stream) {
  const KeyRange range = KeyRangeOf(a.dtype);
  const unsigned blocks = ElementBlocks(sort->count);
  for (int shift = 0; shift < range.end; shift += 32) {
    cudaError_t error = ONNXTRAIN_LAUNCH(TopKKeys, blocks, kBlockThreads, 0, stream, a, order, shift, shift == 0,
                                         sort->count, sort->keys(), sort->places());
    if (error == cudaSuccess) error = LaunchStableSort(range.first, 32, sort, stream);
    if (error != cudaSuccess) return error;
  }
  const cudaError_t error = ONNXTRAIN_LAUNCH(LineKeys, blocks, kBlockThreads, 0, stream, order.by_length, sort->count,
                                             sort->places(), sort->keys());
  return error == cudaSuccess ? LaunchStableSort(0, KeyBits(a.outer * a.inner - 1), sort, stream) : error;
}

template <typename Bits>
cudaError_t LaunchTakeFirst(const TopKArguments& a, const LineOrder& order, const StableSort& sort,
                            cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(TakeFirst<Bits>, ElementBlocks(a.outer * a.kept * a.inner), kBlockThreads, 0, stream, a,
                          order, Divisor(a.kept), sort.places());
}

}  // namespace cuda_kernels

size_t TopKBytes(const TopKArguments& a) { return StableSortBytes(a.outer * a.length * a.inner); }

cudaError_t LaunchTopK(const TopKArguments& a, void* workspace, cudaStream_t stream) {
  if (a.outer * a.kept * a.inner == 0) return cudaSuccess;
  StableSort sort = MakeStableSort(workspace, a.outer * a.length * a.inner);
  if (sort.count > kMostSortedKeys) return cudaErrorInvalidValue;
  const cuda_kernels::LineOrder order{Divisor(a.length), Divisor(a.inner)};
  const cudaError_t error = cuda_kernels::SortLines(a, order, &sort, stream);
  if (error != cudaSuccess) return error;
  switch (SizeOf(a.dtype)) {
    case 2:
      return cuda_kernels::LaunchTakeFirst<uint16_t>(a, order, sort, stream);
    case 4:
      return cuda_kernels::LaunchTakeFirst<uint32_t>(a, order, sort, stream);
    case 8:
      return cuda_kernels::LaunchTakeFirst<uint64_t>(a, order, sort, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchArgExtremum(const ArgExtremumArguments& a, cudaStream_t stream) {
  const int64_t lines = a.outer * a.inner;
  if (lines == 0) return cudaSuccess;
  const int64_t blocks = (lines + cuda_kernels::WarpRows::kRowsPerBlock - 1) / cuda_kernels::WarpRows::kRowsPerBlock;
  return ONNXTRAIN_LAUNCH(cuda_kernels::ArgExtremum, RowBlocks(blocks), kBlockThreads, 0, stream, a, Divisor(a.inner));
}

}  // namespace onnxtrain
