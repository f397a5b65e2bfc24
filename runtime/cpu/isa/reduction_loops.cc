// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/reduction_loops.h"

#include "runtime/math/functions.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

#define ONNXTRAIN_FORMULA \
  template <typename T>   \
  ONNXTRAIN_HOST_DEVICE static inline T

struct Sum {
  ONNXTRAIN_FORMULA Start() { return T(0); }
  ONNXTRAIN_FORMULA Of(T x) { return x; }
  ONNXTRAIN_FORMULA Combine(T a, T b) { return a + b; }
};
struct SumSquare : Sum {
  ONNXTRAIN_FORMULA Of(T x) { return x * x; }
};
struct SumAbs : Sum {
  ONNXTRAIN_FORMULA Of(T x) { return math::Abs(x); }
};
struct Max {
  ONNXTRAIN_FORMULA Start() { return static_cast<T>(-__builtin_inf()); }
  ONNXTRAIN_FORMULA Of(T x) { return x; }
  ONNXTRAIN_FORMULA Combine(T a, T b) { return math::Max(a, b); }
};
struct Min {
  ONNXTRAIN_FORMULA Start() { return static_cast<T>(__builtin_inf()); }
  ONNXTRAIN_FORMULA Of(T x) { return x; }
  ONNXTRAIN_FORMULA Combine(T a, T b) { return math::Min(a, b); }
};

// Elements whose sum is kept in T before it is added up in double.
constexpr int64_t kRun = 2048;

template <typename F, typename T, int kLanes>
inline __attribute__((always_inline)) double RunOf(const T* x, int64_t n) {
  T lanes[kLanes];
  for (int j = 0; j < kLanes; ++j) lanes[j] = F::template Start<T>();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC ivdep
    for (int j = 0; j < kLanes; ++j) lanes[j] = F::Combine(lanes[j], F::Of(x[i + j]));
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
#pragma GCC ivdep
    for (int j = 0; j < width; ++j) lanes[j] = F::Combine(lanes[j], lanes[j + width]);
  }
  double total = lanes[0];
  for (; i < n; ++i) total = F::Combine(total, static_cast<double>(F::Of(x[i])));
  return total;
}

template <typename F, typename T>
double Row(const T* x, int64_t n) {
  constexpr int kMany = 256 / sizeof(T);
  constexpr int kFew = 64 / sizeof(T);  // for rows so short that adding up the lanes costs most
  double total = F::template Start<double>();
  if (n < kFew) {
    for (int64_t i = 0; i < n; ++i) total = F::Combine(total, static_cast<double>(F::Of(x[i])));
    return total;
  }
  if (n < 4 * kMany) return RunOf<F, T, kFew>(x, n);
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t length = n - begin < kRun ? n - begin : kRun;
    total = F::Combine(total, RunOf<F, T, kMany>(x + begin, length));
  }
  return total;
}

template <typename F, typename T>
void Columns(const T* x, int64_t stride, int64_t rows, int64_t columns, double* sums) {
  constexpr int64_t kTile = 512;
  constexpr int64_t kRows = 16;  // summed in T before they are added up in double
  T tile[kTile];
  for (int64_t c = 0; c < columns; c += kTile) {
    const int64_t width = columns - c < kTile ? columns - c : kTile;
    for (int64_t r = 0; r < rows; r += kRows) {
      const int64_t end = rows - r < kRows ? rows : r + kRows;
      for (int64_t j = 0; j < width; ++j) tile[j] = F::template Start<T>();
      for (int64_t row = r; row < end; ++row) {
        const T* from = x + row * stride + c;
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) tile[j] = F::Combine(tile[j], F::Of(from[j]));
      }
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) sums[c + j] = F::Combine(sums[c + j], static_cast<double>(tile[j]));
    }
  }
}

template <typename T>
ReductionLoops<T> Find(Accumulation accumulation) {
  switch (accumulation) {
    case Accumulation::kSum:
      return {&Row<Sum, T>, &Columns<Sum, T>};
    case Accumulation::kSumSquare:
      return {&Row<SumSquare, T>, &Columns<SumSquare, T>};
    case Accumulation::kSumAbs:
      return {&Row<SumAbs, T>, &Columns<SumAbs, T>};
    case Accumulation::kMax:
      return {&Row<Max, T>, &Columns<Max, T>};
    case Accumulation::kMin:
      return {&Row<Min, T>, &Columns<Min, T>};
  }
  return {};
}

}  // namespace

ReductionLoops<float> FloatReductionLoops(Accumulation accumulation) { return Find<float>(accumulation); }
ReductionLoops<double> DoubleReductionLoops(Accumulation accumulation) { return Find<double>(accumulation); }

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
