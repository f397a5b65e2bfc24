// SPDX-License-Identifier: Apache-2.0
// What a CNN needs beside products: columns of convolutions, pooling, batch normalization; Clip.
#include <algorithm>
#include <cmath>

#include "cuda_ops/kernels/batch_normalization.h"
#include "cuda_ops/kernels/clip.h"
#include "cuda_ops/kernels/conv.h"
#include "cuda_ops/kernels/pool.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

std::string Named(const std::string& name, DType dtype) { return name + " " + std::string(NameOf(dtype)); }

WindowAxis AxisOf(int32_t input, int32_t kernel, int32_t stride, int32_t dilation, int32_t pad) {
  const int32_t output = (input + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  return {input, output, kernel, stride, dilation, pad};
}

DeviceWindow WindowOf(int kind) {
  DeviceWindow window;
  window.height = kind == 0 ? AxisOf(7, 3, 1, 1, 1) : AxisOf(9, 3, 2, 2, 1);
  window.width = kind == 0 ? AxisOf(5, 3, 1, 1, 1) : AxisOf(8, 2, 2, 1, 0);
  if (kind == 2) window.depth = AxisOf(4, 2, 1, 1, 1);
  return window;
}

// body(output position, tap, place in the input or -1)
template <typename Body>
void ForEachTap(const DeviceWindow& w, const Body& body) {
  const auto outputs = static_cast<int32_t>(w.OutputSize()), taps = static_cast<int32_t>(w.Taps());
  for (int32_t output = 0; output < outputs; ++output) {
    for (int32_t tap = 0; tap < taps; ++tap) {
      const int32_t d = w.depth.At(output / w.width.output / w.height.output, tap / w.width.kernel / w.height.kernel);
      const int32_t h = w.height.At(output / w.width.output % w.height.output, tap / w.width.kernel % w.height.kernel);
      const int32_t x = w.width.At(output % w.width.output, tap % w.width.kernel);
      const bool inside = d >= 0 && d < w.depth.input && h >= 0 && h < w.height.input && x >= 0 && x < w.width.input;
      body(output, tap, inside ? (int64_t{d} * w.height.input + h) * w.width.input + x : -1);
    }
  }
}

CaseResult RunColumns(DType dtype, int kind, bool back) {
  const DeviceWindow window = WindowOf(kind);
  constexpr int64_t kPlanes = 6;
  const int64_t images = kPlanes * window.InputSize(), columns = kPlanes * window.Taps() * window.OutputSize();
  Array from = Uniform(dtype, back ? columns : images, 1);
  CaseResult result;
  Array& to = result.outputs.emplace_back(dtype, back ? images : columns);
  const ColumnArguments a{from.data(), to.data(), 2, 3, window, dtype, dtype};
  back ? LaunchFromColumns(a, nullptr) : LaunchToColumns(a, nullptr);
  auto& expected = result.expected.emplace_back(static_cast<size_t>(to.count()));
  for (int64_t plane = 0; plane < kPlanes; ++plane) {
    ForEachTap(window, [&](int64_t output, int64_t tap, int64_t place) {
      const int64_t column = (plane * window.Taps() + tap) * window.OutputSize() + output;
      if (place < 0) return;
      const int64_t pixel = plane * window.InputSize() + place;
      if (back) {
        expected[static_cast<size_t>(pixel)] += from.At(column);
      } else {
        expected[static_cast<size_t>(column)] = from.At(pixel);
      }
    });
  }
  result.tolerance = 1e-6;
  return result;
}

CaseResult RunMaxPool(DType dtype, int kind) {
  const DeviceWindow window = WindowOf(kind);
  constexpr int64_t kPlanes = 3;
  Array x = Uniform(dtype, kPlanes * window.InputSize(), 1), dy = Uniform(dtype, kPlanes * window.OutputSize(), 2);
  CaseResult result;
  result.outputs.emplace_back(dtype, dy.count());
  result.outputs.emplace_back(DType::kInt64, dy.count());
  result.outputs.emplace_back(dtype, x.count());
  PoolArguments a;
  a.x = x.data();
  a.result = result.outputs[0].data();
  a.indices = result.outputs[1].as<int64_t>();
  a.planes = kPlanes;
  a.window = window;
  a.dtype = dtype;
  LaunchMaxPool(a, nullptr);
  a.dy = dy.data();
  a.result = result.outputs[2].data();
  LaunchMaxPoolGradient(a, nullptr);
  std::vector<double> y(static_cast<size_t>(dy.count()), -INFINITY), at(y.size()), dx(static_cast<size_t>(x.count()));
  for (int64_t plane = 0; plane < kPlanes; ++plane) {
    ForEachTap(window, [&](int64_t output, int64_t, int64_t place) {
      const auto i = static_cast<size_t>(plane * window.OutputSize() + output);
      const int64_t pixel = plane * window.InputSize() + place;
      if (place < 0 || x.At(pixel) <= y[i]) return;
      y[i] = x.At(pixel);
      at[i] = static_cast<double>(pixel);
    });
  }
  for (size_t i = 0; i < at.size(); ++i) dx[static_cast<size_t>(at[i])] += dy.At(static_cast<int64_t>(i));
  result.expected = {y, at, dx};
  result.tolerance = 1e-6;
  return result;
}

// Elements of one axis that count at a position, of the input of `end` positions with what is padded behind it.
int64_t CountedAlong(const WindowAxis& axis, int32_t position, int32_t end, bool padding) {
  int64_t count = 0;
  for (int32_t offset = 0; offset < axis.kernel; ++offset) {
    const int32_t at = axis.At(position, offset);
    count += (padding || at >= 0) && at < end ? 1 : 0;
  }
  return count;
}

CaseResult RunAveragePool(DType dtype, int kind, bool padding, bool gradient) {
  const DeviceWindow w = WindowOf(kind);
  constexpr int64_t kPlanes = 3;
  const int64_t inputs = kPlanes * w.InputSize(), outputs = kPlanes * w.OutputSize();
  Array from = Uniform(dtype, gradient ? outputs : inputs, 1);
  CaseResult result;
  Array& to = result.outputs.emplace_back(dtype, gradient ? inputs : outputs);
  const int32_t more = padding ? 1 : 0;
  const CountedPositions counted{padding, w.depth.input + more, w.height.input + more, w.width.input};
  const AveragePoolArguments a{from.data(), to.data(), kPlanes, w, counted, dtype};
  gradient ? LaunchAveragePoolGradient(a, nullptr) : LaunchAveragePool(a, nullptr);
  auto& expected = result.expected.emplace_back(static_cast<size_t>(to.count()));
  for (int64_t plane = 0; plane < kPlanes; ++plane) {
    ForEachTap(w, [&](int32_t output, int32_t, int64_t place) {
      const int32_t row = output / w.width.output;
      const auto count = static_cast<double>(CountedAlong(w.depth, row / w.height.output, counted.depth, padding) *
                                             CountedAlong(w.height, row % w.height.output, counted.height, padding) *
                                             CountedAlong(w.width, output % w.width.output, counted.width, padding));
      const int64_t pixel = plane * w.InputSize() + place, mean = plane * w.OutputSize() + output;
      if (place >= 0)
        expected[static_cast<size_t>(gradient ? pixel : mean)] += from.At(gradient ? mean : pixel) / count;
    });
  }
  result.tolerance = 1e-6;
  return result;
}

struct BatchCase {
  DType dtype;
  int64_t samples, channels, inner;
  bool batch;  // statistics of the batch, not the running ones
  int64_t At(int64_t channel, int64_t i) const { return (i / inner * channels + channel) * inner + i % inner; }
  int64_t count() const { return samples * inner; }
};
constexpr double kEpsilon = 0.015625;

struct Moments {
  double mean = 0, variance = 0;
  double factor() const { return 1 / std::sqrt(variance + kEpsilon); }
};
Moments MomentsOf(const BatchCase& c, const Array& x, int64_t channel) {
  Moments m;
  const auto count = static_cast<double>(c.count());
  for (int64_t i = 0; i < c.count(); ++i) m.mean += x.At(c.At(channel, i)) / count;
  for (int64_t i = 0; i < c.count(); ++i) m.variance += std::pow(x.At(c.At(channel, i)) - m.mean, 2) / count;
  return m;
}

struct BatchInputs {
  Array x, dy, scale, bias, mean, variance;
  BatchNormalizationArguments a;
};

BatchInputs InputsOf(const BatchCase& c) {
  const int64_t count = c.count() * c.channels;
  BatchInputs in{Uniform(c.dtype, count, 1),
                 Uniform(c.dtype, count, 2),
                 Uniform(DType::kFloat, c.channels, 3),
                 Uniform(DType::kFloat, c.channels, 4),
                 Uniform(DType::kFloat, c.channels, 5),
                 Uniform(DType::kFloat, c.channels, 6, 0.5, 2),
                 {}};
  in.a.x = in.x.data();
  in.a.scale = in.scale.as<float>();
  in.a.samples = c.samples;
  in.a.channels = c.channels;
  in.a.inner = c.inner;
  in.a.dtype = c.dtype;
  in.a.epsilon = static_cast<float>(kEpsilon);
  return in;
}

Moments UsedBy(const BatchCase& c, const BatchInputs& in, int64_t channel) {
  return c.batch ? MomentsOf(c, in.x, channel) : Moments{in.mean.At(channel), in.variance.At(channel)};
}

CaseResult RunBatchNormalization(const BatchCase& c) {
  BatchInputs in = InputsOf(c);
  CaseResult result;
  result.outputs.emplace_back(c.dtype, in.x.count());
  result.outputs.emplace_back(DType::kFloat, in.mean.Values());
  result.outputs.emplace_back(DType::kFloat, in.variance.Values());
  in.a.bias = in.bias.as<float>();
  in.a.mean = result.outputs[1].as<float>();  // moved in place
  in.a.variance = result.outputs[2].as<float>();
  in.a.y = result.outputs[0].data();
  in.a.training = c.batch;
  in.a.momentum = 0.875;
  in.a.mean_new = result.outputs[1].as<float>();
  in.a.variance_new = result.outputs[2].as<float>();
  LaunchBatchNormalization(in.a, nullptr);
  result.expected = {std::vector<double>(static_cast<size_t>(in.x.count())), in.mean.Values(), in.variance.Values()};
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    const Moments m = UsedBy(c, in, channel);
    for (int64_t i = 0; i < c.count(); ++i) {
      const int64_t at = c.At(channel, i);
      result.expected[0][static_cast<size_t>(at)] =
          (in.x.At(at) - m.mean) * m.factor() * in.scale.At(channel) + in.bias.At(channel);
    }
    if (!c.batch) continue;
    double& mean = result.expected[1][static_cast<size_t>(channel)];
    double& variance = result.expected[2][static_cast<size_t>(channel)];
    mean = 0.875 * mean + 0.125 * m.mean;
    variance = 0.875 * variance + 0.125 * m.variance;
  }
  result.tolerance = 1e-5;
  return result;
}

