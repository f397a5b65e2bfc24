// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "graph/op_registry.h"
#include "graph/ops/window.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

struct ConvCase {
  Shape x;
  Shape w;
  int64_t group = 1;
  std::vector<int64_t> strides = {};
  std::vector<int64_t> pads = {};
  std::vector<int64_t> dilations = {};
  std::string auto_pad = "NOTSET";
};

const ConvCase kCases[] = {
    {{1, 1, 1}, {1, 1, 1}},
    {{2, 3, 9}, {5, 3, 3}, 1, {2}, {1, 2}},
    {{2, 4, 16}, {4, 2, 3}, 2, {1}, {4, 0}, {2}},
    {{2, 1, 9, 11}, {3, 1, 3, 3}},
    {{3, 3, 8, 7}, {16, 3, 3, 3}, 1, {}, {1, 1, 1, 1}},
    {{2, 16, 9, 7}, {17, 16, 1, 1}},
    {{2, 16, 9, 7}, {8, 16, 1, 1}, 1, {2, 2}},
    {{1, 8, 10, 12}, {8, 1, 3, 5}, 8, {2, 1}, {1, 2, 0, 2}},
    {{2, 6, 7, 9}, {9, 2, 2, 3}, 3, {1, 2}, {0, 1, 1, 0}, {2, 1}},
    {{1, 4, 7, 6}, {2, 4, 3, 3}, 1, {2, 2}, {}, {}, "SAME_UPPER"},
    {{1, 4, 7, 6}, {2, 4, 2, 4}, 1, {2, 1}, {}, {}, "SAME_LOWER"},
    {{1, 4, 7, 6}, {2, 4, 2, 4}, 1, {}, {}, {}, "VALID"},
    {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, 1, {1, 2, 1}, {1, 1, 0, 0, 1, 1}},
    {{2, 4, 3, 5, 4}, {4, 2, 3, 1, 2}, 2, {}, {}, {1, 1, 2}},
    {{0, 3, 5, 5}, {2, 3, 3, 3}},
};

Attributes AttributesOf(const ConvCase& c) {
  Attributes attributes{{"group", c.group}};
  if (!c.strides.empty()) attributes.Set("strides", c.strides);
  if (!c.pads.empty()) attributes.Set("pads", c.pads);
  if (!c.dilations.empty()) attributes.Set("dilations", c.dilations);
  if (c.auto_pad != "NOTSET") attributes.Set("auto_pad", c.auto_pad);
  return attributes;
}

Shape IndexOf(int64_t flat, const Shape& shape) {
  Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return index;
}

