// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "graph/op_registry.h"
#include "graph/ops/window.h"
#include "tests/support/gradient_check.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

struct PoolCase {
  Shape x;
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides = {};
  std::vector<int64_t> pads = {};
  std::vector<int64_t> dilations = {};
  bool ceil_mode = false;
  std::string auto_pad = "NOTSET";
};

const PoolCase kCases[] = {
    {{2, 3, 7}, {3}},
    {{1, 2, 9}, {2}, {2}},
    {{1, 1, 8}, {3}, {3}, {1, 1}},
    {{1, 1, 10}, {3}, {2}, {0, 0}, {2}},
    {{2, 3, 8, 10}, {2, 2}, {2, 2}},
    {{1, 2, 7, 9}, {3, 2}, {2, 3}, {1, 0, 1, 1}},
    {{1, 2, 7, 9}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, true},
    {{1, 1, 5, 6}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {}, true},
    {{1, 1, 4, 4}, {2, 2}, {3, 3}, {1, 1, 1, 1}, {}, true},  // a last window would start in the padding
    {{1, 2, 9, 11}, {3, 2}, {1, 2}, {2, 1, 0, 1}, {2, 1}},
    {{1, 2, 7, 6}, {3, 3}, {2, 2}, {}, {}, false, "SAME_UPPER"},
    {{1, 2, 7, 6}, {2, 4}, {2, 1}, {}, {}, false, "SAME_LOWER"},
    {{1, 2, 7, 6}, {2, 4}, {2, 1}, {}, {}, false, "VALID"},
    {{2, 2, 5, 4, 6}, {2, 3, 2}, {1, 2, 2}, {1, 1, 0, 0, 1, 1}},
    {{0, 2, 5, 5}, {2, 2}},
    {{1, 1, 1, 1}, {1, 1}},
};

Attributes AttributesOf(const PoolCase& c) {
  Attributes attributes{{"kernel_shape", c.kernel}};
  if (!c.strides.empty()) attributes.Set("strides", c.strides);
  if (!c.pads.empty()) attributes.Set("pads", c.pads);
  if (!c.dilations.empty()) attributes.Set("dilations", c.dilations);
  if (c.ceil_mode) attributes.Set("ceil_mode", int64_t{1});
  if (c.auto_pad != "NOTSET") attributes.Set("auto_pad", c.auto_pad);
  return attributes;
}

Shape IndexOf(int64_t flat, const Shape& shape) {
  Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return index;
}

// visit(output, input or -1 where padding, ...) for each position of each window, in order.
void VisitWindows(const PoolCase& c, const Shape& y, const std::function<void(int64_t, int64_t)>& visit) {
  const Window window = *WindowOf(AttributesOf(c), SpatialOf(c.x), c.kernel);
  const size_t axes = c.kernel.size();
  for (int64_t out = 0; out < ElementsOf(y); ++out) {
    const Shape at = IndexOf(out, y);
    for (int64_t k = 0; k < ElementsOf(c.kernel); ++k) {
      const Shape offset = IndexOf(k, c.kernel);
      int64_t flat = at[0] * c.x[1] + at[1];
      bool inside = true, padded = true;
      for (size_t i = 0; i < axes; ++i) {
        const int64_t p = at[2 + i] * window.strides[i] - window.pads_begin[i] + offset[i] * window.dilations[i];
        inside = inside && p >= 0 && p < c.x[2 + i];
        padded = padded && p < c.x[2 + i] + window.pads_end[i];
        flat = flat * c.x[2 + i] + p;
      }
      if (padded) visit(out, inside ? flat : -1);
    }
  }
}

TEST(MaxPool, MatchesItsDefinition) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const PoolCase& c : kCases) {
      SCOPED_TRACE(ToString(c.x) + ToString(c.kernel) + c.auto_pad);
      const Tensor x = RandomTensor(dtype, c.x, 3);
      const auto y = RunOp("MaxPool", {Fed(x)}, AttributesOf(c), 2);
      Tensor expected(TensorType{DType::kDouble, y[0].shape()});
      Tensor indices(TensorType{DType::kInt64, y[0].shape()});
      for (double& value : expected.values<double>()) value = -std::numeric_limits<double>::infinity();
      VisitWindows(c, y[0].shape(), [&](int64_t out, int64_t in) {
        if (in < 0 || x.DoubleAt(in) <= expected.DoubleAt(out)) return;
        expected.values<double>()[out] = x.DoubleAt(in);
        indices.values<int64_t>()[out] = in;
      });
      ExpectIdentical(y[0].CastTo(DType::kDouble), expected);
      ExpectIdentical(y[1], indices);
    }
  }
}

