// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/block_prefix.h"
#include "cuda_ops/kernels/cumulative.h"
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/row_reduce.h"

namespace onnxtrain {
namespace cuda_kernels {

struct SmallFloats {
  using Sum = double;
  __device__ static Sum Load(const CumulativeSumArguments& a, int64_t at) { return LoadFloat(a.x, a.dtype, at); }
  __device__ static void Store(const CumulativeSumArguments& a, int64_t at, Sum sum) {
    StoreFloat(a.y, a.dtype, at, static_cast<float>(sum));
  }
};

template <typename T, typename SumType>
struct ElementsOfType {
  using Sum = SumType;
  __device__ static Sum Load(const CumulativeSumArguments& a, int64_t at) {
    return static_cast<Sum>(static_cast<const T*>(a.x)[at]);
  }
  __device__ static void Store(const CumulativeSumArguments& a, int64_t at, Sum sum) {
    static_cast<T*>(a.y)[at] = static_cast<T>(sum);
  }
};
using Doubles = ElementsOfType<double, double>;
using Ints = ElementsOfType<int32_t, uint64_t>;
using Longs = ElementsOfType<int64_t, uint64_t>;

// Element i of the way along a line that starts at `start`.
__device__ int64_t LineElement(const CumulativeSumArguments& a, int64_t start, int64_t i) {
  return start + (a.reverse ? a.length - 1 - i : i) * a.inner;
}

__device__ int64_t LineStart(const CumulativeSumArguments& a, const Divisor& by_inner, int64_t line) {
  const int64_t within = by_inner.Split(&line);
  return line * a.length * a.inner + within;
}

// A team a line, as many elements at a time as it has threads.
template <typename Elements, typename Team>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    CumulativeSumOfTeam(CumulativeSumArguments a, Divisor by_inner) {
  using Sum = typename Elements::Sum;
  constexpr int64_t kStep = kBlockThreads / Team::kRowsPerBlock;
  for (int64_t line = Team::FirstRow(); line < a.outer * a.inner; line += Team::RowStride()) {
    const int64_t start = LineStart(a, by_inner, line);
    Sum carried = 0;
    for (int64_t base = 0; base < a.length; base += kStep) {
      const int64_t i = base + Team::Thread();
      const Sum value = i < a.length ? Elements::Load(a, LineElement(a, start, i)) : Sum(0);
      Prefix<Sum> prefix;
      if constexpr (kStep == 32) {
        prefix = WarpPrefix(value);
      } else {
        prefix = BlockPrefix(value);
      }
      const Sum before = carried + prefix.before;
      if (i < a.length) Elements::Store(a, LineElement(a, start, i), a.exclusive ? before : before + value);
      carried += prefix.total;
    }
  }
}

// A thread a line: neighbouring threads take neighbours in memory.
template <typename Elements>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    CumulativeSumOfThread(CumulativeSumArguments a, Divisor by_inner) {
  for (int64_t line = FirstElement(); line < a.outer * a.inner; line += ElementStride()) {
    const int64_t start = LineStart(a, by_inner, line);
    typename Elements::Sum sum = 0;
    for (int64_t i = 0; i < a.length; ++i) {
      const int64_t at = LineElement(a, start, i);
      const auto before = sum;
      sum += Elements::Load(a, at);
      Elements::Store(a, at, a.exclusive ? before : sum);
    }
  }
}

// Lines that lie closer together than this are read by teams.
inline constexpr int64_t kFewestNeighbours = 32;

template <typename Elements>
cudaError_t LaunchCumulativeSumOf(const CumulativeSumArguments& a, cudaStream_t stream) {
  const int64_t lines = a.outer * a.inner;
  const Divisor by_inner(a.inner);
  if (a.inner >= kFewestNeighbours) {
    return ONNXTRAIN_LAUNCH(CumulativeSumOfThread<Elements>, ElementBlocks(lines), kBlockThreads, 0, stream, a,
                            by_inner);
  }
  if (a.length <= kLongestWarpRow) {
    return ONNXTRAIN_LAUNCH((CumulativeSumOfTeam<Elements, WarpRows>), BlocksForRows(lines, a.length), kBlockThreads, 0,
                            stream, a, by_inner);
  }
  return ONNXTRAIN_LAUNCH((CumulativeSumOfTeam<Elements, BlockRows>), BlocksForRows(lines, a.length), kBlockThreads, 0,
                          stream, a, by_inner);
}

}  // namespace cuda_kernels

cudaError_t LaunchCumulativeSum(const CumulativeSumArguments& a, cudaStream_t stream) {
  if (a.outer * a.length * a.inner == 0) return cudaSuccess;
  switch (a.dtype) {
    case DType::kFloat:
    case DType::kBfloat16:
    case DType::kFloat16:
      return cuda_kernels::LaunchCumulativeSumOf<cuda_kernels::SmallFloats>(a, stream);
    case DType::kDouble:
      return cuda_kernels::LaunchCumulativeSumOf<cuda_kernels::Doubles>(a, stream);
    case DType::kInt32:
      return cuda_kernels::LaunchCumulativeSumOf<cuda_kernels::Ints>(a, stream);
    case DType::kInt64:
      return cuda_kernels::LaunchCumulativeSumOf<cuda_kernels::Longs>(a, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