int64_t FlatOf(const Shape& index, const Shape& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

// visit(y, x, w): every product of an element of x and one of w that goes into an element of y.
template <typename Visit>
void VisitProducts(const ConvCase& c, const Shape& y, const Visit& visit) {
  const Window window = *WindowOf(AttributesOf(c), SpatialOf(c.x), SpatialOf(c.w));
  for (int64_t out = 0; out < ElementsOf(y); ++out) {
    const Shape at = IndexOf(out, y);
    const int64_t first_channel = at[1] / (c.w[0] / c.group) * c.w[1];
    Shape one_filter = c.w;
    one_filter[0] = 1;
    for (int64_t tap = 0; tap < ElementsOf(one_filter); ++tap) {
      Shape w = IndexOf(tap, one_filter);
      w[0] = at[1];
      Shape x = {at[0], first_channel + w[1]};
      bool inside = true;
      for (size_t i = 0; i + 2 < c.x.size(); ++i) {
        x.push_back(at[2 + i] * window.strides[i] - window.pads_begin[i] + w[2 + i] * window.dilations[i]);
        inside = inside && x.back() >= 0 && x.back() < c.x[2 + i];
      }
      if (inside) visit(out, FlatOf(x, c.x), FlatOf(w, c.w));
    }
  }
}

struct Precision {
  DType dtype;
  double tolerance;
};
constexpr Precision kPrecisions[] = {{DType::kFloat, 3e-5}, {DType::kDouble, 1e-13}};

std::vector<Tensor> RunOnce(std::string_view op, const std::vector<OpInput>& inputs, const Attributes& attributes,
                            size_t outputs, int threads) {
  Graph graph(OpRegistry::Default());
  const Status added = AddOp(graph, op, inputs, attributes, outputs);
  EXPECT_TRUE(added.ok()) << added.message();
  OpRunnerOptions options;
  options.threads = threads;
  const auto result = RunGraph(graph, FeedsOf(inputs), options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  std::vector<Tensor> tensors;
  for (const Value* output : graph.outputs()) tensors.push_back(result->fetches.at(output->name()));
  return tensors;
}

TEST(Conv, MatchesItsDefinition) {
  for (const Precision& precision : kPrecisions) {
    for (const ConvCase& c : kCases) {
      for (int threads : {1, 2}) {
        SCOPED_TRACE(ToString(c.x) + ToString(c.w) + c.auto_pad);
        const Tensor x = RandomTensor(precision.dtype, c.x, 1);
        const Tensor w = RandomTensor(precision.dtype, c.w, 2);
        const Tensor bias = RandomTensor(precision.dtype, {c.w[0]}, 3);
        const auto plain = RunOnce("Conv", {Fed(x), Fed(w)}, AttributesOf(c), 1, threads);
        const auto biased = RunOnce("Conv", {Fed(x), Fed(w), Fed(bias)}, AttributesOf(c), 1, threads);
        Tensor expected(TensorType{DType::kDouble, plain[0].shape()});
        VisitProducts(c, expected.shape(), [&](int64_t out, int64_t from, int64_t by) {
          expected.values<double>()[out] += x.DoubleAt(from) * w.DoubleAt(by);
        });
        ExpectNear(plain[0].CastTo(DType::kDouble), expected, precision.tolerance);
        for (int64_t i = 0; i < expected.elements(); ++i) {
          expected.values<double>()[i] += bias.DoubleAt(IndexOf(i, expected.shape())[1]);
        }
        ExpectNear(biased[0].CastTo(DType::kDouble), expected, precision.tolerance);
      }
    }
  }
}

// The gradient operators against sums over the same products.
TEST(ConvGradient, MatchesItsDefinition) {
  for (const Precision& precision : kPrecisions) {
    for (const ConvCase& c : kCases) {
      for (int threads : {1, 2}) {
        SCOPED_TRACE(ToString(c.x) + ToString(c.w) + c.auto_pad);
        const Tensor x = RandomTensor(precision.dtype, c.x, 1);
        const Tensor w = RandomTensor(precision.dtype, c.w, 2);
        const Shape shape = RunOnce("Conv", {Fed(x), Fed(w)}, AttributesOf(c), 1, 1)[0].shape();
        const Tensor dy = RandomTensor(precision.dtype, shape, 4);
        Tensor dx(TensorType{DType::kDouble, c.x}), dw(TensorType{DType::kDouble, c.w});
        Tensor dbias(TensorType{DType::kDouble, {c.w[0]}});
        VisitProducts(c, shape, [&](int64_t out, int64_t from, int64_t by) {
          dx.values<double>()[from] += dy.DoubleAt(out) * w.DoubleAt(by);
          dw.values<double>()[by] += dy.DoubleAt(out) * x.DoubleAt(from);
        });
        for (int64_t i = 0; i < dy.elements(); ++i) dbias.values<double>()[IndexOf(i, shape)[1]] += dy.DoubleAt(i);
        Attributes attributes;
        SetWindow(*WindowOf(AttributesOf(c), SpatialOf(c.x), SpatialOf(c.w)), attributes);
        attributes.Set("group", c.group);
        const auto of_weight = RunOnce("onnxtrain.ConvWeightGrad", {Fed(dy), Fed(x)}, attributes, 2, threads);
        ExpectNear(of_weight[0].CastTo(DType::kDouble), dw, precision.tolerance);
        ExpectNear(of_weight[1].CastTo(DType::kDouble), dbias, precision.tolerance);
        attributes.Erase("kernel_shape");
        attributes.Set("input_shape", c.x);
        const auto of_input = RunOnce("onnxtrain.ConvInputGrad", {Fed(dy), Fed(w)}, attributes, 1, threads);
        ExpectNear(of_input[0].CastTo(DType::kDouble), dx, precision.tolerance);
      }
    }
  }
}

TEST(ConvGradient, MatchesFiniteDifferences) {
  for (const ConvCase& c : kCases) {
    if (ElementsOf(c.x) == 0 || ElementsOf(c.x) * ElementsOf(c.w) > 20000) continue;
    SCOPED_TRACE(ToString(c.x) + ToString(c.w) + c.auto_pad);
    ExpectOpGradient("Conv",
                     {Fed(RandomTensor(DType::kDouble, c.x, 1)), Fed(RandomTensor(DType::kDouble, c.w, 2)),
                      Fed(RandomTensor(DType::kDouble, {c.w[0]}, 3))},
                     AttributesOf(c));
  }
}

struct TransposedCase {
  Shape x, w, y;
  Attributes attributes;
};

std::vector<TransposedCase> TransposedCases() {
  using Ints = std::vector<int64_t>;
  return {
      {{1, 1, 3}, {1, 2, 3}, {1, 2, 5}, {}},
      {{2, 3, 3, 4}, {3, 2, 3, 2}, {2, 2, 7, 8}, {{"strides", Ints{2, 2}}}},
      {{1, 4, 3, 3},
       {4, 1, 3, 3},
       {1, 2, 6, 5},
       {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 0}}, {"group", int64_t{2}}}},
      {{1, 1, 3, 3},
       {1, 2, 3, 3},
       {1, 2, 10, 8},
       {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}, {"output_padding", Ints{1, 1}}}},
      {{1, 1, 3, 3}, {1, 2, 3, 3}, {1, 2, 6, 6}, {{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}}},
      {{1, 2, 3, 3}, {2, 2, 2, 2}, {1, 2, 5, 5}, {{"dilations", Ints{2, 2}}}},
  };
}

