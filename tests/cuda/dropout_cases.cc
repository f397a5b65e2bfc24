// SPDX-License-Identifier: Apache-2.0
// Dropping by the counter generator: the words of runtime/math/philox.h, element by element.
#include "cuda_ops/kernels/dropout.h"
#include "runtime/math/philox.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

DropoutArguments ArgumentsOf(DType dtype, int64_t count, Array& attempt) {
  DropoutArguments a;
  a.attempt = attempt.as<int64_t>();
  a.count = count;
  a.scale = 1 / (1 - 0.25f);
  a.seed = 77;
  a.draw_id = 3;
  a.slice = 5;
  a.threshold = 0x40000000u;
  a.dtype = dtype;
  return a;
}

bool Kept(const DropoutArguments& a, int64_t i, int64_t attempt) {
  const math::PhiloxCounter drawn = math::Philox4x32(
      {{static_cast<uint32_t>(i / 4), a.draw_id, static_cast<uint32_t>(attempt), a.slice}}, a.seed);
  return drawn.words[i % 4] >= a.threshold;
}

CaseResult RunDropout(DType dtype, int64_t count, bool with_mask) {
  Array x = Uniform(dtype, count, 1), attempt(DType::kInt64, std::vector<double>{9});
  CaseResult result;
  Array y(dtype, count), mask(DType::kUint8, count);
  DropoutArguments a = ArgumentsOf(dtype, count, attempt);
  a.x = x.data();
  a.y = y.data();
  a.mask = with_mask ? mask.as<uint8_t>() : nullptr;
  LaunchDropout(a, nullptr);
  std::vector<double> values, kept;
  for (int64_t i = 0; i < count; ++i) {
    kept.push_back(Kept(a, i, 9) ? 1 : 0);
    values.push_back(kept.back() * x.At(i) * a.scale);
  }
  result.outputs.push_back(std::move(y));
  result.expected.push_back(values);
  result.tolerance = 1e-6;
  if (!with_mask) return result;
  result.outputs.push_back(std::move(mask));
  result.expected.push_back(kept);
  return result;
}

CaseResult RunGradient(DType dtype, int64_t count) {
  Array dy = Uniform(dtype, count, 2), mask = Uniform(DType::kUint8, count, 3, 0, 1);
  Array attempt(DType::kInt64, std::vector<double>{9});
  CaseResult result;
  Array& dx = result.outputs.emplace_back(dtype, count);
  DropoutArguments a = ArgumentsOf(dtype, count, attempt);
  a.x = dy.data();
  a.mask = mask.as<uint8_t>();
  a.y = dx.data();
  LaunchDropoutGradient(a, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t i = 0; i < count; ++i) expected.push_back(mask.At(i) * dy.At(i) * a.scale);
  result.tolerance = 1e-6;
  return result;
}

}  // namespace

void AddDropoutCases(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    const std::string type(NameOf(dtype));
    for (const int64_t count : {1, 5, 1027}) {
      cases.push_back({"Dropout " + type, [=] { return RunDropout(dtype, count, true); }});
      cases.push_back({"Dropout without mask " + type, [=] { return RunDropout(dtype, count, false); }});
      cases.push_back({"DropoutGrad " + type, [=] { return RunGradient(dtype, count); }});
    }
  }
}

}  // namespace onnxtrain