CaseResult RunBatchNormalizationGradient(const BatchCase& c) {
  BatchInputs in = InputsOf(c);
  CaseResult result;
  result.outputs.emplace_back(c.dtype, in.x.count());
  result.outputs.emplace_back(DType::kFloat, c.channels);
  result.outputs.emplace_back(DType::kFloat, c.channels);
  in.a.mean = c.batch ? nullptr : in.mean.as<float>();
  in.a.variance = c.batch ? nullptr : in.variance.as<float>();
  in.a.dy = in.dy.data();
  in.a.dx = result.outputs[0].data();
  in.a.dscale = result.outputs[1].as<float>();
  in.a.dbias = result.outputs[2].as<float>();
  LaunchBatchNormalizationGradient(in.a, nullptr);
  result.expected = {std::vector<double>(static_cast<size_t>(in.x.count())), {}, {}};
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    const Moments m = UsedBy(c, in, channel);
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < c.count(); ++i) {
      sum += in.dy.At(c.At(channel, i));
      dot += in.dy.At(c.At(channel, i)) * (in.x.At(c.At(channel, i)) - m.mean) * m.factor();
    }
    result.expected[1].push_back(dot);
    result.expected[2].push_back(sum);
    const double share = c.batch ? 1 / static_cast<double>(c.count()) : 0;
    for (int64_t i = 0; i < c.count(); ++i) {
      const int64_t at = c.At(channel, i);
      const double unit = (in.x.At(at) - m.mean) * m.factor();
      result.expected[0][static_cast<size_t>(at)] =
          in.scale.At(channel) * m.factor() * (in.dy.At(at) - share * sum - unit * share * dot);
    }
  }
  result.tolerance = 2e-5;
  return result;
}

