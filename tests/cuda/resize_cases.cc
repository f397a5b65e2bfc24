// SPDX-License-Identifier: Apache-2.0
// Interpolations of one to three axes with any sparse matrices, rows without entries among them.
#include <random>

#include "cuda_ops/kernels/resize.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

// One axis: from `from` to `to` elements, `inner` kept ones behind it.
struct AxisCase {
  int64_t from, to, inner;
};

// A random matrix of at most three entries a row.
struct Matrix {
  std::vector<int64_t> begin = {0}, index;
  std::vector<float> weight;

  Matrix(const AxisCase& axis, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int64_t row = 0; row < axis.to; ++row) {
      const auto entries = random() % 4;
      for (uint64_t i = 0; i < entries; ++i) {
        index.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(axis.from)));
        weight.push_back(static_cast<float>(random() % 1000) / 500.0f - 1.0f);
      }
      begin.push_back(static_cast<int64_t>(index.size()));
    }
  }
};

// `values` [outer, from, inner] with the matrix along its middle.
std::vector<double> Applied(const Matrix& matrix, const std::vector<double>& values, int64_t from, int64_t inner) {
  const auto rows = static_cast<int64_t>(matrix.begin.size()) - 1;
  const int64_t outer = static_cast<int64_t>(values.size()) / (from * inner);
  std::vector<double> result(static_cast<size_t>(outer * rows * inner));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i), row = at / inner % rows;
    for (auto t = static_cast<size_t>(matrix.begin[static_cast<size_t>(row)]);
         t < static_cast<size_t>(matrix.begin[static_cast<size_t>(row) + 1]); ++t) {
      const int64_t place = (at / inner / rows * from + matrix.index[t]) * inner + at % inner;
      result[i] += static_cast<double>(matrix.weight[t]) * values[static_cast<size_t>(place)];
    }
  }
  return result;
}

CaseResult RunResize(DType dtype, DType y_dtype, int64_t outer, const std::vector<AxisCase>& axes) {
  std::vector<Matrix> matrices;
  int64_t count = outer, y_count = outer;
  for (const AxisCase& axis : axes) {
    matrices.emplace_back(axis, matrices.size() + 1);
    count *= axis.from * axis.inner;
    y_count *= axis.to * axis.inner;
  }
  Array x = Uniform(dtype, count, 1);
  CaseResult result;
  ResizeArguments a;
  a.x = x.data();
  a.y = result.outputs.emplace_back(y_dtype, y_count).data();
  a.count = y_count;
  a.axes = static_cast<int>(axes.size());
  a.dtype = dtype;
  a.y_dtype = y_dtype;
  std::vector<double> expected = x.Values();
  int64_t x_stride = 1, y_stride = 1;  // of the elements behind an axis, in x and in what is expected so far
  for (size_t n = axes.size(); n-- > 0;) {
    a.axis[n] = {matrices[n].begin.data(), nullptr, matrices[n].weight.data(), Divisor(axes[n].to),
                 Divisor(axes[n].inner),   x_stride};
    x_stride *= axes[n].inner;
    y_stride *= axes[n].inner;
    expected = Applied(matrices[n], expected, axes[n].from, y_stride);
    for (int64_t& index : matrices[n].index) index *= x_stride;
    a.axis[n].offset = matrices[n].index.data();
    x_stride *= axes[n].from;
    y_stride *= axes[n].to;
  }
  a.outer_stride = x_stride;
  LaunchResize(a, nullptr);
  result.expected.push_back(std::move(expected));
  result.tolerance = 3e-6;
  return result;
}

}  // namespace

void AddResizeCases(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    for (const DType y_dtype : {dtype, DType::kFloat}) {
      for (const std::vector<AxisCase>& axes : std::vector<std::vector<AxisCase>>{{{1, 1, 1}},
                                                                                  {{5, 33, 1}},
                                                                                  {{7, 3, 11}},
                                                                                  {{5, 9, 1}, {7, 4, 1}},
                                                                                  {{5, 9, 3}, {3, 13, 5}},
                                                                                  {{3, 5, 1}, {4, 7, 1}, {5, 9, 1}},
                                                                                  {{3, 2, 2}, {2, 5, 3}, {5, 3, 2}}}) {
        cases.push_back({"Resize " + std::string(NameOf(dtype)), [=] { return RunResize(dtype, y_dtype, 3, axes); }});
      }
    }
  }
}

}  // namespace onnxtrain
