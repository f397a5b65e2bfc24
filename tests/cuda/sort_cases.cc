// SPDX-License-Identifier: Apache-2.0
// The first of a line by value, the best of it, and one-hot lines.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda_ops/kernels/one_hot.h"
#include "cuda_ops/kernels/top_k.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

std::string Named(const std::string& name, DType dtype) { return name + " " + std::string(NameOf(dtype)); }

// Few different values, so that many are equal; zeros of both signs, infinities and NaNs where the type has them.
Array LinesOf(DType dtype, int64_t count) {
  Array x = Uniform(dtype, count, 1, -9, 9);
  for (int64_t i = 0; i < count && IsFloating(dtype); ++i) x.Set(i, std::trunc(x.At(i)) / 2);
  for (int64_t i = 7; i < count && IsFloating(dtype); i += 31) {
    x.Set(i, i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY);
  }
  return x;
}

// NaN is larger than every number.
bool Smaller(double a, double b) {
  if (std::isnan(a)) return false;
  return std::isnan(b) || a < b;
}

struct Line {
  int64_t outer, length, inner;
  int64_t lines() const { return outer * inner; }
  int64_t At(int64_t line, int64_t i, int64_t of_length) const {
    return (line / inner * of_length + i) * inner + line % inner;
  }
};

CaseResult RunTopK(DType dtype, const Line& s, int64_t kept, bool largest) {
  Array x = LinesOf(dtype, s.lines() * s.length);
  CaseResult result;
  result.outputs.emplace_back(dtype, s.lines() * kept);
  result.outputs.emplace_back(DType::kInt64, s.lines() * kept);
  TopKArguments a{
      x.data(), result.outputs[0].data(), result.outputs[1].as<int64_t>(), s.outer, s.length, s.inner, kept, largest,
      dtype};
  Array workspace(DType::kUint8, static_cast<int64_t>(TopKBytes(a)));
  LaunchTopK(a, workspace.data(), nullptr);
  result.expected.assign(2, std::vector<double>(static_cast<size_t>(s.lines() * kept)));
  std::vector<int64_t> order(static_cast<size_t>(s.length));
  for (int64_t line = 0; line < s.lines(); ++line) {
    const auto value = [&](int64_t i) { return x.At(s.At(line, i, s.length)); };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t one, int64_t other) {
      return largest ? Smaller(value(other), value(one)) : Smaller(value(one), value(other));
    });
    for (int64_t rank = 0; rank < kept; ++rank) {
      const auto at = static_cast<size_t>(s.At(line, rank, kept));
      result.expected[0][at] = value(order[static_cast<size_t>(rank)]);
      result.expected[1][at] = static_cast<double>(order[static_cast<size_t>(rank)]);
    }
  }
  return result;
}

CaseResult RunArgExtremum(DType dtype, const Line& s, bool largest, bool last) {
  Array x = LinesOf(dtype, s.lines() * s.length);
  CaseResult result;
  Array& y = result.outputs.emplace_back(DType::kInt64, s.lines());
  LaunchArgExtremum({x.data(), y.as<int64_t>(), s.outer, s.length, s.inner, largest, last, dtype}, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t line = 0; line < s.lines(); ++line) {
    int64_t best = 0;
    for (int64_t i = 1; i < s.length; ++i) {
      const double candidate = x.At(s.At(line, i, s.length));
      const double leader = x.At(s.At(line, best, s.length));
      const bool better = largest ? Smaller(leader, candidate) : Smaller(candidate, leader);
      const bool worse = largest ? Smaller(candidate, leader) : Smaller(leader, candidate);
      if (better || (last && !worse)) best = i;
    }
    expected.push_back(static_cast<double>(best));
  }
  return result;
}

CaseResult RunOneHot(DType index_dtype, DType dtype, const Line& s) {
  const auto depth = static_cast<double>(s.length);
  const double low = index_dtype == DType::kUint8 ? 0 : -depth - 2;
  Array indices = Uniform(index_dtype, s.lines(), 1, low, depth + 1);
  Array values(dtype, std::vector<double>{3, 5});
  CaseResult result;
  Array& y = result.outputs.emplace_back(dtype, s.lines() * s.length);
  LaunchOneHot({indices.data(), values.data(), y.data(), s.outer, s.length, s.inner, index_dtype}, SizeOf(dtype),
               nullptr);
  auto& expected = result.expected.emplace_back(static_cast<size_t>(y.count()), 3.0);
  for (int64_t line = 0; line < s.lines(); ++line) {
    const auto given = static_cast<int64_t>(indices.At(line));
    const int64_t index = given < 0 ? given + s.length : given;
    if (index >= 0 && index < s.length) expected[static_cast<size_t>(s.At(line, index, s.length))] = 5;
  }
  return result;
}

}  // namespace

void AddSortCases(DeviceCases& cases) {
  const Line lines[] = {{1, 1, 1}, {3, 33, 1}, {2, 17, 5}, {1, 2500, 1}, {90, 7, 3}};
  for (const DType dtype :
       {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble, DType::kInt32, DType::kInt64}) {
    for (const Line& line : lines) {
      for (const bool one : {false, true}) {
        const int64_t kept = one ? line.length : (line.length + 2) / 3;
        cases.push_back({Named("TopK", dtype), [=] { return RunTopK(dtype, line, kept, one); }});
        cases.push_back({Named("TopK", dtype), [=] { return RunTopK(dtype, line, kept, !one); }});
        for (const bool other : {false, true}) {
          cases.push_back({Named("ArgExtremum", dtype), [=] { return RunArgExtremum(dtype, line, one, other); }});
        }
      }
    }
  }
  for (const DType index : {DType::kInt32, DType::kInt64, DType::kFloat, DType::kDouble, DType::kUint8}) {
    for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat, DType::kDouble}) {
      cases.push_back({Named("OneHot", index), [=] { return RunOneHot(index, dtype, {7, 5, 9}); }});
    }
  }
}

}  // namespace onnxtrain
