// SPDX-License-Identifier: Apache-2.0
// Binary cross entropy by its formula in double.
#include <algorithm>
#include <cmath>

#include "cuda_ops/kernels/binary_loss.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

CaseResult RunLoss(DType dtype, DType result_dtype, int64_t count) {
  Array x = Uniform(dtype, count, 1, -20, 20), target = Uniform(dtype, count, 2, 0, 1);
  CaseResult result;
  Array& loss = result.outputs.emplace_back(result_dtype, count);
  BinaryLossArguments a;
  a.x = x.data();
  a.target = target.data();
  a.result = loss.data();
  a.dtype = dtype;
  a.result_dtype = result_dtype;
  a.count = count;
  LaunchBinaryLoss(a, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t i = 0; i < count; ++i) {
    const double logit = x.At(i);
    expected.push_back(std::max(logit, 0.0) - logit * target.At(i) + std::log1p(std::exp(-std::fabs(logit))));
  }
  result.tolerance = 2e-6;
  return result;
}

CaseResult RunGradient(DType dtype, int64_t count, bool each) {
  Array x = Uniform(dtype, count, 1, -20, 20), target = Uniform(dtype, count, 2, 0, 1);
  Array dloss = Uniform(dtype, each ? count : 1, 3);
  CaseResult result;
  Array& dx = result.outputs.emplace_back(dtype, count);
  BinaryLossArguments a;
  a.x = x.data();
  a.target = target.data();
  a.result = dx.data();
  a.dtype = dtype;
  a.count = count;
  a.dloss = dloss.data();
  a.dloss_each = each;
  a.scale = 0.5f;
  LaunchBinaryLossGradient(a, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t i = 0; i < count; ++i) {
    expected.push_back((1 / (1 + std::exp(-x.At(i))) - target.At(i)) * dloss.At(each ? i : 0) * 0.5);
  }
  result.tolerance = 2e-6;
  return result;
}

}  // namespace

void AddBinaryLossCases(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    const std::string type(NameOf(dtype));
    for (const int64_t count : {1, 300}) {
      cases.push_back({"BinaryLoss " + type, [=] { return RunLoss(dtype, dtype, count); }});
      cases.push_back({"BinaryLoss to float " + type, [=] { return RunLoss(dtype, DType::kFloat, count); }});
      for (const bool each : {false, true}) {
        cases.push_back({"BinaryLossGrad " + type, [=] { return RunGradient(dtype, count, each); }});
      }
    }
  }
}

}  // namespace onnxtrain