CaseResult RunClip(DType dtype, bool gradient, bool bounded) {
  Array x = Uniform(dtype, 1029, 1), dy = Uniform(dtype, 1029, 2);
  Array lower(dtype, std::vector<double>{-0.5}), upper(dtype, std::vector<double>{1});
  CaseResult result;
  ClipArguments a;
  a.x = x.data();
  a.dy = dy.data();
  a.lower = bounded ? lower.data() : nullptr;
  a.upper = bounded ? upper.data() : nullptr;
  a.y = result.outputs.emplace_back(dtype, 1029).data();
  a.count = 1029;
  a.dtype = dtype;
  gradient ? LaunchClipGradient(a, nullptr) : LaunchClip(a, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t i = 0; i < 1029; ++i) {
    const double value = x.At(i);
    const bool inside = !bounded || (value > -0.5 && value < 1);
    expected.push_back(gradient ? (inside ? dy.At(i) : 0) : bounded ? std::clamp(value, -0.5, 1.0) : value);
  }
  return result;
}

CaseResult RunIsNaN(DType dtype) {
  Array x(dtype, std::vector<double>{1, NAN, -INFINITY, 0, NAN});
  CaseResult result;
  LaunchIsNaN(x.data(), dtype, result.outputs.emplace_back(DType::kBool, 5).as<bool>(), 5, nullptr);
  result.expected.push_back({0, 1, 0, 0, 1});
  return result;
}

}  // namespace