TEST(MaxPool, TiesTakeTheFirstAndNaNWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::FromVector<float>({1, 1, 6}, {2, 2, 1, nan, -1, 0});
  const auto y =
      RunOp("MaxPool", {Fed(x)}, {{"kernel_shape", std::vector<int64_t>{2}}, {"strides", std::vector<int64_t>{2}}});
  EXPECT_EQ(y[0].DoubleAt(0), 2);
  EXPECT_TRUE(std::isnan(y[0].DoubleAt(1)));
  EXPECT_EQ(y[0].DoubleAt(2), 0);
  const Tensor dy = Tensor::FromVector<float>({1, 1, 3}, {5, 6, 7});
  const auto dx = RunOp("onnxtrain.MaxPoolGrad", {Fed(dy), Fed(x)},
                        {{"kernel_shape", std::vector<int64_t>{2}}, {"strides", std::vector<int64_t>{2}}});
  ExpectIdentical(dx[0], Tensor::FromVector<float>({1, 1, 6}, {5, 0, 0, 6, 0, 7}));
}

TEST(MaxPool, ColumnMajorIndices) {
  const Tensor x = Tensor::FromVector<float>({1, 1, 2, 3}, {0, 0, 0, 0, 9, 0});
  const auto y =
      RunOp("MaxPool", {Fed(x)}, {{"kernel_shape", std::vector<int64_t>{2, 3}}, {"storage_order", int64_t{1}}}, 2);
  EXPECT_EQ(y[1].IntAt(0), 3);
}

TEST(AveragePool, MatchesItsDefinition) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const PoolCase& c : kCases) {
      for (int64_t include : {0, 1}) {
        SCOPED_TRACE(ToString(c.x) + ToString(c.kernel) + c.auto_pad + std::to_string(include));
        const Tensor x = RandomTensor(dtype, c.x, 3);
        Attributes attributes = AttributesOf(c);
        attributes.Set("count_include_pad", include);
        const auto y = RunOp("AveragePool", {Fed(x)}, attributes);
        Tensor sums(TensorType{DType::kDouble, y[0].shape()}), counts = sums;
        VisitWindows(c, y[0].shape(), [&](int64_t out, int64_t in) {
          if (in >= 0) sums.values<double>()[out] += x.DoubleAt(in);
          if (in >= 0 || include != 0) counts.values<double>()[out] += 1;
        });
        for (int64_t i = 0; i < sums.elements(); ++i) sums.values<double>()[i] /= counts.DoubleAt(i);
        ExpectNear(y[0].CastTo(DType::kDouble), sums, dtype == DType::kFloat ? 1e-6 : 1e-14);
      }
    }
  }
}

TEST(GlobalPools, ReducePlanes) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 1, 1, 1}, Shape{3, 2, 7, 9}, Shape{1, 2, 3, 4, 5}}) {
      const Tensor x = RandomTensor(dtype, shape, 3);
      const int64_t size = ElementsOf(SpatialOf(shape));
      const auto mean = RunOp("GlobalAveragePool", {Fed(x)});
      const auto largest = RunOp("GlobalMaxPool", {Fed(x)});
      for (int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
        double sum = 0, most = -10;
        for (int64_t i = 0; i < size; ++i) {
          sum += x.DoubleAt(plane * size + i);
          most = std::max(most, x.DoubleAt(plane * size + i));
        }
        EXPECT_NEAR(mean[0].DoubleAt(plane), sum / static_cast<double>(size), 1e-6);
        EXPECT_EQ(largest[0].DoubleAt(plane), most);
      }
    }
  }
}

// Values far enough apart that a finite difference does not change who is largest.
Tensor Spread(const Shape& shape) {
  Tensor x(TensorType{DType::kDouble, shape});
  for (int64_t i = 0; i < x.elements(); ++i) x.values<double>()[i] = static_cast<double>(i * 7919 % 1009) / 100;
  return x;
}

TEST(PoolGradient, MatchesFiniteDifferences) {
  for (const PoolCase& c : kCases) {
    if (ElementsOf(c.x) == 0) continue;
    SCOPED_TRACE(ToString(c.x) + ToString(c.kernel) + c.auto_pad);
    ExpectOpGradient("MaxPool", {Fed(Spread(c.x))}, AttributesOf(c));
    for (int64_t include : {0, 1}) {
      Attributes attributes = AttributesOf(c);
      attributes.Set("count_include_pad", include);
      ExpectOpGradient("AveragePool", {Fed(Spread(c.x))}, attributes);
    }
  }
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 2, 3, 4}}) {
    ExpectOpGradient("GlobalAveragePool", {Fed(Spread(shape))});
    ExpectOpGradient("GlobalMaxPool", {Fed(Spread(shape))});
  }
}

TEST(Window, RefusesNumbersThatMakeNoSense) {
  const Shape spatial = {5, 5};
  EXPECT_FALSE(WindowOf({{"strides", std::vector<int64_t>{0, 1}}}, spatial, {2, 2}).ok());
  EXPECT_FALSE(WindowOf({{"pads", std::vector<int64_t>{1, 1}}}, spatial, {2, 2}).ok());
  EXPECT_FALSE(WindowOf({{"auto_pad", std::string("SAME")}}, spatial, {2, 2}).ok());
  EXPECT_FALSE(WindowOf({}, spatial, {2}).ok());
}

}  // namespace
}  // namespace onnxtrain
