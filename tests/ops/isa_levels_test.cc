// SPDX-License-Identifier: Apache-2.0
// A machine runs one copy of each vector loop; here every copy that it can run is run, and they must agree.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/cpu/isa/binary_loops.h"
#include "runtime/cpu/isa/reduction_loops.h"
#include "runtime/cpu/isa/transpose_loops.h"
#include "runtime/cpu/isa/unary_loops.h"
#include "runtime/cpu/isa_level.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

#if defined(__x86_64__)

// check(level, copy at that level, baseline copy) for the levels above the baseline that this machine has.
#define FOR_EACH_LEVEL(check, Function)                                                     \
  do {                                                                                      \
    if (BestIsaLevel() >= IsaLevel::kV3) check("v3", &isa_v3::Function, &isa_v2::Function); \
    if (BestIsaLevel() >= IsaLevel::kV4) check("v4", &isa_v4::Function, &isa_v2::Function); \
  } while (false)

constexpr int64_t kSizes[] = {0, 1, 3, 7, 8, 15, 16, 17, 31, 64, 100, 1027};

template <typename T>
std::vector<T> Random(int64_t count, uint64_t seed, double low = -3, double high = 3) {
  const Tensor tensor = RandomTensor(DTypeOf<T>(), {count}, seed, low, high);
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

template <typename T>
void ExpectClose(const std::vector<T>& actual, const std::vector<T>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]))) continue;
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::abs(static_cast<double>(expected[i])))) << i;
  }
}

template <typename T>
double Tolerance() {
  return sizeof(T) == 4 ? 1e-6 : 1e-13;
}

template <typename T>
void CompareUnary(const char* level, UnaryLoops<T> (*find)(UnaryFunction),
                  UnaryLoops<T> (*find_baseline)(UnaryFunction)) {
  for (int f = 0; f <= static_cast<int>(UnaryFunction::kAtanh); ++f) {
    const auto function = static_cast<UnaryFunction>(f);
    for (int64_t n : kSizes) {
      SCOPED_TRACE(std::string(level) + " function " + std::to_string(f) + " of " + std::to_string(n));
      const std::vector<T> x = Random<T>(n, 1), dy = Random<T>(n, 2);
      std::vector<T> y(x.size()), baseline(x.size());
      find(function).value({T(0.5), T(0.25)}, x.data(), y.data(), n);
      find_baseline(function).value({T(0.5), T(0.25)}, x.data(), baseline.data(), n);
      ExpectClose(y, baseline, Tolerance<T>());
      if (find(function).gradient == nullptr) continue;
      find(function).gradient({T(0.5), T(0.25)}, x.data(), dy.data(), y.data(), n);
      find_baseline(function).gradient({T(0.5), T(0.25)}, x.data(), dy.data(), baseline.data(), n);
      ExpectClose(y, baseline, Tolerance<T>());
    }
  }
}

TEST(IsaLevelsTest, UnaryLoopsAgree) {
  FOR_EACH_LEVEL(CompareUnary<float>, FloatUnaryLoops);
  FOR_EACH_LEVEL(CompareUnary<double>, DoubleUnaryLoops);
}

template <typename T>
void CompareBinary(const char* level, BinaryLoop<T> (*find)(BinaryFunction),
                   BinaryLoop<T> (*find_baseline)(BinaryFunction)) {
  for (int f = 0; f <= static_cast<int>(BinaryFunction::kPRelu); ++f) {
    const auto function = static_cast<BinaryFunction>(f);
    for (int64_t n : kSizes) {
      for (int steps = 0; steps < 4; ++steps) {
        SCOPED_TRACE(std::string(level) + " function " + std::to_string(f) + " of " + std::to_string(n));
        const std::vector<T> a = Random<T>(n + 1, 3, 0.5, 3), b = Random<T>(n + 1, 4, 0.5, 3);
        std::vector<T> y(static_cast<size_t>(n)), baseline(y.size());
        find(function)(a.data(), steps & 1, b.data(), steps >> 1, y.data(), n);
        find_baseline(function)(a.data(), steps & 1, b.data(), steps >> 1, baseline.data(), n);
        ExpectClose(y, baseline, Tolerance<T>());
      }
    }
  }
}