void AddWindowCases(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    for (const int kind : {0, 1, 2}) {
      cases.push_back({Named("ToColumns", dtype), [=] { return RunColumns(dtype, kind, false); }});
      cases.push_back({Named("FromColumns", dtype), [=] { return RunColumns(dtype, kind, true); }});
      cases.push_back({Named("MaxPool", dtype), [=] { return RunMaxPool(dtype, kind); }});
      for (const bool padding : {false, true}) {
        cases.push_back({Named("AveragePool", dtype), [=] { return RunAveragePool(dtype, kind, padding, false); }});
        cases.push_back({Named("AveragePoolGrad", dtype), [=] { return RunAveragePool(dtype, kind, padding, true); }});
      }
    }
    for (const BatchCase& shape :
         {BatchCase{dtype, 1, 1, 1, false}, BatchCase{dtype, 3, 5, 7, false}, BatchCase{dtype, 2, 3, 331, false}}) {
      for (const bool batch : {false, true}) {
        BatchCase c = shape;
        c.batch = batch;
        cases.push_back({Named("BatchNormalization", dtype), [=] { return RunBatchNormalization(c); }});
        cases.push_back({Named("BatchNormalizationGrad", dtype), [=] { return RunBatchNormalizationGradient(c); }});
      }
    }
    for (const bool bounded : {false, true}) {
      cases.push_back({Named("Clip", dtype), [=] { return RunClip(dtype, false, bounded); }});
      cases.push_back({Named("ClipGrad", dtype), [=] { return RunClip(dtype, true, bounded); }});
    }
    cases.push_back({Named("IsNaN", dtype), [=] { return RunIsNaN(dtype); }});
  }
}

}  // namespace onnxtrain
