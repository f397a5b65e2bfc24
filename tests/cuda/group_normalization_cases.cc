// SPDX-License-Identifier: Apache-2.0
// GroupNormalization and its gradient; one channel a group is InstanceNormalization.
#include <cmath>

#include "cuda_ops/kernels/group_normalization.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

constexpr double kEpsilon = 0.015625;

struct GroupCase {
  DType dtype, parameter_dtype;
  int64_t samples, channels, groups, inner;

  int64_t count() const { return samples * channels * inner; }
  int64_t per_group() const { return channels / groups; }
  int64_t length() const { return per_group() * inner; }
  int64_t ChannelOf(int64_t i) const { return i / inner % channels; }
};

struct Moments {
  double mean = 0, factor = 0;
};
// Group `row` of all samples' groups.
Moments MomentsOf(const GroupCase& c, const Array& x, int64_t row) {
  Moments m;
  double variance = 0;
  const auto length = static_cast<double>(c.length());
  for (int64_t i = 0; i < c.length(); ++i) m.mean += x.At(row * c.length() + i) / length;
  for (int64_t i = 0; i < c.length(); ++i) variance += std::pow(x.At(row * c.length() + i) - m.mean, 2) / length;
  m.factor = 1 / std::sqrt(variance + kEpsilon);
  return m;
}

GroupNormalizationArguments ArgumentsOf(const GroupCase& c, Array& x, Array& scale) {
  GroupNormalizationArguments a;
  a.x = x.data();
  a.scale = scale.data();
  a.samples = c.samples;
  a.channels = c.channels;
  a.groups = c.groups;
  a.inner = c.inner;
  a.dtype = c.dtype;
  a.parameter_dtype = c.parameter_dtype;
  a.epsilon = kEpsilon;
  return a;
}

CaseResult RunForward(const GroupCase& c) {
  Array x = Uniform(c.dtype, c.count(), 1), scale = Uniform(c.parameter_dtype, c.channels, 2);
  Array bias = Uniform(c.parameter_dtype, c.channels, 3);
  CaseResult result;
  GroupNormalizationArguments a = ArgumentsOf(c, x, scale);
  a.bias = bias.data();
  a.y = result.outputs.emplace_back(c.dtype, c.count()).data();
  LaunchGroupNormalization(a, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t row = 0; row < c.samples * c.groups; ++row) {
    const Moments m = MomentsOf(c, x, row);
    for (int64_t i = row * c.length(); i < (row + 1) * c.length(); ++i) {
      const int64_t channel = c.ChannelOf(i);
      expected.push_back((x.At(i) - m.mean) * m.factor * scale.At(channel) + bias.At(channel));
    }
  }
  result.tolerance = 1e-5;
  return result;
}

// Adds a group to dscale and dbias and appends its dx.
void ExpectGroup(const GroupCase& c, const Array& x, const Array& dy, const Array& scale, int64_t row,
                 std::vector<std::vector<double>>& expected) {
  const Moments m = MomentsOf(c, x, row);
  const int64_t first = row * c.length(), last = first + c.length();
  double sum = 0, dot = 0;
  for (int64_t i = first; i < last; ++i) {
    const auto channel = static_cast<size_t>(c.ChannelOf(i));
    const double unit = (x.At(i) - m.mean) * m.factor;
    sum += dy.At(i) * scale.At(c.ChannelOf(i)) / static_cast<double>(c.length());
    dot += dy.At(i) * scale.At(c.ChannelOf(i)) * unit / static_cast<double>(c.length());
    if (expected.size() > 1) expected[1][channel] += dy.At(i) * unit;
    if (expected.size() > 1) expected[2][channel] += dy.At(i);
  }
  for (int64_t i = first; i < last; ++i) {
    const double unit = (x.At(i) - m.mean) * m.factor;
    expected[0].push_back(m.factor * (dy.At(i) * scale.At(c.ChannelOf(i)) - sum - unit * dot));
  }
}

CaseResult RunGradient(const GroupCase& c, bool parameters) {
  Array x = Uniform(c.dtype, c.count(), 1), dy = Uniform(c.dtype, c.count(), 2);
  Array scale = Uniform(c.parameter_dtype, c.channels, 3);
  CaseResult result;
  result.outputs.emplace_back(c.dtype, c.count());
  if (parameters) result.outputs.emplace_back(c.parameter_dtype, c.channels);
  if (parameters) result.outputs.emplace_back(c.parameter_dtype, c.channels);
  GroupNormalizationArguments a = ArgumentsOf(c, x, scale);
  Array workspace(DType::kUint8, static_cast<int64_t>(GroupNormalizationGradientBytes(a)));
  a.workspace = workspace.data();
  a.dy = dy.data();
  a.dx = result.outputs[0].data();
  a.dscale = parameters ? result.outputs[1].data() : nullptr;
  a.dbias = parameters ? result.outputs[2].data() : nullptr;
  LaunchGroupNormalizationGradient(a, nullptr);
  result.expected.resize(result.outputs.size(), std::vector<double>(static_cast<size_t>(c.channels)));
  result.expected[0].clear();
  for (int64_t row = 0; row < c.samples * c.groups; ++row) ExpectGroup(c, x, dy, scale, row, result.expected);
  result.tolerance = 3e-5;
  return result;
}

}  // namespace

void AddGroupNormalizationCases(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    for (const GroupCase& c : {GroupCase{dtype, dtype, 1, 1, 1, 1}, GroupCase{dtype, DType::kFloat, 3, 6, 2, 35},
                               GroupCase{dtype, dtype, 2, 5, 5, 9}, GroupCase{dtype, dtype, 2, 6, 1, 331},
                               GroupCase{dtype, dtype, 2, 2, 2, 1029}, GroupCase{dtype, dtype, 5, 9, 3, 1},
                               GroupCase{dtype, dtype, 0, 3, 1, 4}, GroupCase{dtype, dtype, 2, 3, 1, 0}}) {
      const std::string type(NameOf(dtype));
      cases.push_back({"GroupNormalization " + type, [=] { return RunForward(c); }});
      cases.push_back({"GroupNormalizationGrad " + type, [=] { return RunGradient(c, true); }});
    }
    const GroupCase c{dtype, dtype, 2, 6, 3, 17};
    cases.push_back({"GroupNormalizationGrad " + std::string(NameOf(dtype)), [=] { return RunGradient(c, false); }});
  }
}

}  // namespace onnxtrain