TEST(IsaLevelsTest, BinaryLoopsAgree) {
  FOR_EACH_LEVEL(CompareBinary<float>, FloatBinaryLoop);
  FOR_EACH_LEVEL(CompareBinary<double>, DoubleBinaryLoop);
}

void CompareSelect(const char* level, SelectLoop<uint32_t> loop, SelectLoop<uint32_t> baseline_loop) {
  for (int64_t n : kSizes) {
    for (int steps = 0; steps < 8; ++steps) {
      SCOPED_TRACE(std::string(level) + " " + std::to_string(n) + " steps " + std::to_string(steps));
      const std::vector<uint8_t> condition = Random<uint8_t>(n + 1, 5, 0, 1);
      const std::vector<uint32_t> a = Random<uint32_t>(n + 1, 6, 0, 99), b = Random<uint32_t>(n + 1, 7, 0, 99);
      std::vector<uint32_t> y(static_cast<size_t>(n)), baseline(y.size());
      loop(condition.data(), steps & 1, a.data(), steps >> 1 & 1, b.data(), steps >> 2, y.data(), n);
      baseline_loop(condition.data(), steps & 1, a.data(), steps >> 1 & 1, b.data(), steps >> 2, baseline.data(), n);
      ASSERT_EQ(y, baseline);
    }
  }
}

TEST(IsaLevelsTest, SelectionAgrees) { FOR_EACH_LEVEL(CompareSelect, Select4); }

template <typename T>
void CompareReduction(const char* level, ReductionLoops<T> (*find)(Accumulation),
                      ReductionLoops<T> (*find_baseline)(Accumulation)) {
  for (int f = 0; f <= static_cast<int>(Accumulation::kMin); ++f) {
    const auto accumulation = static_cast<Accumulation>(f);
    for (int64_t n : {0, 1, 15, 16, 63, 64, 255, 256, 5000}) {
      SCOPED_TRACE(std::string(level) + " accumulation " + std::to_string(f) + " of " + std::to_string(n));
      const std::vector<T> x = Random<T>(n * 7, 8);
      ExpectClose<double>({find(accumulation).row(x.data(), n)}, {find_baseline(accumulation).row(x.data(), n)}, 3e-5);
      std::vector<double> sums(static_cast<size_t>(n), 0.5), baseline = sums;
      find(accumulation).columns(x.data(), n, 7, n, sums.data());
      find_baseline(accumulation).columns(x.data(), n, 7, n, baseline.data());
      ExpectClose(sums, baseline, 1e-6);
    }
  }
}

TEST(IsaLevelsTest, ReductionsAgree) {
  FOR_EACH_LEVEL(CompareReduction<float>, FloatReductionLoops);
  FOR_EACH_LEVEL(CompareReduction<double>, DoubleReductionLoops);
}

template <typename Bits>
void CompareTranspose(const char* level, TransposeLoop<Bits> loop, TransposeLoop<Bits> baseline_loop) {
  for (int64_t rows : {1, 4, 8, 9, 33}) {
    for (int64_t columns : {1, 7, 8, 16, 35}) {
      SCOPED_TRACE(std::string(level) + " " + std::to_string(rows) + "x" + std::to_string(columns));
      const std::vector<Bits> x = Random<Bits>(columns * (rows + 3), 9, 0, 1e6);
      std::vector<Bits> y(static_cast<size_t>(rows * (columns + 2)), 7), baseline = y;
      loop(x.data(), rows + 3, y.data(), columns + 2, rows, columns);
      baseline_loop(x.data(), rows + 3, baseline.data(), columns + 2, rows, columns);
      ASSERT_EQ(y, baseline);
    }
  }
}

TEST(IsaLevelsTest, TransposesAgree) {
  FOR_EACH_LEVEL(CompareTranspose<uint32_t>, Transpose4);
  FOR_EACH_LEVEL(CompareTranspose<uint64_t>, Transpose8);
}

#endif  // defined(__x86_64__)

}  // namespace
}  // namespace onnxtrain
