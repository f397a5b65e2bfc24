// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/index_sort.h"
#include "cuda_ops/kernels/scatter.h"
#include "runtime/kernel_fault.h"

namespace onnxtrain {
namespace cuda_kernels {

// What points nowhere goes behind the last row.
template <typename Places>
__global__ void __launch_bounds__(kBlockThreads)
    ScatterKeys(Places at, int64_t count, int64_t size, IndexFault fault, uint32_t* keys, uint32_t* places) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    const int64_t place = at.At(i);
    if (place < 0) {
      ReportFault(fault.status_word, static_cast<uint32_t>(DeviceFault::kIndexOutOfRange), fault.node_index);
    }
    keys[i] = static_cast<uint32_t>(place < 0 ? size : place);
    places[i] = static_cast<uint32_t>(i);
  }
}

struct ScatteredFloats {
  using Value = float;
  __device__ static float Load(const void* data, DType dtype, int64_t at) { return LoadFloat(data, dtype, at); }
  __device__ static void Store(void* data, DType dtype, int64_t at, float value) { StoreFloat(data, dtype, at, value); }
};

template <typename T>
struct ScatteredElements {
  using Value = T;
  __device__ static T Load(const void* data, DType, int64_t at) { return static_cast<const T*>(data)[at]; }
  __device__ static void Store(void* data, DType, int64_t at, T value) { static_cast<T*>(data)[at] = value; }
};

// Rows of equal keys that begin at `first` among the sorted ones.
struct Segments {
  const uint32_t* keys;
  const uint32_t* places;
  Divisor by_inner;
  Divisor by_count;
};

// A thread an element of the result, found where the updates of a row begin. Loads of eight rows are under way at a
// time.
template <typename Elements>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks) ScatterJoined(ScatterArguments a, Segments sorted) {
  constexpr int kTogether = 8;
  const int64_t total = a.outer * a.count * a.inner;
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t outer = i;
    const int64_t column = sorted.by_inner.Split(&outer);
    int64_t at = sorted.by_count.Split(&outer);
    const uint32_t key = sorted.keys[at];
    if (key >= a.size || (at > 0 && sorted.keys[at - 1] == key)) continue;
    const int64_t target = (outer * a.size + key) * a.inner + column;
    const int64_t updates = outer * a.count;
    auto value = Elements::Load(a.result, a.dtype, target);
    const auto update = [&](int64_t place) {
      return Elements::Load(a.updates, a.dtype, (updates + sorted.places[place]) * a.inner + column);
    };
    for (; at + kTogether <= a.count && sorted.keys[at + kTogether - 1] == key; at += kTogether) {
      typename Elements::Value loaded[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) loaded[j] = update(at + j);
#pragma unroll
      for (int j = 0; j < kTogether; ++j) value = math::Scattered(a.reduction, value, loaded[j]);
    }
    for (; at < a.count && sorted.keys[at] == key; ++at) value = math::Scattered(a.reduction, value, update(at));
    Elements::Store(a.result, a.dtype, target, value);
  }
}

// The last update of a row stands.
template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks) ScatterLast(ScatterArguments a, Segments sorted) {
  const int64_t total = a.outer * a.count * a.inner;
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t outer = i;
    const int64_t column = sorted.by_inner.Split(&outer);
    const int64_t at = sorted.by_count.Split(&outer);
    const uint32_t key = sorted.keys[at];
    if (key >= a.size || (at + 1 < a.count && sorted.keys[at + 1] == key)) continue;
    static_cast<Bits*>(a.result)[(outer * a.size + key) * a.inner + column] =
        static_cast<const Bits*>(a.updates)[(outer * a.count + sorted.places[at]) * a.inner + column];
  }
}

template <auto kKernel>
cudaError_t LaunchSegments(const ScatterArguments& a, const Segments& sorted, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(kKernel, ElementBlocks(a.outer * a.count * a.inner), kBlockThreads, 0, stream, a, sorted);
}

inline cudaError_t LaunchLast(const ScatterArguments& a, const Segments& sorted, cudaStream_t stream) {
  switch (SizeOf(a.dtype)) {
    case 1:
      return LaunchSegments<ScatterLast<uint8_t>>(a, sorted, stream);
    case 2:
      return LaunchSegments<ScatterLast<uint16_t>>(a, sorted, stream);
    case 4:
      return LaunchSegments<ScatterLast<uint32_t>>(a, sorted, stream);
    case 8:
      return LaunchSegments<ScatterLast<uint64_t>>(a, sorted, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

inline cudaError_t LaunchJoined(const ScatterArguments& a, const Segments& sorted, cudaStream_t stream) {
  switch (a.dtype) {
    case DType::kFloat:
    case DType::kBfloat16:
    case DType::kFloat16:
      return LaunchSegments<ScatterJoined<ScatteredFloats>>(a, sorted, stream);
    case DType::kDouble:
      return LaunchSegments<ScatterJoined<ScatteredElements<double>>>(a, sorted, stream);
    case DType::kInt32:
      return LaunchSegments<ScatterJoined<ScatteredElements<int32_t>>>(a, sorted, stream);
    case DType::kInt64:
      return LaunchSegments<ScatterJoined<ScatteredElements<int64_t>>>(a, sorted, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

template <typename Places>
cudaError_t LaunchScatterAt(const ScatterArguments& a, const Places& places, void* workspace, cudaStream_t stream) {
  if (a.outer * a.count * a.inner == 0) return cudaSuccess;
  if (a.count > kMostSortedKeys || a.size > kMostSortedKeys) return cudaErrorInvalidValue;
  StableSort sort = MakeStableSort(workspace, a.count);
  cudaError_t error = ONNXTRAIN_LAUNCH(ScatterKeys<Places>, ElementBlocks(a.count), kBlockThreads, 0, stream, places,
                                       a.count, a.size, a.fault, sort.keys(), sort.places());
  if (error != cudaSuccess) return error;
  error = LaunchStableSort(0, KeyBits(a.size), &sort, stream);
  if (error != cudaSuccess) return error;
  const Segments sorted{sort.keys(), sort.places(), Divisor(a.inner), Divisor(a.count)};
  return a.reduction == ScatterReduction::kNone ? LaunchLast(a, sorted, stream) : LaunchJoined(a, sorted, stream);
}

}  // namespace cuda_kernels

bool ScatterServes(ScatterReduction reduction, DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kBfloat16:
    case DType::kFloat16:
    case DType::kDouble:
    case DType::kInt32:
    case DType::kInt64:
      return true;
    default:
      return reduction == ScatterReduction::kNone && SizeOf(dtype) != 0 && SizeOf(dtype) <= sizeof(uint64_t);
  }
}

size_t ScatterBytes(int64_t count) { return StableSortBytes(count); }

cudaError_t LaunchScatter(const ScatterArguments& a, const AxisPlaces& places, void* workspace, cudaStream_t stream) {
  return cuda_kernels::LaunchScatterAt(a, places, workspace, stream);
}
cudaError_t LaunchScatter(const ScatterArguments& a, const ElementPlaces& places, void* workspace,
                          cudaStream_t stream) {
  return cuda_kernels::LaunchScatterAt(a, places, workspace, stream);
}
cudaError_t LaunchScatter(const ScatterArguments& a, const TuplePlaces& places, void* workspace, cudaStream_t stream) {
  return cuda_kernels::LaunchScatterAt(a, places, workspace, stream);
}
cudaError_t LaunchScatter(const ScatterArguments& a, const PadPlaces& places, void* workspace, cudaStream_t stream) {
  return cuda_kernels::LaunchScatterAt(a, places, workspace, stream);
}

}  // namespace onnxtrain