// y[n, f, i * stride + k * dilation - pad] += x[n, c, i] w[c, f, k], one axis after the other.
Tensor NaiveTransposed(const TransposedCase& c, const Tensor& x, const Tensor& w, const Tensor& bias,
                       const std::vector<int64_t>& pads_begin) {
  const size_t axes = c.x.size() - 2;
  const int64_t group = c.attributes.Int("group", 1);
  const auto list = [&](const char* name) {
    std::vector<int64_t> values = c.attributes.Ints(name);
    return values.empty() ? std::vector<int64_t>(axes, 1) : values;
  };
  Tensor y(TensorType{DType::kDouble, c.y});
  for (int64_t i = 0; i < y.elements(); ++i) y.values<double>()[i] = bias.DoubleAt(IndexOf(i, c.y)[1]);
  for (int64_t from = 0; from < x.elements(); ++from) {
    const Shape at = IndexOf(from, c.x);
    for (int64_t by = 0; by < w.elements(); ++by) {
      const Shape tap = IndexOf(by, c.w);
      if (tap[0] != at[1]) continue;
      Shape to = {at[0], at[1] / (c.x[1] / group) * c.w[1] + tap[1]};
      bool inside = true;
      for (size_t i = 0; i < axes; ++i) {
        to.push_back(at[2 + i] * list("strides")[i] + tap[2 + i] * list("dilations")[i] - pads_begin[i]);
        inside = inside && to.back() >= 0 && to.back() < c.y[2 + i];
      }
      if (inside) y.values<double>()[FlatOf(to, c.y)] += x.DoubleAt(from) * w.DoubleAt(by);
    }
  }
  return y;
}

TEST(ConvTranspose, MatchesItsDefinition) {
  const std::vector<int64_t> pads_begin[] = {{0}, {0, 0}, {1, 1}, {0, 0}, {0, 0}, {0, 0}};
  const auto cases = TransposedCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(ToString(cases[i].x) + ToString(cases[i].w));
    const Tensor x = RandomTensor(DType::kDouble, cases[i].x, 1);
    const Tensor w = RandomTensor(DType::kDouble, cases[i].w, 2);
    const Tensor bias = RandomTensor(DType::kDouble, {cases[i].y[1]}, 3);
    const auto y = RunLiftedOp("ConvTranspose", 11, {Fed(x), Fed(w), Fed(bias)}, cases[i].attributes);
    ExpectNear(y[0], NaiveTransposed(cases[i], x, w, bias, pads_begin[i]), 1e-13);
  }
}

TEST(ConvTranspose, GradientMatchesFiniteDifferences) {
  for (const TransposedCase& c : TransposedCases()) {
    SCOPED_TRACE(ToString(c.x) + ToString(c.w));
    Graph graph(OpRegistry::Default());
    const std::vector<OpInput> inputs = {Fed(RandomTensor(DType::kDouble, c.x, 1)),
                                         Fed(RandomTensor(DType::kDouble, c.w, 2)),
                                         Fed(RandomTensor(DType::kDouble, {c.y[1]}, 3))};
    ASSERT_TRUE(AddLiftedOp(graph, "ConvTranspose", 11, inputs, c.attributes).ok());
    ExpectGradientMatchesFiniteDifference(graph, FeedsOf(inputs));
  }
}

}  // namespace
}  // namespace onnxtrain
